//! What runs have filled before, for the plan of a run that asks it: found in the store or in an archive, or awaited while another run
//! still fills it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{RunId, Sha256Hash},
    spec::RunSpec,
};
use bench_store::{BankState, FilledBank, NewBank, RunRow, RunState, SessionRow, Store, StoreResult, retry_until};
use tokio_util::sync::CancellationToken;

use super::{
    super::archived,
    bank::{Filled, as_filled},
    look::is_asked_at_its_end,
    named::BANK_ID,
};
use crate::{
    exit::CliError,
    standing::{
        FILLER_PAUSED, are_banks_removed,
        domains::{is_served, planner_domain, session_domain},
        raised_with, without_commands,
    },
};

/// The run that asks, as far as it bears on what is worth to be waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Asker<'a> {
    /// The pool whose workers work on it.
    pub(in super::super) pool: &'a str,
    /// Id of its group.
    pub(in super::super) group: Option<&'a str>,
}

/// Filled banks by the hash of what they were given, or the name of those that are asked whatever they were given.
#[derive(Debug, Default)]
pub(in super::super) struct FilledBefore {
    by_content: HashMap<Sha256Hash, Filled>,
    /// What is being filled just now.
    awaited: HashSet<Sha256Hash>,
    /// A run that fills some has not planned all of them.
    more_to_come: bool,
    /// Somebody works on a run that fills some.
    is_worked_on: bool,
    /// Why a run of the same group that fills some does not go on just now: with it this run waits for whoever resumes both.
    paused: Option<String>,
    named: Option<String>,
    /// Where the memory system has those of an archive, by the hash of what they were given.
    archived: HashMap<Sha256Hash, FilledBank>,
    /// What stands in front of the handles of a system that is started on this machine.
    host: String,
}

impl FilledBefore {
    /// Those that a run asks, by its spec; a store that is away is waited for. `home`: where imported archives lie; `group`: id of its
    /// group.
    ///
    /// # Errors
    /// What the store meets, and exit 2 for an archive that is not here any more.
    pub(in super::super) async fn of_run(
        store: &dyn Store,
        spec: &RunSpec,
        home: &Path,
        group: Option<&str>,
        stop: &CancellationToken,
    ) -> Result<Self, CliError> {
        let taken_over = &spec.taken_over;
        let asker = Asker { pool: &spec.limits.pool, group };
        let read = retry_until(stop.cancelled(), || Self::read(store, &taken_over.banks_of, asker)).await?;
        let asked = taken_over.archive.as_ref().filter(|_| taken_over.recalls_of.is_none());
        let archived = asked.map(|asked| archived::banks(home, asked, spec)).transpose()?.unwrap_or_default();
        Ok(Self { named: taken_over.bank.clone(), archived, host: archived::host(spec), ..read })
    }

    /// The banks that these runs have filled to their ends and that are still there, or that they are filling; of equal ones that of
    /// the first run.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn read(store: &dyn Store, runs: &[String], asker: Asker<'_>) -> StoreResult<Self> {
        let mut found = Self::default();
        for id in runs {
            let Some(run) = store.run_by_id(&RunId(id.clone())).await? else { continue };
            // those of a cancelled run may be removed at any time
            if run.state == RunState::Cancelled || are_banks_removed(store, &run).await? {
                continue;
            }
            let goes_on = run.state == RunState::Running;
            // whoever goes on with one run of a group goes on with all of them
            let group = run.group.as_ref().map(|group| group.id.as_str()).filter(|id| Some(*id) == asker.group);
            let paused = group.filter(|_| run.state == RunState::Paused);
            if let Some(group) = paused {
                let why = run.reason.as_deref().unwrap_or("paused");
                let is_capped = why.starts_with("budget");
                let raised = if is_capped { format!(" {}", raised_with(why)) } else { String::new() };
                found.paused.get_or_insert_with(|| {
                    format!(
                        "{FILLER_PAUSED}; `bench-coord resume {group}{raised}` goes on with both ({}: {})",
                        run.run_id,
                        without_commands(why)
                    )
                });
            }
            let is_at_work = goes_on || paused.is_some();
            found.more_to_come |= is_at_work && !run.planned;
            found.is_worked_on |= goes_on && will_be_filled(store, &run, asker).await?;
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
    pub(in super::super) const fn is_worked_on(&self) -> bool {
        self.is_worked_on
    }

    /// Why what is awaited is not filled just now, where that is because a run of the same group is paused.
    #[must_use]
    pub(in super::super) fn paused(&self) -> Option<&str> {
        self.paused.as_deref()
    }

    /// Whether another run is about to fill what a new bank is to hold: it is worth to wait.
    #[must_use]
    pub(in super::super) fn awaits(&self, bank: &NewBank) -> bool {
        self.named.is_none()
            && is_asked_at_its_end(bank)
            && self.holding(bank).is_none()
            && self.archived(bank).is_none()
            && (self.more_to_come || self.awaited.contains(&bank.content))
    }

    /// What a new bank asks, and where the memory system has it; `None` where it has to be filled.
    #[must_use]
    pub(in super::super) fn filled_bank(&self, bank: &NewBank) -> Option<FilledBank> {
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
    pub(super) fn holding(&self, bank: &NewBank) -> Option<&Filled> {
        self.by_content.get(&bank.content).filter(|_| is_asked_at_its_end(bank))
    }
}

/// Why a run cannot go on alone, and what to resume instead: it is not planned to its end, and the run of its group that fills its
/// banks is paused, with which it would be paused again.
///
/// # Errors
/// What the store meets.
pub(crate) async fn paused_filler(store: &dyn Store, run: &RunRow) -> StoreResult<Option<String>> {
    let (of, pool) = (&run.spec.taken_over.banks_of, &run.spec.limits.pool);
    if run.planned || of.is_empty() {
        return Ok(None);
    }
    let asker = Asker { pool, group: run.group.as_ref().map(|group| group.id.as_str()) };
    let found = FilledBefore::read(store, of, asker).await?;
    let waits = !found.is_worked_on && (found.more_to_come || !found.awaited.is_empty());
    Ok(found.paused.filter(|_| waits))
}

/// Whether a run that goes on fills its banks some day: of a run of this machine, whether somebody works on it. A cluster works on its
/// runs as soon as their pool has workers, which whoever waits in the same pool needs too; but what a client has left unplanned waits
/// for another client.
async fn will_be_filled(store: &dyn Store, run: &RunRow, asker: Asker<'_>) -> StoreResult<bool> {
    let at_work = match (run.domain == CLUSTER_DOMAIN, run.planned) {
        (true, true) => {
            let pool = &run.spec.limits.pool;
            return Ok(pool == asker.pool || is_served(store, pool).await?);
        }
        (true, false) => planner_domain(run.run_no),
        (false, _) => session_domain(run.run_no),
    };
    Ok(store.open_sessions(&at_work).await?.iter().any(SessionRow::is_alive))
}

#[cfg(test)]
mod tests {
    use bench_proto::session::SessionInfo;
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    /// Whether a bank that a run fills is awaited, whether somebody works on it, and whether its group has to be resumed first.
    async fn seen(store: &dyn Store, of: &str, bank: &NewBank, asker: Asker<'_>) -> (bool, bool, bool) {
        let before = FilledBefore::read(store, &[of.to_owned()], asker).await.expect("is read");
        (before.awaits(bank), before.is_worked_on(), before.paused().is_some())
    }

    #[tokio::test]
    async fn what_a_run_of_a_cluster_fills_is_waited_for_while_it_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let first = NewRun { domain: CLUSTER_DOMAIN.to_owned(), ..conformance::new_run("g-r1") };
        let run = store.create_run(&first).await.expect("is created");
        let bank = conformance::bank(0, &[(2, &[0])]);
        let asker = Asker { pool: &first.spec.limits.pool, group: None };
        assert_eq!(
            seen(store, "g-r1", &bank, asker).await,
            (true, false, false),
            "it is not planned, and nobody plans it"
        );
        let client = store.open_session("planner", &planner_domain(run), "{}").await.expect("begins");
        assert_eq!(seen(store, "g-r1", &bank, asker).await, (true, true, false));
        store.add_banks(run, std::slice::from_ref(&bank)).await.expect("is added");
        store.finish_plan(run).await.expect("is planned");
        store.close_session(client).await.expect("ends");
        assert_eq!(seen(store, "g-r1", &bank, asker).await, (true, true, false), "workers come some day");

        // whoever has workers of its own needs not wait for those of another pool
        let other = Asker { pool: "another", group: None };
        assert_eq!(seen(store, "g-r1", &bank, other).await, (true, false, false), "nobody is there");
        let info = SessionInfo::of_this_process("0", &first.spec.limits.pool, Default::default(), "").to_json();
        let worker = store.open_session("w", CLUSTER_DOMAIN, &info).await.expect("begins");
        assert_eq!(seen(store, "g-r1", &bank, other).await, (true, true, false));
        store.close_session(worker).await.expect("ends");

        let own = store.create_run(&conformance::new_run("own")).await.expect("is created");
        store.add_banks(own, std::slice::from_ref(&bank)).await.expect("is added");
        store.finish_plan(own).await.expect("is planned");
        assert_eq!(
            seen(store, "own", &bank, asker).await,
            (true, false, false),
            "on this machine somebody has to work on it"
        );
    }

    #[tokio::test]
    async fn a_paused_run_is_waited_for_by_its_own_group_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        for domain in [CLUSTER_DOMAIN, "local"] {
            let id = format!("{domain}-r1");
            let group = Some(NewGroup { id: domain.to_owned(), cap: None });
            let first = NewRun { domain: domain.to_owned(), group, ..conformance::new_run(&id) };
            let run = store.create_run(&first).await.expect("is created");
            let bank = conformance::bank(0, &[(2, &[0])]);
            store.add_banks(run, std::slice::from_ref(&bank)).await.expect("is added");
            store.finish_plan(run).await.expect("is planned");
            let why = Some("budget: the cap of 1 $ is reached");
            let paused = store.set_run_state(run, &[RunState::Running], RunState::Paused, why).await;
            assert!(paused.expect("is set"));
            let asker = |group| Asker { pool: &first.spec.limits.pool, group };
            assert_eq!(seen(store, &id, &bank, asker(None)).await, (false, false, false), "{domain}");
            assert_eq!(seen(store, &id, &bank, asker(Some("other"))).await, (false, false, false), "{domain}");
            assert_eq!(seen(store, &id, &bank, asker(Some(domain))).await, (true, false, true), "{domain}");
            let before = FilledBefore::read(store, std::slice::from_ref(&id), asker(Some(domain))).await;
            let before = before.expect("is read");
            let told = before.paused().expect("is paused");
            let goes_on = format!("`bench-coord resume {domain} --max-cost USD` goes on with both");
            assert!(told.contains(&goes_on), "{told}");
            assert!(told.contains(&format!("({id}: budget: the cap of 1 $ is reached)")), "{told}");

            let group = Some(NewGroup { id: domain.to_owned(), cap: None });
            let mut second = NewRun { group, ..conformance::new_run(&format!("{domain}-r2")) };
            second.spec.taken_over.banks_of = vec![id.clone()];
            let second = store.create_run(&second).await.expect("is created");
            let alone = async || {
                let row = store.run(second).await.expect("is there");
                paused_filler(store, &row).await.expect("is read")
            };
            assert_eq!(alone().await.as_deref(), Some(told), "{domain}");
            store.finish_plan(second).await.expect("is planned");
            assert_eq!(alone().await, None, "{domain}: it waits for nobody");
        }
    }
}
