//! Operations that have to fill their bank again before they do what they were asked for, since the process that had it is gone:
//! whoever asks for one can note how long that lasts, because what a memory system spends meanwhile it spends on filling.

use std::sync::Arc;

/// What stands for a bank that is being filled again, until it is dropped.
pub type Held = Box<dyn Send>;

/// Notes that an operation begins to fill its bank.
pub type Notes = Arc<dyn Fn() -> Held + Send + Sync>;

tokio::task_local! {
    static NOTES: Notes;
}

/// Carries an operation out, which notes when it fills its bank.
pub async fn noting<F: Future>(notes: Notes, operation: F) -> F::Output {
    NOTES.scope(notes, operation).await
}

/// Notes that the operation fills its bank from now on, or waits for another one that does; `None`: nobody wants to know.
#[must_use]
pub fn begins() -> Option<Held> {
    NOTES.try_with(|notes| notes()).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use super::*;

    #[tokio::test]
    async fn a_bank_is_noted_as_being_filled_until_it_is_or_its_operation_is_given_up() {
        let filled = Arc::new(AtomicU32::new(0));
        let count = || Arc::strong_count(&filled);
        let notes = || -> Notes {
            let filled = Arc::clone(&filled);
            Arc::new(move || {
                let _ = filled.fetch_add(1, Ordering::SeqCst);
                Box::new(Arc::clone(&filled)) as Held
            })
        };
        assert!(begins().is_none(), "nobody asked");
        let seen = noting(notes(), async {
            let before = count();
            let held = begins();
            let during = count();
            drop(held);
            (during - before, count() - before)
        });
        assert_eq!(seen.await, (1, 0));
        let given_up = noting(notes(), async {
            let _held = begins();
            pending::<()>().await;
        });
        assert!(tokio::time::timeout(Duration::from_millis(10), given_up).await.is_err());
        assert_eq!((count(), filled.load(Ordering::SeqCst)), (1, 2));
    }
}
