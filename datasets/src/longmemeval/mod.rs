//! LongMemEval: 500 questions, each with a haystack of sessions of its own, as a user has had them with an assistant.
//!
//! Its files are too large to be held: they are read once for an outline, and then question by question. `s` and `oracle`
//! date the same sessions and questions differently, so that what is made of both is no dataset, and is refused.

mod haystack;
mod schema;
#[cfg(test)]
mod tests;
mod time;

use std::{collections::HashSet, path::Path};

use bench_proto::dataset::{Bank, BankOutline};

use self::{haystack::Holds, schema::Record};
use crate::{About, Dataset, DatasetError, array_file::ArrayFile, notes::Notes, opening::Opening};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Finds, checks and outlines the file of a variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let manifest = opening.manifest();
    let holds = if manifest.name.ends_with("@oracle") { Holds::Evidence } else { Holds::Everything };
    let name = manifest.files.first().map_or("", |file| &file.path);
    let opened = Haystacks::open(files.path(name)?, holds, !files.modified);
    let (haystacks, notes) = opened.map_err(|error| files.located(error))?;
    Ok(Box::new(LongMemEval { about: opening.about(&files, notes), haystacks }))
}

struct LongMemEval {
    about: About,
    haystacks: Haystacks,
}

impl Dataset for LongMemEval {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.haystacks.file.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let outlines = &self.haystacks.outlines;
        let no_bank = || DatasetError::no_bank(&self.about.manifest.name, bank, outlines.len());
        outlines.get(bank).cloned().ok_or_else(no_bank)
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.haystacks.bank(bank)
    }
}

/// A file of LongMemEval: where its questions are, and what planning needs of them.
#[derive(Debug)]
struct Haystacks {
    file: ArrayFile,
    outlines: Vec<BankOutline>,
}

impl Haystacks {
    /// Reads a file once. A published one is no mixture of two; of any other that is looked at.
    fn open(path: &Path, holds: Holds, is_published: bool) -> Result<(Self, Notes), DatasetError> {
        let (mut outlines, mut notes, mut seen) = (Vec::new(), Notes::default(), HashSet::new());
        let file = ArrayFile::open(path, |at| {
            let record: Record = at.skim()?;
            haystack::check(&record, &at)?;
            if !seen.insert(record.question_id.clone()) {
                return Err(at.broken("question_id", format!("'{}' is there twice", record.question_id)));
            }
            if let Some((field, problem)) = haystack::mixture(&record, holds).filter(|_| !is_published) {
                return Err(at.broken(&field, format!("{problem} (question {})", record.question_id)));
            }
            haystack::note(&record, &mut notes);
            outlines.push(haystack::outline(&record));
            Ok(())
        })?;
        Ok((Self { file, outlines }, notes))
    }

    fn bank(&self, index: usize) -> Result<Bank, DatasetError> {
        self.file.read(index, |at| {
            let record: Record = at.parse()?;
            // looked at again: a file may change without looking different
            haystack::check(&record, &at)?;
            Ok(haystack::bank(record))
        })
    }
}
