//! Paths into responses: `results.0.memory`, `content.*.text`, `memory|chunk` (the first that is there). What is missing or
//! of another type is named with its place.

use serde_json::Value;

/// Fields that a message names.
const MOST_KEYS: usize = 12;
/// Letters of a name of theirs.
const LONGEST_KEY: usize = 40;

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    text: String,
    ways: Vec<Vec<Segment>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
    Each,
}

impl Path {
    /// Compiles a path; the empty one is the value itself.
    pub(super) fn new(text: &str) -> Self {
        let segment = |part: &str| match part {
            "*" => Segment::Each,
            number if number.parse::<usize>().is_ok() => Segment::Index(number.parse().unwrap_or(0)),
            key => Segment::Key(key.to_owned()),
        };
        let way = |way: &str| way.split('.').filter(|part| !part.is_empty()).map(segment).collect();
        Self { text: text.to_owned(), ways: text.split('|').map(way).collect() }
    }

    /// The values at the path; `null` counts as missing.
    pub(super) fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        for way in &self.ways {
            let mut found = Vec::new();
            walk(value, way, &mut found);
            found.retain(|value| !value.is_null());
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The first value at the path.
    pub(super) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.ways.iter().find_map(|way| walk_to_first(value, way))
    }

    /// The last value at the path.
    pub(super) fn last<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.all(value).pop()
    }

    /// Whether `null` stands at the path, and nothing else.
    pub(super) fn is_null(&self, value: &Value) -> bool {
        let leads_somewhere = |way: &Vec<Segment>| {
            let mut found = Vec::new();
            walk(value, way, &mut found);
            !found.is_empty()
        };
        self.first(value).is_none() && self.ways.iter().any(leads_somewhere)
    }

    /// Whether it leads to all elements of a list or an object, and not to one.
    pub(super) fn has_each(&self) -> bool {
        self.ways.iter().any(|way| way.contains(&Segment::Each))
    }

    /// That there is no value at the path, and what is there instead, for messages; `of` says of what, such as
    /// ` of hit 3`.
    pub(super) fn absent(&self, of: &str, value: &Value) -> String {
        if self.is_null(value) {
            return format!("field '{}'{of} is null", self.shown());
        }
        format!("field '{}'{of} is missing{}", self.shown(), self.instead(value))
    }

    /// What stands where the path leads no further: the names that there are.
    fn instead(&self, value: &Value) -> String {
        let (mut reached, mut there) = (Vec::new(), value);
        for segment in self.ways.first().into_iter().flatten() {
            let (name, next) = match (segment, there) {
                (Segment::Key(key), Value::Object(map)) => (key.clone(), map.get(key)),
                (Segment::Index(at), Value::Object(map)) => (at.to_string(), map.get(&at.to_string())),
                (Segment::Index(at), Value::Array(list)) => (at.to_string(), list.get(*at)),
                (Segment::Each, Value::Array(list)) => ("0".to_owned(), list.first()),
                _ => break,
            };
            let Some(next) = next else { break };
            reached.push(name);
            there = next;
        }
        let place = if reached.is_empty() { "it".to_owned() } else { format!("'{}'", reached.join(".")) };
        let Value::Object(map) = there else { return format!(": {place} is {}", kind(there)) };
        let short = |key: &String| key.chars().take(LONGEST_KEY).collect::<String>();
        let mut keys: Vec<String> = map.keys().take(MOST_KEYS).map(short).collect();
        if map.len() > MOST_KEYS {
            keys.push("…".to_owned());
        }
        if keys.is_empty() {
            return format!(": {place} has no field at all");
        }
        format!(": {place} has {}", keys.join(", "))
    }

    /// The value as text; numbers and booleans as they are printed.
    pub(super) fn string(&self, value: &Value) -> Option<String> {
        scalar(self.first(value)?)
    }

    /// The elements of the list at the path.
    pub(super) fn list<'v>(&self, value: &'v Value) -> Result<Option<Vec<&'v Value>>, String> {
        let has_each = self.has_each();
        let found = self.all(value);
        match found.as_slice() {
            [] if has_each => Ok(Some(Vec::new())),
            [] => Ok(None),
            [Value::Array(list)] => Ok(Some(list.iter().collect())),
            _ if has_each => Ok(Some(found)),
            [other, ..] => Err(format!("field '{}' must be a list, not {}", self.shown(), kind(other))),
        }
    }

    /// The number at the path, or the length of the list there.
    pub(super) fn count(&self, value: &Value) -> Result<u64, String> {
        match self.first(value) {
            Some(Value::Array(list)) => Ok(list.len() as u64),
            Some(Value::Number(number)) => number.as_u64().ok_or_else(|| self.no_count(&number.to_string())),
            Some(Value::String(text)) => text.parse().map_err(|_| self.no_count("a text of something else")),
            Some(other) => Err(format!("field '{}' must be a number or a list, not {}", self.shown(), kind(other))),
            None => Err(self.absent("", value)),
        }
    }

    fn no_count(&self, what: &str) -> String {
        format!("field '{}' must be a whole number from 0 on, or a list, not {what}", self.shown())
    }

    /// For messages.
    pub(super) fn shown(&self) -> &str {
        if self.text.is_empty() { "(the response itself)" } else { &self.text }
    }
}

/// What [`walk`] finds first that is not `null`.
fn walk_to_first<'v>(value: &'v Value, way: &[Segment]) -> Option<&'v Value> {
    let Some((segment, rest)) = way.split_first() else { return Some(value).filter(|value| !value.is_null()) };
    match (segment, value) {
        (Segment::Key(key), Value::Object(map)) => walk_to_first(map.get(key)?, rest),
        (Segment::Index(at), Value::Array(list)) => walk_to_first(list.get(*at)?, rest),
        (Segment::Index(at), Value::Object(map)) => walk_to_first(map.get(&at.to_string())?, rest),
        (Segment::Each, Value::Array(list)) => list.iter().find_map(|value| walk_to_first(value, rest)),
        (Segment::Each, Value::Object(map)) => map.values().find_map(|value| walk_to_first(value, rest)),
        _ => None,
    }
}

fn walk<'v>(value: &'v Value, way: &[Segment], found: &mut Vec<&'v Value>) {
    let Some((segment, rest)) = way.split_first() else { return found.push(value) };
    match (segment, value) {
        (Segment::Key(key), Value::Object(map)) => map.get(key).into_iter().for_each(|v| walk(v, rest, found)),
        (Segment::Index(at), Value::Array(list)) => list.get(*at).into_iter().for_each(|v| walk(v, rest, found)),
        // servers have keys that look like numbers
        (Segment::Index(at), Value::Object(map)) => {
            map.get(&at.to_string()).into_iter().for_each(|v| walk(v, rest, found));
        }
        (Segment::Each, Value::Array(list)) => list.iter().for_each(|v| walk(v, rest, found)),
        (Segment::Each, Value::Object(map)) => map.values().for_each(|v| walk(v, rest, found)),
        _ => {}
    }
}

/// A value as text; none of a list or an object.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a value is, for people.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_found_by_key_index_all_and_alternative() {
        let value = json!({ "a": [{ "m": "x" }, { "chunk": "y" }, { "m": null }], "n": 3, "empty": [] });
        let texts = |path: &str| Path::new(path).all(&value).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(texts("a.*.m"), [json!("x")]);
        assert_eq!(texts("a.1.m|a.1.chunk"), [json!("y")]);
        assert_eq!(texts("a.2.m"), Vec::<Value>::new());
        assert_eq!(texts("").first(), Some(&value));
        for path in ["a.*.m", "a.1.m|a.1.chunk", "a.2.m", "a.*.chunk", "*", "*.0.m", "a.1", "n.x", "x|n", ""] {
            let path = Path::new(path);
            assert_eq!(path.first(&value), path.all(&value).first().copied(), "{}", path.shown());
        }
        let last = json!({ "messages": [{ "content": "hm" }, { "content": "it is red" }, { "content": null }, {}] });
        let path = Path::new("messages.*.content");
        assert_eq!((path.first(&last), path.last(&last)), (Some(&json!("hm")), Some(&json!("it is red"))));
        assert_eq!(Path::new("n").count(&value), Ok(3));
        assert_eq!(Path::new("a").count(&value), Ok(3));
        assert_eq!(Path::new("a").list(&value).map(|l| l.map(|l| l.len())), Ok(Some(3)));
        assert_eq!(Path::new("empty.*.x").list(&value).map(|l| l.map(|l| l.len())), Ok(Some(0)));
        assert_eq!(Path::new("nothing").list(&value).map(|l| l.is_none()), Ok(true));
    }

    #[test]
    fn wrong_shapes_name_their_place() {
        let value = json!({ "a": { "b": "text" } });
        assert_eq!(Path::new("a.b").list(&value), Err("field 'a.b' must be a list, not a text".to_owned()));
        assert_eq!(Path::new("a.c").count(&value), Err("field 'a.c' is missing: 'a' has b".to_owned()));
        let absent = |path: &str| Path::new(path).absent("", &json!({ "a": null, "b": [{ "c": null }], "d": 1 }));
        for (path, said) in [
            ("a", "null"),
            ("a.c", "missing: 'a' is null"),
            ("b.*.c", "null"),
            ("b.*.d", "missing: 'b.0' has c"),
            ("b.1.c", "missing: 'b' is a list"),
            ("x|a", "null"),
            ("x|y", "missing: it has a, b, d"),
        ] {
            assert_eq!(absent(path), format!("field '{path}' is {said}"));
        }
        assert_eq!(Path::new("a").count(&value), Err("field 'a' must be a number or a list, not an object".to_owned()));
        for (count, shown) in [(json!(-5), "-5"), (json!(51.5), "51.5"), (json!("many"), "a text of something else")] {
            let expected = format!("field 'n' must be a whole number from 0 on, or a list, not {shown}");
            assert_eq!(Path::new("n").count(&json!({ "n": count })), Err(expected));
        }
    }
}
