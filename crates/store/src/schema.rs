//! Versions of the schema: which ones this build can use, and the migrations that lead there.

use crate::{StoreError, StoreResult};

/// Version of the schema that this build writes.
pub(crate) const VERSION: i64 = 23;

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
pub(crate) fn must_fit(found: Found) -> StoreResult<()> {
    let advice = if found.version < VERSION {
        "run `bench-coord migrate`"
    } else if found.min_reader > VERSION || found.min_writer > VERSION {
        "use the build that wrote it, or a newer one"
    } else {
        return Ok(());
    };
    Err(StoreError::Schema { found: found.version, supported: VERSION, advice: advice.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_schemas_are_used_as_long_as_they_allow_it() {
        let found = |version, min_reader, min_writer| Found { version, min_reader, min_writer };
        assert!(must_fit(found(VERSION, 1, 1)).is_ok());
        assert!(must_fit(found(VERSION + 1, VERSION, VERSION)).is_ok());
        let error = must_fit(found(VERSION + 2, VERSION, VERSION + 1)).expect_err("is too new").to_string();
        assert!(error.contains("newer"), "{error}");
        let error = must_fit(found(0, 0, 0)).expect_err("is too old").to_string();
        assert!(error.contains("migrate"), "{error}");
    }
}
