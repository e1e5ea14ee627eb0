//! `--sample-total`, and the presets of a profile that gives `fair` a number: exactly so many questions of the whole dataset,
//! spread over its strata. Only the first rule knows other strata than the categories.
//!
//! | sampler | how many of each stratum | which of them |
//! |---|---|---|
//! | `hash`, `astrocyte` | as many as its share gives, so that a smaller total is part of a larger one | the first in the sampler's order |
//! | `go-lcg` | share rounded down, the rest by largest remainder, equal ones by name | those that a shuffle puts first |
//! | `astrocyte-lme` | share rounded down, one more for the largest | the first in the file |
//!
//! The last two are those of other harnesses, question by question, so that published samples can be run again.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    candidates::{Candidate, First},
    names::Categories,
    order::OrderKey,
    strata::Strata,
};
use crate::request::Sampler;

/// Which questions make up the total.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Nested,
    /// Seed of the shuffle, the same for each category.
    GoLcg(u64),
    AstrocyteLme,
}

/// Questions of the whole dataset, until all of it was seen.
#[derive(Debug)]
pub(super) struct Total {
    total: usize,
    rule: Rule,
    /// By number of the stratum.
    groups: Vec<Group>,
}

/// The questions of a stratum, or of what a rule takes for one.
#[derive(Debug)]
struct Group {
    size: usize,
    candidates: First,
}

impl Total {
    /// `seed` is that of `go-lcg`.
    pub(super) fn new(total: u64, sampler: Sampler, seed: u64) -> Self {
        let rule = match sampler {
            Sampler::Hash | Sampler::Astrocyte => Rule::Nested,
            Sampler::GoLcg => Rule::GoLcg(seed),
            Sampler::AstrocyteLme => Rule::AstrocyteLme,
        };
        Self { total: usize::try_from(total).unwrap_or(usize::MAX), rule, groups: Vec::new() }
    }

    /// Whether a smaller total is part of a larger one.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self.rule, Rule::Nested)
    }

    /// Takes note of a question; no more ids are kept than can be chosen.
    pub(super) fn offer(&mut self, place: OrderKey, category: u32, id: &str) {
        let capacity = if matches!(self.rule, Rule::GoLcg(_)) { usize::MAX } else { self.total };
        while self.groups.len() <= place.stratum as usize {
            self.groups.push(Group { size: 0, candidates: First::new(capacity) });
        }
        let group = &mut self.groups[place.stratum as usize];
        group.size += 1;
        group.candidates.offer(place, category, id);
    }

    /// The chosen questions: stratum after stratum by name, each in the rule's order.
    pub(super) fn choose(self, categories: &Categories, strata: &Strata) -> Vec<Candidate> {
        let Self { total, rule, groups } = self;
        // by name, as every tie is broken
        let mut named: BTreeMap<_, (usize, Vec<Candidate>)> = BTreeMap::new();
        for (stratum, group) in (0_u32..).zip(groups) {
            let (name, values) = strata.key(stratum, categories);
            let name = if matches!(rule, Rule::AstrocyteLme) { lme_group(name) } else { name };
            let (size, candidates) = named.entry((name, values)).or_default();
            *size += group.size;
            candidates.extend(group.candidates.into_sorted());
            candidates.sort_unstable();
        }
        let sizes: Vec<usize> = named.values().map(|(size, _)| *size).collect();
        let counts = counts(rule, &sizes, total);
        let chosen = named.into_values().zip(counts).flat_map(|((_, mut candidates), count)| {
            if let Rule::GoLcg(seed) = rule {
                shuffle(&mut candidates, count, seed);
            }
            candidates.truncate(count);
            candidates
        });
        chosen.collect()
    }
}

/// What the harness takes for one category: its `extraction` is all of single sessions.
fn lme_group(name: &str) -> &str {
    match name {
        "single-session-user" | "single-session-assistant" | "single-session-preference" => "extraction",
        "multi-session" => "reasoning",
        "temporal-reasoning" => "temporal",
        "knowledge-update" => "update",
        other => other,
    }
}

/// How many each group gives; `sizes` are in the order of the groups' names.
fn counts(rule: Rule, sizes: &[usize], total: usize) -> Vec<usize> {
    let all: usize = sizes.iter().sum();
    if total >= all {
        return sizes.to_vec();
    }
    if matches!(rule, Rule::Nested) {
        return nested(sizes, total);
    }
    let product = |group: usize| sizes[group] as u128 * total as u128;
    let mut counts: Vec<usize> = (0..sizes.len()).map(|group| (product(group) / all as u128) as usize).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    // stable: equal ones stay in the order of their names
    match rule {
        Rule::AstrocyteLme => order.sort_by_key(|&group| Reverse(sizes[group])),
        Rule::Nested | Rule::GoLcg(_) => order.sort_by_key(|&group| Reverse(product(group) % all as u128)),
    }
    let left = total - counts.iter().sum::<usize>();
    order.into_iter().take(left).for_each(|group| counts[group] += 1);
    counts
}

/// The questions of a group lie evenly between 0 and 1, the j-th of m at (j + ½) / m; the first `total` of all groups are taken.
/// What is taken for a smaller total is taken for a larger one too.
fn nested(sizes: &[usize], total: usize) -> Vec<usize> {
    let mut counts = vec![0; sizes.len()];
    for _ in 0..total {
        let at = |group: usize| (2 * counts[group] as u128 + 1, sizes[group] as u128);
        let open = (0..sizes.len()).filter(|&group| counts[group] < sizes[group]);
        let next = open.reduce(|best, group| {
            let ((a, of_a), (b, of_b)) = (at(best), at(group));
            if b * of_a < a * of_b { group } else { best }
        });
        match next {
            Some(group) => counts[group] += 1,
            None => break,
        }
    }
    counts
}

/// Fisher and Yates' shuffle from the end with Knuth's linear congruential generator; nothing moves where all are taken.
fn shuffle<T>(items: &mut [T], count: usize, seed: u64) {
    if count >= items.len() {
        return;
    }
    let mut state = seed;
    for at in (1..items.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, ((state >> 33) % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_shuffle_is_the_published_one() {
        for (length, count, seed, chosen) in [
            (10, 3, 42, vec![3, 8, 0]),
            (10, 5, 0, vec![4, 8, 6, 0, 9]),
            (7, 2, 123_456_789, vec![4, 1]),
            (133, 5, 42, vec![114, 71, 129, 118, 117]),
            (10, 10, 42, (0..10).collect()),
        ] {
            let mut items: Vec<usize> = (0..length).collect();
            shuffle(&mut items, count, seed);
            assert_eq!(items[..count], chosen);
        }
    }

    #[test]
    fn shares_are_those_of_the_harnesses() {
        // LongMemEval by type: update, multi-session, assistant, preference, user, temporal
        let types = [78, 133, 56, 30, 70, 133];
        assert_eq!(counts(Rule::GoLcg(0), &types, 10), [1, 3, 1, 1, 1, 3]);
        assert_eq!(counts(Rule::GoLcg(0), &types, 50), [8, 13, 6, 3, 7, 13]);
        // extraction, reasoning, temporal, update
        let groups = [156, 133, 133, 78];
        assert_eq!(counts(Rule::AstrocyteLme, &groups, 50), [16, 14, 13, 7]);
        assert_eq!(counts(Rule::AstrocyteLme, &groups, 300), [94, 80, 80, 46]);
    }

    proptest! {
        #[test]
        fn nested_totals_are_exact_nested_and_near_the_share(
            sizes in prop::collection::vec(1_usize..60, 1..8), total in 0_usize..300,
        ) {
            let all: usize = sizes.iter().sum();
            let (less, more) = (counts(Rule::Nested, &sizes, total), counts(Rule::Nested, &sizes, total + 1));
            prop_assert_eq!(less.iter().sum::<usize>(), total.min(all));
            prop_assert!(less.iter().zip(&more).all(|(a, b)| a <= b));
            for (size, count) in sizes.iter().zip(&less) {
                let share = *size as f64 * total.min(all) as f64 / all as f64;
                prop_assert!((*count as f64 - share).abs() <= 1.0 + sizes.len() as f64 / 2.0, "{count} for {share}");
            }
        }
    }
}
