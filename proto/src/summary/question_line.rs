//! One line of `questions.jsonl`: everything that is known of one question.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, UsageFigures};
use crate::{
    facts::{Outcome, PhaseTimes, PhaseUsage},
    retrieval::RetrievalMetrics,
    scenario::AnsweredBy,
    step::{HitLevel, PlacedBy, RankHits, Retrieval},
};

/// A question with its texts. The JSON Schema is published as `proto/schema/question.schema.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionLine {
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank.
    pub bank_id: String,
    /// The dataset's kind of question.
    pub category: String,
    /// What it counts as beside its category: facet → value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    /// The question's text.
    pub question: String,
    /// The expected answer as a person reads it; null when the dataset has none.
    pub gold: Option<String>,
    /// The answer as it was scored; null when there is none.
    pub answer: Option<String>,
    /// Whose the answer is, in the scenario reflect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// How it ended.
    pub outcome: Outcome,
    /// Metric → score in [0, 1].
    pub scores: BTreeMap<String, f64>,
    /// The hits, best first; of several recalls those that they found together.
    pub retrieved: Vec<RetrievedLine>,
    /// What several recalls searched for, in their order, and how many hits each found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchLine>,
    /// Ids of the turns that hold the evidence, by the dataset.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Ids of the sessions that hold it.
    #[serde(default)]
    pub evidence_sessions: Vec<String>,
    /// Evidence session → its id in the dataset's files, where that would have told a memory system that it is evidence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub original_sessions: BTreeMap<String, String>,
    /// How much of the evidence is among the hits: `turn` and `session` as far as the dataset names it → figures of the whole list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<String, FoundLine>,
    /// Ids that the answer cites.
    pub citations: Vec<String>,
    /// Prompts that were used for it, by their names in `spec.prompts` of the report.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// Where it lost, when it failed: the names of [`super::FailureAttribution`], and what else is known.
    pub failures: Vec<String>,
    /// Why its answer is wrong; absent when it is not, and where it has no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Votes of the model judges.
    pub judgements: Vec<JudgementLine>,
    /// `code: message` of an `infra_error`.
    pub error: Option<String>,
    /// Usage per phase.
    pub usage: PhaseUsageLine,
    /// Times in milliseconds.
    pub timing_ms: TimingLine,
    /// 32 hexadecimal characters.
    pub trace_id: String,
    /// Where the trace is to be seen: when it was kept, and the run knows a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
    /// Attempts over all steps.
    pub attempts: u32,
}

/// How much of a question's evidence is among its hits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundLine {
    /// Evidence that is among the hits.
    pub relevant: u32,
    /// Evidence that there is.
    pub of: u32,
    /// The part of the hits that is evidence; each turn or session counts once. 0 without hits.
    pub precision: f64,
    /// 1 / rank of the first evidence; 0 where none was found.
    pub reciprocal_rank: f64,
}

impl FoundLine {
    /// The figures of both levels, as far as they have ground truth.
    #[must_use]
    pub fn of_levels(retrieval: &Retrieval) -> BTreeMap<String, Self> {
        let levels = [("turn", &retrieval.turn), ("session", &retrieval.session)];
        let told = |(level, hits): (&str, &RankHits)| {
            let all = RetrievalMetrics::at(hits, hits.ranked.max(1))?;
            let relevant = hits.ranks.iter().filter(|rank| **rank > 0).count() as u32;
            let (precision, reciprocal_rank) = (all.precision_of_returned, all.mrr);
            Some((level.to_owned(), Self { relevant, of: hits.gold, precision, reciprocal_rank }))
        };
        levels.into_iter().filter_map(told).collect()
    }
}

/// One of several recalls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchLine {
    /// What was searched for.
    pub query: String,
    /// Number of hits.
    pub hits: u64,
}

/// One hit of a recall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievedLine {
    /// Id of the turn or memory.
    pub id: String,
    /// The dataset's id of the session that it comes from.
    pub session_id: String,
    /// The system's score, when it gives one.
    pub score: Option<f64>,
    /// What was shown to the answerer of it, as the memory system gave it back.
    pub text: String,
    /// How it is known what of the dataset it is; null when it is not known, or was not noted.
    #[serde(default)]
    pub placed_by: Option<PlacedBy>,
    /// What of the dataset it is known to be; null when it was not noted.
    #[serde(default)]
    pub level: Option<LineLevel>,
    /// What else the system said of it, by the names of its adapter (`details` of its `hits`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, serde_json::Value>,
}

/// What of the dataset a hit is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineLevel {
    /// A turn, or a single memory.
    Turn,
    /// Something of a session.
    Session,
    /// Something else: a fact, a summary or an entity of the system's own, or a text that nobody stored. `unknown` in files of
    /// earlier builds.
    #[serde(alias = "unknown")]
    Other,
}

impl From<HitLevel> for LineLevel {
    fn from(level: HitLevel) -> Self {
        match level {
            HitLevel::Turn => Self::Turn,
            HitLevel::Session => Self::Session,
            HitLevel::Unknown => Self::Other,
        }
    }
}

impl From<LineLevel> for HitLevel {
    fn from(level: LineLevel) -> Self {
        match level {
            LineLevel::Turn => Self::Turn,
            LineLevel::Session => Self::Session,
            LineLevel::Other => Self::Unknown,
        }
    }
}

/// One vote of one judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgementLine {
    /// The judge as `provider:name`.
    pub judge: String,
    /// Number of the vote.
    pub vote: u32,
    /// The verdict in the judge's own word.
    pub verdict: String,
    /// The raw reply; empty when the vote was several calls.
    pub raw: String,
    /// The raw replies of a vote of several calls, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Its grade, where the judge has several votes; null where there was nothing to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<f64>,
    /// Of several votes of a judge, the one whose grade is nearest their median: its words speak for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

impl JudgementLine {
    /// The judgements that speak for their judges: of several votes the chosen one, else all of them.
    pub fn speaking(all: &[Self]) -> impl Iterator<Item = &Self> {
        let chose = |judge: &str| all.iter().any(|line| line.chosen && line.judge == judge);
        all.iter().filter(move |line| line.chosen || !chose(&line.judge))
    }

    /// What the model said: its reply, or those to all calls of the vote.
    #[must_use]
    pub fn said(&self) -> std::borrow::Cow<'_, str> {
        if self.calls.is_empty() { self.raw.as_str().into() } else { self.calls.join("\n").into() }
    }
}

/// Usage of a question per phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseUsageLine {
    /// Of all its recalls.
    pub recall: UsageFigures,
    /// Of whoever answered it.
    pub answer: UsageFigures,
    /// Of all votes of all judges.
    pub judge: UsageFigures,
}

impl From<&PhaseUsage> for PhaseUsageLine {
    fn from(usage: &PhaseUsage) -> Self {
        Self { recall: (&usage.recall).into(), answer: (&usage.answer).into(), judge: (&usage.judge).into() }
    }
}

/// Times of a question in milliseconds; null where a phase did not happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimingLine {
    /// Searching the memory system.
    pub recall: Option<f64>,
    /// Making the answer, of whoever answered.
    pub answer: Option<f64>,
    /// Judge (slowest vote).
    pub judge: Option<f64>,
    /// All phases together.
    pub question: f64,
    /// Waiting in queues.
    pub queue_wait: f64,
    /// Waiting for pace, connection slots and retries.
    pub rate_wait: f64,
}

impl From<&PhaseTimes> for TimingLine {
    fn from(times: &PhaseTimes) -> Self {
        let ms = |us: u64| us as f64 / 1e3;
        Self {
            recall: times.recall_us.map(ms),
            answer: times.answer_us.map(ms),
            judge: times.judge_us.map(ms),
            question: ms(times.question_us),
            queue_wait: ms(times.queue_wait_us),
            rate_wait: ms(times.rate_wait_us),
        }
    }
}
