//! Filters by facet: `--facet` and `--exclude-facet`.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::nearest::nearest;

use crate::{error::SampleError, request::SampleRequest};

/// Facets that somebody is told who named another one: what a line holds.
const TOLD: usize = 20;
/// Facets that are looked at for suggestions: a bound on memory.
const EXAMPLES: usize = 1_000;

/// Facet → what was asked for of it, as `name=value`.
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
        // names and values may have a `=` in them: as they are written they are told apart
        let written: Vec<String> = facets.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for facet in &written {
            self.unseen.remove(facet);
            if self.examples.len() < EXAMPLES {
                self.examples.insert(facet.clone());
            }
        }
        let has = |given: &BTreeSet<String>| written.iter().any(|facet| given.contains(facet));
        self.wanted.values().all(has) && !self.unwanted.values().any(has)
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
        let either = |given: &BTreeSet<String>| given.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
        let only: Vec<String> = self.wanted.values().map(either).collect();
        let without: Vec<String> = self.unwanted.values().map(either).collect();
        let only = (!only.is_empty()).then(|| format!("only questions with {}", only.join(" and ")));
        let without = (!without.is_empty()).then(|| format!("without questions with {}", without.join(" or ")));
        only.into_iter().chain(without).collect()
    }
}

/// What was asked for, by facet. A tag is a facet of its own whose value is `yes`, whatever characters it has; any other facet's
/// name ends at the first `=`.
fn values(flag: &'static str, given: &[String]) -> Result<Values, SampleError> {
    let mut values = Values::new();
    for facet in given {
        match facet.split_once('=') {
            Some((name, _)) if !name.is_empty() => {
                let name = facet.strip_suffix("=yes").unwrap_or(name);
                values.entry(name.to_owned()).or_default().insert(facet.clone());
            }
            _ => return Err(SampleError::FacetForm { flag, given: facet.clone() }),
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(facets: &[&str], has: &[(&str, &str)]) -> bool {
        let request = SampleRequest {
            facets: facets.iter().map(|facet| (*facet).to_owned()).collect(),
            ..SampleRequest::default()
        };
        let mut filter = FacetFilter::new(&request).expect("facets");
        let has = has.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        filter.admits(&has)
    }

    #[test]
    fn names_and_values_may_have_a_sign_in_them() {
        assert!(admitted(&["a=b=yes"], &[("a=b", "yes")]), "a tag");
        assert!(admitted(&["a=b=c"], &[("a", "b=c")]), "a value");
        assert!(!admitted(&["a=b=yes"], &[("a", "b")]));
        let both = [("x=1", "yes"), ("x=2", "yes")];
        assert!(admitted(&["x=1=yes", "x=2=yes"], &both), "of two tags both are wanted");
        assert!(!admitted(&["x=1=yes", "x=2=yes"], &both[..1]));
        assert!(admitted(&["topic=music", "topic=food"], &[("topic", "food")]), "of two values one is enough");
        assert!(!admitted(&["topic=music", "hard=yes"], &[("topic", "music")]));
    }
}
