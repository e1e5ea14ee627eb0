//! What a request says of itself, read without changing it.
//!
//! In come its target, query, headers and body; out comes what [`Admission`](crate::Admission) decides by, or why it may not be
//! sent: all that could make it cost something that is not known here. Start reading at [`Asked::read`].
//!
//! | file | question |
//! |---|---|
//! | `head` | which members of the body matter, and where do they stand in its text? |
//! | `items` | which messages, items and parts pass, and which does the account decide about? |
//! | `names` | which members pass, and which does the account decide about? |
//! | `prompt` | how many tokens has its prompt? |
//! | `query` | what may stand in its query? |
//! | `tools` | which tools may it bring? |

mod head;
mod items;
mod names;
mod prompt;
mod query;
mod tools;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bench_models::{classify::holds_key, members::each_element, registry::names_one_model, tokens::Encoding};
use bench_proto::ids::Sha256Hash;
use http::HeaderMap;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{sync::Semaphore, task::spawn_blocking};

use self::{
    head::{Head, Raw},
    names::Unlisted,
    prompt::Counted,
};
use crate::{
    address::{Address, Operation, Target},
    outcome::Refusal,
    refusal::Rejection,
    wish::Wish,
};

/// Longest name of a model, in bytes.
const LONGEST_MODEL: usize = 256;

/// What is no name of a model. OpenRouter searches for `:online`, and `@preset` stands for what somebody has stored there.
const NO_MODEL: &str = "model: expected the name of one model, without a comma, control characters, white space around it, ':online' at its end or '@preset'";

/// A body of more bytes is counted in a thread of its own.
pub(crate) const LARGE: usize = 256 * 1024;

/// Large bodies are counted one at a time: their vocabularies and texts take memory, and threads.
static COUNTS_LARGE: Semaphore = Semaphore::const_new(1);

/// A request that has arrived, read but not sent.
pub struct Asked {
    /// Whose it is, by its path.
    pub address: Address,
    /// The key that the client sent: a token of the run. Empty where there is none.
    pub token: String,
    /// What it asks for.
    pub operation: Operation,
    /// The model; of an Azure path the deployment. Empty for the list of models.
    pub model: String,
    /// Bytes of the body, or as many tokens as its texts have bytes and its pictures may have, where that is more: no prompt has more
    /// tokens.
    pub prompt_bytes: u64,
    /// Tokens of the prompt, counted when asked for.
    pub prompt_tokens: PromptTokens,
    /// Most tokens of the reply, all choices together, where the request says so; with those that are thought beside them.
    pub max_reply_tokens: Option<u64>,
    /// Of these, or beside a reply without a limit: tokens that are thought beside it (`thinking_budget`), of all choices.
    pub thinking_tokens: u64,
    /// Replies that it asks for at once: choices (`n`, `best_of`), of each of its prompts.
    pub choices: u64,
    /// Whether the reply is a stream of events.
    pub stream: bool,
    /// Equal requests may have equal replies: embeddings, or temperature 0, whole, and without what the provider keeps.
    pub cacheable: bool,
    /// Of operation, deployment and body: equal requests have equal hashes.
    pub body_hash: Sha256Hash,
    /// The service tier that is asked for.
    pub service_tier: Option<String>,
    /// The body, as it arrived.
    pub body: Bytes,
    /// The provider's path behind `/v1`, and the query.
    pub(crate) suffix: String,
    pub(crate) query: Option<String>,
    /// Of one of Azure's paths.
    pub(crate) deployment: Option<String>,
    /// The model that the body names.
    pub(crate) named: Option<String>,
    /// How its stream is asked for its use.
    pub(crate) wish: Wish,
    /// Members of the body that pass only where the operator of the account lets them through.
    unlisted: Vec<Unlisted>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("address", &self.address)
            .field("operation", &self.operation)
            .field("model", &self.model)
            .field("prompt_bytes", &self.prompt_bytes)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// Tokens of a prompt, counted here.
#[derive(Clone)]
pub struct PromptTokens {
    operation: Operation,
    encoding: Encoding,
    body: Bytes,
    /// Of all clones.
    counted: Arc<OnceLock<u64>>,
}

impl fmt::Debug for PromptTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PromptTokens").field(&self.counted.get()).finish()
    }
}

impl PromptTokens {
    fn new(operation: Operation, model: &str, body: Bytes) -> Self {
        Self { operation, encoding: Encoding::for_model(model), body, counted: Arc::default() }
    }

    /// Their number in the model's vocabulary, or an upper bound where that is not known. Takes about a millisecond for each 100 kB the
    /// first time; a picture is taken for 1,600.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.counted.get_or_init(|| prompt::count(self.operation, self.encoding, &self.body).tokens)
    }

    /// The same, while others go on: what is large is counted in a thread of its own, one at a time.
    pub async fn counted(&self) -> u64 {
        if self.counted.get().is_none() && self.body.len() > LARGE {
            let place = COUNTS_LARGE.acquire().await;
            let counting = self.clone();
            // who no longer waits leaves the place to the count that goes on
            let _ = spawn_blocking(move || {
                let _place = place;
                counting.count()
            })
            .await;
        }
        self.count()
    }

    /// Whether the vocabulary is known.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.encoding.is_exact()
    }

    pub(crate) const fn encoding(&self) -> Encoding {
        self.encoding
    }
}

/// How many prompts are completed, each for itself: texts or lists of tokens; a list of tokens alone is one.
fn prompts(prompt: Raw<'_>) -> u64 {
    let Some(list) = prompt.filter(|prompt| prompt.get().starts_with('[')) else { return 1 };
    let mut prompts = 0_u64;
    let listed = each_element(list, |one| prompts += u64::from(one.get().starts_with(['"', '[', '{'])));
    if listed.is_ok() { prompts.max(1) } else { list.get().len() as u64 }
}

fn read<T: for<'de> Deserialize<'de>>(raw: Raw<'_>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Whether a member says something.
fn is_said(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

impl Head<'_> {
    /// The model that it names.
    fn named(&self) -> Result<Option<String>, Rejection> {
        if !is_said(self.model) {
            return Ok(None);
        }
        let name: Option<String> = read(self.model);
        let name = name.ok_or_else(|| Rejection::unreadable(Some("model"), NO_MODEL))?;
        check_model(Some(&name))?;
        Ok(Some(name))
    }

    /// A switch; what is no boolean might be taken for one by somebody else.
    fn switch(value: Raw<'_>, name: &'static str) -> Result<bool, Rejection> {
        match value.map(RawValue::get) {
            None | Some("null" | "false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Rejection::unreadable(Some(name), format!("{name}: expected true or false"))),
        }
    }

    /// A number, as digits alone: what is written in another way might be taken for another number by somebody else.
    fn whole(value: Raw<'_>, name: &'static str) -> Result<Option<u64>, Rejection> {
        match value.map(RawValue::get) {
            None | Some("null") => Ok(None),
            // a limit beyond all numbers is one all the same
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Some(digits.parse().unwrap_or(u64::MAX)))
            }
            Some(_) => Err(Rejection::unreadable(Some(name), format!("{name}: expected a whole number of 0 or more"))),
        }
    }

    /// How many replies are asked for at once: choices, of each prompt. Never 0, which providers take for 1.
    fn choices(&self, operation: Operation) -> Result<u64, Rejection> {
        let (n, best_of) = (Self::whole(self.n, "n")?, Self::whole(self.best_of, "best_of")?);
        let prompts = if operation == Operation::Completions { prompts(self.prompt) } else { 1 };
        Ok(n.max(best_of).unwrap_or(1).max(1).saturating_mul(prompts))
    }

    /// Tokens that are thought beside each reply, and beside its limit.
    fn thinking(&self) -> Result<u64, Rejection> {
        Ok(Self::whole(self.thinking_budget, "thinking_budget")?.unwrap_or(0))
    }

    /// The service tier that is asked for.
    fn tier(&self) -> Result<Option<String>, Rejection> {
        let tier: Option<String> = read(self.service_tier);
        match is_said(self.service_tier) && tier.is_none() {
            true => Err(Rejection::unreadable(Some("service_tier"), "service_tier: expected a text")),
            false => Ok(tier),
        }
    }

    /// The largest limit that is given, of one reply: providers differ in which of several they follow, and take 0 for none.
    fn limit(&self) -> Result<Option<u64>, Rejection> {
        let limits = [
            Self::whole(self.max_completion_tokens, "max_completion_tokens")?,
            Self::whole(self.max_tokens, "max_tokens")?,
            Self::whole(self.max_output_tokens, "max_output_tokens")?,
        ];
        Ok(limits.into_iter().flatten().max().filter(|limit| *limit > 0))
    }

    fn is_cacheable(&self, operation: Operation, stream: bool) -> bool {
        let kept = is_said(self.previous_response_id) || is_said(self.conversation);
        let cold = read::<f64>(self.temperature) == Some(0.0);
        match operation {
            Operation::Embeddings => !stream,
            Operation::Models | Operation::CountTokens => false,
            _ => cold && !stream && !kept,
        }
    }
}

impl Asked {
    /// Whether its path is one of Azure's, with a deployment.
    #[must_use]
    pub const fn is_azure(&self) -> bool {
        self.deployment.is_some()
    }

    /// Looks whether an account lets through all parameters of the request that are not known to cost nothing beyond tokens.
    ///
    /// # Errors
    /// For the first that it does not.
    pub fn check_parameters(&self, let_through: &[String], account: &str) -> Result<(), Refusal> {
        let kept = self.unlisted.iter().find(|unlisted| !let_through.contains(&unlisted.name));
        kept.map_or(Ok(()), |Unlisted { name, instead }| {
            Err(Refusal::UnknownParameter { name: name.clone(), instead, account: account.to_owned() })
        })
    }

    /// Reads a request.
    pub(crate) fn read(
        target: Target,
        query: Option<&str>,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Self, Rejection> {
        let Target { address, operation, suffix, deployment } = target;
        let refuse = |param, why: &str| Rejection::unreadable(param, why);
        query::check(query, operation)?;
        let mut head = if operation == Operation::Models { Head::default() } else { Head::read(&body)? };
        tools::check("tools", head.tools)?;
        tools::check("functions", head.functions)?;
        for (member, said) in head.conversations() {
            items::check(member, said, &mut |unlisted| head.note(unlisted))?;
        }
        if head.prompt.is_some_and(|prompt| prompt.get().starts_with('{')) {
            let why = "prompt: write the prompt out; one that the provider keeps may name further models and tools";
            return Err(refuse(Some("prompt"), why));
        }
        let named = head.named()?;
        let model = match (&deployment, &named) {
            (Some(name), _) | (None, Some(name)) => name.clone(),
            (None, None) if operation == Operation::Models => String::new(),
            (None, None) => return Err(refuse(Some("model"), "model: say which model is asked")),
        };
        check_model(deployment.as_deref())?;
        let stream = Head::switch(head.stream, "stream")?;
        if Head::switch(head.background, "background")? {
            let why = "background: what such a response uses is told to nobody; ask for it in the foreground";
            return Err(refuse(Some("background"), why));
        }
        let wishes = stream && matches!(operation, Operation::Chat | Operation::Completions);
        let wish = if wishes { Wish::from_options(&body, head.stream_options) } else { Wish::None };
        let attached = prompt::attached(operation, &body);
        attached.map_or(Ok(()), |attached| check_attached(attached, operation))?;
        let prompt_tokens = PromptTokens::new(operation, &model, body.clone());
        if let Some(known) = attached
            && !prompt_tokens.is_exact()
        {
            let _ = prompt_tokens.counted.set(known.tokens);
        }
        let (choices, limit, thinking) = (head.choices(operation)?, head.limit()?, head.thinking()?);
        let identity = format!(
            "{}\n{}\n{}",
            operation.path(),
            deployment.as_deref().unwrap_or(""),
            Sha256Hash::of_bytes(&body).hex()
        );
        Ok(Self {
            token: token(headers),
            prompt_bytes: attached.map_or(0, |attached| attached.tokens).max(body.len() as u64),
            prompt_tokens,
            max_reply_tokens: limit.map(|limit| limit.saturating_add(thinking).saturating_mul(choices)),
            thinking_tokens: thinking.saturating_mul(choices),
            choices,
            cacheable: head.is_cacheable(operation, stream),
            body_hash: Sha256Hash::of_bytes(identity.as_bytes()),
            service_tier: head.tier()?,
            query: query.map(str::to_owned),
            address,
            operation,
            model,
            stream,
            suffix,
            deployment,
            named,
            wish,
            unlisted: head.unlisted,
            body,
        })
    }
}

/// Refuses the name of a model or deployment that is none, asks for more than a model, or may be a key.
fn check_model(name: Option<&str>) -> Result<(), Rejection> {
    let Some(name) = name else { return Ok(()) };
    let refuse = |why: &str| Err(Rejection::unreadable(Some("model"), why));
    let small = name.to_ascii_lowercase();
    if name.len() > LONGEST_MODEL || !names_one_model(name) || small.ends_with(":online") || small.contains("@preset") {
        return refuse(NO_MODEL);
    }
    // a mistake in a system's settings would put it into the books
    if holds_key(name) {
        return refuse("model: its name looks like a key, and names stand in reports");
    }
    Ok(())
}

/// Refuses what is no text and of which nobody knows how much it is.
fn check_attached(attached: Counted, operation: Operation) -> Result<(), Rejection> {
    let within = if operation == Operation::Responses { "input" } else { "messages" };
    let why = match attached {
        Counted { is_elsewhere: true, .. } => {
            "a file, document, sound or video by its URL or id is not passed on, nobody knows its size before: send its text, or its data within the request"
        }
        Counted { is_no_picture: true, .. } => {
            "in the place of a picture its data is passed on (data:image/…, a media type of image/…) and its http(s) URL, and no sound or video"
        }
        _ => return Ok(()),
    };
    Err(Rejection::unreadable(Some(within), why))
}

/// The key of a request: each provider has a header of its own for it.
pub(crate) fn token(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, token) = text("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    };
    text("x-api-key").or_else(|| text("api-key")).or_else(bearer).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
