//! `show`: a question with all that is known of it, and the questions that are worth a look.

use bench_testkit::{
    bench::{Bench, submit_sim},
    provider::Provider,
};
use serde_json::{Value, json};

fn ids(listed: &Value) -> Vec<String> {
    listed.as_array().expect("a list").iter().map(|q| q["question_id"].as_str().expect("an id").to_owned()).collect()
}

fn passed(question: &Value) -> bool {
    question["scores"]["locomo-f1"].as_f64().is_some_and(|score| score >= 0.5)
}

#[test]
fn questions_are_shown_one_by_one_and_by_what_became_of_them() {
    let bench = Bench::new();
    for (run, system) in [("good", "bm25"), ("bad", "random")] {
        let flags = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", system, "--run-id", run];
        let _ = bench.run(flags).expect_code(0);
    }
    let (good, bad) = (bench.questions("good"), bench.questions("bad"));
    let show = |words: &[&str]| bench.run(["show"].iter().chain(words)).expect_code(0);
    let listed = |words: &[&str]| ids(&show(&[words, &["--json", "--most", "100"]].concat()).json());

    let failed: Vec<&str> = bad.iter().filter(|q| !passed(q)).filter_map(|q| q["question_id"].as_str()).collect();
    assert!(!failed.is_empty());
    assert_eq!(listed(&["bad", "--failed"]), failed);

    let other = |q: &Value| bad.iter().find(|other| other["question_id"] == q["question_id"]).expect("in both");
    let flipped: Vec<&Value> = good.iter().filter(|q| passed(q) != passed(other(q))).collect();
    assert!(!flipped.is_empty());
    assert_eq!(listed(&["good", "--flipped", "bad"]), ids(&flipped.into_iter().cloned().collect()));

    let worst = show(&["good", "--worst", "5", "--json"]).json();
    let mut scores: Vec<f64> = good.iter().filter_map(|q| q["scores"]["locomo-f1"].as_f64()).collect();
    scores.sort_by(f64::total_cmp);
    let of_worst =
        worst.as_array().expect("a list").iter().map(|q| q["scores"]["locomo-f1"].as_f64().expect("a score"));
    assert_eq!(of_worst.collect::<Vec<_>>(), scores[..5]);
    let all = show(&["good", "--worst", &usize::MAX.to_string(), "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(scores.len()), "however many are asked for");
    let few = show(&["good", "--worst", "3"]).stderr;
    assert!(few.contains(&format!("3 of {0} questions; --worst {0} shows all", scores.len())), "{few}");

    let word = good[0]["question"].as_str().expect("a text").split(' ').next_back().expect("a word").to_uppercase();
    let found = listed(&["good", "--search", &word]);
    assert!(found.contains(&ids(&Value::Array(vec![good[0].clone()]))[0]), "{word}: {found:?}");
    assert!(found.len() < good.len());
    assert!(listed(&["good", "--category", "temporal"]).len() > 3);

    // one whose evidence was missed
    let lost = bad.iter().find(|q| q["failures"][0] == "evidence_missing").expect("random finds nothing");
    let id = lost["question_id"].as_str().expect("an id");
    let shown = show(&["bad", id, "--json"]).json();
    assert_eq!(shown["missed"].as_array().map(Vec::len), lost["evidence"].as_array().map(Vec::len));
    let missed = shown["missed"][0]["text"].as_str().expect("its text");
    let text = show(&["bad", id]).stdout;
    for part in [lost["question"].as_str().expect("a text"), missed, "lost by evidence_missing", "hits, best first"] {
        assert!(text.contains(part), "'{part}' is missing in:\n{text}");
    }
    let mut line = shown.as_object().expect("an object").clone();
    let _ = line.remove("missed");
    assert_eq!(line.remove("sent"), Some(json!([])), "no model was asked");
    assert!(text.contains("where its time went\nquestion "), "{text}");
    assert_eq!(&Value::Object(line), lost, "the rest is the line of questions.jsonl");
    assert_eq!(show(&["bad", lost["trace_id"].as_str().expect("an id"), "--json"]).json(), shown);
}

#[test]
fn prompts_are_shown_as_they_were_sent() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "judged"])).expect_code(0);
    let question =
        bench.questions("judged").into_iter().find(|q| q["prompts"].as_array().is_some_and(|p| p.len() == 2));
    let id = question.expect("one that was answered and judged")["question_id"].as_str().expect("an id").to_owned();
    let shown = bench.run(["show", "judged", &id, "--json"]).expect_code(0).json();
    let sent = shown["sent"].as_array().expect("prompts");
    let names: Vec<&str> = sent.iter().filter_map(|prompt| prompt["names"][0].as_str()).collect();
    assert!(names[0].starts_with("answerer.") && names[1].starts_with("judge."), "{names:?}");
    let user = |at: usize| sent[at]["user"].as_str().expect("words");
    // the date before a hit is said once for its session
    let hit = shown["retrieved"][0]["text"].as_str().and_then(|text| text.split_once("] ")).expect("a dated hit").1;
    assert!(user(0).contains(hit.trim()), "{}", user(0));
    assert!(user(1).contains(shown["answer"].as_str().expect("an answer")), "{}", user(1));
    let text = bench.run(["show", "judged", &id]).expect_code(0).stdout;
    assert!(names.iter().all(|name| text.contains(&format!("\nsent as {name}"))), "{text}");
    assert!(!text.contains("further prompts"), "{text}");
}

#[test]
fn nothing_is_told_of_what_was_recalled_elsewhere() {
    let bench = Bench::new();
    let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", "own"])).expect_code(0);
    let id = bench.questions("own")[0]["question_id"].as_str().expect("an id").to_owned();
    let line = json!({"question_id": id, "answer": "tea", "score": 1});
    std::fs::write(bench.path().join("answers.jsonl"), line.to_string()).expect("is written");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "theirs"];
    let _ = bench.run(import).expect_code(0);
    let shown = bench.run(["show", "theirs", &id]).expect_code(0).stdout;
    assert!(shown.contains("answered\n  tea"), "{shown}");
    assert!(!shown.contains("evidence that was missed") && !shown.contains("where its time went"), "{shown}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let bench = Bench::new();
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "one"]).expect_code(0);
    for (words, said) in [
        (&["one", "no-such"][..], "has no question 'no-such'; `bench-coord show one` lists its questions"),
        (&["one", "--category", "hops"], "has no category 'hops'; it has adversarial, multi-hop"),
        (&["one", "--flipped", "two"], "no run 'two'"),
        (&["one", "--worst", "-5"], "'-5': no number below 0 is taken here"),
        (&["one", "--worst", "few"], "--worst <N>: 'few' is no whole number"),
    ] {
        let refused = bench.run(["show"].iter().chain(words)).expect_code(2);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
    let nothing = bench.run(["show", "one", "--search", "zzzzz"]).expect_code(0);
    assert!(nothing.stderr.contains("no question of run one is like that"), "{}", nothing.stderr);
}
