//! Does a score depend on what was remembered at all (P45)? The control `oracle`, which is given the evidence, against the
//! control `none`, which remembers nothing, question by question.
//!
//! If grades have nothing to do with memory, the two grades of a question may be exchanged, whatever bank it is of: questions
//! are the units here, and the test is the paired t test (Student 1908), one-sided, t = d̄ / (s_d / √n) with n − 1 degrees of
//! freedom. Questions of unanswerable categories are left out (their evidence misleads by design, and who knows nothing is
//! right), and so are questions for which the oracle had nothing.

use bench_proto::{
    facts::QuestionFacts,
    metric::{Better, Scale},
    profile::Profile,
};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{
    cells::Tally,
    compare::{PairedFacts, RunFacts},
};

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instrument {
    /// Questions that both graded and evidence could help.
    pub n: u64,
    /// Mean of `none` over them; 0 for none.
    pub none: f64,
    /// Mean of `oracle` over them; 0 for none.
    pub oracle: f64,
    /// Chance of a difference like this or larger where grades do not depend on memory.
    pub p_value: f64,
    /// In which direction grades are better.
    pub better: Better,
}

impl Instrument {
    /// Compares two runs by a metric with this scale, of which only the questions were added that [`counts_of_oracle`] and the
    /// like let through.
    #[must_use]
    pub fn between(none: &RunFacts, oracle: &RunFacts, scale: Scale) -> Self {
        let joined = PairedFacts::by_question(none, oracle);
        let (mut differences, mut low, mut high) = (Tally::EMPTY, Tally::EMPTY, Tally::EMPTY);
        for pair in &joined.pairs {
            differences.add(scale.gain(pair.b) - scale.gain(pair.a), scale);
            low.add(pair.a, scale);
            high.add(pair.b, scale);
        }
        let mean = |tally: &Tally| tally.mean().unwrap_or(0.0);
        Self {
            n: differences.n,
            none: mean(&low),
            oracle: mean(&high),
            p_value: above_zero(&differences),
            better: scale.better,
        }
    }

    /// How much better `oracle` is than `none`.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.better.gain(self.oracle) - self.better.gain(self.none)
    }

    /// Grades of the rarer kind, 1 or 0, over both controls; parts of a grade count as such.
    #[must_use]
    pub fn rarer(&self) -> f64 {
        let passed = self.n as f64 * (self.none + self.oracle);
        passed.min(2.0 * self.n as f64 - passed)
    }
}

/// Whether a question of `none` counts.
#[must_use]
pub fn counts_of_none(profile: &Profile, facts: &QuestionFacts) -> bool {
    !profile.has_no_answer(&facts.category, &facts.facets)
}

/// Whether a question of `oracle` counts: it was given something. Runs that did not store how many hits there were say at least
/// whether the context was empty where it should not have been.
#[must_use]
pub fn counts_of_oracle(profile: &Profile, facts: &QuestionFacts) -> bool {
    let given = facts.hits.map_or(!facts.empty_context, |hits| hits > 0);
    !profile.has_no_answer(&facts.category, &facts.facets) && facts.retrieval.is_some() && given
}

/// One-sided p of a mean above 0. Without any spread a difference is certain, and none is none.
fn above_zero(differences: &Tally) -> f64 {
    let (Some(mean), Some(variance)) = (differences.mean(), differences.variance()) else { return 1.0 };
    let n = differences.n as f64;
    let error = (variance / n).sqrt();
    if error == 0.0 {
        return if mean > 0.0 { 0.0 } else { 1.0 };
    }
    // the only errors of `new` are a scale or df that is not positive
    StudentsT::new(0.0, 1.0, n - 1.0).map_or(1.0, |t| t.sf(mean / error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(differences: &[f64]) -> f64 {
        let mut tally = Tally::EMPTY;
        differences.iter().for_each(|difference| tally.add(*difference, Scale::PLAIN));
        above_zero(&tally)
    }

    #[test]
    fn p45_the_test_matches_scipy() {
        // scipy.stats.ttest_1samp(d, 0, alternative='greater').pvalue
        let d = [1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 0.5, 1.0, 0.0];
        assert!((p(&d) - TTEST).abs() < 1e-12, "{}", p(&d));
        let turned: Vec<f64> = d.iter().map(|d| -d).collect();
        assert!((p(&turned) - (1.0 - TTEST)).abs() < 1e-12);
        assert_eq!((p(&[0.0; 30]), p(&[1.0; 30]), p(&[]), p(&[1.0])), (1.0, 0.0, 1.0, 1.0));
    }

    #[test]
    fn p45_the_oracle_counts_where_it_was_given_something() {
        let recalled = crate::aggregator::tests::question(2);
        assert!(recalled.retrieval.is_some() && !recalled.empty_context);
        let counts = |hits, empty_context| {
            let facts = QuestionFacts {
                category: "temporal".to_owned(),
                facets: Default::default(),
                hits,
                empty_context,
                ..recalled.clone()
            };
            counts_of_oracle(&Profile::implied(), &facts)
        };
        assert!(!counts(Some(0), false), "where nothing is expected an empty context is none, and no evidence either");
        assert!(counts(Some(3), false) && counts(None, false) && !counts(None, true));
    }

    const TTEST: f64 = 0.066_151_480_466_988_53;
}
