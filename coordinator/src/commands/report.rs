//! `report RUN`: the result again, from the store.

use crate::{
    app::App,
    cli::ReportArgs,
    exit::{CliError, CliResult, Exit},
    out, results,
    runs::find_run,
};

/// Runs the verb.
pub(super) async fn run(app: &App, args: &ReportArgs) -> CliResult {
    let formats: Vec<&str> =
        if args.format.is_empty() { vec![results::TERMINAL] } else { args.format.iter().map(String::as_str).collect() };
    formats.iter().try_for_each(|format| results::check_format(format))?;
    if formats.len() > 1 && args.output_dir.is_none() {
        return Err(CliError::usage("more than one format needs a folder: give --output-dir DIR"));
    }
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    let summary = results::summary_of(app, store.as_ref(), &run).await?;
    match &args.output_dir {
        None => out::result(&results::render(&summary, formats[0])?),
        Some(folder) => {
            results::check_writable(folder)?;
            results::write_files(store.as_ref(), &run, &summary, folder).await?;
            for format in formats {
                let rendered = results::render(&summary, format)?;
                results::write_atomically(&folder.join(results::file_name(format)), |file| {
                    std::io::Write::write_all(file, rendered.as_bytes())
                })?;
            }
            out::note(&format!("report: {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}
