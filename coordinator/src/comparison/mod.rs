//! Two runs side by side, for `compare`, `gate` and `report --baseline`: how they are paired, and by what.
//!
//! In come runs of the store or folders with a report ([`inputs`]); out comes a [`Comparison`], which `bench_aggregate` computes
//! and `bench_report` prints. [`baseline`] is what a gate holds a run against, [`before`] the runs before it that may be that, [`matrix`]
//! all pairs of a matrix.

pub(crate) mod baseline;
pub(crate) mod before;
pub(crate) mod inputs;
pub(crate) mod matrix;
mod seeds;

use bench_aggregate::compare::{CompareOptions, common_metric, compare, fingerprints::TESTABLE};
use bench_proto::comparison::Comparison;
use bench_store::Store;

use self::inputs::LoadedRun;
use crate::{app::App, cli::PairingArgs, exit::CliError};

/// The options that `compare` and `gate` share.
///
/// # Errors
/// Exit 2 for groups that cannot be under test.
pub(crate) fn options(app: &App, pairing: &PairingArgs) -> Result<CompareOptions, CliError> {
    if let Some(unknown) = pairing.under_test.iter().find(|name| !TESTABLE.contains(&name.as_str()) && *name != "all") {
        return Err(CliError::usage(format!("--under-test {unknown}: give {}, or all", TESTABLE.join(", "))));
    }
    Ok(CompareOptions {
        metric: pairing.metric.clone(),
        under_test: pairing.under_test.clone(),
        seed: app.settings().stats_seed,
        ..CompareOptions::default()
    })
}

/// Refuses a metric that a person named and a run does not have.
///
/// # Errors
/// Exit 2 with those that it has.
pub(crate) fn check_metric(pairing: &PairingArgs, run: &LoadedRun) -> Result<(), CliError> {
    let known: Vec<&str> = run.summary.scores.iter().map(|score| score.metric.as_str()).collect();
    match pairing.metric.as_deref().filter(|metric| !known.contains(metric)) {
        None => Ok(()),
        Some(metric) => Err(CliError::usage(format!(
            "--metric {metric}: run {0} has {1}; `bench-coord rescore {0} --scorer NAME` and `rejudge` make a run that has others",
            run.summary.run.id,
            known.join(", ")
        ))),
    }
}

/// The metric that two runs are compared by, and the number of hits that both were asked for.
pub(crate) fn figures_of_both(a: &LoadedRun, b: &LoadedRun, options: &CompareOptions) -> (String, u32) {
    (common_metric(&a.spec, options), a.spec.system.top_k.min(b.spec.system.top_k))
}

/// Compares two runs; with texts in the flips when they are wanted.
///
/// # Errors
/// What the store meets.
pub(crate) async fn pair(
    store: &dyn Store,
    a: &LoadedRun,
    b: &LoadedRun,
    options: &CompareOptions,
    texts: bool,
) -> Result<Comparison, CliError> {
    let (metric, top_k) = figures_of_both(a, b, options);
    let (of_a, of_b) = tokio::try_join!(a.facts(store, &metric, top_k), b.facts(store, &metric, top_k))?;
    let mut comparison = compare(&a.side(&of_a), &b.side(&of_b), options);
    for (run, which) in [(a, "first"), (b, "second")] {
        if run.repeats() > 1 {
            comparison.notes.push(format!(
                "the {which} is the mean over {} repeats of {}, question by question; what is no figure of questions is that of its \
                 first repeat",
                run.repeats(),
                run.summary.run.id
            ));
        }
    }
    if texts {
        a.fill(store, &mut comparison.flips, |flip| &mut flip.a).await?;
        b.fill(store, &mut comparison.flips, |flip| &mut flip.b).await?;
    }
    Ok(comparison)
}
