//! Questions that are chosen over the whole dataset: known only when all of it was seen, so their ids are kept until then.

use std::collections::BinaryHeap;

use super::order::OrderKey;

/// A question that may get into the sample. Ordered by its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) place: OrderKey,
    pub(super) category: u32,
    pub(super) id: Box<str>,
}

/// The `capacity` first candidates of those that were offered.
#[derive(Debug)]
pub(super) struct First {
    capacity: usize,
    /// The last of them on top.
    heap: BinaryHeap<Candidate>,
}

impl First {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, heap: BinaryHeap::new() }
    }

    /// Takes a question when it is among the first so far; copies its id only then.
    pub(super) fn offer(&mut self, place: OrderKey, category: u32, id: &str) {
        if self.heap.len() >= self.capacity {
            match self.heap.peek() {
                Some(last) if place < last.place => self.heap.pop(),
                _ => return,
            };
        }
        self.heap.push(Candidate { place, category, id: id.into() });
    }

    /// The candidates, first one first.
    pub(super) fn into_sorted(self) -> Vec<Candidate> {
        self.heap.into_sorted_vec()
    }
}
