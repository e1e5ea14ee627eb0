//! What is told and asked, one file per category. Adversarial questions come last: they ask for what nobody told.

mod adversarial;
mod multi_hop;
mod open_domain;
mod single_hop;
mod temporal;

use bench_proto::dataset::Gold;

use super::{
    draft::{Claim, Draft},
    shape::Shape,
};
use crate::locomo::schema::Category;

/// A told fact that could be asked of the other speaker, who never told it: the material of adversarial questions.
#[derive(Debug)]
struct Swap {
    /// What the other speaker would have to claim.
    claim: Claim,
    /// The question about the other speaker.
    template: &'static str,
    /// Values of the template.
    key: String,
    /// What the wrong answer would be.
    value: Gold,
    evidence: Vec<usize>,
}

/// Fills a draft with the facts and questions of a shape; nothing when they do not fit (which the shapes rule out).
pub(super) fn write(draft: &mut Draft, shape: &Shape) -> Option<()> {
    let mut swaps = Vec::new();
    multi_hop::write(draft, shape.count(Category::MultiHop), &mut swaps)?;
    temporal::write(draft, shape.count(Category::Temporal), &mut swaps)?;
    open_domain::write(draft, shape.count(Category::OpenDomain))?;
    single_hop::write(draft, shape.count(Category::SingleHop), &mut swaps)?;
    adversarial::write(draft, shape.count(Category::Adversarial), swaps)
}
