//! Chat models of systems that make what they hold by one: who asks, at whose expense, and where replies are kept.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use bench_models::{
    ChatRequest,
    backoff::BackoffSettings,
    openai::SharedHttp,
    registry::{Account, build_model},
};
use bench_proto::{failure::Failure, ids::Sha256Hash, spec::ModelSpec};

/// What a system asks its model when a bank is filled. Equal requests have equal replies for as long as the bank is there.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The model, with its parameters as sent.
    pub model: &'a ModelSpec,
    /// What is asked.
    pub request: &'a ChatRequest,
    /// Whether a reply can be used; one that cannot is asked for again, like any other failed attempt.
    pub accept: fn(&str) -> Result<(), String>,
}

/// Asks chat models for systems.
#[async_trait]
pub trait Chat: Send + Sync {
    /// Asks while a bank is filled, and keeps the reply for [`Self::of_bank`].
    async fn ahead(&self, asking: Asking<'_>) -> Result<(), Failure>;

    /// The reply that was kept; asks where there is none any more.
    async fn of_bank(&self, asking: Asking<'_>) -> Result<String, Failure>;
}

/// Chat models for whoever works outside of a run (`systems check`): calls of runs are paced, capped and stored.
pub struct HttpChats {
    accounts: BTreeMap<String, Account>,
    http: SharedHttp,
    kept: Mutex<HashMap<Sha256Hash, String>>,
}

impl HttpChats {
    /// The models of these accounts.
    #[must_use]
    pub fn new(accounts: BTreeMap<String, Account>, http: SharedHttp) -> Self {
        Self { accounts, http, kept: Mutex::default() }
    }

    async fn ask(&self, Asking { model, request, accept }: Asking<'_>) -> Result<String, Failure> {
        let account = self.accounts.get(&model.account).ok_or_else(|| no_account(&model.account))?;
        let chat = build_model(model, account, None, &self.http)?;
        let attempt = || async {
            let reply = chat.attempt(request, None).await.result.map_err(|error| error.failure)?;
            accept(&reply.text).map_err(|problem| Failure::transient("bad_reply", problem))?;
            Ok::<_, Failure>(reply.text)
        };
        BackoffSettings::for_a_person(attempt).await
    }
}

#[async_trait]
impl Chat for HttpChats {
    async fn ahead(&self, asking: Asking<'_>) -> Result<(), Failure> {
        self.of_bank(asking).await.map(drop)
    }

    async fn of_bank(&self, asking: Asking<'_>) -> Result<String, Failure> {
        let key = Sha256Hash::of_bytes(format!("{:?}", (asking.model, asking.request)).as_bytes());
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reply) = kept().get(&key).cloned() {
            return Ok(reply);
        }
        let reply = self.ask(asking).await?;
        kept().insert(key, reply.clone());
        Ok(reply)
    }
}

/// The failure of a model whose account has no server here.
pub(crate) fn no_account(name: &str) -> Failure {
    Failure::terminal(
        "chat_account",
        format!(
            "account '{name}' has no server and key for the model of `facts`: configure it, or set facts.account or facts.model=fake"
        ),
    )
}
