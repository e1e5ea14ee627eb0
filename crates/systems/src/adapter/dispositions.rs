//! Dispositions: traits that a system is given for its own answers, such as how sceptical it is. A file says which ones its system
//! has, a run which of them are set; where none is, the file is as if it said nothing of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::spec::AdapterSpec;
use crate::SystemSettings;

/// Setting that holds the dispositions of a run: an object of whole numbers.
pub const DISPOSITIONS: &str = "system.dispositions";

/// What a disposition can be, from little to much.
const RANGE: std::ops::RangeInclusive<u64> = 1..=5;

/// Takes what a run asks for, as in `skepticism=4,empathy=2`. Without any the adapter loses its list: its hash and the
/// fingerprints of its runs are what they were before it had one.
///
/// # Errors
/// Traits that the system does not have, values that are none.
pub fn take(adapter: &mut AdapterSpec, asked: Option<&str>) -> Result<Option<Value>, String> {
    let Some(asked) = asked else {
        adapter.dispositions.clear();
        return Ok(None);
    };
    let mut values = BTreeMap::new();
    for pair in asked.split(',') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value: u64 = value.trim().parse().map_err(|_| format!("{}: give NAME=VALUE", pair.trim()))?;
        if values.insert(name.trim().to_owned(), value).is_some() {
            return Err(format!("{} is given twice", name.trim()));
        }
    }
    let values = serde_json::to_value(values).map_err(|error| error.to_string())?;
    merged(adapter.clone(), &values)?;
    Ok(Some(values))
}

/// An adapter as it speaks with the dispositions of its run's settings.
///
/// # Errors
/// As [`take`].
pub(super) fn told(mut adapter: AdapterSpec, settings: &SystemSettings) -> Result<AdapterSpec, String> {
    match settings.get(DISPOSITIONS) {
        Some(values) => merged(adapter, values).map_err(|problem| format!("{DISPOSITIONS}: {problem}")),
        None => {
            adapter.dispositions.clear();
            Ok(adapter)
        }
    }
}

/// The adapter as if its `open` said these values itself.
fn merged(mut adapter: AdapterSpec, values: &Value) -> Result<AdapterSpec, String> {
    let fields = std::mem::take(&mut adapter.dispositions);
    if fields.is_empty() {
        return Err(format!("{} has no dispositions", adapter.name));
    }
    let body = adapter.open.as_mut().and_then(|open| open.body.as_mut()).and_then(Value::as_object_mut);
    let body = body.ok_or("the body of `open` is no object")?;
    for (name, value) in values.as_object().ok_or("is no object")? {
        let known = || fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let field = fields.get(name).ok_or_else(|| format!("{} has no '{name}', it has {}", adapter.name, known()))?;
        if !value.as_u64().is_some_and(|value| RANGE.contains(&value)) {
            return Err(format!("{name} is a whole number from {} to {}, not {value}", RANGE.start(), RANGE.end()));
        }
        body.insert(field.clone(), value.clone());
    }
    Ok(adapter)
}

/// Whether a file's list can be said to its system.
///
/// # Errors
/// What is wrong, with the name of the field.
pub(super) fn check(adapter: &AdapterSpec) -> Result<(), String> {
    let body = adapter.open.as_ref().and_then(|open| open.body.as_ref()).and_then(Value::as_object);
    match (adapter.dispositions.is_empty(), body) {
        (true, _) => Ok(()),
        (false, None) => {
            Err("dispositions: `open` needs a body that is an object, which they are written into".to_owned())
        }
        (false, Some(body)) => match adapter.dispositions.values().find(|field| body.contains_key(*field)) {
            Some(field) => Err(format!("dispositions: the body of `open` has a field '{field}' already")),
            None => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::adapter::file;

    const FILE: &str = "
name: mine
url: http://127.0.0.1:9
open: {request: 'PUT /banks/{bank}', body: {name: '{bank}'}}
retain: {request: POST /add, body: {text: '{text}', user: '{bank}'}}
recall:
  request: POST /search
  body: {query: '{query}'}
  hits: [{list: results, text: memory, id: id}]
";
    const LIST: &str = "dispositions: {skepticism: trait_skepticism, empathy: trait_empathy}\n";

    fn mine() -> AdapterSpec {
        file::parse(&format!("{FILE}{LIST}")).expect("reads")
    }

    #[test]
    fn without_them_a_file_is_what_it_is_without_a_list() {
        let mut adapter = mine();
        assert_eq!(take(&mut adapter, None), Ok(None));
        assert_eq!(adapter, file::parse(FILE).expect("reads"));
        assert_eq!(told(mine(), &SystemSettings::new()), Ok(adapter));
    }

    #[test]
    fn what_is_asked_for_is_said_where_the_bank_is_made_and_is_part_of_the_fingerprint() {
        let mut adapter = mine();
        let values = take(&mut adapter, Some("skepticism=4, empathy=1")).expect("it has both").expect("are asked for");
        assert_eq!((&values, &adapter), (&json!({ "empathy": 1, "skepticism": 4 }), &mine()));
        let of = |values: Value| told(mine(), &SystemSettings::from([(DISPOSITIONS.to_owned(), values)]));
        let said = of(values).expect("can be said");
        let body = said.open.as_ref().and_then(|open| open.body.clone());
        assert_eq!(body, Some(json!({ "name": "{bank}", "trait_skepticism": 4, "trait_empathy": 1 })));
        let plain = file::parse(FILE).expect("reads");
        let other = of(json!({ "skepticism": 5 })).expect("can be said");
        let prints = [&plain, &said, &other].map(file::fingerprint);
        assert!(prints[0] != prints[1] && prints[1] != prints[2], "{prints:?}");
    }

    #[test]
    fn what_a_system_does_not_have_is_refused() {
        let refused = |text: &str| take(&mut mine(), Some(text)).expect_err("is refused");
        insta::assert_snapshot!(refused("humour=3"), @"mine has no 'humour', it has empathy, skepticism");
        insta::assert_snapshot!(refused("empathy=6"), @"empathy is a whole number from 1 to 5, not 6");
        insta::assert_snapshot!(refused("empathy"), @"empathy: give NAME=VALUE");
        insta::assert_snapshot!(refused("empathy=1,empathy=2"), @"empathy is given twice");
        insta::assert_snapshot!(take(&mut file::parse(FILE).expect("reads"), Some("empathy=1")).expect_err("has none"), @"mine has no dispositions");
        let nowhere = FILE.replace(", body: {name: '{bank}'}", "") + LIST;
        let error = crate::adapter::check(&file::parse(&nowhere).expect("reads")).expect_err("they go nowhere");
        insta::assert_snapshot!(error, @"dispositions: `open` needs a body that is an object, which they are written into");
        assert_eq!(check(&file::parse(&FILE.replace("name: '{bank}'", "trait_empathy: 3")).expect("reads")), Ok(()));
        let twice = FILE.replace("body: {name: '{bank}'", "body: {trait_empathy: 3") + LIST;
        assert!(check(&file::parse(&twice).expect("reads")).is_err());
    }
}
