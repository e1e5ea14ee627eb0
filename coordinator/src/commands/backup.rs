//! `backup FILE`: a local store in one file, as it is at one moment, also while runs go on in it.

use bench_store::sqlite;

use crate::{
    app::App,
    cli::BackupArgs,
    exit::{CliError, CliResult, Exit},
    out,
};

/// Copies a local store to a new file and prints its path; exit 2 for a store that is no file.
pub(super) async fn run(app: &App, args: &BackupArgs) -> CliResult {
    let file = args.file.display();
    if app.store_file().is_none() {
        return Err(CliError::usage(format!(
            "backup copies a store in a file; PostgreSQL has its own: pg_dump -Fc -d \"$BENCH_STORE_URL\" -f {file}"
        )));
    }
    let copy = sqlite::back_up(&app.settings().store_url, &args.file).await?;
    out::result(&format!(
        "{file}: {} runs, {:.1} MB; `--store sqlite:{file}` opens it",
        copy.runs,
        copy.bytes as f64 / 1e6
    ));
    Ok(Exit::Done)
}
