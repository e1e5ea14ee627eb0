//! What is done for a question between its recall and its scores.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::is_default;

/// The steps of a question. Part of the fingerprint where it is not [`Scenario::Answer`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// It is answered from what was recalled, with dates and by the rules of the dataset's style.
    #[default]
    Answer,
    /// It is not answered: the recall itself is scored.
    RetrieveOnly,
    /// It is answered from what was recalled, without dates and without rules of reading.
    AskBasic,
    /// As [`Scenario::Answer`], with rules of reading that hold for every dataset beside those of the style.
    AskAugmented,
    /// The memory system answers by itself; for one that cannot, an answerer does ([`AnsweredBy`]).
    Reflect,
    /// A model searches by itself, as often as it likes within a limit, and answers from all that it found.
    Agentic,
}

impl Scenario {
    /// Every scenario, as help lists them.
    pub const ALL: [Self; 6] =
        [Self::Answer, Self::RetrieveOnly, Self::AskBasic, Self::AskAugmented, Self::Reflect, Self::Agentic];

    /// Its word in settings, flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::RetrieveOnly => "retrieve-only",
            Self::AskBasic => "ask-basic",
            Self::AskAugmented => "ask-augmented",
            Self::Reflect => "reflect",
            Self::Agentic => "agentic",
        }
    }

    /// The scenario of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// Whether questions get answers.
    #[must_use]
    pub const fn answers(self) -> bool {
        !matches!(self, Self::RetrieveOnly)
    }

    /// How whoever answers is to read.
    #[must_use]
    pub const fn reader_mode(self) -> ReaderMode {
        match self {
            Self::AskBasic => ReaderMode::Basic,
            _ => ReaderMode::Augmented,
        }
    }

    /// Whether it needs not be stored.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How whoever answers is to read what was recalled: `{reader_mode}` in the templates of adapters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReaderMode {
    /// Without dates and rules.
    Basic,
    /// With both.
    #[default]
    Augmented,
}

impl ReaderMode {
    /// Its word in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Augmented => "augmented",
        }
    }
}

/// Whose the answers of a run of [`Scenario::Reflect`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The memory system's own.
    Native,
    /// An answerer's, who was given what the system recalled: it has no answer of its own.
    Fallback,
}

impl AnsweredBy {
    /// Its word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Fallback => "fallback",
        }
    }
}

/// Most recalls that a model may make for a question ([`Scenario::Agentic`]).
pub const MOST_SEARCHES: u32 = 32;
/// Most rephrasings of a question.
pub const MOST_REPHRASED: u32 = 8;

/// How often is recalled for a question, where that is not once, for its own text. Part of the fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecallPlan {
    /// Rephrasings by the answerer's model that are searched for beside the question itself; what all of them find is joined by
    /// reciprocal rank.
    #[serde(skip_serializing_if = "is_default")]
    pub rephrased: u32,
    /// Most recalls that a model which searches by itself may make.
    #[serde(skip_serializing_if = "is_default")]
    pub at_most: u32,
}

impl RecallPlan {
    /// Whether it is once, for the question's own text: needs not be stored.
    #[must_use]
    pub fn is_once(&self) -> bool {
        *self == Self::default()
    }

    /// Recalls for a question, at most.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.at_most.max(self.rephrased + 1)
    }

    /// Checks what somebody has written into a run.
    ///
    /// # Errors
    /// What is wrong, with what may be given.
    pub fn check(&self, scenario: Scenario) -> Result<(), String> {
        if self.rephrased > MOST_REPHRASED {
            return Err(format!("{} rephrasings: at most {MOST_REPHRASED} are made of a question", self.rephrased));
        }
        match (scenario, self.at_most) {
            (Scenario::Agentic, 1..=MOST_SEARCHES) if self.rephrased == 0 => Ok(()),
            (Scenario::Agentic, 1..=MOST_SEARCHES) => {
                Err("a model that searches by itself words its queries itself: it takes no rephrasings".to_owned())
            }
            (Scenario::Agentic, most) => Err(format!("{most} recalls: give 1 to {MOST_SEARCHES}")),
            (_, 0) => Ok(()),
            (other, _) => Err(format!(
                "only in the scenario agentic is there a number of recalls to choose, and this one is {}",
                other.name()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_a_plan_is_held_to_its_limits() {
        for scenario in Scenario::ALL {
            assert_eq!(Scenario::from_name(scenario.name()), Some(scenario));
            assert_eq!(serde_json::to_value(scenario).expect("serialises"), scenario.name());
        }
        let plan = |rephrased, at_most| RecallPlan { rephrased, at_most };
        for (scenario, plan, fits) in [
            (Scenario::Answer, plan(0, 0), true),
            (Scenario::Answer, plan(MOST_REPHRASED, 0), true),
            (Scenario::Answer, plan(MOST_REPHRASED + 1, 0), false),
            (Scenario::Answer, plan(0, 3), false),
            (Scenario::Agentic, plan(0, MOST_SEARCHES), true),
            (Scenario::Agentic, plan(0, 0), false),
            (Scenario::Agentic, plan(0, MOST_SEARCHES + 1), false),
            (Scenario::Agentic, plan(1, 3), false),
        ] {
            assert_eq!(plan.check(scenario).is_ok(), fits, "{scenario:?} {plan:?}");
        }
        assert_eq!([plan(0, 0).most(), plan(3, 0).most(), plan(0, 5).most()], [1, 4, 5]);
    }
}
