//! A second S3 server (`s3s-fs`, files below a folder) in the test's own process: another implementation than moto, and one
//! whose requests fail on demand.

use std::{
    net::SocketAddr,
    path::Path,
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
use tokio::{net::TcpListener, runtime::Runtime};

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
}

/// What happens from which request on.
type Plan = Arc<Mutex<Option<(u64, Trouble)>>>;

/// A running server with an empty bucket `bench`.
#[derive(Debug)]
pub struct TroubledS3 {
    place: String,
    plan: Plan,
    requests: Arc<AtomicU64>,
    folder: tempfile::TempDir,
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
        let service = builder.build();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (plan, requests) = (Plan::default(), Arc::new(AtomicU64::new(0)));
        let listener = runtime.block_on(TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))).expect("a port");
        let place = listener.local_addr().expect("is bound").to_string();
        runtime.spawn(serve(listener, service, Arc::clone(&plan), Arc::clone(&requests)));
        Self { place, plan, requests, folder, _runtime: runtime }
    }

    /// `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Where the objects of the bucket lie as files.
    #[must_use]
    pub fn bucket(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("bench")
    }

    /// From now on `untroubled` requests succeed, and every later one meets this.
    pub fn trouble_after(&self, untroubled: u64, trouble: Trouble) {
        let from = self.requests() + untroubled;
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some((from, trouble));
    }

    /// Every request succeeds.
    pub fn heal(&self) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, service: S3Service, plan: Plan, requests: Arc<AtomicU64>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        // without it, small replies wait 40 ms for an acknowledgement
        let _ = socket.set_nodelay(true);
        let (service, plan, requests) = (service.clone(), Arc::clone(&plan), Arc::clone(&requests));
        let answer = service_fn(move |request: Request<Incoming>| {
            let number = requests.fetch_add(1, Ordering::SeqCst);
            let planned = *plan.lock().unwrap_or_else(PoisonError::into_inner);
            let trouble = planned.filter(|(from, _)| number >= *from).map(|(_, trouble)| trouble);
            answer(service.clone(), request, trouble)
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
    service: S3Service,
    request: Request<Incoming>,
    trouble: Option<Trouble>,
) -> Result<Response<Body>, std::io::Error> {
    let ended = || std::io::Error::other("the connection ends here");
    let done = |service: S3Service| async move { service.call(request.map(Body::from)).await.map_err(|_| ended()) };
    match trouble {
        None => done(service).await,
        Some(Trouble::Busy) => {
            let mut busy = Response::new(Body::empty());
            *busy.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
            Ok(busy)
        }
        Some(Trouble::Cut) => Err(ended()),
        Some(Trouble::LostReply) => {
            done(service).await?;
            Err(ended())
        }
        Some(Trouble::Hang) => {
            std::future::pending::<()>().await;
            Err(ended())
        }
    }
}
