//! Datasets from an object store of one's own (`BENCH_DATASETS_URL`), in place of their source: machines without a way out have
//! them this way. What is wanted, and whether it is the right file, is decided in `bench_datasets`.

#[cfg(feature = "archive")]
use bench_datasets::Wanted;
use bench_datasets::{OnProgress, OpenOptions};
#[cfg(feature = "archive")]
use bench_report::archive::{ArchiveError, ArchivePlace};
#[cfg(feature = "archive")]
use bench_worker::transport;

use crate::{app::App, exit::CliError};

/// Brings a dataset's files into the cache when they are on no folder of this machine and a store of one's own is named.
///
/// # Errors
/// Exit 2 for a URL that names no store and for files that are not there or not the published ones.
#[cfg(feature = "archive")]
pub(crate) async fn bring(
    app: &App,
    name: &str,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<(), CliError> {
    let Some(url) = &app.settings().datasets_url else { return Ok(()) };
    let no_store = |why: &str| {
        CliError::usage(format!(
            "BENCH_DATASETS_URL {}: {why}; give s3://BUCKET/PATH, gs://…, az://… or https:// of an S3 service such as R2; \
             a folder is named by BENCH_DATASETS_DIR",
            bench_proto::redact::url(url)
        ))
    };
    if !url.contains("://") {
        return Err(no_store("is no URL of an object store"));
    }
    let wanted = bench_datasets::wanted(name, options)?;
    if wanted.is_empty() {
        return Ok(());
    }
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    transport::warn(app.settings(), transport::to_objects("datasets", url));
    let place = ArchivePlace::open(url, environment).map_err(|error| match &error {
        // its own text speaks of archives
        ArchiveError::Url(why) => no_store(why).because(error),
        _ => no_store(&error.to_string()).because(error),
    })?;
    for wanted in &wanted {
        receive(&place, wanted, on_progress).await?;
    }
    Ok(())
}

/// Brings one file.
#[cfg(feature = "archive")]
async fn receive(place: &ArchivePlace, wanted: &Wanted, on_progress: OnProgress<'_>) -> Result<(), CliError> {
    let source = format!("{}/{}", place.describe(), wanted.object);
    let failed = |error: ArchiveError| match error {
        // its own text speaks of an archive
        ArchiveError::Store(reason) => wanted.failed(&source, reason),
        other => wanted.failed(&source, other.to_string()),
    };
    let mut arrival = wanted.receive(&source)?;
    let from = arrival.goes_on_from().map(|(at, tag)| (at, tag.to_owned()));
    let from = from.as_ref().map(|(at, tag)| (*at, tag.as_str()));
    let Some(mut pieces) = place.pieces_from(&wanted.object, from).await.map_err(failed)? else {
        let reason = "there is no such object, and BENCH_DATASETS_URL stands in place of the public source";
        return Err(wanted.failed(&source, reason.to_owned()).into());
    };
    arrival.comes(pieces.from, pieces.tag.as_deref(), pieces.bytes)?;
    while let Some(piece) = pieces.next().await.map_err(failed)? {
        on_progress(arrival.write(&piece)?, Some(pieces.bytes));
    }
    Ok(arrival.keep()?)
}

/// A build without object stores.
#[cfg(not(feature = "archive"))]
#[expect(clippy::unused_async, reason = "as the other one")]
pub(crate) async fn bring(app: &App, _: &str, _: &OpenOptions, _: OnProgress<'_>) -> Result<(), CliError> {
    match &app.settings().datasets_url {
        None => Ok(()),
        Some(_) => Err(CliError::usage("this build has no object stores (feature archive); use BENCH_DATASETS_DIR")),
    }
}
