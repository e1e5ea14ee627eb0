//! Where a bank stands, derived from its tasks and checkpoints alone (P6, P7). Pure: the commit calls it when something
//! of a bank ended, the sweep calls it for every unfinished bank, and both do what it says.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    bank::{BankEvent, BankState},
    ids::{TaskKey, TaskKind},
    task::TaskState,
};

use crate::BankRow;

/// What is stored of a bank's work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// State of each task row of the bank, judges left out.
    pub(super) tasks: BTreeMap<TaskKey, TaskState>,
    /// Questions whose recall is stored.
    pub(super) recalled: BTreeSet<TaskKey>,
    /// Stream entries retained in the current generation.
    pub(super) position: u32,
}

/// What a bank's row and tasks should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// State of the bank.
    pub(super) state: BankState,
    /// Its current segment.
    pub(super) segment: u32,
    /// Recalls of that segment that are open.
    pub(super) open_recalls: i64,
    /// Tasks that must exist and are missing: they become ready.
    pub(super) missing: Vec<TaskKey>,
    /// The task whose failure is the bank's.
    pub(super) failed_by: Option<TaskKey>,
    /// Questions that must fail with it.
    pub(super) fail: Vec<TaskKey>,
}

impl Evidence {
    fn state(&self, task: TaskKey) -> Option<TaskState> {
        self.tasks.get(&task).copied()
    }

    /// Whether the recall of a question is still awaited.
    fn awaits_recall(&self, question: TaskKey) -> bool {
        !self.recalled.contains(&question) && !matches!(self.state(question), Some(TaskState::Failed | TaskState::Done))
    }
}

/// Derives where a bank should stand.
pub(super) fn derive(bank: &BankRow, evidence: &Evidence) -> Target {
    let no = bank.bank_no;
    let questions_of = |segment: u32| {
        let of = bank.segments.get(segment as usize).map(|s| s.questions.as_slice()).unwrap_or_default();
        of.iter().map(|index| TaskKey::question(no, *index))
    };
    let open_recalls = |segment: u32| questions_of(segment).filter(|q| evidence.awaits_recall(*q)).count() as i64;
    let last = bank.segments.len().saturating_sub(1) as u32;
    let started = evidence.tasks.keys().rev().find(|task| task.kind() == TaskKind::Retain).map(|task| task.index());
    // without any retain task, work starts where a recall is missing: segments before it need no answer any more
    let segment = started.unwrap_or_else(|| (0..=last).find(|s| open_recalls(*s) > 0).unwrap_or(0));
    let (retain, ready) = (TaskKey::retain(no, segment), TaskKey::ready(no, segment));
    let mut target = Target {
        state: BankState::Building,
        segment,
        open_recalls: open_recalls(segment),
        missing: Vec::new(),
        failed_by: None,
        fail: Vec::new(),
    };

    if bank.waits_for_a_look() && evidence.tasks.is_empty() {
        return target;
    }
    let is_bank_task = |task: TaskKey| matches!(task.kind(), TaskKind::Retain | TaskKind::Ready);
    target.failed_by =
        evidence.tasks.iter().find(|(t, s)| is_bank_task(**t) && **s == TaskState::Failed).map(|(t, _)| *t);
    if target.failed_by.is_some() {
        target.state = target.state.after(BankEvent::GivenUp);
        target.open_recalls = 0;
        let ended = |q: &TaskKey| matches!(evidence.state(*q), Some(TaskState::Done | TaskState::Failed));
        target.fail = (0..=last).flat_map(questions_of).filter(|q| !ended(q)).collect();
        return target;
    }
    match (evidence.state(retain), evidence.state(ready)) {
        (None, _) => target.missing.push(retain),
        (Some(TaskState::Done), None) => target.missing.push(ready),
        (Some(TaskState::Done), Some(TaskState::Done)) => {
            target.state = target.state.after(BankEvent::SegmentProven);
            target.missing = questions_of(segment).filter(|q| evidence.state(*q).is_none()).collect();
            if target.open_recalls == 0 && segment < last && !bank.holds_later_questions() {
                target.state = target.state.after(BankEvent::NextSegment);
                target.segment = segment + 1;
                target.open_recalls = open_recalls(segment + 1);
                target.missing.push(TaskKey::retain(no, segment + 1));
            }
        }
        _ => {}
    }
    target
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::Sha256Hash;

    use super::*;
    use crate::Segment;

    fn bank() -> BankRow {
        BankRow {
            bank_no: 3,
            bank_id: "b".into(),
            bank_row: 1,
            content: Sha256Hash([0; 32]),
            questions: Sha256Hash([0; 32]),
            gold: Sha256Hash([0; 32]),
            segments: vec![
                Segment { until: 2, questions: vec![0, 1] },
                Segment { until: 5, questions: vec![] },
                Segment { until: 6, questions: vec![2] },
            ],
            generation: 1,
            handle: None,
            state: BankState::Building,
            position: 0,
            segment: 0,
            open_recalls: 0,
            reason: None,
            namespaces: String::new(),
            outdated: false,
            filled: None,
            later: None,
        }
    }

    fn evidence(tasks: &[(TaskKey, TaskState)], recalled: &[u32]) -> Evidence {
        Evidence {
            tasks: tasks.iter().copied().collect(),
            recalled: recalled.iter().map(|q| TaskKey::question(3, *q)).collect(),
            position: 0,
        }
    }

    #[test]
    fn p6_segments_open_one_after_the_other() {
        use TaskState::{Done, Ready};
        let (retain, ready) = (|s| TaskKey::retain(3, s), |s| TaskKey::ready(3, s));
        let question = |q| TaskKey::question(3, q);
        let look = |tasks: &[(TaskKey, TaskState)], recalled: &[u32]| {
            let target = derive(&bank(), &evidence(tasks, recalled));
            (target.state, target.segment, target.open_recalls, target.missing)
        };
        assert_eq!(look(&[], &[]), (BankState::Building, 0, 2, vec![retain(0)]));
        assert_eq!(look(&[(retain(0), Ready)], &[]), (BankState::Building, 0, 2, vec![]));
        assert_eq!(look(&[(retain(0), Done)], &[]), (BankState::Building, 0, 2, vec![ready(0)]));
        let proven = [(retain(0), Done), (ready(0), Done)];
        assert_eq!(look(&proven, &[]), (BankState::Ready, 0, 2, vec![question(0), question(1)]));
        let asked = [proven.as_slice(), &[(question(0), Ready), (question(1), Ready)]].concat();
        assert_eq!(look(&asked, &[1]), (BankState::Ready, 0, 1, vec![]));
        assert_eq!(look(&asked, &[0, 1]), (BankState::Building, 1, 0, vec![retain(1)]));
        // a segment without questions is passed through as soon as it is ready
        let passed = [asked.as_slice(), &[(retain(1), Done), (ready(1), Done)]].concat();
        assert_eq!(look(&passed, &[0, 1]), (BankState::Building, 2, 1, vec![retain(2)]));
    }

    #[test]
    fn a_failed_bank_fails_every_question_that_has_not_ended() {
        use TaskState::{Done, Failed, Leased};
        let tasks = [
            (TaskKey::retain(3, 0), Done),
            (TaskKey::ready(3, 0), Done),
            (TaskKey::retain(3, 1), Failed),
            (TaskKey::question(3, 0), Done),
            (TaskKey::question(3, 1), Leased),
        ];
        let target = derive(&bank(), &evidence(&tasks, &[0, 1]));
        assert_eq!(target.state, BankState::Failed);
        assert_eq!(target.failed_by, Some(TaskKey::retain(3, 1)));
        assert_eq!(target.fail, vec![TaskKey::question(3, 1), TaskKey::question(3, 2)]);
        assert!(target.missing.is_empty());
    }

    #[test]
    fn a_bank_that_starts_anew_skips_segments_that_need_no_recall() {
        let done = [(TaskKey::question(3, 0), TaskState::Done), (TaskKey::question(3, 1), TaskState::Done)];
        let target = derive(&bank(), &evidence(&done, &[0, 1]));
        assert_eq!((target.segment, target.missing), (2, vec![TaskKey::retain(3, 2)]));
    }
}
