//! Category names as small numbers, and the questions that were asked for by id.

use std::collections::{BTreeMap, HashMap};

use bench_proto::nearest::nearest;

use crate::{error::SampleError, request::SampleRequest};

/// Categories in the order in which they were first seen, with their sizes.
#[derive(Debug, Default)]
pub(super) struct Categories {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    population: Vec<u64>,
    wanted: Vec<bool>,
}

impl Categories {
    /// The number of a category; a new one when it is first seen. Counts the question.
    pub(super) fn count(&mut self, name: &str, request: &SampleRequest) -> u32 {
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => self.add(name, request),
        };
        self.population[number as usize] += 1;
        number
    }

    fn add(&mut self, name: &str, request: &SampleRequest) -> u32 {
        let number = self.names.len() as u32; // fewer than questions, which are counted in u32 per bank
        let named = |list: &[String]| list.iter().any(|wanted| wanted == name);
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        self.population.push(0);
        self.wanted
            .push((request.categories.is_empty() || named(&request.categories)) && !named(&request.exclude_categories));
        number
    }

    pub(super) fn is_wanted(&self, number: u32) -> bool {
        self.wanted[number as usize]
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// All numbers, by name.
    pub(super) fn by_name(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.names.len() as u32).collect();
        numbers.sort_unstable_by_key(|&number| self.name(number));
        numbers
    }

    pub(super) fn population(&self) -> BTreeMap<String, u64> {
        self.names.iter().cloned().zip(self.population.iter().copied()).collect()
    }

    /// Whether the dataset has every category that the request names.
    pub(super) fn check(&self, request: &SampleRequest) -> Result<(), SampleError> {
        let unknown =
            request.categories.iter().chain(&request.exclude_categories).find(|name| !self.numbers.contains_key(*name));
        let Some(name) = unknown else { return Ok(()) };
        let mut known = self.names.clone();
        known.sort_unstable();
        let nearest = owned(nearest(name, known.iter().map(String::as_str)));
        Err(SampleError::UnknownCategory { name: name.clone(), nearest, known })
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Ids that a user named, crossed off as they are seen.
#[derive(Debug, Default)]
pub(super) struct Named {
    seen: HashMap<String, bool>,
    /// Ids from the head of the dataset, kept for suggestions.
    examples: Vec<String>,
}

/// Ids that are looked at for suggestions: a bound on memory, wide enough for every published dataset's first banks.
const EXAMPLES: usize = 10_000;

impl Named {
    pub(super) fn new(ids: &[String]) -> Option<Self> {
        let seen: HashMap<String, bool> = ids.iter().map(|id| (id.clone(), false)).collect();
        (!seen.is_empty()).then_some(Self { seen, examples: Vec::new() })
    }

    /// Whether the question was named.
    pub(super) fn cross_off(&mut self, id: &str) -> bool {
        if self.examples.len() < EXAMPLES {
            self.examples.push(id.to_owned());
        }
        match self.seen.get_mut(id) {
            Some(seen) => {
                *seen = true;
                true
            }
            None => false,
        }
    }

    /// Whether the dataset has every named question.
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let mut unknown: Vec<&str> = self.seen.iter().filter(|(_, seen)| !**seen).map(|(id, _)| id.as_str()).collect();
        unknown.sort_unstable();
        match unknown.split_first() {
            None => Ok(()),
            Some((id, others)) => Err(SampleError::UnknownQuestion {
                id: (*id).to_owned(),
                nearest: owned(nearest(id, self.examples.iter().map(String::as_str))),
                others: others.len(),
            }),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.seen.len() as u64
    }
}
