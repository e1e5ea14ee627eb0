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
            const rows = () => [...byId("runs").tBodies].filter((body) => !body.hidden).flatMap((body) => [...body.rows]);
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

/// Opens a group, sorts, looks for what is in one of the groups, and looks for nothing any more.
const OPENING: &str = r##"const byId = (id) => document.getElementById(id);
    const rows = () => [...byId("runs").tBodies].filter((body) => !body.hidden)
      .flatMap((body) => [...body.rows]).filter((row) => !row.hidden);
    const column = (name) => [...byId("runs").tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
    const texts = (name) => rows().map((row) => row.cells[column(name)].textContent);
    const group = (id) => rows().find((row) => row.cells[0].textContent.includes(id) && row.querySelector(".fold"));
    const choose = (label, value) => {
      const select = document.querySelector(`select[aria-label='${label}']`);
      select.value = value;
      select.dispatchEvent(new Event("change"));
    };
    const g = group("noise (g)");
    const fold = g.querySelector(".fold");
    const seen = { title: document.querySelector("h1").textContent, folded: texts("run"), shown: byId("shown").textContent };
    seen.figures = ["score", "95 %", "cost", "system"].map((name) => g.cells[column(name)].textContent);
    seen.page = decodeURIComponent(new URL(g.querySelector("a").href).pathname);
    seen.said = [fold.textContent, fold.getAttribute("aria-expanded"), fold.hidden];
    fold.focus();
    seen.focused = document.activeElement === fold;
    fold.click();
    seen.opened = texts("run").filter((name) => name.includes("noise/"));
    seen.expanded = fold.getAttribute("aria-expanded");
    for (const name of ["run", "system", "score"]) {
      byId("runs").tHead.rows[0].cells[column(name)].firstChild.click();
      seen["sorted by " + name] = texts("run");
    }
    fold.click();
    seen.closed = texts("run").length;
    choose("all systems", "none");
    seen.sought = [byId("shown").textContent, texts("system")];
    byId("reset").click();
    await new Promise((done) => setTimeout(done, 50));
    seen.again = texts("run").length;
    return seen;"##;

/// A group of three repeats, a matrix of two runs, and a run alone.
fn with_groups() -> Bench {
    let bench = Bench::new();
    let group = ["--latency-probe", "off", "--run-id"];
    submit(&bench, &[&group[..], &["g", "--name", "noise", "--repeats", "3"]].concat());
    submit(&bench, &[&group[..], &["m", "--system", "bm25,none"]].concat());
    submit(&bench, &[&group[..], &["alone"]].concat());
    bench
}

#[test]
fn a_group_is_one_line_of_the_list_and_its_name_opens_it() {
    let bench = with_groups();
    let list = |words: &[&str]| bench.run([&["list"][..], words].concat()).expect_code(0).stdout;
    let all = list(&[]);
    assert_eq!(all.lines().count(), 4, "a header and three lines: {all}");
    for line in ["g (3 repeats)", "m (2 runs)", "mean of 3", "alone"] {
        assert!(all.contains(line), "'{line}' is missing in:\n{all}");
    }
    for named in ["g", "noise"] {
        let opened = list(&[named]);
        let ids = ["g-r1", "g-r2", "g-r3"];
        assert!(opened.lines().count() == 4 && ids.iter().all(|id| opened.contains(id)), "{named}: {opened}");
    }
    assert_eq!(list(&["g", "-n", "1"]).lines().count(), 2);
    assert!(list(&["alone"]).contains("alone"));
    let members = bench.run(["list", "m", "--json"]).expect_code(0).json();
    let told: Vec<_> = members.as_array().expect("a list").iter().map(|run| (&run["id"], &run["repeat_of"])).collect();
    assert_eq!(told, [(&json!("m-c1-r1"), &json!("m")), (&json!("m-c2-r1"), &json!("m"))]);
    let part = list(&["--system", "none"]);
    assert!(part.contains("m (1 of 2 runs)"), "what is not looked for is not counted as if it were: {part}");
    let nothing = bench.run(["list", "nothing"]).expect_code(2).stderr;
    assert!(nothing.contains("`bench-coord list` shows all"), "{nothing}");
}

#[test]
fn a_group_is_one_line_of_the_page_that_opens_with_its_mean_and_interval() {
    let bench = with_groups();
    let report = bench.run(["report", "g", "--json"]).expect_code(0).json();
    let percent = |figure: &Value| figure.as_f64().expect("a figure") * 100.0;
    let mean =
        format!("{:.2} % {}, mean of 3", percent(&report["mean"]["value"]), report["metric"].as_str().unwrap_or(""));
    let (low, high) = (percent(&report["mean"]["ci95"]["low"]), percent(&report["mean"]["ci95"]["high"]));
    let opened = bench.run(["list", "g", "--json"]).expect_code(0).json();
    let paid: f64 = opened.as_array().into_iter().flatten().filter_map(|run| run["usd"].as_f64()).sum();
    let cost = if paid > 0.0 { format!("${paid:.4}") } else { "$0".to_owned() };
    // with the report of the group in its folder, and from the store
    for from_store in [false, true] {
        if from_store {
            std::fs::remove_file(bench.path().join(".bench/runs/g/report.json")).expect("goes");
        }
        let done = bench.run(["report", "--index"]).expect_code(0);
        assert!(done.stderr.contains("6 runs: "), "{}", done.stderr);
        let page = bench.path().join(".bench/runs/index.html");
        let html = std::fs::read_to_string(&page).expect("a page");
        assert!(!html.contains("class=\"members\" hidden"), "without a script all runs are there to see");
        let seen = told_after(&page, Visit::default(), OPENING);
        assert_eq!((&seen["title"], &seen["shown"]), (&json!("6 runs"), &json!("6 of 6")), "{seen:#}");
        assert_eq!(seen["folded"].as_array().map(Vec::len), Some(3), "{seen:#}");
        assert_eq!(seen["figures"], json!([mean, format!("{low:.1} to {high:.1}"), cost, "bm25"]), "{seen:#}");
        let own = seen["page"].as_str().expect("a page");
        assert!(own.ends_with("/g/report.html") && std::path::Path::new(own).is_file(), "{seen:#}");
        assert_eq!((&seen["said"], &seen["focused"]), (&json!(["3 repeats", "false", false]), &json!(true)));
        assert_eq!((seen["opened"].as_array().map(Vec::len), &seen["expanded"]), (Some(3), &json!("true")), "{seen:#}");
        for order in ["run", "system", "score"] {
            let names: Vec<&str> =
                seen[format!("sorted by {order}")].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let place = names.iter().position(|name| name.contains("noise (g)")).expect("the group");
            assert_eq!(names.len(), 6, "{order}: {seen:#}");
            assert!(names[place + 1..place + 4].iter().all(|name| name.contains("noise/")), "{order}: {seen:#}");
        }
        assert_eq!((&seen["closed"], &seen["again"]), (&json!(3), &json!(3)), "{seen:#}");
        assert_eq!(
            seen["sought"],
            json!(["1 of 6", ["2 systems", "none"]]),
            "what is looked for is not folded: {seen:#}"
        );
    }
}
