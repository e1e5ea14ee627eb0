//! Given vectors of a run: does everything that it retains and asks have one?

use std::{collections::HashSet, sync::Arc};

use bench_datasets::Dataset;
use bench_plan::Sample;
use bench_proto::{dataset::Bank, scenario::RecallPlan, spec::SystemSpec};
use bench_systems::vector::GivenVectors;

use super::read_apart;
use crate::exit::CliError;

/// Looks through the banks of a sample, where the vectors of its memories are given. Nothing is read otherwise.
///
/// # Errors
/// Exit 2 with the first memory or question that has no vector, a model that makes others, recalls whose words nobody knows before.
pub(super) async fn check(
    system: &SystemSpec,
    recalls: RecallPlan,
    dataset: &Arc<dyn Dataset>,
    sample: &Sample,
) -> Result<(), CliError> {
    let given = GivenVectors::of_system(&system.name, &system.settings).map_err(CliError::usage_of)?;
    let Some(given) = given else { return Ok(()) };
    if given.knows_its_queries_only() && recalls.most() > 1 {
        return Err(CliError::usage(
            "vector.queries: a model words further searches of this scenario, and nobody has made vectors of them: leave it \
             out and let vector.model embed what is searched for, or take --scenario answer",
        ));
    }
    given.check_model().await.map_err(CliError::usage)?;
    let (dataset, banks, max_sessions) = (Arc::clone(dataset), sample.banks.clone(), sample.spec.max_sessions);
    read_apart(move || {
        for sampled in banks {
            let Bank { mut content, questions, .. } = dataset.bank(sampled.file_index as usize)?;
            if let Some(most) = max_sessions {
                content.keep_sessions(most);
            }
            let asked: HashSet<u32> = sampled.questions.iter().copied().collect();
            let asked = questions.iter().filter(|question| asked.contains(&question.index));
            given.check_bank(&content, asked).map_err(CliError::usage)?;
        }
        Ok(())
    })
    .await
}
