//! The grader self-check, before the first paid question: a scorer that fails it would waste every call.

use bench_grading::scorers::{
    registry,
    self_check::{CheckCase, check_answers, conversation_text, self_check},
};

use crate::{
    exit::CliError,
    out,
    planning::{
        PlannedRun,
        planner::{BankParts, prepare},
    },
};

/// Banks of the sample that are looked at: all of LoCoMo, a part of very large datasets.
const MAX_BANKS: usize = 10;

/// What the self-check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelfCheckResult {
    failed: Option<String>,
}

impl SelfCheckResult {
    /// The text of the run event that keeps it.
    #[must_use]
    pub(crate) fn event(&self) -> String {
        self.failed.as_ref().map_or_else(|| "passed".to_owned(), |why| format!("failed: {why}"))
    }
}

/// Checks all deterministic scorers of a run on its own sample.
///
/// # Errors
/// When the dataset cannot be read.
pub(crate) async fn run(planned: &PlannedRun) -> Result<SelfCheckResult, CliError> {
    let dataset = std::sync::Arc::clone(&planned.dataset);
    let banks: Vec<_> = planned.banks_in_order().into_iter().take(MAX_BANKS).collect();
    let (scorers, known) = (planned.spec.scorers.clone(), planned.spec.dataset.profile.checks.clone());
    let max_sessions = planned.spec.sample.max_sessions;
    let checked = tokio::task::spawn_blocking(move || {
        let mut conversations = Vec::new();
        for bank in &banks {
            let text = conversation_text(&dataset.bank(bank.file_index as usize)?.content);
            let prepared = prepare(dataset.as_ref(), std::slice::from_ref(bank), 0, max_sessions, usize::MAX)?;
            conversations.extend(prepared.parts.into_iter().map(|parts| (text.clone(), parts)));
        }
        let mut problems = Vec::new();
        for spec in &scorers {
            let scorer = registry::find(&spec.name).map_err(CliError::usage_of)?;
            problems.extend(check_answers(scorer, &known));
            problems
                .extend(self_check(scorer, conversations.iter().map(|(text, parts)| (text, cases(parts)))).reasons());
        }
        Ok::<_, CliError>(problems)
    });
    let problems = checked
        .await
        .map_err(|e| CliError::infrastructure(format!("the grader self-check stopped: {e}")).because(e))??;
    let failed = (!problems.is_empty()).then(|| problems.join("; "));
    if let Some(why) = &failed {
        out::note(&format!("grader self-check failed, the run will be INVALID: {why}"));
    }
    Ok(SelfCheckResult { failed })
}

fn cases(parts: &BankParts) -> Vec<CheckCase<'_>> {
    let pairs = parts.questions.iter().zip(&parts.gold);
    pairs
        .map(|(question, gold)| CheckCase {
            question_id: &question.question_id,
            category: &question.category,
            gold: Some(&gold.gold),
        })
        .collect()
}
