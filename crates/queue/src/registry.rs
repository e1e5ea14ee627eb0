//! The queue backends, by the scheme of their URL.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{Queue, QueueError, memory};

type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, QueueError>> + Send + 'a>>;

/// A registered backend.
pub struct Backend {
    /// URL scheme.
    pub scheme: &'static str,
    /// One line for people.
    pub description: &'static str,
    connect: for<'a> fn(&'a str) -> Connecting<'a>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backend").field(&self.scheme).finish()
    }
}

/// All backends: one line each.
pub const BACKENDS: &[Backend] = &[
    Backend {
        scheme: "memory",
        description: "within one process",
        connect: |url| Box::pin(async { memory::connect(url) }),
    },
    #[cfg(feature = "amqp")]
    Backend { scheme: "amqp", description: "RabbitMQ", connect: |url| Box::pin(crate::amqp::connect(url)) },
    #[cfg(feature = "amqp")]
    Backend { scheme: "amqps", description: "RabbitMQ over TLS", connect: |url| Box::pin(crate::amqp::connect(url)) },
];

/// Connects to the queue behind a URL.
///
/// # Errors
/// Unknown schemes and everything that connecting can meet.
pub async fn connect(url: &str) -> Result<Arc<dyn Queue>, QueueError> {
    (find(url)?.connect)(url).await
}

/// Whether there is a backend for a URL; nothing is connected to.
///
/// # Errors
/// Unknown schemes, with those that there are.
pub fn check(url: &str) -> Result<(), QueueError> {
    find(url).map(drop)
}

fn find(url: &str) -> Result<&'static Backend, QueueError> {
    // only the scheme is ever shown: the rest may hold a password
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let found = BACKENDS.iter().find(|backend| backend.scheme == scheme);
    found.ok_or_else(|| QueueError::Setup(unknown(scheme).into()))
}

fn unknown(scheme: &str) -> String {
    let known: Vec<String> =
        BACKENDS.iter().map(|backend| format!("{}: ({})", backend.scheme, backend.description)).collect();
    let known = known.join(", ");
    match scheme {
        "" => format!("the queue URL has no scheme: use one of {known}"),
        "amqp" | "amqps" => format!("this build has no {scheme} queue (feature amqp): use one of {known}"),
        _ => format!("no queue backend for '{scheme}:': use one of {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(url: &str) -> String {
        match connect(url).await {
            Ok(queue) => panic!("{} is no queue", queue.describe()),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn memory_is_connected_by_its_scheme() {
        assert_eq!(connect("memory:").await.expect("connects").describe(), "memory:");
        assert!(refused("memory:elsewhere").await.contains("use memory: without"));
    }

    #[tokio::test]
    async fn unknown_schemes_are_refused_with_the_list_and_without_the_password() {
        let message = refused("kafka://user:secret@host").await;
        assert!(
            message.starts_with("no queue backend for 'kafka:': use one of memory: (within one process)"),
            "{message}"
        );
        assert!(!message.contains("secret"));
        assert!(refused("/tmp/x").await.contains("no scheme"));
    }
}
