//! `models list`: which models have a price, what it is, and what else is known of them.

use std::{borrow::Cow, collections::BTreeMap};

use bench_models::{
    capabilities::Capabilities,
    prices::{LITELLM_TABLE, PriceSource, PriceTable, PricedModel, per_million},
    tokens::Encoding,
};
use bench_proto::redact;
use serde_json::{Value, json};

use crate::{
    app::App,
    cli::ModelsVerb,
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        tables::{render, table},
    },
    planning::price_file,
};

/// Prints models. Needs no key and asks nobody.
pub(super) fn run(app: &App, verb: &ModelsVerb) -> CliResult {
    let ModelsVerb::List { search, json } = verb;
    let own = price_file(app)?;
    let wanted = search.as_deref().unwrap_or_default().to_lowercase();
    let listed: Vec<Listed<'_>> =
        listed(own.as_ref()).into_iter().filter(|model| model.name.to_lowercase().contains(&wanted)).collect();
    if listed.is_empty() {
        return Err(CliError::usage(format!(
            "no model with a known price has '{wanted}' in its name; --price IN,OUT gives one for a run, `bench-coord prices update --from \
             {LITELLM_TABLE}` reads more"
        )));
    }
    if *json {
        out::json(&json!({ "models": listed.iter().map(Listed::json).collect::<Vec<_>>() }));
        return Ok(Exit::Done);
    }
    let columns =
        ["model", "input", "cached", "output", "context", "tokens", "parameters", "priced", "from", "provider"];
    let mut rows = table(columns).sparing(&["parameters", "cached", "from", "tokens", "provider"]);
    for model in &listed {
        rows.add_row(model.cells());
    }
    out::result(&render(&rows));
    let mut sources: Vec<String> = listed.iter().filter_map(|model| model.source.map(words_of)).collect();
    sources.sort();
    sources.dedup();
    if !sources.is_empty() {
        out::result(&format!("prices were read at\n{}", sources.join("\n")));
    }
    out::note("dollars per million tokens; a dated version of a model (gpt-4o-2024-08-06) costs what its family costs");
    Ok(Exit::Done)
}

/// A model, and where its price is from.
struct Listed<'a> {
    name: &'a str,
    of: &'a PricedModel,
    /// Day of the price.
    day: &'a str,
    from: &'static str,
    /// Where it was read, as far as its list says so.
    source: Option<&'a PriceSource>,
}

/// Where prices were read: an earlier release kept the password of an address in a price file.
fn pages_of(source: &PriceSource) -> Vec<Cow<'_, str>> {
    source.pages.iter().map(|page| redact::text(page)).collect()
}

/// A source with its pages, each on a line of its own: a long address stays whole.
fn words_of(source: &PriceSource) -> String {
    format!("  {} ({})\n    {}", source.provider, source.checked, pages_of(source).join("\n    "))
}

/// All models, by name; a line of the user's file goes before that of the build.
fn listed(own: Option<&PriceTable>) -> Vec<Listed<'_>> {
    let lines = |table, from| {
        let table: &PriceTable = table;
        table.models().map(move |(name, of)| {
            (name, Listed { name, of, day: table.day_of(of), from, source: table.source_of(of) })
        })
    };
    let mut all: BTreeMap<&str, Listed<'_>> = lines(PriceTable::built_in(), "built in").collect();
    all.extend(own.into_iter().flat_map(|table| lines(table, "price file")));
    all.into_values().collect()
}

impl Listed<'_> {
    fn encoding(&self) -> &'static str {
        match Encoding::for_model(self.name) {
            Encoding::O200k => "o200k_base",
            Encoding::Cl100k => "cl100k_base",
            Encoding::Bytes => "estimated",
        }
    }

    /// Whose price it is.
    fn provider(&self) -> Option<&str> {
        self.of.provider.as_deref().or_else(|| Some(self.source?.provider.as_str()))
    }

    fn cells(&self) -> [String; 10] {
        let rates = self.of.price.standard.rates;
        let reasons = Capabilities::for_model(self.name).reasoning;
        [
            self.name.to_owned(),
            per_million(rates.input),
            per_million(rates.cached_input),
            if rates.output.0 == 0 { "-".to_owned() } else { per_million(rates.output) },
            self.of.context.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            self.encoding().to_owned(),
            if reasons { "no temperature".to_owned() } else { String::new() },
            self.day.to_owned(),
            self.from.to_owned(),
            self.provider().unwrap_or("-").to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let PricedModel { kind, context, max_output, supports, price, .. } = self.of;
        let rates = price.standard.rates;
        let usd = |rates: bench_proto::price::Rates| {
            json!({
                "input": per_million(rates.input), "cached_input": per_million(rates.cached_input),
                "cache_write": per_million(rates.cache_write), "cache_write_1h": per_million(rates.cache_write_1h),
                "output": per_million(rates.output),
            })
        };
        let capabilities = Capabilities::for_model(self.name);
        json!({
            "model": self.name, "kind": kind.name(), "context": context, "max_output": max_output, "supports": supports, "encoding": self.encoding(),
            "reasoning": capabilities.reasoning, "max_tokens_name": capabilities.max_tokens_name,
            "usd_per_million": usd(rates),
            "long": price.standard.long.map(|long| json!({ "above": long.above, "usd_per_million": usd(long.rates) })),
            "services": price.services.iter().map(|(name, tier)| (name.clone(), usd(tier.rates))).collect::<serde_json::Map<_, _>>(),
            "batch_percent": price.batch_percent, "priced": self.day, "from": self.from, "provider": self.provider(),
            "source": self.source.map(|source| json!({ "checked": source.checked, "pages": pages_of(source) })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_a_price_file_keeps_is_not_shown() {
        let pages = vec!["https://u:s3cret@prices.example/t.json?token=s3cret".to_owned(), "table.json".to_owned()];
        let source = PriceSource { provider: "one".to_owned(), checked: "2030-01-01".to_owned(), pages };
        let shown = "  one (2030-01-01)\n    https://***@prices.example/t.json?token=***\n    table.json";
        assert_eq!(words_of(&source), shown);
        let built_in = listed(None);
        let pages = || built_in.iter().filter_map(|model| model.source).flat_map(|source| &source.pages);
        assert!(pages().count() > 0 && pages().all(|page| redact::text(page) == page.as_str()), "these stay whole");
    }
}
