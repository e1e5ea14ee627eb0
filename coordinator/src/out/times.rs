//! Times for people and for reports.

use jiff::{Span, Timestamp, Zoned, civil::DateTime, tz::TimeZone};

/// Milliseconds since 1970 as RFC 3339 in UTC, for reports.
#[must_use]
pub(crate) fn rfc3339(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| "-".to_owned(), |t| t.to_string())
}

/// The moment that a person means by a date or a time in the machine's zone, a time with a zone, or how long ago (`3d`, `12h`,
/// `1d 6h`): milliseconds since 1970.
///
/// # Errors
/// One line with the forms, for what is none.
pub(crate) fn since(text: &str) -> Result<i64, String> {
    let zone = TimeZone::system();
    let moment = if let Ok(moment) = text.parse::<Timestamp>() {
        Some(moment)
    } else if let Ok(at) = text.parse::<DateTime>() {
        at.to_zoned(zone).ok().map(|at| at.timestamp())
    } else {
        let ago = text.parse::<Span>().ok().map(Span::abs);
        ago.and_then(|ago| Zoned::now().checked_sub(ago).ok()).map(|at| at.timestamp())
    };
    moment.map(Timestamp::as_millisecond).ok_or_else(|| {
        "it is neither a date (2026-11-20), a time (2026-11-20T14:00) nor how long ago (3d, 12h)".to_owned()
    })
}

/// Milliseconds since 1970 in the machine's zone, to the minute, for tables.
#[must_use]
pub(crate) fn local(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| "-".to_owned(), |t| t.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_how_long_ago() {
        let exact = since("2026-11-20T14:00:00Z").expect("a time with a zone");
        assert_eq!(rfc3339(exact), "2026-11-20T14:00:00Z");
        let (day, hours) = (since("2026-11-20").expect("a date"), since("2026-11-20T14:00").expect("a time"));
        assert_eq!(hours - day, 14 * 3_600_000);
        let now = Timestamp::now().as_millisecond();
        for ago in ["12h", "-12h", "PT12H"] {
            let off = now - since(ago).expect("how long ago") - 12 * 3_600_000;
            assert!(off.abs() < 60_000, "{ago}: {off} ms off");
        }
        for none in ["", "yesterday", "2026-13-01", "9999999999y"] {
            assert!(since(none).is_err(), "{none}");
        }
    }
}
