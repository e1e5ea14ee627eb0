//! One request and its reply: the process is started first where it does not run, and who waits for one that ends is told how.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bench_proto::failure::Failure;
use serde_json::Value;
use tokio::{
    io::BufReader,
    process::Command,
    sync::{MutexGuard, oneshot},
};

use super::{
    ProcessSystem,
    keeping::{Banks, HeldBank},
    protocol::{PROTOCOL, ProcessOp, ProcessReply, ProcessRequest},
    transport::{Running, Waiting, put, read_replies, send, take_all},
};
use crate::{
    Prepared,
    adapter::{UNREACHABLE, code, http::response_bytes, managed, said::excerpt, time},
};

/// Longest wait for the status of a process whose replies have ended, or that was just ended.
const NOTICED: Duration = Duration::from_millis(500);

/// A request that was sent: to which process, and how many replies had come from it before.
struct Sent {
    process: Arc<Banks>,
    heard: u64,
}

impl ProcessSystem {
    fn start(&self) -> Result<Running, Failure> {
        let cannot = |error: std::io::Error| {
            let program = self.command.first().map_or("", String::as_str);
            Failure::terminal("system_start", format!("{}: '{program}' cannot be started: {error}", self.spec.name))
        };
        let mut child = self.around.spawn(self.program()?, None).map_err(cannot)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::terminal("system_start", "a pipe of the process is missing"));
        };
        let waiting: Waiting = Arc::new(std::sync::Mutex::new(Some(HashMap::new())));
        let longest = response_bytes(&self.spec) as u64;
        let heard = Arc::new(AtomicU64::new(0));
        let (name, secrets) = (self.spec.name.clone(), self.secrets.clone());
        let (replies, counted) = (Arc::clone(&waiting), Arc::clone(&heard));
        let reader = tokio::spawn(async move {
            read_replies(BufReader::new(stdout), longest, &name, &secrets, (&replies, counted.as_ref())).await;
            // whoever waits is told that nothing comes any more
            drop(take_all(&replies));
        });
        let group = child.id();
        Ok(Running { stdin: Some(stdin), waiting, child, group, reader, banks: Arc::default(), heard, closes: false })
    }

    /// The program with its arguments.
    fn program(&self) -> Result<Command, Failure> {
        let cannot = |error: String| Failure::terminal("system_start", format!("{}: {error}", self.spec.name));
        let (program, arguments) = match &self.spec.code {
            Some(code) => {
                let launch = code::launch(code, &self.around.home, self.own_code.as_deref()).map_err(cannot)?;
                (launch.program, launch.arguments)
            }
            None => {
                let (program, words) = self.command.split_first().ok_or_else(|| cannot("no command".to_owned()))?;
                (program.into(), words.iter().map(Into::into).collect())
            }
        };
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    pub(super) async fn ask(&self, op: ProcessOp) -> Result<ProcessReply, Failure> {
        self.ask_in(None, op).await.map(|(reply, _)| reply)
    }

    /// Asks about a bank.
    pub(super) async fn ask_at(&self, held: &HeldBank, op: ProcessOp) -> Result<ProcessReply, Failure> {
        self.ask_in(held.process.as_ref(), op).await.map(|(reply, _)| reply)
    }

    /// Asks one process and none that was started in its place; any where none is given. Says which one replied.
    pub(super) async fn ask_in(
        &self,
        wanted: Option<&Arc<Banks>>,
        op: ProcessOp,
    ) -> Result<(ProcessReply, Arc<Banks>), Failure> {
        let what = match serde_json::to_value(&op) {
            Ok(value) => value.get("op").and_then(Value::as_str).unwrap_or_default().to_owned(),
            Err(_) => String::new(),
        };
        let (reply, process) = self.reply_in(wanted, op, &what).await?;
        Ok((self.done(&what, reply)?, process))
    }

    /// The same, with the reply as it is: a refusal too.
    pub(super) async fn reply_in(
        &self,
        wanted: Option<&Arc<Banks>>,
        op: ProcessOp,
        what: &str,
    ) -> Result<(ProcessReply, Arc<Banks>), Failure> {
        // whoever waits for a turn is not asked yet
        let _turn = match &self.turns {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let sent = OnceLock::new();
        let replied = tokio::time::timeout(self.timeout, self.exchange(wanted, op, what, &sent)).await;
        if let Ok(replied) = replied {
            return replied;
        }
        let mut message = format!("{what}: no reply within {}", time::show(self.timeout));
        if let Some(sent) = sent.get().filter(|_| self.turns.is_some())
            && self.give_up(sent).await
        {
            message.push_str(", nor any other: its process was ended, and another one takes its place");
        }
        Err(Failure::transient("system_timeout", message))
    }

    /// A reply as what was asked for.
    pub(super) fn done(&self, what: &str, reply: ProcessReply) -> Result<ProcessReply, Failure> {
        if reply.ok {
            return Ok(reply);
        }
        let error = excerpt(reply.error.as_deref().unwrap_or("no reason given"));
        let message = format!("{what}: {} says: {error}", self.spec.name);
        Err(if reply.retry {
            Failure::transient("system_refused", message)
        } else {
            Failure::permanent("system_refused", message)
        })
    }

    /// Ends a process that has replied to nobody since it was sent a request: a call that does not return keeps the thread that all
    /// others wait for. Whether it was ended.
    async fn give_up(&self, sent: &Sent) -> bool {
        let Ok(mut running) = tokio::time::timeout(NOTICED, self.running.lock()).await else { return false };
        let Some(silent) = running.as_mut().filter(|running| {
            Arc::ptr_eq(&running.banks, &sent.process) && running.heard.load(Ordering::Relaxed) == sent.heard
        }) else {
            return false;
        };
        silent.kill();
        // how it ended is told when another one is started
        if tokio::time::timeout(NOTICED, silent.child.wait()).await.is_err() {
            *running = None;
        }
        true
    }

    /// The process, started first when it does not run; and whether it had to be.
    pub(super) async fn started(&self, what: &str) -> Result<(MutexGuard<'_, Option<Running>>, Prepared), Failure> {
        let (mut running, mut prepared) = match self.running.try_lock() {
            Ok(running) => (running, Prepared::Ready),
            Err(_) => (self.running.lock().await, Prepared::Waited),
        };
        let mut status = None;
        if let Some(over) = running.as_mut()
            && over.is_over()
        {
            status = over.child.try_wait().ok().flatten();
            *running = None;
        }
        if running.is_none() {
            // before the next one says anything in the same log
            let ended = (self.greeted.load(Ordering::Relaxed) > 0)
                .then(|| managed::how_it_ended(status, &self.around.log, &self.secrets));
            let mut started = self.start()?;
            let hello = ProcessRequest { id: 0, op: ProcessOp::Hello { protocol: PROTOCOL } };
            let (ready, greeted) = oneshot::channel();
            put(&started.waiting, 0, ready);
            send(&mut started, &hello).await.map_err(|_| self.gone(what))?;
            match greeted.await {
                Ok(Ok(reply)) if reply.ok => {
                    started.closes = reply.closes;
                    *self.version.lock().unwrap_or_else(PoisonError::into_inner) = reply.version;
                }
                Ok(reply) => {
                    let (error, may_pass) = match reply {
                        Ok(reply) => (reply.error.unwrap_or_default(), reply.retry),
                        Err(failure) => (failure.message, false),
                    };
                    let message = format!("{}: {error}", self.spec.name);
                    return Err(if may_pass {
                        Failure::transient(UNREACHABLE, message)
                    } else {
                        Failure::terminal("system_start", message)
                    });
                }
                Err(_) => {
                    let how = managed::how_it_ended(started.child.wait().await.ok(), &self.around.log, &self.secrets);
                    let message = format!("{}: the process ended before its first reply{how}", self.spec.name);
                    return Err(Failure::transient(UNREACHABLE, message));
                }
            }
            *running = Some(started);
            prepared = Prepared::Built;
            self.greeted.fetch_add(1, Ordering::Relaxed);
            if let Some(how) = ended {
                self.replaced.note_end(&how);
                self.replaced.note_next();
            }
        }
        Ok((running, prepared))
    }

    fn gone(&self, what: &str) -> Failure {
        Failure::transient("system_connection", format!("{what}: the process {} ended", self.spec.name))
    }

    /// The process, by what it was given; started first when it does not run.
    pub(super) async fn process(&self, what: &str) -> Result<Arc<Banks>, Failure> {
        let started = tokio::time::timeout(self.timeout, self.started(what)).await;
        let late = || format!("start: no reply within {}", time::show(self.timeout));
        let (running, _) = started.map_err(|_| Failure::transient("system_timeout", late()))??;
        running.as_ref().map(|running| Arc::clone(&running.banks)).ok_or_else(|| self.gone(what))
    }

    async fn exchange(
        &self,
        wanted: Option<&Arc<Banks>>,
        op: ProcessOp,
        what: &str,
        sent: &OnceLock<Sent>,
    ) -> Result<(ProcessReply, Arc<Banks>), Failure> {
        let gone = || self.gone(what);
        let (sender, receiver) = oneshot::channel();
        let process = {
            let (mut running, _) = self.started(what).await?;
            // taken out while the line is written: of whoever gives up in the middle of it no process is left that has read half a line
            let Some(mut process) = running.take() else { return Err(gone()) };
            if wanted.is_some_and(|wanted| !Arc::ptr_eq(wanted, &process.banks)) {
                *running = Some(process);
                return Err(gone());
            }
            let banks = Arc::clone(&process.banks);
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            if !put(&process.waiting, id, sender) {
                return Err(gone());
            }
            // noted once, as it is asked once
            let _ = sent.set(Sent { process: Arc::clone(&banks), heard: process.heard.load(Ordering::Relaxed) });
            send(&mut process, &ProcessRequest { id, op }).await.map_err(|_| gone())?;
            *running = Some(process);
            banks
        };
        match receiver.await {
            Ok(Ok(reply)) => Ok((reply, process)),
            Ok(Err(failure)) => Err(Failure { message: format!("{what}: {}", failure.message), ..failure }),
            Err(_) => Err(self.ended(what, &process).await),
        }
    }

    /// That a process ended while it was asked; how, and its last words, where nobody has started another one yet.
    async fn ended(&self, what: &str, process: &Arc<Banks>) -> Failure {
        let mut running = self.running.lock().await;
        let Some(of_it) = running.as_mut().filter(|running| Arc::ptr_eq(&running.banks, process)) else {
            return self.gone(what);
        };
        let status = tokio::time::timeout(NOTICED, of_it.child.wait()).await;
        let how = managed::how_it_ended(status.ok().and_then(Result::ok), &self.around.log, &self.secrets);
        let gone = self.gone(what);
        Failure { message: format!("{}{how}", gone.message), ..gone }
    }
}
