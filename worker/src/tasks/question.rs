//! One question: recall → answer → deterministic scores. Each step is a checkpoint of its own. A recall is stored while the
//! paid call that rests on it is under way, unless the memory system answers by itself; everything else of the question is
//! committed together.

use bench_grading::scorers::{ScoreCase, abstention::is_abstention};
use bench_proto::{
    dataset::{GoldRecord, Question, StreamEntry},
    facts::{QuestionIdentity, answer_hash, conclude},
    failure::Failure,
    ids::TaskKey,
    step::{Effect, Opens, Retrieval, RetrievedHit, StepFacts, StepNo, StepRecord, StepText, StoredStep, Timing},
};
use bench_store::{ClaimedTask, Conclusion, StoreError};
use bench_systems::{BankRef, Recall, RecallQuery};

use super::{TaskInput, prepare, prepared};
use crate::{
    answerer::Answered,
    banks::BankData,
    clock::StepClock,
    context::{At, RunContext},
    ending::{TaskEnd, TaskResult},
    tools::Tools,
};

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask, input: &TaskInput) -> TaskResult {
    let data = tools.banks.get(task.run, task.task.bank()).await?;
    let missing = || StoreError::Corrupt(format!("{:?} is not in its bank's items", task.task));
    let question = data.question(task.task.index()).ok_or_else(missing)?;
    let gold = data.gold(&question.question_id).ok_or_else(missing)?;

    let asked = Asked { tools, context, task, data: &data, question };
    let mut records = Vec::with_capacity(3);
    let stored_answer = stored_answer(&task, input);
    let hits = match stored_hits(context, &task, input) {
        Some(hits) => hits,
        // an answer that is stored needs no hits, least of all of a forked run whose system is not there
        None if stored_answer.is_some() => Vec::new(),
        None => asked.recall(gold, &mut records).await?,
    };
    let answer = match stored_answer {
        Some(answer) => answer,
        None => {
            // an answer of the memory system rests on the bank itself: a stored recall would let the next segment in (P6)
            let answered = if context.answerer().is_remote() && !records.is_empty() {
                asked.answer_while_storing(std::mem::take(&mut records), &hits).await?
            } else {
                asked.answer(&hits).await?
            };
            let text = answered.answer.clone();
            records.push(answer_record(task, answered));
            text
        }
    };
    records.push(score_record(context, task, question, gold, &answer));
    let conclusion = conclusion(tools, context, task, question, &data, &records);
    tools.writer.submit_and_conclude(records, conclusion).await?;
    Ok(())
}

/// A question that a task asks.
struct Asked<'a> {
    tools: &'a Tools,
    context: &'a RunContext,
    task: ClaimedTask,
    data: &'a BankData,
    question: &'a Question,
}

impl Asked<'_> {
    /// Recalls for the question; the step is added to its records.
    async fn recall(&self, gold: &GoldRecord, records: &mut Vec<StepRecord>) -> Result<Vec<RetrievedHit>, TaskEnd> {
        let Self { tools, context, task, data, question } = *self;
        context.check_running()?;
        let row = context.current_row(tools.store.as_ref(), data).await?;
        let capabilities = context.system().capabilities();
        let evidence = capabilities.sees_gold.then_some(gold.evidence_turns.as_slice());
        let bank = context.bank_ref(&row, data);
        let clock = StepClock::start();
        let trace = context.trace().map(|trace| trace.step(&question.question_id, task.task, StepNo::RECALL));
        let payer = context.payer(task, trace);
        let query = RecallQuery { evidence, step: payer.step(), ..recall_query(context, question, data) };
        let visible_entries = query.visible_entries;
        let recalled = recall_prepared(context, &bank, &query).await;
        let ((mut recall, own), paid) = context.settle(payer, recalled)?;
        recall.usage += paid.usage;
        let spent = clock.timing(&task, 0);
        let timing = Timing {
            rate_wait_us: paid.timing.rate_wait_us,
            calls: paid.timing.calls,
            replies: paid.timing.replies,
            waits: paid.timing.waits,
            server: context.server(&bank, paid.timing.server).await,
            provider_us: spent.total_us.saturating_sub(own.build_us + own.build_wait_us),
            build_us: own.build_us,
            build_wait_us: own.build_wait_us,
            in_flight: own.in_flight,
            ..spent
        };
        let hits = recall.hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
        let retrieval = Retrieval {
            unretained: unretained(context, data, visible_entries, &gold.evidence_turns),
            ..Retrieval::of(hits, &gold.evidence_turns, &gold.evidence_sessions)
        };
        let stored = |hit: &RetrievedHit| RetrievedHit {
            text: if capabilities.ignores_k { String::new() } else { hit.text.clone() },
            id: hit.id.clone(),
            session_id: hit.session_id.clone(),
            ..*hit
        };
        let hits = recall.hits.iter().map(stored).collect();
        records.push(StepRecord {
            run: task.run,
            task: task.task,
            step: StepNo::RECALL,
            epoch: task.epoch,
            facts: StepFacts::Recalled {
                generation: row.generation,
                hits: u32::try_from(recall.hits.len()).unwrap_or(u32::MAX),
                effective_k: recall.effective_k,
                context_bytes: recall.hits.iter().map(|h| h.text.len() as u64).sum(),
                top1_score: recall.hits.first().and_then(|hit| hit.score).filter(|score| score.is_finite()),
                retrieval,
                usage: recall.usage,
                timing,
            },
            text: Some(StepText::Recalled { hits }),
            calls: Vec::new(),
            effect: Effect::Continue,
        });
        Ok(recall.hits)
    }

    async fn answer(&self, hits: &[RetrievedHit]) -> Result<Answered, TaskEnd> {
        let Self { tools, context, task, data, question } = *self;
        let by_system = context.answerer().is_system();
        let entered = context.enter(if by_system { At::System } else { At::Answerer });
        let mut answered = if by_system {
            answer_by_system(tools, context, task, data, question).await?
        } else {
            context.answerer().answer(&task, question, hits, &data.content).await?
        };
        answered.timing.in_flight = entered.in_flight;
        Ok(answered)
    }

    /// Answers while the recall that the answer rests on is stored: the call need not wait for the commit. Whoever stored a
    /// recall first is followed; an answer to other hits has lost, and only its calls are booked.
    async fn answer_while_storing(
        &self,
        recalled: Vec<StepRecord>,
        hits: &[RetrievedHit],
    ) -> Result<Answered, TaskEnd> {
        let Self { tools, context, task, .. } = *self;
        let storing = tools.writer.submit_beside(recalled).await?;
        let answered = self.answer(hits).await;
        let stored = storing.stored().await;
        let answered = answered?;
        let followed = match stored {
            Ok(already) if already.iter().all(Option::is_none) => Ok(None),
            Ok(_) => read_hits_again(tools, context, task).await,
            Err(error) => Err(error.into()),
        };
        match followed {
            Ok(Some(theirs)) if theirs != hits => {
                tools.keep_calls(task, Some(context.row().run_id.clone()), answered.calls).await;
                self.answer(&theirs).await
            }
            Ok(_) => Ok(answered),
            Err(end) => {
                tools.keep_calls(task, Some(context.row().run_id.clone()), answered.calls).await;
                Err(end)
            }
        }
    }
}

/// The facts of a question that nothing is known of but these records, when they end it.
fn conclusion(
    tools: &Tools,
    context: &RunContext,
    task: ClaimedTask,
    question: &Question,
    data: &BankData,
    records: &[StepRecord],
) -> Option<Conclusion> {
    let whole = records.iter().map(|record| record.step).eq([StepNo::RECALL, StepNo::ANSWER, StepNo::SCORE]);
    if !whole {
        return None;
    }
    let identity = QuestionIdentity {
        task: task.task,
        question_id: question.question_id.clone(),
        bank_id: data.content.bank_id.clone(),
        category: question.category.clone(),
    };
    let step = |record: &StepRecord| StoredStep { task: record.task, step: record.step, facts: record.facts.clone() };
    let steps: Vec<StoredStep> = records.iter().map(step).collect();
    let (row, judges) = (context.row(), context.row().spec.judge_plan());
    let mut facts = conclude(identity, &steps, &judges)?;
    if let Some(keeper) = &tools.keeper {
        facts.kept = keeper.decide(task.run, &row.run_id, &row.spec.limits.trace, &judges, &facts);
    }
    Some(Conclusion { run: task.run, headline_metric: context.row().spec.headline_metric(), facts })
}

/// The hits of an earlier claim's recall, when they are in the store with their texts.
fn stored_hits(context: &RunContext, task: &ClaimedTask, input: &TaskInput) -> Option<Vec<RetrievedHit>> {
    if context.system().capabilities().ignores_k {
        // the whole bank is not stored again with each question: it is read anew from the items, and equal by construction
        return None;
    }
    match input.text(task.task, StepNo::RECALL) {
        Some(StepText::Recalled { hits }) => Some(hits.clone()),
        _ => None,
    }
}

fn stored_answer(task: &ClaimedTask, input: &TaskInput) -> Option<String> {
    match input.text(task.task, StepNo::ANSWER) {
        Some(StepText::Answered { answer, .. }) => Some(answer.clone()),
        _ => None,
    }
}

async fn read_hits_again(
    tools: &Tools,
    context: &RunContext,
    task: ClaimedTask,
) -> Result<Option<Vec<RetrievedHit>>, TaskEnd> {
    let again = ClaimedTask { epoch: task.epoch.max(2), ..task };
    let Some((task, input)) = prepare(tools, vec![again]).await.pop() else { return Ok(None) };
    Ok(stored_hits(context, &task, &input?))
}

/// A recall after what it rests on, which is timed apart: how long that took, and how many recalls were in flight at the system
/// when this one began.
async fn recall_prepared(
    context: &RunContext,
    bank: &BankRef,
    query: &RecallQuery<'_>,
) -> Result<(Recall, Timing), Failure> {
    let mut own = Timing::default();
    prepared(context, bank, Some(query), &mut own).await?;
    let entered = context.enter(At::System);
    own.in_flight = entered.in_flight;
    let recall = context.system().recall(bank, query).await?;
    Ok((recall, own))
}

/// Evidence turns that are in none of the first `entries` entries. Looked at only where sessions are cut: elsewhere all of
/// them are retained.
fn unretained(context: &RunContext, data: &BankData, entries: u32, evidence: &[String]) -> u32 {
    let all = &data.content.entries;
    if context.row().spec.sample.max_sessions.is_none() && entries as usize >= all.len() {
        return 0;
    }
    let holds = |entry: &StreamEntry, id: &str| match entry {
        StreamEntry::Session(session) => session.turns.iter().any(|turn| turn.id == id),
        StreamEntry::Memory(_) | StreamEntry::Update { .. } => entry.id() == id,
    };
    let retained = |id: &&String| all.iter().take(entries as usize).any(|entry| holds(entry, id));
    (evidence.len() - evidence.iter().filter(retained).count()) as u32
}

/// The memory system's own answer (reflect, ask).
async fn answer_by_system(
    tools: &Tools,
    context: &RunContext,
    task: ClaimedTask,
    data: &BankData,
    question: &Question,
) -> Result<Answered, TaskEnd> {
    context.check_running()?;
    let clock = StepClock::start();
    let row = context.current_row(tools.store.as_ref(), data).await?;
    let query = recall_query(context, question, data);
    let bank = context.bank_ref(&row, data);
    let answer = context.system().answer(&bank, &query).await;
    let answer = answer.map_err(|failure| context.system_end(failure))?;
    let mut timing = clock.timing(&task, clock.elapsed_us());
    timing.queue_wait_us = 0;
    timing.server = context.system().server(&bank).await;
    Ok(Answered {
        answer: answer.text,
        raw: None,
        citations: answer.citations,
        finish: "stop".to_owned(),
        usage: answer.usage,
        timing,
        calls: Vec::new(),
    })
}

pub(super) fn recall_query<'a>(context: &RunContext, question: &'a Question, data: &BankData) -> RecallQuery<'a> {
    RecallQuery {
        question_id: &question.question_id,
        text: &question.text,
        time_text: question.time_text.as_deref(),
        k: context.row().spec.system.top_k,
        visible_entries: question.ask_after.min(u32::try_from(data.content.entries.len()).unwrap_or(u32::MAX)),
        ..RecallQuery::default()
    }
}

fn answer_record(task: ClaimedTask, answered: Answered) -> StepRecord {
    StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::ANSWER,
        epoch: task.epoch,
        facts: StepFacts::Answered { finish: answered.finish, usage: answered.usage, timing: answered.timing },
        text: Some(StepText::Answered { answer: answered.answer, raw: answered.raw, citations: answered.citations }),
        calls: answered.calls,
        effect: Effect::Continue,
    }
}

fn score_record(
    context: &RunContext,
    task: ClaimedTask,
    question: &Question,
    gold: &GoldRecord,
    answer: &str,
) -> StepRecord {
    let case = ScoreCase { prediction: answer, gold: Some(&gold.gold), category: &question.category };
    let scores = context.scorers().iter().filter_map(|s| Some((s.name().to_owned(), s.score(&case)?))).collect();
    let plan = context.row().spec.judge_plan();
    let (bank, index) = (task.task.bank(), task.task.index());
    let judges: Vec<TaskKey> = (0..plan.metrics.len() as u32)
        .flat_map(|judge| (0..plan.votes).map(move |vote| TaskKey::judge(bank, index, judge, vote)))
        .collect();
    StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::SCORE,
        epoch: task.epoch,
        facts: StepFacts::Scored {
            scores,
            abstained: is_abstention(answer, &context.row().spec.dataset.abstention_phrases),
            answer_hash: answer_hash(answer),
        },
        text: None,
        calls: Vec::new(),
        effect: Effect::Done { opens: if judges.is_empty() { Opens::Nothing } else { Opens::Judges(judges) } },
    }
}
