//! The archive from this side: what of a run goes into it, how a run is rebuilt, and who pushes by itself. Files and object stores
//! are the business of `bench_report::archive`; here rows of the store become files, and files rows.
//!
//! | module | question |
//! |---|---|
//! | [`bundle`] | what is archived of a run? |
//! | [`texts`] | do its texts go there too? |
//! | [`restore`] | how does it become a run again? |
//! | [`noted`] | what of a store is in an archive, and what is missing there? |
//! | [`auto`] | who pushes when nobody asks? |
//! | [`site`] | what do its runs say as pages? |

pub(crate) mod auto;
pub(crate) mod bundle;
pub(crate) mod noted;
pub(crate) mod restore;
pub(crate) mod site;
pub(crate) mod texts;

use bench_report::archive::{ArchiveError, ArchivePlace};
use bench_worker::transport;

use crate::{
    app::App,
    exit::{CliError, Exit},
};

/// Paths by which machines of a cloud are told which role they have: Amazon's, Google's and Azure's.
const MACHINES: [&str; 4] = ["/latest/api/token", "/latest/meta-data/", "/computeMetadata/", "/metadata/identity/"];

impl From<ArchiveError> for CliError {
    fn from(error: ArchiveError) -> Self {
        // asked of a cloud's machine about its role when no variable names an account
        let asked_the_machine = |why: &str| MACHINES.iter().any(|place| why.contains(place));
        if let ArchiveError::Store(why) = &error
            && asked_the_machine(why)
        {
            return Self::usage(
                "no account for this archive: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_ENDPOINT_URL for another service \
                 than Amazon's), GOOGLE_SERVICE_ACCOUNT or AZURE_STORAGE_ACCOUNT_KEY; this machine has no role of its own",
            )
            .because(error);
        }
        let (exit, advice) = match &error {
            ArchiveError::Url(_) | ArchiveError::Missing(_) | ArchiveError::Conflict(_) | ArchiveError::Link(_) => {
                (Exit::Usage, "")
            }
            ArchiveError::Store(_) => (Exit::Infrastructure, "; nothing is lost, try again"),
            ArchiveError::Damaged(_) => (Exit::Invalid, ""),
        };
        Self::new(exit, format!("{error}{advice}")).because(error)
    }
}

/// Opens the archive that was named, or the configured one; a folder is made when it is not there.
///
/// # Errors
/// Exit 2 with what to give.
pub(crate) fn open(app: &App, named: Option<&str>) -> Result<ArchivePlace, CliError> {
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let url = url(app, named)?;
    transport::warn(app.settings(), transport::to_objects("archive", &url));
    Ok(ArchivePlace::open(&url, environment)?)
}

/// Opens an archive to read from it: a folder that is not there is an error, most likely a wrong name, and is not made.
///
/// # Errors
/// Exit 2 with what to give.
pub(crate) fn open_existing(app: &App, named: Option<&str>) -> Result<ArchivePlace, CliError> {
    let url = url(app, named)?;
    if let Some(folder) = ArchivePlace::folder_of(&url).filter(|folder| !folder.exists()) {
        return Err(CliError::usage(format!(
            "there is no archive {}: check its name; the first `bench-coord archive push` makes it",
            folder.display()
        )));
    }
    open(app, Some(&url))
}

fn url(app: &App, named: Option<&str>) -> Result<String, CliError> {
    let url = named.map(str::to_owned).or_else(|| app.settings().archive_url.clone());
    url.ok_or_else(|| {
        CliError::usage("no archive: give --archive URL, set BENCH_ARCHIVE_URL, or archive.url in bench.toml")
    })
}
