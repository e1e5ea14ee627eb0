//! Room for the bytes that the meter holds: one bound for all requests together, so that many of the largest at once are refused and
//! not held.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const UNIT: usize = 1024;

/// The room of a meter.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// A part of it, empty at first.
    pub(crate) fn part(&self) -> Part {
        Part { room: Arc::clone(&self.0), taken: None }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits() * UNIT
    }
}

/// What one request has of the room; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Part {
    /// Makes it large enough for so many bytes; `false` when there is no room.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let have = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Ok(more) = u32::try_from(bytes.div_ceil(UNIT).saturating_sub(have)) else { return false };
        if more == 0 {
            return true;
        }
        match (Arc::clone(&self.room).try_acquire_many_owned(more), &mut self.taken) {
            (Ok(permit), Some(taken)) => taken.merge(permit),
            (Ok(permit), none) => *none = Some(permit),
            (Err(_), _) => return false,
        }
        true
    }

    /// The same, and waits until there is room; only for one that is empty, or two could wait for each other.
    pub(crate) async fn wait_for(&mut self, bytes: usize) {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        // nobody closes it
        self.taken = Arc::clone(&self.room).acquire_many_owned(units).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_is_given_back() {
        let room = Room::new(10 * UNIT);
        let mut one = room.part();
        assert!(one.grow_to(1) && one.grow_to(UNIT) && one.grow_to(4 * UNIT));
        assert_eq!(room.free(), 6 * UNIT);
        let mut two = room.part();
        assert!(!two.grow_to(7 * UNIT));
        assert!(two.grow_to(6 * UNIT));
        let mut three = room.part();
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), three.wait_for(UNIT)).await;
        assert!(waits.is_err());
        drop(one);
        three.wait_for(2 * UNIT).await;
        assert_eq!(room.free(), 2 * UNIT);
        drop((two, three));
        assert_eq!(room.free(), 10 * UNIT);
    }
}
