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
