//! `datasets`: list, show, fetch, verify, generate.

use bench_datasets::{DATASETS, OpenOptions};
use comfy_table::{ContentArrangement, Table, presets};

use crate::{
    app::App,
    cli::{DatasetsVerb, SampleArgs},
    exit::{CliError, CliResult, Exit},
    out,
    planning::open_dataset,
};

/// Runs the verb.
pub async fn run(app: &App, verb: &DatasetsVerb) -> CliResult {
    match verb {
        DatasetsVerb::List { json } => list(*json),
        DatasetsVerb::Show { name, dataset_path, allow_modified_dataset } => {
            let args = SampleArgs {
                dataset_path: dataset_path.clone(),
                allow_modified_dataset: *allow_modified_dataset,
                ..SampleArgs::default()
            };
            show(app, name, &args).await
        }
        DatasetsVerb::Fetch { name } => {
            let dataset = open_dataset(app, name, &SampleArgs::default(), app.dataset_settings(name)).await?;
            out::note(&format!("{name} is here, sha256 {}", dataset.sha256()));
            Ok(Exit::Done)
        }
        DatasetsVerb::Verify { name, dataset_path } => {
            let args = SampleArgs { dataset_path: dataset_path.clone(), ..SampleArgs::default() };
            let dataset = open_dataset(app, name, &args, app.dataset_settings(name)).await?;
            out::result(&format!("{name}: sha256 {} is the published one", dataset.sha256()));
            Ok(Exit::Done)
        }
        DatasetsVerb::Generate { name, output } => {
            let (name, output) = (name.clone(), output.clone());
            let options = OpenOptions { settings: app.dataset_settings(&name), ..OpenOptions::default() };
            let generated = tokio::task::spawn_blocking(move || bench_datasets::generate(&name, &options, &output).map(|()| output)).await;
            let path = generated.map_err(|e| CliError::infrastructure(format!("generating stopped: {e}")))??;
            out::note(&format!("written: {}", path.display()));
            Ok(Exit::Done)
        }
    }
}

fn list(json: bool) -> CliResult {
    if json {
        out::json(&DATASETS.iter().map(|d| d.manifest).collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["dataset", "questions", "banks", "sessions", "licence", "what it is"]);
    for manifest in DATASETS.iter().map(|d| d.manifest) {
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
    out::result(&table.to_string());
    Ok(Exit::Done)
}

async fn show(app: &App, name: &str, args: &SampleArgs) -> CliResult {
    let dataset = open_dataset(app, name, args, app.dataset_settings(name)).await?;
    let manifest = dataset.manifest();
    let mut lines = vec![
        format!("{} {}: {}", manifest.name, manifest.version, manifest.description),
        format!("  licence {}, source {}", manifest.licence, manifest.source),
        format!("  sha256 {}{}", dataset.sha256(), if dataset.is_modified() { " (not the published file)" } else { "" }),
        format!("  {} banks, {} sessions, {} turns", manifest.banks, manifest.sessions, manifest.turns),
    ];
    lines.extend(manifest.categories.iter().map(|(category, n)| format!("  {n:>6} {category}")));
    for (key, value) in dataset.settings() {
        lines.push(format!("  setting {key} = {value}"));
    }
    if !dataset.notes().is_empty() {
        lines.push("  notes:".to_owned());
        lines.extend(dataset.notes().iter().map(|note| format!("    {note}")));
    }
    out::result(&lines.join("\n"));
    Ok(Exit::Done)
}
