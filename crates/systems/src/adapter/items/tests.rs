use bench_proto::{
    canary::{CANARY_VERSION, CanarySpec},
    dataset::Question,
};
use proptest::prelude::*;

use super::*;

fn session(lines: &[&str]) -> StreamEntry {
    let turn = |(at, line): (usize, &&str)| Turn {
        id: format!("D1:{}", at + 1),
        speaker: ["Ann", "Bo"][at % 2].to_owned(),
        text: (*line).to_owned(),
        ..Turn::default()
    };
    StreamEntry::Session(Session {
        id: "D1".to_owned(),
        time_text: Some("1:56 pm on 8 May, 2023".to_owned()),
        time: Some("2023-05-08T13:56:00".to_owned()),
        turns: lines.iter().enumerate().map(turn).collect(),
        ..Session::default()
    })
}

#[test]
fn p45_some_facts_go_with_the_turns_before_them_and_others_by_themselves() {
    let facts = CanarySpec { version: CANARY_VERSION, facts: 60, most_in_bank: None }.facts_in("sha", 1, 0, "b");
    let entries = (0..61).map(|_| session(&["hello", "bye"])).collect();
    let mut content = BankContent { entries, ..BankContent::default() };
    canary::plant(&facts, &mut content, &mut [Question { ask_after: 61, ..Question::default() }]);
    let portions = |most: u32, by_turn: bool| {
        let (mut rest, mut portions) = (&content.entries[..], Vec::new());
        while !rest.is_empty() {
            let (portion, more) = rest.split_at(together(rest, most, by_turn));
            portions.push(portion);
            rest = more;
        }
        portions
    };
    let along: Vec<&[StreamEntry]> = portions(50, true).into_iter().filter(|portion| portion.len() > 1).collect();
    let is_fact = |entry: &StreamEntry| canary::is_fact(&facts, entry);
    assert!((10..=50).contains(&along.len()), "{} of 60", along.len());
    assert!(along.iter().all(|both| both.len() == 2 && !is_fact(&both[0]) && is_fact(&both[1])));
    for (most, by_turn) in [(50, false), (1, true)] {
        assert_eq!(portions(most, by_turn).len(), 121, "one request takes one turn, or whole sessions");
    }
}

#[test]
fn turns_and_sessions_become_items() {
    let entries = [session(&["hello", "", "bye"])];
    let cut = |unit| Cut { unit, text_bytes: None, content: None }.items(&entries).expect("nothing is replaced");
    let turns = cut(Unit::Turn);
    assert_eq!(turns.iter().map(|i| (i.id.as_str(), i.role)).collect::<Vec<_>>(), [("D1:1", "user"), ("D1:3", "user")]);
    let sessions = cut(Unit::Session);
    assert_eq!((sessions.len(), sessions[0].text.as_str()), (1, "Ann: hello\nAnn: bye"));
    let all = Template::compile(&json!(["{key}", "{time}", "{time_unix}", "{time_ms}", "{content}"]), ITEM_VARS);
    let rendered = all.expect("compiles").render(&turns[0].vars("bench-1-g1", 0, None, |_| true)).expect("renders");
    let expected = json!([
        "bench-1-g1-D1-1",
        "2023-05-08T13:56:00Z",
        1_683_554_160,
        1_683_554_160_000_i64,
        "[1:56 pm on 8 May, 2023] Ann: hello"
    ]);
    assert_eq!(rendered, expected);
}

fn part(part: u32, lines: &[&str]) -> StreamEntry {
    let StreamEntry::Session(whole) = session(lines) else { unreachable!("made as one") };
    let turns = whole.turns.iter().map(|turn| Turn { id: format!("{}.{part}", turn.id), ..turn.clone() }).collect();
    StreamEntry::Session(Session { part, turns, ..whole })
}

#[test]
fn parts_of_a_session_are_items_of_their_own_and_keep_who_began_it() {
    let mut entries = vec![part(0, &["hello"]), part(1, &["", "well", "yes"]), part(2, &["bye"])];
    if let StreamEntry::Session(last) = &mut entries[2] {
        last.turns[0].speaker = "Bo".to_owned();
    }
    let content = BankContent { entries, ..BankContent::default() };
    let cut = Cut { unit: Unit::Session, text_bytes: None, content: Some(&content) };
    let ids = |items: &[Item]| items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
    let items = cut.items(&content.entries).expect("nothing is replaced");
    assert_eq!(ids(&items), ["D1", "D1-part-2", "D1-part-3"]);
    assert!(items.iter().all(|item| item.session_id == "D1"));
    let roles = |items: &[Item]| items.iter().flat_map(|i| i.messages.iter().map(|m| m.role)).collect::<Vec<_>>();
    assert_eq!(roles(&items), ["user", "assistant", "user", "assistant"]);
    assert_eq!(roles(&cut.items(&content.entries[2..]).expect("a part alone")), ["assistant"]);
    let by_turn = Cut { unit: Unit::Turn, ..cut };
    let number = |item: &Item| item.vars("b", 0, None, |_| true).get("turn").cloned();
    let numbers = |entries| by_turn.items(entries).expect("nothing is replaced").iter().map(number).collect::<Vec<_>>();
    assert_eq!(numbers(&content.entries), [0, 2, 3, 4].map(|at| Some(json!(at))), "an empty turn has its number");
    assert_eq!(numbers(&content.entries[2..]), [Some(json!(4))], "a part goes on counting");
    let alone = Cut { content: None, ..by_turn }.items(&content.entries).expect("nothing is replaced");
    let going_on = [0, 2, 3, 4].map(|at| Some(json!(at)));
    assert_eq!(alone.iter().map(number).collect::<Vec<_>>(), going_on, "also behind the parts beside it alone");
    assert_eq!(number(&items[0]), Some(Value::Null), "a session is no turn");
}

#[test]
fn turns_with_times_of_their_own_show_them() {
    let mut entry = session(&["hello", "hi"]);
    if let StreamEntry::Session(session) = &mut entry {
        session.turns[1].time_text = Some("2 pm".to_owned());
        session.turns[1].time = Some("2023-05-08T14:00:00".to_owned());
    }
    let cut = |unit| Cut { unit, text_bytes: None, content: None }.items(std::slice::from_ref(&entry)).expect("cuts");
    assert_eq!(
        cut(Unit::Turn).iter().map(Item::content).collect::<Vec<_>>(),
        ["[1:56 pm on 8 May, 2023] Ann: hello", "[2 pm] Bo: hi"]
    );
    let whole = &cut(Unit::Session)[0];
    assert_eq!(whole.content(), "[1:56 pm on 8 May, 2023] Ann: hello\n[2 pm] Bo: hi");
    let message = Template::compile(&json!("{time} {text}"), &["time", "text"]).expect("compiles");
    let messages = |message| whole.vars("b", 0, message, |_| true).get("messages").cloned().expect("has messages");
    assert_eq!(messages(None)[1], json!({"role": "assistant", "content": "[2 pm] Bo: hi"}));
    assert_eq!(messages(Some(&message)), json!(["2023-05-08T13:56:00Z Ann: hello", "2023-05-08T14:00:00Z Bo: hi"]));
}

#[test]
fn a_dated_message_begins_with_its_time_and_one_without_a_time_with_its_words() {
    let dated = Template::compile(&json!("{dated}"), &["dated"]).expect("compiles");
    let of = |entry: StreamEntry, unit| {
        let items = Cut { unit, text_bytes: None, content: None }.items(&[entry]).expect("cuts");
        let of_item = |item: &Item| item.vars("b", 0, Some(&dated), |_| true).get("messages").cloned();
        items.iter().filter_map(of_item).collect::<Vec<_>>()
    };
    let whole = session(&["hello", "hi"]);
    assert_eq!(
        of(whole.clone(), Unit::Session),
        [json!(["[2023-05-08T13:56:00Z] Ann: hello", "[2023-05-08T13:56:00Z] Bo: hi"])]
    );
    let StreamEntry::Session(timed) = whole else { unreachable!("made as one") };
    let words = Session { time: None, ..timed.clone() };
    assert_eq!(of(StreamEntry::Session(words), Unit::Turn)[0], json!(["[1:56 pm on 8 May, 2023] Ann: hello"]));
    let nothing = Session { time: None, time_text: None, ..timed };
    assert_eq!(of(StreamEntry::Session(nothing), Unit::Turn)[1], json!(["Bo: hi"]), "and no empty brackets");
    let memory = Memory { id: "m1".to_owned(), text: "Ann lives in Oslo.".to_owned(), ..Memory::default() };
    assert_eq!(of(StreamEntry::Memory(memory), Unit::Session), [json!(["Ann lives in Oslo."])]);
}

#[test]
fn what_has_no_time_is_sent_as_of_the_one_that_the_file_names() {
    let StreamEntry::Session(mut session) = session(&["hello", "hi"]) else { unreachable!("made as one") };
    session.turns[1].time = Some("2023-05-08T14:00:00".to_owned());
    let session = Session { time: None, time_text: Some("some day".to_owned()), ..session };
    let cut = Cut { unit: Unit::Session, text_bytes: None, content: None };
    let items = cut.items(&[StreamEntry::Session(session)]).expect("cuts");
    let item = items[0].clone().or_at("2000-01-01T00:00:00");
    let message = Template::compile(&json!("{time_ms}"), &["time_ms"]).expect("compiles");
    let vars = item.vars("b", 0, Some(&message), |_| true);
    assert_eq!(vars.get("messages"), Some(&json!([946_684_800_000_i64, 1_683_554_400_000_i64])));
    assert_eq!(vars.get("time"), Some(&json!("2000-01-01T00:00:00Z")));
    assert_eq!(vars.get("content"), Some(&json!("[some day] Ann: hello\n[2023-05-08T14:00:00] Bo: hi")));
}

#[test]
fn what_is_replaced_is_known_by_the_ids_under_which_it_was_stored() {
    let memory = |id: &str, text: &str| Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() };
    let update = |replaces: &str, memory| StreamEntry::Update { replaces: replaces.to_owned(), memory };
    let entries = vec![
        StreamEntry::Memory(memory("m1", &"long ".repeat(40))),
        session(&["hello"]),
        update("m1", Some(memory("m2", "short"))),
        update("D1:1", None),
        update("nobody", None),
        update("nobody", Some(memory("m3", "new"))),
        update("m2", Some(memory("m4", " "))),
    ];
    let content = BankContent { entries, ..BankContent::default() };
    let cut = |unit| Cut { unit, text_bytes: Some(128), content: Some(&content) };
    let items = cut(Unit::Turn).items(&content.entries).expect("cuts");
    let changes: Vec<(&str, &Change)> = items.iter().map(|item| (item.id.as_str(), &item.change)).collect();
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let parts = ids(&["m1", "m1#2"]);
    assert_eq!(
        changes,
        [
            ("m1", &Change::Adds),
            ("m1#2", &Change::Adds),
            ("D1:1", &Change::Adds),
            ("m2", &Change::Replaces(parts)),
            ("D1:1", &Change::Withdraws(ids(&["D1:1"]))),
            ("m3", &Change::Adds),
            ("m2", &Change::Withdraws(ids(&["m2"]))),
        ]
    );
    let held = |updates, withdraws| {
        let held = cut(Unit::Turn).held(&content.entries, updates, withdraws).expect("cuts");
        held.into_iter().map(|item| item.id).collect::<Vec<_>>()
    };
    assert_eq!(held(true, true), ["m3"]);
    assert_eq!(held(true, false), ["D1:1", "m2", "m3"], "what was withdrawn stays");
    assert_eq!(held(false, false), ["m1", "m1#2", "D1:1", "m2", "m3"]);
    let failure = cut(Unit::Session).items(&content.entries).expect_err("no session can lose a turn");
    assert_eq!(failure.code, "system_cannot");
}

proptest! {
    /// Splitting loses nothing and no part is too long.
    #[test]
    fn long_texts_are_split_and_not_clipped(text in "[a-z🪁é \n]{1,2000}", most in 200_u32..600) {
        let cut = Cut { unit: Unit::Turn, text_bytes: Some(most), content: None };
        let parts = cut.items(&[session(&[&text])]).expect("nothing is replaced");
        let joined: String = parts.iter().map(|part| part.text.as_str()).collect();
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        if !text.trim().is_empty() {
            prop_assert_eq!(letters(&joined), letters(&format!("Ann: {text}")));
        }
        for part in &parts {
            prop_assert!(part.content().len() <= most as usize);
            prop_assert_eq!(whole_id(&part.id), "D1:1");
        }
    }
}
