//! Whose fault the failures of one request are (P39): a provider that has answered another one, which was sent later, is not away,
//! and a request to which that happens again and again is one that it cannot take.

use std::{collections::HashMap, hash::Hash, time::Instant};

use bench_proto::ids::Sha256Hash;

/// Answers to others behind its failures, after which it is the request that the provider cannot take.
pub(super) const SAME_REQUEST: u32 = 6;
/// Requests that are remembered; beyond them the one that failed longest ago is forgotten.
const MOST_REQUESTS: usize = 256;

/// Requests that have failed and were not answered since, by where they went.
pub(super) struct Blame<T>(HashMap<(T, Sha256Hash), Failed>);

/// A request that has failed.
struct Failed {
    /// How often another one was answered behind its failures.
    charged: u32,
    /// When the first of those was sent behind which nobody has been answered yet: an outage, however long, counts once.
    pending: Option<Instant>,
    last: Instant,
}

impl<T> Default for Blame<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Clone + Eq + Hash> Blame<T> {
    /// A request has failed on the way.
    pub(super) fn failed(&mut self, target: &T, request: Sha256Hash, sent: Instant) {
        let key = (target.clone(), request);
        if self.0.len() >= MOST_REQUESTS && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, failed)| failed.last).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
        let failed = self.0.entry(key).or_insert(Failed { charged: 0, pending: None, last: sent });
        failed.pending.get_or_insert(sent);
        failed.last = failed.last.max(sent);
    }

    /// A request was answered.
    pub(super) fn answered(&mut self, target: &T, request: Sha256Hash, sent: Instant) {
        if self.0.is_empty() {
            return;
        }
        self.0.remove(&(target.clone(), request));
        for ((of, _), failed) in &mut self.0 {
            if of == target && failed.pending.is_some_and(|at| at < sent) {
                failed.charged = failed.charged.saturating_add(1);
                failed.pending = None;
            }
        }
    }

    /// Whether the provider answers others and not this one.
    pub(super) fn is_its_own(&self, target: &T, request: Sha256Hash) -> bool {
        self.0.get(&(target.clone(), request)).is_some_and(|failed| failed.charged >= SAME_REQUEST)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn request(text: &str) -> Sha256Hash {
        Sha256Hash::of_bytes(text.as_bytes())
    }

    #[test]
    fn p39_an_answer_that_was_sent_later_charges_what_failed_before_it() {
        let (mut blame, begun) = (Blame::default(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        for round in 0..u64::from(SAME_REQUEST) {
            assert!(!blame.is_its_own(&"m", request("poison")), "{round}");
            blame.failed(&"m", request("poison"), at(10 * round + 1));
            // what was sent before says nothing, nor does another model, and an answer counts once
            blame.answered(&"m", request("other"), at(10 * round));
            blame.answered(&"n", request("other"), at(10 * round + 2));
            blame.answered(&"m", request("other"), at(10 * round + 2));
            blame.answered(&"m", request("other"), at(10 * round + 3));
        }
        assert!(blame.is_its_own(&"m", request("poison")) && !blame.is_its_own(&"n", request("poison")));
        blame.answered(&"m", request("poison"), at(100));
        assert!(!blame.is_its_own(&"m", request("poison")), "it can be taken after all");
    }

    #[test]
    fn p39_an_outage_charges_a_request_once_however_often_it_fails() {
        let (mut blame, begun) = (Blame::default(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        (0..100).for_each(|n| blame.failed(&"m", request("a"), at(n)));
        blame.answered(&"m", request("b"), at(200));
        assert_eq!(blame.0.values().map(|failed| failed.charged).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn requests_without_end_are_not_remembered_without_end() {
        let (mut blame, begun) = (Blame::default(), Instant::now());
        for n in 0..1000_u64 {
            blame.failed(&"m", request(&n.to_string()), begun + Duration::from_millis(n));
        }
        assert_eq!(blame.0.len(), MOST_REQUESTS);
        assert!(blame.0.contains_key(&("m", request("999"))) && !blame.0.contains_key(&("m", request("0"))));
    }
}
