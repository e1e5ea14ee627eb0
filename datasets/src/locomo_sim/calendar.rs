//! When something happened, in the words of a speaker and as a date.
//!
//! Only expressions with one reading are used: `last Tuesday` only when the most recent Tuesday also lies in the week
//! before, `this coming Friday` only when it lies in the same week, `last weekend` only from Monday to Friday.

use bench_proto::dataset::MONTHS;
use jiff::{
    ToSpan,
    civil::{Date, Weekday},
};

use super::rng::Rng;

/// A time relative to the day on which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    DaysAgo(i64),
    LastWeekday(Weekday),
    WeeksAgo(i64),
    LastWeek,
    LastWeekend,
    MonthsAgo(i64),
    LastYear,
    InDays(i64),
    ThisWeekday(Weekday),
    InWeeks(i64),
    NextMonth,
    NextYear,
}

/// What a time is, once the day on which it was told is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Day(Date),
    WeekBefore(Date),
    WeekendBefore(Date),
    Month(Date),
    Year(i16),
}

const NUMBERS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// A small number as a word.
pub(super) fn number_word(number: i64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| NUMBERS.get(number)).copied().unwrap_or("many")
}

fn weekday_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

fn small(rng: &mut Rng, low: i64, high: i64) -> i64 {
    low + rng.below((high - low + 1) as usize) as i64
}

/// `May 2023`.
pub(super) fn month_text(date: Date) -> String {
    format!("{} {}", MONTHS[date.month() as usize - 1], date.year())
}

/// `7 May 2023`.
pub(super) fn day_text(date: Date) -> String {
    format!("{} {}", date.day(), month_text(date))
}

/// The first day of the month that many months earlier (or later, when negative).
pub(super) fn months_before(date: Date, months: i64) -> Date {
    date.first_of_month().saturating_sub(months.months())
}

impl When {
    /// A time in the past of this day.
    pub(super) fn past(rng: &mut Rng, told: Date) -> Self {
        let weekday = told.weekday().to_monday_zero_offset();
        match rng.below(12) {
            0 => Self::DaysAgo(1),
            1 | 2 => Self::DaysAgo(small(rng, 2, 5)),
            3..=5 => {
                let offset = small(rng, i64::from(weekday), 6);
                Self::LastWeekday(offset_weekday(offset))
            }
            6 | 7 => Self::WeeksAgo(small(rng, 1, 4)),
            8 => Self::LastWeek,
            9 if weekday < 5 => Self::LastWeekend,
            9 | 10 => Self::MonthsAgo(small(rng, 1, 5)),
            _ => Self::LastYear,
        }
    }

    /// A day in the past of this day, exact.
    pub(super) fn past_day(rng: &mut Rng, told: Date) -> Self {
        loop {
            let when = Self::past(rng, told);
            if matches!(when, Self::DaysAgo(_) | Self::LastWeekday(_) | Self::WeeksAgo(_)) {
                return when;
            }
        }
    }

    /// A time in the future of this day.
    pub(super) fn future(rng: &mut Rng, told: Date) -> Self {
        let weekday = i64::from(told.weekday().to_monday_zero_offset());
        match rng.below(8) {
            0 => Self::InDays(1),
            1 => Self::InDays(small(rng, 2, 6)),
            2 | 3 if weekday < 6 => Self::ThisWeekday(offset_weekday(small(rng, weekday + 1, 6))),
            2..=4 => Self::InWeeks(small(rng, 1, 4)),
            5 | 6 => Self::NextMonth,
            _ => Self::NextYear,
        }
    }

    /// As a speaker says it, lower case.
    pub(super) fn phrase(self) -> String {
        match self {
            Self::DaysAgo(1) => "yesterday".to_owned(),
            Self::DaysAgo(days) => format!("{} days ago", number_word(days)),
            Self::LastWeekday(weekday) => format!("last {}", weekday_name(weekday)),
            Self::WeeksAgo(1) => "exactly one week ago".to_owned(),
            Self::WeeksAgo(weeks) => format!("exactly {} weeks ago", number_word(weeks)),
            Self::LastWeek => "last week".to_owned(),
            Self::LastWeekend => "last weekend".to_owned(),
            Self::MonthsAgo(1) => "last month".to_owned(),
            Self::MonthsAgo(months) => format!("{} months ago", number_word(months)),
            Self::LastYear => "last year".to_owned(),
            Self::InDays(1) => "tomorrow".to_owned(),
            Self::InDays(days) => format!("in {} days", number_word(days)),
            Self::ThisWeekday(weekday) => format!("this coming {}", weekday_name(weekday)),
            Self::InWeeks(1) => "in exactly one week".to_owned(),
            Self::InWeeks(weeks) => format!("in exactly {} weeks", number_word(weeks)),
            Self::NextMonth => "next month".to_owned(),
            Self::NextYear => "next year".to_owned(),
        }
    }

    /// When it was, told on this day.
    pub(super) fn moment(self, told: Date) -> Moment {
        let days = |days: i64| Moment::Day(told.saturating_add(days.days()));
        match self {
            Self::DaysAgo(count) => days(-count),
            Self::LastWeekday(weekday) => days(-i64::from(told.weekday().since(weekday)) - same(told, weekday)),
            Self::WeeksAgo(count) => days(-7 * count),
            Self::LastWeek => Moment::WeekBefore(told),
            Self::LastWeekend => Moment::WeekendBefore(told),
            Self::MonthsAgo(count) => Moment::Month(months_before(told, count)),
            Self::LastYear => Moment::Year(told.year() - 1),
            Self::InDays(count) => days(count),
            Self::ThisWeekday(weekday) => days(i64::from(weekday.since(told.weekday())) + same(told, weekday)),
            Self::InWeeks(count) => days(7 * count),
            Self::NextMonth => Moment::Month(months_before(told, -1)),
            Self::NextYear => Moment::Year(told.year() + 1),
        }
    }
}

/// Seven days when the weekday is that of the day itself: it is never the day itself that is meant.
fn same(told: Date, weekday: Weekday) -> i64 {
    if told.weekday() == weekday { 7 } else { 0 }
}

fn offset_weekday(offset: i64) -> Weekday {
    i8::try_from(offset)
        .ok()
        .and_then(|offset| Weekday::from_monday_zero_offset(offset).ok())
        .unwrap_or(Weekday::Sunday)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn known_days() {
        // 9 June 2023 was a Friday
        let told = date(2023, 6, 9);
        let cases = [
            (When::DaysAgo(1), Moment::Day(date(2023, 6, 8))),
            (When::LastWeekday(Weekday::Saturday), Moment::Day(date(2023, 6, 3))),
            (When::LastWeekday(Weekday::Friday), Moment::Day(date(2023, 6, 2))),
            (When::WeeksAgo(2), Moment::Day(date(2023, 5, 26))),
            (When::MonthsAgo(1), Moment::Month(date(2023, 5, 1))),
            (When::LastYear, Moment::Year(2022)),
            (When::ThisWeekday(Weekday::Sunday), Moment::Day(date(2023, 6, 11))),
            (When::InDays(1), Moment::Day(date(2023, 6, 10))),
            (When::InWeeks(4), Moment::Day(date(2023, 7, 7))),
            (When::NextMonth, Moment::Month(date(2023, 7, 1))),
        ];
        for (when, expected) in cases {
            assert_eq!(when.moment(told), expected, "{when:?}");
        }
        assert_eq!(When::MonthsAgo(2).moment(date(2023, 1, 31)), Moment::Month(date(2022, 11, 1)));
        assert_eq!((day_text(told).as_str(), month_text(told).as_str()), ("9 June 2023", "June 2023"));
    }

    #[test]
    fn last_and_coming_weekdays_have_one_reading() {
        let mut rng = Rng::new(&["calendar"]);
        for day in 1..=28 {
            let told = date(2024, 2, day);
            let monday = told.saturating_sub(i64::from(told.weekday().to_monday_zero_offset()).days());
            for _ in 0..200 {
                let (past, future) = (When::past(&mut rng, told), When::future(&mut rng, told));
                if let (When::LastWeekday(_), Moment::Day(day)) = (past, past.moment(told)) {
                    assert!(day < monday && day >= monday.saturating_sub(7.days()), "{told}: {past:?} is {day}");
                }
                if let (When::ThisWeekday(_), Moment::Day(day)) = (future, future.moment(told)) {
                    assert!(day > told && day < monday.saturating_add(7.days()), "{told}: {future:?} is {day}");
                }
            }
        }
    }
}
