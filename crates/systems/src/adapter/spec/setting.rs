//! A setting of the system that a run may choose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Any text.
    Text,
    /// A number, with or without a fraction.
    Number,
    /// A whole number.
    Whole,
    /// True or false.
    Flag,
}
