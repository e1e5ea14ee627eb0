//! What `site --json` prints and `site.json` holds, and what `banks` prints, as types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forms::{PublishedInterval, PublishedResult};

/// `site DIR --json`: what stands on the pages. Pages are named from the folder of the site.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Site {
    /// `bench-site`.
    schema: String,
    /// Version of this document.
    schema_version: u32,
    /// The datasets, by name.
    datasets: Vec<SiteDataset>,
    /// Why archived runs are on no page, one line each.
    left_out: Vec<String>,
}

/// A dataset that has a page: its tables, and what they leave out.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SiteDataset {
    /// Name of the dataset, with its variant.
    name: String,
    /// Where its page lies, from the folder of the site.
    page: String,
    /// Its runs that were looked at.
    archived_runs: u64,
    /// Results that were asked and graded alike, the table with most ranked ones first.
    tables: Vec<Table>,
    /// What others have published; empty without `--published`.
    published: Vec<PublishedResult>,
}

/// Results that may be held against each other.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Preset of the sample.
    preset: String,
    /// Questions of the sample.
    questions: u64,
    /// Who answered; null where nobody says.
    answerer: Option<String>,
    /// The judges; empty where only scorers graded, and where nobody says.
    judges: Vec<String>,
    /// The grades came with answers that were made elsewhere: who gave them nobody says.
    grades_brought: bool,
    /// The rules of others by which they are counted; null where these are our own.
    counted_as: Option<String>,
    /// Hits asked for; null where nobody says.
    top_k: Option<u32>,
    /// The metric that the scores are of.
    metric: String,
    /// In which direction it is better: `higher` or `lower`.
    better: String,
    /// In what they differ from the results of the first table; empty for the first.
    differs_in: Vec<String>,
    /// Ranked results by their score, then controls, then those that are not verified.
    rows: Vec<Row>,
    /// All pairs.
    pairs: Vec<Pair>,
}

/// A result.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Its rank, shared by results that are not told apart; null for those that have none.
    rank: Option<u64>,
    /// Public id of the run.
    run: String,
    /// The run's page.
    page: String,
    /// Folder of the run in the archive.
    archived_as: String,
    /// The memory system.
    system: String,
    /// Its settings, where another result of the table is of the same system with other ones.
    variant: Option<String>,
    /// The version that the memory system tells of itself.
    system_version: String,
    /// The score by our own rules, 0 to 1: ranks and pairs go by it.
    score: Option<f64>,
    /// Its interval: conversations like these.
    ci95: Option<PublishedInterval>,
    /// The figure by the rules of others, 0 to 1; null where the table is not counted by any.
    counted_value: Option<f64>,
    /// Questions behind the score.
    questions: u64,
    /// Dollars, as if nothing had been stored before.
    usd: f64,
    /// The system spends dollars besides that nobody knows.
    usd_incomplete: bool,
    /// Median of the latency probe in milliseconds.
    probe_p50_ms: Option<f64>,
    /// Why it is not held against that of the first result.
    probe_note: Option<String>,
    /// RFC 3339, UTC: when the run finished.
    finished_at: Option<String>,
    /// `VALID` or `INVALID`.
    verdict: String,
    /// Hash over ids, outcomes and scores of its questions: equal for equal results.
    result_digest: String,
    /// Why it has no rank; null for those that have one.
    unranked: Option<Unranked>,
    /// Ids of the ranked runs of the table that it is not told apart from.
    not_told_apart: Vec<String>,
    /// The runs with the same settings that it stands for; null where it is the only one.
    same_settings: Option<SameSettings>,
}

/// Runs with the same settings, of which one is shown. Their figures are those of the archive's index.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SameSettings {
    /// VALID runs of the version of the system that is shown, the shown one included.
    valid: u64,
    /// The mean of their scores.
    mean: Option<f64>,
    /// Student's t interval over their scores: what further runs on this benchmark would give; null where nothing differs.
    ci95: Option<PublishedInterval>,
    /// The other runs, VALID ones first, the newest of them first.
    others: Vec<SameRun>,
    /// Further ones that are not named.
    more: u64,
}

/// A run behind the one that is shown.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SameRun {
    /// Public id.
    run: String,
    /// Folder of the run in the archive.
    archived_as: String,
    /// The version of its memory system.
    system_version: String,
    /// The score, 0 to 1.
    score: Option<f64>,
    /// `VALID` or `INVALID`.
    verdict: String,
    /// RFC 3339, UTC: when it finished.
    finished_at: Option<String>,
}

/// Why a result has no rank.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unranked {
    /// `control` (it is told where the evidence is) or `unverified`.
    mark: String,
    /// In words.
    why: String,
}

/// Two results of a table.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// Run of the first, which stands below.
    a: String,
    /// Run of the second, which stands above.
    b: String,
    /// The pair's page.
    page: String,
    /// Second minus first.
    difference: Option<f64>,
    /// Its interval.
    ci95: Option<PublishedInterval>,
    /// After Holm's correction over all pairs of ranked results of the dataset; null beside them.
    p_holm: Option<f64>,
    /// `BETTER`, `WORSE`, `NO CHANGE` or `INCONCLUSIVE`, in view of all pairs.
    verdict: String,
    /// Both have a rank.
    ranked: bool,
    /// Why they cannot be compared; empty when they can.
    reasons: Vec<String>,
}

/// `banks list --json`: runs that have stored something in a memory service, newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct BanksOfRuns(Vec<BanksOfRun>);

/// What a run has there.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BanksOfRun {
    /// Public id of the run.
    run: String,
    /// The memory system.
    system: String,
    /// Name of the dataset whose banks they are.
    dataset: String,
    /// Banks of the run so far.
    banks: u64,
    /// Of them, those that it has filled to their ends itself.
    filled: u64,
    /// Runs whose banks it asks, and `imported NAME` for those of an archive.
    asks: Vec<String>,
    /// A run that asks its banks and has not ended; null without one.
    in_use_by: Option<String>,
    /// `kept` (another run may ask them), `removed`, `of this run alone`, or `there before` (`--bank`).
    state: String,
}

/// `banks show RUN --json`: the banks of a run.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Banks(Vec<Bank>);

/// A bank of the run, filled or not.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Bank {
    /// The dataset's id.
    bank_id: String,
    /// Its name in the memory system.
    name: String,
    /// The memory system's handle of it; null before it was opened.
    handle: Option<String>,
    /// `building`, `ready`, `failed` or `removed`.
    state: String,
    /// Sessions and memories that it holds.
    retained: u64,
    /// Of so many.
    of: u64,
    /// It was filled before the run began.
    filled_before: bool,
    /// The run that filled it, `imported NAME` for one of an archive; null where nobody knows.
    filled_by: Option<String>,
}

/// `banks import FILE --json` and `banks fetch URL --json`: an archive of filled banks that lies on this machine.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BanksImported {
    /// Its name, for `--banks-from`.
    name: String,
    /// sha256 of its manifest, which has those of its files.
    sha256: String,
    /// The memory system that filled it, with its version.
    system: String,
    /// Name of the dataset whose banks it holds.
    dataset: String,
    /// The run that filled it; null where no run of this program did.
    run: Option<String>,
    /// Banks that it says it holds; 0 where it does not say.
    banks: u64,
    /// Turns or memories that were stored in them; null where nobody says.
    turns: Option<u64>,
    /// Under what terms it may be handed on; null where nobody says.
    licence: Option<String>,
    /// Files of the memory system.
    files: u64,
    /// Size of these files, in bytes.
    bytes: u64,
}

/// `banks list --imported --json`: the archives that lie on this machine, by name.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct ImportedBanks(Vec<BanksImported>);

/// `banks export RUN --json`: what was written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BanksExported {
    /// The new file.
    file: String,
    /// What it holds; named by its run.
    archive: BanksImported,
}
