//! A cap on what a run uses, for servers whose models have no price: tokens or calls in the place of dollars (P10).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageUnit {
    /// Tokens of prompts and completions together.
    Tokens,
    /// Attempts that a provider may have worked on.
    Calls,
}

impl UsageUnit {
    /// Every unit.
    pub const ALL: [Self; 2] = [Self::Tokens, Self::Calls];

    /// The word behind a number: `tokens`, `calls`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Calls => "calls",
        }
    }

    /// A number of it, in words: `1 call`, `40 calls`.
    #[must_use]
    pub fn counted(self, number: i64) -> String {
        let name = if number == 1 { self.name().trim_end_matches('s') } else { self.name() };
        format!("{number} {name}")
    }

    /// What one attempt with so many tokens uses.
    #[must_use]
    pub fn of_attempt(self, tokens: u64) -> i64 {
        match self {
            Self::Tokens => i64::try_from(tokens).unwrap_or(i64::MAX),
            Self::Calls => 1,
        }
    }
}

/// Most that a run may use of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCap {
    /// What is counted.
    pub unit: UsageUnit,
    /// Most of it; above 0, where it is not what deleted runs have left of a cap.
    pub most: i64,
}

impl UsageCap {
    /// Reads `500calls`, `2000000tokens`, `2_000_000 tokens`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let words = |unit: &UsageUnit| [unit.name(), unit.name().trim_end_matches('s')];
        let (unit, number) = UsageUnit::ALL
            .into_iter()
            .find_map(|unit| Some((unit, words(&unit).into_iter().find_map(|word| text.strip_suffix(word))?)))?;
        let number = number.trim_end().replace('_', "");
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let most = number.parse().ok().filter(|most| *most > 0 && is_plain)?;
        Some(Self { unit, most })
    }
}

impl fmt::Display for UsageCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unit.counted(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_a_number_and_its_unit() {
        let cap = |unit, most| Some(UsageCap { unit, most });
        for (text, read) in [
            ("500calls", cap(UsageUnit::Calls, 500)),
            ("1 call", cap(UsageUnit::Calls, 1)),
            ("2_000_000 tokens", cap(UsageUnit::Tokens, 2_000_000)),
            ("20", None),
            ("calls", None),
            ("0calls", None),
            ("-1calls", None),
            ("+1calls", None),
            ("1.5tokens", None),
            ("5dollars", None),
        ] {
            assert_eq!(UsageCap::parse(text), read, "{text}");
        }
        assert_eq!(UsageCap::parse("500calls").map(|cap| cap.to_string()).as_deref(), Some("500 calls"));
        assert_eq!(
            UsageCap::parse("500 calls").map(|cap| UsageCap::parse(&cap.to_string())),
            Some(UsageCap::parse("500calls"))
        );
    }
}
