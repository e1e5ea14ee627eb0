//! Why nothing of a run moves although nothing is away: all that is left waits for another try, after a `Retry-After` for instance.

use bench_store::{OpenByRole, OpenTasks, RunFilter, RunRow, RunState, Runs, StoreResult, Tasks};
use serde::Serialize;

use super::{group::group_of_equals, latency::all_ended};

/// Most runs that a line names.
const NAMED: usize = 3;

/// Tasks of a run that all wait for another try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Waiting {
    /// How many.
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

/// The runs among `others` that a run waits for at its end, when its questions have ended and nothing is left of it to work on: its
/// controls, whose scores its report shows (P41), and the runs of its group, which are probed one at a time when all have asked
/// their questions (P43).
#[must_use]
pub(crate) fn waits_for<'a>(run: &RunRow, open: &OpenByRole, others: &'a [RunRow]) -> Vec<&'a RunRow> {
    let is_open = |tasks: &OpenTasks| tasks.leased + tasks.queued + tasks.unpublished + tasks.delayed > 0;
    if run.state != RunState::Running || !all_ended(run) || open.values().any(is_open) {
        return Vec::new();
    }
    let is_probed = !run.spec.limits.latency_probe.is_off();
    let group = group_of_equals(run).filter(|_| is_probed).map(|group| group.group_no);
    let is_waited_for = |other: &&RunRow| {
        let runs = other.state == RunState::Running;
        let is_control = other.control_of == Some(run.run_no) && (runs || other.waits());
        let is_equal = runs && group.is_some() && group_of_equals(other).map(|group| group.group_no) == group;
        other.run_no != run.run_no && (is_control || is_equal)
    };
    others.iter().filter(is_waited_for).collect()
}

/// What a run waits for at its end, in one line; `None` for any other run.
///
/// # Errors
/// What the store meets.
pub(crate) async fn at_its_end(store: &dyn Runs, run: &RunRow, open: &OpenByRole) -> StoreResult<Option<String>> {
    if run.state != RunState::Running || !all_ended(run) {
        return Ok(None);
    }
    let filter = RunFilter { open: true, controls: true, ..RunFilter::default() };
    let others = store.list_runs(&filter).await?;
    Ok(line_of(run, &waits_for(run, open, &others)))
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
    use bench_store::{NewGroup, NewRun, Store, conformance};

    use super::*;

    /// A run without questions, planned to its end.
    async fn ended(store: &dyn Store, mut new: NewRun) -> RunRow {
        new.spec.sample.n = 0;
        let run = store.create_run(&new).await.expect("is created");
        store.finish_plan(run).await.expect("is planned");
        store.run(run).await.expect("is there")
    }

    #[tokio::test]
    async fn p41_a_run_waits_for_its_controls() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = ended(store, conformance::new_run("r")).await;
        let nothing = OpenByRole::default();
        assert_eq!(at_its_end(store, &run, &nothing).await.expect("is read"), None, "it waits for nobody");
        for system in ["none", "random", "oracle", "bm25"] {
            let id = format!("r-{system}");
            let control = NewRun { control_of: Some(run.run_no), waits: true, ..conformance::new_run(&id) };
            ended(store, control).await;
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
        let repeat = |number: u32, recalls: u32| {
            let mut new = conformance::new_run(&format!("g-r{number}"));
            new.group = Some(NewGroup { id: "g".into(), cap: None });
            new.spec.limits.latency_probe = ProbePlan { recalls, ..ProbePlan::default() };
            new
        };
        let first = ended(store, repeat(1, 5)).await;
        let unprobed = ended(store, repeat(2, 0)).await;
        let asking = store.create_run(&repeat(3, 5)).await.expect("is created");
        let others = store.list_runs(&RunFilter { open: true, ..RunFilter::default() }).await.expect("are read");
        let nothing = OpenByRole::default();
        let waited = waits_for(&first, &nothing, &others);
        assert_eq!(waited.iter().map(|other| other.run_no).collect::<Vec<_>>(), [asking, unprobed.run_no]);
        assert!(line_of(&first, &waited).is_some_and(|line| line.ends_with("of its group: g-r3, g-r2")));
        assert!(waits_for(&unprobed, &nothing, &others).is_empty(), "it has no probe");
        let asking = store.run(asking).await.expect("is there");
        assert!(waits_for(&asking, &nothing, &others).is_empty(), "its questions are open");
    }
}
