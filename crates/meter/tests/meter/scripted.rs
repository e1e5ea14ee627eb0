//! A server that answers every request with the same bytes, as they are written down, and keeps what it was sent; and a client of the
//! same kind.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What is done after a request has come.
#[derive(Clone)]
pub(crate) enum Step {
    Say(Vec<u8>),
    Wait(Duration),
    /// The same bytes again and again, until nobody takes them.
    Forever(Vec<u8>),
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A server; it ends when this is dropped.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    written: Arc<Mutex<u64>>,
    task: JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scripted {
    pub(crate) async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let address = listener.local_addr().expect("an address");
        let (requests, written) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (kept, count) = (Arc::clone(&requests), Arc::clone(&written));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, steps.clone(), Arc::clone(&kept), Arc::clone(&count)));
            }
        });
        Self { address, requests, written, task }
    }

    /// One that says these bytes and closes.
    pub(crate) async fn saying(reply: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![Step::Say(reply.into())]).await
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("whole").clone()
    }

    /// Bytes that somebody has taken, or that lie in buffers of the system.
    pub(crate) fn written(&self) -> u64 {
        *self.written.lock().expect("whole")
    }
}

async fn answer(mut stream: TcpStream, steps: Vec<Step>, requests: Arc<Mutex<Vec<Request>>>, written: Arc<Mutex<u64>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    requests.lock().expect("whole").push(request);
    for step in steps {
        match step {
            Step::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                *written.lock().expect("whole") += bytes.len() as u64;
            }
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Forever(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {
                    *written.lock().expect("whole") += bytes.len() as u64;
                }
            }
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let (mut bytes, mut buffer) = (Vec::new(), [0_u8; 8192]);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four: &[u8]| four == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: bytes.split_off(end) };
    let length: usize = request.header("content-length").map_or(0, |length| length.parse().expect("a length"));
    while request.body.len() < length {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => request.body.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
    Some(request)
}

/// A reply as it came, up to the end of the connection.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let request = Request { head: self.head.clone(), body: Vec::new() };
        request.header(name).map(str::to_owned)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("json")
    }
}

/// The text of a request.
pub(crate) fn request(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-1\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Sends the text of a request and reads to the end.
pub(crate) async fn exchange(to: SocketAddr, text: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(to).await.expect("connects");
    let (mut from, mut into) = stream.split();
    let mut all = Vec::new();
    // a server may answer before it has read everything
    let (_, read) = tokio::join!(into.write_all(text), from.read_to_end(&mut all));
    let _ = read;
    parse(&all)
}

fn parse(all: &[u8]) -> Reply {
    let end = all
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("a head: {}", String::from_utf8_lossy(all)));
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut reply = Reply { status, head, body: all[end + 4..].to_vec() };
    if reply.header("transfer-encoding").as_deref() == Some("chunked") {
        reply.body = without_chunks(&reply.body);
    }
    reply
}

/// The bytes of a body in chunks; a cut one ends where it ends.
fn without_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).expect("a size"), 16).expect("a size");
        if size == 0 {
            break;
        }
        let chunk = &rest[end + 2..];
        body.extend_from_slice(&chunk[..size.min(chunk.len())]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    body
}

/// The text of a reply with a length.
pub(crate) fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// The head of a stream, which ends with the connection or with its last chunk.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// Some bytes as one chunk.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// A stream in chunks of so many bytes, to its end.
pub(crate) fn streamed(events: &str, size: usize) -> String {
    let chunks = events.as_bytes().chunks(size).map(|part| chunk(std::str::from_utf8(part).expect("text")));
    format!("{STREAM}{}0\r\n\r\n", chunks.collect::<String>())
}
