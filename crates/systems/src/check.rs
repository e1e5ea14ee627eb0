//! `systems check`: drives a live system through everything that a run asks of it and says what was done and seen.
//!
//! Small banks of made-up facts are stored under names of their own and removed at the end. Every step is one line:
//! pass, fail, or "cannot" for what the system does not claim to do.

mod changes;
mod claims;
pub(crate) mod heard;
mod hits;

use std::{collections::BTreeSet, time::Instant};

use bench_proto::{
    dataset::{BankContent, Session, StreamEntry, Turn},
    failure::Failure,
    step::RetrievedHit,
};
use serde::Serialize;

use self::claims::Claim;
pub use self::claims::Form;
use crate::{
    BankRef, Counted, ListCursor, MemorySystem, Recall, RecallQuery,
    filling::{Filled, fill_behind},
};

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The system does what it claims.
    Pass,
    /// The system does not do what it claims.
    Fail,
    /// The system does not claim to do it.
    Cannot,
}

impl Outcome {
    /// For tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Cannot => "cannot",
        }
    }
}

/// A line of the check: what was looked at, and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Name of the check.
    pub check: &'static str,
    /// How it went.
    pub outcome: Outcome,
    /// What was done and seen.
    pub detail: String,
    /// Milliseconds.
    pub ms: u64,
}

/// Calls whose latency is measured.
const LATENCY_CALLS: usize = 10;
/// Pages of a listing after which it has no end: a bank has eight turns.
const MOST_PAGES: u32 = 50;

/// A result of a check: what was seen, or what is wrong.
type Seen = Result<(Outcome, String), String>;

fn pass(detail: impl Into<String>) -> Seen {
    Ok((Outcome::Pass, detail.into()))
}

fn cannot(detail: impl Into<String>) -> Seen {
    Ok((Outcome::Cannot, detail.into()))
}

/// Facts that no model knows and no other bank holds.
const RED: &[&str] = &[
    "My sister Ottilie keeps a tame heron called Brunswick.",
    "What a strange pet. Where does it sleep?",
    "In the old bathtub behind the pottery in Quillfeather Lane.",
    "The password of the boat house is marmalade-seventeen.",
    "Zoë paid 1.234,50 € for the 風鈴 at the café in Łódź 🎐.",
    "My bicycle Hortensia is painted turquoise.",
];
/// What a later session says about something in the first one.
const LATER: &str = "I painted my bicycle Hortensia anew today: it is vermilion now.";
/// The same in the second bank, whose first sessions are asked about before it is stored.
const LATER_IN_BLUE: &str = "I painted my bicycle Hortensia anew today: it is ochre now.";
const LATER_COLOUR: &str = "ochre";
/// Sessions of the second bank that are stored before it is asked for the first time.
const EARLIER: usize = 2;
/// Who says all of it.
const SPEAKERS: [&str; 2] = ["Ann", "Bo"];
const BLUE: &[&str] = &[
    "My neighbour Fenwick collects barometers from shipwrecks.",
    "How many has he got by now?",
    "Forty-one, the newest one comes from the schooner Petrel.",
    "He moved to Gullhaven in the spring.",
];

/// What a check is told beside the system.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Hits that a run asks for.
    pub top_k: u32,
    /// The system's file names where the id of a hit stands.
    pub names_ids: bool,
    /// The system finds nothing but what a question names: each search names the speakers of the banks.
    pub by_names: bool,
    /// What the system is written in: in that it is told what would claim an ability.
    pub form: Form,
}

/// Runs all checks. `name` begins the names of the banks that are made.
pub async fn run(system: &dyn MemorySystem, name: &str, told: Told) -> Vec<Step> {
    let (red, blue, green) = (bank(name, "red", RED), bank(name, "blue", BLUE), changes::bank(name));
    let grey = hits::bank(name, told.top_k.min(system.capabilities().max_k.unwrap_or(u32::MAX)));
    let mut checks = Checks { system, told, red, blue, green, grey, steps: Vec::new(), said: BTreeSet::new() };
    heard::listening(checks.all()).await;
    checks.steps
}

struct Checks<'a> {
    system: &'a dyn MemorySystem,
    told: Told,
    red: BankRef,
    blue: BankRef,
    green: BankRef,
    grey: BankRef,
    steps: Vec<Step>,
    /// What was remarked already.
    said: BTreeSet<String>,
}

fn bank(name: &str, colour: &str, lines: &[&str]) -> BankRef {
    let turn = |(at, line): (usize, &&str)| Turn {
        id: format!("D1:{}", at + 1),
        speaker: SPEAKERS[at % 2].to_owned(),
        text: (*line).to_owned(),
        ..Turn::default()
    };
    let session = |number: usize, turns: Vec<Turn>| {
        StreamEntry::Session(Session {
            id: format!("D{number}"),
            time_text: Some(format!("{number}:15 pm on {number} May, 2023")),
            time: Some(format!("2023-05-{number:02}T13:15:00")),
            turns,
            ..Session::default()
        })
    };
    let mut long = turn((0, &"The long story of the lighthouse keeper's notebook:"));
    long.id = "D2:1".to_owned();
    long.text = format!(
        "{} {} It ends with the word xylograph.",
        long.text,
        "the lamp was lit and the sea was calm. ".repeat(180)
    );
    let later = if colour == "blue" { LATER_IN_BLUE } else { LATER };
    let later = Turn { id: "D3:1".to_owned(), ..turn((0, &later)) };
    let content = BankContent {
        bank_id: colour.to_owned(),
        speakers: SPEAKERS.map(str::to_owned).into(),
        entries: vec![
            session(1, lines.iter().enumerate().map(turn).collect()),
            session(2, vec![long]),
            session(3, vec![later]),
        ],
    };
    bank_of(name, content)
}

fn bank_of(name: &str, content: BankContent) -> BankRef {
    BankRef::outside_of_runs(&format!("{name}-{}", content.bank_id), content)
}

fn entries(bank: &BankRef) -> &[StreamEntry] {
    bank.content.as_deref().map_or(&[], |content| &content.entries)
}

/// The begin of a text.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn said(failure: &Failure) -> String {
    failure.to_string()
}

/// That not all was stored the first time, and what came of the second.
fn lost(first: Counted, second: Option<Counted>) -> String {
    let then = second.map(|second| format!(", {} when all was sent a second time", second.found)).unwrap_or_default();
    format!(
        "{} of {} items were stored{then}: as long as some are lost, whether storing again stores twice cannot be told",
        first.found, first.expected
    )
}

fn has(hits: &[RetrievedHit], word: &str) -> bool {
    hits.iter().any(|hit| hit.text.to_lowercase().contains(&word.to_lowercase()))
}

impl Checks<'_> {
    fn note(&mut self, check: &'static str, begun: Instant, seen: Seen) -> bool {
        let (outcome, mut detail) = seen.unwrap_or_else(|wrong| (Outcome::Fail, wrong));
        for remark in heard::take_remarks() {
            if self.said.insert(remark.about) {
                detail.push_str("; note: ");
                detail.push_str(&remark.text);
            }
        }
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.steps.push(Step { check, outcome, detail, ms });
        outcome != Outcome::Fail
    }

    async fn all(&mut self) {
        macro_rules! step {
            ($name:literal, $check:expr) => {{
                let begun = Instant::now();
                let seen = $check.await;
                self.note($name, begun, seen)
            }};
        }
        if !step!("health", async { self.system.health().await.map_err(|f| said(&f)).and_then(pass) }) {
            return;
        }
        if !step!("store", self.store_red()) {
            self.clean().await;
            return;
        }
        step!("ready is true", self.ready_is_true());
        step!("counts", self.counts());
        step!("lists", self.lists());
        step!("unicode and length", self.unicode_and_length());
        step!("ids come back", self.ids());
        step!("order", self.order());
        step!("event time", self.event_time());
        step!("limits", self.limits());
        step!("as many as asked", self.as_many_as_asked());
        step!("repeat", self.repeat());
        step!("the future", self.future());
        step!("isolation", self.isolation());
        if step!("store changes", self.store_green()) {
            step!("updates", self.updates());
            step!("withdrawals", self.withdrawals());
            step!("filters", self.filters());
        }
        step!("latency", self.latency());
        step!("real answers", self.real_answers());
        step!("reset", self.reset());
        self.clean().await;
    }

    /// What it does not claim to do, with what would claim it.
    fn unclaimed(&self, what: &str, claim: Claim) -> Seen {
        match claim.line(self.told.form).filter(|_| self.system.capabilities().remote) {
            Some(line) => cannot(format!("{what}; to claim it: {line}")),
            None => cannot(what),
        }
    }

    fn does_not_search(&self) -> Seen {
        self.unclaimed("it does not search, it only answers", claims::RECALL)
    }

    async fn recall(&self, bank: &BankRef, text: &str, k: u32) -> Result<Recall, String> {
        self.recall_of(bank, entries(bank).len(), text, k).await
    }

    /// The same of the first entries of a bank: a built-in system finds what a query may see of the whole bank.
    async fn recall_of(&self, bank: &BankRef, visible: usize, text: &str, k: u32) -> Result<Recall, String> {
        let visible_entries = u32::try_from(visible).unwrap_or(u32::MAX);
        let text = if self.told.by_names { format!("{}: {text}", SPEAKERS.join(", ")) } else { text.to_owned() };
        let query = RecallQuery {
            question_id: "check",
            text: &text,
            time_text: Some("1:15 pm on 9 June, 2023"),
            k,
            visible_entries,
            ..RecallQuery::default()
        };
        self.system.recall(bank, &query).await.map_err(|f| said(&f))
    }

    async fn fill(&self, bank: &BankRef) -> Result<String, String> {
        self.fill_part(bank, 0..entries(bank).len()).await
    }

    /// Stores some of a bank's entries, those before them being stored, and waits until all can be found.
    async fn fill_part(&self, bank: &BankRef, part: std::ops::Range<usize>) -> Result<String, String> {
        let (before, until) = (part.start, part.end);
        let some = entries(bank).get(before..until).unwrap_or_default();
        let Filled { polls, proven, returned } =
            fill_behind(self.system, bank, some, before).await.map_err(|f| said(&f))?;
        Ok(match (proven, returned) {
            (true, _) => format!("ready after {polls} polls, proven"),
            (false, true) => "storing returned, and nothing was asked".to_owned(),
            (false, false) => format!("ready after {polls} polls, promised only"),
        })
    }

    async fn store_red(&mut self) -> Seen {
        let handle = self.system.open_bank(&self.red).await.map_err(|f| said(&f))?;
        self.red.handle = Some(handle);
        let ready = self.fill(&self.red).await?;
        pass(format!("made a bank, stored 3 sessions with {} turns; {ready}", RED.len() + 2))
    }

    async fn ready_is_true(&self) -> Seen {
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let hits = self.recall(&self.red, "Where does the heron Brunswick sleep?", 10).await?.hits;
        if hits.is_empty() {
            return Err("it said that it was ready, and a search for what was stored found nothing".to_owned());
        }
        if has(&hits, "Brunswick") || has(&hits, "bathtub") {
            return pass(format!("searched for a stored fact and found it among {} hits", hits.len()));
        }
        Err(format!("{} hits, none of them with the stored fact; the first: {}", hits.len(), hits[0].text))
    }

    async fn counts(&self) -> Seen {
        let all = u32::try_from(entries(&self.red).len()).unwrap_or(u32::MAX);
        match self.system.verify(&self.red, all).await.map_err(|f| said(&f))? {
            None => self.unclaimed(
                "it cannot tell how much a bank holds: that something is lost is seen by canaries alone",
                claims::COUNT,
            ),
            Some(counted) if counted.found < counted.expected => {
                Err(format!("{} of {} stored items are there", counted.found, counted.expected))
            }
            Some(counted) => pass(format!("{} items, {} were stored", counted.found, counted.expected)),
        }
    }

    /// Whether a listing of a bank has an end, and all that was stored in it, and nothing else.
    async fn lists(&self) -> Seen {
        if !self.system.capabilities().lists {
            return self.unclaimed(
                "it does not list what a bank holds: of what a question misses it is not known whether it was stored",
                claims::LIST,
            );
        }
        let all = u32::try_from(entries(&self.red).len()).unwrap_or(u32::MAX);
        let (mut from, mut listed, mut pages) = (ListCursor::default(), Vec::new(), 0);
        loop {
            let page = self.system.list(&self.red, all, &from).await.map_err(|f| said(&f))?;
            pages += 1;
            listed.extend(page.items);
            match page.next {
                Some(next) if pages < MOST_PAGES => from = next,
                Some(_) => return Err(format!("after {pages} pages with {} items it has no end", listed.len())),
                None => break,
            }
        }
        if let Some(hit) = listed.iter().find(|hit| has(std::slice::from_ref(*hit), "barometer")) {
            return Err(format!("it lists what is in another bank: {}", short(&hit.text)));
        }
        let missing = RED.iter().chain([&LATER]).find(|line| !has(&listed, line));
        match missing {
            None => pass(format!("{pages} pages with {} items hold every turn that was stored", listed.len())),
            Some(line) if listed.is_empty() => Err(format!("it lists nothing; '{}' was stored", short(line))),
            Some(line) => pass(format!(
                "{pages} pages with {} items; not all is there word for word, such as '{}'",
                listed.len(),
                short(line)
            )),
        }
    }

    async fn unicode_and_length(&self) -> Seen {
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let hits = self.recall(&self.red, "What did Zoë pay for the 風鈴 in Łódź?", 10).await?.hits;
        if !has(&hits, "風鈴") || !has(&hits, "🎐") {
            return Err("a turn with letters of other scripts did not come back as it was stored".to_owned());
        }
        let hits = self.recall(&self.red, "lighthouse keeper's notebook xylograph", 10).await?.hits;
        if has(&hits, "xylograph") || has(&hits, "lamp was lit") {
            return pass("other scripts come back unchanged, a text of 7,000 letters can be found");
        }
        Err("a text of 7,000 letters cannot be found".to_owned())
    }

    /// Of two facts, the later one must not be lost behind the earlier one.
    async fn order(&self) -> Seen {
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let hits = self.recall(&self.red, "What colour is the bicycle Hortensia painted?", 10).await?.hits;
        match (has(&hits, "turquoise"), has(&hits, "vermilion")) {
            (true, true) => pass(
                "two sessions contradict each other: both are found, in the order of their dates it is clear which holds",
            ),
            (false, true) => pass("two sessions contradict each other: the later one has replaced the earlier one"),
            (true, false) => Err("two sessions contradict each other: only the earlier one is found".to_owned()),
            (false, false) => Err("neither of two sessions about one thing is found".to_owned()),
        }
    }

    async fn event_time(&self) -> Seen {
        let capabilities = self.system.capabilities();
        if !capabilities.recalls {
            return self.does_not_search();
        }
        let hits = self.recall(&self.red, "tame heron Brunswick", 10).await?.hits;
        match (has(&hits, "2023"), capabilities.event_times) {
            (true, _) => pass("the date of the session comes back with the text"),
            (false, true) => pass("event times are taken over by a field of their own"),
            (false, false) => {
                self.unclaimed("it takes no event times, and dates do not come back with the text", claims::TIMES)
            }
        }
    }

    async fn limits(&self) -> Seen {
        let capabilities = self.system.capabilities();
        if !capabilities.recalls || capabilities.ignores_k {
            return cannot("it is not asked for a number of hits");
        }
        let few = self.recall(&self.red, "heron bathtub boat password bicycle", 2).await?;
        if few.hits.len() > 2 && !capabilities.token_budget {
            return Err(format!("2 hits were asked for, {} came", few.hits.len()));
        }
        // what is beyond k is cut before anybody else sees it
        let came = match heard::beyond_k() {
            Some(beyond) if beyond.was_told => {
                return Err(format!(
                    "2 hits asked for, {} came: cut to 2; it is told how many, and sends more with every recall",
                    beyond.came
                ));
            }
            Some(beyond) => format!("{} came: cut to 2", beyond.came),
            None => "at most 2 came".to_owned(),
        };
        let Some(most) = capabilities.max_k else {
            return pass(format!("2 hits asked for, {came}; no upper limit is known"));
        };
        self.recall(&self.red, "heron", most).await.map_err(|e| format!("{most} hits, its own limit: {e}"))?;
        match self.recall(&self.red, "heron", most + 1).await {
            Ok(_) => Err(format!("{} hits were asked for and not refused", most + 1)),
            Err(_) => pass(format!("2 hits asked for, {came}; {most} are allowed and more is refused")),
        }
    }

    async fn repeat(&self) -> Seen {
        if !self.system.capabilities().retain_idempotent {
            return self.unclaimed(
                "storing again may store twice: after an unknown outcome a bank begins anew",
                claims::REPEAT,
            );
        }
        let all = u32::try_from(entries(&self.red).len()).unwrap_or(u32::MAX);
        let before = self.system.verify(&self.red, all).await.map_err(|f| said(&f))?;
        self.fill(&self.red).await?;
        let after = self.system.verify(&self.red, all).await.map_err(|f| said(&f))?;
        let hits = self.recall(&self.red, "the password of the boat house", 10).await?.hits;
        let times = hits.iter().filter(|hit| hit.text.contains("marmalade")).count();
        match (before, after) {
            // up to what was sent, the second sending may have put back what the first had lost
            (Some(before), Some(after)) if after.found > before.found.max(before.expected) => {
                Err(format!("stored again: {} items became {}", before.found, after.found))
            }
            _ if times > 1 => Err(format!("stored again: one fact came back {times} times")),
            (Some(before), after) if before.found < before.expected => Err(lost(before, after)),
            _ => pass("stored everything a second time: nothing is there twice"),
        }
    }

    /// What is stored later is not known earlier.
    async fn future(&mut self) -> Seen {
        if !self.system.capabilities().banks {
            return cannot("it has one memory for everything, and that holds all of it by now");
        }
        let handle = self.system.open_bank(&self.blue).await.map_err(|f| said(&f))?;
        self.blue.handle = Some(handle);
        self.fill_part(&self.blue, 0..EARLIER).await?;
        let question = "What colour is the bicycle Hortensia painted?";
        let is_later = |text: &str| text.to_lowercase().contains(LATER_COLOUR);
        if self.system.capabilities().recalls {
            let hits = self.recall_of(&self.blue, EARLIER, question, 10).await?.hits;
            if let Some(hit) = hits.iter().find(|hit| is_later(&hit.text)) {
                return Err(format!("a search found what is stored only later: {}", short(&hit.text)));
            }
        }
        if self.system.capabilities().answers {
            let entries = u32::try_from(EARLIER).unwrap_or(u32::MAX);
            let query = RecallQuery {
                question_id: "check",
                text: question,
                k: 10,
                visible_entries: entries,
                ..RecallQuery::default()
            };
            match self.system.answer(&self.blue, &query).await {
                Ok(answer) if is_later(&answer.text) => {
                    return Err(format!("an answer tells what is stored only later: {}", short(&answer.text)));
                }
                _ => {}
            }
        }
        pass("two of three sessions were stored: nothing is known of the third")
    }

    async fn isolation(&self) -> Seen {
        if !self.system.capabilities().banks {
            return self.unclaimed("it has one memory for everything: one bank per run", claims::BANKS);
        }
        if self.blue.handle.is_none() {
            return Err("a second bank could not be stored".to_owned());
        }
        self.fill_part(&self.blue, EARLIER..entries(&self.blue).len()).await?;
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let leaked = self.recall(&self.blue, "Where does the heron Brunswick sleep?", 10).await?.hits;
        if has(&leaked, "Brunswick") || has(&leaked, "bathtub") {
            return Err("a search in one bank found what is in another".to_owned());
        }
        let own = self.recall(&self.blue, "barometers from shipwrecks", 10).await?.hits;
        if !has(&own, "barometer") {
            return Err("a second bank does not find what was stored in it".to_owned());
        }
        pass("two banks with the same ids: each finds its own and nothing of the other")
    }

    async fn latency(&self) -> Seen {
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let mut times = Vec::with_capacity(LATENCY_CALLS);
        for _ in 0..LATENCY_CALLS {
            let begun = Instant::now();
            self.recall(&self.red, "the password of the boat house", 10).await?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let ms = |at: usize| times[at].as_secs_f64() * 1e3;
        pass(format!(
            "{LATENCY_CALLS} recalls: median {:.1} ms, slowest {:.1} ms",
            ms(LATENCY_CALLS / 2),
            ms(LATENCY_CALLS - 1)
        ))
    }

    /// A daemon without a key may have become a fake model that answers the same to everything.
    async fn real_answers(&self) -> Seen {
        if !self.system.capabilities().answers {
            return self.unclaimed("it does not answer by itself", claims::ANSWER);
        }
        let mut answers = Vec::new();
        for text in [
            "Where does the heron Brunswick sleep?",
            "What is the password of the boat house?",
            "What did Zoë buy in Łódź?",
        ] {
            let query = RecallQuery { question_id: "check", text, k: 10, visible_entries: 2, ..RecallQuery::default() };
            let answer = self.system.answer(&self.red, &query).await;
            match answer {
                Ok(answer) => answers.push(answer.text),
                Err(failure) if failure.code == "system_refused" && answers.is_empty() => {
                    return cannot(format!("it does not answer by itself: {}", failure.message));
                }
                Err(failure) => return Err(said(&failure)),
            }
        }
        if answers.iter().all(|answer| answer.trim().is_empty()) {
            return Err("all answers are empty".to_owned());
        }
        if answers.iter().all(|answer| *answer == answers[0]) {
            return Err(format!(
                "three different questions got the same answer, '{}': a fake model may have taken the place of the real one",
                short(&answers[0])
            ));
        }
        pass(format!("three questions got different answers; the first: {}", short(&answers[0])))
    }

    /// Whether a bank finds one of its own facts; nothing where it does not search or fails.
    async fn finds(&self, bank: &BankRef, query: &str, word: &str) -> Option<bool> {
        if bank.handle.is_none() || !self.system.capabilities().recalls {
            return None;
        }
        self.recall(bank, query, 10).await.ok().map(|recall| has(&recall.hits, word))
    }

    async fn reset(&mut self) -> Seen {
        let (heron, barometers) = (("tame heron Brunswick", "Brunswick"), ("barometers from shipwrecks", "barometer"));
        // what an earlier step has broken is not this one's doing
        let had_own = self.finds(&self.red, heron.0, heron.1).await;
        let other_had_own = self.finds(&self.blue, barometers.0, barometers.1).await;
        match self.system.reset_bank(&self.red).await {
            Err(failure) if failure.code == "system_cannot" => {
                return self.unclaimed("a bank cannot be removed: clean up by hand", claims::RESET);
            }
            Err(failure) => return Err(said(&failure)),
            Ok(()) => {}
        }
        let capabilities = self.system.capabilities();
        if !capabilities.recalls || !capabilities.banks || capabilities.from_items {
            return pass("the bank was removed");
        }
        if had_own != Some(true) {
            return cannot("the bank was removed; that it is gone cannot be seen, for it found nothing before");
        }
        // a bank that is gone may be an error or an empty answer
        if self.finds(&self.red, heron.0, heron.1).await == Some(true) {
            return Err("a bank that was removed still answers".to_owned());
        }
        if other_had_own == Some(true) && self.finds(&self.blue, barometers.0, barometers.1).await != Some(true) {
            return Err("removing one bank took something from another".to_owned());
        }
        self.red.handle = None;
        match other_had_own {
            Some(true) => pass("the bank is gone, the other one is untouched"),
            _ => pass("the bank is gone"),
        }
    }

    /// Removes what is left, as far as it can be removed.
    async fn clean(&mut self) {
        for bank in [&self.red, &self.blue, &self.green, &self.grey] {
            if bank.handle.is_some() {
                let _ = self.system.reset_bank(bank).await;
            }
        }
    }
}
