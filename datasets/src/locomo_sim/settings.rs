//! The generator's settings: `sim.seed` and `sim.conversations`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{DatasetError, checksum};

/// More conversations than any run needs; far fewer than a number that is a slip of the keyboard.
const MOST_CONVERSATIONS: u64 = 1_000_000;

/// Effective settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// An integer or a text; a text that reads as an integer is the integer.
    pub(super) seed: Value,
    /// Number of banks.
    pub(super) conversations: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: Value::from(1), conversations: 10 }
    }
}

impl Settings {
    /// Reads settings, without their prefix.
    pub(super) fn read(given: &BTreeMap<String, Value>) -> Result<Self, DatasetError> {
        let mut settings = Self::default();
        for (key, value) in given {
            match key.as_str() {
                "seed" => settings.seed = seed(value)?,
                "conversations" => settings.conversations = conversations(value)?,
                _ => {
                    return Err(DatasetError::Setting(format!(
                        "unknown setting 'sim.{key}'; dataset 'locomo-sim' has sim.seed and sim.conversations"
                    )));
                }
            }
        }
        Ok(settings)
    }

    /// The settings by name, without their prefix.
    pub(super) fn to_map(&self) -> BTreeMap<String, Value> {
        BTreeMap::from([
            ("conversations".to_owned(), Value::from(self.conversations)),
            ("seed".to_owned(), self.seed.clone()),
        ])
    }

    /// The seed as the text that the generator draws from.
    pub(super) fn seed_text(&self) -> String {
        self.seed.as_str().map_or_else(|| self.seed.to_string(), str::to_owned)
    }

    /// The seed as part of an id: itself when it is short and plain, else a hash of it.
    pub(super) fn seed_label(&self) -> String {
        let text = self.seed_text();
        let plain = text.len() <= 32 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if plain { text } else { format!("x{}", &checksum::of_bytes(text.as_bytes())[..12]) }
    }
}

fn seed(value: &Value) -> Result<Value, DatasetError> {
    match value {
        Value::Number(number) if !number.is_f64() => Ok(value.clone()),
        Value::String(text) if !text.is_empty() => Ok(match text.parse::<i64>() {
            // `1` and `"1"` are the same seed; `01` is another text
            Ok(number) if number.to_string() == *text => Value::from(number),
            _ => value.clone(),
        }),
        _ => Err(DatasetError::Setting(format!("sim.seed is {value}; give an integer or a text that is not empty"))),
    }
}

fn conversations(value: &Value) -> Result<usize, DatasetError> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number
        .filter(|number| (1..=MOST_CONVERSATIONS).contains(number))
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(|| {
            DatasetError::Setting(format!(
                "sim.conversations is {value}; give an integer from 1 to {MOST_CONVERSATIONS}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pairs: &[(&str, Value)]) -> Result<Settings, String> {
        let given = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Settings::read(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn integers_and_texts_are_seeds() {
        assert_eq!(read(&[]).expect("none"), Settings::default());
        assert_eq!(read(&[("seed", json!("1"))]).expect("text"), Settings::default());
        let label = |seed: Value| read(&[("seed", seed)]).expect("a seed").seed_label();
        assert_eq!(
            [label(json!(-5)), label(json!("abc")), label(json!(u64::MAX))],
            ["-5", "abc", "18446744073709551615"]
        );
        assert_eq!(label(json!("a b")), "xc8687a08aa5d");
        assert_eq!(label(json!("x".repeat(33))).len(), 13);
    }

    #[test]
    fn other_settings_and_values_are_named() {
        insta::assert_snapshot!(read(&[("sed", json!(1))]).expect_err("typo"), @"unknown setting 'sim.sed'; dataset 'locomo-sim' has sim.seed and sim.conversations");
        insta::assert_snapshot!(read(&[("seed", json!(1.5))]).expect_err("float"), @"sim.seed is 1.5; give an integer or a text that is not empty");
        insta::assert_snapshot!(read(&[("seed", json!(""))]).expect_err("empty"), @r#"sim.seed is ""; give an integer or a text that is not empty"#);
        insta::assert_snapshot!(read(&[("conversations", json!(0))]).expect_err("zero"), @"sim.conversations is 0; give an integer from 1 to 1000000");
        assert_eq!(read(&[("conversations", json!("25"))]).expect("text").conversations, 25);
    }
}
