//! Which run, or which group of runs, a word stands for. Every verb asks here, so that a word means the same to all of them.

use std::{cmp::Reverse, collections::BTreeSet};

use bench_proto::{
    ids::{RunId, is_random_end, random_end},
    nearest::{did_you_mean, nearest},
};
use bench_store::{RunFilter, RunRow, Runs, Store, StoreError};

use super::{
    LATEST, current_user,
    group::{RunsOfGroup, group_of_equals, group_of_name, name_of_group},
    naming::counted,
};
use crate::exit::CliError;

/// What a word stands for.
#[derive(Debug)]
pub(super) enum Meant {
    /// One run by itself, a cell or repeat too.
    Run(Box<RunRow>),
    /// Runs that one command started as equals.
    Group(RunsOfGroup),
}

/// Of runs that a word fits, at most so many are told.
pub(super) const SHOWN_RUNS: usize = 4;
/// What the ids of first runs end with, of repeats and of a matrix.
const FIRST: [&str; 2] = ["-r1", "-c1-r1"];

/// What is behind an id, a name (the newest of it; `name@2` is the one before), the unique start or end of an id, or `latest`, which is
/// a run, also where that is one of a group. `None` where there is nothing.
///
/// # Errors
/// Exit 2 for a word that is empty or stands for more than one, and for `latest` of an empty store.
pub(super) async fn meant_by(store: &dyn Store, word: &str) -> Result<Option<Meant>, CliError> {
    // every id begins with nothing: a variable of a script that is not set would mean whatever is there
    if word.trim().is_empty() {
        return Err(CliError::usage(
            "no run is named: give its id, its name, the start or end of its id, or `latest`; `bench-coord list` shows all",
        ));
    }
    if word == LATEST {
        let filter = RunFilter { user: Some(current_user()), limit: Some(1), ..RunFilter::default() };
        let newest = store.list_runs(&filter).await?.pop();
        return newest.map(|run| Some(Meant::Run(Box::new(run)))).ok_or_else(|| {
            CliError::usage(format!("there is no run in {} yet; `bench-coord submit` starts one", store.describe()))
        });
    }
    let id = RunId(word.to_owned());
    if let Some(run) = store.run_by_id(&id).await? {
        return Ok(Some(Meant::Run(Box::new(run))));
    }
    if let Some(group) = RunsOfGroup::of_id(store, &id).await? {
        return Ok(Some(Meant::Group(group)));
    }
    match by_name(store, word).await? {
        Some(meant) => Ok(Some(meant)),
        None => by_part(store, word).await,
    }
}

/// Of so many of the newest runs names and ids are known to who has mistyped one.
const KNOWN_RUNS: u32 = 1_000;

/// What is said of a word that stands for no run, with the names and ids that were probably meant.
///
/// # Errors
/// What the store meets.
pub(super) async fn not_found(store: &dyn Store, word: &str) -> Result<CliError, StoreError> {
    let newest = store.list_runs(&RunFilter { limit: Some(KNOWN_RUNS), ..RunFilter::default() }).await?;
    let known: BTreeSet<&str> = newest
        .iter()
        .flat_map(|run| match group_of_equals(run) {
            Some(group) => [name_of_group(run), Some(group.id.as_str())],
            None => [run.name.as_deref(), Some(run.run_id.0.as_str())],
        })
        .flatten()
        .collect();
    let hint = did_you_mean(&nearest(word, known)).map_or_else(|| "; ".to_owned(), |hint| format!(", {hint} "));
    Ok(CliError::usage(format!("no run '{word}' in {}{hint}`bench-coord list` shows all", store.describe())))
}

/// A run of each that has a name, newest first: runs that are called so, and of each group of that name the newest run, by the name
/// that it got with its group.
///
/// # Errors
/// What the store meets.
pub(super) async fn named(store: &dyn Runs, name: &str) -> Result<Vec<RunRow>, StoreError> {
    let alone = RunFilter { name: Some(name.to_owned()), ..RunFilter::default() };
    let of_groups = RunFilter { name_start: Some(format!("{name}/")), ..RunFilter::default() };
    let mut runs = store.list_runs(&alone).await?;
    runs.extend(store.list_runs(&of_groups).await?.into_iter().filter(|run| group_of_name(run, name).is_some()));
    runs.sort_by_key(|run| Reverse(run.run_no));
    let mut groups = BTreeSet::new();
    runs.retain(|run| group_of_name(run, name).is_none_or(|group| groups.insert(group.group_no)));
    Ok(runs)
}

/// The newest run or group of a name; of `name@2` the one before it, and so on.
async fn by_name(store: &dyn Store, word: &str) -> Result<Option<Meant>, CliError> {
    for (name, place) in [Some((word, 1)), counted(word)].into_iter().flatten() {
        let found = named(store, name).await?;
        let are_runs = found.iter().all(|run| group_of_name(run, name).is_none());
        let has = match (found.len(), are_runs) {
            (0, _) => continue,
            (1, true) => "1 run has".to_owned(),
            (1, false) => "1 group has".to_owned(),
            (n, true) => format!("{n} runs have"),
            (n, false) => format!("{n} runs or groups have"),
        };
        let run = found.into_iter().nth(place as usize - 1);
        let run = run.ok_or_else(|| CliError::usage(format!("'{word}': {has} the name '{name}'")))?;
        return Ok(match group_of_name(&run, name) {
            Some(group) => RunsOfGroup::of_id(store, &RunId(group.id.clone())).await?.map(Meant::Group),
            None => Some(Meant::Run(Box::new(run))),
        });
    }
    Ok(None)
}

/// The only group, or the only run, whose id starts or ends so.
async fn by_part(store: &dyn Store, part: &str) -> Result<Option<Meant>, CliError> {
    let mut found = with_part(store, part.to_owned()).await?;
    if let Some(group) = group_by_part(store, part, &found).await? {
        return Ok(Some(Meant::Group(group)));
    }
    match found.len() {
        0 => {
            // a group whose first run was deleted is listed by its id all the same
            for id in ids_shown_as(store, part).await? {
                if let Some(group) = RunsOfGroup::of_id(store, &id).await? {
                    return Ok(Some(Meant::Group(group)));
                }
            }
            Ok(None)
        }
        1 => Ok(found.pop().map(|run| Meant::Run(Box::new(run)))),
        _ => {
            let ids: Vec<&str> = found.iter().take(SHOWN_RUNS).map(|run| run.run_id.0.as_str()).collect();
            Err(CliError::usage(format!(
                "'{part}' is the start or end of more than one id ({}, …); type more of it",
                ids.join(", ")
            )))
        }
    }
}

/// Runs whose ids start or end so.
async fn with_part(store: &dyn Store, part: String) -> Result<Vec<RunRow>, StoreError> {
    store.list_runs(&RunFilter { id_part: Some(part), controls: true, ..RunFilter::default() }).await
}

/// The only group whose id starts or ends so, where no other run fits. `found`: the runs whose ids do.
async fn group_by_part(store: &dyn Store, part: &str, found: &[RunRow]) -> Result<Option<RunsOfGroup>, StoreError> {
    let mut firsts = Vec::new();
    for first in FIRST {
        firsts.extend(with_part(store, format!("{part}{first}")).await?);
    }
    let fitting = || found.iter().chain(&firsts).filter(|run| run.control_of.is_none());
    let Some(one) = fitting().next().and_then(group_of_equals) else { return Ok(None) };
    if fitting().any(|run| group_of_equals(run).is_none_or(|group| group.group_no != one.group_no)) {
        return Ok(None);
    }
    // what the id of a single repeat ends with is that repeat
    let id = &one.id;
    if !(["-r", "-c"].iter().any(|kind| format!("{id}{kind}").starts_with(part)) || id.ends_with(part)) {
        return Ok(None);
    }
    RunsOfGroup::of_id(store, &RunId(id.clone())).await
}

/// Ids of runs and groups that lists shorten to this word.
///
/// # Errors
/// What the store meets.
pub(super) async fn ids_shown_as(store: &dyn Runs, word: &str) -> Result<Vec<RunId>, StoreError> {
    // all runs are looked at only for what looks like the end of an id
    if !is_random_end(word) {
        return Ok(Vec::new());
    }
    let mut ids = Vec::new();
    for run in store.list_runs(&RunFilter { controls: true, ..RunFilter::default() }).await? {
        let group = group_of_equals(&run).map(|group| RunId(group.id.clone()));
        for id in [Some(run.run_id), group].into_iter().flatten() {
            if random_end(&id.0) == Some(word) && !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;
    use crate::standing::{find_run, group::find_runs, look_for_run, naming::check_new};

    struct Scene {
        _folder: tempfile::TempDir,
        store: Arc<dyn Store>,
    }

    impl Scene {
        async fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let store = conformance::store_in(folder.path()).await;
            Self { _folder: folder, store }
        }

        async fn run(&self, id: &str, name: &str, group: Option<&str>) {
            let group = group.map(|id| NewGroup { id: id.to_owned(), cap: None });
            let new = NewRun { name: Some(name.to_owned()), group, ..conformance::new_run(id) };
            let _ = self.store.create_run(&new).await.expect("is created");
        }

        /// What a word stands for: the ids of its runs, or what is said of it.
        async fn found(&self, word: &str) -> Result<Vec<String>, String> {
            let found = find_runs(self.store.as_ref(), word).await.map_err(|error| error.message)?;
            Ok(found.into_iter().map(|run| run.run_id.0).collect())
        }
    }

    #[tokio::test]
    async fn an_empty_word_stands_for_no_run() {
        let scene = Scene::new().await;
        scene.run("only", "only one", None).await;
        let store = scene.store.as_ref();
        for word in ["", " ", "\t"] {
            for error in [
                find_run(store, word).await.expect_err("no run"),
                look_for_run(store, word).await.expect_err("no run"),
                RunsOfGroup::find(store, word).await.expect_err("no group"),
            ] {
                assert!(error.message.contains("no run is named: give its id"), "{}", error.message);
            }
        }
        assert_eq!(scene.found("onl").await, Ok(vec!["only".to_owned()]), "its start is a word");
    }

    #[tokio::test]
    async fn of_runs_and_groups_of_a_name_every_verb_means_the_newest() {
        let scene = Scene::new().await;
        scene.run("first", "nightly", None).await;
        scene.run("g-r1", "nightly/1", Some("g")).await;
        scene.run("g-r2", "nightly/2", Some("g")).await;
        let store = scene.store.as_ref();
        let of_group = Ok(vec!["g-r1".to_owned(), "g-r2".to_owned()]);
        assert_eq!(scene.found("nightly").await, of_group);
        let one = find_run(store, "nightly").await.expect_err("a group is no run").message;
        assert!(one.contains("'nightly' is a group of 2 runs"), "{one}");
        assert_eq!(scene.found("nightly@2").await, Ok(vec!["first".to_owned()]));

        scene.run("third", "nightly", None).await;
        assert_eq!(find_run(store, "nightly").await.expect("the newest").run_id.0, "third");
        assert!(RunsOfGroup::find(store, "nightly").await.expect("is read").is_none());
        assert_eq!(scene.found("nightly@2").await, of_group);
        let none = scene.found("nightly@4").await.expect_err("there are three");
        assert!(none.contains("3 runs or groups have the name 'nightly'"), "{none}");
    }

    #[tokio::test]
    async fn a_group_keeps_its_name_whatever_becomes_of_its_first_run() {
        let scene = Scene::new().await;
        // its first run is gone
        scene.run("g-r2", "kept/2", Some("g")).await;
        scene.run("g-r3", "kept/3", Some("g")).await;
        // and one beside it that is called as that was
        scene.run("alone", "kept/1", None).await;
        let of_group = Ok(vec!["g-r2".to_owned(), "g-r3".to_owned()]);
        assert_eq!([scene.found("kept").await, scene.found("g").await], [of_group.clone(), of_group]);
        assert_eq!(scene.found("kept/1").await, Ok(vec!["alone".to_owned()]));
        let group = RunsOfGroup::find(scene.store.as_ref(), "kept").await.expect("is read").expect("is there");
        assert_eq!(group.name().as_deref(), Some("kept"));
        let drawn = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab";
        scene.run(&format!("{drawn}-r2"), "drawn/2", Some(drawn)).await;
        assert_eq!(scene.found("0123456789ab").await, Ok(vec![format!("{drawn}-r2")]), "as a list shows it");
    }

    #[tokio::test]
    async fn the_start_or_the_end_of_an_id_means_one_group_or_one_run() {
        let scene = Scene::new().await;
        scene.run("aa-end-r1", "both/1", Some("aa-end")).await;
        scene.run("aa-end-r2", "both/2", Some("aa-end")).await;
        for part in ["aa", "end", "aa-end-r"] {
            assert_eq!(scene.found(part).await, Ok(vec!["aa-end-r1".to_owned(), "aa-end-r2".to_owned()]), "{part}");
        }
        assert_eq!(scene.found("end-r2").await, Ok(vec!["aa-end-r2".to_owned()]));
        scene.run("ab", "alone", None).await;
        let several = scene.found("a").await.expect_err("it is the start of three ids");
        assert!(several.contains("more than one id (ab, aa-end-r2, aa-end-r1, …)"), "{several}");
    }

    #[tokio::test]
    async fn what_is_listed_for_one_run_is_no_name_and_no_id_of_another() {
        let scene = Scene::new().await;
        let [alone, group] = ["0193a1b2-aaaa-7bbb-8ccc-0123456789ab", "0193a1b2-aaaa-7bbb-8ccc-ba9876543210"];
        scene.run(alone, "alone", None).await;
        scene.run(&format!("{group}-r1"), "both/1", Some(group)).await;
        let store = scene.store.as_ref();
        let new = RunId("new".to_owned());
        for (short, of) in [
            ("0123456789ab", alone.to_owned()),
            ("ba9876543210", group.to_owned()),
            ("ba9876543210-r1", format!("{group}-r1")),
        ] {
            for refused in [
                check_new(store, Some(short), &new).await.expect_err("it is a name"),
                check_new(store, None, &RunId(short.to_owned())).await.expect_err("it is an id"),
            ] {
                assert!(refused.message.contains(&format!("lists show {of},")), "{}", refused.message);
            }
        }
        check_new(store, Some("0123456789ab"), &RunId(alone.to_owned())).await.expect("its own");
        check_new(store, Some("0123456789ac"), &new).await.expect("nobody's");
    }
}
