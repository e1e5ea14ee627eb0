//! From settings and flags to a run: dataset, sample, spec. Everything that can be wrong is found here, before any work.
//!
//! In come flags and settings; out come a [`PlannedRun`] and, once the run is created, its plan in the store. Start at
//! [`plan_run`].
//!
//! | module | question |
//! |---|---|
//! | this one | what is the run's spec? |
//! | [`meter`] | is what its memory system calls itself metered? |
//! | [`canaries`] | does it store facts of its own beside the dataset? |
//! | [`counting`] | is it held to somebody else's counting? |
//! | [`dataset`] | which questions of which dataset? |
//! | [`demands`] | what do the questions and streams want that the system may not be able to do? |
//! | [`given`] | has everything a vector, where vectors are given? |
//! | [`matrix`] | which cells has a matrix file? |
//! | [`mirror`] | from where does a dataset come that is not here? |
//! | [`models`] | which models, with what parameters and prices? |
//! | [`judge_prompts`] | is it judged in the words of the dataset's authors? |
//! | [`limits`](mod@limits) | how much may it use? |
//! | [`scenario`] | which scorers and models does its scenario let it have? |
//! | [`graded`] | has each question a rubric, where judges grade it? |
//! | [`self_check`] | do its graders grade right? |
//! | [`planner`] | how does the plan get into the store, ahead of the workers? |

pub(crate) mod archived;
mod canaries;
pub(crate) mod counting;
mod dataset;
mod demands;
pub(crate) mod filled;
mod given;
pub(crate) mod graded;
pub(crate) mod judge_prompts;
mod limits;
pub(crate) mod matrix;
mod meter;
pub(crate) mod mirror;
mod models;
pub(crate) mod panel;
pub(crate) mod planner;
pub(crate) mod scenario;
pub(crate) mod self_check;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bench_datasets::Dataset;
use bench_grading::counting::Counting;
use bench_models::{prices, registry as providers};
use bench_plan::{Rounds, Sample, SampledBank, bank_order};
use bench_proto::{
    money::PicoUsd,
    probe::ProbePlan,
    profile::Profile,
    scenario::{RecallPlan, Scenario},
    spec::{self, DatasetSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, SampleSpec, SystemSpec, TakenOver},
};
use bench_settings::{ModelRole, RunSettings};
use bench_store::RunRow;
use bench_systems::{BuildContext, Capabilities, NOT_INSTALLED, adapter, facts, registry as systems, vector};
use bench_worker::transport;

pub(crate) use self::{
    dataset::{
        about_of, check_is_local, check_key_of_answers, dataset_of, dataset_spec, metric_by_answer_key, open_dataset,
        open_label_fixes, places, read_apart, sample_request, take_rounds, take_sample, tell_licence, with_label_fixes,
    },
    limits::{check_trace_url, latency_probe, limits},
    models::{
        OF_DATASET, UserPrices, add_answerer_prompts, add_prompts, check_rubric, grade_by, judging, model_spec,
        parse_usd, price_file, unused_prices, user_prices,
    },
};
use self::{
    demands::Demands,
    models::{check_price, tell_long_styles},
    planner::Planner,
    scenario::Fewest,
};
use crate::{
    app::{App, Deployment},
    cli::SubmitArgs,
    exit::CliError,
};

/// Cap of runs with paid models when the user gives none.
pub(crate) const DEFAULT_CAP: PicoUsd = PicoUsd(20_000_000_000_000);

/// A run that could start.
pub(crate) struct PlannedRun {
    /// The open dataset.
    pub dataset: Arc<dyn Dataset>,
    /// Which of its questions are asked, in their order.
    pub sample: Sample,
    /// Effective settings.
    pub spec: RunSpec,
    /// What the memory system can do.
    pub capabilities: Capabilities,
    /// Which questions are asked only after a look, where it may stop early.
    pub rounds: Option<Arc<Rounds>>,
}

impl PlannedRun {
    /// The sample's banks in the order of work.
    #[must_use]
    pub(crate) fn banks_in_order(&self) -> Vec<SampledBank> {
        banks_in_order(&self.sample)
    }

    /// What writes the plan of this run, or of a control on the same sample.
    #[must_use]
    pub(crate) fn planner(&self, run: &RunRow, home: &Path) -> Planner {
        Planner {
            run: run.run_no,
            home: home.to_owned(),
            dataset: Arc::clone(&self.dataset),
            banks: self.banks_in_order(),
            spec: Arc::new(run.spec.clone()),
            // a control asks all of them
            rounds: self.rounds.clone().filter(|_| run.spec.stop.is_some()),
            done: 0,
            waits: true,
        }
    }

    /// Whether anything of the run may cost money.
    #[must_use]
    pub(crate) fn is_paid(&self) -> bool {
        is_paid(&self.spec)
    }
}

/// Whether anything of a run may cost money.
#[must_use]
pub(crate) fn is_paid(spec: &RunSpec) -> bool {
    let paid =
        |model: &ModelSpec| model.is_remote() && prices::price_at(&model.provider, &model.name, &spec.limits).is_some();
    let embeds = vector::remote_model(&spec.system.name, &spec.system.settings);
    let embedding_is_paid = embeds.is_some_and(|model| prices::price_of(&model.name, &spec.limits).is_some());
    let notes = facts::chat_model(&spec.system.name, &spec.system.settings);
    let system_is_paid = embedding_is_paid || notes.as_ref().is_some_and(paid);
    paid(&spec.answerer) || spec.judges.iter().any(paid) || system_is_paid || spec.limits.meter.is_some()
}

/// Names of the accounts that a run's calls may use.
#[must_use]
pub(crate) fn accounts(spec: &RunSpec) -> Vec<String> {
    let models = [&spec.answerer].into_iter().chain(&spec.judges).filter(|model| model.is_remote());
    let mut names: Vec<String> = models.map(|model| model.account.clone()).collect();
    if let Some(embeds) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        names.extend([embeds.account, providers::EMBEDDER.to_owned()]);
    }
    names.extend(facts::chat_model(&spec.system.name, &spec.system.settings).map(|model| model.account));
    if let Some(meter) = &spec.limits.meter {
        names.extend(meter.accounts.values().cloned());
        names.extend(["openai", "azure", "anthropic"].map(str::to_owned));
    }
    names
}

/// The banks of a sample in the order of work, longest first.
#[must_use]
pub(crate) fn banks_in_order(sample: &Sample) -> Vec<SampledBank> {
    bank_order(sample).into_iter().map(|at| sample.banks[at as usize].clone()).collect()
}

/// Plans a run from flags and settings. An estimate (`will_call` false) needs no key.
///
/// # Errors
/// Exit 2: unknown names, a missing key, an unpriced model, a k that the system cannot do.
pub(crate) async fn plan_run(app: &App, args: &SubmitArgs, will_call: bool) -> Result<PlannedRun, CliError> {
    let settings = app.settings();
    // names are cheap to check and come first; the dataset may have to be downloaded
    let mut request = sample_request(app, &args.sample)?;
    let name = settings.run.dataset.clone().ok_or_else(|| {
        CliError::usage("no dataset: give --dataset locomo-sim (generated, no download), --dataset locomo, or see `bench-coord datasets list`")
    })?;
    let cast = cast(app, args, will_call, &name).await?;
    let (scenario, mut judges) = (cast.scenario, cast.judges);
    if args.label_fixes.is_some() {
        check_key_of_answers(scenario, "--label-fixes")?;
    }
    let dataset = open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    if !args.output.json {
        tell_licence(app, dataset.manifest());
    }
    let (dataset, label_fixes) =
        with_label_fixes(app, args.label_fixes.as_deref(), dataset, args.sample.allow_modified_dataset).await?;
    request.sizes = dataset.profile().presets.clone();
    let sample = take_sample(&dataset, request).await?;
    let demands = Demands::read(&dataset, &sample).await?;
    let of_system = demands.notes(&cast.system.name, &cast.capabilities, cast.by_system, args.allow_unfiltered)?;
    let unfiltered = demands.lacking(&cast.capabilities, cast.by_system).1;
    let fewest = Fewest::with_own_k(cast.system.top_k, demands.own_k());
    let more_scorers = scenario::asked_for(scenario, fewest, &settings.run.scorer)?;
    let notes = sample.spec.notes.iter().cloned().chain(of_system).collect();
    let mut dataset_spec = DatasetSpec { label_fixes, ..dataset_spec(dataset.as_ref(), &sample) };
    change_profile(app, args, cast.counting, &judges, &mut dataset_spec.profile)?;
    judge_prompts::set_params(app, None, &dataset_spec.profile, &mut judges)?;
    let profile = &dataset_spec.profile;
    graded::check(profile, &dataset, &sample, !judges.is_empty()).await?;
    judges.iter_mut().try_for_each(|judge| add_prompts(judge, profile))?;
    let judging = judging(&judges, profile)?;
    let mut of_dataset = scenario::that_fit(scenario, fewest, &dataset.manifest().scorers)?;
    if scenario == Scenario::Reflect && cast.by_system {
        scenario::leave_recalls_out(&mut of_dataset, "the memory system answers by itself");
    }
    check_banks(&cast.system.name, &cast.capabilities, &sample)?;
    given::check(&cast.system, cast.recalls, &dataset, &sample).await?;
    let spec = RunSpec {
        spec_version: SPEC_VERSION,
        dataset: dataset_spec,
        sample: SampleSpec { notes, own_k: demands.own_k(), unfiltered, ..sample.spec.clone() },
        system: cast.system,
        scenario,
        recalls: cast.recalls,
        answerer: cast.answerer,
        judges,
        votes: cast.votes,
        judging,
        scorers: scenario::joined(scenario, fewest, of_dataset, more_scorers),
        counting: None,
        headline: None,
        limits: Limits {
            system_parallel: cast.capabilities.max_parallel,
            latency_probe: cast.latency_probe,
            ..cast.priced
        },
        canaries: None,
        stop: None,
        // what is computed from the stored items holds all of them
        lists: cast.capabilities.lists && !cast.capabilities.from_items,
        taken_over: TakenOver::default(),
    };
    let mut planned = PlannedRun { dataset, sample, spec, capabilities: cast.capabilities, rounds: None };
    complete(&settings.run, &mut planned, cast.counting, &cast.judged).await?;
    if planned.spec.limits.is_uncapped() && planned.is_paid() {
        planned.spec.limits.max_cost = Some(DEFAULT_CAP);
    }
    Ok(planned)
}

/// Adds to a spec what follows from the rest of it: how it is counted and what heads its report, the questions that its judges grade,
/// its prompts and its canaries.
///
/// # Errors
/// As [`plan_run`].
async fn complete(
    run: &RunSettings,
    planned: &mut PlannedRun,
    counting: Option<&'static Counting>,
    judged: &[Option<u64>],
) -> Result<(), CliError> {
    let PlannedRun { dataset, sample, spec, capabilities, .. } = planned;
    if let Some(counting) = counting {
        counting::note(counting, spec)?;
    }
    if let Some(metric) = &run.headline {
        scenario::head(spec, metric)?;
    }
    panel::choose(spec, judged, dataset, sample).await?;
    scenario::check_graded(spec)?;
    scenario::check_native(spec)?;
    add_answerer_prompts(spec)?;
    tell_long_styles(spec);
    spec.canaries = canaries::canaries(spec, capabilities, run.canaries);
    Ok(())
}

/// Puts what a person wants of judges in place of the dataset's own: `--rubric`, `--judge-prompts`, `--count-as`.
fn change_profile(
    app: &App,
    args: &SubmitArgs,
    counting: Option<&'static Counting>,
    judges: &[ModelSpec],
    profile: &mut Profile,
) -> Result<(), CliError> {
    // one that a configuration names is for judges, where there are some
    if let Some(rubric) = app.settings().run.rubric.as_ref().filter(|_| !judges.is_empty()) {
        grade_by(profile, rubric)?;
    }
    if let Some(path) = &args.judge_prompts {
        judge_prompts::take(path, profile, judges)?;
    }
    if let Some(counting) = counting {
        *profile = counting.profile(profile);
    }
    Ok(())
}

/// Who takes part in a run: all that is known before its dataset is read.
struct Cast {
    system: SystemSpec,
    capabilities: Capabilities,
    scenario: Scenario,
    recalls: RecallPlan,
    answerer: ModelSpec,
    /// The memory system answers by itself.
    by_system: bool,
    counting: Option<&'static Counting>,
    judges: Vec<ModelSpec>,
    /// How many questions each of them grades, where not all.
    judged: Vec<Option<u64>>,
    votes: u32,
    priced: Limits,
    latency_probe: ProbePlan,
}

/// Finds out who takes part in a run of a dataset, and whether each of them can.
///
/// # Errors
/// As [`plan_run`].
async fn cast(app: &App, args: &SubmitArgs, will_call: bool, name: &str) -> Result<Cast, CliError> {
    let settings = app.settings();
    let (system_name, system_settings) = app.system(&settings.run.system)?;
    let capabilities =
        systems::capabilities(&system_name, &system_settings, &BuildContext::default()).map_err(CliError::usage_of)?;
    if will_call {
        look_at_system(app, &system_name, &system_settings).await?;
    }
    let scenario = scenario::named(&settings.run.scenario)?;
    let answerer = scenario::answerer_of(scenario, &capabilities, &settings.run.answerer);
    let recalls = scenario::recall_plan(scenario, &settings.run, args.max_recalls)?;
    check_capabilities(&settings.run, scenario, answerer, &system_name, &capabilities)?;
    scenario::check_recalls(scenario, recalls, answerer, &system_name, &capabilities)?;
    if answerer == "system" && scenario.answers() && settings.run.controls {
        return Err(CliError::usage(
            "--controls: the controls have no answer of their own; leave them out, or take --scenario answer with another \
             --answerer than system",
        ));
    }
    let Graders { counting, judges, votes } = graders(args, &settings.run, scenario, name)?;
    let judged = panel::sizes(&judges)?;
    let priced = limits(app, user_prices(app, args)?)?;
    let latency_probe = latency_probe(app)?;
    if let Some(model) = vector::remote_model(&system_name, &system_settings) {
        if will_call {
            app.embedding_account(&model)?;
        }
        check_price(app, &model.name, args, &priced)?;
    }
    if let Some(model) = facts::chat_model(&system_name, &system_settings) {
        if will_call {
            app.chat_account(&model)?;
        }
        if providers::parse_model(&model.display()).is_ok_and(|parsed| parsed.provider.paid) {
            check_price(app, &model.name, args, &priced)?;
        }
    }
    let by_system = scenario.answers() && answerer == "system";
    let answerer = match scenario.answers() {
        true => model_spec(app, answerer, ModelRole::Answerer, args, &priced, will_call)?,
        false => scenario::nobody(),
    };
    let judges = judges
        .iter()
        .map(|judge| model_spec(app, judge, ModelRole::Judge, args, &priced, will_call))
        .collect::<Result<Vec<_>, _>>()?;
    check_rubric(args.rubric.as_deref(), &judges)?;
    // the names alone: how many hits questions ask for is not known yet
    scenario::asked_for(scenario, Fewest::with_own_k(u32::MAX, None), &settings.run.scorer)?;
    let mut system = SystemSpec {
        name: system_name,
        version: capabilities.version.clone(),
        top_k: settings.run.top_k,
        settings: system_settings,
    };
    let meter = meter::meter(&settings.meter, &mut system, &capabilities)?;
    if let Some(meter) = meter.as_ref().filter(|_| will_call) {
        app.check_meter(meter, answerer.is_remote() || judges.iter().any(ModelSpec::is_remote))?;
    }
    let priced = models::metered(app, priced, meter)?;
    Ok(Cast {
        system,
        capabilities,
        scenario,
        recalls,
        answerer,
        by_system,
        counting,
        judges,
        judged,
        votes,
        priced,
        latency_probe,
    })
}

/// Who grades, by name.
struct Graders {
    counting: Option<&'static Counting>,
    judges: Vec<String>,
    votes: u32,
}

/// The judges that flags and settings name, or a counting has.
///
/// # Errors
/// Exit 2: a counting that does not fit, judges where there are no answers, votes without a majority.
fn graders(args: &SubmitArgs, run: &RunSettings, scenario: Scenario, dataset: &str) -> Result<Graders, CliError> {
    let counting = counting::chosen(args, dataset)?;
    let judges = match counting {
        Some(counting) => {
            panel::check_counting(&run.judge, counting.name)?;
            counting::judges(counting, &run.judge)?
        }
        None => run.judge.clone(),
    };
    let votes = match counting {
        Some(counting) if args.votes.is_none() => counting.votes,
        _ => run.votes,
    };
    check_grading(judges.len(), votes)?;
    check_votes(args.votes, judges.len())?;
    // what a configuration names is not asked for here
    let asked = if counting.is_some() { judges.len() } else { args.judge.len() };
    scenario::check_models(scenario, args.answerer.as_deref(), asked)?;
    Ok(Graders { counting, judges: scenario::who_judges(scenario, judges), votes })
}

/// Refuses several banks where the memory system cannot keep them apart.
fn check_banks(system: &str, capabilities: &Capabilities, sample: &Sample) -> Result<(), CliError> {
    match sample.spec.banks {
        banks if banks > 1 && !capabilities.banks => Err(CliError::usage(format!(
            "{system} has one memory for everything and the sample has {banks} banks: add --max-banks 1"
        ))),
        _ => Ok(()),
    }
}

/// Refuses what the memory system cannot do.
fn check_capabilities(
    run: &RunSettings,
    scenario: Scenario,
    answerer: &str,
    system: &str,
    capabilities: &Capabilities,
) -> Result<(), CliError> {
    let top_k = run.top_k;
    if let Some(most) = capabilities.max_k.filter(|most| top_k > *most) {
        return Err(CliError::usage(format!("--top-k {top_k} is more than {system} can do: at most {most}")));
    }
    if let (Some(wanted), Some(most)) = (run.concurrency, capabilities.max_parallel)
        && wanted > most
    {
        return Err(CliError::usage(format!(
            "--concurrency {wanted} is more than {system} can do: at most {most} at once"
        )));
    }
    match (answerer, capabilities.answers, capabilities.recalls) {
        (_, _, false) if !scenario.answers() => Err(CliError::usage(format!(
            "--scenario {}: {system} gives answers and no memories that could be scored: leave --scenario out and add \
                 --answerer system, or name another --system",
            scenario.name()
        ))),
        _ if !scenario.answers() => Ok(()),
        ("system", false, _) => Err(CliError::usage(format!(
            "--answerer system: {system} gives memories and no answers: name a model with --answerer, or another --system"
        ))),
        (answerer, _, false) if answerer != "system" => Err(CliError::usage(format!(
            "{system} gives answers and no memories that an answerer could read: add --answerer system"
        ))),
        _ => Ok(()),
    }
}

/// Checks how many judges grade an answer, and how often each of them does.
///
/// # Errors
/// Exit 2 for more than a run can have, and for votes without a majority.
pub(crate) fn check_grading(judges: usize, votes: u32) -> Result<(), CliError> {
    spec::check_grading(judges, votes).map_err(|e| CliError::usage(format!("--judge, --votes: {e}")))
}

/// Refuses `--votes` that nobody would cast.
///
/// # Errors
/// Exit 2 with the flag that is missing.
pub(crate) fn check_votes(votes: Option<u32>, judges: usize) -> Result<(), CliError> {
    match votes {
        Some(votes) if votes > 1 && judges == 0 => Err(CliError::usage(format!(
            "--votes {votes}: votes are cast by judges, and the run has none; add --judge, or leave --votes out"
        ))),
        _ => Ok(()),
    }
}

/// A run in this process needs its system at once: what is missing is said before anything is stored. Workers of a cluster
/// look for themselves.
async fn look_at_system(app: &App, name: &str, settings: &BTreeMap<String, serde_json::Value>) -> Result<(), CliError> {
    if app.deployment()? == Deployment::Cluster {
        return Ok(());
    }
    // who names a system on the command line lets it do here what it does
    let given = &app.settings().run.system;
    if app.begins() {
        app.begin_home(false);
        app.trust(settings, Some(given))?;
    }
    if !settings.contains_key(adapter::ADAPTER) && !systems::needs_server(name) {
        return Ok(());
    }
    transport::warn(app.settings(), transport::to_pgvector(name));
    let policy = Arc::new(if app.begins() { app.policy() } else { app.policy_naming(settings, given) });
    let context = BuildContext { policy, ..BuildContext::default() }.in_home(app.home());
    adapter::end_orphans(&app.home()).await;
    let system = systems::build(name, settings, &context).map_err(CliError::usage_of)?;
    if adapter::is_started(settings) {
        return Ok(());
    }
    let health = system.health().await;
    system.close().await;
    health.map(drop).map_err(|failure| match failure.code.as_str() {
        adapter::NO_SUCH_TOOL | NOT_INSTALLED => CliError::usage(failure.message),
        _ => CliError::infrastructure(format!("memory system {name} does not answer: {}", failure.message)),
    })
}
