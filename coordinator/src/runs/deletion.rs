//! Runs are removed from the store for good: which of them may go, and that all or none do.
//!
//! A run stays while others need it: those that were forked from it, those that ask its banks, and those that are held against it and
//! may stop early.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    ids::RunNo,
    stop::{Looks, StopGoal, StopRule},
};
use bench_store::{RunFilter, RunRow, RunState, Store};

use crate::{
    exit::CliError,
    runs::{fork::source_of, removal::is_about_to_ask},
    standing::{are_banks_removed, asked_rows, is_restored, keeps_banks},
};

/// Removes runs, all or none. Those whose process is gone are held before, since none that runs is removed: whatever cuts this in two
/// leaves them with words that say so.
///
/// # Errors
/// Exit 2 where one of them has changed meanwhile; else what the store meets.
pub(crate) async fn remove(store: &dyn Store, runs: &[RunRow]) -> Result<(), CliError> {
    let interrupted: Vec<&RunRow> = runs.iter().filter(|run| run.state == RunState::Running).collect();
    for run in interrupted.iter().copied() {
        // a control goes with the run that it is one of
        let named = runs.iter().find(|other| run.control_of == Some(other.run_no)).unwrap_or(run);
        let why = format!("it was to be deleted, which `bench-coord delete {}` does", named.run_id);
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some(&why)).await?;
    }
    let numbers: Vec<RunNo> = runs.iter().map(|run| run.run_no).collect();
    let removed = store.delete_runs(&numbers).await;
    if !matches!(removed, Ok(true)) {
        for run in &interrupted {
            // running again it would count as resumed; a store that takes nothing any more keeps the words above
            let _ = store.set_run_state(run.run_no, &[RunState::Paused], RunState::Paused, Some("interrupted")).await;
        }
    }
    match removed? {
        true => Ok(()),
        false => Err(CliError::usage("one of them was resumed or changed just now: nothing was deleted")),
    }
}

/// Refuses runs that others need which stay.
///
/// # Errors
/// Exit 2 with who needs which of them; else what the store meets.
pub(crate) async fn check_needed(store: &dyn Store, runs: &[RunRow]) -> Result<(), CliError> {
    let numbers: BTreeSet<RunNo> = runs.iter().map(|run| run.run_no).collect();
    let mut others = store.list_runs(&RunFilter { controls: true, ..RunFilter::default() }).await?;
    others.retain(|run| !numbers.contains(&run.run_no));
    check_forks(store, runs, &others).await?;
    check_banks(store, runs, &others).await?;
    check_baselines(runs, &others)
}

/// Refuses runs that others were forked from: those use the calls that these have paid for.
async fn check_forks(store: &dyn Store, runs: &[RunRow], others: &[RunRow]) -> Result<(), CliError> {
    let lineages: BTreeSet<&str> = runs.iter().map(|run| run.lineage.as_str()).collect();
    let mut forks = Vec::new();
    for run in others.iter().filter(|run| lineages.contains(run.lineage.as_str())) {
        let Some(source) = source_of(store, run).await? else { continue };
        if source.split_once(" of ").is_some_and(|(_, id)| runs.iter().any(|run| run.run_id.0 == id)) {
            forks.push(format!("{} (from the {source})", run.run_id));
        }
    }
    if forks.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "runs were forked from what is to be deleted, and share the calls that were paid for: {}; name them too, or leave it",
        forks.join(", ")
    )))
}

/// Refuses runs whose banks others ask, or are about to: nobody could say any more whose they are, or remove them.
async fn check_banks(store: &dyn Store, runs: &[RunRow], others: &[RunRow]) -> Result<(), CliError> {
    let mut filled: BTreeMap<i64, &RunRow> = BTreeMap::new();
    for run in runs {
        filled.extend(own_banks(store, run).await?.into_iter().map(|row| (row, run)));
    }
    if filled.is_empty() {
        return Ok(());
    }
    for run in others.iter().filter(|run| !run.spec.taken_over.banks_of.is_empty()) {
        let rows = store.banks(run.run_no, None).await?;
        let asked = asked_rows(&rows).find_map(|row| filled.get(&row).copied());
        if let Some(of) = asked.or_else(|| filled.values().copied().find(|of| is_about_to_ask(run, of))) {
            return Err(CliError::usage(format!(
                "run {} asks banks that {of} has filled: name it too, or remove them first (`bench-coord banks remove {of}`)",
                run.run_id,
                of = of.run_id
            )));
        }
    }
    Ok(())
}

/// Rows of the banks that a run has filled itself, or was about to, and that are still in its memory system.
///
/// # Errors
/// What the store meets.
pub(crate) async fn own_banks(store: &dyn Store, run: &RunRow) -> Result<Vec<i64>, CliError> {
    // those of a restored run are where it ran
    if !keeps_banks(&run.spec) || are_banks_removed(store, run).await? || is_restored(store, run).await? {
        return Ok(Vec::new());
    }
    let rows = store.banks(run.run_no, None).await?;
    Ok(rows.iter().filter(|row| row.filled_before().is_none()).map(|row| row.bank_row).collect())
}

/// Refuses runs that others are held against, which may stop early: without a baseline these ask, and pay, everything.
fn check_baselines(runs: &[RunRow], others: &[RunRow]) -> Result<(), CliError> {
    let deleted = |id: &str| runs.iter().any(|run| run.run_id.0 == id);
    for run in others {
        let needed = baseline_needed(run.state, run.spec.stop.as_ref(), &run.looks);
        if let Some(baseline) = needed.filter(|baseline| deleted(baseline)) {
            let reopen = if run.state == RunState::Cancelled { " --reopen" } else { "" };
            return Err(CliError::usage(format!(
                "run {0} stops as soon as its difference to {baseline} is decided, and without it asks all of its \
                 questions: name it too, or let it end first (`bench-coord resume {0}{reopen}`)",
                run.run_id
            )));
        }
    }
    Ok(())
}

/// The run that one which has not come to its end is still to be held against. One that was cancelled is reopened by `retry` and
/// `resume --reopen`.
fn baseline_needed<'a>(state: RunState, rule: Option<&'a StopRule>, looks: &Looks) -> Option<&'a str> {
    let may_go_on = state != RunState::Finished;
    match &rule.filter(|rule| may_go_on && !rule.is_over(looks))?.goal {
        StopGoal::Decided { run, .. } => Some(run),
        StopGoal::Interval { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{FilledBank, NewBank, NewRun, conformance};
    use bench_systems::adapter;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn only_who_has_filled_what_others_ask_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = async |id: &str, banks_of: &[&str], filled: Option<FilledBank>| {
            let mut new: NewRun = conformance::new_run(id);
            new.spec.system.settings.insert(adapter::ADAPTER.to_owned(), json!({ "url": "http://mine" }));
            new.spec.taken_over.banks_of = banks_of.iter().map(|id| (*id).to_owned()).collect();
            let run = store.create_run(&new).await.expect("is created");
            let bank = NewBank { filled, ..conformance::bank(0, &[(2, &[0])]) };
            store.add_banks(run, &[bank]).await.expect("is added");
            store.finish_plan(run).await.expect("is planned");
            store.run(run).await.expect("is there")
        };
        let there = || FilledBank { name: "theirs".to_owned(), handle: "theirs".to_owned(), by: None };
        let fills = run("fills", &[], None).await;
        let row = store.banks(fills.run_no, None).await.expect("are read").remove(0);
        let filled = FilledBank { by: Some(row.bank_row), ..there() };
        let asks = run("asks", &["fills"], Some(filled)).await;
        let of_archive = run("of-archive", &[], Some(there())).await;
        let again = run("again", &["of-archive"], Some(there())).await;
        let own = run("own", &["fills"], None).await;
        let refused = async |run: &RunRow, others: &[RunRow]| {
            check_banks(store, std::slice::from_ref(run), others).await.err().map(|error| error.message)
        };
        let said = refused(&fills, std::slice::from_ref(&asks)).await.expect("is needed");
        assert!(said.contains("run asks asks banks that fills has filled: name it too"), "{said}");
        assert_eq!(refused(&of_archive, std::slice::from_ref(&again)).await, None, "the banks are not its to remove");
        assert_eq!(refused(&fills, std::slice::from_ref(&own)).await, None);
        // one that is not planned to its end may ask them yet
        let half = RunRow { planned: false, ..own };
        assert!(refused(&fills, std::slice::from_ref(&half)).await.is_some());
        assert!(own_banks(store, &of_archive).await.expect("are read").is_empty());
    }

    #[tokio::test]
    async fn what_could_not_be_deleted_is_not_said_to_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let mut rows = Vec::new();
        for id in ["interrupted", "resumed"] {
            rows.push(conformance::created(store, &conformance::new_run(id)).await);
        }
        // when it was looked at nobody worked on it
        rows[1].state = RunState::Paused;
        let refused = remove(store, &rows).await.expect_err("one of them runs").message;
        assert!(refused.contains("nothing was deleted"), "{refused}");
        let left = store.run(rows[0].run_no).await.expect("is there");
        assert_eq!((left.state, left.reason.as_deref()), (RunState::Paused, Some("interrupted")));
        remove(store, &rows[..1]).await.expect("is deleted");
        assert!(store.run(rows[0].run_no).await.is_err(), "it is gone");
    }

    #[test]
    fn a_baseline_is_needed_until_its_rule_is_over() {
        let decided = StopGoal::Decided { run: "base".to_owned(), digest: "d".to_owned(), margin: 0.03 };
        let rule = |goal| StopRule { goal, looks: vec![50, 200] };
        let (compares, narrow) = (rule(decided), rule(StopGoal::Interval { half_width: 0.03 }));
        let (open, to_the_end) = (Looks::default(), Looks { to_the_end: true, ..Looks::default() });
        for state in [RunState::Running, RunState::Paused, RunState::Cancelled] {
            assert_eq!(baseline_needed(state, Some(&compares), &open), Some("base"), "{state:?}");
        }
        for (state, rule, looks) in [
            (RunState::Finished, Some(&compares), &open),
            (RunState::Cancelled, Some(&compares), &to_the_end),
            (RunState::Paused, Some(&compares), &to_the_end),
            (RunState::Paused, Some(&narrow), &open),
            (RunState::Paused, None, &open),
        ] {
            assert_eq!(baseline_needed(state, rule, looks), None, "{state:?} {rule:?}");
        }
    }
}
