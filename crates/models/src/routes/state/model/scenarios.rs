//! Small fleets, searched completely.

use super::{
    search::{self, search, told},
    world::{
        Fault::{Asked, BadKey, Down, Hung, Killed, Mixed, NoFiles, NoMoney, NoWay},
        Fleet,
    },
};

/// Searches a fleet for broken promises and dead ends; these situations have to be met.
fn holds(fleet: &Fleet, must_meet: &[&str]) {
    let begun = std::time::Instant::now();
    let found = search(fleet);
    println!("{} states, {} steps, {} ms: {fleet:?}", found.states, found.steps, begun.elapsed().as_millis());
    if let Some((promise, way)) = found.broken {
        panic!("{promise}, broken by{}", told(&way));
    }
    if let Some(way) = found.dead_end {
        panic!("nothing leads to the end from here:{}", told(&way));
    }
    for situation in must_meet {
        assert!(found.met.contains(situation), "never met: {situation}; only {:?}", found.met);
    }
}

/// The first of the calls dies wherever it goes.
fn poisoned(fleet: Fleet) -> Fleet {
    Fleet { calls: (fleet.calls.0, 1), ..fleet }
}

#[test]
fn p39_an_outage_is_closed_probed_and_over() {
    holds(&Fleet::with_faults(1, 2, &[(Down, 1)]), &[search::OPENED, search::CONFIRMED, search::CHARGED]);
}

#[test]
fn p39_all_processes_wait_for_an_outage_and_one_probes() {
    let fleet = Fleet { latency: (0, 0), in_turn: true, ..Fleet::with_faults(2, 2, &[(Down, 1)]) };
    holds(&fleet, &[search::OPENED, search::CONFIRMED, search::FALSE_ALARM]);
}

#[test]
fn p39_looks_at_the_store_may_be_late() {
    let fleet = Fleet { splits: true, latency: (0, 0), ..Fleet::with_faults(2, 1, &[(Down, 1)]) };
    holds(&fleet, &[search::CONFIRMED]);
}

#[test]
fn p39_a_poison_question_ends_by_itself() {
    holds(&poisoned(Fleet::with_faults(1, 1, &[])), &[search::OPENED, search::FALSE_ALARM, search::GIVEN_UP]);
    holds(
        &poisoned(Fleet { latency: (0, 0), ..Fleet::with_faults(2, 1, &[]) }),
        &[search::OPENED, search::FALSE_ALARM, search::GIVEN_UP],
    );
}

#[test]
fn p39_a_poison_question_ends_beside_others() {
    let fleet = poisoned(Fleet { latency: (0, 0), ..Fleet::with_faults(1, 2, &[(Down, 1)]) });
    holds(&fleet, &[search::CONFIRMED, search::GIVEN_UP]);
}

#[test]
fn p39_a_poison_question_ends_where_replies_are_slow() {
    let fleet = poisoned(Fleet { latency: (3, 3), ..Fleet::with_faults(1, 1, &[]) });
    holds(&fleet, &[search::OPENED, search::GIVEN_UP]);
}

#[test]
fn p39_faults_among_answers_end() {
    holds(&Fleet { latency: (0, 0), ..Fleet::with_faults(1, 2, &[(Mixed, 1)]) }, &[search::CHARGED, search::GIVEN_UP]);
}

#[test]
fn p39_faults_among_answers_of_two_end() {
    holds(
        &Fleet { latency: (0, 0), fault_lasts: 3, in_turn: true, ..Fleet::with_faults(2, 2, &[(Mixed, 1)]) },
        &[search::CHARGED, search::GIVEN_UP],
    );
}

#[test]
fn p39_a_hang_of_everything_is_an_outage() {
    let fleet = Fleet { remembers: 19, fault_lasts: 16, latency: (0, 0), ..Fleet::with_faults(1, 2, &[(Hung, 1)]) };
    holds(&fleet, &[search::OPENED, search::CONFIRMED]);
}

#[test]
fn p39_a_prober_may_be_killed() {
    holds(&Fleet::with_faults(1, 1, &[(Down, 1), (Killed, 1)]), &[search::PROBER_DIED, search::CONFIRMED]);
    let two = Fleet { latency: (0, 0), in_turn: true, ..Fleet::with_faults(2, 1, &[(Down, 1), (Killed, 1)]) };
    holds(&two, &[search::CONFIRMED]);
}

#[test]
fn p39_a_probe_may_be_refused_by_the_budget() {
    holds(&Fleet::with_faults(1, 1, &[(Down, 1), (NoMoney, 2)]), &[search::CONFIRMED]);
}

#[test]
fn p39_who_asks_for_a_probe_gets_it_after_the_one_under_way() {
    holds(&Fleet::with_faults(1, 1, &[(Down, 1), (Asked, 1)]), &[search::CONFIRMED]);
    let two = Fleet { latency: (0, 0), in_turn: true, ..Fleet::with_faults(2, 1, &[(Down, 1), (Asked, 1)]) };
    holds(&two, &[search::CONFIRMED]);
}

#[test]
fn p40_a_process_without_a_way_leaves_its_calls_to_another() {
    let fleet = Fleet { latency: (0, 0), ..Fleet::with_faults(2, 2, &[(NoWay, 1)]) };
    holds(&fleet, &[search::WITHDRAWN, search::PUT_OFF]);
}

#[test]
fn p40_one_of_three_has_no_way() {
    let fleet = Fleet { latency: (0, 0), in_turn: true, ..Fleet::with_faults(3, 1, &[(NoWay, 1)]) };
    holds(&fleet, &[search::WITHDRAWN, search::PUT_OFF]);
}

#[test]
fn p40_a_process_without_files_leaves_its_calls_to_another() {
    holds(
        &Fleet { heals: true, latency: (0, 0), ..Fleet::with_faults(2, 2, &[(NoFiles, 1)]) },
        &[search::WITHDRAWN, search::CAME_BACK],
    );
}

#[test]
fn p40_a_refused_process_pauses_nothing_while_another_is_served() {
    let fleet = Fleet { remembers: 25, latency: (0, 0), ..Fleet::with_faults(2, 2, &[(BadKey, 1)]) };
    holds(&fleet, &[search::WITHDRAWN, search::PUT_OFF]);
}

#[test]
fn p40_a_key_that_is_refused_everywhere_pauses() {
    let fleet = Fleet { remembers: 25, latency: (0, 0), ..Fleet::with_faults(1, 1, &[(BadKey, 1)]) };
    holds(&fleet, &[search::PAUSED]);
}

#[test]
fn p39_p40_an_outage_meets_a_process_without_a_way() {
    let fleet = Fleet { latency: (0, 0), fault_lasts: 4, ..Fleet::with_faults(2, 1, &[(Down, 1), (NoWay, 1)]) };
    holds(&fleet, &[search::CONFIRMED]);
}

#[test]
fn p39_p40_an_outage_meets_a_refused_process() {
    let fleet =
        Fleet { remembers: 25, latency: (0, 0), fault_lasts: 4, ..Fleet::with_faults(2, 1, &[(Down, 1), (BadKey, 1)]) };
    holds(&fleet, &[search::WITHDRAWN]);
}

#[test]
fn p39_p40_a_poison_question_meets_a_process_without_a_way() {
    let fleet = poisoned(Fleet { latency: (0, 0), in_turn: true, ..Fleet::with_faults(2, 1, &[(NoWay, 1)]) });
    holds(&fleet, &[search::GIVEN_UP]);
}
