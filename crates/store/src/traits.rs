//! The narrow traits of the store. Every write is idempotent: a call whose answer was lost is simply repeated.
//!
//! One trait for each subject, in the order in which a run meets them: [`Runs`], [`Items`] and [`Plan`] begin it, [`Tasks`] and
//! [`Sessions`] hand work out, the others store what came of it. Functions take the traits whose methods they call, and
//! [`Store`], which is all of them, where these are several. In and out go types of `rows`. Start reading at [`Tasks::claim`].

use std::collections::BTreeMap;

use async_trait::async_trait;
use bench_proto::{
    call::{Ledger, Phase},
    facts::QuestionFacts,
    ids::{Role, RunId, RunNo, Sha256Hash, TaskKey, TaskKind},
    metered::MeteredCalls,
    outage::OutageEvent,
    step::{StepNo, StepRecord, StepText, StoredStep},
    stop::Looks,
    task::TaskState,
    trace::{AttemptNote, StoredSpan},
};

use crate::{error::StoreError, rows::*};

/// Result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// Runs and their states.
#[async_trait]
pub trait Runs: Send + Sync {
    /// Creates a run in state `running`, `active_since` now, or paused when it [waits](NewRun::waits); or finds the one that has
    /// its id. Of those who come at once one creates it, and the others are told of that one (P30). What its command starts beside it is
    /// created with it, or not at all: those that [wait](NewRun::waits) are its controls, [`NewRun::control_of`] of each becomes
    /// this run; the others are its equals, such as the repeats of one run.
    async fn create_or_find(&self, run: &NewRun, others: &[NewRun]) -> StoreResult<Creation>;

    /// Creates a run that must be new. [`StoreError::Exists`] when the id is taken.
    async fn create_run(&self, run: &NewRun) -> StoreResult<RunNo> {
        match self.create_or_find(run, &[]).await? {
            Creation::Made(run_no) => Ok(run_no),
            Creation::Found(existing) => Err(StoreError::Exists(format!("run {}", existing.run_id))),
        }
    }

    /// Reads a run by its number.
    async fn run(&self, run: RunNo) -> StoreResult<RunRow>;

    /// Reads a run by its whole public id.
    async fn run_by_id(&self, id: &RunId) -> StoreResult<Option<RunRow>>;

    /// Lists runs, newest first. A run that cannot be read is left out, and named in the log: it hides no other.
    async fn list_runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>>;

    /// Moves a run from one of `from` to `to`, keeps the active time, writes a run event. False when it was in none of
    /// them. Entering `Running` from another state counts as a resume.
    async fn set_run_state(
        &self,
        run: RunNo,
        from: &[RunState],
        to: RunState,
        reason: Option<&str>,
    ) -> StoreResult<bool>;

    /// Replaces the run's name and tags, which change nothing of its result.
    async fn set_labels(&self, run: RunNo, name: Option<&str>, tags: &[String]) -> StoreResult<()>;

    /// Replaces the run's limits and raises its state version; the cap of a run in a group is set for the group.
    async fn set_limits(&self, run: RunNo, limits: &bench_proto::spec::Limits) -> StoreResult<()>;

    /// Replaces what the looks of a run have found unless others were written since `before` was read, which gives false. The next
    /// sweep opens or leaves out the questions that follow from it.
    async fn set_looks(&self, run: RunNo, before: &Looks, looks: &Looks) -> StoreResult<bool>;

    /// Runs of a domain in state `running` with their state versions, in the order of their numbers.
    async fn running_runs(&self, domain: &str) -> StoreResult<Vec<(RunNo, i64)>>;

    /// State and state version of runs, for the poll of P23.
    async fn run_states(&self, runs: &[RunNo]) -> StoreResult<Vec<(RunNo, RunState, i64)>>;

    /// Closes the running time of a run whose owner died at an unknown time: the open interval ends at the last committed
    /// checkpoint (or where it began). Called by the new owner before it resumes.
    async fn close_lost_interval(&self, run: RunNo) -> StoreResult<()>;

    /// Stores the summary of a result version unless one is there; returns the one that is stored (P36).
    async fn put_summary(&self, run: RunNo, result_version: i64, summary_json: &str) -> StoreResult<String>;

    /// The stored summary of a run's current result version: `None` again once the run was resumed or retried.
    async fn summary(&self, run: RunNo) -> StoreResult<Option<String>>;

    /// Adds a run event.
    async fn add_event(&self, run: RunNo, kind: &str, message: &str) -> StoreResult<()>;

    /// Run events, oldest first.
    async fn events(&self, run: RunNo) -> StoreResult<Vec<RunEvent>>;
}

/// Dataset items shared by runs (P16).
#[async_trait]
pub trait Items: Send + Sync {
    /// Stores items; those that are there stay.
    async fn put_items(&self, items: &[Item]) -> StoreResult<()>;

    /// Drops items that no bank of any run refers to; returns how many. `None`, and nothing is dropped, while a plan is being
    /// written: its items come before the banks that refer to them.
    async fn drop_unreferenced_items(&self) -> StoreResult<Option<u64>>;

    /// Reads an item and checks its hash.
    async fn item(&self, hash: Sha256Hash) -> StoreResult<Vec<u8>>;
}

/// The plan of a run: banks and the tasks they open (P6, P28).
#[async_trait]
pub trait Plan: Send + Sync {
    /// Adds banks and makes the `retain` task of each one's first segment ready. Banks that are there stay.
    async fn add_banks(&self, run: RunNo, banks: &[NewBank]) -> StoreResult<()>;

    /// Notes that all banks have been added.
    async fn finish_plan(&self, run: RunNo) -> StoreResult<()>;

    /// Makes the run's latency probe ready unless it has been (P43); returns where it stands. Called when every question has ended.
    async fn open_probe(&self, run: RunNo) -> StoreResult<TaskState>;

    /// Reads banks by number; all of them, in order, when `bank_nos` is `None`.
    async fn banks(&self, run: RunNo, bank_nos: Option<&[u32]>) -> StoreResult<Vec<BankRow>>;

    /// Banks of a run that other runs ask which have not ended, by number, with the id of one of them: they must stay.
    async fn banks_in_use(&self, run: RunNo) -> StoreResult<BTreeMap<u32, String>>;

    /// Stores the memory system's handle of a bank's generation unless one is stored; returns the stored one.
    async fn set_bank_handle(&self, run: RunNo, bank_no: u32, generation: i64, handle: &str) -> StoreResult<String>;

    /// Starts a new generation of a bank while its retain task is leased with this epoch: position back to 0, retained
    /// checkpoints of the old generation forgotten. Returns the new generation, or `None` when the epoch is old (P5).
    async fn new_generation(&self, run: RunNo, bank_no: u32, epoch: i64) -> StoreResult<Option<i64>>;
}

/// Handing out tasks (P1 to P4).
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Ready, due, unpublished tasks of a role, bank by bank. What comes last in the course of a bank comes first here: a bank
    /// is proven ready, and opens its questions, before the next one is begun.
    async fn ready_tasks(&self, run: RunNo, role: Role, limit: u32) -> StoreResult<Vec<ReadyTask>>;

    /// Writes the note that tasks were published; only on rows that are still ready.
    async fn note_published(&self, run: RunNo, tasks: &[ReadyTask]) -> StoreResult<()>;

    /// Forgets the published notes of a run's ready tasks, of one role or of all, that are at least so old, so that they are published
    /// again (P2).
    async fn forget_published(&self, run: RunNo, role: Option<Role>, older_than_ms: u64) -> StoreResult<u64>;

    /// Forgets the published notes of these tasks where they are still ready; they are not handed out before `delay_ms` have
    /// passed. For messages that came back: dead letters, and bodies that a worker cannot read (P2, P12).
    async fn put_back(&self, run: RunNo, tasks: &[TaskKey], delay_ms: u64, reason: Option<&str>) -> StoreResult<u64>;

    /// Claims tasks for a session: those that are ready, due, and whose run is `running`. The others are left out of the
    /// answer. One transaction (P1).
    async fn claim(&self, session: SessionId, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Vec<ClaimedTask>>;

    /// Tasks that a session holds, so that a worker finds those it does not know of: the answer to a claim was lost, or a
    /// release did not reach the store (P1).
    async fn leases(&self, session: SessionId) -> StoreResult<Vec<ClaimedTask>>;

    /// Tasks of a run that sessions hold, in the order of their keys: what is being worked on, wherever that is.
    async fn leased(&self, run: RunNo) -> StoreResult<Vec<TaskKey>>;

    /// Gives leased tasks back (retry or park); releases with an old epoch change nothing.
    async fn release(&self, releases: &[Release]) -> StoreResult<()>;

    /// Open tasks of runs by role, in one look. Of the ready tasks that were neither published nor put off, `at_most` are counted
    /// for each run and role: there may be a million.
    async fn open_tasks_of(&self, runs: &[RunNo], at_most: u32) -> StoreResult<BTreeMap<RunNo, OpenByRole>>;

    /// What the delayed task of a run that is due next waits for, when it was put off for a reason.
    async fn waits_for(&self, run: RunNo) -> StoreResult<Option<String>>;

    /// Open tasks of one run by role.
    async fn open_tasks(&self, run: RunNo) -> StoreResult<OpenByRole> {
        Ok(self.open_tasks_of(&[run], u32::MAX).await?.remove(&run).unwrap_or_default())
    }
}

/// Worker sessions (P4).
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Opens a session of a worker in a domain.
    async fn open_session(&self, worker: &str, domain: &str, info_json: &str) -> StoreResult<SessionId>;

    /// Raises the session's counter, keeps what it tells of its routes when it tells something (P39), and tells what the store
    /// knows of the session.
    async fn renew_session(&self, session: SessionId, evidence: Option<&str>) -> StoreResult<Renewal>;

    /// Ends a session: its leased tasks become ready with one more loss, its open reservations uncertain (P10). Returns
    /// how many tasks.
    async fn end_session(&self, session: SessionId) -> StoreResult<u64>;

    /// Ends a session under which nothing was ever claimed or paid: that of a plan's writer.
    async fn close_session(&self, session: SessionId) -> StoreResult<()>;

    /// Open sessions of a domain.
    async fn open_sessions(&self, domain: &str) -> StoreResult<Vec<SessionRow>>;
}

/// Leadership as a row (P14).
#[async_trait]
pub trait Leaders: Send + Sync {
    /// The row of a scope; `None` before its first leader.
    async fn leader(&self, scope: &str) -> StoreResult<Option<LeaderRow>>;

    /// Takes the lead if the row is still as it was seen (epoch, counter), or was and is not there. Returns the new epoch;
    /// `None` when somebody else was quicker or the leader lives.
    async fn take_lead(&self, scope: &str, holder: &str, seen: Option<(i64, i64)>) -> StoreResult<Option<i64>>;

    /// Raises the counter and says what troubles the leader (nothing: empty). `None` when another leads.
    async fn renew_lead(&self, scope: &str, epoch: i64, trouble: &str) -> StoreResult<Option<LeadTold>>;

    /// Gives the lead up: the next may take it at once.
    async fn resign_lead(&self, scope: &str, epoch: i64) -> StoreResult<()>;
}

/// A store that went back in time: a failover or a restore has taken back what it had acknowledged (P44).
#[async_trait]
pub trait Incarnations: Send + Sync {
    /// The store's incarnation.
    async fn incarnation(&self) -> StoreResult<Incarnation>;

    /// Gives the store another incarnation, unless somebody has done so since `seen`, and says why in an event of each open run.
    /// Returns the current one. Banks whose generation is raised from now on have names that were never given.
    async fn change_incarnation(&self, seen: i64, why: &str) -> StoreResult<i64>;

    /// Puts a session back as its process knows it.
    async fn restore_session(&self, live: &LiveSession) -> StoreResult<()>;

    /// Gives tasks back to the session that works on them, where nobody has claimed them meanwhile. Returns how many.
    async fn restore_leases(&self, session: SessionId, held: &[ClaimedTask]) -> StoreResult<u64>;

    /// Reserves again what is under way, and books as uncertain what is known to be paid or lost, where the store has neither a
    /// reservation nor a record of the attempt. Returns how many became uncertain, and their sum.
    async fn restore_money(
        &self,
        run: RunNo,
        session: SessionId,
        open: &[Want],
        lost: &[Want],
    ) -> StoreResult<(u64, bench_proto::money::PicoUsd)>;
}

/// Checkpoints and conclusions (P7, P8).
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Stores a batch of step records, their calls, and everything that follows from them, in one transaction:
    ///
    /// - A record whose (run, task, step) is stored already changes nothing and is reported with the stored facts.
    /// - [`bench_proto::step::StepFacts::Retained`] moves the bank's position; `Recalled` and a failed question lower the
    ///   segment's open recalls; at 0 the next segment's `retain` becomes ready.
    /// - `Effect::Done` finishes the task (from any epoch) and opens what it names.
    /// - `Effect::Failed` on a question ends it; on a judge's vote it lowers the question's counter; on `retain` or
    ///   `ready` the bank fails and every question of it that has not ended fails with the same facts.
    /// - Call records add to the run's spending.
    async fn commit(&self, records: &[StepRecord]) -> StoreResult<CommitOutcome> {
        self.commit_and_conclude(records, &[]).await
    }

    /// [`Self::commit`] that also concludes questions in the same transaction: those whose steps are all among the records
    /// and were all stored now. The others are told in [`CommitOutcome::to_conclude`], as always.
    async fn commit_and_conclude(
        &self,
        records: &[StepRecord],
        conclusions: &[Conclusion],
    ) -> StoreResult<CommitOutcome> {
        self.commit_marked(records, conclusions, None).await
    }

    /// The same, and the session's mark is raised to the number of the batch, if it was the one before (P44).
    async fn commit_marked(
        &self,
        records: &[StepRecord],
        conclusions: &[Conclusion],
        mark: Option<CommitMark>,
    ) -> StoreResult<CommitOutcome>;

    /// All stored steps of these questions and of their judge tasks, grouped in question order.
    async fn question_steps(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<StoredStep>>;

    /// Stores question facts; a question that is concluded already stays. Adds to the run's counters
    /// (`headline_metric` is the metric that is summed). Returns how many were new.
    async fn store_facts(&self, run: RunNo, headline_metric: &str, facts: &[QuestionFacts]) -> StoreResult<u64>;

    /// The level-triggered sweep of P7: repairs counters from the checkpoints, opens what should be open, and returns
    /// questions that are complete but not concluded. Idempotent.
    async fn sweep(&self, run: RunNo) -> StoreResult<CommitOutcome>;

    /// Reopens what failed for another try (`retry`): removes the conclusions and failed steps, makes the tasks ready with
    /// fresh counters, starts failed banks in a new generation. Keeps every good step. Returns the number of questions. Where
    /// there are any, a run that has ended becomes paused in the same transaction: it is over for nobody from then on.
    async fn reopen(&self, run: RunNo, scope: RetryScope) -> StoreResult<u64>;
}

/// Reading results.
#[async_trait]
pub trait Results: Send + Sync {
    /// Facts of concluded questions with keys above `after`, in key order.
    async fn facts(&self, run: RunNo, after: Option<TaskKey>, limit: u32) -> StoreResult<FactsPage>;

    /// Stored steps of one kind of task with (task, step) above `after`, in that order.
    async fn steps(
        &self,
        run: RunNo,
        kind: TaskKind,
        after: Option<(TaskKey, StepNo)>,
        limit: u32,
    ) -> StoreResult<Vec<StoredStep>>;

    /// Texts of these questions and of their judge tasks, in (task, step) order.
    async fn question_texts(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<(TaskKey, StepNo, StepText)>>;

    /// The answers to these questions, and all texts of these judge tasks, in (task, step) order: what votes need, those that go on
    /// and those that begin.
    async fn judging_texts(
        &self,
        run: RunNo,
        questions: &[TaskKey],
        begun: &[TaskKey],
    ) -> StoreResult<Vec<(TaskKey, StepNo, StepText)>>;

    /// Texts of one step of these tasks, in the order of their keys: the other texts, most of all the hits, are not read.
    async fn step_texts(&self, run: RunNo, tasks: &[TaskKey], step: StepNo) -> StoreResult<Vec<(TaskKey, StepText)>>;
}

/// The call store (P9).
#[async_trait]
pub trait Calls: Send + Sync {
    /// Number of accepted calls that a lineage holds.
    async fn call_count(&self, lineage: &str) -> StoreResult<u64>;

    /// Accepted calls of a lineage with these keys, the oldest for each.
    async fn find_calls(&self, lineage: &str, keys: &[Sha256Hash]) -> StoreResult<Vec<StoredCall>>;

    /// Accepted calls of any run with these keys, the newest for each; runs with `--cache off` share none.
    async fn find_shared_calls(&self, keys: &[Sha256Hash]) -> StoreResult<Vec<StoredCall>>;

    /// What accepted calls of a model in a phase used on average, over the newest of the newest runs; `None` without any.
    async fn call_profile(&self, model: &str, phase: Phase) -> StoreResult<Option<CallProfile>>;

    /// Mean duration of a run's accepted calls, in microseconds, over at most `last` of them; `None` before the first.
    async fn mean_call_us(&self, run: RunNo, last: u32) -> StoreResult<Option<f64>>;

    /// Records attempts that belong to no stored step (a reply that did not pass its parser, a failed attempt that may
    /// have been paid). Their cost counts as spent.
    async fn put_calls(&self, run: RunNo, task: TaskKey, calls: &[bench_proto::call::CallRecord]) -> StoreResult<()>;

    /// What a run's memory system has called itself, through the meter (P34): sums of what was alike, in the order of their keys.
    async fn metered_calls(&self, run: RunNo) -> StoreResult<Vec<MeteredCalls>>;

    /// Books calls of several tasks, in one transaction.
    async fn book_calls(&self, run: RunNo, calls: &[(TaskKey, bench_proto::call::CallRecord)]) -> StoreResult<()>;
}

/// The hard caps on spending (P10), shared by all processes of the store.
///
/// Under a cap `spent + reserved ≤ cap` holds at every commit; only an attempt that costs more than its own reservation
/// passes it, by that excess. Caps are those of the run's current limits; for a run in a group (P41) the group's cap takes the
/// place of its own, and holds over the sums of all runs of the group. What a stored call record settles is part of
/// [`Checkpoints::commit`] and [`Calls::put_calls`]: its reservation is gone and its cost is booked, also when the
/// reservation had become uncertain.
#[async_trait]
pub trait Money: Send + Sync {
    /// Releases, loses and reserves, in one transaction. A repeated call changes nothing more.
    async fn change_budget(&self, change: &BudgetChange) -> StoreResult<BudgetAnswer>;

    /// Makes uncertain what a session still has reserved of a run whose calls were dropped: nobody will settle it. What is
    /// settled all the same is booked as ever.
    async fn lose_open(&self, run: RunNo, session: SessionId) -> StoreResult<()>;

    /// Pauses a run whose account refuses every call (quota used up, invalid key), with the provider's words; runs of the
    /// same cluster that use the account too, or only its `model` when one is named, are paused with it (P23). A local
    /// run is paused alone: others have an account of the same name from settings of their own. Returns the paused runs.
    async fn stop_account(
        &self,
        run: RunNo,
        account: &str,
        model: Option<&str>,
        reason: &str,
    ) -> StoreResult<Vec<RunNo>>;

    /// Takes a run's uncertain attempts out of its spending (`resume --release-uncertain`). Returns their sum.
    async fn release_uncertain(&self, run: RunNo) -> StoreResult<bench_proto::money::PicoUsd>;

    /// The money of the group that a run belongs to, as of one moment; `None` for a run without a group.
    async fn group(&self, run: RunNo) -> StoreResult<Option<GroupState>>;

    /// What a run with a cap on tokens or calls has used of it, with the other runs of its group: the amounts are of that unit. `None`
    /// for a run that is capped in dollars, or in nothing.
    async fn usage(&self, run: &RunRow) -> StoreResult<Option<BudgetState>>;

    /// What was paid for a run, by what it belongs to. Reads all of its calls.
    async fn ledger(&self, run: &RunRow) -> StoreResult<Ledger>;
}

/// Send slots of allowances (P24), shared by all processes of the store.
#[async_trait]
pub trait Paces: Send + Sync {
    /// Takes slots for the calls of one process, by the store's clock: evenly spaced, at most half a second ahead, shared
    /// by demand among the processes that ask. Also tells and hears of Retry-After (for all allowances of the account) and
    /// of learned rates. Not idempotent: an answer that was lost costs its slots.
    async fn take_slots(&self, ask: &SlotAsk) -> StoreResult<SlotAnswer>;

    /// Lets a run that goes on try at once: holds of its accounts end, for all runs that use them, and so do the delays of its
    /// ready tasks. Idempotent.
    async fn release_holds(&self, run: RunNo, accounts: &[String]) -> StoreResult<()>;
}

/// Outages of the ways to models and memory servers (P39), shared by all processes of a queue domain.
#[async_trait]
pub trait Outages: Send + Sync {
    /// The newest outage of each route of a domain, unless it has been over for two minutes.
    async fn outages(&self, domain: &str) -> StoreResult<Vec<OutageRow>>;

    /// All outages of a domain that were not over at `since_us` (microseconds since 1970), the oldest first.
    async fn outages_since(&self, domain: &str, since_us: i64) -> StoreResult<Vec<OutageRow>>;

    /// Tells what happened to a route, with the last words about it (none: those that are stored stay). Returns whether it
    /// changed something, and how the route is now.
    async fn outage(
        &self,
        domain: &str,
        route: &str,
        event: OutageEvent,
        reason: &str,
    ) -> StoreResult<(bool, OutageRow)>;

    /// Counts tasks that were put off because of the route's newest outage.
    async fn held_back(&self, domain: &str, route: &str, tasks: i64) -> StoreResult<()>;
}

/// Importing results made elsewhere.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Stores finished questions of a run: facts and texts, and no tasks where it was made elsewhere. Of one that is rebuilt and
    /// `may_go_on` each question has its task too, done or given up, so that nothing of it is asked again but what a retry opens. Tasks
    /// that are there stay.
    async fn import_results(
        &self,
        run: RunNo,
        headline_metric: &str,
        results: &[(QuestionFacts, Vec<(StepNo, StepText)>)],
        may_go_on: bool,
    ) -> StoreResult<()>;

    /// Stores texts of any tasks; those that are there stay.
    async fn put_texts(&self, run: RunNo, texts: &[(TaskKey, StepNo, StepText)]) -> StoreResult<()>;
}

/// Runs that go on from what another run has stored.
#[async_trait]
pub trait Forks: Send + Sync {
    /// Stores banks that are ready to their end without a retain of this run, and questions with the steps that are taken
    /// over. A question becomes ready, and whoever claims it reads its steps; one whose steps end in a failure has failed.
    /// Banks and questions that are there stay.
    async fn adopt(&self, run: RunNo, banks: &[NewBank], questions: &[AdoptedQuestion]) -> StoreResult<()>;
}

/// What traces are built of (P20): timings of steps, and what is known of tries that stored none.
#[async_trait]
pub trait Traces: Send + Sync {
    /// Steps of these questions and of their judge tasks with the times at which they were stored, by question, task, step.
    async fn spans(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<StoredSpan>>;

    /// Steps that retained for a bank or proved it ready, in the order of task and step.
    async fn bank_steps(&self, run: RunNo, bank_no: u32) -> StoreResult<Vec<StoredSpan>>;

    /// Notes tries that stored no step; a second note of the same claim changes nothing.
    async fn note_attempts(&self, run: RunNo, attempts: &[AttemptNote]) -> StoreResult<()>;

    /// Noted tries of a question and of its judge tasks, in the order of task and epoch.
    async fn attempts(&self, run: RunNo, question: TaskKey) -> StoreResult<Vec<AttemptNote>>;

    /// Facts of the concluded question with this id of the dataset.
    async fn facts_of_id(&self, run: RunNo, question_id: &str) -> StoreResult<Option<QuestionFacts>>;

    /// Facts of concluded questions, in key order.
    async fn facts_of(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<QuestionFacts>>;

    /// Facts of the concluded questions that took longest (waits in queues left out), the slowest first; ties in key order.
    async fn slowest(&self, run: RunNo, most: u32) -> StoreResult<Vec<QuestionFacts>>;

    /// Takes kept questions whose traces nobody has sent for a while, the longest waiting first. They come again unless they are
    /// settled.
    async fn take_unsent_traces(&self, limit: u32) -> StoreResult<Vec<(RunNo, TaskKey)>>;

    /// Makes the unsent traces of a run due at once: whoever decided them is known to be gone.
    async fn inherit_traces(&self, run: RunNo) -> StoreResult<()>;

    /// Settles traces: they were sent (or are gone) and are forgotten, or they could not be sent and others may have them at once.
    async fn settle_traces(&self, questions: &[(RunNo, TaskKey)], sent: bool) -> StoreResult<()>;

    /// The parts of a run's own trace that are sent with this question: of these those that no other question has, and those that it
    /// had before. A part is the task that it tells of, or [`TaskKey::OVERHEAD`] for the submission.
    async fn own_trace_parts(&self, run: RunNo, question: TaskKey, parts: &[TaskKey]) -> StoreResult<Vec<TaskKey>>;

    /// Adds to the run's spread of times (bucket, questions) and returns all of it.
    async fn add_latencies(&self, run: RunNo, counts: &[(u16, u64)]) -> StoreResult<Vec<(u16, u64)>>;

    /// Age in milliseconds of the oldest task of each run and role that is due and not claimed: of all that were published or put
    /// off, and of those that will be published next.
    async fn oldest_ready(&self, runs: &[RunNo]) -> StoreResult<Vec<(RunNo, Role, i64)>>;

    /// Names of the workers of sessions, open or ended.
    async fn session_names(&self, sessions: &[SessionId]) -> StoreResult<Vec<(SessionId, String)>>;
}

/// What a store is opened for. It matters for a local file alone: a database is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To begin something: a file that is missing is made, with its folder.
    Make,
    /// To go on with what it holds: one that is missing is not made, and holds nothing.
    Change,
    /// To look: the same, and a file that cannot be written can be read.
    Read,
}

/// What not every user of a store may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Change results in hindsight: `retry`, `import`.
    Results,
    /// Work on runs.
    Work,
    /// Hand out and look after.
    Lead,
    /// Delete runs: the owner of the store alone.
    Delete,
}

/// The whole store.
#[async_trait]
pub trait Store:
    Runs
    + Items
    + Plan
    + Tasks
    + Sessions
    + Leaders
    + Incarnations
    + Checkpoints
    + Results
    + Calls
    + Money
    + Paces
    + Outages
    + Imports
    + Forks
    + Traces
{
    /// The URL without password, for messages.
    fn describe(&self) -> String;

    /// Reads a little and checks the schema: is the store usable? One line about what was found.
    async fn check(&self) -> StoreResult<String>;

    /// How often a connection to the store was lost: whoever is there now may have forgotten what it acknowledged (P44).
    fn interruptions(&self) -> u64 {
        0
    }

    /// Connections of the server behind the store; `None` for a file.
    async fn connection_room(&self) -> StoreResult<Option<ConnectionRoom>>;

    /// Whether the user of the URL has a right, asked before anything is touched that needs it. [`StoreError::Denied`] when not.
    async fn may(&self, _right: Right) -> StoreResult<()> {
        Ok(())
    }

    /// Deletes runs with everything of them but what they have cost the days on which they ran, all or none. The caps of their groups
    /// get lower by what they have cost; what is reserved is booked as uncertain. False when one of them is running. Needs
    /// [`Right::Delete`].
    async fn delete_runs(&self, runs: &[RunNo]) -> StoreResult<bool>;

    /// Flushes and closes.
    async fn close(&self);
}
