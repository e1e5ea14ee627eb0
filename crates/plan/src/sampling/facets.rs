//! Filters by facet: `--facet` and `--exclude-facet`.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::nearest::nearest;

use crate::{error::SampleError, request::SampleRequest};

/// So many facets are told to somebody who named another one: what a line holds.
const TOLD: usize = 20;
/// So many facets are looked at for suggestions: a bound on memory.
const EXAMPLES: usize = 1_000;

/// Facet → values.
type Values = BTreeMap<String, BTreeSet<String>>;

/// What a user wants of the facets, and which were seen.
#[derive(Debug, Default)]
pub(super) struct FacetFilter {
    wanted: Values,
    unwanted: Values,
    /// Facets that were asked for and not seen yet, as `name=value`.
    unseen: BTreeSet<String>,
    examples: BTreeSet<String>,
}

impl FacetFilter {
    /// The filter of a request.
    ///
    /// # Errors
    /// When a facet is not written `name=value`.
    pub(super) fn new(request: &SampleRequest) -> Result<Self, SampleError> {
        let wanted = values("--facet", &request.facets)?;
        let unwanted = values("--exclude-facet", &request.exclude_facets)?;
        let unseen = request.facets.iter().chain(&request.exclude_facets).cloned().collect();
        Ok(Self { wanted, unwanted, unseen, examples: BTreeSet::new() })
    }

    /// Whether it filters at all.
    pub(super) fn is_active(&self) -> bool {
        !(self.wanted.is_empty() && self.unwanted.is_empty())
    }

    /// Whether a question with these facets is left: it has one of the wanted values of each wanted facet, and no unwanted one.
    pub(super) fn admits(&mut self, facets: &BTreeMap<String, String>) -> bool {
        if !self.is_active() {
            return true;
        }
        for (name, value) in facets {
            let written = written(name, value);
            self.unseen.remove(&written);
            if self.examples.len() < EXAMPLES {
                self.examples.insert(written);
            }
        }
        let has =
            |name: &String, values: &BTreeSet<String>| facets.get(name).is_some_and(|value| values.contains(value));
        self.wanted.iter().all(|(name, values)| has(name, values))
            && !self.unwanted.iter().any(|(name, values)| has(name, values))
    }

    /// Whether some question has every facet that was named.
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let Some(given) = self.unseen.first() else { return Ok(()) };
        Err(SampleError::UnknownFacet {
            given: given.clone(),
            nearest: nearest(given, self.examples.iter().map(String::as_str)).into_iter().map(str::to_owned).collect(),
            known: self.examples.iter().take(TOLD).cloned().collect(),
        })
    }

    /// What a report says of it.
    pub(super) fn notes(&self) -> Vec<String> {
        let either = |(name, values): (&String, &BTreeSet<String>)| {
            values.iter().map(|value| written(name, value)).collect::<Vec<_>>().join(" or ")
        };
        let only: Vec<String> = self.wanted.iter().map(either).collect();
        let without: Vec<String> = self.unwanted.iter().map(either).collect();
        let only = (!only.is_empty()).then(|| format!("only questions with {}", only.join(" and ")));
        let without = (!without.is_empty()).then(|| format!("without questions with {}", without.join(" or ")));
        only.into_iter().chain(without).collect()
    }
}

fn written(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

fn values(flag: &'static str, given: &[String]) -> Result<Values, SampleError> {
    let mut values = Values::new();
    for facet in given {
        match facet.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                values.entry(name.to_owned()).or_default().insert(value.to_owned());
            }
            _ => return Err(SampleError::FacetForm { flag, given: facet.clone() }),
        }
    }
    Ok(values)
}
