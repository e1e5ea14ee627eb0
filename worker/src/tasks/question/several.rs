//! Several recalls of one question: those of a model that searches until it answers, and those of its rephrasings.
//!
//! Each move of a model and each recall is stored before the next one begins, so that a kill repeats only what was in flight;
//! whoever stored a step first is followed. What all recalls found together is stored as the question's recall when no further
//! one follows: with the answer of a model that searches, before the answer of one that does not. Until then the next segment of
//! the bank's stream waits (P6), so that all of them see the same.

use std::collections::{HashMap, HashSet};

use bench_grading::prompts::search::{Move, PastSearch};
use bench_proto::{
    call::Phase,
    failure::Failure,
    step::{RetrievedHit, StepFacts, StepNo, StepRecord, StepText, Timing},
    trace::StepTrace,
};
use bench_store::StoreError;
use bench_systems::Recall;

use super::{Asked, answer_record, recall_query};
use crate::{
    answerer::Answered,
    calls::{AskedFor, Called},
    clock::now_us,
    context::At,
    ending::TaskEnd,
    tasks::TaskInput,
};

/// Constant of the reciprocal rank, the literature's: it fits the few to several lists that are joined here.
const RRF_K: f64 = 60.0;

/// What is stored of a question's several recalls.
struct Trail {
    /// What each move of a model has phrased.
    phrased: Vec<Vec<String>>,
    /// What was searched for, and found.
    searched: Vec<(String, Vec<RetrievedHit>)>,
    /// No step of this claim is stored yet: the first one tells of the wait in the queue.
    is_fresh: bool,
}

impl Trail {
    /// What the store holds of it, in the order of its steps.
    fn from_texts<'t>(texts: impl Iterator<Item = &'t StepText>) -> Self {
        let mut trail = Self { phrased: Vec::new(), searched: Vec::new(), is_fresh: true };
        for text in texts {
            trail.add(text);
        }
        trail
    }

    fn add(&mut self, text: &StepText) {
        match text {
            StepText::Phrased { queries, .. } => self.phrased.push(queries.clone()),
            StepText::Searched { query, hits } => self.searched.push((query.clone(), hits.clone())),
            StepText::Recalled { .. }
            | StepText::Answered { .. }
            | StepText::Judged { .. }
            | StepText::JudgedPart { .. } => {}
        }
    }

    /// The query of a model's move that nobody has searched for yet.
    fn open_query(&self) -> Option<&String> {
        self.phrased.get(self.searched.len())?.first()
    }

    fn lists(&self) -> impl Iterator<Item = &[RetrievedHit]> + Clone {
        self.searched.iter().map(|(_, hits)| hits.as_slice())
    }

    /// What a model is told of its searches.
    fn past(&self) -> Vec<PastSearch<'_>> {
        let mut seen = HashSet::new();
        let mut told = Vec::with_capacity(self.searched.len());
        for (query, hits) in &self.searched {
            let new = hits.iter().filter(|hit| seen.insert(same(hit))).count();
            told.push(PastSearch { query, found: hits.len(), new });
        }
        told
    }

    /// A step's timing: that of a claim's later steps leaves out what its first one tells.
    fn timed(&mut self, timing: Timing) -> Timing {
        if std::mem::take(&mut self.is_fresh) {
            return timing;
        }
        Timing { queue_wait_us: 0, dispatch_us: 0, ..timing }
    }
}

impl Asked<'_> {
    /// Lets the answerer's model search until it answers; recall and answer are added to the records.
    pub(super) async fn search_until_answered(
        &self,
        input: &TaskInput,
        records: &mut Vec<StepRecord>,
    ) -> Result<(Vec<RetrievedHit>, String), TaskEnd> {
        let at_most = self.context.row().spec.recalls.at_most;
        let mut trail = self.trail(input);
        loop {
            if let Some(query) = trail.open_query().cloned() {
                self.search(query, &mut trail).await?;
                continue;
            }
            self.context.check_running()?;
            let number = u32::try_from(trail.searched.len()).unwrap_or(u32::MAX);
            let hits = union(trail.lists());
            let trace = self.trace_of(StepNo::phrase(number));
            let entered = self.context.enter(At::Answerer);
            let left = at_most.saturating_sub(number);
            let made = self
                .context
                .answerer()
                .make_move(self.asked_for(trace.as_ref()), self.shown(&hits), &trail.past(), left)
                .await
                .map_err(|end| end.after_progress(!trail.is_fresh))?;
            let Called { value, reply, records: calls, usage, mut timing } = made;
            timing.in_flight = entered.in_flight;
            match value {
                Move::Search(query) => {
                    let facts = StepFacts::Phrased { phase: Phase::Answer, usage, timing: trail.timed(timing) };
                    let text = StepText::Phrased { queries: vec![query], raw: reply.text };
                    let record = self.record(StepNo::phrase(number), facts, text, calls);
                    self.store(record, &mut trail).await?;
                }
                Move::Answer(answer) => {
                    records.push(self.together(&hits).await?);
                    let called = Called { value: answer.clone(), reply, records: calls, usage, timing };
                    records.push(answer_record(self.task, Answered::from_call(called)));
                    return Ok((hits, answer));
                }
            }
        }
    }

    /// Recalls for the question in its own words and in others; the joined recall is added to the records.
    pub(super) async fn recall_rephrased(
        &self,
        input: &TaskInput,
        records: &mut Vec<StepRecord>,
    ) -> Result<Vec<RetrievedHit>, TaskEnd> {
        let mut trail = self.trail(input);
        while trail.phrased.is_empty() {
            self.context.check_running()?;
            let rephraser = self.context.rephraser();
            let rephraser =
                rephraser.ok_or_else(|| Failure::permanent("no_model", "the run has no model that rephrases"))?;
            let trace = self.trace_of(StepNo::phrase(0));
            let Called { value, reply, records: calls, usage, timing } =
                rephraser.rephrase(self.asked_for(trace.as_ref()), self.question).await?;
            let facts = StepFacts::Phrased { phase: Phase::Recall, usage, timing: trail.timed(timing) };
            let text = StepText::Phrased { queries: value, raw: reply.text };
            self.store(self.record(StepNo::phrase(0), facts, text, calls), &mut trail).await?;
        }
        loop {
            // the question's own words come first: where lists tie, so do their hits
            let next = match trail.searched.len() {
                0 => Some(&self.question.text),
                number => trail.phrased[0].get(number - 1),
            };
            let Some(query) = next.cloned() else { break };
            self.search(query, &mut trail).await?;
        }
        let k = recall_query(self.context, self.question, self.data).k;
        let mut hits = by_reciprocal_rank(trail.lists());
        if !self.context.system().capabilities().token_budget {
            hits.truncate(k as usize);
        }
        records.push(self.together(&hits).await?);
        Ok(hits)
    }

    fn trail(&self, input: &TaskInput) -> Trail {
        Trail::from_texts(input.texts.iter().filter(|(task, ..)| *task == self.task.task).map(|(.., text)| text))
    }

    fn asked_for<'s>(&'s self, trace: Option<&'s StepTrace>) -> AskedFor<'s> {
        AskedFor { task: &self.task, question_id: &self.question.question_id, draw: 0, trace }
    }

    fn trace_of(&self, step: StepNo) -> Option<StepTrace> {
        self.context.trace().map(|trace| trace.step(&self.question.question_id, self.task.task, step))
    }

    /// Makes the next of several recalls and stores it.
    async fn search(&self, query: String, trail: &mut Trail) -> Result<(), TaskEnd> {
        let step = StepNo::search(u32::try_from(trail.searched.len()).unwrap_or(u32::MAX));
        let found = self.look_for(&query, step).await?;
        let Recall { hits, effective_k, usage, .. } = found.recall;
        // failed attempts of the task belong to the step that it began with
        let attempts = if trail.is_fresh { found.timing.attempts } else { 1 };
        let facts = StepFacts::Searched {
            generation: found.generation,
            hits: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            effective_k,
            usage,
            timing: trail.timed(Timing { attempts, ..found.timing }),
        };
        self.store(self.record(step, facts, StepText::Searched { query, hits }, Vec::new()), trail).await
    }

    /// Stores a step and goes on from what is stored: whoever was first is followed.
    async fn store(&self, record: StepRecord, trail: &mut Trail) -> Result<(), TaskEnd> {
        let text = record.text.clone();
        let already = self.tools.writer.submit(vec![record]).await?;
        if already.iter().all(Option::is_none) {
            text.iter().for_each(|text| trail.add(text));
            return Ok(());
        }
        let stored = self.tools.store.question_texts(self.task.run, &[self.task.task]).await?;
        let before = trail.phrased.len() + trail.searched.len();
        *trail = Trail { is_fresh: false, ..Trail::from_texts(stored.iter().map(|(.., text)| text)) };
        if trail.phrased.len() + trail.searched.len() <= before {
            return Err(StoreError::Corrupt(
                format!("a step of {:?} is stored without its text", self.task.task).into(),
            )
            .into());
        }
        Ok(())
    }

    /// What several recalls found together, as the question's recall; what they cost and took stands in their own steps.
    async fn together(&self, hits: &[RetrievedHit]) -> Result<StepRecord, TaskEnd> {
        let row = self.context.current_row(self.tools.store.as_ref(), self.data).await?;
        let k = recall_query(self.context, self.question, self.data).k;
        let recall = Recall { hits: hits.to_vec(), effective_k: k, ..Recall::default() };
        let timing = Timing { started_us: now_us(), session: self.task.session.0, ..Timing::default() };
        let facts = self.recalled(row.generation, &recall, timing);
        Ok(self.record(StepNo::RECALL, facts, StepText::Recalled { hits: recall.hits }, Vec::new()))
    }
}

/// What makes two hits the same: ids of systems that give none are places in a list.
fn same(hit: &RetrievedHit) -> (&str, &str) {
    (&hit.id, &hit.text)
}

/// All hits once, in the order of first sight.
fn union<'h>(lists: impl Iterator<Item = &'h [RetrievedHit]>) -> Vec<RetrievedHit> {
    let mut seen = HashSet::new();
    lists.flatten().filter(|hit| seen.insert(same(hit))).cloned().collect()
}

/// All hits once, by the sum of 1 / (60 + rank) over the lists that hold them; equal ones in the order of first sight. Within a
/// list a hit counts where it stands first.
fn by_reciprocal_rank<'h>(lists: impl Iterator<Item = &'h [RetrievedHit]> + Clone) -> Vec<RetrievedHit> {
    let mut sums: HashMap<(&str, &str), f64> = HashMap::new();
    for list in lists.clone() {
        let mut seen = HashSet::new();
        for (hit, rank) in list.iter().zip(1_u32..).filter(|(hit, _)| seen.insert(same(hit))) {
            *sums.entry(same(hit)).or_default() += 1.0 / (RRF_K + f64::from(rank));
        }
    }
    let mut hits = union(lists);
    hits.sort_by(|a, b| sums[&same(b)].total_cmp(&sums[&same(a)]));
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(ids: &str) -> Vec<RetrievedHit> {
        ids.chars().map(|id| RetrievedHit { id: id.to_string(), ..RetrievedHit::default() }).collect()
    }

    fn ids(hits: &[RetrievedHit]) -> String {
        hits.iter().map(|hit| hit.id.as_str()).collect()
    }

    #[test]
    fn what_several_recalls_found_is_joined_by_first_sight_or_by_rank() {
        let lists = ["abc", "dba", "b"].map(hits);
        let joined = || lists.iter().map(Vec::as_slice);
        assert_eq!(ids(&union(joined())), "abcd");
        // b is second, second and first; a first and third; d beats c by its rank
        assert_eq!(ids(&by_reciprocal_rank(joined())), "badc");
        let same_place = [hits("a"), vec![RetrievedHit { text: "another".into(), ..hits("a").remove(0) }]];
        assert_eq!(union(same_place.iter().map(Vec::as_slice)).len(), 2, "one id of two texts is a place in a list");
    }

    #[test]
    fn a_model_is_told_what_each_search_brought_that_was_new() {
        let phrased = |query: &str| StepText::Phrased { queries: vec![query.to_owned()], raw: String::new() };
        let searched = |query: &str, found: &str| StepText::Searched { query: query.to_owned(), hits: hits(found) };
        let texts = [phrased("one"), searched("one", "ab"), phrased("two"), searched("two", "bc"), phrased("three")];
        let trail = Trail::from_texts(texts.iter());
        let past: Vec<_> = trail.past().into_iter().map(|p| (p.query.to_owned(), p.found, p.new)).collect();
        assert_eq!(past, [("one".to_owned(), 2, 2), ("two".to_owned(), 2, 1)]);
        assert_eq!(trail.open_query().map(String::as_str), Some("three"));
        assert_eq!(Trail::from_texts(texts[..4].iter()).open_query(), None);
    }

    #[test]
    fn joining_loses_and_repeats_nothing() {
        let some = ["", "a", "ab", "ba", "aab", "cde", "edcba", "fff"];
        for (first, second, third) in some.iter().flat_map(|a| some.iter().flat_map(move |b| some.map(|c| (*a, *b, c))))
        {
            let lists = [first, second, third].map(hits);
            let slices = || lists.iter().map(Vec::as_slice);
            let mut expected: Vec<char> = [first, second, third].concat().chars().collect();
            expected.sort_unstable();
            expected.dedup();
            for joined in [union(slices()), by_reciprocal_rank(slices())] {
                let mut found: Vec<char> = ids(&joined).chars().collect();
                found.sort_unstable();
                assert_eq!(found, expected, "{first} {second} {third}");
            }
        }
    }
}
