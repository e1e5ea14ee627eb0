//! The same run several times: the mean, how stable each question is, and what the noise is made of. Pure.
//!
//! [`RepeatTable`] joins the questions of the repeats by id; [`report`] makes figures of it. Every figure that is an average over
//! questions is weighted as the headline is, and has an interval that holds the banks (`crate::score`).
//!
//! | module | question |
//! |---|---|
//! | `table` | which scores has each question, in few bytes? |
//! | `spread` | mean, sample standard deviation and t interval of some figures, one of each run or seed |
//! | [`seeds`] | how far do two systems differ over generated data of several seeds? |
//! | `mean` | the mean over the repeats with its intervals |
//! | `stability` | pass@k, pass^k, noisy questions |
//! | `components` | shares of variance, with intervals |
//! | `halving` | what would half the interval take? |

mod components;
mod halving;
mod mean;
pub mod seeds;
mod spread;
mod stability;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bench_proto::{
    repeats::{Halving, RepeatedQuestion, RepeatsMean, Source, Stability, VarianceShares},
    spec::RunSpec,
    summary::Estimator,
};

pub use self::{
    spread::{Spread, spread},
    table::{RepeatTable, VotesOn},
};
use crate::{
    cells::cells_of,
    score::{Estimate, Sampling, estimate},
    strata::Strata,
};

/// What is known of the repeats beside their scores.
#[derive(Debug, Clone, Copy)]
pub struct Repeated<'a> {
    /// The spec that they share.
    pub spec: &'a RunSpec,
    /// The metric of the scores.
    pub metric: &'a str,
    /// The headline of each run that has ended, in the order of the table.
    pub headlines: &'a [f64],
    /// Each repeat has filled its banks by a filling of its own.
    pub filled_anew: bool,
    /// Filling is computed from the texts alone, so that filling again makes the same memory.
    pub fills_alike: bool,
    /// Who answers draws: a model, or a memory system in a service.
    pub answers_draw: bool,
    /// Who grades by this metric draws: a model.
    pub judges_draw: bool,
    /// Seed of the simulated distributions (`stats.seed`).
    pub seed: u64,
}

/// The figures of a group of repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatFigures {
    /// The mean with its intervals.
    pub mean: RepeatsMean,
    /// Stability of questions.
    pub stability: Stability,
    /// Shares of variance.
    pub variance: VarianceShares,
    /// What half the interval takes.
    pub halving: Halving,
    /// How the mean is made of questions.
    pub estimator: Estimator,
}

/// The mean of some repeats with its intervals, and nothing else of them.
#[must_use]
pub fn mean_of(table: &RepeatTable, of: &Repeated<'_>) -> RepeatsMean {
    Weighing::new(table, of).mean(&table.complete(), of)
}

/// All figures of some repeats.
#[must_use]
pub fn report(table: &RepeatTable, of: &Repeated<'_>) -> RepeatFigures {
    let complete = table.complete();
    let weighing = Weighing::new(table, of);
    let components = components::components(&complete, of);
    let mean = weighing.mean(&complete, of);
    RepeatFigures {
        stability: stability::stability(table, &complete, &weighing, of.spec.metric(of.metric)),
        halving: halving::halving(&complete, components.as_ref().ok(), &mean, weighing.population(of)),
        mean,
        variance: components::shares(&complete, of, components),
        estimator: weighing.sampling.estimator,
    }
}

/// Every question that has a score in each of the repeats, in byte order of their ids.
pub fn questions(table: &RepeatTable) -> impl Iterator<Item = RepeatedQuestion> + '_ {
    let complete = table.complete();
    (0..complete.len()).map(move |place| stability::told(complete.at(place)))
}

/// How averages over questions are made: as the headline is.
pub(crate) struct Weighing {
    strata: Strata,
    sampling: Sampling,
    /// Number of a stratum → questions of it that the metric does not apply to.
    without_figure: BTreeMap<u32, u64>,
}

impl Weighing {
    fn new(table: &RepeatTable, of: &Repeated<'_>) -> Self {
        let sample = &of.spec.sample;
        let planned = sample.by_category.iter().filter(|(_, n)| **n > 0).map(|(name, n)| (name.clone(), *n));
        let strata = Strata::new(&sample.strata, &of.spec.dataset.population, planned, table.kinds());
        let weighted = sample.stratified && !sample.census;
        let sampling = Sampling {
            estimator: if weighted { Estimator::Weighted } else { Estimator::Mean },
            better: of.spec.metric(of.metric).better,
            by_chance: sample.sampler == "hash",
            census: sample.census,
        };
        let mut without_figure: BTreeMap<u32, u64> = BTreeMap::new();
        for stratum in table.without_figure().filter_map(|kind| strata.of_kind(kind)) {
            *without_figure.entry(stratum).or_default() += 1;
        }
        Self { strata, sampling, without_figure }
    }

    /// How many questions a sample is of: those of its categories in the dataset; none of a census.
    fn population(&self, of: &Repeated<'_>) -> Option<f64> {
        let sample = of.spec.sample.by_category.iter().filter(|(_, n)| **n > 0);
        let all = sample.filter_map(|(category, _)| of.spec.dataset.population.get(category));
        (!self.sampling.census).then(|| all.copied().fold(0, u64::saturating_add) as f64)
    }

    /// The mean over the repeats.
    fn mean(&self, complete: &table::Complete<'_>, of: &Repeated<'_>) -> RepeatsMean {
        let of_questions = self.mean_of(complete, |question| question.mean());
        mean::mean(complete, of, &of_questions, self.sampling.census)
    }

    /// The average over questions of a figure of each, with its intervals.
    fn mean_of(&self, complete: &table::Complete<'_>, figure: impl Fn(table::ScoredQuestion<'_>) -> f64) -> Estimate {
        let figures = complete
            .questions()
            .filter_map(|question| Some((self.strata.of_kind(question.kind)?, question.bank, figure(question))));
        let cells = cells_of(figures, bench_proto::metric::Scale::PLAIN);
        // what a question lacks in one of the repeats is told apart, and is no loss of this average
        let mut categories = self.strata.list.clone();
        let mut seen = self.without_figure.clone();
        cells.iter().for_each(|cell| *seen.entry(cell.stratum).or_default() += cell.tally.n);
        for category in &mut categories {
            category.asked = seen.get(&category.number).copied().unwrap_or(0);
        }
        estimate(&cells, &categories, self.sampling)
    }
}

/// Sources that can vary at all in some repeats.
fn varies(of: &Repeated<'_>, source: Source) -> bool {
    match source {
        Source::Bank | Source::Question => true,
        Source::Ingest => !of.fills_alike,
        Source::AnswerDraw => of.answers_draw,
        Source::JudgeDraw => of.judges_draw,
    }
}
