//! Strata: the parts of a dataset of each of which a sample over the whole dataset takes its share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// A part of a dataset as a sample took questions of it: a category, or the questions of a category whose facets have the
/// same values, of those facets that the dataset's profile names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stratum {
    /// Name of the category.
    pub category: String,
    /// Values of the facets; one that its questions do not have is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    /// N_h: questions of the dataset in it, as far as filters by facet leave them.
    pub population: u64,
    /// n_h: questions of the sample in it.
    pub n: u64,
}

/// Tells of which stratum a question is.
#[derive(Debug)]
pub struct StratumIndex<'a> {
    /// The facets that make strata.
    facets: BTreeSet<&'a str>,
    numbers: HashMap<Key<'a>, usize>,
}

/// A category, and for each facet that makes strata its value.
type Key<'a> = (&'a str, Vec<Option<&'a str>>);

impl<'a> StratumIndex<'a> {
    /// The index of a sample's strata.
    #[must_use]
    pub fn new(strata: &'a [Stratum]) -> Self {
        let facets: BTreeSet<&str> =
            strata.iter().flat_map(|stratum| stratum.facets.keys().map(String::as_str)).collect();
        let keys = strata.iter().map(|stratum| key(&facets, &stratum.category, &stratum.facets));
        let numbers = keys.zip(0..).collect();
        Self { facets, numbers }
    }

    /// Place in the list of the stratum that questions of a category with these facets are of.
    #[must_use]
    pub fn find(&self, category: &str, facets: &BTreeMap<String, String>) -> Option<usize> {
        self.numbers.get(&key(&self.facets, category, facets)).copied()
    }
}

fn key<'a>(names: &BTreeSet<&str>, category: &'a str, facets: &'a BTreeMap<String, String>) -> Key<'a> {
    (category, names.iter().map(|name| facets.get(*name).map(String::as_str)).collect())
}

/// For each stratum the one that it is counted with: itself, or the largest of its category when fewer than two of its
/// questions are there, because these have no variance. `strata` are (category, questions that are there), those of a
/// category next to each other.
#[must_use]
pub fn joined(strata: &[(&str, u64)]) -> Vec<usize> {
    let mut with = Vec::with_capacity(strata.len());
    for of_category in strata.chunk_by(|a, b| a.0 == b.0) {
        let first = with.len();
        // the first of the largest
        let largest = of_category.iter().enumerate().rev().max_by_key(|(_, (_, n))| *n).map_or(0, |(at, _)| at);
        with.extend(of_category.iter().enumerate().map(|(at, (_, n))| first + if *n < 2 { largest } else { at }));
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facets(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_question_is_found_by_its_category_and_the_facets_that_make_strata() {
        let stratum = |category: &str, of: &[(&str, &str)]| Stratum {
            category: category.to_owned(),
            facets: facets(of),
            ..Stratum::default()
        };
        let strata = [stratum("a", &[]), stratum("a", &[("abstention", "yes")]), stratum("b", &[])];
        let index = StratumIndex::new(&strata);
        let other = ("person", "Ann");
        assert_eq!(index.find("a", &facets(&[other])), Some(0), "a facet that makes no strata tells nothing");
        assert_eq!(index.find("a", &facets(&[other, ("abstention", "yes")])), Some(1));
        assert_eq!(index.find("b", &facets(&[("abstention", "yes")])), None);
        assert_eq!(index.find("c", &facets(&[])), None);
    }

    #[test]
    fn strata_without_variance_go_with_the_largest_of_their_category() {
        let strata = [("a", 1), ("a", 7), ("a", 7), ("a", 0), ("b", 1), ("c", 1), ("c", 1), ("d", 5)];
        assert_eq!(joined(&strata), [1, 1, 2, 1, 4, 5, 5, 7]);
        assert!(joined(&[]).is_empty());
    }
}
