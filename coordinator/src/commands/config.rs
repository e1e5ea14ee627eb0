//! `config show`: effective settings and where each comes from. `config trust`: a settings file of the current folder may decide
//! where things go, its home is acted on, and links in it may lead where they do.

use bench_settings::{CommandLine, DEFAULT_FILE, render};

use crate::{
    app::{App, extra_keys, home::leads},
    cli::{Cli, ConfigVerb},
    exit::{CliError, CliResult, Exit},
    out,
};

/// Prints effective settings with their origins, by default those that somebody has set.
pub(super) fn run(app: &App, verb: &ConfigVerb) -> CliResult {
    match verb {
        ConfigVerb::Show { all, json: true } => out::json(&app.settings().show(*all)),
        ConfigVerb::Show { all, json: false } => out::words(&render(&app.settings().show(*all))),
        // works where settings are refused, and was done before they were read
        ConfigVerb::Trust => {}
    }
    Ok(Exit::Done)
}

/// Takes what the current folder brought along as this user's own.
pub(super) fn trust(cli: &Cli) -> CliResult {
    let line = CommandLine { config: cli.global.config.clone(), ..CommandLine::default() };
    let file = bench_settings::trust(&line, &extra_keys()).map_err(CliError::usage_of)?;
    match &file {
        Some(settings) if settings.is_empty() => {
            out::note("nothing in the settings file needs a word; it is trusted all the same until it changes");
        }
        Some(settings) => {
            out::result(&render(settings));
            out::note("trusted until it changes");
        }
        None => {}
    }
    let app = App::load(cli)?;
    let home = app.home();
    let links = app.links_in_home()?;
    if app.home_is_strange() || !links.is_empty() {
        app.trust_home_and_links()?;
        out::note(&format!("{} is taken as your own until another takes its place", home.display()));
        links.iter().for_each(|link| out::note(&format!("{}, and may until that changes", leads(link))));
    } else if file.is_none() {
        let why =
            format!("there is no {DEFAULT_FILE} in this folder, and nothing in {} that wants a word", home.display());
        return Err(CliError::usage(why));
    }
    // that is what the next verb does
    app.check_links()?;
    Ok(Exit::Done)
}
