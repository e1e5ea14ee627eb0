use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{dataset::QuestionOutline, ids::Sha256Hash};
use proptest::prelude::*;

use super::*;
use crate::announce;

/// Questions of LoCoMo per conversation: multi-hop, temporal, open-domain, single-hop, adversarial.
const LOCOMO: [(&str, u32, [u32; 5]); 10] = [
    ("conv-26", 19, [32, 37, 13, 70, 47]),
    ("conv-30", 19, [11, 26, 0, 44, 24]),
    ("conv-41", 32, [31, 27, 8, 86, 41]),
    ("conv-42", 29, [37, 40, 11, 111, 61]),
    ("conv-43", 29, [31, 26, 14, 107, 64]),
    ("conv-44", 28, [30, 24, 7, 62, 35]),
    ("conv-47", 31, [20, 34, 13, 83, 40]),
    ("conv-48", 30, [21, 42, 10, 118, 48]),
    ("conv-49", 25, [37, 33, 13, 73, 40]),
    ("conv-50", 30, [32, 32, 7, 87, 46]),
];
const CATEGORIES: [&str; 5] = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial"];

/// Outlines of LoCoMo's shape: category after category in each conversation.
fn locomo_shape() -> Vec<BankOutline> {
    let bank = |(id, entries, counts): (&str, u32, [u32; 5])| {
        let categories = CATEGORIES.iter().zip(counts).flat_map(|(name, count)| (0..count).map(move |_| *name));
        outline(id, entries, categories)
    };
    LOCOMO.into_iter().map(bank).collect()
}

fn outline<'a>(id: &str, entries: u32, categories: impl Iterator<Item = &'a str>) -> BankOutline {
    let question = |(index, category): (usize, &str)| QuestionOutline {
        question_id: format!("{id}:{index}"),
        category: category.to_owned(),
        ask_after: entries,
    };
    BankOutline {
        bank_id: id.to_owned(),
        entries,
        turns: entries * 20,
        questions: categories.enumerate().map(question).collect(),
    }
}

fn preset(preset: Preset) -> SampleRequest {
    SampleRequest { preset: Some(preset), ..SampleRequest::default() }
}

/// Ids in the order of the listing.
fn ids(outlines: &[BankOutline], sample: &Sample) -> Vec<String> {
    sample
        .listing()
        .map(|(at, question)| {
            let bank = &outlines[sample.banks[at].file_index as usize];
            bank.questions[question as usize].question_id.clone()
        })
        .collect()
}

fn by_category(sample: &Sample) -> Vec<(&str, u64)> {
    sample.spec.by_category.iter().map(|(name, n)| (name.as_str(), *n)).collect()
}

/// A sample without the request that led to it: what is asked, however it was put.
fn asked(mut sample: Sample) -> Sample {
    sample.spec.request = serde_json::Value::Null;
    sample
}

#[test]
fn fair_takes_twenty_per_conversation() {
    let outlines = locomo_shape();
    let sample = sample(&outlines, preset(Preset::Fair)).expect("a valid request");
    let expected = [("adversarial", 41), ("multi-hop", 41), ("open-domain", 36), ("single-hop", 41), ("temporal", 41)];
    assert_eq!(by_category(&sample), expected);
    assert!(sample.banks.iter().all(|bank| bank.questions.len() == 20));
    assert_eq!((sample.spec.n, sample.spec.banks), (200, 10));
    assert!(sample.spec.stratified && !sample.spec.census && sample.spec.notes.is_empty());
    assert_eq!((sample.population.questions, sample.population.entries), (1986, 272));
    assert_eq!(asked(sample), asked(super::sample(&outlines, SampleRequest::default()).expect("fair is the default")));
}

#[test]
fn quick_takes_the_first_of_each_cell_and_the_second_of_the_largest() {
    let outlines = locomo_shape();
    let sample = sample(&outlines, preset(Preset::Quick)).expect("a valid request");
    assert_eq!(sample.spec.n, 50);
    let expected = [("adversarial", 10), ("multi-hop", 10), ("open-domain", 9), ("single-hop", 11), ("temporal", 10)];
    assert_eq!(by_category(&sample), expected);
    let largest = sample.banks.iter().find(|bank| bank.questions.len() == 6).expect("one bank gives six");
    assert_eq!(largest.bank_id, "conv-48", "its 118 single-hop questions are the largest cell");
}

#[test]
fn full_is_a_census_in_the_listings_order() {
    let outlines = locomo_shape();
    let full = sample(&outlines, preset(Preset::Full)).expect("a valid request");
    assert!(full.spec.census && !full.spec.stratified);
    assert_eq!(full.spec.by_category, full.population.by_category);
    let ids = ids(&outlines, &full);
    assert_eq!(full.spec.signature, Sha256Hash::of(ids.join("\n").as_bytes()).hex());
    let fair = sample(&outlines, preset(Preset::Fair)).expect("a valid request");
    for (full, fair) in full.banks.iter().zip(&fair.banks) {
        let kept: Vec<u32> = full.questions.iter().copied().filter(|q| fair.questions.contains(q)).collect();
        assert_eq!(kept, fair.questions, "a part keeps its order");
    }
}

#[test]
fn astrocyte_takes_the_first_of_each_cell_in_file_order() {
    let request = SampleRequest { sampler: Sampler::Astrocyte, ..preset(Preset::Fair) };
    let sample = sample(locomo_shape(), request).expect("a valid request");
    // adversarial, multi-hop, open-domain, single-hop, temporal; the shape lists multi-hop first
    let starts = [152, 0, 69, 82, 32];
    let expected: Vec<u32> = starts.into_iter().flat_map(|start| start..start + 4).collect();
    assert_eq!(sample.banks[0].questions, expected);
    assert_eq!(sample.spec.n, 200);
    assert_eq!(sample.spec.sampler, "astrocyte");
    assert_eq!(
        sample.spec.notes,
        ["questions taken in file order (sampler astrocyte): not an estimate of the full score"]
    );
}

#[test]
fn per_bank_counts_are_those_of_the_reference_harness() {
    for (per_bank, total) in [(1, 49), (5, 53), (10, 102), (20, 200), (50, 492)] {
        for sampler in Sampler::ALL.into_iter().filter(|sampler| !sampler.is_of_totals()) {
            let request = SampleRequest { per_bank: Some(per_bank), sampler, ..SampleRequest::default() };
            let sample = sample(locomo_shape(), request).expect("a valid request");
            assert_eq!((sample.spec.n, sample.spec.preset.as_str()), (total, "custom"), "--per-bank {per_bank}");
            assert!(sample.spec.stratified);
        }
    }
}

#[test]
fn sample_takes_so_many_per_category_in_hash_order() {
    let outlines = locomo_shape();
    let request = SampleRequest { sample_per_category: Some(30), ..SampleRequest::default() };
    let some = sample(&outlines, request).expect("a valid request");
    assert!(some.spec.by_category.values().all(|n| *n == 30) && some.spec.stratified);
    let ids = ids(&outlines, &some);
    assert_eq!(some.spec.signature, Sha256Hash::of(ids.join("\n").as_bytes()).hex());
    let request = SampleRequest { sample_per_category: Some(5000), ..SampleRequest::default() };
    let all = sample(&outlines, request).expect("a valid request");
    assert!(all.spec.census && !all.spec.stratified, "everything is no sample");
}

#[test]
fn limit_is_a_slice_of_the_file_and_says_so() {
    let request = SampleRequest { limit: Some(50), ..SampleRequest::default() };
    let sample = sample(locomo_shape(), request.clone()).expect("a valid request");
    let mut questions = sample.banks[0].questions.clone();
    questions.sort_unstable();
    assert_eq!(questions, (0..50).collect::<Vec<_>>());
    assert_eq!((sample.banks.len(), sample.spec.sampler.as_str()), (1, "head"));
    assert!(!sample.spec.census && !sample.spec.stratified);
    insta::assert_debug_snapshot!(sample.spec.notes, @r#"
    [
        "head slice, the first 50 of 1986 questions: not an estimate of the full score",
        "3 of 5 categories have no question in the sample",
    ]
    "#);
    let full = super::sample(locomo_shape(), SampleRequest { limit: Some(50), ..preset(Preset::Full) })
        .expect("a valid request");
    assert_eq!(asked(full), asked(sample), "everything, cut, is the same slice");

    let request = SampleRequest { limit: Some(5000), ..SampleRequest::default() };
    let all = super::sample(locomo_shape(), request).expect("a valid request");
    assert!(all.spec.census && all.spec.notes.is_empty(), "a limit that cuts nothing changes nothing");
}

#[test]
fn limit_on_a_preset_cuts_its_listing() {
    let outlines = locomo_shape();
    for chosen in [Preset::Quick, Preset::Fair] {
        let whole = ids(&outlines, &sample(&outlines, preset(chosen)).expect("a valid request"));
        let cut = sample(&outlines, SampleRequest { limit: Some(30), ..preset(chosen) }).expect("a valid request");
        assert_eq!(ids(&outlines, &cut), whole[..30]);
        assert!(!cut.spec.stratified && cut.spec.preset == "custom");
    }
}

#[test]
fn filters_combine_in_the_documented_order() {
    let outlines = locomo_shape();
    let request = SampleRequest {
        categories: vec!["open-domain".into(), "temporal".into()],
        exclude_categories: vec!["temporal".into()],
        max_banks: Some(2),
        ..preset(Preset::Full)
    };
    let sample = sample(&outlines, request).expect("a valid request");
    let banks: Vec<&str> = sample.banks.iter().map(|bank| bank.bank_id.as_str()).collect();
    assert_eq!(banks, ["conv-26", "conv-41"], "conv-30 has no open-domain question and does not count");
    assert_eq!(by_category(&sample), [("open-domain", 21)]);
    assert!(!sample.spec.census);
    assert_eq!(sample.spec.notes, ["the first 2 of 10 banks only: not an estimate of the full score"]);

    let request = SampleRequest { categories: vec!["temporal".into()], ..preset(Preset::Full) };
    assert!(super::sample(&outlines, request).expect("a valid request").spec.census, "a whole category is complete");
}

#[test]
fn a_category_of_fair_alone_holds_that_part_of_fair() {
    let outlines = locomo_shape();
    let fair: BTreeSet<String> =
        ids(&outlines, &sample(&outlines, preset(Preset::Fair)).expect("valid")).into_iter().collect();
    let request = SampleRequest { categories: vec!["temporal".into()], ..preset(Preset::Fair) };
    let alone = sample(&outlines, request).expect("a valid request");
    assert_eq!(alone.spec.n, 200, "twenty of each conversation, all of one category");
    let alone: BTreeSet<String> = ids(&outlines, &alone).into_iter().collect();
    assert_eq!(alone.intersection(&fair).count(), 41);
}

#[test]
fn named_questions_are_the_sample() {
    let outlines = locomo_shape();
    let named = |ids: &[&str]| SampleRequest {
        question_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..SampleRequest::default()
    };
    let sample = sample(&outlines, named(&["conv-50:3", "conv-26:150", "conv-26:151"])).expect("a valid request");
    assert_eq!(sample.spec.n, 3);
    assert_eq!((sample.spec.sampler.as_str(), sample.spec.census), ("named", false));
    let request = SampleRequest { max_banks: Some(1), ..named(&["conv-50:3", "conv-26:150"]) };
    insta::assert_debug_snapshot!(super::sample(&outlines, request).expect("a valid request").spec.notes, @r#"
    [
        "questions named by hand: not an estimate of the full score",
        "1 of the named questions are left out by other filters",
        "the first 1 of 10 banks only: not an estimate of the full score",
    ]
    "#);
}

#[test]
fn shortened_banks_keep_their_questions() {
    let request = SampleRequest { max_sessions: Some(20), ..preset(Preset::Fair) };
    let sample = sample(locomo_shape(), request).expect("a valid request");
    assert_eq!(sample.spec.n, 200);
    assert_eq!((sample.banks[0].entries, sample.banks[2].entries), (19, 20));
    assert_eq!((sample.banks[0].turns, sample.banks[2].turns), (380, 400));
    assert_eq!(
        sample.spec.notes,
        ["the first 20 sessions of each bank only: the evidence of some questions may be cut off"]
    );
}

#[test]
fn seeds_choose_other_questions() {
    let outlines = locomo_shape();
    let plain = sample(&outlines, preset(Preset::Fair)).expect("a valid request");
    let seeded =
        sample(&outlines, SampleRequest { seed: Some("7".into()), ..preset(Preset::Fair) }).expect("a valid request");
    assert_ne!(plain.spec.signature, seeded.spec.signature);
    assert_eq!(plain.spec.by_category, seeded.spec.by_category);
}

#[test]
fn requests_that_cannot_be_met_say_what_to_do() {
    let refused = |request: SampleRequest| sample(locomo_shape(), request).expect_err("must be refused").to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let base = SampleRequest::default;
    let messages = [
        refused(SampleRequest { categories: words(&["temporel"]), ..base() }),
        refused(SampleRequest { question_ids: words(&["conv-62:1", "conv-26:1", "nonsense"]), ..base() }),
        refused(SampleRequest { categories: words(&["temporal"]), exclude_categories: words(&["temporal"]), ..base() }),
        refused(SampleRequest { per_bank: Some(5), ..preset(Preset::Quick) }),
        refused(SampleRequest { limit: Some(0), ..base() }),
        refused(SampleRequest { seed: Some("1".into()), sampler: Sampler::Astrocyte, ..base() }),
        sample(Vec::<BankOutline>::new(), base()).expect_err("must be refused").to_string(),
    ];
    insta::assert_snapshot!(messages.join("\n"), @"
    unknown category 'temporel' (did you mean 'temporal'?); this dataset has adversarial, multi-hop, open-domain, single-hop, temporal
    unknown question id 'conv-62:1' (did you mean 'conv-26:1' or 'conv-42:1' or 'conv-26:0'?), and 1 more; `bench-coord datasets show` lists the ids
    no question is left by --category temporal, --exclude-category temporal: widen them (the dataset has 1986 questions)
    --preset and --per-bank both choose the questions: give one of them
    --limit must be at least 1; leave it out to ask for all
    --seed has no effect on --sampler astrocyte, which takes questions in file order: leave one of them out
    the dataset has no questions
    ");
}

#[test]
fn announcements_match_the_documented_widths() {
    let outlines = locomo_shape();
    let lines: Vec<String> = Preset::ALL
        .into_iter()
        .map(|chosen| announce(&sample(&outlines, preset(chosen)).expect("a valid request")).to_string())
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    50 questions in 10 banks: expect ±20.6 to ±25.4 points for conversations like these, ±13.9 if questions were independent, ±15.7 for this benchmark; a paired comparison can detect 18.5 points
    200 questions in 10 banks: expect ±10.5 to ±12.9 points for conversations like these, ±6.9 if questions were independent, ±7.8 for this benchmark; a paired comparison can detect 10.1 points
    1986 questions in 10 banks: expect ±2.9 to ±3.5 points for conversations like these, ±2.2 if questions were independent; a paired comparison can detect 2.8 points
    ");
    let fair = announce(&sample(&outlines, preset(Preset::Fair)).expect("a valid request"));
    let weighted = fair.weighted.expect("fair is stratified");
    assert!((weighted.benchmark_points - 7.8).abs() < 0.05, "{weighted:?}");
    assert!((fair.naive_points - 6.9).abs() < 0.05);
    let head = SampleRequest { limit: Some(50), ..SampleRequest::default() };
    let head = announce(&sample(&outlines, head).expect("a valid request"));
    assert_eq!(head.clustered_points, None, "one bank has no clustered interval");
}

#[test]
fn one_question_per_bank_gives_a_quick_sample_over_all_categories() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let outlines: Vec<BankOutline> =
        (0..500).map(|i| outline(&format!("q{i}"), 40, std::iter::once(names[i % 7 % 6]))).collect();
    let quick = sample(&outlines, preset(Preset::Quick)).expect("a valid request");
    assert_eq!((quick.spec.n, quick.spec.banks), (50, 50));
    assert!(quick.spec.by_category.values().all(|n| (8..=9).contains(n)), "{:?}", quick.spec.by_category);
    let fair = sample(&outlines, preset(Preset::Fair)).expect("a valid request");
    assert!(fair.spec.census, "one question per bank: fair is full");
}

/// Fair as its definition reads, without any of the machinery.
fn fair_by_definition(outlines: &[BankOutline], per_bank: u64) -> Vec<String> {
    let mut listed = Vec::new();
    for outline in outlines {
        let mut cells: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
        for question in &outline.questions {
            let digest = Sha256Hash::of(format!("bench-sample-v1:{}", question.question_id).as_bytes()).hex();
            cells.entry(&question.category).or_default().push((digest, &question.question_id));
        }
        let quota = per_bank.div_ceil(cells.len().max(1) as u64).max(1) as usize;
        for cell in cells.values_mut() {
            cell.sort();
            listed.extend(cell.iter().take(quota).map(|(_, id)| (*id).to_owned()));
        }
    }
    listed
}

fn outlines() -> impl Strategy<Value = Vec<BankOutline>> {
    let bank = (prop::collection::vec("[a-g]", 0..60), 0_u32..9);
    prop::collection::vec(bank, 1..25).prop_map(|banks| {
        let numbered = banks.iter().enumerate();
        numbered
            .map(|(i, (categories, entries))| {
                outline(&format!("b{i}"), *entries, categories.iter().map(String::as_str))
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn quick_is_part_of_fair_is_part_of_full(outlines in outlines(), astrocyte in any::<bool>()) {
        prop_assume!(outlines.iter().any(|outline| !outline.questions.is_empty()));
        let sampler = if astrocyte { Sampler::Astrocyte } else { Sampler::Hash };
        let listed = |chosen| {
            let sample = sample(&outlines, SampleRequest { sampler, ..preset(chosen) }).expect("a valid request");
            let ids = ids(&outlines, &sample);
            assert_eq!(sample.spec.n as usize, ids.len());
            assert_eq!(sample.spec.n, sample.spec.by_category.values().sum::<u64>());
            assert_eq!(sample.spec.signature, Sha256Hash::of(ids.join("\n").as_bytes()).hex());
            assert!(sample.banks.iter().all(|bank| !bank.questions.is_empty()));
            ids
        };
        let (quick, fair, full) = (listed(Preset::Quick), listed(Preset::Fair), listed(Preset::Full));
        let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
        let (quick_set, fair_set, full_set) = (set(&quick), set(&fair), set(&full));
        prop_assert_eq!(quick_set.len(), quick.len(), "no question twice");
        prop_assert!(quick_set.is_subset(&fair_set) && fair_set.is_subset(&full_set));
        prop_assert!(quick.len() <= 50 && (quick.len() == 50 || quick.len() == fair.len()));
        // all three list in one order
        let within = |part: &BTreeSet<String>| full.iter().filter(|id| part.contains(*id)).cloned().collect::<Vec<_>>();
        prop_assert_eq!(within(&fair_set), fair);
        prop_assert_eq!(within(&quick_set), quick);
    }

    #[test]
    fn per_bank_samples_follow_the_definition_and_grow(outlines in outlines(), per_bank in 1_u64..40) {
        prop_assume!(outlines.iter().any(|outline| !outline.questions.is_empty()));
        let request = |per_bank| SampleRequest { per_bank: Some(per_bank), ..SampleRequest::default() };
        let small = ids(&outlines, &sample(&outlines, request(per_bank)).expect("a valid request"));
        prop_assert_eq!(&small, &fair_by_definition(&outlines, per_bank));
        let large: BTreeSet<String> =
            ids(&outlines, &sample(&outlines, request(per_bank + 7)).expect("a valid request")).into_iter().collect();
        prop_assert!(small.iter().all(|id| large.contains(id)));
    }
}
