//! The YAML form of a suite: what is to be remembered, what is searched for, what is asked. It is that of the Astrocyte
//! harness with fields of our own, each marked; `datasets/schema/suite.schema.json` is made of these types.

use std::collections::BTreeMap;

use bench_proto::weight;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::or_nothing;
use crate::{
    DatasetError,
    broken::{broken, hint, without_mark},
};

/// The longest suite that is read, in bytes.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// What it may become with all that it stands for, in bytes: a memory of a few words weighs several times its line.
const MOST_WEIGHT: usize = 16 * MOST_BYTES;

/// A suite: one memory with its questions, or several (`scenarios`).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Suite {
    /// What it is called; the file's name without its ending where it is left out.
    pub(super) name: Option<String>,
    /// One line for people (ours).
    pub(super) description: Option<String>,
    /// What is remembered, in this order.
    pub(super) retain: Vec<Retain>,
    /// What is searched for.
    pub(super) recall: Vec<Recall>,
    /// What is asked of all that is remembered.
    pub(super) reflect: Vec<Reflect>,
    /// Several memories, each with its own lists, in place of the three lists (ours).
    pub(super) scenarios: Vec<Scenario>,
}

/// A memory of its own within a suite (ours).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Name, unique in the suite.
    pub(super) name: String,
    /// As in the suite.
    #[serde(default)]
    pub(super) retain: Vec<Retain>,
    /// As in the suite.
    #[serde(default)]
    pub(super) recall: Vec<Recall>,
    /// As in the suite.
    #[serde(default)]
    pub(super) reflect: Vec<Reflect>,
}

/// Something to remember.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Retain {
    /// The text.
    pub(super) content: String,
    /// Tags of the memory, by which a search may be filtered.
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) tags: Vec<String>,
    /// What kind of fact it is, handed to the memory system as the field `fact_type`.
    #[serde(default)]
    pub(super) fact_type: Option<String>,
    /// Further fields for the memory system.
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<BTreeMap<String, Field>>")]
    pub(super) metadata: BTreeMap<String, Field>,
    /// When it happened: `2026-03-04`, `2026-03-04T10:00` or with seconds (ours).
    #[serde(default)]
    pub(super) at: Option<String>,
    /// The number, from 1, of an earlier entry of the list that it takes the place of (ours).
    #[serde(default)]
    pub(super) replaces: Option<u32>,
}

/// A search.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Recall {
    /// What is searched for.
    pub(super) query: String,
    /// Words that tell what is wanted: a memory that holds one of them is evidence, an answer has to hold all. Empty: nothing of
    /// the memory answers it, and the right answer says so.
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expected_contains: Vec<String>,
    /// Words that tell what is not wanted: no evidence holds one, no right answer does (ours).
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expected_excludes: Vec<String>,
    /// Only memories with all of these tags.
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) tags: Vec<String>,
    /// Hits to ask for; the run's number where it is left out.
    #[serde(default)]
    pub(super) max_results: Option<u32>,
    /// When it is asked (ours).
    #[serde(default)]
    pub(super) at: Option<String>,
    /// Only what happened at this time or later (ours).
    #[serde(default)]
    pub(super) from: Option<String>,
    /// Only what happened at this time or earlier (ours).
    #[serde(default)]
    pub(super) until: Option<String>,
    /// The category that it counts in; `recall` where it is left out (ours).
    #[serde(default)]
    pub(super) category: Option<String>,
}

/// A question that is answered from several memories.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reflect {
    /// The question.
    pub(super) query: String,
    /// What the answer has to speak of: words that it holds. A memory that holds one of them is evidence.
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expected_topics: Vec<String>,
    /// Words that no right answer holds (ours).
    #[serde(default, deserialize_with = "or_nothing")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expected_excludes: Vec<String>,
    /// Hits to ask for; the run's number where it is left out (ours).
    #[serde(default)]
    pub(super) max_results: Option<u32>,
    /// The category that it counts in; `reflect` where it is left out (ours).
    #[serde(default)]
    pub(super) category: Option<String>,
}

/// A value of `metadata`: of what is no text, number or truth value the memory system gets the JSON.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Field {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    Nested(Value),
}

impl Field {
    /// As memory systems get it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Nested(value) => value.to_string(),
        }
    }
}

/// Reads a suite.
///
/// # Errors
/// What is no YAML, or no suite: with line and column, and for an unknown field the nearest one.
pub(super) fn read(path: &str, text: &[u8]) -> Result<Suite, DatasetError> {
    let broken = |place: &str, problem: String| broken(path, place, problem);
    if text.len() > MOST_BYTES {
        return Err(broken("size", format!("{} bytes, more than the {MOST_BYTES} that are read", text.len())));
    }
    // some editors put one before every file; YAML would take it for a document of its own
    let text = without_mark(text);
    let short = weight::check_nesting(text)
        .and_then(|()| weight::check(serde_norway::Deserializer::from_slice(text), MOST_WEIGHT));
    short.and_then(|()| serde_norway::from_slice(text)).map_err(|error| {
        let place = error.location().map_or_else(
            || "suite".to_owned(),
            |location| format!("line {}, column {}", location.line(), location.column()),
        );
        let text = error.to_string();
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
        broken(&place, format!("{problem}{}", hint(problem)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read("mine.yaml", text.as_bytes()).expect_err("is refused").to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_nearest_field() {
        let error = refused("name: x\nretain:\n- content: a\n  tag: [b]\n");
        assert!(error.starts_with("mine.yaml: line 4, column 3: ") && error.contains("unknown field `tag`"), "{error}");
        assert!(error.ends_with("did you mean 'tags'?"), "{error}");
        let error = refused("recall:\n- expected_contains: [a]\n");
        assert!(error.contains("line 2") && error.contains("missing field `query`"), "{error}");
        let error = refused("retain: [");
        assert!(error.contains("line "), "{error}");
        assert!(refused("retain: 3").contains("line 1"), "of another type");
        assert!(refused(&" ".repeat(MOST_BYTES + 1)).contains("more than"));
    }

    /// As Astrocyte's own suites have them: `null` for what is empty, and metadata of any depth.
    #[test]
    fn nulls_and_nested_metadata_are_read() {
        let text = "retain:\n- content: a\n  tags: null\n  metadata: {who: {name: Ann, ids: [1, 2]}, none: null, page: 7, draft: true}\n\
            - {content: b, metadata: null}\nrecall: [{query: c, expected_contains: null, expected_excludes: ~, tags: null}]\n\
            reflect: [{query: d, expected_topics: null}]\n";
        let suite = read("mine.yaml", text.as_bytes()).expect("is read");
        let [first, second] = &suite.retain[..] else { panic!("two entries: {suite:?}") };
        assert!(first.tags.is_empty() && second.metadata.is_empty());
        let fields: Vec<String> =
            first.metadata.iter().map(|(name, field)| format!("{name}={}", field.text())).collect();
        assert_eq!(fields, ["draft=true", "none=null", "page=7", r#"who={"ids":[1,2],"name":"Ann"}"#]);
        let recall = &suite.recall[0];
        assert!(recall.expected_contains.is_empty() && recall.expected_excludes.is_empty() && recall.tags.is_empty());
        assert!(suite.reflect[0].expected_topics.is_empty());
        let error = refused("retain:\n- content: a\n  tags: 3\n");
        assert!(error.contains("line 3"), "{error}");
    }

    #[test]
    fn a_text_that_is_named_once_does_not_stand_for_a_million() {
        let text = format!("retain:\n- content: &a {}\n  tags: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(300));
        assert!(refused(&text).contains("without aliases"));
        assert!(refused(&format!("retain: {}", "[".repeat(1 << 20))).contains("write it flatter"));
        let fine = read("mine.yaml", b"retain:\n- {content: a, tags: &t [b, c]}\n- {content: d, tags: *t}\n")
            .expect("is read");
        assert_eq!(fine.retain[1].tags, ["b", "c"]);
    }

    #[test]
    fn a_mark_of_the_byte_order_says_nothing() {
        let suite = read("mine.yaml", "\u{feff}name: x\nretain:\n- content: a\n".as_bytes()).expect("is read");
        assert_eq!((suite.name.as_deref(), suite.retain.len()), (Some("x"), 1));
    }

    #[test]
    fn the_schema_that_is_published_is_the_one_that_is_read() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Suite)).expect("serialises") + "\n";
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/suite.schema.json");
        if std::env::var_os("BENCH_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
            std::fs::write(&file, &schema).expect("writes");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("is published"), schema, "BENCH_BLESS=1 writes it anew");
    }
}
