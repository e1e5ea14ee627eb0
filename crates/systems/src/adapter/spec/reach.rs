//! How a system is reached: as a server of tools or as a class, with which key, and what the network may do for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The header of that name.
    #[default]
    Header,
    /// The cookie of that name.
    Cookie,
    /// A query parameter.
    Query,
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
