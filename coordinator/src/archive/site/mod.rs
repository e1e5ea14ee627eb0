//! Static pages of an archive, from its files alone: no store and no network beside the archive itself.
//!
//! Whoever can write to an archive chooses what its files say, so all of them are bounded, checked against each other, and what does
//! not fit together is left out and named. Pages say figures alone ([`bench_report::site`]).
//!
//! | module | question |
//! |---|---|
//! | [`reading`] | what of an archived run is read, and when is it left out? |
//! | [`choosing`] | which runs stand on a page, and which of them may be held against each other? |
//! | [`boards`] | who shares a rank, and what does each pair say? |
//! | [`folder`] | which folder is ours to write into? |

mod boards;
mod choosing;
mod folder;
mod reading;

use std::{collections::BTreeMap, path::Path};

use bench_report::{
    archive::{ArchivePlace, fetch::list},
    site::{self, Site, names},
};

use self::{boards::Boards, folder::SiteFolder, reading::ArchivedRun};
use crate::exit::{CliError, Exit};

/// What is wanted of the pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Results that others have published stand beside ours.
    pub(crate) published: bool,
    /// Seed of the bootstrap.
    pub(crate) seed: u64,
}

/// Writes the pages of an archive into a folder; those of an earlier time are renewed.
///
/// # Errors
/// Exit 2 for a folder that is not ours and an archive without runs, 5 for one of which no run can be read, 4 for what the archive or
/// the disk meets.
pub(crate) async fn make(place: &ArchivePlace, folder: &Path, wanted: Wanted) -> Result<Site, CliError> {
    let folder = SiteFolder::look_at(folder)?;
    let listed = list(place).await?;
    let mut left_out = listed.left_out;
    if listed.entries.is_empty() && left_out.is_empty() {
        return Err(CliError::usage(format!(
            "{} holds no run: `bench-coord archive push --archive {0}` brings the finished runs of a store there",
            place.describe()
        )));
    }
    let runs = reading::runs(place, listed.entries, &mut left_out).await?;
    let mut by_dataset: BTreeMap<String, Vec<ArchivedRun>> = BTreeMap::new();
    for run in runs {
        by_dataset.entry(run.entry.dataset.clone()).or_default().push(run);
    }
    let (mut pages, mut datasets) = (None, Vec::with_capacity(by_dataset.len()));
    for (name, runs) in by_dataset {
        let Some(boards) = Boards::of_dataset(place, &name, runs, wanted, &mut left_out).await? else { continue };
        // nothing is made before there is something to show
        let mut here = pages.take().map_or_else(|| folder.begin(), Ok)?;
        boards.each_page(|file, html| here.write(file, html))?;
        here.write(&boards.dataset.page, &site::dataset(&boards.dataset).map_err(CliError::infrastructure_of)?)?;
        datasets.push(boards.dataset);
        pages = Some(here);
    }
    let Some(mut pages) = pages else {
        let why = left_out.first().map_or("", String::as_str);
        return Err(CliError::new(
            Exit::Invalid,
            format!("no run of {} can be shown: {why}; `bench-coord archive verify` looks at all", place.describe()),
        ));
    };
    let site = Site::new(datasets, left_out);
    pages.write(names::INDEX, &site::index(&site).map_err(CliError::infrastructure_of)?)?;
    pages.finish(&site)?;
    Ok(site)
}

#[cfg(test)]
mod tests;
