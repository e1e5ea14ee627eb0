//! How often gates with a policy pass, fail and end undecided: simulated runs of the questions that there are.

use bench_aggregate::{
    compare::{Rates, RunFacts, common_metric},
    gate::Policy,
    simulate::{DecisionCase, Ends, Sampled, ends},
};
use bench_proto::gate::{GatePlan, PlannedGate};
use bench_report::gate as view;
use bench_store::Store;

use crate::{
    app::App,
    cli::GateArgs,
    comparison::{
        before::{last, last_of},
        check_metric,
        inputs::LoadedRun,
        options,
    },
    exit::{CliError, CliResult, Exit},
    out,
};

/// Simulated pairs of runs of a plan.
const PLANNED: u32 = 2_000;
/// Variance of a question's verdict from run to run where one run alone is known: one verdict in twenty is turned.
const TURNED: f64 = 0.0475;
/// Standard deviation, on the logit scale, of what filling a bank anew does to its questions.
const BANK_NOISE: f64 = 0.3;

/// Says how gates with this policy end, for runs of the questions of `new`.
pub(super) async fn plan(
    app: &App,
    store: &dyn Store,
    args: &GateArgs,
    (selector, new): (&str, &LoadedRun),
    policy: &Policy,
) -> CliResult {
    let options = options(app, &args.pairing)?;
    check_metric(&args.pairing, new)?;
    let (metric, top_k) = (common_metric(&new.spec, &options), new.spec.system.top_k);
    let last_runs = args.baseline.as_deref().map_or(Ok(None), last_of)?;
    // each run is a draw of its own, also where the mean of several is what is held
    let mut facts: Vec<RunFacts> = new.facts_of_each(store, &metric, top_k).await?.into_iter().flatten().collect();
    let olds: Vec<LoadedRun> = match (last_runs, &args.baseline) {
        (Some(k), _) => {
            let found = last(app, store, (selector, new), k, &options).await?;
            found.into_iter().map(|(old, _)| old).collect()
        }
        (None, Some(named)) => vec![LoadedRun::named(app, store, named, Some(&new.spec)).await?],
        (None, None) => Vec::new(),
    };
    // there may be fewer of the last ones than were asked for
    let of_baseline = olds.iter().map(LoadedRun::repeats).sum::<usize>().max(1);
    for old in olds {
        check_metric(&args.pairing, &old)?;
        facts.extend(old.facts_of_each(store, &metric, top_k).await?.into_iter().flatten());
    }
    let Rates { banks, categories, noise } = RunFacts::rates(&facts, TURNED);
    if banks.is_empty() {
        return Err(CliError::usage(format!(
            "no question of {selector} has a score by '{metric}': nothing to plan with"
        )));
    }
    let tolerance = policy.overall.map_or(0.0, |rule| rule.tolerance);
    let number = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
    // a sample's score is weighted to the dataset, in the gate too
    let of_category = |name: &String| new.spec.dataset.population.get(name).copied();
    let weighted = new.spec.sample.stratified && categories.iter().all(|name| of_category(name).is_some());
    let population = (0..).zip(categories.iter().filter(|_| weighted).filter_map(of_category));
    let case = DecisionCase {
        count: banks.len(),
        banks,
        sampled: Sampled::Full,
        population: population.collect(),
        bank_noise: BANK_NOISE,
        drop: 0.0,
        baseline_runs: number(of_baseline),
        runs: number(new.repeats()),
        tolerance,
    };
    let (falls, beyond_score) = case.falls();
    let planned = GatePlan {
        draws: PLANNED,
        questions: case.banks.iter().map(|bank| bank.len() as u64).sum(),
        banks: case.banks.len() as u64,
        baseline_runs: case.baseline_runs,
        runs: case.runs,
        verdict_variance: noise,
        measured_over: facts.len() as u64,
        bank_noise: BANK_NOISE,
        cases: planned_ends(&case, &falls, policy, app.settings().stats_seed),
        beyond_score,
        not_simulated: policy.beside_scores().into_iter().map(str::to_owned).collect(),
    };
    if args.json {
        out::json(&planned);
    } else {
        out::painted(&view::plan(&planned, out::view()));
    }
    Ok(Exit::Done)
}

/// How gates end at each of some falls of the score.
fn planned_ends(case: &DecisionCase, falls: &[f64], policy: &Policy, seed: u64) -> Vec<PlannedGate> {
    let at = |drop: &f64| {
        let Ends { pass, fail, inconclusive } =
            ends(&DecisionCase { drop: *drop, ..case.clone() }, policy, PLANNED, seed);
        PlannedGate { drop: *drop, pass, fail, inconclusive }
    };
    falls.iter().map(at).collect()
}
