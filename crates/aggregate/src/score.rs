//! From cells to the numbers of the report: value, intervals and their reasons, per metric, part and category.

use std::collections::BTreeMap;

use bench_proto::{
    metric::{Better, Scale},
    strata::joined,
    summary::{CategoryScore, Estimator, FacetScore, Interval, MetricScore},
};

use crate::{
    cells::{Cell, Tally, of_stratum},
    design::Design,
    interval::{least_error, symmetric, t_quantile, wilson},
    likelihood::{self, Reach},
};

/// Fewer clusters than this make no interval.
pub(crate) const FEWEST_CLUSTERS: usize = 3;
/// Fewer clusters than this carry a warning.
pub(crate) const FEW_CLUSTERS: usize = 8;

/// A variance of a mean that is nothing but rounding: banks that do not differ, of which no t interval can be made.
const NO_SPREAD: f64 = 1e-24;
/// Why there is no interval where no stratum says how its scores vary.
const SINGLE_SCORES: &str = "every category has a single score: how they vary is not known";
/// What is said of an interval that rests on more than the scores' variance.
const LEAST: &str = ", rule of three where scores agree";

/// A stratum of the sample: a category, or a part of one that other facets make. Those of a category stand next to each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Category {
    /// As in [`Cell::stratum`].
    pub(crate) number: u32,
    /// Name of the category.
    pub(crate) name: String,
    /// N_h: questions of the whole dataset.
    pub(crate) population: Option<u64>,
    /// Questions of the sample, with or without a score.
    pub(crate) asked: u64,
    /// Those of them that ended without any: infra_error and not_run. Others may lack the scores of a metric that does not
    /// apply to them, which is no loss.
    pub(crate) lost: u64,
}

impl Category {
    /// Questions that ended with scores, though a metric need not apply to each of them.
    pub(crate) const fn scored(&self) -> u64 {
        self.asked.saturating_sub(self.lost)
    }
}

/// How the run's totals of a metric are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub(crate) estimator: Estimator,
    /// In which direction its scores are better.
    pub(crate) better: Better,
    /// Chance decided which questions of a category are in the sample, so that it says something about the others.
    pub(crate) by_chance: bool,
    /// All questions of the categories are in the sample.
    pub(crate) census: bool,
}

/// A stratum with its cells, and with those of strata that are too small to be told apart from it.
#[derive(Default)]
pub(crate) struct Used<'a> {
    pub(crate) population: Option<u64>,
    lost: u64,
    scored: u64,
    pub(crate) cells: Vec<&'a Cell>,
}

impl Used<'_> {
    fn tally(&self) -> Tally {
        Tally::merged(self.cells.iter().copied())
    }

    /// Questions of the whole dataset that a metric applies to, where that is the same part of them as of those that ended with
    /// scores: exactly the population where it applies to all of these.
    pub(crate) fn applies_to(&self) -> Option<f64> {
        self.share_of_population(self.tally().n, self.scored)
    }

    /// The same part of the population as `n` are of `all`.
    fn share_of_population(&self, n: u64, all: u64) -> Option<f64> {
        Some(share_of(self.population?, n, all))
    }
}

/// The same part of a population as `n` are of `all`, which are at least as many.
pub(crate) fn share_of(population: u64, n: u64, all: u64) -> f64 {
    population as f64 * n as f64 / all.max(n).max(1) as f64
}

/// The strata as far as their scores can be told apart.
pub(crate) fn used<'a>(cells: &'a [Cell], categories: &[Category]) -> Vec<Used<'a>> {
    let of = |category: &Category| of_stratum(cells, category.number);
    let counts: Vec<(&str, u64)> =
        categories.iter().map(|category| (category.name.as_str(), Tally::merged(of(category)).n)).collect();
    let mut places: BTreeMap<usize, Used<'a>> = BTreeMap::new();
    for (category, with) in categories.iter().zip(joined(&counts)) {
        let used = places.entry(with).or_insert_with(|| Used { population: Some(0), ..Used::default() });
        used.population = used.population.zip(category.population).map(|(sum, of_stratum)| sum + of_stratum);
        used.lost += category.lost;
        used.scored += category.scored();
        used.cells.extend(of(category));
    }
    places.into_values().collect()
}

/// A total over some categories with its intervals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: Option<f64>,
    pub(crate) n: u64,
    /// Questions that ended with scores and that the metric does not apply to.
    pub(crate) without_figure: u64,
    pub(crate) population: Option<u64>,
    pub(crate) clusters: usize,
    pub(crate) ci95: Option<Interval>,
    pub(crate) ci95_note: Option<String>,
    /// The cluster-robust t interval that `ci95` holds.
    pub(crate) t_ci95: Option<Interval>,
    pub(crate) naive_ci95: Option<Interval>,
    pub(crate) benchmark_ci95: Option<Interval>,
    pub(crate) benchmark_note: Option<String>,
    pub(crate) strict: Option<f64>,
    /// What the bootstrap needs.
    pub(crate) design: Option<Design>,
}

impl Estimate {
    /// Value and intervals, without what belongs to a headline.
    pub(crate) fn plain(self) -> FacetScore {
        FacetScore {
            n: self.n,
            value: self.value,
            clusters: self.clusters as u64,
            ci95: self.ci95,
            ci95_note: self.ci95_note,
            naive_ci95: self.naive_ci95,
        }
    }
}

/// N_h, n_h and s_h² of a stratum that has scores, all of questions that the metric applies to.
struct StratumFigures {
    weight: f64,
    population: f64,
    tally: Tally,
}

/// Estimates the total of `categories` from all `cells` of a metric.
pub(crate) fn estimate(cells: &[Cell], categories: &[Category], sampling: Sampling) -> Estimate {
    let used = used(cells, categories);
    let scored: Vec<&Used<'_>> = used.iter().filter(|used| !used.cells.is_empty()).collect();
    let all = Tally::merged(scored.iter().flat_map(|used| used.cells.iter().copied()));
    let figures = stratum_figures(&scored);
    let design = match (sampling.estimator, &figures) {
        _ if scored.is_empty() => None,
        (Estimator::Mean, _) => {
            Some(Design::mean(&scored.iter().flat_map(|used| used.cells.iter().copied()).collect::<Vec<_>>()))
        }
        (Estimator::Weighted, Some(figures)) => {
            let strata = figures.iter().zip(&scored).map(|(figure, used)| (figure.weight, used.cells.clone()));
            Some(Design::new(&strata.collect::<Vec<_>>()))
        }
        (Estimator::Weighted, None) => None,
    };
    let naive_ci95 = match (sampling.estimator, &figures, &design) {
        (_, _, None) => None,
        (Estimator::Mean, _, _) => naive_of_mean(&all),
        // of one and the same verdict everywhere Wilson says as much of a weighted score
        (Estimator::Weighted, _, _) if all.binary && all.min == all.max => naive_of_mean(&all),
        (Estimator::Weighted, Some(figures), Some(design)) => stratified(design.estimate(), figures, false).ok(),
        (Estimator::Weighted, None, _) => None,
    };
    let t_ci95 = design.as_ref().and_then(|design| cluster_t(design, sampling.estimator));
    let (ci95, ci95_note) = match &design {
        Some(design) => clustered(design, t_ci95.as_ref(), naive_ci95.as_ref()),
        None => (None, Some("no question has a score".to_owned())),
    };
    let benchmark = match (&figures, &design) {
        _ if sampling.census => Err("full run: only judge and model noise is left, which needs repeats".to_owned()),
        _ if sampling.estimator != Estimator::Weighted || !sampling.by_chance => {
            Err("not an estimate of the full score".to_owned())
        }
        (Some(figures), Some(design)) => stratified(design.estimate(), figures, true),
        _ => Err("no question has a score".to_owned()),
    };
    let (benchmark_ci95, benchmark_note) = match benchmark {
        Ok(interval) => (Some(interval), None),
        Err(reason) => (None, Some(reason)),
    };
    Estimate {
        value: match sampling.estimator {
            Estimator::Mean => all.mean(),
            Estimator::Weighted => design.as_ref().map(Design::estimate),
        },
        n: all.n,
        without_figure: categories.iter().map(Category::scored).sum::<u64>().saturating_sub(all.n),
        population: categories.iter().try_fold(0, |all: u64, c| Some(all.saturating_add(c.population?))),
        clusters: design.as_ref().map_or(0, |design| design.clusters),
        ci95,
        ci95_note,
        t_ci95,
        naive_ci95,
        benchmark_ci95,
        benchmark_note,
        strict: strict(&used, sampling),
        design,
    }
}

/// Weights N_h / N over the strata that have scores, of the questions that the metric applies to; `None` when a population is not
/// known.
fn stratum_figures(scored: &[&Used<'_>]) -> Option<Vec<StratumFigures>> {
    let total: f64 = scored.iter().map(|used| used.applies_to()).sum::<Option<f64>>()?;
    let figure = |used: &&Used<'_>| {
        let population = used.applies_to()?;
        Some(StratumFigures { weight: population / total, population, tally: used.tally() })
    };
    scored.iter().map(figure).collect()
}

/// infra_error and not_run as the worst score, which is 0 unless lower is better. In the denominator is every question of the
/// sample but those that ended and to which the metric does not apply.
fn strict(used: &[Used<'_>], sampling: Sampling) -> Option<f64> {
    let worst = match sampling.better {
        Better::Higher => 0.0,
        Better::Lower => 1.0,
    };
    // sum, number, and the questions of the dataset that these stand for: as in the value, where nothing is lost
    let with_lost = |used: &Used<'_>| {
        let tally = used.tally();
        let n = tally.n + used.lost;
        (tally.sum + used.lost as f64 * worst, n, used.share_of_population(n, used.scored + used.lost))
    };
    let strata: Vec<_> = used.iter().map(with_lost).filter(|(_, n, _)| *n > 0).collect();
    match sampling.estimator {
        Estimator::Mean => {
            let n: u64 = strata.iter().map(|(_, n, _)| n).sum();
            (n > 0).then(|| strata.iter().map(|(sum, ..)| sum).sum::<f64>() / n as f64)
        }
        Estimator::Weighted => {
            let total: f64 = strata.iter().map(|(.., population)| *population).sum::<Option<f64>>()?;
            let part =
                |(sum, n, population): &(f64, u64, Option<f64>)| population.unwrap_or(0.0) / total * sum / *n as f64;
            (total > 0.0).then(|| strata.iter().map(part).sum())
        }
    }
}

/// Questions taken as independent: Wilson for shares, Student's t for graded scores.
fn naive_of_mean(all: &Tally) -> Option<Interval> {
    let (n, mean) = (all.n as f64, all.mean()?);
    if all.binary {
        return Some(wilson(all.sum, n));
    }
    let (error, least) = ((all.variance()? / n).sqrt(), least_error(n));
    let half = t_quantile(n - 1.0) * error.max(least);
    Some(symmetric(mean, half, format!("t, {} df{}", all.n - 1, if error < least { LEAST } else { "" })))
}

/// Σ (N_h / N)² · s_h² / n_h, with the last factor (1 − n_h / N_h) when `finite`; Student's t with n − H degrees of freedom.
/// A stratum with a single score is taken to vary as the others do within theirs, and none is taken for more sure than as many
/// equal scores are ([`least_error`]).
fn stratified(value: f64, figures: &[StratumFigures], finite: bool) -> Result<Interval, String> {
    let spreads = || figures.iter().filter_map(|figure| Some((figure.tally.n - 1, figure.tally.variance()?)));
    let scores = spreads().map(|(freedom, _)| freedom).sum::<u64>();
    let pooled = (scores > 0).then(|| spreads().map(|(freedom, s)| freedom as f64 * s).sum::<f64>() / scores as f64);
    let (mut variance, mut whole, mut agree) = (0.0, true, false);
    for StratumFigures { weight, population, tally } in figures {
        let n = tally.n as f64;
        let missing = if finite { (1.0 - n / population).max(0.0) } else { 1.0 };
        if missing > 0.0 {
            whole = false;
            let spread = tally.variance().or(pooled).ok_or(SINGLE_SCORES)? / n;
            let least = least_error(n).powi(2);
            agree |= spread < least;
            variance += weight * weight * spread.max(least) * missing;
        }
    }
    let freedom = figures.iter().map(|figure| figure.tally.n).sum::<u64>().saturating_sub(figures.len() as u64).max(1);
    if whole {
        return Err("every question of the dataset was asked: nothing of it is left to chance".to_owned());
    }
    let kind = if finite { "stratified t, finite population" } else { "stratified t" };
    let method = format!("{kind}, {freedom} df{}", if agree { LEAST } else { "" });
    Ok(symmetric(value, t_quantile(freedom as f64) * variance.sqrt(), method))
}

/// "Conversations like these": an interval and a note.
///
/// It reaches as far as Student's t with G − 1 degrees of freedom on the cluster-robust error, and as far as the likelihood of
/// the banks' scores ([`likelihood`]): the first is narrow near 0 and 1, where the error goes with the mean, and where few
/// banks happen to agree.
fn clustered(design: &Design, t: Option<&Interval>, naive: Option<&Interval>) -> (Option<Interval>, Option<String>) {
    let g = design.clusters;
    if g < FEWEST_CLUSTERS {
        return (None, Some(format!("needs at least {FEWEST_CLUSTERS} banks, has {g}")));
    }
    let few = (g < FEW_CLUSTERS).then(|| format!("only {g} banks: read with care"));
    if design.one_score_per_cluster {
        let none = naive.is_none().then(|| SINGLE_SCORES.to_owned());
        return (naive.cloned(), none.or(few));
    }
    let error = design.cluster_variance().unwrap_or(0.0).sqrt();
    let Reach { low, high, method } = likelihood::reach(design, error);
    let interval = match t {
        Some(t) => {
            let method = format!("{method}, joined with {}", t.method);
            Interval { low: t.low.min(low), high: t.high.max(high), method }
        }
        // the banks do not differ, and likelihood says how far others could
        None => Interval { low, high, method: method.to_owned() },
    };
    (Some(interval), few)
}

/// Student's t with G − 1 degrees of freedom on the cluster-robust error; `None` for too few banks, and where none differs from
/// another.
fn cluster_t(design: &Design, estimator: Estimator) -> Option<Interval> {
    if design.clusters < FEWEST_CLUSTERS {
        return None;
    }
    let variance = design.cluster_variance().filter(|variance| *variance > NO_SPREAD)?;
    let freedom = design.clusters - 1;
    let kind = match estimator {
        Estimator::Mean => "cluster-robust t",
        Estimator::Weighted => "cluster-robust t, linearised",
    };
    let half = t_quantile(freedom as f64) * variance.sqrt();
    Some(symmetric(design.estimate(), half, format!("{kind}, {freedom} df")))
}

/// All totals of one metric: figures for each category, totals over those that count.
pub(crate) fn metric_score(
    metric: &str,
    cells: &[Cell],
    (categories, counted): (&[Category], &[Category]),
    sampling: Sampling,
    scale: Scale,
) -> MetricScore {
    let total = estimate(cells, counted, sampling);
    let all = Tally::merged(counted.iter().flat_map(|category| of_stratum(cells, category.number)));
    let by_category: Vec<CategoryScore> =
        categories.chunk_by(|a, b| a.name == b.name).map(|strata| category_score(cells, strata)).collect();
    let counts = |score: &&CategoryScore| counted.iter().any(|category| category.name == score.category);
    let values: Vec<f64> = by_category.iter().filter(counts).filter_map(|category| category.value).collect();
    let weighted = Sampling { estimator: Estimator::Weighted, ..sampling };
    MetricScore {
        metric: metric.to_owned(),
        micro: all.mean(),
        macro_: (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
        weighted: if sampling.census && all.n == counted.iter().map(|c| c.asked).sum::<u64>() {
            all.mean() // the same number by definition: no second rounding
        } else {
            estimate(cells, counted, weighted).value
        },
        ci95: total.ci95,
        naive_ci95: total.naive_ci95,
        n: all.n,
        pass_rate: (all.n > 0).then(|| all.passed as f64 / all.n as f64),
        pass_threshold: scale.threshold,
        pass_beyond: scale.beyond,
        better: scale.better,
        by_category,
        by_facet: BTreeMap::new(),
    }
}

/// A plain mean by clusters.
const PLAIN_MEAN: Sampling =
    Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: false };

/// One metric in one category, given its strata: a plain mean by clusters.
fn category_score(cells: &[Cell], strata: &[Category]) -> CategoryScore {
    let total = estimate(cells, strata, PLAIN_MEAN);
    let tally = Tally::merged(strata.iter().flat_map(|stratum| of_stratum(cells, stratum.number)));
    CategoryScore {
        category: strata.first().map(|stratum| stratum.name.clone()).unwrap_or_default(),
        n: total.n,
        population: total.population,
        value: total.value,
        min: total.value.map(|_| tally.min),
        max: total.value.map(|_| tally.max),
        clusters: total.clusters as u64,
        ci95: total.ci95,
        ci95_note: total.ci95_note,
        naive_ci95: total.naive_ci95,
    }
}

/// One metric over the questions of each value of a facet, in the order of `values`: plain means by clusters. Cells are those of
/// the values.
pub(crate) fn facet_scores(cells: &[Cell], values: &[String]) -> BTreeMap<String, FacetScore> {
    let score = |(number, name): (u32, &String)| {
        let value = Category { number, name: name.clone(), population: None, asked: 0, lost: 0 };
        let total = estimate(cells, &[value], PLAIN_MEAN);
        (name.clone(), total.plain())
    };
    (0..).zip(values).map(score).collect()
}

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod edges;
#[cfg(test)]
mod tests;
