//! Prompts of the answerer and the judges: versioned, hashed, ours.
//!
//! The answerer is told the question, what was recalled and, where there are any, the options: never the category, the
//! gold or the evidence. A judge may know the category and the gold. Which answer style and which rubrics a run uses is told
//! by its dataset's [`Profile`], and only those are hashed: a prompt that is added here changes no run that does not use
//! it. Whatever changes a prompt changes its hash; golden tests hold every hash to its version.

pub mod answer;
pub mod judge;
pub mod verdict;

use std::collections::BTreeMap;

use bench_proto::{ids::Sha256Hash, profile::Profile};

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
        /// The category.
        category: String,
        /// Those that it lists.
        known: String,
    },
    /// A judge has nothing to grade by.
    #[error(
        "no rubric tells a judge how to grade questions of category '{category}': leave --judge out, or leave them out with --exclude-category {category}"
    )]
    Ungraded {
        /// The category.
        category: String,
    },
    /// A rubric that is neither the profile's own nor one of this build.
    #[error("unknown rubric '{0}' in the dataset's profile: a newer build may have it")]
    Rubric(String),
    /// An answer style without rules that this build does not have.
    #[error("unknown answer style '{0}' in the dataset's profile: a newer build may have it")]
    Style(String),
}

/// Checks that questions of these categories can be asked by a profile, and graded by it when there is a judge.
///
/// # Errors
/// The first category or name that nobody knows.
pub fn check<'a>(
    profile: &Profile,
    categories: impl IntoIterator<Item = &'a str>,
    is_judged: bool,
) -> Result<(), ProfileError> {
    answer::style_rules(profile)?;
    for name in profile.rubric_names() {
        judge::find(profile, name)?;
    }
    for category in categories {
        let Some(rules) = profile.categories.get(category) else {
            let known = profile.categories.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(ProfileError::Category { category: category.to_owned(), known });
        };
        if is_judged && rules.rubric.is_none() {
            return Err(ProfileError::Ungraded { category: category.to_owned() });
        }
    }
    Ok(())
}

/// All prompts of this build and of a profile as text, by their hashes: what they make of a fixed sample.
#[must_use]
pub fn texts(profile: &Profile) -> BTreeMap<String, Messages> {
    let judges = judge::all(profile).map(judge::sample);
    answer::all_samples(profile).chain(judges).map(|text| (hash(&text), text)).collect()
}

/// Hash of a prompt, from what it makes of a fixed sample: instructions and layout are both in it.
fn hash(sample: &Messages) -> String {
    Sha256Hash::of(format!("{}\n\u{0}\n{}", sample.system, sample.user).as_bytes()).hex()
}
