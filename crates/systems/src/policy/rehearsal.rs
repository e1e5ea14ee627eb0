//! What a rehearsal (`faulty`) does to whoever carries it out: it may keep its banks in a folder, a path of whoever wrote the run,
//! and end the process that asks it, which works for others too.

use bench_proto::policy::SystemPolicy;
use serde_json::Value;

use super::{Lack, Refusal, SystemHash};
use crate::SystemSettings;

const SYSTEM: &str = "faulty";
/// What begins its settings.
const OWN: &str = "faulty.";
/// Setting that names a folder to write into.
const FOLDER: &str = "faulty.memory";
/// Setting that ends the process.
const KILL: &str = "faulty.kill";

/// Settings of a rehearsal that does something to others; none for all other systems.
pub(super) fn settings_of(settings: &SystemSettings) -> Option<SystemSettings> {
    let harmful = folder(settings).is_some() || kills(settings);
    let own = settings.iter().filter(|(name, _)| name.starts_with(OWN));
    harmful.then(|| own.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Whether a built-in system of these settings may do here what they say.
///
/// # Errors
/// What it does, and how to allow it.
pub(super) fn check(settings: &SystemSettings, policy: &SystemPolicy) -> Result<(), Box<Refusal>> {
    let Some(hash) = SystemHash::of_settings(settings) else { return Ok(()) };
    if policy.any || policy.lists(&hash.hex()) {
        return Ok(());
    }
    let folder = folder(settings).filter(|folder| !policy.files.iter().any(|listed| listed == folder));
    let kills = kills(settings).then(|| Lack::Whole(format!("ends the process that asks it ({KILL})")));
    let lacks: Vec<Lack> = folder.map(|folder| Lack::Folder(folder.to_owned())).into_iter().chain(kills).collect();
    if lacks.is_empty() { Ok(()) } else { Err(Box::new(Refusal::of_rehearsal(SYSTEM, hash, lacks))) }
}

fn folder(settings: &SystemSettings) -> Option<&str> {
    settings.get(FOLDER).and_then(Value::as_str).filter(|folder| !folder.is_empty())
}

/// Whatever is no zero.
fn kills(settings: &SystemSettings) -> bool {
    let is_zero = |value: &Value| match value {
        Value::String(text) => text.trim().parse::<f64>() == Ok(0.0),
        other => other.as_f64() == Some(0.0),
    };
    settings.get(KILL).is_some_and(|value| !is_zero(value))
}
