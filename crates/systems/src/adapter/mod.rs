//! Memory systems described by a file: no code per system.
//!
//! In: an adapter as JSON, in the settings of its run. Out: a memory system that speaks HTTP, or to a process. Start with `spec`, then
//! `system`.
//!
//! `spec` is what a file says, `file` reads and compiles it, `call` is one request with what is read from its response
//! (`template`, `path`, `sse`, `multipart`, `metric`), `steps` several requests that are one operation, `http` the network, `system` the operations (`retaining`, `readiness`, `recalling`), `items`
//! what is stored, `index` the way back to the dataset's ids (`places` those of the system that stand for them), `literal` finds secrets that stand in a file, `variables` fills in
//! those that are named, `secrets` keeps them out of messages, `said` is what messages show of a system's words, `dispositions` and `settings`
//! are those of a run.
//! `handing_on` is a bank as a file that a server gives and takes.
//! `mcp` calls the tools of a server, `mistakes` is what is wrong with a file whose fields can all be read. `given` stands for variables in a metered run. `code` makes a process of a class of the user's. `managed` starts systems, `process` speaks to those that are no servers (`process_item` is what they are given to store), `replaced` keeps how processes ended. The shipped files are in `shipped`.

mod call;
pub mod code;
pub mod dispositions;
pub mod file;
pub mod given;
mod handing_on;
mod handle;
mod http;
mod index;
mod items;
pub mod literal;
mod managed;
mod mcp;
mod metric;
mod mistakes;
mod multipart;
mod path;
mod places;
mod process;
mod process_item;
mod readiness;
mod recalling;
mod replaced;
pub mod replay;
mod retaining;
mod said;
mod secrets;
pub mod settings;
pub mod shipped;
pub mod spec;
mod sse;
mod steps;
mod system;
mod template;
mod time;
pub(crate) mod variables;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use serde_json::Value;

pub use handle::is_handle;
pub use http::{NO_REPLY, SystemHttp, UNREACHABLE};
pub use managed::{
    BROKEN, InstanceRecord, Instances, KeptData, check_start, copy_folder, end_orphans, hold_data, host,
    imported_banks, remove_data,
};
pub use mcp::NO_SUCH_TOOL;
pub use process::{PROTOCOL, ProcessFilter, ProcessHit, ProcessOp, ProcessReply, ProcessRequest, ProcessSearch};
pub use process_item::ProcessItem;
pub use secrets::KeySource;
pub use spec::{AdapterSpec, InstancePer};

use self::secrets::{Discreet, Secrets};
use crate::{Capabilities, MemorySystem, SystemSettings};

/// What adapters share within a process.
#[derive(Clone, Default)]
pub struct AdapterContext {
    /// HTTP clients.
    pub http: SystemHttp,
    /// Systems that this process has started.
    pub instances: Instances,
    /// Where started systems have their folders; a temporary folder when nobody says.
    pub home: Option<PathBuf>,
    /// The run that the system is built for; names the folder of a started system.
    pub run: Option<String>,
    /// Systems that are processes work in a folder of their own, not in that of whoever started this process.
    pub apart: bool,
    /// The archive of filled banks whose files its instances begin with.
    pub filled: Option<PathBuf>,
    /// What stands for variables of the environment in a metered run.
    pub given: given::Given,
}

/// Setting that holds the whole adapter, as JSON: workers need no file.
pub const ADAPTER: &str = "adapter";
/// Setting that says where the system listens, instead of the file.
pub const URL: &str = "system.url";
/// Setting that holds `raw` or `consolidated`.
pub const MODE: &str = "system.mode";

/// Builds the system that an adapter describes. `own_code`: where its user has the class that it is made of.
///
/// # Errors
/// What is wrong with the adapter, its place or its secret.
pub(crate) fn build(
    run: &SystemSettings,
    context: &AdapterContext,
    own_code: Option<PathBuf>,
) -> Result<Arc<dyn MemorySystem>, String> {
    let spec = run.get(ADAPTER).ok_or("the adapter is missing")?;
    let spec = filled(serde_json::from_value(spec.clone()).map_err(|e| e.to_string())?, run)?;
    let url = run.get(URL).and_then(Value::as_str);
    let consolidated = run.get(MODE).and_then(Value::as_str) == Some("consolidated");
    let secrets = Secrets::of_system(&spec, url, &context.given);
    let system = if spec.command.is_some() {
        process::build(spec, context, consolidated, secrets.clone(), own_code)
    } else {
        system::build(&spec, url, context, consolidated, secrets.clone())
    };
    Ok(Discreet::around(system?, secrets))
}

/// An adapter as it speaks with the settings of its run: what is started and asked is what stands here, not what the file has.
///
/// # Errors
/// A setting that the adapter does not have, or one with a value that it may not have.
pub(crate) fn filled(spec: AdapterSpec, run: &SystemSettings) -> Result<AdapterSpec, String> {
    settings::told(dispositions::told(spec, run)?, run)
}

/// The adapter file of these settings; none where there is none, or one that this build cannot read.
#[must_use]
pub fn spec_of(settings: &SystemSettings) -> Option<AdapterSpec> {
    serde_json::from_value(settings.get(ADAPTER)?.clone()).ok()
}

/// Whether the system of these settings is a server that the runner starts for each run.
#[must_use]
pub fn is_started(settings: &SystemSettings) -> bool {
    let starts = |spec: &Value| spec.get("start").is_some_and(|start| !start.is_null());
    settings.get(ADAPTER).is_some_and(starts) && !settings.contains_key(URL)
}

/// The settings that make banks what they are: without the adapter file, whose fingerprint is in the version, and the address.
pub fn settings_of_banks(settings: &SystemSettings) -> impl Iterator<Item = (&String, &Value)> {
    settings.iter().filter(|(name, _)| ![ADAPTER, URL].contains(&name.as_str()))
}

/// What nobody else may read, of the adapter of these settings and of this process: what is handed on is searched for it. What stands
/// in the adapter's file is stored anyway.
#[must_use]
pub fn secrets_of(settings: &SystemSettings) -> Vec<String> {
    let url = settings.get(URL).and_then(Value::as_str);
    let of_file = spec_of(settings);
    // a setting may name what the file does not
    let of_run = of_file.clone().and_then(|spec| filled(spec, settings).ok());
    let of_specs = of_file.into_iter().chain(of_run).map(|spec| Secrets::from_spec(&spec, url));
    let all = of_specs.chain([Secrets::from_environment()]);
    let file = settings.get(ADAPTER).map(Value::to_string).unwrap_or_default();
    let secrets = all.flat_map(|secrets| secrets.values().map(str::to_owned).collect::<Vec<_>>());
    secrets.filter(|secret| !file.contains(secret)).collect()
}

/// The keys that the adapter of these settings names and that this process cannot read: nothing can be searched for them. `given` stands
/// for variables in a metered run.
#[must_use]
pub fn keys_not_read(settings: &SystemSettings, given: &given::Given) -> BTreeSet<KeySource> {
    let url = settings.get(URL).and_then(Value::as_str);
    let of_file = spec_of(settings);
    let of_run = of_file.clone().and_then(|spec| filled(spec, settings).ok());
    of_file.into_iter().chain(of_run).flat_map(|spec| secrets::not_read(&spec, url, given)).collect()
}

/// Where a run's memory server listens, in the words of its spec; `None` for systems that need no server or start their own.
#[must_use]
pub fn server_of(settings: &SystemSettings) -> Option<&str> {
    let spec = settings.get(ADAPTER)?.as_object()?;
    let given = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let of_tools = |name: &str| spec.get("mcp")?.get(name).filter(|value| !value.is_null());
    if given("command") || of_tools("command").is_some() {
        return None;
    }
    let own = || spec.get("url").or_else(|| of_tools("url")).filter(|_| !given("start")).and_then(Value::as_str);
    settings.get(URL).and_then(Value::as_str).or_else(own)
}

/// The server to which a run's adapter sends a key, as this process would reach it; `None` where no key goes, where it could not be
/// read, and for systems that need no server or start their own.
#[must_use]
pub fn keyed_server(settings: &SystemSettings) -> Option<String> {
    let url = server_of(settings)?;
    let spec = spec_of(settings)?;
    let secret = || call::Secret::read(spec.auth.as_ref()?).ok().flatten();
    (file::sends_variables(&spec, url) || secret().is_some()).then(|| variables::fill_env(url).ok()).flatten()
}

/// Whether an adapter has anything to search with.
#[must_use]
pub fn searches(settings: &SystemSettings) -> bool {
    settings.get(ADAPTER).is_some_and(|spec| spec.get("recall").is_some_and(|recall| !recall.is_null()))
}

/// What a plan needs to know of the adapter of these settings.
///
/// # Errors
/// As [`check`].
pub(crate) fn capabilities(adapter: &Value, run: &SystemSettings) -> Result<Capabilities, String> {
    let spec: AdapterSpec = serde_json::from_value(adapter.clone()).map_err(|e| e.to_string())?;
    check(&settings::told(dispositions::told(spec, run)?, run)?)
}

/// Whether the server of these settings counts what is in a bank without being told how much it should be.
#[must_use]
pub fn counts(settings: &SystemSettings) -> bool {
    let spec = spec_of(settings).and_then(|spec| filled(spec, settings).ok());
    let verify = spec.and_then(|spec| file::compile(&spec).ok()?.verify);
    verify.is_some_and(|call| !call.uses("expected"))
}

/// The variables that an adapter's requests carry, by operation: what of an item, a question and its filter a system is told.
pub type Sends = BTreeMap<&'static str, BTreeSet<String>>;

/// What an adapter's system is told: nothing for a system with `command`, which is told everything.
///
/// # Errors
/// As [`check`].
pub fn sends(spec: &AdapterSpec) -> Result<Sends, String> {
    if spec.command.is_some() {
        return Ok(Sends::new());
    }
    let spec = settings::told(spec.clone(), &SystemSettings::new())?;
    Ok(file::compile(&spec)?.sends())
}

/// What a plan needs to know of an adapter: nothing is looked up, started or sent.
///
/// # Errors
/// What is wrong with the file.
pub fn check(spec: &AdapterSpec) -> Result<Capabilities, String> {
    let spec = &settings::checked(spec)?;
    variables::check(spec)?;
    dispositions::check(spec)?;
    if spec.command.is_some() {
        return process::capabilities(spec);
    }
    file::compile(spec).map(|adapter| system::capabilities(&adapter))
}
