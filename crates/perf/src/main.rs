//! Benchmarks of bench-coord. Each scenario runs the real release binaries several times, interleaved with a yardstick
//! program, and prints one JSON object: medians, ratios, and every single figure.
//!
//! In come a scenario with its sizes and a folder of binaries; out comes the JSON, whose figures stand in docs/PERFORMANCE.md.
//! Start reading at `scenarios`: how a round is made and measured.
//!
//! | module | question |
//! |---|---|
//! | `scenarios`, `measure`, `yardstick` | what does a run on one machine take, and what does the least take that could do it? |
//! | `cluster` | the same over several processes, with a PostgreSQL and a RabbitMQ of their own |
//! | `turnaround`, `looking` | what do few slots cost, and what does telemetry? |
//! | `limiter`, `meter`, `load` | what do pace and budget cost, a metered request, an operation of a load? |
//! | `matrix` | does a matrix make more calls than its cells alone? |
//! | `reuse` | how soon is there an answer where the banks are filled? |
//! | `systems`, `judging`, `scorers` | how quick are memory systems, votes of several calls, scorers? |
//! | `large_file`, `memory`, `generate` | what do large files and banks take, and making one up? |
//! | `results` | how are many stored results read? |
//! | `intervals`, `stopping` | the tables of docs/STATISTICS.md: how often does it hold? |
//!
//! ```text
//! cargo build --release --workspace --bins
//! cargo run --release -p bench-perf -- all        # one machine: local runs
//! cargo run --release -p bench-perf -- cluster    # its own PostgreSQL and RabbitMQ, coordinator and workers as processes
//! ```

mod cluster;
mod generate;
mod intervals;
mod judging;
mod large_file;
mod limiter;
mod load;
mod looking;
mod matrix;
mod measure;
mod memory;
mod meter;
mod results;
mod reuse;
mod scenarios;
mod scorers;
mod stopping;
mod systems;
mod turnaround;
mod yardstick;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

use crate::{
    cluster::{Scaling, Services},
    large_file::Way,
    scenarios::Lab,
};

/// As in `bench-coord`, so that what is measured in this process is what the binaries do: docs/adr/0009-allocator.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Benchmarks of bench-coord; prints JSON.
#[derive(Debug, Parser)]
struct Cli {
    /// Counted rounds of each scenario
    #[arg(long, default_value_t = 5, global = true)]
    rounds: usize,
    /// Folder with the binaries; beside this program by default
    #[arg(long, global = true)]
    binaries: Option<PathBuf>,
    /// Folder that holds locomo/locomo10.json; generated data of the same shape without it
    #[arg(long, env = "BENCH_DATASETS_DIR", global = true)]
    datasets_dir: Option<PathBuf>,
    /// List the statements that took PostgreSQL longest (counting them costs a little)
    #[arg(long, global = true)]
    statements: bool,
    #[command(subcommand)]
    scenario: Scenario,
}

/// What is simulated: runs whose truth is known.
#[derive(Debug, Clone, Args)]
struct Simulated {
    /// Runs, or pairs of runs, of each kind
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    draws: u32,
    /// Another seed draws others
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of published grades, one JSON line a question: sample_id, category, grades (0 or 1 for each judgement)
    #[arg(long)]
    grades: Option<PathBuf>,
}

/// What to measure.
#[derive(Debug, Clone, Subcommand)]
enum Scenario {
    /// Full run without any model
    Extractive,
    /// Full run, one answer and one judge call per question, provider without latency
    ZeroLatency,
    /// The same at 200 ms median latency, sigma 0.4
    Latency,
    /// 1,000 generated conversations against 10, without any model
    Scale,
    /// Telemetry on, off, and with a collector that never answers, without any model
    Looking {
        /// Generated conversations of a run, of 199 questions each
        #[arg(long, default_value_t = 50)]
        conversations: u32,
    },
    /// Few questions at a time, without any model: where a slot waits between two of them
    Turnaround {
        /// Questions in flight
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        concurrency: u32,
        /// The first questions only [default: all, in a cluster 400]
        #[arg(long)]
        questions: Option<u32>,
        /// Over a coordinator and one worker
        #[arg(long)]
        cluster: bool,
    },
    /// All of the above
    All,
    /// Stored results: a million questions aggregated, two large runs compared, questions found and exported, the page of one
    Results {
        /// Questions of the aggregated run
        #[arg(long, default_value_t = 1_000_000)]
        questions: u32,
        /// Questions of each compared run
        #[arg(long, default_value_t = 300_000)]
        compared: u32,
    },
    /// The report of a group of repeats: ten runs of LoCoMo's size, and three large ones beside one of them
    Repeats {
        /// Questions of each of the large runs
        #[arg(long, default_value_t = 1_000_000)]
        questions: u32,
    },
    /// A cluster without models against its yardstick: questions/s to items/s
    Overhead {
        /// Questions of a run
        #[arg(long, default_value_t = 20_000)]
        questions: u32,
        /// Slots of the worker
        #[arg(long, default_value_t = 256)]
        slots: u32,
    },
    /// Commits of checkpoints against plain inserts of the same rows
    Checkpoints {
        /// Questions whose steps are stored
        #[arg(long, default_value_t = 10_000)]
        questions: u32,
    },
    /// Four workers against one, at 200 ms latency
    Scaling {
        /// Questions of the generated run
        #[arg(long, default_value_t = 10_000)]
        questions: u32,
        /// Slots of each worker
        #[arg(long, default_value_t = 16)]
        slots: u32,
        /// 2,000 generated questions only
        #[arg(long)]
        quick: bool,
    },
    /// A very large run: memory, pace, first answer
    Million {
        /// Questions of the run
        #[arg(long, default_value_t = 1_000_000)]
        questions: u32,
        /// Slots of the worker
        #[arg(long, default_value_t = 256)]
        slots: u32,
    },
    /// How well a provider's limits are used, by one worker and by four
    Money {
        /// 3,972 calls a run and a window of a minute, instead of 1,194 and five seconds
        #[arg(long)]
        full: bool,
    },
    /// What pace and budget cost: CPU per call, calls per round trip, transactions a second; SQLite and PostgreSQL
    Limiter,
    /// From submit to the first answer in a warm cluster
    FirstAnswer {
        /// Slots of the worker
        #[arg(long, default_value_t = 64)]
        slots: u32,
    },
    /// All of a cluster, the large run with 200,000 questions
    Cluster {
        /// Smaller runs: a few minutes in all
        #[arg(long)]
        quick: bool,
    },
    /// Memory systems: searches, taking in, what an adapter costs beside the network
    Systems {
        /// Memories of the large banks
        #[arg(long, default_value_t = 100_000)]
        memories: usize,
        /// Calls of a round through the adapter
        #[arg(long, default_value_t = 20_000)]
        calls: usize,
    },
    /// Recalls of `pgvector` against the statements that find the same, over a PostgreSQL of its own or that of a URL
    Pgvector {
        /// Database with the extension vector, of which nothing stays behind [default: one of its own]
        #[arg(long, env = "BENCH_PGVECTOR_URL", hide_env_values = true)]
        url: Option<String>,
        /// Memories of the large bank
        #[arg(long, default_value_t = 20_000)]
        memories: usize,
    },
    /// Load: 10,000 operations a second that begin when they are due, against a loop that knows nothing of them
    Load {
        /// Operations a second
        #[arg(long, default_value_t = 10_000.0)]
        rate: f64,
        /// Seconds of a round
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
    /// What a process that works holds of twenty large banks
    Memory,
    /// What the meter adds to requests at a steady rate, against the same straight to the provider; what it holds of many streams; how
    /// well it uses an allowance together with a worker
    Meter {
        /// Requests a second
        #[arg(long, default_value_t = 500.0)]
        rate: f64,
        /// Seconds of a round
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Streams at once
        #[arg(long, default_value_t = 1_000)]
        streams: usize,
    },
    /// A dataset that is larger than memory should be: opening it, and reading it bank by bank
    LargeFile {
        /// Size of the file, of LongMemEval's shape
        #[arg(long, default_value_t = 300)]
        mib: u64,
    },
    /// Goes through such a file in one way
    #[command(hide = true)]
    GoThrough {
        /// How the file is read
        #[arg(long)]
        way: Way,
        /// The file
        path: PathBuf,
    },
    /// A matrix of four cells against the four runs alone, at a provider's full allowance
    Matrix,
    /// A run that finds its banks filled against the one that has filled them: the time to the first answer
    Reuse,
    /// Answers graded line by line, a call for each, against as many votes of one call
    Judging,
    /// A generated dialogue of `long-horizon` against its JSON
    Generate {
        /// How long the dialogue is, in turns
        #[arg(long, default_value_t = 5000)]
        turns: u32,
    },
    /// The token F1 of pairs of texts against a pass that lower-cases and splits them
    Scorers {
        /// Pairs of a round
        #[arg(long, default_value_t = 1_000_000)]
        pairs: u32,
    },
    /// 5,000 single memories through an adapter that takes 50 at a time, against 100 bare requests of 5 ms
    Batches,
    /// How often 95 % intervals hold the truth, by simulated runs: the table of docs/STATISTICS.md
    Coverage {
        /// Runs of each kind
        #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
        draws: u32,
        /// Another seed draws other runs
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// How often comparisons and gates decide, and how often wrongly, by simulated pairs of runs
    Decisions(Simulated),
    /// How early rules for stopping decide, and how often wrongly, by simulated runs; and what a look takes
    Stopping(Simulated),
    /// The meter for its measurement
    #[command(hide = true)]
    MeterServer {
        /// Base URL of the provider
        provider: String,
    },
    /// A proxy that only passes on, for the measurement of the meter
    #[command(hide = true)]
    BareProxy {
        /// Base URL of the provider
        provider: String,
    },
    /// A memory system for the measurement of adapters
    #[command(hide = true)]
    MemoryServer {
        /// Its name in the testkit
        system: String,
        /// Milliseconds that each of its requests takes
        slow_ms: u64,
        /// Milliseconds that each request takes beside that where it stores something
        #[arg(default_value_t = 0)]
        stores_ms: u64,
    },
    /// The yardstick of a cluster by itself, in a migrated store and an empty virtual host
    #[command(hide = true)]
    Yardstick {
        /// URL of the store
        #[arg(long)]
        store: String,
        /// URL of the virtual host
        #[arg(long)]
        queue: String,
        /// Items to work off
        #[arg(long)]
        items: u32,
    },
}

/// A process that another scenario has started for its measurement; none where the scenario is one by itself.
fn helper(scenario: &Scenario) -> Option<anyhow::Result<()>> {
    match scenario {
        Scenario::MemoryServer { system, slow_ms, stores_ms } => {
            let [slow, stores] = [*slow_ms, *stores_ms].map(std::time::Duration::from_millis);
            Some(systems::memory_server(system, slow, stores))
        }
        Scenario::MeterServer { provider } => Some(meter::serve(provider)),
        Scenario::BareProxy { provider } => Some(meter::serve_bare(provider)),
        Scenario::GoThrough { path, way } => Some(large_file::go_through(path, *way).map(|seen| println!("{seen}"))),
        _ => None,
    }
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if let Some(done) = helper(&cli.scenario) {
        return done;
    }
    if let Scenario::LargeFile { mib } = cli.scenario {
        // needs no other program than this one
        return print(cli.rounds, &[large_file::large_file(cli.rounds.max(1), mib)?]);
    }
    match &cli.scenario {
        Scenario::Coverage { draws, seed } => return print(cli.rounds, &[intervals::coverage_table(*draws, *seed)]),
        Scenario::Decisions(Simulated { draws, seed, grades }) => {
            return print(cli.rounds, &[intervals::decisions(*draws, *seed, grades.as_deref())?]);
        }
        Scenario::Stopping(Simulated { draws, seed, grades }) => {
            return print(cli.rounds, &[stopping::stopping(*draws, *seed, grades.as_deref())?]);
        }
        _ => {}
    }
    if let Scenario::Scorers { pairs } = cli.scenario {
        let options = bench_datasets::OpenOptions { datasets_dir: cli.datasets_dir, ..Default::default() };
        return print(cli.rounds, &[scorers::scorers(cli.rounds.max(1), pairs.max(1), &options)?]);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match &cli.scenario {
        Scenario::Batches => return print(cli.rounds, &[runtime.block_on(systems::batches(cli.rounds))?]),
        Scenario::Pgvector { url, memories } => {
            let asked = systems::pgvector(cli.datasets_dir.as_deref(), cli.rounds, *memories, url.as_deref());
            return print(cli.rounds, &runtime.block_on(asked)?);
        }
        _ => {}
    }
    if let Scenario::Yardstick { store, queue, items } = &cli.scenario {
        let pace = runtime.block_on(cluster::yardstick::run(store, queue, *items))?;
        println!("{}", serde_json::to_string(&pace)?);
        return Ok(());
    }
    let binaries = match cli.binaries {
        Some(folder) => folder,
        None => std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default(),
    };
    let lab = Lab::new(binaries, cli.datasets_dir, cli.rounds)?;
    let results = match cli.scenario {
        Scenario::Extractive => vec![lab.extractive()?],
        Scenario::ZeroLatency => vec![lab.zero_latency()?],
        Scenario::Latency => vec![lab.latency()?],
        Scenario::Scale => vec![lab.scale()?],
        Scenario::Looking { conversations } => vec![lab.looking(conversations)?],
        Scenario::Turnaround { concurrency, questions, cluster: false } => {
            vec![runtime.block_on(turnaround::local(&lab, concurrency, questions))?]
        }
        Scenario::All => vec![
            lab.extractive()?,
            lab.zero_latency()?,
            lab.latency()?,
            lab.scale()?,
            runtime.block_on(turnaround::local(&lab, 1, None))?,
        ],
        Scenario::Results { questions, compared } => {
            runtime.block_on(results::results(&lab, cli.rounds, questions, compared))?
        }
        Scenario::Repeats { questions } => runtime.block_on(results::repeats(&lab, cli.rounds, questions))?,
        Scenario::Memory => vec![runtime.block_on(memory::memory(&lab))?],
        Scenario::Systems { memories, calls } => runtime.block_on(systems::systems(&lab, memories, calls))?,
        Scenario::Load { rate, seconds } => runtime.block_on(load::load(&lab, rate, seconds))?,
        Scenario::Matrix => vec![runtime.block_on(matrix::matrix(&lab))?],
        Scenario::Reuse => vec![runtime.block_on(reuse::reuse(&lab))?],
        Scenario::Judging => vec![runtime.block_on(judging::judging(&lab))?],
        Scenario::Generate { turns } => vec![generate::generate(cli.rounds.max(1), turns)?],
        of_cluster => {
            let services = Services::start(&lab.binaries, cli.statements)?;
            runtime.block_on(in_cluster(&services, &lab, cli.rounds, of_cluster))?
        }
    };
    print(cli.rounds, &results)
}

fn print(rounds: usize, results: &[Value]) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{}",
        serde_json::to_string_pretty(&serde_json::json!({"cores": cores, "rounds": rounds, "results": results}))?
    );
    Ok(())
}

async fn in_cluster(services: &Services, lab: &Lab, rounds: usize, scenario: Scenario) -> anyhow::Result<Vec<Value>> {
    Ok(match scenario {
        Scenario::Overhead { questions, slots } => vec![cluster::overhead(services, rounds, questions, slots).await?],
        Scenario::Checkpoints { questions } => vec![cluster::checkpoints(services, rounds, questions).await?],
        Scenario::Scaling { questions, slots, quick } => scaling(services, lab, questions, slots, quick).await?,
        Scenario::Million { questions, slots } => vec![cluster::million(services, questions, slots).await?],
        Scenario::Money { full } => vec![cluster::money(services, full).await?],
        Scenario::Meter { rate, seconds, streams } => {
            let mut results = meter::meter(lab, services, meter::Steady { rate, seconds }, streams).await?;
            results.push(meter::pace(services).await?);
            results
        }
        Scenario::Limiter => {
            let folder = tempfile::tempdir()?;
            let file = format!("sqlite:{}", folder.path().join("bench.db").display());
            let place = services.database()?;
            vec![limiter::limiter(&file, "sqlite").await?, limiter::limiter(&place.store, "postgres").await?]
        }
        Scenario::Turnaround { concurrency, questions, .. } => {
            vec![turnaround::in_cluster(services, rounds, concurrency, questions.unwrap_or(400)).await?]
        }
        Scenario::FirstAnswer { slots } => vec![cluster::first_answer(services, 2 * rounds, slots).await?],
        Scenario::Cluster { quick } => {
            let (questions, many) = if quick { (4_000, 40_000) } else { (20_000, 200_000) };
            let mut results = vec![
                cluster::overhead(services, rounds, questions, 256).await?,
                cluster::checkpoints(services, rounds, 10_000).await?,
                cluster::first_answer(services, 2 * rounds, 64).await?,
            ];
            results.extend(scaling(services, lab, 10_000, 16, quick).await?);
            results.push(cluster::million(services, many, 256).await?);
            results
        }
        _ => Vec::new(),
    })
}

/// Generated questions, then the real dataset at its own size.
async fn scaling(
    services: &Services,
    lab: &Lab,
    questions: u32,
    slots: u32,
    quick: bool,
) -> anyhow::Result<Vec<Value>> {
    let datasets_dir = lab.datasets_dir.as_deref();
    let generated = Scaling {
        dataset: "locomo-sim",
        datasets_dir: None,
        questions: Some(if quick { 2_000 } else { questions }),
        slots,
        target: 3.8,
    };
    let mut results = vec![cluster::scaling(services, &generated).await?];
    if !quick {
        let full = Scaling { dataset: lab.dataset(), datasets_dir, questions: None, slots, target: 3.6 };
        results.push(cluster::scaling(services, &full).await?);
    }
    Ok(results)
}
