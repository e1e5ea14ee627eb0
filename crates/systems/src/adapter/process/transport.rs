//! A running process: lines go in, lines come out, and each reply finds the one who waits for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::process::Signal;
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
use crate::adapter::{call::excerpt, managed::child::signal_group, secrets::Secrets};

pub(super) type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<ProcessReply>>>>>;

pub(super) struct Running {
    pub(super) stdin: ChildStdin,
    pub(super) waiting: Waiting,
    pub(super) child: Child,
    pub(super) reader: JoinHandle<()>,
    pub(super) banks: Arc<Banks>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reader.abort();
        if let Some(pid) = self.child.id() {
            // what it has started goes with it
            signal_group(pid, Signal::KILL);
        }
    }
}

pub(super) async fn send(stdin: &mut ChildStdin, request: &ProcessRequest) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await
}

/// Notes who waits for a reply; false when the process writes no more.
pub(super) fn put(waiting: &Waiting, id: u64, sender: oneshot::Sender<ProcessReply>) -> bool {
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

pub(super) fn take_all(waiting: &Waiting) -> Option<HashMap<u64, oneshot::Sender<ProcessReply>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
}

pub(super) async fn read_replies<R: tokio::io::AsyncBufRead + Unpin>(
    mut reader: R,
    longest: u64,
    name: &str,
    secrets: &Secrets,
    waiting: &Waiting,
) {
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(longest + 1).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(read) if read as u64 > longest => return warn!("{name}: a reply is longer than {longest} bytes"),
            Ok(_) => {}
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let reply: ProcessReply = match serde_json::from_slice(&line) {
            Ok(reply) => reply,
            // a stray print of a library is no reply
            Err(error) => {
                let said = format!("({error}): {}", excerpt(&String::from_utf8_lossy(&line)));
                warn!("{name}: a line on stdout is no reply {}", secrets.hide(&said));
                continue;
            }
        };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&reply.id)) {
            let _ = sender.send(reply);
        }
    }
}
