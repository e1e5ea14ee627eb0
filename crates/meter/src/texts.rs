//! The texts of replies whose provider tells no tokens, wherever each operation has them in its JSON.

use serde_json::Value;

use crate::address::Operation;

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
