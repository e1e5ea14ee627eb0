//! P30: a submit whose run exists already attaches to it when both have the same fingerprint, and is refused otherwise.

use std::sync::Arc;

use bench_proto::{
    ids::RunId,
    spec::{BanksAfter, Difference, RunSpec},
};
use bench_store::{RunRow, Store};
use bench_systems::adapter::file::STARTED;

use crate::{
    app::App,
    cli::{NamingArgs, ResumeArgs, SubmitArgs},
    exit::{CliError, CliResult},
    out,
    runs::resume::resume,
};

/// Goes on with the run that has the id of this submit, when it is the same run.
///
/// # Errors
/// Exit 2 with the differences of the two fingerprints; else as [`resume`].
pub(crate) async fn attach(
    app: &App,
    store: Arc<dyn Store>,
    spec: &RunSpec,
    existing: RunRow,
    args: &SubmitArgs,
) -> CliResult {
    check_goes_with(&existing, spec, &existing.run_id)?;
    out::note(&format!("run {} exists with the same settings: going on with it", existing.run_id));
    other_labels(&existing, &args.naming).iter().for_each(|said| out::note(said));
    let as_resume = as_resume(&existing.run_id, args);
    resume(app, store, existing, &as_resume).await
}

/// Refuses a submit whose run exists as another one, or with limits that cannot change any more. `named`: what the submit names, the
/// run or its group.
///
/// # Errors
/// Exit 2 with what differs.
pub(crate) fn check_goes_with(existing: &RunRow, spec: &RunSpec, named: &RunId) -> Result<(), CliError> {
    check_same(existing, spec)?;
    check_meter(existing, spec, named)?;
    check_banks_after(existing, spec, named)
}

/// Refuses to go on with a run as metered that is not, or the other way round: its memory system has made calls that nobody has
/// counted, and would be led elsewhere in the middle of its banks.
fn check_meter(existing: &RunRow, spec: &RunSpec, named: &RunId) -> Result<(), CliError> {
    let id = &existing.run_id;
    let is = match (existing.spec.limits.meter.is_some(), spec.limits.meter.is_some()) {
        (false, true) => "without --meter, and what its memory system calls is not counted",
        (true, false) => "with --meter",
        (true, true) | (false, false) => return Ok(()),
    };
    Err(CliError::usage(format!(
        "run {id} was submitted {is}, which stays as it is: `bench-coord resume {named}` goes on with it, and another --run-id \
         makes a new one"
    )))
}

/// Refuses another wish for the banks of a run than the one that it was submitted with; one that says none goes on with that.
fn check_banks_after(existing: &RunRow, spec: &RunSpec, named: &RunId) -> Result<(), CliError> {
    let (wanted, there) = (spec.limits.banks_after, existing.spec.limits.banks_after);
    if wanted == BanksAfter::Unsaid || wanted == there {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "run {} was submitted {}, which stays as it is: leave --clean-after and --keep-banks out; `bench-coord banks remove {named}` \
         removes its banks when it has ended",
        existing.run_id,
        match there {
            BanksAfter::Removed => "with --clean-after, by which its banks go at its end",
            BanksAfter::Kept => "with --keep-banks, by which its banks stay",
            BanksAfter::Unsaid => "without --clean-after and --keep-banks, by which its banks stay",
        }
    )))
}

/// What is said of a name and of tags that a run which exists has not got, and does not get by being gone on with.
fn other_labels(existing: &RunRow, naming: &NamingArgs) -> Option<String> {
    let id = &existing.run_id;
    let is_other = naming.name.is_some() && naming.name != existing.name;
    let lacks_tags = naming.tag.iter().any(|tag| !existing.tags.contains(tag));
    Some(match (is_other, lacks_tags) {
        (false, false) => return None,
        (true, false) => format!("--name is left out: `bench-coord rename {id} NAME` gives a run another name"),
        (false, true) => format!("--tag is left out: `bench-coord tag {id} TAG` adds one to a run"),
        (true, true) => format!(
            "--name and --tag are left out: `bench-coord rename {id} NAME` and `bench-coord tag {id} TAG` change those of a run"
        ),
    })
}

/// The flags of a submit, as those of the `resume` that it becomes.
pub(crate) fn as_resume(id: &RunId, args: &SubmitArgs) -> ResumeArgs {
    ResumeArgs {
        run: id.0.clone(),
        limits: args.limits.clone(),
        release_uncertain: false,
        reopen: false,
        no_stop: false,
        dataset_path: args.sample.dataset_path.clone(),
        allow_modified_dataset: args.sample.allow_modified_dataset,
        detach: args.detach,
        output: args.output.clone(),
    }
}

/// Refuses a submit whose run exists with another fingerprint.
///
/// # Errors
/// Exit 2 with the differences.
pub(crate) fn check_same(existing: &RunRow, spec: &RunSpec) -> Result<(), CliError> {
    let mut differences = existing.spec.differences(spec);
    differences.extend(other_headline(&existing.spec, spec));
    if !differences.is_empty() {
        let list: Vec<String> =
            differences.iter().take(12).map(|d| format!("\n  {}: {} there, {} here", d.key, d.left, d.right)).collect();
        let older = differences.iter().any(|d| d.key == "system.version" && lacks_start(&d.left, &d.right));
        let why = if older {
            "\n  (the run was made before what is started for it was a part of its fingerprint; it can be compared with runs of its time)"
        } else {
            ""
        };
        return Err(CliError::usage(format!(
            "run {} exists with other settings; choose another --run-id, or make them equal:{}{why}",
            existing.run_id,
            list.concat()
        )));
    }
    Ok(())
}

/// What heads the report changes no score, but it is what the run says.
fn other_headline(there: &RunSpec, here: &RunSpec) -> Option<Difference> {
    let (left, right) = (there.headline_metric(), here.headline_metric());
    (left != right).then(|| Difference { key: "headline".to_owned(), left, right })
}

/// Whether two versions of an adapter's system differ in nothing but that the older one does not say what is started.
fn lacks_start(old: &str, new: &str) -> bool {
    let (old, new) = (old.trim_matches('"'), new.trim_matches('"'));
    !old.contains(STARTED) && new.split_once(STARTED).is_some_and(|(said, _)| said == old)
}

#[cfg(test)]
mod tests {
    use bench_proto::metered::MeterPlan;
    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn p34_a_run_is_not_gone_on_with_as_metered_when_it_is_not_nor_the_other_way_round() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let plain = conformance::new_run("plain");
        let mut metered = conformance::new_run("metered");
        metered.spec.limits.meter = Some(MeterPlan::default());
        let plain_row = conformance::created(store.as_ref(), &plain).await;
        let metered_row = conformance::created(store.as_ref(), &metered).await;
        let group = RunId("g".to_owned());
        let said = |there: &RunRow, here: &RunSpec| {
            check_goes_with(there, here, &group).err().map(|error| error.message).unwrap_or_default()
        };
        assert_eq!([said(&plain_row, &plain.spec), said(&metered_row, &metered.spec)], ["", ""]);
        let refused = said(&plain_row, &metered.spec);
        assert!(refused.contains("run plain was submitted without --meter"), "{refused}");
        assert!(refused.contains("another --run-id") && refused.contains("`bench-coord resume g`"), "{refused}");
        let refused = said(&metered_row, &plain.spec);
        assert!(refused.contains("run metered was submitted with --meter"), "{refused}");
        assert!(refused.contains("`bench-coord resume g` goes on with it"), "{refused}");
    }

    #[tokio::test]
    async fn another_wish_for_the_banks_is_refused_and_none_takes_the_one_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let mut there = conformance::created(store.as_ref(), &conformance::new_run("g-r1")).await;
        let (mut here, group) = (there.spec.clone(), RunId("g".to_owned()));
        there.spec.limits.banks_after = BanksAfter::Removed;
        for (wanted, is_refused) in
            [(BanksAfter::Unsaid, false), (BanksAfter::Removed, false), (BanksAfter::Kept, true)]
        {
            here.limits.banks_after = wanted;
            let refused = check_goes_with(&there, &here, &group).err().map(|error| error.message);
            assert_eq!(refused.is_some(), is_refused, "{wanted:?}: {refused:?}");
            assert!(refused.is_none_or(|said| said.contains("`bench-coord banks remove g`")));
        }
    }

    #[tokio::test]
    async fn a_name_and_tags_that_a_run_does_not_get_are_said_to_be_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let new = conformance::new_run("r");
        let row = conformance::created(store.as_ref(), &new).await;
        let said = |name: Option<&str>, tags: &[&str]| {
            let tag = tags.iter().map(|tag| (*tag).to_owned()).collect();
            other_labels(&row, &NamingArgs { name: name.map(str::to_owned), tag, run_id: None })
        };
        assert_eq!([said(None, &[]), said(new.name.as_deref(), &["nightly"])], [None, None], "it has them");
        let name = said(Some("b"), &["nightly"]).expect("another name");
        assert!(name.contains("--name is left out: `bench-coord rename r NAME`"), "{name}");
        let tag = said(None, &["y"]).expect("another tag");
        assert!(tag.contains("--tag is left out: `bench-coord tag r TAG`"), "{tag}");
        assert!(said(Some("b"), &["y"]).is_some_and(|both| both.contains("--name and --tag are left out")));
    }

    #[test]
    fn p13_a_run_of_an_earlier_release_says_why_it_is_not_gone_on_with() {
        assert!(lacks_start("\"1+0a1b2c3d\"", "\"1+0a1b2c3d+start.ffeeddcc\""));
        assert!(!lacks_start("\"1+0a1b2c3d\"", "\"1+99999999+start.ffeeddcc\""), "more has changed");
        assert!(
            !lacks_start("\"1+0a1b2c3d+start.11111111\"", "\"1+0a1b2c3d+start.ffeeddcc\""),
            "something else is started"
        );
        assert!(!lacks_start("\"1.0.0\"", "\"1.1.0\""));
    }
}
