//! Banks that earlier runs have filled, for a run that asks them instead of filling its own (`--reuse-banks`, `--bank`; P33).

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use bench_proto::{
    CLUSTER_DOMAIN,
    canary::CanarySpec,
    ids::{RunId, Sha256Hash, TaskKind},
    spec::{RunSpec, TakenOver},
    step::StepFacts,
};
use bench_store::{
    BankRow, BankState, FilledBank, NewBank, RunFilter, RunRow, RunState, Runs, SessionRow, Store, StoreResult,
    retry_until,
};
use bench_systems::{BankRef, Capabilities, MemorySystem, adapter, registry};
use bench_worker::banks::BankData;
use futures::future::try_join_all;
use tokio_util::sync::CancellationToken;

use super::{PlannedRun, archived, planner};
use crate::{
    app::{App, Deployment},
    cli::{BankArgs, SubmitArgs},
    exit::CliError,
    out::{self, amounts::counted},
    standing::{
        are_banks_removed,
        domains::{planner_domain, session_domain},
    },
};

/// Banks that are counted at once.
const COUNTED_AT_ONCE: usize = 8;
/// Steps that are looked through for the version that a system said it has: one for each segment of a bank.
const READY_LOOKED_AT: u32 = 32;
/// What stands for the dataset's id of a bank in a name.
const BANK_ID: &str = "{bank_id}";
/// Runs of the same memory system that are looked through, newest first.
const MOST_RUNS: usize = 200;

/// Filled banks by the hash of what they were given, or the name of those that are asked whatever they were given.
#[derive(Debug, Default)]
pub(crate) struct FilledBefore {
    by_content: HashMap<Sha256Hash, Filled>,
    /// What is being filled just now.
    awaited: HashSet<Sha256Hash>,
    /// A run that fills some has not planned all of them.
    more_to_come: bool,
    /// Somebody works on a run that fills some.
    is_worked_on: bool,
    named: Option<String>,
    /// Where the memory system has those of an archive, by the hash of what they were given.
    archived: HashMap<Sha256Hash, FilledBank>,
    /// What stands in front of the handles of a system that is started on this machine.
    host: String,
}

/// A bank that a run has filled, or has found filled in an archive.
#[derive(Debug, Clone)]
struct Filled {
    /// Id of the run.
    run: String,
    /// The archive.
    archive: Option<String>,
    /// Its row.
    row: BankRow,
}

impl Filled {
    /// Of a run that has the bank; `None` for one that is another run's, or holds something that nobody knows.
    fn of_run(run: &RunRow, row: BankRow) -> Option<Self> {
        let taken_over = &run.spec.taken_over;
        // what another system has filled is a part of what is measured
        let archive =
            taken_over.archive.as_ref().filter(|asked| asked.filled_by.is_none() && taken_over.bank.is_none());
        let archive = match row.filled_before() {
            None => None,
            Some(before) => Some(archive.filter(|_| before.by.is_none())?.name.clone()),
        };
        as_filled(&row)?;
        Some(Self { run: run.run_id.0.clone(), archive, row })
    }

    /// How its run has it.
    const fn has(&self) -> &'static str {
        if self.archive.is_some() { "asks" } else { "filled" }
    }
}

/// A bank as another run may ask it: where it was filled, by its own run or before that. `None` for one that does not hold all that it
/// was to hold, or is not known to.
#[must_use]
pub(crate) fn as_filled(row: &BankRow) -> Option<FilledBank> {
    let handle = row.handle.clone().filter(|_| holds_all(row))?;
    let own = || FilledBank { name: row.name_of(row.generation), handle, by: Some(row.bank_row) };
    Some(row.filled_before().cloned().unwrap_or_else(own))
}

impl FilledBefore {
    /// Those that a run asks, by its spec; a store that is away is waited for. `home`: where imported archives lie.
    ///
    /// # Errors
    /// What the store meets, and exit 2 for an archive that is not here any more.
    pub(crate) async fn of_run(
        store: &dyn Store,
        spec: &RunSpec,
        home: &Path,
        stop: &CancellationToken,
    ) -> Result<Self, CliError> {
        let taken_over = &spec.taken_over;
        let read = retry_until(stop.cancelled(), || Self::read(store, &taken_over.banks_of)).await?;
        let asked = taken_over.archive.as_ref().filter(|_| taken_over.recalls_of.is_none());
        let archived = asked.map(|asked| archived::banks(home, asked, spec)).transpose()?.unwrap_or_default();
        Ok(Self { named: taken_over.bank.clone(), archived, host: archived::host(spec), ..read })
    }

    /// The banks that these runs have filled to their ends and that are still there, or that they are filling; of equal ones that of
    /// the first run.
    ///
    /// # Errors
    /// What the store meets.
    async fn read(store: &dyn Store, runs: &[String]) -> StoreResult<Self> {
        let mut found = Self::default();
        for id in runs {
            let Some(run) = store.run_by_id(&RunId(id.clone())).await? else { continue };
            // those of a cancelled run may be removed at any time
            if run.state == RunState::Cancelled || are_banks_removed(store, &run).await? {
                continue;
            }
            let goes_on = run.state == RunState::Running;
            // a client of a cluster plans the runs of a group on while they are paused one after the other
            let is_at_work = goes_on || (run.domain == CLUSTER_DOMAIN && run.state == RunState::Paused);
            found.more_to_come |= is_at_work && !run.planned;
            found.is_worked_on |= goes_on && will_be_filled(store, &run).await?;
            for row in store.banks(run.run_no, None).await? {
                let (content, is_own) = (row.content, row.filled_before().is_none());
                let is_awaited = is_at_work && row.state == BankState::Building && is_own;
                if let Some(filled) = Filled::of_run(&run, row) {
                    found.by_content.entry(content).or_insert(filled);
                } else if is_awaited {
                    found.awaited.insert(content);
                }
            }
        }
        Ok(found)
    }

    /// Whether what such a run has not filled yet will be filled, as far as can be told.
    #[must_use]
    pub(crate) const fn is_worked_on(&self) -> bool {
        self.is_worked_on
    }

    /// Whether another run is about to fill what a new bank is to hold: it is worth to wait.
    #[must_use]
    pub(crate) fn awaits(&self, bank: &NewBank) -> bool {
        self.named.is_none()
            && is_asked_at_its_end(bank)
            && self.holding(bank).is_none()
            && self.archived(bank).is_none()
            && (self.more_to_come || self.awaited.contains(&bank.content))
    }

    /// What a new bank asks, and where the memory system has it; `None` where it has to be filled.
    #[must_use]
    pub(crate) fn of(&self, bank: &NewBank) -> Option<FilledBank> {
        if let Some(name) = &self.named {
            let name = name.replace(BANK_ID, &bank.bank_id);
            return Some(FilledBank { handle: format!("{}{name}", self.host), name, by: None });
        }
        let of_run = self.holding(bank).and_then(|filled| as_filled(&filled.row));
        of_run.or_else(|| self.archived(bank).cloned())
    }

    /// The one of an archive that holds what a new bank is to hold when its first question is asked.
    fn archived(&self, bank: &NewBank) -> Option<&FilledBank> {
        self.archived.get(&bank.content).filter(|_| is_asked_at_its_end(bank))
    }

    /// The one that holds what a new bank is to hold when its first question is asked.
    fn holding(&self, bank: &NewBank) -> Option<&Filled> {
        self.by_content.get(&bank.content).filter(|_| is_asked_at_its_end(bank))
    }
}

/// Whether nothing is asked of a bank before all is retained.
pub(super) fn is_asked_at_its_end(bank: &NewBank) -> bool {
    bank.segments.windows(2).all(|two| two[0].until == two[1].until)
}

/// Whether everything was retained in a bank, and proven to be there.
fn holds_all(row: &BankRow) -> bool {
    let until = row.segments.last().map_or(0, |segment| segment.until);
    // behind the last question a segment may follow that retains nothing
    let is_proven = row.state == BankState::Ready || (row.state == BankState::Building && row.segment > 0);
    is_proven && row.position >= until
}

/// Whether a run has filled a bank itself, to its end.
#[must_use]
pub(crate) fn is_filled(row: &BankRow) -> bool {
    row.filled_before().is_none() && as_filled(row).is_some()
}

/// Whether a run that goes on fills its banks some day: of a run of this machine, whether somebody works on it. A cluster works on its
/// runs as soon as it has workers, which whoever waits needs too; but what a client has left unplanned waits for another client.
async fn will_be_filled(store: &dyn Store, run: &RunRow) -> StoreResult<bool> {
    let at_work = match (run.domain == CLUSTER_DOMAIN, run.planned) {
        (true, true) => return Ok(true),
        (true, false) => planner_domain(run.run_no),
        (false, _) => session_domain(run.run_no),
    };
    Ok(store.open_sessions(&at_work).await?.iter().any(SessionRow::is_alive))
}

/// Whether runs that are created together may share what the first of them fills: whoever creates them writes the plans of the others
/// as it goes, and does not leave before.
#[must_use]
pub(crate) fn shares_banks(args: &SubmitArgs, planned: &PlannedRun) -> bool {
    let (spec, capabilities) = (&planned.spec, &planned.capabilities);
    let is_free = !args.repeat_ingest && !spec.taken_over.asks_filled_banks();
    is_free && !args.detach && !capabilities.from_items && why_not_kept(spec, capabilities).is_none()
}

/// Whether two runs that share banks fill the same ones.
#[must_use]
pub(crate) fn fills_the_same(a: &RunSpec, b: &RunSpec) -> bool {
    let same_sessions = a.sample.max_sessions == b.sample.max_sessions && a.sample.banks == b.sample.banks;
    differs(a, b).is_none() && a.dataset.sha256 == b.dataset.sha256 && same_sessions && a.canaries == b.canaries
}

/// Why no other run may ask the banks that a run fills; `None` where one may.
#[must_use]
pub(crate) fn why_not_kept(spec: &RunSpec, capabilities: &Capabilities) -> Option<&'static str> {
    if capabilities.recall_mutates {
        return Some("a recall changes its banks, so that what one run leaves is not what the next would have filled");
    }
    let is_the_runs =
        "it is started for each run, or keeps the banks of each run apart; a server that stays is given by its `url`";
    adapter::server_of(&spec.system.settings).is_none().then_some(is_the_runs)
}

/// Refuses to ask filled banks of a memory system whose banks do not outlive a run, or change when they are asked.
///
/// # Errors
/// Exit 2 with the reason; `flag` is what asked for it.
pub(crate) fn check_kept(spec: &RunSpec, capabilities: &Capabilities, flag: &str) -> Result<(), CliError> {
    match why_not_kept(spec, capabilities) {
        None => Ok(()),
        Some(why) => {
            let name = &spec.system.name;
            Err(CliError::usage(format!("{flag}: {name} keeps no banks from one run to the next: {why}")))
        }
    }
}

/// Lets a planned run ask the filled banks that flags name, and notes what becomes of those that it fills itself.
///
/// # Errors
/// As [`reuse_banks`] and [`name_bank`].
pub(crate) async fn choose(app: &App, args: &BankArgs, planned: &mut PlannedRun, look: bool) -> Result<(), CliError> {
    planned.spec.limits.banks_after = args.after();
    if let Some(archive) = &args.banks_from {
        return archived::ask(app, archive, args.bank.as_deref(), planned).await;
    }
    match &args.bank {
        Some(name) => name_bank(name, planned),
        None if args.reuse_banks => reuse_banks(app, planned, look).await,
        None => Ok(()),
    }
}

/// Lets a planned run ask a bank that is there already: nothing of its own is stored in it.
///
/// # Errors
/// Exit 2 for a memory system that keeps no banks, and for one bank where the sample has several.
fn name_bank(name: &str, planned: &mut PlannedRun) -> Result<(), CliError> {
    let spec = &mut planned.spec;
    if planned.capabilities.from_items {
        return Err(CliError::usage(format!(
            "--bank: {} is computed from the dataset's texts, and has no bank that could be there already",
            spec.system.name
        )));
    }
    check_kept(spec, &planned.capabilities, "--bank")?;
    ask_by_name(name, spec)
}

/// Says something of the banks of a run, and keeps it for the report.
pub(super) fn note(spec: &mut RunSpec, told: String) {
    out::note(&told);
    spec.sample.notes.push(told);
}

/// Lets a run ask banks by their names alone: nobody says what they hold.
///
/// # Errors
/// Exit 2 for one bank where the sample has several.
pub(super) fn ask_by_name(name: &str, spec: &mut RunSpec) -> Result<(), CliError> {
    if spec.sample.banks > 1 && !name.contains(BANK_ID) {
        return Err(CliError::usage(format!(
            "--bank {name}: the sample has {} banks; put {BANK_ID} where the dataset's id of each stands in the names, or add \
             --max-banks 1",
            spec.sample.banks
        )));
    }
    // nothing is stored beside what is there, and nothing is known to be in it
    spec.canaries = Some(CanarySpec::OFF);
    spec.lists = false;
    note(
        spec,
        format!(
            "bank {name} was there before and nothing was stored in it: what it holds is not known here, and not proven"
        ),
    );
    spec.taken_over.bank = Some(name.to_owned());
    Ok(())
}

/// Lets a planned run ask banks that earlier runs have filled with the same, where there are such; with `look` they are counted
/// before anything starts.
///
/// # Errors
/// Exit 2 where the memory system keeps no banks, and when banks hold less than they were given; exit 4 when the system does not
/// answer.
async fn reuse_banks(app: &App, planned: &mut PlannedRun, look: bool) -> Result<(), CliError> {
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
    check_kept(spec, &planned.capabilities, "--reuse-banks")?;
    let store = app.open_store().await?;
    let Candidates { runs, others } = candidates(store.as_ref(), spec).await?;
    let before = FilledBefore::read(store.as_ref(), &runs).await?;
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

/// Says where filled banks are from. `banks`: how many the run has; `of`: the runs that have those which were found.
fn who_filled(found: &[Filled], banks: u64, of: &[String]) -> String {
    let archives: BTreeSet<&str> = found.iter().filter_map(|filled| filled.archive.as_deref()).collect();
    let archived = found.iter().filter(|filled| filled.archive.is_some()).count();
    let (own, of) = (found.len() - archived, of.join(", "));
    let banks = counted(banks, "bank");
    let named = archives.into_iter().collect::<Vec<_>>().join(", ");
    match (own, archived) {
        (1, 0) => format!("1 of {banks} was filled by run {of}: what that took stands in its report"),
        (_, 0) => format!("{own} of {banks} were filled by run {of}: what that took stands in its report"),
        (0, _) => format!("{archived} of {banks} as run {of} asks them, from the archive {named}"),
        _ => format!("{} of {banks} as run {of} has them, {archived} of these from the archive {named}", found.len()),
    }
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

/// What of a run that filled banks makes them others than this one's, beside what they were given.
fn differs(filler: &RunSpec, spec: &RunSpec) -> Option<String> {
    if filler.dataset.name != spec.dataset.name {
        return Some(format!("dataset, {}", filler.dataset.name));
    }
    let (a, b) = (&filler.system.settings, &spec.system.settings);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let other = names.into_iter().find(|name| name.as_str() != adapter::ADAPTER && a.get(*name) != b.get(*name));
    match other {
        Some(name) => Some(format!("value of {name}")),
        // settings are a part of the version, and say more
        None => (filler.system.version != spec.system.version)
            .then(|| "version of the system or of its adapter file".to_owned()),
    }
}

/// Which of the banks of a run are filled, in their order.
async fn matching(planned: &PlannedRun, before: FilledBefore) -> Result<Vec<Filled>, CliError> {
    looked_up(planned, move |bank| before.holding(bank).cloned()).await
}

/// What is found for the banks of a run, in their order; those for which nothing is are left out.
///
/// # Errors
/// What the dataset meets.
pub(super) async fn looked_up<T: Send + 'static>(
    planned: &PlannedRun,
    find: impl Fn(&NewBank) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, CliError> {
    let (dataset, banks) = (Arc::clone(&planned.dataset), planned.banks_in_order());
    let spec = planned.spec.clone();
    let look = move || {
        let mut found = Vec::new();
        for batch in planner::batches(dataset.as_ref(), &banks, Some(&spec)) {
            found.extend(batch?.banks.iter().filter_map(&find));
        }
        Ok(found)
    };
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|e| CliError::infrastructure(format!("banks could not be compared: {e}")).because(e))?
}

/// Asks the memory system which version it is and, where that tells anything, counts what banks hold: one that has lost memories is not
/// asked as if it had them.
async fn check_filled(
    app: &App,
    store: &dyn Store,
    spec: &RunSpec,
    found: &[Filled],
    counts: bool,
) -> Result<(), CliError> {
    let given = &app.settings().run.system;
    let environment = app.environment_outside_of_runs(app.policy_naming(&spec.system.settings, given))?;
    let context = environment.systems.for_run("reuse");
    let system = registry::build(&spec.system.name, &spec.system.settings, &context).map_err(CliError::usage_of)?;
    let checked = async {
        check_versions(&system, store, found).await?;
        if counts { count_all(&system, store, found).await } else { Ok(true) }
    };
    let counted = checked.await;
    system.close().await;
    if !counted? {
        out::note(&format!(
            "--reuse-banks: {} cannot count what its banks hold: that they still hold everything is not proven",
            spec.system.name
        ));
    }
    Ok(())
}

/// Holds the version that the system says it has now to what it said when each of the runs filled its banks. One that says nothing is
/// known by the version of its adapter file alone.
async fn check_versions(system: &Arc<dyn MemorySystem>, store: &dyn Store, found: &[Filled]) -> Result<(), CliError> {
    let mut seen = BTreeSet::new();
    for filled in found.iter().filter(|filled| seen.insert(&filled.run)) {
        let Some(run) = store.run_by_id(&RunId(filled.run.clone())).await? else { continue };
        let steps = store.steps(run.run_no, TaskKind::Ready, None, READY_LOOKED_AT).await?;
        let then = steps.into_iter().find_map(|step| match step.facts {
            StepFacts::Ready { stats, .. } => stats.version,
            _ => None,
        });
        let Some(then) = then else { continue };
        let bank = bank_ref(store, &filled.row).await?;
        // whoever does not answer is told of by the count
        let now = system.statistics(&bank).await.ok().and_then(|said| said.version);
        if let Some(now) = now.filter(|now| *now != then) {
            return Err(CliError::usage(format!(
                "--reuse-banks: the system that filled the banks of run {} said that it is version {then}, and it is {now} now; \
                 without --reuse-banks the run fills banks of its own",
                filled.run
            )));
        }
    }
    Ok(())
}

/// A bank as its memory system knows it.
async fn bank_ref(store: &dyn Store, row: &BankRow) -> Result<BankRef, CliError> {
    let data = BankData::read(store, row.clone()).await?;
    Ok(BankRef {
        name: row.name_of(row.generation),
        handle: row.handle.clone(),
        bank_id: row.bank_id.clone(),
        content_hash: row.content,
        content: Some(Arc::clone(&data.content)),
    })
}

/// Whether all banks could be counted.
async fn count_all(system: &Arc<dyn MemorySystem>, store: &dyn Store, found: &[Filled]) -> Result<bool, CliError> {
    let mut all = true;
    for part in found.chunks(COUNTED_AT_ONCE) {
        let counts: Vec<_> = part.iter().map(|filled| count(system, store, filled)).collect();
        all &= try_join_all(counts).await?.into_iter().all(|counted| counted);
    }
    Ok(all)
}

/// Whether a bank could be counted.
async fn count(system: &Arc<dyn MemorySystem>, store: &dyn Store, filled: &Filled) -> Result<bool, CliError> {
    let Filled { run, row, .. } = filled;
    let bank = bank_ref(store, row).await?;
    let counted = system.verify(&bank, row.position).await.map_err(|failure| {
        CliError::infrastructure(format!(
            "bank {} of run {run} cannot be counted ({}): try again when the memory system answers; without --reuse-banks the run \
             fills banks of its own",
            row.bank_id,
            failure.message.trim_end_matches([':', ' '])
        ))
    })?;
    match counted {
        Some(counted) if counted.found < counted.expected => Err(CliError::usage(format!(
            "--reuse-banks: bank {}, which run {run} {}, holds {} of {} items now: the memory system has lost the others; \
             without --reuse-banks the run fills banks of its own",
            row.bank_id,
            filled.has(),
            counted.found,
            counted.expected
        ))),
        counted => Ok(counted.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::spec::AskedArchive;
    use bench_store::{NewRun, Segment, conformance};
    use bench_systems::SystemSettings;
    use serde_json::{Value, json};

    use super::*;

    async fn store_in(folder: &Path) -> Arc<dyn Store> {
        let url = format!("sqlite:{}", folder.join("bench.db").display());
        bench_store::open(&url).await.expect("the store opens")
    }

    #[tokio::test]
    async fn what_a_run_of_a_cluster_fills_is_waited_for_while_it_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let first = NewRun { domain: CLUSTER_DOMAIN.to_owned(), ..conformance::new_run("g-r1") };
        let run = store.create_run(&first).await.expect("is created");
        let bank = conformance::bank(0, &[(2, &[0])]);
        let seen = async |of: &str| {
            let before = FilledBefore::read(store.as_ref(), &[of.to_owned()]).await.expect("is read");
            (before.awaits(&bank), before.is_worked_on())
        };
        assert_eq!(seen("g-r1").await, (true, false), "it is not planned, and nobody plans it");
        let client = store.open_session("planner", &planner_domain(run), "{}").await.expect("begins");
        assert_eq!(seen("g-r1").await, (true, true));
        store.add_banks(run, std::slice::from_ref(&bank)).await.expect("is added");
        store.finish_plan(run).await.expect("is planned");
        store.close_session(client).await.expect("ends");
        assert_eq!(seen("g-r1").await, (true, true), "workers come some day");
        let paused = store.set_run_state(run, &[RunState::Running], RunState::Paused, None).await;
        assert!(paused.expect("is set"));
        assert_eq!(
            seen("g-r1").await,
            (true, false),
            "the others of its group are about to be paused, or it is too late"
        );

        let own = store.create_run(&conformance::new_run("own")).await.expect("is created");
        store.add_banks(own, std::slice::from_ref(&bank)).await.expect("is added");
        store.finish_plan(own).await.expect("is planned");
        assert_eq!(seen("own").await, (true, false), "on this machine somebody has to work on it");
        let paused = store.set_run_state(own, &[RunState::Running], RunState::Paused, None).await;
        assert!(paused.expect("is set"));
        assert_eq!(seen("own").await, (false, false));
    }

    #[tokio::test]
    async fn banks_out_of_an_archive_are_found_as_those_of_the_run_that_asks_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let run = store.create_run(&conformance::new_run("asks")).await.expect("is created");
        let run = store.run(run).await.expect("is there");
        let hash = Sha256Hash::of(b"content");
        let row = BankRow {
            bank_no: 0,
            bank_id: "b".to_owned(),
            bank_row: 1,
            content: hash,
            questions: hash,
            gold: hash,
            segments: vec![Segment { until: 2, questions: vec![0] }],
            generation: 1,
            handle: Some("theirs-1".to_owned()),
            state: BankState::Ready,
            position: 2,
            segment: 0,
            open_recalls: 0,
            reason: None,
            namespaces: String::new(),
            outdated: false,
            filled: None,
            later: None,
        };
        let before = |by| Some(FilledBank { name: "theirs-1".to_owned(), handle: "theirs-1".to_owned(), by });
        let archive = |filled_by: Option<&str>| {
            let asked = AskedArchive {
                name: "theirs".to_owned(),
                filled_by: filled_by.map(str::to_owned),
                ..AskedArchive::default()
            };
            TakenOver { archive: Some(asked), ..TakenOver::default() }
        };
        let named = TakenOver { bank: Some("theirs-1".to_owned()), ..archive(None) };
        for (taken_over, filled, found) in [
            (TakenOver::default(), None, Some(None)),
            (archive(None), before(None), Some(Some("theirs"))),
            (archive(None), None, Some(None)),
            (archive(None), before(Some(7)), None),
            (archive(Some("other 1")), before(None), None),
            (TakenOver::default(), before(Some(7)), None),
            (named, before(None), None),
        ] {
            let mut asks = run.clone();
            asks.spec.taken_over = taken_over.clone();
            let of_run = Filled::of_run(&asks, BankRow { filled, ..row.clone() });
            let archives = of_run.as_ref().map(|filled| filled.archive.as_deref());
            assert_eq!(archives, found, "{taken_over:?}");
        }
        let half = BankRow { filled: before(None), position: 1, ..row.clone() };
        let mut asks = run.clone();
        asks.spec.taken_over = archive(None);
        assert!(Filled::of_run(&asks, half).is_none(), "nothing is known of one that was not proven");

        let of = |archive: Option<&str>| Filled {
            run: "a".to_owned(),
            archive: archive.map(str::to_owned),
            row: row.clone(),
        };
        let told = |found: &[Filled]| who_filled(found, 3, &["a".to_owned()]);
        assert_eq!(told(&[of(None)]), "1 of 3 banks was filled by run a: what that took stands in its report");
        assert_eq!(told(&[of(Some("theirs"))]), "1 of 3 banks as run a asks them, from the archive theirs");
        let mixed = told(&[of(None), of(Some("theirs"))]);
        assert_eq!(mixed, "2 of 3 banks as run a has them, 1 of these from the archive theirs");
    }

    fn kept(adapter: Option<Value>, url: Option<&str>, capabilities: &Capabilities) -> Result<(), String> {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        (spec.system.name, spec.system.settings) = ("mine".to_owned(), SystemSettings::new());
        spec.system.settings.extend(adapter.map(|adapter| (adapter::ADAPTER.to_owned(), adapter)));
        spec.system.settings.extend(url.map(|url| (adapter::URL.to_owned(), json!(url))));
        check_kept(&spec, capabilities, "--reuse-banks").map_err(|error| error.message)
    }

    #[test]
    fn only_banks_of_a_server_that_stays_are_asked_by_another_run() {
        let can = Capabilities { from_items: false, ..Capabilities::from_items("1") };
        let start = json!({ "start": { "command": ["mine"] } });
        for (stays, adapter, url) in [
            (true, Some(json!({ "url": "http://mine" })), None),
            (true, Some(json!({ "mcp": { "url": "http://mine" } })), None),
            (true, Some(start.clone()), Some("http://mine")),
            (false, Some(start), None),
            (false, Some(json!({ "command": ["python3", "mine.py"] })), None),
            (false, Some(json!({ "mcp": { "command": ["mine"] } })), None),
            (false, None, None),
        ] {
            assert_eq!(kept(adapter.clone(), url, &can).is_ok(), stays, "{adapter:?} {url:?}");
        }
        let learns = Capabilities { recall_mutates: true, ..can };
        let refused = kept(Some(json!({ "url": "http://mine" })), None, &learns).expect_err("is refused");
        assert!(refused.contains("--reuse-banks: mine") && refused.contains("a recall changes its banks"), "{refused}");
    }
}
