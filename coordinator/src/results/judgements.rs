//! The judgements of questions, for people and other tools: a line for each vote, and of several votes which one speaks for them.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    facts::median,
    ids::{TaskKey, TaskKind},
    step::{StepFacts, StepText},
    summary::JudgementLine,
};
use bench_store::{Checkpoints, RunRow, Store};

use crate::exit::CliError;

/// Gathers the judgements of some questions.
#[derive(Debug, Default)]
pub(crate) struct Judgements {
    /// Grades by vote.
    grades: HashMap<TaskKey, f64>,
    votes: BTreeMap<TaskKey, Vote>,
}

/// What is stored of a vote.
#[derive(Debug, Default)]
struct Vote {
    line: Option<JudgementLine>,
    /// Raw replies of its calls, where it has several.
    calls: Vec<String>,
}

impl Judgements {
    /// Reads what grades the votes on these questions gave, where one of them is to be chosen.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn read(store: &dyn Store, run: &RunRow, questions: &[TaskKey]) -> Result<Self, CliError> {
        Ok(Self { grades: grades(store, run, questions).await?, ..Self::default() })
    }

    /// Takes a text of a judge task; those of a task in the order of their steps.
    pub(crate) fn see(&mut self, task: TaskKey, text: StepText) {
        let of_vote = self.votes.entry(task).or_default();
        match text {
            StepText::Judged { judge, vote, verdict, raw, grade } => {
                let grade = self.grades.get(&task).copied().or(grade);
                of_vote.line = Some(JudgementLine { judge, vote, verdict, raw, grade, calls: vec![], chosen: false });
            }
            StepText::JudgedPart { raw } => of_vote.calls.push(raw),
            StepText::Recalled { .. }
            | StepText::Answered { .. }
            | StepText::Phrased { .. }
            | StepText::Searched { .. } => {}
        }
    }

    /// The judgements of a question by judge and vote. Replies of votes that came to no grade are left out.
    pub(crate) fn of_question(&mut self, question: TaskKey) -> Vec<JudgementLine> {
        let (low, high) = question.judges();
        let keys: Vec<TaskKey> = self.votes.range(low..=high).map(|(key, _)| *key).collect();
        let mut of_judges: BTreeMap<u32, Vec<JudgementLine>> = BTreeMap::new();
        for key in keys {
            let Some(Vote { line: Some(line), calls }) = self.votes.remove(&key) else { continue };
            of_judges.entry(key.judge_no()).or_default().push(JudgementLine { calls, ..line });
        }
        of_judges.values_mut().for_each(|votes| choose(votes));
        of_judges.into_values().flatten().collect()
    }
}

/// The grades of the votes on some questions, where a judge has several; none that are only in texts.
///
/// # Errors
/// What the store meets.
pub(crate) async fn grades(
    store: &dyn Checkpoints,
    run: &RunRow,
    questions: &[TaskKey],
) -> Result<HashMap<TaskKey, f64>, CliError> {
    let mut grades = HashMap::new();
    if run.spec.judges.is_empty() || run.spec.votes <= 1 {
        return Ok(grades);
    }
    for step in store.question_steps(run.run_no, questions).await? {
        if let (TaskKind::Judge, StepFacts::Judged { score: Some(score), .. }) = (step.task.kind(), step.facts) {
            grades.insert(step.task, score);
        }
    }
    Ok(grades)
}

/// Of several votes of a judge, the one whose grade is nearest their median speaks for them; the first of those that are equally
/// near.
fn choose(votes: &mut [JudgementLine]) {
    let Some(middle) = median(votes.iter().filter_map(|vote| vote.grade).collect()) else { return };
    let distance = |vote: &JudgementLine| vote.grade.map(|grade| (grade - middle).abs());
    let nearest = votes.iter_mut().filter(|vote| vote.grade.is_some()).min_by(|a, b| {
        let [a, b] = [a, b].map(|vote| distance(vote).unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    });
    if let Some(nearest) = nearest {
        nearest.chosen = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(vote: u32) -> StepText {
        StepText::Judged {
            judge: "openai:m".into(),
            vote,
            verdict: format!("word {vote}"),
            raw: String::new(),
            grade: None,
        }
    }

    #[test]
    fn of_a_run_that_was_rebuilt_the_texts_say_the_grades() {
        let mut judgements = Judgements::default();
        for (vote, grade) in [(0, 0.0), (1, 1.0), (2, 0.5)] {
            let StepText::Judged { judge, verdict, raw, .. } = judged(vote) else { panic!("is a judgement") };
            let text = StepText::Judged { judge, vote, verdict, raw, grade: Some(grade) };
            judgements.see(TaskKey::judge(0, 0, 0, vote), text);
        }
        let lines = judgements.of_question(TaskKey::question(0, 0));
        assert_eq!(
            lines.iter().map(|line| (line.grade, line.chosen)).collect::<Vec<_>>(),
            [(Some(0.0), false), (Some(1.0), false), (Some(0.5), true),]
        );
    }

    #[test]
    fn p38_the_vote_nearest_the_median_speaks_for_all() {
        let question = TaskKey::question(3, 7);
        let mut judgements = Judgements::default();
        for (judge, vote, grade) in
            [(0, 0, 1.0), (0, 1, 0.25), (0, 2, 0.5), (0, 3, 0.75), (1, 0, 0.0), (1, 1, 1.0), (1, 2, 1.0)]
        {
            let task = TaskKey::judge(3, 7, judge, vote);
            judgements.grades.insert(task, grade);
            judgements.see(task, judged(vote));
        }
        judgements.see(TaskKey::judge(3, 7, 0, 1), StepText::JudgedPart { raw: "first".into() });
        judgements.see(TaskKey::judge(3, 7, 0, 1), StepText::JudgedPart { raw: "second".into() });
        judgements.see(TaskKey::judge(3, 7, 0, 4), StepText::JudgedPart { raw: "of a vote that failed".into() });
        judgements.see(TaskKey::judge(3, 8, 0, 0), judged(0));
        let lines = judgements.of_question(question);
        let chosen: Vec<u32> = lines.iter().filter(|line| line.chosen).map(|line| line.vote).collect();
        // the median of four is 0.625: two are as near, and the first of them is taken
        assert_eq!((lines.len(), chosen), (7, vec![2, 1]));
        assert_eq!(lines[1].calls, ["first", "second"]);
        let alone = judgements.of_question(TaskKey::question(3, 8));
        assert_eq!((alone.len(), alone[0].chosen), (1, false), "one vote needs no choice");
    }
}
