//! The thin part that touches the process: environment, working directory, files.

use std::io;

use crate::{
    bounded,
    command_line::{CommandLine, DEFAULT_FILE, named},
    error::{Problem, SettingsError},
    layers::Sources,
    schema::ExtraKey,
    trust::Found,
    view::Settings,
};

/// Name of this machine, as the kernel knows it; in a container that is the container's. Process ids alone tell nobody apart: in
/// containers every process has the same.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Reads the settings of this process: the file that is named or `bench.toml`, the environment, the command line. `extra` are
/// the settings of datasets and memory systems.
///
/// # Errors
/// As [`Settings::load`], when the file cannot be read, and when one that is not named sets what needs a word
/// ([`trust()`](crate::trust())).
pub fn from_process(line: CommandLine, extra: Vec<ExtraKey>) -> Result<Settings, SettingsError> {
    let named = named(&line);
    let path = named.clone().unwrap_or_else(|| DEFAULT_FILE.into());
    let shown = path.display().to_string();
    let file = match bounded::text(&path, bounded::BY_HAND) {
        Ok(text) => Some((shown, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => None,
        Err(error) => return Err(Problem::Unreadable { path: shown, reason: error.to_string().into() }.into()),
    };
    let found = file.clone().filter(|_| named.is_none());
    let settings = Settings::load(&Sources {
        file,
        profile: line.profile,
        env: &|name| std::env::var(name).ok(),
        read_key_file: &|path| bounded::text(path, bounded::BY_HAND),
        sets: line.sets,
        flags: line.flags,
        extra,
    })?;
    if let Some((path, text)) = &found {
        Found { path, text }.check(&settings)?;
    }
    Ok(settings)
}
