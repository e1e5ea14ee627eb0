//! Finding a field in a record by where it may lie.

use std::{borrow::Cow, cmp::Reverse, collections::HashMap};

use serde_json::{Map, Value};

/// A place where a field may lie.
///
/// Names are compared by their letters and digits alone: `isCorrect`, `is_correct` and `Is Correct` are one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldPlace {
    /// `score`: the field of this name.
    Name(String),
    /// `a.b`: a field of a field.
    Path(String),
    /// `*_score`: the only field whose name ends so, among all endings that stand together.
    Ending(String),
    /// `vote_#`: `vote_1`, `vote_2` and so on as a list, the longest one among those that stand together.
    Numbered(String),
}

impl FieldPlace {
    /// Reads a place as it is written in a form.
    pub(crate) fn read(text: &str) -> Self {
        match (text.strip_prefix('*'), text.strip_suffix('#')) {
            (Some(end), _) => Self::Ending(plain(end)),
            (None, Some(stem)) => Self::Numbered(plain(stem)),
            (None, None) if text.contains('.') => Self::Path(text.to_owned()),
            (None, None) => Self::Name(plain(text)),
        }
    }
}

/// A name by its letters and digits.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What stands at a place.
#[derive(Debug, Clone)]
pub(crate) struct Found<'a> {
    /// The field's name as the file has it.
    pub(crate) name: Cow<'a, str>,
    /// What it holds.
    pub(crate) value: Cow<'a, Value>,
    /// How it was found.
    pub(crate) by: By,
}

/// How a field was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// By its name or path.
    Name,
    /// By the end of its name.
    Ending,
    /// As one of several numbered fields.
    Numbers,
    /// By what the file's user says.
    User,
}

/// The fields of a record, ready to be looked up.
pub(crate) struct Fields<'a> {
    record: &'a Map<String, Value>,
    by_name: HashMap<String, (&'a str, &'a Value)>,
}

impl<'a> Fields<'a> {
    pub(crate) fn in_record(record: &'a Map<String, Value>) -> Self {
        let mut by_name = HashMap::with_capacity(record.len());
        for (name, value) in record {
            by_name.entry(plain(name)).or_insert((name.as_str(), value));
        }
        Self { record, by_name }
    }

    /// A field by its exact name.
    pub(crate) fn exact(&self, name: &str) -> Option<&'a Value> {
        self.record.get(name)
    }

    /// What is there of some places, in their order.
    pub(crate) fn find(&self, places: &[FieldPlace]) -> Vec<Found<'a>> {
        self.find_free(places, &|_| false)
    }

    /// The same without the fields that are taken, which is said by their names and paths.
    pub(crate) fn find_free(&self, places: &[FieldPlace], is_taken: &dyn Fn(&str) -> bool) -> Vec<Found<'a>> {
        let together = |a: &FieldPlace, b: &FieldPlace| {
            matches!(
                (a, b),
                (FieldPlace::Ending(_), FieldPlace::Ending(_)) | (FieldPlace::Numbered(_), FieldPlace::Numbered(_))
            )
        };
        places
            .chunk_by(together)
            .filter_map(|places| match &places[0] {
                FieldPlace::Name(name) => {
                    let there = self.by_name.get(name).filter(|(name, _)| !is_taken(name));
                    there.map(|(name, value)| found(name, value, By::Name))
                }
                FieldPlace::Path(path) => self.at(path).filter(|_| !is_taken(path)).map(|value| Found {
                    name: path.clone().into(),
                    value: Cow::Borrowed(value),
                    by: By::Name,
                }),
                FieldPlace::Ending(_) => self.ending(places, is_taken),
                FieldPlace::Numbered(_) => self.numbered(places, is_taken),
            })
            .collect()
    }

    /// A field by its dotted path, each part by its exact name, else by its plain one.
    pub(crate) fn at(&self, path: &str) -> Option<&'a Value> {
        let step = |fields: &'a Map<String, Value>, name: &str| {
            fields
                .get(name)
                .or_else(|| fields.iter().find(|(known, _)| plain(known) == plain(name)).map(|(_, value)| value))
        };
        if let Some(whole) = self.record.get(path) {
            return Some(whole);
        }
        let mut parts = path.split('.');
        let top = step(self.record, parts.next()?)?;
        parts.try_fold(top, |value, name| step(value.as_object()?, name))
    }

    fn ending(&self, ends: &[FieldPlace], is_taken: &dyn Fn(&str) -> bool) -> Option<Found<'a>> {
        let ends_so =
            |name: &str| ends.iter().any(|end| matches!(end, FieldPlace::Ending(end) if name.ends_with(end.as_str())));
        let mut there = self.by_name.iter().filter(|(name, (theirs, _))| ends_so(name) && !is_taken(theirs));
        let (name, value) = there.next()?.1;
        there.next().is_none().then(|| found(name, value, By::Ending))
    }

    fn numbered(&self, stems: &[FieldPlace], is_taken: &dyn Fn(&str) -> bool) -> Option<Found<'a>> {
        let mut lists: HashMap<&str, Vec<(u32, &'a str, &'a Value)>> = HashMap::new();
        for (plain, (name, value)) in self.by_name.iter().filter(|(_, (name, _))| !is_taken(name)) {
            let stem = plain.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_known = stems.iter().any(|known| matches!(known, FieldPlace::Numbered(known) if known == stem));
            if let (true, Ok(number)) = (is_known, plain[stem.len()..].parse()) {
                lists.entry(stem).or_default().push((number, name, value));
            }
        }
        let (_, mut list) = lists.into_iter().max_by_key(|(stem, list)| (list.len(), Reverse(*stem)))?;
        list.sort_by_key(|(number, ..)| *number);
        let names: Vec<&str> = list.iter().take(2).map(|(_, name, _)| *name).collect();
        let more = if list.len() > 2 { ", …" } else { "" };
        Some(Found {
            name: format!("{}{more}", names.join(", ")).into(),
            value: Cow::Owned(list.iter().map(|(.., value)| (*value).clone()).collect()),
            by: By::Numbers,
        })
    }

    /// Dotted names of the fields that hold a number, a truth value or lists of them (tables hold all of it as text), sorted.
    pub(crate) fn figures(&self) -> Vec<String> {
        self.names_of(is_figure)
    }

    /// Dotted names of the fields that hold a text, the longest text first.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut names = self.names_of(|value| value.as_str().is_some_and(|text| !text.is_empty()) && !is_figure(value));
        names.sort_by_key(|name| Reverse(self.at(name).and_then(Value::as_str).map_or(0, str::len)));
        names
    }

    fn names_of(&self, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for (name, value) in self.by_name.values() {
            if wanted(value) {
                names.push((*name).to_owned());
            } else if let Value::Object(inner) = value {
                let inner = inner.iter().filter(|(_, value)| wanted(value));
                names.extend(inner.map(|(inner, _)| format!("{name}.{inner}")));
            }
        }
        names.sort_unstable();
        names
    }
}

fn found<'a>(name: &'a str, value: &'a Value, by: By) -> Found<'a> {
    Found { name: Cow::Borrowed(name), value: Cow::Borrowed(value), by }
}

fn is_figure(value: &Value) -> bool {
    match value {
        Value::Number(_) | Value::Bool(_) => true,
        Value::String(text) => text.trim().trim_end_matches('%').parse::<f64>().is_ok(),
        Value::Array(values) => !values.is_empty() && values.iter().all(is_figure),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_found_in_their_order() {
        let Value::Object(record) = json!({
            "Is Correct": true, "a": {"B c": 1}, "x.y": 2, "gpt_f1": 0.5, "vote_10": 3, "vote_2": 2, "vote 1": 1, "run1": 7,
        }) else {
            panic!("an object")
        };
        let fields = Fields::in_record(&record);
        let find = |places: &str| -> Vec<(String, Value)> {
            let places: Vec<FieldPlace> = places.split(' ').map(FieldPlace::read).collect();
            fields.find(&places).into_iter().map(|found| (found.name.into_owned(), found.value.into_owned())).collect()
        };
        let one = |name: &str, value: Value| vec![(name.to_owned(), value)];
        assert_eq!(find("nothing isCorrect"), one("Is Correct", json!(true)));
        assert_eq!(find("a.b_c"), one("a.b_c", json!(1)));
        assert_eq!(find("x.y"), one("x.y", json!(2)), "a name may have dots of its own");
        assert_eq!(find("*_score *f1"), one("gpt_f1", json!(0.5)));
        assert_eq!(find("*correct *f1"), [], "two end so");
        assert_eq!(find("run# vote_#"), one("vote 1, vote_2, …", json!([1, 2, 3])), "the longest list");
        assert_eq!(find("*f1 a.b_c").len(), 2);
        let places = ["isCorrect", "a.b_c", "vote_#", "*f1"].map(FieldPlace::read);
        let free = |taken: &[&str]| fields.find_free(&places, &|name| taken.contains(&name));
        assert_eq!(free(&["Is Correct", "a.b_c", "gpt_f1"]).len(), 1);
        assert_eq!(free(&["vote_2"])[2].name, "vote 1, vote_10", "a number of them is taken");
    }
}
