//! What a fork takes over of its source: banks, and the steps of questions up to its phase. Repeating it changes nothing.

use std::collections::{HashMap, HashSet};

use bench_datasets::LabelFixes;
use bench_proto::{
    call::Phase,
    dataset::GoldRecord,
    facts::QuestionFacts,
    failure::Failure,
    ids::{RunId, Sha256Hash, TaskKey},
    scenario::Scenario,
    served::ServedNote,
    spec::RunSpec,
    step::{StepFacts, StepNo, StepText},
};
use bench_store::{AdoptedQuestion, BankRow, Item, NewBank, RunRow, Runs, SERVED_EVENT, Store};
use bench_worker::banks::BankQuestions;

use crate::{
    app::App,
    cli::ForkFrom,
    exit::CliError,
    planning::{dataset_of, filled, open_label_fixes},
    results::{
        self,
        steps::{failed, saved, until},
    },
    standing::FORK_EVENT,
};

/// Questions whose texts are read at once.
pub(super) const TEXTS_AT_ONCE: usize = 256;

/// Takes over again what a fork that was killed while it was being made has not yet; false when the run is no fork.
///
/// # Errors
/// Exit 2 when its source is gone.
pub(crate) async fn adopt_again(app: &App, store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    let events = store.events(run.run_no).await?;
    let Some(said) = events.iter().find(|event| event.kind == FORK_EVENT) else { return Ok(false) };
    let (word, id) = said.message.split_once(' ').unwrap_or_default();
    let from = match word {
        "recall" => ForkFrom::Recall,
        "answer" => ForkFrom::Answer,
        _ => ForkFrom::Judge,
    };
    let source = store.run_by_id(&RunId(id.to_owned())).await?;
    let source =
        source.ok_or_else(|| CliError::usage(format!("run {id}, from which {} was forked, is gone", run.run_id)))?;
    let fixes = match &run.spec.dataset.label_fixes {
        Some(own) if source.spec.dataset.label_fixes.as_ref() != Some(own) => {
            let fixes = label_fixes(app, &source.spec, &own.name, own.modified).await?;
            if fixes.spec() != own {
                return Err(CliError::usage(format!(
                    "the label fixes {} found now are not those that run {} began with; give the same file",
                    own.name, run.run_id
                )));
            }
            Some(fixes)
        }
        _ => None,
    };
    adopt(store, run, &source, from, fixes.as_ref()).await?;
    Ok(true)
}

/// Label fixes for the dataset of a run.
///
/// # Errors
/// As [`open_label_fixes`].
pub(super) async fn label_fixes(
    app: &App,
    spec: &RunSpec,
    name: &str,
    allow_modified: bool,
) -> Result<LabelFixes, CliError> {
    open_label_fixes(app, name, &dataset_of(app, spec).await?, allow_modified).await
}

/// Copies what is known of the models behind the steps that are taken over. Idempotent.
async fn adopt_notes(store: &dyn Runs, run: &RunRow, source: &RunRow, from: ForkFrom) -> Result<(), CliError> {
    let there = store.events(run.run_no).await?;
    for event in store.events(source.run_no).await?.into_iter().filter(|event| event.kind == SERVED_EVENT) {
        let Ok(note) = serde_json::from_str::<ServedNote>(&event.message) else { continue };
        let is_taken_over = match from {
            ForkFrom::Recall => note.phase == Phase::Retain,
            ForkFrom::Answer => matches!(note.phase, Phase::Retain | Phase::Recall),
            ForkFrom::Judge => note.phase != Phase::Judge,
        };
        if is_taken_over && !there.iter().any(|known| (&known.kind, &known.message) == (&event.kind, &event.message)) {
            store.add_event(run.run_no, SERVED_EVENT, &event.message).await?;
        }
    }
    Ok(())
}

/// Copies banks and steps, bank by bank. Idempotent.
pub(super) async fn adopt(
    store: &dyn Store,
    run: &RunRow,
    source: &RunRow,
    from: ForkFrom,
    fixes: Option<&LabelFixes>,
) -> Result<(), CliError> {
    let keeps_right = from == ForkFrom::Answer && run.spec.taken_over.answered_again > 0;
    // the models that have answered what is kept are told too
    adopt_notes(store, run, source, if keeps_right { ForkFrom::Judge } else { from }).await?;
    let asks_anew = from == ForkFrom::Recall && run.spec.taken_over.asks_filled_banks();
    for row in store.banks(source.run_no, None).await? {
        if row.waits_for_a_look() {
            // nothing of it was asked before the run stopped
            continue;
        }
        let bank_no = row.bank_no;
        let bank = NewBank {
            bank_no,
            bank_id: row.bank_id.clone(),
            content: row.content,
            questions: row.questions,
            gold: match fixes {
                Some(fixes) => annotated(store, row.clone(), fixes).await?,
                None => row.gold,
            },
            segments: row.segments.clone(),
            filled: if asks_anew { filled::as_filled(&row) } else { None },
            // what the run left out when it stopped is no part of the fork
            later: row.later.clone().filter(|later| later.left_out),
        };
        if asks_anew {
            // that the memory system still holds it is proven before its first question
            store.add_banks(run.run_no, &[bank]).await?;
            continue;
        }
        let questions = adopted(store, source, row, from, keeps_right).await?;
        store.adopt(run.run_no, &[bank], &questions).await?;
    }
    store.finish_plan(run.run_no).await?;
    Ok(())
}

/// The gold of a bank with what is known to be wrong with it, stored; returns its hash.
async fn annotated(store: &dyn Store, row: BankRow, fixes: &LabelFixes) -> Result<Sha256Hash, CliError> {
    let bank = BankQuestions::read(store, &row).await?;
    let mut gold: Vec<GoldRecord> =
        bank.questions().iter().filter_map(|question| bank.gold(&question.question_id).cloned()).collect();
    gold.iter_mut().for_each(|record| fixes.annotate(record));
    let bytes = serde_json::to_vec(&gold)
        .map_err(|e| CliError::infrastructure(format!("gold cannot be stored: {e}")).because(e))?;
    let item = Item::from_bytes(bytes);
    let hash = item.hash;
    store.put_items(&[item]).await?;
    Ok(hash)
}

/// The questions of a bank with what is taken over of each.
async fn adopted(
    store: &dyn Store,
    source: &RunRow,
    row: BankRow,
    from: ForkFrom,
    keeps_right: bool,
) -> Result<Vec<AdoptedQuestion>, CliError> {
    let bank_no = row.bank_no;
    let bank = BankQuestions::read(store, &row).await?;
    let mut facts = results::facts_of_bank(store, source.run_no, (bank_no, &bank)).await?;
    let keys: Vec<TaskKey> = bank.asked().map(|q| TaskKey::question(bank_no, q.index)).collect();
    let mut texts: HashMap<TaskKey, Vec<(StepNo, StepText)>> = HashMap::new();
    for part in keys.chunks(TEXTS_AT_ONCE) {
        for (task, step, text) in store.question_texts(source.run_no, part).await? {
            texts.entry(task).or_default().push((step, text));
        }
    }
    let passes = passing(source);
    let adopt = |task: TaskKey| {
        let (stored, facts) = (texts.remove(&task).unwrap_or_default(), facts.remove(&task));
        let from = if keeps_right && facts.as_ref().is_some_and(&passes) { ForkFrom::Judge } else { from };
        AdoptedQuestion { task, steps: steps(facts, stored, from, source.spec.scenario) }
    };
    Ok(keys.into_iter().map(adopt).collect())
}

/// Whether a question of a run has passed, by what heads its report.
fn passing(run: &RunRow) -> impl Fn(&QuestionFacts) -> bool + use<> {
    let metric = run.spec.headline_metric();
    let scale = run.spec.metric(&metric);
    move |facts| facts.scores.iter().any(|(name, score)| *name == metric && scale.passes(*score))
}

/// How many questions of a run have not passed, or have no result; and the others.
///
/// # Errors
/// What the store meets.
pub(super) async fn wrong_and_right(store: &dyn Store, run: &RunRow) -> Result<(u64, HashSet<TaskKey>), CliError> {
    let passes = passing(run);
    let (mut all, mut right) = (0, HashSet::new());
    for row in store.banks(run.run_no, None).await? {
        let bank = BankQuestions::read(store, &row).await?;
        let facts = results::facts_of_bank(store, run.run_no, (row.bank_no, &bank)).await?;
        all += bank.asked().count() as u64;
        right.extend(facts.iter().filter(|(_, facts)| passes(facts)).map(|(task, _)| *task));
    }
    Ok((all - (right.len() as u64).min(all), right))
}

/// The steps of a question up to the phase, made again from its facts and texts.
fn steps(
    facts: Option<QuestionFacts>,
    texts: Vec<(StepNo, StepText)>,
    from: ForkFrom,
    scenario: Scenario,
) -> Vec<(StepNo, StepFacts, Option<StepText>)> {
    let needed = match from {
        ForkFrom::Recall => return Vec::new(),
        ForkFrom::Answer => StepNo::RECALL,
        ForkFrom::Judge if !scenario.answers() => StepNo::RECALL,
        ForkFrom::Judge => StepNo::ANSWER,
    };
    let Some(facts) = facts else {
        return vec![failed(Failure::permanent("not_run", "the run that this one was forked from did not run it"))];
    };
    if texts.iter().all(|(step, _)| *step != needed) {
        let gone = || Failure::permanent("no_answer", "the run that this one was forked from holds no answer to it");
        return vec![failed(facts.failure.clone().unwrap_or_else(gone))];
    }
    until(&facts, texts, needed, saved)
}
