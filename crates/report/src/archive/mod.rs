//! Durable results on object stores: a local folder, S3, R2, Google Cloud Storage, Azure.
//!
//! ```text
//! runs/<date>/<dataset>/v1/<run>/manifest.json        sha256 and size of every file, written last
//! runs/<date>/<dataset>/v1/<run>/<file>.zst           report, questions, and what a run is rebuilt from
//! runs/<date>/<dataset>/v1/<run>/<file>.<hash>.zst    the same of large files, which are written in parts
//! index/<date>/<run>.json                             one small object per run
//! matrices/<date>/<matrix>/results-matrix-<date>.json all cells of a matrix, once all of its runs are archived
//! ```
//!
//! `v1` is the version of the dataset's methodology (`bench_proto::profile`): results of another one lie apart.
//!
//! Everything is written once, with conditional puts. No object is ever read, changed and written back, so any number of
//! writers lose nothing: what two of them write about different runs has different names, and what they write about the same
//! run is the same. A push that was cut is repeated whole; what is there already is compared instead of written.
//!
//! | module | question |
//! |---|---|
//! | [`place`] | which store, and which objects in it? |
//! | `secrets` | what of its account must nobody see? |
//! | [`manifest`] | what is said about an archived run? |
//! | [`push`], [`fetch`], `pack` | how does it get there, and back, with every byte checked and few of them in memory? |
//! | [`matrix`] | what is said about a matrix? |
//! | [`trajectory`] | which archived runs may stand on one line? |

pub mod fetch;
pub mod manifest;
pub mod matrix;
mod pack;
pub mod place;
pub mod push;
mod secrets;
pub mod trajectory;

pub use manifest::{FileEntry, IndexEntry, Manifest, are_figures};
pub use place::ArchivePlace;

use self::secrets::Secrets;

/// What can go wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The URL names no usable store.
    #[error(
        "{0}; archives are folders, s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, or https:// of an S3 service such as R2"
    )]
    Url(String),
    /// The store does not answer, or refuses.
    #[error("the archive cannot be used: {0}")]
    Store(String),
    /// Nothing, or too much, fits the name.
    #[error("{0}")]
    Missing(String),
    /// Another run is archived under this name.
    #[error("{0}")]
    Conflict(String),
    /// A link would lead what is written elsewhere.
    #[error("{0}")]
    Link(String),
    /// Bytes are not those that were written.
    #[error("{0}")]
    Damaged(String),
}

impl From<object_store::Error> for ArchiveError {
    fn from(error: object_store::Error) -> Self {
        // the address of a service may hold a key, and so may what it says of a request
        Secrets::default().told(&error)
    }
}

#[cfg(test)]
mod tests;
