//! The program itself: its first line, its end, its complaints.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-sim"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
}

#[tokio::test]
async fn it_says_where_it_listens_and_writes_its_statistics_when_terminated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stats.json");
    let price = "m=0.15/0.60";
    let mut sim = start(&["--tokens", "bytes", "--price", price, "--stats-file", file.to_str().expect("utf-8")]);
    let mut line = String::new();
    BufReader::new(sim.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["listening"].as_str().expect("a URL");
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/v1"), "{url}");
    let admin = ready["admin"].as_str().expect("a URL");

    let client = reqwest::Client::new();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"where is the lake?"}]}"#;
    let reply = client.post(format!("{url}/chat/completions")).body(body).send().await.expect("answers");
    assert_eq!(reply.status(), 200);
    assert!(client.get(url.replace("/v1", "/healthz")).send().await.expect("answers").status().is_success());
    assert!(client.get(format!("{admin}/healthz")).send().await.expect("answers").status().is_success());
    drop(client);

    let killed = Command::new("kill").args(["-TERM", &sim.id().to_string()]).status().expect("runs");
    assert!(killed.success() && sim.wait().expect("ends").success());
    let text = std::fs::read_to_string(&file).expect("the statistics");
    let stats: bench_sim::Stats = serde_json::from_str(&text).expect("statistics");
    assert_eq!((stats.requests, stats.answers), (1, 1));
    assert!(stats.cost_pico_usd > 0);
}

#[test]
fn wrong_arguments_are_exit_code_2_with_what_is_expected() {
    for (arguments, expected) in [
        (["--judge-accept", "1.5"], "expected a probability from 0 to 1"),
        (["--answer", "loud"], "use echo, extract or fixed:TEXT"),
        (["--price", "m=1"], "MODEL=IN/OUT"),
        (["--rpm", "0"], "a limit must be at least 1"),
        (["--outage", "kind=loud"], "unknown variant"),
        (["--capacity", "0"], "a limit must be at least 1"),
        (["--listen", "192.0.2.1:1"], "choose another address"),
    ] {
        let output = start(&arguments).wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
