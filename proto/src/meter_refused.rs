//! Calls of a memory system that the meter itself has refused and that somebody has to do something about (P34): counted by each process
//! and reason, and noted as events of the run, some for each: a system may be refused without end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::MeteredRefused;

/// What a process has refused for one reason so far. Of the notes of a process and a reason the one of most calls counts, and of equal
/// ones the last word: they may come in another order than they were made in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterRefusedNote {
    /// Drawn each time that a process takes the run up: its counts begin anew with it.
    pub process: String,
    /// The `code` of the answer.
    pub code: String,
    /// Why, and what to do about it.
    pub why: String,
    /// Calls so far.
    pub calls: u64,
    /// The process has ended in good order: no further call was refused.
    #[serde(default, skip_serializing_if = "crate::call::is_default")]
    pub is_last: bool,
}

/// The notes of all processes together, by reason, most calls first.
#[must_use]
pub fn together(notes: impl IntoIterator<Item = MeterRefusedNote>) -> Vec<MeteredRefused> {
    let mut latest: BTreeMap<(String, String), BTreeMap<String, MeterRefusedNote>> = BTreeMap::new();
    for note in notes {
        let of_reason = latest.entry((note.code.clone(), note.why.clone())).or_default();
        let known = of_reason.entry(note.process.clone()).or_insert_with(|| note.clone());
        if (note.calls, note.is_last) > (known.calls, known.is_last) {
            *known = note;
        }
    }
    let mut all: Vec<MeteredRefused> = latest
        .into_iter()
        .map(|((code, why), of_processes)| MeteredRefused {
            code,
            why,
            calls: of_processes.values().fold(0, |sum, note| sum.saturating_add(note.calls)),
            at_least: !of_processes.values().all(|note| note.is_last),
        })
        .collect();
    all.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.why.cmp(&b.why)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(process: &str, why: &str, calls: u64, is_last: bool) -> MeterRefusedNote {
        let [process, why] = [process, why].map(str::to_owned);
        MeterRefusedNote { process, code: "model_not_found".to_owned(), why, calls, is_last }
    }

    #[test]
    fn p34_notes_of_processes_add_up_and_say_whether_all_is_known() {
        let killed = [note("a", "m has no price", 1, false), note("a", "m has no price", 32, false)];
        let ended = [note("b", "m has no price", 16, false), note("b", "m has no price", 18, true)];
        let other = [note("b", "no account", 3, true)];
        let all = together(killed.into_iter().chain(ended).chain(other));
        let told: Vec<_> = all.iter().map(|of| (of.why.as_str(), of.calls, of.at_least)).collect();
        assert_eq!(told, [("m has no price", 50, true), ("no account", 3, false)]);
        assert_eq!(all[0].words(), "the meter refused at least 50 calls: m has no price");
        assert_eq!(all[1].words(), "the meter refused 3 calls: no account");
        assert_eq!(MeteredRefused { calls: 1, ..all[1].clone() }.words(), "the meter refused 1 call: no account");
    }

    #[test]
    fn p34_notes_that_come_in_another_order_say_the_same() {
        let notes = [note("a", "w", 1, false), note("a", "w", 2, false), note("a", "w", 2, true)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let all = together(order.map(|at: usize| notes[at].clone()));
            assert_eq!((all.len(), all[0].calls, all[0].at_least), (1, 2, false), "{order:?}");
        }
        let more = [note("a", "w", 3, false), note("a", "w", 2, true)];
        assert_eq!(together(more).iter().map(|of| (of.calls, of.at_least)).collect::<Vec<_>>(), [(3, true)]);
    }

    #[test]
    fn the_stored_form_is_read_again() {
        let text = r#"{"process":"p","code":"model_not_found","why":"m has no price","calls":2}"#;
        assert_eq!(serde_json::to_string(&note("p", "m has no price", 2, false)).expect("is JSON"), text);
        assert_eq!(
            serde_json::from_str::<MeterRefusedNote>(text).expect("is read"),
            note("p", "m has no price", 2, false)
        );
    }
}
