//! What of a memory must and must not surface when a question is asked: assertions over the context that a harness puts
//! together of a system's hits and of what it knows itself.
//!
//! All ids are those of the bank's memories. A context has four parts: what the system found (`relevant`), the facts and
//! the open questions that are pinned, and a text about the user (`prelude`). The last three come from the harness's own
//! copy of the memories ([`Beside`]), so that assertions about them hold or fail whatever the system does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::call::is_default;

/// The assertions of a question, part by part. A part without assertions is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Assertions {
    /// How precision and recall are counted.
    #[serde(skip_serializing_if = "is_default")]
    pub counting: Counting,
    /// Over what the memory system finds.
    #[serde(skip_serializing_if = "is_default")]
    pub relevant: ListAssertions,
    /// Over the pinned facts.
    #[serde(skip_serializing_if = "is_default")]
    pub pinned: SetAssertions,
    /// Over the open questions.
    #[serde(skip_serializing_if = "is_default")]
    pub questions: SetAssertions,
    /// Over the text about the user.
    #[serde(skip_serializing_if = "is_default")]
    pub prelude: TextAssertions,
    /// Noise: none of these among what is found or pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_not_surface: Vec<String>,
    /// What the harness puts beside the hits.
    #[serde(skip_serializing_if = "is_default")]
    pub beside: Beside,
}

/// How precision and recall are counted: the three ways of the programs that published figures come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Finding nothing where something is expected has precision 0.
    #[default]
    Case,
    /// Finding nothing has no precision, so that silence costs none.
    Paper,
    /// The turn of a session: as [`Counting::Paper`], and what is pinned counts as found, so that precision can exceed 1.
    /// Only turns have a drift.
    Turn,
}

/// What must hold of what the system found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListAssertions {
    /// Exactly these are found, in any order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_only_include: Option<Vec<String>>,
    /// All of these are found or pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_include: Vec<String>,
    /// None of these is found or pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_exclude: Vec<String>,
    /// As [`Self::must_include`]: published figures make no difference, except that these count in no recall.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_include: Vec<String>,
    /// Both are found, the first before the second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ordered_before: Vec<(String, String)>,
    /// At most so many are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u32>,
    /// At least so many are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u32>,
}

/// What must hold of a set of ids.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetAssertions {
    /// All of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_include: Vec<String>,
    /// None of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_exclude: Vec<String>,
}

/// What must hold of a text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextAssertions {
    /// There is one.
    #[serde(skip_serializing_if = "is_default")]
    pub non_empty: bool,
    /// There is none.
    #[serde(skip_serializing_if = "is_default")]
    pub is_null: bool,
    /// All of these, letter by letter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// None of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_not_contain: Vec<String>,
}

/// What the harness knows itself and puts beside a system's hits, as of the moment when the question is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// All memories that there are: hits of other ids are dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// Memories that are a new text of an older one: their hits count as hits of that one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stands_for: BTreeMap<String, String>,
    /// Memories that the harness shows without being asked, so that hits of them are dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The pinned facts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// The open questions, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// The text about the user; empty when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prelude: String,
    /// For each relation the memories that are added to the hits when it is among them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub participants: BTreeMap<String, Vec<String>>,
    /// Places for pinned facts and found memories together; pinned facts come first.
    pub max_memories: u32,
    /// Places for open questions.
    pub max_questions: u32,
    /// Nothing is searched for (the query is blank, or there is no place): hits are dropped.
    #[serde(skip_serializing_if = "is_default")]
    pub unsearched: bool,
    /// Memories of [`ListAssertions::must_include`] that are pinned somewhere: they count in no precision or recall.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned_elsewhere: Vec<String>,
    /// Memories of other topics that the session has drifted through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// The question is about what is left out by design, so that passing it with nothing found is a structural pass.
    #[serde(skip_serializing_if = "is_default")]
    pub structural: bool,
}

impl Assertions {
    /// The memories that count in precision and recall, without repeats.
    #[must_use]
    pub fn expected(&self) -> Vec<&str> {
        let ListAssertions { should_only_include, must_include, .. } = &self.relevant;
        let counts = |id: &&String| self.counting == Counting::Turn || !self.beside.pinned_elsewhere.contains(id);
        let mut expected: Vec<&str> = Vec::new();
        let ids: Vec<&String> = match should_only_include {
            Some(exactly) => exactly.iter().collect(),
            None => must_include.iter().filter(counts).collect(),
        };
        for id in ids {
            if !expected.contains(&id.as_str()) {
                expected.push(id);
            }
        }
        expected
    }

    /// What is expected, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let expected = self.expected();
        if expected.is_empty() { "nothing".to_owned() } else { expected.join("\n") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn what_is_pinned_elsewhere_is_not_expected_of_a_case() {
        let relevant = ListAssertions { must_include: ids(&["M1", "M2", "M2", "M3"]), ..ListAssertions::default() };
        let beside = Beside { pinned_elsewhere: ids(&["M3"]), ..Beside::default() };
        let mut assertions = Assertions { relevant, beside, ..Assertions::default() };
        assert_eq!(assertions.expected(), ["M1", "M2"]);
        assert_eq!(assertions.text(), "M1\nM2");
        assertions.counting = Counting::Turn;
        assert_eq!(assertions.expected(), ["M1", "M2", "M3"]);
        assertions.relevant.should_only_include = Some(Vec::new());
        assert_eq!(assertions.text(), "nothing");
    }

    #[test]
    fn what_says_nothing_is_not_written() {
        let assertions = Assertions {
            relevant: ListAssertions { should_only_include: Some(ids(&["M4"])), ..ListAssertions::default() },
            beside: Beside { known: ids(&["M4"]), max_memories: 20, max_questions: 15, ..Beside::default() },
            ..Assertions::default()
        };
        let json = serde_json::to_string(&assertions).expect("serialises");
        insta::assert_snapshot!(json, @r#"{"relevant":{"should_only_include":["M4"]},"beside":{"known":["M4"],"max_memories":20,"max_questions":15}}"#);
        assert_eq!(serde_json::from_str::<Assertions>(&json).expect("reads"), assertions);
    }
}
