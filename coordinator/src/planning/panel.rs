//! Judges that grade a part of a run's questions: how they are named (`--judge strong=200`), and which questions they get.

use std::{collections::HashSet, sync::Arc};

use bench_datasets::Dataset;
use bench_plan::Sample;
use bench_proto::{
    dataset::Question,
    facts::judge_metric,
    ids::{RunNo, TaskKey},
    panel::JudgedSample,
    spec::RunSpec,
    step::StepNo,
};
use bench_store::{RunRow, Store};
use bench_worker::banks::BankQuestions;

use super::read_apart;
use crate::{cli::model_of_judge, exit::CliError};

/// Texts that are read at once.
const TEXTS_AT_ONCE: usize = 256;

/// A category and an id.
type Asked = (String, String);

/// How many questions each judge grades, by its place; none for all of them.
///
/// # Errors
/// Exit 2 for a number that is none, and for a first judge that does not grade all questions.
pub(crate) fn sizes(judges: &[String]) -> Result<Vec<Option<u64>>, CliError> {
    let size = |judge: &String| {
        let Some((model, n)) = judge.rsplit_once('=') else { return Ok(None) };
        match n.parse() {
            Ok(n) if n >= FEWEST => Ok(Some(n)),
            _ => Err(CliError::usage(format!(
                "--judge {judge}: behind = stands how many questions {model} grades, at least {FEWEST}, such as {model}=200"
            ))),
        }
    };
    let sizes: Vec<Option<u64>> = judges.iter().map(size).collect::<Result<_, _>>()?;
    if let (Some(first), Some(Some(n))) = (judges.first(), sizes.first()) {
        return Err(CliError::usage(format!(
            "--judge {first}: the first judge grades all questions, and those of a sample are held against it: name a cheap one first, \
             as in --judge openai:gpt-4o-mini --judge {}={n}",
            model_of_judge(first)
        )));
    }
    Ok(sizes)
}

/// Two grades have a variance.
const FEWEST: u64 = 2;

/// Refuses samples where somebody else's counting says who judges.
///
/// # Errors
/// Exit 2.
pub(crate) fn check_counting(judges: &[String], counting: &str) -> Result<(), CliError> {
    match judges.iter().find(|judge| judge.contains('=')) {
        Some(judge) => Err(CliError::usage(format!(
            "--judge {judge}: the run is counted as {counting}, which counts judgements of all questions; leave the number out, or the counting"
        ))),
        None => Ok(()),
    }
}

/// Chooses the questions of judges with a sample, among those of a run that is planned.
///
/// # Errors
/// As [`check_headline`], and what the dataset meets.
pub(crate) async fn choose(
    spec: &mut RunSpec,
    sizes: &[Option<u64>],
    dataset: &Arc<dyn Dataset>,
    sample: &Sample,
) -> Result<(), CliError> {
    if sizes.iter().all(Option::is_none) {
        return Ok(());
    }
    let (dataset, banks) = (Arc::clone(dataset), sample.banks.clone());
    let asked = read_apart(move || {
        let mut asked: Vec<Asked> = Vec::new();
        for bank in &banks {
            let outline = dataset.outline(bank.file_index as usize)?;
            let of_bank = bank.questions.iter().filter_map(|index| outline.questions.get(*index as usize));
            asked.extend(of_bank.map(|question| (question.category.clone(), question.question_id.clone())));
        }
        Ok(asked)
    });
    set(spec, sizes, &asked.await?);
    check_headline(spec)
}

/// The questions of a bank of which a step is stored.
///
/// # Errors
/// What the store meets.
pub(crate) async fn with_step(
    store: &dyn Store,
    run: RunNo,
    (bank_no, bank): (u32, &BankQuestions),
    step: StepNo,
) -> Result<HashSet<TaskKey>, CliError> {
    let tasks: Vec<TaskKey> = bank.asked().map(|question| TaskKey::question(bank_no, question.index)).collect();
    let mut held = HashSet::new();
    for part in tasks.chunks(TEXTS_AT_ONCE) {
        held.extend(store.step_texts(run, part, step).await?.into_iter().map(|(task, _)| task));
    }
    Ok(held)
}

/// The same among the questions of a run that is there, of which those that keep their answers (`keeps_answers`) need one to be
/// judged; a fork that names no judges keeps the samples of its source.
///
/// # Errors
/// As [`sizes`] and [`check_headline`], and what the store meets.
pub(crate) async fn choose_stored(
    store: &dyn Store,
    source: &RunRow,
    spec: &mut RunSpec,
    (judges, keeps_answers): (&[String], bool),
) -> Result<(), CliError> {
    if judges.is_empty() {
        let judged = u32::try_from(spec.judges.len()).unwrap_or(u32::MAX);
        let kept = source.spec.judging.samples.iter().filter(|sample| sample.judge < judged).cloned();
        spec.judging.samples = kept.collect();
        return check_headline(spec);
    }
    let sizes = sizes(judges)?;
    if sizes.iter().all(Option::is_none) {
        return Ok(());
    }
    if let Some(counting) = &spec.counting {
        check_counting(judges, &counting.name)?;
    }
    let mut asked: Vec<Asked> = Vec::new();
    for row in store.banks(source.run_no, None).await? {
        let bank = BankQuestions::read(store, &row).await?;
        let answered = match keeps_answers {
            true => Some(with_step(store, source.run_no, (row.bank_no, &bank), StepNo::ANSWER).await?),
            false => None,
        };
        let is_judged = |question: &&Question| {
            let task = TaskKey::question(row.bank_no, question.index);
            answered.as_ref().is_none_or(|answered| answered.contains(&task))
        };
        let judged = bank.asked().filter(is_judged);
        asked.extend(judged.map(|question| (question.category.clone(), question.question_id.clone())));
    }
    set(spec, &sizes, &asked);
    check_headline(spec)
}

/// Refuses a headline of a judge that grades a sample: it would be told as the score of all questions.
///
/// # Errors
/// Exit 2.
fn check_headline(spec: &RunSpec) -> Result<(), CliError> {
    let headline = spec.headline_metric();
    let gives = |sample: &&JudgedSample| {
        let rest = headline.strip_prefix(&judge_metric(sample.judge as usize));
        rest.is_some_and(|part| part.is_empty() || part.starts_with('.'))
    };
    match spec.judging.samples.iter().find(gives) {
        Some(sample) => Err(CliError::usage(format!(
            "--headline {headline}: its judge grades {} of {} questions, and a headline is of all; name one of the first judge's, \
             or leave out the judge's number",
            sample.n, spec.sample.n
        ))),
        None => Ok(()),
    }
}

/// A judge whose sample would be all questions grades all of them.
fn set(spec: &mut RunSpec, sizes: &[Option<u64>], asked: &[Asked]) {
    let questions = || asked.iter().map(|(category, id)| (category.as_str(), id.as_str()));
    let sampled = (0..).zip(sizes).filter_map(|(judge, size)| Some((judge, (*size)?)));
    let smaller = sampled.filter(|(_, size)| *size < asked.len() as u64);
    spec.judging.samples = smaller.map(|(judge, size)| JudgedSample::choose(judge, size, questions())).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(judges: &[&str]) -> Result<Vec<Option<u64>>, String> {
        let judges: Vec<String> = judges.iter().map(|judge| (*judge).to_owned()).collect();
        sizes(&judges).map_err(|error| error.to_string())
    }

    #[test]
    fn a_judge_of_a_sample_heads_no_report() {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        spec.judging.samples = vec![JudgedSample::choose(1, 2, [("a", "1"), ("a", "2"), ("a", "3")].into_iter())];
        let mut headed = |metric: &str| {
            spec.headline = Some(metric.to_owned());
            check_headline(&spec).map_err(|error| error.to_string())
        };
        for of_all in ["judge", "judge.hallucination", "judge-3", "judge-22", "f1"] {
            assert_eq!(headed(of_all), Ok(()), "{of_all}");
        }
        for of_sample in ["judge-2", "judge-2.hallucination"] {
            assert!(headed(of_sample).expect_err("is refused").contains("a headline is of all"), "{of_sample}");
        }
    }

    #[test]
    fn a_judge_is_named_with_the_number_of_its_questions() {
        assert_eq!(named(&["openai:a", "openai:b=200", "openai:c"]), Ok(vec![None, Some(200), None]));
        assert_eq!((model_of_judge("openai:b=200"), model_of_judge("openai:b")), ("openai:b", "openai:b"));
        let refused = |judges: &[&str]| named(judges).expect_err("is refused");
        assert!(refused(&["openai:b=200"]).contains("the first judge grades all questions"));
        for wrong in ["openai:b=1", "openai:b=-3", "openai:b=many", "openai:b="] {
            assert!(refused(&["openai:a", wrong]).contains("openai:b=200"), "{wrong}");
        }
    }
}
