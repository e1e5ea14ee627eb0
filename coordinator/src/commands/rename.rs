//! `rename RUN NAME`: how people call a run, or the runs of a group. Results, fingerprint and digest know nothing of it.

use bench_store::Store;

use crate::{
    app::App,
    cli::RenameArgs,
    exit::{CliError, CliResult, Exit},
    out,
    standing::{
        find_run,
        group::{RunsOfGroup, group_of_equals, name_in_group},
        naming::check_no_id,
    },
};

/// Gives a run another name, whatever its state, or a group, whose runs are called by it; exit 2 for one run of a group.
pub(super) async fn run(app: &App, args: &RenameArgs) -> CliResult {
    let store = app.open_store().await?;
    out::note(&rename(store.as_ref(), &args.run, &args.name).await?);
    Ok(Exit::Done)
}

/// Renames what a word stands for, and says what it was called before.
async fn rename(store: &dyn Store, selector: &str, name: &str) -> Result<String, CliError> {
    let instead = |before: Option<String>| before.map(|name| format!(" instead of '{name}'")).unwrap_or_default();
    if let Some(group) = RunsOfGroup::find(store, selector).await? {
        check_no_id(store, Some(name), &group.id).await?;
        for run in &group.runs {
            store.set_labels(run.run_no, name_in_group(run, name).as_deref(), &run.tags).await?;
        }
        return Ok(format!("{} has the name '{name}'{}", group.id, instead(group.name())));
    }
    let run = find_run(store, selector).await?;
    if let Some(group) = group_of_equals(&run) {
        // the name of a group is read from those of its runs
        return Err(CliError::usage(format!(
            "{} is one run of {1} and has its name from it: `bench-coord rename {1} NAME` renames all runs of {1}",
            run.run_id, group.id
        )));
    }
    check_no_id(store, Some(name), &run.run_id).await?;
    store.set_labels(run.run_no, Some(name), &run.tags).await?;
    Ok(format!("{} has the name '{name}'{}", run.run_id, instead(run.name)))
}

#[cfg(test)]
mod tests {
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn a_group_is_renamed_with_all_of_its_runs_and_none_of_them_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        for (id, name) in [("g-r1", Some("old/1")), ("g-r2", None)] {
            let group = Some(NewGroup { id: "g".to_owned(), cap: None });
            let new = NewRun { name: name.map(str::to_owned), group, ..conformance::new_run(id) };
            let _ = store.create_run(&new).await.expect("is created");
        }
        let refused = rename(store, "g-r1", "new").await.expect_err("it would hide its group").message;
        assert!(
            refused.contains("g-r1 is one run of g") && refused.contains("`bench-coord rename g NAME`"),
            "{refused}"
        );
        assert_eq!(rename(store, "old", "new").await.expect("is renamed"), "g has the name 'new' instead of 'old'");
        let group = RunsOfGroup::find(store, "new").await.expect("is read").expect("has the name");
        let names: Vec<Option<&str>> = group.runs.iter().map(|run| run.name.as_deref()).collect();
        assert_eq!(names, [Some("new/1"), Some("new/2")]);
        assert!(RunsOfGroup::find(store, "old").await.expect("is read").is_none());
    }
}
