//! The broker as somebody sees it who does what this project never would: deletes queues, publishes nonsense.

use bench_proto::{ids::Role, task::QueueName};
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeleteOptions},
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
