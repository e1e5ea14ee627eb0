//! What models cost: whole pico-dollars per token, with everything that changes a token's price (cached input, cache writes,
//! long contexts, service tiers, batches).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::money::PicoUsd;

/// Tokens of one call, as its price sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// All prompt tokens: fresh, read from a cache, written into one.
    pub prompt: u64,
    /// The part of them that was read from a cache.
    pub cached: u64,
    /// The part that was written into a cache for a short time.
    pub cache_write: u64,
    /// The part that was written into a cache for an hour.
    pub cache_write_1h: u64,
    /// Completion tokens, hidden reasoning included.
    pub completion: u64,
}

/// Pico-dollars per token of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Fresh prompt tokens.
    pub input: PicoUsd,
    /// Prompt tokens read from a cache.
    pub cached_input: PicoUsd,
    /// Prompt tokens written into a cache for a short time.
    pub cache_write: PicoUsd,
    /// Prompt tokens written into a cache for an hour.
    pub cache_write_1h: PicoUsd,
    /// Completion tokens.
    pub output: PicoUsd,
}

impl Rates {
    /// The same price for every prompt token.
    #[must_use]
    pub const fn flat(input: PicoUsd, output: PicoUsd) -> Self {
        Self { input, cached_input: input, cache_write: input, cache_write_1h: input, output }
    }

    /// The dearest kind of prompt token.
    #[must_use]
    pub fn dearest_input(&self) -> PicoUsd {
        self.input.max(self.cached_input).max(self.cache_write).max(self.cache_write_1h)
    }

    /// Cost of a call. Parts beyond the whole prompt are not counted; sums stick at the end of the range.
    #[must_use]
    pub const fn cost(&self, tokens: &TokenCounts) -> PicoUsd {
        let mut fresh = tokens.prompt;
        let mut sum = PicoUsd::ZERO;
        let parts = [
            (tokens.cached, self.cached_input),
            (tokens.cache_write, self.cache_write),
            (tokens.cache_write_1h, self.cache_write_1h),
        ];
        let mut at = 0;
        while at < parts.len() {
            let (count, price) = parts[at];
            let count = if count < fresh { count } else { fresh };
            fresh -= count;
            sum = sum.saturating_add(times(price, count));
            at += 1;
        }
        sum.saturating_add(times(self.input, fresh)).saturating_add(times(self.output, tokens.completion))
    }
}

/// `price × tokens`, sticking at the end of the range.
const fn times(price: PicoUsd, tokens: u64) -> PicoUsd {
    let tokens = if tokens > i64::MAX as u64 { i64::MAX } else { tokens as i64 };
    PicoUsd(price.0.saturating_mul(tokens))
}

/// Rates that hold for the whole call once its prompt is longer than a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongContext {
    /// Prompts of more tokens than this.
    pub above: u64,
    /// What such a call costs, prompt and reply, instead of the model's usual rates.
    pub rates: Rates,
}

/// Rates of a service tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    /// Ordinary prompts.
    pub rates: Rates,
    /// Long ones, when they cost otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongContext>,
}

impl Tier {
    const fn for_prompt(&self, prompt: u64) -> &Rates {
        match &self.long {
            Some(long) if prompt > long.above => &long.rates,
            _ => &self.rates,
        }
    }
}

/// Names of tiers that cost no more than the standard one.
const STANDARD_TIERS: [&str; 8] =
    ["auto", "batch", "default", "flex", "on_demand", "scale", "standard", "standard_only"];

/// Another name of a tier, and the one under which prices have it.
const ALIAS: (&str, &str) = ("fast", "priority");

/// Whether a service tier, as requests name it, costs no more than the standard one without a price of its own.
fn is_standard_tier(service: &str) -> bool {
    STANDARD_TIERS.contains(&service)
}

/// What a model's tokens cost, in the standard tier of its provider and in its others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPrice {
    /// The tier that is served when nobody asks for another one.
    pub standard: Tier,
    /// Other tiers by the name that requests and replies give them (`flex`, `priority`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, Tier>,
    /// What a provider's batches cost, in percent of the standard tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_percent: Option<u8>,
}

impl ModelPrice {
    /// A price for prompt and completion tokens, without tiers.
    #[must_use]
    pub const fn flat(input: PicoUsd, output: PicoUsd) -> Self {
        let standard = Tier { rates: Rates::flat(input, output), long: None };
        Self { standard, services: BTreeMap::new(), batch_percent: None }
    }

    /// A tier that has a price of its own, by one of its names.
    fn service(&self, name: &str) -> Option<&Tier> {
        let (alias, called) = ALIAS;
        self.services.get(name).or_else(|| self.services.get(called).filter(|_| name == alias))
    }

    fn tier(&self, service: Option<&str>) -> &Tier {
        service.and_then(|name| self.service(name)).unwrap_or(&self.standard)
    }

    /// Whether it is known what a service tier costs at most: one without a price of its own may cost many times the standard one.
    #[must_use]
    pub fn knows_tier(&self, service: &str) -> bool {
        is_standard_tier(service) || self.service(service).is_some()
    }

    /// The rates of a call with so many prompt tokens, served by a tier; one without a price of its own is the standard one.
    #[must_use]
    pub fn rates(&self, service: Option<&str>, prompt: u64) -> &Rates {
        self.tier(service).for_prompt(prompt)
    }

    /// Cost of a call.
    #[must_use]
    pub fn cost(&self, tokens: &TokenCounts, service: Option<&str>) -> PicoUsd {
        self.rates(service, tokens.prompt).cost(tokens)
    }

    /// Cost of a call within a provider's batch, rounded up to the next pico-dollar.
    #[must_use]
    pub fn batch_cost(&self, tokens: &TokenCounts) -> PicoUsd {
        let full = self.cost(tokens, None);
        match self.batch_percent {
            Some(percent) => {
                let part = (i128::from(full.0) * i128::from(percent) + 99).div_euclid(100);
                PicoUsd(i64::try_from(part).unwrap_or(i64::MAX))
            }
            None => full,
        }
    }

    /// The most that a call of at most so many tokens can cost in a tier: nothing cached, or all of it written into a cache
    /// when `writes_cache`.
    #[must_use]
    pub fn worst(&self, prompt: u64, completion: u64, service: Option<&str>, writes_cache: bool) -> PicoUsd {
        let tier = self.tier(service);
        let of = |rates: &Rates| {
            let input = if writes_cache { rates.dearest_input() } else { rates.input };
            times(input, prompt).saturating_add(times(rates.output, completion))
        };
        of(&tier.rates).max(of(tier.for_prompt(prompt)))
    }

    /// Whether anything of it costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        std::iter::once(&self.standard).chain(self.services.values()).all(|tier| {
            let free = |rates: &Rates| rates.dearest_input() == PicoUsd::ZERO && rates.output == PicoUsd::ZERO;
            free(&tier.rates) && tier.long.is_none_or(|long| free(&long.rates))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> ModelPrice {
        let rates = |factor: i64| Rates {
            input: PicoUsd(100 * factor),
            cached_input: PicoUsd(10 * factor),
            cache_write: PicoUsd(125 * factor),
            cache_write_1h: PicoUsd(200 * factor),
            output: PicoUsd(500 * factor),
        };
        let long = Some(LongContext { above: 1000, rates: rates(2) });
        ModelPrice {
            standard: Tier { rates: rates(1), long },
            services: BTreeMap::from([("priority".to_owned(), Tier { rates: rates(3), long: None })]),
            batch_percent: Some(50),
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let tokens = TokenCounts { prompt: 100, cached: 20, cache_write: 10, cache_write_1h: 5, completion: 3 };
        let expected = 65 * 100 + 20 * 10 + 10 * 125 + 5 * 200 + 3 * 500;
        assert_eq!(price().cost(&tokens, None), PicoUsd(expected));
        assert_eq!(price().cost(&tokens, Some("priority")), PicoUsd(3 * expected));
        assert_eq!(
            price().cost(&tokens, Some("default")),
            PicoUsd(expected),
            "a tier without a price is the standard one"
        );
        assert_eq!(price().batch_cost(&tokens), PicoUsd(expected / 2));
        let impossible = TokenCounts { prompt: 10, cached: 50, ..TokenCounts::default() };
        assert_eq!(price().cost(&impossible, None), PicoUsd(100), "more cached than there is");
    }

    #[test]
    fn p34_a_tier_has_a_price_under_each_of_its_names_and_others_are_not_known() {
        let tokens = TokenCounts { prompt: 100, completion: 3, ..TokenCounts::default() };
        let of = |service| price().cost(&tokens, Some(service));
        assert_eq!(of("fast"), of("priority"));
        assert!(of("fast") > of("default"));
        for known in ["auto", "default", "standard", "standard_only", "flex", "batch", "scale", "priority", "fast"] {
            assert!(price().knows_tier(known), "{known}");
        }
        for unknown in ["ultrafast", "Priority", "", "premium"] {
            assert!(!price().knows_tier(unknown), "{unknown}");
        }
        let flat = ModelPrice::flat(PicoUsd(1), PicoUsd(1));
        assert!(!flat.knows_tier("priority") && !flat.knows_tier("fast"), "it has no such price");
    }

    #[test]
    fn long_prompts_cost_more_as_a_whole_and_the_worst_case_knows() {
        let of = |prompt| price().cost(&TokenCounts { prompt, completion: 1, ..TokenCounts::default() }, None);
        assert_eq!(of(1000), PicoUsd(100_500));
        assert_eq!(of(1001), PicoUsd(2 * (100_100 + 500)));
        assert_eq!(price().worst(1001, 1, None, false), of(1001));
        assert_eq!(price().worst(1000, 1, None, true), PicoUsd(200_500));
        assert_eq!(price().worst(u64::MAX, u64::MAX, None, false), PicoUsd(i64::MAX));
        assert!(!price().is_free() && ModelPrice::flat(PicoUsd(0), PicoUsd(0)).is_free());
    }
}
