//! The questions of two runs, joined by id, in few bytes.

use std::{borrow::Cow, collections::HashMap};

use bench_proto::{
    comparison::Unpaired,
    facts::QuestionFacts,
    profile::Part,
    retrieval::{RetrievalMetrics, cutoffs},
    step::{RankHits, Retrieval},
};

use crate::questions::has_score;

/// One question of one run, by one metric; a large run has many, so all have the same width and nothing of their own.
#[derive(Debug, Clone, Copy)]
struct Row {
    id: IdRange,
    /// NaN: not scored.
    score: f64,
    /// NaN: no ground truth, or nothing was recalled.
    turn_recall: f32,
    session_recall: f32,
    bank: u32,
    category: u16,
}

impl Row {
    fn figures(&self) -> [f64; 3] {
        [self.score, f64::from(self.turn_recall), f64::from(self.session_recall)]
    }

    /// Makes the figures the means of what they were, of so many runs each, and another run's.
    fn average_in(&mut self, other: &Self, counts: &mut [u32; 3]) {
        let mut means = self.figures();
        for ((mean, other), count) in means.iter_mut().zip(other.figures()).zip(counts) {
            if !other.is_nan() {
                let so_far = if *count == 0 { 0.0 } else { *mean * f64::from(*count) };
                *count += 1;
                *mean = (so_far + other) / f64::from(*count);
            }
        }
        self.score = means[0];
        self.turn_recall = means[1] as f32;
        self.session_recall = means[2] as f32;
    }
}

/// Where an id stands in [`Ids`], in bytes: four gigabytes are the ids of a hundred million questions.
#[derive(Debug, Clone, Copy)]
struct IdRange {
    start: u32,
    length: u32,
}

/// Ids of questions, one after the other.
#[derive(Debug, Clone, Default)]
struct Ids(String);

impl Ids {
    fn add(&mut self, id: &str) -> IdRange {
        let place = IdRange { start: self.0.len() as u32, length: id.len() as u32 };
        self.0.push_str(id);
        place
    }

    fn get(&self, place: IdRange) -> &str {
        &self.0[place.start as usize..][..place.length as usize]
    }
}

/// The questions of a run, as far as comparing needs them.
#[derive(Debug, Clone)]
pub struct RunFacts {
    metric: String,
    k: u32,
    rows: Vec<Row>,
    ids: Ids,
    banks: Names,
    categories: Names,
    turns: TurnsSeen,
}

/// Whether hits of a run carry turns at all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnsSeen {
    /// Ids in the ranked lists of the questions that have ground truth at the level of turns.
    ranked: u64,
    /// Questions whose hits carried no turn.
    without: u64,
}

impl TurnsSeen {
    pub(crate) fn add(&mut self, retrieval: &Retrieval) {
        let hits_of_sessions = retrieval.session.gold > 0 && retrieval.session.ranked > 0;
        self.without += u64::from(retrieval.turn.gold == 0 && hits_of_sessions);
        self.ranked += if retrieval.turn.gold == 0 { 0 } else { u64::from(retrieval.turn.ranked) };
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.ranked += other.ranked;
        self.without += other.without;
    }

    /// Whether turn metrics can be told: recalls without any hit say nothing about turns where no hit of the run carries one.
    pub(crate) fn can_be_told(self) -> bool {
        self.ranked > 0 || self.without == 0
    }
}

/// Names by number of first appearance.
#[derive(Debug, Clone, Default)]
struct Names {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let new = self.list.len() as u32;
        self.list.push(name.to_owned());
        self.numbers.insert(name.to_owned(), new);
        new
    }
}

impl RunFacts {
    /// An empty one: scores by `metric`, recall at the largest cut-off up to `top_k` (the smaller one of both runs).
    #[must_use]
    pub fn new(metric: &str, top_k: u32) -> Self {
        Self {
            metric: metric.to_owned(),
            k: cutoffs(top_k).last().unwrap_or(top_k),
            rows: Vec::new(),
            ids: Ids::default(),
            banks: Names::default(),
            categories: Names::default(),
            turns: TurnsSeen::default(),
        }
    }

    /// Adds a question that ended.
    pub fn add(&mut self, facts: &QuestionFacts) {
        let score = facts.scores.iter().find(|(name, _)| *name == self.metric).map(|(_, score)| *score);
        let recall =
            |hits: &RankHits| RetrievalMetrics::at(hits, self.k).map_or(f32::NAN, |metrics| metrics.recall as f32);
        facts.retrieval.iter().for_each(|retrieval| self.turns.add(retrieval));
        let row = Row {
            id: self.ids.add(&facts.question_id),
            score: score.filter(|_| has_score(facts.outcome)).unwrap_or(f64::NAN),
            turn_recall: facts.retrieval.as_ref().map_or(f32::NAN, |r| recall(&r.turn)),
            session_recall: facts.retrieval.as_ref().map_or(f32::NAN, |r| recall(&r.session)),
            bank: self.banks.number(&facts.bank_id),
            category: self.categories.number(&facts.category) as u16,
        };
        self.rows.push(row);
    }

    /// Puts in order what it holds. Not needed, but parts of a large run can do it each on a thread of its own.
    pub fn settle(&mut self) {
        let Self { rows, ids, .. } = self;
        rows.sort_by(|x, y| ids.get(x.id).cmp(ids.get(y.id)));
    }

    /// Its questions by their ids.
    fn by_id(&self) -> Vec<(&str, &Row)> {
        // parts that were settled are merged, not sorted again
        let mut rows: Vec<(&str, &Row)> = self.rows.iter().map(|row| (self.ids.get(row.id), row)).collect();
        rows.sort_by(|x, y| x.0.cmp(y.0));
        rows
    }

    /// Adds the questions of another part of the same run.
    pub fn merge(&mut self, other: Self) {
        let banks: Vec<u32> = other.banks.list.iter().map(|name| self.banks.number(name)).collect();
        let categories: Vec<u16> =
            other.categories.list.iter().map(|name| self.categories.number(name) as u16).collect();
        self.turns.merge(other.turns);
        let before = self.ids.0.len() as u32;
        self.ids.0.push_str(&other.ids.0);
        self.rows.extend(other.rows.into_iter().map(|row| Row {
            id: IdRange { start: row.id.start + before, ..row.id },
            bank: banks[row.bank as usize],
            category: categories[usize::from(row.category)],
            ..row
        }));
    }

    /// The mean of several runs, question by question, over those that scored it. Of none: an empty one.
    #[must_use]
    pub fn mean(runs: Vec<Self>) -> Self {
        let mut runs = runs.into_iter();
        let Some(mut mean) = runs.next() else { return Self::new("", 0) };
        let mut places: HashMap<Box<str>, usize> =
            mean.rows.iter().enumerate().map(|(place, row)| (mean.ids.get(row.id).into(), place)).collect();
        let mut counts: Vec<[u32; 3]> =
            mean.rows.iter().map(|row| row.figures().map(|f| u32::from(!f.is_nan()))).collect();
        for run in runs {
            mean.turns.merge(run.turns);
            for row in run.rows {
                let id = run.ids.get(row.id);
                let place = *places.entry(id.into()).or_insert_with(|| {
                    let bank = mean.banks.number(&run.banks.list[row.bank as usize]);
                    let category = mean.categories.number(&run.categories.list[usize::from(row.category)]) as u16;
                    let id = mean.ids.add(id);
                    let nothing = Row { score: f64::NAN, turn_recall: f32::NAN, session_recall: f32::NAN, ..row };
                    mean.rows.push(Row { id, bank, category, ..nothing });
                    counts.push([0; 3]);
                    mean.rows.len() - 1
                });
                mean.rows[place].average_in(&row, &mut counts[place]);
            }
        }
        mean
    }

    /// Whether any question has a score by the metric.
    #[must_use]
    pub fn has_scores(&self) -> bool {
        self.rows.iter().any(|row| !row.score.is_nan())
    }
}

/// A question with both figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) cluster: u32,
    pub(crate) category: u16,
}

/// The questions that both runs scored, in byte order of their ids, so that the order of arrival cannot show.
#[derive(Debug, Clone)]
pub struct PairedFacts<'a> {
    pub(crate) ids: Vec<&'a str>,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) turn_recall: Vec<Pair>,
    pub(crate) session_recall: Vec<Pair>,
    pub(crate) banks: &'a [String],
    pub(crate) categories: &'a [String],
    pub(crate) unpaired: Unpaired,
}

impl<'a> PairedFacts<'a> {
    /// Joins two runs by question id. Banks and categories are those of the first.
    #[must_use]
    pub fn of(a: &'a RunFacts, b: &RunFacts) -> Self {
        let mut joined = Self {
            ids: Vec::new(),
            pairs: Vec::new(),
            turn_recall: Vec::new(),
            session_recall: Vec::new(),
            banks: &a.banks.list,
            categories: &a.categories.list,
            unpaired: Unpaired::default(),
        };
        let mut rest = b.by_id().into_iter().peekable();
        for (id, row) in a.by_id() {
            while let Some((_, before)) = rest.next_if(|(other, _)| *other < id) {
                joined.unpaired.only_b += u64::from(!before.score.is_nan());
            }
            match rest.next_if(|(other, _)| *other == id) {
                Some((_, other)) => joined.join(id, row, other),
                None => joined.unpaired.only_a += u64::from(!row.score.is_nan()),
            }
        }
        if !(a.turns.can_be_told() && b.turns.can_be_told()) {
            joined.turn_recall.clear();
        }
        joined.unpaired.only_b += rest.filter(|(_, row)| !row.score.is_nan()).count() as u64;
        joined
    }

    fn join(&mut self, id: &'a str, a: &Row, b: &Row) {
        let pair = |x: f64, y: f64| Pair { a: x, b: y, cluster: a.bank, category: a.category };
        match (a.score.is_nan(), b.score.is_nan()) {
            (false, false) => {
                self.ids.push(id);
                self.pairs.push(pair(a.score, b.score));
            }
            (false, true) => self.unpaired.only_a += 1,
            (true, false) => self.unpaired.only_b += 1,
            (true, true) => self.unpaired.neither += 1,
        }
        let recall = |x: f32, y: f32| (!x.is_nan() && !y.is_nan()).then(|| pair(f64::from(x), f64::from(y)));
        self.turn_recall.extend(recall(a.turn_recall, b.turn_recall));
        self.session_recall.extend(recall(a.session_recall, b.session_recall));
    }

    /// The pairs that count in the headline.
    pub(crate) fn counted(&self, headline: &Part) -> Cow<'_, [Pair]> {
        if headline.is_whole() {
            return Cow::Borrowed(&self.pairs);
        }
        let counts: Vec<bool> = self.categories.iter().map(|name| headline.counts(name)).collect();
        Cow::Owned(self.pairs.iter().filter(|pair| counts[usize::from(pair.category)]).copied().collect())
    }

    /// The pairs of each category, in the order of their names.
    pub(crate) fn by_category(&self) -> Vec<(&str, Vec<Pair>)> {
        let mut names: Vec<(usize, &str)> = self.categories.iter().map(String::as_str).enumerate().collect();
        names.sort_unstable_by_key(|(_, name)| *name);
        let of = |number: usize| self.pairs.iter().filter(|p| usize::from(p.category) == number).copied().collect();
        let all = names.into_iter().map(|(number, name)| (name, of(number)));
        all.filter(|(_, pairs): &(&str, Vec<Pair>)| !pairs.is_empty()).collect()
    }
}
