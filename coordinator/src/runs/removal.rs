//! Banks of a run are removed from their memory system: those of a run that was cancelled, generations that were begun anew (P5),
//! and all of an ended run where a person wants it.
//!
//! Systems that were computed from the stored items hold nothing of their own. What a system that was started for a run has stored
//! lies on the machine of its worker: each machine removes its own. What a stored run says its system is decides nothing here: a
//! system that this process does not allow is not asked (P42).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bench_proto::spec::BanksAfter;
use bench_store::{BANKS_GONE_EVENT, BankRow, Plan, Right, RunEvent, RunFilter, RunRow, RunState, Store, StoreError};
use bench_systems::{BankRef, MemorySystem, adapter, policy::Policy, registry};

use crate::{
    app::App,
    exit::CliError,
    out::{self, amounts::counted},
    standing::{
        ALL_BANKS,
        domains::LOCAL_DOMAIN,
        group::{RunsOfGroup, find_runs, member},
        keeps_banks,
    },
};

/// Removes banks of runs, one run after the other, and counts.
pub(crate) struct Remover<'a> {
    app: &'a App,
    store: &'a dyn Store,
    policy: Arc<Policy>,
    /// Why systems were not asked, each once.
    refused: BTreeSet<String>,
    /// Banks that were removed.
    pub(crate) removed: usize,
    /// Runs whose memory system failed.
    pub(crate) failed: usize,
}

impl<'a> Remover<'a> {
    pub(crate) fn new(app: &'a App, store: &'a dyn Store) -> Self {
        let policy = Arc::new(app.policy());
        Self { app, store, policy, refused: BTreeSet::new(), removed: 0, failed: 0 }
    }

    /// Removes what no run needs of the banks of a run that has ended: all of them where it was cancelled, where it was submitted
    /// with `--clean-after` and nothing of it has failed, and where a person has `named` it; else those that were begun anew. What stays, and why, is said.
    ///
    /// # Errors
    /// What the store meets, and exit 2 for a named run whose memory system this process does not allow.
    pub(crate) async fn of_run(&mut self, run: &RunRow, named: bool) -> Result<(), CliError> {
        let all = named
            || match run.spec.limits.banks_after {
                BanksAfter::Removed => {
                    is_done(self.store, run).await? && is_archived(self.app, self.store, run).await?
                }
                BanksAfter::Kept => false,
                BanksAfter::Unsaid => run.state == RunState::Cancelled,
            };
        if !(all || run.state == RunState::Finished) || !keeps_banks(&run.spec) {
            return Ok(());
        }
        let store = self.store;
        if has_none_of_its_own(store, run, named).await? {
            return Ok(());
        }
        let what = if all { ALL_BANKS } else { OLD };
        let told = is_told(&store.events(run.run_no).await?, what);
        // another machine may have told of its own part
        if told && !(all && was_started(run)) {
            return Ok(());
        }
        if !was_started(run)
            && let Err(refusal) = self.policy.check(&run.spec.system.settings)
        {
            if named {
                let (reason, lines) = (refusal.reason(), refusal.lines());
                return Err(CliError::usage(format!(
                    "{}: {reason}; allow it where its banks are to be removed:\n{lines}",
                    run.run_id
                )));
            }
            if self.refused.insert(refusal.to_string()) {
                out::note(&format!("{} and others of its kind keep their banks: {refusal}", run.run_id));
            }
            return Ok(());
        }
        match remove(self.app, store, run, all, &self.policy).await {
            Ok(Removed { banks, elsewhere, in_use }) => {
                self.removed += banks;
                if let Some((bank, user)) = in_use.first_key_value() {
                    let (id, n) = (&run.run_id, counted(in_use.len() as u64, "bank"));
                    out::note(&format!(
                        "{id}: {n} (the first is number {bank}) stay while run {user}, which asks them or is about to, has not ended"
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
                self.failed += 1;
                // a `gc` without names leaves alone what was meant to stay
                let again = if named { "the same command" } else { "the next `bench-coord gc`" };
                out::note(&format!("{}: {problem}; {again} tries again", run.run_id));
            }
        }
        Ok(())
    }
}

/// Whether nothing of an ended run could be repeated: a question that has failed asks its bank again, also one of another run of its
/// group, which asks the same banks.
async fn is_done(store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    let done = |run: &RunRow| match run.state {
        RunState::Finished => run.counters.infra_error == 0,
        RunState::Cancelled => true,
        RunState::Running | RunState::Paused => false,
    };
    let group = member(run).then_some(run.group.as_ref()).flatten();
    let together = match group {
        Some(group) => RunsOfGroup::find(store, &group.id).await?,
        None => None,
    };
    Ok(done(run) && together.is_none_or(|group| group.runs.iter().all(done)))
}

/// Whether a run is in an archive, where one is named: what was measured is safe before what it was measured on goes.
async fn is_archived(app: &App, store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    #[cfg(feature = "archive")]
    if app.settings().archive_url.is_some() && run.state == RunState::Finished {
        use crate::archive::noted::ARCHIVED;
        return Ok(store.events(run.run_no).await?.iter().any(|event| event.kind == ARCHIVED));
    }
    #[cfg(not(feature = "archive"))]
    let _ = (app, store, run);
    Ok(true)
}

/// The runs of some words, all of which have ended.
///
/// # Errors
/// Exit 2 for one that is not there, and for one whose banks are in use.
pub(crate) async fn ended(store: &dyn Store, selectors: &[String]) -> Result<Vec<RunRow>, CliError> {
    let mut runs = Vec::new();
    for selector in selectors {
        for run in find_runs(store, selector).await? {
            if !matches!(run.state, RunState::Finished | RunState::Cancelled) {
                return Err(CliError::usage(format!("{} has not ended: its banks are in use", run.run_id)));
            }
            runs.push(run);
        }
    }
    Ok(runs)
}

/// At the end of a command: removes the banks of those of its runs that have ended and were submitted with `--clean-after`. Runs of a
/// cluster are left to a `gc` that reaches their memory system.
///
/// # Errors
/// What the store meets.
pub(crate) async fn clean_after(app: &App, store: &dyn Store, runs: &[RunRow]) -> Result<(), CliError> {
    let wanted = |run: &&RunRow| run.spec.limits.banks_after == BanksAfter::Removed && keeps_banks(&run.spec);
    let runs: Vec<&RunRow> = runs.iter().filter(wanted).collect();
    let (here, elsewhere): (Vec<&RunRow>, Vec<&RunRow>) = runs.into_iter().partition(|run| run.domain == LOCAL_DOMAIN);
    if let Some(run) = elsewhere.first() {
        out::note(&format!(
            "the banks of {} stay until `bench-coord gc` runs where its memory system is reached",
            run.run_id
        ));
    }
    if here.is_empty() || store.may(Right::Results).await.is_err() {
        return Ok(());
    }
    if let Some(run) = here.iter().find(|run| run.state == RunState::Finished && run.counters.infra_error > 0) {
        let group = member(run).then_some(run.group.as_ref()).flatten();
        let id = group.map_or(&run.run_id.0, |group| &group.id);
        out::note(&format!(
            "the banks of {id} stay, as some of its questions have failed: `bench-coord retry {id} --errors` repeats them, and \
             `bench-coord banks remove {id}` removes its banks"
        ));
    }
    let mut remover = Remover::new(app, store);
    for run in here {
        if !is_archived(app, store, run).await? {
            out::note(&format!(
                "the banks of {0} stay until it is in its archive: `bench-coord archive push {0}`, then `bench-coord gc`",
                run.run_id
            ));
        }
        remover.of_run(run, false).await?;
    }
    if remover.removed > 0 {
        out::note(&format!("{} were removed, as --clean-after wants", counted(remover.removed as u64, "bank")));
    }
    Ok(())
}

/// Whether a run asks banks that were filled before it began, and no others: whoever removes those that filled them decides. One that
/// somebody has `named` is told of.
async fn has_none_of_its_own(store: &dyn Plan, run: &RunRow, named: bool) -> Result<bool, CliError> {
    // what was started for it has a copy of its own
    if !run.spec.taken_over.asks_filled_banks() || was_started(run) {
        return Ok(false);
    }
    let banks = store.banks(run.run_no, None).await?;
    let has_none = banks.iter().all(|bank| bank.generation == 1 && bank.filled_before().is_some());
    if has_none && named {
        out::note(&format!("{} asks banks that it has not filled: none of them is its to remove", run.run_id));
    }
    Ok(has_none)
}

/// Banks of a run that others ask which have not ended, by number, with the id of one of them: they must stay. A run that is not planned
/// yet may ask any of those that its spec names. `runs`: all of the store.
///
/// # Errors
/// What the store meets.
pub(crate) async fn in_use(
    store: &dyn Store,
    run: &RunRow,
    runs: &[RunRow],
) -> Result<BTreeMap<u32, String>, StoreError> {
    let mut in_use = store.banks_in_use(run.run_no).await?;
    // also of a run that was cancelled: who plans may have read before that what it had filled
    if let Some(asker) = runs.iter().find(|other| is_about_to_ask(other, run)) {
        let banks = store.banks(run.run_no, None).await?;
        for bank in banks.iter().filter(|bank| bank.filled_before().is_none()) {
            in_use.entry(bank.bank_no).or_insert_with(|| asker.run_id.0.clone());
        }
    }
    Ok(in_use)
}

/// Whether a run that has not ended has banks to plan that may be those of another one.
pub(crate) fn is_about_to_ask(run: &RunRow, of: &RunRow) -> bool {
    let is_open = matches!(run.state, RunState::Running | RunState::Paused);
    is_open && !run.planned && run.spec.taken_over.banks_of.contains(&of.run_id.0)
}

/// What an event says has been removed: generations that were begun anew. [`ALL_BANKS`] is the other word.
const OLD: &str = "old generations";

/// Whether the events of a run say that what is to be removed is gone. Of old generations what was said before its last end says
/// nothing: a run that was repeated since may have left further ones behind.
fn is_told(events: &[RunEvent], what: &str) -> bool {
    let ended = events.iter().rposition(|event| event.kind == RunState::Finished.name()).unwrap_or(0);
    let told = |event: &RunEvent, what: &str| event.kind == BANKS_GONE_EVENT && event.message == what;
    events.iter().any(|event| told(event, ALL_BANKS)) || events.iter().skip(ended).any(|event| told(event, what))
}

/// Whether the run's system was started for it alone.
fn was_started(run: &RunRow) -> bool {
    adapter::is_started(&run.spec.system.settings)
}

/// What of a run was removed.
#[derive(Debug, Default)]
struct Removed {
    banks: usize,
    /// Machines that hold banks of the run which only they can remove.
    elsewhere: Vec<String>,
    /// Numbers of banks that another run asks, or is about to, which has not ended, with the id of that run.
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
    let in_use = match all {
        true => {
            let runs = store.list_runs(&RunFilter::default()).await.map_err(|error| error.to_string())?;
            in_use(store, run, &runs).await.map_err(|error| error.to_string())?
        }
        false => BTreeMap::new(),
    };
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
    use bench_store::{BankState, FilledBank, NewBank, conformance};

    use super::*;

    #[tokio::test]
    async fn banks_that_a_run_is_about_to_ask_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let fills = store.create_run(&conformance::new_run("g-r1")).await.expect("is created");
        let there = FilledBank { name: "theirs".to_owned(), handle: "theirs".to_owned(), by: None };
        let banks = [
            conformance::bank(0, &[(2, &[0])]),
            NewBank { filled: Some(there), ..conformance::bank(1, &[(2, &[0])]) },
            conformance::bank(2, &[(2, &[0])]),
        ];
        store.add_banks(fills, &banks).await.expect("are added");
        store.finish_plan(fills).await.expect("is planned");
        let mut second = conformance::new_run("g-r2");
        second.spec.taken_over.banks_of = vec!["g-r1".to_owned()];
        let asks = store.create_run(&second).await.expect("is created");
        let used = async || {
            let runs = store.list_runs(&RunFilter::default()).await.expect("are read");
            let run = store.run(fills).await.expect("is there");
            in_use(store, &run, &runs).await.expect("is read").into_iter().collect::<Vec<_>>()
        };
        let by = |bank: u32| (bank, "g-r2".to_owned());
        assert_eq!(used().await, [by(0), by(2)], "its second bank is another's");
        // what is planned is known by its rows
        store.finish_plan(asks).await.expect("is planned");
        assert!(used().await.is_empty());

        let mut third = conformance::new_run("g-r3");
        third.spec.taken_over.banks_of = vec!["g-r1".to_owned()];
        let third = store.create_run(&third).await.expect("is created");
        assert_eq!(used().await.len(), 2);
        let cancelled = store.set_run_state(fills, &[RunState::Running], RunState::Cancelled, None).await;
        assert!(cancelled.expect("is set") && used().await.len() == 2, "they were read before");
        let cancelled = store.set_run_state(third, &[RunState::Running], RunState::Cancelled, None).await;
        assert!(cancelled.expect("is set") && used().await.is_empty());
    }

    #[test]
    fn p5_generations_that_a_repetition_leaves_behind_are_looked_for_again() {
        let events = |kinds: &[(&str, &str)]| -> Vec<RunEvent> {
            let event = |(kind, message): &(&str, &str)| RunEvent {
                at_ms: 0,
                kind: (*kind).to_owned(),
                message: (*message).to_owned(),
            };
            kinds.iter().map(event).collect()
        };
        let first = [("created", ""), ("finished", ""), (BANKS_GONE_EVENT, OLD)];
        let again = [("reopened", "1 questions"), ("paused", ""), ("resumed", ""), ("finished", "")];
        assert!(is_told(&events(&first), OLD) && !is_told(&events(&first), ALL_BANKS));
        assert!(!is_told(&events(&[&first[..], &again].concat()), OLD), "what was left since is there yet");
        assert!(is_told(&events(&[&first[..], &again, &first[2..]].concat()), OLD));
        let all = [("finished", ""), (BANKS_GONE_EVENT, ALL_BANKS), ("finished", "")];
        assert!(is_told(&events(&all), OLD) && is_told(&events(&all), ALL_BANKS), "nothing is left that could be");
    }

    #[test]
    fn the_machine_of_a_bank_is_in_its_handle() {
        for handle in ["host|mem_bench_12_g3", "host/17-4711|bench-12-g3"] {
            assert_eq!(host_of(handle), "host", "{handle}");
        }
    }

    #[test]
    fn handles_of_earlier_generations_follow_from_the_current_one() {
        let hash = Sha256Hash::of_bytes(b"");
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
