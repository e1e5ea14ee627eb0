//! What a worker does: claim, read, call, commit, hand back, renew (P1, P3, P4, P5, P8).

use bench_proto::{
    bank::planned_generation,
    ids::{TaskKey, TaskKind},
    task::TaskEvent,
};

use crate::{
    actions::Action,
    faults::Fault,
    mutants::Mutant,
    properties,
    setup::Protocol,
    state::{AfterRaise, Delivery, DeliveryStage, Ending, Entries, Job, Row, STEPS, Session, Stage, State},
    store::{ANSWER, RECALL, last_step},
};

/// Something that happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JobAction {
    /// The next call is sent.
    Send,
    /// The call is carried out and answered.
    Return,
    /// The call fails; it may have been carried out.
    CallFails {
        /// Whether it was.
        carried_out: bool,
    },
    /// The call fails for good.
    CallRefused,
    Panic,
    /// The task has to wait.
    Park,
    /// The bank's generation is raised.
    Raise,
    /// The result is committed.
    Commit,
    /// The result is committed, and the answer lost.
    CommitAnswerLost,
    /// The task is handed back or given up.
    End,
    /// The same, and the answer is lost.
    EndAnswerLost,
    /// The same while the store is away: the job ends, the lease stays.
    EndFails,
}

impl JobAction {
    /// The fault that this is, if it is one.
    pub(crate) fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::CallFails { .. } => Fault::CallFails,
            Self::CallRefused => Fault::CallRefused,
            Self::Panic => Fault::Panic,
            Self::Park => Fault::Park,
            Self::CommitAnswerLost | Self::EndAnswerLost => Fault::LostAnswer,
            _ => return None,
        })
    }
}

impl Protocol {
    /// What a running worker can do.
    pub(crate) fn worker_actions(
        &self,
        state: &State,
        number: usize,
        actions: &mut Vec<Action>,
        faults: &mut Vec<Action>,
    ) {
        let worker = &state.workers[number];
        let has = |stage| worker.deliveries.iter().any(|d| d.stage == stage);
        if has(DeliveryStage::Claimed) {
            actions.push(Action::Ack(number));
        }
        if has(DeliveryStage::Received) {
            if !state.store_is_down {
                actions.push(Action::Claim(number));
                faults.push(Action::ClaimAnswerLost(number));
            } else if self.lacks(Mutant::DeliveriesForgotten) {
                actions.push(Action::ClaimFails(number));
            }
        }
        if !worker.confirmed && !state.store_is_down {
            actions.push(Action::Renew(number));
        }
        if !state.store_is_down && !has(DeliveryStage::Received) && !self.unknown_leases(state, number).is_empty() {
            actions.push(Action::HandBackUnknown(number));
        }
        for (at, job) in worker.jobs.iter().enumerate() {
            let mut can = |action| actions.push(Action::Job(number, at, action));
            let mut may = |action| faults.push(Action::Job(number, at, action));
            match job.stage {
                Stage::Idle => {
                    let may_call = worker.confirmed || self.lacks(Mutant::CallsWithoutRenewal);
                    if may_call && !state.store_is_down {
                        can(JobAction::Send);
                    }
                    may(JobAction::Park);
                }
                Stage::Sent => {
                    can(JobAction::Return);
                    may(JobAction::CallFails { carried_out: false });
                    if job.task.kind() == TaskKind::Retain {
                        may(JobAction::CallFails { carried_out: true });
                    }
                    may(JobAction::CallRefused);
                    may(JobAction::Panic);
                }
                Stage::Returned if !state.store_is_down => {
                    can(JobAction::Commit);
                    may(JobAction::CommitAnswerLost);
                }
                Stage::Raising(_) if !state.store_is_down => can(JobAction::Raise),
                Stage::Ending(_) if !state.store_is_down => {
                    can(JobAction::End);
                    may(JobAction::EndAnswerLost);
                }
                // handed back once and no more; what the writer stores is repeated
                Stage::Ending(Ending::Retry | Ending::Park) => can(JobAction::EndFails),
                Stage::Returned | Stage::Raising(_) | Stage::Ending(_) => {}
            }
        }
    }

    /// Claims all that a worker has received; what is refused is only acked.
    pub(crate) fn claim_all(&self, state: &mut State, number: usize, answered: bool) {
        let session = state.workers[number].session;
        let received = |d: &&mut Delivery| d.stage == DeliveryStage::Received;
        let mut tasks = Vec::new();
        for delivery in state.workers[number].deliveries.iter_mut().filter(received) {
            if answered {
                delivery.stage = DeliveryStage::Claimed;
            }
            tasks.push(delivery.task);
        }
        tasks.sort_unstable();
        tasks.dedup();
        // without a fault that could come between, the ack follows at once
        if answered && !state.budget.has(Fault::Crash) && !state.budget.has(Fault::CutLine) {
            state.workers[number].deliveries.retain(|d| d.stage != DeliveryStage::Claimed);
        }
        for task in tasks {
            if let Some(epoch) = self.claim(state, session, task)
                && answered
            {
                let job = self.job(state, session, task, epoch);
                state.workers[number].jobs.push(job);
            }
        }
    }

    /// A job for a claimed task: what is stored is read, not made again.
    fn job(&self, state: &State, session: Session, task: TaskKey, epoch: i64) -> Job {
        let (row, bank) = (&state.tasks[&task], &state.banks[task.bank() as usize]);
        let stored = (0..STEPS).filter(|step| row.steps[*step].is_some()).fold(0_u8, |known, step| known | 1 << step);
        let position = (0..bank.position).fold(0_u8, |known, step| known | 1 << step);
        let known_truly = if task.kind() == TaskKind::Retain { position } else { stored };
        let known = if self.lacks(Mutant::StoredStepsUnread) { 0 } else { known_truly };
        // nobody knows what an earlier holder has written
        let unsure = task.kind() == TaskKind::Retain
            && !self.retain_idempotent
            && (row.losses > 0 || row.attempts > 0)
            && !self.lacks(Mutant::GoesOnUnsure);
        Job {
            task,
            epoch,
            session,
            attempts: row.attempts,
            generation: bank.generation,
            known,
            known_truly,
            step: known.trailing_ones() as usize,
            stage: if unsure { Stage::Raising(AfterRaise::GoOn) } else { Stage::Idle },
            seen: Entries::default(),
            answered_from: Entries::default(),
        }
    }

    /// Leases of a worker's session that none of its jobs belongs to.
    fn unknown_leases(&self, state: &State, number: usize) -> Vec<TaskKey> {
        if self.lacks(Mutant::UnknownLeasesKept) {
            return Vec::new();
        }
        let worker = &state.workers[number];
        let held = state.tasks.iter().filter(|(_, row)| row.holder == Some(worker.session));
        let known = |task: &TaskKey, epoch: i64| worker.jobs.iter().any(|job| job.task == *task && job.epoch == epoch);
        held.filter(|(task, row)| !known(task, row.epoch)).map(|(task, _)| *task).collect()
    }

    /// Hands them back: nobody has begun with them.
    pub(crate) fn hand_back_unknown(&self, state: &mut State, number: usize) {
        for task in self.unknown_leases(state, number) {
            let row = state.tasks.get_mut(&task).expect("it is held");
            self.change(row, TaskEvent::Park, true);
        }
    }

    /// A renewal: a worker whose session was ended keeps finished results alone, and goes on under a new one.
    pub(crate) fn renew(&self, state: &mut State, number: usize) {
        let worker = &mut state.workers[number];
        worker.confirmed = true;
        if state.sessions[worker.session as usize] {
            return;
        }
        worker.jobs.retain(|job| job.stage == Stage::Returned);
        worker.session = state.sessions.len() as Session;
        state.sessions.push(true);
    }

    /// Carries out what happens to a job.
    pub(crate) fn job_action(&self, state: &mut State, number: usize, at: usize, action: JobAction) {
        let mut job = state.workers[number].jobs[at];
        let session = state.workers[number].session;
        let next = match action {
            JobAction::Send => self.send(state, job),
            JobAction::Return => {
                carry_out(self, state, &mut job);
                Some(if job.step == RECALL && self.stores_recall_with_answer(job.task) {
                    Job { step: ANSWER, stage: Stage::Idle, ..job }
                } else {
                    Job { stage: Stage::Returned, ..job }
                })
            }
            JobAction::CallFails { carried_out } => {
                if carried_out {
                    carry_out(self, state, &mut job);
                }
                Some(self.fails(job))
            }
            JobAction::Panic => Some(self.fails(job)),
            JobAction::CallRefused => Some(Job { stage: Stage::Ending(Ending::GiveUp), ..job }),
            JobAction::Park => Some(Job { stage: Stage::Ending(Ending::Park), ..job }),
            JobAction::Raise => self.raise(state, job),
            JobAction::Commit => {
                let stored = self.commit(state, &job);
                // a result that has no place, or of a lost lease, is the job's last
                (stored && job.step != last_call(self, job.task) && job.session == session).then(|| Job {
                    step: next_step(&job),
                    stage: Stage::Idle,
                    ..job
                })
            }
            JobAction::CommitAnswerLost => {
                self.commit(state, &job);
                Some(job)
            }
            JobAction::End | JobAction::EndAnswerLost => {
                self.end(state, &job);
                (action == JobAction::EndAnswerLost).then_some(job)
            }
            JobAction::EndFails => None,
        };
        match next {
            Some(job) => state.workers[number].jobs[at] = job,
            None => drop(state.workers[number].jobs.remove(at)),
        }
    }

    /// Sends the next call. A job without one left, of a task that another has finished, ends.
    fn send(&self, state: &mut State, mut job: Job) -> Option<Job> {
        if job.step > last_call(self, job.task) {
            // all entries were stored by an earlier holder whose last commit ended the task: nothing is left to do
            return None;
        }
        let goes_with_its_recall = job.step == ANSWER && self.stores_recall_with_answer(job.task);
        if job.task.kind() != TaskKind::Retain && !goes_with_its_recall {
            job.generation = state.banks[job.task.bank() as usize].generation;
        }
        // a call for a bank that was planned anew meanwhile belongs to no row any more
        let is_of = |row: &&mut Row| planned_generation(row.epoch) == planned_generation(job.epoch);
        if let Some(row) = state.tasks.get_mut(&job.task).filter(is_of) {
            row.seen.sent[job.step] = row.seen.sent[job.step].saturating_add(1);
        }
        if job.known_truly & (1 << job.step) != 0 {
            state.breaks(properties::STORED_STAYS_MADE);
        }
        Some(Job { stage: Stage::Sent, ..job })
    }

    /// A failure that may pass: another attempt if there is one.
    fn fails(&self, job: Job) -> Job {
        let is_unsure =
            job.task.kind() == TaskKind::Retain && !self.retain_idempotent && !self.lacks(Mutant::GoesOnUnsure);
        let stage = if job.attempts >= self.retries {
            Stage::Ending(Ending::GiveUp)
        } else if is_unsure {
            Stage::Raising(AfterRaise::Retry)
        } else {
            Stage::Ending(Ending::Retry)
        };
        Job { stage, ..job }
    }

    fn raise(&self, state: &mut State, job: Job) -> Option<Job> {
        let Stage::Raising(then) = job.stage else { return Some(job) };
        let raised = self.raise_generation(state, &job);
        match (then, raised) {
            (AfterRaise::Retry, _) => Some(Job { stage: Stage::Ending(Ending::Retry), ..job }),
            (AfterRaise::GoOn, Some(generation)) => {
                Some(Job { generation, known: 0, known_truly: 0, step: 0, stage: Stage::Idle, ..job })
            }
            (AfterRaise::GoOn, None) => None,
        }
    }

    fn end(&self, state: &mut State, job: &Job) {
        match job.stage {
            Stage::Ending(Ending::Retry) => self.release(state, job, TaskEvent::Retry, true),
            Stage::Ending(Ending::Park) => self.release(state, job, TaskEvent::Park, true),
            Stage::Ending(Ending::GiveUp) => self.give_up(state, job),
            _ => {}
        }
    }
}

/// The last step with a call of its own: a question's scores are made with its answer.
pub(crate) fn last_call(protocol: &Protocol, task: TaskKey) -> usize {
    match task.kind() {
        TaskKind::Question => ANSWER,
        _ => last_step(protocol, task),
    }
}

fn next_step(job: &Job) -> usize {
    (job.step + 1..STEPS).find(|step| job.known & (1 << step) == 0).unwrap_or(STEPS)
}

/// What a call does outside: a retain writes, a recall reads.
fn carry_out(protocol: &Protocol, state: &mut State, job: &mut Job) {
    let bank = &mut state.banks[job.task.bank() as usize];
    let namespace = &mut bank.namespaces[job.generation as usize - 1];
    match job.task.kind() {
        TaskKind::Retain => {
            let times = &mut namespace[job.step];
            *times = if protocol.retain_idempotent { 1 } else { (*times + 1).min(2) };
        }
        TaskKind::Question if job.step == RECALL => job.seen = *namespace,
        TaskKind::Question if protocol.answers_by_system => {
            job.answered_from = bank.namespaces[bank.generation as usize - 1];
        }
        _ => {}
    }
}
