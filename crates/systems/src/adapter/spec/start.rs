//! How the runner starts a system: what is run, on which port, and which banks share it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the runner starts the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// Program and arguments. `{port}`, `{dir}` (the instance's folder) and `${env:NAME}` are filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A program and arguments that say, before it is started, whether `command` can work here: run as that is, it has to end well
    /// within 30 seconds. Its last words are the reason why a run is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check: Vec<String>,
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

/// On which port a started server listens.
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
