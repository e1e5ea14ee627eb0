//! Settings of a generator whose banks depend on a seed and their number alone.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde_json::Value;

use crate::{DatasetError, checksum};

/// What a generator calls its settings.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) dataset: &'static str,
    /// Section of its settings: `sim` of `sim.seed`.
    pub(crate) section: &'static str,
    /// The setting that says how many banks there are.
    pub(crate) banks: &'static str,
    /// Banks when nobody says how many.
    pub(crate) default: usize,
    /// More than any run needs; far fewer than a number that is a slip of the keyboard.
    pub(crate) most: usize,
}

/// Effective settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// An integer or a text; a text that reads as an integer is the integer.
    pub(crate) seed: Value,
    /// Number of banks.
    pub(crate) banks: usize,
}

impl Names {
    /// Reads settings, without their section.
    pub(crate) fn read(&self, given: &BTreeMap<String, Value>) -> Result<Settings, DatasetError> {
        let Self { dataset, section, banks, default, .. } = self;
        let mut settings = Settings { seed: Value::from(1), banks: *default };
        for (key, value) in given {
            let given = Given { name: &format!("{section}.{key}"), value };
            match key.as_str() {
                "seed" => settings.seed = seed(&given)?,
                key if key == *banks => settings.banks = given.number(1..=self.most)?,
                _ => {
                    return Err(DatasetError::Setting(format!(
                        "unknown setting '{section}.{key}'; dataset '{dataset}' has {section}.seed and {section}.{banks}"
                    )));
                }
            }
        }
        Ok(settings)
    }

    /// The settings by name, without their section.
    pub(crate) fn map(&self, settings: &Settings) -> BTreeMap<String, Value> {
        [("seed", settings.seed.clone()), (self.banks, settings.banks.into())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}

fn seed(given: &Given<'_>) -> Result<Value, DatasetError> {
    let value = given.value;
    match value {
        Value::Number(number) if !number.is_f64() => Ok(value.clone()),
        Value::String(text) if !text.is_empty() => Ok(match text.parse::<i64>() {
            // `1` and `"1"` are the same seed; `01` is another text
            Ok(number) if number.to_string() == *text => Value::from(number),
            _ => value.clone(),
        }),
        _ => Err(given.wrong("an integer or a text that is not empty")),
    }
}

/// A value that a user set.
pub(crate) struct Given<'a> {
    /// The setting, with its section.
    pub(crate) name: &'a str,
    pub(crate) value: &'a Value,
}

impl Given<'_> {
    /// The error for a value that cannot be used.
    pub(crate) fn wrong(&self, wanted: &str) -> DatasetError {
        DatasetError::Setting(format!("{} is {}; give {wanted}", self.name, self.value))
    }

    /// A whole number in a range, also as a text.
    pub(crate) fn number<T>(&self, range: RangeInclusive<T>) -> Result<T, DatasetError>
    where
        T: TryFrom<i64> + PartialOrd + std::fmt::Display,
    {
        let read = self.value.as_i64().or_else(|| self.value.as_str()?.parse().ok());
        let number = read.and_then(|number| T::try_from(number).ok()).filter(|number| range.contains(number));
        number.ok_or_else(|| self.wrong(&format!("an integer from {} to {}", range.start(), range.end())))
    }

    /// True or false, also as a text.
    pub(crate) fn truth(&self) -> Result<bool, DatasetError> {
        let read = self.value.as_bool().or_else(|| self.value.as_str()?.parse().ok());
        read.ok_or_else(|| self.wrong("true or false"))
    }
}

impl Settings {
    /// The seed as the text that the generator draws from.
    pub(crate) fn seed_text(&self) -> String {
        self.seed.as_str().map_or_else(|| self.seed.to_string(), str::to_owned)
    }

    /// The seed as part of an id: itself when it is short and plain, else a hash of it.
    pub(crate) fn seed_label(&self) -> String {
        let text = self.seed_text();
        let plain = text.len() <= 32 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if plain { text } else { format!("x{}", &checksum::of_bytes(text.as_bytes())[..12]) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMES: Names =
        Names { dataset: "locomo-sim", section: "sim", banks: "conversations", default: 10, most: 1_000_000 };

    fn read(pairs: &[(&str, Value)]) -> Result<Settings, String> {
        let given = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        NAMES.read(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn integers_and_texts_are_seeds() {
        let default = Settings { seed: 1.into(), banks: 10 };
        assert_eq!(read(&[]).expect("none"), default);
        assert_eq!(read(&[("seed", json!("1"))]).expect("text"), default);
        assert_eq!(
            NAMES.map(&default),
            BTreeMap::from([("conversations", 10), ("seed", 1)].map(|(n, v)| (n.into(), v.into())))
        );
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
        assert_eq!(read(&[("conversations", json!("25"))]).expect("text").banks, 25);
    }
}
