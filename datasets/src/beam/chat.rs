//! The chats: batches of groups of messages, as sessions.

use std::collections::{BTreeMap, HashMap};

use bench_proto::dataset::{BankContent, Session, StreamEntry, Turn};
use jiff::civil::Date;
use serde::{Deserialize, de::IgnoredAny};

use super::marker;
use crate::{DatasetError, broken::json, notes::Notes};

/// A batch: what was said from a day on.
#[derive(Debug, Deserialize)]
pub(super) struct Batch {
    #[serde(default)]
    time_anchor: Option<String>,
    turns: Vec<Vec<Message>>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    id: u64,
    content: String,
    #[serde(default)]
    time_anchor: Option<String>,
}

/// The turns by the ids of their messages: turn and session. `None` for ids that several messages have.
#[derive(Debug, Default)]
pub(super) struct Messages(HashMap<u64, Option<(String, String)>>);

impl Messages {
    /// Turn and session of a message.
    pub(super) fn find(&self, id: u64) -> Option<&(String, String)> {
        self.0.get(&id)?.as_ref()
    }

    fn add(&mut self, id: u64, turn: &str, session: &str) {
        let place = Some((turn.to_owned(), session.to_owned()));
        self.0.entry(id).and_modify(|known| *known = None).or_insert(place);
    }
}

/// The number of a plan by its name, `plan-3`.
pub(super) fn plan_number(name: &str) -> Option<u64> {
    name.strip_prefix("plan-")?.parse().ok()
}

/// Reads a file of a chat: a list of batches, or of objects that hold such a list for each plan.
pub(super) fn batches(path: &str, content: &[u8]) -> Result<Vec<Batch>, DatasetError> {
    // its form must be known before it is read, so that errors speak of the right fields
    let keys: Vec<BTreeMap<String, IgnoredAny>> = json(path, content)?;
    if !keys.iter().flat_map(BTreeMap::keys).any(|key| plan_number(key).is_some()) {
        return json(path, content);
    }
    let plans: Vec<BTreeMap<String, Option<Vec<Batch>>>> = json(path, content)?;
    let mut plans: Vec<_> = plans.into_iter().flatten().filter_map(|(name, batches)| Some((name, batches?))).collect();
    plans.sort_by_key(|(name, _)| plan_number(name));
    Ok(plans.into_iter().flat_map(|(_, batches)| batches).collect())
}

/// Adds batches to a bank's stream. The time of a batch is that of its sessions.
pub(super) fn add(batches: Vec<Batch>, bank: &mut BankContent, messages: &mut Messages, notes: &mut Notes) {
    let BankContent { bank_id, entries, .. } = bank;
    for batch in batches {
        let mut of_messages = batch.turns.iter().flatten().filter_map(|message| message.time_anchor.clone());
        let time_text = batch.time_anchor.or_else(|| of_messages.next());
        let time = time_text.as_deref().and_then(time);
        if let (Some(text), None) = (&time_text, &time) {
            let session = entries.len() + 1;
            notes.say("time_anchor that is no date", || {
                format!("{bank_id}: S{session}: time_anchor {text} is no date such as March-15-2024")
            });
        }
        for group in batch.turns.into_iter().filter(|group| !group.is_empty()) {
            let id = format!("S{}", entries.len() + 1);
            let turn = |(message, number): (Message, usize)| {
                let turn = format!("{id}:{number}");
                messages.add(message.id, &turn, &id);
                let text = marker::without(&message.content).to_owned();
                Turn { id: turn, speaker: message.role, text, ..Turn::default() }
            };
            let turns = group.into_iter().zip(1..).map(turn).collect();
            let (time, time_text) = (time.clone(), time_text.clone());
            entries.push(StreamEntry::Session(Session { id, time, time_text, turns, ..Session::default() }));
        }
    }
}

/// A time anchor, `March-15-2024`, as the beginning of its day.
fn time(anchor: &str) -> Option<String> {
    let date = Date::strptime("%B-%d-%Y", anchor.trim()).ok()?;
    Some(format!("{date}T00:00:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_days() {
        assert_eq!(time("March-15-2024").as_deref(), Some("2024-03-15T00:00:00"));
        assert_eq!(time(" may-2-2024 ").as_deref(), Some("2024-05-02T00:00:00"));
        for other in ["", "March 15", "February-30-2024", "15-March-2024"] {
            assert_eq!(time(other), None, "{other}");
        }
    }
}
