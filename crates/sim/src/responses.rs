//! OpenAI's responses API: its requests and replies in their own form, answered by the same rules as chats. Tools are not called.

use std::borrow::Cow;

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    draw::KeyBuilder,
    error::ApiError,
    reply::{Choice, REFUSAL},
    request::{ChatRequest, Fields, Message, ReplyForm, draw, field, model, parameters, positive, range, read_fields},
    wire::{CREATED, ReplyHead, to_json},
};

/// What is asked: a text of the user, or messages.
#[derive(Deserialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(String),
    Messages(#[serde(borrow)] Vec<Message<'a>>),
}

#[derive(Deserialize)]
struct TextSettings<'a> {
    #[serde(borrow)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

/// Reads a body; see [`ChatRequest::parse`].
pub(crate) fn parse<'a>(body: &'a [u8], draw_header: Option<&str>) -> Result<ChatRequest<'a>, ApiError> {
    let fields = read_fields(body)?;
    let name = model(&fields)?;
    let raw: &'a RawValue = fields.get("input").ok_or_else(|| ApiError::missing("input"))?;
    let input: Input<'a> = serde_json::from_str(raw.get())
        .map_err(|_| ApiError::wrong_type("input", "a string or an array of messages with role and content"))?;
    let mut messages = match input {
        Input::Text(text) => vec![Message { role: "user".into(), text: text.into() }],
        Input::Messages(messages) => messages,
    };
    if messages.is_empty() {
        return Err(ApiError::invalid(Some("empty_array"), Some("input"), "Invalid 'input': empty array."));
    }
    if let Some(told) = field::<String>(&fields, "instructions", "a string")? {
        messages.insert(0, Message { role: "system".into(), text: told.into() });
    }
    range(&fields, "temperature", 2.0)?;
    range(&fields, "top_p", 1.0)?;
    let max_output = positive(&fields, "max_output_tokens")?;
    let stream = field(&fields, "stream", "a boolean")?.unwrap_or(false);
    let (form, schema_text) = reply_form(&fields)?;
    let mut key = KeyBuilder::new("responses");
    key.part(name.as_bytes());
    for message in &messages {
        key.part(message.role.as_bytes());
        key.part(message.text.as_bytes());
    }
    parameters(&mut key, &fields, &["model", "input", "instructions", "stream", "stream_options", "seed"]);
    key.part(&draw(&fields, draw_header)?.to_le_bytes());
    Ok(ChatRequest {
        model: name,
        messages,
        form,
        max_output,
        choices: 1,
        stream,
        include_usage: false,
        schema_text,
        tool: None,
        writes_cache: false,
        key: key.finish(),
    })
}

/// The form that `text.format` asks for, and its schema as it stands in the body.
fn reply_form<'a>(fields: &Fields<'a>) -> Result<(ReplyForm, Option<&'a str>), ApiError> {
    let plain = (ReplyForm::Text, None);
    let Some(raw) = fields.get("text") else { return Ok(plain) };
    let raw: &'a RawValue = raw;
    let settings: Option<TextSettings<'a>> =
        serde_json::from_str(raw.get()).map_err(|_| ApiError::wrong_type("text", "an object"))?;
    let Some(format) = settings.and_then(|settings| settings.format) else { return Ok(plain) };
    match (format.kind.as_ref(), format.schema) {
        ("text", _) => Ok(plain),
        ("json_object", _) => Ok((ReplyForm::JsonObject, None)),
        ("json_schema", Some(schema)) => {
            let text = schema.get();
            let schema = serde_json::from_str(text).map_err(|error| {
                let message = format!("Invalid 'text.format.schema': {error}");
                ApiError::invalid(None, Some("text.format.schema"), message)
            })?;
            Ok((ReplyForm::JsonSchema(schema), Some(text)))
        }
        ("json_schema", None) => Err(ApiError::missing("text.format.schema")),
        (other, _) => {
            let message =
                format!("Invalid value: '{other}'. Supported values are: 'json_object', 'json_schema', and 'text'.");
            Err(ApiError::invalid(Some("invalid_value"), Some("text.format.type"), message))
        }
    }
}

/// A reply in one piece.
pub(crate) fn response_body(head: &ReplyHead<'_>, choice: &Choice) -> Vec<u8> {
    to_json(&response(head, choice))
}

/// The same reply as a stream of events: the last one has all of it, with its usage.
pub(crate) fn response_events(head: &ReplyHead<'_>, choice: &Choice) -> Vec<Bytes> {
    let whole = response(head, choice);
    let mut begun = whole.clone();
    (begun["status"], begun["output"]) = (json!("in_progress"), json!([]));
    (begun["usage"], begun["incomplete_details"]) = (Value::Null, Value::Null);
    let (item, part) = (whole["output"][0].clone(), whole["output"][0]["content"][0].clone());
    let mut empty_item = item.clone();
    (empty_item["status"], empty_item["content"]) = (json!("in_progress"), json!([]));
    let (kind, member) = if choice.finish_reason == REFUSAL { ("refusal", "refusal") } else { ("output_text", "text") };
    let mut empty_part = part.clone();
    empty_part[member] = json!("");

    let mut events = Vec::new();
    let mut push = |kind: &str, mut data: Value| {
        (data["type"], data["sequence_number"]) = (json!(kind), json!(events.len()));
        let mut event = format!("event: {kind}\ndata: ").into_bytes();
        event.extend(to_json(&data));
        event.extend(b"\n\n");
        events.push(Bytes::from(event));
    };
    push("response.created", json!({"response": begun}));
    push("response.in_progress", json!({"response": begun}));
    push("response.output_item.added", json!({"output_index": 0, "item": empty_item}));
    let place = json!({"item_id": item["id"], "output_index": 0, "content_index": 0});
    let placed = |member: &str, value: Value| {
        let mut data = place.clone();
        data[member] = value;
        data
    };
    push("response.content_part.added", placed("part", empty_part));
    for word in choice.content.split_inclusive(' ') {
        push(&format!("response.{kind}.delta"), placed("delta", json!(word)));
    }
    push(&format!("response.{kind}.done"), placed(member, json!(choice.content)));
    push("response.content_part.done", placed("part", part));
    push("response.output_item.done", json!({"output_index": 0, "item": item}));
    let end = if whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    push(end, json!({"response": whole}));
    events
}

fn response(head: &ReplyHead<'_>, choice: &Choice) -> Value {
    let cut_by = match choice.finish_reason {
        "length" => Some("max_output_tokens"),
        "content_filter" => Some("content_filter"),
        _ => None,
    };
    let status = if cut_by.is_some() { "incomplete" } else { "completed" };
    let part = if choice.finish_reason == REFUSAL {
        json!({"type": "refusal", "refusal": choice.content})
    } else {
        json!({"type": "output_text", "text": choice.content, "annotations": [], "logprobs": []})
    };
    let (used, id) = (head.used, head.key.0);
    json!({
        "id": format!("resp_{id:032x}"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": cut_by.map(|reason| json!({"reason": reason})),
        "instructions": null,
        "metadata": {},
        "model": head.model,
        "output": [{
            "id": format!("msg_{id:032x}"), "type": "message", "status": status, "role": "assistant", "content": [part],
        }],
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": used.prompt,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.prompt + used.completion,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_model_messages_parameters_and_draw() {
        let key = |body: &str, draw: Option<&str>| parse(body.as_bytes(), draw).expect("a good request").key;
        let base = r#"{"model":"m","input":"hi","temperature":0}"#;
        for same in [
            r#"{"temperature":0,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"model":"m"}"#,
            r#"{"model":"m","input":"hi","temperature":0,"stream":true,"stream_options":{"include_obfuscation":false},"store":false,"text":null}"#,
        ] {
            assert_eq!(key(base, None), key(same, None), "{same}");
        }
        for other in [
            r#"{"model":"m","input":"hi","temperature":1}"#,
            r#"{"model":"m","input":"hi","temperature":0,"instructions":"be brief"}"#,
        ] {
            assert_ne!(key(base, None), key(other, None), "{other}");
        }
        assert_ne!(key(base, None), key(base, Some("1")));
    }

    #[test]
    fn malformed_requests_name_the_parameter() {
        for (body, param) in [
            (r#"{"model":"m"}"#, "input"),
            (r#"{"model":"m","input":[]}"#, "input"),
            (r#"{"model":"m","input":[{"content":"x"}]}"#, "input"),
            (r#"{"model":"m","input":"x","max_output_tokens":0}"#, "max_output_tokens"),
            (r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}"#, "text.format.schema"),
            (r#"{"model":"m","input":"x","text":{"format":{"type":"xml"}}}"#, "text.format.type"),
        ] {
            let error = parse(body.as_bytes(), None).expect_err(body);
            assert_eq!((error.status.as_u16(), error.param.as_deref()), (400, Some(param)), "{body}");
        }
    }
}
