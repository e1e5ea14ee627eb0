//! What can happen, and what it does.

use std::time::{Duration, Instant};

use bench_proto::{failure::Failure, outage::OutageEvent};

use super::{
    super::*,
    look::{act, read},
    mutants::Mutant,
    search,
    world::{CallStage, Cause, Fate, Fault, Fleet, Ill, Looked, PATIENCE, Process, Provider, STEP, World},
};

// what is promised
pub(super) const CHARGE_WITHOUT_ANSWER: &str = "an attempt counts although nobody who asked later was answered";
pub(super) const CHARGE_OF_OUTAGE: &str = "an attempt counts although a probe has shown that the provider was away";
pub(super) const CHARGE_OF_PROCESS: &str = "an attempt counts although the fault is the process's own";
pub(super) const SENT_INTO_OUTAGE: &str = "a call is sent although the process knows that the route is closed";
pub(super) const TWO_PROBES: &str = "two probes of one outage are under way";
pub(super) const PROBE_BY_SICK: &str = "a process that withdrew probes for others that have not";
pub(super) const PAUSED_BY_ONE: &str = "a run is paused although another process is served";
pub(super) const BACK_LATE: &str = "a process that was never at fault stays away after the outage";

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Something breaks: the provider, or a process.
    Fault(Fault, usize),
    /// The provider is well again.
    Recovers,
    /// A process is well again.
    Heals(usize),
    /// Time passes.
    Tick,
    /// A process looks at the store and acts on it.
    Look(usize),
    /// The first half of it.
    Reads(usize),
    /// The second half.
    Acts(usize),
    /// A call is handed out to a process.
    Take(usize, usize),
    /// Its delay is over.
    Wakes(usize),
    /// It is sent.
    Send(usize),
    /// It is handed back.
    Park(usize),
    /// It ends, well or not.
    End(usize, bool),
    /// The probe of a process ends, in this way.
    EndProbe(usize, Ending),
}

/// How a probe ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Through,
    Failed,
    NotMade,
}

impl Step {
    pub(super) const fn is_fault(self) -> bool {
        matches!(self, Self::Fault(..) | Self::EndProbe(_, Ending::NotMade))
    }
}

/// All that can happen next. Time passes when nothing else has to happen first.
pub(super) fn enabled(fleet: &Fleet, world: &World, steps: &mut Vec<Step>) {
    faults(world, steps);
    if world.provider != Provider::Up {
        steps.push(Step::Recovers);
    }
    let now = world.now;
    let mut is_urgent = world.provider != Provider::Up && now - world.provider_since >= STEP * fleet.fault_lasts;
    for (number, process) in world.processes.iter().enumerate() {
        if fleet.heals && process.ill != Ill::Well {
            steps.push(Step::Heals(number));
        }
        let earlier = &world.processes[number + 1..];
        match process.looked {
            Looked::NotYet if fleet.in_turn && earlier.iter().any(|p| !matches!(p.looked, Looked::Yes)) => {}
            Looked::NotYet if fleet.splits => steps.push(Step::Reads(number)),
            Looked::NotYet => steps.push(Step::Look(number)),
            Looked::Read(_) => steps.push(Step::Acts(number)),
            Looked::Yes => {}
        }
        is_urgent |= !matches!(process.looked, Looked::Yes);
        if let Some(probe) = &process.probe {
            is_urgent |= ends(fleet, world, (number, probe.sent, probe.fate), false, |is_well| {
                let ending = if is_well { Ending::Through } else { Ending::Failed };
                steps.push(Step::EndProbe(number, ending));
            });
            if left(world, Fault::NoMoney) {
                steps.push(Step::EndProbe(number, Ending::NotMade));
            }
        }
    }
    for (number, call) in world.calls.iter().enumerate() {
        match call.place {
            CallStage::Ready(at) if at <= now && !world.row.is_open() => {
                for (process, of) in world.processes.iter().enumerate() {
                    if !matches!(of.route.look(now), Look::Wait { lasts: true, .. }) {
                        steps.push(Step::Take(number, process));
                        is_urgent = true;
                    }
                }
            }
            CallStage::Waiting(process, since) => match look_of(fleet, world, process) {
                Look::Go => {
                    steps.push(Step::Send(number));
                    is_urgent = true;
                }
                Look::Wait { lasts, .. } => {
                    if lasts || now - since >= PATIENCE {
                        steps.push(Step::Park(number));
                        is_urgent = true;
                    }
                }
            },
            CallStage::Delayed(_, until) if until <= now => {
                steps.push(Step::Wakes(number));
                is_urgent = true;
            }
            CallStage::Out { process, sent, fate, .. } => {
                is_urgent |= ends(fleet, world, (process, sent, fate), call.poison, |is_well| {
                    steps.push(Step::End(number, is_well));
                });
            }
            CallStage::Ready(_) | CallStage::Delayed(..) | CallStage::Done | CallStage::GivenUp => {}
        }
    }
    if !is_urgent {
        steps.push(Step::Tick);
    }
}

fn look_of(fleet: &Fleet, world: &World, process: usize) -> Look {
    let route = &world.processes[process].route;
    match route.standing {
        Standing::Away { .. } if fleet.lacks(Mutant::SendsIntoOutages) => Look::Go,
        _ => route.look(world.now),
    }
}

fn left(world: &World, fault: Fault) -> bool {
    world.faults.iter().any(|(of, left)| *of == fault && *left > 0)
}

fn faults(world: &World, steps: &mut Vec<Step>) {
    for (fault, left) in &world.faults {
        if *left == 0 {
            continue;
        }
        match fault {
            Fault::Down | Fault::Mixed | Fault::Hung => {
                if world.provider == Provider::Up {
                    steps.push(Step::Fault(*fault, 0));
                }
            }
            Fault::NoWay | Fault::NoFiles | Fault::BadKey => {
                // processes are alike: the first that is well
                let first = world.processes.iter().position(|process| process.ill == Ill::Well);
                steps.extend(first.map(|number| Step::Fault(*fault, number)));
            }
            Fault::Killed => steps.extend((0..world.processes.len()).map(|number| Step::Fault(*fault, number))),
            Fault::Asked if world.row.is_open() => steps.push(Step::Fault(*fault, 0)),
            Fault::NoMoney | Fault::Asked => {}
        }
    }
}

/// The ways in which something that is out may end now; true when it has to.
fn ends(
    fleet: &Fleet,
    world: &World,
    (process, sent, fate): (usize, Instant, Fate),
    poison: bool,
    mut end: impl FnMut(bool),
) -> bool {
    let age = world.now - sent;
    if fate == Fate::Hangs {
        // read timeouts
        let is_over = age >= STEP * (fleet.fault_lasts + 2);
        if is_over {
            end(false);
        }
        return is_over;
    }
    // who cannot answer says so quickly
    if age < STEP * fleet.latency.0 && world.is_well(process) && !poison && fate == Fate::Open {
        return false;
    }
    match (world.provider, world.processes[process].ill) {
        (_, Ill::Well) if fate == Fate::Fails => end(false),
        (Provider::Mixed, Ill::Well) if !poison => {
            end(true);
            end(false);
        }
        (provider, ill) => end(provider == Provider::Up && ill == Ill::Well && !poison),
    }
    poison || age >= STEP * fleet.latency.1
}

/// Whose fault a failure is.
fn cause(world: &World, process: usize, poison: bool, fate: Fate) -> Cause {
    match fate {
        _ if !world.is_well(process) => Cause::Process,
        Fate::Fails | Fate::Hangs => Cause::Provider,
        Fate::Open if poison => Cause::Poison,
        Fate::Open => Cause::Chance,
    }
}

pub(super) fn refusal() -> Failure {
    Failure::terminal("http_401", "")
}

/// The state after a step.
pub(super) fn after(fleet: &Fleet, before: &World, step: Step) -> World {
    let mut world = before.clone();
    world.met.clear();
    let now = world.now;
    match step {
        Step::Fault(fault, process) => {
            break_down(&mut world, fault, process);
            if fault == Fault::Asked && fleet.lacks(Mutant::AsksBeside) {
                world.row.prober = None;
            }
        }
        Step::Recovers => {
            (world.provider, world.provider_since) = (Provider::Up, now);
        }
        Step::Heals(process) => world.processes[process].ill = Ill::Well,
        Step::Tick => tick(&mut world),
        Step::Look(process) => {
            read(&mut world, process);
            act(fleet, &mut world, process);
        }
        Step::Reads(process) => read(&mut world, process),
        Step::Acts(process) => act(fleet, &mut world, process),
        Step::Take(call, process) => {
            let call = &mut world.calls[call];
            call.place = CallStage::Waiting(process, now);
            call.pending = std::mem::take(&mut call.kept[process]);
        }
        Step::Wakes(call) => {
            let CallStage::Delayed(process, _) = world.calls[call].place else {
                unreachable!("a call that is delayed")
            };
            world.calls[call].place = CallStage::Waiting(process, now);
            decide(fleet, &mut world, call, process);
            give_up(fleet, &mut world, call);
        }
        Step::Send(call) => {
            let CallStage::Waiting(process, _) = world.calls[call].place else { unreachable!("a call that waits") };
            if world.processes[process].knows_closed {
                world.breaks(SENT_INTO_OUTAGE);
            }
            let number = world.processes[process].route.send(now);
            let fate = world.fate(process);
            world.calls[call].place = CallStage::Out { process, number, sent: now, fate };
        }
        Step::Park(call) => {
            let CallStage::Waiting(process, _) = world.calls[call].place else { unreachable!("a call that waits") };
            park(fleet, &mut world, call, process);
        }
        Step::End(call, is_well) => end(fleet, &mut world, call, is_well),
        Step::EndProbe(process, ending) => super::look::end_probe(fleet, &mut world, process, ending),
    }
    check(fleet, &mut world);
    world
}

fn break_down(world: &mut World, fault: Fault, number: usize) {
    let now = world.now;
    for (of, left) in &mut world.faults {
        if *of == fault {
            *left -= 1;
        }
    }
    let of_provider = |world: &mut World, provider| {
        (world.provider, world.provider_since) = (provider, now);
        // what is out meets it too
        for number in 0..world.processes.len() {
            let fate = world.fate(number);
            let of_process = |place: &CallStage| matches!(place, CallStage::Out { process, .. } if *process == number);
            for call in world.calls.iter_mut().filter(|call| of_process(&call.place)) {
                if let CallStage::Out { fate: of_call, .. } = &mut call.place {
                    *of_call = fate;
                }
            }
            if let Some(probe) = &mut world.processes[number].probe {
                probe.fate = fate;
            }
        }
    };
    let of_process = |world: &mut World, ill| {
        let process = &mut world.processes[number];
        (process.ill, process.always_well) = (ill, false);
    };
    match fault {
        Fault::Down => of_provider(world, Provider::Down),
        Fault::Mixed => {
            of_provider(world, Provider::Mixed);
            world.meets(search::MIXED);
        }
        Fault::Hung => of_provider(world, Provider::Hung),
        Fault::NoWay => of_process(world, Ill::NoWay),
        Fault::NoFiles => of_process(world, Ill::NoFiles),
        Fault::BadKey => of_process(world, Ill::BadKey),
        Fault::Killed => kill(world, number),
        Fault::Asked => drop(world.row.take(world.us(now), OutageEvent::ProbeNow)),
        Fault::NoMoney => {}
    }
}

/// A process ends without a word, and another begins in its place; its session stays open for a while.
fn kill(world: &mut World, number: usize) {
    let now = world.now;
    for call in &mut world.calls {
        call.kept[number].clear();
        match call.place {
            CallStage::Waiting(of, _) | CallStage::Delayed(of, _) | CallStage::Out { process: of, .. }
                if of == number =>
            {
                // a lost lease is no attempt
                call.place = CallStage::Ready(now + STEP);
                call.pending.clear();
            }
            _ => {}
        }
    }
    let session = world.next_session;
    world.next_session += 1;
    let process = &mut world.processes[number];
    let was_prober = process.probe.as_ref().is_some_and(|probe| probe.outage.is_some());
    let (ill, always_well, late) = (process.ill, process.always_well, process.told.take());
    *process = Process { ill, always_well, late, ..Process::new(session) };
    if was_prober {
        world.meets(search::PROBER_DIED);
    }
}

fn tick(world: &mut World) {
    world.now += STEP;
    for process in &mut world.processes {
        process.looked = Looked::NotYet;
        if process.late.as_ref().is_some_and(|(_, at)| world.now - *at >= super::world::SESSION) {
            process.late = None;
        }
    }
}

fn end(fleet: &Fleet, world: &mut World, number: usize, is_well: bool) {
    let now = world.now;
    let CallStage::Out { process, number: sent_as, sent, fate } = world.calls[number].place else {
        unreachable!("a call that is out")
    };
    let route = &mut world.processes[process].route;
    if is_well {
        route.succeeded(sent_as, now);
        if fleet.lacks(Mutant::EarlierSendsCount) {
            route.through(now, now);
        }
        world.answered = world.answered.max(Some(sent));
        settle(&mut world.calls[number], CallStage::Done);
        return;
    }
    let (cause, ill) = (cause(world, process, world.calls[number].poison, fate), world.processes[process].ill);
    let others = world.processes.len() > 1;
    let route = &mut world.processes[process].route;
    let ever = route.ever();
    let sent = route.failed(sent_as, "", now);
    let is_refused = ill == Ill::BadKey && world.provider == Provider::Up;
    if (ill == Ill::NoFiles || is_refused) && !fleet.lacks(Mutant::NeverWithdraws) {
        route.withdraw(String::new(), is_refused.then(refusal), now);
        world.meets(search::WITHDRAWN);
    }
    if is_refused {
        if others || ever {
            park(fleet, world, number, process);
        } else {
            pause(world);
        }
        return;
    }
    let call = &mut world.calls[number];
    if fleet.lacks(Mutant::ChargesAtOnce) {
        call.attempts.1 += 1;
        if world.answered.is_none_or(|answered| answered <= sent) {
            world.breaks(CHARGE_WITHOUT_ANSWER);
        }
    } else {
        call.pending.push(sent);
        call.causes.insert(sent, cause);
    }
    world.calls[number].place = CallStage::Delayed(process, now + STEP);
    decide(fleet, world, number, process);
    give_up(fleet, world, number);
}

/// Counts what is decided, as a call does, and looks whether it may count.
fn decide(fleet: &Fleet, world: &mut World, number: usize, process: usize) {
    let call = &mut world.calls[number];
    let route = &world.processes[process].route;
    let before = call.pending.clone();
    let (mut charged, forgiven) = route.decide(&mut call.pending);
    if fleet.lacks(Mutant::OutagesCount) {
        charged += forgiven;
    }
    call.attempts.1 += charged;
    let decided: Vec<Instant> = before.into_iter().filter(|sent| !call.pending.contains(sent)).collect();
    let is_forgiven = |sent: &Instant| route.forgiven.is_some_and(|until| *sent < until);
    let mut broken = None;
    for sent in decided {
        let cause = call.causes.remove(&sent);
        if is_forgiven(&sent) && !fleet.lacks(Mutant::OutagesCount) {
            continue;
        }
        if cause == Some(Cause::Provider) && world.processes[process].confirmed.is_some_and(|heard| sent < heard) {
            broken = Some(CHARGE_OF_OUTAGE);
        } else if cause == Some(Cause::Process) && world.processes[process].ill != Ill::Well {
            broken = Some(CHARGE_OF_PROCESS);
        } else if world.answered.is_none_or(|answered| answered <= sent) {
            broken = Some(CHARGE_WITHOUT_ANSWER);
        }
    }
    if charged > 0 {
        world.meets(search::CHARGED);
    }
    if let Some(promise) = broken {
        world.breaks(promise);
    }
}

fn give_up(fleet: &Fleet, world: &mut World, number: usize) {
    if world.calls[number].attempts.1 > fleet.retries {
        settle(&mut world.calls[number], CallStage::GivenUp);
        world.meets(search::GIVEN_UP);
    }
}

/// The call has ended, and nothing of it matters any more.
fn settle(call: &mut super::world::Call, place: CallStage) {
    call.place = place;
    call.attempts = (0, 0);
    call.pending.clear();
    call.kept.iter_mut().for_each(Vec::clear);
    call.causes.clear();
}

/// Hands a task back because of its route; attempts of the call count as one of the task. What is not decided stays here.
fn park(fleet: &Fleet, world: &mut World, number: usize, process: usize) {
    decide(fleet, world, number, process);
    let at = world.now + STEP;
    let call = &mut world.calls[number];
    let pending = std::mem::take(&mut call.pending);
    if !fleet.lacks(Mutant::ForgetsWhatIsPutOff) {
        call.kept[process] = pending;
    }
    if call.attempts.1 == 0 {
        call.place = CallStage::Ready(at);
        world.meets(search::PUT_OFF);
    } else if call.attempts.0 < fleet.retries {
        call.attempts = (call.attempts.0 + 1, 0);
        call.place = CallStage::Ready(at);
    } else {
        settle(call, CallStage::GivenUp);
        world.meets(search::GIVEN_UP);
    }
}

/// A refusal pauses the run.
pub(super) fn pause(world: &mut World) {
    world.is_paused = true;
    world.meets(search::PAUSED);
    if (0..world.processes.len()).any(|process| world.is_well(process)) {
        world.breaks(PAUSED_BY_ONE);
    }
}

/// What has to hold in every state.
fn check(fleet: &Fleet, world: &mut World) {
    let of_outage = |process: &&Process| process.probe.as_ref().is_some_and(|p| p.outage == Some(world.row.opening));
    if world.row.is_open() && world.processes.iter().filter(of_outage).count() > 1 {
        world.breaks(TWO_PROBES);
    }
    let closed = world.row.to_us.filter(|_| world.provider == Provider::Up);
    let since_us = closed.map_or(0, |to_us| world.us(world.now) - to_us.max(world.us(world.provider_since)));
    let longest = STEP * (3 + fleet.latency.1);
    let is_late = |process: &Process| process.always_well && matches!(process.route.standing, Standing::Withdrawn(_));
    if Duration::from_micros(since_us as u64) > longest && world.processes.iter().any(is_late) {
        world.breaks(BACK_LATE);
    }
}
