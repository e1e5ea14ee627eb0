//! The audit of LoCoMo's labels (github.com/dial481/locomo-audit): a JSON list of the issues that were found. Those of the
//! evidence alone change no score of an answer and are left out.

use std::collections::BTreeMap;

use bench_proto::{
    dataset::{Bank, Gold},
    label_fixes::LabelFix,
};
use serde::Deserialize;

use super::Found;
use crate::{Dataset, DatasetError, files::Files};

pub(super) const MANIFEST: &str = include_str!("locomo-audit.toml");
/// LoCoMo's categories 1 to 4: adversarial questions were not looked at.
pub(super) const CATEGORIES: [&str; 4] = ["multi-hop", "temporal", "open-domain", "single-hop"];

const FILE: &str = "errors.json";
/// More issues than LoCoMo has questions are no audit of it.
const MOST_ISSUES: usize = 2_000;
/// The kind of issues that are of the evidence alone.
const OF_EVIDENCE: &str = "WRONG_CITATION";

/// An issue, as far as it is of the answer.
#[derive(Deserialize)]
struct Issue {
    /// `locomo_<conversation>_qa<question>`, both counted from 0 in the order of LoCoMo's file.
    question_id: String,
    question: String,
    golden_answer: String,
    /// LoCoMo's number.
    category: usize,
    error_type: String,
    correct_answer: String,
}

/// Reads the file. Each issue must quote question, answer and category as this copy of the dataset has them.
pub(super) fn read(files: &Files, dataset: &dyn Dataset) -> Result<Found, DatasetError> {
    let whole = |problem: String| files.broken(FILE, "file".to_owned(), problem);
    let issues: Vec<Issue> = serde_json::from_slice(&files.read(FILE)?).map_err(|error| whole(error.to_string()))?;
    if issues.len() > MOST_ISSUES {
        return Err(whole(format!("has {} issues, more than LoCoMo has questions", issues.len())));
    }
    let mut found = Found::new();
    let mut banks: BTreeMap<usize, Bank> = BTreeMap::new();
    for (number, issue) in issues.into_iter().enumerate() {
        let broken = |problem: String| files.broken(FILE, format!("record {number} ({})", issue.question_id), problem);
        let place = place(&issue.question_id).filter(|(bank, _)| *bank < dataset.bank_count());
        let (bank, at) = place.ok_or_else(|| broken("names no question; ids look like locomo_0_qa5".to_owned()))?;
        let bank = match banks.entry(bank) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(dataset.bank(bank)?),
        };
        let (Some(question), Some(record)) = (bank.questions.get(at), bank.gold.get(at)) else {
            return Err(broken(format!("the conversation has {} questions", bank.questions.len())));
        };
        let category = CATEGORIES.get(issue.category.wrapping_sub(1)).copied().unwrap_or_default();
        for (what, theirs, ours) in [
            ("question", issue.question.as_str(), question.text.as_str()),
            ("golden_answer", &issue.golden_answer, &record.gold.text()),
            ("category", category, &question.category),
        ] {
            if theirs.trim() != ours.trim() {
                let problem = format!("{what} is '{ours}' in the dataset: the file is of another version of it");
                return Err(broken(problem));
            }
        }
        if issue.error_type == OF_EVIDENCE {
            continue;
        }
        let corrected = issue.correct_answer.trim();
        let fix = LabelFix {
            kind: issue.error_type.to_lowercase().replace('_', "-"),
            gold: (!corrected.is_empty()).then(|| Gold::Text(corrected.to_owned())),
        };
        if found.insert(question.question_id.clone(), fix).is_some() {
            return Err(broken("the question is there twice".to_owned()));
        }
    }
    Ok(found)
}

/// Conversation and question of an id.
fn place(id: &str) -> Option<(usize, usize)> {
    let (bank, question) = id.strip_prefix("locomo_")?.split_once("_qa")?;
    Some((bank.parse().ok()?, question.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use bench_proto::label_fixes::LABEL_ERROR;

    use super::*;
    use crate::{
        OpenOptions,
        label_fixes::{Annotated, LabelFixes},
        reference,
    };

    /// Two questions of LoCoMo's schema, and the audit of a file that was made for them.
    fn small(folder: &Path, audit: &str) -> Result<LabelFixes, String> {
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("a folder");
            std::fs::write(path, text).expect("is written");
        };
        put(
            "locomo/locomo10.json",
            r#"[{"sample_id": "c-1", "conversation": {"speaker_a": "A", "speaker_b": "B", "session_1_date_time": "1:00 pm on 8 May, 2023",
                "session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "We moved on Monday."}]},
                "qa": [{"question": "When did A move? ", "answer": "Sunday", "evidence": ["D1:1"], "category": 2},
                       {"question": "How many moved?", "answer": 2, "evidence": ["D1:1"], "category": 1}]}]"#,
        );
        put("locomo-audit/errors.json", audit);
        let options = OpenOptions {
            datasets_dir: Some(folder.to_owned()),
            cache_dir: folder.join("cache"),
            allow_modified: true,
            ..OpenOptions::default()
        };
        let dataset = crate::open("locomo", &options, &|_, _| ()).expect("reads");
        let fixes = LabelFixes::open("locomo-audit", &*dataset, &options, &|_, _| ()).map_err(|e| e.to_string())?;
        let annotated = Annotated::new(Arc::from(dataset), fixes.clone());
        let (bank, outline) = (annotated.bank(0).expect("is there"), annotated.outline(0).expect("is there"));
        for (record, question) in bank.gold.iter().zip(&outline.questions) {
            assert_eq!(record.facets, question.facets, "samples and records agree");
            assert_eq!(record.fix.as_ref(), fixes.fix_of(&record.question_id));
        }
        Ok(fixes)
    }

    fn issue(id: &str, question: &str, answer: &str, category: u8, kind: &str) -> String {
        format!(
            r#"{{"question_id": "{id}", "question": "{question}", "golden_answer": "{answer}", "category": {category},
                "error_type": "{kind}", "correct_answer": "Monday", "reasoning": "x"}}"#
        )
    }

    #[test]
    fn what_is_wrong_is_noted_and_what_was_published_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let wrong = issue("locomo_0_qa0", "When did A move?", "Sunday", 2, "TEMPORAL_ERROR");
        let evidence = issue("locomo_0_qa1", "How many moved?", "2", 1, "WRONG_CITATION");
        let fixes = small(folder.path(), &format!("[{wrong}, {evidence}]")).expect("reads");
        let fix = LabelFix { kind: "temporal-error".to_owned(), gold: Some(Gold::Text("Monday".to_owned())) };
        assert_eq!((fixes.fix_of("c-1:0"), fixes.fix_of("c-1:1")), (Some(&fix), None));
        assert_eq!(fixes.spec().wrong, BTreeMap::from([("temporal".to_owned(), 1)]));
        assert!(fixes.spec().modified, "it is not the published file");
    }

    #[test]
    fn a_file_of_another_version_or_a_broken_one_is_refused_with_its_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = issue("locomo_0_qa0", "When did A move?", "Sunday", 2, "AMBIGUOUS");
        for (audit, expected) in [
            (format!("[{good}, {good}]"), "record 1 (locomo_0_qa0): the question is there twice"),
            (format!("[{}]", good.replace("Sunday", "Friday")), "golden_answer is 'Sunday' in the dataset"),
            (format!("[{}]", good.replace("When did A", "Did A")), "question is 'When did A move? ' in the dataset"),
            (format!("[{}]", good.replace(": 2", ": 5")), "category is 'temporal' in the dataset"),
            (format!("[{}]", good.replace("qa0", "qa2")), "the conversation has 2 questions"),
            (format!("[{}]", good.replace("locomo_0", "locomo_1")), "names no question"),
            (format!("[{}]", good.replace("locomo_0_qa0", "conv-26:0")), "names no question"),
            ("{}".to_owned(), "errors.json: file: invalid type: map"),
        ] {
            let refused = small(folder.path(), &audit).expect_err(expected);
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn the_published_audit_leaves_the_published_ceilings() {
        let Some(data) = reference::path("") else { return };
        let options = OpenOptions { datasets_dir: Some(data), ..OpenOptions::default() };
        let dataset = crate::open("locomo", &options, &|_, _| ()).expect("reads");
        let fixes = LabelFixes::open("locomo-audit", &*dataset, &options, &|_, _| ()).expect("is of this file");
        let wrong = &fixes.spec().wrong;
        assert!(!fixes.spec().modified && wrong.values().sum::<u64>() == 99, "{wrong:?}");
        let of: BTreeMap<&str, u64> =
            dataset.manifest().categories.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let ceilings = CATEGORIES.map(|name| format!("{:.2}", 100.0 * (1.0 - wrong[name] as f64 / of[name] as f64)));
        assert_eq!(ceilings, ["90.07", "91.90", "90.62", "95.72"]);
        assert_eq!(format!("{:.2}", 100.0 * (1.0 - 99.0 / 1540.0)), "93.57");
        let annotated = Annotated::new(Arc::from(dataset), fixes);
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for bank in 0..annotated.bank_count() {
            for record in annotated.bank(bank).expect("is there").gold {
                assert_eq!(record.fix.is_some(), record.facets.contains_key(LABEL_ERROR));
                assert!(record.fix.iter().all(|fix| fix.gold.is_some()), "{}", record.question_id);
                record
                    .facets
                    .get(LABEL_ERROR)
                    .into_iter()
                    .for_each(|kind| *kinds.entry(kind.clone()).or_default() += 1);
            }
        }
        let kinds: Vec<u64> = kinds.into_values().collect();
        assert_eq!(kinds, [13, 24, 33, 3, 26], "ambiguous, attribution, hallucination, incomplete, temporal");
    }
}
