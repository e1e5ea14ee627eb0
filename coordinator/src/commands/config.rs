//! `config show`: effective settings and where each comes from.

use crate::{
    app::App,
    cli::ConfigVerb,
    exit::{CliResult, Exit},
    out,
};

/// Runs the verb.
pub(super) fn run(app: &App, verb: &ConfigVerb) -> CliResult {
    let ConfigVerb::Show { all } = verb;
    out::result(&bench_settings::render(&app.settings().show(*all)));
    Ok(Exit::Done)
}
