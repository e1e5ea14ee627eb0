//! The open loop: operations begin at their intended starts, whether or not those before them have ended, and their latency
//! counts from there. Nothing is kept of what is not under way.
//!
//! In comes a [`Step`] with a way to draw the next operation and one to carry it out; out comes a [`StepTally`]. Start with
//! [`run`].

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    arrivals::{Arrivals, Schedule},
    histogram::Latencies,
    tally::{Failed, Tally},
};

/// From the call to the first intended start: enough to have everything set up.
const LEAD: Duration = Duration::from_millis(5);
/// The timers of the runtime are as coarse as this; what is left is waited for exactly.
const TIMER: Duration = Duration::from_millis(2);
/// Starts that are due within this time may begin together: a machine that wakes 10,000 times a second does little else.
const TOGETHER: Duration = Duration::from_micros(250);
/// How long an interrupted step waits for what is under way.
const AFTER_STOP: Duration = Duration::from_secs(2);
/// Most operations under way, whoever asks for more.
pub const MOST_IN_FLIGHT: usize = 1_000_000;
/// How long operations that are dropped may take to be gone.
const DROPPED_WITHIN: Duration = Duration::from_secs(2);

/// A time of load at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// How starts are spread.
    pub arrivals: Arrivals,
    /// Starts a second on average, above zero.
    pub rate: f64,
    /// Of the draws of its starts.
    pub seed: u64,
    /// Load of the same rate before it, counted apart.
    pub warm_up: Duration,
    /// How long operations are due.
    pub window: Duration,
    /// How long after that what is due is still sent, and what is sent is waited for.
    pub drain: Duration,
    /// Most operations under way, at least one.
    pub in_flight: usize,
}

/// What an operation is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The load before the step.
    WarmUp,
    /// The part of the load that is measured.
    Step,
}

/// What became of a step.
#[derive(Debug, Clone, Default)]
pub struct StepTally {
    /// By class, in the caller's order.
    pub classes: Vec<Tally>,
    /// Operations of the warm-up.
    pub warm_up: Tally,
    /// How late operations began that found a place at once: how well this machine keeps its own time.
    pub late: Latencies,
    /// Operations that were due when all places were taken.
    pub waited: u64,
    /// Seconds in which operations of the step were due: those of the window, or fewer when it was interrupted.
    pub seconds: f64,
    /// It was stopped before its time.
    pub interrupted: bool,
}

/// What measures the time until an intended start.
#[derive(Debug)]
pub enum Wait {
    /// A thread that sleeps: exact to a tenth of a millisecond.
    Exact(Metronome),
    /// The runtime's timers, a millisecond coarse: for a clock that is not the machine's.
    Timer,
}

impl Wait {
    async fn until(&mut self, due: Instant) {
        match self {
            Self::Timer => tokio::time::sleep_until(due).await,
            Self::Exact(metronome) => {
                let left = due.saturating_duration_since(Instant::now());
                if left > 2 * TIMER {
                    tokio::time::sleep(left - TIMER).await;
                }
                metronome.until(due.max(metronome.last + TOGETHER)).await;
            }
        }
    }
}

/// A thread that wakes whoever waits for a moment.
#[derive(Debug)]
pub struct Metronome {
    moments: mpsc::Sender<std::time::Instant>,
    beat: Arc<Notify>,
    last: Instant,
}

impl Metronome {
    /// Starts its thread, which ends with the value.
    ///
    /// # Errors
    /// When the process can start no more threads.
    pub fn start() -> std::io::Result<Self> {
        let (moments, asked) = mpsc::channel::<std::time::Instant>();
        let beat = Arc::new(Notify::new());
        let told = Arc::clone(&beat);
        std::thread::Builder::new().name("metronome".to_owned()).spawn(move || {
            for moment in asked {
                std::thread::sleep(moment.saturating_duration_since(std::time::Instant::now()));
                told.notify_one();
            }
        })?;
        Ok(Self { moments, beat, last: Instant::now() })
    }

    async fn until(&mut self, moment: Instant) {
        if self.moments.send(moment.into_std()).is_ok() {
            self.beat.notified().await;
        }
        self.last = Instant::now();
    }
}

/// What all operations of a step write to.
struct Shared {
    tallies: Mutex<(Vec<Tally>, Tally)>,
    /// When the operations of the step itself begin to be due.
    measured: Instant,
    window: Duration,
    /// Drops what is under way.
    cut: CancellationToken,
}

impl Shared {
    fn note(&self, class: usize, due: Instant, ended: Result<(), Failed>) {
        let now = Instant::now();
        let latency = now.saturating_duration_since(due);
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let (classes, warm_up) = &mut *tallies;
        if ended.is_ok() && now >= self.measured && now < self.measured + self.window {
            classes[class].departed += 1;
        }
        match due.checked_duration_since(self.measured) {
            Some(at) => classes[class].note(at.as_secs_f64() / self.window.as_secs_f64(), latency, ended),
            None => warm_up.note(0.0, latency, ended),
        }
    }

    fn take(&self) -> (Vec<Tally>, Tally) {
        std::mem::take(&mut *self.tallies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A step that goes on.
struct Loop {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    /// When nobody waits any longer.
    limit: Instant,
    late: Latencies,
    waited: u64,
    /// Operations by class that were sent, and that were not; those of the warm-up as the last.
    sent: Vec<u64>,
    unsent: Vec<u64>,
}

impl Loop {
    /// A place for an operation that is due; none when the step ends first.
    async fn place(&mut self, due: Instant, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => {
                self.late.record(Instant::now().saturating_duration_since(due));
                Some(place)
            }
            Err(TryAcquireError::Closed) => None,
            Err(TryAcquireError::NoPermits) => {
                self.waited += 1;
                let place = Arc::clone(&self.places).acquire_owned();
                tokio::select! {
                    place = place => place.ok(),
                    () = tokio::time::sleep_until(self.limit) => None,
                    () = stop.cancelled() => None,
                }
            }
        }
    }

    /// Waits for what is under way, as long as it may take, and drops the rest.
    async fn drain(&self, until: Instant, in_flight: u32) {
        let all = || self.places.acquire_many(in_flight);
        if tokio::time::timeout_at(until, all()).await.is_err() {
            self.shared.cut.cancel();
            let _ = tokio::time::timeout(DROPPED_WITHIN, all()).await;
        }
    }
}

/// Lets operations begin at their intended starts until the step is over, or `stop` is cancelled. `draw` tells the class (an index
/// below `classes`) and the next operation, in the order in which they are due; `perform` carries one out. Needs a runtime.
pub async fn run<O, F>(
    step: &Step,
    wait: &mut Wait,
    stop: &CancellationToken,
    classes: usize,
    mut draw: impl FnMut(Counted) -> (usize, O),
    perform: impl Fn(O) -> F,
) -> StepTally
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let begin = Instant::now() + LEAD;
    let (measured, in_flight) = (begin + step.warm_up, step.in_flight.clamp(1, MOST_IN_FLIGHT));
    let end = measured + step.window;
    let shared = Arc::new(Shared {
        tallies: Mutex::new((vec![Tally::default(); classes], Tally::default())),
        measured,
        window: step.window,
        cut: CancellationToken::new(),
    });
    let mut going = Loop {
        shared: Arc::clone(&shared),
        places: Arc::new(Semaphore::new(in_flight)),
        limit: end + step.drain,
        late: Latencies::default(),
        waited: 0,
        sent: vec![0; classes + 1],
        unsent: vec![0; classes + 1],
    };
    let mut schedule = Schedule::new(step.arrivals, step.rate, step.seed).map(|at| begin + at);
    let counted = |due: Instant| if due < measured { Counted::WarmUp } else { Counted::Step };
    let place_of = |due: Instant, class: usize| if due < measured { classes } else { class };
    let mut interrupted = false;
    // the first that was due and had no place
    let mut left = None;
    for due in schedule.by_ref().take_while(|due| *due < end) {
        if due > Instant::now() {
            tokio::select! {
                () = wait.until(due) => {}
                () = stop.cancelled() => {}
            }
        }
        interrupted = stop.is_cancelled();
        let place = if interrupted || Instant::now() >= going.limit { None } else { going.place(due, stop).await };
        let Some(place) = place else {
            interrupted |= stop.is_cancelled();
            left = Some(due);
            break;
        };
        let (class, operation) = draw(counted(due));
        going.sent[place_of(due, class)] += 1;
        let (work, shared) = (perform(operation), Arc::clone(&shared));
        tokio::spawn(async move {
            if let Some(ended) = shared.cut.clone().run_until_cancelled_owned(work).await {
                shared.note(class, due, ended);
            }
            drop(place);
        });
    }
    let until = if interrupted { end.min(Instant::now()) } else { end };
    let behind = left.into_iter().chain(schedule).take_while(|due| *due < until);
    for due in behind {
        let (class, _) = draw(counted(due));
        going.unsent[place_of(due, class)] += 1;
    }
    let drained = if interrupted { Instant::now() + AFTER_STOP.min(step.drain) } else { going.limit };
    going.drain(drained, in_flight as u32).await;
    finished(going, until, interrupted)
}

fn finished(going: Loop, until: Instant, interrupted: bool) -> StepTally {
    let Loop { shared, late, waited, sent, unsent, .. } = going;
    let (mut classes, mut warm_up) = shared.take();
    for ((tally, sent), unsent) in classes.iter_mut().chain([&mut warm_up]).zip(sent).zip(unsent) {
        tally.unsent = unsent;
        tally.unfinished = sent.saturating_sub(tally.served.n() + tally.errors());
    }
    let seconds = until.saturating_duration_since(shared.measured).as_secs_f64();
    StepTally { classes, warm_up, late, waited, seconds, interrupted }
}
