//! `probe`: asks a listener on this machine how it is, so that a container without an HTTP client can be looked after. Exits 0
//! when it answers 200.

use bench_telemetry::{http::BearerToken, probe};

use crate::exit::{CliError, CliResult, Exit};

/// Runs the verb.
pub(super) async fn run(url: &str) -> CliResult {
    let token = BearerToken::from_environment().map_err(|e| CliError::usage(e.to_string()))?;
    probe::ask(url, token.as_ref()).await.map_err(|e| CliError::infrastructure(e.to_string()))?;
    Ok(Exit::Done)
}
