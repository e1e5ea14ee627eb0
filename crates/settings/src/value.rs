//! Values: from TOML, from text, to what people see.

use std::{fmt, path::PathBuf, time::Duration};

use bench_proto::{money::PicoUsd, redact, task::check_pool, usage_cap::UsageCap};
use secrecy::SecretString;
use toml::de::DeValue;

use crate::{duration, schema::Kind};

/// The value of a setting.
#[derive(Clone)]
pub enum Value {
    /// Texts, words, model names.
    Text(String),
    /// Truth values.
    Bool(bool),
    /// Whole numbers.
    Whole(i64),
    /// Other numbers.
    Number(f64),
    /// Such as `20s`.
    Duration(Duration),
    /// Lists of texts.
    List(Vec<String>),
    /// May hold a password: shown without it.
    Url(String),
    /// Files and folders.
    Path(PathBuf),
    /// Amounts of money.
    Usd(PicoUsd),
    /// A number of tokens or calls.
    Usage(UsageCap),
    /// Keys.
    Secret(SecretString),
}

impl fmt::Debug for Value {
    /// As shown: without keys and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Value {
    /// Reads text from the environment or a flag; `None` when `kind` does not take it.
    pub(crate) fn from_text(kind: Kind, text: &str) -> Option<Self> {
        Some(match kind {
            Kind::Text => Self::Text(text.to_owned()),
            Kind::Bool => Self::Bool(text.parse().ok()?),
            Kind::Whole { min, max } => {
                Self::Whole(text.replace('_', "").parse().ok().filter(|number| (min..=max).contains(number))?)
            }
            Kind::Number { min, max } => Self::Number(text.parse().ok().filter(|number| (min..=max).contains(number))?),
            Kind::Duration => Self::Duration(duration::parse(text)?),
            Kind::OneOf(words) => Self::Text((*words.iter().find(|word| **word == text)?).to_owned()),
            Kind::List => {
                Self::List(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
            }
            Kind::Pool => Self::Text(check_pool(text).is_ok().then(|| text.to_owned())?),
            Kind::Url(_) => Self::Url(has_scheme(text).then(|| text.to_owned())?),
            Kind::BaseUrl => {
                let scheme = text.split_once("://")?.0;
                let known = ["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
                Self::Url(known.then(|| text.to_owned())?)
            }
            Kind::Path => Self::Path((!text.is_empty()).then(|| text.into())?),
            Kind::Usd => Self::Usd(PicoUsd::parse(text)?),
            Kind::Cap => match UsageCap::parse(text) {
                Some(cap) => Self::Usage(cap),
                None => Self::Usd(PicoUsd::parse(text)?),
            },
            Kind::Scalar => scalar(text),
            Kind::Secret => Self::Secret(text.into()),
        })
    }

    /// Reads a TOML value; `None` when `kind` does not take it.
    pub(crate) fn from_toml(kind: Kind, value: &DeValue<'_>) -> Option<Self> {
        let digits = |value: &DeValue<'_>| {
            let number = value.as_integer()?;
            i64::from_str_radix(number.as_str(), number.radix()).ok()
        };
        match (kind, value) {
            (Kind::Bool, DeValue::Boolean(flag)) | (Kind::Scalar, DeValue::Boolean(flag)) => Some(Self::Bool(*flag)),
            (Kind::Scalar, DeValue::Integer(_)) => digits(value).map(Self::Whole),
            (Kind::Whole { .. }, DeValue::Integer(_)) => Self::from_text(kind, &digits(value)?.to_string()),
            (Kind::Number { .. } | Kind::Usd | Kind::Cap, DeValue::Integer(_)) => {
                Self::from_text(kind, &digits(value)?.to_string())
            }
            (Kind::Number { .. } | Kind::Usd | Kind::Cap | Kind::Scalar, DeValue::Float(number)) => {
                Self::from_text(kind, number.as_str())
            }
            // a seed may be written as a number
            (Kind::Text | Kind::Pool, DeValue::Integer(_)) => {
                digits(value).map(|number| Self::Text(number.to_string()))
            }
            (Kind::List, DeValue::String(text)) => Some(Self::List(vec![text.clone().into_owned()])),
            (Kind::List, DeValue::Array(items)) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .map(Self::List),
            (Kind::Scalar, DeValue::String(text)) => Some(Self::Text(text.clone().into_owned())),
            (
                Kind::Text
                | Kind::Duration
                | Kind::OneOf(_)
                | Kind::Pool
                | Kind::Url(_)
                | Kind::BaseUrl
                | Kind::Path
                | Kind::Usd
                | Kind::Cap,
                DeValue::String(text),
            ) => Self::from_text(kind, text),
            _ => None,
        }
    }

    /// A text, word, name or URL as it was given; `None` for values of other kinds.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Url(text) => Some(text),
            _ => None,
        }
    }

    /// What `config show` prints.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => redact::text(text).into_owned(),
            Self::Bool(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Duration(duration) => duration::show(*duration),
            Self::List(items) if items.is_empty() => "none".into(),
            Self::List(items) => items.join(", "),
            Self::Url(url) => redact::url(url).into_owned(),
            Self::Path(path) => path.display().to_string(),
            Self::Usd(amount) => amount.to_string(),
            Self::Usage(cap) => cap.to_string(),
            Self::Secret(_) => "set (hidden)".into(),
        }
    }

    /// The value as JSON, for a dataset or system that owns the setting; keys are left out.
    #[must_use]
    pub fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Bool(flag) => (*flag).into(),
            Self::Whole(number) => (*number).into(),
            Self::Number(number) => (*number).into(),
            Self::List(items) => items.clone().into(),
            Self::Text(text) | Self::Url(text) => text.clone().into(),
            Self::Duration(_) | Self::Path(_) | Self::Usage(_) => self.shown().into(),
            Self::Usd(amount) => amount.usd().into(),
            Self::Secret(_) => return None,
        })
    }
}

/// The most specific reading of a text.
fn scalar(text: &str) -> Value {
    let whole = || text.parse().ok().map(Value::Whole);
    let number = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Number);
    let truth = || text.parse().ok().map(Value::Bool);
    whole().or_else(number).or_else(truth).unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// `scheme:` at the start, as RFC 3986 has it.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// A TOML value as part of a message: short, and without what could be a secret.
pub(crate) fn found(kind: Kind, value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => found_text(kind, text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => format!("a TOML {}", other.type_str()),
    }
}

/// A text as part of a message.
pub(crate) fn found_text(kind: Kind, text: &str) -> String {
    let shown = match kind {
        Kind::Secret => return "(hidden)".into(),
        Kind::Url(_) | Kind::BaseUrl => redact::url(text),
        _ => redact::text(text),
    };
    if shown == redact::HIDDEN {
        return "no URL (it may hold a secret and is not shown)".into();
    }
    format!("{:?}", shown.chars().take(60).collect::<String>())
}
