//! Whether judges can grade what is asked, before anything is paid: where a category leaves it to its questions by what they are
//! graded, their golds are read.

use std::{collections::BTreeSet, sync::Arc};

use bench_datasets::Dataset;
use bench_grading::{judging::rubric, prompts::ProfileError};
use bench_plan::Sample;
use bench_proto::profile::Profile;
use bench_store::{RunRow, Store};
use bench_worker::banks::BankQuestions;

use super::{
    planner::{self, BankParts},
    read_apart,
};
use crate::exit::CliError;

/// Checks that the questions of a sample can be asked by a profile, and graded by it where they are judged.
///
/// # Errors
/// As [`rubric::check`] and [`rubric::ungraded`], and what the dataset meets.
pub(crate) async fn check(
    profile: &Profile,
    dataset: &Arc<dyn Dataset>,
    sample: &Sample,
    is_judged: bool,
) -> Result<(), CliError> {
    let categories = || sample.spec.by_category.keys().map(String::as_str);
    let by_golds = is_judged && rubric::is_told_by_golds(profile, categories());
    rubric::check(profile, categories(), is_judged && !by_golds)?;
    if !by_golds {
        return Ok(());
    }
    let (dataset, banks, profile) = (Arc::clone(dataset), sample.banks.clone(), profile.clone());
    let ungraded = read_apart(move || {
        let mut ungraded = BTreeSet::new();
        for sampled in &banks {
            let bank = dataset.bank(sampled.file_index as usize)?;
            let (_, BankParts { questions, gold, .. }) = planner::parts(bank, sampled, None)?;
            let asked = questions.iter().zip(&gold).map(|(question, gold)| (question.category.as_str(), Some(gold)));
            ungraded.extend(rubric::ungraded(&profile, asked)?);
        }
        Ok(ungraded)
    });
    none_of(ungraded.await?)
}

/// The same of the questions of a run that is there, by the profile of a fork whose judges grade them.
///
/// # Errors
/// As [`check`], and what the store meets.
pub(crate) async fn check_stored(store: &dyn Store, source: &RunRow, profile: &Profile) -> Result<(), CliError> {
    if !rubric::is_told_by_golds(profile, source.spec.sample.by_category.keys().map(String::as_str)) {
        return Ok(());
    }
    let mut ungraded = BTreeSet::new();
    for row in store.banks(source.run_no, None).await? {
        let bank = BankQuestions::read(store, &row).await?;
        let asked = bank.asked().map(|question| (question.category.as_str(), bank.gold(&question.question_id)));
        ungraded.extend(rubric::ungraded(profile, asked)?);
    }
    none_of(ungraded)
}

fn none_of(ungraded: BTreeSet<String>) -> Result<(), CliError> {
    match ungraded.is_empty() {
        true => Ok(()),
        false => Err(ProfileError::Ungraded { categories: ungraded.into_iter().collect() }.into()),
    }
}
