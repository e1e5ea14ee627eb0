//! Listeners of the real binaries with a thousand half-open connections, and asked by names that are not theirs.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use bench_testkit::{
    cluster::{Cluster, health_of, wait_until_ready},
    http,
    process::Process,
};

/// Connections that are half open at a time.
const THOUSAND: usize = 1000;
/// Longest wait for a page while they are: probes of orchestrators give up after some seconds.
const PROMPT: Duration = Duration::from_secs(3);

/// Room for the test's own ends of the connections.
fn make_room() {
    let pid = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--nofile=4096:"]).status().expect("prlimit is there");
    assert!(raised.success(), "a thousand connections need 4096 files: ulimit -n");
}

/// Half of them say nothing, half of them stop in the middle of a line.
fn half_open(place: &str) -> Vec<TcpStream> {
    let one = |n: usize| {
        let mut stream = TcpStream::connect(place).expect("connects");
        if n.is_multiple_of(2) {
            // it may have been ended by now, for those that came after it
            let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0");
        }
        stream
    };
    (0..THOUSAND).map(one).collect()
}

fn is_prompt(place: &str) {
    let began = Instant::now();
    let reply = http::get(place, "/readyz").expect("is answered");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(began.elapsed() < PROMPT, "answered after {:?}", began.elapsed());
}

fn status_of(place: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("connects");
    stream
        .write_all(format!("GET /metrics HTTP/1.1\r\nconnection: close\r\n{head}\r\n\r\n").as_bytes())
        .expect("writes");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("reads");
    reply.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_thousand_half_open_connections_starve_no_page_and_no_run() {
    make_room();
    let cluster = Cluster::new();
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker("worker", &[]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut worker);
    let places = [health_of(&mut coordinator), health_of(&mut worker)];
    let before = [&coordinator, &worker].map(Process::open_files);

    let _theirs = places.each_ref().map(|place| half_open(place));
    places.iter().for_each(|place| is_prompt(place));
    let client = cluster.client(&["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json"]);
    let _more = places.each_ref().map(|place| half_open(place));
    places.iter().for_each(|place| is_prompt(place));
    for (process, before) in [&coordinator, &worker].into_iter().zip(before) {
        let now = process.open_files();
        assert!(now < before + 200, "{}: {now} files are open, {before} were", process.name());
    }
    let report = client.wait(Duration::from_secs(120)).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);

    for place in &places {
        assert!(status_of(place, &format!("host: {place}")).contains("200"));
        for led in ["host: evil.example", &format!("host: {place}\r\norigin: https://evil.example")] {
            assert!(status_of(place, led).contains("403"), "{led}");
        }
    }
}
