//! How much a document becomes when it is read. YAML can name a text once and stand for it a million times: a file of a few bytes
//! would fill any memory, though no limit on its own length is passed.

mod nesting;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess as _, Visitor};

pub use nesting::check_nesting;

/// What every value weighs beside its text, in bytes.
const EACH: usize = 16;

/// Goes through a document as it would be read, keeping nothing of it.
///
/// # Errors
/// What is wrong with the document, or that it becomes more than `most` bytes.
pub fn check<'de, D: Deserializer<'de>>(document: D, most: usize) -> Result<(), D::Error> {
    let mut left = most;
    Weigh(&mut left).deserialize(document)
}

/// What is left of the weight that a document may have.
struct Weigh<'a>(&'a mut usize);

impl Weigh<'_> {
    fn again(&mut self) -> Weigh<'_> {
        Weigh(self.0)
    }

    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        let more = || E::custom("what it stands for is far longer than the file; write it out, without aliases");
        *self.0 = self.0.checked_sub(bytes.saturating_add(EACH)).ok_or_else(more)?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Weigh<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Weigh<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.take(0)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.take(0)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.take(0)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<(), E> {
        self.take(0)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<(), E> {
        self.take(0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.take(0)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.take(0)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.take(0)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.take(text.len())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<(), E> {
        self.take(bytes.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.again())?.is_some() {}
        self.take(0)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_key_seed(self.again())?.is_some() {
            fields.next_value_seed(self.again())?;
        }
        self.take(0)
    }

    fn visit_enum<A: EnumAccess<'de>>(mut self, tagged: A) -> Result<(), A::Error> {
        let ((), value) = tagged.variant_seed(self.again())?;
        value.newtype_variant_seed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(text: &str, most: usize) -> Result<(), String> {
        check(&mut serde_json::Deserializer::from_str(text), most).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_that_is_read_counts() {
        let text = r#"{"a": ["bcd", 1, -1, 1.5, true, null, {}]}"#;
        // ten values, the key among them, and four bytes of text
        assert_eq!(weighed(text, 10 * EACH + 4), Ok(()));
        assert!(weighed(text, 10 * EACH + 3).expect_err("is more").contains("without aliases"));
        assert!(weighed("[1", 1_000).expect_err("is broken").contains("EOF"));
    }
}
