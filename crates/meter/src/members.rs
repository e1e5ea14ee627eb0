//! Reads a few members of a JSON object that passes by, whatever its size: what a reply says of its use stands beside vectors of many
//! megabytes, and is often the last of it. Holds the values that are looked for and nothing else.

use memchr::memchr2;

/// Longest value that is kept, in bytes: a use has 20 numbers, and as many again for each call that a reply has taken.
const LONGEST: usize = 16 * 1024;

/// What is looked for.
const NAMES: [&str; 4] = ["usage", "model", "service_tier", "error"];

/// Reads on as bytes come.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// The first byte that is no blank.
    first: Option<u8>,
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// It is an object, and its end has been seen.
    is_object: bool,
    ended: bool,
    /// The next text of the outer object is a name; the one that is read, and the one that a value follows.
    wants_name: bool,
    name: Option<Vec<u8>>,
    followed: Option<usize>,
    taking: Option<usize>,
    values: [Vec<u8>; NAMES.len()],
}

impl Members {
    /// Whether the bytes so far are a whole object, as far as brackets tell.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_object && self.ended
    }

    /// Whether it begins as web pages do, whatever braces stand in their scripts and styles.
    pub(crate) const fn is_page(&self) -> bool {
        matches!(self.first, Some(b'<'))
    }

    /// The value of a member as JSON text.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        let at = NAMES.iter().position(|of| *of == name)?;
        self.values.get(at).map(Vec::as_slice).filter(|value| !value.is_empty() && value.len() <= LONGEST)
    }

    /// Reads some bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.first.is_none() {
            self.first = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        }
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            if !self.in_text {
                self.outside(*byte);
                rest = after;
                continue;
            }
            // texts are long and hold nothing that matters but their end
            let plain = if self.escaped { 1 } else { memchr2(b'"', b'\\', rest).unwrap_or(rest.len()) };
            let (text, after) = rest.split_at(plain.min(rest.len()));
            self.keep(text);
            self.escaped = false;
            rest = after;
            if plain > 0 {
                continue;
            }
            let Some((byte, after)) = rest.split_first() else { return };
            rest = after;
            self.keep(&[*byte]);
            if *byte == b'\\' {
                self.escaped = true;
            } else {
                self.end_text();
            }
        }
    }

    fn outside(&mut self, byte: u8) {
        let is_outer = self.depth == 1;
        match byte {
            b'"' => {
                self.in_text = true;
                if is_outer && std::mem::take(&mut self.wants_name) {
                    self.name = Some(Vec::new());
                    return;
                }
            }
            b'{' | b'[' => {
                if self.depth == 0 {
                    self.is_object = byte == b'{' && !self.ended;
                    self.wants_name = true;
                }
                self.depth = self.depth.saturating_add(1);
            }
            b'}' | b']' => {
                if is_outer {
                    self.taking = None;
                    self.ended = true;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if is_outer => {
                self.taking = None;
                self.wants_name = true;
            }
            b':' if is_outer => {
                self.taking = self.followed.take().filter(|_| self.is_object);
                // of two members with one name the last one counts
                if let Some(value) = self.taking.and_then(|at| self.values.get_mut(at)) {
                    value.clear();
                }
                return;
            }
            _ => {}
        }
        self.keep(&[byte]);
    }

    fn end_text(&mut self) {
        self.in_text = false;
        if let Some(mut name) = self.name.take() {
            name.pop();
            self.followed = NAMES.iter().position(|of| of.as_bytes() == name);
        }
    }

    /// Adds to the name or the value that is being read.
    fn keep(&mut self, bytes: &[u8]) {
        let to = match (&mut self.name, self.taking) {
            (Some(name), _) => name,
            (None, Some(at)) => match self.values.get_mut(at) {
                Some(value) => value,
                None => return,
            },
            (None, None) => return,
        };
        // one byte more tells that it was too long
        let room = (LONGEST + 1).saturating_sub(to.len());
        to.extend(bytes.iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, size: usize) -> Members {
        let mut members = Members::default();
        text.as_bytes().chunks(size).for_each(|part| members.push(part));
        members
    }

    fn value(members: &Members, name: &str) -> Option<Value> {
        members.value(name).map(|value| serde_json::from_slice(value).expect("json"))
    }

    #[test]
    fn members_are_found_wherever_they_stand() {
        let text = r#" { "data" : [ {"usage": 1, "model": "no"} ], "text": "\"usage\": 2, \\", "model" : "m\"1" , "usage":{"prompt_tokens":8,"x":[1,{"y":"}"}]} } "#;
        for size in [1, 2, 3, 7, 1000] {
            let members = read(text, size);
            assert_eq!(value(&members, "model"), Some(json!("m\"1")));
            assert_eq!(value(&members, "usage"), Some(json!({"prompt_tokens": 8, "x": [1, {"y": "}"}]})));
            assert_eq!(value(&members, "service_tier"), None);
            assert!(members.is_whole());
        }
    }

    #[test]
    fn what_is_no_whole_object_has_none() {
        for text in ["", "[{\"usage\":1}]", "\"usage\":1", "{\"usage\":1", "{\"a\":\"}", "<html>{</html>"] {
            let members = read(text, 3);
            assert!(!members.is_whole(), "{text}");
        }
        let long = format!(r#"{{"usage":"{}","model":"m"}}"#, "x".repeat(LONGEST));
        let members = read(&long, 100);
        assert_eq!((value(&members, "usage"), value(&members, "model")), (None, Some(json!("m"))));
        assert_eq!(value(&read(r#"{"usage":1,"usage":{"a":2}}"#, 9), "usage"), Some(json!({"a": 2})));
    }

    #[test]
    fn a_page_is_told_from_an_object_by_how_it_begins() {
        for size in [1, 2, 1000] {
            for page in ["<html>welcome</html>", " \r\n<!doctype html><style>p{color:red}</style>"] {
                assert!(read(page, size).is_page(), "{page}");
            }
            for other in ["", " ", "{\"a\":\"<p>\"}", "[\"<\"]", "busy <b>now</b>"] {
                assert!(!read(other, size).is_page(), "{other}");
            }
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let name = prop_oneof![Just("usage".to_owned()), Just("model".to_owned()), ".{0,6}", "[\"\\\\{}:,]{0,4}"];
        let leaf =
            prop_oneof![any::<i32>().prop_map(Value::from), name.clone().prop_map(Value::from), Just(Value::Null)];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map(name.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_same_is_read_as_a_parser_reads(json in any_json(), size in 1_usize..40, pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&json).expect("json") } else { json.to_string() };
            let members = read(&text, size);
            prop_assert_eq!(members.is_whole(), json.is_object());
            for name in ["usage", "model"] {
                let expected = json.as_object().and_then(|map| map.get(name)).cloned();
                prop_assert_eq!(value(&members, name), expected);
            }
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut members = Members::default();
            bytes.chunks(9).for_each(|part| members.push(part));
            let _ = members.is_whole();
        }
    }
}
