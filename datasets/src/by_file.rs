//! A dataset of many files: only outlines of its banks are in memory. Banks are asked for in whatever order a run wants them, and
//! a file holds many: one that was read again for a bank is kept on the disk, bank by bank.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use bench_proto::dataset::{Bank, BankOutline};

use crate::{About, Dataset, DatasetError, files::Files, neutral, notes::Notes, opening::Opening};

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
    /// Where there is room for what was read.
    folder: PathBuf,
    kept: Mutex<Kept>,
}

/// The banks of a part, the order of their questions hidden, and the places that these have in the file.
fn hidden<P>(
    read: ReadPart<P>,
    files: &Files,
    part: &P,
    notes: &mut Notes,
) -> Result<Vec<(Bank, Vec<u32>)>, DatasetError> {
    let banks = read(files, part, notes).map_err(|error| files.located(error))?;
    let hide = |mut bank: Bank| {
        let places = neutral::hide_order(&mut bank);
        (bank, places)
    };
    Ok(banks.into_iter().map(hide).collect())
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
        let (mut banks, mut notes, mut ids) = (Vec::new(), Notes::default(), HashSet::new());
        for (part, number) in parts.iter().zip(0..) {
            for ((bank, places), index) in hidden(read, &files, part, &mut notes)?.iter().zip(0..) {
                if !ids.insert(bank.content.bank_id.clone()) {
                    let (name, id) = (&opening.manifest().name, &bank.content.bank_id);
                    return Err(DatasetError::NotFound(format!(
                        "two files of dataset '{name}' hold the same bank {id}; give a folder that holds it once"
                    )));
                }
                banks.push((number, index, neutral::outline(bank, places)));
            }
        }
        if banks.is_empty() {
            let name = &opening.manifest().name;
            return Err(DatasetError::NotFound(format!("the files of dataset '{name}' hold no bank; give its folder")));
        }
        let about = opening.about(&files, notes);
        let folder = opening.options().cache_dir.clone();
        Ok(Self { about, files, parts, read, banks, folder, kept: Mutex::default() })
    }

    fn find(&self, bank: usize) -> Result<&(usize, usize, BankOutline), DatasetError> {
        self.banks.get(bank).ok_or_else(|| self.no_bank(bank))
    }

    fn no_bank(&self, bank: usize) -> DatasetError {
        DatasetError::no_bank(&self.about.manifest.name, bank, self.banks.len())
    }

    /// Reads a part again; what does not resolve was told when it was opened.
    fn again(&self, number: usize) -> Result<Vec<Bank>, DatasetError> {
        let Some(part) = self.parts.get(number) else { return Ok(Vec::new()) };
        let banks = hidden(self.read, &self.files, part, &mut Notes::default())?;
        Ok(banks.into_iter().map(|(bank, _)| bank).collect())
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
        let &(number, index, _) = self.find(bank)?;
        let is_alone = index == 0 && self.banks.get(bank + 1).is_none_or(|(next, ..)| *next != number);
        if is_alone {
            return self.again(number)?.into_iter().next().ok_or_else(|| self.no_bank(bank));
        }
        let io = |source| DatasetError::io(&self.folder, source);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.parts.contains_key(&number) {
            let banks = self.again(number)?;
            kept.add(&self.folder, number, &banks).map_err(io)?;
        }
        kept.bank(number, index).map_err(io)?.ok_or_else(|| self.no_bank(bank))
    }
}

/// Banks that were read, one after the other in a file without a name: nobody else writes to it, and it goes with the dataset.
#[derive(Default)]
struct Kept {
    file: Option<File>,
    /// Bytes that are written.
    end: u64,
    /// By the number of a part: where each of its banks begins, and its bytes.
    parts: HashMap<usize, Vec<(u64, usize)>>,
}

impl Kept {
    /// Writes the banks of a part, to a file in a folder; elsewhere where there is no such folder.
    fn add(&mut self, folder: &Path, part: usize, banks: &[Bank]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile())?,
        };
        let file = self.file.insert(file);
        file.seek(SeekFrom::Start(self.end))?;
        let mut places = Vec::with_capacity(banks.len());
        for bank in banks {
            let json = serde_json::to_vec(bank)?;
            file.write_all(&json)?;
            places.push((self.end, json.len()));
            self.end += json.len() as u64;
        }
        self.parts.insert(part, places);
        Ok(())
    }

    /// A bank of a part that was written.
    fn bank(&mut self, part: usize, index: usize) -> io::Result<Option<Bank>> {
        let place = self.parts.get(&part).and_then(|places| places.get(index)).copied();
        let (Some((offset, bytes)), Some(file)) = (place, &mut self.file) else { return Ok(None) };
        file.seek(SeekFrom::Start(offset))?;
        let mut json = vec![0; bytes];
        file.read_exact(&mut json)?;
        Ok(Some(serde_json::from_slice(&json)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use bench_proto::{
        dataset::{BankContent, GoldRecord, Question},
        profile::Profile,
    };

    use super::*;
    use crate::{Manifest, OpenOptions};

    /// A file with so many banks.
    struct Part {
        name: &'static str,
        banks: usize,
        reads: Arc<AtomicUsize>,
    }

    fn read(_: &Files, part: &Part, _: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
        part.reads.fetch_add(1, Ordering::Relaxed);
        let bank = |number| {
            let bank_id = format!("{}{number}", part.name);
            let question =
                |at: u32| Question { question_id: format!("{bank_id}:{at}"), index: at, ..Question::default() };
            let questions: Vec<Question> = (0..9).map(question).collect();
            let gold = |asked: &Question| GoldRecord {
                question_id: asked.question_id.clone(),
                hidden: [("score".to_owned(), serde_json::json!(0.1))].into(),
                ..GoldRecord::default()
            };
            let gold = questions.iter().map(gold).collect();
            Bank { content: BankContent { bank_id: bank_id.clone(), ..BankContent::default() }, questions, gold }
        };
        Ok((0..part.banks).map(bank).collect())
    }

    #[test]
    fn a_file_of_many_banks_is_read_twice_in_whatever_order_they_are_asked_for() {
        let (manifest, profile) = (Manifest::default(), Profile::implied());
        let options = OpenOptions { cache_dir: std::env::temp_dir(), ..OpenOptions::default() };
        let silent = |_: u64, _: Option<u64>| ();
        let files = Files::find(&manifest, &options, &silent).expect("there are none");
        let opening = Opening { manifest: &manifest, profile: &profile, options: &options, on_progress: &silent };
        let reads = Arc::new(AtomicUsize::new(0));
        let part = |(name, banks)| Part { name, banks, reads: Arc::clone(&reads) };
        let parts: Vec<Part> = [("a", 3), ("b", 1), ("c", 4)].map(part).into();
        let dataset = ByFile::open(&opening, files, parts, read).expect("opens");
        assert_eq!(reads.load(Ordering::Relaxed), 3);
        // from file to file, each bank twice
        for number in [7, 0, 6, 1, 5, 2, 4, 3, 3, 4, 2, 5, 1, 6, 0, 7] {
            let (bank, mut outline) =
                (dataset.bank(number).expect("a bank"), dataset.outline(number).expect("is known"));
            for (question, asked) in outline.questions.iter_mut().zip(&bank.questions) {
                let place = question.file_place.take().expect("is known");
                assert!(asked.question_id.ends_with(&format!(":{place}")), "its place in the file");
            }
            assert_eq!(bank.outline(), outline);
            assert_eq!(bank.gold[8].hidden["score"], 0.1);
        }
        // the file of one bank is read each time
        assert_eq!(reads.load(Ordering::Relaxed), 3 + 2 + 2);
        assert!(dataset.bank(8).is_err());
    }
}
