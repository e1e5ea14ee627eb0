//! Places for connections. One that waits for its next request has its place until somebody else needs it; one that is busy keeps it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: usize,
    /// Connections without a request, by how long they have had none.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// All places of a meter.
#[derive(Debug)]
pub(crate) struct Seats {
    places: Mutex<Places>,
    most: usize,
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    /// Its number among those that wait; 0 when it is busy.
    number: Mutex<u64>,
    leave: CancellationToken,
}

impl Seats {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { places: Mutex::default(), most: most.max(1) })
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place; `None` when all are busy. Who has waited longest leaves for it.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let mut places = self.lock();
        if places.taken >= self.most {
            let (_, oldest) = places.waiting.pop_first()?;
            oldest.cancel();
        }
        places.taken += 1;
        drop(places);
        let seat = Seat { seats: Arc::clone(self), number: Mutex::new(0), leave: CancellationToken::new() };
        seat.wait();
        Some(Arc::new(seat))
    }
}

impl Seat {
    /// Cancelled when the place is needed.
    pub(crate) fn leave(&self) -> &CancellationToken {
        &self.leave
    }

    /// Its request is there.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.seats.lock().waiting.remove(&std::mem::take(&mut *self.number()));
        Busy(Arc::clone(self))
    }

    fn wait(&self) {
        let mut places = self.seats.lock();
        places.next += 1;
        let number = places.next;
        places.waiting.insert(number, self.leave.clone());
        drop(places);
        *self.number() = number;
    }

    fn number(&self) -> MutexGuard<'_, u64> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let number = std::mem::take(&mut *self.number());
        let mut places = self.seats.lock();
        places.waiting.remove(&number);
        places.taken -= 1;
    }
}

/// A connection with a request; it waits again when this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_longest_leaves_and_who_is_busy_stays() {
        let seats = Seats::new(2);
        let (one, two) = (seats.take().expect("a place"), seats.take().expect("a place"));
        let busy = one.busy();
        let three = seats.take().expect("the place of the one that waits");
        assert!(two.leave().is_cancelled() && !one.leave().is_cancelled());
        drop(two);
        let busy_too = three.busy();
        assert!(seats.take().is_none(), "all are busy");
        drop(busy);
        drop(seats.take().expect("the first waits again"));
        assert!(one.leave().is_cancelled());
        drop((one, busy_too, three));
        assert_eq!(seats.lock().taken, 0);
        assert!(seats.lock().waiting.is_empty());
    }
}
