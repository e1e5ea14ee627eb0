//! What is read of requests and replies, without a listener and a provider: for those who look at it from outside.

use std::collections::VecDeque;

use http::HeaderMap;
use hyper::body::Bytes;

use crate::{
    address,
    ask::Asked,
    events::Splitter,
    members::Members,
    outcome::{Ended, Tokens},
    reading::{Body, Reading},
    refusal::{Form, Rejection},
    room::Room,
};

/// Longest event that is held, and room for all that is.
const MOST_EVENT_BYTES: usize = 1 << 20;
const ROOM: usize = 8 << 20;

/// What was read of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// What the client is given of it.
    pub passed: Vec<u8>,
    /// Its use, and whether the provider did not tell it.
    pub usage: Option<Tokens>,
    /// See [`usage`](Self::usage).
    pub counted_here: bool,
    /// What the end of its bytes means.
    pub ended: Ended,
}

/// Reads a request; the target is its path, with the query behind a question mark.
///
/// # Errors
/// What the client is told.
pub fn request(target: &str, body: &[u8]) -> Result<Asked, String> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let told = |rejection: Rejection| String::from_utf8_lossy(&rejection.written(Form::OpenAi).1).into_owned();
    let target = address::read(path).ok_or_else(|| told(Rejection::nowhere(path)))?;
    Asked::read(target, query, &HeaderMap::new(), Bytes::copy_from_slice(body)).map_err(told)
}

/// The body of a request as the provider gets it, where it is asked for the use of its stream.
#[must_use]
pub fn with_wish(asked: &Asked) -> Option<Bytes> {
    asked.wish.is_added().then(|| asked.wish.put_into(&asked.body))
}

/// Reads the reply to a request, which comes in pieces of so many bytes.
#[must_use]
pub fn reply(asked: &Asked, body: &[u8], piece: usize) -> Heard {
    let how = match asked.stream {
        true => Body::Events(Splitter::new(MOST_EVENT_BYTES)),
        false => Body::Whole(Members::default()),
    };
    let mut reading = Reading::new(asked, how, asked.wish.is_added());
    let (mut part, mut out) = (Room::new(ROOM).part(), VecDeque::new());
    for chunk in body.chunks(piece.max(1)) {
        reading.push(Bytes::copy_from_slice(chunk), &mut part, 0, &mut out);
    }
    out.extend(reading.rest());
    let read = reading.finish(asked, (!asked.stream).then_some(body));
    Heard {
        passed: out.iter().flat_map(|bytes| bytes.iter().copied()).collect(),
        usage: read.usage,
        counted_here: read.counted_here,
        ended: read.ended,
    }
}
