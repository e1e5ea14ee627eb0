//! Two mistakes in the authors' way of judging that can be made here too, for figures that are to be held against theirs.
//!
//! Their judge never sees the question, and one half is cut to 0 when a question is added up (not where an order is graded).
//! Both are off unless settings turn them on, and are then parts of the fingerprint.

use std::collections::BTreeMap;

use bench_proto::profile::Profile;
use serde_json::Value;

use crate::DatasetError;

/// The judge does not see the question.
const WITHOUT_QUESTION: &str = "judge_without_question";
/// One half counts as 0.
const WITHOUT_HALVES: &str = "judge_without_halves";

/// Which of the authors' two mistakes are repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Defects {
    without_question: bool,
    without_halves: bool,
}

impl Defects {
    /// Reads settings, without their section.
    pub(super) fn read(given: &BTreeMap<String, Value>) -> Result<Self, DatasetError> {
        let mut defects = Self::default();
        for (key, value) in given {
            let defect = match key.as_str() {
                WITHOUT_QUESTION => &mut defects.without_question,
                WITHOUT_HALVES => &mut defects.without_halves,
                _ => {
                    return Err(DatasetError::Setting(format!(
                        "unknown setting 'beam.{key}'; dataset 'beam' has beam.{WITHOUT_QUESTION} and beam.{WITHOUT_HALVES}"
                    )));
                }
            };
            *defect = match value {
                Value::Bool(is_on) => *is_on,
                Value::String(text) if text == "true" || text == "false" => text == "true",
                _ => return Err(DatasetError::Setting(format!("beam.{key} is {value}; give true or false"))),
            };
        }
        Ok(defects)
    }

    /// Mistakes that are repeated, as settings.
    pub(super) fn settings(self) -> BTreeMap<String, Value> {
        let all = [(WITHOUT_QUESTION, self.without_question), (WITHOUT_HALVES, self.without_halves)];
        all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (name.to_owned(), true.into())).collect()
    }

    /// Puts the rubric that makes them into the place of the one that makes none.
    pub(super) fn apply(self, profile: &mut Profile) {
        let rubric = match (self.without_question, self.without_halves) {
            (false, false) => return,
            (true, false) => "judge-lines-unasked",
            (false, true) => "judge-lines-whole",
            (true, true) => "judge-lines-unasked-whole",
        };
        let of_lines = profile.categories.values_mut().filter_map(|rules| rules.rubric.as_mut());
        for name in of_lines.filter(|name| *name == "judge-lines") {
            rubric.clone_into(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, Value)]) -> Result<Defects, String> {
        let given = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Defects::read(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn both_mistakes_are_off_until_they_are_asked_for() {
        let profile: Profile = toml::from_str(super::super::PROFILE).expect("a profile");
        let rubrics = |pairs: &[(&str, Value)]| {
            let defects = read(pairs).expect("settings");
            let mut changed = profile.clone();
            defects.apply(&mut changed);
            let of = |category: &str| changed.categories[category].rubric.clone().expect("is judged");
            assert_eq!(of("event_ordering"), "judge-ordering", "which has no halves");
            (of("summarization"), defects.settings().len())
        };
        let of = |question: bool, halves: bool| {
            rubrics(&[(WITHOUT_QUESTION, question.into()), (WITHOUT_HALVES, halves.to_string().into())])
        };
        assert_eq!(rubrics(&[]), ("judge-lines".to_owned(), 0));
        assert_eq!(of(false, false), ("judge-lines".to_owned(), 0), "said to be off is off");
        assert_eq!(of(true, false), ("judge-lines-unasked".to_owned(), 1));
        assert_eq!(of(false, true), ("judge-lines-whole".to_owned(), 1));
        assert_eq!(of(true, true), ("judge-lines-unasked-whole".to_owned(), 2));
        insta::assert_snapshot!(read(&[("halves", true.into())]).expect_err("unknown"), @"unknown setting 'beam.halves'; dataset 'beam' has beam.judge_without_question and beam.judge_without_halves");
        insta::assert_snapshot!(read(&[(WITHOUT_HALVES, 1.into())]).expect_err("a number"), @"beam.judge_without_halves is 1; give true or false");
    }
}
