//! `compare A B --format html`: the page of two runs, with both answers and both contexts of each flip.

use bench_testkit::{
    bench::Bench,
    browser::{Visit, told_after},
};
use serde_json::{Value, json};

fn two_runs() -> Bench {
    let bench = Bench::new();
    for (run, system) in [("before", "bm25"), ("after", "random")] {
        let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", run];
        let _ = bench.run(submit.iter().chain(&["--system", system])).expect_code(0);
    }
    bench
}

/// What a person sees of each flip.
const FLIPS: &str = r##"const byId = (id) => document.getElementById(id);
  const items = [...document.querySelectorAll("#list > li")];
  const value = (item, name) => [...item.querySelectorAll("dl > dt")].find((dt) => dt.textContent === name)?.nextElementSibling.textContent;
  return { title: document.querySelector("h1").textContent, verdict: document.querySelector(".verdict").textContent,
    claim: document.querySelector("figcaption").textContent, plots: document.querySelectorAll(".plots svg").length,
    text: document.querySelector("main").textContent, shown: byId("shown").textContent,
    images: document.querySelectorAll("img").length, network: performance.getEntriesByType("resource").length,
    owned: document.title === "owned", commands: document.querySelectorAll(".copy").length,
    flips: items.map((item) => ({ id: item.dataset.id, tags: [...item.querySelectorAll(".tag")].map((tag) => tag.textContent),
      before: value(item, "answer of before"), after: value(item, "answer of after"),
      contexts: [...item.querySelectorAll(".sides > div")].map((side) => side.querySelectorAll("li").length) })) };"##;

#[test]
fn each_flip_shows_both_answers_and_both_contexts() {
    let bench = two_runs();
    let compare = ["compare", "before", "after"];
    let compared = bench.run(compare.iter().chain(&["--json"])).expect_code(1).json();
    let page = ["--format", "html", "--output", "out/two.html"];
    let done = bench.run(compare.iter().chain(&page)).expect_code(1);
    assert!(done.stdout.is_empty() && done.stderr.contains("out/two.html"), "{} {}", done.stdout, done.stderr);
    let seen = told_after(&bench.path().join("out/two.html"), Visit::default(), FLIPS);
    assert_eq!((&seen["network"], &seen["images"], &seen["plots"]), (&json!(0), &json!(0), &json!(1)), "{seen}");
    assert_eq!((&seen["title"], &seen["verdict"]), (&json!("after against before"), &compared["verdict"]));
    assert!(seen["claim"].as_str().is_some_and(|claim| claim.contains("95 % interval")), "{}", seen["claim"]);
    let text = seen["text"].as_str().expect("a text");
    for category in compared["by_category"].as_array().expect("categories") {
        assert!(text.contains(category["category"].as_str().expect("a name")), "{category}");
    }
    for note in compared["notes"].as_array().expect("notes") {
        assert!(text.contains(note.as_str().expect("a note")), "{note}");
    }
    let (flips, expected) = (seen["flips"].as_array().expect("flips"), compared["flips"].as_array().expect("flips"));
    assert!(!expected.is_empty());
    assert_eq!(flips.len(), expected.len());
    let shown = |side: &Value| if side["answer"] == "" { json!("(empty)") } else { side["answer"].clone() };
    for (flip, expected) in flips.iter().zip(expected) {
        assert_eq!(flip["id"], expected["question_id"]);
        assert_eq!((&flip["before"], &flip["after"]), (&shown(&expected["a"]), &shown(&expected["b"])), "{flip}");
        assert!(flip["tags"].as_array().is_some_and(|tags| tags.contains(&expected["direction"])), "{flip}");
        assert!(
            flip["contexts"].as_array().is_some_and(|both| both.len() == 2 && both.iter().all(|n| *n != 0)),
            "{flip}"
        );
    }
    assert!(seen["commands"].as_u64() == Some(3 * flips.len() as u64), "{seen}");

    // fewer flips than there are, from folders, which are in no store
    let folders = ["compare", ".bench/runs/before", ".bench/runs/after", "--flips", "2"];
    let _ = bench.run(folders.iter().chain(&page)).expect_code(1);
    let few = told_after(&bench.path().join("out/two.html"), Visit::default(), FLIPS);
    assert_eq!((few["flips"].as_array().map(Vec::len), &few["commands"]), (Some(2), &json!(4)), "{few}");
    assert!(few["text"].as_str().is_some_and(|text| text.contains("--flips N lists more")), "{few}");
}

#[test]
fn a_comparison_is_written_in_each_form() {
    let bench = two_runs();
    for (format, begins) in [("md", "# after against before"), ("json", "{"), ("terminal", "after against before")] {
        let compare = ["compare", "before", "after", "--format", format];
        let printed = bench.run(compare).expect_code(1).stdout;
        assert!(printed.starts_with(begins), "{format}: {printed}");
        let _ = bench.run(compare.iter().chain(&["--output", "file"])).expect_code(1);
        let written = std::fs::read_to_string(bench.path().join("file")).expect("is there");
        assert_eq!(written.trim_end(), printed.trim_end(), "{format}");
    }
    let refused = bench.run(["compare", "before", "after", "before", "--format", "html"]).expect_code(2);
    assert!(refused.stderr.contains("shows two runs side by side, not 3"), "{}", refused.stderr);
    for wrong in [&["--format", "pdf"][..], &["--format", "md", "--json"], &["--output", "/proc/no/file"]] {
        let _ = bench.run(["compare", "before", "after"].iter().chain(wrong)).expect_code(2);
    }
}

#[test]
fn nothing_of_two_runs_is_markup() {
    let bench = Bench::new();
    let own = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "before"];
    let _ = bench.run(own).expect_code(0);
    let nasty = "</script><img src=x onerror=alert(1)><script>document.title='owned'</script>";
    let lines: String = bench
        .questions("before")
        .iter()
        .enumerate()
        .map(|(i, q)| format!("{}\n", json!({"question_id": q["question_id"], "answer": format!("{nasty} {i}")})))
        .collect();
    std::fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "after"];
    let _ = bench.run(import.iter().chain(&["--name", nasty])).expect_code(0);
    let page = ["compare", "before", "after", "--under-test", "all", "--format", "html", "--output", "two.html"];
    let done = bench.run(page);
    assert!(matches!(done.code, 1 | 5), "{} {}", done.code, done.stderr);
    let seen = told_after(&bench.path().join("two.html"), Visit::default(), FLIPS);
    assert_eq!((&seen["images"], &seen["owned"]), (&json!(0), &json!(false)), "{seen}");
    assert!(seen["text"].as_str().is_some_and(|text| text.contains("onerror")), "it is shown as text: {seen}");
    assert!(seen["flips"].as_array().is_some_and(|flips| !flips.is_empty()), "{seen}");
}
