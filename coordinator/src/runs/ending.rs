//! How a run came to rest, what the person sees of it, and the exit code.

use std::path::Path;

use bench_aggregate::gate::{Floors, GateFlags, Policy, gate};
use bench_proto::{
    gate::GateVerdict,
    ids::RunNo,
    matrix::MatrixReport,
    spec::{ModelSpec, RunSpec},
    summary::{Summary, Verdict},
    text,
};
use bench_store::{RunRow, Store};
use bench_systems::adapter::ADAPTER;

use crate::{
    app::App,
    cli::OutputArgs,
    exit::{CliError, CliResult, Exit},
    out,
    results::{on_screen, page_in, render_summary, run_folder, summary_of, write_files},
    runs::{
        controls,
        estimate::RunEstimate,
        removal::clean_after,
        rest::{RunEnd, left_running},
    },
    standing::{Standing, group::RunsOfGroup},
};

/// Samples that a name is enough for.
const PRESETS: [&str; 4] = ["quick", "fair", "fair-2", "full"];

/// Prints the result of a run that came to rest, or says how to go on.
///
/// # Errors
/// Exit 3 with the way to go on, when it is not finished.
pub(crate) async fn show_ending(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    end: RunEnd,
    output: &OutputArgs,
) -> CliResult {
    match end {
        RunEnd::Finished => {
            let folder = output.output_dir.as_deref();
            let exit = finish_above(app, store, run.run_no, output.json, folder, output.floor).await?;
            if let Some(hint) = next_step(app, &run.spec) {
                out::note(&hint);
            }
            match controls::left_over(store, run).await? {
                Some(left) if exit == Exit::Done => Err(CliError::resumable(left)),
                left => {
                    left.iter().for_each(|left| out::note(left));
                    Ok(exit)
                }
            }
        }
        RunEnd::LeftRunning { reason } => Err(left_running(&run.run_id, &reason)),
        RunEnd::Paused { .. } | RunEnd::Cancelled { .. } => {
            let row = match (store.run(run.run_no).await, &end) {
                // a store that is away does not keep who leaves
                (Err(error), RunEnd::Paused { reason }) if error.is_transient() => {
                    let standing = Standing::Paused { reason: reason.clone() };
                    return Err(CliError::resumable(standing.advice(&run.run_id).unwrap_or_default()));
                }
                (row, _) => row?,
            };
            let summary = summary_of(app, store, &row).await?;
            write_files(store, &row, &summary, &run_folder(app, &row.run_id, output.output_dir.as_deref())).await?;
            let standing = Standing::of_run(&row, None);
            let ended = row.counters.ended();
            let controls = controls::waiting(store, run.run_no).await?;
            Err(CliError::resumable(format!(
                "{} of {} questions ended; {}{}",
                ended,
                row.sample_size(),
                standing.advice(&row.run_id).unwrap_or_default(),
                controls.map(|controls| format!("; {controls}")).unwrap_or_default()
            )))
        }
    }
}

/// The one line that uses a key which was found but not used, for runs that one short line describes.
fn next_step(app: &App, spec: &RunSpec) -> Option<String> {
    let uses_models = spec.answerer.is_remote() || spec.judges.iter().any(ModelSpec::is_remote);
    let plain = spec.scenario.answers()
        && PRESETS.contains(&spec.sample.preset.as_str())
        && spec.sample.max_sessions.is_none()
        && spec.dataset.path.is_none()
        && !spec.dataset.modified
        && !spec.system.settings.contains_key(ADAPTER);
    (plain && !uses_models && app.has_openai_key()).then(|| {
        let (usd, minutes) = RunEstimate::with_a_small_model(spec);
        format!(
            "an OpenAI key is set; with a real answerer and judge (about ${usd:.2}, {minutes:.0} min):\n  bench-coord submit --dataset {} --preset {} --system {} --answerer openai:gpt-4o-mini --judge openai:gpt-4o-mini",
            spec.dataset.name, spec.sample.preset, spec.system.name
        )
    })
}

/// Prints the result of a run that came to its end and says where the files are; the exit code follows the verdict.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn finish(
    app: &App,
    store: &dyn Store,
    run_no: RunNo,
    json: bool,
    output_dir: Option<&Path>,
) -> CliResult {
    finish_above(app, store, run_no, json, output_dir, None).await
}

/// Prints the result as [`finish`] does; a valid run whose score is below the floor is a regression.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn finish_above(
    app: &App,
    store: &dyn Store,
    run_no: RunNo,
    json: bool,
    output_dir: Option<&Path>,
    floor: Option<f64>,
) -> CliResult {
    let run = store.run(run_no).await?;
    let folder = run_folder(app, &run.run_id, output_dir);
    let summary = write_result(app, store, &run, &folder).await?;
    print_summary(&summary, json, &folder)?;
    out::note(&format!("report, questions and answers: {}", folder.display()));
    archive_local(app, store, &run).await;
    clean_after(app, store, &[run]).await?;
    let floors = Floors { overall: floor, ..Floors::default() };
    let policy = Policy { floors, ..Policy::default() };
    let gated = gate(&summary, None, &policy, GateFlags::default());
    gated.checks.iter().for_each(|check| out::note(&format!("{}: {}", check.rule, check.detail)));
    Ok(match (exit_of(&summary), gated.verdict) {
        (Exit::Done, GateVerdict::Fail) => Exit::Regression,
        (exit, _) => exit,
    })
}

/// Writes the files of a result; returns its summary.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn write_result(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    folder: &Path,
) -> Result<Summary, CliError> {
    let summary = summary_of(app, store, run).await?;
    tracing::debug!("summarised");
    write_files(store, run, &summary, folder).await?;
    tracing::debug!("files written");
    Ok(summary)
}

/// Brings a run of this process into the archive, where one is named; those of a cluster are brought by its coordinator.
pub(crate) async fn archive_local(app: &App, store: &dyn Store, run: &RunRow) {
    #[cfg(feature = "archive")]
    if run.domain == crate::standing::domains::LOCAL_DOMAIN {
        crate::archive::auto::after_run(app, store, run).await;
    }
    #[cfg(not(feature = "archive"))]
    let _ = (app, store, run);
}

/// The same of a matrix whose runs were all made here, with its report.
pub(crate) async fn archive_local_matrix(app: &App, store: &dyn Store, group: &RunsOfGroup, report: &MatrixReport) {
    #[cfg(feature = "archive")]
    if group.runs.iter().all(|run| run.domain == crate::standing::domains::LOCAL_DOMAIN) {
        crate::archive::auto::after_matrix(app, store, group, report).await;
    }
    #[cfg(not(feature = "archive"))]
    let _ = (app, store, group, report);
}

/// Prints the result of a finished run again.
///
/// # Errors
/// What the store meets.
pub(crate) async fn print_finished(app: &App, store: &dyn Store, run_no: RunNo, json: bool) -> CliResult {
    let run = store.run(run_no).await?;
    let summary = summary_of(app, store, &run).await?;
    print_summary(&summary, json, &run_folder(app, &run.run_id, None))?;
    Ok(exit_of(&summary))
}

/// Prints a summary whose files lie in `folder`, where there are some.
fn print_summary(summary: &Summary, json: bool, folder: &Path) -> Result<(), CliError> {
    if json {
        out::file(out::Kind::Json, &text::json(&render_summary(summary, "json")?));
    } else {
        out::painted(&on_screen(summary, false, page_in(folder).as_deref()));
    }
    Ok(())
}

/// The exit code of a finished run.
#[must_use]
pub(crate) fn exit_of(summary: &Summary) -> Exit {
    if summary.run.verdict == Verdict::Invalid { Exit::Invalid } else { Exit::Done }
}
