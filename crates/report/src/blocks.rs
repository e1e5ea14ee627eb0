//! What people read, as pieces without layout: markdown, terminal and html lay them out.

use bench_proto::summary::Verdict;

/// A piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// The report's title.
    Title(String),
    /// What the blocks up to the next heading are about.
    Heading(String),
    /// Marks that must not be overlooked.
    Labels(Vec<String>),
    /// The one line to remember.
    Headline(String),
    /// The verdict and its reasons.
    Verdict(Verdict, Vec<String>),
    /// A paragraph.
    Text(String),
    /// Lines that belong together.
    List(Vec<String>),
    /// Rows below titles.
    Table(Table),
}

/// A table; columns whose title starts with `>` are aligned right (the sign is not part of the title).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn table(columns: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table(Table { columns: aligned(columns), rows })
}

/// Titles of columns without their sign, and whether each is aligned right.
pub(crate) fn aligned(columns: &[&str]) -> Vec<(String, bool)> {
    let column = |title: &&str| match title.strip_prefix('>') {
        Some(title) => (title.to_owned(), true),
        None => ((*title).to_owned(), false),
    };
    columns.iter().map(column).collect()
}

pub(crate) fn heading(text: impl Into<String>) -> Block {
    Block::Heading(text.into())
}
