//! Shares of variance: banks, questions within banks, what filling a bank again changes, draws of answers, draws of the judge.
//!
//! The score of question q of bank g in repeat r is μ + b_g + q_q + i_gr + e_qr. Mean squares (Searle, Casella and McCulloch 1992,
//! 4.5 and 5.2; the questions have a score in every repeat, so that N is the same for all):
//!
//! | mean square | expectation |
//! |---|---|
//! | MS_E, residual (with a filling of its own for each repeat: without the bank's mean in the repeat) | σ²_e |
//! | MS_I = Σ n_g Σ_r (ȳ_gr − ȳ_g)² / (G (N − 1)), where each repeat fills anew | σ²_e + n̄ σ²_i |
//! | MS_Q = N Σ (ȳ_q − ȳ_g)² / (n − G) | σ²_e + N σ²_q |
//! | MS_B = N Σ n_g (ȳ_g − ȳ)² / (G − 1) | σ²_e + N σ²_q + n₀ σ²_i + n₀ N σ²_b, n₀ = (n − Σ n_g² / n) / (G − 1) |
//!
//! With several votes of a judge their mean stands for the score, which is their median: the variance of an answer's votes estimates
//! σ²_j, and σ²_e = σ²_a + σ²_j / V.
//! Components below 0 are 0. Intervals are generalised confidence intervals (Weerahandi 1993): each mean square is divided by
//! draws of χ²_ν / ν, the components are made of these, and the 2.5 % and 97.5 % quantiles are taken. ν of MS_B is G − 1 and of
//! MS_I G (N − 1); of the others, whose parts are no squares of normal errors where scores are verdicts, it is 2 MS² / Var(MS), with
//! the variance of the parts of single questions (Satterthwaite 1946).

use bench_proto::{
    repeats::{Source, VarianceComponent, VarianceShares},
    summary::Interval,
};

use super::{Repeated, spread::ROUNDING, table::Complete, varies};
use crate::draws::Chance;

/// Draws of the simulated distributions; a quantile of 2.5 % is exact to about a tenth of its distance from the middle.
const DRAWS: usize = 4_000;
/// From so many degrees of freedom on a mean square is taken as known.
const KNOWN: f64 = 1e8;
/// What sums of equal scores may be off by.
const NO_WIDTH: f64 = 1e-12;

/// A mean square with its degrees of freedom.
#[derive(Debug, Clone, Copy, Default)]
struct MeanSquare {
    value: f64,
    freedom: f64,
}

impl MeanSquare {
    /// Σ of the parts over `divisor`, with the degrees of freedom that the parts' own variance says.
    fn of_parts(parts: Parts, divisor: f64) -> Self {
        let value = parts.sum / divisor;
        let n = parts.n as f64;
        let variance = n * ((parts.sum_of_squares - parts.sum * parts.sum / n) / (n - 1.0).max(1.0)).max(0.0);
        let of_value = variance / (divisor * divisor);
        let freedom = if of_value > 0.0 { (2.0 * value * value / of_value).min(KNOWN) } else { KNOWN };
        Self { value, freedom }
    }

    fn draw(self, chance: &mut Chance) -> f64 {
        if self.freedom >= KNOWN || self.value == 0.0 {
            return self.value;
        }
        // χ²_ν is twice a gamma of shape ν / 2
        let chi = 2.0 * chance.gamma(self.freedom / 2.0);
        self.value * self.freedom / chi.max(f64::MIN_POSITIVE)
    }
}

/// Parts of single questions.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    n: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Parts {
    fn add(&mut self, part: f64) {
        self.n += 1;
        self.sum += part;
        self.sum_of_squares += part * part;
    }
}

/// The mean squares of a layout, and what their expectations are made of.
#[derive(Debug, Clone, Copy)]
struct Layout {
    banks: MeanSquare,
    questions: MeanSquare,
    fillings: Option<MeanSquare>,
    residual: MeanSquare,
    votes: Option<MeanSquare>,
    /// V.
    votes_of_an_answer: f64,
    /// N.
    repeats: f64,
    /// n̄.
    mean_bank: f64,
    /// n₀.
    usual_bank: f64,
}

/// Components before they are cut at 0.
#[derive(Debug, Clone, Copy, Default)]
struct Raw {
    bank: f64,
    question: f64,
    ingest: f64,
    answer: f64,
    judge: f64,
}

impl Layout {
    /// The components that some values of the mean squares stand for.
    fn solve(&self, mut draw: impl FnMut(&MeanSquare) -> f64) -> Raw {
        let residual = draw(&self.residual);
        let questions = draw(&self.questions);
        let ingest = self.fillings.as_ref().map_or(0.0, |fillings| (draw(fillings) - residual) / self.mean_bank);
        let banks = draw(&self.banks);
        let judge = self.votes.as_ref().map_or(0.0, &mut draw);
        Raw {
            bank: (banks - questions - self.usual_bank * ingest) / (self.usual_bank * self.repeats),
            question: (questions - residual) / self.repeats,
            ingest,
            answer: residual - judge / self.votes_of_an_answer.max(1.0),
            judge,
        }
    }

    fn point(&self) -> Raw {
        self.solve(|square| square.value)
    }
}

/// The components of variance.
#[derive(Debug, Clone)]
pub(super) struct Components {
    pub(super) bank: f64,
    pub(super) question: f64,
    pub(super) ingest: f64,
    /// σ²_e: of the mean of the votes, where there are several.
    pub(super) draw: f64,
    /// Σ w_g² of the banks' shares of the questions.
    pub(super) sum_of_squared_shares: f64,
    pub(super) banks: u64,
    layout: Layout,
}

/// Sums of a bank's questions.
#[derive(Debug, Clone)]
struct Banks {
    n: Vec<f64>,
    /// Sums by bank and repeat.
    sums: Vec<f64>,
    repeats: usize,
}

impl Banks {
    fn from_questions(complete: &Complete<'_>) -> Self {
        let repeats = complete.repeats();
        let mut banks =
            Self { n: vec![0.0; complete.bank_names()], sums: vec![0.0; complete.bank_names() * repeats], repeats };
        for question in complete.questions() {
            let bank = question.bank as usize;
            banks.n[bank] += 1.0;
            for (sum, score) in banks.sums[bank * repeats..][..repeats].iter_mut().zip(question.draws()) {
                *sum += score;
            }
        }
        banks
    }

    /// ȳ_gr by repeat.
    fn in_repeats(&self, bank: usize) -> impl Iterator<Item = f64> + '_ {
        let n = self.n[bank].max(1.0);
        self.sums[bank * self.repeats..][..self.repeats].iter().map(move |sum| sum / n)
    }

    /// ȳ_g.
    fn mean(&self, bank: usize) -> f64 {
        self.in_repeats(bank).sum::<f64>() / self.repeats as f64
    }

    /// Banks with a question.
    fn used(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.n.iter().copied().enumerate().filter(|(_, n)| *n > 0.0)
    }
}

/// The components of some repeats.
///
/// # Errors
/// Why there are none, for people.
pub(super) fn components(complete: &Complete<'_>, of: &Repeated<'_>) -> Result<Components, String> {
    let repeats = complete.repeats();
    if repeats < 2 {
        return Err("shares need two repeats that ended".to_owned());
    }
    let banks = Banks::from_questions(complete);
    let n = complete.len() as f64;
    let g = banks.used().count() as f64;
    if g < 2.0 || n <= g {
        return Err(format!(
            "shares need two banks, and more than one question of a bank; here are {} with {}",
            counted(g, "bank"),
            counted(n, "question")
        ));
    }
    let separates = of.filled_anew && varies(of, Source::Ingest);
    let (residual, questions) = within(complete, &banks, separates);
    let times = repeats as f64;
    let means = |(bank, n): (usize, f64)| (banks.mean(bank), n);
    let overall = banks.used().map(means).map(|(mean, n)| mean * n).sum::<f64>() / n;
    let between: f64 = banks.used().map(means).map(|(mean, n)| n * (mean - overall).powi(2)).sum();
    let squares: f64 = banks.used().map(|(_, n)| n * n).sum();
    let of_fillings = |(bank, n): (usize, f64)| {
        let mean = banks.mean(bank);
        n * banks.in_repeats(bank).map(|in_repeat| (in_repeat - mean).powi(2)).sum::<f64>()
    };
    let votes = complete.votes();
    let noise = Parts { n: votes.answers, sum: votes.sum, sum_of_squares: votes.sum_of_squares };
    let residual_freedom = if separates { (n - g) * (times - 1.0) } else { n * (times - 1.0) };
    let layout = Layout {
        banks: MeanSquare { value: times * between / (g - 1.0), freedom: g - 1.0 },
        questions: MeanSquare::of_parts(questions, n - g),
        fillings: separates.then(|| MeanSquare {
            value: banks.used().map(of_fillings).sum::<f64>() / (g * (times - 1.0)),
            freedom: g * (times - 1.0),
        }),
        residual: MeanSquare::of_parts(residual, residual_freedom),
        votes: (votes.answers > 1).then(|| MeanSquare::of_parts(noise, votes.answers as f64)),
        votes_of_an_answer: f64::from(votes.votes),
        repeats: times,
        mean_bank: n / g,
        usual_bank: (n - squares / n) / (g - 1.0),
    };
    let raw = layout.point();
    Ok(Components {
        bank: raw.bank.max(0.0),
        question: raw.question.max(0.0),
        ingest: raw.ingest.max(0.0),
        draw: layout.residual.value,
        sum_of_squared_shares: squares / (n * n),
        banks: g as u64,
        layout,
    })
}

/// What varies within banks: of each question Σ_r e_qr², and N (ȳ_q − ȳ_g)².
fn within(complete: &Complete<'_>, banks: &Banks, separates: bool) -> (Parts, Parts) {
    let (mut residual, mut questions) = (Parts::default(), Parts::default());
    let means: Vec<f64> = (0..complete.bank_names()).map(|bank| banks.mean(bank)).collect();
    for question in complete.questions() {
        let (mean, bank) = (question.mean_draw(), question.bank as usize);
        let own = |(score, in_repeat): (f64, f64)| {
            let of_filling = if separates { in_repeat - means[bank] } else { 0.0 };
            (score - mean - of_filling).powi(2)
        };
        residual.add(question.draws().zip(banks.in_repeats(bank)).map(own).sum());
        questions.add(complete.repeats() as f64 * (mean - means[bank]).powi(2));
    }
    (residual, questions)
}

/// A source with what this design cannot tell from it, and where it stands in the layout.
struct Row {
    source: Source,
    joined_with: Vec<Source>,
    of: fn(&Raw) -> f64,
}

/// The sources that vary, in the order of where they come from.
fn rows(of: &Repeated<'_>, layout: &Layout) -> Vec<Row> {
    let ingest = varies(of, Source::Ingest);
    let judged_apart = layout.votes.is_some();
    let one_filling = if ingest && layout.fillings.is_none() { vec![Source::Ingest] } else { Vec::new() };
    let mut rows = vec![
        Row { source: Source::Bank, joined_with: one_filling.clone(), of: |raw| raw.bank },
        Row { source: Source::Question, joined_with: one_filling, of: |raw| raw.question },
    ];
    if layout.fillings.is_some() {
        rows.push(Row { source: Source::Ingest, joined_with: Vec::new(), of: |raw| raw.ingest });
    }
    let mut joined_with = Vec::new();
    // what filling changes for a single question looks like another draw of its answer
    joined_with.extend(layout.fillings.is_some().then_some(Source::Ingest));
    joined_with.extend((varies(of, Source::JudgeDraw) && !judged_apart).then_some(Source::JudgeDraw));
    rows.push(Row { source: Source::AnswerDraw, joined_with, of: |raw| raw.answer });
    if judged_apart {
        rows.push(Row { source: Source::JudgeDraw, joined_with: Vec::new(), of: |raw| raw.judge });
    }
    rows
}

/// The components as shares of their sum, with intervals.
pub(super) fn shares(
    complete: &Complete<'_>,
    of: &Repeated<'_>,
    components: Result<Components, String>,
) -> VarianceShares {
    let (questions, repeats) = (complete.len() as u64, complete.repeats() as u64);
    let found = match components {
        Ok(found) => found,
        Err(why) => return VarianceShares { questions, repeats, notes: vec![why], ..VarianceShares::default() },
    };
    let rows = rows(of, &found.layout);
    let point = found.layout.point();
    let cut = |raw: &Raw| -> Vec<f64> { rows.iter().map(|row| (row.of)(raw).max(0.0)).collect() };
    let values = cut(&point);
    let total: f64 = values.iter().sum();
    let mut notes: Vec<String> = rows
        .iter()
        .filter(|row| (row.of)(&point) < 0.0)
        .map(|row| format!("{}: the estimate is below 0 and shown as 0", row.source.name()))
        .collect();
    if total <= ROUNDING {
        notes.push("no score differs from another: there is no variance to share out".to_owned());
        return VarianceShares { questions, banks: found.banks, repeats, notes, ..VarianceShares::default() };
    }
    let mut chance = Chance::new(of.seed);
    let drawn: Vec<Vec<f64>> =
        (0..DRAWS).map(|_| cut(&found.layout.solve(|square| square.draw(&mut chance)))).collect();
    let component = |(at, row): (usize, &Row)| VarianceComponent {
        source: row.source,
        joined_with: row.joined_with.clone(),
        variance: values[at],
        variance_ci95: quantiles(drawn.iter().map(|draw| draw[at])),
        share: values[at] / total,
        share_ci95: quantiles(drawn.iter().map(|draw| draw[at] / draw.iter().sum::<f64>().max(f64::MIN_POSITIVE))),
    };
    VarianceShares {
        questions,
        banks: found.banks,
        repeats,
        total: Some(total),
        components: rows.iter().enumerate().map(component).collect(),
        notes,
    }
}

/// The middle 95 % of some draws; none where all are the same, as of equal repeats: that says nothing of further ones.
fn quantiles(draws: impl Iterator<Item = f64>) -> Option<Interval> {
    let mut draws: Vec<f64> = draws.collect();
    draws.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| draws[((draws.len() - 1) as f64 * share).round() as usize];
    let (low, high) = (at(0.025), at(0.975));
    (high - low > NO_WIDTH).then(|| Interval { low, high, method: "generalised confidence interval".to_owned() })
}

fn counted(n: f64, what: &str) -> String {
    format!("{n:.0} {what}{}", if n == 1.0 { "" } else { "s" })
}
