//! What a run will be able to say, announced before it starts.
//!
//! Naive widths are those of the worst case: a score of one half, where the binomial variance is largest. What is expected
//! goes from a score of nine tenths to that one. Points are hundredths of the score's range.

use std::{collections::BTreeMap, fmt};

use bench_proto::{spec::SampleSpec, strata::joined};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::sample::Sample;

/// Share of the questions on which two runs are assumed to differ, for the smallest detectable difference: two systems
/// of similar strength rarely differ on fewer.
pub const DISCORDANCE: f64 = 0.2;

/// Two-sided 95 % quantile of the normal distribution.
const Z95: f64 = 1.96;
/// Intra-class correlation of the questions of a bank. Three published sets of per-question grades of LoCoMo have 0.002 to 0.006,
/// by their clustered errors; the second is about twice that.
const CORRELATION: (f64, f64) = (0.003, 0.011);
/// √(p(1 − p)) of a score of nine tenths, as a part of that of one half.
const OF_NINE_TENTHS: f64 = 0.6;
/// Fewer banks than this give no clustered interval.
const MIN_BANKS: u64 = 3;

/// Expected half-widths of a sample's 95 % intervals, in points.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Announcement {
    /// Questions.
    pub n: u64,
    /// Banks (clusters).
    pub banks: u64,
    /// Unweighted mean, questions taken as independent: 1.96 · √(0.25/n).
    pub naive_points: f64,
    /// The weighted score of a stratified sample; absent otherwise.
    pub weighted: Option<WeightedHalfWidth>,
    /// The headline's interval over banks like these, (narrow, wide): Student's t with a degree of freedom less than banks, on
    /// the naive error times √(1 + (m − 1) · ICC) with m questions for each bank, at a score of 90 % and an ICC of 0.003, and
    /// at 50 % and 0.011. Absent below three banks. Equal to the naive one when every bank has one question.
    pub clustered_points: Option<(f64, f64)>,
    /// Smallest difference that a paired comparison over these questions finds with 80 % power at the two-sided 5 % level of
    /// Student's t, a degree of freedom less than banks (below three banks than questions), when the runs differ on
    /// [`DISCORDANCE`] of the questions (or on as many as the difference itself needs).
    /// Questions are taken as independent: pairing removes most of what the questions of a bank share.
    pub detectable_points: f64,
    /// The values of the facets that divide the categories, where a sample is spread over these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_facet: Vec<FacetHalfWidth>,
}

/// What a sample will be able to say of the questions with one value of a facet.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FacetHalfWidth {
    /// Name of the facet, such as `difficulty`.
    pub facet: String,
    /// The value that the questions have, such as `hard`.
    pub value: String,
    /// Questions of the sample that have it.
    pub n: u64,
    /// Half-width of the mean over these, in points, questions taken as independent; null when there are none.
    pub naive_points: Option<f64>,
}

/// Half-widths of a weighted score, in points.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct WeightedHalfWidth {
    /// 1.96 · √Σ (N_h/N)² · 0.25/n_h.
    pub naive_points: f64,
    /// For this benchmark alone, with the factor (1 − n_h/N_h): what the full run would say.
    pub benchmark_points: f64,
}

/// What `sample` will be able to say.
#[must_use]
pub fn announce(sample: &Sample) -> Announcement {
    announce_spec(&sample.spec, &sample.population.by_category)
}

/// The same of a sample that was taken before: its record, and the questions of each category in the dataset.
#[must_use]
pub fn announce_spec(spec: &SampleSpec, population: &BTreeMap<String, u64>) -> Announcement {
    let n = spec.n.max(1) as f64;
    let naive_points = half_width_points(1.0 / n);
    let strata = spec.stratified.then(|| strata(spec, population));
    let weighted = strata.as_ref().map(|strata| WeightedHalfWidth {
        naive_points: half_width_points(strata.iter().map(|s| s.share.powi(2) / s.n).sum()),
        benchmark_points: half_width_points(
            strata.iter().map(|s| s.share.powi(2) / s.n * (1.0 - s.n / s.population)).sum(),
        ),
    });
    let effective_n = strata.map_or(n, |strata| 1.0 / strata.iter().map(|s| s.share.powi(2) / s.n).sum::<f64>());
    let headline = weighted.map_or(naive_points, |weighted| weighted.naive_points);
    let clustered_points = match spec.banks {
        banks if banks < MIN_BANKS => None,
        banks if banks >= spec.n => Some((headline, headline)),
        banks => {
            let t = quantile(0.975, banks as f64 - 1.0) / Z95;
            let wider = |correlation: f64| t * (1.0 + (n / banks as f64 - 1.0) * correlation).sqrt();
            Some((headline * OF_NINE_TENTHS * wider(CORRELATION.0), headline * wider(CORRELATION.1)))
        }
    };
    let freedom = if spec.banks < MIN_BANKS { n - 1.0 } else { spec.banks as f64 - 1.0 };
    Announcement {
        n: spec.n,
        banks: spec.banks,
        naive_points,
        weighted,
        clustered_points,
        detectable_points: detectable_points(effective_n, DISCORDANCE, freedom.max(1.0)),
        by_facet: by_facet(spec),
    }
}

/// What each value of the facets that divide the categories has in the sample.
fn by_facet(spec: &SampleSpec) -> Vec<FacetHalfWidth> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for stratum in &spec.strata {
        for (facet, value) in &stratum.facets {
            *counts.entry((facet, value)).or_default() += stratum.n;
        }
    }
    let half_width = |((facet, value), n): ((&str, &str), u64)| FacetHalfWidth {
        facet: facet.to_owned(),
        value: value.to_owned(),
        n,
        naive_points: (n > 0).then(|| half_width_points(1.0 / n as f64)),
    };
    counts.into_iter().map(half_width).collect()
}

/// One category or a part of it: N_h/N, n_h, N_h.
struct Stratum {
    share: f64,
    n: f64,
    population: f64,
}

/// N counts only the categories that are in the sample. Strata without variance are counted with others, as in the score.
fn strata(spec: &SampleSpec, population: &BTreeMap<String, u64>) -> Vec<Stratum> {
    let mut sizes: Vec<(f64, f64)> = Vec::new();
    if spec.strata.is_empty() {
        let of_category = |(category, n): (&String, &u64)| Some((*n as f64, *population.get(category)? as f64));
        sizes.extend(spec.by_category.iter().filter_map(of_category));
    } else {
        let counts: Vec<(&str, u64)> = spec.strata.iter().map(|s| (s.category.as_str(), s.n)).collect();
        sizes.resize(counts.len(), (0.0, 0.0));
        for (stratum, with) in spec.strata.iter().zip(joined(&counts)) {
            sizes[with].0 += stratum.n as f64;
            sizes[with].1 += stratum.population as f64;
        }
        sizes.retain(|(n, _)| *n > 0.0);
    }
    let all: f64 = sizes.iter().map(|(_, population)| population).sum();
    sizes.into_iter().map(|(n, population)| Stratum { share: population / all, n, population }).collect()
}

fn half_width_points(inverse_n: f64) -> f64 {
    100.0 * Z95 * (0.25 * inverse_n).max(0.0).sqrt()
}

/// Quantile of Student's t.
fn quantile(probability: f64, freedom: f64) -> f64 {
    // the only errors of `new` are a scale or freedom that is not positive
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(Z95, |t| t.inverse_cdf(probability))
}

/// Solves δ = (t_{0.975} + t_{0.8}) · √((ψ − δ²)/n) for δ, where (ψ − δ²)/n is the variance of the mean paired difference
/// when the runs differ on the share ψ of the questions (Connor 1987). A difference cannot exceed ψ: where it would, ψ = δ.
fn detectable_points(n: f64, discordance: f64, freedom: f64) -> f64 {
    let t2 = (quantile(0.975, freedom) + quantile(0.8, freedom)).powi(2);
    let difference = (t2 * discordance / (n + t2)).sqrt();
    100.0 * if difference <= discordance { difference } else { t2 / (n + t2) }
}

impl fmt::Display for Announcement {
    /// One line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        write!(f, "{} question{} in {} bank{}: ", self.n, plural(self.n), self.banks, plural(self.banks))?;
        let headline = self.weighted.map_or(self.naive_points, |weighted| weighted.naive_points);
        match self.clustered_points {
            Some((low, high)) if low < high => write!(
                f,
                "expect ±{low:.1} points (at a score of 90 %) to ±{high:.1} (at 50 %) for conversations like these"
            )?,
            Some((low, _)) => write!(f, "expect ±{low:.1} points for conversations like these")?,
            None => write!(
                f,
                "too few banks for an interval over conversations like these, ±{headline:.1} points if questions were independent"
            )?,
        }
        if self.clustered_points.is_some() {
            write!(f, ", ±{:.1} if questions were independent", self.naive_points)?;
        }
        if let Some(weighted) = self.weighted {
            write!(f, ", ±{:.1} for this benchmark", weighted.benchmark_points)?;
        }
        write!(f, "; a paired comparison can detect {:.1} points", self.detectable_points)?;
        // of each facet the value of which the sample knows least
        for of_facet in self.by_facet.chunk_by(|a, b| a.facet == b.facet) {
            let Some(least) = of_facet.iter().min_by_key(|value| value.n) else { continue };
            let FacetHalfWidth { facet, value, n, naive_points } = least;
            write!(f, "; of {facet}={value} it has {n} question{}", plural(*n))?;
            naive_points.map_or(Ok(()), |points| write!(f, ", ±{points:.1} points if they were independent"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_half_widths_are_the_known_ones() {
        let rounded = |n: f64| (half_width_points(1.0 / n) * 10.0).round() / 10.0;
        assert_eq!([rounded(50.0), rounded(200.0), rounded(1986.0)], [13.9, 6.9, 2.2]);
    }

    #[test]
    fn the_detectable_difference_solves_its_equation_and_never_exceeds_the_discordance_in_use() {
        for n in [20.0, 50.0, 200.0, 1986.0, 1e6] {
            let delta = detectable_points(n, 0.2, 9.0) / 100.0;
            let psi = delta.max(0.2);
            // scipy.stats.t.ppf([0.975, 0.8], 9)
            let back = (2.262_157_162_740_992 + 0.883_403_859_768_550_9) * ((psi - delta * delta) / n).sqrt();
            assert!((back - delta).abs() < 1e-9, "n = {n}: {delta} against {back}");
        }
        assert!(detectable_points(1.0, 0.2, 9.0) < 100.0);
    }
}
