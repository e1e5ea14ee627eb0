//! Published outputs of other people's graders: each group of them has a test that names it, or is no grader's, with the reason.
//! A group is a key of a file, or a file that has no groups.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use bench_grading::scorers::registry;
use serde_json::Value;

/// Files with groups, by the key below which they lie.
const WITH_GROUPS: [(&str, &[&str]); 3] = [
    ("astrocyte-and-jeffs-brain.json", &["sections"]),
    ("hebb-amplihack-precisionmembench.json", &[]),
    ("locomo-f1.json", &[]),
];
/// Files that are one group, by its name.
const WHOLE: [(&str, &str); 4] = [
    ("beam-ordering.json", "beam_ordering"),
    ("longmemeval-retrieval.json", "longmemeval_retrieval"),
    ("membench.json", "membench"),
    ("personamem-choice.json", "personamem_choice"),
];
/// Files about something else than grades.
const OTHER_FILES: [(&str, &str); 1] =
    [("wire-exchanges-astrocyte-jeffs-brain.json", "what servers say: crates/systems/tests/systems/recorded.rs")];

const SAMPLE: &str = "which questions another harness asks: crates/plan";
const GATE: &str = "when another harness fails a release: crates/aggregate/src/gate has rules of its own";
const MODEL: &str = "prompts and replies of a model judge: crates/grading/src/judging";
const MONEY: &str = "what another harness takes a call to cost: crates/models/src/prices.rs has prices of its own";
const SERVER: &str = "what a server streams: crates/systems";
const DIALOGUE: &str = "the dialogue and questions of a generator: datasets/src/long_horizon";

/// Groups that no scorer gives.
const NO_SCORER: &[(&str, &str)] = &[
    ("amplihack_extract_json", MODEL),
    ("amplihack_generate_dialogue", DIALOGUE),
    ("amplihack_generate_questions_12cat", DIALOGUE),
    ("amplihack_generate_questions_15cat", DIALOGUE),
    ("amplihack_holdout_overlap", DIALOGUE),
    ("amplihack_multi_vote_median", MODEL),
    ("amplihack_rubric_self_check", DIALOGUE),
    ("amplihack_seed_sensitivity", DIALOGUE),
    ("amplihack_statistics", "intervals of another harness; ours are in docs/STATISTICS.md"),
    ("amplihack_unanswerable_questions", DIALOGUE),
    ("archive", "names of stored results: crates/report/src/archive has names of its own"),
    ("cost_estimate", MONEY),
    ("cost_estimate_head", MONEY),
    ("detect_regressions", GATE),
    ("harness_bug_probes", "what another harness does wrong, observed once: nothing to reproduce"),
    ("hebb_judge_empty_gold", MODEL),
    ("jeffs_budget", MONEY),
    ("jeffs_extract_delta", SERVER),
    (
        "jeffs_go",
        "a whole harness in Go: tests hold its parser, its match and its copies of judge prompts. Nothing here lets a phrase in an \
         answer override a judge (deterministic_override); intervals, percentiles, samples and prices are of this project's own rules",
    ),
    ("jeffs_go_lme_samples", SAMPLE),
    ("jeffs_judge_parse_score", MODEL),
    ("jeffs_sse_frame", SERVER),
    ("locomo_head_slice", SAMPLE),
    ("locomo_llm_judge_prompts", MODEL),
    ("locomo_round_robin_head", SAMPLE),
    ("locomo_stratified_per_conversation", SAMPLE),
    ("longmemeval_facts", "counts of a dataset: datasets/src/longmemeval"),
    ("longmemeval_judge_prompts", MODEL),
    ("longmemeval_stratified_astrocyte", SAMPLE),
    ("percentile_linear", "percentiles of latencies: crates/aggregate"),
    ("regression_gate", GATE),
    ("release_gate", GATE),
    ("session_dates", "times of datasets: datasets/src"),
    ("stable_question_slice", SAMPLE),
    ("terminal_error", "which failures end a run: crates/models/src/classify.rs"),
    ("yes_no_parse", MODEL),
];

/// Names of the tests below some folders, each with its file.
fn tests(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                tests(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if let (true, Some(name)) =
                    (is_test, line.split_once("fn ").and_then(|(_, rest)| rest.split('(').next()))
                {
                    found.insert(name.to_owned(), path.clone());
                    is_test = false;
                }
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            }
        }
    }
}

#[test]
fn each_group_has_a_test_that_names_it_or_is_no_scorers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reference = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| root.join("../shared"), PathBuf::from);
    let mut named = BTreeMap::new();
    ["coordinator", "crates", "datasets", "proto", "worker"]
        .iter()
        .for_each(|room| tests(&root.join(room), &mut named));
    let is_named = |group: &str| named.keys().any(|test| test.contains(group));
    // what scorers say of themselves holds wherever this is tested
    for listed in registry::listed() {
        for group in listed.vectors {
            assert!(is_named(group), "{}: no test names {group}", listed.name);
        }
    }
    let folder = reference.join("vectors");
    if !folder.is_dir() {
        eprintln!("NOT CHECKED against {}: no such folder; set BENCH_REFERENCE_DIR", folder.display());
        return;
    }
    let mut groups: BTreeSet<String> = WHOLE.iter().map(|(_, group)| (*group).to_owned()).collect();
    for entry in fs::read_dir(&folder).expect("the folder can be read") {
        let file = entry.expect("the folder can be read").file_name().to_string_lossy().into_owned();
        if let Some((_, below)) = WITH_GROUPS.iter().find(|(name, _)| *name == file) {
            let all: Value = serde_json::from_slice(&fs::read(folder.join(&file)).expect("reads")).expect("JSON");
            let all = below.iter().fold(&all, |all, key| &all[*key]);
            groups.extend(all.as_object().expect("groups").keys().filter(|key| *key != "meta").cloned());
        } else {
            let is_known = |list: &[(&str, &str)]| list.iter().any(|(name, _)| *name == file);
            assert!(!file.ends_with(".json") || is_known(&WHOLE) || is_known(&OTHER_FILES), "{file} is not known here");
        }
    }
    // the file of LoCoMo's F1 calls its cases vectors
    assert!(groups.remove("vectors") && groups.insert("locomo_f1".to_owned()));
    let unknown: Vec<&str> =
        NO_SCORER.iter().map(|(group, _)| *group).filter(|group| !groups.contains(*group)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "no such groups");
    let missing: Vec<&String> =
        groups.iter().filter(|group| !is_named(group) && !NO_SCORER.iter().any(|(other, _)| other == group)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "no test names these groups");
}
