//! Cells of a matrix that differ in the seed of a generated dataset alone: their mean, and pairs of such groups seed by seed.
//!
//! A seed makes a dataset of its own, so that scores of different seeds are never compared question by question. Each seed is one
//! figure, and how these vary is what further seeds would do.

use bench_aggregate::repeats::{
    seeds::{SeedDifference, in_view_of_all, over_seeds},
    spread,
};
use bench_proto::{
    matrix::{MatrixCell, SEED_AXIS, SeedGroup, SeedPair, SeedScore},
    metric::Better,
    spec::DatasetSpec,
};

use crate::standing::group::CellRows;

/// Why one figure has no interval.
const SINGLE: &str = "a single seed says nothing of others";

/// A group with what its seeds made.
struct OfSeeds<'a> {
    group: SeedGroup,
    /// In the order of its scores.
    data: Vec<&'a DatasetSpec>,
    better: Better,
    /// Why its seeds are not independent of each other.
    shared: Option<String>,
}

/// The groups of cells that differ in the seed alone, and all pairs of them. With each cell goes the direction in which its metric is
/// better.
pub(super) fn seeds(cells: &[CellRows], told: &[(&MatrixCell, Better)]) -> (Vec<SeedGroup>, Vec<SeedPair>) {
    let mut groups: Vec<OfSeeds<'_>> = Vec::new();
    for (cell, (told, better)) in cells.iter().zip(told) {
        let mut values = cell.values.clone();
        let (Some(seed), Some(value), Some(run)) = (values.remove(SEED_AXIS), told.value, cell.runs.first()) else {
            continue;
        };
        let place = groups.iter().position(|of| of.group.values == values && of.group.metric == told.metric);
        let place = place.unwrap_or_else(|| {
            groups.push(OfSeeds::new(values, &told.metric, *better));
            groups.len() - 1
        });
        if let Some(of) = groups.get_mut(place) {
            of.group.of_seeds.push(SeedScore { seed, cell: cell.number, value });
            of.data.push(&run.spec.dataset);
        }
    }
    groups.iter_mut().for_each(OfSeeds::tell);
    let pairs = pairs(&groups);
    (groups.into_iter().map(|of| of.group).collect(), pairs)
}

impl<'a> OfSeeds<'a> {
    fn new(values: std::collections::BTreeMap<String, String>, metric: &str, better: Better) -> Self {
        let group = SeedGroup {
            values,
            metric: metric.to_owned(),
            of_seeds: Vec::new(),
            mean: None,
            sd: None,
            ci95: None,
            note: None,
        };
        Self { group, data: Vec::new(), better, shared: None }
    }

    /// Sets its figures.
    fn tell(&mut self) {
        let values: Vec<f64> = self.group.of_seeds.iter().map(|score| score.value).collect();
        self.shared = share_dialogues(&self.group.of_seeds, &self.data);
        let Some(spread) = spread(&values, "seeds") else { return };
        (self.group.mean, self.group.sd) = (Some(spread.mean), spread.sd);
        self.group.ci95 = spread.ci95.filter(|_| self.shared.is_none());
        self.group.note = match &self.group.ci95 {
            Some(_) => None,
            None if self.shared.is_some() => self.shared.clone(),
            None if values.len() < 2 => Some(SINGLE.to_owned()),
            None => Some("all seeds have the same score: nothing says how another would differ".to_owned()),
        };
    }

    /// The seeds that another group was asked on too, with the differences: the other's score minus its own.
    fn against(&self, other: &Self) -> (Vec<String>, Vec<f64>) {
        let scores = |of: &Self| of.group.of_seeds.clone().into_iter().zip(of.data.clone());
        let both = scores(self).filter_map(|(own, data)| {
            let is_same = |(score, on): &(SeedScore, &DatasetSpec)| {
                score.seed == own.seed && (&on.name, &on.sha256) == (&data.name, &data.sha256)
            };
            let (score, _) = scores(other).find(is_same)?;
            Some((own.seed, score.value - own.value))
        });
        both.unzip()
    }
}

/// Why the seeds of a group are not independent: a dataset of several dialogues numbers these on from its seed.
fn share_dialogues(scores: &[SeedScore], data: &[&DatasetSpec]) -> Option<String> {
    let dialogues = |dataset: &DatasetSpec| {
        let of = |name: &str| dataset.settings.get(name).and_then(serde_json::Value::as_i64);
        let (first, number) = (of("seed")?, of("seeds")?);
        Some((first, first.saturating_add(number)))
    };
    let all: Vec<(&str, (i64, i64))> = scores
        .iter()
        .zip(data)
        .filter_map(|(score, dataset)| Some((score.seed.as_str(), dialogues(dataset)?)))
        .collect();
    all.iter().enumerate().find_map(|(at, (seed, (first, end)))| {
        let meets = |(_, (other, beyond)): &&(&str, (i64, i64))| other < end && first < beyond;
        let (other, _) = all.iter().skip(at + 1).find(meets)?;
        let number = end - first;
        Some(format!(
            "seeds {seed} and {other} have dialogues in common, as each makes {number} that are numbered on from it: take seeds that lie \
             {number} apart, or `--set horizon.seeds=1`"
        ))
    })
}

/// All pairs of groups with one metric, over the seeds that both have.
fn pairs(groups: &[OfSeeds<'_>]) -> Vec<SeedPair> {
    let (mut told, mut found) = (Vec::new(), Vec::new());
    for (place, (a, first)) in (1..).zip(groups).enumerate() {
        for (b, second) in (1..).zip(groups).skip(place + 1) {
            let (seeds, differences) = first.against(second);
            let Some(difference) = over_seeds(&differences).filter(|_| first.group.metric == second.group.metric)
            else {
                continue;
            };
            let shared = first.shared.as_ref().or(second.shared.as_ref());
            let difference = match shared {
                Some(_) => SeedDifference { ci95: None, p_value: None, ..difference },
                None => difference,
            };
            let note = match &difference.ci95 {
                Some(_) => None,
                None if shared.is_some() => shared.cloned(),
                None if seeds.len() < 2 => Some(SINGLE.to_owned()),
                None => Some("all seeds have the same difference: nothing says how another would differ".to_owned()),
            };
            told.push((a, b, differ_in(&first.group, &second.group), seeds, note));
            found.push((difference, first.better));
        }
    }
    let words = in_view_of_all(&found);
    let pair = |((a, b, differ_in, seeds, note), ((found, _), (p_holm, verdict)))| {
        let SeedDifference { mean, sd, ci95, p_value } = found;
        SeedPair { a, b, differ_in, seeds, difference: Some(mean), sd, ci95, note, p_value, p_holm, verdict }
    };
    told.into_iter().zip(found.into_iter().zip(words)).map(pair).collect()
}

fn differ_in(a: &SeedGroup, b: &SeedGroup) -> Vec<String> {
    let differs = |(axis, value): &(&String, &String)| b.values.get(*axis) != Some(*value);
    a.values.iter().filter(differs).map(|(axis, _)| axis.clone()).collect()
}
