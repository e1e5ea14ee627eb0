//! `report --index`: the page of all runs of a store, and the same as JSON.

use bench_testkit::{
    bench::Bench,
    browser::{Visit, told_after},
};
use serde_json::{Value, json};

fn submit(bench: &Bench, flags: &[&str]) {
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none"];
    let _ = bench.run(submit.iter().chain(flags)).expect_code(0);
}

#[test]
fn all_runs_stand_on_one_page_that_is_filtered_sorted_and_leads_to_their_pages() {
    let bench = Bench::new();
    let nasty = "</td><img src=x onerror=alert(1)>";
    submit(&bench, &["--run-id", "one", "--name", nasty]);
    submit(&bench, &["--run-id", "two", "--system", "random"]);
    submit(&bench, &["--run-id", "three", "--system", "none", "--limit", "10"]);
    std::fs::remove_dir_all(bench.path().join(".bench/runs/three")).expect("its files go");

    let listed = bench.run(["report", "--index", "--json"]).expect_code(0).json();
    let plain = bench.run(["list", "--json"]).expect_code(0).json();
    let (listed, plain) = (listed.as_array().expect("a list"), plain.as_array().expect("a list"));
    assert_eq!((listed.len(), plain.len()), (3, 3));
    for (run, plain) in listed.iter().zip(plain) {
        let mut run = run.as_object().expect("an object").clone();
        let page = run.remove("page").expect("says whether there is a page");
        assert_eq!(&Value::Object(run), plain);
        assert_eq!(page.is_null(), plain["id"] == "three", "{page}");
    }
    assert!(!bench.path().join(".bench/runs/index.html").exists(), "JSON alone writes nothing");

    let done = bench.run(["report", "--index"]).expect_code(0);
    assert!(done.stderr.contains("3 runs: ") && done.stderr.contains("index.html"), "{}", done.stderr);
    let _ = bench.run(["report", "--index", "--output", "elsewhere/all runs.html"]).expect_code(0);
    for page in [".bench/runs/index.html", "elsewhere/all runs.html"] {
        let page = bench.path().join(page);
        let seen = told_after(
            &page,
            Visit::default(),
            r##"const wait = (ms) => new Promise((done) => setTimeout(done, ms));
            const byId = (id) => document.getElementById(id);
            const rows = () => [...byId("runs").tBodies[0].rows].filter((row) => !row.hidden);
            const column = (name) => [...byId("runs").tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
            const texts = (name) => rows().map((row) => row.cells[column(name)].textContent);
            const sort = (name) => byId("runs").tHead.rows[0].cells[column(name)].firstChild.click();
            const seen = { images: document.querySelectorAll("img").length, rows: rows().length, names: texts("run") };
            seen.links = [...byId("runs").querySelectorAll("a")].map((a) => decodeURIComponent(new URL(a.href).pathname));
            sort("score");
            seen.down = texts("score").map(parseFloat);
            sort("score");
            seen.up = texts("score").map(parseFloat);
            sort("system");
            seen.systems = texts("system");
            seen.sorted = byId("runs").querySelector("th[aria-sort]").textContent;
            const system = document.querySelector("select[aria-label='all systems']");
            system.value = "random";
            system.dispatchEvent(new Event("change"));
            seen.chosen = [byId("shown").textContent, texts("system"), texts("verdict"), texts("95 %")];
            byId("reset").click();
            await wait(50);
            byId("search").value = "ONERROR bm25";
            byId("search").dispatchEvent(new Event("input"));
            seen.found = texts("run");
            return seen;"##,
        );
        assert_eq!((&seen["images"], &seen["rows"]), (&json!(0), &json!(3)), "{seen}");
        assert!(seen["names"].to_string().contains("onerror"), "a name is text: {seen}");
        let links = seen["links"].as_array().expect("links");
        assert_eq!(links.len(), 2, "three has no page: {seen}");
        for link in links {
            assert!(std::path::Path::new(link.as_str().expect("a path")).is_file(), "{link} leads nowhere");
        }
        let figures = |key: &str| -> Vec<f64> { serde_json::from_value(seen[key].clone()).expect("figures") };
        assert!(figures("up").is_sorted() && figures("down").iter().rev().is_sorted(), "{seen}");
        assert_eq!((&seen["systems"], &seen["sorted"]), (&json!(["bm25", "none", "random"]), &json!("system")));
        let chosen = &seen["chosen"];
        assert_eq!((&chosen[0], &chosen[1], &chosen[2]), (&json!("1 of 3"), &json!(["random"]), &json!(["VALID"])));
        assert!(chosen[3][0].as_str().is_some_and(|interval| interval.contains(" to ")), "{seen}");
        assert!(seen["found"].as_array().is_some_and(|found| found.len() == 1), "{seen}");
    }
}

#[test]
fn where_there_is_no_run_there_is_no_page_and_what_makes_no_sense_is_refused() {
    let bench = Bench::new();
    let nothing = bench.run(["report", "--index"]).expect_code(0);
    assert!(nothing.stderr.contains("no runs in"), "{}", nothing.stderr);
    assert!(!bench.path().join(".bench").exists(), "who looks makes no home");
    assert_eq!(bench.run(["report", "--index", "--json"]).expect_code(0).json(), json!([]));
    for words in
        [&["report"][..], &["report", "x", "--index"], &["report", "x", "--output", "f"], &["report", "x", "--json"]]
    {
        let _ = bench.run(words).expect_code(2);
    }
}
