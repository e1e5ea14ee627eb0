//! `delete RUN…`: removes runs from the store for good, with their files and their controls. An archive keeps what it has.

use std::collections::BTreeMap;

use bench_proto::{ids::RunId, spec::Limits};
use bench_store::{Right, RunFilter, RunRow, RunState, Store};
use bench_systems::adapter;
use serde_json::json;

use crate::{
    app::App,
    cli::DeleteArgs,
    exit::{CliError, CliResult, Exit},
    out::{self, amounts::dollars, times::local},
    results::{remove_comparisons, run_folder},
    runs::deletion::{check_needed, own_banks, remove},
    standing::{
        Standing,
        group::{RunsOfGroup, find_runs, group_of_equals, member},
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
        out::note(&told(store, run, args.yes).await?);
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

/// A run in a line, with what stays of it elsewhere; who is still to say a word is told what can be done about that first.
async fn told(store: &dyn Store, run: &RunRow, is_said: bool) -> Result<String, CliError> {
    let name = run.name.as_ref().map(|name| format!(" '{name}'")).unwrap_or_default();
    let stays = match own_banks(store, run).await?.is_empty() {
        true => String::new(),
        false => banks_that_stay(run, is_said),
    };
    Ok(format!(
        "{}{name}: {} · {} · {}, {} of {} questions, {}{stays}",
        run.run_id,
        run.spec.dataset.name,
        run.spec.system.name,
        local(run.created_ms),
        run.counters.ended(),
        run.sample_size(),
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

/// What is said of banks that stay; how they go while there is time for it.
fn banks_that_stay(run: &RunRow, is_said: bool) -> String {
    let stay = format!("; its banks stay in {}", run.spec.system.name);
    if is_said { stay } else { format!("{stay}, {}", how_banks_go(run.state, &run.run_id)) }
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

/// Removes what lies below the home: the run's report, pages that show it beside another run, and what a system that was started for
/// it has stored. What cannot be removed is said, and keeps nothing from having been deleted.
async fn remove_files(app: &App, run: &RunRow) {
    let mut compared = remove_comparisons(&app.home(), &run.run_id.0);
    if let Some(group) = member(run).then_some(run.group.as_ref()).flatten() {
        // what the repeats say together holds the scores of this one; `report` makes it again of those that stay
        let _ = std::fs::remove_dir_all(run_folder(app, &RunId(group.id.clone()), None));
        compared = compared.and(remove_comparisons(&app.home(), &group.id));
    }
    if let Err(error) = compared {
        out::note(&format!("pages that compare {} stay: {error}", run.run_id));
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
    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn who_has_said_yes_is_not_told_what_could_have_been_done_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let _ = store.create_run(&conformance::new_run("r")).await.expect("is created");
        let run = store.run_by_id(&RunId("r".to_owned())).await.expect("is read").expect("is there");
        let system = &run.spec.system.name;
        assert_eq!(banks_that_stay(&run, true), format!("; its banks stay in {system}"));
        let asked = banks_that_stay(&run, false);
        assert!(asked.ends_with("`bench-coord banks remove r` first removes them"), "{asked}");
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
