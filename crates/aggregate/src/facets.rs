//! What questions count as beside their category: facets and their values as reports tell them, a bounded number of each.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bench_proto::summary::{MOST_FACET_VALUES, MOST_FACETS, OTHER_FACET_VALUES};

use crate::kinds::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facet {
    pub(crate) name: String,
    /// Names of the values that are told apart, and where there are more the name that stands for the others.
    pub(crate) values: Vec<String>,
    /// By number of the kind: which of the values its questions have.
    of_kind: Vec<Option<u32>>,
    /// How many values it has.
    all: usize,
}

impl Facet {
    /// Number of the value that questions of a kind have.
    pub(crate) fn value_of(&self, kind: u32) -> Option<u32> {
        self.of_kind.get(kind as usize).copied().flatten()
    }
}

/// Facets of questions with a note on each that is told in part. `questions` are the numbers of questions of each kind.
///
/// Nothing depends on the order of the kinds: facets go by their names, values by their questions and then their names.
pub(crate) fn facets(kinds: &[Kind], questions: &[u64]) -> (Vec<Facet>, Vec<String>) {
    let names: BTreeSet<&String> = kinds.iter().flat_map(|kind| kind.facets.keys()).collect();
    let told: Vec<Facet> = names.iter().take(MOST_FACETS).map(|name| facet(name, kinds, questions)).collect();
    let cut = told.iter().filter(|facet| facet.all > MOST_FACET_VALUES);
    let mut notes: Vec<String> = cut
        .map(|facet| {
            format!(
                "the facet {} has {} values: the {MOST_FACET_VALUES} with the most questions are told apart",
                facet.name, facet.all
            )
        })
        .collect();
    if names.len() > MOST_FACETS {
        notes.push(format!("questions have {} facets: the first {MOST_FACETS} by name are told", names.len()));
    }
    (told, notes)
}

fn facet(name: &str, kinds: &[Kind], questions: &[u64]) -> Facet {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, n) in kinds.iter().zip(questions) {
        if let Some(value) = kind.facets.get(name) {
            *counts.entry(value).or_default() += n;
        }
    }
    let mut values: Vec<(&str, u64)> = counts.into_iter().collect();
    let all = values.len();
    // stable: equal ones stay in the order of their names
    values.sort_by_key(|(_, n)| Reverse(*n));
    values.truncate(MOST_FACET_VALUES);
    let mut values: Vec<String> = values.into_iter().map(|(value, _)| value.to_owned()).collect();
    values.sort_unstable();
    if all > MOST_FACET_VALUES && !values.iter().any(|value| value == OTHER_FACET_VALUES) {
        values.push(OTHER_FACET_VALUES.to_owned());
    }
    let place = |value: &String| values.iter().position(|known| known == value);
    let number = |kind: &Kind| {
        let value = kind.facets.get(name)?;
        place(value).or_else(|| place(&OTHER_FACET_VALUES.to_owned())).map(|place| place as u32)
    };
    let of_kind = kinds.iter().map(number).collect();
    Facet { name: name.to_owned(), values, of_kind, all }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(category: &str, facets: &[(&str, String)]) -> Kind {
        let facets = facets.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Kind { category: category.to_owned(), facets }
    }

    #[test]
    fn the_values_with_the_most_questions_are_told_apart() {
        let kinds: Vec<Kind> = (0..100).map(|i| kind("a", &[("person", format!("p{i:02}"))])).collect();
        let questions: Vec<u64> = (0..100).map(|i| if i == 99 { 5 } else { 1 }).collect();
        let (told, notes) = facets(&kinds, &questions);
        assert_eq!(notes, ["the facet person has 100 values: the 64 with the most questions are told apart"]);
        let [person] = &told[..] else { panic!("{told:?}") };
        assert_eq!((person.values.len(), person.values[64].as_str()), (65, OTHER_FACET_VALUES));
        assert!(person.values.contains(&"p99".to_owned()) && !person.values.contains(&"p63".to_owned()));
        assert_eq!([person.value_of(0), person.value_of(63), person.value_of(99)], [Some(0), Some(64), Some(63)]);
        assert_eq!(person.value_of(100), None);
    }

    #[test]
    fn a_question_without_a_facet_has_none_of_its_values() {
        let kinds = [kind("a", &[]), kind("a", &[("abstention", "yes".to_owned())])];
        let (told, notes) = facets(&kinds, &[3, 1]);
        assert_eq!([told[0].value_of(0), told[0].value_of(1)], [None, Some(0)]);
        assert!(notes.is_empty());
        let many: Vec<(String, String)> = (0..20).map(|i| (format!("f{i:02}"), "x".to_owned())).collect();
        let many: Vec<(&str, String)> = many.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let (told, notes) = facets(&[kind("a", &many)], &[1]);
        assert_eq!(
            (told.len(), &notes[..]),
            (16, &["questions have 20 facets: the first 16 by name are told".to_owned()][..])
        );
    }

    proptest! {
        #[test]
        fn the_order_of_the_kinds_cannot_show(values in prop::collection::vec((0_u32..90, 1_u64..4), 1..120)) {
            let all = |values: &[(u32, u64)]| {
                let kinds: Vec<Kind> = values.iter().map(|(value, _)| kind("a", &[("v", value.to_string())])).collect();
                let counts: Vec<u64> = values.iter().map(|(_, n)| *n).collect();
                let (told, notes) = facets(&kinds, &counts);
                let of_value: BTreeMap<u32, String> = values
                    .iter()
                    .zip(0..)
                    .filter_map(|((value, _), kind)| Some((*value, told[0].values[told[0].value_of(kind)? as usize].clone())))
                    .collect();
                (told[0].values.clone(), of_value, notes)
            };
            let turned: Vec<(u32, u64)> = values.iter().rev().copied().collect();
            prop_assert_eq!(all(&values), all(&turned));
        }
    }
}
