//! What every registered dataset must hold: one suite over the registry, so that a new dataset is checked without being asked.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use bench_grading::{
    judging::rubric,
    scorers::{self, self_check::check_answers},
};
use bench_proto::{
    dataset::{Bank, Gold, StreamEntry},
    profile::{GraderCheck, Profile},
};
use bench_settings::{ExtraKey, Settings, Sources};
use bench_testkit::data;

use crate::{DATASETS, Dataset, Known, Manifest, OpenOptions, known, locate, neutral::is_time, setting_names, verify};

/// Folder for what is unpacked or written here.
fn scratch() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/datasets-of-tests")
}

/// How to find the files of a dataset under their published names, where all are at hand: below `testdata` when this project may
/// have them, else below `$BENCH_REFERENCE_DIR/data`.
fn at_hand_options(manifest: &Manifest) -> Option<OpenOptions> {
    let options = |folder| OpenOptions { datasets_dir: Some(folder), cache_dir: scratch(), ..OpenOptions::default() };
    let has_all =
        |options: &OpenOptions| manifest.files.iter().all(|file| locate::find(manifest, file, options).is_some());
    [data::testdata(), data::published()].map(options).into_iter().find(has_all)
}

/// Parts of published files, and small ones of ours, by the name of their dataset: of all that are not there as published.
static IN_PLACE: LazyLock<Vec<(&Known, PathBuf)>> = LazyLock::new(|| {
    let folder = scratch().join("small");
    let missing = known().iter().filter(|known| at_hand_options(&known.manifest).is_none());
    let paths = |known: &'static Known| {
        let name = &known.manifest.name;
        let ours = data::ours(name, &folder).expect("small files can be written");
        if ours.is_none() {
            eprintln!("NOT TESTED: the files of {name} are nowhere; set BENCH_REFERENCE_DIR");
        }
        [data::part(name), ours].into_iter().flatten().map(move |path| (known, path))
    };
    missing.flat_map(paths).collect()
});

fn opened(known: &Known, options: &OpenOptions) -> Box<dyn Dataset> {
    known.open(options, &|_, _| ()).unwrap_or_else(|error| panic!("{}: {error}", known.manifest.name))
}

/// All registered datasets whose files are at hand as they were published, or that are generated, open.
fn as_published() -> impl Iterator<Item = Box<dyn Dataset>> {
    let options = |known: &'static Known| Some((known, at_hand_options(&known.manifest)?));
    known().iter().filter_map(options).map(|(known, options)| opened(known, &options))
}

/// All registered datasets, open: as published, else what is there in their place.
pub(crate) fn at_hand() -> Vec<Box<dyn Dataset>> {
    let in_place = IN_PLACE.iter().map(|(known, path)| {
        let options = OpenOptions { path: Some(path.clone()), cache_dir: scratch(), ..OpenOptions::default() };
        opened(known, &OpenOptions { allow_modified: true, ..options })
    });
    as_published().chain(in_place).collect()
}

/// Turn ids of a bank by their session; entries that are no session count as a turn of themselves.
fn turns(bank: &Bank) -> BTreeMap<&str, &str> {
    let mut turns = BTreeMap::new();
    for entry in &bank.content.entries {
        match entry {
            StreamEntry::Session(session) => {
                for turn in &session.turns {
                    assert!(turns.insert(turn.id.as_str(), session.id.as_str()).is_none(), "turn {} twice", turn.id);
                }
            }
            StreamEntry::Memory(_) | StreamEntry::Update { .. } => drop(turns.insert(entry.id(), entry.id())),
        }
    }
    turns
}

/// Number of entries, the parts of a session being one.
fn first_parts(bank: &Bank) -> usize {
    let is_later = |entry: &&StreamEntry| matches!(entry, StreamEntry::Session(session) if session.part > 0);
    bank.content.entries.iter().filter(|entry| !is_later(entry)).count()
}

/// Number of withdrawals, which have the id of what they withdraw.
fn withdrawals(bank: &Bank) -> usize {
    let is_one = |entry: &&StreamEntry| matches!(entry, StreamEntry::Update { memory: None, .. });
    bank.content.entries.iter().filter(is_one).count()
}

fn check_bank(bank: &Bank, question_ids: &mut HashSet<String>) {
    let id = &bank.content.bank_id;
    let entries: HashSet<&str> = bank.content.entries.iter().map(StreamEntry::id).collect();
    assert_eq!(entries.len() + withdrawals(bank), first_parts(bank), "{id}: entries with unique ids");
    for entry in &bank.content.entries {
        let times: Vec<&String> = match entry {
            StreamEntry::Session(session) => {
                session.turns.iter().map(|turn| &turn.time).chain([&session.time]).flatten().collect()
            }
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                memory.time.iter().collect()
            }
            StreamEntry::Update { memory: None, .. } => Vec::new(),
        };
        assert!(times.iter().all(|time| is_time(time)), "{id}: {times:?}");
    }
    let turns = turns(bank);
    assert_eq!(bank.questions.len(), bank.gold.len(), "{id}: one gold a question");
    for ((question, gold), index) in bank.questions.iter().zip(&bank.gold).zip(0_u32..) {
        let question_id = &question.question_id;
        assert!(question_ids.insert(question_id.clone()), "{question_id} is there twice");
        assert_eq!((&gold.question_id, question.index), (question_id, index));
        let times = [&question.time, &question.filter.from, &question.filter.until];
        assert!(times.into_iter().flatten().all(|time| is_time(time)), "{question_id}: {times:?}");
        assert!(question.k != Some(0), "{question_id} asks for no hits");
        let held = bank.content.entries.len();
        assert!(question.ask_after as usize <= held && (question.ask_after > 0 || held == 0), "{question_id}");
        let is_unsearched = matches!(&gold.gold, Gold::Assertions(assertions) if assertions.beside.unsearched);
        assert!(is_unsearched || !question.text.trim().is_empty(), "{question_id}");
        assert!(!gold.gold.text().trim().is_empty(), "{question_id}");
        for turn in &gold.evidence_turns {
            let session = turns.get(turn.as_str()).unwrap_or_else(|| panic!("{question_id}: no turn {turn}"));
            assert!(gold.evidence_sessions.iter().any(|known| known == session), "{question_id}: {session} is missing");
        }
        assert!(gold.evidence_sessions.iter().all(|session| entries.contains(session.as_str())), "{question_id}");
    }
}

/// Checks all banks; sessions, turns and questions by category.
fn check(dataset: &dyn Dataset) -> (u64, u64, BTreeMap<String, u64>) {
    let (mut bank_ids, mut question_ids, mut facets) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut sessions, mut turns, mut categories) = (0, 0, BTreeMap::<String, u64>::new());
    for number in 0..dataset.bank_count() {
        let bank = dataset.bank(number).expect("a bank");
        let mut outline = dataset.outline(number).expect("an outline");
        assert!(bank_ids.insert(outline.bank_id.clone()));
        check_bank(&bank, &mut question_ids);
        // what the file alone knows
        outline.questions.iter_mut().for_each(|question| question.file_place = None);
        assert_eq!(outline, bank.outline(), "{}", outline.bank_id);
        sessions += first_parts(&bank) as u64;
        turns += u64::from(outline.turns);
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let is_several = matches!(&gold.gold, Gold::AnyOf(texts) if texts.len() > 1);
            let rubric = dataset.profile().rubric(&question.category, Some(gold));
            let is_told = rubric.is_none_or(|name| name == "judge-any-of");
            assert!(
                !is_several || is_told,
                "{}: a judge must know that one of several is enough",
                question.question_id
            );
        }
        facets.extend(bank.gold.into_iter().flat_map(|gold| gold.facets.into_keys()));
        for question in bank.questions {
            *categories.entry(question.category).or_default() += 1;
        }
    }
    assert!(categories.keys().all(|category| dataset.profile().categories.contains_key(category)), "{categories:?}");
    let strata = &dataset.profile().presets.strata;
    assert!(strata.iter().all(|facet| facets.contains(facet)), "{strata:?} of {facets:?}");
    (sessions, turns, categories)
}

/// Files of ours in the schema of datasets that may not be in the repository: name, file below `testdata`, banks.
const OURS: &[(&str, &str, usize)] =
    &[("longmemeval@s", "longmemeval/whole.json", 9), ("longmemeval@oracle", "longmemeval/evidence.json", 4)];

#[test]
fn the_example_has_the_80_lines_that_contributing_promises() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let lines = include_str!("example.rs").lines().filter(is_code).count();
    assert!(lines <= 80, "{lines} lines");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What is copied from the worked example runs as it is: no list anywhere excuses a dataset of its name.
#[test]
fn nobody_but_the_registry_knows_the_example() {
    // itself, who opens it, and what it is built for
    const MAY: [&str; 4] =
        ["name = \"example\"", "open(\"example\"", "\"--dataset\", \"example\"", "feature = \"example\""];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["coordinator", "worker", "proto", "datasets", "crates"] {
        sources(&root.join(folder), &mut files);
    }
    let mut named = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let knows = |line: &&str| line.contains("\"example\"") && !MAY.iter().any(|may| line.contains(may));
        named.extend(text.lines().filter(knows).map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert_eq!(named, Vec::<String>::new());
    let registered = include_str!("lib.rs").matches("mod example;").count();
    assert_eq!((registered, include_str!("registry.rs").matches("example::MANIFEST").count()), (1, 1));
    let gated = ["files.rs", "lines.rs", "loaded.rs", "notes.rs", "opening.rs"]
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name))
        .map(|path| fs::read_to_string(path).expect("a source").contains("feature = "));
    assert_eq!(gated, [false; 5], "what the example is read with is in every build");
}

#[test]
fn loaders_keep_the_rules_on_files_of_ours() {
    for (name, path, banks) in OURS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path);
        let options = OpenOptions { path: Some(path), ..OpenOptions::default() };
        let refused = crate::open(name, &options, &|_, _| ()).err().expect("is not the published file").to_string();
        assert!(refused.contains("--allow-modified-dataset"), "{refused}");
        let options = OpenOptions { allow_modified: true, ..options };
        let dataset = crate::open(name, &options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
        assert!(dataset.is_modified() && dataset.bank_count() == *banks, "{name}");
        assert!(dataset.bank(*banks).is_err() && dataset.outline(*banks).is_err(), "{name}");
        let known: HashSet<&String> = dataset.manifest().categories.iter().map(|(category, _)| category).collect();
        let (_, _, categories) = check(dataset.as_ref());
        assert!(categories.keys().all(|category| known.contains(category)), "{name}: {categories:?}");
    }
}

#[test]
fn loaders_keep_the_rules_and_the_counts_of_their_manifests() {
    let mut open = 0;
    for dataset in as_published() {
        open += 1;
        let manifest = dataset.manifest();
        let (sessions, turns, categories) = check(dataset.as_ref());
        let expected = manifest.categories.iter().cloned().collect::<BTreeMap<_, _>>();
        assert!(expected.is_empty() || categories == expected, "{}: {categories:?}", manifest.name);
        assert!(manifest.sessions.is_none_or(|counted| counted == sessions), "{}: {sessions} sessions", manifest.name);
        assert!(manifest.turns.is_none_or(|counted| counted == turns), "{}: {turns} turns", manifest.name);
        let banks = dataset.bank_count() as u64;
        assert!(manifest.banks == 0 || manifest.banks == banks, "{}: {banks} banks", manifest.name);
        assert!(!dataset.is_modified() && dataset.sha256().len() == 64, "{}", manifest.name);
    }
    assert!(open >= 2, "those of this project are always at hand");
}

/// A dataset whose published files are not at hand has small ones of ours: no test over all datasets leaves one out.
#[test]
fn every_dataset_is_at_hand() {
    let open = at_hand();
    let missing = known().iter().map(|known| known.manifest.name.as_str()).filter(|name| {
        // LoCoMo's schema is what `locomo-sim` makes
        *name != "locomo" && !open.iter().any(|dataset| dataset.manifest().name == *name)
    });
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
    open.iter().for_each(|dataset| drop(check(dataset.as_ref())));
}

/// What a manifest says of its files is true of them as they lie unpacked, whichever way they came.
#[test]
fn published_files_have_the_sizes_of_their_manifests() {
    let mut sized = 0;
    for Known { manifest, .. } in known().iter().filter(|known| !known.manifest.is_generated()) {
        let Some(options) = at_hand_options(manifest) else { continue };
        for file in verify(&manifest.name, &options).unwrap_or_else(|error| panic!("{error}")) {
            assert!(file.ok, "{file:?}");
            assert!(file.expected_bytes == 0 || file.bytes == file.expected_bytes, "{file:?}");
            sized += usize::from(file.expected_bytes > 0);
        }
    }
    assert!(sized >= 2, "{sized}: the example's are always at hand");
}

/// What a person sets, read as the program reads it.
fn set(sets: Vec<String>) -> Result<Settings, bench_settings::SettingsError> {
    let extra = setting_names().into_iter().map(|name| ExtraKey { name, default: None }).collect();
    Settings::load(&Sources { sets, extra, ..Sources::default() })
}

/// Users set what a generator reads: `--set horizon.turns=300` reaches it, whatever the registry holds.
#[test]
fn every_setting_of_a_dataset_can_be_set() {
    let mut generators = 0;
    for known in known().iter().filter(|known| known.manifest.is_generated()) {
        let (name, section) = (&known.manifest.name, &known.manifest.section);
        let open = |settings| {
            let options = OpenOptions { settings, ..OpenOptions::default() };
            known.open(&options, &|_, _| ()).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let effective = open(BTreeMap::new()).settings();
        let settings = known.manifest.settings.iter();
        let stated: BTreeMap<_, _> = settings.map(|known| (known.name.clone(), known.default.clone())).collect();
        assert_eq!(effective, stated, "{name}: its manifest tells other settings than its loader has");
        assert_eq!(effective.is_empty(), section.is_empty(), "{name}: a section is for settings");
        generators += usize::from(!effective.is_empty());
        let sets = effective.iter().map(|(key, value)| format!("{section}.{key}={value}")).collect();
        let given = set(sets).unwrap_or_else(|error| panic!("{name}: {error}"));
        if !section.is_empty() {
            assert_eq!(open(given.section(section)).settings(), effective, "{name}");
        }
    }
    assert!(generators >= 4, "{generators} datasets have settings");
}

/// The settings that a dataset says it has are settings.
#[test]
fn settings_that_are_named_in_errors_can_be_set() {
    let options = OpenOptions { settings: [("none".to_owned(), 1.into())].into(), ..OpenOptions::default() };
    for known in known().iter().filter(|known| !known.manifest.section.is_empty()) {
        let (manifest, opened) = (&known.manifest, known.open(&options, &|_, _| ()));
        let error = opened.err().expect("no such setting").to_string();
        let words = error.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        let section = format!("{}.", manifest.section);
        let named: Vec<&str> = words.filter(|word| word.starts_with(&section) && !word.ends_with(".none")).collect();
        let stated: Vec<String> =
            manifest.settings.iter().map(|setting| format!("{section}{}", setting.name)).collect();
        assert_eq!(named, stated, "{}: {error}", manifest.name);
        for name in named {
            let can_be = |value: &str| set(vec![format!("{name}={value}")]).is_ok();
            assert!(can_be("true") || can_be("1"), "{name} cannot be set");
        }
    }
}

/// Whatever stands in a manifest about a setting is true of its loader, also where that opens no file here.
#[test]
fn settings_take_what_their_manifests_say() {
    let mut tried = 0;
    for known in known() {
        let Manifest { name, section, settings, .. } = &known.manifest;
        assert_eq!(settings.is_empty(), section.is_empty(), "{name}");
        for setting in settings {
            let settings = BTreeMap::from([(setting.name.clone(), serde_json::json!([]))]);
            let opened = known.open(&OpenOptions { settings, ..OpenOptions::default() }, &|_, _| ());
            let error = opened.err().expect("a list is no value").to_string();
            let expected = format!("{section}.{} is []; give {}", setting.name, setting.takes);
            assert!(error.starts_with(&expected), "{name}: {error}");
            assert!(!setting.words.is_empty() && !setting.words.contains('\n'), "{name}: {expected}");
            tried += 1;
        }
    }
    assert!(tried >= 15, "{tried}");
}

/// Keys of a TOML table that are not among those of what was made of it: slips of the pen that nobody would notice.
fn unread(given: &toml::Table, read: &toml::Table, path: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    for (key, value) in given {
        let path = format!("{path}{key}");
        match (value, read.get(key)) {
            (toml::Value::Table(inner), Some(toml::Value::Table(known))) => {
                unknown.extend(unread(inner, known, &format!("{path}.")));
            }
            (_, Some(_)) => {}
            (_, None) => unknown.push(path),
        }
    }
    unknown
}

#[test]
fn profiles_cover_their_categories_and_name_what_is_there() {
    for Known { manifest, profile, .. } in known() {
        let name = manifest.name.as_str();
        let of_manifest: BTreeSet<&str> = manifest.categories.iter().map(|(category, _)| category.as_str()).collect();
        let known: BTreeSet<&str> = profile.categories.keys().map(String::as_str).collect();
        // a variant may lack some, and have no counts at all
        assert!(of_manifest.is_subset(&known), "{name}");
        assert!(name.contains('@') || known == of_manifest, "{name}");
        for part in profile.totals.iter().chain([&profile.headline]) {
            assert!(part.without.iter().all(|category| known.contains(category.as_str())), "{name}: {part:?}");
            assert!(part.without.len() < known.len(), "{name}: nothing is left of {part:?}");
        }
        assert!(!profile.totals.contains(&profile.headline), "{name}: the headline is no further total");
        let mut figures: Vec<&str> = profile.figures.iter().map(|figure| figure.name.as_str()).collect();
        figures.sort_unstable();
        assert!(figures.windows(2).all(|pair| pair[0] != pair[1]), "{name}: two figures of one name");
        assert!(profile.figures.iter().all(|figure| figure.facet.is_some() || figure.value.is_none()), "{name}");
        let sizes = &profile.presets;
        assert!(sizes.quick > 0 && sizes.fair_per_bank > 0, "{name}");
        assert!(sizes.fair.is_none_or(|fair| fair >= sizes.quick), "{name}: quick is a part of fair");
        assert!(profile.rubrics.keys().all(|rubric| rubric.starts_with("judge-")), "{name}");
        let judged = profile.categories.iter().filter(|(_, rules)| rules.rubric.is_some());
        rubric::check(profile, judged.map(|(category, _)| category.as_str()), true).expect(name);
        for rubric in profile.rubrics.keys() {
            assert!(rubric::find(&Profile::implied(), rubric).is_err(), "{name}: {rubric} is taken");
        }
        for scorer in &manifest.scorers {
            let scorer = scorers::registry::find(scorer).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(check_answers(scorer, profile), Vec::<String>::new(), "{name}");
        }
        let has_scorer = |check: &GraderCheck| manifest.scorers.contains(&check.scorer);
        assert!(profile.checks.iter().all(has_scorer), "{name}: a check of no scorer");
    }
    for entry in DATASETS {
        let given: toml::Table = entry.profile.parse().expect("TOML");
        let profile: Profile = toml::from_str(entry.profile).expect("a profile");
        let read = toml::Table::try_from(with_defaults(&profile)).expect("a table");
        assert_eq!(unread(&given, &read, ""), Vec::<String>::new(), "{}\nkeys that mean nothing", entry.profile);
    }
}

/// A profile as JSON in which nothing is left out for being what it is by default.
fn with_defaults(profile: &Profile) -> serde_json::Value {
    let mut all = serde_json::to_value(profile).expect("serialises");
    let fields = all.as_object_mut().expect("an object");
    fields.entry("headline").or_insert_with(|| serde_json::json!({ "without": [] }));
    let sizes = serde_json::to_value(&profile.presets).expect("serialises");
    fields.entry("presets").or_insert(sizes);
    for key in ["totals", "checks", "figures"] {
        fields.entry(key).or_insert_with(|| serde_json::json!([]));
    }
    fields.entry("rubrics").or_insert_with(|| serde_json::json!({}));
    all
}
