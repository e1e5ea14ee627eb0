//! `systems try`: one text is stored, one question is asked, and what came back is told as it is.

use std::time::Instant;

use bench_proto::{
    dataset::{BankContent, Session, StreamEntry, Turn},
    failure::Failure,
    step::RetrievedHit,
};
use serde::Serialize;

use crate::{
    BankRef, MemorySystem, RecallQuery,
    check::heard,
    filling::{Filled, fill},
};

/// What a memory system made of one text and one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Milliseconds from the first word of the text to the moment in which the system says that it can be found.
    pub stored_ms: u64,
    /// Whether that was shown, and not only said or taken for granted.
    pub proven: bool,
    /// Milliseconds of the search; absent where the system does not search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_ms: Option<u64>,
    /// What the search found, best first.
    pub hits: Vec<RetrievedHit>,
    /// Places of the hits, from 0, that came without an id: theirs is made of their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_id: Vec<usize>,
    /// What hits come without, although the adapter says where it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The system's own answer, where it does not search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Milliseconds of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ms: Option<u64>,
}

/// Stores `text` in a bank of its own, named `name`, and asks `question` for at most `k` hits; the bank is removed again.
///
/// # Errors
/// What the system says of the step that failed.
pub async fn run(
    system: &dyn MemorySystem,
    name: &str,
    (text, question): (&str, &str),
    k: u32,
) -> Result<Trial, Failure> {
    let turn = Turn { id: "D1:1".to_owned(), speaker: "Ann".to_owned(), text: text.to_owned(), ..Turn::default() };
    let session = Session {
        id: "D1".to_owned(),
        time_text: Some("1:15 pm on 1 May, 2023".to_owned()),
        time: Some("2023-05-01T13:15:00".to_owned()),
        turns: vec![turn],
        ..Session::default()
    };
    let entries = vec![StreamEntry::Session(session)];
    let content = BankContent { bank_id: "try".to_owned(), speakers: vec!["Ann".to_owned()], entries };
    let mut bank = BankRef::outside_of_runs(name, content);
    bank.handle = Some(system.open_bank(&bank).await?);
    let tried = heard::listening(asked(system, &bank, question, k)).await;
    // a system that keeps nothing, or cannot remove it, is no reason to hide what came back
    if let Err(failure) = system.reset_bank(&bank).await {
        tracing::debug!(%failure, "the bank of a trial was not removed");
    }
    tried
}

async fn asked(system: &dyn MemorySystem, bank: &BankRef, question: &str, k: u32) -> Result<Trial, Failure> {
    let entries = bank.content.as_deref().map_or(&[][..], |content| &content.entries);
    let began = Instant::now();
    let Filled { proven, .. } = fill(system, bank, entries).await?;
    let stored_ms = ms(began);
    let (hits, without_id, notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut trial =
        Trial { stored_ms, proven, recall_ms: None, hits, without_id, notes, answer: None, answer_ms: None };
    let capabilities = system.capabilities();
    let k = capabilities.max_k.map_or(k, |most| k.min(most));
    let query = RecallQuery {
        question_id: "try",
        text: question,
        time_text: Some("1:15 pm on 9 June, 2023"),
        k,
        visible_entries: 1,
        ..RecallQuery::default()
    };
    if capabilities.recalls {
        let began = Instant::now();
        trial.hits = system.recall(bank, &query).await?.hits;
        trial.recall_ms = Some(ms(began));
        let made_up = trial.hits.iter().enumerate().filter(|(_, hit)| heard::is_made_up(hit));
        trial.without_id = made_up.map(|(at, _)| at).collect();
        if let Some(beyond) = heard::beyond_k() {
            trial.notes.push(format!("{k} hits asked for, {} came: cut to {k}", beyond.came));
        }
        trial.notes.extend(heard::take_remarks().into_iter().map(|remark| remark.text));
    }
    if capabilities.answers && !capabilities.recalls {
        let began = Instant::now();
        trial.answer = Some(system.answer(bank, &query).await?.text);
        trial.answer_ms = Some(ms(began));
    }
    Ok(trial)
}

fn ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuildContext, SystemSettings, registry};

    #[tokio::test]
    async fn what_was_stored_comes_back() {
        let system = registry::build("bm25", &SystemSettings::new(), &BuildContext::default()).expect("is built");
        let words = ("Ottilie keeps a heron called Brunswick.", "Who keeps a heron?");
        let trial = run(system.as_ref(), "bench-try-1", words, 10).await.expect("answers");
        assert_eq!((trial.hits.len(), trial.hits[0].id.as_str()), (1, "D1:1"));
        assert!(trial.hits[0].text.contains("Brunswick") && trial.recall_ms.is_some() && trial.answer.is_none());
    }
}
