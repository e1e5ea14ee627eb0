//! From settings and flags to a run: dataset, sample, spec. Everything that can be wrong is found here, before any work.
//!
//! In come flags and settings; out come a [`PlannedRun`] and, once the run is created, its plan in the store. Start at
//! [`plan_run`].
//!
//! | module | question |
//! |---|---|
//! | this one | what is the run's spec? |
//! | [`dataset`] | which questions of which dataset? |
//! | [`mirror`] | from where does a dataset come that is not here? |
//! | [`models`] | which models, with what parameters and prices? |
//! | [`limits`](mod@limits) | how much may it use? |
//! | [`self_check`] | do its graders grade right? |
//! | [`planner`] | how does the plan get into the store, ahead of the workers? |

mod dataset;
mod limits;
pub(crate) mod mirror;
mod models;
pub(crate) mod planner;
pub(crate) mod self_check;

use std::{collections::BTreeMap, sync::Arc};

use bench_datasets::Dataset;
use bench_grading::{prompts, scorers};
use bench_models::{prices, registry as providers};
use bench_plan::{Sample, SampledBank, bank_order};
use bench_proto::{
    ids::RunNo,
    money::PicoUsd,
    spec::{self, DatasetSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, ScorerSpec, SystemSpec},
};
use bench_settings::{ModelRole, RunSettings};
use bench_systems::{BuildContext, Capabilities, adapter, registry as systems, vector};

pub(crate) use self::{
    dataset::{dataset_spec, open_dataset, preset_sizes, sample_request, take_sample},
    limits::{latency_probe, limits},
    models::{UserPrices, add_prompts, model_spec, parse_usd, user_prices},
};
use self::{models::check_price, planner::Planner};
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
    /// The sample.
    pub sample: Sample,
    /// Effective settings.
    pub spec: RunSpec,
    /// What the memory system can do.
    pub capabilities: Capabilities,
}

impl PlannedRun {
    /// The sample's banks in the order of work.
    #[must_use]
    pub(crate) fn banks_in_order(&self) -> Vec<SampledBank> {
        banks_in_order(&self.sample)
    }

    /// What writes the plan of this run, or of a control on the same sample.
    #[must_use]
    pub(crate) fn planner(&self, run: RunNo) -> Planner {
        Planner {
            run,
            dataset: Arc::clone(&self.dataset),
            banks: self.banks_in_order(),
            max_sessions: self.spec.sample.max_sessions,
            done: 0,
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
    let paid = |model: &ModelSpec| model.is_remote() && prices::price_of(&model.name, &spec.limits).is_some();
    let embeds = vector::remote_model(&spec.system.name, &spec.system.settings);
    let embedding_is_paid = embeds.is_some_and(|model| prices::price_of(&model.name, &spec.limits).is_some());
    paid(&spec.answerer) || spec.judges.iter().any(paid) || embedding_is_paid
}

/// Names of the accounts that a run's calls may use.
#[must_use]
pub(crate) fn accounts(spec: &RunSpec) -> Vec<String> {
    let models = [&spec.answerer].into_iter().chain(&spec.judges).filter(|model| model.is_remote());
    let mut names: Vec<String> = models.map(|model| model.account.clone()).collect();
    if let Some(embeds) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        names.extend([embeds.account, providers::EMBEDDER.to_owned()]);
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
    let (system_name, system_settings) = app.system(&settings.run.system)?;
    let capabilities =
        systems::capabilities(&system_name, &system_settings, &BuildContext::default()).map_err(CliError::usage_of)?;
    if will_call {
        look_at_system(app, &system_name, &system_settings).await?;
    }
    check_capabilities(&settings.run, &system_name, &capabilities)?;
    check_grading(settings.run.judge.len(), settings.run.votes)?;
    let priced = limits(app, user_prices(app, args)?)?;
    let latency_probe = latency_probe(app)?;
    if let Some(model) = vector::remote_model(&system_name, &system_settings) {
        if will_call {
            app.embedding_account(&model)?;
        }
        check_price(app, &model.name, args, &priced)?;
    }
    let mut answerer = model_spec(app, &settings.run.answerer, ModelRole::Answerer, args, &priced, will_call)?;
    let mut judges = settings
        .run
        .judge
        .iter()
        .map(|judge| model_spec(app, judge, ModelRole::Judge, args, &priced, will_call))
        .collect::<Result<Vec<_>, _>>()?;
    let more_scorers = scorer_specs(&[], &settings.run.scorer)?;

    let dataset = open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    request.sizes = preset_sizes(&name)?;
    let sample = take_sample(&dataset, request).await?;
    let dataset_spec = dataset_spec(dataset.as_ref(), &sample)?;
    let profile = &dataset_spec.profile;
    prompts::check(profile, sample.spec.by_category.keys().map(String::as_str), !judges.is_empty())?;
    add_prompts(&mut answerer, ModelRole::Answerer, profile)?;
    judges.iter_mut().try_for_each(|judge| add_prompts(judge, ModelRole::Judge, profile))?;
    let mut scorers = scorer_specs(dataset.manifest().scorers, &[])?;
    scorers.extend(more_scorers.into_iter().filter(|s| dataset.manifest().scorers.iter().all(|name| *name != s.name)));
    if !capabilities.banks && sample.spec.banks > 1 {
        return Err(CliError::usage(format!(
            "{system_name} has one memory for everything and the sample has {} banks: add --max-banks 1",
            sample.spec.banks
        )));
    }
    let spec = RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec { path: args.sample.dataset_path.clone(), ..dataset_spec },
        sample: sample.spec.clone(),
        system: SystemSpec {
            name: system_name,
            version: capabilities.version.clone(),
            top_k: settings.run.top_k,
            settings: system_settings,
        },
        answerer,
        judges,
        votes: settings.run.votes,
        scorers,
        headline: None,
        limits: Limits { system_parallel: capabilities.max_parallel, latency_probe, ..priced },
    };
    let mut planned = PlannedRun { dataset, sample, spec, capabilities };
    if planned.spec.limits.max_cost.is_none() && planned.is_paid() {
        planned.spec.limits.max_cost = Some(DEFAULT_CAP);
    }
    Ok(planned)
}

/// Refuses what the memory system cannot do.
fn check_capabilities(run: &RunSettings, system: &str, capabilities: &Capabilities) -> Result<(), CliError> {
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
    match (run.answerer.as_str(), capabilities.answers, capabilities.recalls) {
        ("system", false, _) => Err(CliError::usage(format!("--answerer system: {system} does not answer by itself"))),
        (answerer, _, false) if answerer != "system" => {
            Err(CliError::usage(format!("{system} only answers by itself: add --answerer system")))
        }
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

/// A run in this process needs its system at once: what is missing is said before anything is stored. Workers of a cluster
/// look for themselves.
async fn look_at_system(app: &App, name: &str, settings: &BTreeMap<String, serde_json::Value>) -> Result<(), CliError> {
    if app.deployment()? == Deployment::Cluster {
        return Ok(());
    }
    // who names a system on the command line lets it do here what it does
    app.begin_home(false);
    app.trust(settings)?;
    if !settings.contains_key(adapter::ADAPTER) {
        return Ok(());
    }
    let policy = Arc::new(app.policy());
    let context = BuildContext { policy, ..BuildContext::default() }.in_home(app.home());
    adapter::end_orphans(&app.home()).await;
    let system = systems::build(name, settings, &context).map_err(CliError::usage_of)?;
    let starts = settings[adapter::ADAPTER].get("start").is_some();
    if starts && !settings.contains_key(adapter::URL) {
        return Ok(());
    }
    let health = system.health().await;
    system.close().await;
    health.map(drop).map_err(|failure| {
        CliError::infrastructure(format!("memory system {name} does not answer: {}", failure.message))
    })
}

pub(crate) fn scorer_specs(of_dataset: &[&str], more: &[String]) -> Result<Vec<ScorerSpec>, CliError> {
    let mut specs: Vec<ScorerSpec> = Vec::new();
    for name in of_dataset.iter().copied().chain(more.iter().map(String::as_str)) {
        let scorer = scorers::registry::find(name).map_err(CliError::usage_of)?;
        if specs.iter().all(|s| s.name != scorer.name()) {
            specs.push(ScorerSpec { name: scorer.name().to_owned(), version: scorer.version() });
        }
    }
    Ok(specs)
}
