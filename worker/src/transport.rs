//! The ways over which a process sends secrets and results: a word where one is not encrypted, and the list of all for `doctor`.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use bench_proto::{redact, spec::RunSpec};
use bench_settings::{Account, Protection, Settings, Way};
use bench_systems::{SystemSettings, adapter};

/// The system whose database is found by a variable of each process.
const PGVECTOR: &str = "pgvector";

/// The way to the store; `None` for one on this machine.
#[must_use]
pub fn to_store(settings: &Settings) -> Option<Way> {
    of_database("store", &settings.store_url)
}

/// The way to a database, which may ask for less than a certificate that was checked.
fn of_database(what: &str, url: &str) -> Option<Way> {
    let way = bench_store::transport(url)?;
    let protection = match (way.encrypted, way.verified) {
        (true, true) => Protection::Verified,
        (true, false) => Protection::Unverified,
        (false, _) => Protection::Plain,
    };
    let (what, scheme) = (what.to_owned(), "postgres".to_owned());
    Some(Way { what, scheme, host: redact::host_written_out(&way.host), protection })
}

/// The way to the broker; `None` within one process.
#[must_use]
pub fn to_queue(settings: &Settings) -> Option<Way> {
    Way::of_url("queue", &settings.queue_url, "amqp")
}

/// The way to an account's server; `None` without a key that could be read.
#[must_use]
pub fn to_account(account: &Account) -> Option<Way> {
    let url = account.base_url.as_deref().filter(|_| account.key.secret().is_some())?;
    Way::of_url(&format!("account {}", account.name), url, "http")
}

/// The way to the server of a memory system; `None` without a key that goes there. Its adapter may allow what is not encrypted
/// (`allow: [plain_text_key]`): it is said nevertheless, to the person who asks. Where a variable says the place the way holds the
/// variable's value, which belongs into no log.
#[must_use]
pub fn to_system(name: &str, settings: &SystemSettings) -> Option<Way> {
    if name == PGVECTOR {
        return to_pgvector(name);
    }
    Way::of_url(&format!("system {name}"), &adapter::keyed_server(settings)?, "http")
}

/// The way to the database of the system `pgvector`, which every process finds by itself; `None` for other systems, and where none
/// is named.
#[must_use]
pub fn to_pgvector(system: &str) -> Option<Way> {
    (system == PGVECTOR).then_some(())?;
    of_database("system pgvector", &std::env::var("BENCH_PGVECTOR_URL").ok()?)
}

/// The way on which memory systems bring their own calls, the run's key and every prompt to the meter; `None` where it is reached
/// where it listens.
#[must_use]
pub fn to_meter(settings: &Settings) -> Option<Way> {
    Way::of_url("meter", settings.meter.url.as_deref()?, "http")
}

/// The way to the collector of traces, to which texts may go too; `None` where none is named.
#[must_use]
pub fn to_telemetry(settings: &Settings) -> Option<Way> {
    Way::of_url("telemetry", settings.telemetry.endpoint.as_deref()?, "http")
}

/// The way to an object store whose place the environment names (`AWS_ENDPOINT_URL`, `AZURE_STORAGE_ENDPOINT`, `GOOGLE_BASE_URL`);
/// `None` for a folder, and for one that is reached at its public address, which is always encrypted.
#[must_use]
pub fn to_objects(what: &str, url: &str) -> Option<Way> {
    let variables = std::env::vars_os();
    let texts = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    to_objects_by(what, url, texts)
}

fn to_objects_by(what: &str, url: &str, mut variables: impl Iterator<Item = (String, String)>) -> Option<Way> {
    let (scheme, _) = url.split_once("://")?;
    let begins: &[&str] = match scheme {
        _ if scheme.starts_with("s3") => &["AWS_ENDPOINT"],
        "az" | "azure" | "adl" | "abfs" | "abfss" => &["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"],
        "gs" => &["GOOGLE_BASE_URL"],
        _ => return None,
    };
    let names = |name: &str| begins.iter().any(|begin| name.starts_with(begin));
    let (_, endpoint) = variables.find(|(name, value)| names(name) && !value.is_empty())?;
    Way::of_url(what, &endpoint, "http")
}

/// All ways of a process that has all of the settings' accounts.
#[must_use]
pub fn ways(settings: &Settings) -> Vec<Way> {
    let accounts = settings.accounts.values().filter_map(to_account);
    let of_roles = bench_settings::ModelRole::ALL.map(|role| to_account(&settings.account_of(role)));
    let objects = [("archive", &settings.archive_url), ("datasets", &settings.datasets_url)];
    let objects = objects.into_iter().filter_map(|(what, url)| to_objects(what, url.as_deref()?));
    let of_services = [to_store(settings), to_queue(settings), to_telemetry(settings), to_meter(settings)];
    let of_services = of_services.into_iter().flatten();
    let mut ways: Vec<Way> = of_services.chain(objects).chain(accounts).collect();
    for way in of_roles.into_iter().flatten() {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// Warns of a way that is not encrypted and should be, once in a process.
pub fn warn(settings: &Settings, way: Option<Way>) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(complaint) = way.and_then(|way| way.complaint(&settings.allow_plaintext)) else { return };
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(complaint.clone()) {
        tracing::warn!(code = "plaintext", "{complaint}");
    }
}

/// Warns of the ways that only some runs take, before this process works on one: to the database of its system, and to its meter.
/// What an adapter sends unencrypted its `allow` has said.
pub fn warn_of_run(settings: &Settings, spec: &RunSpec) {
    warn(settings, to_pgvector(&spec.system.name));
    warn(settings, spec.limits.meter.as_ref().and_then(|_| to_meter(settings)));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_database_is_spoken_to_as_one_and_its_host_in_numbers_is_an_address() {
        let way = |url: &str| of_database("system pgvector", url).and_then(|way| way.complaint(&[]));
        // a build for one machine has no Postgres
        if bench_store::transport("postgres://u@db.example/x").is_some() {
            let said = way("postgres://u:p@134744072/x").expect("is plain");
            assert!(said.contains("goes to 8.8.8.8 is not encrypted: write ?sslmode=verify-full"), "{said}");
            assert_eq!(way("postgres://u:p@2130706433/x"), None, "this machine");
            assert_eq!(way("postgres://u:p@db.example/x?sslmode=verify-full"), None);
        }
        assert_eq!(to_pgvector("bm25"), None);
    }

    #[test]
    fn object_stores_of_every_kind_are_ways_where_the_environment_names_their_place() {
        let way = |url: &str, name: &str, value: &str| {
            let of_another = ("PATH".to_owned(), "http://elsewhere.example".to_owned());
            let variables = [of_another, (name.to_owned(), value.to_owned())];
            to_objects_by("archive", url, variables.into_iter()).map(|way| (way.host, way.protection))
        };
        let plain = Some(("objects.example".to_owned(), Protection::Plain));
        for (url, name) in [
            ("s3://b/p", "AWS_ENDPOINT_URL"),
            ("s3a://b/p", "AWS_ENDPOINT_URL_S3"),
            ("az://c/p", "AZURE_STORAGE_ENDPOINT"),
            ("abfss://c/p", "AZURE_ENDPOINT"),
            ("gs://b/p", "GOOGLE_BASE_URL"),
        ] {
            assert_eq!(way(url, name, "http://objects.example:9000"), plain, "{url}");
            let sealed = way(url, name, "https://objects.example");
            assert_eq!(sealed.map(|(_, protection)| protection), Some(Protection::Verified), "{url}");
            assert_eq!(way(url, name, ""), None, "{url}");
        }
        assert_eq!(way("gs://b/p", "AWS_ENDPOINT_URL", "http://objects.example"), None, "that of another kind");
        assert_eq!(way("a/folder", "AWS_ENDPOINT_URL", "http://objects.example"), None);
    }

    #[test]
    fn a_memory_server_that_gets_a_key_is_a_way() {
        let way = |more: Value| {
            let mut spec = json!({
                "name": "mine",
                "retain": {"request": "POST /add", "body": {"text": "{text}"}},
                "recall": {"request": "POST /search", "body": {"query": "{query}"}, "hits": [{"list": "hits", "text": "text"}]},
            });
            spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), spec)]);
            to_system("mine", &settings).map(|way| (way.what, way.host, way.protection))
        };
        let (plain, sealed) = ("http://Mem.example:8080/v1", "https://mem.example");
        let said = |protection| Some(("system mine".to_owned(), "mem.example".to_owned(), protection));
        let key = json!({"X-Key": "of ${env:PATH}"});
        assert_eq!(way(json!({"url": plain, "headers": key, "allow": ["plain_text_key"]})), said(Protection::Plain));
        assert_eq!(way(json!({"url": plain, "auth": {"env": "PATH"}})), said(Protection::Plain));
        assert_eq!(way(json!({"url": sealed, "headers": key})), said(Protection::Verified));
        // no key, none that could be read, and no server of somebody else's
        assert_eq!(way(json!({"url": plain, "headers": {"X-Kind": "test"}})), None);
        assert_eq!(way(json!({"url": plain, "auth": {"env": "NO_SUCH_VARIABLE"}})), None);
        assert_eq!(way(json!({"start": {"command": ["serve"]}, "headers": key})), None);
    }
}
