//! What was asked and with which settings: what a reader needs to make the run again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PromptText;
use crate::{
    audit::PLANTED_SYSTEM,
    call::{CacheScope, is_default},
    label_fixes::LabelFixesSpec,
    profile::{first_methodology, is_first_methodology},
    scenario::{AnsweredBy, RecallPlan, Scenario},
    spec::{IMPORTED_SYSTEM, ModelSpec, RunSpec},
};

/// What stands for who answered where answers were made elsewhere and nobody says it.
pub const ANSWERER_NOT_SAID: &str = "answerer not said";
/// The answerer of runs in which nothing of ours answers.
const NOBODY: &str = "none";

// Begins as `DatasetSpec` does: that one is stored, this one is published, and each changes with a version of its own.
/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetSummary {
    /// Registered name.
    pub name: String,
    /// Version in the manifest.
    pub version: String,
    /// Version of the dataset's methodology, by which scores are comparable over time; absent where it is 1.
    #[serde(default = "first_methodology", skip_serializing_if = "is_first_methodology")]
    pub methodology: u32,
    /// sha256 of the file.
    pub sha256: String,
    /// True when it is not the published file.
    #[serde(default)]
    pub modified: bool,
    /// True when no checksum of the published file is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checksum_unknown: bool,
    /// What of it did not resolve, such as dates that cannot be read or evidence that names nothing, and what it says of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Questions in the whole dataset.
    pub questions: u64,
    /// Banks in the whole dataset.
    pub banks: u64,
    /// Sessions in the whole dataset.
    pub sessions: u64,
    /// Known mistakes of its answer key that stand beside the scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_fixes: Option<LabelFixesSpec>,
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
    /// True when `fair` has taken as many questions of each category of a bank, whatever their sizes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equal_quotas: bool,
    /// What has to be said about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Effective settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecSummary {
    /// Memory system.
    pub system: String,
    /// Version of the built-in system or of the adapter; empty in older reports.
    #[serde(default)]
    pub system_version: String,
    /// Effective settings of the memory system, by name.
    #[serde(default)]
    pub system_settings: BTreeMap<String, Value>,
    /// What was done for a question.
    #[serde(default, skip_serializing_if = "Scenario::is_default")]
    pub scenario: Scenario,
    /// How often was recalled for a question, where not once.
    #[serde(default, skip_serializing_if = "RecallPlan::is_once")]
    pub recalls: RecallPlan,
    /// Whose the answers are, in the scenario reflect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// What has to be known to read the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
    /// Parameters as sent, of each of them; further votes vary temperature and seed where these are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judge_params: Vec<BTreeMap<String, Value>>,
    /// The rubric that questions were graded by in place of the dataset's: all of them, but for those without an answer where it
    /// knows of answers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
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
    /// Versions of those that are not in their first; scores of two versions are not compared. Unknown before version 4 of reports.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scorer_versions: BTreeMap<String, u32>,
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

/// Whether a sample is `fair` by quotas: where the profile gives it a number, categories have their shares.
fn has_equal_quotas(spec: &RunSpec) -> bool {
    let sample = &spec.sample;
    let by_quota = sample.preset == "fair" && sample.sampler == "hash" && spec.dataset.profile.presets.fair.is_none();
    by_quota && sample.stratified && !sample.census
}

impl From<&RunSpec> for DatasetSummary {
    fn from(spec: &RunSpec) -> Self {
        let (dataset, sample) = (&spec.dataset, &spec.sample);
        Self {
            name: dataset.name.clone(),
            version: dataset.version.clone(),
            methodology: dataset.profile.methodology,
            sha256: dataset.sha256.clone(),
            modified: dataset.modified,
            checksum_unknown: dataset.checksum_unknown,
            notes: dataset.notes.clone(),
            questions: dataset.population.values().copied().fold(0, u64::saturating_add),
            banks: dataset.banks,
            sessions: dataset.sessions,
            label_fixes: dataset.label_fixes.clone(),
            sample: SampleSummary {
                preset: sample.preset.clone(),
                sampler: sample.sampler.clone(),
                n: sample.n,
                signature: sample.signature.clone(),
                banks: sample.banks,
                seed: sample.seed.clone(),
                census: sample.census,
                stratified: sample.stratified,
                equal_quotas: has_equal_quotas(spec),
                notes: sample.notes.clone(),
            },
        }
    }
}

impl SpecSummary {
    /// Who answered, and the scenario where it is not the usual one: `openai:gpt-4o-mini, reflect (fallback)`.
    #[must_use]
    pub fn who_answered(&self) -> String {
        let scenario = match self.answered_by {
            Some(by) => format!("{} ({})", self.scenario.name(), by.name()),
            None => self.scenario.name().to_owned(),
        };
        match self.scenario {
            Scenario::Answer if self.is_unsaid() => ANSWERER_NOT_SAID.to_owned(),
            Scenario::Answer => self.answerer.clone(),
            Scenario::RetrieveOnly => scenario,
            _ => format!("{}, {scenario}", self.answerer),
        }
    }

    /// The same where it is known: of answers that were made elsewhere nobody says it.
    #[must_use]
    pub fn known_answerer(&self) -> Option<String> {
        (!self.is_unsaid()).then(|| self.who_answered())
    }

    /// Hits asked for, where that is known: answers that were made elsewhere do not say it, and what was recalled elsewhere is as long
    /// as it is.
    #[must_use]
    pub fn known_top_k(&self) -> Option<u32> {
        (!(self.is_imported() && self.scenario.answers())).then_some(self.top_k)
    }

    /// Whether nothing but results is known of the memory system.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        self.system_version == IMPORTED_SYSTEM
    }

    /// Whether somebody answered elsewhere. What was planted for an audit of judges nobody has answered.
    fn is_unsaid(&self) -> bool {
        self.is_imported() && self.answerer == NOBODY && self.scenario.answers() && self.system != PLANTED_SYSTEM
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
            scenario: spec.scenario,
            recalls: spec.recalls,
            answered_by: spec.answered_by(),
            notes: spec.reading_notes(),
            answerer: spec.answerer.display(),
            answerer_params: spec.answerer.params.clone(),
            judge: judges.first().cloned(),
            judge_params: spec.judges.iter().map(|judge| judge.params.clone()).collect(),
            rubric: spec.dataset.profile.only_rubric.clone().filter(|_| !judges.is_empty()),
            votes: (!judges.is_empty()).then_some(spec.votes),
            judges,
            prompts,
            prompt_texts: BTreeMap::new(),
            scorers: spec.scorers.iter().map(|scorer| scorer.name.clone()).collect(),
            scorer_versions: spec
                .scorers
                .iter()
                .filter(|scorer| scorer.version > 1)
                .map(|scorer| (scorer.name.clone(), scorer.version))
                .collect(),
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
mod tests {
    use super::*;

    #[test]
    fn what_answers_from_elsewhere_do_not_say_is_not_made_up() {
        let golden: RunSpec =
            serde_json::from_str(include_str!("../../golden/run_spec.v1.json")).expect("the golden spec is read");
        let mut spec = SpecSummary::from(&golden);
        let said = |spec: &SpecSummary| (spec.known_answerer().is_some(), spec.known_top_k());
        assert_eq!((said(&spec), spec.known_answerer()), ((true, Some(spec.top_k)), Some(spec.who_answered())));
        (spec.system_version, spec.answerer) = (IMPORTED_SYSTEM.to_owned(), NOBODY.to_owned());
        spec.scenario = Scenario::Answer;
        assert_eq!((said(&spec), spec.who_answered().as_str()), ((false, None), ANSWERER_NOT_SAID));
        let planted = SpecSummary { system: PLANTED_SYSTEM.to_owned(), ..spec.clone() };
        assert_eq!(planted.known_answerer().as_deref(), Some(NOBODY), "nobody has answered");
        let recalls = SpecSummary { scenario: Scenario::RetrieveOnly, ..spec.clone() };
        assert_eq!(said(&recalls), (true, Some(spec.top_k)));
        let answered_here = SpecSummary { answerer: "openai:m".to_owned(), ..spec };
        assert_eq!(answered_here.known_answerer().as_deref(), Some("openai:m"));
    }
}
