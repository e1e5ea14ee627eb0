//! When what was retained can be found: [`ReadySpec`], and the rules that it chooses from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::CallSpec;

/// When what was retained can be found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadySpec {
    /// The rule.
    pub when: ReadyRule,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallSpec>,
    /// `each_done`, `status`: path of the state; `all_done`: of all states; `stable`: of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `stable`: name of a metric, of a page in Prometheus's text format, in place of `status`. With `a|b` the sum of those that the
    /// page has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// States that mean done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Value>,
    /// States that mean failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Value>,
    /// Time between two polls (1s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Without progress for this long the bank has failed (2m); of `stable` when it never stood still in all this time (4h),
    /// which begins anew with all that is stored where the value is one of the whole server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled_after: Option<String>,
    /// `stable`: how long the value must stay the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_for: Option<String>,
}

/// How readiness is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyRule {
    /// The response to a retain means that it can be found.
    #[default]
    Returned,
    /// One state for the bank becomes one of `done`.
    Status,
    /// Every item, by its own request with `{key}`, becomes one of `done`.
    EachDone,
    /// Of the states at `status` as many as there are items are one of `done`.
    AllDone,
    /// The count reaches the number of items.
    Count,
    /// The value at `status`, or of `metric`, stays the same for `stable_for`: promised, not proven.
    Stable,
    /// Nothing can be asked: promised, not proven.
    Promised,
}
