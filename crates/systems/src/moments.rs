//! Times of memories and of questions' filters, so that they can be compared: the dataset's times have no zone.

use std::borrow::Cow;

use bench_proto::{dataset::Filter, failure::Failure};
use jiff::civil::DateTime;

/// Characters of a date without a time of day, and of a date with one (`YYYY-MM-DDTHH:MM:SS`).
const DATE: usize = 10;
const DATE_AND_TIME: usize = 19;

/// From when until when a question may be answered from, both in the form `YYYY-MM-DDTHH:MM:SS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) from: Option<String>,
    pub(crate) until: Option<String>,
}

impl Bounds {
    /// Those of a filter: a date without a time of day is its whole day.
    ///
    /// # Errors
    /// A time that cannot be read: without it the question would be answered from everything.
    pub(crate) fn from_filter(filter: &Filter) -> Result<Self, Failure> {
        let from = bound("from", filter.from.as_deref(), begin)?;
        Ok(Self { from, until: bound("until", filter.until.as_deref(), end)? })
    }

    /// Whether something of this time may be used; what has no time that can be read may not, where there is a bound.
    pub(crate) fn admit(&self, time: Option<&str>) -> bool {
        if *self == Self::default() {
            return true;
        }
        let Some(time) = time.and_then(begin) else { return false };
        // times of one form are in the order of their texts
        self.from.as_deref().is_none_or(|from| *time >= *from)
            && self.until.as_deref().is_none_or(|until| *time <= *until)
    }
}

fn bound(name: &str, time: Option<&str>, read: fn(&str) -> Option<Cow<'_, str>>) -> Result<Option<String>, Failure> {
    let Some(time) = time else { return Ok(None) };
    // one that only looks like a time would be compared as a text
    let is_time = time.parse::<DateTime>().is_ok();
    let read = read(time).filter(|_| is_time).ok_or_else(|| {
        let message =
            format!("the question's filter has `{name}: {time}`, which is no date and no time as 2031-05-08T12:30:00");
        Failure::permanent("question_filter", message)
    })?;
    Ok(Some(read.into_owned()))
}

/// A time in the form that is compared; a date is its beginning.
fn begin(time: &str) -> Option<Cow<'_, str>> {
    if time.len() == DATE_AND_TIME && time.as_bytes()[DATE] == b'T' {
        return Some(Cow::Borrowed(time));
    }
    let time: DateTime = time.parse().ok()?;
    Some(Cow::Owned(time.strftime("%Y-%m-%dT%H:%M:%S").to_string()))
}

/// The same; a date is its end.
fn end(time: &str) -> Option<Cow<'_, str>> {
    let begin = begin(time)?;
    if time.len() > DATE {
        return Some(begin);
    }
    Some(Cow::Owned(format!("{}T23:59:59", begin.get(..DATE)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(from: Option<&str>, until: Option<&str>) -> Result<Bounds, Failure> {
        let [from, until] = [from, until].map(|time| time.map(str::to_owned));
        Bounds::from_filter(&Filter { from, until, ..Filter::default() })
    }

    #[test]
    fn a_date_is_its_whole_day_wherever_it_stands() {
        for (from, until, time, admitted) in [
            (Some("2031-05-08"), None, "2031-05-08T00:00:00", true),
            (Some("2031-05-08T00:00:00"), None, "2031-05-08", true),
            (Some("2031-05-08"), None, "2031-05-07T23:59:59", false),
            (None, Some("2031-05-08"), "2031-05-08T23:59:59", true),
            (None, Some("2031-05-08"), "2031-05-09", false),
            (None, Some("2031-05-08T12:00:00"), "2031-05-08", true),
            (Some("2031-05-08T12:00:00"), None, "2031-05-08 12:30", true),
            (Some("2031-05-08"), Some("2031-05-08"), "some day", false),
        ] {
            let bounds = bounds(from, until).expect("can be read");
            assert_eq!(bounds.admit(Some(time)), admitted, "{from:?} {until:?} {time}");
        }
        assert!(bounds(None, None).expect("is open").admit(None));
        assert!(!bounds(Some("2031-05-08"), None).expect("can be read").admit(None));
    }

    #[test]
    fn a_bound_that_cannot_be_read_is_no_missing_bound() {
        for (from, until) in [
            (Some("last May"), None),
            (None, Some("2031-13-08")),
            (None, Some("")),
            (Some("2031-13-08T00:00:00"), None),
            (None, Some("some daysTof always")),
        ] {
            let failure = bounds(from, until).expect_err("cannot be read");
            assert_eq!(failure.code, "question_filter", "{}", failure.message);
        }
    }
}
