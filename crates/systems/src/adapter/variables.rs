//! `${env:NAME}` and `${env:NAME:-default}` in the texts of an adapter. One parser says what a text names and fills it: what a policy
//! was asked about is what is filled in, and nothing else.

use std::collections::BTreeMap;

use super::spec::AdapterSpec;

/// How a variable begins.
const BEGIN: &str = "${env:";

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Text that stays as it stands.
    Plain(&'t str),
    /// A variable of the environment, and what stands for it when it is not set.
    Variable(&'t str, Option<&'t str>),
}

impl Piece<'_> {
    /// What is filled in.
    ///
    /// # Errors
    /// When the variable is not set.
    pub(crate) fn value(self) -> Result<String, String> {
        self.value_or_given(&BTreeMap::new())
    }

    /// The same where some variables are given by somebody else than the environment.
    fn value_or_given(self, given: &BTreeMap<String, String>) -> Result<String, String> {
        match self {
            Self::Plain(text) => Ok(text.to_owned()),
            Self::Variable(name, default) => {
                let value = given.get(name).cloned().or_else(|| std::env::var(name).ok());
                let value = value.or_else(|| default.map(str::to_owned));
                value.ok_or_else(|| format!("the environment variable {name} is not set"))
            }
        }
    }
}

/// Takes a text apart.
///
/// # Errors
/// A variable without an end, without a name or inside of another one.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, tail)) = rest.split_once(BEGIN) {
        let (inside, after) = tail.split_once('}').ok_or_else(|| format!("'{text}': ${{env:… has no end"))?;
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
        if name.is_empty() {
            return Err(format!("'{text}': ${{env:…}} names no variable"));
        }
        if inside.contains("${") {
            return Err(format!("'{text}': a variable stands inside of another one: a default is plain text"));
        }
        pieces.extend([Piece::Plain(before), Piece::Variable(name, default)]);
        rest = after;
    }
    pieces.push(Piece::Plain(rest));
    Ok(pieces)
}

/// Names of the variables that a text takes from the environment: none of one that cannot be filled.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().flatten().filter_map(|piece| match piece {
        Piece::Variable(name, _) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// Whether all variables of an adapter can be read.
///
/// # Errors
/// The first text with one that cannot.
pub(super) fn check(spec: &AdapterSpec) -> Result<(), String> {
    spec.filled().try_for_each(|text| pieces(text).map(drop))
}

/// Fills in variables of the environment.
///
/// # Errors
/// When a variable cannot be read or is not set.
pub(super) fn fill_env(text: &str) -> Result<String, String> {
    fill(text, &Values::default())
}

/// What stands for the places of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// `{port}` and the like, by their names.
    pub(super) places: BTreeMap<&'static str, String>,
    /// Variables that are not taken from the environment.
    pub(super) given: BTreeMap<String, String>,
}

/// Fills in the environment, and `{port}` and the like.
pub(super) fn fill(text: &str, values: &Values) -> Result<String, String> {
    fill_as(text, values, &|_, value| value.to_owned())
}

/// The same in the text of a JSON file: values stay inside of the strings that they are put into, also in JSON that is a string
/// of the file.
pub(super) fn fill_json(text: &str, values: &Values) -> Result<String, String> {
    fill_as(text, values, &|before, value| {
        (0..strings_around(before)).fold(value.to_owned(), |value, _| inside_of_a_string(&value))
    })
}

/// A value as it stands between the quotes of a JSON string.
pub(super) fn inside_of_a_string(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// In how many strings, one inside of the other, the place after a text of JSON lies: at most two are told apart.
fn strings_around(before: &str) -> usize {
    let (mut outer, mut inner, mut slashes) = (false, false, 0);
    for c in before.chars() {
        match (c, slashes) {
            ('"', 0) => (outer, inner) = (!outer, false),
            ('"', 1) => inner = outer && !inner,
            _ => {}
        }
        slashes = if c == '\\' { slashes + 1 } else { 0 };
    }
    usize::from(outer) + usize::from(inner)
}

/// `write` makes of a value what stands in the text, after what stands before it.
fn fill_as(text: &str, values: &Values, write: &dyn Fn(&str, &str) -> String) -> Result<String, String> {
    let mut filled = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Plain(plain) => filled.push_str(plain),
            Piece::Variable(..) => {
                let value = write(&filled, &piece.value_or_given(&values.given)?);
                filled.push_str(&value);
            }
        }
    }
    for (name, value) in &values.places {
        let (place, mut from) = (format!("{{{name}}}"), 0);
        while let Some(at) = filled[from..].find(&place).map(|at| from + at) {
            let value = write(&filled[..at], value);
            filled.replace_range(at..at + place.len(), &value);
            from = at + value.len();
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_stay_inside_of_the_strings_of_a_json_file() {
        let text = r#"{"dir": "{dir}", "headers": "{\"Authorization\": \"Bearer ${env:BENCH_NO_SUCH:-a"b\c}\"}", "n": {port}}"#;
        let places = BTreeMap::from([("dir", "/a \"b\"".to_owned()), ("port", "80".to_owned())]);
        let values = Values { places, ..Values::default() };
        let filled: serde_json::Value =
            serde_json::from_str(&fill_json(text, &values).expect("is filled")).expect("stays JSON");
        assert_eq!((&filled["dir"], &filled["n"]), (&"/a \"b\"".into(), &80.into()));
        let inner: serde_json::Value =
            serde_json::from_str(filled["headers"].as_str().expect("a text")).expect("stays JSON inside");
        assert_eq!(inner["Authorization"], "Bearer a\"b\\c");
        assert_eq!(fill("{dir} {port}", &values).expect("is filled"), "/a \"b\" 80", "any other file as it is");
    }

    #[test]
    fn what_is_given_stands_before_the_environment_and_before_a_default() {
        let given = BTreeMap::from([("PATH".to_owned(), "given".to_owned())]);
        let values = Values { given, ..Values::default() };
        assert_eq!(fill("${env:PATH} ${env:PATH:-x}", &values).expect("is filled"), "given given");
        assert_eq!(fill("${env:BENCH_NO_SUCH:-x}", &values).expect("is filled"), "x");
    }

    #[test]
    fn a_variable_inside_of_another_one_is_neither_named_nor_filled() {
        assert_eq!(names("a ${env:ONE} b ${env:TWO:-x}${env:ONE}").collect::<Vec<_>>(), ["ONE", "TWO", "ONE"]);
        for nested in
            ["${env:PATH:-${env:HOME}}", "${env:${env:HOME}}", "${env:", "${env:PATH", "${env:}", "${env::-x}"]
        {
            assert_eq!(names(nested).next(), None, "{nested}");
            assert!(fill_env(nested).is_err(), "{nested}");
        }
    }

    proptest! {
        /// Nothing of the environment is in a filled text whose name was not told.
        #[test]
        fn what_is_filled_was_named(
            parts in proptest::collection::vec(prop::sample::select(vec!["${env:", "PATH", "NOPE", ":-", "}", "$", "{", "x"]), 0..12),
        ) {
            let text = parts.concat();
            let path = std::env::var("PATH").expect("is set");
            if fill_env(&text).is_ok_and(|filled| filled.contains(&path)) {
                prop_assert!(names(&text).any(|name| name == "PATH"), "{}", text);
            }
        }
    }
}
