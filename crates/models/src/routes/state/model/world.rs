//! What there is: a provider, the store's row, processes, calls, a clock, and what may still go wrong.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_proto::outage::{Outage, RouteEvidence};
use bench_store::OutageRow;

use super::{super::*, mutants::Mutant, search::Shape};

/// The clock goes in such steps.
pub(super) const STEP: Duration = Duration::from_millis(2_500);
/// A call waits so long in its slot.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// A supervisor ends the session of a killed process after so long.
pub(super) const SESSION: Duration = Duration::from_secs(15);

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The provider answers 503 to everybody.
    Down,
    /// Some of its answers are 503.
    Mixed,
    /// It takes calls and never answers.
    Hung,
    /// A process has no way to the provider.
    NoWay,
    /// A process has no file descriptors.
    NoFiles,
    /// A process's key is refused.
    BadKey,
    /// A process is killed, and another begins in its place.
    Killed,
    /// The budget has no room for a probe.
    NoMoney,
    /// Nothing goes wrong: somebody wants a probe at once.
    Asked,
}

/// How the provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Up,
    Down,
    Mixed,
    Hung,
}

/// What is the matter with a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ill {
    Well,
    NoWay,
    NoFiles,
    BadKey,
}

/// Whose fault a failure truly was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// All calls met it.
    Provider,
    /// Only this call met it.
    Chance,
    /// The call dies wherever it goes.
    Poison,
    /// All calls of the process met it.
    Process,
}

/// What was met by something that is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing yet.
    Open,
    /// A provider that is down.
    Fails,
    /// A provider that never answers.
    Hangs,
}

/// A probe under way.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// The outage that it is for; `None`: the process asks for itself.
    pub(super) outage: Option<i64>,
    pub(super) sent: Instant,
    pub(super) fate: Fate,
}

/// How far a process is with its look at the store in this step of the clock.
#[derive(Debug, Clone)]
pub(super) enum Looked {
    NotYet,
    /// It has read, and not acted yet.
    Read(Box<(OutageRow, Vec<RouteEvidence>)>),
    Yes,
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) session: i64,
    pub(super) ill: Ill,
    /// Nothing was ever the matter with it.
    pub(super) always_well: bool,
    pub(super) route: RouteState,
    /// What it last told of the route, and when.
    pub(super) told: Option<(RouteEvidence, Instant)>,
    /// The same of one that was killed in its place and whose session is still open.
    pub(super) late: Option<(RouteEvidence, Instant)>,
    pub(super) looked: Looked,
    /// It has heard that the route is closed, and nothing else since.
    pub(super) knows_closed: bool,
    /// When it has heard that a probe failed.
    pub(super) confirmed: Option<Instant>,
    pub(super) probe: Option<Probe>,
}

/// Where a call is.
#[derive(Debug, Clone)]
pub(super) enum CallStage {
    /// Nobody has it; it is handed out from this moment on.
    Ready(Instant),
    /// A process has it and wants to send it, since that moment.
    Waiting(usize, Instant),
    /// A process lets time pass before it tries again.
    Delayed(usize, Instant),
    /// It is out.
    Out { process: usize, number: u64, sent: Instant, fate: Fate },
    /// It was answered.
    Done,
    /// Its attempts are used up.
    GivenUp,
}

/// A call: the only one of its task.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) poison: bool,
    pub(super) place: CallStage,
    /// Attempts of the task, and of the call since it was last handed out.
    pub(super) attempts: (u32, u32),
    pub(super) pending: Vec<Instant>,
    /// What processes that put it off keep of it.
    pub(super) kept: Vec<Vec<Instant>>,
    /// Whose fault its failures were.
    pub(super) causes: BTreeMap<Instant, Cause>,
}

/// A fleet and what may happen to it.
#[derive(Debug, Clone)]
pub(super) struct Fleet {
    pub(super) processes: usize,
    /// Calls, and of them those that always die.
    pub(super) calls: (usize, usize),
    pub(super) retries: u32,
    /// Steps of the clock that a call takes at least and at most.
    pub(super) latency: (u32, u32),
    /// Faults of one history.
    pub(super) faults: Vec<(Fault, u8)>,
    /// Steps of the clock that a fault of the provider lasts at most.
    pub(super) fault_lasts: u32,
    /// What was the matter with a process goes away.
    pub(super) heals: bool,
    /// Each process reads first and acts later.
    pub(super) splits: bool,
    /// Processes look one after the other, the one at fault last; otherwise in any order.
    pub(super) in_turn: bool,
    /// Ages beyond this many steps differ in their order only.
    pub(super) remembers: u32,
    pub(super) mutant: Option<Mutant>,
}

impl Fleet {
    /// Processes and calls that meet these faults; one repeat, quick answers.
    pub(super) fn with_faults(processes: usize, calls: usize, faults: &[(Fault, u8)]) -> Self {
        Self {
            processes,
            calls: (calls, 0),
            retries: 1,
            latency: (0, 1),
            faults: faults.to_vec(),
            fault_lasts: 6,
            heals: false,
            splits: false,
            in_turn: false,
            remembers: 3,
            mutant: None,
        }
    }

    pub(super) fn lacks(&self, rule: Mutant) -> bool {
        self.mutant == Some(rule)
    }
}

/// A state of the whole.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) begun: Instant,
    pub(super) now: Instant,
    pub(super) provider: Provider,
    /// When it came to be so.
    pub(super) provider_since: Instant,
    pub(super) row: Outage,
    pub(super) processes: Vec<Process>,
    pub(super) calls: Vec<Call>,
    pub(super) faults: Vec<(Fault, u8)>,
    pub(super) next_session: i64,
    /// The run was paused because of a refusal.
    pub(super) is_paused: bool,
    /// The latest send of anything that was answered.
    pub(super) answered: Option<Instant>,
    /// The promise that was broken.
    pub(super) broken: Option<&'static str>,
    /// What the last step has met.
    pub(super) met: Vec<&'static str>,
}

impl Process {
    pub(super) fn new(session: i64) -> Self {
        Self {
            session,
            ill: Ill::Well,
            always_well: true,
            route: RouteState::new(Some(Duration::from_secs(30))),
            told: None,
            late: None,
            looked: Looked::NotYet,
            knows_closed: false,
            confirmed: None,
            probe: None,
        }
    }
}

impl World {
    pub(super) fn start(fleet: &Fleet) -> Self {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(3_600);
        let call = |number: usize| Call {
            poison: number < fleet.calls.1,
            place: CallStage::Ready(now),
            attempts: (0, 0),
            pending: Vec::new(),
            kept: vec![Vec::new(); fleet.processes],
            causes: BTreeMap::new(),
        };
        Self {
            begun,
            now,
            provider: Provider::Up,
            provider_since: now,
            row: Outage::default(),
            processes: (0..fleet.processes).map(|number| Process::new(number as i64)).collect(),
            calls: (0..fleet.calls.0).map(call).collect(),
            faults: fleet.faults.clone(),
            next_session: fleet.processes as i64,
            is_paused: false,
            answered: None,
            broken: None,
            met: Vec::new(),
        }
    }

    /// A moment as the store counts.
    pub(super) fn us(&self, moment: Instant) -> i64 {
        moment.saturating_duration_since(self.begun).as_micros() as i64
    }

    fn moment(&self, us: i64) -> Instant {
        self.begun + Duration::from_micros(us as u64)
    }

    /// What a look at the store finds.
    pub(super) fn row(&self) -> OutageRow {
        OutageRow { outage: self.row.clone(), now_us: self.us(self.now), ..OutageRow::default() }
    }

    /// What the other sessions tell.
    pub(super) fn others(&self, process: usize) -> Vec<RouteEvidence> {
        let aged = |(told, at): &(RouteEvidence, Instant)| {
            let age = self.now.saturating_duration_since(*at).as_millis() as u64;
            let older = |ms: Option<u64>| ms.map(|ms| ms + age);
            RouteEvidence {
                success_ms: older(told.success_ms),
                success_sent_ms: older(told.success_sent_ms),
                failing_ms: older(told.failing_ms),
                ..told.clone()
            }
        };
        let mut others = Vec::new();
        for (number, other) in self.processes.iter().enumerate() {
            if number != process {
                others.push(other.told.as_ref().map_or_else(RouteEvidence::default, aged));
            }
            others.extend(other.late.as_ref().map(aged));
        }
        others
    }

    /// What awaits something that a process sends, or has out, now.
    pub(super) fn fate(&self, process: usize) -> Fate {
        match self.provider {
            Provider::Down if self.is_well(process) => Fate::Fails,
            Provider::Hung if self.is_well(process) => Fate::Hangs,
            _ => Fate::Open,
        }
    }

    /// Whether a process has nothing that keeps it from being served.
    pub(super) fn is_well(&self, process: usize) -> bool {
        self.processes[process].ill == Ill::Well
    }

    /// Everything has ended as it should.
    pub(super) fn is_complete(&self) -> bool {
        if self.is_paused {
            return true;
        }
        let ended = |call: &Call| matches!(call.place, CallStage::Done | CallStage::GivenUp);
        let is_back = |process: &Process| {
            process.ill != Ill::Well || matches!(process.route.standing, Standing::Clear) && process.probe.is_none()
        };
        self.provider == Provider::Up
            && !self.row.is_open()
            && self.calls.iter().all(ended)
            && self.processes.iter().all(is_back)
    }

    /// Says that a promise was broken, the first one only.
    pub(super) fn breaks(&mut self, promise: &'static str) {
        self.broken.get_or_insert(promise);
    }

    /// Notes that a situation was met.
    pub(super) fn meets(&mut self, situation: &'static str) {
        if !self.met.contains(&situation) {
            self.met.push(situation);
        }
    }

    /// What of it makes a difference for what can follow.
    pub(super) fn shape(&self, fleet: &Fleet) -> u64 {
        let mut shape = Shape::at(self.now, fleet.remembers);
        shape.put(self.provider as i64);
        shape.put(self.is_paused.into());
        if self.provider != Provider::Up {
            shape.order(Some(self.provider_since));
        }
        shape.order(self.answered);
        self.row_into(&mut shape);
        for (_, left) in &self.faults {
            shape.put((*left).into());
        }
        for process in &self.processes {
            self.process_into(process, &mut shape);
        }
        for call in &self.calls {
            Self::call_into(call, &mut shape);
        }
        shape.hash()
    }

    fn row_into(&self, shape: &mut Shape) {
        let row = &self.row;
        let prober = row.prober.and_then(|(session, _)| self.processes.iter().position(|p| p.session == session));
        shape.put(i64::from(row.opening > 0) + 2 * i64::from(row.is_open()));
        if row.is_open() {
            shape.put(row.failed_probes.min(7));
            shape.age(Some(self.moment(row.next_probe_us)));
            shape.put(prober.map_or(-1, |number| number as i64));
            shape.age(row.prober.map(|(_, until_us)| self.moment(until_us)));
        } else {
            shape.put(i64::from(row.is_confirmed()));
            shape.order(row.to_us.map(|to_us| self.moment(to_us)));
        }
    }

    fn process_into(&self, process: &Process, shape: &mut Shape) {
        shape.put(process.ill as i64 + 8 * i64::from(process.always_well) + 16 * i64::from(process.knows_closed));
        let route = &process.route;
        match &route.standing {
            Standing::Clear => shape.put(0),
            Standing::Away { confirmed, .. } => shape.put(1 + i64::from(*confirmed)),
            Standing::Withdrawn(leave) => {
                shape.put(3 + i64::from(leave.refused.is_some()) + 2 * i64::from(leave.tries.min(6)));
                shape.age(Some(leave.since));
                shape.age(Some(leave.next_probe));
            }
        }
        shape.put(self.row.opening - route.opening);
        shape.age(route.came);
        shape.order(route.sent);
        shape.put(route.failures.min(SUSPICIOUS_FAILURES).into());
        shape.order(route.failing);
        shape.order(route.forgiven);
        let narrow = route.allowance.filter(|allowance| allowance.calls < self.calls.len());
        shape.put(narrow.map_or(-1, |allowance| allowance.calls as i64));
        shape.age(narrow.map(|allowance| allowance.since));
        let failed_last = route.failed_last == Some((self.row.opening, self.row.failed_probes));
        shape.put(i64::from(route.asking) + 2 * i64::from(route.is_open) + 4 * i64::from(failed_last));
        shape.order(process.confirmed);
        // how long calls took matters only for how long a silence may be
        let oldest = route.out.values().min();
        shape.age(oldest.map(|oldest| route.returned.map_or(*oldest, |returned| returned.max(*oldest))));
        for told in [&process.told, &process.late] {
            let Some((told, at)) = told else {
                shape.put(-1);
                continue;
            };
            Self::evidence_into(told, *at, shape);
            shape.age(Some(*at));
        }
        match &process.looked {
            Looked::NotYet => shape.put(0),
            Looked::Yes => shape.put(1),
            Looked::Read(read) => {
                let (row, others) = &**read;
                shape.put(2 + 2 * (self.row.opening - row.outage.opening) + i64::from(row.outage.is_open()));
                shape.put(row.outage.failed_probes);
                others.iter().for_each(|told| Self::evidence_into(told, self.now, shape));
            }
        }
        shape.put(process.probe.as_ref().map_or(-1, |probe| {
            probe.fate as i64 + 4 * probe.outage.map_or(-1, |opening| (self.row.opening - opening) * 2 + 1)
        }));
        shape.order(process.probe.as_ref().map(|probe| probe.sent));
    }

    fn evidence_into(told: &RouteEvidence, at: Instant, shape: &mut Shape) {
        let before = |ms: Option<u64>| ms.map(|ms| at - Duration::from_millis(ms));
        let withdrawn = told.withdrawn.as_ref();
        shape.put(i64::from(told.failures.min(SUSPICIOUS_FAILURES)));
        shape.put(withdrawn.map_or(-1, |withdrawn| withdrawn.refused.into()));
        shape.age(before(told.success_ms));
        shape.order(before(told.success_sent_ms));
        shape.order(before(told.failing_ms));
    }

    fn call_into(call: &Call, shape: &mut Shape) {
        let (kind, process, at) = match call.place {
            CallStage::Ready(at) => (0, 0, Some(at)),
            CallStage::Waiting(process, at) => (1, process, Some(at)),
            CallStage::Delayed(process, at) => (2, process, Some(at)),
            CallStage::Out { process, sent, fate, .. } => (3 + fate as i64, process, Some(sent)),
            CallStage::Done => (6, 0, None),
            CallStage::GivenUp => (7, 0, None),
        };
        shape.put(kind + 8 * process as i64 + 64 * i64::from(call.poison));
        shape.order(at);
        shape.put(i64::from(call.attempts.0) + 16 * i64::from(call.attempts.1));
        for pending in std::iter::once(&call.pending).chain(&call.kept) {
            // more of the same kind come to the same
            let few = pending.iter().take(2).chain(pending.iter().skip(2).last());
            shape.put(pending.len().min(3) as i64);
            for sent in few {
                shape.order(Some(*sent));
                shape.put(call.causes.get(sent).map_or(-1, |cause| *cause as i64));
            }
        }
    }
}
