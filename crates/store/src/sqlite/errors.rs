//! What SQLite's errors mean for the caller.

use std::path::Path;

use crate::StoreError;

// primary result codes, <https://sqlite.org/rescode.html>
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const TOOBIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const NOTADB: i32 = 26;

/// Sorts an error of a running store.
pub(super) fn store_error(error: &sqlx::Error) -> StoreError {
    sorted(error).because(error)
}

fn sorted(error: &sqlx::Error) -> StoreError {
    let message = error.to_string();
    match error {
        sqlx::Error::Database(database) => {
            by_code(primary_code(error).unwrap_or_default(), database.message().to_owned())
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } => {
            StoreError::Corrupt(message.into())
        }
        sqlx::Error::Encode(_) => StoreError::BadData(message),
        _ => StoreError::Unavailable(message.into()),
    }
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn by_code(primary: i32, message: String) -> StoreError {
    match primary {
        FULL => StoreError::Full(message.into()),
        // a statement that does not fit the schema: the file is not what its schema row says
        CORRUPT | NOTADB | ERROR => StoreError::Broken(message.into()),
        CONSTRAINT | TOOBIG | MISMATCH => StoreError::BadData(message),
        READONLY => StoreError::Open(format!("the store cannot be written: {message}").into()),
        // busy, locked, and input or output that failed: another try may pass
        _ => StoreError::Unavailable(message.into()),
    }
}

/// Sorts an error of opening a file.
pub(super) fn on_open(path: &Path, error: &sqlx::Error) -> StoreError {
    let place = path.display();
    if matches!(primary_code(error), Some(BUSY | LOCKED)) {
        return StoreError::Unavailable(format!("{place} is locked by another program").into()).because(error);
    }
    match store_error(error) {
        StoreError::Corrupt(why) | StoreError::Broken(why) => {
            let words = format!("{place} is no SQLite file, or a damaged one ({why})");
            StoreError::Broken(why.saying(words))
        }
        StoreError::Unavailable(why) | StoreError::Open(why) => {
            let words = format!("cannot open the store {place}: {why}");
            StoreError::Open(why.saying(words))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn errors_say_what_can_be_done() {
        let of_code = |code| by_code(code, "x".into());
        let (busy, locked) = (5, 6);
        assert!(of_code(busy).is_transient() && of_code(locked).is_transient());
        assert!(matches!(of_code(FULL), StoreError::Full(_)));
        assert!(matches!(of_code(NOTADB), StoreError::Broken(_)));
        assert!(!of_code(NOTADB).is_about_rows(), "nothing else of it can be read either");
        assert!(matches!(of_code(CONSTRAINT), StoreError::BadData(_)));
    }

    #[test]
    fn what_sqlite_said_is_the_cause() {
        let closed = on_open(Path::new("bench.db"), &sqlx::Error::PoolClosed);
        assert!(closed.to_string().starts_with("cannot open the store bench.db: "), "{closed}");
        let cause = closed.source().map(ToString::to_string);
        assert_eq!(cause, Some(sqlx::Error::PoolClosed.to_string()));
    }
}
