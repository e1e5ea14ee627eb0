//! Two runs on the same questions: paired differences, the flips, and whether the pair may be compared at all. Pure.
//!
//! The decision rests on one rule: the t interval of the paired differences (b − a), by banks or by questions taken as
//! independent, whichever is wider. McNemar's exact test and the wild cluster bootstrap stand beside it as checks; a note says
//! where they disagree.
//!
//! | module | question |
//! |---|---|
//! | `pairs` | which questions did both runs score, in few bytes? |
//! | `difference` | mean, interval, p value, detectable difference, verdict word |
//! | `mcnemar`, `holm` | the exact test; the correction over categories |
//! | `in_common` | what of both sides was paid or made once? |
//! | `filters` | did both keep to the questions' filters? |
//! | `ranks` | who shares a rank where differences may be chance? |
//! | [`fingerprints`] | does more than one thing differ? |

pub mod fingerprints;

pub(crate) mod difference;
mod filters;
mod holm;
mod in_common;
pub(crate) mod latency;
mod mcnemar;
pub(crate) mod pairs;
mod ranks;

use std::collections::BTreeMap;

use bench_proto::{
    comparison::{
        COMPARISON_SCHEMA_VERSION, CategoryDifference, ComparedRun, Comparison, Flip, FlipSide, McNemar,
        PairedDifference, RetrievalDifference, Word,
    },
    metric::{Better, Scale},
    spec::{RunSpec, SampleSpec},
    strata::Stratum,
    summary::{Estimator, Interval, MemoryCost, MetricScore, Summary, Verdict},
};

pub(crate) use difference::{RULE_OF_THREE, gains};
pub(crate) use holm::adjusted;
pub use in_common::{Member, NOT_INDEPENDENT};
pub use pairs::{PairedFacts, Rate, Rates, RunFacts};
pub(crate) use pairs::{TurnsSeen, ended_with_scores};
pub use ranks::ranks;

use crate::strata::Strata;

use self::{
    difference::{Means, paired_difference},
    fingerprints::RunSettings,
};

/// Below this probability a difference is no accident.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// Seed of the bootstrap when the user gives none (`stats.seed`).
pub const DEFAULT_STATS_SEED: u64 = 20_240_229;

/// What is to be compared and how.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// The metric; the first run's headline when not named.
    pub metric: Option<String>,
    /// Overall change that does not matter.
    pub tolerance: f64,
    /// Change in a category that does not matter.
    pub category_tolerance: f64,
    /// Change of a figure of retrieval that does not matter.
    pub retrieval_tolerance: f64,
    /// Groups of settings that may differ (`system`, `answerer`, …) although more than one does.
    pub under_test: Vec<String>,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// At most so many flips are listed.
    pub flips: usize,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            metric: None,
            tolerance: 0.02,
            category_tolerance: 0.03,
            retrieval_tolerance: 0.03,
            under_test: Vec::new(),
            seed: DEFAULT_STATS_SEED,
            flips: 100,
        }
    }
}

/// One side: what was run, what it reported, and its questions.
#[derive(Debug)]
pub struct Side<'a> {
    /// Effective settings.
    pub spec: &'a RunSpec,
    /// The run's summary.
    pub summary: &'a Summary,
    /// Its questions.
    pub facts: &'a RunFacts,
    /// The runs that it is the mean of, or the one that it is.
    pub members: &'a [Member],
}

impl Side<'_> {
    /// Whether it is a run, and no mean of some.
    fn is_one_run(&self) -> bool {
        matches!(self.members, [run] if run.id == self.summary.run.id)
    }

    /// Whether some of it was made elsewhere, by an answerer that is not known.
    fn is_imported(&self) -> bool {
        self.members.iter().any(|run| run.imported)
    }
}

/// The metric that two runs are compared by.
#[must_use]
pub fn common_metric(a: &RunSpec, options: &CompareOptions) -> String {
    options.metric.clone().unwrap_or_else(|| a.headline_metric())
}

/// Compares two runs.
#[must_use]
pub fn compare(a: &Side<'_>, b: &Side<'_>, options: &CompareOptions) -> Comparison {
    let metric = common_metric(a.spec, options);
    let facts = PairedFacts::by_question(a.facts, b.facts);
    let estimator = estimator(a.spec, b.spec);
    let scale = a.spec.metric(&metric);
    let mut strata = strata(a.spec, b.spec, &facts);
    strata.saw(&facts.seen());
    let means = Means { estimator, better: scale.better, strata: &strata };
    let counted = facts.counted(&a.spec.dataset.profile.headline);
    let all = paired_difference(&means, &counted, options.tolerance);
    let by_category = category_differences(&means, facts.by_category(), options.category_tolerance);
    let (by_facet, facet_notes) = by_facet(&means, &facts, options.category_tolerance);
    let (bootstrap_ci95, bootstrap_note) = difference::bootstrap(&means, &counted, options.seed);
    let settings = fingerprints::comparability(
        &RunSettings { spec: a.spec, imported: a.is_imported() },
        &RunSettings { spec: b.spec, imported: b.is_imported() },
        &metric,
        &options.under_test,
    );
    let mut reasons = settings.reasons;
    reasons.extend(filters::unlike(a, b));
    for (which, side) in [("first", a), ("second", b)] {
        if side.summary.run.verdict == Verdict::Invalid {
            let run = &side.summary.run;
            reasons.push(format!("the {which} run ({}){}{}", run.id, Verdict::IS_INVALID, run.reasons.join("; ")));
        }
    }
    if counted.is_empty() {
        reasons.push(format!("no question has a score by '{metric}' in both runs"));
    }
    let mut notes = settings.notes;
    let paid_once = in_common::paid(a, b);
    let independent = paid_once.is_none();
    notes.extend(paid_once);
    let copied = in_common::copied(a, b, &metric);
    notes.extend(copied.as_ref().map(|copied| copied.note.clone()));
    notes.extend(in_common::filling(a, b));
    notes.extend(facet_notes);
    let mcnemar = mcnemar::test(counted.iter().map(|pair| (pair.a, pair.b)), scale);
    notes.extend(disagreement(&all, &mcnemar, bootstrap_ci95.as_ref()));
    notes.extend(chance_among(&by_category, scale.better));
    let (retrieval, of_sessions) = retrieval((a.facts, b.facts), &means, &facts, options);
    notes.extend(of_sessions);
    let (flips, flip_counts) = flips(&facts, scale, options.flips);
    let (of_a, of_b) = (compared_run(a, &metric), compared_run(b, &metric));
    Comparison {
        schema_version: COMPARISON_SCHEMA_VERSION,
        latency: Some(latency::compare(&of_a, &of_b)),
        a: of_a,
        b: of_b,
        comparable: reasons.is_empty(),
        reasons,
        notes,
        under_test: settings.under_test,
        differences: settings.differences,
        independent,
        copied: copied.is_some(),
        copied_of: copied.map(|copied| copied.of),
        equal: are_equal(a, b, &facts),
        verdict: all.verdict,
        mcnemar,
        paired: all,
        bootstrap_ci95,
        bootstrap_note,
        unpaired: facts.unpaired,
        by_category,
        by_facet,
        retrieval,
        flip_counts,
        flips,
        better: scale.better,
        metric,
    }
}

/// Whether two runs have one digest, by which every question ended alike in both. A mean over several runs has none, and a digest
/// that is read from a folder is held against the questions.
fn are_equal(a: &Side<'_>, b: &Side<'_>, facts: &PairedFacts<'_>) -> bool {
    let digest = &a.summary.result_digest;
    let are_single = a.members.len() < 2 && b.members.len() < 2;
    are_single
        && !digest.is_empty()
        && *digest == b.summary.result_digest
        && !facts.pairs.is_empty()
        && facts.pairs.iter().all(|pair| pair.difference() == 0.0)
        && facts.unpaired.only_a + facts.unpaired.only_b == 0
}

/// What a difference says in view of those that were made with it: one that Holm's correction takes for chance decides nothing.
#[must_use]
pub fn in_view_of_all(verdict: Word, p_holm: Option<f64>) -> Word {
    match verdict {
        Word::Better | Word::Worse if p_holm.is_none_or(|p| p > SIGNIFICANT) => Word::Inconclusive,
        verdict => verdict,
    }
}

/// Corrects the p values of some differences together (Holm), and their words by them.
fn correct<'a>(all: impl IntoIterator<Item = &'a mut PairedDifference>) {
    let all: Vec<&mut PairedDifference> = all.into_iter().collect();
    let p_values: Vec<Option<f64>> = all.iter().map(|paired| paired.p_value).collect();
    for (paired, p_holm) in all.into_iter().zip(holm::adjusted(&p_values)) {
        paired.p_holm = p_holm;
        paired.verdict = in_view_of_all(paired.verdict, p_holm);
    }
}

/// Which categories change by their own intervals, while among so many a change like theirs is no surprise: why their words do not
/// follow their intervals.
fn chance_among(by_category: &[CategoryDifference], better: Better) -> Option<String> {
    let own_word = |paired: &PairedDifference| {
        let own = paired.ci95.as_ref().map(|interval| difference::word(interval, paired.tolerance, better));
        own.filter(|word| matches!(word, Word::Better | Word::Worse))
    };
    let may_be_chance = |paired: &PairedDifference| paired.verdict == Word::Inconclusive;
    let names: Vec<String> = by_category
        .iter()
        .filter(|of| may_be_chance(&of.paired))
        .filter_map(|of| Some(format!("{} ({} by its own interval)", of.category, own_word(&of.paired)?.name())))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "among {} categories a change like that of {} is no surprise (p (Holm) above {SIGNIFICANT}): {}",
            by_category.len(),
            names.join(", "),
            Word::Inconclusive.name()
        )
    })
}

/// Where the checks say otherwise than the interval that decides.
fn disagreement(paired: &PairedDifference, mcnemar: &McNemar, bootstrap: Option<&Interval>) -> Option<String> {
    let (word, p) = (paired.verdict, paired.p_value?);
    let zero = |interval: &Interval| interval.low <= 0.0 && 0.0 <= interval.high;
    if matches!(word, Word::Better | Word::Worse) {
        let mut doubts = Vec::new();
        if mcnemar.p_value >= SIGNIFICANT {
            doubts.push(format!("McNemar's test of passes and failures does not see it (p {:.3})", mcnemar.p_value));
        }
        doubts.extend(bootstrap.filter(|b| zero(b)).map(|_| "the bootstrap interval holds 0".to_owned()));
        let said = doubts.join(" and ");
        return (!doubts.is_empty())
            .then(|| format!("the checks disagree: {} at p {p:.3}, but {said}: no firm result", word.name()));
    }
    let interval = paired.ci95.as_ref().filter(|_| mcnemar.p_value < SIGNIFICANT)?;
    zero(interval).then(|| {
        format!(
            "the checks disagree: McNemar's test of passes and failures, which ignores banks, has p {:.3}, the interval that decides holds 0",
            mcnemar.p_value
        )
    })
}

/// The differences of all categories, with p values and words that take their number into account.
pub(crate) fn category_differences(
    means: &Means<'_>,
    pairs: BTreeMap<&str, Vec<pairs::Pair>>,
    tolerance: f64,
) -> Vec<CategoryDifference> {
    let mean = Means { estimator: Estimator::Mean, ..*means };
    let difference = |(name, pairs): (&str, Vec<pairs::Pair>)| CategoryDifference {
        category: name.to_owned(),
        paired: paired_difference(&mean, &pairs, tolerance),
    };
    let mut by_category: Vec<CategoryDifference> = pairs.into_iter().map(difference).collect();
    correct(by_category.iter_mut().map(|category| &mut category.paired));
    by_category
}

/// The questions that two stratified samples share, or that one shares with a whole dataset, are a stratified sample.
fn estimator(a: &RunSpec, b: &RunSpec) -> Estimator {
    let [a, b] = [&a.sample, &b.sample];
    let known = |sample: &SampleSpec| sample.stratified || sample.census;
    if known(a) && known(b) && !(a.census && b.census) { Estimator::Weighted } else { Estimator::Mean }
}

/// The strata that two runs are weighted by: those of the sample that is a part of the other's whole.
fn strata(a: &RunSpec, b: &RunSpec, facts: &PairedFacts<'_>) -> Strata {
    let said = [&a.sample.strata, &b.sample.strata].into_iter().filter(|strata| !strata.is_empty());
    let population =
        |strata: &&Vec<Stratum>| strata.iter().map(|stratum| stratum.population).fold(0, u64::saturating_add);
    let said = said.min_by_key(population).map_or(&[][..], Vec::as_slice);
    Strata::new(said, &a.dataset.population, [], facts.kinds.list())
}

/// Facet → value → difference.
type FacetDifferences = BTreeMap<String, BTreeMap<String, PairedDifference>>;

/// The differences of each value of the facets that both runs have, corrected together (Holm), and what to know of them.
fn by_facet(means: &Means<'_>, facts: &PairedFacts<'_>, tolerance: f64) -> (FacetDifferences, Vec<String>) {
    let mean = Means { estimator: Estimator::Mean, ..*means };
    let (facets, notes) = facts.by_facet();
    let mut by_facet: FacetDifferences = BTreeMap::new();
    for (facet, of_values) in facets {
        let with_pairs = facet.values.into_iter().zip(of_values).filter(|(_, pairs)| !pairs.is_empty());
        let differences = with_pairs.map(|(value, pairs)| (value, paired_difference(&mean, &pairs, tolerance)));
        by_facet.insert(facet.name, differences.collect());
    }
    correct(by_facet.values_mut().flat_map(BTreeMap::values_mut));
    (by_facet, notes)
}

fn compared_run(side: &Side<'_>, metric: &str) -> ComparedRun {
    let summary = side.summary;
    let headline = summary.headline.metric == metric;
    // of several runs all but the headline is that of the first, and no figure of their mean; where one of them lends its summary as
    // it is, so is the headline
    let is_mean = side.members.len() > 1;
    let is_lent = is_mean && side.members.iter().any(|run| run.id == summary.run.id);
    let of_metric = summary.scores.iter().find(|score| score.metric == metric && !is_mean);
    // the value that the interval is around
    let total = |score: &MetricScore| score.total(summary.headline.estimator);
    let (value, ci95) = match headline {
        true if is_lent => (None, None),
        true => (summary.headline.value, summary.headline.ci95.clone()),
        false => (of_metric.and_then(total), of_metric.and_then(|score| score.ci95.clone())),
    };
    ComparedRun {
        id: summary.run.id.clone(),
        name: summary.run.name.clone(),
        system: summary.spec.system.clone(),
        answerer: summary.spec.who_answered(),
        judge: summary.spec.judge.clone(),
        judges: summary.spec.judges.clone(),
        preset: summary.dataset.sample.preset.clone(),
        fingerprint: summary.run.fingerprint.clone(),
        verdict: summary.run.verdict,
        reasons: summary.run.reasons.clone(),
        value,
        ci95,
        // a report that is read from a folder says anything
        n: summary.outcomes.scored.saturating_add(summary.outcomes.abstained),
        coverage: summary.outcomes.coverage,
        result_digest: summary.result_digest.clone(),
        retrieval: summary.retrieval.clone(),
        latency_ms: summary.latency_ms.clone(),
        latency_probe: summary.latency_probe.clone(),
        usage: summary.usage.clone(),
        usd_per_correct: summary.usd_per_correct,
        metered: summary.metered.as_ref().map(|metered| MemoryCost {
            usd: metered.total.usd_list(),
            usd_per_1000_turns: metered.usd_per_1000_turns,
            usd_per_question: metered.usd_per_question,
        }),
    }
}

/// Recall at the cut-off of both, per level, and what to know of it. The first k sessions of a longer list of hits are others
/// than those of k hits, so where runs were asked for different numbers of hits sessions are not compared.
fn retrieval(
    (a, b): (&RunFacts, &RunFacts),
    means: &Means<'_>,
    facts: &PairedFacts<'_>,
    options: &CompareOptions,
) -> (Vec<RetrievalDifference>, Option<String>) {
    let k = a.k().min(b.k());
    let asked_for: Vec<String> = a.asked_for(b).iter().map(u32::to_string).collect();
    let alike = asked_for.len() < 2;
    let note = (!alike && !facts.session_recall.is_empty()).then(|| {
        format!(
            "session recall is not compared: the runs were asked for {} hits, and the first {k} sessions of more hits are others",
            asked_for.join(" and ")
        )
    });
    let differences = [("turn", &facts.turn_recall), ("session", &facts.session_recall)]
        .into_iter()
        .filter(|(level, pairs)| !pairs.is_empty() && (alike || *level == "turn"))
        .map(|(level, pairs)| RetrievalDifference {
            level: level.to_owned(),
            k,
            metric: "recall".to_owned(),
            paired: paired_difference(
                &Means { estimator: Estimator::Mean, better: Better::Higher, ..*means },
                pairs,
                options.retrieval_tolerance,
            ),
        });
    (differences.collect(), note)
}

/// The first `most` of a list that begins with `lost` lost ones: as many lost as won ones, as far as there are so many.
fn alike(mut flipped: Vec<usize>, lost: usize, most: usize) -> Vec<usize> {
    let won = flipped.split_off(lost);
    let of_lost = (most - (most / 2).min(won.len())).min(lost);
    flipped.truncate(of_lost);
    flipped.extend(won.into_iter().take(most - of_lost));
    flipped
}

/// The questions that one run passed and the other did not: lost ones first, the largest changes first.
fn flips(facts: &PairedFacts<'_>, scale: Scale, most: usize) -> (Vec<Flip>, BTreeMap<String, u64>) {
    let passed = |score: f64| scale.passes(score);
    let mut flipped: Vec<usize> =
        (0..facts.pairs.len()).filter(|i| passed(facts.pairs[*i].a) != passed(facts.pairs[*i].b)).collect();
    let won = flipped.iter().filter(|i| passed(facts.pairs[**i].b)).count() as u64;
    let counts = BTreeMap::from([("won".to_owned(), won), ("lost".to_owned(), flipped.len() as u64 - won)]);
    let change = |i: &usize| facts.pairs[*i].b - facts.pairs[*i].a;
    flipped.sort_by(|x, y| {
        let lost_first = passed(facts.pairs[*x].b).cmp(&passed(facts.pairs[*y].b));
        let largest = change(y).abs().total_cmp(&change(x).abs());
        lost_first.then(largest).then_with(|| facts.ids[*x].cmp(facts.ids[*y]))
    });
    let flipped = alike(flipped, counts["lost"] as usize, most);
    let flip = |i: usize| {
        let pair = &facts.pairs[i];
        let side = |score| FlipSide { score, ..FlipSide::default() };
        Flip {
            question_id: facts.ids[i].to_string(),
            bank_id: facts.banks[pair.cluster as usize].clone(),
            category: facts.category(pair).to_owned(),
            direction: if passed(pair.b) { "won" } else { "lost" }.to_owned(),
            question: None,
            gold: None,
            a: side(pair.a),
            b: side(pair.b),
        }
    };
    (flipped.into_iter().map(flip).collect(), counts)
}

/// Corrects the overall p values of all pairs of several runs together (Holm).
pub fn correct_over_pairs<'a>(comparisons: impl IntoIterator<Item = &'a mut Comparison>) {
    let mut all: Vec<&mut Comparison> = comparisons.into_iter().collect();
    let p_values: Vec<Option<f64>> = all.iter().map(|c| c.paired.p_value).collect();
    for (comparison, p_holm) in all.iter_mut().zip(holm::adjusted(&p_values)) {
        comparison.paired.p_holm = p_holm;
    }
}

#[cfg(test)]
mod edges;
#[cfg(test)]
mod tests;
