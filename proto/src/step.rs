//! Step records: what a worker hands to the checkpoint writer (P7, P8), one per finished step of a task.

mod probe_part;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::probe_part::ProbePart;
use crate::{
    call::{CallRecord, Usage, is_default},
    failure::Failure,
    ids::{RunNo, TaskKey},
    server::ServerAddress,
    text::acts,
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
    /// The only step of a judge task.
    pub const JUDGE: Self = Self(0);
    /// The last step of a ready task.
    pub const READY: Self = Self(0);
    /// Consolidation, before the bank is ready (`--mode consolidated`).
    pub const CONSOLIDATE: Self = Self(1);
    /// The step that stores why a task was given up.
    pub const FAILED: Self = Self(1_000_000);

    /// The step that retains stream entry number `position` of the bank (0-based).
    #[must_use]
    pub const fn retain(position: u32) -> Self {
        Self(position as i32)
    }
}

/// A finished step on its way into the store. Written once: the first record under a key stays (P3).
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Run of the task.
    pub run: RunNo,
    /// The task.
    pub task: TaskKey,
    /// The step.
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
    /// A segment was proven ready.
    Ready {
        /// Times it was polled.
        polls: u32,
        /// False when the system could only promise, not prove.
        proven: bool,
        /// What the system said about itself and the bank then.
        #[serde(default, skip_serializing_if = "SystemStats::is_empty")]
        stats: SystemStats,
        /// What its canary showed; absent where none was sent in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        canary: Option<Canary>,
        /// Where the time went.
        timing: Timing,
    },
    /// A question's recall.
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
        /// Grade in [0, 1].
        score: f64,
        /// Usage of the judge phase.
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
    /// A part of the run's latency probe (P43).
    Probed(Box<ProbePart>),
    /// The task was given up.
    Failed {
        /// Why.
        failure: Failure,
        /// Usage up to then.
        #[serde(default)]
        usage: Usage,
        /// Where the time went.
        timing: Timing,
    },
}

/// Where the time of a step went, in microseconds; the compact span of P20.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Start as microseconds since 1970 (database or process clock; only for display).
    #[serde(rename = "at")]
    pub started_us: i64,
    /// From ready to claimed (first step of a task only).
    #[serde(rename = "q", skip_serializing_if = "is_zero")]
    pub queue_wait_us: u64,
    /// The part of `queue_wait_us` before the task was published.
    #[serde(rename = "d", skip_serializing_if = "is_zero")]
    pub dispatch_us: u64,
    /// Waiting for pace, for a free connection slot of the account, or for a retry's delay.
    #[serde(rename = "w", skip_serializing_if = "is_zero")]
    pub rate_wait_us: u64,
    /// Inside calls to the memory system or model.
    #[serde(rename = "p", skip_serializing_if = "is_zero")]
    pub provider_us: u64,
    /// Whole step, waits included, queue wait excluded.
    #[serde(rename = "t")]
    pub total_us: u64,
    /// The part of `total_us` in which the step built what it then used: an index, embeddings of a bank, a server that it started.
    #[serde(rename = "b", skip_serializing_if = "is_zero")]
    pub build_us: u64,
    /// The part of `total_us` in which it waited for another that built the same.
    #[serde(rename = "bw", skip_serializing_if = "is_zero")]
    pub build_wait_us: u64,
    /// Operations of the run that this worker had in flight at the same system or model when this one began, itself counted; 0 when
    /// nobody noted it.
    #[serde(rename = "f", skip_serializing_if = "is_none_u32")]
    pub in_flight: u32,
    /// Attempts made; 1 when nothing had to be repeated.
    #[serde(rename = "n")]
    pub attempts: u32,
    /// One entry per call: (start offset, duration, HTTP status or 0).
    #[serde(rename = "c", skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(u64, u64, u16)>,
    /// What those of the calls said that were answered, in their order.
    #[serde(rename = "r", skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ReplyNote>,
    /// Waits long enough to be seen: (start offset, duration, what for).
    #[serde(rename = "v", skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<(u64, u64, WaitFor)>,
    /// Where the calls went; none when nothing was sent to a server.
    #[serde(rename = "h", skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// Number of the worker session that did it; 0 when nobody noted it.
    #[serde(rename = "s", skip_serializing_if = "is_nobody")]
    pub session: i64,
}

impl Timing {
    /// Microseconds of the step's own operation: building, and waiting for it, are a phase of their own (P43).
    #[must_use]
    pub const fn operation_us(&self) -> u64 {
        self.total_us.saturating_sub(self.build_us).saturating_sub(self.build_wait_us)
    }

    /// Adds calls, waits and replies that were timed from a moment `offset_us` after the begin of the step.
    pub fn add_calls(
        &mut self,
        calls: &[(u64, u64, u16)],
        waits: &[(u64, u64, WaitFor)],
        replies: &[ReplyNote],
        offset_us: u64,
    ) {
        let before = self.calls.len();
        self.replies.extend(replies.iter().map(|reply| ReplyNote { call: reply.call + before, ..reply.clone() }));
        self.calls.extend(calls.iter().map(|&(at, took, status)| (at + offset_us, took, status)));
        self.waits.extend(waits.iter().map(|&(at, took, what)| (at + offset_us, took, what)));
    }
}

/// What the reply to a call said of itself. Stored as `[call, prompt tokens, completion tokens, model, fingerprint]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ReplyRow", into = "ReplyRow")]
pub struct ReplyNote {
    /// Which of the step's calls it answered, from 0.
    pub call: usize,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// The model that answered, and its make.
    pub served: Served,
}

type ReplyRow = (usize, u64, u64, String, Option<String>);

impl From<ReplyRow> for ReplyNote {
    fn from((call, prompt_tokens, completion_tokens, model, fingerprint): ReplyRow) -> Self {
        Self { call, prompt_tokens, completion_tokens, served: Served { model, fingerprint } }
    }
}

impl From<ReplyNote> for ReplyRow {
    fn from(note: ReplyNote) -> Self {
        (note.call, note.prompt_tokens, note.completion_tokens, note.served.model, note.served.fingerprint)
    }
}

/// A model as its provider names it in a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Served {
    /// The model's name; empty when the reply had none.
    pub model: String,
    /// `system_fingerprint`: what the provider ran it with, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// Longest name that is taken from a reply, in characters: others write them.
const LONGEST_NAME: usize = 128;

impl Served {
    /// The names in a reply, cut to what names can be.
    #[must_use]
    pub fn named(model: &str, fingerprint: Option<&str>) -> Self {
        let name = |text: &str| -> String { text.chars().filter(|c| !acts(*c)).take(LONGEST_NAME).collect() };
        Self { model: name(model), fingerprint: fingerprint.map(name).filter(|name| !name.is_empty()) }
    }
}

/// What a step waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitFor {
    /// The allowance of an account: pace, a place among the calls in flight, Retry-After.
    #[serde(rename = "p")]
    Pace,
    /// Money of other attempts that may come back.
    #[serde(rename = "m")]
    Budget,
    /// The delay before another attempt.
    #[serde(rename = "r")]
    Retry,
}

impl WaitFor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pace, Self::Budget, Self::Retry];

    /// Its word in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pace => "rate_wait",
            Self::Budget => "budget_wait",
            Self::Retry => "retry_wait",
        }
    }
}

/// Waits shorter than this are not stored one by one: they are part of [`Timing::rate_wait_us`] all the same.
pub const SHORTEST_WAIT_US: u64 = 1_000;

fn is_nobody(session: &i64) -> bool {
    *session == 0
}

fn is_none_u32(value: &u32) -> bool {
    *value == 0
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Ranks of gold evidence among the hits, at both levels; all retrieval metrics at any k follow from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retrieval {
    /// Level of turns.
    pub turn: RankHits,
    /// Level of sessions (hits reduced to their first hit per session).
    pub session: RankHits,
    /// Gold turns that were never retained before the question was asked (cut sessions): nobody could have found them.
    #[serde(skip_serializing_if = "is_none_u32")]
    pub unretained: u32,
}

impl Retrieval {
    /// The ranks of gold evidence among `hits`: (id, session, level) each, best first.
    ///
    /// Where hits came and none of them is known to be a turn, nothing can be said at the level of turns: it has no ground truth.
    #[must_use]
    pub fn of<'a>(
        hits: impl Iterator<Item = (&'a str, &'a str, Option<HitLevel>)> + Clone,
        evidence_turns: &'a [String],
        evidence_sessions: &'a [String],
    ) -> Self {
        let is_turn = |level: Option<HitLevel>| matches!(level, None | Some(HitLevel::Turn));
        let no_turns = hits.clone().next().is_some() && !hits.clone().any(|(_, _, level)| is_turn(level));
        let turns = if no_turns { &[][..] } else { evidence_turns };
        Self {
            turn: RankHits::of(hits.clone().map(|(id, ..)| id), turns.iter().map(String::as_str)),
            session: RankHits::of(hits.map(|(_, session, _)| session), evidence_sessions.iter().map(String::as_str)),
            unretained: 0,
        }
    }
}

/// Ranks of gold ids in a deduplicated ranked list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankHits {
    /// Number of distinct gold ids; 0 means "no ground truth".
    pub gold: u32,
    /// Length of the deduplicated ranked list.
    pub ranked: u32,
    /// 1-based ranks at which gold ids stand, ascending.
    pub ranks: Vec<u32>,
}

impl RankHits {
    /// Finds the ranks of `gold` in `ranked`; both are deduplicated first, order kept.
    #[must_use]
    pub fn of<'a>(ranked: impl IntoIterator<Item = &'a str>, gold: impl IntoIterator<Item = &'a str>) -> Self {
        let gold: std::collections::HashSet<&str> = gold.into_iter().collect();
        let mut seen = std::collections::HashSet::new();
        let mut hits = Self { gold: gold.len() as u32, ranked: 0, ranks: Vec::new() };
        for id in ranked {
            if seen.insert(id) {
                hits.ranked += 1;
                if gold.contains(id) {
                    hits.ranks.push(hits.ranked);
                }
            }
        }
        hits
    }
}

/// What a few recalls in a bank that was just proven ready have shown (P45): whether it holds what it was given, and whether
/// another bank holds it too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Canary {
    /// Stored turns that were looked for by a half of their own words.
    pub asked: u32,
    /// Those of which a hit held the other half.
    pub found: u32,
    /// Those for which no hit came at all.
    pub empty: u32,
    /// A hit held a whole turn as it was stored: the system does not rewrite.
    pub verbatim: bool,
    /// Id of another bank that was asked for what only this one was given; absent when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// And it had it.
    pub leaked: bool,
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
    /// What came back from a recall.
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
        /// The raw reply.
        raw: String,
    },
}

/// One hit of a recall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RetrievedHit {
    /// Id of the turn or memory.
    pub id: String,
    /// Id of its session.
    pub session_id: String,
    /// The system's score, when it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The text that is handed to the answerer.
    pub text: String,
    /// How it is known what of the dataset it is. Absent where it is not known, where a built-in system made it from the stored
    /// turn itself, and in what was stored before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<PlacedBy>,
    /// How exactly it is known; absent as above, and then taken for a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<HitLevel>,
}

/// How a hit was found again among what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacedBy {
    /// By an id that the system handed back, or that stood before its text.
    Id,
    /// By its text: it is that of a stored item, letter by letter.
    Text,
}

/// What of the dataset a hit is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitLevel {
    /// A turn, or a single memory.
    Turn,
    /// Something of a session.
    Session,
    /// Nothing is known of it.
    Unknown,
}

impl StepFacts {
    /// Where the time went; the scores of a question are not timed.
    #[must_use]
    pub const fn timing(&self) -> Option<&Timing> {
        match self {
            Self::Retained { timing, .. }
            | Self::Consolidated { timing, .. }
            | Self::Ready { timing, .. }
            | Self::Recalled { timing, .. }
            | Self::Answered { timing, .. }
            | Self::Judged { timing, .. }
            | Self::Failed { timing, .. } => Some(timing),
            Self::Probed(part) => Some(&part.timing),
            Self::Scored { .. } => None,
        }
    }

    /// What it consumed.
    #[must_use]
    pub const fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Retained { usage, .. }
            | Self::Consolidated { usage, .. }
            | Self::Recalled { usage, .. }
            | Self::Answered { usage, .. }
            | Self::Judged { usage, .. }
            | Self::Failed { usage, .. } => Some(usage),
            Self::Probed(part) => Some(&part.usage),
            Self::Scored { .. } | Self::Ready { .. } => None,
        }
    }
}

/// A stored checkpoint, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStep {
    /// The task.
    pub task: TaskKey,
    /// The step.
    pub step: StepNo,
    /// Its facts.
    pub facts: StepFacts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_stored_as_rows_and_those_of_other_releases_are_read() {
        let mut timing = Timing { calls: vec![(0, 5, 429)], ..Timing::default() };
        let served = Served::named("gpt-4o-mini-2024-07-18\u{0}", Some(&"x".repeat(500)));
        assert_eq!(
            (served.model.as_str(), served.fingerprint.as_ref().map(String::len)),
            ("gpt-4o-mini-2024-07-18", Some(128))
        );
        let note =
            ReplyNote { call: 0, prompt_tokens: 7, completion_tokens: 2, served: Served::named("m", Some("fp")) };
        timing.add_calls(&[(1, 2, 200)], &[], &[note], 10);
        assert_eq!((timing.calls[1], timing.replies[0].call), ((11, 2, 200), 1));
        let stored = serde_json::to_string(&timing).expect("serialises");
        assert!(stored.contains(r#""r":[[1,7,2,"m","fp"]]"#), "{stored}");
        assert_eq!(serde_json::from_str::<Timing>(&stored).expect("is read"), timing);
        let before = stored.replace(r#","r":[[1,7,2,"m","fp"]]"#, "");
        assert!(serde_json::from_str::<Timing>(&before).expect("is read").replies.is_empty());
    }

    #[test]
    fn ranks_count_each_id_once() {
        let hits = RankHits::of(["a", "b", "a", "c", "d"], ["c", "a", "x"]);
        assert_eq!(hits, RankHits { gold: 3, ranked: 4, ranks: vec![1, 3] });
    }

    #[test]
    fn p45_hits_without_a_turn_say_nothing_about_turns() {
        let (turns, sessions) = (["D1:3".to_owned()], ["D1".to_owned()]);
        let of = |hits: &[(&'static str, HitLevel)]| {
            Retrieval::of(hits.iter().map(|(id, level)| (*id, "D1", Some(*level))), &turns, &sessions)
        };
        let by_session = of(&[("hit-1", HitLevel::Session), ("hit-2", HitLevel::Unknown)]);
        assert_eq!((by_session.turn.gold, by_session.session.ranks), (0, vec![1]));
        let mixed = of(&[("hit-1", HitLevel::Session), ("D1:3", HitLevel::Turn)]);
        assert_eq!((mixed.turn.gold, mixed.turn.ranks), (1, vec![2]));
        assert_eq!(of(&[]).turn, RankHits { gold: 1, ranked: 0, ranks: vec![] }, "what was not found was not found");
    }

    #[test]
    fn a_hit_that_an_earlier_release_stored_is_read_and_a_plain_one_is_written_as_it_was() {
        let old = r#"{"id":"D1:3","session_id":"D1","score":1.5,"text":"Ann: hello"}"#;
        let hit: RetrievedHit = serde_json::from_str(old).expect("reads");
        assert_eq!((hit.placed_by, hit.level), (None, None));
        assert_eq!(serde_json::to_string(&hit).expect("writes"), old);
    }
}
