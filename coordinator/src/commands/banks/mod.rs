//! `banks`: what runs have stored in memory services, which of it another run may ask, how it is removed, and how it is handed on
//! ([`handed_on`]).

mod handed_on;

use std::collections::BTreeMap;

use bench_proto::{ids::RunId, spec::TakenOver};
use bench_store::{BankRow, BankState, FilledBank, Right, RunFilter, RunRow, Store};
use bench_systems::{BuildContext, registry as systems};
use serde::Serialize;
use serde_json::json;

use crate::{
    app::App,
    cli::{BanksArgs, BanksVerb},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::counted,
        tables::{render, table},
    },
    planning::filled::{is_filled, why_not_kept},
    runs::{
        banks_archive::BanksExport,
        removal::{Remover, ended, in_use},
    },
    standing::{find_run, is_restored, keeps_banks, removed_banks},
};

/// What a run has in a memory service.
#[derive(Debug, Serialize)]
struct BanksOfRun {
    run: String,
    system: String,
    dataset: String,
    /// Banks of the run so far.
    banks: usize,
    /// Of them, those that it has filled to their ends itself.
    filled: usize,
    /// Runs that filled the others which it asks, and `imported NAME` for those of an archive.
    asks: Vec<String>,
    /// A run that asks its banks, or is about to, and has not ended.
    in_use_by: Option<String>,
    state: &'static str,
}

/// A line of `banks show RUN`.
#[derive(Debug, Serialize)]
struct BankOfRun {
    bank_id: String,
    /// Its name in the memory system.
    name: String,
    /// The memory system's handle of it.
    handle: Option<String>,
    state: &'static str,
    /// Sessions and memories that it holds.
    retained: u32,
    /// Of so many.
    of: u32,
    /// It was filled before the run began.
    filled_before: bool,
    /// The run that filled it, `imported NAME` for one of an archive; none where nobody knows.
    filled_by: Option<String>,
}

/// Prints banks; exit 2 for a run that is not there, and for one without any.
pub(super) async fn run(app: &App, verb: &BanksVerb) -> CliResult {
    match verb {
        BanksVerb::Import { file, import } => handed_on::import(app, file, import).await,
        BanksVerb::Fetch { url, sha256, import } => handed_on::fetch(app, url, sha256.as_deref(), import).await,
        BanksVerb::List(args) if args.imported => handed_on::list(app, args),
        BanksVerb::Remove { runs, imported: true, json } => handed_on::remove(app, runs, *json).await,
        BanksVerb::Export { run, to, data, adapter, licence, json } => {
            let store = app.open_store().await?;
            let run = find_run(store.as_ref(), run).await?;
            let to = to.clone().unwrap_or_else(|| format!("banks-{}.tar.gz", run.run_id).into());
            let (data, adapter, licence) = (data.as_deref(), adapter.as_deref(), licence.as_deref());
            let wanted = BanksExport { to: &to, data, adapter, licence };
            handed_on::export(app, store.as_ref(), &run, &wanted, *json).await
        }
        BanksVerb::List(args) => list(app.open_store().await?.as_ref(), args).await,
        BanksVerb::Show { run, json } => {
            let store = app.open_store().await?;
            let run = find_run(store.as_ref(), run).await?;
            show(store.as_ref(), &run, *json).await
        }
        BanksVerb::Remove { runs, json, .. } => remove(app, app.open_store().await?.as_ref(), runs, *json).await,
    }
}

async fn remove(app: &App, store: &dyn Store, selectors: &[String], json: bool) -> CliResult {
    store.may(Right::Results).await?;
    let runs = ended(store, selectors).await?;
    let mut remover = Remover::new(app, store);
    for run in &runs {
        if !keeps_banks(&run.spec) || is_restored(store, run).await? {
            out::note(&format!("run {} has nothing in a memory service here", run.run_id));
            continue;
        }
        remover.of_run(run, true).await?;
    }
    match json {
        true => out::json(&json!({ "banks_removed": remover.removed, "failed": remover.failed })),
        false => out::result(&format!("{} removed", counted(remover.removed as u64, "bank"))),
    }
    Ok(if remover.failed == 0 { Exit::Done } else { Exit::Infrastructure })
}

async fn list(store: &dyn Store, args: &BanksArgs) -> CliResult {
    let mut all = Vec::new();
    let runs = store.list_runs(&RunFilter::default()).await?;
    for run in &runs {
        let is_wanted = args.system.as_ref().is_none_or(|system| *system == run.spec.system.name);
        if is_wanted && !run.imported && keeps_banks(&run.spec) {
            all.push(of_run(store, run, &runs).await?);
        }
        if all.len() == args.limit as usize {
            break;
        }
    }
    if args.json {
        out::json(&all);
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        out::note(&format!(
            "no run in {} has stored anything in a memory service; `banks list --imported` has what came from elsewhere",
            store.describe()
        ));
        return Ok(Exit::Done);
    }
    let mut lines = table(["run", "system", "dataset", "banks", "filled", "asks those of", "state"])
        .sparing(&["dataset", "filled", "system"]);
    for of in all {
        let state = of.in_use_by.map_or_else(|| of.state.to_owned(), |user| format!("{}, in use by {user}", of.state));
        let (banks, filled) = (of.banks.to_string(), of.filled.to_string());
        lines.add_row([of.run, of.system, of.dataset, banks, filled, of.asks.join(", "), state]);
    }
    out::result(&render(&lines));
    Ok(Exit::Done)
}

/// What one of the runs of the store has.
async fn of_run(store: &dyn Store, run: &RunRow, runs: &[RunRow]) -> Result<BanksOfRun, CliError> {
    let rows = store.banks(run.run_no, None).await?;
    Ok(BanksOfRun {
        run: run.run_id.to_string(),
        system: run.spec.system.name.clone(),
        dataset: run.spec.dataset.name.clone(),
        banks: rows.len(),
        filled: rows.iter().filter(|row| is_filled(row)).count(),
        asks: asks(&run.spec.taken_over),
        in_use_by: in_use(store, run, runs).await?.into_values().next(),
        state: state(store, run).await?,
    })
}

/// Whose banks a run asks: runs, and imported banks by their names.
fn asks(taken_over: &TakenOver) -> Vec<String> {
    let archive = taken_over.archive.iter().map(|archive| format!("imported {}", archive.name));
    taken_over.banks_of.iter().cloned().chain(archive).collect()
}

/// What becomes of the banks of a run: `removed`, `kept` (another run may ask them), `of this run alone`, `there before` for one that
/// was asked by its name, or `elsewhere` for a run that came from an archive.
async fn state(store: &dyn Store, run: &RunRow) -> Result<&'static str, CliError> {
    if run.spec.taken_over.bank.is_some() {
        return Ok("there before");
    }
    if is_restored(store, run).await? {
        return Ok("elsewhere");
    }
    if removed_banks(store, run).await?.is_some() {
        return Ok("removed");
    }
    let system = &run.spec.system;
    let capabilities = systems::capabilities(&system.name, &system.settings, &BuildContext::default());
    let is_kept = capabilities.is_ok_and(|can| why_not_kept(&run.spec, &can).is_none());
    Ok(if is_kept { "kept" } else { "of this run alone" })
}

async fn show(store: &dyn Store, run: &RunRow, json: bool) -> CliResult {
    if run.imported || !keeps_banks(&run.spec) {
        return Err(CliError::usage(format!(
            "run {} has nothing in a memory service: {} is computed from the stored texts",
            run.run_id, run.spec.system.name
        )));
    }
    if is_restored(store, run).await? {
        return Err(CliError::usage(format!(
            "run {} came from an archive: its banks are, if they are still there, where it ran",
            run.run_id
        )));
    }
    let fillers = fillers(store, &run.spec.taken_over).await?;
    let banks = store.banks(run.run_no, None).await?;
    let mut rows: Vec<BankOfRun> = banks.iter().map(|row| bank(row, run, &fillers)).collect();
    if let Some(of) = removed_banks(store, run).await? {
        let is_own = of == run.run_id;
        rows.iter_mut().filter(|row| row.filled_before != is_own).for_each(|row| row.state = "removed");
    }
    if json {
        out::json(&rows);
        return Ok(Exit::Done);
    }
    let mut lines = table(["bank", "name", "handle", "state", "retained", "filled by"]).sparing(&["name"]);
    for row in rows {
        let by = row.filled_by.unwrap_or_else(|| "not this run".to_owned());
        let retained = format!("{}/{}", row.retained, row.of);
        let handle = row.handle.unwrap_or_default();
        lines.add_row([row.bank_id, row.name, handle, row.state.to_owned(), retained, by]);
    }
    out::result(&render(&lines));
    Ok(Exit::Done)
}

/// Rows of the banks of runs whose banks are asked, and those runs.
async fn fillers(store: &dyn Store, taken_over: &TakenOver) -> Result<BTreeMap<i64, String>, CliError> {
    let mut fillers = BTreeMap::new();
    for id in &taken_over.banks_of {
        // one that is gone is nobody's any more
        let Some(of) = store.run_by_id(&RunId(id.clone())).await? else { continue };
        let banks = store.banks(of.run_no, None).await?;
        fillers.extend(banks.iter().map(|bank| (bank.bank_row, id.clone())));
    }
    Ok(fillers)
}

fn bank(row: &BankRow, run: &RunRow, fillers: &BTreeMap<i64, String>) -> BankOfRun {
    let archive = run.spec.taken_over.archive.as_ref();
    let filled_by = match row.filled_before() {
        None => Some(run.run_id.to_string()),
        Some(FilledBank { by: Some(by), .. }) => fillers.get(by).cloned(),
        Some(FilledBank { by: None, .. }) => archive.map(|archive| format!("imported {}", archive.name)),
    };
    let of = row.segments.last().map_or(0, |segment| segment.until);
    BankOfRun {
        bank_id: row.bank_id.clone(),
        name: row.name_of(row.generation),
        handle: row.handle.clone(),
        state: match row.state {
            BankState::Building => "building",
            BankState::Ready => "ready",
            BankState::Failed => "failed",
        },
        // a segment that retains nothing is a step too
        retained: row.position.min(of),
        of,
        filled_before: row.filled_before().is_some(),
        filled_by,
    }
}
