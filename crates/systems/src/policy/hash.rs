//! An adapter by its hash: everything that its file says, the mode, and the words that a run chooses for a class. A rehearsal by that of its settings.

use std::fmt;

use bench_proto::ids::Sha256Hash;
use serde_json::Value;

use super::rehearsal;
use crate::{
    SystemSettings,
    adapter::{self, AdapterSpec},
};

/// Marks what is hashed: another way to write adapters is another mark.
const MARK: &str = "bench-system-v1";
/// Marks what is hashed of a rehearsal.
const REHEARSAL_MARK: &str = "bench-rehearsal-v1";

/// Adapters that this build and those before it bring along: hash, name, mode, a line each. Lines stay.
const SHIPPED: &str = include_str!("../adapter/shipped/hashes.txt");

/// Hashes of the shipped adapters.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.lines().filter_map(|line| line.split(' ').next()).filter(|hash| hash.len() == 64)
}

/// sha256 of an adapter's canonical form and its mode, or of a rehearsal's settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemHash([u8; 32]);

impl SystemHash {
    /// Of an adapter in the mode of these settings.
    #[must_use]
    pub fn compute(spec: &AdapterSpec, settings: &SystemSettings) -> Self {
        let mode = settings.get(adapter::MODE).and_then(Value::as_str).unwrap_or("raw");
        let mut text = format!("{MARK}\n{mode}\n");
        // settings that later builds add are left out while nobody gives them: no hash changes by them
        write_canonical(&serde_json::to_value(spec).unwrap_or_default(), &mut text);
        let words = adapter::settings::free_texts_of_class(spec, settings);
        if !words.is_empty() {
            text.push('\n');
            write_canonical(&serde_json::to_value(words).unwrap_or_default(), &mut text);
        }
        Self(Sha256Hash::of_bytes(text.as_bytes()).0)
    }

    /// Of settings that hold an adapter, or a rehearsal that does something to others; `None` for others.
    #[must_use]
    pub fn of_settings(settings: &SystemSettings) -> Option<Self> {
        if let Some(adapter) = settings.get(adapter::ADAPTER) {
            let spec = serde_json::from_value(adapter.clone()).ok()?;
            return Some(Self::compute(&spec, settings));
        }
        let mut text = format!("{REHEARSAL_MARK}\n");
        write_canonical(&serde_json::to_value(rehearsal::settings_of(settings)?).ok()?, &mut text);
        Some(Self(Sha256Hash::of_bytes(text.as_bytes()).0))
    }

    /// 64 hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        Sha256Hash(self.0).hex()
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        Sha256Hash::from_hex(text).map(|hash| Self(hash.0))
    }
}

impl fmt::Debug for SystemHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// JSON without spaces, names of members in the order of their bytes.
fn write_canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            into.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                into.push_str(&Value::from(name.as_str()).to_string());
                into.push(':');
                write_canonical(&members[name], into);
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                write_canonical(item, into);
            }
            into.push(']');
        }
        plain => into.push_str(&plain.to_string()),
    }
}
