use super::*;

#[test]
fn replies_are_stored_as_rows_and_those_of_other_releases_are_read() {
    let mut timing = Timing { calls: vec![(0, 5, 429)], ..Timing::default() };
    let served = Served::named("gpt-4o-mini-2024-07-18\u{0}", Some(&"x".repeat(500)));
    assert_eq!(
        (served.model.as_str(), served.fingerprint.as_ref().map(String::len)),
        ("gpt-4o-mini-2024-07-18", Some(128))
    );
    let note = ReplyNote { call: 0, prompt_tokens: 7, completion_tokens: 2, served: Served::named("m", Some("fp")) };
    timing.add_calls(&[(1, 2, 200)], &[], &[note], 10);
    assert_eq!((timing.calls[1], timing.replies[0].call), ((11, 2, 200), 1));
    let stored = serde_json::to_string(&timing).expect("serialises");
    assert!(stored.contains(r#""r":[[1,7,2,"m","fp"]]"#), "{stored}");
    assert_eq!(serde_json::from_str::<Timing>(&stored).expect("is read"), timing);
    let before = stored.replace(r#","r":[[1,7,2,"m","fp"]]"#, "");
    assert!(serde_json::from_str::<Timing>(&before).expect("is read").replies.is_empty());
}

#[test]
fn operations_beside_each_other_take_the_time_of_their_union() {
    let of = |started_us, total_us, calls: &[(u64, u64)], rate_wait_us| Timing {
        started_us,
        total_us,
        rate_wait_us,
        calls: calls.iter().map(|(at, took)| (*at, *took, 200)).collect(),
        ..Timing::default()
    };
    let one = of(100, 50, &[(10, 40)], 10);
    assert_eq!(Timing::together([&one].into_iter()), (50, 40, 10));
    let beside = of(120, 50, &[(0, 50)], 0);
    assert_eq!(Timing::together([&one, &beside].into_iter()), (70, 60, 10));
    let later = of(1_000, 5, &[(0, 5)], 0);
    assert_eq!(
        Timing::together([&later, &one, &beside].into_iter()),
        (75, 65, 10),
        "an outage between them is none of it"
    );
    assert_eq!(Timing::together(std::iter::empty()), (0, 0, 0));
    let absurd = of(i64::MAX - 1, u64::MAX, &[(u64::MAX, u64::MAX)], u64::MAX);
    assert_eq!(Timing::together([&absurd].into_iter()), (1, 0, 1));
}

#[test]
fn steps_of_a_vote_have_numbers_of_their_own_and_one_call_is_stored_as_ever() {
    assert_eq!(StepNo::judge_call(0).call_of_vote(), Some(0));
    assert_eq!((StepNo::JUDGE.call_of_vote(), StepNo::FAILED.call_of_vote()), (None, None));
    let stored = r#"{"step":"judged","score":1.0,"usage":{},"timing":{"at":5,"t":7,"n":1}}"#;
    let facts: StepFacts = serde_json::from_str(stored).expect("reads");
    assert!(matches!(&facts, StepFacts::Judged { score: Some(1.0), parts, .. } if parts.is_empty()), "{facts:?}");
    let again: serde_json::Value = serde_json::to_value(&facts).expect("writes");
    assert!(again.get("parts").is_none() && again["score"] == 1.0, "{again}");
    let part = StepFacts::JudgedPart { usage: Usage::default(), timing: Timing::default() };
    assert_eq!(serde_json::to_value(&part).expect("writes")["step"], "judged_part");
    let nothing = StepFacts::Judged { score: None, parts: vec![], usage: Usage::default(), timing: Timing::default() };
    let stored = serde_json::to_string(&nothing).expect("writes");
    assert!(!stored.contains("score"), "{stored}");
    assert_eq!(serde_json::from_str::<StepFacts>(&stored).expect("reads"), nothing);
}

#[test]
fn ranks_count_each_id_once() {
    let hits = RankHits::find(["a", "b", "a", "c", "d"], ["c", "a", "x"]);
    assert_eq!(hits, RankHits { gold: 3, ranked: 4, ranks: vec![1, 3] });
}

#[test]
fn p45_hits_without_a_turn_say_nothing_about_turns() {
    let (turns, sessions) = (["D1:3".to_owned()], ["D1".to_owned()]);
    let of = |hits: &[(&'static str, HitLevel)]| {
        Retrieval::from_hits(hits.iter().map(|(id, level)| (*id, "D1", Some(*level))), &turns, &sessions)
    };
    let by_session = of(&[("hit-1", HitLevel::Session), ("hit-2", HitLevel::Unknown)]);
    assert_eq!((by_session.turn.gold, by_session.session.ranks), (0, vec![1]));
    let mixed = of(&[("hit-1", HitLevel::Session), ("D1:3", HitLevel::Turn)]);
    assert_eq!((mixed.turn.gold, mixed.turn.ranks), (1, vec![2]));
    assert_eq!(of(&[]).turn, RankHits { gold: 1, ranked: 0, ranks: vec![] }, "what was not found was not found");
}

#[test]
fn a_hit_that_an_earlier_release_stored_is_read_and_a_plain_one_is_written_as_it_was() {
    let old = r#"{"id":"D1:3","session_id":"D1","score":1.5,"text":"Ann: hello"}"#;
    let hit: RetrievedHit = serde_json::from_str(old).expect("reads");
    assert_eq!((hit.placed_by, hit.level), (None, None));
    assert_eq!(serde_json::to_string(&hit).expect("writes"), old);
}
