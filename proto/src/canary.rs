//! Canaries (P45): harmless made-up facts that a run stores beside its dataset, so that a memory system which loses,
//! mixes up or withholds what it was given is noticed by what happens to them.
//!
//! In come a run's spec and a bank; out come the same bank with its facts, and what a fact is asked by and known by.
//! Everything follows from the dataset, the bank and the fact's number: whoever plans and whoever asks make the same
//! facts. Start reading at [`plant`]; the worker asks, and keeps facts out of what questions get ([`without`]).

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    dataset::{BankContent, Memory, Question, Session, StreamEntry, Turn},
    step::RetrievedHit,
};

/// Version of the facts: whatever changes a fact or its place raises it.
pub const CANARY_VERSION: u32 = 1;
/// Facts of a run. Of so many a system that loses a tenth of what it is given loses two in 98.6 % of all runs.
pub const CANARY_FACTS: u32 = 60;
/// Facts that neighbours are asked for, of the whole run.
pub const FOREIGN_FACTS: u32 = 30;
/// Recalls of the whole run for which every bank must have as many hits as are asked for.
pub const WIDE_RECALLS: u32 = 10;
/// Words of a text that is left over once a fact is cut out of it: fewer are its date and its speaker.
const FEWEST_WORDS_LEFT: usize = 8;

/// The canaries of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanarySpec {
    /// [`CANARY_VERSION`] of who planned it.
    pub version: u32,
    /// Facts over all banks; 0: none, and nothing is asked either.
    pub facts: u32,
    /// Most facts of one bank, where the system gives hardly more hits than questions ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_in_bank: Option<u32>,
}

impl CanarySpec {
    /// No canaries at all, since somebody wants none.
    pub const OFF: Self = Self { version: CANARY_VERSION, facts: 0, most_in_bank: None };

    /// The facts that a bank of a run over so many banks holds; `dataset` is the hash of what is measured.
    #[must_use]
    pub fn facts_in(&self, dataset: &str, banks: u64, bank_no: u32, bank_id: &str) -> Vec<Fact> {
        let most = self.most_in_bank.unwrap_or(u32::MAX) as usize;
        let numbers = Self::part(bank_no, banks, self.facts).take(most);
        numbers.map(|number| Fact::new(dataset, bank_id, number)).collect()
    }

    /// How many facts of a neighbour a bank is asked for, and how many recalls in it must bring as many hits as are
    /// asked for.
    #[must_use]
    pub fn recalls(&self, banks: u64, bank_no: u32) -> (u32, u32) {
        if Self::part(bank_no, banks, self.facts).is_empty() {
            return (0, 0);
        }
        let with_facts = banks.min(self.facts.into()).max(1);
        let each = |whole: u32| u64::from(whole).div_ceil(with_facts) as u32;
        (each(FOREIGN_FACTS), each(WIDE_RECALLS))
    }

    /// The part of `whole` that falls to a bank, from the first number to the one after the last: even over all banks.
    fn part(bank_no: u32, banks: u64, whole: u32) -> std::ops::Range<u32> {
        let banks = banks.max(1);
        let until = |banks_before: u64| (banks_before.min(banks) * u64::from(whole) / banks) as u32;
        until(u64::from(bank_no))..until(u64::from(bank_no) + 1)
    }
}

/// A made-up fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Id of its entry in the bank: of a session with one turn, or of a memory.
    pub id: String,
    /// What is stored.
    pub text: String,
    /// What asks for it, in words of a question.
    pub question: String,
    /// The same in its own words, without what it tells.
    pub cue: String,
    /// What it tells: a word that nothing else holds, in lower case.
    pub sign: String,
}

const FIRST: [&str; 20] = [
    "Tav", "Quor", "Bren", "Mir", "Zel", "Dro", "Fen", "Gal", "Hux", "Jor", "Kel", "Lum", "Nar", "Osk", "Pem", "Ruv",
    "Sib", "Tro", "Vex", "Wim",
];
const SECOND: [&str; 20] = [
    "abo", "edo", "imu", "opa", "ula", "ysi", "ara", "eno", "ivu", "oli", "uma", "ybe", "aco", "egi", "ihu", "ojo",
    "uko", "azi", "eru", "osu",
];
const PLACES: [&str; 20] = [
    "rwick", "dholm", "nford", "lstead", "mbury", "ckham", "tmere", "sgate", "rfell", "ndale", "xbeck", "vcliff",
    "lmoor", "gthorpe", "bcombe", "pworth", "zhurst", "tcroft", "kshaw", "nbourne",
];
const THINGS: [&str; 60] = [
    "brass barometer",
    "wicker lantern",
    "copper sextant",
    "walnut metronome",
    "tin weathervane",
    "ivory abacus",
    "velvet footstool",
    "oak birdcage",
    "pewter teapot",
    "silk parasol",
    "cedar canoe",
    "marble sundial",
    "leather globe",
    "porcelain owl",
    "iron bellows",
    "glass xylophone",
    "bamboo ladder",
    "felt accordion",
    "silver thimble",
    "clay ocarina",
    "linen sail",
    "rubber anchor",
    "granite pestle",
    "paper kite",
    "bronze gong",
    "straw beehive",
    "amber chessboard",
    "chalk compass",
    "woollen tapestry",
    "maple dulcimer",
    "nickel telescope",
    "quartz hourglass",
    "canvas hammock",
    "pine sledge",
    "enamel kettle",
    "cork lifebuoy",
    "jade inkwell",
    "willow cradle",
    "steel tuning fork",
    "birch spinning wheel",
    "cotton puppet",
    "zinc watering can",
    "mahogany bookend",
    "plaster mermaid",
    "slate wheelbarrow",
    "horn snuffbox",
    "rattan trunk",
    "opal doorknob",
    "beech rolling pin",
    "satin curtain",
    "lead soldier",
    "ash toboggan",
    "pearl opera glass",
    "elm mousetrap",
    "coral paperweight",
    "jute doormat",
    "ebony flute",
    "denim tent",
    "basalt birdbath",
    "crystal decanter",
];

impl Fact {
    /// The fact with a number that is its own in the run.
    fn new(dataset: &str, bank_id: &str, number: u32) -> Self {
        let hash = |of: &str| Sha256::digest(format!("bench-canary-v1\n{dataset}\n{of}"));
        // turned by the dataset, and different for each number all the same: 400 pairs of syllables
        let (turn, own) = (hash("all"), hash(&format!("{bank_id}\n{number}")));
        let at = |turn: u8, number: u32| ((u32::from(turn) + number) % 20) as usize;
        let (low, high) = (number, number / 20);
        let person = format!(
            "{}{} {}{}{}",
            FIRST[at(turn[0], low)],
            SECOND[at(turn[1], high)],
            FIRST[at(turn[2], low)],
            SECOND[at(turn[3], high)],
            ["n", "r", "s", "th"][usize::from(own[0] % 4)]
        );
        let place =
            format!("{}{}{}", FIRST[at(turn[4], low)], SECOND[at(turn[5], high)], PLACES[usize::from(own[1] % 20)]);
        let thing = THINGS[(number as usize + usize::from(turn[6])) % THINGS.len()];
        let id: String = own[2..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            id: format!("N{id}"),
            text: format!("{person} keeps the {thing} at {place}."),
            question: format!("Where does {person} keep the {thing}?"),
            cue: format!("{person} keeps the {thing} at"),
            sign: place.to_lowercase(),
        }
    }

    /// Id of its turn, where it is a session.
    fn turn_id(&self) -> String {
        format!("{}:1", self.id)
    }

    /// Whether a text tells it, rewritten or not.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.sign)
    }

    /// The entry that stores it, said like the one beside it and at the time of that one.
    fn entry(&self, beside: &StreamEntry, speaker: &str) -> StreamEntry {
        match beside {
            StreamEntry::Session(session) => StreamEntry::Session(Session {
                id: self.id.clone(),
                part: 0,
                time_text: session.time_text.clone(),
                time: session.time.clone(),
                turns: vec![Turn {
                    id: self.turn_id(),
                    speaker: speaker.to_owned(),
                    text: self.text.clone(),
                    ..Turn::default()
                }],
            }),
            StreamEntry::Memory(_) | StreamEntry::Update { .. } => {
                let like = beside.memory().cloned().unwrap_or_default();
                StreamEntry::Memory(Memory { id: self.id.clone(), text: self.text.clone(), ..like })
            }
        }
    }
}

/// Puts facts into a bank, spread over all of it that is retained before its last question, and moves the points at
/// which questions are asked behind the facts that came before them. A fact follows an entry and has its time, where
/// there is more than one entry; no session is torn.
pub fn plant(facts: &[Fact], content: &mut BankContent, questions: &mut [Question]) {
    let all = content.entries.len();
    let asked = questions.iter().map(|question| question.ask_after as usize).max().unwrap_or(0).min(all);
    if asked == 0 || facts.is_empty() {
        return;
    }
    let speaker = speaker_of(content);
    let begins = |place: usize| content.entries.get(place).is_none_or(|entry| !entry.continues());
    let mut places: Vec<usize> = Vec::with_capacity(facts.len());
    for (number, _) in facts.iter().enumerate() {
        // the middle of its share of the stream; before the next entry that begins something, which may be none
        let wanted = (2 * number + 1) * asked / (2 * facts.len());
        let forwards = (wanted.max(1)..asked).find(|place| begins(*place));
        places.push(forwards.or_else(|| (1..wanted).rev().find(|place| begins(*place))).unwrap_or(0));
    }
    places.sort_unstable();
    for question in &mut *questions {
        let before = places.iter().filter(|place| **place < question.ask_after as usize).count();
        question.ask_after += u32::try_from(before).unwrap_or(u32::MAX);
    }
    let entries = std::mem::take(&mut content.entries);
    let planted =
        places.iter().zip(facts).map(|(place, fact)| (*place, fact.entry(&entries[place.saturating_sub(1)], &speaker)));
    let mut planted = planted.collect::<Vec<_>>().into_iter().peekable();
    content.entries.reserve(all + facts.len());
    for (place, entry) in entries.into_iter().enumerate() {
        while let Some((_, fact)) = planted.next_if(|(wanted, _)| *wanted == place) {
            content.entries.push(fact);
        }
        content.entries.push(entry);
    }
}

/// Who says facts: the first of those who speak.
fn speaker_of(content: &BankContent) -> String {
    let speaks = |entry: &StreamEntry| match entry {
        StreamEntry::Session(session) => session.turns.first().map(|turn| turn.speaker.clone()),
        StreamEntry::Memory(_) | StreamEntry::Update { .. } => None,
    };
    content.entries.iter().find_map(speaks).unwrap_or_default()
}

/// Hits without the facts of their bank: those that are one are left out, and a text that holds one beside other things
/// keeps the rest. Returns how many were left out.
pub fn without(facts: &[Fact], hits: &mut Vec<RetrievedHit>) -> usize {
    let before = hits.len();
    if !facts.is_empty() {
        hits.retain_mut(|hit| {
            if facts.iter().any(|fact| hit.session_id == fact.id || hit.id == fact.id || hit.id == fact.turn_id()) {
                return false;
            }
            if !facts.iter().any(|fact| fact.is_in(&hit.text)) {
                return true;
            }
            hit.text = cut_out(facts, &hit.text);
            hit.text.split_whitespace().count() >= FEWEST_WORDS_LEFT
        });
    }
    before - hits.len()
}

/// A text without the sentences that hold facts; lines stay lines.
fn cut_out(facts: &[Fact], text: &str) -> String {
    let holds = |part: &str| facts.iter().any(|fact| fact.is_in(part));
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if !holds(line) {
            lines.push(line.to_owned());
            continue;
        }
        let rest: String = line.split_inclusive(['.', '!', '?', ';']).filter(|sentence| !holds(sentence)).collect();
        if !rest.trim().is_empty() {
            lines.push(rest);
        }
    }
    lines.join("\n")
}

/// Digits in the id of a fact, behind its letter.
const ID_DIGITS: usize = 12;

/// Whether an entry is a fact that is sent at the end of the turns before it, to a system that stores turns by themselves and
/// several in a request: what is cut off such requests takes facts along. Every second fact of a conversation is; the others
/// are sent by themselves.
#[must_use]
pub fn goes_along(entry: &StreamEntry) -> bool {
    let StreamEntry::Session(session) = entry else { return false };
    let [turn] = session.turns.as_slice() else { return false };
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let digits = session.id.strip_prefix('N').filter(|of| of.len() == ID_DIGITS && of.bytes().all(is_digit));
    let is_even = |of: &str| u64::from_str_radix(of, 16).is_ok_and(|number| number.is_multiple_of(2));
    digits.is_some_and(is_even) && turn.id == format!("{}:1", session.id) && turn.text.contains(" keeps the ")
}

/// Whether an entry of a bank is one of its facts.
#[must_use]
pub fn is_fact(facts: &[Fact], entry: &StreamEntry) -> bool {
    facts.iter().any(|fact| fact.id == entry.id())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SPEC: CanarySpec = CanarySpec { version: CANARY_VERSION, facts: CANARY_FACTS, most_in_bank: None };

    /// The facts of a bank of a run over so many.
    fn facts_in(banks: u64, bank_no: u32, bank_id: &str) -> Vec<Fact> {
        SPEC.facts_in("sha", banks, bank_no, bank_id)
    }

    fn session(id: &str, part: u32) -> StreamEntry {
        let turn =
            Turn { id: format!("{id}:{part}"), speaker: "Ann".to_owned(), text: "Hello".to_owned(), ..Turn::default() };
        let time = Some(format!("2023-05-{part:02}T10:00:00"));
        StreamEntry::Session(Session { id: id.to_owned(), part, time, turns: vec![turn], ..Session::default() })
    }

    fn question(ask_after: u32) -> Question {
        Question { ask_after, ..Question::default() }
    }

    #[test]
    fn p45_all_banks_together_hold_sixty_facts_that_nobody_confuses() {
        for banks in [1, 2, 7, 10, 60, 61, 500] {
            let all: Vec<Fact> =
                (0..banks as u32).flat_map(|bank| facts_in(banks, bank, &format!("conv-{bank}"))).collect();
            assert_eq!(all.len(), 60, "{banks} banks");
            let of_all = |of: fn(&Fact) -> &String| all.iter().map(of).collect::<BTreeSet<_>>().len();
            assert_eq!((of_all(|f| &f.id), of_all(|f| &f.sign), of_all(|f| &f.cue)), (60, 60, 60));
            for fact in &all {
                assert!(fact.is_in(&fact.text));
                assert!(!fact.is_in(&fact.question) && !fact.is_in(&fact.cue), "an echo of the query is no memory");
                assert_eq!(all.iter().filter(|other| other.is_in(&fact.text)).count(), 1, "{}", fact.text);
            }
            let asked: (u32, u32) = (0..banks as u32).fold((0, 0), |(foreign, wide), bank| {
                let (more_foreign, more_wide) = SPEC.recalls(banks, bank);
                (foreign + more_foreign, wide + more_wide)
            });
            assert!(asked.0 >= FOREIGN_FACTS && asked.1 >= WIDE_RECALLS, "{banks} banks: {asked:?}");
            assert!(asked.0 <= 60 && asked.1 <= 60, "{banks} banks: {asked:?}");
        }
    }

    #[test]
    fn p45_facts_follow_from_the_dataset_and_their_first_one_is_this() {
        assert_eq!(facts_in(10, 3, "conv-3"), facts_in(10, 3, "conv-3"));
        assert_ne!(facts_in(10, 3, "conv-3"), facts_in(10, 3, "conv-4"));
        assert_eq!((CanarySpec::OFF.facts_in("sha", 10, 3, "b"), CanarySpec::OFF.recalls(10, 3)), (vec![], (0, 0)));
        // what a version means: another text, id or place raises CANARY_VERSION
        let first = Fact::new("sha", "conv-26", 0);
        assert_eq!((first.text.as_str(), first.id.as_str(), first.sign.as_str()), FIRST_FACT);
        let few = CanarySpec { most_in_bank: Some(2), ..SPEC };
        assert_eq!(few.facts_in("sha", 10, 3, "conv-3")[..], facts_in(10, 3, "conv-3")[..2]);
    }

    const FIRST_FACT: (&str, &str, &str) =
        ("Nareno Lumegis keeps the lead soldier at Troarandale.", "N061224324190", "troarandale");

    #[test]
    fn p45_facts_are_spread_and_questions_move_behind_them() {
        let facts = facts_in(10, 0, "b");
        assert_eq!(facts.len(), 6);
        let mut content = BankContent {
            entries: vec![
                session("S1", 0),
                session("S2", 0),
                session("S2", 1),
                session("S2", 2),
                session("S3", 0),
                session("S4", 0),
            ],
            ..BankContent::default()
        };
        // the last entry comes after the last question: nobody would store a fact that is there
        let mut questions = vec![question(0), question(1), question(3), question(5)];
        let before = content.clone();
        plant(&facts, &mut content, &mut questions);
        let is_planted = |entry: &StreamEntry| is_fact(&facts, entry);
        let own: Vec<&StreamEntry> = content.entries.iter().filter(|entry| !is_planted(entry)).collect();
        assert_eq!(own, before.entries.iter().collect::<Vec<_>>(), "nothing of the dataset is moved or lost");
        assert_eq!(content.entries.iter().filter(|entry| is_planted(entry)).count(), 6);
        for (at, entry) in content.entries.iter().enumerate() {
            assert!(!(entry.continues() && is_planted(&content.entries[at - 1])), "no session is torn");
            if let (StreamEntry::Session(fact), true) = (entry, is_planted(entry)) {
                let earlier = content.entries[..at].iter().rev().find(|entry| !is_planted(entry)).expect("one before");
                let StreamEntry::Session(earlier) = earlier else { panic!("a session") };
                assert_eq!((&fact.time, &fact.turns[0].speaker), (&earlier.time, &"Ann".to_owned()));
            }
        }
        // each question still sees the same of the dataset
        for (question, seen) in questions.iter().zip([0, 1, 3, 5]) {
            let visible = &content.entries[..question.ask_after as usize];
            assert_eq!(visible.iter().filter(|entry| !is_planted(entry)).count(), seen);
        }
        let stored = &content.entries[..questions[3].ask_after as usize];
        assert_eq!(stored.iter().filter(|entry| is_planted(entry)).count(), 6, "all are retained");
    }

    #[test]
    fn p45_the_smallest_banks_hold_facts_too_and_an_empty_memory_stays_empty() {
        let facts = facts_in(1, 0, "b");
        let memory = Memory { id: "m1".into(), user: Some("u".into()), tags: vec!["t".into()], ..Memory::default() };
        let mut content = BankContent { entries: vec![StreamEntry::Memory(memory)], ..BankContent::default() };
        let mut questions = vec![question(1)];
        plant(&facts, &mut content, &mut questions);
        assert_eq!((content.entries.len(), questions[0].ask_after), (61, 61));
        let like = content.entries[0].memory().expect("a memory");
        assert_eq!((like.user.as_deref(), like.tags.len()), (Some("u"), 1), "a system may want a user of each memory");
        let mut asked_before_all = vec![question(0)];
        let mut content = BankContent { entries: vec![session("S1", 0)], ..BankContent::default() };
        plant(&facts, &mut content, &mut asked_before_all);
        assert_eq!((content.entries.len(), asked_before_all[0].ask_after), (1, 0));
    }

    #[test]
    fn p45_facts_do_not_reach_who_answers() {
        let facts = facts_in(10, 0, "b");
        let hit = |id: &str, session: &str, text: &str| RetrievedHit {
            id: id.into(),
            session_id: session.into(),
            text: text.into(),
            ..RetrievedHit::default()
        };
        let own = hit("D1:1", "D1", "[8 May] Ann: I bought a boat. It is blue.");
        let fact = &facts[0];
        let beside = format!("Ann bought a boat in Oslo, and it is blue and old. {} The boat leaks.", fact.text);
        let mut hits = vec![
            own.clone(),
            hit(&format!("{}:1", fact.id), &fact.id, &fact.text),
            hit("hit-3", "", &format!("[1:15 pm on 8 May, 2023] Ann: {}", fact.text)),
            hit("hit-4", "", &format!("It was said that something is kept at {}", fact.sign.to_uppercase())),
            hit("hit-5", "", &beside),
            hit("hit-6", "", &format!("{}\n{}\nAnn has a boat that is old and blue.", facts[1].text, fact.text)),
        ];
        assert_eq!(without(&facts, &mut hits), 3);
        assert_eq!(hits[0], own);
        assert_eq!(hits[1].text, "Ann bought a boat in Oslo, and it is blue and old. The boat leaks.");
        assert_eq!(hits[2].text, "Ann has a boat that is old and blue.");
        assert_eq!(without(&[], &mut hits), 0);
    }
}
