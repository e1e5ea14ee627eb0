//! What keeps an operation of `pgvector` from being done, and the failure that it makes.

use std::time::Duration;

use bench_proto::failure::Failure;

use super::URL_VARIABLE;
use crate::adapter::UNREACHABLE;

/// Code of the failure of an operation to which no answer came in its time.
pub(super) const TIMEOUT: &str = "system_timeout";

/// Longest wait for a connection.
pub(super) const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// What kept a statement from being done.
pub(super) enum Trouble {
    Sql(sqlx::Error),
    Known(Failure),
    /// The bank is not there.
    Lost,
    /// No answer came in time.
    Late,
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl Trouble {
    /// What the operation says of it; `what` is the operation.
    pub(super) fn failure(self, what: &str) -> Failure {
        match self {
            Self::Sql(error) => failed(what, &error),
            Self::Known(failure) => failure,
            Self::Late => {
                let why = "it stands still, or has too much to do";
                Failure::transient(TIMEOUT, format!("{what}: PostgreSQL has not answered in time: {why}"))
            }
            Self::Lost => Failure::permanent(
                bench_proto::failure::code::MEMORIES_LOST,
                format!("{what}: the database has no such bank: another one was named, or it was removed"),
            ),
        }
    }
}

/// Whether a table or schema is not there.
pub(super) fn is_no_table(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|said| said.code()).is_some_and(|code| ["42P01", "3F000"].contains(&&*code))
}

/// What an error of the server means, by SQLSTATE: lost connections (08), lack of resources (53), conflicts (40, 55), shutdowns (57).
pub(super) fn failed(what: &str, error: &sqlx::Error) -> Failure {
    let code = error.as_database_error().and_then(|said| said.code()).map(|code| code.into_owned());
    match (error, code.as_deref()) {
        (sqlx::Error::Database(said), Some(code)) => {
            let message = format!("{what}: PostgreSQL says: {}", said.message());
            match code.get(..2).unwrap_or_default() {
                "08" | "53" | "57" => Failure::transient("system_connection", message),
                "40" | "55" => Failure::transient("system_refused", message),
                "28" | "3D" => Failure::terminal("system_auth", format!("{message}; check {URL_VARIABLE}")),
                _ => Failure::permanent("system_refused", message),
            }
        }
        (sqlx::Error::Io(error), _) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Failure::transient(UNREACHABLE, format!("{what}: no PostgreSQL server listens there: {error}"))
        }
        (sqlx::Error::PoolTimedOut, _) => {
            let seconds = CONNECTED_WITHIN.as_secs();
            let message = format!(
                "{what}: PostgreSQL took no connection within {seconds} s: it stands still, or has as many as its max_connections"
            );
            Failure::transient(TIMEOUT, message)
        }
        (sqlx::Error::Io(_) | sqlx::Error::PoolClosed, _) => {
            Failure::transient("system_connection", format!("{what}: the connection with PostgreSQL broke: {error}"))
        }
        _ => Failure::permanent("system_refused", format!("{what}: {error}")),
    }
}
