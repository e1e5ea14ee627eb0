//! What banks hold at the end of a run, where their memory system lists it: what of the evidence is stored, what nobody said, and
//! which updates and withdrawals did not happen.
//!
//! A page of a listing is a checkpoint ([`ListedPart`]): it says what was seen in it, and keeps no texts but a few examples.
//! All pages of a bank come to its [`Holdings`]. What is looked for in a page is decided in `grading`.

use serde::{Deserialize, Serialize};

use super::{StepNo, Timing};
use crate::{call::is_default, failure::Failure};

/// Most items of a bank that are listed: what is beyond stays unknown.
pub const MOST_LISTED: u64 = 100_000;
/// Most bytes of texts of a bank that are listed.
pub const MOST_LISTED_BYTES: u64 = 64 << 20;
/// Most pages of a listing.
pub const MOST_PAGES: u32 = 20_000;
/// Examples of what nobody said that are kept of a bank.
pub const MOST_EXAMPLES: usize = 5;
/// The step of the first page; those before it are other steps of the task.
const FIRST_STEP: i32 = 10;

/// Where a page of what a bank holds begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListCursor {
    /// Items of the pages before.
    #[serde(skip_serializing_if = "is_default")]
    pub listed: u64,
    /// Pages before it.
    #[serde(skip_serializing_if = "is_default")]
    pub pages: u32,
    /// What the system has said that it is to be asked for by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ListCursor {
    /// Where the page after this one begins, which had so many items.
    #[must_use]
    pub fn behind(&self, items: usize, cursor: Option<String>) -> Self {
        Self { listed: self.listed + items as u64, pages: self.pages.saturating_add(1), cursor }
    }
}

/// A page of what a bank holds, as it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedPart {
    /// Generation of the bank.
    pub generation: i64,
    /// Number of the page, from 0.
    pub number: u32,
    /// What was seen in it.
    #[serde(flatten)]
    pub seen: Seen,
    /// Hash of the page: one that comes again tells that a listing has no end.
    pub hash: u64,
    /// Where the next page begins; absent in the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<ListCursor>,
    /// Where the time went.
    pub timing: Timing,
}

impl ListedPart {
    /// The step under which it is stored.
    #[must_use]
    pub const fn step(number: u32) -> StepNo {
        StepNo(FIRST_STEP + number as i32)
    }
}

/// What was seen in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Items, without canaries.
    pub items: u64,
    /// Items that are canaries.
    #[serde(skip_serializing_if = "is_default")]
    pub canaries: u64,
    /// Bytes of the texts of all items.
    pub bytes: u64,
    /// Items that hold words which nobody said.
    #[serde(skip_serializing_if = "is_default")]
    pub unsaid: u64,
    /// A few of these, shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Numbers of the texts that an item holds from beginning to end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<u32>,
    /// Parts of texts that are items by themselves: number of the text, first word, and the one behind the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<(u32, u32, u32)>,
}

/// What a bank holds at the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holdings {
    /// Items that were listed, without canaries.
    pub items: u64,
    /// Items that are canaries.
    #[serde(skip_serializing_if = "is_default")]
    pub canaries: u64,
    /// Most items hold words that nobody said: the system stores in words of its own, and a text that is not there word for word
    /// may be there all the same.
    #[serde(skip_serializing_if = "is_default")]
    pub rewrites: bool,
    /// There is more than was listed.
    #[serde(skip_serializing_if = "is_default")]
    pub cut: bool,
    /// Why the listing ended before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Turns and memories that the questions rest on, that were stored and that nothing took away later.
    pub evidence: u64,
    /// Those of them that are there.
    pub evidence_held: u64,
    /// Those of which it cannot be told.
    #[serde(skip_serializing_if = "is_default")]
    pub evidence_unknown: u64,
    /// Items that hold words which nobody said.
    #[serde(skip_serializing_if = "is_default")]
    pub unsaid: u64,
    /// A few of these, shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Updates that were sent and can be looked for.
    #[serde(skip_serializing_if = "is_default")]
    pub updates: u64,
    /// Those after which the old text is still there.
    #[serde(skip_serializing_if = "is_default")]
    pub old_kept: u64,
    /// Those after which the new text is not there.
    #[serde(skip_serializing_if = "is_default")]
    pub new_missing: u64,
    /// Those of which one of both is so.
    #[serde(skip_serializing_if = "is_default")]
    pub wrong_updates: u64,
    /// Withdrawals that were sent and can be looked for.
    #[serde(skip_serializing_if = "is_default")]
    pub withdrawals: u64,
    /// Those after which the text is still there.
    #[serde(skip_serializing_if = "is_default")]
    pub not_withdrawn: u64,
    /// Indexes of questions whose evidence is not all stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_stored: Vec<u32>,
    /// Indexes of those of which it cannot be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_stored_beside_the_other_steps_of_its_task_and_read_back() {
        let steps = [0, 1, MOST_PAGES].map(ListedPart::step);
        assert!(steps.iter().all(|step| step.0 > StepNo::CONSOLIDATE.0 && step.0 < StepNo::FAILED.0));
        let next = ListCursor::default().behind(200, Some("abc".to_owned())).behind(3, None);
        assert_eq!((next.listed, next.pages, next.cursor.clone()), (203, 2, None));
        let seen = Seen { items: 3, held: vec![1, 4], pieces: vec![(2, 0, 7)], ..Seen::default() };
        let part = ListedPart { number: 1, seen, next: Some(next), ..ListedPart::default() };
        let json = serde_json::to_string(&part).expect("is serialised");
        assert_eq!(serde_json::from_str::<ListedPart>(&json).expect("reads back"), part);
    }
}
