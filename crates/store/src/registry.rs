//! The store backends, by the scheme of their URL.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{Store, StoreError, StoreResult, codec::shown, sqlite};

type Opening<'u> = BoxFuture<'u, StoreResult<Arc<dyn Store>>>;

/// A registered backend.
pub struct Backend {
    /// URL scheme.
    pub scheme: &'static str,
    /// One line for people.
    pub description: &'static str,
    open: for<'u> fn(&'u str) -> Opening<'u>,
}

/// All backends: one line each.
pub const BACKENDS: &[Backend] = &[Backend {
    scheme: sqlite::SCHEME,
    description: "one file on this machine, nothing to install",
    open: |url| Box::pin(sqlite::open(url)),
}];

/// Opens the store behind a URL and brings its schema up to date when it is a local file.
///
/// # Errors
/// Unknown schemes and everything that opening can meet.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let scheme = url.split(':').next().unwrap_or_default();
    match BACKENDS.iter().find(|backend| backend.scheme == scheme) {
        Some(backend) => (backend.open)(url).await,
        None => Err(unknown(url, scheme)),
    }
}

fn unknown(url: &str, scheme: &str) -> StoreError {
    let known: Vec<String> = BACKENDS.iter().map(|backend| format!("{}:", backend.scheme)).collect();
    let known = known.join(", ");
    // never the rest of the URL: it may hold a password
    StoreError::Open(match scheme {
        "postgres" | "postgresql" => {
            format!("stores in postgres come with runs on many machines, which this build has not; use {known}")
        }
        _ if url.contains(':') => format!("no store backend for '{}:': known are {known}", shown(scheme)),
        _ => format!("'{}' is no store URL: write sqlite:<path>, for example sqlite:.bench/bench.db", shown(url)),
    })
}
