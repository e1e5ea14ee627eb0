//! What of a bank its memory system holds, by the texts that it lists.
//!
//! In come the entries of a bank, what its questions rest on, and pages of items; out comes what was seen in a page
//! ([`Expected::look`]) and what all pages come to ([`Expected::holdings`]). Start reading at [`Expected::of_bank`].
//!
//! A text is there when an item holds it word for word, or when items that are nothing but parts of it hold all of it
//! together. Nothing is guessed: where a system stores in words of its own, what is not found is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bench_proto::{
    canary::{self, Fact},
    dataset::{BankContent, GoldRecord, Question, StreamEntry, Turn},
    failure::Failure,
    step::{
        RetrievedHit,
        listing::{Holdings, MOST_EXAMPLES, Seen},
    },
};

/// Words in a row by which texts are told from each other; shorter texts are looked for as they are.
const GRAM: usize = 5;
/// Longest example in characters.
const EXAMPLE: usize = 160;
/// What systems write around a text to say where it is from.
const FRAME: [&str; 8] = ["user", "assistant", "session", "date", "id", "time", "speaker", "role"];

/// What is looked for in what a bank holds.
#[derive(Debug)]
pub struct Expected {
    texts: Vec<Text>,
    /// By the number of words, grams of texts and where they stand.
    grams: Vec<HashMap<u64, Vec<(u32, u32)>>>,
    /// Grams of everything that was said.
    said: HashSet<u64>,
    /// Words that are said about what was said: dates, names, ids.
    frame: HashSet<u64>,
    /// Question's index → what it rests on.
    needs: BTreeMap<u32, Need>,
    /// Old text and new one, where that was not replaced again.
    updates: Vec<(u32, Option<u32>)>,
    withdrawals: Vec<u32>,
    facts: Vec<Fact>,
}

/// A text that was stored.
#[derive(Debug)]
struct Text {
    id: String,
    session: String,
    words: Vec<u64>,
    /// Replaced or withdrawn since.
    is_gone: bool,
}

/// What a question rests on.
#[derive(Debug, Default)]
struct Need {
    /// Numbers of texts that have to be there, all of them.
    texts: Vec<u32>,
    /// Some of it was never stored.
    never_stored: bool,
    /// Some of it was rightly taken away since, or has no words: what was there when it was asked is not known.
    unknown: bool,
}

fn hash(text: &str) -> u64 {
    // FNV-1a: the same in every process
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn words(text: &str) -> Vec<u64> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(hash).collect()
}

fn gram(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(words.len() as u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// All grams of a text: those of [`GRAM`] words, or the whole of a shorter one.
fn grams_of(words: &[u64]) -> impl Iterator<Item = u64> + '_ {
    words.windows(GRAM.min(words.len()).max(1)).map(gram)
}

fn said_in(turn: &Turn) -> String {
    match &turn.caption {
        Some(caption) => format!("{} [shares an image: {caption}]", turn.text),
        None => turn.text.clone(),
    }
}

/// An item without the date or id that stands before it in brackets.
fn bare(text: &str) -> &str {
    let text = text.trim_start();
    let behind = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    behind.map_or(text, |(_, rest)| rest).trim_start()
}

impl Expected {
    /// What is to be found of a bank after its first `until` entries. `facts` are the canaries of all banks of the run.
    #[must_use]
    pub fn of_bank<'a>(
        content: &BankContent,
        until: u32,
        asked: impl Iterator<Item = (&'a Question, Option<&'a GoldRecord>)>,
        facts: Vec<Fact>,
    ) -> Self {
        let mut expected = Self {
            texts: Vec::new(),
            grams: vec![HashMap::new(); GRAM + 1],
            said: HashSet::new(),
            frame: FRAME.iter().map(|word| hash(word)).collect(),
            needs: BTreeMap::new(),
            updates: Vec::new(),
            withdrawals: Vec::new(),
            facts,
        };
        let stored = &content.entries[..content.entries.len().min(until as usize)];
        let places = expected.take_in(stored);
        expected.need(asked, &places);
        expected.index();
        expected
    }

    /// The texts of all entries; returns where those with an id are, the last of each.
    fn take_in(&mut self, entries: &[StreamEntry]) -> HashMap<String, Vec<u32>> {
        let mut places: HashMap<String, Vec<u32>> = HashMap::new();
        let mut replaced = Vec::new();
        for entry in entries {
            if self.facts.iter().any(|fact| fact.id == entry.id()) {
                continue;
            }
            let gone = match entry {
                StreamEntry::Update { replaces, .. } => places.get(replaces).and_then(|at| at.last().copied()),
                _ => None,
            };
            if let Some(gone) = gone {
                self.texts[gone as usize].is_gone = true;
            }
            match entry {
                StreamEntry::Session(session) => {
                    self.frame_of(&session.id);
                    session.time_text.iter().chain(&session.time).for_each(|time| self.frame_of(time));
                    for turn in &session.turns {
                        let time = session.time_of(turn);
                        time.text.iter().chain(&time.iso).for_each(|time| self.frame_of(time));
                        self.frame_of(&turn.speaker);
                        let at = self.add(&turn.id, &session.id, &said_in(turn));
                        places.insert(turn.id.clone(), vec![at]);
                        places.entry(session.id.clone()).or_default().push(at);
                    }
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    let about = memory.time.iter().chain(&memory.user).chain(&memory.tags).chain(&memory.scopes);
                    about
                        .chain(memory.fields.values())
                        .chain(memory.fields.keys())
                        .for_each(|word| self.frame_of(word));
                    let at = self.add(&memory.id, &memory.id, &memory.text);
                    places.insert(memory.id.clone(), vec![at]);
                    replaced.extend(gone.map(|gone| (gone, at)));
                }
                StreamEntry::Update { memory: None, .. } => self.withdrawals.extend(gone),
            }
        }
        self.updates = replaced
            .into_iter()
            .map(|(old, new)| (old, Some(new).filter(|new| !self.texts[*new as usize].is_gone)))
            .collect();
        places
    }

    fn frame_of(&mut self, text: &str) {
        self.frame.extend(words(text));
    }

    fn add(&mut self, id: &str, session: &str, text: &str) -> u32 {
        let words = words(text);
        self.said.extend(grams_of(&words));
        self.frame.extend(self::words(id));
        self.texts.push(Text { id: id.to_owned(), session: session.to_owned(), words, is_gone: false });
        (self.texts.len() - 1) as u32
    }

    fn need<'a>(
        &mut self,
        asked: impl Iterator<Item = (&'a Question, Option<&'a GoldRecord>)>,
        places: &HashMap<String, Vec<u32>>,
    ) {
        for (question, gold) in asked {
            let Some(gold) = gold else { continue };
            let mut need = Need::default();
            let by_turn = !gold.evidence_turns.is_empty();
            for id in if by_turn { &gold.evidence_turns } else { &gold.evidence_sessions } {
                let Some(at) = places.get(id) else {
                    need.never_stored = true;
                    continue;
                };
                for at in at {
                    let text = &self.texts[*at as usize];
                    // of a session it is not known which of its turns is meant
                    if text.is_gone || text.words.is_empty() || (!by_turn && at_several(places, id)) {
                        need.unknown = true;
                    } else {
                        need.texts.push(*at);
                    }
                }
            }
            if need.never_stored || need.unknown || !need.texts.is_empty() {
                self.needs.insert(question.index, need);
            }
        }
    }

    /// Makes the grams of what is looked for: evidence, what came and what had to go.
    fn index(&mut self) {
        let evidence = self.needs.values().flat_map(|need| need.texts.iter().copied());
        let changed = self.updates.iter().flat_map(|(old, new)| [Some(*old), *new]).flatten();
        let wanted: BTreeSet<u32> = evidence.chain(changed).chain(self.withdrawals.iter().copied()).collect();
        for number in wanted {
            let words = &self.texts[number as usize].words;
            let n = words.len().min(GRAM);
            if n > 0 {
                for (at, some) in words.windows(n).enumerate() {
                    self.grams[n].entry(gram(some)).or_default().push((number, at as u32));
                }
            }
        }
    }

    /// Looks at a page of items.
    #[must_use]
    pub fn look(&self, mut items: Vec<RetrievedHit>) -> Seen {
        let mut seen = Seen { bytes: items.iter().map(|item| item.text.len() as u64).sum(), ..Seen::default() };
        seen.canaries = canary::without(&self.facts, &mut items) as u64;
        seen.items = items.len() as u64;
        let (mut held, mut pieces) = (BTreeSet::new(), BTreeSet::new());
        for item in &items {
            let text = bare(&item.text);
            let words = words(text);
            self.find(item, &words, &mut held, &mut pieces);
            if !self.is_said(&words) {
                seen.unsaid += 1;
                if seen.examples.len() < MOST_EXAMPLES {
                    seen.examples.push(shortened(text));
                }
            }
        }
        pieces.retain(|(number, ..)| !held.contains(number));
        (seen.held, seen.pieces) = (held.into_iter().collect(), pieces.into_iter().collect());
        seen
    }

    /// Which texts an item holds, and of which it is a part.
    fn find(
        &self,
        item: &RetrievedHit,
        words: &[u64],
        held: &mut BTreeSet<u32>,
        pieces: &mut BTreeSet<(u32, u32, u32)>,
    ) {
        for (n, grams) in self.grams.iter().enumerate().filter(|(_, grams)| !grams.is_empty()) {
            for (at, some) in words.windows(n).enumerate() {
                for (number, place) in grams.get(&gram(some)).into_iter().flatten() {
                    let (text, place) = (&self.texts[*number as usize], *place as usize);
                    let all = &text.words;
                    // where it goes on to the left it was found before
                    if at > 0 && place > 0 && words[at - 1] == all[place - 1] {
                        continue;
                    }
                    let same = words[at..].iter().zip(&all[place..]).take_while(|(a, b)| a == b).count();
                    let (begins, ends) = (place == 0, place + same == all.len());
                    if begins && ends {
                        // a word or two stand everywhere: they have to be all, or to be of this place
                        let is_own = item.id == text.id || item.session_id == text.session;
                        if n == GRAM || is_own || words.len() <= n + 2 {
                            held.insert(*number);
                        }
                    } else if n == GRAM && (begins || at == 0) && (ends || at + same == words.len()) {
                        pieces.insert((*number, place as u32, (place + same) as u32));
                    }
                }
            }
        }
    }

    /// Whether nothing stands in an item but what was said, and what is said about that.
    fn is_said(&self, words: &[u64]) -> bool {
        let mut said = vec![false; words.len()];
        for n in 1..=GRAM {
            for (at, some) in words.windows(n).enumerate() {
                if self.said.contains(&gram(some)) {
                    said[at..at + n].fill(true);
                }
            }
        }
        // a part of a text may end between two grams
        let is_frame = |word: &u64| self.frame.contains(word);
        words.iter().zip(said).all(|(word, said)| said || is_frame(word)) || self.is_a_part(words)
    }

    /// Whether an item that is shorter than a gram may be a part of a longer text: too little to say that nobody said it.
    fn is_a_part(&self, words: &[u64]) -> bool {
        words.len() < GRAM
            && self.texts.iter().any(|text| text.words.windows(words.len().max(1)).any(|some| some == words))
    }

    /// What all pages of a bank come to. `cut`: there was more than is listed; `failure`: why the rest is not known.
    #[must_use]
    pub fn holdings<'a>(&self, pages: impl Iterator<Item = &'a Seen>, cut: bool, failure: Option<Failure>) -> Holdings {
        let mut sum = Holdings { cut, failure, ..Holdings::default() };
        let (mut held, mut pieces) = (BTreeSet::new(), BTreeMap::<u32, Vec<(u32, u32)>>::new());
        for page in pages {
            sum.items += page.items;
            sum.canaries += page.canaries;
            sum.unsaid += page.unsaid;
            let more = MOST_EXAMPLES.saturating_sub(sum.examples.len());
            sum.examples.extend(page.examples.iter().take(more).cloned());
            held.extend(page.held.iter().copied());
            for (number, from, to) in &page.pieces {
                pieces.entry(*number).or_default().push((*from, *to));
            }
        }
        for (number, parts) in pieces {
            if self.texts.get(number as usize).is_some_and(|text| covers(parts, text.words.len())) {
                held.insert(number);
            }
        }
        sum.rewrites = sum.items > 0 && sum.unsaid * 2 > sum.items;
        // what is not found is not there, unless not all was seen, or it is there in other words
        let all_seen = !sum.rewrites && !sum.cut && sum.failure.is_none();
        let evidence: BTreeSet<u32> = self.needs.values().flat_map(|need| need.texts.iter().copied()).collect();
        sum.evidence = evidence.len() as u64;
        sum.evidence_held = evidence.iter().filter(|number| held.contains(*number)).count() as u64;
        sum.evidence_unknown = if all_seen { 0 } else { sum.evidence - sum.evidence_held };
        for (index, need) in &self.needs {
            let all_there = need.texts.iter().all(|number| held.contains(number));
            if need.never_stored || (!all_there && all_seen) {
                sum.not_stored.push(*index);
            } else if need.unknown || !all_there {
                sum.unknown.push(*index);
            }
        }
        if all_seen {
            self.changes(&mut sum, &held);
        }
        sum
    }

    /// Counts updates and withdrawals that did not happen.
    fn changes(&self, sum: &mut Holdings, held: &BTreeSet<u32>) {
        let living: HashSet<&[u64]> =
            self.texts.iter().filter(|text| !text.is_gone).map(|text| text.words.as_slice()).collect();
        let words = |number: u32| self.texts[number as usize].words.as_slice();
        // what was said once more, or stands in what took its place, is there by right
        let is_by_right = |old: u32, new: Option<u32>| {
            let old = words(old);
            old.is_empty()
                || living.contains(old)
                || new.is_some_and(|new| words(new).windows(old.len()).any(|w| w == old))
        };
        for (old, new) in &self.updates {
            let (tells_old, tells_new) = (!is_by_right(*old, *new), new.is_some_and(|new| !words(new).is_empty()));
            if !tells_old && !tells_new {
                continue;
            }
            let old_kept = tells_old && held.contains(old);
            let new_missing = tells_new && new.is_some_and(|new| !held.contains(&new));
            sum.updates += 1;
            sum.old_kept += u64::from(old_kept);
            sum.new_missing += u64::from(new_missing);
            sum.wrong_updates += u64::from(old_kept || new_missing);
        }
        for old in self.withdrawals.iter().filter(|old| !is_by_right(**old, None)) {
            sum.withdrawals += 1;
            sum.not_withdrawn += u64::from(held.contains(old));
        }
    }
}

/// Whether an id names a session of several turns.
fn at_several(places: &HashMap<String, Vec<u32>>, id: &str) -> bool {
    places.get(id).is_some_and(|at| at.len() > 1)
}

/// Whether parts leave no word of a text out.
fn covers(mut parts: Vec<(u32, u32)>, len: usize) -> bool {
    parts.sort_unstable();
    let end = parts.into_iter().fold(0, |end, (from, to)| if from <= end { end.max(to) } else { end });
    end as usize >= len
}

fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXAMPLE) {
        Some((at, _)) => format!("{} …", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{Memory, Session};

    use super::*;

    fn turn(id: &str, text: &str) -> Turn {
        Turn { id: id.to_owned(), speaker: "Ann".to_owned(), text: text.to_owned(), ..Turn::default() }
    }

    fn memory(id: &str, text: &str) -> Memory {
        Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() }
    }

    fn item(id: &str, text: &str) -> RetrievedHit {
        RetrievedHit { id: id.to_owned(), text: text.to_owned(), ..RetrievedHit::default() }
    }

    fn question(index: u32, evidence: &[&str]) -> (Question, GoldRecord) {
        let gold = GoldRecord {
            evidence_turns: evidence.iter().map(|id| (*id).to_owned()).collect(),
            ..GoldRecord::default()
        };
        (Question { index, ..Question::default() }, gold)
    }

    fn bank(entries: Vec<StreamEntry>) -> BankContent {
        BankContent { entries, ..BankContent::default() }
    }

    fn look(content: &BankContent, asked: &[(Question, GoldRecord)], items: &[RetrievedHit]) -> Holdings {
        let asked = asked.iter().map(|(question, gold)| (question, Some(gold)));
        let expected = Expected::of_bank(content, u32::MAX, asked, Vec::new());
        // a page for each item: what is in none alone is found over all of them
        let pages: Vec<Seen> = items.iter().map(|item| expected.look(vec![item.clone()])).collect();
        expected.holdings(pages.iter(), false, None)
    }

    const BOAT: &str = "I bought a red boat in May, and it is still leaking";
    const KITE: &str = "My sister flew her old kite over the harbour";

    fn conversation() -> BankContent {
        let session = Session {
            id: "D1".to_owned(),
            time_text: Some("1:15 pm on 8 May, 2023".to_owned()),
            turns: vec![turn("D1:1", BOAT), turn("D1:2", KITE), turn("D1:3", "Yes!")],
            ..Session::default()
        };
        bank(vec![StreamEntry::Session(session)])
    }

    #[test]
    fn evidence_is_there_when_an_item_holds_it_and_what_was_dropped_is_missed_exactly() {
        let asked =
            [question(0, &["D1:1"]), question(1, &["D1:2"]), question(2, &["D1:1", "D1:2"]), question(3, &["D9:9"])];
        let all = [item("a", &format!("[1:15 pm on 8 May, 2023] Ann: {BOAT}")), item("b", &format!("Ann: {KITE}"))];
        let whole = look(&conversation(), &asked, &all);
        assert_eq!((whole.items, whole.evidence, whole.evidence_held, whole.unsaid), (2, 2, 2, 0));
        assert_eq!((whole.not_stored, whole.unknown), (vec![3], vec![]));
        let half = look(&conversation(), &asked, &all[..1]);
        assert_eq!((half.evidence, half.evidence_held, half.evidence_unknown), (2, 1, 0));
        assert_eq!(half.not_stored, [1, 2, 3]);
        assert_eq!(look(&conversation(), &asked, &[]).not_stored, [0, 1, 2, 3]);
    }

    #[test]
    fn a_text_in_parts_is_there_and_texts_that_are_alike_are_no_parts_of_it() {
        let asked = [question(0, &["D1:1"])];
        let parts = [item("D1:1", "[8 May] I bought a red boat in"), item("D1:1", "May, and it is still leaking")];
        assert_eq!(look(&conversation(), &asked, &parts).evidence_held, 1);
        assert_eq!(look(&conversation(), &asked, &parts[..1]).not_stored, [0]);
        let alike = [
            item("x", "I bought a red boat in June, and it is still leaking"),
            item("y", "Bob bought a red boat in May, and it is still leaking"),
        ];
        assert_eq!(look(&conversation(), &asked, &alike).evidence_held, 0);
        let session = format!("Ann: {BOAT}\nAnn: {KITE}\nAnn: Yes!");
        assert_eq!(look(&conversation(), &asked, &[item("D1", &session)]).evidence_held, 1);
    }

    #[test]
    fn what_nobody_said_is_counted_unless_the_system_has_words_of_its_own() {
        let asked = [question(0, &["D1:2"])];
        let said = [item("a", &format!("Ann: {BOAT}")), item("b", "Yes!")];
        let invented = item("c", "Ann is allergic to peanuts and lives in Oslo");
        let some = look(&conversation(), &asked, &[&said[..], std::slice::from_ref(&invented)].concat());
        assert_eq!((some.unsaid, some.rewrites, some.examples.len()), (1, false, 1));
        let own = look(&conversation(), &asked, &[invented, item("d", "The boat of Ann leaks since it was bought")]);
        assert!(own.rewrites);
        assert_eq!((own.evidence_held, own.evidence_unknown, own.not_stored, own.unknown), (0, 1, vec![], vec![0]));
    }

    #[test]
    fn updates_and_withdrawals_that_did_not_happen_are_counted() {
        let update = |old: &str, new: Option<Memory>| StreamEntry::Update { replaces: old.to_owned(), memory: new };
        let content = bank(vec![
            StreamEntry::Memory(memory("m1", "The office is on the third floor of the tower")),
            StreamEntry::Memory(memory("m2", "Lunch is served at noon in the old hall")),
            StreamEntry::Memory(memory("m3", "The printer stands beside the blue door of room nine")),
            update("m1", Some(memory("m1b", "The office is on the fifth floor of the annex"))),
            update("m2", Some(memory("m2", "Lunch is served at one in the new canteen"))),
            update("m3", None),
        ]);
        let asked = [question(0, &["m1"]), question(1, &["m1b"])];
        let right = [
            item("m1b", "The office is on the fifth floor of the annex"),
            item("m2", "Lunch is served at one in the new canteen"),
        ];
        let counts = |held: &Holdings| {
            (held.updates, held.old_kept, held.new_missing, held.wrong_updates, held.withdrawals, held.not_withdrawn)
        };
        let done = look(&content, &asked, &right);
        assert_eq!(counts(&done), (2, 0, 0, 0, 1, 0));
        assert_eq!((done.not_stored, done.unknown), (vec![], vec![0]), "what was replaced may have been there");
        let kept = [
            item("m1", "The office is on the third floor of the tower"),
            item("m2", "Lunch is served at noon in the old hall"),
            item("m2", "Lunch is served at one in the new canteen"),
            item("m3", "The printer stands beside the blue door of room nine"),
        ];
        assert_eq!(counts(&look(&content, &asked, &kept)), (2, 2, 1, 2, 1, 1));
    }

    #[test]
    fn what_was_not_seen_is_not_known() {
        let asked = [question(0, &["D1:1"]), question(1, &["D1:2"])];
        let content = conversation();
        let asked = asked.iter().map(|(question, gold)| (question, Some(gold)));
        let expected = Expected::of_bank(&content, u32::MAX, asked, Vec::new());
        let page = expected.look(vec![item("a", BOAT)]);
        for (cut, failure) in [(true, None), (false, Some(Failure::transient("system_http_500", "no")))] {
            let held = expected.holdings([&page].into_iter(), cut, failure);
            assert_eq!((held.not_stored, held.unknown, held.evidence_unknown), (vec![], vec![1], 1));
        }
        let none = expected.holdings(std::iter::empty(), false, None);
        assert_eq!((none.evidence, none.evidence_held, none.not_stored), (2, 0, vec![0, 1]));
    }

    #[test]
    fn canaries_are_no_facts_that_are_stored() {
        let fact = Fact {
            id: "N1".to_owned(),
            text: "Nareno Lumegis keeps the lead soldier at Troarandale.".to_owned(),
            question: String::new(),
            cue: String::new(),
            sign: "troarandale".to_owned(),
        };
        let expected = Expected::of_bank(&conversation(), u32::MAX, std::iter::empty(), vec![fact.clone()]);
        let seen = expected.look(vec![item("N1:1", &format!("Ann: {}", fact.text)), item("a", BOAT)]);
        assert_eq!((seen.items, seen.canaries, seen.unsaid), (1, 1, 0));
    }
}
