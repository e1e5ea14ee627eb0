//! The open loop against a server whose queue is known, in virtual time: each latency is what Lindley's recursion says, and the
//! figures are those of the theory.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bench_load::{
    arrivals::{Arrivals, Schedule},
    draws::Draws,
    histogram::Latencies,
    pacer::{self, Counted, Step, StepTally, Wait},
    queueing::{lindley, mm1_mean_seconds},
    result::Percentiles,
    saturation::Standing,
    tally::{Failed, growth},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// One server that takes who came first. A second of it is a second of the clock, which nobody waits for.
struct Server {
    queue: mpsc::UnboundedSender<(Duration, oneshot::Sender<()>)>,
}

impl Server {
    /// Stands still for a time when it begins its customer number `stalls.0`.
    fn start(stalls: Option<(usize, Duration)>) -> Arc<Self> {
        let (queue, mut customers) = mpsc::unbounded_channel::<(Duration, oneshot::Sender<()>)>();
        tokio::spawn(async move {
            let mut number = 0;
            while let Some((service, done)) = customers.recv().await {
                if let Some((at, stall)) = stalls
                    && at == number
                {
                    tokio::time::sleep(stall).await;
                }
                tokio::time::sleep(service).await;
                let _ = done.send(());
                number += 1;
            }
        });
        Arc::new(Self { queue })
    }

    async fn serve(&self, service: Duration) -> Result<(), Failed> {
        let (done, ended) = oneshot::channel();
        let _ = self.queue.send((service, done));
        ended.await.map_err(|_| Failed { kind: "gone".to_owned(), message: "the server is gone".to_owned() })
    }
}

/// A service by lot, in whole milliseconds: the clock of the runtime has no finer ones.
fn service(draws: &mut Draws, mean: f64) -> Duration {
    Duration::from_millis((draws.exponential(mean) * 1e3).round() as u64)
}

fn step(arrivals: Arrivals, rate: f64, seconds: f64, seed: u64) -> Step {
    Step {
        arrivals,
        rate,
        seed,
        warm_up: Duration::ZERO,
        window: Duration::from_secs_f64(seconds),
        drain: Duration::from_secs(3_000),
        in_flight: 100_000,
    }
}

/// A step against a server with these services; for each operation the seconds from its intended start, in order.
async fn loaded(step: &Step, services: Vec<Duration>, stalls: Option<(usize, Duration)>) -> (StepTally, Vec<f64>) {
    let server = Server::start(stalls);
    let ends = Arc::new(Mutex::new(vec![f64::NAN; services.len()]));
    let (mut next, begun) = (0, Instant::now());
    let draw = |_: Counted| {
        next += 1;
        (0, (next - 1, services[next - 1]))
    };
    let perform = |(number, service): (usize, Duration)| {
        let (server, ends) = (Arc::clone(&server), Arc::clone(&ends));
        async move {
            let served = server.serve(service).await;
            ends.lock().expect("no test panics")[number] = begun.elapsed().as_secs_f64();
            served
        }
    };
    let tally = pacer::run(step, &mut Wait::Timer, &CancellationToken::new(), 1, draw, perform).await;
    let ends = std::mem::take(&mut *ends.lock().expect("no test panics"));
    // the first start is due 5 ms after the call
    let due = Schedule::new(step.arrivals, step.rate, step.seed).map(|at| at.as_secs_f64() + 0.005);
    let latencies = ends.into_iter().zip(due).take_while(|(end, _)| !end.is_nan()).map(|(end, due)| end - due);
    (tally, latencies.collect())
}

/// `n` customers of an M/M/1 queue whose server takes one a second.
async fn mm1(load: f64, n: usize, seed: u64) -> (StepTally, Vec<f64>, Vec<f64>) {
    let step = step(Arrivals::Poisson, load, n as f64 / load, seed);
    let starts: Vec<f64> = Schedule::new(step.arrivals, step.rate, seed)
        .map(|at| at.as_secs_f64())
        .take_while(|at| *at < step.window.as_secs_f64())
        .collect();
    let mut draws = Draws::new(seed, 9);
    let services: Vec<Duration> = starts.iter().map(|_| service(&mut draws, 1.0)).collect();
    let seconds: Vec<f64> = services.iter().map(Duration::as_secs_f64).collect();
    let waits = lindley(&starts, &seconds);
    let expected = waits.iter().zip(&seconds).map(|(wait, service)| wait + service).collect();
    let (tally, measured) = loaded(&step, services, None).await;
    (tally, measured, expected)
}

/// The clock's millisecond may be lost once at the start of each busy time.
#[tokio::test(start_paused = true)]
async fn each_latency_is_lindleys() {
    for (load, seed) in [(0.5, 1), (0.8, 2), (0.95, 3)] {
        let (tally, measured, expected) = mm1(load, 20_000, seed).await;
        assert_eq!(measured.len(), expected.len(), "all were served");
        assert_eq!((tally.classes[0].intended(), tally.classes[0].unserved()), (expected.len() as u64, 0));
        for (at, (measured, expected)) in measured.iter().zip(&expected).enumerate() {
            assert!((measured - expected).abs() < 0.002, "number {at} at {load}: {measured} and {expected}");
        }
        // and the percentiles are those of these latencies, within a bucket and the clock
        let mut exact = Latencies::default();
        expected.iter().for_each(|seconds| exact.record(Duration::from_secs_f64(*seconds)));
        let (told, exact) =
            (Percentiles::from_latencies(&tally.classes[0].served, 0), Percentiles::from_latencies(&exact, 0));
        for (told, exact) in [(told.p50, exact.p50), (told.p99, exact.p99), (told.p99_9, exact.p99_9)] {
            let (told, exact) = (told.expect("many were served"), exact.expect("many were served"));
            assert!((told - exact).abs() < exact * 0.002 + 3.0, "{told} {exact}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_mean_is_that_of_the_theory() {
    for (load, n) in [(0.5, 100_000), (0.8, 200_000), (0.95, 1_000_000)] {
        let (tally, ..) = mm1(load, n, 7).await;
        let told = tally.classes[0].served.mean_ms().expect("some were served") / 1e3;
        let theory = mm1_mean_seconds(load, 1.0).expect("it is stable");
        assert!((told / theory - 1.0).abs() < 0.05, "at {load}: {told} s, theory {theory} s");
        let growth = growth(tally.classes.iter(), tally.seconds);
        assert_eq!(Standing::from_step(tally.classes[0].intended(), 0, growth), Standing::Held, "{growth:?}");
    }
}

/// 100 a second with equal gaps, each served in a millisecond, but for two seconds in which nothing is: whoever was due in them has
/// waited for their end.
#[tokio::test(start_paused = true)]
async fn a_stall_is_in_the_latency_of_all_that_were_due_in_it() {
    let step = step(Arrivals::Constant, 100.0, 10.0, 0);
    let services = vec![Duration::from_millis(1); 1_000];
    let (tally, latencies) = loaded(&step, services, Some((400, Duration::from_secs(2)))).await;
    assert_eq!(tally.classes[0].served.n(), 1_000);
    for (number, latency) in latencies.iter().enumerate() {
        // at 100 a second the server works 200 that have waited off in 0.22 s
        let left = (2.0 - (number as f64 - 400.0) / 100.0) + (number as f64 - 399.0) * 0.001;
        let expected = if (400..=622).contains(&number) { left.max(0.001) } else { 0.001 };
        assert!((latency - expected).abs() < 0.002, "number {number}: {latency} and {expected}");
    }
    let served = &tally.classes[0].served;
    let at = |share| served.quantile_ms(share, 0).expect("many were served");
    assert!((at(0.999) - 1_991.0).abs() < 6.0, "{}", at(0.999));
    assert!((at(0.9) - 1_102.0).abs() < 15.0, "a hundred waited longer than a second: {}", at(0.9));
    assert!(at(0.75) < 3.0, "{}", at(0.75));
}

/// Two thirds of what is due can be served, and only ten may be under way: nothing piles up here, and nothing is forgotten.
#[tokio::test(start_paused = true)]
async fn what_is_not_sent_is_counted() {
    let step = Step {
        in_flight: 10,
        drain: Duration::from_secs(1),
        warm_up: Duration::from_secs(10),
        ..step(Arrivals::Constant, 150.0, 20.0, 0)
    };
    let (tally, _) = loaded(&step, vec![Duration::from_millis(10); 5_000], None).await;
    let of_step = &tally.classes[0];
    assert_eq!((tally.warm_up.intended(), of_step.intended()), (1_500, 3_000), "everything that was due");
    // by 31 s the server has served 3,100 of 4,500
    assert!((1_385..=1_400).contains(&of_step.unsent), "{}", of_step.unsent);
    assert!(of_step.unfinished <= 10, "{}", of_step.unfinished);
    assert!((1_990..=2_000).contains(&of_step.departed), "{}: a hundred a second left", of_step.departed);
    let growth = growth(tally.classes.iter(), 20.0).expect("a line");
    // the last part that has any is cut off in its middle
    assert!((growth.slope - 0.5).abs() < 0.03, "{growth:?}");
    assert_eq!(Standing::from_step(of_step.intended(), of_step.unserved(), Some(growth)), Standing::Behind);
    assert_eq!(of_step.served.quantile_ms(0.9, of_step.unserved()), None, "never");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_step_tells_what_there_is() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stopping.cancel();
    });
    let step = step(Arrivals::Constant, 10.0, 60.0, 0);
    let server = Server::start(None);
    let perform = |()| {
        let server = Arc::clone(&server);
        async move { server.serve(Duration::from_millis(1)).await }
    };
    let tally = pacer::run(&step, &mut Wait::Timer, &stop, 1, |_| (0, ()), perform).await;
    assert!(tally.interrupted);
    assert!((tally.seconds - 3.0).abs() < 0.1, "{}", tally.seconds);
    assert!((29..=31).contains(&tally.classes[0].served.n()), "{}", tally.classes[0].served.n());
    assert_eq!(tally.classes[0].unserved(), 0, "what was not due yet is not missing");
}

/// A second of failures and a panic: each is counted, and the latency of none is a served one's.
#[tokio::test(start_paused = true)]
async fn failures_are_counted_by_kind_and_panics_are_not_lost() {
    let step = step(Arrivals::Constant, 10.0, 10.0, 0);
    let mut number = 0;
    let draw = |_: Counted| {
        number += 1;
        (0, number)
    };
    let perform = |number: u32| async move {
        assert!(number != 50, "the fiftieth panics");
        let failed = || Failed { kind: "system_http_503".to_owned(), message: "busy".to_owned() };
        if number.is_multiple_of(4) { Err(failed()) } else { Ok(()) }
    };
    let tally = pacer::run(&step, &mut Wait::Timer, &CancellationToken::new(), 1, draw, perform).await;
    let of_step = &tally.classes[0];
    assert_eq!((of_step.served.n(), of_step.errors(), of_step.unfinished), (74, 25, 1));
    assert_eq!(of_step.failed["system_http_503"].example, "busy");
}
