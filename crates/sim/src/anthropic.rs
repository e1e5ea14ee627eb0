//! Anthropic's messages API: its requests, replies and errors in their own form, answered by the same rules as chats.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    draw::KeyBuilder,
    error::ApiError,
    reply::{Choice, REFUSAL},
    request::{ChatRequest, Message, ReplyForm, draw, field, model, parameters, positive, range, read_fields},
    wire::{ReplyHead, to_json},
};

/// Text or blocks with texts, as `system` may be.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    Plain(String),
    Blocks(Vec<TextBlock>),
}

#[derive(Deserialize)]
struct TextBlock {
    #[serde(default)]
    text: String,
}

impl Texts {
    fn joined(self) -> String {
        match self {
            Self::Plain(text) => text,
            Self::Blocks(blocks) => blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().concat(),
        }
    }
}

#[derive(Deserialize)]
struct Tool<'a> {
    name: String,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

#[derive(Deserialize)]
struct ToolChoice {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
}

/// A checked request, and the name of the tool that it insists on.
pub(crate) struct MessagesRequest<'a> {
    pub(crate) chat: ChatRequest<'a>,
    pub(crate) tool: Option<String>,
}

impl<'a> MessagesRequest<'a> {
    /// Reads a body; headers are checked as Anthropic does.
    pub(crate) fn parse(headers: &HeaderMap, body: &'a [u8], draw_header: Option<&str>) -> Result<Self, ApiError> {
        let refuse = |param: &str, message: String| ApiError::invalid(None, Some(param), message);
        if !headers.contains_key("anthropic-version") {
            return Err(refuse("anthropic-version", "anthropic-version: header is required".to_owned()));
        }
        let fields = read_fields(body)?;
        let name = model(&fields)?;
        let missing = |param: &str| refuse(param, format!("{param}: Field required"));
        let max_output = positive(&fields, "max_tokens")?.ok_or_else(|| missing("max_tokens"))?;
        range(&fields, "temperature", 1.0)?;
        let stream = field::<bool>(&fields, "stream", "a boolean")?.unwrap_or(false);
        for unknown in ["seed", "max_completion_tokens", "response_format", "logprobs", "frequency_penalty"] {
            if fields.contains_key(unknown) {
                return Err(refuse(unknown, format!("{unknown}: Extra inputs are not permitted")));
            }
        }
        let raw = fields.get("messages").ok_or_else(|| missing("messages"))?;
        let mut messages: Vec<Message<'a>> =
            serde_json::from_str(raw.get()).map_err(|error| refuse("messages", format!("messages: {error}")))?;
        if messages.is_empty() || messages.iter().any(|m| !matches!(m.role.as_ref(), "user" | "assistant")) {
            return Err(refuse("messages", "messages: expected messages of roles user and assistant".to_owned()));
        }
        if let Some(system) = field::<Texts>(&fields, "system", "a text or text blocks")? {
            messages.insert(0, Message { role: "system".into(), text: system.joined().into() });
        }
        let (form, schema_text, tool) = structured(&fields)?;
        let mut key = KeyBuilder::new("messages");
        key.part(name.as_bytes());
        for message in &messages {
            key.part(message.role.as_bytes());
            key.part(message.text.as_bytes());
        }
        parameters(&mut key, &fields, &["model", "messages", "system", "seed", "stream"]);
        key.part(&draw(&fields, draw_header)?.to_le_bytes());
        let writes_cache = fields.contains_key("cache_control");
        let chat = ChatRequest {
            model: name,
            messages,
            form,
            max_output: Some(max_output),
            choices: 1,
            stream,
            include_usage: false,
            schema_text,
            tool: None,
            writes_cache,
            key: key.finish(),
        };
        Ok(Self { chat, tool })
    }
}

type Structured<'a> = (ReplyForm, Option<&'a str>, Option<String>);

/// The schema of the tool that must be used.
fn structured<'a>(fields: &crate::request::Fields<'a>) -> Result<Structured<'a>, ApiError> {
    let choice: Option<ToolChoice> = field(fields, "tool_choice", "an object")?;
    let Some(choice) = choice.filter(|choice| choice.kind == "tool") else { return Ok((ReplyForm::Text, None, None)) };
    let refuse = |message: String| ApiError::invalid(None, Some("tools"), message);
    let raw: &'a RawValue = fields.get("tools").ok_or_else(|| refuse("tools: Field required".to_owned()))?;
    let tools: Vec<Tool<'a>> = serde_json::from_str(raw.get()).map_err(|error| refuse(format!("tools: {error}")))?;
    let tool = tools.into_iter().find(|tool| tool.name == choice.name);
    let tool =
        tool.ok_or_else(|| refuse(format!("tool_choice: Tool '{}' not found in provided tools", choice.name)))?;
    let text = tool.input_schema.get();
    let schema = serde_json::from_str(text).map_err(|error| refuse(format!("tools: input_schema: {error}")))?;
    Ok((ReplyForm::JsonSchema(schema), Some(text), Some(tool.name)))
}

/// A reply in one piece.
pub(crate) fn message_body(head: &ReplyHead<'_>, choice: &Choice, tool: Option<&str>) -> Vec<u8> {
    to_json(&message(head, choice, tool))
}

/// The same reply as a stream of events: what is read is told by the first, what is written by the last but one.
pub(crate) fn message_events(head: &ReplyHead<'_>, choice: &Choice, tool: Option<&str>) -> Vec<Bytes> {
    let whole = message(head, choice, tool);
    let mut events = Vec::new();
    let mut push = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        let mut event = format!("event: {kind}\ndata: ").into_bytes();
        event.extend(to_json(&data));
        event.extend(b"\n\n");
        events.push(Bytes::from(event));
    };
    let mut begun = whole.clone();
    (begun["content"], begun["stop_reason"]) = (json!([]), Value::Null);
    begun["usage"]["output_tokens"] = json!(1);
    push("message_start", json!({"message": begun}));
    for (index, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
        let (mut empty, text) = (block.clone(), choice.content.as_str());
        let is_tool = block["type"] == "tool_use";
        if is_tool {
            empty["input"] = json!({});
        } else {
            empty["text"] = json!("");
        }
        push("content_block_start", json!({"index": index, "content_block": empty}));
        push("ping", json!({}));
        for word in text.split_inclusive(' ') {
            let delta = match is_tool {
                true => json!({"type": "input_json_delta", "partial_json": word}),
                false => json!({"type": "text_delta", "text": word}),
            };
            push("content_block_delta", json!({"index": index, "delta": delta}));
        }
        push("content_block_stop", json!({"index": index}));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    push("message_delta", json!({"delta": delta, "usage": {"output_tokens": head.used.completion}}));
    push("message_stop", json!({}));
    events
}

fn message(head: &ReplyHead<'_>, choice: &Choice, tool: Option<&str>) -> Value {
    let stop_reason = match (choice.finish_reason, tool) {
        ("length", _) => "max_tokens",
        ("content_filter" | REFUSAL, _) => "refusal",
        (_, Some(_)) => "tool_use",
        _ => "end_turn",
    };
    // a tool's input that was cut off is no object any more: it comes as the text that it was
    let input: Option<Value> = serde_json::from_str(&choice.content).ok().filter(Value::is_object);
    let content = match (tool, input) {
        _ if choice.content.is_empty() => json!([]),
        (Some(name), Some(input)) => {
            json!([{"type": "tool_use", "id": format!("toolu_{:024x}", head.key.0 >> 32), "name": name, "input": input}])
        }
        _ => json!([{"type": "text", "text": choice.content}]),
    };
    let used = head.used;
    json!({
        "id": format!("msg_{:032x}", head.key.0),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": used.prompt - used.cached - used.cache_write,
            "cache_creation_input_tokens": used.cache_write,
            "cache_read_input_tokens": used.cached,
            "cache_creation": {"ephemeral_5m_input_tokens": used.cache_write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": used.completion,
            "service_tier": "standard",
        },
    })
}

/// An error in Anthropic's form: `{"type": "error", "error": {"type", "message"}}`.
pub(crate) fn error_response(error: ApiError) -> Response {
    let quota = error.code == Some("insufficient_quota");
    let (status, kind) = match error.status {
        _ if quota => (400, "invalid_request_error"),
        StatusCode::UNAUTHORIZED => (401, "authentication_error"),
        StatusCode::NOT_FOUND => (404, "not_found_error"),
        StatusCode::TOO_MANY_REQUESTS => (429, "rate_limit_error"),
        StatusCode::SERVICE_UNAVAILABLE => (529, "overloaded_error"),
        StatusCode::GATEWAY_TIMEOUT => (504, "timeout_error"),
        status if status.is_server_error() => (status.as_u16(), "api_error"),
        status => (status.as_u16(), "invalid_request_error"),
    };
    let message = match status {
        _ if quota => "Your credit balance is too low to access the Anthropic API.".to_owned(),
        401 => "invalid x-api-key".to_owned(),
        529 => "Overloaded".to_owned(),
        _ => error.message.clone(),
    };
    let body = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(announced) = &error.announced {
        announced.write_anthropic(headers);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(ms) = error.retry_after_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
    }
    response
}
