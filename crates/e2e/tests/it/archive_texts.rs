//! What of a run goes into an archive beside its figures, and what a matrix leaves there.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use bench_testkit::{
    beam,
    bench::{Bench, submit_sim},
};
use serde_json::{Value, json};

use crate::printed::forms::Fetched;

/// All files below a folder, unpacked, by their path.
fn unpacked(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(unpacked(&path));
            continue;
        }
        let bytes = fs::read(&path).expect("readable");
        let plain = match path.extension().is_some_and(|ending| ending == "zst") {
            true => zstd::decode_all(bytes.as_slice()).expect("is zstd"),
            false => bytes,
        };
        found.insert(path.display().to_string(), String::from_utf8_lossy(&plain).into_owned());
    }
    found
}

/// Every text of a run's questions: what was asked, expected, answered and recalled.
fn texts(bench: &Bench, run: &str) -> Vec<String> {
    let of = |question: &Value| {
        let hits = question["retrieved"].as_array().into_iter().flatten().map(|hit| hit["text"].clone());
        let own = ["question", "gold", "answer"].map(|key| question[key].clone());
        own.into_iter().chain(hits).filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    // a short one, such as a number, stands in figures too
    bench.questions(run).iter().flat_map(of).filter(|text| text.len() > 12).collect()
}

#[test]
fn a_run_is_archived_without_its_texts_where_that_is_asked_for() {
    let bench = Bench::new();
    for (run, system) in [("first", "bm25"), ("second", "random")] {
        let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", run, "--system", system])).expect_code(0);
    }
    let at = ["--archive", "public"];
    for run in ["first", "second"] {
        let push = bench.run([&["archive", "push", run, "--texts", "never"], &at[..]].concat()).expect_code(0);
        assert!(push.stderr.contains(&format!("run {run} is archived without the texts")), "{}", push.stderr);
    }
    let archived = unpacked(&bench.path().join("public"));
    let texts = texts(&bench, "first");
    assert!(texts.len() > 100, "{}", texts.len());
    for (name, content) in &archived {
        assert!(!name.contains("banks.jsonl") && !name.contains("report.html"), "{name}");
        let told = texts.iter().find(|text| content.contains(text.as_str()));
        assert_eq!(told, None, "{name} holds a text");
    }
    // ids, scores and verdicts are there, and all bytes are checked
    let listed = bench.run([&["archive", "list", "--json"], &at[..]].concat()).expect_code(0).json();
    assert_eq!(listed[0]["without_texts"], "as was asked for");
    let _ = bench.run([&["archive", "verify"], &at[..]].concat()).expect_code(0);
    let fetched = bench.run([&["archive", "fetch", "first", "--output-dir", "got", "--json"], &at[..]].concat());
    let fetched = fetched.expect_code(0);
    assert!(fetched.stderr.contains("not among them"), "{}", fetched.stderr);
    assert_eq!(fetched.json()["without_texts"], "as was asked for");
    let question: Value = serde_json::from_str(
        fs::read_to_string(bench.path().join("got/questions.jsonl")).expect("is there").lines().next().expect("one"),
    )
    .expect("JSON");
    let own = bench.questions("first");
    assert_eq!((&question["question_id"], &question["scores"]), (&own[0]["question_id"], &own[0]["scores"]));
    // folders are compared, pages are made
    let _ = bench.run([&["archive", "fetch", "second", "--output-dir", "other"], &at[..]].concat()).expect_code(0);
    let of_folders = bench.run(["compare", "got", "other", "--json"]).json();
    let of_runs = bench.run(["compare", "first", "second", "--json"]).json();
    assert_eq!(of_folders["paired"]["difference"], of_runs["paired"]["difference"]);
    // a figure of another methodology is another figure
    let mut later: Value =
        serde_json::from_str(&fs::read_to_string(bench.path().join("other/report.json")).expect("is there"))
            .expect("JSON");
    later["dataset"]["methodology"] = json!(2);
    fs::write(bench.path().join("other/report.json"), later.to_string()).expect("is written");
    let refused = bench.run(["compare", "got", "other", "--json"]).expect_code(5).json();
    assert!(
        refused["reasons"][0].as_str().is_some_and(|why| why.contains("(version 1, then 2)")),
        "{}",
        refused["reasons"]
    );
    let site = bench.run([&["site", "pages", "--json"], &at[..]].concat()).expect_code(0).json();
    assert_eq!(site["left_out"], json!([]), "{site:#}");
    // and nothing is rebuilt of it
    let refused = bench.run([&["archive", "fetch", "first", "--restore"], &at[..]].concat()).expect_code(2);
    assert!(refused.stderr.contains("nothing can be rebuilt of it"), "{}", refused.stderr);
    // what is archived is never changed
    let whole = bench.run([&["archive", "push", "first", "--texts", "always"], &at[..]].concat()).expect_code(0);
    assert!(whole.stderr.contains("is there already without its texts"), "{}", whole.stderr);
    let own = bench.run(["archive", "push", "first", "--archive", "private"]).expect_code(0);
    assert!(!own.stderr.contains("without the texts"), "{}", own.stderr);
    let _ = bench.run([&["archive", "push", "first", "--texts", "some"], &at[..]].concat()).expect_code(2);
}

#[test]
fn texts_of_a_dataset_without_a_licence_stay_here_unless_they_are_asked_for() {
    let bench = Bench::new();
    let folder = bench.path().join("chats");
    beam::write(&folder, &[vec![2, 2, 2]]).expect("can be written");
    let chats = folder.to_str().expect("a path");
    let submit =
        ["submit", "--dataset", "beam", "--dataset-path", chats, "--allow-modified-dataset", "--preset", "full"];
    let run = ["--scenario", "retrieve-only", "--latency-probe", "off", "--run-id", "chats", "--json"];
    let done = bench.run([&submit[..], &run].concat());
    assert!([0, 5].contains(&done.code), "{}", done.stderr);
    let push = bench.run(["archive", "push", "chats", "--archive", "kept"]).expect_code(0);
    assert!(push.stderr.contains("the authors of beam@100k state no licence"), "{}", push.stderr);
    let listed = bench.run(["archive", "list", "--json", "--archive", "kept"]).expect_code(0).json();
    assert!(listed[0]["without_texts"].as_str().is_some_and(|why| why.contains("no licence")), "{listed}");
    let texts = texts(&bench, "chats");
    let archived = unpacked(&bench.path().join("kept"));
    assert!(!texts.is_empty() && archived.values().all(|content| texts.iter().all(|text| !content.contains(text))));
    // an archive that nobody else reads has them, by a flag or by a setting
    for (place, args) in [("one", &["--texts", "always"][..]), ("two", &["--set", "archive.texts=always"])] {
        let push = bench.run([&["archive", "push", "chats", "--archive", place], args].concat()).expect_code(0);
        assert!(!push.stderr.contains("without the texts"), "{}", push.stderr);
        let _ = Bench::new()
            .run([
                "archive",
                "fetch",
                "chats",
                "--restore",
                "--archive",
                &bench.path().join(place).display().to_string(),
            ])
            .expect_code(0);
    }
    let shown = bench.run(["datasets", "show", "beam"]).expect_code(0).stdout;
    assert!(shown.contains("methodology version 1; its texts stay out of archives"), "{shown}");
}

/// The documents of matrices in an archive.
fn documents(archive: &Path) -> Vec<PathBuf> {
    let all = unpacked(&archive.join("matrices"));
    all.into_keys().map(PathBuf::from).collect()
}

#[test]
fn a_matrix_is_archived_as_one_document_with_all_of_its_cells() {
    let bench = Bench::new().with_env("BENCH_ARCHIVE_URL", "kept");
    let line = ["--preset", "quick", "--latency-probe", "off", "--system", "bm25,random", "--run-id", "grid"];
    let report = bench.run([&submit_sim(&line)[..], &["--display", "none"]].concat()).expect_code(0);
    assert!(report.stderr.contains("results-matrix-"), "{}", report.stderr);
    let report = report.json();
    let found = documents(&bench.path().join("kept"));
    let [document] = found.as_slice() else { panic!("one document: {found:?}") };
    let told: Value = serde_json::from_str(&fs::read_to_string(document).expect("readable")).expect("JSON");
    let date = told["date"].as_str().expect("a day");
    assert!(document.ends_with(format!("matrices/{date}/grid/results-matrix-{date}.json")), "{}", document.display());
    assert_eq!(told["report"]["cells"], report["cells"]);
    for (run, folder) in told["runs"].as_object().expect("runs") {
        let folder = bench.path().join("kept").join(folder.as_str().expect("a folder"));
        assert!(folder.join("manifest.json").exists(), "{run}: {}", folder.display());
    }
    // both runs of this day lie side by side, and pushed again everything is there once
    let again = bench.run(["archive", "push", "grid"]).expect_code(0).stdout;
    assert_eq!(again.lines().count(), 3, "{again}");
    assert_eq!(documents(&bench.path().join("kept")), found);
    let listed = bench.run(["archive", "list", "--json"]).expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    // it is fetched as a whole, and can be restored run by run
    let kept = bench.path().join("kept").display().to_string();
    let elsewhere = Bench::new();
    let fetch = ["archive", "fetch", "grid", "--archive", &kept, "--json"];
    let fetched = elsewhere.run(fetch.iter().chain(&["--output-dir", "got", "--restore"])).expect_code(0);
    crate::printed::held::<Fetched>(&fetched.json());
    let got = |file: &str| elsewhere.path().join("got").join(file);
    let there: Value = serde_json::from_str(&fs::read_to_string(got("report.json")).expect("is there")).expect("JSON");
    assert_eq!(there["cells"], report["cells"]);
    assert!(got("report.html").exists() && got("grid-c2-r1/questions.jsonl").exists(), "{}", fetched.stderr);
    let restored = elsewhere.run(["report", "grid-c1-r1", "--json"]).expect_code(0).json();
    assert_eq!(restored["result_digest"], bench.report("grid-c1-r1")["result_digest"]);
    // a matrix that has grown has another document
    let more = ["--preset", "quick", "--latency-probe", "off", "--system", "bm25,random,none", "--run-id", "grid"];
    let grown = bench.run([&submit_sim(&more)[..], &["--display", "none"]].concat());
    assert!([0, 5].contains(&grown.code), "{}", grown.stderr);
    assert_eq!(documents(&bench.path().join("kept")).len(), 2);
    let newest = elsewhere.run(fetch).expect_code(0).json();
    let of =
        |run: &str| newest["files"].as_array().is_some_and(|all| all.contains(&json!(format!("../{run}/report.json"))));
    assert!(of("grid-c3-r1") && newest["restored"] == false, "{newest}");
    // a figure that is not that of its runs, and a document that was cut, are found and named
    let _ = bench.run(["archive", "verify"]).expect_code(0);
    let newest = documents(&bench.path().join("kept")).pop().expect("a document");
    let text = fs::read_to_string(&newest).expect("readable");
    let mut told: Value = serde_json::from_str(&text).expect("JSON");
    told["report"]["cells"][0]["value"] = json!(0.99);
    for damaged in [told.to_string(), text[..text.len() / 2].to_owned()] {
        for document in documents(&bench.path().join("kept")) {
            fs::write(document, &damaged).expect("writable");
        }
        let verified = bench.run(["archive", "verify"]).expect_code(5).stdout;
        assert!(verified.contains("DAMAGED"), "{verified}");
        let refused = Bench::new().run(fetch).expect_code(5).stderr;
        assert!(refused.contains("the document of matrix grid"), "{refused}");
    }
}

#[test]
fn the_document_of_a_matrix_that_could_not_be_written_is_brought_by_the_next_run() {
    let bench = Bench::new().with_env("BENCH_ARCHIVE_URL", "kept");
    let archive = bench.path().join("kept");
    fs::create_dir(&archive).expect("can be made");
    // runs find their place there, documents of matrices do not
    let blocked = archive.join("matrices");
    fs::write(&blocked, "").expect("writable");
    let line = ["--preset", "quick", "--latency-probe", "off", "--display", "none"];
    let grid = [&line[..], &["--system", "bm25,random", "--run-id", "grid"]].concat();
    let told = bench.run(submit_sim(&grid)).expect_code(0).stderr;
    assert!(told.contains("not archived yet") && told.contains("archive push grid"), "{told}");
    let listed = || bench.run(["archive", "list", "--json"]).expect_code(0).json();
    assert_eq!(listed().as_array().map(Vec::len), Some(2), "{told}");
    fs::remove_file(&blocked).expect("removable");
    // figures of a result that is not there are no part of a document: it would not agree with its runs
    let of_first = |name: &String| name.ends_with("grid-c1-r1/manifest.json");
    let manifest = unpacked(&archive.join("runs")).into_keys().find(of_first).expect("is there");
    let sound = fs::read_to_string(&manifest).expect("readable");
    let mut other: Value = serde_json::from_str(&sound).expect("JSON");
    other["result_digest"] = json!("f".repeat(64));
    fs::write(&manifest, other.to_string()).expect("writable");
    let refused = bench.run(["archive", "push"]).expect_code(2).stderr;
    assert!(refused.contains("matrix grid: another result of this id is archived as"), "{refused}");
    assert!(!blocked.exists(), "no document is written");
    fs::write(&manifest, sound).expect("writable");
    let _ = bench.run(submit_sim(&[&line[..], &["--run-id", "next"]].concat())).expect_code(0);
    let found = documents(&archive);
    assert_eq!(found.len(), 1, "{found:?}");
    // it is noted, and neither another push nor the matrix itself, gone on with, has anything to bring
    let nothing = bench.run(["archive", "push"]).expect_code(0);
    assert_eq!((nothing.stdout.trim(), documents(&archive)), ("", found.clone()));
    let again = bench.run(["resume", "grid", "--display", "none"]);
    assert!(!again.stderr.contains("results-matrix-"), "{}", again.stderr);
    // another archive has neither runs nor document, and gets both
    let other = bench.run(["archive", "push", "--archive", "other"]).expect_code(0);
    assert_eq!(other.stdout.lines().count(), 4, "{}", other.stdout);
    assert_eq!(documents(&bench.path().join("other")).len(), 1);
}
