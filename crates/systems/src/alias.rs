//! `alias`: finds what the question names. A memory has a name and aliases, and is found where one of them stands in the
//! question, word for word or, in long words, with one slip; texts are not searched. It finds nothing where
//! nothing is named, so it shows how far names alone lead.
//!
//! Names of a memory: its aliases are the lines of its field `aliases`, its name is what its text has before the first of
//! them, or its first word where it has none. The name of a turn is its speaker.

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::Memory, failure::Failure, step::RetrievedHit};

use crate::{
    BuildContext, BuildError, Capabilities, MemorySystem, SystemSettings,
    documents::{self, Document},
    from_items::{FromItems, Lookup, Search},
    settings::{Setting, number},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

const NAME_WEIGHT: Setting =
    Setting { name: "alias.name_weight", description: "what the name of a memory counts, 0 to 100", default: "2" };
const ALIAS_WEIGHT: Setting =
    Setting { name: "alias.alias_weight", description: "what each alias counts, 0 to 100", default: "1" };
const NEAR: Setting = Setting {
    name: "alias.near",
    description: "share of it that a name with one wrong letter counts, 0 to 1; 0: none are found",
    default: "0.5",
};

pub(crate) const SETTINGS: &[Setting] = &[NAME_WEIGHT, ALIAS_WEIGHT, NEAR];

/// Shorter words have to be right: one letter makes another word of them.
const SHORTEST_NEAR: usize = 5;
/// Letters at the beginning that have to be right.
const SAME_PREFIX: usize = 2;

struct Alias {
    name_weight: f64,
    alias_weight: f64,
    near: f64,
}

pub(crate) fn build(settings: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let name_weight = number(settings, &NAME_WEIGHT, 0.0, 100.0)?;
    let alias_weight = number(settings, &ALIAS_WEIGHT, 0.0, 100.0)?;
    let near = number(settings, &NEAR, 0.0, 1.0)?;
    Ok(FromItems::system(Capabilities::from_items(VERSION), Alias { name_weight, alias_weight, near }))
}

#[async_trait]
impl Search for Alias {
    async fn search(&self, Lookup { content, query, .. }: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure> {
        let asked = words(query.text);
        let documents = documents::visible_to(content, query.visible_entries, query.filter)?;
        let mut found: Vec<(f64, Document<'_>)> = documents
            .into_iter()
            .filter(|document| holds(*document))
            .map(|document| (self.score(&asked, document), document))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        // stable: equal ones stay in the order of the stream
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(query.k as usize);
        Ok(found.into_iter().map(|(score, document)| document.hit(Some(score))).collect())
    }
}

impl Alias {
    /// The sum over all names of a document that stand in the question.
    fn score(&self, asked: &[String], document: Document<'_>) -> f64 {
        let (name, aliases) = names(document);
        let counts = |name: &str, weight: f64| weight * self.stands_in(asked, &words(name));
        counts(name, self.name_weight) + aliases.iter().map(|alias| counts(alias, self.alias_weight)).sum::<f64>()
    }

    /// 1 where the name stands in the question, [`Alias::near`] where it does with one letter wrong, else 0.
    fn stands_in(&self, asked: &[String], name: &[String]) -> f64 {
        if name.is_empty() {
            return 0.0;
        }
        let mut best = 0.0_f64;
        for said in asked.windows(name.len()) {
            let wrong: Vec<_> = said.iter().zip(name).filter(|(said, meant)| said != meant).collect();
            match wrong[..] {
                [] => return 1.0,
                [(said, meant)] if is_near(said, meant) => best = self.near,
                _ => {}
            }
        }
        best
    }
}

/// Whether a document is still true, as far as it says so itself.
fn holds(document: Document<'_>) -> bool {
    match document {
        Document::Turn(..) => true,
        Document::Memory(Memory { fields, .. }) => {
            !fields.contains_key("superseded_by") && fields.get("resolved").is_none_or(|resolved| resolved != "true")
        }
    }
}

/// Name and aliases of a document.
fn names(document: Document<'_>) -> (&str, Vec<&str>) {
    match document {
        Document::Turn(_, turn) => (&turn.speaker, Vec::new()),
        Document::Memory(memory) => {
            let aliases: Vec<&str> = memory.fields.get("aliases").into_iter().flat_map(|lines| lines.lines()).collect();
            let before = aliases.first().and_then(|first| Some(memory.text.split_once(first)?.0.trim()));
            let first_word = || memory.text.split_whitespace().next().unwrap_or_default();
            (before.filter(|name| !name.is_empty()).unwrap_or_else(first_word), aliases)
        }
    }
}

/// The words of a text in their order: letters and digits, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Whether a long word is another one but for a letter that is wrong, missing or too much, or two neighbours that are swapped.
fn is_near(said: &str, meant: &str) -> bool {
    meant.chars().count() >= SHORTEST_NEAR
        && said.chars().take(SAME_PREFIX).eq(meant.chars().take(SAME_PREFIX))
        && strsim::osa_distance(said, meant) == 1
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{BankContent, StreamEntry};

    use super::*;
    use crate::{BankRef, RecallQuery};

    fn memory(id: &str, text: &str, aliases: &[&str], fields: &[(&str, &str)]) -> StreamEntry {
        let mut memory = Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() };
        memory.fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !aliases.is_empty() {
            memory.fields.insert("aliases".to_owned(), aliases.join("\n"));
        }
        StreamEntry::Memory(memory)
    }

    async fn found(settings: &SystemSettings, asked: &str, k: u32) -> Vec<(String, f64)> {
        let entries = vec![
            memory("M1", "framework_fastify Fastify express Uses Fastify for services.", &["Fastify", "express"], &[]),
            memory("M2", "deck oven stone oven Its burner is lit first.", &["stone oven"], &[]),
            memory("M3", "linting_v0 ESLint Old rules.", &["ESLint"], &[("superseded_by", "M4")]),
            memory("M4", "linting_v1 ESLint New rules.", &["ESLint"], &[("resolved", "false")]),
            memory("M5", "tabs_or_spaces indent Was decided.", &["indent"], &[("resolved", "true")]),
            memory("M6", "recommendation_style Prefers one.", &[], &[]),
        ];
        let content = BankContent { bank_id: "b".to_owned(), speakers: vec![], entries };
        let bank = BankRef::outside_of_runs("b", content);
        let query = RecallQuery { text: asked, k, visible_entries: u32::MAX, ..RecallQuery::default() };
        let system = build(settings, &BuildContext::default()).expect("builds");
        let hits = system.recall(&bank, &query).await.expect("recalls").hits;
        hits.into_iter().map(|hit| (hit.id, hit.score.expect("has one"))).collect()
    }

    async fn ids(asked: &str) -> Vec<String> {
        found(&SystemSettings::new(), asked, 10).await.into_iter().map(|(id, _)| id).collect()
    }

    #[tokio::test]
    async fn what_is_named_is_found_and_nothing_else() {
        assert_eq!(ids("Shall I take Express here?").await, ["M1"]);
        assert_eq!(ids("the DECK-OVEN, is it lit?").await, ["M2"], "by its name");
        assert_eq!(ids("lights in the oven, stone cold").await, Vec::<String>::new(), "words apart are no name");
        assert_eq!(ids("expressive services").await, Vec::<String>::new(), "no part of a word");
        assert_eq!(ids("your recommendation style?").await, ["M6"], "a name without aliases");
        assert_eq!(ids("eslint and indent").await, ["M4"], "what no longer holds is left out");
        assert_eq!(ids("").await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn one_slip_is_forgiven_in_long_words() {
        for near in ["fastifi", "fastfy", "fasttify", "fastif", "fasitfy"] {
            assert_eq!(ids(near).await, ["M1"], "{near}");
        }
        for other in ["fasitfi", "vastify", "fstify", "afstify"] {
            assert_eq!(ids(other).await, Vec::<String>::new(), "{other}");
        }
        let none = SystemSettings::from([("alias.near".to_owned(), 0.into())]);
        assert_eq!(found(&none, "fastifi", 10).await, []);
        assert_eq!(ids("a deck oven, a stone owen").await, ["M2"]);
    }

    #[tokio::test]
    async fn names_weigh_more_than_aliases_and_both_more_than_what_is_nearly_said() {
        let all = found(&SystemSettings::new(), "a deck oven or stone oven, expres, eslint", 10).await;
        assert_eq!(all, [("M2".to_owned(), 3.0), ("M4".to_owned(), 1.0), ("M1".to_owned(), 0.5)]);
        assert_eq!(found(&SystemSettings::new(), "deck oven, eslint", 1).await, [("M2".to_owned(), 2.0)]);
    }
}
