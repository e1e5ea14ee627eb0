//! What goes over the pipes: requests, replies and what they hold, one JSON object per line each.

use std::collections::BTreeMap;

use bench_proto::{
    dataset::{Filter, FilterParts},
    failure::Failure,
    scenario::ReaderMode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    adapter::{items::rfc3339, process_item::ProcessItem},
    moments::Bounds,
};

/// Version of the protocol, in the first request.
pub const PROTOCOL: u32 = 1;

/// A request: one line to the process.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRequest {
    /// Number that the reply gives back.
    pub id: u64,
    /// What to do.
    #[serde(flatten)]
    pub op: ProcessOp,
}

/// What a process is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ProcessOp {
    /// The first request. Reply: `version`.
    Hello {
        /// Version of what is spoken from here on, [`PROTOCOL`].
        protocol: u32,
    },
    /// Make a bank. Reply: `handle`, when the process names it itself.
    Open {
        /// The name that we give it, unlike that of any other bank.
        bank: String,
    },
    /// Store items, in order. Reply: `count`, the number that was stored.
    Retain {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
        /// In the order in which they were said.
        items: Vec<ProcessItem>,
    },
    /// Store an item in place of earlier ones; sent to those that say `can: {updates: true}`.
    Update {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
        /// Ids of what goes: several where one text was too long for one item.
        replaces: Vec<String>,
        /// What comes.
        item: Box<ProcessItem>,
    },
    /// Remove items; sent to those that say `can: {withdraws: true}`.
    Forget {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
        /// Their ids.
        replaces: Vec<String>,
    },
    /// Can everything be found? Reply: `ready`.
    Ready {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
        /// Number of items that were stored.
        expected: u64,
    },
    /// Make something better of what is stored (`--mode consolidated`). Reply: `usage`.
    Consolidate {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
    },
    /// Search. Reply: `hits`, best first.
    Recall {
        /// What for.
        #[serde(flatten)]
        search: ProcessSearch,
    },
    /// Answer by itself. Reply: `text`.
    Answer {
        /// The question.
        #[serde(flatten)]
        search: ProcessSearch,
        /// `basic` where it is to be read without dates and rules (`--scenario ask-basic`); not sent otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reader_mode: Option<ReaderMode>,
    },
    /// Count the items. Reply: `count`.
    Verify {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
    },
    /// List what the bank holds, page by page; sent to those that say `can: {lists: true}`. Reply: `hits` in any order, and
    /// `cursor` where there is more.
    List {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
        /// Most items of a page.
        limit: u32,
        /// Items of the pages before.
        offset: u64,
        /// What the reply to the page before had as its `cursor`; absent for the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// Say something about yourself and the bank. Reply: `numbers`, by names of your own, and `version`.
    Statistics {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
    },
    /// Remove this bank and nothing else.
    Reset {
        /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
        bank: String,
    },
    /// Is everything well? Reply: `version`.
    Health,
}

/// A question to a bank.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSearch {
    /// Which one: the `handle` that `open` was answered with, else the name that it was opened by.
    pub bank: String,
    /// The question.
    pub query: String,
    /// Most hits.
    pub k: u32,
    /// When it is asked.
    pub time_text: Option<String>,
    /// The same in RFC 3339, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What may be found or used at all; sent to those that say `can: {filters: …}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ProcessFilter>,
}

// The parts of `bench_proto::dataset::Filter`, written again: processes of others read this, and it changes with `PROTOCOL` alone.
/// What may be found: all of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessFilter {
    /// All of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The memory is this user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Any one of these scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Not before this time (RFC 3339, in UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Not after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl ProcessFilter {
    /// The parts of a question's filter that the process says it honours; none where it restricts nothing else. A part that it
    /// does not know might be taken for another one.
    ///
    /// # Errors
    /// A time that cannot be read.
    pub(super) fn honoured_part(filter: &Filter, can: FilterParts) -> Result<Option<Self>, Failure> {
        let asked = filter.parts();
        let sent = asked.and(can);
        let bounds = if sent.from || sent.until { Bounds::from_filter(filter)? } else { Bounds::default() };
        let time = |sent: bool, time: &Option<String>| time.as_deref().filter(|_| sent).and_then(rfc3339);
        let scopes = if asked.scopes { sent.scopes } else { sent.scope };
        Ok((!sent.is_empty()).then(|| Self {
            tags: if sent.tags { filter.tags.clone() } else { Vec::new() },
            user: filter.user.clone().filter(|_| sent.user),
            scopes: if scopes { filter.scopes.clone() } else { Vec::new() },
            from: time(sent.from, &bounds.from),
            until: time(sent.until, &bounds.until),
        }))
    }
}

/// A reply: one line from the process.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessReply {
    /// Number of the request.
    pub id: u64,
    /// It was done.
    pub ok: bool,
    /// Why not.
    pub error: Option<String>,
    /// Another try may help.
    pub retry: bool,
    /// It has no such operation, and nothing failed: of `verify` and `statistics`, which it need not have.
    pub lacking: bool,
    /// To `hello`: it has something to put away when its input has ended, and is waited for as long as for an operation, at most 30
    /// seconds.
    pub closes: bool,
    /// Version of the system.
    pub version: Option<String>,
    /// The bank's handle.
    pub handle: Option<String>,
    /// A number of items.
    pub count: Option<u64>,
    /// Numbers for the report.
    pub numbers: BTreeMap<String, f64>,
    /// Everything can be found.
    pub ready: Option<bool>,
    /// `ready` only says that storing has returned: nothing was looked at.
    pub returned: bool,
    /// What was found.
    pub hits: Option<Vec<ProcessHit>>,
    /// What the next page of a listing is asked for by; absent in the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// An answer.
    pub text: Option<String>,
    /// What the answer rests on.
    pub citations: Vec<String>,
    /// Prompt tokens used.
    pub prompt_tokens: u64,
    /// Completion tokens used.
    pub completion_tokens: u64,
}

/// Something that was found.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessHit {
    /// Id of the item.
    pub id: Option<String>,
    /// Session of the item.
    pub session_id: Option<String>,
    /// What an answerer is shown of the hit.
    pub text: String,
    /// The process's own score, or null; what counts is the order of the hits.
    pub score: Option<f64>,
    /// What else there is to say of the hit, for reports: at most 16, each at most 1,024 bytes of JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_gets_the_parts_that_it_honours_and_no_others() {
        let text = |text: &str| Some(text.to_owned());
        let scopes = |n: usize| ["work", "home"].iter().take(n).map(|scope| (*scope).to_owned()).collect::<Vec<_>>();
        let asked = |n| Filter {
            tags: vec!["tea".to_owned()],
            user: text("ann"),
            scopes: scopes(n),
            from: text("2031-05-08"),
            until: text("2031-05-08"),
        };
        let of = |n, can| ProcessFilter::honoured_part(&asked(n), can).expect("its times can be read");
        let (from, until) = (text("2031-05-08T00:00:00Z"), text("2031-05-08T23:59:59Z"));
        let all = ProcessFilter { tags: asked(2).tags, user: text("ann"), scopes: scopes(2), from, until };
        assert_eq!(of(2, FilterParts::ALL), Some(all.clone()));
        let one = FilterParts { scope: true, until: true, ..FilterParts::default() };
        let until_only = ProcessFilter { until: all.until.clone(), ..ProcessFilter::default() };
        assert_eq!(of(2, one), Some(until_only.clone()), "of several scopes none would be right");
        assert_eq!(of(1, one), Some(ProcessFilter { scopes: scopes(1), ..until_only }));
        assert_eq!(of(1, FilterParts::default()), None);
        let unreadable = Filter { from: text("last May"), ..Filter::default() };
        assert!(ProcessFilter::honoured_part(&unreadable, FilterParts::ALL).is_err());
        assert_eq!(ProcessFilter::honoured_part(&unreadable, one).expect("is not sent"), None);
    }
}
