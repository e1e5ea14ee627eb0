//! What is expected of an answer is told to no memory system and to nobody who answers: all that they are sent is looked through.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use bench_testkit::{
    bench::Bench,
    ports,
    process::{mortal, wait_until},
    provider::KEY,
};
use serde_json::Value;

/// Words that stand in the answer key alone.
const GOLD: [&str; 2] = ["zq-cello-7731", "zq-oslo-5518"];
const SET: &str = r#"{"dataset": {"name": "told-to-nobody", "scorers": ["substring"]}}
{"session": {"date": "2026-03-04", "turns": [{"speaker": "Ann", "text": "The instrument that I play has four strings."}, {"speaker": "Ben", "text": "I live by a fjord."}]}}
{"id": "plays", "question": "Which instrument does Ann play?", "expected_substrings": ["zq-cello-7731"], "tags": ["music"]}
{"id": "lives", "question": "Where does Ben live?", "reference_answer": "zq-oslo-5518"}
"#;
/// A model server that keeps what it is asked: python3 model.py PORT FILE.
const MODEL: &str = r#"
import http.server, json, sys

class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "gpt-4o-mini", "object": "model"}, {"id": "gpt-4o", "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with open(sys.argv[2], "a") as kept:
            kept.write(json.dumps(asked) + "\n")
        said = {"index": 0, "message": {"role": "assistant", "content": "I do not know"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44}
        self.reply({"id": "x", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [said], "usage": usage})

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
"#;

/// Ends a server with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A memory system that keeps what it is sent in a file: the adapter, and the name and text of its program.
fn spies(kept: &Path) -> [(String, &'static str, String); 2] {
    let replaced = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in the program");
        text.replacen(from, to, 1)
    };
    let kept = kept.display();
    let process = include_str!("../../../../docs/examples/memory.py");
    let keep = format!("    open('{kept}', 'a').write(line)\n    request = json.loads(line)");
    let process = replaced(process, "    request = json.loads(line)", &keep);
    let server = include_str!("../../../testkit/systems/memory_server.py");
    let read = "body = self.rfile.read(int(self.headers.get(\"content-length\") or 0))\n";
    let server = replaced(server, read, &format!("{read}        open('{kept}', 'ab').write(body + b'\\n')\n"));
    let readme = include_str!("../../../../README.md");
    let file = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README has a file");
    let folder = "{dir}/../../../../..";
    let start = format!("start: {{command: [python3, '{folder}/spy.py', '{{port}}']}}");
    [
        ("name: mine\ncommand: [python3, spy.py]\n".to_owned(), "process", process),
        (replaced(file, "url: http://127.0.0.1:8080", &start), "server", server),
    ]
}

/// The model that a request names; none for what goes to a memory system.
fn model_of(line: &str) -> Option<String> {
    let asked: Value = serde_json::from_str(line).ok()?;
    asked["model"].as_str().map(str::to_owned)
}

#[test]
fn gold_is_sent_to_judges_and_to_nobody_else() {
    let [port] = ports::reserve().expect("a port");
    let place = tempfile::tempdir().expect("a folder");
    let (asked, sent) = (place.path().join("asked"), place.path().join("sent"));
    fs::write(place.path().join("model.py"), MODEL).expect("is written");
    let mut model = mortal(Path::new("python3"));
    model.arg(place.path().join("model.py")).arg(port.to_string()).arg(&asked).stderr(Stdio::null());
    let _model = Server(model.spawn().expect("python3 starts"));
    let is_there = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    wait_until("the model server", Duration::from_secs(20), is_there);

    for (number, (adapter, kind, program)) in spies(&sent).iter().enumerate() {
        for (scenario, judged) in [("answer", false), ("ask-augmented", false), ("answer", true)] {
            let bench = Bench::new()
                .with_env("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1"))
                .with_env("OPENAI_API_KEY", KEY);
            for (name, text) in [("spy.py", program.as_str()), ("mine.yaml", adapter.as_str()), ("mine.jsonl", SET)] {
                fs::write(bench.path().join(name), text).expect("is written");
            }
            let _ = fs::remove_file(&asked);
            let _ = fs::remove_file(&sent);
            let run = ["submit", "--dataset", "./mine.jsonl", "--preset", "full", "--system", "./mine.yaml"];
            let how = ["--answerer", "openai:gpt-4o-mini", "--scenario", scenario, "--run-id", "told", "--json"];
            let briefly = ["--latency-probe", "off", "--retries", "1"];
            let judge: &[&str] = if judged { &["--judge", "openai:gpt-4o"] } else { &[] };
            let done = bench.run([&run[..], &how, &briefly, judge].concat());
            let what = format!("{number} {kind} {scenario} {judged}: {}", done.stderr);
            assert_eq!(bench.questions("told").len(), 2, "{what}");

            let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {what}"));
            let (asked, sent) = (read(&asked), read(&sent));
            for said in ["I live by a fjord.", "Where does Ben live?"] {
                assert!(sent.contains(said), "the spy was not asked: {what}\n{sent}");
            }
            let holds_gold = |text: &str| GOLD.iter().any(|word| text.contains(word));
            assert!(!holds_gold(&sent), "a memory system was sent what is expected: {what}\n{sent}");
            let told: Vec<_> = asked.lines().filter(|line| holds_gold(line)).map(model_of).collect();
            assert!(told.iter().all(|model| model.as_deref() == Some("gpt-4o")), "{what}\n{asked}");
            assert_eq!(!told.is_empty(), judged, "judges see it, and so would the spy: {what}\n{asked}");
            assert!(asked.lines().any(|line| model_of(line).as_deref() == Some("gpt-4o-mini")), "{what}");
        }
    }
}
