//! What PostgreSQL's errors mean for the caller.

use std::io::ErrorKind;

use super::place::Destination;
use crate::StoreError;

/// Sorts an error of a running store.
pub(super) fn store_error(error: &sqlx::Error) -> StoreError {
    sorted(error).because(error)
}

fn sorted(error: &sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(database) => {
            by_state(database.code().as_deref().unwrap_or_default(), database.message().to_owned())
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } => {
            StoreError::Corrupt(error.to_string().into())
        }
        sqlx::Error::Encode(_) => StoreError::BadData(error.to_string()),
        sqlx::Error::Io(error) => StoreError::Unavailable(format!("the connection broke: {error}").into()),
        _ => StoreError::Unavailable(error.to_string().into()),
    }
}

/// Whether the connection is of no use any more: broken, ended by the server, or with statements that another one knows.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            let state = database.code().unwrap_or_default();
            state.starts_with("08")
                || state.starts_with("57P")
                || ["25P03", "26000", "42P05", "0A000"].contains(&&*state)
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::Encode(_) => false,
        _ => true,
    }
}

/// By SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn by_state(state: &str, message: String) -> StoreError {
    match state {
        // somebody else's disk: who holds results waits with them until there is room
        "53100" => {
            StoreError::Unavailable(format!("{message}; the disk under Postgres is full, make room there").into())
        }
        // a pooler that hands out another server for every transaction, and was not recognised
        "26000" | "42P05" | "08P01" if message.contains("prepared statement") => StoreError::Unavailable(
            format!("{message}; behind a pooler, add ?pgbouncer=true to the store's URL").into(),
        ),
        "25006" => StoreError::Unavailable(format!("{message}; the server is read-only, a standby perhaps").into()),
        "42501" => StoreError::Denied(message),
        _ => match state.get(..2).unwrap_or_default() {
            "22" | "23" | "54" => StoreError::BadData(message),
            "28" | "3D" => StoreError::Open(message.into()),
            // a statement that does not fit the schema: it is not what its row says
            "42" => StoreError::Broken(message.into()),
            // a damaged page
            "XX" if state != "XX000" => StoreError::Corrupt(message.into()),
            // lost connections (08), lack of resources (53), conflicts with others (40, 55), shutdowns and cancelled
            // statements (57), a transaction that the server ended (25): another try may pass
            _ => StoreError::Unavailable(message.into()),
        },
    }
}

/// Sorts an error of opening a store; says what to do.
pub(super) fn on_open(place: &Destination, error: &sqlx::Error) -> StoreError {
    sorted_on_open(place, error).because(error)
}

fn sorted_on_open(place: &Destination, error: &sqlx::Error) -> StoreError {
    let cannot = |why: String| StoreError::Open(format!("cannot open the store {place}: {why}").into());
    match error {
        sqlx::Error::Database(database) => {
            let (state, message) = (database.code().unwrap_or_default(), database.message());
            match state.get(..2).unwrap_or_default() {
                "28" => cannot(format!(
                    "{message}; check the user and the password in the URL (or PGPASSWORD, or ~/.pgpass), and pg_hba.conf"
                )),
                "3D" => cannot(format!("{message}; make it (createdb {}) or name another one", place.database())),
                _ if state == "42P07" => {
                    cannot(format!("{message}; the store needs a database, or a schema, of its own"))
                }
                // what holds it may end
                _ if state == "55P03" => StoreError::Unavailable(
                    format!(
                        "the store {place} cannot be changed: {message}; another migration, or a transaction that somebody has \
                         left open, holds it: SELECT pid, usename, state, query FROM pg_stat_activity names it"
                    )
                    .into(),
                ),
                _ => match by_state(&state, message.to_owned()) {
                    StoreError::Open(message) => cannot(message.to_string()),
                    StoreError::Denied(message) => {
                        cannot(format!("{message}: grant what migrations/postgres/README.md lists"))
                    }
                    other => other,
                },
            }
        }
        sqlx::Error::Io(error) => match error.kind() {
            // the same as a broker that is away: it may come back
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => StoreError::Unavailable(
                format!("no server listens at {place} ({error}); start it, or check host and port in the URL").into(),
            ),
            ErrorKind::TimedOut => StoreError::Unavailable(
                format!("{place} does not answer ({error}); check host and port in the URL, and firewalls").into(),
            ),
            // what rustls says about the certificate comes as an error of reading
            ErrorKind::InvalidData => {
                cannot(format!("no encrypted connection: {error}; check sslmode and sslrootcert in the URL"))
            }
            _ => cannot(format!("{error}; check host and port in the URL")),
        },
        sqlx::Error::Tls(error) => {
            cannot(format!("no encrypted connection: {error}; check sslmode and sslrootcert in the URL"))
        }
        sqlx::Error::Configuration(error) => cannot(format!("{error}; check the parameters of the URL")),
        other => cannot(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn errors_say_what_can_be_done() {
        let of_code = |state| by_state(state, "x".into());
        for passing in
            ["08006", "40001", "40P01", "53100", "53300", "55P03", "57P01", "57P03", "57014", "25P03", "XX000", ""]
        {
            assert!(of_code(passing).is_transient(), "{passing}");
        }
        for data in ["22001", "22021", "23505", "54000"] {
            assert!(matches!(of_code(data), StoreError::BadData(_)), "{data}");
        }
        assert!(of_code("53100").to_string().contains("make room"), "whoever may, is told what to do");
        assert!(matches!(of_code("28P01"), StoreError::Open(_)));
        assert!(matches!(of_code("3D000"), StoreError::Open(_)));
        assert!(matches!(of_code("42P01"), StoreError::Broken(_)));
        assert!(matches!(of_code("XX001"), StoreError::Corrupt(_)));
        let pooled = by_state("26000", "prepared statement \"s1\" does not exist".into());
        assert!(pooled.to_string().contains("?pgbouncer=true"), "{pooled}");
    }

    #[test]
    fn what_the_connection_met_is_the_cause() {
        let broken = store_error(&sqlx::Error::Io(ErrorKind::BrokenPipe.into()));
        let chain = std::iter::successors(broken.source(), |error| (*error).source()).map(ToString::to_string);
        assert_eq!(chain.last(), Some(std::io::Error::from(ErrorKind::BrokenPipe).to_string()));
    }
}
