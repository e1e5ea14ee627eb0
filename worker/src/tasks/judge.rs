//! One vote of one model judge on one answer: the calls of its rubric's program. Judging is a task of its own, so it has its own
//! concurrency and can be repeated without answering again.
//!
//! A vote of one call is one step. Of a vote of several, the reply to each call is a step of its own and the grade the last: a vote
//! that is cut goes on from the replies that are stored, and makes only the calls again that were in flight.

use std::collections::BTreeMap;

use bench_grading::judging::{Grade, JudgeCall, MOST_CALLS, Next, Replies, Reply, keys::Case};
use bench_proto::{
    call::{CallRecord, Usage},
    failure::Failure,
    step::{Effect, Opens, StepFacts, StepNo, StepRecord, StepText, Timing},
};
use bench_store::{ClaimedTask, StoreError};
use futures::{StreamExt as _, stream::FuturesUnordered};

use super::TaskInput;
use crate::{
    calls::{AskedFor, Called},
    clock::StepClock,
    context::{At, RunContext},
    ending::{TaskEnd, TaskResult},
    judge::Judge,
    tools::Tools,
};

/// Calls of one vote in flight at once: a rubric of many lines must not keep those of others waiting.
const CALLS_AT_ONCE: usize = 16;

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask, input: &TaskInput) -> TaskResult {
    let data = tools.banks.get(task.run, task.task.bank()).await?;
    let missing = |what: &str| StoreError::Corrupt(format!("{what} of {:?} is not in the store", task.task).into());
    let question = data.question(task.task.index()).ok_or_else(|| missing("the question"))?;
    let gold = data.gold(&question.question_id).ok_or_else(|| missing("the gold"))?;
    let Some(StepText::Answered { answer, .. }) = input.text(task.task.question_of(), StepNo::ANSWER) else {
        return Err(missing("the answer").into());
    };
    let judge = context.judge(task.task.judge_no()).ok_or_else(|| missing("the judge"))?;
    let case = Case::by_profile(&context.row().spec.dataset.profile, question, Some(gold), answer, &data.content)
        .map_err(|e| Failure::permanent("no_rubric", e.to_string()))?;
    let stored = stored_replies(input, task);
    let vote = Vote { tools, context, task, judge, question_id: &question.question_id, stored };
    vote.cast(&case).await
}

/// The raw replies of an earlier claim by the numbers of their calls.
fn stored_replies(input: &TaskInput, task: ClaimedTask) -> BTreeMap<u32, &str> {
    let replies = input.texts_of(task.task).filter_map(|(step, text)| match text {
        StepText::JudgedPart { raw } => Some((step.call_of_vote()?, raw.as_str())),
        _ => None,
    });
    replies.collect()
}

/// A vote that is being cast.
struct Vote<'a> {
    tools: &'a Tools,
    context: &'a RunContext,
    task: ClaimedTask,
    judge: &'a Judge,
    question_id: &'a str,
    /// Raw replies that were stored before this claim.
    stored: BTreeMap<u32, &'a str>,
}

impl Vote<'_> {
    /// Drives the rubric's program to its grade, and stores it.
    async fn cast(&self, case: &Case<'_>) -> TaskResult {
        let clock = StepClock::start();
        let may_be_one = self.stored.is_empty() && case.calls() == 1;
        let mut replies = Replies::new();
        loop {
            let mut calls = match case.next(&replies) {
                Next::Ask(calls) => calls,
                Next::Done(grade) => return self.store_grade(grade, &clock).await,
            };
            calls.retain(|call| call.no < MOST_CALLS && !replies.contains_key(&call.no));
            match calls.as_slice() {
                [] => return Err(stuck(&replies).into()),
                // what may be the whole vote is stored when that is known
                [call] if may_be_one && replies.is_empty() => {
                    let called = self.ask(call, StepNo::JUDGE).await?;
                    replies.insert(call.no, called.value.clone());
                    if let Next::Done(grade) = case.next(&replies) {
                        return self.store_whole(grade, called).await;
                    }
                    let reply = self.store_reply(call, called).await?;
                    replies.insert(call.no, reply);
                }
                _ => {
                    let progress = replies.len() > self.stored.len();
                    replies.extend(self.answers(calls, progress).await?);
                }
            }
        }
    }

    /// Replies to calls that do not rest on each other: the stored ones, and the others as they come. When a call brings nothing,
    /// those in flight are waited for and stored, and no further one begins. `progress`: this claim has stored a reply before.
    async fn answers(&self, calls: Vec<JudgeCall>, mut progress: bool) -> Result<Replies, TaskEnd> {
        let mut replies = Replies::new();
        let mut unanswered = Vec::with_capacity(calls.len());
        for call in calls {
            match self.stored.get(&call.no) {
                Some(raw) => drop(replies.insert(call.no, read_again(&call, raw)?)),
                None => unanswered.push(call),
            }
        }
        let mut unanswered = unanswered.into_iter();
        let mut in_flight: FuturesUnordered<_> =
            unanswered.by_ref().take(CALLS_AT_ONCE).map(|call| self.answer(call)).collect();
        let mut ends = Vec::new();
        while let Some(answered) = in_flight.next().await {
            match answered {
                Ok((no, reply)) => {
                    progress = true;
                    replies.insert(no, reply);
                }
                Err(end) => ends.push(end),
            }
            if ends.is_empty() {
                in_flight.extend(unanswered.next().map(|call| self.answer(call)));
            }
        }
        drop(in_flight);
        match TaskEnd::of_several(ends) {
            None => Ok(replies),
            Some((end, others)) => {
                self.tools.keep_calls(self.task, Some(self.context.row().run_id.clone()), others).await;
                Err(end.after_progress(progress))
            }
        }
    }

    /// Makes a call of several, and stores its reply.
    async fn answer(&self, call: JudgeCall) -> Result<(u32, Reply), TaskEnd> {
        let called = self.ask(&call, StepNo::judge_call(call.no)).await?;
        Ok((call.no, self.store_reply(&call, called).await?))
    }

    async fn ask(&self, call: &JudgeCall, step: StepNo) -> Result<Called<Reply>, TaskEnd> {
        let Self { context, task, question_id, .. } = self;
        let trace = context.trace().map(|trace| trace.step(question_id, task.task, step));
        let asked = AskedFor { task, question_id, draw: task.task.vote(), trace: trace.as_ref() };
        let entered = context.enter(At::Judges);
        let mut called = self.judge.ask(asked, call).await?;
        called.timing.in_flight = entered.in_flight;
        Ok(called)
    }

    /// Stores the reply to a call of several; the reply that counts. Whoever stored one first is followed: the grade rests on what is
    /// stored.
    async fn store_reply(&self, call: &JudgeCall, called: Called<Reply>) -> Result<Reply, TaskEnd> {
        // the task waited in the queue once, and its grade says so
        let timing = Timing { queue_wait_us: 0, dispatch_us: 0, ..called.timing };
        let step = StepNo::judge_call(call.no);
        let record = StepRecord {
            step,
            facts: StepFacts::JudgedPart { usage: called.usage, timing },
            text: Some(StepText::JudgedPart { raw: called.reply.text }),
            calls: called.records,
            effect: Effect::Continue,
            ..self.record()
        };
        let before = self.tools.writer.submit(vec![record]).await?;
        if before.iter().all(Option::is_none) {
            return Ok(called.value);
        }
        let texts = self.tools.store.step_texts(self.task.run, &[self.task.task], step).await?;
        match texts.first() {
            Some((_, StepText::JudgedPart { raw })) => Ok(read_again(call, raw)?),
            // the task has failed elsewhere, and stores no grade
            _ => Ok(called.value),
        }
    }

    /// Stores a vote that was one call.
    async fn store_whole(&self, grade: Grade, called: Called<Reply>) -> TaskResult {
        let Called { reply, records, usage, timing, .. } = called;
        self.store(grade, reply.text, (usage, timing), records).await
    }

    /// Stores the grade of a vote whose replies are stored.
    async fn store_grade(&self, grade: Grade, clock: &StepClock) -> TaskResult {
        let timing = Timing { attempts: 0, ..clock.timing(&self.task, 0) };
        self.store(grade, String::new(), (Usage::default(), timing), Vec::new()).await
    }

    async fn store(
        &self,
        grade: Grade,
        raw: String,
        (usage, timing): (Usage, Timing),
        calls: Vec<CallRecord>,
    ) -> TaskResult {
        let Grade { score, parts, word } = grade;
        let (judge, vote) = (self.judge.name().to_owned(), self.task.task.vote());
        let record = StepRecord {
            facts: StepFacts::Judged { score, parts, usage, timing },
            text: Some(StepText::Judged { judge, vote, verdict: word, raw, grade: None }),
            calls,
            ..self.record()
        };
        self.tools.writer.submit(vec![record]).await?;
        Ok(())
    }

    /// The last step of the vote, but for what it says.
    fn record(&self) -> StepRecord {
        StepRecord {
            run: self.task.run,
            task: self.task.task,
            step: StepNo::JUDGE,
            epoch: self.task.epoch,
            facts: StepFacts::Judged {
                score: None,
                parts: Vec::new(),
                usage: Usage::default(),
                timing: Timing::default(),
            },
            text: None,
            calls: Vec::new(),
            effect: Effect::Done { opens: Opens::Nothing },
        }
    }
}

/// A stored reply by the form that its call asks for.
fn read_again(call: &JudgeCall, raw: &str) -> Result<Reply, Failure> {
    call.form.read(raw).map_err(|error| {
        let (no, form) = (call.no, call.form.name());
        let message = format!("the stored reply to call {no} of the vote does not read as '{form}': {error}");
        Failure::permanent("judge_reply", message)
    })
}

/// A program that neither asks nor grades would never end.
fn stuck(replies: &Replies) -> Failure {
    Failure::permanent(
        "judge_program",
        format!("the rubric's program asks for nothing after {} replies, and gives no grade", replies.len()),
    )
}
