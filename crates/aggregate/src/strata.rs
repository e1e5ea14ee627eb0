//! The strata of a sample: what its scores are weighted by, and of which of them a question is.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::strata::{Stratum, StratumIndex};

use crate::{kinds::Kind, score::Category};

/// Strata, those of a category next to each other, categories in alphabetical order.
#[derive(Debug)]
pub(crate) struct Strata {
    pub(crate) list: Vec<Category>,
    /// By number of the kind of question.
    of_kind: Vec<u32>,
}

impl Strata {
    /// The strata of a sample: those that it says, and the whole of each category that it says none of. `known` are categories
    /// that have a stratum also without a question.
    pub(crate) fn new(
        strata: &[Stratum],
        population: &BTreeMap<String, u64>,
        known: impl IntoIterator<Item = (String, u64)>,
        kinds: &[Kind],
    ) -> Self {
        let mut asked: BTreeMap<String, u64> = known.into_iter().collect();
        for kind in kinds {
            asked.entry(kind.category.clone()).or_default();
        }
        let said: BTreeSet<&str> = strata.iter().map(|stratum| stratum.category.as_str()).collect();
        let whole = asked.into_iter().filter(|(name, _)| !said.contains(name.as_str()));
        let whole = whole.map(|(name, asked)| {
            (population.get(&name).copied(), Stratum { category: name, n: asked, ..Stratum::default() })
        });
        let said = strata.iter().map(|stratum| (Some(stratum.population), stratum.clone()));
        let mut all: Vec<(Option<u64>, Stratum)> = said.chain(whole).collect();
        // stable: the strata of a category stay as they are
        all.sort_by(|(_, a), (_, b)| a.category.cmp(&b.category));
        let (populations, all): (Vec<Option<u64>>, Vec<Stratum>) = all.into_iter().unzip();
        let list = (0..).zip(all.iter().zip(&populations)).map(|(number, (stratum, population))| Category {
            number,
            name: stratum.category.clone(),
            population: *population,
            asked: stratum.n,
            lost: 0,
        });
        let list = list.collect();
        let index = StratumIndex::new(&all);
        let of_kind = kinds.iter().map(|kind| stratum_of(kind, &all, &index) as u32).collect();
        Self { list, of_kind }
    }

    /// Number of the stratum of questions of a kind.
    pub(crate) fn of_kind(&self, kind: u32) -> Option<u32> {
        self.of_kind.get(kind as usize).copied()
    }

    /// Counts questions that were seen, and those of them that ended with scores: a stratum has as many as were planned, or more,
    /// and the others are lost.
    pub(crate) fn saw(&mut self, questions: &[Seen]) {
        let mut of_strata = vec![Seen::default(); self.list.len()];
        for (stratum, seen) in self.of_kind.iter().zip(questions) {
            let sum = &mut of_strata[*stratum as usize];
            *sum = Seen { all: sum.all + seen.all, scored: sum.scored + seen.scored };
        }
        for (category, seen) in self.list.iter_mut().zip(of_strata) {
            category.asked = category.asked.max(seen.all);
            category.lost = category.asked - seen.scored;
        }
    }
}

/// Questions of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Questions that are known.
    pub(crate) all: u64,
    /// Questions that ended with scores.
    pub(crate) scored: u64,
}

/// The stratum of a kind, or the largest of its category when its facets are those of none (results from before the dataset
/// had them).
fn stratum_of(kind: &Kind, all: &[Stratum], index: &StratumIndex<'_>) -> usize {
    index.find(&kind.category, &kind.facets).unwrap_or_else(|| {
        let of_category = all.iter().enumerate().filter(|(_, stratum)| stratum.category == kind.category);
        of_category.max_by_key(|(_, stratum)| stratum.population).map_or(0, |(at, _)| at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facets(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("abstention".to_owned(), value.to_owned())])
    }

    #[test]
    fn categories_without_strata_are_one_and_what_fits_none_goes_to_the_largest() {
        let stratum = |value, population, n| Stratum { category: "b".to_owned(), facets: facets(value), population, n };
        let said = [stratum("no", 70, 7), stratum("yes", 30, 3)];
        let population = BTreeMap::from([("a".to_owned(), 40), ("b".to_owned(), 100)]);
        let kind = |category: &str, facets| Kind { category: category.to_owned(), facets };
        let kinds =
            [kind("b", facets("yes")), kind("b", BTreeMap::new()), kind("a", facets("yes")), kind("c", facets("no"))];
        let mut strata = Strata::new(&said, &population, [("a".to_owned(), 4), ("b".to_owned(), 10)], &kinds);
        let named = |strata: &Strata| -> Vec<(String, Option<u64>, u64)> {
            strata.list.iter().map(|c| (c.name.clone(), c.population, c.asked)).collect()
        };
        let expected = [("a", Some(40), 4), ("b", Some(70), 7), ("b", Some(30), 3), ("c", None, 0)];
        assert_eq!(named(&strata), expected.map(|(name, population, asked)| (name.to_owned(), population, asked)));
        assert_eq!([0, 1, 2, 3, 4].map(|kind| strata.of_kind(kind)), [Some(2), Some(1), Some(0), Some(3), None]);
        strata.saw(&[(5, 4), (2, 2), (0, 0), (1, 0)].map(|(all, scored)| Seen { all, scored }));
        let counts: Vec<(u64, u64)> = strata.list.iter().map(|c| (c.asked, c.lost)).collect();
        assert_eq!(counts, [(4, 4), (7, 5), (5, 1), (1, 1)]);
    }
}
