//! Runs that go on with models that are no longer where they were.

use std::{collections::BTreeSet, net::IpAddr};

use bench_proto::{served::ServedNote, server::ServerAddress};
use bench_store::{RunRow, Runs};

use crate::{
    app::{App, Deployment, reach::servers_of},
    exit::CliError,
    out,
    results::models::served,
};

/// Says which models were asked elsewhere than they will be from here, once for all of the runs. Addresses belong to the process
/// and not to the run, so that what is taken up with other settings goes on at another server, whose replies may be others.
///
/// # Errors
/// What the store meets.
pub(super) async fn tell(app: &App, store: &dyn Runs, runs: &[&RunRow]) -> Result<(), CliError> {
    // workers of a cluster have accounts of their own
    if app.deployment()? == Deployment::Cluster {
        return Ok(());
    }
    let mut lines = BTreeSet::new();
    for run in runs {
        let notes = served(&store.events(run.run_no).await?);
        // an account that cannot be used was said before, where the run needs it
        let accounts = servers_of(app, &run.spec, true).unwrap_or_default();
        lines.extend(accounts.iter().filter_map(|(_, account)| moved(&account.name, &account.base_url, &notes)));
    }
    lines.iter().for_each(|line| out::note(line));
    Ok(())
}

/// What there is to say of an account that was never asked where it is now.
fn moved(name: &str, base_url: &str, notes: &[ServedNote]) -> Option<String> {
    let now = ServerAddress::named_in(base_url)?;
    let asked = notes.iter().filter(|note| note.account == name).filter_map(|note| note.server.as_ref());
    let asked: BTreeSet<&ServerAddress> = asked.collect();
    // what runs on this machine has another port with every start
    let is_known = asked.contains(&now) || (is_here(&now) && asked.iter().all(|server| is_here(server)));
    if asked.is_empty() || is_known {
        return None;
    }
    let before: Vec<String> = asked.into_iter().map(ToString::to_string).collect();
    Some(format!(
        "account '{name}' is at {now} here, and so far {} was asked: the rest will be asked elsewhere. If that is not meant, \
         stop it (Ctrl-C) and resume with --set accounts.{name}.base_url=URL",
        before.join(", "),
    ))
}

fn is_here(server: &ServerAddress) -> bool {
    server.name == "localhost" || server.name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use bench_proto::{call::Phase, step::Served};

    use super::*;

    fn asked(account: &str, url: &str) -> ServedNote {
        ServedNote {
            phase: Phase::Answer,
            account: account.to_owned(),
            model: "m".to_owned(),
            server: ServerAddress::named_in(url),
            served: Served { model: "m".to_owned(), fingerprint: None },
        }
    }

    #[test]
    fn an_account_that_has_moved_is_told_with_both_places() {
        let notes = [asked("openai", "http://proxy.example:8080/v1"), asked("other", "http://other.example/v1")];
        let told = moved("openai", "https://api.openai.com/v1", &notes).expect("has moved");
        assert!(
            told.contains("is at api.openai.com:443 here") && told.contains("so far proxy.example:8080 was asked"),
            "{told}"
        );
        assert_eq!(moved("openai", "http://proxy.example:8080/v2", &notes), None);
        assert_eq!(moved("third", "https://api.openai.com/v1", &notes), None);
    }

    #[test]
    fn another_port_of_this_machine_is_the_same_place() {
        let notes = [asked("openai", "http://127.0.0.1:8080/v1")];
        assert_eq!(moved("openai", "http://localhost:9090/v1", &notes), None);
        assert!(moved("openai", "https://api.openai.com/v1", &notes).is_some());
    }
}
