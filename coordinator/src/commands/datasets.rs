//! `datasets`: list, show, fetch, verify, generate.

use std::path::PathBuf;

use bench_datasets::{DatasetError, Details, OpenOptions};

use crate::{
    app::App,
    cli::DatasetsVerb,
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        tables::{render, table},
    },
    planning::mirror,
};

/// Prints what is known of datasets; `fetch` and `generate` write files. Exit 2 for a file that is not the published one.
pub(super) async fn run(app: &App, verb: &DatasetsVerb) -> CliResult {
    match verb {
        DatasetsVerb::List { json } => list(*json),
        DatasetsVerb::Show { name, dataset_path } => {
            let details =
                blocking(app, name, dataset_path.clone(), |name, options| bench_datasets::show(name, &options)).await?;
            out::result(&text_of(&details));
            Ok(Exit::Done)
        }
        DatasetsVerb::Fetch { name } => {
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
                        found.expected_sha256,
                        found.expected_bytes
                    )));
                }
                out::result(&format!("{} is the published {name}, sha256 {}", found.path.display(), found.sha256));
            }
            Ok(Exit::Done)
        }
        DatasetsVerb::Generate { name, output } => {
            let output = output.clone();
            let written =
                blocking(app, name, None, move |name, options| bench_datasets::generate(name, &options, &output))
                    .await?;
            out::note(&format!(
                "{}: {} banks, {} bytes, sha256 {}",
                written.path.display(),
                written.banks,
                written.bytes,
                written.sha256
            ));
            Ok(Exit::Done)
        }
    }
}

fn options(app: &App, name: &str, path: Option<PathBuf>) -> OpenOptions {
    OpenOptions {
        path,
        datasets_dir: app.datasets_dir(),
        cache_dir: app.home().join("datasets"),
        allow_modified: false,
        allow_download: true,
        settings: app.dataset_settings(name),
    }
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
    Ok(done.map_err(|e| CliError::infrastructure(format!("the dataset stopped: {e}")).because(e))??)
}

fn list(json: bool) -> CliResult {
    if json {
        out::json(&bench_datasets::list().collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    let mut table = table(["dataset", "questions", "banks", "sessions", "licence", "what it is"]);
    for manifest in bench_datasets::list() {
        let questions: u64 = manifest.categories.iter().map(|(_, n)| n).sum();
        table.add_row([
            manifest.name.to_owned(),
            questions.to_string(),
            manifest.banks.to_string(),
            manifest.sessions.to_string(),
            manifest.licence.to_owned(),
            manifest.description.to_owned(),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}

fn text_of(details: &Details) -> String {
    let manifest = details.manifest;
    let mut lines = vec![
        format!("{} {}: {}", manifest.name, manifest.version, manifest.description),
        format!("  licence {}, source {}", manifest.licence, manifest.source),
    ];
    lines.extend(details.files.iter().map(|file| format!("  file {}", file.display())));
    if details.content.is_none() {
        lines.push("  not on this machine yet: submit or `bench-coord datasets fetch` downloads it".to_owned());
    }
    if let Some(content) = &details.content {
        lines.push(format!(
            "  sha256 {}{}",
            content.sha256,
            if content.modified { " (not the published file)" } else { "" }
        ));
        lines.push(format!("  {} banks, {} sessions, {} turns", content.banks, content.entries, content.turns));
        lines.push(format!("  {:>6} questions", content.categories.values().sum::<u64>()));
        lines.extend(content.categories.iter().map(|(category, n)| format!("  {n:>6} {category}")));
        lines.extend(content.settings.iter().map(|(key, value)| format!("  setting {key} = {value}")));
        lines.extend(content.notes.iter().map(|note| format!("  note: {note}")));
    }
    lines.join("\n")
}
