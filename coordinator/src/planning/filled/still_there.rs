//! Asks the memory system whether what runs have filled is still there: that it is the same version, and that its banks hold all of
//! it.

use std::{collections::BTreeSet, sync::Arc};

use bench_proto::{
    ids::{RunId, TaskKind},
    spec::RunSpec,
    step::StepFacts,
};
use bench_store::{BankRow, Store};
use bench_systems::{BankRef, MemorySystem, registry};
use bench_worker::banks::BankData;
use futures::future::try_join_all;

use super::bank::Filled;
use crate::{app::App, exit::CliError, out};

/// Banks that are counted at once.
const COUNTED_AT_ONCE: usize = 8;
/// Steps that are looked through for the version that a system said it has: one for each segment of a bank.
const READY_LOOKED_AT: u32 = 32;

/// Asks the memory system which version it is and, where that tells anything, counts what banks hold: one that has lost memories is not
/// asked as if it had them.
pub(super) async fn check_filled(
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
