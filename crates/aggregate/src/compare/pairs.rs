//! The questions of two runs, joined by id, in few bytes.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use bench_proto::{
    comparison::Unpaired,
    facts::QuestionFacts,
    profile::Part,
    retrieval::{RetrievalMetrics, cutoffs},
    step::{RankHits, Retrieval},
};

use crate::{
    facets::{Facet, facets},
    kinds::{Kind, Kinds},
    strata::Seen,
};

/// The score of a question that ended with scores, but with none by the metric: a NaN of its own, which takes no room beside the
/// score.
const WITHOUT_FIGURE: f64 = f64::from_bits(f64::NAN.to_bits() ^ 1);

/// Whether a score is none because the metric does not apply to a question that ended with scores.
fn is_without_figure(score: f64) -> bool {
    score.to_bits() == WITHOUT_FIGURE.to_bits()
}

/// Whether a question ended with scores, with or without one by the metric.
pub(crate) fn ended_with_scores(score: f64) -> bool {
    !score.is_nan() || is_without_figure(score)
}

/// One question of one run, by one metric; a large run has many, so all have the same width and nothing of their own.
#[derive(Debug, Clone, Copy)]
struct Row {
    id: IdRange,
    /// NaN: not scored, or [`WITHOUT_FIGURE`].
    score: f64,
    /// NaN: no ground truth, or nothing was recalled.
    turn_recall: f32,
    session_recall: f32,
    bank: u32,
    /// Number of its kind: category and facets.
    kind: u32,
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
        // as long as no run has a figure, one that says why is enough
        self.score = if means[0].is_nan() && is_without_figure(other.score) { other.score } else { means[0] };
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
    /// Hits that its runs were asked for, as far as it was said.
    asked_for: BTreeSet<u32>,
    rows: Vec<Row>,
    ids: Ids,
    banks: Names,
    kinds: Kinds,
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
            asked_for: BTreeSet::new(),
            rows: Vec::new(),
            ids: Ids::default(),
            banks: Names::default(),
            kinds: Kinds::default(),
            turns: TurnsSeen::default(),
        }
    }

    /// Says for how many hits its run asked: session recall at k of runs that asked for different numbers is no difference of
    /// what they find.
    #[must_use]
    pub fn asking_for(mut self, top_k: u32) -> Self {
        self.asked_for.insert(top_k);
        self
    }

    /// The cut-off of recall.
    pub(crate) fn k(&self) -> u32 {
        self.k
    }

    /// The numbers of hits that the runs of both were asked for.
    pub(crate) fn asked_for(&self, other: &Self) -> BTreeSet<u32> {
        self.asked_for.union(&other.asked_for).copied().collect()
    }

    /// Adds a question that ended.
    pub fn add(&mut self, facts: &QuestionFacts) {
        let no_score = if facts.outcome.has_score() { WITHOUT_FIGURE } else { f64::NAN };
        let recall =
            |hits: &RankHits| RetrievalMetrics::at(hits, self.k).map_or(f32::NAN, |metrics| metrics.recall as f32);
        facts.retrieval.iter().for_each(|retrieval| self.turns.add(retrieval));
        self.rows.push(Row {
            id: self.ids.add(&facts.question_id),
            score: facts.score(&self.metric).unwrap_or(no_score),
            turn_recall: facts.retrieval.as_ref().map_or(f32::NAN, |r| recall(&r.turn)),
            session_recall: facts.retrieval.as_ref().map_or(f32::NAN, |r| recall(&r.session)),
            bank: self.banks.number(&facts.bank_id),
            kind: self.kinds.number(&facts.category, &facts.facets),
        });
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

    /// Its questions in byte order of their ids: id, bank, kind, and the score, NaN where there is none; [`ended_with_scores`] tells
    /// these apart.
    pub(crate) fn scores_by_id(&self) -> impl Iterator<Item = (&str, &str, &Kind, f64)> {
        let named = |row: &Row| (self.banks.list[row.bank as usize].as_str(), &self.kinds.list()[row.kind as usize]);
        self.by_id().into_iter().map(move |(id, row)| {
            let (bank, kind) = named(row);
            (id, bank, kind, row.score)
        })
    }

    /// Adds the questions of another part of the same run.
    pub fn merge(&mut self, other: Self) {
        let banks: Vec<u32> = other.banks.list.iter().map(|name| self.banks.number(name)).collect();
        let kinds = self.kinds.take_in(&other.kinds);
        self.turns.merge(other.turns);
        let before = self.ids.0.len() as u32;
        self.ids.0.push_str(&other.ids.0);
        self.rows.extend(other.rows.into_iter().map(|row| Row {
            id: IdRange { start: row.id.start + before, ..row.id },
            bank: banks[row.bank as usize],
            kind: kinds[row.kind as usize],
            ..row
        }));
    }

    /// The mean of several runs, question by question, over those that scored it. Of none: an empty one.
    #[must_use]
    pub fn mean(runs: Vec<Self>) -> Self {
        let mut runs = runs.into_iter();
        let Some(mut mean) = runs.next() else { return Self::new("", 0) };
        if runs.as_slice().is_empty() {
            return mean;
        }
        let mut places: HashMap<Box<str>, usize> =
            mean.rows.iter().enumerate().map(|(place, row)| (mean.ids.get(row.id).into(), place)).collect();
        let mut counts: Vec<[u32; 3]> =
            mean.rows.iter().map(|row| row.figures().map(|f| u32::from(!f.is_nan()))).collect();
        for run in runs {
            mean.turns.merge(run.turns);
            mean.asked_for.extend(&run.asked_for);
            let kinds = mean.kinds.take_in(&run.kinds);
            for row in run.rows {
                let id = run.ids.get(row.id);
                let place = *places.entry(id.into()).or_insert_with(|| {
                    let bank = mean.banks.number(&run.banks.list[row.bank as usize]);
                    let id = mean.ids.add(id);
                    let nothing = Row { score: f64::NAN, turn_recall: f32::NAN, session_recall: f32::NAN, ..row };
                    mean.rows.push(Row { id, bank, kind: kinds[row.kind as usize], ..nothing });
                    counts.push([0; 3]);
                    mean.rows.len() - 1
                });
                mean.rows[place].average_in(&row, &mut counts[place]);
            }
        }
        mean
    }

    /// The mean over some cells, each of which is the mean of its runs: a cell counts alike however many runs it has.
    #[must_use]
    pub fn mean_of_cells(cells: Vec<Vec<Self>>) -> Self {
        Self::mean(cells.into_iter().filter(|runs| !runs.is_empty()).map(Self::mean).collect())
    }

    /// The questions of the first of some runs of one system, by bank, with the chance that another run passes each: what it
    /// did so far, but for the variance that the runs show among each other, or `noise` where no question was asked twice.
    #[must_use]
    pub fn rates(runs: &[Self], noise: f64) -> Rates {
        let mut seen: BTreeMap<&str, (&str, &str, Vec<f64>)> = BTreeMap::new();
        for (number, run) in runs.iter().enumerate() {
            for row in run.rows.iter().filter(|row| !row.score.is_nan()) {
                let id = run.ids.get(row.id);
                if number == 0 {
                    let (bank, kind) = (&run.banks.list[row.bank as usize], &run.kinds.list()[row.kind as usize]);
                    seen.insert(id, (bank.as_str(), kind.category.as_str(), Vec::new()));
                }
                if let Some((.., scores)) = seen.get_mut(id) {
                    scores.push(row.score);
                }
            }
        }
        let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
        let variance = |scores: &[f64]| {
            let middle = mean(scores);
            scores.iter().map(|score| (score - middle).powi(2)).sum::<f64>() / (scores.len() - 1) as f64
        };
        let variances: Vec<f64> =
            seen.values().filter(|(.., scores)| scores.len() > 1).map(|(.., scores)| variance(scores)).collect();
        let noise = if variances.is_empty() { noise } else { mean(&variances) }.clamp(0.0, 0.249);
        // e(1 − e) is the variance of a verdict that is turned with probability e
        let turned = (1.0 - (1.0 - 4.0 * noise).sqrt()) / 2.0;
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let mut banks: BTreeMap<&str, Vec<Rate>> = BTreeMap::new();
        for (bank, category, scores) in seen.values() {
            let next = numbers.len() as u32;
            let category = *numbers.entry(*category).or_insert(next);
            let rate = if mean(scores) >= 0.5 { 1.0 - turned } else { turned };
            banks.entry(*bank).or_default().push(Rate { category, rate });
        }
        let mut categories: Vec<(u32, String)> =
            numbers.into_iter().map(|(name, number)| (number, name.to_owned())).collect();
        categories.sort_unstable();
        Rates {
            banks: banks.into_values().collect(),
            categories: categories.into_iter().map(|(_, name)| name).collect(),
            noise,
        }
    }

    /// Whether any question has a score by the metric.
    #[must_use]
    pub fn has_scores(&self) -> bool {
        self.rows.iter().any(|row| !row.score.is_nan())
    }
}

/// A question of a dataset: its category, and the chance that a run passes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Number of the category.
    pub category: u32,
    /// From 0 to 1.
    pub rate: f64,
}

/// What is expected of further runs of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// The questions of each bank.
    pub banks: Vec<Vec<Rate>>,
    /// Names of the categories, by number.
    pub categories: Vec<String>,
    /// Variance of a question's verdict from run to run.
    pub noise: f64,
}

/// A question with both figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) cluster: u32,
    /// Number of the question's kind.
    pub(crate) kind: u32,
}

/// A facet, and the pairs of each of its values.
type FacetPairs = (Facet, Vec<Vec<Pair>>);

/// The questions that both runs scored, in byte order of their ids, so that the order of arrival cannot show.
#[derive(Debug, Clone)]
pub struct PairedFacts<'a> {
    pub(crate) ids: Vec<&'a str>,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) turn_recall: Vec<Pair>,
    pub(crate) session_recall: Vec<Pair>,
    pub(crate) banks: &'a [String],
    pub(crate) kinds: &'a Kinds,
    pub(crate) unpaired: Unpaired,
    /// Number of a kind → questions of it that ended with scores in both runs, in one of them with none by the metric.
    without_figure: BTreeMap<u32, u64>,
    /// Facets that questions of the second run have.
    facets_of_b: BTreeSet<String>,
}

impl<'a> PairedFacts<'a> {
    /// Joins two runs by question id. Banks, categories and facets are those of the first.
    #[must_use]
    pub fn by_question(a: &'a RunFacts, b: &RunFacts) -> Self {
        let mut joined = Self {
            ids: Vec::new(),
            pairs: Vec::new(),
            turn_recall: Vec::new(),
            session_recall: Vec::new(),
            banks: &a.banks.list,
            kinds: &a.kinds,
            unpaired: Unpaired::default(),
            without_figure: BTreeMap::new(),
            facets_of_b: b.kinds.list().iter().flat_map(|kind| kind.facets.keys().cloned()).collect(),
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
        let pair = |x: f64, y: f64| Pair { a: x, b: y, cluster: a.bank, kind: a.kind };
        match (a.score.is_nan(), b.score.is_nan()) {
            (false, false) => {
                self.ids.push(id);
                self.pairs.push(pair(a.score, b.score));
            }
            (false, true) => self.unpaired.only_a += 1,
            (true, false) => self.unpaired.only_b += 1,
            (true, true) => self.unpaired.neither += 1,
        }
        if ended_with_scores(a.score) && ended_with_scores(b.score) && (a.score.is_nan() || b.score.is_nan()) {
            *self.without_figure.entry(a.kind).or_default() += 1;
        }
        let recall = |x: f32, y: f32| (!x.is_nan() && !y.is_nan()).then(|| pair(f64::from(x), f64::from(y)));
        self.turn_recall.extend(recall(a.turn_recall, b.turn_recall));
        self.session_recall.extend(recall(a.session_recall, b.session_recall));
    }

    /// Questions of each kind that ended with scores in both runs: the pairs, and those that the metric does not apply to.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut of_kinds = vec![0; self.kinds.list().len()];
        self.pairs.iter().for_each(|pair| of_kinds[pair.kind as usize] += 1);
        self.without_figure.iter().for_each(|(kind, questions)| of_kinds[*kind as usize] += questions);
        of_kinds.into_iter().map(|questions| Seen { all: questions, scored: questions }).collect()
    }

    /// The pairs that count in the headline.
    pub(crate) fn counted(&self, headline: &Part) -> Cow<'_, [Pair]> {
        if headline.is_whole() {
            return Cow::Borrowed(&self.pairs);
        }
        let counts: Vec<bool> = self.kinds.list().iter().map(|kind| headline.counts(&kind.category)).collect();
        Cow::Owned(self.pairs.iter().filter(|pair| counts[pair.kind as usize]).copied().collect())
    }

    /// The pairs of each category, in the order of their names.
    pub(crate) fn by_category(&self) -> BTreeMap<&str, Vec<Pair>> {
        let mut of_categories: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
        for pair in &self.pairs {
            of_categories.entry(self.category(pair)).or_default().push(*pair);
        }
        of_categories
    }

    /// The category of a pair.
    pub(crate) fn category(&self, pair: &Pair) -> &'a str {
        &self.kinds.list()[pair.kind as usize].category
    }

    /// The pairs of each value of the facets that both runs have, and what to know of these.
    pub(crate) fn by_facet(&self) -> (Vec<FacetPairs>, Vec<String>) {
        let mut of_kinds = vec![0; self.kinds.list().len()];
        self.pairs.iter().for_each(|pair| of_kinds[pair.kind as usize] += 1);
        let (told, notes) = facets(self.kinds.list(), &of_kinds);
        let both = told.into_iter().filter(|facet| self.facets_of_b.contains(&facet.name));
        let with_pairs = both.map(|facet| {
            let mut of_values = vec![Vec::new(); facet.values.len()];
            for pair in &self.pairs {
                if let Some(value) = facet.value_of(pair.kind) {
                    of_values[value as usize].push(*pair);
                }
            }
            (facet, of_values)
        });
        (with_pairs.collect(), notes)
    }
}
