//! A running process: lines go in, lines come out, and each reply finds the one who waits for it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bench_proto::{failure::Failure, text::not_finite};
use rustix::process::Signal;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin},
    sync::oneshot,
    task::JoinHandle,
};
use tracing::warn;

use super::{
    keeping::Banks,
    protocol::{ProcessReply, ProcessRequest},
};
use crate::adapter::{
    http::{self, SHAPE},
    managed::child::signal_group,
    said::excerpt,
    secrets::Secrets,
};

/// A reply, or why it cannot be read.
pub(super) type Reply = Result<ProcessReply, Failure>;
/// Who waits for a reply, by the number of the request; `None` when no more replies are read.
pub(super) type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Reply>>>>>;

pub(super) struct Running {
    /// Until the process is asked to end: that its input ends is how it is asked.
    pub(super) stdin: Option<ChildStdin>,
    pub(super) waiting: Waiting,
    pub(super) child: Child,
    /// The group of processes that it leads; none where it could not be told.
    pub(super) group: Option<u32>,
    pub(super) reader: JoinHandle<()>,
    pub(super) banks: Arc<Banks>,
    /// Replies that have come from it.
    pub(super) heard: Arc<AtomicU64>,
    /// Whether it has something to put away when its input has ended.
    pub(super) closes: bool,
}

impl Running {
    /// Whether it has ended, or is not listened to any more.
    pub(super) fn is_over(&mut self) -> bool {
        let is_heard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        !is_heard || self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Ends it, with what it has started.
    pub(super) fn kill(&mut self) {
        // whoever has ended meanwhile needs no signal
        let _ = self.child.start_kill();
        if let Some(group) = self.group {
            signal_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reader.abort();
        // what it has started goes with it, also where it has ended by itself: then it was noticed just now
        if let Some(group) = self.group {
            signal_group(group, Signal::KILL);
        }
    }
}

pub(super) async fn send(running: &mut Running, request: &ProcessRequest) -> std::io::Result<()> {
    let Some(stdin) = &mut running.stdin else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await
}

/// Notes who waits for a reply; false when the process writes no more.
pub(super) fn put(waiting: &Waiting, id: u64, sender: oneshot::Sender<Reply>) -> bool {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    match waiting.as_mut() {
        Some(waiting) => {
            // those who gave up waiting are forgotten
            waiting.retain(|_, sender| !sender.is_closed());
            waiting.insert(id, sender);
            true
        }
        None => false,
    }
}

pub(super) fn take_all(waiting: &Waiting) -> Option<HashMap<u64, oneshot::Sender<Reply>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
}

pub(super) async fn read_replies<R: tokio::io::AsyncBufRead + Unpin>(
    mut reader: R,
    longest: u64,
    name: &str,
    secrets: &Secrets,
    (waiting, heard): (&Waiting, &AtomicU64),
) {
    let hand_over = |id: u64, reply: Reply| {
        heard.fetch_add(1, Ordering::Relaxed);
        answer(waiting, id, reply);
    };
    let max_bytes = usize::try_from(longest).unwrap_or(usize::MAX);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(longest + 1).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(read) if read as u64 > longest => {
                let failure = http::too_long(max_bytes);
                warn!("{name}: {}", failure.message);
                if let Some(id) = id_at_the_beginning(&line) {
                    hand_over(id, Err(failure));
                }
                return;
            }
            Ok(_) => {}
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Err(failure) = http::check_memory(&line, max_bytes, name) {
            warn!("{}", failure.message);
            if let Some(id) = id_of(&line) {
                hand_over(id, Err(failure));
            }
            continue;
        }
        let reply: ProcessReply = match serde_json::from_slice(&line) {
            Ok(reply) => reply,
            Err(error) => {
                let text = String::from_utf8_lossy(&line);
                let why = match not_finite(&text) {
                    Some(number) => format!("{number} is not a finite number: send null in its place"),
                    None => error.to_string(),
                };
                let said = format!("({why}): {}", excerpt(&text));
                warn!("{name}: a line on stdout is no reply {}", secrets.hide(&said));
                // whoever waits for it need not wait longer; a stray print of a library has no number
                if let Some(id) = id_of(&line) {
                    hand_over(id, Err(Failure::permanent(SHAPE, format!("the reply cannot be read {said}"))));
                }
                continue;
            }
        };
        hand_over(reply.id, Ok(reply));
    }
}

/// What tells which request a line belongs to.
#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

/// The number of a reply that is not read otherwise: nothing else of it is kept.
fn id_of(line: &[u8]) -> Option<u64> {
    let numbered = serde_json::from_slice(line).map(|Numbered { id }| id).ok();
    numbered.or_else(|| id_at_the_beginning(line))
}

/// Hands a reply to the one who waits for it.
fn answer(waiting: &Waiting, id: u64, reply: Reply) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&id)) {
        let _ = sender.send(reply);
    }
}

/// The number of a reply that is not read to its end, where it begins with it.
fn id_at_the_beginning(line: &[u8]) -> Option<u64> {
    let line = line.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"id\"")?;
    let number = line.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&number[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_not_read_to_its_end_says_first_whose_it_is() {
        for (line, id) in [
            (&b"{\"id\": 17, \"ok\": true"[..], Some(17)),
            (b" { \"id\":17,", Some(17)),
            (b"{\"ok\": true, \"id\": 17", None),
            (b"{\"id\": -1", None),
            (b"{\"id\": 99999999999999999999999", None),
            (b"xxxx", None),
            (b"", None),
        ] {
            assert_eq!(id_at_the_beginning(line), id, "{}", String::from_utf8_lossy(line));
        }
    }

    #[tokio::test]
    async fn whoever_waits_for_a_reply_that_cannot_be_read_is_told_so_and_nobody_else() {
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let mut receivers: Vec<_> = (1..=3)
            .map(|id| {
                let (sender, receiver) = oneshot::channel();
                assert!(put(&waiting, id, sender));
                receiver
            })
            .collect();
        let long = format!("{{\"id\": 3, \"text\": \"{}\"}}\n", "x".repeat(500));
        let lines = format!("{{\"id\": 2, \"ok\": true, \"count\": -1}}\nwhat a library prints\n{long}");
        let heard = AtomicU64::new(0);
        read_replies(lines.as_bytes(), 100, "mine", &Secrets::default(), (&waiting, &heard)).await;
        assert_eq!(heard.into_inner(), 2, "what a library prints is no sign of life");
        let failure = |reply: Option<Reply>| reply.expect("was told").expect_err("cannot be read");
        let too_long = failure(receivers.pop().and_then(|mut reply| reply.try_recv().ok()));
        assert_eq!(too_long.code, http::TOO_LONG, "{too_long}");
        let unread = failure(receivers.pop().and_then(|mut reply| reply.try_recv().ok()));
        assert!(unread.code == SHAPE && unread.message.contains("expected u64"), "{unread}");
        assert!(receivers.pop().is_some_and(|mut reply| reply.try_recv().is_err()), "it still waits");
    }

    #[tokio::test]
    async fn a_reply_of_many_values_is_refused_before_it_is_read() {
        for (begin, end) in [("{\"id\": 7, \"hits\": ", "}\n"), ("{\"hits\": ", ", \"id\": 7}\n")] {
            let (sender, mut receiver) = oneshot::channel();
            let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::from([(7, sender)]))));
            let line = format!("{begin}[{}0]{end}", "{\"\":0},".repeat(400_000));
            read_replies(line.as_bytes(), 8 << 20, "mine", &Secrets::default(), (&waiting, &AtomicU64::new(0))).await;
            let failure = receiver.try_recv().expect("nobody waits longer").expect_err("is not read");
            assert_eq!(failure.code, http::TOO_LONG, "{failure}");
            assert!(failure.message.contains("at most 256 are given to it: ask for less"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_score_that_is_no_number_is_said_so_at_once_however_it_is_written() {
        for number in ["NaN", "Infinity", "-Infinity", "1e999"] {
            let (sender, mut receiver) = oneshot::channel();
            let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::from([(7, sender)]))));
            let line = format!("{{\"id\": 7, \"ok\": true, \"hits\": [{{\"text\": \"tea\", \"score\": {number}}}]}}\n");
            read_replies(line.as_bytes(), 1000, "mine", &Secrets::default(), (&waiting, &AtomicU64::new(0))).await;
            let failure = receiver.try_recv().expect("nobody waits longer").expect_err("cannot be read");
            let said = format!("the reply cannot be read ({number} is not a finite number: send null in its place)");
            assert!(failure.code == SHAPE && failure.message.starts_with(&said), "{failure}");
        }
    }
}
