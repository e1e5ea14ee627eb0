//! The dataset of a run, opened, and the sample that is taken of it.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::{Arc, Mutex},
};

use bench_datasets::{Dataset, OpenOptions};
use bench_plan::{Preset, Sample, SampleRequest, Sampler};
use bench_proto::{
    nearest::{did_you_mean, nearest},
    profile::PresetSizes,
    spec::DatasetSpec,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::mirror;
use crate::{app::App, cli::SampleArgs, exit::CliError};

/// Opens a dataset, with a progress bar when it has to be downloaded.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn open_dataset(
    app: &App,
    name: &str,
    args: &SampleArgs,
    settings: BTreeMap<String, Value>,
) -> Result<Arc<dyn Dataset>, CliError> {
    let options = OpenOptions {
        path: args.dataset_path.clone(),
        datasets_dir: app.datasets_dir(),
        cache_dir: app.home().join("datasets"),
        allow_modified: args.allow_modified_dataset,
        allow_download: app.settings().datasets_url.is_none(),
        settings,
    };
    let bar: Mutex<Option<ProgressBar>> = Mutex::new(None);
    let brought = mirror::bring(app, name, &options, &|so_far, total| show_download(&bar, so_far, total)).await;
    finish(bar);
    brought?;
    let name = name.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let bar: Mutex<Option<ProgressBar>> = Mutex::new(None);
        let on_progress = |so_far: u64, total: Option<u64>| show_download(&bar, so_far, total);
        let opened = bench_datasets::open(&name, &options, &on_progress);
        finish(bar);
        opened
    });
    let dataset = opened
        .await
        .map_err(|e| CliError::infrastructure(format!("reading the dataset stopped: {e}")).because(e))??;
    Ok(Arc::from(dataset))
}

fn finish(bar: Mutex<Option<ProgressBar>>) {
    if let Some(bar) = bar.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        bar.finish_and_clear();
    }
}

fn show_download(bar: &Mutex<Option<ProgressBar>>, so_far: u64, total: Option<u64>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let mut bar = bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let bar = bar.get_or_insert_with(|| {
        let bar = ProgressBar::new(total.unwrap_or(0));
        if let Ok(style) = ProgressStyle::with_template("downloading [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    });
    bar.set_position(so_far);
}

/// Turns settings and flags into a sample request.
///
/// # Errors
/// Exit 2 for unknown presets and samplers.
pub(crate) fn sample_request(app: &App, args: &SampleArgs) -> Result<SampleRequest, CliError> {
    let run = &app.settings().run;
    // a count chooses the questions by itself: it takes the place of the preset unless that was typed too
    let counts = [run.per_bank, run.sample, run.sample_total, run.limit];
    let counted = counts.iter().any(Option::is_some) || !args.question_id.is_empty();
    let preset = (args.preset.is_some() || !counted).then_some(run.preset.as_str());
    let known = Preset::ALL.map(Preset::name);
    let preset =
        preset.map(|name| Preset::from_name(name).ok_or_else(|| unknown("preset", name, &known))).transpose()?;
    let known = Sampler::ALL.map(Sampler::name);
    Ok(SampleRequest {
        preset,
        sizes: PresetSizes::default(),
        sampler: Sampler::from_name(&run.sampler).ok_or_else(|| unknown("sampler", &run.sampler, &known))?,
        seed: run.seed.clone(),
        limit: run.limit,
        sample_per_category: run.sample,
        sample_total: run.sample_total,
        per_bank: run.per_bank,
        max_banks: run.max_banks,
        max_sessions: run.max_sessions,
        categories: run.category.clone(),
        exclude_categories: run.exclude_category.clone(),
        question_ids: args.question_id.clone(),
    })
}

/// Sizes of the presets for a dataset.
///
/// # Errors
/// Exit 2 for unknown names.
pub(crate) fn preset_sizes(dataset: &str) -> Result<PresetSizes, CliError> {
    Ok(bench_datasets::find(dataset)?.profile()?.presets)
}

/// An unknown name with its nearest neighbour.
fn unknown(what: &str, name: &str, known: &[&str]) -> CliError {
    let hint = did_you_mean(&nearest(name, known.iter().copied())).map(|hint| format!(", {hint}")).unwrap_or_default();
    CliError::usage(format!("unknown {what} '{name}'{hint} (known: {})", known.join(", ")))
}

/// Samples a dataset.
///
/// # Errors
/// Exit 2 when the request does not fit the dataset.
pub(crate) async fn take_sample(dataset: &Arc<dyn Dataset>, request: SampleRequest) -> Result<Sample, CliError> {
    let dataset = Arc::clone(dataset);
    let sampled = tokio::task::spawn_blocking(move || {
        let mut sampling = bench_plan::Sampling::new(request).map_err(CliError::usage_of)?;
        for bank in 0..dataset.bank_count() {
            sampling.push(&dataset.outline(bank)?).map_err(CliError::usage_of)?;
        }
        sampling.finish().map_err(CliError::usage_of)
    });
    sampled.await.map_err(|e| CliError::infrastructure(format!("sampling stopped: {e}")).because(e))?
}

/// The dataset's part of a spec.
///
/// # Errors
/// Exit 2 when its profile is broken.
pub(crate) fn dataset_spec(dataset: &dyn Dataset, sample: &Sample) -> Result<DatasetSpec, CliError> {
    let manifest = dataset.manifest();
    Ok(DatasetSpec {
        name: manifest.name.to_owned(),
        version: manifest.version.to_owned(),
        sha256: dataset.sha256().to_owned(),
        modified: dataset.is_modified(),
        loader: manifest.loader_version,
        settings: dataset.settings(),
        abstention_phrases: manifest.abstention_phrases.iter().map(|p| (*p).to_owned()).collect(),
        population: sample.population.by_category.clone(),
        banks: sample.population.banks,
        sessions: sample.population.entries,
        profile: bench_datasets::find(manifest.name)?.profile()?,
        path: None,
    })
}
