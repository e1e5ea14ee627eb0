//! Identifiers. Every id that crosses a room is a newtype, so that two of them cannot be swapped.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Public id of a run: what people type and what names its folder. A UUID v7 unless the user gave one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct RunId(pub String);

/// The end of an id that [`RunId::fresh`] has drawn, twelve random digits of base 16, with what follows them in the id of a repeat, a
/// cell or a control; `None` for an id that a person has given.
#[must_use]
pub fn random_end(id: &str) -> Option<&str> {
    const DRAWN: usize = 36;
    const DIGITS: usize = 12;
    let (drawn, rest) = id.split_at_checked(DRAWN)?;
    let is_drawn = uuid::Uuid::try_parse(drawn).is_ok() && (rest.is_empty() || rest.starts_with('-'));
    id.get(DRAWN - DIGITS..).filter(|_| is_drawn)
}

/// What tells an id apart where there is little room: its [`random_end`], or all of one that a person has given.
#[must_use]
pub fn short_id(id: &str) -> &str {
    random_end(id).unwrap_or(id)
}

/// Whether a word may be the [`random_end`] of an id.
#[must_use]
pub fn is_random_end(word: &str) -> bool {
    random_end(&format!("00000000-0000-7000-8000-{word}")).is_some()
}

impl RunId {
    /// A fresh, time-ordered id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// Checks an id given by a user: it becomes a folder name and part of queue messages.
    ///
    /// # Errors
    /// When it is empty, longer than 100 characters, or holds anything but ASCII letters, digits, `-`, `_` and `.`.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        Self::within(100, text)
    }

    /// Checks an id that a store holds: the same, and somewhat longer, for controls are named after their run.
    ///
    /// # Errors
    /// As [`RunId::parse`], from 200 characters on.
    pub fn stored(text: &str) -> Result<Self, InvalidId> {
        Self::within(200, text)
    }

    fn within(longest: usize, text: &str) -> Result<Self, InvalidId> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty()
            || text.len() > longest
            || text.starts_with('.')
            || !text.chars().all(allowed)
            || text == "latest"
        {
            return Err(InvalidId(text.chars().take(120).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A run id that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{0}' cannot be a run id: use 1 to 100 ASCII letters, digits, '-', '_' or '.', not starting with '.', not 'latest'"
)]
pub struct InvalidId(String);

/// A run's row number in its store: the short key of all other tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunNo(pub i64);

/// Kind of a queued task (protocol rule P6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Retain one segment of a bank, one checkpoint per stream entry.
    Retain,
    /// Poll until the memory system has proven that a segment can be found.
    Ready,
    /// Recall, answer and deterministic scorers of one question.
    Question,
    /// One vote of one model judge on one answer.
    Judge,
}

impl TaskKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Retain, Self::Ready, Self::Question, Self::Judge];

    /// The number that stands for the kind inside a [`TaskKey`].
    #[must_use]
    pub const fn code(self) -> i64 {
        match self {
            Self::Retain => 0,
            Self::Ready => 1,
            Self::Question => 2,
            Self::Judge => 3,
        }
    }

    /// The role (queue) that serves this kind.
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Self::Retain | Self::Ready => Role::Retain,
            Self::Question => Role::Question,
            Self::Judge => Role::Judge,
        }
    }
}

/// Worker role: one queue, one set of slots and one concurrency each (P11, P12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `retain` and `ready` tasks.
    Retain,
    /// `question` tasks.
    Question,
    /// `judge` tasks.
    Judge,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Retain, Self::Question, Self::Judge];

    /// The role's name in queue names, flags and the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retain => "retain",
            Self::Question => "question",
            Self::Judge => "judge",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Key of a task within its run: kind, bank, index and sub-index packed into 53 bits.
///
/// The key is a pure function of what the task is about, so planning twice makes the same rows, and parents are found by
/// arithmetic. Layout, high to low: kind 2 bits, bank 22, index 20 (question's index in its bank, or segment), sub 9
/// (judge 4 bits, vote 5 bits). All keys of one kind and bank are one contiguous range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskKey(pub i64);

impl TaskKey {
    const SUB_BITS: u32 = 9;
    const INDEX_BITS: u32 = 20;
    const BANK_BITS: u32 = 22;
    /// Distance between the keys of two neighbouring questions (or segments) of a bank.
    pub const INDEX_STEP: i64 = 1 << Self::SUB_BITS;
    /// Largest number of banks in a run. The number after the last of them is that of no bank: the latency probe's.
    pub const MAX_BANKS: u32 = (1 << Self::BANK_BITS) - 1;
    /// Largest number of questions in a bank.
    pub const MAX_INDEX: u32 = 1 << Self::INDEX_BITS;

    const fn pack(kind: TaskKind, bank: u32, index: u32, sub: u32) -> Self {
        assert!(bank <= Self::MAX_BANKS && index < Self::MAX_INDEX && sub < (1 << Self::SUB_BITS));
        let key = (kind.code() << (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS))
            | ((bank as i64) << (Self::INDEX_BITS + Self::SUB_BITS))
            | ((index as i64) << Self::SUB_BITS)
            | sub as i64;
        Self(key)
    }

    /// The task that retains `segment` of `bank`.
    #[must_use]
    pub const fn retain(bank: u32, segment: u32) -> Self {
        Self::pack(TaskKind::Retain, bank, segment, 0)
    }

    /// The task that proves `segment` of `bank` ready.
    #[must_use]
    pub const fn ready(bank: u32, segment: u32) -> Self {
        Self::pack(TaskKind::Ready, bank, segment, 0)
    }

    /// The question with `index` in its bank's question list.
    #[must_use]
    pub const fn question(bank: u32, index: u32) -> Self {
        Self::pack(TaskKind::Question, bank, index, 0)
    }

    /// Vote number `vote` (below 32) of judge number `judge` (below 16) on a question.
    #[must_use]
    pub const fn judge(bank: u32, index: u32, judge: u32, vote: u32) -> Self {
        assert!(judge < 16 && vote < 32);
        Self::pack(TaskKind::Judge, bank, index, judge * 32 + vote)
    }

    /// No task: calls that serve a run as a whole are booked under it. No plan reaches this key.
    pub const OVERHEAD: Self = Self((4 << (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS)) - 1);

    /// What a memory system's own model calls are booked under ([`crate::metered`]): behind the keys of all tasks. `part` says what
    /// kind of call it is.
    #[must_use]
    pub(crate) const fn metered(bank: u32, part: u32) -> Self {
        assert!(bank <= Self::MAX_BANKS && part < Self::MAX_INDEX);
        Self(
            Self::METERED.0
                | ((bank as i64) << (Self::INDEX_BITS + Self::SUB_BITS))
                | ((part as i64) << Self::SUB_BITS),
        )
    }

    /// The smallest key of a memory system's own calls.
    pub const METERED: Self = Self(4 << (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS));

    /// Whether it is what a memory system's own calls are booked under, and no task.
    #[must_use]
    pub const fn is_metered(self) -> bool {
        self.0 >= Self::METERED.0
    }

    /// The run's latency probe (P43): a task of the question role, in a bank that no plan has.
    pub const PROBE: Self = Self::question(Self::MAX_BANKS, 0);

    /// What the task does.
    ///
    /// # Panics
    /// Never for keys made by this type; a foreign number is checked by [`TaskKey::from_wire`].
    #[must_use]
    pub const fn kind(self) -> TaskKind {
        match self.0 >> (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS) {
            0 => TaskKind::Retain,
            1 => TaskKind::Ready,
            2 => TaskKind::Question,
            _ => TaskKind::Judge,
        }
    }

    /// Number of the bank within the run.
    #[must_use]
    pub const fn bank(self) -> u32 {
        ((self.0 >> (Self::INDEX_BITS + Self::SUB_BITS)) & Self::MAX_BANKS as i64) as u32
    }

    /// Question index within the bank, or segment number.
    #[must_use]
    pub const fn index(self) -> u32 {
        ((self.0 >> Self::SUB_BITS) & (Self::MAX_INDEX as i64 - 1)) as u32
    }

    /// Judge number of a judge task.
    #[must_use]
    pub const fn judge_no(self) -> u32 {
        ((self.0 & (Self::INDEX_STEP - 1)) / 32) as u32
    }

    /// Vote number of a judge task.
    #[must_use]
    pub const fn vote(self) -> u32 {
        ((self.0 & (Self::INDEX_STEP - 1)) % 32) as u32
    }

    /// The question that a judge task belongs to; a question is its own.
    #[must_use]
    pub const fn question_of(self) -> Self {
        Self::question(self.bank(), self.index())
    }

    /// Smallest and largest key of the judge tasks of a question, both included.
    #[must_use]
    pub const fn judges(self) -> (Self, Self) {
        let low = Self::judge(self.bank(), self.index(), 0, 0);
        (low, Self(low.0 + Self::INDEX_STEP - 1))
    }

    /// Smallest and largest key of `kind` in `bank`, both included.
    #[must_use]
    pub const fn range(kind: TaskKind, bank: u32) -> (Self, Self) {
        let low = Self::pack(kind, bank, 0, 0);
        (low, Self(low.0 + ((1 << (Self::INDEX_BITS + Self::SUB_BITS)) - 1)))
    }

    /// Smallest and largest key of `kind` in any bank, both included.
    #[must_use]
    pub const fn range_of_kind(kind: TaskKind) -> (Self, Self) {
        let low = Self::pack(kind, 0, 0, 0);
        (low, Self(low.0 + ((1 << (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS)) - 1)))
    }

    /// Reads a number that came from outside.
    #[must_use]
    pub const fn from_wire(raw: i64) -> Option<Self> {
        if raw >= 0 && raw < (4 << (Self::BANK_BITS + Self::INDEX_BITS + Self::SUB_BITS)) {
            Some(Self(raw))
        } else {
            None
        }
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}(bank {}, {}", self.kind(), self.bank(), self.index())?;
        if self.kind() == TaskKind::Judge {
            write!(f, ", judge {}, vote {}", self.judge_no(), self.vote())?;
        }
        f.write_str(")")
    }
}

/// SHA-256 of some bytes: keys of items and calls. Shown and stored as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Hash(pub [u8; 32]);

impl Sha256Hash {
    /// Hash of `bytes`.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Lower-case hexadecimal, 64 characters.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Reads 64 hexadecimal characters.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0_u8; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Debug for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl Serialize for Sha256Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Sha256Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal characters"))
    }
}

/// Trace id of a question: the first 16 bytes of sha256(run id, newline, question id), as 32 hexadecimal characters, so
/// that every process derives the same one without talking (P20).
#[must_use]
pub fn trace_id(run: &RunId, question_id: &str) -> String {
    let hash = Sha256Hash::of_bytes(format!("{run}\n{question_id}").as_bytes());
    hex::encode(&hash.0[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn task_keys_come_apart_again(bank in 0..TaskKey::MAX_BANKS, index in 0..TaskKey::MAX_INDEX, judge in 0_u32..16, vote in 0_u32..32) {
            let key = TaskKey::judge(bank, index, judge, vote);
            prop_assert_eq!(key.kind(), TaskKind::Judge);
            prop_assert_eq!((key.bank(), key.index(), key.judge_no(), key.vote()), (bank, index, judge, vote));
            prop_assert_eq!(key.question_of(), TaskKey::question(bank, index));
            prop_assert!(key.0 < (1 << 53), "must survive JSON readers that use doubles");
            let (low, high) = TaskKey::range(TaskKind::Judge, bank);
            prop_assert!(low <= key && key <= high);
            prop_assert_eq!(TaskKey::from_wire(key.0), Some(key));
        }
    }

    #[test]
    fn an_id_that_was_drawn_ends_in_random_digits_and_what_a_group_has_put_behind_them() {
        let drawn = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab";
        for (behind, end) in [
            ("", "0123456789ab"),
            ("-r12", "0123456789ab-r12"),
            ("-c2-r1", "0123456789ab-c2-r1"),
            ("-full-context", "0123456789ab-full-context"),
        ] {
            assert_eq!(random_end(&format!("{drawn}{behind}")), Some(end));
            assert!(is_random_end(end), "{end}");
        }
        for id in ["before", "0123456789ab", "nightly-of-the-team-and-of-its-friends-r1", &format!("{drawn}7")] {
            assert_eq!(random_end(id), None, "{id}");
        }
        for word in ["", "nightly", "0123456789a", "0123456789abc", "0123456789ä", "-r1"] {
            assert!(!is_random_end(word), "{word}");
        }
    }

    #[test]
    fn run_ids_are_checked() {
        assert!(RunId::parse("nightly-2026.11_20").is_ok());
        for bad in ["", "a/b", "latest", "..", &"x".repeat(101)] {
            assert!(RunId::parse(bad).is_err(), "{bad} must be refused");
        }
        assert!(RunId::stored(&format!("{}-oracle", "x".repeat(100))).is_ok(), "a control");
        for bad in ["", "a/b", "/tmp/a", "../a", "..", "a\0", &"x".repeat(201)] {
            assert!(RunId::stored(bad).is_err(), "{bad} must be refused");
        }
    }
}
