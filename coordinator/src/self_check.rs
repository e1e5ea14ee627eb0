//! The grader self-check, before the first paid question: a scorer that fails it would waste every call.

use bench_worker::scorers::{registry, self_check};

use crate::{
    exit::CliError,
    out,
    planner::{BankParts, prepare},
    planning::PlannedRun,
};

/// Banks of the sample that are looked at: all of LoCoMo, a part of very large datasets.
const MAX_BANKS: usize = 10;

/// What the self-check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfCheckResult {
    failed: Option<String>,
}

impl SelfCheckResult {
    /// The text of the run event that keeps it.
    #[must_use]
    pub fn event(&self) -> String {
        self.failed.as_ref().map_or_else(|| "passed".to_owned(), |why| format!("failed: {why}"))
    }
}

/// Checks all deterministic scorers of a run on its own sample.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn run(planned: &PlannedRun) -> Result<SelfCheckResult, CliError> {
    let dataset = std::sync::Arc::clone(&planned.dataset);
    let banks: Vec<_> = planned.banks_in_order().into_iter().take(MAX_BANKS).collect();
    let scorers = planned.spec.scorers.clone();
    let max_sessions = planned.spec.sample.max_sessions;
    let checked = tokio::task::spawn_blocking(move || {
        let mut conversations = Vec::new();
        for bank in &banks {
            let full = dataset.bank(bank.file_index as usize)?;
            let text = conversation(&full.content);
            let prepared = prepare(dataset.as_ref(), std::slice::from_ref(bank), 0, max_sessions, usize::MAX)?;
            conversations.extend(prepared.parts.into_iter().map(|parts| (text.clone(), parts)));
        }
        let mut problems = Vec::new();
        for spec in &scorers {
            let scorer = registry::find(&spec.name).map_err(|e| CliError::usage(e.to_string()))?;
            let report = self_check::self_check(scorer, conversations.iter().map(|(text, parts)| (text.as_str(), cases(parts))));
            problems.extend(report.problem());
        }
        Ok::<_, CliError>(problems)
    });
    let problems = checked.await.map_err(|e| CliError::infrastructure(format!("the grader self-check stopped: {e}")))??;
    let failed = (!problems.is_empty()).then(|| problems.join("; "));
    if let Some(why) = &failed {
        out::note(&format!("grader self-check failed, the run will be INVALID: {why}"));
    }
    Ok(SelfCheckResult { failed })
}

fn conversation(content: &bench_proto::dataset::BankContent) -> String {
    use bench_proto::dataset::StreamEntry;
    let mut text = String::new();
    for entry in &content.entries {
        match entry {
            StreamEntry::Session(session) => session.turns.iter().for_each(|turn| push_line(&mut text, &turn.line())),
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => push_line(&mut text, &memory.text),
            StreamEntry::Update { memory: None, .. } => {}
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn cases(parts: &BankParts) -> Vec<self_check::CheckCase<'_>> {
    let case = |(question, gold): (&'_ bench_proto::dataset::Question, &'_ bench_proto::dataset::GoldRecord)| (question, gold);
    parts
        .questions
        .iter()
        .zip(&parts.gold)
        .map(case)
        .map(|(question, gold)| self_check::CheckCase { question_id: &question.question_id, gold: Some(&gold.gold), category: &question.category })
        .collect()
}
