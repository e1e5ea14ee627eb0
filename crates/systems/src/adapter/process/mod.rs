//! Systems that are no servers: one long-lived process that reads requests and writes replies, one JSON object per line.
//! Requests carry a number, replies give it back; several may be under way at the same time. What it writes to stderr is its
//! log, which is kept with the run.
//!
//! [`protocol`] is what goes over the pipes, [`transport`] how, [`exchange`] one request with its reply; [`operations`] are those of a
//! memory system, [`storing`] what is stored by them, [`abilities`] what an adapter file says that a process can do. [`keeping`] is about
//! processes that keep their memories to themselves, [`several`] about a class in some of them, [`surroundings`] what is around each.

mod abilities;
mod exchange;
pub(super) mod keeping;
mod operations;
mod protocol;
mod several;
mod storing;
pub(super) mod surroundings;
mod transport;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use tokio::sync::{Mutex, Semaphore};

pub(super) use self::abilities::capabilities;
pub use self::protocol::{PROTOCOL, ProcessFilter, ProcessHit, ProcessOp, ProcessReply, ProcessRequest, ProcessSearch};
use self::{several::Several, surroundings::Surroundings, transport::Running};
use super::{AdapterContext, index::Indexes, replaced::Replaced, secrets::Secrets, spec::AdapterSpec, time};
use crate::{Capabilities, MemorySystem};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

struct ProcessSystem {
    spec: AdapterSpec,
    command: Vec<String>,
    around: Surroundings,
    /// Where its user has the class that it is made of.
    own_code: Option<PathBuf>,
    /// What is taken out of words of it that are logged.
    secrets: Secrets,
    capabilities: Capabilities,
    timeout: Duration,
    every: Duration,
    running: Mutex<Option<Running>>,
    /// Whose turn it is, where it is given a few operations at a time only.
    turns: Option<Semaphore>,
    next: AtomicU64,
    indexes: Indexes,
    /// What it said of itself when it was greeted.
    version: std::sync::Mutex<Option<String>>,
    /// Processes that were greeted.
    greeted: AtomicU64,
    /// How those ended in whose place another one was greeted, until somebody asks.
    replaced: Replaced,
    /// Whether it was said already that its numbers cannot be had.
    without_numbers: AtomicBool,
    /// Whether it has counted what a bank holds.
    has_counted: AtomicBool,
}

pub(super) fn build(
    spec: AdapterSpec,
    context: &AdapterContext,
    consolidated: bool,
    secrets: Secrets,
    own_code: Option<PathBuf>,
) -> Result<Arc<dyn MemorySystem>, String> {
    let several = spec.code.as_ref().and_then(|code| code.processes).unwrap_or(1);
    // more processes than there may be are refused when the first of them is made
    let further = (1..several)
        .map(|_| build_one(spec.clone(), context, consolidated, secrets.clone(), own_code.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let first = build_one(spec, context, consolidated, secrets, own_code)?;
    let system: Arc<dyn MemorySystem> = if further.is_empty() { first } else { Arc::new(Several::new(first, further)) };
    Ok(system)
}

fn build_one(
    spec: AdapterSpec,
    context: &AdapterContext,
    consolidated: bool,
    secrets: Secrets,
    own_code: Option<PathBuf>,
) -> Result<Arc<ProcessSystem>, String> {
    let mut capabilities = capabilities(&spec)?;
    capabilities.consolidates = consolidated;
    let around = Surroundings::new(&spec, context)?;
    let duration = |text: &Option<String>, default| text.as_deref().map_or(Ok(default), time::parse);
    Ok(Arc::new(ProcessSystem {
        command: around.words(spec.command.as_deref().unwrap_or_default())?,
        around,
        own_code,
        turns: spec.code.as_ref().and_then(|code| code.at_once).map(|most| Semaphore::new(most as usize)),
        secrets,
        timeout: duration(&spec.timeout, DEFAULT_TIMEOUT).map_err(|e| format!("timeout: {e}"))?,
        every: duration(&spec.ready.every, Duration::from_secs(1)).map_err(|e| format!("ready.every: {e}"))?,
        spec,
        capabilities,
        running: Mutex::default(),
        next: AtomicU64::new(1),
        version: std::sync::Mutex::default(),
        greeted: AtomicU64::new(0),
        replaced: Replaced::default(),
        without_numbers: AtomicBool::default(),
        has_counted: AtomicBool::default(),
        indexes: Indexes::default(),
    }))
}
