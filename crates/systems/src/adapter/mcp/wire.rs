//! The protocol itself, by its own project's library: connecting, listing tools, calling one. Failures have the codes that the same
//! ones have over plain HTTP.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use bench_proto::{
    failure::{Failure, LONGEST_RETRY_AFTER},
    json_bound::{self, Counted},
    trace::StepTrace,
};
use reqwest::{Url, header::HeaderMap};
use rmcp::{
    RoleClient, ServiceError, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ErrorCode, Implementation,
        ListToolsResult, PaginatedRequestParams, RequestParamsMeta,
    },
    service::{ClientInitializeError, RunningService},
    transport::{
        common::client_side_sse::NeverRetry,
        streamable_http_client::{
            StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
        },
    },
};
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, ReadBuf},
    process::{ChildStdin, ChildStdout},
};

use super::{reply::Reply, tools::Tool};
use crate::adapter::{
    http::{NO_REPLY, SHAPE, network, response_memory, too_long},
    said::excerpt,
};

/// Pages of a list of tools, and how many are read of it.
const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 10_000;

/// A connection with a server.
pub(super) struct Wire(RunningService<RoleClient, ClientConfig>);

fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("bench-coord", env!("CARGO_PKG_VERSION")))
}

impl Wire {
    /// Greets the server at the other end of a process's pipes. `too_long` is set when it writes a line of more than `longest`
    /// bytes, or one that takes far more in memory, which ends the connection.
    ///
    /// # Errors
    /// What it says, or that it is gone.
    pub(super) async fn over_pipes(
        (stdout, stdin): (ChildStdout, ChildStdin),
        longest: usize,
        too_long: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let bounded = Bounded { inner: stdout, line: Counted::default(), longest, too_long };
        client().serve((bounded, stdin)).await.map(Self).map_err(|error| greeting(&error))
    }

    /// Greets the server at an address.
    ///
    /// # Errors
    /// As [`Wire::over_pipes`].
    pub(super) async fn over_http(
        client_of_http: reqwest::Client,
        (url, headers): (&Url, &HeaderMap),
        longest: usize,
        at_once: usize,
    ) -> Result<Self, Failure> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).max_concurrent_requests(at_once);
        config.custom_headers =
            headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<HashMap<_, _>>();
        // replies are bounded in bytes alone: the library reads their JSON itself, and what it takes in memory is not counted before
        (config.max_sse_event_size, config.max_json_response_size) = (longest, longest);
        // whether something is tried again is decided by whoever asked
        config.retry_config = Arc::new(NeverRetry::default());
        config.reinit_on_expired_session = false;
        let transport = StreamableHttpClientTransport::with_client(client_of_http, config);
        client().serve(transport).await.map(Self).map_err(|error| greeting(&error))
    }

    /// Name and version of the server, as far as it says them.
    pub(super) fn server(&self) -> Option<String> {
        let about = self.0.peer_info()?;
        let server = about.server_info.as_ref()?;
        Some(excerpt(&format!("{} {}", server.name, server.version)))
    }

    /// All of its tools.
    ///
    /// # Errors
    /// What it says, or that it is gone; a list without an end.
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Failure> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.0.list_tools(Some(params)).await.map_err(|error| failed(&error))?;
            tools.extend(listed(&page));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
            if tools.len() > MOST_TOOLS {
                break;
            }
        }
        Err(Failure::permanent(SHAPE, "the server's list of tools has no end"))
    }

    /// Calls a tool; given up, the server is told so.
    ///
    /// # Errors
    /// What the server says, or that it is gone.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        trace: Option<&StepTrace>,
    ) -> Result<Reply, Failure> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // the system's own spans join the trace of the question
        if let Some(step) = trace {
            params.set_traceparent(&step.next_traceparent());
        }
        self.0.peer().call_tool(params).await.map(returned).map_err(|error| failed(&error))
    }

    /// Whether nothing can be asked over it any more.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed() || self.0.is_transport_closed()
    }

    /// Lets the server go.
    pub(super) fn close(&self) {
        self.0.cancellation_token().cancel();
    }
}

fn listed(page: &ListToolsResult) -> impl Iterator<Item = Tool> {
    page.tools.iter().map(|tool| Tool::new(&tool.name, &tool.input_schema))
}

fn returned(result: CallToolResult) -> Reply {
    let texts = result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.clone()));
    Reply { texts: texts.collect(), structured: result.structured_content, is_error: result.is_error.unwrap_or(false) }
}

/// The result of a tool, as it crosses the wire, with at most so many bytes in memory.
///
/// # Errors
/// What is none.
pub(super) fn read_result(result: &[u8], most: u64) -> Result<Reply, Failure> {
    json_bound::from_slice_within(result, most).map(returned).map_err(|error| of_json("result of a tool", &error))
}

/// A list of tools, as it crosses the wire.
///
/// # Errors
/// What is none.
pub(super) fn read_list(list: &[u8]) -> Result<Vec<Tool>, Failure> {
    let page: ListToolsResult =
        json_bound::from_slice(list, json_bound::DOCUMENT).map_err(|error| of_json("list of tools", &error))?;
    Ok(listed(&page).collect())
}

fn of_json(what: &str, error: &serde_json::Error) -> Failure {
    Failure::permanent(SHAPE, format!("no {what}: {}", excerpt(&error.to_string())))
}

fn connection(why: &str) -> Failure {
    Failure::transient("system_connection", format!("the connection broke: {}", excerpt(why)))
}

/// What a failed call means.
fn failed(error: &ServiceError) -> Failure {
    match error {
        ServiceError::McpError(said) => {
            let message = format!("the server says: {}", excerpt(&said.message));
            if said.code == ErrorCode::INTERNAL_ERROR {
                Failure::transient("system_refused", message)
            } else {
                Failure::permanent("system_refused", message)
            }
        }
        ServiceError::TransportSend(error) => of_transport(error.error.as_ref()),
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => connection("it was closed"),
        other => Failure::permanent(SHAPE, format!("no result of a tool: {}", excerpt(&other.to_string()))),
    }
}

/// What it means that a server is not greeted.
fn greeting(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(error.error.as_ref()),
        ClientInitializeError::ConnectionClosed(why) => connection(why),
        ClientInitializeError::JsonRpcError(said) => {
            Failure::terminal("system_start", format!("the server refuses: {}", excerpt(&said.message)))
        }
        other => Failure::terminal(
            "system_start",
            format!("no server of the Model Context Protocol: {}", excerpt(&other.to_string())),
        ),
    }
}

/// What a failure on the way means.
fn of_transport(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
    let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return connection(&error.to_string());
    };
    match error {
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => of_status(status.as_u16(), None),
            None => network(error, "mcp"),
        },
        StreamableHttpError::HttpStatus(said) => of_status(said.status, said.retry_after.as_deref()),
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => of_status(401, None),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => too_long(*max_size),
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("nothing known");
            Failure::transient(NO_REPLY, format!("the response is {}, no reply of the protocol", excerpt(kind)))
        }
        StreamableHttpError::UnexpectedServerResponse(said) => of_words(said),
        other => connection(&other.to_string()),
    }
}

/// A response that is told in words, such as `HTTP 404 Not Found: …`.
fn of_words(said: &str) -> Failure {
    let status = said.strip_prefix("HTTP ").and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    let mut failure = status.map_or_else(|| Failure::permanent(SHAPE, ""), |status| of_status(status, None));
    failure.message = excerpt(said);
    failure
}

fn of_status(status: u16, retry_after: Option<&str>) -> Failure {
    let message = format!("status {status}");
    match status {
        401 | 403 => Failure::terminal("system_auth", message),
        408 | 425 | 429 | 500..=599 => {
            let seconds = retry_after.and_then(|seconds| seconds.trim().parse::<u64>().ok());
            let mut failure = Failure::transient(format!("system_http_{status}"), message);
            failure.retry_after_ms = seconds.map(|seconds| seconds.min(LONGEST_RETRY_AFTER.as_secs()) * 1000);
            failure
        }
        status => Failure::permanent(format!("system_http_{status}"), message),
    }
}

/// What a process writes, up to a line that is too long or takes too much memory.
struct Bounded<R> {
    inner: R,
    /// What the line that is being read holds so far.
    line: Counted,
    longest: usize,
    too_long: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, into))?;
        let new = into.filled().get(before..).unwrap_or_default();
        let (mut is_too_long, most) = (false, response_memory(self.longest));
        for part in new.split_inclusive(|byte| *byte == b'\n') {
            self.line.add(part);
            is_too_long |= self.line.bytes > self.longest as u64 || self.line.memory() > most;
            if part.ends_with(b"\n") {
                self.line = Counted::default();
            }
        }
        if is_too_long {
            self.too_long.store(true, Ordering::SeqCst);
            // nothing more is heard of it
            into.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_what_is_heard() {
        let read_up_to = async |text: &str, longest: usize| {
            let too_long = Arc::new(AtomicBool::new(false));
            let mut bounded =
                Bounded { inner: text.as_bytes(), line: Counted::default(), longest, too_long: Arc::clone(&too_long) };
            let mut heard = String::new();
            bounded.read_to_string(&mut heard).await.expect("reads");
            (heard, too_long.load(Ordering::SeqCst))
        };
        let read = async |text: &str| read_up_to(text, 8).await;
        assert_eq!(read("1234567\n1234567\n").await, ("1234567\n1234567\n".to_owned(), false));
        assert!(read(&format!("ok\n{}", "x".repeat(9))).await.1);
        assert!(read("123456789\nok\n").await.1);
        // a line of many objects takes far more than its length, one of vectors does not
        let vectors = format!("[{}0]\n", "-0.1234567,".repeat(614_400));
        assert!(!read_up_to(&vectors, 8 << 20).await.1);
        let values = |pairs: usize| format!("[{}0]\n", "{\"\":0},".repeat(pairs));
        assert!(!read_up_to(&values(100_000).repeat(2), 8 << 20).await.1);
        assert!(read_up_to(&values(400_000), 8 << 20).await.1);
    }

    #[test]
    fn what_is_told_in_words_has_the_code_of_its_status() {
        for (said, code) in [
            ("HTTP 404 Not Found: no such page", "system_http_404"),
            ("HTTP 503 Service Unavailable: ", "system_http_503"),
            ("HTTP 403 Forbidden: ", "system_auth"),
            ("HTTP 307 Temporary Redirect: ", "system_http_307"),
            ("expected value at line 1", SHAPE),
        ] {
            let failure = of_words(said);
            assert_eq!((failure.code.as_str(), failure.message.as_str()), (code, said.trim()), "{said}");
        }
    }
}
