//! The run spec: effective settings of a run, and the fingerprint of what can change a score (P13).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    call::{CacheScope, Phase},
    facts::JudgePlan,
    ids::Sha256Hash,
    money::PicoUsd,
    price::ModelPrice,
    probe::ProbePlan,
    profile::Profile,
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
    /// Which part of it.
    pub sample: SampleSpec,
    /// Who remembers.
    pub system: SystemSpec,
    /// Who answers.
    pub answerer: ModelSpec,
    /// Who judges; empty when only deterministic scorers do.
    pub judges: Vec<ModelSpec>,
    /// Votes per judge.
    pub votes: u32,
    /// Deterministic scorers, in the order of the report; the first is the headline without a judge.
    pub scorers: Vec<ScorerSpec>,
    /// The metric that heads the report instead of the judge's or the first scorer's (imported grades).
    #[serde(default)]
    pub headline: Option<String>,
    /// What does not change a score and may differ on resume.
    pub limits: Limits,
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Version of the loader.
    pub loader: u32,
    /// Settings of a generator (`sim.seed`, …).
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Phrases that make an answer an abstention (lower case).
    pub abstention_phrases: Vec<String>,
    /// Questions in the whole dataset, per category: the N_h of the statistics.
    pub population: BTreeMap<String, u64>,
    /// Banks in the whole dataset.
    pub banks: u64,
    /// Sessions in the whole dataset.
    pub sessions: u64,
    /// How its questions are put, graded and counted; runs that store none have [`Profile::implied`].
    #[serde(default = "Profile::implied", skip_serializing_if = "Profile::is_implied")]
    pub profile: Profile,
    /// `--dataset-path`: where a resumed run looks for the file again; not part of the fingerprint.
    #[serde(default)]
    pub path: Option<std::path::PathBuf>,
}

/// The sample of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSpec {
    /// `quick`, `fair`, `full`, or `custom` when filters or counts were given.
    pub preset: String,
    /// Sampler name (`hash`, `astrocyte`, `head`).
    pub sampler: String,
    /// Version of the sampler.
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
    /// True when equal quotas per (bank, category) cell make it a stratified sample: its headline is the weighted score.
    pub stratified: bool,
    /// Sessions kept per bank (`--max-sessions`), all when absent.
    #[serde(default)]
    pub max_sessions: Option<u32>,
    /// What the report must say about the sample ("head slice: not an estimate of the full score").
    #[serde(default)]
    pub notes: Vec<String>,
    /// The sampler's own request, so that a run that was stopped while its plan was being written takes the same sample
    /// again. Opaque here; not part of the fingerprint (the signature is).
    #[serde(default)]
    pub request: Value,
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
    /// Its settings.
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
}

/// A deterministic scorer of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScorerSpec {
    /// Registered name, the metric's name in reports.
    pub name: String,
    /// Version.
    pub version: u32,
}

/// Limits: what bounds a run without changing a score. Not part of the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Hard cap on spending, in pico-dollars.
    pub max_cost: Option<PicoUsd>,
    /// Hard caps of single phases, in pico-dollars.
    pub max_cost_by_phase: BTreeMap<Phase, PicoUsd>,
    /// Hard cap on what all runs of the store together spend in a UTC day, while this run reserves.
    pub max_cost_per_day: Option<PicoUsd>,
    /// Requests per minute for the run's models.
    pub max_rpm: Option<u64>,
    /// Tokens per minute for the run's models.
    pub max_tpm: Option<u64>,
    /// Questions in flight over all workers.
    pub concurrency: Option<u32>,
    /// Operations in flight that the system takes, over all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_parallel: Option<u32>,
    /// Whose stored replies may be used.
    pub cache: CacheScope,
    /// Attempts per task after the first.
    pub retries: u32,
    /// Seconds that the run waits for a provider that is away when nothing else of it can move, before it is paused; not set:
    /// what the coordinator's settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_timeout_s: Option<u64>,
    /// Worker pool.
    pub pool: String,
    /// User-given prices: model → (input, output) pico-dollars per token.
    pub prices: BTreeMap<String, (PicoUsd, PicoUsd)>,
    /// Prices of the run's models from the user's price file.
    pub price_lines: BTreeMap<String, ModelPrice>,
    /// Unpriced models may be used (and count as free).
    pub unpriced_ok: bool,
    /// Which questions keep their traces, and where people find them.
    #[serde(skip_serializing_if = "TracePolicy::is_default")]
    pub trace: TracePolicy,
    /// What is probed when all questions have ended (P43).
    #[serde(skip_serializing_if = "ProbePlan::is_off")]
    pub latency_probe: ProbePlan,
}

impl Limits {
    /// Questions in flight over all workers, until their votes are in (P25): each may have one operation of the system in
    /// flight.
    #[must_use]
    pub fn questions_at_once(&self) -> Option<u32> {
        self.concurrency.into_iter().chain(self.system_parallel).min()
    }

    /// Segments of banks in flight over all workers (P25).
    #[must_use]
    pub fn segments_at_once(&self) -> Option<u32> {
        self.system_parallel
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_cost: None,
            max_cost_by_phase: BTreeMap::new(),
            max_cost_per_day: None,
            max_rpm: None,
            max_tpm: None,
            concurrency: None,
            system_parallel: None,
            cache: CacheScope::Lineage,
            retries: 6,
            outage_timeout_s: None,
            pool: "default".to_owned(),
            prices: BTreeMap::new(),
            price_lines: BTreeMap::new(),
            unpriced_ok: false,
            trace: TracePolicy::default(),
            latency_probe: ProbePlan::default(),
        }
    }
}

/// A part of a fingerprint that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Dotted name of the setting.
    pub key: String,
    /// Value in the first run, `-` when absent.
    pub left: String,
    /// Value in the second run, `-` when absent.
    pub right: String,
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

impl RunSpec {
    /// What can change a score, as dotted names and JSON values; the fingerprint is the hash of exactly this.
    ///
    /// URLs, keys, account names, caps, pace, concurrency, telemetry and display are not part of it.
    #[must_use]
    pub fn fingerprint_parts(&self) -> BTreeMap<String, String> {
        let mut parts = BTreeMap::new();
        let mut put = |key: String, value: Value| {
            parts.insert(key, value.to_string());
        };
        put("dataset.name".into(), self.dataset.name.clone().into());
        put("dataset.sha256".into(), self.dataset.sha256.clone().into());
        put("dataset.loader".into(), self.dataset.loader.into());
        put("dataset.abstention_phrases".into(), self.dataset.abstention_phrases.clone().into());
        for (key, value) in &self.dataset.settings {
            put(format!("dataset.settings.{key}"), value.clone());
        }
        for (key, value) in self.profile_parts() {
            put(format!("dataset.profile.{key}"), value);
        }
        put("sample.signature".into(), self.sample.signature.clone().into());
        put("sample.max_sessions".into(), self.sample.max_sessions.into());
        put("system.name".into(), self.system.name.clone().into());
        put("system.version".into(), self.system.version.clone().into());
        put("system.top_k".into(), self.system.top_k.into());
        // the fingerprint of an adapter or a local model stands in the version, and the place of a system changes no score
        let counts = |key: &str| !matches!(key, "adapter" | "system.url" | "vector.folder");
        for (key, value) in self.system.settings.iter().filter(|(key, _)| counts(key)) {
            put(format!("system.settings.{key}"), value.clone());
        }
        let models = std::iter::once(("answerer".to_owned(), &self.answerer))
            .chain(self.judges.iter().enumerate().map(|(i, judge)| (format!("judges.{i}"), judge)));
        for (role, model) in models {
            put(format!("{role}.model"), model.display().into());
            put(format!("{role}.version"), model.version.into());
            for (key, value) in &model.params {
                put(format!("{role}.params.{key}"), value.clone());
            }
            for (name, sha256) in &model.prompts {
                put(format!("{role}.prompts.{name}"), sha256.clone().into());
            }
        }
        if !self.judges.is_empty() {
            put("votes".into(), self.votes.into());
        }
        for scorer in &self.scorers {
            put(format!("scorers.{}", scorer.name), scorer.version.into());
        }
        parts
    }

    /// What of the profile can change a score beside the prompts, which are told by their hashes: which category is graded by
    /// which rubric, and which count. Nothing for the profile that older runs imply, so that theirs stay what they were.
    fn profile_parts(&self) -> BTreeMap<String, Value> {
        let profile = &self.dataset.profile;
        let mut parts = BTreeMap::new();
        if profile.is_implied() {
            return parts;
        }
        parts.insert("headline.without".to_owned(), profile.headline.without.clone().into());
        if !self.judges.is_empty() {
            let by_category = profile.categories.iter().map(|(name, rules)| (format!("rubric.{name}"), &rules.rubric));
            let by_gold = [("criteria", &profile.by_gold.criteria), ("abstain", &profile.by_gold.abstain)];
            let by_gold = by_gold.map(|(kind, rubric)| (format!("rubric_by_gold.{kind}"), rubric));
            parts.extend(by_category.chain(by_gold).map(|(key, rubric)| (key, rubric.clone().into())));
        }
        parts
    }

    /// sha256 over the lines `key=value` of [`RunSpec::fingerprint_parts`] in key order.
    #[must_use]
    pub fn fingerprint(&self) -> Sha256Hash {
        let mut text = String::from("bench-fingerprint-v1\n");
        for (key, value) in self.fingerprint_parts() {
            text.push_str(&key);
            text.push('=');
            text.push_str(&value);
            text.push('\n');
        }
        Sha256Hash::of(text.as_bytes())
    }

    /// The parts in which two specs differ, by key.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (left, right) = (self.fingerprint_parts(), other.fingerprint_parts());
        let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        let show =
            |parts: &BTreeMap<String, String>, key: &String| parts.get(key).cloned().unwrap_or_else(|| "-".to_owned());
        keys.into_iter()
            .filter(|key| left.get(*key) != right.get(*key))
            .map(|key| Difference { key: key.clone(), left: show(&left, key), right: show(&right, key) })
            .collect()
    }

    /// Metric names of the judges: `judge`, `judge-2`, …
    #[must_use]
    pub fn judge_plan(&self) -> JudgePlan {
        let name = |i: usize| if i == 0 { "judge".to_owned() } else { format!("judge-{}", i + 1) };
        JudgePlan { metrics: (0..self.judges.len()).map(name).collect(), votes: self.votes.max(1) }
    }

    /// The metric that heads the report: the one that was named, else the first judge's, else the first scorer's.
    #[must_use]
    pub fn headline_metric(&self) -> String {
        if let Some(named) = &self.headline {
            return named.clone();
        }
        self.judge_plan()
            .metrics
            .into_iter()
            .next()
            .or_else(|| self.scorers.first().map(|s| s.name.clone()))
            .unwrap_or_default()
    }
}

/// What a run says about its traces. Not part of the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracePolicy {
    /// Where people find a trace: a URL with `{trace_id}` in it.
    pub url: Option<String>,
    /// Traces hold the texts of questions and answers.
    pub content: bool,
    /// Slow is what takes at least so many milliseconds; without it the run's own quantile decides.
    pub slow_ms: Option<u64>,
    /// The quantile above which a question may be slow.
    pub quantile: f64,
    /// Share of questions that keep their trace whatever happens.
    pub rate: f64,
}

impl Default for TracePolicy {
    fn default() -> Self {
        Self { url: None, content: false, slow_ms: None, quantile: 0.99, rate: 0.0001 }
    }
}

/// What a trace URL must hold.
const PLACE: &str = "{trace_id}";

impl TracePolicy {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Where people find a trace.
    #[must_use]
    pub fn link(&self, trace_id: &str) -> Option<String> {
        self.url.as_ref().map(|url| url.replace(PLACE, trace_id))
    }

    /// Checks a URL for people.
    ///
    /// # Errors
    /// In words, with what to do.
    pub fn check_url(url: &str) -> Result<(), String> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("'{url}' is no web address: give one such as https://jaeger.example/trace/{PLACE}"));
        }
        if url.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '<' | '>' | '\'')) {
            return Err("a trace URL holds no blanks, quotes or angle brackets".to_owned());
        }
        if !url.contains(PLACE) {
            return Err(format!("'{url}' does not say where the id goes: write {PLACE} in it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::CategoryRules;

    const GOLDEN: &str = include_str!("../golden/run_spec.v1.json");

    fn golden() -> RunSpec {
        serde_json::from_str(GOLDEN).expect("the golden spec is a spec")
    }

    #[test]
    fn a_stored_spec_is_read_without_what_later_builds_add_and_keeps_its_fingerprint() {
        let spec = golden();
        assert_eq!(spec.limits, Limits::default(), "limits that an old build did not store have their defaults");
        let stored: Value = serde_json::from_str(GOLDEN).expect("JSON");
        let again = serde_json::to_value(&spec).expect("serialises");
        for (key, value) in stored.as_object().expect("an object").iter().filter(|(key, _)| *key != "limits") {
            assert_eq!(&again[key.as_str()], value, "{key}");
        }
        assert_eq!(spec.fingerprint().hex(), "07c5a320922759d7a0e5eaee0d0749ad739b2853ca4be889d6a22fb6847e6f11");
    }

    #[test]
    fn p13_a_profile_is_stored_and_counts_where_it_is_not_the_implied_one() {
        assert!(golden().dataset.profile.is_implied());
        let mut own = golden();
        own.dataset.profile.headline.without = vec!["trap".into()];
        own.dataset.profile.categories.insert("trap".into(), CategoryRules::default());
        let stored = serde_json::to_string(&own).expect("serialises");
        assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec"), own);
        let differences = golden().differences(&own);
        let is_of_profile = |d: &Difference| d.key.starts_with("dataset.profile.");
        assert!(differences.iter().all(is_of_profile) && differences.len() == 9, "{differences:?}");
        let mut unjudged = [golden(), own];
        unjudged.iter_mut().for_each(|spec| spec.judges.clear());
        let keys: Vec<String> = unjudged[0].differences(&unjudged[1]).into_iter().map(|d| d.key).collect();
        assert_eq!(keys, ["dataset.profile.headline.without"]);
    }

    #[test]
    fn p13_what_can_change_a_score_changes_the_fingerprint() {
        type Change = fn(&mut RunSpec);
        let changes: [(&str, Change); 9] = [
            ("dataset.sha256", |s| s.dataset.sha256 = "01".into()),
            ("dataset.loader", |s| s.dataset.loader += 1),
            ("sample.signature", |s| s.sample.signature = "x".into()),
            ("system.version", |s| s.system.version = "4".into()),
            ("system.settings.bm25.b", |s| drop(s.system.settings.insert("bm25.b".into(), 0.5.into()))),
            ("answerer.params.temperature", |s| drop(s.answerer.params.insert("temperature".into(), 1.into()))),
            ("judges.0.prompts.judge", |s| drop(s.judges[0].prompts.insert("judge".into(), "ef".into()))),
            ("votes", |s| s.votes = 5),
            ("scorers.locomo-f1", |s| s.scorers[0].version += 1),
        ];
        for (key, change) in changes {
            let mut changed = golden();
            change(&mut changed);
            assert_ne!(changed.fingerprint(), golden().fingerprint(), "{key}");
            let differences = golden().differences(&changed);
            assert_eq!(differences.iter().map(|d| d.key.as_str()).collect::<Vec<_>>(), [key]);
        }
    }

    #[test]
    fn p13_caps_pace_accounts_and_places_are_not_part_of_it() {
        let mut changed = golden();
        changed.limits = Limits {
            max_cost: Some(PicoUsd(1)),
            max_rpm: Some(2),
            max_tpm: Some(3),
            concurrency: Some(4),
            retries: 5,
            pool: "gpu".into(),
            latency_probe: ProbePlan { recalls: 7, rates: vec![1.0] },
            ..Limits::default()
        };
        changed.answerer.account = "other".into();
        changed.dataset.path = Some("/elsewhere".into());
        changed.dataset.version = "2".into();
        assert_eq!(changed.fingerprint(), golden().fingerprint());
    }
}
