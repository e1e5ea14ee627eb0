//! The summary of a run: `report.json`, schema version 1.
//!
//! Keys may be added, and are changed only with a new [`REPORT_SCHEMA_VERSION`]. Scores, shares and intervals are
//! fractions in [0, 1]; times carry their unit in the name; money is US dollars (floats for reading only, sums are made
//! in [`crate::money::PicoUsd`]). **A figure that was not computed is `null`, never 0.** The JSON Schema is published as
//! `proto/schema/report.schema.json`, an example as `proto/golden/report.v1.json`.

mod question_line;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use question_line::{JudgementLine, PhaseUsageLine, QuestionLine, RetrievedLine, TimingLine};

use crate::{
    call::{CacheScope, Usage},
    facts::PhaseUsage,
    spec::{ModelSpec, RunSpec},
};

/// Version of [`Summary`] as written.
pub const REPORT_SCHEMA_VERSION: u32 = 1;
/// The category whose questions have no answer in the conversation; LoCoMo is published with and without it.
pub const ADVERSARIAL: &str = "adversarial";
/// Label of reports whose answers come from the built-in extractive answerer.
pub const LABEL_DEMO_ANSWERER: &str = "demo answerer";
/// Label of reports over a dataset file that is not the published one.
pub const LABEL_MODIFIED_DATASET: &str = "modified dataset";

/// Everything that is reported of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`REPORT_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which run, and whether its result can be trusted.
    pub run: RunSummary,
    /// What was asked.
    pub dataset: DatasetSummary,
    /// Effective settings.
    pub spec: SpecSummary,
    /// Marks that every view prints beside the result: [`LABEL_DEMO_ANSWERER`], [`LABEL_MODIFIED_DATASET`].
    #[serde(default)]
    pub labels: Vec<String>,
    /// How the questions ended.
    pub outcomes: Outcomes,
    /// The one number.
    pub headline: Headline,
    /// The headline metric without the category `adversarial`, when the sample has that category among others.
    #[serde(default)]
    pub without_adversarial: Option<PartScore>,
    /// All metrics, the headline's first.
    pub scores: Vec<MetricScore>,
    /// Retrieval quality against the dataset's evidence ids.
    pub retrieval: RetrievalSummary,
    /// Why questions below the pass threshold of the headline metric failed.
    #[serde(default)]
    pub failure_attribution: FailureAttribution,
    /// Passed and failed questions of the headline metric, by what recall had found: what is lost in memory, and what after.
    #[serde(default)]
    pub recall_answer: RecallAnswer,
    /// Agreement of judges and votes on the same answers.
    #[serde(default)]
    pub judge_agreement: Vec<Agreement>,
    /// Contexts handed to the answerer; null when nothing was recalled.
    #[serde(default)]
    pub context: Option<ContextSummary>,
    /// Dollars (as if nothing had been cached) per passed question of the headline metric; null when none passed.
    #[serde(default)]
    pub usd_per_correct: Option<f64>,
    /// Errors of `infra_error` questions: code → number of questions.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Answers that did not end by themselves, in questions: `length`, `content_filter`, `refusal`, `empty`, …
    #[serde(default)]
    pub replies: BTreeMap<String, u64>,
    /// Controls that were run beside it.
    pub controls: Vec<ControlScore>,
    /// Latency percentiles in milliseconds.
    pub latency_ms: LatencySummary,
    /// The same as curves; null when no question was timed.
    #[serde(default)]
    pub latency_curves: Option<LatencyCurves>,
    /// Usage per phase, and its total.
    pub usage: UsageSummary,
    /// The same object as `usage.total`.
    pub total: UsageTotal,
    /// The ten slowest questions, slowest first.
    pub slowest: Vec<SlowQuestion>,
    /// The five lowest scores by the headline metric, lowest first, ties in byte order of the question id.
    pub worst: Vec<WorstQuestion>,
    /// Seconds of work per phase, summed over all workers.
    pub phase_seconds: PhaseSeconds,
    /// What the memory system said of itself.
    pub system_stats: BTreeMap<String, Value>,
    /// Mean of the score that the system gave its best hit; directional only.
    pub top1_score: Option<f64>,
    /// What a reader of the figures should know, one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// sha256 over the sorted (question id, outcome, scores), see [`crate::digest`].
    pub result_digest: String,
}

/// Identity and verdict of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Hash of what can change a score (P13), 64 hexadecimal characters.
    pub fingerprint: String,
    /// State of the run (`finished`, `paused`, `cancelled`, …).
    pub status: String,
    /// Whether the result may be used.
    pub verdict: Verdict,
    /// Why it is invalid, one line each; empty when it is valid.
    pub reasons: Vec<String>,
    /// All rules of the verdict, with those that could not be checked.
    #[serde(default)]
    pub checks: Vec<VerdictCheck>,
    /// Versions of the builds that worked on it, joined by `, `.
    pub code_version: String,
    /// RFC 3339, UTC.
    pub started_at: Option<String>,
    /// RFC 3339, UTC.
    pub finished_at: Option<String>,
    /// Seconds in which the run was being worked on.
    pub wall_seconds: Option<f64>,
    /// Times it was resumed.
    pub resumed_times: u64,
    /// Other runs whose stored replies it used: it is not independent of them (P9).
    #[serde(default)]
    pub calls_of: Vec<String>,
}

/// Whether a run's result may be used as a result and as a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// All rules that could be checked hold.
    Valid,
    /// At least one does not.
    Invalid,
}

impl Verdict {
    /// The verdict's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
        }
    }
}

/// One rule of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCheck {
    /// Short stable name, such as `coverage`.
    pub rule: String,
    /// How it ended.
    pub state: CheckState,
    /// One line: what was seen.
    pub detail: String,
}

/// How a rule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckState {
    /// It holds.
    #[serde(rename = "passed")]
    Passed,
    /// It does not: the run is invalid.
    #[serde(rename = "failed")]
    Failed,
    /// There are no data for it.
    #[serde(rename = "not checked")]
    NotChecked,
}

impl CheckState {
    /// The state's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotChecked => "not checked",
        }
    }
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetSummary {
    /// Registered name.
    pub name: String,
    /// Version in the manifest.
    pub version: String,
    /// sha256 of the file.
    pub sha256: String,
    /// True when it is not the published file.
    #[serde(default)]
    pub modified: bool,
    /// Questions in the whole dataset.
    pub questions: u64,
    /// Banks in the whole dataset.
    pub banks: u64,
    /// Sessions in the whole dataset.
    pub sessions: u64,
    /// The part that was asked.
    pub sample: SampleSummary,
}

/// The sample of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleSummary {
    /// `quick`, `fair`, `full` or `custom`.
    pub preset: String,
    /// How questions were taken.
    pub sampler: String,
    /// Questions in the sample.
    pub n: u64,
    /// sha256 of the question ids joined by newlines.
    pub signature: String,
    /// Banks with at least one question.
    #[serde(default)]
    pub banks: u64,
    /// The sampler's seed.
    #[serde(default)]
    pub seed: Option<String>,
    /// True when every category of the sample is complete.
    #[serde(default)]
    pub census: bool,
    /// True when the sample is stratified by category: the headline is weighted.
    #[serde(default)]
    pub stratified: bool,
    /// What has to be said about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Effective settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecSummary {
    /// Memory system.
    pub system: String,
    /// Its version.
    #[serde(default)]
    pub system_version: String,
    /// Its settings.
    #[serde(default)]
    pub system_settings: BTreeMap<String, Value>,
    /// Answerer as `provider:name`.
    pub answerer: String,
    /// Parameters as sent.
    #[serde(default)]
    pub answerer_params: BTreeMap<String, Value>,
    /// First model judge as `provider:name`; null when only deterministic scorers grade.
    pub judge: Option<String>,
    /// All model judges.
    #[serde(default)]
    pub judges: Vec<String>,
    /// Votes per judge; null without a judge.
    #[serde(default)]
    pub votes: Option<u32>,
    /// Prompts in use, `role.name` → sha256.
    pub prompts: BTreeMap<String, String>,
    /// Deterministic scorers, in order.
    pub scorers: Vec<String>,
    /// Hits asked for.
    pub top_k: u32,
    /// Attempts per task after the first.
    #[serde(default)]
    pub retries: u32,
    /// Questions in flight over all workers.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Requests per minute.
    #[serde(default)]
    pub max_rpm: Option<u64>,
    /// Tokens per minute.
    #[serde(default)]
    pub max_tpm: Option<u64>,
    /// Whose stored replies were used.
    #[serde(default)]
    pub cache: CacheScope,
    /// Worker pool.
    #[serde(default)]
    pub pool: String,
}

/// How the questions of the sample ended: four disjoint classes that sum to `sample`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Have a score.
    pub scored: u64,
    /// Have a score too; the answer is empty or abstains by the dataset's rule.
    pub abstained: u64,
    /// A call, the system or the judge failed, or the bank could not be retained.
    pub infra_error: u64,
    /// The run ended before them.
    pub not_run: u64,
    /// All of them.
    pub sample: u64,
    /// (scored + abstained) / sample; null for an empty sample.
    pub coverage: Option<f64>,
}

/// How a total is made from the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Mean over the questions of the sample.
    Mean,
    /// Category means weighted to the whole dataset, Σ (N_h / N) · mean_h.
    Weighted,
}

impl Estimator {
    /// The estimator's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Weighted => "weighted",
        }
    }
}

/// A 95 % interval, clipped to [0, 1].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How it was made, in words.
    pub method: String,
}

/// The one number of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Its metric: the first judge's, else the first scorer's.
    pub metric: String,
    /// Score over scored and abstained questions.
    pub value: Option<f64>,
    /// How it was made.
    pub estimator: Estimator,
    /// Questions behind it.
    #[serde(default)]
    pub n: u64,
    /// Questions of the whole dataset in the categories of the sample.
    #[serde(default)]
    pub population: Option<u64>,
    /// Banks behind it.
    #[serde(default)]
    pub clusters: u64,
    /// "Conversations like these": what new conversations would say; banks are the clusters.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null, or what to know about it.
    #[serde(default)]
    pub ci95_note: Option<String>,
    /// Questions taken as independent; for comparison with what others print.
    pub naive_ci95: Option<Interval>,
    /// "This benchmark": what the full run would say; null on a full run.
    pub benchmark_ci95: Option<Interval>,
    /// Why `benchmark_ci95` is null.
    #[serde(default)]
    pub benchmark_note: Option<String>,
    /// A wild cluster bootstrap-t interval: a check on `ci95`.
    #[serde(default)]
    pub bootstrap_ci95: Option<Interval>,
    /// Why `bootstrap_ci95` is null.
    #[serde(default)]
    pub bootstrap_note: Option<String>,
    /// The same score with infra_error and not_run as 0.
    pub strict: Option<f64>,
}

/// The headline metric over a part of the categories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartScore {
    /// Its metric.
    pub metric: String,
    /// Score over scored and abstained questions of the part.
    pub value: Option<f64>,
    /// How it was made.
    pub estimator: Estimator,
    /// Questions behind it.
    pub n: u64,
    /// Questions of the whole dataset in the part.
    pub population: Option<u64>,
    /// Banks behind it.
    pub clusters: u64,
    /// "Conversations like these".
    pub ci95: Option<Interval>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
    /// "This benchmark"; null on a full run.
    pub benchmark_ci95: Option<Interval>,
    /// The same with infra_error and not_run as 0.
    pub strict: Option<f64>,
}

/// All totals of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricScore {
    /// Its name.
    pub metric: String,
    /// Mean over the questions of the sample.
    pub micro: Option<f64>,
    /// Mean of the category scores.
    #[serde(rename = "macro")]
    pub macro_: Option<f64>,
    /// Σ (N_h / N) · mean_h over the categories of the sample.
    pub weighted: Option<f64>,
    /// Interval of the run's estimator, by banks.
    pub ci95: Option<Interval>,
    /// Interval of the run's estimator, questions taken as independent.
    pub naive_ci95: Option<Interval>,
    /// Questions with this metric.
    pub n: u64,
    /// Share of them at or above `pass_threshold`.
    pub pass_rate: Option<f64>,
    /// From which score a question counts as passed.
    pub pass_threshold: f64,
    /// Per category, in alphabetical order.
    pub by_category: Vec<CategoryScore>,
}

/// One metric in one category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryScore {
    /// Name of the category.
    pub category: String,
    /// Questions with this metric.
    pub n: u64,
    /// Questions of the whole dataset in this category.
    pub population: Option<u64>,
    /// Mean score.
    pub value: Option<f64>,
    /// Lowest score.
    pub min: Option<f64>,
    /// Highest score.
    pub max: Option<f64>,
    /// Banks behind it.
    pub clusters: u64,
    /// By banks.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null, or a warning about few banks.
    #[serde(default)]
    pub ci95_note: Option<String>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
}

/// Retrieval metrics by level and cut-off k.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalSummary {
    /// Evidence turns, by k.
    pub turn: BTreeMap<u32, RetrievalAtK>,
    /// Evidence sessions, by k.
    pub session: BTreeMap<u32, RetrievalAtK>,
}

/// Means of the retrieval metrics over the questions with ground truth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalAtK {
    /// Some gold id among the first k.
    pub recall_any: Option<f64>,
    /// All gold ids among the first k.
    pub recall_all: Option<f64>,
    /// Share of the gold ids among the first k.
    pub recall: Option<f64>,
    /// Gold ids among the first k, divided by the ids shown (at most k).
    pub precision: Option<f64>,
    /// 1 / rank of the first gold id, 0 beyond k.
    pub mrr: Option<f64>,
    /// Binary gain, discount 1 / log2(rank + 1), ideal min(gold, k) ones.
    pub ndcg: Option<f64>,
    /// Questions with ground truth and a recall.
    pub n: u64,
}

/// Where failed questions (scored, below the pass threshold) lost: in memory or after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureAttribution {
    /// No evidence turn among the hits.
    pub evidence_missing: u64,
    /// Some, but not all evidence turns among the hits.
    pub evidence_partial: u64,
    /// All evidence turns were among the hits: the answer failed.
    pub evidence_found: u64,
    /// The dataset names no evidence, or nothing was recalled.
    pub no_ground_truth: u64,
    /// The evidence was never retained: cut sessions.
    #[serde(default)]
    pub not_retained: u64,
    /// Judges or votes disagree about the answer.
    #[serde(default)]
    pub judge_in_doubt: u64,
}

/// Passed and failed questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassCount {
    /// At or above the pass threshold.
    pub passed: u64,
    /// Below it.
    pub failed: u64,
}

/// What recall found against how the answer fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecallAnswer {
    /// All evidence turns among the hits.
    pub evidence_found: PassCount,
    /// Some of them.
    pub evidence_partial: PassCount,
    /// None of them.
    pub evidence_missing: PassCount,
    /// The dataset names no evidence, or nothing was recalled.
    pub no_ground_truth: PassCount,
}

/// How far graders of the same answers agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Whose grades: `judge (votes)`, or `judge / judge-2`.
    pub between: String,
    /// Grades per answer.
    pub raters: u32,
    /// Answers that all of them graded.
    pub n: u64,
    /// Share of agreeing pairs of grades.
    pub agreement: Option<f64>,
    /// Agreement beyond chance; null when every grade is the same.
    pub kappa: Option<f64>,
    /// `Fleiss` or `Cohen`.
    pub statistic: String,
}

/// Contexts handed to the answerer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSummary {
    /// Questions behind it.
    pub n: u64,
    /// Mean length in bytes of UTF-8.
    pub mean_bytes: f64,
    /// Median.
    pub p50_bytes: f64,
    /// 95th percentile.
    pub p95_bytes: f64,
    /// Mean length in tokens, estimated as a quarter of the bytes.
    pub mean_tokens: f64,
    /// Mean prompt tokens of the answer calls as the provider counts them, prompt included; null without a model.
    pub mean_prompt_tokens: Option<f64>,
}

/// A control run beside the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlScore {
    /// `none`, `random`, `full-context`, `bm25`, `oracle`.
    pub name: String,
    /// Its metric.
    pub metric: String,
    /// Its score by the run's estimator.
    pub value: Option<f64>,
    /// Questions behind it.
    pub n: u64,
}

/// Percentiles in milliseconds, by linear interpolation on the sorted values (index (n − 1) · p / 100).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Values behind it.
    pub n: u64,
}

/// Latency per phase; null where a phase did not happen. Phases that the call store answered are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Retaining one stream entry (session).
    pub retain: Option<Percentiles>,
    /// One recall.
    pub recall: Option<Percentiles>,
    /// One answer.
    pub answer: Option<Percentiles>,
    /// One judgement (slowest vote).
    pub judge: Option<Percentiles>,
    /// Recall, answer and judge together, queue waits excluded, rate-limit waits included.
    pub question: Option<Percentiles>,
    /// From ready to claimed, per question.
    pub queue_wait: Option<Percentiles>,
    /// Waiting for pace, connection slots and retries, per question.
    pub rate_wait: Option<Percentiles>,
    /// Inside calls to systems and models, per question.
    #[serde(default)]
    pub provider: Option<Percentiles>,
    /// The rest: our own time, per question.
    #[serde(default)]
    pub own: Option<Percentiles>,
}

/// Latency in milliseconds at some percentiles, for plots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCurves {
    /// The percentiles, ascending.
    pub percents: Vec<f64>,
    /// Phase (`recall`, `answer`, `judge`, `question`) → milliseconds at each of them; phases that did not happen are left out.
    pub phases: BTreeMap<String, Vec<f64>>,
}

/// Usage per phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSummary {
    /// Writing into the memory system.
    pub retain: UsageFigures,
    /// Making something better of what was written; absent unless the run asked for it (`--mode consolidated`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<UsageFigures>,
    /// Reading from it.
    pub recall: UsageFigures,
    /// Answering.
    pub answer: UsageFigures,
    /// Judging.
    pub judge: UsageFigures,
    /// All of them.
    pub total: UsageTotal,
}

/// What calls consumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageFigures {
    /// Calls answered by the provider and used.
    pub calls: u64,
    /// Calls served from the call store.
    pub cached_calls: u64,
    /// Further attempts.
    pub retries: u64,
    /// Attempts answered with 429.
    pub rate_limited: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// Dollars paid.
    pub usd: f64,
}

/// Total usage and the cap it was held to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotal {
    /// What all phases consumed.
    #[serde(flatten)]
    pub used: UsageFigures,
    /// Hard cap in dollars; null without one.
    pub usd_cap: Option<f64>,
    /// Dollars as if nothing had come from the call store.
    #[serde(default)]
    pub usd_list: f64,
    /// Dollars booked of the run, whatever became of the attempts: what the cap is held against.
    #[serde(default)]
    pub usd_booked: f64,
    /// The part of `usd_booked` of which nobody knows whether it was paid: attempts that were cut, timed out or lost with
    /// their worker, at their worst case.
    #[serde(default)]
    pub usd_uncertain: f64,
    /// The part of `usd_booked` by which attempts passed their own worst case.
    #[serde(default)]
    pub usd_overdraft: f64,
}

/// One of the slowest questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowQuestion {
    /// Its id.
    pub question_id: String,
    /// Its own time (queue waits excluded), in milliseconds.
    pub ms: f64,
    /// Where it went, in milliseconds: phases and waits that happened.
    pub phase_ms: BTreeMap<String, f64>,
    /// 32 hexadecimal characters.
    pub trace_id: String,
    /// Where the trace is to be seen: when it was kept, and the run knows a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
}

/// One of the lowest scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstQuestion {
    /// Its id.
    pub question_id: String,
    /// Score by the headline metric.
    pub score: f64,
    /// The expected answer; null until somebody filled it in.
    pub gold: Option<String>,
    /// The answer.
    pub answer: Option<String>,
}

/// Seconds of work per phase, summed over all workers; null where a phase did not happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSeconds {
    /// Retaining.
    pub retain: Option<f64>,
    /// Consolidating; absent where it did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<f64>,
    /// Proving banks ready.
    #[serde(default)]
    pub ready: Option<f64>,
    /// Recalling.
    pub recall: Option<f64>,
    /// Answering.
    pub answer: Option<f64>,
    /// Judging (slowest vote of each question).
    pub judge: Option<f64>,
}

impl From<&Usage> for UsageFigures {
    fn from(usage: &Usage) -> Self {
        Self {
            calls: usage.calls,
            cached_calls: usage.cached_calls,
            retries: usage.retries,
            rate_limited: usage.rate_limited,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            usd: usage.cost.usd(),
        }
    }
}

impl UsageSummary {
    /// The usage of a run: what retaining and, where it happened, consolidating used, what its questions used, and the run's
    /// cap in dollars.
    #[must_use]
    pub fn new(retain: &Usage, consolidate: Option<&Usage>, questions: &PhaseUsage, usd_cap: Option<f64>) -> Self {
        let mut sum = *retain;
        sum += consolidate.copied().unwrap_or_default();
        sum += questions.recall;
        sum += questions.answer;
        sum += questions.judge;
        Self {
            retain: retain.into(),
            consolidate: consolidate.map(UsageFigures::from),
            recall: (&questions.recall).into(),
            answer: (&questions.answer).into(),
            judge: (&questions.judge).into(),
            total: UsageTotal {
                used: (&sum).into(),
                usd_cap,
                usd_list: sum.cost.saturating_add(sum.saved).usd(),
                usd_booked: sum.cost.usd(),
                usd_uncertain: 0.0,
                usd_overdraft: 0.0,
            },
        }
    }
}

impl From<&RunSpec> for DatasetSummary {
    fn from(spec: &RunSpec) -> Self {
        let (dataset, sample) = (&spec.dataset, &spec.sample);
        Self {
            name: dataset.name.clone(),
            version: dataset.version.clone(),
            sha256: dataset.sha256.clone(),
            modified: dataset.modified,
            questions: dataset.population.values().sum(),
            banks: dataset.banks,
            sessions: dataset.sessions,
            sample: SampleSummary {
                preset: sample.preset.clone(),
                sampler: sample.sampler.clone(),
                n: sample.n,
                signature: sample.signature.clone(),
                banks: sample.banks,
                seed: sample.seed.clone(),
                census: sample.census,
                stratified: sample.stratified,
                notes: sample.notes.clone(),
            },
        }
    }
}

impl From<&RunSpec> for SpecSummary {
    fn from(spec: &RunSpec) -> Self {
        let judge_roles = spec.judge_plan().metrics;
        let roles = std::iter::once(("answerer", &spec.answerer))
            .chain(judge_roles.iter().map(String::as_str).zip(&spec.judges));
        let prompts = roles
            .flat_map(|(role, model)| {
                model.prompts.iter().map(move |(name, sha256)| (format!("{role}.{name}"), sha256.clone()))
            })
            .collect();
        let judges: Vec<String> = spec.judges.iter().map(ModelSpec::display).collect();
        Self {
            system: spec.system.name.clone(),
            system_version: spec.system.version.clone(),
            system_settings: spec.system.settings.clone(),
            answerer: spec.answerer.display(),
            answerer_params: spec.answerer.params.clone(),
            judge: judges.first().cloned(),
            votes: (!judges.is_empty()).then_some(spec.votes),
            judges,
            prompts,
            scorers: spec.scorers.iter().map(|scorer| scorer.name.clone()).collect(),
            top_k: spec.system.top_k,
            retries: spec.limits.retries,
            concurrency: spec.limits.questions_at_once(),
            max_rpm: spec.limits.max_rpm,
            max_tpm: spec.limits.max_tpm,
            cache: spec.limits.cache,
            pool: spec.limits.pool.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
