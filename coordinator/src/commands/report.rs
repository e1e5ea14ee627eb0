//! `report RUN`: the result again, from the store. `report --index`: all runs of the store on one page.

use std::{collections::HashMap, path::PathBuf};

use bench_aggregate::compare::CompareOptions;
use bench_proto::{
    comparison::Comparison,
    ids::short_id,
    summary::{QuestionLine, Summary},
};
use bench_report::{
    Format, csv,
    html::{self, Page},
};
use bench_store::{RunFilter, RunRow, Store};
use serde_json::{Value, json};

use crate::{
    app::App,
    cli::ReportArgs,
    comparison::{inputs::LoadedRun, matrix::matrix_report, pair},
    exit::{CliError, CliResult, Exit},
    out,
    planning::check_trace_url,
    results::{
        self,
        answer_key::{self, Source},
        corrected,
        repeats::repeats_report,
    },
    runs::{
        group::ending,
        lines::{GroupSizes, Line},
        listed::Listed,
    },
    standing::{find_run, group::RunsOfGroup},
};

/// Prints the result of a run in one format, or writes several to a folder; the run is only read. Or makes the page of all runs.
pub(super) async fn run(app: &App, args: &ReportArgs) -> CliResult {
    if let Some(url) = &args.trace_url {
        check_trace_url("--trace-url", url)?;
    }
    match &args.run {
        Some(run) => one(app, args, run).await,
        None => index(app, args).await,
    }
}

/// The page of all runs, or the same as JSON.
async fn index(app: &App, args: &ReportArgs) -> CliResult {
    let store = app.open_store().await?;
    let rows = store.list_runs(&RunFilter::default()).await?;
    let sizes = GroupSizes::of_runs(&rows);
    let mut listed = Vec::with_capacity(rows.len());
    for run in rows {
        listed.push(Listed::of_run(app, store.as_ref(), run).await?);
    }
    if args.json {
        let with_page = |listed: &Listed| {
            let mut run = listed.as_json();
            run["page"] = json!(listed.page(app));
            run
        };
        out::json(&listed.iter().map(with_page).collect::<Vec<Value>>());
    }
    let file = match &args.output {
        Some(file) => file.clone(),
        None if args.json => return Ok(Exit::Done),
        None if listed.is_empty() => {
            out::note(&format!("no runs in {}; `bench-coord submit` starts one", store.describe()));
            return Ok(Exit::Done);
        }
        None if !app.home().is_dir() => {
            return Err(CliError::usage("there is no home here for the page of all runs: give --output FILE"));
        }
        None => app.home().join("runs").join("index.html"),
    };
    let folder = results::folder_of(&file);
    results::check_file(&file).map_err(|error| match args.output {
        Some(_) => error,
        None => {
            let said = format!("{error}: give --output FILE, or set BENCH_HOME to a folder that can be written");
            error.saying(said)
        }
    })?;
    let mut lines = Vec::new();
    for line in Line::of_groups(&listed, &sizes) {
        lines.push(line.indexed(app, store.as_ref(), folder).await?);
    }
    let made = out::times::rfc3339(jiff::Timestamp::now().as_millisecond());
    let rendered = html::index(&store.describe(), &made, &lines).map_err(CliError::infrastructure_of)?;
    // of a home nobody has named the files: a link there is replaced, and what it leads to stays
    let write = if args.output.is_some() { results::write_named } else { results::write_text };
    write(&file, &rendered)?;
    out::note(&format!("{} runs: {}", listed.len(), file.display()));
    Ok(Exit::Done)
}

/// A run's comparison with a baseline; what that made of the flips, where it is wanted.
async fn against(
    app: &App,
    store: &dyn Store,
    baseline: &str,
    run: &RunRow,
    wants_lines: bool,
) -> Result<(Comparison, HashMap<String, QuestionLine>), CliError> {
    let old = LoadedRun::named(app, store, baseline, Some(&run.spec)).await?;
    let new = LoadedRun::of_row(app, store, run.clone()).await?;
    let options = CompareOptions { flips: usize::MAX, seed: app.settings().stats_seed, ..CompareOptions::default() };
    let comparison = pair(store, &old, &new, &options, false).await?;
    let lines = match wants_lines {
        true => old.lines(store, &comparison.flips).await?,
        false => HashMap::new(),
    };
    Ok((comparison, lines))
}

/// Says on a screen what a comparison with a baseline comes to: only a page shows the rest of it. The baseline, which may be a folder,
/// is named as it was typed.
fn tell_baseline(args: &ReportArgs, comparison: Option<&Comparison>) {
    let (Some(comparison), Some(baseline)) = (comparison, &args.baseline) else { return };
    out::words(&format!("\n{}", bench_report::comparison::in_a_line(comparison)));
    let run = short_id(&comparison.b.id);
    out::note(&format!("`bench-coord compare {baseline} {run}` shows all of the comparison, --format html as a page"));
}

/// The file of a run's page in the home. Its own is the page that shows nothing else.
fn page_file(app: &App, args: &ReportArgs, run: &RunRow, comparison: Option<&Comparison>) -> PathBuf {
    let with = shown_besides(args);
    match comparison {
        Some(pair) => results::comparison_page(&app.home(), [&pair.a.id, &pair.b.id], &format!(".report{with}")),
        None if with.is_empty() => results::page_file(app, &run.run_id),
        None => results::run_folder(app, &run.run_id, None).join(format!("report{with}.html")),
    }
}

/// What a page shows besides the run, as the name of its file has it; a baseline is told by the place of the file.
fn shown_besides(args: &ReportArgs) -> String {
    let asked = [
        ("answer-key", args.answer_key.is_some()),
        ("label-fixes", args.label_fixes.is_some()),
        ("corrected", args.corrected.is_some()),
        ("traces", args.trace_url.is_some()),
    ];
    let asked: Vec<&str> = asked.into_iter().filter_map(|(name, is_asked)| is_asked.then_some(name)).collect();
    if asked.is_empty() { String::new() } else { format!("-with-{}", asked.join("-and-")) }
}

/// Why a group is not told as the flags ask, and these flags as they are typed for one of its runs.
fn of_single_runs(args: &ReportArgs) -> Option<(&'static str, String)> {
    let given = |flag: &str, value: &Option<String>| value.as_ref().map(|value| format!("{flag} {value}"));
    let answer_key = args.answer_key.as_ref().map(|file| file.display().to_string());
    let flags = [
        ("published results stand beside a single run", args.published.then(|| "--published".to_owned())),
        ("the score of a single run is corrected", given("--corrected", &args.corrected)),
        (
            "a report holds a single run against a baseline, `compare` and `gate` a group too",
            given("--baseline", &args.baseline),
        ),
        ("the answer key of a single run is corrected", given("--answer-key", &answer_key)),
        ("the answer key of a single run is corrected", given("--label-fixes", &args.label_fixes)),
        ("the page of a single run has links to traces", given("--trace-url", &args.trace_url)),
        ("a single run is told as CSV", args.raw_csv.then(|| "--raw-csv".to_owned())),
    ];
    let flags: Vec<(&str, String)> = flags.into_iter().filter_map(|(why, flag)| Some((why, flag?))).collect();
    let (why, _) = flags.first()?;
    Some((*why, flags.iter().map(|(_, flag)| flag.as_str()).collect::<Vec<_>>().join(" ")))
}

/// Prints or writes what the repeats of one run say together.
async fn of_group(app: &App, args: &ReportArgs, store: &dyn Store, group: &RunsOfGroup) -> CliResult {
    let first = || group.runs.first().map(|run| run.run_id.to_string()).unwrap_or_default();
    if let Some((why, flags)) = of_single_runs(args) {
        let typed = format!("bench-coord report {} {flags}", first());
        return Err(CliError::usage(format!("{why}: `{typed}`")));
    }
    let formats: Vec<&str> = args.format.iter().map(String::as_str).collect();
    let format = match formats.as_slice() {
        _ if args.json => "json",
        [] => results::TERMINAL,
        [one @ ("json" | "md" | "html" | results::TERMINAL)] => one,
        _ => {
            let run = first();
            return Err(CliError::usage(format!(
                "a group is told as terminal, json, md or html, one at a time; `bench-coord report {run}` has all formats of a run"
            )));
        }
    };
    // where its files lie, if it has some
    let own = results::run_folder(app, &group.id, None);
    if group.is_matrix() {
        let report = matrix_report(app, store, group).await?;
        match (&args.output_dir, format) {
            (Some(folder), _) => {
                ending::write_matrix(&report, folder)?;
                out::note(&format!("report: {}", folder.display()));
            }
            (None, "md") => out::file(out::Kind::Words, &bench_report::matrix::markdown(&report)),
            (None, "html") => {
                let page = bench_report::matrix::html(&report).map_err(CliError::infrastructure_of)?;
                results::show_page(app, &group.id, &page)?;
            }
            (None, format) => ending::print_matrix(&report, format == "json", args.full, &own),
        }
        return Ok(Exit::Done);
    }
    let (report, table) = repeats_report(app, store, group).await?;
    if let Some(folder) = &args.output_dir {
        ending::write_files(&report, &table, folder)?;
        out::note(&format!("report: {}", folder.display()));
        return Ok(Exit::Done);
    }
    match format {
        "json" => out::json(&report),
        "md" => out::file(out::Kind::Words, &bench_report::repeats::markdown(&report)),
        "html" => {
            let page = bench_report::repeats::html(&report).map_err(CliError::infrastructure_of)?;
            results::show_page(app, &group.id, &page)?;
        }
        _ => ending::print(&report, false, args.full, &own),
    }
    Ok(Exit::Done)
}

/// Prints a run among what was published on its dataset.
fn among_published(summary: &Summary, formats: &[&str]) -> CliResult {
    let all = results::published::among_others(summary);
    if all.results.is_empty() {
        return Err(CliError::usage(format!("nothing is known that was published on {}", all.dataset)));
    }
    match formats {
        ["json"] => out::json(&all),
        ["md"] => out::file(out::Kind::Words, &bench_report::published::markdown(&all)),
        [results::TERMINAL] => out::painted(&bench_report::published::terminal(&all, out::view())),
        _ => return Err(CliError::usage("--published is told as terminal, md or json, one at a time")),
    }
    Ok(Exit::Done)
}

/// Prints or writes the result of one run.
async fn one(app: &App, args: &ReportArgs, named: &str) -> CliResult {
    let formats: Vec<&str> = match args.format.as_slice() {
        _ if args.json => vec!["json"],
        [] => vec![results::TERMINAL],
        named => named.iter().map(String::as_str).collect(),
    };
    formats.iter().try_for_each(|format| results::check_format(format))?;
    if formats.len() > 1 && args.output_dir.is_none() {
        return Err(CliError::usage("more than one format needs a folder: give --output-dir DIR"));
    }
    let store = app.open_store().await?;
    if let Some(group) = RunsOfGroup::find(store.as_ref(), named).await? {
        return of_group(app, args, store.as_ref(), &group).await;
    }
    let run = find_run(store.as_ref(), named).await?;
    let mut summary = results::summary_of(app, store.as_ref(), &run).await?;
    if args.published {
        return among_published(&summary, &formats);
    }
    let mistakes = match (&args.answer_key, &args.label_fixes) {
        (Some(file), _) => Some(Source::File(file)),
        (None, Some(name)) => Some(Source::Fixes(name)),
        (None, None) => None,
    };
    if let Some(source) = mistakes {
        summary.answer_key = Some(answer_key::score(app, store.as_ref(), &run, source).await?);
    }
    if let Some(audit) = &args.corrected {
        summary.corrected = Some(corrected::score(store.as_ref(), &run, &summary, audit).await?);
    }
    // a corrected key or score is asked for because of what only the whole report shows
    let full = args.full || summary.answer_key.is_some() || summary.corrected.is_some();
    let shows_questions =
        formats.iter().any(|name| bench_report::format_named(name).is_some_and(Format::needs_questions));
    let (comparison, of_baseline) = match &args.baseline {
        None => (None, HashMap::new()),
        Some(baseline) => {
            let (comparison, lines) = against(app, store.as_ref(), baseline, &run, shows_questions).await?;
            (Some(comparison), lines)
        }
    };
    let (questions, mut beside) = match (&args.output_dir, shows_questions) {
        (Some(folder), _) => {
            results::check_writable(folder)?;
            results::write_files(store.as_ref(), &run, &summary, folder).await?
        }
        (None, true) => results::told_questions(store.as_ref(), &run).await?,
        (None, false) => (Vec::new(), HashMap::new()),
    };
    for (question_id, line) in of_baseline {
        beside.entry(question_id).or_default().other = Some(line);
    }
    let page = Page {
        beside: Some(&beside),
        comparison: comparison.as_ref(),
        trace_url: args.trace_url.as_deref(),
        ..Page::new(&summary, &questions)
    };
    show(app, args, &run, &page, (&formats, full))?;
    Ok(Exit::Done)
}

/// Prints the result of one run, or writes it into the folder that is named.
fn show(
    app: &App,
    args: &ReportArgs,
    run: &RunRow,
    page: &Page<'_>,
    (formats, full): (&[&str], bool),
) -> Result<(), CliError> {
    let render = |format: &str| match format {
        "csv" if args.raw_csv => csv::render_cells(page.summary, csv::Cells::Raw).map_err(CliError::infrastructure_of),
        _ => results::render(page, format),
    };
    let Some(folder) = &args.output_dir else {
        let format = formats[0];
        match format {
            results::TERMINAL => {
                let own = results::page_in(&results::run_folder(app, &run.run_id, None));
                out::painted(&results::on_screen(page.summary, full, own.as_deref()));
                tell_baseline(args, page.comparison);
            }
            "html" => {
                let file = page_file(app, args, run, page.comparison);
                results::print_page(app, (&file, results::OTHER_FOLDER), &render(format)?)?;
            }
            "csv" if args.raw_csv => out::raw(&render(format)?),
            _ => out::file(out::Kind::from_format(format), &render(format)?),
        }
        return Ok(());
    };
    for &format in formats {
        results::write_text(&folder.join(results::file_name(format)), &render(format)?)?;
    }
    if let Some(comparison) = page.comparison {
        let plot = bench_report::svg::forest(std::slice::from_ref(comparison));
        results::write_text(&folder.join("comparison.svg"), &plot)?;
    }
    out::note(&format!("report: {}", folder.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn a_page_that_shows_more_than_the_run_has_a_name_of_its_own() {
        let named = |flags: &str| {
            let words =
                ["bench-coord", "report", "r"].into_iter().chain(flags.split(' ').filter(|word| !word.is_empty()));
            let Verb::Report(args) = Cli::try_parse_from(words).expect("is read").verb else {
                panic!("it is a report")
            };
            shown_besides(&args)
        };
        for (flags, name) in [
            ("", ""),
            ("--format html --baseline before", ""),
            ("--trace-url http://t/{trace_id}", "-with-traces"),
            ("--answer-key key.json --corrected audit", "-with-answer-key-and-corrected"),
            ("--label-fixes locomo-audit", "-with-label-fixes"),
        ] {
            assert_eq!(named(flags), name, "{flags}");
        }
    }

    #[test]
    fn what_only_a_single_run_is_told_with_is_not_left_out_of_a_group() {
        let refused = |flags: &str| {
            let words =
                ["bench-coord", "report", "g"].into_iter().chain(flags.split(' ').filter(|word| !word.is_empty()));
            let Verb::Report(args) = Cli::try_parse_from(words).expect("is read").verb else {
                panic!("it is a report")
            };
            of_single_runs(&args).map(|(_, flags)| flags)
        };
        for flags in [
            "--published",
            "--corrected audit",
            "--baseline before",
            "--answer-key key.json",
            "--label-fixes locomo-audit",
            "--trace-url http://t/{trace_id}",
            "--raw-csv",
            "--baseline before --raw-csv",
        ] {
            assert_eq!(refused(flags).as_deref(), Some(flags));
        }
        for flags in ["", "--full", "--format md", "--json", "--output-dir out"] {
            assert_eq!(refused(flags), None, "{flags}");
        }
    }
}
