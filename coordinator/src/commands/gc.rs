//! `gc`: drops what no run needs any more. Runs and their results stay.
//!
//! Of memory systems it removes the banks of cancelled runs, generations that were begun anew (P5), and with `--banks RUN` all
//! banks of an ended run. Systems that were computed from the stored items hold nothing of their own. What a system that was
//! started for a run has stored lies on the machine of its worker: each machine removes its own. What a stored run says its
//! system is decides nothing here: a system that this process does not allow is not asked (P42).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bench_store::{BANKS_GONE_EVENT, BankRow, Plan, Right, RunFilter, RunRow, RunState, Store};
use bench_systems::{BankRef, MemorySystem, adapter, policy::Policy, registry};
use serde_json::json;

use crate::{
    app::App,
    cli::GcArgs,
    exit::{CliError, CliResult, Exit},
    out::{self, amounts::counted},
    standing::{ALL_BANKS, find_run, keeps_banks},
};

/// Removes banks from memory systems and items from the store, and prints how many; exit 4 when a memory system failed.
pub(super) async fn run(app: &App, args: &GcArgs) -> CliResult {
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    let mut wanted = Vec::new();
    for selector in &args.banks {
        let run = find_run(store.as_ref(), selector).await?;
        if !matches!(run.state, RunState::Finished | RunState::Cancelled) {
            return Err(CliError::usage(format!("{} has not ended: its banks are in use", run.run_id)));
        }
        wanted.push(run.run_no);
    }
    let (mut removed, mut failed) = (0, 0);
    let (policy, mut refused) = (Arc::new(app.policy()), BTreeSet::new());
    for run in store.list_runs(&RunFilter { controls: true, ..RunFilter::default() }).await? {
        let all = run.state == RunState::Cancelled || wanted.contains(&run.run_no);
        if !(all || run.state == RunState::Finished) || !keeps_banks(&run.spec) {
            continue;
        }
        if has_none_of_its_own(store.as_ref(), &run, wanted.contains(&run.run_no)).await? {
            continue;
        }
        let events = store.events(run.run_no).await?;
        let has = |message: &str| events.iter().any(|e| e.kind == BANKS_GONE_EVENT && e.message == message);
        let what = if all { ALL_BANKS } else { OLD };
        let told = has(ALL_BANKS) || has(what);
        // another machine may have told of its own part
        if told && !(all && was_started(&run)) {
            continue;
        }
        if !was_started(&run)
            && let Err(refusal) = policy.check(&run.spec.system.settings)
        {
            if wanted.contains(&run.run_no) {
                let (reason, lines) = (refusal.reason(), refusal.lines());
                return Err(CliError::usage(format!("{}: {reason}; allow it where gc runs:\n{lines}", run.run_id)));
            }
            if refused.insert(refusal.to_string()) {
                out::note(&format!("{} and others of its kind keep their banks: {refusal}", run.run_id));
            }
            continue;
        }
        match remove(app, store.as_ref(), &run, all, &policy).await {
            Ok(Removed { banks, elsewhere, in_use }) => {
                removed += banks;
                if let Some((bank, user)) = in_use.first_key_value() {
                    let (id, n) = (&run.run_id, counted(in_use.len() as u64, "bank"));
                    out::note(&format!(
                        "{id}: {n} (the first is number {bank}) stay while run {user}, which asks them, has not ended"
                    ));
                } else if !told {
                    if !elsewhere.is_empty() {
                        let machines = elsewhere.join(", ");
                        out::note(&format!("{}: `gc` on {machines} removes the banks that are there", run.run_id));
                    }
                    store.add_event(run.run_no, BANKS_GONE_EVENT, what).await?;
                }
            }
            Err(problem) => {
                failed += 1;
                out::note(&format!("{}: {problem}; the next gc tries again", run.run_id));
            }
        }
    }
    if !args.json {
        out::result(&format!("{removed} banks that no run needs were removed from memory systems"));
    }
    match store.drop_unreferenced_items().await? {
        Some(dropped) if args.json => {
            out::json(&json!({ "banks_removed": removed, "items_dropped": dropped, "failed": failed }));
        }
        Some(dropped) => out::result(&format!("{dropped} dataset items that no run refers to were dropped")),
        None => {
            return Err(CliError::usage(
                "a plan is being written, and its items come before what refers to them: try again when no run is being planned",
            ));
        }
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Infrastructure })
}

/// Whether a run asks banks that were filled before it began, and no others: whoever removes those that filled them decides. One that
/// somebody has `named` is told of.
async fn has_none_of_its_own(store: &dyn Plan, run: &RunRow, named: bool) -> Result<bool, CliError> {
    if !run.spec.taken_over.asks_filled_banks() {
        return Ok(false);
    }
    let banks = store.banks(run.run_no, None).await?;
    let has_none = banks.iter().all(|bank| bank.generation == 1 && bank.filled_before().is_some());
    if has_none && named {
        out::note(&format!("{} asks banks that it has not filled: none of them is its to remove", run.run_id));
    }
    Ok(has_none)
}

/// What an event says has been removed: generations that were begun anew. [`ALL_BANKS`] is the other word.
const OLD: &str = "old generations";

/// Whether the run's system was started for it alone.
fn was_started(run: &RunRow) -> bool {
    let settings = &run.spec.system.settings;
    let adapter = settings.get(adapter::ADAPTER);
    adapter.is_some_and(|spec| spec.get("start").is_some()) && !settings.contains_key(adapter::URL)
}

/// What of a run was removed.
#[derive(Debug, Default)]
struct Removed {
    banks: usize,
    /// Machines that hold banks of the run which only they can remove.
    elsewhere: Vec<String>,
    /// Numbers of banks that another run asks which has not ended, with the id of that run.
    in_use: BTreeMap<u32, String>,
}

async fn remove(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    all: bool,
    policy: &Arc<Policy>,
) -> Result<Removed, String> {
    if was_started(run) {
        // generations that were begun anew go with the rest
        return if all { remove_started(app, store, run).await } else { Ok(Removed::default()) };
    }
    let spec = &run.spec.system;
    let environment = app.environment_outside_of_runs(Policy::clone(policy)).map_err(|error| error.message)?;
    let context = environment.systems.for_run(run.run_id.0.clone());
    let system = registry::build(&spec.name, &spec.settings, &context).map_err(|error| error.to_string())?;
    let in_use =
        if all { store.banks_in_use(run.run_no).await.map_err(|error| error.to_string())? } else { BTreeMap::new() };
    let result = reset_all(&system, store, run, all, &in_use).await;
    system.close().await;
    result.map(|banks| Removed { banks, in_use, ..Removed::default() })
}

/// Removes what a system that was started for the run has stored on this machine.
async fn remove_started(app: &App, store: &dyn Plan, run: &RunRow) -> Result<Removed, String> {
    let had_data = adapter::remove_data(&app.home(), &run.run_id.0).await.map_err(|error| error.to_string())? > 0;
    let banks = store.banks(run.run_no, None).await.map_err(|error| error.to_string())?;
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for handle in banks.iter().filter_map(|bank| bank.handle.as_deref()) {
        *hosts.entry(host_of(handle)).or_default() += 1;
    }
    let here = hosts.remove(adapter::host().as_str()).unwrap_or(0);
    let elsewhere = hosts.into_keys().map(str::to_owned).collect();
    Ok(Removed { banks: if had_data { here } else { 0 }, elsewhere, ..Removed::default() })
}

/// The machine in the handle of a bank of a started system: `host|bank`, or `host/instance|bank`.
fn host_of(handle: &str) -> &str {
    let before = handle.split_once('|').map_or(handle, |(before, _)| before);
    before.split_once('/').map_or(before, |(host, _)| host)
}

/// Removes what a run has filled itself, but for banks that others still ask. What it has found filled is not its to remove.
async fn reset_all(
    system: &Arc<dyn MemorySystem>,
    store: &dyn Plan,
    run: &RunRow,
    all: bool,
    in_use: &BTreeMap<u32, String>,
) -> Result<usize, String> {
    let mut removed = 0;
    for row in store.banks(run.run_no, None).await.map_err(|error| error.to_string())? {
        let Some(handle) = row.handle.clone() else { continue };
        let current = row.name_of(row.generation);
        let first_own = if row.filled.is_some() { 2 } else { 1 };
        let earlier = (first_own..row.generation).map(|generation| row.name_of(generation));
        let forgotten = row.forgotten_names().into_iter().map(|(_, name)| name).filter(|name| *name != current);
        let old = earlier.chain(forgotten);
        let old = old.filter_map(|name| handle_of(&handle, &current, &name).map(|handle| (name, handle)));
        let goes = all && row.filled_before().is_none() && !in_use.contains_key(&row.bank_no);
        for (name, handle) in old.chain(goes.then(|| (current.clone(), handle.clone()))) {
            match system.reset_bank(&bank_ref(&row, name, handle)).await {
                Ok(()) => removed += 1,
                Err(failure) if failure.code == "system_cannot" => return Ok(removed),
                Err(failure) => return Err(failure.to_string()),
            }
        }
    }
    Ok(removed)
}

fn bank_ref(row: &BankRow, name: String, handle: String) -> BankRef {
    BankRef { name, handle: Some(handle), bank_id: row.bank_id.clone(), content_hash: row.content, content: None }
}

/// The handle of an earlier generation, where handles are made of our names; a system's own cannot be known any more.
fn handle_of(handle: &str, current: &str, wanted: &str) -> Option<String> {
    // what comes before our words is the system's own
    let numbers = |name: &str, separator: &str| Some(name.strip_prefix("bench-")?.replace('-', separator));
    ["-", "_"].into_iter().find_map(|separator| {
        let before = handle.strip_suffix(&numbers(current, separator)?)?;
        before.ends_with(separator).then(|| numbers(wanted, separator).map(|numbers| format!("{before}{numbers}")))?
    })
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::Sha256Hash;
    use bench_store::BankState;

    use super::*;

    #[test]
    fn the_machine_of_a_bank_is_in_its_handle() {
        for handle in ["host|mem_bench_12_g3", "host/17-4711|bench-12-g3"] {
            assert_eq!(host_of(handle), "host", "{handle}");
        }
    }

    #[test]
    fn handles_of_earlier_generations_follow_from_the_current_one() {
        let hash = Sha256Hash::of(b"");
        let row = BankRow {
            bank_no: 0,
            bank_id: "b".to_owned(),
            bank_row: 12,
            content: hash,
            questions: hash,
            gold: hash,
            segments: Vec::new(),
            generation: 3,
            handle: None,
            state: BankState::Ready,
            position: 0,
            segment: 0,
            open_recalls: 0,
            reason: None,
            namespaces: "3:255 ".to_owned(),
            outdated: false,
            filled: None,
            later: None,
        };
        let of = |handle: &str| handle_of(handle, "bench-12-g3", &row.name_of(1));
        assert_eq!(of("bench-12-g3").as_deref(), Some("bench-12-g1"));
        assert_eq!(of("host|mem_bench_12_g3").as_deref(), Some("host|mem_bench_12_g1"));
        for unknown in ["7f3a", "bench-112-g3", "bench-12-g13", "bench-12-g2"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        let newer = |handle: &str| handle_of(handle, &row.name_of(3), &row.name_of(2));
        assert_eq!(newer("mem_bench_12_g3_iff").as_deref(), Some("mem_bench_12_g2"));
        assert_eq!(newer("bench-12-g3"), None);
    }
}
