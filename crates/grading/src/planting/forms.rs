//! The form of an expected answer, and the same answer in another form.

use std::collections::BTreeSet;

use bench_proto::dataset::MONTHS;

/// What an answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A day, month or year.
    Date,
    /// Begins with a number.
    Number,
    /// Several short things between commas, or lines.
    List,
    /// Anything else.
    Phrase,
    /// The gold says that there is no answer.
    NoAnswer,
}

const NUMBERS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

impl Form {
    /// Forms of answers that say something.
    pub(super) const VALUES: [Self; 4] = [Self::Phrase, Self::List, Self::Date, Self::Number];

    /// Its word in facets and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Number => "number",
            Self::List => "list",
            Self::Phrase => "phrase",
            Self::NoAnswer => "no answer",
        }
    }

    /// The form of a text.
    #[must_use]
    pub(super) fn of_text(text: &str) -> Self {
        if is_date(text) {
            Self::Date
        } else if is_list(text) {
            Self::List
        } else if leading_number(text).is_some() {
            Self::Number
        } else {
            Self::Phrase
        }
    }
}

/// The same answer in another form; none where there is no other. Lines are not put in another order: it may be what is asked for.
pub(super) fn rephrased(text: &str, form: Form, number: u64) -> Option<String> {
    let other = match form {
        Form::Date => {
            let (year, month, day) = day_of(text)?;
            let name = MONTHS.get(month.checked_sub(1)?)?;
            let all = [
                format!("{day} {name} {year}"),
                format!("{name} {day}, {year}"),
                format!("{year}-{month:02}-{day:02}"),
            ];
            let from = number as usize % all.len();
            all[from..].iter().chain(&all[..from]).find(|other| *other != text)?.clone()
        }
        Form::Number => {
            let (value, rest) = leading_number(text)?;
            format!("{}{rest}", NUMBERS.get(value)?)
        }
        Form::List => {
            let mut parts = Some(parts(text)).filter(|_| !text.contains('\n'))?;
            parts.reverse();
            let (last, others) = parts.split_last()?;
            format!("{} and {last}", others.join(", "))
        }
        Form::Phrase | Form::NoAnswer => return None,
    };
    (other != text).then_some(other)
}

/// Most words of a thing in a list: what is longer is prose.
const MOST_WORDS_OF_A_THING: usize = 4;

/// Words that make a clause of what stands between two commas, or say in which order things were.
const OF_CLAUSES: &[&str] = &[
    "after",
    "afterwards",
    "although",
    "am",
    "are",
    "as",
    "because",
    "before",
    "being",
    "but",
    "can",
    "could",
    "did",
    "does",
    "finally",
    "first",
    "had",
    "has",
    "have",
    "he",
    "how",
    "if",
    "is",
    "it",
    "no",
    "not",
    "last",
    "like",
    "since",
    "so",
    "such",
    "that",
    "then",
    "they",
    "though",
    "to",
    "until",
    "was",
    "were",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whose",
    "will",
    "with",
    "without",
    "would",
    "yes",
];

/// Whether a text is a list of things whose order says nothing, or lines.
fn is_list(text: &str) -> bool {
    let parts = parts(text);
    if text.contains('\n') {
        return parts.len() > 1;
    }
    let is_thing = |part: &&str| {
        let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
        let is_clause = words.iter().any(|word| OF_CLAUSES.contains(&word.as_str()));
        let is_number = !part.contains(char::is_alphabetic);
        words.len() <= MOST_WORDS_OF_A_THING && !is_clause && !is_number && !ends_a_sentence(part)
    };
    // two names may be one place: "Boston, Massachusetts"
    let is_name = |part: &&str| part.starts_with(char::is_uppercase);
    let are_several = parts.len() > 2 || (parts.len() == 2 && !parts.iter().all(is_name));
    are_several && parts.iter().all(is_thing) && !parts.iter().any(|part| names_a_day(part))
}

/// Whether it ends like a sentence: a thing of a list does not.
fn ends_a_sentence(part: &str) -> bool {
    part.contains(". ") || part.ends_with(['.', '!', '?', ':'])
}

/// Whether a part is of a date: what stands between its commas is no list.
fn names_a_day(part: &str) -> bool {
    part.contains(|c: char| c.is_ascii_digit()) && months(part).next().is_some()
}

/// The things of a list, without the `and` before the last.
fn parts(text: &str) -> Vec<&str> {
    let parts = text.split(['\n', ',', ';']).map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.strip_prefix("and ").unwrap_or(part).trim()).collect()
}

/// A number in digits that a text begins with, and what follows it.
fn leading_number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    // "4.5" and "3rd" are not 4 and 3
    (rest.is_empty() || rest.starts_with(' ')).then(|| Some((digits.parse().ok()?, rest)))?
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_date(text: &str) -> bool {
    // "May" and "March" are words of their own, too
    words(text).any(is_year) && (words(text).count() == 1 || months(text).next().is_some()) || day_of(text).is_some()
}

/// Whether a word is a year.
pub(super) fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit()) && word.starts_with(['1', '2'])
}

/// The months that a text names.
pub(super) fn months(text: &str) -> impl Iterator<Item = usize> {
    words(text).filter_map(month_of)
}

/// The number of the month that a word names; "23January" names one too.
fn month_of(word: &str) -> Option<usize> {
    let name = word.trim_start_matches(|c: char| c.is_ascii_digit());
    Some(MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))? + 1)
}

/// A day in figures, `2023-05-07`, as `7 May 2023`; none for any other word. What stands around it is left out.
pub(super) fn day_in_words(word: &str) -> Option<String> {
    let (year, month, day) = day_of(word.trim_matches(|c: char| !c.is_alphanumeric()))?;
    Some(format!("{day} {} {year}", MONTHS.get(month.checked_sub(1)?)?))
}

/// Whether two dates cannot be the same: of different years, or of one year and each a month or a day of it that the other is not
/// in. Anything vaguer ("the summer of 2022", a year alone) may hold the other.
pub(super) fn surely_differ(one: &str, other: &str) -> bool {
    if let (Some(one), Some(other)) = (day_of(one), day_of(other)) {
        return one != other;
    }
    // a span holds the years between its first and its last
    let years = |text| words(text).filter(|word| is_year(word)).collect::<BTreeSet<_>>();
    let (of_one, of_other) = (years(one), years(other));
    if of_one.last() < of_other.first() || of_other.last() < of_one.first() {
        return true;
    }
    let plain = (plain_months(one), plain_months(other));
    matches!(plain, (Some(one), Some(other)) if one.iter().all(|month| !other.contains(month)))
}

/// The months of a date that says nothing but days, months and years; none of one that says more.
fn plain_months(text: &str) -> Option<Vec<usize>> {
    if let Some((_, month, _)) = day_of(text) {
        return Some(vec![month]);
    }
    let is_plain = |word: &str| month_of(word).is_some() || word.bytes().all(|b| b.is_ascii_digit());
    let named: Vec<usize> = months(text).collect();
    (!named.is_empty() && words(text).all(is_plain)).then_some(named)
}

/// Year, month and day of a text that is a day: `7 May 2023`, `May 7, 2023`, `2023-05-07`.
fn day_of(text: &str) -> Option<(u32, usize, u32)> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let [first, second, third] = words[..] else { return None };
    let month = |name: &str| Some(MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))? + 1);
    let number = |word: &str| word.parse::<u32>().ok();
    let (year, month, day) = if let Some(month) = month(second) {
        (number(third)?, month, number(first)?)
    } else if let Some(month) = month(first) {
        (number(third)?, month, number(second)?)
    } else if text.matches('-').count() == 2 {
        (number(first)?, number(second)? as usize, number(third)?)
    } else {
        return None;
    };
    ((1000..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)).then_some((year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_their_look() {
        for (text, form) in [
            ("7 May 2023", Form::Date),
            ("2022", Form::Date),
            ("June 2023", Form::Date),
            ("The week before 9 June 2023", Form::Date),
            ("4 years", Form::Number),
            ("2", Form::Number),
            ("pottery, camping, and swimming", Form::List),
            ("one thing\nanother", Form::List),
            ("The Friday before 23January, 2022", Form::Date),
            ("Friday, 13 May, next year", Form::Phrase),
            ("He is as open as ever, like painting and writing, to help with stress.", Form::Phrase),
            ("after the race, a swim", Form::Phrase),
            ("a small house in the hills, near the old mill", Form::Phrase),
            ("1,200", Form::Phrase),
            ("Boston, Massachusetts", Form::Phrase),
            ("Ann, Bob, and Cid", Form::List),
            ("2019, 2021", Form::Phrase),
            ("Ann, who left, and Bob", Form::Phrase),
            ("May I", Form::Phrase),
            ("3rd street", Form::Phrase),
            ("", Form::Phrase),
        ] {
            assert_eq!(Form::of_text(text), form, "{text}");
        }
    }

    #[test]
    fn the_same_answer_in_another_form() {
        for (text, number, other) in [
            ("7 May 2023", 0, Some("May 7, 2023")),
            ("7 May 2023", 2, Some("2023-05-07")),
            ("May 7, 2023", 1, Some("2023-05-07")),
            ("2023-05-07", 2, Some("7 May 2023")),
            ("The week before 9 June 2023", 0, None),
            ("99 May 2023", 0, None),
            ("4 years", 0, Some("four years")),
            ("400", 0, None),
            ("pottery, camping, and swimming", 0, Some("swimming, camping and pottery")),
            ("the violin", 0, None),
            ("The Friday before 23January, 2022", 0, None),
            ("she paints, which helps, and writes", 0, None),
            ("first this\nthen that", 0, None),
        ] {
            assert_eq!(rephrased(text, Form::of_text(text), number).as_deref(), other, "{text}");
        }
    }

    #[test]
    fn dates_differ_surely_where_neither_can_hold_the_other() {
        for (one, other, differ) in [
            ("2022", "December 2022", false),
            ("2022", "12 June 2023", true),
            ("May 2022 to June 2024", "March 2023", false),
            ("May 2022 to June 2023", "March 2024", true),
            ("7 May 2023", "12 June 2023", true),
            ("7 May 2023", "2023-05-07", false),
            ("7 May 2023", "8 May 2023", true),
            ("May 2023", "2023-05-07", false),
            ("the summer of 2022", "July 2022", false),
            ("the week before 1 June 2023", "28 May 2023", false),
            ("the week before 1 June 2023", "28 May 2022", true),
        ] {
            assert_eq!(surely_differ(one, other), differ, "{one} / {other}");
            assert_eq!(surely_differ(other, one), differ, "{other} / {one}");
        }
    }
}
