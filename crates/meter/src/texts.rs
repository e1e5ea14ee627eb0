//! Tokens counted here, of requests and replies whose provider tells none: the texts in their JSON, wherever each operation has them.

use bench_models::tokens::Encoding;
use serde_json::Value;

use crate::address::Operation;

/// Tokens around each message of a chat: its role and separators (OpenAI's published recipe).
const PER_MESSAGE: u64 = 4;
/// Tokens that prime the reply.
const PER_REPLY: u64 = 3;
/// What is put around a schema or tools.
const PER_SCHEMA: u64 = 32;
/// A picture of the largest size that providers take without making it smaller.
const PER_PICTURE: u64 = 1_600;

/// Members of a request that [`prompt_tokens`] reads.
pub(crate) const READ: [&str; 8] =
    ["input", "instructions", "messages", "prompt", "response_format", "system", "text", "tools"];

/// Tokens of a request's prompt, or their upper bound. A body that cannot be read has as many as bytes.
pub(crate) fn prompt_tokens(operation: Operation, encoding: Encoding, body: &[u8]) -> u64 {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return body.len() as u64 };
    let field = |name: &str| {
        // whoever reads another member has it refused in other spellings too
        debug_assert!(READ.contains(&name), "{name} is read and not listed");
        fields.get(name)
    };
    let of = |name: &str| field(name).map_or(0, |value| spoken(encoding, value));
    let described = |name: &str| match field(name) {
        None | Some(Value::Null) => 0,
        Some(value) => PER_SCHEMA + encoding.count(&value.to_string()),
    };
    let schema = |pointer: [&str; 2]| {
        let format = field(pointer[0]).and_then(|value| value.get(pointer[1]));
        format.map_or(0, |schema| PER_SCHEMA + encoding.count(&schema.get("schema").unwrap_or(schema).to_string()))
    };
    match operation {
        Operation::Chat => of("messages") + described("tools") + schema(["response_format", "json_schema"]) + PER_REPLY,
        Operation::Responses => {
            of("instructions") + of("input") + described("tools") + schema(["text", "format"]) + PER_REPLY
        }
        Operation::Messages | Operation::CountTokens => of("system") + of("messages") + described("tools") + PER_REPLY,
        Operation::Completions => of("prompt"),
        Operation::Embeddings => of("input"),
        Operation::Models => 0,
    }
}

/// Tokens of what is said in a value: texts, lists of texts or of tokens, messages, their parts.
fn spoken(encoding: Encoding, value: &Value) -> u64 {
    match value {
        Value::String(text) => encoding.count(text),
        // a prompt may be tokens already
        Value::Number(_) => 1,
        Value::Array(parts) => parts.iter().map(|part| spoken(encoding, part)).sum(),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            if kind.contains("image") {
                return PER_PICTURE;
            }
            let frame = if part.contains_key("role") { PER_MESSAGE } else { 0 };
            let named = ["role", "type", "id", "call_id", "cache_control", "index"];
            frame
                + part
                    .iter()
                    .filter(|(name, _)| !named.contains(&name.as_str()))
                    .map(|(_, value)| spoken(encoding, value))
                    .sum::<u64>()
        }
        Value::Null | Value::Bool(_) => 0,
    }
}

/// The text of a whole reply, thoughts and arguments of tools included.
pub(crate) fn reply_text(operation: Operation, body: &[u8]) -> String {
    let Ok(Value::Object(reply)) = serde_json::from_slice(body) else { return String::new() };
    let part = match operation {
        Operation::Chat | Operation::Completions => "choices",
        Operation::Responses => "output",
        Operation::Messages => "content",
        Operation::Embeddings | Operation::Models | Operation::CountTokens => return String::new(),
    };
    let mut text = String::new();
    if let Some(value) = reply.get(part) {
        said(value, &mut text);
    }
    text
}

/// Adds what a part of a reply, or of an event, says.
pub(crate) fn said(value: &Value, text: &mut String) {
    const SAYING: [&str; 9] =
        ["content", "text", "refusal", "reasoning_content", "thinking", "arguments", "partial_json", "delta", "name"];
    const HOLDING: [&str; 5] = ["message", "tool_calls", "function", "function_call", "summary"];
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| said(part, text)),
        Value::Object(part) => {
            for (name, value) in part {
                match value {
                    Value::String(words) if SAYING.contains(&name.as_str()) => text.push_str(words),
                    Value::Object(_) | Value::Array(_) if name == "input" => text.push_str(&value.to_string()),
                    Value::Object(_) | Value::Array(_)
                        if SAYING.contains(&name.as_str()) || HOLDING.contains(&name.as_str()) =>
                    {
                        said(value, text);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt(operation: Operation, body: &Value) -> u64 {
        prompt_tokens(operation, Encoding::O200k, body.to_string().as_bytes())
    }

    #[test]
    fn prompts_of_all_operations_are_counted() {
        let hello = Encoding::O200k.count("hello world");
        let message = json!({"role": "user", "content": "hello world"});
        let parts = json!({"role": "user", "content": [{"type": "text", "text": "hello world"}]});
        for message in [message.clone(), parts] {
            assert_eq!(prompt(Operation::Chat, &json!({"messages": [message, message]})), 2 * (hello + 4) + 3);
        }
        assert_eq!(prompt(Operation::Responses, &json!({"input": "hello world"})), hello + 3);
        assert_eq!(
            prompt(Operation::Responses, &json!({"instructions": "hello world", "input": [message]})),
            2 * hello + 7
        );
        assert_eq!(
            prompt(
                Operation::Messages,
                &json!({"system": [{"type": "text", "text": "hello world"}], "messages": [message]})
            ),
            2 * hello + 7
        );
        for input in [json!("hello world"), json!(["hello world"])] {
            assert_eq!(prompt(Operation::Embeddings, &json!({"input": input})), hello);
        }
        assert_eq!(prompt(Operation::Embeddings, &json!({"input": [[1, 2], [3]]})), 3);
        assert_eq!(prompt(Operation::Completions, &json!({"prompt": ["hello world", "hello world"]})), 2 * hello);
        let picture = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]});
        assert_eq!(prompt(Operation::Chat, &json!({"messages": [picture]})), 1_600 + 7);
        let tools = json!({"messages": [message], "tools": [{"type": "function"}]});
        assert!(prompt(Operation::Chat, &tools) > 32 + hello);
        assert_eq!(prompt_tokens(Operation::Chat, Encoding::O200k, b"no json"), 7);
    }

    #[test]
    fn texts_of_replies_are_found() {
        let text = |operation, body: Value| reply_text(operation, body.to_string().as_bytes());
        let chat = json!({"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}, {"text": "b"}]});
        assert_eq!(text(Operation::Chat, chat), "ab");
        let called = json!({"choices": [{"message": {"content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"arguments": "{}", "name": "f"}}]}}]});
        assert_eq!(text(Operation::Chat, called), "{}f");
        let response = json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]});
        assert_eq!(text(Operation::Responses, response), "a");
        let message =
            json!({"content": [{"type": "text", "text": "a"}, {"type": "tool_use", "name": "f", "input": {"x": 1}}]});
        assert_eq!(text(Operation::Messages, message), "a{\"x\":1}f");
    }
}
