//! Prices: one data file (`prices.json`), exact integers per token, and the user's own prices before it.

use std::{collections::BTreeMap, sync::LazyLock};

use bench_proto::money::PicoUsd;
use serde::Deserialize;

use super::capabilities::bare_name;

/// Price of one token of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Per prompt token.
    pub input: PicoUsd,
    /// Per prompt token that the provider had cached.
    pub cached_input: PicoUsd,
    /// Per completion token.
    pub output: PicoUsd,
}

impl Price {
    /// Cost of a call. `cached` is the cached part of `prompt`. Sticks at the end of the range.
    #[must_use]
    pub const fn cost(&self, prompt: u64, cached: u64, completion: u64) -> PicoUsd {
        let cached = if cached < prompt { cached } else { prompt };
        times(self.input, prompt - cached)
            .saturating_add(times(self.cached_input, cached))
            .saturating_add(times(self.output, completion))
    }
}

/// `price × tokens`, sticking at the end of the range.
const fn times(price: PicoUsd, tokens: u64) -> PicoUsd {
    let tokens = if tokens > i64::MAX as u64 { i64::MAX } else { tokens as i64 };
    PicoUsd(price.0.saturating_mul(tokens))
}

/// The data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    version: u32,
    date: String,
    #[serde(rename = "note")]
    _note: String,
    models: Vec<PriceLine>,
}

/// One line of it: decimal strings in USD per million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceLine {
    model: String,
    input: String,
    cached_input: String,
    output: String,
}

/// Version of the price file's format.
const FILE_VERSION: u32 = 1;

/// All known prices.
#[derive(Debug)]
pub struct PriceTable {
    date: String,
    models: BTreeMap<String, Price>,
}

static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
    PriceTable::read(include_str!("prices.json")).unwrap_or_else(|problem| {
        // a test reads the same file, so this cannot reach users; unpriced is refused before any call, never free
        tracing::error!("prices.json: {problem}");
        PriceTable { date: String::new(), models: BTreeMap::new() }
    })
});

impl PriceTable {
    /// The table of this build.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &TABLE
    }

    fn read(text: &str) -> Result<Self, String> {
        let file: PriceFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.version != FILE_VERSION {
            return Err(format!("version {} is unknown", file.version));
        }
        let mut models = BTreeMap::new();
        for line in file.models {
            let read = |text: &str| per_token(text).ok_or_else(|| format!("{}: '{text}' is no price", line.model));
            let price = Price {
                input: read(&line.input)?,
                cached_input: read(&line.cached_input)?,
                output: read(&line.output)?,
            };
            if models.insert(line.model.clone(), price).is_some() {
                return Err(format!("{} stands there twice", line.model));
            }
        }
        Ok(Self { date: file.date, models })
    }

    /// Day of the prices, `YYYY-MM-DD`.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Models and prices, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.models.iter().map(|(name, price)| (name.as_str(), price))
    }

    /// The price of a model: its own line, or that of the longest name of which it is a dated version
    /// (`gpt-4o-mini-2024-07-18`, `gpt-4o-latest`). `gpt-4o-audio-preview` is another model, not a version of `gpt-4o`.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        self.models.get(family(model, |name| self.models.contains_key(name))?).copied()
    }
}

/// The longest known name of which `model` is a version.
fn family(model: &str, known: impl Fn(&str) -> bool) -> Option<&str> {
    let name = bare_name(model);
    std::iter::once(name.len())
        .chain(name.rmatch_indices('-').map(|(at, _)| at))
        .map(|end| name.split_at(end))
        .find(|(prefix, rest)| known(prefix) && is_version(rest))
        .map(|(prefix, _)| prefix)
}

/// Nothing, `-latest`, or a `-` followed by digits and dashes (a date).
fn is_version(suffix: &str) -> bool {
    let Some(rest) = suffix.strip_prefix('-') else {
        return suffix.is_empty();
    };
    rest == "latest" || (rest.len() >= 4 && rest.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
}

/// The name under which a model shares its rate limits: without its date.
#[must_use]
pub fn limit_group(model: &str) -> &str {
    family(model, |name| TABLE.models.contains_key(name)).unwrap_or(model)
}

/// Reads dollars per million tokens as pico-dollars per token; at most six decimals, so that it is exact.
fn per_token(text: &str) -> Option<PicoUsd> {
    let per_million = PicoUsd::parse(text)?.0;
    (per_million % 1_000_000 == 0).then_some(PicoUsd(per_million / 1_000_000))
}

/// Reads a user's `--price IN,OUT` in dollars per million tokens.
///
/// # Errors
/// A readable line when it is not two amounts with at most six decimals.
pub fn parse_price(text: &str) -> Result<(PicoUsd, PicoUsd), String> {
    let pair =
        text.split_once(',').and_then(|(input, output)| Some((per_token(input.trim())?, per_token(output.trim())?)));
    pair.ok_or_else(|| {
        format!("'{text}' is no price: give dollars per million tokens as IN,OUT with at most six decimals, such as 0.15,0.60")
    })
}

/// The price of a model: the user's (`overrides`: model → price per token of prompt and completion) before the table's.
/// `None` when nobody knows it.
#[must_use]
pub fn price_of(model: &str, overrides: &BTreeMap<String, (PicoUsd, PicoUsd)>) -> Option<Price> {
    match overrides.get(model) {
        Some((input, output)) => Some(Price { input: *input, cached_input: *input, output: *output }),
        None => TABLE.price(model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> PicoUsd {
        PicoUsd::parse(text).expect("an amount")
    }

    #[test]
    fn the_file_reads_and_its_date_is_a_date() {
        let table = PriceTable::read(include_str!("prices.json")).expect("prices.json is well-formed");
        assert!(table.models.len() >= 15);
        assert!(table.date.parse::<jiff::civil::Date>().is_ok(), "{}", table.date);
        for (name, price) in table.models() {
            assert!(price.cached_input <= price.input && price.input.0 > 0, "{name}");
        }
    }

    #[test]
    fn golden_of_the_format() {
        let text = r#"{"version":1,"date":"2030-01-01","note":"","models":[{"model":"m","input":"0.000001","cached_input":"0","output":"12"}]}"#;
        let price = PriceTable::read(text).expect("readable").price("m").expect("priced");
        assert_eq!(price, Price { input: PicoUsd(1), cached_input: PicoUsd(0), output: PicoUsd(12_000_000) });
        assert!(PriceTable::read(&text.replace("\"version\":1", "\"version\":2")).is_err());
        assert!(PriceTable::read(&text.replace("\"12\"", "\"12.0000001\"")).is_err(), "not exact per token");
        assert!(PriceTable::read(&text.replace("\"12\"", "\"-1\"")).is_err());
        assert!(PriceTable::read(&text.replace("\"note\"", "\"notes\"")).is_err());
    }

    #[test]
    fn costs_are_exact() {
        let price = price_of("gpt-4o-mini", &BTreeMap::new()).expect("priced");
        assert_eq!(price.cost(1_000_000, 0, 0), usd("0.15"));
        assert_eq!(price.cost(1_000_000, 1_000_000, 1_000_000), usd("0.675"));
        assert_eq!(price.cost(10, 50, 0), price.cost(10, 10, 0), "more cached than there is");
        assert_eq!(price.cost(u64::MAX, 0, u64::MAX), PicoUsd(i64::MAX));
    }

    #[test]
    fn dated_names_are_of_their_family() {
        let table = PriceTable::built_in();
        for (name, family) in [
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
            ("gpt-4.1-nano-2025-04-14", "gpt-4.1-nano"),
            ("gpt-5-chat-latest", "gpt-5-chat"),
            ("gpt-3.5-turbo-0125", "gpt-3.5-turbo"),
            ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ] {
            assert_eq!(table.price(name), table.price(family), "{name}");
            assert!(table.price(name).is_some(), "{name}");
            assert_eq!(limit_group(name), family);
        }
        assert_ne!(table.price("gpt-4o-2024-05-13"), table.price("gpt-4o"), "it has a line of its own");
        for unknown in ["gpt-4o-audio-preview", "gpt-4omni", "llama-3", "", "gpt", "gpt-4o-1"] {
            assert_eq!(table.price(unknown), None, "{unknown}");
            assert_eq!(limit_group(unknown), unknown);
        }
    }

    #[test]
    fn users_set_prices() {
        let pair = parse_price("0.15, 0.60").expect("a price");
        let overrides = BTreeMap::from([("gpt-4o".to_owned(), pair), ("mine".to_owned(), pair)]);
        assert_eq!(price_of("mine", &overrides).expect("priced").cost(1_000_000, 500_000, 0), usd("0.15"));
        assert_eq!(price_of("gpt-4o", &overrides), price_of("mine", &overrides));
        for bad in ["", "1", "a,b", "1,-2", "1,0.0000001", "1,2,3"] {
            assert!(parse_price(bad).is_err(), "{bad}");
        }
    }
}
