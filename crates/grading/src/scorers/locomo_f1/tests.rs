//! Tests of the token F1: own examples, published vectors, and an independent plain form as the property.

use std::collections::HashMap;

use bench_proto::dataset::GoldRecord;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::scorers::{case, category, reference};

fn text(gold: &str) -> Gold {
    Gold::Text(gold.to_owned())
}

/// Equal but for the last bit, which serde_json may lose where it reads the expected value.
fn equal(score: f64, expected: &Value) -> bool {
    (score - reference::number(expected)).abs() <= f64::EPSILON / 2.0
}

fn both(prediction: &str, gold: &str, category: &str) -> (f64, f64) {
    let gold = text(gold);
    let score = |scorer| case::score(scorer, prediction, Some(&gold), category).expect("text has a score");
    (score(&OFFICIAL), score(&ASTROCYTE))
}

#[test]
fn rules_per_category() {
    for (prediction, gold, category, expected) in [
        ("running in the park", "He runs", "single-hop", (0.4, 0.4)),
        ("yes yes", "yes", "single-hop", (2.0 / 3.0, 2.0 / 3.0)),
        ("", "x", "single-hop", (0.0, 0.0)),
        ("the", "a", "single-hop", (0.0, 0.0)),
        ("1,000", "1000", "temporal", (1.0, 1.0)),
        ("likely no", "Likely no; she paints", "open-domain", (1.0, 1.0)),
        ("likely no", "Likely no; she paints", "single-hop", (2.0 / 3.0, 2.0 / 3.0)),
        ("red, green", "green, red", "multi-hop", (1.0, 1.0)),
        ("red", "red, green", "multi-hop", (0.5, 0.5)),
        ("red, green,", "red, green,", "multi-hop", (2.0 / 3.0, 1.0)),
        ("x,,y", ",x,y", "multi-hop", (2.0 / 3.0, 1.0)),
        (",", ",", "multi-hop", (0.0, 0.0)),
        ("organize", "organ", "of another dataset", (1.0, 0.0)),
        ("That is Not Mentioned.", "ignored", "adversarial", (1.0, 1.0)),
        ("I do not know", "ignored", "adversarial", (0.0, 1.0)),
        ("", "ignored", "adversarial", (0.0, 0.0)),
    ] {
        let (official, astrocyte) = both(prediction, gold, category);
        assert!((official - expected.0).abs() < 1e-12, "{prediction} / {gold}: {official}");
        assert!((astrocyte - expected.1).abs() < 1e-12, "{prediction} / {gold}: {astrocyte}");
    }
}

#[test]
fn kinds_of_gold() {
    let number = Gold::Number(2022.into());
    let rubric = Gold::Rubric(vec!["x".to_owned()]);
    let any = Gold::AnyOf(vec!["red car".to_owned(), "2022; or so".to_owned()]);
    for (gold, category, prediction, expected) in [
        (Some(&any), "open-domain", "2022", Some(1.0)),
        (Some(&any), "temporal", "a car", Some(2.0 / 3.0)),
        (Some(&number), "temporal", "in 2022", Some(2.0 / 3.0)),
        (None, "adversarial", "no information available", Some(1.0)),
        (Some(&Gold::Abstain), "adversarial", "blue", Some(0.0)),
        (Some(&Gold::Abstain), "another", "not mentioned", Some(1.0)),
        (Some(&Gold::Unanswerable("blue".to_owned())), "another", "blue", Some(0.0)),
        (Some(&Gold::Unanswerable("blue".to_owned())), "another", "not mentioned", Some(1.0)),
        (None, "temporal", "x", None),
        (Some(&rubric), "temporal", "x", None),
    ] {
        assert_eq!(case::score(&OFFICIAL, prediction, gold, category), expected, "{category}");
    }
}

#[test]
fn sums_in_numpys_order() {
    let tenths = |n: u32| (1..=n).map(|i| f64::from(i) * 0.1).collect::<Vec<_>>();
    for n in [0, 1, 7, 8, 9, 15, 16, 127, 128, 129, 136, 300] {
        let plain: f64 = tenths(n).iter().sum();
        assert!((pairwise_sum(&tenths(n)) - plain).abs() < 1e-9 * plain.max(1.0), "{n}");
    }
    // as numpy.mean of nine tenths; plain addition gives another last bit for the sum of ten
    assert_eq!(pairwise_sum(&[0.1; 10]).to_bits(), 1.0_f64.to_bits());
    assert_ne!([0.1; 10].iter().sum::<f64>().to_bits(), 1.0_f64.to_bits());
}

#[test]
fn locomo_f1() {
    let Some(vectors) = reference::json("vectors/locomo-f1.json") else {
        return;
    };
    let cases = reference::list(&vectors["vectors"]);
    assert!(cases.len() > 300);
    for case in cases {
        let gold = match &case["gold"] {
            Value::Number(number) => Some(Gold::Number(number.clone())),
            Value::String(string) => Some(text(string)),
            _ => None,
        };
        let number = case["category"].as_u64().expect("a category number");
        let category = category::of_number(number).expect("LoCoMo has five");
        let prediction = reference::str(&case["prediction"]);
        let score = case::score(&OFFICIAL, prediction, gold.as_ref(), category).expect("a score");
        assert!(equal(score, &case["score"]), "{score}: {case}");
    }
}

#[test]
fn locomo_token_f1() {
    let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else {
        return;
    };
    for case in reference::list(&vectors["sections"]["locomo_token_f1"]["vectors"]) {
        let (prediction, gold) = (reference::str(&case["prediction"]), reference::str(&case["gold"]));
        let (official, astrocyte) = both(prediction, gold, reference::str(&case["category"]));
        let expected = &case["expected"];
        assert!(equal(official, &expected["official_nltk_porter"]), "{official}: {case}");
        assert!(equal(astrocyte, &expected["astrocyte_snowball_porter2"]), "{astrocyte}: {case}");
        for (stem, suffix) in [(porter_nltk::stem as StemFn, "nltk"), (porter2::stem, "snowball")] {
            for (side, of) in [(prediction, "pred"), (gold, "gold")] {
                let expected: Vec<&str> =
                    reference::list(&case[format!("{of}_tokens_{suffix}")]).iter().map(reference::str).collect();
                assert_eq!(stems(side, stem), expected, "{side}");
            }
        }
    }
}

#[test]
fn stem_divergence() {
    let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else {
        return;
    };
    let examples = reference::list(&vectors["sections"]["stem_divergence"]["examples"]);
    assert!(examples.len() > 20);
    for example in examples {
        let word = reference::str(&example["word"]);
        assert_eq!(stems(word, porter_nltk::stem), [reference::str(&example["nltk"])], "{word}");
        assert_eq!(stems(word, porter2::stem), [reference::str(&example["snowball"])], "{word}");
    }
}

#[test]
fn locomo_full_dataset_baselines() {
    let Some((baselines, data)) = reference::locomo_baselines() else { return };
    let mut checked = 0;
    for baseline in &baselines {
        let scorer = match reference::str(&baseline["scorer"]) {
            scorer if scorer.contains("official") => &OFFICIAL,
            scorer if scorer.contains("stemmed-F1") => &ASTROCYTE,
            _ => continue, // the word overlap's own test
        };
        let mut sums: HashMap<&str, (f64, f64)> = HashMap::new();
        for qa in reference::list(&data).iter().flat_map(|conversation| reference::list(&conversation["qa"])) {
            let category = category::of_number(qa["category"].as_u64().expect("a number")).expect("of five");
            let gold = match &qa["answer"] {
                Value::Number(number) => Some(Gold::Number(number.clone())),
                Value::String(string) => Some(text(string)),
                _ => None,
            };
            let prediction = match reference::str(&baseline["predictor"]) {
                "echo the question" => reference::str(&qa["question"]).to_owned(),
                "constant 'no information available'" => "no information available".to_owned(),
                _ => gold.as_ref().filter(|_| category != "adversarial").map(Gold::text).unwrap_or_default(),
            };
            let score = case::score(scorer, &prediction, gold.as_ref(), category);
            let score = score.expect("every question has a score");
            for key in [category, ""] {
                let sum = sums.entry(key).or_default();
                *sum = (sum.0 + score, sum.1 + 1.0);
            }
        }
        let mean = |category: &str| sums[category].0 / sums[category].1;
        let expected = reference::number(&baseline["overall_mean"]);
        assert!((mean("") - expected).abs() < 1e-12, "{baseline}");
        for (category, expected) in baseline["per_category_mean"].as_object().expect("means by category") {
            assert!((mean(category) - reference::number(expected)).abs() < 1e-12, "{baseline} {category}");
        }
        checked += 1;
    }
    assert_eq!(checked, 4);
}

fn stems(text: &str, stem: StemFn) -> Vec<String> {
    let mut stems = Vec::new();
    let mut buffer = StemBuffer::default();
    normalize::for_each_token(text, &mut String::new(), |token| stems.push(stem(token, &mut buffer).to_owned()));
    stems
}

/// The rules again, without numbers, indexes and sharing.
fn plain(rules: &LocomoF1, prediction: &str, gold: &str, category: &str) -> f64 {
    let one = |prediction: &str, gold: &str| {
        let (prediction, mut gold) = (stems(prediction, rules.stem), stems(gold, rules.stem));
        let length = gold.len();
        let mut common = 0;
        for stem in &prediction {
            if let Some(at) = gold.iter().position(|other| other == stem) {
                gold.swap_remove(at);
                common += 1;
            }
        }
        f1(common, prediction.len(), length)
    };
    let parts = |text: &'_ str| -> Vec<String> {
        let parts = text.split(',').map(|part| trim(part).to_owned());
        parts.filter(|part| !rules.drop_empty_parts || !part.is_empty()).collect()
    };
    match category {
        "adversarial" => f64::from(u8::from(
            rules.abstention_phrases.iter().any(|phrase| prediction.to_lowercase().contains(phrase)),
        )),
        "multi-hop" => {
            let predictions = parts(prediction);
            let best = |gold: &String| predictions.iter().map(|part| one(part, gold)).fold(0.0, f64::max);
            let scores: Vec<f64> = parts(gold).iter().map(best).collect();
            if scores.is_empty() { 0.0 } else { (rules.sum)(&scores) / scores.len() as f64 }
        }
        "open-domain" => one(prediction, trim(gold.split(';').next().expect("a first part"))),
        _ => one(prediction, gold),
    }
}

proptest! {
    #[test]
    fn many_equals_one_equals_plain(
        prediction in "(run|runs|running|the|organ|organize|é|not mentioned|[ab]{1,2}|,|;| |-){0,40}",
        golds in prop::collection::vec(
            ("(run|runs|the|organ|organized|é|[ab]{1,2}|,|;| |-){0,16}", 0..6_usize), 0..8),
    ) {
        const CATEGORIES: [&str; 6] = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial", "other"];
        let golds: Vec<(GoldRecord, &str)> = golds
            .iter()
            .map(|(gold, at)| (GoldRecord { gold: text(gold), ..GoldRecord::default() }, CATEGORIES[*at]))
            .collect();
        let cases = golds.iter().map(|(gold, category)| ScoreCase {
            gold: Some(gold),
            rules: category::rules(category),
            ..ScoreCase::default()
        });
        let cases: Vec<ScoreCase<'_>> = cases.collect();
        for scorer in [&OFFICIAL, &ASTROCYTE] {
            let many = scorer.score_many(&prediction, &cases);
            for ((gold, category), score) in golds.iter().zip(many) {
                let one = case::score(scorer, &prediction, Some(&gold.gold), category);
                prop_assert_eq!(score, one);
                let expected = plain(scorer, &prediction, &gold.gold.text(), category);
                prop_assert_eq!(score, Some(expected));
                prop_assert!((0.0..=1.0).contains(&expected));
            }
        }
    }
}
