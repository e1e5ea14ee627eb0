//! What part of a dataset is asked for.

use std::fmt;

use bench_proto::profile::PresetSizes;
use serde::{Deserialize, Serialize};

/// A named sample; `quick` is contained in `fair`, and all in `full`, so that a grown run keeps every paid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// 50 questions, or as many as the dataset's profile says, that touch as many (bank, category) cells as they can; where
    /// the profile gives `fair` a number, of each stratum its share.
    Quick,
    /// 20 questions per bank, or as many as the dataset's profile says, spread over its categories; or the number that the
    /// profile gives over the whole dataset, of each stratum its share.
    Fair,
    /// As many as [`Self::Fair`] on average, shared out over all (bank, category) cells by their sizes, at least one of each:
    /// no cell counts for more than it has, so that the score is nearer that of every question.
    #[serde(rename = "fair-2")]
    Fair2,
    /// Every question.
    Full,
}

impl Preset {
    /// All presets, smallest first.
    pub const ALL: [Self; 4] = [Self::Quick, Self::Fair, Self::Fair2, Self::Full];

    /// The name in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Fair => "fair",
            Self::Fair2 => "fair-2",
            Self::Full => "full",
        }
    }

    /// The preset of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// In which order questions are taken from a (bank, category) cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// By sha256 of a fixed prefix, the seed and the question's id: independent of the file's order.
    #[default]
    Hash,
    /// In file order, as the astrocyte harness does. LoCoMo's file order follows the conversation, so such a sample
    /// tests mostly the first sessions and is no estimate of the full score; it exists for comparison with that harness.
    Astrocyte,
    /// The shuffle of the jeffs-brain harness: with `sample_total` and the same seed it chooses that harness' questions.
    GoLcg,
    /// The astrocyte harness' rule for LongMemEval: with `sample_total` it chooses that harness' questions, in file order.
    AstrocyteLme,
}

impl Sampler {
    /// All samplers.
    pub const ALL: [Self; 4] = [Self::Hash, Self::Astrocyte, Self::GoLcg, Self::AstrocyteLme];

    /// The name in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Astrocyte => "astrocyte",
            Self::GoLcg => "go-lcg",
            Self::AstrocyteLme => "astrocyte-lme",
        }
    }

    /// Whether it chooses over the whole dataset and knows no cells.
    #[must_use]
    pub const fn is_of_totals(self) -> bool {
        matches!(self, Self::GoLcg | Self::AstrocyteLme)
    }

    /// The sampler of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sampler| sampler.name() == name)
    }
}

/// The part of a dataset that a run asks.
///
/// Applied in this order:
///
/// 1. `categories`, `exclude_categories`, `facets` and `exclude_facets` drop questions.
/// 2. `question_ids` drops all but the named ones.
/// 3. `max_banks` keeps the first banks (file order) that still have a question.
/// 4. The selection: at most one of `preset`, `per_bank`, `sample_per_category`, `sample_total`; quotas count what steps 1 to 3 left.
///    Without any of them it is everything when `question_ids` or `limit` is given, else [`Preset::Fair`].
/// 5. `limit` keeps a head slice: of the file when everything is selected, of the selection's listing otherwise.
///
/// `max_sessions` shortens the banks and drops no question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleRequest {
    /// A named sample. The caller leaves it out when a stronger setting (`--per-bank` on the command line over a
    /// preset in a file) replaces it.
    pub preset: Option<Preset>,
    /// Sizes of the named samples, as the dataset's profile has them.
    #[serde(skip_serializing_if = "PresetSizes::is_default")]
    pub sizes: PresetSizes,
    /// Order inside a cell.
    pub sampler: Sampler,
    /// Seed of [`Sampler::Hash`], and of [`Sampler::GoLcg`], where it is a number (0 when none is given).
    pub seed: Option<String>,
    /// `--limit`: head slice.
    pub limit: Option<u64>,
    /// `--sample`: so many questions per category over the whole dataset.
    pub sample_per_category: Option<u64>,
    /// `--sample-total`: so many questions over the whole dataset, spread over its strata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_total: Option<u64>,
    /// `--per-bank`: as `fair`, with this number in place of the preset's.
    pub per_bank: Option<u64>,
    /// `--max-banks`: the first banks only.
    pub max_banks: Option<u64>,
    /// `--max-sessions`: the first sessions of each bank only, with all their parts; memories and updates count as one each.
    pub max_sessions: Option<u32>,
    /// `--category`: only these; all when empty.
    pub categories: Vec<String>,
    /// `--exclude-category`: not these.
    pub exclude_categories: Vec<String>,
    /// `--facet`: only questions with one of the values that are given of each facet, as `name=value`; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facets: Vec<String>,
    /// `--exclude-facet`: without questions that have any of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_facets: Vec<String>,
    /// `--question-id`: only these; all when empty.
    pub question_ids: Vec<String>,
}
