//! One request: read, admitted, sent, answered.

use std::{sync::Arc, time::Duration};

use bench_models::openai::pace_of;
use bench_proto::ids::Sha256Hash;
use http::{
    HeaderMap, Method,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
    request::Parts,
};
use hyper::{
    Request, Response,
    body::{Body as _, Bytes, Frame, Incoming},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    address::{self, Operation, Target},
    admission::{Admission, Admitted},
    ask::{self, Asked},
    events::Splitter,
    faults::FaultKind,
    flight::{Flight, Next, Reply, cause},
    headers,
    members::Members,
    origin,
    outcome::{Ended, Refusal, StoredReply},
    reading::{Body, Read, Reading},
    refusal::{Form, Rejection},
    relay::Given,
    room::Part,
    secrets::{Secrets, Veil},
    settings::Common,
    upstream::Upstream,
    url,
};

/// Longest body of an error that is passed on.
const LONGEST_ERROR: usize = 1 << 20;
/// Begin of it that is told with the outcome.
const TOLD_ERROR: usize = 4096;
/// Longest reading of a body that is refused and kept nowhere.
const LONGEST_DISCARD: Duration = Duration::from_secs(2);

/// Paths that orchestrators ask, without a key: a meter that listens is well and ready. One whose store is away says so to each
/// request; taken out of its Service, it would say nothing.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Answers requests of one meter.
pub(crate) struct Exchange {
    pub(crate) common: Arc<Common>,
    pub(crate) admission: Arc<dyn Admission>,
    /// Only those who name this machine are answered.
    pub(crate) is_on_loopback: bool,
}

impl Exchange {
    /// The answer to a request; `arrived` is called when it is there as a whole.
    pub(crate) async fn answer(&self, request: Request<Incoming>, arrived: impl FnOnce() + Send) -> Response<Given> {
        let (head, body) = request.into_parts();
        if head.method == Method::GET && HEALTH.contains(&head.uri.path()) {
            return Response::new(Given::whole(Bytes::from_static(b"ok\n")));
        }
        let target = address::read(head.uri.path());
        let is_anthropic = target.as_ref().is_some_and(|target| target.operation.is_anthropic())
            || head.headers.contains_key("anthropic-version");
        let form = if is_anthropic { Form::Anthropic } else { Form::OpenAi };
        let answered = async {
            let target = self.look(&head, target);
            if let Err(rejection) = &target {
                self.count_nowhere(&head, rejection).await;
            }
            let target = target?;
            let body = self.authenticate(&head.headers, &target, body).await?;
            let address = target.address.clone();
            let forwarded = async {
                if target.operation != Operation::Models {
                    headers::check_body(&head.headers)?;
                }
                let (body, part) = self.body(&head.headers, body).await?;
                arrived();
                self.forward(head, target, body, part).await
            };
            match forwarded.await {
                // counted before the client hears so: what fails by it is told of afterwards
                Err(rejection) if rejection.lasts() => {
                    self.admission.refused(&address, rejection.code(), rejection.kept()).await;
                    Err(rejection)
                }
                forwarded => forwarded,
            }
        };
        answered.await.unwrap_or_else(|rejection| respond(&rejection, form))
    }

    /// What can be said without the body.
    fn look(&self, head: &Parts, target: Option<Target>) -> Result<Target, Rejection> {
        if self.is_on_loopback && !origin::is_meant(&head.headers, &head.uri, &self.common.settings.hosts) {
            return Err(Rejection::foreign_host());
        }
        let target = target.ok_or_else(|| Rejection::nowhere(head.uri.path()))?;
        let (allowed, name) =
            if target.operation == Operation::Models { (Method::GET, "GET") } else { (Method::POST, "POST") };
        if head.method != allowed {
            return Err(Rejection::method(name));
        }
        if ask::token(&head.headers).is_empty() {
            return Err(Refusal::ForeignKey.into());
        }
        Ok(target)
    }

    /// Counts a request to a path that nothing is at, for the run that the path names and whose key it has.
    async fn count_nowhere(&self, head: &Parts, rejection: &Rejection) {
        let Some(address) = address::of_nowhere(head.uri.path()).filter(|_| rejection.lasts()) else { return };
        let token = ask::token(&head.headers);
        if !token.is_empty() && self.admission.authenticate(&address, &token).await.is_ok() {
            self.admission.refused(&address, rejection.code(), rejection.kept()).await;
        }
    }

    /// The body, once it is known whose it is: who has no key of the run takes no room.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        target: &Target,
        mut body: Incoming,
    ) -> Result<Incoming, Rejection> {
        let Err(refusal) = self.admission.authenticate(&target.address, &ask::token(headers)).await else {
            return Ok(body);
        };
        if refusal != Refusal::ForeignKey {
            // a connection that is closed while its client still sends may lose the answer
            let sent = async {
                let mut bytes = 0;
                while let Some(Ok(frame)) = next_frame(&mut body).await
                    && bytes <= self.common.settings.most_request_bytes
                {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                }
            };
            let _ = timeout(LONGEST_DISCARD, sent).await;
        }
        Err(refusal.into())
    }

    /// The body of a request, and the room that it takes.
    async fn body(&self, headers: &HeaderMap, mut body: Incoming) -> Result<(Bytes, Part), Rejection> {
        let settings = &self.common.settings;
        let most = settings.most_request_bytes;
        let mut part = self.common.room.part();
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > most) {
            return Err(Rejection::too_large(most));
        }
        // the client's time begins when there is room
        if let Some(length) = length.filter(|length| *length > 0)
            && timeout(settings.body, part.wait_for(length)).await.is_err()
        {
            return Err(Rejection::no_room());
        }
        let read = async {
            let mut whole = Vec::with_capacity(length.unwrap_or(0));
            while let Some(frame) = next_frame(&mut body).await {
                let Ok(bytes) = frame.map_err(|_| Rejection::broken_off())?.into_data() else { continue };
                if whole.len() + bytes.len() > most {
                    return Err(Rejection::too_large(most));
                }
                if !part.grow_to(whole.len() + bytes.len()) {
                    return Err(Rejection::no_room());
                }
                whole.extend_from_slice(&bytes);
            }
            Ok(whole)
        };
        match timeout(settings.body, read).await {
            Ok(read) => Ok((read?.into(), part)),
            Err(_) => Err(Rejection::slow_body()),
        }
    }

    async fn forward(
        &self,
        head: Parts,
        target: Target,
        body: Bytes,
        part: Part,
    ) -> Result<Response<Given>, Rejection> {
        let asked = Asked::read(target, head.uri.query(), &head.headers, body)?;
        let mut admitted = self.admission.admit(&asked).await?;
        let upstream = admitted.upstream();
        // whoever admits has looked already, and who has not lets nothing through
        asked.check_parameters(&upstream.parameters, "NAME")?;
        let source = match admitted.stored() {
            Some(stored) => Source::Store(stored),
            None => Source::Provider(url::provider_url(&upstream, &asked)?),
        };
        // before it is looked at who answers: equal runs meet equal faults, whatever is stored by then
        let (is_slow, fault) = self.draw(&asked, admitted.as_ref());
        if is_slow {
            sleep(self.common.settings.slow).await;
        }
        let flight = Flight {
            common: Arc::clone(&self.common),
            admitted,
            part,
            sent: Instant::now(),
            fault: fault.or(is_slow.then_some(FaultKind::Slow)),
            status: 0,
            retry_after: None,
            asked,
        };
        if let Some(kind) = fault {
            let rejection = Rejection::fault(kind);
            let status = rejection.status.as_u16();
            Flight { status, ..flight }.fail(Ended::Refused(status), false);
            return Err(rejection);
        }
        let address = match source {
            Source::Store(stored) => return Ok(answer_stored(flight, stored)),
            Source::Provider(address) => address,
        };
        let headers = headers::to_provider(head.headers, &upstream.headers);
        let asks = upstream.asks_usage && flight.asked.wish.is_added();
        let body = if asks { flight.asked.wish.put_into(&flight.asked.body) } else { flight.asked.body.clone() };
        let mut request = reqwest::Request::new(head.method, address);
        *request.headers_mut() = headers;
        if flight.asked.operation != Operation::Models {
            *request.body_mut() = Some(body.into());
        }
        // in a task of its own: it goes on when the client leaves
        let (answer, answered) = oneshot::channel();
        self.common.spawn(Sending { flight, upstream, asks }.send(request, answer));
        answered.await.unwrap_or_else(|_| Err(Rejection::cut("the meter failed; its log says why")))
    }

    /// What a request meets on purpose: whether it is slow, and the status that it is answered with.
    fn draw(&self, asked: &Asked, admitted: &dyn Admitted) -> (bool, Option<FaultKind>) {
        let settings = &self.common.settings;
        let of_run = admitted.faults();
        let faults = if of_run.is_empty() { &settings.faults } else { &of_run };
        if faults.is_empty() {
            return (false, None);
        }
        // what one run asks for is nothing to another
        let request = Sha256Hash::of_bytes(format!("{}\n{}", asked.address.run, asked.body_hash.hex()).as_bytes());
        let occurrence = self.common.occurrences.next(&request);
        faults.draw(settings.fault_seed, &asked.body_hash, occurrence)
    }
}

/// Who answers a request.
enum Source {
    Store(StoredReply),
    /// At this address.
    Provider(reqwest::Url),
}

/// The answer to a request whose reply is stored.
fn answer_stored(flight: Flight, stored: StoredReply) -> Response<Given> {
    let mut members = Members::default();
    members.push(&stored.body);
    let read = Reading::new(&flight.asked, Body::Whole(members), false).finish(&flight.asked, Some(&stored.body));
    Flight { status: 200, ..flight }.tell(Read { ended: Ended::Stored, ..read });
    let mut response = Response::new(Given::whole(stored.body));
    if let Ok(kind) = stored.content_type.parse() {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

/// What comes next of a body.
async fn next_frame(body: &mut Incoming) -> Option<hyper::Result<Frame<Bytes>>> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_frame(cx)).await
}

type Answer = Result<Response<Given>, Rejection>;

/// A request on its way, up to the head of its reply.
struct Sending {
    flight: Flight,
    upstream: Upstream,
    /// The stream is asked for its use, and the client did not.
    asks: bool,
}

impl Sending {
    async fn send(mut self, request: reqwest::Request, mut answer: oneshot::Sender<Answer>) {
        self.flight.admitted.sent();
        self.flight.sent = Instant::now();
        let until = self.flight.sent + self.upstream.whole;
        let first_until = until.min(self.flight.sent + self.upstream.first_byte);
        let client = self.flight.common.client.clone();
        let mut sending = std::pin::pin!(client.execute(request));
        let mut deadline = first_until;
        let mut left = false;
        let response = loop {
            tokio::select! {
                sent = &mut sending => break sent,
                () = answer.closed(), if !left => {
                    left = true;
                    deadline = deadline.min(Instant::now() + self.flight.common.settings.linger);
                }
                () = sleep_until(deadline) => {
                    let waited = self.flight.sent.elapsed();
                    let silent = format!("no answer within {} s", waited.as_secs());
                    // a provider is blamed where it had all of its time, also by a client that has lost patience before
                    let ended =
                        if deadline < first_until { Ended::CutByClient } else { Ended::CutByProvider(silent) };
                    self.flight.fail(ended, left);
                    let _ = answer.send(Err(Rejection::silent(waited)));
                    return;
                }
            }
        };
        match response {
            Ok(response) => self.answer(response, answer, until).await,
            Err(error) => {
                let why = cause(&error);
                let is_unsent = error.is_connect() || error.is_builder();
                let (ended, rejection) = if is_unsent {
                    (Ended::NotReached(why.clone()), Rejection::not_reached(&why))
                } else {
                    (Ended::CutByProvider(why.clone()), Rejection::cut(&why))
                };
                self.flight.fail(ended, left);
                let _ = answer.send(Err(rejection));
            }
        }
    }

    async fn answer(mut self, response: reqwest::Response, answer: oneshot::Sender<Answer>, until: Instant) {
        let (head, body) = http::Response::from(response).into_parts();
        let retry_ms = pace_of(&head.headers).retry_after_ms;
        self.flight.status = head.status.as_u16();
        self.flight.retry_after = retry_ms.map(Duration::from_millis);
        let times = (self.upstream.idle, until);
        let Upstream { secrets, keys, .. } = self.upstream;
        if !head.status.is_success() {
            let asked = &self.flight.asked;
            let reply = Reading::new(asked, Body::Encoded, false);
            let reply = Reply::new(self.flight, body, reply, false, times, Veil::over(secrets.clone()));
            let answered = refused(reply, head, &secrets).await;
            let _ = answer.send(answered);
            return;
        }
        let is = |kind: &str| {
            let value = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(kind))
        };
        let is_encoded = head.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        let is_stream = is("text/event-stream");
        let settings = &self.flight.common.settings;
        let how = match is_stream {
            _ if is_encoded => Body::Encoded,
            true => Body::Events(Splitter::new(settings.most_event_bytes)),
            false => Body::Whole(Members::default()),
        };
        let takes_out = self.asks && is_stream && !is_encoded;
        let is_kept = settings.keep_replies || !is_stream;
        let reading = Reading::new(&self.flight.asked, how, takes_out);
        let reply = Reply::new(self.flight, body, reading, is_kept, times, Veil::over(keys));
        let mut response = Response::new(Given::relayed(reply));
        *response.status_mut() = head.status;
        *response.headers_mut() = headers::to_client(head.headers, takes_out, &secrets);
        // without its receiver it is dropped here, and read on
        let _ = answer.send(Ok(response));
    }
}

/// A status other than success: passed on as it is, but for a key that it shows.
async fn refused(mut reply: Reply, head: http::response::Parts, secrets: &Secrets) -> Answer {
    let (mut body, mut out) = (Vec::new(), std::collections::VecDeque::new());
    let ended = loop {
        match std::future::poll_fn(|cx| reply.poll_next(cx)).await {
            Next::Bytes(bytes) => {
                body.extend_from_slice(&bytes);
                let is_last = reply.take(bytes, &mut out);
                out.clear();
                if is_last {
                    break None;
                }
                if body.len() > LONGEST_ERROR {
                    break Some("its error has no end".to_owned());
                }
            }
            Next::End => break None,
            Next::Broken(cause) => break Some(cause),
        }
    };
    secrets.hide(&mut body);
    let told = Bytes::copy_from_slice(body.get(..TOLD_ERROR).unwrap_or(&body));
    reply.refuse(head.status.as_u16(), told);
    if let Some(cause) = ended {
        return Err(Rejection::cut(&cause));
    }
    let mut response = Response::new(Given::whole(body.into()));
    *response.status_mut() = head.status;
    *response.headers_mut() = headers::to_client(head.headers, true, secrets);
    Ok(response)
}

/// What the meter itself says.
pub(crate) fn respond(rejection: &Rejection, form: Form) -> Response<Given> {
    let (headers, body) = rejection.written(form);
    let mut response = Response::new(Given::whole(body));
    *response.status_mut() = rejection.status;
    *response.headers_mut() = headers;
    response
}
