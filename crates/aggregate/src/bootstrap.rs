//! A check on the t interval: the wild cluster bootstrap-t with Rademacher signs.
//!
//! Each draw turns the residuals of whole clusters around (s*_i = mean_h + e_g · (s_i − mean_h), e_g = ±1), estimates
//! anew and studentises with its own cluster-robust error; the 95 % quantile of |t*| takes the place of Student's
//! (Cameron, Gelbach and Miller 2008). Up to [`ENUMERATED`] clusters all 2^G sign vectors are used and nothing is random.

use bench_proto::summary::Interval;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{design::Design, interval::symmetric};

/// Up to this many clusters all sign vectors are enumerated.
pub(crate) const ENUMERATED: usize = 12;
/// Fewer clusters have too few different |t*| (2^(G−1)) for a 95 % quantile.
const FEWEST: usize = 6;
/// With more clusters the t interval needs no check.
const MOST: usize = 1_000;
/// Draws when signs are random.
const DRAWS: usize = 1_999;

/// How far the interval reaches to each side, and how it was made.
pub(crate) struct Wild {
    pub(crate) half_width: f64,
    pub(crate) method: String,
}

/// The interval of a score, or why there is none.
pub(crate) fn wild_cluster_interval(design: &Design, seed: u64) -> Result<Interval, String> {
    let Wild { half_width, method } = wild_cluster_quantile(design, seed)?;
    Ok(symmetric(design.estimate(), half_width, method))
}

/// The 95 % quantile of |t*| times the standard error, or why there is none.
pub(crate) fn wild_cluster_quantile(design: &Design, seed: u64) -> Result<Wild, String> {
    let g = design.clusters;
    if g < FEWEST {
        return Err(format!("needs at least {FEWEST} banks, has {g}"));
    }
    if g > MOST {
        return Err(format!("not made for more than {MOST} banks: the t interval needs no check there"));
    }
    let error = design.cluster_variance().unwrap_or(0.0).sqrt();
    if error == 0.0 {
        return Err("all banks agree: nothing to draw from".to_owned());
    }
    let mut sizes = if g <= ENUMERATED { enumerated(design) } else { drawn(design, seed) };
    sizes.sort_unstable_by(f64::total_cmp);
    let quantile = sizes[(0.95 * sizes.len() as f64).ceil() as usize - 1];
    let signs =
        if g <= ENUMERATED { format!("all {} sign vectors", sizes.len()) } else { format!("{} draws", sizes.len()) };
    Ok(Wild { half_width: quantile * error, method: format!("wild cluster bootstrap-t, {signs}") })
}

/// |t*| of every sign vector.
fn enumerated(design: &Design) -> Vec<f64> {
    let mut draw = Draw::new(design);
    (0..1_u64 << design.clusters).map(|bits| draw.size(|cluster| bits >> cluster & 1 == 1)).collect()
}

/// |t*| of random sign vectors.
fn drawn(design: &Design, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = Draw::new(design);
    let mut words = vec![0_u64; design.clusters.div_ceil(64)];
    (0..DRAWS)
        .map(|_| {
            words.fill_with(|| random.next_u64());
            draw.size(|cluster| words[cluster / 64] >> (cluster % 64) & 1 == 1)
        })
        .collect()
}

/// One draw; keeps its buffer.
struct Draw<'a> {
    design: &'a Design,
    totals: Vec<f64>,
}

impl<'a> Draw<'a> {
    fn new(design: &'a Design) -> Self {
        Self { design, totals: vec![0.0; design.clusters] }
    }

    /// |t*| with the sign of each cluster turned where `turned` says so.
    fn size(&mut self, turned: impl Fn(usize) -> bool) -> f64 {
        self.totals.fill(0.0);
        let mut shift = 0.0;
        for stratum in &self.design.strata {
            let residual = |n: f64, sum: f64, cluster: usize| {
                let residual = sum - n * stratum.mean;
                if turned(cluster) { -residual } else { residual }
            };
            let stratum_shift: f64 =
                stratum.cells.iter().map(|c| residual(c.n, c.sum, c.cluster)).sum::<f64>() / stratum.n;
            let scale = stratum.weight / stratum.n;
            for cell in &stratum.cells {
                self.totals[cell.cluster] +=
                    scale * (residual(cell.n, cell.sum, cell.cluster) - cell.n * stratum_shift);
            }
            shift += stratum.weight * stratum_shift;
        }
        let g = self.design.clusters as f64;
        let error = (g / (g - 1.0) * self.totals.iter().map(|total| total * total).sum::<f64>()).sqrt();
        // the draw that turns nothing does not shift; rounding must not make 0/0 of it
        if shift.abs() < 1e-15 { 0.0 } else { shift.abs() / error }
    }
}
