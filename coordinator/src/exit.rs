//! Exit codes and the one error type that reaches a person. Every code is documented in docs/CLI.md.

use std::{error::Error, fmt};

use bench_datasets::DatasetError;
use bench_grading::prompts::ProfileError;
use bench_plan::SampleError;
use bench_proto::redact;
use bench_store::StoreError;
use bench_worker::engine::StartError;

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
    /// The run stopped before its end, and `resume` goes on with it.
    Resumable = 3,
    /// Infrastructure: not finished.
    Infrastructure = 4,
    /// Finished, but INVALID, or runs that cannot be compared.
    Invalid = 5,
    /// A gate cannot decide with these questions.
    Inconclusive = 6,
}

/// An error with its exit code: one readable message that says what to do next, and the error behind it.
#[derive(Debug)]
pub struct CliError {
    /// How the program ends.
    pub exit: Exit,
    /// What a person reads: one line, with what to do next.
    pub message: String,
    /// What the message was made from.
    behind: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    /// An error without another behind it.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), behind: None }
    }

    /// Bad input or usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A service that the verb needs is away or broken: exit 4.
    pub fn infrastructure(message: impl Into<String>) -> Self {
        Self::new(Exit::Infrastructure, message)
    }

    /// A task of this program ended by a panic: a mistake of the program, of which whoever reads the message can only tell. `doing`:
    /// what it was about, such as `reading the dataset`.
    pub fn internal_fault(doing: &str, error: impl Error + Send + Sync + 'static) -> Self {
        let told = format!(
            "internal fault while {doing}: {error}; this is a mistake of bench-coord: try again, and please report it, with what is \
             printed above and the log of the same command with -vv, at {}/issues",
            env!("CARGO_PKG_REPOSITORY")
        );
        Self::infrastructure(told).because(error)
    }

    /// A run that stopped and can go on with `resume`: exit 3.
    pub fn resumable(message: impl Into<String>) -> Self {
        Self::new(Exit::Resumable, message)
    }

    /// Bad input or usage, in the words of the error that found it.
    pub fn usage_of(error: impl Error + Send + Sync + 'static) -> Self {
        Self::usage(error.to_string()).because(error)
    }

    /// Infrastructure, in the words of the error that met it.
    pub fn infrastructure_of(error: impl Error + Send + Sync + 'static) -> Self {
        Self::infrastructure(error.to_string()).because(error)
    }

    /// Keeps the error behind the message.
    #[must_use]
    pub fn because(self, error: impl Error + Send + Sync + 'static) -> Self {
        Self { behind: Some(Box::new(error)), ..self }
    }

    /// The same error in other words.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Whether it was made from an error of the store after which the same may go well.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let behind = self.behind.as_ref().and_then(|error| error.downcast_ref::<StoreError>());
        behind.is_some_and(StoreError::is_transient)
    }

    /// What `-v` prints below the message: the causes, the nearest first, without passwords. Left out are the error whose words the
    /// message begins with, and causes that end the words of the one before.
    pub fn causes(&self) -> impl Iterator<Item = String> {
        let chain = std::iter::successors(self.source(), |error| (*error).source()).map(ToString::to_string);
        let mut before = String::new();
        let told = chain.filter(move |cause| {
            let is_new = !self.message.starts_with(cause.as_str()) && !before.ends_with(cause.as_str());
            if is_new {
                before.clone_from(cause);
            }
            is_new
        });
        told.map(|cause| redact::words(&cause).into_owned())
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.behind.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

/// Result of a command: the exit code of a success that may still be INVALID.
pub(crate) type CliResult = Result<Exit, CliError>;

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::Open(_) | StoreError::Denied(_) | StoreError::Missing(_) | StoreError::Exists(_) => Exit::Usage,
            StoreError::Full(_)
            | StoreError::Corrupt(_)
            | StoreError::Broken(_)
            | StoreError::Unavailable(_)
            | StoreError::BadData(_)
            | StoreError::Schema { .. } => Exit::Infrastructure,
        };
        let advice = match &error {
            StoreError::Full(_) => "; free some space, then `bench-coord resume RUN`; nothing is lost",
            StoreError::Corrupt(_) | StoreError::Broken(_) => {
                "; finished results can still be read from the run's folder; restore the store from a copy, or start a new one with --store"
            }
            StoreError::Unavailable(_) => "; try again, or see what `bench-coord doctor` says",
            _ => "",
        };
        Self::new(exit, format!("{error}{advice}")).because(error)
    }
}

impl From<DatasetError> for CliError {
    fn from(error: DatasetError) -> Self {
        Self::usage_of(error)
    }
}

impl From<SampleError> for CliError {
    fn from(error: SampleError) -> Self {
        Self::usage_of(error)
    }
}

impl From<ProfileError> for CliError {
    fn from(error: ProfileError) -> Self {
        Self::usage_of(error)
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => error.into(),
            StartError::Queue(error) => Self::infrastructure_of(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::reason::Reason;

    use super::*;

    #[test]
    fn causes_stand_below_the_message_and_repeat_none_of_it() {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let reason = source.to_string();
        let error = CliError::from(DatasetError::Io { path: "/data/locomo10.json".to_owned(), source });
        assert_eq!(error.exit, Exit::Usage);
        assert_eq!(error.message, format!("/data/locomo10.json: {reason}"), "the first line is what it was");
        assert_eq!(error.causes().collect::<Vec<_>>(), [reason]);

        let away = CliError::from(StoreError::Unavailable("connection refused".into()));
        assert_eq!(away.exit, Exit::Infrastructure);
        assert!(away.message.ends_with("`bench-coord doctor` says"), "{away}");
        assert_eq!(away.causes().count(), 0, "its words are in the message, and nothing is behind it");
        let refused = std::io::Error::other("connection refused by postgres://bench:secret@db/x");
        let outer = Reason::from(format!("cannot connect: {refused}")).because(&refused);
        let away = CliError::from(StoreError::Unavailable(Reason::from("no server listens at db").because(&outer)));
        assert!(away.is_transient() && !away.message.contains("refused"), "{away}");
        let causes: Vec<_> = away.causes().collect();
        assert_eq!(
            causes,
            ["cannot connect: connection refused by postgres://bench:***@db/x"],
            "once, without the password"
        );

        let syntax = serde_json::from_str::<u32>("x").expect_err("no number");
        let told = CliError::usage("answerer.params is no JSON object").because(syntax);
        assert_eq!(told.causes().collect::<Vec<_>>(), ["expected value at line 1 column 1"]);
        assert_eq!(CliError::usage("--floor 90: give a fraction").causes().count(), 0);
    }
}
