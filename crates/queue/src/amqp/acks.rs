//! Which ack frames settle a set of deliveries: one for all where that is legal, single ones for the rest.

use std::collections::VecDeque;

/// An ack frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ack {
    /// The broker's delivery tag.
    pub(super) tag: u64,
    /// Settles all older deliveries of the channel too.
    pub(super) multiple: bool,
}

/// Deliveries of a channel that are not settled, by rising tag.
#[derive(Debug, Default)]
pub(super) struct Unsettled(VecDeque<u64>);

impl Unsettled {
    /// A delivery arrives; tags rise.
    pub(super) fn push(&mut self, tag: u64) {
        self.0.push_back(tag);
    }

    /// A delivery is settled in another way.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Ok(place) = self.0.binary_search(&tag) {
            self.0.remove(place);
        }
    }

    /// The frames for `tags`, in any order; these count as settled from now on. Tags that are not open are left out.
    ///
    /// An ack of several is legal up to the first open delivery that is not among `tags`.
    pub(super) fn ack(&mut self, mut tags: Vec<u64>) -> Vec<Ack> {
        tags.sort_unstable();
        let mut frames = Vec::new();
        let mut rest = tags.as_slice();
        let mut settled = 0;
        while let ([tag, others @ ..], Some(&oldest)) = (rest, self.0.front()) {
            if *tag > oldest {
                break;
            }
            rest = others;
            if *tag == oldest {
                self.0.pop_front();
                settled += 1;
                match frames.last_mut() {
                    None => frames.push(Ack { tag: *tag, multiple: false }),
                    Some(frame) => frame.tag = *tag,
                }
            }
        }
        if let Some(frame) = frames.last_mut() {
            frame.multiple = settled > 1;
        }
        for tag in rest {
            if let Ok(place) = self.0.binary_search(tag) {
                self.0.remove(place);
                frames.push(Ack { tag: *tag, multiple: false });
            }
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What a broker does with the frames: settles, or fails for a tag that is not open.
    fn settle(open: &mut BTreeSet<u64>, frames: &[Ack]) -> Result<(), u64> {
        for frame in frames {
            if !open.contains(&frame.tag) {
                return Err(frame.tag);
            }
            if frame.multiple {
                open.retain(|tag| *tag > frame.tag);
            } else {
                open.remove(&frame.tag);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn exactly_what_was_asked_is_settled(rounds in prop::collection::vec((0_u64..8, prop::collection::vec(0_u64..60, 0..12)), 1..20)) {
            let (mut unsettled, mut open, mut last) = (Unsettled::default(), BTreeSet::new(), 0);
            for (arriving, mut asked) in rounds {
                for _ in 0..arriving {
                    last += 1;
                    unsettled.push(last);
                    open.insert(last);
                }
                asked.dedup();
                let mut expected = open.clone();
                asked.iter().for_each(|tag| { expected.remove(tag); });
                let frames = unsettled.ack(asked);
                prop_assert_eq!(settle(&mut open, &frames), Ok(()));
                prop_assert_eq!(&open, &expected);
                prop_assert_eq!(unsettled.0.iter().copied().collect::<BTreeSet<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_batch_in_delivery_order_is_one_frame() {
        let mut unsettled = Unsettled::default();
        (1..=100).for_each(|tag| unsettled.push(tag));
        assert_eq!(unsettled.ack((1..=64).collect()), [Ack { tag: 64, multiple: true }]);
        assert_eq!(unsettled.ack(vec![65]), [Ack { tag: 65, multiple: false }]);
        assert_eq!(unsettled.ack(vec![67, 68]), [Ack { tag: 67, multiple: false }, Ack { tag: 68, multiple: false }]);
        assert_eq!(unsettled.ack(vec![66, 69]), [Ack { tag: 69, multiple: true }], "67 and 68 are settled already");
    }
}
