//! `completions SHELL`: the script on standard output.
//!
//! The scripts are those of clap, which know verbs and flags; the names of datasets, presets and systems come from their
//! registries, runs, categories and settings from `complete` when they are asked for, and what clap's scripts lack is put right here.
//! Those of elvish and PowerShell are clap's alone: they have no values.

use std::collections::BTreeSet;

use bench_datasets::known;
use bench_plan::Preset;
use bench_systems::registry as systems;
use clap::{Arg, Command, CommandFactory, ValueEnum as _, builder::PossibleValuesParser};
use clap_complete::Shell;

use crate::{
    cli::{Cli, Completed},
    exit::{CliResult, Exit},
    out,
};

/// In bash `@` ends a word, and the names of variants hold it (`longmemeval@s`): such a word is put together again, and of
/// what is offered for it bash gets the part that it asked about.
///
/// In bash `=` is a word of its own: a flag and a value that it ties together are taken as the two words that they are.
const WHOLE_WORDS_IN_BASH: &str = r#"
_bench_coord_completed() {
    local at=$COMP_CWORD words
    if [[ $at -gt 1 && "${COMP_WORDS[at]}" == = && "${COMP_WORDS[at-1]}" == --* ]]; then
        words=("${COMP_WORDS[@]:0:at}" "")
    elif [[ $at -gt 2 && "${COMP_WORDS[at-1]}" == = && "${COMP_WORDS[at-2]}" == --* ]]; then
        words=("${COMP_WORDS[@]:0:at-1}" "$2")
    else
        _bench_coord_whole_words "$@"
        return
    fi
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _bench_coord_whole_words "$1" "${words[COMP_CWORD]}" "${words[COMP_CWORD-1]}"
}

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
        _bench_coord_asked "$@"
        return
    fi
    local words=("${COMP_WORDS[@]:0:at}")
    if [[ "$whole" == --*=* ]]; then
        words+=("${whole%%=*}")
        whole="${whole#*=}"
    fi
    words+=("$whole")
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _bench__coord "$1" "$whole" "${words[COMP_CWORD - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"${whole%@*}"}")
}
"#;

/// In bash what `complete` finds takes the place of flags where a word is meant, and of files behind a flag.
const ASKED_IN_BASH: &str = r#"
_bench_coord_asked() {
    local what= found IFS=$' \t\n'
    case "${COMP_WORDS[COMP_CWORD-1]}" in
        @FLAGS@
        *)
            [[ "$2" != -* && $COMP_CWORD -gt 1 ]] || return
            case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
                @VERBS@
            esac
            ;;
    esac
    [[ -n "$what" ]] || return
    found=$("${COMP_WORDS[0]}" complete "$what" --line "$COMP_LINE" -- "$2" 2>/dev/null | cut -f 1)
    [[ -n "$found" ]] || return
    COMPREPLY=($found)
    [[ "$what" != settings ]] || compopt -o nospace 2>/dev/null
}
"#;

/// In zsh `complete` is asked for words with what they are.
const ASKED_IN_ZSH: &str = r#"_bench-coord_WHAT() {
    local -a found
    found=(${(f)"$(_call_program WHAT bench-coord complete WHAT 2>/dev/null)"})
    found=(${found//$'\t'/:})
    _describe -t WHAT WHAT found -S SUFFIX
}

"#;

/// What flags and words call a run that they take.
const RUNS: [&str; 4] = ["RUN", "RUNS", "AUDIT", "BASELINE"];

/// An argument that `complete` knows words for, and where it stands.
struct CompletedArgument {
    what: Completed,
    /// Its verb, with those above it.
    verb: Vec<String>,
    /// As it is typed; a word by itself has none.
    flag: Option<String>,
    /// Behind it stands a word of another kind.
    is_followed: bool,
}

/// The arguments of all verbs that `complete` knows words for.
fn asked(command: &Command, verb: &[String]) -> Vec<CompletedArgument> {
    let mut all = Vec::new();
    let is_run = |arg: &Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        takes_value(arg) && names.iter().any(|name| RUNS.contains(&name.as_str()))
    };
    let goes_on = command.get_positionals().skip_while(|arg| !is_run(arg)).any(|arg| !is_run(arg));
    for arg in command.get_arguments() {
        let what = match arg.get_id().as_str() {
            "set" => Completed::Settings,
            "category" | "exclude_category" => Completed::Categories,
            "verb" if command.get_name() == "man" => Completed::Verbs,
            _ if is_run(arg) => Completed::Runs,
            _ => continue,
        };
        let is_followed = what == Completed::Runs && goes_on;
        all.push(CompletedArgument {
            what,
            verb: verb.to_vec(),
            flag: arg.get_long().map(|long| format!("--{long}")),
            is_followed,
        });
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        all.extend(asked(below, &[verb, &[below.get_name().to_owned()]].concat()));
    }
    all
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Flags of all verbs that take a value.
fn flags_with_values(command: &Command, into: &mut BTreeSet<String>) {
    for arg in command.get_arguments().filter(|arg| takes_value(arg)) {
        into.extend(arg.get_long().map(|long| format!("--{long}")));
        into.extend(arg.get_short().map(|short| format!("-{short}")));
    }
    command.get_subcommands().for_each(|below| flags_with_values(below, into));
}

/// How `complete` is asked for them.
fn word(what: Completed) -> String {
    what.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn asked_in_bash() -> String {
    let command = Cli::command();
    let asked = asked(&command, &[]);
    let (mut flags, mut verbs) = (String::new(), String::new());
    let mut others = BTreeSet::new();
    flags_with_values(&command, &mut others);
    for what in Completed::value_variants() {
        let of = || asked.iter().filter(|asked| asked.what == *what);
        let known: BTreeSet<String> = of().filter_map(|asked| asked.flag.clone()).collect();
        others.retain(|flag| !known.contains(flag));
        if !known.is_empty() {
            let known: Vec<String> = known.into_iter().collect();
            flags += &format!("{}) what={} ;;\n        ", known.join("|"), word(*what));
        }
        for asked in of().filter(|asked| asked.flag.is_none()) {
            let what = format!("what={}", word(*what));
            let what = match asked.verb.last().filter(|_| asked.is_followed) {
                Some(last) => format!("case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in {last} | -*) {what} ;; esac"),
                None => what,
            };
            verbs += &format!("\" {} \"*) {what} ;;\n                ", asked.verb.join(" "));
        }
    }
    let others: Vec<String> = others.into_iter().collect();
    flags += &format!("{}) return ;;", others.join("|"));
    ASKED_IN_BASH.replace("@FLAGS@", &flags).replace("@VERBS@", verbs.trim_end())
}

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
    let script = script.replace("complete -F _bench__coord ", "complete -F _bench_coord_completed ");
    format!("{script}{}{WHOLE_WORDS_IN_BASH}", asked_in_bash())
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
    for what in Completed::value_variants() {
        let name = word(*what);
        // a setting goes on with its value
        let suffix = if *what == Completed::Settings { "''" } else { "' '" };
        functions += &ASKED_IN_ZSH.replace("WHAT", &name).replace("SUFFIX", suffix);
    }
    script = script.lines().map(asks_in_zsh).collect::<Vec<_>>().join("\n") + "\n";
    // before what the script ends with: it calls the completion where it was loaded for that
    let end = script.rfind("if [ \"$funcstack").unwrap_or(script.len());
    script.insert_str(end, &functions);
    script
}

/// A line of zsh's script, which asks `complete` where that knows words.
fn asks_in_zsh(line: &str) -> String {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| line.starts_with(beginning));
    let takes_run = RUNS.iter().any(|name| line.contains(&format!("]:{name}:_default'")));
    let what = if takes_run || begins(&["':run -- ", "'::run -- ", "'*::runs -- ", "':runs -- "]) {
        Completed::Runs
    } else if begins(&["'--category=", "'*--category=", "'*--exclude-category="]) {
        Completed::Categories
    } else if begins(&["'*--set="]) {
        Completed::Settings
    } else if begins(&["'*::verb -- "]) {
        Completed::Verbs
    } else {
        return line.to_owned();
    };
    line.replacen(":_default'", &format!(":_bench-coord_{}'", word(what)), 1)
}

/// Where names are offered, files are too; and `complete` is asked where it knows words.
fn for_fish(script: String) -> String {
    let script = beside_files().iter().filter_map(|(_, names)| names.first()).fold(script, |script, first| {
        script.replace(&format!(" -r -f -a \"{first}\\t"), &format!(" -r -F -a \"{first}\\t"))
    });
    let offers = |what| format!(" -f -a '(bench-coord complete {} 2>/dev/null)'", word(what));
    let asked = asked(&Cli::command(), &[]);
    let with_flags = script.lines().map(|line| {
        let is_of = |asked: &&CompletedArgument| {
            let flag = asked.flag.as_ref().and_then(|flag| flag.strip_prefix("--"));
            flag.is_some_and(|flag| line.contains(&format!(" -l {flag} ")) && line.ends_with(" -r"))
        };
        let more = asked.iter().find(is_of).map(|asked| offers(asked.what)).unwrap_or_default();
        format!("{line}{more}\n")
    });
    let of_verbs = asked.iter().filter(|asked| asked.flag.is_none()).map(|asked| {
        let below = asked.verb.get(1).map(|verb| format!("; and __fish_seen_subcommand_from {verb}"));
        let (verb, below) = (asked.verb.first().map_or("", String::as_str), below.unwrap_or_default());
        let condition = format!("__fish_bench_coord_using_subcommand {verb}{below}");
        format!("complete -c bench-coord -n \"{condition}\"{}\n", offers(asked.what))
    });
    with_flags.chain(of_verbs).collect()
}
