//! The fingerprint of a run: what of its spec can change a score (P13).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunSpec;
use crate::{
    audit::PlantedSpec,
    canary::CanarySpec,
    ids::Sha256Hash,
    panel::JudgedSample,
    profile::{FIRST_METHODOLOGY, GoldReading, Profile},
};

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
        if let Some(fixes) = &self.dataset.label_fixes {
            put("label_fixes".into(), format!("{} {}", fixes.name, fixes.sha256).into());
        }
        if let Some(planted) = &self.dataset.planted {
            let PlantedSpec { version, source, answers_of, wrong, right } = planted;
            put("dataset.planted".into(), serde_json::json!([version, source, wrong, right]));
            answers_of.iter().for_each(|run| put("dataset.answers_of".into(), run.clone().into()));
        }
        put("sample.signature".into(), self.sample.signature.clone().into());
        put("sample.max_sessions".into(), self.sample.max_sessions.into());
        // what a weighted score is weighted by: the sizes of the strata follow from the dataset
        let facets: BTreeSet<&str> =
            self.sample.strata.iter().flat_map(|stratum| stratum.facets.keys()).map(String::as_str).collect();
        if !facets.is_empty() {
            put("sample.strata".into(), facets.into_iter().collect::<Vec<_>>().into());
        }
        self.stop.iter().for_each(|rule| put("sample.stop".into(), rule.fingerprint()));
        if !self.scenario.is_default() {
            put("scenario".into(), self.scenario.name().into());
        }
        let counts = [
            ("recalls.rephrased", self.recalls.rephrased),
            ("recalls.at_most", self.recalls.at_most),
            ("answered_again", self.taken_over.answered_again),
        ];
        counts.iter().filter(|(_, n)| *n > 0).for_each(|(key, n)| put((*key).into(), (*n).into()));
        self.taken_over.bank.iter().for_each(|bank| put("system.bank".into(), bank.clone().into()));
        let others = self.taken_over.archive.iter().filter(|archive| archive.filled_by.is_some());
        others.for_each(|archive| put("system.banks".into(), archive.sha256.clone().into()));
        put("system.name".into(), self.system.name.clone().into());
        put("system.version".into(), self.system.version.clone().into());
        put("system.top_k".into(), self.system.top_k.into());
        // a part of what the system is given, and no difference of two runs whose systems differ anyway
        if let Some(CanarySpec { version, facts: facts @ 1.., most_in_bank }) = self.canaries {
            put("system.canaries".into(), serde_json::json!([version, facts, most_in_bank]));
        }
        // the fingerprint of an adapter, a local model or given vectors stands in the version, and the place of a system changes no score
        let counts = |key: &str| {
            !matches!(key, "adapter" | "system.url" | "vector.folder" | "vector.precomputed" | "vector.queries")
        };
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
        self.judging_parts().into_iter().for_each(|(key, value)| put(key, value));
        if let Some(counting) = &self.counting {
            put("counting".into(), format!("{} {}", counting.name, counting.version).into());
        }
        for scorer in &self.scorers {
            put(format!("scorers.{}", scorer.name), scorer.version.into());
        }
        parts
    }

    /// How judges grade, where there are any.
    fn judging_parts(&self) -> Vec<(String, Value)> {
        if self.judges.is_empty() {
            return Vec::new();
        }
        let mut parts = vec![("votes".to_owned(), Value::from(self.votes))];
        let sampled = |sample: &JudgedSample| {
            (format!("judges.{}.sample", sample.judge), serde_json::json!([sample.version, sample.n]))
        };
        parts.extend(self.judging.samples.iter().map(sampled));
        let only = self.dataset.profile.only_rubric.iter();
        parts.extend(only.map(|rubric| ("judging.rubric".to_owned(), rubric.clone().into())));
        let forms = self.judging.forms.iter();
        parts.extend(forms.map(|(name, version)| (format!("judging.forms.{name}"), Value::from(*version))));
        parts
    }

    /// What of the profile can change a score beside the prompts, which are told by their hashes: which category is graded by
    /// which rubric, how its golds are read, and which count. Nothing for the profile that older runs imply, so that theirs stay
    /// what they were.
    fn profile_parts(&self) -> BTreeMap<String, Value> {
        let profile = &self.dataset.profile;
        // a rubric for all questions is the graders' part, not the dataset's
        let is_implied = match &profile.only_rubric {
            None => profile.is_implied(),
            Some(_) => Profile { only_rubric: None, ..profile.clone() }.is_implied(),
        };
        if is_implied { BTreeMap::new() } else { self.told_profile_parts() }
    }

    /// The same of any profile.
    fn told_profile_parts(&self) -> BTreeMap<String, Value> {
        let profile = &self.dataset.profile;
        let mut parts = BTreeMap::new();
        if profile.methodology != FIRST_METHODOLOGY {
            parts.insert("methodology".to_owned(), profile.methodology.into());
        }
        parts.insert("headline.without".to_owned(), profile.headline.without.clone().into());
        for (name, rules) in &profile.categories {
            if rules.unanswerable {
                parts.insert(format!("unanswerable.{name}"), true.into());
            }
            if rules.gold != GoldReading::default() {
                parts.insert(format!("gold.{name}"), rules.gold.name().into());
            }
            if let Some(style) = rules.style.as_ref().filter(|_| self.answerer.is_remote()) {
                parts.insert(format!("style.{name}"), style.clone().into());
            }
        }
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
        Sha256Hash::of_bytes(text.as_bytes())
    }

    /// The parts in which two specs differ, by key. A profile that needs not be told is told where the other's is: what both say alike
    /// is no difference.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (mut left, mut right) = (self.fingerprint_parts(), other.fingerprint_parts());
        let tells = [self, other].map(|spec| !spec.profile_parts().is_empty());
        for (spec, parts, told) in [(self, &mut left, tells[0]), (other, &mut right, tells[1])] {
            if !told && tells.contains(&true) {
                let profile = spec.told_profile_parts().into_iter();
                parts.extend(profile.map(|(key, value)| (format!("dataset.profile.{key}"), value.to_string())));
            }
        }
        let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        let show =
            |parts: &BTreeMap<String, String>, key: &String| parts.get(key).cloned().unwrap_or_else(|| "-".to_owned());
        keys.into_iter()
            .filter(|key| left.get(*key) != right.get(*key))
            .map(|key| Difference { key: key.clone(), left: show(&left, key), right: show(&right, key) })
            .collect()
    }
}
