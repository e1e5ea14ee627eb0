//! Which names a run may get: none that already means something else wherever runs are named.

use bench_proto::ids::RunId;
use bench_store::{RunFilter, Store};

use super::{LAST, LATEST, group::RunsOfGroup};
use crate::exit::CliError;

/// A name with a place behind it, counted from the newest of its runs: `name@2`.
pub(super) fn counted(selector: &str) -> Option<(&str, u32)> {
    let (name, place) = selector.rsplit_once('@')?;
    let place = place.parse::<u32>().ok().filter(|place| *place > 0)?;
    Some((name, place))
}

/// Refuses a name or a tag that cannot be typed, or that is a word for runs.
///
/// # Errors
/// Why.
pub(crate) fn check_label(text: &str) -> Result<(), String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        LATEST => Err(format!("`{LATEST}` is the run that was created last, whatever its name")),
        text if text.starts_with(LAST) => Err(format!("`{LAST}K` are the last K runs, whatever their names")),
        _ => Ok(()),
    }
}

/// The same of a name, which may not look like a place among the runs of another one.
///
/// # Errors
/// Why.
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    check_label(text)?;
    match counted(text.trim()) {
        Some((name, place)) => Err(format!(
            "`{name}@{place}` is number {place}, counted from the newest, of the runs with the name `{name}`: choose another one"
        )),
        None => Ok(()),
    }
}

/// Refuses a name for the run, or the group, `own` that is the id of another one: most verbs would take it for that.
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
    Ok(())
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
    let named = RunFilter { name: Some(id.0.clone()), limit: Some(1), ..RunFilter::default() };
    let has = match store.list_runs(&named).await?.pop() {
        Some(run) => format!("run {}", run.run_id),
        None => match RunsOfGroup::named(store, &id.0).await? {
            Some(group) => format!("the group {}", group.id),
            None => return Ok(()),
        },
    };
    Err(CliError::usage(format!(
        "'{id}' is the name of {has}, and would always mean the new one: choose another --run-id"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        assert_eq!(check_label("v@2"), Ok(()), "a tag stands for no run");
    }
}
