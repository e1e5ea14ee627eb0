//! How many turns each block has, how many of them tell facts, and how many questions of each category are asked.
//!
//! Our edition grows without end: a block tells facts in most of its turns, whatever its size. The compatible edition has
//! the blocks, facts and questions of the generator behind published results, measured turn by turn: it runs out of facts
//! at 1,000 turns, which is why ours is another.

use super::Edition;

/// Names of the blocks, in order.
pub(super) const BLOCKS: [&str; 12] = [
    "people",
    "projects",
    "technical",
    "evolving_story",
    "numerical",
    "contradictory",
    "callbacks",
    "distractors",
    "security_logs",
    "incidents",
    "infrastructure",
    "problem_solving",
];

/// Where each block ends, in percent of the turns.
const ENDS: [usize; 12] = [5, 15, 25, 40, 50, 58, 64, 70, 80, 88, 95, 100];

/// Statements that each block of the compatible edition has, however many turns it gets; people fill no further turns.
const STATEMENTS: [usize; 12] = [10, 20, 89, 20, 30, 24, 10, 0, 50, 24, 30, 12];

/// A block of a dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Index in [`BLOCKS`].
    pub(super) index: usize,
    /// Its first turn, from 0.
    pub(super) start: usize,
    /// Number of its turns.
    pub(super) turns: usize,
    /// How many of them make statements.
    pub(super) told: usize,
}

/// The blocks of a dialogue of so many turns.
pub(super) fn blocks(edition: Edition, turns: usize) -> [Block; 12] {
    let mut start = 0;
    std::array::from_fn(|index| {
        let end = (ENDS[index] * turns / 100).max(start + 1).min(turns);
        let mut count = end.saturating_sub(start);
        if edition == Edition::Compatible && index == 0 {
            count = count.min(STATEMENTS[0]);
        }
        let told = match (edition, index) {
            (Edition::Compatible, _) => count.min(STATEMENTS[index]),
            (Edition::Own, 7) => 0,
            (Edition::Own, 0) => count,
            // one turn in five says nothing
            (Edition::Own, _) => (count * 4).div_ceil(5),
        };
        let block = Block { index, start, turns: count, told };
        start += count;
        block
    })
}

/// Categories of questions, in order, with their shares: of the twelve, of the fifteen, and of ours.
pub(super) const CATEGORIES: [(&str, [usize; 3]); 16] = [
    ("needle_in_haystack", [20, 8, 8]),
    ("temporal_evolution", [15, 10, 10]),
    ("numerical_precision", [15, 6, 6]),
    ("source_attribution", [10, 5, 5]),
    ("cross_reference", [10, 5, 5]),
    ("distractor_resistance", [10, 3, 5]),
    ("meta_memory", [5, 5, 5]),
    ("security_log_analysis", [8, 5, 5]),
    ("incident_tracking", [6, 4, 5]),
    ("infrastructure_knowledge", [6, 4, 5]),
    ("problem_solving", [4, 4, 5]),
    ("multi_hop_reasoning", [6, 12, 10]),
    ("adversarial_distractor", [0, 12, 9]),
    ("temporal_trap", [0, 10, 7]),
    ("numerical_reasoning", [0, 12, 5]),
    ("forgotten", [0, 0, 5]),
];

/// Questions that the compatible edition has of each category, without and with those that fill up a list that is too short.
fn stock(turns: usize, categories: usize) -> [(usize, usize); 16] {
    let needles = if turns < 1000 { 16 } else { 17 };
    let (figures, more_figures) = if turns < 300 { (3, 3) } else { (13, 4) };
    let distractors = match turns {
        0..300 => 3,
        300..1000 => 7,
        _ => 8,
    };
    let hops = if categories == 12 { 3 } else { 15 };
    let last = |count| if categories == 12 { 0 } else { count };
    [
        (needles, 7),
        (15, 4),
        (figures, more_figures),
        (10, 0),
        (10, 0),
        (distractors, 0),
        (5, 0),
        (7, 0),
        (6, 0),
        (4, 0),
        (4, 0),
        (hops, 0),
        (last(15), 0),
        (last(15), 0),
        (last(17), 0),
        (0, 0),
    ]
}

/// How many questions of each category the compatible edition asks. By rounding, some categories have more and the last
/// ones fewer than their share, and beyond 176 there are none.
pub(super) fn compatible_counts(turns: usize, wanted: usize, categories: usize) -> [usize; 16] {
    let column = usize::from(categories != 12);
    let stock = stock(turns, categories);
    let mut left = wanted;
    let mut counts: [usize; 16] = std::array::from_fn(|index| {
        let share = CATEGORIES[index].1[column];
        let count = if share == 0 { 0 } else { (share * wanted / 100).max(1) };
        let count = count.min(stock[index].0).min(left);
        left -= count;
        count
    });
    for (count, (_, more)) in counts.iter_mut().zip(stock) {
        let more = more.min(left);
        *count += more;
        left -= more;
    }
    counts
}

/// How many questions of each category ours asks, of which it has `stock`: by the shares, at least one where there is one,
/// what one category lacks going to those that have more.
pub(super) fn own_counts(stock: [usize; 16], wanted: usize) -> [usize; 16] {
    let mut counts = [0; 16];
    let total: usize = stock.iter().sum();
    for _ in 0..wanted.min(total) {
        // the category that is furthest behind its share
        let behind = (0..16).filter(|index| counts[*index] < stock[*index]);
        let next = behind.min_by(|a, b| {
            let filled = |index: usize| (counts[index] * 2 + 1, CATEGORIES[index].1[2]);
            let ((a, share_a), (b, share_b)) = (filled(*a), filled(*b));
            (a * share_b).cmp(&(b * share_a))
        });
        if let Some(next) = next {
            counts[next] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_document() {
        for turns in [100, 1000, 5000, 100_000] {
            let blocks = blocks(Edition::Own, turns);
            let percent = blocks.map(|block| block.turns * 100 / turns);
            assert_eq!(percent, [5, 10, 10, 15, 10, 8, 6, 6, 10, 8, 7, 5]);
            assert_eq!(blocks[11].start + blocks[11].turns, turns);
        }
        for turns in 20..200 {
            for edition in [Edition::Own, Edition::Compatible] {
                let blocks = blocks(edition, turns);
                assert!(blocks.iter().all(|block| block.turns > 0 && block.told <= block.turns), "{turns}: {blocks:?}");
                assert_eq!(blocks.iter().map(|block| block.turns).sum::<usize>(), turns);
            }
        }
    }

    #[test]
    fn ours_follow_their_shares_as_far_as_there_are_questions() {
        let shares = CATEGORIES.map(|(_, [_, _, share])| share);
        assert_eq!(shares.iter().sum::<usize>(), 100);
        assert_eq!(own_counts([1000; 16], 100), shares);
        assert!(own_counts([1000; 16], 16).iter().all(|count| *count > 0));
        let mut few = [1000; 16];
        few[11] = 2;
        let counts = own_counts(few, 100);
        assert_eq!((counts[11], counts.iter().sum::<usize>()), (2, 100));
        assert_eq!(own_counts([1; 16], 100), [1; 16]);
    }
}
