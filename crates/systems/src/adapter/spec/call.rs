//! What an operation sends, and what is read from the response: [`CallSpec`] and what it is made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_false;

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
    /// `list`: path of what says that there is a next page, and by which it is asked for where the request has `{cursor}`. A page
    /// without it is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// `list` without pages: how many items it gives at most. One that gives so many may leave some out, and is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// `answer`: path of the text. With server-sent events the texts of all events are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `answer`: which one is read where `text` leads to several texts, or to one in each of several events. Unless given it is the
    /// first one, and all events are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
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

/// One of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The value that stands first in the response.
    First,
    /// The value that stands last in it.
    Last,
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

/// Something that a response must say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Path of a value in the response.
    pub path: String,
    /// What the value must be.
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
    /// Path of the system's own ids of what the hit was made of, one or a list: `places` says which items these are. A hit whose `id`
    /// is not known is placed by the first of them that is; the others are kept in its details, as `made_of`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_of: Option<String>,
    /// Path of the session's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Path of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// Path of when it was said or happened: it is put before a text that does not begin with `[`, as `[2023-05-08] …`. Where a system
    /// keeps the time beside its texts, whoever answers would not see it. In `list` it counts for nothing: what is listed is compared
    /// word for word with what was retained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
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
    /// The same of what stands once in the response, such as how it has searched: kept with the first hit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details_of_reply: BTreeMap<String, String>,
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

/// How a system's own ids are looked up: the request is sent once for each bank and number of its entries, and again for an id that
/// was not there yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacesSpec {
    /// Lists what the bank holds.
    pub call: CallSpec,
    /// Path of the list; empty for the response itself.
    pub list: String,
    /// Path of the system's own id in an element.
    pub id: String,
    /// Path of the `{id}` that the item was stored with.
    pub is: String,
}
