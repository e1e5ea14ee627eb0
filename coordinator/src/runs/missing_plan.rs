//! The rest of a plan that was not written to its end: whoever goes on with the run writes it, of the same dataset and sample.

use std::sync::Arc;

use bench_store::{Plan, RunRow, Store};

use crate::{
    app::{App, Deployment},
    cli::SampleArgs,
    exit::CliError,
    planning::{banks_in_order, open_dataset, planner::Planner, take_rounds, take_sample, with_label_fixes},
    runs::{adopt::adopt_again, client::has_planner},
};

/// The rest of a run's plan, when it has to be written and nobody does.
///
/// # Errors
/// As [`planner_of`].
pub(crate) async fn planner_if_missing(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
) -> Result<Option<Planner>, CliError> {
    if run.planned || (app.deployment()? == Deployment::Cluster && has_planner(store, run.run_no).await?) {
        return Ok(None);
    }
    if adopt_again(app, store, run).await? {
        return Ok(None);
    }
    planner_of(app, store, run).await.map(Some)
}

/// A run that was killed while its plan was being written needs its dataset again; the sample must be the same.
///
/// # Errors
/// Exit 2 when the dataset is another one now.
async fn planner_of(app: &App, store: &dyn Plan, run: &RunRow) -> Result<Planner, CliError> {
    let (spec, lies) = (&run.spec, app.dataset_lies());
    let args = SampleArgs {
        dataset_path: lies.path.clone().or_else(|| spec.dataset.path.clone()),
        allow_modified_dataset: lies.allow_modified || spec.dataset.modified,
        ..SampleArgs::default()
    };
    let dataset = open_dataset(app, &spec.dataset.name, &args, spec.dataset.settings.clone()).await?;
    let fixes = spec.dataset.label_fixes.as_ref();
    let (dataset, found) = with_label_fixes(
        app,
        fixes.map(|fixes| fixes.name.as_str()),
        dataset,
        fixes.is_some_and(|fixes| fixes.modified),
    )
    .await?;
    if found.as_ref() != fixes {
        return Err(CliError::usage(format!(
            "the label fixes found now are not those that run {} began with; give the same file",
            run.run_id
        )));
    }
    let request = serde_json::from_value(spec.sample.request.clone())
        .map_err(|e| CliError::infrastructure(format!("the run's sample request cannot be read: {e}")).because(e))?;
    let sample = take_sample(&dataset, request).await?;
    check_same(run, dataset.sha256(), &sample.spec.signature)?;
    let rounds = match &spec.stop {
        Some(_) => Some(Arc::new(take_rounds(&dataset, &sample).await?)),
        None => None,
    };
    let done = store.banks(run.run_no, None).await?.len();
    let banks = banks_in_order(&sample);
    Ok(Planner {
        run: run.run_no,
        home: app.home(),
        dataset,
        banks,
        spec: Arc::new(spec.clone()),
        rounds,
        done: u32::try_from(done).unwrap_or(u32::MAX),
        waits: true,
    })
}

/// Whether a plan goes on with the questions that it began with.
///
/// # Errors
/// Exit 2 when the dataset is another one now, or another sample is taken of it.
fn check_same(run: &RunRow, sha256: &str, signature: &str) -> Result<(), CliError> {
    let RunRow { run_id, spec, .. } = run;
    if sha256 != spec.dataset.sha256 {
        return Err(CliError::usage(format!(
            "the dataset found now is not the one that run {run_id} began with (sha256 {} then); give the same file with --dataset-path",
            spec.dataset.sha256
        )));
    }
    if signature != spec.sample.signature {
        return Err(CliError::usage(format!(
            "this release takes another sample for the request of run {run_id}, of the same dataset: start the run anew, or finish it \
             with the release that began it"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_store::conformance::{created, new_run, store_in};

    use super::*;

    #[tokio::test]
    async fn another_dataset_and_another_sample_of_the_same_one_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let run = created(store.as_ref(), &new_run("a")).await;
        let (sha256, signature) = (run.spec.dataset.sha256.as_str(), run.spec.sample.signature.as_str());
        assert!(check_same(&run, sha256, signature).is_ok());
        for (found, signature) in [("other", signature), ("other", "other")] {
            let said = check_same(&run, found, signature).expect_err("is another dataset").message;
            assert!(said.contains("--dataset-path") && said.contains(sha256), "{said}");
        }
        let said = check_same(&run, sha256, "other").expect_err("is another sample").message;
        assert!(said.contains("another sample") && !said.contains("--dataset-path"), "{said}");
    }
}
