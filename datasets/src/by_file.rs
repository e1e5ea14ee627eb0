//! A dataset of many files: of its banks those of one file are in memory, of the rest only outlines.

use std::sync::{Mutex, PoisonError};

use bench_proto::dataset::{Bank, BankOutline};

use crate::{About, Dataset, DatasetError, files::Files, neutral::hide_order, notes::Notes, opening::Opening};

/// Reads the banks of a part and notes what does not resolve.
pub(crate) type ReadPart<P> = fn(&Files, &P, &mut Notes) -> Result<Vec<Bank>, DatasetError>;

/// The outlines of all banks, and what it takes to read a bank again.
pub(crate) struct ByFile<P> {
    pub(crate) about: About,
    files: Files,
    parts: Vec<P>,
    read: ReadPart<P>,
    /// Each bank's part, its number there, and its outline.
    banks: Vec<(usize, usize, BankOutline)>,
    /// The part that was read last: banks are asked for in their order.
    last: Mutex<Option<(usize, Vec<Bank>)>>,
}

/// The banks of a part, the order of their questions hidden.
fn hidden<P>(read: ReadPart<P>, files: &Files, part: &P, notes: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
    let mut banks = read(files, part, notes).map_err(|error| files.located(error))?;
    banks.iter_mut().for_each(hide_order);
    Ok(banks)
}

impl<P> ByFile<P> {
    /// Reads every part once.
    ///
    /// # Errors
    /// When a part is broken, when two banks have one id, or when there is no bank at all.
    pub(crate) fn open(
        opening: &Opening<'_>,
        files: Files,
        parts: Vec<P>,
        read: ReadPart<P>,
    ) -> Result<Self, DatasetError> {
        let (mut banks, mut notes, mut ids) = (Vec::new(), Notes::default(), std::collections::HashSet::new());
        for (part, number) in parts.iter().zip(0..) {
            for (bank, index) in hidden(read, &files, part, &mut notes)?.iter().zip(0..) {
                if !ids.insert(bank.content.bank_id.clone()) {
                    let (name, id) = (&opening.manifest().name, &bank.content.bank_id);
                    return Err(DatasetError::NotFound(format!(
                        "two files of dataset '{name}' hold the same bank {id}; give a folder that holds it once"
                    )));
                }
                banks.push((number, index, bank.outline()));
            }
        }
        if banks.is_empty() {
            let name = &opening.manifest().name;
            return Err(DatasetError::NotFound(format!("the files of dataset '{name}' hold no bank; give its folder")));
        }
        let about = opening.about(&files, notes);
        Ok(Self { about, files, parts, read, banks, last: Mutex::new(None) })
    }

    fn find(&self, bank: usize) -> Result<&(usize, usize, BankOutline), DatasetError> {
        self.banks.get(bank).ok_or_else(|| DatasetError::no_bank(&self.about.manifest.name, bank, self.banks.len()))
    }
}

impl<P: Send + Sync> Dataset for ByFile<P> {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.banks.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        Ok(self.find(bank)?.2.clone())
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        let (number, index, _) = self.find(bank)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(read, _)| read != number) {
            // the one that was read before is let go first
            *last = None;
            let part = self
                .parts
                .get(*number)
                .map_or(Ok(Vec::new()), |part| hidden(self.read, &self.files, part, &mut Notes::default()))?;
            *last = Some((*number, part));
        }
        let found = last.as_ref().and_then(|(_, banks)| banks.get(*index)).cloned();
        found.ok_or_else(|| DatasetError::no_bank(&self.about.manifest.name, bank, self.banks.len()))
    }
}
