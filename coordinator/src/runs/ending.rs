//! What the person sees at the end of a run, and the exit code.

use std::path::Path;

use bench_aggregate::gate::{Floors, GateFlags, Policy, gate};
use bench_proto::{
    gate::GateVerdict,
    ids::RunNo,
    summary::{Summary, Verdict},
};
use bench_store::Store;

use super::{TERMINAL, render_summary, run_folder, summary_of, write_files};
use crate::{
    app::App,
    exit::{CliResult, Exit},
    out,
};

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

/// The same; a valid run whose score is below the floor is a regression.
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
    let summary = summary_of(app, store, &run).await?;
    tracing::debug!("summarised");
    let folder = run_folder(app, &run, output_dir);
    write_files(store, &run, &summary, &folder).await?;
    tracing::debug!("files written");
    out::painted(&render_summary(&summary, if json { "json" } else { TERMINAL })?);
    out::note(&format!("report, questions and answers: {}", folder.display()));
    #[cfg(feature = "archive")]
    if run.domain == crate::local::LOCAL_DOMAIN {
        crate::archive::auto::after_run(app, store, &run).await;
    }
    let floors = Floors { overall: floor, ..Floors::default() };
    let policy = Policy { floors, ..Policy::default() };
    let gated = gate(&summary, None, &policy, GateFlags::default());
    gated.checks.iter().for_each(|check| out::note(&format!("{}: {}", check.rule, check.detail)));
    Ok(match (exit_of(&summary), gated.verdict) {
        (Exit::Done, GateVerdict::Fail) => Exit::Regression,
        (exit, _) => exit,
    })
}

/// Prints the result of a finished run again.
///
/// # Errors
/// What the store meets.
pub(crate) async fn print_finished(app: &App, store: &dyn Store, run_no: RunNo) -> CliResult {
    let run = store.run(run_no).await?;
    let summary = summary_of(app, store, &run).await?;
    out::painted(&render_summary(&summary, TERMINAL)?);
    Ok(exit_of(&summary))
}

/// The exit code of a finished run.
#[must_use]
pub(crate) fn exit_of(summary: &Summary) -> Exit {
    if summary.run.verdict == Verdict::Invalid { Exit::Invalid } else { Exit::Done }
}
