//! Requests and replies as they cross the wire: small structs, one deterministic serialisation (P17).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::Value;

use crate::{
    ChatMessage, ChatReply, ChatRequest, MessageRole,
    capabilities::{Capabilities, max_tokens_of},
    parameters::is_sent,
    tokens,
};

/// How a structured reply is asked for, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Format {
    /// `response_format: json_schema`, strict.
    Schema = 0,
    /// `response_format: json_object`.
    JsonMode = 1,
    /// By the prompt alone.
    Plain = 2,
}

impl Format {
    pub(super) const fn simpler(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::JsonMode),
            Self::JsonMode => Some(Self::Plain),
            Self::Plain => None,
        }
    }
}

impl From<u8> for Format {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Schema,
            1 => Self::JsonMode,
            _ => Self::Plain,
        }
    }
}

/// The body of a request: model, messages, parameters by name, the completion limit, the response format.
pub(super) struct WireRequest<'a> {
    pub(super) model: &'a str,
    pub(super) request: &'a ChatRequest,
    pub(super) format: Format,
    /// Names of parameters that the account lets through beside the known ones.
    pub(super) let_through: &'a [String],
}

impl Serialize for WireRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &Messages(&self.request.messages))?;
        let sent = |(name, value): &(&String, &Value)| is_sent(name, value, self.let_through);
        for (name, value) in self.request.params.iter().filter(sent) {
            map.serialize_entry(name, value)?;
        }
        if max_tokens_of(&self.request.params).is_none() {
            map.serialize_entry(Capabilities::for_model(self.model).max_tokens_name, &self.request.max_output_tokens)?;
        }
        if let Some(schema) = &self.request.schema {
            match self.format {
                Format::Schema => {
                    let json_schema = JsonSchema { name: &schema.name, schema: &schema.schema, strict: true };
                    map.serialize_entry(
                        "response_format",
                        &Typed { r#type: "json_schema", json_schema: Some(json_schema) },
                    )?;
                }
                Format::JsonMode => {
                    map.serialize_entry("response_format", &Typed { r#type: "json_object", json_schema: None })?;
                }
                Format::Plain => {}
            }
        }
        map.end()
    }
}

struct Messages<'a>(&'a [ChatMessage]);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|message| Message {
            role: match message.role {
                MessageRole::System => "system",
                MessageRole::User => "user",
            },
            content: &message.text,
        }))
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Typed<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<JsonSchema<'a>>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    schema: &'a Value,
    strict: bool,
}

/// The part of a chat completion that is used. Servers differ in what they leave out or send as null.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Completion {
    #[serde(deserialize_with = "or_default")]
    model: String,
    #[serde(deserialize_with = "or_default")]
    choices: Vec<Choice>,
    usage: Option<WireUsage>,
    service_tier: Option<String>,
    /// A text; what is none is not worth a reply.
    system_fingerprint: Value,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    #[serde(deserialize_with = "or_default")]
    message: Content,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    #[serde(deserialize_with = "words")]
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    #[serde(deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

/// A text, or the texts of a list of parts: models that think answer with their thoughts in parts of their own.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = |part: &Value| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        part.get("text").and_then(Value::as_str).filter(|_| kind == "text" || kind == "output_text").map(str::to_owned)
    };
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(words) => Ok(Some(words)),
        Value::Array(parts) => Ok(Some(parts.iter().filter_map(text).collect())),
        _ => Err(D::Error::custom("content: neither a text nor a list of parts")),
    }
}

/// A number of tokens. What is none, such as -1, is not known: the reply is good all the same.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}

/// Null is the default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Completion {
    /// The reply of the first choice; `None` when there is no choice. A refusal's words are its text.
    pub(super) fn into_reply(self) -> Option<ChatReply> {
        let choice = self.choices.into_iter().next()?;
        let usage = self.usage.unwrap_or_default();
        let refusal = choice.message.refusal.filter(|words| !words.is_empty());
        let finish = if refusal.is_some() {
            "refusal".to_owned()
        } else {
            choice.finish_reason.unwrap_or_else(|| "stop".to_owned())
        };
        Some(ChatReply {
            text: choice.message.content.filter(|text| !text.is_empty()).or(refusal).unwrap_or_default(),
            finish,
            model: self.model,
            fingerprint: self.system_fingerprint.as_str().map(str::to_owned),
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: tokens::with_thoughts(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens),
            cached_prompt_tokens: usage.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
            service_tier: self.service_tier,
            ..ChatReply::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ReplySchema;

    fn request(schema: bool) -> ChatRequest {
        let message = |role, text: &str| ChatMessage { role, text: text.to_owned() };
        ChatRequest {
            messages: vec![message(MessageRole::System, "Be brief."), message(MessageRole::User, "Say \"hi\".")],
            params: serde_json::from_value(json!({"temperature": 0.0, "seed": 7})).expect("an object"),
            schema: schema.then(|| ReplySchema {
                name: "verdict".to_owned(),
                schema: json!({"type": "object", "required": ["ok"], "additionalProperties": false}),
            }),
            max_output_tokens: 64,
        }
    }

    fn body(request: &ChatRequest, model: &str, format: Format) -> String {
        serde_json::to_string(&WireRequest { model, request, format, let_through: &[] }).expect("serialises")
    }

    #[test]
    fn p17_bodies_are_deterministic() {
        insta::assert_snapshot!(
            body(&request(false), "gpt-4o-mini", Format::Schema),
            @r#"{"model":"gpt-4o-mini","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \"hi\"."}],"seed":7,"temperature":0.0,"max_completion_tokens":64}"#
        );
        insta::assert_snapshot!(
            body(&request(true), "llama", Format::Schema),
            @r#"{"model":"llama","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \"hi\"."}],"seed":7,"temperature":0.0,"max_tokens":64,"response_format":{"type":"json_schema","json_schema":{"name":"verdict","schema":{"additionalProperties":false,"required":["ok"],"type":"object"},"strict":true}}}"#
        );
        assert!(
            body(&request(true), "llama", Format::JsonMode).ends_with(r#""response_format":{"type":"json_object"}}"#)
        );
        assert!(body(&request(true), "llama", Format::Plain).ends_with(r#""max_tokens":64}"#));
        let mut named = request(false);
        named.params.insert("max_tokens".to_owned(), json!(99));
        assert!(!body(&named, "gpt-4o", Format::Schema).contains("max_completion_tokens"), "sent as stored");
        assert_eq!(named.output_limit(), 99);
        let mut twice = request(false);
        twice.params.extend([("model".to_owned(), json!("o1-pro")), ("n".to_owned(), json!(128))]);
        assert_eq!(body(&twice, "gpt-4o", Format::Schema), body(&request(false), "gpt-4o", Format::Schema));
        let mut elsewhere = request(false);
        elsewhere.params.insert("api_base".to_owned(), json!("https://evil.example"));
        assert_eq!(body(&elsewhere, "gpt-4o", Format::Schema), body(&request(false), "gpt-4o", Format::Schema));
        let asked = WireRequest {
            model: "m",
            request: &elsewhere,
            format: Format::Schema,
            let_through: &["api_base".to_owned()],
        };
        let sent = serde_json::to_string(&asked).expect("serialises");
        assert!(sent.contains(r#""api_base":"https://evil.example""#), "its operator wants it: {sent}");
    }

    #[test]
    fn replies_of_many_servers_are_read() {
        let read = |value: Value| serde_json::from_value::<Completion>(value).ok().and_then(Completion::into_reply);
        let full = read(
            json!({"id": "x", "model": "m-1", "system_fingerprint": "fp_44", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "refusal": null}, "finish_reason": "stop", "logprobs": null}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0}}}),
        );
        let expected = ChatReply {
            text: "hi".to_owned(),
            finish: "stop".to_owned(),
            model: "m-1".to_owned(),
            fingerprint: Some("fp_44".to_owned()),
            prompt_tokens: Some(9),
            completion_tokens: Some(2),
            cached_prompt_tokens: 4,
            ..ChatReply::default()
        };
        assert_eq!(full, Some(expected));
        let refusal = read(json!({"choices": [{"message": {"content": null, "refusal": "I cannot"}, "finish_reason": "stop"}], "usage": null})).expect("a reply");
        assert_eq!(
            (refusal.text.as_str(), refusal.finish.as_str(), refusal.prompt_tokens),
            ("I cannot", "refusal", None)
        );
        let filtered =
            read(json!({"model": null, "choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}))
                .expect("a reply");
        assert_eq!((filtered.text.as_str(), filtered.finish.as_str()), ("", "content_filter"));
        let bare =
            read(json!({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 1}})).expect("a reply");
        assert_eq!((bare.finish.as_str(), bare.prompt_tokens, bare.completion_tokens), ("stop", Some(1), None));
        let odd =
            json!({"prompt_tokens": -8, "completion_tokens": 1.5, "prompt_tokens_details": {"cached_tokens": -1}});
        let odd = read(json!({"choices": [{"message": {"content": "x"}}], "usage": odd})).expect("a reply");
        assert_eq!((odd.prompt_tokens, odd.completion_tokens, odd.cached_prompt_tokens), (None, None, 0));
        for (total, expected) in [(json!(135), 103), (json!(-1), 9)] {
            let usage = json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total});
            let thought = read(json!({"choices": [{"message": {"content": "x"}}], "usage": usage})).expect("a reply");
            assert_eq!(thought.completion_tokens, Some(expected), "thoughts are in the total alone");
        }
        let thoughts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "well"}]},
            {"type": "text", "text": "it is "}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "so"}]);
        let parts = read(json!({"choices": [{"message": {"content": thoughts}}]})).expect("a reply");
        assert_eq!(parts.text, "it is so");
        assert!(serde_json::from_value::<Completion>(json!({"choices": [{"message": {"content": 7}}]})).is_err());
        assert_eq!(read(json!({"choices": []})), None);
        assert_eq!(read(json!({"choices": null})), None);
    }
}
