//! The sample of a run: which questions of which banks, in the order in which they are listed.

use std::collections::BTreeMap;

use bench_proto::spec::SampleSpec;

/// The questions that a run asks, bank by bank.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Banks with at least one question, in file order.
    pub banks: Vec<SampledBank>,
    /// What the run spec keeps about it.
    pub spec: SampleSpec,
    /// The whole dataset, before any filter.
    pub population: Population,
}

impl Sample {
    /// The listing: (position in [`Sample::banks`], question's index in its bank) for every question, banks as in the
    /// file, categories alphabetical, then the sampler's order. The signature is over the ids in this order.
    pub fn listing(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.banks.iter().enumerate().flat_map(|(at, bank)| bank.questions.iter().map(move |&question| (at, question)))
    }
}

/// The questions that a run asks of one bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledBank {
    /// Position in the dataset's file.
    pub file_index: u32,
    /// The dataset's id.
    pub bank_id: String,
    /// Stream entries to retain at most (after `--max-sessions`).
    pub entries: u32,
    /// Turns in these entries; estimated by proportion when `--max-sessions` cuts some off.
    pub turns: u32,
    /// Indexes of the chosen questions in the bank's list, in the listing's order.
    pub questions: Vec<u32>,
}

/// Sizes of the whole dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Population {
    /// Questions per category: the N_h of the statistics.
    pub by_category: BTreeMap<String, u64>,
    /// Number of its questions.
    pub questions: u64,
    /// Banks, also those without questions.
    pub banks: u64,
    /// Sessions; memories and updates count as one each.
    pub entries: u64,
    /// Number of turns that are kept of it.
    pub turns: u64,
}
