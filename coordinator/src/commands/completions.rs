//! `completions SHELL`: the script on standard output.
//!
//! The scripts are those of clap, which know verbs and flags; the names of datasets, presets and systems come from their
//! registries, and what clap's scripts lack is put right here.

use bench_datasets::known;
use bench_plan::Preset;
use bench_systems::registry as systems;
use clap::{Arg, Command, CommandFactory, builder::PossibleValuesParser};
use clap_complete::Shell;

use crate::{
    cli::Cli,
    exit::{CliResult, Exit},
    out,
};

/// In bash `@` ends a word, and the names of variants hold it (`longmemeval@s`): such a word is put together again, and of
/// what is offered for it bash gets the part that it asked about.
const WHOLE_WORDS_IN_BASH: &str = r#"
_bench_coord_whole_words() {
    local whole="${COMP_LINE:0:COMP_POINT}" at=$COMP_CWORD
    whole="${whole##*[[:space:]]}"
    local word="${COMP_WORDS[at]}"
    while [[ "$2" == @* && "$word" != "$whole" && $at -gt 1 ]]; do
        at=$((at - 1))
        word="${COMP_WORDS[at]}$word"
    done
    if [[ "$2" != @* || "$word" != "$whole" ]]; then
        _bench__coord "$@"
        return
    fi
    local words=("${COMP_WORDS[@]:0:at}" "$whole")
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$at
    _bench__coord "$1" "$whole" "${words[at - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"${whole%@*}"}")
}
"#;

/// Prints the completion script of a shell.
pub(super) fn run(shell: Shell) -> CliResult {
    out::result(&script(shell));
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_names(Cli::command()), "bench-coord", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => for_bash(&script),
        Shell::Zsh => for_zsh(&script),
        Shell::Fish => for_fish(script),
        _ => script,
    }
}

/// Names of datasets, each before its variants.
fn datasets() -> Vec<&'static str> {
    let mut names = Vec::new();
    for known in known() {
        for name in [known.manifest.dataset(), &known.manifest.name] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// What is offered beside files, and what it is called in zsh.
fn beside_files() -> [(&'static str, Vec<&'static str>); 2] {
    [("datasets", datasets()), ("systems", systems::names().collect())]
}

/// The command line with the names that its arguments take, which is no more than a hint: own files are taken too.
fn with_names(command: Command) -> Command {
    fn offer(arg: Arg, names: impl IntoIterator<Item = &'static str>) -> Arg {
        arg.value_parser(PossibleValuesParser::new(names))
    }
    let is_about_datasets = command.get_name() == "datasets";
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "dataset" => offer(arg, datasets()),
        "preset" => offer(arg, Preset::ALL.map(Preset::name)),
        "system" => offer(arg, systems::names()),
        _ => arg,
    });
    command.mut_subcommands(|verb| {
        with_names(match is_about_datasets {
            true => verb.mut_args(|arg| if arg.get_id() == "name" { offer(arg, datasets()) } else { arg }),
            false => verb,
        })
    })
}

/// clap calls the program by one name where it finds out the verb, and by another where it offers what a verb takes, when the
/// program's name holds a `-`. Files are offered by bash itself where no name fits.
fn for_bash(script: &str) -> String {
    let script = script.replace("bench__subcmd__coord", "bench__coord");
    let script = script.replace("complete -F _bench__coord ", "complete -F _bench_coord_whole_words ");
    format!("{script}{WHOLE_WORDS_IN_BASH}")
}

/// Where names are offered, files are too.
fn for_zsh(script: &str) -> String {
    let mut script = script.to_owned();
    let mut functions = String::new();
    for (what, names) in beside_files() {
        let list = format!("({})", names.join(" "));
        script = script.replace(&list, &format!("_bench-coord_{what}"));
        functions +=
            &format!("_bench-coord_{what}() {{\n    _alternative 'names:{what}:{list}' 'files:file:_files'\n}}\n\n");
    }
    // before what the script ends with: it calls the completion where it was loaded for that
    let end = script.rfind("if [ \"$funcstack").unwrap_or(script.len());
    script.insert_str(end, &functions);
    script
}

/// Where names are offered, files are too.
fn for_fish(script: String) -> String {
    beside_files().iter().filter_map(|(_, names)| names.first()).fold(script, |script, first| {
        script.replace(&format!(" -r -f -a \"{first}\\t"), &format!(" -r -F -a \"{first}\\t"))
    })
}
