//! How large a conversation is and which categories its questions have: LoCoMo's own figures, in cycles of ten.

use std::sync::LazyLock;

use super::rng::Rng;
use crate::locomo::schema::Category;

/// Size of one conversation.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) sessions: usize,
    pub(super) turns: usize,
    /// Questions of each category, in the order of [`Category::ALL`].
    pub(super) counts: [usize; 5],
    /// Category of every question, in the order in which they are listed: adversarial ones last, the others mixed.
    pub(super) layout: Vec<Category>,
}

impl Shape {
    /// Questions of a category.
    pub(super) fn count(&self, category: Category) -> usize {
        self.counts[category as usize - 1]
    }
}

/// Sessions, turns, questions per category (multi-hop, temporal, open-domain, single-hop, adversarial).
const SIZES: [(usize, usize, [usize; 5]); 10] = [
    (19, 419, [32, 37, 13, 70, 47]),
    (19, 369, [11, 26, 0, 44, 24]),
    (32, 663, [31, 27, 8, 86, 41]),
    (29, 629, [37, 40, 11, 111, 61]),
    (29, 680, [31, 26, 14, 107, 64]),
    (28, 675, [30, 24, 7, 62, 35]),
    (31, 689, [20, 34, 13, 83, 40]),
    (30, 681, [21, 42, 10, 118, 48]),
    (25, 509, [37, 33, 13, 73, 40]),
    (30, 568, [32, 32, 7, 87, 46]),
];

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |(index, (sessions, turns, counts)): (usize, (usize, usize, [usize; 5]))| {
        let of = |category: Category| vec![category; counts[category as usize - 1]];
        let (mut layout, last): (Vec<_>, Vec<_>) =
            Category::ALL.into_iter().flat_map(of).partition(|category| *category != Category::Adversarial);
        Rng::new(&["locomo-sim layout", &index.to_string()]).shuffle(&mut layout);
        layout.extend(last);
        Shape { sessions, turns, counts, layout }
    };
    SIZES.into_iter().enumerate().map(shape).collect()
});

/// The shape of a bank.
pub(super) fn of_bank(bank: usize) -> &'static Shape {
    &SHAPES[bank % SIZES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_locomo() {
        let sum = |figure: fn(&Shape) -> usize| (0..10).map(|bank| figure(of_bank(bank))).sum::<usize>();
        assert_eq!((sum(|shape| shape.sessions), sum(|shape| shape.turns)), (272, 5_882));
        assert_eq!(sum(|shape| shape.layout.len()), 1_986);
        for (category, expected) in Category::ALL.into_iter().zip([282, 321, 96, 841, 446]) {
            assert_eq!(
                (0..10).map(|bank| of_bank(bank).count(category)).sum::<usize>(),
                expected,
                "{}",
                category.name()
            );
            // what the sample `fair` needs to come out at 20 a conversation
            assert!((0..10).all(|bank| of_bank(bank).count(category) == 0 || of_bank(bank).count(category) >= 5));
        }
    }

    /// The sample `fair` takes at least 20 of a conversation, spread over its categories, so 200 in all.
    #[test]
    fn the_fair_sample_comes_out_at_200() {
        let mut sample = [0; 5];
        for shape in (0..10).map(of_bank) {
            let occurring = shape.counts.iter().filter(|count| **count > 0).count();
            for (sum, count) in sample.iter_mut().zip(shape.counts) {
                *sum += count.min(20_usize.div_ceil(occurring).max(1));
            }
        }
        assert_eq!((sample.iter().sum::<usize>(), sample), (200, [41, 41, 36, 41, 41]));
    }
}
