//! A judge that grades a part of a run's questions: which ones, by a rule that every process applies alike (P38).
//!
//! A question is in the sample when its rank is at or below the cut-off of its category. Ranks are hashes of question ids, so
//! that they know nothing of answers, and every judge with a sample of a size grades the same questions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Sha256Hash;

/// Version of the rule: raised whenever another question would be chosen.
pub const JUDGED_SAMPLE_VERSION: u32 = 1;

/// The questions that a judge of a run grades, where these are not all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedSample {
    /// Number of the judge, from 0.
    pub judge: u32,
    /// Version of the rule.
    pub version: u32,
    /// Questions in the sample.
    pub n: u64,
    /// Rank of the last question of each category that is in it, in hexadecimal; a category without one is not asked about.
    pub cutoffs: BTreeMap<String, String>,
}

/// Rank of a question among those of its category: sha256("bench-judged-v1:" + id).
fn rank(question_id: &str) -> String {
    Sha256Hash::of_bytes(format!("bench-judged-v1:{question_id}").as_bytes()).hex()
}

impl JudgedSample {
    /// `n` of some questions, given as (category, id): of each category its share, rounded so that the parts add up to `n`
    /// (largest remainder), and of each the first in the order of their ranks.
    #[must_use]
    pub fn choose<'a>(judge: u32, n: u64, questions: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut ranks: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (category, id) in questions {
            ranks.entry(category).or_default().push(rank(id));
        }
        let sizes: Vec<(&str, u64)> = ranks.iter().map(|(category, ranks)| (*category, ranks.len() as u64)).collect();
        let shares = shares(n, &sizes);
        let last = |(category, mut ranks): (&str, Vec<String>)| {
            let wanted = shares.get(category).copied().filter(|n| *n > 0)?;
            ranks.sort_unstable();
            let at = usize::try_from(wanted - 1).ok()?;
            Some((category.to_owned(), ranks.into_iter().nth(at)?))
        };
        let cutoffs = ranks.into_iter().filter_map(last).collect();
        Self { judge, version: JUDGED_SAMPLE_VERSION, n: shares.values().sum(), cutoffs }
    }

    /// Whether a question is in the sample.
    #[must_use]
    pub fn holds(&self, category: &str, question_id: &str) -> bool {
        self.cutoffs.get(category).is_some_and(|cutoff| rank(question_id) <= *cutoff)
    }
}

/// How many of each category, given as (name, questions), are taken so that `n` come together.
fn shares<'a>(n: u64, sizes: &[(&'a str, u64)]) -> BTreeMap<&'a str, u64> {
    let all: u64 = sizes.iter().map(|(_, size)| size).sum();
    let n = n.min(all);
    let part = |size: u64| u128::from(n) * u128::from(size);
    let whole = |size: u64| u64::try_from(part(size) / u128::from(all.max(1))).unwrap_or(u64::MAX);
    let mut shares: BTreeMap<&str, u64> = sizes.iter().map(|(name, size)| (*name, whole(*size))).collect();
    let left = n - shares.values().sum::<u64>();
    let mut by_rest: Vec<(u128, &str)> =
        sizes.iter().map(|(name, size)| (part(*size) % u128::from(all.max(1)), *name)).collect();
    // the largest remainders first, and of equal ones the first name
    by_rest.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    for (_, name) in by_rest.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        *shares.entry(name).or_default() += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(sizes: &[(&str, u64)]) -> Vec<(String, String)> {
        let of = |(category, n): &(&str, u64)| {
            let category = (*category).to_owned();
            (0..*n).map(move |i| (category.clone(), format!("{category}:{i}"))).collect::<Vec<_>>()
        };
        sizes.iter().flat_map(of).collect()
    }

    #[test]
    fn each_category_has_its_share_and_a_larger_sample_holds_the_smaller() {
        let asked = questions(&[("a", 841), ("b", 321), ("c", 96), ("d", 282)]);
        let all = || asked.iter().map(|(category, id)| (category.as_str(), id.as_str()));
        let taken = |sample: &JudgedSample| {
            all().filter(|(category, id)| sample.holds(category, id)).map(|(_, id)| id).collect::<Vec<_>>()
        };
        let sample = JudgedSample::choose(1, 200, all());
        let of = |letter: &str| taken(&sample).iter().filter(|id| id.starts_with(letter)).count();
        assert_eq!((sample.n, taken(&sample).len()), (200, 200));
        // 109.2, 41.7, 12.5 and 36.6 of 200
        assert_eq!((of("a"), of("b"), of("c"), of("d")), (109, 42, 12, 37));
        // the order in which questions come changes nothing
        assert_eq!(JudgedSample::choose(1, 200, all().rev()), sample);
        let whole = JudgedSample::choose(1, 5_000, all());
        assert_eq!((whole.n, taken(&whole).len()), (1540, 1540));
        for n in [1, 7, 50, 199] {
            assert_eq!(taken(&JudgedSample::choose(1, n, all())).len() as u64, n);
        }
    }

    #[test]
    fn a_question_of_another_run_is_in_the_sample_only_where_its_category_is() {
        let asked = questions(&[("a", 10)]);
        let sample = JudgedSample::choose(0, 10, asked.iter().map(|(category, id)| (category.as_str(), id.as_str())));
        assert!(asked.iter().all(|(category, id)| sample.holds(category, id)));
        assert!(!sample.holds("b", "a:1"));
        assert_eq!(JudgedSample::choose(0, 3, std::iter::empty()).n, 0);
    }
}
