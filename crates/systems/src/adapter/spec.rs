//! What an adapter file says. Unknown keys are errors; the JSON Schema of these types is published beside the others.
//!
//! A field that is added is skipped while it has its default: fingerprints of runs and the hashes by which adapters are allowed
//! are made of what is serialised.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        let started = self
            .start
            .iter()
            .flat_map(|start| start.command.iter().chain(start.env.values()).chain(start.files.values()));
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
        named.into_iter().flatten().chain(&mut self.recall_also).chain(purge)
    }
}

/// How a server of the Model Context Protocol is reached: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSpec {
    /// Program and arguments of a server that is asked over stdin and stdout, and sees the variables of `env`. `${env:NAME}` and, in both,
    /// `{dir}` are filled in: the folder of the run for what it stores, with `can: {survives_restart: false}` a new one for each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Address of a server that speaks HTTP ("streamable HTTP"), such as `http://127.0.0.1:8000/mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A setting of the system that a run may choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingSpec {
    /// What it does, in words for whoever sets it.
    pub about: String,
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: SettingKind,
    /// The value unless a run gives one. Without it nothing is sent where `{setting.NAME?}` stands: the system has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// Smallest number that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Largest number that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// What the values of a setting are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Whole,
    /// True or false.
    Flag,
}

fn one() -> u32 {
    1
}

/// A class that the runner makes a process of. Its code goes with the run, so that workers need no copy of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeSpec {
    /// Empty, and not looked at: whoever writes a run does not say which folder of a machine code is taken from.
    #[serde(default)]
    pub folder: String,
    /// Path of the file in `files`.
    pub file: String,
    /// Name of the class.
    pub class: String,
    /// Operations that it is given at a time; any number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Processes of it side by side, each with banks of its own; one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// What the class is made with besides the defaults of its code: values that the run chooses of the adapter's `settings`. No
    /// adapter brings them along.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", skip_deserializing)]
    pub settings: BTreeMap<String, Value>,
    /// The file and the modules of its folder that it imports, by their paths below the folder.
    pub files: BTreeMap<String, String>,
}

/// Something the network may do only when the file says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Addresses of private networks; loopback, written as such, is always allowed.
    PrivateAddresses,
    /// Redirects to the same scheme, host and port.
    Redirects,
    /// A key over plain HTTP to a machine that is not this one.
    PlainTextKey,
}

/// How requests show who sends them. The secret itself never stands in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthSpec {
    /// Header (`Authorization` unless given), or the name of the cookie or query parameter.
    #[serde(default = "authorization")]
    pub name: String,
    /// Where it goes.
    #[serde(default)]
    pub place: AuthPlace,
    /// What stands before the secret, such as `Bearer ` or `Token `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Environment variable that holds the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// File that holds the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Without the secret nothing is sent, instead of an error.
    #[serde(default)]
    pub optional: bool,
}

fn authorization() -> String {
    "Authorization".to_owned()
}

/// Where a secret goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthPlace {
    /// A header.
    #[default]
    Header,
    /// A cookie.
    Cookie,
    /// A query parameter.
    Query,
}

/// Hard limits of the system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSpec {
    /// Largest k of a recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_k: Option<u32>,
    /// Items of one request (1 unless given).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Bytes of one item's text; longer ones are split into items `id#2`, `id#3`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u32>,
    /// Longest query in bytes; longer ones are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_bytes: Option<u32>,
    /// Operations in flight over all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Longest response in bytes (8 MiB unless given, at most 64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u32>,
    /// Tokens of a recall for systems that are asked by budget: the value of `{max_tokens}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// What the system is known to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CanSpec {
    /// Items of a bank have to be sent in order, one request at a time.
    pub order: bool,
    /// Sending an item again changes nothing.
    pub repeat: bool,
    /// Takes event times.
    pub times: bool,
    /// Searching changes what later searches find.
    pub learns_from_recall: bool,
    /// Its answer to a recall is bounded by tokens, not by k.
    pub token_budget: bool,
    /// What it has stored outlives its process.
    pub survives_restart: bool,
    /// Keeps banks apart. Without it a run has one bank at a time (amplihack).
    pub banks: bool,
    /// Of a system with `command`: takes `update`.
    #[serde(skip_serializing_if = "is_false")]
    pub updates: bool,
    /// Of a system with `command`: takes `forget`.
    #[serde(skip_serializing_if = "is_false")]
    pub withdraws: bool,
    /// Of a system with `command`: takes `list`.
    #[serde(skip_serializing_if = "is_false")]
    pub lists: bool,
    /// Of a system with `command`: the parts of a question's filter that it honours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<FilterName>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A part of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterName {
    /// Memories that have all of some tags.
    Tags,
    /// Memories of a user.
    User,
    /// Memories of a scope.
    Scope,
    /// Memories of any one of several scopes.
    Scopes,
    /// What was said or happened at a time or later.
    From,
    /// What was said or happened at a time or before.
    Until,
}

impl Default for CanSpec {
    fn default() -> Self {
        Self {
            order: true,
            repeat: false,
            times: false,
            learns_from_recall: false,
            token_budget: false,
            survives_restart: true,
            banks: true,
            updates: false,
            withdraws: false,
            lists: false,
            filters: Vec::new(),
        }
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

/// How several lists of hits become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// One after the other.
    #[default]
    Append,
    /// In turn.
    Interleave,
    /// By score, best first.
    Score,
}

/// One request and what is read from its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallSpec {
    /// Method and path, such as `POST /v1/recall`. Variables in the path are escaped.
    pub request: String,
    /// Name of the tool that is called, of a system with `mcp`, instead of `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments of the tool, as templates; those of `body` are written in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Query parameters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Headers of this request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// JSON body: `"{k}"` alone keeps its type, `"{time?}"` drops its key when there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Body that is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_body: Option<String>,
    /// Statuses that count as success besides 2xx, such as 409 for what exists already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<u16>,
    /// Time of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What the response must say: at least one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
    /// Path of the system's own message, shown when an expectation fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `open`: path of the bank's handle, when the system makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// `retain`: path of the list with one element per stored item; a shorter list is a partial batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// `retain`: path of the `{id}` or `{key}` of an item in an element of the list `stored`. It is known then which items of a
    /// partial batch were stored, and the bank goes on behind them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_id: Option<String>,
    /// `verify`, `ready`: path of a number, or of a list that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// `recall`, `list`: where the hits are, or what the bank holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<HitsSpec>,
    /// `list`: path of what the next page is asked for by, `{cursor}`. A page without it is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// `answer`: path of the text. With server-sent events the texts of all events are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `answer`: path of the texts or ids that it cites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cites: Option<String>,
    /// `statistics`: paths of numbers, by the names under which they are reported.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<String, String>,
    /// `health`: path of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Server-sent events: names of the events that are read; all when empty. `error` always fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Server-sent events: the event without which the stream was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event: Option<String>,
    /// Paths of the tokens that the system says it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSpec>,
    /// A body of several parts (`multipart/form-data`) by their names, instead of `body`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub multipart: BTreeMap<String, PartSpec>,
    /// Values of the response that requests of `then` have as `{step.NAME}`: their paths, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// The request is repeated until the system has done what it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilSpec>,
    /// Requests that follow in the same operation, one after the other: at most seven. What the operation reads (`hits`, `count`,
    /// `handle`, `text`, …) it reads of the last response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<CallSpec>,
}

/// A part of a body of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartSpec {
    /// Its content, as a template.
    pub text: String,
    /// Name of the file that it is, as a template; a plain field unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// When a request has to be repeated no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UntilSpec {
    /// Path of the state.
    pub path: String,
    /// States that mean done.
    pub done: Vec<Value>,
    /// States that mean failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Value>,
    /// Time between two requests (1s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Longest time until it is done (10m unless given, at most 4h).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// How the items of a bank are removed one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeSpec {
    /// Lists items of the bank; asked again until there are none.
    pub list: CallSpec,
    /// Path of their ids in the response.
    pub ids: String,
    /// Removes the one that `{item}` names.
    pub remove: CallSpec,
}

/// Something that a response must say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Where.
    pub path: String,
    /// What.
    pub is: Value,
}

/// A list of hits in a response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HitsSpec {
    /// Path of the list; empty for the response itself.
    pub list: String,
    /// Path of the text in an element; empty when the element is the text.
    pub text: String,
    /// Path of the item's id in an element, when the system hands it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Path of the session's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Path of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The list may be missing.
    pub optional: bool,
    /// Path of what an element must not have: those that have it are no hits, but lists of another form of the same response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_with: Option<String>,
    /// Its hits come beside the k that are asked for, behind them: neighbours that the system adds to what it has found.
    #[serde(skip_serializing_if = "is_false")]
    pub beside_k: bool,
    /// Paths of what else the system says of a hit, by the names under which it is kept for reports: at most 16.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// Paths of what the system says it used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UsageSpec {
    /// Path of the number of prompt tokens in the response; absent where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<String>,
    /// Path of the number of completion tokens in the response; absent where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<String>,
}

/// When what was retained can be found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadySpec {
    /// The rule.
    pub when: ReadyRule,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallSpec>,
    /// `each_done`, `status`: path of the state; `all_done`: of all states; `stable`: of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `stable`: name of a metric, of a page in Prometheus's text format, in place of `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// States that mean done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Value>,
    /// States that mean failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Value>,
    /// Time between two polls (1s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Without progress for this long the bank has failed (2m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled_after: Option<String>,
    /// `stable`: how long the value must stay the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_for: Option<String>,
}

/// How readiness is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyRule {
    /// The response to a retain means that it can be found.
    #[default]
    Returned,
    /// One state for the bank becomes one of `done`.
    Status,
    /// Every item, by its own request with `{key}`, becomes one of `done`.
    EachDone,
    /// Of the states at `status` as many as there are items are one of `done`.
    AllDone,
    /// The count reaches the number of items.
    Count,
    /// The value at `status`, or of `metric`, stays the same for `stable_for`: promised, not proven.
    Stable,
    /// Nothing can be asked: promised, not proven.
    Promised,
}

/// How the runner starts the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// Program and arguments. `{port}`, `{dir}` (the instance's folder) and `${env:NAME}` are filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Container image, run with `docker run --rm` on the host's loopback; instead of `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Port inside the container (8000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_port: Option<u16>,
    /// `free`, or a fixed number.
    #[serde(default)]
    pub port: PortSpec,
    /// Environment of the process besides `PATH`, `HOME` and `LANG`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files that are written into the instance's folder first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Longest time until it is healthy (120s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The version that must report itself; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// One instance for the run, or one for each bank.
    #[serde(default)]
    pub per: InstancePer,
    /// Instances that are started at a time (one for each processor, fewer where memory is short).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// `per: bank`: instances that are kept although nobody asks for them (16, fewer where memory is short).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u32>,
}

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PortSpec {
    /// The one that is given.
    Fixed(u16),
    /// Any free one.
    Word(PortWord),
}

impl Default for PortSpec {
    fn default() -> Self {
        Self::Word(PortWord::Free)
    }
}

/// A port by a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortWord {
    /// Any free one.
    Free,
}

/// What shares an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstancePer {
    /// All banks of a run.
    #[default]
    Run,
    /// Each bank has its own.
    Bank,
}
