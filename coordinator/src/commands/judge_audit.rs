//! `judge-audit`: answers whose grade is known become a finished run, and judges grade it as they grade any.

use std::{path::Path, sync::Arc};

use bench_datasets::Dataset;
use bench_grading::{judging::rubric::keep_evidence, planting::Kind};
use bench_plan::{Preset, SampleRequest, SampledBank};
use bench_proto::{
    audit::PLANTED_SYSTEM,
    ids::RunId,
    spec::{DatasetSpec, IMPORTED_SYSTEM, RunSpec, SystemSpec},
};
use bench_store::{Right, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::{ForkFrom, JudgeAuditArgs, NamingArgs, Reduce},
    exit::{CliError, CliResult},
    import::{
        grades::Reading,
        keep::{Results, new_run},
        lines,
        ours::Given,
        planted::{self, PlantedAnswers},
    },
    out,
    planning::{
        self, graded,
        planner::{self, BankParts},
    },
    results::own_answers::{graded_answers, name_judge},
    runs::{ending::finish, fork},
    standing::{
        find_run,
        naming::{check_new_run, check_no_id},
    },
};

/// Most bytes of a file of answers: it is all read into memory.
const MOST_BYTES: u64 = 256 << 20;
/// What planted answers count as: no memory system made them.
const PLANTED: &str = PLANTED_SYSTEM;
/// What answers of a run count as that somebody has graded.
const GRADED: &str = "graded";

/// Plants answers in the questions of a sample, stores them as a finished run, and forks it for the judges. Without a judge the
/// grades that a file of answers brings are audited.
pub(super) async fn run(app: &App, args: &JudgeAuditArgs) -> CliResult {
    if let (Some(run), Some(grades)) = (&args.of, &args.grades) {
        return of_run(app, args, run, grades).await;
    }
    let kinds = args.plant.iter().map(|name| kind_named(name)).collect::<Result<Vec<Kind>, _>>()?;
    let named = args.sample.dataset.clone().or_else(|| app.settings().run.dataset.clone());
    let name = named
        .ok_or_else(|| CliError::usage("give --dataset NAME: the dataset in whose questions answers are planted"))?;
    let dataset = planning::open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    if !args.output.json {
        planning::tell_licence(app, dataset.manifest());
    }
    let answers = match &args.answers {
        Some(file) => of_file(app, args, &dataset, file, &kinds).await?,
        None => made(app, args, &dataset, &kinds).await?,
    };
    if answers.lines.is_empty() {
        return Err(CliError::usage("nothing could be planted: no question of the sample is one that judges grade"));
    }
    if args.judge.is_empty() && answers.metric.is_none() {
        return Err(CliError::usage(
            "nobody has graded these answers: give --judge M, or --answers FILE with grades of its own",
        ));
    }
    audited(app, args, answers, None).await
}

/// Audits answers of a run that somebody who knows has graded: what its own judge made of them, or what others make.
async fn of_run(app: &App, args: &JudgeAuditArgs, run: &str, grades: &Path) -> CliResult {
    if let Some(flag) = args.sample.first_given() {
        return Err(CliError::usage(format!(
            "{flag}: the questions are those of --of {run} that --grades names; leave it out"
        )));
    }
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), run).await?;
    let answers = graded_answers(store.as_ref(), &run, grades, !args.judge.is_empty()).await?;
    drop(store);
    if answers.lines.is_empty() {
        return Err(CliError::usage(format!(
            "no answer that {} names was judged in run {}: there is nothing to audit",
            grades.display(),
            run.run_id
        )));
    }
    audited(app, args, answers, Some(&run.spec)).await
}

/// Stores answers as a finished run, and has judges grade it; `of` are the settings of the run that judged them already.
async fn audited(app: &App, args: &JudgeAuditArgs, answers: PlantedAnswers, of: Option<&RunSpec>) -> CliResult {
    if args.dry_run {
        return estimated(app, args, answers).await;
    }
    let store = app.open_store().await?;
    let planted = planted_run(app, args, store.as_ref(), answers, of).await?;
    if args.judge.is_empty() {
        let output = &args.output;
        return finish(app, store.as_ref(), planted.run_no, output.json, output.output_dir.as_deref()).await;
    }
    drop(store);
    fork::run(app, &args.clone().into_submit(), &planted.run_id.0, ForkFrom::Judge).await
}

/// Says what the judges would cost. The answers are planted in a store of their own, which goes with this process.
async fn estimated(app: &App, args: &JudgeAuditArgs, answers: PlantedAnswers) -> CliResult {
    if args.judge.is_empty() {
        return Err(CliError::usage("--dry-run: without a judge nothing is called; give --judge M, or leave it out"));
    }
    let broken = |e: std::io::Error| CliError::infrastructure(format!("no temporary folder: {e}")).because(e);
    let folder = tempfile::tempdir().map_err(broken)?;
    let store = bench_store::open(&format!("sqlite:{}", folder.path().join("planted.db").display())).await?;
    let planted = planted_run(app, args, store.as_ref(), answers, None).await?;
    let estimated = fork::dry_run(app, store.as_ref(), &args.clone().into_submit(), &planted, ForkFrom::Judge).await;
    store.close().await;
    estimated
}

fn kind_named(name: &str) -> Result<Kind, CliError> {
    Kind::named(name)
        .ok_or_else(|| CliError::usage(format!("--plant {name}: there are {}", Kind::ALL.map(Kind::name).join(", "))))
}

/// Answers made of the questions and the gold of a sample.
async fn made(
    app: &App,
    args: &JudgeAuditArgs,
    dataset: &Arc<dyn Dataset>,
    kinds: &[Kind],
) -> Result<PlantedAnswers, CliError> {
    let parts = parts(dataset, planning::sample_request(app, &args.sample)?).await?;
    Ok(planted::of_sample(dataset.about(), parts, if kinds.is_empty() { &Kind::ALL } else { kinds }))
}

/// Answers of a file, all of one kind, and their questions as the sample.
async fn of_file(
    app: &App,
    args: &JudgeAuditArgs,
    dataset: &Arc<dyn Dataset>,
    file: &Path,
    kinds: &[Kind],
) -> Result<PlantedAnswers, CliError> {
    let [kind] = kinds[..] else {
        return Err(CliError::usage(
            "--answers FILE needs --plant with what its answers are: specific or vague (wrong), paraphrase or verbatim (right)",
        ));
    };
    let in_file = |problem: String| CliError::usage(format!("{}: {problem}", file.display()));
    let given = Given::read(std::iter::empty()).map_err(in_file)?;
    // judges grade the answers themselves: the run that they share is the same however the grades of the file are taken
    let reduce = if args.judge.is_empty() { args.reduce } else { Reduce::Mean };
    let reading = Reading { given, scale: 1.0, reduce, metric: None };
    let lines = lines::read(dataset.as_ref(), file, &reading, MOST_BYTES)?;
    lines.notes.iter().for_each(|note| out::note(note));
    let mut request = planning::sample_request(app, &args.sample)?;
    request.preset = None;
    request.question_ids = lines.by_question.keys().cloned().collect();
    let parts = parts(dataset, request).await?;
    let bytes = std::fs::read(file).map_err(|e| in_file(e.to_string()).because(e))?;
    let source = format!("{}{}", planted::source_of(file, &bytes), reduced(reduce));
    Ok(planted::of_lines(dataset.about(), parts, lines.by_question, (kind, lines.metric), source))
}

/// What is said behind a file whose grades are no means: the same answers with other grades are another run.
const fn reduced(reduce: Reduce) -> &'static str {
    match reduce {
        Reduce::Mean => "",
        Reduce::Majority => ", by majority",
    }
}

/// The questions of a sample with their gold, by bank.
async fn parts(dataset: &Arc<dyn Dataset>, request: SampleRequest) -> Result<Vec<BankParts>, CliError> {
    let sizes = dataset.profile().presets.clone();
    let sample = planning::take_sample(dataset, SampleRequest { sizes, ..request }).await?;
    let dataset = Arc::clone(dataset);
    let read = move |sampled: SampledBank| {
        let bank = dataset.bank(sampled.file_index as usize)?;
        let (content, mut parts) = planner::parts(bank, &sampled, None)?;
        keep_evidence(dataset.profile(), &content, &mut parts.gold);
        Ok(parts)
    };
    planning::read_apart(move || planning::banks_in_order(&sample).into_iter().map(read).collect()).await
}

/// The finished run of planted answers. The same answers are one run, so that another judge grades what the first one did.
async fn planted_run(
    app: &App,
    args: &JudgeAuditArgs,
    store: &dyn Store,
    answers: PlantedAnswers,
    of: Option<&RunSpec>,
) -> Result<RunRow, CliError> {
    let PlantedAnswers { spec: planted, dataset, lines, metric } = answers;
    let name = if planted.answers_of.is_some() { GRADED } else { PLANTED };
    let whole = SampleRequest { preset: Some(Preset::Full), ..SampleRequest::default() };
    let sample = planning::take_sample(&dataset, whole).await?;
    graded::check(dataset.profile(), &dataset, &sample, !args.judge.is_empty()).await?;
    let of_dataset = DatasetSpec { planted: Some(planted), ..planning::dataset_spec(dataset.as_ref(), &sample) };
    let system = SystemSpec {
        name: name.to_owned(),
        version: IMPORTED_SYSTEM.to_owned(),
        top_k: app.settings().run.top_k,
        settings: Default::default(),
    };
    let results = Results::new(dataset, sample, lines, metric)?;
    let mut spec = results.spec(of_dataset, system);
    if let Some(of) = of.filter(|_| args.judge.is_empty()) {
        name_judge(&mut spec, of)?;
    }
    // names are of the fork that judges make, and of this run where there is none
    let naming = if args.judge.is_empty() { args.naming.clone() } else { NamingArgs::default() };
    let own_id = naming.id()?;
    let named =
        own_id.as_ref().map_or_else(|| format!("{name}-{}", &spec.fingerprint().hex()[..16]), |id| id.0.clone());
    let mut run_id = RunId(named.clone());
    // one that was killed while it was stored is never whole: another takes its place
    for again in 2.. {
        match store.run_by_id(&run_id).await? {
            Some(known) if known.state == RunState::Finished && known.spec.fingerprint() == spec.fingerprint() => {
                return named_again(store, known, &naming).await;
            }
            Some(_) if own_id.is_some() => {
                return Err(CliError::usage(format!("--run-id {run_id}: another run has this id; give another one")));
            }
            Some(_) => run_id = RunId(format!("{named}-{again}")),
            None => break,
        }
    }
    store.may(Right::Results).await?;
    check_new_run(store, naming.name.as_deref(), &run_id).await?;
    let new_run = new_run(&naming, run_id, spec);
    let run_no = results.keep(store, &new_run, &format!("{name} answers")).await?;
    if !args.dry_run {
        out::note(&format!("run {}: {} {name} answers", new_run.run_id, new_run.spec.sample.n));
    }
    Ok(store.run(run_no).await?)
}

/// A run of the same answers that is there already, by the name that it is given now.
async fn named_again(store: &dyn Store, known: RunRow, naming: &NamingArgs) -> Result<RunRow, CliError> {
    if naming.name.is_none() && naming.tag.is_empty() {
        return Ok(known);
    }
    store.may(Right::Results).await?;
    check_no_id(store, naming.name.as_deref(), &known.run_id).await?;
    let name = naming.name.as_deref().or(known.name.as_deref());
    let tags = if naming.tag.is_empty() { &known.tags } else { &naming.tag };
    store.set_labels(known.run_no, name, tags).await?;
    Ok(store.run(known.run_no).await?)
}
