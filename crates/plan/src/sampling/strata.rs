//! Strata: categories, divided further by the facets that the dataset's profile names.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{dataset::QuestionOutline, strata::Stratum};

use super::names::Categories;
use crate::error::SampleError;

/// More strata than this are no strata: each would give a question or none.
const MOST: usize = 512;

/// Values of the facets that make strata, in their order.
pub(super) type Values = Vec<Option<Box<str>>>;

/// Strata in the order in which they were first seen, with their sizes.
#[derive(Debug, Default)]
pub(super) struct Strata {
    facets: Vec<String>,
    numbers: HashMap<(u32, Values), u32>,
    all: Vec<Group>,
}

/// A stratum.
#[derive(Debug)]
struct Group {
    category: u32,
    values: Values,
    population: u64,
}

impl Strata {
    /// Divided by these facets; by none the strata are the categories.
    pub(super) fn new(facets: &[String]) -> Self {
        Self { facets: facets.to_vec(), ..Self::default() }
    }

    /// Whether facets divide the categories.
    pub(super) fn divide(&self) -> bool {
        !self.facets.is_empty()
    }

    /// The number of a question's stratum; a new one when it is first seen. Counts the question.
    ///
    /// # Errors
    /// When facets make too many strata.
    pub(super) fn count(&mut self, category: u32, question: &QuestionOutline) -> Result<u32, SampleError> {
        let values: Values =
            self.facets.iter().map(|facet| question.facets.get(facet).map(|value| value.as_str().into())).collect();
        let next = self.all.len();
        let number = *self.numbers.entry((category, values.clone())).or_insert(next as u32);
        if number as usize == next {
            if self.divide() && next >= MOST {
                return Err(SampleError::TooManyStrata { facets: self.facets.join(", "), limit: MOST });
            }
            self.all.push(Group { category, values, population: 0 });
        }
        self.all[number as usize].population += 1;
        Ok(number)
    }

    /// Category and values of a stratum: strata in the order of these do not depend on the order of the file.
    pub(super) fn key<'a>(&'a self, number: u32, categories: &'a Categories) -> (&'a str, &'a [Option<Box<str>>]) {
        let group = &self.all[number as usize];
        (categories.name(group.category), &group.values)
    }

    /// All strata of the categories that have a question in the sample, given the chosen questions of each stratum.
    pub(super) fn list(&self, chosen: &[u64], categories: &Categories) -> Vec<Stratum> {
        let n = |number: u32| chosen.get(number as usize).copied().unwrap_or(0);
        let mut numbers: Vec<u32> = (0..self.all.len() as u32).collect();
        numbers.sort_unstable_by_key(|&number| self.key(number, categories));
        let stratum = |number: u32| {
            let Group { category, values, population } = &self.all[number as usize];
            let named = self.facets.iter().zip(values);
            let facets: BTreeMap<String, String> =
                named.filter_map(|(name, value)| Some((name.clone(), value.as_deref()?.to_owned()))).collect();
            Stratum { category: categories.name(*category).to_owned(), facets, population: *population, n: n(number) }
        };
        let all: Vec<Stratum> = numbers.into_iter().map(stratum).collect();
        let of_categories = all.chunk_by(|a, b| a.category == b.category);
        of_categories.filter(|strata| strata.iter().any(|stratum| stratum.n > 0)).flatten().cloned().collect()
    }
}
