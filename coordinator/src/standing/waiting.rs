//! Why nothing of a run moves although nothing is away: all that is left waits for another try, after a `Retry-After` for instance, or
//! the run waits for others: for its turn to begin, for its controls, or for the questions and probes of its group.

use bench_proto::ids::RunNo;
use bench_store::{
    OpenByRole, OpenTasks, RunFilter, RunRow, RunState, SessionRow, Sessions, Store, StoreResult, Tasks,
};
use serde::Serialize;

use super::{
    domains::{LOCAL_DOMAIN, session_domain},
    group::group_of_equals,
    latency::all_ended,
};

/// Most runs that a line names.
const NAMED: usize = 3;

/// Tasks of a run that all wait for another try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Waiting {
    /// Number of tasks.
    pub tasks: i64,
    /// Seconds until the first of them is tried again.
    pub next_try_seconds: f64,
    /// What the one that comes next waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Waiting {
    /// What a run waits for; `None` while any of its tasks can be worked on.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn read(store: &dyn Tasks, run: &RunRow) -> StoreResult<Option<Self>> {
        let waiting = Self::from_open(&store.open_tasks(run.run_no).await?, None);
        Ok(match waiting {
            Some(waiting) => Some(Self { reason: store.waits_for(run.run_no).await?, ..waiting }),
            None => None,
        })
    }

    /// What a run waits for, by its open tasks that were read already.
    pub(crate) fn from_open(open: &OpenByRole, reason: Option<String>) -> Option<Self> {
        let total = |pick: fn(&OpenTasks) -> i64| open.values().map(pick).sum::<i64>();
        let tasks = total(|o| o.delayed);
        if tasks == 0 || total(|o| o.leased + o.queued + o.unpublished) > 0 {
            return None;
        }
        let due_ms = open.values().filter_map(|o| o.next_due_ms).min().unwrap_or(0);
        Some(Self { tasks, next_try_seconds: due_ms.max(0) as f64 / 1000.0, reason })
    }

    /// One line: `12 tasks wait for another try, the next one in 41.2 s: the provider asks to wait 60 s`.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} tasks wait for another try, the next one in {:.1} s{reason}", self.tasks, self.next_try_seconds)
    }
}

/// Why a run of a process that executes its whole group has not begun: there are more of them than are executed at once, or others are
/// being probed (P43). `None` for any other run.
///
/// # Errors
/// What the store meets.
pub(crate) async fn before_its_begin(store: &dyn Sessions, run: &RunRow) -> StoreResult<Option<String>> {
    if run.state != RunState::Running || run.domain != LOCAL_DOMAIN || group_of_equals(run).is_none() {
        return Ok(None);
    }
    let sessions = store.open_sessions(&session_domain(run.run_no)).await?;
    let has_begun = sessions.iter().any(SessionRow::is_alive);
    Ok((!has_begun).then(|| "it begins when others of its group have come to rest".to_owned()))
}

/// Whether tasks are open.
pub(crate) fn has_open(open: &OpenByRole) -> bool {
    open.values().any(|tasks| tasks.all() > 0)
}

/// The runs among `others` that a run waits for at its end, when its questions have ended and nothing is left of it to work on: its
/// controls that have begun, whose scores its report shows (P41); before that the runs that keep its latency probe back. `is_at_work`
/// says whether tasks of a run are open.
#[must_use]
pub(crate) fn waits_for<'a>(
    run: &RunRow,
    open: &OpenByRole,
    others: &'a [RunRow],
    is_at_work: impl Fn(RunNo) -> bool,
) -> Vec<&'a RunRow> {
    if run.state != RunState::Running || !all_ended(run) || has_open(open) {
        return Vec::new();
    }
    let has_begun = |other: &&RunRow| other.control_of == Some(run.run_no) && other.state == RunState::Running;
    let controls: Vec<&RunRow> = others.iter().filter(has_begun).collect();
    if controls.is_empty() { keep_its_probe_back(run, others, is_at_work) } else { controls }
}

/// The runs among `others` for which the latency probe of a run waits: runs of its group that still put questions, or are being probed,
/// as `is_probed` says of one that puts none any more (P43).
#[must_use]
pub(crate) fn keep_its_probe_back<'a>(
    run: &RunRow,
    others: &'a [RunRow],
    is_probed: impl Fn(RunNo) -> bool,
) -> Vec<&'a RunRow> {
    let equals = equals_of(run, others);
    equals.filter(|other| !all_ended(other) || is_probed(other.run_no)).collect()
}

/// The running ones among `others` whose probes and that of a run go one after the other; none for a run without a probe.
fn equals_of<'a>(run: &RunRow, others: &'a [RunRow]) -> impl Iterator<Item = &'a RunRow> {
    let has_probe = !run.spec.limits.latency_probe.is_off();
    let group = group_of_equals(run).filter(|_| has_probe).map(|group| group.group_no);
    let run_no = run.run_no;
    others.iter().filter(move |other| {
        let of = group_of_equals(other).map(|group| group.group_no);
        other.run_no != run_no && other.state == RunState::Running && group.is_some() && of == group
    })
}

/// What a run waits for at its end, in one line; `None` for any other run.
///
/// # Errors
/// What the store meets.
pub(crate) async fn at_its_end(store: &dyn Store, run: &RunRow, open: &OpenByRole) -> StoreResult<Option<String>> {
    if run.state != RunState::Running || !all_ended(run) || has_open(open) {
        return Ok(None);
    }
    let filter = RunFilter { open: true, controls: true, ..RunFilter::default() };
    let mut others = Vec::new();
    for other in store.list_runs(&filter).await? {
        // one that has not begun waits itself, and keeps no probe back
        if before_its_begin(store, &other).await?.is_none() {
            others.push(other);
        }
    }
    let equals: Vec<RunNo> = equals_of(run, &others).map(|other| other.run_no).collect();
    let tasks = store.open_tasks_of(&equals, 1).await?;
    let is_at_work = |other: RunNo| tasks.get(&other).is_some_and(has_open);
    Ok(line_of(run, &waits_for(run, open, &others, is_at_work)))
}

fn line_of(run: &RunRow, others: &[&RunRow]) -> Option<String> {
    let first = others.first()?;
    let mut names: Vec<String> = others.iter().take(NAMED).map(|other| other.run_id.to_string()).collect();
    if others.len() > NAMED {
        names.push(format!("{} more", others.len() - NAMED));
    }
    let names = names.join(", ");
    Some(match first.control_of == Some(run.run_no) {
        true => format!("its questions have ended; it is finished when its controls are: {names}"),
        false => format!(
            "its questions have ended; its latency probe waits for the questions and the probes of others of its group: {names}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use bench_proto::{ids::Role, probe::ProbePlan};
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    /// A run without questions, planned to its end.
    async fn ended(store: &dyn Store, mut new: NewRun) -> RunRow {
        new.spec.sample.n = 0;
        let run = store.create_run(&new).await.expect("is created");
        store.finish_plan(run).await.expect("is planned");
        store.run(run).await.expect("is there")
    }

    /// Puts a run into another state.
    async fn set(store: &dyn Store, run: &RunRow, to: RunState) {
        let from = [RunState::Running, RunState::Paused];
        assert!(store.set_run_state(run.run_no, &from, to, None).await.expect("is set"));
    }

    /// Repeat `number` of a group, which is probed with so many recalls.
    fn repeat(number: u32, recalls: u32) -> NewRun {
        let mut new = conformance::new_run(&format!("g-r{number}"));
        new.group = Some(NewGroup { id: "g".into(), cap: None });
        new.spec.limits.latency_probe = ProbePlan { recalls, ..ProbePlan::default() };
        new
    }

    #[tokio::test]
    async fn p41_a_run_waits_for_its_controls() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = ended(store, conformance::new_run("r")).await;
        let nothing = OpenByRole::default();
        assert_eq!(at_its_end(store, &run, &nothing).await.expect("is read"), None, "it waits for nobody");
        let mut controls = Vec::new();
        for system in ["none", "random", "oracle", "bm25"] {
            let id = format!("r-{system}");
            let control = NewRun { control_of: Some(run.run_no), waits: true, ..conformance::new_run(&id) };
            controls.push(ended(store, control).await);
        }
        assert_eq!(at_its_end(store, &run, &nothing).await.expect("is read"), None, "they wait for it");
        for control in &controls {
            set(store, control, RunState::Running).await;
        }
        let told = at_its_end(store, &run, &nothing).await.expect("is read").expect("it waits");
        let names = "r-bm25, r-oracle, r-random, 1 more";
        assert_eq!(told, format!("its questions have ended; it is finished when its controls are: {names}"));
        let probed = OpenByRole::from([(Role::Question, OpenTasks { leased: 1, ..OpenTasks::default() })]);
        assert_eq!(at_its_end(store, &run, &probed).await.expect("is read"), None, "somebody works on it");
    }

    #[tokio::test]
    async fn p43_a_run_waits_with_its_probe_for_the_others_of_its_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let first = ended(store, repeat(1, 5)).await;
        let unprobed = ended(store, repeat(2, 0)).await;
        let asking = store.create_run(&repeat(3, 5)).await.expect("is created");
        let second = ended(store, repeat(4, 5)).await;
        let others = store.list_runs(&RunFilter { open: true, ..RunFilter::default() }).await.expect("are read");
        let nothing = OpenByRole::default();
        let waits = |run: &RunRow, probed: Option<RunNo>| -> Vec<RunNo> {
            let waited = waits_for(run, &nothing, &others, |other| Some(other) == probed);
            waited.iter().map(|other| other.run_no).collect()
        };
        assert_eq!(waits(&first, None), [asking], "the others have asked their questions too");
        assert_eq!(waits(&first, Some(second.run_no)), [second.run_no, asking]);
        assert!(waits(&unprobed, None).is_empty(), "it has no probe");
        let asking = store.run(asking).await.expect("is there");
        assert!(waits(&asking, None).is_empty(), "its questions are open");

        set(store, &asking, RunState::Paused).await;
        assert_eq!(at_its_end(store, &first, &nothing).await.expect("is read"), None, "it is its own turn");
        store.open_probe(second.run_no).await.expect("is opened");
        store.open_session("w", &session_domain(second.run_no), "{}").await.expect("opens");
        let told = at_its_end(store, &first, &nothing).await.expect("is read").expect("it waits");
        assert!(told.ends_with("the probes of others of its group: g-r4"), "{told}");
    }

    #[tokio::test]
    async fn p43_a_run_of_a_group_without_a_worker_has_not_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let row = async |new: NewRun| conformance::created(store, &new).await;
        let (alone, first) = (row(conformance::new_run("r")).await, row(repeat(1, 5)).await);
        let told = async |run: &RunRow| before_its_begin(store, run).await.expect("is read");
        assert_eq!(told(&alone).await, None);
        assert!(told(&first).await.is_some_and(|told| told.contains("begins when others of its group")));
        store.open_session("w", &session_domain(first.run_no), "{}").await.expect("opens");
        assert_eq!(told(&first).await, None, "a worker is there");
    }

    #[tokio::test]
    async fn p41_a_control_is_named_once_it_has_begun_and_then_nobody_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let first = ended(store, repeat(1, 5)).await;
        let control = NewRun { control_of: Some(first.run_no), waits: true, ..conformance::new_run("g-r1-none") };
        let control = ended(store, control).await;
        let asking = store.create_run(&repeat(2, 5)).await.expect("is created");
        let told = async || {
            let told = at_its_end(store, &first, &OpenByRole::default()).await.expect("is read");
            told.and_then(|told| told.rsplit(": ").next().map(str::to_owned))
        };
        assert_eq!(told().await, None, "nobody works on the other one yet: it waits itself");
        store.open_session("w", &session_domain(asking), "{}").await.expect("opens");
        assert_eq!(told().await.as_deref(), Some("g-r2"), "the control comes after its probe");
        set(store, &control, RunState::Running).await;
        assert_eq!(told().await.as_deref(), Some("g-r1-none"));
        assert_eq!(store.run(asking).await.expect("is there").state, RunState::Running);
    }
}
