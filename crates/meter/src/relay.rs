//! The body that a client is given. It is pulled: what a client does not take is not read, so slow clients hold a few buffers each.
//! When it is dropped before its end the client has left, and the reply is read on without it.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame};
use tokio::time::Instant;

use crate::{
    flight::{Next, Reply},
    outcome::Ended,
    seats::Busy,
};

/// Since when a connection's client has had something to take.
#[derive(Debug)]
pub(crate) struct Pulse {
    begun: Instant,
    /// Milliseconds after `begun`, and one; 0 when the client is not waited for.
    since: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), since: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn given(&self) {
        self.since.store(self.now(), Ordering::Relaxed);
    }

    /// The client is not waited for.
    pub(crate) fn rest(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// How long the client has been waited for.
    pub(crate) fn stalled(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_millis(self.now().saturating_sub(since)),
        }
    }
}

/// A body that a client is given.
pub(crate) struct Given {
    reply: Option<Box<Reply>>,
    ready: VecDeque<Bytes>,
    broken: Option<String>,
    pulse: Option<Arc<Pulse>>,
    /// The connection is busy as long as this is there.
    busy: Option<Busy>,
}

impl Given {
    /// One that is there as a whole.
    pub(crate) fn whole(body: Bytes) -> Self {
        let ready = if body.is_empty() { VecDeque::new() } else { VecDeque::from([body]) };
        Self { reply: None, ready, broken: None, pulse: None, busy: None }
    }

    /// One that comes from a provider.
    pub(crate) fn relayed(reply: Reply) -> Self {
        let mut given = Self::whole(Bytes::new());
        given.reply = Some(Box::new(reply));
        given
    }

    /// With the connection that it goes through.
    pub(crate) fn over(mut self, pulse: Arc<Pulse>, busy: Busy) -> Self {
        (self.pulse, self.busy) = (Some(pulse), Some(busy));
        self
    }

    /// Settles the reply as soon as its last byte is there, whenever the client takes it.
    fn advance(&mut self, next: Next) {
        let Some(mut reply) = self.reply.take() else { return };
        match next {
            Next::Bytes(bytes) => {
                if reply.take(bytes, &mut self.ready) {
                    reply.rest(&mut self.ready);
                    reply.finish(None, false);
                } else {
                    self.reply = Some(reply);
                }
            }
            Next::End => {
                reply.rest(&mut self.ready);
                reply.finish(None, false);
            }
            Next::Broken(cause) => {
                reply.rest(&mut self.ready);
                reply.finish(Some(Ended::CutByProvider(cause.clone())), false);
                self.broken = Some(cause);
            }
        }
    }
}

impl Body for Given {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(pulse) = &self.pulse {
            pulse.rest();
        }
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                if let Some(pulse) = &self.pulse {
                    pulse.given();
                }
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let Some(reply) = &mut self.reply else {
                // the client sees the same as without a meter: a connection that breaks
                return Poll::Ready(self.broken.take().map(|cause| Err(io::Error::other(cause))));
            };
            let Poll::Ready(next) = reply.poll_next(cx) else { return Poll::Pending };
            self.advance(next);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.reply.is_none() && self.broken.is_none()
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            reply.linger();
        }
    }
}
