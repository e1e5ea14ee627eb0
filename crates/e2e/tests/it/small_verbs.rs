//! Verbs of every day: a folder to begin with, a first look at a memory system, questions of a dataset, runs that go, and questions that
//! are answered again.

use std::fs;

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::Value;

const SMALL: [&str; 9] =
    ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--limit", "4", "--latency-probe", "off"];

#[test]
fn init_writes_what_works_and_nothing_over_what_is_there() {
    let bench = Bench::new();
    let done = bench.run(["init"]).expect_code(0);
    assert_eq!(done.stdout, "bench.toml\nmine.yaml\n");
    assert!(done.stderr.contains("systems try ./mine.yaml"), "{}", done.stderr);
    let shown = bench.run(["config", "show"]).expect_code(0).stdout;
    assert!(shown.contains("locomo-sim") && shown.contains("bench.toml"), "{shown}");
    let _ = bench.run(["systems", "hash", "./mine.yaml"]).expect_code(0);
    let _ = bench.run(["submit", "--dry-run"]).expect_code(0);
    fs::write(bench.path().join("mine.yaml"), "name: changed").expect("is written");
    let again = bench.run(["init"]).expect_code(2);
    assert!(again.stderr.contains("mine.yaml is there already"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(bench.path().join("mine.yaml")).expect("is there"), "name: changed");

    let done = bench.run(["init", "--python"]).expect_code(0);
    assert_eq!(done.stdout, "mine.py\n", "the settings stay");
    let tried = bench.run(["systems", "try", "mine.py:Mine"]).expect_code(0).stdout;
    assert!(tried.contains("Brunswick") && tried.contains("found 1 hit"), "{tried}");
    let flags = ["--system", "mine.py:Mine", "--limit", "2", "--latency-probe", "off", "--no-canaries"];
    let _ = bench.run(["submit"].iter().chain(&flags)).expect_code(0);
}

#[test]
fn what_is_behind_an_error_is_told_with_v_alone() {
    let bench = Bench::new();
    fs::write(bench.path().join("g.db"), [0x5a; 4096]).expect("is written");
    fs::write(bench.path().join("p.yaml"), "version: 1\nfloors: [\n").expect("is written");
    for (verb, code, cause) in [
        (&["list", "--store", "sqlite:g.db"][..], 4, "caused by: error returned from database"),
        (&["gate", "a", "--policy", "p.yaml"][..], 2, "caused by: "),
    ] {
        let short = bench.run(verb).expect_code(code).stderr;
        assert!(!short.contains("caused by"), "{short}");
        let long = bench.run(verb.iter().chain(&["-v"])).expect_code(code).stderr;
        assert!(long.contains(short.trim_end()) && long.contains(cause), "{long}");
    }
}

#[test]
fn a_trial_shows_what_comes_back() {
    let bench = Bench::new();
    let tried = bench
        .run(["systems", "try", "bm25", "--text", "Zoë keeps bees.", "--question", "Who keeps bees?", "--json"])
        .expect_code(0)
        .json();
    assert_eq!((&tried["system"], &tried["hits"][0]["id"]), (&"bm25".into(), &"D1:1".into()), "{tried}");
    assert!(tried["hits"][0]["text"].as_str().is_some_and(|text| text.contains("Zoë keeps bees.")), "{tried}");
    assert!(tried["recall_ms"].is_u64() && tried["stored_ms"].is_u64(), "{tried}");
    fs::write(
        bench.path().join("mine.yaml"),
        "name: mine\nurl: http://127.0.0.1:9\nretain: {request: POST /add, body: {text: \"{content}\"}}\n\
         recall: {request: POST /search, body: {query: \"{query}\", limit: \"{k}\"}, hits: [{list: results, text: memory}]}\n",
    )
    .expect("is written");
    let refused = bench.run(["systems", "try", "./mine.yaml"]).expect_code(4);
    assert!(refused.stderr.contains("mine:"), "{}", refused.stderr);
    let _ = bench.run(["systems", "check", "alias"]).expect_code(0);
    let refused = bench.run(["systems", "check", "oracle"]).expect_code(2);
    assert!(refused.stderr.contains("oracle is a control"), "{}", refused.stderr);
}

#[test]
fn questions_of_a_dataset_are_listed_by_pages_and_without_what_is_expected() {
    let bench = Bench::new();
    let show = |more: &[&str]| {
        let verb = ["datasets", "show", "locomo-sim", "--questions", "--json"];
        bench.run(verb.iter().chain(more)).expect_code(0).json()
    };
    let first = show(&["--most", "3"]);
    let total = first["total"].as_u64().expect("a number");
    assert_eq!((first["questions"].as_array().map(Vec::len), total > 3), (Some(3), true));
    assert!(first["questions"][0].get("gold").is_none(), "{first}");
    let ids = |page: &Value| -> Vec<String> {
        let questions = page["questions"].as_array().expect("questions").iter();
        questions.map(|question| question["question_id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&show(&["--most", "2", "--skip", "1"])), ids(&first)[1..]);
    let all = show(&["--most", "1000000"]);
    assert_eq!(ids(&all).len() as u64, total);
    let last = (total - 1).to_string();
    assert_eq!(ids(&show(&["--skip", &last])), ids(&all)[total as usize - 1..], "over all banks");
    let golden = show(&["--category", "temporal", "--gold", "--most", "1"]);
    assert_eq!(golden["questions"][0]["category"], "temporal");
    assert!(golden["questions"][0]["gold"].is_string(), "{golden}");
    let table = bench.run(["datasets", "show", "locomo-sim", "--questions", "--most", "1"]).expect_code(0);
    assert!(table.stderr.contains("--skip 1"), "{}", table.stderr);
    let refused = bench.run(["datasets", "show", "locomo-sim", "--questions", "--category", "tempral"]).expect_code(2);
    assert!(refused.stderr.contains("temporal"), "{}", refused.stderr);
}

#[test]
fn what_is_printed_can_be_read_by_programs() {
    let bench = Bench::new();
    let _ = bench.run(SMALL.iter().chain(&["--run-id", "a"])).expect_code(0);
    let _ = bench.run(["archive", "push", "a", "--archive", "kept"]).expect_code(0);
    let json = |words: &[&str]| bench.run(words).expect_code(0).json();
    let checks = json(&["doctor", "--json"]);
    assert_eq!((&checks[0]["check"], &checks[0]["status"]), (&"store".into(), &"ok".into()), "{checks}");
    let settings = json(&["config", "show", "--json"]);
    assert!(settings.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "run.preset")), "{settings}");
    let refused = bench.run(["report", "a", "--published"]).expect_code(2);
    assert!(refused.stderr.contains("nothing is known that was published on locomo-sim"), "{}", refused.stderr);
    assert_eq!(json(&["gc", "--json"])["banks_removed"], 0);
    assert_eq!(json(&["datasets", "show", "locomo-sim", "--json"])["manifest"]["name"], "locomo-sim");
    assert!(json(&["score", "--counting", "--json"]).as_array().is_some_and(|all| all.len() > 3));
    let fetched = json(&["archive", "fetch", "a", "--archive", "kept", "--output-dir", "out", "--json"]);
    assert_eq!((&fetched["id"], &fetched["restored"]), (&"a".into(), &false.into()), "{fetched}");
}

/// Whoever names a link, a device or a pipe means what is behind it.
#[test]
fn a_named_output_is_written_through_links_and_takes_the_place_of_no_device() {
    let bench = Bench::new();
    for run in ["a", "b"] {
        let _ = bench.run(["submit", "--dataset", "smoke", "--run-id", run, "--display", "none"]).expect_code(0);
    }
    let folder = bench.path().join("out");
    fs::create_dir(&folder).expect("is made");
    let at = |name: &str| folder.join(name).display().to_string();
    let compare = |to: &str| bench.run(["compare", "a", "b", "--format", "md", "--output", to]);
    fs::write(folder.join("target"), "old").expect("is written");
    std::os::unix::fs::symlink("target", folder.join("link")).expect("is linked");
    let _ = compare(&at("link")).expect_code(0);
    let written = fs::read_to_string(folder.join("target")).expect("reads");
    assert!(written.contains("EQUAL: +0.00 points") && written.contains("no difference to decide"), "{written}");
    assert!(folder.join("link").is_symlink());
    // a link to a device stands for one: tests make no devices
    std::os::unix::fs::symlink("/dev/full", folder.join("full")).expect("is linked");
    let full = compare(&at("full")).expect_code(4).stderr;
    assert!(full.contains("cannot be written") && full.contains("No space left"), "{full}");
    assert!(folder.join("full").is_symlink());
    let refused = bench.run(["datasets", "generate", "locomo-sim", "--output", &at("full"), "--force"]);
    assert!(refused.code != 0 && refused.stderr.contains("it is a device or a pipe"), "{}", refused.stderr);
}

#[test]
fn a_list_says_that_there_is_more() {
    let bench = Bench::new();
    for run in 0..21 {
        let id = format!("r{run}");
        let _ = bench.run(["submit", "--dataset", "smoke", "--run-id", &id, "--display", "none"]).expect_code(0);
    }
    let newest = bench.run(["list"]).expect_code(0);
    assert!(newest.stderr.contains("the newest 20 are shown") && !newest.stdout.contains("r0 "), "{}", newest.stderr);
    let all = bench.run(["list", "--limit", "21"]).expect_code(0);
    assert!(all.stderr.is_empty() && all.stdout.contains("r0 "), "{}", all.stderr);
}

/// A folder is somebody else's input.
#[test]
fn a_folder_with_a_question_twice_or_with_a_score_that_is_none_is_not_compared() {
    let bench = Bench::new();
    let folder = bench.path().join("theirs");
    let to = folder.display().to_string();
    let submit = ["submit", "--dataset", "smoke", "--display", "none", "--run-id"];
    let _ = bench.run([&submit[..], &["a"]].concat()).expect_code(0);
    let _ = bench.run([&submit[..], &["b", "--output-dir", &to]].concat()).expect_code(0);
    let path = folder.join("questions.jsonl");
    let text = fs::read_to_string(&path).expect("reads");
    let first = text.lines().next().expect("a line").to_owned();
    let compared = || bench.run(["compare", &to, "a"]);
    assert!([0, 6].contains(&compared().code));
    fs::write(&path, format!("{text}{first}\n")).expect("is written");
    let twice = compared().expect_code(2).stderr;
    assert!(twice.contains("stands in a line before already"), "{twice}");
    let mut line: serde_json::Value = serde_json::from_str(&first).expect("a line");
    for score in line["scores"].as_object_mut().expect("scores").values_mut() {
        *score = 7.5.into();
    }
    fs::write(&path, text.replacen(&first, &line.to_string(), 1)).expect("is written");
    let beyond = compared().expect_code(2).stderr;
    assert!(beyond.contains("is 7.5, and not between 0 and 1"), "{beyond}");
}

#[test]
fn a_deleted_run_is_gone_and_what_depends_on_it_is_told() {
    let bench = Bench::new();
    let submit = |id: &str, more: &[&str]| {
        let _ = bench.run(SMALL.iter().chain(&["--run-id", id]).chain(more)).expect_code(0);
    };
    submit("kept", &[]);
    submit("gone", &["--controls"]);
    let _ = bench.run(["archive", "push", "gone", "--archive", "archive"]).expect_code(0);
    let fork = ["submit", "--fork", "gone", "--from", "judge", "--run-id", "fork", "--scorer", "exact"];
    let _ = bench.run(fork).expect_code(0);

    let nobody = bench.run(["delete", "", "--yes"]).expect_code(2);
    assert!(nobody.stderr.contains("no run is named"), "a variable that is not set: {}", nobody.stderr);
    let refused = bench.run(["delete", "gone"]).expect_code(2);
    assert!(refused.stderr.contains("fork (from the judge of gone)"), "{}", refused.stderr);
    let refused = bench.run(["delete", "gone", "fork"]).expect_code(2);
    assert!(refused.stderr.contains("--yes"), "without a terminal nothing asks: {}", refused.stderr);
    let listed = || -> Vec<String> {
        let runs = bench.run(["list", "--controls", "--json"]).expect_code(0).json();
        runs.as_array().expect("runs").iter().map(|run| run["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(listed().len(), 6, "{:?}", listed());
    let control = listed().into_iter().find(|id| !["kept", "gone", "fork"].contains(&id.as_str())).expect("a control");
    let refused = bench.run(["delete", &control, "--yes"]).expect_code(2);
    assert!(refused.stderr.contains("is a control of gone"), "{}", refused.stderr);

    let deleted = bench.run(["delete", "gone", "fork", "--yes", "--json"]).expect_code(0).json();
    assert_eq!(deleted["deleted"].as_array().map(Vec::len), Some(5), "with its controls: {deleted}");
    assert_eq!(listed(), ["kept"]);
    assert!(!bench.path().join(".bench/runs/gone").exists() && bench.path().join(".bench/runs/kept").exists());
    let _ = bench.run(["report", "gone"]).expect_code(2);
    let _ = bench.run(["gc"]).expect_code(0);
    let _ = bench.run(["report", "kept"]).expect_code(0);
    // the archive has it
    let _ = bench.run(["archive", "fetch", "gone", "--archive", "archive", "--restore"]).expect_code(0);
    assert_eq!(listed(), ["gone", "kept"]);
}

#[test]
fn a_run_under_way_is_not_deleted() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "live", "--concurrency", "4"]));
    provider.wait_for_requests(8);
    let refused = bench.run(["delete", "live", "--yes"]).expect_code(2);
    assert!(refused.stderr.contains("is under way") && refused.stderr.contains("pause live"), "{}", refused.stderr);
    bench_testkit::bench::signal(&owner, "KILL");
    let _ = bench_testkit::bench::wait(owner);
    assert_eq!(bench.run(["delete", "live", "--yes"]).expect_code(0).stdout, "live\n", "nobody works on it");
    assert_eq!(bench.run(["list", "--json"]).expect_code(0).json(), serde_json::json!([]));
}

#[test]
fn runs_are_listed_by_what_they_are_of_and_a_slip_of_the_hand_is_told() {
    let bench = Bench::new();
    for (run, system) in [("one", "bm25"), ("two", "random")] {
        let _ = bench.run(SMALL.iter().chain(&["--run-id", run, "--system", system, "--tag", "team-a"])).expect_code(0);
    }
    let ids = |words: &[&str]| -> Vec<String> {
        let listed = bench.run([&["list", "--json"][..], words].concat()).expect_code(0).json();
        listed.as_array().expect("runs").iter().map(|run| run["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&["--system", "random"]), ["two"]);
    assert_eq!(ids(&["--system", "bm25", "--tag", "team-a"]), ["one"]);
    assert!(ids(&["--system", "none"]).is_empty());
    for (words, said) in [
        (["--dataset", "locomo-sm"], "did you mean 'locomo-sim'?"),
        (["--system", "bm52"], "did you mean 'bm25'?"),
        (["--tag", "taem-a"], "did you mean 'team-a'?"),
    ] {
        let nothing = bench.run(["list"].iter().chain(&words)).expect_code(0).stderr;
        assert!(nothing.contains(said), "{words:?}: {nothing}");
    }
    let refused = bench.run(["list", "--tag", ""]).expect_code(2).stderr;
    assert!(refused.contains("no tag is named") || refused.contains("it is empty"), "{refused}");
    let _ = bench.run(["rename", "one", "before"]).expect_code(0);
    let slip = bench.run(["report", "befor"]).expect_code(2).stderr;
    assert!(slip.contains("did you mean 'before'?") && slip.contains("`bench-coord list` shows all"), "{slip}");
    let shared = bench.run(["rename", "two", "before", "--json"]).expect_code(0);
    assert_eq!(shared.json()["name_means"], "two");
    assert!(shared.stderr.contains("'before' means two, and 'before@2' the one before it"), "{}", shared.stderr);
    let gone = bench.run(["tag", "one", "nope", "--remove", "--json"]).expect_code(0);
    assert_eq!(gone.json()["tags"], serde_json::json!(["team-a"]));
    assert!(gone.stderr.contains("has no tag 'nope'"), "{}", gone.stderr);
    let forms = bench.run(["import", "--forms", "--json"]).expect_code(0).json();
    assert!(forms.as_array().is_some_and(|all| all.iter().any(|form| form["name"] == "longmemeval")), "{forms}");
}

#[test]
fn only_what_was_wrong_is_asked_again() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let answered = ["--answerer", "openai:gpt-4o-mini", "--latency-probe", "off", "--run-id", "first"];
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick"];
    let began = bench.run(submit.iter().chain(&answered)).stderr;
    assert!(began.contains("estimate: about 50 calls"), "a part of the sample was counted: {began}");
    let (first, asked) = (bench.questions("first"), provider.count("requests"));
    let metric = bench.report("first")["headline"]["metric"].as_str().expect("a metric").to_owned();
    let score = |line: &Value| line["scores"][&metric].as_f64().unwrap_or(0.0);
    let wrong = bench.run(["show", "first", "--failed", "--most", "1000000", "--json"]).expect_code(0).json();
    let wrong: Vec<&str> =
        wrong.as_array().expect("questions").iter().filter_map(|q| q["question_id"].as_str()).collect();
    assert!(!wrong.is_empty() && wrong.len() < first.len(), "{} of {}", wrong.len(), first.len());

    let again = ["retry", "first", "--wrong", "--run-id", "again"];
    let dry = bench.run(again.iter().chain(&["--dry-run", "--json"])).expect_code(0).json();
    assert_eq!(dry["phases"][0]["calls"].as_u64(), Some(wrong.len() as u64), "{dry}");
    let done = bench.run(again);
    assert!([0, 5].contains(&done.code), "{}", done.stderr);
    let estimate = format!("estimate: {} calls", wrong.len());
    assert!(done.stderr.contains(&estimate), "{estimate}: {}", done.stderr);
    assert_eq!(provider.count("requests") - asked, wrong.len() as u64, "nothing else was asked");
    for line in bench.questions("again") {
        let before = first.iter().find(|one| one["question_id"] == line["question_id"]).expect("the same questions");
        if !wrong.contains(&line["question_id"].as_str().expect("an id")) {
            assert_eq!((&line["answer"], score(&line)), (&before["answer"], score(before)));
        }
    }
    let report = fs::read_to_string(bench.path().join(".bench/runs/again/report.md")).expect("is there");
    assert!(report.contains("had not passed in run first"), "{report}");

    let same = bench.run(["retry", "first", "--wrong", "--dry-run"]).expect_code(0);
    assert!(same.stderr.contains("run again has answered them again already"), "{}", same.stderr);
    assert!(same.stdout.contains("at most: replies that are stored"), "{}", same.stdout);
    let anew = bench.run(["retry", "again", "--wrong", "--dry-run"]);
    assert!(!anew.stderr.contains("answered them again already"), "{}", anew.stderr);
    let word = bench.run(["rename", "again", "last:3"]).expect_code(2);
    assert!(word.stderr.contains("are the last K runs"), "{}", word.stderr);

    let taken = bench.run(["rename", "again", "first"]).expect_code(2);
    assert!(taken.stderr.contains("the id of another run"), "{}", taken.stderr);
    let repeats = ["--repeats", "2", "--run-id", "twice", "--name", "both"];
    let _ = bench.run(["submit", "--dataset", "smoke", "--display", "none"].iter().chain(&repeats));
    let taken = bench.run(["rename", "again", "twice"]).expect_code(2);
    assert!(taken.stderr.contains("the id of a group of runs"), "{}", taken.stderr);
    for (name, why) in [("twice", "the id of a group of runs"), ("first", "the id of another run")] {
        let taken = bench.run(["submit", "--dataset", "smoke", "--name", name, "--display", "none"]).expect_code(2);
        assert!(taken.stderr.contains(why), "{name}: {}", taken.stderr);
    }
    // nor does an id mean what a name means; who has both goes on under it
    let _ = bench.run(["rename", "again", "nightly"]).expect_code(0);
    // its report was stored before, under the name that it had then
    assert_eq!(bench.run(["report", "again", "--json"]).json()["run"]["name"], "nightly");
    for (id, why) in [("nightly", "the name of run again"), ("both", "the name of the group twice")] {
        let taken = bench.run(["submit", "--dataset", "smoke", "--run-id", id, "--display", "none"]).expect_code(2);
        assert!(taken.stderr.contains(why), "{id}: {}", taken.stderr);
    }
    let own = ["--run-id", "extractive", "--name", "extractive", "--json"];
    let [begun, attached] = [(); 2].map(|()| bench.run(SMALL.iter().chain(&own)).expect_code(0).json());
    assert_eq!(attached["result_digest"], begun["result_digest"]);
    let refused = bench.run(["retry", "extractive", "--wrong"]).expect_code(2);
    assert!(refused.stderr.contains("says the same again"), "{}", refused.stderr);
}
