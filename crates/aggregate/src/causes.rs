//! Why answers are wrong: what they rest on is not stored, did not come back, or was not read right; and what banks hold.
//!
//! In come the facts of questions and what their banks hold ([`Known`]); out come the cause of each wrong answer, and the counts of
//! all. What is not known is no cause.

use std::collections::BTreeMap;

use bench_proto::{
    facts::QuestionFacts,
    ids::TaskKey,
    metric::Scale,
    step::listing::Holdings,
    summary::{Cause, CauseKind, CauseShare, CauseSummary, StoredCount, StoredEvidence, StoredSummary, StoredUpdates},
};

use crate::attribution::{Attribution, wrong};

/// Examples of what nobody said that a report shows.
const EXAMPLES_SHOWN: usize = 5;

/// What is known of what banks hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The system is computed from the stored items: it holds all that was retained.
    pub holds_all: bool,
    banks: BTreeMap<u32, Holdings>,
}

impl Known {
    /// Nothing but whether the system holds all by what it is.
    #[must_use]
    pub fn new(holds_all: bool) -> Self {
        Self { holds_all, banks: BTreeMap::new() }
    }

    /// Notes what a bank holds.
    pub fn add(&mut self, bank: u32, holdings: Holdings) {
        self.banks.insert(bank, holdings);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.holds_all |= other.holds_all;
        self.banks.extend(other.banks);
    }

    /// Whether all that a question rests on is stored.
    fn stores(&self, question: TaskKey) -> Option<bool> {
        let Some(held) = self.banks.get(&question.bank()) else { return self.holds_all.then_some(true) };
        match question.index() {
            index if held.not_stored.contains(&index) => Some(false),
            index if held.unknown.contains(&index) => None,
            _ => Some(true),
        }
    }

    fn cause(&self, question: TaskKey, evidence: Attribution, of_recalls: bool) -> Cause {
        let stored = || self.stores(question);
        match evidence {
            Attribution::EvidenceFound | Attribution::RecallFailed => Cause {
                kind: (!of_recalls).then_some(CauseKind::AnsweredWrongly),
                stored: Some(true),
                retrieved: Some(true),
            },
            Attribution::NotRetained => {
                Cause { kind: Some(CauseKind::NotStored), stored: Some(false), retrieved: Some(false) }
            }
            Attribution::EvidenceMissing | Attribution::EvidencePartial => Cause {
                kind: stored().map(|stored| if stored { CauseKind::NotRetrieved } else { CauseKind::NotStored }),
                stored: stored(),
                retrieved: Some(false),
            },
            Attribution::NoGroundTruth | Attribution::JudgeInDoubt => Cause::default(),
        }
    }

    /// Why the answer to a question is wrong; `None` when it is not, or has no score. `of_recalls` as in
    /// [`crate::attribution::attribute`].
    #[must_use]
    pub fn cause_of(&self, facts: &QuestionFacts, metric: &str, scale: Scale, of_recalls: bool) -> Option<Cause> {
        wrong(facts, metric, scale).map(|evidence| self.cause(facts.task, evidence, of_recalls))
    }

    /// How many wrong answers have which cause.
    pub(crate) fn causes(&self, wrong: &[(TaskKey, Attribution)], of_recalls: bool) -> Option<CauseSummary> {
        let mut sum = CauseSummary { wrong: wrong.len() as u64, ..CauseSummary::default() };
        for (question, evidence) in wrong {
            let share = match self.cause(*question, *evidence, of_recalls).kind {
                Some(CauseKind::NotStored) => &mut sum.not_stored,
                Some(CauseKind::NotRetrieved) => &mut sum.not_retrieved,
                Some(CauseKind::AnsweredWrongly) => &mut sum.answered_wrongly,
                None => &mut sum.unknown,
            };
            share.n += 1;
        }
        let all = sum.wrong as f64;
        for CauseShare { n, share } in
            [&mut sum.not_stored, &mut sum.not_retrieved, &mut sum.answered_wrongly, &mut sum.unknown]
        {
            *share = *n as f64 / all;
        }
        (sum.wrong > 0).then_some(sum)
    }

    /// What all banks hold; `None` where none was listed.
    pub(crate) fn stored(&self) -> Option<StoredSummary> {
        let mut sum = StoredSummary::default();
        for held in self.banks.values() {
            let is_whole = held.failure.is_none() && !held.cut;
            sum.banks += u64::from(is_whole);
            sum.cut += u64::from(held.cut);
            sum.failed += u64::from(held.failure.is_some());
            sum.failure = sum.failure.or_else(|| held.failure.as_ref().map(ToString::to_string));
            sum.rewritten += u64::from(held.rewrites);
            sum.items += held.items;
            let StoredEvidence { stored, missing, unknown, .. } = &mut sum.evidence;
            *stored += held.evidence_held;
            *unknown += held.evidence_unknown;
            *missing += held.evidence.saturating_sub(held.evidence_held + held.evidence_unknown);
            if !is_whole || held.rewrites {
                continue;
            }
            add(&mut sum.unsaid, held.unsaid, held.items, true);
            let more = EXAMPLES_SHOWN.saturating_sub(sum.unsaid_examples.len());
            sum.unsaid_examples.extend(held.examples.iter().take(more).cloned());
            add(&mut sum.not_withdrawn, held.not_withdrawn, held.withdrawals, held.withdrawals > 0);
            if held.updates > 0 {
                let updates = sum.updates.get_or_insert_with(StoredUpdates::default);
                updates.of += held.updates;
                updates.wrong += held.wrong_updates;
                updates.old_kept += held.old_kept;
                updates.new_missing += held.new_missing;
            }
        }
        let known = sum.evidence.stored + sum.evidence.missing;
        sum.evidence.share = (known > 0).then(|| sum.evidence.stored as f64 / known as f64);
        (!self.banks.is_empty()).then_some(sum)
    }
}

fn add(count: &mut Option<StoredCount>, n: u64, of: u64, is_known: bool) {
    if is_known {
        let count = count.get_or_insert_with(StoredCount::default);
        count.n += n;
        count.of += of;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(index: u32) -> TaskKey {
        TaskKey::question(3, index)
    }

    #[test]
    fn a_wrong_answer_has_the_cause_that_is_known_and_no_other() {
        use Attribution::{EvidenceFound, EvidenceMissing, EvidencePartial, NoGroundTruth, NotRetained};
        use CauseKind::{AnsweredWrongly, NotRetrieved, NotStored};
        let mut known = Known::new(false);
        let of = |known: &Known, index, evidence| {
            let Cause { kind, stored, retrieved } = known.cause(question(index), evidence, false);
            (kind, stored, retrieved)
        };
        assert_eq!(of(&known, 0, EvidenceMissing), (None, None, Some(false)), "nobody knows what it holds");
        assert_eq!(of(&known, 0, EvidenceFound), (Some(AnsweredWrongly), Some(true), Some(true)));
        assert_eq!(of(&known, 0, NotRetained), (Some(NotStored), Some(false), Some(false)));
        assert_eq!(of(&known, 0, NoGroundTruth), (None, None, None));
        known.add(3, Holdings { not_stored: vec![1], unknown: vec![2], ..Holdings::default() });
        assert_eq!(of(&known, 0, EvidenceMissing), (Some(NotRetrieved), Some(true), Some(false)));
        assert_eq!(of(&known, 1, EvidencePartial), (Some(NotStored), Some(false), Some(false)));
        assert_eq!(of(&known, 2, EvidenceMissing), (None, None, Some(false)));
        assert_eq!(of(&Known::new(true), 9, EvidenceMissing), (Some(NotRetrieved), Some(true), Some(false)));
        let wrong = [0, 1, 1, 2].map(|index| (question(index), EvidenceMissing));
        let counts = known.causes(&wrong, false).expect("some are wrong");
        let n = [&counts.not_retrieved, &counts.not_stored, &counts.unknown].map(|count| (count.n, count.share));
        assert_eq!((counts.wrong, n), (4, [(1, 0.25), (2, 0.5), (1, 0.25)]));
        assert_eq!(known.causes(&[], false), None);
        // where the recall is graded there is no answer that could be wrong
        assert_eq!(known.cause(question(0), EvidenceFound, true).kind, None);
    }

    #[test]
    fn what_is_not_known_of_a_bank_is_counted_nowhere() {
        assert_eq!(Known::new(true).stored(), None);
        let mut known = Known::new(false);
        let held = |evidence, evidence_held| Holdings { items: 10, evidence, evidence_held, ..Holdings::default() };
        known.add(0, Holdings { unsaid: 2, updates: 3, wrong_updates: 1, old_kept: 1, withdrawals: 2, ..held(4, 3) });
        known.add(1, Holdings { rewrites: true, unsaid: 9, evidence_unknown: 3, ..held(4, 1) });
        let stored = known.stored().expect("two were listed");
        assert_eq!((stored.banks, stored.items, stored.rewritten), (2, 20, 1));
        let StoredEvidence { stored: there, missing, unknown, share } = stored.evidence;
        assert_eq!((there, missing, unknown, share), (4, 1, 3, Some(0.8)));
        assert_eq!(stored.unsaid, Some(StoredCount { n: 2, of: 10 }));
        assert_eq!(stored.not_withdrawn, Some(StoredCount { n: 0, of: 2 }));
        assert_eq!(stored.updates, Some(StoredUpdates { of: 3, wrong: 1, old_kept: 1, new_missing: 0 }));
    }
}
