//! `submit --fork RUN --from PHASE`, `rejudge`, `rescore`: a new run that takes over what another has stored.
//!
//! Everything before the phase is copied, so that no call is made for it; what was paid for it stands in the new report as
//! saved. The new run belongs to the old one's lineage: calls that it makes all the same are found in the call store.
//!
//! [`source`] says whether a run can be forked from a phase, [`spec`] what the new run's settings are, [`adopt`] what is copied.

pub(crate) mod adopt;
mod source;
mod spec;

use bench_proto::ids::RunId;
use bench_store::{Creation, NewRun, Right, RunRow};

use crate::{
    app::{App, Deployment, reach::look_first},
    cli::{ForkFrom, SubmitArgs},
    exit::CliResult,
    out,
    results::{check_writable, run_folder},
    runs::{
        attach::attach,
        ending::conclude,
        estimate::{Counting, RunEstimate, fork::estimate_fork},
        execution::Execution,
        executor::RunExecutor,
        start::{check_detach, confirm, new_run},
        takers::check_allowed,
    },
    standing::{check_whole, find_run},
};

/// Kind of the run event that says from which run and phase a run was forked: `<phase> <run id>`.
const FORK_EVENT: &str = "forked";
/// Questions whose texts are read at once.
const TEXTS_AT_ONCE: usize = 256;

/// The six steps of `submit`, for a run whose plan and first phases are those of `source`.
///
/// # Errors
/// Exit 2 for what cannot be forked; else as `submit`.
pub(crate) async fn run(app: &App, args: &SubmitArgs, source: &str, from: ForkFrom) -> CliResult {
    // 1. plan: the source's, with what flags change
    let store = app.open_store().await?;
    let source = find_run(store.as_ref(), source).await?;
    source::check(store.as_ref(), &source, from).await?;
    if from == ForkFrom::Recall {
        check_whole(store.as_ref(), &source).await?;
        check_allowed(app, store.as_ref(), &source).await?;
    }
    let spec = spec::forked_spec(app, args, &source.spec, from)?;

    // 2. estimate: of what is not taken over
    let counting = if args.dry_run { Counting::Exact } else { Counting::Rough };
    let estimate = estimate_fork(app, store.as_ref(), &source, &spec, from, counting).await?;
    if args.dry_run {
        return estimate.print(args.output.json);
    }

    // 3. check
    store.may(Right::Results).await?;
    check_detach(args.detach, app.deployment()?)?;
    app.check_queue().await?;
    let run_id = args.naming.id()?.unwrap_or_else(RunId::fresh);
    check_writable(&run_folder(app, &run_id, args.output.output_dir.as_deref()))?;
    if let Some(existing) = store.run_by_id(&run_id).await? {
        return attach(app, store, &spec, existing, args).await;
    }
    if app.deployment()? == Deployment::Local {
        look_first(app, &spec, from != ForkFrom::Judge).await?;
    }
    confirm(&estimate, &spec, args).await?;

    // 4. create, and take over
    let executor = RunExecutor::for_run(app, &run_id)?;
    let new = new_run(&run_id, &args.naming, spec, &executor);
    let new = NewRun { lineage: source.lineage.clone(), ..new };
    out::note(&headline(&new, &source, from, &estimate));
    let _listening = app.interrupts();
    let run_no = match store.create_or_find(&new, &[]).await? {
        Creation::Made(run_no) => run_no,
        Creation::Found(existing) => {
            drop(executor);
            return attach(app, store, &new.spec, *existing, args).await;
        }
    };
    store.add_event(run_no, FORK_EVENT, &format!("{} {}", from.phase(), source.run_id)).await?;
    let run = store.run(run_no).await?;
    adopt::adopt(store.as_ref(), &run, &source, from).await?;

    // 5. execute, 6. conclude
    let execution = Execution { app, store: &store, run: &run, executor: &executor, planner: None, planned: None };
    if args.detach {
        return execution.leave_to_cluster(args.output.json).await;
    }
    let end = execution.execute_to_rest(&args.output).await?;
    conclude(app, store.as_ref(), &run, end, &args.output).await
}

/// The line that opens a fork.
fn headline(new: &NewRun, source: &RunRow, from: ForkFrom, estimate: &RunEstimate) -> String {
    let spec = &new.spec;
    let judges: Vec<String> = spec.judges.iter().map(|judge| judge.display()).collect();
    let graders = if judges.is_empty() {
        spec.scorers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")
    } else {
        judges.join(", ")
    };
    format!(
        "run {}: {} questions of run {} from {} on, graded by {graders}\n{}",
        new.run_id,
        spec.sample.n,
        source.run_id,
        from.phase(),
        estimate.line()
    )
}
