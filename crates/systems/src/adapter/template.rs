//! Templates: texts with `{name}`, in JSON values of any shape. `"{k}"` alone keeps the value's type, `"{time?}"` alone
//! drops its key or element when there is no value (nothing, or an empty list or object), `{{` and `}}` are braces. `{field.kind}`
//! is what `{fields}` holds under that name, `{step.event}` what an earlier request of the operation has brought.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Variables that hold others: how the names of these begin, and their own.
const HOLDERS: [(&str, &str); 2] = [("field.", "fields"), ("step.", "steps")];

/// The variable that holds the one of this name, and its name there.
fn held(name: &str) -> Option<(&'static str, &str)> {
    HOLDERS.iter().find_map(|(begin, holder)| Some((*holder, name.strip_prefix(begin)?)))
}

/// Values of variables; later ones hide earlier ones of the same name.
#[derive(Debug, Clone, Default)]
pub(super) struct Vars(Vec<(&'static str, Value)>);

impl Vars {
    /// With one more variable.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push((name, value.into()));
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        if let Some((holder, name)) = held(name) {
            return self.get(holder)?.get(name);
        }
        self.0.iter().rev().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

/// A compiled template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Template {
    /// Without variables.
    Plain(Value),
    /// One variable alone; `true` when it may be missing.
    Whole(String, bool),
    /// A text with variables in it.
    Text(Vec<Piece>),
    /// A list whose elements may have variables.
    List(Vec<Template>),
    /// An object whose values may have variables.
    Object(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Text that stays as it stands.
    Plain(String),
    /// A variable.
    Var(String),
}

/// The variable that a YAML object was meant to be: `{k}` without quotes is one with the key `k` and no value.
fn unquoted<'m>(map: &'m Map<String, Value>, known: &[&str]) -> Option<&'m str> {
    let (name, value) = map.iter().next().filter(|_| map.len() == 1)?;
    (value.is_null() && is_known(name.trim_end_matches('?'), known)).then_some(name.as_str())
}

/// Whether there is a variable of a name: it is known itself, or as a part of one that is.
fn is_known(name: &str, known: &[&str]) -> bool {
    known.contains(&name) || held(name).is_some_and(|(holder, _)| known.contains(&holder))
}

impl Template {
    /// Compiles a JSON value.
    ///
    /// # Errors
    /// An open brace, an unknown variable.
    pub(super) fn compile(value: &Value, known: &[&str]) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::text(text, known)?,
            Value::Array(list) => Self::List(list.iter().map(|v| Self::compile(v, known)).collect::<Result<_, _>>()?),
            Value::Object(map) => {
                if let Some(name) = unquoted(map, known) {
                    return Err(format!("{{{name}}} without quotes is an object: write \"{{{name}}}\""));
                }
                let entries = map.iter().map(|(key, v)| Ok::<_, String>((key.clone(), Self::compile(v, known)?)));
                Self::Object(entries.collect::<Result<_, _>>()?)
            }
            other => Self::Plain(other.clone()),
        })
    }

    /// Compiles a text.
    ///
    /// # Errors
    /// As [`Template::compile`].
    pub(super) fn text(text: &str, known: &[&str]) -> Result<Self, String> {
        let pieces = pieces(text)?;
        for piece in &pieces {
            if let Piece::Var(name) = piece {
                let name = name.trim_end_matches('?');
                if !is_known(name, known) {
                    return Err(format!("unknown variable {{{name}}}, known here: {}", known.join(", ")));
                }
            }
        }
        Ok(match pieces.as_slice() {
            [] => Self::Plain(Value::String(String::new())),
            [Piece::Plain(text)] => Self::Plain(Value::String(text.clone())),
            [Piece::Var(name)] => Self::Whole(name.trim_end_matches('?').to_owned(), name.ends_with('?')),
            _ => Self::Text(pieces),
        })
    }

    /// Names of its variables.
    pub(super) fn names(&self, names: &mut BTreeSet<String>) {
        match self {
            Self::Plain(_) => {}
            Self::Whole(name, _) => drop(names.insert(name.clone())),
            Self::Text(pieces) => names.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Var(name) => Some(name.trim_end_matches('?').to_owned()),
                Piece::Plain(_) => None,
            })),
            Self::List(list) => list.iter().for_each(|template| template.names(names)),
            Self::Object(entries) => entries.iter().for_each(|(_, template)| template.names(names)),
        }
    }

    /// The value; `None` when it is a variable that may be missing and is.
    pub(super) fn render(&self, vars: &Vars) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value.clone()),
            Self::Whole(name, optional) => match vars.get(name) {
                value if *optional && value.is_none_or(is_nothing) => None,
                None => Some(Value::Null),
                Some(value) => Some(value.clone()),
            },
            Self::Text(_) => Some(Value::String(self.render_text(vars, &|text| text.to_owned()))),
            Self::List(list) => Some(Value::Array(list.iter().filter_map(|template| template.render(vars)).collect())),
            Self::Object(entries) => {
                let entries = entries.iter().filter_map(|(key, template)| Some((key.clone(), template.render(vars)?)));
                Some(Value::Object(entries.collect::<Map<_, _>>()))
            }
        }
    }

    /// The text, each variable through `escape`.
    pub(super) fn render_text(&self, vars: &Vars, escape: &dyn Fn(&str) -> String) -> String {
        let of = |name: &str| match vars.get(name.trim_end_matches('?')) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => escape(text),
            Some(other) => escape(&other.to_string()),
        };
        match self {
            Self::Plain(Value::String(text)) => text.clone(),
            Self::Plain(other) => other.to_string(),
            Self::Whole(name, _) => of(name),
            Self::Text(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Plain(text) => text.clone(),
                    Piece::Var(name) => of(name),
                })
                .collect(),
            Self::List(_) | Self::Object(_) => self.render(vars).unwrap_or_default().to_string(),
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether this stands between the braces of a variable.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = name.trim_end_matches('?');
    let (name, more): (&str, &[char]) = match held(name) {
        Some((_, name)) => (name, &['.', '-']),
        None => (name, &[]),
    };
    !name.is_empty() && name.chars().all(|c| plain(c) || more.contains(&c))
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            plain.push_str(&tail[..1]);
            rest = &tail[2..];
            continue;
        }
        let name = tail.strip_prefix('{').and_then(|inner| inner.split_once('}')).map(|(name, _)| name);
        let Some(name) = name.filter(|name| is_name(name)) else {
            return Err(format!("'{text}' has a brace that is no variable: write {{{{ and }}}} for braces"));
        };
        if !plain.is_empty() {
            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Var(name.to_owned()));
        rest = &tail[name.len() + 2..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    Ok(pieces)
}

/// Escapes a value for a path segment: nothing in it can end the segment.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~.".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    // `.` and `..` would walk
    if escaped.chars().all(|c| c == '.') { escaped.replace('.', "_") } else { escaped }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const KNOWN: &[&str] = &["a", "k", "time"];

    fn vars() -> Vars {
        Vars::default().with("a", "x \"y\" {a}").with("k", 5)
    }

    #[test]
    fn values_keep_their_types_and_missing_ones_go() {
        let template = json!({ "q": "{a}", "n": "{k}", "t": "{time?}", "null": "{time}", "s": "k={k} {{{a}}}", "l": ["{time?}", 1] });
        let rendered = Template::compile(&template, KNOWN).expect("compiles").render(&vars());
        assert_eq!(
            rendered,
            Some(json!({ "q": "x \"y\" {a}", "n": 5, "null": null, "s": "k=5 {x \"y\" {a}}", "l": [1] }))
        );
    }

    #[test]
    fn fields_have_names_of_their_own_and_empty_lists_are_no_value() {
        let vars = Vars::default().with("fields", json!({"kind": "belief", "x-y.z": 1})).with("tags", json!([]));
        let template =
            json!({"k": "{field.kind}", "z": "{field.x-y.z}", "no": "{field.none?}", "t": "{tags?}", "all": "{tags}"});
        let rendered = Template::compile(&template, &["fields", "tags"]).expect("compiles").render(&vars);
        assert_eq!(rendered, Some(json!({"k": "belief", "z": 1, "all": []})));
        assert!(Template::text("{field.kind}", &["tags"]).is_err() && Template::text("{field.}", &["fields"]).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Template::text(text, KNOWN).expect_err("must be refused");
        insta::assert_snapshot!(error("{b}"), @"unknown variable {b}, known here: a, k, time");
        insta::assert_snapshot!(error("{\"a\": 1}"), @r#"'{"a": 1}' has a brace that is no variable: write {{ and }} for braces"#);
    }

    proptest! {
        /// What is retained reaches the system as it is, whatever characters are in it.
        #[test]
        fn texts_come_through_unchanged(text in "\\PC*") {
            let template = Template::compile(&json!({ "text": "{a}" }), KNOWN).expect("compiles");
            let rendered = template.render(&Vars::default().with("a", text.clone())).expect("has a value");
            prop_assert_eq!(rendered, json!({ "text": text }));
        }

        #[test]
        fn compiling_never_panics(text in "[{}a-z?\\PC]*") {
            let _ = Template::text(&text, KNOWN);
        }
    }
}
