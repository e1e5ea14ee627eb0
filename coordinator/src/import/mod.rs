//! Results made elsewhere: files of many forms become lines that name a question of a dataset.
//!
//! | module | question |
//! |---|---|
//! | [`read`] | what does a file hold? (JSON, JSON lines, CSV; gzip and zstd; folders) |
//! | [`records`] | which objects of it are records? |
//! | [`names`] | under which names do files keep what we need? |
//! | [`fields`], [`grades`] | which of a record's fields are answer, question and hits; which is the grade, and what does it say? |
//! | [`resolve`] | which question of the dataset is meant? |
//!
//! docs/IMPORT.md says what is accepted. To know a further name of a field, add it to the lists in [`names`].

pub(crate) mod fields;
pub(crate) mod grades;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod records;
pub(crate) mod resolve;

/// Something about a file that cannot be used: says where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}")]
pub(crate) struct ImportError {
    place: String,
    problem: String,
}

impl ImportError {
    /// About the whole file.
    pub(crate) fn file(problem: impl Into<String>) -> Self {
        Self { place: String::new(), problem: problem.into() }
    }

    /// About one place of it, such as `line 12`.
    pub(crate) fn at(place: &str, problem: impl Into<String>) -> Self {
        Self { place: format!("{place}: "), problem: problem.into() }
    }
}
