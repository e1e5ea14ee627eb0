//! What the stores do, statement by statement: opening, claiming, committing, settling banks, ending sessions, reopening.
//! States of tasks change by [`Protocol::change`] alone.

use bench_proto::{
    bank::{BankEvent, BankState, first_epoch, planned_generation},
    ids::{TaskKey, TaskKind},
    task::{TaskEvent, TaskState},
};

use crate::{
    mutants::Mutant,
    properties,
    setup::Protocol,
    state::{Bank, Entries, Job, Row, STEPS, Session, State, Stored},
};

/// The number of a task's last step.
pub(crate) fn last_step(protocol: &Protocol, task: TaskKey) -> usize {
    match task.kind() {
        TaskKind::Retain => protocol.banks[task.bank() as usize][task.index() as usize].until as usize - 1,
        TaskKind::Question => SCORE,
        TaskKind::Ready => 0,
        TaskKind::Judge => protocol.calls - 1,
    }
}

/// Steps of a question.
pub(crate) const RECALL: usize = 0;
pub(crate) const ANSWER: usize = 1;
pub(crate) const SCORE: usize = 2;

/// Where a bank should stand by its tasks and checkpoints.
struct Target {
    state: BankState,
    segment: u32,
    open_recalls: i32,
    missing: Vec<TaskKey>,
    fail: Vec<TaskKey>,
}

impl Protocol {
    /// Claims a task for an open session; the epoch of the claim when it is legal.
    pub(crate) fn claim(&self, state: &mut State, session: Session, task: TaskKey) -> Option<i64> {
        let row = state.tasks.get_mut(&task)?;
        if self.lacks(Mutant::NoteIsState) {
            if !row.published {
                return None;
            }
            row.published = false;
        }
        if !state.sessions[session as usize] || row.delayed {
            return None;
        }
        if !self.change(row, TaskEvent::Claim, false) {
            return None;
        }
        row.holder = Some(session);
        Some(row.epoch)
    }

    /// Hands a task back.
    pub(crate) fn release(&self, state: &mut State, job: &Job, event: TaskEvent, delayed: bool) {
        let Some(row) = state.tasks.get_mut(&job.task) else { return };
        let is_holder = row.state == TaskState::Leased && row.epoch == job.epoch && row.holder.is_some();
        if self.change(row, event, row.epoch == job.epoch) {
            row.delayed = delayed;
            if event == TaskEvent::Retry && is_holder {
                row.seen.failures += 1;
            }
        }
    }

    /// Ends a session: its leases are lost.
    pub(crate) fn end_session(&self, state: &mut State, session: Session) {
        state.sessions[session as usize] = false;
        for row in state.tasks.values_mut().filter(|row| row.holder == Some(session)) {
            if row.state == TaskState::Leased {
                row.seen.leases_lost += 1;
            }
            if self.change(row, TaskEvent::LoseLease, true) {
                row.delayed = false;
            }
        }
    }

    /// Stores the result of a job's call. False when the store has no place for it.
    pub(crate) fn commit(&self, state: &mut State, job: &Job) -> bool {
        let (task, last) = (job.task, last_step(self, job.task));
        // deterministic scores are made from the answer and stored with it
        let until = if task.kind() == TaskKind::Question && job.step == ANSWER { SCORE } else { job.step };
        let with_recall = job.step == ANSWER && self.stores_recall_with_answer(task);
        let from = if with_recall { RECALL } else { job.step };
        let bank = state.banks[task.bank() as usize].generation;
        let fits = match task.kind() {
            TaskKind::Retain => job.generation == bank || self.lacks(Mutant::LateWritesCount),
            TaskKind::Ready => planned_generation(job.epoch) == bank,
            TaskKind::Question if from == RECALL => job.generation == bank || self.lacks(Mutant::StaleRecallsCount),
            _ => true,
        };
        let Some(row) = state.tasks.get_mut(&task) else { return false };
        if !fits || self.table(row.state, TaskEvent::Finish, row.epoch == job.epoch).is_none() {
            return row.steps[job.step].is_some();
        }
        let is_recall = task.kind() == TaskKind::Question && from == RECALL && row.steps[RECALL].is_none();
        let (mut is_new, mut ended) = (false, false);
        for step in from..=until {
            if row.steps[step].is_some() && !self.lacks(Mutant::ResultsTwice) {
                continue;
            }
            let by_system = step == ANSWER && self.answers_by_system;
            let seen = if by_system { job.answered_from } else { job.seen };
            row.steps[step] = Some(Stored { epoch: job.epoch, seen });
            row.seen.stored[step] += 1;
            is_new = true;
            ended |= step == last;
        }
        if is_new {
            self.follow_up(state, job, is_recall, ended);
        }
        true
    }

    /// What follows from a result that was stored now (P7).
    fn follow_up(&self, state: &mut State, job: &Job, is_recall: bool, ended: bool) {
        let (task, kind) = (job.task, job.task.kind());
        let bank_no = task.bank() as usize;
        if ended {
            let mut children = 0;
            if kind == TaskKind::Question {
                for judge in self.judges(task) {
                    children += i32::from(self.open(state, judge, 0));
                }
            }
            let row = state.tasks.get_mut(&task).expect("its result was stored");
            self.change(row, TaskEvent::Finish, row.epoch == job.epoch);
            row.open_children = children;
        }
        match kind {
            TaskKind::Retain => {
                let bank = &mut state.banks[bank_no];
                bank.position = bank.position.max(job.step as u32 + 1);
            }
            TaskKind::Question if is_recall => state.banks[bank_no].open_recalls -= 1,
            TaskKind::Judge if ended => self.vote_ended(state, task),
            _ => {}
        }
        self.settle_at_turning_point(state, task, ended);
    }

    /// Gives a task up, with a stored reason.
    pub(crate) fn give_up(&self, state: &mut State, job: &Job) {
        let Some(row) = state.tasks.get_mut(&job.task) else { return };
        let is_holder = row.epoch == job.epoch;
        if !self.change(row, TaskEvent::GiveUp, is_holder) {
            return;
        }
        let recalled = row.steps[RECALL].is_some();
        if !is_holder {
            state.breaks(properties::HOLDER_GIVES_UP);
        }
        match job.task.kind() {
            TaskKind::Question if !recalled => state.banks[job.task.bank() as usize].open_recalls -= 1,
            TaskKind::Judge => self.vote_ended(state, job.task),
            _ => {}
        }
        self.settle_at_turning_point(state, job.task, true);
    }

    fn vote_ended(&self, state: &mut State, vote: TaskKey) {
        if let Some(question) = state.tasks.get_mut(&vote.question_of()) {
            question.open_children -= 1;
        }
    }

    fn settle_at_turning_point(&self, state: &mut State, task: TaskKey, ended: bool) {
        let bank = &state.banks[task.bank() as usize];
        let last = self.banks[task.bank() as usize].len() as u32 - 1;
        let turns = match task.kind() {
            TaskKind::Retain | TaskKind::Ready => ended,
            TaskKind::Question => bank.state == BankState::Ready && bank.open_recalls <= 0 && bank.segment < last,
            TaskKind::Judge => false,
        };
        if turns {
            self.settle(state, task.bank());
        }
    }

    /// Makes a task ready unless it has a row.
    fn open(&self, state: &mut State, task: TaskKey, epoch: i64) -> bool {
        let is_new = !state.tasks.contains_key(&task);
        if is_new {
            state.tasks.insert(task, Row::fresh(epoch));
        }
        is_new
    }

    /// Brings a bank to what its tasks and checkpoints say.
    pub(crate) fn settle(&self, state: &mut State, bank_no: u32) {
        let target = self.derive(state, bank_no);
        let bank = &mut state.banks[bank_no as usize];
        (bank.state, bank.segment, bank.open_recalls) = (target.state, target.segment, target.open_recalls);
        let epoch = first_epoch(bank.generation);
        for task in target.missing {
            self.open(state, task, epoch);
        }
        for question in target.fail {
            self.open(state, question, epoch);
            let row = state.tasks.get_mut(&question).expect("it was opened");
            self.change(row, TaskEvent::BankFailed, false);
        }
    }

    /// Whether the counters of all banks and questions say what the checkpoints say.
    pub(crate) fn counters_are_right(&self, state: &State) -> bool {
        let banks = (0_u32..).zip(&state.banks).all(|(number, bank)| {
            let target = self.derive(state, number);
            target.missing.is_empty()
                && target.fail.is_empty()
                && (target.state, target.segment, target.open_recalls) == (bank.state, bank.segment, bank.open_recalls)
        });
        banks && state.tasks.iter().all(|(task, row)| self.open_votes(state, *task, row) == row.open_children)
    }

    fn open_votes(&self, state: &State, task: TaskKey, row: &Row) -> i32 {
        if task.kind() != TaskKind::Question || row.state != TaskState::Done {
            return 0;
        }
        self.judges(task).filter(|judge| state.tasks.get(judge).is_some_and(|vote| !vote.has_ended())).count() as i32
    }

    /// The sweep of P7.
    pub(crate) fn sweep(&self, state: &mut State) {
        for number in 0..state.banks.len() as u32 {
            self.settle(state, number);
        }
        self.count_votes(state);
        state.corrupted = false;
    }

    fn count_votes(&self, state: &mut State) {
        let right: Vec<i32> = state.tasks.iter().map(|(task, row)| self.open_votes(state, *task, row)).collect();
        for (row, right) in state.tasks.values_mut().zip(right) {
            row.open_children = right;
        }
    }

    fn derive(&self, state: &State, number: u32) -> Target {
        let of = |task: TaskKey| state.tasks.get(&task).map(|row| row.state);
        let last = self.banks[number as usize].len() as u32 - 1;
        let awaits = |question: &TaskKey| {
            state.tasks.get(question).is_none_or(|row| row.steps[RECALL].is_none() && !row.has_ended())
        };
        let open = |segment: u32| self.questions(number, segment).filter(awaits).count() as i32;
        let started = (0..=last).rev().find(|s| of(TaskKey::retain(number, *s)).is_some());
        let segment = started.unwrap_or_else(|| (0..=last).find(|s| open(*s) > 0).unwrap_or(0));
        let mut target = Target {
            state: BankState::Building,
            segment,
            open_recalls: open(segment),
            missing: Vec::new(),
            fail: Vec::new(),
        };
        let failed = |task: TaskKey| of(task) == Some(TaskState::Failed);
        if (0..=last).any(|s| failed(TaskKey::retain(number, s)) || failed(TaskKey::ready(number, s))) {
            target.state = target.state.after(BankEvent::GivenUp);
            target.open_recalls = 0;
            let has_ended = |q: &TaskKey| state.tasks.get(q).is_some_and(Row::has_ended);
            target.fail = (0..=last).flat_map(|s| self.questions(number, s)).filter(|q| !has_ended(q)).collect();
            return target;
        }
        let (retain, ready) = (TaskKey::retain(number, segment), TaskKey::ready(number, segment));
        match (of(retain), of(ready)) {
            (None, _) => target.missing.push(retain),
            (Some(TaskState::Done), None) => target.missing.push(ready),
            (Some(TaskState::Done), Some(TaskState::Done)) => {
                target.state = target.state.after(BankEvent::SegmentProven);
                target.missing = self.questions(number, segment).filter(|q| of(*q).is_none()).collect();
                if target.open_recalls == 0 && segment < last {
                    target.state = target.state.after(BankEvent::NextSegment);
                    target.segment = segment + 1;
                    target.open_recalls = open(segment + 1);
                    target.missing.push(TaskKey::retain(number, segment + 1));
                }
            }
            _ => {}
        }
        target
    }

    /// Starts a new generation of a bank for the holder of its retain task (P5).
    pub(crate) fn raise_generation(&self, state: &mut State, job: &Job) -> Option<i64> {
        state.leased_row(job)?;
        let number = job.task.bank();
        for (task, row) in &mut state.tasks {
            if task.kind() == TaskKind::Retain && task.bank() == number {
                (row.steps, row.seen.sent) = ([None; STEPS], [0; STEPS]);
                (row.seen.lost, row.seen.stored) = ([0; STEPS], [0; STEPS]);
            }
        }
        Some(start_generation(&mut state.banks[number as usize]))
    }

    /// Reopens what failed (`retry`).
    pub(crate) fn reopen(&self, state: &mut State) {
        let failed =
            |state: &State, task: TaskKey| state.tasks.get(&task).is_some_and(|r| r.state == TaskState::Failed);
        let of_kind = |task: &TaskKey| task.kind() == TaskKind::Question;
        let questions: Vec<TaskKey> = state.tasks.keys().copied().filter(of_kind).collect();
        let again = |q: &TaskKey| failed(state, *q) || self.judges(*q).any(|judge| failed(state, judge));
        let again: Vec<TaskKey> = questions.into_iter().filter(again).collect();
        let unrecalled = |state: &State, q: TaskKey| failed(state, q) && state.tasks[&q].steps[RECALL].is_none();
        let closed = |q: &TaskKey| self.segment_of(*q).0 < state.banks[q.bank() as usize].segment;
        let starts_anew = |number: u32| {
            state.banks[number as usize].state == BankState::Failed
                || again.iter().any(|q| q.bank() == number && unrecalled(state, *q) && closed(q))
        };
        let of_again = |number: &u32| again.iter().any(|q| q.bank() == *number);
        let anew = (0..state.banks.len() as u32).filter(|number| of_again(number) && starts_anew(*number));
        let anew: Vec<u32> = anew.collect();
        for question in &again {
            if anew.contains(&question.bank()) && unrecalled(state, *question) {
                state.tasks.remove(question);
                continue;
            }
            for task in self.judges(*question).chain([*question]) {
                if let Some(row) = state.tasks.get_mut(&task) {
                    row.concluded = false;
                    if self.change(row, TaskEvent::Reopen, false) {
                        (row.attempts, row.losses, row.open_children, row.delayed) = (0, 0, 0, false);
                        (row.seen.failures, row.seen.leases_lost) = (0, 0);
                    }
                }
            }
        }
        for number in anew {
            let of_bank =
                |task: &TaskKey| matches!(task.kind(), TaskKind::Retain | TaskKind::Ready) && task.bank() == number;
            state.tasks.retain(|task, _| !of_bank(task));
            let bank = &mut state.banks[number as usize];
            start_generation(bank);
            bank.state = BankEvent::Reopened.leads_to();
        }
        self.sweep(state);
    }
}

fn start_generation(bank: &mut Bank) -> i64 {
    bank.generation += 1;
    bank.position = 0;
    bank.namespaces.push(Entries::default());
    bank.generation
}
