//! What every registered dataset must hold: one suite over the registry, so that a new dataset is checked without being asked.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
};

use bench_grading::{
    prompts,
    scorers::{self, self_check::check_answers},
};
use bench_proto::{
    dataset::{Bank, StreamEntry},
    profile::{GraderCheck, Profile},
};

use crate::{DATASETS, Dataset, DatasetEntry, OpenOptions};

/// Files of a dataset for tests: below `testdata` when this project may have them, else below `$BENCH_REFERENCE_DIR/data`.
fn folder_of_files() -> [PathBuf; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| here.join("../../shared"), PathBuf::from);
    [here.join("testdata"), reference.join("data")]
}

/// All registered datasets whose files are at hand, open.
fn at_hand() -> Vec<(&'static DatasetEntry, Box<dyn Dataset>)> {
    let mut open = Vec::new();
    for entry in DATASETS {
        let manifest = entry.manifest;
        let has_all =
            |folder: &PathBuf| manifest.files.iter().all(|f| folder.join(manifest.name).join(f.path).is_file());
        let Some(datasets_dir) = folder_of_files().into_iter().find(has_all) else {
            eprintln!("NOT TESTED: the files of {} are nowhere; set BENCH_REFERENCE_DIR", manifest.name);
            continue;
        };
        let options = OpenOptions { datasets_dir: Some(datasets_dir), ..Default::default() };
        open.push((entry, (entry.open)(&options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"))));
    }
    open
}

/// A text of the form `YYYY-MM-DDTHH:MM:SS`.
fn is_time(text: &str) -> bool {
    text.len() == 19 && text.parse::<jiff::civil::DateTime>().is_ok()
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

fn check_bank(bank: &Bank, question_ids: &mut HashSet<String>) {
    let id = &bank.content.bank_id;
    let entries: HashSet<&str> = bank.content.entries.iter().map(StreamEntry::id).collect();
    assert!(!entries.is_empty() && entries.len() == bank.content.entries.len(), "{id}: entries with unique ids");
    for entry in &bank.content.entries {
        let time = match entry {
            StreamEntry::Session(session) => &session.time,
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => &memory.time,
            StreamEntry::Update { memory: None, .. } => &None,
        };
        assert!(time.as_deref().is_none_or(is_time), "{id}: {time:?}");
    }
    let turns = turns(bank);
    assert_eq!(bank.questions.len(), bank.gold.len(), "{id}: one gold a question");
    for ((question, gold), index) in bank.questions.iter().zip(&bank.gold).zip(0_u32..) {
        let question_id = &question.question_id;
        assert!(question_ids.insert(question_id.clone()), "{question_id} is there twice");
        assert_eq!((&gold.question_id, question.index), (question_id, index));
        assert!(question.ask_after as usize <= entries.len() && question.ask_after > 0, "{question_id}");
        assert!(!question.text.trim().is_empty() && !gold.gold.text().trim().is_empty(), "{question_id}");
        for turn in &gold.evidence_turns {
            let session = turns.get(turn.as_str()).unwrap_or_else(|| panic!("{question_id}: no turn {turn}"));
            assert!(gold.evidence_sessions.iter().any(|known| known == session), "{question_id}: {session} is missing");
        }
        assert!(gold.evidence_sessions.iter().all(|session| entries.contains(session.as_str())), "{question_id}");
    }
}

#[test]
fn loaders_keep_the_rules_and_the_counts_of_their_manifests() {
    let open = at_hand();
    assert!(open.len() >= 2, "those of this project are always at hand");
    for (entry, dataset) in open {
        let manifest = entry.manifest;
        let (mut bank_ids, mut question_ids) = (HashSet::new(), HashSet::new());
        let (mut sessions, mut turns, mut categories) = (0, 0, BTreeMap::<String, u64>::new());
        for number in 0..dataset.bank_count() {
            let (bank, outline) = (dataset.bank(number).expect("a bank"), dataset.outline(number).expect("an outline"));
            assert!(bank_ids.insert(outline.bank_id.clone()) && outline.bank_id == bank.content.bank_id);
            check_bank(&bank, &mut question_ids);
            assert_eq!(outline.entries as usize, bank.content.entries.len(), "{}", outline.bank_id);
            assert_eq!(outline.turns as usize, bank.content.entries.iter().map(StreamEntry::turns).sum::<usize>());
            let told = outline.questions.iter().map(|q| (&q.question_id, &q.category, q.ask_after));
            let asked = bank.questions.iter().map(|q| (&q.question_id, &q.category, q.ask_after));
            assert!(told.eq(asked), "{}: outline and bank differ", outline.bank_id);
            sessions += u64::from(outline.entries);
            turns += u64::from(outline.turns);
            for question in bank.questions {
                *categories.entry(question.category).or_default() += 1;
            }
        }
        let expected = manifest.categories.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!((categories, sessions, turns), (expected, manifest.sessions, manifest.turns), "{}", manifest.name);
        assert_eq!(dataset.bank_count() as u64, manifest.banks, "{}", manifest.name);
        assert!(!dataset.is_modified() && dataset.sha256().len() == 64, "{}", manifest.name);
        assert_eq!(dataset.manifest().name, manifest.name);
    }
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
    for entry in DATASETS {
        let name = entry.manifest.name;
        let profile = entry.profile().unwrap_or_else(|error| panic!("{name}: {error}"));
        let of_manifest: BTreeSet<&str> = entry.manifest.categories.iter().map(|(category, _)| *category).collect();
        let known: BTreeSet<&str> = profile.categories.keys().map(String::as_str).collect();
        assert_eq!(known, of_manifest, "{name}");
        for part in profile.totals.iter().chain([&profile.headline]) {
            assert!(part.without.iter().all(|category| known.contains(category.as_str())), "{name}: {part:?}");
            assert!(part.without.len() < known.len(), "{name}: nothing is left of {part:?}");
        }
        assert!(!profile.totals.contains(&profile.headline), "{name}: the headline is no further total");
        let sizes = profile.presets;
        assert!(sizes.quick > 0 && sizes.fair_per_bank > 0, "{name}");
        assert!(profile.rubrics.keys().all(|rubric| rubric.starts_with("judge-")), "{name}");
        let judged = profile.categories.iter().filter(|(_, rules)| rules.rubric.is_some());
        prompts::check(&profile, judged.map(|(category, _)| category.as_str()), true).expect(name);
        for rubric in profile.rubrics.keys() {
            assert!(prompts::judge::find(&Profile::implied(), rubric).is_err(), "{name}: {rubric} is taken");
        }
        for scorer in entry.manifest.scorers.iter().copied() {
            let scorer = scorers::registry::find(scorer).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(check_answers(scorer, &profile.checks), Vec::<String>::new(), "{name}");
        }
        let has_scorer = |check: &GraderCheck| entry.manifest.scorers.contains(&check.scorer.as_str());
        assert!(profile.checks.iter().all(has_scorer), "{name}: a check of no scorer");
        let given: toml::Table = entry.profile.parse().expect("TOML");
        let read = toml::Table::try_from(with_defaults(&profile)).expect("a table");
        assert_eq!(unread(&given, &read, ""), Vec::<String>::new(), "{name}: keys that mean nothing");
    }
}

/// A profile as JSON in which nothing is left out for being what it is by default.
fn with_defaults(profile: &Profile) -> serde_json::Value {
    let mut all = serde_json::to_value(profile).expect("serialises");
    let fields = all.as_object_mut().expect("an object");
    fields.entry("headline").or_insert_with(|| serde_json::json!({ "without": [] }));
    let sizes = serde_json::to_value(profile.presets).expect("serialises");
    fields.entry("presets").or_insert(sizes);
    for key in ["totals", "checks"] {
        fields.entry(key).or_insert_with(|| serde_json::json!([]));
    }
    fields.entry("rubrics").or_insert_with(|| serde_json::json!({}));
    all
}
