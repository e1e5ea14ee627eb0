use bench_proto::summary::{Cause, SearchLine};

use super::*;

#[test]
fn a_question_says_whose_its_answer_is_and_what_was_searched_for() {
    let summary = serde_json::from_str(include_str!("../../../testdata/fair.json")).expect("a summary");
    let plain = crate::questions::tests::question();
    let search = |query: &str, hits| SearchLine { query: query.to_owned(), hits };
    let searches = vec![search("what came first?", 3), search("x".repeat(texts::MOST_CHARACTERS + 1).as_str(), 0)];
    let several = QuestionLine {
        answered_by: Some(AnsweredBy::Fallback),
        searches,
        original_sessions: [("S2".to_owned(), "answer_7".to_owned())].into(),
        ..plain.clone()
    };
    let questions = [plain, several];
    let page = Page::new(&summary, &questions);
    let script = Data::from_page(&page).to_script().expect("is JSON");
    let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
    let [plain, several] = [0, 1].map(|at| &read["questions"][at]);
    assert!(["by", "se", "os"].iter().all(|key| plain.get(key).is_none()), "{plain}");
    assert_eq!(several["os"], serde_json::json!([["S2", "answer_7"]]));
    assert_eq!((&several["by"], &several["se"][0]), (&"fallback".into(), &serde_json::json!(["what came first?", 3])));
    assert!(several["se"][1][0].as_str().is_some_and(|query| query.ends_with("left out)")), "{several}");
}

#[test]
fn a_hit_says_what_it_is_and_what_its_system_said_of_it_where_there_is_more_than_a_turn() {
    let summary = serde_json::from_str(include_str!("../../../testdata/fair.json")).expect("a summary");
    let hit = |level, details: &[(&str, serde_json::Value)]| RetrievedLine {
        id: "D1:3".to_owned(),
        session_id: "D1".to_owned(),
        score: None,
        text: "Ann: tea".to_owned(),
        placed_by: Some(PlacedBy::Id),
        level: Some(level),
        details: details.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    };
    let said = [("rank", 2.into()), ("strategy", "</script>".into())];
    let question = QuestionLine {
        retrieved: vec![hit(LineLevel::Turn, &[]), hit(LineLevel::Session, &[]), hit(LineLevel::Turn, &said)],
        cause: Some(Cause { kind: Some(CauseKind::NotRetrieved), stored: Some(true), retrieved: Some(false) }),
        ..crate::questions::tests::question()
    };
    let questions = [question];
    let page = Page::new(&summary, &questions);
    let script = Data::from_page(&page).to_script().expect("is JSON");
    assert!(!script.contains("</script>"), "{script}");
    let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
    let hits = &read["questions"][0]["hits"];
    assert_eq!(read["questions"][0]["why"], "not_retrieved");
    assert_eq!(hits[0].as_array().map(Vec::len), Some(6));
    assert_eq!((&hits[1][6], &hits[1][7]), (&"session".into(), &serde_json::Value::Null));
    assert_eq!(hits[2][7], serde_json::json!([["rank", "2"], ["strategy", "</script>"]]));
}

#[test]
fn what_others_say_leaves_the_json_neither_as_markup_nor_as_direction() {
    let summary = serde_json::from_str(include_str!("../../../testdata/fair.json")).expect("a summary");
    let nasty = "</script><script>alert(1)</script><!-- \u{202e}\u{2066}\u{2028}\u{7f}\u{9b}\u{0}\u{feff}\u{e0041} \u{1f469}\u{200d}\u{1f4bb}";
    let question = QuestionLine {
        question: nasty.to_owned(),
        answer: Some(nasty.to_owned()),
        ..crate::questions::tests::question()
    };
    let questions = [question];
    let page = Page::new(&summary, &questions);
    let script = Data::from_page(&page).to_script().expect("is JSON");
    assert!(!script.contains('<') && !script.contains(text::acts), "{script}");
    for escaped in ["\\u003c/script>", "\\u202e", "\\u2066", "\\u2028", "\\u007f", "\\u009b", "\\u0000"] {
        assert!(script.contains(escaped), "{escaped}");
    }
    let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
    assert_eq!((&read["questions"][0]["q"], &read["questions"][0]["ans"]), (&nasty.into(), &nasty.into()));
    let page = crate::html::render(&page).expect("renders");
    assert!(
        !page.contains("alert(1)</script>") && !page.contains(|c| text::acts(c) && c != '\n'),
        "the page is no better"
    );
}

fn missing(id: &str) -> QuestionLine {
    QuestionLine {
        question_id: id.to_owned(),
        evidence: vec!["D1:3".to_owned(), "D9:9".to_owned()],
        retrieved: vec![RetrievedLine {
            id: "D2:1".to_owned(),
            session_id: "D2".to_owned(),
            score: Some(1.0),
            text: "Ann: tea, as ever".to_owned(),
            placed_by: None,
            level: None,
            details: Default::default(),
        }],
        ..crate::questions::tests::question()
    }
}

fn script_of(questions: &[QuestionLine], beside: &HashMap<String, Beside>) -> serde_json::Value {
    let summary = serde_json::from_str(include_str!("../../../testdata/fair.json")).expect("a summary");
    let page = Page { beside: Some(beside), ..Page::new(&summary, questions) };
    let script = Data::from_page(&page).to_script().expect("is JSON");
    serde_json::from_str(&script).expect("reads back")
}

#[test]
fn what_is_told_beside_a_line_travels_and_equal_texts_do_so_once() {
    let pieces = vec![Piece::Text("[D2:1] ".to_owned()), Piece::Hit { rank: 0, from: 5, to: 17 }];
    let names = vec!["answerer.short".to_owned(), "judge.x, call 1 of 2".to_owned()];
    let beside = Beside {
        evidence: vec![("D1:3".to_owned(), "Ann: tea, as ever".to_owned())],
        prompts: vec![super::super::SentPrompt { names, system: "Answer.".to_owned(), user: pieces }],
        other: Some(QuestionLine { answer: Some("coffee".to_owned()), ..missing("q") }),
    };
    let read = script_of(&[missing("q")], &[("q".to_owned(), beside)].into());
    let question = &read["questions"][0];
    assert_eq!(read["texts"], serde_json::json!(["Ann: tea, as ever", "Answer."]));
    assert_eq!(question["miss"], serde_json::json!([["D1:3", 0], ["D9:9", null]]));
    assert_eq!(
        question["sent"],
        serde_json::json!([["answerer.short, judge.x, call 1 of 2", 1, ["[D2:1] ", [0, 5, 17]]]])
    );
    let other = &question["other"];
    assert_eq!((&other["ans"], &other["hits"]), (&"coffee".into(), &question["hits"]));
    assert_eq!(question.get("cut"), None);
}

#[test]
fn what_is_told_beside_lines_has_so_much_room_and_no_more() {
    let (questions, beside): (Vec<QuestionLine>, HashMap<String, Beside>) = (0..1_000)
        .map(|at| {
            let id = format!("q{at}");
            let evidence = vec![("D1:3".to_owned(), format!("{at} {}", "é".repeat(5_000)))];
            (missing(&id), (id, Beside { evidence, ..Beside::default() }))
        })
        .unzip();
    let read = script_of(&questions, &beside);
    let told: usize =
        read["texts"].as_array().expect("texts").iter().filter_map(|text| text.as_str()).map(str::len).sum();
    assert!((texts::MOST_BESIDE / 2..texts::MOST_BESIDE + 100).contains(&told), "{told}");
    let questions = read["questions"].as_array().expect("questions");
    let left_out = questions.iter().filter(|question| question["miss"][0][1].is_null()).count();
    let said = questions.iter().filter(|question| question["cut"] == true).count();
    assert!(left_out > 500 && left_out == said, "{left_out} are left out, {said} say so");
}

#[test]
fn every_vote_travels_and_says_whether_it_speaks_for_its_judge() {
    let vote = |vote, chosen, raw: &str, calls: &[&str]| JudgementLine {
        judge: "openai:m".to_owned(),
        vote,
        verdict: "correct".to_owned(),
        raw: raw.to_owned(),
        calls: calls.iter().map(|call| (*call).to_owned()).collect(),
        grade: Some(0.5),
        chosen,
    };
    let judgements = vec![vote(0, false, "a", &[]), vote(1, true, "", &["b", "c"]), vote(2, false, "d", &[])];
    let question = QuestionLine { judgements, ..missing("q") };
    let read = script_of(&[question], &HashMap::new());
    let votes: Vec<_> = read["questions"][0]["j"].as_array().expect("votes").iter().map(|v| (&v[4], &v[5])).collect();
    let (speaks, silent) = (serde_json::json!(0), serde_json::json!(1));
    let replies = [["a"].as_slice(), &["b", "c"], &["d"]].map(|replies| serde_json::json!(replies));
    assert_eq!(votes, [(&silent, &replies[0]), (&speaks, &replies[1]), (&silent, &replies[2])]);
}
