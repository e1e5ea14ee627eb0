//! What queueing theory says of one server that takes who came first: the yardstick of the figures that a load prints.

/// Seconds that each of some customers waits before its service begins, by their arrivals (ascending) and services, all in
/// seconds. Lindley's recursion (1952): a wait is the one before, plus that service, minus the gap, and never below zero.
#[must_use]
pub fn lindley(arrivals: &[f64], services: &[f64]) -> Vec<f64> {
    let mut waits: Vec<f64> = Vec::with_capacity(arrivals.len());
    for at in 0..arrivals.len().min(services.len()) {
        let wait = match at.checked_sub(1) {
            Some(before) => (waits[before] + services[before] - (arrivals[at] - arrivals[before])).max(0.0),
            None => 0.0,
        };
        waits.push(wait);
    }
    waits
}

/// Mean time in an M/M/1 queue, wait and service together, of a server that takes `capacity` a second and is asked `rate` a
/// second: 1 / (capacity - rate). None where the rate is not below the capacity.
#[must_use]
pub fn mm1_mean_seconds(rate: f64, capacity: f64) -> Option<f64> {
    (rate < capacity).then(|| 1.0 / (capacity - rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arrivals::{Arrivals, Schedule},
        draws::Draws,
    };

    #[test]
    fn a_wait_is_what_is_left_of_those_before() {
        // due at 0, 1, 2 and 10, with 3 s, 1 s, 1 s and 1 s of work
        assert_eq!(lindley(&[0.0, 1.0, 2.0, 10.0], &[3.0, 1.0, 1.0, 1.0]), [0.0, 2.0, 2.0, 0.0]);
        assert!(lindley(&[], &[]).is_empty());
    }

    /// A million customers at 80 %: the standard error of the mean is near 1 %.
    #[test]
    fn the_recursion_has_the_mean_of_the_theory() {
        let (rate, capacity, n) = (40.0, 50.0, 1_000_000);
        let arrivals: Vec<f64> =
            Schedule::new(Arrivals::Poisson, rate, 11).take(n).map(|at| at.as_secs_f64()).collect();
        let mut draws = Draws::new(11, 1);
        let services: Vec<f64> = (0..n).map(|_| draws.exponential(1.0 / capacity)).collect();
        let waits = lindley(&arrivals, &services);
        let mean = waits.iter().zip(&services).map(|(wait, service)| wait + service).sum::<f64>() / n as f64;
        let theory = mm1_mean_seconds(rate, capacity).expect("it is stable");
        assert!((mean / theory - 1.0).abs() < 0.05, "{mean} {theory}");
        assert_eq!(mm1_mean_seconds(50.0, 50.0), None);
    }
}
