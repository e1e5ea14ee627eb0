//! What systems share within a process.

use std::{path::PathBuf, sync::Arc};

use crate::{
    adapter::AdapterContext, chat::Chat, embed::Embed, index_cache::IndexCache, local::LocalModels, policy::Policy,
};

/// What systems share within a process. One per process, so that the bounds hold for all its runs together.
#[derive(Clone, Default)]
pub struct BuildContext {
    /// Built indexes of banks.
    pub index_cache: IndexCache,
    /// What adapters share.
    pub adapters: AdapterContext,
    /// Where embeddings of servers come from, for `vector` and `hybrid`.
    pub embeddings: Embeddings,
    /// Asks the chat models of systems, for whoever works outside of a run: each step of a run brings its own
    /// ([`crate::StepContext::chats`]), which pays for them.
    pub chats: Option<Arc<dyn Chat>>,
    /// What adapters may do here (P42).
    pub policy: Arc<Policy>,
    /// Embedding models of this machine.
    pub local_models: LocalModels,
    /// URL of the database of `pgvector`; that of its variable when nobody says.
    pub pgvector_url: Option<String>,
}

impl BuildContext {
    /// The same for the systems of a run: those that are started have folders of its name.
    #[must_use]
    pub fn for_run(&self, run: impl Into<String>) -> Self {
        let mut context = self.clone();
        context.adapters.run = Some(run.into());
        context
    }

    /// Says under which folder started systems have theirs.
    #[must_use]
    pub fn in_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.adapters.home = Some(home.into());
        self
    }
}

/// Where the embeddings of a server's model come from.
#[derive(Clone, Default)]
pub enum Embeddings {
    /// No account is configured at all.
    #[default]
    Nowhere,
    /// From the accounts of this process, for whoever works outside of a run.
    Accounts(Arc<dyn Embed>),
    /// From whoever asks: each step of a run brings its own ([`crate::StepContext::embeddings`]), which pays for them.
    OfStep,
}
