//! A system of the user's own that is a process: the example of the documentation, driven through all checks.

use bench_worker::systems::check::Outcome;

use super::{checked, of_text};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/memory.py");

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
