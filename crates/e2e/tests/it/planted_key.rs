//! A planted key, searched for in everything that a run leaves behind: output, logs, store, reports, whatever their packing.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use bench_e2e::faults::{PATIENCE, RUN, Size, Stage};
use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, Setup, wait_until_ready},
    http, ports, postgres,
    provider::{KEY, Provider},
    rabbitmq,
};

/// Frames of zstd begin with this.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Longest text that is taken out of a frame.
const LONGEST: u64 = 4 << 20;

fn holds_plainly(bytes: &[u8], key: &str) -> bool {
    bytes.windows(key.len()).any(|window| window == key.as_bytes())
}

/// Whether bytes hold the key: as it is, as hexadecimal digits, or inside of any compressed frame.
fn holds(bytes: &[u8], key: &str) -> bool {
    use std::io::Read as _;
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    if holds_plainly(bytes, key) || holds_plainly(bytes, &hex) {
        return true;
    }
    let frames = bytes.windows(FRAME.len()).enumerate().filter(|(_, window)| *window == FRAME);
    frames.into_iter().any(|(at, _)| {
        let mut text = Vec::new();
        // what follows the frame is no frame: the first one is what is wanted, even when reading ends in an error
        if let Ok(decoder) = zstd::stream::read::Decoder::new(&bytes[at..]) {
            let _ = decoder.single_frame().take(LONGEST).read_to_end(&mut text);
        }
        holds_plainly(&text, key)
    })
}

/// Everything below a folder.
fn search(folder: &Path, key: &str) -> usize {
    let (mut searched, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                searched += 1;
                assert!(!holds(&std::fs::read(&path).expect("readable"), key), "the key stands in {}", path.display());
            }
        }
    }
    searched
}

#[test]
fn the_search_finds_what_is_packed() {
    let packed = zstd::encode_all(format!("Incorrect API key provided: {KEY}").as_bytes(), 3).expect("packs");
    let bytes = [b"page of a store".as_slice(), &packed, b"the next row"].concat();
    assert!(holds(&bytes, KEY) && holds(KEY.as_bytes(), KEY) && !holds(b"nothing", KEY));
}

#[test]
fn a_local_run_writes_its_key_nowhere() {
    // the provider refuses, fails and repeats the key in its words
    for flags in [&["--fault-500", "0.2", "--fault-garbage", "0.1"][..], &["--bad-key", KEY]] {
        let provider = Provider::start(flags);
        let archives = tempfile::tempdir().expect("a folder");
        let bench = provider.bench().with_env("BENCH_ARCHIVE_URL", archives.path().display().to_string());
        let more = ["-vv", "--run-id", "planted", "--set", "backoff.initial_interval=5ms"];
        let done = bench.run(provider.submit(&more));
        if done.code == 0 {
            assert!(search(archives.path(), KEY) >= 3, "the archive of the run was searched");
        }
        let shown = bench.run(["config", "show", "--all"]).expect_code(0);
        for (place, text) in [("output", done.stdout), ("log", done.stderr), ("settings", shown.stdout)] {
            assert!(!holds(text.as_bytes(), KEY), "the key stands in the {place}");
        }
        for format in ["json", "md", "csv"] {
            let report = bench.run(["report", "planted", "--format", format]);
            assert!(!holds(report.stdout.as_bytes(), KEY), "the key stands in the {format} report");
        }
        assert!(search(bench.path(), KEY) >= 2, "store and reports were searched");
    }
}

#[test]
fn keys_of_a_collector_and_of_a_proxy_are_written_nowhere() {
    let provider = Provider::start(&[]);
    for (protocol, endpoint) in [
        ("http/protobuf", format!("http://somebody:{KEY}@collector.invalid:4318")),
        ("http/protobuf", format!("https://somebody:{KEY}@collector.invalid:4318")),
        ("grpc", format!("http://somebody:{KEY}@127.0.0.1:1")),
    ] {
        let proxy = format!("http://somebody:{KEY}@127.0.0.1:1");
        let bench = provider
            .bench()
            .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .with_env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .with_env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer {KEY}"))
            .with_env("HTTP_PROXY", &proxy)
            .with_env("HTTPS_PROXY", &proxy)
            .with_env("http_proxy", &proxy)
            .with_env("https_proxy", &proxy)
            .with_env("NO_PROXY", "127.0.0.1")
            .with_env("no_proxy", "127.0.0.1");
        let more = ["-vv", "--run-id", "planted", "--set", "trace.rate=1"];
        let done = bench.run(provider.submit(&more)).expect_code(0);
        assert!(done.stderr.contains("cannot be sent"), "the collector is not there: {}", done.stderr);
        let shown = bench.run(["config", "show", "--all"]).expect_code(0);
        for (place, text) in [("output", &done.stdout), ("log", &done.stderr), ("settings", &shown.stdout)] {
            let line = text.lines().find(|line| holds(line.as_bytes(), KEY));
            assert!(line.is_none(), "the key stands in the {place} ({protocol}): {line:?}");
        }
        assert!(search(bench.path(), KEY) >= 2, "store and reports were searched");
    }
}

#[test]
fn a_cluster_writes_its_key_nowhere() {
    let stage = Stage::set(Size::Small, Setup::default(), 2);
    stage.provider.control(&serde_json::json!({"faults": {"http_500": 0.2, "garbage": 0.1}}));
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&["-vv", "--set", "backoff.initial_interval=5ms"]);
    let done = client.wait(std::time::Duration::from_secs(60)).expect_code(0);
    assert!(!holds(done.stdout.as_bytes(), KEY) && !holds(done.stderr.as_bytes(), KEY), "the client shows the key");
    search_store(&stage.cluster, KEY);
    let status = stage.cluster.run(&["status", RUN, "--json"]).expect_code(0);
    assert!(!holds(status.stdout.as_bytes(), KEY));
    assert!(search(stage.cluster.bench().path(), KEY) >= 3, "logs of coordinator, workers and client were searched");
}

/// Every table of a cluster's store.
fn search_store(cluster: &Cluster, key: &str) {
    let tables =
        cluster.sql("SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public'");
    assert!(tables.contains("calls") && tables.contains("runs"), "{tables}");
    for table in tables.split_whitespace() {
        let rows = cluster.sql(&format!("SELECT string_agg(t::text, E'\\n') FROM {table} AS t"));
        assert!(!holds(rows.as_bytes(), key), "the key stands in {table}");
        // bytes come as hexadecimal digits: compressed texts are inside
        let bytes: Vec<u8> = rows.split("\\\\x").skip(1).flat_map(unhex).collect();
        assert!(!holds(&bytes, key), "the key stands packed in {table}");
    }
}

/// What no rule knows for a key.
const PLANTED: &str = "zq9open0sesame7value";

/// Many servers repeat the path of a request in an error, and some gateways want a key there.
#[test]
fn keys_in_the_path_and_the_query_of_a_base_url_are_written_nowhere() {
    const IN_PATH: &str = "zQ7kXp20Ld9RtW4m";
    let (place, _bodies) = http::answering(|head| {
        let asked = head.lines().next().unwrap_or_default();
        let body = serde_json::json!({"error": {"message": format!("Invalid URL ({asked})")}}).to_string();
        let kind = "content-type: application/json\r\nconnection: close";
        format!("HTTP/1.1 404 Not Found\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let url = format!("http://{place}/{IN_PATH}/v1?key={PLANTED}");
    let bench = Bench::new().with_env("OPENAI_BASE_URL", url).with_env("OPENAI_API_KEY", KEY);
    let few = ["submit", "--dataset", "locomo-sim", "--max-banks", "1", "--per-bank", "2", "--system", "bm25"];
    let models = ["--answerer", "openai:gpt-4o", "--judge", "openai:gpt-4o", "--run-id", "planted", "-vv"];
    let done = bench.run(few.iter().chain(&models));
    assert!(done.stderr.contains("/[key]/v1/chat/completions?key=[key]"), "it was repeated: {}", done.stderr);
    let status = bench.run(["status", "planted", "--json"]);
    let report = bench.run(["report", "planted", "--format", "json"]);
    let settings = bench.run(["config", "show", "--all"]);
    for key in [IN_PATH, PLANTED, KEY] {
        for (verb, done) in [("submit", &done), ("status", &status), ("report", &report), ("config show", &settings)] {
            let line = done.stdout.lines().chain(done.stderr.lines()).find(|line| holds(line.as_bytes(), key));
            assert!(line.is_none(), "a key stands in what {verb} says: {line:?}");
        }
        assert!(search(bench.path(), key) >= 1, "the store was searched");
    }
}

/// An adapter of a small server, and what stands in it besides.
fn adapter(more: &str) -> String {
    format!(
        "name: mine\n{more}\nretain: {{request: POST /add, body: {{text: '{{text}}'}}}}\n\
         recall: {{request: POST /search, body: {{query: '{{query}}'}}, hits: [{{list: results, text: memory}}]}}\n\
         health: {{request: GET /health}}\n"
    )
}

/// Whoever may submit names variables of the workers, wherever an adapter takes them.
#[test]
fn a_variable_of_a_worker_that_a_submitter_puts_into_a_url_is_written_nowhere() {
    let cluster = Cluster::new().with_key("PLANTED_KEY", PLANTED);
    let urls = [
        "sqlite:${env:PLANTED_KEY}",
        "https://${env:PLANTED_KEY}.invalid",
        "https://mem.invalid/${env:PLANTED_KEY}/v1",
        "https://mem.invalid/${env:NO_SUCH:-${env:PLANTED_KEY}}",
    ];
    for (number, url) in urls.iter().take(3).enumerate() {
        fs::write(cluster.bench().path().join("mine.yaml"), adapter(&format!("url: '{url}'"))).expect("is written");
        let id = format!("run-{number}");
        let args = ["submit", "--dataset", "locomo-sim", "--max-banks", "1", "--system", "./mine.yaml"];
        let done = cluster.client(&[&args[..], &["--run-id", &id, "--detach"]].concat()).wait(PATIENCE);
        assert!(done.stdout.contains(&id), "{}", done.stderr);
    }
    // the last one never becomes a run by itself: whoever writes the store puts it there
    let nested = urls[3];
    let _ =
        cluster.sql(&format!("UPDATE runs SET spec = replace(spec, '{}', '{nested}') WHERE run_id = 'run-2'", urls[2]));
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker("worker", &["-vv"]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut worker);
    // what no worker can build waits for one that can; these two are paused
    for number in 0..2 {
        let status =
            cluster.wait_for_status(&format!("run-{number}"), PATIENCE, |status| status["status"] != "running");
        assert!(!holds(status.to_string().to_lowercase().as_bytes(), PLANTED), "{status}");
    }
    search_store(&cluster, PLANTED);
    for (name, text) in cluster.logs() {
        assert!(!holds(text.as_bytes(), PLANTED), "the key stands in the log of {name}");
    }
    assert!(search(cluster.bench().path(), PLANTED) >= 3, "logs were searched");
}

/// Settings of a run are stored and archived with it.
#[test]
fn a_key_that_is_typed_as_a_setting_is_refused() {
    let bench = Bench::new().with_env("PLANTED_KEY", PLANTED);
    let more = "url: http://127.0.0.1:9\nauth: {env: PLANTED_KEY}\nsettings: {q: {about: words, type: text}}";
    let text = adapter(more).replace("{query: '{query}'}", "{query: '{query}', q: '{setting.q?}'}");
    fs::write(bench.path().join("mine.yaml"), text).expect("is written");
    let submit = ["submit", "--dataset", "locomo-sim", "--max-banks", "1", "--system"];
    // of a built-in system the name of the variable alone says that it is a key
    for (system, setting) in [("./mine.yaml", "mine.q"), ("vector", "vector.query_prefix")] {
        let set = format!("{setting}={PLANTED}");
        let done = bench.run(submit.iter().chain(&[system, "--set", set.as_str()])).expect_code(2);
        assert!(done.stderr.contains(&format!("{setting} holds the value of a key")), "{}", done.stderr);
        assert!(!holds(done.stderr.as_bytes(), PLANTED), "{}", done.stderr);
    }
    let _ = search(bench.path(), PLANTED);
}

/// Servers and processes repeat their keys in their words.
#[test]
fn a_key_that_is_given_to_a_memory_system_in_any_way_is_written_nowhere() {
    let server = "import http.server, os, sys\n\
        class Server(http.server.BaseHTTPRequestHandler):\n    \
            def do_GET(self):\n        \
                self.send_response(200); self.end_headers(); self.wfile.write(b'{}')\n    \
            def do_POST(self):\n        \
                self.rfile.read(int(self.headers['content-length'] or 0))\n        \
                self.send_response(int(sys.argv[2])); self.end_headers()\n        \
                self.wfile.write((str(self.headers) + os.environ.get('GIVEN', '')).encode())\n\
        http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Server).serve_forever()\n";
    let process = "import json, os, sys\n\
        for line in sys.stdin:\n    \
            asked = json.loads(line)\n    \
            said = {'id': asked['id'], 'ok': asked['op'] in ('hello', 'health'), 'error': 'no ' + os.environ['GIVEN']}\n    \
            print(json.dumps(said), flush=True)\n    \
            print('aside', os.environ['GIVEN'], flush=True)\n";
    let [port] = ports::reserve().expect("a port");
    let key = "${env:PLANTED_KEY}";
    for (number, more) in [
        format!("url: http://127.0.0.1:{port}\nheaders: {{X-Api-Key: 'of {key}'}}"),
        format!("start: {{command: [python3, '{{dir}}/../../../../../server.py', '{{port}}', '500'], env: {{GIVEN: '{key}'}}}}"),
        format!("command: [python3, process.py]\nenv: {{GIVEN: '{key}'}}"),
    ]
    .iter()
    .enumerate()
    {
        let bench = Bench::new().with_env("PLANTED_KEY", PLANTED);
        for (name, text) in [("server.py", server), ("process.py", process)] {
            fs::write(bench.path().join(name), text).expect("is written");
        }
        let text = if number == 2 { format!("name: mine\n{more}\n") } else { adapter(more) };
        fs::write(bench.path().join("mine.yaml"), text).expect("is written");
        let mut asked = (number == 0).then(|| {
            let mut command = Command::new("python3");
            command.arg(bench.path().join("server.py")).args([port.to_string(), "401".to_owned()]);
            command.stderr(Stdio::null()).spawn().expect("starts")
        });
        while asked.is_some() && std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let args = ["submit", "--dataset", "locomo-sim", "--max-banks", "1", "--per-bank", "2", "--system", "./mine.yaml"];
        let done = bench.run(args.iter().chain(&["--run-id", "planted", "--retries", "1", "-vv"]));
        if let Some(asked) = &mut asked {
            asked.kill().and_then(|()| asked.wait()).expect("is ended");
        }
        assert!(done.stderr.contains("[key]"), "it was repeated, and taken out: {}", done.stderr);
        for (place, text) in [("output", done.stdout), ("log", done.stderr)] {
            assert!(!holds(text.as_bytes(), PLANTED), "the key stands in the {place} of {more}:\n{text}");
        }
        assert!(search(bench.path(), PLANTED) >= 2, "store and reports were searched");
    }
}

/// The bytes that the hexadecimal digits at the beginning of a text say.
fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().map_while(|byte| (byte as char).to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The library that talks to Postgres logs what it does not understand of a URL, with its value.
#[test]
fn what_nobody_reads_of_the_url_of_a_store_is_in_no_log_of_any_level() {
    for filter in ["", "trace"] {
        for query in ["sslpassword=", "passwd=", "token=", "password=ab&"] {
            // nobody listens there
            let url = format!("postgres://ann@127.0.0.1:1/b?{query}{PLANTED}");
            let bench = Bench::new().with_env("BENCH_STORE_URL", url).with_env("RUST_LOG", filter);
            let done = bench.run(["list"]);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(!holds(said.as_bytes(), PLANTED), "{query}: {said}");
            assert_eq!(said.matches("has what nobody reads").count(), 1, "{query}: {said}");
        }
    }
}

/// The library that talks to the broker logs what it sends at trace, the login too.
#[test]
fn passwords_of_broker_and_store_are_in_no_log_of_any_level() {
    let stage = Stage::set(Size::Small, Setup::default(), 5);
    let (cluster, vhost) = (&stage.cluster, stage.cluster.vhost());
    let loud = |program: &str, args: &[&str], store: &str, queue: &str| {
        let mut command = cluster.command(program, store, queue);
        command.args(args).envs([("RUST_LOG", "trace"), ("BENCH_LOG_FORMAT", "json")]);
        command.envs([("OPENAI_BASE_URL", stage.provider.base_url()), ("OPENAI_API_KEY", KEY)]);
        cluster.spawn(command, &format!("loud-{program}-{}", args.len()))
    };
    let roles = &cluster.database().roles;
    let mut coordinator =
        loud("bench-coord", &["serve", "--listen", "127.0.0.1:0"], &roles.coordinate, &vhost.coordinator);
    wait_until_ready(&mut coordinator);
    let mut worker = loud("bench-worker", &[], &roles.work, &vhost.worker);
    wait_until_ready(&mut worker);
    let _ = loud("bench-coord", &Size::Small.submit(&["--run-id", RUN]), &roles.submit, &vhost.worker)
        .wait(PATIENCE)
        .expect_code(0);
    let mut detailed = BTreeSet::new();
    for (name, text) in cluster.logs() {
        for secret in [rabbitmq::PASSWORD, postgres::PASSWORD, KEY] {
            // as text, or as the numbers of its bytes
            let bytes: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
            for secret in [secret.to_owned(), bytes.join(", ")] {
                let line = text.lines().find(|line| line.contains(&secret)).unwrap_or_default();
                assert!(line.is_empty(), "a secret stands in {name}: {line}");
            }
        }
        let is_detail = ["TRACE", "DEBUG"].iter().any(|level| text.contains(&format!("\"level\":\"{level}\"")));
        // each process writes a file of its output and one of its log
        let process = name.rsplit_once('.').map_or(name.as_str(), |(process, _)| process);
        if is_detail && process.starts_with("loud-") {
            detailed.insert(process.to_owned());
        }
        assert!(!text.lines().any(|line| line.contains("\"TRACE\"") && line.contains("\"target\":\"lapin")), "{name}");
    }
    assert_eq!(detailed.len(), 3, "coordinator, worker and submitter logged everything else: {detailed:?}");
}
