//! ConvoMem's JSON. Which conversations hold evidence, and which models wrote them, is passed over.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) speaker: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
}

/// A question with what it rests on.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) question: String,
    /// None, or null, where nothing answers.
    #[serde(default)]
    pub(super) answer: Option<String>,
    #[serde(default)]
    pub(super) message_evidences: Vec<Message>,
    #[serde(default)]
    pub(super) conversations: Vec<Conversation>,
    #[serde(default)]
    pub(super) category: Option<String>,
    #[serde(default, rename = "personId")]
    pub(super) person: Option<String>,
}

/// A file, or an element of one: an evidence file has `evidence_items`, a mixed test case the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    evidence_items: Option<Vec<Item>>,
    #[serde(rename = "evidenceItems")]
    mixed_items: Option<Vec<Item>>,
    conversations: Option<Vec<Conversation>>,
    #[serde(rename = "contextSize")]
    context_size: Option<u64>,
}

/// Questions over one haystack.
pub(super) struct Case {
    pub(super) items: Vec<Item>,
    /// Number of the first item in its list.
    pub(super) first: usize,
    pub(super) conversations: Vec<Conversation>,
    /// Size of the haystack in conversations, where it is stated.
    pub(super) context_size: Option<u64>,
}

/// The cases of a document, each with the field that its items stand in; else why there are none.
pub(super) fn cases(document: Document) -> Result<Vec<(Case, &'static str)>, &'static str> {
    let Document { evidence_items, mixed_items, conversations, context_size } = document;
    match (evidence_items, mixed_items, conversations) {
        (Some(items), None, None) => {
            let case = |(mut item, first): (Item, usize)| {
                let conversations = std::mem::take(&mut item.conversations);
                (Case { items: vec![item], first, conversations, context_size: None }, "evidence_items")
            };
            Ok(items.into_iter().zip(0..).map(case).collect())
        }
        (None, Some(items), Some(conversations)) => {
            Ok(vec![(Case { items, first: 0, conversations, context_size }, "evidenceItems")])
        }
        _ => Err("either this, or evidenceItems with conversations is expected"),
    }
}
