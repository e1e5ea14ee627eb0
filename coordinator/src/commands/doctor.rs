//! `doctor`: is everything reachable and usable? One line each, and what to do where not. It makes nothing.

use std::path::Path;

use bench_datasets::Here;
use bench_proto::CLUSTER_DOMAIN;
use bench_settings::{Protection, Way};
use bench_store::{ConnectionRoom, OpenByRole};
use bench_worker::transport;
use serde::Serialize;

use crate::{
    app::{
        App, Deployment,
        reach::{self, Found},
    },
    cli::DoctorArgs,
    cluster::overview::Overview,
    exit::{CliError, CliResult, Exit},
    out, planning, results,
    runs::client::who_is_missing,
};

/// Looks at store, queue, folders, datasets and accounts and prints a line for each; exit 4 when one of them cannot be used.
pub(super) async fn run(app: &App, args: &DoctorArgs) -> CliResult {
    let mut checks = Checks { as_json: args.json, made: Vec::new() };
    // nothing is looked at, or tried out, where a link may lead
    let links = app.check_links().map_err(|error| error.message);
    let is_home_fine = links.is_ok();
    if let Err(problem) = links {
        checks.line("home", Err(problem));
    }
    if is_home_fine || app.store_file().is_none() {
        checks.line("store", store(app).await);
    }
    match app.open_queue().await {
        Ok(queue) => {
            checks.line("queue", Ok(queue.describe()));
            queue.close().await;
        }
        Err(error) => checks.line("queue", Err(error.message)),
    }
    if let (Ok(Deployment::Cluster), Ok(store)) = (app.deployment(), app.open_store().await) {
        let pools = [app.settings().run.pool.clone()].into();
        let found = Overview::read(store.as_ref(), &app.settings().queue_url, &pools).await;
        let missing = who_is_missing(store.as_ref(), &app.settings().run.pool, &OpenByRole::new()).await;
        let found = found.map_err(|e| e.to_string()).and_then(|cluster| match missing {
            Ok(None) => Ok(format!("\n        {}", cluster.text().replace('\n', "\n        "))),
            Ok(Some(missing)) => Err(missing),
            Err(error) => Err(error.to_string()),
        });
        checks.line("cluster", found);
        let workers =
            store.open_sessions(CLUSTER_DOMAIN).await.map(|open| open.iter().filter(|w| w.is_alive()).count());
        let room = store.connection_room().await;
        match (room, workers) {
            (Ok(Some(room)), Ok(workers)) => checks.line("connections", connections(room, workers)),
            (Ok(None), _) => {}
            (Err(error), _) | (_, Err(error)) => checks.line("connections", Err(error.to_string())),
        }
    }
    if is_home_fine {
        let runs = app.home().join("runs");
        let can_be = writable(&runs, "set BENCH_HOME to a folder that can be");
        checks.line("run files", can_be.map(|()| runs.display().to_string()));
        for (name, found) in datasets(app) {
            checks.line(&format!("dataset {name}"), found);
        }
    }
    for (what, found) in reach::examine(app, args.paid).await {
        match found {
            Found::Fine(detail) => checks.add(Status::Ok, &what, detail),
            Found::Broken(problem) => checks.add(Status::Failed, &what, problem),
            Found::Unused(detail) => checks.add(Status::Unused, &what, detail),
        }
    }
    let system = app.system(&app.settings().run.system).ok();
    let to_system = system.and_then(|(name, settings)| transport::to_system(&name, &settings));
    for way in transport::ways(app.settings()).into_iter().chain(to_system) {
        if let Some((status, told)) = unprotected(&way, &app.settings().allow_plaintext) {
            checks.add(status, "transport", told);
        }
    }
    let failed = checks.made.iter().filter(|check| check.status == Status::Failed).count();
    if args.json {
        out::json(&checks.made);
    }
    if failed == 0 {
        Ok(Exit::Done)
    } else {
        Err(CliError::infrastructure(format!("{failed} of the checks above failed")))
    }
}

/// How something that was looked at is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Failed,
    Warning,
    /// Nobody has set it up, or it is fine as it is.
    Unused,
}

#[derive(Debug, Serialize)]
struct Check {
    check: String,
    status: Status,
    detail: String,
}

/// What was looked at, printed line by line unless all of it is printed at the end.
struct Checks {
    as_json: bool,
    made: Vec<Check>,
}

impl Checks {
    fn line(&mut self, what: &str, found: Result<String, String>) {
        match found {
            Ok(detail) => self.add(Status::Ok, what, detail),
            Err(problem) => self.add(Status::Failed, what, problem),
        }
    }

    fn add(&mut self, status: Status, what: &str, detail: String) {
        if !self.as_json {
            let word = match status {
                Status::Ok => "ok      ",
                Status::Failed => "FAILED  ",
                Status::Warning => "WARNING ",
                Status::Unused => "-       ",
            };
            out::words(&format!("{word}{what}: {detail}"));
        }
        self.made.push(Check { check: what.to_owned(), status, detail });
    }
}

/// Whether files can be written to a folder; what to do `instead` where not.
fn writable(folder: &Path, instead: &str) -> Result<(), String> {
    results::could_be_written(folder)
        .map_err(|error| format!("{} cannot be written: {error}; {instead}", folder.display()))
}

async fn store(app: &App) -> Result<String, String> {
    match app.store_file().filter(|file| file.symlink_metadata().is_err()) {
        Some(missing) => {
            let folder = missing.parent().unwrap_or(Path::new("."));
            writable(folder, "name a file elsewhere with --store sqlite:PATH, or another home with BENCH_HOME")?;
            Ok(format!("{} is not there yet, the first run makes it", missing.display()))
        }
        None => {
            let store = app.open_store().await.map_err(|e| e.message)?;
            store.check().await.map_err(|e| e.to_string())
        }
    }
}

/// The datasets that are read from files, with where they are.
fn datasets(app: &App) -> Vec<(String, Result<String, String>)> {
    let listed =
        bench_datasets::list(&planning::places(app)).into_iter().filter(|listed| listed.here != Here::Generated);
    let found = listed.map(|listed| {
        let places: Vec<String> = listed.places.iter().map(|place| place.display().to_string()).collect();
        let found = match (listed.problem, listed.here, &app.settings().datasets_url) {
            (Some(problem), ..) => Err(problem),
            (None, Here::NotHere, Some(url)) => {
                Ok(format!("not here yet, submit brings it from {}", bench_proto::redact::url(url)))
            }
            (None, Here::NotHere, None) => Ok("not here yet, submit downloads it".to_owned()),
            (None, ..) => Ok(places.join(", ")),
        };
        (listed.manifest.name, found)
    });
    found.collect()
}

/// The line about a way that is not encrypted, or whose other end proves nothing.
fn unprotected(way: &Way, allowed: &[String]) -> Option<(Status, String)> {
    let Way { what, host, protection, .. } = way;
    if let Some(complaint) = way.complaint(allowed) {
        return Some((Status::Warning, complaint));
    }
    let told = match protection {
        Protection::Verified => return None,
        Protection::Unverified => format!(
            "{what}: {host} is reached encrypted, and does not prove who it is; ?sslmode=verify-full asks for that"
        ),
        Protection::Plain => format!("{what}: {host} is reached without encryption"),
    };
    Some((Status::Unused, told))
}

/// Connections that a worker holds, and a coordinator (P31).
const OF_WORKER: usize = 2;
const OF_COORDINATOR: usize = 4;

/// Whether the live processes and one more coordinator fit into the server's limit.
fn connections(room: ConnectionRoom, workers: usize) -> Result<String, String> {
    let wanted = workers * OF_WORKER + 2 * OF_COORDINATOR;
    let line = format!("{} of {} open; {workers} workers and two coordinators need {wanted}", room.open, room.most);
    if i64::try_from(wanted).unwrap_or(i64::MAX) < room.most {
        Ok(line)
    } else {
        Err(format!("{line}: raise max_connections, or put PgBouncer in between"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_encrypted_or_not_verified_is_listed() {
        let line = |host: &str, protection| {
            let way = Way { what: "store".into(), scheme: "postgres".into(), host: host.into(), protection };
            unprotected(&way, &["by.agreement".into()])
        };
        assert_eq!(line("db.example.com", Protection::Verified), None);
        for (host, protection, expected, holds) in [
            ("db.example.com", Protection::Plain, Status::Warning, "allow_plaintext"),
            ("db.example.com", Protection::Unverified, Status::Unused, "verify-full"),
            ("by.agreement", Protection::Plain, Status::Unused, "without encryption"),
            ("postgres", Protection::Plain, Status::Unused, "without encryption"),
        ] {
            let (status, line) = line(host, protection).expect("a line");
            assert!(status == expected && line.contains(holds), "{line}");
        }
    }

    #[test]
    fn p31_live_processes_are_compared_with_the_servers_limit() {
        let room = |most| ConnectionRoom { most, open: 12 };
        assert_eq!(
            connections(room(100), 10),
            Ok("12 of 100 open; 10 workers and two coordinators need 28".to_owned())
        );
        assert!(connections(room(100), 46).expect_err("too many").contains("PgBouncer"));
    }
}
