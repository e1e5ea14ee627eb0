//! Settings of systems: declared by name, checked before anything is built.

use serde_json::Value;

use crate::{BuildError, SystemSettings};

/// A setting that a system knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Dotted name: `<system>.<setting>`.
    pub name: &'static str,
    /// One line.
    pub description: &'static str,
    /// Default as a person types it.
    pub default: &'static str,
}

impl Setting {
    pub(crate) const fn new(name: &'static str, description: &'static str, default: &'static str) -> Self {
        Self { name, description, default }
    }
}

/// Refuses settings that the system does not know.
pub(crate) fn check(system: &str, known: &[Setting], settings: &SystemSettings) -> Result<(), BuildError> {
    match settings.keys().find(|key| known.iter().all(|setting| setting.name != key.as_str())) {
        None => Ok(()),
        Some(setting) => Err(BuildError::UnknownSetting {
            system: system.to_owned(),
            setting: setting.clone(),
            known: known.iter().map(|setting| setting.name).collect(),
        }),
    }
}

/// The value of a setting as text; numbers count as their digits.
pub(crate) fn text(settings: &SystemSettings, setting: &Setting) -> Result<String, BuildError> {
    match settings.get(setting.name) {
        None => Ok(setting.default.to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(other) => Err(bad(setting, "a text or number", other)),
    }
}

/// The value of a setting as a number from `min` to `max`; texts that hold a number are read.
pub(crate) fn number(settings: &SystemSettings, setting: &Setting, min: f64, max: f64) -> Result<f64, BuildError> {
    let value = settings.get(setting.name);
    let read = match value {
        None => setting.default.parse().ok(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_f64(),
    };
    read.filter(|number| (min..=max).contains(number))
        .ok_or_else(|| bad(setting, &format!("a number from {min} to {max}"), value.unwrap_or(&Value::Null)))
}

fn bad(setting: &Setting, expected: &str, value: &Value) -> BuildError {
    BuildError::BadSetting { setting: setting.name, expected: expected.to_owned(), value: value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const B: Setting = Setting { name: "x.b", description: "", default: "0.5" };

    fn with(value: Value) -> SystemSettings {
        SystemSettings::from([("x.b".to_owned(), value)])
    }

    #[test]
    fn numbers_are_read_and_bounded() {
        assert_eq!(number(&SystemSettings::new(), &B, 0.0, 1.0), Ok(0.5));
        assert_eq!(number(&with(json!(1)), &B, 0.0, 1.0), Ok(1.0));
        assert_eq!(number(&with(json!(" 0.25")), &B, 0.0, 1.0), Ok(0.25));
        for bad in [json!(2), json!("NaN"), json!("abc"), json!(null), json!([1])] {
            let error = number(&with(bad.clone()), &B, 0.0, 1.0).expect_err("must be refused").to_string();
            assert_eq!(error, format!("setting x.b must be a number from 0 to 1, not {bad}"));
        }
    }

    #[test]
    fn texts_may_be_numbers() {
        assert_eq!(text(&with(json!(7)), &B), Ok("7".to_owned()));
        assert_eq!(text(&with(json!("seven")), &B), Ok("seven".to_owned()));
        assert!(text(&with(json!(true)), &B).is_err());
    }
}
