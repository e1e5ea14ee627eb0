//! Question sets of users, as [`crate::sets::question_set`] reads them. What is to be remembered stands in the same file, or in
//! one of the same name with `.memories.jsonl` at its end.

use std::collections::BTreeMap;

use bench_proto::{
    dataset::Bank,
    profile::{CategoryRules, GoldRubrics, Part, PresetSizes, Profile},
};

use super::{Counted, Keys, OwnFile, unpacked_name};
use crate::{
    Dataset, DatasetError,
    loaded::Loaded,
    sets::{Said, question_set::Set},
};

/// Version of this reader; of files in which `am` or `pm` stands behind a time it is the next one: these words were passed over, and
/// all other files are read as before.
const VERSION: u32 = 2;
/// Rubric of questions of which any one of several texts is right.
const ANY_OF: &str = "judge-any-of";

pub(super) fn is_it(ending: &str, keys: Option<&Keys>) -> bool {
    ending == "jsonl" && keys.is_some()
}

pub(super) fn open(file: &OwnFile) -> Result<Box<dyn Dataset>, DatasetError> {
    let mut set = Set::default();
    // what is remembered comes first, so that evidence may name all of it
    let name = format!("{}.memories.jsonl", stem(file));
    let beside = file.shown.with_file_name(&name);
    let beside = beside.is_file().then(|| OwnFile::plain(&beside, file)).transpose()?;
    for (file, may_ask) in beside.iter().map(|beside| (beside, false)).chain([(file, true)]) {
        let path = file.shown.display().to_string();
        for line in file.lines()? {
            set.add(&path, &line?, may_ask)?;
        }
    }
    let packed = file.shown.with_file_name(format!("{name}.gz"));
    if beside.is_none() && packed.is_file() {
        let problem = "lies beside the set, where memories are read unpacked only; unpack it".to_owned();
        return Err(file.broken((format!("{name}.gz"), problem)));
    }
    let empty = |problem: &str| Err(file.broken(("file".to_owned(), problem.to_owned())));
    match set.has() {
        (false, _) => return empty("asks nothing: it has no line with a question"),
        (_, false) => {
            return empty(&format!(
                "has nothing to remember: add lines {{\"session\": …}} or {{\"memory\": …}}, or put them into {name} beside it"
            ));
        }
        _ => {}
    }
    let said = set.said.take().unwrap_or_default();
    let said = Said { scorers: Some(said.scorers.unwrap_or_else(|| vec!["substring".to_owned()])), ..said };
    let given = set.given();
    let (bank, notes) = set.settle();
    let mut counted = Counted::default();
    counted.add(&bank.outline());
    let file = OwnFile { beside: beside.map(Box::new), ..file.clone() };
    let version = VERSION + u32::from(notes.has_half_days);
    let about = file.about(said, version, profile(&bank), counted, notes)?;
    Ok(Box::new(Loaded::with(about, vec![bank]).with_given(given)))
}

/// The file's name without its ending.
fn stem(file: &OwnFile) -> String {
    let name = file.shown.file_name().unwrap_or_default().to_string_lossy();
    let name = unpacked_name(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

/// How the questions of a set are put, graded and counted. A category is unanswerable when nothing answers any question of it.
fn profile(bank: &Bank) -> Profile {
    let mut categories: BTreeMap<String, CategoryRules> = BTreeMap::new();
    for (question, gold) in bank.questions.iter().zip(&bank.gold) {
        let rules = categories.entry(question.category.clone()).or_insert_with(|| CategoryRules {
            rubric: Some("judge-abstain".to_owned()),
            unanswerable: true,
            ..CategoryRules::default()
        });
        if !gold.gold.is_unanswerable() {
            (rules.rubric, rules.unanswerable) = (Some(ANY_OF.to_owned()), false);
        }
    }
    Profile {
        categories,
        by_gold: GoldRubrics { abstain: Some("judge-abstain".to_owned()), ..GoldRubrics::default() },
        headline: Part::default(),
        totals: Vec::new(),
        presets: PresetSizes { fair: Some(200), ..PresetSizes::default() },
        checks: Vec::new(),
        ..Profile::implied()
    }
}
