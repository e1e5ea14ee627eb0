//! `export RUN --mlflow URL`, against the server that people run.

use std::{
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use bench_testkit::{
    bench::{Bench, submit_sim},
    http::{answering, get, request},
    ports,
    process::{Process, mortal, wait_until},
    python::{self, Packages},
};
use serde_json::{Value, json};

/// The server without what trains and serves models.
const SERVER: Packages = Packages {
    name: "mlflow",
    with_dependencies: &[
        "mlflow-skinny==3.17.2",
        "flask==3.1.3",
        "flask-cors==6.0.5",
        "sqlalchemy==2.1.9",
        "alembic==1.20.1",
        "fastapi==0.165.0",
        "uvicorn==0.54.0",
        "huey==3.5.4",
        "pandas==3.1.1",
        "numpy==2.4.6",
        "cryptography==50.0.2",
        "aiohttp==3.14.5",
    ],
    alone: &[],
};

/// A tracking server with its database in a folder.
struct MlFlow {
    process: Process,
    place: String,
    _folder: tempfile::TempDir,
}

impl MlFlow {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [port] = ports::reserve().expect("a port");
        let place = format!("127.0.0.1:{port}");
        let mut command = mortal(&python::python(SERVER));
        // what `mlflow server` starts, without the process that watches over it
        command.args([
            "-m",
            "uvicorn",
            "mlflow.server.fastapi_app:app",
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ]);
        let files = folder.path().display();
        command.env("_MLFLOW_SERVER_FILE_STORE", format!("sqlite:///{files}/mlflow.db"));
        command.env("_MLFLOW_SERVER_ARTIFACT_ROOT", format!("{files}/artifacts"));
        command.env("MLFLOW_DISABLE_TELEMETRY", "true").current_dir(folder.path());
        let process = Process::start(command, folder.path(), "mlflow");
        let this = Self { process, place, _folder: folder };
        wait_until("the MLflow server", Duration::from_secs(180), || {
            get(&this.place, "/health").is_ok_and(|r| r.status == 200)
        });
        this
    }

    fn url(&self) -> String {
        format!("http://{}", self.place)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let reply = request(method, &self.place, &format!("/api/2.0/mlflow/{path}"), None, &body.to_string());
        let reply = reply.unwrap_or_else(|error| panic!("{path}: {error}: {}", self.process.stderr()));
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    /// All runs of an experiment.
    fn runs(&self, experiment: &str) -> Vec<Value> {
        let found = self.ask("GET", &format!("experiments/get-by-name?experiment_name={experiment}"), &json!({}));
        let search = json!({"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 100});
        self.ask("POST", "runs/search", &search)["runs"].as_array().cloned().unwrap_or_default()
    }
}

/// The value of a name among pairs of `key` and `value`.
fn value<'a>(pairs: &'a Value, name: &str) -> &'a Value {
    let found = pairs.as_array().and_then(|pairs| pairs.iter().find(|pair| pair["key"] == name));
    found.map_or(&Value::Null, |pair| &pair["value"])
}

#[test]
fn a_result_is_kept_once_with_its_settings_figures_and_digest() {
    let (server, bench) = (MlFlow::start(), Bench::new());
    let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", "first", "--name", "a name"])).expect_code(0);
    let export = ["export", "first", "--mlflow", &server.url()];
    let done = bench.run(export).expect_code(0);
    let page = done.stdout.trim().to_owned();
    assert!(page.starts_with(&server.url()) && page.contains("/#/experiments/"), "{page}");

    let report = bench.report("first");
    let runs = server.runs("bench-coord/locomo-sim");
    assert_eq!(runs.len(), 1, "{runs:#?}");
    let (info, data) = (&runs[0]["info"], &runs[0]["data"]);
    assert_eq!((&info["run_name"], &info["status"]), (&json!("a name"), &json!("FINISHED")), "{info:#}");
    assert!(page.ends_with(info["run_id"].as_str().expect("an id")), "{page}");
    assert!(
        info["end_time"].as_i64() >= info["start_time"].as_i64() && info["start_time"].as_i64() > Some(0),
        "{info:#}"
    );
    let (headline, score) = (&report["headline"], &report["scores"][0]);
    let category = &score["by_category"][0];
    for (name, expected) in [
        ("score", &headline["value"]),
        ("score/low", &headline["ci95"]["low"]),
        ("score/high", &headline["ci95"]["high"]),
        ("coverage", &report["outcomes"]["coverage"]),
        ("latency_probe/p50_ms", &report["latency_probe"]["p50_ms"]),
        (
            &format!(
                "scores/{}/{}",
                score["metric"].as_str().unwrap_or(""),
                category["category"].as_str().unwrap_or("")
            ),
            &category["value"],
        ),
    ] {
        let (kept, expected) = (value(&data["metrics"], name).as_f64(), expected.as_f64());
        assert!(kept.is_some() && kept == expected, "{name}: {kept:?} instead of {expected:?}");
    }
    for (name, expected) in [("dataset", "locomo-sim"), ("system", "bm25"), ("sample.preset", "quick"), ("top_k", "10")]
    {
        assert_eq!(value(&data["params"], name), expected, "{name}");
    }
    for (name, expected) in [
        ("bench.run", &report["run"]["id"]),
        ("bench.result_digest", &report["result_digest"]),
        ("bench.fingerprint", &report["run"]["fingerprint"]),
        ("bench.verdict", &json!("VALID")),
    ] {
        assert_eq!(value(&data["tags"], name), expected, "{name}");
    }
    let kept = runs[0].to_string();
    for question in bench.questions("first") {
        let text = question["question"].as_str().expect("a text");
        assert!(!kept.contains(text), "the question '{text}' was sent");
    }

    // again: the same run; what was cut: gone on with
    let again = bench.run(export).expect_code(0);
    assert!(again.stdout.trim() == page && again.stderr.contains("was there already"), "{}", again.stderr);
    let open = json!({"run_id": info["run_id"], "status": "RUNNING"});
    let _ = server.ask("POST", "runs/update", &open);
    let _ = bench.run(export).expect_code(0);
    let runs = server.runs("bench-coord/locomo-sim");
    assert_eq!((runs.len(), &runs[0]["info"]["status"]), (1, &json!("FINISHED")), "{runs:#?}");

    let named = bench.run(export.iter().chain(&["--mlflow-experiment", "mine"])).expect_code(0);
    assert_eq!(server.runs("mine").len(), 1, "{}", named.stdout);
}

/// A server that answers every request with these words: its URL, and the heads of what it is asked.
fn saying(reply: String) -> (String, Receiver<String>) {
    let (sender, heads) = mpsc::channel();
    let (place, _) = answering(move |head| {
        // it is heard before it is answered
        let _ = sender.send(head.to_lowercase());
        reply.clone()
    });
    (format!("http://{place}"), heads)
}

#[test]
fn who_asks_is_said_to_the_server_alone_and_refusals_say_what_to_do() {
    let bench = Bench::new().with_env("MLFLOW_TRACKING_TOKEN", "secret-token");
    let _ = bench.run(submit_sim(&["--sample", "2", "--max-banks", "1", "--run-id", "first"])).expect_code(0);
    let body = json!({"error_code": "UNAUTHENTICATED", "message": "nobody has Authorization: Bearer secret-token"})
        .to_string();
    let length = body.len();
    let reply = format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let (url, heard) = saying(reply);
    let refused = bench.run(["export", "first", "--mlflow", &url]).expect_code(2).stderr;
    assert!(refused.contains("401") && refused.contains("set MLFLOW_TRACKING_TOKEN"), "{refused}");
    assert!(refused.contains("Bearer [key]") && !refused.contains("secret-token"), "{refused}");
    assert!(heard.try_recv().expect("heard").contains("authorization: bearer secret-token"));

    // a redirection is not followed, wherever it leads
    let trap = TcpListener::bind("127.0.0.1:0").expect("a port");
    trap.set_nonblocking(true).expect("can");
    let to = trap.local_addr().expect("an address");
    let reply =
        format!("HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let (url, heard) = saying(reply);
    let refused = bench.run(["export", "first", "--mlflow", &url]).expect_code(2).stderr;
    assert!(refused.contains("leads elsewhere") && !refused.contains("secret-token"), "{refused}");
    assert!(heard.try_recv().is_ok() && trap.accept().is_err(), "nobody came");

    let (url, heard) = saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".to_owned());
    let refused = bench.run(["export", "first", "--mlflow", &url]).expect_code(2).stderr;
    assert!(refused.contains("is no MLflow server") && heard.try_recv().is_ok(), "{refused}");

    let [port] = ports::reserve().expect("a port");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let away = bench.run(["export", "first", "--mlflow", &format!("http://127.0.0.1:{port}")]).expect_code(4).stderr;
    assert!(away.contains("does not answer"), "{away}");
    for (wrong, why) in [
        ("ftp://mlflow.example", "takes the URL of a tracking server"),
        ("http://user:hidden-one@127.0.0.1", "set MLFLOW_TRACKING_TOKEN"),
        ("http://mlflow.example", "not encrypted"),
    ] {
        let refused = bench.run(["export", "first", "--mlflow", wrong]).expect_code(2).stderr;
        assert!(refused.contains(why) && !refused.contains("hidden-one"), "{wrong}: {refused}");
    }
    let _ = bench.run(["export", "first", "--mlflow", "http://127.0.0.1", "--format", "csv"]).expect_code(2);
}
