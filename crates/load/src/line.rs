//! The straight line through some points, with the interval of its slope: how a latency grows with time or with a bank.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A line by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Growth of y for one of x.
    pub slope: f64,
    /// Lower end of the slope's 95 % interval (Student's t, n - 2 degrees of freedom).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// y at x = 0.
    pub at_zero: f64,
    /// Points.
    pub n: u32,
}

impl Line {
    /// Through points of x and y; none with fewer than three, or without two different x.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        if points.len() < 3 {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
        let xx: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let xy: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        if xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let at_zero = y_mean - slope * x_mean;
        let left: f64 = points.iter().map(|(x, y)| (y - at_zero - slope * x).powi(2)).sum();
        let error = (left / (n - 2.0) / xx).sqrt();
        let t = StudentsT::new(0.0, 1.0, n - 2.0).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
        let half = t * error;
        Some(Self { slope, low: slope - half, high: slope + half, at_zero, n: points.len() as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: x 1..5, y 2, 4, 5, 4, 5: slope 0.6, residual sum of squares 2.4, standard error sqrt(0.8 / 10), t(3) 3.18245.
    #[test]
    fn slope_and_interval_are_the_textbooks() {
        let line = Line::through(&[(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)]).expect("a line");
        assert!((line.slope - 0.6).abs() < 1e-12 && (line.at_zero - 2.2).abs() < 1e-12, "{line:?}");
        assert!((line.high - 0.6 - 3.182_446 * 0.08_f64.sqrt()).abs() < 1e-5, "{line:?}");
        assert!((line.low + line.high - 1.2).abs() < 1e-9);
    }

    #[test]
    fn too_little_gives_no_line() {
        assert_eq!(Line::through(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
