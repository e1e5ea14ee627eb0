//! Finds the runs that have filled the same banks, for one that is to ask them (`--reuse-banks`).

use bench_proto::spec::{RunSpec, TakenOver};
use bench_store::{RunFilter, Runs};
use bench_systems::adapter;

use super::{
    super::{PlannedRun, archived},
    bank::{Filled, who_filled},
    before::{Asker, FilledBefore},
    kept::{archived_instead, check_kept, differs},
    look::{looked_up, note},
    still_there::check_filled,
};
use crate::{
    app::{App, Deployment},
    exit::CliError,
    out,
};

/// Runs of the same memory system that are looked through, newest first.
const MOST_RUNS: usize = 200;

/// Lets a planned run ask banks that earlier runs have filled with the same, where there are such; with `look` they are counted
/// before anything starts.
///
/// # Errors
/// Exit 2 where the memory system keeps no banks, and when banks hold less than they were given; exit 4 when the system does not
/// answer.
pub(super) async fn reuse_banks(app: &App, planned: &mut PlannedRun, look: bool) -> Result<(), CliError> {
    let spec = &planned.spec;
    if planned.capabilities.from_items {
        out::note(&format!(
            "--reuse-banks: {} is computed from the stored texts, which all runs share: there is nothing to fill",
            spec.system.name
        ));
        return Ok(());
    }
    // whoever is started for each run begins with the files of an archive as well as with none
    let begins_anew = adapter::server_of(&spec.system.settings).is_none() && !planned.capabilities.recall_mutates;
    let may_begin = begins_anew && app.deployment()? == Deployment::Local;
    let archive = if may_begin { archived::fitting(&app.home(), planned).await? } else { None };
    if let Some(archive) = archive {
        return archived::ask(app, &archive, None, planned).await;
    }
    check_kept(spec, &planned.capabilities, "--reuse-banks").map_err(|error| {
        let Some(way) = archived_instead(spec).filter(|_| may_begin) else { return error };
        let message = format!("{error}; {way}");
        error.saying(message)
    })?;
    let store = app.open_store().await?;
    let Candidates { runs, others } = candidates(store.as_ref(), spec).await?;
    let before = FilledBefore::read(store.as_ref(), &runs, Asker::default()).await?;
    let found = matching(planned, before).await?;
    let banks = spec.sample.banks;
    if found.is_empty() {
        let why = match (others, runs.first()) {
            (Some(other), None) => format!("; {other}"),
            (_, Some(run)) => format!("; those of run {run} hold something else, or are not filled to their ends"),
            (None, None) => String::new(),
        };
        let archived = archived::fitting(&app.home(), planned).await?.map(|name| {
            format!("; the archive {name} holds the same: --banks-from {name} asks it of a server that was started on a copy")
        });
        let why = why + &archived.unwrap_or_default();
        out::note(&format!(
            "--reuse-banks: no run here has filled the same banks of {}{why}: this run fills its own",
            spec.system.name
        ));
        return Ok(());
    }
    if look {
        // what consolidation leaves of the items is the system's own business
        let counts = !planned.capabilities.consolidates;
        check_filled(app, store.as_ref(), spec, &found, counts).await?;
    }
    let mut of: Vec<String> = Vec::new();
    found.iter().for_each(|filled| {
        if !of.contains(&filled.run) {
            of.push(filled.run.clone());
        }
    });
    note(&mut planned.spec, who_filled(&found, banks, &of));
    planned.spec.taken_over = TakenOver { banks_of: of, ..TakenOver::default() };
    Ok(())
}

/// Runs whose banks may hold the same, newest first.
struct Candidates {
    runs: Vec<String>,
    /// Why the newest run of the same system is none of them.
    others: Option<String>,
}

async fn candidates(store: &dyn Runs, spec: &RunSpec) -> Result<Candidates, CliError> {
    let all = store.list_runs(&RunFilter::default()).await?;
    let same_system = all.into_iter().filter(|run| !run.imported && run.spec.system.name == spec.system.name);
    let mut candidates = Candidates { runs: Vec::new(), others: None };
    for run in same_system.take(MOST_RUNS) {
        match differs(&run.spec, spec) {
            None => candidates.runs.push(run.run_id.0),
            Some(what) => {
                candidates.others.get_or_insert_with(|| format!("run {} has another {what}", run.run_id));
            }
        }
    }
    Ok(candidates)
}

/// Which of the banks of a run are filled, in their order.
async fn matching(planned: &PlannedRun, before: FilledBefore) -> Result<Vec<Filled>, CliError> {
    looked_up(planned, move |bank| before.holding(bank).cloned()).await
}
