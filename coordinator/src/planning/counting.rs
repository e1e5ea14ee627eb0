//! Somebody else's counting, as flags name it: what it makes of a run's judges, rubrics and totals.

use bench_grading::counting::{self, Counting, OUR_WORDS};
use bench_proto::{
    nearest::{did_you_mean, nearest},
    spec::RunSpec,
};

use crate::{cli::SubmitArgs, exit::CliError};

/// The counting that flags name for a dataset, if they do.
///
/// # Errors
/// Exit 2: unknown names, a counting of another dataset, a dataset whose authors' judge is not known.
pub(crate) fn chosen(args: &SubmitArgs, dataset: &str) -> Result<Option<&'static Counting>, CliError> {
    let dataset = bench_datasets::full_name(dataset).split('@').next().unwrap_or_default();
    // what is generated in a dataset's likeness is counted as it is
    let likeness = dataset.strip_suffix("-sim").unwrap_or(dataset);
    let counting = match (&args.count_as, args.canonical_judge) {
        (None, false) => return Ok(None),
        (None, true) => counting::canonical(likeness).ok_or_else(|| {
            CliError::usage(format!(
                "--canonical-judge: how the authors of {dataset} grade is not known; name a judge with --judge"
            ))
        })?,
        (Some(name), _) => counting::find(name).ok_or_else(|| {
            let names = counting::COUNTINGS.iter().map(|counting| counting.name);
            let hint = did_you_mean(&nearest(name, names)).map(|hint| format!(" ({hint})")).unwrap_or_default();
            CliError::usage(format!("--count-as {name}: unknown{hint}; `bench-coord score --counting` lists all"))
        })?,
    };
    if counting.dataset != likeness {
        return Err(CliError::usage(format!(
            "--count-as {}: it counts {}, and this is {dataset}",
            counting.name, counting.dataset
        )));
    }
    Ok(Some(counting))
}

/// The judges of a run that is counted so: those that were named, else the counting's own.
///
/// # Errors
/// Exit 2 where a judge is named and none judges, or none is and one is needed.
pub(crate) fn judges(counting: &Counting, named: &[String]) -> Result<Vec<String>, CliError> {
    match (counting.scorer(), named, counting.judge) {
        (Some(_), [], _) => Ok(Vec::new()),
        (Some(scorer), ..) => Err(CliError::usage(format!(
            "--count-as {}: no model judges there, {scorer} does; leave --judge out",
            counting.name
        ))),
        (None, [], Some(own)) => Ok(vec![own.to_owned()]),
        (None, [], None) => Err(CliError::usage(format!(
            "--count-as {}: any model may judge there; name one with --judge",
            counting.name
        ))),
        (None, named, _) => Ok(named.to_vec()),
    }
}

/// Notes in the spec of a run what it is held to; its judges, their words and scorers are chosen.
///
/// # Errors
/// Exit 2 where what is counted is not measured, and for `official` where the words are not the authors'.
pub(crate) fn note(counting: &'static Counting, spec: &mut RunSpec) -> Result<(), CliError> {
    let judge = spec.judge_plan().metrics.into_iter().next();
    let metric = counting.scorer().map(str::to_owned).or(judge).unwrap_or_default();
    if !spec.scenario.answers() {
        return Err(CliError::usage(format!("--count-as {}: it counts answers, and this run has none", counting.name)));
    }
    let named = counting.in_words_of(&spec.dataset.profile);
    if named.name != counting.name && named.name.ends_with(OUR_WORDS) {
        return Err(CliError::usage(format!(
            "--count-as {}: only the words of its authors are official, add --judge-prompts FILE; --count-as {} is the same rules \
             in our words",
            counting.name, named.name
        )));
    }
    spec.counting = Some(named.spec(&metric, &spec.judges, spec.votes, &spec.dataset.profile));
    if let Some(scorer) = counting.scorer() {
        super::scenario::head(spec, scorer)?;
    }
    Ok(())
}
