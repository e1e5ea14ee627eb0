//! Calls of a run's memory system that the meter has refused and that somebody has to do something about, by the notes of the processes
//! that work on it.

use bench_proto::{
    meter_refused::{MeterRefusedNote, together},
    summary::MeteredRefused,
};
use bench_store::{METER_REFUSED_EVENT, RunEvent, RunRow, Runs, StoreError};

/// How often each reason was met, most calls first.
///
/// # Errors
/// What the store meets.
pub(crate) async fn of_run(store: &dyn Runs, run: &RunRow) -> Result<Vec<MeteredRefused>, StoreError> {
    of_runs(store, std::slice::from_ref(run)).await
}

/// The same of several runs together.
///
/// # Errors
/// What the store meets.
pub(crate) async fn of_runs(store: &dyn Runs, runs: &[RunRow]) -> Result<Vec<MeteredRefused>, StoreError> {
    let mut notes = Vec::new();
    for run in runs.iter().filter(|run| run.spec.limits.meter.is_some()) {
        notes.extend(notes_of(&store.events(run.run_no).await?));
    }
    Ok(together(notes))
}

/// The same by the events of one run.
pub(crate) fn of_events(events: &[RunEvent]) -> Vec<MeteredRefused> {
    together(notes_of(events))
}

fn notes_of(events: &[RunEvent]) -> impl Iterator<Item = MeterRefusedNote> {
    RunEvent::notes(events, METER_REFUSED_EVENT)
}

#[cfg(test)]
mod tests {
    use bench_proto::metered::MeterPlan;
    use bench_store::{NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn p34_what_was_refused_is_known_while_the_run_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let mut new: NewRun = conformance::new_run("r");
        new.spec.limits.meter = Some(MeterPlan::default());
        let run = conformance::created(store, &new).await;
        assert_eq!(of_run(store, &run).await.expect("is read"), []);
        for message in ["{}", "no note", r#"{"process":"p","code":"model_not_found","why":"m has no price","calls":4}"#]
        {
            store.add_event(run.run_no, METER_REFUSED_EVENT, message).await.expect("is added");
        }
        let refused = of_run(store, &run).await.expect("is read");
        let told: Vec<String> = refused.iter().map(MeteredRefused::words).collect();
        assert_eq!(told, ["the meter refused at least 4 calls: m has no price"]);
        let mut second: NewRun = conformance::new_run("s");
        second.spec.limits.meter = Some(MeterPlan::default());
        let second = conformance::created(store, &second).await;
        let message = r#"{"process":"q","code":"model_not_found","why":"m has no price","calls":3}"#;
        store.add_event(second.run_no, METER_REFUSED_EVENT, message).await.expect("is added");
        let of_both = of_runs(store, &[run, second]).await.expect("is read");
        assert_eq!(of_both.iter().map(|of| of.calls).collect::<Vec<_>>(), [7]);
    }
}
