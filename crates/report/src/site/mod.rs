//! Static pages of the runs of an archive: an index, a leaderboard for each dataset, a page for each pair of systems and one for
//! each run. Pages need no script and no network, and show figures alone: no question, gold answer or answer stands in them, so that
//! they may be handed on where a dataset may not.
//!
//! | file | holds |
//! |---|---|
//! | `names` | where each page lies |
//! | `index` | the page of all datasets |
//! | `board` | the page of a dataset |
//! | `pair` | the page of two runs |
//! | `run` | the page of a run |
//! | `layout` | how all of them are laid out |
//!
//! Which runs stand on a page, and who shares a rank, is decided by the caller.

mod board;
mod index;
mod layout;
pub mod names;
mod pair;
mod run;

use bench_proto::{
    comparison::Word,
    metric::Better,
    summary::{Interval, Verdict},
};
use serde::Serialize;

use crate::published::PublishedRow;

pub use board::dataset;
pub use index::index;
pub use pair::{Beside, pair};
pub use run::run;

/// Name of the document that stands beside the pages, by which a folder is known to be a site.
pub const SITE_SCHEMA: &str = "bench-site";
/// Version of [`Site`] as written.
pub const SITE_SCHEMA_VERSION: u32 = 1;

/// All that stands on the pages, as `site.json` and `site --json` say it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Site {
    /// [`SITE_SCHEMA`].
    pub schema: &'static str,
    /// [`SITE_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The datasets, by name.
    pub datasets: Vec<SiteDataset>,
    /// Why archived runs are on no page, one line each.
    pub left_out: Vec<String>,
}

impl Site {
    /// The pages of some datasets.
    #[must_use]
    pub const fn new(datasets: Vec<SiteDataset>, left_out: Vec<String>) -> Self {
        Self { schema: SITE_SCHEMA, schema_version: SITE_SCHEMA_VERSION, datasets, left_out }
    }
}

/// The page of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteDataset {
    /// Name of the dataset, with its variant.
    pub name: String,
    /// Where its page lies, from the folder of the site.
    pub page: String,
    /// Its runs that were looked at; of those with the same settings the newest VALID one is shown.
    pub archived_runs: u64,
    /// Its tables, that with most ranked results first: results of different tables are not held against each other.
    pub tables: Vec<Board>,
    /// What others have published on it; empty unless it was asked for.
    pub published: Vec<PublishedRow>,
}

impl SiteDataset {
    /// The result that finished last.
    #[must_use]
    pub fn newest(&self) -> Option<&BoardRow> {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.max_by_key(|row| (row.finished_at.as_deref().unwrap_or_default(), row.run.as_str()))
    }
}

/// Results that were asked and graded alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// Preset of the sample.
    pub preset: String,
    /// Questions of the sample.
    pub questions: u64,
    /// Who answered; null where nobody says.
    pub answerer: Option<String>,
    /// The judges; empty where only scorers graded, and where nobody says.
    pub judges: Vec<String>,
    /// The grades came with answers that were made elsewhere: who gave them nobody says.
    pub grades_brought: bool,
    /// The rules of others by which they are counted; null where these are our own.
    pub counted_as: Option<String>,
    /// Hits asked for; null where nobody says.
    pub top_k: Option<u32>,
    /// The metric that the scores are of.
    pub metric: String,
    /// In which direction it is better.
    pub better: Better,
    /// In what its results differ from those of the first table; empty for the first.
    pub differs_in: Vec<String>,
    /// Its results: ranked ones by their score, then controls, then those that are not verified.
    pub rows: Vec<BoardRow>,
    /// All pairs of its results.
    pub pairs: Vec<BoardPair>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoardRow {
    /// Its rank, shared by results that are not told apart; null for those that have none.
    pub rank: Option<usize>,
    /// Public id of the run.
    pub run: String,
    /// Where the run's page lies, from the folder of the site.
    pub page: String,
    /// Folder of the run in the archive.
    pub archived_as: String,
    /// The memory system.
    pub system: String,
    /// Its settings, where another result of the table is of the same system with other ones.
    pub variant: Option<String>,
    /// The version that the memory system tells of itself.
    pub system_version: String,
    /// The score by our own rules, 0 to 1: ranks and pairs go by it, also where the table is counted as others do.
    pub score: Option<f64>,
    /// Its interval: conversations like these.
    pub ci95: Option<Interval>,
    /// The figure by the rules of others, 0 to 1; null where the table is not counted by any.
    pub counted_value: Option<f64>,
    /// Questions behind the score.
    pub questions: u64,
    /// Dollars, as if nothing had been stored before.
    pub usd: f64,
    /// Whether the system spends dollars besides that nobody knows.
    pub usd_incomplete: bool,
    /// Median of the latency probe in milliseconds.
    pub probe_p50_ms: Option<f64>,
    /// Why it is not held against that of the first result.
    pub probe_note: Option<String>,
    /// RFC 3339, UTC: when the run finished.
    pub finished_at: Option<String>,
    /// Whether the run may be used.
    pub verdict: Verdict,
    /// Hash over ids, outcomes and scores of its questions: equal for equal results.
    pub result_digest: String,
    /// Why it has no rank; null for those that have one.
    pub unranked: Option<Unranked>,
    /// Ids of the ranked runs of the table that it is not told apart from.
    pub not_told_apart: Vec<String>,
    /// The runs with the same settings that it stands for; null where it is the only one.
    pub same_settings: Option<SameSettings>,
}

/// Runs with the same settings, of which one is shown. Their figures are those of the archive's index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SameSettings {
    /// VALID runs of the version of the system that is shown, the shown one included.
    pub valid: u64,
    /// The mean of their scores.
    pub mean: Option<f64>,
    /// Student's t interval over their scores: what further runs on this benchmark would give; null where nothing differs.
    pub ci95: Option<Interval>,
    /// The other runs, VALID ones first, the newest of them first.
    pub others: Vec<SameRun>,
    /// Further ones that are not named.
    pub more: u64,
}

/// A run behind the one that is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SameRun {
    /// Public id.
    pub run: String,
    /// Folder of the run in the archive.
    pub archived_as: String,
    /// The version of its memory system.
    pub system_version: String,
    /// The score, 0 to 1.
    pub score: Option<f64>,
    /// `VALID` or `INVALID`.
    pub verdict: String,
    /// RFC 3339, UTC: when it finished.
    pub finished_at: Option<String>,
}

/// Why a result has no rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unranked {
    /// What stands beside it.
    pub mark: Mark,
    /// In words.
    pub why: String,
}

/// What stands beside a result without a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// A control that is told where the evidence is.
    Control,
    /// INVALID, made elsewhere, or the better of several tries.
    Unverified,
}

impl Mark {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Unverified => "unverified",
        }
    }
}

impl BoardRow {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!(" ({variant})")).unwrap_or_default();
        format!("{}{variant}", self.system)
    }
}

/// Two results of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoardPair {
    /// Run of the first, which stands below.
    pub a: String,
    /// Run of the second, which stands above.
    pub b: String,
    /// Where the pair's page lies, from the folder of the site.
    pub page: String,
    /// Second minus first.
    pub difference: Option<f64>,
    /// Its interval.
    pub ci95: Option<Interval>,
    /// Its p value after Holm's correction over all pairs of ranked results of the dataset's page; null beside them.
    pub p_holm: Option<f64>,
    /// What it says in view of all pairs: a difference that the correction takes for chance is inconclusive.
    pub verdict: Word,
    /// Whether both have a rank.
    pub ranked: bool,
    /// Why they cannot be compared; empty when they can.
    pub reasons: Vec<String>,
}

#[cfg(test)]
mod tests;
