use super::*;

fn part(id: &str, part: u32) -> StreamEntry {
    let turn = |at| Turn { id: format!("{id}:{part}:{at}"), ..Turn::default() };
    StreamEntry::Session(Session { id: id.to_owned(), part, turns: vec![turn(1), turn(2)], ..Session::default() })
}

fn stream() -> Vec<StreamEntry> {
    let memory = StreamEntry::Memory(Memory { id: "m".to_owned(), ..Memory::default() });
    let withdrawn = StreamEntry::Update { replaces: "m".to_owned(), memory: None };
    vec![part("a", 0), part("a", 1), memory, part("b", 0), part("b", 1), part("b", 2), withdrawn]
}

#[test]
fn parts_of_a_session_are_kept_together() {
    let kept = |most| {
        let mut content = BankContent { entries: stream(), ..BankContent::default() };
        content.keep_sessions(most);
        content.entries.len()
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(kept), [0, 2, 3, 6, 7, 7]);
    let content = BankContent { entries: stream(), ..BankContent::default() };
    let outline = Bank { content, ..Bank::default() }.outline();
    assert_eq!((outline.entries, outline.sessions(), outline.withdrawals), (7, 4, 1));
}

#[test]
fn a_turn_has_its_own_time_or_that_of_its_session_and_never_half_of_both() {
    let text = |text: &str| Some(text.to_owned());
    let session = Session { time_text: text("8 May"), time: text("2023-05-08T00:00:00"), ..Session::default() };
    let of = |turn: Turn| {
        let time = session.time_of(&turn);
        (time.text.map(str::to_owned), time.iso.map(str::to_owned))
    };
    assert_eq!(of(Turn::default()), (text("8 May"), text("2023-05-08T00:00:00")));
    assert_eq!(of(Turn { time_text: text("noon"), ..Turn::default() }), (text("noon"), None));
    let iso = "2023-05-09T12:00:00";
    assert_eq!(of(Turn { time: text(iso), ..Turn::default() }), (text(iso), text(iso)));
}

#[test]
fn nothing_need_come_back_where_there_is_no_answer_and_nothing_that_misleads() {
    let met = |gold: Gold, evidence: &[&str]| {
        let evidence_turns = evidence.iter().map(|id| (*id).to_owned()).collect();
        GoldRecord { gold, evidence_turns, ..GoldRecord::default() }.may_be_met_by_silence()
    };
    let explained = Gold::Unanswerable("nobody said".to_owned());
    assert!(met(Gold::Abstain, &[]) && met(explained.clone(), &[]));
    assert!(!met(Gold::Abstain, &["D1:1"]) && !met(explained, &["D1:1"]) && !met(Gold::Text("x".to_owned()), &[]));
}

#[test]
fn what_a_system_lacks_of_a_filter_is_named() {
    let scopes = vec!["a".to_owned(), "b".to_owned()];
    let asked = Filter { scopes, until: Some("2023-05-08T00:00:00".to_owned()), ..Filter::default() }.parts();
    let has = FilterParts { scope: true, from: true, ..FilterParts::default() };
    assert_eq!(asked.without(has).names(), ["scopes", "until"]);
    assert!(asked.without(FilterParts::ALL).is_empty() && <&Filter>::default().parts().is_empty());
    assert_eq!(
        (asked.and(has).names(), has.or(asked) == FilterParts { tags: false, user: false, ..FilterParts::ALL }),
        (vec!["scope"], true)
    );
}
