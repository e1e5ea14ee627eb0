//! Where the models of a run were, and what answered there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model in a role of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSummary {
    /// `answerer`, `judge`, `judge-2`, …, `embeddings`.
    pub role: String,
    /// As it was asked for: `provider:name`.
    pub model: String,
    /// Parameters as sent; those of further votes differ from them as docs/STATISTICS.md says.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// Name and port of the base URLs that were called, in the order in which they answered first, without user, path and query; empty
    /// when every reply came from the call store, null where it is not known (runs of builds before this field).
    pub servers: Option<Vec<String>>,
    /// What answered, as replies name it, in the order of the first replies: several when it changed during the run. Null where it is
    /// not known.
    pub served: Option<Vec<ServedModel>>,
}

/// A model as its provider names it in replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedModel {
    /// The model's name; null when replies had none.
    pub model: Option<String>,
    /// What the provider ran it with; null when it does not say so, and for replies of the call store.
    pub system_fingerprint: Option<String>,
}

/// A prompt, by what it makes of a fixed sample: sha256 of `system`, a newline, a zero byte, a newline and `user` is its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptText {
    /// Instructions: the same for every question of a kind.
    pub system: String,
    /// How the question at hand is laid out, shown by a sample.
    pub user: String,
}
