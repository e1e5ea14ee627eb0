//! Runs that are held to other people's counting.

use bench_testkit::{provider::Provider, small};
use serde_json::{Value, json};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_run_counted_as_others_do_says_so_everywhere_and_is_compared_with_nothing_else() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "ours"])).expect_code(0);
    let rejudge = |name: &str, id: &str, more: &[&str]| {
        let args = ["rejudge", "ours", "--count-as", name, "--run-id", id, "--json", "--display", "none"];
        bench.run(args.iter().chain(more)).expect_code(0).json()
    };
    let three = rejudge("evermemos", "three", &[]);
    let counted = &three["counting"];
    assert_eq!((&counted["name"], &counted["runs"], &counted["failed"]), (&json!("evermemos"), &json!(3), &json!(0)));
    assert_eq!(three["spec"]["judges"], json!(["openai:gpt-4o-mini"]), "their judge where none is named");
    assert_eq!(three["headline"]["without"], json!(["adversarial"]));
    assert_eq!(number(&counted["n"]) + number(&counted["left_out"]), number(&three["outcomes"]["sample"]));
    assert!(number(&counted["left_out"]) > 0.0 && number(&counted["sd"]) > 0.0, "{counted}");
    let label = "counted as evermemos: not comparable with other counting";
    assert!(three["labels"].as_array().expect("labels").contains(&json!(label)));
    for format in ["terminal", "md", "html"] {
        assert!(bench.run(["report", "three", "--format", format]).expect_code(0).stdout.contains(label), "{format}");
    }
    assert!(bench.run(["report", "three", "--format", "csv"]).expect_code(0).stdout.contains("counted:evermemos"));
    assert!(bench.run(["list"]).expect_code(0).stdout.contains("counted as evermemos"));
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    let of = listed.as_array().expect("runs").iter().find(|run| run["id"] == "three").expect("is listed");
    assert_eq!((&of["counted_as"], &of["score"]), (&json!("evermemos"), &counted["value"]));

    let refused = bench.run(["compare", "ours", "three", "--under-test", "all", "--json"]).expect_code(5).json();
    let reasons = refused["reasons"].to_string();
    assert!(reasons.contains("one run is counted as our own rules say, the other as evermemos"), "{refused}");
    // a folder is held to its own rules too
    let folder = ["compare", ".bench/runs/ours", "three", "--under-test", "all", "--json"];
    let refused = bench.run(folder).expect_code(5).json();
    assert!(refused["reasons"].to_string().contains("counted as our own rules say, the other as"), "{refused}");
    let _ = rejudge("evermemos", "again", &[]);
    let same = bench.run(["compare", "three", "again", "--json"]).expect_code(0).json();
    // so few questions that are equal leave more open than the tolerance
    assert_eq!((&same["comparable"], &same["verdict"]), (&json!(true), &json!("INCONCLUSIVE")));
    assert!(!reasons.contains("the datasets differ"), "the same file, the same sample: {refused}");
}

#[test]
fn a_counted_run_is_counted_otherwise_or_not_at_all_and_never_half() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "ours"])).expect_code(0);
    let run = |args: &[&str]| bench.run(args.iter().chain(&["--json", "--display", "none"]));
    let _ = run(&["rejudge", "ours", "--count-as", "evermemos", "--run-id", "three"]).expect_code(0);
    let judge = ["--judge", "openai:gpt-4o-mini"];
    // what submit refuses together a fork refuses too
    let both = ["submit", "--count-as", "evermemos", "--rubric", "judge-graded"];
    let _ = bench.run(both.iter().chain(&judge)).expect_code(2);
    for verb in [&["rejudge", "three"][..], &["submit", "--fork", "three", "--from", "judge"]] {
        let refused = bench.run(verb.iter().chain(&judge).chain(&["--rubric", "judge-graded"])).expect_code(2);
        assert!(
            refused.stderr.contains("counted as evermemos") && refused.stderr.contains("--rubric dataset"),
            "{}",
            refused.stderr
        );
    }
    // another judge is told as a departure of the same counting
    let other = run(&["rejudge", "three", "--judge", "openai:gpt-4o", "--run-id", "other"]).expect_code(0).json();
    let departures = other["counting"]["departures"].to_string();
    assert!(departures.contains("the judge is openai:gpt-4o, theirs is openai:gpt-4o-mini"), "{departures}");
    assert_eq!((&other["counting"]["name"], &other["counting"]["runs"]), (&json!("evermemos"), &json!(3)));
    // and back to our own, as if it had never been counted
    let back = ["rejudge", "three", "--rubric", "dataset", "--run-id", "back"];
    let back = run(&[&back[..], &judge].concat()).expect_code(0).json();
    assert!(back["counting"].is_null(), "{}", back["counting"]);
    let ours = run(&["rejudge", "ours", "--judge", "openai:gpt-4o-mini", "--run-id", "again"]).expect_code(0).json();
    assert_eq!((&back["spec"], &back["headline"]), (&ours["spec"], &ours["headline"]));
    assert_eq!(back["result_digest"], ours["result_digest"]);
    let zep = run(&["rejudge", "three", "--count-as", "zep"]).expect_code(0).json();
    assert_eq!((&zep["counting"]["name"], &zep["counting"]["runs"]), (&json!("zep"), &json!(1)));
    // without what is counted nothing is counted
    let scored = run(&["rescore", "three", "--scorer", "exact"]).expect_code(0).json();
    assert!(
        scored["counting"].is_null() && scored["headline"]["without"] != json!(["adversarial"]),
        "{}",
        scored["headline"]
    );
}

#[test]
fn what_the_authors_do_is_named_official_in_their_own_words_alone() {
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/testdata/longmemeval/whole.json");
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let folder = |name: &str| {
        let folder = bench.path().join(name);
        assert!(small::write(name, &folder).expect("is written"), "{name} is known");
        folder.display().to_string()
    };
    let run = |dataset: &str, path: &str, id: &str, more: &[&str]| {
        let fixed =
            ["submit", "--dataset", dataset, "--dataset-path", path, "--allow-modified-dataset", "--run-id", id];
        let sized = ["--preset", "full", "--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
        let quiet = ["--latency-probe", "off", "--display", "none", "--max-cost", "5", "--json"];
        bench.run(fixed.iter().chain(&sized).chain(&quiet).chain(more))
    };
    let places = [
        ("longmemeval", FILE.to_owned(), "longmemeval-rules-our-words"),
        ("beam@100k", folder("beam@100k"), "beam-rules-our-words"),
        ("convomem@mixed", folder("convomem@mixed"), "convomem-rules-our-words"),
    ];
    for (dataset, path, name) in &places {
        let id = dataset.split('@').next().unwrap_or_default();
        let counted = run(dataset, path, id, &["--canonical-judge"]).json();
        assert_eq!((&counted["counting"]["name"], &counted["counting"]["failed"]), (&json!(name), &json!(0)));
        assert!(counted["counting"]["value"].is_number(), "{}", counted["counting"]);
        let departures = counted["counting"]["departures"].to_string();
        assert!(departures.contains("the words of the rubric are ours"), "{departures}");
        let label = format!("counted as {name}: not comparable with other counting");
        assert!(counted["labels"].as_array().expect("labels").contains(&json!(label)), "{}", counted["labels"]);
        for format in ["terminal", "md", "html", "csv"] {
            let view = bench.run(["report", id, "--format", format]).stdout;
            assert!(view.contains(name) && !view.contains("-official"), "{dataset} as {format}");
        }
    }
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert!(!listed.contains("official") && listed.contains("counted as beam-rules-our-words"), "{listed}");

    let refused = run("longmemeval", FILE, "refused", &["--count-as", "longmemeval-official"]).expect_code(2);
    let said = ["--judge-prompts FILE", "--count-as longmemeval-rules-our-words"];
    assert!(said.iter().all(|said| refused.stderr.contains(said)), "{}", refused.stderr);
    let Some(theirs) = std::env::var_os("BENCH_OFFICIAL_PROMPTS") else {
        eprintln!("NOT TESTED with the authors' own prompts: BENCH_OFFICIAL_PROMPTS names no file (docs/GRADERS.md)");
        return;
    };
    let prompts = theirs.to_string_lossy().into_owned();
    for (id, counting) in
        [("canonical", &["--canonical-judge"][..]), ("named", &["--count-as", "longmemeval-official"])]
    {
        let official = run("longmemeval", FILE, id, &[counting, &["--judge-prompts", &prompts]].concat()).json();
        assert_eq!(official["counting"]["name"], "longmemeval-official");
    }
    let compared = bench.run(["compare", "longmemeval", "canonical", "--under-test", "all", "--json"]).json();
    assert_eq!(compared["comparable"], false, "{compared}");
}

#[test]
fn every_counting_of_locomo_reads_its_judges_replies() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "ours"])).expect_code(0);
    for name in ["mem0-2025", "memmachine", "zep", "hindsight", "amb", "memorybench"] {
        let args =
            ["rejudge", "ours", "--count-as", name, "--judge", "openai:gpt-4o-mini", "--json", "--display", "none"];
        let counted = bench.run(args).expect_code(0).json();
        assert_eq!(
            (&counted["outcomes"]["coverage"], &counted["counting"]["failed"]),
            (&json!(1.0), &json!(0)),
            "{name}"
        );
        let value = number(&counted["counting"]["value"]);
        assert!((0.4..0.95).contains(&value), "{name}: a judge that accepts seven of ten gave {value}");
    }
    // no judge there: the same answers by token F1, rounded
    let official = ["rejudge", "ours", "--canonical-judge", "--json", "--run-id", "official", "--display", "none"];
    let official = bench.run(official).expect_code(0).json();
    assert_eq!(
        (&official["counting"]["name"], &official["headline"]["metric"]),
        (&json!("official"), &json!("locomo-f1"))
    );
    let scores: Vec<f64> = bench
        .questions("official")
        .iter()
        .map(|question| (number(&question["scores"]["locomo-f1"]) * 1000.0).round() / 1000.0)
        .collect();
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    assert!((number(&official["counting"]["value"]) - mean).abs() < 1e-12);
    let with_judge = ["rejudge", "ours", "--count-as", "official", "--judge", "openai:gpt-4o-mini"];
    assert!(bench.run(with_judge).expect_code(2).stderr.contains("no model judges there"));
    let unknown = bench.run(["rejudge", "ours", "--count-as", "mem0"]).expect_code(2);
    assert!(unknown.stderr.contains("score --counting"), "{}", unknown.stderr);
}
