//! The settings of a fork: those of its source with what flags change.

use bench_grading::prompts;
use bench_proto::spec::{Limits, RunSpec};
use bench_settings::ModelRole;

use super::source::check_same_questions;
use crate::{
    app::{App, Deployment},
    cli::{ForkFrom, SubmitArgs},
    exit::CliError,
    planning::{self, DEFAULT_CAP, UserPrices},
};

/// Provider of answerers that are the memory system itself.
const ANSWERS_ITSELF: &str = "system";

/// The source's settings with what flags change; a flag for a phase that is taken over is refused.
pub(super) fn forked_spec(app: &App, args: &SubmitArgs, source: &RunSpec, from: ForkFrom) -> Result<RunSpec, CliError> {
    let refused =
        |flag: &str| CliError::usage(format!("{flag} cannot change what a fork --from {} takes over", from.phase()));
    let prices = planning::user_prices(app, args)?;
    let priced = planning::limits(app, prices.clone())?;
    let mut spec = source.clone();
    check_same_questions(args, source, from)?;
    if let Some(top_k) = args.top_k.filter(|top_k| *top_k != source.system.top_k) {
        if from != ForkFrom::Recall {
            return Err(refused("--top-k"));
        }
        spec.system.top_k = top_k;
    }
    if let Some(answerer) = &args.answerer {
        if from == ForkFrom::Judge {
            return Err(refused("--answerer"));
        }
        spec.answerer = planning::model_spec(app, answerer, ModelRole::Answerer, args, &priced, will_call(app, args)?)?;
        planning::add_prompts(&mut spec.answerer, ModelRole::Answerer, &spec.dataset.profile)?;
    }
    if from != ForkFrom::Judge && spec.answerer.provider == ANSWERS_ITSELF {
        return Err(CliError::usage(format!(
            "a fork --from {} answers from what is recalled, and {} would answer by itself: name another with --answerer",
            from.phase(),
            source.system.name
        )));
    }
    regrade(app, args, &priced, &mut spec)?;
    planning::check_grading(spec.judges.len(), spec.votes)?;
    let before = std::mem::take(&mut spec.limits);
    spec.limits = limits(app, args, before, prices)?;
    if from == ForkFrom::Recall {
        spec.limits.latency_probe = planning::latency_probe(app)?;
    }
    let pays = !spec.judges.is_empty() || from != ForkFrom::Judge;
    if spec.limits.max_cost.is_none() && pays && planning::is_paid(&spec) {
        spec.limits.max_cost = Some(DEFAULT_CAP);
    }
    Ok(spec)
}

/// Judges, votes and scorers that flags name take the place of the source's.
fn regrade(app: &App, args: &SubmitArgs, priced: &Limits, spec: &mut RunSpec) -> Result<(), CliError> {
    if !args.judge.is_empty() {
        let judge =
            |name: &String| planning::model_spec(app, name, ModelRole::Judge, args, priced, will_call(app, args)?);
        spec.judges = args.judge.iter().map(judge).collect::<Result<_, _>>()?;
        let profile = &spec.dataset.profile;
        prompts::check(profile, spec.sample.by_category.keys().map(String::as_str), true)?;
        spec.judges.iter_mut().try_for_each(|judge| planning::add_prompts(judge, ModelRole::Judge, profile))?;
        spec.votes = args.votes.unwrap_or(1);
        spec.headline = None;
    } else if let Some(votes) = args.votes {
        spec.votes = votes;
    }
    if !args.scorer.is_empty() {
        let named: Vec<&str> = args.scorer.iter().map(String::as_str).collect();
        let before: Vec<String> = spec.scorers.iter().map(|scorer| scorer.name.clone()).collect();
        spec.scorers = planning::scorer_specs(&named, &before)?;
        spec.headline = None;
        if args.judge.is_empty() {
            // scoring again makes no calls: judgements stay with the run that paid for them
            spec.judges.clear();
        }
    }
    Ok(())
}

/// The limits of these settings; models that stay keep the prices that they were measured with.
fn limits(app: &App, args: &SubmitArgs, before: Limits, prices: UserPrices) -> Result<Limits, CliError> {
    let mut limits = planning::limits(app, before.prices.into_iter().chain(prices).collect())?;
    let lines = std::mem::take(&mut limits.price_lines);
    limits.price_lines = before.price_lines.into_iter().chain(lines).collect();
    if let Some(pool) = &args.pool {
        limits.pool.clone_from(pool);
    }
    Ok(limits)
}

/// In a cluster the keys are with the workers, and an estimate needs none.
fn will_call(app: &App, args: &SubmitArgs) -> Result<bool, CliError> {
    Ok(!args.dry_run && app.deployment()? == Deployment::Local)
}
