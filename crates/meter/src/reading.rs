//! Reads a reply that passes by: what it used, which model it names, whether it is whole. A stream is read event by event, anything
//! else without holding it; words are held only until it is known that the provider tells a use.

use std::collections::VecDeque;

use bench_models::tokens::Encoding;
use hyper::body::Bytes;
use serde_json::Value;

use crate::{
    address::Operation,
    ask::Asked,
    events::{self, Piece, Splitter},
    members::Members,
    outcome::{Ended, Tokens},
    room::Part,
    texts,
    usage::{Believed, Told, believe},
    wish::{Left, take_out},
};

/// Words that are held, in bytes, before they are counted.
const MOST_WORDS: usize = 16 * 1024;

/// How a body is read.
pub(crate) enum Body {
    /// One JSON text.
    Whole(Members),
    /// Server-sent events.
    Events(Splitter),
    /// In an encoding that was not asked for: nothing of it can be read.
    Encoded,
}

/// What has been read of a reply.
pub(crate) struct Reading {
    operation: Operation,
    body: Body,
    /// The client did not ask for the use of its stream.
    takes_out: bool,
    said: Said,
    bytes: u64,
}

/// What events say.
struct Said {
    operation: Operation,
    told: Option<Told>,
    model: String,
    service_tier: Option<String>,
    words: Words,
    /// It said that it is at its end, or that it failed.
    finished: bool,
    failed: Option<String>,
}

/// Words of a reply, and tokens of those that are not held any more.
struct Words {
    encoding: Encoding,
    text: String,
    counted: u64,
    bytes: u64,
}

impl Words {
    fn flush(&mut self) {
        if self.text.len() > MOST_WORDS {
            self.counted += self.encoding.count(&self.text);
            self.bytes += self.text.len() as u64;
            self.text.clear();
        }
    }

    fn tokens(&self) -> u64 {
        self.counted + self.encoding.count(&self.text)
    }
}

/// What a reply came to.
pub(crate) struct Read {
    pub(crate) usage: Option<Tokens>,
    pub(crate) counted_here: bool,
    /// See [`Outcome::doubted`](crate::Outcome::doubted).
    pub(crate) doubted: Option<Tokens>,
    pub(crate) model: String,
    pub(crate) service_tier: Option<String>,
    /// What the end of its bytes means.
    pub(crate) ended: Ended,
}

impl Read {
    /// Of what has no reply.
    pub(crate) const fn nothing(ended: Ended) -> Self {
        Self { usage: None, counted_here: false, doubted: None, model: String::new(), service_tier: None, ended }
    }
}

impl Reading {
    /// Reads the reply to a request.
    pub(crate) fn new(asked: &Asked, body: Body, takes_out: bool) -> Self {
        let words = Words { encoding: asked.prompt_tokens.encoding(), text: String::new(), counted: 0, bytes: 0 };
        let said = Said {
            operation: asked.operation,
            told: None,
            model: String::new(),
            service_tier: None,
            words,
            finished: false,
            failed: None,
        };
        Self { operation: asked.operation, body, takes_out, said, bytes: 0 }
    }

    /// Takes some bytes of the body; `out` gets what the client is given of them.
    pub(crate) fn push(&mut self, chunk: Bytes, room: &mut Part, held: usize, out: &mut VecDeque<Bytes>) {
        self.bytes += chunk.len() as u64;
        let Self { body, said, takes_out, .. } = self;
        match body {
            Body::Encoded => out.push_back(chunk),
            Body::Whole(members) => {
                members.push(&chunk);
                out.push_back(chunk);
            }
            Body::Events(splitter) if *takes_out => {
                splitter.push(&chunk, |piece| match piece {
                    Piece::Through(bytes) => out.push_back(bytes),
                    Piece::Event(event) => out.extend(said.without_wish(event)),
                });
            }
            Body::Events(splitter) => {
                splitter.push(&chunk, |piece| {
                    if let Piece::Event(event) = piece
                        && let Some(data) = events::data(&event)
                    {
                        said.event(&data);
                    }
                });
                out.push_back(chunk);
            }
        }
        if let Body::Events(splitter) = body
            && !room.grow_to(held + splitter.held())
        {
            splitter.let_go();
        }
    }

    /// What is still held when the body has ended, or broke off.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let Body::Events(splitter) = &mut self.body else { return None };
        splitter.end().filter(|_| self.takes_out)
    }

    /// What it came to; `kept` is the body, where it was kept.
    pub(crate) fn finish(self, asked: &Asked, kept: Option<&[u8]>) -> Read {
        let Self { operation, body, mut said, bytes, .. } = self;
        let ended = match &body {
            _ if !operation.costs() => Ended::Complete,
            Body::Encoded => Ended::Complete,
            Body::Whole(members) if members.is_page() => Ended::Page,
            Body::Whole(members) => {
                said.whole(members);
                if !members.is_whole() || said.failed.is_some() { Ended::NotAReply } else { Ended::Complete }
            }
            Body::Events(_) => match said.failed.take() {
                Some(why) => Ended::CutByProvider(why),
                None if said.finished => Ended::Complete,
                None => Ended::CutByProvider("the stream ended before the reply did".to_owned()),
            },
        };
        let is_stream = matches!(body, Body::Events(_));
        let reply_bytes = if is_stream { said.words.bytes + said.words.text.len() as u64 } else { bytes };
        let believed = believe(said.told.as_ref(), asked, reply_bytes);
        let is_reply = !matches!(ended, Ended::NotAReply | Ended::Page);
        let counts = operation.costs() && !matches!(body, Body::Encoded) && is_reply;
        let (usage, counted_here) = match believed {
            // the use so far is told with the first event of some streams
            Believed::Yes(tokens) if is_stream && !said.finished => {
                (Some(Tokens { completion: tokens.completion.max(said.words.tokens()), ..tokens }), true)
            }
            Believed::Yes(tokens) => (Some(tokens), false),
            Believed::Nothing | Believed::No(_) if counts => {
                let completion = match (operation, is_stream, kept) {
                    (Operation::Embeddings, ..) => 0,
                    (_, true, _) => said.words.tokens(),
                    (_, false, Some(body)) => said.words.encoding.count(&texts::reply_text(operation, body)),
                    // no reply has more tokens than bytes
                    (_, false, None) => bytes,
                };
                (Some(Tokens { prompt: asked.prompt_tokens.count(), completion, ..Tokens::default() }), true)
            }
            Believed::Nothing | Believed::No(_) => (None, false),
        };
        Read {
            usage,
            counted_here,
            doubted: match believed {
                Believed::No(told) => Some(told),
                Believed::Yes(_) | Believed::Nothing => None,
            },
            model: said.model,
            service_tier: said.service_tier,
            ended,
        }
    }
}

/// What an event, or the response in it, says that went wrong.
fn error_of(about: &Value) -> Option<&Value> {
    about.get("error").filter(|error| !error.is_null())
}

impl Said {
    /// Reads an event, and returns what is left of it for a client that did not ask for its use.
    fn without_wish(&mut self, event: Bytes) -> Option<Bytes> {
        let Some(data) = events::data(&event) else { return Some(event) };
        self.event(&data);
        match take_out(&event, &data) {
            Left::Whole => {}
            Left::Nothing => return None,
            Left::Changed(changed) => return Some(changed),
        }
        Some(event)
    }

    fn event(&mut self, data: &[u8]) {
        if data == b"[DONE]" {
            self.finished = true;
            return;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else { return };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        // a response and a message are named in some of their events
        for about in [Some(&event), event.get("response"), event.get("message")].into_iter().flatten() {
            self.about(about);
        }
        match self.operation {
            Operation::Chat | Operation::Completions => self.choices(event.get("choices")),
            Operation::Responses => {
                if let Some(words) = event.get("delta").and_then(Value::as_str) {
                    self.words.text.push_str(words);
                }
                self.finished |= matches!(kind, "response.completed" | "response.incomplete" | "response.failed");
            }
            Operation::Messages => {
                for part in ["delta", "content_block"].into_iter().filter_map(|part| event.get(part)) {
                    texts::said(part, &mut self.words.text);
                }
                self.finished |= kind == "message_stop";
            }
            Operation::Embeddings | Operation::Models | Operation::CountTokens => {}
        }
        self.words.flush();
        let error = error_of(&event).or_else(|| event.get("response").and_then(error_of));
        if error.is_some() || matches!(kind, "error" | "response.failed") {
            let words = error.unwrap_or(&event).get("message").and_then(Value::as_str).unwrap_or("an error");
            self.failed = Some(words.chars().take(200).collect());
        }
    }

    fn choices(&mut self, choices: Option<&Value>) {
        let Some(choices) = choices else { return };
        texts::said(choices, &mut self.words.text);
        let mut all = choices.as_array().into_iter().flatten();
        self.finished |= all.any(|choice| choice.get("finish_reason").is_some_and(Value::is_string));
    }

    /// What stands beside the words.
    fn about(&mut self, about: &Value) {
        let text = |name: &str| about.get(name).and_then(Value::as_str);
        if let Some(model) = text("model").filter(|_| self.model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        if let Some(tier) = text("service_tier") {
            self.service_tier = Some(tier.to_owned());
        }
        if let Some(usage) = about.get("usage").filter(|usage| usage.is_object())
            && let Some(told) = Told::read(usage.to_string().as_bytes())
        {
            self.told = Some(self.told.unwrap_or_default().then(told));
        }
    }

    /// What stands in a reply that is no stream.
    fn whole(&mut self, members: &Members) {
        let text = |name: &str| members.value(name).and_then(|value| serde_json::from_slice::<String>(value).ok());
        self.model = text("model").unwrap_or_default();
        self.service_tier = text("service_tier");
        self.told = members.value("usage").and_then(Told::read);
        if members.value("error").is_some_and(|error| error.trim_ascii() != b"null") {
            self.failed = Some("an error with the status of success".to_owned());
        }
    }
}
