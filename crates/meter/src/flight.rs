//! A request that was sent, until it is known what became of it: its reply is read, kept where it has to be, and settled once.

use std::{
    collections::VecDeque,
    error::Error,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hyper::body::{Body as _, Bytes};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use crate::{
    admission::Admitted,
    ask::{Asked, LARGE},
    faults::FaultKind,
    outcome::{Ended, Outcome},
    reading::{Read, Reading},
    room::Part,
    secrets::Veil,
    settings::Common,
};

/// A request, and what it holds.
pub(crate) struct Flight {
    pub(crate) common: Arc<Common>,
    pub(crate) asked: Asked,
    pub(crate) admitted: Box<dyn Admitted>,
    /// Room for its body and for what is kept of the reply.
    pub(crate) part: Part,
    pub(crate) sent: Instant,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
}

impl Flight {
    /// Tells that there is no reply that could be read.
    pub(crate) fn fail(self, ended: Ended, client_left: bool) {
        let outcome = Outcome { client_left, ..self.outcome(Read::nothing(ended)) };
        self.settle(outcome);
    }

    /// Tells what a reply came to that was not on its way.
    pub(crate) fn tell(self, read: Read) {
        let outcome = self.outcome(read);
        self.settle(outcome);
    }

    fn outcome(&self, read: Read) -> Outcome {
        Outcome {
            status: self.status,
            usage: read.usage,
            counted_here: read.counted_here,
            doubted: read.doubted,
            latency: self.sent.elapsed(),
            to_first_byte: None,
            ended: read.ended,
            retry_after: self.retry_after,
            model: read.model,
            service_tier: read.service_tier,
            reply: None,
            error: None,
            fault: self.fault,
            client_left: false,
        }
    }

    fn settle(self, outcome: Outcome) {
        let Self { common, admitted, .. } = self;
        common.spawn(admitted.settle(outcome));
    }
}

/// What comes next of a reply.
pub(crate) enum Next {
    Bytes(Bytes),
    End,
    Broken(String),
}

/// The body of a reply on its way.
pub(crate) struct Reply {
    flight: Flight,
    body: reqwest::Body,
    /// Before all that reads, keeps and passes on.
    veil: Veil,
    reading: Reading,
    kept: Option<Kept>,
    /// Bytes that are still to come, where their number was said.
    left: Option<u64>,
    first_byte: Option<Duration>,
    idle: Duration,
    /// The end of all waiting.
    until: Instant,
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

/// Bytes of a body, for the store or for counting.
struct Kept {
    pieces: Vec<Bytes>,
    bytes: usize,
}

impl Kept {
    fn joined(self) -> Bytes {
        match <[Bytes; 1]>::try_from(self.pieces) {
            Ok([only]) => only,
            Err(pieces) => Bytes::from(pieces.concat()),
        }
    }
}

/// What a reply came to that was cut in this way.
fn after(mut read: Read, cut: Option<Ended>) -> Read {
    // a provider that has said all before it was cut is believed
    let is_told = read.ended == Ended::Complete && read.usage.is_some() && !read.counted_here;
    if let Some(cut) = cut.filter(|_| !is_told) {
        read.ended = cut;
    }
    read
}

impl Reply {
    /// The reply to a request, whose head has come.
    pub(crate) fn new(
        flight: Flight,
        body: reqwest::Body,
        reading: Reading,
        is_kept: bool,
        times: (Duration, Instant),
        veil: Veil,
    ) -> Self {
        let (idle, until) = times;
        Self {
            left: body.size_hint().exact(),
            kept: is_kept.then_some(Kept { pieces: Vec::new(), bytes: 0 }),
            first_byte: None,
            timer: Box::pin(sleep_until(until)),
            is_waiting: false,
            flight,
            body,
            veil,
            reading,
            idle,
            until,
        }
    }

    /// Waits for more of the body.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.is_waiting = false;
                    // trailers are of one connection
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Next::Bytes(bytes));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Next::Broken(cause(&error))),
                Poll::Ready(None) => return Poll::Ready(Next::End),
                Poll::Pending => break,
            }
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let until = (Instant::now() + self.idle).min(self.until);
            self.timer.as_mut().reset(until);
        }
        self.timer.as_mut().poll(cx).map(|()| Next::Broken("it was silent for too long".to_owned()))
    }

    /// Takes bytes that have come; `out` gets the client's. `true` when these were the last ones.
    pub(crate) fn take(&mut self, bytes: Bytes, out: &mut VecDeque<Bytes>) -> bool {
        if self.first_byte.is_none() {
            self.first_byte = Some(self.flight.sent.elapsed());
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        let bytes = self.veil.push(bytes);
        self.read(bytes, out);
        self.left == Some(0)
    }

    fn read(&mut self, bytes: Bytes, out: &mut VecDeque<Bytes>) {
        if bytes.is_empty() {
            return;
        }
        self.keep(&bytes);
        let held = self.flight.asked.body.len() + self.kept.as_ref().map_or(0, |kept| kept.bytes);
        self.reading.push(bytes, &mut self.flight.part, held, out);
    }

    fn keep(&mut self, bytes: &Bytes) {
        let Some(kept) = &mut self.kept else { return };
        kept.bytes += bytes.len();
        let is_small = kept.bytes <= self.flight.common.settings.most_kept_bytes;
        if is_small && self.flight.part.grow_to(self.flight.asked.body.len() + kept.bytes) {
            kept.pieces.push(bytes.clone());
        } else {
            self.kept = None;
        }
    }

    /// Gives out what is still held.
    pub(crate) fn rest(&mut self, out: &mut VecDeque<Bytes>) {
        let held = self.veil.end();
        self.read(held, out);
        out.extend(self.reading.rest());
    }

    /// Settles it: it came to its end, or was cut in this way.
    pub(crate) fn finish(mut self, cut: Option<Ended>, client_left: bool) {
        // where nobody has taken it, it is read all the same
        self.rest(&mut VecDeque::new());
        let Self { flight, reading, kept, first_byte, .. } = self;
        let latency = flight.sent.elapsed();
        let kept = kept.map(Kept::joined);
        let common = Arc::clone(&flight.common);
        let is_large = flight.asked.body.len() > LARGE;
        let conclude = move || {
            let read = reading.finish(&flight.asked, kept.as_deref());
            let read = after(read, cut);
            let is_whole = read.ended == Ended::Complete;
            let is_kept = flight.common.settings.keep_replies || (flight.asked.cacheable && is_whole);
            let reply = kept.filter(|_| is_kept);
            let outcome = Outcome { latency, to_first_byte: first_byte, reply, client_left, ..flight.outcome(read) };
            flight.settle(outcome);
        };
        if is_large {
            // counting a large prompt takes longer than others should wait
            common.spawn(async move {
                let _ = tokio::task::spawn_blocking(conclude).await;
            });
        } else {
            conclude();
        }
    }

    /// Settles a reply that is an error of this status.
    pub(crate) fn refuse(self, status: u16, error: Bytes) {
        let Self { flight, first_byte: to_first_byte, .. } = self;
        let read = Read::nothing(Ended::Refused(status));
        let outcome = Outcome { error: Some(error), to_first_byte, ..flight.outcome(read) };
        flight.settle(outcome);
    }

    /// Reads on without the client, for a while.
    pub(crate) fn linger(self) {
        let common = Arc::clone(&self.flight.common);
        match Arc::clone(&common.lingering).try_acquire_owned() {
            Ok(place) => Arc::clone(&common).spawn(async move {
                self.read_on(&common).await;
                drop(place);
            }),
            Err(_) => self.finish(Some(Ended::CutByClient), true),
        }
    }

    async fn read_on(mut self, common: &Common) {
        let (until, mut bytes) = (Instant::now() + common.settings.linger, 0);
        let mut out = VecDeque::new();
        while let Ok(next) = timeout_at(until, poll_fn(|cx| self.poll_next(cx))).await {
            match next {
                Next::Bytes(more) => {
                    bytes += more.len() as u64;
                    let is_last = self.take(more, &mut out);
                    out.clear();
                    if is_last {
                        return self.finish(None, true);
                    }
                    if bytes > common.settings.linger_bytes {
                        break;
                    }
                }
                Next::End => return self.finish(None, true),
                Next::Broken(cause) => return self.finish(Some(Ended::CutByProvider(cause)), true),
            }
        }
        self.finish(Some(Ended::CutByClient), true);
    }
}

/// The last cause of an error, without addresses.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| "the connection broke".to_owned(), ToString::to_string)
}
