//! What `bench-worker` says before it works: its help, and why it refuses to start.
#![cfg(feature = "cluster")]

use std::process::Command;

fn run(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench-worker")).args(args).env_clear().output().expect("bench-worker runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn it_explains_itself() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    for word in ["--queue", "--store", "--pool", "--roles", "--concurrency", "--drain", "--listen", "SIGTERM"] {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
}

#[test]
fn what_it_cannot_work_with_is_refused_before_anything_is_opened() {
    let cluster = ["--queue", "amqp://u:secret@127.0.0.1:1/v", "--store", "postgres://u:secret@127.0.0.1:1/d"];
    for (more, words) in [
        (&["--roles", "retain,judges"][..], "unknown role 'judges'"),
        (&["--concurrency", "0"][..], "--concurrency 0"),
        (&["--set", "worker.slotz=3"][..], "worker.slotz"),
    ] {
        let (code, stdout, stderr) = run(&cluster.iter().chain(more).copied().collect::<Vec<_>>());
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(words) && !stderr.contains("secret"), "{stderr}");
    }
    let (code, _, stderr) = run(&["--store", "sqlite:here.db", "--queue", "memory:"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("postgres://"), "{stderr}");
}
