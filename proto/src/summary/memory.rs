//! What the memory system brought: retrieval against the evidence, contexts, and where failed questions lost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::Interval;
use crate::call::is_default;

/// Retrieval metrics by level and cut-off k.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalSummary {
    /// Evidence turns, by k.
    #[serde(deserialize_with = "by_k")]
    pub turn: BTreeMap<u32, RetrievalAtK>,
    /// Evidence sessions, by k.
    #[serde(deserialize_with = "by_k")]
    pub session: BTreeMap<u32, RetrievalAtK>,
    /// Whether recalls kept to the filters of their questions; absent where no question with one got a hit that is known by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filtered: Option<FilteredRecalls>,
}

/// Recalls of questions with a filter, of which some hit is known by its id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilteredRecalls {
    /// Recalls that were looked at.
    pub recalls: u64,
    /// Those with a hit that the filter does not admit.
    pub ignored: u64,
}

impl FilteredRecalls {
    /// Whether so many recalls went beyond their filter that it is no accident: one of twenty.
    #[must_use]
    pub const fn is_ignored(&self) -> bool {
        self.ignored > 0 && self.ignored * 20 >= self.recalls
    }
}

/// Reads figures by k. Up to version 3 of reports `precision` was what `precision_of_returned` is since: it is read as that.
fn by_k<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u32, RetrievalAtK>, D::Error> {
    let mut by_k = BTreeMap::<u32, RetrievalAtK>::deserialize(from)?;
    for at in by_k.values_mut().filter(|at| at.precision_of_returned.is_none()) {
        at.precision_of_returned = at.precision.take();
    }
    Ok(by_k)
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
    /// Gold ids among the first k, divided by k. Reports before version 4 give under this name what is `precision_of_returned`
    /// now, which they have not.
    pub precision: Option<f64>,
    /// Gold ids among the first k, divided by the ids that were returned (at most k).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_of_returned: Option<f64>,
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
    /// The same where the recall itself is graded: the evidence stands too far down, or beside what must not be there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recall_failed: u64,
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

/// What canaries have shown of a system that is another process: facts of the run's own that were stored beside the
/// dataset and asked for behind the last question, or in runs without facts a few turns of the dataset in the first
/// banks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanarySummary {
    /// Facts of the run's own were asked for, and not turns of the dataset.
    #[serde(default, skip_serializing_if = "is_default")]
    pub planted: bool,
    /// Banks that were asked.
    pub banks: u64,
    /// Facts that were asked for, or stored turns that were looked for by a half of their own words.
    pub asked: u64,
    /// Those of which a hit held what was not asked for.
    pub found: u64,
    /// Those for which no hit came at all.
    pub empty: u64,
    /// A hit held a whole turn as it was stored; of facts: nine of ten that were found came back word for word.
    pub verbatim: bool,
    /// Banks that were asked for what only another had been given.
    pub others_asked: u64,
    /// Those that had it, in the order of the banks.
    pub leaks: Vec<BankLeak>,
    /// Recalls that failed: what they asked for is counted nowhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: u64,
    /// Facts that did not come back, of those that their own banks were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<CanaryShare>,
    /// Some of them, as they were stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_facts: Vec<String>,
    /// Facts that came back from a bank that had not been given them, of those that it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaked: Option<CanaryShare>,
    /// Recalls that brought one and the same number of hits, fewer than were asked for and never more, of those for
    /// which their banks have as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<CanaryShare>,
    /// That number of hits; absent where nothing is clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped_at: Option<u32>,
}

/// A share of what was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryShare {
    /// Number of tries that it holds for.
    pub n: u64,
    /// Of how many.
    pub of: u64,
    /// `n / of`.
    pub share: f64,
    /// 95 % interval of the share.
    pub ci95: Interval,
}

/// A bank that holds what another was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BankLeak {
    /// The dataset's id of the bank that brought it back.
    pub asked: String,
    /// The dataset's id of the bank that it was given to.
    pub given: String,
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
    /// Mean prompt tokens of the answer calls that were paid, as the provider counts them, prompt included; null without one.
    pub mean_prompt_tokens: Option<f64>,
}

/// Why an answer is wrong, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// What the question rests on is not in the memory system, or not all of it.
    NotStored,
    /// It is there, and did not come back, or not all of it.
    NotRetrieved,
    /// It came back, and the answer is wrong all the same.
    AnsweredWrongly,
}

/// Why the answer to a question is wrong. What is not known is null, and never guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Which of the three it is; null where that is not known, where the dataset names no evidence, and where the recall
    /// itself is graded and brought all of it.
    pub kind: Option<CauseKind>,
    /// All that the question rests on is in the memory system: by its listing, or since it came back.
    pub stored: Option<bool>,
    /// All of it was among the hits.
    pub retrieved: Option<bool>,
}

/// How many of the wrong answers have a cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseSummary {
    /// Questions that have a score by the headline metric and did not pass.
    pub wrong: u64,
    /// What they rest on is not stored.
    pub not_stored: CauseShare,
    /// It is stored, and did not come back.
    pub not_retrieved: CauseShare,
    /// It came back.
    pub answered_wrongly: CauseShare,
    /// It is not known which of these.
    pub unknown: CauseShare,
}

/// A number of wrong answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseShare {
    /// Number of wrong answers.
    pub n: u64,
    /// Their share of all wrong answers.
    pub share: f64,
}

/// What banks hold behind their last question, as their memory system lists it. Canaries are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredSummary {
    /// Banks that were listed to their end.
    pub banks: u64,
    /// Banks whose listing failed before its end: what is not known of them is counted nowhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: u64,
    /// Why the first of these did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Banks that hold more than is listed of a bank.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cut: u64,
    /// Banks most of whose items are in words that nobody said: a text that is not found in them may be there in other words.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rewritten: u64,
    /// Items of all banks.
    pub items: u64,
    /// Turns and memories that the questions rest on.
    pub evidence: StoredEvidence,
    /// Items that hold words which nobody said, of all items of banks that are listed to their end in the words that were said; null
    /// without such a bank.
    pub unsaid: Option<StoredCount>,
    /// The beginnings of a few of these items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaid_examples: Vec<String>,
    /// Updates that went wrong; null where there were none, or nothing is known of them.
    pub updates: Option<StoredUpdates>,
    /// Memories that were withdrawn and are still there; null where there were none, or nothing is known of them.
    pub not_withdrawn: Option<StoredCount>,
}

/// How much of what the questions rest on is stored, by text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredEvidence {
    /// Turns and memories that are there.
    pub stored: u64,
    /// Those that are not.
    pub missing: u64,
    /// Those of which it is not known.
    pub unknown: u64,
    /// `stored` of those of which it is known; null when it is known of none.
    pub share: Option<f64>,
}

/// A count, and of how many it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredCount {
    /// Number of those that are counted.
    pub n: u64,
    /// Of how many.
    pub of: u64,
}

/// What became of updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredUpdates {
    /// Updates that can be looked for.
    pub of: u64,
    /// Those that went wrong.
    pub wrong: u64,
    /// Those after which the old text is still there.
    pub old_kept: u64,
    /// Those after which the new text is not.
    pub new_missing: u64,
}
