//! A run far larger than memory should be: streamed, bounded, first answer at once (P28).

use std::{
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::{
    conversations,
    cpu::round,
    fleet::{Fleet, Workers},
    ledger::Ledger,
    services::{ServiceUrls, Services},
};

/// How often queues and tables are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Carries the run out and watches it.
pub(crate) async fn million(services: &Services, questions: u32, slots: u32) -> anyhow::Result<Value> {
    let fleet = Fleet::start(services, &Workers { count: 1, slots, provider: None }).await?;
    let mut ledger = fleet.ledger().await?;
    let setting = format!("sim.conversations={}", conversations(questions));
    let began = Instant::now();
    // no files: the report of a million questions is the client's business, not the cluster's
    let mut submit = fleet.submit(&["--dataset", "locomo-sim", "--set", &setting, "--detach"]).spawn()?;
    let first = ledger.wait_for_first_answer(0).await?;
    let created = ledger.number("SELECT extract(epoch FROM clock_timestamp()) - created_us / 1e6 FROM runs").await?
        - first.elapsed().as_secs_f64();
    let watched = watch(&mut ledger, &fleet.place, &mut submit).await.with_context(|| fleet.last_words())?;
    let finished = ledger.finished().await?;
    let mut rows = Map::new();
    for (table, count) in ledger.rows().await? {
        rows.insert(table.to_owned(), json!(round(count / finished.questions)));
    }
    let bytes = ledger.number("SELECT pg_database_size(current_database())").await?;
    Ok(json!({
        "scenario": "cluster-million",
        "slots": slots,
        "questions": finished.questions,
        "seconds": round(finished.seconds),
        "questions_per_second": round(finished.questions / finished.seconds),
        "first_answer_seconds_after_start_of_submit": round(first.saturating_duration_since(began).as_secs_f64()),
        "first_answer_seconds_after_creation": round(created),
        "planned_tasks_per_second": round(finished.questions / watched.planned_seconds),
        "peak_mib": fleet.peaks_mib(),
        "peak_mib_of_submit": round(watched.submit_peak_mib),
        "most_messages_in_queue": watched.most_messages,
        "most_published_tasks": watched.most_published,
        "window": (3 * slots).max(64),
        "questions_per_second_over_time": watched.pace,
        "rows_per_question": rows,
        "bytes_per_question": round(bytes / finished.questions),
        "cpu_ms_per_question": fleet.cpu_ms_per_item(finished.questions)?,
        "statements": services.longest_statements(&fleet.place)?,
    }))
}

struct Watched {
    planned_seconds: f64,
    submit_peak_mib: f64,
    most_messages: u32,
    most_published: f64,
    /// Questions per second of each tenth of the time so far, roughly.
    pace: Vec<f64>,
}

async fn watch(ledger: &mut Ledger, place: &ServiceUrls, submit: &mut Child) -> anyhow::Result<Watched> {
    let mut depth = Depth::open(&place.queue).await?;
    let mut watched =
        Watched { planned_seconds: 0.0, submit_peak_mib: 0.0, most_messages: 0, most_published: 0.0, pace: Vec::new() };
    let (began, mut marks) = (Instant::now(), vec![(0.0, 0.0)]);
    let mut submitting = true;
    loop {
        tokio::time::sleep(LOOK).await;
        watched.most_messages = watched.most_messages.max(depth.look().await?);
        let published = "SELECT count(*) FROM tasks WHERE state = 0 AND published_at IS NOT NULL";
        watched.most_published = watched.most_published.max(ledger.number(published).await?);
        if submitting {
            watched.submit_peak_mib = watched.submit_peak_mib.max(super::cpu::peak_mib(submit.id()));
            if let Some(status) = submit.try_wait()? {
                // exit 3: the run goes on without it
                ensure!(status.code() == Some(3), "submit ended with {status}");
                submitting = false;
            }
        }
        if watched.planned_seconds == 0.0 && ledger.number("SELECT planned FROM runs").await? > 0.0 {
            let since = "SELECT extract(epoch FROM clock_timestamp()) - created_us / 1e6 FROM runs";
            watched.planned_seconds = ledger.number(since).await?;
        }
        let state = ledger
            .number("SELECT CASE state WHEN 'running' THEN 0 WHEN 'finished' THEN 1 ELSE 2 END FROM runs")
            .await?;
        ensure!(state < 2.0, "the run came to rest before its end");
        let seconds = began.elapsed().as_secs_f64();
        if state > 0.0 || seconds - marks.last().map_or(0.0, |mark| mark.0) >= 10.0 {
            marks.push((seconds, ledger.number("SELECT answered FROM run_counters").await?));
        }
        if state > 0.0 {
            break;
        }
    }
    watched.pace = marks.windows(2).map(|two| round((two[1].1 - two[0].1) / (two[1].0 - two[0].0))).collect();
    Ok(watched)
}

/// Counts the messages that lie in the queues of the default pool.
struct Depth {
    channel: lapin::Channel,
    _connection: lapin::Connection,
}

impl Depth {
    async fn open(queue: &str) -> anyhow::Result<Self> {
        let connection = lapin::Connection::connect(queue, lapin::ConnectionProperties::default()).await?;
        Ok(Self { channel: connection.create_channel().await?, _connection: connection })
    }

    async fn look(&mut self) -> anyhow::Result<u32> {
        let mut most = 0;
        for role in ["retain", "question", "judge"] {
            let name = format!("bench.t1.default.{role}");
            let passive = lapin::options::QueueDeclareOptions { passive: true, ..Default::default() };
            let queue = self.channel.queue_declare(name.as_str().into(), passive, Default::default()).await?;
            most = most.max(queue.message_count());
        }
        Ok(most)
    }
}
