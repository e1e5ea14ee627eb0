//! A score corrected for the errors of the judge that gave it.
//!
//! Of judged answers the share q is accepted. With π right ones, q = π · se + (1 − π) · (1 − sp), so that
//! π = (q + sp − 1) / (se + sp − 1) (Rogan and Gladen 1978; of model judges Lee et al. 2025, arXiv 2511.21140). Sensitivity se is
//! the mean grade of right answers and 1 − sp that of wrong ones, which holds for graded scores as for verdicts.
//!
//! The interval adds up squared distances (Zou and Donner 2008): how far π moves when one of q, se and sp goes to a bound of its own
//! interval and the others stay. Bounds of all three are those of any score, so that banks are clusters in each, few answers are no
//! proof, and an interval near 0 or 1 is not symmetric. The three are taken as independent. Where the audit is of answers of the same
//! run they are not, and the interval is a little too wide: what a lenient bank adds to q it adds to se as well, and takes from sp.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    audit::PlantedSpec,
    metric::{Better, Scale},
    summary::{
        CategoryScore, Corrected, CorrectedBy, CorrectedCategory, CorrectedRange, CorrectedScore, Estimator,
        FacetScore, Headline, Interval, MetricScore,
    },
};

use crate::{
    cells::cells_of,
    interval::symmetric,
    score::{Category, Sampling, estimate, facet_scores},
};

/// Where sensitivity and specificity add up to less than 1 and this, or their interval reaches so low, the judge says too little of
/// an answer: it accepts right answers hardly more often than wrong ones.
const LEAST_BEYOND_CHANCE: f64 = 0.1;
/// How many standard errors a share may be off before it is said.
const ERRORS_OFF: f64 = 3.0;
/// Weights of categories are whole numbers of this part.
const PARTS: f64 = 1e9;

/// What a judge made of an answer whose truth is known.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditedAnswer {
    /// Kind of the answer, one of the audit's.
    pub kind: String,
    /// Category of its question.
    pub category: String,
    /// Bank of its question.
    pub bank: String,
    /// Grade of the judge, from 0 to 1.
    pub score: f64,
}

/// An audit of the judge that gave a score.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a> {
    /// Id of its run.
    pub run: &'a str,
    /// What its answers are.
    pub planted: &'a PlantedSpec,
    /// Those that the judge has graded.
    pub answers: &'a [AuditedAnswer],
}

/// A score as the judge gave it.
#[derive(Debug, Clone, Copy)]
struct Raw<'a> {
    value: Option<f64>,
    ci95: Option<&'a Interval>,
    naive_ci95: Option<&'a Interval>,
}

/// Corrects the headline and its categories, whose figures `score` has.
#[must_use]
pub fn corrected(headline: &Headline, score: &MetricScore, audit: &Audit<'_>) -> CorrectedScore {
    let counts = |category: &&CategoryScore| !headline.without.contains(&category.category);
    let counted: Vec<&CategoryScore> = score.by_category.iter().filter(counts).collect();
    let weights = weights(headline.estimator, &counted);
    let answers: Vec<&AuditedAnswer> =
        audit.answers.iter().filter(|answer| weights.contains_key(answer.category.as_str())).collect();
    let own = audit.planted.answers_of.is_some();
    let mut notes = Vec::new();
    let uneven = own && is_uneven(&weights, &answers);
    if uneven {
        notes.push(
            "categories are not graded in proportion: sensitivity and specificity are weighted to the categories of the run"
                .to_owned(),
        );
    }
    if own {
        notes.extend(left_out(&weights, &answers));
        notes.extend(chosen_by_verdict(headline, &answers));
    }
    let raw = Raw { value: headline.value, ci95: headline.ci95.as_ref(), naive_ci95: headline.naive_ci95.as_ref() };
    let all = one(raw, audit.planted, &answers, uneven.then_some(&weights));
    let category = |category: &&CategoryScore| {
        let raw = Raw { value: category.value, ci95: category.ci95.as_ref(), naive_ci95: category.naive_ci95.as_ref() };
        let of: Vec<&AuditedAnswer> =
            answers.iter().copied().filter(|answer| answer.category == category.category).collect();
        CorrectedCategory { category: category.category.clone(), score: one(raw, audit.planted, &of, None) }
    };
    CorrectedScore {
        metric: headline.metric.clone(),
        audit: audit.run.to_owned(),
        own_answers: own,
        n: answers.len() as u64,
        all,
        by_category: counted.iter().map(category).collect(),
        notes,
    }
}

/// What each category counts for in the score, as shares of it.
fn weights<'a>(estimator: Estimator, categories: &[&'a CategoryScore]) -> BTreeMap<&'a str, f64> {
    let weight = |category: &CategoryScore| match estimator {
        Estimator::Weighted => category.population.unwrap_or(category.n) as f64,
        Estimator::Mean => category.n as f64,
    };
    let all: f64 = categories.iter().map(|category| weight(category)).sum();
    categories.iter().map(|category| (category.category.as_str(), weight(category) / all.max(1.0))).collect()
}

fn counts<'a>(answers: &[&'a AuditedAnswer]) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    answers.iter().for_each(|answer| *counts.entry(answer.category.as_str()).or_default() += 1);
    counts
}

/// Whether chance alone would not have graded so many of one category and so few of another.
fn is_uneven(weights: &BTreeMap<&str, f64>, answers: &[&AuditedAnswer]) -> bool {
    let (counts, all) = (counts(answers), answers.len() as f64);
    let is_off = |(category, share): (&&str, &f64)| {
        let graded = counts.get(category).copied().unwrap_or_default() as f64 / all.max(1.0);
        (graded - share).abs() > ERRORS_OFF * (share * (1.0 - share) / all.max(1.0)).sqrt()
    };
    weights.iter().any(is_off)
}

/// Names the categories of the score of which no answer was graded.
fn left_out(weights: &BTreeMap<&str, f64>, answers: &[&AuditedAnswer]) -> Option<String> {
    let graded: BTreeSet<&str> = answers.iter().map(|answer| answer.category.as_str()).collect();
    let missing: Vec<&str> = weights
        .iter()
        .filter(|(name, weight)| **weight > 0.0 && !graded.contains(*name))
        .map(|(name, _)| *name)
        .collect();
    (!missing.is_empty()).then(|| {
        format!("no answer of {} is graded: the judge is taken to err there as it does elsewhere", missing.join(", "))
    })
}

/// Whoever looks only at what a judge rejected finds a judge of another kind. It is said where the judge accepts the graded answers
/// much more or less often than all.
fn chosen_by_verdict(headline: &Headline, answers: &[&AuditedAnswer]) -> Option<String> {
    let all = headline.value?;
    let n = answers.len() as f64;
    let graded = answers.iter().map(|answer| answer.score).sum::<f64>() / n.max(1.0);
    let is_off = n > 0.0 && (graded - all).abs() > ERRORS_OFF * (all * (1.0 - all) / n).sqrt().max(0.5 / n);
    is_off.then(|| {
        format!(
            "the judge gives the graded answers {:.1} % and all {:.1} %: if they were chosen by what it said of them, its sensitivity \
             and specificity are others than these",
            graded * 100.0,
            all * 100.0
        )
    })
}

/// The corrected figures of a score, from answers of its categories.
fn one(
    raw: Raw<'_>,
    planted: &PlantedSpec,
    answers: &[&AuditedAnswer],
    weights: Option<&BTreeMap<&str, f64>>,
) -> Corrected {
    let of = |kind: &String| -> Vec<&AuditedAnswer> {
        answers.iter().copied().filter(|answer| answer.kind == *kind).collect()
    };
    let graded = counts(answers);
    let rate = |answers: &[&AuditedAnswer], wrong: bool| {
        rate(answers, wrong, weights.map(|weights| Shares { weights, graded: &graded }))
    };
    let pairs = planted.wrong.iter().flat_map(|wrong| planted.right.iter().map(move |right| (wrong, right)));
    let by_kind: Vec<CorrectedBy> = pairs
        .map(|(wrong, right)| by_kind((wrong, right), raw, rate(&of(right), false), rate(&of(wrong), true)))
        .collect();
    let of_raw = Corrected { raw: raw.value, ..Corrected::default() };
    let Some(first) = by_kind.first() else {
        let missing = if planted.wrong.is_empty() { "wrong" } else { "right" };
        return Corrected { note: Some(format!("the audit has no {missing} answers")), ..of_raw };
    };
    if planted.answers_of.is_some() {
        let CorrectedBy { value, ci95, naive_ci95, note, .. } = first.clone();
        return Corrected { value, ci95, naive_ci95, note, by_kind, ..of_raw };
    }
    let values: Option<Vec<f64>> = by_kind.iter().map(|by| by.value).collect();
    let range = values.map(|values| CorrectedRange {
        low: values.iter().copied().fold(1.0, f64::min),
        high: values.iter().copied().fold(0.0, f64::max),
    });
    let without = by_kind.iter().find(|by| by.value.is_none());
    let note = without.map(|by| {
        let why = by.note.clone().unwrap_or_default();
        format!("{} against {}: {why}", by.wrong, by.right)
    });
    Corrected { range, note, by_kind, ..of_raw }
}

/// What categories count for in a score, and how many answers of each are graded.
#[derive(Debug, Clone, Copy)]
struct Shares<'a> {
    weights: &'a BTreeMap<&'a str, f64>,
    graded: &'a BTreeMap<&'a str, u64>,
}

/// Mean grade of right answers, or what is missing from 1 of that of wrong ones. With weights of the categories, and the answers of
/// each that are graded, as of a sample that has them in proportion.
fn rate(answers: &[&AuditedAnswer], wrong: bool, weighted: Option<Shares<'_>>) -> FacetScore {
    let names: BTreeSet<&str> = answers.iter().map(|answer| answer.bank.as_str()).collect();
    let banks: BTreeMap<&str, u32> = names.into_iter().zip(0..).collect();
    let of_categories = counts(answers);
    let categories: BTreeMap<&str, u32> = of_categories.keys().copied().zip(0..).collect();
    let score = |answer: &&AuditedAnswer| {
        let category = weighted.and_then(|_| categories.get(answer.category.as_str()).copied()).unwrap_or_default();
        let bank = banks.get(answer.bank.as_str()).copied().unwrap_or_default();
        (category, bank, if wrong { 1.0 - answer.score } else { answer.score })
    };
    let cells = cells_of(answers.iter().map(score), Scale::PLAIN);
    let Some(Shares { weights, graded }) = weighted else {
        let all = facet_scores(&cells, &["all".to_owned()]).remove("all");
        return all.unwrap_or_else(nothing);
    };
    let strata: Vec<Category> = of_categories
        .iter()
        .map(|(name, n)| {
            let share = *n as f64 / graded.get(name).copied().unwrap_or(1).max(1) as f64;
            let weight = weights.get(name).copied().unwrap_or_default() * share;
            let number = categories.get(name).copied().unwrap_or_default();
            let population = Some(((weight * PARTS).round() as u64).max(1));
            Category { number, name: (*name).to_owned(), population, asked: *n, lost: 0 }
        })
        .collect();
    let sampling = Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: false, census: false };
    estimate(&cells, &strata, sampling).plain()
}

fn nothing() -> FacetScore {
    FacetScore { n: 0, value: None, clusters: 0, ci95: None, ci95_note: None, naive_ci95: None }
}

/// The score by the errors about answers of two kinds.
fn by_kind(
    (wrong, right): (&str, &str),
    raw: Raw<'_>,
    sensitivity: FacetScore,
    specificity: FacetScore,
) -> CorrectedBy {
    let mut by = CorrectedBy {
        wrong: wrong.to_owned(),
        right: right.to_owned(),
        sensitivity,
        specificity,
        value: None,
        ci95: None,
        naive_ci95: None,
        note: None,
    };
    let (Some(q), Some(se), Some(sp)) = (raw.value, by.sensitivity.value, by.specificity.value) else {
        let missing = match (raw.value, by.sensitivity.value) {
            (None, _) => "no question has a score".to_owned(),
            (_, None) => format!("no answer that is right ({right}) is graded"),
            _ => format!("no answer that is wrong ({wrong}) is graded"),
        };
        by.note = Some(missing);
        return by;
    };
    let rates = [&by.sensitivity, &by.specificity];
    let of_banks = rates.map(|rate| rate.ci95.as_ref());
    let naive = rates.map(|rate| rate.naive_ci95.as_ref());
    let sum = se + sp;
    // of two that err independently the distances to the lower bounds add up as squares
    let least = |bounds: [Option<&Interval>; 2]| Some(sum - (se - bounds[0]?.low).hypot(sp - bounds[1]?.low));
    let lowest = least(of_banks).or_else(|| least(naive)).unwrap_or(f64::NEG_INFINITY);
    if lowest < 1.0 + LEAST_BEYOND_CHANCE {
        by.note = Some(format!(
            "sensitivity {:.1} % and specificity {:.1} % add up to {sum:.2}, perhaps {:.2}: near 1 a score says nothing",
            se * 100.0,
            sp * 100.0,
            lowest.max(0.0),
        ));
        return by;
    }
    let value = share_of_right(q, se, sp);
    by.value = Some(value.clamp(0.0, 1.0));
    let interval = |score: Option<&Interval>, bounds: [Option<&Interval>; 2], kind: &str| {
        squared_distances((q, score?), (se, bounds[0]?), (sp, bounds[1]?), kind)
    };
    by.ci95 = interval(raw.ci95, of_banks, "by banks");
    by.naive_ci95 = interval(raw.naive_ci95, naive, "independent");
    let notes = [cut(value), by.ci95.is_none().then(|| why_no_interval(&by, raw))];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    by.note = (!notes.is_empty()).then(|| notes.join("; "));
    by
}

/// What is said of a score that is cut to what a share can be.
fn cut(value: f64) -> Option<String> {
    let said = if value < 0.0 {
        "the score is below the share of wrong answers that the judge accepts: cut to 0"
    } else if value > 1.0 {
        "the score is above the share of right answers that the judge accepts: cut to 1"
    } else {
        return None;
    };
    Some(said.to_owned())
}

/// Why a score by errors has no interval by banks.
fn why_no_interval(by: &CorrectedBy, raw: Raw<'_>) -> String {
    if raw.ci95.is_none() {
        return "the score has no interval by banks".to_owned();
    }
    let rates = [("right", &by.sensitivity), ("wrong", &by.specificity)];
    match rates.into_iter().find(|(_, rate)| rate.ci95.is_none()) {
        Some((kind, rate)) => format!("{kind} answers: {}", rate.ci95_note.clone().unwrap_or_default()),
        None => "there is no interval, as all of it lies beyond what a share can be: the judge errs about the graded answers otherwise \
                 than about those of the score"
            .to_owned(),
    }
}

/// π = (q + sp − 1) / (se + sp − 1).
fn share_of_right(q: f64, se: f64, sp: f64) -> f64 {
    (q + sp - 1.0) / (se + sp - 1.0)
}

/// The interval of a corrected score, from a score and two rates with their intervals, cut to [0, 1]; none where all of it lies
/// outside: what would be left has no width, and claims to know.
fn squared_distances(q: (f64, &Interval), se: (f64, &Interval), sp: (f64, &Interval), kind: &str) -> Option<Interval> {
    let value = share_of_right(q.0, se.0, sp.0);
    let (mut below, mut above) = (0.0_f64, 0.0_f64);
    let mut add = |of: &dyn Fn(f64) -> f64, bounds: &Interval| {
        let (one, other) = (of(bounds.low) - value, of(bounds.high) - value);
        below = below.hypot(one.min(other).min(0.0));
        above = above.hypot(one.max(other).max(0.0));
    };
    add(&|q| share_of_right(q, se.0, sp.0), q.1);
    add(&|se| share_of_right(q.0, se, sp.0), se.1);
    add(&|sp| share_of_right(q.0, se.0, sp), sp.1);
    let method = format!("Rogan-Gladen, squared distances, {kind}");
    let low = symmetric(value, below, String::new()).low;
    let interval = Interval { low, ..symmetric(value, above, method) };
    (interval.low < interval.high).then_some(interval)
}

#[cfg(test)]
mod tests;
