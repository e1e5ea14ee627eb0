//! The three files of PrecisionMemBench: beliefs, cases, session cases. Keys of expectations are all known here, so that none
//! is passed over that somebody meant; of the rest only what is used is read.

use bench_proto::assertions::TextAssertions;
use serde::Deserialize;

/// A belief: a memory with a name.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Belief {
    #[serde(rename = "_id")]
    pub(crate) id: String,
    pub(crate) user_id: String,
    /// preference, entity, decision, open_question, relation.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) canonical_name: String,
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) why_it_matters: String,
    pub(crate) scope: Vec<String>,
    /// Always shown in its scope.
    #[serde(default)]
    pub(crate) pinned: bool,
    #[serde(default)]
    pub(crate) user_edited: bool,
    #[serde(default)]
    pub(crate) last_reinforced_at: Option<String>,
    #[serde(default)]
    pub(crate) resolved_at: Option<String>,
    #[serde(default)]
    pub(crate) superseded_by: Option<String>,
    /// Beliefs that a relation holds together.
    #[serde(default)]
    pub(crate) participants: Vec<String>,
}

impl Belief {
    pub(crate) fn is_question(&self) -> bool {
        self.kind == "open_question"
    }

    /// Neither superseded nor resolved.
    pub(crate) fn is_active(&self) -> bool {
        self.superseded_by.is_none() && self.resolved_at.is_none()
    }

    pub(crate) fn is_in(&self, scopes: &[String]) -> bool {
        self.scope.iter().any(|scope| scopes.contains(scope))
    }

    /// What providers are sent of it: name, aliases, content and what it matters for, joined by spaces.
    pub(crate) fn text(&self) -> String {
        let names = [&self.canonical_name].into_iter().chain(&self.aliases);
        let parts = names.chain([&self.content, &self.why_it_matters]).filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// A question for itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) case_id: String,
    #[serde(default)]
    pub(crate) category: Option<String>,
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    pub(crate) scope: Vec<String>,
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) budget: Option<Budget>,
    pub(crate) expect: Expect,
}

/// Places in the context.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Budget {
    /// For pinned facts and found beliefs together.
    pub(crate) max_beliefs: u32,
    /// For pinned facts; only the paper's version looks at it.
    pub(crate) max_pinned_facts: u32,
    /// For open questions.
    pub(crate) max_questions: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_beliefs: 20, max_pinned_facts: 10, max_questions: 15 }
    }
}

/// What must hold of the context.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) relevant_beliefs: ExpectList,
    pub(crate) pinned_facts: ExpectSet,
    pub(crate) open_questions: ExpectSet,
    pub(crate) persona_prelude: ExpectText,
    pub(crate) noise_check: ExpectNoise,
    /// Of the published data; no published program reads it.
    #[serde(rename = "topicRetrieval")]
    pub(crate) _topic_retrieval: serde::de::IgnoredAny,
}

/// See [`bench_proto::assertions::ListAssertions`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ExpectList {
    pub(crate) must_include: Vec<String>,
    pub(crate) must_exclude: Vec<String>,
    pub(crate) should_include: Vec<String>,
    pub(crate) should_only_include: Option<Vec<String>>,
    pub(crate) ordered_before: Vec<(String, String)>,
    pub(crate) max_count: Option<u32>,
    pub(crate) min_count: Option<u32>,
    /// A slip of the published data: it belongs one level up, where programs look for it.
    pub(crate) pinned_facts: ExpectSet,
    #[serde(rename = "_note")]
    pub(crate) _note: serde::de::IgnoredAny,
}

/// See [`bench_proto::assertions::SetAssertions`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ExpectSet {
    pub(crate) must_include: Vec<String>,
    pub(crate) must_exclude: Vec<String>,
}

/// See [`TextAssertions`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ExpectText {
    pub(crate) non_empty: bool,
    pub(crate) is_null: bool,
    pub(crate) contains: Vec<String>,
    pub(crate) must_not_contain: Vec<String>,
}

impl From<&ExpectText> for TextAssertions {
    fn from(expect: &ExpectText) -> Self {
        let ExpectText { non_empty, is_null, contains, must_not_contain } = expect.clone();
        Self { non_empty, is_null, contains, must_not_contain }
    }
}

/// What has nothing to do with the turn.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ExpectNoise {
    pub(crate) must_not_surface: Vec<String>,
}

/// A conversation of which every turn is a question, and in which beliefs change between turns.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCase {
    pub(crate) case_id: String,
    pub(crate) turns: Vec<SessionTurn>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionTurn {
    pub(crate) turn_index: u32,
    #[serde(default)]
    pub(crate) label: String,
    pub(crate) scope: Vec<String>,
    pub(crate) user_message: String,
    #[serde(default)]
    pub(crate) topics: Vec<String>,
    pub(crate) expect: Expect,
    /// A belief that is there from the next turn on.
    #[serde(default)]
    pub(crate) create_belief_at_turn: Option<Belief>,
    /// Names that a belief has from the next turn on.
    #[serde(default)]
    pub(crate) update_belief_at_turn: Option<Enrichment>,
}

/// Further names of a belief.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Enrichment {
    pub(crate) belief_id: String,
    #[serde(default)]
    pub(crate) add_aliases: Vec<String>,
    #[serde(default, rename = "_note")]
    pub(crate) _note: serde::de::IgnoredAny,
}
