//! Systems that the runner starts itself: on a free loopback port, waited for until healthy, their log kept with the run,
//! ended on every kind of exit. Every instance has a folder with a lock that its owner holds: a folder with a record and
//! without an owner is an orphan, and the next start ends it. Processes of one machine share an instance through its folder.
//! Where each bank has an instance of its own, a few start at a time, and those that nobody has asked for longest make room
//! for new ones (`machine`). A system whose instances do not work is not started again and again (`trials`).

pub(super) mod child;
mod conduct;
mod kept;
mod log;
mod machine;
mod record;
mod trials;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::{failure::Failure, ids::RunId};
use bench_settings::private;
use reqwest::Url;
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};
use tracing::{info, warn};

pub use self::conduct::BROKEN;
pub use self::kept::{KeptData, copy_folder, hold_data, imported_banks};
pub use self::record::{InstanceRecord, end_orphans, host, remove_data};
use self::{
    child::Child,
    machine::Machine,
    record::{DATA, NEW_DATA, folder_name, remove_secrets},
    trials::{Conduct, Trials},
};
pub(super) use self::{
    child::passed_on,
    kept::put_in_place,
    log::{how_it_ended, last_words, log_path},
};
use super::{
    AdapterContext, filled,
    given::Given,
    is_started,
    secrets::Secrets,
    spec::{AdapterSpec, InstancePer, PortSpec, StartSpec},
    spec_of,
    system::AdapterSystem,
    time,
    variables::{Values, fill, fill_json, names},
};
use crate::{Prepared, SystemSettings};

/// Longest time until an instance is healthy, when nothing is said.
const DEFAULT_START: Duration = Duration::from_secs(120);
/// Wait between two looks at a starting instance.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Starts of one instance within [`RESTART_WINDOW`] before it is given up.
const MAX_STARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(600);
/// How long `start.check` may take.
const LONGEST_CHECK: Duration = Duration::from_secs(30);

/// What this process has started or uses, by folder. One per process: a run that is resumed finds its instances again.
#[derive(Clone, Default)]
pub struct Instances(Arc<SyncMutex<HashMap<PathBuf, SharedSlot>>>);

type SharedSlot = Arc<Mutex<Slot>>;

impl Instances {
    /// Lets go of what has ended by itself: another process of this machine may start it anew.
    pub async fn let_go(&self) {
        for (folder, slot) in self.slots(|_| true) {
            // one that is being started is looked at by whoever starts it
            let Ok(mut slot) = slot.try_lock_owned() else { continue };
            if let Some(Instance::Own { child, .. }) = &mut slot.current
                && let Some(status) = child.ended()
            {
                warn!("the system in {} has ended ({status})", folder.display());
                slot.end(&folder).await;
            }
        }
    }

    /// Ends everything that this process has started.
    pub async fn close_all(&self) {
        self.close(|_| true).await;
    }

    async fn close(&self, which: impl Fn(&Path) -> bool) {
        let ending = self.slots(&which).into_iter().map(|(folder, slot)| async move {
            let mut slot = slot.lock_owned().await;
            slot.end(&folder).await;
        });
        futures::future::join_all(ending).await;
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // one that somebody has just asked for stays
        slots.retain(|folder, slot| !which(folder) || Arc::strong_count(slot) > 1);
    }

    /// The slot of a folder; whoever holds it starts or ends what is in it.
    fn slot(&self, folder: &Path) -> SharedSlot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(folder.to_owned()).or_default())
    }

    fn slots(&self, which: impl Fn(&Path) -> bool) -> Vec<(PathBuf, SharedSlot)> {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = slots.iter().filter(|(folder, _)| which(folder));
        wanted.map(|(folder, slot)| (folder.clone(), Arc::clone(slot))).collect()
    }
}

/// The instances of a system for one run.
pub(super) struct Managed {
    name: String,
    start: StartSpec,
    folder: PathBuf,
    timeout: Duration,
    host: String,
    /// What it has stored outlives its process: it may be ended and started again.
    survives: bool,
    /// Instances that start at a time on this machine, and idle ones that are kept.
    at_once: usize,
    kept: usize,
    /// Whether they work.
    trials: Trials,
    /// `start.check` has ended well.
    checked: OnceCell<()>,
    /// What is taken out of words of it that are logged.
    secrets: Secrets,
    /// What stands for variables of the environment.
    given: Given,
    /// The archive of filled banks that its instances begin with.
    filled: Option<PathBuf>,
    instances: Instances,
}

#[derive(Default)]
struct Slot {
    current: Option<Instance>,
    starts: Vec<Instant>,
    /// When it was last asked for.
    used: Option<Instant>,
}

impl Slot {
    /// Ends what this process has started in it; another process's is only forgotten.
    async fn end(&mut self, folder: &Path) {
        if let Some(Instance::Own { mut child, lock, .. }) = self.current.take() {
            child.end(Duration::from_secs(5)).await;
            InstanceRecord::forget(folder);
            drop(lock);
            info!("the system in {} was ended", folder.display());
        }
    }

    /// Whether it was started here and nobody waits for an answer of it.
    fn is_idle(&self) -> bool {
        matches!(&self.current, Some(Instance::Own { at, .. }) if Arc::strong_count(&at.in_use) == 1)
    }
}

enum Instance {
    /// An instance that this process started.
    Own { at: Address, child: Child, lock: File },
    /// An instance that another process of this machine started.
    Shared(Address),
}

/// Where an instance listens, and which one it is: after a restart it is another one. Whoever holds it keeps the instance.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) url: Url,
    pub(super) id: String,
    /// Version that it reported.
    pub(super) version: Option<String>,
    in_use: Arc<Conduct>,
}

impl Address {
    fn new(url: Url, id: String, version: Option<String>) -> Self {
        Self { url, id, version, in_use: Arc::default() }
    }
}

impl Managed {
    /// Checks what can be checked before anything is started.
    pub(super) fn new(
        spec: &AdapterSpec,
        start: &StartSpec,
        context: &AdapterContext,
        secrets: Secrets,
    ) -> Result<Self, String> {
        match (start.command.as_slice(), &start.image) {
            ([], None) => return Err("start: give `command` or `image`".to_owned()),
            ([_, ..], Some(_)) => return Err("start: give `command` or `image`, not both".to_owned()),
            _ => {}
        }
        if !start.check.is_empty() && start.image.is_some() {
            return Err("start.check: it is for `command`; leave it out beside `image`".to_owned());
        }
        if !start.files.keys().all(|name| stays_inside(name)) {
            return Err("start.files: names are relative and stay in the instance's folder".to_owned());
        }
        let timeout = start
            .timeout
            .as_deref()
            .map_or(Ok(DEFAULT_START), time::parse)
            .map_err(|e| format!("start.timeout: {e}"))?;
        if start.at_once == Some(0) || start.kept == Some(0) {
            return Err("start.at_once and start.kept must be at least 1".to_owned());
        }
        let machine = Machine::here();
        let at_once = start.at_once.map_or_else(|| machine.at_once(), |number| number as usize);
        Ok(Self {
            at_once,
            kept: start.kept.map_or_else(|| machine.kept().max(at_once), |number| number as usize),
            trials: Trials::default(),
            checked: OnceCell::new(),
            secrets,
            name: spec.name.clone(),
            start: start.clone(),
            folder: folder_of(context, &spec.name),
            timeout,
            host: record::host(),
            survives: spec.can.survives_restart,
            given: context.given.clone(),
            filled: context.filled.clone(),
            instances: context.instances.clone(),
        })
    }

    /// Name of this machine, as it stands in the handles of banks.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether each bank has an instance of its own.
    pub(super) fn is_per_bank(&self) -> bool {
        self.start.per == InstancePer::Bank
    }

    /// The folder, which is the run's own.
    pub(super) fn place(&self) -> String {
        self.folder.display().to_string()
    }

    fn folder_of(&self, bank: Option<&str>) -> PathBuf {
        match (self.start.per, bank) {
            (InstancePer::Bank, Some(bank)) => self.folder.join(folder_name(bank)),
            _ => self.folder.clone(),
        }
    }

    /// Where the bank's instance listens; started first when nobody has.
    pub(super) async fn address(&self, bank: Option<&str>, system: &AdapterSystem) -> Result<Address, Failure> {
        self.prepared_address(bank, system).await.map(|(at, _)| at)
    }

    /// Address of the instance, and whether it had to be started for it.
    pub(super) async fn prepared_address(
        &self,
        bank: Option<&str>,
        system: &AdapterSystem,
    ) -> Result<(Address, Prepared), Failure> {
        let folder = self.folder_of(bank);
        let slot = self.instances.slot(&folder);
        let (mut slot, waited) = match Arc::clone(&slot).try_lock_owned() {
            Ok(slot) => (slot, Prepared::Ready),
            Err(_) => (slot.lock_owned().await, Prepared::Waited),
        };
        slot.used = Some(Instant::now());
        if let Some(Instance::Own { at, .. } | Instance::Shared(at)) = &slot.current {
            return Ok((at.clone(), waited));
        }
        if self.start.per == InstancePer::Bank && self.survives {
            self.make_room().await;
        }
        let begun = Instant::now();
        let instance = loop {
            match lock(&folder).map_err(|e| cannot(&self.name, &e))? {
                Some(lock) => {
                    if let Some(left) = InstanceRecord::read(&folder) {
                        left.end(&folder).await;
                    }
                    slot.starts.retain(|at| at.elapsed() < RESTART_WINDOW);
                    if slot.starts.len() >= MAX_STARTS {
                        return Err(Failure::terminal(
                            "system_keeps_dying",
                            format!(
                                "{} has ended {MAX_STARTS} times within {}{}",
                                self.name,
                                time::show(RESTART_WINDOW),
                                self.quoted(&folder)
                            ),
                        ));
                    }
                    let _turn = self.turn().await?;
                    slot.starts.push(Instant::now());
                    let (at, child) = self.start_instance(&folder, bank, system).await?;
                    self.trials.started(&at.in_use);
                    break Instance::Own { at, child, lock };
                }
                None => {
                    // its owner is starting it, or has
                    if let Some(record) = InstanceRecord::read(&folder).filter(|record| record.healthy)
                        && let Ok(url) = Url::parse(&record.url)
                    {
                        break Instance::Shared(Address::new(url, record.id(), record.version));
                    }
                    if begun.elapsed() > self.timeout {
                        let message = format!(
                            "{}: another process has not started it within {}",
                            self.name,
                            time::show(self.timeout)
                        );
                        return Err(Failure::transient(super::UNREACHABLE, message));
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        };
        let (Instance::Own { at, .. } | Instance::Shared(at)) = &instance;
        let at = at.clone();
        let prepared = if matches!(instance, Instance::Own { .. }) { Prepared::Built } else { Prepared::Waited };
        slot.current = Some(instance);
        Ok((at, prepared))
    }

    /// Ends the idle instances of the run that were asked for longest ago, so that one more is not too many.
    async fn make_room(&self) {
        let slots = self.instances.slots(|folder| folder.starts_with(&self.folder));
        let (mut running, mut idle) = (0, Vec::<(PathBuf, OwnedMutexGuard<Slot>)>::new());
        for (folder, slot) in slots {
            match slot.try_lock_owned() {
                Ok(slot) if slot.is_idle() => idle.push((folder, slot)),
                Ok(slot) => running += usize::from(slot.current.is_some()),
                // being started, or asked for right now
                Err(_) => running += 1,
            }
        }
        // whoever makes room holds a slot of its own, which is counted
        let too_many = (running + idle.len()).saturating_sub(self.kept).min(idle.len());
        idle.sort_by_key(|(_, slot)| slot.used);
        idle.truncate(too_many);
        for (folder, mut slot) in idle {
            slot.end(&folder).await;
            // it has not died
            let _ = slot.starts.pop();
        }
    }

    /// Where the bank's instance listens, when this process has used it before.
    pub(super) fn known_address(&self, bank: Option<&str>) -> Option<Url> {
        let folder = self.folder_of(bank);
        let (_, slot) = self.instances.slots(|other| other == folder).pop()?;
        // one that is being started has no address yet
        let slot = slot.try_lock().ok()?;
        let (Instance::Own { at, .. } | Instance::Shared(at)) = slot.current.as_ref()?;
        Some(at.url.clone())
    }

    async fn start_instance(
        &self,
        folder: &Path,
        bank: Option<&str>,
        system: &AdapterSystem,
    ) -> Result<(Address, Child), Failure> {
        let mut last = String::new();
        // somebody else may take the free port between our look and the system's bind
        for _ in 0..3 {
            let port = match self.start.port {
                PortSpec::Fixed(port) => port,
                PortSpec::Word(_) => free_port().map_err(|e| cannot(&self.name, &e))?,
            };
            let url: Url = format!("http://127.0.0.1:{port}").parse().map_err(|e| cannot(&self.name, &e))?;
            let spawned = self.spawn(folder, bank, port).await;
            let spawned = spawned.map_err(|error| Failure::terminal("system_start", error));
            let mut child = spawned.inspect_err(|_| remove_secrets(folder, self.secret_files()))?;
            let secret_files = self.secret_files().cloned().collect();
            let record = InstanceRecord::new(&child, &self.name, &url, &self.host, secret_files);
            record.write(folder).map_err(|e| cannot(&self.name, &e))?;
            match self.wait_healthy(&mut child, &url, folder, system).await {
                Ok(version) => {
                    let version = version.map(|version| self.secrets.hide(&version));
                    info!("{} {} started on {url}", self.name, version.as_deref().unwrap_or(""));
                    let id = record.id();
                    InstanceRecord { healthy: true, version: version.clone(), ..record }
                        .write(folder)
                        .map_err(|e| cannot(&self.name, &e))?;
                    return Ok((Address::new(url, id, version), child));
                }
                Err(failure) if failure.code == "system_ended" => {
                    last = failure.message;
                    child.end(Duration::ZERO).await;
                }
                Err(failure) => {
                    child.end(Duration::from_secs(2)).await;
                    InstanceRecord::forget(folder);
                    return Err(failure);
                }
            }
        }
        InstanceRecord::forget(folder);
        Err(Failure::terminal("system_start", last))
    }

    async fn spawn(&self, folder: &Path, bank: Option<&str>, port: u16) -> Result<Child, String> {
        let dir = folder.join(DATA);
        if let Some(archive) = &self.filled {
            put_in_place(archive, &self.folder, folder)
                .map_err(|e| format!("filled banks cannot be put into {}: {e}", dir.display()))?;
        }
        let around = self.around(folder, bank, port)?;
        self.check(&around).await?;
        let Around { dir, values, env, log } = around;
        for (name, text) in &self.start.files {
            let path = dir.join(name);
            if leads_elsewhere(folder, &path) {
                return Err(format!("{} leads elsewhere, by a link that no run has made", path.display()));
            }
            let is_json = name.ends_with(".json") || serde_json::from_str::<serde_json::Value>(text).is_ok();
            let text = if is_json { fill_json(text, &values) } else { fill(text, &values) }?;
            if let Some(parent) = path.parent() {
                private::create_folder(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
            }
            private::write(&path, text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let words = self.start.command.iter().map(|word| fill(word, &values)).collect::<Result<Vec<_>, _>>()?;
        match &self.start.image {
            None => Child::command(&words, &env, &dir, &log),
            Some(image) => {
                let name = format!("bench-{}-{port}-{}", self.name, std::process::id());
                Child::container(image, &name, (port, self.start.image_port.unwrap_or(8000)), &env, &dir, &log)
            }
        }
        .map_err(|error| format!("{} cannot be started: {error}", self.name))
    }

    /// What is around the processes of an instance; its folder is made.
    fn around(&self, folder: &Path, bank: Option<&str>, port: u16) -> Result<Around, String> {
        let dir = folder.join(DATA);
        private::create_folder(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let bank = bank.filter(|_| self.is_per_bank());
        let places = BTreeMap::from([("port", port.to_string()), ("dir", dir.display().to_string())]);
        let values = Values { places, given: self.given.of_bank(bank) };
        let own = self.start.env.iter().map(|(name, value)| Ok::<_, String>((name.clone(), fill(value, &values)?)));
        let mut env = self.given.usual(bank);
        env.extend(own.collect::<Result<Vec<_>, _>>()?);
        Ok(Around { dir, values, env, log: log_path(folder) })
    }

    /// Looks whether `start.check` ends well: once for all instances, also for those that are started at the same time.
    async fn check(&self, around: &Around) -> Result<(), String> {
        if self.start.check.is_empty() {
            return Ok(());
        }
        self.checked.get_or_try_init(|| self.run_check(around)).await.copied()
    }

    async fn run_check(&self, around: &Around) -> Result<(), String> {
        let words = self.start.check.iter().map(|word| fill(word, &around.values)).collect::<Result<Vec<_>, _>>()?;
        let mut child = Child::command(&words, &around.env, &around.dir, &around.log)
            .map_err(|error| format!("{} cannot be checked: {error}", self.name))?;
        let begun = Instant::now();
        let status = loop {
            match child.ended() {
                Some(status) => break status,
                None if begun.elapsed() > LONGEST_CHECK => {
                    child.end(Duration::ZERO).await;
                    let longest = time::show(LONGEST_CHECK);
                    return Err(format!(
                        "{} is not started: its check (`start.check`) has not ended within {longest}",
                        self.name
                    ));
                }
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        if status.success() {
            return Ok(());
        }
        let said = how_it_ended(Some(status), &around.log, &self.secrets);
        Err(format!("{} is not started, its check (`start.check`) has failed{said}", self.name))
    }

    /// Names of the files that are filled from the environment.
    fn secret_files(&self) -> impl Iterator<Item = &String> {
        self.start.files.iter().filter(|(_, text)| names(text).next().is_some()).map(|(name, _)| name)
    }

    async fn wait_healthy(
        &self,
        child: &mut Child,
        url: &Url,
        folder: &Path,
        system: &AdapterSystem,
    ) -> Result<Option<String>, Failure> {
        let begun = Instant::now();
        loop {
            if let Some(status) = child.ended() {
                return Err(Failure::transient(
                    "system_ended",
                    format!("{} ended before it was healthy ({status}){}", self.name, self.quoted(folder)),
                ));
            }
            match system.probe(url).await {
                Ok(version) => {
                    if let (Some(wanted), Some(found)) = (&self.start.version, &version)
                        && wanted != found
                    {
                        return Err(Failure::terminal(
                            "system_version",
                            format!("{} reports version {found}, the adapter wants {wanted}", self.name),
                        ));
                    }
                    return Ok(version);
                }
                Err(failure) if begun.elapsed() > self.timeout => {
                    return Err(Failure::terminal(
                        "system_start",
                        format!(
                            "{} was not healthy within {}: {failure}{}",
                            self.name,
                            time::show(self.timeout),
                            self.quoted(folder)
                        ),
                    ));
                }
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Told that an instance could not be reached: an ended one is started anew at the next use.
    async fn doubt(&self, bank: Option<&str>, base: &Url) {
        let folder = self.folder_of(bank);
        let mut slot = self.instances.slot(&folder).lock_owned().await;
        let gone = match &mut slot.current {
            Some(Instance::Own { at, child, .. }) if at.url == *base => child.ended().is_some(),
            Some(Instance::Shared(at)) => at.url == *base,
            _ => false,
        };
        if gone {
            warn!("{} is gone from {base}", self.name);
            slot.end(&folder).await;
        }
    }

    /// Ends the instance of a bank that is no longer needed.
    pub(super) async fn end_bank(&self, bank: &str) {
        if self.start.per == InstancePer::Bank {
            let folder = self.folder_of(Some(bank));
            self.instances.close(|path| path == folder).await;
        }
    }

    /// Ends what this process started for the run.
    pub(super) async fn close(&self) {
        self.instances.close(|path| path.starts_with(&self.folder)).await;
    }
}

/// What is around the processes of an instance.
struct Around {
    dir: PathBuf,
    values: Values,
    env: BTreeMap<String, String>,
    log: PathBuf,
}

/// Looks whether the variables are set that a system is started with, and runs what its file wants checked before that (`start.check`),
/// as the system would run below `home`; nothing for systems that the runner does not start.
///
/// # Errors
/// The variable that is not set; what the check says, and what it lacks to be run.
pub async fn check_start(settings: &SystemSettings, given: &Given, home: &Path) -> Result<(), String> {
    let Some(spec) = spec_of(settings).filter(|_| is_started(settings)) else { return Ok(()) };
    let spec = filled(spec, settings)?;
    let Some(start) = spec.start.as_ref() else { return Ok(()) };
    let values = Values { given: given.of_bank(None), ..Values::default() };
    for text in start.command.iter().chain(start.env.values()).chain(start.files.values()) {
        fill(text, &values).map_err(|lacks| format!("{} cannot be started: {lacks}", spec.name))?;
    }
    if start.check.is_empty() {
        return Ok(());
    }
    // processes of two containers may share a home and have the same id
    let own = format!("check-{}", RunId::fresh().0);
    let context = AdapterContext {
        home: Some(home.to_owned()),
        run: Some(own),
        given: given.clone(),
        ..AdapterContext::default()
    };
    let secrets = Secrets::of_system(&spec, None, given);
    let system = Managed::new(&spec, start, &context, secrets)?;
    let folder = system.folder.clone();
    own_folder(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let checked = match system.around(&folder, None, 0) {
        Ok(around) => system.check(&around).await,
        Err(lacks) => Err(format!("{} cannot be started: {lacks}", spec.name)),
    };
    // the folder of this check alone, and that of all systems where nothing else is in it
    let _ = folder.parent().map(std::fs::remove_dir_all);
    let _ = folder.ancestors().nth(2).map(std::fs::remove_dir);
    checked
}

fn cannot(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::terminal("system_start", format!("{name} cannot be started: {error}"))
}

/// Where a system of a run has its log and what it stores: `$BENCH_HOME/systems/RUN/NAME`. Absolute, for a system works in a
/// folder of its own.
pub(super) fn folder_of(context: &AdapterContext, name: &str) -> PathBuf {
    let home = context.home.clone().unwrap_or_else(std::env::temp_dir);
    let run = context.run.as_deref().unwrap_or("no-run");
    let folder = home.join("systems").join(folder_name(run)).join(folder_name(name));
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Folders between the one of all systems and an instance's: run, system, bank.
const DEPTH: usize = 3;

/// Whether a path below a folder goes through a link: a folder that somebody has handed on may hold links to anything.
fn leads_elsewhere(folder: &Path, path: &Path) -> bool {
    let is_link = |at: &Path| std::fs::symlink_metadata(at).is_ok_and(|about| about.is_symlink());
    path.ancestors().take_while(|at| at.starts_with(folder)).any(is_link)
}

/// Makes the folder of an instance, unless it leads elsewhere.
pub(super) fn own_folder(folder: &Path) -> std::io::Result<()> {
    let above = folder.ancestors().take(DEPTH).take_while(|at| !at.ends_with("systems")).last().unwrap_or(folder);
    let inside =
        [DATA, NEW_DATA, "system.log", "instance.json", "instance.json.new", "lock"].map(|name| folder.join(name));
    match inside.into_iter().find(|path| leads_elsewhere(above, path)) {
        Some(path) => Err(std::io::Error::other(format!(
            "{} leads elsewhere, by a link that no run has made: remove it",
            path.display()
        ))),
        None => private::create_folder(folder),
    }
}

/// Takes the folder's lock; `None` when a living process has it.
fn lock(folder: &Path) -> std::io::Result<Option<File>> {
    own_folder(folder)?;
    let file = private::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a file's name stays in the folder that it is put into.
fn stays_inside(name: &str) -> bool {
    !(name.is_empty() || name.contains("..") || name.starts_with('/'))
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
