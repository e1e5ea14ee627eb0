//! What the command line says about settings, and which file it means.

use std::path::PathBuf;

use crate::layers::FlagValue;

/// File that is read when it is there and no other is named.
pub const DEFAULT_FILE: &str = "bench.toml";

/// Variable that names the file, as `--config` does.
const CONFIG_VARIABLE: &str = "BENCH_CONFIG";

/// What the command line says about settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `--config FILE`; without it `BENCH_CONFIG`.
    pub config: Option<PathBuf>,
    /// `--profile NAME`.
    pub profile: Option<String>,
    /// `--set key=value`, in order.
    pub sets: Vec<String>,
    /// Named flags that were given.
    pub flags: Vec<FlagValue>,
}

/// The file that is named by the command line or the environment, and so is meant.
pub(crate) fn named(line: &CommandLine) -> Option<PathBuf> {
    let variable = || std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    line.config.clone().or_else(variable)
}
