//! Progress of a run as numbers, read from its counters; views only show it.

use std::time::{Duration, Instant};

use bench_proto::{ids::RunId, money::PicoUsd, summary::MeteredRefused};
use bench_store::{RunCounters, RunRow, RunState};
use serde::Serialize;

use super::{latency::Probing, outages::Away, waiting::Waiting};
use crate::out::amounts::{dollars, duration};

/// What a progress view shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    /// Id of the run whose progress it is.
    pub run: RunId,
    /// State word.
    pub state: String,
    /// Questions in the sample.
    pub questions: u64,
    /// Questions that ended.
    pub ended: u64,
    /// Questions answered (they may wait for a judge).
    pub answered: u64,
    /// A model judges the answers.
    pub judged: bool,
    /// Questions that ended as `scored`.
    pub scored: u64,
    /// Questions that ended as `abstained`.
    pub abstained: u64,
    /// Questions that ended as `infra_error`.
    pub infra_error: u64,
    /// Banks of the sample.
    pub banks: u64,
    /// Banks proven ready.
    pub banks_ready: u64,
    /// Stream entries retained.
    pub entries_retained: u64,
    /// Stream entries planned so far.
    pub entries_planned: u64,
    /// The figure of the report, once there is one; before, the plain mean of the headline scores so far; absent before the first.
    pub score: Option<f64>,
    /// Whether `score` is the figure of the report.
    pub score_is_of_report: bool,
    /// Spent so far, in dollars, uncertain attempts included at their worst case.
    pub usd: f64,
    /// The part of `usd` that is uncertain: attempts of which nobody knows what they cost.
    pub usd_uncertain: f64,
    /// The cap, in dollars.
    pub usd_cap: Option<f64>,
    /// Questions that ended per second, over the last looks.
    pub per_second: f64,
    /// Seconds to go at the present rate; absent while it is not known.
    pub eta_seconds: Option<f64>,
    /// Seconds of running time.
    pub elapsed_seconds: f64,
    /// Workers of a cluster that are alive, and how many of them hold tasks.
    pub workers: Option<(usize, usize)>,
    /// The latency probe, once every question has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_probe: Option<Probing>,
    /// Providers that the run needs and that are away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Away>,
    /// Calls of the memory system that the meter has refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused_calls: Vec<MeteredRefused>,
    /// What the run waits for when nothing has ended for a while and nothing is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
}

impl Snapshot {
    /// The same of a run that nobody works on: what it once did a second says nothing about when it ends.
    #[must_use]
    pub(crate) fn of_nobody(self) -> Self {
        Self { per_second: 0.0, eta_seconds: None, ..self }
    }
}

/// Longest time to go that is told: a rate that has nearly come to a stop tells of none.
const LONGEST_LEFT_SECONDS: f64 = 1_000.0 * 3_600.0;

/// For how long no question has ended when progress begins to say what the run waits for.
const STILL: Duration = Duration::from_secs(3);

/// Turns successive looks at a run's row into snapshots with a rate.
#[derive(Debug)]
pub(crate) struct ProgressMeter {
    began: Instant,
    ended_at_begin: i64,
    last: Option<(Instant, i64)>,
    /// When a question was last seen to have ended.
    moved: Instant,
    per_second: f64,
}

impl Default for ProgressMeter {
    fn default() -> Self {
        let now = Instant::now();
        Self { began: now, ended_at_begin: 0, last: None, moved: now, per_second: 0.0 }
    }
}

impl ProgressMeter {
    /// Whether no question has ended for some seconds, so that people ask why.
    pub(crate) fn is_still(&self) -> bool {
        self.moved.elapsed() >= STILL
    }

    /// The snapshot at this look.
    pub(crate) fn look(&mut self, run: &RunRow) -> Snapshot {
        let now = Instant::now();
        let ended = run.counters.ended();
        match self.last {
            None => {
                self.ended_at_begin = ended;
                self.last = Some((now, ended));
            }
            Some((then, before)) => {
                let seconds = now.duration_since(then).as_secs_f64();
                if ended > before {
                    self.moved = now;
                }
                if seconds >= 0.5 {
                    let current = (ended - before).max(0) as f64 / seconds;
                    // half-life of about two looks: steady to read, quick to follow
                    self.per_second =
                        if self.per_second == 0.0 { current } else { 0.7 * self.per_second + 0.3 * current };
                    self.last = Some((now, ended));
                }
            }
        }
        let overall = match self.last {
            // a single look: the mean over the run's active time
            Some((first, _)) if first == now && run.active_since_ms.is_some() => {
                ended.max(0) as f64 / active_seconds(run).max(1.0)
            }
            _ => (ended - self.ended_at_begin).max(0) as f64 / now.duration_since(self.began).as_secs_f64().max(1e-3),
        };
        snapshot(run, if self.per_second > 0.0 { self.per_second } else { overall }, self.began.elapsed().as_secs_f64())
    }
}

/// The rows of runs that are looked at as one: counts and money are summed, all else is that of the first that runs. A single
/// row stays as it is.
pub(crate) fn together(rows: Vec<RunRow>) -> Option<RunRow> {
    let several = rows.len() > 1;
    let shown = rows.iter().find(|row| row.state == RunState::Running).or_else(|| rows.first());
    let mut all = shown?.clone();
    if !several {
        return Some(all);
    }
    if let Some(group) = &all.group {
        all.run_id = RunId(group.id.clone());
    }
    all.counters = RunCounters::default();
    (all.spec.sample.n, all.spec.sample.banks) = (0, 0);
    for row in &rows {
        let (sum, one) = (&mut all.counters, &row.counters);
        sum.banks_planned += one.banks_planned;
        sum.banks_ready += one.banks_ready;
        sum.entries_planned += one.entries_planned;
        sum.entries_retained += one.entries_retained;
        sum.scored += one.scored;
        sum.abstained += one.abstained;
        sum.infra_error += one.infra_error;
        sum.answered += one.answered;
        sum.headline_sum += one.headline_sum;
        sum.unmeasured += one.unmeasured;
        sum.spent = sum.spent.saturating_add(one.spent);
        sum.uncertain = sum.uncertain.saturating_add(one.uncertain);
        sum.reserved = sum.reserved.saturating_add(one.reserved);
        sum.overdraft = sum.overdraft.saturating_add(one.overdraft);
        all.spec.sample.n += row.sample_size();
        all.spec.sample.banks += row.spec.sample.banks;
    }
    Some(all)
}

/// Seconds that a run has been running, the open interval by this machine's clock: for people.
fn active_seconds(run: &RunRow) -> f64 {
    let open_ms = run.active_since_ms.map_or(0, |since| (jiff::Timestamp::now().as_millisecond() - since).max(0));
    (run.active_ms + open_ms) as f64 / 1000.0
}

fn seconds_left(left: u64, per_second: f64) -> Option<f64> {
    let seconds = (per_second > 0.0 && left > 0).then(|| left as f64 / per_second);
    seconds.filter(|seconds| *seconds < LONGEST_LEFT_SECONDS)
}

fn snapshot(run: &RunRow, per_second: f64, elapsed_seconds: f64) -> Snapshot {
    let RunCounters {
        banks_ready,
        entries_planned,
        entries_retained,
        scored,
        abstained,
        infra_error,
        answered,
        spent,
        uncertain,
        ..
    } = run.counters;
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let ended = count(run.counters.ended());
    let left = run.sample_size().saturating_sub(ended);
    Snapshot {
        run: run.run_id.clone(),
        state: run.state.name().to_owned(),
        questions: run.sample_size(),
        ended,
        answered: count(answered),
        judged: !run.spec.judges.is_empty(),
        scored: count(scored),
        abstained: count(abstained),
        infra_error: count(infra_error),
        banks: run.spec.sample.banks,
        banks_ready: count(banks_ready),
        // the empty part that closes a bank, in which its canaries are asked for, counts as one there
        entries_retained: count(entries_retained.min(entries_planned)),
        entries_planned: count(entries_planned),
        score: run.counters.mean(),
        score_is_of_report: false,
        usd: spent.usd(),
        usd_uncertain: uncertain.usd(),
        usd_cap: run.spec.limits.max_cost.map(PicoUsd::usd),
        per_second,
        eta_seconds: seconds_left(left, per_second),
        elapsed_seconds,
        workers: None,
        latency_probe: None,
        outages: Vec::new(),
        refused_calls: Vec::new(),
        waits: None,
    }
}

/// One line for people: `120/200 questions · 10/10 banks ready · mean so far 0.412 · 56.1/s · 1 s left · $0.0042 of $20.00`.
#[must_use]
pub(crate) fn line(s: &Snapshot) -> String {
    let mut parts = done(s);
    parts.extend(left(s));
    let of_it = uncertain(s).map(|usd| format!(", {usd} of it uncertain")).unwrap_or_default();
    parts.extend(money(s).map(|money| format!("{money}{of_it}")));
    parts.extend(others(s));
    parts.extend(troubles(s));
    parts.join(" · ")
}

/// The same where there is no room for all of it, and its end is cut: what people wait for and pay comes first.
#[must_use]
pub(crate) fn short_line(s: &Snapshot) -> String {
    let mut parts: Vec<String> = left(s).into_iter().chain(money(s)).collect();
    parts.extend(troubles(s));
    parts.extend(done(s));
    parts.extend(others(s));
    parts.extend(uncertain(s).map(|usd| format!("{usd} uncertain")));
    parts.join(" · ")
}

/// How far a run is, and how quick.
fn done(s: &Snapshot) -> Vec<String> {
    let mut parts = vec![format!("{}/{} questions", s.ended, s.questions)];
    let all_stored = s.entries_planned > 0 && s.entries_retained >= s.entries_planned;
    if s.banks_ready < s.banks && all_stored {
        // their questions are under way, and behind these their canaries are asked for
        parts.push(format!("{}/{} banks done", s.banks_ready, s.banks));
    } else if s.banks_ready < s.banks {
        parts.push(format!("{}/{} banks ready ({} entries retained)", s.banks_ready, s.banks, s.entries_retained));
    }
    if s.judged && s.answered > s.ended {
        parts.push(format!("{} to judge", s.answered - s.ended));
    }
    if let Some(score) = s.score {
        // weights, and the mean over banks, come with the report
        let what = if s.score_is_of_report { "score" } else { "mean so far" };
        parts.push(format!("{what} {score:.3}"));
    }
    if s.infra_error > 0 {
        parts.push(format!("{} infra_error", s.infra_error));
    }
    if s.per_second > 0.0 {
        parts.push(format!("{:.1}/s", s.per_second));
    }
    parts
}

fn left(s: &Snapshot) -> Option<String> {
    s.eta_seconds.map(|eta| format!("{} left", duration(eta)))
}

/// What is spent, of which cap.
fn money(s: &Snapshot) -> Option<String> {
    let cap = s.usd_cap.map(|cap| format!(" of {}", dollars(cap))).unwrap_or_default();
    (s.usd > 0.0 || s.usd_cap.is_some()).then(|| format!("${:.4}{cap}", s.usd))
}

fn uncertain(s: &Snapshot) -> Option<String> {
    (s.usd_uncertain > 0.0).then(|| format!("${:.4}", s.usd_uncertain))
}

/// Who works on it, what follows the last question, and what its memory system is not let do.
fn others(s: &Snapshot) -> impl Iterator<Item = String> {
    let probe = s.latency_probe.map(|probe| format!("latency probe {}/{}", probe.made, probe.of));
    let workers = s.workers.map(|(alive, busy)| format!("{alive} workers, {busy} busy"));
    probe.into_iter().chain(workers).chain(s.refused_calls.iter().map(MeteredRefused::words))
}

/// What keeps it from going on.
fn troubles(s: &Snapshot) -> impl Iterator<Item = String> + '_ {
    s.outages.iter().map(Away::line).chain(s.waits.as_ref().map(Waiting::line))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that goes well.
    pub(crate) fn snapshot() -> Snapshot {
        Snapshot {
            run: RunId("r".into()),
            state: "running".into(),
            questions: 200,
            ended: 120,
            answered: 130,
            judged: true,
            scored: 110,
            abstained: 8,
            infra_error: 2,
            banks: 10,
            banks_ready: 10,
            entries_retained: 272,
            entries_planned: 272,
            score: Some(0.4123),
            score_is_of_report: false,
            usd: 0.0042,
            usd_uncertain: 0.0,
            usd_cap: Some(20.0),
            per_second: 56.14,
            eta_seconds: Some(1.4),
            elapsed_seconds: 3.0,
            workers: Some((4, 3)),
            latency_probe: Some(Probing { made: 57, of: 200 }),
            outages: Vec::new(),
            refused_calls: Vec::new(),
            waits: None,
        }
    }

    #[test]
    fn a_rate_that_has_nearly_come_to_a_stop_tells_of_no_end() {
        assert_eq!(seconds_left(100, 0.5), Some(200.0));
        assert_eq!([seconds_left(0, 0.5), seconds_left(100, 0.0), seconds_left(100, 2e-14)], [None; 3]);
    }

    #[test]
    fn a_line_says_what_is_going_on() {
        let snapshot = snapshot();
        assert_eq!(
            line(&snapshot),
            "120/200 questions · 10 to judge · mean so far 0.412 · 2 infra_error · 56.1/s · 1 s left · $0.0042 of $20.00 · latency probe 57/200 · 4 workers, 3 busy"
        );
        assert_eq!(
            short_line(&snapshot),
            "1 s left · $0.0042 of $20.00 · 120/200 questions · 10 to judge · mean so far 0.412 · 2 infra_error · 56.1/s · \
             latency probe 57/200 · 4 workers, 3 busy"
        );
        let said =
            |snapshot: &Snapshot| serde_json::to_value(snapshot).expect("is JSON")["score_is_of_report"].as_bool();
        assert_eq!(said(&snapshot), Some(false));
        let ended = Snapshot { ended: 200, answered: 200, score_is_of_report: true, ..snapshot.clone() };
        assert_eq!(said(&ended), Some(true));
        assert!(line(&ended).contains("200/200 questions · score 0.412 · "), "{}", line(&ended));
        let interrupted = line(&snapshot.clone().of_nobody());
        assert!(!interrupted.contains("/s ·") && !interrupted.contains("left"), "{interrupted}");
        let unsure = Snapshot { usd_uncertain: 0.001, ..snapshot };
        assert!(line(&unsure).contains("$0.0042 of $20.00, $0.0010 of it uncertain"), "{}", line(&unsure));
        assert!(short_line(&unsure).ends_with(" · $0.0010 uncertain"), "{}", short_line(&unsure));
        let refused = MeteredRefused {
            code: "model_not_found".to_owned(),
            why: "m has no price".to_owned(),
            calls: 8,
            at_least: true,
        };
        let refused = Snapshot { refused_calls: vec![refused], ..unsure };
        let said = " · the meter refused at least 8 calls: m has no price";
        assert!(line(&refused).ends_with(said) && short_line(&refused).contains(said), "{}", line(&refused));
    }

    #[tokio::test]
    async fn what_closes_a_bank_is_no_entry_of_its_stream() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        let new = bench_store::conformance::new_run("r");
        let mut row = bench_store::conformance::created(store.as_ref(), &new).await;
        for (retained, told) in [(300, 300), (342, 332)] {
            (row.counters.entries_planned, row.counters.entries_retained) = (332, retained);
            let snapshot = ProgressMeter::default().look(&row);
            assert_eq!((snapshot.entries_planned, snapshot.entries_retained), (332, told));
        }
    }
}
