//! Commands side by side: a test over all datasets waits for few at once instead of for one after the other.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Commands that run at once.
const LANES: usize = 2;

/// Does something with all items, two of them at a time; results are in the order of the items.
pub fn side_by_side<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let waiting = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(BTreeMap::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((number, item)) = next() {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}
