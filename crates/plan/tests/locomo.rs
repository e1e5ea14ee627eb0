//! Samples of the published LoCoMo file, read with a reader of the test's own. The same subjects are tested on outlines
//! of LoCoMo's shape beside the code.

use std::{collections::BTreeMap, path::PathBuf};

use bench_plan::{Preset, Sample, SampleRequest, Sampler, sample};
use bench_proto::dataset::{BankOutline, QuestionOutline};
use serde_json::Value;

/// The file's outlines; `None`, loudly, on machines without reference data.
fn locomo() -> Option<Vec<BankOutline>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let dir = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !dir.is_dir() {
        eprintln!("NOT TESTED: no reference data at {} (set BENCH_REFERENCE_DIR)", dir.display());
        return None;
    }
    let path = dir.join("data/locomo/locomo10.json");
    let text = std::fs::read_to_string(&path).expect("the reference folder holds LoCoMo");
    let conversations: Vec<Value> = serde_json::from_str(&text).expect("LoCoMo is a JSON list");
    Some(conversations.iter().map(outline).collect())
}

fn outline(conversation: &Value) -> BankOutline {
    let id = conversation["sample_id"].as_str().expect("sample_id is a string");
    let sessions: Vec<&Vec<Value>> =
        conversation["conversation"].as_object().expect("an object").values().filter_map(Value::as_array).collect();
    let entries = sessions.len() as u32;
    let question = |(index, qa): (usize, &Value)| QuestionOutline {
        question_id: format!("{id}:{index}"),
        category: category(qa["category"].as_u64()).to_owned(),
        ask_after: entries,
        ..QuestionOutline::default()
    };
    BankOutline {
        bank_id: id.to_owned(),
        entries,
        turns: sessions.iter().map(|session| session.len() as u32).sum(),
        questions: conversation["qa"].as_array().expect("qa is a list").iter().enumerate().map(question).collect(),
        ..BankOutline::default()
    }
}

fn category(number: Option<u64>) -> &'static str {
    match number {
        Some(1) => "multi-hop",
        Some(2) => "temporal",
        Some(3) => "open-domain",
        Some(4) => "single-hop",
        Some(5) => "adversarial",
        other => panic!("unknown category {other:?}"),
    }
}

fn take(outlines: &[BankOutline], preset: Preset, sampler: Sampler) -> Sample {
    sample(outlines, SampleRequest { preset: Some(preset), sampler, ..SampleRequest::default() })
        .expect("a valid request")
}

fn counts(sample: &Sample) -> BTreeMap<&str, u64> {
    sample.spec.by_category.iter().map(|(name, n)| (name.as_str(), *n)).collect()
}

#[test]
fn presets_have_the_documented_sizes() {
    let Some(outlines) = locomo() else { return };
    let fair = BTreeMap::from([
        ("adversarial", 41),
        ("multi-hop", 41),
        ("open-domain", 36),
        ("single-hop", 41),
        ("temporal", 41),
    ]);
    assert_eq!(counts(&take(&outlines, Preset::Fair, Sampler::Hash)), fair);
    assert_eq!(counts(&take(&outlines, Preset::Fair, Sampler::Astrocyte)), fair);
    let shares = BTreeMap::from([
        ("adversarial", 46),
        ("multi-hop", 28),
        ("open-domain", 9),
        ("single-hop", 85),
        ("temporal", 32),
    ]);
    let fair_2 = take(&outlines, Preset::Fair2, Sampler::Hash);
    assert_eq!((counts(&fair_2), fair_2.spec.preset.as_str(), fair_2.spec.stratified), (shares, "fair-2", true));
    let quick = BTreeMap::from([
        ("adversarial", 10),
        ("multi-hop", 10),
        ("open-domain", 9),
        ("single-hop", 11),
        ("temporal", 10),
    ]);
    assert_eq!(counts(&take(&outlines, Preset::Quick, Sampler::Hash)), quick);
    let full = take(&outlines, Preset::Full, Sampler::Hash);
    let population = &full.population;
    assert_eq!((population.questions, population.banks, population.entries, population.turns), (1986, 10, 272, 5882));
    assert!(full.spec.census);
}

/// Signatures computed by an independent program from the documented rule. A change means that people's samples change:
/// raise `SAMPLER_VERSION`.
#[test]
fn signatures_stay_what_they_are() {
    let Some(outlines) = locomo() else { return };
    let signature = |preset, sampler| take(&outlines, preset, sampler).spec.signature;
    let expected = [
        "7d9f416d80db886c2761f9a0d2286351b92c366365d45cc61ae438a5ec87b184",
        "75e335f140ef5cbda4b9b581abff068ddd8b6f2d577f3f11522c5a2d56e8a7ff",
        "f87ae014d9299594d61a6d6d40b76af2d5bbc7407f6181aa83fa14ca98e5c6ff",
        "79fee7de2a9ee2bbff7266b0e552a74a7fcfaff9e420fbf852045ba7a4154426",
    ];
    assert_eq!(signature(Preset::Quick, Sampler::Hash), expected[0]);
    assert_eq!(signature(Preset::Fair, Sampler::Hash), expected[1]);
    assert_eq!(signature(Preset::Full, Sampler::Hash), expected[2]);
    assert_eq!(signature(Preset::Fair, Sampler::Astrocyte), expected[3]);
    let shares = "30e58bccee9203ad1e275780299975ca37a0ffc70f3d02bf37e87180bc277081";
    assert_eq!(signature(Preset::Fair2, Sampler::Hash), shares);
}

/// On published verdicts: how far a sample's weighted score is off on average (bias), and in all (root of the mean square).
fn off(outlines: &[BankOutline], preset: Preset, verdicts: &BTreeMap<String, f64>) -> (f64, f64) {
    let chosen = |seed: Option<u32>| {
        let request = SampleRequest {
            preset: Some(preset),
            seed: seed.map(|seed| seed.to_string()),
            exclude_categories: vec!["adversarial".to_owned()],
            ..SampleRequest::default()
        };
        sample(outlines, request).expect("a valid request")
    };
    let truth = verdicts.values().sum::<f64>() / verdicts.len() as f64;
    let errors: Vec<f64> = (0..400)
        .map(|seed| {
            let taken = chosen(Some(seed));
            let mut of: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
            for bank in &taken.banks {
                for index in &bank.questions {
                    let question = &outlines[bank.file_index as usize].questions[*index as usize];
                    let (sum, n) = of.entry(&question.category).or_default();
                    *sum += verdicts[&question.question_id];
                    *n += 1.0;
                }
            }
            let weight = |category: &str| taken.population.by_category[category] as f64 / verdicts.len() as f64;
            of.iter().map(|(category, (sum, n))| weight(category) * sum / n).sum::<f64>() - truth
        })
        .collect();
    let mean = |of: fn(f64) -> f64| errors.iter().copied().map(of).sum::<f64>() / errors.len() as f64;
    (mean(|e| e), mean(|e| e * e).sqrt())
}

#[test]
fn shares_are_nearer_the_full_score_than_equal_quotas_on_published_verdicts() {
    let Some(outlines) = locomo() else { return };
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let dir = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(files) = std::fs::read_dir(dir.join("data/reference-results/grades")) else {
        eprintln!("NOT TESTED: no published grades");
        return;
    };
    let mut sets = 0;
    for path in files.filter_map(|file| file.ok().map(|file| file.path())) {
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let verdict = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let grades: Vec<f64> =
                line["grades"].as_array().expect("grades").iter().filter_map(Value::as_f64).collect();
            let id = format!("{}:{}", line["sample_id"].as_str().expect("an id"), line["qa_index"]);
            (id, grades.iter().sum::<f64>() / grades.len() as f64)
        };
        let verdicts: BTreeMap<String, f64> = text.lines().map(verdict).collect();
        let (fair, shares) = (off(&outlines, Preset::Fair, &verdicts), off(&outlines, Preset::Fair2, &verdicts));
        eprintln!("{}: fair {fair:?}, fair-2 {shares:?}", path.display());
        // the mean of 400 samples is known to a seventh of a point
        assert!(shares.0.abs() < 0.006, "{}: biased by {}", path.display(), shares.0);
        assert!(shares.1 < fair.1, "{}: {shares:?} against {fair:?}", path.display());
        sets += 1;
    }
    assert!(sets >= 3, "there are published grades");
}
