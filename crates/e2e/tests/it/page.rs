//! `report.html` in a real Chromium: opened, searched, filtered, clicked, and looked at.

use bench_testkit::{
    bench::Bench,
    browser::{document_after, picture_after, printed_after},
};
use serde_json::{Value, json};

/// Works on the page as a person does and leaves what it saw in `#seen`.
const VISIT: &str = include_str!("page_visit.js");

/// What [`VISIT`] saw.
fn seen(document: &str) -> Value {
    let start = document.rfind("<pre id=\"seen\">").unwrap_or_else(|| panic!("the visit did not end")) + 15;
    let end = document[start..].find("</pre>").expect("closed") + start;
    let text =
        document[start..end].replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_person_finds_what_went_wrong() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "fair", "--display", "none"];
    let _ = bench.run(submit.iter().chain(&["--run-id", "before"])).expect_code(0);
    let _ = bench.run(submit.iter().chain(&["--run-id", "after", "--top-k", "3"])).expect_code(0);
    let args = ["report", "after", "--format", "html", "--baseline", "before", "--output-dir", "out"];
    let _ = bench.run(args).expect_code(0);
    for name in ["report.html", "categories.svg", "latency.svg", "comparison.svg"] {
        assert!(bench.path().join("out").join(name).exists(), "{name}");
    }
    let page = bench.path().join("out/report.html");
    let seen = seen(&document_after(&page, VISIT));
    assert_eq!(seen["error"], Value::Null, "{seen}");
    assert_eq!((&seen["network"], &seen["markup"]), (&json!(0), &json!(0)), "{seen}");
    assert_eq!(
        (&seen["rows"], &seen["more"], &seen["shown"]),
        (&json!(100), &json!(200), &json!("200 of 200")),
        "{seen}"
    );
    assert!(seen["plots"].as_u64() >= Some(3) && seen["cards"].as_u64() >= Some(5), "{seen}");
    assert!(seen["found"].as_u64().is_some_and(|n| (1..20).contains(&n)), "{seen}");
    assert!(seen["temporal"].as_str().is_some_and(|text| text.ends_with(" of 200") && text != "200 of 200"), "{seen}");
    assert!(seen["failed"].as_u64() > Some(0) && seen["passing"] == 0, "{seen}");
    assert_eq!(
        (&seen["detail"], &seen["expanded"], &seen["collapsed"]),
        (&json!(true), &json!("true"), &json!(0)),
        "{seen}"
    );
    assert_eq!((&seen["evidence"], &seen["bars"]), (&json!(true), &json!(true)), "{seen}");
    assert_eq!((&seen["slash"], &seen["walked"]), (&json!("search"), &json!(1)), "{seen}");
    assert_eq!(
        (&seen["closed"], &seen["beyond"], &seen["after_more"]),
        (&json!(true), &json!([200, 100]), &json!(100)),
        "{seen}"
    );
    assert_eq!(seen["themes"], json!(["dark", "light"]), "{seen}");

    // the pictures of the README: taken anew with BENCH_BLESS=1, and always looked at for being pictures
    for theme in ["light", "dark"] {
        let script = format!(
            "document.documentElement.dataset.theme = '{theme}'; document.querySelectorAll('#list .row')[1].click();"
        );
        let picture = bench.path().join(format!("report-{theme}.png"));
        picture_after(&page, &script, 1180, 620, &picture);
        let bytes = std::fs::read(&picture).expect("was taken");
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 40_000, "{theme}: {} bytes", bytes.len());
        if std::env::var_os("BENCH_BLESS").is_some() {
            let kept = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures"));
            std::fs::create_dir_all(kept).expect("writable");
            std::fs::copy(&picture, kept.join(format!("report-{theme}.png"))).expect("writable");
        }
    }
}

#[test]
fn what_models_and_datasets_say_is_never_markup() {
    let bench = Bench::new();
    let _ = bench
        .run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "own"])
        .expect_code(0);
    let nasty = "</script><img src=x onerror=alert(1)><script>document.title='owned'</script>";
    let lines: String = bench
        .questions("own")
        .iter()
        .enumerate()
        .map(|(i, q)| {
            format!("{}\n", json!({"question_id": q["question_id"], "answer": format!("{nasty} {i}"), "score": 0}))
        })
        .collect();
    std::fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "nasty"];
    let _ = bench.run(import.iter().chain(&["--name", nasty])).expect_code(0);
    let page = bench.path().join(".bench/runs/nasty/report.html");
    let script = format!(
        "document.querySelectorAll('#list .row').forEach((row) => row.click()); {}",
        "const box = document.createElement('pre'); box.id = 'seen'; \
         box.textContent = JSON.stringify({images: document.querySelectorAll('img').length, owned: document.title === 'owned', \
         shown: document.querySelector('.detail dl').textContent.includes('onerror')}); document.body.append(box);"
    );
    let seen = seen(&document_after(&page, &script));
    assert_eq!(seen, json!({"images": 0, "owned": false, "shown": true}));
}

#[test]
fn on_paper_it_is_light_and_nothing_is_cut_off() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "run"];
    let _ = bench.run(submit).expect_code(0);
    let page = bench.path().join(".bench/runs/run/report.html");
    // a dark screen, with two questions open
    let script = "document.documentElement.dataset.theme = 'dark'; [...document.querySelectorAll('#list .row')].slice(0, 2).forEach((row) => row.click());";
    let printed = printed_after(&page, script);
    assert!(printed.light > 0.8, "{} of the first sheet is as light as paper", printed.light);
    let text = printed.sheets.concat();
    let percent = |value: &Value| format!("{:.2} %", value.as_f64().expect("a number") * 100.0);
    let report = bench.report("run");
    assert!(printed.sheets[0].contains(&percent(&report["headline"]["value"])), "{}", printed.sheets[0]);
    for said in ["95 % interval", "All figures", "50 of 50 questions", &percent(&report["scores"][0]["macro"])] {
        assert!(text.contains(said), "{said} is not printed:\n{text}");
    }
    let rows =
        bench.questions("run").iter().filter(|q| text.contains(q["question_id"].as_str().expect("an id"))).count();
    assert_eq!(rows, 50, "every question has its row");
    for unused in ["search questions", "show more", "all outcomes"] {
        assert!(!text.contains(unused), "{unused} is of no use on paper");
    }
}
