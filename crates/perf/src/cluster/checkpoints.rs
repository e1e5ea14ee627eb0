//! What a checkpoint costs beside a plain insert (P18): rows per second of the store's commits against batched inserts of the
//! same rows into the same tables, in interleaved pairs. Both make their rows (JSON, zstd) from records; the time of inserts
//! whose rows were made beforehand is stated too.

use std::time::Instant;

use anyhow::ensure;
use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    step::{Effect, Opens, RetrievedHit, StepNo, StepRecord, StepText},
};
use bench_store::conformance::{Scene, answer_text, answered, bank, recalled, record, scored};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use super::{
    cpu::round,
    services::{ServiceUrls, Services},
};
use crate::measure::median;

/// Questions of a commit: three records each, so 99 of at most 100.
const QUESTIONS_PER_COMMIT: usize = 33;
/// Rows of a plain insert.
const ROWS_PER_INSERT: usize = 100;
const QUESTIONS_PER_BANK: u32 = 198;

/// Runs the pairs.
pub(crate) async fn checkpoints(services: &Services, pairs: usize, questions: u32) -> anyhow::Result<Value> {
    let (mut seen, mut without, mut statements) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..=pairs {
        let Plain { made, bare } = plain_inserts(services, questions).await?;
        let place = services.database()?;
        let commits = commits(&place, questions).await?;
        statements = services.longest_statements(&place)?;
        if number > 0 {
            seen.push((made, commits));
            without.push((bare, commits));
        }
    }
    Ok(json!({
        "scenario": "cluster-checkpoints",
        "rows": "one checkpoint per step, and the text of those that have one",
        "target_ratio": 0.5,
        "ratio": round(median(seen.iter().map(|(plain, commits)| commits / plain))),
        "ratio_to_rows_made_beforehand": round(median(without.iter().map(|(plain, commits)| commits / plain))),
        "commit_rows_per_second": round(median(seen.iter().map(|pair| pair.1))),
        "plain_rows_per_second": round(median(seen.iter().map(|pair| pair.0))),
        "pairs": seen.iter().map(|(plain, commits)| json!({"plain": round(*plain), "commits": round(*commits)})).collect::<Vec<_>>(),
        "statements": statements,
    }))
}

/// The three records of a question, with the texts that a bm25 recall of ten turns has.
fn records(run: RunNo, task: TaskKey, epoch: i64) -> [StepRecord; 3] {
    let hit = |n: usize| RetrievedHit {
        id: format!("D{n}:{}", task.index() + n as u32),
        session_id: format!("session_{n}"),
        score: Some(7.25 / (n + 1) as f64),
        text: format!(
            "[1:56 pm on 8 May, 2031] Ann: turn {n} near question {} of bank {}, long enough to be one",
            task.index(),
            task.bank()
        ),
        ..RetrievedHit::default()
    };
    let recall = StepText::Recalled { hits: (0..10).map(hit).collect() };
    [
        StepRecord { text: Some(recall), ..record(run, task, StepNo::RECALL, epoch, recalled()) },
        StepRecord { text: Some(answer_text("on 8 May")), ..record(run, task, StepNo::ANSWER, epoch, answered()) },
        StepRecord {
            effect: Effect::Done { opens: Opens::Nothing },
            ..record(run, task, StepNo::SCORE, epoch, scored(0.25))
        },
    ]
}

/// Rows per second of `Store::commit` over leased questions.
async fn commits(place: &ServiceUrls, questions: u32) -> anyhow::Result<f64> {
    let store = bench_store::open(&place.store).await?;
    let indexes: Vec<u32> = (0..QUESTIONS_PER_BANK).collect();
    let banks: Vec<_> = (0..questions.div_ceil(QUESTIONS_PER_BANK)).map(|no| bank(no, &[(1, &indexes)])).collect();
    let scene = Scene::start(store.as_ref(), &banks).await;
    for bank in &banks {
        scene.make_ready(bank.bank_no, 1).await;
    }
    let ready = store.ready_tasks(scene.run, Role::Question, questions).await?;
    let tasks: Vec<(RunNo, TaskKey)> = ready.iter().map(|ready| (scene.run, ready.task)).collect();
    let mut claimed = Vec::new();
    for part in tasks.chunks(1000) {
        claimed.extend(store.claim(scene.session, part).await?);
    }
    ensure!(claimed.len() == questions as usize, "{} of {questions} questions are claimed", claimed.len());
    let all: Vec<_> = claimed.iter().map(|task| records(task.run, task.task, task.epoch)).collect();
    let batches: Vec<Vec<StepRecord>> = all.chunks(QUESTIONS_PER_COMMIT).map(|part| part.concat()).collect();
    let began = Instant::now();
    let mut rows = 0;
    for batch in &batches {
        let outcome = store.commit(batch).await?;
        ensure!(outcome.already.iter().all(Option::is_none), "a record was there before");
        rows += batch.len() + batch.iter().filter(|record| record.text.is_some()).count();
    }
    let seconds = began.elapsed().as_secs_f64();
    store.close().await;
    Ok(rows as f64 / seconds)
}

/// Rows ready to be inserted.
#[derive(Default)]
struct Rows {
    facts: (Vec<i64>, Vec<i32>, Vec<String>),
    texts: (Vec<i64>, Vec<i32>, Vec<Vec<u8>>),
}

/// Rows per second of plain inserts.
struct Plain {
    /// With the time that making the rows takes.
    made: f64,
    /// Without it.
    bare: f64,
}

/// `INSERT … SELECT … FROM UNNEST` of the same rows, and nothing else.
async fn plain_inserts(services: &Services, questions: u32) -> anyhow::Result<Plain> {
    let place = services.database()?;
    let options: PgConnectOptions = place.store.parse()?;
    let mut conn = options.disable_statement_logging().connect().await?;
    let tasks = (0..questions).map(|n| TaskKey::question(n / QUESTIONS_PER_BANK, n % QUESTIONS_PER_BANK));
    let all: Vec<StepRecord> = tasks.flat_map(|task| records(RunNo(1), task, 1)).collect();
    let mut compressor = zstd::bulk::Compressor::new(1)?;
    let making = Instant::now();
    let parts = all.chunks(ROWS_PER_INSERT).map(|part| rows_of(part, &mut compressor));
    let parts: Vec<Rows> = parts.collect::<anyhow::Result<_>>()?;
    let making = making.elapsed().as_secs_f64();
    let began = Instant::now();
    let mut rows = 0;
    for Rows { facts, texts } in parts {
        rows += facts.0.len() + texts.0.len();
        let sql = "INSERT INTO checkpoints (run_no, task_key, step_no, facts) \
            SELECT 1, * FROM UNNEST($1::int8[], $2::int4[], $3::text[])";
        sqlx::query(sql).bind(facts.0).bind(facts.1).bind(facts.2).execute(&mut conn).await?;
        let sql = "INSERT INTO texts (run_no, task_key, step_no, body) \
            SELECT 1, * FROM UNNEST($1::int8[], $2::int4[], $3::bytea[])";
        sqlx::query(sql).bind(texts.0).bind(texts.1).bind(texts.2).execute(&mut conn).await?;
    }
    let inserting = began.elapsed().as_secs_f64();
    Ok(Plain { made: rows as f64 / (making + inserting), bare: rows as f64 / inserting })
}

fn rows_of(records: &[StepRecord], compressor: &mut zstd::bulk::Compressor<'_>) -> anyhow::Result<Rows> {
    let mut rows = Rows::default();
    for record in records {
        rows.facts.0.push(record.task.0);
        rows.facts.1.push(record.step.0);
        rows.facts.2.push(serde_json::to_string(&record.facts)?);
        if let Some(text) = &record.text {
            rows.texts.0.push(record.task.0);
            rows.texts.1.push(record.step.0);
            rows.texts.2.push(compressor.compress(&serde_json::to_vec(text)?)?);
        }
    }
    Ok(rows)
}
