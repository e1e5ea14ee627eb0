//! `import`: results made elsewhere become a finished run, so that other people's numbers get our intervals.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    sync::Arc,
};

use bench_datasets::Dataset;
use bench_grading::scorers::{Scorer, registry};
use bench_plan::Sample;
use bench_proto::{
    ids::RunId,
    scenario::Scenario,
    spec::{IMPORTED_SYSTEM, SystemSpec},
};
use bench_store::Right;

use crate::{
    app::App,
    cli::ImportArgs,
    exit::{CliError, CliResult, Exit},
    import::{
        forms,
        grades::Reading,
        keep::{Results, new_run},
        lines::{self, Lines},
        ours::{Given, Ours},
        system,
    },
    out,
    planning::{self, scenario::Fewest},
    results,
    runs::ending::finish,
    standing::naming::check_new_run,
};

/// Prints the known forms.
pub(super) fn show_forms(json: bool) -> Exit {
    match json {
        true => out::json(&forms::as_json()),
        false => out::words(&forms::listing()),
    }
    Exit::Done
}

/// Reads the file, matches it with the dataset, scores it, and stores all of it as one finished run.
pub(super) async fn run(app: &App, args: &ImportArgs) -> CliResult {
    let answers = args.answers.as_deref().ok_or_else(|| CliError::usage("give --answers FILE"))?;
    let run_id = args.naming.id()?.unwrap_or_else(RunId::fresh);
    let name = args
        .sample
        .dataset
        .clone()
        .ok_or_else(|| CliError::usage("give --dataset NAME: the dataset that the answers are for"))?;
    let dataset = planning::open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    if !args.json {
        planning::tell_licence(app, dataset.manifest());
    }
    let reading = reading(args).map_err(|e| CliError::usage(format!("{}: {e}", answers.display())))?;
    let (of, file, most_bytes) = (Arc::clone(&dataset), answers.to_owned(), u64::from(args.max_mib) << 20);
    // apart: a signal ends the verb while a large file is read
    let mut lines = planning::read_apart(move || lines::read(of.as_ref(), &file, &reading, most_bytes)).await?;
    lines.notes.iter().for_each(|note| out::note(note));
    let mut sample = sample(app, args, &dataset, &lines).await?;
    sample.spec.notes.extend(lines.matched.clone());
    let questions = questions_of(dataset.as_ref(), &sample)?;
    if args.sample.preset.is_some() && !args.subset {
        keep_sampled(&mut lines, &questions, &format!("{} {}", sample.spec.preset, name)).map_err(CliError::usage)?;
    }
    let is_named = |(id, category): &(String, String)| (category.clone(), lines.names(id));
    if let Some(advice) = left_out(&questions.iter().map(is_named).collect::<Vec<_>>()) {
        out::note(&advice);
    }
    let (scenario, most) = (lines.scenario(), lines.most_retrieved());
    let dataset_spec = planning::dataset_spec(dataset.as_ref(), &sample);
    let system = SystemSpec {
        name: system_of(args, answers),
        version: IMPORTED_SYSTEM.to_owned(),
        top_k: most.filter(|_| !scenario.answers()).unwrap_or(app.settings().run.top_k),
        settings: BTreeMap::new(),
    };
    let mut results = Results::new(dataset, sample, lines.by_question, lines.metric)?;
    results.scenario = scenario;
    results.scorers = scorers_of(args, scenario, most, &results.dataset.manifest().scorers)?;
    let mut spec = results.spec(dataset_spec, system);
    if let Some(metric) = args.headline.as_ref().filter(|metric| results.metric.as_ref() != Some(*metric)) {
        planning::scenario::head(&mut spec, metric)?;
    }
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    let new_run = new_run(&args.naming, run_id, spec);
    let run_id = &new_run.run_id;
    check_new_run(store.as_ref(), args.naming.name.as_deref(), run_id).await?;
    results::check_run_folder(app, run_id, args.output_dir.as_deref())?;

    let run_no = results.keep(store.as_ref(), &new_run, &answers.display().to_string()).await?;
    finish(app, store.as_ref(), run_no, args.json, args.output_dir.as_deref()).await
}

/// The dataset's scorers and those that are asked for, which look at no more ids than the file has.
fn scorers_of(
    args: &ImportArgs,
    scenario: Scenario,
    most: Option<u32>,
    of_dataset: &[String],
) -> Result<Vec<&'static dyn Scorer>, CliError> {
    for name in args.scorer.iter().chain(&args.headline) {
        let Ok(scorer) = registry::find(name) else { continue };
        let (least, most) = (scorer.least_k(), most.unwrap_or_default());
        if least > most {
            return Err(CliError::usage(format!("{name} looks at {least} hits, and no line has more than {most}")));
        }
    }
    // a list of another system is as long as that system made it
    let any = Fewest::with_own_k(u32::MAX, None);
    let fewest = most.filter(|_| !scenario.answers()).map_or(any, |most| Fewest::with_own_k(most, None));
    let heads = args.headline.iter().filter(|name| registry::find(name).is_ok());
    let asked_for: Vec<String> = args.scorer.iter().chain(heads).cloned().collect();
    let asked_for = planning::scenario::asked_for(scenario, any, &asked_for)?;
    let mut of_dataset = planning::scenario::that_fit(scenario, fewest, of_dataset)?;
    // where nothing grades answers they stay, and the report says that what heads it has no figure
    if scenario.answers() && most.is_none() && !of_dataset.iter().all(planning::scenario::reads_recalls) {
        planning::scenario::leave_recalls_out(&mut of_dataset, "no line says what was retrieved");
    }
    let specs = planning::scenario::joined(scenario, fewest, of_dataset, asked_for);
    specs.iter().map(|spec| registry::find(&spec.name).map_err(CliError::usage_of)).collect()
}

/// What the flags say about the file.
fn reading(args: &ImportArgs) -> Result<Reading, String> {
    check_scale(args.scale)?;
    let score = args.score_field.as_ref().map(|path| format!("{}={path}", Ours::Score.name()));
    let given = Given::read(args.field.iter().chain(&score).map(String::as_str))?;
    Ok(Reading { given, scale: args.scale, reduce: args.reduce, metric: args.metric.clone() })
}

/// Grades are divided by it: by an endless one they would all be 0.
fn check_scale(scale: f64) -> Result<(), String> {
    if scale.is_finite() && scale > 0.0 {
        return Ok(());
    }
    Err(format!("--scale {scale} is not a finite number above 0"))
}

/// What was made elsewhere is a whole run unless it is said to be a part.
async fn sample(app: &App, args: &ImportArgs, dataset: &Arc<dyn Dataset>, lines: &Lines) -> Result<Sample, CliError> {
    let mut request = planning::sample_request(app, &args.sample)?;
    if args.subset {
        request.preset = None;
        request.question_ids = lines.named();
    } else if args.sample.preset.is_none() && request.preset.is_some() {
        request.preset = Some(bench_plan::Preset::Full);
    }
    request.sizes = dataset.profile().presets.clone();
    planning::take_sample(dataset, request).await
}

/// Ids and categories of the questions of a sample.
fn questions_of(dataset: &dyn Dataset, sample: &Sample) -> Result<Vec<(String, String)>, CliError> {
    let mut questions = Vec::new();
    for bank in &sample.banks {
        let outline = dataset.outline(bank.file_index as usize)?;
        let sampled = bank.questions.iter().filter_map(|index| outline.questions.get(*index as usize));
        questions.extend(sampled.map(|question| (question.question_id.clone(), question.category.clone())));
    }
    Ok(questions)
}

/// Leaves out what a file says of other questions: whoever names a preset means its questions, and files have more.
///
/// # Errors
/// Where no line is about a question of the sample.
fn keep_sampled(lines: &mut Lines, questions: &[(String, String)], sample: &str) -> Result<(), String> {
    let sampled: HashSet<&str> = questions.iter().map(|(id, _)| id.as_str()).collect();
    let before = lines.by_question.len();
    lines.by_question.retain(|id, _| sampled.contains(id.as_str()));
    lines.not_run.retain(|id| sampled.contains(id.as_str()));
    let (kept, others) = (lines.by_question.len(), before - lines.by_question.len());
    if kept == 0 && !lines.not_run.is_empty() {
        let not_run = lines.not_run.len();
        return Err(format!(
            "the file names {not_run} questions of the sample ({sample}), and none of them was run: there is nothing to import"
        ));
    }
    if kept == 0 && others > 0 {
        return Err(format!("none of the {others} questions of the file is in the sample ({sample})"));
    }
    if others > 0 {
        out::note(&format!(
            "{kept} questions of the file are in the sample ({sample}); {others} others of the dataset are left out"
        ));
    }
    Ok(())
}

/// Least part of the questions of other categories that a file names which leaves whole categories out on purpose.
const ALMOST_ALL: f64 = 0.9;

/// Advice about a file that names almost every question of a sample but none of some categories, as many published results do.
/// `asked`: the category of each question of the sample, and whether a line names it.
fn left_out(asked: &[(String, bool)]) -> Option<String> {
    // category → questions that are named, and all
    let mut categories: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (category, is_named) in asked {
        let (named, all) = categories.entry(category).or_default();
        *named += usize::from(*is_named);
        *all += 1;
    }
    let (none, some): (Vec<_>, Vec<_>) = categories.into_iter().partition(|(_, (named, _))| *named == 0);
    let (named, all) = some.iter().fold((0, 0), |(a, b), (_, (named, all))| (a + named, b + all));
    if none.is_empty() || named == 0 || (named as f64) < all as f64 * ALMOST_ALL {
        return None;
    }
    let questions: usize = none.iter().map(|(_, (_, all))| all).sum();
    let flags: Vec<String> = none.iter().map(|(category, _)| format!("--exclude-category {category}")).collect();
    let names: Vec<&str> = none.iter().map(|(category, _)| *category).collect();
    Some(format!(
        "no line names any of the {questions} questions of {}, which count as not run: {} leaves them out",
        names.join(", "),
        flags.join(" ")
    ))
}

/// The memory system that the answers are of: as it was named, else after the file.
fn system_of(args: &ImportArgs, answers: &Path) -> String {
    if let Some(named) = &args.system {
        return named.clone();
    }
    let derived = system::named_after(&answers.canonicalize().unwrap_or_else(|_| answers.to_owned()));
    out::note(&format!(
        "no --system NAME is given: the results count as those of '{derived}', after the file; runs with one name are one system"
    ));
    derived
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fields::Line;

    #[test]
    fn what_a_file_says_of_questions_that_are_not_in_the_sample_is_left_out() {
        let questions = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), "any".to_owned())).collect::<Vec<_>>();
        let lines = || {
            let by_question = ["a", "b", "c"].map(|id| (id.to_owned(), Line::default())).into();
            let not_run = ["e".to_owned()].into();
            Lines { by_question, not_run, metric: None, notes: Vec::new(), matched: None }
        };
        let kept = |ids: &[&str]| {
            let mut lines = lines();
            keep_sampled(&mut lines, &questions(ids), "fair x").map(|()| lines.by_question.into_keys().collect())
        };
        let expected: Vec<String> = vec!["a".to_owned(), "c".to_owned()];
        assert_eq!(kept(&["a", "c", "d"]), Ok(expected));
        let none: Result<Vec<String>, String> = kept(&["d"]);
        assert!(none.is_err_and(|why| why.contains("none of the 3 questions")));
        let not_run = kept(&["d", "e"]);
        assert!(not_run.is_err_and(|why| why.contains("none of them was run: there is nothing to import")));
    }

    #[test]
    fn grades_are_divided_by_a_finite_number_above_0() {
        assert_eq!((check_scale(100.0), check_scale(0.5)), (Ok(()), Ok(())));
        for scale in [0.0, -5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = check_scale(scale).expect_err("is refused");
            assert!(
                refused.starts_with("--scale ") && refused.ends_with("is not a finite number above 0"),
                "{refused}"
            );
        }
    }

    #[test]
    fn categories_that_a_file_leaves_out_are_told_with_the_flag() {
        let asked = |parts: &[(&str, usize, bool)]| -> Vec<(String, bool)> {
            let each =
                |&(category, n, named): &(&str, usize, bool)| std::iter::repeat_n((category.to_owned(), named), n);
            parts.iter().flat_map(each).collect()
        };
        let advice = left_out(&asked(&[("single-hop", 1540, true), ("adversarial", 446, false)])).expect("advice");
        assert!(
            advice.contains("446") && advice.ends_with("--exclude-category adversarial leaves them out"),
            "{advice}"
        );
        assert_eq!(left_out(&asked(&[("single-hop", 10, true), ("adversarial", 4, true)])), None);
        // a file of a few questions is about something else
        assert_eq!(
            left_out(&asked(&[("single-hop", 1, true), ("single-hop", 9, false), ("adversarial", 4, false)])),
            None
        );
        assert_eq!(left_out(&asked(&[("single-hop", 9, false)])), None);
    }
}
