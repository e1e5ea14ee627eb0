//! A result is logged to Weights & Biases, by the `wandb` package of whoever asks for it: how the package talks to its servers, and
//! what it writes offline, is its own.
//!
//! The package runs in a process of its own that is given the facts of one result (`log_to_wandb.py`), the variables that it reads,
//! and a new folder to work in: what lies in the folder of whoever asks, such as `wandb/settings`, sends no key anywhere.

use std::{
    ffi::OsString,
    fs::File,
    io::{Read as _, Seek as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use bench_proto::{redact, summary::Summary, text::one_line};
use bench_report::wandb::{Questions, Record, record};
use bench_settings::{Way, private};
use bench_store::RunRow;
use bench_systems::adapter::code::python;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use crate::{
    app::App,
    exit::{CliError, Exit},
};

/// What the process runs.
const SCRIPT: &str = include_str!("log_to_wandb.py");
/// Longest time for one result: its questions may be megabytes on a slow way.
const PATIENCE: Duration = Duration::from_secs(300);
/// Most bytes that are read of a reply, and of what the package has printed.
const MOST_SAID: u64 = 64 << 10;
/// Longest reason that is shown, in characters.
const MOST_SHOWN: usize = 300;
/// Variables that the process sees, beside those of the package itself.
const SEEN: [&str; 19] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "NETRC",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
/// Of a process that is logging something already: another one has nothing to do with it.
const OF_ANOTHER: &str = "WANDB_SERVICE";
const KEY: &str = "WANDB_API_KEY";
/// Variables whose values are in no message.
const SECRET: [&str; 5] = [KEY, "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const MODE: &str = "WANDB_MODE";
const BASE_URL: &str = "WANDB_BASE_URL";
const DIR: &str = "WANDB_DIR";
/// What may not stand in the name of a project.
const NOT_IN_A_NAME: [char; 7] = ['/', '\\', '#', '?', '%', ':', ' '];

/// Who logs, and where.
pub(crate) struct Logger {
    python: PathBuf,
    entity: Option<String>,
    project: String,
    /// Where a result is kept while it is offline, as the package has it.
    folder: PathBuf,
}

/// Where a result is now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// On a server, with its page.
    Online(String),
    /// In a folder, from where the package brings it to a server.
    Offline(PathBuf),
}

/// What the process is told.
#[derive(Serialize)]
struct Facts<'a> {
    entity: Option<&'a str>,
    project: &'a str,
    folder: &'a Path,
    group: Option<&'a str>,
    job_type: &'static str,
    questions: &'a Questions,
    #[serde(flatten)]
    record: Record,
}

/// What it answers.
#[derive(Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
enum Reply {
    Logged { page: Option<String>, folder: Option<PathBuf> },
    Unconfirmed { page: String, why: Option<String> },
    NoPackage { why: String },
    TooOld { version: String },
    Disabled { mode: String },
    NoLogin { why: String },
    Away { why: String },
    Refused { why: String },
}

impl Logger {
    /// A logger into `PROJECT` or `ENTITY/PROJECT`, by the Python that classes of Python run with.
    ///
    /// # Errors
    /// Exit 2 for what is no project, a server that is not encrypted and should be, and where there is no Python.
    pub(crate) fn for_project(app: &App, named: &str) -> Result<Self, CliError> {
        let (entity, project) = match named.split_once('/') {
            Some((entity, project)) => (Some(entity), project),
            None => (None, named),
        };
        let is_name = |name: &str| !name.is_empty() && !name.contains(NOT_IN_A_NAME);
        if !is_name(project) || !entity.is_none_or(is_name) {
            return Err(CliError::usage(format!("--wandb '{named}': give PROJECT or ENTITY/PROJECT")));
        }
        let is_offline = std::env::var(MODE).is_ok_and(|mode| ["offline", "dryrun"].contains(&mode.as_str()));
        if let Some(url) = std::env::var(BASE_URL).ok().filter(|_| !is_offline) {
            Way::check_url(BASE_URL, &url, "http", &app.settings().allow_plaintext).map_err(CliError::usage)?;
        }
        let python = python().map_err(|why| CliError::usage(format!("--wandb runs the package wandb: {why}")))?;
        let named =
            std::env::var_os(DIR).filter(|dir| !dir.is_empty()).map_or_else(|| PathBuf::from("."), PathBuf::from);
        let folder = std::path::absolute(&named).map_err(CliError::usage_of)?;
        Ok(Self { python, entity: entity.map(str::to_owned), project: project.to_owned(), folder })
    }

    /// Logs the result of a run.
    ///
    /// # Errors
    /// Exit 2 for what is to be put right here or is refused there, 4 when the server is away or does not say that it has the result.
    pub(crate) async fn log(&self, run: &RunRow, summary: &Summary, questions: &Questions) -> Result<Logged, CliError> {
        let facts = Facts {
            entity: self.entity.as_deref(),
            project: &self.project,
            folder: &self.folder,
            group: run.group.as_ref().map(|group| group.id.as_str()),
            job_type: kind_of(run),
            questions,
            record: record(summary, &run.tags),
        };
        let facts = serde_json::to_vec(&facts).map_err(CliError::infrastructure_of)?;
        let broken = |what: &str| {
            let what = what.to_owned();
            move |e: std::io::Error| CliError::infrastructure(format!("--wandb: {what}: {e}")).because(e)
        };
        let folder = tempfile::tempdir().map_err(broken("no temporary folder"))?;
        let script = folder.path().join("log_to_wandb.py");
        private::write(&script, SCRIPT.as_bytes()).map_err(broken("no temporary file"))?;
        let mut log = tempfile::tempfile().map_err(broken("no temporary file"))?;
        let stderr = log.try_clone().map_err(broken("no temporary file"))?;
        let child = self.start(&script, folder.path(), stderr).map_err(broken("Python cannot be started"))?;
        match tokio::time::timeout(PATIENCE, answer(child, &facts)).await {
            Ok(Ok(Some(reply))) => self.told(reply),
            Ok(Ok(None)) => {
                Err(CliError::infrastructure(format!("--wandb: the package has failed: {}", last_of(&mut log))))
            }
            Ok(Err(error)) => Err(broken("the package has failed")(error)),
            Err(_) => Err(CliError::infrastructure(format!(
                "Weights & Biases has not taken the result within {} minutes; try again, or {OFFLINE}",
                PATIENCE.as_secs() / 60
            ))),
        }
    }

    fn start(&self, script: &Path, folder: &Path, stderr: File) -> std::io::Result<Child> {
        Command::new(&self.python)
            .arg(script)
            .arg(std::process::id().to_string())
            .current_dir(folder)
            .env_clear()
            // what the package tells its makers of its own failures may hold what it was given
            .env("WANDB_ERROR_REPORTING", "false")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(seen())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
    }

    fn told(&self, reply: Reply) -> Result<Logged, CliError> {
        let python = self.python.display();
        let usage = |message: String| Err(CliError::usage(message));
        match reply {
            Reply::Logged { page: Some(page), .. } => Ok(Logged::Online(page)),
            Reply::Logged { folder: Some(folder), .. } => Ok(Logged::Offline(folder)),
            Reply::Logged { .. } => {
                Err(CliError::infrastructure("--wandb: the package does not say where the result is"))
            }
            Reply::Unconfirmed { page, why } => {
                let why = why.map(|why| format!(" ({})", shown(&why))).unwrap_or_default();
                Err(CliError::infrastructure(format!(
                    "Weights & Biases does not say that it has kept all of the result{why}: look at {page}, or try again: it is \
                     there once"
                )))
            }
            Reply::NoPackage { why } => usage(format!(
                "--wandb runs the package wandb, and {python} has none ({}): `{python} -m pip install wandb`, or activate the \
                 environment that has it",
                shown(&why)
            )),
            Reply::TooOld { version } => usage(format!(
                "--wandb needs wandb 0.19 or newer, and {python} has {}: `{python} -m pip install --upgrade wandb`",
                shown(&version)
            )),
            Reply::Disabled { mode } => usage(format!(
                "Weights & Biases is switched off ({MODE}={}), and nothing would be kept: set it to online or offline",
                shown(&mode)
            )),
            Reply::NoLogin { why } => usage(format!(
                "Weights & Biases lets nobody in: {}; set {KEY} for one who may write there, or `wandb login`; or {OFFLINE}",
                shown(&why)
            )),
            Reply::Refused { why } => usage(format!("Weights & Biases refuses the result: {}", shown(&why))),
            Reply::Away { why } => Err(CliError::new(
                Exit::Infrastructure,
                format!("Weights & Biases does not answer: {}; try again, or {OFFLINE}", shown(&why)),
            )),
        }
    }
}

/// What to do without a server.
const OFFLINE: &str = "set WANDB_MODE=offline, which keeps the result here for `wandb sync`";

/// What a run is to its group.
fn kind_of(run: &RunRow) -> &'static str {
    if run.control_of.is_some() {
        "control"
    } else if run.cell().is_some() {
        "cell"
    } else if run.repeat().is_some() {
        "repeat"
    } else {
        "run"
    }
}

/// Variables of this process that the package's process sees.
fn seen() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        SEEN.contains(&name.as_ref()) || (name.starts_with("WANDB_") && name != OF_ANOTHER)
    })
}

/// Gives the process its facts, and waits for its answer; none where it ended without one.
async fn answer(mut child: Child, facts: &[u8]) -> std::io::Result<Option<Reply>> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Ok(None) };
    let give = async {
        // a process that has ended before it has read all has said why
        let _ = to.write_all(facts).await;
        drop(to);
    };
    let mut said = Vec::new();
    let mut from = from.take(MOST_SAID);
    let ((), read) = tokio::join!(give, from.read_to_end(&mut said));
    read?;
    child.wait().await?;
    Ok(serde_json::from_slice(&said).ok())
}

/// The last words of a log.
fn last_of(log: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = log.seek(std::io::SeekFrom::End(0)).unwrap_or(0);
    let read = log
        .seek(std::io::SeekFrom::Start(length.saturating_sub(MOST_SAID)))
        .and_then(|_| log.take(MOST_SAID).read_to_end(&mut bytes));
    let text = read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    shown(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing"))
}

/// Words of the package without what is secret: its key, and what stands in the URLs of proxies.
fn shown(words: &str) -> String {
    let mut words = one_line(words).into_owned();
    for name in SECRET {
        if let Ok(value) = std::env::var(name) {
            words = redact::secret(&words, &value).into_owned();
        }
    }
    words.chars().take(MOST_SHOWN).collect()
}
