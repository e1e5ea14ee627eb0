//! The banks that are searched: LoCoMo's conversations, and one of many memories.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bench_datasets::OpenOptions;
use bench_proto::{
    dataset::{BankContent, StreamEntry},
    ids::Sha256Hash,
};
use bench_systems::{BankRef, RecallQuery};

/// A bank and what is asked of it.
pub(super) struct Asked {
    pub(super) bank: BankRef,
    pub(super) questions: Vec<String>,
}

impl Asked {
    fn new(content: BankContent, questions: Vec<String>) -> anyhow::Result<Self> {
        let bank = BankRef {
            name: format!("perf-{}", content.bank_id),
            handle: None,
            bank_id: content.bank_id.clone(),
            content_hash: Sha256Hash::of_bytes(&serde_json::to_vec(&content)?),
            content: Some(Arc::new(content)),
        };
        Ok(Self { bank, questions })
    }

    pub(super) fn entries(&self) -> &[StreamEntry] {
        self.bank.content.as_deref().map_or(&[], |content| &content.entries)
    }

    pub(super) fn turns(&self) -> usize {
        self.entries().iter().map(StreamEntry::turns).sum()
    }

    /// A question for ten hits over the whole bank.
    pub(super) fn query<'a>(&self, text: &'a str) -> RecallQuery<'a> {
        RecallQuery { question_id: text, text, k: 10, visible_entries: u32::MAX, ..RecallQuery::default() }
    }
}

fn open(name: &str, datasets_dir: Option<&Path>, conversations: usize) -> anyhow::Result<Vec<Asked>> {
    let mut settings = BTreeMap::new();
    if name == "locomo-sim" {
        settings.insert("conversations".to_owned(), conversations.into());
    }
    let options = OpenOptions { datasets_dir: datasets_dir.map(Path::to_owned), settings, ..OpenOptions::default() };
    let dataset = bench_datasets::open(name, &options, &|_, _| {})?;
    (0..dataset.bank_count())
        .map(|number| {
            let bank = dataset.bank(number)?;
            Asked::new(bank.content, bank.questions.into_iter().map(|question| question.text).collect())
        })
        .collect()
}

/// LoCoMo's ten conversations when they are there, else ten generated ones of their size.
pub(super) fn conversations(datasets_dir: Option<&Path>) -> anyhow::Result<Vec<Asked>> {
    let real = datasets_dir.is_some_and(|dir| dir.join("locomo/locomo10.json").exists());
    open(if real { "locomo" } else { "locomo-sim" }, datasets_dir, 10)
}

/// One bank of at least so many turns, of generated conversations one after the other, and questions of all of them.
pub(super) fn large(memories: usize) -> anyhow::Result<Asked> {
    // a generated conversation has 588 turns on average
    let parts = open("locomo-sim", None, memories.div_ceil(500))?;
    let (mut entries, mut questions, mut turns) = (Vec::new(), Vec::new(), 0);
    for part in &parts {
        if turns >= memories {
            break;
        }
        // every so many-th question: a thousand in all
        questions.extend(part.questions.iter().step_by(40).cloned());
        for entry in part.entries() {
            let StreamEntry::Session(session) = entry else { continue };
            let mut session = session.clone();
            session.id = format!("{}/{}", part.bank.bank_id, session.id);
            session.turns.iter_mut().for_each(|turn| turn.id = format!("{}/{}", part.bank.bank_id, turn.id));
            turns += session.turns.len();
            entries.push(StreamEntry::Session(session));
        }
    }
    Asked::new(BankContent { bank_id: "large".to_owned(), speakers: Vec::new(), entries }, questions)
}
