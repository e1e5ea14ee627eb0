//! The marks of a result that follow from what was asked.

use super::{
    LABEL_ANSWERED_AGAIN, LABEL_DEMO_ANSWERER, LABEL_JUDGE_AUDIT, LABEL_MODIFIED_DATASET, LABEL_OWN_AUDIT,
    LABEL_SIMULATED_ANSWERER, LABEL_SIMULATED_JUDGE, LABEL_UNKNOWN_CHECKSUM,
};
use crate::{
    counting::CountingSpec,
    spec::{ModelSpec, RunSpec},
};

/// The provider of simulated models.
const SIMULATED: &str = "fake";

/// What every view prints beside the result of a run that is asked for like this. They are no part of its digest.
#[must_use]
pub fn labels(spec: &RunSpec) -> Vec<String> {
    let is_simulated = |model: &ModelSpec| model.provider == SIMULATED;
    let demo = (spec.answerer.provider == "extractive").then_some(LABEL_DEMO_ANSWERER);
    let simulated = is_simulated(&spec.answerer).then_some(LABEL_SIMULATED_ANSWERER);
    let judged = spec.judges.iter().any(is_simulated).then_some(LABEL_SIMULATED_JUDGE);
    let audit = spec.dataset.planted.as_ref().map(|planted| match planted.answers_of {
        Some(_) => LABEL_OWN_AUDIT,
        None => LABEL_JUDGE_AUDIT,
    });
    let again = (spec.taken_over.answered_again > 0).then_some(LABEL_ANSWERED_AGAIN);
    let modified = spec.dataset.modified.then_some(LABEL_MODIFIED_DATASET);
    let unknown = spec.dataset.checksum_unknown.then_some(LABEL_UNKNOWN_CHECKSUM);
    let fixed = [demo, simulated, judged, audit, again, modified, unknown];
    let counted = spec.counting.as_ref().map(CountingSpec::label);
    fixed.into_iter().flatten().map(str::to_owned).chain(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_is_marked_by_who_answered_and_who_judged() {
        let text = include_str!("../../golden/run_spec.v1.json");
        let mut spec: RunSpec = serde_json::from_str(text).expect("a golden spec");
        let real = labels(&spec);
        assert!(!real.iter().any(|label| label.starts_with("simulated")), "{real:?}");
        let simulated =
            ModelSpec { provider: SIMULATED.to_owned(), name: "simulated".to_owned(), ..spec.answerer.clone() };
        spec.judges = vec![spec.answerer.clone(), simulated.clone()];
        assert!(labels(&spec).contains(&LABEL_SIMULATED_JUDGE.to_owned()), "one of a panel is enough");
        spec.answerer = simulated;
        let both = labels(&spec);
        assert_eq!(both[..2], [LABEL_SIMULATED_ANSWERER, LABEL_SIMULATED_JUDGE]);
    }
}
