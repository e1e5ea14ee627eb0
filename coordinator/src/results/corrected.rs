//! `report --corrected AUDIT`: the score of a run without the errors of its judge, as an audit of that judge has counted them.

use bench_aggregate::{
    compare::fingerprints::group_of,
    corrected::{Audit, AuditedAnswer, corrected},
};
use bench_proto::{
    audit::{PLANTED, PlantedSpec},
    facts::{QuestionFacts, judge_metric},
    ids::RunId,
    spec::{Difference, RunSpec},
    summary::{CorrectedScore, Summary},
};
use bench_store::{RunRow, RunState, Store};

use super::{own_answers::judge_of, read_facts};
use crate::{exit::CliError, standing::find_run};

/// Differences of an audit's settings that say nothing of its judge: how its answers came about.
const OF_ANSWERS: [&str; 5] = [
    "dataset.planted",
    "dataset.answers_of",
    "dataset.abstention_phrases",
    "dataset.profile.headline.without",
    "dataset.profile.style.",
];

/// Corrects the headline of a run's summary.
///
/// # Errors
/// Exit 2 for a run that is no audit, or one of another judge, other words for it, or another dataset: it says what differs.
pub(crate) async fn score(
    store: &dyn Store,
    run: &RunRow,
    summary: &Summary,
    audit: &str,
) -> Result<CorrectedScore, CliError> {
    let audit = find_run(store, audit).await?;
    let refused = |problem: String| CliError::usage(format!("--corrected {}: {problem}", audit.run_id));
    if audit.state != RunState::Finished {
        return Err(refused(format!("it is not finished; `bench-coord resume {}` ends it", audit.run_id)));
    }
    if run.spec.dataset.planted.is_some() {
        return Err(refused(format!("run {} is a judge audit itself, and has no score of a system", run.run_id)));
    }
    let Some(planted) = &audit.spec.dataset.planted else {
        return Err(refused(format!(
            "it is no judge audit; `bench-coord judge-audit --of {} --grades FILE` makes one of graded answers of the run",
            run.run_id
        )));
    };
    let judge = judge_of(&run.spec, &format!("--corrected {}", audit.run_id))?;
    let metric = match judge {
        Some(judge) => judge_metric(auditor(run, judge, &audit)?),
        // it is not known whose grades came with the answers, but they are the same grades
        None if audit.spec.judges.is_empty() && planted.answers_of.as_ref() == Some(&run.run_id.0) => {
            run.spec.headline_metric()
        }
        None => {
            return Err(refused(format!(
                "the grades of run {0} came with its answers, so that nobody knows whether this is their judge; \
                 `bench-coord judge-audit --of {0} --grades FILE` audits these grades",
                run.run_id
            )));
        }
    };
    check_answers(store, run, planted, &audit).await?;
    let answers = answers(store, &audit, &metric).await?;
    if answers.is_empty() {
        return Err(refused(format!(
            "its judge has graded none of its answers; `bench-coord report {}` says what happened",
            audit.run_id
        )));
    }
    let Some(score) = summary.scores.iter().find(|score| score.metric == summary.headline.metric) else {
        return Err(refused(format!("run {} has no score yet", run.run_id)));
    };
    let audit = Audit { run: &audit.run_id.0, planted, answers: &answers };
    Ok(corrected(&summary.headline, score, &audit))
}

/// The number of the judge in an audit that is a judge of a run.
fn auditor(run: &RunRow, judge: usize, audit: &RunRow) -> Result<usize, CliError> {
    let of_run = with_judge(&run.spec, judge);
    let differing = |at: usize| {
        let differences = of_run.differences(&with_judge(&audit.spec, at));
        differences.into_iter().filter(|difference| matters(&difference.key)).collect::<Vec<Difference>>()
    };
    let all: Vec<Vec<Difference>> = (0..audit.spec.judges.len()).map(differing).collect();
    if let Some(at) = all.iter().position(Vec::is_empty) {
        return Ok(at);
    }
    let Some(nearest) = all.iter().min_by_key(|differences| differences.len()) else {
        return Err(CliError::usage(format!(
            "--corrected {}: its grades came with its answers, so that nobody knows whether {} gave them",
            audit.run_id,
            of_run.judges.first().map(bench_proto::spec::ModelSpec::display).unwrap_or_default()
        )));
    };
    Err(CliError::usage(format!(
        "--corrected {}: it is no audit of the judge of run {}: {}; audit this judge, by the same words, on the same dataset",
        audit.run_id,
        run.run_id,
        told(nearest)
    )))
}

/// Settings with one of their judges alone.
fn with_judge(spec: &RunSpec, judge: usize) -> RunSpec {
    let mut spec = spec.clone();
    spec.judges = spec.judges.get(judge).cloned().into_iter().collect();
    spec.judging.samples.clear();
    spec
}

/// Whether a setting says which judge grades what, by which words.
fn matters(key: &str) -> bool {
    let of_answers = OF_ANSWERS.iter().any(|begin| key.starts_with(begin));
    let counts = !key.starts_with("scorers.") && !matches!(key, "label_fixes" | "counting" | "answered_again");
    counts && !of_answers && matches!(group_of(key), "dataset" | "grading")
}

/// Differences in words: the first few, hashes of prompts behind what says more.
fn told(differences: &[Difference]) -> String {
    const MOST: usize = 4;
    let mut differences: Vec<&Difference> = differences.iter().collect();
    differences.sort_by_key(|difference| difference.key.contains(".prompts."));
    let one = |of: &&Difference| format!("{} is {} in the run and {} in the audit", of.key, of.left, of.right);
    let mut told: Vec<String> = differences.iter().take(MOST).map(one).collect();
    if let Some(more @ 1..) = differences.len().checked_sub(MOST) {
        told.push(format!("and {more} more"));
    }
    told.join(", ")
}

/// Graded answers are of the system that is corrected, of this run or of another one.
async fn check_answers(store: &dyn Store, run: &RunRow, planted: &PlantedSpec, audit: &RunRow) -> Result<(), CliError> {
    let Some(id) = planted.answers_of.as_ref().filter(|id| **id != run.run_id.0) else { return Ok(()) };
    let refused = |problem: String| CliError::usage(format!("--corrected {}: {problem}", audit.run_id));
    let Some(other) = store.run_by_id(&RunId(id.clone())).await? else {
        return Err(refused(format!(
            "its answers are of run {id}, which is gone: nobody can say whether they are of the same system"
        )));
    };
    let differences = run.spec.differences(&other.spec);
    // answers that were chosen for being wrong once, and drawn again, are wrong in other ways
    let of_answers = |key: &str| matches!(group_of(key), "system" | "answerer") || key == "answered_again";
    let of_answers: Vec<Difference> =
        differences.into_iter().filter(|difference| of_answers(&difference.key)).collect();
    if of_answers.is_empty() {
        return Ok(());
    }
    Err(refused(format!(
        "its answers are of run {id}, which made them in another way: {}; how often a judge errs depends on how answers are wrong, so \
         grade some of this run's with `bench-coord judge-audit --of {} --grades FILE`",
        told(&of_answers),
        run.run_id
    )))
}

/// The graded answers of an audit.
async fn answers(store: &dyn Store, audit: &RunRow, metric: &str) -> Result<Vec<AuditedAnswer>, CliError> {
    let add = |all: &mut Vec<AuditedAnswer>, facts: QuestionFacts| {
        if let (Some(score), Some(kind)) = (facts.score(metric), facts.facets.get(PLANTED)) {
            let kind = kind.clone();
            all.push(AuditedAnswer { kind, category: facts.category, bank: facts.bank_id, score });
        }
    };
    let parts = read_facts(store, audit, Vec::new, add, |_| ()).await?;
    Ok(parts.into_iter().flatten().collect())
}
