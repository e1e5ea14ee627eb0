//! What a tool has returned, as paths read it: its structured content, else the JSON of its text, else its texts.

use bench_proto::json_bound::{Counted, TooMuchMemory};
use serde_json::Value;

/// What a tool has returned.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) structured: Option<Value>,
    /// Its text blocks; pictures and sounds are left out.
    pub(super) texts: Vec<String>,
    pub(super) is_error: bool,
}

/// What texts are that are no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// Of what lists hits: each block is an element of the list.
    EachAnElement,
    /// Of everything else: the lines of one text.
    OneText,
}

impl Reply {
    /// The value that is read. Servers of one and the same library put a list of objects into one block or into a block for each.
    ///
    /// # Errors
    /// Blocks that begin as JSON does, and take more than `most` bytes in memory all together.
    pub(super) fn value(self, texts: Texts, most: u64) -> Result<Value, TooMuchMemory> {
        if let Some(structured) = self.structured.filter(|value| !value.is_null()) {
            return Ok(structured);
        }
        let json = self.texts.iter().filter(|text| text.trim_start().starts_with(['{', '[']));
        let needed: u64 = json.map(|text| Counted::whole(text.as_bytes()).memory()).sum();
        if needed > most {
            return Err(TooMuchMemory { needed, most });
        }
        let parsed = |text: &String| {
            serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array())
        };
        Ok(match self.texts.iter().map(parsed).collect::<Option<Vec<Value>>>() {
            Some(mut one) if one.len() == 1 => one.pop().unwrap_or_default(),
            Some(several) if !several.is_empty() => Value::Array(several),
            _ if texts == Texts::EachAnElement => Value::from(self.texts),
            _ if self.texts.is_empty() => Value::Null,
            _ => Value::from(self.texts.join("\n")),
        })
    }

    /// What it says, for messages.
    pub(super) fn said(&self) -> String {
        let text = self.texts.join(" ");
        if text.trim().is_empty() { "no reason given".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bounded(structured: Option<Value>, texts: &[&str], as_what: Texts) -> Result<Value, TooMuchMemory> {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Reply { structured, texts, is_error: false }.value(as_what, 16 << 20)
    }

    fn read(structured: Option<Value>, texts: &[&str], as_what: Texts) -> Value {
        bounded(structured, texts, as_what).expect("fits")
    }

    #[test]
    fn structured_content_goes_before_json_and_json_before_text() {
        for texts in [Texts::EachAnElement, Texts::OneText] {
            assert_eq!(read(Some(json!({"result": []})), &["[1]"], texts), json!({"result": []}));
            assert_eq!(read(Some(Value::Null), &["{\"a\": 1}"], texts), json!({"a": 1}));
            assert_eq!(read(None, &["[{\"a\": 1}]"], texts), json!([{"a": 1}]));
            assert_eq!(read(None, &["{\"a\": 1}", "{\"a\": 2}"], texts), json!([{"a": 1}, {"a": 2}]));
        }
        assert_eq!(
            read(None, &["tea at four", "{\"a\": 1}"], Texts::EachAnElement),
            json!(["tea at four", "{\"a\": 1}"])
        );
        assert_eq!(read(None, &["7"], Texts::EachAnElement), json!(["7"]), "a number is a text like any other");
        assert_eq!(read(None, &[], Texts::EachAnElement), json!([]));
        let bomb = format!("[{}0]", "{\"\":0},".repeat(200_000));
        assert!(bounded(None, &[&bomb], Texts::OneText).is_err(), "what takes too much is refused");
        assert_eq!(
            read(Some(json!([1])), &[&bomb], Texts::OneText),
            json!([1]),
            "and not looked at where it is not read"
        );
        let told = format!("it is {bomb}");
        assert_eq!(read(None, &[&told], Texts::OneText), json!(told), "a text is no JSON");
        let some = format!("[{}0]", "{\"\":0},".repeat(12_000));
        assert!(read(None, &[&some], Texts::EachAnElement)[0].is_object());
        assert!(bounded(None, &[&some, &some], Texts::EachAnElement).is_err(), "blocks count together");
        assert_eq!(read(None, &["7"], Texts::OneText), json!("7"));
        assert_eq!(read(None, &["Tea", "at four"], Texts::OneText), json!("Tea\nat four"));
        assert_eq!(read(None, &[], Texts::OneText), Value::Null);
    }
}
