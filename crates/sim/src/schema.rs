//! Replies that satisfy a JSON schema: objects of strings, booleans, numbers and enumerations, nested and in arrays.
//!
//! Properties keep the order of the schema, as strict replies of a provider do.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

/// The part of JSON Schema that is understood; the rest is ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    kind: Option<Kind>,
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Vec<Value>>,
    #[serde(rename = "const")]
    pub(crate) constant: Option<Value>,
    pub(crate) properties: Ordered,
    items: Option<Box<Schema>>,
    #[serde(rename = "anyOf", alias = "oneOf")]
    pub(crate) any_of: Vec<Schema>,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "$defs", alias = "definitions")]
    definitions: Ordered,
    pub(crate) minimum: Option<f64>,
    maximum: Option<f64>,
    #[serde(rename = "maxItems")]
    pub(crate) max_items: Option<usize>,
}

/// `"string"` or `["string", "null"]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Kind {
    One(String),
    Several(Vec<String>),
}

/// A JSON object of schemas in the order of the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ordered(pub(crate) Vec<(String, Schema)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of schemas")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// What decides the values of a reply.
pub(crate) struct Verdict<'a> {
    /// The judge accepts.
    pub(crate) accept: bool,
    /// Hash-driven choice: a number below the given one for the n-th open choice of this reply.
    pub(crate) pick: &'a mut dyn FnMut(usize) -> usize,
}

const ACCEPTING: [&str; 9] = ["correct", "yes", "true", "pass", "passed", "accept", "accepted", "right", "good"];
const REFUSING: [&str; 10] =
    ["wrong", "incorrect", "no", "false", "fail", "failed", "reject", "rejected", "bad", "not_correct"];

/// Whether a word is an accepting or refusing verdict.
fn verdict_word(word: &str) -> Option<bool> {
    let is = |list: &[&str]| list.iter().any(|known| known.eq_ignore_ascii_case(word));
    if is(&ACCEPTING) { Some(true) } else { is(&REFUSING).then_some(false) }
}

/// References are followed and objects nested to this depth; deeper ones come out as `null`.
const MAX_DEPTH: usize = 8;

impl Schema {
    /// Writes JSON that satisfies the schema.
    pub(crate) fn reply(&self, verdict: &mut Verdict<'_>) -> String {
        let mut out = String::new();
        self.write(self, verdict, 0, &mut out);
        out
    }

    fn write(&self, root: &Self, verdict: &mut Verdict<'_>, depth: usize, out: &mut String) {
        if depth > MAX_DEPTH {
            return out.push_str("null");
        }
        if let Some(reference) = &self.reference {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return match root.definitions.0.iter().find(|(known, _)| known == name) {
                Some((_, schema)) => schema.write(root, verdict, depth + 1, out),
                None => out.push_str("null"),
            };
        }
        if let Some(constant) = &self.constant {
            return out.push_str(&constant.to_string());
        }
        if let Some(choices) = self.choices.as_deref().filter(|choices| !choices.is_empty()) {
            return out.push_str(&choose(choices, verdict).to_string());
        }
        if let Some(first) = self.any_of.first() {
            return first.write(root, verdict, depth + 1, out);
        }
        match self.kind() {
            "boolean" => out.push_str(if verdict.accept { "true" } else { "false" }),
            "integer" => out.push_str(&(self.number(verdict).round() as i64).to_string()),
            "number" => out.push_str(&Value::from(self.number(verdict)).to_string()),
            "null" => out.push_str("null"),
            "array" => {
                out.push('[');
                if let Some(items) = &self.items {
                    items.write(root, verdict, depth + 1, out);
                }
                out.push(']');
            }
            "object" => {
                out.push('{');
                for (n, (name, schema)) in self.properties.0.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push(':');
                    schema.write(root, verdict, depth + 1, out);
                }
                out.push('}');
            }
            _ => out.push_str(if verdict.accept {
                r#""the answer agrees with what is expected""#
            } else {
                r#""the answer differs from what is expected""#
            }),
        }
    }

    /// What a reference leads to, else the schema itself; a reference into nothing is the schema that has it.
    pub(crate) fn resolved<'a>(&'a self, root: &'a Self) -> &'a Self {
        let mut of = self;
        for _ in 0..MAX_DEPTH {
            let Some(name) = of.reference.as_deref().and_then(|reference| reference.rsplit('/').next()) else { break };
            let Some((_, found)) = root.definitions.0.iter().find(|(known, _)| known == name) else { break };
            of = found;
        }
        of
    }

    /// What the elements of an array are.
    pub(crate) fn item<'a>(&'a self, root: &'a Self) -> Option<&'a Self> {
        self.items.as_deref().map(|item| item.resolved(root))
    }

    /// Whether `null` is allowed beside something else.
    pub(crate) fn may_be_null(&self) -> bool {
        let is_null = |kind: &Option<Kind>| matches!(kind, Some(Kind::One(kind)) if kind == "null");
        matches!(&self.kind, Some(Kind::Several(kinds)) if kinds.iter().any(|kind| kind == "null"))
            || self.any_of.iter().any(|of| is_null(&of.kind))
    }

    /// Names of an object's properties, in the order of the schema.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.0.iter().map(|(name, _)| name.as_str())
    }

    /// Names of the properties of what a list among the properties holds.
    pub(crate) fn items_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let list =
            self.properties.0.iter().find(|(known, _)| known == name).and_then(|(_, list)| list.items.as_deref());
        list.into_iter().flat_map(Schema::names)
    }

    /// Whether a property may be this word.
    pub(crate) fn allows(&self, name: &str, word: &str) -> bool {
        let property = self.properties.0.iter().find(|(known, _)| known == name);
        property.is_some_and(|(_, schema)| schema.choices.iter().flatten().any(|choice| choice == word))
    }

    pub(crate) fn kind(&self) -> &str {
        match &self.kind {
            Some(Kind::One(kind)) => kind,
            Some(Kind::Several(kinds)) => kinds.iter().find(|kind| *kind != "null").map_or("null", String::as_str),
            None if !self.properties.0.is_empty() => "object",
            None => "string",
        }
    }

    /// The upper end of the range or three quarters of it when accepted, the lower end or a quarter when not: graders grade.
    fn number(&self, verdict: &mut Verdict<'_>) -> f64 {
        let low = self.minimum.unwrap_or(0.0);
        let high = self.maximum.unwrap_or(low + 1.0);
        let quarters = match (verdict.accept, (verdict.pick)(2)) {
            (true, 0) => 0.75,
            (true, _) => 1.0,
            (false, 0) => 0.25,
            (false, _) => 0.0,
        };
        low + quarters * (high - low)
    }
}

/// One of the choices: those that speak the verdict when there are any (of numbers those on its side of the middle), else any by hash.
fn choose<'a>(choices: &'a [Value], verdict: &mut Verdict<'_>) -> &'a Value {
    let numbers: Vec<f64> = choices.iter().filter_map(Value::as_f64).collect();
    let middle = f64::midpoint(
        numbers.iter().copied().fold(f64::INFINITY, f64::min),
        numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let says = |choice: &Value| match choice {
        Value::String(word) => verdict_word(word),
        choice => choice.as_f64().map(|number| number >= middle),
    };
    let speaking: Vec<&Value> = choices.iter().filter(|choice| says(choice) == Some(verdict.accept)).collect();
    let pool = if speaking.is_empty() { choices.iter().collect() } else { speaking };
    pool[(verdict.pick)(pool.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(schema: &str, accept: bool) -> String {
        let schema: Schema = serde_json::from_str(schema).expect("a schema");
        schema.reply(&mut Verdict { accept, pick: &mut |n| n - 1 })
    }

    #[test]
    fn verdicts_follow_the_schema_in_its_order() {
        let schema = r#"{"type":"object","properties":{
            "reasoning":{"type":"string"},"label":{"type":"string","enum":["WRONG","CORRECT"]},"accepted":{"type":"boolean"},
            "score":{"type":"integer","minimum":1,"maximum":5},"share":{"type":["number","null"]}},"required":["reasoning"]}"#;
        assert_eq!(
            reply(schema, true),
            r#"{"reasoning":"the answer agrees with what is expected","label":"CORRECT","accepted":true,"score":5,"share":1.0}"#
        );
        assert_eq!(
            reply(schema, false),
            r#"{"reasoning":"the answer differs from what is expected","label":"WRONG","accepted":false,"score":1,"share":0.0}"#
        );
    }

    #[test]
    fn graders_give_all_grades_of_their_side() {
        let schema: Schema = serde_json::from_str(
            r#"{"type":"object","properties":{"grade":{"enum":[0,0.5,1]},"share":{"type":"number","minimum":0,"maximum":1}}}"#,
        )
        .expect("a schema");
        let replies = |accept: bool| -> Vec<String> {
            (0..3).map(|chosen| schema.reply(&mut Verdict { accept, pick: &mut |n| chosen % n })).collect()
        };
        let [first, second] = [r#"{"grade":0.5,"share":0.75}"#, r#"{"grade":1,"share":1.0}"#];
        assert_eq!(replies(true), [first, second, first]);
        let [first, second] = [r#"{"grade":0,"share":0.25}"#, r#"{"grade":0,"share":0.0}"#];
        assert_eq!(replies(false), [first, second, first]);
    }

    #[test]
    fn nesting_references_and_open_choices() {
        let schema = r##"{"$defs":{"grade":{"enum":["a","b"]}},"properties":{"g":{"$ref":"#/$defs/grade"},"list":{"type":"array","items":{"type":"boolean"}},
            "either":{"anyOf":[{"const":7},{"type":"null"}]},"lost":{"$ref":"#/$defs/nowhere"}}}"##;
        assert_eq!(reply(schema, true), r#"{"g":"b","list":[true],"either":7,"lost":null}"#);
        let endless = r##"{"$defs":{"x":{"$ref":"#/$defs/x"}},"$ref":"#/$defs/x"}"##;
        assert_eq!(reply(endless, true), "null");
    }
}
