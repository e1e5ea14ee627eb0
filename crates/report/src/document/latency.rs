//! Latencies, each beside what it belongs to (P43): the probe, by which systems are compared, and the times of the run under its own
//! load, which are its throughput and nobody else's.

use bench_proto::summary::{LatencyProbe, Percentiles, Summary};

use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, counted, ms},
    words,
};

/// The latency probe, when one was wanted.
pub(super) fn probe(summary: &Summary) -> Vec<Block> {
    let Some(probe) = &summary.latency_probe else { return Vec::new() };
    let mut blocks = vec![heading("Latency probe in milliseconds")];
    if probe.n > 0 || probe.failed > 0 {
        let or_none = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), ms);
        let row = |name: String, [p50, p95, p99]: [Option<f64>; 3], n: u64, failed: u64| {
            vec![name, or_none(p50), or_none(p95), or_none(p99), count(n), count(failed)]
        };
        let alone = [probe.p50_ms, probe.p95_ms, probe.p99_ms];
        let mut rows = vec![row("one recall at a time".to_owned(), alone, probe.n, probe.failed)];
        rows.extend(probe.at_rates.iter().map(|at| {
            let name = format!("{} a second, up to {} at once", at.rate, count(at.in_flight.into()));
            row(name, [at.p50_ms, at.p95_ms, at.p99_ms], at.n, at.failed)
        }));
        blocks.push(table(&["Recalls", ">p50", ">p95", ">p99", ">n", ">Failed"], rows));
    }
    blocks.extend(probe.failure.as_ref().map(|why| {
        let what = if probe.n == 0 { "Not measured" } else { "Not whole" };
        Block::Text(format!("{what}: {why}."))
    }));
    blocks.extend(probe.at_rates.iter().filter_map(|at| {
        let why = at.failure.as_ref()?;
        Some(Block::Text(format!("Not whole at {} a second: {why}.", at.rate)))
    }));
    if probe.n > 0 {
        blocks.push(Block::Text(conditions(probe)));
    }
    blocks
}

/// `15.3 ms (probe, p50)`, and whether stored replies may be in it.
pub(crate) fn probe_p50(summary: &Summary) -> Option<String> {
    let probe = summary.latency_probe.as_ref()?;
    let stored = if probe.conditions.stored_replies { ", stored replies" } else { "" };
    probe.p50_ms.map(|ms| format!("{ms:.1} ms (probe, p50{stored})"))
}

/// `After all questions, 200 of 200 recalls, top 10, by 1 worker on linux x86_64, 4 cores (release), nothing else in hand.`
fn conditions(probe: &LatencyProbe) -> String {
    let conditions = &probe.conditions;
    let others = match conditions.other_tasks {
        0 => "nothing else in hand".to_owned(),
        n => format!("up to {} in hand: not compared with others", counted(n.into(), "other task")),
    };
    let stored = if conditions.stored_replies {
        " Calls of the memory system may have been answered by stored replies: not compared with others."
    } else {
        ""
    };
    format!(
        "After all questions: {} of {} recalls, top {}, by {} on {} ({}), {others}.{stored}",
        count(probe.n),
        count(conditions.recalls),
        conditions.top_k,
        counted(conditions.workers, "worker"),
        conditions.machines.join(" + "),
        conditions.builds.join(" + "),
    )
}

/// Times of the run's own operations, beside what was in flight.
pub(super) fn under_load(summary: &Summary) -> Vec<Block> {
    let l = &summary.latency_ms;
    let phases: [(&str, &str, &Option<Percentiles>); 11] = [
        ("build (index, embeddings, start)", "", &l.build),
        ("· waiting for it", "", &l.build_wait),
        ("retain (per session)", "retain", &l.retain),
        ("recall", "recall", &l.recall),
        ("answer", "answer", &l.answer),
        ("judge", "judge", &l.judge),
        ("question, all phases", "", &l.question),
        ("· in providers", "", &l.provider),
        ("· rate-limit wait", "", &l.rate_wait),
        ("· our own", "", &l.own),
        ("queue wait, before it", "", &l.queue_wait),
    ];
    let rows: Vec<Vec<String>> = phases
        .into_iter()
        .filter_map(|(name, phase, p)| {
            let p = p.as_ref()?;
            Some(vec![name.to_owned(), ms(p.p50), ms(p.p95), ms(p.p99), count(p.n), in_flight(summary, phase)])
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let allowed = match summary.concurrency.as_ref().map(|concurrency| concurrency.questions) {
        Some(Some(most)) => format!("with at most {} in flight", counted(most.into(), "question")),
        _ => match summary.spec.concurrency {
            Some(most) => format!("with at most {} in flight", counted(most.into(), "question")),
            None => "with as many questions in flight as the workers took".to_owned(),
        },
    };
    vec![
        heading("Latency under load in milliseconds"),
        Block::Text(format!(
            "Measured {allowed}: queues in front of the system are part of it, so that it is compared with no other run. {}{}",
            words::RETAIN_AND_RECALL,
            of_stored_replies(summary)
        )),
        table(&["Phase", ">p50", ">p95", ">p99", ">n", ">In flight, median (most)"], rows),
    ]
}

/// Says how many calls of the memory system itself took no time, where some were answered from the call store.
fn of_stored_replies(summary: &Summary) -> String {
    let stored = summary.metered.as_ref().map_or(0, |metered| metered.total.stored_calls);
    if stored == 0 {
        return String::new();
    }
    let calls = counted(stored, "call");
    format!(
        " Of the memory system's own calls {calls} came from stored replies, which takes no time: paid ones take longer."
    )
}

/// `12 (32)`, where it was noted.
fn in_flight(summary: &Summary, phase: &str) -> String {
    let of_phase = summary.concurrency.as_ref().and_then(|concurrency| concurrency.in_flight.get(phase));
    of_phase.map_or_else(String::new, |of| format!("{} ({})", count(of.p50.into()), count(of.max.into())))
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::{MeteredFigures, MeteredSummary};

    use super::*;
    use crate::golden;

    #[test]
    fn p43_latencies_say_that_stored_replies_are_in_them() {
        let mut summary = golden::report();
        summary.metered = None;
        assert_eq!(of_stored_replies(&summary), "");
        let total = MeteredFigures { stored_calls: 12, ..MeteredFigures::default() };
        summary.metered = Some(MeteredSummary { total, ..MeteredSummary::default() });
        assert!(probe_p50(&summary).is_some_and(|told| told.ends_with("(probe, p50)")), "{:?}", probe_p50(&summary));
        summary.latency_probe.as_mut().expect("was probed").conditions.stored_replies = true;
        assert!(probe_p50(&summary).is_some_and(|told| told.ends_with("(probe, p50, stored replies)")));
        assert!(of_stored_replies(&summary).contains("12 calls came from stored replies"));
    }
}
