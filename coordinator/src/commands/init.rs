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
/// What the class imports, for editors, which `mine.ts` refers to: there is no package to install.
const TYPES_FILE: &str = "bench-coord.d.ts";
const TYPES: &str = include_str!("../../../typescript/index.d.ts");

/// Writes what is not there yet and prints the names of the files; exit 2 when all are.
pub(super) fn run(args: &InitArgs) -> CliResult {
    let (file, text, system) = match args {
        InitArgs { python: true, .. } => ("mine.py", CLASS, "mine.py:Mine"),
        InitArgs { typescript: true, .. } => ("mine.ts", TYPED_CLASS, "mine.ts:Mine"),
        _ => ("mine.yaml", ADAPTER, "./mine.yaml"),
    };
    let types = args.typescript.then(|| (TYPES_FILE, types()));
    let files = [(DEFAULT_FILE, SETTINGS.to_owned()), (file, text.to_owned())];
    let mut written = Vec::new();
    for (name, text) in files.into_iter().chain(types) {
        if write_new(Path::new(name), &text).map_err(|e| CliError::usage(format!("{name}: {e}")).because(e))? {
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

/// The types of the package as a module of that name.
fn types() -> String {
    let lines = TYPES.replace("export declare ", "export ");
    let inside: Vec<String> =
        lines.lines().map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect();
    format!(
        "// What `bench-coord` brings along for a class, for editors and `tsc`.\ndeclare module \"bench-coord\" {{\n{}\n}}\n",
        inside.join("\n")
    )
}

/// Writes a file; false when there is one.
fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_are_a_module_that_the_class_refers_to() {
        let types = types();
        assert!(types.contains("declare module \"bench-coord\" {\n") && types.ends_with("\n}\n"), "{types}");
        assert!(types.contains("\n  export class System {\n"), "{types}");
        assert!(!types.contains("export declare"), "all of it is declared already");
        assert!(TYPED_CLASS.contains(&format!("<reference path=\"./{TYPES_FILE}\" />")));
    }
}
