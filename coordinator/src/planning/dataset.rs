//! The dataset of a run, opened, and the sample that is taken of it.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    path::Path,
    sync::{Arc, Mutex},
};

use bench_datasets::{About, Annotated, Dataset, LabelFixes, Manifest, OpenOptions};
use bench_plan::{Preset, Rounds, Sample, SampleRequest, Sampler};
use bench_proto::{
    label_fixes::LabelFixesSpec,
    nearest::{did_you_mean, nearest},
    profile::PresetSizes,
    redact,
    scenario::Scenario,
    spec::{DatasetSpec, RunSpec},
};
use bench_settings::{Origin, private};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::mirror;
use crate::{app::App, cli::SampleArgs, exit::CliError, out};

/// Where datasets are looked for.
pub(crate) fn places(app: &App) -> OpenOptions {
    OpenOptions { datasets_dir: app.datasets_dir(), cache_dir: app.home().join("datasets"), ..OpenOptions::default() }
}

/// Tells the licence of a dataset before its first use.
pub(crate) fn tell_licence(app: &App, manifest: &Manifest) {
    if manifest.is_generated() {
        return;
    }
    // who only looks makes no home to note it in, and is told when something begins
    if !app.begins() && !app.home().exists() {
        return;
    }
    // where the home cannot be made it is told again next time
    let _ = private::create_folder(&app.home());
    if let Some(notice) = bench_datasets::licence_notice(manifest, &places(app)) {
        out::note(&notice);
    }
}

/// How the URL of a file of this machine begins.
const LOCAL: &str = "file://";

/// Refuses a URL where a file is to be: it would be told as a folder that is not there. One of a file of this machine is its path
/// with something before it.
///
/// # Errors
/// Exit 2 with how files are fetched.
pub(crate) fn check_is_local(path: Option<&Path>) -> Result<(), CliError> {
    let url = path.and_then(Path::to_str).filter(|text| text.contains("://") && !Path::new(text).exists());
    url.map_or(Ok(()), |url| {
        let is_of_file = url.get(..LOCAL.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(LOCAL));
        if is_of_file {
            return Err(CliError::usage(format!("--dataset-path {}: leave out {LOCAL} and give the path alone", redact::url(url))));
        }
        Err(CliError::usage(format!(
            "--dataset-path {}: it takes a file, a folder or an archive of this machine, no URL: download it first (`curl -LO URL`) \
             and give the file; `bench-coord datasets fetch NAME` brings a dataset that is known by name, and BENCH_DATASETS_URL names \
             a store of yours to bring them from",
            redact::url(url)
        )))
    })
}

/// Opens a dataset, with a progress bar when it has to be downloaded.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn open_dataset(
    app: &App,
    name: &str,
    args: &SampleArgs,
    mut settings: BTreeMap<String, Value>,
) -> Result<Arc<dyn Dataset>, CliError> {
    check_is_local(args.dataset_path.as_deref())?;
    if let Some(seed) = &args.dataset_seed {
        let section = bench_datasets::find(name).map_or("", |known| known.manifest.section.as_str());
        let set = app.settings().entry(&format!("{section}.seed"));
        if set.is_some_and(|set| matches!(set.origin, Origin::Flag(_))) {
            return Err(CliError::usage(format!(
                "--dataset-seed {seed} and --set {section}.seed both name the seed: leave one of them out"
            )));
        }
        settings.insert("seed".to_owned(), seed_of(name, seed)?);
    }
    let options = OpenOptions {
        // a run that is resumed from another folder looks there again
        path: args.dataset_path.as_deref().map(std::path::absolute).transpose().map_err(CliError::usage_of)?,
        allow_modified: args.allow_modified_dataset,
        allow_download: app.settings().datasets_url.is_none(),
        settings,
        ..places(app)
    };
    let bar: Mutex<Option<ProgressBar>> = Mutex::new(None);
    let brought = mirror::bring(app, name, &options, &|so_far, total| show_download(&bar, so_far, total)).await;
    finish(bar);
    brought?;
    let name = name.to_owned();
    let dataset = read_apart(move || {
        let bar: Mutex<Option<ProgressBar>> = Mutex::new(None);
        let on_progress = |so_far: u64, total: Option<u64>| show_download(&bar, so_far, total);
        let opened = bench_datasets::open(&name, &options, &on_progress);
        finish(bar);
        opened.map_err(CliError::from)
    });
    Ok(Arc::from(dataset.await?))
}

/// Reads a dataset, or a file about one, on a thread that may block.
///
/// # Errors
/// What the reading meets.
pub(crate) async fn read_apart<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|e| CliError::internal_fault("reading a dataset", e))?
}

/// A seed as a setting of a generated dataset.
///
/// # Errors
/// Exit 2 for a dataset that is not generated, with those that are.
fn seed_of(name: &str, seed: &str) -> Result<Value, CliError> {
    let is_seeded = |manifest: &Manifest| manifest.is_generated() && !manifest.section.is_empty();
    let is_made_of_it = match bench_datasets::find(name) {
        Ok(known) => is_seeded(&known.manifest),
        // a name that is none is refused by what opens it, which knows all
        Err(_) => !Path::new(name).exists(),
    };
    if is_made_of_it && seed.contains(',') {
        return Err(CliError::usage(format!(
            "--dataset-seed {seed}: several are for `bench-coord submit`, which makes a run of each; name one"
        )));
    }
    if is_made_of_it {
        // what does not read back as it was written (01, +1) is a text
        let number = seed.parse::<i64>().ok().filter(|number| number.to_string() == seed);
        return Ok(number.map_or_else(|| Value::from(seed), Value::from));
    }
    let generated: Vec<&str> = bench_datasets::known()
        .iter()
        .filter(|known| is_seeded(&known.manifest))
        .map(|known| known.manifest.name.as_str())
        .collect();
    Err(CliError::usage(format!(
        "--dataset-seed {seed}: '{name}' is the same whatever the seed; datasets that are made of one are {}. Another sample of \
         its questions is `--seed TEXT`",
        generated.join(", ")
    )))
}

/// Opens label fixes for a dataset; `allow_modified` takes another file than the published one.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn open_label_fixes(
    app: &App,
    name: &str,
    dataset: &Arc<dyn Dataset>,
    allow_modified: bool,
) -> Result<LabelFixes, CliError> {
    let allow_download = app.settings().datasets_url.is_none();
    let options = OpenOptions { allow_modified, allow_download, ..places(app) };
    let (name, dataset) = (name.to_owned(), Arc::clone(dataset));
    // a name that is none is refused by what opens it, which knows all
    if app.settings().datasets_url.is_some() {
        mirror::bring(app, &name, &options, &|_, _| ()).await?;
    }
    let opened = tokio::task::spawn_blocking(move || LabelFixes::open(&name, &*dataset, &options, &|_, _| ()));
    let fixes = opened.await.map_err(|e| CliError::internal_fault("reading label fixes", e))??;
    tell_licence(app, fixes.manifest());
    Ok(fixes)
}

/// Refuses mistakes of the answer key where nothing is answered.
///
/// # Errors
/// Exit 2.
pub(crate) fn check_key_of_answers(scenario: Scenario, flag: &str) -> Result<(), CliError> {
    if scenario.answers() {
        return Ok(());
    }
    let name = scenario.name();
    Err(CliError::usage(format!(
        "{flag}: runs of --scenario {name} have no answers that a key could be wrong about; leave {flag} out"
    )))
}

/// The metric that mistakes of the answer key are told of; `flag` names them.
///
/// # Errors
/// Exit 2 for a run that nothing of the key bears on, with what it can be told of.
pub(crate) fn metric_by_answer_key(spec: &RunSpec, flag: &str) -> Result<String, CliError> {
    let refused = |why: String| CliError::usage(format!("{flag}: {why}"));
    if spec.dataset.planted.is_some() {
        return Err(refused(
            "the answers of a judge audit are made of the published key, and are right or wrong by it alone; leave it out".to_owned(),
        ));
    }
    check_key_of_answers(spec.scenario, flag)?;
    spec.metric_by_answer_key()
        .ok_or_else(|| refused("nothing grades the run's answers; add --judge or --scorer".to_owned()))
}

/// The dataset of a run, opened again.
///
/// # Errors
/// Exit 2 when it cannot be opened.
pub(crate) async fn dataset_of(app: &App, spec: &RunSpec) -> Result<Arc<dyn Dataset>, CliError> {
    let args = SampleArgs {
        dataset_path: spec.dataset.path.clone(),
        allow_modified_dataset: spec.dataset.modified,
        ..SampleArgs::default()
    };
    open_dataset(app, &spec.dataset.name, &args, spec.dataset.settings.clone()).await
}

/// A dataset with its label fixes, where some are named.
///
/// # Errors
/// As [`open_label_fixes`].
pub(crate) async fn with_label_fixes(
    app: &App,
    name: Option<&str>,
    dataset: Arc<dyn Dataset>,
    allow_modified: bool,
) -> Result<(Arc<dyn Dataset>, Option<LabelFixesSpec>), CliError> {
    let Some(name) = name else { return Ok((dataset, None)) };
    let fixes = open_label_fixes(app, name, &dataset, allow_modified).await?;
    let spec = fixes.spec().clone();
    Ok((Arc::new(Annotated::new(dataset, fixes)), Some(spec)))
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
        facets: run.facet.clone(),
        exclude_facets: run.exclude_facet.clone(),
        question_ids: args.question_id.clone(),
    })
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
    sampled.await.map_err(|e| CliError::internal_fault("sampling the dataset", e))?
}

/// Spreads the questions of a sample over the rounds of a run that may stop early.
///
/// # Errors
/// Exit 2 when there are too few of them.
pub(crate) async fn take_rounds(dataset: &Arc<dyn Dataset>, sample: &Sample) -> Result<Rounds, CliError> {
    let (dataset, sample) = (Arc::clone(dataset), sample.clone());
    let taken = tokio::task::spawn_blocking(move || {
        bench_plan::rounds(&sample, |bank| dataset.outline(bank as usize).map_err(CliError::from))
    });
    taken.await.map_err(|e| CliError::internal_fault("spreading the questions over rounds", e))?
}

/// Notes of a dataset that a run keeps, and characters of each.
const MOST_NOTES: usize = 20;
const NOTE_LENGTH: usize = 300;

/// Notes as a run keeps them: a file can make any number of any length.
fn bounded(notes: &[String], name: &str) -> Vec<String> {
    let mut kept: Vec<String> =
        notes.iter().take(MOST_NOTES).map(|note| note.chars().take(NOTE_LENGTH).collect()).collect();
    if let Some(more @ 1..) = notes.len().checked_sub(MOST_NOTES) {
        kept.push(format!("and {more} more: `bench-coord datasets show {name}` has all"));
    }
    kept
}

/// The dataset's part of a spec.
pub(crate) fn dataset_spec(dataset: &dyn Dataset, sample: &Sample) -> DatasetSpec {
    let About { manifest, profile, sha256, modified, checksum_unknown, settings, path, notes } =
        dataset.about().clone();
    DatasetSpec {
        notes: bounded(&notes, &manifest.name),
        name: manifest.name,
        version: manifest.version,
        sha256,
        modified,
        checksum_unknown,
        loader: manifest.loader_version,
        settings,
        abstention_phrases: manifest.abstention_phrases,
        scorers: manifest.scorers,
        population: sample.population.by_category.clone(),
        banks: sample.population.banks,
        sessions: sample.population.entries,
        profile,
        label_fixes: None,
        planted: None,
        path,
    }
}

/// What a run's settings say of its dataset, as the dataset says it of itself: nothing is opened for it.
pub(crate) fn about_of(dataset: &DatasetSpec) -> About {
    let DatasetSpec { name, version, sha256, profile, settings, path, .. } = dataset.clone();
    let manifest = Manifest {
        name,
        version,
        loader_version: dataset.loader,
        abstention_phrases: dataset.abstention_phrases.clone(),
        scorers: dataset.scorers.clone(),
        ..Manifest::default()
    };
    let &DatasetSpec { modified, checksum_unknown, .. } = dataset;
    About { manifest, profile, sha256, modified, checksum_unknown, settings, notes: Vec::new(), path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_file_of_a_dataset_and_is_told_without_its_password() {
        let refused = |path: &str| check_is_local(Some(Path::new(path))).err().map(|error| error.message);
        let said = refused("https://u:planted@data.example/locomo10.json").expect("is a URL");
        assert!(said.contains("no URL") && said.contains("datasets fetch") && said.contains("data.example"), "{said}");
        assert!(!said.contains("planted"), "{said}");
        assert!(refused("s3://bucket/locomo10.json").is_some());
        for local in ["file:///data/locomo10.json", "FILE:///data/locomo10.json"] {
            let said = refused(local).expect("is a URL");
            assert!(said.contains("leave out file://") && !said.contains("curl"), "{said}");
        }
        for path in ["locomo10.json", "no/such/file", "/"] {
            assert_eq!(refused(path), None, "{path}: what reads it says what is wrong");
        }
    }

    #[test]
    fn a_seed_is_of_what_is_generated() {
        assert_eq!(seed_of("locomo-sim", "7").expect("is generated"), Value::from(7));
        assert_eq!(seed_of("long-horizon", "-7").expect("is generated"), Value::from(-7));
        assert_eq!(seed_of("locomo-sim", "01").expect("a text is one"), Value::from("01"));
        assert!(seed_of("locomo-sim", "1,2").expect_err("one alone").message.contains("submit"));
        assert_eq!(seed_of("locomo-sim", "night").expect("a text is one"), Value::from("night"));
        for published in ["locomo", "longmemeval@s", "smoke", "Cargo.toml"] {
            let refused = seed_of(published, "7").expect_err("is no generator").message;
            assert!(refused.contains("locomo-sim") && !refused.contains("smoke,"), "{refused}");
        }
        assert!(seed_of("locomo-sin", "7").is_ok(), "what opens it says that there is none");
    }

    #[test]
    fn notes_of_a_dataset_are_kept_in_part() {
        let notes = |number: usize| vec!["é".repeat(2 * NOTE_LENGTH); number];
        assert_eq!(bounded(&notes(MOST_NOTES), "mine"), vec!["é".repeat(NOTE_LENGTH); MOST_NOTES]);
        let more = bounded(&notes(MOST_NOTES + 7), "mine");
        assert_eq!(more.len(), MOST_NOTES + 1);
        assert_eq!(more[MOST_NOTES], "and 7 more: `bench-coord datasets show mine` has all");
        assert!(bounded(&[], "mine").is_empty());
    }
}
