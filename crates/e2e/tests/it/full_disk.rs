//! The disk under a local store runs full in the middle of a run: it stops with one clear line, and goes on when there is room.

use std::process::Stdio;

use bench_testkit::{
    bench::{binary, wait},
    process::mortal,
    provider::{KEY, Provider},
};

/// A small file system that only this script and its children see, so that nothing is left of it when they are gone.
const SCRIPT: &str = r#"
set -eu
mkdir disk
mount -t tmpfs -o size=24m tmpfs disk
dd if=/dev/zero of=disk/ballast bs=1k count=23000 2>/dev/null
coord() { "$0" "$@" --store sqlite:disk/bench.db; }
code=0; coord "$@" --run-id full || code=$?
echo "first: $code"
rm disk/ballast
code=0; coord resume full --json > report.json || code=$?
echo "second: $code"
"#;

#[test]
fn fault_20_the_disk_under_a_local_store_is_full() {
    let provider = Provider::start(&["--latency-ms", "20"]);
    let bench = provider.bench();
    // a user who is not root gets a name space in which it is
    let root = if bench_testkit::is_root() { &["--mount"][..] } else { &["--user", "--map-root-user", "--mount"] };
    let mut command = mortal(std::path::Path::new("unshare"));
    command
        .args(root)
        .args(["sh", "-c", SCRIPT])
        .arg(binary("bench-coord"))
        .args(provider.submit(&["--concurrency", "8"]))
        .current_dir(bench.path())
        .env_clear()
        .envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("USER", "tester"),
            ("NO_COLOR", "1"),
            ("OPENAI_API_KEY", KEY),
        ])
        .env("OPENAI_BASE_URL", provider.base_url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = wait(command.spawn().expect("unshare runs")).expect_code(0);
    assert!(done.stdout.contains("first: 4"), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("no space left for the store"), "{}", done.stderr);
    assert!(done.stdout.contains("second: 0"), "{}\n{}", done.stdout, done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    let report = std::fs::read_to_string(bench.path().join("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["result_digest"].as_str(), Some(Provider::start(&[]).digest(&[]).as_str()));
    let repeated = provider.count("repeated_requests");
    assert!(repeated <= 16, "{repeated} calls were repeated, 8 answers and 8 judgements were in flight");
}
