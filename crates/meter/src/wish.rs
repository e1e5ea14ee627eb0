//! The use of a streamed chat: it is told only to those who ask for it, in a chunk of its own. So the meter asks where the client did
//! not, and takes out again what the client would not have got. Both are edits of the text where it stands: every other byte stays.

use hyper::body::Bytes;
use memchr::memmem;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// How a body asks for the use of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// As it is: the client asks itself, or it is no such stream.
    None,
    /// A text is put in place of some bytes, or between two.
    Put { at: usize, instead_of: usize, text: &'static str },
}

type Raw<'a> = Option<&'a RawValue>;

fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw<'de>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct Options<'a> {
    #[serde(borrow, default, deserialize_with = "raw")]
    include_usage: Raw<'a>,
}

/// Where a part of a text begins in it.
fn place(of: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(of.as_ptr().addr())
}

impl Wish {
    /// The wish of a body that is a JSON object, by its member `stream_options`.
    pub(crate) fn from_options(body: &[u8], options: Option<&RawValue>) -> Self {
        let Ok(body) = std::str::from_utf8(body) else { return Self::None };
        let Some(options) = options.map(RawValue::get) else {
            let Some(end) = body.rfind('}') else { return Self::None };
            return Self::Put { at: end, instead_of: 0, text: r#","stream_options":{"include_usage":true}"# };
        };
        let at = place(body, options);
        if options == "null" {
            return Self::Put { at, instead_of: options.len(), text: r#"{"include_usage":true}"# };
        }
        // what is no object the provider refuses; the reader below would take a list for one
        if !options.starts_with('{') {
            return Self::None;
        }
        let Ok(read) = serde_json::from_str::<Options<'_>>(options) else { return Self::None };
        match read.include_usage.map(RawValue::get) {
            Some(said @ ("false" | "null")) => {
                Self::Put { at: at + place(options, said), instead_of: said.len(), text: "true" }
            }
            Some(_) => Self::None,
            None => {
                let is_empty = options.trim_start_matches('{').trim().starts_with('}');
                let text = if is_empty { r#""include_usage":true"# } else { r#""include_usage":true,"# };
                Self::Put { at: at + 1, instead_of: 0, text }
            }
        }
    }

    /// Whether the stream brings what the client did not ask for.
    pub(crate) const fn is_added(self) -> bool {
        matches!(self, Self::Put { .. })
    }

    /// The body with the wish.
    pub(crate) fn put_into(self, body: &Bytes) -> Bytes {
        let Self::Put { at, instead_of, text } = self else { return body.clone() };
        let (Some(before), Some(after)) = (body.get(..at), body.get(at + instead_of..)) else { return body.clone() };
        [before, text.as_bytes(), after].concat().into()
    }
}

/// What is left of an event that has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// All of it.
    Whole,
    /// Nothing: it is there for the use alone.
    Nothing,
    /// It without its member `usage`, which is null.
    Changed(Bytes),
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "raw")]
    choices: Raw<'a>,
    #[serde(borrow, default, deserialize_with = "raw")]
    usage: Raw<'a>,
}

/// Takes out of an event what is there because of the wish; `data` is its data, part of its text.
pub(crate) fn take_out(event: &Bytes, data: &[u8]) -> Left {
    if memmem::find(data, b"\"usage\"").is_none() {
        return Left::Whole;
    }
    let Ok(Chunk { choices, usage: Some(usage) }) = serde_json::from_slice(data) else { return Left::Whole };
    let is_empty = choices.is_some_and(|choices| {
        let inner = choices.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.is_some_and(|inner| inner.trim().is_empty())
    });
    if usage.get() != "null" {
        return if is_empty { Left::Nothing } else { Left::Whole };
    }
    let from = usage.get().as_ptr().addr().wrapping_sub(event.as_ptr().addr());
    without_member(event, from, "usage", usage.get().len()).map_or(Left::Whole, Left::Changed)
}

/// A text without a member of an object and its comma: `value` is where its value begins.
fn without_member(text: &Bytes, value: usize, name: &str, length: usize) -> Option<Bytes> {
    let before = text.get(..value)?.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    let before = before.strip_suffix(b"\"")?.strip_suffix(name.as_bytes())?.strip_suffix(b"\"")?;
    let after = text.get(value + length..)?;
    if let Some(before) = before.trim_ascii_end().strip_suffix(b",") {
        return Some([before, after].concat().into());
    }
    let after = after.trim_ascii_start().strip_prefix(b",").unwrap_or(after);
    Some([before, after].concat().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn wished(body: &str) -> String {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default, deserialize_with = "raw")]
            stream_options: Raw<'a>,
        }
        let head: Head<'_> = serde_json::from_str(body).expect(body);
        let wish = Wish::from_options(body.as_bytes(), head.stream_options);
        String::from_utf8(wish.put_into(&Bytes::copy_from_slice(body.as_bytes())).to_vec()).expect("text")
    }

    #[test]
    fn a_wish_is_put_where_it_belongs_and_every_other_byte_stays() {
        for (body, with) in [
            (r#"{"stream":true}"#, r#"{"stream":true,"stream_options":{"include_usage":true}}"#),
            (
                "{ \"x\" : \"}\",\n \"stream\":true }\n ",
                "{ \"x\" : \"}\",\n \"stream\":true ,\"stream_options\":{\"include_usage\":true}}\n ",
            ),
            (r#"{"stream_options":null,"stream":true}"#, r#"{"stream_options":{"include_usage":true},"stream":true}"#),
            (r#"{"stream_options": { } }"#, r#"{"stream_options": {"include_usage":true } }"#),
            (r#"{"stream_options":{ "a":1}}"#, r#"{"stream_options":{"include_usage":true, "a":1}}"#),
            (
                r#"{"stream_options":{"a":1,"include_usage": false}}"#,
                r#"{"stream_options":{"a":1,"include_usage": true}}"#,
            ),
            (r#"{"stream_options":{"include_usage":null}}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":{"include_usage":true}}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":[]}"#, r#"{"stream_options":[]}"#),
            (r#"{"stream_options":[false]}"#, r#"{"stream_options":[false]}"#),
            (r#"{"stream_options":"all"}"#, r#"{"stream_options":"all"}"#),
        ] {
            assert_eq!(wished(body), with);
        }
    }

    fn left(event: &str) -> Left {
        let event = Bytes::copy_from_slice(event.as_bytes());
        let data = event.slice(6..event.len() - 2);
        // of the event itself, as the splitter gives it
        take_out(&event, &data)
    }

    #[test]
    fn what_the_client_did_not_ask_for_is_taken_out() {
        assert_eq!(left("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"), Left::Nothing);
        assert_eq!(left("data: {\"choices\": [ ],\"usage\":{}}\n\n"), Left::Nothing);
        for (event, without) in [
            ("data: {\"choices\":[{}],\"usage\":null}\n\n", "data: {\"choices\":[{}]}\n\n"),
            ("data: {\"choices\":[{}] , \"usage\" : null, \"x\":1}\n\n", "data: {\"choices\":[{}] , \"x\":1}\n\n"),
            ("data: {\"usage\":null,\"choices\":[]}\n\n", "data: {\"choices\":[]}\n\n"),
            ("data: {\"usage\":null}\n\n", "data: {}\n\n"),
        ] {
            assert_eq!(left(event), Left::Changed(Bytes::from_static(without.as_bytes())), "{event}");
        }
        for whole in [
            "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":1}}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":null\"}}]}\n\n",
            "data: {\"choices\":[{\"usage\":null}]}\n\n",
            "data: [DONE]\n\n",
            "data: {\"usage\":nul\n\n",
        ] {
            assert_eq!(left(whole), Left::Whole, "{whole}");
        }
    }

    proptest! {
        #[test]
        fn a_wished_body_says_the_same_and_asks(
            text in ".{0,20}", options in prop_oneof![Just(json!(null)), Just(json!({})), Just(json!({"a": {"include_usage": 1}})), Just(json!({"include_usage": false, "b": "}"}))],
            pretty: bool,
        ) {
            let body = json!({"model": text, "stream": true, "stream_options": options, "z": text});
            let body = if pretty { serde_json::to_string_pretty(&body).expect("json") } else { body.to_string() };
            let mut with: Value = serde_json::from_str(&wished(&body)).expect("json");
            prop_assert_eq!(&with["stream_options"]["include_usage"], &json!(true));
            with["stream_options"] = options;
            prop_assert_eq!(with, serde_json::from_str::<Value>(&body).expect("json"));
        }
    }
}
