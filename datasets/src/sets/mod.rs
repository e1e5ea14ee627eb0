//! What people write to try a memory out: suites in YAML and question sets in JSON lines, read as banks. The sets of this
//! project and the files of its users are read alike; whose they are is not known here.

pub(crate) mod question_set;
pub(crate) mod suite;
mod suite_form;
mod time;

use bench_proto::dataset::Filter;
use serde::{Deserialize, Deserializer, Serialize};

use crate::notes::Notes;

/// What a file says of itself; all of it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Said {
    /// Its name; that of the file where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) licence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Phrases that make an answer an abstention, lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abstention_phrases: Option<Vec<String>>,
    /// Deterministic scorers, the headline's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scorers: Option<Vec<String>>,
}

/// Place and problem of what cannot be read.
pub(crate) type Problem = (String, String);

/// Refuses a time that nothing can lie in; the times are those of the dataset model, both of which are part of it.
pub(crate) fn check_span(filter: &Filter) -> Result<(), Problem> {
    match (&filter.from, &filter.until) {
        (Some(from), Some(until)) if from > until => {
            Err(("from".to_owned(), format!("{from} is later than until, {until}: nothing lies between them")))
        }
        _ => Ok(()),
    }
}

/// Notes whether one of these times says `am` or `pm`, which once was passed over.
fn see_half<'a>(notes: &mut Notes, times: impl IntoIterator<Item = &'a String>) {
    notes.has_half_days |= times.into_iter().any(|text| time::tells_half(text));
}

/// The time of a date, or a note that it is none.
fn dated(notes: &mut Notes, id: &str, date: Option<&String>) -> Option<String> {
    let date = date?;
    see_half(notes, [date]);
    let time = time::iso(date);
    if time.is_none() {
        let note = || format!("{id}: '{date}' is no date; write 2026-03-04 or 2026-03-04T10:00");
        notes.say("dates that are none", note);
    }
    time
}

/// What a field holds, where `null` is the same as leaving it out: other programs write it so.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(field: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(field)?.unwrap_or_default())
}

/// How many hits a question asks for.
fn hits(field: &str, number: Option<u32>) -> Result<Option<u32>, Problem> {
    match number {
        Some(0) => Err((field.to_owned(), "is 0: at least one hit has to be asked for".to_owned())),
        number => Ok(number),
    }
}
