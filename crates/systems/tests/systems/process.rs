//! A system of the user's own that is a process: the example of the documentation, driven through all checks.

use std::{path::Path, sync::Arc};

use bench_proto::failure::FailureClass;
use bench_systems::{
    BuildContext, MemorySystem, RecallQuery, SystemSettings, adapter, check::Outcome, policy::Policy, registry,
};

use super::{checked, of_text};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/memory.py");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_example_passes_the_checks() {
    let text = format!("name: example\ncommand: [python3, '{EXAMPLE}']\nlimits: {{max_k: 50}}\n");
    let system = of_text(&text, None);
    let (_, steps) = checked(system.as_ref()).await;
    assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{steps:#?}");
    let said = system.statistics(&super::robust::bank()).await.expect("it need not have any");
    assert_eq!((said.version.as_deref(), said.numbers.len()), (Some("1.0"), 0));
    system.close().await;
}

#[tokio::test]
async fn a_process_that_cannot_be_started_says_so() {
    let system = of_text("name: gone\ncommand: [/does/not/exist]\n", None);
    let failure = system.health().await.expect_err("is not there");
    assert!(failure.message.contains("/does/not/exist"), "{failure}");
}

#[tokio::test]
async fn a_process_that_ends_at_once_says_why() {
    let text = "name: broken\ncommand: [python3, -c, 'raise SystemExit(\"no module named memory\")']\n";
    let failure = of_text(text, None).health().await.expect_err("it ends");
    assert!(failure.message.contains("no module named memory"), "its last words: {failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_need_not_count_nor_have_numbers() {
    let lacks = "import sys, json\nfor line in sys.stdin: r = json.loads(line); print(json.dumps({\"id\": r[\"id\"], \"ok\": r[\"op\"] == \"hello\", \"error\": \"no \" + r[\"op\"]}), flush=True)";
    let spec = serde_json::json!({ "name": "lacking", "command": ["python3", "-c", lacks] });
    let system = of_text(&spec.to_string(), None);
    let bank = super::robust::bank();
    assert_eq!(system.verify(&bank, 1).await.expect("need not"), None);
    assert!(system.statistics(&bank).await.expect("need not").is_empty());
    let refused = system.reset_bank(&bank).await.expect_err("what has to be done is not skipped");
    assert!(refused.message.contains("lacking says: no reset"), "{refused}");
    system.close().await;
}

/// A process of others refuses in words of its own: what it never did it does not do, and what it did has failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_refuses_to_count_does_not_count_until_it_has_counted() {
    let replies = "import sys, json
said = [{'error': 'I only store'}, {'ok': True}, {'error': 'no'}, {'error': 'the disk is busy', 'retry': True}, {'ok': True, 'count': 3}, {'error': 'the bank is gone'}]
for line in sys.stdin:
    request = json.loads(line)
    reply = {'ok': True} if request['op'] == 'hello' else {'ok': False, **said.pop(0)}
    print(json.dumps({'id': request['id'], **reply}), flush=True)";
    let spec = serde_json::json!({ "name": "terse", "command": ["python3", "-c", replies] });
    let system = of_text(&spec.to_string(), None);
    let bank = super::robust::bank();
    for _ in 0..3 {
        assert_eq!(system.verify(&bank, 1).await.expect("need not count"), None);
    }
    let busy = system.verify(&bank, 1).await.expect_err("may count later");
    assert_eq!((busy.class, busy.message.contains("lacking")), (FailureClass::Transient, false), "{busy}");
    let counted = system.verify(&bank, 1).await.expect("counts").expect("has counted");
    assert_eq!(counted.found, 3);
    let gone = system.verify(&bank, 1).await.expect_err("a bank that it has counted is lost");
    assert!(gone.message.starts_with("verify: terse says: the bank is gone; "), "{gone}");
    assert!(gone.message.ends_with("a process that does not count replies `lacking: true`"), "{gone}");
    system.close().await;
}

/// A request that was given up in the middle of its line must not be the beginning of the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_was_cut_is_no_part_of_the_next_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let busy_once = format!(
        "import sys, json, time, os
mark = '{}'
first = not os.path.exists(mark)
open(mark, 'w').close()
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({{'id': request['id'], 'ok': True, 'version': 'second', 'hits': []}}), flush=True)
    if first: time.sleep(2)",
        folder.path().join("mark").display()
    );
    let spec = serde_json::json!({ "name": "busy", "timeout": "1s", "command": ["python3", "-c", busy_once] });
    let system = of_text(&spec.to_string(), None);
    // longer than any pipe holds
    let text = "long ".repeat(200_000);
    let query = RecallQuery { question_id: "q", text: &text, k: 1, visible_entries: 1, ..RecallQuery::default() };
    let failure = system.recall(&super::robust::bank(), &query).await.expect_err("nobody reads it");
    assert_eq!(failure.code, "system_timeout");
    let health = system.health().await.expect("another process answers");
    assert!(health.contains("second"), "{health}");
    system.close().await;
}

#[tokio::test]
async fn a_handle_of_a_process_that_names_no_bank_is_refused() {
    let empty = "import sys, json\nfor line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'ok': True, 'handle': ''}), flush=True)";
    let spec = serde_json::json!({ "name": "empty", "command": ["python3", "-c", empty] });
    let system = of_text(&spec.to_string(), None);
    let refused = system.open_bank(&super::robust::bank()).await.expect_err("is refused");
    assert!(refused.message.contains("names no bank"), "{refused}");
    system.close().await;
}

/// What a process says is bounded and read at once: nobody waits out the time limit for what cannot be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_replies_are_failures_of_their_own_and_fill_no_store() {
    let absurd = "import sys, json
hit = {'text': 'x', 'id': '1'}
for line in sys.stdin:
    request = json.loads(line)
    said = {
        'hello': {'version': 'v' * 100_000},
        'statistics': {'numbers': {('n%d' % n): 1e308 for n in range(10_000)}},
        'verify': {'count': -1},
        'recall': {'hits': [hit] * 400_000},
        'answer': {'text': 'x', 'prompt_tokens': 2 ** 64},
    }.get(request['op'], {})
    print(json.dumps({'id': request['id'], 'ok': True, **said}), flush=True)";
    let spec = serde_json::json!({ "name": "absurd", "timeout": "1h", "command": ["python3", "-c", absurd] });
    let system = of_text(&spec.to_string(), None);
    let bank = super::robust::bank();
    system.health().await.expect("is greeted");
    let said = system.statistics(&bank).await.expect("some of it is kept");
    assert!(said.version.expect("has one").len() < 400 && said.numbers.len() == 100);
    let failure = system.verify(&bank, 1).await.expect_err("is no number of items");
    assert!(failure.message.starts_with("verify: the reply cannot be read"), "{failure}");
    let query = RecallQuery { question_id: "q", text: "x", k: 5, visible_entries: 1, ..RecallQuery::default() };
    let failure = system.answer(&bank, &query).await.expect_err("are no tokens");
    assert!(failure.message.starts_with("answer: the reply cannot be read"), "{failure}");
    let failure = system.recall(&bank, &query).await.expect_err("is more than is read");
    assert_eq!(failure.code, "system_response_too_long", "{failure}");
    assert!(
        failure.message.starts_with("recall: the response is longer than 8388608 bytes: ask for less"),
        "{failure}"
    );
    assert!(system.verify(&bank, 1).await.is_err(), "another process is asked");
    system.close().await;
}

/// A class of Python, as its file says, with its folder as the home of its run.
fn of_class(folder: &Path, text: &str) -> Arc<dyn MemorySystem> {
    let file = folder.join("mine.py");
    std::fs::write(&file, text).expect("is written");
    let named = adapter::code::split(file.to_str().expect("is a text")).expect("is a file of code");
    let spec = adapter::code::read(&named).expect("is described");
    let adapter = serde_json::to_value(&spec).expect("serialises");
    let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), adapter)]);
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    registry::build(&spec.name, &settings, &context.in_home(folder)).expect("builds")
}

/// A class that cannot be made at first, hangs once, raises where it is to count, and takes its time to close.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_is_made_again_ended_where_it_hangs_believed_where_it_fails_and_waited_for_when_it_closes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (away, hung, saved) = (at("away"), at("hung"), at("saved"));
    let text = format!(
        "import os, time
class Mine:
    durable = True
    timeout = '4s'
    def __init__(self):
        if not os.path.exists({away:?}):
            open({away:?}, 'w').close()
            raise ConnectionError('the database is away for now')
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        if not os.path.exists({hung:?}):
            open({hung:?}, 'w').close()
            time.sleep(600)
        return []
    def verify(self, bank): return {{}}[bank]
    def statistics(self, bank): return {{}}[bank]
    def close(self):
        time.sleep(3.5)
        open({saved:?}, 'w').close()
"
    );
    let system = of_class(folder.path(), &text);
    let bank = super::robust::bank();
    let query = RecallQuery { question_id: "q", text: "x", k: 1, visible_entries: 1, ..RecallQuery::default() };
    let failure = system.health().await.expect_err("cannot be made yet");
    assert_eq!(failure.class, FailureClass::Transient, "{failure}");
    assert!(failure.message.contains("the database is away for now"), "{failure}");
    system.health().await.expect("is made");

    let failure = system.recall(&bank, &query).await.expect_err("never returns");
    assert_eq!(failure.code, "system_timeout", "{failure}");
    assert!(failure.message.contains("its process was ended"), "{failure}");
    assert!(system.recall(&bank, &query).await.expect("another process answers").hits.is_empty());
    assert_eq!(system.started_again().len(), 1);

    let lost = system.verify(&bank, 1).await.expect_err("it counts, and what it counts is gone");
    assert!(lost.message.contains("verify: mine says: KeyError: 'bench-1-g1'"), "{lost}");
    let said = system.statistics(&bank).await.expect("nothing depends on them");
    assert!(said.version.is_some() && said.numbers.is_empty());
    system.close().await;
    assert!(saved.exists(), "it was waited for");
}

/// The end of its input asks a process to end; what it has started does not stay, whichever way it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_asked_to_end_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let starts = format!(
        "import sys, json, subprocess, os
child = subprocess.Popen(['sleep', '600'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
open({:?}, 'w').write(str(child.pid))
for line in sys.stdin:
    request = json.loads(line)
    if request['op'] == 'recall':
        print('no memory left', file=sys.stderr, flush=True)
        os._exit(7)
    print(json.dumps({{'id': request['id'], 'ok': True}}), flush=True)
open({:?}, 'w').close()",
        at("child"),
        at("closed")
    );
    let child = || std::fs::read_to_string(at("child")).expect("one was started");
    let lives =
        |child: &str| std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let ends = async |child: &str| {
        for _ in 0..500 {
            if !lives(child) {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        false
    };
    let spec = serde_json::json!({ "name": "starts", "command": ["python3", "-c", starts] });
    let system = of_text(&spec.to_string(), None);
    let query = RecallQuery { question_id: "q", text: "x", k: 1, visible_entries: 1, ..RecallQuery::default() };
    system.health().await.expect("answers");
    let first = child();
    assert!(lives(&first));
    let failure = system.recall(&super::robust::bank(), &query).await.expect_err("it ends in the middle");
    let expected = "recall: the process starts ended (exit status: 7): no memory left";
    assert!(failure.code == "system_connection" && failure.message.starts_with(expected), "{failure}");
    assert!(system.started_again().is_empty(), "no other one was needed yet");
    system.health().await.expect("another one answers");
    let told = system.started_again();
    assert!(told.len() == 1 && told[0].starts_with("(exit status: 7): no memory left"), "{told:?}");
    assert!(system.started_again().is_empty(), "it is told once");
    assert!(ends(&first).await && lives(&child()));
    let began = std::time::Instant::now();
    system.close().await;
    assert!(at("closed").exists(), "it was asked to end");
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "nobody waits for a process that has ended");
    assert!(ends(&child()).await, "what it has started");
}
