//! Flags of the verbs that make, hold and follow runs.

use std::path::PathBuf;

use bench_proto::{call::Phase, spec::BanksAfter};
use clap::{Args, Subcommand, ValueEnum};

use super::Display;
use crate::standing::naming;

/// Most repeats of one group.
pub(crate) const MOST_REPEATS: i64 = 1_000;

/// Where a forked run begins to work by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForkFrom {
    /// Recall: banks are taken over
    Recall,
    /// Answer: recalls too
    Answer,
    /// Judge: answers too; deterministic scorers run again for nothing
    Judge,
}

impl ForkFrom {
    /// The phase as people read it, and as it is stored.
    pub(crate) const fn phase(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Answer => "answer",
            Self::Judge => "judge",
        }
    }
}

impl From<ForkFrom> for Phase {
    fn from(from: ForkFrom) -> Self {
        match from {
            ForkFrom::Recall => Self::Recall,
            ForkFrom::Answer => Self::Answer,
            ForkFrom::Judge => Self::Judge,
        }
    }
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
    /// Traits of a system that has them for its own answers, each from 1 to 5, such as skepticism=4,empathy=2 [default: its own]
    #[arg(long, value_name = "NAME=N,…", help_heading = "Who")]
    pub dispositions: Option<String>,
    /// What is done for a question: answer, ask-basic (without dates and rules of reading), ask-augmented (with more rules),
    /// reflect (the system's own answer), agentic (a model searches by itself), retrieve-only (recalls are scored) [default: answer]
    #[arg(long, value_name = "NAME", help_heading = "Who")]
    pub scenario: Option<String>,
    /// Recalls that a model may make for a question in --scenario agentic, at most [default: 5]
    #[arg(long, value_name = "N", help_heading = "Who")]
    pub max_recalls: Option<u32>,
    /// Search for each question in N further wordings by the answerer's model too; what all find is joined by reciprocal rank
    #[arg(long, value_name = "N", help_heading = "Who")]
    pub multi_query: Option<u32>,
    /// Who answers: extractive (no key), none, system (the memory system itself), openai:MODEL [default: extractive]
    #[arg(long, value_name = "PROVIDER:MODEL", help_heading = "Who")]
    pub answerer: Option<String>,
    /// Model judge: openai:MODEL; may be repeated; without one the dataset's own scorer is the headline. A later one may grade a sample
    /// of N questions, and what it would say of all is estimated: openai:STRONG=N
    #[arg(long, short = 'j', value_name = "PROVIDER:MODEL", value_delimiter = ',', help_heading = "Who")]
    pub judge: Vec<String>,
    /// Further deterministic scorers, also of recalls (recall@10); `bench-coord score --list` shows all
    #[arg(long, value_name = "NAME", help_heading = "Who")]
    pub scorer: Vec<String>,
    /// Count as others do: mem0-2025, memmachine, evermemos, zep, hindsight, amb, memorybench, official; `bench-coord score --counting` tells of each
    #[arg(long, value_name = "NAME", conflicts_with = "rubric", help_heading = "Who")]
    pub count_as: Option<String>,
    /// Grade and count as the dataset's authors do: their model, what they grade by, how they read replies
    #[arg(long, conflicts_with_all = ["count_as", "rubric"], help_heading = "Who")]
    pub canonical_judge: bool,
    /// Known mistakes of the dataset's answer key that stand beside the scores, such as locomo-audit
    #[arg(long, value_name = "NAME", help_heading = "Who")]
    pub label_fixes: Option<String>,
    /// Metric that heads the report [default: the first judge, else the first scorer]
    #[arg(long, value_name = "METRIC", help_heading = "Who")]
    pub headline: Option<String>,
    /// Hits per recall [default: 10 turns]
    #[arg(long, value_name = "K", help_heading = "Who")]
    pub top_k: Option<u32>,
    /// Ask questions without the parts of their filter that the memory system does not have; the report says so
    #[arg(long, help_heading = "Who")]
    pub allow_unfiltered: bool,
    /// A fork that asks no judge (`rescore`)
    #[arg(skip)]
    pub only_scorers: bool,
    /// A fork that answers again what had not passed, and nothing else (`retry --wrong`)
    #[arg(skip)]
    pub only_wrong: bool,
    /// Votes of the judge per answer (odd)
    #[arg(long, value_name = "N", help_heading = "Who")]
    pub votes: Option<u32>,
    /// One rubric for all questions in place of the dataset's (judge-graded); dataset: back to its own, in a fork
    #[arg(long, value_name = "NAME", help_heading = "Who")]
    pub rubric: Option<String>,
    /// Judge LongMemEval in its authors' words, from a file that you have; other words are refused (docs/GRADERS.md)
    #[arg(long, value_name = "FILE", help_heading = "Who")]
    pub judge_prompts: Option<PathBuf>,
    /// Also run the controls none, random and oracle on the same sample
    #[arg(long, help_heading = "Who")]
    pub controls: bool,
    /// Store no made-up facts beside the dataset, and look for nothing that the memory system may have lost or mixed up
    #[arg(long, help_heading = "Who")]
    pub no_canaries: bool,
    /// Which filled banks are asked
    #[command(flatten)]
    pub banks: BankArgs,
    /// What the memory system calls itself
    #[command(flatten, next_help_heading = "Meter")]
    pub meter: MeterArgs,
    /// Run it so many times as one group, interleaved, under one cap: how stable is each question, and what is the noise made of?
    #[arg(long, alias = "epochs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_REPEATS), conflicts_with = "fork", help_heading = "Who")]
    pub repeats: Option<u32>,
    /// End before the last question as soon as enough is known: "ci<=3pt" (the score to ± 3 points), or "decided vs RUN by 8pt"
    #[arg(long, value_name = "RULE", conflicts_with_all = ["fork", "repeats", "controls"], help_heading = "Who")]
    pub stop_when: Option<String>,
    /// Fill the banks anew for each repeat, also where one filling would do
    #[arg(long, requires = "repeats", help_heading = "Who")]
    pub repeat_ingest: bool,
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
    #[arg(long, value_name = "NAME", value_parser = super::pool, help_heading = "The run")]
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

/// Banks that are not filled by the run that asks them: flags of `submit` and `estimate`.
#[derive(Debug, Clone, Default, Args)]
pub struct BankArgs {
    /// Ask banks that earlier runs have filled with the same, where there are such, and fill only the others
    #[arg(long, conflicts_with_all = ["fork", "repeat_ingest"], help_heading = "Who")]
    pub reuse_banks: bool,
    /// Ask a bank of the memory system that is there already, and store nothing; {bank_id} in its name is the dataset's id of a bank
    #[arg(long, value_name = "NAME", value_parser = bank_name, conflicts_with_all = ["fork", "repeat_ingest", "reuse_banks"], help_heading = "Who")]
    pub bank: Option<String>,
    /// Ask imported banks (`banks import`) that hold the same, in a copy of their files, and fill only the others
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fork", "repeat_ingest", "reuse_banks"], help_heading = "Who")]
    pub banks_from: Option<String>,
    /// Remove the banks that the run fills when it has ended
    #[arg(long, conflicts_with_all = ["fork", "bank", "keep_banks"], help_heading = "Who")]
    pub clean_after: bool,
    /// Keep the banks that the run fills also when it is cancelled, until they are named (`banks remove RUN`)
    #[arg(long, conflicts_with_all = ["fork", "bank"], help_heading = "Who")]
    pub keep_banks: bool,
}

impl BankArgs {
    /// What becomes of the banks afterwards.
    pub(crate) fn after(&self) -> BanksAfter {
        match (self.clean_after, self.keep_banks) {
            (true, _) => BanksAfter::Removed,
            (false, true) => BanksAfter::Kept,
            (false, false) => BanksAfter::Unsaid,
        }
    }
}

/// The name of a bank in a memory system: it becomes a part of addresses and paths there.
fn bank_name(name: &str) -> Result<String, String> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err("a bank has a name, of printable characters".to_owned());
    }
    if name.split(['/', '\\']).any(|part| matches!(part, "" | "." | "..")) {
        return Err("parts of a name are neither empty nor . nor .., which would lead elsewhere".to_owned());
    }
    Ok(name.to_owned())
}

/// How the memory system's own calls are let through: flags of `submit` and `estimate`.
#[derive(Debug, Clone, Default, Args)]
pub struct MeterArgs {
    /// Count, cap and pace the model calls that the memory system makes itself (docs/METER.md)
    #[arg(long)]
    pub meter: bool,
    /// Model that it may call, gpt-4o* for all that begin so; may be repeated [default: all that have a price]
    #[arg(long, value_name = "MODEL", requires = "meter")]
    pub meter_allow: Vec<String>,
    /// Account that its calls go to, openai=NAME, azure=NAME or anthropic=NAME [default: the account of that name, else the answerer's]
    #[arg(long, value_name = "PROVIDER=NAME", requires = "meter")]
    pub meter_account: Vec<String>,
    /// Variable that tells it where the meter is, beside OPENAI_BASE_URL and the like: MY_URL={url}/v1, MY_KEY={key}
    #[arg(long, value_name = "NAME=TEXT", requires = "meter")]
    pub meter_variable: Vec<String>,
    /// Fail a share of its calls on purpose: 429=0.05,500=0.01,slow=0.02
    #[arg(long, value_name = "KIND=SHARE,…", requires = "meter")]
    pub meter_fault: Option<String>,
}

/// Flags of `meter`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MeterRoleArgs {
    /// Tell an address instead
    #[command(subcommand)]
    pub verb: Option<MeterVerb>,
    /// Address to listen at, such as 0.0.0.0:7070 [default: meter.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

/// What `meter` does beside letting calls through.
#[derive(Debug, Clone, Subcommand)]
pub enum MeterVerb {
    /// Address and key by which a memory system that runs elsewhere reaches the meter
    Url {
        /// Run: its id, name, start or end of the id, or `latest`; or the id that a run will have (`--run-id`)
        run: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Flags of `matrix`.
#[derive(Debug, Clone, Args)]
pub struct MatrixArgs {
    /// TOML or YAML (.yaml): axes of flags with several values, exclude, include (docs/CLI.md)
    pub file: PathBuf,
    /// Run each cell so many times [default: what the file says, else 1]
    #[arg(long, alias = "epochs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_REPEATS))]
    pub repeats: Option<u32>,
    /// Hard cap on what all runs of the matrix spend in dollars; or on what they use, such as 500calls or 2000000tokens [default with
    /// paid models: 20]
    #[arg(long, alias = "cost-limit", value_name = "USD|Ncalls|Ntokens")]
    pub max_cost: Option<String>,
    /// What it is called
    #[command(flatten)]
    pub naming: NamingArgs,
    /// Plan and estimate every cell, then stop
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before an estimate above $5
    #[arg(long)]
    pub yes: bool,
    /// Return at once; needs a cluster that works on it
    #[arg(long)]
    pub detach: bool,
    /// What is shown, and where the files go
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a new run is called: flags of every verb that makes one.
#[derive(Debug, Clone, Default, Args)]
pub struct NamingArgs {
    /// Name of the run: every verb takes it in place of the id
    #[arg(long, value_name = "TEXT", value_parser = naming::check_name)]
    pub name: Option<String>,
    /// Tag of the run; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = naming::check_label)]
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
        parsed.map_err(crate::exit::CliError::usage_of)
    }
}

/// Prices of models that no list knows: flags of `submit` and `rejudge`.
#[derive(Debug, Clone, Default, Args)]
pub struct PriceArgs {
    /// Price of models without a known one: dollars per million input and output tokens; MODEL=IN,OUT: of this one, also where a
    /// metered memory system calls it; may be repeated
    #[arg(long, value_name = "[MODEL=]IN,OUT")]
    pub price: Vec<String>,
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
    /// Hard cap on spending in dollars; or on what is used, such as 500calls or 2000000tokens [default with paid models: 20]
    #[arg(long, alias = "cost-limit", value_name = "USD|Ncalls|Ntokens")]
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

/// A share of 1.
fn fraction(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a fraction from 0 to 1; 90 % are 0.9".to_owned())
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
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub floor: Option<f64>,
    /// How long a run in a cluster waits while nobody works on it, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub worker_timeout: u64,
}

/// Which dataset and which questions of it.
#[derive(Debug, Clone, Default, Args)]
pub struct SampleArgs {
    /// Dataset; `bench-coord datasets list` shows all
    #[arg(long, short = 'b', value_name = "NAME", help_heading = "Which questions")]
    pub dataset: Option<String>,
    /// Seed of a generated dataset, such as locomo-sim or long-horizon: the same as `--set sim.seed=N`, `--set horizon.seed=N`; several
    /// (1,2,3) are a matrix, whose report has the mean over the seeds
    #[arg(long, value_name = "SEED", allow_hyphen_values = true, help_heading = "Which questions")]
    pub dataset_seed: Option<String>,
    /// quick (50), fair (200, stratified), fair-2 (200, by shares) or full [default: fair]
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
    /// Only questions with this facet, such as abstention=no; may be repeated, values of one facet are alternatives
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Which questions")]
    pub facet: Vec<String>,
    /// Without questions that have this facet; may be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Which questions")]
    pub exclude_facet: Vec<String>,
    /// Only this question; may be repeated
    #[arg(long, value_name = "ID", help_heading = "Which questions")]
    pub question_id: Vec<String>,
    /// Read the dataset from this file, folder or archive (.gz, .tar.gz)
    #[arg(long, value_name = "FILE", help_heading = "Which questions")]
    pub dataset_path: Option<PathBuf>,
    /// Accept a file with another checksum, and mark it in the report
    #[arg(long, help_heading = "Which questions")]
    pub allow_modified_dataset: bool,
}

/// The model of a judge as it is named, without the number of the questions that it grades.
#[must_use]
pub(crate) fn model_of_judge(judge: &str) -> &str {
    judge.rsplit_once('=').map_or(judge, |(model, _)| model)
}

impl SampleArgs {
    /// The first flag that is given, where questions cannot be chosen.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        // every flag is named: a new one does not compile before it is decided here
        let Self {
            dataset,
            dataset_seed,
            preset,
            sampler,
            seed,
            limit,
            sample,
            sample_total,
            per_bank,
            max_banks,
            max_sessions,
            category,
            exclude_category,
            facet,
            exclude_facet,
            question_id,
            dataset_path,
            allow_modified_dataset,
        } = self;
        let lists = [category, exclude_category, facet, exclude_facet, question_id].map(|list| !list.is_empty());
        let [category, exclude_category, facet, exclude_facet, question_id] = lists;
        let given = [
            ("--dataset", dataset.is_some()),
            ("--dataset-seed", dataset_seed.is_some()),
            ("--preset", preset.is_some()),
            ("--sampler", sampler.is_some()),
            ("--seed", seed.is_some()),
            ("--limit", limit.is_some()),
            ("--sample", sample.is_some()),
            ("--sample-total", sample_total.is_some()),
            ("--per-bank", per_bank.is_some()),
            ("--max-banks", max_banks.is_some()),
            ("--max-sessions", max_sessions.is_some()),
            ("--category", category),
            ("--exclude-category", exclude_category),
            ("--facet", facet),
            ("--exclude-facet", exclude_facet),
            ("--question-id", question_id),
            ("--dataset-path", dataset_path.is_some()),
            ("--allow-modified-dataset", *allow_modified_dataset),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// The run that a verb without further flags is about.
#[derive(Debug, Clone, Args)]
pub struct RunArg {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
}

/// Flags of `resume`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("max_cost", |arg| arg.help("New hard cap on spending in dollars, or in the calls or tokens that the run is capped in")),
    mut_arg("retries", |arg| arg.help("Attempts after the first"))
)]
pub struct ResumeArgs {
    /// Run, or group of repeats: its id, name, start or end of the id, or `latest`
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
    /// Ask the questions that a run left out when it stopped early (--stop-when), and make no further look
    #[arg(long)]
    pub no_stop: bool,
    /// Where its dataset lies now; only a run whose plan was not finished reads it again
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,
    /// Accept a dataset that is not the published one, as long as it is the one that the run began with
    #[arg(long)]
    pub allow_modified_dataset: bool,
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
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// Drop calls in flight (booked as uncertain)
    #[arg(long)]
    pub now: bool,
}

/// Flags of `retry`.
#[derive(Debug, Clone, Args)]
pub struct RetryArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// Only infra_error, not what never ran
    #[arg(long, conflicts_with = "wrong")]
    pub errors: bool,
    /// A new run in which the questions that did not pass are answered again from what was recalled for them; all others keep
    /// their answers
    #[arg(long)]
    pub wrong: bool,
    /// Name of the new run
    #[arg(long, value_name = "TEXT", value_parser = naming::check_name, requires = "wrong")]
    pub name: Option<String>,
    /// Id of the new run
    #[arg(long, value_name = "ID", requires = "wrong")]
    pub run_id: Option<String>,
    /// Hard cap on the new run's spending in dollars; or on what it uses, such as 500calls or 2000000tokens
    #[arg(long, value_name = "USD|Ncalls|Ntokens", requires = "wrong")]
    pub max_cost: Option<String>,
    /// Estimate the new run, then stop
    #[arg(long, requires = "wrong")]
    pub dry_run: bool,
    /// Do not ask before an estimate above $5
    #[arg(long, requires = "wrong")]
    pub yes: bool,
    /// What is shown, and where the files go
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Run: its id, name, start or end of the id, or `latest`; all open runs without one
    pub run: Option<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Group, or run: the runs of this group, one a line. Without it a group is one line
    pub run: Option<String>,
    /// At most so many lines [default: 20, of a group all]
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Controls too
    #[arg(long)]
    pub controls: bool,
    /// Only runs of this dataset
    #[arg(long, value_name = "NAME", help_heading = "Which")]
    pub dataset: Option<String>,
    /// Only runs of this memory system
    #[arg(long, short = 'p', value_name = "NAME", help_heading = "Which")]
    pub system: Option<String>,
    /// Only runs with this tag; may be repeated: with all of them
    #[arg(long, value_name = "TEXT", help_heading = "Which")]
    pub tag: Vec<String>,
    /// Only runs created since then: a date (2026-11-20), a time (2026-11-20T14:00), or how long ago (3d, 12h)
    #[arg(long, value_name = "WHEN", value_parser = crate::out::times::since, help_heading = "Which")]
    pub since: Option<i64>,
    /// Only runs whose result is valid or invalid
    #[arg(long, value_name = "VERDICT", value_enum, ignore_case = true, help_heading = "Which")]
    pub verdict: Option<ListedVerdict>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `rename`.
#[derive(Debug, Clone, Args)]
pub struct RenameArgs {
    /// Run or group: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// The new name
    #[arg(value_name = "NAME", value_parser = naming::check_name)]
    pub name: String,
    /// What was done as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tag`.
#[derive(Debug, Clone, Args)]
pub struct TagArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// Words by which runs are found again
    #[arg(value_name = "TAG", required = true, value_parser = naming::check_label)]
    pub tags: Vec<String>,
    /// Take them away instead
    #[arg(long)]
    pub remove: bool,
    /// The tags that the run has then as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `delete`.
#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    /// Runs: ids, names, starts or ends of ids, or `latest`
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Verdicts by which runs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListedVerdict {
    /// All rules that could be checked hold
    Valid,
    /// At least one does not
    Invalid,
}

/// Flags of `watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// How progress is shown
    #[arg(long, value_enum, default_value = "auto")]
    pub display: Display,
    /// Result as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
