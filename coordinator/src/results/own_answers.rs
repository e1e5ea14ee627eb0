//! `judge-audit --of RUN --grades FILE`: answers of a run that somebody who knows has graded, with what the run's judge said of them.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use bench_grading::judging::rubric::{keep_evidence, shows_evidence};
use bench_proto::{
    dataset::{GoldRecord, Question},
    facts::QuestionFacts,
    ids::TaskKey,
    spec::RunSpec,
    step::{StepNo, StepText},
};
use bench_settings::bounded;
use bench_store::{BankRow, RunRow, RunState, Store};
use bench_worker::banks::{BankData, BankQuestions};
use serde::Deserialize;

use super::questions::facts_of_bank;
use crate::{
    exit::CliError,
    import::{
        ImportError,
        fields::Line,
        grades::Grade,
        planted::{self, PlantedAnswers},
        records::list_or_lines,
        resolve::{KnownBank, KnownQuestion, Resolver},
    },
    out,
    planning::{self, planner::BankParts},
};

/// A grade as files of them write it.
#[derive(Debug, Deserialize)]
struct Graded {
    #[serde(alias = "id")]
    question_id: String,
    question: Option<String>,
    correct: Correct,
}

/// A truth value, or 0 and 1.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Correct {
    Truth(bool),
    Number(f64),
}

impl Correct {
    fn is_right(&self) -> Option<bool> {
        match self {
            Self::Truth(right) => Some(*right),
            Self::Number(number) if *number == 0.0 || *number == 1.0 => Some(*number == 1.0),
            Self::Number(_) => None,
        }
    }
}

/// The judge of a run's headline: its number, or none where the grades came with the answers.
///
/// # Errors
/// Exit 2 where no judge gave the headline.
pub(super) fn judge_of(spec: &RunSpec, flag: &str) -> Result<Option<usize>, CliError> {
    let metric = spec.headline_metric();
    if let Some(judge) = spec.judge_plan().metrics.iter().position(|name| *name == metric) {
        return Ok(Some(judge));
    }
    let of_scorer = spec.scorers.iter().any(|scorer| scorer.metric_names().any(|name| name == metric));
    if !spec.judges.is_empty() || of_scorer || metric.is_empty() {
        return Err(CliError::usage(format!(
            "{flag}: the headline is {metric}, which no judge gives and so no audit of one corrects; `bench-coord rejudge RUN --judge M` \
             makes a run that a judge heads"
        )));
    }
    Ok(None)
}

/// The graded answers of a run, as answers of an audit. Without a judge of their own those of the run's judge are audited, which the
/// settings of the audit then name.
///
/// # Errors
/// Exit 2 for a run without answers, and for a file that names other questions than the run's, or one twice.
pub(crate) async fn graded_answers(
    store: &dyn Store,
    run: &RunRow,
    file: &Path,
    judged_anew: bool,
) -> Result<PlantedAnswers, CliError> {
    check(run)?;
    let metric = match judged_anew {
        true => None,
        false => {
            let _ = judge_of(&run.spec, "--of")?;
            Some(run.spec.headline_metric())
        }
    };
    let in_file = |e: ImportError| CliError::usage(format!("{}: {e}", file.display()));
    let text =
        bounded::text(file, bounded::RESULTS).map_err(|e| in_file(ImportError::file(e.to_string())).because(e))?;
    let banks = store.banks(run.run_no, None).await?;
    let known = known_of(store, &banks).await?;
    let right =
        list_or_lines::<Graded>(&text).and_then(|graded| resolve(&run.run_id.0, &known, &graded)).map_err(in_file)?;
    let profile = &run.spec.dataset.profile;
    let (mut parts, mut lines, mut without) = (Vec::new(), BTreeMap::new(), 0_u64);
    for row in banks {
        let bank = BankQuestions::read(store, &row).await?;
        let is_right = |question: &&Question| right.get(&question.question_id).copied();
        let graded: Vec<&Question> = bank.asked().filter(|question| is_right(question).is_some()).collect();
        if graded.is_empty() {
            continue;
        }
        let stored = Stored::read(store, run, (row.bank_no, &bank), &graded).await?;
        for question in &graded {
            let line = stored.line(TaskKey::question(row.bank_no, question.index), metric.as_deref());
            match line.zip(is_right(question)) {
                Some(line) => drop(lines.insert(question.question_id.clone(), line)),
                None => without += 1,
            }
        }
        let mut gold: Vec<GoldRecord> =
            graded.iter().map(|q| bank.gold(&q.question_id).cloned().unwrap_or_default()).collect();
        if shows_evidence(profile) {
            keep_evidence(profile, &BankData::read(store, row.clone()).await?.content, &mut gold);
        }
        let questions = graded.into_iter().cloned().collect();
        parts.push(BankParts { bank_id: row.bank_id, gold, questions });
    }
    if without > 0 {
        out::note(&format!("{without} of the graded questions have no answer that was judged: they are left out"));
    }
    let source = planted::source_of(file, text.as_bytes());
    let about = planning::about_of(&run.spec.dataset);
    // the judge is the first one of the audit
    let first = run.spec.judge_plan().metrics.into_iter().next();
    let metric = metric.map(|metric| if run.spec.judges.is_empty() { metric } else { first.unwrap_or(metric) });
    Ok(planted::of_run(&about, parts, lines, (source, run.run_id.0.clone()), metric))
}

/// The settings of an audit whose grades are those of a run's judge: it is told as that judge's.
///
/// # Errors
/// As [`judge_of`].
pub(crate) fn name_judge(audit: &mut RunSpec, of: &RunSpec) -> Result<(), CliError> {
    let Some(judge) = judge_of(of, "--of")? else { return Ok(()) };
    audit.judges = of.judges.get(judge).cloned().into_iter().collect();
    audit.votes = of.votes;
    audit.judging = of.judging.clone();
    audit.judging.samples.clear();
    audit.headline = None;
    Ok(())
}

fn check(run: &RunRow) -> Result<(), CliError> {
    let refused = |problem: &str| Err(CliError::usage(format!("--of {}: {problem}", run.run_id)));
    if run.state != RunState::Finished {
        return refused(&format!("it is not finished; `bench-coord resume {}` ends it", run.run_id));
    }
    if !run.spec.scenario.answers() {
        return refused("it has no answers that could be graded");
    }
    if run.spec.dataset.planted.is_some() {
        return refused("it is a judge audit itself; name the run that was judged");
    }
    Ok(())
}

/// The questions of a run as a file may name them, one bank after the other: none of what was retained is read.
async fn known_of(store: &dyn Store, banks: &[BankRow]) -> Result<Vec<KnownBank>, CliError> {
    let question =
        |q: &Question| KnownQuestion { id: q.question_id.clone(), text: q.text.clone(), category: q.category.clone() };
    let mut known = Vec::with_capacity(banks.len());
    for row in banks {
        let bank = BankQuestions::read(store, row).await?;
        known.push(KnownBank { bank_id: row.bank_id.clone(), questions: bank.asked().map(question).collect() });
    }
    Ok(known)
}

/// What is stored of the graded questions of a bank.
struct Stored {
    facts: HashMap<TaskKey, QuestionFacts>,
    answers: BTreeMap<TaskKey, String>,
}

impl Stored {
    async fn read(
        store: &dyn Store,
        run: &RunRow,
        (bank_no, bank): (u32, &BankQuestions),
        graded: &[&Question],
    ) -> Result<Self, CliError> {
        let keys: Vec<TaskKey> = graded.iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
        let mut answers = BTreeMap::new();
        for (task, step, text) in store.question_texts(run.run_no, &keys).await? {
            if let (StepNo::ANSWER, StepText::Answered { answer, .. }) = (step, text) {
                answers.insert(task, answer);
            }
        }
        Ok(Self { facts: facts_of_bank(store, run.run_no, (bank_no, bank)).await?, answers })
    }

    /// A question's answer, with its grade by a metric where one is wanted.
    fn line(&self, key: TaskKey, metric: Option<&str>) -> Option<Line> {
        let answer = Some(self.answers.get(&key)?.clone());
        let Some(metric) = metric else { return Some(Line { answer, ..Line::default() }) };
        let score = self.facts.get(&key)?.score(metric)?;
        Some(Line { answer, grade: Grade::Score(score), ..Line::default() })
    }
}

/// Whether the answers are right, by the ids of the run's questions.
fn resolve(run: &str, known: &[KnownBank], graded: &[Graded]) -> Result<BTreeMap<String, bool>, ImportError> {
    let mut resolver = Resolver::of_run(run, known);
    let mut right = BTreeMap::new();
    for (number, grade) in (1..).zip(graded) {
        let place = format!("record {number}");
        let line = Line {
            place: place.clone(),
            id: Some(grade.question_id.clone()),
            text: grade.question.clone(),
            ..Line::default()
        };
        let id = resolver.resolve(&line)?;
        let is_right = grade
            .correct
            .is_right()
            .ok_or_else(|| ImportError::at(&place, "'correct' is true or false, or 1 or 0".to_owned()))?;
        if right.insert(id.clone(), is_right).is_some() {
            return Err(ImportError::at(&place, format!("question '{id}' is graded twice")));
        }
    }
    if right.is_empty() {
        return Err(ImportError::file("no grades in it: a record has question_id and correct".to_owned()));
    }
    Ok(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_are_truth_values_or_nought_and_one() {
        let text = "{\"question_id\": \"a\", \"correct\": true}\n\n{\"id\": \"b\", \"correct\": 0}\n";
        let read = list_or_lines::<Graded>(text).expect("is read");
        assert_eq!(read.iter().map(|grade| grade.correct.is_right()).collect::<Vec<_>>(), [Some(true), Some(false)]);
        let list = list_or_lines::<Graded>("[{\"question_id\": \"a\", \"correct\": 0.5}]").expect("is read");
        assert_eq!(list[0].correct.is_right(), None);
        let broken = list_or_lines::<Graded>("{\"question_id\": \"a\", \"correct\": true}\n{\"question_id\": \"b\"}");
        let broken = broken.expect_err("is refused").to_string();
        assert!(broken.starts_with("line 2: missing field `correct`"), "{broken}");
    }
}
