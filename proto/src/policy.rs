//! What a process lets memory systems do (P42): set by whoever operates it, and told to others by its session.

use serde::{Deserialize, Serialize};

/// Hexadecimal digits of an adapter's hash that a session tells: enough to know it, the process itself compares all.
pub const TOLD_DIGITS: usize = 16;

/// What is allowed, as settings list it. Readers ignore unknown fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemPolicy {
    /// Everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
    /// Adapters by the sha256 of their canonical form and mode, in hexadecimal digits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<String>,
    /// Command lines that may be run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Container images that may be started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Variables of the process that started systems may be given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Files whose text started systems may be given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Hosts that may be asked, as `host` or `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Which secret may go where, as `NAME@host`, `/path@host` or either with a port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

impl SystemPolicy {
    /// As a session tells it: hashes are cut to [`TOLD_DIGITS`].
    #[must_use]
    pub fn told(mut self) -> Self {
        self.systems.iter_mut().for_each(|hash| hash.truncate(TOLD_DIGITS));
        self
    }

    /// Whether an adapter of this hash is listed.
    #[must_use]
    pub fn lists(&self, hash: &str) -> bool {
        self.systems.iter().any(|listed| listed.len() >= TOLD_DIGITS && hash.starts_with(listed.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p42_the_told_form_is_pinned_and_knows_an_adapter_by_the_beginning_of_its_hash() {
        let hash = "0123456789abcdef".repeat(4);
        let policy = SystemPolicy { systems: vec![hash.clone()], hosts: vec!["mem:80".into()], ..Default::default() };
        assert!(policy.lists(&hash) && !policy.lists(&"f".repeat(64)));
        let told = policy.told();
        let json = r#"{"systems":["0123456789abcdef"],"hosts":["mem:80"]}"#;
        assert_eq!(serde_json::to_string(&told).expect("serialises"), json);
        assert!(told.lists(&hash));
        assert_eq!(serde_json::from_str::<SystemPolicy>(r#"{"later": 1}"#).expect("reads"), SystemPolicy::default());
        let short = SystemPolicy { systems: vec![String::new(), "01".into()], ..Default::default() };
        assert!(!short.lists(&hash), "a short beginning stands for nothing");
    }
}
