//! Whether the texts of a run's questions, memories and answers go into an archive, which is made to be read by others.

use bench_proto::spec::DatasetSpec;

use crate::{app::App, cli::ArchivedTexts};

/// Why the texts of a run stay here; `None` where they go into the archive. `asked` was said for this push, else the setting
/// `archive.texts` decides.
pub(crate) fn kept_back(app: &App, asked: Option<ArchivedTexts>, dataset: &DatasetSpec) -> Option<String> {
    let asked = asked.unwrap_or(match app.settings().archive_texts.as_str() {
        "always" => ArchivedTexts::Always,
        "never" => ArchivedTexts::Never,
        _ => ArchivedTexts::ByLicence,
    });
    match asked {
        ArchivedTexts::Always => None,
        ArchivedTexts::Never => Some("as was asked for".to_owned()),
        ArchivedTexts::ByLicence => {
            // a file of somebody's own is theirs to hand on
            let manifest = &bench_datasets::find(&dataset.name).ok()?.manifest;
            (!manifest.may_be_handed_on())
                .then(|| format!("the authors of {} state no licence that allows to hand its texts on", manifest.name))
        }
    }
}
