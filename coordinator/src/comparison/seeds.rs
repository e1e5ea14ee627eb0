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
    /// Numbers of its cells that may not be used.
    invalid: Vec<u32>,
    /// Why it has no interval and decides nothing: cells of it may not be used, or its seeds are not independent of each other.
    undecided: Option<String>,
}

/// The groups of cells that differ in the seed alone, and all pairs of them.
pub(super) fn seeds(cells: &[CellRows], told: &[&MatrixCell]) -> (Vec<SeedGroup>, Vec<SeedPair>) {
    let mut groups: Vec<OfSeeds<'_>> = Vec::new();
    for (cell, told) in cells.iter().zip(told) {
        let mut values = cell.values.clone();
        let (Some(seed), Some(value), Some(run)) = (values.remove(SEED_AXIS), told.value, cell.runs.first()) else {
            continue;
        };
        let place = groups.iter().position(|of| of.group.values == values && of.group.metric == told.metric);
        let place = place.unwrap_or_else(|| {
            groups.push(OfSeeds::new(values, &told.metric, told.better));
            groups.len() - 1
        });
        if let Some(of) = groups.get_mut(place) {
            of.group.of_seeds.push(SeedScore { seed, cell: cell.number, value });
            of.data.push(&run.spec.dataset);
            of.invalid.extend((!told.is_valid()).then_some(cell.number));
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
        Self { group, data: Vec::new(), better, invalid: Vec::new(), undecided: None }
    }

    /// Sets its figures.
    fn tell(&mut self) {
        let values: Vec<f64> = self.group.of_seeds.iter().map(|score| score.value).collect();
        self.undecided = of_invalid(&self.invalid).or_else(|| share_dialogues(&self.group.of_seeds, &self.data));
        let Some(spread) = spread(&values, "seeds") else { return };
        (self.group.mean, self.group.sd) = (Some(spread.mean), spread.sd);
        self.group.ci95 = spread.ci95.filter(|_| self.undecided.is_none());
        self.group.note = match &self.group.ci95 {
            Some(_) => None,
            None if self.undecided.is_some() => self.undecided.clone(),
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

/// Why a group with cells that may not be used decides nothing.
fn of_invalid(cells: &[u32]) -> Option<String> {
    let numbers: Vec<String> = cells.iter().map(u32::to_string).collect();
    let (which, what) = match cells {
        [] => return None,
        [_] => ("cell", "is INVALID: what it has scored decides nothing"),
        _ => ("cells", "are INVALID: what they have scored decides nothing"),
    };
    Some(format!("{which} {} {what}", numbers.join(", ")))
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
            let undecided = first.undecided.as_ref().or(second.undecided.as_ref());
            let difference = match undecided {
                Some(_) => SeedDifference { ci95: None, p_value: None, ..difference },
                None => difference,
            };
            let note = match &difference.ci95 {
                Some(_) => None,
                None if undecided.is_some() => undecided.cloned(),
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

#[cfg(test)]
mod tests {
    use bench_proto::{comparison::Word, spec::RunSpec};

    use super::*;

    /// A group whose cells are numbered from `first`, by the score of each seed.
    fn group<'a>(system: &str, first: u32, scores: [f64; 4], data: &'a [DatasetSpec], invalid: &[u32]) -> OfSeeds<'a> {
        let values = [("system".to_owned(), system.to_owned())].into();
        let mut of = OfSeeds::new(values, "judge", Better::Higher);
        for (cell, (value, data)) in (first..).zip(scores.into_iter().zip(data)) {
            of.group.of_seeds.push(SeedScore { seed: data.sha256.clone(), cell, value });
            of.data.push(data);
        }
        of.invalid.extend(invalid);
        of.tell();
        of
    }

    #[test]
    fn what_an_invalid_cell_has_scored_decides_nothing() {
        let golden = include_str!("../../../proto/golden/run_spec.v1.json");
        let spec: RunSpec = serde_json::from_str(golden).expect("a spec");
        let data: Vec<DatasetSpec> =
            (1..=4).map(|seed| DatasetSpec { sha256: seed.to_string(), ..spec.dataset.clone() }).collect();
        let of = |invalid: &[u32]| {
            let good = group("good", 1, [0.81, 0.83, 0.80, 0.82], &data, &[]);
            let poor = group("poor", 5, [0.41, 0.40, 0.43, 0.42], &data, &[]);
            let broken = group("broken", 9, [0.01, 0.03, 0.02, 0.00], &data, invalid);
            let told = pairs(&[good, poor, broken]);
            (told, group("broken", 9, [0.01, 0.03, 0.02, 0.00], &data, invalid).group)
        };
        let (all, valid) = of(&[]);
        assert!(valid.ci95.is_some() && all.iter().all(|pair| pair.verdict == Word::Worse), "{all:?}");
        let (told, broken) = of(&[10]);
        assert_eq!((broken.mean, broken.ci95.is_none()), (valid.mean, true));
        let why = Some("cell 10 is INVALID: what it has scored decides nothing".to_owned());
        assert_eq!(broken.note, why);
        for pair in told.iter().filter(|pair| pair.b == 3) {
            let said = (&pair.ci95, pair.p_value, pair.p_holm, pair.verdict);
            assert_eq!(said, (&None, None, None, Word::Inconclusive));
            assert_eq!((&pair.note, pair.difference.is_some()), (&why, true));
        }
        // one pair is left, and is corrected for no other
        assert_eq!((told[0].verdict, told[0].p_holm), (Word::Worse, told[0].p_value));
        assert!(all[0].p_holm > all[0].p_value, "{all:?}");
        assert!(of(&[10, 11]).1.note.is_some_and(|note| note.starts_with("cells 10, 11 are INVALID")));
    }
}
