use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{dataset::QuestionOutline, ids::Sha256Hash, profile::PresetSizes};
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
        ..QuestionOutline::default()
    };
    BankOutline {
        bank_id: id.to_owned(),
        entries,
        turns: entries * 20,
        questions: categories.enumerate().map(question).collect(),
        ..BankOutline::default()
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
    assert_eq!(full.spec.signature, Sha256Hash::of_bytes(ids.join("\n").as_bytes()).hex());
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
    assert_eq!(some.spec.signature, Sha256Hash::of_bytes(ids.join("\n").as_bytes()).hex());
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

/// Loaders put questions into an order that tells nothing: the file's is another one.
#[test]
fn what_goes_by_the_file_knows_its_order_from_that_of_the_bank() {
    let mut outlines = locomo_shape();
    let plain = sample(&outlines, SampleRequest::default()).expect("a valid request");
    for bank in &mut outlines {
        let last = bank.questions.len() as u32 - 1;
        for (index, question) in (0..).zip(&mut bank.questions) {
            question.file_place = Some(last - index);
        }
    }
    let head =
        sample(&outlines, SampleRequest { limit: Some(3), ..SampleRequest::default() }).expect("a valid request");
    let mut first = head.banks[0].questions.clone();
    first.sort_unstable();
    assert_eq!((head.banks.len(), first), (1, vec![196, 197, 198]), "the bank's last are the file's first");
    let request = SampleRequest { sampler: Sampler::Astrocyte, ..preset(Preset::Fair) };
    let by_file = sample(&outlines, request).expect("a valid request");
    assert_eq!(by_file.banks[0].questions[..4], [198, 197, 196, 195], "adversarial from the end");
    let fair = sample(&outlines, SampleRequest::default()).expect("a valid request");
    assert_eq!(fair, plain, "who goes by ids does not care");
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
fn a_total_is_exact_or_says_that_there_are_fewer() {
    let outlines = locomo_shape();
    let taken = |request| sample(&outlines, request).expect("a valid request").spec;
    let total = |total| SampleRequest { sample_total: Some(total), ..SampleRequest::default() };
    let exact = taken(total(1_986));
    assert_eq!((exact.n, exact.notes.as_slice()), (1_986, &[][..]));
    let fewer = taken(total(2_000));
    assert_eq!(fewer.notes, ["--sample-total 2000 took all 1986 questions of the dataset: there are no more"]);
    let temporal = taken(SampleRequest { categories: vec!["temporal".into()], ..total(2_000) });
    let said =
        format!("--sample-total 2000 took all {} questions that the other flags leave: there are no more", temporal.n);
    assert_eq!(temporal.notes, [said]);
}

#[test]
fn the_first_banks_are_no_sample_of_all() {
    let outlines = locomo_shape();
    for request in [preset(Preset::Fair), SampleRequest { sample_total: Some(10), ..SampleRequest::default() }] {
        assert!(sample(&outlines, request.clone()).expect("a valid request").spec.stratified);
        let first = sample(&outlines, SampleRequest { max_banks: Some(2), ..request }).expect("a valid request").spec;
        assert!(!first.stratified && !first.census, "{first:?}");
        assert_eq!(first.notes[0], "the first 2 of 10 banks only: not an estimate of the full score");
    }
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
fn parts_of_sessions_are_not_counted_as_sessions() {
    let parted = || {
        locomo_shape().into_iter().map(|bank| BankOutline {
            entries: bank.entries * 3,
            continued: bank.entries * 2,
            ..bank
        })
    };
    let sample_of = |max_sessions| {
        let request = SampleRequest { max_sessions, ..preset(Preset::Fair) };
        sample(parted().collect::<Vec<_>>(), request).expect("a valid request")
    };
    let whole = sample_of(None);
    assert_eq!((whole.population.entries, whole.banks[0].entries), (272, 57));
    let cut = sample_of(Some(20));
    assert_eq!((cut.banks[0].entries, cut.banks[2].entries, cut.banks[2].turns), (57, 60, 400));
    assert_eq!((whole.spec.notes.len(), cut.spec.notes.len()), (0, 1));
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
        refused(SampleRequest { sample_total: Some(10), limit: Some(5), ..base() }),
        refused(SampleRequest { limit: Some(0), ..base() }),
        refused(SampleRequest { seed: Some("1".into()), sampler: Sampler::Astrocyte, ..base() }),
        sample(Vec::<BankOutline>::new(), base()).expect_err("must be refused").to_string(),
    ];
    insta::assert_snapshot!(messages.join("\n"), @"
    unknown category 'temporel' (did you mean 'temporal'?); this dataset has adversarial, multi-hop, open-domain, single-hop, temporal
    unknown question id 'conv-62:1' (did you mean 'conv-26:1' or 'conv-42:1' or 'conv-26:0'?), and 1 more; `bench-coord datasets show NAME --questions` lists the ids
    no question is left by --category temporal, --exclude-category temporal: widen them (the dataset has 1986 questions)
    --preset and --per-bank both choose the questions: give one of them
    --sample-total and --limit both choose the questions: give one of them
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
    50 questions in 10 banks: expect ±11.1 points (at a score of 90 %) to ±18.7 (at 50 %) for conversations like these, ±13.9 if questions were independent, ±15.7 for this benchmark; a paired comparison can detect 20.6 points
    200 questions in 10 banks: expect ±5.8 points (at a score of 90 %) to ±10.3 (at 50 %) for conversations like these, ±6.9 if questions were independent, ±7.8 for this benchmark; a paired comparison can detect 11.2 points
    200 questions in 10 banks: expect ±4.9 points (at a score of 90 %) to ±8.8 (at 50 %) for conversations like these, ±6.9 if questions were independent, ±6.6 for this benchmark; a paired comparison can detect 9.7 points
    1986 questions in 10 banks: expect ±1.9 points (at a score of 90 %) to ±4.5 (at 50 %) for conversations like these, ±2.2 if questions were independent; a paired comparison can detect 3.1 points
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

/// 500 questions in a bank each, with LongMemEval's kinds and its 30 questions that have no answer.
fn haystacks() -> Vec<BankOutline> {
    let kinds = [
        ("single-session-user", 70, 6),
        ("single-session-assistant", 56, 0),
        ("single-session-preference", 30, 0),
        ("multi-session", 133, 12),
        ("temporal-reasoning", 133, 6),
        ("knowledge-update", 78, 6),
    ];
    let questions =
        kinds.into_iter().flat_map(|(kind, all, unanswerable)| (0..all).map(move |i| (kind, i < unanswerable)));
    let bank = |(number, (kind, unanswerable)): (usize, (&str, bool))| {
        let mut bank = outline(&format!("q{number}"), 40, std::iter::once(kind));
        let value = if unanswerable { "yes" } else { "no" };
        bank.questions[0].facets.insert("abstention".to_owned(), value.to_owned());
        bank
    };
    questions.enumerate().map(bank).collect()
}

/// What a profile says that wants samples over the whole dataset.
fn sizes(fair: u32, strata: &[&str]) -> PresetSizes {
    let strata = strata.iter().map(|facet| (*facet).to_owned()).collect();
    PresetSizes { fair: Some(fair), strata, ..PresetSizes::default() }
}

#[test]
fn a_profile_that_numbers_fair_gets_samples_of_the_whole_dataset_by_category_and_facet() {
    let outlines = haystacks();
    let request = |chosen| SampleRequest { sizes: sizes(200, &["abstention"]), ..preset(chosen) };
    let fair = sample(&outlines, request(Preset::Fair)).expect("a valid request");
    assert_eq!((fair.spec.n, fair.spec.preset.as_str(), fair.spec.stratified), (200, "fair", true));
    let strata: Vec<(&str, &str, u64, u64)> = fair
        .spec
        .strata
        .iter()
        .map(|s| (s.category.as_str(), s.facets["abstention"].as_str(), s.n, s.population))
        .collect();
    assert_eq!(
        strata,
        [
            ("knowledge-update", "no", 29, 72),
            ("knowledge-update", "yes", 2, 6),
            ("multi-session", "no", 49, 121),
            ("multi-session", "yes", 5, 12),
            ("single-session-assistant", "no", 22, 56),
            ("single-session-preference", "no", 12, 30),
            ("single-session-user", "no", 26, 64),
            ("single-session-user", "yes", 2, 6),
            ("temporal-reasoning", "no", 51, 127),
            ("temporal-reasoning", "yes", 2, 6),
        ]
    );
    let lines: Vec<String> = Preset::ALL
        .into_iter()
        .map(|chosen| announce(&sample(&outlines, request(chosen)).expect("a valid request")).to_string())
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    50 questions in 50 banks: expect ±13.9 points for conversations like these, ±13.9 if questions were independent, ±13.2 for this benchmark; a paired comparison can detect 16.8 points; of abstention=yes it has 4 questions, ±49.0 points if they were independent
    200 questions in 200 banks: expect ±6.9 points for conversations like these, ±6.9 if questions were independent, ±5.4 for this benchmark; a paired comparison can detect 8.7 points; of abstention=yes it has 11 questions, ±29.5 points if they were independent
    200 questions in 200 banks: expect ±6.9 points for conversations like these, ±6.9 if questions were independent, ±5.4 for this benchmark; a paired comparison can detect 8.7 points; of abstention=yes it has 11 questions, ±29.5 points if they were independent
    500 questions in 500 banks: expect ±4.4 points for conversations like these, ±4.4 if questions were independent; a paired comparison can detect 5.6 points
    ");
}

#[test]
fn a_total_uses_the_strata_of_the_profile_and_other_harnesses_rules_do_not() {
    let outlines = haystacks();
    let of = |sampler| {
        let request = SampleRequest {
            sizes: sizes(200, &["abstention"]),
            sampler,
            sample_total: Some(200),
            ..SampleRequest::default()
        };
        sample(&outlines, request).expect("a valid request")
    };
    let fair = SampleRequest { sizes: sizes(200, &["abstention"]), ..SampleRequest::default() };
    let fair = sample(&outlines, fair).expect("a valid request");
    assert_eq!(of(Sampler::Hash).spec.signature, fair.spec.signature, "fair is a total");
    assert!(of(Sampler::GoLcg).spec.strata.is_empty() && of(Sampler::AstrocyteLme).spec.strata.is_empty());
}

#[test]
fn facets_filter_like_categories_and_leave_a_population_of_their_own() {
    let outlines = haystacks();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let some = |request: SampleRequest| sample(&outlines, request).expect("a valid request").spec;
    let only = some(SampleRequest { facets: words(&["abstention=yes"]), ..preset(Preset::Full) });
    assert_eq!((only.n, only.preset.as_str(), only.census), (30, "custom", true));
    assert_eq!(only.strata.iter().map(|s| (s.n, s.population)).collect::<Vec<_>>(), [(6, 6), (12, 12), (6, 6), (6, 6)]);
    insta::assert_debug_snapshot!(only.notes, @r#"
    [
        "only questions with abstention=yes",
        "2 of 6 categories have no question in the sample",
    ]
    "#);
    let without = some(SampleRequest { exclude_facets: words(&["abstention=yes"]), ..preset(Preset::Full) });
    assert_eq!((without.n, &without.notes[..]), (470, &words(&["without questions with abstention=yes"])[..]));
    let both = some(SampleRequest { facets: words(&["abstention=yes", "abstention=no"]), ..preset(Preset::Full) });
    assert_eq!(both.n, 500, "values of one facet are alternatives");
    let half = some(SampleRequest {
        facets: words(&["abstention=no"]),
        categories: words(&["knowledge-update"]),
        sample_total: Some(36),
        ..SampleRequest::default()
    });
    assert_eq!((half.n, half.stratified, half.strata[0].population, half.strata.len()), (36, true, 72, 1));

    let refused = |request: SampleRequest| sample(&outlines, request).expect_err("must be refused").to_string();
    let base = SampleRequest::default;
    let unknown = sample(locomo_shape(), SampleRequest { facets: words(&["person=Ann"]), ..base() });
    let mut crowd = haystacks();
    crowd.iter_mut().enumerate().for_each(|(i, bank)| {
        bank.questions[0].facets.insert("person".to_owned(), i.to_string());
    });
    let crowded = SampleRequest { sizes: sizes(200, &["person"]), ..base() };
    crowd.extend(crowd.clone().into_iter().map(|mut bank| {
        bank.questions[0].facets.insert("person".to_owned(), format!("{} again", bank.bank_id));
        bank
    }));
    let messages = [
        refused(SampleRequest { facets: words(&["abstention=maybe"]), ..base() }),
        refused(SampleRequest { exclude_facets: words(&["abstention"]), ..base() }),
        unknown.expect_err("has no facets").to_string(),
        sample(&crowd, crowded).expect_err("too many").to_string(),
    ];
    insta::assert_snapshot!(messages.join("\n"), @"
    no question has the facet 'abstention=maybe' (did you mean 'abstention=yes'?); this dataset has abstention=no, abstention=yes
    --exclude-facet abstention: a facet is written NAME=VALUE, such as --exclude-facet abstention=yes
    no question has the facet 'person=Ann'; its questions have none
    the facets person of the dataset's profile make more than 512 strata: leave those with many values out of its presets
    ");
}

/// Fair as its definition reads, without any of the machinery.
fn fair_by_definition(outlines: &[BankOutline], per_bank: u64) -> Vec<String> {
    let mut listed = Vec::new();
    for outline in outlines {
        let mut cells: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
        for question in &outline.questions {
            let digest = Sha256Hash::of_bytes(format!("bench-sample-v1:{}", question.question_id).as_bytes()).hex();
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

/// A question: its category, and the values of two facets.
type Faceted = (String, Option<String>, Option<String>);

/// Banks whose questions have two facets, each of which may be absent.
fn faceted() -> impl Strategy<Value = Vec<BankOutline>> {
    let question = ("[a-d]", prop::option::of("[xy]"), prop::option::of("[0-2]"));
    prop::collection::vec(prop::collection::vec(question, 0..30), 1..20).prop_map(|banks| {
        let bank = |(number, questions): (usize, Vec<Faceted>)| {
            let mut bank = outline(&format!("b{number}"), 3, questions.iter().map(|(category, ..)| category.as_str()));
            for (question, (_, kind, level)) in bank.questions.iter_mut().zip(questions) {
                question.facets.extend(kind.map(|value| ("kind".to_owned(), value)));
                question.facets.extend(level.map(|value| ("level".to_owned(), value)));
            }
            bank
        };
        banks.into_iter().enumerate().map(bank).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn samples_by_facet_are_exact_nested_and_know_no_order_of_the_file(
        outlines in faceted(), fair in 1_u32..120, quick in 1_u32..120, turn in any::<prop::sample::Index>(),
    ) {
        let all: u64 = outlines.iter().map(|bank| bank.questions.len() as u64).sum();
        prop_assume!(all > 0);
        let sizes = PresetSizes { quick, ..sizes(fair, &["kind", "level"]) };
        let taken = |outlines: &[BankOutline], chosen| {
            let sample = sample(outlines, SampleRequest { sizes: sizes.clone(), ..preset(chosen) }).expect("a valid request");
            let chosen: BTreeSet<String> = ids(outlines, &sample).into_iter().collect();
            (chosen, sample.spec)
        };
        let [(quick_ids, _), (fair_ids, spec), _, (full_ids, _)] = Preset::ALL.map(|chosen| taken(&outlines, chosen));
        prop_assert!(quick_ids.is_subset(&fair_ids) && fair_ids.is_subset(&full_ids));
        prop_assert_eq!(fair_ids.len() as u64, u64::from(fair).min(all));
        prop_assert_eq!(quick_ids.len() as u64, u64::from(quick.min(fair)).min(all));
        // every stratum has its share, and the strata are the whole of the categories that are in the sample
        prop_assert_eq!(spec.strata.iter().map(|s| s.n).sum::<u64>(), spec.n);
        for (category, n) in &spec.by_category {
            let of_category = || spec.strata.iter().filter(|s| s.category == *category);
            prop_assert_eq!(of_category().map(|s| s.n).sum::<u64>(), *n);
            let population = outlines.iter().flat_map(|bank| &bank.questions).filter(|q| q.category == *category).count();
            prop_assert_eq!(of_category().map(|s| s.population).sum::<u64>(), population as u64);
        }
        for stratum in &spec.strata {
            let share = stratum.population as f64 * spec.n as f64 / all as f64;
            let off = 1.0 + spec.strata.len() as f64 / 2.0;
            prop_assert!((stratum.n as f64 - share).abs() <= off, "{stratum:?} for {share}");
        }
        let mut turned = outlines.clone();
        turned.rotate_left(turn.index(outlines.len()));
        prop_assert_eq!(taken(&turned, Preset::Fair).0, fair_ids);
    }

    #[test]
    fn quick_is_part_of_fair_is_part_of_full(outlines in outlines(), astrocyte in any::<bool>()) {
        prop_assume!(outlines.iter().any(|outline| !outline.questions.is_empty()));
        let sampler = if astrocyte { Sampler::Astrocyte } else { Sampler::Hash };
        let listed = |chosen| {
            let sample = sample(&outlines, SampleRequest { sampler, ..preset(chosen) }).expect("a valid request");
            let ids = ids(&outlines, &sample);
            assert_eq!(sample.spec.n as usize, ids.len());
            assert_eq!(sample.spec.n, sample.spec.by_category.values().sum::<u64>());
            assert_eq!(sample.spec.signature, Sha256Hash::of_bytes(ids.join("\n").as_bytes()).hex());
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
