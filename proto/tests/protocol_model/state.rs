//! Everything that can differ between two moments of a run: the store, the broker, the processes, and what faults are left.

use std::collections::BTreeMap;

use bench_proto::{bank::BankState, ids::TaskKey, task::TaskState};

use crate::faults::Budget;

/// Steps of a task at most: entries of a bank, or recall, answer, score.
pub(crate) const STEPS: usize = 4;

/// How often a memory namespace holds each entry of its bank's stream.
pub(crate) type Entries = [u8; STEPS];

/// A checkpoint, or a result on its way to become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    /// Lease epoch of the claim that made it.
    pub(crate) epoch: i64,
    /// For a recall, and for an answer of a memory system: what the bank's namespace held.
    pub(crate) seen: Entries,
}

/// A task row with its checkpoints, and notes of the model's own that no rule reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) state: TaskState,
    pub(crate) epoch: i64,
    pub(crate) attempts: i32,
    pub(crate) losses: i32,
    pub(crate) holder: Option<Session>,
    /// The note of P2.
    pub(crate) published: bool,
    /// `not_before` lies in the future.
    pub(crate) delayed: bool,
    /// Votes that are awaited: a cache (P7).
    pub(crate) open_children: i32,
    pub(crate) concluded: bool,
    pub(crate) steps: [Option<Stored>; STEPS],
    pub(crate) seen: Notes,
}

/// What has really happened to a task, seen from outside of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Notes {
    /// Calls that were sent, by step.
    pub(crate) sent: [u8; STEPS],
    /// Calls whose result was lost (crash, lost lease) or bad, by step.
    pub(crate) lost: [u8; STEPS],
    /// Results that were stored, by step.
    pub(crate) stored: [u8; STEPS],
    /// Failures that the holder of the lease reported.
    pub(crate) failures: i32,
    /// Leases that ended with their session.
    pub(crate) leases_lost: i32,
}

impl Row {
    /// A ready row, as a plan or a commit makes it.
    pub(crate) fn fresh(epoch: i64) -> Self {
        Self {
            state: TaskState::Ready,
            epoch,
            attempts: 0,
            losses: 0,
            holder: None,
            published: false,
            delayed: false,
            open_children: 0,
            concluded: false,
            steps: [None; STEPS],
            seen: Notes::default(),
        }
    }

    /// Done or failed.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, TaskState::Done | TaskState::Failed)
    }

    /// Ready, due and not noted as published.
    pub(crate) fn wants_publishing(&self) -> bool {
        self.state == TaskState::Ready && !self.delayed && !self.published
    }
}

/// Number of a worker session.
pub(crate) type Session = u8;

/// A bank row, and the memory system's namespaces behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bank {
    pub(crate) generation: i64,
    pub(crate) state: BankState,
    pub(crate) position: u32,
    pub(crate) segment: u32,
    /// Recalls of the segment that are awaited: a cache (P7).
    pub(crate) open_recalls: i32,
    /// Content of the namespace of each generation, the first one first.
    pub(crate) namespaces: Vec<Entries>,
}

/// A message that a worker has received and not acked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Delivery {
    pub(crate) task: TaskKey,
    pub(crate) stage: DeliveryStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DeliveryStage {
    Received,
    /// The claim has been answered: to be acked.
    Claimed,
    /// Nobody thinks of it any more (a broken variant).
    Forgotten,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    Running,
    /// Stopped by SIGSTOP or cut off from everything; may go on later as if nothing had happened.
    Frozen,
    Dead,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Before a call.
    Idle,
    /// The bank has to start anew before anything is sent.
    Raising(AfterRaise),
    /// The call is under way.
    Sent,
    /// The call has been carried out; its result waits for the commit.
    Returned,
    /// The task is to be handed back, or given up.
    Ending(Ending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AfterRaise {
    GoOn,
    Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Retry,
    /// A wait that holds no slot (P11).
    Park,
    GiveUp,
}

/// A claimed task in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Job {
    pub(crate) task: TaskKey,
    pub(crate) epoch: i64,
    pub(crate) session: Session,
    pub(crate) attempts: i32,
    /// Generation of the bank as this job knows it.
    pub(crate) generation: i64,
    /// Steps that were stored when the task was claimed, as the worker knows them.
    pub(crate) known: u8,
    /// The same, as it was.
    pub(crate) known_truly: u8,
    pub(crate) step: usize,
    pub(crate) stage: Stage,
    /// What its recall has seen of the bank.
    pub(crate) seen: Entries,
    /// The same of the memory system's answer.
    pub(crate) answered_from: Entries,
}

impl Job {
    /// A call is under way, or its result is in this process alone.
    pub(crate) fn holds_a_call(&self) -> bool {
        matches!(self.stage, Stage::Sent | Stage::Returned)
    }

    /// The result of this step is under way, or in this process alone.
    pub(crate) fn holds(&self, step: usize) -> bool {
        if step < self.step { !matches!(self.stage, Stage::Ending(_)) } else { self.holds_a_call() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) life: Life,
    pub(crate) session: Session,
    /// A renewal has been confirmed lately (P4).
    pub(crate) confirmed: bool,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) jobs: Vec<Job>,
}

/// One that publishes: the leader, or one that thinks so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Dispatcher {
    pub(crate) leads: bool,
    /// Tasks that were published and are to be noted.
    pub(crate) noting: Vec<TaskKey>,
}

/// A moment of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) tasks: BTreeMap<TaskKey, Row>,
    pub(crate) banks: Vec<Bank>,
    /// By number: whether the session is open.
    pub(crate) sessions: Vec<bool>,
    pub(crate) store_is_down: bool,
    /// A counter was changed from outside, and no sweep has come since.
    pub(crate) corrupted: bool,
    /// The broker: how many messages of each task it holds.
    pub(crate) messages: BTreeMap<TaskKey, u8>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) dispatchers: Vec<Dispatcher>,
    /// Faults that may still happen.
    pub(crate) budget: Budget,
    /// The first promise that was broken.
    pub(crate) broken: Option<&'static str>,
}

impl State {
    /// The row of a claimed task while the job holds its lease.
    pub(crate) fn leased_row(&mut self, job: &Job) -> Option<&mut Row> {
        let row = self.tasks.get_mut(&job.task)?;
        (row.state == TaskState::Leased && row.epoch == job.epoch).then_some(row)
    }

    /// Brings states that differ in names alone to one form: workers in order, sessions numbered by their worker, those that
    /// nobody refers to left out.
    pub(crate) fn normalize(&mut self) {
        let work = |w: &Worker| {
            (w.life as u8, w.confirmed, w.jobs.first().map(|j| (j.task, j.epoch)), w.deliveries.first().map(|d| d.task))
        };
        self.workers.sort_by_key(|worker| std::cmp::Reverse(work(worker)));
        let mut names: Vec<Session> = self.workers.iter().map(|w| w.session).collect();
        let of_jobs = self.workers.iter().flat_map(|w| w.jobs.iter().map(|job| job.session));
        let open = (0..self.sessions.len() as Session).filter(|session| self.sessions[*session as usize]);
        for session in of_jobs.chain(open).collect::<Vec<_>>() {
            if !names.contains(&session) {
                names.push(session);
            }
        }
        if names.iter().enumerate().all(|(to, from)| to == usize::from(*from)) && names.len() == self.sessions.len() {
            return;
        }
        let number =
            |from: Session| names.iter().position(|name| *name == from).map_or(Session::MAX, |to| to as Session);
        self.sessions = names.iter().map(|name| self.sessions[*name as usize]).collect();
        for worker in &mut self.workers {
            worker.session = number(worker.session);
            for job in &mut worker.jobs {
                job.session = number(job.session);
            }
        }
        for row in self.tasks.values_mut() {
            row.holder = row.holder.map(number);
        }
    }

    /// Notes a broken promise; the first one stays.
    pub(crate) fn breaks(&mut self, promise: &'static str) {
        self.broken.get_or_insert(promise);
    }
}
