//! LoCoMo's token F1, as officially published and as the Astrocyte harness computes it.
//!
//! F1 over multisets of normalised, stemmed tokens. Multi-hop answers are compared part by part (split at commas), of an
//! open-domain gold only what stands before the first `;` counts, adversarial questions and golds that are
//! [`Gold::Abstain`] are scored by abstention phrases. Other categories are scored plainly.
//!
//! One prediction may be compared with many golds: it is tokenised and stemmed once per form (whole, in parts), tokens
//! are numbers from then on, and its parts are found by an index from token to parts.

use std::collections::HashMap;

use bench_proto::dataset::Gold;

use super::{
    ScoreCase, Scorer, abstention,
    category::{Category, used_part},
    normalize, porter_nltk, porter2,
    stem::{StemBuffer, StemFn},
    text::{contains_any, trim},
};

/// A variant of the token F1.
pub struct LocomoF1 {
    name: &'static str,
    description: &'static str,
    version: u32,
    stem: StemFn,
    /// Ignore empty parts of a multi-hop answer or gold. Officially an empty gold part scores 0.
    drop_empty_parts: bool,
    sum: fn(&[f64]) -> f64,
    abstention_phrases: &'static [&'static str],
}

/// As published: NLTK's stemmer, two abstention phrases.
pub static OFFICIAL: LocomoF1 = LocomoF1 {
    name: "locomo-f1",
    description: "official LoCoMo token F1: NLTK Porter stems, multi-hop by parts, adversarial by two phrases",
    version: 1,
    stem: porter_nltk::stem,
    drop_empty_parts: false,
    sum: pairwise_sum,
    abstention_phrases: abstention::LOCOMO_OFFICIAL,
};

/// As Astrocyte computes it: Porter2, 26 abstention phrases, empty parts ignored.
pub static ASTROCYTE: LocomoF1 = LocomoF1 {
    name: "locomo-f1-astrocyte",
    description: "token F1 of the Astrocyte harness: Porter2 stems, empty parts ignored, adversarial by 26 phrases",
    version: 1,
    stem: porter2::stem,
    drop_empty_parts: true,
    sum: |values| values.iter().sum(),
    abstention_phrases: abstention::ASTROCYTE,
};

impl Scorer for LocomoF1 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        Prepared::new(self, case.prediction).score(case.gold, case.category)
    }

    fn used_gold<'a>(&self, gold: &'a str, category: &str) -> &'a str {
        used_part(gold, category)
    }

    fn score_many(&self, prediction: &str, cases: &[(Option<&Gold>, &str)]) -> Vec<Option<f64>> {
        let mut prepared = Prepared::new(self, prediction);
        cases.iter().map(|(gold, category)| prepared.score(*gold, category)).collect()
    }
}

/// A prediction; each form is made when the first gold asks for it.
struct Prepared<'a> {
    rules: &'a LocomoF1,
    prediction: &'a str,
    tokens: Tokens,
    whole: Option<Bag>,
    parts: Option<Parts>,
    abstains: Option<f64>,
}

impl<'a> Prepared<'a> {
    fn new(rules: &'a LocomoF1, prediction: &'a str) -> Self {
        Self { rules, prediction, tokens: Tokens::new(rules.stem), whole: None, parts: None, abstains: None }
    }

    fn score(&mut self, gold: Option<&Gold>, category: &str) -> Option<f64> {
        let known = Category::from_name(category);
        if known == Some(Category::Adversarial) || gold == Some(&Gold::Abstain) {
            return Some(self.abstention());
        }
        let number;
        let gold = match gold? {
            Gold::Text(text) | Gold::Choice(text) => text.as_str(),
            Gold::Number(value) => {
                number = value.to_string();
                &number
            }
            Gold::Rubric(_) | Gold::Retrieval { .. } | Gold::Abstain => return None,
        };
        Some(match known {
            Some(Category::MultiHop) => self.by_parts(gold),
            _ => self.whole(used_part(gold, category)),
        })
    }

    fn abstention(&mut self) -> f64 {
        let (prediction, phrases) = (self.prediction, self.rules.abstention_phrases);
        *self.abstains.get_or_insert_with(|| f64::from(u8::from(contains_any(prediction, phrases))))
    }

    fn whole(&mut self, gold: &str) -> f64 {
        let tokens = &mut self.tokens;
        let bag = self.whole.get_or_insert_with(|| Bag::new(&tokens.ids_of(self.prediction)));
        let gold = tokens.ids_of(gold);
        f1(bag.common_with(&gold), bag.size, gold.len())
    }

    fn by_parts(&mut self, gold: &str) -> f64 {
        let drop_empty = self.rules.drop_empty_parts;
        let tokens = &mut self.tokens;
        let parts = self.parts.get_or_insert_with(|| Parts::new(self.prediction, drop_empty, tokens));
        let scores: Vec<f64> = split_parts(gold, drop_empty).map(|part| parts.best(&tokens.ids_of(part))).collect();
        if scores.is_empty() { 0.0 } else { (self.rules.sum)(&scores) / scores.len() as f64 }
    }
}

/// The parts of a multi-hop text.
fn split_parts(text: &str, drop_empty: bool) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |part| !drop_empty || !trim(part).is_empty())
}

/// F1 from the number of common tokens and both lengths, operation by operation as published.
fn f1(common: usize, predicted: usize, gold: usize) -> f64 {
    if common == 0 {
        return 0.0;
    }
    let precision = common as f64 / predicted as f64;
    let recall = common as f64 / gold as f64;
    (2.0 * precision * recall) / (precision + recall)
}

/// numpy's summation order, which decides the last bit of a mean of eight parts or more: eight running sums up to 128
/// values, halves (cut at a multiple of eight) above.
fn pairwise_sum(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 8 {
        return values.iter().sum();
    }
    if n > 128 {
        let half = n / 2 / 8 * 8;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let mut sums = [0.0; 8];
    let blocks = values.chunks_exact(8);
    let rest = blocks.remainder();
    for block in blocks {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value)
}

/// Numbers for stems; every distinct token is stemmed once.
struct Tokens {
    stem: StemFn,
    of_token: HashMap<Box<str>, u32>,
    of_stem: HashMap<Box<str>, u32>,
    buffer: StemBuffer,
    scratch: String,
}

impl Tokens {
    fn new(stem: StemFn) -> Self {
        Self {
            stem,
            of_token: HashMap::new(),
            of_stem: HashMap::new(),
            buffer: StemBuffer::default(),
            scratch: String::new(),
        }
    }

    /// The stems of a text, ascending, repeats kept.
    fn ids_of(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let Self { stem, of_token, of_stem, buffer, scratch } = self;
        normalize::for_each_token(text, scratch, |token| {
            let id = of_token.get(token).copied().unwrap_or_else(|| {
                let stem = stem(token, buffer);
                let id = of_stem.get(stem).copied().unwrap_or_else(|| {
                    let id = of_stem.len() as u32;
                    of_stem.insert(stem.into(), id);
                    id
                });
                of_token.insert(token.into(), id);
                id
            });
            ids.push(id);
        });
        ids.sort_unstable();
        ids
    }
}

/// How often each stem occurs, for ascending ids.
fn counts(ids: &[u32]) -> impl Iterator<Item = (usize, u32)> {
    ids.chunk_by(|a, b| a == b).map(|run| (run[0] as usize, run.len() as u32))
}

/// A multiset of stems.
struct Bag {
    size: usize,
    /// Occurrences by stem number; numbers given later are not in it.
    counts: Vec<u32>,
}

impl Bag {
    fn new(ids: &[u32]) -> Self {
        let mut bag = Self { size: ids.len(), counts: vec![0; ids.last().map_or(0, |&id| id as usize + 1)] };
        for (id, count) in counts(ids) {
            bag.counts[id] = count;
        }
        bag
    }

    /// Size of the intersection with a multiset given as ascending ids.
    fn common_with(&self, ids: &[u32]) -> usize {
        counts(ids).map(|(id, count)| self.counts.get(id).map_or(0, |&own| own.min(count)) as usize).sum()
    }
}

/// The comma-separated parts of a prediction, indexed by stem.
struct Parts {
    /// Tokens of each part.
    sizes: Vec<u32>,
    /// By stem number: (part, occurrences in it).
    postings: Vec<Vec<(u32, u32)>>,
    /// Scratch of [`Parts::best`]: common tokens by part, all zero between calls, and the parts touched.
    common: Vec<u32>,
    touched: Vec<u32>,
}

impl Parts {
    fn new(prediction: &str, drop_empty: bool, tokens: &mut Tokens) -> Self {
        let mut parts = Self { sizes: Vec::new(), postings: Vec::new(), common: Vec::new(), touched: Vec::new() };
        for text in split_parts(prediction, drop_empty) {
            let ids = tokens.ids_of(text);
            let part = parts.sizes.len() as u32;
            parts.sizes.push(ids.len() as u32);
            if let Some(&last) = ids.last()
                && parts.postings.len() <= last as usize
            {
                parts.postings.resize_with(last as usize + 1, Vec::new);
            }
            for (id, count) in counts(&ids) {
                parts.postings[id].push((part, count));
            }
        }
        parts.common = vec![0; parts.sizes.len()];
        parts
    }

    /// The best F1 of any part against a gold part given as ascending ids.
    fn best(&mut self, gold: &[u32]) -> f64 {
        for (id, count) in counts(gold) {
            for &(part, own) in self.postings.get(id).map_or(&[][..], Vec::as_slice) {
                let common = &mut self.common[part as usize];
                if *common == 0 {
                    self.touched.push(part);
                }
                *common += own.min(count);
            }
        }
        let mut best = 0.0_f64;
        for part in self.touched.drain(..) {
            let common = std::mem::take(&mut self.common[part as usize]);
            best = best.max(f1(common as usize, self.sizes[part as usize] as usize, gold.len()));
        }
        best
    }
}

#[cfg(test)]
mod tests;
