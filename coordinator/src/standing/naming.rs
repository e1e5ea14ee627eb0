//! Which names a run may get: none that already means something else wherever runs are named.

use bench_proto::ids::RunId;
use bench_store::{RunRow, Store};

use super::{
    LAST, LATEST,
    group::{RunsOfGroup, group_of_name},
    meant::{ids_shown_as, named},
};
use crate::{exit::CliError, out::amounts};

/// A name with a place behind it, counted from the newest of its runs: `name@2`.
pub(super) fn counted(selector: &str) -> Option<(&str, u32)> {
    let (name, place) = selector.rsplit_once('@')?;
    let place = place.parse::<u32>().ok().filter(|place| *place > 0)?;
    Some((name, place))
}

/// Longest name or tag, in characters: it stands in lines and tables.
const LONGEST: usize = 200;

/// A name or a tag without what surrounds it; refused where it cannot be typed or is a word for runs.
///
/// # Errors
/// Why.
pub(crate) fn check_label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        LATEST => Err(format!("`{LATEST}` is the run that was created last, whatever its name")),
        text if text.starts_with(LAST) => Err(format!("`{LAST}K` are the last K runs, whatever their names")),
        text if text.contains(char::is_control) => {
            Err("it has a line break or another control character: give one line of text".to_owned())
        }
        text if text.chars().nth(LONGEST).is_some() => Err(format!("it is longer than {LONGEST} characters")),
        text => Ok(text.to_owned()),
    }
}

/// The same of a name, which may not look like a place among the runs of another one.
///
/// # Errors
/// Why.
pub(crate) fn check_name(text: &str) -> Result<String, String> {
    let text = check_label(text)?;
    match counted(&text) {
        Some((name, place)) => Err(format!(
            "`{name}@{place}` is number {place}, counted from the newest, of the runs with the name `{name}`: choose another one"
        )),
        None => Ok(text),
    }
}

/// Refuses a name for the run, or the group, `own` that is the id of another one, whole or as lists shorten it: a whole id would mean
/// the other one wherever the name is typed, and a short one would find the other one no longer.
///
/// # Errors
/// Exit 2 with what has it.
pub(crate) async fn check_no_id(store: &dyn Store, name: Option<&str>, own: &RunId) -> Result<(), CliError> {
    let Some(id) = name.filter(|name| *name != own.0).map(|name| RunId(name.to_owned())) else { return Ok(()) };
    if store.run_by_id(&id).await?.is_some() {
        return Err(CliError::usage(format!(
            "'{id}' is the id of another run, and would always mean that one: choose another name"
        )));
    }
    if RunsOfGroup::of_id(store, &id).await?.is_some() {
        return Err(CliError::usage(format!(
            "'{id}' is the id of a group of runs, and to most verbs would mean that one: choose another name"
        )));
    }
    if let Some(other) = ids_shown_as(store, &id.0).await?.into_iter().find(|other| other != own) {
        return Err(CliError::usage(format!(
            "'{id}' is how lists show {other}, and would no longer mean that: choose another name"
        )));
    }
    Ok(())
}

/// What a name stands for that others than the run, or the group, `own` have too: the newest of them. `None` where it has it alone.
///
/// # Errors
/// What the store meets.
pub(crate) async fn shared_name(store: &dyn Store, name: &str, own: &RunId) -> Result<Option<RunId>, CliError> {
    let all = named(store, name).await?;
    let id_of =
        |run: &RunRow| group_of_name(run, name).map_or_else(|| run.run_id.clone(), |group| RunId(group.id.clone()));
    let ids: Vec<RunId> = all.iter().map(id_of).collect();
    let is_shared = ids.iter().any(|id| id != own);
    Ok(ids.into_iter().next().filter(|_| is_shared))
}

/// Refuses what a new run, or group, is to be called where that would hide another one: a name that is an id, an id that is a name. An
/// id that a run or a group has already is that one's, whatever is called so.
///
/// # Errors
/// Exit 2 with what has it.
pub(crate) async fn check_new(store: &dyn Store, name: Option<&str>, id: &RunId) -> Result<(), CliError> {
    check_no_id(store, name, id).await?;
    if store.run_by_id(id).await?.is_some() || RunsOfGroup::of_id(store, id).await?.is_some() {
        return Ok(());
    }
    if let Some(other) = ids_shown_as(store, &id.0).await?.first() {
        return Err(CliError::usage(format!(
            "'{id}' is how lists show {other}, and would no longer mean that: choose another --run-id"
        )));
    }
    let Some(run) = named(store, &id.0).await?.into_iter().next() else { return Ok(()) };
    let has = match group_of_name(&run, &id.0) {
        Some(group) => format!("the group {}", group.id),
        None => format!("run {}", run.run_id),
    };
    Err(CliError::usage(format!(
        "'{id}' is the name of {has}, and would always mean the new one: choose another --run-id"
    )))
}

/// The same of a run, and refuses the id of a group. A group has its id as long as it has runs, whichever of them were deleted.
///
/// # Errors
/// Exit 2 with what has it.
pub(crate) async fn check_new_run(store: &dyn Store, name: Option<&str>, id: &RunId) -> Result<(), CliError> {
    if let Some(group) = RunsOfGroup::of_id(store, id).await? {
        return Err(CliError::usage(format!(
            "{id} is a group of runs already ({}): choose another --run-id; `bench-coord resume {id}` goes on with it",
            amounts::counted(group.runs.len() as u64, "run")
        )));
    }
    check_new(store, name, id).await
}

#[cfg(test)]
mod tests {
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn a_group_keeps_its_id_when_its_first_run_was_deleted() {
        let id = RunId("g".to_owned());
        for ids in [["g-r2", "g-r3"], ["g-c1-r2", "g-c2-r1"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let store = conformance::store_in(folder.path()).await;
            for id in ids {
                let group = Some(NewGroup { id: "g".to_owned(), cap: None });
                let _ = store.create_run(&NewRun { group, ..conformance::new_run(id) }).await.expect("is created");
            }
            let refused = check_new_run(store.as_ref(), None, &id).await.expect_err("is taken").message;
            assert!(refused.contains("g is a group of runs already (2 runs)"), "{refused}");
            assert!(refused.contains("`bench-coord resume g`"), "{refused}");
            assert!(check_new_run(store.as_ref(), None, &RunId("other".to_owned())).await.is_ok());
        }
    }

    #[test]
    fn a_name_is_no_word_for_other_runs() {
        for (name, why) in [
            (" ", "it is empty"),
            ("latest", "created last"),
            ("last:3", "the last K runs"),
            ("nightly@2", "`nightly@2` is number 2, counted from the newest, of the runs with the name `nightly`"),
            ("a@b@1", "of the runs with the name `a@b`"),
        ] {
            let refused = check_name(name).expect_err("is refused");
            assert!(refused.contains(why), "{name}: {refused}");
        }
        for name in ["nightly", "me@home", "nightly@0", "nightly@", "v2"] {
            assert_eq!(check_name(name), Ok(name.to_owned()), "{name}");
        }
        assert_eq!(check_label("v@2"), Ok("v@2".to_owned()), "a tag stands for no run");
    }

    #[test]
    fn a_name_is_one_short_line_without_what_surrounds_it() {
        for (name, why) in [
            ("two\nlines", "give one line of text"),
            ("\u{1b}[31mred", "give one line of text"),
            (&"x".repeat(201), "longer than 200 characters"),
        ] {
            let refused = check_name(name).expect_err("is refused");
            assert!(refused.contains(why), "{refused}");
        }
        let longest = "ä".repeat(200);
        for (name, kept) in [(" nightly\n", "nightly"), ("a b", "a b"), (longest.as_str(), longest.as_str())] {
            assert_eq!(check_name(name), Ok(kept.to_owned()));
        }
        assert!(check_name(" nightly@2 ").is_err() && check_name(" latest ").is_err());
    }
}
