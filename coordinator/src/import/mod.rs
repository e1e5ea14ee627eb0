//! Results made elsewhere: files of many forms become lines that name a question of a dataset, and lines become facts.
//!
//! | module | question |
//! |---|---|
//! | [`read`] | what does a file hold? (JSON, JSON lines, CSV; gzip and zstd; folders) |
//! | [`records`] | which objects of it are records? |
//! | [`forms`] | which published forms are known, and of which one is the file? |
//! | [`ours`], [`lookup`] | which fields do we need, and where in a record do they lie? |
//! | [`fields`], [`grades`] | what do a record's fields say, and what its grade? |
//! | [`advice`] | what is to be done about a file that cannot be read? |
//! | [`resolve`] | which question of the dataset is meant? |
//! | [`retrieved`] | which turns, memories and sessions do retrieved ids name? |
//! | [`lines`] | the whole way from a file to one line a question |
//! | [`facts`] | what a line means as the result of a question |
//! | [`system`] | whose results are they? |
//! | [`keep`] | how do they become a finished run? |
//! | [`planted`] | what of answers that were made to audit a judge? |
//!
//! docs/IMPORT.md says what is accepted. To know a further form, add a file to `forms/` and its line to `forms.rs`.

mod advice;
pub(crate) mod facts;
pub(crate) mod fields;
pub(crate) mod forms;
pub(crate) mod grades;
pub(crate) mod keep;
pub(crate) mod lines;
mod lookup;
pub(crate) mod ours;
pub(crate) mod planted;
pub(crate) mod read;
pub(crate) mod records;
pub(crate) mod resolve;
mod retrieved;
pub(crate) mod system;

/// The last part of a file's path, for people; the whole path where it has none.
pub(crate) fn file_name(file: &std::path::Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}

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
