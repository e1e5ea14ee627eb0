//! Drives the real binaries in a folder of their own, as a person would.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Longest time that any command of a test may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Path of a binary of this workspace, beside the running test.
///
/// # Panics
/// When it has not been built: `cargo test --workspace` builds all of them.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let folder = test.ancestors().nth(2).expect("tests lie in <profile>/deps");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: run `cargo test --workspace`, which builds all binaries", path.display());
    path
}

/// `submit` over made-up conversations of LoCoMo's shape, with further flags; the result is JSON.
#[must_use]
pub fn submit_sim<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["submit", "--dataset", "locomo-sim"][..], flags, &["--json"]].concat()
}

/// What a command did.
#[derive(Debug)]
pub struct Done {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Standard output as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not JSON ({e}):\n{}\n{}", self.stdout, self.stderr))
    }

    /// The same, if the command ended with `code`.
    ///
    /// # Panics
    /// When it did not.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A working folder with a store of its own, and the binaries run in it.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    home: TempDir,
    env: Vec<(String, String)>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// A fresh folder.
    ///
    /// # Panics
    /// When the machine has no room for temporary files.
    #[must_use]
    pub fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        Self { folder: folder(), home: folder(), env: Vec::new() }
    }

    /// Sets a variable for all commands.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// The working folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Home folder of the person: what they trust is noted there.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `bench-coord` with these arguments, not yet started. The environment holds only what the test set.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(binary("bench-coord"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .env("USER", "tester")
            .env("NO_COLOR", "1");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `bench-coord` to its end.
    ///
    /// # Panics
    /// When it cannot be started or takes too long.
    #[must_use]
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        wait(self.start(args))
    }

    /// Starts `bench-coord`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Child {
        self.command(args).spawn().expect("bench-coord starts")
    }

    /// A run's `report.json`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn report(&self, run: &str) -> Value {
        let path = self.path().join(".bench/runs").join(run).join("report.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_str(&text).expect("report.json is JSON")
    }

    /// A run's `questions.jsonl`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn questions(&self, run: &str) -> Vec<Value> {
        let path = self.path().join(".bench/runs").join(run).join("questions.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

/// Waits for a child with a bound.
///
/// # Panics
/// When it takes too long; it is killed then.
#[must_use]
pub fn wait(mut child: Child) -> Done {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_string(&mut text);
            }
            text
        })
    };
    let stdout = read(stdout.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let stderr = read(stderr.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("no end after {PATIENCE:?}:\n{}", stderr.join().unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Done {
        code: status.code().unwrap_or(-1),
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    }
}

/// Sends a signal by name (`INT`, `TERM`, `STOP`, `CONT`, `KILL`).
///
/// # Panics
/// When `kill` cannot be started.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().expect("kill runs");
    assert!(status.success(), "kill -{name} failed");
}
