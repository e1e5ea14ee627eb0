//! `delete RUN…`: removes runs from the store for good, with their files and their controls. An archive keeps what it has.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    ids::{RunId, RunNo},
    spec::Limits,
    stop::{Looks, StopGoal, StopRule},
};
use bench_store::{Right, RunFilter, RunRow, RunState, Store};
use bench_systems::adapter;
use serde_json::json;

use crate::{
    app::App,
    cli::DeleteArgs,
    exit::{CliError, CliResult, Exit},
    out::{self, amounts::dollars, times::local},
    results::run_folder,
    runs::{fork::source_of, removal::is_about_to_ask},
    standing::{
        Standing, are_banks_removed, asked_rows,
        group::{RunsOfGroup, find_runs, group_of_equals, member},
        is_restored, keeps_banks,
        lock::OwnerLock,
    },
};

/// Deletes runs after a word and prints their ids; exit 2 for runs that are under way or that others need.
pub(super) async fn run(app: &App, args: &DeleteArgs) -> CliResult {
    let store = app.open_store().await?;
    let store = store.as_ref();
    let runs = chosen(store, &args.runs).await?;
    let file = app.store_file();
    for run in &runs {
        if let Standing::Running { pid } = Standing::of_run(run, file.as_deref()) {
            let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            return Err(CliError::usage(format!(
                "{0} is under way{pid}: `bench-coord pause {0}` or `bench-coord cancel {0}` first",
                run.run_id
            )));
        }
    }
    check_needed(store, &runs).await?;
    store.may(Right::Delete).await?;
    for run in &runs {
        out::note(&told(store, run).await?);
    }
    confirm(args.yes, runs.len()).await?;
    // nobody goes on with one of them meanwhile
    let locks = match &file {
        Some(file) => runs.iter().map(|run| OwnerLock::take(file, &run.run_id)).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    remove(store, &runs).await?;
    drop(locks);
    for run in &runs {
        remove_files(app, run).await;
    }
    tell_caps(store, &runs).await?;
    let ids: Vec<&str> = runs.iter().map(|run| run.run_id.0.as_str()).collect();
    if args.json {
        out::json(&json!({ "deleted": ids }));
    } else {
        ids.iter().for_each(|id| out::result(id));
    }
    out::note("deleted; `bench-coord gc` drops dataset items that no other run has");
    Ok(Exit::Done)
}

/// Removes runs, all or none. Those whose process is gone are held before, since none that runs is removed: whatever cuts this in two
/// leaves them with words that say so.
async fn remove(store: &dyn Store, runs: &[RunRow]) -> Result<(), CliError> {
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

/// The runs that were named, each with its controls; of a group all repeats.
async fn chosen(store: &dyn Store, selectors: &[String]) -> Result<Vec<RunRow>, CliError> {
    let mut named = Vec::new();
    for selector in selectors {
        named.extend(find_runs(store, selector).await?);
    }
    let mut runs: Vec<RunRow> = Vec::new();
    for run in named {
        if let Some(measured) = run.control_of {
            let measured = store.run(measured).await?;
            return Err(CliError::usage(format!(
                "{} is a control of {} and is deleted with it",
                run.run_id, measured.run_id
            )));
        }
        let controls = RunFilter { control_of: Some(run.run_no), ..RunFilter::default() };
        let controls = store.list_runs(&controls).await?;
        for run in std::iter::once(run).chain(controls) {
            if runs.iter().all(|there| there.run_no != run.run_no) {
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

/// Refuses runs that others need which stay.
async fn check_needed(store: &dyn Store, runs: &[RunRow]) -> Result<(), CliError> {
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
async fn own_banks(store: &dyn Store, run: &RunRow) -> Result<Vec<i64>, CliError> {
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
            return Err(CliError::usage(format!(
                "run {0} stops as soon as its difference to {baseline} is decided, and without it asks all of its \
                 questions: name it too, or let it end first (`bench-coord resume {0}`)",
                run.run_id
            )));
        }
    }
    Ok(())
}

/// The run that one which has not ended is still to be held against.
fn baseline_needed<'a>(state: RunState, rule: Option<&'a StopRule>, looks: &Looks) -> Option<&'a str> {
    let goes_on = matches!(state, RunState::Running | RunState::Paused);
    match &rule.filter(|rule| goes_on && !rule.is_over(looks))?.goal {
        StopGoal::Decided { run, .. } => Some(run),
        StopGoal::Interval { .. } => None,
    }
}

/// A run in a line, with what stays of it elsewhere.
async fn told(store: &dyn Store, run: &RunRow) -> Result<String, CliError> {
    let name = run.name.as_ref().map(|name| format!(" '{name}'")).unwrap_or_default();
    let stays = match own_banks(store, run).await?.is_empty() {
        true => String::new(),
        false => format!("; its banks stay in {}, {}", run.spec.system.name, how_banks_go(run.state, &run.run_id)),
    };
    Ok(format!(
        "{}{name}: {} · {} · {}, {} of {} questions, {}{stays}",
        run.run_id,
        run.spec.dataset.name,
        run.spec.system.name,
        local(run.created_ms),
        run.counters.ended(),
        run.spec.sample.n,
        dollars(run.counters.usd_paid())
    ))
}

/// Says what the caps of groups are which have lost some of their runs: what these have cost counts there no longer, and the caps are
/// lower by it.
async fn tell_caps(store: &dyn Store, deleted: &[RunRow]) -> Result<(), CliError> {
    let groups: BTreeMap<&str, &RunRow> =
        deleted.iter().filter_map(|run| Some((group_of_equals(run)?.id.as_str(), run))).collect();
    for (id, run) in groups {
        let Some(group) = RunsOfGroup::of_id(store, &RunId(id.to_owned())).await? else { continue };
        let Some(cap) = group.runs.first().and_then(|left| lowered(&run.spec.limits, &left.spec.limits)) else {
            continue;
        };
        out::note(&format!("the cap of group {id} is {cap} now: it is lower by what the deleted runs had cost"));
    }
    Ok(())
}

/// A cap that is another than before, in words.
fn lowered(before: &Limits, now: &Limits) -> Option<String> {
    if let Some(cap) = now.max_usage.filter(|_| now.max_usage != before.max_usage) {
        return Some(cap.to_string());
    }
    now.max_cost.filter(|_| now.max_cost != before.max_cost).map(|cap| dollars(cap.usd()))
}

/// How the banks of a run are removed, which only a run that has ended lets go.
fn how_banks_go(state: RunState, id: &RunId) -> String {
    let ended = match state {
        RunState::Finished | RunState::Cancelled => String::new(),
        RunState::Running | RunState::Paused => format!("`bench-coord cancel {id}`, then "),
    };
    format!("{ended}`bench-coord banks remove {id}` first removes them")
}

/// Asks a person; without a terminal only `--yes` is a word.
async fn confirm(yes: bool, runs: usize) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !out::can_ask() {
        return Err(CliError::usage("nothing was deleted: without a terminal, --yes is the word"));
    }
    let what = if runs == 1 { "it".to_owned() } else { format!("these {runs} runs") };
    if out::ask(&format!("Delete {what} for good?")).await {
        return Ok(());
    }
    Err(CliError::usage("nothing was deleted"))
}

/// Removes what lies below the home: the run's report, and what a system that was started for it has stored. What cannot be removed
/// is said, and keeps nothing from having been deleted.
async fn remove_files(app: &App, run: &RunRow) {
    if let Some(group) = member(run).then_some(run.group.as_ref()).flatten() {
        // what the repeats say together holds the scores of this one; `report` makes it again of those that stay
        let _ = std::fs::remove_dir_all(run_folder(app, &RunId(group.id.clone()), None));
    }
    let folder = run_folder(app, &run.run_id, None);
    let removed = match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => adapter::remove_data(&app.home(), &run.run_id.0).await.map(drop).map_err(|error| error.to_string()),
    };
    if let Err(why) = removed {
        out::note(&format!("files of {} stay: {why}", run.run_id));
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{FilledBank, NewBank, NewRun, conformance};

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
        let told = told(store, &of_archive).await.expect("is told");
        assert!(!told.contains("banks stay"), "{told}");
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
        for state in [RunState::Running, RunState::Paused] {
            assert_eq!(baseline_needed(state, Some(&compares), &open), Some("base"), "{state:?}");
        }
        for (state, rule, looks) in [
            (RunState::Finished, Some(&compares), &open),
            (RunState::Cancelled, Some(&compares), &open),
            (RunState::Paused, Some(&compares), &to_the_end),
            (RunState::Paused, Some(&narrow), &open),
            (RunState::Paused, None, &open),
        ] {
            assert_eq!(baseline_needed(state, rule, looks), None, "{state:?} {rule:?}");
        }
    }

    #[test]
    fn banks_of_a_run_that_can_go_on_are_removed_after_it_was_cancelled() {
        let id = RunId("r".to_owned());
        for state in [RunState::Finished, RunState::Cancelled] {
            assert_eq!(how_banks_go(state, &id), "`bench-coord banks remove r` first removes them", "{state:?}");
        }
        for state in [RunState::Running, RunState::Paused] {
            assert!(how_banks_go(state, &id).starts_with("`bench-coord cancel r`, then `bench"), "{state:?}");
        }
    }
}
