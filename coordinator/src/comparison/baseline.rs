//! What a gate holds a run against: a run, a group, a folder, or the mean of the last ones before it.

use std::{collections::BTreeSet, path::Path};

use bench_aggregate::{
    compare::{Member, RunFacts, Side, common_metric, compare, fingerprints::is_of_version},
    repeats::{RepeatTable, Repeated, mean_of},
};
use bench_proto::{
    comparison::{Comparison, MarkedDifference},
    gate::BaselineRun,
    summary::Interval,
};
use bench_store::Store;

use super::{
    before::{has_metric, last, last_of},
    check_metric,
    inputs::LoadedRun,
    options, pair,
};
use crate::{
    app::App,
    cli::PairingArgs,
    exit::{CliError, Exit},
    out,
    standing::{group::RunsOfGroup, look_for_run},
};

/// What a run is held against.
pub(crate) struct Held {
    /// The baseline as reports call it: the id of a run, or of how many runs it is the mean.
    pub(crate) name: String,
    /// The baseline beside the run.
    pub(crate) comparison: Comparison,
    /// The runs that `last:K` has found.
    pub(crate) runs: Vec<BaselineRun>,
}

/// As [`against`]; where nobody has a run of that name (a nightly run that was missed, one that was deleted) the newest comparable one
/// takes its place, and the comparison says so.
///
/// # Errors
/// Exit 2 for a baseline that is not there or is the run itself, exit 5 where there is no run before; what the store meets.
pub(crate) async fn against_named(
    app: &App,
    store: &dyn Store,
    pairing: &PairingArgs,
    named: &str,
    (selector, new): (&str, &LoadedRun),
) -> Result<Held, CliError> {
    let is_run = last_of(named)?.is_none() && !named.contains('/') && !Path::new(named).exists();
    let is_missing =
        is_run && RunsOfGroup::find(store, named).await?.is_none() && look_for_run(store, named).await?.is_none();
    if !is_missing {
        return against(app, store, pairing, named, (selector, new)).await;
    }
    let found = against(app, store, pairing, "last:1", (selector, new)).await;
    let mut held = found.map_err(|error| match error.exit {
        Exit::Invalid => CliError::usage(format!("there is no baseline '{named}', and {}", error.message)),
        _ => error,
    })?;
    held.name.clone_from(&held.comparison.a.id);
    let note =
        format!("there is no baseline '{named}': the newest comparable run before, {}, took its place", held.name);
    out::note(&note);
    held.comparison.notes.push(note);
    Ok(held)
}

/// The baseline and the comparison with it.
async fn against(
    app: &App,
    store: &dyn Store,
    pairing: &PairingArgs,
    named: &str,
    (selector, new): (&str, &LoadedRun),
) -> Result<Held, CliError> {
    let mut options = options(app, pairing)?;
    check_metric(pairing, new)?;
    let metric = common_metric(&new.spec, &options);
    let Some(k) = last_of(named)? else {
        let old = LoadedRun::named(app, store, named, Some(&new.spec)).await?;
        let is_itself = old.summary.run.id == new.summary.run.id;
        // who types one name twice knows; who names a baseline by the name of all runs does not
        if named != selector && is_itself {
            return Err(CliError::usage(format!(
                "--baseline {named} is the run itself ({}): name the one before it, such as {named}@2 where runs have one name, or last:1",
                new.summary.run.id
            )));
        }
        check_metric(pairing, &old)?;
        // the run under test says by what, unless its baseline has no such figure
        if has_metric(&old, &metric) {
            options.metric = Some(metric);
        }
        let name = old.summary.run.id.clone();
        return Ok(Held { name, comparison: pair(store, &old, new, &options, true).await?, runs: Vec::new() });
    };
    options.metric = Some(metric.clone());
    let (mut olds, runs): (Vec<LoadedRun>, Vec<BaselineRun>) =
        last(app, store, (selector, new), k, &options).await?.into_iter().unzip();
    let top_k = olds.iter().map(|old| old.spec.system.top_k).fold(new.spec.system.top_k, u32::min);
    let mut facts = Vec::with_capacity(olds.len());
    for old in &olds {
        facts.push(old.facts(store, &metric, top_k).await?);
    }
    let shown = shown_of(&olds, &facts, &metric, options.seed);
    let mean = RunFacts::mean(facts);
    let of_new = new.facts(store, &metric, top_k).await?;
    let count = olds.len();
    let members: Vec<Member> = olds.iter().flat_map(|old| old.members.iter().cloned()).collect();
    // the newest of them lends its settings, latency and cost
    let newest = olds.swap_remove(0);
    let of_olds = Side { members: &members, ..newest.side(&mean) };
    let mut comparison = compare(&of_olds, &new.side(&of_new), &options);
    if count > 1 {
        (comparison.a.value, comparison.a.ci95) = shown;
    }
    comparison.notes.push(format!(
        "the baseline is the mean of the last {count} {} {}{}, question by question; latency and cost are those of the newest",
        if count == 1 { "run" } else { "runs" },
        of_which_settings(&runs),
        if count < k { format!(" ({k} were asked for, and there are no more)") } else { String::new() },
    ));
    new.fill(store, &mut comparison.flips, |flip| &mut flip.b).await?;
    let name = match count < k {
        true => format!("mean of the last {count} ({k} asked for)"),
        false => format!("mean of the last {count}"),
    };
    Ok(Held { name, comparison, runs })
}

/// What the settings of a baseline's runs are beside those of the run under test. They have the same ones among themselves.
fn of_which_settings(runs: &[BaselineRun]) -> String {
    let is_set = |differs: &&MarkedDifference| differs.under_test && !is_of_version(&differs.key);
    let all: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.differences.iter().filter(is_set)).map(|differs| differs.key.as_str()).collect();
    match all.is_empty() {
        true => "of the same settings".to_owned(),
        false => format!("of other settings ({})", all.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// What some runs score together by a metric, with its interval: as repeats do.
fn shown_of(runs: &[LoadedRun], facts: &[RunFacts], metric: &str, seed: u64) -> (Option<f64>, Option<Interval>) {
    let Some(first) = runs.first() else { return (None, None) };
    let mut table = RepeatTable::default();
    facts.iter().for_each(|facts| table.add(facts, &first.spec.dataset.profile.headline, None));
    let score = |run: &LoadedRun| {
        let of_metric = run.summary.scores.iter().find(|score| score.metric == metric)?;
        of_metric.total(run.summary.headline.estimator)
    };
    let headlines: Vec<f64> = runs.iter().filter_map(score).collect();
    let of = Repeated {
        spec: &first.spec,
        metric,
        headlines: &headlines,
        filled_anew: true,
        fills_alike: false,
        answers_draw: true,
        judges_draw: true,
        seed,
    };
    let mean = mean_of(&table, &of);
    (mean.value, mean.ci95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_canaries_go_belongs_to_the_version_and_is_no_other_setting() {
        let run = |keys: &[&str]| {
            let differs = |key: &&str| MarkedDifference {
                key: (*key).to_owned(),
                left: "1".to_owned(),
                right: "2".to_owned(),
                group: "system".to_owned(),
                under_test: true,
            };
            let differences = keys.iter().map(differs).collect();
            BaselineRun { id: "before".to_owned(), name: None, notes: Vec::new(), differences }
        };
        assert_eq!(of_which_settings(&[run(&["system.version", "system.canaries"])]), "of the same settings");
        let told = of_which_settings(&[run(&["system.canaries", "system.top_k"])]);
        assert_eq!(told, "of other settings (system.top_k)");
    }
}
