//! Banks of a plan, and the items that hold their data.

pub use bench_proto::bank::BankState;
use bench_proto::ids::Sha256Hash;
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
        Self { hash: Sha256Hash::of(&bytes), bytes }
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
    /// From which generation on which incarnation of the store is part of the name: `2:83 `, as often as it changed (P44).
    pub namespaces: String,
    /// The generation began in an earlier incarnation of the store: what was written since may be forgotten (P44).
    pub outdated: bool,
    /// Where its first generation was filled, when that was before the run began.
    pub filled: Option<FilledBank>,
}

impl BankRow {
    /// The bank's name in a memory system: `bench-<bank row>-g<generation>`, and `-i<incarnation>` where the generation began after
    /// the store went back in time, so that it never meets a name that was given and forgotten. A first generation that was filled
    /// before the run began keeps the name that it had.
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
        let begun = self.incarnations().filter(|(from, _)| *from <= self.generation);
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
