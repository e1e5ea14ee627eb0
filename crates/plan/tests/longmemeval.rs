//! Samples of LongMemEval's 500 questions as two other harnesses take them, by their recorded choices.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::PathBuf,
};

use bench_plan::{Preset, SampleRequest, Sampler, sample};
use bench_proto::{
    dataset::{BankOutline, QuestionOutline},
    profile::PresetSizes,
};
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

/// The authors' rule.
fn is_abstention(id: &str) -> bool {
    id.contains("_abs")
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
            facets: BTreeMap::from([(
                "abstention".to_owned(),
                is_abstention(&text(question, "question_id")).to_string(),
            )]),
            ..QuestionOutline::default()
        }],
        ..BankOutline::default()
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

/// Holds `go-lcg` to a group of recorded samples, whose sizes are in the field `size`.
fn is_chosen_by_go_lcg(group: &str, size: &str) {
    let Some((outlines, vectors)) = longmemeval() else { return };
    let vectors = vectors[group]["vectors"].as_array().expect("a list");
    assert!(!vectors.is_empty());
    for vector in vectors {
        let (total, seed) = (vector[size].as_u64().expect("a size"), vector["seed"].as_u64());
        let recorded: BTreeSet<&str> =
            vector["ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
        let chosen = chosen(&outlines, total, Sampler::GoLcg, seed);
        assert_eq!(chosen.iter().map(String::as_str).collect::<BTreeSet<_>>(), recorded, "{total} with seed {seed:?}");
    }
}

#[test]
fn jeffs_go_lme_samples_are_chosen_by_go_lcg() {
    is_chosen_by_go_lcg("jeffs_go_lme_samples", "n");
}

#[test]
fn jeffs_lme_sample_ids_are_chosen_by_go_lcg() {
    is_chosen_by_go_lcg("jeffs_lme_sample_ids", "sample_size");
}

/// The shuffle alone: of one category its first ones are the sample. Their order among themselves shows in no plan.
#[test]
fn jeffs_lcg_select_is_the_sample_of_one_category() {
    let Some(vectors) = reference("vectors/astrocyte-and-jeffs-brain.json") else { return };
    let vectors = vectors["sections"]["jeffs_lcg_select"]["vectors"].as_array().expect("a list");
    assert!(!vectors.is_empty());
    for vector in vectors {
        let number = |field: &str| vector[field].as_u64().expect("a number");
        let outline = |index: u64| BankOutline {
            bank_id: index.to_string(),
            entries: 1,
            turns: 1,
            questions: vec![QuestionOutline {
                question_id: index.to_string(),
                category: "all".to_owned(),
                ask_after: 1,
                ..QuestionOutline::default()
            }],
            ..BankOutline::default()
        };
        let outlines: Vec<BankOutline> = (0..number("len")).map(outline).collect();
        let chosen = chosen(&outlines, number("count"), Sampler::GoLcg, Some(number("seed")));
        let recorded = vector["indices"].as_array().expect("indices").iter().map(Value::to_string);
        assert_eq!(chosen.into_iter().collect::<BTreeSet<_>>(), recorded.collect::<BTreeSet<_>>(), "{vector}");
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

#[test]
fn presets_take_types_and_their_abstentions_by_their_shares() {
    let Some((outlines, _)) = longmemeval() else { return };
    let of = |preset| {
        let sizes = PresetSizes { fair: Some(200), strata: vec!["abstention".to_owned()], ..PresetSizes::default() };
        let sample = sample(&outlines, SampleRequest { preset: Some(preset), sizes, ..SampleRequest::default() });
        sample.expect("a sample").banks.into_iter().map(|bank| bank.bank_id).collect::<BTreeSet<String>>()
    };
    let (quick, fair) = (of(Preset::Quick), of(Preset::Fair));
    assert_eq!((quick.len(), fair.len()), (50, 200));
    assert!(quick.is_subset(&fair));
    let abstentions = |ids: &BTreeSet<String>| ids.iter().filter(|id| is_abstention(id)).count();
    // 30 of the 500 in four of the six types: 12 and 3 by their share, before each stratum is rounded
    assert!((11..=12).contains(&abstentions(&fair)) && (3..=4).contains(&abstentions(&quick)), "{fair:?}");
    let kinds = |ids: &BTreeSet<String>| {
        let questions = outlines.iter().filter(|outline| ids.contains(&outline.bank_id));
        questions.map(|outline| outline.questions[0].category.clone()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((kinds(&quick), kinds(&fair)), (6, 6));
}
