//! The settings of the long dialogues: `horizon.turns`, `horizon.questions`, `horizon.seed`, `horizon.seeds`,
//! `horizon.holdout`; of the compatible ones also `horizon.categories`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Edition;
use crate::{DatasetError, generator::settings::Given};

/// Effective settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Turns of a dialogue.
    pub(super) turns: usize,
    /// Questions asked about a dialogue, as far as it has that many.
    pub(super) questions: usize,
    /// Seed of the first dialogue; each further one has the next number.
    pub(super) seed: i64,
    /// Number of dialogues.
    pub(super) seeds: usize,
    /// Ask the other half of the questions.
    pub(super) holdout: bool,
    /// Categories of questions: all, or without the last three of the fifteen.
    pub(super) categories: usize,
}

impl Settings {
    /// Settings of an edition when nothing is set.
    pub(super) fn of_edition(edition: Edition) -> Self {
        let seeds = match edition {
            Edition::Own => 3,
            Edition::Compatible => 1,
        };
        Self { turns: 1000, questions: 100, seed: 42, seeds, holdout: false, categories: 15 }
    }

    /// Reads settings, without their prefix.
    pub(super) fn read(edition: Edition, given: &BTreeMap<String, Value>) -> Result<Self, DatasetError> {
        let mut settings = Self::of_edition(edition);
        for (key, value) in given {
            let given = Given { name: &format!("horizon.{key}"), value };
            match key.as_str() {
                "turns" => settings.turns = given.number(edition.least_turns()..=100_000)?,
                "questions" => settings.questions = given.number(1..=10_000)?,
                "seeds" => settings.seeds = given.number(1..=1_000)?,
                "seed" => settings.seed = given.number(i64::MIN..=i64::MAX - 1_000)?,
                "holdout" => settings.holdout = given.truth()?,
                "categories" if edition == Edition::Compatible => {
                    settings.categories = given.number(12..=15).unwrap_or_default();
                    if !matches!(settings.categories, 12 | 15) {
                        return Err(given.wrong("12 or 15"));
                    }
                }
                _ => return Err(unknown(edition, key)),
            }
        }
        Ok(settings)
    }

    /// The settings by name, without their prefix.
    pub(super) fn to_map(self, edition: Edition) -> BTreeMap<String, Value> {
        let mut map = BTreeMap::from([
            ("holdout".to_owned(), Value::from(self.holdout)),
            ("questions".to_owned(), Value::from(self.questions)),
            ("seed".to_owned(), Value::from(self.seed)),
            ("seeds".to_owned(), Value::from(self.seeds)),
            ("turns".to_owned(), Value::from(self.turns)),
        ]);
        if edition == Edition::Compatible {
            map.insert("categories".to_owned(), Value::from(self.categories));
        }
        map
    }
}

fn unknown(edition: Edition, key: &str) -> DatasetError {
    let more = if edition == Edition::Compatible { ", horizon.categories" } else { "" };
    DatasetError::Setting(format!(
        "unknown setting 'horizon.{key}'; dataset '{}' has horizon.turns, horizon.questions, horizon.seed, \
         horizon.seeds, horizon.holdout{more}",
        edition.name()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(edition: Edition, key: &str, value: Value) -> Result<Settings, String> {
        Settings::read(edition, &BTreeMap::from([(key.to_owned(), value)])).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_and_texts() {
        let own = |key, value| read(Edition::Own, key, value).expect("a setting");
        assert_eq!(own("turns", json!("300")), Settings { turns: 300, ..Settings::of_edition(Edition::Own) });
        assert_eq!(own("seed", json!(-7)).seed, -7);
        assert!(own("holdout", json!("true")).holdout && !own("holdout", json!(false)).holdout);
        assert_eq!(read(Edition::Compatible, "categories", json!(12)).expect("twelve").categories, 12);
        let settings = own("turns", json!(500));
        let again = Settings::read(Edition::Own, &settings.to_map(Edition::Own)).expect("its own");
        assert_eq!(again, settings);
    }

    #[test]
    fn other_settings_and_values_are_named() {
        let own = |key, value| read(Edition::Own, key, value).expect_err("wrong");
        insta::assert_snapshot!(own("turn", json!(1)), @"unknown setting 'horizon.turn'; dataset 'long-horizon' has horizon.turns, horizon.questions, horizon.seed, horizon.seeds, horizon.holdout");
        insta::assert_snapshot!(own("turns", json!(99)), @"horizon.turns is 99; give an integer from 100 to 100000");
        insta::assert_snapshot!(own("seeds", json!(1.5)), @"horizon.seeds is 1.5; give an integer from 1 to 1000");
        insta::assert_snapshot!(own("holdout", json!("yes")), @r#"horizon.holdout is "yes"; give true or false"#);
        assert!(own("categories", json!(12)).contains("unknown setting"));
        let categories = read(Edition::Compatible, "categories", json!(13)).expect_err("wrong");
        insta::assert_snapshot!(categories, @"horizon.categories is 13; give 12 or 15");
    }
}
