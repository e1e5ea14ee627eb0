//! What questions that ended in an error were told: of each code the message that most of them were.

use std::collections::BTreeMap;

use bench_proto::{redact, text::one_line};

/// Characters of a message that stands for all of its code.
const LONGEST: usize = 300;
/// Messages that begin with the same characters, so many of them, are counted as one: what follows names a question or a request.
const ALIKE: usize = 80;
/// Messages of a code that are counted: those that come first in byte order. One that is among them is so from the first time on,
/// whatever comes before or after it, so that neither the order of questions nor that of their parts can show.
const MOST: usize = 1_000;

/// Code → how a message begins → how often it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Examples(BTreeMap<String, BTreeMap<String, Told>>);

#[derive(Debug, Clone)]
struct Told {
    n: u64,
    /// Of those that are counted as one the first in byte order.
    line: String,
}

impl Examples {
    /// Counts what a question was told.
    pub(crate) fn add(&mut self, code: &str, message: &str) {
        let line: String = shown(message).chars().take(LONGEST).collect();
        let begins = line.chars().take(ALIKE).collect();
        self.count(code, begins, Told { n: 1, line });
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (code, messages) in other.0 {
            for (begins, told) in messages {
                self.count(&code, begins, told);
            }
        }
    }

    fn count(&mut self, code: &str, begins: String, told: Told) {
        let messages = self.0.entry(code.to_owned()).or_default();
        if let Some(known) = messages.get_mut(&begins) {
            known.n += told.n;
            known.line = told.line.min(std::mem::take(&mut known.line));
            return;
        }
        messages.insert(begins, told);
        if messages.len() > MOST {
            messages.pop_last();
        }
    }

    /// Of each code the message that was told most often; of equals the first in byte order.
    pub(crate) fn commonest(&self) -> BTreeMap<String, String> {
        let most = |messages: &BTreeMap<String, Told>| {
            messages.values().rev().max_by_key(|told| told.n).map(|told| told.line.clone())
        };
        self.0.iter().filter_map(|(code, messages)| Some((code.clone(), most(messages)?))).collect()
    }
}

/// A message as a report may have it: in one line, without what is known to be a key.
fn shown(message: &str) -> String {
    let words = redact::words(message);
    let signed = redact::signed(&words);
    let without_keys = redact::provider_keys(&redact::run_keys(&signed)).into_owned();
    one_line(&without_keys).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told in the end when messages come in this order, half of them in another part.
    fn told(messages: &[String]) -> String {
        let (mut all, mut part) = (Examples::default(), Examples::default());
        for (at, message) in messages.iter().enumerate() {
            let of = if at % 2 == 0 { &mut all } else { &mut part };
            of.add("system_refused", message);
        }
        all.merge(part);
        assert!(all.0["system_refused"].len() <= MOST, "it is bounded");
        all.commonest()["system_refused"].clone()
    }

    #[test]
    fn the_commonest_message_is_told_whatever_the_order() {
        let mut messages: Vec<String> = ["a", "z", "b", "z", "c", "z"].map(str::to_owned).to_vec();
        for _ in 0..messages.len() {
            messages.rotate_left(1);
            assert_eq!(told(&messages), "z");
        }
        let request = |at: usize| format!("{} request {at}", "the server is busy ".repeat(5));
        let mut busy: Vec<String> = (0..3).map(request).chain(["a".to_owned(), "a".to_owned()]).collect();
        for _ in 0..busy.len() {
            busy.rotate_left(1);
            assert_eq!(told(&busy), request(0), "what they end with makes no others of them");
        }
    }

    #[test]
    fn more_messages_than_are_counted_are_the_same_in_any_order() {
        let mut many: Vec<String> = (0..3 * MOST).map(|at| format!("{at:05}")).collect();
        many.extend(["00500", "02500", "02500"].map(str::to_owned));
        let forward = told(&many);
        many.reverse();
        assert_eq!((forward.as_str(), told(&many).as_str()), ("00500", "00500"));
        many.rotate_left(MOST + 1);
        assert_eq!(told(&many), forward);
    }

    #[test]
    fn what_is_known_to_be_a_key_is_no_example() {
        let said = |message: &str| told(&[message.to_owned()]);
        assert_eq!(said("401: sk-proj-0123456789abcdef is no key\nof ours"), "401: [key] is no key of ours");
        assert_eq!(said("no bm-00112233445566778899aabbccddeeff00112233"), "no [key]");
        let shown = said("POST http://user:pa55word@mem/x?api_key=abcdef123: Authorization: Bearer abcdef0123456789");
        assert!(!shown.contains("pa55word") && !shown.contains("abcdef"), "{shown}");
    }
}
