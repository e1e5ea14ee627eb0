//! Tokens of a request's prompt, counted in one pass over its body: a tree of it would take many times its bytes.
//!
//! Everything counts that a model may be told: texts as they are, and as JSON what is none (tools, schemas, arguments, members that
//! nobody here knows). Left out is what is known to be no part of a prompt: settings of the body, ids and types of messages and their
//! parts where they are short, and the data of pictures, each of which has a number of tokens of its own.

use std::{borrow::Cow, fmt};

use bench_models::{
    members::each_member,
    tokens::{Encoding, TOKENS_PER_MESSAGE, TOKENS_PER_REPLY, TOKENS_PER_SCHEMA},
};
use memchr::memmem;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::address::Operation;

/// A picture of the largest size that providers take without making it smaller.
const PER_PICTURE: u64 = 1_600;

/// Members of a body that hold a prompt: whoever reads one in another spelling has it refused.
pub(super) const READ: [&str; 9] =
    ["functions", "input", "instructions", "messages", "prompt", "response_format", "system", "text", "tools"];

/// Members of a body that are no part of its prompt, whatever they hold. Numbers and switches are none either.
const SETTINGS: [&str; 29] = [
    "context_management",
    "conversation",
    "encoding_format",
    "function_call",
    "include",
    "logit_bias",
    "metadata",
    "modalities",
    "model",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "provider",
    "providerOptions",
    "provider_options",
    "reasoning",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "speed",
    "stop",
    "stop_sequences",
    "stream_options",
    "thinking",
    "tool_choice",
    "truncation",
    "user",
    "verbosity",
];

/// Members whose values a part's type decides about.
const HELD: [&str; 7] = ["audio_url", "file", "image_url", "input_audio", "source", "video", "video_url"];

/// Bytes of an id, a type or the like, with its quotes: what is longer counts, wherever it stands.
const LONGEST_FREE: usize = 96;
/// Bytes of the longest name of a member that an API has: longer ones are texts.
const LONGEST_NAME: usize = 32;
/// Parts within parts that are looked into; what is deeper counts as text.
const DEEPEST: u8 = 3;

/// Ends and begins of the names and types of pictures and files, and letters written as escapes: a body without them has neither.
const ATTACHING: [&[u8]; 12] = [
    b"image\"",
    b"_url\"",
    b"file\"",
    b"\"document\"",
    b"\"file_",
    b"source\"",
    b"audio\"",
    b"video\"",
    b"\\u004",
    b"\\u005",
    b"\\u006",
    b"\\u007",
];

/// A prompt, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Its tokens, or their upper bound.
    pub(super) tokens: u64,
    /// It has a file or document that lies elsewhere, or may have one: nobody knows its size.
    pub(super) is_elsewhere: bool,
    /// What stands in the place of a picture is none: a sound or a video has another number of tokens.
    pub(super) is_no_picture: bool,
}

/// Tokens of a request's prompt, or their upper bound. A body that cannot be read has as many as bytes.
pub(super) fn count(operation: Operation, encoding: Encoding, body: &[u8]) -> Counted {
    let unread = Counted { tokens: body.len() as u64, is_elsewhere: true, is_no_picture: false };
    if operation == Operation::Models {
        return Counted::default();
    }
    let counted = walk(operation, encoding, body);
    // half of a letter, as systems leave it that cut texts by UTF-16: some readers take it, ours does not
    let counted = counted.or_else(|| walk(operation, encoding, &without_surrogates(body)?));
    counted.unwrap_or(unread)
}

/// What a body holds beside its texts, and how many tokens it has at most; `None` where it can hold nothing of the kind.
pub(super) fn attached(operation: Operation, body: &[u8]) -> Option<Counted> {
    let attaches = ATTACHING.iter().any(|word| memmem::find(body, word).is_some());
    attaches.then(|| count(operation, Encoding::Bytes, body))
}

fn walk(operation: Operation, encoding: Encoding, body: &[u8]) -> Option<Counted> {
    let mut tally = Tally { encoding, counted: Counted::default() };
    let mut json = serde_json::Deserializer::from_slice(body);
    json.deserialize_map(OfBody(&mut tally)).and_then(|()| json.end()).ok()?;
    let primed = match operation {
        Operation::Chat | Operation::Responses | Operation::Messages | Operation::CountTokens => TOKENS_PER_REPLY,
        Operation::Completions | Operation::Embeddings | Operation::Models => 0,
    };
    tally.add(primed);
    Some(tally.counted)
}

/// With a whole letter in the place of each half that is written as an escape.
fn without_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = body.to_vec();
    let halves: Vec<usize> = memmem::find_iter(body, b"\\u")
        .filter(|at| {
            let digits = body.get(at + 2..at + 4).unwrap_or_default();
            matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])
        })
        .collect();
    for at in &halves {
        whole.get_mut(at + 2..at + 6)?.copy_from_slice(b"fffd");
    }
    (!halves.is_empty()).then_some(whole)
}

/// JSON without the white space and the escapes that its writer chose.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(begin) = rest.find('"') {
        out.extend(rest[..begin].chars().filter(|c| !c.is_ascii_whitespace()));
        let mut is_escaped = false;
        let end = rest.bytes().enumerate().skip(begin + 1).find_map(|(at, byte)| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends.then_some(at + 1)
        });
        let (text, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let text = &text[begin..];
        let plain = text.contains("\\u").then(|| serde_json::from_str::<String>(text).ok()).flatten();
        match plain.and_then(|plain| serde_json::to_string(&plain).ok()) {
            Some(plain) => out.push_str(&plain),
            None => out.push_str(text),
        }
        rest = behind;
    }
    out.extend(rest.chars().filter(|c| !c.is_ascii_whitespace()));
    out
}

/// The begin of a text, where it is one: the data of a picture has megabytes, and its first words tell what it is. A text with an escape
/// there is read in full.
fn begin_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get().strip_prefix('"')?;
    let end = (0..=LONGEST_NAME.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
    let begin = text.get(..end)?;
    if begin.contains('\\') {
        return text_of(raw).map(Cow::Owned);
    }
    // the text may end there
    begin.split('"').next().map(Cow::Borrowed)
}

/// A text, where it is one.
fn text_of(raw: &RawValue) -> Option<String> {
    raw.get().starts_with('"').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// What is counted so far.
struct Tally {
    encoding: Encoding,
    counted: Counted,
}

impl Tally {
    const fn add(&mut self, tokens: u64) {
        self.counted.tokens = self.counted.tokens.saturating_add(tokens);
    }

    fn text(&mut self, text: &str) {
        self.add(self.encoding.count(text));
    }

    /// A text as it is, and what is none as JSON.
    fn value(&mut self, raw: &RawValue) {
        match (text_of(raw), raw.get()) {
            (Some(text), _) => self.text(&text),
            (None, "null" | "true" | "false") => {}
            (None, json) => self.text(&compact(json)),
        }
    }

    /// A picture's data and what stands beside it.
    fn picture(&mut self, raw: &RawValue) {
        self.counted.is_no_picture |= !is_picture(raw);
        if raw.get().starts_with('"') {
            return;
        }
        let members = each_member(raw.get().as_bytes(), |name, value| {
            let is_data = matches!(name, "data" | "url") && value.get().starts_with('"');
            let is_said = matches!(name, "detail" | "file_id" | "media_type" | "type");
            let is_free = is_data || (is_said && value.get().len() <= LONGEST_FREE);
            if !is_free {
                self.text(name);
                self.value(value);
            }
        });
        if members.is_err() {
            self.value(raw);
        }
    }

    /// A value that may hold parts of its own.
    fn within(&mut self, raw: &RawValue, depth: u8) {
        if depth >= DEEPEST || !raw.get().starts_with(['{', '[']) {
            return self.value(raw);
        }
        let mut json = serde_json::Deserializer::from_str(raw.get());
        if (Frames { tally: &mut *self, depth: depth + 1 }).deserialize(&mut json).is_err() {
            self.value(raw);
        }
    }
}

/// Visits the members of a body.
struct OfBody<'t>(&'t mut Tally);

impl<'de> Visitor<'de> for OfBody<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self(tally) = self;
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "input" | "instructions" | "messages" | "prompt" | "suffix" | "system" => {
                    members.next_value_seed(Frames { tally: &mut *tally, depth: 0 })?;
                }
                name if SETTINGS.contains(&name) => {
                    let _: IgnoredAny = members.next_value()?;
                }
                name => {
                    let value: &'de RawValue = members.next_value()?;
                    let says = value.get().starts_with(['"', '[', '{']);
                    match name {
                        // a kind of format alone is no schema
                        "response_format" | "text" if value.get().len() <= LONGEST_FREE => {}
                        "functions" | "response_format" | "text" | "tools" if says => {
                            tally.add(TOKENS_PER_SCHEMA);
                            tally.value(value);
                        }
                        _ if says => tally.value(value),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// Visits what is said to a model: a text, one that is tokens already, a message or a part, lists of them.
struct Frames<'t> {
    tally: &'t mut Tally,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Frames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Frames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is said to a model")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.tally.text(text);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.tally.add(1);
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.tally.add(1);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.tally.add(1);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        while parts.next_element_seed(Frames { tally: &mut *self.tally, depth: self.depth })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { tally, depth } = self;
        let mut frame = Frame::default();
        while let Some(mut name) = members.next_key::<String>()? {
            if name.len() > LONGEST_NAME {
                tally.text(&name);
            }
            // some readers make no difference
            name.make_ascii_lowercase();
            if matches!(name.as_str(), "content" | "output" | "summary" | "tool_calls") {
                members.next_value_seed(Frames { tally: &mut *tally, depth })?;
            } else {
                frame.take(&name, members.next_value()?, tally);
            }
        }
        frame.settle(tally, depth);
        Ok(())
    }
}

/// A message, or a part of one, while its members come: its type may come last.
#[derive(Default)]
struct Frame<'a> {
    /// Its type, where it is said once.
    kind: Option<String>,
    types: u32,
    has_role: bool,
    /// It names a file that the provider keeps, or that lies at a URL.
    names_a_file: bool,
    held: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Frame<'a> {
    fn take(&mut self, name: &str, value: &'a RawValue, tally: &mut Tally) {
        if let Some(held) = HELD.iter().copied().find(|held| *held == name) {
            // one that stands twice is no picture's data
            match self.held.iter().any(|(before, _)| *before == held) {
                true => {
                    self.names_a_file |= is_elsewhere(held, value);
                    tally.value(value);
                }
                false => self.held.push((held, value)),
            }
            return;
        }
        let is_short = value.get().len() <= LONGEST_FREE;
        match name {
            "type" => {
                self.types += 1;
                self.kind = text_of(value).filter(|_| is_short);
            }
            "role" => self.has_role = true,
            "file_id" | "file_url" => self.names_a_file |= value.get() != "null",
            "file_data" => self.names_a_file |= text_of(value).is_some_and(|text| is_url(&text)),
            _ => {}
        }
        let is_free = matches!(
            name,
            "cache_control" | "call_id" | "detail" | "file_id" | "file_url" | "id" | "index" | "role" | "type"
        );
        if !(is_free && is_short) {
            tally.value(value);
        }
    }

    fn settle(self, tally: &mut Tally, depth: u8) {
        if self.has_role {
            tally.add(TOKENS_PER_MESSAGE);
        }
        let kind = self.kind.as_deref().filter(|_| self.types == 1);
        let data = match kind {
            Some("image_url" | "input_image" | "computer_screenshot") => Some("image_url"),
            Some("image") => Some("source"),
            _ => None,
        };
        // some servers go by this member alone
        if data.is_some() || self.held.iter().any(|(name, _)| *name == "image_url") {
            tally.add(PER_PICTURE);
        }
        tally.counted.is_elsewhere |= self.names_a_file && data.is_none();
        for (name, value) in self.held {
            if data == Some(name) {
                tally.picture(value);
            } else {
                tally.counted.is_no_picture |= name == "image_url" && !is_picture(value);
                tally.counted.is_elsewhere |= is_elsewhere(name, value);
                tally.within(value, depth);
            }
        }
    }
}

/// Whether a member of a part, which is no picture's data, leads to a file that is not in the body.
fn is_elsewhere(name: &str, value: &RawValue) -> bool {
    let is_away = |text: &str| !text.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("data:"));
    if name == "image_url" {
        return false;
    }
    // the source of a result of a search is a label
    if let Some(text) = text_of(value) {
        return name != "source" && is_away(&text);
    }
    let (mut found, mut has_url_as_data) = (false, false);
    // the data of a source of this type, and of no other one beside it, is the text itself
    let (mut says_text, mut says_another) = (false, name != "source");
    let members = each_member(value.get().as_bytes(), |name, value| {
        let text = || text_of(value);
        match name.to_ascii_lowercase().as_str() {
            "url" | "file_url" | "file_id" => {
                found |= value.get() != "null" && text().is_none_or(|text| is_away(&text));
            }
            "type" => {
                let kind = text();
                found |= matches!(kind.as_deref(), Some("file" | "url"));
                let is_text = kind.as_deref() == Some("text");
                (says_text, says_another) = (says_text || is_text, says_another || !is_text);
            }
            "data" => has_url_as_data |= text().is_some_and(|text| is_url(&text)),
            "file_data" => found |= text().is_some_and(|text| is_url(&text)),
            _ => {}
        }
    });
    found |= has_url_as_data && (says_another || !says_text);
    found || (members.is_err() && value.get().starts_with('['))
}

/// Whether what stands in the place of a picture can be one: its data, said to be of a picture, or an address on the web.
fn is_picture(value: &RawValue) -> bool {
    if let Some(begin) = begin_of(value) {
        return is_picture_at(&begin);
    }
    let mut is_one = true;
    let members = each_member(value.get().as_bytes(), |name, value| {
        let begin = begin_of(value);
        let is_said = |holds: fn(&str) -> bool| begin.as_deref().map_or(value.get() == "null", holds);
        is_one &= match name.to_ascii_lowercase().as_str() {
            "url" => is_said(is_picture_at),
            // without a scheme it is base64, of the type that stands beside it
            "data" => is_said(|data| !data.get(..LONGEST_NAME).unwrap_or(data).contains(':') || is_picture_at(data)),
            "format" | "media_type" | "mime_type" | "mimetype" => is_said(is_picture_type),
            _ => true,
        };
    });
    value.get() == "null" || (members.is_ok() && is_one)
}

/// Whether an address is that of a picture's data, or one on the web.
fn is_picture_at(address: &str) -> bool {
    let begins = |with: &str| address.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    ["data:image/", "http://", "https://"].into_iter().any(begins)
}

/// Whether a type of data is one of pictures.
fn is_picture_type(kind: &str) -> bool {
    matches!(kind, "gif" | "jpeg" | "jpg" | "png" | "webp") || kind.starts_with("image/")
}

/// Whether a text in the place of data is the address of it.
fn is_url(text: &str) -> bool {
    text.chars().take(LONGEST_NAME).collect::<String>().contains("://")
}

#[cfg(test)]
mod tests;
