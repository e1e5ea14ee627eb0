//! The members of a body that matter, where they stand in its text: one look at all of its names finds them, and refuses what may not
//! be passed on.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::names;
use crate::refusal::Rejection;

/// A value where it stands, `null` too; none where it is not said.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// Makes [`Head`], with a field for each member, and the list of their names.
macro_rules! head {
    ($($member:ident),+ $(,)?) => {
        /// The members of a body that matter here. Each may be there once: readers of JSON differ in which of two they believe.
        #[derive(Debug, Default)]
        pub(super) struct Head<'a> {
            $(pub(super) $member: Raw<'a>,)+
        }

        /// Names of these members, as bodies have them.
        pub(super) const HEAD: &[&str] = &[$(stringify!($member)),+];

        impl<'a> Head<'a> {
            /// Where the value of a member belongs, if it matters.
            fn place(&mut self, name: &str) -> Option<&mut Raw<'a>> {
                $(if name == stringify!($member) {
                    return Some(&mut self.$member);
                })+
                None
            }
        }
    };
}

head!(
    model,
    stream,
    stream_options,
    max_tokens,
    max_completion_tokens,
    max_output_tokens,
    n,
    best_of,
    temperature,
    service_tier,
    background,
    previous_response_id,
    conversation,
    prompt,
    tools,
);

impl<'a> Head<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// What is no JSON object, says one of these members twice, or may not be passed on because of a name.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Rejection> {
        let no_object = |why: &dyn fmt::Display| {
            Rejection::unreadable(None, format!("the body is no JSON object that can be read: {why}"))
        };
        let Pairs(pairs) = serde_json::from_slice(body).map_err(|error| no_object(&error).quoting(error.classify()))?;
        let mut head = Self::default();
        for (name, value) in pairs {
            names::check(&name, value)?;
            if let Some(place) = head.place(&name)
                && place.replace(value).is_some()
            {
                return Err(no_object(&format!("{name} stands twice")));
            }
        }
        Ok(head)
    }
}

/// The members of a JSON object in their order, those that stand twice too.
pub(super) struct Pairs<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfObject)
    }
}

struct OfObject;

impl<'de> Visitor<'de> for OfObject {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Pairs<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = members.next_entry::<String, &'de RawValue>()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}
