//! An archived run becomes a run of this store: reported, compared and graded again like any other.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    path::Path,
};

use bench_proto::{
    digest::ResultDigest,
    facts::{Outcome, QuestionFacts},
    ids::{RunId, RunNo, TaskKey, TaskKind},
    json_bound,
    spec::{RunSpec, TakenOver, check_grading},
    step::{StepNo, StepText},
    stop::Looks,
    summary::Summary,
};
use bench_report::archive::are_figures;
use bench_settings::bounded;
use bench_store::{AdoptedQuestion, Item, NewBank, NewRun, Right, RunState, Store, StoreError};
use serde::de::DeserializeOwned;

use super::bundle::{BANKS, BUNDLE_VERSION, BankBundle, REPORT, RESULTS, RUN, ResultBundle, RunBundle};
use crate::{
    exit::{CliError, Exit},
    results::steps::failed_again,
    standing::{FORK_EVENT, RESTORED, RESTORING, domains::LOCAL_DOMAIN},
};

/// Banks written at once.
const BANKS_AT_ONCE: usize = 8;
/// Bytes of their contents after which no further bank goes with them.
const BANK_BYTES_AT_ONCE: usize = 4 << 20;
/// Questions written at once.
const RESULTS_AT_ONCE: usize = 1_000;
/// Bytes of their lines after which no further question goes with them.
const RESULT_BYTES_AT_ONCE: usize = 4 << 20;

/// Longest line of banks, in bytes: the largest bank there is has less than a tenth.
const MOST_LINE: u64 = 1 << 30;
/// The same of results: one holds the texts of one question.
const MOST_RESULT_LINE: u64 = 64 << 20;
/// Longest id of a question, in bytes: the ids of all questions of a run are in memory together.
const MOST_ID: usize = 1 << 10;

/// What restoring found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// The run is in the store now.
    New,
    /// The run was in the store before, with the same result.
    WasThere,
}

/// Rebuilds a run from its archived files, which lie in a folder and were [checked](check). May be repeated at any point: what is
/// there already stays.
///
/// # Errors
/// Exit 2 when another run of this id is in the store.
pub(crate) async fn restore(store: &dyn Store, folder: &Path, readable: Readable) -> Result<Restored, CliError> {
    let Readable { run, new, report, summary } = readable;
    store.may(Right::Results).await?;
    let run_no = match store.create_run(&new).await {
        Ok(run_no) => run_no,
        Err(StoreError::Exists(_)) => match existing(store, &new, &summary).await? {
            Existing::Whole => return Ok(Restored::WasThere),
            Existing::Begun(run_no) => run_no,
        },
        Err(error) => return Err(error.into()),
    };
    if let Some(looks) = &run.looks {
        store.set_looks(run_no, &Looks::default(), looks).await?;
    }
    restore_banks(store, run_no, folder).await?;
    restore_results(store, run_no, &new, folder).await?;
    store.finish_plan(run_no).await?;
    let there = store.events(run_no).await?;
    // how far it is restored is known here
    let own = |kind: &str| [RESTORING, RESTORED].contains(&kind);
    for (_, kind, message) in run.events.iter().filter(|(_, kind, _)| !own(kind)) {
        if !there.iter().any(|event| (&event.kind, &event.message) == (kind, message)) {
            store.add_event(run_no, kind, message).await?;
        }
    }
    store.add_event(run_no, RESTORED, "from an archive").await?;
    let row = store.run(run_no).await?;
    let text = std::str::from_utf8(&report).map_err(|e| damaged(format!("{REPORT}: {e}")))?;
    store.put_summary(run_no, row.result_version, text).await?;
    // last: a run that is finished is whole
    store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
    Ok(Restored::New)
}

/// What can be read of a run that is to be rebuilt.
pub(crate) struct Readable {
    run: RunBundle,
    new: NewRun,
    /// Its report as it was archived.
    report: Vec<u8>,
    summary: Summary,
}

/// Reads all files that a run is rebuilt from, before a store is touched.
///
/// # Errors
/// Exit 5 when they do not fit together.
pub(crate) fn check(folder: &Path, run_id: &str) -> Result<Readable, CliError> {
    let mut run: RunBundle = parse(RUN, &whole(folder, RUN)?)?;
    if run.bundle_version > BUNDLE_VERSION {
        return Err(damaged(format!(
            "the run was archived with version {}, this build reads {BUNDLE_VERSION}: use a newer one",
            run.bundle_version
        )));
    }
    let report = whole(folder, REPORT)?;
    let summary: Summary = parse(REPORT, &report)?;
    let id = RunId::stored(&run.run_id).map_err(|e| damaged(e.to_string()))?;
    let new = NewRun {
        run_id: id,
        name: run.name.take(),
        tags: std::mem::take(&mut run.tags),
        user: std::mem::take(&mut run.user),
        spec: run.spec.clone(),
        lineage: lineage(&run),
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: run.imported,
        code_version: run.code_version.clone(),
        group: None,
        waits: false,
        // without it nobody would know that the run is another's, and a restore that is cut here could not go on
        events: vec![(RESTORING, summary.result_digest.clone())],
    };
    if [&new.run_id.0, &summary.run.id].iter().any(|id| *id != run_id) {
        return Err(damaged(format!("{RUN} or {REPORT} is of another run than {run_id}")));
    }
    if new.spec.fingerprint().hex() != summary.run.fingerprint {
        return Err(damaged(format!("{RUN} and {REPORT} have different fingerprints")));
    }
    check_spec(&new.spec)?;
    // all of it can be read before the store is touched
    for bank in lines::<BankBundle>(folder, BANKS)? {
        check_bank(&bank?)?;
    }
    check_headline(&summary)?;
    let mut digested = Digested::default();
    for result in lines::<ResultBundle>(folder, RESULTS)? {
        let result = result?;
        check_result(&result)?;
        digested.add(result.facts)?;
    }
    digested.check(&summary)?;
    Ok(Readable { run, new, report, summary })
}

/// The lineage of an archived run: that of the run whose recalls or answers it has, or from which it was forked, whether that one is
/// here or comes later. Calls are not archived, so a run that took nothing over shares none.
fn lineage(run: &RunBundle) -> String {
    let TakenOver { recalls_of, answers_of, .. } = &run.spec.taken_over;
    let forked = run.events.iter().find(|(_, kind, _)| kind == FORK_EVENT);
    let source = forked.and_then(|(_, _, said)| said.split_once(' ')).map(|(_, id)| id.to_owned());
    recalls_of.clone().or_else(|| answers_of.clone()).or(source).unwrap_or_else(|| run.run_id.clone())
}

/// Reads the content of a file that a run is rebuilt from, and checks what it says; the number of its documents.
///
/// # Errors
/// Exit 5 for what no run is rebuilt from.
pub(crate) fn read(name: &str, content: &[u8]) -> Result<usize, CliError> {
    let documents = |check: fn(&[u8]) -> Result<(), CliError>| {
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(check).collect::<Result<Vec<()>, _>>().map(|lines| lines.len())
    };
    match name {
        BANKS => documents(|line| check_bank(&parse(BANKS, line)?)),
        RESULTS => documents(|line| check_result(&parse(RESULTS, line)?)),
        _ => {
            let run: RunBundle = parse(RUN, content)?;
            check_spec(&run.spec)?;
            RunId::stored(&run.run_id).map_err(|e| damaged(e.to_string()))?;
            let _ = run.spec.fingerprint();
            Ok(1)
        }
    }
}

/// Checks what becomes the keys of a run's votes.
///
/// # Errors
/// Exit 5 for more than there are keys.
pub(super) fn check_spec(spec: &RunSpec) -> Result<(), CliError> {
    check_grading(spec.judges.len(), spec.votes).map_err(|e| damaged(format!("{RUN}: {e}")))
}

/// Checks what becomes the keys of a bank's tasks.
fn check_bank(bank: &BankBundle) -> Result<(), CliError> {
    let within = bank.bank_no < TaskKey::MAX_BANKS && bank.segments.len() < TaskKey::MAX_INDEX as usize;
    within.then_some(()).ok_or_else(|| damaged(format!("{BANKS}: bank {} is beyond what a run can have", bank.bank_no)))
}

/// Whether a step of a task can have a text: the steps of a question and of a vote each have one kind.
fn is_text_of(task: TaskKey, step: StepNo, text: &StepText) -> bool {
    match (task.kind(), text) {
        (TaskKind::Question, StepText::Recalled { .. }) => step == StepNo::RECALL,
        (TaskKind::Question, StepText::Answered { .. }) => step == StepNo::ANSWER,
        (TaskKind::Question, StepText::Phrased { .. }) => step.is_phrase(),
        (TaskKind::Question, StepText::Searched { .. }) => step.is_search(),
        (TaskKind::Judge, StepText::Judged { grade, .. }) => {
            step == StepNo::JUDGE && grade.is_none_or(|grade| (0.0..=1.0).contains(&grade))
        }
        (TaskKind::Judge, StepText::JudgedPart { .. }) => step.call_of_vote().is_some(),
        _ => false,
    }
}

/// Checks that a question's result is of a question, and its texts of that question and its judges.
fn check_result(ResultBundle { facts, texts }: &ResultBundle) -> Result<(), CliError> {
    let is_task = |task: TaskKey| TaskKey::from_wire(task.0).is_some();
    let of_a_question = |task: TaskKey| is_task(task) && matches!(task.kind(), TaskKind::Question | TaskKind::Judge);
    let own = |task: TaskKey| of_a_question(task) && task.question_of() == facts.task;
    let id = facts.question_id.escape_debug();
    if !own(facts.task) || facts.task.kind() != TaskKind::Question || !texts.iter().all(|(task, ..)| own(*task)) {
        return Err(damaged(format!("{RESULTS}: the result of '{id}' is of no question")));
    }
    match texts.iter().find(|(task, step, text)| !is_text_of(*task, *step, text)) {
        Some((_, step, _)) => {
            Err(damaged(format!("{RESULTS}: step {} of '{id}' has a text that is of no such step", step.0)))
        }
        None => Ok(()),
    }
}

/// Holds the figures that head a report to what figures can be.
///
/// # Errors
/// Exit 5.
pub(super) fn check_headline(summary: &Summary) -> Result<(), CliError> {
    let headline = &summary.headline;
    let ends = headline.ci95.iter().flat_map(|interval| [interval.low, interval.high]);
    let counted = summary.counting.as_ref().and_then(|counted| counted.value);
    let can_be = are_figures(headline.value, ends) && are_figures(counted, std::iter::empty());
    can_be.then_some(()).ok_or_else(|| damaged("its score or its interval is beyond 0 and 1".to_owned()))
}

/// A question's id, how it ended, and its scores by metric.
type Ended = (String, Outcome, Vec<(String, f64)>);

fn check_id(question_id: &str) -> Result<(), CliError> {
    let is_short = question_id.len() <= MOST_ID;
    is_short.then_some(()).ok_or_else(|| damaged(format!("{RESULTS} has a question's id of more than {MOST_ID} bytes")))
}

/// What the digest of a run is made of.
#[derive(Default)]
pub(super) struct Digested {
    questions: Vec<Ended>,
}

impl Digested {
    /// Adds a result.
    ///
    /// # Errors
    /// Exit 5 for a score that is none, or an id that is far too long.
    pub(super) fn add(&mut self, question: QuestionFacts) -> Result<(), CliError> {
        if question.scores.iter().any(|(_, score)| !(0.0..=1.0).contains(score)) {
            return Err(damaged("a score of it is beyond 0 and 1".to_owned()));
        }
        check_id(&question.question_id)?;
        self.questions.push((question.question_id, question.outcome, question.scores));
        Ok(())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.questions.len()
    }

    /// Holds a report to the results.
    ///
    /// # Errors
    /// Exit 5 for a report of others.
    pub(super) fn check(self, summary: &Summary) -> Result<(), CliError> {
        // questions that were not run are in the digest, and not among the results
        if summary.outcomes.not_run == 0 && self.finish() != summary.result_digest {
            return Err(damaged(format!("its digest is not that of its {RESULTS}")));
        }
        Ok(())
    }

    fn finish(mut self) -> String {
        self.questions.sort_by(|a, b| a.0.cmp(&b.0));
        let mut digest = ResultDigest::default();
        for (id, outcome, scores) in &self.questions {
            digest.push(id, *outcome, scores.iter().map(|(metric, score)| (metric.as_str(), *score)));
        }
        digest.finish()
    }
}

async fn restore_banks(store: &dyn Store, run_no: RunNo, folder: &Path) -> Result<(), CliError> {
    let mut lines = lines::<BankBundle>(folder, BANKS)?;
    loop {
        let (mut items, mut banks, mut bytes) = (Vec::new(), Vec::new(), 0);
        while banks.len() < BANKS_AT_ONCE && bytes < BANK_BYTES_AT_ONCE {
            let Some(bank) = lines.next().transpose()? else { break };
            bytes += bank.content.len();
            let [content, questions, gold] =
                [bank.content, bank.questions, bank.gold].map(|text| Item::from_bytes(text.into_bytes()));
            banks.push(NewBank {
                bank_no: bank.bank_no,
                bank_id: bank.bank_id,
                content: content.hash,
                questions: questions.hash,
                gold: gold.hash,
                segments: bank.segments,
                filled: None,
                later: bank.later,
            });
            items.extend([content, questions, gold]);
        }
        if banks.is_empty() {
            return Ok(());
        }
        store.put_items(&items).await?;
        store.adopt(run_no, &banks, &[]).await?;
    }
}

/// The next results that are written at once.
fn part_of<T>(lines: &mut impl Iterator<Item = Result<(usize, T), CliError>>) -> Result<Vec<T>, CliError> {
    let (mut part, mut bytes) = (Vec::new(), 0);
    while part.len() < RESULTS_AT_ONCE && bytes < RESULT_BYTES_AT_ONCE {
        let Some((size, result)) = lines.next().transpose()? else { break };
        bytes += size;
        part.push(result);
    }
    Ok(part)
}

/// Stores results, and of a run that may go on what says that they are there: what has ended is not asked again, and what has failed is
/// found by a retry.
async fn restore_results(store: &dyn Store, run_no: RunNo, new: &NewRun, folder: &Path) -> Result<(), CliError> {
    let headline = new.spec.headline_metric();
    let mut lines = sized_lines::<ResultBundle>(folder, RESULTS)?;
    loop {
        let part = part_of(&mut lines)?;
        if part.is_empty() {
            return Ok(());
        }
        let mut results: Vec<(QuestionFacts, Vec<(StepNo, StepText)>)> = Vec::with_capacity(part.len());
        let mut judged = Vec::new();
        for ResultBundle { facts, texts } in part {
            let (own, of_judges): (Vec<_>, Vec<_>) = texts.into_iter().partition(|(task, ..)| *task == facts.task);
            results.push((facts, own.into_iter().map(|(_, step, text)| (step, text)).collect()));
            judged.extend(of_judges);
        }
        if !new.imported {
            let failed = results.iter().filter(|(facts, _)| !facts.outcome.has_score());
            let failed: Vec<AdoptedQuestion> = failed.map(|(facts, texts)| failed_again(facts, texts)).collect();
            if !failed.is_empty() {
                store.adopt(run_no, &[], &failed).await?;
            }
        }
        store.import_results(run_no, &headline, &results, !new.imported).await?;
        store.put_texts(run_no, &judged).await?;
    }
}

/// What is there of a run whose id is taken.
enum Existing {
    /// All of it.
    Whole,
    /// A restore of the same result began and was cut.
    Begun(RunNo),
}

async fn existing(store: &dyn Store, new: &NewRun, summary: &Summary) -> Result<Existing, CliError> {
    let id = &new.run_id;
    let other =
        || CliError::usage(format!("another run {id} is in this store; restore it into an empty one with --store"));
    let row = store.run_by_id(id).await?.ok_or_else(other)?;
    // the digest says nothing of the system, and a word for the one that was fetched is none for the one that is there
    if row.spec.system != new.spec.system {
        return Err(CliError::usage(format!(
            "run {id} is in this store with another memory system; restore it into an empty one with --store"
        )));
    }
    if row.state != RunState::Finished {
        let events = store.events(row.run_no).await?;
        let ours = events.iter().any(|event| event.kind == RESTORING && event.message == summary.result_digest);
        return if ours { Ok(Existing::Begun(row.run_no)) } else { Err(other()) };
    }
    let stored = store.summary(row.run_no).await?;
    let same = stored
        .and_then(|text| json_bound::from_str::<Summary>(&text, json_bound::REPORT).ok())
        .is_some_and(|stored| stored.result_digest == summary.result_digest);
    if same { Ok(Existing::Whole) } else { Err(other()) }
}

fn damaged(message: String) -> CliError {
    CliError::new(Exit::Invalid, message)
}

fn missing(name: &str, error: std::io::Error) -> CliError {
    damaged(format!("the archived run has no readable {name}: {error}")).because(error)
}

fn whole(folder: &Path, name: &str) -> Result<Vec<u8>, CliError> {
    bounded::bytes(&folder.join(name), bounded::RESULTS).map_err(|e| missing(name, e))
}

/// Most values of a document of an archived run, or of a line of it.
fn most_values(name: &str) -> u64 {
    match name {
        RUN => json_bound::DOCUMENT,
        // a question has its steps, which may be larger than the replies that they were made of
        BANKS | RESULTS => json_bound::LIST,
        _ => json_bound::REPORT,
    }
}

/// Reads a document of an archived run, or a line of it.
///
/// # Errors
/// Exit 5 for what cannot be read, and what has more values than it can have.
pub(super) fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, CliError> {
    json_bound::from_slice(bytes, most_values(name))
        .map_err(|e| damaged(format!("{name} cannot be read: {e}")).because(e))
}

/// The lines of a file, one by one.
///
/// # Errors
/// Exit 5 for a file that is not there.
pub(super) fn lines<T: DeserializeOwned>(
    folder: &Path,
    name: &'static str,
) -> Result<impl Iterator<Item = Result<T, CliError>> + Send, CliError> {
    Ok(sized_lines::<T>(folder, name)?.map(|line| line.map(|(_, value)| value)))
}

/// The same, each with the bytes of its line.
fn sized_lines<T: DeserializeOwned>(
    folder: &Path,
    name: &'static str,
) -> Result<impl Iterator<Item = Result<(usize, T), CliError>> + Send, CliError> {
    let file = File::open(folder.join(name)).map_err(|e| missing(name, e))?;
    let most = if name == RESULTS { MOST_RESULT_LINE } else { MOST_LINE };
    Ok(bounded_lines(BufReader::new(file), most, name).map(move |line| -> Result<(usize, T), CliError> {
        let line = line?;
        Ok((line.len(), parse(name, &line)?))
    }))
}

/// Lines that hold something; the first error, and a line of more than `most` bytes, ends them.
fn bounded_lines(
    mut file: impl BufRead,
    most: u64,
    name: &'static str,
) -> impl Iterator<Item = Result<Vec<u8>, CliError>> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        while !is_over {
            let mut line = Vec::new();
            let read = file.by_ref().take(most + 1).read_until(b'\n', &mut line);
            let ends = line.pop_if(|last| *last == b'\n').is_some();
            is_over = read.is_err() || !ends;
            match read {
                Err(error) => return Some(Err(missing(name, error))),
                Ok(_) if line.len() as u64 > most => {
                    return Some(Err(damaged(format!("{name} has a line of more than {most} bytes: it is not read"))));
                }
                Ok(_) if !line.is_empty() => return Some(Ok(line)),
                Ok(_) => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_of_its_step() {
        let (question, vote) = (TaskKey::question(0, 1), TaskKey::judge(0, 1, 0, 0));
        let recalled = || StepText::Recalled { hits: vec![] };
        let answered = || StepText::Answered { answer: "x".into(), raw: None, citations: vec![] };
        let searched = || StepText::Searched { query: "x".into(), hits: vec![] };
        let judged = |grade| StepText::Judged {
            judge: "openai:m".into(),
            vote: 0,
            verdict: "correct".into(),
            raw: String::new(),
            grade,
        };
        let part = || StepText::JudgedPart { raw: "x".into() };
        for (task, step, text, fits) in [
            (question, StepNo::RECALL, recalled(), true),
            (question, StepNo::ANSWER, answered(), true),
            (question, StepNo::search(1), searched(), true),
            (vote, StepNo::JUDGE, judged(Some(0.5)), true),
            (vote, StepNo::judge_call(3), part(), true),
            (question, StepNo::RECALL, answered(), false),
            (question, StepNo::ANSWER, recalled(), false),
            (question, StepNo::phrase(1), searched(), false),
            (question, StepNo(-1), recalled(), false),
            (question, StepNo::FAILED, searched(), false),
            (vote, StepNo::JUDGE, part(), false),
            (vote, StepNo::judge_call(0), judged(None), false),
            (vote, StepNo::JUDGE, judged(Some(7.0)), false),
            (question, StepNo::JUDGE, judged(None), false),
            (vote, StepNo::RECALL, recalled(), false),
        ] {
            assert_eq!(is_text_of(task, step, &text), fits, "{task:?} {step:?} {text:?}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_not_read_to_its_end() {
        let read = |text: &'static str| {
            let lines = bounded_lines(text.as_bytes(), 4, BANKS);
            let line = |line: Result<Vec<u8>, CliError>| match line {
                Ok(line) => String::from_utf8(line).expect("is text"),
                Err(error) => error.message,
            };
            lines.map(line).collect::<Vec<_>>()
        };
        assert_eq!(read("a\n\nbcde\nf"), ["a", "bcde", "f"]);
        let refused = format!("{BANKS} has a line of more than 4 bytes: it is not read");
        assert_eq!(read("a\nbcdef\ng\n"), ["a", refused.as_str()]);
        assert_eq!(read("\n\n"), Vec::<String>::new());
    }

    #[test]
    fn documents_of_many_values_are_refused_before_they_are_read() {
        let bomb = |pairs: usize| format!("{{\"x\": [{}0]}}\n", "{\"\":0},".repeat(pairs));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(RUN), bomb(100_000)).expect("is written");
        let refused = check(folder.path(), "any").err().expect("is refused");
        assert_eq!(refused.exit, Exit::Invalid);
        assert!(refused.message.starts_with(&format!("{RUN} cannot be read: it has 300004 values")), "{refused}");
        std::fs::write(folder.path().join(RESULTS), bomb(700_000)).expect("is written");
        let line = lines::<ResultBundle>(folder.path(), RESULTS).map(|mut lines| lines.next().map(|line| line.err()));
        let refused = line.expect("opens").flatten().expect("is refused");
        assert!(refused.message.contains("at most 2000000 are read"), "{refused}");
        let line = bomb(200_000);
        assert!(parse::<serde_json::Value>(RESULTS, line.as_bytes()).is_ok(), "as much as a step may have");
        assert!(parse::<serde_json::Value>(REPORT, line.as_bytes()).is_err());
        for name in [REPORT, BANKS] {
            let read = parse::<serde_json::Value>(name, bomb(700_000).as_bytes());
            assert!(read.is_err_and(|refused| refused.exit == Exit::Invalid), "{name}");
        }
    }

    #[test]
    fn results_that_are_written_at_once_are_bounded_in_number_and_bytes() {
        let parts = |size: usize, number: usize| {
            let mut lines = (0..number).map(|at| Ok((size, at)));
            let part = std::iter::from_fn(|| part_of(&mut lines).ok().filter(|part: &Vec<usize>| !part.is_empty()));
            part.map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(parts(100, 2_500), [1_000, 1_000, 500]);
        assert_eq!(parts(1 << 20, 10), [4, 4, 2]);
        assert_eq!(parts(64 << 20, 3), [1, 1, 1]);
        assert!(check_id(&"q".repeat(MOST_ID)).is_ok());
        assert_eq!(check_id(&"q".repeat(MOST_ID + 1)).expect_err("is too long").exit, Exit::Invalid);
    }

    #[test]
    fn what_becomes_no_task_is_damage() {
        let bank = |no: u32| {
            let bank = serde_json::json!({
                "bank_no": no, "bank_id": "b", "segments": [], "content": "", "questions": "", "gold": ""
            });
            read(BANKS, bank.to_string().as_bytes())
        };
        assert_eq!(bank(0).expect("is one"), 1);
        for beyond in [TaskKey::MAX_BANKS, u32::MAX] {
            assert_eq!(bank(beyond).expect_err("has no keys").exit, Exit::Invalid);
        }
        let spec = |judges: usize, votes: u32| bench_proto::spec::check_grading(judges, votes);
        assert!(spec(15, 31).is_ok() && spec(0, 1).is_ok());
        assert!(spec(16, 1).is_err() && spec(1, 33).is_err() && spec(1, 2).is_err() && spec(1, 0).is_err());
    }
}
