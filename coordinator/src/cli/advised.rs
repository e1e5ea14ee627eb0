//! What messages, help and pages tell people to type can be typed: each `bench-coord …` between backticks is read as a command line.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use clap::{Parser as _, error::ErrorKind};

use super::{Cli, Several};

/// Folders of sources whose messages people read.
const SOURCES: [&str; 5] = ["coordinator/src", "crates", "datasets/src", "proto/src", "worker/src"];
const PROGRAM: &str = "bench-coord";

/// Where a command is named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// In a text that people are shown.
    Message,
    /// In a comment or on a page, where a verb by itself is its name.
    Prose,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files with an ending below a folder.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["target", "tests", "fuzz"].contains(&name) {
            files(&path, ending, found);
        } else if name.ends_with(ending) && name != "tests.rs" {
            found.push(path);
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// What a line comments; nothing of others.
fn comment(line: &str) -> &str {
    if is_comment(line) { line.trim_start_matches([' ', '/', '!']) } else { "\n" }
}

/// The comments of a source, and the rest of it with each text of several lines in one.
fn apart(source: &str) -> [String; 2] {
    let comments: Vec<&str> = source.lines().map(comment).collect();
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    let code = code.join("\n");
    let mut parts = code.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let code = parts.fold(first, |whole, part| whole + part.trim_start());
    [comments.join(" "), code]
}

/// Commands between backticks.
fn commands(text: &str) -> Vec<String> {
    let of_place = |(at, _): (usize, &str)| {
        let command = text[at + 1..].split('`').next()?;
        command.strip_prefix(PROGRAM)?.starts_with(' ').then(|| command.to_owned())
    };
    text.match_indices("`bench-coord").filter_map(of_place).collect()
}

/// A text with a word in each place that a message fills in.
fn filled(text: &str) -> String {
    // these are filled in with flags
    let mut rest = text.replace("{raised}", " --max-cost 1").replace("{more}", " --max-cost 1");
    let mut filled = String::new();
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        filled.push('x');
        rest = behind.split_once('}').map_or_else(String::new, |(_, behind)| behind.to_owned());
    }
    filled + &rest
}

/// The words of a command as a person would type them: `[QUESTION]` may be there, of `[--a|--b]` the first is taken, N is a number, and
/// … is whatever comes there.
fn words(command: &str) -> Vec<OsString> {
    let command = filled(command.split(" | ").next().unwrap_or_default());
    let mut words: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        let is_optional = word.starts_with('[');
        let word = word.trim_matches(['[', ']', '\'']);
        let first = if is_optional { word.split('|').next().unwrap_or_default() } else { word };
        match first {
            "…" if words.last().is_some_and(|last| last.starts_with("--")) => words.push("1".to_owned()),
            "…" => {}
            "N" | "K" => words.push("1".to_owned()),
            _ => words.push(first.to_owned()),
        }
    }
    words.into_iter().map(OsString::from).collect()
}

/// What is wrong with a command, in a line.
fn problem(command: &str, named: Named) -> Option<String> {
    let words = words(command);
    // `bench-coord VERB --help` is about any of them
    if words.get(1).is_some_and(|verb| verb == "VERB") {
        return None;
    }
    // verbs are words of small letters
    let is_verb = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    let is_name = words.iter().all(|word| word.to_str().is_some_and(is_verb));
    let several = Several::find(&words);
    let error = Cli::try_parse_from(several.as_ref().map_or(words, Several::first)).err()?;
    let lacks = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    let is_right = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        kind if lacks.contains(&kind) => named == Named::Prose && is_name,
        _ => false,
    };
    (!is_right).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[test]
fn what_people_are_told_to_type_can_be_typed() {
    let mut told = Vec::new();
    let mut sources = Vec::new();
    SOURCES.iter().for_each(|folder| files(&root().join(folder), ".rs", &mut sources));
    // this one names what is wrong
    for path in sources.into_iter().filter(|path| !path.ends_with("cli/advised.rs")) {
        let [comments, code] = apart(&fs::read_to_string(&path).expect("can be read"));
        told.push((path.clone(), Named::Prose, comments));
        told.push((path, Named::Message, code));
    }
    let mut pages = vec![root().join("README.md")];
    let docs = fs::read_dir(root().join("docs")).expect("the folder is there");
    pages.extend(docs.map(|entry| entry.expect("can be read").path()).filter(|path| path.is_file()));
    for path in pages.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(&path).expect("can be read");
        // blocks are lines of a shell
        let prose: Vec<&str> = text.split("```").step_by(2).flat_map(str::split_whitespace).collect();
        told.push((path, Named::Prose, prose.join(" ")));
    }
    let mut looked_at = 0;
    let mut wrong = Vec::new();
    for (path, named, text) in told {
        for command in commands(&text) {
            looked_at += 1;
            wrong.extend(problem(&command, named).map(|why| format!("{}: `{command}`: {why}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(looked_at > 150, "{looked_at} commands were found");
}

#[test]
fn what_cannot_be_typed_is_found() {
    for (command, named, is_right) in [
        ("bench-coord resume {run} --max-cost N{}", Named::Message, true),
        ("bench-coord resume {run}{raised}", Named::Message, true),
        ("bench-coord resume", Named::Message, false),
        ("bench-coord resume", Named::Prose, true),
        ("bench-coord resume --no-such-flag", Named::Prose, false),
        ("bench-coord reusme {0}", Named::Message, false),
        ("bench-coord prices update", Named::Message, false),
        ("bench-coord dead drop N", Named::Message, true),
        ("bench-coord trace RUN [QUESTION]", Named::Prose, true),
        ("bench-coord migrate --roles", Named::Prose, false),
        ("bench-coord submit --dataset locomo --system a --system b …", Named::Prose, true),
    ] {
        assert_eq!(problem(command, named).is_none(), is_right, "{command}");
    }
    let [_, code] = apart("let a = \"`bench-coord \\\n    list`\";\n");
    assert_eq!(commands(&code), ["bench-coord list"]);
}
