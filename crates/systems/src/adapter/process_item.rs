//! A thing to store, as a system that is a process is given it: `items` makes it of what a dataset has, the protocol in `process` sends
//! it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Its last fields are those of `bench_proto::dataset::Memory`, written again as `ProcessFilter` is.
/// A thing to store: a turn, a session or a memory, or a part of one whose text is too long.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProcessItem {
    /// Id of the turn, memory or session; hits give it back as `id`.
    pub id: String,
    /// What is said, with who says it.
    pub text: String,
    /// The same after its date.
    pub content: String,
    /// Who says it.
    pub speaker: Option<String>,
    /// `user` or `assistant`.
    pub role: String,
    /// The dataset's id of the session that it is part of.
    pub session_id: String,
    /// RFC 3339, in UTC.
    pub time: Option<String>,
    /// The time in the dataset's words.
    pub time_text: Option<String>,
    /// Labels by which searches may be restricted; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whose it is, where one bank holds the memories of several users; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The scopes in which it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// What else is said of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}
