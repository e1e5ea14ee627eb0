//! Embedding models of OpenAI-compatible servers and of Azure, as one more kind of model: its messages are the texts, its
//! reply is their vectors in one text ([`vectors`]). So pace, budget, retries and the call store are those of chat models.

use std::time::Instant;

use async_openai::config::Config;
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bench_proto::{failure::Failure, trace::StepTrace};
use serde::{Deserialize, Serialize};

use super::{Endpoint, ModelServer, SharedHttp, checked_url, exchange::Exchange, wire::count};
use crate::{
    Attempt, ChatMessage, ChatModel, ChatReply, ChatRequest, MessageRole, classify, classify::Transport,
    tokens::Encoding,
};

/// An embedding model behind a base URL.
pub struct OpenAiEmbeddings {
    http: SharedHttp,
    url: reqwest::Url,
    endpoint: Endpoint,
    /// Base URL and query, for keys and pace.
    shown: String,
    model: String,
}

impl std::fmt::Debug for OpenAiEmbeddings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiEmbeddings")
            .field("endpoint", &self.shown)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The request for the vectors of these texts.
#[must_use]
pub fn request(texts: &[String]) -> ChatRequest {
    let message = |text: &String| ChatMessage { role: MessageRole::User, text: text.clone() };
    let messages = texts.iter().map(message).collect();
    ChatRequest { messages, params: Default::default(), schema: None, max_output_tokens: 0 }
}

/// The vectors that a reply holds: all components as little-endian `f32` in base64, one vector after the other.
///
/// # Errors
/// When they are not `texts` vectors of one length.
pub fn vectors(reply: &str, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let bytes = STANDARD.decode(reply).map_err(|error| format!("stored vectors cannot be read: {error}"))?;
    let numbers = bytes.len() / size_of::<f32>();
    if texts == 0 || numbers == 0 || !bytes.len().is_multiple_of(size_of::<f32>()) || !numbers.is_multiple_of(texts) {
        return Err(format!("{numbers} numbers came back for {texts} texts"));
    }
    let number = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    let all: Vec<f32> = bytes.chunks_exact(size_of::<f32>()).map(number).collect();
    Ok(all.chunks_exact(numbers / texts).map(<[f32]>::to_vec).collect())
}

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    input: Vec<&'a str>,
    // the one form that every server knows
    encoding_format: &'static str,
}

/// The part of a reply that is used.
#[derive(Deserialize)]
struct WireReply {
    data: Vec<WireVector>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireVector {
    #[serde(default)]
    index: usize,
    embedding: Components,
}

/// Some servers answer in base64 whatever they are asked for.
#[derive(Deserialize)]
#[serde(untagged)]
enum Components {
    Numbers(Vec<f32>),
    Packed(String),
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
}

/// The reply that a body holds for so many texts.
///
/// # Errors
/// What cannot be used.
pub fn reply_of(body: &[u8], texts: usize) -> Result<ChatReply, String> {
    serde_json::from_slice::<WireReply>(body).map_err(|error| error.to_string())?.into_reply(texts)
}

impl WireReply {
    /// As a reply of a model; says in words what cannot be used.
    fn into_reply(mut self, texts: usize) -> Result<ChatReply, String> {
        if self.data.len() != texts {
            return Err(format!("{} vectors came back for {texts} texts", self.data.len()));
        }
        self.data.sort_by_key(|one| one.index);
        let mut bytes = Vec::new();
        let mut length = None;
        for one in self.data {
            let before = bytes.len();
            match one.embedding {
                Components::Numbers(numbers) => bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes())),
                Components::Packed(text) => {
                    bytes.extend(STANDARD.decode(text).map_err(|error| format!("a vector is no base64: {error}"))?);
                }
            }
            let this = bytes.len() - before;
            if this == 0 || !this.is_multiple_of(size_of::<f32>()) || *length.get_or_insert(this) != this {
                return Err("vectors of different lengths came back".to_owned());
            }
        }
        Ok(ChatReply {
            text: STANDARD.encode(bytes),
            finish: "stop".to_owned(),
            model: self.model.unwrap_or_default(),
            prompt_tokens: self.usage.and_then(|usage| usage.prompt_tokens),
            completion_tokens: Some(0),
            ..ChatReply::default()
        })
    }
}

impl OpenAiEmbeddings {
    /// A model of a server of either scheme, as for chat models.
    ///
    /// # Errors
    /// When the base URL or the key cannot be used.
    pub fn at(server: ModelServer<'_>, model: &str, http: &SharedHttp) -> Result<Self, Failure> {
        let endpoint = Endpoint::new(server, model)?;
        let mut url = checked_url(&endpoint.url("/embeddings"))?;
        if !endpoint.query().is_empty() {
            url.query_pairs_mut().extend_pairs(endpoint.query());
        }
        Ok(Self { http: http.clone(), url, shown: endpoint.shown(), endpoint, model: model.to_owned() })
    }
}

#[async_trait]
impl ChatModel for OpenAiEmbeddings {
    fn endpoint(&self) -> &str {
        &self.shown
    }

    fn model(&self) -> &str {
        &self.model
    }

    /// The texts alone: nothing stands around them.
    fn prompt_tokens(&self, encoding: Encoding, request: &ChatRequest) -> u64 {
        request.messages.iter().map(|message| encoding.count(&message.text)).sum()
    }

    async fn attempt(&self, request: &ChatRequest, trace: Option<&StepTrace>) -> Attempt {
        let begun = Instant::now();
        let garbage = |seen: &Exchange, detail: &str| {
            classify::transport(Transport::Garbage, seen.status, detail, &self.endpoint.secrets)
        };
        let input = request.messages.iter().map(|message| message.text.as_str()).collect();
        let body = match serde_json::to_vec(&WireRequest { model: &self.model, input, encoding_format: "float" }) {
            Ok(body) => body,
            Err(error) => {
                let result =
                    Err(classify::transport(Transport::Unsendable, 0, &error.to_string(), &self.endpoint.secrets));
                return Attempt { result, pace: Default::default(), duration_us: 0 };
            }
        };
        let (seen, sent) = self.http.post(&self.url, self.endpoint.headers(), body, trace).await;
        let duration_us = begun.elapsed().as_micros() as u64;
        let result = sent
            .map_err(|fault| fault.failed(&seen, &self.endpoint.secrets, self.endpoint.is_azure))
            .and_then(|body| {
                let reply: WireReply =
                    serde_json::from_slice(&body).map_err(|error| garbage(&seen, &error.to_string()))?;
                let mut reply = reply.into_reply(request.messages.len()).map_err(|why| garbage(&seen, &why))?;
                // the text is numbers
                reply.model = self.endpoint.secrets.hide_in_reply(&reply.model).into_owned();
                Ok(reply)
            });
        Attempt { result, pace: seen.pace, duration_us }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::openai::Scheme;

    fn read(value: serde_json::Value, texts: usize) -> Result<ChatReply, String> {
        serde_json::from_value::<WireReply>(value).map_err(|error| error.to_string())?.into_reply(texts)
    }

    #[test]
    fn vectors_come_back_in_the_order_of_their_texts_in_either_form() {
        let packed = STANDARD.encode([1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        let reply = read(
            json!({"model": "m-1", "usage": {"prompt_tokens": 7, "total_tokens": 7},
                "data": [{"index": 1, "embedding": packed}, {"index": 0, "embedding": [0.25, 3]}]}),
            2,
        )
        .expect("usable");
        assert_eq!(vectors(&reply.text, 2), Ok(vec![vec![0.25, 3.0], vec![1.5, -2.0]]));
        assert_eq!((reply.prompt_tokens, reply.completion_tokens, reply.model.as_str()), (Some(7), Some(0), "m-1"));
    }

    #[test]
    fn vectors_are_good_whatever_is_told_of_their_tokens() {
        for usage in [json!({"prompt_tokens": -1}), json!({"prompt_tokens": 12.0}), json!({}), json!(null)] {
            let reply = read(json!({"usage": usage.clone(), "data": [{"embedding": [1.0]}]}), 1).expect("usable");
            assert_eq!(reply.prompt_tokens, None, "{usage}");
        }
    }

    #[test]
    fn what_is_not_one_vector_for_each_text_is_refused() {
        for data in [
            json!([]),
            json!([{"embedding": [1.0]}]),
            json!([{"embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]),
            json!([{"embedding": []}, {"embedding": []}]),
            json!([{"embedding": "!"}, {"embedding": "!"}]),
        ] {
            assert!(read(json!({"data": data}), 2).is_err(), "{data}");
        }
        for (text, texts) in [("", 1), ("AAAA", 1), ("AAAAAA==", 2), ("?", 1), ("AAAAAA==", 0)] {
            assert!(vectors(text, texts).is_err(), "{text} {texts}");
        }
    }

    #[test]
    fn texts_are_counted_without_anything_around_them() {
        let http = SharedHttp::new(Default::default()).expect("a client");
        let server = ModelServer { scheme: Scheme::OpenAi, base_url: "http://localhost/v1", key: None };
        let model = OpenAiEmbeddings::at(server, "text-embedding-3-small", &http);
        let texts = ["hello world".to_owned(), "hello".to_owned()];
        assert_eq!(model.expect("builds").prompt_tokens(Encoding::Cl100k, &request(&texts)), 3);
    }

    proptest! {
        #[test]
        fn every_number_survives_the_store(rows in proptest::collection::vec(proptest::array::uniform3(any::<f32>()), 1..9)) {
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
            let back = vectors(&STANDARD.encode(bytes), rows.len()).expect("readable");
            let bits = |row: &[f32]| row.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            prop_assert!(back.iter().zip(&rows).all(|(a, b)| bits(a) == bits(b)) && back.len() == rows.len());
        }
    }
}
