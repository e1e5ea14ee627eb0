//! What is known of a system: its hard limits, and what it can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_false;

/// Hard limits of the system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSpec {
    /// Largest k of a recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_k: Option<u32>,
    /// Items of one request (1 unless given).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Bytes of one item's text; longer ones are split into items `id#2`, `id#3`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u32>,
    /// Longest query in bytes; longer ones are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_bytes: Option<u32>,
    /// Operations in flight over all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Longest response in bytes (8 MiB unless given, at most 64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u32>,
    /// Tokens of a recall for systems that are asked by budget: the value of `{max_tokens}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// What the system is known to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CanSpec {
    /// Items of a bank have to be sent in order, one request at a time.
    pub order: bool,
    /// Sending an item again changes nothing.
    pub repeat: bool,
    /// Takes event times.
    pub times: bool,
    /// Searching changes what later searches find.
    pub learns_from_recall: bool,
    /// Its answer to a recall is bounded by tokens, not by k.
    pub token_budget: bool,
    /// What it has stored outlives its process.
    pub survives_restart: bool,
    /// Keeps banks apart. Without it a run has one bank at a time (amplihack).
    pub banks: bool,
    /// Of a system with `command`: takes `update`.
    #[serde(skip_serializing_if = "is_false")]
    pub updates: bool,
    /// Of a system with `command`: takes `forget`.
    #[serde(skip_serializing_if = "is_false")]
    pub withdraws: bool,
    /// Of a system with `command`: takes `list`.
    #[serde(skip_serializing_if = "is_false")]
    pub lists: bool,
    /// Of a system with `command`: the parts of a question's filter that it honours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<FilterName>,
}

impl Default for CanSpec {
    fn default() -> Self {
        Self {
            order: true,
            repeat: false,
            times: false,
            learns_from_recall: false,
            token_budget: false,
            survives_restart: true,
            banks: true,
            updates: false,
            withdraws: false,
            lists: false,
            filters: Vec::new(),
        }
    }
}

/// A part of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterName {
    /// Memories that have all of some tags.
    Tags,
    /// Memories of a user.
    User,
    /// Memories of a scope.
    Scope,
    /// Memories of any one of several scopes.
    Scopes,
    /// What was said or happened at a time or later.
    From,
    /// What was said or happened at a time or before.
    Until,
}
