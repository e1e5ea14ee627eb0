//! Systems that are started, one for each bank: how many are kept at a time, however much memory the machine has.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    ids::Sha256Hash,
};
use bench_systems::{
    BankRef, BuildContext, RecallQuery, StepContext, SystemSettings, adapter, policy::Policy, registry,
};

/// One more than are kept, and another.
const BANKS: usize = 18;

fn adapter_text() -> String {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/systems/memory_server.py");
    format!(
        "
name: mine
start: {{command: [python3, '{server}', '{{port}}'], env: {{MEMORY_FILE: '{{dir}}/memories.json'}}, per: bank, kept: 16}}
retain: {{request: POST /add, body: {{text: '{{content}}', user: '{{bank}}', meta: {{turn: '{{id}}'}}}}}}
recall:
  request: POST /search
  body: {{query: '{{query}}', user: '{{bank}}', limit: '{{k}}'}}
  hits: [{{list: results, text: memory, id: meta.turn, score: score}}]
health: {{request: GET /health, version: version}}
"
    )
}

fn bank(number: usize) -> BankRef {
    let text = format!("the heron of bank {number} sleeps in a bathtub");
    let memory = Memory { id: format!("m{number}"), text, ..Memory::default() };
    let entries = vec![StreamEntry::Memory(memory)];
    let content = BankContent { bank_id: format!("b{number}"), speakers: Vec::new(), entries };
    BankRef {
        name: format!("bench-{number}-g1"),
        handle: None,
        bank_id: content.bank_id.clone(),
        content_hash: Sha256Hash::of_bytes(content.bank_id.as_bytes()),
        content: Some(Arc::new(content)),
    }
}

fn running(home: &Path) -> usize {
    let banks = std::fs::read_dir(home.join("systems/room/mine")).into_iter().flatten().flatten();
    banks.filter(|bank| bank.path().join("instance.json").exists()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_instances_make_room_and_come_back_with_what_they_hold() {
    let home = tempfile::tempdir().expect("a folder");
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let context = context.in_home(home.path()).for_run("room");
    let spec = adapter::file::parse(&adapter_text()).expect("the adapter reads");
    let adapter = serde_json::to_value(&spec).expect("serialises");
    let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), adapter)]);
    let system = registry::build(&spec.name, &settings, &context).expect("builds");
    let mut banks = Vec::new();
    for number in 0..BANKS {
        let mut bank = bank(number);
        bank.handle = Some(system.open_bank(&bank).await.expect("opens"));
        let entries = &bank.content.as_ref().expect("has content").entries;
        let _ = system.retain(&bank, entries, StepContext::default()).await.expect("stores");
        banks.push(bank);
    }
    assert_eq!(running(home.path()), 16, "those that nobody has asked for longest were ended");
    let query = RecallQuery {
        question_id: "q",
        text: "where does the heron sleep",
        time_text: None,
        k: 5,
        visible_entries: 1,
        ..RecallQuery::default()
    };
    let found = system.recall(&banks[0], &query).await.expect("is started again");
    assert_eq!(found.hits[0].id, "m0");
    assert_eq!(running(home.path()), 16, "and another one was ended for it");
    system.close().await;
    assert_eq!(running(home.path()), 0);
}

/// A system whose check counts how often it is run, says something of its environment, and then ends with `code`.
fn checked(code: u8) -> (SystemSettings, String) {
    let check =
        format!("check: [sh, -c, 'echo one >> checks.txt; echo \"$MEMORY_FILE is no place\" >&2; exit {code}']");
    let text = adapter_text().replace("per: bank, kept: 16", &format!("{check}, per: bank"));
    let spec = adapter::file::parse(&text).expect("the adapter reads");
    let adapter = serde_json::to_value(&spec).expect("serialises");
    (SystemSettings::from([(adapter::ADAPTER.to_owned(), adapter)]), spec.name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_system_wants_checked_is_checked_before_it_is_started() {
    let home = tempfile::tempdir().expect("a folder");
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let context = context.in_home(home.path()).for_run("room");
    let (settings, name) = checked(1);
    let none = adapter::given::Given::default();
    let refused = adapter::check_start(&settings, &none, home.path()).await.expect_err("the check fails");
    assert!(
        refused.starts_with("mine is not started, its check (`start.check`) has failed (exit status: 1): "),
        "{refused}"
    );
    assert!(refused.ends_with("/data/memories.json is no place"), "as the system would be run: {refused}");
    let left = std::fs::read_dir(home.path().join("systems")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left of it");
    let system = registry::build(&name, &settings, &context).expect("builds");
    let failure = system.open_bank(&bank(1)).await.expect_err("is not started");
    assert_eq!(failure.code, "system_start", "{failure}");
    assert!(failure.message.contains("its check (`start.check`) has failed") && running(home.path()) == 0, "{failure}");

    let (settings, name) = checked(0);
    assert_eq!(adapter::check_start(&settings, &none, home.path()).await, Ok(()));
    let context = context.for_run("another");
    let system = registry::build(&name, &settings, &context).expect("builds");
    let (one, another) = (bank(0), bank(1));
    let (one, another) = tokio::join!(system.open_bank(&one), system.open_bank(&another));
    assert!(one.is_ok() && another.is_ok(), "{one:?} {another:?}");
    let folders = std::fs::read_dir(home.path().join("systems/another/mine")).expect("is there").flatten();
    let checks = folders.filter(|bank| bank.path().join("data/checks.txt").exists()).count();
    assert_eq!(checks, 1, "once for all instances");
    system.close().await;
}

#[tokio::test]
async fn a_variable_that_a_start_needs_is_asked_for_before_it() {
    let text = "name: mine\nstart: {command: [mem, --port, '{port}'], env: {MINE_KEY: '${env:NO_SUCH_KEY_4711}'}}\n";
    let spec = adapter::file::parse(text).expect("reads");
    let value = serde_json::to_value(&spec).expect("serialises");
    let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), value)]);
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lacks =
        adapter::check_start(&settings, &adapter::given::Given::default(), home).await.expect_err("nobody has set it");
    assert_eq!(lacks, "mine cannot be started: the environment variable NO_SUCH_KEY_4711 is not set");
    // a metered run gives it
    let more = BTreeMap::from([("NO_SUCH_KEY_4711".to_owned(), "{key}".to_owned())]);
    let given = adapter::given::Given::new("http://127.0.0.1:1/m/r", "drawn", &more);
    assert_eq!(adapter::check_start(&settings, &given, home).await, Ok(()));
}
