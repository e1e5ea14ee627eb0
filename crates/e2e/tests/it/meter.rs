//! What memory systems call themselves, through the meter (P34): with the real programs, classes of Python as memory systems, and the
//! simulated provider, whose own count is what the reports are held to.

use std::{fs, time::Duration};

use bench_testkit::{
    bench::{Bench, signal, submit_sim, wait},
    cluster::{Cluster, health_of, wait_until_ready},
    http,
    provider::{KEY, Provider},
    python::{Packages, virtual_env},
};
use serde_json::{Value, json};

/// Longest time of a run in a cluster that is disturbed.
const LONG: Duration = Duration::from_secs(240);
const PRICES: [&str; 4] = ["--price", "gpt-4o-mini=0.15/0.60", "--price", "text-embedding-3-small=0.02/0"];

/// A memory that asks a model for a summary of each session, and embeds each question: with the standard library alone.
const MINE: &str = r#"
import json, os, urllib.error, urllib.request
import bench_coord

def ask(path, body):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + path, json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    for attempt in range(8):
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            if error.code not in (429, 500) or attempt == 7:
                raise RuntimeError(f"{error.code} {said}")

class Mine(bench_coord.System):
    def __init__(self):
        self.banks = {}

    def retain(self, bank, items):
        for item in items:
            said = ask("/chat/completions", {
                "model": os.environ.get("MINE_MODEL", "gpt-4o-mini"), "temperature": 0, "max_tokens": 64,
                "messages": [{"role": "user", "content": "Sum up: " + item.content}]})
            assert said["choices"][0]["message"]["content"] is not None
            self.banks.setdefault(bank, []).append(item)

    def recall(self, bank, query, k):
        vector = ask("/embeddings", {"model": "text-embedding-3-small", "input": str(query)})
        assert vector["data"][0]["embedding"]
        words = set(str(query).lower().split())
        found = sorted(self.banks.get(bank, []), key=lambda item: -len(words & set(item.content.lower().split())))
        return [bench_coord.Hit(item.content, id=item.id) for item in found[:k]]
"#;

fn mine(bench: &Bench) {
    fs::write(bench.path().join("mine.py"), MINE).expect("is written");
}

/// Metered, with no calls but those of questions.
const METERED: [&str; 6] = ["--system", "mine.py:Mine", "--meter", "--no-canaries", "--latency-probe", "off"];

fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    submit_sim(&[&METERED[..], &["--max-banks", "2", "--sample", "12"], more].concat())
}

/// A folder whose store has the replies that the provider has given to a run, and how many requests it has had for that.
fn with_stored_replies(provider: &Provider) -> (Bench, u64) {
    let bench = provider.bench();
    mine(&bench);
    let _ = bench.run(submit(&["--run-id", "fill", "--cache", "refresh"])).expect_code(0);
    (bench, provider.count("requests"))
}

/// A number of a report, by its path.
fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}: {}", report["metered"]))
}

#[test]
fn p34_the_report_tells_what_the_provider_has_counted_by_stage_model_and_bank() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let report = bench.run(submit(&["--run-id", "a"])).expect_code(0).json();
    let metered = &report["metered"];
    assert_eq!(number(&report, "/metered/calls"), provider.count("requests") as f64, "{metered}");
    assert!((number(&report, "/metered/usd") - provider.paid()).abs() < 1e-12, "{metered}, ${}", provider.paid());
    assert!(
        (number(&report, "/usage/total/usd") - provider.paid()).abs() < 1e-12,
        "the runner itself has paid nothing"
    );
    let stages: Vec<&str> =
        metered["by_stage"].as_array().expect("a list").iter().filter_map(|of| of["stage"].as_str()).collect();
    assert!(stages.contains(&"retain") && stages.contains(&"recall"), "{stages:?}");
    let models: Vec<Value> =
        metered["by_model"].as_array().expect("a list").iter().map(|of| json!([of["model"], of["service"]])).collect();
    assert!(models.contains(&json!(["text-embedding-3-small", "embeddings"])), "{models:?}");
    // a class does one thing at a time, however many of its operations wait
    assert!(number(&report, "/metered/usd_per_1000_turns") > 0.0 && number(&report, "/metered/usd_per_question") > 0.0);
    for bank in metered["by_bank"].as_array().expect("a list") {
        assert!(bank["bank"].is_string() && bank["usd_filling"].as_f64() > Some(0.0), "{bank}");
    }
    assert_eq!(report["usage"]["unknown"], Value::Null, "what is metered is known");
    let text = bench.run(["report", "a", "--full"]).expect_code(0).stdout;
    for said in ["What the memory system called itself", "While it did", "for 1,000 questions"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let kept = fs::read(bench.path().join(".bench/bench.db")).expect("a store");
    assert!(!String::from_utf8_lossy(&kept).contains(KEY));
}

/// Canaries and the latency probe ask too: what they cost is no part of what a question costs.
#[test]
fn p34_what_no_question_asks_for_is_no_part_of_what_a_question_costs() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    // one thing at a time: it is known what each call is for
    let asked = ["--max-banks", "2", "--sample", "4", "--system", "mine.py:Mine", "--meter", "--concurrency", "1"];
    let report = |more: &[&str]| bench.run(submit_sim(&[&asked[..], more].concat())).expect_code(0).json();
    let bare = report(&["--run-id", "bare", "--no-canaries", "--latency-probe", "off"]);
    let before = provider.count("requests");
    let checked = report(&["--run-id", "checked", "--latency-probe", "40"]);
    assert_eq!(number(&checked, "/metered/calls"), (provider.count("requests") - before) as f64);
    let of = |report: &Value, stage: &str| {
        let stages = report["metered"]["by_stage"].as_array().expect("a list");
        stages.iter().find(|of| of["stage"] == stage).map_or(0.0, |of| of["calls"].as_f64().expect("a number"))
    };
    assert!(of(&bare, "recall") > 0.0 && of(&bare, "check") == 0.0, "{}", bare["metered"]);
    assert!(of(&checked, "check") >= 40.0, "{}", checked["metered"]);
    // a question is asked again where planted facts took places of what it looks for; beside a check of its bank, nobody can tell
    let (without, with, neither) = (of(&bare, "recall"), of(&checked, "recall"), of(&checked, "unattributed"));
    assert!(with <= 1.5 * without && with + neither >= without, "{with}, and {neither}, {without} without checks");
    if let Some(each) = checked["metered"]["usd_per_question"].as_f64() {
        let times = each / number(&bare, "/metered/usd_per_question");
        assert!((0.9..1.5).contains(&times), "a question costs {times} times as much");
    }
    let compared = bench.run(["compare", "bare", "checked", "--json"]).json();
    assert_eq!(compared["b"]["metered"]["usd_per_question"], checked["metered"]["usd_per_question"], "{compared}");
    let compared = bench.run(["compare", "bare", "checked"]);
    assert!(compared.stdout.contains("The memory itself, asking 1,000 questions"), "{}", compared.stdout);
}

#[test]
fn p34_a_memory_system_never_holds_the_real_key_and_another_key_opens_nothing() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    let spy = format!(
        "{MINE}\n    def consolidate(self, bank):\n        pass\n\nimport sys, urllib.request\n\
         assert '{}' + '{}' not in repr(dict(os.environ)), 'the real key'\n\
         base = os.environ.get('OPENAI_BASE_URL', '')\n\
         def told(run, key, model='gpt-4o-mini', more={{}}):\n    \
             request = urllib.request.Request(base.replace('/m/' + base.split('/m/')[1].split('/')[0], '/m/' + run) + '/chat/completions',\n        \
                 json.dumps(dict({{'model': model, 'messages': [{{'role': 'user', 'content': 'x'}}]}}, **more)).encode(),\n        \
                 {{'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'}})\n    \
             try:\n        return urllib.request.urlopen(request, timeout=60).status, ''\n    \
             except urllib.error.HTTPError as error:\n        return error.code, error.read().decode()\n\
         if base:\n    \
             mine = os.environ['OPENAI_API_KEY']\n    \
             said = [told('spied', 'other'), told('other-run', mine), told('spied', mine, 'o1-pro')]\n    \
             said += [told('spied', mine, more=more) for more in ({{'models': ['o1-pro']}}, {{'Model': 'o1-pro'}})]\n    \
             open('{}', 'w').write(json.dumps(said))\n",
        &KEY[..6],
        &KEY[6..],
        bench.path().join("said.json").display()
    );
    fs::write(bench.path().join("mine.py"), spy).expect("is written");
    let allowed = submit(&["--run-id", "spied", "--meter-allow", "gpt-4o-mini", "--meter-allow", "text-*"]);
    let _ = bench.run(allowed).expect_code(0);
    let said: Vec<(u16, String)> =
        serde_json::from_str(&fs::read_to_string(bench.path().join("said.json")).expect("was written")).expect("JSON");
    assert_eq!((said[0].0, said[1].0), (401, 401), "{said:?}");
    assert!(matches!(said[2].0, 400 | 403 | 404) && said[2].1.contains("o1-pro"), "{said:?}");
    for ((status, why), name) in said[3..].iter().zip(["models", "Model"]) {
        assert!(*status == 400 && why.contains(&format!("{name}: ")), "{said:?}");
    }
    assert_eq!((said.len(), provider.count_of_model("o1-pro", "requests")), (5, 0), "nothing was forwarded");
}

#[test]
fn p34_the_key_of_a_run_that_a_memory_system_repeats_is_written_nowhere() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    let found = "        words = set(";
    assert!(MINE.contains(found));
    let tells =
        MINE.replace(found, &format!("        raise ValueError('no ' + os.environ['OPENAI_API_KEY'])\n{found}"));
    fs::write(bench.path().join("mine.py"), tells).expect("is written");
    let few = ["--max-banks", "1", "--sample", "1", "--run-id", "told"];
    let done = bench.run(submit_sim(&[&METERED[..], &few].concat()));
    let questions = bench.questions("told");
    let error = questions[0]["error"].to_string();
    assert!(error.contains("no [key]"), "{error}");
    let report = bench.run(["report", "told", "--full"]).stdout;
    for text in [done.stdout, done.stderr, report, format!("{questions:?}")] {
        assert_eq!(bench_proto::redact::run_keys(&text), text, "the key of the run");
    }
}

#[test]
fn p34_the_cap_holds_for_runner_and_memory_system_together_and_the_retain_goes_on_where_it_was() {
    const CAP: f64 = 0.002;
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let models = ["--answerer", "openai:gpt-4o-mini", "--run-id", "r", "--max-cost", "0.002"];
    let paused = bench.run(submit(&models)).expect_code(3);
    assert!(paused.stderr.contains("--max-cost"), "{}", paused.stderr);
    assert!(provider.paid() <= CAP, "${} of ${CAP}", provider.paid());
    let done = bench.run(["resume", "r", "--max-cost", "5", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0, "nothing has failed by the cap: {}", done["errors"]);
    let booked = number(&done, "/usage/total/usd_booked");
    assert!(provider.paid() <= booked + 1e-12, "${} were paid, ${booked} booked", provider.paid());
}

#[test]
fn p34_a_kill_loses_no_call_of_the_memory_system() {
    let provider = Provider::start(&[&PRICES[..], &["--latency-ms", "20"]].concat());
    let bench = provider.bench();
    mine(&bench);
    let child = bench.start(submit(&["--run-id", "v"]));
    provider.wait_for_requests(30);
    // as long as it works, it says where its meter is
    let url = ["meter", "url", "v", "--json"];
    let told = bench.run(url).expect_code(0).json();
    let (at, key) = (told["url"].as_str().expect("an address"), told["key"].as_str().expect("a key"));
    assert!(at.starts_with("http://127.0.0.1:") && at.ends_with("/m/v/v1") && key.starts_with("bm-"), "{told}");
    signal(&child, "KILL");
    let _ = wait(child);
    let left = bench.run(url).expect_code(2);
    assert!(left.stderr.contains("`bench-coord resume v` goes on with it"), "{}", left.stderr);
    let report = bench.run(["resume", "v", "--json"]).expect_code(0).json();
    let (paid, booked) = (provider.paid(), number(&report, "/usage/total/usd_booked"));
    let uncertain = number(&report, "/usage/total/usd_uncertain");
    assert!(paid <= booked + 1e-12, "${paid} were paid, ${booked} booked");
    assert!(booked - uncertain <= paid + 1e-12, "${booked} booked, of which ${uncertain} uncertain; ${paid} were paid");
    assert!(!bench.path().join(".bench/bench.db.v.meter").exists(), "it ends with the run");
}

/// A class forgets with its process: what the next one is given again is filling, although a question waits for it.
#[test]
fn p34_a_bank_that_a_resume_fills_again_is_no_part_of_what_a_question_costs() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let submit = |more: &[&str]| {
        let size = ["--max-banks", "1", "--sample", "12"];
        bench.run(submit_sim(&[&METERED[..], &size, more].concat()))
    };
    let calls = |report: &Value, stage: &str| {
        let stages = report["metered"]["by_stage"].as_array().expect("a list");
        stages.iter().find(|of| of["stage"] == stage).map_or(0, |of| of["calls"].as_u64().expect("a number"))
    };
    let whole = submit(&["--run-id", "whole"]).expect_code(0).json();
    let (filling, asking) = (calls(&whole, "retain"), calls(&whole, "recall"));
    assert!(filling > 20 && asking > 6, "{}", whole["metered"]);
    // the bank is filled, and some of its questions are asked
    let cap = format!("{}calls", filling + 4);
    let _ = submit(&["--run-id", "r", "--max-cost", &cap]).expect_code(3);
    let done = bench.run(["resume", "r", "--max-cost", "100000calls", "--json"]).expect_code(0).json();
    let metered = &done["metered"];
    assert!(calls(&done, "retain") >= 2 * filling && calls(&done, "unattributed") == 0, "{metered}");
    // a question that was asked when the run was paused is asked once more
    assert!((asking..=asking + 4).contains(&calls(&done, "recall")), "{asking}, then {metered}");
    let times = number(&done, "/metered/usd_per_question") / number(&whole, "/metered/usd_per_question");
    assert!((0.9..1.6).contains(&times), "a question costs {times} times as much");
}

#[test]
fn p34_faults_on_purpose_are_met_counted_and_said() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let faulty = bench.run(submit(&["--run-id", "f", "--meter-fault", "429=0.1,500=0.05"])).expect_code(0).json();
    let failed = number(&faulty, "/metered/failed");
    assert!(failed > 0.0 && faulty["metered"]["faults"] == "429=0.1,500=0.05", "{}", faulty["metered"]);
    let booked = number(&faulty, "/usage/booked/metered/calls");
    assert_eq!(booked, number(&faulty, "/metered/calls"), "what was never sent is no call: {}", faulty["usage"]);
    assert_eq!(faulty["metered"]["failed_on_purpose"], faulty["metered"]["failed"], "the provider itself failed none");
    assert_eq!(
        number(&faulty, "/metered/calls"),
        provider.count("requests") as f64,
        "what fails on purpose is not sent"
    );
    assert!(
        (number(&faulty, "/metered/usd") - provider.paid()).abs() < 1e-12,
        "{}, ${}",
        faulty["metered"],
        provider.paid()
    );
    let plain = bench.run(submit(&["--run-id", "p"])).expect_code(0).json();
    assert!(plain["metered"]["failed_on_purpose"].is_null(), "{}", plain["metered"]);
    assert_ne!(plain["run"]["fingerprint"], faulty["run"]["fingerprint"], "a part of what is measured");
}

#[test]
fn p34_equal_runs_meet_equal_faults_also_where_replies_are_stored() {
    let provider = Provider::start(&PRICES);
    let (bench, asked) = with_stored_replies(&provider);
    let faults = ["--meter-fault", "429=0.2,500=0.05", "--cache"];
    let stored = bench.run(submit(&[&faults[..], &["shared", "--run-id", "s"]].concat())).expect_code(0).json();
    assert_eq!(provider.count("requests"), asked, "all replies are stored: {}", stored["metered"]);
    let paid = bench.run(submit(&[&faults[..], &["refresh", "--run-id", "r"]].concat())).expect_code(0).json();
    let failed = number(&stored, "/metered/failed_on_purpose");
    assert!(failed > 0.0 && failed == number(&paid, "/metered/failed_on_purpose"), "{}", stored["metered"]);
    let warned = stored["warnings"].to_string();
    assert!(warned.contains("its score is one of bad weather"), "{warned}");
}

/// Whatever the meter refuses that does not pass by itself is told of with what to do, while the run goes on and at its end.
#[test]
fn p34_calls_that_the_meter_refuses_are_counted_and_the_reason_is_told() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let unnamed = MINE.replace("OPENAI_BASE_URL\"] + path", "OPENAI_BASE_URL\"].replace('/v1', '/nobank/1/v1') + path");
    fs::write(bench.path().join("unnamed.py"), unnamed).expect("is written");
    let claude = MINE.replace("\"/chat/completions\"", "\"/messages\"").replace("gpt-4o-mini", "claude-x");
    fs::write(bench.path().join("claude.py"), claude).expect("is written");
    let own = MINE.replace("\"gpt-4o-mini\"", "\"my-own-model\"");
    fs::write(bench.path().join("own.py"), own).expect("is written");
    let tools = MINE.replace("\"max_tokens\": 64,", "\"max_tokens\": 64, \"tools\": [{\"type\": \"web_search\"}],");
    fs::write(bench.path().join("tools.py"), tools).expect("is written");
    // each writes down what it is refused: a count beside that of the meter
    let refusals = bench.path().join("refusals");
    for name in ["mine.py", "unnamed.py", "claude.py", "own.py", "tools.py"] {
        let class = fs::read_to_string(bench.path().join(name)).expect("is read");
        let read = "            said = error.read().decode()\n";
        let kept = format!(
            "{read}            with open({:?}, \"a\") as kept:\n                kept.write(f\"{{error.code}}\\n\")\n",
            refusals.display().to_string()
        );
        fs::write(bench.path().join(name), class.replace(read, &kept)).expect("is written");
    }
    let few = ["--no-canaries", "--latency-probe", "off", "--max-banks", "1", "--sample", "4", "--meter"];
    for (id, system, more, status, code, said) in [
        ("own", "own.py:Mine", &["--max-cost", "1"][..], 404, "model_not_found", "my-own-model has no price"),
        ("allow", "mine.py:Mine", &["--meter-allow", "gpt-4o"], 403, "model_not_allowed", "--meter-allow gpt-4o-mini"),
        ("none", "claude.py:Mine", &[], 404, "model_not_found", "the meter has no account 'anthropic'"),
        ("first", "claude.py:Mine", &["--meter-allow", "gpt-4o"], 403, "model_not_allowed", "--meter-allow claude-x"),
        ("bank", "unnamed.py:Mine", &[], 404, "unknown_bank", "the run has no bank nobank"),
        ("tools", "tools.py:Mine", &[], 400, "invalid_request", "web_search"),
    ] {
        let asked = [&few[..], &["--system", system, "--run-id", id], more].concat();
        let report = bench.run(submit_sim(&asked)).json();
        let refused = &report["metered"]["refused"];
        let heard = fs::read_to_string(&refusals).expect("it was refused").lines().count();
        fs::remove_file(&refusals).expect("is removed");
        assert_eq!(refused[0]["calls"].as_u64(), Some(heard as u64), "{id}: {}", report["metered"]);
        assert_eq!(number(&report, "/metered/failed"), heard as f64, "{id}: {}", report["metered"]);
        assert!(
            refused[0]["code"] == code && refused[1].is_null() && refused[0]["at_least"].is_null(),
            "{id}: {refused}"
        );
        let warned = report["warnings"].to_string();
        assert!(warned.contains(said) && !warned.contains("has seen no call"), "{id}: {warned}");
        assert_eq!((number(&report, "/metered/questions"), provider.count("requests")), (0.0, 0), "{id}");
        assert!(report["metered"]["usd_per_question"].is_null(), "nothing was asked: {}", report["metered"]);
        assert!(report["usage"]["unknown"].is_null(), "nothing was spent: {}", report["usage"]);
        let shown = bench.run(["status", id]).expect_code(0).stdout;
        assert!(shown.contains("the meter refused") && shown.contains(said), "{id}: {shown}");
        let error = bench.questions(id)[0]["error"].to_string();
        assert!(error.contains(&format!("RuntimeError: {status} ")), "{id}: it is not told to come again: {error}");
    }
}

/// A memory that gives up at the first error that is none of its own.
#[test]
fn p39_a_provider_that_is_away_fails_nothing_of_a_memory_system_that_gives_up_at_once() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    provider.outage(&json!({"kind": "status", "status": 503, "for_ms": 20_000}));
    let asked = [&METERED[..], &["--run-id", "o", "--sample", "20"]].concat();
    let report = bench.run(submit_sim(&asked)).expect_code(0).json();
    assert_eq!(report["outcomes"]["infra_error"], 0, "{}", report["outcomes"]);
    let (failed, requests) = (number(&report, "/metered/failed"), provider.count("requests") as f64);
    assert_eq!(number(&report, "/metered/calls") + failed, requests, "{}", report["metered"]);
    assert!((1.0..100.0).contains(&failed), "ten banks ask for 20 s, and are held: {failed} calls failed");
}

#[test]
fn p39_a_provider_that_stays_away_pauses_the_run_and_a_resume_goes_on() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    provider.outage(&json!({"kind": "status", "status": 503}));
    let run = bench.run(submit(&["--run-id", "o", "--outage-timeout", "5"]));
    let run = run.expect_code(3);
    assert!(run.stderr.contains("503") && run.stderr.contains("resume"), "{}", run.stderr);
    provider.end_outages();
    let report = bench.run(["resume", "o", "--json"]).expect_code(0).json();
    assert_eq!(report["outcomes"]["infra_error"], 0, "{}", report["outcomes"]);
}

#[test]
fn p40_a_key_that_was_never_good_pauses_the_run_at_once() {
    let provider = Provider::start(&[&PRICES[..], &["--bad-key", KEY]].concat());
    let bench = provider.bench();
    mine(&bench);
    let run = bench.run(submit(&["--run-id", "o"])).expect_code(3);
    let said = "does not answer for gpt-4o-mini: the provider answered 401";
    assert!(run.stderr.contains(said) && run.stderr.contains("check the key"), "{}", run.stderr);
    assert!(provider.count("requests") < 40, "nobody asks on and on: {}", provider.count("requests"));
}

#[test]
fn p34_equal_requests_of_runs_that_share_calls_are_paid_once() {
    let provider = Provider::start(&PRICES);
    let (bench, before) = with_stored_replies(&provider);
    let second = bench.run(submit(&["--run-id", "two", "--cache", "shared", "--name", "again"])).expect_code(0).json();
    assert_eq!(provider.count("requests"), before, "all of them are of temperature 0, or embeddings");
    assert_eq!(number(&second, "/metered/usd"), 0.0);
    assert!((number(&second, "/metered/usd_saved") - provider.paid()).abs() < 1e-12, "{}", second["metered"]);
    // what is measured is how long the provider and the system take
    let probed = ["--max-banks", "2", "--sample", "12", "--system", "mine.py:Mine", "--meter", "--no-canaries"];
    let probed = [&probed[..], &["--latency-probe", "4", "--run-id", "three", "--cache", "shared"]].concat();
    let third = bench.run(submit_sim(&probed)).expect_code(0).json();
    assert!(provider.count("requests") >= before + 4, "the latency probe is answered by the provider");
    let probe = &third["latency_probe"];
    assert!(probe["n"] == 4 && probe["conditions"]["stored_replies"].is_null(), "{probe}");
    assert!(number(&third, "/metered/stored_calls") > 0.0, "{}", third["metered"]);
}

#[test]
fn p34_what_cannot_be_metered_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    for (more, said) in [
        (&["--meter"][..], "bm25 is part of this program"),
        (&["--meter-fault", "429=0.1"], "--meter"),
        (&["--meter", "--meter-fault", "often"], "429=0.05,500=0.01,slow=0.02"),
    ] {
        let refused = bench.run(submit_sim(&[&["--preset", "quick"][..], more].concat())).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was made");
}

/// A run goes on as it was submitted, or not at all.
#[test]
fn p34_a_metered_run_is_not_gone_on_with_as_one_without_a_meter() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    let _ = bench.run(submit(&["--run-id", "a"])).expect_code(0);
    let paid = provider.paid();
    let without: Vec<&str> = submit(&["--run-id", "a"]).into_iter().filter(|flag| *flag != "--meter").collect();
    let refused = bench.run(without).expect_code(2).stderr;
    assert!(refused.contains("run a was submitted with --meter") && refused.contains("resume a"), "{refused}");
    assert!((provider.paid() - paid).abs() < 1e-12, "nothing was asked");
}

/// The official SDK inside of a memory system: whole replies, streams, tools, structured replies and embeddings.
#[test]
fn p34_the_official_sdk_works_through_the_meter() {
    let provider = Provider::start(&PRICES);
    let packages = Packages { name: "openai", with_dependencies: &["openai==3.57.0"], alone: &[] };
    let environment = virtual_env(packages);
    let bench = provider.bench().with_env("VIRTUAL_ENV", environment);
    let sdk = r#"
import json
import bench_coord
from openai import OpenAI
from pydantic import BaseModel

class Facts(BaseModel):
    verdict: str

class Mine(bench_coord.System):
    def __init__(self):
        self.banks, self.client = {}, None

    def retain(self, bank, items):
        self.client = self.client or OpenAI(timeout=60)
        for item in items:
            asked = dict(model="gpt-4o-mini", max_tokens=32, messages=[{"role": "user", "content": "Sum up: " + item.content[:200]}])
            whole = self.client.chat.completions.create(**asked)
            assert whole.usage.total_tokens > 0, whole
            events = list(self.client.chat.completions.create(stream=True, **asked))
            assert all(event.choices for event in events), "no event that was not asked for"
            asked_for = list(self.client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
            assert asked_for[-1].usage is not None and not asked_for[-1].choices
            self.banks.setdefault(bank, []).append(item)

    def recall(self, bank, query, k):
        vector = self.client.embeddings.create(model="text-embedding-3-small", input=[str(query)])
        assert len(vector.data[0].embedding) > 0
        asked = dict(model="gpt-4o-mini", max_tokens=64, messages=[{"role": "user", "content": str(query)}])
        tool = {"type": "function", "function": {"name": "words", "parameters": {
            "type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"], "additionalProperties": False}}}
        called = self.client.chat.completions.create(tools=[tool], tool_choice="required", **asked).choices[0].message.tool_calls[0]
        assert called.function.name == "words" and "verdict" in json.loads(called.function.arguments), called
        parsed = self.client.chat.completions.parse(response_format=Facts, **asked)
        assert isinstance(parsed.choices[0].message.parsed, Facts), parsed
        return [bench_coord.Hit(item.content, id=item.id) for item in self.banks.get(bank, [])[:k]]
"#;
    fs::write(bench.path().join("mine.py"), sdk).expect("is written");
    let report = bench.run(submit(&["--run-id", "sdk"])).expect_code(0).json();
    assert_eq!(number(&report, "/metered/calls"), provider.count("requests") as f64, "{}", report["metered"]);
    assert!(
        (number(&report, "/metered/usd") - provider.paid()).abs() < 1e-12,
        "{} ${}",
        report["metered"],
        provider.paid()
    );
    assert_eq!(number(&report, "/metered/counted_here"), 0.0, "streams tell their use too");
}

/// Beside systems that have no calls of their own: what the metered one spends stands in its cell, and on its front.
#[test]
fn p34_a_matrix_meters_the_systems_that_call_models_themselves() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench();
    mine(&bench);
    // one bank is filled and then asked: of several it would not be known what a call was for
    let begin = ["--max-banks", "1", "--sample", "12", "--latency-probe", "off", "--no-canaries"];
    let systems = ["--system", "mine.py:Mine", "--system", "bm25", "--meter", "--run-id", "m"];
    let done = bench.run(submit_sim(&[&begin[..], &systems[..]].concat())).expect_code(0);
    assert!(done.stderr.contains("cells of bm25 have no meter"), "{}", done.stderr);
    let unknown = "what the memory system calls itself is not known beforehand";
    assert!(done.stderr.contains(unknown), "no model answers or judges: {}", done.stderr);
    let report = done.json();
    let cell = |system: &str| {
        let cells = report["cells"].as_array().into_iter().flatten();
        cells.clone().find(|cell| cell["values"]["system"] == system).unwrap_or_else(|| panic!("{report:#}")).clone()
    };
    let (mine, bm25) = (cell("mine.py:Mine"), cell("bm25"));
    assert!((mine["memory"]["usd"].as_f64().expect("dollars") - provider.paid()).abs() < 1e-12, "{mine:#}");
    assert!(mine["memory"]["usd_per_1000_turns"].as_f64().is_some_and(|usd| usd > 0.0), "{mine:#}");
    // the runner knows that a built-in one calls nobody
    let free = json!({"usd": 0.0, "usd_per_1000_turns": 0.0, "usd_per_question": 0.0});
    assert_eq!((&bm25["memory"], &bm25["on_front_of_filling"]), (&free, &json!(true)));
    assert!(mine["on_front_of_filling"].is_boolean(), "{mine:#}");
    let shown = bench.run(["report", "m", "--format", "md"]).expect_code(0).stdout;
    assert!(shown.contains("Memory $/1,000 turns") && shown.contains("$fill"), "{shown}");
}

/// Anthropic's SDK inside of a memory system: whole replies, streams, a tool that must be used.
#[test]
fn p34_the_sdk_of_anthropic_works_through_the_meter() {
    let provider = Provider::start(&["--price", "claude-haiku-4-5=1/5"]);
    let packages = Packages { name: "anthropic", with_dependencies: &["anthropic==2.14.0"], alone: &[] };
    let environment = virtual_env(packages);
    let root = provider.base_url().trim_end_matches("/v1").to_owned();
    let bench = Bench::new()
        .with_env("VIRTUAL_ENV", environment)
        .with_env("ANTHROPIC_BASE_URL", root)
        .with_env("ANTHROPIC_API_KEY", KEY);
    let sdk = r#"
import bench_coord
from anthropic import Anthropic

class Mine(bench_coord.System):
    def __init__(self):
        self.banks, self.client = {}, None

    def retain(self, bank, items):
        self.client = self.client or Anthropic(timeout=60)
        for item in items:
            asked = dict(model="claude-haiku-4-5", max_tokens=32, messages=[{"role": "user", "content": "Sum up: " + item.content[:200]}])
            whole = self.client.messages.create(**asked)
            assert whole.usage.output_tokens > 0, whole
            with self.client.messages.stream(**asked) as stream:
                text = "".join(stream.text_stream)
                last = stream.get_final_message()
            assert text == whole.content[0].text, (text, whole)
            assert last.usage.output_tokens == whole.usage.output_tokens and last.usage.input_tokens == whole.usage.input_tokens
            self.banks.setdefault(bank, []).append(item)

    def recall(self, bank, query, k):
        tool = {"name": "words", "description": "words", "input_schema": {
            "type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"], "additionalProperties": False}}
        said = self.client.messages.create(
            model="claude-haiku-4-5", max_tokens=64, tools=[tool], tool_choice={"type": "tool", "name": "words"},
            messages=[{"role": "user", "content": str(query)}])
        assert said.content[0].type == "tool_use", said
        return [bench_coord.Hit(item.content, id=item.id) for item in self.banks.get(bank, [])[:k]]
"#;
    fs::write(bench.path().join("mine.py"), sdk).expect("is written");
    let report = bench.run(submit(&["--run-id", "sdk"])).expect_code(0).json();
    assert_eq!(number(&report, "/metered/calls"), provider.count("requests") as f64, "{}", report["metered"]);
    assert!(provider.paid() > 0.0 && (number(&report, "/metered/usd") - provider.paid()).abs() < 1e-12, "{report}");
    assert_eq!(number(&report, "/metered/counted_here"), 0.0, "streams tell their use too");
}

/// A memory library as it is published, whose model extracts and ranks: what it spends is in the ledger of the provider to the call.
#[test]
fn p34_a_published_memory_library_is_metered_to_the_call() {
    let provider = Provider::start(&PRICES);
    let packages = Packages {
        name: "langmem",
        with_dependencies: &["langmem==0.0.30", "langchain-openai==1.7.4", "numpy==2.4.6"],
        alone: &[],
    };
    let environment = virtual_env(packages);
    let bench = provider.bench().with_env("VIRTUAL_ENV", environment);
    let size = ["--max-banks", "1", "--sample", "4", "--system", "langmem", "--meter", "--run-id", "a"];
    let report = bench.run(submit_sim(&size)).json();
    assert!(number(&report, "/metered/calls") > 10.0, "{}", report["metered"]);
    assert_eq!(number(&report, "/metered/calls"), provider.count("requests") as f64, "{}", report["metered"]);
    assert!((number(&report, "/metered/usd") - provider.paid()).abs() < 1e-12, "{}", report["metered"]);
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
}

#[test]
fn p34_workers_of_a_cluster_meter_what_they_start_and_a_kill_loses_no_call() {
    let provider = Provider::start(&[&PRICES[..], &["--latency-ms", "10"]].concat());
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    mine(cluster.bench());
    let hash = cluster.run(&["systems", "hash", "mine.py:Mine", "--json"]).expect_code(0).json();
    let allowed = [("BENCH_ALLOW_SYSTEMS", hash["sha256"].as_str().expect("a hash"))];
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut workers = vec![cluster.worker_with("one", &[], &allowed), cluster.worker_with("two", &[], &allowed)];
    let places: Vec<String> = workers.iter_mut().map(health_of).collect();
    let client = cluster.client(&submit(&["--run-id", "c"]));
    provider.wait_for_requests(60);
    // a worker is killed while its system calls
    drop(workers.remove(0));
    let report = client.wait(LONG).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{}", report["errors"]);
    let (paid, booked) = (provider.paid(), number(&report, "/usage/total/usd_booked"));
    let uncertain = number(&report, "/usage/total/usd_uncertain");
    assert!(paid <= booked + 1e-12, "${paid} were paid, ${booked} booked");
    assert!(booked - uncertain <= paid + 1e-12, "${booked} booked, of which ${uncertain} uncertain; ${paid} were paid");
    assert!(number(&report, "/metered/calls") > 0.0, "{}", report["metered"]);
    // no model answers or judges in this run: what is counted is the memory's own
    let page = http::get(&places[1], "/metrics").expect("answers").body;
    for series in [
        r#"bench_model_calls_total{account="openai",model="gpt-4o-mini",outcome="ok"} "#,
        r#"bench_rate_used_total{account="openai",unit="requests"} "#,
        r#"bench_tokens_total{direction="prompt",phase="#,
        r#"bench_cost_usd_total{phase="#,
    ] {
        assert!(page.lines().any(|line| line.starts_with(series)), "{series} is missing:\n{page}");
    }
}

/// A system that runs elsewhere is told the address by a person.
#[test]
fn a_person_is_told_the_address_for_a_system_that_runs_elsewhere() {
    let provider = Provider::start(&PRICES);
    let bench = provider.bench().with_env("BENCH_METER_SECRET", "0123456789abcdef0123456789abcdef");
    mine(&bench);
    let [port] = bench_testkit::ports::reserve().expect("a port");
    let listen = format!("meter.listen=127.0.0.1:{port}");
    let url = ["meter", "url", "u", "--set", &listen, "--json"];
    let before = bench.run(url).expect_code(0);
    assert!(before.stderr.contains("submit it with --run-id u --meter"), "{}", before.stderr);
    let _ = bench.run(submit(&["--run-id", "u", "--set", &listen])).expect_code(0);
    let told = bench.run(url).expect_code(0).json();
    assert_eq!(told, before.json(), "a server can be started with it before the run");
    assert_eq!(told["url"], format!("http://127.0.0.1:{port}/m/u/v1"));
    assert!(told["key"].as_str().expect("a key").starts_with("bm-"));
    let everywhere = format!("meter.listen=0.0.0.0:{port}");
    let refused = bench.run(["meter", "url", "u", "--set", &everywhere]).expect_code(2);
    assert!(refused.stderr.contains("set meter.url"), "{}", refused.stderr);
    let reached = ["meter", "url", "u", "--set", &everywhere, "--set", "meter.url=http://meter.example:7070", "--json"];
    let told = bench.run(reached).expect_code(0).json();
    assert_eq!(told["url"], "http://meter.example:7070/m/u/v1");
}
