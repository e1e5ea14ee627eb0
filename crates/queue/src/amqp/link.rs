//! One connection to the broker, opened when it is needed and again when it is lost.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bench_proto::redact;
use lapin::{Channel, Connection, ConnectionProperties, runtime, tcp::OwnedTLSConfig, uri::AMQPUri};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::fault::{Doing, classify};
use crate::QueueError;

/// Longest wait for the answer to a single request.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// Heartbeat when the URL has none: a silent peer is noticed after about twice this.
const HEARTBEAT_SECONDS: u16 = 10;

/// A connection that mends itself on request.
pub(super) struct BrokerLink {
    uri: AMQPUri,
    tls: OwnedTLSConfig,
    purpose: &'static str,
    place: String,
    connection: Mutex<Option<Connection>>,
    opened: AtomicU64,
    closed: CancellationToken,
}

impl fmt::Debug for BrokerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerLink").field("place", &self.place).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl BrokerLink {
    /// Reads the URL; nothing is opened yet.
    pub(super) fn new(url: &str, purpose: &'static str, closed: CancellationToken) -> Result<Self, QueueError> {
        // the parser's own words may hold the password
        let unreadable = || {
            QueueError::Setup(
                "cannot read the queue URL: use amqp://user:password@host:port/vhost, with special characters as %XX"
                    .into(),
            )
        };
        if redact::is_misread(url) {
            return Err(unreadable());
        }
        let mut uri: AMQPUri = url.parse().map_err(|_| unreadable())?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
        let authority = &uri.authority;
        let vhost = if uri.vhost == "/" { "%2f" } else { &uri.vhost };
        let place =
            format!("{}://{}@{}:{}/{vhost}", uri.scheme, authority.userinfo.username, authority.host, authority.port);
        Ok(Self {
            uri,
            tls: super::tls::config(url)?,
            purpose,
            place,
            connection: Mutex::default(),
            opened: AtomicU64::new(0),
            closed,
        })
    }

    /// The URL without password.
    pub(super) fn describe(&self) -> String {
        self.place.clone()
    }

    /// How often the connection had to be opened again.
    pub(super) fn reopened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// The error for what a channel of this link has met.
    pub(super) fn fault(&self, doing: Doing<'_>, error: &lapin::Error) -> QueueError {
        if self.closed.is_cancelled() { QueueError::Closed } else { classify(&self.place, doing, error) }
    }

    /// A fresh channel; opens the connection when there is none. One attempt: who wants more, repeats.
    pub(super) async fn channel(&self) -> Result<Channel, QueueError> {
        if self.closed.is_cancelled() {
            return Err(QueueError::Closed);
        }
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.take_if(|connection| !connection.status().connected()) {
            drop(connection);
            tracing::debug!("connection to {} ({}) was lost, opening it again", self.place, self.purpose);
        }
        let connection = match &mut *slot {
            Some(connection) => connection,
            empty => {
                let opened = empty.insert(self.open().await?);
                if self.opened.fetch_add(1, Ordering::Relaxed) > 0 {
                    tracing::info!("connection to {} ({}) was lost and is open again", self.place, self.purpose);
                }
                opened
            }
        };
        let channel = match tokio::time::timeout(ANSWER, connection.create_channel()).await {
            Ok(Ok(channel)) => return Ok(channel),
            Ok(Err(e)) => self.fault(Doing::Connecting, &e),
            Err(_) => self.silent(),
        };
        // whatever it was, the next one starts afresh
        *slot = None;
        Err(channel)
    }

    async fn open(&self) -> Result<Connection, QueueError> {
        let name = format!("bench {} (pid {})", self.purpose, std::process::id());
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let runtime = runtime::default_runtime().map_err(|e| self.fault(Doing::Connecting, &e))?;
        let opening = Connection::connect_uri_with_config(self.uri.clone(), properties, self.tls.clone(), runtime);
        tokio::select! {
            () = self.closed.cancelled() => Err(QueueError::Closed),
            opened = tokio::time::timeout(ANSWER, opening) => match opened {
                Ok(opened) => opened.map_err(|e| self.fault(Doing::Connecting, &e)),
                Err(_) => Err(self.silent()),
            },
        }
    }

    /// Closes a channel that has done its work. Dropping it would leave the broker's answer without a reader.
    pub(super) async fn done_with(&self, channel: Channel) {
        let closing = tokio::time::timeout(ANSWER, channel.close(200, "OK".into())).await;
        if let Ok(Err(error)) = closing {
            tracing::debug!("a channel of {} could not be closed: {error}", self.place);
        }
    }

    /// The error for an answer that does not come.
    pub(super) fn silent(&self) -> QueueError {
        QueueError::Unavailable(format!("{} does not answer within {} s", self.place, ANSWER.as_secs()).into())
    }

    /// Bounds a request to the broker and classifies its error.
    pub(super) async fn ask<T>(
        &self,
        doing: Doing<'_>,
        request: impl Future<Output = lapin::Result<T>> + Send,
    ) -> Result<T, QueueError> {
        match tokio::time::timeout(ANSWER, request).await {
            Ok(answer) => answer.map_err(|e| self.fault(doing, &e)),
            Err(_) => Err(self.silent()),
        }
    }

    /// Whether the broker has told this connection to stop publishing (memory or disk alarm).
    pub(super) async fn is_blocked(&self) -> bool {
        self.connection.lock().await.as_ref().is_some_and(|connection| connection.status().blocked())
    }

    /// Closes the connection, when there is one.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // a peer that does not answer is left to its time-out
            let closing = tokio::time::timeout(Duration::from_secs(2), connection.close(200, "OK".into())).await;
            tracing::debug!("closed {} ({}): {closing:?}", self.place, self.purpose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_never_shown() {
        let link = |url| BrokerLink::new(url, "test", CancellationToken::new());
        let shown = link("amqps://ann:sec%2fret@broker.example/bench").expect("a URL").describe();
        assert_eq!(shown, "amqps://ann@broker.example:5671/bench");
        assert_eq!(link("amqp://ann:secret@h:7").expect("a URL").describe(), "amqp://ann@h:7/%2f");
        for wrong in ["amqp://ann:secret@:port/x", "amqp://ann:12/secret@h", "amqp://ann:12?secret@h"] {
            let error = link(wrong).expect_err("no URL").to_string();
            assert!(error.contains("cannot read the queue URL") && !error.contains("secret"), "{error}");
        }
    }
}
