//! One prediction and one gold, both short, by a vocabulary that the thread keeps from pair to pair: what was once stemmed is
//! looked up, and nothing is allocated for a pair of known words.

use std::{cell::RefCell, cmp::Ordering, ops::Range};

use bench_proto::profile::{CategoryRules, GoldReading};

use super::{LocomoF1, Tokens, f1, split_parts};
use crate::scorers::category::used_part;

/// Longer texts are indexed, with a vocabulary of their own: their words would push out those of others.
pub(super) const MOST_BYTES: usize = 4_096;

/// A vocabulary begins anew when its words have so many bytes: some tens of thousands.
const MOST_OF_VOCABULARY: usize = 256 << 10;

/// The stems of a text by their numbers: part after part, in each ascending.
#[derive(Default)]
struct Numbered {
    ids: Vec<u32>,
    parts: Vec<Range<usize>>,
}

impl Numbered {
    fn read<'a>(&mut self, parts: impl Iterator<Item = &'a str>, tokens: &mut Tokens) {
        self.ids.clear();
        self.parts.clear();
        for part in parts {
            let begin = self.ids.len();
            tokens.push_ids(part, &mut self.ids);
            self.parts.push(begin..self.ids.len());
        }
    }

    fn parts(&self) -> impl Iterator<Item = &[u32]> {
        self.parts.iter().map(|part| &self.ids[part.clone()])
    }
}

/// What a thread keeps for a scorer.
struct Buffers {
    scorer: &'static str,
    tokens: Tokens,
    prediction: Numbered,
    gold: Numbered,
}

thread_local! {
    /// One for each scorer that was asked: there are two.
    static BUFFERS: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

/// The F1 of a prediction with a gold that is read by `rules`.
pub(super) fn f1_of(scorer: &LocomoF1, prediction: &str, gold: &str, rules: &CategoryRules) -> f64 {
    BUFFERS.with_borrow_mut(|all| {
        let at = all.iter().position(|buffers| buffers.scorer == scorer.name).unwrap_or_else(|| {
            let (prediction, gold) = (Numbered::default(), Numbered::default());
            all.push(Buffers { scorer: scorer.name, tokens: Tokens::new(scorer.stem), prediction, gold });
            all.len() - 1
        });
        let Buffers { tokens, prediction: predicted, gold: expected, .. } = &mut all[at];
        if tokens.bytes > MOST_OF_VOCABULARY {
            *tokens = Tokens::new(scorer.stem);
        }
        if rules.gold != GoldReading::ByParts {
            predicted.read(std::iter::once(prediction), tokens);
            expected.read(std::iter::once(used_part(gold, rules)), tokens);
            return f1_of_parts(&predicted.ids, &expected.ids);
        }
        predicted.read(split_parts(prediction, scorer.drop_empty_parts), tokens);
        expected.read(split_parts(gold, scorer.drop_empty_parts), tokens);
        let best = |part: &[u32]| predicted.parts().map(|own| f1_of_parts(own, part)).fold(0.0, f64::max);
        let scores: Vec<f64> = expected.parts().map(best).collect();
        if scores.is_empty() { 0.0 } else { (scorer.sum)(&scores) / scores.len() as f64 }
    })
}

/// The F1 of two multisets, each ascending.
fn f1_of_parts(predicted: &[u32], expected: &[u32]) -> f64 {
    let (mut common, mut own, mut other) = (0, predicted, expected);
    while let (Some((a, own_rest)), Some((b, other_rest))) = (own.split_first(), other.split_first()) {
        match a.cmp(b) {
            Ordering::Less => own = own_rest,
            Ordering::Greater => other = other_rest,
            Ordering::Equal => (common, own, other) = (common + 1, own_rest, other_rest),
        }
    }
    f1(common, predicted.len(), expected.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::{category, locomo_f1::OFFICIAL};

    #[test]
    fn a_vocabulary_begins_anew_when_it_is_full() {
        let rules = category::rules("temporal");
        for number in 0..60_000 {
            assert_eq!(f1_of(&OFFICIAL, &format!("word{number} runs"), "running", rules), 2.0 / 3.0);
        }
        let bytes = BUFFERS.with_borrow(|all| all.iter().map(|buffers| buffers.tokens.bytes).max());
        assert!(bytes.is_some_and(|bytes| bytes <= MOST_OF_VOCABULARY + MOST_BYTES), "{bytes:?}");
    }
}
