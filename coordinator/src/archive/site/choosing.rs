//! Which runs stand on the page of a dataset, and which of them share a table: only what was asked and graded alike is held against
//! each other.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bench_aggregate::{
    compare::fingerprints::{RunSettings, comparability, group_of, is_of_version},
    repeats::spread,
};
use bench_proto::{ids::Sha256Hash, spec::RunSpec, summary::Verdict};

use bench_report::{
    archive::IndexEntry,
    site::{Mark, SameRun, SameSettings, Unranked},
};
use bench_systems::adapter::ADAPTER;

use super::reading::ArchivedRun;

/// Results of a dataset that are shown: each pair of a table has a page.
const MOST_RESULTS: usize = 40;
/// Runs with the same settings that are tried, where those before them are damaged.
const MOST_TRIED: usize = 5;
/// The control that is no memory system: its figures are the most that one could reach.
const TOLD_THE_EVIDENCE: &str = "oracle";
/// Runs that are named behind the one that is shown.
const MOST_NAMED: usize = 20;
/// Settings that are named behind a system.
const MOST_SETTINGS: usize = 3;

impl ArchivedRun {
    fn spec(&self) -> &RunSpec {
        &self.bundle.spec
    }

    fn settings(&self) -> RunSettings<'_> {
        RunSettings { spec: self.spec(), imported: self.bundle.imported }
    }

    /// Why it has no rank beside results that were measured here; none when it has one.
    pub(super) fn unranked(&self) -> Option<Unranked> {
        let spec = self.spec();
        let unverified = |why: &str| Some(Unranked { mark: Mark::Unverified, why: why.to_owned() });
        if self.entry.verdict != Verdict::Valid.name() {
            return unverified("the run is INVALID");
        }
        if self.bundle.imported {
            return unverified("answers or grades were made elsewhere");
        }
        if spec.dataset.modified {
            return unverified("the dataset's file is not the published one");
        }
        if spec.taken_over.answered_again > 0 {
            return unverified("what had not passed was answered again: the better of several tries");
        }
        if spec.taken_over.bank.is_some() {
            return unverified("a bank was asked that was there before: what it holds is not proven");
        }
        let is_told = spec.system.name == TOLD_THE_EVIDENCE && !spec.system.settings.contains_key(ADAPTER);
        is_told.then(|| Unranked { mark: Mark::Control, why: "it is told where the evidence is".to_owned() })
    }

    /// The runs that stand in each other's place, of which the newest is shown: all that can change a score is the same but the
    /// version of the system. What a bank holds beside its dataset (canaries) tells no two systems from each other.
    fn contestant(&self) -> (bool, Sha256Hash) {
        let parts = self.spec().fingerprint_parts();
        let told = parts.iter().filter(|(key, _)| !is_of_version(key));
        let text: String = told.map(|(key, value)| format!("{key}={value}\n")).collect();
        (self.bundle.imported, Sha256Hash::of_bytes(text.as_bytes()))
    }

    /// Newer ones come last.
    fn age(&self) -> (&str, &str) {
        (self.entry.finished_at.as_deref().unwrap_or_default(), &self.entry.run_id)
    }

    /// In what it was asked or graded otherwise than another run, in the words of a person; nothing where only the systems differ.
    fn differs_in(&self, other: &Self) -> BTreeSet<String> {
        let metric = self.spec().headline_metric();
        let found = comparability(&self.settings(), &other.settings(), &metric, &[]);
        let has_unknown = self.bundle.imported || other.bundle.imported;
        let mut differs: BTreeSet<String> = found
            .differences
            .iter()
            // where the runs are comparable, what is marked is what may matter
            .filter(|difference| difference.under_test || !found.reasons.is_empty() || difference.group == "sample")
            .filter(|difference| difference.group != "system")
            .filter(|difference| !(has_unknown && difference.group == "answerer"))
            // it has no rank anyway
            .filter(|difference| difference.key != "answered_again")
            .map(|difference| named(&difference.key))
            .collect();
        // of another model the parameters are others too
        for role in ["answerer", "judge"] {
            let is_other = differs.contains(role);
            differs.retain(|word| !(is_other && word.ends_with(&format!("{OF_THE}{role}"))));
        }
        if metric != other.spec().headline_metric() {
            differs.insert("metric".to_owned());
        }
        if self.spec().system.top_k != other.spec().system.top_k && !has_unknown {
            differs.insert("number of hits".to_owned());
        }
        differs
    }
}

/// Stands between a parameter and whose it is.
const OF_THE: &str = " of the ";

/// What a part of a fingerprint is called; of a model its parameter or prompt, so that one whose name is the same is not called another.
fn named(key: &str) -> String {
    let word = word_of(key);
    let part = |kind: &str| key.split_once(kind).map(|(_, name)| name);
    match (word, part(".params."), part(".prompts.")) {
        ("answerer" | "judge", Some(param), _) => format!("{param}{OF_THE}{word}"),
        ("answerer" | "judge", None, Some(prompt)) => format!("prompt '{prompt}'{OF_THE}{word}"),
        _ => word.to_owned(),
    }
}

/// What the thing is called that a part of a fingerprint belongs to.
fn word_of(key: &str) -> &'static str {
    match key.split('.').next().unwrap_or_default() {
        "scenario" => "scenario",
        "recalls" => "number of recalls",
        "counting" => "counting",
        "label_fixes" => "answer key",
        "votes" => "number of votes",
        _ if key.starts_with("scorers.") => "scorers",
        _ => match group_of(key) {
            "dataset" => "version of the dataset",
            "sample" => "sample",
            "answerer" => "answerer",
            _ => "judge",
        },
    }
}

/// Runs that stand in each other's place, the one that is shown first; behind it those that are shown where it is damaged. Never
/// empty.
pub(super) struct Contestant {
    runs: Vec<ArchivedRun>,
    /// All of them in the same order, as the index tells them, and whether they may have a rank.
    all: Vec<(IndexEntry, bool)>,
}

impl Contestant {
    /// The run that is shown.
    fn first(&self) -> Option<&ArchivedRun> {
        self.runs.first()
    }

    /// The runs, the one that is shown first, and what the index tells of all.
    pub(super) fn into_runs(self) -> (Vec<ArchivedRun>, Vec<(IndexEntry, bool)>) {
        (self.runs, self.all)
    }

    fn is_imported(&self) -> bool {
        self.first().is_some_and(|run| run.bundle.imported)
    }

    fn is_ranked(&self) -> bool {
        self.first().is_some_and(|run| run.unranked().is_none())
    }

    fn differs_in(&self, other: &Self) -> BTreeSet<String> {
        self.first().zip(other.first()).map(|(one, other)| one.differs_in(other)).unwrap_or_default()
    }
}

/// Results that were asked and graded alike; the first stands for all of them.
pub(super) struct Draft {
    pub(super) contestants: Vec<Contestant>,
    /// In what they differ from those of the first table.
    pub(super) differs_in: Vec<String>,
}

/// The tables of a dataset: of the runs that stand in each other's place the newest VALID one, or the newest where none is. The table
/// with most ranked results comes first, of equal ones that with the newest.
pub(super) fn tables(runs: Vec<ArchivedRun>, left_out: &mut Vec<String>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for contestant in contestants(runs, left_out) {
        let fits = |draft: &&mut Draft| {
            draft.contestants.first().is_some_and(|first| first.differs_in(&contestant).is_empty())
        };
        match drafts.iter_mut().find(fits) {
            Some(draft) => draft.contestants.push(contestant),
            None => drafts.push(Draft { contestants: vec![contestant], differs_in: Vec::new() }),
        }
    }
    let ranked = |draft: &Draft| draft.contestants.iter().filter(|contestant| contestant.is_ranked()).count();
    // stable: the newest first among equal ones
    drafts.sort_by_key(|draft| Reverse(ranked(draft)));
    if let Some((first, others)) = drafts.split_first_mut() {
        for draft in others {
            let both = first.contestants.first().zip(draft.contestants.first());
            draft.differs_in = both.map(|(one, other)| one.differs_in(other)).unwrap_or_default().into_iter().collect();
        }
    }
    drafts
}

/// Who has a result, the newest first; imported ones, of which least is known, behind all others.
fn contestants(runs: Vec<ArchivedRun>, left_out: &mut Vec<String>) -> Vec<Contestant> {
    let mut by_settings: BTreeMap<(bool, Sha256Hash), Vec<ArchivedRun>> = BTreeMap::new();
    for run in runs {
        by_settings.entry(run.contestant()).or_default().push(run);
    }
    let mut all: Vec<Contestant> = by_settings.into_values().map(|runs| Contestant { runs, all: Vec::new() }).collect();
    for contestant in &mut all {
        let is_valid = |run: &ArchivedRun| run.entry.verdict == Verdict::Valid.name();
        contestant.runs.sort_by(|a, b| (is_valid(b), b.age()).cmp(&(is_valid(a), a.age())));
        contestant.all = contestant.runs.iter().map(|run| (run.entry.clone(), run.unranked().is_none())).collect();
        contestant.runs.truncate(MOST_TRIED);
    }
    all.sort_by(|a, b| b.first().map(ArchivedRun::age).cmp(&a.first().map(ArchivedRun::age)));
    if all.len() > MOST_RESULTS {
        let older = all.split_off(MOST_RESULTS);
        let dataset =
            older.first().and_then(Contestant::first).map(|run| run.entry.dataset.clone()).unwrap_or_default();
        left_out.push(format!("{dataset}: {} older results are left out: a page has {MOST_RESULTS}", older.len()));
    }
    all.sort_by_key(Contestant::is_imported);
    all
}

/// What the runs are that a shown one stands for; nothing where it is the only one with its settings.
pub(super) fn same_settings(shown: &IndexEntry, all: &[(IndexEntry, bool)]) -> Option<SameSettings> {
    let others: Vec<&IndexEntry> =
        all.iter().map(|(entry, _)| entry).filter(|other| other.run_id != shown.run_id).collect();
    if others.is_empty() {
        return None;
    }
    let counts = |(entry, may_rank): &&(IndexEntry, bool)| *may_rank && entry.system_version == shown.system_version;
    let valid: Vec<f64> = all.iter().filter(counts).filter_map(|(entry, _)| entry.value).collect();
    let spread = spread(&valid, "runs");
    let told = |other: &&IndexEntry| SameRun {
        run: other.run_id.clone(),
        archived_as: other.folder.clone(),
        system_version: other.system_version.clone(),
        score: other.value,
        verdict: other.verdict.clone(),
        finished_at: other.finished_at.clone(),
    };
    Some(SameSettings {
        valid: valid.len() as u64,
        mean: spread.as_ref().map(|spread| spread.mean),
        ci95: spread.and_then(|spread| spread.ci95),
        others: others.iter().take(MOST_NAMED).map(told).collect(),
        more: others.len().saturating_sub(MOST_NAMED) as u64,
    })
}

/// The settings by which a run differs from the others of its table that have the same system; none where it is the only one.
pub(super) fn variant(run: &ArchivedRun, all: &[&ArchivedRun]) -> Option<String> {
    let system = &run.spec().system;
    let others = || all.iter().map(|other| &other.spec().system).filter(|other| other.name == system.name);
    let named = |key: &String| {
        !matches!(
            key.as_str(),
            ADAPTER | "system.url" | "vector.folder" | "vector.precomputed" | "vector.queries" | "faulty.memory"
        )
    };
    let keys: BTreeSet<&String> = others().flat_map(|other| other.settings.keys()).filter(|key| named(key)).collect();
    let differs = |key: &&String| others().any(|other| other.settings.get(*key) != system.settings.get(*key));
    let value = |key: &String| match system.settings.get(key) {
        None => "default".to_owned(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let told: Vec<String> =
        keys.into_iter().filter(differs).take(MOST_SETTINGS).map(|key| format!("{key}={}", value(key))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}
