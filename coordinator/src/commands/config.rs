//! `config show`: effective settings and where each comes from. `config trust`: a settings file of the current folder may decide
//! where things go.

use bench_settings::{CommandLine, render};

use crate::{
    app::App,
    cli::{ConfigVerb, GlobalArgs},
    exit::{CliError, CliResult, Exit},
    out,
};

/// Prints effective settings with their origins, by default those that somebody has set.
pub(super) fn run(app: &App, verb: &ConfigVerb) -> CliResult {
    match verb {
        ConfigVerb::Show { all } => out::result(&render(&app.settings().show(*all))),
        // works where settings are refused, and was done before they were read
        ConfigVerb::Trust => {}
    }
    Ok(Exit::Done)
}

/// Runs `config trust`.
pub(super) fn trust(args: &GlobalArgs) -> CliResult {
    let line = CommandLine { config: args.config.clone(), ..CommandLine::default() };
    let settings =
        bench_settings::trust(&line, &bench_worker::environment::extra_keys()).map_err(CliError::usage_of)?;
    if settings.is_empty() {
        out::note("nothing in it needs a word; it is trusted all the same until it changes");
    } else {
        out::result(&render(&settings));
        out::note("trusted until it changes");
    }
    Ok(Exit::Done)
}
