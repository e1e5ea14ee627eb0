//! Fields of a file that nobody reads: a misspelt one would be left out without a word, and what it was to say with it.
//!
//! The types are those that are stored, which let fields of later releases pass. So what was read is written again: a field that is
//! not there any more is unknown, or has the value that it has without being said. Which of the two, is told by putting something
//! in its place that no field takes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// Members of the largest object whose fields have names of ours: one with more is a map, and what stands in it is alike.
const MOST_FIELDS: usize = 64;

/// The place of a field in `text` that says nothing to what was `read` of it: `questions[0].filer`.
pub(super) fn unread<T: Serialize + DeserializeOwned>(text: &str, read: &T) -> Option<String> {
    let (mut given, written): (Value, Value) = (serde_json::from_str(text).ok()?, serde_json::to_value(read).ok()?);
    let mut gone = Gone::default();
    gone.look(&given, &written);
    drop(written);
    let place = gone.places.into_iter().find(|place| !is_read::<T>(&mut given, place))?;
    Some(place.iter().fold(String::new(), |shown, step| step.after(shown)))
}

/// Whether what stands at a place of `given`, which stays as it is, is read.
fn is_read<T: DeserializeOwned>(given: &mut Value, place: &[Step]) -> bool {
    let Some(at) = place.iter().try_fold(&mut *given, |at, step| step.within(at)) else { return true };
    // lists of lists of lists are no text, no number, no list of texts, and nothing with names in it
    let held = std::mem::replace(at, json!([[[]]]));
    let is_read = <T as Deserialize>::deserialize(&*given).is_err();
    if let Some(at) = place.iter().try_fold(given, |at, step| step.within(at)) {
        *at = held;
    }
    is_read
}

/// A step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    /// All entries of a map are alike.
    Entry(String),
    /// All elements of a list are alike; the number is that of the first one in which something is gone.
    Element(usize),
}

impl Step {
    fn within<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match self {
            Self::Field(name) | Self::Entry(name) => value.get_mut(name),
            Self::Element(number) => value.get_mut(*number),
        }
    }

    fn after(&self, shown: String) -> String {
        match self {
            Self::Element(number) => format!("{shown}[{number}]"),
            Self::Field(name) | Self::Entry(name) if shown.is_empty() => name.clone(),
            Self::Field(name) | Self::Entry(name) => format!("{shown}.{name}"),
        }
    }

    /// Into a member of an object.
    fn into_member(object: &Map<String, Value>, name: &str) -> Self {
        if object.len() > MOST_FIELDS { Self::Entry(name.to_owned()) } else { Self::Field(name.to_owned()) }
    }
}

/// Fields that are not there any more, of each kind the first.
#[derive(Default)]
struct Gone {
    at: Vec<Step>,
    kinds: BTreeSet<Vec<Step>>,
    places: Vec<Vec<Step>>,
}

impl Gone {
    fn look(&mut self, given: &Value, written: &Value) {
        match (given, written) {
            (Value::Object(object), Value::Object(written)) => {
                for (name, given) in object {
                    self.at.push(Step::into_member(object, name));
                    match written.get(name) {
                        Some(written) => self.look(given, written),
                        None => self.note(given),
                    }
                    self.at.pop();
                }
            }
            (Value::Array(given), Value::Array(written)) => {
                for (number, (given, written)) in given.iter().zip(written).enumerate() {
                    self.at.push(Step::Element(number));
                    self.look(given, written);
                    self.at.pop();
                }
            }
            _ => {}
        }
    }

    /// Notes a field that is gone and all that stands in it: what holds nothing but defaults may still hold a misspelt field.
    fn note(&mut self, given: &Value) {
        let kind = |step: &Step| match step {
            Step::Element(_) => Step::Element(0),
            Step::Entry(_) => Step::Entry(String::new()),
            field @ Step::Field(_) => field.clone(),
        };
        if self.kinds.insert(self.at.iter().map(kind).collect()) {
            self.places.push(self.at.clone());
        }
        if let Value::Object(inside) = given {
            for (name, given) in inside {
                self.at.push(Step::into_member(inside, name));
                self.note(given);
                self.at.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{dataset::Bank, profile::Profile};

    use super::*;

    fn gone<T: Serialize + DeserializeOwned>(given: Value) -> Option<String> {
        let read: T = serde_json::from_value(given.clone()).expect("can be read");
        unread(&given.to_string(), &read)
    }

    fn bank() -> Value {
        json!({
            "content": {"bank_id": "b", "speakers": [], "entries": [
                {"kind": "session", "id": "S1", "turns": [{"id": "S1:1", "speaker": "Ann", "text": "Hi"}]},
                {"kind": "memory", "id": "m1", "text": "Ben paints", "tags": []}
            ]},
            "questions": [
                {"question_id": "q", "index": 0, "category": "c", "text": "Who?", "ask_after": 2, "choices": [], "filter": {}},
            ],
            "gold": [{"question_id": "q", "gold": {"kind": "text", "value": "Ann"}, "evidence_turns": [], "evidence_sessions": []}],
        })
    }

    #[test]
    fn misspelt_fields_are_found_wherever_they_stand() {
        assert_eq!(gone::<Bank>(bank()), None, "fields that have no value are read");
        for (place, field, expected) in [
            ("", "quesions", "quesions"),
            ("/questions/0", "filer", "questions[0].filer"),
            ("/questions/0/filter", "form", "questions[0].filter.form"),
            ("/gold/0", "facet", "gold[0].facet"),
            ("/content/entries/0", "date", "content.entries[0].date"),
            ("/content/entries/0/turns/0", "when", "content.entries[0].turns[0].when"),
            ("/content/entries/1", "date", "content.entries[1].date"),
        ] {
            let mut misspelt = bank();
            misspelt.pointer_mut(place).expect("is there")[field] = json!("2026-03-04");
            assert_eq!(gone::<Bank>(misspelt).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_large_map_is_looked_at_once_for_each_field_of_its_entries() {
        let categories = |n: usize| -> Map<String, Value> {
            (0..n).map(|n| (format!("c{n}"), json!({"rubric": "judge-single", "unanswerable": false}))).collect()
        };
        let profile =
            |categories| json!({"style": {"name": "short"}, "categories": categories, "headline": {"without": []}});
        let given = profile(categories(8_000));
        let read: Profile = serde_json::from_value(given.clone()).expect("can be read");
        let mut gone_there = Gone::default();
        gone_there.look(&given, &serde_json::to_value(&read).expect("can be written"));
        assert!(gone_there.places.len() <= 4, "{:?}", gone_there.places.len());
        assert_eq!(gone::<Profile>(given), None);
        let mut misspelt = categories(100);
        misspelt["c7"]["rubrik"] = json!("x");
        assert_eq!(gone::<Profile>(profile(misspelt)).as_deref(), Some("categories.c7.rubrik"));
    }

    #[test]
    fn what_is_said_although_it_holds_anyway_is_read() {
        let profile = |presets: Value| {
            json!({
                "style": {"name": "short"},
                "categories": {"fact": {"rubric": "judge-single"}},
                "headline": {"without": []},
                "presets": presets,
            })
        };
        let said = serde_json::to_value(bench_proto::profile::PresetSizes::default()).expect("can be written");
        assert_eq!(gone::<Profile>(profile(said)), None);
        assert_eq!(gone::<Profile>(profile(json!({"fairr": 3}))).as_deref(), Some("presets.fairr"));
        let mut misspelt = profile(json!({}));
        misspelt["categories"]["fact"]["rubrik"] = json!("x");
        assert_eq!(gone::<Profile>(misspelt).as_deref(), Some("categories.fact.rubrik"));
    }
}
