//! Nobody is kept from using the pages: axe-core finds nothing on them, on a wide screen and on a narrow one, light and dark.

use std::path::Path;

use bench_testkit::{
    bench::Bench,
    browser::{Visit, told_after},
    python,
};

/// What axe finds, as one line each, minor or not.
fn faults(page: &Path, width: u32, before: &str, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe};
        const found = [];
        for (const theme of ['light', 'dark']) {{
          document.documentElement.dataset.theme = theme;
          {before}
          const result = await axe.run(document, {{ resultTypes: ['violations'] }});
          found.push(...result.violations.flatMap((one) => one.nodes.map((node) =>
            `${{theme}} ${{one.impact}} ${{one.id}}: ${{node.html.slice(0, 200)}} ${{node.failureSummary}}`)));
          if (result.passes.length + result.violations.length < 10) found.push('axe has looked at nothing');
        }}
        return found;"
    );
    let told = told_after(page, Visit { width, ..Visit::default() }, &script);
    serde_json::from_value(told.clone()).unwrap_or_else(|_| panic!("{told}"))
}

/// Opens the groups of the page of runs.
const OPEN_GROUPS: &str = "document.querySelectorAll('.fold[aria-expanded=false]').forEach((fold) => fold.click()); \
                           if (!document.querySelector('.members:not([hidden])')) found.push('no group is open');";

/// Opens all that is folded, in rows and within them.
const OPEN: &str = "document.querySelectorAll('#list .row[aria-expanded=false]').forEach((row, i) => { if (i < 12) row.click(); }); \
                    document.querySelectorAll('details').forEach((fold) => { fold.open = true; });";

#[test]
fn axe_finds_no_fault_on_any_page() {
    let axe = python::axe();
    let bench = Bench::new();
    // every kind of row, and few of each: what is looked at grows with the page
    let submit = ["submit", "--dataset", "locomo-sim", "--sample", "30", "--display", "none", "--max-cost", "1"];
    let judged = ["--answerer", "fake", "--judge", "fake", "--controls"];
    for run in [&["--run-id", "before"][..], &["--run-id", "after", "--top-k", "1"]] {
        let done = bench.run(submit.iter().chain(run).chain(&judged));
        // so few questions do not show that the score depends on memory, and the page says so too
        assert!(matches!(done.code, 0 | 5), "{}", done.stderr);
    }
    let group = ["--run-id", "group", "--repeats", "2", "--latency-probe", "off"];
    let done = bench.run(submit.iter().chain(&group));
    assert!(matches!(done.code, 0 | 5), "{}", done.stderr);
    let report = ["report", "after", "--format", "html", "--baseline", "before", "--output-dir", "out"];
    let _ = bench.run(report).expect_code(0);
    let two = bench.run(["compare", "before", "after", "--format", "html", "--output", "out/two.html"]);
    assert!(matches!(two.code, 0 | 1 | 5), "{}", two.stderr);
    let _ = bench.run(["report", "--index", "--output", "out/runs.html"]).expect_code(0);
    let short = ["--rate", "5", "--seconds", "1", "--warm-up", "0", "--drain", "1", "--banks", "1", "--bank-size", "5"];
    let _ = bench.run(["load", "bm25", "--output-dir", "out"].iter().chain(&short)).expect_code(0);
    // this page has no script, and lets nobody run one: axe looks at a copy that does
    let load = bench.path().join("out/load.html");
    let text = std::fs::read_to_string(&load).expect("a page").replace("default-src 'none'; ", "");
    std::fs::write(&load, text).expect("writable");
    for (page, before) in
        [("report.html", OPEN), ("two.html", OPEN), ("runs.html", ""), ("runs.html", OPEN_GROUPS), ("load.html", "")]
    {
        for width in [1280, 500] {
            let found = faults(&bench.path().join("out").join(page), width, before, &axe);
            assert!(found.is_empty(), "{page}, {width} pixels: {found:#?}");
        }
    }
}
