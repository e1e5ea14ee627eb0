//! A judge audit: a run whose answers are planted, so that it is known which of them a judge should accept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the memory system that planted answers count as: none has made them.
pub const PLANTED_SYSTEM: &str = "planted";
/// Facet of a planted answer: what it is planted for, such as `vague`.
pub const PLANTED: &str = "planted";
/// Facet of a planted answer: the form of what is expected, such as `date`.
pub const PLANTED_FORM: &str = "planted-form";
/// Facet of a planted answer: how long it is.
pub const PLANTED_LENGTH: &str = "planted-length";

/// What is planted in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlantedSpec {
    /// Version of what makes planted answers; 0 for those of a file.
    pub version: u32,
    /// Name and sha256 of the file that they are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Id of the run whose own answers these are, graded by somebody who knows; absent for answers that were planted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_of: Option<String>,
    /// Kinds that a judge should reject.
    pub wrong: Vec<String>,
    /// Kinds that a judge should accept.
    pub right: Vec<String>,
}
