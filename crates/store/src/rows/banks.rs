//! Banks of a plan, and the items that hold their data.

use std::collections::BTreeSet;

pub use bench_proto::bank::BankState;
use bench_proto::{ids::Sha256Hash, stop::Opened};
use serde::{Deserialize, Serialize};

/// A compressed piece of a dataset, shared by all runs that need it (P16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// sha256 of `bytes`.
    pub hash: Sha256Hash,
    /// JSON, uncompressed; the store compresses.
    pub bytes: Vec<u8>,
}

impl Item {
    /// The item of some bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { hash: Sha256Hash::of_bytes(&bytes), bytes }
    }
}

/// A part of a bank's stream between two question points (P6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Number of stream entries retained when the segment is complete (cumulative).
    pub until: u32,
    /// Indexes of the sample's questions that may be asked then, ascending.
    pub questions: Vec<u32>,
}

/// Questions of a bank that are not asked yet because a look of their run comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Later {
    /// By round, ascending.
    pub rounds: Vec<LaterRound>,
    /// The run has stopped: they are asked only when it goes on to its end.
    #[serde(default)]
    pub left_out: bool,
}

/// Questions of a segment that are asked in one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterRound {
    /// Number of the round, from 1: those of round 0 are not asked later.
    pub round: u32,
    /// Position of their segment.
    pub segment: u32,
    /// Indexes of the questions, ascending.
    pub questions: Vec<u32>,
}

/// A bank that is to be planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBank {
    /// Number within the run: the order of work (longest first).
    pub bank_no: u32,
    /// The dataset's id.
    pub bank_id: String,
    /// Item with the [`bench_proto::dataset::BankContent`].
    pub content: Sha256Hash,
    /// Item with the sample's questions.
    pub questions: Sha256Hash,
    /// Item with their gold records.
    pub gold: Sha256Hash,
    /// Segments; at least one.
    pub segments: Vec<Segment>,
    /// Where its memory system holds it already; `None` where the run fills it.
    pub filled: Option<FilledBank>,
    /// Questions that are asked after a look, beside those of its segments; `None` where all are in these.
    pub later: Option<Later>,
}

/// Whether nothing of a bank is asked before a look opens its questions: until then it is not filled either.
#[must_use]
pub fn waits_for_a_look(segments: &[Segment], later: Option<&Later>) -> bool {
    later.is_some() && segments.iter().all(|segment| segment.questions.is_empty())
}

/// A bank that was filled before the run began, and that the run asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledBank {
    /// Its name in the memory system.
    pub name: String,
    /// The memory system's handle of it.
    pub handle: String,
    /// Row of the bank that filled it; `None` for one that no run of this store has filled.
    pub by: Option<i64>,
}

impl FilledBank {
    /// Whether a generation of a bank is this one: the first, and of what no run has filled every one, for nothing is ever stored
    /// instead of it.
    #[must_use]
    pub const fn holds_in(&self, generation: i64) -> bool {
        generation <= 1 || self.by.is_none()
    }
}

/// A bank as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankRow {
    /// Number within the run.
    pub bank_no: u32,
    /// The dataset's id.
    pub bank_id: String,
    /// Row id of the bank: part of its names in memory systems ([`BankRow::name_of`], P5).
    pub bank_row: i64,
    /// See [`NewBank`].
    pub content: Sha256Hash,
    /// See [`NewBank`].
    pub questions: Sha256Hash,
    /// See [`NewBank`].
    pub gold: Sha256Hash,
    /// See [`NewBank`].
    pub segments: Vec<Segment>,
    /// Generation: raised when it cannot be known what was written.
    pub generation: i64,
    /// The memory system's handle of the current generation.
    pub handle: Option<String>,
    /// State of the bank, as its tasks and checkpoints have it (P7).
    pub state: BankState,
    /// Stream entries retained in the current generation.
    pub position: u32,
    /// Current segment.
    pub segment: u32,
    /// Recalls of the current segment that are still open: the next segment opens at 0.
    pub open_recalls: i64,
    /// Why it failed.
    pub reason: Option<String>,
    /// From which generation on which number is part of the name: `0:71 ` is the store's own, `2:83 ` the incarnation that it had
    /// when the second one began, as often as it changed (P44).
    pub namespaces: String,
    /// The generation began in an earlier incarnation of the store: what was written since may be forgotten (P44).
    pub outdated: bool,
    /// Where its first generation was filled, when that was before the run began.
    pub filled: Option<FilledBank>,
    /// See [`NewBank`].
    pub later: Option<Later>,
}

impl BankRow {
    /// Whether nothing of it is asked before a look, or was when its run stopped.
    #[must_use]
    pub fn waits_for_a_look(&self) -> bool {
        waits_for_a_look(&self.segments, self.later.as_ref())
    }

    /// Whether a look may still open questions of its current segment: its next one waits for them.
    #[must_use]
    pub fn holds_later_questions(&self) -> bool {
        self.later.as_ref().is_some_and(|later| !later.left_out)
    }

    /// Whether it ends with this segment in a run whose banks end with one for checks alone: it follows the last question and retains
    /// nothing.
    #[must_use]
    pub fn closes_with(&self, segment: u32) -> bool {
        let at = segment as usize;
        let of = |at: usize| self.segments.get(at).map(|segment| (segment.until, segment.questions.is_empty()));
        at > 0
            && at + 1 == self.segments.len()
            && of(at).is_some_and(|(until, nothing_asked)| nothing_asked && of(at - 1).map(|(u, _)| u) == Some(until))
    }

    /// Indexes of the questions that its run left out when it stopped.
    #[must_use]
    pub fn left_out(&self) -> BTreeSet<u32> {
        let later = self.later.iter().filter(|later| later.left_out);
        later.flat_map(|later| &later.rounds).flat_map(|round| &round.questions).copied().collect()
    }

    /// The bank when so much is opened; `None` where that changes nothing. Questions of a segment that is past, because the run had
    /// stopped, get a segment of their own behind all others, which retains nothing.
    #[must_use]
    pub fn with_opened(&self, opened: Opened) -> Option<Self> {
        let later = self.later.as_ref()?;
        let most = match opened {
            Opened::NoMore if later.left_out => return None,
            Opened::NoMore => {
                let left_out = Later { left_out: true, ..later.clone() };
                return Some(Self { later: Some(left_out), ..self.clone() });
            }
            Opened::Until(round) => round,
            Opened::All => u32::MAX,
        };
        let (now, rounds): (Vec<LaterRound>, Vec<LaterRound>) =
            later.rounds.iter().cloned().partition(|round| round.round <= most);
        if now.is_empty() {
            return None;
        }
        let mut segments = self.segments.clone();
        let mut past = Vec::new();
        for round in now {
            match segments.get_mut(round.segment as usize).filter(|_| round.segment >= self.segment) {
                Some(segment) => {
                    segment.questions.extend(round.questions);
                    segment.questions.sort_unstable();
                }
                None => past.extend(round.questions),
            }
        }
        if !past.is_empty() {
            past.sort_unstable();
            let until = segments.last().map_or(0, |segment| segment.until);
            segments.push(Segment { until, questions: past });
        }
        let later = (!rounds.is_empty()).then_some(Later { rounds, left_out: false });
        Some(Self { segments, later, ..self.clone() })
    }

    /// The bank's name in a memory system: `bench-<bank row>-g<generation>-i<number>`. The number is the store's own, so that two
    /// stores never share a bank of one memory system, and another where the generation began after the store went back in time, so
    /// that it never meets a name that was given and forgotten. Banks of earlier releases have none. A first generation that was
    /// filled before the run began keeps the name that it had.
    #[must_use]
    pub fn name_of(&self, generation: i64) -> String {
        match &self.filled {
            Some(filled) if filled.holds_in(generation) => filled.name.clone(),
            _ => self.name_among(generation, |from| from <= generation),
        }
    }

    /// Where the current generation was filled, when that was before the run began.
    #[must_use]
    pub fn filled_before(&self) -> Option<&FilledBank> {
        self.filled.as_ref().filter(|filled| filled.holds_in(self.generation))
    }

    /// Names that a generation may have had before the store forgot that it had begun.
    #[must_use]
    pub fn forgotten_names(&self) -> Vec<(i64, String)> {
        // from 0 on is the store's own number: nothing was forgotten under it
        let begun = self.incarnations().filter(|(from, _)| (1..=self.generation).contains(from));
        begun.map(|(from, _)| (from, self.name_among(from, |earlier| earlier < from))).collect()
    }

    fn incarnations(&self) -> impl Iterator<Item = (i64, i64)> {
        let numbers = self.namespaces.split_ascii_whitespace().filter_map(|part| part.split_once(':'));
        numbers.filter_map(|(from, incarnation)| Some((from.parse().ok()?, incarnation.parse().ok()?)))
    }

    fn name_among(&self, generation: i64, counts: impl Fn(i64) -> bool) -> String {
        let name = format!("bench-{}-g{generation}", self.bank_row);
        match self.incarnations().filter(|(from, _)| counts(*from)).last() {
            Some((_, incarnation)) => format!("{name}-i{incarnation:x}"),
            None => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bank of two segments, the second of which closes it, at the segment `current`.
    fn bank(current: u32, later: &[(u32, &[u32])]) -> BankRow {
        let hash = Sha256Hash([0; 32]);
        let round = |(round, questions): &(u32, &[u32])| LaterRound {
            round: *round,
            segment: 0,
            questions: questions.to_vec(),
        };
        BankRow {
            bank_no: 0,
            bank_id: "b".into(),
            bank_row: 1,
            content: hash,
            questions: hash,
            gold: hash,
            segments: vec![Segment { until: 9, questions: vec![0, 5] }, Segment { until: 9, questions: Vec::new() }],
            generation: 1,
            handle: None,
            state: BankState::Building,
            position: 0,
            segment: current,
            open_recalls: 0,
            reason: None,
            namespaces: String::new(),
            outdated: false,
            filled: None,
            later: Some(Later { rounds: later.iter().map(round).collect(), left_out: false }),
        }
    }

    fn asked(bank: &BankRow) -> Vec<&[u32]> {
        bank.segments.iter().map(|segment| segment.questions.as_slice()).collect()
    }

    #[test]
    fn a_bank_closes_with_a_segment_in_which_nothing_is_retained_or_asked() {
        let row = bank(0, &[]);
        assert!(row.closes_with(1) && !row.closes_with(0) && !row.closes_with(2));
        let asks = Segment { until: 9, questions: vec![1] };
        let last_asks = BankRow { segments: vec![asks.clone(), asks], ..row };
        assert!(!last_asks.closes_with(1));
    }

    #[test]
    fn rounds_are_opened_once_and_in_their_segment() {
        let first = bank(0, &[(1, &[3]), (3, &[1, 2])]);
        assert_eq!(first.with_opened(Opened::Until(0)), None);
        let second = first.with_opened(Opened::Until(1)).expect("opens one");
        assert_eq!((asked(&second), second.holds_later_questions()), (vec![&[0, 3, 5][..], &[]], true));
        assert_eq!(second.with_opened(Opened::Until(2)), None);
        let last = second.with_opened(Opened::Until(3)).expect("opens the last");
        assert_eq!((asked(&last), last.later.as_ref()), (vec![&[0, 1, 2, 3, 5][..], &[]], None));
        assert_eq!(last.with_opened(Opened::All), None);
    }

    #[test]
    fn what_a_stopped_run_left_out_is_asked_behind_all_others_when_it_goes_on() {
        let stopped = bank(0, &[(1, &[3]), (2, &[1])]).with_opened(Opened::NoMore).expect("leaves them out");
        assert!(!stopped.holds_later_questions() && !stopped.waits_for_a_look());
        assert_eq!(stopped.with_opened(Opened::NoMore), None);
        let before_its_end = stopped.with_opened(Opened::All).expect("opens all");
        assert_eq!(asked(&before_its_end), [&[0, 1, 3, 5][..], &[]]);
        let closed = BankRow { segment: 1, ..stopped };
        let behind = closed.with_opened(Opened::All).expect("opens all");
        assert_eq!((asked(&behind), behind.segments[2].until), (vec![&[0, 5][..], &[], &[1, 3]], 9));
    }
}
