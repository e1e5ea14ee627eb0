//! A run that may stop early: its rule, read and checked before anything is paid.

use std::sync::Arc;

use bench_aggregate::{
    compare::fingerprints::{RunSettings, comparability},
    stopping::{fewest_questions, questions_needed},
};
use bench_proto::stop::{StopGoal, StopRule, WrittenGoal};
use bench_store::{RunRow, RunState, Store};

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::CliError,
    out::{self, amounts::counted},
    planning::{PlannedRun, take_rounds},
    results::summary_of,
    standing::find_run,
};

/// Gives a planned run the rule of `--stop-when`, and spreads its questions over the rounds between its looks.
///
/// # Errors
/// Exit 2 for a rule that cannot be read or cannot hold with these questions, and for a baseline that the run cannot be compared
/// with.
pub(crate) async fn plan(app: &App, args: &SubmitArgs, planned: &mut PlannedRun) -> Result<(), CliError> {
    let Some(text) = &args.stop_when else { return Ok(()) };
    let refused = |why: String| CliError::usage(format!("--stop-when: {why}"));
    let about = |error: CliError| {
        let message = format!("--stop-when: {}", error.message);
        error.saying(message)
    };
    if args.repeats.is_some_and(|n| n > 1) || app.settings().run.controls {
        return Err(refused("repeats and controls ask all questions of one sample; leave one of both out".to_owned()));
    }
    if !planned.spec.judging.samples.is_empty() {
        return Err(refused(
            "which questions a judge of a sample grades is drawn of all of them, and not all may be asked; leave one of both out"
                .to_owned(),
        ));
    }
    let goal = match WrittenGoal::parse(text).map_err(|error| refused(error.to_string()))? {
        WrittenGoal::Interval(half_width) => StopGoal::Interval { half_width },
        WrittenGoal::Decided(name, margin) => {
            let store = app.open_store().await?;
            let row = find_run(store.as_ref(), &name).await?;
            let digest = baseline_digest(app, store.as_ref(), &row, planned).await.map_err(about)?;
            StopGoal::Decided { run: row.run_id.0, digest, margin }
        }
    };
    let rounds = take_rounds(&planned.dataset, &planned.sample).await.map_err(about)?;
    let rule = StopRule { goal, looks: rounds.looks().to_vec() };
    check_can_hold(&rule, planned)?;
    let at: Vec<String> = rule.looks.iter().map(u64::to_string).collect();
    out::note(&format!("--stop-when \"{}\": looks when {} questions have ended", rule.goal, at.join(", ")));
    planned.spec.stop = Some(rule);
    planned.rounds = Some(Arc::new(rounds));
    Ok(())
}

/// The result digest of the run that a planned one is held against, when both can be compared.
async fn baseline_digest(app: &App, store: &dyn Store, row: &RunRow, planned: &PlannedRun) -> Result<String, CliError> {
    let (id, spec) = (&row.run_id, &planned.spec);
    if row.state != RunState::Finished {
        return Err(CliError::usage(format!("run {id} is not finished: `bench-coord resume {id}` goes on with it")));
    }
    if row.looks.stopped().is_some() {
        return Err(CliError::usage(format!(
            "run {id} has stopped early itself, and has no scores of the other questions: `bench-coord resume {id} --no-stop` asks them"
        )));
    }
    let settings = |spec, imported| RunSettings { spec, imported };
    let found = comparability(&settings(&row.spec, row.imported), &settings(spec, false), &spec.headline_metric(), &[]);
    if !found.reasons.is_empty() {
        let reasons = found.reasons.join("; ");
        return Err(CliError::usage(format!("the run cannot be compared with {id}: {reasons}")));
    }
    if row.spec.sample.signature != spec.sample.signature && !row.spec.sample.census {
        return Err(CliError::usage(format!(
            "run {id} has asked other questions ({} {}): give the same sample, or a baseline that has asked all",
            row.spec.sample.preset,
            counted(row.spec.sample.n, "question")
        )));
    }
    Ok(summary_of(app, store, row).await?.result_digest)
}

/// Refuses a rule that can hold at no scores with these questions; says when ordinary ones may take all of them.
fn check_can_hold(rule: &StopRule, planned: &PlannedRun) -> Result<(), CliError> {
    let headline = &planned.spec.dataset.profile.headline;
    let counted_in = planned.spec.sample.by_category.iter().filter(|(category, _)| headline.counts(category));
    let n: u64 = counted_in.map(|(_, n)| n).sum();
    let (goal, fewest) = (&rule.goal, fewest_questions(rule));
    let [few, many] = questions_needed(goal);
    let (usually, otherwise) = match goal {
        StopGoal::Interval { .. } => {
            (format!("{few} at a score of 95 % and {many} at one of 50 %"), "scores that hardly vary take fewer")
        }
        StopGoal::Decided { .. } => (
            format!(
                "{few} where equal runs differ on one question in twenty and {many} where they differ on four in twenty"
            ),
            "a larger difference takes fewer",
        ),
    };
    if fewest > n {
        return Err(CliError::usage(format!(
            "--stop-when \"{goal}\" cannot hold with {}: it takes at least {fewest}, and {usually}; take a larger sample, or ask for \
             less",
            counted(n, "question")
        )));
    }
    if many > n {
        let all = counted(n, "question");
        out::note(&format!("--stop-when \"{goal}\": here are {all}, and it takes {usually}; {otherwise}"));
    }
    Ok(())
}
