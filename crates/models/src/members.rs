//! Members of objects and elements of lists, each where it stands in its text.

use std::fmt;

use serde::{
    Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Goes over the members of a JSON object in their order, those that stand twice too. None of them is held: a body may have millions.
///
/// # Errors
/// What is no JSON object.
pub fn each_member<'a>(object: &'a [u8], then: impl FnMut(&str, &'a RawValue)) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_slice(object);
    json.deserialize_map(Members(then))?;
    json.end()
}

struct Members<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some((name, value)) = members.next_entry::<String, &'de RawValue>()? {
            (self.0)(&name, value);
        }
        Ok(())
    }
}

/// Goes over the elements of a JSON list, and holds none of them.
///
/// # Errors
/// What is no list.
pub fn each_element<'a>(list: &'a RawValue, then: impl FnMut(&'a RawValue)) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(list.get());
    json.deserialize_seq(Elements(then))?;
    json.end()
}

struct Elements<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            (self.0)(element);
        }
        Ok(())
    }
}
