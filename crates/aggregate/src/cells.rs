//! Sums of one metric per (category, bank): all that estimates, variances and the bootstrap need.

use std::collections::HashMap;

use bench_proto::metric::Scale;

/// Number, sums and extremes of some scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tally {
    pub(crate) n: u64,
    pub(crate) sum: f64,
    sum_of_squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// No score but 0 and 1.
    pub(crate) binary: bool,
    /// Scores that pass.
    pub(crate) passed: u64,
}

impl Tally {
    pub(crate) const EMPTY: Self = Self {
        n: 0,
        sum: 0.0,
        sum_of_squares: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        binary: true,
        passed: 0,
    };

    pub(crate) fn add(&mut self, score: f64, scale: Scale) {
        self.n += 1;
        self.sum += score;
        self.sum_of_squares += score * score;
        self.min = self.min.min(score);
        self.max = self.max.max(score);
        self.binary &= score == 0.0 || score == 1.0;
        self.passed += u64::from(scale.passes(score));
    }

    fn merge(mut self, other: &Self) -> Self {
        self.n += other.n;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.binary &= other.binary;
        self.passed += other.passed;
        self
    }

    /// The tally of several cells together.
    pub(crate) fn merged<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        cells.into_iter().fold(Self::EMPTY, |all, cell| all.merge(&cell.tally))
    }

    /// The tally of `n` grades of which `ones` are 1 and the others 0.
    pub(crate) fn of_shares(ones: u64, n: u64) -> Self {
        let (min, max) = (f64::from(u8::from(ones == n)), f64::from(u8::from(ones > 0)));
        Self { n, sum: ones as f64, sum_of_squares: ones as f64, min, max, binary: true, passed: ones }
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| (self.sum / self.n as f64).clamp(self.min, self.max))
    }

    /// Unbiased variance of single scores; `None` for fewer than two.
    pub(crate) fn variance(&self) -> Option<f64> {
        if self.n < 2 {
            return None;
        }
        if self.min == self.max {
            return Some(0.0); // exactly, whatever the sums rounded to
        }
        let n = self.n as f64;
        Some(((self.sum_of_squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0))
    }
}

/// The scores of one stratum in one bank; strata are categories, or parts of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) stratum: u32,
    pub(crate) cluster: u32,
    pub(crate) tally: Tally,
}

/// Groups (stratum, bank, score) into cells, ordered by stratum and bank. Scores are summed in the order given.
pub(crate) fn cells_of(scores: impl Iterator<Item = (u32, u32, f64)>, scale: Scale) -> Vec<Cell> {
    let mut at: HashMap<(u32, u32), usize> = HashMap::new();
    let mut cells: Vec<Cell> = Vec::new();
    for (stratum, cluster, score) in scores {
        let position = *at.entry((stratum, cluster)).or_insert(cells.len());
        if position == cells.len() {
            cells.push(Cell { stratum, cluster, tally: Tally::EMPTY });
        }
        cells[position].tally.add(score, scale);
    }
    cells.sort_unstable_by_key(|cell| (cell.stratum, cell.cluster));
    cells
}

/// The cells of one stratum.
pub(crate) fn of_stratum(cells: &[Cell], stratum: u32) -> &[Cell] {
    let start = cells.partition_point(|cell| cell.stratum < stratum);
    let end = cells.partition_point(|cell| cell.stratum <= stratum);
    &cells[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_grouped_and_ordered() {
        let cells = cells_of([(1, 7, 1.0), (0, 9, 0.25), (1, 7, 0.0), (1, 2, 0.5)].into_iter(), Scale::PLAIN);
        let keys: Vec<_> =
            cells.iter().map(|c| (c.stratum, c.cluster, c.tally.n, c.tally.sum, c.tally.passed)).collect();
        assert_eq!(keys, [(0, 9, 1, 0.25, 0), (1, 2, 1, 0.5, 1), (1, 7, 2, 1.0, 1)]);
        assert_eq!(of_stratum(&cells, 1).len(), 2);
        assert!(of_stratum(&cells, 2).is_empty());
        assert!(cells[2].tally.binary && !cells[0].tally.binary);
    }

    #[test]
    fn variances_match_numpy_and_equal_scores_have_none() {
        let tally = |scores: &[f64]| {
            scores.iter().fold(Tally::EMPTY, |mut t, s| {
                t.add(*s, Scale::PLAIN);
                t
            })
        };
        // numpy: np.var([0.1, 0.4, 0.35, 0.8], ddof=1) = 0.08395833333333334
        let got = tally(&[0.1, 0.4, 0.35, 0.8]).variance().expect("has one");
        assert!((got - 0.083_958_333_333_333_34).abs() < 1e-15);
        assert_eq!(tally(&[0.1; 7]).variance(), Some(0.0));
        assert_eq!(tally(&[0.1; 7]).mean(), Some(0.1));
        assert_eq!(tally(&[0.1]).variance(), None);
    }
}
