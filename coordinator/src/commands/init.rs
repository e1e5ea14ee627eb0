//! `init`: a settings file and a memory system to begin with, in the current folder. Nothing is written over.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use bench_settings::DEFAULT_FILE;

use crate::{
    cli::InitArgs,
    exit::{CliError, CliResult, Exit},
    out,
};

const SETTINGS: &str = include_str!("../../init/bench.toml");
const ADAPTER: &str = include_str!("../../init/mine.yaml");
const CLASS: &str = include_str!("../../init/mine.py");
const TYPED_CLASS: &str = include_str!("../../init/mine.ts");

/// Writes what is not there yet and prints the names of the files; exit 2 when both are.
pub(super) fn run(args: &InitArgs) -> CliResult {
    let (file, text, system) = match args {
        InitArgs { python: true, .. } => ("mine.py", CLASS, "mine.py:Mine"),
        InitArgs { typescript: true, .. } => ("mine.ts", TYPED_CLASS, "mine.ts:Mine"),
        _ => ("mine.yaml", ADAPTER, "./mine.yaml"),
    };
    let mut written = Vec::new();
    for (name, text) in [(DEFAULT_FILE, SETTINGS), (file, text)] {
        if write_new(Path::new(name), text).map_err(|e| CliError::usage(format!("{name}: {e}")).because(e))? {
            written.push(name);
        } else {
            out::note(&format!("{name} is there already and stays as it is"));
        }
    }
    if written.is_empty() {
        return Err(CliError::usage("there is nothing to write: go to an empty folder, or take these files away"));
    }
    written.iter().for_each(|name| out::result(name));
    let begins = if args.python || args.typescript { "" } else { ", when the server that it names is up" };
    out::note(&format!(
        "next{begins}: `bench-coord systems try {system}`, then `bench-coord submit --system {system}`; without it: `bench-coord submit`"
    ));
    Ok(Exit::Done)
}

/// Writes a file; false when there is one.
fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
