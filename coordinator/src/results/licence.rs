//! Whether the texts of a dataset may leave this machine: an archive, and services that keep results, are read by others.

use bench_proto::spec::DatasetSpec;

use crate::cli::ArchivedTexts;

/// Why the texts of a run stay here; `None` where they may go along.
pub(crate) fn kept_back(asked: ArchivedTexts, dataset: &DatasetSpec) -> Option<String> {
    match asked {
        ArchivedTexts::Always => None,
        ArchivedTexts::Never => Some("as was asked for".to_owned()),
        ArchivedTexts::ByLicence => no_licence(dataset),
    }
}

/// Why texts of a dataset may not be handed on; a file of somebody's own is theirs to hand on.
fn no_licence(dataset: &DatasetSpec) -> Option<String> {
    let manifest = &bench_datasets::find(&dataset.name).ok()?.manifest;
    (!manifest.may_be_handed_on())
        .then(|| format!("the authors of {} state no licence that allows to hand its texts on", manifest.name))
}
