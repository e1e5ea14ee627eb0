//! `probe`: asks a listener on this machine how it is, so that a container without an HTTP client can be looked after. Exits 0
//! when it answers 200.

use bench_telemetry::{http::BearerToken, probe};

use crate::exit::{CliError, CliResult, Exit};

/// Asks a listener of this machine and prints nothing; exit 4 when it is not well.
pub(super) async fn run(url: &str) -> CliResult {
    let token = BearerToken::from_environment().map_err(CliError::usage_of)?;
    probe::ask(url, token.as_ref()).await.map_err(CliError::infrastructure_of)?;
    Ok(Exit::Done)
}
