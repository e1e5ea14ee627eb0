//! What an adapter file says. Unknown keys are errors; the JSON Schema of these types is published beside the others.
//!
//! Start with [`AdapterSpec`], the file as a whole. `call` is one request of an operation, `ready` when what was retained can be found,
//! `known` what the system is known to do, `setting` what a run may choose, `reach` and `start` where it is and how it is started.
//!
//! A field that is added is skipped while it has its default: fingerprints of runs and the hashes by which adapters are allowed
//! are made of what is serialised.

mod call;
mod known;
mod reach;
mod ready;
mod setting;
mod start;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    call::{CallSpec, Expectation, HitsSpec, PartSpec, Pick, PlacesSpec, PurgeSpec, UntilSpec, UsageSpec},
    known::{CanSpec, FilterName, LimitsSpec},
    reach::{AuthPlace, AuthSpec, CodeSpec, McpSpec, Permission},
    ready::{ReadyRule, ReadySpec},
    setting::{SettingKind, SettingSpec},
    start::{InstancePer, PortSpec, PortWord, StartSpec},
};

/// An adapter: how a memory system is reached, over HTTP (`url` or `start`), as a process (`command`), or as a server of the Model
/// Context Protocol (`mcp`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdapterSpec {
    /// Name of the system, as it stands in reports.
    pub name: String,
    /// One line for `systems list`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Version of this file. Part of the fingerprint: raise it when a change can change a score.
    #[serde(default = "one")]
    pub version: u32,
    /// Where the system listens. `${env:NAME}` is read from the environment. Not needed with `start` or `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Program and arguments of a process that speaks JSON lines; nothing of HTTP is needed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// A server of the Model Context Protocol: every operation calls one of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpSpec>,
    /// A class of the user's own that this process is made of; `--system mine.py:Mine` fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeSpec>,
    /// Environment of that process, or of `mcp.command`, besides `PATH`, `HOME`, `LANG` and the like; `${env:NAME}` is filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How the runner starts the system itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartSpec>,
    /// How requests show who sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What the network may do beyond the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Permission>,
    /// Time of one request unless it has its own, such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Hard limits. Asking for more is refused.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// What a recorded or known behaviour is.
    #[serde(default)]
    pub can: CanSpec,
    /// Name of a bank in the system: `{name}` (such as `bench-12-g1`) unless given, or with `{slug}` (`bench_12_g1`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<String>,
    /// What one item is.
    #[serde(default)]
    pub unit: Unit,
    /// An item, as a template; `{items}` in a body is the list of them, without it each item is a request of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// A message of `{messages}`; `{role, content}` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
    /// When items and messages are that have no time, such as `2000-01-01T00:00:00`: for systems that refuse what has none. It stands
    /// in `{time}` and its like, and not in `{content}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undated: Option<String>,
    /// Settings of the system that a run may choose (`--set NAME.SETTING=…`), by their names. `{setting.NAME}` in a request, and in
    /// `start` or `env`, is the value of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, SettingSpec>,
    /// Traits that the system can be given for its own answers (`--dispositions`), each a whole number from 1 to 5: their names, and
    /// the fields of the body of `open` that they are written into.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dispositions: BTreeMap<String, String>,
    /// Makes the bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<CallSpec>,
    /// Stores items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<CallSpec>,
    /// Stores one item in place of what `{replaces}` names. Without it what is replaced is removed by `forget` and the new item
    /// stored by `retain`; without both the new one is stored beside the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<CallSpec>,
    /// Removes what `{replaces}` names. Without it what was withdrawn stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget: Option<CallSpec>,
    /// Ends a segment of retaining (a flush).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<CallSpec>,
    /// Turns what was retained into something better; done with `--mode consolidated` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<CallSpec>,
    /// When what was retained can be found.
    #[serde(default)]
    pub ready: ReadySpec,
    /// Searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<CallSpec>,
    /// Further searches of the same recall; their hits are merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall_also: Vec<CallSpec>,
    /// How lists of hits become one.
    #[serde(default)]
    pub merge: Merge,
    /// Looks up what the system's own ids are that lists of hits have by `made_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<PlacesSpec>,
    /// The system answers by itself (reflect, ask).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CallSpec>,
    /// Counts what the bank holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<CallSpec>,
    /// Lists what the bank holds, page by page: asked behind the last question of a bank, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<CallSpec>,
    /// What the system says about itself and the bank, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<CallSpec>,
    /// Removes the bank and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<CallSpec>,
    /// Removes the items of a bank one by one before `reset`, where removing the bank leaves them behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<PurgeSpec>,
    /// Hands a bank on: the body of the response, whatever it is, is what `banks export` keeps of it. For a server whose folder nobody
    /// can copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<CallSpec>,
    /// Takes in a bank that `export` has handed on, as the body of the request (`banks import --into`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<CallSpec>,
    /// Is it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<CallSpec>,
    /// What a user of the system has to know: shown by `systems check`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traps: Vec<String>,
    /// How the file was tested, in a few words: shown by `systems list`. It goes with no run, and no hash is made of it.
    #[serde(default, skip_serializing)]
    pub tested: Option<String>,
}

impl AdapterSpec {
    /// Program and arguments of the process that the system is, and that is asked over its pipes.
    #[must_use]
    pub fn program(&self) -> Option<&[String]> {
        self.command.as_deref().or_else(|| self.mcp.as_ref()?.command.as_deref())
    }

    /// Where the system listens, as it is written.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.url.as_deref().or_else(|| self.mcp.as_ref()?.url.as_deref())
    }

    /// Texts into which variables of the environment are filled.
    pub(super) fn filled(&self) -> impl Iterator<Item = &str> {
        let started = self.start.iter().flat_map(|start| {
            let words = start.command.iter().chain(&start.check);
            words.chain(start.env.values()).chain(start.files.values())
        });
        let mcp = self.mcp.iter().flat_map(|mcp| mcp.url.iter().chain(mcp.command.iter().flatten()));
        let own = self.url.iter().chain(self.command.iter().flatten()).chain(self.env.values());
        own.chain(mcp).chain(self.headers.values()).chain(started).map(String::as_str)
    }

    /// All of its requests.
    pub(super) fn calls_mut(&mut self) -> impl Iterator<Item = &mut CallSpec> {
        let named = [
            &mut self.open,
            &mut self.retain,
            &mut self.update,
            &mut self.forget,
            &mut self.flush,
            &mut self.consolidate,
            &mut self.ready.call,
            &mut self.recall,
            &mut self.answer,
            &mut self.verify,
            &mut self.list,
            &mut self.statistics,
            &mut self.reset,
            &mut self.export,
            &mut self.import,
            &mut self.health,
        ];
        let purge = self.purge.iter_mut().flat_map(|purge| [&mut purge.list, &mut purge.remove]);
        let places = self.places.iter_mut().map(|places| &mut places.call);
        named.into_iter().flatten().chain(&mut self.recall_also).chain(places).chain(purge)
    }
}

/// What one item is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A turn of a session, or a memory.
    #[default]
    Turn,
    /// A session as one text, or a memory.
    Session,
}

impl Unit {
    /// As it stands in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
        }
    }
}

/// How several lists of hits become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// One after the other: where the first has k hits, none of the others is left.
    #[default]
    Append,
    /// One hit of each in turn.
    Interleave,
    /// By score, best first.
    Score,
}

fn one() -> u32 {
    1
}

fn is_false(value: &bool) -> bool {
    !value
}
