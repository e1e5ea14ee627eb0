//! Exit codes and the one error type that reaches a person. Every code is documented in docs/CLI.md.

use bench_datasets::DatasetError;
use bench_grading::prompts::ProfileError;
use bench_store::StoreError;
use bench_worker::engine::StartError;

use crate::lock::LockError;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done and VALID.
    Done = 0,
    /// A gate, a floor or a comparison says regression.
    Regression = 1,
    /// Bad input or usage; nothing was started.
    Usage = 2,
    /// Not finished, but resumable.
    Resumable = 3,
    /// Infrastructure: not finished.
    Infrastructure = 4,
    /// Finished, but INVALID, or runs that cannot be compared.
    Invalid = 5,
    /// A gate cannot decide with these questions.
    Inconclusive = 6,
}

/// An error with its exit code: one readable message that says what to do next.
#[derive(Debug, PartialEq, Eq)]
pub struct CliError {
    /// How the program ends.
    pub exit: Exit,
    /// For people.
    pub message: String,
}

impl CliError {
    /// Bad input or usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Infrastructure.
    pub fn infrastructure(message: impl Into<String>) -> Self {
        Self { exit: Exit::Infrastructure, message: message.into() }
    }

    /// Resumable.
    pub fn resumable(message: impl Into<String>) -> Self {
        Self { exit: Exit::Resumable, message: message.into() }
    }
}

/// Result of a command: the exit code of a success that may still be INVALID.
pub(crate) type CliResult = Result<Exit, CliError>;

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Open(_) | StoreError::Denied(_) | StoreError::Missing(_) | StoreError::Exists(_) => {
                Self::usage(error.to_string())
            }
            StoreError::Full(_) => {
                Self::infrastructure(format!("{error}; free some space, then `bench-coord resume`; nothing is lost"))
            }
            StoreError::Corrupt(_) => Self::infrastructure(format!(
                "{error}; finished results can still be read from the run's folder; restore the store from a copy, or start a new one with --store"
            )),
            StoreError::Unavailable(_) => {
                Self::infrastructure(format!("{error}; try again, or see what `bench-coord doctor` says"))
            }
            StoreError::BadData(_) | StoreError::Schema { .. } => Self::infrastructure(error.to_string()),
        }
    }
}

impl From<DatasetError> for CliError {
    fn from(error: DatasetError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ProfileError> for CliError {
    fn from(error: ProfileError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => error.into(),
            StartError::Queue(error) => Self::infrastructure(error.to_string()),
        }
    }
}
