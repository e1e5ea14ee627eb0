//! `site DIR`: pages of an archive in a real browser, from files alone.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use bench_testkit::{
    bench::{Bench, submit_sim},
    browser::walk,
};
use serde_json::{Value, json};

use crate::printed::{held, pages::Site};

const NASTY: &str = "</td><img src=x onerror=alert(1)>";

/// All files below a folder with what they hold.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).expect("readable");
            found.insert(path, content);
        }
    }
    found
}

/// The links of a page.
fn links(html: &str) -> Vec<&str> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// An archive with two systems, one of them measured twice, and answers that somebody else has made.
fn archived() -> Bench {
    let bench = Bench::new().with_env("BENCH_ARCHIVE_URL", "kept");
    for (run, system) in [("first", "bm25"), ("again", "bm25"), ("chance", "random")] {
        let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", run, "--system", system])).expect_code(0);
    }
    let line = |question: &Value| {
        let answer = question["gold"].as_str().unwrap_or("not mentioned");
        format!("{}\n", json!({"question_id": question["question_id"], "answer": answer}))
    };
    let lines: String = bench.questions("first").iter().map(line).collect();
    fs::write(bench.path().join("theirs.jsonl"), lines).expect("is written");
    let import =
        ["import", "--dataset", "locomo-sim", "--preset", "quick", "--answers", "theirs.jsonl", "--run-id", "theirs"];
    let _ = bench.run(import.iter().chain(&["--name", NASTY])).expect_code(0);
    let _ = bench.run(["archive", "push", "theirs"]).expect_code(0);
    bench
}

/// Through all kinds of pages, as a person goes who follows links.
const WALK: &str = r##"const seen = { requests: 0, images: 0, scripts: 0, titles: [] };
  const look = (page) => { seen.titles.push(page.querySelector("h1").textContent);
    seen.requests += view().performance.getEntriesByType("resource").length;
    seen.images += page.querySelectorAll("img").length; seen.scripts += page.querySelectorAll("script").length; return page; };
  const link = (page, words) => [...page.querySelectorAll("a")].find((a) => a.textContent === words);
  let page = look(await open("index.html"));
  page = look(await follow(link(page, "locomo-sim")));
  const rows = [...page.querySelectorAll("table")[0].tBodies[0].rows];
  const said = (cell) => (cell.querySelector("a") || cell).textContent;
  seen.rows = rows.map((row) => [0, 1, 10].map((at) => said(row.cells[at])));
  seen.folded = rows.map((row) => [...row.querySelectorAll("details")].map((fold) => [fold.open, fold.textContent]));
  seen.dots = [...page.querySelectorAll("svg circle")].map((dot) => dot.getAttribute("class"));
  seen.drawn = page.querySelector("svg circle").getBoundingClientRect().width > 0;
  seen.wide = page.documentElement.scrollWidth <= view().innerWidth;
  seen.text = page.body.textContent;
  const pair = look(await follow(link(page, "bm25 against random")));
  seen.pair = pair.body.textContent;
  seen.whiskers = pair.querySelectorAll("svg line.whisker").length;
  const run = look(await follow(link(pair, "second: bm25")));
  seen.run = run.body.textContent;
  look(await follow(link(run, "all datasets")));
  return seen;"##;

#[test]
fn pages_of_an_archive_open_in_a_browser_from_files_alone() {
    let bench = archived();
    let made = bench.run(["site", "pages", "--published", "--json"]).expect_code(0);
    let site = made.json();
    held::<Site>(&site);
    assert!(made.stderr.contains("1 dataset, 3 results, 3 pairs"), "{}", made.stderr);
    let folder = bench.path().join("pages");
    let written: Value = serde_json::from_slice(&fs::read(folder.join("site.json")).expect("is there")).expect("JSON");
    assert_eq!(written, site);
    let table = &site["datasets"][0]["tables"][0];
    let rows = table["rows"].as_array().expect("rows");
    let told: Vec<Value> = rows.iter().map(|row| json!([row["rank"], row["run"]])).collect();
    assert_eq!(
        told,
        [json!([1, "again"]), json!([2, "chance"]), json!([null, "theirs"])],
        "the newest of two: {site:#}"
    );
    let bm25 = bench.report("again");
    assert_eq!((&rows[0]["score"], &rows[0]["result_digest"]), (&bm25["headline"]["value"], &bm25["result_digest"]));
    let compared = bench.run(["compare", "chance", "again", "--json"]).expect_code(0).json();
    assert_eq!(table["pairs"][0]["difference"], compared["paired"]["difference"]);

    let walked = walk(&folder.join("index.html"), WALK);
    let seen = &walked.told;
    assert_eq!(walked.console, Vec::<String>::new(), "the browser complains");
    assert_eq!((&seen["requests"], &seen["images"], &seen["scripts"]), (&json!(0), &json!(0), &json!(0)), "{seen:#}");
    let titles = json!(["Results on 1 dataset", "locomo-sim: results", "bm25 against random"]);
    assert_eq!(seen["titles"].as_array().map(|titles| json!(titles[..3])), Some(titles), "{seen:#}");
    assert_eq!(seen["titles"][4], "Results on 1 dataset", "the way back: {seen:#}");
    assert_eq!(
        (&seen["rows"][0], &seen["rows"][1]),
        (&json!(["1", "bm25", ""]), &json!(["2", "random", ""])),
        "{seen:#}"
    );
    assert_eq!(seen["rows"][2][0], "– unverified");
    // the newest of two stands for both, and tells of the other when it is opened
    let folded = seen["folded"][0][0][1].as_str().expect("a line that opens");
    for words in ["one of 2 runs", "mean of 2 VALID runs", "all have the same score", "first: "] {
        assert!(folded.contains(words), "'{words}' is missing in {folded}");
    }
    assert_eq!((&seen["folded"][0][0][0], &seen["folded"][1]), (&json!(false), &json!([])), "{seen:#}");
    let same = &rows[0]["same_settings"];
    assert_eq!(
        (&same["valid"], &same["mean"], &same["others"][0]["run"]),
        (&json!(2), &rows[0]["score"], &json!("first"))
    );
    assert_eq!(seen["dots"], json!(["bar", "bar", "open"]), "{seen:#}");
    assert_eq!((&seen["drawn"], &seen["wide"]), (&json!(true), &json!(true)), "{seen:#}");
    assert!(seen["pair"].as_str().is_some_and(|text| text.contains("BETTER") && text.contains("Flips")), "{seen:#}");
    assert!(seen["whiskers"].as_u64().is_some_and(|whiskers| whiskers > 1), "{seen:#}");
    let digest = bm25["result_digest"].as_str().expect("a digest");
    assert!(seen["run"].as_str().is_some_and(|text| text.contains(digest)), "{seen:#}");
}

#[test]
fn every_link_leads_to_a_page_no_question_is_told_and_a_second_time_makes_the_same_bytes() {
    let bench = archived();
    let first = bench.run(["site", "pages"]).expect_code(0);
    assert_eq!(first.stdout.trim(), "pages/index.html");
    let folder = bench.path().join("pages");
    let before = files(&folder);
    let questions: Vec<String> =
        bench.questions("first").iter().map(|of| of["question"].as_str().expect("text").to_owned()).collect();
    assert!(questions.len() == 50 && before.len() == 1 + 1 + 1 + 3 + 3, "{:?}", before.keys());
    for (path, content) in before.iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "html")) {
        let html = String::from_utf8_lossy(content);
        for link in links(&html) {
            assert!(path.with_file_name(link).is_file(), "{link} of {} leads nowhere", path.display());
        }
        assert!(!html.contains("<img") && !html.contains("http-equiv=\"refresh"), "{}", path.display());
        let told = questions.iter().find(|question| html.contains(question.as_str()));
        assert_eq!(told, None, "{} holds a question", path.display());
    }
    // a page that is no longer made goes, what is somebody else's stays
    fs::write(folder.join("runs/old.html"), "old").expect("is written");
    fs::write(folder.join("CNAME"), "example.org").expect("is written");
    let _ = bench.run(["site", "pages", "--archive", "kept"]).expect_code(0);
    let mut after = files(&folder);
    assert_eq!(after.remove(&folder.join("CNAME")), Some(b"example.org".to_vec()));
    assert_eq!(after, before);
}

#[test]
fn a_folder_of_somebody_else_and_an_archive_without_runs_are_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("theirs")).expect("is made");
    fs::create_dir(bench.path().join("empty")).expect("is made");
    fs::write(bench.path().join("theirs/index.html"), "theirs").expect("is written");
    let refused = |args: &[&str], why: &str| {
        let error = bench.run([&["site"], args].concat()).expect_code(2).stderr;
        assert!(error.contains(why), "{args:?}: {error}");
    };
    refused(&["pages"], "no archive: give --archive URL");
    refused(&["pages", "--archive", "nowhere"], "there is no archive nowhere");
    refused(&["pages", "--archive", "empty"], "holds no run: `bench-coord archive push --archive");
    refused(&["theirs", "--archive", "empty"], "theirs: holds other files and no site.json of a site");
    assert!(!bench.path().join("pages").exists() && !bench.path().join(".bench").exists(), "nothing is made");
    assert_eq!(fs::read(bench.path().join("theirs/index.html")).expect("is there"), b"theirs");
}
