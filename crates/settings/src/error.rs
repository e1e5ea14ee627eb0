//! What can be wrong with settings. All problems are collected, so that a file is corrected in one go.

use std::fmt;

use bench_proto::{nearest::did_you_mean, reason::Reason};

use crate::origin::FilePosition;

/// Problems with settings, one line each. All are bad input: nothing was started (exit code 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl std::error::Error for SettingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problems.first().map(|problem| problem as &(dyn std::error::Error + 'static))
    }
}

impl From<Problem> for SettingsError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// A problem. `place` is `file:line:column`, `environment NAME` or a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML.
    #[error("{place}: {message}")]
    Syntax {
        /// Line and column of the file.
        place: FilePosition,
        /// The parser's words.
        #[source]
        message: Reason,
    },
    /// The file cannot be read.
    #[error("{path}: {reason}; give another one with --config")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        #[source]
        reason: Reason,
    },
    /// A file of the current folder that nobody has vouched for.
    #[error(
        "{path} of this folder sets {}: who wrote it decides where texts and keys go, what runs or what may be spent. Read it, then \
         `bench-coord config trust` remembers it as it is; --config {path} uses it this once",
        .keys.join(", ")
    )]
    Untrusted {
        /// The file.
        path: String,
        /// What it sets that needs a word.
        keys: Vec<String>,
    },
    /// There is no folder for the list of trusted files.
    #[error("there is no place to remember {path}: set BENCH_HOME to a full path, or name the file with --config")]
    NoPlaceForTrust {
        /// The file.
        path: String,
    },
    /// The list of trusted files cannot be written.
    #[error("{path} cannot be written: {reason}; name the file with --config instead")]
    NotRemembered {
        /// The list.
        path: String,
        /// What the system says.
        #[source]
        reason: Reason,
    },
    /// No such setting.
    #[error("{place}: unknown setting '{key}'{}; `bench-coord config show --all` lists all", hint(.nearest))]
    UnknownKey {
        /// Where it was said: a line of a file, a variable or a flag.
        place: String,
        /// The name.
        key: String,
        /// Nearest names, best first.
        nearest: Vec<String>,
    },
    /// No such profile.
    #[error("--profile {name}: {path} has no such profile{}{}", hint(.nearest), listed("profiles", .known))]
    UnknownProfile {
        /// The name that was asked for.
        name: String,
        /// The file.
        path: String,
        /// Nearest names.
        nearest: Vec<String>,
        /// All profiles of the file.
        known: Vec<String>,
    },
    /// A profile without a file to hold it.
    #[error("--profile {name}: there is no configuration file; write bench.toml or give one with --config")]
    NoFileForProfile {
        /// The name that was asked for.
        name: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{place}: {key} is {found}, expected {expected}")]
    BadValue {
        /// Where it was said: a line of a file, a variable or a flag.
        place: String,
        /// The setting.
        key: String,
        /// What is there, without secrets.
        found: String,
        /// What it takes.
        expected: String,
    },
    /// A key where others can read it.
    #[error(
        "{place}: {key} would put a key where others can read it; set an environment variable, \
         or name one with accounts.NAME.api_key_env, or a file with accounts.NAME.api_key_file"
    )]
    SecretInTheOpen {
        /// Where it was said: a line of a file, a variable or a flag.
        place: String,
        /// The setting.
        key: String,
    },
    /// `--set` without `=`.
    #[error("--set needs key=value, such as --set run.top_k=20; '{text}' has no '='")]
    NotAnAssignment {
        /// What was given.
        text: String,
    },
    /// An account that nothing describes.
    #[error("{place}: {key} names the account '{account}', which has no [accounts.{account}] section{}{}", hint(.nearest), listed("accounts", .known))]
    UnknownAccount {
        /// Where it was said: a line of a file, a variable or a flag.
        place: String,
        /// The setting.
        key: String,
        /// The name that was given.
        account: String,
        /// Nearest names.
        nearest: Vec<String>,
        /// All accounts.
        known: Vec<String>,
    },
}

fn hint(nearest: &[String]) -> String {
    did_you_mean(nearest).map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn listed(what: &str, known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; {what}: {}", known.join(", ")) }
}
