//! `import`: results made elsewhere become a finished run, so that other people's numbers get our intervals.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bench_datasets::Dataset;
use bench_grading::scorers::{self, Scorer};
use bench_plan::Sample;
use bench_proto::{
    ids::RunId,
    spec::{DatasetSpec, IMPORTED_SYSTEM, Limits, ModelSpec, RunSpec, SPEC_VERSION, ScorerSpec, SystemSpec},
};
use bench_store::{NewRun, Right, RunState};

use crate::{
    app::App,
    cli::ImportArgs,
    exit::{CliError, CliResult, Exit},
    import::{
        facts::{self, Grading},
        forms,
        grades::Reading,
        lines::{self, Lines},
        ours::{Given, Ours},
        system,
    },
    out,
    planning::{self, planner},
    results,
    runs::ending::finish,
    standing::{current_user, domains::LOCAL_DOMAIN},
};

/// Prints the known forms.
pub(super) fn show_forms() -> Exit {
    out::result(&forms::listing());
    Exit::Done
}

/// Reads the file, matches it with the dataset, scores it, and stores all of it as one finished run.
pub(super) async fn run(app: &App, args: &ImportArgs) -> CliResult {
    let answers = args.answers.as_deref().ok_or_else(|| CliError::usage("give --answers FILE"))?;
    let run_id = args.naming.id()?.unwrap_or_else(RunId::fresh);
    let name = args
        .sample
        .dataset
        .clone()
        .ok_or_else(|| CliError::usage("give --dataset NAME: the dataset that the answers are for"))?;
    let dataset = planning::open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    let reading = reading(args).map_err(|e| CliError::usage(format!("{}: {e}", answers.display())))?;
    let lines = lines::read(dataset.as_ref(), answers, &reading, u64::from(args.max_mib) << 20)?;
    lines.notes.iter().for_each(|note| out::note(note));
    let sample = sample(app, args, &dataset, &lines).await?;
    let scorers = dataset
        .manifest()
        .scorers
        .iter()
        .map(|s| scorers::registry::find(s))
        .collect::<Result<Vec<&'static dyn Scorer>, _>>()
        .map_err(|e| CliError::usage(e.to_string()))?;
    let dataset_spec =
        DatasetSpec { path: args.sample.dataset_path.clone(), ..planning::dataset_spec(dataset.as_ref(), &sample)? };
    let system = SystemSpec {
        name: system_of(args, answers),
        version: IMPORTED_SYSTEM.to_owned(),
        top_k: app.settings().run.top_k,
        settings: BTreeMap::new(),
    };
    let spec = spec(dataset_spec, &sample, system, &scorers, lines.metric.clone());
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    let headline = spec.headline_metric();
    let new_run = new_run(args, run_id, spec);
    let run_id = &new_run.run_id;
    results::check_writable(&args.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0)))?;

    // everything is scored before anything is written: a bad line starts nothing
    let banks = planning::banks_in_order(&sample);
    let mut prepared = planner::prepare(dataset.as_ref(), &banks, 0, None, usize::MAX)?;
    facts::check_sampled(&prepared, &lines.by_question, &name)
        .map_err(|e| CliError::usage(format!("{}: {e}", answers.display())))?;
    let phrases = &new_run.spec.dataset.abstention_phrases;
    let grading = Grading { metric: lines.metric.as_deref(), scorers: &scorers, phrases };
    let imported = facts::of_lines(&prepared, &lines.by_question, &grading)?;
    let run_no = store.create_run(&new_run).await?;
    store.put_items(&std::mem::take(&mut prepared.items)).await?;
    store.add_banks(run_no, &prepared.banks).await?;
    store.import_results(run_no, &headline, &imported).await?;
    store.finish_plan(run_no).await?;
    store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
    finish(app, store.as_ref(), run_no, args.json, args.output_dir.as_deref()).await
}

/// What the flags say about the file.
fn reading(args: &ImportArgs) -> Result<Reading, String> {
    if args.scale.is_nan() || args.scale <= 0.0 {
        return Err(format!("--scale {} is not above 0", args.scale));
    }
    let score = args.score_field.as_ref().map(|path| format!("{}={path}", Ours::Score.name()));
    let given = Given::read(args.field.iter().chain(&score).map(String::as_str))?;
    Ok(Reading { given, scale: args.scale, reduce: args.reduce, metric: args.metric.clone() })
}

/// What was made elsewhere is a whole run unless it is said to be a part.
async fn sample(app: &App, args: &ImportArgs, dataset: &Arc<dyn Dataset>, lines: &Lines) -> Result<Sample, CliError> {
    let mut request = planning::sample_request(app, &args.sample)?;
    if args.subset {
        request.preset = None;
        request.question_ids = lines.by_question.keys().cloned().collect();
    } else if args.sample.preset.is_none() && request.preset.is_some() {
        request.preset = Some(bench_plan::Preset::Full);
    }
    request.sizes = planning::preset_sizes(dataset.manifest().name)?;
    planning::take_sample(dataset, request).await
}

/// The memory system that the answers are of: as it was named, else after the file.
fn system_of(args: &ImportArgs, answers: &Path) -> String {
    if let Some(named) = &args.system {
        return named.clone();
    }
    let derived = system::named_after(&answers.canonicalize().unwrap_or_else(|_| answers.to_owned()));
    out::note(&format!(
        "no --system NAME is given: the results count as those of '{derived}', after the file; runs with one name are one system"
    ));
    derived
}

/// The spec of a run in which nothing of ours answered or judged.
fn spec(
    dataset: DatasetSpec,
    sample: &Sample,
    system: SystemSpec,
    scorers: &[&'static dyn Scorer],
    headline: Option<String>,
) -> RunSpec {
    let nobody = ModelSpec {
        provider: "none".to_owned(),
        name: String::new(),
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 0,
    };
    RunSpec {
        spec_version: SPEC_VERSION,
        dataset,
        sample: sample.spec.clone(),
        system,
        answerer: nobody,
        judges: Vec::new(),
        votes: 1,
        scorers: scorers.iter().map(|s| ScorerSpec { name: s.name().to_owned(), version: s.version() }).collect(),
        headline,
        limits: Limits::default(),
    }
}

fn new_run(args: &ImportArgs, run_id: RunId, spec: RunSpec) -> NewRun {
    NewRun {
        name: args.naming.name.clone(),
        tags: args.naming.tag.clone(),
        user: current_user(),
        spec,
        lineage: run_id.0.clone(),
        run_id,
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: true,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: None,
        waits: false,
    }
}
