//! LongMemEval from a file to a report, on a file of ours that has every quirk; judged in its authors' words; its answers as its
//! authors' programs read and write them.

use std::collections::BTreeMap;

use bench_proto::ids::Sha256Hash;
use bench_testkit::{
    bench::{Bench, Done},
    provider::Provider,
};
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/testdata/longmemeval/whole.json");
const DATASET: [&str; 5] = ["--dataset", "longmemeval", "--dataset-path", FILE, "--allow-modified-dataset"];
const KINDS: [&str; 5] = ["standard", "temporal", "update", "preference", "abstention"];
/// What the authors' prompt of the first kind has, made of `Q?`, `A` and `R`: the vectors `longmemeval_judge_prompts`.
const STANDARD: &str = "3f171ee316a15eb02a1ff6a6015d437bc63f1b20255fe4b29e951897ca8260d0";
const LABEL: &str = "official judge prompts (yes-anywhere)";

/// All questions with models as answerer and judge. In so small memories some recalls find nothing: the run is not valid.
fn judged(bench: &Bench, run: &str, more: &[&str]) -> Done {
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--max-cost", "5"];
    let fixed = ["--preset", "full", "--latency-probe", "off", "--display", "none", "--json", "--run-id", run];
    bench.run(["submit"].iter().chain(&DATASET).chain(&models).chain(&fixed).chain(more))
}

fn has_label(report: &Value) -> bool {
    report["labels"].as_array().expect("labels").contains(&json!(LABEL))
}

/// Writes prompts to a file of the bench; the answer is its path.
fn prompts(bench: &Bench, name: &str, texts: &BTreeMap<String, String>) -> String {
    let path = bench.path().join(name);
    std::fs::write(&path, json!(texts).to_string()).expect("writes");
    path.to_str().expect("a path").to_owned()
}

/// The checksum by which a prompt is known.
fn checksum(prompt: &str) -> String {
    let rendered = prompt.replace("{question}", "Q?").replace("{answer}", "A").replace("{response}", "R");
    Sha256Hash::of_bytes(rendered.as_bytes()).hex()
}

#[test]
fn a_file_with_every_quirk_runs_to_its_report() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "longmemeval", "--dataset-path", FILE, "--run-id", "r", "--json"];
    let refused = bench.run(submit).expect_code(2);
    assert!(refused.stderr.contains("is not the published longmemeval"), "{}", refused.stderr);
    let more = ["--allow-modified-dataset", "--preset", "full", "--system", "bm25", "--latency-probe", "off"];
    let report = bench.run(submit.iter().chain(&more)).json();
    assert_eq!((&report["outcomes"]["sample"], &report["outcomes"]["infra_error"]), (&json!(9), &json!(0)), "{report}");
    assert_eq!(report["dataset"]["modified"], true);
    let questions = bench.questions("r");
    let of = |id: &str| questions.iter().find(|line| line["question_id"] == id).expect("is there");
    let retrieved = |id: &str| {
        let hits = of(id)["retrieved"].as_array().expect("hits");
        hits.iter().map(|hit| hit["session_id"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(of("1a2b3c4d")["evidence"], json!(["S2:3"]));
    assert_eq!(of("1a2b3c4d")["original_sessions"], json!({"S2": "answer_5f6a7b8c"}));
    assert!(retrieved("1a2b3c4d").contains(&json!("S2")), "{:?}", retrieved("1a2b3c4d"));
    // asked of an empty memory, and answered so
    assert_eq!((&of("8192a3b4_abs")["outcome"], retrieved("8192a3b4_abs")), (&json!("abstained"), vec![]));
}

#[test]
fn other_words_than_the_authors_are_refused_with_both_checksums_before_anything_is_done() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let ours = |kind: &&str| ((*kind).to_owned(), format!("{kind}: {{question}} {{answer}} {{response}} yes or no?"));
    let texts: BTreeMap<String, String> = KINDS.iter().map(ours).collect();
    let file = prompts(&bench, "ours.json", &texts);
    let refused = judged(&bench, "refused", &["--judge-prompts", &file]).expect_code(2);
    let both = [&*checksum(&texts["standard"]), STANDARD, "its prompt 'standard'", "ours.json"];
    assert!(both.iter().all(|said| refused.stderr.contains(said)), "{both:?}: {}", refused.stderr);
    assert_eq!(bench.run(["status", "refused"]).code, 2, "no run was made");
    assert_eq!(provider.count("requests"), 0);

    // nor is a finished run judged again by them
    let done = judged(&bench, "done", &[]).json();
    assert!(!has_label(&done), "{}", done["labels"]);
    let paid = provider.count("requests");
    let again = ["rejudge", "done", "--judge", "openai:gpt-4o", "--judge-prompts", &file, "--run-id", "again"];
    let refused = bench.run(again).expect_code(2);
    assert!(both.iter().all(|said| refused.stderr.contains(said)), "{both:?}: {}", refused.stderr);
    assert_eq!(provider.count("requests"), paid);
    let elsewhere = ["submit", "--dataset", "locomo-sim", "--judge", "openai:gpt-4o", "--judge-prompts", &file];
    let elsewhere = bench.run(elsewhere).expect_code(2);
    assert!(elsewhere.stderr.contains("they are the prompts of longmemeval"), "{}", elsewhere.stderr);
}

/// The words are not in this repository: whoever has them names their file.
#[test]
fn the_authors_words_are_known_by_their_checksums_and_named_official() {
    let Some(path) = std::env::var_os("BENCH_OFFICIAL_PROMPTS") else {
        eprintln!("NOT TESTED with the authors' own prompts: BENCH_OFFICIAL_PROMPTS names no file (docs/GRADERS.md)");
        return;
    };
    let text = std::fs::read_to_string(path).expect("the file that was named is there");
    let mut texts: BTreeMap<String, String> = serde_json::from_str(&text).expect("an object of texts");
    assert_eq!(checksum(&texts["standard"]), STANDARD);
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let file = prompts(&bench, "theirs.json", &texts);
    let report = judged(&bench, "theirs", &["--judge-prompts", &file]).json();
    assert!(has_label(&report), "{}", report["labels"]);
    let params = &report["spec"]["judge_params"][0];
    assert_eq!((params["temperature"].as_f64(), params["max_completion_tokens"].as_u64()), (Some(0.0), Some(10)));
    for format in ["terminal", "md", "html"] {
        assert!(bench.run(["report", "theirs", "--format", format]).stdout.contains(LABEL), "{format}");
    }
    for question in bench.questions("theirs") {
        let judgement = &question["judgements"][0];
        let says_yes = judgement["raw"].as_str().expect("a reply").to_lowercase().contains("yes");
        assert_eq!(question["scores"]["judge"].as_f64(), Some(f64::from(u8::from(says_yes))), "{question}");
    }

    // what ours have judged is another grading, and comes to the same when their words judge it again
    let ours = judged(&bench, "ours", &[]).json();
    assert!(!has_label(&ours), "{}", ours["labels"]);
    assert_ne!(ours["run"]["fingerprint"], report["run"]["fingerprint"]);
    let rejudge =
        ["rejudge", "ours", "--judge", "openai:gpt-4o", "--judge-prompts", &file, "--run-id", "again", "--json"];
    let again = bench.run(rejudge).json();
    assert!(has_label(&again), "{}", again["labels"]);
    assert_eq!(again["result_digest"], report["result_digest"]);
    let compare = |more: &[&str]| {
        bench.run(["compare", "ours", "again", "--json"].iter().chain(more)).json()["reasons"].to_string()
    };
    assert!(compare(&[]).contains("the graders of 'judge' differ"), "{}", compare(&[]));
    let declared = compare(&["--under-test", "grading"]);
    assert!(!declared.contains("differ"), "their answers are the same: {declared}");

    // one letter more, and they are nobody's
    texts.entry("update".to_owned()).or_default().push('!');
    let spoiled = prompts(&bench, "spoiled.json", &texts);
    let refused = judged(&bench, "spoiled", &["--judge-prompts", &spoiled]).expect_code(2);
    let both = [&*checksum(&texts["update"]), "theirs has d4087fd4", "its prompt 'update'"];
    assert!(both.iter().all(|said| refused.stderr.contains(said)), "{both:?}: {}", refused.stderr);
}

/// Lines of a file by question.
fn by_question(lines: &str) -> BTreeMap<String, Value> {
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("each line is JSON");
        (line["question_id"].as_str().expect("an id").to_owned(), line)
    };
    lines.lines().map(line).collect()
}

/// `import` of a file of answers to the dataset of this test.
fn import(bench: &Bench, file: &str, run: &str, more: &[&str]) -> Done {
    let answers = ["--answers", file, "--system", "elsewhere", "--run-id", run, "--json"];
    bench.run(["import"].iter().chain(&DATASET).chain(&answers).chain(more))
}

#[test]
fn hypotheses_go_out_and_come_back() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let report = judged(&bench, "r", &[]).json();
    let out = bench.run(["export", "r", "--format", "hypotheses"]).expect_code(0);
    let hypotheses = by_question(&out.stdout);
    let questions = bench.questions("r");
    assert_eq!((hypotheses.len(), questions.len()), (9, 9));
    for question in &questions {
        let line = &hypotheses[question["question_id"].as_str().expect("an id")];
        assert_eq!(line.as_object().expect("an object").len(), 2, "what the authors' program reads: {line}");
        assert_eq!(line["hypothesis"], question["answer"]);
    }
    let _ = bench.run(["export", "r", "--format", "hypotheses", "--output-dir", "."]).expect_code(0);
    let written = std::fs::read_to_string(bench.path().join("hypotheses.jsonl")).expect("the file is written");
    assert_eq!(written, out.stdout);

    // answers alone: scorers of answers grade them, and a judge does as it did
    let back = import(&bench, "hypotheses.jsonl", "back", &[]).expect_code(0).json();
    assert_eq!((&back["outcomes"]["coverage"], &back["headline"]["metric"]), (&json!(1.0), &json!("locomo-f1")));
    assert_eq!(bench.run(["export", "back", "--format", "hypotheses"]).expect_code(0).stdout, out.stdout);
    let rejudge = ["rejudge", "back", "--judge", "openai:gpt-4o", "--max-cost", "5", "--json", "--display", "none"];
    let rejudged = bench.run(rejudge).expect_code(0).json();
    assert_eq!(rejudged["figures"], report["figures"], "the same answers and the same judge");
    assert!(report["figures"].as_array().is_some_and(|figures| figures.len() == 3), "{}", report["figures"]);

    // with the labels that the authors' program adds
    let label = |question: &Value| {
        let mut line = hypotheses[question["question_id"].as_str().expect("an id")].clone();
        line["autoeval_label"] = json!({"model": "gpt-4o", "label": question["scores"]["judge"] == 1.0});
        format!("{line}\n")
    };
    let labelled: String = questions.iter().map(label).collect();
    std::fs::write(bench.path().join("labelled.jsonl"), labelled).expect("writes");
    let labelled = import(&bench, "labelled.jsonl", "labelled", &[]).expect_code(0);
    assert!(labelled.stderr.contains("form 'longmemeval'"), "{}", labelled.stderr);
    let labelled = labelled.json();
    assert_eq!(labelled["figures"], report["figures"]);
    assert_eq!(labelled["headline"]["value"], report["headline"]["value"]);
}

#[test]
fn a_question_without_an_answer_has_no_hypothesis_and_comes_back_as_not_run() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let planet = "Which planet did you say rises first?";
    provider.outage(&json!({"kind": "status", "status": 400, "calls": "chat", "contains": planet}));
    let report = judged(&bench, "r", &[]).json();
    assert_eq!(report["outcomes"]["infra_error"], 1, "{}", report["outcomes"]);
    let out = bench.run(["export", "r", "--format", "hypotheses", "--output-dir", "."]).expect_code(0);
    assert!(out.stderr.contains("1 questions have no answer and no line"), "{}", out.stderr);
    let written = std::fs::read_to_string(bench.path().join("hypotheses.jsonl")).expect("the file is written");
    let hypotheses = by_question(&written);
    assert!(hypotheses.len() == 8 && !hypotheses.contains_key("2b3c4d5e"), "{hypotheses:?}");
    let back = import(&bench, "hypotheses.jsonl", "back", &[]).expect_code(5).json();
    assert_eq!((&back["outcomes"]["not_run"], &back["outcomes"]["infra_error"]), (&json!(1), &json!(0)));
    let part = import(&bench, "hypotheses.jsonl", "part", &["--subset"]).expect_code(0).json();
    assert_eq!((&part["outcomes"]["sample"], &part["outcomes"]["coverage"]), (&json!(8), &json!(1.0)));
}
