//! Results made elsewhere: files of many forms become lines that name a question of a dataset.
//!
//! | module | question |
//! |---|---|
//! | [`read`] | which records does a file hold? (JSON, JSON lines, CSV; gzip and zstd) |
//! | [`fields`] | which of a record's fields are answer, grade, hits and question? |
//! | [`resolve`] | which question of the dataset is meant? |
//!
//! docs/IMPORT.md says what is accepted. To know a further name of a field, add it to the lists in [`fields`].

pub(crate) mod fields;
pub(crate) mod read;
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
