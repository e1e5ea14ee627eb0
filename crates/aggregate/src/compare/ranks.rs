//! Ranks with ties: who shares a rank when not every difference is more than chance?

/// Ranks of results that are given in their order, the best first; the first rank is 1.
///
/// A result shares the rank of those before it as long as it is told apart from none of them; else its rank is its place. So no
/// two results that are told apart share a rank. The other way round cannot hold: of three results the first may be told apart
/// from the third, and the second from neither.
#[must_use]
pub fn ranks(results: usize, told_apart: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(results);
    let mut first_of_rank = 0;
    for at in 0..results {
        if (first_of_rank..at).any(|before| told_apart(before, at)) {
            first_of_rank = at;
        }
        ranks.push(first_of_rank + 1);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_is_told_apart_from_nobody_shares_the_first_rank() {
        assert_eq!(ranks(3, |_, _| false), [1, 1, 1]);
        assert_eq!(ranks(3, |_, _| true), [1, 2, 3]);
        assert_eq!(ranks(0, |_, _| true), Vec::<usize>::new());
    }

    #[test]
    fn after_a_tie_the_rank_is_the_place() {
        // the first two are a tie, and the third is told apart from the first alone
        assert_eq!(ranks(4, |a, b| (a, b) == (0, 2)), [1, 1, 3, 3]);
    }

    proptest! {
        #[test]
        fn who_shares_a_rank_is_told_apart_from_nobody_of_it(apart in proptest::collection::vec(any::<bool>(), 64)) {
            let told = |a: usize, b: usize| apart[a.min(b) * 8 + a.max(b)];
            let got = ranks(8, told);
            prop_assert!(got.is_sorted());
            for (a, of_a) in got.iter().enumerate() {
                for (b, of_b) in got.iter().enumerate().skip(a + 1) {
                    prop_assert!(of_a != of_b || !told(a, b), "{got:?}: {a} and {b}");
                }
            }
        }
    }
}
