//! What must always hold, what must be met at least once, and what "complete" means.

use std::collections::BTreeSet;

use bench_proto::{
    bank::planned_generation,
    ids::{TaskKey, TaskKind},
    task::TaskState,
};

use crate::{
    setup::Protocol,
    state::{DeliveryStage, Entries, Job, Life, Row, STEPS, Stage, State, Worker},
    store::{ANSWER, RECALL, SCORE},
};

pub(crate) const ONE_RESULT: &str = "p3 one result is stored per task and step";
pub(crate) const DONE_STAYS: &str = "p3 a done task never changes";
pub(crate) const ONE_HOLDER: &str = "p3 an epoch has one holder";
pub(crate) const HOLDER_GIVES_UP: &str = "p3 only the holder of a lease gives a task up";
pub(crate) const COUNTS: &str = "p3 attempts and losses are what has happened";
pub(crate) const LEASES: &str = "p4 a lease belongs to an open session";
pub(crate) const CALLS: &str = "p8 calls are repeated for lost or failed ones alone";
pub(crate) const STORED_STAYS_MADE: &str = "p8 a call whose result is stored is not made again";
pub(crate) const RECALLS: &str = "p5 a recall sees one generation with exactly its segment's entries";
pub(crate) const ANSWERS: &str = "p6 a system answers from exactly its segment's entries";
pub(crate) const COUNTERS: &str = "p7 counters say what the checkpoints say";
pub(crate) const CONCLUDED: &str = "p7 a concluded question has all of its steps";

/// A property of single states.
type Check = fn(&Protocol, &State) -> bool;
/// A situation that a search must meet.
pub(crate) type Situation = (&'static str, Check);

/// What holds in every state.
pub(crate) const ALWAYS: &[(&str, Check)] = &[
    (ONE_RESULT, |_, s| s.tasks.values().all(|row| row.seen.stored.iter().all(|times| *times <= 1))),
    (DONE_STAYS, |_, s| s.broken != Some(DONE_STAYS)),
    (ONE_HOLDER, one_holder),
    (HOLDER_GIVES_UP, |_, s| s.broken != Some(HOLDER_GIVES_UP)),
    (COUNTS, |_, s| {
        s.tasks.values().all(|row| row.attempts == row.seen.failures && row.losses == row.seen.leases_lost)
    }),
    (LEASES, leases),
    (CALLS, |_, s| s.tasks.values().all(|row| (0..STEPS).all(|step| row.seen.sent[step] <= 1 + row.seen.lost[step]))),
    (STORED_STAYS_MADE, |_, s| s.broken != Some(STORED_STAYS_MADE)),
    (RECALLS, |p, s| saw_its_segment(p, s, RECALL)),
    (ANSWERS, |p, s| !p.answers_by_system || saw_its_segment(p, s, ANSWER)),
    (COUNTERS, |p, s| s.corrupted || p.counters_are_right(s)),
    (CONCLUDED, |p, s| s.tasks.iter().all(|(task, row)| !row.concluded || has_all_steps(p, s, *task, row))),
];

fn one_holder(_: &Protocol, state: &State) -> bool {
    let mut seen = BTreeSet::new();
    state.workers.iter().flat_map(|w| &w.jobs).all(|job| seen.insert((job.task, job.epoch)))
}

fn leases(_: &Protocol, state: &State) -> bool {
    state.tasks.values().all(|row| match row.holder {
        Some(session) => row.state == TaskState::Leased && state.sessions[session as usize],
        None => row.state != TaskState::Leased,
    })
}

/// Whether each stored step of a question was made while the bank held exactly what its segment brings.
fn saw_its_segment(protocol: &Protocol, state: &State, step: usize) -> bool {
    state.tasks.iter().filter(|(task, _)| task.kind() == TaskKind::Question).all(|(task, row)| {
        let Some(stored) = row.steps[step] else { return true };
        let mut whole = Entries::default();
        whole[..protocol.segment_of(*task).1.until as usize].fill(1);
        stored.seen == whole
    })
}

/// What holds between two states: results that are stored and tasks that are done stay as they are.
pub(crate) fn watch(before: &State, after: &mut State) {
    let changed = |(task, row): (&TaskKey, &Row)| {
        let is_result = matches!(task.kind(), TaskKind::Question | TaskKind::Judge);
        let same = |now: &Row| {
            let core = |r: &Row| (r.state, r.epoch, r.attempts, r.losses);
            let is_of_a_new_bank = !is_result && planned_generation(now.epoch) > planned_generation(row.epoch);
            core(now) == core(row) && (!is_result || now.steps == row.steps) || is_of_a_new_bank
        };
        // a bank that starts anew forgets how it was built, never what was asked
        row.state == TaskState::Done && after.tasks.get(task).map_or(is_result, |now| !same(now))
    };
    if before.tasks.iter().any(changed) {
        after.breaks(DONE_STAYS);
    }
}

/// Whether a question has failed, or has its scores and all of its votes.
pub(crate) fn has_all_steps(protocol: &Protocol, state: &State, question: TaskKey, row: &Row) -> bool {
    let ended = |vote| state.tasks.get(&vote).is_some_and(Row::has_ended);
    row.state == TaskState::Failed || row.steps[SCORE].is_some() && protocol.judges(question).all(ended)
}

/// Every question has ended and is concluded.
pub(crate) fn is_complete(protocol: &Protocol, state: &State) -> bool {
    let is_question = |(task, row): (&TaskKey, &Row)| task.kind() == TaskKind::Question && row.concluded;
    let planned: usize = protocol.banks.iter().flatten().map(|segment| segment.questions.len()).sum();
    state.tasks.iter().filter(|entry| is_question(*entry)).count() == planned
}

/// Situations that a search must meet, or it proves nothing.
pub(crate) mod meets {
    use super::*;

    /// All is done.
    pub(crate) const THE_END: Situation = ("the run completes", is_complete);

    /// A delivery of a task that is leased or has ended.
    pub(crate) const SECOND_DELIVERY: Situation =
        ("a delivery of a task that another one holds or has ended", |_, s| {
            let taken = |task| s.tasks.get(&task).is_some_and(|row| row.state != TaskState::Ready);
            s.workers.iter().flat_map(|w| &w.deliveries).any(|d| d.stage == DeliveryStage::Received && taken(d.task))
        });

    /// A result of a lost lease, none being stored.
    pub(crate) const LATE_RESULT: Situation = ("a result of a lost lease that counts", |_, s| late_result(s, false));

    /// A result of a lost lease, after that of another.
    pub(crate) const LATER_RESULT: Situation =
        ("a result of a lost lease that comes too late", |_, s| late_result(s, true));

    /// Two dispatchers have published the same task.
    pub(crate) const TWO_LEADERS: Situation = ("two leaders publish the same task", |_, s| {
        s.dispatchers[0].noting.iter().any(|task| s.dispatchers[1].noting.contains(task))
    });

    /// A task that is noted as published, without any message.
    pub(crate) const LOST_MESSAGE: Situation = ("a published task without a message", |_, s| {
        let known = |task| {
            s.messages.contains_key(task) || s.workers.iter().flat_map(|w| &w.deliveries).any(|d| d.task == *task)
        };
        s.tasks.iter().any(|(task, row)| row.state == TaskState::Ready && row.published && !known(task))
    });

    /// A lease of a dead process.
    pub(crate) const DEAD_HOLDER: Situation = ("a lease of a dead process", |_, s| {
        let lives = |session| s.workers.iter().any(|w| w.session == session && w.life != Life::Dead);
        s.tasks.values().any(|row| row.holder.is_some_and(|session| !lives(session)))
    });

    /// A commit that was carried out, and whose worker does not know it.
    pub(crate) const UNKNOWN_COMMIT: Situation = ("a commit that is repeated", |_, s| {
        let stored = |job: &Job| {
            let of = |row: &Row| row.steps[job.step].is_some_and(|stored| stored.epoch == job.epoch);
            job.holds_a_call() && s.tasks.get(&job.task).is_some_and(of)
        };
        s.workers.iter().flat_map(|w| &w.jobs).any(stored)
    });

    /// A lease that its own worker knows nothing of.
    pub(crate) const UNKNOWN_LEASE: Situation = ("a claim whose answer is lost", |_, s| {
        let works = |w: &Worker, task| w.life == Life::Running && w.jobs.iter().any(|job| job.task == task);
        let unknown = |w: &Worker, task: &TaskKey, row: &Row| {
            row.holder == Some(w.session) && w.life == Life::Running && !works(w, *task)
        };
        s.workers.iter().any(|w| s.tasks.iter().any(|(task, row)| unknown(w, task, row)))
    });

    /// A result waits for a store that is away.
    pub(crate) const OUTAGE: Situation = ("a result waits for the store", |_, s| {
        let waits = |job: &Job| job.stage == Stage::Returned;
        s.store_is_down && s.workers.iter().flat_map(|w| &w.jobs).any(waits)
    });

    /// A writer of an old generation, its bank being in a newer one.
    pub(crate) const LATE_WRITER: Situation = ("a late writer of an old generation", |_, s| {
        let late = |job: &Job| {
            job.task.kind() == TaskKind::Retain
                && job.holds_a_call()
                && job.generation < s.banks[job.task.bank() as usize].generation
        };
        s.workers.iter().flat_map(|w| &w.jobs).any(late)
    });

    /// A recall of an old generation, on its way to a question that is asked anew.
    pub(crate) const LATE_READER: Situation = ("a recall of an old generation", |_, s| {
        let late = |job: &Job| {
            let row = s.tasks.get(&job.task);
            job.task.kind() == TaskKind::Question
                && job.step == RECALL
                && job.holds_a_call()
                && job.generation < s.banks[job.task.bank() as usize].generation
                && row.is_some_and(|row| !row.has_ended() && row.steps[RECALL].is_none())
        };
        s.workers.iter().flat_map(|w| &w.jobs).any(late)
    });

    /// A question that was given up.
    pub(crate) const FAILURE: Situation = ("a question fails", |_, s| {
        s.tasks.iter().any(|(task, row)| task.kind() == TaskKind::Question && row.state == TaskState::Failed)
    });

    /// A second attempt.
    pub(crate) const RETRY: Situation = ("a task is tried again", |_, s| {
        s.tasks.values().any(|row| row.state == TaskState::Leased && row.attempts > 0)
    });

    fn late_result(state: &State, after_another: bool) -> bool {
        let late = |job: &Job| {
            job.stage == Stage::Returned
                && state
                    .tasks
                    .get(&job.task)
                    .is_some_and(|row| row.epoch > job.epoch && row.steps[job.step].is_some() == after_another)
        };
        state.workers.iter().flat_map(|w| &w.jobs).any(late)
    }
}
