//! An estimate as a weighted sum of stratum means, seen as a sum over clusters.
//!
//! A plain mean is one stratum with weight 1; the weighted score has one stratum per category with weight N_h / N. The
//! linearised value of a question is (weight / n_h) · (s_i − mean_h), and with one stratum the variance below is the
//! formula of the mean: (G / (G − 1)) · (1 / n²) · Σ_g (Σ_{i∈g} (s_i − s̄))².

use crate::{
    cells::{Cell, Tally},
    interval::least_error,
};

/// Variances that differ by a smaller part are the same.
const ROUNDING: f64 = 1e-9;

/// The scores of one stratum in one cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StratumCell {
    /// Dense number of the cluster within the design.
    pub(crate) cluster: usize,
    pub(crate) n: f64,
    pub(crate) sum: f64,
}

/// A stratum with at least one score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stratum {
    /// Share of the stratum in the estimate; the weights of a design sum to 1.
    pub(crate) weight: f64,
    pub(crate) n: f64,
    pub(crate) mean: f64,
    /// Unbiased variance of single scores; `None` for one score.
    variance: Option<f64>,
    pub(crate) cells: Vec<StratumCell>,
}

/// What one cluster says of the estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClusterMean {
    /// Its part of the estimate; the weights of a design sum to 1.
    pub(crate) weight: f64,
    /// The estimate, moved by how this cluster's scores differ from those of their strata.
    pub(crate) mean: f64,
}

/// All strata of an estimate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Design {
    pub(crate) strata: Vec<Stratum>,
    /// G, the number of clusters.
    pub(crate) clusters: usize,
    /// No cluster has more than one score.
    pub(crate) one_score_per_cluster: bool,
}

impl Design {
    /// The plain mean over all `cells`.
    pub(crate) fn mean(cells: &[&Cell]) -> Self {
        Self::new(&[(1.0, cells.to_vec())])
    }

    /// Strata with weights that sum to 1; strata without scores must have been left out.
    pub(crate) fn new(strata: &[(f64, Vec<&Cell>)]) -> Self {
        let mut names: Vec<u32> = strata.iter().flat_map(|(_, cells)| cells.iter().map(|cell| cell.cluster)).collect();
        names.sort_unstable();
        names.dedup();
        let mut per_cluster = vec![0_u64; names.len()];
        let strata = strata.iter().map(|(weight, cells)| {
            let mut dense: Vec<StratumCell> = cells
                .iter()
                .map(|cell| {
                    let cluster = names.partition_point(|name| *name < cell.cluster);
                    per_cluster[cluster] += cell.tally.n;
                    StratumCell { cluster, n: cell.tally.n as f64, sum: cell.tally.sum }
                })
                .collect();
            // cells of several categories in one bank become one
            dense.sort_by_key(|cell| cell.cluster);
            dense.dedup_by(|next, first| {
                let same = next.cluster == first.cluster;
                if same {
                    first.n += next.n;
                    first.sum += next.sum;
                }
                same
            });
            let all = Tally::merged(cells.iter().copied());
            let mean = all.mean().unwrap_or(0.0);
            Stratum { weight: *weight, n: all.n as f64, mean, variance: all.variance(), cells: dense }
        });
        let strata = strata.collect();
        let one_score_per_cluster = per_cluster.iter().all(|n| *n == 1);
        Self { strata, clusters: names.len(), one_score_per_cluster }
    }

    /// Σ weight · mean.
    pub(crate) fn estimate(&self) -> f64 {
        self.strata.iter().map(|stratum| stratum.weight * stratum.mean).sum()
    }

    /// Cluster-robust variance of the estimate: (G / (G − 1)) · Σ_g (Σ_{i∈g} u_i)². Needs two clusters.
    pub(crate) fn cluster_variance(&self) -> Option<f64> {
        if self.clusters < 2 {
            return None;
        }
        let g = self.clusters as f64;
        let totals = self.per_cluster(|stratum, cell| cell.sum - cell.n * stratum.mean);
        Some(g / (g - 1.0) * totals.iter().map(|total| total * total).sum::<f64>())
    }

    /// Variance of the estimate if questions were independent: Σ weight² · s² / n. A stratum with a single score is taken to
    /// vary as the others do within theirs.
    pub(crate) fn independent_variance(&self) -> f64 {
        let pooled = self.pooled_variance();
        let of = |stratum: &Stratum| stratum.weight.powi(2) * stratum.variance.unwrap_or(pooled) / stratum.n;
        self.strata.iter().map(of).sum()
    }

    /// Variance of single scores within the strata that have several.
    fn pooled_variance(&self) -> f64 {
        let spreads = || self.strata.iter().filter_map(|stratum| Some((stratum.n - 1.0, stratum.variance?)));
        let freedom: f64 = spreads().map(|(freedom, _)| freedom).sum();
        spreads().map(|(freedom, spread)| freedom * spread).sum::<f64>() / freedom.max(1.0)
    }

    /// The same with no stratum more sure than as many equal scores would be ([`least_error`]): that the few scores of one agree
    /// is no proof that all others do.
    pub(crate) fn cautious_variance(&self) -> f64 {
        let pooled = self.pooled_variance();
        let of = |stratum: &Stratum| {
            let least = least_error(stratum.n).powi(2);
            stratum.weight.powi(2) * (stratum.variance.unwrap_or(pooled) / stratum.n).max(least)
        };
        self.strata.iter().map(of).sum()
    }

    /// Scores vary no more than one other verdict among those of each stratum would make them: its standard error is 1 / n.
    pub(crate) fn hardly_varies(&self) -> bool {
        let of_one = |stratum: &Stratum| (stratum.weight / stratum.n).powi(2);
        self.independent_variance() <= self.strata.iter().map(of_one).sum::<f64>() * (1.0 + ROUNDING)
    }

    /// The number of equally weighted questions that say as much: 1 / Σ weight² / n (Kish 1965).
    pub(crate) fn effective_questions(&self) -> f64 {
        1.0 / self.strata.iter().map(|stratum| stratum.weight.powi(2) / stratum.n).sum::<f64>()
    }

    /// What each cluster says of the estimate.
    pub(crate) fn banks(&self) -> Vec<ClusterMean> {
        let estimate = self.estimate();
        let weights = self.per_cluster(|_, cell| cell.n);
        let moved = self.per_cluster(|stratum, cell| cell.sum - cell.n * stratum.mean);
        let of = |(weight, moved): (f64, f64)| ClusterMean { weight, mean: estimate + moved / weight };
        weights.into_iter().zip(moved).map(of).collect()
    }

    /// Sums over the questions of each cluster of a figure, each times weight / n of its stratum.
    fn per_cluster(&self, figure: impl Fn(&Stratum, &StratumCell) -> f64) -> Vec<f64> {
        let mut totals = vec![0.0; self.clusters];
        for stratum in &self.strata {
            let scale = stratum.weight / stratum.n;
            for cell in &stratum.cells {
                totals[cell.cluster] += scale * figure(stratum, cell);
            }
        }
        totals
    }
}
