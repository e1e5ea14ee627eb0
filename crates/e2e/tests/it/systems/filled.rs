//! Banks that are filled once and asked by several runs (P33), and banks that were there before.

use std::time::Duration;

use bench_testkit::{
    bench::{Bench, Done, wait},
    fakes::Fake,
    process::wait_until,
};
use serde_json::json;

use super::{PATIENCE, submit, write_whole};
use crate::printed::{
    self,
    forms::BanksRemoved,
    pages::{Banks, BanksOfRuns},
};

/// A memory server with a bank for each conversation, that can be counted and emptied, and has a setting.
fn write_adapter(bench: &Bench, url: &str, more: &str) {
    let more = format!(
        "settings: {{width: {{type: whole, default: 1, about: how wide}}}}
verify: {{request: 'GET /banks/{{bank}}?width={{setting.width}}', count: items}}
{more}
"
    );
    write_whole(bench, url, &more);
}

/// Runs two conversations with `--reuse-banks` and further flags.
fn reuse(bench: &Bench, run: &str, more: &[&str]) -> Done {
    bench.run([submit("./mine.yaml", run), vec!["--reuse-banks"], more.to_vec()].concat())
}

/// Requests that store something, so far.
fn stored(fake: &Fake) -> usize {
    fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/items")).count())
}

/// Banks that the server holds.
fn held(fake: &Fake) -> Vec<String> {
    fake.with(|world| world.banks.keys().cloned().collect())
}

/// What one version of a server has filled says nothing of the next one.
#[test]
fn banks_that_another_version_of_the_server_has_filled_are_not_asked() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let file = bench.path().join("mine.yaml");
    let text = std::fs::read_to_string(&file).expect("reads");
    let tells = text.replace("health: {request: GET /health}", "health: {request: GET /health, version: version}");
    std::fs::write(&file, tells).expect("is written");
    fake.with(|world| world.version = "1.0".to_owned());
    let _ = bench.run([submit("./mine.yaml", "old"), vec!["--keep-banks"]].concat()).expect_code(0);
    let same = reuse(&bench, "same", &[]).expect_code(0);
    assert!(same.stderr.contains("2 of 2 banks were filled by run old"), "{}", same.stderr);
    fake.with(|world| world.version = "2.0".to_owned());
    let other = reuse(&bench, "other", &[]).expect_code(2).stderr;
    assert!(other.contains("of run old said that it is version 1.0, and it is 2.0 now"), "{other}");
}

#[test]
fn banks_go_when_their_run_has_ended_and_somebody_said_so() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let run = |id: &str, more: &[&str]| bench.run([submit("./mine.yaml", id), more.to_vec()].concat());
    let cleaned = run("cleaned", &["--clean-after"]).expect_code(0);
    assert!(cleaned.stderr.contains("2 banks were removed, as --clean-after wants"), "{}", cleaned.stderr);
    assert_eq!((held(&fake).len(), cleaned.json()["outcomes"]["coverage"].clone()), (0, json!(1.0)));
    let listed = bench.run(["banks", "list", "--json"]).expect_code(0).json();
    assert_eq!((&listed[0]["run"], &listed[0]["state"]), (&json!("cleaned"), &json!("removed")));
    // the runs of a group share what the first has filled: it goes when the last has ended
    let group = run("group", &["--repeats", "2", "--clean-after"]).expect_code(0);
    assert_eq!(held(&fake).len(), 0, "{}", group.stderr);
    let reports = ["group-r1", "group-r2"].map(|run| bench.report(run)["outcomes"]["coverage"].clone());
    assert_eq!(reports, [json!(1.0), json!(1.0)]);

    let _ = run("kept", &["--keep-banks"]).expect_code(0);
    let asks = reuse(&bench, "asks", &[]).expect_code(0);
    assert!(asks.stderr.contains("2 of 2 banks were filled by run kept"), "{}", asks.stderr);
    let _ = bench.run(["gc"]).expect_code(0);
    assert_eq!(held(&fake).len(), 2);
    let none = bench.run(["banks", "remove", "asks", "--json"]).expect_code(0).json();
    printed::held::<BanksRemoved>(&none);
    assert_eq!((&none["banks_removed"], held(&fake).len()), (&json!(0), 2), "they are another run's");
    fake.with(|world| world.fails_after = Some((0, 403)));
    let failed = bench.run(["banks", "remove", "kept", "--json"]).expect_code(4).json();
    assert_eq!(failed, json!({"banks_removed": 0, "failed": 1}));
    fake.with(|world| world.fails_after = None);
    let removed = bench.run(["banks", "remove", "kept"]).expect_code(0);
    assert_eq!((removed.stdout.as_str(), held(&fake).len()), ("2 banks removed\n", 0));
    // who has filled them may be gone as well
    let _ = bench.run(["delete", "kept", "--yes"]).expect_code(0);
    let fork = ["submit", "--fork", "asks", "--from", "recall", "--run-id", "anew"];
    let refused = bench.run(fork).expect_code(2).stderr;
    assert!(refused.contains("or that run was deleted"), "{refused}");
    // a run that is there keeps what it was submitted with
    let other = run("cleaned", &["--keep-banks"]).expect_code(2).stderr;
    assert!(other.contains("was submitted with --clean-after, by which its banks go"), "{other}");
    // what was measured is safe before what it was measured on goes
    let away = Bench::new().with_env("BENCH_ARCHIVE_URL", "file/x");
    std::fs::write(away.path().join("file"), "").expect("is written");
    write_adapter(&away, fake.url(), "");
    let away_run = [submit("./mine.yaml", "away"), vec!["--clean-after"]].concat();
    let told = away.run(away_run).expect_code(0).stderr;
    assert!(told.contains("the banks of away stay until it is in its archive"), "{told}");
    let _ = away.run(["gc"]).expect_code(0);
    assert_eq!(held(&fake).len(), 2);
    let _ = away.run(["archive", "push", "away", "--archive", "kept"]).expect_code(0);
    let _ = away.run(["gc"]).expect_code(0);
    assert_eq!(held(&fake).len(), 0);
    for (flags, words) in [
        (["--bank", "prod", "--clean-after"], "cannot be used with"),
        (["--keep-banks", "--clean-after", "--no-canaries"], "cannot be used with"),
    ] {
        assert!(run("refused", &flags).expect_code(2).stderr.contains(words));
    }
}

#[test]
fn banks_stay_while_what_failed_can_be_repeated_and_a_run_without_banks_asks_no_more() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let run = |id: &str, more: &[&str]| {
        bench.run(
            [
                submit("./mine.yaml", id),
                vec!["--no-canaries", "--latency-probe", "off", "--clean-after"],
                more.to_vec(),
            ]
            .concat(),
        )
    };
    let _ = run("whole", &[]).expect_code(0);
    let asked = fake.with(|world| std::mem::take(&mut world.requests).len());
    // the last recalls fail, before the banks would go
    let asked_alone = asked;
    fake.with(|world| world.fails_after = Some((asked_alone.saturating_sub(8), 400)));
    let failed = run("failed", &[]);
    assert!(failed.json()["outcomes"]["infra_error"].as_u64() > Some(0), "{}", failed.stdout);
    let words = "the banks of failed stay, as some of its questions have failed: `bench-coord retry failed --errors`";
    assert!(failed.stderr.contains(words), "{}", failed.stderr);
    fake.with(|world| world.fails_after = None);
    assert_eq!(held(&fake).len(), 2);
    let again = bench.run(["retry", "failed", "--errors", "--json", "--display", "none"]).expect_code(0);
    assert_eq!((again.json()["outcomes"]["coverage"].clone(), held(&fake).len()), (json!(1.0), 0), "{}", again.stderr);

    // the runs of a group ask the same banks: they stay for whichever of them has failed
    fake.with(|world| world.requests.clear());
    let _ = run("twice", &["--repeats", "2"]).expect_code(0);
    let asked = fake.with(|world| std::mem::take(&mut world.requests).len());
    fake.with(|world| world.fails_after = Some((asked.saturating_sub(8), 400)));
    let failed = run("again", &["--repeats", "2"]);
    fake.with(|world| world.fails_after = None);
    assert!(failed.stderr.contains("the banks of again stay"), "{}", failed.stderr);
    let _ = bench.run(["gc"]).expect_code(0);
    assert_eq!(held(&fake).len(), 2, "nor does it remove those of the one that has not failed");
    let _ = bench.run(["retry", "again", "--errors", "--display", "none"]).expect_code(0);
    let coverage = ["again-r1", "again-r2"].map(|run| bench.report(run)["outcomes"]["coverage"].clone());
    assert_eq!((coverage, held(&fake).len()), ([json!(1.0), json!(1.0)], 0));
    // of two runs apart the one that asks the other's banks is not repeated without them
    let _ = bench.run([submit("./mine.yaml", "fills"), vec!["--no-canaries"]].concat()).expect_code(0);
    fake.with(|world| world.requests.clear());
    let _ = reuse(&bench, "counts", &["--no-canaries", "--latency-probe", "off"]).expect_code(0);
    let asked = fake.with(|world| std::mem::take(&mut world.requests).len());
    fake.with(|world| world.fails_after = Some((asked.saturating_sub(4), 400)));
    let failed = reuse(&bench, "asks", &["--no-canaries", "--latency-probe", "off"]);
    assert!(failed.json()["outcomes"]["infra_error"].as_u64() > Some(0), "{}", failed.stdout);
    fake.with(|world| world.fails_after = None);
    let _ = bench.run(["banks", "remove", "fills"]).expect_code(0);
    let refused = bench.run(["retry", "asks", "--errors"]).expect_code(2).stderr;
    assert!(refused.contains("run asks asks banks that fills has filled, and they were removed"), "{refused}");

    // a server that has lost everything is filled again, also for a bank some of whose questions have their scores
    fake.with(|world| world.fails_after = Some((asked_alone.saturating_sub(8), 400)));
    let _ = bench.run([submit("./mine.yaml", "lost"), vec!["--no-canaries", "--latency-probe", "off"]].concat());
    fake.with(|world| {
        world.fails_after = None;
        world.banks.clear();
    });
    let lost = bench.run(["retry", "lost", "--errors", "--json", "--display", "none"]).expect_code(5).json();
    assert!(lost["errors"]["memories_lost"].as_u64() > Some(0), "{lost}");
    let filled = bench.run(["retry", "lost", "--errors", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(filled["outcomes"]["coverage"], 1.0);

    let held_before = held(&fake).len();
    // what a rule has left out cannot be asked of banks that are gone, and what was measured stays as it is
    let rule = ["submit", "--dataset", "locomo-sim", "--system", "./mine.yaml", "--run-id", "early", "--json"];
    let more = ["--display", "none", "--no-canaries", "--clean-after", "--stop-when", "ci<=8pt"];
    let early = bench.run([&rule[..], &more].concat()).expect_code(0).json();
    assert_eq!((&early["run"]["verdict"], held(&fake).len()), (&json!("VALID"), held_before), "{early}");
    let refused = bench.run(["resume", "early", "--no-stop"]).expect_code(2).stderr;
    assert!(refused.contains("the banks of early were removed from its memory system: submit it anew"), "{refused}");
    let report = bench.run(["report", "early", "--json"]).expect_code(0).json();
    assert_eq!((&report["result_digest"], &report["run"]["verdict"]), (&early["result_digest"], &json!("VALID")));
}

/// Another server for a fork of `second`, and the end of `first`, whose banks it asks.
fn check_refused(bench: &Bench) {
    // which server or setting it asks is no choice of a fork
    for set in ["system.url=http://127.0.0.1:9", "mine.width=2"] {
        let moved = ["submit", "--fork", "second", "--from", "recall", "--run-id", "moved", "--set", set];
        let refused = bench.run(moved).expect_code(2).stderr;
        assert!(refused.contains(&format!("--set {}", set.split('=').next().unwrap_or_default())), "{refused}");
    }
    let listed = bench.run(["banks", "list", "--json"]).expect_code(0).json();
    let asks = (&listed[0]["run"], &listed[0]["asks"]);
    assert_eq!(asks, (&json!("fork"), &json!(["second", "first"])), "its source has filled none of them");
    // a run whose banks others ask is deleted with them, or when its banks are gone
    let refused = bench.run(["delete", "first", "--yes"]).expect_code(2).stderr;
    assert!(refused.contains("asks banks that first has filled: name it too"), "{refused}");
}

/// What is said of the banks of a run, and of one that asks them.
fn check_listed(bench: &Bench, banks: &[String]) {
    let listed = bench.run(["banks", "list", "--json"]).expect_code(0).json();
    printed::held::<BanksOfRuns>(&listed);
    let line = |at: usize| (&listed[at]["run"], &listed[at]["filled"], &listed[at]["asks"], &listed[at]["state"]);
    assert_eq!(line(0), (&json!("second"), &json!(0), &json!(["first"]), &json!("kept")));
    assert_eq!(line(1), (&json!("first"), &json!(2), &json!([]), &json!("kept")));
    let shown = bench.run(["banks", "show", "second", "--json"]).expect_code(0).json();
    printed::held::<Banks>(&shown);
    assert!(shown.as_array().is_some_and(|all| {
        all.iter().all(|bank| banks.contains(&bank["handle"].as_str().unwrap_or_default().to_owned()))
    }));
    assert!(shown.as_array().is_some_and(|all| all.iter().all(|bank| bank["retained"] == bank["of"])), "{shown}");
    assert!(bench.run(["banks", "list"]).expect_code(0).stdout.contains("asks those of"));
}

/// More conversations and more questions: those that are filled are asked, the others are filled.
fn check_wider(bench: &Bench, fake: &Fake) {
    let wide = ["--dataset", "locomo-sim", "--max-banks", "3", "--sample", "4", "--system", "./mine.yaml"];
    let wide = bench
        .run([&["submit", "--run-id", "wide", "--json", "--display", "none", "--no-canaries"][..], &wide].concat())
        .expect_code(0);
    let before = stored(fake);
    let wider =
        ["--dataset", "locomo-sim", "--max-banks", "4", "--sample", "4", "--system", "./mine.yaml", "--reuse-banks"];
    let wider = bench
        .run([&["submit", "--run-id", "wider", "--json", "--display", "none", "--no-canaries"][..], &wider].concat())
        .expect_code(0);
    assert!(wider.stderr.contains("3 of 4 banks were filled by run wide"), "{}", wider.stderr);
    assert!(stored(fake) > before, "the fourth is filled");
    assert_eq!(
        (wide.json()["outcomes"]["coverage"].clone(), wider.json()["outcomes"]["coverage"].clone()),
        (json!(1.0), json!(1.0))
    );
}

/// A fork from recall asks them too, with another k.
fn check_fork(bench: &Bench, fake: &Fake) {
    let before = stored(fake);
    let fork = [
        "submit",
        "--fork",
        "second",
        "--from",
        "recall",
        "--top-k",
        "5",
        "--run-id",
        "fork",
        "--json",
        "--display",
        "none",
    ];
    let fork = bench.run(fork).expect_code(0).json();
    assert_eq!((stored(fake), &fork["outcomes"]["coverage"]), (before, &json!(1.0)));
}

#[test]
fn p33_a_run_asks_the_banks_that_another_has_filled() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let first = reuse(&bench, "first", &[]).expect_code(0);
    assert!(first.stderr.contains("no run here has filled the same banks of mine"), "{}", first.stderr);
    let (filled, banks) = (stored(&fake), held(&fake));
    assert!(filled > 10 && banks.len() == 2, "{filled} {banks:?}");

    let second = reuse(&bench, "second", &[]).expect_code(0);
    assert!(second.stderr.contains("2 of 2 banks were filled by run first"), "{}", second.stderr);
    assert_eq!((stored(&fake), held(&fake)), (filled, banks.clone()), "nothing was stored again");
    let filled_by = |run: &str| {
        let shown = bench.run(["banks", "show", run, "--json"]).expect_code(0).json();
        shown.as_array().into_iter().flatten().map(|bank| bank["filled_by"].clone()).collect::<Vec<_>>()
    };
    for run in ["first", "second"] {
        assert_eq!(filled_by(run), [json!("first"), json!("first")], "{run}");
    }
    let (first, second) = (first.json(), second.json());
    assert_eq!(first["result_digest"], second["result_digest"]);
    assert_eq!(first["run"]["fingerprint"], second["run"]["fingerprint"]);
    assert!(first["run"]["fingerprint"].is_string() && first["result_digest"].is_string(), "{first}");
    let notes = second["dataset"]["sample"]["notes"].to_string();
    assert!(notes.contains("filled by run first: what that took stands in its report"), "{notes}");
    let ready = second["run"]["checks"].as_array().and_then(|all| all.iter().find(|one| one["rule"] == "banks_ready"));
    assert_eq!(ready.expect("is checked")["state"], "passed", "they were counted again");
    assert_eq!((&second["canaries"]["lost"]["n"], &second["canaries"]["lost"]["of"]), (&json!(0), &json!(60)));
    assert_eq!(second["retained_turns"].as_u64().unwrap_or(0), 0, "{second}");

    check_listed(&bench, &banks);
    check_wider(&bench, &fake);

    // another setting is another filling
    let other = reuse(&bench, "other", &["--set", "mine.width=2"]).expect_code(0);
    assert!(other.stderr.contains("has another value of mine.width"), "{}", other.stderr);

    check_fork(&bench, &fake);
    check_refused(&bench);

    // who removes what the first run has filled removes it for all
    assert!(bench.run(["gc", "--banks", "second"]).expect_code(0).stdout.starts_with("0 banks"));
    assert!(banks.iter().all(|bank| held(&fake).contains(bank)), "they are the first run's");
    assert!(bench.run(["gc", "--banks", "first"]).expect_code(0).stdout.starts_with("2 banks"));
    assert!(!banks.iter().any(|bank| held(&fake).contains(bank)));
    let anew = reuse(&bench, "anew", &[]).expect_code(0);
    assert!(
        !anew.stderr.contains("filled by run first") && anew.stderr.contains("this run fills its own"),
        "{}",
        anew.stderr
    );
}

#[test]
fn p33_banks_that_have_lost_memories_are_not_asked_again() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let _ = reuse(&bench, "first", &[]).expect_code(0);
    let lost = fake.with(|world| {
        let bank = world.banks.values_mut().next().expect("a bank");
        bank.truncate(3);
        bank.len()
    });
    let refused = reuse(&bench, "second", &[]).expect_code(2);
    assert!(
        refused.stderr.contains(&format!("holds {lost} of ")) && refused.stderr.contains("which run first filled"),
        "{}",
        refused.stderr
    );
    assert!(
        bench.run(["list", "--json"]).expect_code(0).stdout.matches("\"second\"").count() == 0,
        "nothing was started"
    );
    // a fork is told by its own readiness, and a retry fills that bank anew
    let fork = ["submit", "--fork", "first", "--from", "recall", "--run-id", "fork", "--json", "--display", "none"];
    let fork = bench.run(fork).expect_code(5).json();
    assert!(fork["errors"]["memories_lost"].as_u64() > Some(0), "{fork}");
    let errors: Vec<String> = bench.questions("fork").iter().map(|question| question["error"].to_string()).collect();
    assert!(errors.iter().any(|error| error.contains("`retry --errors` fills the bank anew")), "{errors:?}");
    let again = bench.run(["retry", "fork", "--errors", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(again["outcomes"]["coverage"], 1.0);
    // systems without banks that stay are refused, and those without any are told so
    write_adapter(&bench, fake.url(), "can: {learns_from_recall: true}");
    let refused = reuse(&bench, "learns", &[]).expect_code(2);
    assert!(refused.stderr.contains("a recall changes its banks"), "{}", refused.stderr);
    let computed = bench.run([submit("bm25", "computed"), vec!["--reuse-banks"]].concat()).expect_code(0);
    assert!(computed.stderr.contains("there is nothing to fill"), "{}", computed.stderr);
}

#[test]
fn a_bank_that_was_there_before_is_asked_and_left_as_it_is() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "");
    let filled = bench.run([submit("./mine.yaml", "filled"), vec!["--no-canaries"]].concat()).expect_code(0).json();
    // what lies there is under names of the dataset
    let ids: Vec<String> = {
        let mut ids: Vec<String> =
            bench.questions("filled").iter().filter_map(|q| q["bank_id"].as_str().map(str::to_owned)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    assert_eq!(ids.len(), 2);
    // what both conversations hold lies in each: whose is whose is not known to a server
    fake.with(|world| {
        let all: Vec<_> = std::mem::take(&mut world.banks).into_values().flatten().collect();
        ids.iter().for_each(|id| drop(world.banks.insert(format!("prod-{id}"), all.clone())));
    });
    let before = (stored(&fake), held(&fake));
    let one = bench.run([submit("./mine.yaml", "one"), vec!["--bank", "prod"]].concat()).expect_code(2);
    assert!(one.stderr.contains("the sample has 2 banks; put {bank_id}"), "{}", one.stderr);
    for name in ["", " ", "a/../{bank_id}", "a//{bank_id}", "..", "{bank_id}-{nope}"] {
        let refused = bench.run([submit("./mine.yaml", "one"), vec!["--bank", name]].concat()).expect_code(2);
        assert!(refused.stderr.contains("--bank"), "{name}: {}", refused.stderr);
    }
    let asked = bench.run([submit("./mine.yaml", "asked"), vec!["--bank", "prod-{bank_id}"]].concat());
    let report = asked.json();
    assert_eq!((stored(&fake), held(&fake)), before, "nothing was stored");
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{}", asked.stderr);
    let notes = report["dataset"]["sample"]["notes"].to_string();
    assert!(notes.contains("bank prod-{bank_id} was there before") && notes.contains("not proven"), "{notes}");
    let ready = report["run"]["checks"].as_array().and_then(|all| all.iter().find(|one| one["rule"] == "banks_ready"));
    assert_eq!(ready.expect("is told")["state"], "not checked", "nothing can be proven, and nothing is wrong");
    assert_eq!(report["run"]["verdict"], "VALID", "{}", report["run"]["reasons"]);
    assert_ne!(report["run"]["fingerprint"], filled["run"]["fingerprint"], "nobody knows that it holds the same");
    let _ = bench.run(["gc", "--banks", "asked"]).expect_code(0);
    assert_eq!(held(&fake), before.1, "it is not the run's to remove");
    // one that is not there is asked all the same, and nothing is ever stored in its place
    let absent = bench.run([submit("./mine.yaml", "absent"), vec!["--bank", "nobody-{bank_id}"]].concat());
    assert_eq!(
        (absent.json()["outcomes"]["coverage"].clone(), absent.json()["run"]["verdict"].clone()),
        (json!(1.0), json!("INVALID"))
    );
    let _ = bench.run(["retry", "absent", "--errors"]);
    assert_eq!((stored(&fake), held(&fake)), before);
}

#[test]
fn p33_repeats_and_cells_share_what_the_first_of_them_fills() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_adapter(&bench, fake.url(), "can: {repeat: true}");
    let alone = bench.run(submit("./mine.yaml", "alone")).expect_code(0).json();
    let once = stored(&fake);
    let digest = |run: &str| bench.report(run)["result_digest"].clone();

    let repeats = bench.run([submit("./mine.yaml", "rep"), vec!["--repeats", "3"]].concat()).expect_code(0);
    assert!(repeats.stderr.contains("all repeats ask the same filled banks of mine"), "{}", repeats.stderr);
    assert_eq!((stored(&fake), held(&fake).len()), (2 * once, 4), "the repeats have filled two banks once");
    assert!(["rep-r1", "rep-r2", "rep-r3"].into_iter().all(|run| digest(run) == alone["result_digest"]));
    let report = bench.run(["report", "rep", "--json"]).expect_code(0).json();
    assert_eq!(report["group"]["filled_anew"], false, "{report}");

    // killed while it fills, and gone on with: nothing is filled twice
    fake.with(|world| world.slow = Duration::from_millis(30));
    let mut child = bench.start([submit("./mine.yaml", "killed"), vec!["--repeats", "2"]].concat());
    wait_until("some sessions are stored", PATIENCE, || stored(&fake) > 2 * once + 4);
    child.kill().expect("is killed");
    let _ = wait(child);
    fake.with(|world| world.slow = Duration::ZERO);
    let _ = bench.run(["resume", "killed", "--display", "none"]).expect_code(0);
    assert_eq!(held(&fake).len(), 6, "two banks more");
    assert!(["killed-r1", "killed-r2"].into_iter().all(|run| digest(run) == alone["result_digest"]));

    // cells that differ in what comes after filling, and another one later
    let matrix = |ks: &str| {
        let flags =
            "flags = ['--dataset', 'locomo-sim', '--max-banks', '2', '--sample', '2', '--system', './mine.yaml']";
        std::fs::write(bench.path().join("m.toml"), format!("{flags}\n[axes]\ntop-k = [{ks}]\n")).expect("is written");
        bench.run(["matrix", "m.toml", "--run-id", "m", "--display", "none"]).expect_code(0)
    };
    let before = stored(&fake);
    let _ = matrix("5, 10");
    assert_eq!((stored(&fake), held(&fake).len()), (before + once, 8));
    assert_eq!(digest("m-c2-r1"), alone["result_digest"]);
    let _ = matrix("5, 10, 20");
    assert_eq!((stored(&fake), held(&fake).len()), (before + once, 8), "a cell that is added asks them too");

    let anew = ["--repeats", "2", "--repeat-ingest"];
    let anew = bench.run([submit("./mine.yaml", "anew"), anew.to_vec()].concat()).expect_code(0);
    assert!(anew.stderr.contains("each repeat fills its own"), "{}", anew.stderr);
    assert_eq!(held(&fake).len(), 12);
}

#[test]
fn p5_two_stores_on_one_server_have_banks_of_their_own() {
    let fake = Fake::start("whole");
    let [one, other] = [Bench::new(), Bench::new()];
    for bench in [&one, &other] {
        write_adapter(bench, fake.url(), "");
        let _ = bench.run(submit("./mine.yaml", "first")).expect_code(0);
    }
    let names = |bench: &Bench| -> Vec<String> {
        let shown = bench.run(["banks", "show", "first", "--json"]).expect_code(0).json();
        let all = shown.as_array().expect("has banks").iter();
        all.map(|bank| bank["handle"].as_str().expect("has a handle").to_owned()).collect()
    };
    let (ours, theirs) = (names(&one), names(&other));
    assert_eq!((ours.len(), theirs.len(), held(&fake).len()), (2, 2, 4), "{ours:?} {theirs:?}");
    // and what one removes is none of the other's
    let _ = one.run(["gc", "--banks", "first"]).expect_code(0);
    let left = held(&fake);
    assert!(left.len() == 2 && theirs.iter().all(|bank| left.contains(bank)), "{left:?} {theirs:?}");
}
