//! The public table of prices that LiteLLM keeps (`model_prices_and_context_window.json`): an object of models, each with
//! dollars per token as floating-point numbers. In comes its text, out comes a [`PriceTable`] of the providers that were asked
//! for, and what was left out of it and why.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    json_bound,
    money::PicoUsd,
    price::{LongContext, ModelPrice, Rates, Tier},
    redact,
};
use serde_json::{Map, Value};

use super::{ModelKind, PriceSource, PriceTable, PricedModel, family};

/// Providers whose own prices are read unless others are asked for. Resellers price the same names differently.
const DEFAULT_PROVIDERS: [&str; 6] = ["anthropic", "deepseek", "gemini", "mistral", "openai", "xai"];

/// Where LiteLLM publishes it.
pub const PUBLISHED_AT: &str =
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json";

/// No token costs a dollar: what is above is a mistake of the table.
const MOST_PER_TOKEN: f64 = 1.0;
const PICO: f64 = 1e12;
/// Providers that are named where others were asked for.
const MOST_NAMED: usize = 12;
const BY_HAND: &str = "give its price with --price";

/// The field of what a picture in a reply costs.
const PER_PICTURE: &str = "output_cost_per_image";

/// Fields of what a model costs beside its tokens, whatever it is asked. Others are of what it does when it is asked for that: a model
/// that can search (`search_context_cost_per_query`) has a line, for no request has it search.
const FEES: [(&str, &str); 4] = [
    ("input_cost_per_request", "each request costs something beside its tokens"),
    ("output_cost_per_request", "each request costs something beside its tokens"),
    ("input_cost_per_query", "each request costs something beside its tokens"),
    (PER_PICTURE, "it answers in pictures, which have a price of their own"),
];

/// Parts of the names of models that search, or have others work, for each request at a price of its own.
const SEARCHING: [&str; 5] = ["search-preview", "search-api", "deep-research", "sonar", "compound"];
/// The provider all of whose models do.
const SEARCHES: &str = "perplexity";

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// The prices, of the day they were read.
    pub table: PriceTable,
    /// Models of the wanted providers that chat or embed and have no line, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Of the providers that nobody named and that are read all the same, those that the table does not have.
    pub absent: Vec<String>,
}

/// A model of the table.
struct Found<'a> {
    model: PricedModel,
    provider: &'a str,
    /// How the table calls it.
    key: &'a str,
}

impl Found<'_> {
    /// Why a name that has another price under another key is left out.
    ///
    /// # Errors
    /// Where that is another provider's: whose prices count is to be said.
    fn beside(&self, name: &str, provider: &str, key: &str) -> Result<String, String> {
        let Self { provider: whose, key: own, .. } = self;
        if *whose == provider {
            return Ok(format!("{provider} has two prices of it, under '{own}' and '{key}': {BY_HAND}"));
        }
        Err(format!(
            "{whose} and {provider} price {name} differently ('{own}' and '{key}'): choose one of them with --provider"
        ))
    }
}

/// Reads the prices of these providers, or of the usual ones where none are named. `place` is where the table is from: a price file
/// is handed on, so that it is kept without a password.
///
/// A version of a model (`gpt-4o-2024-08-06`) that costs what its family costs has no line of its own. A model whose price is 0
/// is left out: the table writes 0 for what is free and for what nobody looked up. So is one of which its provider has two prices, and
/// one that costs more than its tokens do: a cap that counts tokens would not hold.
///
/// # Errors
/// One readable line: it is no such table, it lacks one of the named providers or all of the usual ones, or two of them price one
/// name differently.
pub fn read(text: &str, named: &[String], today: &str, place: &str) -> Result<Read, String> {
    let all: BTreeMap<String, Value> = json_bound::from_str(text, json_bound::REPORT)
        .map_err(|error| format!("no object of models, as LiteLLM publishes it: {error}"))?;
    let (providers, absent) = providers(&all, named)?;
    let (mut found, mut left_out) = (BTreeMap::<&str, Found<'_>>::new(), Vec::new());
    let mut torn = BTreeSet::new();
    for (key, value) in &all {
        let (Some(entry), Some(provider)) = (value.as_object(), provider_of(value)) else { continue };
        let Some(kind) = kind_of(entry).filter(|_| providers.iter().any(|wanted| wanted == provider)) else { continue };
        let (name, model) = match name_of(&all, key, provider) {
            Ok(name) => match fee_of(name, provider, entry) {
                Some(why) => (name, Err(format!("{why}: {BY_HAND}, with that in it"))),
                None => (name, model_of(kind, provider, entry)),
            },
            Err(why) => (key.as_str(), Err(why)),
        };
        match (model, found.get(name)) {
            (Err(why), _) => left_out.push((name.to_owned(), why)),
            (Ok(model), Some(other)) if other.model.price != model.price => {
                // nothing says which of its own prices a provider means
                left_out.push((name.to_owned(), other.beside(name, provider, key)?));
                torn.insert(name);
            }
            (Ok(model), _) => drop(found.insert(name, Found { model, provider, key })),
        }
    }
    found.retain(|name, _| !torn.contains(name));
    let is_its_family = |name: &str, model: &PricedModel| {
        let of = family(name, |other| other != name && found.contains_key(other));
        of.is_some_and(|of| found[of].model.price == model.price)
    };
    let own = found.iter().filter(|(name, of)| !is_its_family(name, &of.model));
    let models = own.map(|(name, of)| ((*name).to_owned(), of.model.clone())).collect();
    let sources = providers.iter().map(|provider| PriceSource {
        provider: provider.clone(),
        checked: today.to_owned(),
        pages: vec![redact::text(place).into_owned()],
    });
    Ok(Read { table: PriceTable { date: today.to_owned(), sources: sources.collect(), models }, left_out, absent })
}

/// The providers that are read: the named ones, else those of the usual ones that the table has; and the usual ones that it lacks.
fn providers(all: &BTreeMap<String, Value>, named: &[String]) -> Result<(Vec<String>, Vec<String>), String> {
    let known: BTreeSet<&str> = all.values().filter_map(provider_of).collect();
    let some =
        || known.iter().filter(|name| !name.contains(' ')).take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    if known.is_empty() {
        return Err("no model in it has a 'litellm_provider': it is no table of LiteLLM".to_owned());
    }
    if let Some(unknown) = named.iter().find(|provider| !known.contains(provider.as_str())) {
        return Err(format!("it has no model of the provider '{unknown}'; it has {}", some()));
    }
    if !named.is_empty() {
        return Ok((named.to_vec(), Vec::new()));
    }
    let (here, absent): (Vec<String>, Vec<String>) =
        DEFAULT_PROVIDERS.map(str::to_owned).into_iter().partition(|provider| known.contains(provider.as_str()));
    if here.is_empty() {
        let usual = DEFAULT_PROVIDERS.join(", ");
        return Err(format!("it has no model of {usual}; name providers that it has with --provider: {}", some()));
    }
    Ok((here, absent))
}

/// The name under which a model is called at its provider; its own may be a path (`meta-llama/Llama-3.3-70B`).
fn name_of<'a>(all: &BTreeMap<String, Value>, key: &'a str, provider: &str) -> Result<&'a str, String> {
    let own = key.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
    let Some(name) = own else {
        let is_plain = !key.contains('/');
        return is_plain.then_some(key).ok_or_else(|| format!("its path is not that of {provider}: {BY_HAND}"));
    };
    let is_model = |name: &str| {
        let keys = [name.to_owned(), format!("{provider}/{name}")];
        keys.iter().any(|key| all.get(key).and_then(provider_of) == Some(provider))
    };
    // a region's price, or that of another contract
    let behind = |path: &&'a str| path.split_once('/').map(|(_, end)| end);
    match std::iter::successors(behind(&name), behind).find(|end| is_model(end)) {
        Some(model) => Err(format!("it is {model} under a path of its own: {BY_HAND}")),
        None => Ok(name),
    }
}

fn provider_of(value: &Value) -> Option<&str> {
    value.get("litellm_provider")?.as_str()
}

fn kind_of(entry: &Map<String, Value>) -> Option<ModelKind> {
    match entry.get("mode")?.as_str()? {
        "chat" | "responses" | "completion" => Some(ModelKind::Chat),
        "embedding" => Some(ModelKind::Embedding),
        _ => None,
    }
}

/// Whether the table says that a model answers in texts, and in nothing else.
fn answers_in_text_alone(entry: &Map<String, Value>) -> bool {
    let said = entry.get("supported_output_modalities").and_then(Value::as_array);
    said.is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(|kind| kind.as_str() == Some("text")))
}

/// What a model costs beside its tokens.
fn fee_of(name: &str, provider: &str, entry: &Map<String, Value>) -> Option<&'static str> {
    let costs = |field: &str| match entry.get(field) {
        None | Some(Value::Null) => false,
        // what is no number costs what nobody knows
        Some(value) => value.as_f64() != Some(0.0),
    };
    // a price of pictures stands beside models that make none too
    let may_paint = !answers_in_text_alone(entry);
    let counts = |field: &str| costs(field) && (field != PER_PICTURE || may_paint);
    let fee = FEES.iter().find(|(field, _)| counts(field)).map(|(_, why)| *why);
    let name = name.to_ascii_lowercase();
    let searches = provider == SEARCHES || SEARCHING.iter().any(|part| name.contains(part));
    fee.or_else(|| searches.then_some("each request searches, at a price beside its tokens"))
}

fn model_of(kind: ModelKind, provider: &str, entry: &Map<String, Value>) -> Result<PricedModel, String> {
    let standard = tier(entry, kind, "")?.ok_or("it has no price of a prompt's tokens")?;
    let mut services = BTreeMap::new();
    for service in services_of(entry, kind) {
        // a tier without a price that can be believed is not known, and nobody is asked in it
        if let Ok(Some(tier)) = tier(entry, kind, &format!("_{service}")) {
            services.insert(service.to_owned(), tier);
        }
    }
    let tokens = |field: &str| entry.get(field).and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    let supported = entry.iter().filter(|(_, value)| value.as_bool() == Some(true));
    Ok(PricedModel {
        kind,
        provider: Some(provider.to_owned()),
        context: tokens("max_input_tokens"),
        max_output: tokens("max_output_tokens").filter(|_| kind == ModelKind::Chat),
        supports: supported.filter_map(|(field, _)| Some(field.strip_prefix("supports_")?.to_owned())).collect(),
        date: None,
        price: ModelPrice { standard, services, batch_percent: batch_percent(entry) },
    })
}

/// The service tiers of which a model has prices: all that the table names, in one word. Batches are no tier of a request.
fn services_of(entry: &Map<String, Value>, kind: ModelKind) -> impl Iterator<Item = &str> {
    let named = entry.keys().filter_map(|field| field.strip_prefix("input_cost_per_token_"));
    let is_word = |name: &&str| *name != "batches" && name.bytes().all(|byte| byte.is_ascii_lowercase());
    // another word may be of a kind of token, which has no price of a reply
    named.filter(is_word).filter(move |name| {
        let has_reply = entry.get(&format!("output_cost_per_token_{name}")).is_some_and(|price| !price.is_null());
        has_reply || kind == ModelKind::Embedding
    })
}

/// The prices whose fields end in `suffix`; none where there is no price of a prompt.
fn tier(entry: &Map<String, Value>, kind: ModelKind, suffix: &str) -> Result<Option<Tier>, String> {
    let Some(rates) = rates(entry, kind, "", suffix)? else { return Ok(None) };
    let above = |field: &String| {
        let length = field.strip_prefix("input_cost_per_token_above_")?.strip_suffix(suffix)?;
        length.strip_suffix("k_tokens")?.parse::<u32>().ok()
    };
    let lengths: Vec<u32> = entry.keys().filter_map(above).collect();
    // one length is all that a price has here: the price of the longest, from the shortest on, is never too low
    let long = match (lengths.iter().min(), lengths.iter().max()) {
        (Some(first), Some(last)) => {
            let of_last = self::rates(entry, kind, &format!("_above_{last}k_tokens"), suffix)?;
            of_last.map(|rates| LongContext { above: u64::from(*first) * 1_000, rates })
        }
        _ => None,
    };
    Ok(Some(Tier { rates, long }))
}

/// Prices whose fields end in the two suffixes: of long prompts, and of a service.
fn rates(entry: &Map<String, Value>, kind: ModelKind, long: &str, service: &str) -> Result<Option<Rates>, String> {
    let read = |field: &str| cost(entry, &format!("{field}{long}{service}"));
    let Some(input) = read("input_cost_per_token")? else { return Ok(None) };
    let output = match (read("output_cost_per_token")?, kind) {
        // what a model thinks may cost more than what it says, and is counted with it
        (Some(output), _) => output.max(read("output_cost_per_reasoning_token")?.unwrap_or_default()),
        (None, ModelKind::Embedding) => PicoUsd::ZERO,
        (None, ModelKind::Chat) => return Err("it has no price of a completion's tokens".to_owned()),
    };
    if input.0 == 0 || (kind == ModelKind::Chat && output.0 == 0) {
        return Err("its price is 0, which may be unknown: give it with --price".to_owned());
    }
    // a cache that costs nothing is a price that nobody wrote down: as much as fresh tokens is never too low
    let cache = |field: &str| Ok::<_, String>(read(field)?.filter(|price| price.0 > 0));
    let cache_write = cache("cache_creation_input_token_cost")?.unwrap_or(input);
    Ok(Some(Rates {
        input,
        cached_input: cache("cache_read_input_token_cost")?.unwrap_or(input),
        cache_write,
        cache_write_1h: cache("cache_creation_input_token_cost_above_1hr")?.unwrap_or(cache_write),
        output,
    }))
}

/// A field's dollars per token in whole pico-dollars: floating-point noise is rounded away, a price that lies between two is
/// rounded up.
fn cost(entry: &Map<String, Value>, field: &str) -> Result<Option<PicoUsd>, String> {
    let Some(value) = entry.get(field).filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let dollars = number.filter(|dollars| (0.0..MOST_PER_TOKEN).contains(dollars));
    let exact = dollars.ok_or_else(|| format!("{field} is no price of a token: {value}"))? * PICO;
    let near = exact.round();
    let pico = if (exact - near).abs() <= 1e-6 * exact.max(1.0) { near } else { exact.ceil() };
    // below a dollar it is below 10^12, which is exact
    Ok(Some(PicoUsd(pico as i64)))
}

/// What a batch costs of the standard price in percent, where prompt and completion agree on it.
fn batch_percent(entry: &Map<String, Value>) -> Option<u8> {
    let percent = |field: &str| {
        let (whole, batch) = (entry.get(field)?.as_f64()?, entry.get(&format!("{field}_batches"))?.as_f64()?);
        let percent = (batch / whole * 100.0).round();
        (whole > 0.0 && (0.0..=100.0).contains(&percent)).then_some(percent as u8)
    };
    let input = percent("input_cost_per_token")?;
    percent("output_cost_per_token").is_none_or(|output| output == input).then_some(input)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(models: &Value, providers: &[&str]) -> Result<Read, String> {
        let providers: Vec<String> = providers.iter().map(|&name| name.to_owned()).collect();
        read(&models.to_string(), &providers, "2030-01-01", "table.json")
    }

    #[test]
    fn prices_are_exact_whatever_the_floats_say() {
        let models = json!({
            "sample_spec": {"litellm_provider": "one of many", "mode": "one of: chat"},
            "small": {"litellm_provider": "one", "mode": "chat", "max_input_tokens": 128_000,
                "input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07, "cache_read_input_token_cost": 7.5e-08,
                "input_cost_per_token_batches": 7.5e-08, "output_cost_per_token_batches": 3e-07,
                "input_cost_per_token_priority": 2.5e-07, "output_cost_per_token_priority": 1e-06},
            "one/big": {"litellm_provider": "one", "mode": "responses", "input_cost_per_token": 3e-06,
                "output_cost_per_token": 1.5e-05, "output_cost_per_reasoning_token": 2e-05,
                "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
                "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05},
            "vectors": {"litellm_provider": "one", "mode": "embedding", "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0},
            "picture": {"litellm_provider": "one", "mode": "image_generation", "input_cost_per_token": 1.0},
            "one/eu/small": {"litellm_provider": "one", "mode": "chat", "input_cost_per_token": 1e-03, "output_cost_per_token": 1e-03},
            "two/small": {"litellm_provider": "two", "mode": "chat", "input_cost_per_token": 9e-03, "output_cost_per_token": 9e-03},
        });
        let file = read_all(&models, &["one"]).expect("reads").table.to_file(None).expect("is JSON");
        insta::assert_snapshot!(file);
        PriceTable::read(&file).expect("is a price file");
    }

    #[test]
    fn the_address_of_a_table_is_kept_without_its_password_and_token() {
        let models = json!({"m": {"litellm_provider": "one", "mode": "chat", "input_cost_per_token": 1e-06,
            "output_cost_per_token": 1e-06}});
        let named = ["one".to_owned()];
        for (place, kept) in [
            ("https://u:s3cret@prices.example/t.json?token=s3cret", "https://***@prices.example/t.json?token=***"),
            (PUBLISHED_AT, PUBLISHED_AT),
            ("tables/of u@home.json", "tables/of u@home.json"),
        ] {
            let read = read(&models.to_string(), &named, "2030-01-01", place).expect("reads");
            assert_eq!(read.table.sources[0].pages, [kept]);
        }
    }

    #[test]
    fn versions_of_a_family_have_no_line_unless_they_cost_something_else() {
        let at = |input: f64| json!({"litellm_provider": "one", "mode": "chat", "input_cost_per_token": input, "output_cost_per_token": input});
        let models =
            json!({"m": at(1e-06), "m-2030-01-01": at(1e-06), "m-2029-01-01": at(2e-06), "m-audio": at(1e-06)});
        let table = read_all(&models, &["one"]).expect("reads").table;
        let names: Vec<&str> = table.models().map(|(name, _)| name).collect();
        assert_eq!(names, ["m", "m-2029-01-01", "m-audio"]);
        assert_eq!(table.price("m-2030-01-01"), table.price("m"));
    }

    #[test]
    fn what_is_no_price_is_left_out_and_named() {
        let of = |input: Value, output: Value| json!({"litellm_provider": "one", "mode": "chat", "input_cost_per_token": input, "output_cost_per_token": output});
        let models = json!({
            "good": of(json!(1e-06), json!("2e-06")),
            "free": of(json!(0), json!(0)),
            "dear": of(json!(1.5), json!(1e-06)),
            "negative": of(json!(-1e-06), json!(1e-06)),
            "word": of(json!("cheap"), json!(1e-06)),
            "half": {"litellm_provider": "one", "mode": "chat", "input_cost_per_token": 1e-06},
            "none": {"litellm_provider": "one", "mode": "chat"},
        });
        let read = read_all(&models, &["one"]).expect("reads");
        assert_eq!(read.table.models().map(|(name, _)| name).collect::<Vec<_>>(), ["good"]);
        let left_out: Vec<&str> = read.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left_out, ["dear", "free", "half", "negative", "none", "word"]);
    }

    #[test]
    fn a_model_that_costs_more_than_its_tokens_is_left_out_and_one_that_can_search_is_not() {
        let of = |whose: &str, more: Value| {
            let mut entry = json!({"litellm_provider": whose, "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06});
            entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            entry
        };
        let queries = json!({"search_context_cost_per_query": {"search_context_size_low": 0.03}});
        let models = json!({
            "gpt-4o": of("openai", queries.clone()),
            "gpt-none": of("openai", json!({"input_cost_per_request": 0.0, "input_cost_per_query": null})),
            "gpt-4o-search-preview-2025-03-11": of("openai", queries.clone()),
            "gpt-5-search-api": of("openai", json!({})),
            "o3-deep-research": of("openai", json!({})),
            "gpt-of-requests": of("openai", json!({"input_cost_per_request": 0.005})),
            "gpt-of-queries": of("openai", json!({"input_cost_per_query": "0.005"})),
            "gpt-of-pictures": of("openai", json!({"output_cost_per_image": 0.04})),
            "gpt-of-both": of("openai", json!({"output_cost_per_image": 0.04, "supported_output_modalities": ["text", "image"]})),
            "gpt-of-nothing": of("openai", json!({"output_cost_per_image": 0.04, "supported_output_modalities": []})),
            "gpt-of-texts": of("openai", json!({"output_cost_per_image": 0.04, "supported_output_modalities": ["text"]})),
            "perplexity/r1-1776": of("perplexity", json!({})),
            "perplexity/sonar-pro": of("perplexity", queries),
        });
        let read = read_all(&models, &["openai", "perplexity"]).expect("reads");
        let names: Vec<&str> = read.table.models().map(|(name, _)| name).collect();
        assert_eq!(names, ["gpt-4o", "gpt-none", "gpt-of-texts"]);
        assert_eq!(read.left_out.len(), 10, "{:?}", read.left_out);
        assert!(read.left_out.iter().all(|(_, why)| why.contains("--price")), "{:?}", read.left_out);
    }

    #[test]
    fn p34_the_prices_of_all_service_tiers_are_read_whatever_they_are_called() {
        let models = json!({"m": {"litellm_provider": "one", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06,
            "input_cost_per_token_flex": 5e-07, "output_cost_per_token_flex": 2.5e-06,
            "input_cost_per_token_priority": 2e-06, "output_cost_per_token_priority": 1e-05,
            "input_cost_per_token_ultrafast": 6e-06, "output_cost_per_token_ultrafast": 3e-05,
            "cache_read_input_token_cost_ultrafast": 6e-07,
            "input_cost_per_token_batches": 5e-07, "output_cost_per_token_batches": 2.5e-06,
            "input_cost_per_token_above_200k_tokens": 2e-06, "output_cost_per_token_above_200k_tokens": 1e-05,
            "input_cost_per_token_above_200k_tokens_ultrafast": 1.2e-05, "output_cost_per_token_above_200k_tokens_ultrafast": 6e-05,
            "input_cost_per_token_decisions": 1e-06, "output_cost_per_token_decisions": 0.0,
            "input_cost_per_token_odd": 1e-06, "input_cost_per_token_cache_hit": 1e-07}});
        let table = read_all(&models, &["one"]).expect("reads").table;
        let price = &table.model("m").expect("is there").price;
        assert_eq!(price.services.keys().map(String::as_str).collect::<Vec<_>>(), ["flex", "priority", "ultrafast"]);
        let ultrafast = price.services["ultrafast"];
        let rates = ultrafast.rates;
        assert_eq!((rates.input.0, rates.output.0, rates.cached_input.0), (6_000_000, 30_000_000, 600_000));
        let long = ultrafast.long.expect("has one");
        assert_eq!((long.above, long.rates.input.0, long.rates.output.0), (200_000, 12_000_000, 60_000_000));
        assert!(price.knows_tier("ultrafast"));
        let again = PriceTable::read(&table.to_file(None).expect("is JSON")).expect("is a price file");
        assert_eq!(again.price("m"), Some(price));
    }

    #[test]
    fn of_the_usual_providers_those_are_read_that_there_are() {
        let at = |whose: &str| json!({"litellm_provider": whose, "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06});
        let models = json!({"gpt-x": at("openai"), "azure/gpt-x": at("azure"), "groq/llama": at("groq")});
        let some = read_all(&models, &[]).expect("reads");
        assert_eq!(some.table.models().map(|(name, _)| name).collect::<Vec<_>>(), ["gpt-x"]);
        assert_eq!(some.table.sources().iter().map(|source| source.provider.as_str()).collect::<Vec<_>>(), ["openai"]);
        assert_eq!(some.absent, ["anthropic", "deepseek", "gemini", "mistral", "xai"]);
        let refused = read_all(&models, &["openai", "xai"]).expect_err("was named");
        assert!(refused.contains("no model of the provider 'xai'; it has azure, groq, openai"), "{refused}");
        let none = read_all(&json!({"groq/llama": at("groq")}), &[]).expect_err("has none");
        assert!(none.ends_with("with --provider: groq"), "{none}");
    }

    #[test]
    fn a_name_with_a_path_is_read_where_a_provider_calls_its_model_so() {
        let at = |whose: &str| json!({"litellm_provider": whose, "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06});
        let models = json!({
            "one/maker/model": at("one"), "one/small": at("one"), "one/eu/small": at("one"), "elsewhere/large": at("one"),
        });
        let read = read_all(&models, &["one"]).expect("reads");
        assert_eq!(read.table.models().map(|(name, _)| name).collect::<Vec<_>>(), ["maker/model", "small"]);
        assert!(read.table.price("maker/model").is_some());
        let left_out: Vec<(&str, bool)> =
            read.left_out.iter().map(|(name, why)| (name.as_str(), why.contains("--price"))).collect();
        assert_eq!(left_out, [("elsewhere/large", true), ("one/eu/small", true)]);
    }

    #[test]
    fn what_a_model_can_do_is_kept() {
        let models = json!({"m": {"litellm_provider": "one", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06,
            "max_output_tokens": 4096, "supports_vision": true, "supports_function_calling": true, "supports_audio_input": false,
            "supports_none": null}});
        let table = read_all(&models, &["one"]).expect("reads").table;
        let again = PriceTable::read(&table.to_file(None).expect("is JSON")).expect("is a price file");
        let model = again.model("m").expect("is there");
        assert_eq!(model.max_output, Some(4096));
        assert_eq!(model.supports.iter().map(String::as_str).collect::<Vec<_>>(), ["function_calling", "vision"]);
        assert_eq!(again.source_of(model).map(|source| source.pages.as_slice()), Some(&["table.json".to_owned()][..]));
    }

    #[test]
    fn a_model_of_which_its_provider_has_two_prices_is_left_out_and_the_others_are_read() {
        let at = |input: f64| json!({"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": input, "output_cost_per_token": input});
        let models = json!({"openai/gpt-dup": at(1e-06), "gpt-dup": at(2e-06), "gpt-dup-2030-01-01": at(2e-06),
            "openai/same": at(1e-06), "same": at(1e-06)});
        let read = read_all(&models, &["openai"]).expect("reads");
        assert_eq!(read.table.models().map(|(name, _)| name).collect::<Vec<_>>(), ["gpt-dup-2030-01-01", "same"]);
        let why = "openai has two prices of it, under 'gpt-dup' and 'openai/gpt-dup': give its price with --price";
        assert_eq!(read.left_out, [("gpt-dup".to_owned(), why.to_owned())]);
    }

    #[test]
    fn another_form_and_two_prices_of_a_name_are_refused() {
        for text in ["[]", "{", "{}", r#"{"a": 1}"#, r#"{"version":3,"date":"2030-01-01","models":[]}"#] {
            assert!(read(text, &["one".to_owned()], "2030-01-01", "x").is_err(), "{text}");
        }
        let at = |whose: &str, input: f64| json!({"litellm_provider": whose, "mode": "chat", "input_cost_per_token": input, "output_cost_per_token": input});
        let models = json!({"one/m": at("one", 1e-06), "two/m": at("two", 2e-06)});
        let refused = read_all(&models, &["one", "two"]).expect_err("two prices");
        assert!(refused.contains("one and two price m differently"), "{refused}");
        assert!(refused.contains("('one/m' and 'two/m')"), "{refused}");
        assert!(read_all(&models, &["two"]).is_ok());
        assert!(read_all(&models, &["three"]).is_err());
    }
}
