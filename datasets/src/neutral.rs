//! Ids and orders that tell nothing, and times as datasets write them.

use bench_proto::dataset::{Bank, BankOutline, GoldRecord, Question};
use jiff::civil::{Date, DateTime, Time};

use crate::checksum;

/// An id in place of one that would tell something: the same for the same text, and nothing can be read off it.
pub(crate) fn id(text: &str) -> String {
    let mut digest = checksum::of_bytes(text.as_bytes());
    digest.truncate(16);
    digest
}

/// Puts the questions that are asked at the same point of a bank into an order that tells nothing of them, and gives each an
/// id for memory systems that is no more than its place. Files have questions by their kinds, or those without an answer at
/// the end, and their ids name what is expected. Gives the place that each had before, in the new order.
pub(crate) fn hide_order(bank: &mut Bank) -> Vec<u32> {
    let Bank { content, questions, gold } = bank;
    let in_file = questions.drain(..).zip(gold.drain(..)).zip(0..);
    let mut asked: Vec<((Question, GoldRecord), u32)> = in_file.collect();
    // by the id, so that a question keeps its place whatever else is read
    asked.sort_by_cached_key(|((question, _), _)| (question.ask_after, id(&question.question_id)));
    for (index, ((question, _), _)) in (0..).zip(&mut asked) {
        question.index = index;
        question.shown_id = Some(format!("{}:{}", content.bank_id, index + 1));
    }
    let places = asked.iter().map(|(_, place)| *place).collect();
    (*questions, *gold) = asked.into_iter().map(|(asked, _)| asked).unzip();
    places
}

/// The outline of a bank whose questions had these places in the file, for samples that go by it.
pub(crate) fn outline(bank: &Bank, places: &[u32]) -> BankOutline {
    let mut outline = bank.outline();
    for (question, place) in outline.questions.iter_mut().zip(places) {
        question.file_place = Some(*place);
    }
    outline
}

/// Whether a text is a time as the dataset model has it: `2025-12-31T08:30:05`, and nothing else, since such texts are compared.
pub(crate) fn is_time(text: &str) -> bool {
    text.len() == 19 && text.as_bytes().get(10) == Some(&b'T') && text.parse::<DateTime>().is_ok()
}

/// A time that begins `2025-12-31`, `2025-12-31 08:30` or `2025-12-31T08:30:05`, as the dataset model has it; `am` or `pm`
/// behind it says which half of the day. What else follows (a zone, a day of the week) is passed over: times of a dataset are
/// those of its people.
pub(crate) fn time(text: &str) -> Option<String> {
    let (date, clock) = parts(text)?;
    let time = match clock {
        None => Time::midnight(),
        Some((clock, behind)) => in_half(clock, behind)?,
    };
    Some(DateTime::from_parts(date, time).strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

/// Whether `am` or `pm` stands behind the clock of a [`time`].
pub(crate) fn tells_half(text: &str) -> bool {
    let behind = parts(text).and_then(|(_, clock)| clock).map(|(_, behind)| behind);
    behind.and_then(half).is_some()
}

/// The date of a time, its clock, and what stands behind that.
fn parts(text: &str) -> Option<(Date, Option<(Time, &str)>)> {
    let text = text.trim();
    let date: Date = text.get(..10)?.parse().ok()?;
    let Some(rest) = text.get(10..).filter(|rest| !rest.is_empty()) else { return Some((date, None)) };
    let clock = rest.strip_prefix(['T', ' '])?;
    let length = if clock.get(5..6) == Some(":") { 8 } else { 5 };
    let (clock, behind) = clock.split_at_checked(length)?;
    if behind.starts_with(|c: char| c.is_ascii_digit() || c == ':') {
        return None;
    }
    Some((date, Some((clock.parse().ok()?, behind))))
}

/// The time of a clock of 24 hours, or of twelve where the half of the day stands behind it: nothing where that has no such hour.
fn in_half(clock: Time, behind: &str) -> Option<Time> {
    let Some(half) = half(behind) else { return Some(clock) };
    let hour = (1..=12).contains(&clock.hour()).then_some(clock.hour() % 12 + half)?;
    Time::new(hour, clock.minute(), clock.second(), 0).ok()
}

/// The hour at which the half of the day begins that stands behind a clock.
fn half(behind: &str) -> Option<i8> {
    // fractions of a second may stand between
    let is_between = |c: char| c.is_whitespace() || c.is_ascii_digit() || matches!(c, '.' | ',');
    let word = behind.trim_start_matches(is_between).split(|c: char| !(c.is_alphabetic() || c == '.')).next();
    match word.unwrap_or_default().replace('.', "").to_lowercase().as_str() {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_of_the_datasets() {
        for (text, expected) in [
            ("2025-12-31", Some("2025-12-31T00:00:00")),
            (" 2025-12-31 08:30 ", Some("2025-12-31T08:30:00")),
            ("2025-12-31T08:30:05", Some("2025-12-31T08:30:05")),
            ("2025-12-31T08:30:05.25+02:00", Some("2025-12-31T08:30:05")),
            ("2025-12-31 08:30 Wednesday", Some("2025-12-31T08:30:00")),
            ("2025-12-31T00:00:00+00:00", Some("2025-12-31T00:00:00")),
            ("2025-12-31 08:30 PM", Some("2025-12-31T20:30:00")),
            ("2025-12-31 08:30pm (UTC)", Some("2025-12-31T20:30:00")),
            ("2025-12-31T08:30:05P.M. Wednesday", Some("2025-12-31T20:30:05")),
            ("2025-12-31 08:30:05.25 p.m.", Some("2025-12-31T20:30:05")),
            ("2025-12-31 12:00 am", Some("2025-12-31T00:00:00")),
            ("2025-12-31 12:00 Pm", Some("2025-12-31T12:00:00")),
            ("2025-12-31 08:30 America/New_York", Some("2025-12-31T08:30:00")),
            ("2025-12-31 08:30 AMT", Some("2025-12-31T08:30:00")),
            ("2025-12-31 13:30 pm", None),
            ("2025-12-31 00:30 am", None),
            ("2025-12-31T08:30:059", None),
            ("2025-12-31T08", None),
            ("2025-12-31, 08:30", None),
            ("2025-02-30", None),
            ("31 December", None),
            ("год2025-12-31", None),
            ("", None),
        ] {
            assert_eq!(time(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn order_and_ids_tell_nothing_and_points_stay() {
        let asked = |number: u32| {
            let question_id = format!("kind-{}:{number}", number / 4);
            let question = Question {
                question_id: question_id.clone(),
                ask_after: number / 20,
                index: number,
                ..Question::default()
            };
            (question, GoldRecord { question_id, ..GoldRecord::default() })
        };
        let (questions, gold) = (0..40).map(asked).unzip();
        let mut bank = Bank { questions, gold, ..Bank::default() };
        bank.content.bank_id = "b".to_owned();
        let before: Vec<String> = bank.questions.iter().map(|question| question.question_id.clone()).collect();
        let places = hide_order(&mut bank);
        let after: Vec<String> = bank.questions.iter().map(|question| question.question_id.clone()).collect();
        assert_ne!(before, after);
        for (question, question_id) in outline(&bank, &places).questions.iter().zip(&after) {
            let place = question.file_place.expect("is known") as usize;
            assert_eq!(&before[place], question_id, "its place in the file");
        }
        assert!(bank.questions.iter().map(|question| question.ask_after).is_sorted());
        for ((question, gold), index) in bank.questions.iter().zip(&bank.gold).zip(0..) {
            assert_eq!((&gold.question_id, question.index), (&question.question_id, index));
            assert_eq!(question.shown_id(), format!("b:{}", index + 1));
        }
        let hidden = bank.clone();
        hide_order(&mut bank);
        assert_eq!(bank, hidden, "an order of the ids, not of the places");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*|2025-12-31[T ]\\PC*") {
            if let Some(time) = time(&text) {
                proptest::prop_assert!(is_time(&time));
            }
        }

        #[test]
        fn ids_are_short_and_plain(text in "\\PC*") {
            let id = id(&text);
            proptest::prop_assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
