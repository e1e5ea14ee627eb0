//! The suite `stress`: a thousand memories in ten banks, asked for while the banks grow, one at a time and several at once; then
//! the same memories again in bulk. What is stored and what is asked is the same for every system and every machine.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    draws::Draws,
    line::Line,
    result::{Figures, Findings, MergeError, OperationResult, Process},
    tally::countable,
};

/// Raised when something else is stored or asked, or counted as what was asked for.
pub const SUITE_VERSION: u32 = 2;
/// Name of the form of its result.
pub const SCHEMA: &str = "bench-stress";
/// Version of that form.
pub const SCHEMA_VERSION: u32 = 1;
/// Of its memories and of what is asked.
pub const SEED: u64 = 1_000_500;
/// Number of banks that the suite fills.
pub const BANKS: u32 = 10;
/// How often the banks grow.
pub const ROUNDS: u32 = 10;
/// Memories by which each bank grows.
pub const GROWTH: u32 = 10;
/// Hits that recalls ask for, those among them that a system can give.
pub const WIDTHS: [u32; 5] = [1, 3, 5, 10, 20];
/// Recalls at once: all of a round's, again for each.
pub const AT_ONCE: [u32; 3] = [1, 4, 16];
/// Memories of each bank that are sent a second time.
pub const DUPLICATES: u32 = 10;

/// A recall of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The bank, from 0.
    pub bank: u32,
    /// The memory, from 0.
    pub index: u32,
    /// Hits.
    pub k: u32,
}

/// The recalls of a round (from 0), in order: each width in each bank once. Fifty, where a system can give all widths.
#[must_use]
pub fn recalls(round: u32, widths: &[u32]) -> Vec<Asked> {
    let mut draws = Draws::new(SEED, u64::from(round));
    let stored = u64::from((round + 1) * GROWTH);
    let mut asked: Vec<Asked> = Vec::new();
    for k in WIDTHS {
        for bank in 0..BANKS {
            // drawn for those too that are left out: the others do not hang on it
            asked.push(Asked { bank, index: draws.below(stored) as u32, k });
        }
    }
    asked.retain(|asked| widths.contains(&asked.k));
    asked
}

/// What came of recalls while the banks had one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Memories in each bank.
    pub memories: u32,
    /// Median latency in milliseconds; `null` when none was served.
    pub median_ms: Option<f64>,
    /// Recalls that were served.
    pub n: u64,
}

/// All recalls that were made so many at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtOnce {
    /// How many at once.
    pub at_once: u32,
    /// Their latencies and what they found.
    pub recall: OperationResult,
    /// What they found, by the hits that they asked for.
    pub found_by_width: BTreeMap<u32, Findings>,
    /// By the size of the banks.
    pub rounds: Vec<Round>,
    /// Growth of the median with the banks, in milliseconds for a thousand memories more in each.
    pub ms_per_1000_memories: Option<Line>,
}

impl AtOnce {
    /// Makes the figures that follow from the others.
    fn count(&mut self) {
        let tally = &self.recall.tally;
        self.recall.figures = Figures::from_tally(tally, 0.0);
        let point = |round: &Round| Some((f64::from(round.memories) / 1e3, round.median_ms?));
        self.ms_per_1000_memories = Line::through(&self.rounds.iter().filter_map(point).collect::<Vec<_>>());
    }
}

/// Items of all banks, as the system counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Those that were stored, each once.
    pub expected: u64,
    /// Those that it says it holds.
    pub found: u64,
}

/// What became of memories that were sent a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Duplicates {
    /// Memories that were sent a second time and taken.
    pub sent: u64,
    /// Those that the system refused: nothing was stored of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Those whose sending failed otherwise: nobody knows what became of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Items before, as the system counts them; `null` when it does not count.
    pub before: Option<Count>,
    /// Items afterwards.
    pub after: Option<Count>,
    /// Recalls that asked for such a memory and were served.
    pub asked: u64,
    /// Those among them that had it once among their hits.
    pub seen_once: u64,
    /// Those that had it more than once, in equal words: what a system has made of a memory is beside it and no second one.
    pub seen_twice: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Duplicates {
    /// Whether what is sent twice is stored once; `None` where nothing tells. What is seen twice is there twice; that nothing is seen
    /// twice tells less than a count.
    #[must_use]
    pub fn stored_once(&self) -> Option<bool> {
        match (self.before, self.after) {
            _ if self.seen_twice > 0 => Some(false),
            (Some(before), Some(after)) if after.found > before.found.max(after.expected) => Some(false),
            // of what was not sent nothing can be there twice
            _ if !self.is_whole() => None,
            (Some(before), Some(after)) if after.found <= before.found => Some(true),
            // more than there were and no more than there should be: the second sending may have put back what the first had lost; and
            // who does not count and hides equal hits may have stored them twice
            _ => None,
        }
    }

    /// Whether it is known of all memories that were to be sent a second time what became of them.
    const fn is_whole(&self) -> bool {
        self.sent + self.refused >= (BANKS * DUPLICATES) as u64
    }

    /// The same in words, with the numbers that leave it open.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (self.stored_once(), self.before, self.after) {
            (Some(true), ..) => "stored once".to_owned(),
            (Some(false), ..) => "stored twice".to_owned(),
            (None, ..) if !self.is_whole() => {
                let (known, all) = (self.sent + self.refused, BANKS * DUPLICATES);
                format!("not known whether stored twice, for only {known} of {all} were taken or refused")
            }
            (None, Some(before), Some(after)) => format!(
                "not known whether stored twice, for {} items were there before and {} afterwards, of {}: what was lost the \
                 first time may only have come back",
                before.found, after.found, after.expected
            ),
            (None, ..) => "the system does not count, and nothing shows that they were stored twice".to_owned(),
        }
    }
}

/// What came of the suite: the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressResult {
    /// Name of the form of this file ([`SCHEMA`]).
    pub schema: String,
    /// Version of that form ([`SCHEMA_VERSION`]).
    pub schema_version: u32,
    /// Version of what is stored and asked ([`SUITE_VERSION`]).
    pub suite_version: u32,
    /// Name of the memory system.
    pub system: String,
    /// Its version, as its adapter says.
    pub system_version: String,
    /// sha256 of the settings that it was built with, as JSON: other settings are another system.
    pub settings_sha256: String,
    /// Who measured it.
    pub process: Process,
    /// Hits that recalls asked for.
    pub widths: Vec<u32>,
    /// The retains, four banks side by side.
    pub retain: OperationResult,
    /// The recalls, by how many were made at once.
    pub at_once: Vec<AtOnce>,
    /// Items of all banks when all was stored; `null` when the system does not count.
    pub stored: Option<Count>,
    /// What was sent a second time.
    pub duplicates: Duplicates,
    /// Why it ended before its time, where the system ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What a reader has to know.
    #[serde(skip_deserializing)]
    pub notes: Vec<String>,
}

impl StressResult {
    /// Makes everything anew that is made of tallies and counts.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.retain.figures = Figures::from_tally(&self.retain.tally, 0.0);
        self.at_once.iter_mut().for_each(AtOnce::count);
        self.notes = self.notes();
        self
    }

    /// The same of a file: other forms and versions are told apart from broken files.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(self) -> Result<Self, MergeError> {
        if self.schema != SCHEMA || self.schema_version != SCHEMA_VERSION {
            let (schema, version) = (&self.schema, self.schema_version);
            return Err(MergeError::Unreadable(format!(
                "has form {schema} {version}, this program reads {SCHEMA} {SCHEMA_VERSION}"
            )));
        }
        if !countable(self.counts()) {
            return Err(MergeError::Unreadable("has counts that no process can have".to_owned()));
        }
        Ok(self.counted())
    }

    /// Everything that it counts.
    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let Duplicates { sent, refused, failed, before, after, asked, seen_once, seen_twice } = self.duplicates;
        let items = [self.stored, before, after].into_iter().flatten().flat_map(|count| [count.expected, count.found]);
        let recalls = self.at_once.iter().flat_map(|at| {
            let findings = at.recall.findings.iter().chain(at.found_by_width.values());
            at.recall.tally.counts().chain(findings.flat_map(|findings| findings.counts()))
        });
        let again = [sent, refused, failed, asked, seen_once, seen_twice];
        self.retain.tally.counts().chain(recalls).chain(items).chain(again)
    }

    /// Whether it is the whole suite: neither a person nor the system has ended it before.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !self.process.interrupted && self.failure.is_none()
    }

    /// What all its recalls found.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let mut all = Findings::default();
        self.at_once.iter().filter_map(|at| at.recall.findings).for_each(|findings| all.add(findings));
        all
    }

    fn notes(&self) -> Vec<String> {
        let (mut notes, findings) = (Vec::new(), self.findings());
        if self.process.interrupted {
            notes.push("interrupted: what was measured until then".to_owned());
        }
        if let Some(why) = &self.failure {
            notes.push(format!("it ended before its time, and this is what was measured until then: {why}"));
        }
        if findings.foreign > 0 {
            notes
                .push(format!("{} recalls found a memory of another bank: banks are not kept apart", findings.foreign));
        }
        if let Some(Count { expected, found }) = self.stored
            && found < expected
        {
            notes.push(format!("{found} of {expected} stored items are there"));
        }
        let unserved: u64 = self.at_once.iter().map(|at| at.recall.tally.unserved()).sum();
        let unserved = unserved + self.retain.tally.unserved();
        if unserved > 0 {
            notes.push(format!("{unserved} operations failed"));
        }
        if self.duplicates.failed > 0 {
            let (failed, all) = (self.duplicates.failed, BANKS * DUPLICATES);
            notes.push(format!("sending {failed} of {all} memories a second time failed"));
        }
        if self.widths.len() < WIDTHS.len() {
            notes.push("the system gives fewer hits than the widest recalls ask for: those are left out".to_owned());
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_hundred_recalls_of_what_is_stored_by_then() {
        let all: Vec<Asked> = (0..ROUNDS).flat_map(|round| recalls(round, &WIDTHS)).collect();
        assert_eq!((all.len(), BANKS * ROUNDS * GROWTH), (500, 1_000));
        for round in 0..ROUNDS {
            let asked = recalls(round, &WIDTHS);
            assert!(asked.iter().all(|asked| asked.index < (round + 1) * GROWTH));
            let narrow: Vec<Asked> = asked.into_iter().filter(|asked| asked.k <= 10).collect();
            assert_eq!(recalls(round, &[1, 3, 5, 10]), narrow, "a system of few hits is asked the same");
        }
    }

    #[test]
    fn whether_duplicates_are_stored_once_is_counted_and_not_guessed() {
        let count = |found| Some(Count { expected: 1_000, found });
        let duplicates = |before, after, seen_once, seen_twice| {
            let sent = Duplicates { sent: 100, asked: 100, ..Duplicates::default() };
            Duplicates { before, after, seen_once, seen_twice, ..sent }
        };
        let of = |before, after, once, twice| duplicates(before, after, once, twice).stored_once();
        assert_eq!(of(count(1_000), count(1_000), 100, 0), Some(true));
        assert_eq!(of(count(1_000), count(1_100), 100, 0), Some(false), "equal hits may be hidden");
        assert_eq!(of(count(1_000), count(1_000), 20, 80), Some(false), "the count may be of distinct items");
        assert_eq!(of(None, None, 20, 80), Some(false));
        assert_eq!(of(None, None, 100, 0), None);
        // a system that loses what it is sent, and replaces by key
        assert_eq!(of(count(687), count(704), 86, 0), None, "what was lost may have come back");
        assert_eq!(of(count(687), count(1_000), 100, 0), None);
        assert_eq!(of(count(687), count(704), 80, 6), Some(false), "what is seen twice is there twice");
        assert_eq!(of(count(980), count(1_050), 100, 0), Some(false), "more than was ever sent");
        assert_eq!(of(count(687), count(687), 86, 0), Some(true));
        let words = duplicates(count(687), count(704), 86, 0).in_words();
        assert!(words.contains("687 items were there before and 704 afterwards, of 1000"), "{words}");
        assert_eq!(duplicates(count(1_000), count(1_100), 0, 100).in_words(), "stored twice");
        assert!(duplicates(None, None, 100, 0).in_words().starts_with("the system does not count"));
    }

    #[test]
    fn what_was_not_sent_a_second_time_is_not_stored_once() {
        let count = |found| Some(Count { expected: 1_000, found });
        let of = |sent, refused, failed, after, seen_twice| Duplicates {
            sent,
            refused,
            failed,
            before: count(1_000),
            after: count(after),
            asked: 100,
            seen_once: 100 - seen_twice,
            seen_twice,
        };
        assert_eq!(of(0, 0, 100, 1_000, 0).stored_once(), None, "all failed");
        assert_eq!(of(99, 0, 1, 1_000, 0).stored_once(), None, "one failed");
        assert_eq!(of(0, 100, 0, 1_000, 0).stored_once(), Some(true), "who refuses what is there has it once");
        assert_eq!(of(60, 40, 0, 1_000, 0).stored_once(), Some(true));
        assert_eq!(of(50, 0, 50, 1_000, 1).stored_once(), Some(false), "what is seen twice is there twice");
        assert_eq!(of(50, 0, 50, 1_050, 0).stored_once(), Some(false), "and so is what is counted twice");
        assert!(of(90, 0, 10, 1_000, 0).in_words().contains("90 of 100 were taken or refused"));
        let old: Duplicates = serde_json::from_str(
            r#"{"sent": 100, "before": null, "after": null, "asked": 100, "seen_once": 1, "seen_twice": 99}"#,
        )
        .expect("is read");
        assert_eq!((old.refused, old.failed, old.stored_once()), (0, 0, Some(false)));
    }
}
