//! LoCoMo's token F1, as officially published and as the Astrocyte harness computes it.
//!
//! F1 over multisets of normalised, stemmed tokens. How golds are read is told by the profile's rules of the category: by
//! parts (split at commas; LoCoMo's multi-hop), up to the first `;` (open-domain), or whole. Unanswerable questions
//! (adversarial) and golds without an answer are scored by abstention phrases. Of several texts the best counts.
//!
//! One prediction may be compared with many golds: it is tokenised and stemmed once per form (whole, in parts), tokens
//! are numbers from then on, and its parts are found by an index from token to parts. A short prediction with one gold has
//! the vocabulary of its thread instead (`pair`).

mod pair;

use std::collections::HashMap;

use bench_proto::{
    dataset::Gold,
    profile::{CategoryRules, GoldReading},
};

use super::{
    Origin, ScoreCase, Scorer, abstention,
    category::used_part,
    normalize, porter_nltk, porter2,
    stem::{StemBuffer, StemFn},
    text::{contains_any, flag, trim},
};

/// A variant of the token F1.
pub struct LocomoF1 {
    name: &'static str,
    description: &'static str,
    source: &'static str,
    vectors: &'static [&'static str],
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
    source: "LoCoMo, task_eval/evaluation.py::eval_question_answering",
    vectors: &["locomo_f1", "locomo_token_f1", "locomo_normalize", "locomo_full_dataset_baselines"],
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
    source: "Astrocyte, eval/judges/locomo_judge.py",
    vectors: &["locomo_token_f1", "stem_divergence", "locomo_full_dataset_baselines"],
    version: 1,
    stem: porter2::stem,
    drop_empty_parts: true,
    sum: |values| values.iter().sum(),
    abstention_phrases: abstention::ASTROCYTE,
};

impl Scorer for LocomoF1 {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn origin(&self) -> Origin {
        Origin { source: self.source, vectors: self.vectors }
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let answer = case.answer?;
        if answer.len() + gold_bytes(case) > pair::MOST_BYTES {
            return Prepared::new(self, answer).score(case);
        }
        self.score_by(case, |phrases| contains_any(answer, phrases), |gold| pair::f1_of(self, answer, gold, case.rules))
    }

    fn used_gold<'a>(&self, gold: &'a str, rules: &CategoryRules) -> &'a str {
        used_part(gold, rules)
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let mut prepared = Prepared::new(self, answer);
        cases.iter().map(|case| prepared.score(case)).collect()
    }
}

impl LocomoF1 {
    /// The score of a case, by what tells whether the prediction has one of the phrases of abstention, and its F1 with a gold.
    fn score_by(
        &self,
        case: &ScoreCase<'_>,
        abstains: impl FnOnce(&[&str]) -> bool,
        mut f1: impl FnMut(&str) -> f64,
    ) -> Option<f64> {
        let gold = case.gold();
        if case.rules.unanswerable || gold.is_some_and(Gold::is_unanswerable) {
            return Some(flag(abstains(self.abstention_phrases)));
        }
        match gold? {
            Gold::Text(text) | Gold::Choice(text) => Some(f1(text)),
            Gold::Number(value) => Some(f1(&value.to_string())),
            Gold::AnyOf(texts) => texts.iter().map(|text| f1(text)).reduce(f64::max),
            Gold::Rubric(_)
            | Gold::Keywords(_)
            | Gold::Retrieval { .. }
            | Gold::Assertions(_)
            | Gold::Abstain
            | Gold::Unanswerable(_) => None,
        }
    }
}

/// Bytes of the texts that a prediction is compared with.
fn gold_bytes(case: &ScoreCase<'_>) -> usize {
    match case.gold() {
        Some(Gold::Text(text) | Gold::Choice(text)) => text.len(),
        Some(Gold::AnyOf(texts)) => texts.iter().map(String::len).sum(),
        _ => 0,
    }
}

/// A prediction; each form is made when the first gold asks for it.
struct Prepared<'a> {
    rules: &'a LocomoF1,
    prediction: &'a str,
    tokens: Tokens,
    whole: Option<Bag>,
    parts: Option<Parts>,
    /// Whether it has a phrase of abstention, once somebody asked.
    abstains: Option<bool>,
}

impl<'a> Prepared<'a> {
    fn new(rules: &'a LocomoF1, prediction: &'a str) -> Self {
        Self { rules, prediction, tokens: Tokens::new(rules.stem), whole: None, parts: None, abstains: None }
    }

    fn score(&mut self, case: &ScoreCase<'_>) -> Option<f64> {
        let (rules, prediction, known) = (self.rules, self.prediction, self.abstains);
        let abstains = |phrases: &[&str]| known.unwrap_or_else(|| contains_any(prediction, phrases));
        let is_asked = case.rules.unanswerable || case.gold().is_some_and(Gold::is_unanswerable);
        let score = rules.score_by(case, abstains, |gold| self.text(gold, case.rules));
        if is_asked {
            self.abstains = score.map(|score| score > 0.0);
        }
        score
    }

    fn text(&mut self, gold: &str, rules: &CategoryRules) -> f64 {
        match rules.gold {
            GoldReading::ByParts => self.by_parts(gold),
            GoldReading::Whole | GoldReading::FirstPart => self.whole(used_part(gold, rules)),
        }
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
    /// Of the distinct tokens.
    bytes: usize,
}

impl Tokens {
    fn new(stem: StemFn) -> Self {
        Self {
            stem,
            of_token: HashMap::new(),
            of_stem: HashMap::new(),
            buffer: StemBuffer::default(),
            scratch: String::new(),
            bytes: 0,
        }
    }

    /// The stems of a text, ascending, repeats kept.
    fn ids_of(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.push_ids(text, &mut ids);
        ids
    }

    /// Adds the stems of a text to others, ascending among themselves.
    fn push_ids(&mut self, text: &str, ids: &mut Vec<u32>) {
        let begin = ids.len();
        let Self { stem, of_token, of_stem, buffer, scratch, bytes } = self;
        normalize::for_each_token(text, scratch, |token| {
            let id = of_token.get(token).copied().unwrap_or_else(|| {
                let stem = stem(token, buffer);
                let id = of_stem.get(stem).copied().unwrap_or_else(|| {
                    let id = of_stem.len() as u32;
                    of_stem.insert(stem.into(), id);
                    id
                });
                of_token.insert(token.into(), id);
                *bytes += token.len();
                id
            });
            ids.push(id);
        });
        ids[begin..].sort_unstable();
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
