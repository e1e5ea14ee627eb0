//! Questions in few bytes: names are numbers, scores lie in one list, times are `f32` microseconds.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    call::Usage,
    facts::{Outcome, QuestionFacts},
    ids::TaskKey,
};

use crate::{kinds::Kinds, strata::Seen};

/// Stands for "no bank, no kind, no metrics": questions of which only the id is known.
const NONE_U32: u32 = u32::MAX;
const NONE_U16: u16 = u16::MAX;
const NO_TASK: TaskKey = TaskKey(-1);

/// Times of a question in microseconds; NaN where there is none. `f32` is exact to a microsecond below 16 s and to seven
/// digits beyond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Times {
    pub(crate) recall: f32,
    pub(crate) answer: f32,
    pub(crate) judge: f32,
    pub(crate) question: f32,
    pub(crate) queue_wait: f32,
    pub(crate) rate_wait: f32,
    pub(crate) provider: f32,
    pub(crate) own: f32,
}

impl Times {
    const NONE: Self = Self {
        recall: f32::NAN,
        answer: f32::NAN,
        judge: f32::NAN,
        question: f32::NAN,
        queue_wait: f32::NAN,
        rate_wait: f32::NAN,
        provider: f32::NAN,
        own: f32::NAN,
    };

    /// Phases that the call store answered alone are left out: only real calls are latency (P9).
    fn from_facts(facts: &QuestionFacts) -> Self {
        let (times, usage) = (&facts.times, &facts.usage);
        let cached_only = |usage: &Usage| usage.cached_calls > 0 && usage.calls == 0;
        let phase =
            |us: Option<u64>, usage: &Usage| us.filter(|_| !cached_only(usage)).map_or(f32::NAN, |us| us as f32);
        let happened = times.recall_us.or(times.answer_us).or(times.judge_us).is_some();
        let whole =
            happened && facts.outcome.has_score() && ![usage.recall, usage.answer, usage.judge].iter().any(cached_only);
        let of_whole = |us: u64| if whole { us as f32 } else { f32::NAN };
        Self {
            recall: phase(times.recall_us, &usage.recall),
            answer: phase(times.answer_us, &usage.answer),
            judge: phase(times.judge_us, &usage.judge),
            question: of_whole(times.question_us),
            queue_wait: if happened { times.queue_wait_us as f32 } else { f32::NAN },
            rate_wait: if happened { times.rate_wait_us as f32 } else { f32::NAN },
            provider: of_whole(times.provider_us),
            own: of_whole(times.question_us.saturating_sub(times.provider_us).saturating_sub(times.rate_wait_us)),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct QuestionRow {
    pub(crate) id: Box<str>,
    pub(crate) task: TaskKey,
    pub(crate) answer_hash: u64,
    scores_at: u32,
    pub(crate) bank: u32,
    /// Number of its kind: category and facets.
    pub(crate) kind: u32,
    pub(crate) times: Times,
    layout: u16,
    pub(crate) outcome: Outcome,
    /// Its trace is kept.
    pub(crate) kept: bool,
}

/// Counts of one bank that the verdict needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bank {
    pub(crate) name: String,
    /// Its number within the run, as in task keys.
    pub(crate) number: u32,
    /// Questions with a recall, but for those of `silent`.
    pub(crate) contexts: u64,
    /// Those of them with an empty context.
    pub(crate) empty_contexts: u64,
    /// Questions for which nothing came back where that may be right.
    pub(crate) silent: u64,
    /// Questions with a score.
    pub(crate) with_score: u64,
}

/// All questions of a run, in any order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Questions {
    /// Parts of a run stay as they come: a million rows would be copied for a moment when two parts became one list.
    parts: Vec<Vec<QuestionRow>>,
    /// (part, row) in byte order of the ids, once settled.
    order: Vec<(u32, u32)>,
    scores: Vec<f64>,
    /// The lists of metrics that occur; nearly always one.
    layouts: Vec<Vec<String>>,
    pub(crate) banks: Vec<Bank>,
    bank_numbers: HashMap<String, u32>,
    pub(crate) kinds: Kinds,
}

impl Questions {
    pub(crate) fn add(&mut self, facts: &QuestionFacts) {
        let bank = self.bank(&facts.bank_id, facts.task.bank());
        let counts = &mut self.banks[bank as usize];
        if let Some(retrieval) = &facts.retrieval {
            let is_silent = retrieval.nothing_expected && facts.context_bytes == Some(0);
            counts.silent += u64::from(is_silent);
            counts.contexts += u64::from(!is_silent);
            counts.empty_contexts += u64::from(facts.empty_context);
        }
        counts.with_score += u64::from(facts.outcome.has_score());
        let row = QuestionRow {
            id: facts.question_id.as_str().into(),
            task: facts.task,
            answer_hash: facts.answer_hash,
            scores_at: self.scores.len() as u32,
            bank,
            times: if facts.outcome == Outcome::NotRun { Times::NONE } else { Times::from_facts(facts) },
            kind: self.kind(&facts.category, &facts.facets),
            layout: self.layout(facts.scores.iter().map(|(metric, _)| metric.as_str())),
            outcome: facts.outcome,
            kept: facts.kept.is_some(),
        };
        self.scores.extend(facts.scores.iter().map(|(_, score)| *score));
        self.push(row);
    }

    fn push(&mut self, row: QuestionRow) {
        match self.parts.last_mut() {
            Some(part) => part.push(row),
            None => self.parts.push(vec![row]),
        }
    }

    /// Number of questions.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// All questions, in no order.
    pub(crate) fn unordered(&self) -> impl Iterator<Item = &QuestionRow> {
        self.parts.iter().flatten()
    }

    /// All settled questions, in byte order of their ids.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &QuestionRow> {
        self.order.iter().map(|(part, row)| &self.parts[*part as usize][*row as usize])
    }

    /// Adds a question of which only the id is known.
    pub(crate) fn add_not_run(&mut self, id: &str) {
        self.push(QuestionRow {
            id: id.into(),
            task: NO_TASK,
            answer_hash: 0,
            scores_at: 0,
            bank: NONE_U32,
            times: Times::NONE,
            kind: NONE_U32,
            layout: NONE_U16,
            outcome: Outcome::NotRun,
            kept: false,
        });
    }

    pub(crate) fn merge(&mut self, other: Self) {
        let banks: Vec<u32> = other
            .banks
            .iter()
            .map(|bank| {
                let here = self.bank(&bank.name, bank.number);
                let counts = &mut self.banks[here as usize];
                counts.contexts += bank.contexts;
                counts.empty_contexts += bank.empty_contexts;
                counts.silent += bank.silent;
                counts.with_score += bank.with_score;
                here
            })
            .collect();
        let kinds = self.kinds.take_in(&other.kinds);
        let layouts: Vec<u16> =
            other.layouts.iter().map(|names| self.layout(names.iter().map(String::as_str))).collect();
        let shift = self.scores.len() as u32;
        self.scores.extend_from_slice(&other.scores);
        for mut part in other.parts {
            for row in &mut part {
                row.scores_at += shift;
                row.bank = banks.get(row.bank as usize).copied().unwrap_or(NONE_U32);
                row.kind = kinds.get(row.kind as usize).copied().unwrap_or(NONE_U32);
                row.layout = layouts.get(usize::from(row.layout)).copied().unwrap_or(NONE_U16);
            }
            self.parts.push(part);
        }
    }

    /// Questions of each kind.
    pub(crate) fn of_kinds(&self) -> Vec<Seen> {
        let mut counts = vec![Seen::default(); self.kinds.list().len()];
        for row in self.unordered() {
            if let Some(Seen { all, scored }) = counts.get_mut(row.kind as usize) {
                *all += 1;
                *scored += u64::from(row.outcome.has_score());
            }
        }
        counts
    }

    /// Puts each part in byte order of its ids; quick when it is already.
    pub(crate) fn sort(&mut self) {
        for part in &mut self.parts {
            part.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        }
    }

    /// Puts questions in byte order of their ids and numbers banks in that of their names, so that what follows cannot depend
    /// on the order of arrival. Kinds keep their numbers: nothing goes by these.
    pub(crate) fn settle(&mut self) {
        self.sort();
        let places = |(part, rows): (u32, &Vec<QuestionRow>)| (0..rows.len() as u32).map(move |row| (part, row));
        self.order = (0..).zip(&self.parts).flat_map(places).collect();
        let id = |(part, row): &(u32, u32)| &self.parts[*part as usize][*row as usize].id;
        // the parts are runs, which this sort finds and merges
        self.order.sort_by(|a, b| id(a).cmp(id(b)));
        let new_banks = ranks(&self.banks, |bank| &bank.name);
        for row in self.parts.iter_mut().flatten() {
            row.bank = new_banks.get(row.bank as usize).map_or(NONE_U32, |rank| *rank as u32);
        }
        self.banks.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.bank_numbers = HashMap::new(); // the old numbers no longer hold
    }

    /// (metric, score) of a question, in the order in which they came.
    pub(crate) fn scores_of<'a>(&'a self, row: &QuestionRow) -> impl Iterator<Item = (&'a str, f64)> {
        let metrics = self.layouts.get(usize::from(row.layout)).map_or(&[][..], Vec::as_slice);
        let at = row.scores_at as usize;
        metrics.iter().map(String::as_str).zip(self.scores.get(at..).unwrap_or_default().iter().copied())
    }

    /// The score of every question that has one by `metric`.
    pub(crate) fn by_metric<'a>(&'a self, metric: &str) -> impl Iterator<Item = (&'a QuestionRow, f64)> {
        let places: Vec<Option<usize>> =
            self.layouts.iter().map(|names| names.iter().position(|name| name == metric)).collect();
        self.rows().filter(|row| row.outcome.has_score()).filter_map(move |row| {
            let place = (*places.get(usize::from(row.layout))?)?;
            Some((row, *self.scores.get(row.scores_at as usize + place)?))
        })
    }

    /// All metrics that occur, without order.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.layouts.iter().flatten().map(String::as_str)
    }

    fn bank(&mut self, name: &str, number: u32) -> u32 {
        // questions mostly come bank by bank
        if let Some(last) = self.parts.last().and_then(|part| part.last())
            && self.banks.get(last.bank as usize).is_some_and(|bank| bank.name == name)
        {
            return last.bank;
        }
        if let Some(known) = self.bank_numbers.get(name) {
            return *known;
        }
        let new = self.banks.len() as u32;
        let (contexts, empty_contexts, silent, with_score) = (0, 0, 0, 0);
        self.banks.push(Bank { name: name.to_owned(), number, contexts, empty_contexts, silent, with_score });
        self.bank_numbers.insert(name.to_owned(), new);
        new
    }

    fn kind(&mut self, category: &str, facets: &BTreeMap<String, String>) -> u32 {
        // questions mostly come kind by kind
        if let Some(last) = self.parts.last().and_then(|part| part.last())
            && let Some(kind) = self.kinds.list().get(last.kind as usize)
            && kind.category == category
            && kind.facets == *facets
        {
            return last.kind;
        }
        self.kinds.number(category, facets)
    }

    fn layout<'a>(&mut self, metrics: impl Iterator<Item = &'a str> + Clone) -> u16 {
        let known = self.layouts.iter().position(|names| names.iter().map(String::as_str).eq(metrics.clone()));
        let place = known.unwrap_or_else(|| {
            self.layouts.push(metrics.map(str::to_owned).collect());
            self.layouts.len() - 1
        });
        place as u16
    }
}

/// For each item its place in the order of the names.
fn ranks<T>(items: &[T], name: impl Fn(&T) -> &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by(|a, b| name(&items[*a]).cmp(name(&items[*b])));
    let mut ranks = vec![0; items.len()];
    for (rank, item) in order.into_iter().enumerate() {
        ranks[item] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use bench_proto::step::Retrieval;

    use super::*;
    use crate::aggregator::tests::question;

    #[test]
    fn a_silence_that_may_be_right_is_no_context() {
        let counted = |nothing_expected, context_bytes| {
            let of = question(2);
            let retrieval = of.retrieval.clone().map(|retrieval| Retrieval { nothing_expected, ..retrieval });
            let mut questions = Questions::default();
            questions.add(&QuestionFacts { retrieval, context_bytes, ..of });
            (questions.banks[0].contexts, questions.banks[0].silent)
        };
        assert_eq!(counted(true, Some(0)), (0, 1));
        assert_eq!([counted(true, Some(9)), counted(true, None), counted(false, Some(0))], [(1, 0); 3]);
    }

    #[test]
    fn a_question_is_small() {
        assert!(std::mem::size_of::<QuestionRow>() <= 80, "{} bytes", std::mem::size_of::<QuestionRow>());
    }
}
