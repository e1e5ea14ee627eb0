//! Panics: one in a task is a failed attempt of that task, told with it; any other is a line of its own.

use std::{any::Any, cell::RefCell, panic::AssertUnwindSafe};

use bench_proto::failure::Failure;
use futures::FutureExt as _;
use tracing::error;

tokio::task_local! {
    static IN_TASK: ();
}

thread_local! {
    /// Where the last panic of a task on this thread came from.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says where panics go; once in a process.
pub fn catch_all() {
    std::panic::set_hook(Box::new(|panic| {
        if IN_TASK.try_with(|()| ()).is_err() {
            error!(code = "panic", "a part of this process panicked, report this as a bug: {panic}");
        } else if let Some(place) = panic.location() {
            let _ = PLACE.try_with(|last| last.replace(Some(place.to_string())));
        }
    }));
}

/// Carries out a task's work; its panic is a failure of it, never the end of the worker.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let caught = AssertUnwindSafe(IN_TASK.scope((), work)).catch_unwind().await;
    // unwound on the thread that panicked
    caught.map_err(|panic| failure(panic.as_ref(), PLACE.take()))
}

fn failure(panic: &(dyn Any + Send), place: Option<String>) -> Failure {
    let text =
        panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no message".to_owned());
    let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
    Failure::transient("panic", format!("the task panicked{place}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_failure_with_its_place() {
        catch_all();
        assert_eq!(caught(async { 7 }).await, Ok(7));
        let panicked: Result<(), Failure> = caught(async { panic!("no such {}", "luck") }).await;
        let failure = panicked.expect_err("it panicked");
        assert_eq!(failure.code, "panic");
        let message = failure.message.as_str();
        assert!(message.contains("panics.rs:") && message.ends_with(": no such luck"), "{message}");
        let later = super::failure(&"again", None);
        assert_eq!(later.message, "the task panicked: again");
    }
}
