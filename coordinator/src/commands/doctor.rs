//! `doctor`: is everything reachable and usable? One line each, and what to do where not.

use crate::{
    app::{App, Place},
    cluster::{client::who_is_missing, overview::Overview},
    exit::{CliError, CliResult, Exit},
    out, results,
};

/// Runs the verb.
pub(super) async fn run(app: &App) -> CliResult {
    let mut failed = 0;
    let mut line = |what: &str, found: Result<String, String>| match found {
        Ok(detail) => out::result(&format!("ok      {what}: {detail}")),
        Err(problem) => {
            failed += 1;
            out::result(&format!("FAILED  {what}: {problem}"));
        }
    };
    match app.open_store().await {
        Ok(store) => line("store", store.check().await.map_err(|e| e.to_string())),
        Err(error) => line("store", Err(error.message)),
    }
    match app.open_queue().await {
        Ok(queue) => {
            line("queue", Ok(queue.describe()));
            queue.close().await;
        }
        Err(error) => line("queue", Err(error.message)),
    }
    if let (Ok(Place::Cluster), Ok(store)) = (app.place(), app.open_store().await) {
        let pools = [app.settings().run.pool.clone()].into();
        let found = Overview::read(store.as_ref(), &app.settings().queue_url, &pools).await;
        let missing = who_is_missing(store.as_ref(), &app.settings().run.pool).await;
        let found = found.map_err(|e| e.to_string()).and_then(|cluster| match missing {
            Ok(None) => Ok(format!("\n        {}", cluster.text().replace('\n', "\n        "))),
            Ok(Some(missing)) => Err(missing),
            Err(error) => Err(error.to_string()),
        });
        line("cluster", found);
    }
    let runs = app.home().join("runs");
    line("run files", results::check_writable(&runs).map(|()| runs.display().to_string()).map_err(|e| e.message));
    for entry in bench_datasets::DATASETS.iter().filter(|d| !d.manifest.file.is_empty()) {
        let place = app
            .datasets_dir()
            .map(|dir| dir.join(entry.manifest.name).join(entry.manifest.file))
            .filter(|path| path.exists());
        let cached = app.home().join("datasets").join(entry.manifest.name).join(entry.manifest.file);
        let found = place.or_else(|| cached.exists().then_some(cached));
        let detail =
            found.map_or_else(|| "not here yet, submit downloads it".to_owned(), |path| path.display().to_string());
        line(&format!("dataset {}", entry.manifest.name), Ok(detail));
    }
    for (role, account) in app.accounts() {
        let key = if account.key.secret().is_some() { "key set" } else { "no key" };
        let url = account.base_url.as_deref().map_or("no base URL".into(), bench_telemetry::redact_url);
        line(&format!("account of the {role}"), Ok(format!("{}, {url}, {key}", account.name)));
    }
    if failed == 0 {
        Ok(Exit::Done)
    } else {
        Err(CliError::infrastructure(format!("{failed} of the checks above failed")))
    }
}
