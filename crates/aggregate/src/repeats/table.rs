//! The scores of the same questions in several runs, joined by id, in few bytes: eight for each score, and some for the question.

use std::{cmp::Ordering, collections::HashMap};

use bench_proto::profile::Part;

use crate::{
    compare::{RunFacts, ended_with_scores},
    kinds::{Kind, Kinds},
};

/// The votes of the headline's judge on one answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VotesOn {
    /// Their mean.
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
    /// One column for each run; NaN: no score, told apart as [`ended_with_scores`] does.
    columns: Vec<Vec<f64>>,
    /// Of judges with several votes: sum and number of the variances of answers' votes, and of their squares.
    votes: VoteNoise,
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
    /// Adds a run; of judges with several votes also these, by question id: the mean of the votes is then the question's score.
    pub fn add(&mut self, run: &RunFacts, headline: &Part, votes: Option<&HashMap<String, VotesOn>>) {
        let scored = run.scores_by_id().filter(|(_, _, kind, _)| headline.counts(&kind.category));
        let mut merged = Merge::new(self);
        for (id, bank, kind, score) in scored {
            let of_votes = votes.and_then(|votes| votes.get(id)).filter(|_| !score.is_nan());
            merged.take(id, bank, kind, of_votes.map_or(score, |votes| votes.mean));
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
        let whole = |question: &usize| self.columns.iter().all(|column| !column[*question].is_nan());
        let rows = (0..self.len()).filter(whole).map(|question| question as u32);
        Complete { table: self, rows: rows.collect() }
    }

    /// Kinds of the questions that ended with scores in every run, in some of them with none by the metric.
    pub(crate) fn without_figure(&self) -> impl Iterator<Item = u32> + '_ {
        let scores = move |question: usize| self.columns.iter().map(move |column| column[question]);
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
    added: Vec<f64>,
}

impl<'a> Merge<'a> {
    fn new(old: &'a RepeatTable) -> Self {
        let mut new = RepeatTable { banks: old.banks.clone(), votes: old.votes, ..RepeatTable::default() };
        new.columns = old.columns.iter().map(|column| Vec::with_capacity(column.len())).collect();
        let kinds_of_old = new.kinds.take_in(&old.kinds);
        let numbers = (0..).zip(&old.banks).map(|(number, name)| (name.clone(), number)).collect();
        Self { old, new, bank_numbers: numbers, kinds_of_old, at: 0, added: Vec::with_capacity(old.len()) }
    }

    /// A question of the old table, with its score in the new run.
    fn keep(&mut self, score: f64) {
        let (old, at) = (self.old, self.at);
        self.new.push(old.id(at), old.bank_of[at], self.kinds_of_old[old.kind_of[at] as usize]);
        for (column, before) in self.new.columns.iter_mut().zip(&old.columns) {
            column.push(before[at]);
        }
        self.added.push(score);
        self.at += 1;
    }

    fn take(&mut self, id: &str, bank: &str, kind: &Kind, score: f64) {
        while self.at < self.old.len() {
            match self.old.id(self.at).cmp(id) {
                Ordering::Less => self.keep(f64::NAN),
                Ordering::Equal => return self.keep(score),
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
        self.new.columns.iter_mut().for_each(|column| column.push(f64::NAN));
        self.added.push(score);
    }

    fn finish(mut self) -> RepeatTable {
        while self.at < self.old.len() {
            self.keep(f64::NAN);
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

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
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
    pub(crate) fn questions(&self) -> impl Iterator<Item = Question<'a>> + '_ {
        self.rows.iter().map(|row| self.question(*row as usize))
    }

    /// The question at a place of their order.
    pub(crate) fn at(&self, place: usize) -> Question<'a> {
        self.question(self.rows[place] as usize)
    }

    fn question(&self, row: usize) -> Question<'a> {
        Question { table: self.table, row, bank: self.table.bank_of[row], kind: self.table.kind_of[row] }
    }
}

impl<'a> Question<'a> {
    /// Its scores in the order of the runs.
    pub(crate) fn scores(self) -> impl Iterator<Item = f64> + 'a {
        self.table.columns.iter().map(move |column| column[self.row])
    }

    pub(crate) fn mean(self) -> f64 {
        self.scores().sum::<f64>() / self.table.runs() as f64
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
