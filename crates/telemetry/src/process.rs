//! Live spans of what this process itself does: batches, sweeps, attempts. They stand beside the traces of questions, which are built
//! from the store (docs/adr/0015-telemetry.md), and are linked to them.
//!
//! [`process_span!`](crate::process_span) makes one. Without a collector it makes none, for the price of one relaxed load; with one
//! `tracing-opentelemetry` turns it into a span of its own trace, and [`Keep`] says which of these are sent.

#[cfg(feature = "otlp")]
pub(crate) mod live;

use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Span;

#[cfg(feature = "otlp")]
pub use self::live::ProcessSpans;

/// Target of all process spans: what the layer to the collector listens to.
pub const TARGET: &str = "bench_process";

/// Spans of other traces that one span is linked to, at most.
pub const MOST_LINKS: usize = 32;

/// Which spans of a name are sent. Nothing is decided before they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Every one: they are rare.
    All,
    /// Those that tell something: in which a line was logged, that failed, that took a second or more; and a small share of the others
    /// (`telemetry.process_rate`).
    Telling,
    /// Those of questions that the base rate of traces fell on: they are made for no others.
    Sampled,
}

impl Keep {
    /// Its word in the document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "every one",
            Self::Telling => "telling ones",
            Self::Sampled => "of sampled questions",
        }
    }
}

/// A name of process spans.
#[derive(Debug)]
pub struct ProcessSpan {
    /// What such spans are called.
    pub name: &'static str,
    /// Which spans of this name are sent.
    pub keep: Keep,
    /// What it covers, in one line.
    pub help: &'static str,
}

/// All names of process spans.
pub const SPANS: &[ProcessSpan] = &[
    ProcessSpan { name: "submit", keep: Keep::All, help: "a run being planned, checked and stored by `submit`" },
    ProcessSpan {
        name: "dispatch_batch",
        keep: Keep::Telling,
        help: "ready tasks of a run and role being published and noted",
    },
    ProcessSpan {
        name: "sweep",
        keep: Keep::Telling,
        help: "the look over a run that repairs counters and ends what is complete",
    },
    ProcessSpan { name: "aggregate", keep: Keep::All, help: "the summary of a run being made of its facts" },
    ProcessSpan {
        name: "claim_batch",
        keep: Keep::Telling,
        help: "messages being claimed and acknowledged by a worker",
    },
    ProcessSpan {
        name: "checkpoint_batch",
        keep: Keep::Telling,
        help: "steps being stored by one transaction, with the waits for the store",
    },
    ProcessSpan { name: "conclude_batch", keep: Keep::Telling, help: "questions being ended from their stored steps" },
    ProcessSpan {
        name: "bank_task",
        keep: Keep::Telling,
        help: "one attempt to retain for a bank, or to prove it ready",
    },
    ProcessSpan {
        name: "task",
        keep: Keep::Sampled,
        help: "one attempt at a question or a judgement, as its worker saw it",
    },
];

static ON: AtomicBool = AtomicBool::new(false);

/// Whether process spans are made: this process has a collector.
#[must_use]
pub fn on() -> bool {
    cfg!(feature = "otlp") && ON.load(Ordering::Relaxed)
}

/// Begins or ends the making of process spans.
#[cfg(feature = "otlp")]
pub(crate) fn turn(on: bool) {
    ON.store(on, Ordering::Relaxed);
    // the filter of the layer answers otherwise from now on
    tracing::callsite::rebuild_interest_cache();
}

/// Makes a process span, a root of its own trace, or none without a collector: `process_span!("sweep", run = run_id)`. Its name is one
/// of [`SPANS`]; fields are named as those of logs, or by the OpenTelemetry conventions.
#[macro_export]
macro_rules! process_span {
    ($name:literal $(, $($field:ident).+ = $value:expr)* $(,)?) => {
        if $crate::process::on() {
            $crate::tracing::info_span!(
                target: $crate::process::TARGET,
                parent: None,
                $name,
                trace_id = $crate::tracing::field::Empty
                $(, $($field).+ = $value)*
            )
        } else {
            $crate::tracing::Span::none()
        }
    };
}

/// A number of things as the field of a span: unsigned numbers would arrive as texts.
#[must_use]
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Links a span to one of another trace.
pub fn link(span: &Span, trace: [u8; 16], id: [u8; 8]) {
    if !span.is_none() {
        #[cfg(feature = "otlp")]
        live::link(span, trace, id);
        #[cfg(not(feature = "otlp"))]
        let _ = (trace, id);
    }
}

/// Starts a span, so that lines of the log inside of it carry its trace id. Its links are settled by now.
pub fn started(span: Span) -> Span {
    #[cfg(feature = "otlp")]
    if !span.is_none() {
        live::tell_trace(&span);
    }
    span
}

/// Notes that what a span covers has failed.
pub fn failed(span: &Span, why: &str) {
    if !span.is_none() {
        #[cfg(feature = "otlp")]
        live::failed(span, why);
        #[cfg(not(feature = "otlp"))]
        let _ = why;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_process_span_is_documented() {
        let document = include_str!("../../../docs/TELEMETRY.md");
        let names: BTreeSet<&str> = SPANS.iter().map(|span| span.name).collect();
        assert_eq!(names.len(), SPANS.len());
        for span in SPANS {
            let row = format!("| `{}` | {} | {} |", span.name, span.keep.name(), span.help);
            assert!(document.contains(&row), "docs/TELEMETRY.md lacks the row\n{row}");
        }
    }
}
