//! Which model has answered: behind a gateway that may be another one than was asked for, and it is the one that is paid.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use bench_models::{capabilities::bare_name, classify, prices};
use bench_proto::{money::PicoUsd, price::ModelPrice};

/// Pairs of models that are said, in one run: whoever names a new one in each reply fills no log.
const MOST_SAID: usize = 32;

/// Whose price a reply has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answered {
    /// That of the model that was asked for: the reply names it, a version of it, or none.
    AsAsked,
    /// It names another model, which has this price.
    Another(ModelPrice),
    /// It names another model, and nobody knows what that one costs.
    Unpriced,
}

impl Answered {
    /// By what the reply tells; `price_of` knows prices of the account's provider.
    pub(super) fn from_reply(asked: &str, told: &str, price_of: impl FnOnce(&str) -> Option<ModelPrice>) -> Self {
        if told.is_empty() || is_same(asked, told) {
            return Self::AsAsked;
        }
        price_of(told).map_or(Self::Unpriced, Self::Another)
    }

    /// What a reply costs: the more of what the models cost that it may be of. `asked` is the price of the one that was asked for.
    pub(super) fn cost(&self, asked: Option<&ModelPrice>, of: impl Fn(&ModelPrice) -> PicoUsd) -> PicoUsd {
        let another = match self {
            Self::Another(price) => Some(price),
            Self::AsAsked | Self::Unpriced => None,
        };
        asked.into_iter().chain(another).map(of).max().unwrap_or(PicoUsd::ZERO)
    }
}

/// Whether two names are of one model: the same but for where it is (`openai/gpt-4o`), or one is a version of the other, by its date,
/// as the latest, or by how a gateway serves it (`:free`).
fn is_same(asked: &str, told: &str) -> bool {
    let (asked, told) = (bare_name(asked).to_lowercase(), bare_name(told).to_lowercase());
    let (asked, told) = match (asked.split_once(':'), told.split_once(':')) {
        (Some((asked, _)), None) => (asked, told.as_str()),
        (None, Some((told, _))) => (asked.as_str(), told),
        _ => (asked.as_str(), told.as_str()),
    };
    // the latest has a date when it answers
    let (asked, told) = (without_latest(asked), without_latest(told));
    // a version may be named by a short number too (`gemini-1.5-pro-002`)
    let is_dated = |suffix: &str| suffix.is_empty() || prices::is_date_suffix(suffix, 3);
    let is_version = |name: &str, of: &str| name.strip_prefix(of).is_some_and(is_dated);
    is_version(told, asked) || is_version(asked, told)
}

fn without_latest(name: &str) -> &str {
    name.strip_suffix("-latest").unwrap_or(name)
}

/// What has been said of models in a run: once is enough.
#[derive(Default)]
pub(crate) struct Said(Mutex<HashSet<(String, String)>>);

impl Said {
    /// Whether this is to be said now, and not again.
    pub(super) fn is_new(&self, asked: &str, told: &str) -> bool {
        // every change is complete when the lock is dropped
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.len() < MOST_SAID && said.insert((asked.to_owned(), told.to_owned()))
    }
}

/// A name of a provider's or of a memory system's as a log may have it: in one line, without what looks like a key.
pub(super) fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    classify::one_line(&name, None).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use bench_proto::price::TokenCounts;

    use super::*;

    fn price(input: i64, output: i64) -> ModelPrice {
        ModelPrice::flat(PicoUsd(input), PicoUsd(output))
    }

    #[test]
    fn p34_a_version_of_the_model_that_was_asked_for_is_no_other_model() {
        for (asked, told) in [
            ("gpt-4o-mini", "gpt-4o-mini"),
            ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
            ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
            ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
            ("gpt-4o-mini", "openai/GPT-4o-mini"),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("claude-3-5-sonnet", "claude-3-5-sonnet@20241022"),
            ("gpt-4", "gpt-4-0613"),
            ("gemini-2.0-flash", "gemini-2.0-flash-001"),
            ("meta/llama-3.1-8b:free", "meta/llama-3.1-8b"),
            ("llama3.1", "llama3.1:latest"),
            ("ft:gpt-4o-mini-2024-07-18:o::1", "ft:gpt-4o-mini-2024-07-18:o::1"),
        ] {
            assert!(is_same(asked, told), "{asked}, {told}");
        }
        for (asked, told) in [
            ("gpt-4o-mini", "gpt-5-pro"),
            ("gpt-4o", "gpt-4o-mini"),
            ("gpt-4o-mini", "gpt-4o"),
            ("gpt-4o", "gpt-4o-audio-preview"),
            ("claude-opus-4", "claude-opus-4-1"),
            ("claude-opus-4", "claude-opus-4-9-20270101"),
            ("gpt-5", "gpt-5-pro"),
            ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
            ("qwen:0.5b", "qwen:72b"),
            ("my-deployment", "gpt-4o-mini-2024-07-18"),
            ("gpt-4o-mini", "-2024"),
        ] {
            assert!(!is_same(asked, told), "{asked}, {told}");
        }
    }

    #[test]
    fn p34_a_reply_of_another_model_costs_the_more_of_both_prices() {
        let (small, large) = (price(150, 600), price(15_000, 120_000));
        let known = |name: &str| match name {
            "gpt-4o-mini" => Some(price(150, 600)),
            "gpt-5-pro" => Some(price(15_000, 120_000)),
            _ => None,
        };
        let counts = TokenCounts { prompt: 10, completion: 2, ..TokenCounts::default() };
        let cost = |asked: &str, told: &str| {
            Answered::from_reply(asked, told, known).cost(known(asked).as_ref(), |price| price.cost(&counts, None))
        };
        assert_eq!(cost("gpt-4o-mini", "gpt-4o-mini-2024-07-18"), small.cost(&counts, None));
        assert_eq!(cost("gpt-4o-mini", ""), small.cost(&counts, None));
        assert_eq!(cost("gpt-4o-mini", "gpt-5-pro"), large.cost(&counts, None));
        assert_eq!(cost("gpt-5-pro", "gpt-4o-mini"), large.cost(&counts, None), "nobody gets less booked by a name");
        assert_eq!(cost("gpt-4o-mini", "model-of-the-house"), small.cost(&counts, None), "nobody knows better");
        assert_eq!(cost("my-deployment", "gpt-4o-mini"), small.cost(&counts, None));
        assert_eq!(cost("my-deployment", "model-of-the-house"), PicoUsd::ZERO);
        assert_eq!(Answered::from_reply("gpt-4o-mini", "model-of-the-house", known), Answered::Unpriced);
        // a price of the run's own for the model that was asked for stays
        let version =
            Answered::from_reply("gpt-4o-mini", "gpt-4o-mini-2024-07-18", |_| panic!("nobody asks for its price"));
        assert_eq!(version, Answered::AsAsked);
    }

    #[test]
    fn a_pair_of_models_is_said_once_and_not_without_end() {
        let said = Said::default();
        assert!(said.is_new("a", "b") && !said.is_new("a", "b") && said.is_new("a", "c") && said.is_new("b", "b"));
        let more = (0..1000).filter(|n| said.is_new("a", &n.to_string())).count();
        assert_eq!(more, MOST_SAID - 3);
        assert_eq!(shown("gpt\n5\u{1b}[0m"), "gpt5[0m");
        assert_eq!(shown(&"x".repeat(9_999)).len(), 100);
    }
}
