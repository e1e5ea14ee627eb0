//! What goes into and comes out of the store.

use std::collections::BTreeMap;

use bench_proto::{
    call::{CallRecord, Phase},
    facts::QuestionFacts,
    ids::{Role, RunId, RunNo, Sha256Hash, TaskKey},
    money::PicoUsd,
    outage::{Outage, SessionEvidence},
    spec::RunSpec,
    step::StepFacts,
};
use serde::{Deserialize, Serialize};

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Work goes on (or its owner died: the lock tells).
    Running,
    /// Held, resumable; the reason says why.
    Paused,
    /// Ended by a user.
    Cancelled,
    /// All questions ended.
    Finished,
}

/// Reason of a cancelled run whose calls in flight are dropped (`cancel --now`).
pub const CANCELLED_NOW: &str = "cancelled by a user, at once";

/// Reason of a paused control that nobody has started yet (P41).
pub const MEASURED_FIRST: &str = "the measured run goes first";

/// Kind of the run event that names a run whose stored replies were used.
pub const SHARED_CALLS_EVENT: &str = "calls_of";

/// Kind of the run events that say what answered its calls: a `ServedNote` as JSON.
pub const SERVED_EVENT: &str = "served";

/// Kind of the run event that says which worker session does not take the run, and why: `<session> <name>: <reason>` (P42).
pub const SYSTEM_REFUSED_EVENT: &str = "system_refused";

/// Kind of the run event that says which of its banks were removed from its memory system.
pub const BANKS_GONE_EVENT: &str = "banks_gone";

/// Kind of the events that tell that the store went back in time, and what was brought back (P44).
pub const WENT_BACK_EVENT: &str = "store_went_back";

impl RunState {
    /// The state's word, also in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }

    /// The state behind a word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Paused, Self::Cancelled, Self::Finished].into_iter().find(|s| s.name() == name)
    }
}

/// What calls of a model used on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallProfile {
    /// The phase that paid.
    pub phase: Phase,
    /// Number of calls that were looked at.
    pub calls: u64,
    /// Prompt tokens.
    pub prompt_tokens: f64,
    /// Completion tokens.
    pub completion_tokens: f64,
    /// Microseconds from send to the end of the reply.
    pub duration_us: f64,
}

/// A run that is to be created (in state `running`).
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Public id.
    pub run_id: RunId,
    /// Name for people.
    pub name: Option<String>,
    /// Tags for people.
    pub tags: Vec<String>,
    /// Who created it (`latest` is per user).
    pub user: String,
    /// Effective settings.
    pub spec: RunSpec,
    /// Id shared by runs that may use each other's calls (P9): the run's own id unless it was forked.
    pub lineage: String,
    /// The run it is a control of; controls are left out of `latest` and `list`.
    pub control_of: Option<RunNo>,
    /// Where its tasks are dispatched (P21): `local` or a cluster's name.
    pub domain: String,
    /// True for runs made of results from elsewhere.
    pub imported: bool,
    /// Build that created it.
    pub code_version: String,
    /// The group that it belongs to (P41); a run that a command starts alone needs none.
    pub group: Option<NewGroup>,
    /// Created paused, for the reason [`MEASURED_FIRST`].
    pub waits: bool,
}

/// The group of a run that is to be created; the first run of a group creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// Public id: that of the run that the others belong to.
    pub id: String,
    /// Its cap; where the group is there already, its own stays.
    pub cap: Option<PicoUsd>,
}

/// The group of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunGroup {
    /// Row number.
    pub group_no: i64,
    /// Public id.
    pub id: String,
}

/// Money of a group: the sums of its runs, in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// Public id.
    pub id: String,
    /// The cap, if there is one.
    pub cap: Option<PicoUsd>,
    /// Booked, uncertain attempts included.
    pub spent: PicoUsd,
    /// Reserved by all processes.
    pub reserved: PicoUsd,
    /// Its runs.
    pub runs: u64,
}

/// What became of a run that was to be created.
#[derive(Debug, Clone, PartialEq)]
pub enum Creation {
    /// It is new.
    Made(RunNo),
    /// Somebody was quicker: the run that has this id.
    Found(Box<RunRow>),
}

/// A run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Row number.
    pub run_no: RunNo,
    /// Public id.
    pub run_id: RunId,
    /// Name for people.
    pub name: Option<String>,
    /// Tags for people.
    pub tags: Vec<String>,
    /// Who created it.
    pub user: String,
    /// Effective settings; `limits` are the current ones, the cap of a run in a group is the group's.
    pub spec: RunSpec,
    /// The group that it belongs to.
    pub group: Option<RunGroup>,
    /// See [`NewRun::lineage`].
    pub lineage: String,
    /// See [`NewRun::control_of`].
    pub control_of: Option<RunNo>,
    /// See [`NewRun::domain`].
    pub domain: String,
    /// See [`NewRun::imported`].
    pub imported: bool,
    /// See [`NewRun::code_version`].
    pub code_version: String,
    /// Current state.
    pub state: RunState,
    /// Raised by every change of state or limits (P23).
    pub state_version: i64,
    /// Why it is in this state, for people.
    pub reason: Option<String>,
    /// Creation, milliseconds since 1970.
    pub created_ms: i64,
    /// End (finished or cancelled).
    pub finished_ms: Option<i64>,
    /// Milliseconds spent in state `running`, closed intervals only.
    pub active_ms: i64,
    /// Start of the open interval in state `running`.
    pub active_since_ms: Option<i64>,
    /// Times it was resumed.
    pub resumed_times: i64,
    /// All banks have been written to the plan.
    pub planned: bool,
    /// Raised by `retry` and `resume`: results of different versions are different files.
    pub result_version: i64,
    /// Counters for progress.
    pub counters: RunCounters,
}

impl RunRow {
    /// A control that nobody has started yet: the measured run goes first (P41).
    #[must_use]
    pub fn waits(&self) -> bool {
        self.state == RunState::Paused && self.reason.as_deref() == Some(MEASURED_FIRST)
    }
}

/// Counters of a run, kept by the transactions that change them; a cache for progress, never for results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCounters {
    /// Banks written to the plan.
    pub banks_planned: i64,
    /// Banks proven ready (all segments).
    pub banks_ready: i64,
    /// Stream entries in the plan.
    pub entries_planned: i64,
    /// Stream entries retained.
    pub entries_retained: i64,
    /// Questions that ended as scored.
    pub scored: i64,
    /// Questions that ended as abstained.
    pub abstained: i64,
    /// Questions that ended as infra_error.
    pub infra_error: i64,
    /// Questions answered (answer step stored), for progress between answer and judge.
    pub answered: i64,
    /// Sum of the headline scores of scored and abstained questions.
    pub headline_sum: f64,
    /// Spent, uncertain attempts included at their worst case.
    pub spent: PicoUsd,
    /// The uncertain part of `spent`: attempts of which nobody knows what they cost, at their worst case.
    pub uncertain: PicoUsd,
    /// Worst cases of attempts under way; not part of `spent`.
    #[serde(default)]
    pub reserved: PicoUsd,
    /// What attempts cost beyond their own worst case; part of `spent`.
    #[serde(default)]
    pub overdraft: PicoUsd,
}

impl RunCounters {
    /// Questions that ended.
    #[must_use]
    pub const fn ended(&self) -> i64 {
        self.scored + self.abstained + self.infra_error
    }
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only ids that start with this.
    pub id_prefix: Option<String>,
    /// Only of this user.
    pub user: Option<String>,
    /// Also runs that are controls of others.
    pub controls: bool,
    /// Only controls of this run.
    pub control_of: Option<RunNo>,
    /// At most so many.
    pub limit: Option<u32>,
}

/// A compressed piece of a dataset, shared by all runs that need it (P16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// sha256 of `bytes`.
    pub hash: Sha256Hash,
    /// JSON, uncompressed; the store compresses.
    pub bytes: Vec<u8>,
}

impl Item {
    /// The item of some bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { hash: Sha256Hash::of(&bytes), bytes }
    }
}

/// A part of a bank's stream between two question points (P6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Number of stream entries retained when the segment is complete (cumulative).
    pub until: u32,
    /// Indexes of the sample's questions that may be asked then, ascending.
    pub questions: Vec<u32>,
}

/// A bank that is to be planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBank {
    /// Number within the run: the order of work (longest first).
    pub bank_no: u32,
    /// The dataset's id.
    pub bank_id: String,
    /// Item with the [`bench_proto::dataset::BankContent`].
    pub content: Sha256Hash,
    /// Item with the sample's questions.
    pub questions: Sha256Hash,
    /// Item with their gold records.
    pub gold: Sha256Hash,
    /// Segments; at least one.
    pub segments: Vec<Segment>,
}

/// State of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BankState {
    /// Being retained.
    Building,
    /// The current segment is proven ready.
    Ready,
    /// Given up; the reason says why.
    Failed,
}

/// A bank as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankRow {
    /// Number within the run.
    pub bank_no: u32,
    /// The dataset's id.
    pub bank_id: String,
    /// Row id of the bank: part of its names in memory systems ([`BankRow::name_of`], P5).
    pub bank_row: i64,
    /// See [`NewBank`].
    pub content: Sha256Hash,
    /// See [`NewBank`].
    pub questions: Sha256Hash,
    /// See [`NewBank`].
    pub gold: Sha256Hash,
    /// See [`NewBank`].
    pub segments: Vec<Segment>,
    /// Generation: raised when it cannot be known what was written.
    pub generation: i64,
    /// The memory system's handle of the current generation.
    pub handle: Option<String>,
    /// State.
    pub state: BankState,
    /// Stream entries retained in the current generation.
    pub position: u32,
    /// Current segment.
    pub segment: u32,
    /// Recalls of the current segment that are still open: the next segment opens at 0.
    pub open_recalls: i64,
    /// Why it failed.
    pub reason: Option<String>,
    /// From which generation on which incarnation of the store is part of the name: `2:83 `, as often as it changed (P44).
    pub namespaces: String,
    /// The generation began in an earlier incarnation of the store: what was written since may be forgotten (P44).
    pub outdated: bool,
}

impl BankRow {
    /// The bank's name in a memory system: `bench-<bank row>-g<generation>`, and `-i<incarnation>` where the generation began after
    /// the store went back in time, so that it never meets a name that was given and forgotten.
    #[must_use]
    pub fn name_of(&self, generation: i64) -> String {
        self.name_among(generation, |from| from <= generation)
    }

    /// Names that a generation may have had before the store forgot that it had begun.
    #[must_use]
    pub fn forgotten_names(&self) -> Vec<(i64, String)> {
        let begun = self.incarnations().filter(|(from, _)| *from <= self.generation);
        begun.map(|(from, _)| (from, self.name_among(from, |earlier| earlier < from))).collect()
    }

    fn incarnations(&self) -> impl Iterator<Item = (i64, i64)> {
        let numbers = self.namespaces.split_ascii_whitespace().filter_map(|part| part.split_once(':'));
        numbers.filter_map(|(from, incarnation)| Some((from.parse().ok()?, incarnation.parse().ok()?)))
    }

    fn name_among(&self, generation: i64, counts: impl Fn(i64) -> bool) -> String {
        let name = format!("bench-{}-g{generation}", self.bank_row);
        match self.incarnations().filter(|(from, _)| counts(*from)).last() {
            Some((_, incarnation)) => format!("{name}-i{incarnation:x}"),
            None => name,
        }
    }
}

/// A ready task that has not been published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyTask {
    /// The task.
    pub task: TaskKey,
    /// Times it was published before.
    pub publish_count: i32,
    /// Its lease epoch: a claim raises it.
    pub epoch: i64,
}

/// A worker session (P4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionId(pub i64);

/// What a renewal of a session has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The session goes on.
    Alive(Told),
    /// A supervisor has ended it.
    Ended,
    /// The store has never heard of it: it went back to a time before the session (P44).
    Unknown,
}

/// What the store knows of a session (P44).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Renewals so far.
    pub counter: i64,
    /// Number of the last batch of which none before it is missing.
    pub mark: i64,
    /// The store's incarnation.
    pub incarnation: i64,
}

/// Which batch of a session is committed (P44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMark {
    /// The session.
    pub session: SessionId,
    /// Number of the batch: 1 for the first, then one more for each.
    pub number: i64,
}

/// A session as its process knows it (P44).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The session.
    pub session: SessionId,
    /// Name of its worker.
    pub worker: String,
    /// Its domain.
    pub domain: String,
    /// What the worker says about itself.
    pub info_json: String,
    /// Renewals that were acknowledged.
    pub counter: i64,
    /// Batches that were acknowledged and are stored.
    pub mark: i64,
}

/// What a leader is told when it renews its lead (P44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadTold {
    /// Renewals so far.
    pub counter: i64,
    /// The store's incarnation.
    pub incarnation: i64,
}

/// Which of its lives a store is in (P44).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// 0 until it went back in time for the first time, then a random number.
    pub number: i64,
    /// Milliseconds since it changed, by the store's clock, for people.
    pub age_ms: i64,
    /// Why it changed; empty when it never did.
    pub note: String,
}

/// An open worker session, for supervision and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// Name of the worker.
    pub worker: String,
    /// What the worker said about itself when it opened the session.
    pub info_json: String,
    /// Raised by every renewal: the only sign of life that counts (P4).
    pub counter: i64,
    /// Milliseconds since the last renewal by the store's clock, for people.
    pub silent_ms: i64,
    /// Tasks it holds.
    pub leased: i64,
    /// What it told of its routes, with ages as of now (P39, P40).
    pub evidence: SessionEvidence,
}

/// A process that was silent for longer is not counted as alive.
const LONGEST_SILENCE_MS: i64 = 15_000;

impl SessionRow {
    /// Whether it was heard of lately. Its tasks are its own until a supervisor has ended it (P4): nothing is taken away by this.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        self.silent_ms < LONGEST_SILENCE_MS
    }
}

impl LeaderRow {
    /// Whether somebody leads and was heard of lately.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !self.holder.is_empty() && self.silent_ms < LONGEST_SILENCE_MS
    }
}

/// An outage of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutageRow {
    /// [`bench_proto::outage::RouteKey::to_text`].
    pub route: String,
    /// How it stands.
    pub outage: Outage,
    /// Tasks that were put off because of it.
    pub held: i64,
    /// The last words about it.
    pub reason: String,
    /// The store's clock when this was read, in microseconds since 1970.
    pub now_us: i64,
}

/// Connections to a store on a server (P31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionRoom {
    /// Most that the server takes, of all programs together.
    pub most: i64,
    /// Open now.
    pub open: i64,
}

/// Who leads a scope (P14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderRow {
    /// Name of the process; empty when it has resigned.
    pub holder: String,
    /// Raised by every takeover.
    pub epoch: i64,
    /// Raised by the leader: it stands still when the leader is gone.
    pub counter: i64,
    /// What troubles the leader, for people; empty when nothing does.
    pub trouble: String,
    /// Milliseconds since the last renewal by the store's clock, for people.
    pub silent_ms: i64,
}

/// A task that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedTask {
    /// Its run.
    pub run: RunNo,
    /// The task.
    pub task: TaskKey,
    /// Lease epoch of this claim; above 1 the task may have stored steps.
    pub epoch: i64,
    /// Failures reported so far.
    pub attempts: i32,
    /// Leases lost so far.
    pub losses: i32,
    /// Microseconds from ready to claimed.
    pub queue_wait_us: i64,
    /// Microseconds from ready to published; 0 when the claim was quicker than the note.
    pub dispatch_us: i64,
    /// The session that claimed it.
    pub session: SessionId,
}

impl ClaimedTask {
    /// The generation of its bank in which it was planned: what is planned anew (`retry`) begins a count anew.
    #[must_use]
    pub const fn planned_generation(&self) -> i64 {
        crate::sql::planned_generation(self.epoch)
    }
}

/// A change of a leased task that is not a result; needs the current epoch (P3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its run.
    pub run: RunNo,
    /// The task.
    pub task: TaskKey,
    /// Epoch of the claim.
    pub epoch: i64,
    /// `Retry` or `Park` of [`bench_proto::task::TaskEvent`].
    pub event: bench_proto::task::TaskEvent,
    /// Earliest time of the next claim, milliseconds from now.
    pub delay_ms: u64,
    /// Why, for people (`waiting for pace of account openai`).
    pub reason: Option<String>,
}

/// Open tasks of one role of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenTasks {
    /// Ready, due, not published.
    pub unpublished: i64,
    /// Ready and published, waiting for a worker.
    pub queued: i64,
    /// Ready, but not due yet.
    pub delayed: i64,
    /// Claimed.
    pub leased: i64,
    /// Milliseconds until the first delayed one is due.
    pub next_due_ms: Option<i64>,
}

/// Open tasks of a run by role.
pub type OpenByRole = BTreeMap<Role, OpenTasks>;

/// What a batch of step records did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommitOutcome {
    /// For each record of the batch: `None` when it was stored now, the facts that were there before otherwise.
    pub already: Vec<Option<StepFacts>>,
    /// Places of records that changed nothing although nothing is stored under their keys: their task ended otherwise
    /// and says no reason, a later claim holds it, its bank has a newer generation, or it was never planned. Their entry
    /// in `already` is the record's own facts; the worker drops the task. (A record of a task that failed finds the
    /// stored failure in `already`.)
    pub refused: Vec<usize>,
    /// Questions of which no step is missing any more: to be concluded (P7).
    pub to_conclude: Vec<(RunNo, TaskKey)>,
    /// Runs and roles in which tasks became ready.
    pub opened: Vec<(RunNo, Role)>,
}

/// The facts of a question that ends with the records of one commit: all its steps are among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// The run.
    pub run: RunNo,
    /// The metric that is summed for progress.
    pub headline_metric: String,
    /// Derived from the records, as [`bench_proto::facts::conclude`] does.
    pub facts: QuestionFacts,
}

/// A stored reply that may be served again (P9).
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCall {
    /// The record; its outcome is `Accepted`.
    pub record: CallRecord,
    /// The run that paid.
    pub run: RunNo,
    /// The task of that run for which it was made.
    pub task: TaskKey,
}

/// Money that an attempt may cost, asked for before it is sent (P10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Id of the attempt: also that of its call record, if there will be one.
    pub attempt: uuid::Uuid,
    /// Phase that pays.
    pub phase: Phase,
    /// Its worst case; above 0.
    pub amount: PicoUsd,
}

/// What one process changes about the reserved money of a run, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetChange {
    /// The run.
    pub run: RunNo,
    /// The worker session that reserves: when it ends, its open reservations become uncertain.
    pub session: SessionId,
    /// Attempts that were never sent, or surely cost nothing: their reservations are gone.
    pub release: Vec<uuid::Uuid>,
    /// Attempts that were sent and given up (`cancel --now`): uncertain at their worst case.
    pub lose: Vec<uuid::Uuid>,
    /// Attempts that shall be sent, the most urgent first; one that is reserved already is granted again.
    pub wants: Vec<Want>,
}

/// For what a cap holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    /// The run.
    Run,
    /// All runs of the run's group, in the place of the run's own cap.
    Group,
    /// One phase of the run.
    Phase(Phase),
    /// The UTC day by the database's clock, over all runs of the store.
    Day,
}

impl BudgetScope {
    /// Whether a phase's attempts count under this cap.
    #[must_use]
    pub fn holds(self, phase: Phase) -> bool {
        match self {
            Self::Run | Self::Group | Self::Day => true,
            Self::Phase(of) => of == phase,
        }
    }
}

/// Money under one cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// For what the cap holds.
    pub scope: BudgetScope,
    /// The cap.
    pub cap: PicoUsd,
    /// Booked, uncertain attempts included.
    pub spent: PicoUsd,
    /// Reserved by all processes.
    pub reserved: PicoUsd,
}

impl BudgetState {
    /// What is left; negative after an overdraft.
    #[must_use]
    pub const fn left(&self) -> PicoUsd {
        PicoUsd(self.cap.0.saturating_sub(self.spent.0).saturating_sub(self.reserved.0))
    }
}

/// What became of a [`BudgetChange`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetAnswer {
    /// Places of wants that do not fit, with the first cap that refuses each.
    pub refused: Vec<(usize, BudgetScope)>,
    /// All caps of the run as they are now.
    pub caps: Vec<BudgetState>,
    /// The run does not run, or the session has ended: nothing was reserved.
    pub stopped: bool,
}

/// What kind of calls an allowance is for: providers count them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// Chat completions.
    #[default]
    Chat,
    /// Embeddings.
    Embeddings,
}

impl CallKind {
    /// Its number in the store.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Chat => 0,
            Self::Embeddings => 1,
        }
    }
}

/// What a provider counts together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// Base URL and API version, without secrets.
    pub endpoint: String,
    /// Name of the account.
    pub account: String,
    /// Models that share their limits.
    pub limit_group: String,
    /// Kind of calls.
    pub kind: CallKind,
}

/// Known limits of an allowance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PaceLimits {
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens per minute.
    pub tpm: Option<u64>,
}

impl PaceLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rpm.is_none() && self.tpm.is_none()
    }
}

/// What a process asks of an allowance.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotAsk {
    /// The allowance.
    pub allowance: Allowance,
    /// Name of the process, unlike that of any other.
    pub asker: String,
    /// The limits as this process knows them.
    pub limits: PaceLimits,
    /// Tokens (prompt and largest completion) of calls that wait, in the order in which they shall leave.
    pub calls: Vec<u64>,
    /// All calls that wait, these included: the weight of this process.
    pub demand: u32,
    /// Slots that were taken and not used: requests and their tokens.
    pub give_back: (u32, u64),
    /// Nothing may leave for so long, in microseconds: the provider said so (Retry-After).
    pub hold_us: u64,
    /// How its calls ended since it asked last.
    pub seen: Observed,
}

/// How calls of a process ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observed {
    /// Calls that the provider took.
    pub accepted: u32,
    /// Calls answered with 429 that had left under the learned rate of `version`; earlier ones say nothing about it.
    pub refused: u32,
    /// The newest learned rate that this process knows of; 0 before the first.
    pub version: u32,
    /// The learned rate held calls back.
    pub wants_more: bool,
    /// Calls per second that the headers of a refusal told.
    pub hinted: Option<f64>,
}

/// A rate that 429s have taught.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LearnedRate {
    /// Calls per second of this process.
    pub per_second: f64,
    /// Number of the shrink that it rests on.
    pub version: u32,
}

/// What an allowance gives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlotAnswer {
    /// Microseconds from the store's now until the slots of the first calls; as many as could be given.
    pub starts_us: Vec<u64>,
    /// Microseconds until it is worth asking for the others; 0 when none is left.
    pub wait_us: u64,
    /// Microseconds for which the account asked to be left alone.
    pub blocked_us: u64,
    /// Processes that asked within the last two seconds.
    pub askers: u32,
    /// This process's part of the rate that 429s have taught all of them.
    pub learned: Option<LearnedRate>,
}

/// A question of a forked run with what it takes over (see [`crate::Forks`]).
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptedQuestion {
    /// Its task.
    pub task: TaskKey,
    /// Steps with their texts, in order; a [`StepFacts::Failed`] under [`bench_proto::step::StepNo::FAILED`] ends it.
    pub steps: Vec<(bench_proto::step::StepNo, StepFacts, Option<bench_proto::step::StepText>)>,
}

/// Which failed questions a user wants repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryScope {
    /// Those that ended as infra_error.
    Errors,
    /// Those, and the ones that never ran.
    ErrorsAndNotRun,
}

/// A run-level event, for `status`, `watch` and replay (P36).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// What (`created`, `paused`, `resumed`, `finished`, `bank_failed`, …).
    pub kind: String,
    /// For people.
    pub message: String,
}

/// A page of question facts, in key order.
pub type FactsPage = Vec<QuestionFacts>;
