//! Flags of the verbs that show, compare and grade results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{
    BankArgs, ForkFrom, LimitArgs, MeterArgs, NamingArgs, OutputArgs, PriceArgs, RetryArgs, SampleArgs, SubmitArgs,
};

/// Flags of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Run, or group of repeats: its id, name, start or end of the id, or `latest`
    #[arg(required_unless_present = "index")]
    pub run: Option<String>,
    /// Formats, separated by commas: terminal, json, md, html, csv, junit
    #[arg(long, value_delimiter = ',', value_name = "FORMATS")]
    pub format: Vec<String>,
    /// Print everything, not only what fits a screen
    #[arg(long)]
    pub full: bool,
    /// Leave cells of CSV that a spreadsheet would compute as they are; without it they begin with ' and are text
    #[arg(long)]
    pub raw_csv: bool,
    /// Write files here instead of printing
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Show paired differences from this run in html: a forest plot, and in each flip what it made of the question
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,
    /// Known mistakes of the dataset's answer key (JSON: question_id, correct_answer, error_type): the score by the corrected key, and
    /// the ceiling that the published one leaves
    #[arg(long, value_name = "FILE", conflicts_with = "label_fixes")]
    pub answer_key: Option<PathBuf>,
    /// The same from published mistakes, such as locomo-audit: fetched and checked
    #[arg(long, value_name = "NAME")]
    pub label_fixes: Option<String>,
    /// Beside the score what it is without the errors of its judge, as a run of judge-audit has counted them: a value where answers of
    /// this system were graded (judge-audit --of RUN), a range where answers were planted
    #[arg(long, value_name = "AUDIT")]
    pub corrected: Option<String>,
    /// Instead of the result: what others have published on the same dataset beside it, and in what each differs (terminal, md, json)
    #[arg(long, conflicts_with_all = ["full", "raw_csv", "output_dir", "baseline", "answer_key", "label_fixes", "corrected", "trace_url"])]
    pub published: bool,
    /// Where traces can be seen, for links in html; {trace_id} stands for the trace
    #[arg(long, value_name = "URL")]
    pub trace_url: Option<String>,
    /// Instead of one run all of the store on one page, filtered and sorted there, with links to the pages of the runs
    #[arg(long, conflicts_with_all = ["run", "published", "format", "full", "raw_csv", "output_dir", "baseline", "answer_key", "label_fixes", "corrected", "trace_url"])]
    pub index: bool,
    /// Write the page of all runs here [default: $BENCH_HOME/runs/index.html]
    #[arg(long, value_name = "FILE", requires = "index")]
    pub output: Option<PathBuf>,
    /// JSON on standard output: the result, that of a group of repeats, or with --index all runs (the page only with --output)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Flags of `trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// Run: its id, name, start or end of the id, or `latest`
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

/// Flags of `show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// Id of a question, or its trace id: everything that is known of it; without one questions are listed
    #[arg(conflicts_with_all = ["failed", "flipped", "worst", "search", "category", "most"])]
    pub question: Option<String>,
    /// Questions that did not pass, or have no result
    #[arg(long)]
    pub failed: bool,
    /// Questions that this run passed and RUN did not, or the other way round
    #[arg(long, value_name = "RUN")]
    pub flipped: Option<String>,
    /// The N questions with the worst scores, worst first
    #[arg(long, value_name = "N", conflicts_with = "most")]
    pub worst: Option<usize>,
    /// Questions whose id, text, expected answer, answer or error hold this, in large or small letters
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Questions of this category
    #[arg(long, value_name = "NAME")]
    pub category: Option<String>,
    /// Questions that are listed
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub most: usize,
    /// JSON on standard output: as in questions.jsonl; one question with what was missed and what models were sent
    #[arg(long)]
    pub json: bool,
}

/// Flags of `score`.
#[derive(Debug, Clone, Args)]
pub struct ScoreArgs {
    /// Name of the scorer that grades; --list shows all
    #[arg(long, value_name = "NAME", required_unless_present_any = ["list", "counting"])]
    pub scorer: Option<String>,
    /// JSON lines; standard input without it
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// List all scorers with their direction, source and vectors
    #[arg(long)]
    pub list: bool,
    /// List how others count (--count-as)
    #[arg(long)]
    pub counting: bool,
    /// The list as JSON
    #[arg(long, conflicts_with_all = ["scorer", "input"])]
    pub json: bool,
}

/// How several grades of one answer become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Reduce {
    /// Mean of the grades
    #[default]
    Mean,
    /// 1 when more than half of them pass, else 0
    Majority,
}

/// Help of `--dataset-seed` where questions are of one dataset.
const ONE_SEED: &str = "Seed of a generated dataset, such as locomo-sim or long-horizon: the same as `--set sim.seed=N`, `--set horizon.seed=N`";

/// Flags of `import`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("dataset_seed", |arg| arg.help(ONE_SEED)))]
pub struct ImportArgs {
    /// Which questions
    #[command(flatten)]
    pub sample: SampleArgs,
    /// JSON lines (question_id, answer?, retrieved?, score?, metric?), or JSON, or CSV; docs/IMPORT.md has the rest
    #[arg(long, value_name = "FILE", required_unless_present = "forms")]
    pub answers: Option<PathBuf>,
    /// Print the known forms, and where each field lies in them
    #[arg(long)]
    pub forms: bool,
    /// The named questions are the sample; without it the others are not_run
    #[arg(long)]
    pub subset: bool,
    /// Where a field of ours lies in the file, dotted, such as score=metrics.f1; repeatable
    #[arg(long, value_name = "OURS=THEIRS")]
    pub field: Vec<String>,
    /// The same as --field score=FIELD
    #[arg(long, value_name = "FIELD")]
    pub score_field: Option<String>,
    /// Divide grades by this
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub scale: f64,
    /// How several grades of one answer become one
    #[arg(long, value_enum, default_value = "mean")]
    pub reduce: Reduce,
    /// Name of the metric of the grades [default: imported]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Further deterministic scorers, also of what was retrieved (recall@10); may be repeated
    #[arg(long, value_name = "NAME")]
    pub scorer: Vec<String>,
    /// Metric that heads the report [default: that of the grades, else the first scorer]
    #[arg(long, value_name = "METRIC")]
    pub headline: Option<String>,
    /// Most that the files may hold together, unpacked, in MiB: it is all read into memory
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_mib: u32,
    /// What the run is called
    #[command(flatten)]
    pub naming: NamingArgs,
    /// Name of the memory system that made the answers
    #[arg(long, short = 'p', value_name = "NAME")]
    pub system: Option<String>,
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Where the report's files go
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
}

/// How runs are compared: flags of `compare` and `gate`.
#[derive(Debug, Clone, Args)]
pub struct PairingArgs {
    /// Metric [default: the headline of the first run, or of the baseline]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// What may differ although more than one thing does: system, answerer, grading, all; separated by commas
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub under_test: Vec<String>,
}

/// How a comparison is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonFormat {
    /// For a screen
    Terminal,
    /// All figures
    Json,
    /// For pull requests
    Md,
    /// One page without network: each flip with both answers and both contexts side by side
    Html,
}

/// Flags of `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Runs (id, name, start or end of an id, `latest`) or folders with report.json and questions.jsonl; the first is the baseline
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub runs: Vec<String>,
    /// How they are compared
    #[command(flatten)]
    pub pairing: PairingArgs,
    /// Change of the score that does not matter, as a fraction
    #[arg(long, value_name = "FRACTION", default_value_t = 0.02)]
    pub tolerance: f64,
    /// The same per category
    #[arg(long, value_name = "FRACTION", default_value_t = 0.03)]
    pub category_tolerance: f64,
    /// Flips that are listed: questions that one run passed and the other did not
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub flips: usize,
    /// How it is shown: terminal, json, md, html (of two runs) [default: terminal]
    #[arg(long, value_name = "FORMAT", conflicts_with = "json", hide_possible_values = true)]
    pub format: Option<ComparisonFormat>,
    /// Write it to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Write comparison.json, comparison.md, comparison.svg and scores against costs (front-*.svg) here too
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
}

/// Flags of `gate`.
#[derive(Debug, Clone, Args)]
pub struct GateArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    #[arg(required_unless_present = "print_policy")]
    pub run: Option<String>,
    /// A run, a folder or questions.jsonl, or last:K for the mean of the last K runs of its settings before it
    #[arg(long, value_name = "BASELINE", required_unless_present_any = ["floor", "policy", "print_policy", "plan"])]
    pub baseline: Option<String>,
    /// Policy in YAML; `--print-policy` shows the shipped one
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Print the shipped policy and stop
    #[arg(long)]
    pub print_policy: bool,
    /// Say how often a gate with this policy passes, fails and ends undecided, by simulated runs of these questions, and stop
    #[arg(long)]
    pub plan: bool,
    /// Lowest allowed headline score, as a fraction
    #[arg(long, value_name = "FRACTION")]
    pub floor: Option<f64>,
    /// Say what was found, and exit 0
    #[arg(long)]
    pub advisory: bool,
    /// An inconclusive gate exits 0
    #[arg(long)]
    pub allow_inconclusive: bool,
    /// How it is compared
    #[command(flatten)]
    pub pairing: PairingArgs,
    /// Write the rules as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Command that hears of warnings and failures: JSON on its standard input, BENCH_ALERT_SEVERITY in its environment
    #[arg(long, value_name = "COMMAND")]
    pub alert_command: Option<String>,
    /// URL that hears of them by POST
    #[arg(long, value_name = "URL")]
    pub alert_url: Option<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// A run made from another: flags of `rejudge` and `rescore`.
#[derive(Debug, Clone, Args)]
pub struct RegradeArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// What the new run is called
    #[command(flatten)]
    pub naming: NamingArgs,
    /// Known mistakes of the dataset's answer key that stand beside the scores, such as locomo-audit
    #[arg(long, value_name = "NAME")]
    pub label_fixes: Option<String>,
    /// Worker pool
    #[arg(long, value_name = "NAME", value_parser = super::pool)]
    pub pool: Option<String>,
    /// What is shown, and where the files go
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputArgs,
}

/// Flags of `rejudge`.
#[derive(Debug, Clone, Args)]
pub struct RejudgeArgs {
    /// What is graded
    #[command(flatten)]
    pub regrade: RegradeArgs,
    /// Model judge; may be repeated, or several with commas: how far the judge moves the score is told. A later one may grade a sample
    /// of N questions, and what it would say of all is estimated: openai:STRONG=N
    #[arg(long, short = 'j', value_name = "PROVIDER:MODEL", value_delimiter = ',', required_unless_present_any = ["count_as", "canonical_judge"])]
    pub judge: Vec<String>,
    /// Count as others do, such as mem0-2025; `bench-coord score --counting` tells of each
    #[arg(long, value_name = "NAME", conflicts_with = "rubric")]
    pub count_as: Option<String>,
    /// Grade and count as the dataset's authors do
    #[arg(long, conflicts_with_all = ["count_as", "rubric"])]
    pub canonical_judge: bool,
    /// Votes of each judge per answer (odd) [default: 1]
    #[arg(long, value_name = "N")]
    pub votes: Option<u32>,
    /// One rubric for all questions (judge-graded); dataset: the dataset's own [default: that of the run]
    #[arg(long, value_name = "NAME")]
    pub rubric: Option<String>,
    /// Judge LongMemEval in its authors' words, from a file that you have; other words are refused (docs/GRADERS.md)
    #[arg(long, value_name = "FILE")]
    pub judge_prompts: Option<PathBuf>,
    /// How much it may use
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: LimitArgs,
    /// What models cost that no list knows
    #[command(flatten, next_help_heading = "Limits")]
    pub prices: PriceArgs,
    /// Estimate, then stop
    #[arg(long, help_heading = "The run")]
    pub dry_run: bool,
    /// Do not ask before an estimate above $5
    #[arg(long, help_heading = "The run")]
    pub yes: bool,
}

/// Flags of `judge-audit`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("dataset_seed", |arg| arg.help(ONE_SEED)))]
pub struct JudgeAuditArgs {
    /// In which questions answers are planted
    #[command(flatten)]
    pub sample: SampleArgs,
    /// Model judge; may be repeated: their agreement is told. Without one the grades of --answers are audited
    #[arg(long, short = 'j', value_name = "PROVIDER:MODEL", value_delimiter = ',', help_heading = "Who")]
    pub judge: Vec<String>,
    /// Votes of each judge per answer (odd) [default: 1]
    #[arg(long, value_name = "N", requires = "judge", help_heading = "Who")]
    pub votes: Option<u32>,
    /// What is planted: specific, vague (wrong answers), paraphrase, verbatim (right ones); may be repeated [default: all]
    #[arg(long, value_name = "KIND", help_heading = "Which answers")]
    pub plant: Vec<String>,
    /// Planted answers that others have made, all of one kind, graded or not: any file that `import` reads
    #[arg(long, value_name = "FILE", help_heading = "Which answers")]
    pub answers: Option<PathBuf>,
    /// How several grades of one answer in that file become one
    #[arg(
        long,
        value_enum,
        default_value = "mean",
        requires = "answers",
        conflicts_with = "of",
        help_heading = "Which answers"
    )]
    pub reduce: Reduce,
    /// In place of planted answers those of this run that --grades names: what its judges made of them is audited, or with --judge
    /// what others make of them
    #[arg(long, value_name = "RUN", requires = "grades", conflicts_with_all = ["plant", "answers"], help_heading = "Which answers")]
    pub of: Option<String>,
    /// Which of them are right, by somebody who knows (JSON list or lines: question_id, correct): of a sample by lot, whatever the
    /// judge said
    #[arg(long, value_name = "FILE", requires = "of", help_heading = "Which answers")]
    pub grades: Option<PathBuf>,
    /// How much it may use
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: LimitArgs,
    /// What models cost that no list knows
    #[command(flatten, next_help_heading = "Limits")]
    pub prices: PriceArgs,
    /// What the run is called
    #[command(flatten, next_help_heading = "The run")]
    pub naming: NamingArgs,
    /// Worker pool
    #[arg(long, value_name = "NAME", value_parser = super::pool, help_heading = "The run")]
    pub pool: Option<String>,
    /// Estimate, then stop; nothing is stored
    #[arg(long, help_heading = "The run")]
    pub dry_run: bool,
    /// Do not ask before an estimate above $5
    #[arg(long, help_heading = "The run")]
    pub yes: bool,
    /// What is shown, and where the files go
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputArgs,
}

impl JudgeAuditArgs {
    /// The same as a `submit` that forks the run of planted answers.
    pub(crate) fn into_submit(self) -> SubmitArgs {
        let regrade = RegradeArgs {
            run: String::new(),
            naming: self.naming,
            label_fixes: None,
            pool: self.pool,
            output: self.output,
        };
        SubmitArgs {
            judge: self.judge,
            votes: self.votes,
            limits: self.limits,
            prices: self.prices,
            dry_run: self.dry_run,
            yes: self.yes,
            ..regrade.into_submit()
        }
    }
}

/// Flags of `rescore`.
#[derive(Debug, Clone, Args)]
pub struct RescoreArgs {
    /// What is graded
    #[command(flatten)]
    pub regrade: RegradeArgs,
    /// Scorer; may be repeated; the first heads the report [default with --label-fixes: those of the run]
    #[arg(long, value_name = "NAME", required_unless_present = "label_fixes")]
    pub scorer: Vec<String>,
}

impl RegradeArgs {
    /// The same as a forked `submit`.
    fn into_submit(self) -> SubmitArgs {
        SubmitArgs {
            sample: SampleArgs::default(),
            mode: None,
            dispositions: None,
            system: None,
            scenario: None,
            max_recalls: None,
            multi_query: None,
            answerer: None,
            judge: Vec::new(),
            scorer: Vec::new(),
            label_fixes: self.label_fixes,
            count_as: None,
            canonical_judge: false,
            headline: None,
            top_k: None,
            allow_unfiltered: false,
            only_scorers: false,
            only_wrong: false,
            votes: None,
            rubric: None,
            judge_prompts: None,
            controls: false,
            no_canaries: false,
            banks: BankArgs::default(),
            meter: MeterArgs::default(),
            repeats: None,
            stop_when: None,
            repeat_ingest: false,
            limits: LimitArgs::default(),
            prices: PriceArgs::default(),
            cache: None,
            naming: self.naming,
            latency_probe: None,
            latency_probe_rate: Vec::new(),
            pool: self.pool,
            trace_url: None,
            trace_content: false,
            fork: Some(self.run),
            from: Some(ForkFrom::Judge),
            detach: false,
            dry_run: false,
            yes: false,
            output: self.output,
        }
    }
}

impl RetryArgs {
    /// `retry --wrong` as a forked `submit`.
    pub(crate) fn into_submit(self) -> SubmitArgs {
        let naming = NamingArgs { name: self.name, run_id: self.run_id, tag: Vec::new() };
        let regrade = RegradeArgs { run: self.run, naming, label_fixes: None, pool: None, output: self.output };
        SubmitArgs {
            from: Some(ForkFrom::Answer),
            only_wrong: true,
            limits: LimitArgs { max_cost: self.max_cost, ..LimitArgs::default() },
            dry_run: self.dry_run,
            yes: self.yes,
            ..regrade.into_submit()
        }
    }
}

impl RejudgeArgs {
    /// The same as a forked `submit`.
    pub(crate) fn into_submit(self) -> SubmitArgs {
        SubmitArgs {
            judge: self.judge,
            count_as: self.count_as,
            canonical_judge: self.canonical_judge,
            votes: self.votes,
            rubric: self.rubric,
            judge_prompts: self.judge_prompts,
            limits: self.limits,
            prices: self.prices,
            dry_run: self.dry_run,
            yes: self.yes,
            ..self.regrade.into_submit()
        }
    }
}

impl RescoreArgs {
    /// The same as a forked `submit`.
    pub(crate) fn into_submit(self) -> SubmitArgs {
        SubmitArgs { scorer: self.scorer, only_scorers: true, ..self.regrade.into_submit() }
    }
}
