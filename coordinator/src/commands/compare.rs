//! `compare A B …`: paired differences, flips, and what else stands side by side.

use std::path::Path;

use bench_aggregate::{
    compare::{CompareOptions, correct_over_pairs, in_view_of_all},
    pareto::front,
};
use bench_proto::comparison::{Comparison, Word};
use bench_report::html::{self, FlipLines, FlipsPage};
use bench_store::Store;
use serde_json::json;

use crate::{
    app::App,
    cli::{CompareArgs, ComparisonFormat},
    comparison::{check_metric, inputs::LoadedRun, options, pair},
    exit::{CliError, CliResult, Exit},
    out, results,
};

/// Reads two or more runs and prints each pair, or writes it to a file; with `--output-dir` it writes comparison.json, .md and .svg, and
/// scores against costs.
/// Exit 1 when a run is worse, 5 when two cannot be compared.
pub(super) async fn run(app: &App, args: &CompareArgs) -> CliResult {
    check(args)?;
    let store = app.open_store().await?;
    let runs = loaded(app, store.as_ref(), args).await?;
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
        let all = pairs.len();
        pairs.iter_mut().for_each(|pair| decide_among(pair, all));
    }
    let (json, text, markdown) = rendered(&pairs, args.output.is_none());
    if let Some(folder) = &args.output_dir {
        write_folder(folder, &pairs, &json, &markdown)?;
    }
    let format = if args.json { ComparisonFormat::Json } else { args.format.unwrap_or(ComparisonFormat::Terminal) };
    let shown = match format {
        ComparisonFormat::Terminal => text,
        ComparisonFormat::Md => markdown,
        ComparisonFormat::Html => page(store.as_ref(), &runs, &pairs).await?,
        ComparisonFormat::Json => pretty(&json)?,
    };
    match (&args.output, format) {
        (Some(file), _) => {
            results::write_named(file, &shown)?;
            out::note(&format!("comparison: {}", file.display()));
        }
        (None, ComparisonFormat::Terminal) => out::painted(&shown),
        (None, ComparisonFormat::Json) => out::json(&json),
        (None, ComparisonFormat::Md) => out::file(out::Kind::Words, &shown),
        (None, ComparisonFormat::Html) => {
            let ids = pairs.first().map_or([""; 2], |pair| [pair.a.id.as_str(), pair.b.id.as_str()]);
            let file = results::comparison_page(&app.home(), ids, "");
            results::print_page(app, (&file, "--output FILE"), &shown)?;
        }
    }
    Ok(exit_of(&pairs))
}

/// Refuses what cannot be shown or written, before anything is read.
fn check(args: &CompareArgs) -> Result<(), CliError> {
    for (name, value) in [("--tolerance", args.tolerance), ("--category-tolerance", args.category_tolerance)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(CliError::usage(format!("{name} {value}: give a fraction; 2 points are 0.02")));
        }
    }
    if args.format == Some(ComparisonFormat::Html) && args.runs.len() != 2 {
        return Err(CliError::usage(format!("--format html shows two runs side by side, not {}", args.runs.len())));
    }
    args.output.as_deref().map_or(Ok(()), results::check_file)
}

/// The runs that are compared.
async fn loaded(app: &App, store: &dyn Store, args: &CompareArgs) -> Result<Vec<LoadedRun>, CliError> {
    let mut runs: Vec<LoadedRun> = Vec::with_capacity(args.runs.len());
    for selector in &args.runs {
        let like = runs.first().map(|run| run.spec.clone());
        let like = match (&like, spec_for_folder(app, store, args, selector).await?) {
            (Some(first), _) => Some(first.clone()),
            (None, later) => later,
        };
        runs.push(LoadedRun::named(app, store, selector, like.as_ref()).await?);
    }
    Ok(runs)
}

fn pretty(json: &serde_json::Value) -> Result<String, CliError> {
    serde_json::to_string_pretty(json)
        .map_err(|e| CliError::infrastructure(format!("the comparison cannot be written: {e}")).because(e))
}

fn write_folder(folder: &Path, pairs: &[Comparison], json: &serde_json::Value, markdown: &str) -> Result<(), CliError> {
    results::check_writable(folder)?;
    results::write_text(&folder.join("comparison.json"), &pretty(json)?)?;
    results::write_text(&folder.join("comparison.md"), markdown)?;
    results::write_text(&folder.join("comparison.svg"), &bench_report::svg::forest(pairs))?;
    for plot in bench_report::comparison::fronts(pairs, front) {
        results::write_text(&folder.join(plot.file_name), &plot.standalone())?;
    }
    out::note(&format!("comparison: {}", folder.display()));
    Ok(())
}

/// The page of two runs, with what both made of each flip.
async fn page(store: &dyn Store, runs: &[LoadedRun], pairs: &[Comparison]) -> Result<String, CliError> {
    let ([a, b], [comparison]) = (runs, pairs) else {
        return Err(CliError::usage("a page shows two runs"));
    };
    let (mut of_a, mut of_b) = (a.lines(store, &comparison.flips).await?, b.lines(store, &comparison.flips).await?);
    let lines: Vec<_> = comparison.flips.iter().filter_map(|flip| of_b.remove(&flip.question_id)).collect();
    let mut beside = match b.row() {
        Some(row) => results::beside(store, row, &lines).await?,
        None => Default::default(),
    };
    let flip = |line: bench_proto::summary::QuestionLine| {
        let mut beside = beside.remove(&line.question_id).unwrap_or_default();
        beside.other = of_a.remove(&line.question_id);
        FlipLines { line, beside }
    };
    let flips: Vec<FlipLines> = lines.into_iter().map(flip).collect();
    html::flips(FlipsPage { comparison, flips: &flips, is_stored: b.row().is_some() })
        .map_err(CliError::infrastructure_of)
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

/// As JSON, as text and as Markdown; text as the reader's screen wants it, or as a file does.
fn rendered(pairs: &[Comparison], on_screen: bool) -> (serde_json::Value, String, String) {
    use bench_report::comparison as formats;
    let view = if on_screen { out::view() } else { bench_report::terminal::View::default() };
    match pairs {
        [one] => (json!(one), formats::terminal(one, view), formats::markdown(one)),
        pairs => (
            json!({"schema_version": bench_proto::comparison::COMPARISON_SCHEMA_VERSION, "pairs": pairs}),
            formats::pairs_terminal(pairs, front, view),
            formats::pairs_markdown(pairs, front),
        ),
    }
}

/// Gives a pair of several runs the word that holds among all pairs, and says so where it had another one by itself.
fn decide_among(pair: &mut Comparison, pairs: usize) {
    let (alone, p_holm) = (pair.verdict, pair.paired.p_holm);
    let word = in_view_of_all(alone, p_holm);
    (pair.verdict, pair.paired.verdict) = (word, word);
    if word != alone {
        pair.notes.push(format!(
            "{} by itself, but among {pairs} pairs a difference like this is no surprise (p (Holm) {:.3}): {}",
            alone.name(),
            p_holm.unwrap_or(1.0),
            word.name()
        ));
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

#[cfg(test)]
mod tests {
    use bench_aggregate::compare::{RunFacts, Side, compare};
    use bench_proto::{spec::RunSpec, summary::Summary};

    use super::*;

    #[test]
    fn of_several_runs_a_pair_decides_by_its_corrected_p() {
        let text = include_str!("../../../proto/golden/run_spec.v1.json");
        let spec: RunSpec = serde_json::from_str(text).expect("a golden spec");
        let text = include_str!("../../../proto/golden/report.v4.json");
        let summary: Summary = serde_json::from_str(text).expect("a golden report");
        let facts = RunFacts::new("judge", 10);
        let side = Side { spec: &spec, summary: &summary, facts: &facts, members: &[] };
        let mut comparison = compare(&side, &side, &CompareOptions::default());
        (comparison.comparable, comparison.notes) = (true, Vec::new());
        let among_three = |word: Word, p_holm: f64| {
            let mut pair = comparison.clone();
            (pair.verdict, pair.paired.verdict, pair.paired.p_holm) = (word, word, Some(p_holm));
            decide_among(&mut pair, 3);
            assert_eq!(pair.verdict, pair.paired.verdict);
            (pair.verdict, pair.notes.len(), exit_of(&[pair]))
        };
        assert_eq!(among_three(Word::Worse, 0.09), (Word::Inconclusive, 1, Exit::Done));
        assert_eq!(among_three(Word::Worse, 0.04), (Word::Worse, 0, Exit::Regression));
        assert_eq!(among_three(Word::NoChange, 1.0), (Word::NoChange, 0, Exit::Done));
    }
}
