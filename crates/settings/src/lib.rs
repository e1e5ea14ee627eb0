//! Settings in layers: defaults < file < profile < environment < flags. Each effective value knows its origin.
//!
//! In come the texts of those layers ([`Sources`]) and the settings that others bring ([`ExtraKey`]); out come [`Settings`],
//! typed section by section, or every problem with its place. Start reading at [`Settings::load`], then at `layers`.
//!
//! - `default-config.toml` holds every setting with its default and meaning; it is inside the program ([`DEFAULT_CONFIG`]).
//! - [`Settings::load`] is pure over its [`Sources`]; [`from_process`] reads the process.
//! - Unknown names, wrong types and keys in the open are errors with file, line and column; all are reported at once.
//! - `bench.toml` of the current folder may decide where things go only after `trust`; a file that is named may.
//! - What else a process takes from its machine is read here once: its [`signals`], its [`host_name`], [`private`] files.
//! - Keys come from the environment or from key files, are held as [`secrecy::SecretString`], and are shown as set or not.
//!
//! To add a setting: a line in `default-config.toml`, one in `schema.rs`, a field in `view.rs`. Settings of a dataset or a
//! memory system need none of these: they are handed in as [`ExtraKey`]s by whoever knows the registries. (The built-in systems'
//! `bm25` and `random` stand in the file too, as examples.)

mod accounts;
pub mod bounded;
mod command_line;
mod duration;
mod error;
mod file;
pub mod homes;
mod layers;
pub mod numbers;
mod origin;
mod own;
pub mod private;
mod process;
mod schema;
mod show;
pub mod signals;
#[cfg(test)]
mod tests;
mod transport;
mod trust;
mod value;
mod view;

pub use accounts::{Account, ApiKey, ModelRole};
pub use command_line::{CommandLine, DEFAULT_FILE};
pub use error::{Problem, SettingsError};
pub use layers::{Entry, FlagValue, Sources};
pub use origin::{FilePosition, Origin};
pub use own::OwnList;
pub use process::{from_process, host_name};
pub use schema::{ExtraKey, Kind, has_section};
pub use show::{ShownSetting, render};
pub use transport::{Protection, Way};
pub use trust::trust;
pub use value::Value;
pub use view::{
    BackoffSettings, MeterSettings, ModelCallSettings, RoleSettings, RunSettings, Settings, WorkerSettings,
};

/// The built-in defaults, commented: also the reference of all settings.
pub const DEFAULT_CONFIG: &str = include_str!("../default-config.toml");
