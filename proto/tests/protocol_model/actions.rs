//! What can happen next, and what it does.

use bench_proto::{
    ids::{TaskKey, TaskKind},
    task::TaskState,
};

use crate::{
    faults::Fault,
    mutants::Mutant,
    properties,
    setup::Protocol,
    state::{DeliveryStage, Life, Row, Session, State, Worker},
    worker::JobAction,
};

/// One step of the run. Numbers name dispatchers, workers and a worker's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A dispatcher publishes all tasks that want it; the broker confirms.
    Publish(usize),
    /// A dispatcher writes its note.
    Note(usize),
    /// A dispatcher crashes before its note; the next one forgets all notes.
    LeaderCrash(usize),
    /// A second leader takes over from one that may go on, and forgets all notes.
    TakeOver,
    /// Notes are forgotten: the store counts more published tasks than the broker holds (P2).
    Republish,
    /// The broker delivers.
    Deliver(usize, TaskKey),
    /// The broker makes two of one.
    Duplicate(TaskKey),
    /// The broker comes back empty.
    LostQueue,
    /// A worker's line to the broker is cut: what was not acked is delivered again.
    CutLine(usize),
    /// The broker has missed a frozen worker's heartbeats: what was not acked is delivered again.
    Heartbeat(usize),
    /// A worker claims all that it holds.
    Claim(usize),
    /// The same, and the answer is lost.
    ClaimAnswerLost(usize),
    /// A claim gets no connection.
    ClaimFails(usize),
    /// A worker acks what it has claimed.
    Ack(usize),
    /// A worker hands back leases of its session that it knows nothing of.
    HandBackUnknown(usize),
    /// Something happens to a job.
    Job(usize, usize, JobAction),
    /// A renewal of a session is confirmed, or refused because the session was ended.
    Renew(usize),
    Freeze(usize),
    Thaw(usize),
    Crash(usize),
    /// A process takes a dead worker's place.
    Restart(usize),
    /// A supervisor ends a session whose counter stands still.
    EndSession(Session),
    /// Time passes: a delayed task is due.
    Due(TaskKey),
    StoreDown,
    StoreUp,
    /// A counter is changed from outside.
    Corrupt(TaskKey),
    Sweep,
    /// A complete question is concluded.
    Conclude(TaskKey),
    /// A user's `retry`.
    Reopen,
}

impl Action {
    /// The fault that this is, if it is one.
    pub(crate) fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::LeaderCrash(_) => Fault::LeaderCrash,
            Self::TakeOver => Fault::TakeOver,
            Self::Duplicate(_) => Fault::Duplicate,
            Self::LostQueue => Fault::LostQueue,
            Self::CutLine(_) => Fault::CutLine,
            Self::ClaimAnswerLost(_) => Fault::LostAnswer,
            Self::Freeze(_) => Fault::Freeze,
            Self::Crash(_) => Fault::Crash,
            Self::StoreDown => Fault::Outage,
            Self::Corrupt(_) => Fault::Corruption,
            Self::Reopen => Fault::Reopen,
            Self::Job(_, _, action) => return action.fault(),
            _ => return None,
        })
    }

    /// Part of a run that is left alone: no fault, and frozen processes stay frozen while there is another.
    pub(crate) fn is_recovery(self, state: &State) -> bool {
        match self {
            Self::Thaw(_) => state.workers.iter().all(|w| w.life == Life::Frozen),
            Self::ClaimFails(_) | Self::Job(_, _, JobAction::EndFails) => false,
            _ => self.fault().is_none(),
        }
    }
}

impl Protocol {
    /// All that can happen now.
    pub(crate) fn enabled(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let mut faults = Vec::new();
        if !state.store_is_down {
            self.store_actions(state, actions, &mut faults);
        } else {
            actions.push(Action::StoreUp);
        }
        self.broker_actions(state, actions, &mut faults);
        for (number, worker) in state.workers.iter().enumerate() {
            match worker.life {
                Life::Running => {
                    self.worker_actions(state, number, actions, &mut faults);
                    faults.extend([Action::Crash(number), Action::Freeze(number)]);
                }
                Life::Frozen => {
                    actions.push(Action::Thaw(number));
                    faults.push(Action::Crash(number));
                    if !worker.deliveries.is_empty() && !self.lacks(Mutant::NoHeartbeats) {
                        actions.push(Action::Heartbeat(number));
                    }
                }
                Life::Dead if !state.store_is_down => actions.push(Action::Restart(number)),
                Life::Dead => {}
            }
        }
        actions.extend(faults.into_iter().filter(|a| a.fault().is_none_or(|fault| state.budget.has(fault))));
    }

    fn store_actions(&self, state: &State, actions: &mut Vec<Action>, faults: &mut Vec<Action>) {
        let wanting = state.tasks.values().any(|row| row.wants_publishing());
        for (number, dispatcher) in state.dispatchers.iter().enumerate().filter(|(_, d)| d.leads) {
            if !dispatcher.noting.is_empty() {
                actions.push(Action::Note(number));
                faults.push(Action::LeaderCrash(number));
            } else if wanting {
                actions.push(Action::Publish(number));
            }
        }
        if !state.dispatchers[1].leads {
            faults.push(Action::TakeOver);
        }
        if self.is_starved(state) {
            actions.push(Action::Republish);
        }
        for (session, open) in (0..).zip(&state.sessions) {
            // a supervisor has seen a counter that stands still: its worker is dead, frozen, or was so a moment ago
            let lives = |w: &Worker| w.session == session && w.life == Life::Running && w.confirmed;
            if *open && !state.workers.iter().any(lives) {
                actions.push(Action::EndSession(session));
            }
        }
        for (task, row) in &state.tasks {
            if row.delayed {
                actions.push(Action::Due(*task));
            }
            if self.is_ripe(state, *task) {
                actions.push(Action::Conclude(*task));
            }
            if !state.corrupted && self.may_corrupt(state, *task) {
                faults.push(Action::Corrupt(*task));
            }
        }
        if state.corrupted && !self.lacks(Mutant::NoSweep) {
            actions.push(Action::Sweep);
        }
        faults.push(Action::StoreDown);
        let is_asked = |task: &TaskKey| matches!(task.kind(), TaskKind::Question | TaskKind::Judge);
        let failed = |(task, row): (&TaskKey, &Row)| is_asked(task) && row.state == TaskState::Failed;
        if state.budget.has(Fault::Reopen) && properties::is_complete(self, state) && state.tasks.iter().any(failed) {
            faults.push(Action::Reopen);
        }
    }

    fn broker_actions(&self, state: &State, actions: &mut Vec<Action>, faults: &mut Vec<Action>) {
        for (task, count) in &state.messages {
            for (number, worker) in state.workers.iter().enumerate() {
                let received = worker.deliveries.iter().filter(|d| d.stage == DeliveryStage::Received).count();
                let room = worker.deliveries.len() < self.prefetch && received + worker.jobs.len() < self.slots;
                if worker.life == Life::Running && room && !(self.coarse && state.store_is_down) {
                    actions.push(Action::Deliver(number, *task));
                }
            }
            if *count < 2 {
                faults.push(Action::Duplicate(*task));
            }
        }
        if !state.messages.is_empty() {
            faults.push(Action::LostQueue);
        }
        for (number, worker) in state.workers.iter().enumerate() {
            if !worker.deliveries.is_empty() {
                faults.push(Action::CutLine(number));
            }
        }
    }

    /// The store counts more published tasks than the broker holds (P2).
    fn is_starved(&self, state: &State) -> bool {
        let published = |row: &&Row| row.state == TaskState::Ready && row.published && !row.delayed;
        let published = state.tasks.values().filter(published).count();
        if published == 0 || self.lacks(Mutant::NoRepublish) || self.lacks(Mutant::AckBeforeClaim) {
            return false;
        }
        let unacked = state.workers.iter().flat_map(|w| &w.deliveries).filter(|d| d.stage == DeliveryStage::Received);
        published > state.messages.values().map(|count| usize::from(*count)).sum::<usize>() + unacked.count()
    }

    /// A counter that can be wrong: that of a bank (named by its first retain task), or of a question with votes.
    fn may_corrupt(&self, state: &State, task: TaskKey) -> bool {
        let row = &state.tasks[&task];
        match task.kind() {
            TaskKind::Retain => task.index() == 0,
            TaskKind::Question => self.votes > 0 && row.state == TaskState::Done && !row.concluded,
            _ => false,
        }
    }

    /// Whether a question may be concluded: by its row, and by its checkpoints.
    fn is_ripe(&self, state: &State, task: TaskKey) -> bool {
        let row = &state.tasks[&task];
        if task.kind() != TaskKind::Question || row.concluded {
            return false;
        }
        let by_row = row.state == TaskState::Failed || row.state == TaskState::Done && row.open_children <= 0;
        by_row && (self.lacks(Mutant::CountersAreTruth) || properties::has_all_steps(self, state, task, row))
    }
}
