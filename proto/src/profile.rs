//! The profile of a dataset: how its questions are put to an answerer, how answers are graded and how grades are counted.
//!
//! It stands beside the dataset's loader and travels in the run's spec, so that workers and reports need no dataset. What
//! it names (styles, rubrics) is in the crate `grading`, unless the profile brings a text of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::is_default,
    dataset::{ABSTENTION, Gold, GoldRecord},
};

/// Name of the answer style that asks for the short, exact answers that token F1 rewards.
pub const SHORT_STYLE: &str = "short";

/// Most words that a style may allow.
pub const MOST_WORDS: u32 = 2_000;

/// The methodology version of a dataset whose methodology never changed.
pub const FIRST_METHODOLOGY: u32 = 1;

pub(crate) const fn first_methodology() -> u32 {
    FIRST_METHODOLOGY
}

pub(crate) const fn is_first_methodology(version: &u32) -> bool {
    *version == FIRST_METHODOLOGY
}

/// How a dataset's questions are put, graded and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Version of the dataset's methodology: raised by one whenever its scores come to mean something else than before, by another
    /// rubric of a category, another headline or part that is left out of it, another reading of golds, a scorer that takes the place
    /// of the first, or questions that are excluded. Not by texts that only humans read, further totals or sizes of presets. Scores of
    /// two versions are not compared, and an archive keeps them in folders of their own (`v1`, `v2`).
    #[serde(default = "first_methodology", skip_serializing_if = "is_first_methodology")]
    pub methodology: u32,
    /// What the answerer is told of the form of an answer, unless category or gold record name a further style.
    pub style: Style,
    /// Further styles: questions of a category have one ([`CategoryRules::style`]), or single ones ([`GoldRecord::style`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub styles: Vec<Style>,
    /// All its categories: a question of another one cannot be graded.
    pub categories: BTreeMap<String, CategoryRules>,
    /// Rubrics that go by the kind of the gold.
    #[serde(default)]
    pub by_gold: GoldRubrics,
    /// Names of the rubrics that gold records may name for their question ([`GoldRecord::rubric`]).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub by_question: BTreeSet<String>,
    /// The rubric of all questions, in place of every other (`--rubric`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_rubric: Option<String>,
    /// Rubrics of its own by name, beside those of `grading`; names begin with `judge-`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rubrics: BTreeMap<String, OwnRubric>,
    /// The part of the categories that the headline counts: all of them unless some are left out.
    #[serde(default, skip_serializing_if = "Part::is_whole")]
    pub headline: Part,
    /// Further totals that reports print beside the headline, such as those of published results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<Part>,
    /// Figures in the way in which its published results count them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureSpec>,
    /// Sizes of the sample presets.
    #[serde(default, skip_serializing_if = "PresetSizes::is_default")]
    pub presets: PresetSizes,
    /// Answers whose scores are known: the grader self-check holds the run's scorers to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<GraderCheck>,
}

/// What the answerer is told of the form of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Style {
    /// Its name: that of a form, or one of its own.
    pub name: String,
    /// The form that is asked for; a style that has a form's name has that form.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
    /// Rules of its own, one per line, each beginning with `- `; none: those that `grading` has for the form of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// Most words of an answer; none: nothing is said of its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<u32>,
}

impl Style {
    /// The style of a form's own rules.
    #[must_use]
    pub fn from_form(form: Form) -> Self {
        Self { name: form.name().to_owned(), form, ..Self::default() }
    }

    /// The form that it asks for.
    #[must_use]
    pub fn form(&self) -> Form {
        Form::from_name(&self.name).unwrap_or(self.form)
    }
}

/// What an answer looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A few words: what token F1 and exact scorers compare.
    #[default]
    Short,
    /// Sentences, as many as the question needs.
    Free,
    /// The letter of an option.
    Choice,
}

impl Form {
    /// All forms of answers.
    pub const ALL: [Self; 3] = [Self::Short, Self::Free, Self::Choice];

    /// Its word in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => SHORT_STYLE,
            Self::Free => "free",
            Self::Choice => "choice",
        }
    }

    /// The form of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
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
    /// How scorers of texts read its golds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gold: GoldReading,
    /// Name of the style in which its questions are answered, of [`Profile::styles`]; none: the profile's first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
}

/// How scorers of texts read a gold that is a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoldReading {
    /// As one text.
    #[default]
    Whole,
    /// Only what stands before its first `;`.
    FirstPart,
    /// As several answers between commas, each compared with the parts of what was answered. Scorers without parts read the
    /// whole.
    ByParts,
}

impl GoldReading {
    /// Its word in profiles and fingerprints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::FirstPart => "first-part",
            Self::ByParts => "by-parts",
        }
    }
}

/// Names of rubrics that go by the kind of the gold, whatever the category; where there is none the category decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldRubrics {
    /// For [`Gold::Rubric`] and [`Gold::Retrieval`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<String>,
    /// For [`Gold::Abstain`] and [`Gold::Unanswerable`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abstain: Option<String>,
}

/// A rubric that a dataset brings along.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRubric {
    /// Its rules, one per line, each beginning with `- `. Task and form of the reply stand around them.
    pub rules: String,
    /// Whether the judge is not shown the expected answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_reference: bool,
    /// Whether it is for questions without an answer: what the judge is shown explains why there is none, and an answer that
    /// says so is right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswerable: bool,
    /// Whether the judge is shown the messages that the expected answer rests on; not where it is shown no such answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_evidence: bool,
    /// Name of the parser of its replies, where it is somebody else's prompt word for word: then the rules are all that is sent,
    /// with `{question}`, `{answer}` and `{response}` in it, and `{evidence}` where it shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<String>,
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

/// A figure of the headline metric as the published results of a dataset count it: a plain mean of what was asked, whatever the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureSpec {
    /// What those results call it.
    pub name: String,
    /// What has one part each in the mean; not with a facet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mean_of: MeanOf,
    /// A facet: the mean of questions with one value of it; a figure for each of its values where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facet: Option<String>,
    /// The value of the facet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How those results write it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub written: Written,
}

/// What has one part each in a mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeanOf {
    /// Every question.
    #[default]
    Questions,
    /// Every category, by the mean of its questions.
    Categories,
    /// Every bank, by the mean of its questions.
    Banks,
}

/// How published results write a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Written {
    /// Per cent with two decimals: `81.20 %`.
    #[default]
    Percent,
    /// Per cent with one decimal, of which a half is rounded up: 9 of 16 is `56.3 %`.
    PercentHalfUp,
    /// A fraction with four decimals: `0.8120`.
    FourDecimals,
}

/// Sizes of the sample presets, in questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PresetSizes {
    /// The most that `quick` takes.
    pub quick: u32,
    /// What `fair` takes of each bank, spread over its categories, unless it takes a number of the whole dataset.
    pub fair_per_bank: u32,
    /// What `fair` takes of the whole dataset, of each stratum its share; `quick` is then taken the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair: Option<u32>,
    /// The facets that divide categories into strata, wherever a sample is taken of the whole dataset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<String>,
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
        Self { quick: 50, fair_per_bank: 20, fair: None, strata: Vec::new() }
    }
}

/// An answer whose score is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderCheck {
    /// Name of the scorer.
    pub scorer: String,
    /// Category of the question.
    pub category: String,
    /// What is expected.
    pub gold: Gold,
    /// The answer that is scored.
    pub answer: String,
    /// The score that it must get, in [0, 1].
    pub score: f64,
}

impl Default for Profile {
    /// [`Self::implied`]: what runs have that store none.
    fn default() -> Self {
        Self::implied()
    }
}

impl Profile {
    /// The profile of a stored run that has none: LoCoMo's, as releases before profiles applied it to everything. Frozen:
    /// what LoCoMo's profile becomes later changes no stored run.
    #[must_use]
    pub fn implied() -> Self {
        let category = |name: &str, rubric: &str, gold| {
            (name.to_owned(), CategoryRules { rubric: Some(rubric.to_owned()), gold, ..CategoryRules::default() })
        };
        let unanswerable = |(name, rules)| (name, CategoryRules { unanswerable: true, ..rules });
        Self {
            methodology: FIRST_METHODOLOGY,
            style: Style::from_form(Form::Short),
            styles: Vec::new(),
            categories: BTreeMap::from([
                category("multi-hop", "judge-multi", GoldReading::ByParts),
                category("temporal", "judge-temporal", GoldReading::Whole),
                category("open-domain", "judge-open", GoldReading::FirstPart),
                category("single-hop", "judge-single", GoldReading::Whole),
                unanswerable(category("adversarial", "judge-abstain", GoldReading::Whole)),
            ]),
            by_gold: GoldRubrics {
                criteria: Some("judge-criteria".to_owned()),
                abstain: Some("judge-abstain".to_owned()),
            },
            by_question: BTreeSet::new(),
            only_rubric: None,
            rubrics: BTreeMap::new(),
            headline: Part::default(),
            totals: vec![Part { without: vec!["adversarial".to_owned()] }],
            figures: Vec::new(),
            presets: PresetSizes::default(),
            checks: Vec::new(),
        }
    }

    /// Whether it is the one that needs not be stored.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        *self == Self::implied()
    }

    /// Name of the rubric for a question: the only one, else the one that its gold record names, else by the kind of its gold where
    /// the profile says so, else by its category.
    #[must_use]
    pub fn rubric<'a>(&'a self, category: &str, gold: Option<&'a GoldRecord>) -> Option<&'a str> {
        self.only_rubric.as_deref().or_else(|| self.rubric_of_dataset(category, gold))
    }

    /// Name of the dataset's own rubric for a question, where no rubric is set for all questions.
    #[must_use]
    pub fn rubric_of_dataset<'a>(&'a self, category: &str, gold: Option<&'a GoldRecord>) -> Option<&'a str> {
        if let Some(own) = gold.and_then(|record| record.rubric.as_deref()) {
            return Some(own);
        }
        let by_gold = match gold.map(|record| &record.gold) {
            Some(Gold::Abstain | Gold::Unanswerable(_)) => self.by_gold.abstain.as_deref(),
            Some(Gold::Rubric(_) | Gold::Keywords(_) | Gold::Retrieval { .. } | Gold::Assertions(_)) => {
                self.by_gold.criteria.as_deref()
            }
            Some(Gold::Text(_) | Gold::AnyOf(_) | Gold::Number(_) | Gold::Choice(_)) | None => None,
        };
        by_gold.or_else(|| self.categories.get(category)?.rubric.as_deref())
    }

    /// Names of all rubrics that its questions can be graded by.
    #[must_use]
    pub fn rubric_names(&self) -> BTreeSet<&str> {
        if let Some(only) = &self.only_rubric {
            return BTreeSet::from([only.as_str()]);
        }
        let by_category = self.categories.values().filter_map(|rules| rules.rubric.as_deref());
        let GoldRubrics { criteria, abstain } = &self.by_gold;
        let by_question = self.by_question.iter().map(String::as_str);
        by_category.chain(criteria.as_deref()).chain(abstain.as_deref()).chain(by_question).collect()
    }

    /// The style in which a question is answered: the one that its gold record names, else that of its category, else the
    /// first one. A name that the profile does not have stands for the first one too: [`Self::unknown_style`] refuses it ahead.
    #[must_use]
    pub fn style_of(&self, category: &str, gold: Option<&GoldRecord>) -> &Style {
        let named = gold.and_then(|record| record.style.as_deref());
        let named = named.or_else(|| self.categories.get(category)?.style.as_deref());
        named.and_then(|name| self.styles.iter().find(|style| style.name == name)).unwrap_or(&self.style)
    }

    /// All its styles, the first one first.
    pub fn all_styles(&self) -> impl Iterator<Item = &Style> {
        std::iter::once(&self.style).chain(&self.styles)
    }

    /// The first style that a category names and the profile does not have.
    #[must_use]
    pub fn unknown_style(&self) -> Option<&str> {
        let mut named = self.categories.values().filter_map(|rules| rules.style.as_deref());
        named.find(|name| self.all_styles().all(|style| style.name != *name))
    }

    /// What holds for the questions of a category; nothing special for one that it does not have.
    #[must_use]
    pub fn rules(&self, category: &str) -> &CategoryRules {
        static PLAIN: CategoryRules =
            CategoryRules { rubric: None, unanswerable: false, gold: GoldReading::Whole, style: None };
        self.categories.get(category).unwrap_or(&PLAIN)
    }

    /// Whether the right answer to questions of a category is that there is none.
    #[must_use]
    pub fn is_unanswerable(&self, category: &str) -> bool {
        self.rules(category).unanswerable
    }

    /// Whether the right answer to a question is that there is none: by its category, or by its facet [`ABSTENTION`].
    #[must_use]
    pub fn has_no_answer(&self, category: &str, facets: &BTreeMap<String, String>) -> bool {
        self.is_unanswerable(category) || facets.get(ABSTENTION).is_some_and(|value| value == "yes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_comes_before_the_gold_and_the_gold_before_the_category() {
        let profile = Profile::implied();
        let of = |gold: Gold| GoldRecord { gold, ..GoldRecord::default() };
        let (text, abstain, criteria) = (of(Gold::Text("x".to_owned())), of(Gold::Abstain), of(Gold::Rubric(vec![])));
        let explained = of(Gold::Unanswerable("nobody said".to_owned()));
        let own = GoldRecord { rubric: Some("judge-own".to_owned()), ..abstain.clone() };
        for (category, gold, expected) in [
            ("single-hop", Some(&text), Some("judge-single")),
            ("multi-hop", Some(&text), Some("judge-multi")),
            ("temporal", Some(&text), Some("judge-temporal")),
            ("open-domain", Some(&text), Some("judge-open")),
            ("adversarial", Some(&text), Some("judge-abstain")),
            ("adversarial", None, Some("judge-abstain")),
            ("temporal", Some(&abstain), Some("judge-abstain")),
            ("temporal", Some(&explained), Some("judge-abstain")),
            ("temporal", Some(&criteria), Some("judge-criteria")),
            ("temporal", Some(&own), Some("judge-own")),
            ("of another dataset", Some(&text), None),
        ] {
            assert_eq!(profile.rubric(category, gold), expected, "{category}");
        }
        let by_category = Profile { by_gold: GoldRubrics::default(), ..profile };
        assert_eq!(by_category.rubric("temporal", Some(&abstain)), Some("judge-temporal"));
        let only = Profile { only_rubric: Some("judge-only".to_owned()), ..by_category };
        assert_eq!(only.rubric("temporal", Some(&own)), Some("judge-only"));
        assert_eq!(only.rubric_names(), BTreeSet::from(["judge-only"]), "no other counts");
    }

    #[test]
    fn a_question_is_answered_in_the_style_that_its_gold_or_category_names() {
        let mut profile = Profile::implied();
        let free =
            |name: &str, words| Style { name: name.to_owned(), form: Form::Free, rules: None, words: Some(words) };
        profile.styles = vec![free("free", 150), free("summary", 400)];
        profile.categories.get_mut("temporal").expect("is there").style = Some("free".to_owned());
        let summary = GoldRecord { style: Some("summary".to_owned()), ..GoldRecord::default() };
        let unknown = GoldRecord { style: Some("of tomorrow".to_owned()), ..GoldRecord::default() };
        for (category, gold, expected) in [
            ("single-hop", None, "short"),
            ("temporal", None, "free"),
            ("temporal", Some(&GoldRecord::default()), "free"),
            ("temporal", Some(&summary), "summary"),
            ("single-hop", Some(&summary), "summary"),
            ("single-hop", Some(&unknown), "short"),
            ("of another dataset", None, "short"),
        ] {
            assert_eq!(profile.style_of(category, gold).name, expected, "{category}");
        }
        assert_eq!((profile.styles[1].form(), profile.unknown_style()), (Form::Free, None));
        profile.styles.clear();
        assert_eq!(profile.unknown_style(), Some("free"));
        let stored = serde_json::to_value(Profile::implied()).expect("serialises");
        assert_eq!(stored["style"], serde_json::json!({"name": "short"}), "what is stored of others stays as it was");
    }

    #[test]
    fn a_question_has_no_answer_by_its_category_or_its_facet() {
        let profile = Profile::implied();
        let facets = |value: &str| BTreeMap::from([(ABSTENTION.to_owned(), value.to_owned())]);
        for (category, facets, expected) in [
            ("adversarial", BTreeMap::new(), true),
            ("temporal", BTreeMap::new(), false),
            ("temporal", facets("no"), false),
            ("temporal", facets("yes"), true),
        ] {
            assert_eq!(profile.has_no_answer(category, &facets), expected, "{category} {facets:?}");
        }
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
