//! Samples of LongMemEval's 500 questions as two other harnesses take them, by their recorded choices.

use std::{collections::BTreeSet, fs::File, path::PathBuf};

use bench_plan::{SampleRequest, Sampler, sample};
use bench_proto::dataset::{BankOutline, QuestionOutline};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A file of the reference folder; `None`, loudly, on machines without it.
fn reference(path: &str) -> Option<Value> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let dir = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !dir.is_dir() {
        eprintln!("NOT TESTED: no reference data at {} (set BENCH_REFERENCE_DIR)", dir.display());
        return None;
    }
    let file = File::open(dir.join(path)).expect("the reference folder holds it");
    let is_packed = path.ends_with(".gz");
    let value = if is_packed { serde_json::from_reader(GzDecoder::new(file)) } else { serde_json::from_reader(file) };
    Some(value.expect("is JSON"))
}

/// A bank for each question, in the order of the file; and the recorded choices.
fn longmemeval() -> Option<(Vec<BankOutline>, Value)> {
    let questions = reference("data/longmemeval/longmemeval_s_questions_500.json.gz")?;
    let text = |question: &Value, field: &str| question[field].as_str().expect("a text").to_owned();
    let outline = |question: &Value| BankOutline {
        bank_id: text(question, "question_id"),
        entries: 1,
        turns: 1,
        questions: vec![QuestionOutline {
            question_id: text(question, "question_id"),
            category: text(question, "question_type"),
            ask_after: 1,
        }],
    };
    let outlines = questions.as_array().expect("a list").iter().map(outline).collect();
    Some((outlines, reference("vectors/astrocyte-and-jeffs-brain.json")?["sections"].take()))
}

/// The ids that a request chooses, in the order of the file.
fn chosen(outlines: &[BankOutline], total: u64, sampler: Sampler, seed: Option<u64>) -> Vec<String> {
    let seed = seed.map(|seed| seed.to_string());
    let request = SampleRequest { sample_total: Some(total), sampler, seed, ..SampleRequest::default() };
    let sample = sample(outlines, request).expect("a sample");
    assert_eq!(sample.spec.n, total);
    sample.banks.iter().map(|bank| bank.bank_id.clone()).collect()
}

#[test]
fn jeffs_go_lme_samples_are_chosen_by_go_lcg() {
    let Some((outlines, vectors)) = longmemeval() else { return };
    for vector in vectors["jeffs_go_lme_samples"]["vectors"].as_array().expect("a list") {
        let (total, seed) = (vector["n"].as_u64().expect("n"), vector["seed"].as_u64());
        let recorded: BTreeSet<&str> =
            vector["ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
        let chosen = chosen(&outlines, total, Sampler::GoLcg, seed);
        assert_eq!(chosen.iter().map(String::as_str).collect::<BTreeSet<_>>(), recorded, "{total} with seed {seed:?}");
    }
}

#[test]
fn longmemeval_stratified_astrocyte_is_chosen_by_astrocyte_lme() {
    let Some((outlines, vectors)) = longmemeval() else { return };
    let group = |kind: &str| match kind {
        "multi-session" => 1,
        "temporal-reasoning" => 2,
        "knowledge-update" => 3,
        _ => 0,
    };
    for vector in vectors["longmemeval_stratified_astrocyte"]["vectors"].as_array().expect("a list") {
        let total = vector["max_questions"].as_u64().expect("a count");
        let mut ids = chosen(&outlines, total, Sampler::AstrocyteLme, None);
        // the recorded list goes category by category
        let kind = |id: &String| {
            let outline = outlines.iter().find(|outline| outline.bank_id == *id);
            group(&outline.expect("is known").questions[0].category)
        };
        ids.sort_by_key(kind);
        assert_eq!(
            hex::encode(Sha256::digest(ids.join("\n"))),
            vector["sha256_ids"].as_str().expect("a hash"),
            "{total}"
        );
    }
}

#[test]
fn totals_are_exact_and_nested() {
    let Some((outlines, _)) = longmemeval() else { return };
    let of = |total| chosen(&outlines, total, Sampler::Hash, None).into_iter().collect::<BTreeSet<_>>();
    assert!(of(50).is_subset(&of(200)) && of(200).is_subset(&of(499)));
}
