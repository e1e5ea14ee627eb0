//! The listener of long-running processes: health, readiness and small JSON answers.
//!
//! It binds to loopback unless told otherwise; any other address needs a bearer token, for every path. Without a token only requests
//! that name this machine are answered. Connections are bounded in number and time. Processes answer through [`Pages`] and know
//! nothing of HTTP.

mod connections;
mod origin;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json,
    body::Bytes,
    http::{
        Request, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use subtle::ConstantTimeEq;
use tokio::{net::TcpListener, task::JoinHandle};

/// Longest bearer token that is looked at.
const LONGEST_TOKEN: usize = 4096;

/// A bearer token; never shown.
#[derive(Clone)]
pub struct BearerToken(String);

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BearerToken(***)")
    }
}

impl BearerToken {
    /// A token without surrounding white space; `None` when nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.len() <= LONGEST_TOKEN).then(|| Self(text.to_owned()))
    }

    /// From the variable `BENCH_HTTP_TOKEN`, or the file that `BENCH_HTTP_TOKEN_FILE` names.
    ///
    /// # Errors
    /// When the file cannot be read or is empty.
    pub fn from_environment() -> Result<Option<Self>, ListenError> {
        if let Ok(text) = std::env::var(TOKEN_VARIABLE) {
            return Self::new(&text).map(Some).ok_or_else(|| ListenError::Token(format!("{TOKEN_VARIABLE} is empty")));
        }
        let Ok(path) = std::env::var(TOKEN_FILE_VARIABLE) else { return Ok(None) };
        let text = std::fs::read_to_string(&path)
            .map_err(|e| ListenError::Token(format!("{path} ({TOKEN_FILE_VARIABLE}) cannot be read: {e}")))?;
        Self::new(&text).map(Some).ok_or_else(|| ListenError::Token(format!("{path} ({TOKEN_FILE_VARIABLE}) is empty")))
    }

    /// The value of the header that brings this token.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether a request brings this token; takes as long for a wrong one as for the right one.
    fn is_in(&self, request: &Request<Bytes>) -> bool {
        let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(given) = given.and_then(|value| value.strip_prefix("Bearer ")) else { return false };
        given.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

const TOKEN_VARIABLE: &str = "BENCH_HTTP_TOKEN";
const TOKEN_FILE_VARIABLE: &str = "BENCH_HTTP_TOKEN_FILE";

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// No address, or one that cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Address {
        /// The address as it was given.
        address: String,
        /// Why nobody can listen there.
        reason: String,
    },
    /// An address that others can reach, without a token.
    #[error(
        "listening on {0} is open to others and needs a bearer token: set {TOKEN_VARIABLE} or {TOKEN_FILE_VARIABLE}, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// A token that cannot be used.
    #[error("{0}")]
    Token(String),
}

/// What a process answers. `/healthz` is 200 as long as the process runs; `/readyz` follows [`Pages::ready`]; `/metrics` is
/// Prometheus' page; `/api/log-level` shows the filter of the logs, and a PUT changes it.
#[async_trait::async_trait]
pub trait Pages: Send + Sync + 'static {
    /// `Ok` when the process can do its work, else why it cannot.
    async fn ready(&self) -> Result<(), String>;

    /// The JSON behind another path; `None` is 404, an error 503.
    async fn page(&self, path: &str) -> Option<Result<Value, String>>;

    /// Brings gauges up to date, before `/metrics` shows them.
    async fn refresh(&self) {}
}

/// A running listener; it ends with the process or when dropped.
#[derive(Debug)]
pub struct Listening {
    /// Where it listens: the port that was found when 0 was asked for.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Server {
    pages: Arc<dyn Pages>,
    token: Option<BearerToken>,
}

/// Listens on `address` (host:port).
///
/// # Errors
/// See [`ListenError`].
pub async fn listen(
    address: &str,
    token: Option<BearerToken>,
    pages: Arc<dyn Pages>,
) -> Result<Listening, ListenError> {
    let failed = |reason: String| ListenError::Address { address: address.to_owned(), reason };
    let listener = TcpListener::bind(address).await.map_err(|e| failed(e.to_string()))?;
    let bound = listener.local_addr().map_err(|e| failed(e.to_string()))?;
    if !bound.ip().is_loopback() && token.is_none() {
        return Err(ListenError::Open(bound));
    }
    let task = tokio::spawn(connections::serve(listener, Arc::new(Server { pages, token })));
    Ok(Listening { address: bound, task })
}

async fn answer(server: &Server, request: Request<Bytes>) -> Response {
    match &server.token {
        Some(token) if !token.is_in(&request) => {
            return reply(StatusCode::UNAUTHORIZED, json!({"error": "a bearer token is needed"}));
        }
        None if !origin::is_of_this_machine(&request) => {
            let why = "only this machine is answered: ask for 127.0.0.1 or localhost, or give the process a token";
            return reply(StatusCode::FORBIDDEN, json!({"error": why}));
        }
        Some(_) | None => {}
    }
    if request.uri().path() == LOG_LEVEL && request.method() == axum::http::Method::PUT {
        return set_log_level(request.body());
    }
    if request.method() != axum::http::Method::GET {
        return reply(StatusCode::METHOD_NOT_ALLOWED, json!({"error": "only GET"}));
    }
    match request.uri().path() {
        "/metrics" => {
            server.pages.refresh().await;
            match crate::metrics::render() {
                Ok(page) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response(),
                Err(why) => reply(StatusCode::SERVICE_UNAVAILABLE, json!({"error": why})),
            }
        }
        LOG_LEVEL => reply(StatusCode::OK, json!({"filter": crate::logs::current_filter()})),
        "/healthz" => reply(StatusCode::OK, json!({"status": "ok"})),
        "/readyz" => match server.pages.ready().await {
            Ok(()) => reply(StatusCode::OK, json!({"status": "ready"})),
            Err(why) => reply(StatusCode::SERVICE_UNAVAILABLE, json!({"status": "not ready", "reason": why})),
        },
        path => match server.pages.page(path).await {
            Some(Ok(value)) => reply(StatusCode::OK, value),
            Some(Err(why)) => reply(StatusCode::SERVICE_UNAVAILABLE, json!({"error": why})),
            None => reply(StatusCode::NOT_FOUND, json!({"error": format!("nothing at {path}")})),
        },
    }
}

/// Where the filter of the logs is seen and changed.
const LOG_LEVEL: &str = "/api/log-level";

fn set_log_level(body: &[u8]) -> Response {
    let refuse = |why: String| reply(StatusCode::BAD_REQUEST, json!({"error": why}));
    let Ok(filter) = std::str::from_utf8(body) else { return refuse("a filter is text".to_owned()) };
    match crate::logs::set_filter(filter.trim()) {
        Ok(()) => {
            tracing::warn!("the filter of the logs is now '{}'", filter.trim());
            reply(StatusCode::OK, json!({"filter": filter.trim()}))
        }
        Err(error) => refuse(error.to_string()),
    }
}

fn reply(status: StatusCode, body: Value) -> Response {
    (status, Json(body)).into_response()
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    /// Pages of a process that is ready, or says why not.
    pub(crate) struct Fixed(pub(crate) Result<(), String>);

    #[async_trait::async_trait]
    impl Pages for Fixed {
        async fn ready(&self) -> Result<(), String> {
            self.0.clone()
        }

        async fn page(&self, path: &str) -> Option<Result<Value, String>> {
            (path == "/api/one").then(|| Ok(json!({"value": 1})))
        }
    }

    async fn get(address: SocketAddr, path: &str, header: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n");
        stream.write_all(request.as_bytes()).await.expect("writes");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("reads");
        text
    }

    #[tokio::test]
    async fn loopback_answers_health_readiness_and_pages() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        assert!(get(up.address, "/healthz", "").await.starts_with("HTTP/1.1 200"));
        assert!(get(up.address, "/readyz", "").await.starts_with("HTTP/1.1 200"));
        assert!(get(up.address, "/api/one", "").await.ends_with("{\"value\":1}"));
        assert!(get(up.address, "/api/two", "").await.starts_with("HTTP/1.1 404"));
        let not_ready = listen("127.0.0.1:0", None, Arc::new(Fixed(Err("no broker".into())))).await.expect("listens");
        let text = get(not_ready.address, "/readyz", "").await;
        assert!(text.starts_with("HTTP/1.1 503") && text.contains("no broker"), "{text}");
    }

    #[tokio::test]
    async fn any_other_address_needs_a_token_and_every_path_asks_for_it() {
        let open = listen("0.0.0.0:0", None, Arc::new(Fixed(Ok(())))).await.expect_err("refused");
        assert!(open.to_string().contains("needs a bearer token"), "{open}");
        let token = BearerToken::new("s3cret\n");
        assert_eq!(format!("{token:?}"), "Some(BearerToken(***))");
        let up = listen("0.0.0.0:0", token, Arc::new(Fixed(Ok(())))).await.expect("listens");
        let local = SocketAddr::from(([127, 0, 0, 1], up.address.port()));
        for header in
            ["", "authorization: Bearer wrong\r\n", "authorization: Bearer s3cre\r\n", "authorization: s3cret\r\n"]
        {
            assert!(get(local, "/healthz", header).await.starts_with("HTTP/1.1 401"), "{header}");
        }
        assert!(get(local, "/healthz", "authorization: Bearer s3cret\r\n").await.starts_with("HTTP/1.1 200"));
    }
    /// What is answered to a request with these lines of its head.
    async fn asked(address: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.expect("writes");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("reads");
        text
    }

    #[tokio::test]
    async fn loopback_answers_nobody_who_was_led_here_by_another_name() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        for path in ["/healthz", "/readyz", "/metrics", "/api/one", "/api/log-level"] {
            for wrong in [
                "host: evil.example",
                "host: localhost\r\norigin: https://evil.example",
                "host: localhost\r\norigin: null",
                "host: localhost\r\nhost: evil.example",
                "accept: */*",
            ] {
                let text = asked(up.address, &format!("GET {path} HTTP/1.1\r\n{wrong}")).await;
                assert!(text.starts_with("HTTP/1.1 403") || text.starts_with("HTTP/1.1 400"), "{path} {wrong}: {text}");
            }
        }
        let absolute = asked(up.address, "GET http://evil.example/metrics HTTP/1.1\r\nhost: localhost").await;
        assert!(absolute.starts_with("HTTP/1.1 403"), "{absolute}");
        let put = "PUT /api/log-level HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 5\r\n\r\ntrace";
        assert!(asked(up.address, put).await.starts_with("HTTP/1.1 403"));
        let page = "GET /api/one HTTP/1.1\r\nhost: localhost\r\norigin: http://127.0.0.1:3000";
        assert!(asked(up.address, page).await.starts_with("HTTP/1.1 200"));
        // a token says more than a name
        let up = listen("127.0.0.1:0", BearerToken::new("s3cret"), Arc::new(Fixed(Ok(())))).await.expect("listens");
        let named = "GET /healthz HTTP/1.1\r\nhost: bench.example\r\nauthorization: Bearer s3cret";
        assert!(asked(up.address, named).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn half_open_connections_keep_nobody_out() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        let mut half_open = Vec::new();
        for n in 0..3 * connections::MOST_CONNECTIONS {
            let mut stream = TcpStream::connect(up.address).await.expect("connects");
            if n % 2 == 0 {
                stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localh").await.expect("writes");
            }
            half_open.push(stream);
        }
        for _ in 0..3 {
            assert!(get(up.address, "/readyz", "").await.starts_with("HTTP/1.1 200"));
        }
        // the oldest had to go
        let mut rest = Vec::new();
        let gone = tokio::time::timeout(connections::HEAD / 2, half_open[1].read_to_end(&mut rest)).await;
        assert!(gone.is_ok(), "the oldest is still there");
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_or_does_not_end_is_no_request() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        let mut slow = TcpStream::connect(up.address).await.expect("connects");
        slow.write_all(b"GET /readyz HTTP/1.1\r\n").await.expect("writes");
        let long = format!("GET /readyz HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(64 * 1024));
        let text = asked_until_closed(up.address, &long).await;
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(2 * connections::HEAD, slow.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "a slow head is waited for");
    }

    /// What a server answers that may close before all is written.
    async fn asked_until_closed(address: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        let _ = stream.write_all(head.as_bytes()).await;
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    #[tokio::test]
    async fn bodies_that_do_not_come_keep_nobody_out() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        let mut waiting = Vec::new();
        for _ in 0..connections::MOST_CONNECTIONS + 12 {
            let mut stream = TcpStream::connect(up.address).await.expect("connects");
            let head = b"PUT /api/log-level HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n";
            stream.write_all(head).await.expect("writes");
            waiting.push(stream);
        }
        // all of them are in their places
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let asked = tokio::time::timeout(connections::BODY / 2, get(up.address, "/readyz", "")).await;
        assert!(asked.expect("is answered at once").starts_with("HTTP/1.1 200"));
        let mut last = waiting.pop().expect("one");
        let mut text = String::new();
        let ended = tokio::time::timeout(2 * connections::BODY, last.read_to_string(&mut text)).await;
        assert!(ended.is_ok() && text.starts_with("HTTP/1.1 408"), "{text}");
    }

    #[tokio::test]
    async fn a_body_has_an_end_on_every_path() {
        let up = listen("127.0.0.1:0", None, Arc::new(Fixed(Ok(())))).await.expect("listens");
        for path in ["/api/log-level", "/readyz", "/api/one"] {
            let head = format!("PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n");
            let text = asked_until_closed(up.address, &format!("{head}{}", "x".repeat(8 * 1024))).await;
            assert!(!text.starts_with("HTTP/1.1 2"), "{path}: {text}");
        }
    }
}
