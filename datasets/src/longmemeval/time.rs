//! LongMemEval's times: `2023/05/20 (Sat) 02:21`, no seconds, no zone.

use jiff::civil::DateTime;

/// Reads a time; nothing when it has another form, or the day of the week is not that of the date.
pub(super) fn parse(text: &str) -> Option<DateTime> {
    DateTime::strptime("%Y/%m/%d (%a) %H:%M", text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locomo::time::iso;

    #[test]
    fn one_form_is_read() {
        for (text, expected) in [
            ("2023/05/20 (Sat) 02:21", Some("2023-05-20T02:21:00")),
            (" 2022/03/02 (Wed) 23:59 ", Some("2022-03-02T23:59:00")),
            ("2023/05/20 (Sun) 02:21", None),
            ("2023/05/32 (Sat) 02:21", None),
            ("2023/05/20 (Sat) 24:21", None),
            ("2023/05/20", None),
            ("1:56 pm on 8 May, 2023", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(iso).as_deref(), expected, "{text}");
        }
    }
}
