//! `rename RUN NAME`: how people call a run, or the runs of a group. Results, fingerprint and digest know nothing of it.

use bench_proto::ids::RunId;
use bench_store::Store;
use serde_json::json;

use crate::{
    app::App,
    cli::RenameArgs,
    exit::{CliError, CliResult, Exit},
    out,
    standing::{
        find_run,
        group::{RunsOfGroup, group_of_equals, name_in_group},
        naming::{check_no_id, shared_name},
    },
};

/// Gives a run another name, whatever its state, or a group, whose runs are called by it; exit 2 for one run of a group.
pub(super) async fn run(app: &App, args: &RenameArgs) -> CliResult {
    let store = app.open_store().await?;
    let renamed = rename(store.as_ref(), &args.run, &args.name).await?;
    if args.json {
        let Renamed { id, before, means } = &renamed;
        out::json(&json!({ "id": id, "name": args.name, "before": before, "name_means": means }));
    }
    out::note(&renamed.told(&args.name));
    Ok(Exit::Done)
}

/// What was renamed.
struct Renamed {
    /// The run, or the group.
    id: RunId,
    /// What it was called.
    before: Option<String>,
    /// What its name stands for, where others have it too: the newest of them.
    means: Option<RunId>,
}

impl Renamed {
    fn told(&self, name: &str) -> String {
        let Self { id, before, means } = self;
        let instead = before.as_ref().map(|before| format!(" instead of '{before}'")).unwrap_or_default();
        let shared = match means {
            None => String::new(),
            Some(means) if means == id => {
                format!("; an older one has it too: '{name}' means {id}, and '{name}@2' the one before it")
            }
            Some(means) => format!("; a newer one has it too: '{name}' means {means}, and not {id}"),
        };
        format!("{id} has the name '{name}'{instead}{shared}")
    }
}

/// Renames what a word stands for, and says what it was called before.
async fn rename(store: &dyn Store, selector: &str, name: &str) -> Result<Renamed, CliError> {
    if let Some(group) = RunsOfGroup::find(store, selector).await? {
        check_no_id(store, Some(name), &group.id).await?;
        for run in &group.runs {
            store.set_labels(run.run_no, name_in_group(run, name).as_deref(), &run.tags).await?;
        }
        let means = shared_name(store, name, &group.id).await?;
        return Ok(Renamed { before: group.name(), id: group.id, means });
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
    let means = shared_name(store, name, &run.run_id).await?;
    Ok(Renamed { id: run.run_id, before: run.name, means })
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
        let refused = rename(store, "g-r1", "new").await.err().expect("it would hide its group").message;
        assert!(
            refused.contains("g-r1 is one run of g") && refused.contains("`bench-coord rename g NAME`"),
            "{refused}"
        );
        let renamed = async |word: &str, name: &str| {
            rename(store, word, name).await.map(|renamed| renamed.told(name)).map_err(|error| error.message)
        };
        assert_eq!(renamed("old", "new").await.as_deref(), Ok("g has the name 'new' instead of 'old'"));
        let group = RunsOfGroup::find(store, "new").await.expect("is read").expect("has the name");
        let names: Vec<Option<&str>> = group.runs.iter().map(|run| run.name.as_deref()).collect();
        assert_eq!(names, [Some("new/1"), Some("new/2")]);
        assert!(RunsOfGroup::find(store, "old").await.expect("is read").is_none());
        // a name that is another one's too means the newest of them, which is said
        let _ = store.create_run(&conformance::new_run("newest")).await.expect("is created");
        let told = renamed("newest", "new").await.expect("is renamed");
        assert!(told.ends_with("an older one has it too: 'new' means newest, and 'new@2' the one before it"), "{told}");
        let told = renamed("g", "new").await.expect("is renamed");
        assert!(told.ends_with("a newer one has it too: 'new' means newest, and not g"), "{told}");
    }
}
