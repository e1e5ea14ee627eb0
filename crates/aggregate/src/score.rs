//! From cells to the numbers of the report: value, intervals and their reasons, per metric, part and category.

use bench_proto::summary::{CategoryScore, Estimator, Interval, MetricScore};

use crate::{
    cells::{Cell, Tally, of_category},
    design::Design,
    interval::{symmetric, t_quantile, wilson},
};

/// Fewer clusters than this make no interval.
pub(crate) const FEWEST_CLUSTERS: usize = 3;
/// Fewer clusters than this carry a warning.
pub(crate) const FEW_CLUSTERS: usize = 8;

/// A category of the sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Category {
    /// Number in alphabetical order, as in [`Cell::category`].
    pub(crate) number: u16,
    pub(crate) name: String,
    /// N_h: questions of the whole dataset.
    pub(crate) population: Option<u64>,
    /// Questions of the sample, with or without a score.
    pub(crate) asked: u64,
}

/// How the run's totals are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub(crate) estimator: Estimator,
    /// Chance decided which questions of a category are in the sample, so that it says something about the others.
    pub(crate) by_chance: bool,
    /// All questions of the categories are in the sample.
    pub(crate) census: bool,
}

/// A total over some categories with its intervals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: Option<f64>,
    pub(crate) n: u64,
    pub(crate) population: Option<u64>,
    pub(crate) clusters: usize,
    pub(crate) ci95: Option<Interval>,
    pub(crate) ci95_note: Option<String>,
    pub(crate) naive_ci95: Option<Interval>,
    pub(crate) benchmark_ci95: Option<Interval>,
    pub(crate) benchmark_note: Option<String>,
    pub(crate) strict: Option<f64>,
    /// What the bootstrap needs.
    pub(crate) design: Option<Design>,
}

/// N_h, n_h and s_h² of a stratum that has scores.
struct StratumFigures {
    weight: f64,
    population: f64,
    tally: Tally,
}

/// Estimates the total of `categories` from all `cells` of a metric.
pub(crate) fn estimate(cells: &[Cell], categories: &[Category], sampling: Sampling) -> Estimate {
    let used: Vec<(&Category, &[Cell])> = categories.iter().map(|c| (c, of_category(cells, c.number))).collect();
    let scored: Vec<(&Category, &[Cell])> = used.iter().filter(|(_, cells)| !cells.is_empty()).copied().collect();
    let all = Tally::of(scored.iter().flat_map(|(_, cells)| cells.iter()));
    let figures = stratum_figures(&scored);
    let design = match (sampling.estimator, &figures) {
        _ if scored.is_empty() => None,
        (Estimator::Mean, _) => {
            Some(Design::mean(&scored.iter().flat_map(|(_, cells)| cells.iter()).collect::<Vec<_>>()))
        }
        (Estimator::Weighted, Some(figures)) => {
            let strata =
                figures.iter().zip(&scored).map(|(figure, (_, cells))| (figure.weight, cells.iter().collect()));
            Some(Design::new(&strata.collect::<Vec<_>>()))
        }
        (Estimator::Weighted, None) => None,
    };
    let naive_ci95 = match (sampling.estimator, &figures, &design) {
        (_, _, None) => None,
        (Estimator::Mean, _, _) => naive_of_mean(&all),
        (Estimator::Weighted, Some(figures), Some(design)) => stratified(design.estimate(), figures, false).ok(),
        (Estimator::Weighted, None, _) => None,
    };
    let (ci95, ci95_note) = match &design {
        Some(design) => clustered(design, sampling.estimator, naive_ci95.as_ref()),
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
        population: categories.iter().map(|c| c.population).sum(),
        clusters: design.as_ref().map_or(0, |design| design.clusters),
        ci95,
        ci95_note,
        naive_ci95,
        benchmark_ci95,
        benchmark_note,
        strict: strict(&used, sampling.estimator),
        design,
    }
}

/// Weights N_h / N over the categories that have scores; `None` when a population is not known.
fn stratum_figures(scored: &[(&Category, &[Cell])]) -> Option<Vec<StratumFigures>> {
    let total: u64 = scored.iter().map(|(category, _)| category.population).sum::<Option<u64>>()?;
    let figure = |(category, cells): &(&Category, &[Cell])| {
        let population = category.population? as f64;
        Some(StratumFigures { weight: population / total as f64, population, tally: Tally::of(*cells) })
    };
    scored.iter().map(figure).collect()
}

/// infra_error and not_run as 0: every question of the sample is in the denominator.
fn strict(used: &[(&Category, &[Cell])], estimator: Estimator) -> Option<f64> {
    let sum = |cells: &[Cell]| Tally::of(cells).sum;
    match estimator {
        Estimator::Mean => {
            let asked: u64 = used.iter().map(|(category, _)| category.asked).sum();
            (asked > 0).then(|| used.iter().map(|(_, cells)| sum(cells)).sum::<f64>() / asked as f64)
        }
        Estimator::Weighted => {
            let asked: Vec<_> = used.iter().filter(|(category, _)| category.asked > 0).collect();
            let total: u64 = asked.iter().map(|(category, _)| category.population).sum::<Option<u64>>()?;
            let part = |(category, cells): &&(&Category, &[Cell])| {
                category.population.unwrap_or(0) as f64 / total as f64 * sum(cells) / category.asked as f64
            };
            (total > 0).then(|| asked.iter().map(part).sum())
        }
    }
}

/// Questions taken as independent: Wilson for shares, Student's t for graded scores.
fn naive_of_mean(all: &Tally) -> Option<Interval> {
    let (n, mean) = (all.n as f64, all.mean()?);
    if all.binary {
        return Some(wilson(all.sum, n));
    }
    let half = t_quantile(n - 1.0) * (all.variance()? / n).sqrt();
    Some(symmetric(mean, half, format!("t, {} df", all.n - 1)))
}

/// Σ (N_h / N)² · s_h² / n_h, with the last factor (1 − n_h / N_h) when `finite`; Student's t with n − H degrees of freedom.
fn stratified(value: f64, figures: &[StratumFigures], finite: bool) -> Result<Interval, String> {
    let mut variance = 0.0;
    for StratumFigures { weight, population, tally } in figures {
        let n = tally.n as f64;
        let missing = if finite { (1.0 - n / population).max(0.0) } else { 1.0 };
        if missing > 0.0 {
            let spread = tally.variance().ok_or("a category has a single score: its variance is not known")?;
            variance += weight * weight * spread / n * missing;
        }
    }
    let freedom = figures.iter().map(|figure| figure.tally.n).sum::<u64>().saturating_sub(figures.len() as u64).max(1);
    let kind = if finite { "stratified t, finite population" } else { "stratified t" };
    Ok(symmetric(value, t_quantile(freedom as f64) * variance.sqrt(), format!("{kind}, {freedom} df")))
}

/// "Conversations like these": Student's t with G − 1 degrees of freedom on the cluster-robust error, and a note.
fn clustered(design: &Design, estimator: Estimator, naive: Option<&Interval>) -> (Option<Interval>, Option<String>) {
    let g = design.clusters;
    if g < FEWEST_CLUSTERS {
        return (None, Some(format!("needs at least {FEWEST_CLUSTERS} banks, has {g}")));
    }
    let few = (g < FEW_CLUSTERS).then(|| format!("only {g} banks: read with care"));
    if design.one_score_per_cluster {
        return (naive.cloned(), few);
    }
    let variance = design.cluster_variance().unwrap_or(0.0);
    let freedom = g - 1;
    let kind = match estimator {
        Estimator::Mean => "cluster-robust t",
        Estimator::Weighted => "cluster-robust t, linearised",
    };
    let interval =
        symmetric(design.estimate(), t_quantile(freedom as f64) * variance.sqrt(), format!("{kind}, {freedom} df"));
    (Some(interval), few)
}

/// All totals of one metric: figures for each category, totals over those that count.
pub(crate) fn metric_score(
    metric: &str,
    cells: &[Cell],
    (categories, counted): (&[Category], &[Category]),
    sampling: Sampling,
    pass_threshold: f64,
) -> MetricScore {
    let total = estimate(cells, counted, sampling);
    let all = Tally::of(counted.iter().flat_map(|category| of_category(cells, category.number)));
    let by_category: Vec<CategoryScore> = categories.iter().map(|category| category_score(cells, category)).collect();
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
        pass_threshold,
        by_category,
    }
}

/// One metric in one category: a plain mean by clusters.
fn category_score(cells: &[Cell], category: &Category) -> CategoryScore {
    let mean = Sampling { estimator: Estimator::Mean, by_chance: false, census: false };
    let total = estimate(cells, std::slice::from_ref(category), mean);
    let tally = Tally::of(of_category(cells, category.number));
    CategoryScore {
        category: category.name.clone(),
        n: total.n,
        population: category.population,
        value: total.value,
        min: total.value.map(|_| tally.min),
        max: total.value.map(|_| tally.max),
        clusters: total.clusters as u64,
        ci95: total.ci95,
        ci95_note: total.ci95_note,
        naive_ci95: total.naive_ci95,
    }
}

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod tests;
