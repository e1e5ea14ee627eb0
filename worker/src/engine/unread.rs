//! Replies of a model that cannot be read, again and again: the log names the first task that is given up for them, and from then
//! on says how many there are, at 10, 100, 1,000. Each of the others is a line at `info`.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bench_models::caller::is_unread;
use bench_proto::{
    failure::Failure,
    ids::{RunNo, TaskKey, TaskKind},
};

use crate::{context::RunContext, judge::Judge};

/// Tasks that were given up because the replies of a model could not be read, by run and by who was asked.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<HashMap<(RunNo, TaskKind, u32), u64>>);

impl Unread {
    /// Notes a task that is given up; how many there are with it, where replies that cannot be read are why.
    pub(super) fn add(&self, run: RunNo, task: TaskKey, failure: &Failure) -> Option<u64> {
        let judge = match task.kind() {
            TaskKind::Question => 0,
            TaskKind::Judge => task.judge_no(),
            TaskKind::Retain | TaskKind::Ready => return None,
        };
        if !is_unread(&failure.code) {
            return None;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((run, task.kind(), judge)).or_default();
        *count += 1;
        Some(*count)
    }

    /// Counts those of a run from the first one again: what it meets anew is told anew.
    pub(super) fn forget(&self, run: RunNo) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, ..), _| *of != run);
    }
}

/// Whether a line says that there are so many: 10, 100, 1,000.
pub(super) const fn is_told(count: u64) -> bool {
    count >= 10 && 10_u64.pow(count.ilog10()) == count
}

/// Whose replies a task of a run waits for.
pub(super) fn model_of(context: &RunContext, task: TaskKey) -> String {
    match task.kind() {
        TaskKind::Judge => context.judge(task.judge_no()).map_or("a judge", Judge::name).to_owned(),
        TaskKind::Question | TaskKind::Retain | TaskKind::Ready => context.row().spec.answerer.display(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_cannot_be_read_are_counted_by_run_and_model() {
        let unread = Unread::default();
        let failure = |code: &str| Failure::transient(code, "it cannot be read");
        let add = |run: i64, task: TaskKey, code: &str| unread.add(RunNo(run), task, &failure(code));
        let vote = |question: u32, judge: u32| TaskKey::judge(0, question, judge, 0);
        assert_eq!(add(1, vote(0, 0), "unparsable_judgement"), Some(1));
        assert_eq!(add(1, vote(1, 0), "empty_reply"), Some(2));
        assert_eq!(add(1, vote(2, 0), "http_500"), None, "each of them is a line of its own");
        assert_eq!(add(1, vote(2, 1), "unparsable_judgement"), Some(1), "another judge");
        assert_eq!(add(2, vote(0, 0), "unparsable_judgement"), Some(1), "another run");
        assert_eq!(add(1, TaskKey::question(0, 0), "cut_off"), Some(1), "the answerer");
        assert_eq!(add(1, vote(3, 0), "unparsable_judgement"), Some(3));
        unread.forget(RunNo(1));
        assert_eq!(add(1, vote(0, 0), "unparsable_judgement"), Some(1), "its work began again");
        assert_eq!(add(2, vote(1, 0), "unparsable_judgement"), Some(2), "the other run goes on");
    }

    #[test]
    fn few_lines_say_how_many_there_are() {
        let told: Vec<u64> = (1..=10_000).filter(|count| is_told(*count)).collect();
        assert_eq!(told, [10, 100, 1_000, 10_000]);
    }
}
