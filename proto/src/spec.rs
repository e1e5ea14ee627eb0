//! The run spec: effective settings of a run, and the fingerprint of what can change a score (P13).
//!
//! Start reading at [`RunSpec`]. It is written once, when a run is planned, and stored with it: workers and reports read
//! nothing else of what was asked for. Which parts of it change a score is in `spec/fingerprint.rs`, how the figures of its runs are
//! read in `spec/reading.rs`.

mod fingerprint;
mod limits;
mod reading;
mod stopped;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    fingerprint::Difference,
    limits::{BanksAfter, Limits, TracePolicy},
};
use crate::{
    audit::PlantedSpec,
    call::{Phase, is_default},
    canary::CanarySpec,
    counting::CountingSpec,
    dataset::FilterParts,
    label_fixes::LabelFixesSpec,
    metric::MetricSpec,
    outage::{RouteKey, RouteKind},
    panel::JudgedSample,
    profile::Profile,
    scenario::{RecallPlan, Scenario},
    stop::StopRule,
    strata::Stratum,
};

/// Version of [`RunSpec`] as stored.
pub const SPEC_VERSION: u32 = 1;

/// Version of a memory system of which nothing but results is known: it cannot be asked.
pub const IMPORTED_SYSTEM: &str = "imported";

/// Everything that defines a run. Stored with it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// [`SPEC_VERSION`] of the writer.
    pub spec_version: u32,
    /// What is asked.
    pub dataset: DatasetSpec,
    /// Which part of the dataset is asked.
    pub sample: SampleSpec,
    /// Who remembers.
    pub system: SystemSpec,
    /// What is done for a question.
    #[serde(default, skip_serializing_if = "Scenario::is_default")]
    pub scenario: Scenario,
    /// How often is recalled for a question.
    #[serde(default, skip_serializing_if = "RecallPlan::is_once")]
    pub recalls: RecallPlan,
    /// Who answers; `none` where the scenario has no answers.
    pub answerer: ModelSpec,
    /// Who judges; empty when only deterministic scorers do.
    pub judges: Vec<ModelSpec>,
    /// Votes per judge.
    pub votes: u32,
    /// What the rubrics of its judges ask for beside a binary verdict.
    #[serde(default, skip_serializing_if = "is_default")]
    pub judging: JudgingSpec,
    /// Deterministic scorers, in the order of the report; the first is the headline without a judge.
    pub scorers: Vec<ScorerSpec>,
    /// Somebody else's counting that it is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting: Option<CountingSpec>,
    /// The metric that heads the report instead of the judge's or the first scorer's (imported grades).
    #[serde(default)]
    pub headline: Option<String>,
    /// What does not change a score and may differ on resume.
    pub limits: Limits,
    /// Facts of its own that it stores beside the dataset (P45); absent in runs whose memory system is not tried by
    /// any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canaries: Option<CanarySpec>,
    /// When it may end before its last question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
    /// Behind the last question of each bank it is asked what it holds. Not part of the fingerprint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lists: bool,
    /// What it has of others, and does not do itself. Of it, how often was answered again and whose bank is asked are part of the
    /// fingerprint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taken_over: TakenOver,
}

/// Whose banks, recalls and answers a run has, where they are not its own: ids of the runs that made them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TakenOver {
    /// The run that recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalls_of: Option<String>,
    /// The run that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers_of: Option<String>,
    /// How often questions that had not passed were answered again, those that had passed keeping their answers. Each time is a
    /// draw of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub answered_again: u32,
    /// The runs whose filled banks this one asks, where they hold the same; it fills the others itself (P33).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub banks_of: Vec<String>,
    /// Name of a bank that was there before, and that it asks without storing anything: what it holds is not known. `{bank_id}` in it
    /// is the dataset's id of each bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<String>,
    /// The archive whose filled banks it asks, where they hold the same; it fills the others itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<AskedArchive>,
}

/// An archive of filled banks that a run asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedArchive {
    /// Its name on the machine where the run was submitted.
    pub name: String,
    /// sha256 of its manifest, which has those of its files.
    pub sha256: String,
    /// The memory system that filled it, with its version, where that is another one than is asked: then it is a part of what is
    /// measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filled_by: Option<String>,
}

impl TakenOver {
    /// Whether banks are asked that the run does not fill.
    #[must_use]
    pub fn asks_filled_banks(&self) -> bool {
        !self.banks_of.is_empty() || self.bank.is_some() || self.archive.is_some()
    }

    /// Whose answers and recalls a run of this id and lineage may have: its own, those of its lineage, and those that it took over. Runs
    /// of which both have one of these share what was paid once. No one of them says all: what came from an archive may have a lineage
    /// of its own.
    #[must_use]
    pub fn with_sources<'r>(&'r self, id: &'r str, lineage: &'r str) -> Vec<&'r str> {
        let taken = [&self.answers_of, &self.recalls_of].into_iter().flatten().map(String::as_str);
        [id, lineage].into_iter().chain(taken).collect()
    }

    /// What a fork from `phase` of a run has: its recalls where answers are made anew, its answers too where they are judged.
    #[must_use]
    pub fn of_fork(phase: Phase, run: &str, of_run: &Self) -> Self {
        let made_by = |earlier: &Option<String>| Some(earlier.clone().unwrap_or_else(|| run.to_owned()));
        Self {
            recalls_of: (phase > Phase::Recall).then(|| made_by(&of_run.recalls_of)).flatten(),
            answers_of: (phase > Phase::Answer).then(|| made_by(&of_run.answers_of)).flatten(),
            answered_again: if phase > Phase::Answer { of_run.answered_again } else { 0 },
            bank: of_run.bank.clone(),
            archive: of_run.archive.clone(),
            ..Self::default()
        }
    }
}

/// The dataset of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetSpec {
    /// Registered name.
    pub name: String,
    /// Version in the manifest.
    pub version: String,
    /// sha256 of the file, or of the generator's settings for generated data.
    pub sha256: String,
    /// True when the file is not the published one (`--allow-modified-dataset`).
    #[serde(default)]
    pub modified: bool,
    /// True when no checksum of what was published is known, so that nobody can tell whether this is it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checksum_unknown: bool,
    /// What of it did not resolve, and what it says of itself, for the report; a bounded part. Not part of the fingerprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Version of the loader.
    pub loader: u32,
    /// Settings of a generator (`sim.seed`, …).
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Phrases that make an answer an abstention (lower case).
    pub abstention_phrases: Vec<String>,
    /// Names of its own deterministic scorers, those included that the run's scenario has no use for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scorers: Vec<String>,
    /// Questions in the whole dataset, per category: the N_h of the statistics.
    pub population: BTreeMap<String, u64>,
    /// Banks in the whole dataset.
    pub banks: u64,
    /// Sessions in the whole dataset.
    pub sessions: u64,
    /// How its questions are put, graded and counted; runs that store none have [`Profile::implied`].
    #[serde(default = "Profile::implied", skip_serializing_if = "Profile::is_implied")]
    pub profile: Profile,
    /// Known mistakes of its answer key, which stand beside the scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_fixes: Option<LabelFixesSpec>,
    /// Its questions stand here once for each planted answer: a judge audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedSpec>,
    /// `--dataset-path`: where a resumed run looks for the file again; not part of the fingerprint.
    #[serde(default)]
    pub path: Option<std::path::PathBuf>,
}

/// The sample of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSpec {
    /// `quick`, `fair`, `full`, or `custom` when filters or counts were given.
    pub preset: String,
    /// Sampler name (`hash`, `astrocyte`, `head`).
    pub sampler: String,
    /// Version of the sampler's code.
    pub sampler_version: u32,
    /// The sampler's seed, none by default.
    #[serde(default)]
    pub seed: Option<String>,
    /// Number of questions.
    pub n: u64,
    /// Number of banks with at least one question.
    pub banks: u64,
    /// Questions per category: the n_h of the statistics.
    pub by_category: BTreeMap<String, u64>,
    /// sha256 of the question ids in the sample's order joined by newlines.
    pub signature: String,
    /// True when every category of the sample is complete (no sampling inside a category).
    pub census: bool,
    /// True when quotas per (bank, category) cell, or of each stratum its share, make it a stratified sample: its headline is
    /// the weighted score.
    pub stratified: bool,
    /// The strata, where they are not the categories of the whole dataset: facets divide these, or filters by facet leave a
    /// part of them. Those of a category next to each other, also where the sample has no question of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<Stratum>,
    /// Sessions kept per bank (`--max-sessions`), all when absent.
    #[serde(default)]
    pub max_sessions: Option<u32>,
    /// Hits that its questions ask for on their own, where any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_k: Option<OwnK>,
    /// Parts of its questions' filters that the system was asked without (`--allow-unfiltered`): what comes back is not that of
    /// a run that was asked with them. Follows from the sample and the system, and is no part of the fingerprint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unfiltered: FilterParts,
    /// What the report must say about the sample ("head slice: not an estimate of the full score").
    #[serde(default)]
    pub notes: Vec<String>,
    /// The sampler's own request, so that a run that was stopped while its plan was being written takes the same sample
    /// again. Opaque here; not part of the fingerprint (the signature is).
    #[serde(default)]
    pub request: Value,
}

/// Hits that questions ask for on their own, in place of the run's top-k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnK {
    /// The fewest.
    pub smallest: u32,
    /// The most.
    pub largest: u32,
    /// Whether every question of the sample has a number of its own.
    pub all: bool,
}

/// The memory system of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemSpec {
    /// Registered name.
    pub name: String,
    /// Version of a built-in system, or the version that a server reported.
    pub version: String,
    /// Hits asked for.
    pub top_k: u32,
    /// What it is set to, by name without its section.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A model in a role, with everything that is sent besides the messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// Provider (`openai`, `extractive`, `none`).
    pub provider: String,
    /// Model name as sent.
    pub name: String,
    /// Name of the account whose URL and key are used (P32).
    pub account: String,
    /// Parameters as sent (temperature, max tokens, …).
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// Prompts in use: name → sha256.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
    /// Version of prompt builder and reply parser.
    pub version: u32,
}

impl ModelSpec {
    /// `provider:name`, or the provider alone when it has no models.
    #[must_use]
    pub fn display(&self) -> String {
        if self.name.is_empty() { self.provider.clone() } else { format!("{}:{}", self.provider, self.name) }
    }

    /// Whether using it sends requests to somebody.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        !matches!(self.provider.as_str(), "extractive" | "none" | "system")
    }

    /// The route of its chats; `None` for what needs no server.
    #[must_use]
    pub fn chat_route(&self) -> Option<RouteKey> {
        let route =
            || RouteKey::Model { kind: RouteKind::Chat, account: self.account.clone(), model: self.name.clone() };
        self.is_remote().then(route)
    }
}

/// What the rubrics of a run's judges ask for beside a binary verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgingSpec {
    /// Forms of replies other than the verdict, with the versions of their readers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub forms: BTreeMap<String, u32>,
    /// What some or all questions are measured by beside the grade, without a judge's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Judges that grade a part of the questions; those that are not named grade all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<JudgedSample>,
}

/// A deterministic scorer of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScorerSpec {
    /// Registered name.
    pub name: String,
    /// Version. Whatever changes a score, or how it is read, raises it.
    pub version: u32,
    /// What it gives, the first before the others in reports. Empty: one metric of the scorer's name on the plain scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Whether it grades what was recalled, and not what was answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_recalls: bool,
}

impl ScorerSpec {
    /// Names of its metrics, in their order.
    pub fn metric_names(&self) -> impl Iterator<Item = &str> {
        let own = self.metrics.is_empty().then_some(self.name.as_str());
        own.into_iter().chain(self.metrics.iter().map(|metric| metric.name.as_str()))
    }
}

/// Most judges of a run: each of their votes has a place among the keys of its question's tasks.
pub const MOST_JUDGES: usize = 15;
/// Most votes of a judge, for the same reason.
pub const MOST_VOTES: u32 = 31;

/// Checks how many judges grade an answer, and how often each of them does.
///
/// # Errors
/// What is wrong, with what may be given.
pub fn check_grading(judges: usize, votes: u32) -> Result<(), String> {
    if judges > MOST_JUDGES {
        return Err(format!("{judges} judges: at most {MOST_JUDGES} can grade a run"));
    }
    if votes > MOST_VOTES || votes.is_multiple_of(2) {
        return Err(format!("{votes} votes: give an odd number below {}, so that a majority exists", MOST_VOTES + 1));
    }
    Ok(())
}
