//! Statements that take long: one line each in the log, which is also in the span of whatever waited for it.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use tracing::info;

/// A statement that takes so long is told.
const SLOW: Duration = Duration::from_secs(1);

/// Waits for the answer to a statement; `text` holds places for its arguments, never the arguments themselves.
pub(crate) async fn told<T>(system: &'static str, text: &'static str, answer: impl Future<Output = T>) -> T {
    told_above(SLOW, system, text, answer).await
}

async fn told_above<T>(slow: Duration, system: &'static str, text: &'static str, answer: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = answer.await;
    let took = began.elapsed();
    if took >= slow {
        let elapsed_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        info!(
            elapsed_ms,
            db.system.name = system,
            db.query.text = text,
            "a statement of the store took {elapsed_ms} ms"
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{Event, Metadata, Subscriber, span};

    use super::*;

    /// Names of the fields of every event.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Heard {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, event: &Event<'_>) {
            let names = event.metadata().fields().iter().map(|field| field.name().to_owned());
            self.0.lock().expect("no test panics while it listens").extend(names);
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    #[tokio::test]
    async fn slow_statements_are_told_and_quick_ones_are_not() {
        let heard = Heard::default();
        let _listening = tracing::subscriber::set_default(heard.clone());
        assert_eq!(told("sqlite", "SELECT 1", async { 1 }).await, 1);
        assert!(heard.0.lock().expect("is whole").is_empty());
        assert_eq!(told_above(Duration::ZERO, "sqlite", "SELECT 2", async { 2 }).await, 2);
        let names = heard.0.lock().expect("is whole").clone();
        assert!(names.iter().any(|name| name == "db.query.text"), "{names:?}");
    }
}
