//! The models of a run: parameters as sent, prompts by hash, and a price for each.

use std::collections::BTreeMap;

use bench_grading::{
    judging::{official, rubric},
    prompts::{self, ProfileError},
};
use bench_models::{
    capabilities, extractive,
    prices::{self, PriceTable},
    registry as models,
};
use bench_proto::{
    metered::MeterPlan,
    money::PicoUsd,
    nearest::{did_you_mean, nearest},
    price::ModelPrice,
    profile::Profile,
    spec::{JudgingSpec, Limits, ModelSpec, RunSpec, SystemSpec},
};
use bench_settings::{ModelRole, RunSettings, bounded};
use bench_systems::{facts, vector};

use crate::{
    app::App,
    cli::{SubmitArgs, model_of_judge},
    exit::CliError,
    out,
};

/// Reads an amount of dollars.
///
/// # Errors
/// Exit 2 naming the flag.
pub(crate) fn parse_usd(flag: &str, text: &str) -> Result<PicoUsd, CliError> {
    PicoUsd::parse(text.trim_start_matches('$'))
        .ok_or_else(|| CliError::usage(format!("{flag} {text}: give dollars such as 20 or 0.50")))
}

/// Prices of input and output tokens that the user gave, by model.
pub(crate) type UserPrices = BTreeMap<String, (PicoUsd, PicoUsd)>;

/// What `--price` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct GivenPrices {
    /// Without a name: of the run's models.
    of_run: Option<(PicoUsd, PicoUsd)>,
    by_model: UserPrices,
}

impl GivenPrices {
    /// Reads the values of the flag, `IN,OUT` and `MODEL=IN,OUT`.
    ///
    /// # Errors
    /// Exit 2 for what is no price, and for a second one.
    fn read(texts: &[String]) -> Result<Self, CliError> {
        let mut given = Self::default();
        for text in texts {
            let (model, price) = match text.rsplit_once('=') {
                Some((model, price)) => (Some(model.trim()), price),
                None => (None, text.as_str()),
            };
            let price = prices::parse_price(price).map_err(|e| CliError::usage(format!("--price {text}: {e}")))?;
            let before = match model {
                None => given.of_run.replace(price),
                Some("") => {
                    return Err(CliError::usage(format!("--price {text}: name the model, as in my-model=0.15,0.60")));
                }
                Some(model) => given.by_model.insert(without_provider(model), price),
            };
            if before.is_some() {
                return Err(CliError::usage(format!(
                    "--price {text}: that has a price already; give IN,OUT once, and MODEL=IN,OUT once for each model"
                )));
            }
        }
        Ok(given)
    }
}

/// A model as requests name it: `openai:gpt-4o` is `gpt-4o` there.
fn without_provider(model: &str) -> String {
    let named = models::parse_model(model).ok().map(|parsed| parsed.model).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| model.to_owned())
}

/// Prices that the user gave, by model: `--price` without a name holds for every model that chats, and for one that embeds if nobody
/// knows another price of it.
pub(crate) fn user_prices(app: &App, args: &SubmitArgs) -> Result<UserPrices, CliError> {
    let GivenPrices { of_run, by_model } = GivenPrices::read(&args.prices.price)?;
    let Some(price) = of_run else { return Ok(by_model) };
    let run = &app.settings().run;
    let names = chat_models(run).filter_map(|m| m.split_once(':').map(|(_, name)| name.to_owned()));
    let lines = Limits { price_lines: price_lines(app)?, ..Limits::default() };
    let [embeds, notes] = models_of_system(app);
    let embeds = embeds.filter(|name| prices::price_of(name, &lines).is_none());
    Ok(names.chain(notes).chain(embeds).map(|name| (name, price)).chain(by_model).collect())
}

/// The user's price file; none where none is set.
///
/// # Errors
/// Exit 2 for a file that cannot be read or is no price file.
pub(crate) fn price_file(app: &App) -> Result<Option<PriceTable>, CliError> {
    let Some(path) = &app.settings().models.price_file else { return Ok(None) };
    let refuse = |problem: String| CliError::usage(format!("models.price_file {}: {problem}", path.display()));
    let text = bounded::text(path, bounded::BY_HAND).map_err(|error| refuse(error.to_string()).because(error))?;
    PriceTable::read(&text).map(Some).map_err(refuse)
}

/// Prices of the run's models from the user's price file: they go with the run, so that all workers use the same.
pub(super) fn price_lines(app: &App) -> Result<BTreeMap<String, ModelPrice>, CliError> {
    let Some(table) = price_file(app)? else { return Ok(BTreeMap::new()) };
    let run = &app.settings().run;
    let names = chat_models(run).filter_map(|model| Some(model.split_once(':')?.1.to_owned()));
    let names = names.chain(models_of_system(app).into_iter().flatten());
    Ok(names.filter_map(|name| Some((name.clone(), table.price(&name)?.clone()))).collect())
}

/// The limits of a run with its meter. Which models a memory system calls is not known before: a metered run has the whole price file.
pub(super) fn metered(app: &App, priced: Limits, meter: Option<MeterPlan>) -> Result<Limits, CliError> {
    let mut limits = Limits { meter, ..priced };
    if limits.meter.is_some()
        && let Some(table) = price_file(app)?
    {
        limits.price_lines.extend(table.models().map(|(name, model)| (name.to_owned(), model.price.clone())));
    }
    Ok(limits)
}

/// Says of `--price` that no model of the run has the name that it gives; nothing where the meter may see others.
pub(crate) fn unused_prices(spec: &RunSpec) -> Option<String> {
    let SystemSpec { name, settings, .. } = &spec.system;
    let of_system = [
        vector::remote_model(name, settings).map(|model| model.name),
        facts::chat_model(name, settings).map(|model| model.name),
    ];
    let chat = std::iter::once(&spec.answerer).chain(&spec.judges).map(|model| &model.name);
    let models: Vec<&String> = chat.chain(of_system.iter().flatten()).collect();
    let is_used = |priced: &str, price: (PicoUsd, PicoUsd)| {
        let only = Limits { prices: BTreeMap::from([(priced.to_owned(), price)]), ..Limits::default() };
        models.iter().any(|model| prices::given(model, &only).is_some())
    };
    let prices = spec.limits.prices.iter().filter(|_| spec.limits.meter.is_none());
    let unused: Vec<&str> =
        prices.filter(|(name, price)| !is_used(name, **price)).map(|(name, _)| name.as_str()).collect();
    (!unused.is_empty()).then(|| {
        format!(
            "--price {}: no model of this run has that name, so that nothing is paid by it; what a memory system calls itself is seen \
             with --meter",
            unused.join(", ")
        )
    })
}

/// Who answers and judges by the settings.
fn chat_models(run: &RunSettings) -> impl Iterator<Item = &str> {
    std::iter::once(run.answerer.as_str()).chain(run.judge.iter().map(|judge| model_of_judge(judge)))
}

/// The models that the settings' memory system calls, one that embeds and one that chats: built-in ones do. A class of Python is
/// not imported for this.
fn models_of_system(app: &App) -> [Option<String>; 2] {
    let name = &app.settings().run.system;
    let settings = app.system_settings(name);
    let embeds = vector::remote_model(name, &settings).map(|model| model.name);
    [embeds, facts::chat_model(name, &settings).map(|model| model.name)]
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
    let model = if role == ModelRole::Judge { model_of_judge(text) } else { text };
    let parsed = models::parse_model(model).map_err(|e| CliError::usage(format!("{flag} {text}: {e}")).because(e))?;
    if role == ModelRole::Judge && !parsed.provider.remote {
        return Err(CliError::usage(format!("{flag} {text}: a judge is a chat model such as openai:gpt-4o-mini")));
    }
    let version = match role {
        ModelRole::Judge => rubric::VERSION,
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
    spec.params = capabilities::sent_params(&spec.provider, &spec.name, &app.model_params(role, &spec.provider)?);
    spec.account = if will_call {
        app.account(role, &spec.provider, flag)?.name
    } else {
        app.settings().account_for(role, &spec.provider).name
    };
    if parsed.provider.paid {
        check_price(app, &spec.name, args, priced)?;
    }
    Ok(spec)
}

/// Notes the hashes of the prompts that a judge will be given for questions of a dataset.
///
/// # Errors
/// A rubric that this build does not have.
pub(crate) fn add_prompts(judge: &mut ModelSpec, profile: &Profile) -> Result<(), ProfileError> {
    if judge.is_remote() {
        judge.prompts = rubric::prompt_hashes(profile)?;
    }
    Ok(())
}

/// Notes the hashes of the prompts that the answerer of a run will be given.
///
/// # Errors
/// An answer style that this build does not have.
pub(crate) fn add_answerer_prompts(spec: &mut RunSpec) -> Result<(), ProfileError> {
    if spec.answerer.is_remote() {
        spec.answerer.prompts = prompts::answerer_hashes(&spec.dataset.profile, spec.scenario, spec.recalls)?;
    }
    Ok(())
}

/// Says which answers may be longer than the output limit that is sent: they would be cut.
pub(crate) fn tell_long_styles(spec: &RunSpec) {
    let Some(limit) = capabilities::max_tokens_of(&spec.answerer.params).filter(|_| spec.answerer.is_remote()) else {
        return;
    };
    // a word of English has a token and a third
    let tokens = |words: u32| u64::from(words) * 4 / 3;
    for style in spec.dataset.profile.all_styles() {
        if let Some(words) = style.words.filter(|words| tokens(*words) > limit) {
            out::note(&format!(
                "answers of style '{}' may have {words} words and are cut after {limit} tokens: answerer.max_output_tokens lets them be longer",
                style.name
            ));
        }
    }
}

/// What the judges of a run ask for beside verdicts about questions of a dataset.
///
/// # Errors
/// A rubric that this build does not have.
pub(crate) fn judging(judges: &[ModelSpec], profile: &Profile) -> Result<JudgingSpec, ProfileError> {
    if judges.is_empty() { Ok(JudgingSpec::default()) } else { rubric::judging_spec(profile) }
}

/// Word for the dataset's own rubrics.
pub(crate) const OF_DATASET: &str = "dataset";

/// Lets judges grade all questions by one rubric, or again by those of the dataset.
///
/// # Errors
/// Exit 2 with the nearest names.
pub(crate) fn grade_by(profile: &mut Profile, rubric: &str) -> Result<(), CliError> {
    if rubric != OF_DATASET && !rubric::names(profile).any(|name| name == rubric) {
        let hint = did_you_mean(&nearest(rubric, rubric::names(profile)));
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let known = rubric::names(profile).collect::<Vec<_>>().join(", ");
        return Err(CliError::usage(format!("--rubric {rubric}{hint}: there are {OF_DATASET}, {known}")));
    }
    profile.only_rubric = Some(rubric.to_owned()).filter(|rubric| rubric != OF_DATASET);
    if rubric == OF_DATASET {
        // a fork has the profile of its source, in which others' words may stand in the place of the dataset's
        official::give_back(profile);
    }
    Ok(())
}

/// Refuses a rubric that nobody grades by.
///
/// # Errors
/// Exit 2.
pub(crate) fn check_rubric(rubric: Option<&str>, judges: &[ModelSpec]) -> Result<(), CliError> {
    match rubric {
        Some(rubric) if judges.is_empty() => {
            Err(CliError::usage(format!("--rubric {rubric}: nobody grades by it; add --judge PROVIDER:MODEL")))
        }
        _ => Ok(()),
    }
}

/// Refuses a model without a price, unless it may count as free.
pub(super) fn check_price(app: &App, model: &str, args: &SubmitArgs, priced: &Limits) -> Result<(), CliError> {
    if prices::price_of(model, priced).is_some() || args.prices.unpriced_ok || app.settings().run.unpriced_ok {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "no price is known for {model}: give it with --price {model}=IN,OUT (dollars per million tokens) or models.price_file, or --unpriced-ok to count it as free"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<GivenPrices, CliError> {
        GivenPrices::read(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_price_of_a_model_that_the_run_does_not_have_is_told_of() {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        spec.limits.meter = None;
        "gpt-4o-mini-2024-07-18".clone_into(&mut spec.answerer.name);
        let with = |names: &[&str], spec: &RunSpec| {
            let prices = names.iter().map(|name| ((*name).to_owned(), (PicoUsd(1), PicoUsd(1)))).collect();
            let limits = Limits { prices, ..spec.limits.clone() };
            unused_prices(&RunSpec { limits, ..spec.clone() })
        };
        assert_eq!((with(&[], &spec), with(&["gpt-4o-mini"], &spec)), (None, None));
        let told = with(&["gpt-4o-mini", "unknownmodel"], &spec).expect("one is unknown");
        assert!(told.starts_with("--price unknownmodel: no model of this run"), "{told}");
        spec.limits.meter = Some(MeterPlan::default());
        assert_eq!(with(&["unknownmodel"], &spec), None, "the memory system may call it");
    }

    #[test]
    fn a_price_is_of_the_runs_models_or_of_the_one_that_it_names() {
        let pair = |input: i64, output: i64| (PicoUsd(input * 1_000_000), PicoUsd(output * 1_000_000));
        let given = read(&["1,2", "openai:mine = 3, 4", "meta-llama/llama-3.1-8b:free=5,6", "llama3.1:8b=7,8"]);
        let by_model =
            [("mine", pair(3, 4)), ("meta-llama/llama-3.1-8b:free", pair(5, 6)), ("llama3.1:8b", pair(7, 8))];
        let by_model = by_model.map(|(name, price)| (name.to_owned(), price)).into();
        assert_eq!(given.expect("prices"), GivenPrices { of_run: Some(pair(1, 2)), by_model });
        assert_eq!(read(&[]).expect("none"), GivenPrices::default());
        for bad in [&["1"][..], &["m=1"], &["=1,2"], &["m="], &["1,2", "1,2"], &["m=1,2", "openai:m=3,4"]] {
            let refused = read(bad).expect_err("is refused").to_string();
            assert!(refused.contains("--price"), "{bad:?}: {refused}");
        }
    }
}
