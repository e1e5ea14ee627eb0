//! `show RUN [QUESTION]`: the questions of a run, one by one or those that are worth a look.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
};

use bench_proto::{facts::Outcome, metric::Scale, summary::QuestionLine};
use bench_report::html::{Beside, SentPrompt, missed};
use bench_store::{RunRow, Store};
use bench_worker::traces;
use serde_json::{Value, json};

use crate::{
    app::App,
    cli::ShowArgs,
    display::{
        question::{self, ListedQuestion, Missed, Sent},
        waterfall,
    },
    exit::{CliError, CliResult, Exit},
    out, results,
    standing::find_run,
};

/// Prints a question with all that is known of it, or a list of those that the flags ask for; exit 2 for a question that the run
/// does not have.
pub(super) async fn run(app: &App, args: &ShowArgs) -> CliResult {
    let store = app.open_store().await?;
    let store = store.as_ref();
    let run = find_run(store, &args.run).await?;
    match &args.question {
        Some(wanted) => one(store, &run, wanted, args.json).await,
        None => list(store, &run, args).await,
    }
}

/// A question, with the texts of the evidence that was not among its hits, the prompts that models were sent, and its time line.
async fn one(store: &dyn Store, run: &RunRow, wanted: &str, json: bool) -> CliResult {
    let subject = traces::find_subject(store, run, wanted).await?.ok_or_else(|| {
        let problem = format!("run {} has no question '{wanted}'", run.run_id);
        CliError::usage(format!("{problem}; `bench-coord show {}` lists its questions", run.run_id))
    })?;
    let row = store.banks(run.run_no, None).await?.into_iter().find(|bank| bank.bank_id == subject.bank_id);
    let row = row.ok_or_else(|| CliError::infrastructure(format!("bank {} is not in the store", subject.bank_id)))?;
    let mut found = None;
    results::questions_of_bank(store, run, &row, |line| {
        if line.question_id == subject.question_id {
            found = Some(line);
        }
        Ok(found.is_none())
    })
    .await?;
    let line =
        found.ok_or_else(|| CliError::infrastructure(format!("'{wanted}' is not among its bank's questions")))?;
    let beside = results::beside(store, run, std::slice::from_ref(&line)).await?.remove(&line.question_id);
    let Beside { evidence, prompts, .. } = beside.unwrap_or_default();
    // nobody knows what was recalled elsewhere, where the results do not say so
    let is_unknown = run.imported && line.retrieved.is_empty();
    let missed = if is_unknown { Vec::new() } else { told_of_missed(&line, &evidence) };
    let sent: Vec<Sent> = prompts.into_iter().map(|prompt| told_of_prompt(prompt, &line)).collect();
    if json {
        let mut value = json!(line);
        value["missed"] = json!(missed);
        value["sent"] = json!(sent);
        out::json(&value);
        return Ok(Exit::Done);
    }
    let view = out::view();
    out::words(&question::whole(&line, &missed, &sent, view.width));
    if run.imported {
        return Ok(Exit::Done);
    }
    let trace = traces::gather(store, run, subject).await?;
    out::result("\nwhere its time went");
    out::painted(&waterfall::draw(&trace, &run.run_id.0, None, view));
    Ok(Exit::Done)
}

/// The evidence that is not among the hits of a recall, as a page tells it, with its texts.
fn told_of_missed(line: &QuestionLine, texts: &[(String, String)]) -> Vec<Missed> {
    let text = |id: &str| texts.iter().find(|(of, _)| of == id).map(|(_, text)| text.clone());
    missed(line).into_iter().map(|id| Missed { id: id.to_owned(), text: text(id) }).collect()
}

/// A prompt of a question with the words of its hits.
fn told_of_prompt(prompt: SentPrompt, line: &QuestionLine) -> Sent {
    let user = prompt.laid_out(&line.retrieved);
    Sent { names: prompt.names, system: prompt.system, user }
}

/// What a list is made by.
struct Wanted<'a> {
    args: &'a ShowArgs,
    metric: String,
    scale: Scale,
    /// Question → whether the other run passed it; of `--flipped`.
    other: Option<HashMap<String, bool>>,
    /// In small letters.
    search: Option<String>,
}

impl Wanted<'_> {
    fn score(&self, line: &QuestionLine) -> Option<f64> {
        line.scores.get(&self.metric).copied()
    }

    fn passed(&self, line: &QuestionLine) -> Option<bool> {
        self.score(line).map(|score| self.scale.passes(score))
    }

    fn wants(&self, line: &QuestionLine) -> bool {
        let passed = self.passed(line);
        let has_no_result = matches!(line.outcome, Outcome::InfraError | Outcome::NotRun);
        let holds = |text: &str| self.search.as_ref().is_none_or(|wanted| text.to_lowercase().contains(wanted));
        let told = [&line.gold, &line.answer, &line.error].map(Option::as_ref);
        let texts = [Some(&line.question_id), Some(&line.question)].into_iter().chain(told);
        (!self.args.failed || has_no_result || passed == Some(false))
            && self.args.category.as_ref().is_none_or(|wanted| *wanted == line.category)
            && (self.args.worst.is_none() || passed.is_some())
            && texts.flatten().any(|text| holds(text))
            && self.flipped(line)
    }

    fn flipped(&self, line: &QuestionLine) -> bool {
        self.other.as_ref().is_none_or(|other| match (self.passed(line), other.get(&line.question_id)) {
            (Some(here), Some(there)) => here != *there,
            _ => false,
        })
    }

    /// The worse score first; questions with equal ones stay in their order.
    fn worse_first(&self, a: &QuestionLine, b: &QuestionLine) -> Ordering {
        let gain = |line| self.score(line).map_or(f64::MAX, |score| self.scale.gain(score));
        gain(a).total_cmp(&gain(b))
    }
}

async fn list(store: &dyn Store, run: &RunRow, args: &ShowArgs) -> CliResult {
    if args.search.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CliError::usage("no text is named for --search (an empty word, as of a variable that is not set)"));
    }
    let metric = run.spec.headline_metric();
    let scale = run.spec.metric(&metric);
    let other = match &args.flipped {
        Some(other) => Some(passed_by(store, run, other, &metric, scale).await?),
        None => None,
    };
    let wanted = Wanted { args, metric, scale, other, search: args.search.as_ref().map(|text| text.to_lowercase()) };
    let most = args.worst.unwrap_or(args.most);
    // of the worst, twice as many are held as are wanted: they are sorted now and then
    let held = if args.worst.is_some() { most.saturating_mul(2) } else { most };
    let (mut kept, mut found): (Vec<QuestionLine>, u64) = (Vec::new(), 0);
    let mut categories = BTreeSet::new();
    results::each_question(store, run, |line| {
        if !categories.contains(&line.category) {
            categories.insert(line.category.clone());
        }
        if wanted.wants(&line) {
            found += 1;
            kept.push(line);
            if args.worst.is_some() && kept.len() > held {
                kept.sort_by(|a, b| wanted.worse_first(a, b));
            }
            kept.truncate(held);
        }
        Ok(true)
    })
    .await?;
    if let Some(category) = args.category.as_ref().filter(|name| !categories.contains(*name)) {
        let known = categories.into_iter().collect::<Vec<_>>().join(", ");
        return Err(CliError::usage(format!("run {} has no category '{category}'; it has {known}", run.run_id)));
    }
    if args.worst.is_some() {
        kept.sort_by(|a, b| wanted.worse_first(a, b));
        kept.truncate(most);
    }
    if args.json {
        out::json(&kept.iter().map(|line| json!(line)).collect::<Vec<Value>>());
        return Ok(Exit::Done);
    }
    if kept.is_empty() {
        out::note(&format!("no question of run {} is like that", run.run_id));
        return Ok(Exit::Done);
    }
    let listed = |line: &QuestionLine| ListedQuestion {
        question_id: line.question_id.clone(),
        category: line.category.clone(),
        score: wanted.score(line),
        outcome: line.outcome.name(),
        lost: line.failures.join(", "),
        error: line.error.clone(),
        question: line.question.clone(),
    };
    out::result(&question::list(&wanted.metric, &kept.iter().map(listed).collect::<Vec<_>>()));
    let shown = kept.len() as u64;
    if shown < found {
        let flag = if args.worst.is_some() { "--worst" } else { "--most" };
        out::note(&format!("{shown} of {found} questions; {flag} {found} shows all"));
    }
    out::note(&format!("`bench-coord show {} QUESTION` shows one of them", run.run_id));
    Ok(Exit::Done)
}

/// Which questions another run passed, by this run's metric.
async fn passed_by(
    store: &dyn Store,
    run: &RunRow,
    other: &str,
    metric: &str,
    scale: Scale,
) -> Result<HashMap<String, bool>, CliError> {
    let other = find_run(store, other).await?;
    if other.spec.dataset.name != run.spec.dataset.name {
        let (theirs, ours) = (&other.spec.dataset.name, &run.spec.dataset.name);
        return Err(CliError::usage(format!(
            "--flipped {}: its dataset is {theirs}, and that of {} is {ours}: no question is in both",
            other.run_id, run.run_id
        )));
    }
    let mut passed = HashMap::new();
    results::each_question(store, &other, |line| {
        if let Some(score) = line.scores.get(metric) {
            passed.insert(line.question_id, scale.passes(*score));
        }
        Ok(true)
    })
    .await?;
    if passed.is_empty() {
        return Err(CliError::usage(format!(
            "--flipped {}: it has no score by {metric}, by which {} is graded",
            other.run_id, run.run_id
        )));
    }
    Ok(passed)
}
