//! The store backends, by the scheme of their URL.

use std::sync::Arc;

use futures::future::BoxFuture;

#[cfg(feature = "postgres")]
use crate::postgres;
use crate::{Access, Store, StoreError, StoreResult, Transport, codec::shown, sqlite};

type Opening<'u> = BoxFuture<'u, StoreResult<Arc<dyn Store>>>;
type Migrating<'u> = BoxFuture<'u, StoreResult<i64>>;
type Naming<'u> = BoxFuture<'u, StoreResult<Vec<String>>>;

/// A registered backend.
pub struct Backend {
    /// URL scheme.
    pub scheme: &'static str,
    /// One line for people.
    pub description: &'static str,
    open: for<'u> fn(&'u str, usize, Access) -> Opening<'u>,
    migrate: for<'u> fn(&'u str) -> Migrating<'u>,
    name_roles: for<'u> fn(&'u str, &'u str) -> Naming<'u>,
    transport: fn(&str) -> Option<Transport>,
}

/// All backends: one entry each.
pub const BACKENDS: &[Backend] = &[
    Backend {
        scheme: sqlite::SCHEME,
        description: "one file on this machine, nothing to install",
        // one file has one writer and its own readers
        open: |url, _, access| Box::pin(sqlite::open_for(url, access)),
        migrate: |url| Box::pin(sqlite::migrate(url)),
        name_roles: |_, _| {
            let why = "a store in a file has no roles: its folder's permissions say who may do what";
            Box::pin(async move { Err(StoreError::Open(why.into())) })
        },
        transport: |_| None,
    },
    #[cfg(feature = "postgres")]
    POSTGRES,
    #[cfg(feature = "postgres")]
    Backend { scheme: postgres::LONG_SCHEME, ..POSTGRES },
];

#[cfg(feature = "postgres")]
const POSTGRES: Backend = Backend {
    scheme: postgres::SCHEME,
    description: "a PostgreSQL database, for runs over many machines",
    open: |url, connections, _| Box::pin(postgres::open(url, connections)),
    migrate: |url| Box::pin(postgres::migrate(url)),
    name_roles: |url, prefix| Box::pin(postgres::roles::name(url, prefix)),
    transport: postgres::transport,
};

/// Connections to a database of a process that coordinates (P31).
pub const COORDINATOR_CONNECTIONS: usize = 4;
/// Connections to a database of a worker: its writer, and claims with renewal (P31). A fleet of hundreds must fit into a
/// server's limit.
pub const WORKER_CONNECTIONS: usize = 2;

/// Whether there is a backend for a URL; nothing is opened.
///
/// # Errors
/// Unknown schemes, with those that there are.
pub fn check(url: &str) -> Result<(), StoreError> {
    find(url).map(drop)
}

/// Opens the store behind a URL with [`COORDINATOR_CONNECTIONS`]. A local file is made and its schema brought up to date; a
/// database must have been migrated before.
///
/// # Errors
/// Unknown schemes and everything that opening can meet.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_with(url, COORDINATOR_CONNECTIONS).await
}

/// [`open`] with at most so many connections, at least one.
///
/// # Errors
/// Those of [`open`].
pub async fn open_with(url: &str, connections: usize) -> Result<Arc<dyn Store>, StoreError> {
    (find(url)?.open)(url, connections.max(1), Access::Make).await
}

/// [`open`] by one who says what for: only [`Access::Make`] makes a local file that is missing, and its folder.
///
/// # Errors
/// Those of [`open`].
pub async fn open_for(url: &str, access: Access) -> Result<Arc<dyn Store>, StoreError> {
    (find(url)?.open)(url, COORDINATOR_CONNECTIONS, access).await
}

/// Brings the schema of the store behind a URL up to date; returns its version. A store that is up to date stays as it is.
///
/// # Errors
/// Unknown schemes, stores that cannot be opened, and [`StoreError::Schema`] when a newer build made the schema.
pub async fn migrate(url: &str) -> Result<i64, StoreError> {
    (find(url)?.migrate)(url).await
}

/// The way to the store behind a URL; `None` for one on this machine, and for a URL that opening refuses.
#[must_use]
pub fn transport(url: &str) -> Option<Transport> {
    (find(url).ok()?.transport)(url)
}

/// Names the roles of the store behind a URL (`PREFIX_read`, `_submit`, `_work`, `_coordinate`), makes those that are missing, and gives
/// each its rights, as every later [`migrate`] does again. Returns the names.
///
/// # Errors
/// [`StoreError::Open`] for a store without roles, a prefix that makes no names, and rights that the user of the URL has not, with the
/// statements for somebody who has them.
pub async fn name_roles(url: &str, prefix: &str) -> Result<Vec<String>, StoreError> {
    (find(url)?.name_roles)(url, prefix).await
}

fn find(url: &str) -> StoreResult<&'static Backend> {
    let scheme = url.split(':').next().unwrap_or_default();
    BACKENDS.iter().find(|backend| backend.scheme == scheme).ok_or_else(|| unknown(url, scheme))
}

fn unknown(url: &str, scheme: &str) -> StoreError {
    let known: Vec<String> = BACKENDS.iter().map(|backend| format!("{}:", backend.scheme)).collect();
    let known = known.join(", ");
    // never the rest of the URL: it may hold a password
    let why = match scheme {
        "postgres" | "postgresql" => {
            format!("stores in postgres come with runs on many machines, which this build has not; use {known}")
        }
        _ if url.contains(':') => format!("no store backend for '{}:': known are {known}", shown(scheme)),
        _ => format!("'{}' is no store URL: write sqlite:<path>, for example sqlite:.bench/bench.db", shown(url)),
    };
    StoreError::Open(why.into())
}
