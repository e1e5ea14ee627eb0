//! Members of objects and elements of lists, each where it stands in its text.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
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
        while let Some(name) = members.next_key_seed(Name)? {
            (self.0)(&name, members.next_value()?);
        }
        Ok(())
    }
}

/// The name of a member: where it stands, or a copy where letters of it are written as escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
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
