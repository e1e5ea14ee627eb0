//! Versions of the schema: which ones this build can use, and the migrations that lead there.

use crate::{
    StoreError, StoreResult,
    sql::{Conn, Sql, args},
};

/// Version of the schema that this build writes.
pub(crate) const VERSION: i64 = 17;

/// Migrations of a backend: the one at index `i` leads to version `i + 1`.
pub(crate) type Migrations = &'static [&'static str];

/// What the schema row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Version of the schema.
    pub(crate) version: i64,
    /// Lowest version that a build must know to read.
    pub(crate) min_reader: i64,
    /// Lowest version that a build must know to write.
    pub(crate) min_writer: i64,
}

/// Whether a build of schema [`VERSION`] can use what it found. Older schemas must have been migrated before.
pub(crate) fn judge(found: Found) -> StoreResult<()> {
    let advice = if found.version < VERSION {
        "run `bench-coord migrate`"
    } else if found.min_reader > VERSION || found.min_writer > VERSION {
        "use the build that wrote it, or a newer one"
    } else {
        return Ok(());
    };
    Err(StoreError::Schema { found: found.version, supported: VERSION, advice: advice.to_owned() })
}

/// Reads the schema row and judges it; returns the version.
pub(crate) async fn check(conn: &mut dyn Conn) -> StoreResult<i64> {
    static ROW: Sql = Sql::new(|| "SELECT version, min_reader, min_writer FROM bench_schema".to_owned());
    let rows = conn.fetch(&ROW, args![]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("the schema row is missing".to_owned()))?;
    let found = Found { version: row.int(0)?, min_reader: row.int(1)?, min_writer: row.int(2)? };
    judge(found)?;
    Ok(found.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_schemas_are_used_as_long_as_they_allow_it() {
        let found = |version, min_reader, min_writer| Found { version, min_reader, min_writer };
        assert!(judge(found(VERSION, 1, 1)).is_ok());
        assert!(judge(found(VERSION + 1, VERSION, VERSION)).is_ok());
        let error = judge(found(VERSION + 2, VERSION, VERSION + 1)).expect_err("is too new").to_string();
        assert!(error.contains("newer"), "{error}");
        let error = judge(found(0, 0, 0)).expect_err("is too old").to_string();
        assert!(error.contains("migrate"), "{error}");
    }
}
