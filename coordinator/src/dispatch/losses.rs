//! Notices that messages are gone although nothing has failed (P2), by what only a loss explains:
//!
//! - More tasks are noted as published than the broker has ready and all consumers may hold unclaimed.
//! - Slots are free and the broker has no message, and yet tasks are noted as published for a while: a consumer with a free
//!   slot claims at once.
//!
//! Each must last for a moment, because messages travel, and only notes that are as old are forgotten. Where a repair has not
//! helped, the next one waits twice as long: a slow broker gets duplicates now and then, never a storm of them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_proto::task::QueueName;

/// How long more tasks must be queued than messages can be anywhere.
const TOO_MANY: Duration = Duration::from_secs(2);
/// How long slots must be free beside queued tasks without a message: some may wait in a busy worker for its own slots.
const IDLE: Duration = Duration::from_secs(4);
/// Longest patience after repairs that did not help.
const LONGEST: Duration = Duration::from_secs(80);
/// Tasks that may be without a message for each slot: a consumer holds two (its prefetch), and one may have been claimed since
/// tasks
/// were counted.
const HELD_PER_SLOT: i64 = 3;

/// A queue as store and broker tell of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Tasks that are noted as published and not claimed.
    pub queued: i64,
    /// Tasks that are being worked on.
    pub leased: i64,
    /// Messages that the broker has ready.
    pub ready: i64,
    /// Consumers of the queue.
    pub consumers: u64,
    /// Slots of live workers.
    pub slots: i64,
}

/// What only a loss explains when it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    TooMany,
    Idle,
}

impl Seen {
    fn evidence(self) -> Option<Evidence> {
        let unseen = self.queued - self.ready;
        if self.consumers == 0 || self.slots == 0 || unseen <= 0 {
            return None;
        }
        if unseen > self.slots * HELD_PER_SLOT {
            return Some(Evidence::TooMany);
        }
        (self.leased < self.slots && self.ready == 0).then_some(Evidence::Idle)
    }
}

/// How a queue has looked lately.
#[derive(Debug)]
struct Watched {
    since: Instant,
    evidence: Evidence,
    /// Repairs in a row after which the messages were not found either.
    in_vain: u32,
}

/// Since when messages of each queue seem to be gone.
#[derive(Debug, Default)]
pub(super) struct LossWatch(BTreeMap<QueueName, Watched>);

impl LossWatch {
    /// Notes how a queue looks now. Once it has looked like a loss for long enough: how long; then it begins anew.
    pub(super) fn see(&mut self, queue: &QueueName, seen: Seen, now: Instant) -> Option<Duration> {
        let Some(evidence) = seen.evidence() else {
            self.0.remove(queue);
            return None;
        };
        let watched = self.0.entry(queue.clone()).or_insert_with(|| Watched { since: now, evidence, in_vain: 0 });
        if evidence == Evidence::Idle && watched.evidence == Evidence::TooMany {
            // what is left may be in the hands of the consumers
            (watched.since, watched.evidence) = (now, evidence);
        } else if evidence == Evidence::TooMany {
            watched.evidence = evidence;
        }
        let patience = if evidence == Evidence::TooMany { TOO_MANY } else { IDLE };
        let patience = (patience * 2_u32.saturating_pow(watched.in_vain)).min(LONGEST);
        if now.saturating_duration_since(watched.since) < patience {
            return None;
        }
        watched.since = now;
        Some(patience)
    }

    /// Notes how many tasks are published again because a queue looked like a loss; none: they were on their way.
    pub(super) fn repaired(&mut self, queue: &QueueName, again: u64) {
        if let Some(watched) = self.0.get_mut(queue) {
            watched.in_vain = if again > 0 { watched.in_vain.saturating_add(1) } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::Role;

    use super::*;

    /// A queue of four slots of which all are busy.
    const BUSY: Seen = Seen { queued: 8, leased: 4, ready: 0, consumers: 1, slots: 4 };
    const PURGED: Seen = Seen { queued: 20, ..BUSY };
    const IDLING: Seen = Seen { leased: 1, queued: 5, ..BUSY };

    const NEVER: [u64; 0] = [];

    fn repairs(of: impl Fn(u64) -> Seen, seconds: u64) -> Vec<u64> {
        let (mut watch, start) = (LossWatch::default(), Instant::now());
        let queue = QueueName::new("default", Role::Question);
        let at = |second| start + Duration::from_secs(second);
        let mut repaired = Vec::new();
        for second in 0..=seconds {
            if watch.see(&queue, of(second), at(second)).is_some() {
                watch.repaired(&queue, 1);
                repaired.push(second);
            }
        }
        repaired
    }

    #[test]
    fn p2_more_queued_tasks_than_messages_can_be_anywhere_are_a_loss_within_seconds() {
        assert_eq!(repairs(|_| PURGED, 2), [2], "also while every slot is busy");
        assert_eq!(repairs(|second| if second == 1 { BUSY } else { PURGED }, 4), [4], "the evidence was gone once");
    }

    #[test]
    fn p2_free_slots_beside_queued_tasks_without_a_message_are_a_loss() {
        assert_eq!(repairs(|_| IDLING, 6), [4]);
        assert_eq!(repairs(|second| if second < 3 { PURGED } else { IDLING }, 14), [2, 11], "what is left counts anew");
    }

    #[test]
    fn p2_busy_workers_and_absent_ones_are_no_evidence() {
        assert_eq!(repairs(|_| Seen { queued: 12, ..BUSY }, 600), NEVER, "some were claimed a moment ago");
        assert_eq!(repairs(|_| BUSY, 600), NEVER, "what is queued may be in their hands");
        assert_eq!(repairs(|_| Seen { consumers: 0, ..PURGED }, 600), NEVER, "nobody consumes");
        assert_eq!(repairs(|_| Seen { slots: 0, ..PURGED }, 600), NEVER, "nobody lives");
        assert_eq!(repairs(|_| Seen { ready: 20, ..PURGED }, 600), NEVER, "the broker has them all, and is slow");
        assert_eq!(
            repairs(|second| if second % 4 == 3 { BUSY } else { IDLING }, 600),
            NEVER,
            "slots get free and busy"
        );
    }

    #[test]
    fn p2_a_steady_flow_is_looked_at_again_and_again() {
        let (mut watch, start) = (LossWatch::default(), Instant::now());
        let queue = QueueName::new("default", Role::Judge);
        // some message is always on its way, none is old
        let looks = (0..=20).filter(|second| {
            let looked = watch.see(&queue, IDLING, start + Duration::from_secs(*second)).is_some();
            if looked {
                watch.repaired(&queue, 0);
            }
            looked
        });
        assert_eq!(looks.collect::<Vec<_>>(), [4, 8, 12, 16, 20], "a loss among them is found as soon as at first");
    }

    #[test]
    fn p2_repairs_that_do_not_help_get_rare() {
        assert_eq!(repairs(|_| PURGED, 126), [2, 6, 14, 30, 62, 126]);
        assert!(repairs(|_| IDLING, 600).len() < 12);
    }
}
