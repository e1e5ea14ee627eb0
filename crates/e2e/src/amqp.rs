//! The broker as somebody sees it who does what this project never would: deletes queues, publishes nonsense.

use std::time::{Duration, Instant};

use bench_proto::{ids::Role, task::QueueName};
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{
        BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeleteOptions,
        QueuePurgeOptions,
    },
    types::AMQPValue,
};
use tokio::runtime::Runtime;

/// The queues of the default pool.
#[must_use]
pub fn queue_names() -> Vec<String> {
    Role::ALL.iter().map(|role| QueueName::new("default", *role).wire_name()).collect()
}

/// A channel of an administrator.
pub struct Wire {
    runtime: Runtime,
    channel: Channel,
    _connection: Connection,
}

impl Wire {
    /// Connects.
    ///
    /// # Panics
    /// When the broker does not let it in.
    #[must_use]
    pub fn to(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (connection, channel) = runtime.block_on(async {
            let connection = Connection::connect(url, ConnectionProperties::default()).await.expect("connects");
            let channel = connection.create_channel().await.expect("a channel");
            channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
            (connection, channel)
        });
        Self { runtime, channel, _connection: connection }
    }

    /// Deletes a queue with everything in it.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn delete(&self, queue: &str) {
        let deleting = self.channel.queue_delete(queue.into(), QueueDeleteOptions::default());
        let _ = self.runtime.block_on(deleting).expect("is deleted");
    }

    /// Drops what is ready in a queue; returns how many messages that were.
    ///
    /// # Panics
    /// When the broker refuses.
    #[must_use]
    pub fn purge(&self, queue: &str) -> u32 {
        let purging = self.channel.queue_purge(queue.into(), QueuePurgeOptions::default());
        self.runtime.block_on(purging).expect("is purged")
    }

    /// Text headers of the message that is next in a queue, once there is one; it stays there.
    ///
    /// # Panics
    /// When none comes within half a minute.
    #[must_use]
    pub fn next_headers_when_there(&self, queue: &str) -> Vec<(String, String)> {
        let began = Instant::now();
        loop {
            if let Some(headers) = self.runtime.block_on(self.next_headers(queue)) {
                return headers;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{queue} stays empty");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    async fn next_headers(&self, queue: &str) -> Option<Vec<(String, String)>> {
        let got = self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: false }).await.expect("is read");
        let message = got?;
        let table = message.properties.headers().clone().unwrap_or_default();
        let headers = table.inner().iter().filter_map(|(name, value)| match value {
            AMQPValue::LongString(text) => Some((name.to_string(), text.to_string())),
            _ => None,
        });
        let headers = headers.collect();
        message.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await.expect("goes back");
        Some(headers)
    }

    /// Publishes any bytes, and waits until they lie in the queue.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn publish(&self, queue: &str, body: &[u8]) {
        self.runtime.block_on(async {
            let publishing = self.channel.basic_publish(
                "".into(),
                queue.into(),
                BasicPublishOptions::default(),
                body,
                BasicProperties::default(),
            );
            let _ = publishing.await.expect("is published").await.expect("is confirmed");
        });
    }
}
