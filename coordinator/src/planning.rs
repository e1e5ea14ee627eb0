//! From settings and flags to a run: dataset, sample, spec. Everything that can be wrong is found here, before any work.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::{Arc, Mutex},
};

use bench_datasets::{Dataset, OpenOptions};
use bench_grading::{
    prompts::{self, ProfileError},
    scorers,
};
use bench_models::{capabilities, extractive, prices, registry as models};
use bench_plan::{Preset, Sample, SampleRequest, SampledBank, Sampler, bank_order};
use bench_proto::{
    money::PicoUsd,
    price::ModelPrice,
    probe::{HIGHEST_RATE, MOST_RATES, ProbePlan},
    profile::{PresetSizes, Profile},
    spec::{self, DatasetSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, ScorerSpec, SystemSpec},
    trace::TracePolicy,
};
use bench_settings::ModelRole;
use bench_worker::systems::{BuildContext, Capabilities, adapter, registry as systems, vector};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::{
    app::{App, Place},
    cli::{SampleArgs, SubmitArgs},
    exit::CliError,
    mirror,
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
        names.extend([embeds.account, models::EMBEDDER.to_owned()]);
    }
    names
}

/// The banks of a sample in the order of work, longest first.
#[must_use]
pub(crate) fn banks_in_order(sample: &Sample) -> Vec<SampledBank> {
    bank_order(sample).into_iter().map(|at| sample.banks[at as usize].clone()).collect()
}

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
    let dataset = opened.await.map_err(|e| CliError::infrastructure(format!("reading the dataset stopped: {e}")))??;
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
    let counted = run.per_bank.is_some() || run.sample.is_some() || run.limit.is_some() || !args.question_id.is_empty();
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
    let nearest =
        known.iter().map(|k| (strsim::jaro_winkler(&name.to_lowercase(), k), *k)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((likeness, nearest)) if likeness > 0.7 => format!(", did you mean '{nearest}'?"),
        _ => String::new(),
    };
    CliError::usage(format!("unknown {what} '{name}'{hint} (known: {})", known.join(", ")))
}

/// Samples a dataset.
///
/// # Errors
/// Exit 2 when the request does not fit the dataset.
pub(crate) async fn take_sample(dataset: &Arc<dyn Dataset>, request: SampleRequest) -> Result<Sample, CliError> {
    let dataset = Arc::clone(dataset);
    let sampled = tokio::task::spawn_blocking(move || {
        let mut sampling = bench_plan::Sampling::new(request).map_err(|e| CliError::usage(e.to_string()))?;
        for bank in 0..dataset.bank_count() {
            sampling.push(&dataset.outline(bank)?).map_err(|e| CliError::usage(e.to_string()))?;
        }
        sampling.finish().map_err(|e| CliError::usage(e.to_string()))
    });
    sampled.await.map_err(|e| CliError::infrastructure(format!("sampling stopped: {e}")))?
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
    let capabilities = systems::capabilities(&system_name, &system_settings, &BuildContext::default())
        .map_err(|e| CliError::usage(e.to_string()))?;
    if will_call {
        look_at_system(app, &system_name, &system_settings).await?;
    }
    let top_k = settings.run.top_k;
    if let Some(most) = capabilities.max_k.filter(|most| top_k > *most) {
        return Err(CliError::usage(format!("--top-k {top_k} is more than {system_name} can do: at most {most}")));
    }
    if let (Some(wanted), Some(most)) = (settings.run.concurrency, capabilities.max_parallel)
        && wanted > most
    {
        return Err(CliError::usage(format!(
            "--concurrency {wanted} is more than {system_name} can do: at most {most} at once"
        )));
    }
    match (settings.run.answerer.as_str(), capabilities.answers, capabilities.recalls) {
        ("system", false, _) => {
            return Err(CliError::usage(format!("--answerer system: {system_name} does not answer by itself")));
        }
        (answerer, _, false) if answerer != "system" => {
            return Err(CliError::usage(format!("{system_name} only answers by itself: add --answerer system")));
        }
        _ => {}
    }
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
            top_k,
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

/// Checks how many judges grade an answer, and how often each of them does.
///
/// # Errors
/// Exit 2 for more than a run can have, and for votes without a majority.
pub(crate) fn check_grading(judges: usize, votes: u32) -> Result<(), CliError> {
    spec::check_grading(judges, votes).map_err(|e| CliError::usage(format!("--judge, --votes: {e}")))
}

/// Limits of a run from settings.
///
/// # Errors
/// Exit 2 for a trace URL that cannot lead to a trace.
pub(crate) fn limits(app: &App, prices: BTreeMap<String, (PicoUsd, PicoUsd)>) -> Result<Limits, CliError> {
    let run = &app.settings().run;
    Ok(Limits {
        max_cost: run.max_cost,
        max_cost_by_phase: run.max_cost_by_phase.clone(),
        max_cost_per_day: run.max_cost_per_day,
        max_rpm: run.max_rpm,
        max_tpm: run.max_tpm,
        concurrency: run.concurrency,
        system_parallel: None,
        cache: run.cache,
        retries: run.retries,
        outage_timeout_s: run.outage_timeout,
        pool: run.pool.clone(),
        prices,
        price_lines: price_lines(app)?,
        unpriced_ok: run.unpriced_ok,
        trace: trace_policy(app.settings())?,
        // only runs that recall have one
        latency_probe: ProbePlan::default(),
    })
}

/// What a run that recalls probes when its questions have ended.
///
/// # Errors
/// Exit 2 for what is no rate.
pub(crate) fn latency_probe(app: &App) -> Result<ProbePlan, CliError> {
    let run = &app.settings().run;
    let rate = |text: &String| match text.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= HIGHEST_RATE => Ok(rate),
        _ => Err(CliError::usage(format!(
            "--latency-probe-rate {text}: give recalls per second, above 0 and at most {HIGHEST_RATE}"
        ))),
    };
    let rates = run.latency_probe_rate.iter().map(rate).collect::<Result<Vec<_>, _>>()?;
    if rates.len() > MOST_RATES {
        return Err(CliError::usage(format!("--latency-probe-rate: give at most {MOST_RATES} rates")));
    }
    if run.latency_probe == 0 && !rates.is_empty() {
        return Err(CliError::usage("--latency-probe-rate needs a probe: give --latency-probe a number of recalls"));
    }
    Ok(ProbePlan { recalls: run.latency_probe, rates })
}

/// What a run says about its traces.
///
/// # Errors
/// Exit 2 for a URL that cannot lead to a trace.
fn trace_policy(settings: &bench_settings::Settings) -> Result<TracePolicy, CliError> {
    let trace = &settings.trace;
    if let Some(url) = &trace.url {
        TracePolicy::check_url(url).map_err(|why| CliError::usage(format!("--trace-url: {why}")))?;
    }
    Ok(TracePolicy {
        url: trace.url.clone(),
        content: trace.content,
        slow_ms: trace.slow.map(|slow| u64::try_from(slow.as_millis()).unwrap_or(u64::MAX)),
        quantile: trace.quantile,
        rate: trace.rate,
    })
}

/// A run in this process needs its system at once: what is missing is said before anything is stored. Workers of a cluster
/// look for themselves.
async fn look_at_system(app: &App, name: &str, settings: &BTreeMap<String, serde_json::Value>) -> Result<(), CliError> {
    if app.place()? == Place::Cluster || !settings.contains_key(adapter::ADAPTER) {
        return Ok(());
    }
    // who names an adapter on the command line lets it run here
    app.trust(settings)?;
    let policy = Arc::new(app.policy());
    let context = BuildContext { home: Some(app.home()), policy, ..BuildContext::default() };
    adapter::end_orphans(&app.home()).await;
    let system = systems::build(name, settings, &context).map_err(|e| CliError::usage(e.to_string()))?;
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

/// Reads an amount of dollars.
///
/// # Errors
/// Exit 2 naming the flag.
pub(crate) fn parse_usd(flag: &str, text: &str) -> Result<PicoUsd, CliError> {
    PicoUsd::parse(text.trim_start_matches('$'))
        .ok_or_else(|| CliError::usage(format!("{flag} {text}: give dollars such as 20 or 0.50")))
}

/// Prices that the user gave, by model: `--price` holds for every model that chats, and for one that embeds if nobody knows
/// another price of it.
pub(crate) fn user_prices(app: &App, args: &SubmitArgs) -> Result<BTreeMap<String, (PicoUsd, PicoUsd)>, CliError> {
    let Some(text) = &args.prices.price else { return Ok(BTreeMap::new()) };
    let price = prices::parse_price(text).map_err(|e| CliError::usage(format!("--price {text}: {e}")))?;
    let run = &app.settings().run;
    let models = std::iter::once(&run.answerer).chain(&run.judge);
    let names = models.filter_map(|m| m.split_once(':').map(|(_, name)| name.to_owned()));
    let lines = Limits { price_lines: price_lines(app)?, ..Limits::default() };
    let embeds = embedding_model(app).filter(|name| prices::price_of(name, &lines).is_none());
    Ok(names.chain(embeds).map(|name| (name, price)).collect())
}

/// Prices of the run's models from the user's price file: they go with the run, so that all workers use the same.
fn price_lines(app: &App) -> Result<BTreeMap<String, ModelPrice>, CliError> {
    let settings = app.settings();
    let Some(path) = &settings.models.price_file else { return Ok(BTreeMap::new()) };
    let refuse = |problem: String| CliError::usage(format!("models.price_file {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let table = prices::PriceTable::read(&text).map_err(refuse)?;
    let run = &settings.run;
    let chat = std::iter::once(&run.answerer).chain(&run.judge);
    let names = chat.filter_map(|model| Some(model.split_once(':')?.1.to_owned())).chain(embedding_model(app));
    Ok(names.filter_map(|name| Some((name.clone(), table.price(&name)?.clone()))).collect())
}

/// The embedding model that the settings' memory system calls.
fn embedding_model(app: &App) -> Option<String> {
    let (name, settings) = app.system(&app.settings().run.system).ok()?;
    vector::remote_model(&name, &settings).map(|model| model.name)
}

/// The spec of a model in a role with its parameters as sent, and without its prompts ([`add_prompts`]); a missing key or price is
/// found here.
pub(crate) fn model_spec(
    app: &App,
    text: &str,
    role: ModelRole,
    args: &SubmitArgs,
    priced: &Limits,
    will_call: bool,
) -> Result<ModelSpec, CliError> {
    let flag = if role == ModelRole::Judge { "--judge" } else { "--answerer" };
    let parsed = models::parse_model(text).map_err(|e| CliError::usage(format!("{flag} {text}: {e}")))?;
    if role == ModelRole::Judge && !parsed.provider.remote {
        return Err(CliError::usage(format!("{flag} {text}: a judge is a chat model such as openai:gpt-4o-mini")));
    }
    let version = match role {
        ModelRole::Judge => prompts::judge::VERSION,
        _ if parsed.provider.remote => prompts::answer::VERSION,
        _ => extractive::VERSION,
    };
    let mut spec = ModelSpec {
        provider: parsed.provider.name.to_owned(),
        name: parsed.model,
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version,
    };
    if !parsed.provider.remote {
        return Ok(spec);
    }
    spec.params = capabilities::sent_params(&spec.provider, &spec.name, &app.model_params(role)?);
    spec.account = if will_call {
        app.account(role, &spec.provider, flag)?.name
    } else {
        app.settings().account_for(role, &spec.provider).name
    };
    check_price(app, &spec.name, args, priced)?;
    Ok(spec)
}

/// Notes the hashes of the prompts that a model will be given for questions of a dataset.
///
/// # Errors
/// A rubric or an answer style that this build does not have.
pub(crate) fn add_prompts(model: &mut ModelSpec, role: ModelRole, profile: &Profile) -> Result<(), ProfileError> {
    if model.is_remote() {
        model.prompts = match role {
            ModelRole::Judge => prompts::judge::prompt_hashes(profile)?,
            _ => prompts::answer::prompt_hashes(profile)?,
        };
    }
    Ok(())
}

/// Refuses a model without a price, unless it may count as free.
fn check_price(app: &App, model: &str, args: &SubmitArgs, priced: &Limits) -> Result<(), CliError> {
    if prices::price_of(model, priced).is_some() || args.prices.unpriced_ok || app.settings().run.unpriced_ok {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "no price is known for {model}: give it with --price IN,OUT (dollars per million tokens) or models.price_file, or --unpriced-ok to count it as free"
    )))
}

pub(crate) fn scorer_specs(of_dataset: &[&str], more: &[String]) -> Result<Vec<ScorerSpec>, CliError> {
    let mut specs: Vec<ScorerSpec> = Vec::new();
    for name in of_dataset.iter().copied().chain(more.iter().map(String::as_str)) {
        let scorer = scorers::registry::find(name).map_err(|e| CliError::usage(e.to_string()))?;
        if specs.iter().all(|s| s.name != scorer.name()) {
            specs.push(ScorerSpec { name: scorer.name().to_owned(), version: scorer.version() });
        }
    }
    Ok(specs)
}
