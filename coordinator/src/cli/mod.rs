//! The command line: verbs, flags and their help. What each verb does is in `commands/`. Whatever is typed comes in here; out go
//! plain structs, of which the rooms below know nothing but the fields.
//!
//! | module | flags of |
//! |---|---|
//! | this one | every verb, and the list of all |
//! | `runs` | verbs that make, hold and follow runs |
//! | `results` | verbs that show, compare and grade results |
//! | `handed_on` | verbs that hand results on: `export`, `archive`, `site` |
//! | `before` | verbs that look around before a run |
//! | `load` | `load` |
//! | `several` | `submit` with several values of one flag |
//! | `store` | verbs for those who operate a store or a cluster |

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

// archives, clusters and their verbs are named too
#[cfg(all(test, feature = "archive", feature = "cluster"))]
mod advised;
mod before;
mod handed_on;
mod load;
mod parse;
mod results;
mod runs;
mod several;
mod store;

pub use before::*;
pub use handed_on::*;
pub use load::*;
pub use parse::parse;
pub use results::*;
pub use runs::*;
pub use several::Several;
pub use store::*;

/// Benchmark runner for AI-agent memory systems: resumable, capped, with honest error bars.
#[derive(Debug, Parser)]
#[command(
    name = "bench-coord",
    version = bench_worker::version::VERSION,
    about,
    arg_required_else_help = true,
    help_template = "{about}\n\n{usage-heading} {usage}\n\nMain verbs:\n  \
        submit      plan a run, estimate it, start it\n  \
        resume      go on with a run that was interrupted or paused\n  \
        status      what is going on, and why nothing moves\n  \
        report      print the result of a run again\n\n\
        Runs:       matrix, list, watch, pause, cancel, retry, rename, tag, delete\n\
        Results:    show, compare, gate, trace, rejudge, rescore, score, judge-audit,\n            \
        import, export, archive, site\n\
        Before:     init, estimate, datasets, systems, models, prices, load, doctor,\n            \
        config\n\
        Store:      migrate, restore, gc, banks, backup\n\
        Cluster:    serve, meter, dead (and the program bench-worker)\n\
        Shell:      completions, man, help, version\n\n{options}\n\n\
        First run, no key and no download:\n            \
        bench-coord submit --dataset locomo-sim --preset fair\n\
        `bench-coord VERB --help` explains a verb. RUN is an id, a name given with\n\
        --name, the start or end of an id, or `latest`.\n"
)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What is to be done.
    #[command(subcommand)]
    pub verb: Verb,
    /// The words of a `submit` or an `estimate` with several systems, presets or datasets.
    #[arg(skip)]
    pub several: Option<Several>,
}

/// Flags of every verb.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Where runs are stored: sqlite:PATH or postgres://… [env: BENCH_STORE_URL] [default: sqlite:.bench/bench.db]
    #[arg(long, global = true, value_name = "URL", help_heading = "Everywhere")]
    pub store: Option<String>,
    /// Where tasks are queued: memory: or amqp://… [env: BENCH_QUEUE_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Everywhere")]
    pub queue: Option<String>,
    /// Settings file (TOML) [env: BENCH_CONFIG] [default: ./bench.toml, if any]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
    /// Profile in the settings file
    #[arg(long, global = true, value_name = "NAME", help_heading = "Everywhere")]
    pub profile: Option<String>,
    /// Any setting by its dotted name; `bench-coord config show --all` lists them
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", help_heading = "Everywhere")]
    pub set: Vec<String>,
    /// Log more to standard error: -v info, -vv debug (RUST_LOG filters finely)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Everywhere")]
    pub verbose: u8,
}

/// The name of a pool whose queues a broker takes.
fn pool(name: &str) -> Result<String, String> {
    bench_proto::task::check_pool(name).map(|()| name.to_owned())
}

impl Verb {
    /// Whether it runs for long, with a log that machines may read.
    #[must_use]
    pub fn is_service(&self) -> bool {
        #[cfg(feature = "cluster")]
        {
            matches!(self, Self::Serve(_))
        }
        #[cfg(not(feature = "cluster"))]
        {
            false
        }
    }

    /// Whether it is the meter of a cluster.
    #[must_use]
    pub fn is_meter(&self) -> bool {
        matches!(self, Self::Meter(args) if args.verb.is_none())
    }
}

/// What the program is to do; docs of a variant are its line in `--help`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Plan a run, estimate it, start it; waits with live progress
    Submit(Box<SubmitArgs>),
    /// Run a grid of settings as one group: cells, all pairs, main effects
    Matrix(Box<MatrixArgs>),
    /// Go on with a run that was interrupted or paused
    Resume(ResumeArgs),
    /// Hold a run: calls in flight finish, no new ones start
    Pause(RunArg),
    /// End a run: what was scored stays readable
    Cancel(CancelArgs),
    /// Repeat what failed (infra_error) or never ran
    Retry(RetryArgs),
    /// What is going on, and why nothing moves
    Status(StatusArgs),
    /// All runs, newest first
    List(ListArgs),
    /// Give a run, or a group, another name
    Rename(RenameArgs),
    /// Add tags to a run, or take them away
    Tag(TagArgs),
    /// Remove runs from the store for good; what is archived of them stays there
    Delete(DeleteArgs),
    /// Follow a run until it comes to rest
    Watch(WatchArgs),
    /// Print the result of a run again, from the store
    Report(ReportArgs),
    /// Questions of a run: one with all that is known of it, or those that failed, flipped or are worst
    Show(ShowArgs),
    /// Where a question's time went, from the stored timings
    Trace(TraceArgs),
    /// Score answers with a raw scorer: JSON lines in, JSON lines out
    Score(ScoreArgs),
    /// Grade the stored answers of a run again with other judges: a new run, nothing is asked or answered again
    Rejudge(Box<RejudgeArgs>),
    /// Score the stored answers of a run again with other scorers: a new run, no calls
    Rescore(RescoreArgs),
    /// Compare runs question by question: paired intervals, flips, cost and latency
    Compare(CompareArgs),
    /// Pass or fail for CI: a run against a baseline and floors
    Gate(GateArgs),
    /// Turn results made elsewhere into a finished run
    Import(Box<ImportArgs>),
    /// How often judges err: planted answers, wrong and right ones, are graded as any run's
    JudgeAudit(Box<JudgeAuditArgs>),
    /// Questions of a run for other tools: JSON lines, CSV, Parquet
    Export(ExportArgs),
    /// Durable results: push, list, fetch, verify, trajectory, badge
    #[cfg(feature = "archive")]
    #[command(subcommand)]
    Archive(ArchiveVerb),
    /// Static pages of an archive: a leaderboard for each dataset, a page for each pair of systems
    #[cfg(feature = "archive")]
    Site(SiteArgs),
    /// Calls, tokens, dollars, minutes and interval, before paying
    Estimate(Box<SubmitArgs>),
    /// Datasets: list, show, fetch, verify, generate
    #[command(subcommand)]
    Datasets(DatasetsVerb),
    /// Memory systems: list, try, check, hash
    #[command(subcommand)]
    Systems(SystemsVerb),
    /// Models whose prices are known: list
    #[command(subcommand)]
    Models(ModelsVerb),
    /// Prices of models: update a price file from a public table
    #[command(subcommand)]
    Prices(PricesVerb),
    /// A memory system under load: latency at given rates, where it saturates, what it costs that banks grow
    Load(Box<LoadArgs>),
    /// What memory systems call themselves in runs with --meter: let it through, or tell where it goes
    Meter(MeterRoleArgs),
    /// Effective settings and where each comes from
    #[command(subcommand)]
    Config(ConfigVerb),
    /// The coordinator of a cluster: hands out tasks, looks after workers and runs
    #[cfg(feature = "cluster")]
    Serve(ServeArgs),
    /// Ask a listener on this machine whether it is well: for the probes of containers
    #[cfg(feature = "cluster")]
    #[command(hide = true)]
    Probe {
        /// http://HOST:PORT/PATH; brings BENCH_HTTP_TOKEN or what BENCH_HTTP_TOKEN_FILE holds
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Messages that no worker can read: list, show, requeue, drop
    #[command(subcommand)]
    Dead(DeadVerb),
    /// Bring the store's schema and the broker's queues up to date
    Migrate(MigrateArgs),
    /// After a backup of the store was brought back: forget that anything came after it
    Restore,
    /// Drop what no run needs: banks of cancelled runs in their memory systems, dataset items that no run refers to
    Gc(GcArgs),
    /// What runs have stored in memory services, and which of it another run may ask: list, show, remove, export, import, fetch
    #[command(subcommand)]
    Banks(BanksVerb),
    /// Copy a local store to one file, also while runs go on in it
    Backup(BackupArgs),
    /// Write a settings file and a memory system to begin with into this folder
    Init(InitArgs),
    /// Is everything reachable and usable?
    Doctor(DoctorArgs),
    /// Version of this program and the commit of its build
    Version,
    /// Shell completion script
    Completions {
        /// Shell that the script is for
        shell: clap_complete::Shell,
    },
    /// Words that completion scripts offer and that are not known before: runs, categories, settings
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Manual page of this program or of a verb: `bench-coord man submit | man -l -`
    Man(ManArgs),
}

/// Flags of `complete`.
#[derive(Debug, Clone, clap::Args)]
pub struct CompleteArgs {
    /// Kind of words
    #[arg(value_enum)]
    pub what: Completed,
    /// What was typed of the word
    #[arg(default_value = "")]
    pub typed: String,
    /// The whole command line: categories are those of the dataset that it names
    #[arg(long, default_value = "")]
    pub line: String,
}

/// Kinds of words that completion scripts ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Completed {
    /// Ids and names of runs and groups
    Runs,
    /// Categories of the datasets
    Categories,
    /// Names of settings, each with `=`
    Settings,
    /// Verbs of this program
    Verbs,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Display {
    /// A bar on a terminal, plain lines elsewhere
    Auto,
    /// A bar that is drawn over itself
    Bar,
    /// Plain lines
    Plain,
    /// One JSON object a line, on standard error
    JsonLines,
    /// Nothing
    None,
}
