//! What an action does to the store, the broker and the processes.

use bench_proto::{
    ids::{TaskKey, TaskKind},
    task::TaskState,
};

use crate::{
    actions::Action,
    mutants::Mutant,
    properties,
    setup::Protocol,
    state::{Delivery, DeliveryStage, Life, Row, Session, Stage, State},
    store::RECALL,
    worker::last_call,
};

impl Protocol {
    /// The state after an action.
    pub(crate) fn after(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        if let Some(fault) = action.fault() {
            state.budget.spend(fault);
        }
        self.apply(&mut state, action);
        self.note_lost_calls(before, &mut state);
        properties::watch(before, &mut state);
        state.normalize();
        state
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Publish(number) => {
                let wanting = |(task, row): (&TaskKey, &Row)| row.wants_publishing().then_some(*task);
                let tasks: Vec<TaskKey> = state.tasks.iter().filter_map(wanting).collect();
                for task in &tasks {
                    // more than two of a kind tell the model nothing new
                    let count = state.messages.entry(*task).or_default();
                    *count = (*count + 1).min(2);
                }
                state.dispatchers[number].noting = tasks;
                if self.coarse {
                    self.apply(state, Action::Note(number));
                }
            }
            Action::Note(number) => {
                for task in std::mem::take(&mut state.dispatchers[number].noting) {
                    if let Some(row) = state.tasks.get_mut(&task) {
                        row.published |= row.wants_publishing() || self.lacks(Mutant::NoteIsState);
                    }
                }
            }
            Action::LeaderCrash(number) => {
                state.dispatchers[number].noting.clear();
                forget_notes(state);
            }
            Action::TakeOver => {
                state.dispatchers[1].leads = true;
                forget_notes(state);
            }
            Action::Republish => forget_notes(state),
            Action::Deliver(number, task) => {
                let count = state.messages.get_mut(&task).expect("it is there");
                *count -= 1;
                if *count == 0 {
                    state.messages.remove(&task);
                }
                let delivery = Delivery { task, stage: DeliveryStage::Received };
                state.workers[number].deliveries.push(delivery);
                if self.coarse {
                    self.apply(state, Action::Claim(number));
                    self.apply(state, Action::Ack(number));
                }
            }
            Action::Duplicate(task) => *state.messages.get_mut(&task).expect("it is there") += 1,
            Action::LostQueue => state.messages.clear(),
            Action::CutLine(number) | Action::Heartbeat(number) => self.redeliver(state, number),
            Action::StoreDown => {
                state.store_is_down = true;
                for worker in &mut state.workers {
                    worker.confirmed = false;
                }
            }
            Action::StoreUp => state.store_is_down = false,
            Action::EndSession(session) => self.end_session(state, session),
            Action::Due(task) => state.tasks.get_mut(&task).expect("it is there").delayed = false,
            Action::Corrupt(task) => self.corrupt(state, task),
            Action::Sweep => self.sweep(state),
            Action::Conclude(question) => state.tasks.get_mut(&question).expect("it is ripe").concluded = true,
            Action::Reopen => self.reopen(state),
            Action::Claim(_)
            | Action::ClaimAnswerLost(_)
            | Action::ClaimFails(_)
            | Action::Ack(_)
            | Action::HandBackUnknown(_)
            | Action::Job(..)
            | Action::Renew(_)
            | Action::Freeze(_)
            | Action::Thaw(_)
            | Action::Crash(_)
            | Action::Restart(_) => self.apply_to_worker(state, action),
        }
    }

    /// What happens in a worker, or to it.
    fn apply_to_worker(&self, state: &mut State, action: Action) {
        match action {
            Action::Claim(number) => self.claim_all(state, number, true),
            Action::ClaimAnswerLost(number) => self.claim_all(state, number, false),
            Action::ClaimFails(number) => {
                for delivery in &mut state.workers[number].deliveries {
                    delivery.stage = DeliveryStage::Forgotten;
                }
            }
            Action::Ack(number) => {
                state.workers[number].deliveries.retain(|d| d.stage != DeliveryStage::Claimed);
            }
            Action::HandBackUnknown(number) => self.hand_back_unknown(state, number),
            Action::Job(number, at, action) => self.job_action(state, number, at, action),
            Action::Renew(number) => self.renew(state, number),
            Action::Freeze(number) => state.workers[number].life = Life::Frozen,
            Action::Thaw(number) => {
                // its clock says that the last confirmed renewal is long ago
                let worker = &mut state.workers[number];
                (worker.life, worker.confirmed) = (Life::Running, false);
            }
            Action::Crash(number) => {
                state.workers[number].life = Life::Dead;
                state.workers[number].jobs.clear();
                self.redeliver(state, number);
            }
            Action::Restart(number) => {
                state.sessions.push(true);
                let worker = &mut state.workers[number];
                worker.session = (state.sessions.len() - 1) as Session;
                (worker.life, worker.confirmed) = (Life::Running, true);
            }
            other => unreachable!("{other:?} happens in no worker"),
        }
    }

    /// The broker takes back what a worker has not acked.
    fn redeliver(&self, state: &mut State, number: usize) {
        for delivery in std::mem::take(&mut state.workers[number].deliveries) {
            if !self.lacks(Mutant::AckBeforeClaim) {
                let count = state.messages.entry(delivery.task).or_default();
                *count = (*count + 1).min(2);
            }
        }
    }

    fn corrupt(&self, state: &mut State, task: TaskKey) {
        state.corrupted = true;
        match task.kind() {
            TaskKind::Retain => state.banks[task.bank() as usize].open_recalls += 1,
            // too low is the worse error: the question seems complete
            _ => state.tasks.get_mut(&task).expect("it is there").open_children = 0,
        }
    }

    /// Calls whose job has lost its lease, or has ended, without a stored result; and those that a worker will still make
    /// for a question whose bank has failed, because nobody tells it.
    fn note_lost_calls(&self, before: &State, state: &mut State) {
        for (number, worker) in before.workers.iter().enumerate() {
            for job in &worker.jobs {
                let held = |row: &Row| row.state == TaskState::Leased && row.epoch == job.epoch;
                if !before.tasks.get(&job.task).is_some_and(held) {
                    continue;
                }
                let now =
                    state.workers[number].jobs.iter().find(|j| j.task == job.task && j.epoch == job.epoch).copied();
                let Some(row) = state.tasks.get_mut(&job.task) else { continue };
                let goes_on = |step: usize| now.is_some_and(|j| j.step >= job.step && j.holds(step)) && held(row);
                let is_unaware = row.state == TaskState::Failed
                    && now.is_some_and(|j| matches!(j.stage, Stage::Idle | Stage::Sent | Stage::Returned));
                let until = if is_unaware { last_call(self, job.task) } else { job.step };
                let with_recall = job.step > RECALL && self.stores_recall_with_answer(job.task);
                let from = if with_recall { RECALL } else { job.step };
                let lost =
                    |step: &usize| row.steps[*step].is_none() && (is_unaware || job.holds(*step) && !goes_on(*step));
                for step in (from..=until).filter(lost).collect::<Vec<_>>() {
                    row.seen.lost[step] = row.seen.lost[step].saturating_add(1);
                }
            }
        }
    }
}

fn forget_notes(state: &mut State) {
    for row in state.tasks.values_mut() {
        row.published = false;
    }
}
