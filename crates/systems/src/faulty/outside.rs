//! A memory outside of the store whose retain is not idempotent: a folder with a file for each bank, one line for each entry
//! that was ever written into it. What is written twice is there twice, and shows at the first recall.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use bench_proto::{
    dataset::{BankContent, StreamEntry},
    failure::Failure,
};

use crate::{BankRef, RetainReceipt};

pub(super) struct Outside {
    /// Where the files lie; the same for all workers.
    pub(super) folder: PathBuf,
    /// How long writing an entry takes.
    pub(super) takes: Duration,
}

impl Outside {
    fn file(&self, bank: &BankRef) -> PathBuf {
        self.folder.join(format!("{}.jsonl", bank.name))
    }

    /// Writes entries at the end of a bank.
    pub(super) async fn retain(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        for entry in entries {
            tokio::time::sleep(self.takes).await;
            self.append(bank, entry).map_err(|e| self.failed(bank, &e.to_string()))?;
        }
        let written = entries.iter().map(|entry| entry.turns() as u64).sum();
        Ok(RetainReceipt { written, ..RetainReceipt::default() })
    }

    fn append(&self, bank: &BankRef, entry: &StreamEntry) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        // in one write, so that a process that dies leaves a whole line or none
        File::options().create(true).append(true).open(self.file(bank))?.write_all(&line)
    }

    /// What a bank holds.
    pub(super) fn content(&self, bank: &BankRef) -> Result<BankContent, Failure> {
        let text = std::fs::read_to_string(self.file(bank)).map_err(|e| self.failed(bank, &e.to_string()))?;
        let (mut entries, mut ids) = (Vec::new(), HashSet::new());
        for line in text.lines() {
            let entry: StreamEntry = serde_json::from_str(line).map_err(|e| self.failed(bank, &e.to_string()))?;
            if !ids.insert(super::name_of(&entry)) {
                return Err(self.failed(bank, &format!("entry {} was written twice", super::name_of(&entry))));
            }
            entries.push(entry);
        }
        Ok(BankContent { bank_id: bank.bank_id.clone(), speakers: Vec::new(), entries })
    }

    pub(super) fn reset(&self, bank: &BankRef) -> Result<(), Failure> {
        match std::fs::remove_file(self.file(bank)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(bank, &error.to_string())),
            _ => Ok(()),
        }
    }

    fn failed(&self, bank: &BankRef, why: &str) -> Failure {
        Failure::permanent("faulty", format!("{}: {why}", self.file(bank).display()))
    }
}
