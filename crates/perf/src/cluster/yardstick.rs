//! The yardstick of a cluster (P18): consume, claim and checkpoint in batches into the same tables, publish the follow-up with
//! confirm, ack. 256 in flight, no model call, nothing else: what RabbitMQ and PostgreSQL themselves cost on this machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::{Context, ensure};
use futures::{FutureExt, StreamExt, future::try_join_all};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{ConnectOptions as _, PgConnection, postgres::PgConnectOptions};
use tokio_util::sync::CancellationToken;

/// Channels that consume, each with a connection to the database; their prefetches add up to 256.
const LANES: [u16; 3] = [86, 85, 85];
/// Messages that are published before their confirms are awaited.
const WINDOW: usize = 1000;
/// Where work comes from, and where follow-ups go.
const QUEUES: [&str; 2] = ["yardstick.in", "yardstick.out"];
/// What a step says of itself; as long as those of the product.
const FACTS: &str = r#"{"kind":"scored","scores":[["locomo-f1",0.25]],"abstained":false,"answer_hash":1234567890123456789,"timing":{"started_us":1700000000000000,"total_us":900}}"#;

/// How the yardstick did.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Pace {
    pub(crate) items: f64,
    pub(crate) seconds: f64,
}

/// Prepares `items` tasks in a migrated store and a queue, then works them off; only the work is timed.
pub(crate) async fn run(store: &str, queue: &str, items: u32) -> anyhow::Result<Pace> {
    let options: PgConnectOptions = store.parse()?;
    let options = options.disable_statement_logging();
    let broker = Connection::connect(queue, ConnectionProperties::default()).await?;
    prepare(&options, &broker, items).await?;
    let lanes = try_join_all(LANES.map(|prefetch| Lane::open(&options, &broker, prefetch))).await?;
    let rest = Arc::new(Rest { items: AtomicUsize::new(items as usize), none: CancellationToken::new() });
    let began = Instant::now();
    let working = lanes.into_iter().map(|lane| tokio::spawn(lane.work(Arc::clone(&rest))));
    for lane in try_join_all(working).await? {
        lane?;
    }
    Ok(Pace { items: f64::from(items), seconds: began.elapsed().as_secs_f64() })
}

/// Task rows that are ready, their messages, and the queues.
async fn prepare(options: &PgConnectOptions, broker: &Connection, items: u32) -> anyhow::Result<()> {
    let mut conn = options.connect().await?;
    let tasks = "INSERT INTO tasks (run_no, task_key, state, lease_epoch, ready_at) SELECT 1, key, 0, 0, 0 \
        FROM generate_series(1, $1::int8) AS key";
    sqlx::query(tasks).bind(i64::from(items)).execute(&mut conn).await?;
    sqlx::raw_sql("ANALYZE tasks").execute(&mut conn).await?;
    let channel = broker.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    for queue in QUEUES {
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(queue.into(), durable, arguments).await?;
    }
    let keys: Vec<i64> = (1..=i64::from(items)).collect();
    for window in keys.chunks(WINDOW) {
        publish(&channel, QUEUES[0], window).await?;
    }
    Ok(())
}

/// Publishes a message per key, as the product does, and awaits all confirms.
async fn publish(channel: &Channel, queue: &'static str, keys: &[i64]) -> anyhow::Result<()> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let properties = BasicProperties::default().with_delivery_mode(2).with_content_type("application/json".into());
    let mut confirms = Vec::with_capacity(keys.len());
    for key in keys {
        let body = json!({"v": 1, "run": "20310502-090000-abcdef", "run_no": 1, "task": key}).to_string();
        let properties = properties.clone().with_message_id(format!("1-{key}").into());
        confirms.push(channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties).await?);
    }
    for confirm in confirms {
        ensure!(matches!(confirm.await?, Confirmation::Ack(None)), "a message was not stored");
    }
    Ok(())
}

/// What is left to do.
struct Rest {
    items: AtomicUsize,
    none: CancellationToken,
}

/// A consumer with a connection to the database.
struct Lane {
    conn: PgConnection,
    consuming: Channel,
    deliveries: Consumer,
    publishing: Channel,
}

impl Lane {
    async fn open(options: &PgConnectOptions, broker: &Connection, prefetch: u16) -> anyhow::Result<Self> {
        let (consuming, publishing) = (broker.create_channel().await?, broker.create_channel().await?);
        publishing.confirm_select(ConfirmSelectOptions::default()).await?;
        consuming.basic_qos(prefetch, BasicQosOptions { global: false }).await?;
        let tag = format!("lane-{}", consuming.id());
        let options_of_consumer = BasicConsumeOptions::default();
        let deliveries = consuming
            .basic_consume(QUEUES[0].into(), tag.as_str().into(), options_of_consumer, FieldTable::default())
            .await?;
        Ok(Self { conn: options.connect().await?, consuming, deliveries, publishing })
    }

    async fn work(mut self, rest: Arc<Rest>) -> anyhow::Result<()> {
        loop {
            let first = tokio::select! {
                () = rest.none.cancelled() => return Ok(()),
                first = self.deliveries.next() => first.context("the broker ended a consumer")??,
            };
            let mut batch = vec![first];
            while let Some(Some(more)) = self.deliveries.next().now_or_never() {
                batch.push(more?);
            }
            let last = batch.last().map_or(0, |delivery| delivery.delivery_tag);
            let keys = batch.iter().map(|delivery| {
                let body: serde_json::Value = serde_json::from_slice(&delivery.data)?;
                body["task"].as_i64().context("a message has a task")
            });
            let mut keys: Vec<i64> = keys.collect::<anyhow::Result<_>>()?;
            keys.sort_unstable();
            self.store(&keys).await?;
            publish(&self.publishing, QUEUES[1], &keys).await?;
            self.consuming.basic_ack(last, BasicAckOptions { multiple: true }).await?;
            if rest.items.fetch_sub(keys.len(), Ordering::SeqCst) == keys.len() {
                rest.none.cancel();
            }
        }
    }

    async fn store(&mut self, keys: &[i64]) -> anyhow::Result<()> {
        let claim = "UPDATE tasks AS t SET state = 1, lease_epoch = lease_epoch + 1, session = 1 FROM UNNEST($1::int8[]) AS b(task) \
            WHERE t.run_no = 1 + 0 * b.task AND t.task_key = b.task AND t.state = 0";
        let claimed = sqlx::query(claim).bind(keys).execute(&mut self.conn).await?;
        ensure!(claimed.rows_affected() == keys.len() as u64, "a task was claimed twice");
        let checkpoint = "INSERT INTO checkpoints (run_no, task_key, step_no, facts) SELECT 1, b.task, 2, $2 FROM UNNEST($1::int8[]) \
            AS b(task) ON CONFLICT DO NOTHING";
        sqlx::query(checkpoint).bind(keys).bind(FACTS).execute(&mut self.conn).await?;
        Ok(())
    }
}
