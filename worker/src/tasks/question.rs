//! One question: recall → answer → deterministic scores, or recall → scores where the scenario has no answers. Each step is a
//! checkpoint of its own. A recall is stored while the paid call that rests on it is under way, unless the memory system answers
//! by itself; everything else of the question is committed together. Where a question has several recalls, each of them and each
//! move of a model between them is a checkpoint too ([`several`]).

mod several;

use bench_grading::scorers::{ScoreCase, abstention::is_abstention, corrected_scores};
use bench_proto::{
    call::CallRecord,
    canary::{self, Fact},
    dataset::{GoldRecord, Question, StreamEntry},
    facts::{QuestionIdentity, answer_hash, conclude},
    failure::{Failure, FailureClass},
    ids::TaskKey,
    scenario::{ReaderMode, RecallPlan},
    step::{Effect, Opens, Retrieval, RetrievedHit, StepFacts, StepNo, StepRecord, StepText, StoredStep, Timing},
};
use bench_store::{ClaimedTask, Conclusion, StoreError};
use bench_systems::{BankRef, MemorySystem, Recall, RecallQuery, outside_filter};

use super::{TaskInput, prepare, prepared};
use crate::{
    answerer::{Answered, Shown},
    banks::BankData,
    clock::StepClock,
    context::{At, RunContext},
    ending::{TaskEnd, TaskResult},
    tools::Tools,
};

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask, input: &TaskInput) -> TaskResult {
    let data = tools.banks.get(task.run, task.task.bank()).await?;
    let missing = || StoreError::Corrupt(format!("{:?} is not in its bank's items", task.task).into());
    let question = data.question(task.task.index()).ok_or_else(missing)?;
    let gold = data.gold(&question.question_id).ok_or_else(missing)?;

    let asked = Asked { tools, context, task, data: &data, question, gold };
    let mut records = Vec::with_capacity(3);
    let (stored_answer, stored_recall) = (stored_answer(&task, input), stored_recall(&task, input));
    let mut said = None;
    let mut hits = match stored_hits(context, &task, input) {
        Some(hits) => hits,
        // an answer that is stored needs no texts of hits, least of all of a forked run whose system is not there
        None if stored_answer.is_some() => stored_recall.cloned().unwrap_or_default(),
        None => match context.row().spec.recalls {
            RecallPlan { at_most: 1.., .. } => {
                let (hits, answer) = asked.search_until_answered(input, &mut records).await?;
                said = Some(answer);
                hits
            }
            RecallPlan { rephrased: 1.., .. } => asked.recall_rephrased(input, &mut records).await?,
            RecallPlan { .. } => asked.recall(&mut records).await?,
        },
    };
    let was_recalled = stored_recall.is_some() || !records.is_empty();
    let answer = match stored_answer.or(said) {
        _ if !context.row().spec.scenario.answers() => None,
        Some(answer) => Some(answer),
        None => {
            // an answer of the memory system rests on the bank itself: a stored recall would let the next segment in (P6)
            let answered = if context.answerer().is_remote() && !records.is_empty() {
                asked.answer_while_storing(std::mem::take(&mut records), &mut hits).await?
            } else {
                asked.answer(&hits).await?
            };
            let text = answered.answer.clone();
            records.push(answer_record(task, answered));
            Some(text)
        }
    };
    let retrieval = (was_recalled && context.system().capabilities().recalls).then(|| asked.ranks(&hits));
    let case = ScoreCase {
        hits: &hits,
        retrieval: retrieval.as_ref(),
        answer: answer.as_deref(),
        ..ScoreCase::unanswered(&context.row().spec.dataset.profile, question, gold)
    };
    records.push(score_record(context, task, &case));
    let conclusion = conclusion(tools, context, task, question, &data, &records);
    tools.writer.submit_and_conclude(records, conclusion).await?;
    Ok(())
}

/// A question that a task asks.
#[derive(Clone, Copy)]
struct Asked<'a> {
    tools: &'a Tools,
    context: &'a RunContext,
    task: ClaimedTask,
    data: &'a BankData,
    question: &'a Question,
    gold: &'a GoldRecord,
}

/// What a search has brought.
struct Found {
    recall: Recall,
    /// Generation of the bank that was read.
    generation: i64,
    timing: Timing,
}

impl Asked<'_> {
    /// Recalls for the question; the step is added to its records.
    async fn recall(&self, records: &mut Vec<StepRecord>) -> Result<Vec<RetrievedHit>, TaskEnd> {
        let Found { recall, generation, timing } = self.look_for(&self.question.text, StepNo::RECALL).await?;
        let facts = self.recalled(generation, &recall, timing);
        let ignores_k = self.context.system().capabilities().ignores_k;
        let stored = |hit: &RetrievedHit| RetrievedHit {
            text: if ignores_k { String::new() } else { hit.text.clone() },
            id: hit.id.clone(),
            session_id: hit.session_id.clone(),
            details: hit.details.clone(),
            ..*hit
        };
        let hits = recall.hits.iter().map(stored).collect();
        records.push(self.record(StepNo::RECALL, facts, StepText::Recalled { hits }, Vec::new()));
        Ok(recall.hits)
    }

    /// Searches for a text as a step of the question.
    async fn look_for(&self, text: &str, step: StepNo) -> Result<Found, TaskEnd> {
        let Self { tools, context, task, data, question, gold } = *self;
        context.check_running()?;
        let row = context.current_row(tools.store.as_ref(), data).await?;
        let evidence = context.system().capabilities().sees_gold.then_some(gold.evidence_turns.as_slice());
        let bank = context.bank_ref(&row, data);
        let clock = StepClock::start();
        let trace = context.trace().map(|trace| trace.step(&question.question_id, task.task, step));
        let payer = context.payer(task, trace);
        let query = RecallQuery { text, evidence, step: payer.step(), ..recall_query(context, question, data) };
        let facts = context.row().spec.facts_in(row.bank_no, &row.bank_id);
        let recalled = recall_prepared(context, &bank, &query, &facts).await;
        let ((mut recall, own, again_us), paid) = context.settle(payer, recalled)?;
        recall.usage += paid.usage;
        let spent = clock.timing(&task, 0);
        // calls that were seen on their own stay inside of their step
        let seen_apart = !(paid.timing.calls.is_empty() && paid.timing.waits.is_empty());
        let total_us = if seen_apart { spent.total_us } else { spent.total_us.saturating_sub(again_us) };
        let timing = Timing {
            rate_wait_us: paid.timing.rate_wait_us,
            calls: paid.timing.calls,
            replies: paid.timing.replies,
            waits: paid.timing.waits,
            server: context.server(&bank, paid.timing.server).await,
            provider_us: total_us.saturating_sub(own.build_us + own.build_wait_us),
            total_us,
            build_us: own.build_us,
            build_wait_us: own.build_wait_us,
            in_flight: own.in_flight,
            ..spent
        };
        Ok(Found { recall, generation: row.generation, timing })
    }

    /// The facts of the question's recall.
    fn recalled(&self, generation: i64, recall: &Recall, timing: Timing) -> StepFacts {
        let Recall { hits, effective_k, usage, .. } = recall;
        StepFacts::Recalled {
            generation,
            hits: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            effective_k: *effective_k,
            context_bytes: hits.iter().map(|h| h.text.len() as u64).sum(),
            top1_score: hits.first().and_then(|hit| hit.score).filter(|score| score.is_finite()),
            retrieval: self.ranks(hits),
            usage: *usage,
            timing,
        }
    }

    /// A step of the question that others follow.
    fn record(&self, step: StepNo, facts: StepFacts, text: StepText, calls: Vec<CallRecord>) -> StepRecord {
        let ClaimedTask { run, task, epoch, .. } = self.task;
        StepRecord { run, task, step, epoch, facts, text: Some(text), calls, effect: Effect::Continue }
    }

    /// The ranks of the question's evidence among its hits.
    fn ranks(&self, hits: &[RetrievedHit]) -> Retrieval {
        let Self { context, data, question, gold, .. } = *self;
        let placed = hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
        let visible_entries = recall_query(context, question, data).visible_entries;
        Retrieval {
            unretained: unretained(context, data, visible_entries, &gold.evidence_turns),
            nothing_expected: gold.may_be_met_by_silence(),
            outside: outside_filter(&data.content, &question.filter, hits),
            ..Retrieval::from_hits(placed, &gold.evidence_turns, &gold.evidence_sessions)
        }
    }

    async fn answer(&self, hits: &[RetrievedHit]) -> Result<Answered, TaskEnd> {
        let Self { tools, context, task, data, question, .. } = *self;
        let by_system = context.answerer().is_system();
        let entered = context.enter(if by_system { At::System } else { At::Answerer });
        let mut answered = if by_system {
            answer_by_system(tools, context, task, data, question).await?
        } else {
            context.answerer().answer(&task, self.shown(hits)).await?
        };
        answered.timing.in_flight = entered.in_flight;
        Ok(answered)
    }

    /// What an answerer is shown of it.
    fn shown<'s>(&'s self, hits: &'s [RetrievedHit]) -> Shown<'s> {
        Shown { question: self.question, gold: Some(self.gold), hits, bank: &self.data.content }
    }

    /// Answers while the recall that the answer rests on is stored: the call need not wait for the commit. Whoever stored a
    /// recall first is followed, and `hits` are theirs then; an answer to other hits has lost, and only its calls are booked.
    async fn answer_while_storing(
        &self,
        recalled: Vec<StepRecord>,
        hits: &mut Vec<RetrievedHit>,
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
            Ok(Some(theirs)) if theirs != *hits => {
                tools.keep_calls(task, Some(context.row().run_id.clone()), answered.calls).await;
                *hits = theirs;
                self.answer(hits).await
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
    let spec = &context.row().spec;
    let steps: &[StepNo] = match spec.scenario.answers() {
        true => &[StepNo::RECALL, StepNo::ANSWER, StepNo::SCORE],
        false => &[StepNo::RECALL, StepNo::SCORE],
    };
    // of several recalls the store knows more than these records
    if !spec.recalls.is_once() || !records.iter().map(|record| &record.step).eq(steps) {
        return None;
    }
    let identity = QuestionIdentity {
        task: task.task,
        question_id: question.question_id.clone(),
        bank_id: data.content.bank_id.clone(),
        category: question.category.clone(),
        facets: data.gold(&question.question_id).map(|gold| gold.facets.clone()).unwrap_or_default(),
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
    stored_recall(task, input).cloned()
}

/// What an earlier claim's recall brought, without texts where the whole bank comes back.
fn stored_recall<'a>(task: &ClaimedTask, input: &'a TaskInput) -> Option<&'a Vec<RetrievedHit>> {
    match input.text(task.task, StepNo::RECALL) {
        Some(StepText::Recalled { hits }) => Some(hits),
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
/// when this one began. With the microseconds of the recall that facts made necessary beside it.
async fn recall_prepared(
    context: &RunContext,
    bank: &BankRef,
    query: &RecallQuery<'_>,
    facts: &[Fact],
) -> Result<(Recall, Timing, u64), Failure> {
    let mut own = Timing::default();
    if query.text.trim().is_empty() {
        // nothing to search for: what is asserted of it holds or fails by what the harness puts beside the hits
        return Ok((Recall { effective_k: query.k, ..Recall::default() }, own, 0));
    }
    prepared(context, bank, Some(query), &mut own).await?;
    let entered = context.enter(At::System);
    own.in_flight = entered.in_flight;
    let (recall, again_us) = recall_without(context.system(), bank, query, facts).await?;
    Ok((recall, own, again_us))
}

/// A recall without the facts that the run has stored beside the dataset. Where they took places of others, it is made
/// again for as many hits more; a system that refuses that gives what it gave. With the microseconds of that second recall,
/// which no question needs: they are no latency of the system.
async fn recall_without(
    system: &dyn MemorySystem,
    bank: &BankRef,
    query: &RecallQuery<'_>,
    facts: &[Fact],
) -> Result<(Recall, u64), Failure> {
    let mut recall = system.recall(bank, query).await?;
    let is_full = recall.hits.len() >= query.k as usize;
    let left_out = canary::without(facts, &mut recall.hits);
    if left_out > 0 {
        recall.keep_said_once();
    }
    let most = system.capabilities().max_k.unwrap_or(u32::MAX);
    let more = query.k.saturating_add(facts.len() as u32).min(most);
    if left_out == 0 || !is_full || more <= query.k || system.capabilities().token_budget {
        return Ok((recall, 0));
    }
    let clock = StepClock::start();
    let again = system.recall(bank, &RecallQuery { k: more, ..query.clone() }).await;
    let again_us = clock.elapsed_us();
    match again {
        Ok(mut again) => {
            let left_out = canary::without(facts, &mut again.hits);
            again.hits.truncate(query.k as usize);
            if left_out > 0 {
                again.keep_said_once();
            }
            again.usage += recall.usage;
            Ok((Recall { effective_k: recall.effective_k, ..again }, again_us))
        }
        Err(failure) if failure.class == FailureClass::Permanent => Ok((recall, again_us)),
        Err(failure) => Err(failure),
    }
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
        StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => memory.id == id,
        StreamEntry::Update { memory: None, .. } => false,
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
    let mut query = recall_query(context, question, data);
    if query.reader_mode == ReaderMode::Basic {
        (query.time, query.time_text) = (None, None);
    }
    let bank = context.bank_ref(&row, data);
    let answer = context.system().answer(&bank, &query).await;
    let answer = answer.map_err(|failure| context.system_end(&bank, failure))?;
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
    let spec = &context.row().spec;
    let reader_mode = spec.scenario.reader_mode();
    RecallQuery { reader_mode, ..RecallQuery::from_question(question, spec.system.top_k, data.content.entries.len()) }
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

fn score_record(context: &RunContext, task: ClaimedTask, case: &ScoreCase<'_>) -> StepRecord {
    let scorers = context.scorers();
    let mut scores: Vec<(String, f64)> = scorers.iter().flat_map(|scorer| scorer.named_scores(case)).collect();
    scores.extend(corrected_scores(scorers, case));
    let (plan, phrases) = (context.row().spec.judge_plan(), &context.row().spec.dataset.abstention_phrases);
    let (bank, index) = (task.task.bank(), task.task.index());
    let judges: Vec<TaskKey> = plan
        .asked(&case.question.category, &case.question.question_id)
        .flat_map(|judge| (0..plan.votes).map(move |vote| TaskKey::judge(bank, index, judge, vote)))
        .collect();
    StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::SCORE,
        epoch: task.epoch,
        facts: StepFacts::Scored {
            scores,
            abstained: case.answer.is_some_and(|answer| is_abstention(answer, phrases)),
            answer_hash: case.answer.map_or(0, answer_hash),
        },
        text: None,
        calls: Vec::new(),
        effect: Effect::Done { opens: if judges.is_empty() { Opens::Nothing } else { Opens::Judges(judges) } },
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use async_trait::async_trait;
    use bench_proto::ids::Sha256Hash;
    use bench_systems::{Capabilities, ListCursor, ListedPage, Readiness, RetainReceipt, StepContext};

    use super::*;

    /// Finds a made-up fact first, and takes its time for more than two hits.
    struct Slow(Capabilities);

    const SLOW: Duration = Duration::from_millis(30);

    #[async_trait]
    impl MemorySystem for Slow {
        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        async fn open_bank(&self, _bank: &BankRef) -> Result<String, Failure> {
            Ok(String::new())
        }

        async fn retain(
            &self,
            _bank: &BankRef,
            _entries: &[StreamEntry],
            _step: StepContext<'_>,
        ) -> Result<RetainReceipt, Failure> {
            Ok(RetainReceipt::default())
        }

        async fn readiness(&self, _bank: &BankRef, _entries: u32) -> Result<Readiness, Failure> {
            Ok(Readiness::Proven)
        }

        async fn recall(&self, _bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
            if query.k > 2 {
                tokio::time::sleep(SLOW).await;
            }
            let hit = |id: &str| RetrievedHit { id: id.to_owned(), ..RetrievedHit::default() };
            let mut hits: Vec<RetrievedHit> = ["fact", "a", "b"].map(hit).into_iter().take(query.k as usize).collect();
            let said_once = BTreeMap::from([("mode".to_owned(), serde_json::Value::from("hybrid"))]);
            hits[0].details = BTreeMap::from([("rank".to_owned(), serde_json::Value::from(1))]);
            hits[0].details.extend(said_once.clone());
            Ok(Recall { hits, effective_k: query.k, said_once, ..Recall::default() })
        }

        async fn list(&self, _bank: &BankRef, _entries: u32, _from: &ListCursor) -> Result<ListedPage, Failure> {
            Ok(ListedPage::default())
        }

        async fn reset_bank(&self, _bank: &BankRef) -> Result<(), Failure> {
            Ok(())
        }

        async fn health(&self) -> Result<String, Failure> {
            Ok(String::new())
        }
    }

    #[tokio::test]
    async fn a_recall_that_facts_alone_make_necessary_is_timed_apart() {
        let system = Slow(Capabilities::from_items("1"));
        let bank = BankRef {
            name: "bench-1-g1".to_owned(),
            handle: None,
            bank_id: "conv-1".to_owned(),
            content_hash: Sha256Hash::of_bytes(b""),
            content: None,
        };
        let text = |text: &str| text.to_owned();
        let fact = Fact { id: text("fact"), text: text("f"), question: text("q"), cue: text("c"), sign: text("qqxq") };
        let query = RecallQuery { text: "who", k: 2, ..RecallQuery::default() };
        let (recall, again_us) = recall_without(&system, &bank, &query, &[fact]).await.expect("it answers");
        let ids: Vec<&str> = recall.hits.iter().map(|hit| hit.id.as_str()).collect();
        assert_eq!((ids, recall.effective_k), (vec!["a", "b"], 2));
        assert!(u128::from(again_us) >= SLOW.as_micros(), "{again_us}");
        let details = |at: usize| recall.hits[at].details.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((details(0), details(1)), (vec!["mode"], vec![]), "what was said once, and nothing of the fact");
        let (_, again_us) = recall_without(&system, &bank, &query, &[]).await.expect("it answers");
        assert_eq!(again_us, 0, "nothing was left out");
    }
}
