//! What a result tells of the settings of its memory system.

use bench_proto::summary::SpecSummary;
use serde_json::Value;

/// Settings of a memory system that say where it is, or are a file of it: no setting of the run.
const PLACES: [&str; 6] =
    ["adapter", "system.url", "vector.folder", "vector.precomputed", "vector.queries", "faulty.memory"];

/// Settings of the memory system that the run has chosen: not where it is, nor the files of it.
pub(crate) fn settings_of(spec: &SpecSummary) -> impl Iterator<Item = (&String, &Value)> {
    spec.system_settings.iter().filter(|(name, _)| !PLACES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden;

    #[test]
    fn places_of_a_system_are_no_settings() {
        let mut spec = golden::report().spec;
        spec.system_settings = PLACES.map(|name| (name.to_owned(), "http://inside".into())).into();
        spec.system_settings.insert("bm25.k1".to_owned(), json!(0.9));
        assert_eq!(settings_of(&spec).collect::<Vec<_>>(), [(&"bm25.k1".to_owned(), &json!(0.9))]);
    }
}
