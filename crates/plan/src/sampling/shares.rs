//! The preset `fair-2`: of every (bank, category) cell its share, and one question at least.
//!
//! With T = so many per bank times the banks, of N questions, a cell of size s gives max(1, ⌊T · s / N⌋); what is then missing
//! of T goes to the cells that were rounded down most, equal ones in file order, then by category name. A dataset of many tiny
//! cells gives more than T.

use std::cmp::Reverse;

use super::{candidates::Candidate, order::OrderKey};

#[derive(Debug)]
pub(super) struct Shares {
    per_bank: u64,
    /// The questions of each cell in order; cells in file order, then by category name.
    cells: Vec<Vec<Candidate>>,
}

impl Shares {
    /// A number of questions of each bank on average.
    pub(super) const fn new(per_bank: u64) -> Self {
        Self { per_bank, cells: Vec::new() }
    }

    /// Takes note of a cell, whose questions are in order.
    pub(super) fn offer<'a>(&mut self, category: u32, cell: &[OrderKey], id: impl Fn(u32) -> &'a str) {
        let candidates = cell.iter().map(|&place| Candidate { place, category, id: id(place.index).into() });
        self.cells.push(candidates.collect());
    }

    /// The chosen questions, in no particular order.
    pub(super) fn choose(self) -> Vec<Candidate> {
        let sizes: Vec<u64> = self.cells.iter().map(|cell| cell.len() as u64).collect();
        let mut banks: Vec<u32> =
            self.cells.iter().filter_map(|cell| cell.first()).map(|first| first.place.file_index).collect();
        banks.dedup();
        let quotas = quotas(&sizes, self.per_bank.saturating_mul(banks.len() as u64));
        let of_cell = |(cell, quota): (Vec<Candidate>, u64)| cell.into_iter().take(quota as usize);
        self.cells.into_iter().zip(quotas).flat_map(of_cell).collect()
    }
}

/// How many each cell gives.
fn quotas(sizes: &[u64], total: u64) -> Vec<u64> {
    let all: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    let total = u128::from(total).min(all);
    // whole questions, and what is left of the share in parts of `all`
    let share = |size: &u64| (total * u128::from(*size) / all.max(1), total * u128::from(*size) % all.max(1));
    let mut quotas: Vec<u64> = sizes.iter().map(|size| (share(size).0 as u64).max(1)).collect();
    let missing = (total as u64).saturating_sub(quotas.iter().sum());
    let mut order: Vec<usize> = (0..sizes.len()).filter(|cell| quotas[*cell] < sizes[*cell]).collect();
    // a cell that was given its one question has more than its share already
    order.retain(|cell| share(&sizes[*cell]).0 > 0);
    order.sort_by_key(|cell| Reverse(share(&sizes[*cell]).1));
    order.into_iter().take(missing as usize).for_each(|cell| quotas[cell] += 1);
    quotas
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_rounded_by_largest_remainder_and_none_is_empty() {
        assert_eq!(quotas(&[50, 30, 20], 10), [5, 3, 2]);
        assert_eq!(quotas(&[55, 25, 20], 10), [6, 2, 2], "equal remainders in order");
        assert_eq!(quotas(&[97, 1, 2], 10), [9, 1, 1], "one of each, though there are more then");
        assert_eq!(quotas(&[3, 2], 100), [3, 2], "no more than there are");
        assert_eq!(quotas(&[], 10), [0_u64; 0]);
    }

    proptest! {
        #[test]
        fn a_quota_is_within_one_of_its_share(sizes in proptest::collection::vec(1_u64..200, 1..60), total in 1_u64..500) {
            let got = quotas(&sizes, total);
            let all: u64 = sizes.iter().sum();
            for (quota, size) in got.iter().zip(&sizes) {
                let share = total.min(all) as f64 * *size as f64 / all as f64;
                prop_assert!(*quota >= 1 && quota <= size && (*quota as f64 - share).abs() <= 1.0 + 1e-9);
            }
        }
    }
}
