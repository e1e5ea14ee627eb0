//! One vote of one model judge on one answer. Judging is a task of its own, so it has its own concurrency and can be
//! repeated without answering again.

use bench_proto::step::{Effect, Opens, StepFacts, StepNo, StepRecord, StepText};
use bench_store::{ClaimedTask, StoreError};

use super::TaskInput;
use crate::{
    context::{At, RunContext},
    ending::TaskResult,
    tools::Tools,
};

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask, input: &TaskInput) -> TaskResult {
    let data = tools.banks.get(task.run, task.task.bank()).await?;
    let missing = |what: &str| StoreError::Corrupt(format!("{what} of {:?} is not in the store", task.task));
    let question = data.question(task.task.index()).ok_or_else(|| missing("the question"))?;
    let gold = data.gold(&question.question_id).ok_or_else(|| missing("the gold"))?;
    let Some(StepText::Answered { answer, .. }) = input.text(task.task.question_of(), StepNo::ANSWER) else {
        return Err(missing("the answer").into());
    };
    let judge = context.judge(task.task.judge_no()).ok_or_else(|| missing("the judge"))?;
    let entered = context.enter(At::Judges);
    let mut judged = judge.judge(&task, &context.row().spec.dataset.profile, question, gold, answer).await?;
    judged.timing.in_flight = entered.in_flight;
    drop(entered);
    let record = StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::JUDGE,
        epoch: task.epoch,
        facts: StepFacts::Judged { score: judged.score, usage: judged.usage, timing: judged.timing },
        text: Some(StepText::Judged {
            judge: judge.name().to_owned(),
            vote: task.task.vote(),
            verdict: judged.verdict,
            raw: judged.raw,
        }),
        calls: judged.calls,
        effect: Effect::Done { opens: Opens::Nothing },
    };
    tools.writer.submit(vec![record]).await?;
    Ok(())
}
