//! `compare A B …`: paired differences, flips, and what else stands side by side.

use bench_aggregate::compare::{CompareOptions, correct_over_pairs};
use bench_proto::comparison::{Comparison, Word};
use bench_store::Store;
use serde_json::json;

use crate::{
    app::App,
    cli::CompareArgs,
    comparison::{check_metric, inputs::LoadedRun, options, pair},
    exit::{CliError, CliResult, Exit},
    out, results,
};

/// Reads two or more runs and prints each pair; with `--output-dir` it writes comparison.json, .md and .svg. Exit 1 when a run
/// is worse, 5 when two cannot be compared.
pub(super) async fn run(app: &App, args: &CompareArgs) -> CliResult {
    for (name, value) in [("--tolerance", args.tolerance), ("--category-tolerance", args.category_tolerance)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(CliError::usage(format!("{name} {value}: give a fraction; 2 points are 0.02")));
        }
    }
    let store = app.open_store().await?;
    let mut runs: Vec<LoadedRun> = Vec::with_capacity(args.runs.len());
    for selector in &args.runs {
        let like = runs.first().map(|run| run.spec.clone());
        let like = match (&like, spec_for_folder(app, store.as_ref(), args, selector).await?) {
            (Some(first), _) => Some(first.clone()),
            (None, later) => later,
        };
        runs.push(LoadedRun::named(app, store.as_ref(), selector, like.as_ref()).await?);
    }
    let options = CompareOptions {
        tolerance: args.tolerance,
        category_tolerance: args.category_tolerance,
        flips: args.flips,
        ..options(app, &args.pairing)?
    };
    runs.iter().try_for_each(|run| check_metric(&args.pairing, run))?;
    let mut pairs = Vec::new();
    for (i, a) in runs.iter().enumerate() {
        for b in &runs[i + 1..] {
            pairs.push(pair(store.as_ref(), a, b, &options, runs.len() == 2).await?);
        }
    }
    if runs.len() > 2 {
        correct_over_pairs(&mut pairs);
    }
    let (json, text, markdown) = rendered(&pairs);
    if let Some(folder) = &args.output_dir {
        results::check_writable(folder)?;
        let pretty = serde_json::to_string_pretty(&json)
            .map_err(|e| CliError::infrastructure(format!("the comparison cannot be written: {e}")).because(e))?;
        let plot = bench_report::svg::forest(&pairs);
        for (name, text) in [("comparison.json", &pretty), ("comparison.md", &markdown), ("comparison.svg", &plot)] {
            results::write_atomically(&folder.join(name), |file| std::io::Write::write_all(file, text.as_bytes()))?;
        }
        out::note(&format!("comparison: {}", folder.display()));
    }
    if args.json {
        out::json(&json);
    } else {
        out::painted(&text);
    }
    Ok(exit_of(&pairs))
}

/// The settings that a folder in first place borrows: those of the first run of the store that is named. Of folders alone the
/// reports have to say everything.
async fn spec_for_folder(
    app: &App,
    store: &dyn Store,
    args: &CompareArgs,
    selector: &str,
) -> Result<Option<bench_proto::spec::RunSpec>, CliError> {
    if !std::path::Path::new(selector).exists() {
        return Ok(None);
    }
    match args.runs.iter().find(|other| !std::path::Path::new(other).exists()) {
        Some(other) => LoadedRun::named(app, store, other, None).await.map(|run| Some(run.spec)),
        None => Ok(None),
    }
}

fn rendered(pairs: &[Comparison]) -> (serde_json::Value, String, String) {
    use bench_report::comparison as formats;
    let view = out::view();
    match pairs {
        [one] => (json!(one), formats::terminal(one, view), formats::markdown(one)),
        pairs => (
            json!({"schema_version": bench_proto::comparison::COMPARISON_SCHEMA_VERSION, "pairs": pairs}),
            formats::pairs_terminal(pairs, view),
            formats::pairs_markdown(pairs),
        ),
    }
}

fn exit_of(pairs: &[Comparison]) -> Exit {
    if pairs.iter().any(|pair| !pair.comparable) {
        Exit::Invalid
    } else if pairs.iter().any(|pair| pair.verdict == Word::Worse) {
        Exit::Regression
    } else {
        Exit::Done
    }
}
