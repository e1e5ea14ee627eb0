//! A run that is disturbed, and what must hold afterwards: every question exactly once, the digest of the undisturbed local
//! run, and no more calls repeated than were in flight when something was lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bench_testkit::{
    bench::{Bench, Done},
    cluster::{Cluster, Setup, wait_until_ready},
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

/// Longest time that a disturbed run may take.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// How a process ends that aborts.
const SIGABRT: i32 = 6;
/// The run's name.
pub const RUN: &str = "disturbed";
/// Slots per role of the workers that [`Stage::worker`] starts.
pub const SLOTS: u64 = 4;

/// How large a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// 50 questions of 5 banks.
    Small,
    /// 200 questions of 5 banks.
    Middle,
    /// 398 questions of 10 banks.
    Large,
    /// 1,986 questions of 10 banks: LoCoMo itself where it is at hand ([`locomo`]), else a simulated one.
    Full,
}

/// The folder of datasets that holds the real LoCoMo (`BENCH_REFERENCE_DIR`, by default `../shared`); it may not be part of
/// this repository.
#[must_use]
pub fn locomo() -> Option<PathBuf> {
    let folder = std::env::var_os("BENCH_REFERENCE_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let data = folder.join("data");
    if data.join("locomo/locomo10.json").exists() {
        return data.canonicalize().ok();
    }
    eprintln!("NOT TESTED: {} is absent; set BENCH_REFERENCE_DIR to test on the real LoCoMo", data.display());
    None
}

impl Size {
    /// Number of its questions.
    #[must_use]
    pub const fn questions(self) -> usize {
        match self {
            Self::Small => 50,
            Self::Middle => 200,
            Self::Large => 398,
            Self::Full => 1_986,
        }
    }

    /// Name for `--dataset`.
    #[must_use]
    pub fn dataset(self) -> &'static str {
        if self == Self::Full && locomo().is_some() { "locomo" } else { "locomo-sim" }
    }

    /// What its commands need in their environment.
    #[must_use]
    pub fn environment(self) -> Option<(&'static str, String)> {
        locomo().filter(|_| self == Self::Full).map(|folder| ("BENCH_DATASETS_DIR", folder.display().to_string()))
    }

    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Small => &["--preset", "quick", "--max-banks", "5"],
            Self::Middle => &["--per-bank", "40", "--max-banks", "5"],
            Self::Large => &["--per-bank", "40"],
            Self::Full => &["--preset", "full"],
        }
    }

    /// `submit` of a run of this size, with a model as answerer and judge.
    #[must_use]
    pub fn submit<'a>(self, more: &[&'a str]) -> Vec<&'a str> {
        let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
        let fixed = ["submit", "--dataset", self.dataset(), "--json"];
        fixed.iter().chain(self.flags()).chain(&models).chain(more).copied().collect()
    }

    /// A folder and a store for local runs of this size.
    #[must_use]
    pub fn bench(self, provider: &Provider) -> Bench {
        let bench = provider.bench();
        match self.environment() {
            Some((name, value)) => bench.with_env(name, value),
            None => bench,
        }
    }

    /// The digest of the undisturbed run on one machine; made once per test process.
    ///
    /// # Panics
    /// When that run does not end well.
    #[must_use]
    pub fn digest(self) -> String {
        static KNOWN: Mutex<BTreeMap<Size, String>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(self)
            .or_insert_with(|| {
                let provider = Provider::start(&[]);
                let report = self.bench(&provider).run(self.submit(&[])).expect_code(0).json();
                report["result_digest"].as_str().expect("a digest").to_owned()
            })
            .clone()
    }
}

/// A cluster with a provider, on which a run is disturbed.
pub struct Stage {
    /// The run's size.
    pub size: Size,
    /// The provider, which counts.
    pub provider: Provider,
    /// Coordinators and workers, with their store and broker.
    pub cluster: Cluster,
    began: Instant,
}

impl Stage {
    /// Sets the stage: services, schema, a provider with this latency.
    #[must_use]
    pub fn set(size: Size, setup: Setup, latency_ms: u32) -> Self {
        let latency = latency_ms.to_string();
        let provider = Provider::start(&["--latency-ms", &latency]);
        let cluster = Cluster::with(setup).with_provider(provider.base_url(), KEY);
        Self::new(size, provider, cluster)
    }

    /// A stage of parts.
    #[must_use]
    pub fn new(size: Size, provider: Provider, cluster: Cluster) -> Self {
        let cluster = match size.environment() {
            Some((name, value)) => cluster.with_env(name, &value),
            None => cluster,
        };
        Self { size, provider, cluster, began: Instant::now() }
    }

    /// Starts a worker with [`SLOTS`] slots per role.
    #[must_use]
    pub fn worker(&self, name: &str) -> Process {
        self.cluster.worker(name, &["--concurrency", &SLOTS.to_string()])
    }

    /// Starts a coordinator, and so many workers, and waits until all can work.
    #[must_use]
    pub fn people(&self, workers: usize) -> (Process, Vec<Process>) {
        let mut coordinator = self.cluster.coordinator("coordinator");
        let mut workers: Vec<Process> = (1..=workers).map(|n| self.worker(&format!("worker{n}"))).collect();
        wait_until_ready(&mut coordinator);
        workers.iter_mut().for_each(wait_until_ready);
        (coordinator, workers)
    }

    /// Starts the run; its client stays with it.
    #[must_use]
    pub fn submit(&self, more: &[&str]) -> Process {
        let flags: Vec<&str> = ["--run-id", RUN].iter().chain(more).copied().collect();
        self.cluster.client(&self.size.submit(&flags))
    }

    /// Waits until a share of the questions, in percent, has been asked of the provider.
    pub fn wait_for_percent(&self, percent: usize) {
        let asked = self.size.questions() * 2 * percent / 100;
        self.provider.wait_for_requests(asked as u64);
    }

    /// Waits for the client's end and checks what must hold after every fault; `in_flight` calls may have been lost.
    ///
    /// # Panics
    /// When it does not hold.
    pub fn check(&self, client: Process, in_flight: u64) -> Value {
        let report = self.check_end(client.wait(PATIENCE));
        let repeated = self.provider.count("repeated_requests");
        assert!(repeated <= in_flight, "{repeated} calls were repeated, {in_flight} were in flight at the faults");
        eprintln!(
            "{} questions, {repeated} of at most {in_flight} calls repeated, {:.1} s",
            self.size.questions(),
            self.began.elapsed().as_secs_f64()
        );
        report
    }

    /// Checks how a run ended: every question exactly once, the digest of the undisturbed run.
    ///
    /// # Panics
    /// When it did not.
    pub fn check_end(&self, done: Done) -> Value {
        let report = done.expect_code(0).json();
        assert_eq!(report["result_digest"].as_str(), Some(self.size.digest().as_str()), "{report:#}");
        assert_eq!(report["outcomes"]["coverage"], 1.0);
        assert_eq!(report["outcomes"]["sample"], self.size.questions());
        let questions = self.cluster.questions(RUN);
        let ids: BTreeSet<&str> = questions.iter().filter_map(|q| q["question_id"].as_str()).collect();
        let counts = (ids.len(), questions.len());
        assert_eq!(counts, (self.size.questions(), self.size.questions()), "every question exactly once");
        report
    }
}

/// Checks that each of these processes has said once that something was away, however often it tried, and once that it is back.
///
/// # Panics
/// When one has not, or has said more.
pub fn check_told(people: &[&Process], code: &str) {
    let told = |process: &Process, level: &str| {
        let level = format!(" {level} ");
        process.stderr().lines().filter(|line| line.contains(&level) && line.contains(code)).count()
    };
    wait_until("everybody goes on", PATIENCE, || people.iter().all(|process| told(process, "INFO") > 0));
    for process in people {
        let counts = (told(process, "WARN"), told(process, "INFO"));
        assert_eq!(counts, (1, 1), "lines of {code} of {}:\n{}", process.name(), process.stderr());
    }
}

/// Random numbers of a seed that is printed; `BENCH_TEST_SEED` gives it back.
#[must_use]
pub fn randomness() -> StdRng {
    let seed = std::env::var("BENCH_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| rand::rng().random::<u64>());
    eprintln!("BENCH_TEST_SEED={seed} repeats this schedule");
    StdRng::seed_from_u64(seed)
}

/// A run in which some questions kill every worker that recalls for them; workers are started again `deaths` times at most
/// for each of them. Those questions end as infrastructure errors with their reason, all others are scored.
///
/// # Panics
/// When that does not hold.
pub fn poison(stage: &Stage, deaths: usize) {
    let rehearsal = ["--set", "faulty.kill=0.065"];
    // workers end themselves for nobody who has not been allowed to ask for it
    let hash =
        stage.cluster.run(&[&["systems", "hash", "faulty", "--json"][..], &rehearsal].concat()).expect_code(0).json();
    let allowed = hash["sha256"].as_str().expect("a hash");
    let worker = |number: usize| {
        let (name, slots) = (format!("worker-{number}"), SLOTS.to_string());
        stage.cluster.worker_with(&name, &["--concurrency", &slots], &[("BENCH_ALLOW_SYSTEMS", allowed)])
    };
    let (_coordinator, _) = stage.people(0);
    let mut workers = [worker(0)];
    wait_until_ready(&mut workers[0]);
    let mut client = stage.submit(&[&["--system", "faulty"][..], &rehearsal].concat());
    let (began, mut died) = (Instant::now(), 0);
    while client.runs() {
        assert!(began.elapsed() < deaths as u32 * Duration::from_secs(60) + PATIENCE, "the run does not end");
        if let Some(status) = workers[0].ended() {
            assert_eq!(status.signal(), Some(SIGABRT), "the worker ended in another way: {status}");
            died += 1;
            workers[0] = worker(died);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = client.wait(PATIENCE).json();
    let questions = stage.cluster.questions(RUN);
    let failed: Vec<&Value> = questions.iter().filter(|q| q["outcome"] == "infra_error").collect();
    assert!(!failed.is_empty(), "the lot fell on no question");
    for question in &failed {
        assert!(question["error"].to_string().contains("10 workers were lost"), "{question:#}");
    }
    let scored = report["outcomes"]["scored"].as_u64().zip(report["outcomes"]["abstained"].as_u64());
    let scored = scored.map(|(scored, abstained)| (scored + abstained) as usize);
    assert_eq!(scored, Some(stage.size.questions() - failed.len()), "{report:#}");
    assert_eq!(died, deaths * failed.len(), "each takes {deaths} workers with it");
    eprintln!("{} questions killed {died} workers in {:.1} s", failed.len(), began.elapsed().as_secs_f64());
}
