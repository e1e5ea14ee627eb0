//! The profile of a dataset: how its questions are put to an answerer, how answers are graded and how grades are counted.
//!
//! It stands beside the dataset's loader and travels in the run's spec, so that workers and reports need no dataset. What
//! it names (styles, rubrics) is in the crate `grading`, unless the profile brings a text of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::Gold;

/// Name of the answer style that asks for the short, exact answers that token F1 rewards.
pub const SHORT_STYLE: &str = "short";

/// How a dataset's questions are put, graded and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What the answerer is told of the form of an answer.
    pub style: Style,
    /// All its categories: a question of another one cannot be graded.
    pub categories: BTreeMap<String, CategoryRules>,
    /// Rubrics that go by the kind of the gold.
    #[serde(default)]
    pub by_gold: GoldRubrics,
    /// Rubrics of its own by name, beside those of `grading`; names begin with `judge-`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rubrics: BTreeMap<String, OwnRubric>,
    /// The part of the categories that the headline counts: all of them unless some are left out.
    #[serde(default, skip_serializing_if = "Part::is_whole")]
    pub headline: Part,
    /// Further totals that reports print beside the headline, such as those of published results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<Part>,
    /// Sizes of the sample presets.
    #[serde(default, skip_serializing_if = "PresetSizes::is_default")]
    pub presets: PresetSizes,
    /// Answers whose scores are known: the grader self-check holds the run's scorers to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<GraderCheck>,
}

/// What the answerer is told of the form of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Style {
    /// Its name.
    pub name: String,
    /// Rules of its own, one per line, each beginning with `- `; none: those that `grading` has under the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

/// What holds for the questions of a category.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryRules {
    /// Name of the rubric by which model judges grade it; none: it is for deterministic scorers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Nothing that was remembered answers them: the right answer says so, and their evidence misleads by design.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswerable: bool,
}

/// Names of rubrics that go by the kind of the gold, whatever the category; where there is none the category decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldRubrics {
    /// For [`Gold::Rubric`] and [`Gold::Retrieval`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<String>,
    /// For [`Gold::Abstain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abstain: Option<String>,
}

/// A rubric that a dataset brings along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRubric {
    /// Its rules, one per line, each beginning with `- `. Task and form of the reply stand around them.
    pub rules: String,
    /// Whether the judge is not shown the expected answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_reference: bool,
}

/// A part of the categories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The categories that it leaves out; none: it is the whole.
    #[serde(default)]
    pub without: Vec<String>,
}

impl Part {
    /// Whether no category is left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.without.is_empty()
    }

    /// Whether questions of a category count.
    #[must_use]
    pub fn counts(&self, category: &str) -> bool {
        self.without.iter().all(|left_out| left_out != category)
    }

    /// `all categories`, or `without adversarial`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_whole() { "all categories".to_owned() } else { format!("without {}", self.without.join(", ")) }
    }

    /// Its name as a word for machines: `all_categories`, `without_adversarial`.
    #[must_use]
    pub fn word(&self) -> String {
        self.name().replace([',', '-'], "").replace(' ', "_")
    }
}

/// Sizes of the sample presets, in questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PresetSizes {
    /// The most that `quick` takes.
    pub quick: u32,
    /// What `fair` takes of each bank, spread over its categories.
    pub fair_per_bank: u32,
}

impl PresetSizes {
    /// Whether they are those of LoCoMo, which most datasets keep.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for PresetSizes {
    fn default() -> Self {
        Self { quick: 50, fair_per_bank: 20 }
    }
}

/// An answer whose score is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderCheck {
    /// The scorer.
    pub scorer: String,
    /// Category of the question.
    pub category: String,
    /// What is expected.
    pub gold: Gold,
    /// What is answered.
    pub answer: String,
    /// The score that it must get, in [0, 1].
    pub score: f64,
}

impl Profile {
    /// The profile of a stored run that has none: LoCoMo's, as releases before profiles applied it to everything. Frozen:
    /// what LoCoMo's profile becomes later changes no stored run.
    #[must_use]
    pub fn implied() -> Self {
        let category = |name: &str, rubric: &str, unanswerable| {
            (name.to_owned(), CategoryRules { rubric: Some(rubric.to_owned()), unanswerable })
        };
        Self {
            style: Style { name: SHORT_STYLE.to_owned(), rules: None },
            categories: BTreeMap::from([
                category("multi-hop", "judge-multi", false),
                category("temporal", "judge-temporal", false),
                category("open-domain", "judge-open", false),
                category("single-hop", "judge-single", false),
                category("adversarial", "judge-abstain", true),
            ]),
            by_gold: GoldRubrics {
                criteria: Some("judge-criteria".to_owned()),
                abstain: Some("judge-abstain".to_owned()),
            },
            rubrics: BTreeMap::new(),
            headline: Part::default(),
            totals: vec![Part { without: vec!["adversarial".to_owned()] }],
            presets: PresetSizes::default(),
            checks: Vec::new(),
        }
    }

    /// Whether it is the one that needs not be stored.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        *self == Self::implied()
    }

    /// Name of the rubric for a question: by its gold where the profile says so, else by its category.
    #[must_use]
    pub fn rubric(&self, category: &str, gold: Option<&Gold>) -> Option<&str> {
        let by_gold = match gold {
            Some(Gold::Abstain) => self.by_gold.abstain.as_deref(),
            Some(Gold::Rubric(_) | Gold::Retrieval { .. }) => self.by_gold.criteria.as_deref(),
            Some(Gold::Text(_) | Gold::Number(_) | Gold::Choice(_)) | None => None,
        };
        by_gold.or_else(|| self.categories.get(category)?.rubric.as_deref())
    }

    /// Names of all rubrics that its questions can be graded by.
    #[must_use]
    pub fn rubric_names(&self) -> BTreeSet<&str> {
        let by_category = self.categories.values().filter_map(|rules| rules.rubric.as_deref());
        let GoldRubrics { criteria, abstain } = &self.by_gold;
        by_category.chain(criteria.as_deref()).chain(abstain.as_deref()).collect()
    }

    /// Whether the right answer to questions of a category is that there is none.
    #[must_use]
    pub fn is_unanswerable(&self, category: &str) -> bool {
        self.categories.get(category).is_some_and(|rules| rules.unanswerable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gold_comes_before_the_category() {
        let profile = Profile::implied();
        let text = Gold::Text("x".to_owned());
        for (category, gold, expected) in [
            ("single-hop", Some(&text), Some("judge-single")),
            ("multi-hop", Some(&text), Some("judge-multi")),
            ("temporal", Some(&text), Some("judge-temporal")),
            ("open-domain", Some(&text), Some("judge-open")),
            ("adversarial", Some(&text), Some("judge-abstain")),
            ("adversarial", None, Some("judge-abstain")),
            ("temporal", Some(&Gold::Abstain), Some("judge-abstain")),
            ("temporal", Some(&Gold::Rubric(vec![])), Some("judge-criteria")),
            ("of another dataset", Some(&text), None),
        ] {
            assert_eq!(profile.rubric(category, gold), expected, "{category}");
        }
        let by_category = Profile { by_gold: GoldRubrics::default(), ..profile };
        assert_eq!(by_category.rubric("temporal", Some(&Gold::Abstain)), Some("judge-temporal"));
    }

    #[test]
    fn parts_have_names_for_people_and_machines() {
        let part = |without: &[&str]| Part { without: without.iter().map(|name| (*name).to_owned()).collect() };
        let names = |part: Part| [part.name(), part.word()];
        assert_eq!(names(part(&[])), ["all categories", "all_categories"]);
        assert_eq!(names(part(&["adversarial"])), ["without adversarial", "without_adversarial"]);
        assert_eq!(names(part(&["a", "b c"])), ["without a, b c", "without_a_b_c"]);
        assert!(part(&["a"]).counts("b") && !part(&["a"]).counts("a"));
    }
}
