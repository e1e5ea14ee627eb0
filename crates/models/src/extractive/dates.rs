//! Dates: reads them, and resolves what people say (`yesterday`, `last week`) against the day on which they say it.

use jiff::{ToSpan, civil::Date};

use super::text::{is_number, lower_eq, words};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Answers "when": by the sentence, by the other sentences of its turn, by the turn's own date.
pub(super) fn answer(sentence: &str, body: &str, time: Option<&str>) -> Option<String> {
    let said = time.and_then(read);
    resolve(sentence, said)
        .or_else(|| resolve(body, said))
        .or_else(|| said.map(show))
        .or_else(|| time.map(str::to_owned))
}

/// Reads a date such as `1:56 pm on 8 May, 2023`, `May 8, 2023` or `2023-05-08`.
pub(super) fn read(text: &str) -> Option<Date> {
    let words = words(text);
    let numbers = || words.iter().enumerate().filter_map(|(at, word)| Some((at, leading_number(word.text)?)));
    let year_at = numbers().find(|(_, number)| (1_000..10_000).contains(number));
    let (year_at, year) = year_at?;
    let (month, day) = match words.iter().position(|word| month(word.text).is_some()) {
        Some(at) => {
            let beside = [at.checked_sub(1), Some(at + 1)];
            let day = beside.into_iter().flatten().find_map(|at| day(words.get(at)?.text))?;
            (month(words[at].text)?, day)
        }
        None => {
            let month = leading_number(words.get(year_at + 1)?.text)?;
            (i8::try_from(month).ok()?, day(words.get(year_at + 2)?.text)?)
        }
    };
    Date::new(i16::try_from(year).ok()?, month, day).ok()
}

/// The first date that a text names or implies, as `7 May 2023`, `May 2023`, `2023` or `the week before 7 May 2023`.
pub(super) fn resolve(text: &str, said: Option<Date>) -> Option<String> {
    let words: Vec<&str> = words(text).iter().map(|word| word.text).collect();
    (0..words.len())
        .find_map(|at| said.and_then(|said| relative(&words[at..], said)).or_else(|| absolute(&words, at, said)))
}

fn relative(words: &[&str], said: Date) -> Option<String> {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| lower_eq(word, text));
    let days = |days: i64| said.checked_add(days.days()).ok().map(show);
    if is(0, "yesterday") {
        return days(-1);
    }
    if is(0, "today")
        || is(0, "tonight")
        || (is(0, "this") && (is(1, "morning") || is(1, "afternoon") || is(1, "evening")))
    {
        return days(0);
    }
    if is(0, "tomorrow") {
        return days(1);
    }
    let step = match () {
        () if is(0, "last") || is(0, "past") => -1,
        () if is(0, "this") => 0,
        () if is(0, "next") => 1,
        () => return ago(words, said),
    };
    let side = ["before", "of", "after"][(step + 1) as usize];
    match () {
        () if is(1, "night") => days(step),
        () if is(1, "week") => Some(format!("the week {side} {}", show(said))),
        () if is(1, "weekend") => Some(format!("the weekend {side} {}", show(said))),
        () if is(1, "month") => Some(show_month(said.checked_add(step.months()).ok()?)),
        () if is(1, "year") => Some(said.checked_add(step.years()).ok()?.year().to_string()),
        () => {
            let weekday = WEEKDAYS.iter().position(|weekday| is(1, weekday))? as i64;
            let back = (i64::from(said.weekday().to_monday_zero_offset()) - weekday).rem_euclid(7);
            match step {
                -1 => days(-(if back == 0 { 7 } else { back })),
                0 => days((7 - back) % 7),
                _ => days(7 - back),
            }
        }
    }
}

/// `three days ago`, `a week ago`, `few months ago`.
fn ago(words: &[&str], said: Date) -> Option<String> {
    let [amount, unit, ago, ..] = words else { return None };
    if !lower_eq(ago, "ago") {
        return None;
    }
    let unit = unit.to_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    let Some(number) = count(amount) else {
        return lower_eq(amount, "few").then(|| format!("a few {unit}s before {}", show(said)));
    };
    match unit {
        "day" => said.checked_sub(number.days()).ok().map(show),
        "week" if number == 1 => Some(format!("the week before {}", show(said))),
        "week" => Some(format!("{number} weeks before {}", show(said))),
        "month" => said.checked_sub(number.months()).ok().map(show_month),
        "year" => said.checked_sub(number.years()).ok().map(|date| date.year().to_string()),
        _ => None,
    }
}

/// A month with or without day and year, or a year alone, at `at`. Years that are not said are the speaker's.
fn absolute(words: &[&str], at: usize, said: Option<Date>) -> Option<String> {
    let word = words[at];
    if let Some(month) = month(word).filter(|_| word.starts_with(char::is_uppercase)) {
        let next_day = words.get(at + 1).and_then(|next| day(next));
        let day = at.checked_sub(1).and_then(|before| day(words[before])).or(next_day);
        let year_at = at + 1 + usize::from(next_day.is_some());
        let year = words.get(year_at).and_then(|word| year(word)).or(said.map(Date::year))?;
        let date = Date::new(year, month, day.unwrap_or(1)).ok()?;
        return Some(if day.is_some() { show(date) } else { show_month(date) });
    }
    year(word).filter(|_| word.len() == 4).map(|year| year.to_string())
}

fn show(date: Date) -> String {
    date.strftime("%-d %B %Y").to_string()
}

fn show_month(date: Date) -> String {
    date.strftime("%B %Y").to_string()
}

/// A month by its name or its first three letters.
fn month(word: &str) -> Option<i8> {
    let at =
        MONTHS.iter().position(|month| lower_eq(word, month) || (word.len() == 3 && lower_eq(word, &month[..3])))?;
    i8::try_from(at + 1).ok()
}

fn day(word: &str) -> Option<i8> {
    leading_number(word).filter(|day| (1..=31).contains(day)).and_then(|day| i8::try_from(day).ok())
}

fn year(word: &str) -> Option<i16> {
    leading_number(word).filter(|year| (1_900..2_100).contains(year)).and_then(|year| i16::try_from(year).ok())
}

fn count(word: &str) -> Option<i64> {
    if lower_eq(word, "a") || lower_eq(word, "an") {
        return Some(1);
    }
    if !is_number(word) {
        return None;
    }
    let named = NUMBERS.iter().position(|number| lower_eq(word, number)).map(|at| at as i64 + 1);
    named.or_else(|| leading_number(word)).filter(|count| *count < 10_000)
}

/// The number that a word starts with (`21st`, `08T12`).
fn leading_number(word: &str) -> Option<i64> {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    word[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_usual_forms() {
        for text in
            ["1:56 pm on 8 May, 2031", "May 8, 2031", "2031-05-08T13:56:00", "2031/05/08 (Thu) 02:21", "8th May 2031"]
        {
            assert_eq!(read(text), Some(Date::constant(2031, 5, 8)), "{text}");
        }
        for text in ["", "May", "31 February, 2031", "2031", "2031-13-40", "soon", "99999999999999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_people_say_is_resolved_against_the_day() {
        let thursday = Some(Date::constant(2031, 5, 8));
        let said = [
            "I went yesterday",
            "We met last night",
            "It is today",
            "See you tomorrow!",
            "last Friday",
            "this Friday",
            "next Friday",
            "last Thursday",
            "last week",
            "the past weekend",
            "next month",
            "last year",
            "three days ago",
            "a week ago",
            "2 weeks ago",
            "six months ago",
            "ten years ago",
            "a few months ago",
            "on May 20",
            "the 3rd of it, 4 June",
            "in December 2029",
            "in July",
            "back in 2027",
            "we may go",
        ];
        let lines: Vec<String> = said
            .iter()
            .map(|text| format!("{text}: {}", resolve(text, thursday).unwrap_or_else(|| "nothing".to_owned())))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        I went yesterday: 7 May 2031
        We met last night: 7 May 2031
        It is today: 8 May 2031
        See you tomorrow!: 9 May 2031
        last Friday: 2 May 2031
        this Friday: 9 May 2031
        next Friday: 9 May 2031
        last Thursday: 1 May 2031
        last week: the week before 8 May 2031
        the past weekend: the weekend before 8 May 2031
        next month: June 2031
        last year: 2030
        three days ago: 5 May 2031
        a week ago: the week before 8 May 2031
        2 weeks ago: 2 weeks before 8 May 2031
        six months ago: November 2030
        ten years ago: 2021
        a few months ago: a few months before 8 May 2031
        on May 20: 20 May 2031
        the 3rd of it, 4 June: 4 June 2031
        in December 2029: December 2029
        in July: July 2031
        back in 2027: 2027
        we may go: nothing
        ");
    }

    #[test]
    fn the_ends_of_the_calendar_do_no_harm() {
        for said in [Date::MIN, Date::MAX] {
            for text in
                ["yesterday", "tomorrow", "last year", "next month", "9999 years ago", "next Monday", "last Monday"]
            {
                let _ = resolve(text, Some(said));
            }
        }
    }
}
