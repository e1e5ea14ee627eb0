//! Files of users, good and broken.

use std::fs;

use bench_proto::dataset::{Bank, Gold, GoldRecord, Question, StreamEntry};

use super::*;
use crate::registry;

/// As the registry calls them.
fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Dataset>, DatasetError> {
    super::open(path, options, registry::is_taken)
}

fn find(name: &str, options: &OpenOptions) -> Option<PathBuf> {
    registry::own_file(name, options)
}

fn in_folder(options: &OpenOptions) -> Vec<PathBuf> {
    super::in_folder(options, registry::is_taken)
}

fn write(dataset: &dyn Dataset, path: &Path) -> Result<(u64, String), DatasetError> {
    super::write(dataset, path, registry::is_taken)
}

const SET: &str = r##"{"dataset": {"name": "friends", "licence": "CC0-1.0", "abstention_phrases": ["no idea"]}}

# who said what
{"session": {"id": "answer_1", "date": "2026-03-04", "turns": [{"speaker": "Ann", "text": "I have a cello."}, {"role": "user", "content": "Nice!", "date": "noon"}]}}
{"memory": {"id": 7, "text": "Ben lives in Oslo.", "date": "2026/03/05 (Thu) 10:30", "tags": ["place"], "user": "ben", "scopes": ["home"], "fields": {"kind": "fact"}}}
{"id": "a_abs", "question": "What does Ann play?", "expected_substrings": ["cello", ""], "reference_answer": "the cello", "tags": ["music", "hard"], "question_date": "2026-04-01", "evidence": ["answer_1:1"], "k": 3}
{"id": 2, "question": "How old is Ann?", "unanswerable": true}
{"id": 3, "question": "Where does Ben live?", "reference_answer": "Oslo", "evidence": [7, "nobody"], "questionDate": "soon", "filter": {"user": "ben"}}
"##;

fn put(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("temporary folder");
    let path = root.path().join(name);
    fs::write(&path, text).expect("write");
    (root, path)
}

fn opened(name: &str, text: &str) -> Result<Box<dyn Dataset>, String> {
    let (root, path) = put(name, text);
    let options = OpenOptions { cache_dir: root.path().join("cache"), ..OpenOptions::default() };
    open(&path, &options).map_err(|e| e.to_string().replace(&format!("{}/", root.path().display()), ""))
}

fn refused(text: &str) -> String {
    opened("mine.jsonl", text).err().expect("is refused")
}

#[test]
fn every_field_of_a_question_set_counts() {
    let dataset = opened("mine.jsonl", SET).expect("reads");
    let manifest = dataset.manifest();
    assert_eq!((manifest.name.as_str(), manifest.licence.as_str()), ("friends", "CC0-1.0"));
    assert_eq!(
        (&manifest.scorers[..], &manifest.abstention_phrases[..]),
        (&["substring".to_owned()][..], &["no idea".to_owned()][..])
    );
    assert_eq!(
        manifest.categories,
        [("music", 1), ("unanswerable", 1), ("question", 1)].map(|(n, c)| (n.to_owned(), c))
    );
    assert!(dataset.profile().is_unanswerable("unanswerable") && !dataset.profile().is_unanswerable("music"));
    let bank = dataset.bank(0).expect("a bank");
    let [StreamEntry::Session(session), StreamEntry::Memory(memory)] = &bank.content.entries[..] else {
        panic!("a session and a memory")
    };
    assert_eq!((session.id.as_str(), session.time.as_deref()), ("S1", Some("2026-03-04T00:00:00")));
    assert_eq!((session.turns[1].id.as_str(), session.turns[1].line().as_str()), ("S1:2", "user: Nice!"));
    assert_eq!((session.turns[1].time_text.as_deref(), session.turns[1].time.as_deref()), (Some("noon"), None));
    assert_eq!((memory.id.as_str(), memory.time.as_deref()), ("m2", Some("2026-03-05T10:30:00")));
    assert_eq!(
        (&memory.tags[..], memory.user.as_deref(), &memory.scopes[..]),
        (&["place".to_owned()][..], Some("ben"), &["home".to_owned()][..])
    );
    assert_eq!(memory.fields["kind"], "fact");
    let given = dataset.given_ids(0).expect("the file has ids of its own");
    let ours = ["answer_1", "answer_1:2", "7"].map(|id| given.get(id).map(String::as_str));
    assert_eq!((ours, given.len()), ([Some("S1"), Some("S1:2"), Some("m2")], 4));
    assert_eq!(bank.content.speakers, ["Ann", "user"]);

    let [(first, gold), (second, none), (third, oslo)] = ["a_abs", "2", "3"].map(|id| asked(&bank, id));
    let mut shown: Vec<&str> = bank.questions.iter().map(|question| question.shown_id()).collect();
    shown.sort_unstable();
    assert_eq!(shown, ["b1:1", "b1:2", "b1:3"]);
    assert_eq!((first.k, first.ask_after, first.time.as_deref()), (Some(3), 2, Some("2026-04-01T00:00:00")));
    assert_eq!((third.filter.user.as_deref(), third.time_text.as_deref()), (Some("ben"), Some("soon")));
    assert_eq!(second.category, "unanswerable");
    assert_eq!(gold.gold, Gold::AnyOf(vec!["the cello".to_owned(), "cello".to_owned()]));
    assert_eq!(
        (&gold.evidence_turns[..], &gold.evidence_sessions[..]),
        (&["S1:1".to_owned()][..], &["S1".to_owned()][..])
    );
    assert_eq!(gold.facets["hard"], "yes");
    assert_eq!((&none.gold, &oslo.gold), (&Gold::Abstain, &Gold::Text("Oslo".to_owned())));
    assert_eq!(oslo.evidence_turns, ["m2"]);
    let notes = dataset.notes().join("\n");
    insta::assert_snapshot!(notes, @r"
    answer_1:2: 'noon' is no date; write 2026-03-04 or 2026-03-04T10:00
    3: 'soon' is no date; write 2026-03-04 or 2026-03-04T10:00
    3: evidence nobody names nothing that is remembered
    ");
    let shown = serde_json::to_string(&bank.content).expect("serialises");
    assert!(!shown.contains("answer_1"), "ids of sessions may tell the answer: {shown}");
}

/// Whether there is an answer is said by its field, in every category; tags are no more than tags.
#[test]
fn a_tag_decides_nothing_about_the_answer() {
    let set = r#"{"memory": {"text": "Ann went to Oslo."}}
{"id": 1, "question": "Where was Ann?", "reference_answer": "Oslo", "tags": ["unanswerable", "abstention"]}
{"id": 2, "question": "When was she there?", "unanswerable": true, "tags": ["travel", "hard"]}
{"id": 3, "question": "And with whom?", "unanswerable": true, "tags": ["travel"]}
{"id": 4, "question": "How did she like it?", "unanswerable": true}
"#;
    let dataset = opened("mine.jsonl", set).expect("reads");
    let bank = dataset.bank(0).expect("a bank");
    let profile = dataset.profile();
    let told = ["1", "2", "3", "4"].map(|id| {
        let (question, gold) = asked(&bank, id);
        let has_no_answer = profile.has_no_answer(&question.category, &gold.facets);
        (question.category.as_str(), gold.facets.keys().map(String::as_str).collect::<Vec<_>>(), has_no_answer)
    });
    let expected = [
        ("unanswerable", vec![], false),
        ("travel", vec!["abstention", "hard"], true),
        ("travel", vec!["abstention"], true),
        ("unanswerable", vec!["abstention"], true),
    ];
    assert_eq!(told, expected);
    let rubric = |category: &str| profile.categories[category].rubric.clone().expect("is judged");
    assert_eq!((rubric("unanswerable"), rubric("travel")), ("judge-any-of".to_owned(), "judge-abstain".to_owned()));
}

#[test]
fn filters_and_hits_are_looked_at() {
    let with = |more: &str| {
        format!(
            "{{\"id\": 1, \"question\": \"x\", \"reference_answer\": 1, {more}}}\n{{\"memory\": {{\"text\": \"a\"}}}}"
        )
    };
    let error = refused(&with("\"k\": 0"));
    assert!(error.contains("line 1, field k: is 0"), "{error}");
    let error = refused(&with("\"filter\": {\"from\": \"15 May 1950\"}"));
    assert!(error.contains("line 1, field filter.from: '15 May 1950' is no date"), "{error}");
    let dataset = opened("mine.jsonl", &with("\"filter\": {\"from\": \"2026-03-04\", \"until\": \"2026-03-05\"}"));
    let filter = dataset.expect("reads").bank(0).expect("a bank").questions.remove(0).filter;
    assert_eq!(filter.from.as_deref(), Some("2026-03-04T00:00:00"));
    assert_eq!(filter.until.as_deref(), Some("2026-03-05T23:59:59"), "the whole day");
    let dataset = opened("mine.jsonl", &with("\"filter\": {\"from\": \"2026-03-04 10:00 PM\"}"));
    let filter = dataset.expect("reads").bank(0).expect("a bank").questions.remove(0).filter;
    assert_eq!(filter.from.as_deref(), Some("2026-03-04T22:00:00"), "in the evening");
    let error = refused(&with("\"filter\": {\"from\": \"2026-03-04 22:00 PM\"}"));
    assert!(error.contains("line 1, field filter.from: '2026-03-04 22:00 PM' is no date"), "{error}");
}

#[test]
fn a_form_is_told_by_keys_and_not_by_words() {
    let question = r#"{"id": 1, "question": "Which \"form\" is it?", "reference_answer": "the blue one"}"#;
    let set = format!("{question}\n{{\"memory\": {{\"text\": \"The \\\"form\\\" is blue.\"}}}}");
    for text in [set.clone(), format!("\u{feff}{set}"), format!("\u{feff}# mine\n{set}")] {
        assert_eq!(opened("mine.jsonl", &text).expect("a set").bank_count(), 1, "{text}");
    }
    let (_root, path) = put("mine.jsonl", "");
    write(&*registry::open("basic", &OpenOptions::default(), &|_, _| ()).expect("opens"), &path).expect("writes");
    let banks = format!("\u{feff}{}", fs::read_to_string(&path).expect("read"));
    fs::write(&path, banks).expect("write");
    let dataset = open(&path, &OpenOptions::default()).expect("banks");
    assert_eq!(dataset.bank(0).expect("a bank").content.entries.len(), 20);
}

/// What everything later relies on is looked at when a file of banks is opened.
#[test]
fn banks_are_held_to_what_everything_relies_on() {
    let (_root, path) = put("mine.jsonl", "");
    write(&*registry::open("basic", &OpenOptions::default(), &|_, _| ()).expect("opens"), &path).expect("writes");
    let text = fs::read_to_string(&path).expect("read");
    let (head, bank) = text.split_once('\n').expect("two lines");
    let bank: serde_json::Value = serde_json::from_str(bank).expect("JSON");
    let with = |pointer: &str, value: serde_json::Value| {
        let mut bank = bank.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = bank.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match parent.as_array_mut() {
            Some(list) => list[key.parse::<usize>().expect("a number")] = value,
            None => drop(parent.as_object_mut().expect("an object").insert(key.to_owned(), value)),
        }
        opened("mine.jsonl", &format!("{head}\n{bank}\n")).map(drop)
    };
    with("/questions/0/k", 3.into()).expect("is fine");
    with("/gold/0/rubric", "judge-criteria".into()).expect("is that of its category");
    for (pointer, value, expected) in [
        (
            "/questions/0/filter",
            serde_json::json!({"from": "15 May 1950"}),
            "questions[0].filter.from: '15 May 1950' is no time",
        ),
        (
            "/questions/0/filter",
            serde_json::json!({"until": "2026-03-04"}),
            "questions[0].filter.until: '2026-03-04' is no time",
        ),
        ("/questions/0/time", "2026-03-04 10:00:00".into(), "questions[0].time: "),
        ("/questions/0/k", 0.into(), "questions[0].k: is 0"),
        ("/content/entries/0/time", "noon".into(), "content.entries[0].time: 'noon' is no time"),
        (
            "/gold/0/evidence_turns",
            serde_json::json!(["m1", "m99"]),
            "gold[0].evidence_turns: names m99, which is no turn or memory",
        ),
        (
            "/gold/0/evidence_sessions",
            serde_json::json!(["m99"]),
            "gold[0].evidence_sessions: names m99, which is no entry",
        ),
        ("/gold/0/rubric", "judge-of-tomorrow".into(), "gold[0].rubric: is not among the rubrics of the profile"),
        (
            "/questions/0/choices",
            serde_json::json!(vec!["x"; 27]),
            "questions[0].choices: are 27, and 26 have a letter",
        ),
        (
            "/content/entries/0",
            serde_json::json!({"kind": "update", "replaces": "m2", "memory": null}),
            "content.entries[0].replaces: names m2, which is no earlier entry",
        ),
        (
            "/content/entries/0",
            serde_json::json!({"kind": "session", "id": "m1", "turns": [{"id": "t", "speaker": "a", "text": "b", "time": "now"}]}),
            "content.entries[0].turns[0].time: 'now' is no time",
        ),
    ] {
        let error = with(pointer, value).expect_err(expected);
        assert!(error.contains("line 2, field ") && error.contains(expected), "{error}");
    }
}

/// A manifest says of each file what it is, however it came; the dataset is known by all of them.
#[test]
fn a_manifest_describes_the_files_that_were_read() {
    let (root, path) = put("mine.jsonl", SET);
    let plain = open(&path, &OpenOptions::default()).expect("reads");
    let packed = root.path().join("mine.jsonl.gz");
    fs::write(&packed, packed::tests::gz(SET.as_bytes())).expect("write");
    let options = OpenOptions { cache_dir: root.path().join("cache"), ..OpenOptions::default() };
    let from_packed = open(&packed, &options).expect("reads");
    assert_eq!(plain.manifest().files, from_packed.manifest().files, "as it lies unpacked");
    assert_eq!(plain.sha256(), plain.manifest().files[0].sha256s[0]);
    let more = r#"{"memory": {"id": "m9", "text": "Cy has a dog."}}"#;
    fs::write(root.path().join("mine.memories.jsonl"), more).expect("write");
    let both = open(&path, &OpenOptions::default()).expect("reads");
    let files = &both.manifest().files;
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["mine.jsonl", "mine.memories.jsonl"]);
    assert_eq!((files[0].clone(), files[1].bytes), (plain.manifest().files[0].clone(), more.len() as u64));
    assert!(both.sha256() != plain.sha256() && both.sha256() != files[1].sha256s[0]);
}

/// What such a file gave before is another dataset; runs of all other files stay comparable.
#[test]
fn files_with_times_of_half_days_are_of_a_version_of_their_own() {
    let version = |name: &str, text: &str| opened(name, text).expect("reads").manifest().loader_version;
    assert_eq!(version("mine.jsonl", SET), 2);
    let filtered = |time: &str| SET.replace(r#"{"user": "ben"}"#, &format!(r#"{{"until": "{time}"}}"#));
    assert_eq!(version("mine.jsonl", &filtered("2026-03-06 02:21")), 2);
    assert_eq!(version("mine.jsonl", &filtered("2026-03-06 02:21 pm")), 3);
    assert_eq!(version("mine.jsonl", &SET.replace("(Thu) 10:30", "(Thu) 10:30 PM")), 3);
    assert_eq!(version("mine.jsonl", &SET.replace("a cello", "a cello since 2026-03-05 10:30 PM")), 2, "no time of it");
    let suite = |retained: &str, until: &str| {
        let text = format!(
            "description: small\nretain:\n- content: The lamp is red.\n  at: '{retained}'\nrecall:\n- query: Which colour has the lamp?\n  expected_contains: [red]\n  until: '{until}'\n"
        );
        version("my-suite.yaml", &text)
    };
    let (plain, half) = ("2026-03-05 10:30", "2026-03-05 10:30 am");
    assert_eq!([suite(plain, plain), suite(half, plain), suite(plain, half)], [2, 3, 3]);
}

#[test]
fn a_suite_is_read_by_its_ending() {
    let text = "description: small\nretain:\n- content: The lamp is red.\nrecall:\n- query: Which colour has the lamp?\n  expected_contains: [red]\n  category: colours\n- query: And the boat?\n";
    let dataset = opened("my-suite.yaml", text).expect("reads");
    assert_eq!((dataset.manifest().name.as_str(), dataset.manifest().description.as_str()), ("my-suite", "small"));
    assert_eq!(dataset.manifest().categories, [("colours".to_owned(), 1), ("recall".to_owned(), 1)]);
    assert_eq!(dataset.manifest().scorers, ["rubric"]);
    let profile = dataset.profile();
    assert!(!profile.is_unanswerable("colours") && profile.is_unanswerable("recall"));
    let blank = opened("my-suite.yaml", &text.replace("[red]", "[red, ' ']")).err().expect("is in every memory");
    assert_eq!(
        blank,
        "my-suite.yaml: recall[0].expected_contains[1]: is blank, and every text holds that; take it away"
    );
    let bank = dataset.bank(0).expect("a bank");
    assert_eq!(asked(&bank, "my-suite:0").1.evidence_turns, ["m1"]);
    let named = opened("my-suite.yaml", &format!("name: House & Home\n{text}")).expect("reads");
    assert_eq!(named.manifest().name, "house---home");
    let error = opened("my-suite.yml", &text.replace("content", "contents")).err().expect("unknown");
    assert!(error.starts_with("my-suite.yml: line 3, column ") && error.contains("did you mean 'content'?"), "{error}");
    let error = opened("my-suite.yaml", "scenarios: [{name: a, retain: [{}]}]").err().expect("missing");
    assert!(error.contains("line 1, column") && error.contains("missing field `content`"), "{error}");
}

/// A question with its gold.
fn asked<'a>(bank: &'a Bank, id: &str) -> (&'a Question, &'a GoldRecord) {
    let mut asked = bank.questions.iter().zip(&bank.gold);
    asked.find(|(question, _)| question.question_id == id).unwrap_or_else(|| panic!("no question {id}"))
}

/// Their order in the bank is another one.
#[test]
fn questions_know_their_place_in_the_file() {
    let asked: String =
        (0..9).map(|n| format!(r#"{{"id": {n}, "question": "?", "unanswerable": true}}"#) + "\n").collect();
    let dataset = opened("mine.jsonl", &format!("{{\"memory\": {{\"text\": \"a\"}}}}\n{asked}")).expect("reads");
    let outline = dataset.outline(0).expect("an outline");
    let places: Vec<u32> = outline.questions.iter().filter_map(|question| question.file_place).collect();
    assert!(places.len() == 9 && !places.is_sorted(), "{places:?}");
    for question in outline.questions {
        assert_eq!(question.file_place.map(|place| place.to_string()), Some(question.question_id));
    }
}

/// Without a name for it, whatever holds an expected substring is evidence.
#[test]
fn evidence_is_found_by_what_is_expected() {
    let set = SET
        .replace(", \"evidence\": [\"answer_1:1\"]", "")
        .replace("\"the cello\"", "null")
        .replace("cello.", "CELLO.");
    let bank = opened("mine.jsonl", &set).expect("reads").bank(0).expect("a bank");
    let (_, gold) = asked(&bank, "a_abs");
    assert_eq!(gold.gold, Gold::AnyOf(vec!["cello".to_owned()]));
    assert_eq!(
        (&gold.evidence_turns[..], &gold.evidence_sessions[..]),
        (&["S1:1".to_owned()][..], &["S1".to_owned()][..])
    );
    assert!(asked(&bank, "2").1.evidence_turns.is_empty());
}

#[test]
fn what_is_remembered_may_stand_in_a_second_file() {
    let (questions, memories): (Vec<&str>, Vec<&str>) =
        SET.lines().partition(|line| !line.contains("\"session\"") && !line.contains("\"memory\""));
    let (root, path) = put("mine.jsonl", &questions.join("\n"));
    let options = OpenOptions {
        cache_dir: root.path().join("cache"),
        datasets_dir: Some(root.path().to_owned()),
        ..OpenOptions::default()
    };
    let error = open(&path, &options).err().expect("nothing to remember").to_string();
    assert!(error.contains("has nothing to remember") && error.contains("mine.memories.jsonl"), "{error}");
    let beside = root.path().join("mine.memories.jsonl");
    let packed = root.path().join("mine.memories.jsonl.gz");
    fs::write(&packed, "").expect("write");
    let error = open(&path, &options).err().expect("is not passed over").to_string();
    assert!(error.contains("mine.memories.jsonl.gz: lies beside the set"), "{error}");
    fs::remove_file(&packed).expect("is removed");
    fs::write(&beside, memories.join("\n")).expect("write");
    let (one, two) = (opened("mine.jsonl", SET).expect("one file"), open(&path, &options).expect("two files"));
    assert_eq!(one.bank(0).expect("a bank"), two.bank(0).expect("a bank"));
    assert_eq!(in_folder(&options), std::slice::from_ref(&path), "the second file is no dataset");
    fs::write(&beside, memories[0]).expect("write");
    assert_ne!(open(&path, &options).expect("changed").sha256(), two.sha256(), "both files count");
    fs::write(&beside, questions.join("\n")).expect("write");
    assert!(open(&path, &options).err().expect("questions").to_string().contains("memories.jsonl: line 1: is neither"));
}

#[test]
fn names_paths_and_the_datasets_folder_lead_to_files() {
    let (root, path) = put("mine.jsonl", SET);
    let at = |name: &str, options: &OpenOptions| find(name, options);
    let none = OpenOptions::default();
    let folder = OpenOptions { datasets_dir: Some(root.path().to_owned()), ..OpenOptions::default() };
    assert_eq!(at("./mine.jsonl", &none), Some("./mine.jsonl".into()));
    assert_eq!(
        (at("mine.jsonl", &none), at("mine.yaml", &none)),
        (Some("mine.jsonl".into()), Some("mine.yaml".into()))
    );
    assert_eq!((at("mine", &none), at("mine", &folder)), (None, Some(path.clone())));
    assert_eq!((at("../mine", &folder), at("locomo", &folder)), (Some("../mine".into()), None));
    let resumed = OpenOptions { path: Some(path.clone()), ..OpenOptions::default() };
    assert_eq!((at("friends", &resumed), at("locomo", &resumed)), (Some(path.clone()), None));
    assert!(registry::open("friends", &resumed, &|_, _| ()).is_ok());
    let error = registry::open("./other.jsonl", &resumed, &|_, _| ()).err().expect("another").to_string();
    assert!(error.contains("is the dataset 'friends', and './other.jsonl' was asked for"), "{error}");
    let json = OpenOptions { path: Some("locomo10.json".into()), ..OpenOptions::default() };
    assert_eq!(at("lokomo", &json), None, "a slip of the pen is no file");
    assert!(open(&root.path().join("none.jsonl"), &none).err().expect("none").to_string().contains("does not exist"));
    assert!(open(root.path(), &none).err().expect("a folder").to_string().contains("is no file"));
}

/// Some programs write endings in capitals.
#[test]
fn endings_are_known_in_any_letters() {
    let root = tempfile::tempdir().expect("temporary folder");
    let folder = root.path().join("datasets");
    fs::create_dir_all(&folder).expect("folder");
    let suite = "retain: [{content: Red lamp}]\nrecall: [{query: lamp, expected_contains: [red]}]\n";
    let packed = crate::packed::tests::gz(SET.as_bytes());
    let files = [("mine.JSONL", SET.as_bytes()), ("other.Yml", suite.as_bytes()), ("third.JSONL.GZ", &packed)];
    let options = OpenOptions {
        datasets_dir: Some(folder.clone()),
        cache_dir: root.path().join("cache"),
        ..OpenOptions::default()
    };
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content).expect("write");
        open(&path, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        // by its name in the folder where the program stands, and by the path that a resumed run has
        assert_eq!(find(name, &options), Some(PathBuf::from(name)));
        let resumed = OpenOptions { path: Some(path.clone()), ..options.clone() };
        assert_eq!(find("friends", &resumed), Some(path));
    }
    let memories = "{\"memory\": {\"text\": \"Ben has a dog.\"}}\n";
    fs::write(folder.join("mine.memories.jsonl"), memories).expect("write");
    let with_memories = open(&folder.join("mine.JSONL"), &options).expect("reads");
    assert_eq!(with_memories.manifest().files.len(), 2);
    let endings = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let listed: Vec<_> = in_folder(&options).into_iter().filter_map(endings).collect();
    assert_eq!(listed, ["mine.JSONL", "other.Yml"]);
    assert_eq!(find("mine", &options), Some(folder.join("mine.JSONL")));
    fs::write(folder.join("mine.jsonl"), SET).expect("write");
    assert_eq!(find("mine", &options), Some(folder.join("mine.jsonl")), "as it should be first");
}

#[test]
fn other_encodings_are_refused_by_their_name() {
    let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let (little, big) = (|unit: u16| unit.to_le_bytes(), |unit: u16| unit.to_be_bytes());
    let suite = "retain: []\n";
    for (name, content) in [
        ("mine.jsonl", wide(&format!("\u{feff}{SET}"), little)),
        ("mine.jsonl", wide(&format!("\u{feff}{SET}"), big)),
        // without a mark
        ("mine.jsonl", wide(SET, little)),
        ("mine.yaml", wide(suite, big)),
    ] {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join(name);
        fs::write(&path, content).expect("write");
        let error = open(&path, &OpenOptions::default()).err().expect("is refused").to_string();
        let told =
            ": file: is in UTF-16 or UTF-32, and only UTF-8 is read; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)";
        assert_eq!(error, format!("{}{told}", path.display()));
    }
    let root = tempfile::tempdir().expect("temporary folder");
    fs::write(root.path().join("mine.jsonl"), SET).expect("write");
    fs::write(root.path().join("mine.memories.jsonl"), wide("{}", little)).expect("write");
    let error = open(&root.path().join("mine.jsonl"), &OpenOptions::default()).err().expect("is refused").to_string();
    assert!(error.contains("mine.memories.jsonl: file: is in UTF-16"), "{error}");
    opened("mine.jsonl", &format!("\u{feff}{SET}")).expect("a mark of UTF-8 does no harm");
}

#[test]
fn broken_lines_are_told_with_line_column_and_field() {
    for (text, expected) in [
        ("{\"id\": 1,", "mine.jsonl: line 1, column 9: EOF while parsing"),
        (
            "# x\n\n{\"id\": 1, \"qestion\": \"x\"}",
            "line 3, column 19, field qestion: unknown field `qestion`, expected one of",
        ),
        (
            "{\"memory\": {\"text\": 1}}",
            "line 1, column 21, field memory.text: invalid type: integer `1`, expected a string",
        ),
        ("{\"session\": {\"turns\": [{\"speaker\": \"A\"}]}}", "field session.turns[0]: missing field `text`"),
        ("{\"memory\": {\"text\": \"a\", \"tag\": []}}", "did you mean 'tags'?"),
        ("{\"id\": 1, \"question\": \" \", \"reference_answer\": 1}", "line 1, field question: is empty"),
        ("{\"id\": 1, \"question\": \"x\"}", "line 1, field expected_substrings: is empty"),
        ("{\"id\": 1, \"question\": \"x\", \"reference_answer\": 1, \"unanswerable\": true}", "leave one of them out"),
        (
            "{\"memory\": {\"id\": 1, \"text\": \"a\"}}\n{\"memory\": {\"id\": 1, \"text\": \"a\"}}",
            "line 2, field id: '1' is already the id of an earlier line",
        ),
        ("{\"memory\": {\"text\": \"a\"}}", "asks nothing"),
        ("[1]", "is of no form that is known"),
        ("", "is of no form that is known"),
        ("{\"form\": \"other\", \"version\": 1, \"profile\": {}}", "field profile: missing field"),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
    let two = "{\"id\": 1, \"question\": \"x\", \"reference_answer\": 1}\n".repeat(2);
    assert!(refused(&two).contains("line 2, field id: '1' is the id of the question in line 1"));
    assert!(
        opened("locomo.jsonl", &SET.replace("\"name\": \"friends\", ", ""))
            .err()
            .expect("taken")
            .contains("name of another dataset")
    );
    assert!(refused(&SET.replace("friends", "My Friends")).contains("is no name"));
}

/// As programs write rows whose fields are empty; and a tag of blanks is none, so that no category is without a name.
#[test]
fn null_is_as_if_a_field_were_left_out() {
    let rows = |nothing: bool| {
        let more = |fields: &str| if nothing { fields.to_owned() } else { String::new() };
        [
            format!("{{\"memory\": {{\"text\": \"a lamp\"{}}}}}", more(MEMORY_NULLS)),
            format!(
                "{{\"id\": 1, \"question\": \"x\", \"reference_answer\": \"lamp\"{}}}",
                more(", \"expected_substrings\": null, \"tags\": null, \"question_date\": null, \"unanswerable\": null, \"evidence\": null, \"k\": null, \"filter\": null")
            ),
            format!(
                "{{\"id\": 2, \"question\": \"x\", \"expected_substrings\": [\"lamp\"]{}}}",
                more(", \"tags\": [\"\", \" \"], \"filter\": {\"tags\": null, \"user\": null, \"scopes\": null, \"from\": null, \"until\": null}")
            ),
        ]
        .join("\n")
    };
    let bank = |text: &str| opened("friends.jsonl", text).expect("is read").bank(0).expect("the first");
    assert_eq!(bank(&rows(true)), bank(&rows(false)));
    assert_eq!(bank(&rows(true)).questions[1].category, "question");
}

const MEMORY_NULLS: &str =
    ", \"id\": null, \"date\": null, \"tags\": null, \"user\": null, \"scopes\": null, \"fields\": null";

#[test]
fn what_would_pass_without_a_word_is_refused() {
    let asked = |more: &str| {
        let question = format!("{{\"id\": \"q\", \"question\": \"x\", \"reference_answer\": 1{more}}}");
        refused(&format!("{{\"memory\": {{\"text\": \"a\"}}}}\n{question}"))
    };
    assert!(asked(r#", "filter": {"form": "2026-02-01"}"#).contains("did you mean 'from'?"));
    let turned = asked(r#", "filter": {"from": "2026-03-02", "until": "2026-03-01"}"#);
    assert!(turned.contains("line 2, field filter.from: 2026-03-02T00:00:00 is later than until"), "{turned}");
    assert!(asked(r#", "evidence": [null]"#).contains("expected a text or a number"));
    assert!(refused(&SET.replace("\"a_abs\"", "\" \"")).contains("field id: is empty"));
    let twice = format!("{{\"dataset\": {{}}}}\n{SET}");
    assert!(refused(&twice).contains("line 2: describes the dataset, as an earlier line does"), "{}", refused(&twice));
    for cut in ["{\"id\": \"a", "{\"id\": \"a\n"] {
        assert!(refused(cut).contains("line 1, column 9, field id: a text is not closed"), "{}", refused(cut));
    }
    let empty = refused(&SET.replace("[\"no idea\"]", "[\"no idea\", \" \"]"));
    assert!(empty.contains("abstention_phrases: hold an empty one"), "{empty}");
    let capital = opened("friends.jsonl", &SET.replace("no idea", "No Idea")).expect("is read");
    assert_eq!(capital.manifest().abstention_phrases, ["no idea"], "answers are looked at in lower case");
    let long = refused(&SET.replace("friends", &"x".repeat(MOST_NAME + 1)));
    assert!(long.contains("it has 1 to 100 of the characters"), "{long}");
    let suite = "name: ../x\nretain:\n- content: a red lamp\nrecall:\n- query: a\n  expected_contains: [red]\n";
    assert!(opened("n.yaml", suite).err().expect("is no name").contains("'../x' is no name"));
    assert!(opened("n.yaml", &suite.replace("../x", "My lamps")).is_ok());
}

#[test]
fn fields_of_banks_that_nobody_reads_are_refused_with_their_place() {
    let (_root, path) = put("mine.jsonl", "");
    let sim = registry::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("opens");
    write(&*sim, &path).expect("writes");
    let text = fs::read_to_string(&path).expect("read");
    let head = text.lines().next().expect("a head");
    let with = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        fs::write(&path, changed).expect("write");
        open(&path, &OpenOptions::default()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let misspelt = with("\"questions\":[{", "\"questions\":[{\"filer\":{},");
    assert!(misspelt.contains("line 2, field questions[0].filer: is unknown"), "{misspelt}");
    let misspelt = with("\"profile\":{", "\"profile\":{\"strata\":[\"a\"],");
    assert!(misspelt.contains("line 1, field profile.strata: is unknown"), "{misspelt}");
    assert!(!head.contains("\"presets\""), "{head}");
    let none = with("\"profile\":{", "\"profile\":{\"presets\":{\"fair\":0},");
    assert!(none.contains("line 1, field profile.presets.fair: is 0"), "{none}");
}

#[test]
fn a_file_that_changes_while_it_is_open_is_noticed() {
    let (_root, path) = put("mine.jsonl", "");
    let sim = registry::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("opens");
    write(&*sim, &path).expect("writes");
    let dataset = open(&path, &OpenOptions::default()).expect("reads");
    let text = fs::read_to_string(&path).expect("read");
    fs::write(&path, text.replacen("sim-1-1", "sim-1-x", 3)).expect("write");
    assert!(dataset.bank(0).is_ok());
    assert!(dataset.bank(1).expect_err("another").to_string().contains("line 3: changed since"));
    let error = open(&path, &OpenOptions::default()).err().expect("ids differ").to_string();
    assert!(error.contains("line 3, field gold["), "{error}");
    let styled = text.replacen("\"evidence_turns\":", "\"style\":\"of-tomorrow\",\"evidence_turns\":", 1);
    fs::write(&path, styled).expect("write");
    let error = open(&path, &OpenOptions::default()).err().expect("no such style").to_string();
    assert!(error.contains("line 2, field gold[0].style: is not among the styles"), "{error}");
    let cut = &text[..text.len() / 2];
    fs::write(&path, cut).expect("write");
    let error = open(&path, &OpenOptions::default()).err().expect("cut off").to_string();
    assert!(error.contains("line ") && error.contains("a text is not closed before the end"), "{error}");
}

proptest::proptest! {
    /// No content makes a reader panic.
    #[test]
    fn any_text_is_survived(text in ".{0,200}", start in proptest::sample::select(vec!["{\"form\"", "{\"id\":", "{\"memory\":{", ""])) {
        let _ = opened("mine.jsonl", &format!("{start}{text}"));
    }
}
