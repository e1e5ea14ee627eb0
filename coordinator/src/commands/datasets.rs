//! `datasets`: list, show, fetch, verify, generate.

use std::path::{Path, PathBuf};

use bench_datasets::{
    DatasetError, DatasetSetting, Details, Here, Listed, ListedQuestion, ListedQuestions, OpenOptions, WantedQuestions,
};
use bench_proto::text::one_line;

use crate::{
    app::App,
    cli::{Cli, DatasetsVerb, QuestionsArgs},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::counted,
        tables::{render, table},
    },
    planning::{check_is_local, mirror, places, tell_licence},
};

/// Prints what is known of datasets; `fetch` and `generate` write files. Exit 2 for a file that is not the published one.
pub(super) async fn run(app: &App, verb: &DatasetsVerb) -> CliResult {
    match verb {
        DatasetsVerb::List { json } => list(app, *json).await,
        DatasetsVerb::Show { name, dataset_path, questions, json } => {
            show(app, name, dataset_path.as_deref(), questions, *json).await
        }
        DatasetsVerb::Fetch { name } => {
            if let Ok(known) = bench_datasets::find(name) {
                tell_licence(app, &known.manifest);
            }
            let paths = if app.settings().datasets_url.is_some() {
                mirror::bring(app, name, &options(app, name, None), &|_, _| ()).await?;
                let verified =
                    blocking(app, name, None, |name, options| bench_datasets::verify(name, &options)).await?;
                verified.into_iter().map(|file| file.path).collect()
            } else {
                blocking(app, name, None, |name, options| bench_datasets::fetch(name, &options, &|_, _| ())).await?
            };
            for path in paths {
                out::note(&format!("{name} is here: {}", path.display()));
            }
            Ok(Exit::Done)
        }
        DatasetsVerb::Verify { name, dataset_path } => {
            check_is_local(dataset_path.as_deref())?;
            let verified =
                blocking(app, name, dataset_path.clone(), |name, options| bench_datasets::verify(name, &options))
                    .await?;
            for found in verified {
                if !found.ok {
                    return Err(CliError::usage(format!(
                        "{} is not the published {name}: sha256 is {} ({} bytes), expected {} ({} bytes)",
                        found.path.display(),
                        found.sha256,
                        found.bytes,
                        found.expected_sha256.as_deref().unwrap_or("not known"),
                        found.expected_bytes
                    )));
                }
                let what = if found.expected_sha256.is_some() {
                    format!("is the published {name}")
                } else {
                    format!("is taken for {name}, whose checksum is not known")
                };
                out::result(&format!("{} {what}: sha256 {}", found.path.display(), found.sha256));
            }
            Ok(Exit::Done)
        }
        DatasetsVerb::Generate { name, output, format, force } => {
            if output.symlink_metadata().is_ok() && !force {
                return Err(CliError::usage(format!(
                    "{} is there already: name another file, or --force to write over it",
                    output.display()
                )));
            }
            let (output, form) = (output.clone(), (*format).into());
            let written =
                blocking(app, name, None, move |name, options| bench_datasets::generate(name, &options, &output, form))
                    .await?;
            out::note(&format!(
                "{}: {}, {} bytes, sha256 {}",
                written.path.display(),
                counted(u64::try_from(written.banks).unwrap_or(u64::MAX), "bank"),
                written.bytes,
                written.sha256
            ));
            Ok(Exit::Done)
        }
    }
}

/// Prints what is known of a dataset, or its questions.
async fn show(app: &App, name: &str, path: Option<&Path>, asked: &QuestionsArgs, json: bool) -> CliResult {
    check_given(path)?;
    let path = path.map(Path::to_owned);
    if !asked.questions {
        let details = blocking(app, name, path, |name, options| bench_datasets::show(name, &options)).await?;
        match json {
            true => out::json(&details),
            false => out::words(&text_of(&details)),
        }
        return Ok(Exit::Done);
    }
    let QuestionsArgs { category, most, skip, gold, .. } = asked.clone();
    let wanted = WantedQuestions { category, skip, most, with_gold: gold };
    let listed =
        blocking(app, name, path, move |name, options| bench_datasets::questions(name, &options, &wanted)).await?;
    match json {
        true => out::json(&listed),
        false => show_questions(&listed, skip),
    }
    Ok(Exit::Done)
}

/// A path that was given has to be there: without it, what is known of the dataset would be shown as if it had been read.
fn check_given(path: Option<&Path>) -> Result<(), CliError> {
    check_is_local(path)?;
    match path.map(|path| (path, path.metadata())) {
        Some((path, Err(error))) => {
            Err(CliError::usage(format!("--dataset-path {}: {error}", path.display())).because(error))
        }
        Some((path, Ok(found))) if !(found.is_file() || found.is_dir()) => {
            Err(CliError::usage(format!("--dataset-path {}: is neither a file nor a folder", path.display())))
        }
        _ => Ok(()),
    }
}

fn options(app: &App, name: &str, path: Option<PathBuf>) -> OpenOptions {
    OpenOptions { path, allow_download: true, settings: app.dataset_settings(name), ..places(app) }
}

/// Runs file work off the threads that wait.
async fn blocking<T: Send + 'static>(
    app: &App,
    name: &str,
    path: Option<PathBuf>,
    work: impl FnOnce(&str, OpenOptions) -> Result<T, DatasetError> + Send + 'static,
) -> Result<T, CliError> {
    let options = options(app, name, path);
    let name = name.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&name, options)).await;
    Ok(done.map_err(|e| CliError::internal_fault("working on the files of a dataset", e))??)
}

/// Names of the datasets whose files are on this machine: what `--dataset all` means. Generated ones are of any size, and named.
///
/// # Errors
/// Exit 2 where there is none, or the settings cannot be read.
pub(super) async fn here(cli: &Cli) -> Result<Vec<String>, CliError> {
    let app = App::load(cli)?;
    let listed = blocking(&app, "", None, |_, options| Ok(bench_datasets::list(&options))).await?;
    let is_here = |of: &Listed| matches!(of.here, Here::Here | Here::Own) && of.problem.is_none();
    let names: Vec<String> = listed.into_iter().filter(is_here).map(|of| of.manifest.name).collect();
    app.close().await;
    if names.is_empty() {
        return Err(CliError::usage(
            "--dataset all: no dataset is on this machine; `bench-coord datasets list` shows all, `datasets fetch NAME` brings one",
        ));
    }
    Ok(names)
}

async fn list(app: &App, json: bool) -> CliResult {
    let listed = blocking(app, "", None, |_, options| Ok(bench_datasets::list(&options))).await?;
    if json {
        out::json(&listed);
        return Ok(Exit::Done);
    }
    let mut table = table(["dataset", "questions", "banks", "sessions", "is", "size", "licence", "what it is"])
        .sparing(&["size", "sessions", "banks", "licence"]);
    for Listed { manifest, here, bytes, own_name, problem, .. } in listed {
        let questions: u64 = manifest.categories.iter().map(|(_, n)| n).sum();
        let counted = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let in_reports = own_name.map(|name| format!(" ({name} in reports)")).unwrap_or_default();
        table.add_row([
            format!("{}{in_reports}", manifest.name),
            counted(questions),
            counted(manifest.banks),
            counted(manifest.sessions.unwrap_or(0)),
            here.word().to_owned(),
            bytes.map_or_else(String::new, out::amounts::bytes),
            manifest.licence,
            problem.unwrap_or(manifest.description),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}

fn show_questions(listed: &ListedQuestions, skipped: usize) {
    let has_gold = listed.questions.iter().any(|question| question.gold.is_some());
    let mut rows = if has_gold {
        table(["question id", "category", "question", "expected"])
    } else {
        table(["question id", "category", "question"])
    };
    for ListedQuestion { question_id, category, question, gold, .. } in &listed.questions {
        let [id, category, question] = [question_id, category, question].map(String::clone);
        match gold {
            Some(gold) => rows.add_row([id, category, question, gold.clone()]),
            None => rows.add_row([id, category, question]),
        }
    }
    out::result(&render(&rows));
    let last = skipped + listed.questions.len();
    if last < listed.total {
        out::note(&format!("{last} of {}; --skip {last} shows the next ones", listed.total));
    }
}

fn text_of(details: &Details) -> String {
    let manifest = &details.manifest;
    let mut lines = vec![
        format!("{} {}: {}", manifest.name, manifest.version, manifest.description),
        format!("  licence {}, source {}", manifest.licence, manifest.source),
    ];
    if let Ok(known) = bench_datasets::find(&manifest.name) {
        let spread = if manifest.may_be_handed_on() { "" } else { "; its texts stay out of archives (archive.texts)" };
        lines.push(format!("  methodology version {}{spread}", known.profile.methodology));
    }
    lines.extend(manifest.settings.iter().map(|DatasetSetting { name, default, takes, words }| {
        let value = details.content.as_ref().and_then(|content| content.settings.get(name)).unwrap_or(default);
        format!("  setting {}.{name} = {value}: {words} ({takes})", manifest.section)
    }));
    lines.extend(details.files.iter().map(|file| format!("  file {}", file.display())));
    if details.content.is_none() {
        let name = &manifest.name;
        lines.push(format!("  not on this machine yet: submit or `bench-coord datasets fetch {name}` downloads it"));
    }
    if let Some(content) = &details.content {
        lines.push(format!(
            "  sha256 {}{}",
            content.sha256,
            match (content.modified, content.checksum_unknown) {
                (true, _) => " (not the published file)",
                (false, true) => " (whether it is the published file is not known)",
                (false, false) => "",
            }
        ));
        lines.push(format!(
            "  {}, {}, {}",
            counted(content.banks, "bank"),
            counted(content.entries, "session"),
            counted(content.turns, "turn")
        ));
        lines.push(format!("  {:>6} questions", content.categories.values().sum::<u64>()));
        lines.extend(content.categories.iter().map(|(category, n)| format!("  {n:>6} {category}")));
        lines.extend(content.notes.iter().map(|note| format!("  note: {note}")));
    }
    // what a file says of itself is no line of its own
    lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
}
