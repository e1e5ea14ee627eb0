//! LoCoMo's session times: `1:56 pm on 8 May, 2023`, no padding, no zone.

use bench_proto::dataset::MONTHS;
use jiff::civil::DateTime;

/// Reads a session time; nothing when it has another form.
pub(crate) fn parse(text: &str) -> Option<DateTime> {
    let (clock, date) = text.trim().split_once(" on ")?;
    let (clock, half) = clock.trim().split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let hour: i8 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = hour % 12
        + match half.to_ascii_lowercase().as_str() {
            "am" => 0,
            "pm" => 12,
            _ => return None,
        };
    let (day, rest) = date.trim().split_once(' ')?;
    let (month, year) = rest.split_once(", ")?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let (month, day) = (i8::try_from(month).ok()?, day.parse().ok()?);
    DateTime::new(year.trim().parse().ok()?, month, day, hour, minute.parse().ok()?, 0, 0).ok()
}

/// As the contract writes times: `YYYY-MM-DDTHH:MM:SS`.
pub(crate) fn iso(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// As LoCoMo writes times.
pub(crate) fn text(time: DateTime) -> String {
    let half = if time.hour() < 12 { "am" } else { "pm" };
    let hour = (time.hour() + 11) % 12 + 1;
    let month = MONTHS[time.month() as usize - 1];
    format!("{hour}:{:02} {half} on {} {month}, {}", time.minute(), time.day(), time.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_halves_of_the_day() {
        let cases = [
            ("1:56 pm on 8 May, 2023", Some("2023-05-08T13:56:00")),
            ("1:56 am on 28 December, 2022", Some("2022-12-28T01:56:00")),
            ("12:09 am on 13 September, 2023", Some("2023-09-13T00:09:00")),
            ("12:24 pm on 7 April, 2022", Some("2022-04-07T12:24:00")),
            ("0:10 am on 7 April, 2022", None),
            ("13:10 pm on 7 April, 2022", None),
            ("1:10 pm on 31 April, 2022", None),
            ("1:10 on 7 April, 2022", None),
            ("7 April, 2022", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).map(iso).as_deref(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn written_times_read_back(year in 1900_i16..2200, month in 1_i8..=12, day in 1_i8..=28, hour in 0_i8..24, minute in 0_i8..60) {
            let time = jiff::civil::date(year, month, day).at(hour, minute, 0, 0);
            proptest::prop_assert_eq!(parse(&text(time)), Some(time));
        }
    }
}
