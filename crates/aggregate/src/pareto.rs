//! Which of several results no other one beats in both quality and cost.

/// For each (quality, cost), whether it is on the Pareto front: no other one is at least as good at no higher cost, and better in one
/// of the two. Higher quality and lower cost are better; equal ones stand on the front together. Decided on the figures as they are,
/// without their intervals.
#[must_use]
pub fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let beats = |one: &(f64, f64), other: &(f64, f64)| {
        one.0 >= other.0 && one.1 <= other.1 && (one.0 > other.0 || one.1 < other.1)
    };
    points.iter().map(|point| !points.iter().any(|other| beats(other, point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_must_be_better() {
        let points = [(0.7, 1.0), (0.8, 2.0), (0.75, 3.0), (0.6, 0.5), (0.8, 2.5), (0.6, 0.6)];
        assert_eq!(front(&points), [true, true, false, true, false, false]);
    }

    #[test]
    fn equal_ones_stand_together_and_one_alone_is_the_front() {
        assert_eq!(front(&[(0.5, 1.0), (0.5, 1.0), (0.5, 1.1), (0.4, 1.0)]), [true, true, false, false]);
        assert_eq!(front(&[(0.1, 9.0)]), [true]);
        assert!(front(&[]).is_empty());
    }
}
