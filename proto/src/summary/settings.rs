//! What was asked and with which settings: what a reader needs to make the run again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PromptText;
use crate::{
    call::CacheScope,
    spec::{ModelSpec, RunSpec},
};

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
    /// Their texts, under the same names; null for a prompt that the build that made the report does not have.
    #[serde(default)]
    pub prompt_texts: BTreeMap<String, Option<PromptText>>,
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
            prompt_texts: BTreeMap::new(),
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
