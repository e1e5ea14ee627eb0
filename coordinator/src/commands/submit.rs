//! `submit`: plan a run, estimate it, start it, and stay with it to its end.

use std::sync::Arc;

use bench_proto::{
    ids::RunId,
    trace::{TraceId, span_of_submit},
};
use bench_store::{Creation, NewGroup, NewRun, RunRow, Runs, Store};
use bench_telemetry::{process, process_span};
use tracing::{Instrument as _, Span};

use crate::{
    app::{App, Deployment},
    cli::SubmitArgs,
    exit::{CliError, CliResult},
    out::{self, amounts::counted},
    planning::{
        PlannedRun,
        self_check::{self, SelfCheckResult},
        unused_prices,
    },
    results,
    runs::{
        attach::attach,
        carry_out::carry_out,
        controls::PlannedGroup,
        estimate::{Counting, RunEstimate},
        execution::Execution,
        executor::RunExecutor,
        fork, group,
        start::{check_detach, check_servers, confirm, look_before_store, new_run, plan},
    },
    standing::naming::{check_new, check_new_run},
};

/// The six steps of a run: it is planned, estimated, checked, created, executed and concluded. Reads settings, the dataset and
/// the run of the same id, if any; writes the run's rows and the files of its report; exits with the run's verdict.
pub(super) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    check_detach(args.detach, app.deployment()?)?;
    if let (Some(source), Some(from)) = (&args.fork, args.from) {
        return fork::run(app, args, source, from).await;
    }
    let run_id = args.naming.id()?;
    if !args.dry_run {
        // a dataset may take minutes: whether queue and collector can be used is known before
        app.check_queue().await?;
        app.telemetry()?;
    }
    let span = process::started(process_span!("submit", run = tracing::field::Empty));

    // 1. plan: dataset, sample, and every name, key and price
    // in a cluster the keys are with the workers
    let will_call = !args.dry_run && app.deployment()? == Deployment::Local;
    let group = plan(app, args, will_call).instrument(span.clone()).await?;
    let repeats = args.repeats.filter(|n| *n > 1);
    let spec = &group.measured.spec;
    unused_prices(spec).iter().for_each(|unused| out::note(unused));
    app.unused_settings(&spec.system.name).iter().for_each(|unused| out::note(unused));

    // 2. estimate: calls, tokens, dollars, minutes and the interval to expect
    let counting = if args.dry_run { Counting::Exact } else { Counting::Rough };
    let estimate = RunEstimate::of_group(app, &group, counting).await.repeated(repeats.unwrap_or(1));
    if args.dry_run {
        return estimate.print(args.output.json);
    }

    // 3. check: the output folder, the servers that will be called, the person's consent, the graders
    let run_id = run_id.unwrap_or_else(RunId::fresh);
    results::check_run_folder(app, &run_id, args.output.output_dir.as_deref())?;
    let looked = look_before_store(app, spec).await?;
    let (store, name) = (app.open_store().await?, args.naming.name.as_deref());
    match repeats {
        Some(n) => {
            group::check_no_run(store.as_ref(), &run_id).await?;
            if let Some(existing) = group::group_or_free(store.as_ref(), &run_id, n).await? {
                return group::attach(app, &store, spec, existing, (args, n)).await;
            }
            check_new(store.as_ref(), name, &run_id).await?;
        }
        None => {
            if let Some(existing) = store.run_by_id(&run_id).await? {
                return attach(app, store, spec, existing, args).await;
            }
            check_new_run(store.as_ref(), name, &run_id).await?;
        }
    }
    check_servers(app, store.as_ref(), spec, looked).await?;
    confirm(&estimate, spec, args).await?;
    tracing::debug!("planned");
    let graders = self_check::run(&group.measured).await?;
    tracing::debug!("graders checked");

    if let Some(repeats) = repeats {
        out::note(&headline(&run_id, &group.measured, &estimate));
        let new = group::NewRepeats { args, planned: &group, id: run_id, repeats, graders: &graders };
        return group::start(app, &store, new).await;
    }

    let checked = Checked { args, run_id, group: &group, estimate: &estimate, graders: &graders };
    start(app, store, checked, span).await
}

/// A run that was planned, estimated and checked.
struct Checked<'a> {
    args: &'a SubmitArgs,
    run_id: RunId,
    group: &'a PlannedGroup,
    estimate: &'a RunEstimate,
    graders: &'a SelfCheckResult,
}

/// The last three steps of a run. The span of `submit` ends when it is created.
async fn start(app: &App, store: Arc<dyn Store>, checked: Checked<'_>, span: Span) -> CliResult {
    let Checked { args, run_id, group, estimate, graders } = checked;
    let measured = &group.measured;

    // 4. create: the run and its controls in one transaction
    let executor = RunExecutor::for_run(app, &run_id)?;
    out::note(&headline(&run_id, measured, estimate));
    let _listening = app.interrupts();
    span.record("run", run_id.0.as_str());
    process::link(&span, TraceId::of_run(&run_id).0, span_of_submit(&run_id).0);
    let new = NewRun {
        group: group_of(group, &run_id),
        events: vec![(results::SELF_CHECK_EVENT, graders.event())],
        ..new_run(&run_id, &args.naming, measured.spec.clone(), &executor)
    };
    let run = match create(store.as_ref(), &new, group).instrument(span.clone()).await? {
        Created::New(run) => run,
        Created::Existing(existing) => {
            // its lock, where there is one, is taken anew like that of any run that exists
            drop(executor);
            return attach(app, store, &measured.spec, existing, args).await;
        }
    };
    drop(span);

    // 5. execute: here or in a cluster, with the controls; 6. end: summary, files, exit code
    let execution = Execution {
        app,
        store: &store,
        run: &run,
        executor: &executor,
        planner: Some(measured.planner(&run, &app.home())),
        planned: Some(measured),
    };
    carry_out(execution, args.detach, &args.output).await
}

/// What creating a run came to.
enum Created {
    /// It was created.
    New(RunRow),
    /// Somebody else has created a run of this id just now.
    Existing(RunRow),
}

/// Creates the run and its controls.
async fn create(store: &dyn Runs, new: &NewRun, group: &PlannedGroup) -> Result<Created, CliError> {
    match store.create_or_find(new, &group.new_controls(new)).await? {
        Creation::Found(existing) => Ok(Created::Existing(*existing)),
        Creation::Made(run_no) => {
            let run = store.run(run_no).await?;
            tracing::debug!("run created");
            Ok(Created::New(run))
        }
    }
}

/// The group of a run with controls: they share its cap (P41).
fn group_of(group: &PlannedGroup, run_id: &RunId) -> Option<NewGroup> {
    let cap = group.measured.spec.limits.max_cost;
    (!group.controls.is_empty()).then(|| NewGroup { id: run_id.0.clone(), cap })
}

/// The line that opens a run.
fn headline(run_id: &RunId, planned: &PlannedRun, estimate: &RunEstimate) -> String {
    let spec = &planned.spec;
    let judge = spec.judges.first().map(|j| format!(", judge {}", j.display())).unwrap_or_default();
    let answers = if spec.scenario.answers() { "answerer " } else { "" };
    format!(
        "run {run_id}: {} {} ({}, {}), system {}, {answers}{}{judge}\n{}",
        spec.dataset.name,
        spec.sample.preset,
        counted(spec.sample.n, "question"),
        counted(spec.sample.banks, "bank"),
        spec.system.name,
        spec.who_answers(),
        estimate.line()
    )
}
