//! Looks for what there is of the banks of a planned run, in runs or in an archive, and says what was found.

use std::sync::Arc;

use bench_proto::spec::RunSpec;
use bench_store::NewBank;

use super::super::{PlannedRun, planner};
use crate::{exit::CliError, out};

/// What is found for the banks of a run, in their order; those for which nothing is are left out.
///
/// # Errors
/// What the dataset meets.
pub(in super::super) async fn looked_up<T: Send + 'static>(
    planned: &PlannedRun,
    find: impl Fn(&NewBank) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, CliError> {
    let (dataset, banks) = (Arc::clone(&planned.dataset), planned.banks_in_order());
    let spec = planned.spec.clone();
    let look = move || {
        let mut found = Vec::new();
        for batch in planner::batches(dataset.as_ref(), &banks, Some(&spec)) {
            found.extend(batch?.banks.iter().filter_map(&find));
        }
        Ok(found)
    };
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|e| CliError::internal_fault("looking for banks that are filled already", e))?
}

/// Whether nothing is asked of a bank before all is retained.
pub(in super::super) fn is_asked_at_its_end(bank: &NewBank) -> bool {
    bank.segments.windows(2).all(|two| two[0].until == two[1].until)
}

/// Says something of the banks of a run, and keeps it for the report.
pub(in super::super) fn note(spec: &mut RunSpec, told: String) {
    out::note(&told);
    spec.sample.notes.push(told);
}
