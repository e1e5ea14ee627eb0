//! Forks: banks and questions that begin where another run's ended.

use async_trait::async_trait;
use bench_proto::{
    bank::{BankEvent, first_epoch},
    ids::{RunNo, TaskKey},
    step::StepNo,
    task::TaskState,
};

use super::{
    Backend, Batch, CHUNK, Conn, Sql, SqlStore, args,
    counters::{self, Delta},
    plan::{self, COLUMNS_OF_ROWS},
    task_key,
};
use crate::{
    AdoptedQuestion, Forks, NewBank, StoreResult,
    codec::{to_frame, to_json},
};

/// Questions of one statement.
const PART: usize = 1_000;
/// Lease epoch of a task with adopted steps: its first claim is above 1, and so reads them.
pub(super) const WITH_STEPS: i64 = 1;

/// Banks in state ready at their last segment, and their retain and ready tasks done.
async fn adopt_banks(conn: &mut dyn Conn, run: RunNo, batch: Batch, new: Vec<NewBank>) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        format!(
            "INSERT INTO banks (run_no, bank_no, bank_id, content, questions, gold, segments, last_segment, generation, state, \
             position, segment, open_recalls, filled_name, filled_handle, filled_by, later) \
             SELECT $1, b.bank, b.bank_id, b.content, b.questions, b.gold, b.segments, b.last, 1, {}, 0, b.last, 0, b.filled_name, \
             b.filled_handle, NULLIF(b.filled_by, 0), b.later FROM @rows($2: {COLUMNS_OF_ROWS}) AS b WHERE true ORDER BY b.bank ON CONFLICT (run_no, bank_no) DO NOTHING RETURNING bank_no",
            BankEvent::TakenOver.leads_to().code()
        )
    });
    counters::require(conn, run).await?;
    let added = conn.fetch(&INSERT, args![run.0, batch]).await?;
    let added: std::collections::HashSet<u32> = added.iter().map(|row| row.small(0)).collect::<StoreResult<_>>()?;
    let new: Vec<NewBank> = new.into_iter().filter(|bank| added.contains(&bank.bank_no)).collect();
    let done: Vec<TaskKey> = new
        .iter()
        .flat_map(|bank| (0..bank.segments.len() as u32).map(move |segment| (bank.bank_no, segment)))
        .flat_map(|(bank, segment)| [TaskKey::retain(bank, segment), TaskKey::ready(bank, segment)])
        .collect();
    for part in done.chunks(CHUNK) {
        insert_tasks(conn, run, part, TaskState::Done, first_epoch(1), true).await?;
    }
    if new.is_empty() {
        return Ok(());
    }
    let until = |bank: &NewBank| bank.segments.last().map_or(0, |segment| i64::from(segment.until));
    let delta = Delta {
        banks_planned: new.len() as i64,
        banks_ready: new.len() as i64,
        entries_planned: new.iter().map(until).sum(),
        ..Delta::default()
    };
    counters::add_to(conn, run, delta).await
}

/// Inserts tasks that are not there; returns those that are new.
pub(super) async fn insert_tasks(
    conn: &mut dyn Conn,
    run: RunNo,
    tasks: &[TaskKey],
    state: TaskState,
    epoch: i64,
    concluded: bool,
) -> StoreResult<Vec<TaskKey>> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO tasks (run_no, task_key, state, lease_epoch, ready_at, concluded) \
         SELECT $1, b.task, $3, $4, @now, $5 FROM @rows($2: task int) AS b WHERE true \
         ON CONFLICT (run_no, task_key) DO NOTHING RETURNING task_key"
            .to_owned()
    });
    let batch = Batch::default().int(tasks.iter().map(|task| task.0));
    let rows = conn.fetch(&INSERT, args![run.0, batch, state.code(), epoch, i64::from(concluded)]).await?;
    rows.iter().map(|row| task_key(row, 0)).collect()
}

/// Stores texts that are not there.
pub(super) async fn store_texts(conn: &mut dyn Conn, run: RunNo, texts: Batch) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO texts (run_no, task_key, step_no, body) SELECT $1, b.task, b.step, b.body \
         FROM @rows($2: task int, step int, body blob) AS b WHERE true ON CONFLICT (run_no, task_key, step_no) DO NOTHING"
            .to_owned()
    });
    conn.execute(&INSERT, args![run.0, texts]).await.map(drop)
}

/// Steps, texts and tasks of some questions.
struct Part {
    ready: Vec<TaskKey>,
    failed: Vec<TaskKey>,
    answered: i64,
    steps: Batch,
    texts: Batch,
}

impl Part {
    fn from_questions(questions: &[AdoptedQuestion]) -> StoreResult<Self> {
        let failed = |question: &&AdoptedQuestion| question.steps.iter().any(|(step, ..)| *step == StepNo::FAILED);
        let (mut tasks, mut numbers, mut facts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut text_tasks, mut text_numbers, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for question in questions {
            for (step, of_step, text) in &question.steps {
                tasks.push(question.task.0);
                numbers.push(i64::from(step.0));
                facts.push(to_json(of_step)?);
                if let Some(text) = text {
                    text_tasks.push(question.task.0);
                    text_numbers.push(i64::from(step.0));
                    bodies.push(to_frame(text)?);
                }
            }
        }
        let answered = numbers.iter().filter(|step| **step == i64::from(StepNo::ANSWER.0)).count() as i64;
        Ok(Self {
            ready: questions.iter().filter(|q| !failed(q)).map(|q| q.task).collect(),
            failed: questions.iter().filter(failed).map(|q| q.task).collect(),
            answered,
            steps: Batch::default().int(tasks).int(numbers).text(facts),
            texts: Batch::default().int(text_tasks).int(text_numbers).blob(bodies),
        })
    }
}

async fn adopt_questions(conn: &mut dyn Conn, run: RunNo, part: Part) -> StoreResult<()> {
    static STEPS: Sql = Sql::new(|| {
        "INSERT INTO checkpoints (run_no, task_key, step_no, facts) SELECT $1, b.task, b.step, b.facts \
         FROM @rows($2: task int, step int, facts text) AS b WHERE true ON CONFLICT (run_no, task_key, step_no) DO NOTHING"
            .to_owned()
    });
    let new = insert_tasks(conn, run, &part.ready, TaskState::Ready, WITH_STEPS, false).await?;
    insert_tasks(conn, run, &part.failed, TaskState::Failed, WITH_STEPS, false).await?;
    conn.execute(&STEPS, args![run.0, part.steps]).await?;
    store_texts(conn, run, part.texts).await?;
    // counted anew by the first sweep; until then progress should not jump
    let answered = if new.len() == part.ready.len() { part.answered } else { 0 };
    counters::add_to(conn, run, Delta { answered, ..Delta::default() }).await
}

/// All of it in one transaction: a bank without its questions would be found ready, and they would be asked anew; a question
/// without its bank would be given up by whoever claims it.
async fn adopt_all(
    conn: &mut dyn Conn,
    run: RunNo,
    questions: Vec<Part>,
    banks: Vec<(Batch, Vec<NewBank>)>,
) -> StoreResult<()> {
    for part in questions {
        adopt_questions(conn, run, part).await?;
    }
    for (batch, new) in banks {
        adopt_banks(conn, run, batch, new).await?;
    }
    Ok(())
}

#[async_trait]
impl<B: Backend> Forks for SqlStore<B> {
    async fn adopt(&self, run: RunNo, banks: &[NewBank], questions: &[AdoptedQuestion]) -> StoreResult<()> {
        banks.iter().try_for_each(plan::check)?;
        let parts: Vec<Part> = questions.chunks(PART).map(Part::from_questions).collect::<StoreResult<_>>()?;
        let batches = banks.chunks(CHUNK).map(|part| Ok((plan::rows(part)?, part.to_vec())));
        let batches: Vec<(Batch, Vec<NewBank>)> = batches.collect::<StoreResult<_>>()?;
        self.backend.write(move |conn| Box::pin(adopt_all(conn, run, parts, batches))).await
    }
}
