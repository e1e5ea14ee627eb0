//! Numbers by lot: the same for the same seed, on every machine.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// A stream of draws.
#[derive(Debug, Clone)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// Stream number `stream` of a seed: streams of one seed have nothing to do with each other.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Evenly from 0 up to, and without, 1.
    pub fn unit(&mut self) -> f64 {
        // the 53 bits that a float of this size can hold
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly from the whole numbers below `end`; 0 when there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        // off by less than end / 2^64: nobody can see it
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Exponentially distributed with this mean (inversion).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }
}
