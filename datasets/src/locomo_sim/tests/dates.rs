//! A second reading of the time expressions, written from their meaning alone and with its own calendar, to check the
//! generator's dates.

/// Days since 1970-01-01 (Howard Hinnant's `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The way back.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const WORDS: [&str; 11] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"];
const MONTH_NAMES: &str = "January February March April May June July August September October November December";

fn month(year: i64, month: i64) -> String {
    let index = year * 12 + month - 1;
    let name = MONTH_NAMES.split(' ').nth(index.rem_euclid(12) as usize).expect("twelve names");
    format!("{name} {}", index.div_euclid(12))
}

pub(super) fn day(days: i64) -> String {
    let (y, m, d) = civil_from_days(days);
    format!("{d} {}", month(y, m))
}

/// The day of a session time `YYYY-MM-DDT…`.
pub(super) fn told(time: &str) -> i64 {
    let mut parts = time[..10].split('-').map(|part| part.parse::<i64>().expect("digits"));
    let mut next = || parts.next().expect("three parts");
    days_from_civil(next(), next(), next())
}

/// What a turn says about time, told on this day: the gold, and the day when it is exact.
pub(super) fn reading(text: &str, told: i64) -> (String, Option<i64>) {
    let text = text.to_lowercase();
    let (year, this_month, _) = civil_from_days(told);
    // 1970-01-01 was a Thursday
    let weekday = (told + 3).rem_euclid(7);
    let exact = |days: i64| (day(days), Some(days));
    for (index, name) in WEEKDAYS.iter().enumerate() {
        let index = index as i64;
        if text.contains(&format!("last {name}")) {
            return exact(
                (1..=7).map(|back| told - back).find(|day| (day + 3).rem_euclid(7) == index).expect("a week"),
            );
        }
        if text.contains(&format!("this coming {name}")) {
            assert!(index > weekday);
            return exact(told + index - weekday);
        }
    }
    for (index, word) in WORDS.iter().enumerate() {
        let count = index as i64 + 1;
        let says = |form: &str| text.contains(&form.replace('#', word));
        if says("exactly # week ago") || says("exactly # weeks ago") {
            return exact(told - 7 * count);
        }
        if says("in exactly # week") {
            return exact(told + 7 * count);
        }
        if says("# days ago") {
            return exact(told - count);
        }
        if says("in # days") {
            return exact(told + count);
        }
        if says("# months ago") || says("for # months now") {
            return (month(year, this_month - count), None);
        }
        if says("for # years now") {
            return ((year - count).to_string(), None);
        }
    }
    let fixed: [(&str, String, Option<i64>); 9] = [
        ("yesterday", day(told - 1), Some(told - 1)),
        ("tomorrow", day(told + 1), Some(told + 1)),
        ("last weekend", format!("The weekend before {}", day(told)), None),
        ("last week", format!("The week before {}", day(told)), None),
        ("last month", month(year, this_month - 1), None),
        ("next month", month(year, this_month + 1), None),
        ("last year", (year - 1).to_string(), None),
        ("next year", (year + 1).to_string(), None),
        ("", "no time in this turn".to_owned(), None),
    ];
    let (_, gold, exact) = fixed.into_iter().find(|(form, ..)| text.contains(form)).expect("the last one always is");
    (gold, exact)
}

#[test]
fn the_calendar_is_right() {
    assert_eq!((days_from_civil(1970, 1, 1), days_from_civil(2000, 3, 1)), (0, 11_017));
    for days in -800_000..800_000 {
        let (year, month, day) = civil_from_days(days);
        assert_eq!(days_from_civil(year, month, day), days);
    }
}
