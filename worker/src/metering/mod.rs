//! The meter of a process: its memory systems' own model calls go through it, on one allowance and under one cap with the runner's own
//! calls (P34).
//!
//! In: requests of memory systems, at `/m/<run>`. Out: attempts in the call store, and a provider's reply. `Metering` finds the run of a
//! request and starts to listen when the first metered run is built; `run` admits a request, `call` settles it and `measures` counts
//! it; `in_flight` says which bank it is for, and `leased` does where another process works on that bank. `others` is what processes tell
//! each other of a run, and `refused` counts what is refused for its report. `outages` and `blame` learn whether a provider is away, and
//! `excuse` what the memory system is not blamed for. How requests are read and forwarded is in the crate `meter`.

mod blame;
mod call;
mod excuse;
mod in_flight;
mod leased;
mod measures;
mod others;
mod outages;
mod refused;
mod run;
mod told;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_meter::{Address, Admission, Admitted, Asked, Meter, MeterSettings, Refusal};
use bench_proto::{
    failure::{Failure, code::CANNOT_SERVE},
    ids::RunId,
    outage::MeterTold,
};
use bench_store::RunState;
use bench_systems::adapter::given::Given;
use tokio::{net::TcpListener, sync::OnceCell, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::{
    excuse::{Excuse, Waits},
    in_flight::{InFlight, Running},
    measures::ModelLabels,
    outages::Outages,
    refused::RefusedCalls,
    run::{Beside, MeteredRun, Upstreams},
    told::Said,
};
use crate::meter_place::MeterPlace;

/// What a meter asks of its process: it finds runs that the process has not worked on yet, and tells the other processes.
#[async_trait]
pub(crate) trait FindRun: Send + Sync {
    /// Makes the run ready to be metered here, or says how it stands; `None`: there is none of this id.
    async fn find(&self, run: &RunId) -> Result<Option<RunState>, Failure>;

    /// Tells the other processes what is [told](Metering::told) of the runs here, as far as the store can be reached.
    async fn tell_others(&self);
}

/// Time between two times that the other processes are told: a wait lasts for longer.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How long a meter that stops waits for bookings that were handed over: a store that is away keeps nobody.
const LAST_BOOKINGS: Duration = Duration::from_secs(1);

/// The meter of a process.
pub(crate) struct Metering {
    place: MeterPlace,
    /// The process takes no task: all that its requests are for is done, and judged, by others.
    is_apart: bool,
    /// When the others were told last.
    telling: tokio::sync::Mutex<Option<Instant>>,
    /// The address, once it listens.
    address: OnceCell<String>,
    runs: Mutex<HashMap<String, Weak<MeteredRun>>>,
    finder: Mutex<Option<Weak<dyn FindRun>>>,
    /// Cancelled when the process stops.
    stop: CancellationToken,
    serving: Mutex<Option<Serving>>,
}

/// A meter that listens.
struct Serving {
    task: JoinHandle<()>,
    /// Cancelled, it waits for nothing.
    hurry: CancellationToken,
}

impl Metering {
    pub(crate) fn new(place: MeterPlace, is_apart: bool) -> Arc<Self> {
        Arc::new(Self {
            place,
            is_apart,
            telling: tokio::sync::Mutex::default(),
            address: OnceCell::new(),
            runs: Mutex::default(),
            finder: Mutex::new(None),
            stop: CancellationToken::new(),
            serving: Mutex::default(),
        })
    }

    /// Says who finds runs that are not at hand.
    pub(crate) fn ask(&self, finder: Weak<dyn FindRun>) {
        *self.finder.lock().unwrap_or_else(PoisonError::into_inner) = Some(finder);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Weak<MeteredRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to listen, unless it does.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub(crate) async fn listen(self: &Arc<Self>) -> Result<&str, Failure> {
        let address = self.address.get_or_try_init(|| async {
            let cannot = |error: std::io::Error| {
                let at = &self.place.listen;
                let message = format!("the meter cannot listen at {at}: {error}; set meter.listen to a free address");
                Failure::terminal(CANNOT_SERVE, message)
            };
            let listener = TcpListener::bind(&self.place.listen).await.map_err(cannot)?;
            let at = listener.local_addr().map_err(cannot)?;
            let admission = Arc::clone(self) as Arc<dyn Admission>;
            let stop = self.stop.clone();
            let failed = |error| Failure::terminal(CANNOT_SERVE, format!("the meter cannot be started: {error}"));
            let meter = Meter::new(admission, settings_of(&self.place)).map_err(failed)?;
            let hurry = meter.hurry();
            let task = tokio::spawn(async move {
                if let Err(error) = meter.serve(listener, stop.cancelled_owned()).await {
                    warn!(code = CANNOT_SERVE, "the meter has stopped: {error}");
                }
            });
            *self.serving() = Some(Serving { task, hurry });
            Ok(self.place.url.clone().unwrap_or_else(|| format!("http://{at}")))
        });
        address.await.map(String::as_str)
    }

    /// The address of a run, its key, and the variables of memory systems that hold them.
    pub(crate) async fn given(self: &Arc<Self>, row: &bench_store::RunRow) -> Result<Given, Failure> {
        let Some(plan) = &row.spec.limits.meter else { return Ok(Given::default()) };
        let address = self.listen().await?;
        Ok(Given::new(self.place.address_of(address, &row.run_id), self.place.key_of(&row.run_id), &plan.variables))
    }

    /// Meters a run from now on, as long as it lives.
    pub(crate) fn admit_run(&self, run: &RunId, metered: &Arc<MeteredRun>) {
        let mut runs = self.runs();
        runs.retain(|_, run| run.strong_count() > 0);
        runs.insert(run.0.clone(), Arc::downgrade(metered));
    }

    /// Whether the process takes no task.
    pub(crate) const fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// What requests of the runs here were told that the workers of other processes have to know of.
    pub(crate) fn told(&self) -> Vec<MeterTold> {
        if !self.is_apart {
            return Vec::new();
        }
        let runs: Vec<Arc<MeteredRun>> = self.runs().values().filter_map(Weak::upgrade).collect();
        runs.iter().flat_map(|run| run.told()).collect()
    }

    /// Tells the others before a request is told to wait: what it is for may fail by that at once. Requests that come together share it.
    async fn tell_others(&self) {
        let Some(finder) = self.finder() else { return };
        let refused = Instant::now();
        let mut telling = self.telling.lock().await;
        if let Some(last) = *telling {
            if last >= refused {
                return;
            }
            tokio::time::sleep_until((last + TELL_EVERY).into()).await;
        }
        *telling = Some(Instant::now());
        // it is told again when the session is renewed
        let _ = tokio::time::timeout(TELL_EVERY, finder.tell_others()).await;
    }

    fn finder(&self) -> Option<Arc<dyn FindRun>> {
        self.finder.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade)
    }

    /// Leaves behind the runs that are metered here: whoever asks next has theirs built anew.
    pub(crate) fn forget_runs(&self) {
        self.runs().clear();
    }

    fn serving(&self) -> MutexGuard<'_, Option<Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more requests, and waits until those under way are booked: for as long as its place says, and no longer once `hurry` is
    /// cancelled. What does not end until then is uncertain; one whose booking was handed over by then is booked all the same.
    pub(crate) async fn stop(&self, hurry: &CancellationToken) {
        self.stop.cancel();
        let Some(mut serving) = self.serving().take() else { return };
        // it fails only by a panic, which is in the log
        let has_ended = tokio::select! {
            _ = &mut serving.task => true,
            () = hurry.cancelled() => false,
        };
        if !has_ended {
            serving.hurry.cancel();
            let _ = serving.task.await;
        }
        // it drops those who wait for a booking, and what they have handed over may wait for company
        let runs: Vec<Arc<MeteredRun>> = self.runs().values().filter_map(Weak::upgrade).collect();
        let booked = futures::future::join_all(runs.iter().map(|run| run.ledger.flush()));
        let _ = tokio::time::timeout(LAST_BOOKINGS, booked).await;
    }

    fn at_hand(&self, run: &str) -> Option<Arc<MeteredRun>> {
        self.runs().get(run).and_then(Weak::upgrade)
    }

    /// The run of an address, for whoever has its key: others are told nothing of it.
    async fn run_of(&self, address: &Address, token: &str) -> Result<Arc<MeteredRun>, Refusal> {
        let run = RunId(address.run.clone());
        if !self.place.is_key_of(&run, token) {
            return Err(Refusal::ForeignKey);
        }
        self.find(&run).await
    }

    async fn find(&self, run: &RunId) -> Result<Arc<MeteredRun>, Refusal> {
        if let Some(run) = self.at_hand(&run.0) {
            return Ok(run);
        }
        let Some(finder) = self.finder() else { return Err(Refusal::UnknownRun) };
        let state = finder.find(run).await.map_err(|failure| Refusal::Unavailable(failure.message))?;
        let resume = |how: &str| format!("run {run} {how}: `bench-coord resume {run}` goes on", run = run.0);
        match state {
            None => Err(Refusal::UnknownRun),
            Some(RunState::Running) => {
                let why = || format!("run {} is not metered: submit it with --meter", run.0);
                self.at_hand(&run.0).ok_or_else(|| Refusal::Unavailable(why()))
            }
            Some(RunState::Paused) => Err(Refusal::Stopped(resume("is paused"))),
            Some(ended) => Err(Refusal::RunEnded(ended.name().to_owned())),
        }
    }
}

fn settings_of(place: &MeterPlace) -> MeterSettings {
    MeterSettings { stop: place.longest_end, hosts: place.hosts.clone(), ..MeterSettings::default() }
}

#[async_trait]
impl Admission for Metering {
    async fn authenticate(&self, address: &Address, token: &str) -> Result<(), Refusal> {
        self.run_of(address, token).await.map(drop)
    }

    async fn refused(&self, address: &Address, code: &'static str, why: &str) {
        if let Some(run) = self.at_hand(&address.run) {
            run.refused.count(code, why).await;
        }
    }

    async fn admit(&self, asked: &Asked) -> Result<Box<dyn Admitted>, Refusal> {
        let admitted = self.run_of(&asked.address, &asked.token).await?.admit(asked).await;
        if self.is_apart && matches!(&admitted, Err(Refusal::Busy { .. } | Refusal::Unavailable(_))) {
            self.tell_others().await;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    #[tokio::test]
    async fn p34_the_meter_has_ended_when_its_process_goes_on_to_close_the_books() {
        let metering = Metering::new(MeterPlace::default(), false);
        let url = metering.listen().await.expect("listens").to_owned();
        let address = url.trim_start_matches("http://").to_owned();
        let mut asking = TcpStream::connect(&address).await.expect("connects");
        let key = metering.place.key_of(&RunId("r".to_owned()));
        let ask = |key: &str| {
            format!(
                "POST /m/r/v1/embeddings HTTP/1.1\r\nhost: localhost\r\napi-key: {key}\r\ncontent-length: 9\r\n\r\n"
            )
        };
        // nobody finds runs here
        asking.write_all(format!("{}{{\"a\": 10}}", ask(&key)).as_bytes()).await.expect("writes");
        let mut said = [0; 12];
        asking.read_exact(&mut said).await.expect("reads");
        assert_eq!(&said, b"HTTP/1.1 404");
        // a key of no run is refused without the body
        let mut foreign = TcpStream::connect(&address).await.expect("connects");
        foreign.write_all(ask("other").as_bytes()).await.expect("writes");
        foreign.read_exact(&mut said).await.expect("reads");
        assert_eq!(&said, b"HTTP/1.1 401");
        let hurry = CancellationToken::new();
        hurry.cancel();
        let begun = Instant::now();
        metering.stop(&hurry).await;
        assert!(begun.elapsed() < metering.place.longest_end);
        assert!(TcpStream::connect(&address).await.is_err(), "nobody listens any more");
        metering.stop(&hurry).await;
    }

    #[test]
    fn a_process_that_does_nothing_else_waits_longer_for_requests_under_way() {
        let mut place = MeterPlace::default();
        assert_eq!(settings_of(&place).stop, Duration::from_secs(10));
        place.end_within(Duration::from_secs(60));
        assert_eq!(settings_of(&place).stop, Duration::from_secs(60));
    }

    #[tokio::test]
    async fn p34_names_that_are_listed_are_answered_on_loopback() {
        let mut place = MeterPlace::default();
        place.hosts = vec!["host.docker.internal".to_owned()];
        let metering = Metering::new(place, false);
        let url = metering.listen().await.expect("listens").to_owned();
        // without a key of a run
        for (host, status) in [("host.docker.internal", b"HTTP/1.1 401"), ("evil.example", b"HTTP/1.1 403")] {
            let mut asking = TcpStream::connect(url.trim_start_matches("http://")).await.expect("connects");
            let head = format!("POST /m/r/v1/embeddings HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
            asking.write_all(head.as_bytes()).await.expect("writes");
            let mut said = [0; 12];
            asking.read_exact(&mut said).await.expect("reads");
            assert_eq!(&said, status, "{host}");
        }
    }
}
