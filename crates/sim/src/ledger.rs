//! A file with a line for each reply that is paid: what outlives a simulator that is killed.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use serde::Serialize;

use crate::stats::Paid;

/// Appends lines of JSON to a file.
#[derive(Debug)]
pub(crate) struct Ledger(File);

#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost_pico_usd: i64,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// Writes the line of a reply before the reply leaves, in one piece, so that a kill leaves no half of it.
    pub(crate) fn write(&mut self, paid: &Paid<'_>) -> io::Result<()> {
        let line = Line {
            model: paid.model,
            prompt_tokens: paid.used.prompt,
            completion_tokens: paid.used.completion,
            cost_pico_usd: paid.price.cost(paid.used),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.0.write_all(&text)
    }
}
