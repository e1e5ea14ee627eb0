//! What to do about a file that cannot be read: the nearest form, what is missing of it, and the flag to try.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    forms::{by_names, nearest},
    lookup::Fields,
    ours::{Given, Ours},
};

/// Most fields that a message names.
const MOST_NAMED: usize = 10;
/// Longest piece of a name that a message shows, in characters.
const MOST_CHARACTERS: usize = 60;

/// Advice about a record that names no question, or holds neither answer nor grade.
pub(crate) fn advice(fields: &Fields<'_>, given: &Given) -> String {
    let form = nearest(fields).map(|(form, missing)| match missing.first() {
        None => format!("it has the marks of form '{}'; ", form.name()),
        Some(missing) => {
            format!("the nearest form is '{}' ({}), of which '{missing}' is missing; ", form.name(), form.marks())
        }
    });
    let free = Free::in_record(fields, given);
    let flags = match &free.flags()[..] {
        [] => "--field OURS=THEIRS says where a field lies".to_owned(),
        flags => format!("try {}", flags.join(" ")),
    };
    let figures = listed("; fields with figures: ", &free.figures);
    format!("{}{flags} (import --forms shows all forms){figures}", form.unwrap_or_default())
}

/// What a record holds that is not understood yet.
struct Free<'a> {
    fields: &'a Fields<'a>,
    understood: BTreeSet<Ours>,
    /// Names of fields with figures, sorted.
    figures: Vec<String>,
    /// Names of fields with texts, the longest text first.
    texts: Vec<String>,
}

impl<'a> Free<'a> {
    fn in_record(fields: &'a Fields<'a>, given: &Given) -> Self {
        let mut free = Self { fields, understood: BTreeSet::new(), figures: fields.figures(), texts: fields.texts() };
        for ours in Ours::ALL {
            let found = by_names().find(fields, given, ours);
            // an answer is a text
            if found.iter().any(|found| ours != Ours::Answer || found.value.is_string() || found.value.is_number()) {
                free.understood.insert(ours);
            }
            for names in [&mut free.figures, &mut free.texts] {
                names.retain(|name| found.iter().all(|found| found.name != *name));
            }
        }
        free
    }

    /// `--field` for what is missing, with the field that looks most like it.
    fn flags(&self) -> Vec<String> {
        let is_missing = |ours: &[Ours]| ours.iter().all(|ours| !self.understood.contains(ours));
        let is_asked = |name: &&String| {
            let text = self.fields.at(name).and_then(Value::as_str);
            text.is_some_and(|text| text.trim_end().ends_with('?'))
        };
        let question = is_missing(&[Ours::QuestionId, Ours::Question, Ours::Index]).then(|| {
            let by_text = self.texts.iter().find(is_asked).map(|name| (Ours::Question, name));
            let is_id = |name: &&String| name.to_lowercase().ends_with("id");
            let by_id = || self.texts.iter().find(is_id).or(self.texts.last()).map(|name| (Ours::QuestionId, name));
            by_text.or_else(by_id)
        });
        let question = question.flatten();
        let graded = is_missing(&[Ours::Answer, Ours::Score]).then(|| {
            let is_free = |name: &&String| question.is_none_or(|(_, taken)| taken != *name);
            let answer = || self.texts.iter().find(is_free).map(|name| (Ours::Answer, name));
            self.figures.first().map(|name| (Ours::Score, name)).or_else(answer)
        });
        question.into_iter().chain(graded.flatten()).map(|(ours, theirs)| flag(ours, theirs)).collect()
    }
}

/// The flag as it is typed into a shell.
fn flag(ours: Ours, theirs: &str) -> String {
    let flag = format!("{}={}", ours.name(), shown(theirs));
    let is_plain = flag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | '_' | '.' | '-'));
    if is_plain { format!("--field {flag}") } else { format!("--field '{}'", flag.replace('\'', "'\\''")) }
}

/// Names for a message, behind some words; nothing when there are none.
pub(super) fn listed(words: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let first: Vec<String> = names.iter().take(MOST_NAMED).map(|name| shown(name)).collect();
    format!("{words}{}{}", first.join(", "), if names.len() > MOST_NAMED { ", …" } else { "" })
}

/// The beginning of a name or value of others.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MOST_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_nearest_form_its_missing_field_and_the_flag_are_named() {
        for (record, expected) in [
            (
                json!({"question": "who?", "llm_points": 1, "response": ["x"]}),
                "the nearest form is 'mem0' (question, response, llm_score), of which 'llm_score' is missing; \
                 try --field score=llm_points (",
            ),
            (json!({"question_id": "a", "weight": 2}), "it has the marks of form 'lines'; try --field score=weight ("),
            (json!({"asked": "who?", "said": "x"}), "try --field question=asked --field answer=said ("),
            (
                json!({"query no": "x-1", "m": {"f 1": 0.5}}),
                "try --field 'question_id=query no' --field 'score=m.f 1' (",
            ),
            (json!({}), "--field OURS=THEIRS says where a field lies (import --forms"),
        ] {
            let Value::Object(fields) = &record else { panic!("an object") };
            let advice = advice(&Fields::in_record(fields), &Given::default());
            assert!(advice.starts_with(expected), "{record}: {advice}");
        }
    }

    #[test]
    fn advice_about_a_hostile_record_stays_short() {
        let fields = (0..10_000).map(|n| (format!("{n}{}", "x".repeat(10_000)), json!(n))).collect();
        assert!(advice(&Fields::in_record(&fields), &Given::default()).len() < 4_096);
    }
}
