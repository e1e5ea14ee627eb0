//! What a process does when it looks at the store, as `watch` does, and what its probes find.

use bench_proto::outage::OutageEvent;

use super::{
    super::*,
    mutants::Mutant,
    search,
    steps::{Ending, PROBE_BY_SICK, pause, refusal},
    world::{Fleet, Ill, Looked, Probe, Provider, STEP, World},
};
use crate::routes::remedy::{Remedy, probes_for_all, probes_for_itself, remedy};

/// It reads the row and what the others tell.
pub(super) fn read(world: &mut World, number: usize) {
    let read = (world.row(), world.others(number));
    world.processes[number].looked = Looked::Read(Box::new(read));
}

/// Takes over what the store says.
fn hear(fleet: &Fleet, world: &mut World, number: usize, row: &OutageRow) {
    let mut row = row.clone();
    if fleet.lacks(Mutant::FalseAlarmsForgive) {
        row.outage.failed_probes = row.outage.failed_probes.max(1);
    }
    let (now, share) = (world.now, share_of(world.processes.len()));
    let process = &mut world.processes[number];
    if row.outage.opening >= process.route.opening {
        process.knows_closed = row.outage.is_open();
        if row.outage.is_open() && row.outage.is_confirmed() {
            process.confirmed = Some(now);
        }
    }
    if process.route.told(&row, share, now) == Turn::CameBack && fleet.lacks(Mutant::AnotherProbeTells) {
        process.route.through(now, now);
    }
}

/// It acts on what it has read.
pub(super) fn act(fleet: &Fleet, world: &mut World, number: usize) {
    let Looked::Read(read) = std::mem::replace(&mut world.processes[number].looked, Looked::Yes) else {
        unreachable!("a process that has read")
    };
    let (row, others) = *read;
    let now = world.now;
    if row.outage.opening > 0 {
        hear(fleet, world, number, &row);
    }
    if world.processes[number].route.is_troubled(now) {
        follow_remedy(fleet, world, number, &others);
        probe(fleet, world, number, &row, &others);
        tell(world, number);
    } else if world.processes[number].told.as_ref().is_none_or(|(_, at)| now - *at >= STEP * 2) {
        // it tells with its renewals only
        tell(world, number);
    }
}

fn tell(world: &mut World, number: usize) {
    let process = &mut world.processes[number];
    process.told = Some((process.route.evidence(String::new(), world.now), world.now));
}

fn follow_remedy(fleet: &Fleet, world: &mut World, number: usize, others: &[RouteEvidence]) {
    let now_us = world.us(world.now);
    match remedy(&world.processes[number].route, others, world.now) {
        Remedy::Nothing => {}
        Remedy::Close if fleet.lacks(Mutant::NeverCloses) => {}
        Remedy::Close => {
            let known = world.processes[number].route.opening;
            if world.row.take(now_us, OutageEvent::Suspect { known }) {
                world.meets(search::OPENED);
            } else {
                world.meets(search::TWO_CLOSE);
            }
            let row = world.row();
            hear(fleet, world, number, &row);
        }
        Remedy::AskMyself if fleet.lacks(Mutant::NeverWithdraws) => {}
        Remedy::AskMyself => ask_myself(world, number),
        Remedy::StopRuns(_) => pause(world),
    }
}

fn begin(world: &mut World, number: usize, outage: Option<i64>) {
    let (fate, sent) = (world.fate(number), world.now);
    let process = &mut world.processes[number];
    process.route.asking = true;
    process.probe = Some(Probe { outage, sent, fate });
}

fn ask_myself(world: &mut World, number: usize) {
    if !world.processes[number].route.asking {
        begin(world, number, None);
    }
}

fn probe(fleet: &Fleet, world: &mut World, number: usize, row: &OutageRow, others: &[RouteEvidence]) {
    let route = &world.processes[number].route;
    if probes_for_itself(route, world.now) && !fleet.lacks(Mutant::StaysWithdrawn) {
        return begin(world, number, None);
    }
    let unheeded = |others: &[RouteEvidence]| match fleet.lacks(Mutant::SickProcessesProbe) {
        true => Vec::new(),
        false => others.to_vec(),
    };
    if fleet.lacks(Mutant::NeverProbes) || !probes_for_all(route, row, &unheeded(others)) {
        return;
    }
    let is_withdrawn = matches!(route.standing, Standing::Withdrawn(_));
    let session = world.processes[number].session;
    let longest = STEP * (fleet.latency.1.max(fleet.fault_lasts + 2) + 1);
    let within_us = match fleet.mutant {
        Some(Mutant::NoLease) => 0,
        Some(Mutant::EndlessLease) => i64::MAX,
        _ => longest.as_micros() as i64,
    };
    if world.row.take(world.us(world.now), OutageEvent::TakeProbe { session, within_us }) {
        if is_withdrawn && others.iter().any(|other| other.withdrawn.is_none()) {
            world.breaks(PROBE_BY_SICK);
        }
        begin(world, number, Some(world.row.opening));
    }
}

pub(super) fn end_probe(fleet: &Fleet, world: &mut World, number: usize, ending: Ending) {
    let (now, share) = (world.now, share_of(world.processes.len()));
    let Some(probe) = world.processes[number].probe.take() else { unreachable!("a probe that is under way") };
    world.processes[number].route.asking = false;
    match ending {
        Ending::Through => world.answered = world.answered.max(Some(probe.sent)),
        Ending::Failed => {}
        Ending::NotMade => {
            for (of, left) in &mut world.faults {
                *left -= u8::from(*of == super::world::Fault::NoMoney);
            }
        }
    }
    let is_refused = world.processes[number].ill == Ill::BadKey && world.provider == Provider::Up;
    let route = &mut world.processes[number].route;
    let Some(opening) = probe.outage else {
        match ending {
            Ending::Through => {
                if route.is_back(probe.sent, share, now) {
                    world.meets(search::CAME_BACK);
                }
            }
            Ending::Failed => {
                if route.is_not_back("", is_refused.then(refusal), now) {
                    world.meets(search::WITHDRAWN);
                }
            }
            Ending::NotMade => {}
        }
        return;
    };
    let session = world.processes[number].session;
    let event = match ending {
        Ending::Through => OutageEvent::ProbeSucceeded { opening },
        Ending::Failed => OutageEvent::ProbeFailed { session, opening, spread: 0 },
        Ending::NotMade => OutageEvent::ProbeNotMade { session, opening },
    };
    let changed = world.row.take(world.us(now), event);
    if changed && ending == Ending::Failed {
        world.processes[number].route.failed_last = Some((opening, world.row.failed_probes));
    }
    if ending == Ending::Through {
        world.processes[number].route.is_back(probe.sent, share, now);
    }
    if changed {
        world.meets(match (ending, world.row.is_confirmed()) {
            (Ending::Through, false) => search::FALSE_ALARM,
            (Ending::Failed, _) => search::CONFIRMED,
            _ => search::OPENED,
        });
    }
    let row = world.row();
    hear(fleet, world, number, &row);
}
