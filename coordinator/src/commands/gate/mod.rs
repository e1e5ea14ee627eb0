//! `gate RUN --baseline B`: pass or fail for CI, by a policy. What a run is held against is told by `comparison::baseline`.
//!
//! | module | question |
//! |---|---|
//! | this one | does a run pass its policy? |
//! | [`plan`] | how often would such gates pass and fail? |
//! | [`tell`] | who is told of it, and how? |

mod plan;
mod tell;

use bench_aggregate::{
    compare::NOT_INDEPENDENT,
    gate::{
        GateFlags, Policy, gate_of_repeats,
        policy::{DEFAULT_POLICY_YAML, Floors},
    },
};
use bench_proto::{comparison::Comparison, gate::GateVerdict, ids::RunId, summary::Summary, weight};
use bench_settings::{Way, bounded};
use bench_store::{RunRow, RunState, Store};

use crate::{
    app::App,
    cli::GateArgs,
    comparison::{baseline, inputs::LoadedRun},
    exit::{CliError, CliResult, Exit},
    out, results,
    standing::{find_run, group::RunsOfGroup},
};

/// What a policy may become with all that it stands for, in bytes.
const MOST_WEIGHT: usize = 16 << 20;

/// Prints whether a run passes its policy, and writes JUnit and an alert where they are wanted. Exit 0 pass, 1 fail, 5 invalid,
/// 6 inconclusive.
pub(super) async fn run(app: &App, args: &GateArgs) -> CliResult {
    if args.print_policy {
        out::result(DEFAULT_POLICY_YAML);
        return Ok(Exit::Done);
    }
    let policy = policy(args)?;
    if let Some(path) = &args.junit {
        results::check_file(path)?;
    }
    if let Some(url) = &args.alert_url {
        Way::check_url("--alert-url", url, "http", &app.settings().allow_plaintext).map_err(CliError::usage)?;
    }
    // clap asks for it wherever no policy is printed
    let selector = args.run.as_deref().unwrap_or("latest");
    let store = app.open_store().await?;
    let (new, repeats) = match RunsOfGroup::find(store.as_ref(), selector).await? {
        Some(group) => of_group(app, store.as_ref(), &group, &policy).await?,
        None => {
            let row = find_run(store.as_ref(), selector).await?;
            check_finished(&row, &row.run_id)?;
            let run = LoadedRun::of_row(app, store.as_ref(), row).await?;
            let alone = vec![run.summary.clone()];
            (run, alone)
        }
    };
    if args.plan {
        return plan::plan(app, store.as_ref(), args, (selector, &new), &policy).await;
    }
    let baseline = match &args.baseline {
        None if args.policy.is_some() && !policy.stands_alone() => {
            return Err(CliError::usage(
                "the policy has neither floors nor ceilings, its rules need a --baseline: a run, a folder, or last:K",
            ));
        }
        None => None,
        Some(named) => {
            Some(baseline::against_named(app, store.as_ref(), &args.pairing, named, (selector, &new)).await?)
        }
    };
    let (baseline, runs) = baseline.map(|held| ((held.name, held.comparison), held.runs)).unzip();
    if let Some((_, comparison)) = &baseline {
        say_what_is_shared(comparison);
    }
    let flags = GateFlags { advisory: args.advisory, allow_inconclusive: args.allow_inconclusive };
    let mut report = gate_of_repeats(&new.summary, &repeats, baseline, &policy, flags);
    report.baseline_runs = runs.unwrap_or_default();
    tell::show(args, &report)?;
    tell::alert(args, &report).await;
    Ok(match (report.exit_code, report.verdict) {
        (0, _) => Exit::Done,
        (_, GateVerdict::Fail) => Exit::Regression,
        (_, GateVerdict::Inconclusive) => Exit::Inconclusive,
        _ => Exit::Invalid,
    })
}

/// Says that the baseline is the run itself, or what both have in common: in so far they are equal whatever has changed.
fn say_what_is_shared(comparison: &Comparison) {
    if comparison.a.id == comparison.b.id {
        let id = &comparison.a.id;
        return out::note(&format!("the baseline is {id} itself: that it passes says nothing of a change"));
    }
    comparison.notes.iter().filter(|note| note.ends_with(NOT_INDEPENDENT)).for_each(|note| out::note(note));
}

fn check_finished(row: &RunRow, resume: &RunId) -> Result<(), CliError> {
    match row.state {
        RunState::Finished => Ok(()),
        _ => Err(CliError::resumable(format!(
            "run {} is not finished; `bench-coord resume {resume}` goes on with it",
            row.run_id
        ))),
    }
}

/// The mean of a group's repeats. Its headline is theirs; of what else a floor or a ceiling is about each of them has its own.
async fn of_group(
    app: &App,
    store: &dyn Store,
    group: &RunsOfGroup,
    policy: &Policy,
) -> Result<(LoadedRun, Vec<Summary>), CliError> {
    group.runs.iter().try_for_each(|run| check_finished(run, &group.id))?;
    let mean = LoadedRun::named(app, store, &group.id.0, None).await?;
    let Floors { category, figures, .. } = &policy.floors;
    let mut repeats = Vec::new();
    if !category.is_empty() || !figures.is_empty() || !policy.ceilings.is_empty() {
        for run in &group.runs {
            repeats.push(results::summary_of(app, store, run).await?);
        }
    }
    Ok((mean, repeats))
}

fn policy(args: &GateArgs) -> Result<Policy, CliError> {
    let mut policy = match &args.policy {
        None => Policy::default(),
        Some(path) => {
            let broken = |problem: String| CliError::usage(format!("{}: {problem}", path.display()));
            let text = bounded::text(path, bounded::BY_HAND).map_err(|e| broken(e.to_string()).because(e))?;
            let short = weight::check_nesting(text.as_bytes())
                .and_then(|()| weight::check(serde_norway::Deserializer::from_str(&text), MOST_WEIGHT));
            short.and_then(|()| serde_norway::from_str(&text)).map_err(|e| broken(e.to_string()).because(e))?
        }
    };
    policy.floors.overall = args.floor.or(policy.floors.overall);
    let at = args.policy.as_ref().map_or_else(|| "--floor".to_owned(), |path| path.display().to_string());
    policy.check().map_err(|problem| CliError::usage(format!("{at}: {problem}")))?;
    Ok(policy)
}
