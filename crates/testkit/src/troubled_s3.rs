//! A second S3 server (`s3s-fs`, files below a folder) in the test's own process: another implementation than moto, and one
//! whose requests fail on demand. It can stand before another server too, whose requests fail the same way then.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use s3s::{
    Body,
    auth::SimpleAuth,
    service::{S3Service, S3ServiceBuilder},
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

use crate::s3::{ACCESS, SECRET};

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It is answered with 503.
    Busy,
    /// The connection ends before anything was done.
    Cut,
    /// It is done, and the connection ends instead of an answer.
    LostReply,
    /// It is never answered.
    Hang,
    /// It is answered with 403.
    Denied,
}

/// What happens to which requests.
#[derive(Debug, Clone)]
enum Plan {
    /// To all from this one on.
    From(u64, Trouble),
    /// To the first so many that bring this part of a large object.
    Part(u32, u64, Trouble),
    /// To all that are about an object whose name ends so.
    Object(String, Trouble),
}

/// What a server is asked for, and what it makes of it.
#[derive(Debug, Default)]
struct State {
    plan: Mutex<Option<Plan>>,
    requests: AtomicU64,
    parts: Mutex<Vec<u32>>,
}

impl State {
    /// Takes note of a request, and says what happens to it.
    fn meet(&self, request: &Request<Incoming>) -> Option<Trouble> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let parameters = request.uri().query().unwrap_or_default().split('&');
        let part = parameters.filter_map(|pair| pair.strip_prefix("partNumber=")?.parse::<u32>().ok()).next();
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).extend(part);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        match plan.as_mut()? {
            Plan::From(first, trouble) => (number >= *first).then_some(*trouble),
            Plan::Part(planned, left, trouble) => {
                let meets = part == Some(*planned) && *left > 0;
                *left -= u64::from(meets);
                meets.then_some(*trouble)
            }
            Plan::Object(end, trouble) => request.uri().path().ends_with(end.as_str()).then_some(*trouble),
        }
    }
}

/// Who answers.
#[derive(Clone)]
enum Backend {
    /// Files of this machine. The service looks whether an object is there and then writes it, so writes on condition go one at
    /// a time: a real S3 lets one of two win.
    Files(S3Service, Arc<tokio::sync::Mutex<()>>),
    /// A server elsewhere, `host:port`.
    Server(String),
}

/// A running server with an empty bucket `bench`.
#[derive(Debug)]
pub struct TroubledS3 {
    place: String,
    state: Arc<State>,
    _folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl TroubledS3 {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When it cannot be started: a missing service is a failed test.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("bench")).expect("writable");
        let files = s3s_fs::FileSystem::new(folder.path()).expect("a folder is enough");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS, SECRET));
        Self::with(Backend::Files(builder.build(), Arc::default()), folder)
    }

    /// Stands before the server at `place`.
    ///
    /// # Panics
    /// As [`Self::start`].
    #[must_use]
    pub fn before(place: &str) -> Self {
        Self::with(Backend::Server(place.to_owned()), tempfile::tempdir().expect("a temporary folder"))
    }

    fn with(backend: Backend, folder: tempfile::TempDir) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let state = Arc::<State>::default();
        let listener = runtime.block_on(TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))).expect("a port");
        let place = listener.local_addr().expect("is bound").to_string();
        runtime.spawn(serve(listener, backend, Arc::clone(&state)));
        Self { place, state, _folder: folder, _runtime: runtime }
    }

    /// `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// From now on `untroubled` requests succeed, and every later one meets this.
    pub fn trouble_after(&self, untroubled: u64, trouble: Trouble) {
        self.plan(Some(Plan::From(self.requests() + untroubled, trouble)));
    }

    /// The next `times` requests that bring this part of a large object (1 is the first) meet this; all others succeed.
    pub fn trouble_part(&self, part: u32, times: u64, trouble: Trouble) {
        self.plan(Some(Plan::Part(part, times, trouble)));
    }

    /// From now on whatever is asked about objects whose names end so meets this.
    pub fn trouble_object(&self, end: &str, trouble: Trouble) {
        self.plan(Some(Plan::Object(end.to_owned(), trouble)));
    }

    /// Every request succeeds.
    pub fn heal(&self) {
        self.plan(None);
    }

    fn plan(&self, plan: Option<Plan>) {
        *self.state.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Numbers of the parts of large objects that were brought so far, repeated ones repeatedly, as they came.
    #[must_use]
    pub fn parts(&self) -> Vec<u32> {
        self.state.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, backend: Backend, state: Arc<State>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        // without it, small replies wait 40 ms for an acknowledgement
        let _ = socket.set_nodelay(true);
        let (backend, state) = (backend.clone(), Arc::clone(&state));
        let answer = service_fn(move |request: Request<Incoming>| {
            let trouble = state.meet(&request);
            answer(backend.clone(), request, trouble)
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(async move {
            // a connection that ends in trouble is what was asked for
            let _ = connection.await;
        });
    }
}

/// An answer, or an error that ends the connection.
async fn answer(
    backend: Backend,
    request: Request<Incoming>,
    trouble: Option<Trouble>,
) -> Result<Response<Body>, std::io::Error> {
    let ended = || std::io::Error::other("the connection ends here");
    match trouble {
        None => backend.answer(request).await,
        Some(Trouble::Busy) => {
            let mut busy = Response::new(Body::empty());
            *busy.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
            Ok(busy)
        }
        Some(Trouble::Denied) => {
            let mut denied = Response::new(Body::empty());
            *denied.status_mut() = hyper::StatusCode::FORBIDDEN;
            Ok(denied)
        }
        Some(Trouble::Cut) => Err(ended()),
        Some(Trouble::LostReply) => {
            backend.answer(request).await?;
            Err(ended())
        }
        Some(Trouble::Hang) => {
            std::future::pending::<()>().await;
            Err(ended())
        }
    }
}

impl Backend {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, std::io::Error> {
        match self {
            Self::Files(service, conditional) => {
                let is_conditional = request.headers().contains_key(hyper::header::IF_NONE_MATCH);
                let _alone = if is_conditional { Some(conditional.lock().await) } else { None };
                service.call(request.map(Body::from)).await.map_err(|_| std::io::Error::other("the server failed"))
            }
            Self::Server(place) => {
                let socket = TcpStream::connect(place).await?;
                socket.set_nodelay(true)?;
                let connection = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
                let (mut sender, connection) = connection.map_err(std::io::Error::other)?;
                tokio::spawn(async move {
                    // how it ends is seen by whoever reads the answer
                    let _ = connection.await;
                });
                let answered = sender.send_request(request).await.map_err(std::io::Error::other)?;
                Ok(answered.map(Body::from))
            }
        }
    }
}
