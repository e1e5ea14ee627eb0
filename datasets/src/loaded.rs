//! A dataset that was read from files: all of it is in memory.

use std::collections::BTreeMap;

use bench_proto::dataset::{Bank, BankOutline};

use crate::{About, Dataset, DatasetError, files::Files, neutral, notes::Notes, opening::Opening};

/// The banks of a dataset with what is known of its files.
#[derive(Debug)]
pub(crate) struct Loaded {
    about: About,
    banks: Vec<Bank>,
    /// The places that the questions of each bank have in the file, where their order is hidden.
    places: Vec<Vec<u32>>,
    /// Ids of the file → those of its bank, where it is a single one that has others.
    given: Option<BTreeMap<String, String>>,
}

impl Loaded {
    /// What a loader made of its files, and what did not resolve. The order of the questions is hidden.
    pub(crate) fn new(opening: &Opening<'_>, files: &Files, banks: Vec<Bank>, notes: Notes) -> Self {
        Self::with(opening.about(files, notes), banks)
    }

    /// Banks of which everything else is known. The order of the questions is hidden.
    pub(crate) fn with(about: About, mut banks: Vec<Bank>) -> Self {
        let places = banks.iter_mut().map(neutral::hide_order).collect();
        Self { places, ..Self::as_published(about, banks) }
    }

    /// Banks whose questions keep the order and the ids that everybody else sends.
    pub(crate) fn as_published(about: About, banks: Vec<Bank>) -> Self {
        Self { about, banks, places: Vec::new(), given: None }
    }

    /// With the ids that the file has for what is in its only bank.
    pub(crate) fn with_given(self, given: BTreeMap<String, String>) -> Self {
        Self { given: Some(given), ..self }
    }

    fn bank_ref(&self, bank: usize) -> Result<&Bank, DatasetError> {
        self.banks.get(bank).ok_or_else(|| DatasetError::no_bank(&self.about.manifest.name, bank, self.banks.len()))
    }
}

impl Dataset for Loaded {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.banks.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let places = self.places.get(bank).map_or(&[][..], Vec::as_slice);
        Ok(neutral::outline(self.bank_ref(bank)?, places))
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.bank_ref(bank).cloned()
    }

    fn given_ids(&self, _bank: usize) -> Option<&BTreeMap<String, String>> {
        self.given.as_ref()
    }
}

/// A number of things that fit into memory.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
