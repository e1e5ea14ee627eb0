//! Why a system cannot be built.

use bench_proto::{nearest::did_you_mean, reason::Reason};

use crate::policy::Refusal;

/// Why a system cannot be built: always the user's to mend, before anything is spent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No system of that name.
    #[error("unknown memory system '{name}'{}; known systems: {}", meant(.nearest), .known.join(", "))]
    UnknownSystem {
        /// The name given.
        name: String,
        /// A registered name that looks like it.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The system has no such setting.
    #[error("memory system '{system}' has no setting '{setting}', {}", valid_settings(.known))]
    UnknownSetting {
        /// Name of the memory system.
        system: String,
        /// The setting given.
        setting: String,
        /// Settings that the system has.
        known: Vec<&'static str>,
    },
    /// The setting does not take that value.
    #[error("setting {setting} must be {expected}, not {value}")]
    BadSetting {
        /// Name of the setting, without the system's.
        setting: &'static str,
        /// What it takes.
        expected: String,
        /// The value given, as JSON.
        value: String,
    },
    /// Whoever operates this process has not allowed it.
    #[error(transparent)]
    NotAllowed(Box<Refusal>),
    /// The adapter, or what it names, cannot be used.
    #[error("memory system '{system}': {reason}")]
    Adapter {
        /// The system, or the file.
        system: String,
        /// What is wrong.
        #[source]
        reason: Reason,
    },
}

fn meant(nearest: &Option<&'static str>) -> String {
    did_you_mean(nearest.as_slice()).map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn valid_settings(known: &[&'static str]) -> String {
    if known.is_empty() { "it takes none".to_owned() } else { format!("its settings: {}", known.join(", ")) }
}
