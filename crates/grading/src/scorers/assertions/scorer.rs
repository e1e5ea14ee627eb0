//! The scorer: what came of a question's assertions, as metrics.

use bench_proto::{
    dataset::Gold,
    metric::{MetricSpec, Scale},
};

use super::{Evaluation, PassType, evaluate};
use crate::scorers::{Origin, Reads, ScoreCase, Scorer};

/// See [`evaluate()`].
pub struct Assertions;

/// Its metrics, the headline's first, with their scales.
const METRICS: [(&str, Scale); 10] = [
    ("assertions", Scale::PLAIN),
    ("relevant-precision", Scale::PLAIN),
    ("relevant-recall", Scale::PLAIN),
    ("pinned-coverage", Scale::PLAIN),
    ("drift-noise", Scale::lower(0.0)),
    ("drift-imprecision", Scale::lower(0.0)),
    ("drift-topics", Scale::lower(0.0)),
    ("passed-actively", Scale::PLAIN),
    ("passed-structurally", Scale::PLAIN),
    ("passed-trivially", Scale::PLAIN),
];

impl Scorer for Assertions {
    fn name(&self) -> &str {
        METRICS[0].0
    }

    fn description(&self) -> &str {
        "1 when all holds that is asserted of what surfaces, else 0; with precision, recall, drift in three definitions, kind of pass"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin {
            source: "PrecisionMemBench, retrieval and session-retrieval runners; Tenure's own runner",
            vectors: &[
                "tenure_static_cases",
                "tenure_session_cases",
                "tenure_reference_retrievers",
                "tenure_drift_recomputed",
            ],
        }
    }

    fn reads(&self) -> Reads {
        Reads::Hits
    }

    fn metrics(&self) -> Vec<MetricSpec> {
        METRICS.iter().map(|(name, scale)| MetricSpec { name: (*name).to_owned(), scale: *scale }).collect()
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        self.scores(case).into_iter().next().flatten()
    }

    fn scores(&self, case: &ScoreCase<'_>) -> Vec<Option<f64>> {
        // who was not asked is not graded for its silence
        let (Some(Gold::Assertions(assertions)), Some(_)) = (case.gold(), case.retrieval) else {
            return vec![None; METRICS.len()];
        };
        let result = evaluate(assertions, case.hits.iter().map(|hit| hit.id.as_str()));
        let pass_type = result.pass_type(assertions.beside.structural);
        let share = |holds: bool| Some(f64::from(u8::from(holds)));
        let Evaluation { precision, recall, pinned_coverage, drift, .. } = result;
        // published figures leave the range where a turn expects what is pinned; scores keep to it
        let bounded = |figure: Option<f64>| figure.map(|figure| figure.clamp(0.0, 1.0));
        vec![
            share(pass_type.is_some()),
            bounded(precision),
            recall,
            pinned_coverage,
            drift.map(|drift| drift.noise),
            bounded(drift.map(|drift| drift.imprecision)),
            drift.and_then(|drift| drift.topics),
            share(pass_type == Some(PassType::Active)),
            share(pass_type == Some(PassType::Structural)),
            share(pass_type == Some(PassType::Trivial)),
        ]
    }
}
