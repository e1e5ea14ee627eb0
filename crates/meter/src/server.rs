//! The listener: connections, their bounds, and the end.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    admission::Admission,
    exchange::Exchange,
    relay::Pulse,
    seats::{Seat, Seats},
    settings::{Common, MeterSettings},
};

/// Longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// Wait after a connection that could not be taken: the process is out of files, and others end.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

/// Wait, after the end of all waiting, for requests in flight to be dropped.
const DROPPED: Duration = Duration::from_secs(1);

/// Why there is no meter.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// TLS cannot be set up.
    #[error("the meter cannot set up HTTP: {0}")]
    Http(#[from] reqwest::Error),
    /// The listener has no address.
    #[error("the meter cannot listen: {0}")]
    Listen(#[from] io::Error),
}

/// A proxy in front of model providers.
pub struct Meter {
    common: Arc<Common>,
    admission: Arc<dyn Admission>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("settings", &self.common.settings).finish_non_exhaustive()
    }
}

impl Meter {
    /// A meter that asks `admission` about each request.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(admission: Arc<dyn Admission>, settings: MeterSettings) -> Result<Self, MeterError> {
        Ok(Self { common: Arc::new(Common::new(settings)?), admission })
    }

    /// Cancelled, it waits for nothing: requests in flight are dropped, and what they cost is uncertain.
    #[must_use]
    pub fn hurry(&self) -> CancellationToken {
        self.common.over.clone()
    }

    /// Serves until `shutdown`. Then it takes no more connections, lets requests in flight end for [`MeterSettings::stop`], and returns
    /// when everything is settled that can be. On an address of loopback it answers only those who name this machine.
    ///
    /// # Errors
    /// When the listener has no address.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), MeterError> {
        let is_on_loopback = listener.local_addr()?.ip().to_canonical().is_loopback();
        let Self { common, admission } = self;
        let seats = Seats::new(common.settings.most_connections);
        let exchange = Arc::new(Exchange { common: Arc::clone(&common), admission, is_on_loopback });
        let (connections, end) = (TaskTracker::new(), CancellationToken::new());
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let stream = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => accepted,
            };
            match stream {
                Ok((stream, _)) => {
                    if let Some(seat) = seats.take() {
                        connections.spawn(connection(stream, Arc::clone(&exchange), seat, end.clone()));
                    }
                }
                Err(error) => {
                    tracing::debug!("a connection could not be taken: {error}");
                    sleep(OUT_OF_FILES).await;
                }
            }
        }
        drop(listener);
        end.cancel();
        connections.close();
        common.tasks.close();
        let mut ended = std::pin::pin!(async {
            connections.wait().await;
            common.tasks.wait().await;
        });
        let has_ended = tokio::select! {
            () = &mut ended => true,
            () = sleep(common.settings.stop) => false,
            () = common.over.cancelled() => false,
        };
        if !has_ended {
            let in_flight = common.tasks.len();
            common.over.cancel();
            if in_flight > 0 {
                tracing::warn!("the meter stops with {in_flight} requests in flight; what they cost is uncertain");
            }
            // whoever keeps the books has been told of them when this returns
            let _ = timeout(DROPPED, ended).await;
        }
        Ok(())
    }
}

async fn connection(stream: TcpStream, exchange: Arc<Exchange>, seat: Arc<Seat>, end: CancellationToken) {
    // small replies leave at once
    let _ = stream.set_nodelay(true);
    let pulse = Arc::new(Pulse::new());
    let settings = &exchange.common.settings;
    let (service_exchange, service_pulse, service_seat) =
        (Arc::clone(&exchange), Arc::clone(&pulse), Arc::clone(&seat));
    let service = service_fn(move |request: Request<Incoming>| {
        let (exchange, pulse, seat) =
            (Arc::clone(&service_exchange), Arc::clone(&service_pulse), Arc::clone(&service_seat));
        async move {
            pulse.rest();
            let mut busy = None;
            let answer = exchange.answer(request, || busy = Some(seat.busy())).await;
            let busy = busy.unwrap_or_else(|| seat.busy());
            Ok::<_, Infallible>(answer.map(|given| given.over(pulse, busy)))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let mut looks = interval((settings.client_stall / 4).max(Duration::from_millis(10)));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    loop {
        tokio::select! {
            // however it ends, the other side has gone or had its time
            _ = &mut serving => return,
            () = exchange.common.over.cancelled() => return,
            () = seat.leave().cancelled() => return,
            () = end.cancelled(), if !is_ending => {
                is_ending = true;
                serving.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => {
                if pulse.stalled() > settings.client_stall {
                    return;
                }
            }
        }
    }
}
