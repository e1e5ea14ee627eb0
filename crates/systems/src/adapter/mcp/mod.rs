//! Servers of the Model Context Protocol: a process that is asked over its pipes, or a server that speaks HTTP. Every operation of the
//! adapter calls one of its tools.
//!
//! In comes what an adapter says of the server and of its calls; out comes a connection ([`Connected`]) by which tools are called: it
//! is made when somebody first needs it, its tools are looked at ([`tools`]), and it is made anew when it has ended. What a tool
//! returns is read in [`reply`], the protocol itself is spoken in `wire`, and [`keeping`] is about processes that keep their memories
//! to themselves. Start reading at [`ToolServer::connected`].

mod keeping;
#[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "only the protocol brings replies"))]
mod reply;
pub(super) mod tools;
#[cfg_attr(not(feature = "mcp"), path = "absent.rs")]
mod wire;

use std::{
    process::ExitStatus,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bench_proto::{failure::Failure, trace::StepTrace};
use reqwest::{Url, header::HeaderMap};
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use self::{
    tools::{Tool, ToolCall},
    wire::Wire,
};
use super::{
    UNREACHABLE,
    http::{self, ASK_FOR_LESS, response_memory},
    managed::{child::signal_group, how_it_ended, last_words},
    process::{
        keeping::Banks,
        surroundings::{Surroundings, in_folder},
    },
    replaced::Replaced,
    said::excerpt,
    secrets::Secrets,
    template::Vars,
    time,
};
use crate::Prepared;

/// Code of the failure of a server that lacks what its adapter calls.
pub const NO_SUCH_TOOL: &str = "system_tools";
/// Code of a connection that has ended.
const CONNECTION: &str = "system_connection";
/// Longest time until a server has been greeted and has told its tools: some are downloaded first.
const GREETED_WITHIN: Duration = Duration::from_secs(60);
/// Calls in flight to a server over HTTP, unless its file says otherwise.
const AT_ONCE: usize = 64;
/// Longest time that a process has to end after its input has ended, and for which the end of one is waited for that is gone.
const LAST: Duration = Duration::from_secs(3);
/// Wait between two looks at a process that ends.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where a server is.
pub(super) enum ServerAt {
    /// A process of the runner's own.
    Process { command: Vec<String>, around: Box<Surroundings> },
    /// A server that somebody else has started.
    Http { client: reqwest::Client, url: Url, headers: HeaderMap },
}

/// A server whose tools are called.
pub(super) struct ToolServer {
    pub(super) name: String,
    pub(super) at: ServerAt,
    /// What is called of it.
    pub(super) calls: Vec<ToolCall>,
    /// Longest reply, in bytes.
    pub(super) longest: usize,
    /// Calls in flight, where the file says how many.
    pub(super) at_once: Option<u32>,
    /// What is taken out of words of it.
    pub(super) secrets: Secrets,
    /// Its process keeps its memories to itself: they end with it.
    pub(super) forgets: bool,
    pub(super) current: tokio::sync::Mutex<Option<Arc<Connected>>>,
    /// How its processes ended in whose place others were started.
    pub(super) replaced: Replaced,
}

impl ToolServer {
    /// The connection, made first where there is none that holds; and whether it had to be.
    ///
    /// # Errors
    /// What keeps the server from being greeted; tools or arguments that it lacks.
    pub(super) async fn connected(&self) -> Result<(Arc<Connected>, Prepared), Failure> {
        let (mut current, mut prepared) = match self.current.try_lock() {
            Ok(current) => (current, Prepared::Ready),
            Err(_) => (self.current.lock().await, Prepared::Waited),
        };
        if let Some(connected) = current.as_ref().filter(|connected| !connected.is_over()) {
            return Ok((Arc::clone(connected), prepared));
        }
        // what is left of the one before ends before its successor begins, and writes into the same log
        if let Some(how) = current.take().and_then(|before| before.process.as_ref().map(said)) {
            self.replaced.note_end(&how);
        }
        let connecting = Box::pin(self.connect());
        let made = tokio::time::timeout(GREETED_WITHIN, connecting).await.unwrap_or_else(|_| {
            let within = time::show(GREETED_WITHIN);
            Err(Failure::transient("system_timeout", format!("{}: not greeted within {within}", self.name)))
        })?;
        let connected = Arc::new(made);
        *current = Some(Arc::clone(&connected));
        prepared = Prepared::Built;
        self.replaced.note_next();
        Ok((connected, prepared))
    }

    async fn connect(&self) -> Result<Connected, Failure> {
        let too_long = Arc::new(AtomicBool::new(false));
        let (wire, process) = match &self.at {
            ServerAt::Process { command, around } => {
                let (mut process, pipes) = self.start(command, around)?;
                let wire = Wire::over_pipes(pipes, self.longest, Arc::clone(&too_long)).await;
                match wire {
                    Ok(wire) => (wire, Some(process)),
                    Err(failure) if failure.code == CONNECTION => {
                        let how = process.how_it_ended().await;
                        let message = format!("{}: the process ended before its first reply{how}", self.name);
                        return Err(Failure::transient(UNREACHABLE, message));
                    }
                    Err(failure) => return Err(self.named(failure)),
                }
            }
            ServerAt::Http { client, url, headers } => {
                let at_once = self.at_once.map_or(AT_ONCE, |most| most as usize);
                let wire = Wire::over_http(client.clone(), (url, headers), self.longest, at_once).await;
                (wire.map_err(|failure| self.named(failure))?, None)
            }
        };
        let tools = wire.tools().await.map_err(|failure| self.named(failure))?;
        tools::check(self.calls.iter(), &tools)
            .map_err(|lacks| Failure::terminal(NO_SUCH_TOOL, format!("{}: {lacks}", self.name)))?;
        let about = about(wire.server(), &tools);
        let process = process.map(std::sync::Mutex::new);
        Ok(Connected {
            name: self.name.clone(),
            version: wire.server(),
            about,
            wire,
            process,
            banks: Banks::default(),
            longest: self.longest,
            too_long,
            is_over: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
        })
    }

    fn start(
        &self,
        command: &[String],
        around: &Surroundings,
    ) -> Result<(Process, (ChildStdout, ChildStdin)), Failure> {
        let cannot = |error: &dyn std::fmt::Display| {
            let program = command.first().map_or("", String::as_str);
            Failure::terminal("system_start", format!("{}: '{program}' cannot be started: {error}", self.name))
        };
        let dir = around.folder_for(self.forgets).map_err(|error| cannot(&error))?;
        let mut words = command.iter().map(|word| in_folder(word, &dir));
        let mut started = Command::new(words.next().ok_or_else(|| cannot(&"no command"))?);
        started.args(words);
        let mut child = around.spawn(started, Some(&dir)).map_err(|error| cannot(&error))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot(&"a pipe of the process is missing"));
        };
        let process = Process { group: child.id(), child, log: around.log.clone(), secrets: self.secrets.clone() };
        Ok((process, (stdout, stdin)))
    }

    fn named(&self, failure: Failure) -> Failure {
        Failure { message: format!("{}: {}", self.name, failure.message), ..failure }
    }

    /// Its address, where it has one.
    pub(super) fn url(&self) -> Option<&Url> {
        match &self.at {
            ServerAt::Process { .. } => None,
            ServerAt::Http { url, .. } => Some(url),
        }
    }

    /// Scheme, host and port; of a process, which is this machine's own, nothing.
    pub(super) fn origin(&self) -> String {
        self.url().map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }

    /// Where it is, for people.
    pub(super) fn shown(&self) -> String {
        match &self.at {
            ServerAt::Process { .. } => "a process of the runner".to_owned(),
            ServerAt::Http { url, .. } => url.to_string(),
        }
    }

    /// Ends the connection, and the process at its other end.
    pub(super) async fn close(&self) {
        let Some(connected) = self.current.lock().await.take() else { return };
        connected.wire.close();
        if let Some(process) = &connected.process {
            wait_for(process).await;
        }
    }
}

/// A server in one line, for who looks at it.
fn about(server: Option<String>, tools: &[Tool]) -> String {
    let server = server.map_or_else(String::new, |server| format!("{server}, "));
    format!("{server}{} tools", tools.len())
}

/// A server that has been greeted, and has the tools that are called.
pub(super) struct Connected {
    name: String,
    /// Name and version of the server.
    pub(super) version: Option<String>,
    pub(super) about: String,
    wire: Wire,
    process: Option<std::sync::Mutex<Process>>,
    /// What this process was given, where memories end with it.
    pub(super) banks: Banks<(String, String)>,
    /// Most bytes of a reply.
    longest: usize,
    /// A reply was so long that nothing more is heard of it.
    too_long: Arc<AtomicBool>,
    is_over: AtomicBool,
    under_way: AtomicUsize,
}

/// The value of a tool's result as it crosses the wire; `what` names the call in messages.
///
/// # Errors
/// What the tool says, or why it is no result.
#[cfg(feature = "mcp")]
pub(super) fn read(what: &str, tool: &ToolCall, result: &[u8], longest: usize) -> Result<Value, Failure> {
    let reply = wire::read_result(result, response_memory(longest))?;
    if reply.is_error {
        let message = format!("{what}: the server says: {}", excerpt(&reply.said()));
        return Err(Failure::permanent("system_refused", message));
    }
    reply.value(tool.texts, response_memory(longest)).map_err(|error| http::too_much(error, what))
}

/// Whether a list of tools, as it crosses the wire, has what is called.
///
/// # Errors
/// What is missing, or why it is no list.
#[cfg(feature = "mcp")]
pub(super) fn check(calls: &[ToolCall], list: &[u8]) -> Result<(), Failure> {
    tools::check(calls.iter(), &wire::read_list(list)?).map_err(|lacks| Failure::terminal(NO_SUCH_TOOL, lacks))
}

impl Connected {
    /// Whether it has ended, or is not listened to any more.
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
            || self.wire.is_closed()
            || self.process.as_ref().is_some_and(|process| ended(process).is_some())
    }

    /// Calls a tool, and reads what it returns; `what` names the call in messages.
    ///
    /// # Errors
    /// What the tool says, or that there is nobody who says anything.
    pub(super) async fn call(
        &self,
        what: &str,
        tool: &ToolCall,
        vars: &Vars,
        trace: Option<&StepTrace>,
        timeout: Duration,
    ) -> Result<Value, Failure> {
        let counted = UnderWay::new(&self.under_way);
        let called = self.wire.call(&tool.name, tool.arguments(vars), trace);
        let called = tokio::time::timeout(timeout, called).await.unwrap_or_else(|_| {
            Err(Failure::transient("system_timeout", format!("no result within {}", time::show(timeout))))
        });
        match called {
            Ok(reply) if reply.is_error => {
                // some libraries say no more than that the tool has failed, and why in their log
                let log = self.process.as_ref().map(last_words_of).filter(|words| !words.is_empty());
                let log = log.map_or_else(String::new, |words| format!("; its log ends: {words}"));
                let message = format!("{what}: {} says: {}{log}", self.name, excerpt(&reply.said()));
                Err(Failure::permanent("system_refused", message))
            }
            Ok(reply) => {
                let value = reply.value(tool.texts, response_memory(self.longest));
                value.map_err(|error| http::too_much(error, what))
            }
            Err(failure) => {
                let failure = self.explained(failure, counted.alone).await;
                Err(Failure { message: format!("{what}: {}", failure.message), ..failure })
            }
        }
    }

    /// What is known of a failure on the way. Where several calls were under way, nobody knows whose reply was too long.
    async fn explained(&self, failure: Failure, alone: bool) -> Failure {
        match failure.code.as_str() {
            // a server that has started anew does not know its sessions, and not all of them say so in the same way
            "system_http_400" | "system_http_404" => self.is_over.store(true, Ordering::SeqCst),
            CONNECTION | UNREACHABLE => self.is_over.store(true, Ordering::SeqCst),
            _ => return failure,
        }
        if self.too_long.load(Ordering::SeqCst) {
            let message = format!(
                "the response is longer than limits.response_bytes allows, or takes far more in memory: {ASK_FOR_LESS}"
            );
            return match alone {
                true => Failure::permanent(http::TOO_LONG, message),
                false => Failure::transient(CONNECTION, message),
            };
        }
        if failure.code != CONNECTION {
            return match failure.code.as_str() {
                UNREACHABLE => failure,
                _ => Failure::transient(CONNECTION, failure.message),
            };
        }
        match &self.process {
            Some(process) => {
                wait_for(process).await;
                let said = said(process);
                Failure::transient(CONNECTION, format!("the process {} ended{said}", self.name))
            }
            None => failure,
        }
    }
}

/// A call that is under way.
struct UnderWay<'c> {
    count: &'c AtomicUsize,
    /// No other one was when it began.
    alone: bool,
}

impl<'c> UnderWay<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        Self { alone: count.fetch_add(1, Ordering::SeqCst) == 0, count }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The process of a server. Whatever it has started ends with it.
struct Process {
    child: Child,
    /// The group of processes that it leads; none where it could not be told.
    group: Option<u32>,
    log: std::path::PathBuf,
    secrets: Secrets,
}

impl Process {
    /// How it ended, once it has: its status and last words, for messages.
    async fn how_it_ended(&mut self) -> String {
        let status = tokio::time::timeout(LAST, self.child.wait()).await;
        self.words(status.ok().and_then(Result::ok))
    }

    fn words(&self, status: Option<ExitStatus>) -> String {
        how_it_ended(status, &self.log, &self.secrets)
    }

    fn last_words(&self) -> String {
        last_words(&self.log, &self.secrets)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            signal_group(group, Signal::KILL);
        }
    }
}

/// How a process has ended, when it has.
fn ended(process: &std::sync::Mutex<Process>) -> Option<ExitStatus> {
    process.lock().unwrap_or_else(PoisonError::into_inner).child.try_wait().ok().flatten()
}

/// Waits until a process has ended, not for long.
async fn wait_for(process: &std::sync::Mutex<Process>) {
    let begun = Instant::now();
    while ended(process).is_none() && begun.elapsed() < LAST {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn last_words_of(process: &std::sync::Mutex<Process>) -> String {
    process.lock().unwrap_or_else(PoisonError::into_inner).last_words()
}

/// How a process has ended and what it said last, for messages.
fn said(process: &std::sync::Mutex<Process>) -> String {
    let status = ended(process);
    process.lock().unwrap_or_else(PoisonError::into_inner).words(status)
}
