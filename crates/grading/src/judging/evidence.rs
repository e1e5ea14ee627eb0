//! The messages that an expected answer rests on, as judges are shown them whose rubric asks for it.

use std::{collections::HashMap, sync::LazyLock};

use bench_proto::dataset::{BankContent, GoldRecord, Session, StreamEntry, Turn};
use serde_json::Value;

/// The most characters that a judge is shown: room for a few long messages, and for no haystack. Said in prompts, so that another
/// number is another hash.
pub(crate) const MOST_CHARS: usize = 4_000;

/// Key of [`GoldRecord::hidden`] under which the texts stand where some are no message of the bank, or where the bank is not kept.
const TEXTS: &str = "message_evidences";

/// Where the evidence of a question lies.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was said.
    pub bank: &'a BankContent,
    /// The record that says which messages are the evidence.
    pub gold: &'a GoldRecord,
}

/// Notes in a record what judges are shown of its evidence.
pub(super) fn keep(bank: &BankContent, gold: &mut GoldRecord) {
    let texts = Evidence { bank, gold }.texts();
    gold.hidden.insert(TEXTS.to_owned(), texts.into());
}

impl Evidence<'_> {
    /// The messages with their speakers, in the dataset's order; as their texts alone where not all of them are in the bank. What is
    /// too long is cut, long messages before short ones.
    #[must_use]
    pub fn messages(self) -> Vec<String> {
        let mut messages = self.texts();
        let mut lengths: Vec<usize> = messages.iter().map(|message| message.chars().count()).collect();
        lengths.sort_unstable();
        let (mut left, mut most) = (MOST_CHARS, MOST_CHARS);
        for (length, others) in lengths.iter().zip((1..=lengths.len()).rev()) {
            most = left / others;
            if *length > most {
                break;
            }
            left -= length;
        }
        for message in &mut messages {
            if let Some((at, _)) = message.char_indices().nth(most) {
                message.truncate(at);
                message.push('…');
            }
        }
        messages
    }

    /// The same at any length.
    fn texts(self) -> Vec<String> {
        self.told().unwrap_or_else(|| self.said())
    }

    fn told(self) -> Option<Vec<String>> {
        let texts = self.gold.hidden.get(TEXTS)?.as_array()?;
        Some(texts.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn said(self) -> Vec<String> {
        let mut said: HashMap<&str, String> = HashMap::new();
        let wanted = &self.gold.evidence_turns;
        for entry in &self.bank.entries {
            if let StreamEntry::Session(session) = entry {
                let turns = session.turns.iter().filter(|turn| wanted.contains(&turn.id));
                said.extend(turns.map(|turn| (turn.id.as_str(), format!("{}: {}", turn.speaker, turn.text.trim()))));
            }
            let memory = entry.memory().filter(|memory| wanted.contains(&memory.id));
            said.extend(memory.map(|memory| (memory.id.as_str(), memory.text.trim().to_owned())));
        }
        wanted.iter().filter_map(|id| said.remove(id.as_str())).collect()
    }
}

/// The evidence of the fixed sample.
pub(super) fn sample() -> Evidence<'static> {
    static SAMPLE: LazyLock<(BankContent, GoldRecord)> = LazyLock::new(|| {
        let turn = |id: &str, text: &str| Turn {
            id: id.to_owned(),
            speaker: "ann".to_owned(),
            text: text.to_owned(),
            ..Turn::default()
        };
        let turns = vec![turn("S1:1", "I left yesterday."), turn("S1:2", "Bob was there.")];
        let entries = vec![StreamEntry::Session(Session { id: "S1".to_owned(), turns, ..Session::default() })];
        let evidence_turns = vec!["S1:2".to_owned(), "S1:1".to_owned()];
        let bank = BankContent { entries, ..BankContent::default() };
        (bank, GoldRecord { evidence_turns, ..GoldRecord::default() })
    });
    Evidence { bank: &SAMPLE.0, gold: &SAMPLE.1 }
}

#[cfg(test)]
mod tests {
    use bench_proto::profile::{OwnRubric, Profile};
    use serde_json::json;

    use super::*;
    use crate::judging::rubric::keep_evidence;

    #[test]
    fn messages_stand_in_the_order_of_the_evidence_with_their_speakers() {
        assert_eq!(sample().messages(), ["ann: Bob was there.", "ann: I left yesterday."]);
        let Evidence { bank, gold } = sample();
        let mut gold = gold.clone();
        gold.evidence_turns.push("S9:9".to_owned());
        assert_eq!(Evidence { bank, gold: &gold }.messages().len(), 2, "what is not there is not shown");
        gold.hidden.insert(TEXTS.to_owned(), json!(["I left.", "Bob was there."]));
        assert_eq!(Evidence { bank, gold: &gold }.messages(), ["I left.", "Bob was there."]);
    }

    #[test]
    fn a_record_can_hold_what_is_shown_of_the_bank() {
        let Evidence { bank, gold } = sample();
        let mut kept = vec![gold.clone()];
        keep_evidence(&Profile::implied(), bank, &mut kept);
        assert_eq!(&kept[0], gold, "nothing is shown");
        let mut profile = Profile::implied();
        let own = OwnRubric { rules: "- Own.".to_owned(), shows_evidence: true, ..OwnRubric::default() };
        profile.rubrics.insert("judge-own".to_owned(), own);
        profile.by_question.insert("judge-own".to_owned());
        keep_evidence(&profile, bank, &mut kept);
        let alone = Evidence { bank: &BankContent::default(), gold: &kept[0] };
        assert_eq!(alone.messages(), sample().messages());
    }

    #[test]
    fn long_messages_are_cut_and_short_ones_are_whole() {
        let mut gold = GoldRecord::default();
        let texts = ["short".to_owned(), "ä".repeat(5_000), "b".repeat(5_000)];
        gold.hidden.insert(TEXTS.to_owned(), json!(texts));
        let messages = Evidence { bank: &BankContent::default(), gold: &gold }.messages();
        let lengths: Vec<usize> = messages.iter().map(|message| message.chars().count()).collect();
        assert_eq!((messages[0].as_str(), lengths), ("short", vec![5, 1_998, 1_998]), "each with the sign of the cut");
    }
}
