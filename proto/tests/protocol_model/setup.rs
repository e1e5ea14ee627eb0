//! The model: a plan, a number of processes, a budget of faults, and the rules (all of them, or all but one).

use bench_proto::{
    bank::BankState,
    ids::{TaskKey, TaskKind},
    task::{TaskEvent, TaskState, Transition, transition},
};

use crate::{
    faults::{Budget, Fault},
    mutants::Mutant,
    properties::Situation,
    state::{Bank, Dispatcher, Life, Row, STEPS, State, Worker},
};

/// A part of a bank's stream and the questions that are asked after it (P6).
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Entries of the stream up to its end.
    pub(crate) until: u32,
    /// Indexes of its questions.
    pub(crate) questions: Vec<u32>,
}

/// A run of the protocol.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    /// The banks with their segments.
    pub(crate) banks: Vec<Vec<Segment>>,
    /// Votes on each answer.
    pub(crate) votes: u32,
    /// Calls of a vote, one after the other; the last one's reply is stored with the grade.
    pub(crate) calls: usize,
    /// Processes that take tasks.
    pub(crate) workers: usize,
    /// Tasks that a worker has in work at most.
    pub(crate) slots: usize,
    /// Deliveries that a worker holds unacked at most.
    pub(crate) prefetch: usize,
    /// Attempts of a task after its first, as `--retries` says.
    pub(crate) retries: i32,
    /// The memory system takes the same entry twice without harm.
    pub(crate) retain_idempotent: bool,
    /// The memory system answers by itself: what it answers from is the bank as it is then.
    pub(crate) answers_by_system: bool,
    /// The run begins with its banks ready.
    pub(crate) banks_are_ready: bool,
    /// Publishing and its note are one step, and so are delivery, claim and ack: for runs that are about something else.
    pub(crate) coarse: bool,
    /// Faults of one run.
    pub(crate) budget: Budget,
    /// The rule that is broken on purpose.
    pub(crate) mutant: Option<Mutant>,
    /// Situations that must be met, or the model proves nothing.
    pub(crate) must_meet: &'static [Situation],
}

impl Protocol {
    /// One bank with one segment of `entries` and `questions`, two workers with a slot each, no faults.
    pub(crate) fn small(entries: u32, questions: u32, votes: u32) -> Self {
        Self {
            banks: vec![vec![Segment { until: entries, questions: (0..questions).collect() }]],
            votes,
            calls: 1,
            workers: 2,
            slots: 1,
            prefetch: 1,
            retries: 2,
            retain_idempotent: true,
            answers_by_system: false,
            banks_are_ready: false,
            coarse: false,
            budget: Budget::default(),
            mutant: None,
            must_meet: &[],
        }
    }

    /// The same with these faults.
    pub(crate) fn with(mut self, faults: &[(Fault, u8)]) -> Self {
        self.budget = Budget::with(faults);
        self
    }

    /// Whether a question's recall is stored with its answer, not before it (P6).
    pub(crate) fn stores_recall_with_answer(&self, task: TaskKey) -> bool {
        self.answers_by_system && task.kind() == TaskKind::Question && !self.lacks(Mutant::RecallBeforeItsAnswer)
    }

    /// Whether this rule is broken.
    pub(crate) fn lacks(&self, rule: Mutant) -> bool {
        self.mutant == Some(rule)
    }

    /// The only way in which a task's state, epoch, attempts and losses change: the table of P27.
    pub(crate) fn change(&self, row: &mut Row, event: TaskEvent, epoch_is_current: bool) -> bool {
        let Some(t) = self.table(row.state, event, epoch_is_current) else {
            return false;
        };
        row.state = t.to;
        row.epoch += t.counts.0;
        row.attempts += t.counts.1;
        row.losses += t.counts.2;
        if t.to != TaskState::Leased {
            row.holder = None;
        }
        if t.to == TaskState::Ready {
            row.published = false;
        }
        true
    }

    /// The table, or a broken one.
    pub(crate) fn table(&self, from: TaskState, event: TaskEvent, current: bool) -> Option<&'static Transition> {
        match (self.mutant, event, from) {
            (Some(Mutant::RetryWithoutEpoch), TaskEvent::Retry | TaskEvent::Park, _) => transition(from, event, true),
            (Some(Mutant::GiveUpWithoutEpoch), TaskEvent::GiveUp, _) => transition(from, event, true),
            (Some(Mutant::ClaimOfLeased | Mutant::NoteIsState), TaskEvent::Claim, TaskState::Leased) => {
                transition(TaskState::Ready, event, current)
            }
            (Some(Mutant::ClaimKeepsEpoch), TaskEvent::Claim, TaskState::Ready) => {
                // the line of a park in the other direction: same counts, no new epoch
                const CLAIM: Transition = Transition {
                    from: TaskState::Ready,
                    event: TaskEvent::Claim,
                    needs_epoch: false,
                    to: TaskState::Leased,
                    counts: (0, 0, 0),
                };
                Some(&CLAIM)
            }
            (Some(Mutant::LossIsAnAttempt), TaskEvent::LoseLease, _) => {
                transition(from, event, current).and_then(|_| transition(from, TaskEvent::Retry, current))
            }
            (Some(Mutant::DoneIsClaimable), TaskEvent::Claim, TaskState::Done) => {
                transition(TaskState::Ready, event, current)
            }
            _ => transition(from, event, current),
        }
    }

    /// The segment of a question, with its number.
    pub(crate) fn segment_of(&self, question: TaskKey) -> (u32, &Segment) {
        let segments = &self.banks[question.bank() as usize];
        let at =
            segments.iter().position(|s| s.questions.contains(&question.index())).expect("every question is planned");
        (at as u32, &segments[at])
    }

    /// Questions of a segment.
    pub(crate) fn questions(&self, bank: u32, segment: u32) -> impl Iterator<Item = TaskKey> {
        self.banks[bank as usize][segment as usize].questions.iter().map(move |index| TaskKey::question(bank, *index))
    }

    /// The votes on a question's answer.
    pub(crate) fn judges(&self, question: TaskKey) -> impl Iterator<Item = TaskKey> + use<> {
        (0..self.votes).map(move |vote| TaskKey::judge(question.bank(), question.index(), 0, vote))
    }

    /// The state at the start of a run.
    pub(crate) fn start(&self) -> State {
        let worker = |number: usize| Worker {
            life: Life::Running,
            session: number as u8,
            confirmed: true,
            deliveries: Vec::new(),
            jobs: Vec::new(),
        };
        let mut state = State {
            tasks: std::collections::BTreeMap::new(),
            banks: Vec::new(),
            sessions: vec![true; self.workers],
            store_is_down: false,
            corrupted: false,
            messages: std::collections::BTreeMap::new(),
            workers: (0..self.workers).map(worker).collect(),
            dispatchers: vec![
                Dispatcher { leads: true, noting: Vec::new() },
                Dispatcher { leads: false, noting: Vec::new() },
            ],
            budget: self.budget,
            broken: None,
        };
        for (number, segments) in (0_u32..).zip(&self.banks) {
            state.banks.push(Bank {
                generation: 1,
                state: BankState::Building,
                position: 0,
                segment: 0,
                open_recalls: segments[0].questions.len() as i32,
                namespaces: vec![[0; STEPS]],
            });
            if self.banks_are_ready {
                let bank = &mut state.banks[number as usize];
                bank.position = segments[0].until;
                bank.namespaces[0][..segments[0].until as usize].fill(1);
                for task in [TaskKey::retain(number, 0), TaskKey::ready(number, 0)] {
                    state.tasks.insert(task, Row { state: TaskState::Done, ..Row::fresh(0) });
                }
            }
            self.settle(&mut state, number);
        }
        state
    }
}
