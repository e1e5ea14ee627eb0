//! Small runs with a few faults each, searched completely: safety by the checker, completion by [`Graph`].

use stateright::{Checker, Model};

use crate::{
    actions::Action,
    faults::Fault::{
        self, CallFails, CallRefused, Corruption, Crash, CutLine, Duplicate, Freeze, LeaderCrash, LostAnswer,
        LostQueue, Outage, Panic, Park, Reopen, TakeOver,
    },
    liveness::Graph,
    properties::{Situation, meets},
    setup::{Protocol, Segment},
};

/// The whole chain: retain, ready, one question, its votes.
pub(crate) fn chain(entries: u32, votes: u32, faults: &[(Fault, u8)]) -> Protocol {
    Protocol::small(entries, 1, votes).with(faults)
}

/// Questions of a bank that is ready.
pub(crate) fn questions(questions: u32, votes: u32, faults: &[(Fault, u8)]) -> Protocol {
    Protocol { banks_are_ready: true, ..Protocol::small(1, questions, votes).with(faults) }
}

/// A bank in two segments of one entry and one question each.
pub(crate) fn segments(votes: u32, faults: &[(Fault, u8)]) -> Protocol {
    let segment = |until: u32| Segment { until, questions: vec![until - 1] };
    Protocol { banks: vec![vec![segment(1), segment(2)]], ..Protocol::small(1, 1, votes).with(faults) }
}

/// A bank whose first segment is ready, with one question, and whose second one has no question.
pub(crate) fn asked_bank(faults: &[(Fault, u8)]) -> Protocol {
    let banks = vec![vec![Segment { until: 1, questions: vec![0] }, Segment { until: 2, questions: vec![] }]];
    Protocol { banks, banks_are_ready: true, ..Protocol::small(1, 1, 0).with(faults) }
}

/// With fewer steps between publishing and work.
pub(crate) fn coarse(protocol: Protocol) -> Protocol {
    Protocol { coarse: true, ..protocol }
}

/// A trace for people, one step a line.
pub(crate) fn trace(actions: &[Action]) -> String {
    actions.iter().map(|action| format!("\n  {action:?}")).collect()
}

/// Searches all states for broken promises, and for a state that no longer completes.
fn search(protocol: Protocol, must_meet: &'static [Situation]) {
    let checker = Protocol { must_meet, ..protocol.clone() }.checker().spawn_bfs().join();
    for (name, path) in checker.discoveries() {
        let is_met = must_meet.iter().any(|(situation, _)| *situation == name);
        assert!(is_met, "{name}, broken by{}", trace(&path.into_actions()));
    }
    for (situation, _) in must_meet {
        assert!(checker.discovery(situation).is_some(), "never met: {situation}");
    }
    let graph = Graph::walk(&protocol);
    assert_eq!(graph.len(), checker.unique_state_count(), "both searches see the same states");
    if let Some(way) = graph.way_into_a_dead_end() {
        panic!("a run that never completes:{}", trace(&way));
    }
    let steps = checker.state_count();
    println!("{} states, {steps} steps, at most {} deep", graph.len(), checker.max_depth());
}

#[test]
fn p7_a_run_without_faults_completes() {
    search(chain(2, 2, &[]), &[meets::THE_END]);
    search(segments(0, &[]), &[meets::THE_END]);
    search(questions(2, 1, &[]), &[meets::THE_END]);
}

#[test]
fn p4_killed_workers_lose_nothing() {
    search(chain(1, 1, &[(Crash, 1)]), &[meets::THE_END, meets::DEAD_HOLDER]);
    search(questions(1, 0, &[(Crash, 2)]), &[meets::THE_END, meets::DEAD_HOLDER]);
    search(questions(2, 0, &[(Crash, 1)]), &[meets::THE_END, meets::SECOND_DELIVERY]);
}

#[test]
fn p4_frozen_workers_are_replaced_and_may_come_back() {
    search(chain(1, 1, &[(Freeze, 1)]), &[meets::THE_END, meets::LATE_RESULT, meets::LATER_RESULT]);
    search(questions(1, 0, &[(Freeze, 2)]), &[meets::THE_END, meets::LATE_RESULT, meets::LATER_RESULT]);
    search(questions(1, 0, &[(Freeze, 1), (Crash, 1)]), &[meets::THE_END, meets::LATE_RESULT]);
}

#[test]
fn p1_p2_messages_may_be_lost_doubled_and_late() {
    search(
        questions(1, 1, &[(Duplicate, 1), (LostQueue, 1), (CutLine, 1)]),
        &[meets::THE_END, meets::SECOND_DELIVERY, meets::LOST_MESSAGE],
    );
    search(questions(1, 0, &[(Duplicate, 1), (Freeze, 1)]), &[meets::THE_END, meets::SECOND_DELIVERY]);
}

#[test]
fn p14_two_leaders_only_publish_twice() {
    search(
        questions(2, 0, &[(TakeOver, 1), (LeaderCrash, 1)]),
        &[meets::THE_END, meets::TWO_LEADERS, meets::SECOND_DELIVERY],
    );
    search(questions(1, 0, &[(TakeOver, 1), (Freeze, 1)]), &[meets::THE_END, meets::TWO_LEADERS, meets::LOST_MESSAGE]);
}

#[test]
fn p8_answers_of_the_store_may_be_lost() {
    search(chain(1, 1, &[(LostAnswer, 2)]), &[meets::THE_END, meets::UNKNOWN_COMMIT, meets::UNKNOWN_LEASE]);
    search(
        questions(1, 1, &[(LostAnswer, 1), (Freeze, 1)]),
        &[meets::THE_END, meets::UNKNOWN_COMMIT, meets::UNKNOWN_LEASE],
    );
    search(
        questions(1, 0, &[(LostAnswer, 1), (Crash, 1)]),
        &[meets::THE_END, meets::UNKNOWN_COMMIT, meets::UNKNOWN_LEASE],
    );
}

#[test]
fn p4_the_store_may_be_away() {
    search(questions(1, 1, &[(Outage, 1), (CallFails, 1)]), &[meets::THE_END, meets::OUTAGE, meets::UNKNOWN_LEASE]);
    search(questions(1, 0, &[(Outage, 1), (Crash, 1)]), &[meets::THE_END, meets::OUTAGE]);
}

#[test]
fn p3_calls_may_fail_and_tasks_may_panic_and_wait() {
    let few = |protocol| Protocol { retries: 1, ..protocol };
    search(
        few(questions(1, 1, &[(CallFails, 2), (Panic, 1), (Park, 1)])),
        &[meets::THE_END, meets::RETRY, meets::FAILURE],
    );
    search(
        few(questions(1, 0, &[(CallFails, 1), (Freeze, 1), (Park, 1)])),
        &[meets::THE_END, meets::RETRY, meets::LATE_RESULT],
    );
    search(questions(1, 1, &[(CallRefused, 1), (Freeze, 1)]), &[meets::THE_END, meets::FAILURE, meets::LATE_RESULT]);
}

#[test]
fn p6_a_vote_goes_on_from_the_replies_that_are_stored() {
    let of_two = |faults| Protocol { calls: 2, ..questions(1, 1, faults) };
    search(of_two(&[(Crash, 1)]), &[meets::THE_END, meets::DEAD_HOLDER]);
    search(of_two(&[(Freeze, 1)]), &[meets::THE_END, meets::LATE_RESULT, meets::LATER_RESULT]);
    search(of_two(&[(LostAnswer, 1), (CallFails, 1)]), &[meets::THE_END, meets::UNKNOWN_COMMIT, meets::RETRY]);
}

#[test]
fn p5_banks_of_unknown_content_start_anew() {
    let strict = |protocol| Protocol { retain_idempotent: false, ..protocol };
    search(strict(chain(1, 0, &[(CallFails, 1), (Freeze, 1)])), &[meets::THE_END, meets::LATE_WRITER]);
    search(coarse(strict(chain(1, 0, &[(Panic, 1), (Freeze, 1)]))), &[meets::THE_END, meets::LATE_WRITER]);
    search(strict(chain(2, 0, &[(Crash, 1)])), &[meets::THE_END]);
    search(strict(asked_bank(&[(CallFails, 1)])), &[meets::THE_END]);
}

#[test]
fn p22_failed_banks_fail_their_questions() {
    search(segments(0, &[(CallRefused, 1)]), &[meets::THE_END, meets::FAILURE]);
    search(coarse(asked_bank(&[(CallRefused, 1), (Freeze, 1)])), &[meets::THE_END, meets::FAILURE]);
}

#[test]
fn p6_a_system_that_answers_sees_no_later_segment() {
    let answering = |protocol| Protocol { answers_by_system: true, ..protocol };
    search(answering(segments(0, &[])), &[meets::THE_END]);
    search(coarse(answering(segments(0, &[(Crash, 1)]))), &[meets::THE_END, meets::DEAD_HOLDER]);
    search(coarse(answering(segments(0, &[(Freeze, 1)]))), &[meets::THE_END, meets::LATE_RESULT]);
    search(coarse(answering(asked_bank(&[(CallRefused, 1), (Reopen, 1)]))), &[meets::THE_END, meets::FAILURE]);
    search(answering(questions(1, 1, &[(CallFails, 1), (LostAnswer, 1)])), &[meets::THE_END, meets::UNKNOWN_COMMIT]);
}

#[test]
fn p6_what_failed_is_repeated_in_a_new_generation() {
    search(asked_bank(&[(CallRefused, 1), (Reopen, 1)]), &[meets::THE_END, meets::FAILURE]);
    search(coarse(asked_bank(&[(CallRefused, 1), (Reopen, 1), (Freeze, 1)])), &[meets::THE_END, meets::LATE_READER]);
}

#[test]
fn p7_wrong_counters_are_derived_anew() {
    search(segments(0, &[(Corruption, 1)]), &[meets::THE_END]);
    search(questions(1, 2, &[(Corruption, 1)]), &[meets::THE_END]);
}

/// Three faults of different kinds in one run, in every order.
#[test]
fn p27_faults_may_meet() {
    search(coarse(chain(1, 0, &[(Crash, 1), (Freeze, 1), (LostAnswer, 1)])), &[meets::THE_END]);
    search(coarse(questions(1, 0, &[(Freeze, 1), (CallFails, 1), (Outage, 1)])), &[meets::THE_END]);
    search(coarse(questions(1, 0, &[(Crash, 1), (Freeze, 1), (LostQueue, 1)])), &[meets::THE_END]);
}
