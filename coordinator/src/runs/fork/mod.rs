//! `submit --fork RUN --from PHASE`, `rejudge`, `rescore`: a new run that takes over what another has stored.
//!
//! Everything before the phase is copied, so that no call is made for it; what was paid for it stands in the new report as
//! saved. The new run belongs to the old one's lineage: calls that it makes all the same are found in the call store.
//!
//! [`source`] says whether a run can be forked from a phase, [`spec`] what the new run's settings are, [`counted`] what becomes of
//! somebody else's counting, [`adopt`] what is copied.

mod counted;
mod source;
mod spec;

use bench_datasets::LabelFixes;
use bench_proto::{
    ids::RunId,
    spec::{RunSpec, TakenOver},
};
use bench_store::{Creation, NewRun, Right, RunFilter, RunRow, Runs, Store};

use crate::{
    app::{App, Deployment, reach::look_first},
    cli::{ForkFrom, SubmitArgs},
    exit::{CliError, CliResult},
    out,
    planning::{
        graded, metric_by_answer_key, panel,
        self_check::{self, SelfCheckResult},
    },
    results::{SELF_CHECK_EVENT, check_run_folder},
    runs::{
        adopt::{self, label_fixes},
        attach::attach,
        carry_out::carry_out,
        estimate::{
            Counting, RunEstimate,
            fork::{Anew, ForkOf, estimate_fork},
        },
        execution::Execution,
        executor::RunExecutor,
        start::{check_detach, confirm, new_run},
        takers::check_allowed,
    },
    standing::{FORK_EVENT, check_whole, find_run, naming::check_new_run},
};

/// Where a run has what it did not do itself: `answer of <run id>` for a fork, `import`; none for a run of its own.
///
/// # Errors
/// What the store meets.
pub(crate) async fn source_of(store: &dyn Runs, run: &RunRow) -> Result<Option<String>, CliError> {
    // a run that earlier releases restored has a lineage of its own, whatever it took over
    if run.lineage != run.run_id.0 || run.spec.taken_over != TakenOver::default() {
        let events = store.events(run.run_no).await?;
        let forked = events.iter().find(|event| event.kind == FORK_EVENT);
        if let Some((phase, source)) = forked.and_then(|event| event.message.split_once(' ')) {
            return Ok(Some(format!("{phase} of {source}")));
        }
    }
    Ok(run.imported.then(|| "import".to_owned()))
}

/// The six steps of `submit`, for a run whose plan and first phases are those of `source`.
///
/// # Errors
/// Exit 2 for what cannot be forked; else as `submit`.
pub(crate) async fn run(app: &App, args: &SubmitArgs, source: &str, from: ForkFrom) -> CliResult {
    // 1. plan: the source's, with what flags change; 2. estimate: of what is not taken over
    let store = app.open_store().await?;
    let source = find_run(store.as_ref(), source).await?;
    let PlannedFork { spec, fixes, estimate } = plan(app, store.as_ref(), args, &source, from).await?;
    if args.dry_run {
        return estimate.print(args.output.json);
    }

    // 3. check
    store.may(Right::Results).await?;
    check_detach(args.detach, app.deployment()?)?;
    app.check_queue().await?;
    let run_id = args.naming.id()?.unwrap_or_else(RunId::fresh);
    check_run_folder(app, &run_id, args.output.output_dir.as_deref())?;
    if let Some(existing) = store.run_by_id(&run_id).await? {
        return attach(app, store, &spec, existing, args).await;
    }
    check_new_run(store.as_ref(), args.naming.name.as_deref(), &run_id).await?;
    app.check_run_accounts(&spec)?;
    if app.deployment()? == Deployment::Local {
        look_first(app, &spec, from != ForkFrom::Judge).await?;
    }
    confirm(&estimate, &spec, args).await?;
    let graders = self_check::of_stored(&store, &source, &spec).await?;

    // 4. create, and take over
    let executor = RunExecutor::for_run(app, &run_id)?;
    let new = fork_of(&source, from, &graders, new_run(&run_id, &args.naming, spec, &executor));
    out::note(&headline(&new, &source, from, &estimate));
    let _listening = app.interrupts();
    let run_no = match store.create_or_find(&new, &[]).await? {
        Creation::Made(run_no) => run_no,
        Creation::Found(existing) => {
            drop(executor);
            return attach(app, store, &new.spec, *existing, args).await;
        }
    };
    let run = store.run(run_no).await?;
    adopt::adopt(store.as_ref(), &run, &source, from, fixes.as_ref()).await?;

    // 5. execute, 6. end
    let execution = Execution { app, store: &store, run: &run, executor: &executor, planner: None, planned: None };
    carry_out(execution, args.detach, &args.output).await
}

/// A run that is to be created, as a fork with what its graders' check found: whoever goes on with it takes over first, also when
/// its creation is all that was done.
fn fork_of(source: &RunRow, from: ForkFrom, graders: &SelfCheckResult, new: NewRun) -> NewRun {
    let forked = (FORK_EVENT, format!("{} {}", from.phase(), source.run_id));
    NewRun { lineage: source.lineage.clone(), events: vec![forked, (SELF_CHECK_EVENT, graders.event())], ..new }
}

/// What a fork would call, said without making it: `source` may lie in any store.
///
/// # Errors
/// As [`run`], up to the estimate.
pub(crate) async fn dry_run(
    app: &App,
    store: &dyn Store,
    args: &SubmitArgs,
    source: &RunRow,
    from: ForkFrom,
) -> CliResult {
    plan(app, store, args, source, from).await?.estimate.print(args.output.json)
}

/// A fork before anything of it is stored.
struct PlannedFork {
    spec: RunSpec,
    fixes: Option<LabelFixes>,
    estimate: RunEstimate,
}

/// Plans and estimates a fork.
async fn plan(
    app: &App,
    store: &dyn Store,
    args: &SubmitArgs,
    source: &RunRow,
    from: ForkFrom,
) -> Result<PlannedFork, CliError> {
    source::check(store, source, from).await?;
    if from == ForkFrom::Recall {
        check_whole(store, source).await?;
        check_allowed(app, store, source).await?;
    }
    let mut spec = match counted::leaves(args, &source.spec) {
        true => spec::forked_spec(app, args, &counted::uncounted(app, source).await?, from)?,
        false => spec::forked_spec(app, args, source, from)?,
    };
    let regraded = !args.judge.is_empty() || args.rubric.is_some() || args.judge_prompts.is_some();
    if regraded && !spec.judges.is_empty() {
        graded::check_stored(store, source, &spec.dataset.profile).await?;
    }
    panel::choose_stored(store, source, &mut spec, (args.judge.as_slice(), from == ForkFrom::Judge)).await?;
    let fixes = match &args.label_fixes {
        Some(name) => {
            metric_by_answer_key(&spec, "--label-fixes")?;
            Some(label_fixes(app, &source.spec, name, args.sample.allow_modified_dataset).await?)
        }
        None => None,
    };
    if let Some(fixes) = &fixes {
        spec.dataset.label_fixes = Some(fixes.spec().clone());
    }
    let anew = match args.only_wrong {
        true => Some(answered_again(store, source, &mut spec).await?),
        false => None,
    };
    let planned = ForkOf { source, spec: &spec, from, fixes: fixes.as_ref(), anew: anew.as_ref() };
    // what its source has stored is at hand: whoever starts it is told what a dry run has said
    let estimate = estimate_fork(app, store, &planned, Counting::Exact).await?;
    Ok(PlannedFork { spec, fixes, estimate })
}

/// Which questions of a run did not pass and are answered again; notes it for the report of the fork.
///
/// # Errors
/// Exit 2 when there are none, and for an answerer that would say the same.
async fn answered_again(store: &dyn Store, source: &RunRow, spec: &mut RunSpec) -> Result<Anew, CliError> {
    if !spec.answerer.is_remote() {
        return Err(CliError::usage(format!(
            "--wrong: run {} was answered by {}, which says the same again; a model answers in \
             `bench-coord submit --fork {0} --from answer --answerer PROVIDER:MODEL`",
            source.run_id,
            spec.who_answers()
        )));
    }
    let (wrong, kept) = adopt::wrong_and_right(store, source).await?;
    if wrong == 0 {
        return Err(CliError::usage(format!("--wrong: every question of run {} passed", source.run_id)));
    }
    // the same draw of the same questions is paid once
    let is_same_draw = |run: &RunRow| {
        let of = &run.spec;
        run.lineage == source.lineage
            && of.taken_over.answered_again == spec.taken_over.answered_again
            && of.answerer == spec.answerer
    };
    let drawn = store.list_runs(&RunFilter::default()).await?.into_iter().find(is_same_draw);
    if let Some(run) = &drawn {
        out::note(&format!(
            "run {0} has answered them again already, and what was paid for is not paid twice: this run has the same answers; \
             `bench-coord retry {0} --wrong` answers anew what is wrong there",
            run.run_id
        ));
    }
    spec.sample.notes.push(format!(
        "{wrong} questions that had not passed in run {} were answered again, the others have the answers of that run: the score \
         is the better of several tries, and no measure of one",
        source.run_id
    ));
    Ok(Anew { questions: wrong, kept, drawn: drawn.is_some() })
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

#[cfg(test)]
mod tests {
    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn a_fork_is_one_from_its_creation_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let source = conformance::created(store.as_ref(), &conformance::new_run("source")).await;
        let graders = SelfCheckResult::failed("the gold scores 0");
        let fork = fork_of(&source, ForkFrom::Answer, &graders, conformance::new_run("fork"));
        let fork = conformance::created(store.as_ref(), &fork).await;
        let said = source_of(store.as_ref(), &fork).await.expect("is read");
        assert_eq!(said.as_deref(), Some("answer of source"), "whoever is killed now leaves a fork");
        let mut restored = fork.clone();
        restored.lineage = restored.run_id.0.clone();
        restored.spec.taken_over = TakenOver::of_fork(ForkFrom::Answer.into(), "source", &TakenOver::default());
        let said = source_of(store.as_ref(), &restored).await.expect("is read");
        assert_eq!(said.as_deref(), Some("answer of source"), "also one that was restored with a lineage of its own");
        let events = store.events(fork.run_no).await.expect("are read");
        let checked = events.iter().find(|event| event.kind == SELF_CHECK_EVENT).map(|event| event.message.as_str());
        assert_eq!(checked, Some("failed: the gold scores 0"), "and one whose graders are known to be broken");
    }
}
