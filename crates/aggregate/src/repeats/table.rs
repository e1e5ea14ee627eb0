//! The scores of the same questions in several runs, joined by id, in few bytes: eight for each score, eight more where it is made
//! of several votes, and some for the question.

use std::{cmp::Ordering, collections::HashMap};

use bench_proto::profile::Part;

use crate::{
    compare::{RunFacts, ended_with_scores},
    kinds::{Kind, Kinds},
};

/// The votes of the headline's judge on one answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VotesOn {
    /// Mean of their scores.
    pub mean: f64,
    /// Their variance, with n − 1.
    pub variance: f64,
    /// How many there are.
    pub n: u32,
}

/// The questions of several runs.
#[derive(Debug, Clone, Default)]
pub struct RepeatTable {
    ids: String,
    /// Where the id of each question ends in `ids`.
    ends: Vec<usize>,
    banks: Vec<String>,
    bank_of: Vec<u32>,
    kinds: Kinds,
    kind_of: Vec<u32>,
    /// One for each run.
    columns: Vec<Column>,
    /// Of judges with several votes: sum and number of the variances of answers' votes, and of their squares.
    votes: VoteNoise,
}

/// What a run has of the questions, by their places.
#[derive(Debug, Clone, Default)]
struct Column {
    /// NaN: no score, told apart as [`ended_with_scores`] does.
    scores: Vec<f64>,
    /// Means of the votes of which the scores are the medians, where there are several; empty where the scores are all there is.
    votes: Vec<f64>,
}

impl Column {
    /// One that takes up what another has.
    fn like(other: &Self) -> Self {
        Self { scores: Vec::with_capacity(other.scores.len()), votes: Vec::with_capacity(other.votes.len()) }
    }

    /// Takes the question at a place of another column.
    fn take(&mut self, other: &Self, at: usize) {
        self.scores.push(other.scores[at]);
        self.votes.extend(other.votes.get(at));
    }

    /// A further question that the run does not know; `other` is what the column was.
    fn lack(&mut self, other: &Self) {
        self.scores.push(f64::NAN);
        self.votes.extend((!other.votes.is_empty()).then_some(f64::NAN));
    }

    /// What a draw of the answer and of its votes came to.
    fn drawn(&self, row: usize) -> f64 {
        self.votes.get(row).copied().unwrap_or(self.scores[row])
    }
}

/// What the votes on single answers say of the judge's noise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct VoteNoise {
    pub(crate) answers: u64,
    pub(crate) sum: f64,
    pub(crate) sum_of_squares: f64,
    /// Votes for each answer.
    pub(crate) votes: u32,
}

impl RepeatTable {
    /// Adds a run; of judges with several votes also these, by question id. The score stays what the run says, the median; what the
    /// noise is made of is told by the means of the votes, which vary as single votes do.
    pub fn add(&mut self, run: &RunFacts, headline: &Part, votes: Option<&HashMap<String, VotesOn>>) {
        let scored = run.scores_by_id().filter(|(_, _, kind, _)| headline.counts(&kind.category));
        let mut merged = Merge::new(self, votes.is_some());
        for (id, bank, kind, score) in scored {
            let of_votes = votes.and_then(|votes| votes.get(id)).filter(|_| !score.is_nan());
            merged.take(id, (bank, kind), (score, of_votes.map_or(score, |votes| votes.mean)));
            if let Some(votes) = of_votes.filter(|votes| votes.n > 1) {
                let noise = &mut merged.new.votes;
                noise.answers += 1;
                noise.sum += votes.variance;
                noise.sum_of_squares += votes.variance * votes.variance;
                noise.votes = noise.votes.max(votes.n);
            }
        }
        *self = merged.finish();
    }

    /// Runs in the table.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.columns.len()
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        self.kinds.list()
    }

    /// Number of questions that some run knows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn id(&self, question: usize) -> &str {
        let start = question.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ids[start..self.ends[question]]
    }

    /// The questions that have a score in every run.
    pub(crate) fn complete(&self) -> Complete<'_> {
        let whole = |question: &usize| self.columns.iter().all(|column| !column.scores[*question].is_nan());
        let rows = (0..self.len()).filter(whole).map(|question| question as u32);
        Complete { table: self, rows: rows.collect() }
    }

    /// Kinds of the questions that ended with scores in every run, in some of them with none by the metric.
    pub(crate) fn without_figure(&self) -> impl Iterator<Item = u32> + '_ {
        let scores = move |question: usize| self.columns.iter().map(move |column| column.scores[question]);
        let lacks = move |question: &usize| {
            scores(*question).all(ended_with_scores) && scores(*question).any(|score| score.is_nan())
        };
        (0..self.len()).filter(lacks).map(move |question| self.kind_of[question])
    }

    fn push(&mut self, id: &str, bank: u32, kind: u32) {
        self.ids.push_str(id);
        self.ends.push(self.ids.len());
        self.bank_of.push(bank);
        self.kind_of.push(kind);
    }
}

/// A table that is made of an old one and a further run, both in byte order of the ids.
struct Merge<'a> {
    old: &'a RepeatTable,
    new: RepeatTable,
    bank_numbers: HashMap<String, u32>,
    kinds_of_old: Vec<u32>,
    at: usize,
    added: Column,
    /// Scores of the further run are made of several votes.
    with_votes: bool,
}

/// What a run has of a question: its score, and the mean of the votes that it is made of; that of a single vote is the score.
type Figures = (f64, f64);

impl<'a> Merge<'a> {
    fn new(old: &'a RepeatTable, with_votes: bool) -> Self {
        let mut new = RepeatTable { banks: old.banks.clone(), votes: old.votes, ..RepeatTable::default() };
        new.columns = old.columns.iter().map(Column::like).collect();
        let kinds_of_old = new.kinds.take_in(&old.kinds);
        let numbers = (0..).zip(&old.banks).map(|(number, name)| (name.clone(), number)).collect();
        Self { old, new, bank_numbers: numbers, kinds_of_old, at: 0, added: Column::default(), with_votes }
    }

    /// A question of the old table, with its figures in the new run.
    fn keep(&mut self, figures: Figures) {
        let (old, at) = (self.old, self.at);
        self.new.push(old.id(at), old.bank_of[at], self.kinds_of_old[old.kind_of[at] as usize]);
        for (column, before) in self.new.columns.iter_mut().zip(&old.columns) {
            column.take(before, at);
        }
        self.add(figures);
        self.at += 1;
    }

    fn add(&mut self, (score, mean_of_votes): Figures) {
        self.added.scores.push(score);
        self.added.votes.extend(self.with_votes.then_some(mean_of_votes));
    }

    fn take(&mut self, id: &str, (bank, kind): (&str, &Kind), figures: Figures) {
        while self.at < self.old.len() {
            match self.old.id(self.at).cmp(id) {
                Ordering::Less => self.keep((f64::NAN, f64::NAN)),
                Ordering::Equal => return self.keep(figures),
                Ordering::Greater => break,
            }
        }
        let kind = self.new.kinds.number(&kind.category, &kind.facets);
        let bank = match self.bank_numbers.get(bank) {
            Some(known) => *known,
            None => {
                let number = self.new.banks.len() as u32;
                self.new.banks.push(bank.to_owned());
                self.bank_numbers.insert(bank.to_owned(), number);
                number
            }
        };
        self.new.push(id, bank, kind);
        self.new.columns.iter_mut().zip(&self.old.columns).for_each(|(column, before)| column.lack(before));
        self.add(figures);
    }

    fn finish(mut self) -> RepeatTable {
        while self.at < self.old.len() {
            self.keep((f64::NAN, f64::NAN));
        }
        self.new.columns.push(self.added);
        self.new
    }
}

/// The questions that every run scored.
pub(crate) struct Complete<'a> {
    table: &'a RepeatTable,
    rows: Vec<u32>,
}

/// A question that every run scored: a row of the table.
#[derive(Clone, Copy)]
pub(crate) struct ScoredQuestion<'a> {
    table: &'a RepeatTable,
    row: usize,
    pub(crate) bank: u32,
    pub(crate) kind: u32,
}

impl<'a> Complete<'a> {
    /// Number of questions.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of repeats, N.
    pub(crate) fn repeats(&self) -> usize {
        self.table.runs()
    }

    /// Number of names of banks: an upper bound of the banks that have a question here.
    pub(crate) fn bank_names(&self) -> usize {
        self.table.banks.len()
    }

    pub(crate) fn votes(&self) -> VoteNoise {
        self.table.votes
    }

    /// In byte order of the ids.
    pub(crate) fn questions(&self) -> impl Iterator<Item = ScoredQuestion<'a>> + '_ {
        self.rows.iter().map(|row| self.question(*row as usize))
    }

    /// The question at a place of their order.
    pub(crate) fn at(&self, place: usize) -> ScoredQuestion<'a> {
        self.question(self.rows[place] as usize)
    }

    fn question(&self, row: usize) -> ScoredQuestion<'a> {
        ScoredQuestion { table: self.table, row, bank: self.table.bank_of[row], kind: self.table.kind_of[row] }
    }
}

impl<'a> ScoredQuestion<'a> {
    /// Its scores in the order of the runs: the medians, where votes are several.
    pub(crate) fn scores(self) -> impl Iterator<Item = f64> + 'a {
        self.table.columns.iter().map(move |column| column.scores[self.row])
    }

    /// What varies from run to run, in the same order: the means of the votes, where these are several, else the scores.
    pub(crate) fn draws(self) -> impl Iterator<Item = f64> + 'a {
        self.table.columns.iter().map(move |column| column.drawn(self.row))
    }

    pub(crate) fn mean(self) -> f64 {
        mean_of(self.scores())
    }

    /// Mean of its draws.
    pub(crate) fn mean_draw(self) -> f64 {
        mean_of(self.draws())
    }

    /// Sample standard deviation of its scores; 0 for a single one.
    pub(crate) fn sd(self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.scores().map(|score| (score - mean).powi(2)).sum();
        (squares / (self.table.runs().max(2) - 1) as f64).sqrt()
    }

    pub(crate) fn id(self) -> &'a str {
        self.table.id(self.row)
    }

    pub(crate) fn bank_id(self) -> &'a str {
        &self.table.banks[self.bank as usize]
    }

    pub(crate) fn category(self) -> &'a str {
        &self.table.kinds()[self.kind as usize].category
    }
}

/// The mean of some figures, one at least. Σ / n of equal ones is off by a bit: no mean lies beyond what it is the mean of.
fn mean_of(figures: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut least, mut most) = (0.0_f64, 0.0_f64, f64::INFINITY, f64::NEG_INFINITY);
    for figure in figures {
        (n, sum, least, most) = (n + 1.0, sum + figure, figure.min(least), figure.max(most));
    }
    (sum / n).clamp(least, most)
}
