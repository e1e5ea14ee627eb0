//! Models that a memory system has called and of which nobody knows what they cost: what was paid for them is in no booked
//! dollar. A model of this machine, and one that `--price` says costs nothing, are no such models.

use std::collections::{BTreeMap, BTreeSet};

use bench_models::{prices, registry};
use bench_proto::{
    metered::{MeteredCalls, MeteredEnd, Service},
    money::PicoUsd,
    spec::RunSpec,
};

/// These models of a run's metered calls.
pub(super) fn unpriced_models(calls: &[MeteredCalls], spec: &RunSpec) -> BTreeSet<String> {
    let mut booked: BTreeMap<(&str, Service), PicoUsd> = BTreeMap::new();
    for of in calls {
        // lists of models and counts of tokens have no price
        if of.key.service != Service::Free && matches!(of.end, MeteredEnd::Answered { .. }) {
            let sum = booked.entry((of.model.as_str(), of.key.service)).or_default();
            sum.0 = sum.0.saturating_add(of.cost.0);
        }
    }
    // a model that names itself another way than it was asked for is booked at the price of that
    let unbooked = booked.into_iter().filter(|(_, cost)| *cost == PicoUsd::ZERO).map(|(of, _)| of);
    let is_unpriced = |&(model, service): &(&str, Service)| {
        registry::is_paid(provider(service, spec)) && prices::price_of(model, &spec.limits).is_none()
    };
    unbooked.filter(is_unpriced).map(|(model, _)| model.to_owned()).collect()
}

/// The provider that a service was asked of. Calls go to the answerer's where the run names its account for them, or where it is of
/// this machine and the run names none.
fn provider(service: Service, spec: &RunSpec) -> &str {
    let wire = if service == Service::Messages { "anthropic" } else { "openai" };
    let answerer = &spec.answerer;
    let named = spec.limits.meter.as_ref().and_then(|meter| meter.accounts.get(wire));
    let is_its_own = match named {
        Some(name) => *name == answerer.account,
        None => wire == "openai" && answerer.is_remote() && !registry::is_paid(&answerer.provider),
    };
    if is_its_own { &answerer.provider } else { wire }
}

#[cfg(test)]
mod tests {
    use bench_proto::metered::{MeterPlan, MeteredKey, Stage};

    use super::*;

    fn spec() -> RunSpec {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        spec.limits.prices = BTreeMap::from([("given-0".to_owned(), (PicoUsd::ZERO, PicoUsd::ZERO))]);
        spec.limits.meter = Some(MeterPlan::default());
        spec
    }

    fn answered(model: &str, service: Service, cost: i64) -> MeteredCalls {
        MeteredCalls {
            key: MeteredKey { bank: None, stage: Stage::Retain, service },
            model: model.to_owned(),
            end: MeteredEnd::Answered { counted_here: false },
            is_uncertain: false,
            calls: 1,
            prompt_tokens: 1,
            completion_tokens: 1,
            cost: PicoUsd(cost),
            duration_us: 1,
            saved: PicoUsd::ZERO,
        }
    }

    #[test]
    fn p34_what_is_known_to_cost_nothing_is_not_unpriced() {
        let calls = [
            answered("house", Service::Chat, 0),
            answered("given-0-2027-01-01", Service::Chat, 0),
            answered("served-as-another", Service::Chat, 5),
            answered("a-list", Service::Free, 0),
            MeteredCalls { end: MeteredEnd::Refused(400), ..answered("refused", Service::Chat, 0) },
            answered("house-claude", Service::Messages, 0),
        ];
        let unpriced = |spec: &RunSpec| unpriced_models(&calls, spec).into_iter().collect::<Vec<_>>();
        assert_eq!(unpriced(&spec()), ["house", "house-claude"]);
        let mut spec = spec();
        (spec.answerer.provider, spec.answerer.account) = ("ollama".to_owned(), "ollama".to_owned());
        assert_eq!(unpriced(&spec), ["house-claude"], "nobody is paid for models of this machine");
        spec.limits.meter.as_mut().expect("is metered").accounts.insert("openai".to_owned(), "mine".to_owned());
        assert_eq!(unpriced(&spec), ["house", "house-claude"], "they are elsewhere");
    }
}
