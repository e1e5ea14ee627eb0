//! Reference files that are no part of the repository: published vectors and datasets, for tests only.

use std::path::PathBuf;

use serde_json::Value;

/// Reads a JSON file below `$BENCH_REFERENCE_DIR` (default: `shared` beside the workspace). `None`, said loudly, when the
/// folder is not there; everything that uses it is also tested on data of its own.
pub(crate) fn json(path: &str) -> Option<Value> {
    let folder = std::env::var_os("BENCH_REFERENCE_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    if !folder.is_dir() {
        eprintln!("NOT CHECKED against {path}: no folder {}; set BENCH_REFERENCE_DIR", folder.display());
        return None;
    }
    let text = std::fs::read_to_string(folder.join(path)).expect("the reference folder has the file");
    Some(serde_json::from_str(&text).expect("the reference file is JSON"))
}

/// A field that is a string.
pub(crate) fn str(value: &Value) -> &str {
    value.as_str().expect("a string in the reference file")
}

/// A field that is a number.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number in the reference file")
}

/// A field that is a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list in the reference file")
}

/// Published means of naive answers over all of LoCoMo, and its conversations.
pub(crate) fn locomo_baselines() -> Option<(Vec<Value>, Value)> {
    let vectors = json("vectors/astrocyte-and-jeffs-brain.json")?;
    let baselines = list(&vectors["sections"]["locomo_full_dataset_baselines"]["vectors"]).to_vec();
    Some((baselines, json("data/locomo/locomo10.json")?))
}
