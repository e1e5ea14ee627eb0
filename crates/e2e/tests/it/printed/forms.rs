//! What the `--json` of small verbs prints, as types: the schemas in `docs/schemas/cli` are made of them.

use std::collections::BTreeMap;

use bench_proto::stop::Look;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `doctor --json`: what was looked at.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Doctor(Vec<Check>);

/// Something that was looked at.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// What: `store`, `queue`, `dataset locomo`.
    check: String,
    /// How it is.
    status: CheckStatus,
    /// In words.
    detail: String,
}

/// How something is.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CheckStatus {
    /// Well.
    Ok,
    /// It does not work: the exit code is 4.
    Failed,
    /// It works, and somebody should look.
    Warning,
    /// Nobody has set it up.
    Unused,
}

/// `config show --json`: effective settings.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Config(Vec<Setting>);

/// A setting with its value and where that comes from.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Dotted name.
    name: String,
    /// Value for people; `not set` when there is none. Secrets and passwords are hidden.
    value: String,
    /// Where it comes from; empty when there is no value.
    origin: String,
}

/// `gc --json`: what was removed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Gc {
    /// Banks that no run needs, removed from memory systems.
    banks_removed: u64,
    /// Items of datasets that no run refers to.
    items_dropped: u64,
    /// Runs whose banks could not be removed: the exit code is 4.
    failed: u64,
}

/// `banks remove RUN --json`: what was removed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BanksRemoved {
    /// Banks that the runs had filled, removed from memory systems.
    banks_removed: u64,
    /// Runs whose banks could not be removed: the exit code is 4.
    failed: u64,
}

/// `datasets show NAME --json`: a dataset as it is on this machine.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Dataset {
    /// What is known before it is read.
    manifest: Manifest,
    /// The files that would be read; none while one of them is missing, and for generated data.
    files: Vec<String>,
    /// What was read; null where there is no file yet.
    content: Option<Content>,
}

/// What is known of a dataset before it is read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// `locomo`, and with a variant `longmemeval@s`.
    name: String,
    /// One line.
    description: String,
    /// Version of the data.
    version: String,
    /// An SPDX id where there is one.
    licence: String,
    /// URL of its file or folder, or `generated`.
    source: String,
    /// Its published files.
    files: Vec<SourceFile>,
    /// Questions of each category, as published.
    categories: Vec<(String, u64)>,
    /// Banks; 0 where they were not counted.
    banks: u64,
    /// Sessions, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// Turns, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    /// Phrases that make an answer an abstention.
    abstention_phrases: Vec<String>,
    /// Deterministic scorers, the headline's first.
    scorers: Vec<String>,
    /// Raised whenever the loader makes other banks or questions of the same files.
    loader_version: u32,
    /// Section of its own settings; empty when it has none.
    section: String,
}

/// A published file, or a folder of files (`/` at the end of its path).
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourceFile {
    /// Path below the dataset's folder.
    path: String,
    /// sha256 of its published versions, the newest first.
    sha256s: Vec<String>,
    /// Size in bytes; 0 where it is not known.
    bytes: u64,
    /// Where it is downloaded from, when that is not below `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// What a dataset holds.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Content {
    /// sha256 of the file, or of the generator with its settings.
    sha256: String,
    /// It is not the published file.
    modified: bool,
    /// No checksum of the published file is known.
    checksum_unknown: bool,
    /// Effective settings of the dataset.
    settings: BTreeMap<String, Value>,
    /// Number of banks.
    banks: u64,
    /// Sessions, or other stream entries.
    entries: u64,
    /// Number of turns.
    turns: u64,
    /// Questions of each category.
    categories: BTreeMap<String, u64>,
    /// What did not resolve while reading.
    notes: Vec<String>,
}

/// `archive push --json`: what is in the archive now.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Archived {
    /// Folder or URL of the archive.
    archive: String,
    /// Folders of runs in it, and documents of matrices.
    archived: Vec<String>,
    /// Runs that were meant and are not there, as they have not ended.
    not_ended: Vec<String>,
}

/// `archive fetch RUN --json`: a run that was copied from an archive.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetched {
    /// Id of the run.
    id: String,
    /// Where its files lie.
    folder: String,
    /// Their names below that folder; `../RUN/…` of the runs of a matrix that lie beside its report.
    files: Vec<String>,
    /// It was written into the store too.
    restored: bool,
    /// Why the texts of its questions, memories and answers are not among them; null where they are.
    without_texts: Option<String>,
}

/// `score --counting --json`: ways in which others count.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Countings(Vec<Counting>);

/// A way of counting.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Counting {
    /// Its name in `--count-as`.
    name: String,
    /// The dataset whose figures are counted so.
    dataset: String,
    /// Whose it is and what sets it apart.
    about: String,
    /// The judge, as `provider:model`; absent where any may be named, or none judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge: Option<String>,
    /// Judgements of an answer.
    votes: u32,
}

/// `models list --json`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Models {
    /// Models with a known price, by name.
    models: Vec<Model>,
}

/// A model with a known price.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Model {
    /// Name, without its provider.
    model: String,
    /// `chat` or `embedding`.
    kind: String,
    /// Tokens of its context; null where that is not known.
    context: Option<u64>,
    /// Most tokens of a reply; null where that is not known.
    max_output: Option<u64>,
    /// What its list of prices says that it can do, in the list's own words: `vision`, `function_calling`.
    supports: Vec<String>,
    /// How its tokens are counted: `o200k_base`, `cl100k_base` or `estimated`.
    encoding: String,
    /// It thinks before it answers, and takes no temperature.
    reasoning: bool,
    /// The parameter that bounds its output.
    max_tokens_name: String,
    /// Its price.
    usd_per_million: Rates,
    /// Its price for long prompts; null where it has none.
    long: Option<LongRates>,
    /// Its price by tier of service.
    services: BTreeMap<String, Rates>,
    /// What a batch costs, in percent of the price; null where there are none.
    batch_percent: Option<u32>,
    /// Day of the price.
    priced: String,
    /// `built in` or `price file`.
    from: String,
    /// Whose price it is; null where its list does not say.
    provider: Option<String>,
    /// Where the price was read; null where its list does not say.
    source: Option<Source>,
}

/// Where prices of a provider were read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Source {
    /// Day on which they were looked up there.
    checked: String,
    /// The provider's own pages, or the table that was read.
    pages: Vec<String>,
}

/// Dollars for a million tokens, as decimal texts.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rates {
    /// Of the prompt.
    input: String,
    /// Of the prompt, read from a cache.
    cached_input: String,
    /// Written into a cache.
    cache_write: String,
    /// Written into a cache for an hour.
    cache_write_1h: String,
    /// Of the reply.
    output: String,
}

/// What long prompts cost.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LongRates {
    /// Prompts with more tokens are long.
    above: u64,
    /// Their price.
    usd_per_million: Rates,
}

/// `list --json`: runs, newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Runs(Vec<Run>);

/// A run of the list.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Run {
    /// Public id of the run.
    id: String,
    /// The group of repeats, or the matrix, that it is one of; null for any other run.
    repeat_of: Option<String>,
    /// The name that it was given.
    name: Option<String>,
    /// Tags that it was given.
    tags: Vec<String>,
    /// Who started it.
    user: String,
    /// A word: `running`, `paused`, `finished`, `cancelled`, …
    status: String,
    /// When it was made, in milliseconds since 1970.
    created_ms: i64,
    /// Name of the dataset.
    dataset: String,
    /// Name of the sample.
    preset: String,
    /// Questions of the sample.
    questions: u64,
    /// Name of the memory system.
    system: String,
    /// Who answers.
    answerer: String,
    /// Who judges.
    judges: Vec<String>,
    /// Questions that have ended.
    ended: u64,
    /// The figure of its report, or what has ended so far comes to; null before.
    score: Option<f64>,
    /// How it is made of the questions.
    estimator: Option<String>,
    /// What it counts.
    metric: Option<String>,
    /// Its 95 % interval.
    ci95: Option<Interval>,
    /// The rules of others by which it is counted.
    counted_as: Option<String>,
    /// `VALID` or `INVALID`; null before it has ended.
    verdict: Option<String>,
    /// Dollars that were surely paid.
    usd: f64,
    /// Whether its memory system may have spent more, of which nobody knows.
    usd_incomplete: bool,
    /// What it was forked, imported or restored from.
    source: Option<String>,
    /// What is marked beside its result.
    labels: Vec<String>,
}

/// A 95 % interval.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interval {
    /// Lower bound.
    low: f64,
    /// Upper bound.
    high: f64,
    /// How it was made.
    method: String,
}

/// `status RUN --json`; of a group a list of these, one for each of its runs; without RUN one for each open run.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    /// Public id of the run.
    id: String,
    /// The name that it was given.
    name: Option<String>,
    /// A word: `running`, `paused`, `finished`, `cancelled`, …
    status: String,
    /// Why it is in that state.
    reason: Option<String>,
    /// Why nothing moves, in one line.
    why: Option<String>,
    /// Its plan is whole.
    planned: bool,
    /// How often it was resumed.
    resumed_times: u64,
    /// How far it is.
    progress: Progress,
    /// The runs that one command started, under one cap.
    group: Group,
    /// What is used of a cap on calls or tokens, by all runs of its command; null for other caps.
    usage: Option<Usage>,
    /// Open tasks, by what they do.
    tasks: BTreeMap<String, Tasks>,
    /// When it may end before its last question, and what its looks have found; null for other runs.
    stop: Option<Stop>,
    /// The cluster; null on one machine.
    cluster: Option<Cluster>,
    /// Servers that are away.
    outages: Vec<Outage>,
    /// Seconds to the next look at one of them.
    next_probe: Option<f64>,
    /// What was lost and brought back when the store went back in time.
    went_back: Vec<String>,
    /// Banks that could not be filled.
    failed_banks: Vec<FailedBank>,
    /// Calls of its memory system that the meter has refused, by reason.
    refused_calls: Vec<RefusedCalls>,
}

/// The rule of a run that may stop early.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stop {
    /// As a person writes it, such as `ci<=3pt`.
    rule: String,
    /// Questions asked at each look, cumulative.
    planned: Vec<u64>,
    /// The looks that were made.
    looks: Vec<Look>,
    /// It goes on to its last question whatever they say.
    to_the_end: bool,
}

/// What is used of a cap on calls or tokens.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Usage {
    /// What is counted: `calls` or `tokens`.
    unit: String,
    /// Most of it.
    cap: i64,
    /// Booked, uncertain attempts at their worst case.
    used: i64,
    /// Held by calls in flight.
    reserved: i64,
}

/// Calls that the meter has refused for one reason.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RefusedCalls {
    /// The `code` of the answer.
    code: String,
    /// Why, and what to do about it.
    why: String,
    /// So many, of all processes.
    calls: u64,
    /// There may have been more; absent where not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
}

/// How far a run is.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// Public id of the run.
    run: String,
    /// A word.
    state: String,
    /// Questions of the sample.
    questions: u64,
    /// Questions that ended: `scored` + `abstained` + `infra_error`.
    ended: u64,
    /// Questions that are answered; they may wait for a judge.
    answered: u64,
    /// A model judges.
    judged: bool,
    /// Questions with a score.
    scored: u64,
    /// Questions that were not answered by choice.
    abstained: u64,
    /// Questions that were lost.
    infra_error: u64,
    /// Banks of the sample.
    banks: u64,
    /// Banks that can be asked.
    banks_ready: u64,
    /// Sessions that are stored.
    entries_retained: u64,
    /// Sessions to store.
    entries_planned: u64,
    /// The score so far.
    score: Option<f64>,
    /// Whether it is that of the report; before there is one it is the plain mean.
    score_is_of_report: bool,
    /// Dollars, uncertain attempts at their worst case.
    usd: f64,
    /// The part of them that is uncertain.
    usd_uncertain: f64,
    /// What may be spent at most, in dollars; null where nothing is paid.
    usd_cap: Option<f64>,
    /// Questions a second.
    per_second: f64,
    /// Seconds to go.
    eta_seconds: Option<f64>,
    /// Seconds of running time.
    elapsed_seconds: f64,
    /// Workers that are alive, and those of them that hold tasks.
    workers: Option<(u64, u64)>,
    /// The latency probe, once every question has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_probe: Option<Probe>,
    /// Servers that are away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outages: Vec<Outage>,
    /// Calls of its memory system that the meter has refused, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused_calls: Vec<RefusedCalls>,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits: Option<Waiting>,
}

/// Tasks that all wait for another try.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Waiting {
    /// Number of tasks.
    tasks: i64,
    /// Seconds until the first of them is tried again.
    next_try_seconds: f64,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// How far a latency probe is.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Probe {
    /// Recalls that are stored.
    made: u64,
    /// Recalls to make.
    of: u64,
}

/// The runs that one command started.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Group {
    /// Id of the run that the others belong to.
    id: String,
    /// Their cap in dollars.
    cap_usd: Option<f64>,
    /// Dollars booked of all of them.
    booked_usd: f64,
    /// How many they are.
    runs: u64,
    /// Ids of those that have not ended.
    not_ended: Vec<String>,
}

/// Open tasks of a kind.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tasks {
    /// Somebody works on them.
    leased: u64,
    /// They lie in a queue.
    queued: u64,
    /// They could be queued.
    ready: u64,
    /// They wait for a time.
    delayed: u64,
}

/// A server that is away.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outage {
    /// What: `gpt-4o-mini (account openai)`.
    key: String,
    /// Since when, RFC 3339.
    since: String,
    /// Seconds since then.
    seconds: f64,
    /// What the last look met.
    reason: String,
    /// Seconds to the next one.
    next_probe_seconds: f64,
    /// Tasks that were put off.
    held: i64,
}

/// A bank that could not be filled.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FailedBank {
    /// The dataset's id of the bank.
    bank: String,
    /// What kept it from being filled.
    reason: String,
}

/// Who coordinates and works, and what waits at the broker.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cluster {
    /// The coordinator that leads; null before the first.
    coordinator: Option<Coordinator>,
    /// All that have said so.
    workers: Vec<Worker>,
    /// Queues of every pool and role.
    queues: Vec<Queue>,
    /// Messages that nobody could read; null while the broker is away.
    dead_letters: Option<u64>,
    /// Why the broker cannot be asked.
    broker_problem: Option<String>,
    /// What the coordinator says is wrong.
    trouble: Option<String>,
}

/// The coordinator that leads.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Coordinator {
    /// What it calls itself.
    name: String,
    /// It has been heard of lately.
    alive: bool,
    /// Seconds since it was.
    silent_seconds: f64,
    /// How often the lead has changed.
    epoch: u64,
}

/// A process that works on tasks, as it says of itself.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Worker {
    /// What it calls itself.
    name: String,
    /// It has been heard of lately.
    alive: bool,
    /// It holds tasks.
    busy: bool,
    /// Number of tasks that it holds.
    tasks: u64,
    /// Seconds since it was heard of.
    silent_seconds: f64,
    /// Pool whose tasks it takes.
    pool: String,
    /// Places for tasks, by what they do.
    slots: BTreeMap<String, u64>,
    /// What it alone does not get through to.
    withdrawn: Vec<Withdrawn>,
    /// Its machine.
    host: String,
    /// Its process.
    pid: u64,
    /// The build that it runs: a version and a commit.
    code_version: String,
}

/// What a worker does not get through to.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Withdrawn {
    /// The route: a model of an account, or an operation of a memory server.
    key: String,
    /// The failure that it met there.
    reason: String,
    /// Since when, RFC 3339.
    since: String,
}

/// Tasks of one pool and role at the broker.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Queue {
    /// Its name at the broker.
    queue: String,
    /// Pool whose workers take from it.
    pool: String,
    /// What its tasks do.
    role: String,
    /// Messages that wait; null where it is not declared.
    depth: Option<u64>,
    /// Who listens.
    consumers: Option<u64>,
}

/// `report RUN --published --json`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Name of the dataset.
    dataset: String,
    /// The run and what was published, each part of the dataset by itself, the best first.
    results: Vec<PublishedResult>,
}

/// A score on the same part of the dataset: the run's, or one that somebody has published.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedResult {
    /// It is the run's own.
    is_this_run: bool,
    /// The memory system.
    system: String,
    /// The part of the dataset that it is about; null: all of it, as far as it is counted.
    part: Option<String>,
    /// 0 to 1.
    score: f64,
    /// The metric that the run's score is of; null for all others.
    metric: Option<String>,
    /// By whose counting the run's score is, where that is not ours; null for all others.
    counted_as: Option<String>,
    /// Of the run: conversations like these; null for all others.
    ci95: Option<PublishedInterval>,
    /// Questions behind the score; null where nobody says.
    questions: Option<u64>,
    /// Who answered; null where nobody says.
    answerer: Option<String>,
    /// Who judged; null where nobody says, and where no model did.
    judge: Option<String>,
    /// Hits asked for; null where nobody says, and where nothing is recalled.
    k: Option<u32>,
    /// Runs that the score is the mean of; null where nobody says.
    runs: Option<u32>,
    /// Judgements of an answer; null where nobody says, and where no model judged.
    votes: Option<u32>,
    /// What the judge goes by; null where nobody says, and where no model judged.
    rubric: Option<String>,
    /// What else has to be known to read the score; null where nobody says.
    note: Option<String>,
    /// Where it was published; of the run its id.
    source: String,
    /// In what it is known to differ from the run, and what is not known of it.
    differs_in: Vec<String>,
}

/// An interval of 95 %.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedInterval {
    /// Its lower end.
    low: f64,
    /// Its upper end.
    high: f64,
    /// How it was made.
    method: String,
}
