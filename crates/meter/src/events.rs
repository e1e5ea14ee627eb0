//! Server-sent events: where one ends in a stream that comes in pieces of any size, and what its data are.

use std::borrow::Cow;

use hyper::body::Bytes;
use memchr::memchr2;

/// A part of a stream; all of them together are the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// An event with the empty line that ends it.
    Event(Bytes),
    /// Part of an event that is longer than may be held, or of none.
    Through(Bytes),
}

/// Finds events. It holds the begin of one, never more than its bound.
#[derive(Debug)]
pub(crate) struct Splitter {
    held: Vec<u8>,
    most: usize,
    /// Nothing of this line has come.
    at_line_start: bool,
    /// The last byte was a carriage return: a line feed belongs to it.
    after_return: bool,
    /// This event is too long to be held.
    overlong: bool,
}

impl Splitter {
    /// One that holds at most so many bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self { held: Vec::new(), most, at_line_start: true, after_return: false, overlong: false }
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.held.capacity()
    }

    /// Does not hold the event that has begun: its parts go through.
    pub(crate) fn let_go(&mut self) {
        self.overlong = true;
    }

    /// Takes some bytes of the stream.
    pub(crate) fn push(&mut self, chunk: &Bytes, mut found: impl FnMut(Piece)) {
        let mut from = 0;
        while from < chunk.len() {
            match self.event_end(chunk.get(from..).unwrap_or_default()) {
                Some(length) => {
                    let part = chunk.slice(from..from + length);
                    from += length;
                    found(if std::mem::take(&mut self.overlong) {
                        Piece::Through(self.with_held(part))
                    } else {
                        Piece::Event(self.with_held(part))
                    });
                }
                None => {
                    let part = chunk.slice(from..);
                    from = chunk.len();
                    self.overlong |= self.held.len() + part.len() > self.most;
                    if self.overlong {
                        found(Piece::Through(self.with_held(part)));
                    } else {
                        self.held.extend_from_slice(&part);
                    }
                }
            }
        }
    }

    /// What is held when the stream has ended.
    pub(crate) fn end(&mut self) -> Option<Bytes> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then(|| rest.into())
    }

    fn with_held(&mut self, part: Bytes) -> Bytes {
        if self.held.is_empty() {
            return part;
        }
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(&part);
        whole.into()
    }

    /// Length of the bytes up to the end of the event, that included; `None` when it does not end in them.
    fn event_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => at += 1,
                b'\n' | b'\r' => {
                    at += 1;
                    if std::mem::replace(&mut self.at_line_start, true) {
                        // the line feed of this line end, where it is here already
                        if *byte == b'\r' && bytes.get(at) == Some(&b'\n') {
                            self.after_return = false;
                            at += 1;
                        }
                        return Some(at);
                    }
                }
                _ => {
                    self.at_line_start = false;
                    at += memchr2(b'\r', b'\n', bytes.get(at..)?)?;
                }
            }
        }
        None
    }
}

/// The data of an event: the text of its `data:` lines. Borrowed where there is one such line, as nearly always.
pub(crate) fn data(event: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut lines = event.split(|byte| matches!(byte, b'\r' | b'\n')).filter_map(|line| {
        let value = line.strip_prefix(b"data")?;
        if value.is_empty() {
            return Some(value);
        }
        let value = value.strip_prefix(b":")?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    });
    let first = lines.next()?;
    let mut more = lines.peekable();
    if more.peek().is_none() {
        return Some(Cow::Borrowed(first));
    }
    let mut all = first.to_vec();
    for line in more {
        all.push(b'\n');
        all.extend_from_slice(line);
    }
    Some(Cow::Owned(all))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a stream that comes in these parts.
    fn pieces(parts: &[&[u8]], most: usize) -> Vec<Piece> {
        let mut splitter = Splitter::new(most);
        let mut pieces = Vec::new();
        for part in parts {
            splitter.push(&Bytes::copy_from_slice(part), |piece| pieces.push(piece));
            assert!(splitter.held.len() <= most, "more is held than may be");
        }
        pieces.extend(splitter.end().map(Piece::Through));
        pieces
    }

    fn joined(pieces: &[Piece]) -> Vec<u8> {
        pieces.iter().flat_map(|(Piece::Event(bytes) | Piece::Through(bytes))| bytes.to_vec()).collect()
    }

    /// Data of the events of a stream.
    fn all_data(pieces: &[Piece]) -> Vec<Vec<u8>> {
        let events = pieces.iter().filter_map(|piece| match piece {
            Piece::Event(event) => data(event),
            Piece::Through(_) => None,
        });
        events.map(Cow::into_owned).collect()
    }

    #[test]
    fn events_end_with_an_empty_line_however_lines_end() {
        for stream in [
            "data: a\n\ndata:b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
            ": hi\ndata: a\n\nevent: x\ndata: b\nid: 4\n\n",
        ] {
            let pieces = pieces(&[stream.as_bytes()], 100);
            assert_eq!(all_data(&pieces), [b"a".to_vec(), b"b".to_vec()], "{stream:?}");
            assert_eq!(joined(&pieces), stream.as_bytes());
        }
        assert_eq!(all_data(&pieces(&[b"data: a\ndata\ndata:  b\n\n"], 100)), [b"a\n\n b".to_vec()]);
        assert_eq!(all_data(&pieces(&[b"database: a\n\n: c\n\ndata: cut"], 100)), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn an_event_that_is_too_long_goes_through_and_the_next_is_found() {
        let long = format!("data: {}\n\ndata: b\n\n", "x".repeat(1000));
        let parts: Vec<&[u8]> = long.as_bytes().chunks(7).collect();
        let pieces = pieces(&parts, 64);
        assert_eq!(joined(&pieces), long.as_bytes());
        assert_eq!(all_data(&pieces), [b"b".to_vec()]);
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            "data: ?[a-z{}\"]{0,12}",
            "event: [a-z]{1,5}",
            ": [a-z]{0,4}",
            Just(String::new()),
            Just("data".to_owned()),
        ];
        let ended = (line, prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]).prop_map(|(line, end)| line + end);
        proptest::collection::vec(ended, 0..20).prop_map(|lines| lines.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn a_stream_has_the_same_events_wherever_it_is_cut(stream in stream(), cuts in proptest::collection::vec(0_usize..200, 0..12)) {
            let whole = pieces(&[&stream], 1000);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let cut = pieces(&parts, 1000);
            prop_assert_eq!(joined(&cut), stream.clone());
            prop_assert_eq!(joined(&whole), stream.clone());
            prop_assert_eq!(all_data(&cut), all_data(&whole));
            let bytewise: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(all_data(&pieces(&bytewise, 1000)), all_data(&whole));
            let bounded = pieces(&parts, 8);
            prop_assert_eq!(joined(&bounded), stream);
        }
    }
}
