//! Notices that messages are gone although nothing has failed (P2): for a while the store counts more queued tasks than the
//! broker holds, and workers have free slots.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_proto::task::QueueName;

/// How long it must last: shorter differences are messages on their way.
pub(super) const LASTING: Duration = Duration::from_secs(30);

/// Since when each queue is short.
#[derive(Debug, Default)]
pub(super) struct LossWatch(BTreeMap<QueueName, Instant>);

impl LossWatch {
    /// Notes whether a queue is short now; true when it has been for long enough. Then it begins anew.
    pub(super) fn see(&mut self, queue: &QueueName, short: bool, now: Instant) -> bool {
        if !short {
            self.0.remove(queue);
            return false;
        }
        let since = *self.0.entry(queue.clone()).or_insert(now);
        let lost = now.saturating_duration_since(since) >= LASTING;
        if lost {
            self.0.remove(queue);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::Role;

    use super::*;

    #[test]
    fn p2_only_a_lasting_difference_is_a_loss() {
        let (mut watch, start) = (LossWatch::default(), Instant::now());
        let queue = QueueName::new("default", Role::Question);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!watch.see(&queue, true, at(0)));
        assert!(!watch.see(&queue, true, at(29)));
        assert!(!watch.see(&queue, false, at(29)), "the difference was gone once");
        assert!(!watch.see(&queue, true, at(30)));
        assert!(watch.see(&queue, true, at(60)));
        assert!(!watch.see(&queue, true, at(61)), "it counts anew after the repair");
    }
}
