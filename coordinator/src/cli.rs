//! The command line: verbs, flags and their help. What each verb does is in `commands/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod dead;
mod results;

pub use dead::*;
pub use results::*;

/// Benchmark runner for AI-agent memory systems: resumable, capped, with honest error bars.
#[derive(Debug, Parser)]
#[command(
    name = "bench-coord",
    version = bench_worker::version::VERSION,
    about,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    help_template = "{about}\n\n{usage-heading} {usage}\n\nMain verbs:\n  \
        submit      plan a run, estimate it, start it\n  \
        resume      go on with a run that was interrupted or paused\n  \
        status      what is going on, and why nothing moves\n  \
        report      print the result of a run again\n\n\
        Runs:       list, watch, pause, cancel, retry\n\
        Results:    compare, gate, trace, rejudge, rescore, score, import, export, archive\n\
        Before:     estimate, datasets, systems, doctor, config\n\
         Store:      migrate, restore, gc, backup\n\
         Cluster:    serve, dead (and the program bench-worker)\n\
        Shell:      completions\n\n{options}\n\n\
        First run, no key and no download:  bench-coord submit --dataset locomo-sim --preset fair\n\
        `bench-coord VERB --help` explains a verb. RUN is an id, any unique prefix of one, or `latest`.\n"
)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
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
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Plan a run, estimate it, start it; waits with live progress
    Submit(Box<SubmitArgs>),
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
    /// Follow a run until it comes to rest
    Watch(WatchArgs),
    /// Print the result of a run again, from the store
    Report(ReportArgs),
    /// Where a question's time went, from the stored timings
    Trace(TraceArgs),
    /// Score answers with a raw scorer: JSON lines in, JSON lines out
    Score(ScoreArgs),
    /// Grade the stored answers of a run again with other judges: a new run, nothing is asked or answered again
    Rejudge(RejudgeArgs),
    /// Score the stored answers of a run again with other scorers: a new run, no calls
    Rescore(RescoreArgs),
    /// Compare runs question by question: paired intervals, flips, cost and latency
    Compare(CompareArgs),
    /// Pass or fail for CI: a run against a baseline and floors
    Gate(GateArgs),
    /// Turn results made elsewhere into a finished run
    Import(Box<ImportArgs>),
    /// Questions of a run for other tools: JSON lines, CSV, Parquet
    Export(ExportArgs),
    /// Durable results: push, list, fetch, verify, trajectory, badge
    #[cfg(feature = "archive")]
    #[command(subcommand)]
    Archive(ArchiveVerb),
    /// Calls, tokens, dollars, minutes and interval, before paying
    Estimate(Box<SubmitArgs>),
    /// Datasets: list, show, fetch, verify, generate
    #[command(subcommand)]
    Datasets(DatasetsVerb),
    /// Memory systems: list, check
    #[command(subcommand)]
    Systems(SystemsVerb),
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
    /// Copy a local store to one file, also while runs go on in it
    Backup(BackupArgs),
    /// Is everything reachable and usable?
    Doctor(DoctorArgs),
    /// Shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Display {
    /// A bar on a terminal, plain lines elsewhere
    Auto,
    /// A bar
    Bar,
    /// Plain lines
    Plain,
    /// One JSON object a line, on standard error
    JsonLines,
    /// Nothing
    None,
}

/// Flags of `submit` and `estimate`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("json", |arg| arg.help("Print the result (or estimate) as JSON on standard output")))]
pub struct SubmitArgs {
    /// Which questions
    #[command(flatten)]
    pub sample: SampleArgs,
    /// Memory system, or an adapter file (./mine.yaml); `bench-coord systems list` shows all [default: bm25]
    #[arg(long, short = 'p', value_name = "NAME|FILE", help_heading = "Who")]
    pub system: Option<String>,
    /// What is measured of a system that consolidates: raw, or consolidated before the first question [default: raw]
    #[arg(long, value_name = "MODE", help_heading = "Who")]
    pub mode: Option<String>,
    /// Who answers: extractive (no key), none, system (the memory system itself), openai:MODEL [default: extractive]
    #[arg(long, value_name = "PROVIDER:MODEL", help_heading = "Who")]
    pub answerer: Option<String>,
    /// Model judge: openai:MODEL; may be repeated; without one the dataset's own scorer is the headline
    #[arg(long, short = 'j', value_name = "PROVIDER:MODEL", help_heading = "Who")]
    pub judge: Vec<String>,
    /// Further deterministic scorers; `bench-coord score --list` shows all
    #[arg(long, value_name = "NAME", help_heading = "Who")]
    pub scorer: Vec<String>,
    /// Hits per recall [default: 10 turns]
    #[arg(long, value_name = "K", help_heading = "Who")]
    pub top_k: Option<u32>,
    /// Votes of the judge per answer (odd)
    #[arg(long, value_name = "N", help_heading = "Who")]
    pub votes: Option<u32>,
    /// Also run the controls none, random and oracle on the same sample
    #[arg(long, help_heading = "Who")]
    pub controls: bool,
    /// How much it may use
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: LimitArgs,
    /// What models cost that no list knows
    #[command(flatten, next_help_heading = "Limits")]
    pub prices: PriceArgs,
    /// Whose stored replies are used instead of paying again: lineage, shared (all runs), off, refresh [default: lineage]
    #[arg(long, value_name = "SCOPE", help_heading = "Limits")]
    pub cache: Option<String>,
    /// What it is called
    #[command(flatten, next_help_heading = "The run")]
    pub naming: NamingArgs,
    /// Worker pool [default: default]
    #[arg(long, value_name = "NAME", help_heading = "The run")]
    pub pool: Option<String>,
    /// Recalls made one at a time when all questions have ended, for a latency that can be compared; off: none [default: 200]
    #[arg(long, value_name = "N|off", help_heading = "The run")]
    pub latency_probe: Option<String>,
    /// The same begun at these rates after that, in recalls per second
    #[arg(long, value_name = "R[,R]", value_delimiter = ',', help_heading = "The run")]
    pub latency_probe_rate: Vec<String>,
    /// Go on from what another run has stored, with its settings unless flags say otherwise
    #[arg(long, value_name = "RUN", requires = "from", help_heading = "The run")]
    pub fork: Option<String>,
    /// First phase that is done anew
    #[arg(long, value_enum, value_name = "PHASE", requires = "fork", help_heading = "The run")]
    pub from: Option<ForkFrom>,
    /// Where people find a trace, such as `https://jaeger.example/trace/{trace_id}`: reports link kept traces there
    #[arg(long, value_name = "URL", help_heading = "The run")]
    pub trace_url: Option<String>,
    /// Traces hold the texts of questions and answers
    #[arg(long, help_heading = "The run")]
    pub trace_content: bool,
    /// Return at once; needs a cluster that works on it
    #[arg(long, help_heading = "The run")]
    pub detach: bool,
    /// Plan and estimate, then stop
    #[arg(long, help_heading = "The run")]
    pub dry_run: bool,
    /// Do not ask before an estimate above $5
    #[arg(long, help_heading = "The run")]
    pub yes: bool,
    /// What is shown, and where the files go
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputArgs,
}

/// What a new run is called: flags of every verb that makes one.
#[derive(Debug, Clone, Default, Args)]
pub struct NamingArgs {
    /// Name of the run, for people
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Tag of the run; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub tag: Vec<String>,
    /// Id of the run; an existing one with the same fingerprint is attached to, also when several create it at once
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
}

impl NamingArgs {
    /// The id that was given.
    ///
    /// # Errors
    /// Exit 2 for what is no id.
    pub(crate) fn id(&self) -> Result<Option<bench_proto::ids::RunId>, crate::exit::CliError> {
        let parsed = self.run_id.as_deref().map(bench_proto::ids::RunId::parse).transpose();
        parsed.map_err(|e| crate::exit::CliError::usage(e.to_string()))
    }
}

/// Prices of models that no list knows: flags of `submit` and `rejudge`.
#[derive(Debug, Clone, Default, Args)]
pub struct PriceArgs {
    /// Price of models without a known one: dollars per million input and output tokens
    #[arg(long, value_name = "IN,OUT")]
    pub price: Option<String>,
    /// Use models without a known price, counted as free
    #[arg(long)]
    pub unpriced_ok: bool,
}

/// How much a run may use: flags of `submit` and `resume`.
#[derive(Debug, Clone, Default, Args)]
pub struct LimitArgs {
    /// Questions in flight
    #[arg(long, value_name = "N")]
    pub concurrency: Option<u32>,
    /// Requests per minute for each of the run's models, for all processes and runs of the store together
    #[arg(long, value_name = "N")]
    pub max_rpm: Option<u64>,
    /// The same for tokens
    #[arg(long, value_name = "N")]
    pub max_tpm: Option<u64>,
    /// Hard cap on spending in dollars [default with paid models: 20]
    #[arg(long, alias = "cost-limit", value_name = "USD")]
    pub max_cost: Option<String>,
    /// Hard cap on what all runs of the store spend in a UTC day, in dollars
    #[arg(long, value_name = "USD")]
    pub max_cost_per_day: Option<String>,
    /// Attempts after the first [default: 6]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// How long a provider may be away while nothing else of the run can move, before the run is paused [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    pub outage_timeout: Option<u64>,
}

/// What a verb shows that stays with a run to its end: flags of `submit`, `resume` and `retry`.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// How progress is shown
    #[arg(long, value_enum, default_value = "auto")]
    pub display: Display,
    /// Where the report's files go [default: $BENCH_HOME/runs/RUN]
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Lowest allowed headline score, as a fraction: a run below it ends with exit 1
    #[arg(long, value_name = "FRACTION")]
    pub floor: Option<f64>,
    /// How long a run in a cluster waits while nobody works on it, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub worker_timeout: u64,
}

impl OutputArgs {
    /// How the person looks on.
    pub(crate) fn watching<'a>(&self, interrupts: &'a crate::local::Interrupts) -> crate::executor::Watching<'a> {
        let worker_timeout = std::time::Duration::from_secs(self.worker_timeout);
        crate::executor::Watching { display: self.display, worker_timeout, interrupts }
    }
}

/// Which dataset and which questions of it.
#[derive(Debug, Clone, Default, Args)]
pub struct SampleArgs {
    /// Dataset; `bench-coord datasets list` shows all
    #[arg(long, short = 'b', value_name = "NAME", help_heading = "Which questions")]
    pub dataset: Option<String>,
    /// quick (50), fair (200, stratified) or full [default: fair]
    #[arg(long, value_name = "NAME", help_heading = "Which questions")]
    pub preset: Option<String>,
    /// hash; astrocyte (file order, not an estimate of the full score); with --sample-total also go-lcg and astrocyte-lme, the
    /// samples of two other harnesses
    #[arg(long, value_name = "NAME", help_heading = "Which questions")]
    pub sampler: Option<String>,
    /// The sampler's seed
    #[arg(long, value_name = "TEXT", help_heading = "Which questions")]
    pub seed: Option<String>,
    /// The first N questions of the file (not an estimate of the full score)
    #[arg(long, value_name = "N", help_heading = "Which questions")]
    pub limit: Option<u64>,
    /// N questions per category
    #[arg(long, value_name = "N", help_heading = "Which questions")]
    pub sample: Option<u64>,
    /// Exactly N questions, spread over the categories of the whole dataset; a smaller N is part of a larger one
    #[arg(long, value_name = "N", help_heading = "Which questions")]
    pub sample_total: Option<u64>,
    /// N questions per bank, spread over its categories
    #[arg(long, alias = "max-questions-per-conversation", value_name = "N", help_heading = "Which questions")]
    pub per_bank: Option<u64>,
    /// Only the first N banks
    #[arg(long, value_name = "N", help_heading = "Which questions")]
    pub max_banks: Option<u64>,
    /// Only the first N sessions of each bank
    #[arg(long, value_name = "N", help_heading = "Which questions")]
    pub max_sessions: Option<u32>,
    /// Only this category; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Which questions")]
    pub category: Vec<String>,
    /// Without this category; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Which questions")]
    pub exclude_category: Vec<String>,
    /// Only this question; may be repeated
    #[arg(long, value_name = "ID", help_heading = "Which questions")]
    pub question_id: Vec<String>,
    /// Read the dataset from this file
    #[arg(long, value_name = "FILE", help_heading = "Which questions")]
    pub dataset_path: Option<PathBuf>,
    /// Accept a file with another checksum, and mark it in the report
    #[arg(long, help_heading = "Which questions")]
    pub allow_modified_dataset: bool,
}

/// A run.
#[derive(Debug, Clone, Args)]
pub struct RunArg {
    /// Run id, unique prefix, or `latest`
    pub run: String,
}

/// Flags of `resume`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("max_cost", |arg| arg.help("New hard cap on spending in dollars")),
    mut_arg("retries", |arg| arg.help("Attempts after the first"))
)]
pub struct ResumeArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// What changes for the rest of the run
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Take uncertain attempts (cut, timed out, lost with their worker) out of what counts against the cap
    #[arg(long)]
    pub release_uncertain: bool,
    /// Go on with a run that was cancelled
    #[arg(long)]
    pub reopen: bool,
    /// Return at once; needs a cluster that works on it
    #[arg(long)]
    pub detach: bool,
    /// What is shown, and where the files go
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `cancel`.
#[derive(Debug, Clone, Args)]
pub struct CancelArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// Drop calls in flight (booked as uncertain)
    #[arg(long)]
    pub now: bool,
}

/// Flags of `retry`.
#[derive(Debug, Clone, Args)]
pub struct RetryArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// Only infra_error, not what never ran
    #[arg(long)]
    pub errors: bool,
    /// What is shown, and where the files go
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `serve`.
#[cfg(feature = "cluster")]
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address for health and scaling; any other than loopback needs BENCH_HTTP_TOKEN or BENCH_HTTP_TOKEN_FILE
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8620")]
    pub listen: String,
    /// Name of this coordinator [default: host and process id]
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
}

/// Flags of `doctor`.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// Also ask the configured models for one token each, which proves keys and names
    #[arg(long)]
    pub paid: bool,
}

/// Arguments of `gc`.
#[derive(Debug, Clone, clap::Args)]
pub struct GcArgs {
    /// Remove the banks of this ended run too; can be given more than once
    #[arg(long, value_name = "RUN")]
    pub banks: Vec<String>,
}

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// The new file; one that exists is left alone
    pub file: PathBuf,
}

/// Flags of `migrate`.
#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Also drop what only older builds needed: when no process of an older build runs any more
    #[arg(long)]
    pub contract: bool,
    /// Give each program a role of its own in Postgres: make PREFIX_read, _submit, _work and _coordinate where they are missing, and
    /// grant each what it needs; every later migrate does so again
    #[arg(long, value_name = "PREFIX")]
    pub roles: Option<String>,
    /// Pools whose queues are declared
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub pool: Vec<String>,
}

/// Flags of `status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Run id, unique prefix, or `latest`; all open runs without one
    pub run: Option<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// At most so many
    #[arg(long, short = 'n', default_value_t = 20)]
    pub limit: u32,
    /// Controls too
    #[arg(long)]
    pub controls: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// How progress is shown
    #[arg(long, value_enum, default_value = "auto")]
    pub display: Display,
}

/// Flags of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// Formats, separated by commas: terminal, json, md, html, csv, junit
    #[arg(long, value_delimiter = ',', value_name = "FORMATS")]
    pub format: Vec<String>,
    /// Leave cells of CSV that a spreadsheet would compute as they are; without it they begin with ' and are text
    #[arg(long)]
    pub raw_csv: bool,
    /// Write files here instead of printing
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Show paired differences from this run in html: a forest plot, and flips among the questions
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,
    /// Known mistakes of the dataset's answer key (JSON: question_id, correct_answer, error_type): the score by the corrected key, and
    /// the ceiling that the published one leaves
    #[arg(long, value_name = "FILE")]
    pub answer_key: Option<PathBuf>,
    /// Where traces can be seen, for links in html; {trace_id} stands for the trace
    #[arg(long, value_name = "URL")]
    pub trace_url: Option<String>,
}

/// Flags of `trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// Run id, unique prefix, or `latest`
    pub run: String,
    /// Id of a question, or its trace id; the slowest questions are listed without one
    pub question: Option<String>,
    /// The slowest question
    #[arg(long, conflicts_with = "question")]
    pub slowest: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `score`.
#[derive(Debug, Clone, Args)]
pub struct ScoreArgs {
    /// Scorer
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub scorer: Option<String>,
    /// JSON lines; standard input without it
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// List all scorers
    #[arg(long)]
    pub list: bool,
}

/// Verbs of `datasets`.
#[derive(Debug, Clone, Subcommand)]
pub enum DatasetsVerb {
    /// All datasets
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// What is known about one, and what did not resolve in it
    Show {
        /// Dataset
        name: String,
        /// Read this file
        #[arg(long, value_name = "FILE")]
        dataset_path: Option<PathBuf>,
    },
    /// Download into the cache
    Fetch {
        /// Dataset
        name: String,
    },
    /// Compare a file with the published checksum
    Verify {
        /// Dataset
        name: String,
        /// This file instead of the one that would be found
        #[arg(long, value_name = "FILE")]
        dataset_path: Option<PathBuf>,
    },
    /// Write generated data to a file that other runners can read
    Generate {
        /// Dataset
        name: String,
        /// The file
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}

/// Verbs of `systems`.
#[derive(Debug, Clone, Subcommand)]
pub enum SystemsVerb {
    /// All memory systems and what they can do
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// The hash by which an adapter is allowed, and the lines to set where it is to run: settings, chart, environment
    Hash {
        /// An adapter file, or the name of a shipped one
        #[arg(value_name = "FILE|NAME")]
        system: String,
        /// Mode that it is to run in: raw or consolidated [default: raw]
        #[arg(long, value_name = "MODE")]
        mode: Option<String>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Drive a live memory system through everything that a run asks of it, and explain each step
    Check {
        /// Name of a system, or an adapter file
        #[arg(value_name = "NAME|FILE")]
        system: String,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

/// Verbs of `config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigVerb {
    /// Effective settings and where each comes from
    Show {
        /// Those at their defaults too
        #[arg(long)]
        all: bool,
    },
    /// Trust ./bench.toml as it is now: until it changes, it may decide where texts and keys go and what runs
    Trust,
}
