//! `complete WHAT`: what completion scripts offer that is known only when it is asked: runs, categories, settings. A line each, the word
//! first and after a tab what it is. Where nothing can be read nothing is offered, and nothing is said.

use std::collections::BTreeSet;

use bench_datasets::{Known, known};
use bench_proto::text::one_line;
use bench_store::{RunFilter, RunRow};
use clap::CommandFactory as _;

use crate::{
    app::App,
    cli::{Cli, CompleteArgs, Completed},
    exit::{CliResult, Exit},
    out::{self, times::local},
    standing::{LATEST, group::name_of_group},
};

/// Newest runs that are offered.
const OFFERED_RUNS: u32 = 100;

/// Prints words that begin like what was typed.
pub(super) async fn run(app: &App, args: &CompleteArgs) -> CliResult {
    let words = match args.what {
        Completed::Runs => runs(app).await,
        Completed::Categories => categories(dataset_in(&args.line)),
        Completed::Verbs => verbs(),
        Completed::Settings => {
            let names = app.settings().show(true).into_iter().map(|setting| format!("{}=", setting.name));
            names.map(|name| (name, String::new())).collect()
        }
    };
    let lines = lines_of(&words, &args.typed);
    if !lines.is_empty() {
        out::result(&lines.join("\n"));
    }
    Ok(Exit::Done)
}

/// The lines of words that begin like what was typed. What a word is may be the word of somebody else: it ends no line, behind which
/// a shell would see another word.
fn lines_of(words: &[(String, String)], typed: &str) -> Vec<String> {
    let is_plain = |word: &str| word.trim_end_matches('=').chars().all(is_plain);
    let fits = |(word, _): &&(String, String)| word.starts_with(typed) && is_plain(word);
    words.iter().filter(fits).map(|(word, what)| format!("{word}\t{}", one_line(what))).collect()
}

/// Whether no shell takes a character for anything else.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./".contains(c)
}

/// Ids and names of the newest runs and groups, each with what was measured.
async fn runs(app: &App) -> Vec<(String, String)> {
    if app.check_links().is_err() {
        return Vec::new();
    }
    let Ok(store) = app.open_store().await else { return Vec::new() };
    let filter = RunFilter { limit: Some(OFFERED_RUNS), ..RunFilter::default() };
    words_of(store.list_runs(&filter).await.unwrap_or_default())
}

fn words_of(runs: Vec<RunRow>) -> Vec<(String, String)> {
    let mut words = Vec::with_capacity(2 * runs.len() + 1);
    let mut told = BTreeSet::new();
    for run in runs {
        let spec = &run.spec;
        let what = format!("{} · {} · {}", spec.dataset.name, spec.system.name, local(run.created_ms));
        let group_name = name_of_group(&run).map(str::to_owned);
        let group = run.group.map(|group| group.id);
        for word in [run.name, Some(run.run_id.0), group, group_name].into_iter().flatten() {
            if told.insert(word.clone()) {
                words.push((word, what.clone()));
            }
        }
    }
    if !words.is_empty() {
        words.push((LATEST.to_owned(), "the newest".to_owned()));
    }
    words
}

/// The dataset that a command line names.
fn dataset_in(line: &str) -> Option<&str> {
    let (mut words, mut found) = (line.split_whitespace(), None);
    while let Some(word) = words.next() {
        match word {
            "--dataset" | "-b" => found = words.next(),
            _ => found = word.strip_prefix("--dataset=").or(found),
        }
    }
    found
}

/// Verbs that the help lists.
fn verbs() -> Vec<(String, String)> {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| (verb.get_name().to_owned(), String::new())).collect()
}

/// Categories of a dataset, and of all of them where none is known by the name, each with where it is.
fn categories(dataset: Option<&str>) -> Vec<(String, String)> {
    let is_named = |known: &&Known| {
        dataset.is_some_and(|name| [known.manifest.dataset(), known.manifest.name.as_str()].contains(&name))
    };
    let is_known = known().iter().any(|known| is_named(&known));
    let mut words: Vec<(String, String)> = Vec::new();
    for known in known().iter().filter(|known| !is_known || is_named(known)) {
        for (category, _) in &known.manifest.categories {
            match words.iter_mut().find(|(word, _)| word == category) {
                Some((_, of)) if of.ends_with('…') => {}
                Some((_, of)) => of.push_str(" …"),
                None => words.push((category.clone(), known.manifest.name.clone())),
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    #[test]
    fn categories_are_those_of_the_dataset_that_the_line_names() {
        let of = |line: &str| categories(dataset_in(line));
        let locomo = of("bench-coord submit --dataset locomo-sim --category ");
        assert_eq!(locomo, of("bench-coord submit --category x --dataset=locomo-sim"));
        assert_eq!(locomo, of("bench-coord submit -b beam -b locomo-sim --category t"));
        let all = of("bench-coord submit --category ");
        assert!(!locomo.is_empty() && locomo.len() < all.len(), "{locomo:?}");
        assert_eq!(of("bench-coord submit --dataset mine.jsonl --category "), all, "a file of one's own");
    }

    #[test]
    fn what_a_word_is_adds_no_word_of_its_own() {
        let words = [("mine", "locomo\nrm -rf /\r\n\tx · bm25"), ("mi;ne", "y"), ("other", "z"), ("mine.q=", "")];
        let words = words.map(|(word, what)| (word.to_owned(), what.to_owned()));
        assert_eq!(lines_of(&words, "mi"), ["mine\tlocomo rm -rf /   x · bm25", "mine.q=\t"]);
    }

    #[tokio::test]
    async fn names_of_groups_are_offered_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        for (id, name, group) in [("g-r1", "team/nightly/1", Some("g")), ("alone", "team/alone", None)] {
            let group = group.map(|id: &str| NewGroup { id: id.to_owned(), cap: None });
            let new = NewRun { name: Some(name.to_owned()), group, ..conformance::new_run(id) };
            let _ = store.create_run(&new).await.expect("is created");
        }
        let runs = store.list_runs(&RunFilter::default()).await.expect("are listed");
        let words: Vec<String> = words_of(runs).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["team/alone", "alone", "team/nightly/1", "g-r1", "g", "team/nightly", LATEST]);
    }
}
