//! What a person sees of a group at its end or at any rest, its files, and the exit code.

use std::{io::Write as _, path::Path};

use bench_aggregate::{
    gate::beyond_floor,
    repeats::{RepeatTable, questions},
};
use bench_proto::{
    ids::RunId,
    matrix::{MatrixCell, MatrixReport},
    metric::Better,
    repeats::RepeatsReport,
    summary::Verdict,
};
use bench_report::{repeats as rendered, svg::Plot, terminal::TerminalOptions};
use bench_store::{RunState, Store};
use serde_json::json;

use crate::{
    app::App,
    cli::OutputArgs,
    comparison::matrix::matrix_report,
    exit::{CliError, CliResult, Exit},
    out,
    results::{check_writable, page_in, repeats::repeats_report, run_folder, write_atomically, write_text},
    runs::{
        controls,
        ending::{archive_local, archive_local_matrix, write_result},
        removal::clean_after,
        rest::left_running,
    },
    standing::{Standing, group::RunsOfGroup},
};

/// Writes the files of the group and of its runs, prints the report, and says how to go on where it has not ended. `left` is why
/// this process left a cluster's runs.
///
/// # Errors
/// Exit 3 with the way to go on; what the store or the disk meets.
pub(super) async fn show(
    app: &App,
    store: &dyn Store,
    id: &RunId,
    left: Option<String>,
    output: &OutputArgs,
) -> CliResult {
    let group = RunsOfGroup::find(store, &id.0).await;
    if let Some(reason) = left {
        // one whose runs have come to rest meanwhile does not go on
        let goes_on = |group: &RunsOfGroup| group.runs.iter().any(|run| run.state == RunState::Running);
        if !matches!(&group, Ok(Some(group)) if !goes_on(group)) {
            return Err(left_running(id, &reason));
        }
    }
    let Some(group) = group? else {
        return Err(CliError::usage(format!("no group {id} in {}; `bench-coord list` shows all", store.describe())));
    };
    let folder = run_folder(app, id, output.output_dir.as_deref());
    for run in &group.runs {
        // the files of a run lie where they lie without a group, or below the folder that was named
        let own = output.output_dir.as_ref().map(|folder| folder.join(&run.run_id.0));
        write_result(app, store, run, &run_folder(app, &run.run_id, own.as_deref())).await?;
        if run.state == RunState::Finished {
            archive_local(app, store, run).await;
        }
    }
    if group.is_matrix() {
        return show_matrix(app, store, &group, output).await;
    }
    let (report, table) = repeats_report(app, store, &group).await?;
    write_files(&report, &table, &folder)?;
    let all_ended = group.runs.iter().all(|run| run.state == RunState::Finished);
    if report.group.ended > 0 {
        print(&report, output.json, false, &folder);
        out::note(&format!("report of the group: {}", folder.display()));
    }
    if !all_ended {
        return Err(CliError::resumable(open(app, &group)));
    }
    clean_after(app, store, &group.runs).await?;
    let run = group.runs.first().ok_or_else(|| CliError::infrastructure(format!("group {id} is gone")))?;
    let controls = controls::left_over(store, run).await?;
    let floor = output.floor.map(|floor| (run.spec.metric(&report.metric).better, floor));
    match (exit_of(&report, floor), controls) {
        (Exit::Done, Some(left)) => Err(CliError::resumable(left)),
        (exit, left) => {
            left.iter().for_each(|left| out::note(left));
            Ok(exit)
        }
    }
}

/// The same of a matrix.
async fn show_matrix(app: &App, store: &dyn Store, group: &RunsOfGroup, output: &OutputArgs) -> CliResult {
    let folder = run_folder(app, &group.id, output.output_dir.as_deref());
    let report = matrix_report(app, store, group).await?;
    write_matrix(&report, &folder)?;
    if report.cells.iter().any(|cell| cell.ended > 0) {
        print_matrix(&report, output.json, false, &folder);
        out::note(&format!("report of the matrix: {}", folder.display()));
    }
    if group.runs.iter().any(|run| run.state != RunState::Finished) {
        return Err(CliError::resumable(open(app, group)));
    }
    archive_local_matrix(app, store, group, &report).await;
    clean_after(app, store, &group.runs).await?;
    Ok(exit_of_matrix(&report, output.floor))
}

/// Prints a report of a matrix: what fits a screen, or in `full`. Its files lie in `folder`, where there are some.
pub(crate) fn print_matrix(report: &MatrixReport, json: bool, full: bool, folder: &Path) {
    print_report(report, json, (full, folder), bench_report::matrix::terminal);
}

/// Prints a report as JSON, or as `told` tells it to a terminal.
fn print_report<R: serde::Serialize>(
    report: &R,
    json: bool,
    (full, folder): (bool, &Path),
    told: impl Fn(&R, TerminalOptions<'_>) -> String,
) {
    if json {
        return out::json(report);
    }
    let page = page_in(folder);
    out::painted(&told(report, TerminalOptions { view: out::view(), full, page: page.as_deref() }));
}

/// Writes `report.json`, `report.md`, `report.html` and the plots of a matrix, and for each cell `results-c<number>.json`; the names of
/// the files of words and figures.
///
/// # Errors
/// What the disk meets.
pub(crate) fn write_matrix(report: &MatrixReport, folder: &Path) -> Result<Vec<String>, CliError> {
    use bench_report::matrix::{html, markdown, plots};

    let page = html(report).map_err(CliError::infrastructure_of)?;
    write_report(folder, &as_json(report)?, &markdown(report), &page, &plots(report))?;
    let mut names = ["report.json", "report.md", "report.html"].map(str::to_owned).to_vec();
    for cell in &report.cells {
        let name = format!("results-c{}.json", cell.number);
        let document = json!({"schema_version": report.schema_version, "matrix": report.id, "cell": cell});
        write_text(&folder.join(&name), &as_json(&document)?)?;
        names.push(name);
    }
    Ok(names)
}

/// Writes the report of a group in all its forms.
fn write_report(folder: &Path, json: &str, markdown: &str, page: &str, plots: &[Plot]) -> Result<(), CliError> {
    check_writable(folder)?;
    let pictures = plots.iter().map(|plot| (plot.file_name, plot.standalone()));
    let texts = [("report.json", json), ("report.md", markdown), ("report.html", page)];
    let texts = texts.into_iter().map(|(name, text)| (name, text.to_owned()));
    texts.chain(pictures).try_for_each(|(name, text)| write_text(&folder.join(name), &text))
}

/// The exit code of a matrix that has ended: a floor is one for each of its cells.
fn exit_of_matrix(report: &MatrixReport, floor: Option<f64>) -> Exit {
    if report.cells.iter().any(|cell| cell.verdict == Some(Verdict::Invalid)) {
        return Exit::Invalid;
    }
    let beyond = |cell: &MatrixCell| {
        let said = beyond_floor(cell.better, cell.value?, floor?)?;
        Some(format!("cell {}: {said}", cell.number))
    };
    let beyond: Vec<String> = report.cells.iter().filter_map(beyond).collect();
    if beyond.is_empty() {
        return Exit::Done;
    }
    out::note(&format!("floor: {}", beyond.join("; ")));
    Exit::Regression
}

/// Prints what a group that has ended came to; the exit code is that of its runs.
///
/// # Errors
/// What the store meets.
pub(crate) async fn print_group(app: &App, store: &dyn Store, group: &RunsOfGroup, json: bool) -> CliResult {
    let folder = run_folder(app, &group.id, None);
    if group.is_matrix() {
        let report = matrix_report(app, store, group).await?;
        print_matrix(&report, json, false, &folder);
        return Ok(exit_of_matrix(&report, None));
    }
    let (report, _) = repeats_report(app, store, group).await?;
    print(&report, json, false, &folder);
    Ok(exit_of(&report, None))
}

/// Prints a report of a group: what fits a screen, or in `full`. Its files lie in `folder`, where there are some.
pub(crate) fn print(report: &RepeatsReport, json: bool, full: bool, folder: &Path) {
    print_report(report, json, (full, folder), rendered::terminal);
}

/// Writes the report of repeats in all its forms, and `questions.jsonl`: of each question its scores, their mean and deviation.
///
/// # Errors
/// What the disk meets.
pub(crate) fn write_files(report: &RepeatsReport, table: &RepeatTable, folder: &Path) -> Result<(), CliError> {
    check_writable(folder)?;
    write_atomically(&folder.join("questions.jsonl"), |file| {
        questions(table).try_for_each(|question| {
            serde_json::to_writer(&mut *file, &question)?;
            file.write_all(b"\n")
        })
    })?;
    let page = rendered::html(report).map_err(CliError::infrastructure_of)?;
    write_report(folder, &as_json(report)?, &rendered::markdown(report), &page, &rendered::plots(report))
}

/// A report of a group as JSON text.
///
/// # Errors
/// Never for figures that are numbers.
pub(crate) fn as_json(report: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(report);
    text.map_err(|e| CliError::infrastructure(format!("the report cannot be written: {e}")).because(e))
}

/// What is open, and how to go on.
fn open(app: &App, group: &RunsOfGroup) -> String {
    let (all, ended) = group.questions();
    let finished = group.runs.iter().filter(|run| run.state == RunState::Finished).count();
    let standing = group
        .runs
        .iter()
        .filter(|run| run.state != RunState::Finished)
        .map(|run| Standing::of_run(run, app.store_file().as_deref()));
    let advice = standing.filter_map(|standing| standing.advice(&group.id)).next().unwrap_or_default();
    format!("{finished} of {} runs and {ended} of {all} questions ended; {advice}", group.runs.len())
}

/// The exit code of a group that has ended; a floor holds in the direction in which its metric is better.
fn exit_of(report: &RepeatsReport, floor: Option<(Better, f64)>) -> Exit {
    if report.runs.iter().any(|run| run.verdict == Some(Verdict::Invalid)) {
        return Exit::Invalid;
    }
    let beyond = floor.zip(report.mean.value).and_then(|((better, floor), mean)| beyond_floor(better, mean, floor));
    match beyond {
        Some(said) => {
            out::note(&format!("floor: the mean {said}"));
            Exit::Regression
        }
        None => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_of_several_runs_holds_in_the_direction_of_their_metric() {
        let golden = include_str!("../../../../proto/golden/repeats.v1.json");
        let mut repeats: RepeatsReport = serde_json::from_str(golden).expect("the golden report is read");
        repeats.runs.iter_mut().for_each(|run| run.verdict = Some(Verdict::Valid));
        repeats.mean.value = Some(0.1 + 0.2);
        let golden = include_str!("../../../../proto/golden/matrix.v1.json");
        let mut matrix: MatrixReport = serde_json::from_str(golden).expect("the golden report is read");
        for cell in &mut matrix.cells {
            (cell.verdict, cell.value) = (Some(Verdict::Valid), Some(0.1 + 0.2));
        }
        for (better, floor, exit) in [
            (Better::Higher, 0.2, Exit::Done),
            (Better::Higher, 0.4, Exit::Regression),
            (Better::Lower, 0.2, Exit::Regression),
            (Better::Lower, 0.4, Exit::Done),
            // 0.1 + 0.2 is not 0.3, and the last bit decides nothing
            (Better::Lower, 0.3, Exit::Done),
        ] {
            assert_eq!(exit_of(&repeats, Some((better, floor))), exit, "{better:?} {floor}");
            matrix.cells.iter_mut().for_each(|cell| cell.better = better);
            assert_eq!(exit_of_matrix(&matrix, Some(floor)), exit, "{better:?} {floor}");
        }
        assert_eq!(exit_of(&repeats, None), Exit::Done);
    }
}
