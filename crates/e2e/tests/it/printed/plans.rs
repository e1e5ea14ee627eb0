//! What `matrix --dry-run --json` prints, as types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `matrix FILE --dry-run --json`: what a matrix would be, and what it would take.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MatrixPlan {
    /// The cells in the order of the file.
    cells: Vec<PlannedCell>,
    /// Runs of each cell.
    repeats: u32,
    /// Cap of all runs together, in dollars; null where nothing is paid.
    usd_cap: Option<f64>,
    /// All of it.
    total: Takes,
}

/// A cell of which runs would be made, with what they take.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlannedCell {
    /// From 1, in the order of the file.
    number: u32,
    /// Axis to value.
    values: BTreeMap<String, String>,
    /// Flags of the `submit` that it is.
    flags: Vec<String>,
    /// Its runs.
    repeats: u32,
    /// Questions that each of its runs asks.
    questions: u64,
    /// All its runs.
    estimate: Takes,
}

/// What runs take.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Takes {
    /// Calls of models that are expected.
    calls: u64,
    /// Calls at most.
    most_calls: u64,
    /// Prompt tokens that are expected.
    prompt_tokens: u64,
    /// Tokens of replies that are expected.
    completion_tokens: u64,
    /// Dollars.
    usd: Dollars,
    /// How long, one run after the other.
    minutes: f64,
    /// Whether memory systems are metered: what they call themselves is under the same cap, and comes on top.
    metered: bool,
}

/// Dollars that are expected, and between what.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Dollars {
    /// Where replies are short.
    low: f64,
    /// Where replies are as long as usual.
    expected: f64,
    /// Where each reply is as long as it may be.
    worst: f64,
}
