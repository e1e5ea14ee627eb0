//! The protocol with one rule left out or bent: the search has to notice each, or it is worth nothing.

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    faults::Fault::{
        CallFails, CallRefused, Corruption, Crash, Duplicate, Freeze, LostAnswer, LostQueue, Outage, Reopen, TakeOver,
    },
    liveness::Graph,
    properties::{
        ANSWERS, CALLS, CONCLUDED, COUNTS, DONE_STAYS, HOLDER_GIVES_UP, ONE_HOLDER, ONE_RESULT, RECALLS,
        STORED_STAYS_MADE,
    },
    scenarios::{asked_bank, chain, questions, trace},
    setup::Protocol,
};

/// A rule that is left out or bent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A task is handed back by whoever once held it.
    RetryWithoutEpoch,
    /// A task is given up by whoever once held it.
    GiveUpWithoutEpoch,
    /// A claim takes a task from its holder.
    ClaimOfLeased,
    /// A claim does not raise the epoch.
    ClaimKeepsEpoch,
    /// A finished task can be claimed.
    DoneIsClaimable,
    /// A lost lease counts as an attempt.
    LossIsAnAttempt,
    /// The published note decides on claims, not the state.
    NoteIsState,
    /// A delivery is acked before its claim, and nothing is published again.
    AckBeforeClaim,
    /// What the broker has lost is not published again.
    NoRepublish,
    /// A frozen worker keeps its deliveries for ever.
    NoHeartbeats,
    /// A second result under the same key is stored as well.
    ResultsTwice,
    /// A worker makes every step anew, stored or not.
    StoredStepsUnread,
    /// A worker that was frozen calls before it has renewed its session.
    CallsWithoutRenewal,
    /// Retained entries of an old generation count.
    LateWritesCount,
    /// Recalls of an old generation count.
    StaleRecallsCount,
    /// The recall of a question that its memory system answers is stored before the answer.
    RecallBeforeItsAnswer,
    /// After a holder was lost in a call, the next one writes on in the same namespace.
    GoesOnUnsure,
    /// Counters are never derived anew.
    NoSweep,
    /// Questions are concluded by their counter alone.
    CountersAreTruth,
    /// Leases of its session that a worker knows nothing of stay as they are.
    UnknownLeasesKept,
    /// A worker whose claim got no connection forgets its deliveries, and neither claims nor acks them.
    DeliveriesForgotten,
}

/// A run in which the safety property of this name has to be seen broken.
fn breaks(property: &'static str, mutant: Mutant, protocol: Protocol) {
    let mutated = Protocol { mutant: Some(mutant), ..protocol };
    let checker = mutated.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries();
    assert!(found.contains_key(property), "{mutant:?} must break '{property}', found: {:?}", found.keys());
    let path = found.into_iter().find(|(name, _)| *name == property).map(|(_, path)| path.into_actions());
    println!("{mutant:?} breaks '{property}':{}", trace(&path.unwrap_or_default()));
}

/// A run that has to be seen stuck.
fn sticks(mutant: Mutant, protocol: Protocol) {
    let way = Graph::walk(&Protocol { mutant: Some(mutant), ..protocol }).way_into_a_dead_end();
    let way = way.unwrap_or_else(|| panic!("{mutant:?} must be able to stop a run"));
    println!("{mutant:?} stops a run:{}", trace(&way));
}

#[test]
fn p3_events_without_their_epoch_are_noticed() {
    breaks(COUNTS, Mutant::RetryWithoutEpoch, questions(1, 0, &[(Freeze, 1), (CallFails, 1)]));
    breaks(HOLDER_GIVES_UP, Mutant::GiveUpWithoutEpoch, questions(1, 0, &[(Freeze, 1), (CallRefused, 1)]));
    breaks(ONE_HOLDER, Mutant::ClaimKeepsEpoch, questions(1, 0, &[(Freeze, 1)]));
    breaks(COUNTS, Mutant::LossIsAnAttempt, questions(1, 0, &[(Crash, 1)]));
}

#[test]
fn p1_claims_of_what_is_not_ready_are_noticed() {
    breaks(CALLS, Mutant::ClaimOfLeased, questions(1, 0, &[(Duplicate, 1)]));
    breaks(DONE_STAYS, Mutant::DoneIsClaimable, questions(1, 0, &[(Duplicate, 1)]));
    breaks(CALLS, Mutant::NoteIsState, questions(1, 0, &[(TakeOver, 1)]));
}

#[test]
fn p1_p2_messages_that_are_trusted_are_noticed() {
    sticks(Mutant::AckBeforeClaim, questions(1, 0, &[(Crash, 1)]));
    sticks(Mutant::NoRepublish, questions(1, 0, &[(LostQueue, 1)]));
    // a message that is lost is one way; a note that comes late, its message being used up, is another
    sticks(Mutant::NoRepublish, questions(1, 0, &[(Freeze, 1)]));
    sticks(Mutant::NoHeartbeats, questions(1, 0, &[(Freeze, 1)]));
    sticks(Mutant::DeliveriesForgotten, Protocol { workers: 1, ..questions(1, 0, &[(Outage, 1)]) });
}

#[test]
fn p8_results_and_calls_made_twice_are_noticed() {
    breaks(ONE_RESULT, Mutant::ResultsTwice, questions(1, 0, &[(LostAnswer, 1)]));
    breaks(STORED_STAYS_MADE, Mutant::StoredStepsUnread, questions(1, 0, &[(Crash, 1)]));
}

#[test]
fn p4_leases_that_nobody_works_on_are_noticed() {
    breaks(CALLS, Mutant::CallsWithoutRenewal, questions(1, 0, &[(Freeze, 1)]));
    sticks(Mutant::UnknownLeasesKept, questions(1, 0, &[(LostAnswer, 1)]));
    sticks(Mutant::UnknownLeasesKept, questions(1, 0, &[(Outage, 1), (CallFails, 1)]));
}

#[test]
fn p5_mixed_generations_are_noticed() {
    let strict = |protocol| Protocol { retain_idempotent: false, ..protocol };
    breaks(RECALLS, Mutant::LateWritesCount, strict(chain(1, 0, &[(CallFails, 1), (Freeze, 1)])));
    breaks(RECALLS, Mutant::GoesOnUnsure, strict(chain(1, 0, &[(Crash, 1)])));
    breaks(RECALLS, Mutant::StaleRecallsCount, asked_bank(&[(Freeze, 1), (CallRefused, 1), (Reopen, 1)]));
}

#[test]
fn p6_a_segment_that_opens_before_its_answers_is_noticed() {
    let answering = Protocol { answers_by_system: true, ..crate::scenarios::segments(0, &[]) };
    breaks(ANSWERS, Mutant::RecallBeforeItsAnswer, answering);
}

#[test]
fn p7_counters_that_are_trusted_are_noticed() {
    sticks(Mutant::NoSweep, crate::scenarios::segments(0, &[(Corruption, 1)]));
    breaks(CONCLUDED, Mutant::CountersAreTruth, questions(1, 1, &[(Corruption, 1)]));
}
