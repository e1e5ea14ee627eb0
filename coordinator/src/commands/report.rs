//! `report RUN`: the result again, from the store.

use bench_aggregate::compare::CompareOptions;
use bench_report::{Format, csv, html::Page};

use crate::{
    app::App,
    cli::ReportArgs,
    comparison::{inputs::LoadedRun, pair},
    exit::{CliError, CliResult, Exit},
    out,
    results::{
        self,
        answer_key::{self, Source},
    },
    standing::find_run,
};

/// Prints the result of a run in one format, or writes several to a folder; the run is only read.
pub(super) async fn run(app: &App, args: &ReportArgs) -> CliResult {
    let formats: Vec<&str> =
        if args.format.is_empty() { vec![results::TERMINAL] } else { args.format.iter().map(String::as_str).collect() };
    formats.iter().try_for_each(|format| results::check_format(format))?;
    if formats.len() > 1 && args.output_dir.is_none() {
        return Err(CliError::usage("more than one format needs a folder: give --output-dir DIR"));
    }
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    let mut summary = results::summary_of(app, store.as_ref(), &run).await?;
    let mistakes = match (&args.answer_key, &args.label_fixes) {
        (Some(file), _) => Some(Source::File(file)),
        (None, Some(name)) => Some(Source::Fixes(name)),
        (None, None) => None,
    };
    if let Some(source) = mistakes {
        summary.answer_key = Some(answer_key::score(app, store.as_ref(), &run, source).await?);
    }
    // a corrected key is asked for because of what only the whole report shows
    let full = args.full || summary.answer_key.is_some();
    let comparison = match &args.baseline {
        None => None,
        Some(baseline) => {
            let old = LoadedRun::named(app, store.as_ref(), baseline, Some(&run.spec)).await?;
            let new = LoadedRun::of_row(app, store.as_ref(), run.clone()).await?;
            let options =
                CompareOptions { flips: usize::MAX, seed: app.settings().stats_seed, ..CompareOptions::default() };
            Some(pair(store.as_ref(), &old, &new, &options, false).await?)
        }
    };
    let shows_questions =
        formats.iter().any(|name| bench_report::format_named(name).is_some_and(Format::needs_questions));
    let questions = if shows_questions { results::first_questions(store.as_ref(), &run).await? } else { Vec::new() };
    let page = Page {
        summary: &summary,
        questions: &questions,
        comparison: comparison.as_ref(),
        trace_url: args.trace_url.as_deref(),
    };
    let render = |page: &Page<'_>, format: &str| match format {
        "csv" if args.raw_csv => csv::render_cells(page.summary, csv::Cells::Raw).map_err(CliError::infrastructure_of),
        _ => results::render(page, format),
    };
    match &args.output_dir {
        None if formats[0] == results::TERMINAL => out::painted(&results::on_screen(&summary, full)),
        None => out::file(&render(&page, formats[0])?),
        Some(folder) => {
            results::check_writable(folder)?;
            results::write_files(store.as_ref(), &run, &summary, folder).await?;
            for format in formats {
                let rendered = render(&page, format)?;
                results::write_atomically(&folder.join(results::file_name(format)), |file| {
                    std::io::Write::write_all(file, rendered.as_bytes())
                })?;
            }
            if let Some(comparison) = &comparison {
                let plot = bench_report::svg::forest(std::slice::from_ref(comparison));
                results::write_atomically(&folder.join("comparison.svg"), |file| {
                    std::io::Write::write_all(file, plot.as_bytes())
                })?;
            }
            out::note(&format!("report: {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}
