//! Connections of a listener: how many there are, how long one may come without a request, and for which machine a request is.
//!
//! Nothing is done for a request but a look at two of its headers: benchmarks run against this.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::{
        HeaderName, Request, StatusCode,
        header::{HOST, ORIGIN},
    },
    response::{IntoResponse as _, Response},
    serve::Listener,
};
use bench_proto::address::{is_page_of_this_machine, names_this_machine};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::error::ApiError;

/// What a listener bears.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at a time; more are turned away.
    pub(crate) connections: usize,
    /// Longest wait for the head of the first request of a connection.
    pub(crate) first_request: Duration,
}

impl Bounds {
    /// More connections than benchmarks open, and longer than clients keep one that they have not used yet.
    pub(crate) const USUAL: Self = Self { connections: 16_384, first_request: Duration::from_secs(120) };
}

/// Serves what comes in until it is told to stop, and ends when all requests in flight have ended.
pub(crate) async fn serve<L>(mut listener: L, router: Router, bounds: Bounds, stop: CancellationToken)
where
    L: Listener<Addr = SocketAddr>,
{
    // whoever listens elsewhere has others in mind
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let (places, open) = (Arc::new(Semaphore::new(bounds.connections)), TaskTracker::new());
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::debug!("a connection is turned away: {} are open", bounds.connections);
            continue;
        };
        let (router, stop) = (router.clone(), stop.clone());
        open.spawn(async move {
            connection(stream, router, (is_local, bounds.first_request), stop).await;
            drop(place);
        });
    }
    drop(listener);
    open.close();
    open.wait().await;
}

async fn connection<I>(stream: I, router: Router, (is_local, patience): (bool, Duration), stop: CancellationToken)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = AtomicBool::new(false);
    let has_asked = &asked;
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let is_answered = !is_local || is_of_a_provider(request.uri().path()) || is_of_this_machine(&request);
        let answer = is_answered.then(|| router.call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok::<Response, Infallible>(refusal()),
            }
        }
    });
    let mut serving = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let mut stopped = pin!(stop.cancelled());
    let mut first = pin!(tokio::time::sleep(patience));
    let (mut goes_on, mut is_waited_for) = (true, true);
    loop {
        tokio::select! {
            biased;
            // however it ends: the other side has gone, or was told
            _ = serving.as_mut() => return,
            () = stopped.as_mut(), if goes_on => {
                goes_on = false;
                serving.as_mut().graceful_shutdown();
            }
            () = first.as_mut(), if is_waited_for => {
                if !asked.load(Ordering::Relaxed) {
                    return;
                }
                is_waited_for = false;
            }
        }
    }
}

/// Whether a path is one that providers have: proxies stand before these under names of their own, and nobody gains by an answer that
/// is made up. The others show and change what the simulator does.
fn is_of_a_provider(path: &str) -> bool {
    ["/v1/", "/openai/"].iter().any(|begin| path.starts_with(begin))
}

/// Whether every name that a request gives for this server, and for the page that it comes from, is one of this machine: a page of
/// somebody else can make a browser ask a listener on loopback, by a name of its own that leads there (DNS rebinding).
fn is_of_this_machine<B>(request: &Request<B>) -> bool {
    let all = |name: HeaderName, is_good: fn(&str) -> bool| {
        request.headers().get_all(name).iter().all(|value| value.to_str().is_ok_and(is_good))
    };
    all(HOST, names_this_machine) && all(ORIGIN, is_page_of_this_machine)
}

fn refusal() -> Response {
    let why = "on loopback only this machine is answered: ask for 127.0.0.1 or localhost, or let it listen on another address (--listen)";
    ApiError::new(StatusCode::FORBIDDEN, "invalid_request_error", Some("foreign_host"), why).into_response()
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    async fn listening(bounds: Bounds) -> (SocketAddr, CancellationToken) {
        let router = Router::new().route("/", axum::routing::get(async || "yes"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let (address, stop) = (listener.local_addr().expect("has an address"), CancellationToken::new());
        tokio::spawn(serve(listener, router, bounds, stop.clone()));
        (address, stop)
    }

    async fn sent(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(text.as_bytes()).await.expect("is sent");
        stream
    }

    /// What comes until the other side closes.
    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        // a reset is an end too
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    const ASK: &str = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn half_a_head_is_not_waited_for_and_an_idle_connection_that_has_asked_stays() {
        let bounds = Bounds { first_request: Duration::from_secs(1), ..Bounds::USUAL };
        let (address, _stop) = listening(bounds).await;
        let mut idle = sent(address, &ASK.replace("close", "keep-alive")).await;
        let half = sent(address, "GET / HTTP/1.1\r\nhost:").await;
        let ended = tokio::time::timeout(Duration::from_secs(20), rest(half)).await;
        assert_eq!(ended.expect("is ended"), "");
        idle.write_all(ASK.as_bytes()).await.expect("is sent");
        assert_eq!(rest(idle).await.matches("yes").count(), 2);
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_are_turned_away_until_one_ends() {
        let (address, _stop) = listening(Bounds { connections: 1, ..Bounds::USUAL }).await;
        let half = sent(address, "GET / HTTP/1.1\r\n").await;
        assert_eq!(rest(TcpStream::connect(address).await.expect("connects")).await, "");
        drop(half);
        let answered = async {
            while !rest(sent(address, ASK).await).await.ends_with("yes") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), answered).await.expect("there is room again");
    }

    #[tokio::test]
    async fn on_loopback_this_machine_alone_is_answered() {
        let (address, stop) = listening(Bounds::USUAL).await;
        for (headers, status) in [
            ("host: localhost", 200),
            ("host: 127.0.0.1:9932\r\norigin: http://localhost:3000", 200),
            ("host: evil.example", 403),
            ("host: 127.0.0.1\r\norigin: http://evil.example", 403),
            ("host: 127.0.0.1\r\norigin: null", 403),
        ] {
            let text =
                rest(sent(address, &format!("GET / HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n")).await).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {text}");
        }
        // nothing is there in this router, and it was looked for
        let asked = "GET /v1/models HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
        assert!(rest(sent(address, asked).await).await.starts_with("HTTP/1.1 404 "));
        stop.cancel();
        let closed = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), closed).await.expect("it stops listening");
    }
}
