//! The extension `vector` of a PostgreSQL server.

use bench_proto::failure::Failure;
use sqlx::PgConnection;

use super::trouble::{Trouble, failed};
use crate::NOT_INSTALLED;

/// First version of the extension with an index `hnsw`.
const FIRST_WITH_HNSW: (u32, u32) = (0, 5);

/// The versions of the extension and of the server.
pub(super) async fn versions(connection: &mut PgConnection) -> Result<(String, String), Trouble> {
    let server: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut *connection).await?;
    let server = server.split_whitespace().next().unwrap_or_default().to_owned();
    Ok((made(connection).await.map_err(Trouble::Known)?, server))
}

async fn installed(connection: &mut PgConnection) -> Result<Option<String>, Failure> {
    let version = sqlx::query_scalar("SELECT extversion FROM pg_extension WHERE extname = 'vector'");
    version.fetch_optional(&mut *connection).await.map_err(|error| failed("connect", &error))
}

/// The version of the extension, which is made in the database where it is not yet.
pub(super) async fn made(connection: &mut PgConnection) -> Result<String, Failure> {
    if let Some(version) = installed(connection).await? {
        return Ok(version);
    }
    let made = sqlx::query("CREATE EXTENSION IF NOT EXISTS vector").execute(&mut *connection).await;
    match (made, installed(connection).await?) {
        (_, Some(version)) => Ok(version),
        (made, None) => {
            let why = made.err().map_or_else(String::new, |error| match &error {
                sqlx::Error::Database(said) => format!(" ({})", said.message()),
                other => format!(" ({other})"),
            });
            let message = format!(
                "pgvector: the PostgreSQL server has no extension vector{why}: install it (Debian and Ubuntu: apt-get install \
                 postgresql-NN-pgvector, with the server's version for NN), then CREATE EXTENSION vector in the database"
            );
            Err(Failure::terminal(NOT_INSTALLED, message))
        }
    }
}

/// Whether that version of the extension has an index `hnsw`.
pub(super) fn has_hnsw(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= FIRST_WITH_HNSW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, has) in [("0.4.4", false), ("0.5.0", true), ("0.10.1", true), ("1.0", true), ("x", false)] {
            assert_eq!(has_hnsw(version), has, "{version}");
        }
    }
}
