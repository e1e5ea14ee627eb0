//! The grader self-check, before the first paid question: a scorer that fails it would waste every call.

use std::sync::Arc;

use bench_grading::scorers::{
    Reads, ScoreCase, Scorer, registry,
    self_check::{check_answers, conversation_text, self_check},
};
use bench_plan::SampledBank;
use bench_proto::{
    dataset::{Gold, GoldRecord, Question},
    profile::Profile,
    spec::RunSpec,
};
use bench_store::{BankRow, RunRow, Store};
use bench_worker::banks::BankData;
use tokio::runtime::Handle;

use crate::{
    exit::CliError,
    out::{self, amounts::counted},
    planning::{
        PlannedRun,
        planner::{BankParts, parts},
    },
};

/// Banks of the sample that are looked at: all of LoCoMo, a part of very large datasets. Where a scorer applies to no question of
/// these, the others are, one by one, until it applies to one.
const MAX_BANKS: usize = 10;
/// Bytes of their conversations after which no further bank is looked at.
const MOST_BYTES: usize = 8 << 20;

/// Scorers of answers that have something to say of questions without an answer, those of texts first.
const GRADERS: [&str; 3] = ["locomo-f1", "exact", "rubric"];

/// Before the reasons, in the event of a check that failed.
pub(crate) const FAILED: &str = "failed: ";
/// Before the notes, in the event of a check that passed with some.
pub(crate) const PASSED_WITH: &str = "passed: ";

/// What the self-check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelfCheckResult {
    failed: Option<String>,
    notes: Vec<String>,
}

impl SelfCheckResult {
    /// A check that failed.
    #[cfg(test)]
    pub(crate) fn failed(why: &str) -> Self {
        Self { failed: Some(why.to_owned()), notes: Vec::new() }
    }

    /// The text of the run event that keeps it.
    #[must_use]
    pub(crate) fn event(&self) -> String {
        match &self.failed {
            Some(why) => format!("{FAILED}{why}"),
            None if self.notes.is_empty() => "passed".to_owned(),
            None => format!("{PASSED_WITH}{}", self.notes.join("; ")),
        }
    }
}

/// What is looked at of a bank: its conversation as one text, its questions and what is expected.
struct Looked {
    text: String,
    asked: Vec<(Question, GoldRecord)>,
}

impl Looked {
    fn cases<'a>(&'a self, profile: &'a Profile) -> Vec<ScoreCase<'a>> {
        self.asked.iter().map(|(question, gold)| ScoreCase::unanswered(profile, question, gold)).collect()
    }
}

/// Checks all deterministic scorers of a run on its own sample.
///
/// # Errors
/// When the dataset cannot be read, and exit 2 when the headline has nothing to measure.
pub(crate) async fn run(planned: &PlannedRun) -> Result<SelfCheckResult, CliError> {
    check_apart(&planned.spec, banks_of(planned)).await
}

/// What the headline of a user's own dataset leaves out, because its scorer has nothing to say of some questions: those without an
/// answer, or options beyond the letters that it reads; to be told before anything is paid.
///
/// # Errors
/// When the dataset cannot be read.
pub(crate) async fn left_out(planned: &PlannedRun) -> Result<Option<String>, CliError> {
    // of datasets that come along each question has a score by their scorers
    if bench_datasets::find(&planned.spec.dataset.name).is_ok() {
        return Ok(None);
    }
    let (headline, profile) = (planned.spec.headline_metric(), planned.spec.dataset.profile.clone());
    let of_answers = planned.spec.scorers.iter().find(|scorer| scorer.name == headline && !scorer.of_recalls);
    let Some(scorer) = of_answers else { return Ok(None) };
    let scorer = registry::find(&scorer.name).map_err(CliError::usage_of)?;
    let banks = banks_of(planned);
    apart(move || {
        let mut left_out = LeftOut::by(scorer);
        for bank in banks {
            left_out.add(&bank?, &profile);
        }
        Ok(left_out.told())
    })
    .await
}

/// The banks of a run's sample in the order of work, as far as graders look at them.
fn banks_of(planned: &PlannedRun) -> impl Iterator<Item = Result<Looked, CliError>> + Clone + Send + 'static + use<> {
    let (dataset, max_sessions) = (Arc::clone(&planned.dataset), planned.spec.sample.max_sessions);
    let read = move |sampled: SampledBank| {
        let bank = dataset.bank(sampled.file_index as usize)?;
        let text = conversation_text(&bank.content);
        let BankParts { questions, gold, .. } = parts(bank, &sampled, max_sessions)?.1;
        Ok::<_, CliError>(Looked { text, asked: questions.into_iter().zip(gold).collect() })
    };
    planned.banks_in_order().into_iter().map(read)
}

/// Checks all deterministic scorers of a fork on the banks that its source has stored.
///
/// # Errors
/// What the store meets, and exit 2 when the headline has nothing to measure.
pub(crate) async fn of_stored(
    store: &Arc<dyn Store>,
    source: &RunRow,
    spec: &RunSpec,
) -> Result<SelfCheckResult, CliError> {
    let rows = store.banks(source.run_no, None).await?;
    let (store, runtime) = (Arc::clone(store), Handle::current());
    let read = move |row: BankRow| {
        let bank = runtime.block_on(BankData::read(store.as_ref(), row))?;
        let asked = bank.questions().iter().filter_map(|question| {
            let gold = bank.gold(&question.question_id)?;
            Some((question.clone(), gold.clone()))
        });
        Ok::<_, CliError>(Looked { text: conversation_text(&bank.content), asked: asked.collect() })
    };
    check_apart(spec, rows.into_iter().map(read)).await
}

/// Works on a thread that may block.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, CliError> + Send + 'static) -> Result<T, CliError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|e| CliError::internal_fault("checking the graders", e))?
}

/// Checks on a thread that may block, and says what was found.
async fn check_apart(
    spec: &RunSpec,
    banks: impl Iterator<Item = Result<Looked, CliError>> + Clone + Send + 'static,
) -> Result<SelfCheckResult, CliError> {
    let spec = spec.clone();
    let result = apart(move || check(&spec, banks)).await?;
    if let Some(why) = &result.failed {
        out::note(&format!("grader self-check failed, the run will be INVALID: {why}"));
    }
    result.notes.iter().for_each(|note| out::note(note));
    Ok(result)
}

/// The first banks.
fn first_of(banks: &mut impl Iterator<Item = Result<Looked, CliError>>) -> Result<Vec<Looked>, CliError> {
    let (mut looked, mut bytes) = (Vec::new(), 0);
    while looked.len() < MAX_BANKS
        && bytes < MOST_BYTES
        && let Some(bank) = banks.next()
    {
        let bank = bank?;
        bytes += bank.text.len();
        looked.push(bank);
    }
    Ok(looked)
}

/// Reads the first banks, and further ones for a scorer that applies to no question of these.
fn check(
    spec: &RunSpec,
    mut banks: impl Iterator<Item = Result<Looked, CliError>> + Clone,
) -> Result<SelfCheckResult, CliError> {
    let (profile, headline) = (&spec.dataset.profile, spec.headline_metric());
    let looked = first_of(&mut banks)?;
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for spec in &spec.scorers {
        let scorer = registry::find(&spec.name).map_err(CliError::usage_of)?;
        problems.extend(check_answers(scorer, profile));
        let mut report = self_check(scorer, looked.iter().map(|bank| (bank.text.as_str(), bank.cases(profile))));
        // a figure beside the headline may have nothing to measure: a dataset need not name the evidence of each level
        let of_recalls = scorer.reads() != Reads::Answer;
        let beside = of_recalls && spec.metric_names().all(|metric| metric != headline);
        let mut others = banks.clone().take(if beside { 0 } else { usize::MAX });
        while report.checked == 0
            && let Some(bank) = others.next()
        {
            let bank = bank?;
            report = self_check(scorer, [(bank.text.as_str(), bank.cases(profile))]);
        }
        notes.extend(report.long_answers_note());
        match report.checked {
            0 if beside => notes.push(format!("{} applies to no question that was looked at", spec.name)),
            0 if of_recalls => return Err(nothing_to_find(scorer)),
            _ => problems.extend(report.reasons()),
        }
    }
    Ok(SelfCheckResult { failed: (!problems.is_empty()).then(|| problems.join("; ")), notes })
}

/// Counts questions that a scorer has nothing to say of, bank by bank.
struct LeftOut {
    scorer: &'static dyn Scorer,
    /// Questions that were looked at, those that it leaves out, and those of them that have no answer.
    asked: u64,
    left_out: u64,
    unanswerable: u64,
    /// The first that it leaves out.
    first: Vec<String>,
    /// Scorers that have left out none so far.
    others: Vec<&'static dyn Scorer>,
}

/// Ids that are told.
const FIRST: usize = 3;

impl LeftOut {
    fn by(scorer: &'static dyn Scorer) -> Self {
        let others = GRADERS.iter().filter_map(|name| registry::find(name).ok()).collect();
        Self { scorer, asked: 0, left_out: 0, unanswerable: 0, first: Vec::new(), others }
    }

    fn add(&mut self, bank: &Looked, profile: &Profile) {
        let grades = |scorer: &dyn Scorer, case: &ScoreCase<'_>| {
            scorer.score(&ScoreCase { answer: Some(""), ..*case }).is_some()
        };
        for case in bank.cases(profile) {
            self.asked += 1;
            // a letter is no text: rules for texts leave the article a out
            let is_choice = matches!(case.gold(), Some(Gold::Choice(_)));
            self.others.retain(|other| !is_choice && grades(*other, &case));
            if grades(self.scorer, &case) {
                continue;
            }
            self.left_out += 1;
            let has_none = case.rules.unanswerable || case.gold().is_some_and(Gold::is_unanswerable);
            self.unanswerable += u64::from(has_none);
            if self.first.len() < FIRST {
                self.first.push(case.question.question_id.clone());
            }
        }
    }

    /// What there is to tell, and who grades all of them.
    fn told(&self) -> Option<String> {
        let &Self { scorer, asked, left_out, unanswerable, .. } = self;
        let (name, first) = (scorer.name(), self.first.join(", "));
        let more = if left_out > FIRST as u64 { ", …" } else { "" };
        let of = match unanswerable == left_out {
            true => "questions without an answer",
            false => "some expected answers",
        };
        let other = self.others.first().map(|other| format!("`--scorer {0} --headline {0}` or ", other.name()));
        (left_out > 0).then(|| {
            format!(
                "{name} has nothing to say of {of}: {left_out} of {} have no score by it, and the total leaves them out \
                 ({first}{more}); {}a judge (`--judge PROVIDER:MODEL`) grades them too",
                counted(asked, "question"),
                other.unwrap_or_default(),
            )
        })
    }
}

/// The headline would be about nothing: said before anything is spent.
fn nothing_to_find(scorer: &dyn Scorer) -> CliError {
    let (lacks, named) = match scorer.reads() {
        Reads::Hits if !scorer.metrics().is_empty() => ("asserts what must be found", "asserts it"),
        Reads::Hits => ("says what its authors count as found", "says it"),
        Reads::Ranks | Reads::Answer => ("says which memories hold its answer", "names its evidence"),
    };
    CliError::usage(format!(
        "{} has nothing to measure: no question of the sample {lacks}; score answers instead (--scenario answer, another \
         --headline), or take a dataset that {named}",
        scorer.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(asked: &[(&str, Gold)]) -> Looked {
        let asked = asked.iter().map(|(id, gold)| {
            let question =
                Question { question_id: (*id).to_owned(), category: "any".to_owned(), ..Question::default() };
            (question, GoldRecord { gold: gold.clone(), ..GoldRecord::default() })
        });
        Looked { text: String::new(), asked: asked.collect() }
    }

    #[test]
    fn questions_without_an_answer_that_the_headline_leaves_out_are_told_with_who_grades_them() {
        let (profile, oslo) = (Profile::implied(), Gold::Text("Oslo".to_owned()));
        let said = |scorer: &str, asked: &[(&str, Gold)]| {
            let mut left_out = LeftOut::by(registry::find(scorer).expect("is registered"));
            asked.iter().for_each(|one| left_out.add(&bank(std::slice::from_ref(one)), &profile));
            left_out.told()
        };
        let mixed = [("q1", oslo.clone()), ("q2", Gold::Abstain), ("q3", Gold::Unanswerable("no".to_owned()))];
        for scorer in ["substring", "contains"] {
            let said = said(scorer, &mixed).expect("two have no score");
            let begins = format!("{scorer} has nothing to say of questions without an answer: 2 of 3 questions");
            assert!(said.starts_with(&begins) && said.contains("(q2, q3)"), "{said}");
            assert!(said.contains("`--scorer locomo-f1 --headline locomo-f1` or a judge"), "{said}");
        }
        for scorer in ["exact", "locomo-f1"] {
            assert_eq!(said(scorer, &mixed), None, "{scorer}");
        }
        assert_eq!(said("substring", &[("q1", oslo)]), None, "all have an answer");
        let choices = ["a", "e", "f", "g", "z"].map(|letter| (letter, Gold::Choice(letter.to_owned())));
        for scorer in ["choice", "choice-strict", "choice-hebb", "choice-letter"] {
            let said = said(scorer, &choices).expect("four have no score");
            let begins = format!("{scorer} has nothing to say of some expected answers: 4 of 5 questions");
            assert!(said.starts_with(&begins) && said.contains("(e, f, g, …); a judge"), "{said}");
        }
        let mixed = [("q1", Gold::Assertions(Default::default())), ("q2", Gold::Abstain)];
        let said = said("exact", &mixed).expect("one has no score");
        assert!(said.contains("(q1); a judge"), "no scorer grades all of them: {said}");
    }
}
