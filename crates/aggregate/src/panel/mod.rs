//! What several judges of a run say together: mean and majority of those that grade all questions, which of them stands against the
//! others, how far they lie apart, and what a judge of a sample would have said of all questions.

mod estimator;

use std::collections::BTreeMap;

use bench_proto::{
    metric::{Better, Scale},
    money::PicoUsd,
    summary::{DifferingJudge, Estimator, FacetScore, Interval, JudgeSpread, PanelSummary, SampledJudge},
};

use self::estimator::{Estimates, Helped, Pair, estimates};
use crate::{
    cells::cells_of,
    compare::{
        difference::{Means, paired_difference},
        pairs,
    },
    interval::symmetric,
    questions::{QuestionRow, Questions},
    score::{Category, FEWEST_CLUSTERS, Sampling, estimate, share_of},
    strata::Strata,
};

/// Judges from which one can stand against a majority of others.
const FEWEST_FOR_A_MAJORITY: usize = 3;
/// How verdicts of judges are read.
const VERDICT: Scale = Scale::PLAIN;

/// A panel of judges, with what its figures are made by.
pub(crate) struct Panel<'a> {
    /// Metric of each judge, by its number.
    pub(crate) judges: &'a [String],
    /// Numbers of those that grade a sample.
    pub(crate) sampled: Vec<u32>,
    /// What each judge has cost, as if nothing had been cached.
    pub(crate) usd: &'a BTreeMap<u32, PicoUsd>,
    pub(crate) questions: &'a Questions,
    pub(crate) strata: &'a Strata,
    /// The strata that count.
    pub(crate) counted: &'a [Category],
    pub(crate) sampling: Sampling,
}

impl Panel<'_> {
    /// What is said of it; nothing of a single judge.
    pub(crate) fn summary(&self) -> Option<PanelSummary> {
        if self.judges.len() < 2 {
            return None;
        }
        let of_all: Vec<usize> = (0..self.judges.len()).filter(|judge| !self.is_sampled(*judge)).collect();
        let rows = self.rows();
        let several = of_all.len() > 1;
        let summary = PanelSummary {
            mean: several.then(|| self.score(&rows, &of_all, mean)),
            majority: (of_all.len() >= FEWEST_FOR_A_MAJORITY).then(|| self.score(&rows, &of_all, majority)),
            spread: several.then(|| self.spread(&rows, &of_all)).flatten(),
            differing: match of_all.len() {
                FEWEST_FOR_A_MAJORITY.. => of_all.iter().map(|judge| self.differing(&rows, *judge, &of_all)).collect(),
                _ => Vec::new(),
            },
            sampled: of_all.first().map_or_else(Vec::new, |first| self.of_samples(&rows, *first)),
        };
        (summary != PanelSummary::default()).then_some(summary)
    }

    fn is_sampled(&self, judge: usize) -> bool {
        self.sampled.iter().any(|sampled| *sampled as usize == judge)
    }

    /// Questions in byte order of their ids, each with the grades of the judges.
    fn rows(&self) -> Vec<(&QuestionRow, Vec<Option<f64>>)> {
        let mut rows: Vec<(&QuestionRow, Vec<Option<f64>>)> = Vec::new();
        for (judge, metric) in self.judges.iter().enumerate() {
            let mut place = 0;
            for (row, score) in self.questions.by_metric(metric) {
                while rows.get(place).is_some_and(|(known, _)| known.id < row.id) {
                    place += 1;
                }
                if rows.get(place).is_none_or(|(known, _)| known.id != row.id) {
                    rows.insert(place, (row, vec![None; self.judges.len()]));
                }
                if let Some(grade) = rows.get_mut(place).and_then(|(_, grades)| grades.get_mut(judge)) {
                    *grade = Some(score);
                }
            }
        }
        rows
    }

    /// A figure of the grades of some judges, over the questions that all of them graded.
    fn score(
        &self,
        rows: &[(&QuestionRow, Vec<Option<f64>>)],
        judges: &[usize],
        figure: fn(&[f64]) -> f64,
    ) -> FacetScore {
        let scores = rows.iter().filter_map(|(row, grades)| {
            let grades = judges.iter().map(|judge| grades[*judge]).collect::<Option<Vec<f64>>>()?;
            Some((self.strata.of_kind(row.kind)?, row.bank, figure(&grades)))
        });
        estimate(&cells_of(scores, VERDICT), self.counted, self.sampling).plain()
    }

    /// The highest less the lowest score of some judges, with the interval of their paired difference.
    fn spread(&self, rows: &[(&QuestionRow, Vec<Option<f64>>)], judges: &[usize]) -> Option<JudgeSpread> {
        let counts = |kind: u32| {
            let stratum = self.strata.of_kind(kind);
            stratum.is_some_and(|stratum| self.counted.iter().any(|category| category.number == stratum))
        };
        let graded: Vec<_> = rows
            .iter()
            .filter(|(row, grades)| counts(row.kind) && judges.iter().all(|judge| grades[*judge].is_some()))
            .collect();
        let pairs = |low: usize, high: usize| -> Vec<pairs::Pair> {
            let pair = |(row, grades): &&(&QuestionRow, Vec<Option<f64>>)| {
                Some(pairs::Pair { a: grades[low]?, b: grades[high]?, cluster: row.bank, kind: row.kind })
            };
            graded.iter().filter_map(pair).collect()
        };
        let means = Means { estimator: self.sampling.estimator, better: Better::Higher, strata: self.strata };
        let score = |judge: usize| Some(means.design(&pairs(judge, judge), |pair| pair.a)?.estimate());
        let mut scores = judges.iter().map(|judge| Some((*judge, score(*judge)?))).collect::<Option<Vec<_>>>()?;
        scores.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ((low, _), (high, _)) = (scores.first()?, scores.last()?);
        let apart = paired_difference(&means, &pairs(*low, *high), 0.0);
        Some(JudgeSpread {
            value: apart.difference?,
            low_judge: self.judges[*low].clone(),
            high_judge: self.judges[*high].clone(),
            n: apart.n,
            ci95: apart.ci95,
            ci95_note: apart.ci95_note,
        })
    }

    /// How often a judge stands against the majority of the others.
    fn differing(&self, rows: &[(&QuestionRow, Vec<Option<f64>>)], judge: usize, all: &[usize]) -> DifferingJudge {
        let (mut n, mut differs, mut alone) = (0_u64, 0_u64, 0_u64);
        for (_, grades) in rows {
            let others = all.iter().filter(|other| **other != judge);
            let others: Option<Vec<f64>> = others.map(|other| grades[*other]).collect();
            let (Some(own), Some(others)) = (grades[judge], others) else { continue };
            let others = majority(&others);
            if others != 0.0 && others != 1.0 {
                continue;
            }
            let own = VERDICT.passes(own);
            n += 1;
            differs += u64::from(own != (others == 1.0));
            alone += u64::from(own && others == 0.0);
        }
        let share = |count: u64| (n > 0).then(|| count as f64 / n as f64);
        DifferingJudge { metric: self.judges[judge].clone(), n, differs: share(differs), accepts_alone: share(alone) }
    }

    /// Every judge of a sample, helped by one of all questions.
    fn of_samples(&self, rows: &[(&QuestionRow, Vec<Option<f64>>)], helper: usize) -> Vec<SampledJudge> {
        let mut helped: BTreeMap<u32, u64> = BTreeMap::new();
        let helped_rows = rows.iter().filter(|(_, grades)| grades[helper].is_some());
        for stratum in helped_rows.filter_map(|(row, _)| self.strata.of_kind(row.kind)) {
            *helped.entry(stratum).or_default() += 1;
        }
        let counts_for = |category: &Category| {
            let graded = helped.get(&category.number).copied().unwrap_or_default();
            (category.number, weight(self.sampling.estimator, category, graded))
        };
        let weights: BTreeMap<u32, f64> = self.counted.iter().map(counts_for).collect();
        let one = |judge: &u32| {
            let judge = *judge as usize;
            let pair = |(row, grades): &(&QuestionRow, Vec<Option<f64>>)| {
                let stratum = self.strata.of_kind(row.kind).filter(|stratum| weights.contains_key(stratum))?;
                Some(Pair { stratum, bank: row.bank, of_all: grades[helper]?, of_sample: grades[judge] })
            };
            let pairs: Vec<Pair> = rows.iter().filter_map(pair).collect();
            let graded = rows.iter().filter(|(_, grades)| grades[judge].is_some()).count();
            self.sampled_judge((judge, helper), (rows.len(), graded), estimates(&pairs, &weights))
        };
        self.sampled.iter().filter(|judge| (**judge as usize) < self.judges.len()).map(one).collect()
    }

    fn sampled_judge(
        &self,
        (judge, helper): (usize, usize),
        (all, graded): (usize, usize),
        estimates: Option<Estimates>,
    ) -> SampledJudge {
        let cost = |judge: usize| {
            let judge = u32::try_from(judge).unwrap_or(u32::MAX);
            self.usd.get(&judge).map_or(0.0, |usd| usd.usd())
        };
        let metric = |judge: usize| self.judges[judge].clone();
        let empty = SampledJudge {
            metric: metric(judge),
            helped_by: metric(helper),
            n: all as u64,
            sampled: graded as u64,
            clusters: 0,
            weight: 0.0,
            correlation: None,
            value: None,
            ci95: None,
            ci95_note: Some("needs two questions that both judges have graded".to_owned()),
            naive_ci95: None,
            these_ci95: None,
            alone: None,
            alone_ci95: None,
            width: None,
            alone_width: None,
            all_width: None,
            usd: cost(judge) + cost(helper),
            all_usd: if graded == 0 { 0.0 } else { cost(judge) * all as f64 / graded as f64 },
        };
        let Some(Estimates { n, sampled, clusters, helped, alone, all_half, correlation }) = estimates else {
            return empty;
        };
        let around = |at: Helped, half: f64, kind: &str| -> Interval {
            let (value, method) = (at.value.clamp(0.0, 1.0), format!("difference estimator, t, {kind}"));
            symmetric(value, half, method)
        };
        SampledJudge {
            n,
            sampled,
            clusters: clusters as u64,
            weight: helped.lambda,
            correlation,
            value: Some(helped.value.clamp(0.0, 1.0)),
            ci95: helped.half.map(|half| around(helped, half, "the wider of banks and questions")),
            ci95_note: helped.half.is_none().then(|| format!("needs at least {FEWEST_CLUSTERS} banks, has {clusters}")),
            naive_ci95: Some(around(helped, helped.naive_half, "independent questions")),
            these_ci95: Some(around(helped, helped.these_half, "finite population")),
            alone: Some(alone.value.clamp(0.0, 1.0)),
            alone_ci95: alone.half.map(|half| around(alone, half, "the wider of banks and questions")),
            width: helped.half.map(|half| 2.0 * half),
            alone_width: alone.half.map(|half| 2.0 * half),
            all_width: all_half.map(|half| 2.0 * half),
            ..empty
        }
    }
}

/// What a stratum counts for in the headline, so many of its questions being graded: of the dataset's the same part as of those
/// that ended with scores.
fn weight(estimator: Estimator, category: &Category, graded: u64) -> f64 {
    match estimator {
        Estimator::Weighted => share_of(category.population.unwrap_or(category.asked), graded, category.scored()),
        Estimator::Mean => graded as f64,
    }
}

fn mean(grades: &[f64]) -> f64 {
    grades.iter().sum::<f64>() / grades.len() as f64
}

/// 1 or 0 as most of the verdicts are, ½ where there are as many of both.
fn majority(grades: &[f64]) -> f64 {
    let passed = grades.iter().filter(|grade| VERDICT.passes(**grade)).count();
    match (2 * passed).cmp(&grades.len()) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    }
}

#[cfg(test)]
mod tests;
