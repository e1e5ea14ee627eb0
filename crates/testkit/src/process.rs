//! Child processes that never outlive the test: their output goes to files, and the kernel kills them when the test is gone.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::bench::{Done, signal};

/// A program that will be killed when the thread that starts it ends. A test is a thread of its own: so none outlives its
/// test, however that ends.
#[must_use]
pub fn mortal(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).stdin(Stdio::null());
    command
}

/// A running process with its output in files.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts a command; its output goes to `NAME.out` and `NAME.err` in `logs`. A name that was there before is continued.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, logs: &Path, name: &str) -> Self {
        let file = |suffix: &str| {
            let path = logs.join(format!("{name}.{suffix}"));
            let file = File::options().create(true).append(true).open(&path).expect("a log can be written");
            (path, file)
        };
        let ((stdout, out), (stderr, err)) = (file("out"), file("err"));
        let child = command.stdout(out).stderr(err).spawn().unwrap_or_else(|e| panic!("{name} cannot start: {e}"));
        Self { name: name.to_owned(), child, ended: None, stdout, stderr }
    }

    /// Its name in this test.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes it the file descriptors that it has not opened yet.
    ///
    /// # Panics
    /// When it is not there, or `prlimit` is not.
    pub fn leave_no_file_descriptors(&self) {
        let pid = self.id().to_string();
        let open = self.open_files();
        let limit = format!("--nofile={open}:{open}");
        let status = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
        assert!(status.expect("prlimit is there").success());
    }

    /// How many file descriptors it has open. Their list is its own, their number is not.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn open_files(&self) -> u64 {
        fs::metadata(format!("/proc/{}/fd", self.id())).expect("the process lives").len()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    /// What it has said so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Whether it still runs.
    ///
    /// # Panics
    /// Never: a child can be asked.
    pub fn runs(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a child can be asked");
        }
        self.ended.is_none()
    }

    /// How it ended, when it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.runs();
        self.ended
    }

    /// Sends a signal by name (`INT`, `TERM`, `STOP`, `CONT`, `KILL`).
    ///
    /// # Panics
    /// When it has ended already.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Ends it as a power cut would, and waits until it is gone. Harmless when it has ended.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            // it may end at this very moment
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it takes longer than `patience`.
    #[must_use]
    pub fn wait(mut self, patience: Duration) -> Done {
        let began = Instant::now();
        while self.runs() {
            assert!(
                began.elapsed() < patience,
                "{} did not end within {patience:?}; its last words:\n{}",
                self.name,
                tail(&self.stderr(), 30)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = self.ended.and_then(|status| status.code()).unwrap_or(-1);
        Done { code, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits until it has said something that contains `words`, and returns that line.
    ///
    /// # Panics
    /// When it ends or takes longer than `patience`.
    #[must_use]
    pub fn wait_for_line(&mut self, words: impl AsRef<OsStr>, patience: Duration) -> String {
        let words = words.as_ref().to_string_lossy().into_owned();
        let began = Instant::now();
        loop {
            let said = self.stderr();
            if let Some(line) = said.lines().rev().find(|line| line.contains(&words)) {
                return line.to_owned();
            }
            let alive = self.runs();
            assert!(
                alive && began.elapsed() < patience,
                "{} never said '{words}' (still running: {alive}); its last words:\n{}",
                self.name,
                tail(&said, 30)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a text.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Looks again and again until something holds.
///
/// # Panics
/// When it does not within `patience`.
pub fn wait_until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
