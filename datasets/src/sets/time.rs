//! Times as people write them into their files.

use crate::neutral;

/// `YYYY-MM-DDTHH:MM:SS` of an ISO date or time, with or without seconds, or of the form `2023/05/20 (Sat) 02:21`; nothing when
/// it is none of these. A zone is left out, as the dataset model has none.
pub(super) fn iso(text: &str) -> Option<String> {
    neutral::time(&plain(text))
}

/// Whether a time says `am` or `pm`.
pub(super) fn tells_half(text: &str) -> bool {
    neutral::tells_half(&plain(text))
}

/// The text of a time without the day of the week.
fn plain(text: &str) -> String {
    let mut text = text.trim().replace('/', "-");
    if let (Some(open), Some(close)) = (text.find('('), text.find(')'))
        && open < close
    {
        text.replace_range(open..=close, "");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time as ISO 8601 has it, where a day without an hour means its end.
pub(super) fn iso_at_end(text: &str) -> Option<String> {
    let time = iso(text)?;
    match time.strip_suffix("T00:00:00") {
        Some(day) if !text.contains(':') => Some(format!("{day}T23:59:59")),
        _ => Some(time),
    }
}

#[cfg(test)]
mod tests {
    use super::{iso, iso_at_end};

    #[test]
    fn dates_and_times_are_read() {
        for (text, expected) in [
            ("2023-05-20", Some("2023-05-20T00:00:00")),
            (" 2023-05-20T02:21 ", Some("2023-05-20T02:21:00")),
            ("2023-05-20 02:21:59", Some("2023-05-20T02:21:59")),
            ("2023-05-20T02:21:59Z", Some("2023-05-20T02:21:59")),
            ("2023/05/20 (Sat) 02:21", Some("2023-05-20T02:21:00")),
            ("2023/05/20 (Sat) 02:21 PM", Some("2023-05-20T14:21:00")),
            ("2023-05-20 02:21 a.m. UTC", Some("2023-05-20T02:21:00")),
            ("2023-05-20 14:21 PM", None),
            ("2023-13-20", None),
            ("last week", None),
            ("", None),
        ] {
            assert_eq!(iso(text).as_deref(), expected, "{text}");
        }
        let ends = ["2023-05-20", "2023-05-20T00:00", "2023-05-20 02:21", "soon"].map(iso_at_end);
        let [day, midnight, hour, none] = ends.each_ref().map(Option::as_deref);
        assert_eq!([day, midnight], [Some("2023-05-20T23:59:59"), Some("2023-05-20T00:00:00")]);
        assert_eq!([hour, none], [Some("2023-05-20T02:21:00"), None]);
    }
}
