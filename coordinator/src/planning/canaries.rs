//! Does a run store facts of its own beside the dataset (P45)?

use bench_proto::{
    canary::{CANARY_FACTS, CANARY_VERSION, CanarySpec},
    spec::RunSpec,
};
use bench_systems::{Capabilities, canary};

/// The scorer that holds everything that came back against what must and must not: one more memory would change it.
const OF_EXACT_SETS: &str = "assertions";

/// What a planned run has of canaries. None where they can tell nothing, or would change what is measured: then turns
/// of the dataset are looked for instead, as far as that is possible. `wanted` is what its person says.
pub(super) fn canaries(spec: &RunSpec, capabilities: &Capabilities, wanted: bool) -> Option<CanarySpec> {
    canary::possible(capabilities).ok()?;
    if !wanted {
        return Some(CanarySpec::OFF);
    }
    let is_exact = spec.scorers.iter().any(|scorer| scorer.name == OF_EXACT_SETS);
    // an answer of the memory system's own rests on all that it holds
    let answers_itself = spec.scenario.answers() && spec.answerer.provider == "system";
    // what facts take of the hits must be made up for
    let room = capabilities.max_k.map(|most| most.saturating_sub(spec.hits_asked_for().1));
    if is_exact || answers_itself || spec.counting.is_some() || room == Some(0) {
        return None;
    }
    let most_in_bank = room.filter(|room| *room < CANARY_FACTS);
    Some(CanarySpec { version: CANARY_VERSION, facts: CANARY_FACTS, most_in_bank })
}
