//! `export RUN`: its questions for other tools, or its result for an MLflow server or Weights & Biases.

use std::io::Write;

use bench_proto::{summary::Summary, text};
use bench_report::{
    QuestionsWriter,
    csv::Cells,
    every_eval_ever,
    export::{CsvQuestions, MoreColumns},
    hypotheses::HypothesesWriter,
    wandb::{MOST_ROWS, Questions},
};
use bench_store::{RunRow, RunState, Store};

use crate::{
    app::App,
    cli::{ArchivedTexts, ExportArgs},
    exit::{CliError, CliResult, Exit},
    out::{self, data::Data},
    results::{
        self,
        licence::kept_back,
        mlflow::Server,
        wandb::{Logged, Logger},
    },
    standing::{find_run, group::find_runs},
};

/// Formats of this build.
const FORMATS: &[&str] = if cfg!(feature = "parquet") {
    &["jsonl", "csv", "hypotheses", RECORD, "parquet"]
} else {
    &["jsonl", "csv", "hypotheses", RECORD]
};
/// The result as a whole, in the shared schema of evaluation results.
const RECORD: &str = "every-eval-ever";

/// Bytes that are written at once.
const BUFFER: usize = 256 << 10;

/// Writes the questions of a run to standard output or a folder; exit 2 for formats that this build does not have.
pub(super) async fn run(app: &App, args: &ExportArgs) -> CliResult {
    for format in &args.format {
        if !FORMATS.contains(&format.as_str()) {
            return Err(CliError::usage(format!("unknown format '{format}' (known: {})", FORMATS.join(", "))));
        }
    }
    let text_alone = matches!(args.format.as_slice(), [one] if one != "parquet");
    if args.output_dir.is_none() && !text_alone {
        return Err(CliError::usage("parquet, or more than one format, needs a folder: give --output-dir DIR"));
    }
    // whether the server can be asked at all is said before anything is read
    let server = args.mlflow.as_deref().map(|url| Server::at(app, url)).transpose()?;
    let logger = args.wandb.as_deref().map(|project| Logger::for_project(app, project)).transpose()?;
    let store = app.open_store().await?;
    if let Some(logger) = logger {
        return to_wandb(app, store.as_ref(), &logger, args).await;
    }
    let run = find_run(store.as_ref(), &args.run).await?;
    let summary = results::summary_of(app, store.as_ref(), &run).await?;
    // lines of questions say nothing of the run
    if !summary.labels.is_empty() {
        out::note(&format!("run {}: {}", run.run_id, summary.labels.join("; ")));
    }
    if let Some(server) = server {
        return to_mlflow(&server, &run, &summary, args.mlflow_experiment.as_deref()).await;
    }
    let more = MoreColumns::from_summary(&summary);
    let cells = if args.raw_csv { Cells::Raw } else { Cells::Harmless };
    match &args.output_dir {
        None if args.format[0] == RECORD => out::file(out::Kind::Json, &record_of(&summary)?),
        None => {
            // page by page: between two of them the store is not held, however slow the reader is
            let mut reader = match args.format[0].as_str() {
                "csv" if args.raw_csv => Data::raw(),
                "csv" => Data::cells(),
                _ => Data::json(),
            };
            let written = write(store.as_ref(), &run, (&args.format[0], cells), &more, &mut reader).await;
            match written.and_then(|()| reader.flush().map_err(broken)) {
                // a reader that went away wants no more: the program ends as for every result that nobody got
                Err(_) if reader.has_left() => out::lose(&std::io::ErrorKind::BrokenPipe.into()),
                written => written?,
            }
        }
        Some(folder) => {
            results::check_writable(folder)?;
            for format in &args.format {
                // its owner's alone, as temporary files are
                let mut file = tempfile::NamedTempFile::new_in(folder).map_err(broken)?;
                match format.as_str() {
                    RECORD => file.write_all(record_of(&summary)?.as_bytes()).map_err(broken)?,
                    _ => write(store.as_ref(), &run, (format, cells), &more, file.as_file_mut()).await?,
                }
                file.persist(folder.join(file_name(format))).map_err(|e| broken(e.error))?;
            }
            out::note(&format!("questions: {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}

/// Refuses a run without a result; `to` is where it was to be brought.
fn check_finished(run: &RunRow, to: &str) -> Result<(), CliError> {
    if run.state == RunState::Finished {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "run {0} is not finished: only results are brought to {to}; `bench-coord resume {0}` goes on with it",
        run.run_id
    )))
}

/// Logs the result of a run, or of each run of a group, and says where it is.
async fn to_wandb(app: &App, store: &dyn Store, logger: &Logger, args: &ExportArgs) -> CliResult {
    let runs = find_runs(store, &args.run).await?;
    runs.iter().try_for_each(|run| check_finished(run, "Weights & Biases"))?;
    let asked = args.texts.unwrap_or(ArchivedTexts::Never);
    for run in &runs {
        let summary = results::summary_of(app, store, run).await?;
        let kept_back = kept_back(asked, &run.spec.dataset);
        if let Some(why) = kept_back.as_ref().filter(|_| asked != ArchivedTexts::Never) {
            out::note(&format!("texts of {} stay here: {why}", run.run_id));
        }
        let mut questions = Questions::new(MoreColumns::from_summary(&summary), kept_back.is_none());
        let mut left_out = false;
        results::each_question(store, run, |line| {
            left_out = !questions.add(line);
            Ok(!left_out)
        })
        .await?;
        if left_out {
            out::note(&format!("of {} {MOST_ROWS} questions go along: its tables show no more", run.run_id));
        }
        match logger.log(run, &summary, &questions).await? {
            Logged::Online(page) => out::result(&page),
            Logged::Offline(folder) => {
                out::note(&format!("offline: `wandb sync {}` brings it to a server", folder.display()));
                out::result(&folder.display().to_string());
            }
        }
    }
    Ok(Exit::Done)
}

/// Brings the result to a tracking server, and says where it is there.
async fn to_mlflow(server: &Server, run: &RunRow, summary: &Summary, experiment: Option<&str>) -> CliResult {
    check_finished(run, "MLflow")?;
    let named = format!("bench-coord/{}", summary.dataset.name);
    let kept = server.keep(experiment.unwrap_or(&named), &bench_report::mlflow::record(summary)).await?;
    if kept.was_there {
        out::note(&format!("run {} was there already, with the same result", run.run_id));
    }
    out::result(&server.page(&kept));
    Ok(Exit::Done)
}

/// Name of a format's file.
fn file_name(format: &str) -> String {
    match format {
        "hypotheses" => "hypotheses.jsonl".to_owned(),
        RECORD => format!("{RECORD}.json"),
        format => format!("questions.{format}"),
    }
}

/// The record of a result as JSON text.
fn record_of(summary: &Summary) -> Result<String, CliError> {
    let made_at = jiff::Timestamp::now().as_second();
    let around = every_eval_ever::Around { made_at, version: env!("CARGO_PKG_VERSION") };
    let record = every_eval_ever::record(summary, around);
    let text = serde_json::to_string_pretty(&record).map_err(CliError::infrastructure_of)?;
    // characters that would drive a terminal are escaped
    Ok(format!("{}\n", text::json(&text)))
}

fn broken(error: std::io::Error) -> CliError {
    CliError::infrastructure(format!("the export cannot be written: {error}")).because(error)
}

async fn write(
    store: &dyn Store,
    run: &RunRow,
    (format, cells): (&str, Cells),
    more: &MoreColumns,
    out: &mut (impl Write + Send),
) -> Result<(), CliError> {
    let out = std::io::BufWriter::with_capacity(BUFFER, out);
    match format {
        "csv" => {
            let mut csv = CsvQuestions::new(out, more.clone(), cells).map_err(broken)?;
            results::each_question(store, run, |line| csv.write(&line).map(|()| true).map_err(broken)).await?;
            csv.finish().map_err(broken)
        }
        "hypotheses" => {
            let mut lines = HypothesesWriter::new(out);
            results::each_question(store, run, |line| lines.write(&line).map(|()| true).map_err(broken)).await?;
            let left_out = lines.finish().map_err(broken)?;
            if left_out > 0 {
                out::note(&format!(
                    "{left_out} questions have no answer and no line: they drop out of the authors' means"
                ));
            }
            Ok(())
        }
        #[cfg(feature = "parquet")]
        "parquet" => {
            let parquet = bench_report::columns::ParquetQuestions::new(out, more.clone());
            let mut parquet = parquet.map_err(broken)?;
            results::each_question(store, run, |line| parquet.write(&line).map(|()| true).map_err(broken)).await?;
            parquet.finish().map_err(broken)
        }
        _ => {
            let mut lines = QuestionsWriter::new(out);
            results::each_question(store, run, |line| lines.write(&line).map(|()| true).map_err(broken)).await?;
            lines.finish().map(drop).map_err(broken)
        }
    }
}
