//! `man [VERB…]`: manual pages in roff, of the same words as `--help`.

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::{
    cli::{Cli, ManArgs},
    exit::{CliError, CliResult, Exit},
    out,
};

/// Prints a page, or writes those of all verbs into a folder.
pub(super) fn run(args: &ManArgs) -> CliResult {
    match &args.output_dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder)).map_err(
                |error| {
                    CliError::infrastructure(format!("{}: cannot be written: {error}", folder.display())).because(error)
                },
            )?;
            out::note(&format!("{}: bench-coord.1 and the pages of its verbs", folder.display()));
        }
        None => {
            let mut page = Vec::new();
            let written = Man::new(of_verb(&args.verb)?).render(&mut page);
            written.map_err(|error| {
                CliError::infrastructure(format!("the page cannot be written: {error}")).because(error)
            })?;
            out::file(out::Kind::Words, &String::from_utf8_lossy(&page));
        }
    }
    Ok(Exit::Done)
}

/// The command of a verb (`datasets`, `show`), or of the program.
fn of_verb(words: &[String]) -> Result<Command, CliError> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    for word in words {
        command = command.find_subcommand(word).cloned().ok_or_else(|| {
            let verb = words.join(" ");
            CliError::usage(format!("there is no verb '{verb}'; `bench-coord --help` lists them"))
        })?;
    }
    Ok(command)
}
