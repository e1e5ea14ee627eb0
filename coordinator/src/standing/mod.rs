//! How a run stands: which one is meant, who owns it, how far it is, and what is away that it needs.
//!
//! In come rows of the store and, for a local run, the lock of its owner; out come words and numbers for people. Nothing here
//! changes a run but [`latency::is_over`], which opens the probe at its end.
//!
//! | module | question |
//! |---|---|
//! | this one | how does a run stand, and may it go on? |
//! | [`lock`] | which process owns a local run (P21)? |
//! | [`own_meter`] | where is the meter of a local run (P34)? |
//! | [`domains`] | in which queue domain do its processes work? |
//! | [`progress`] | how far is it, and how fast? |
//! | [`score`] | by which one figure is it shown? |
//! | [`meant`] | which run or group does a word stand for? |
//! | [`group`] | which runs are equals of one group? |
//! | [`naming`] | which names may a run get? |
//! | [`latency`] | how far is the latency probe at its end (P43)? |
//! | [`outages`] | which providers and memory servers are away? |
//! | [`refused_calls`] | which calls of its memory system does the meter refuse, and why (P34)? |
//! | [`waiting`] | why does nothing move although nothing is away? |

pub(crate) mod domains;
pub(crate) mod group;
pub(crate) mod latency;
pub(crate) mod lock;
mod meant;
pub(crate) mod naming;
pub(crate) mod outages;
pub(crate) mod own_meter;
pub(crate) mod progress;
pub(crate) mod refused_calls;
pub(crate) mod score;
pub(crate) mod waiting;

use std::{collections::BTreeSet, path::Path};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{RunId, RunNo},
    spec::{RunSpec, SystemSpec},
};
use bench_store::{BANKS_GONE_EVENT, BankRow, MEASURED_FIRST, RunRow, RunState, Runs, Store, StoreError};
use bench_systems::{BuildContext, adapter, registry as systems};
use bench_telemetry::outage::{self, Waiting};

use self::{
    lock::OwnerLock,
    meant::{Meant, SHOWN_RUNS, meant_by, not_found},
};
use crate::exit::CliError;

/// Name of the person at this machine: `latest` is per user.
#[must_use]
pub(crate) fn current_user() -> String {
    ["BENCH_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// A run's row for one who looks again and again: `None` while the store is away, which is said once. `waiting` is kept from look to
/// look.
///
/// # Errors
/// What no further look helps against.
pub(crate) async fn row_of(
    store: &dyn Runs,
    run: RunNo,
    waiting: &mut Option<Waiting>,
) -> Result<Option<RunRow>, CliError> {
    match store.run(run).await {
        Ok(row) => {
            *waiting = None;
            Ok(Some(row))
        }
        Err(error) if error.is_transient() => {
            outage::STORE.met(waiting, &error);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// How a person names the run that was created last; no run has it for a name.
pub(crate) const LATEST: &str = "latest";
/// How the words begin that stand for the runs before one, wherever a baseline is named.
pub(crate) const LAST: &str = "last:";

/// The run behind an id, a name (the newest of it; `name@2` is the one before), the unique start or end of an id, or `latest`.
///
/// # Errors
/// Exit 2 with what to do, when there is none or more than one.
pub(crate) async fn find_run(store: &dyn Store, selector: &str) -> Result<RunRow, CliError> {
    match meant_by(store, selector).await? {
        Some(Meant::Run(run)) => Ok(*run),
        Some(Meant::Group(group)) => {
            let ids: Vec<&str> = group.runs.iter().take(SHOWN_RUNS).map(|run| run.run_id.0.as_str()).collect();
            let more = if group.runs.len() > ids.len() { ", …" } else { "" };
            Err(CliError::usage(format!(
                "'{selector}' is a group of {} runs, and one run is meant here: name one of them ({}{more})",
                group.runs.len(),
                ids.join(", ")
            )))
        }
        None => Err(not_found(store, selector).await?),
    }
}

/// As [`find_run`]; `None` where a word stands for no run, or for a group.
///
/// # Errors
/// Exit 2 for a word that is empty or stands for more than one, and for `latest` of an empty store.
pub(crate) async fn look_for_run(store: &dyn Store, selector: &str) -> Result<Option<RunRow>, CliError> {
    Ok(match meant_by(store, selector).await? {
        Some(Meant::Run(run)) => Some(*run),
        Some(Meant::Group(_)) | None => None,
    })
}

/// Kind of the run event of a run that is being rebuilt: the digest of its result.
pub(crate) const RESTORING: &str = "restoring";
/// Kind of the run event of a run that was rebuilt.
pub(crate) const RESTORED: &str = "restored";
/// Kind of the run event that says from which run and phase a run was forked: `<phase> <run id>`.
pub(crate) const FORK_EVENT: &str = "forked";

/// Whether a run came from an archive.
///
/// # Errors
/// What the store meets.
pub(crate) async fn is_restored(store: &dyn Runs, run: &RunRow) -> Result<bool, StoreError> {
    Ok(store.events(run.run_no).await?.iter().any(|event| event.kind == RESTORING))
}

/// Refuses to go on with a run that came from an archive in part.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn check_whole(store: &dyn Runs, run: &RunRow) -> Result<(), CliError> {
    let events = store.events(run.run_no).await?;
    let has = |kind: &str| events.iter().any(|event| event.kind == kind);
    if has(RESTORING) && !has(RESTORED) {
        return Err(CliError::usage(format!(
            "run {0} was not restored to its end; `bench-coord archive fetch {0} --restore` does the rest",
            run.run_id
        )));
    }
    Ok(())
}

/// Whether a run's memory system holds banks outside of this program. Where this build does not know the system, its adapter says so.
#[must_use]
pub(crate) fn keeps_banks(spec: &RunSpec) -> bool {
    let SystemSpec { name, settings, .. } = &spec.system;
    settings.contains_key(adapter::ADAPTER)
        || systems::capabilities(name, settings, &BuildContext::default()).is_ok_and(|can| !can.from_items)
}

/// How the reason begins for which a run is paused that waits for the banks of another one of its group: the rest says what to do.
pub(crate) const FILLER_PAUSED: &str = "the run that fills its banks is paused";

/// What the event [`BANKS_GONE_EVENT`] says when every bank of a run was removed.
pub(crate) const ALL_BANKS: &str = "all";

/// Whether every bank of a run was removed from its memory system.
///
/// # Errors
/// What the store meets.
pub(crate) async fn are_banks_removed(store: &dyn Runs, run: &RunRow) -> Result<bool, StoreError> {
    let events = store.events(run.run_no).await?;
    Ok(events.iter().any(|event| event.kind == BANKS_GONE_EVENT && event.message == ALL_BANKS))
}

/// Refuses to go on with a run whose banks were removed, its own or those of another that it asks: whatever it asked, it would find
/// nothing.
///
/// # Errors
/// Exit 2.
pub(crate) async fn check_banks(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    match removed_banks(store, run).await? {
        None => Ok(()),
        Some(of) if of == run.run_id => {
            Err(CliError::usage(format!("the banks of {of} were removed from its memory system: submit it anew")))
        }
        Some(of) => Err(CliError::usage(format!(
            "run {} asks banks that {of} has filled, and they were removed from its memory system, or that run was deleted: submit it anew",
            run.run_id
        ))),
    }
}

/// The run whose banks were removed: this one, or one of whose banks it asks some, and that may have been deleted since. Those that it
/// has filled itself, because nobody else had, are its own whatever its spec names.
///
/// # Errors
/// What the store meets.
pub(crate) async fn removed_banks(store: &dyn Store, run: &RunRow) -> Result<Option<RunId>, StoreError> {
    if are_banks_removed(store, run).await? {
        return Ok(Some(run.run_id.clone()));
    }
    let sources = &run.spec.taken_over.banks_of;
    if sources.is_empty() {
        return Ok(None);
    }
    let mut asked: BTreeSet<i64> = asked_rows(&store.banks(run.run_no, None).await?).collect();
    let mut deleted = None;
    for id in sources.iter().map(|source| RunId(source.clone())) {
        let Some(source) = store.run_by_id(&id).await? else {
            deleted.get_or_insert(id);
            continue;
        };
        let filled = store.banks(source.run_no, None).await?;
        let filled: BTreeSet<i64> = filled.iter().map(|row| row.bank_row).collect();
        if !asked.is_disjoint(&filled) && are_banks_removed(store, &source).await? {
            return Ok(Some(source.run_id));
        }
        asked.retain(|row| !filled.contains(row));
    }
    // a run is deleted when nobody asks its banks, or when they are gone; of one that came from an archive they are elsewhere
    match deleted.filter(|_| !asked.is_empty()) {
        Some(of) if !is_restored(store, run).await? => Ok(Some(of)),
        _ => Ok(None),
    }
}

/// Rows of the banks that the banks of a run are: those that other runs have filled.
pub(crate) fn asked_rows(banks: &[BankRow]) -> impl Iterator<Item = i64> {
    banks.iter().filter_map(|bank| bank.filled_before()?.by)
}

/// The flag of `resume` that raises the cap for which a run was paused: the reason says which cap that is, and in what it counts.
#[must_use]
pub(crate) fn raised_with(reason: &str) -> String {
    if reason.contains("--max-cost-per-day") {
        return "--max-cost-per-day USD".to_owned();
    }
    let of_phase = reason.split_once("--set run.max_cost_").and_then(|(_, rest)| rest.split_once('='));
    if let Some((phase, _)) = of_phase {
        return format!("--set run.max_cost_{phase}=USD");
    }
    let unit = ["Ncalls", "Ntokens"].into_iter().find(|unit| reason.contains(unit)).unwrap_or("USD");
    format!("--max-cost {unit}")
}

/// Why a run is held for money, without the commands that go on with it: whoever is told of it may go on with others too.
#[must_use]
pub(crate) fn without_commands(reason: &str) -> &str {
    reason.split_once(": raise it with").map_or(reason, |(why, _)| why)
}

/// Why a run, or one of a group, is held for money, and all that goes on with it.
fn capped(reason: &str, run: &RunId) -> String {
    let (why, raised) = (without_commands(reason), raised_with(reason));
    let otherwise = if reason.contains("--release-uncertain") {
        format!(", `bench-coord resume {run} --release-uncertain` when you know what was paid")
    } else if reason.contains("after midnight UTC") {
        format!(", `bench-coord resume {run}` after midnight UTC")
    } else {
        String::new()
    };
    format!("{why}; `bench-coord resume {run} {raised}` goes on with a higher cap{otherwise}")
}

/// How a run stands, with what only the owner's lock can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A living process works on it, or a cluster does.
    Running {
        /// Id of the process that owns it.
        pid: Option<String>,
    },
    /// Nobody works on it although it is not at rest: its owner was killed.
    Interrupted,
    /// Held, resumable.
    Paused {
        /// Why it is held, in words for people.
        reason: String,
    },
    /// Ended by a user.
    Cancelled,
    /// All questions ended.
    Finished,
}

impl Standing {
    /// How `run` stands.
    #[must_use]
    pub(crate) fn of_run(run: &RunRow, store_file: Option<&Path>) -> Self {
        let owner = store_file.and_then(|file| OwnerLock::owner(file, &run.run_id));
        match (run.state, owner) {
            (RunState::Finished, _) => Self::Finished,
            (RunState::Cancelled, _) => Self::Cancelled,
            (RunState::Paused, _) => Self::Paused { reason: run.reason.clone().unwrap_or_else(|| "paused".to_owned()) },
            (RunState::Running, _) if run.domain == CLUSTER_DOMAIN => Self::Running { pid: None },
            (RunState::Running, Some(pid)) => Self::Running { pid: Some(pid) },
            (RunState::Running, None) => Self::Interrupted,
        }
    }

    /// One word for tables and JSON.
    #[must_use]
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Running { .. } => "running",
            Self::Interrupted => "interrupted",
            Self::Paused { .. } => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }

    /// Why nothing moves and what to do about it; nothing to say about a run that runs or is finished.
    #[must_use]
    pub(crate) fn advice(&self, run: &RunId) -> Option<String> {
        match self {
            Self::Running { .. } | Self::Finished => None,
            Self::Interrupted => {
                Some(format!("its process is gone; `bench-coord resume {run}` goes on where it stopped"))
            }
            Self::Paused { reason } if reason == MEASURED_FIRST => {
                Some(format!("{reason}, and this control when that has ended"))
            }
            Self::Paused { reason } if reason.starts_with(FILLER_PAUSED) => Some(reason.clone()),
            Self::Paused { reason } if reason.starts_with("budget") => Some(capped(reason, run)),
            Self::Paused { reason } => Some(format!("{reason}; `bench-coord resume {run}` goes on")),
            Self::Cancelled => Some(format!("cancelled; `bench-coord resume {run} --reopen` goes on all the same")),
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_models::budget::OverCap;
    use bench_proto::money::PicoUsd;
    use bench_store::{BudgetScope, FilledBank, NewBank, NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn only_a_run_that_asks_banks_which_were_removed_cannot_go_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let bank = || conformance::bank(0, &[(2, &[0])]);
        let fills = store.create_run(&conformance::new_run("fills")).await.expect("is created");
        store.add_banks(fills, &[bank()]).await.expect("is added");
        let row = store.banks(fills, None).await.expect("are read").remove(0);
        let filled = FilledBank { name: row.name_of(1), handle: "h".to_owned(), by: Some(row.bank_row) };
        let beside = async |id: &str, filled: Option<FilledBank>| {
            let mut new: NewRun = conformance::new_run(id);
            new.spec.taken_over.banks_of = vec!["fills".to_owned()];
            let run = store.create_run(&new).await.expect("is created");
            store.add_banks(run, &[NewBank { filled, ..bank() }]).await.expect("is added");
            store.run(run).await.expect("is there")
        };
        let asks = beside("asks", Some(filled)).await;
        let own = beside("own", None).await;
        let archived = FilledBank { name: "theirs".to_owned(), handle: "theirs".to_owned(), by: None };
        let archived = beside("archived", Some(archived)).await;
        let removed = async |run: &RunRow| removed_banks(store, run).await.expect("is read").map(|of| of.0);
        assert_eq!(removed(&asks).await, None);

        store.add_event(fills, BANKS_GONE_EVENT, ALL_BANKS).await.expect("is noted");
        let of_run = store.run(fills).await.expect("is there");
        assert_eq!(removed(&of_run).await.as_deref(), Some("fills"));
        assert_eq!(removed(&asks).await.as_deref(), Some("fills"));
        assert_eq!((removed(&own).await, removed(&archived).await), (None, None), "theirs are somewhere else");

        let ended = store.set_run_state(fills, &[RunState::Running], RunState::Finished, None).await;
        assert!(ended.expect("is set") && store.delete_runs(&[fills]).await.expect("is deleted"));
        assert_eq!(removed(&asks).await.as_deref(), Some("fills"));
        assert_eq!((removed(&own).await, removed(&archived).await), (None, None));
    }

    #[test]
    fn a_run_at_its_cap_is_told_each_command_once_and_of_the_id_that_was_asked_for() {
        let told = |scope: BudgetScope| {
            let refused = OverCap { needed: PicoUsd(7), left: PicoUsd(3), cap: PicoUsd(9), scope };
            let reason = format!("budget: {}", refused.of_run("g-r1"));
            Standing::Paused { reason }.advice(&RunId("g".to_owned())).expect("it is held")
        };
        let run = told(BudgetScope::Run);
        assert!(run.contains("uncertain attempts count too; `bench-coord resume g --max-cost USD` goes on"), "{run}");
        assert!(run.ends_with(", `bench-coord resume g --release-uncertain` when you know what was paid"), "{run}");
        let day = told(BudgetScope::Day);
        assert!(day.contains("the cap of the day; `bench-coord resume g --max-cost-per-day USD` goes on"), "{day}");
        assert!(day.ends_with(", `bench-coord resume g` after midnight UTC"), "{day}");
        for told in [run, day] {
            assert_eq!((told.matches("bench-coord resume").count(), told.contains("g-r1")), (2, false), "{told}");
        }
        let group = told(BudgetScope::Group);
        assert!(group.ends_with("`bench-coord resume g --max-cost USD` goes on with a higher cap"), "{group}");
    }

    #[test]
    fn who_waits_for_a_paused_run_is_told_what_to_resume() {
        let reason = format!("{FILLER_PAUSED}; `bench-coord resume g` goes on with both (g-r1: paused)");
        let told = Standing::Paused { reason: reason.clone() }.advice(&RunId("g-r2".to_owned()));
        assert_eq!(told, Some(reason));
    }
}
