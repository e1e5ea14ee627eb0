//! The same with one rule left out: the search has to notice each, or it is worth nothing.

use super::{
    search::{search, told},
    steps::{CHARGE_OF_OUTAGE, CHARGE_OF_PROCESS, CHARGE_WITHOUT_ANSWER, PROBE_BY_SICK, SENT_INTO_OUTAGE, TWO_PROBES},
    world::{
        Fault::{self, Asked, Down, Killed, Mixed, NoFiles, NoWay},
        Fleet,
    },
};

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutant {
    /// A failure on the way counts as an attempt at once.
    ChargesAtOnce,
    /// A success counts for what was sent before it came.
    EarlierSendsCount,
    /// What is not decided of a call is forgotten when it is put off.
    ForgetsWhatIsPutOff,
    /// A confirmed outage and a withdrawal forgive nothing.
    OutagesCount,
    /// The opening forgives, also when the first probe comes through.
    FalseAlarmsForgive,
    /// A first probe that comes through tells every process that its failures were the calls' own.
    AnotherProbeTells,
    /// Nobody closes a route.
    NeverCloses,
    /// Nobody probes a closed route.
    NeverProbes,
    /// Probes of an outage have no lease.
    NoLease,
    /// The lease of a probe outlives its holder for ever.
    EndlessLease,
    /// A probe that is asked for is made beside one that is under way.
    AsksBeside,
    /// Processes that withdrew probe for all while others have not.
    SickProcessesProbe,
    /// Calls do not ask whether the route is closed.
    SendsIntoOutages,
    /// No process asks itself.
    NeverWithdraws,
    /// A process that withdrew never asks whether it is back.
    StaysWithdrawn,
}

/// A fleet in which this promise has to be seen broken.
fn breaks(promise: &str, mutant: Mutant, fleet: Fleet) {
    let found = search(&Fleet { mutant: Some(mutant), ..fleet });
    let Some((broken, way)) = found.broken else { panic!("{mutant:?} must be noticed: {promise}") };
    assert_eq!(broken, promise, "{mutant:?}:{}", told(&way));
    println!("{mutant:?}: {promise}:{}", told(&way));
}

/// A fleet that has to be seen stuck.
fn sticks(mutant: Mutant, fleet: Fleet) {
    let found = search(&Fleet { mutant: Some(mutant), ..fleet });
    assert_eq!(found.broken.map(|(promise, _)| promise), None, "{mutant:?} only sticks");
    let way = found.dead_end.unwrap_or_else(|| panic!("{mutant:?} must be able to stop a run"));
    println!("{mutant:?} stops a run:{}", told(&way));
}

fn poison(processes: usize) -> Fleet {
    Fleet { calls: (1, 1), latency: (0, 0), ..Fleet::with_faults(processes, 1, &[]) }
}

fn quick(processes: usize, calls: usize, faults: &[(Fault, u8)]) -> Fleet {
    Fleet { latency: (0, 0), ..Fleet::with_faults(processes, calls, faults) }
}

#[test]
fn p39_charges_that_are_not_due_are_noticed() {
    breaks(CHARGE_WITHOUT_ANSWER, Mutant::ChargesAtOnce, quick(1, 1, &[(Down, 1)]));
    breaks(CHARGE_WITHOUT_ANSWER, Mutant::EarlierSendsCount, Fleet::with_faults(1, 2, &[(Mixed, 1)]));
    breaks(CHARGE_OF_OUTAGE, Mutant::OutagesCount, quick(1, 1, &[(Down, 1)]));
    breaks(CHARGE_OF_PROCESS, Mutant::AnotherProbeTells, quick(2, 1, &[(NoWay, 1)]));
}

#[test]
fn p39_outages_without_an_end_are_noticed() {
    sticks(Mutant::FalseAlarmsForgive, poison(1));
    sticks(Mutant::NeverCloses, poison(1));
    sticks(Mutant::ForgetsWhatIsPutOff, Fleet { latency: (3, 3), ..poison(1) });
    sticks(Mutant::NeverProbes, quick(1, 1, &[(Down, 1)]));
    sticks(Mutant::EndlessLease, quick(1, 1, &[(Down, 1), (Killed, 1)]));
}

#[test]
fn p39_probes_and_sends_out_of_turn_are_noticed() {
    breaks(TWO_PROBES, Mutant::NoLease, Fleet::with_faults(2, 1, &[(Down, 1)]));
    breaks(TWO_PROBES, Mutant::AsksBeside, Fleet::with_faults(2, 1, &[(Down, 1), (Asked, 1)]));
    breaks(SENT_INTO_OUTAGE, Mutant::SendsIntoOutages, quick(1, 1, &[(Down, 1)]));
}

#[test]
fn p40_processes_that_are_sick_and_do_not_know_it_are_noticed() {
    sticks(Mutant::NeverWithdraws, quick(2, 1, &[(NoWay, 1)]));
    sticks(Mutant::StaysWithdrawn, Fleet { heals: true, ..quick(2, 2, &[(NoFiles, 1)]) });
    breaks(PROBE_BY_SICK, Mutant::SickProcessesProbe, quick(2, 1, &[(Down, 1), (NoWay, 1)]));
}
