//! Known mistakes of a dataset's answer key: annotations with a source. What was published stays the key by which a run is
//! scored; what the corrected key says stands beside it, under names and facets of its own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::dataset::{LABEL_ERROR, LabelFix};
use crate::{call::is_default, facts::part_of_judge};

/// What follows a metric's name and a dot in the scores of such a question, by the corrected key: `locomo-f1.corrected`. Questions
/// whose key is right have no such score, so it is a metric of no report.
pub const CORRECTED: &str = "corrected";

/// The label fixes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelFixesSpec {
    /// Registered name, such as `locomo-audit`.
    pub name: String,
    /// sha256 of the file that was read.
    pub sha256: String,
    /// True when it is not the published file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub modified: bool,
    /// Categories whose answers were looked through.
    pub categories: Vec<String>,
    /// Questions of the whole dataset whose expected answer is wrong, by category.
    pub wrong: BTreeMap<String, u64>,
}

/// Name of the score by the corrected key that stands beside a metric's.
#[must_use]
pub fn corrected_metric(metric: &str) -> String {
    part_of_judge(metric, CORRECTED)
}

/// Whether scores under this name are by a corrected key.
#[must_use]
pub fn is_corrected(metric: &str) -> bool {
    metric.strip_suffix(CORRECTED).is_some_and(|metric| metric.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Gold, GoldRecord};

    #[test]
    fn a_fix_is_a_note_beside_what_was_published() {
        let published = Gold::Text("Sunday".to_owned());
        let mut record = GoldRecord { gold: published.clone(), ..GoldRecord::default() };
        let stored = serde_json::to_value(&record).expect("writes");
        let fix = LabelFix { kind: "temporal-error".to_owned(), gold: Some(Gold::Text("Saturday".to_owned())) };
        record.annotate(Some(&fix));
        assert_eq!((&record.gold, record.facets[LABEL_ERROR].as_str()), (&published, "temporal-error"));
        let corrected = record.corrected().expect("is known");
        assert_eq!((corrected.gold, corrected.fix), (Gold::Text("Saturday".to_owned()), None));
        record.annotate(Some(&LabelFix { gold: None, ..fix }));
        assert!(record.corrected().is_none(), "nobody knows better");
        record.annotate(None);
        assert_eq!(serde_json::to_value(&record).expect("writes"), stored);
        assert!(is_corrected(&corrected_metric("judge")) && !is_corrected("judge"));
    }
}
