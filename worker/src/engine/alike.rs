//! Tasks that are given up for the same reason, again and again: the log names the first few, and from then on says how many there
//! are, at 10, 100, 1,000, and when their run ends here. Each of the others is a line at `info`. What is given up for a model's replies
//! that cannot be read is counted by [`super::unread`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use bench_proto::{failure::Failure, ids::RunNo};
use tracing::warn;

use super::unread::is_told;

/// Tasks of one reason that are told one by one.
const ONE_BY_ONE: u64 = 3;
/// Reasons of a run that are counted; where each task has one of its own, each is told.
const MOST_REASONS: usize = 100;

/// Tasks that were given up, by run, and by the code and the first line of why.
#[derive(Debug, Default)]
pub(super) struct Alike(Mutex<HashMap<RunNo, BTreeMap<Reason, u64>>>);

/// Code and first line of a failure.
type Reason = (String, String);

/// How a task that is given up is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// In a line of its own.
    ByItself,
    /// There are many of its kind, and this is no number to be told.
    Quietly,
    /// So many of its kind there are now.
    Counted(u64),
}

impl Alike {
    /// Notes a task that is given up, and says how it is told.
    pub(super) fn add(&self, run: RunNo, failure: &Failure) -> Telling {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons = runs.entry(run).or_default();
        let reason = reason_of(failure);
        if reasons.len() >= MOST_REASONS && !reasons.contains_key(&reason) {
            return Telling::ByItself;
        }
        let count = reasons.entry(reason).or_default();
        *count += 1;
        match *count {
            ..=ONE_BY_ONE => Telling::ByItself,
            count if is_told(count) => Telling::Counted(count),
            _ => Telling::Quietly,
        }
    }

    /// Runs with tasks that were given up.
    pub(super) fn runs(&self) -> Vec<RunNo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Counts those of a run from the first one again; out come the numbers that have not been told: code, first line and how many.
    pub(super) fn end(&self, run: RunNo) -> Vec<(String, String, u64)> {
        let reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run).unwrap_or_default();
        let is_open = |count: &u64| *count > ONE_BY_ONE && !is_told(*count);
        let open = reasons.into_iter().filter(|(_, count)| is_open(count));
        open.map(|((code, line), count)| (code, line, count)).collect()
    }
}

fn reason_of(failure: &Failure) -> Reason {
    (failure.code.clone(), first_line(failure).to_owned())
}

/// What failures are told by, and told apart.
pub(super) fn first_line(failure: &Failure) -> &str {
    failure.message.lines().next().unwrap_or_default()
}

/// Says how many tasks of a run were given up for one reason.
pub(super) fn say(run: &str, (code, line): (&str, &str), count: u64) {
    warn!(
        run,
        code,
        "{count} tasks of run {run} are given up for the same reason: {line} (bench-coord show {run} --failed lists their questions)"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_that_every_question_meets_is_a_few_lines_and_a_number() {
        let alike = Alike::default();
        let add = |run: i64, code: &str, message: &str| alike.add(RunNo(run), &Failure::permanent(code, message));
        let told: Vec<Telling> =
            (0..12).map(|at| add(1, "system_refused", &format!("KeyError: x\nline {at}"))).collect();
        assert_eq!(told[..3], [Telling::ByItself; 3]);
        assert_eq!(told[3..9], [Telling::Quietly; 6]);
        assert_eq!(told[9..], [Telling::Counted(10), Telling::Quietly, Telling::Quietly]);
        assert_eq!(add(1, "system_refused", "KeyError: y"), Telling::ByItself, "another first line");
        assert_eq!(add(1, "timeout", "KeyError: x"), Telling::ByItself, "another code");
        assert_eq!(add(2, "system_refused", "KeyError: x"), Telling::ByItself, "another run");
        let runs: std::collections::BTreeSet<RunNo> = alike.runs().into_iter().collect();
        assert_eq!(runs, [RunNo(1), RunNo(2)].into());
        let open = ("system_refused".to_owned(), "KeyError: x".to_owned(), 12);
        assert_eq!(alike.end(RunNo(1)), [open]);
        assert!(alike.end(RunNo(1)).is_empty(), "it is told once");
        assert_eq!(add(1, "system_refused", "KeyError: x"), Telling::ByItself, "its work began again");
        assert!(alike.end(RunNo(2)).is_empty(), "few are told one by one");
        let _ = alike.end(RunNo(1));
        assert!(alike.runs().is_empty(), "nothing is kept of what has ended");
    }

    #[test]
    fn numbers_that_were_told_are_not_told_again_and_reasons_are_bounded() {
        let alike = Alike::default();
        let failure = |at: usize| Failure::permanent("system_refused", format!("{at}"));
        let told: Vec<Telling> = (0..10).map(|_| alike.add(RunNo(1), &failure(0))).collect();
        assert_eq!(told.last(), Some(&Telling::Counted(10)));
        assert!(alike.end(RunNo(1)).is_empty());
        for at in 0..500 {
            assert_eq!(alike.add(RunNo(1), &failure(at)), Telling::ByItself);
        }
        let runs = alike.0.lock().expect("nobody panicked");
        assert_eq!(runs[&RunNo(1)].len(), MOST_REASONS);
    }
}
