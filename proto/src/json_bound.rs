//! How much memory JSON takes once it is read. A bound on its bytes says little of that: an element `{"":0}` has seven bytes and takes
//! several hundred as a tree. What others wrote is therefore counted before it is read, in one pass that keeps nothing.
//!
//! What has a form of its own (documents, reports, rows) is bounded in values; what may have any form and length (replies, filled
//! banks) in memory.
//!
//! How deep it is nested needs no count: `serde_json` itself reads 128 levels at most.

use std::fmt;

use serde::{Deserialize, de::Error as _};

/// Most values of a small document: the manifest of an archived run, its entry in the index, a cell of an imported table.
pub const SMALL: u64 = 10_000;
/// Most values of a document of settings: the spec of a run, and what is archived beside it.
pub const DOCUMENT: u64 = 200_000;
/// Most values of a report, of one line of an exported one, and of any other JSON of a row of the store.
pub const REPORT: u64 = 500_000;
/// Most values of a list of everything that there is: the files of filled banks, the segments of a bank, a step that is stored.
pub const LIST: u64 = 2_000_000;
/// What the content of a bank may take in memory, in bytes, as [`Counted::memory`] has it.
pub const BANK_BYTES: u64 = 2 << 30;

/// Bytes that a list or an object takes, at most: a node of a map has room for eleven members, whatever it holds.
const EACH_CONTAINER: u64 = 640;
/// The same of any value and any name of a member, beside its text.
const EACH_VALUE: u64 = 64;
/// What one byte takes at most: it may be a list.
const EACH_BYTE: u64 = 1 + EACH_VALUE + EACH_CONTAINER;

/// What a JSON text holds, as far as it was counted. It may come in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Values, with the names of members: each is a value of its own in memory.
    pub values: u64,
    /// Lists and objects among them.
    pub containers: u64,
    /// Length of the text, as far as it was counted.
    pub bytes: u64,
    within: Within,
}

/// What the next byte lies in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    /// Between values.
    #[default]
    Nothing,
    /// In a text.
    Text,
    /// In a text, behind a `\`.
    Escape,
    /// In a number or a word.
    Scalar,
}

impl Counted {
    /// What a whole text holds. What stands behind the end of the JSON is counted too; it takes nothing away.
    #[must_use]
    pub fn whole(json: &[u8]) -> Self {
        let mut counted = Self::default();
        counted.add(json);
        counted
    }

    /// Counts the next piece of a text.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        for byte in piece {
            self.within = match (self.within, byte) {
                (Within::Text, b'\\') => Within::Escape,
                (Within::Text, b'"') => Within::Nothing,
                (Within::Text | Within::Escape, _) => Within::Text,
                (_, b'"') => {
                    self.values += 1;
                    Within::Text
                }
                (_, b'{' | b'[') => {
                    (self.values, self.containers) = (self.values + 1, self.containers + 1);
                    Within::Nothing
                }
                (_, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') => Within::Nothing,
                (Within::Scalar, _) => Within::Scalar,
                (Within::Nothing, _) => {
                    self.values += 1;
                    Within::Scalar
                }
            };
        }
    }

    /// Bytes that it takes in memory as a tree, at most and roughly.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.bytes
            .saturating_add(self.values.saturating_mul(EACH_VALUE))
            .saturating_add(self.containers.saturating_mul(EACH_CONTAINER))
    }
}

/// More values than are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has {values} values, at most {most} are read")]
pub struct TooManyValues {
    /// How many there are.
    pub values: u64,
    /// How many may be.
    pub most: u64,
}

/// More memory than is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchMemory {
    /// Bytes that it takes, as [`Counted::memory`] has it.
    pub needed: u64,
    /// Bytes that it may take.
    pub most: u64,
}

impl fmt::Display for TooMuchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, most) = (self.needed.div_ceil(1 << 20), self.most >> 20);
        write!(f, "it takes {needed} MiB in memory, at most {most} are given to it")
    }
}

impl std::error::Error for TooMuchMemory {}

/// Refuses a text of more values.
///
/// # Errors
/// How many it has.
pub fn check(json: &[u8], most: u64) -> Result<(), TooManyValues> {
    // a value has a byte at least
    if json.len() as u64 <= most {
        return Ok(());
    }
    match Counted::whole(json).values {
        values if values > most => Err(TooManyValues { values, most }),
        _ => Ok(()),
    }
}

/// Refuses a text that takes more bytes in memory. One that cannot, whatever it holds, is not looked at.
///
/// # Errors
/// How many it takes.
pub fn check_memory(json: &[u8], most: u64) -> Result<(), TooMuchMemory> {
    if (json.len() as u64).saturating_mul(EACH_BYTE) <= most {
        return Ok(());
    }
    match Counted::whole(json).memory() {
        needed if needed > most => Err(TooMuchMemory { needed, most }),
        _ => Ok(()),
    }
}

/// Reads JSON of at most so many values.
///
/// # Errors
/// [`TooManyValues`] as an error of its form, before anything of it is read; what `serde_json` says.
pub fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8], most: u64) -> serde_json::Result<T> {
    check(json, most).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(json)
}

/// The same of a text.
///
/// # Errors
/// As [`from_slice`].
pub fn from_str<'a, T: Deserialize<'a>>(json: &'a str, most: u64) -> serde_json::Result<T> {
    check(json.as_bytes(), most).map_err(serde_json::Error::custom)?;
    serde_json::from_str(json)
}

/// Reads JSON that takes at most so many bytes in memory.
///
/// # Errors
/// As [`from_slice`].
pub fn from_slice_within<'a, T: Deserialize<'a>>(json: &'a [u8], most_bytes: u64) -> serde_json::Result<T> {
    check_memory(json, most_bytes).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(json)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Values and names of members, and lists and objects among them.
    fn of_tree(value: &Value) -> (u64, u64) {
        let add = |(a, b): (u64, u64), (c, d): (u64, u64)| (a + c, b + d);
        match value {
            Value::Array(values) => values.iter().map(of_tree).fold((1, 1), add),
            Value::Object(members) => members.values().map(|value| add((1, 0), of_tree(value))).fold((1, 1), add),
            _ => (1, 0),
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = "[a\"\\\\,:{}\\[\\] \né]{0,6}";
        let single = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        single.prop_recursive(4, 64, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(text, inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_is_read(value in any_value(), cut in any::<prop::sample::Index>()) {
            for json in [value.to_string(), serde_json::to_string_pretty(&value).expect("is written")] {
                let counted = Counted::whole(json.as_bytes());
                prop_assert_eq!((counted.values, counted.containers), of_tree(&value), "{}", &json);
                let (first, second) = json.as_bytes().split_at(cut.index(json.len()));
                let mut in_pieces = Counted::default();
                in_pieces.add(first);
                in_pieces.add(second);
                prop_assert_eq!(in_pieces, counted);
            }
        }
    }

    #[test]
    fn a_text_of_many_values_is_refused_before_it_is_read() {
        let bomb = format!("[{}0]", "{\"\":0},".repeat(100_000));
        let refused = TooManyValues { values: 300_002, most: DOCUMENT };
        assert_eq!(check(bomb.as_bytes(), DOCUMENT), Err(refused));
        assert_eq!(check(bomb.as_bytes(), REPORT), Ok(()));
        // what stands behind it takes nothing of it away again
        let broken = format!("{bomb}{}", ":]}\"".repeat(1_000));
        for text in [&bomb, &broken] {
            let said = from_slice::<Value>(text.as_bytes(), DOCUMENT).expect_err("is refused").to_string();
            assert!(said.starts_with("it has 30") && said.ends_with("values, at most 200000 are read"), "{said}");
            let said = from_str::<Value>(text, DOCUMENT).expect_err("is refused").to_string();
            assert!(said.ends_with("values, at most 200000 are read"), "{said}");
            let said = from_slice_within::<Value>(text.as_bytes(), 16 << 20).expect_err("is refused").to_string();
            assert!(said.ends_with("MiB in memory, at most 16 are given to it"), "{said}");
        }
        // a long text is one value
        let text = json!(["x".repeat(1 << 20)]).to_string();
        assert!(from_slice::<Value>(text.as_bytes(), 2).is_ok() && check(text.as_bytes(), 1).is_err());
    }

    #[test]
    fn what_is_too_short_to_take_more_is_not_looked_at_and_everything_else_is() {
        for byte in ["[", "{", "0", "\"", ",", "x"] {
            assert!(Counted::whole(byte.as_bytes()).memory() <= EACH_BYTE, "{byte}");
        }
        let lists = "[".repeat(1_000);
        let needed = Counted::whole(lists.as_bytes()).memory();
        assert_eq!(needed, 1_000 * EACH_BYTE);
        assert_eq!(check_memory(lists.as_bytes(), needed), Ok(()));
        assert_eq!(check_memory(lists.as_bytes(), needed - 1), Err(TooMuchMemory { needed, most: needed - 1 }));
        assert_eq!(check_memory(format!("{lists}   ").as_bytes(), needed + 3), Ok(()), "it is looked at, and fits");
        let said = TooMuchMemory { needed: (16 << 20) + 1, most: 16 << 20 }.to_string();
        assert_eq!(said, "it takes 17 MiB in memory, at most 16 are given to it");
    }

    #[test]
    fn what_a_tree_takes_is_at_least_what_its_nodes_take() {
        // a node of a map of texts and values, and the value in its list
        let node = 11 * (size_of::<String>() + size_of::<Value>()) + size_of::<Value>();
        let each = |element: &str| Counted::whole(element.as_bytes()).memory();
        assert!(each("{\"\":0}") >= node as u64, "{} {node}", each("{\"\":0}"));
        assert!(each("[0]") >= 5 * size_of::<Value>() as u64);
        assert!(each("0") >= 2 * size_of::<Value>() as u64);
    }
}
