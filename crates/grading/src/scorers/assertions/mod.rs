//! Assertions about what of a memory surfaces and what does not: PrecisionMemBench's, and those of datasets like it.

mod evaluate;
mod scorer;
#[cfg(test)]
mod tests;

pub use evaluate::{Drift, Evaluation, Failure, PassType, evaluate};
pub use scorer::Assertions;
