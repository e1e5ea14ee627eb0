//! Requests to servers that are strict in ways in which the simulator is not.

use std::{net::TcpStream, path::Path, process::Command, time::Duration};

use bench_testkit::{
    bench::Bench,
    nginx::Nginx,
    ports,
    process::{Process, mortal, wait_until},
    provider::{KEY, Provider},
    python::{self, Packages},
};
use serde_json::json;

const SERVERS: Packages = Packages {
    name: "strict-servers",
    with_dependencies: &["aiohttp==3.14.5", "uvicorn==0.54.0", "h11==0.16.0", "hypercorn==0.18.0"],
    alone: &[],
};

const FEW: [&str; 8] = [
    "submit",
    "--dataset=locomo-sim",
    "--limit=4",
    "--answerer=openai:gpt-4o-mini",
    "--judge=openai:gpt-4o-mini",
    "--system=bm25",
    "--max-cost=1",
    "--json",
];

/// A certificate of this machine's own for 127.0.0.1, and its key.
fn certificate(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}

#[test]
fn requests_pass_servers_that_are_strict_about_http() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = python::python(SERVERS);
    let program = format!("{}/../testkit/systems/strict_provider.py", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = certificate(folder.path());
    let ports: [u16; 4] = ports::reserve().expect("ports");
    let start = |name: &str, kind: &str, port: u16, more: &[&str]| {
        let mut command = mortal(&python);
        command.args([&program, kind, &port.to_string()]).args(more);
        Process::start(command, folder.path(), name)
    };
    let servers = [
        start("aiohttp", "aiohttp", ports[0], &[]),
        start("uvicorn", "uvicorn", ports[1], &[]),
        start("hypercorn", "hypercorn", ports[2], &[]),
        // it prefers HTTP/2, and speaks 1.1 with who asks for that
        start("hypercorn-tls", "hypercorn", ports[3], &[&certificate, &key]),
    ];
    let provider = Provider::start(&[]);
    let place = provider.base_url().trim_start_matches("http://").trim_end_matches("/v1");
    let mut nginx = Nginx::before(place).expect("nginx starts");
    let mut urls: Vec<(&str, String)> = vec![("nginx", format!("http://{}/v1", nginx.place()))];
    for (server, port) in servers.iter().zip(ports) {
        wait_until(server.name(), Duration::from_secs(30), || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let scheme = if server.name().ends_with("tls") { "https" } else { "http" };
        urls.push((server.name(), format!("{scheme}://127.0.0.1:{port}/v1")));
    }
    for (name, url) in &urls {
        let bench = Bench::new()
            .with_env("OPENAI_BASE_URL", url.as_str())
            .with_env("OPENAI_API_KEY", KEY)
            .with_env("SSL_CERT_FILE", certificate.as_str());
        let done = bench.run(FEW);
        let errors = servers.iter().find(|server| server.name() == *name).map(Process::stderr).unwrap_or_default();
        assert_eq!(done.code, 0, "{name}: {}\n{}\n{errors}", done.stdout, done.stderr);
        let report = done.json();
        assert_eq!((&report["outcomes"]["coverage"], &report["total"]["calls"]), (&json!(1.0), &json!(8)), "{name}");
    }
    assert!(nginx.runs() && provider.count("answers") == 8);
}
