//! Reply bodies: JSON and server-sent events in OpenAI's form. Ids come from the request, never from a clock (P17).

use axum::body::Bytes;
use base64::Engine as _;
use serde::Serialize;

use crate::{
    config::Used,
    draw::RequestKey,
    reply::{Choice, REFUSAL},
};

/// The creation time that every reply carries: a constant, so that equal requests get equal bytes (2024-01-01).
pub(crate) const CREATED: u64 = 1_704_067_200;

/// A reply's identity and usage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead<'a> {
    pub(crate) key: RequestKey,
    pub(crate) seed: u64,
    pub(crate) model: &'a str,
    pub(crate) used: Used,
}

#[derive(Serialize)]
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<WireChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<WireUsage>,
    system_fingerprint: String,
}

#[derive(Serialize)]
struct WireChoice<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Delta<'a>>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[ToolCall<'a>; 1]>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
}

#[derive(Serialize)]
struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl ReplyHead<'_> {
    fn usage(&self) -> WireUsage {
        WireUsage {
            prompt_tokens: self.used.prompt,
            completion_tokens: self.used.completion,
            total_tokens: self.used.prompt + self.used.completion,
            prompt_tokens_details: PromptDetails { cached_tokens: self.used.cached },
            completion_tokens_details: CompletionDetails { reasoning_tokens: 0 },
        }
    }

    fn completion<'a>(
        &'a self,
        object: &'static str,
        choices: Vec<WireChoice<'a>>,
        usage: Option<WireUsage>,
    ) -> Completion<'a> {
        let id = format!("chatcmpl-{:032x}", self.key.0);
        let system_fingerprint = format!("fp_{:010x}", self.seed & 0xff_ffff_ffff);
        Completion { id, object, created: CREATED, model: self.model, choices, usage, system_fingerprint }
    }
}

/// The body of a chat completion; with a tool what would be said are its arguments.
pub(crate) fn chat_body(head: &ReplyHead<'_>, choices: &[Choice], tool: Option<&str>) -> Vec<u8> {
    let choices = choices.iter().enumerate().map(|(index, choice)| {
        let (said, refused) = said_or_refused(choice);
        let called = tool.zip(said).map(|(name, arguments)| {
            let id = format!("call_{:022x}{index}", head.key.0 >> 40);
            [ToolCall { id, kind: "function", function: CalledFunction { name, arguments } }]
        });
        let finish_reason = match finish_reason(choice) {
            // as where one function has to be called of several
            "stop" if called.is_some() => "tool_calls",
            other => other,
        };
        let content = said.filter(|_| called.is_none());
        WireChoice {
            index,
            message: Some(WireMessage { role: "assistant", content, refusal: refused, tool_calls: called }),
            delta: None,
            logprobs: None,
            finish_reason: Some(finish_reason),
        }
    });
    to_json(&head.completion("chat.completion", choices.collect(), Some(head.usage())))
}

/// The words of a choice, as content or as a refusal.
fn said_or_refused(choice: &Choice) -> (Option<&str>, Option<&str>) {
    let words = Some(choice.content.as_str());
    if choice.finish_reason == REFUSAL { (None, words) } else { (words, None) }
}

/// A refusal ends like any other reply.
fn finish_reason(choice: &Choice) -> &'static str {
    if choice.finish_reason == REFUSAL { "stop" } else { choice.finish_reason }
}

/// The events of a streamed chat completion: role, words, finish, usage when asked for, `[DONE]`.
pub(crate) fn chat_events(head: &ReplyHead<'_>, choices: &[Choice], include_usage: bool) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut push = |choices: Vec<WireChoice<'_>>, usage: Option<WireUsage>| {
        let mut event = b"data: ".to_vec();
        event.extend(to_json(&head.completion("chat.completion.chunk", choices, usage)));
        event.extend(b"\n\n");
        events.push(Bytes::from(event));
    };
    let chunk = |index, delta, finish_reason| {
        vec![WireChoice { index, message: None, delta: Some(delta), logprobs: None, finish_reason }]
    };
    for (index, choice) in choices.iter().enumerate() {
        push(chunk(index, Delta { role: Some("assistant"), content: Some(""), ..Delta::default() }, None), None);
        for word in choice.content.split_inclusive(' ') {
            let refused = choice.finish_reason == REFUSAL;
            let (content, refusal) = if refused { (None, Some(word)) } else { (Some(word), None) };
            push(chunk(index, Delta { content, refusal, ..Delta::default() }, None), None);
        }
        push(chunk(index, Delta::default(), Some(finish_reason(choice))), None);
    }
    if include_usage {
        push(Vec::new(), Some(head.usage()));
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

#[derive(Serialize)]
struct Embeddings<'a> {
    object: &'static str,
    data: Vec<Embedding>,
    model: &'a str,
    usage: EmbeddingUsage,
}

#[derive(Serialize)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Vector {
    Floats(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct EmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// The body of an embeddings reply.
pub(crate) fn embeddings_body(head: &ReplyHead<'_>, vectors: impl Iterator<Item = Vec<f32>>, base64: bool) -> Vec<u8> {
    let data = vectors.enumerate().map(|(index, vector)| {
        let embedding = if base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            Vector::Base64(base64::engine::general_purpose::STANDARD.encode(bytes))
        } else {
            Vector::Floats(vector)
        };
        Embedding { object: "embedding", index, embedding }
    });
    let usage = EmbeddingUsage { prompt_tokens: head.used.prompt, total_tokens: head.used.prompt };
    to_json(&Embeddings { object: "list", data: data.collect(), model: head.model, usage })
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers always serialise")
}
