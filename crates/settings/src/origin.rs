//! Where a value comes from.

use std::fmt;

/// Where a value comes from; later ones are stronger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// Follows another setting, which is not at its default.
    Follows(&'static str),
    /// The configuration file.
    File(FilePosition),
    /// A profile in the configuration file.
    Profile(String, FilePosition),
    /// An environment variable.
    Env(String),
    /// A flag, with its dashes.
    Flag(String),
    /// A file that holds a key.
    KeyFile(String),
}

/// A place in a file; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    /// Path as it was given.
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
}

impl FilePosition {
    /// The place of a byte in a text.
    pub(crate) fn at_byte(path: &str, text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Follows(key) => write!(f, "follows {key}"),
            Self::File(place) => write!(f, "{}:{}", place.path, place.line),
            Self::Profile(name, place) => write!(f, "{}:{} (profile {name})", place.path, place.line),
            Self::Env(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::KeyFile(path) => f.write_str(path),
        }
    }
}
