//! Step records: what a worker hands to the checkpoint writer (P7, P8), one per finished step of a task.
//!
//! Start reading at [`StepRecord`]: [`StepFacts`] is the small part that is read again, [`StepText`] the large one that is stored
//! apart, [`Effect`] what becomes of the task, [`StepNo`] the order within it. Read back, a step is a [`StoredStep`].

mod hits;
pub mod listing;
mod probe_part;
#[cfg(test)]
mod tests;
mod timing;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::listing::{Holdings, ListedPart};
pub use self::{
    hits::{HitLevel, PlacedBy, RankHits, Retrieval, RetrievedHit},
    probe_part::ProbePart,
    timing::{ReplyNote, SHORTEST_WAIT_US, Served, Timing, WaitFor},
};
use crate::{
    call::{CallRecord, Phase, Usage, is_default},
    failure::Failure,
    ids::{RunNo, TaskKey},
};

/// Number of a step within its task: a checkpoint's key is (run, task, step).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepNo(pub i32);

impl StepNo {
    /// Recall of a question.
    pub const RECALL: Self = Self(0);
    /// Answer of a question.
    pub const ANSWER: Self = Self(1);
    /// Deterministic scores of a question.
    pub const SCORE: Self = Self(2);
    /// What a model has phrased as its `number`th move at a question, from 0: queries, or the wish to answer.
    #[must_use]
    pub const fn phrase(number: u32) -> Self {
        Self(100 + 2 * number as i32)
    }

    /// The `number`th of several recalls of a question, from 0. What all of them find together is [`Self::RECALL`], stored when
    /// no further one follows: the next segment of the stream waits for that one (P6).
    #[must_use]
    pub const fn search(number: u32) -> Self {
        Self(101 + 2 * number as i32)
    }

    /// The last step of a judge task: the vote. The only one where a vote is one call.
    pub const JUDGE: Self = Self(0);
    /// The last step of a ready task.
    pub const READY: Self = Self(0);
    /// Consolidation, before the bank is ready (`--mode consolidated`).
    pub const CONSOLIDATE: Self = Self(1);
    /// The step that stores why a task was given up.
    pub const FAILED: Self = Self(1_000_000);

    /// Whether it is a move of a question's model, see [`Self::phrase`].
    #[must_use]
    pub const fn is_phrase(self) -> bool {
        self.0 >= 100 && self.0 < Self::FAILED.0 && self.0 % 2 == 0
    }

    /// Whether it is one of several recalls of a question, see [`Self::search`].
    #[must_use]
    pub const fn is_search(self) -> bool {
        self.0 > 100 && self.0 < Self::FAILED.0 && self.0 % 2 == 1
    }

    /// The step that retains stream entry number `position` of the bank (0-based).
    #[must_use]
    pub const fn retain(position: u32) -> Self {
        Self(position as i32)
    }

    /// The step that keeps the reply to call number `no` of a vote of several.
    #[must_use]
    pub const fn judge_call(no: u32) -> Self {
        Self(1 + no as i32)
    }

    /// The number of the call whose reply a step of a judge task keeps; none for the vote, and for its failure.
    #[must_use]
    pub const fn call_of_vote(self) -> Option<u32> {
        if self.0 > Self::JUDGE.0 && self.0 < Self::FAILED.0 { Some((self.0 - 1) as u32) } else { None }
    }
}

/// A finished step on its way into the store. Written once: the first record under a key stays (P3).
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Run of the task.
    pub run: RunNo,
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Number of the step within its task.
    pub step: StepNo,
    /// Lease epoch of the claim that made it; informative, results are accepted from any epoch.
    pub epoch: i64,
    /// Small, typed, read by aggregation and by later steps.
    pub facts: StepFacts,
    /// Large texts (answers, retrieved texts, raw replies) as JSON; stored compressed and apart.
    pub text: Option<StepText>,
    /// Paid attempts of this step.
    pub calls: Vec<CallRecord>,
    /// What storing this step does to its task.
    pub effect: Effect,
}

/// What storing a step does to its task and to what waits for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The task goes on with its next step.
    Continue,
    /// The task is done; `opens` become ready in the same transaction.
    Done {
        /// What becomes ready.
        opens: Opens,
    },
    /// The task is given up; the facts are [`StepFacts::Failed`].
    Failed,
}

/// What a finished task makes ready.
#[derive(Debug, Clone, PartialEq)]
pub enum Opens {
    /// Nothing: a question without model judges, or a judge's vote. The store lowers the question's counter; a question
    /// whose counter is 0 is reported for its conclusion.
    Nothing,
    /// The `ready` task of the segment (after `retain`).
    ReadyTask,
    /// All questions of the segment (after `ready`).
    SegmentQuestions,
    /// These judge tasks (after the scores of a question).
    Judges(Vec<TaskKey>),
}

/// The small part of a step, stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepFacts {
    /// A stream entry was retained.
    Retained {
        /// Generation of the bank it went into.
        generation: i64,
        /// Turns or memories written.
        turns: u64,
        /// Usage that the system reported.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// The system made something better of what was retained (`--mode consolidated`).
    Consolidated {
        /// Generation of the bank.
        generation: i64,
        /// Usage that the system reported.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// A page of what the bank holds was looked at, behind its last question.
    Listed(Box<ListedPart>),
    /// A segment was proven ready.
    Ready {
        /// Times it was polled; 0 where nothing was to be proven and canaries alone were asked, behind the last
        /// question.
        polls: u32,
        /// False when the system could only promise, not prove.
        proven: bool,
        /// That it is proven rests on storing having returned: nothing was asked.
        #[serde(default, skip_serializing_if = "is_default")]
        returned: bool,
        /// What the system said about itself and the bank then.
        #[serde(default, skip_serializing_if = "SystemStats::is_empty")]
        stats: SystemStats,
        /// What its canary showed; absent where none was sent in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        canary: Option<Canary>,
        /// What the bank holds; absent where that was not asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holdings: Option<Box<Holdings>>,
        /// Where the time went.
        timing: Timing,
    },
    /// A model has phrased what to search for, at the expense of a phase.
    Phrased {
        /// `recall` where it only rephrases the question, `answer` where it is the one that answers.
        phase: Phase,
        /// Usage of the phase.
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// One of several recalls of a question. What they found together is a [`StepFacts::Recalled`] without usage and time of
    /// its own.
    Searched {
        /// Generation of the bank that was read.
        generation: i64,
        /// Number of hits.
        hits: u32,
        /// Number asked for after the system's own limit.
        effective_k: u32,
        /// Usage that the system reported.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// A question's recall, or what its several recalls found together.
    Recalled {
        /// Generation of the bank that was read.
        generation: i64,
        /// Number of hits.
        hits: u32,
        /// Number asked for after the system's own limit.
        effective_k: u32,
        /// Length of the context handed to the answerer, in bytes.
        context_bytes: u64,
        /// Score that the system gave its best hit, on its own scale.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top1_score: Option<f64>,
        /// Ranks of the gold evidence.
        retrieval: Retrieval,
        /// Usage that the system reported.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// A question's answer.
    Answered {
        /// Why the model stopped, in the provider's word; `stop` when it was free to end.
        finish: String,
        /// Usage of the answer phase.
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// Deterministic scores.
    Scored {
        /// (metric, score in [0, 1]) in the run's scorer order.
        scores: Vec<(String, f64)>,
        /// The answer abstains by the dataset's rule.
        abstained: bool,
        /// Hash of the normalised answer (first 8 bytes of sha256 as a number), for the verdict "one answer everywhere".
        answer_hash: u64,
    },
    /// One vote of one judge.
    Judged {
        /// Grade in [0, 1]; absent where there is nothing to measure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score: Option<f64>,
        /// Scores by the judge's further metrics, without its name: those that were measured.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<(String, f64)>,
        /// Usage of the judge phase; that of a vote of several calls is with their steps.
        usage: Usage,
        /// Where the time went; of a vote of several calls, from its claim to its grade.
        timing: Timing,
    },
    /// The reply to one call of a vote of several.
    JudgedPart {
        /// Usage of the judge phase.
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// A part of the run's latency probe (P43).
    Probed(Box<ProbePart>),
    /// The task was given up.
    Failed {
        /// Why it failed.
        failure: Failure,
        /// Usage up to then.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
}

fn is_none_u32(value: &u32) -> bool {
    *value == 0
}

/// What canaries in a bank have shown (P45): whether it holds what it was given, whether it holds what another was
/// given, and whether a recall brings as many hits as are asked for. Their facts are asked for after the last question
/// of the bank; in runs without facts, turns of the dataset are looked for when it was proven ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Canary {
    /// Facts of the run's own were asked for, and not stored turns.
    #[serde(skip_serializing_if = "is_default")]
    pub planted: bool,
    /// Facts that were asked for, or stored turns that were looked for by a half of their own words.
    pub asked: u32,
    /// Those of which a hit held what was not asked for, of turns the other half.
    pub found: u32,
    /// Turns for which no hit came at all.
    pub empty: u32,
    /// A hit held a whole fact or turn as it was stored: the system does not rewrite.
    pub verbatim: bool,
    /// Facts of which that is so.
    #[serde(skip_serializing_if = "is_default")]
    pub whole: u32,
    /// The facts that were not found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Id of the other bank: the one whose facts were asked for here, or of stored turns the one that was asked for
    /// what only this one was given. Absent when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// What one bank holds leaks into the other.
    pub leaked: bool,
    /// Facts of the other bank that were asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub foreign: u32,
    /// Those of them that came back.
    #[serde(skip_serializing_if = "is_default")]
    pub foreign_found: u32,
    /// Hits of each recall for which the bank has as many as were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wide: Vec<u32>,
    /// Recalls that failed: what they asked for counts as not asked.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: u32,
    /// Usage that the system reported.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: Usage,
}

/// What a memory system says about itself and one bank.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemStats {
    /// Version that it reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its numbers about the bank, by its own names; `items` is what it holds, counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<String, f64>,
}

impl SystemStats {
    /// Whether it said nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.version.is_none() && self.numbers.is_empty()
    }
}

/// The large part of a step, stored as compressed JSON apart from the facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepText {
    /// What a model has phrased.
    Phrased {
        /// What to search for.
        queries: Vec<String>,
        /// The raw reply.
        raw: String,
    },
    /// What one of several recalls found.
    Searched {
        /// What was searched for.
        query: String,
        /// The hits, best first.
        hits: Vec<RetrievedHit>,
    },
    /// What came back from a recall, or from several together.
    Recalled {
        /// The hits, best first.
        hits: Vec<RetrievedHit>,
    },
    /// The answer.
    Answered {
        /// Text of the answer as it is scored.
        answer: String,
        /// The raw reply when it differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
        /// Ids that the answer cites.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        citations: Vec<String>,
    },
    /// A judgement.
    Judged {
        /// The judge's name (`openai:gpt-4o-mini`).
        judge: String,
        /// Number of the vote.
        vote: u32,
        /// The verdict in the judge's own word.
        verdict: String,
        /// The raw reply; empty for a vote of several calls, whose replies are with their steps.
        raw: String,
        /// Its grade, where a run was rebuilt from its texts: elsewhere the facts of the step have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grade: Option<f64>,
    },
    /// The reply to one call of a vote of several, read again by its form when the vote goes on.
    JudgedPart {
        /// The raw reply.
        raw: String,
    },
}

impl StepFacts {
    /// Where the time went; the scores of a question are not timed.
    #[must_use]
    pub const fn timing(&self) -> Option<&Timing> {
        match self {
            Self::Retained { timing, .. }
            | Self::Consolidated { timing, .. }
            | Self::Ready { timing, .. }
            | Self::Phrased { timing, .. }
            | Self::Searched { timing, .. }
            | Self::Recalled { timing, .. }
            | Self::Answered { timing, .. }
            | Self::Judged { timing, .. }
            | Self::JudgedPart { timing, .. }
            | Self::Failed { timing, .. } => Some(timing),
            Self::Probed(part) => Some(&part.timing),
            Self::Listed(part) => Some(&part.timing),
            Self::Scored { .. } => None,
        }
    }

    /// What it consumed.
    #[must_use]
    pub const fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Retained { usage, .. }
            | Self::Consolidated { usage, .. }
            | Self::Phrased { usage, .. }
            | Self::Searched { usage, .. }
            | Self::Recalled { usage, .. }
            | Self::Answered { usage, .. }
            | Self::Judged { usage, .. }
            | Self::JudgedPart { usage, .. }
            | Self::Failed { usage, .. } => Some(usage),
            Self::Probed(part) => Some(&part.usage),
            Self::Scored { .. } | Self::Ready { .. } | Self::Listed(_) => None,
        }
    }
}

/// A stored checkpoint, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStep {
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Number of the step within its task.
    pub step: StepNo,
    /// What it came to.
    pub facts: StepFacts,
}
