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
}
