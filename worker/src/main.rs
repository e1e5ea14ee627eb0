//! `bench-worker`: takes tasks from the queue until stopped. Stateless: everything that lasts is in the store.

use std::{process::ExitCode, sync::Arc, time::Duration};

use bench_proto::{
    ids::Role,
    task::{TOPOLOGY_VERSION, check_pool},
};
use bench_queue::QueueError;
use bench_settings::{CommandLine, FlagValue, numbers, signals::Interrupts};
use bench_store::{Right, StoreError, WORKER_CONNECTIONS};
use bench_telemetry::http::{BearerToken, Pages};
use bench_worker::{
    engine::{StartError, Worker, WorkerConfig, WorkerHealth},
    environment,
    traces::ProcessTelemetry,
    transport,
};
use clap::{CommandFactory as _, Parser};
use serde_json::{Value, json};
use tokio::{runtime::Builder, sync::Notify};

/// As in `bench-coord`: docs/adr/0009-allocator.md.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Queue domain of workers that a coordinator supervises (P21).
const CLUSTER_DOMAIN: &str = bench_proto::CLUSTER_DOMAIN;
/// Name of the service at a collector.
const SERVICE: &str = "bench-worker";
/// Exit codes, as those of `bench-coord`.
const USAGE: u8 = 2;
const INFRASTRUCTURE: u8 = 4;

/// A worker of bench-coord: retains, recalls, answers and judges until stopped.
#[derive(Debug, Parser)]
#[command(
    name = "bench-worker",
    version = bench_worker::version::VERSION,
    about,
    after_help = "\
SIGTERM or Ctrl-C drains: no task is claimed, calls in flight finish, the rest is handed back; a second one drops the calls.\n\
Keys come from the environment or from files named in the settings; an account is a base URL with its key."
)]
struct Args {
    /// Where tasks come from: amqp://USER:PASSWORD@HOST/VHOST or amqps:// [env: BENCH_QUEUE_URL]
    #[arg(long, value_name = "URL")]
    queue: Option<String>,
    /// Where runs are stored: postgres://USER:PASSWORD@HOST/DATABASE [env: BENCH_STORE_URL]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Pool that this worker serves
    #[arg(long, value_name = "NAME", default_value = "default")]
    pool: String,
    /// Roles that it serves
    #[arg(long, value_delimiter = ',', value_name = "ROLES", default_value = "retain,question,judge")]
    roles: Vec<String>,
    /// Slots of each role: tasks worked on at once [default: 16 to retain, 64 for the others]
    #[arg(long, value_name = "SLOTS")]
    concurrency: Option<usize>,
    /// Longest wait for calls in flight when it stops [default: 180]
    #[arg(long, value_name = "SECONDS")]
    drain: Option<u64>,
    /// Address for /healthz and /readyz; any other than loopback needs BENCH_HTTP_TOKEN or BENCH_HTTP_TOKEN_FILE
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// Name of this worker [default: host and process id]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Settings file (TOML) [env: BENCH_CONFIG] [default: ./bench.toml, if any]
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    /// Profile in the settings file
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Any setting by its dotted name
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Ask the listener of a worker on this machine whether it is well, and end: for the probes of containers
    #[arg(long, value_name = "URL", hide = true)]
    probe: Option<String>,
    /// Print the manual page, as packages have it
    #[arg(long, hide = true)]
    man: bool,
    /// Log more to standard error: -v info, -vv debug (RUST_LOG filters finely)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// An error with its exit code.
struct Stop {
    code: u8,
    message: String,
}

impl Stop {
    fn usage(message: impl ToString) -> Self {
        Self { code: USAGE, message: message.to_string() }
    }

    fn infrastructure(message: impl ToString) -> Self {
        Self { code: INFRASTRUCTURE, message: message.to_string() }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Open(_) | StoreError::Denied(_) => Self::usage(error),
            _ => Self::infrastructure(error),
        }
    }
}

impl From<QueueError> for Stop {
    fn from(error: QueueError) -> Self {
        match &error {
            QueueError::Setup(_) | QueueError::Refused(_) => Self::usage(error),
            QueueError::Unavailable(_) | QueueError::Closed => {
                Self::infrastructure(format!("{error}; is the broker up?"))
            }
        }
    }
}

impl From<StartError> for Stop {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => error.into(),
            StartError::Queue(error) => error.into(),
        }
    }
}

fn main() -> ExitCode {
    environment::keep_to_itself();
    let args = arguments();
    if args.man {
        return match clap_mangen::Man::new(Args::command()).render(&mut std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => say(&Stop::infrastructure(format!("the page cannot be written: {error}"))),
        };
    }
    if let Some(url) = &args.probe {
        return carry_out(Builder::new_current_thread(), probe(url));
    }
    let _telemetry =
        match bench_telemetry::LogOptions::of_process(args.verbose).and_then(|logs| bench_telemetry::init(&logs)) {
            Ok(guard) => guard,
            Err(error) => return say(&Stop::usage(error)),
        };
    bench_worker::engine::catch_all();
    carry_out(Builder::new_multi_thread(), work(args))
}

/// Reads the command line of this process; help, and what cannot be read, end it with clap's exit codes.
fn arguments() -> Args {
    let words: Vec<_> = std::env::args_os().collect();
    Args::try_parse_from(&words).unwrap_or_else(|error| match numbers::problem(&error, &words) {
        Some(problem) => {
            note(&format!("error: {problem}\n\nFor more information, try '--help'."));
            std::process::exit(2)
        }
        None => error.exit(),
    })
}

fn carry_out(mut threads: Builder, work: impl Future<Output = Result<(), Stop>>) -> ExitCode {
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return say(&Stop::infrastructure(format!("the process cannot start its threads: {error}"))),
    };
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(Duration::from_millis(200));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => say(&stop),
    }
}

/// Asks a listener how it is.
async fn probe(url: &str) -> Result<(), Stop> {
    let token = BearerToken::from_environment().map_err(Stop::usage)?;
    bench_telemetry::probe::ask(url, token.as_ref()).await.map_err(Stop::infrastructure)
}

fn say(stop: &Stop) -> ExitCode {
    bench_telemetry::last_words(&stop.message);
    ExitCode::from(stop.code)
}

/// One line for people.
fn note(line: &str) {
    use std::io::Write as _;
    // a closed standard error is no reason to stop
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

async fn work(args: Args) -> Result<(), Stop> {
    let flag = |key: &str, flag: &str, value: &Option<String>| {
        value.as_ref().map(|value| FlagValue::new(key, flag, value.clone()))
    };
    let flags = [flag("store.url", "--store", &args.store), flag("queue.url", "--queue", &args.queue)];
    let line = CommandLine {
        config: args.config.clone(),
        profile: args.profile.clone(),
        sets: args.set.clone(),
        flags: flags.into_iter().flatten().collect(),
    };
    let settings = bench_settings::from_process(line, environment::keys_of_worker()).map_err(Stop::usage)?;
    let roles = roles(&args.roles)?;
    check_pool(&args.pool).map_err(|why| Stop::usage(format!("--pool: {why}")))?;
    if settings.queue_url.starts_with("memory:") || settings.store_url.starts_with("sqlite:") {
        return Err(Stop::usage(
            "a worker needs a broker and a store that others share: --queue amqp://… and --store postgres://…; memory: and sqlite: are for runs on one machine, which need no bench-worker",
        ));
    }
    if args.concurrency == Some(0) {
        return Err(Stop::usage("--concurrency 0: a worker without slots would never work"));
    }
    let token = BearerToken::from_environment().map_err(Stop::usage)?;

    for way in transport::ways(&settings).into_iter().chain(transport::to_pgvector("pgvector")) {
        transport::warn(&settings, Some(way));
    }
    let store = bench_store::open_with(&settings.store_url, WORKER_CONNECTIONS).await?;
    store.may(Right::Work).await?;
    let queue = bench_queue::connect(&settings.queue_url).await?;
    let host = bench_settings::host_name();
    let chosen = args.concurrency.or(settings.worker.slots.map(|slots| slots as usize));
    let config = WorkerConfig {
        name: args.name.clone().unwrap_or_else(|| format!("{host}-{}", std::process::id())),
        domain: CLUSTER_DOMAIN.to_owned(),
        pool: args.pool.clone(),
        host,
        slots: environment::worker_slots(&roles, chosen),
        drain: args.drain.map_or(settings.worker.drain, Duration::from_secs),
        bank_bytes: settings.worker.bank_bytes(),
    };
    let name = config.name.clone();
    bench_telemetry::metrics::enable(SERVICE, &name);
    let telemetry = ProcessTelemetry::start(&settings, SERVICE, &name, None).map_err(|e| Stop::usage(e.message))?;
    let accounts = environment::usable_accounts(&settings);
    let rights = environment::Rights::of_worker(&settings);
    let environment = environment::traced_environment(&settings, accounts, rights, telemetry.spans.clone())
        .map_err(|failure| Stop::infrastructure(failure.message))?;
    let worker =
        Worker::start(config, environment, Arc::clone(&store), Arc::clone(&queue), Arc::new(Notify::new())).await?;
    let pages = Arc::new(WorkerPages { health: worker.health(), about: about(&args, &name) });
    let listening = bench_telemetry::http::listen(&args.listen, token, pages).await.map_err(Stop::usage)?;
    note(&format!(
        "worker {name} serves {} of pool {} (topology {TOPOLOGY_VERSION}), health at http://{}/readyz",
        args.roles.join(", "),
        args.pool,
        listening.address
    ));

    let outcome = until_stopped(worker).await;
    telemetry.close().await;
    queue.close().await;
    store.close().await;
    outcome
}

/// Works until a signal or a broken store ends it.
async fn until_stopped(worker: Worker) -> Result<(), Stop> {
    let interrupts =
        Interrupts::listen().map_err(|e| Stop::infrastructure(format!("signals cannot be received: {e}")))?;
    let stopping = || note("stopping: no task is claimed, calls in flight finish; a second signal drops them");
    let reason = worker.work_until_stopped(interrupts, stopping).await;
    reason.map_or(Ok(()), |reason| Err(Stop::infrastructure(reason)))
}

fn roles(names: &[String]) -> Result<Vec<Role>, Stop> {
    let mut roles = Vec::new();
    for name in names {
        let role = Role::ALL.into_iter().find(|role| role.name() == name.trim()).ok_or_else(|| {
            Stop::usage(format!("unknown role '{name}' (known: {})", Role::ALL.map(Role::name).join(", ")))
        })?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

struct WorkerPages {
    health: WorkerHealth,
    about: Value,
}

fn about(args: &Args, name: &str) -> Value {
    json!({
        "worker": name,
        "pool": args.pool,
        "roles": args.roles,
        "code_version": bench_worker::version::VERSION,
    })
}

#[async_trait::async_trait]
impl Pages for WorkerPages {
    async fn ready(&self) -> Result<(), String> {
        self.health.ready()
    }

    async fn refresh(&self) {
        self.health.refresh_metrics();
    }

    async fn page(&self, path: &str) -> Option<Result<Value, String>> {
        (path == "/api/about").then(|| Ok(self.about.clone()))
    }
}
