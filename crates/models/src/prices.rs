//! Prices: one data file (`prices.json`), exact integers per token, and the user's own prices before it.

mod litellm;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use bench_proto::{
    money::PicoUsd,
    price::{LongContext, ModelPrice, Rates, Tier},
    spec::Limits,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};

pub use self::litellm::{PUBLISHED_AT as LITELLM_TABLE, Read as LiteLlmTable, read as read_litellm};
use super::{capabilities::bare_name, providers};

/// The data file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    version: u32,
    date: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    sources: Vec<PriceSource>,
    models: Vec<PriceLine>,
}

/// Where prices of a provider were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSource {
    /// The provider, as lines of models name it.
    pub provider: String,
    /// Day of the check, `YYYY-MM-DD`.
    pub checked: String,
    /// The provider's own pages, or the table that was read.
    pub pages: Vec<String>,
}

/// One model of it.
#[derive(Debug, Serialize, Deserialize)]
struct PriceLine {
    model: String,
    #[serde(default, skip_serializing_if = "ModelKind::is_chat")]
    kind: ModelKind,
    /// Whose price it is: one of the sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// Most prompt tokens that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    /// Most completion tokens that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_output: Option<u64>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    supports: BTreeSet<String>,
    /// Day of this price, where it is another one than the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(flatten)]
    standard: TierLine,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    services: BTreeMap<String, TierLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_percent: Option<u8>,
}

/// Prices of a tier.
#[derive(Debug, Serialize, Deserialize)]
struct TierLine {
    #[serde(flatten)]
    rates: RateTexts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long: Option<LongLine>,
    #[serde(flatten, skip_serializing)]
    unknown: Unknown,
}

/// Prices of prompts above a length.
#[derive(Debug, Serialize, Deserialize)]
struct LongLine {
    above: u64,
    #[serde(flatten)]
    rates: RateTexts,
    #[serde(flatten, skip_serializing)]
    unknown: Unknown,
}

/// Decimal strings in USD per million tokens. What is left out of the prompt's prices is that of `input`.
#[derive(Debug, Serialize, Deserialize)]
struct RateTexts {
    input: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached_input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_write: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_write_1h: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// Fields that nobody knows: `deny_unknown_fields` does not go together with flattened ones.
type Unknown = BTreeMap<String, IgnoredAny>;

fn refuse(unknown: &Unknown) -> Result<(), String> {
    unknown.keys().next().map_or(Ok(()), |field| Err(format!("unknown field '{field}'")))
}

/// What a price list says that a model does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Answers.
    #[default]
    Chat,
    /// Turns texts into vectors: it has no completion.
    Embedding,
}

impl ModelKind {
    fn is_chat(&self) -> bool {
        *self == Self::Chat
    }

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embedding => "embedding",
        }
    }
}

impl RateTexts {
    fn rates(&self, kind: ModelKind) -> Result<Rates, String> {
        let read = |text: &String| per_token(text).ok_or_else(|| format!("'{text}' is no price"));
        let input = read(&self.input)?;
        let or = |text: &Option<String>, other: PicoUsd| text.as_ref().map_or(Ok(other), read);
        let cache_write = or(&self.cache_write, input)?;
        let output = match (&self.output, kind) {
            (Some(text), _) => read(text)?,
            (None, ModelKind::Embedding) => PicoUsd::ZERO,
            (None, ModelKind::Chat) => return Err("a chat model needs an output price".to_owned()),
        };
        let cached_input = or(&self.cached_input, input)?;
        let cache_write_1h = or(&self.cache_write_1h, cache_write)?;
        Ok(Rates { input, cached_input, cache_write, cache_write_1h, output })
    }
}

impl LongLine {
    fn read(&self, kind: ModelKind) -> Result<LongContext, String> {
        refuse(&self.unknown)?;
        Ok(LongContext { above: self.above, rates: self.rates.rates(kind)? })
    }
}

impl TierLine {
    fn read(&self, kind: ModelKind) -> Result<Tier, String> {
        refuse(&self.unknown)?;
        let long = self.long.as_ref().map(|long| long.read(kind)).transpose()?;
        Ok(Tier { rates: self.rates.rates(kind)?, long })
    }
}

impl PriceLine {
    fn price(&self) -> Result<ModelPrice, String> {
        let service = |(name, line): (&String, &TierLine)| line.read(self.kind).map(|tier| (name.clone(), tier));
        if self.batch_percent.is_some_and(|percent| percent > 100) {
            return Err("batch_percent is at most 100".to_owned());
        }
        Ok(ModelPrice {
            standard: self.standard.read(self.kind)?,
            services: self.services.iter().map(service).collect::<Result<_, String>>()?,
            batch_percent: self.batch_percent,
        })
    }
}

impl PriceLine {
    fn from_priced(name: &str, model: &PricedModel) -> Self {
        let PricedModel { kind, provider, context, max_output, supports, date, price } = model;
        let tier = |tier: &Tier| TierLine::from_tier(tier, *kind);
        Self {
            model: name.to_owned(),
            kind: *kind,
            provider: provider.clone(),
            context: *context,
            max_output: *max_output,
            supports: supports.clone(),
            date: date.clone(),
            standard: tier(&price.standard),
            services: price.services.iter().map(|(name, of)| (name.clone(), tier(of))).collect(),
            batch_percent: price.batch_percent,
        }
    }
}

impl TierLine {
    fn from_tier(Tier { rates, long }: &Tier, kind: ModelKind) -> Self {
        let long = long.map(|LongContext { above, rates }| LongLine {
            above,
            rates: RateTexts::from_rates(&rates, kind),
            unknown: Unknown::new(),
        });
        Self { rates: RateTexts::from_rates(rates, kind), long, unknown: Unknown::new() }
    }
}

impl RateTexts {
    /// Without what a reader takes as equal.
    fn from_rates(rates: &Rates, kind: ModelKind) -> Self {
        let unless = |price: PicoUsd, other: PicoUsd| (price != other).then(|| per_million(price));
        Self {
            input: per_million(rates.input),
            cached_input: unless(rates.cached_input, rates.input),
            cache_write: unless(rates.cache_write, rates.input),
            cache_write_1h: unless(rates.cache_write_1h, rates.cache_write),
            output: (kind == ModelKind::Chat || rates.output.0 > 0).then(|| per_million(rates.output)),
        }
    }
}

/// Version of the price file's format, as it is written.
const FILE_VERSION: u32 = 4;
/// The oldest that is read: it knew no `context`, and 3 neither `provider` nor what a model can do.
const OLDEST_VERSION: u32 = 2;
/// From this one on lines name their source; those of older files are of the only source, where there is one.
const NAMES_SOURCES: u32 = 4;

/// Known prices.
#[derive(Debug, Clone)]
pub struct PriceTable {
    date: String,
    sources: Vec<PriceSource>,
    models: BTreeMap<String, PricedModel>,
}

/// What a price list knows of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedModel {
    /// What it does.
    pub kind: ModelKind,
    /// Whose price it is: one of the list's sources, where the list says so.
    pub provider: Option<String>,
    /// Most prompt tokens that it takes, where the list says so.
    pub context: Option<u64>,
    /// Most completion tokens that it makes, where the list says so.
    pub max_output: Option<u64>,
    /// What the list says that it can do (`function_calling`, `vision`), in the list's own words.
    pub supports: BTreeSet<String>,
    /// Day of its price, where it is another one than the list's.
    pub date: Option<String>,
    /// What its tokens cost.
    pub price: ModelPrice,
}

static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
    PriceTable::read(include_str!("prices.json")).unwrap_or_else(|problem| {
        // a test reads the same file, so this cannot reach users; unpriced is refused before any call, never free
        tracing::error!("prices.json: {problem}");
        PriceTable { date: String::new(), sources: Vec::new(), models: BTreeMap::new() }
    })
});

impl PriceTable {
    /// The table of this build.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &TABLE
    }

    /// Reads a price file: the built-in one, or a user's of the same form.
    ///
    /// # Errors
    /// One readable line that names the model.
    pub fn read(text: &str) -> Result<Self, String> {
        let file: PriceFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !(OLDEST_VERSION..=FILE_VERSION).contains(&file.version) {
            return Err(format!(
                "version {} is unknown, this build reads versions {OLDEST_VERSION} to {FILE_VERSION}",
                file.version
            ));
        }
        let only = match file.sources.as_slice() {
            [only] if file.version < NAMES_SOURCES => Some(&only.provider),
            _ => None,
        };
        let mut models = BTreeMap::new();
        for line in file.models {
            let price = line.price().map_err(|problem| format!("{}: {problem}", line.model))?;
            let PriceLine { kind, provider, context, max_output, supports, date, .. } = line;
            let provider = provider.or_else(|| only.cloned());
            let model = PricedModel { kind, provider, context, max_output, supports, date, price };
            if models.insert(line.model.clone(), model).is_some() {
                return Err(format!("{} stands there twice", line.model));
            }
        }
        Ok(Self { date: file.date, sources: file.sources, models })
    }

    /// This table as a file that [`PriceTable::read`] reads, one model a line, with the lines of `older` for models that it has no
    /// price of, each with its day.
    ///
    /// # Errors
    /// Never in practice: every value has a form in JSON.
    pub fn to_file(&self, older: Option<&Self>) -> serde_json::Result<String> {
        let of_older = older.into_iter().flat_map(|table| table.models.iter().map(move |line| (table, line)));
        // what the family's new line covers is left out: the old price of a version would come before it
        let kept = of_older.filter(|(_, (name, _))| self.covers(name).is_none()).map(|(table, (name, model))| {
            let day = model.date.as_ref().unwrap_or(&table.date);
            (name, PricedModel { date: Some(day.clone()).filter(|day| *day != self.date), ..model.clone() })
        });
        let own = self.models.iter().map(|(name, model)| (name, model.clone()));
        let models: BTreeMap<&String, PricedModel> = kept.chain(own).collect();
        let read_before = older.into_iter().flat_map(|table| &table.sources);
        let sources = read_before.filter(|old| self.sources.iter().all(|new| new.provider != old.provider));
        let sources = self
            .sources
            .iter()
            .chain(sources)
            .map(serde_json::to_string)
            .collect::<Result<Vec<_>, _>>()?
            .join(",\n    ");
        let lines = models.iter().map(|(name, model)| serde_json::to_string(&PriceLine::from_priced(name, model)));
        let lines = lines.collect::<Result<Vec<_>, _>>()?.join(",\n    ");
        let date = serde_json::to_string(&self.date)?;
        Ok(format!(
            "{{\n  \"version\": {FILE_VERSION},\n  \"date\": {date},\n  \"sources\": [\n    {sources}\n  ],\n  \"models\": [\n    {lines}\n  ]\n}}\n"
        ))
    }

    /// Day of the price of one of its models, `YYYY-MM-DD`.
    #[must_use]
    pub fn day_of<'a>(&'a self, model: &'a PricedModel) -> &'a str {
        model.date.as_deref().unwrap_or(&self.date)
    }

    /// Where the prices were read, and when.
    #[must_use]
    pub fn sources(&self) -> &[PriceSource] {
        &self.sources
    }

    /// Where the price of one of its models was read; `None` where nobody has said so.
    #[must_use]
    pub fn source_of(&self, model: &PricedModel) -> Option<&PriceSource> {
        let provider = model.provider.as_ref()?;
        self.sources.iter().find(|source| source.provider == *provider)
    }

    /// Models and prices, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &PricedModel)> {
        self.models.iter().map(|(name, model)| (name.as_str(), model))
    }

    /// What it knows of a model: its own line, or that of the longest name of which it is a dated version
    /// (`gpt-4o-mini-2024-07-18`, `gpt-4o-latest`). `gpt-4o-audio-preview` is another model, not a version of `gpt-4o`.
    #[must_use]
    pub fn model(&self, model: &str) -> Option<&PricedModel> {
        line_of(&self.models, model)
    }

    /// What it knows of a model under its whole name: a reseller's price (`openrouter/openai/gpt-4o`) is none of the maker's.
    #[must_use]
    pub fn covers(&self, model: &str) -> Option<&PricedModel> {
        self.models.get(family(model, |known| self.models.contains_key(known))?)
    }

    /// The price of a model, see [`PriceTable::model`].
    #[must_use]
    pub fn price(&self, model: &str) -> Option<&ModelPrice> {
        self.model(model).map(|model| &model.price)
    }
}

/// Days since a day that is written `YYYY-MM-DD`; `None` where it is no date.
#[must_use]
pub fn age_days(day: &str, today: jiff::civil::Date) -> Option<i32> {
    let day = day.parse::<jiff::civil::Date>().ok()?;
    Some(today.since((jiff::Unit::Day, day)).ok()?.get_days())
}

/// The line of a model, or of its family: under its whole name, as a router lists it, or its own.
fn line_of<'a, L>(lines: &'a BTreeMap<String, L>, model: &str) -> Option<&'a L> {
    let known = |name: &str| lines.contains_key(name);
    lines.get(family(model, known).or_else(|| family(bare_name(model), known))?)
}

/// The longest known name of which `name` is a version.
fn family(name: &str, known: impl Fn(&str) -> bool) -> Option<&str> {
    std::iter::once(name.len())
        .chain(name.rmatch_indices(['-', '@']).map(|(at, _)| at))
        .map(|end| name.split_at(end))
        .find(|(prefix, rest)| known(prefix) && is_version(rest))
        .map(|(prefix, _)| prefix)
}

/// Nothing, `-latest`, or a date.
fn is_version(suffix: &str) -> bool {
    matches!(suffix, "" | "-latest" | "@latest") || is_date_suffix(suffix, 4)
}

/// Whether the end of a model's name is a `-` (some write `@`) followed by a date: digits and dashes, so many digits at least first.
/// In `-9-20270101` the first number is a version of its own.
#[must_use]
pub fn is_date_suffix(suffix: &str, least_digits: usize) -> bool {
    let Some(date) = suffix.strip_prefix(['-', '@']) else { return false };
    let first = date.split('-').next().unwrap_or_default();
    first.len() >= least_digits && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The name under which a model shares its rate limits: without its date.
#[must_use]
pub fn limit_group(model: &str) -> &str {
    family(bare_name(model), |name| TABLE.models.contains_key(name)).unwrap_or(model)
}

/// Reads dollars per million tokens as pico-dollars per token; at most six decimals, so that it is exact.
fn per_token(text: &str) -> Option<PicoUsd> {
    let per_million = PicoUsd::parse(text)?.0;
    (per_million % 1_000_000 == 0).then_some(PicoUsd(per_million / 1_000_000))
}

/// Dollars per million tokens of a price per token, exactly: `0.15`.
#[must_use]
pub fn per_million(price: PicoUsd) -> String {
    let text = format!("{:0>7}", price.0);
    let (whole, fraction) = text.split_at(text.len() - 6);
    format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
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

/// The price that `--price` gives a model, by its own name or its family's.
#[must_use]
pub fn given(model: &str, limits: &Limits) -> Option<ModelPrice> {
    line_of(&limits.prices, model).map(|(input, output)| ModelPrice::flat(*input, *output))
}

/// The price of a model of a run: that of `--price`, else of the user's price file, else of the built-in table; in each its own or
/// its family's. `None` when nobody knows it.
#[must_use]
pub fn price_of(model: &str, limits: &Limits) -> Option<ModelPrice> {
    if let Some(price) = given(model, limits) {
        return Some(price);
    }
    line_of(&limits.price_lines, model).or_else(|| TABLE.price(model)).cloned()
}

/// The price of a model of a provider: [`price_of`] its name, but that nobody is paid for a model of this machine, unless
/// `--price` says so: `ollama` and `fake` run what they like under the name of a model that has a price elsewhere.
#[must_use]
pub fn price_at(provider: &str, model: &str, limits: &Limits) -> Option<ModelPrice> {
    (providers::is_paid(provider) || given(model, limits).is_some()).then(|| price_of(model, limits)).flatten()
}

#[cfg(test)]
mod tests {
    use bench_proto::price::TokenCounts;

    use super::*;

    fn usd(text: &str) -> PicoUsd {
        PicoUsd::parse(text).expect("an amount")
    }

    fn counts(prompt: u64, cached: u64, completion: u64) -> TokenCounts {
        TokenCounts { prompt, cached, completion, ..TokenCounts::default() }
    }

    #[test]
    fn the_file_reads_and_its_date_is_a_date() {
        let table = PriceTable::read(include_str!("prices.json")).expect("prices.json is well-formed");
        assert!(table.models.len() >= 30);
        assert!(table.date.parse::<jiff::civil::Date>().is_ok(), "{}", table.date);
        assert!(table.sources().len() >= 3);
        for source in table.sources() {
            assert!(source.checked.parse::<jiff::civil::Date>().is_ok(), "{source:?}");
            assert!(source.checked <= table.date && source.pages.iter().all(|page| page.starts_with("https://")));
        }
        for (name, model) in table.models() {
            assert!(table.source_of(model).is_some(), "{name}");
            let PricedModel { kind, price, context, .. } = model;
            assert!(context.is_none_or(|tokens| tokens >= 1_000), "{name}");
            let rates = price.standard.rates;
            assert!(rates.cached_input <= rates.input && rates.input.0 > 0, "{name}");
            assert!(rates.input <= rates.cache_write && rates.cache_write <= rates.cache_write_1h, "{name}");
            assert_eq!(*kind == ModelKind::Embedding, rates.output == PicoUsd::ZERO, "{name}");
            assert!(price.standard.long.is_none_or(|long| long.rates.input > rates.input), "{name}");
        }
    }

    /// What everybody's bill rests on: any change of a price is a change of this snapshot, seen in review.
    #[test]
    fn golden_of_all_prices() {
        let rates =
            |r: &Rates| [r.input, r.cached_input, r.cache_write, r.cache_write_1h, r.output].map(per_million).join(" ");
        let mut lines = vec!["model: input cached write write-1h output (USD per million tokens)".to_owned()];
        for (name, PricedModel { price, .. }) in PriceTable::built_in().models() {
            lines.push(format!("{name}: {}", rates(&price.standard.rates)));
            lines.extend(price.standard.long.map(|long| format!("  above {}: {}", long.above, rates(&long.rates))));
            lines.extend(price.services.iter().map(|(name, tier)| format!("  {name}: {}", rates(&tier.rates))));
            lines.extend(price.batch_percent.map(|percent| format!("  batches: {percent} %")));
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn golden_of_the_format() {
        let text = r#"{"version":2,"date":"2030-01-01","note":"","models":[{"model":"m","input":"0.000001","cached_input":"0","output":"12",
            "cache_write":"2","long":{"above":9,"input":"1","output":"24"},"services":{"flex":{"input":"0.5","output":"6"}},"batch_percent":50}]}"#;
        let table = PriceTable::read(text).expect("readable");
        let price = table.price("m").expect("priced");
        let rates = |input, cached_input, write, output| Rates {
            input: PicoUsd(input),
            cached_input: PicoUsd(cached_input),
            cache_write: PicoUsd(write),
            cache_write_1h: PicoUsd(write),
            output: PicoUsd(output),
        };
        let long = LongContext { above: 9, rates: Rates::flat(PicoUsd(1_000_000), PicoUsd(24_000_000)) };
        let flex = Tier { rates: Rates::flat(PicoUsd(500_000), PicoUsd(6_000_000)), long: None };
        let standard = Tier { rates: rates(1, 0, 2_000_000, 12_000_000), long: Some(long) };
        let services = BTreeMap::from([("flex".to_owned(), flex)]);
        assert_eq!(*price, ModelPrice { standard, services, batch_percent: Some(50) });
        for (part, wrong) in [
            ("\"version\":2", "\"version\":1"),
            ("\"version\":2", "\"version\":5"),
            ("\"12\"", "\"12.0000001\""),
            ("\"12\"", "\"-1\""),
            ("\"note\"", "\"notes\""),
            (",\"output\":\"12\"", ""),
            ("_percent\":50", "_percent\":150"),
            ("\"above\"", "\"from\":1,\"above\""),
            ("\"flex\":{", "\"flex\":{\"out\":\"1\","),
            ("\"model\":\"m\"", "\"model\":\"m\",\"knid\":\"chat\""),
        ] {
            assert!(PriceTable::read(&text.replace(part, wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_reads_as_the_same_and_keeps_lines_that_it_lacks() {
        let built_in = PriceTable::built_in();
        let again = PriceTable::read(&built_in.to_file(None).expect("is JSON")).expect("reads");
        assert_eq!((&again.models, &again.sources, &again.date), (&built_in.models, &built_in.sources, &built_in.date));
        let own =
            r#"{"version":3,"date":"2030-01-01","models":[{"model":"mine","input":"1","output":"2","context":9}]}"#;
        let own = PriceTable::read(own).expect("reads");
        let both = PriceTable::read(&built_in.to_file(Some(&own)).expect("is JSON")).expect("reads");
        assert_eq!(both.models.len(), built_in.models.len() + 1);
        let mine = PricedModel { date: Some("2030-01-01".to_owned()), ..own.models["mine"].clone() };
        assert_eq!(both.models["mine"], mine);
        assert_eq!((both.day_of(&mine), both.day_of(&both.models["gpt-4o"])), ("2030-01-01", built_in.date.as_str()));
        // it stays the day of the price, however often the file is written again
        let again = PriceTable::read(&built_in.to_file(Some(&both)).expect("is JSON")).expect("reads");
        assert_eq!(again.models["mine"], mine);
    }

    #[test]
    fn a_price_names_its_source_and_older_files_name_the_only_one() {
        let source = |provider: &str| {
            format!(r#"{{"provider":"{provider}","checked":"2030-01-01","pages":["https://{provider}.example"]}}"#)
        };
        let read = |version: u32, sources: &[String], line: &str| {
            let sources = sources.join(",");
            let line = format!(r#"{{"model":"m","input":"1","output":"1"{line}}}"#);
            let text =
                format!(r#"{{"version":{version},"date":"2030-01-01","sources":[{sources}],"models":[{line}]}}"#);
            PriceTable::read(&text).expect("reads")
        };
        let source_of = |table: &PriceTable, model: &str| {
            table.source_of(&table.models[model]).map(|source| source.provider.clone())
        };
        let both = [source("one"), source("two")];
        let of = |version: u32, sources: &[String], line: &str| source_of(&read(version, sources, line), "m");
        assert_eq!(of(4, &both, r#","provider":"two""#).as_deref(), Some("two"));
        assert_eq!((of(4, &both, ""), of(3, &both, "")), (None, None));
        assert_eq!((of(3, &both[..1], "").as_deref(), of(4, &both[..1], "")), (Some("one"), None));
        assert_eq!(of(4, &both[..1], r#","provider":"two""#), None);
        // a line that is kept keeps its source, and gets none of a table that has not its price
        let table = |name: &str, table: PriceTable| {
            let models = table.models.into_values().map(|model| (name.to_owned(), model)).collect();
            PriceTable { models, ..table }
        };
        let newer = table("new", read(4, &both[..1], r#","provider":"one""#));
        for (older, expected) in [(&both[1..], Some("two")), (&both[..0], None)] {
            let older = table("kept", read(3, older, ""));
            let written = newer.to_file(Some(&older)).expect("is JSON");
            let again = PriceTable::read(&written).expect("reads");
            let told = ["new", "kept"].map(|model| source_of(&again, model));
            assert_eq!(told.each_ref().map(Option::as_deref), [Some("one"), expected]);
        }
    }

    #[test]
    fn a_version_that_costs_what_its_family_costs_now_keeps_no_price_of_its_own() {
        let read = |date: &str, models: &str| {
            PriceTable::read(&format!(r#"{{"version":3,"date":"{date}","models":[{models}]}}"#)).expect("reads")
        };
        let older = read(
            "2030-01-01",
            r#"{"model":"m-2029-01-01","input":"9","output":"9"},{"model":"m-audio","input":"7","output":"7"},
            {"model":"m","input":"2","output":"2"},{"model":"r/m","input":"3","output":"3"}"#,
        );
        let newer = read("2030-02-01", r#"{"model":"m","input":"1","output":"1"}"#);
        let both = PriceTable::read(&newer.to_file(Some(&older)).expect("is JSON")).expect("reads");
        let names: Vec<&str> = both.models().map(|(name, _)| name).collect();
        assert_eq!(names, ["m", "m-audio", "r/m"]);
        assert_eq!(both.price("r/m"), older.price("r/m"), "a reseller's price is its own");
        assert_eq!(both.price("m-2029-01-01"), newer.price("m"));
        let days: Vec<&str> = both.models().map(|(_, model)| both.day_of(model)).collect();
        assert_eq!(days, ["2030-02-01", "2030-01-01", "2030-01-01"]);
    }

    #[test]
    fn costs_are_exact() {
        let price = price_of("gpt-4o-mini", &Limits::default()).expect("priced");
        assert_eq!(price.cost(&counts(1_000_000, 0, 0), None), usd("0.15"));
        assert_eq!(price.cost(&counts(1_000_000, 1_000_000, 1_000_000), None), usd("0.675"));
        assert_eq!(price.cost(&counts(u64::MAX, 0, u64::MAX), None), PicoUsd(i64::MAX));
        let sonnet = price_of("claude-sonnet-4-5-20250929", &Limits::default()).expect("priced");
        assert_eq!(sonnet.cost(&counts(200_000, 0, 1_000), None), usd("0.615"));
        assert_eq!(
            sonnet.cost(&counts(200_001, 0, 1_000), None),
            usd("1.222506"),
            "a long prompt costs more as a whole"
        );
        let embedding = price_of("text-embedding-3-small", &Limits::default()).expect("priced");
        assert_eq!(embedding.batch_cost(&counts(1_000_000, 0, 0)), usd("0.01"));
    }

    #[test]
    fn prices_have_an_age_in_days() {
        let today = jiff::civil::date(2030, 3, 1);
        assert_eq!(age_days("2030-01-01", today), Some(59));
        assert_eq!(age_days("2030-03-02", today), Some(-1));
        assert_eq!(age_days("last spring", today), None);
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
            ("claude-opus-4-1-20250805", "claude-opus-4-1"),
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("anthropic/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ] {
            assert_eq!(table.price(name), table.price(family), "{name}");
            assert!(table.price(name).is_some(), "{name}");
            assert_eq!(limit_group(name), family);
        }
        assert_ne!(table.price("gpt-4o-2024-05-13"), table.price("gpt-4o"), "it has a line of its own");
        for unknown in [
            "gpt-4o-audio-preview",
            "gpt-4omni",
            "llama-3",
            "",
            "gpt",
            "gpt-4o-1",
            "claude-opus-4-9-20270101",
            "claude-opus-4-9@20270101",
            "gpt-5-9-2027-01-01",
            "gpt-4o-05-13",
        ] {
            assert_eq!(table.price(unknown), None, "{unknown}");
            assert_eq!(limit_group(unknown), unknown);
        }
    }

    #[test]
    fn users_set_prices() {
        let pair = parse_price("0.15, 0.60").expect("a price");
        let prices = BTreeMap::from([("gpt-4o".to_owned(), pair), ("mine".to_owned(), pair)]);
        let own = ModelPrice::flat(PicoUsd(7), PicoUsd(8));
        let price_lines = BTreeMap::from([("gpt-4o-mini".to_owned(), own.clone()), ("mine".to_owned(), own.clone())]);
        let limits = Limits { prices, price_lines, ..Limits::default() };
        let mine = price_of("mine", &limits).expect("priced");
        assert_eq!(mine.cost(&counts(1_000_000, 500_000, 0), None), usd("0.15"), "the flag comes before the file");
        assert_eq!(price_of("gpt-4o", &limits), Some(mine));
        assert_eq!(price_of("gpt-4o-mini", &limits).as_ref(), Some(&own), "and the file before the table");
        assert_eq!(price_at("openai", "gpt-4o-mini", &limits), price_of("gpt-4o-mini", &limits));
        assert_eq!(price_at("fake", "gpt-4o-mini", &limits), None, "nobody is paid for it");
        assert_eq!(price_at("ollama", "gpt-4o", &limits), price_of("gpt-4o", &limits), "but for what --price says");
        // what a memory system names is not known before: each line is of a family
        assert_eq!(given("openai/gpt-4o-2024-08-06", &limits), price_of("gpt-4o", &limits));
        assert_eq!(given("gpt-4o-mini", &limits), None, "that is of the file");
        assert_eq!(price_of("gpt-4o-2024-08-06", &limits), price_of("gpt-4o", &limits));
        assert_eq!(price_of("openai/gpt-4o-mini-2024-07-18", &limits), Some(own));
        assert_eq!(price_of("mine-9-20270101", &limits), None, "is another version");
        for bad in ["", "1", "a,b", "1,-2", "1,0.0000001", "1,2,3"] {
            assert!(parse_price(bad).is_err(), "{bad}");
        }
    }
}
