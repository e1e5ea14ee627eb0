//! Connections of the listener: how many there are, and how long one may take. Whoever sends half a request, or none, takes a place
//! only until somebody else needs it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use super::{Server, answer, reply};

/// Connections at a time: far more than those who look at a process, far fewer than its files.
pub(super) const MOST_CONNECTIONS: usize = 128;
/// Longest wait for the head of a request.
pub(super) const HEAD: Duration = Duration::from_secs(5);
/// Longest wait for the body of a request.
pub(super) const BODY: Duration = Duration::from_secs(5);
/// Longest body of a request, in bytes.
const LONGEST_BODY: usize = 4096;
/// Longest life of a connection: one request, its body and its answer.
const WHOLE: Duration = Duration::from_secs(60);
/// Longest head of a request, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// Wait after a connection that could not be taken: the process is out of files, and others end.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

/// The connections that are open.
#[derive(Default)]
struct Open {
    next: u64,
    /// Connections whose request is not there yet, by age.
    waiting: BTreeMap<u64, AbortHandle>,
    /// Connections whose request is being answered.
    answered: usize,
}

type Shared = Arc<Mutex<Open>>;

fn lock(open: &Shared) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of one connection; given back when it is dropped.
struct Seat {
    id: u64,
    open: Shared,
    answered: AtomicBool,
}

impl Seat {
    /// Its request is there as a whole: nobody takes the place any more.
    fn keep(&self) {
        let mut open = lock(&self.open);
        if open.waiting.remove(&self.id).is_some() {
            open.answered += 1;
            self.answered.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if self.answered.load(Ordering::Relaxed) {
            open.answered -= 1;
        } else {
            open.waiting.remove(&self.id);
        }
    }
}

/// Takes connections until the task is ended.
pub(super) async fn serve(listener: TcpListener, server: Arc<Server>) {
    let open = Shared::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => take(&open, stream, &server),
            Err(error) => {
                tracing::debug!("a connection could not be taken: {error}");
                tokio::time::sleep(OUT_OF_FILES).await;
            }
        }
        // those that were ended give their files back
        tokio::task::yield_now().await;
    }
}

/// Serves a connection in a task of its own. When all places are taken, the one that has waited longest for its request ends; when all
/// are answered, the new one is turned away.
fn take(open: &Shared, stream: TcpStream, server: &Arc<Server>) {
    let mut all = lock(open);
    if all.waiting.len() + all.answered >= MOST_CONNECTIONS {
        match all.waiting.pop_first() {
            Some((_, oldest)) => oldest.abort(),
            None => return,
        }
    }
    let id = all.next;
    all.next += 1;
    let place = Seat { id, open: Arc::clone(open), answered: AtomicBool::new(false) };
    let serving = tokio::spawn(connection(stream, Arc::clone(server), place));
    // the lock is held: it is in the list before it can leave it
    all.waiting.insert(id, serving.abort_handle());
}

async fn connection(stream: TcpStream, server: Arc<Server>, place: Seat) {
    let (place, server) = (&place, &server);
    let service = service_fn(move |request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        // as long as a body does not come, its place is anybody's
        let answered = match tokio::time::timeout(BODY, to_bytes(Body::new(body), LONGEST_BODY)).await {
            Ok(Ok(body)) => {
                place.keep();
                answer(server, Request::from_parts(head, body)).await
            }
            Ok(Err(_)) => {
                let why = format!("a request has at most {LONGEST_BODY} bytes");
                reply(StatusCode::PAYLOAD_TOO_LARGE, json!({"error": why}))
            }
            Err(_) => reply(StatusCode::REQUEST_TIMEOUT, json!({"error": "the rest of the request did not come"})),
        };
        Ok::<_, Infallible>(answered)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        // one request each: nobody holds a place between two
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // however it ends, the other side has gone or had its time
    let _ = tokio::time::timeout(WHOLE, serving).await;
}
