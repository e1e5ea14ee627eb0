//! An S3 server as a process of its own: moto, from PyPI, in a virtual environment that is made once for all tests.

use std::{
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{
    http,
    packages::{install, succeeded},
    ports,
    process::{Process, mortal},
};

/// The release that tests were written against.
const MOTO: &str = "moto[server]==5.2.5";
/// Longest wait for its first answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with an empty bucket `bench`.
#[derive(Debug)]
pub struct S3 {
    process: Process,
    place: String,
    _logs: tempfile::TempDir,
}

impl S3 {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When it cannot be installed or started: a missing service is a failed test.
    #[must_use]
    pub fn start() -> Self {
        let python = python_with_moto().expect("moto can be installed");
        let logs = tempfile::tempdir().expect("a temporary folder");
        let [port] = ports::reserve().expect("a free port");
        let mut command = mortal(&python);
        command.args(["-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = Process::start(command, logs.path(), "moto");
        let place = format!("127.0.0.1:{port}");
        let began = Instant::now();
        while !http::get(&place, "/moto-api/").is_ok_and(|reply| reply.status == 200) {
            assert!(began.elapsed() < PATIENCE, "moto does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        let made = http::request("PUT", &place, "/bench", None, "").expect("moto answers");
        assert_eq!(made.status, 200, "{}", made.body);
        Self { process, place, _logs: logs }
    }

    /// `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The environment that makes clients use the server at `place` (its own, or a proxy's before it).
    #[must_use]
    pub fn environment(place: &str) -> [(&'static str, String); 4] {
        [
            ("AWS_ACCESS_KEY_ID", ACCESS.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{place}")),
        ]
    }

    /// Stops it at once.
    pub fn kill(mut self) {
        self.process.kill();
    }
}

/// Id of the key that runs are given.
pub const ACCESS: &str = "AKIAPLANTED0123456";
/// The secret key that runs are given; no output may ever hold it.
pub const SECRET: &str = "planted/secret+0123456789abcdef";

/// Path of a Python that has the server; installed when it is not there.
fn python_with_moto() -> anyhow::Result<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let test = std::env::current_exe().context("a running test has a path")?;
    let target = test.ancestors().nth(3).context("tests lie in <target>/<profile>/deps")?;
    let folder = target.join("moto");
    let python = folder.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    // another test program may be at it too: each makes its own, and the first moves it into place whole
    let own = target.join(format!("moto.{}", std::process::id()));
    let make = || Command::new("python3").args(["-m", "venv"]).arg(&own).output();
    let mut made = make().context("python3 is needed")?;
    if !made.status.success() {
        install("python3-venv")?;
        made = make()?;
    }
    succeeded("python3 -m venv", &made)?;
    let pip = Command::new(own.join("bin/python")).args(["-m", "pip", "install", "--quiet", MOTO]).output()?;
    succeeded("pip install moto", &pip)?;
    match std::fs::rename(&own, &folder) {
        Ok(()) => {}
        // somebody was quicker
        Err(_) if python.exists() => std::fs::remove_dir_all(&own)?,
        Err(error) => return Err(error.into()),
    }
    Ok(python)
}
