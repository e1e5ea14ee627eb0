//! Requests and replies as they cross the wire: one deterministic serialisation (P17).

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::{
    ChatReply, ChatRequest, MessageRole,
    capabilities::{max_tokens_of, takes_forced_tools},
    parameters::is_sent,
};

/// The body of a request.
pub(super) struct WireRequest<'a> {
    pub(super) model: &'a str,
    pub(super) request: &'a ChatRequest,
    /// Names of parameters that the account lets through beside the known ones.
    pub(super) let_through: &'a [String],
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'static str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct ToolChoice<'a> {
    r#type: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

impl Serialize for WireRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, request, let_through } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", model)?;
        let texts = |role: MessageRole| request.messages.iter().filter(move |message| message.role == role);
        let system: Vec<&str> = texts(MessageRole::System).map(|message| message.text.as_str()).collect();
        if !system.is_empty() {
            map.serialize_entry("system", &system.join("\n\n"))?;
        }
        let messages: Vec<WireMessage<'_>> =
            texts(MessageRole::User).map(|message| WireMessage { role: "user", content: &message.text }).collect();
        map.serialize_entry("messages", &messages)?;
        for (name, value) in request.params.iter().filter(|(name, value)| is_sent(name, value, let_through)) {
            map.serialize_entry(name, value)?;
        }
        if max_tokens_of(&request.params).is_none() {
            map.serialize_entry("max_tokens", &request.max_output_tokens)?;
        }
        if let Some(schema) = request.schema.as_ref().filter(|_| !takes_forced_tools(model)) {
            let format = TextFormat { r#type: "json_schema", schema: &schema.schema };
            map.serialize_entry("output_config", &OutputConfig { format })?;
        } else if let Some(schema) = &request.schema {
            let description = "Gives the reply in the form that was asked for.";
            map.serialize_entry("tools", &[Tool { name: &schema.name, description, input_schema: &schema.schema }])?;
            map.serialize_entry("tool_choice", &ToolChoice { r#type: "tool", name: &schema.name })?;
        }
        map.end()
    }
}

/// The part of a message that is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    r#type: String,
    model: String,
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        input: Value,
    },
    /// Thinking, and whatever comes later.
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    output_tokens: u64,
    service_tier: Option<String>,
    /// The calls that were made for the reply, where it took more than one: what stands above leaves out those that summed up what was
    /// said before.
    iterations: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: u64,
}

impl Usage {
    /// Tokens of a kind, by where a call tells them: of all calls, where they are told and come to more than what stands above.
    fn of_all(&self, at: &str, above: u64) -> u64 {
        let told = self.iterations.as_array().into_iter().flatten().filter_map(|call| call.pointer(at)?.as_u64());
        told.fold(0, u64::saturating_add).max(above)
    }

    fn written(&self) -> u64 {
        self.of_all("/cache_creation_input_tokens", self.cache_creation_input_tokens.unwrap_or(0))
    }

    fn written_1h(&self) -> u64 {
        let above = self.cache_creation.as_ref().map_or(0, |written| written.ephemeral_1h_input_tokens);
        self.of_all("/cache_creation/ephemeral_1h_input_tokens", above).min(self.written())
    }

    fn read(&self) -> u64 {
        self.of_all("/cache_read_input_tokens", self.cache_read_input_tokens.unwrap_or(0))
    }

    fn prompt(&self) -> u64 {
        self.of_all("/input_tokens", self.input_tokens).saturating_add(self.written()).saturating_add(self.read())
    }

    fn completion(&self) -> u64 {
        self.of_all("/output_tokens", self.output_tokens)
    }
}

impl Message {
    /// The reply; `None` when this is no message.
    pub(super) fn into_reply(self) -> Option<ChatReply> {
        if self.r#type != "message" {
            return None;
        }
        let mut text = String::new();
        for block in &self.content {
            match block {
                Block::Text { text: part } => text.push_str(part),
                Block::ToolUse { input } => text.push_str(&input.to_string()),
                Block::Other => {}
            }
        }
        let finish = match self.stop_reason.as_deref() {
            None | Some("end_turn" | "stop_sequence" | "tool_use") => "stop",
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some(other) => other,
        };
        let usage = self.usage;
        Some(ChatReply {
            text,
            finish: finish.to_owned(),
            prompt_tokens: usage.as_ref().map(Usage::prompt),
            completion_tokens: usage.as_ref().map(Usage::completion),
            cached_prompt_tokens: usage.as_ref().map_or(0, Usage::read),
            cache_write_tokens: usage.as_ref().map_or(0, |usage| usage.written() - usage.written_1h()),
            cache_write_1h_tokens: usage.as_ref().map_or(0, Usage::written_1h),
            service_tier: usage.and_then(|usage| usage.service_tier),
            model: self.model,
            fingerprint: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ChatMessage, ReplySchema};

    #[test]
    fn golden_request() {
        let message = |role, text: &str| ChatMessage { role, text: text.to_owned() };
        let request = ChatRequest {
            messages: vec![message(MessageRole::System, "Be brief."), message(MessageRole::User, "Say \"hi\".")],
            params: serde_json::from_value(json!({"temperature": 0.0, "model": "dear", "tools": [], "container": "c"}))
                .expect("an object"),
            schema: Some(ReplySchema { name: "verdict".to_owned(), schema: json!({"type": "object"}) }),
            max_output_tokens: 64,
        };
        let body = serde_json::to_string(&WireRequest { model: "claude-x", request: &request, let_through: &[] })
            .expect("serialises");
        insta::assert_snapshot!(body, @r#"{"model":"claude-x","system":"Be brief.","messages":[{"role":"user","content":"Say \"hi\"."}],"temperature":0.0,"max_tokens":64,"tools":[{"name":"verdict","description":"Gives the reply in the form that was asked for.","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"verdict"}}"#);
        let body =
            serde_json::to_string(&WireRequest { model: "claude-opus-5-5", request: &request, let_through: &[] })
                .expect("serialises");
        assert!(
            body.ends_with(
                r#""max_tokens":64,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#
            ),
            "{body}"
        );
    }

    fn read(value: Value) -> Option<ChatReply> {
        serde_json::from_value::<Message>(value).expect("readable").into_reply()
    }

    #[test]
    fn replies_are_read_with_all_kinds_of_prompt_tokens() {
        let reply = read(json!({
            "type": "message", "role": "assistant", "model": "claude-x-20250101", "stop_reason": "tool_use",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "So: "}, {"type": "tool_use", "id": "t", "name": "v", "input": {"correct": true}}],
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 3,
                "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 2}, "service_tier": "standard"},
        }))
        .expect("a reply");
        assert_eq!((reply.text.as_str(), reply.finish.as_str()), ("So: {\"correct\":true}", "stop"));
        assert_eq!((reply.prompt_tokens, reply.completion_tokens), (Some(22), Some(3)));
        let cache = (reply.cached_prompt_tokens, reply.cache_write_tokens, reply.cache_write_1h_tokens);
        assert_eq!(cache, (5, 5, 2));
        assert_eq!(reply.service_tier.as_deref(), Some("standard"));
    }

    #[test]
    fn the_use_of_a_reply_that_took_several_calls_is_that_of_all() {
        let used = |iterations: Value| {
            let usage =
                json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3, "iterations": iterations});
            let reply = read(json!({"type": "message", "content": [], "usage": usage})).expect("a reply");
            (reply.prompt_tokens, reply.completion_tokens, reply.cached_prompt_tokens, reply.cache_write_tokens)
        };
        let summed_up = json!({"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500, "cache_creation_input_tokens": 7});
        let last = json!({"type": "message", "input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5});
        assert_eq!(used(json!([summed_up, last])), (Some(180_022), Some(3_503), 5, 7));
        for nothing in [json!(null), json!([]), json!([last]), json!([7, {"input_tokens": -1}]), json!("none")] {
            assert_eq!(used(nothing.clone()), (Some(15), Some(3), 5, 0), "{nothing}");
        }
        let for_an_hour = json!({"cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 8}});
        let usage = json!({"input_tokens": 10, "output_tokens": 3, "iterations": [for_an_hour, for_an_hour]});
        let reply = read(json!({"type": "message", "content": [], "usage": usage})).expect("a reply");
        assert_eq!((reply.cache_write_tokens, reply.cache_write_1h_tokens), (2, 16));
    }

    #[test]
    fn ends_have_one_name_for_all_providers() {
        for (stop_reason, finish) in [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("refusal", "refusal"),
        ] {
            let reply = read(json!({"type": "message", "content": [], "stop_reason": stop_reason})).expect("a reply");
            assert_eq!((reply.finish.as_str(), reply.prompt_tokens), (finish, None), "{stop_reason}");
        }
        assert_eq!(read(json!({"type": "error", "error": {"type": "api_error"}})), None);
    }
}
