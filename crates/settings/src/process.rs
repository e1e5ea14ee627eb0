//! The thin part that touches the process: environment, working directory, files.

use std::{io, path::PathBuf};

use crate::{
    error::{Problem, SettingsError},
    layers::{FlagValue, Sources},
    schema::ExtraKey,
    view::Settings,
};

/// File that is read when it is there and `--config` is not given.
pub const DEFAULT_FILE: &str = "bench.toml";

/// What the command line says about settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--profile NAME`.
    pub profile: Option<String>,
    /// `--set key=value`, in order.
    pub sets: Vec<String>,
    /// Named flags that were given.
    pub flags: Vec<FlagValue>,
}

/// Reads the settings of this process: `--config` or `bench.toml`, the environment, the command line. `extra` are the
/// settings of datasets and memory systems.
///
/// # Errors
/// As [`Settings::load`], and when the file cannot be read.
pub fn from_process(line: CommandLine, extra: Vec<ExtraKey>) -> Result<Settings, SettingsError> {
    let path = line.config.clone().unwrap_or_else(|| DEFAULT_FILE.into());
    let shown = path.display().to_string();
    let file = match std::fs::read_to_string(&path) {
        Ok(text) => Some((shown, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && line.config.is_none() => None,
        Err(error) => {
            return Err(SettingsError {
                problems: vec![Problem::Unreadable { path: shown, reason: error.to_string() }],
            });
        }
    };
    Settings::load(&Sources {
        file,
        profile: line.profile,
        env: &|name| std::env::var(name).ok(),
        read_key_file: &|path| std::fs::read_to_string(path),
        sets: line.sets,
        flags: line.flags,
        extra,
    })
}
