//! Prices that were read long ago: providers change them, and an estimate by an old one is said to be so.
//!
//! In come the lists of prices and a run's spec; out come lines for people: one for each model that the run names, one for all that a
//! metered memory system may choose from.

use std::collections::{BTreeMap, BTreeSet};

use bench_models::{
    prices::{self, LITELLM_TABLE, PriceTable},
    registry::is_paid,
};
use bench_proto::{
    metered::MeterPlan,
    spec::{ModelSpec, RunSpec},
};
use bench_systems::{facts, vector};
use jiff::civil::Date;

use crate::{app::App, planning::price_file};

/// What was read before so many days is said.
const MOST_DAYS: i32 = 90;

/// Lines about the run's prices that are older than [`MOST_DAYS`].
pub(super) fn of_run(app: &App, spec: &RunSpec, today: Date) -> Vec<String> {
    let own = price_file(app).ok().flatten();
    let tables: Vec<&PriceTable> = own.iter().chain([PriceTable::built_in()]).collect();
    lines(&tables, spec, today)
}

/// The same by these lists, of which the first that knows a model has its price. A price of the command line is of today.
fn lines(tables: &[&PriceTable], spec: &RunSpec, today: Date) -> Vec<String> {
    let is_old = |day: &str| prices::age_days(day, today).filter(|days| *days > MOST_DAYS);
    let is_listed = |name: &str| prices::given(name, &spec.limits).is_none();
    let how = format!("look it up, or read newer ones with `bench-coord prices update --from {LITELLM_TABLE}`");
    let of_one = |name: &str| {
        let day = tables.iter().find_map(|table| Some(table.day_of(table.model(name)?)))?;
        let days = is_old(day)?;
        Some(format!("the price of {name} is of {day}, {days} days ago: {how}"))
    };
    let of_pattern = |pattern: &str| {
        let mut days: BTreeMap<&str, &str> = BTreeMap::new();
        for table in tables.iter().rev() {
            days.extend(table.models().map(move |(name, model)| (name, table.day_of(model))));
        }
        days.retain(|name, _| MeterPlan::is_of(pattern, name) && is_listed(name));
        let old: Vec<(i32, &str, &str)> =
            days.iter().filter_map(|(name, day)| Some((is_old(day)?, *name, *day))).collect();
        let (_, name, day) = old.iter().max_by_key(|(days, ..)| *days)?;
        let which = if pattern == "*" { String::new() } else { format!(" as {pattern}") };
        Some(format!(
            "older than {MOST_DAYS} days: {} of the {} prices of models that the memory system may call{which}; the oldest, that of \
             {name}, is of {day}: {how}",
            old.len(),
            days.len()
        ))
    };
    let allowed: Vec<&str> = spec.limits.meter.iter().flat_map(|meter| &meter.allow).map(String::as_str).collect();
    let (patterns, named): (Vec<&str>, Vec<&str>) = allowed.iter().copied().partition(|name| name.ends_with('*'));
    // without a list it may call whatever has a price
    let all = spec.limits.meter.is_some() && allowed.is_empty();
    let models = paid_models(spec);
    let names: BTreeSet<&str> = models.iter().map(String::as_str).chain(named).collect();
    let of_names = names.into_iter().filter(|name| is_listed(name)).filter_map(of_one);
    of_names.chain(all.then_some("*").into_iter().chain(patterns).filter_map(of_pattern)).collect()
}

/// Models of the run that cost something, with those that a built-in memory system calls.
fn paid_models(spec: &RunSpec) -> Vec<String> {
    let (system, settings) = (&spec.system.name, &spec.system.settings);
    let notes = facts::chat_model(system, settings);
    let chats = std::iter::once(&spec.answerer).chain(&spec.judges).chain(&notes);
    let chats = chats.filter(|model: &&ModelSpec| is_paid(&model.provider)).map(|model| model.name.clone());
    chats.chain(vector::remote_model(system, settings).map(|model| model.name)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn table(text: &str) -> PriceTable {
        PriceTable::read(text).expect("is a price file")
    }

    /// Lines about a run of a metered class that may call these models.
    fn metered(allow: &[&str]) -> Vec<String> {
        let own = table(r#"{"version":3,"date":"2029-01-01","models":[{"model":"m-small","input":"1","output":"1"}]}"#);
        let built_in = table(
            r#"{"version":3,"date":"2030-01-01","models":[{"model":"m-small","input":"2","output":"2"},
            {"model":"m-large","input":"3","output":"3"},{"model":"other","input":"3","output":"3","date":"2028-01-01"}]}"#,
        );
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../../proto/golden/run_spec.v1.json")).expect("a spec");
        (spec.answerer.name, spec.judges) = ("nobody".to_owned(), Vec::new());
        spec.limits.prices.clear();
        spec.limits.meter =
            Some(MeterPlan { allow: allow.iter().map(|name| (*name).to_owned()).collect(), ..MeterPlan::default() });
        lines(&[&own, &built_in], &spec, date(2030, 2, 1))
    }

    #[test]
    fn what_a_metered_system_may_call_is_said_by_name_by_pattern_and_as_a_whole() {
        let begins = |lines: &[String], begin: &str| lines.len() == 1 && lines[0].starts_with(begin);
        let named = metered(&["m-small", "m-large"]);
        assert!(begins(&named, "the price of m-small is of 2029-01-01, 396 days ago"), "{named:?}");
        let of_pattern = metered(&["m-*"]);
        let said = "older than 90 days: 1 of the 2 prices of models that the memory system may call as m-*; the oldest, that of m-small,";
        assert!(begins(&of_pattern, said), "{of_pattern:?}");
        let all = metered(&[]);
        let said = "older than 90 days: 2 of the 3 prices of models that the memory system may call; the oldest, that of other, is of 2028";
        assert!(begins(&all, said), "{all:?}");
        assert!(metered(&["m-l*"]).is_empty());
    }

    #[test]
    fn the_embedding_model_of_a_built_in_system_is_one_of_the_run() {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../../proto/golden/run_spec.v1.json")).expect("a spec");
        "vector".clone_into(&mut spec.system.name);
        spec.system.settings.clear();
        spec.system.settings.insert("vector.model".to_owned(), "embed-me".into());
        spec.limits.prices.clear();
        let file =
            r#"{"version":3,"date":"2029-01-01","models":[{"model":"embed-me","kind":"embedding","input":"1"}]}"#;
        let lines = lines(&[&table(file)], &spec, date(2030, 2, 1));
        assert!(lines.iter().any(|line| line.starts_with("the price of embed-me is of 2029-01-01")), "{lines:?}");
    }
}
