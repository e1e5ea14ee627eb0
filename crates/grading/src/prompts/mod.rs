//! Prompts of the answerer, and what prompts of judges (`judging`) have in common with them: versioned, hashed, ours.
//!
//! The answerer is told the question, what was recalled and, where there are any, the options: never the category, the
//! gold or the evidence. Which answer style a run uses is told by its dataset's [`Profile`], and only that is hashed: a
//! prompt that is added here changes no run that does not use it. Whatever changes a prompt changes its hash; golden tests
//! hold every hash to its version.

pub mod answer;
pub mod search;

use std::collections::BTreeMap;

use bench_proto::{
    ids::Sha256Hash,
    profile::Profile,
    scenario::{RecallPlan, Scenario},
};

/// What is sent to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages {
    /// Instructions: the same for every question of a kind.
    pub system: String,
    /// The question at hand.
    pub user: String,
}

/// Hashes of prompts, name → 64 hexadecimal characters, as the run spec keeps them.
pub type PromptHashes = BTreeMap<String, String>;

/// What a profile asks for and this build, or the profile itself, does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A question of a category that the profile does not list.
    #[error("the dataset's profile has no category '{category}' (it has {known})")]
    Category {
        /// The category that is missing.
        category: String,
        /// Names that the profile lists.
        known: String,
    },
    /// A judge has nothing to grade by.
    #[error(
        "no rubric tells a judge how to grade questions of {}: leave --judge out, or leave them out with {}",
        categories.join(", "),
        categories.iter().map(|name| format!("--exclude-category {name}")).collect::<Vec<_>>().join(" ")
    )]
    Ungraded {
        /// The categories, all of them.
        categories: Vec<String>,
    },
    /// A rubric that is neither the profile's own nor one of this build.
    #[error("unknown rubric '{0}' in the dataset's profile: a newer build may have it")]
    Rubric(String),
    /// A prompt that is to be sent as it is, in which a place for what is graded is missing or stands twice.
    #[error("the rubric '{0}' in the dataset's profile is a whole prompt, and {1}")]
    Template(String, String),
    /// An answer style without rules that this build does not have, or one that the profile does not list.
    #[error("unknown answer style '{0}' in the dataset's profile: a newer build may have it")]
    Style(String),
    /// An answer style whose answers have no words, or more than anybody reads.
    #[error("answer style '{0}' in the dataset's profile: give it 1 to 2000 words")]
    Words(String),
}

/// Hashes of all prompts that the answerer of a run is given: for its answers, or for its searches and answers, and for the
/// rephrasings of questions.
///
/// # Errors
/// As [`answer::Instructions::from_profile`].
pub fn answerer_hashes(profile: &Profile, scenario: Scenario, plan: RecallPlan) -> Result<PromptHashes, ProfileError> {
    let mut hashes = match scenario {
        Scenario::Agentic => search::prompt_hashes(profile)?,
        _ => answer::prompt_hashes(profile, scenario)?,
    };
    if plan.rephrased > 0 {
        hashes.extend(search::rephrasing_hash(plan.rephrased));
    }
    Ok(hashes)
}

/// All prompts that answerers of this build are given under a profile, by their hashes: what they make of a fixed sample.
pub(crate) fn texts(profile: &Profile) -> impl Iterator<Item = Messages> {
    answer::all_samples(profile).into_iter().chain(search::all_samples(profile))
}

/// The inside of a code fence that spans the whole text, else the text.
pub(crate) fn without_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inside {
        Some(inside) => inside.strip_prefix("json").unwrap_or(inside).trim(),
        None => text,
    }
}

/// Hash of a prompt, from what it makes of a fixed sample: instructions and layout are both in it.
pub(crate) fn hash(sample: &Messages) -> String {
    Sha256Hash::of_bytes(format!("{}\n\u{0}\n{}", sample.system, sample.user).as_bytes()).hex()
}
