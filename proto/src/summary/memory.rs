//! What the memory system brought: retrieval against the evidence, contexts, and where failed questions lost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Retrieval metrics by level and cut-off k.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalSummary {
    /// Evidence turns, by k.
    pub turn: BTreeMap<u32, RetrievalAtK>,
    /// Evidence sessions, by k.
    pub session: BTreeMap<u32, RetrievalAtK>,
}

/// Means of the retrieval metrics over the questions with ground truth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalAtK {
    /// Some gold id among the first k.
    pub recall_any: Option<f64>,
    /// All gold ids among the first k.
    pub recall_all: Option<f64>,
    /// Share of the gold ids among the first k.
    pub recall: Option<f64>,
    /// Gold ids among the first k, divided by the ids shown (at most k).
    pub precision: Option<f64>,
    /// 1 / rank of the first gold id, 0 beyond k.
    pub mrr: Option<f64>,
    /// Binary gain, discount 1 / log2(rank + 1), ideal min(gold, k) ones.
    pub ndcg: Option<f64>,
    /// Questions with ground truth and a recall.
    pub n: u64,
}

/// Where failed questions (scored, below the pass threshold) lost: in memory or after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureAttribution {
    /// No evidence turn among the hits.
    pub evidence_missing: u64,
    /// Some, but not all evidence turns among the hits.
    pub evidence_partial: u64,
    /// All evidence turns were among the hits: the answer failed.
    pub evidence_found: u64,
    /// The dataset names no evidence, or nothing was recalled.
    pub no_ground_truth: u64,
    /// The evidence was never retained: cut sessions.
    #[serde(default)]
    pub not_retained: u64,
    /// Judges or votes disagree about the answer.
    #[serde(default)]
    pub judge_in_doubt: u64,
}

/// Passed and failed questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassCount {
    /// At or above the pass threshold.
    pub passed: u64,
    /// Below it.
    pub failed: u64,
}

/// What recall found against how the answer fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecallAnswer {
    /// All evidence turns among the hits.
    pub evidence_found: PassCount,
    /// Some of them.
    pub evidence_partial: PassCount,
    /// None of them.
    pub evidence_missing: PassCount,
    /// The dataset names no evidence, or nothing was recalled.
    pub no_ground_truth: PassCount,
}

/// Contexts handed to the answerer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSummary {
    /// Questions behind it.
    pub n: u64,
    /// Mean length in bytes of UTF-8.
    pub mean_bytes: f64,
    /// Median.
    pub p50_bytes: f64,
    /// 95th percentile.
    pub p95_bytes: f64,
    /// Mean length in tokens, estimated as a quarter of the bytes.
    pub mean_tokens: f64,
    /// Mean prompt tokens of the answer calls as the provider counts them, prompt included; null without a model.
    pub mean_prompt_tokens: Option<f64>,
}
