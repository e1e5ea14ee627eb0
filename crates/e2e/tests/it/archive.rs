//! The archive: written once, checked, rebuilt from, and never a reason to lose a run.

use std::{collections::BTreeMap, path::Path};

use bench_testkit::{
    bench::{Bench, signal, wait},
    provider::{KEY, Provider},
    s3::{S3, SECRET},
    troubled_s3::{Trouble, TroubledS3},
};
use serde_json::{Value, json};

fn submit(bench: &Bench, id: &str) -> Value {
    let args =
        ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--json", "--run-id", id];
    bench.run(args).expect_code(0).json()
}

/// All files below a folder, unpacked, by their path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("readable");
            let plain = if path.extension().is_some_and(|e| e == "zst") {
                zstd::decode_all(bytes.as_slice()).expect("is zstd")
            } else {
                bytes
            };
            found.insert(path.strip_prefix(folder).expect("below").display().to_string(), plain);
        }
    }
    found
}

/// A bench whose archive is this S3 server, or a proxy before it.
fn at(place: &str, archive: &str) -> Bench {
    S3::environment(place)
        .into_iter()
        .fold(Bench::new().with_env("BENCH_ARCHIVE_URL", archive), |bench, (name, value)| bench.with_env(name, value))
}

#[test]
fn a_run_goes_to_moto_and_comes_back_on_an_empty_machine() {
    a_run_comes_back(S3::start().place());
}

#[test]
fn a_run_goes_to_another_s3_server_and_comes_back_on_an_empty_machine() {
    a_run_comes_back(TroubledS3::start().place());
}

#[test]
fn full_runs_are_compared_gated_archived_restored_judged_again_and_reported_again() {
    let s3 = TroubledS3::start();
    crate::chain::from_two_full_runs_to_another_machine_and_back("locomo-sim", s3.place(), &[]);
}

fn a_run_comes_back(s3: &str) {
    let archive = "s3://bench/results";
    let here = at(s3, archive);
    let first = submit(&here, "first");
    let second = submit(&here, "second");
    assert_eq!(first["result_digest"], second["result_digest"]);
    let listed = here.run(["archive", "list", "--json"]).expect_code(0).json();
    let ids: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|run| run["run_id"].as_str()).collect();
    assert_eq!(ids, ["first", "second"], "both were pushed at their end");
    let folder = listed[0]["folder"].as_str().expect("a folder");
    assert!(folder.starts_with("runs/") && folder.ends_with("/locomo-sim/v1/first"), "{folder}");
    let _ = here.run(["archive", "push", "first"]).expect_code(0);
    let _ = here.run(["archive", "verify"]).expect_code(0);

    let there = at(s3, archive);
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    assert_eq!(there.report("first"), here.report("first"));
    let again = there.run(["report", "first", "--format", "json"]).expect_code(0).json();
    assert_eq!(again, first, "reported again with the same digest");
    assert_eq!(there.questions("first"), here.questions("first"));
    let rescored = ["rescore", "first", "--scorer", "locomo-f1", "--run-id", "again", "--json", "--display", "none"];
    assert_eq!(there.run(rescored).expect_code(0).json()["result_digest"], first["result_digest"]);
    let compared = there.run(["compare", "first", "again", "--json"]).expect_code(0).json();
    assert_eq!(compared["paired"]["difference"], 0.0);

    let args = ["archive", "trajectory", "--json", "--svg", "history.svg"];
    let trajectory = here.run(args).expect_code(0).json();
    assert_eq!(
        trajectory["lines"].as_array().map(Vec::len),
        Some(1),
        "comparable runs stand on one line: {trajectory}"
    );
    assert!(here.path().join("history.svg").exists());
    assert_eq!(here.run(["archive", "badge"]).expect_code(0).json()["schemaVersion"], 1);
}

#[test]
fn of_several_votes_the_same_one_speaks_where_they_were_restored() {
    let provider = Provider::start(&[]);
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    let bench = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = bench.run(provider.submit(&["--run-id", "first", "--votes", "3"])).expect_code(0);
    let there = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    let exported = |bench: &Bench| bench.run(["export", "first", "--format", "jsonl"]).expect_code(0).stdout;
    let (own, restored) = (exported(&bench), exported(&there));
    let chosen = |lines: &str| lines.matches(r#""chosen":true"#).count();
    assert_eq!((chosen(&own), chosen(&restored)), (50, 50));
    let judgements = |lines: &str| -> Vec<Value> {
        let line = |line: &str| serde_json::from_str::<Value>(line).expect("is JSON")["judgements"].clone();
        lines.lines().map(line).collect()
    };
    assert_eq!(judgements(&restored), judgements(&own));
}

#[test]
fn a_judged_run_is_judged_again_where_it_was_restored() {
    let provider = Provider::start(&[]);
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    let bench = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    for (name, bytes) in files(shared.path()) {
        assert!(!bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()), "the key stands in {name}");
    }
    let there = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    let questions = there.questions("first");
    assert!(questions.iter().all(|q| q["judgements"].as_array().map(Vec::len) == Some(1)), "judgements came along");
    let before = provider.count("requests");
    let args = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--run-id", "again", "--json"];
    let again = there.run(args).expect_code(0).json();
    assert_eq!(provider.count("requests"), before + 50, "judgements alone are paid");
    assert_eq!(again["result_digest"], first["result_digest"]);
}

#[test]
fn a_stopped_run_asks_where_it_was_restored_only_what_it_left_out() {
    let provider = Provider::start(&[]);
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "full", "--answerer", "openai:gpt-4o-mini"];
    let until = ["--stop-when", "ci<=8pt", "--latency-probe", "off", "--run-id", "known", "--display", "none"];
    let bench = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = bench.run(submit.iter().chain(&until)).expect_code(0);
    let asked = provider.count("requests");
    let there = provider.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = there.run(["archive", "fetch", "known", "--restore"]).expect_code(0);
    let whole = there.run(["resume", "known", "--no-stop", "--json", "--display", "none"]).expect_code(0);
    assert!(!whole.stderr.contains("UNIQUE"), "{}", whole.stderr);
    let sample = whole.json()["dataset"]["sample"]["n"].as_u64().expect("a count");
    assert!(asked < sample, "{asked} of {sample}");
    assert_eq!(provider.count("requests"), sample, "no question is answered twice");
}

#[test]
fn what_failed_is_repeated_where_a_run_was_restored() {
    let broken = Provider::start(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let sound = Provider::start(&[]);
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    let bench = broken.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let first = bench.run(broken.submit(&["--run-id", "first", "--retries", "0"])).expect_code(5).json();
    let _ = bench.run(["archive", "push", "first"]).expect_code(0);
    let there = sound.bench().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    let again = there.run(["retry", "first", "--json"]).expect_code(0);
    assert!(again.stderr.contains("questions are repeated"), "{}", again.stderr);
    let failed = first["outcomes"]["infra_error"].as_u64().expect("a count");
    assert_eq!(sound.count("requests"), failed, "answers came along, judgements alone are asked for");
    assert_eq!(again.json()["outcomes"]["coverage"], 1.0);
}

#[test]
fn a_restored_fork_shares_the_answers_of_its_source() {
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    let bench = Bench::new().with_env("BENCH_ARCHIVE_URL", &archive);
    let _ = submit(&bench, "first");
    let _ = bench.run(["rescore", "first", "--scorer", "exact", "--run-id", "fork"]).expect_code(0);
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", &archive);
    // the source comes behind what was made of it
    for id in ["fork", "first"] {
        let _ = there.run(["archive", "fetch", id, "--restore"]).expect_code(0);
    }
    let compared = there.run(["compare", "first", "fork", "--metric", "locomo-f1", "--json"]).json();
    assert_eq!((&compared["independent"], &compared["copied"]), (&json!(false), &json!(true)), "{compared:#}");
    let listed = there.run(["list", "--json"]).expect_code(0).stdout;
    assert!(listed.contains("judge of first"), "{listed}");
}

#[test]
fn writers_in_the_same_second_lose_nothing() {
    let s3 = S3::start();
    let archive = "s3://bench/races";
    let benches: Vec<Bench> = (0..3).map(|_| at(s3.place(), "")).collect();
    for (number, bench) in benches.iter().enumerate() {
        submit(bench, &format!("run-{number}"));
        submit(bench, "shared");
    }
    // all at once: different runs, and one run of the same id and result from every store
    let children: Vec<_> = benches
        .iter()
        .flat_map(|bench| {
            [
                bench.start(["archive", "push", "--archive", archive]),
                bench.start(["archive", "push", "shared", "--archive", archive]),
            ]
        })
        .collect();
    let codes: Vec<(i32, String)> = children.into_iter().map(wait).map(|done| (done.code, done.stderr)).collect();
    assert!(codes.iter().all(|(code, _)| *code == 0), "{codes:?}");
    let listed = benches[0].run(["archive", "list", "--archive", archive, "--json"]).expect_code(0).json();
    let mut ids: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|run| run["run_id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["run-0", "run-1", "run-2", "shared"], "nobody's entry was lost, and none is there twice");
    let _ = benches[0].run(["archive", "verify", "--archive", archive]).expect_code(0);
    // the same id with another result is refused, and nothing is overwritten
    let other = at(s3.place(), "");
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--top-k", "1", "--run-id", "shared"];
    let _ = other.run(args).expect_code(0);
    let refused = other.run(["archive", "push", "shared", "--archive", archive]).expect_code(2);
    assert!(refused.stderr.contains("another result"), "{}", refused.stderr);
    let _ = benches[0].run(["archive", "verify", "--archive", archive]).expect_code(0);
}

#[test]
fn an_archive_that_is_away_loses_no_run_and_gets_it_later() {
    let s3 = S3::start();
    let archive = "s3://bench/later";
    // nobody listens there
    let bench = at("127.0.0.1:9", archive);
    let args =
        ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--json", "--run-id", "alone"];
    let done = bench.run(args).expect_code(0);
    assert!(done.stderr.contains("not archived yet"), "{}", done.stderr);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0);
    let later = bench.command(["archive", "push"]).env("AWS_ENDPOINT_URL", format!("http://{}", s3.place())).spawn();
    let _ = wait(later.expect("starts")).expect_code(0);
    let listed =
        bench.command(["archive", "list", "--json"]).env("AWS_ENDPOINT_URL", format!("http://{}", s3.place())).spawn();
    assert_eq!(wait(listed.expect("starts")).expect_code(0).json()[0]["run_id"], "alone");
    let missing = bench.run(["archive", "list"]);
    assert_eq!(missing.code, 4, "{}", missing.stderr);
    assert!(!missing.stderr.contains(SECRET) && !done.stderr.contains(SECRET));
}

/// Pushes until the archive is whole: what a push that failed has left is gone on with.
fn push_again(bench: &Bench, archive: &str) {
    let _ = bench.run(["archive", "push", "first", "--archive", archive]).expect_code(0);
    let _ = bench.run(["archive", "verify", "--archive", archive]).expect_code(0);
    let listed = bench.run(["archive", "list", "--archive", archive, "--json"]).expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "one entry, whatever happened before: {listed}");
    let fetched = bench.run(["archive", "fetch", "first", "--archive", archive, "--output-dir", "out"]);
    let _ = fetched.expect_code(0);
}

#[test]
fn a_push_that_meets_trouble_at_any_point_is_made_whole_by_the_next() {
    let s3 = TroubledS3::start();
    let bench = at(s3.place(), "");
    submit(&bench, "first");
    let before = s3.requests();
    push_again(&bench, "s3://bench/undisturbed");
    assert!(s3.requests() > before + 12, "a push takes more than a dozen requests");
    // at the first look for it, among the files, at the manifest, at the index entry
    let troubles =
        [(0, Trouble::Cut), (5, Trouble::LostReply), (9, Trouble::Busy), (11, Trouble::LostReply), (12, Trouble::Cut)];
    for (place, (untroubled, trouble)) in troubles.into_iter().enumerate() {
        let archive = format!("s3://bench/troubled-{place}");
        s3.trouble_after(untroubled, trouble);
        let failed = bench.run(["archive", "push", "first", "--archive", &archive]).expect_code(4);
        assert!(failed.stderr.contains("nothing is lost") && !failed.stderr.contains(SECRET), "{}", failed.stderr);
        s3.heal();
        push_again(&bench, &archive);
    }
}

#[test]
fn an_index_entry_that_cannot_be_read_hides_no_other_run() {
    let s3 = TroubledS3::start();
    let bench = at(s3.place(), "s3://bench/results");
    for id in ["first", "second"] {
        submit(&bench, id);
    }
    let _ = bench.run(["archive", "push"]).expect_code(0);
    for trouble in [Trouble::Denied, Trouble::Busy] {
        s3.trouble_object("/second.json", trouble);
        let listed = bench.run(["archive", "list", "--json"]).expect_code(0);
        assert_eq!(listed.json()[0]["run_id"], "first", "{trouble:?}");
        assert!(listed.stderr.contains("second.json is left out"), "{trouble:?}: {}", listed.stderr);
    }
    let fetched = bench.run(["archive", "fetch", "first", "--output-dir", "out"]);
    assert!(!fetched.expect_code(0).stderr.contains("left out"), "which run is meant is certain");
    s3.trouble_object(".json", Trouble::Denied);
    let away = bench.run(["archive", "list"]).expect_code(4);
    assert!(away.stderr.contains("cannot be used"), "nothing can be read at all: {}", away.stderr);
}

#[test]
fn a_push_that_is_killed_is_made_whole_by_the_next() {
    let s3 = TroubledS3::start();
    let bench = at(s3.place(), "");
    submit(&bench, "first");
    for untroubled in [3, 9] {
        let archive = format!("s3://bench/killed-{untroubled}");
        let before = s3.requests();
        s3.trouble_after(untroubled, Trouble::Hang);
        let mut push = bench.start(["archive", "push", "first", "--archive", &archive]);
        while s3.requests() <= before + untroubled {
            assert!(push.try_wait().expect("is ours").is_none(), "it ended before it was killed");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        signal(&push, "KILL");
        let _ = wait(push);
        s3.heal();
        push_again(&bench, &archive);
    }
}

#[test]
fn a_restore_that_is_cut_is_gone_on_with() {
    let archive = tempfile::tempdir().expect("a folder");
    let at = archive.path().display().to_string();
    let here = Bench::new().with_env("BENCH_ARCHIVE_URL", &at);
    submit(&here, "first");
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", &at);
    // wherever each of these is met, the next one goes on from there
    for milliseconds in [40, 80, 120, 160, 240] {
        let child = there.start(["archive", "fetch", "first", "--restore"]);
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        signal(&child, "KILL");
        let _ = wait(child);
    }
    let _ = there.run(["archive", "fetch", "first", "--restore"]).expect_code(0);
    assert_eq!(there.report("first"), here.report("first"));
    assert_eq!(there.run(["report", "first", "--format", "json"]).expect_code(0).json(), here.report("first"));
}

#[test]
fn damage_is_found_and_named() {
    let bench = Bench::new();
    submit(&bench, "first");
    let _ = bench.run(["archive", "push", "first", "--archive", "kept"]).expect_code(0);
    // tables are made of the index: what it says of a run is held against its report
    let index = files(&bench.path().join("kept")).keys().find(|name| name.starts_with("index/")).cloned();
    let index = bench.path().join("kept").join(index.expect("an entry"));
    let told = std::fs::read_to_string(&index).expect("readable");
    let mut entry: Value = serde_json::from_str(&told).expect("an entry");
    (entry["value"], entry["n"]) = (json!(0.99), json!(1986));
    std::fs::write(&index, entry.to_string()).expect("writable");
    let verified = bench.run(["archive", "verify", "--archive", "kept", "--json"]).expect_code(5).json();
    let damage = verified[0]["damage"].to_string();
    for words in ["the index says value 0.99, and its manifest", "says n 1986, and report.json"] {
        assert!(damage.contains(words), "{damage}");
    }
    std::fs::write(&index, &told).expect("writable");
    let _ = bench.run(["archive", "verify", "--archive", "kept"]).expect_code(0);
    std::fs::write(&index, "{").expect("writable");
    let verified = bench.run(["archive", "verify", "--archive", "kept", "--json"]).expect_code(5).json();
    assert!(verified[0]["damage"].to_string().contains("is left out"), "{verified}");
    std::fs::write(&index, &told).expect("writable");
    let report = files(&bench.path().join("kept")).keys().find(|name| name.ends_with("report.json.zst")).cloned();
    let path = bench.path().join("kept").join(report.expect("a report"));
    let mut bytes = std::fs::read(&path).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("writable");
    let verified = bench.run(["archive", "verify", "--archive", "kept", "--json"]).expect_code(5).json();
    assert!(verified[0]["damage"][0].as_str().is_some_and(|what| what.contains("report.json.zst")), "{verified}");
    let refused = bench.run(["archive", "fetch", "first", "--archive", "kept", "--output-dir", "out"]).expect_code(5);
    assert!(refused.stderr.contains("report.json.zst"), "{}", refused.stderr);
    std::fs::remove_file(&path).expect("removable");
    let _ = bench.run(["archive", "verify", "first", "--archive", "kept"]).expect_code(5);
    let _ = bench.run(["archive", "verify", "nobody", "--archive", "kept"]).expect_code(2);
    let _ = bench.run(["archive", "list"]).expect_code(2);
    let wrong = bench.run(["archive", "list", "--archive", "kpet"]).expect_code(2);
    assert!(wrong.stderr.contains("no archive kpet") && !bench.path().join("kpet").exists(), "{}", wrong.stderr);
    let secret = bench.run(["archive", "list", "--archive", "s3://key:secret@bench/x"]).expect_code(2);
    assert!(!secret.stderr.contains("key:secret"), "{}", secret.stderr);
}

#[test]
fn a_run_that_cannot_be_archived_holds_up_no_other() {
    let (bench, other) = (Bench::new(), Bench::new());
    let shared = tempfile::tempdir().expect("a folder");
    let archive = shared.path().display().to_string();
    submit(&other, "first");
    let _ = other.run(["archive", "push", "--archive", &archive]).expect_code(0);
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--top-k", "1", "--run-id", "first"];
    let _ = bench.run(args).expect_code(0);
    submit(&bench, "second");
    let pushed = bench.run(["archive", "push", "--archive", &archive]).expect_code(2);
    assert!(pushed.stderr.contains("run first: another result of this id is archived"), "{}", pushed.stderr);
    assert!(pushed.stdout.trim().ends_with("/second"), "{}", pushed.stdout);
    let listed = bench.run(["archive", "list", "--archive", &archive, "--json"]).expect_code(0).json();
    let ids: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|run| run["run_id"].as_str()).collect();
    assert_eq!(ids, ["first", "second"]);
}

#[test]
fn questions_are_exported_for_other_tools() {
    let bench = Bench::new();
    submit(&bench, "first");
    let csv = bench.run(["export", "first", "--format", "csv"]).expect_code(0).stdout;
    assert!(csv.starts_with("question_id,bank_id,category,") && csv.contains("score:locomo-f1"), "{}", &csv[..200]);
    let lines = bench.run(["export", "first", "--format", "jsonl"]).expect_code(0).stdout;
    let own = std::fs::read_to_string(bench.path().join(".bench/runs/first/questions.jsonl")).expect("written");
    assert_eq!(lines, own);
    let record = bench.run(["export", "first", "--format", "every-eval-ever"]).expect_code(0).json();
    let figure = &record["evaluation_results"][0]["score_details"];
    assert_eq!(
        (&record["schema_version"], &figure["score"]),
        (&"0.3.0".into(), &bench.report("first")["headline"]["value"])
    );
    let _ = bench
        .run(["export", "first", "--format", "jsonl,csv,parquet,every-eval-ever", "--output-dir", "out"])
        .expect_code(0);
    assert!(bench.path().join("out/every-eval-ever.json").is_file());
    let parquet = std::fs::read(bench.path().join("out/questions.parquet")).expect("written");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let _ = bench.run(["export", "first", "--format", "parquet"]).expect_code(2);
    let _ = bench.run(["export", "first", "--format", "xml"]).expect_code(2);
    // what was exported can be imported
    let import = [
        "import",
        "--dataset",
        "locomo-sim",
        "--answers",
        "out/questions.jsonl",
        "--subset",
        "--metric",
        "locomo-f1",
        "--json",
    ];
    let imported = bench.run(import).expect_code(0).json();
    assert_eq!(imported["scores"][0]["micro"], bench.report("first")["scores"][0]["micro"]);
}
