//! States of a bank, and the table of what can happen to it. Where a bank stands is derived from its tasks and checkpoints (P7); the
//! stores take every state from this table.

use serde::{Deserialize, Serialize};

use crate::transition::{Line, after};

/// Where a bank stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BankState {
    /// Being retained.
    Building,
    /// The current segment is proven ready.
    Ready,
    /// Given up; its row says why.
    Failed,
}

impl BankState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Building, Self::Ready, Self::Failed];

    /// The number that stands for the state in the store.
    #[must_use]
    pub const fn code(self) -> i64 {
        match self {
            Self::Building => 0,
            Self::Ready => 1,
            Self::Failed => 2,
        }
    }

    /// The state behind a stored number.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The state after an event; an event that is refused changes nothing.
    #[must_use]
    pub fn after(self, event: BankEvent) -> Self {
        after(TRANSITIONS, Some(self), event).unwrap_or(self)
    }
}

/// What can happen to a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BankEvent {
    /// Its row, its segments and its first retain task are written.
    Planned,
    /// It is ready to its end without any work: it was taken over from another run.
    TakenOver,
    /// The ready task of the current segment is done.
    SegmentProven,
    /// Every recall of the segment is stored or given up, and another segment follows (P6).
    NextSegment,
    /// A retain has ended of which nobody knows what it wrote (P5).
    NewGeneration,
    /// One of its tasks has failed: its questions fail with it.
    GivenUp,
    /// It failed, and its questions are repeated in a new generation (`retry`).
    Reopened,
    /// A recall of a closed segment is missing, and is repeated in a new generation (`retry`).
    RecalledAnew,
}

impl BankEvent {
    /// All events.
    pub const ALL: [Self; 8] = [
        Self::Planned,
        Self::TakenOver,
        Self::SegmentProven,
        Self::NextSegment,
        Self::NewGeneration,
        Self::GivenUp,
        Self::Reopened,
        Self::RecalledAnew,
    ];

    /// The state that it leads to, wherever it is legal.
    #[must_use]
    pub fn leads_to(self) -> BankState {
        TRANSITIONS.iter().find(|line| line.event == self).map_or(BankState::Building, |line| line.to)
    }
}

/// The table.
pub const TRANSITIONS: &[Line<BankState, BankEvent>] = &{
    use BankEvent::{GivenUp, NewGeneration, NextSegment, Planned, RecalledAnew, Reopened, SegmentProven, TakenOver};
    use BankState::{Building, Failed, Ready};
    const fn l(from: Option<BankState>, event: BankEvent, to: BankState) -> Line<BankState, BankEvent> {
        Line { from, event, to }
    }
    [
        l(None, Planned, Building),
        l(None, TakenOver, Ready),
        l(Some(Building), SegmentProven, Ready),
        l(Some(Ready), NextSegment, Building),
        l(Some(Building), NewGeneration, Building),
        l(Some(Building), GivenUp, Failed),
        l(Some(Failed), Reopened, Building),
        l(Some(Ready), RecalledAnew, Building),
        l(Some(Building), RecalledAnew, Building), // of an earlier segment than the one that is being retained
    ]
};

/// Bits of a lease epoch below the generation: tasks of a bank that is planned anew start above all epochs that tasks of
/// the same name had before, so that an old holder never carries a current epoch (P3, P5).
const EPOCH_BITS: u32 = 20;

/// The lease epoch of a fresh task row of a bank in this generation.
#[must_use]
pub const fn first_epoch(generation: i64) -> i64 {
    (generation - 1) << EPOCH_BITS
}

/// The generation in which the task of this epoch was planned.
#[must_use]
pub const fn planned_generation(epoch: i64) -> i64 {
    (epoch >> EPOCH_BITS) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_leads_to_one_state() {
        for event in BankEvent::ALL {
            let lines: Vec<_> = TRANSITIONS.iter().filter(|line| line.event == event).collect();
            assert!(!lines.is_empty(), "{event:?} has no line");
            assert!(lines.iter().all(|line| line.to == event.leads_to()), "{event:?}");
        }
    }

    #[test]
    fn a_bank_that_failed_waits_for_a_user() {
        for event in BankEvent::ALL {
            let changes = BankState::Failed.after(event) != BankState::Failed;
            assert_eq!(changes, event == BankEvent::Reopened, "{event:?}");
        }
    }

    #[test]
    fn p5_tasks_of_a_generation_begin_above_those_before() {
        assert_eq!((first_epoch(1), planned_generation(0), planned_generation(7)), (0, 1, 1));
        assert_eq!((planned_generation(first_epoch(3)), planned_generation(first_epoch(3) - 1)), (3, 2));
    }

    #[test]
    fn numbers_of_the_store_are_those_of_states() {
        for state in BankState::ALL {
            assert_eq!(BankState::from_code(state.code()), Some(state));
        }
        assert_eq!(BankState::from_code(3), None);
    }
}
