//! A memory system under load: its banks are filled, operations begin at stated rates whether or not those before them have ended,
//! and what came of it becomes a file, a table and a page.
//!
//! In come the flags of `load` and a memory system; out comes a [`LoadResult`], or what came of a suite. Start with [`run`].
//!
//! | module | question |
//! |---|---|
//! | `plan` | what is to be done, and can this system do it? |
//! | `banks` | what is stored before, and what is asked for? |
//! | `steps` | what came of each rate? |
//! | `stress` | what came of the suite `stress`? |
//! | `gate` | is it worse than before? |
//! | `files` | where is it written, and how are results of others read? |
//! | `page` | what is written? |
//! | `table` | how does a person read it? |

mod banks;
mod files;
mod gate;
mod page;
mod plan;
mod steps;
mod stress;
mod table;

use std::time::Duration;

use bench_load::result::{LoadResult, Process, StepResult};
use bench_proto::ids::RunId;
use bench_systems::BankRef;
use bench_worker::{machine, version};
use jiff::Timestamp;

use self::{
    banks::{Banks, Opened, named, remove_all},
    plan::LoadPlan,
    steps::Stepper,
};
pub(crate) use self::{
    files::{Measured, folder_of, read_all},
    gate::{Baseline, Gate, gated},
    page::write,
    table::show,
};
use crate::{
    app::{App, systems::Driven},
    cli::{LoadArgs, LoadSuite},
    exit::CliError,
    out,
};

/// How long removing the banks may take.
const CLEAN_WITHIN: Duration = Duration::from_secs(60);

/// Loads a system as the flags say. What was measured before an interruption is a result too.
///
/// # Errors
/// Exit 2 for what this system cannot do, 4 when its banks cannot be filled, 3 when it was interrupted before anything was measured.
pub(crate) async fn run(app: &App, args: &LoadArgs, given: &str) -> Result<Measured, CliError> {
    let id = short_id();
    plan::check_flags(args)?;
    plan::check_models_are_free(app, given)?;
    let driven = app.drive(given, &format!("load-{id}")).await?;
    let ended = match args.suite {
        Some(LoadSuite::Stress) => stress::run(app, args, &driven, &id).await.map(Measured::stress),
        None => driven_through(app, args, &driven, &id).await.map(Measured::load),
    };
    // however it ends: what was started does not stay
    driven.close(&app.interrupts()).await;
    driven.leave(ended.as_ref().is_ok_and(|measured| measured.failure().is_none()));
    ended
}

async fn driven_through(app: &App, args: &LoadArgs, driven: &Driven, id: &str) -> Result<LoadResult, CliError> {
    let plan = LoadPlan::new(args, driven, id)?;
    let stop = app.interrupts().stop;
    out::note(&plan.announcement(id, driven));
    if driven.system.capabilities().from_items && args.mix.retain > 0 {
        out::note(&format!(
            "{} is computed from what its banks were filled with: retains are answered and store nothing, and its banks do not grow",
            driven.name
        ));
    }
    let started_at = Timestamp::now();
    let (mut steps, mut failure) = (Vec::new(), None);
    for size in &plan.shown.bank_sizes {
        let (name, opened) = (named(id, *size), Opened::default());
        let filled = tokio::select! {
            filled = Banks::fill(driven.system.as_ref(), &plan, &name, *size, &opened) => filled,
            () = stop.cancelled() => Err(interrupted(id)),
        };
        let ended = match filled {
            Ok(banks) => Stepper { driven, plan: &plan, stop: &stop, banks: banks.into() }.all(&mut steps).await,
            Err(error) => Err(error),
        };
        // a person's end is the process's own mark
        let by_person = stop.is_cancelled();
        if !args.keep_banks {
            let opened = opened.into_all();
            remove(driven, &name, &opened.iter().collect::<Vec<_>>()).await;
        }
        match ended {
            // what is there is worth more than why the rest is not
            Err(error) if !steps.is_empty() => {
                failure = (!by_person).then(|| error.to_string());
                break;
            }
            ended => ended?,
        }
    }
    if steps.iter().all(|step: &StepResult| step.seconds <= 0.0) {
        return Err(interrupted(id));
    }
    let process = process(id, plan.seed, started_at, stop.is_cancelled());
    Ok(LoadResult::new(plan.shown, process, steps).ended_by(failure))
}

/// Removes banks, as far as the system can and as long as that takes no longer than it may.
async fn remove(driven: &Driven, named: &str, banks: &[&BankRef]) {
    let left = match tokio::time::timeout(CLEAN_WITHIN, remove_all(driven.system.as_ref(), banks)).await {
        Ok(Ok(())) => return,
        Ok(Err(failure)) if failure.code == "system_cannot" => "it cannot remove banks".to_owned(),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => format!("that took longer than {} s", CLEAN_WITHIN.as_secs()),
    };
    out::note(&format!("banks named {named}-… are left in {}: {left}", driven.name));
}

/// Who has measured from `started_at` until now.
fn process(id: &str, seed: u64, started_at: Timestamp, interrupted: bool) -> Process {
    Process {
        id: id.to_owned(),
        seed,
        machine: machine::class(),
        code_version: version::VERSION.to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        started_at: started_at.to_string(),
        ended_at: Timestamp::now().to_string(),
        interrupted,
    }
}

fn interrupted(id: &str) -> CliError {
    CliError::resumable(format!(
        "interrupted before anything was measured: load again; a bank named bench-load-{id}-… may be left that was just being made"
    ))
}

/// Eight letters that no other load has, in all likelihood.
fn short_id() -> String {
    let id = RunId::fresh().0.replace('-', "");
    id[id.len() - 8..].to_owned()
}
