//! Suites of users in YAML, as [`crate::sets::suite`] reads them.

use std::{collections::BTreeMap, fs::File, io::Read};

use bench_proto::{
    dataset::{Bank, Gold},
    profile::{CategoryRules, Form, GoldRubrics, PresetSizes, Profile, Style},
};

use super::{Counted, Keys, OwnFile, word};
use crate::{
    Dataset, DatasetError,
    loaded::Loaded,
    sets::{Said, suite},
};

/// Version of this reader; of files in which `am` or `pm` stands behind a time it is the next one: these words were passed over, and
/// all other files are read as before.
const VERSION: u32 = 2;
/// One byte more than the longest suite that is read, so that a longer one is told from it.
const MOST_BYTES: u64 = suite::MOST_BYTES as u64 + 1;

pub(super) fn is_it(ending: &str, _: Option<&Keys>) -> bool {
    matches!(ending, "yaml" | "yml")
}

pub(super) fn open(file: &OwnFile) -> Result<Box<dyn Dataset>, DatasetError> {
    let io = |source| DatasetError::io(&file.path, source);
    let mut text = Vec::new();
    File::open(&file.path).map_err(io)?.take(MOST_BYTES).read_to_end(&mut text).map_err(io)?;
    let suite = suite::read(&file.shown.display().to_string(), &file.name, &text)?;
    let mut counted = Counted::default();
    suite.banks.iter().for_each(|bank| counted.add(&bank.outline()));
    let said = Said {
        // written for people
        name: suite.name.as_deref().map(name),
        description: suite.description,
        abstention_phrases: Some(["no information available", "not mentioned"].map(str::to_owned).to_vec()),
        scorers: Some(vec!["rubric".to_owned()]),
        ..Said::default()
    };
    let version = VERSION + u32::from(suite.notes.has_half_days);
    let about = file.about(said, version, profile(&suite.banks), counted, suite.notes)?;
    Ok(Box::new(Loaded::with(about, suite.banks)))
}

/// What people call a suite, as a name; what has a way into another folder in it is refused with its own characters.
fn name(said: &str) -> String {
    if said.contains(['/', '\\']) { said.to_owned() } else { word(said) }
}

/// How the questions of a suite are put, graded and counted: as those of this project's own suites.
fn profile(banks: &[Bank]) -> Profile {
    let mut categories: BTreeMap<String, CategoryRules> = BTreeMap::new();
    for (question, gold) in banks.iter().flat_map(|bank| bank.questions.iter().zip(&bank.gold)) {
        let is_answered = !matches!(gold.gold, Gold::Abstain);
        let rules = categories.entry(question.category.clone()).or_insert_with(|| CategoryRules {
            rubric: Some("judge-abstain".to_owned()),
            unanswerable: true,
            ..CategoryRules::default()
        });
        if is_answered {
            let rubric = if question.category == "reflect" { "judge-reflect" } else { "judge-criteria" };
            (rules.rubric, rules.unanswerable) = (Some(rubric.to_owned()), false);
        }
    }
    Profile {
        categories,
        styles: vec![Style { words: Some(120), ..Style::from_form(Form::Free) }],
        by_gold: GoldRubrics { abstain: Some("judge-abstain".to_owned()), ..GoldRubrics::default() },
        presets: PresetSizes { fair: Some(200), ..PresetSizes::default() },
        totals: Vec::new(),
        ..Profile::implied()
    }
}
