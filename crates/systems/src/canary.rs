//! Canaries of memory systems that are another process (P45): recalls that show whether a bank holds what it was given,
//! whether another bank of the run holds it too, and whether as many hits come as are asked for.
//!
//! What is looked for are facts that the run has stored for it (`bench_proto::canary`), and in runs that store none
//! turns of the dataset: a turn is looked for by the first half of its words, and whoever brings back rare words of its
//! second half has it. No model of the run is called, and a failure of a recall costs nothing but its own answer.

use std::collections::{BTreeSet, HashMap};

use bench_proto::{
    canary::Fact,
    dataset::{BankContent, StreamEntry},
    step::RetrievedHit,
};

use crate::Capabilities;

/// Banks of a run in which turns are looked for: the first ones.
pub const CANARY_BANKS: u32 = 10;
/// Recalls of each: one in each third of the bank, and one in another bank.
pub const CANARY_RECALLS: u32 = THIRDS as u32 + 1;

const THIRDS: usize = 3;
/// Letters of a word that tells something.
const TELLING: usize = 4;
/// Words of the second half that are looked for, and how many of them are enough.
const MOST_SIGNS: usize = 4;
const ENOUGH_SIGNS: usize = 2;
/// Longest text that is searched for, in bytes: systems bound what they search for.
const LONGEST_QUERY: usize = 1_000;

/// Whether a canary can be sent into banks of a system at all, or why not.
///
/// # Errors
/// The reason, in words of the report.
pub fn possible(capabilities: &Capabilities) -> Result<(), &'static str> {
    if !capabilities.remote {
        Err("the system is computed from the stored items")
    } else if !capabilities.recalls {
        Err("the system does not search")
    } else if capabilities.recall_mutates {
        Err("a recall changes what the system holds")
    } else {
        Ok(())
    }
}

/// Something to look for.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// What asks for it.
    pub query: String,
    /// The same in other words, for who does not find it by these.
    pub again: Option<String>,
    /// Rare words of what is not in the query, in lower case.
    signs: Vec<String>,
    /// How many of them tell it.
    enough: usize,
    /// All of it, blanks made one, in lower case.
    whole: String,
}

impl Probe {
    /// What looks for a fact.
    #[must_use]
    pub fn of_fact(fact: &Fact) -> Self {
        Self {
            query: fact.question.clone(),
            again: Some(fact.cue.clone()),
            signs: vec![fact.sign.clone()],
            enough: 1,
            whole: spaced(&fact.text),
        }
    }

    /// Whether a hit tells of it, rewritten or not.
    #[must_use]
    pub fn is_in(&self, hit: &RetrievedHit) -> bool {
        let words = words_of(&hit.text);
        self.signs.iter().filter(|sign| words.contains(*sign)).count() >= self.enough
    }

    /// Whether a hit holds it as it was stored.
    #[must_use]
    pub fn is_whole_in(&self, hit: &RetrievedHit) -> bool {
        spaced(&hit.text).contains(&self.whole)
    }
}

/// A query that shares words with more turns than hits are asked for, of as many entries at least, so that the bank has
/// as many hits for it whether a system keeps turns or sessions; where there are fewer entries, of as many turns, for a
/// system that stores each by itself (`by_turn`). `number` tells several of them apart. None where the bank is too small.
#[must_use]
pub fn wide(content: &BankContent, k: u32, number: u32, by_turn: bool) -> Option<String> {
    let (wanted, number) = (k as usize, number as usize);
    let mut stored: Vec<Vec<String>> = texts_of(content).into_iter().filter(|texts| !texts.is_empty()).collect();
    let is_split = by_turn && stored.len() < wanted;
    if is_split {
        stored = stored.into_iter().flatten().map(|text| vec![text]).collect();
        let shift = number % stored.len().max(1);
        stored.rotate_left(shift);
    }
    if wanted < 2 || stored.len() < wanted {
        return None;
    }
    let query = words_of_many(&stored, wanted, number);
    if is_split {
        // who searches by words finds those that share one, and a query of bounded length may hold one of too few
        let asked = words_of(&query);
        let shares = |texts: &&Vec<String>| texts.iter().any(|text| !words_of(text).is_disjoint(&asked));
        return (stored.iter().filter(shares).count() >= wanted).then_some(query);
    }
    (!query.is_empty()).then_some(query)
}

/// Telling words of twice as many turns as are wanted, of as many of the stored things as there are.
fn words_of_many(stored: &[Vec<String>], wanted: usize, number: usize) -> String {
    let (turns, chosen) = (2 * wanted, stored.len().min(2 * wanted));
    let each = (LONGEST_QUERY / 8 / turns).clamp(1, 6);
    let mut query = String::new();
    for turn in 0..turns {
        let texts = &stored[turn % chosen * stored.len() / chosen];
        let text = &texts[(number + turn / chosen) % texts.len()];
        let telling = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= TELLING);
        for word in telling.take(each) {
            if query.len() + word.len() >= LONGEST_QUERY {
                return query;
            }
            if !query.is_empty() {
                query.push(' ');
            }
            query.push_str(word);
        }
    }
    query
}

/// The first probe of whose signs another bank was given too few to know the turn, with those that it was not given.
#[must_use]
pub fn strange_to(other: &BankContent, probes: &[Probe]) -> Option<Probe> {
    let known: BTreeSet<String> = texts(other).iter().flat_map(|text| words_of(text)).collect();
    probes.iter().find_map(|probe| {
        let signs: Vec<String> = probe.signs.iter().filter(|sign| !known.contains(*sign)).cloned().collect();
        let enough = signs.len() >= ENOUGH_SIGNS;
        enough.then(|| Probe {
            query: probe.query.clone(),
            again: None,
            whole: probe.whole.clone(),
            signs,
            enough: ENOUGH_SIGNS,
        })
    })
}

/// In each third of a bank the turn with the most words of its own in its second half; none where there are too few.
#[must_use]
pub fn probes(content: &BankContent) -> Vec<Probe> {
    let texts = texts(content);
    let mut seen_in: HashMap<String, u32> = HashMap::new();
    for word in texts.iter().flat_map(|text| words_of(text)) {
        *seen_in.entry(word).or_default() += 1;
    }
    let third = texts.len().div_ceil(THIRDS).max(1);
    let best = |part: &[String]| {
        let made = part.iter().filter_map(|text| probe(text, &seen_in));
        // of equal ones the first, so that every process sends the same
        made.reduce(|best, next| if next.signs.len() > best.signs.len() { next } else { best })
    };
    texts.chunks(third).filter_map(best).collect()
}

fn probe(text: &str, seen_in: &HashMap<String, u32>) -> Option<Probe> {
    let all: Vec<&str> = text.split_whitespace().collect();
    let (first, second) = all.split_at(all.len() / 2);
    let query = first.join(" ");
    let asked = words_of(&query);
    if asked.len() < ENOUGH_SIGNS {
        return None;
    }
    let own = |word: &String| !asked.contains(word) && seen_in.get(word) == Some(&1);
    let signs: Vec<String> = words_of(&second.join(" ")).into_iter().filter(own).take(MOST_SIGNS).collect();
    (signs.len() > ENOUGH_SIGNS).then(|| Probe { query, again: None, signs, enough: ENOUGH_SIGNS, whole: spaced(text) })
}

/// The texts of all turns and memories that stay, without speakers.
fn texts(content: &BankContent) -> Vec<String> {
    texts_of(content).into_iter().flatten().collect()
}

/// The same of each entry.
fn texts_of(content: &BankContent) -> Vec<Vec<String>> {
    let replaced: BTreeSet<&str> = content
        .entries
        .iter()
        .filter_map(|entry| match entry {
            StreamEntry::Update { replaces, .. } => Some(replaces.as_str()),
            StreamEntry::Session(_) | StreamEntry::Memory(_) => None,
        })
        .collect();
    let of = |entry: &StreamEntry| match entry {
        StreamEntry::Session(session) => session.turns.iter().map(|turn| turn.text.clone()).collect(),
        StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. }
            if !replaced.contains(memory.id.as_str()) =>
        {
            vec![memory.text.clone()]
        }
        StreamEntry::Memory(_) | StreamEntry::Update { .. } => Vec::new(),
    };
    content.entries.iter().map(of).collect()
}

/// Its telling words in lower case, each once.
fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= TELLING);
    words.map(str::to_lowercase).collect()
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{Session, Turn};

    use super::*;

    fn bank(lines: &[&str]) -> BankContent {
        let turn = |(at, line): (usize, &&str)| Turn {
            id: format!("D1:{}", at + 1),
            speaker: "Ann".to_owned(),
            text: (*line).to_owned(),
            ..Turn::default()
        };
        let turns = lines.iter().enumerate().map(turn).collect();
        let session = Session { id: "D1".to_owned(), turns, ..Session::default() };
        BankContent { bank_id: "b".to_owned(), speakers: vec![], entries: vec![StreamEntry::Session(session)] }
    }

    fn hit(text: &str) -> RetrievedHit {
        RetrievedHit { text: text.to_owned(), ..RetrievedHit::default() }
    }

    #[test]
    fn p45_a_turn_is_known_by_the_half_that_was_not_asked_for() {
        let heron = "My sister Ottilie keeps a tame heron called Brunswick beside the pottery kiln";
        let content = bank(&["Hello there!", heron, "Bye for now"]);
        let probes = probes(&content);
        assert_eq!(probes.len(), 1, "short turns tell nothing");
        assert_eq!(probes[0].query, "My sister Ottilie keeps a tame");
        assert_eq!(probes[0].signs, ["beside", "brunswick", "called", "heron"]);
        assert!(probes[0].is_in(&hit(&format!("[8 May] Ann: {heron}"))));
        assert!(probes[0].is_in(&hit("Ottilie has a heron, Brunswick")), "rewritten, and still known");
        assert!(!probes[0].is_in(&hit("My sister Ottilie keeps a tame")), "an echo of the query is no memory");
        assert!(spaced(&format!("Ann:  {heron}")).contains(&probes[0].whole));
    }

    #[test]
    fn p45_of_a_bank_of_few_sessions_a_system_that_stores_turns_can_give_as_many_hits_as_there_are_turns() {
        let lines: Vec<String> = (0..60).map(|n| format!("Moth{n} likes the lantern of the boat house")).collect();
        let content = bank(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let known = |query: &str| {
            let asked = words_of(query);
            lines.iter().filter(|line| !words_of(line).is_disjoint(&asked)).count()
        };
        let query = wide(&content, 50, 0, true).expect("has sixty turns");
        assert!(query.len() < LONGEST_QUERY && known(&query) >= 50, "{query}");
        assert_ne!(wide(&content, 50, 1, true), Some(query), "each of them asks for others");
        assert_eq!(wide(&content, 50, 0, false), None, "one session has one hit");
        assert_eq!(wide(&content, 61, 0, true), None);
        let short = bank(&["Hi!"; 60]);
        assert_eq!(wide(&short, 50, 0, true), None, "no word of them can be asked for");
    }

    #[test]
    fn p45_words_that_stand_in_other_turns_too_are_no_signs() {
        let line = "The lantern festival in Quillfeather was crowded with painted paper dragons yesterday";
        assert_eq!(probes(&bank(&[line])).len(), 1);
        assert!(probes(&bank(&[line, line])).is_empty());
    }
}
