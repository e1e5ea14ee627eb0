//! Times for people and for reports.

use jiff::{Timestamp, tz::TimeZone};

/// Milliseconds since 1970 as RFC 3339 in UTC, for reports.
#[must_use]
pub(crate) fn rfc3339(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| "-".to_owned(), |t| t.to_string())
}

/// Milliseconds since 1970 in the machine's zone, to the minute, for tables.
#[must_use]
pub(crate) fn local(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| "-".to_owned(), |t| t.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
}
