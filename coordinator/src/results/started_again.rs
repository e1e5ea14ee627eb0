//! Processes of a memory system that were started again in the middle of a run.

use bench_proto::{
    started_again::{ENDED_WITH, StartedAgainNote},
    text::one_line,
};
use bench_store::{RunEvent, STARTED_AGAIN_EVENT};

use crate::out::amounts::counted;

/// Most letters of last words that a warning quotes.
const MOST_WORDS: usize = 400;

/// A warning with how often that was, and what the first one said at its end.
pub(super) fn warning(system: &str, events: &[RunEvent]) -> Option<String> {
    let notes: Vec<StartedAgainNote> = RunEvent::notes(events, STARTED_AGAIN_EVENT).collect();
    if notes.is_empty() {
        return None;
    }
    let words = notes.iter().find_map(|note| note.ended.as_deref().filter(|words| !words.is_empty()));
    let words: String = words.map(|words| one_line(words).chars().take(MOST_WORDS).collect()).unwrap_or_default();
    let said = if words.is_empty() { words } else { format!("{ENDED_WITH}{words}") };
    let times = counted(notes.len() as u64, "time");
    Some(format!("a process of {system} had ended and was started again {times} in the middle of the run{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_again_is_told_with_its_last_words_once() {
        let event = |kind: &str, number: u32, ended: Option<&str>| {
            let note = StartedAgainNote { at_us: 0, number, ended: ended.map(str::to_owned) };
            let message = serde_json::to_string(&note).expect("is JSON");
            RunEvent { at_ms: 0, kind: kind.to_owned(), message }
        };
        assert_eq!(warning("mine", &[event("served", 1, None)]), None);
        let one = event(STARTED_AGAIN_EVENT, 1, Some("(exit status: 7): no\nmemory"));
        let told = "a process of mine had ended and was started again 1 time in the middle of the run; the first one ended with \
                    (exit status: 7): no memory";
        assert_eq!(warning("mine", std::slice::from_ref(&one)).as_deref(), Some(told));
        let two = [one, event(STARTED_AGAIN_EVENT, 2, None)];
        assert!(warning("mine", &two).is_some_and(|told| told.contains("started again 2 times")));
        let silent = warning("mine", &[event(STARTED_AGAIN_EVENT, 1, Some(""))]).expect("is told");
        assert!(silent.ends_with("in the middle of the run"), "{silent}");
    }
}
