//! What a sample wants of its memory system beside finding: filters, numbers of hits, updates, withdrawals. What the system
//! cannot is refused before the run, or marked in its report.

use std::{collections::HashSet, sync::Arc};

use bench_datasets::Dataset;
use bench_plan::{Sample, segments};
use bench_proto::{
    dataset::{Bank, BankContent, BankOutline, FilterParts},
    spec::OwnK,
};
use bench_systems::Capabilities;

use super::read_apart;
use crate::{exit::CliError, out::amounts::counted};

/// What the questions and streams of a sample want.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Demands {
    /// For each question with a filter the parts of it.
    filters: Vec<FilterParts>,
    /// Hits that questions ask for on their own.
    own_k: Option<OwnK>,
    /// Questions without a number of their own.
    by_top_k: u64,
    /// Memories that are replaced.
    updates: u64,
    /// Memories that are taken away.
    withdrawals: u64,
    /// Memories that hold in more than one scope.
    in_several_scopes: u64,
}

impl Demands {
    /// What the questions of a sample demand.
    ///
    /// # Errors
    /// When the dataset cannot be read.
    pub(crate) async fn read(dataset: &Arc<dyn Dataset>, sample: &Sample) -> Result<Self, CliError> {
        let (dataset, banks, max_sessions) = (Arc::clone(dataset), sample.banks.clone(), sample.spec.max_sessions);
        read_apart(move || {
            let mut demands = Self::default();
            for bank in banks {
                let mut outline = dataset.outline(bank.file_index as usize)?;
                let marked = outline.updates + outline.withdrawals + outline.in_several_scopes;
                let until = last_point(&outline, &bank.questions);
                if marked > 0 && (max_sessions.is_some() || until < outline.entries) {
                    let Bank { content, .. } = dataset.bank(bank.file_index as usize)?;
                    // its questions are those of the outline that was read first
                    let questions = outline.questions;
                    outline = BankOutline { questions, ..retained(content, max_sessions, until) };
                }
                demands.add(&outline, &bank.questions);
            }
            Ok(demands)
        })
        .await
    }

    fn add(&mut self, bank: &BankOutline, sampled: &[u32]) {
        self.updates += u64::from(bank.updates);
        self.withdrawals += u64::from(bank.withdrawals);
        self.in_several_scopes += u64::from(bank.in_several_scopes);
        let sampled: HashSet<u32> = sampled.iter().copied().collect();
        let asked = (0..).zip(&bank.questions).filter(|(index, _)| sampled.contains(index));
        for (_, question) in asked {
            self.filters.extend(Some(question.filters).filter(|parts| !parts.is_empty()));
            match question.k {
                None => self.by_top_k += 1,
                Some(k) => {
                    let own = self.own_k.get_or_insert(OwnK { smallest: k, largest: k, all: true });
                    (own.smallest, own.largest) = (own.smallest.min(k), own.largest.max(k));
                }
            }
        }
    }

    /// Hits that questions ask for on their own, where any does.
    pub(crate) fn own_k(&self) -> Option<OwnK> {
        self.own_k.map(|own| OwnK { all: self.by_top_k == 0, ..own })
    }

    /// Questions that a system can only be asked without a part of their filter, and the parts that it lacks.
    pub(crate) fn lacking(&self, can: &Capabilities, answers: bool) -> (u64, FilterParts) {
        let has = if answers {
            can.answer_filters.and(if can.recalls { can.filters } else { FilterParts::ALL })
        } else {
            can.filters
        };
        let lacking = self.filters.iter().map(|parts| parts.without(has)).filter(|parts| !parts.is_empty());
        lacking.fold((0, FilterParts::default()), |(n, all), parts| (n + 1, all.or(parts)))
    }

    /// What the report has to say of a system that cannot do all of it.
    ///
    /// # Errors
    /// Exit 2 for more hits than the system can give, and for filters that it does not have, unless they were `allowed` to be
    /// missing.
    pub(crate) fn notes(
        &self,
        system: &str,
        can: &Capabilities,
        answers: bool,
        allowed: bool,
    ) -> Result<Vec<String>, CliError> {
        let (questions, lacking) = self.lacking(can, answers);
        let names = lacking.names().join(", ");
        let mut notes = Vec::new();
        if let Some(own) = self.own_k() {
            let (range, whose) = (range(own), if own.all { "the questions" } else { "some questions" });
            if let Some(most) = can.max_k.filter(|most| own.largest > *most) {
                return Err(CliError::usage(format!(
                    "{whose} ask for {range} on their own, and {system} gives at most {most}: leave them out (--category, --facet, \
                     --question-id), or take another system"
                )));
            }
            notes.push(format!("{whose} ask for {range} on their own, whatever --top-k says"));
        }
        if questions > 0 && !allowed {
            return Err(CliError::usage(format!(
                "{} may be answered from some memories only, and {system} has no filter for it ({names}): an adapter \
                 gets one with {{{}?}} in its recall, a class or process by its `filters`; or add --allow-unfiltered to ask \
                 them without, which the report says",
                counted(questions, "question"),
                lacking.names().first().copied().unwrap_or("tags"),
            )));
        }
        if questions > 0 {
            notes.push(format!(
                "{} asked without a part of the filter ({names}), which {system} does not have: it finds what must not answer them",
                counted(questions, "question")
            ));
        }
        if self.updates > 0 && !can.updates {
            notes.push(format!(
                "{system} replaces nothing: {} retained as further memories beside those that they replace",
                counted(self.updates, "update")
            ));
        }
        if self.withdrawals > 0 && !can.withdraws {
            notes.push(format!(
                "{system} removes nothing: {} not sent, what was withdrawn stays",
                counted(self.withdrawals, "withdrawal")
            ));
        }
        if self.in_several_scopes > 0 && !can.several_scopes {
            notes.push(format!(
                "{system} stores a memory in one scope: {} that {} in several retained in the first alone, and not found in the \
                 others (an adapter sends all of them as {{scopes}})",
                counted(self.in_several_scopes, "memory"),
                if self.in_several_scopes == 1 { "holds" } else { "hold" },
            ));
        }
        Ok(notes)
    }
}

/// The number of entries after which the last of the sampled questions is asked: what stands behind is in no segment.
fn last_point(bank: &BankOutline, sampled: &[u32]) -> u32 {
    let point = |index: &u32| Some((*index, bank.questions.get(*index as usize)?.ask_after));
    segments(sampled.iter().filter_map(point), bank.entries).last().map_or(0, |last| last.until)
}

/// The outline of what is retained of a bank, without questions.
fn retained(mut content: BankContent, max_sessions: Option<u32>, until: u32) -> BankOutline {
    if let Some(most) = max_sessions {
        content.keep_sessions(most);
    }
    content.entries.truncate(until as usize);
    Bank { content, ..Bank::default() }.outline()
}

/// `2 to 20 hits`, or `10 hits`.
fn range(OwnK { smallest, largest, .. }: OwnK) -> String {
    if smallest == largest { counted(largest.into(), "hit") } else { format!("{smallest} to {largest} hits") }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{Memory, QuestionOutline, StreamEntry};

    use super::*;

    fn demands() -> Demands {
        let question = |filters| QuestionOutline { filters, ..QuestionOutline::default() };
        let (user, tags) = (
            FilterParts { user: true, ..FilterParts::default() },
            FilterParts { tags: true, user: true, ..FilterParts::default() },
        );
        let questions =
            vec![question(user), question(FilterParts::default()), question(tags), question(FilterParts::ALL)];
        let mut demands = Demands::default();
        demands.add(&BankOutline { updates: 3, withdrawals: 1, questions, ..BankOutline::default() }, &[0, 1, 2]);
        demands
    }

    #[test]
    fn what_a_system_cannot_is_refused_or_marked_and_what_is_not_in_the_sample_is_not_wanted() {
        let builtin = Capabilities::from_items("1");
        assert_eq!(demands().notes("bm25", &builtin, false, false).expect("can all of it"), Vec::<String>::new());
        let has = FilterParts { user: true, ..FilterParts::default() };
        let mine = Capabilities { filters: has, updates: false, withdraws: false, ..builtin };
        let refused = demands().notes("mine", &mine, false, false).expect_err("has no tags");
        insta::assert_snapshot!(refused.message, @"1 question may be answered from some memories only, and mine has no filter for it (tags): an adapter gets one with {tags?} in its recall, a class or process by its `filters`; or add --allow-unfiltered to ask them without, which the report says");
        insta::assert_snapshot!(demands().notes("mine", &mine, false, true).expect("is allowed").join("\n"), @r"
        1 question asked without a part of the filter (tags), which mine does not have: it finds what must not answer them
        mine replaces nothing: 3 updates retained as further memories beside those that they replace
        mine removes nothing: 1 withdrawal not sent, what was withdrawn stays
        ");
        let tags = FilterParts { tags: true, ..FilterParts::default() };
        assert_eq!(demands().lacking(&mine, false), (1, tags), "is kept with the run");
        let answers = Capabilities { answer_filters: FilterParts::default(), filters: FilterParts::ALL, ..mine };
        assert!(demands().notes("mine", &answers, true, false).is_err(), "its answers are not filtered");
    }

    #[test]
    fn what_comes_behind_the_last_question_is_not_wanted() {
        let memory = |id: &str| Memory { id: id.to_owned(), ..Memory::default() };
        let update = |memory| StreamEntry::Update { replaces: "m1".to_owned(), memory };
        let entries = vec![
            StreamEntry::Memory(memory("m1")),
            update(Some(memory("m2"))),
            update(None),
            update(Some(memory("m3"))),
        ];
        let content = BankContent { entries, ..BankContent::default() };
        let question = |ask_after| QuestionOutline { ask_after, ..QuestionOutline::default() };
        let outline = BankOutline { entries: 4, questions: [9, 2, 1].map(question).into(), ..BankOutline::default() };
        let of = |sampled: &[u32], sessions| {
            let kept = retained(content.clone(), sessions, last_point(&outline, sampled));
            (kept.updates, kept.withdrawals)
        };
        assert_eq!((of(&[0, 2], None), of(&[1, 2], None), of(&[2], None)), ((2, 1), (1, 0), (0, 0)));
        assert_eq!(of(&[0], Some(3)), (1, 1));
    }

    #[test]
    fn memories_of_several_scopes_that_are_stored_in_one_are_marked() {
        let of = |in_several_scopes| {
            let mut demands = Demands::default();
            demands.add(&BankOutline { in_several_scopes, ..BankOutline::default() }, &[]);
            demands
        };
        let all = Capabilities::from_items("1");
        let one = Capabilities { several_scopes: false, ..all.clone() };
        let notes =
            |memories, can: &Capabilities| of(memories).notes("mine", can, false, false).expect("runs").join("\n");
        assert_eq!((notes(2, &all), notes(0, &one)), (String::new(), String::new()));
        insta::assert_snapshot!(notes(2, &one), @"mine stores a memory in one scope: 2 memories that hold in several retained in the first alone, and not found in the others (an adapter sends all of them as {scopes})");
        assert!(notes(1, &one).contains("1 memory that holds in several"));
    }

    #[test]
    fn numbers_of_hits_that_questions_ask_for_are_held_to_what_the_system_gives() {
        let of = |asked: &[Option<u32>]| {
            let questions = asked.iter().map(|k| QuestionOutline { k: *k, ..QuestionOutline::default() }).collect();
            let mut demands = Demands::default();
            demands.add(&BankOutline { questions, ..BankOutline::default() }, &[0, 1, 2]);
            demands
        };
        let few = Capabilities { max_k: Some(10), ..Capabilities::from_items("1") };
        let notes = |asked: &[Option<u32>]| of(asked).notes("mine", &few, false, false).map(|notes| notes.join("\n"));
        assert_eq!(notes(&[None, None]).expect("asks for nothing"), "");
        insta::assert_snapshot!(notes(&[Some(2), Some(10)]).expect("are few"), @"the questions ask for 2 to 10 hits on their own, whatever --top-k says");
        insta::assert_snapshot!(notes(&[Some(4), None]).expect("are few"), @"some questions ask for 4 hits on their own, whatever --top-k says");
        insta::assert_snapshot!(notes(&[Some(2), Some(20), None]).expect_err("are too many").message, @"some questions ask for 2 to 20 hits on their own, and mine gives at most 10: leave them out (--category, --facet, --question-id), or take another system");
        assert_eq!(notes(&[None, None, None, Some(20)]).expect("the last one is not in the sample"), "");
        assert_eq!(of(&[Some(2), None, Some(7)]).own_k(), Some(OwnK { smallest: 2, largest: 7, all: false }));
    }
}
