//! Kinds of questions: a category with values of facets. There are few of them for many questions, which hold a number.

use std::collections::{BTreeMap, HashMap};

/// What the questions of a kind have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) category: String,
    pub(crate) facets: BTreeMap<String, String>,
}

/// Kinds in the order in which they were first seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds {
    list: Vec<Kind>,
    numbers: HashMap<String, HashMap<BTreeMap<String, String>, u32>>,
}

impl Kinds {
    /// The number of a kind; a new one when it is first seen.
    pub(crate) fn number(&mut self, category: &str, facets: &BTreeMap<String, String>) -> u32 {
        if let Some(known) = self.numbers.get(category).and_then(|of_category| of_category.get(facets)) {
            return *known;
        }
        let new = self.list.len() as u32;
        self.list.push(Kind { category: category.to_owned(), facets: facets.clone() });
        self.numbers.entry(category.to_owned()).or_default().insert(facets.clone(), new);
        new
    }

    /// The numbers that the kinds of another list get in this one, by their numbers there.
    pub(crate) fn take_in(&mut self, others: &Self) -> Vec<u32> {
        others.list.iter().map(|kind| self.number(&kind.category, &kind.facets)).collect()
    }

    /// All kinds, by number.
    pub(crate) fn list(&self) -> &[Kind] {
        &self.list
    }
}
