//! `man [VERB…]`: manual pages in roff, of the same words as `--help`.

use std::path::Path;

use bench_worker::version::VERSION;
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
            let program = of_verb(&[])?;
            std::fs::create_dir_all(folder).and_then(|()| write_into(folder, program)).map_err(|error| {
                CliError::infrastructure(format!("{}: cannot be written: {error}", folder.display())).because(error)
            })?;
            out::note(&format!("{}: bench-coord.1 and the pages of its verbs", folder.display()));
        }
        None => {
            let mut page = Vec::new();
            let written = page_of(of_verb(&args.verb)?).render(&mut page);
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

/// The page of a verb, or of the program: its title says of which version it is.
fn page_of(command: Command) -> Man {
    Man::new(command).source(format!("bench-coord {VERSION}"))
}

/// Writes the pages of a verb and of those below it.
fn write_into(folder: &Path, command: Command) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_into(folder, below.clone())?;
    }
    page_of(command).generate_to(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_every_page_has_the_version() {
        for words in [&["report"][..], &["datasets", "show"], &[]] {
            let words: Vec<String> = words.iter().map(|&word| str::to_owned(word)).collect();
            let mut page = Vec::new();
            page_of(of_verb(&words).expect("a verb")).render(&mut page).expect("renders");
            let page = String::from_utf8(page).expect("is text");
            let title = page.lines().find(|line| line.starts_with(".TH ")).expect("a title");
            assert!(title.contains(&format!("bench-coord {VERSION}")), "{title}");
        }
    }
}
