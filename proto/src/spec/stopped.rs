//! The settings of a run that has ended before its last question.

use std::collections::BTreeMap;

use super::{RunSpec, SampleSpec};
use crate::{stop::Look, strata::StratumIndex};

impl RunSpec {
    /// The settings of a run that has ended with `look`: its sample are the questions that it has asked. They are a part of every
    /// category that the order spreads alike, so a stratified sample where the whole one was stratified or all there is.
    #[must_use]
    pub fn stopped_at(&self, look: &Look) -> Self {
        let whole = &self.sample;
        let mut strata = whole.strata.clone();
        for (stratum, n) in strata.iter_mut().zip(&look.by_stratum) {
            stratum.n = *n;
        }
        let everything = look.asked >= whole.n;
        let sample = SampleSpec {
            n: look.asked,
            banks: look.banks,
            by_category: look.by_category.clone(),
            strata,
            census: whole.census && everything,
            stratified: whole.stratified || (whole.census && !everything),
            ..whole.clone()
        };
        Self { sample, ..self.clone() }
    }

    /// Counts questions by category and by stratum of the sample, as a look keeps them.
    #[must_use]
    pub fn count_asked<'a>(
        &self,
        questions: impl Iterator<Item = (&'a str, &'a BTreeMap<String, String>)>,
    ) -> (BTreeMap<String, u64>, Vec<u64>) {
        let strata = &self.sample.strata;
        let index = StratumIndex::new(strata);
        let (mut by_category, mut by_stratum) = (BTreeMap::<String, u64>::new(), vec![0; strata.len()]);
        for (category, facets) in questions {
            *by_category.entry(category.to_owned()).or_default() += 1;
            if let Some(n) = index.find(category, facets).and_then(|at| by_stratum.get_mut(at)) {
                *n += 1;
            }
        }
        (by_category, by_stratum)
    }
}
