//! What it takes to make an interval half as wide: a quarter of the variance, by the components' point estimates.
//!
//! Var(mean) = σ²_bank · Σw² + σ²_question / n + σ²_ingest · Σw² / N + σ²_draw / (n N) + σ²_drift / N, w the banks' shares of the
//! questions. More repeats lower the last three, more questions about the same banks the second and the fourth, questions with
//! banks of their own all but drift. What a sample says of its dataset has (1 / n − 1 / P) in the place of Σw² and of 1 / n, P the
//! questions of the dataset. The interval has drift at a t of its own (`mean`), and so it counts by the square of its ratio to the
//! other one.

use bench_proto::repeats::{Halving, HalvingBy, RepeatsMean};

use super::{components::Components, spread::ROUNDING, table::Complete};
use crate::interval::t_quantile;

/// What half of each interval would take; `population` is how many questions a sample is of.
pub(super) fn halving(
    complete: &Complete<'_>,
    components: Option<&Components>,
    mean: &RepeatsMean,
    population: Option<f64>,
) -> Halving {
    let Some(components) = components else {
        let nothing = || saying("needs two repeats that ended, of questions in two banks");
        return Halving { conversations: nothing(), benchmark: nothing() };
    };
    let parts = Parts::new(complete, components, mean.drift_variance.unwrap_or(0.0));
    let benchmark = match (population, &mean.benchmark_ci95, &mean.benchmark_note) {
        (None, ..) => parts.of_all_questions(),
        (Some(_), None, Some(why)) => saying(why),
        (Some(population), ..) => parts.of_a_sample(population),
    };
    Halving { conversations: parts.conversations(), benchmark }
}

/// Variances of a score, each 0 where it is rounding.
struct Parts {
    questions: f64,
    repeats: f64,
    banks: f64,
    shares: f64,
    bank: f64,
    question: f64,
    ingest: f64,
    draw: f64,
    drift: f64,
}

impl Parts {
    fn new(complete: &Complete<'_>, c: &Components, drift: f64) -> Self {
        let [bank, ingest, question, draw, drift] = [c.bank, c.ingest, c.question, c.draw, drift]
            .map(|variance| if variance > ROUNDING { variance } else { 0.0 });
        // what all questions of a repeat share is in one of both as well
        let (ingest, draw) =
            if ingest > 0.0 { ((ingest - drift).max(0.0), draw) } else { (ingest, (draw - drift).max(0.0)) };
        let (questions, repeats) = (complete.len() as f64, complete.repeats() as f64);
        let (banks, shares) = (c.banks as f64, c.sum_of_squared_shares);
        Self { questions, repeats, banks, shares, bank, question, ingest, draw, drift }
    }

    /// What drift adds to the variance of a mean whose interval has so many degrees of freedom without it.
    fn drift_beside(&self, freedom: f64) -> f64 {
        self.drift / self.repeats * (t_quantile(self.repeats - 1.0) / t_quantile(freedom)).powi(2)
    }

    fn conversations(&self) -> HalvingBy {
        let (n, repeats) = (self.questions, self.repeats);
        let (banks, questions) = (self.bank * self.shares, self.question / n);
        let (fillings, draws) = (self.ingest * self.shares / repeats, self.draw / (n * repeats));
        let drift = self.drift_beside(self.banks - 1.0);
        let all = banks + questions + fillings + draws;
        let target = (all + drift) / 4.0;
        if target <= 0.0 {
            return nothing_varies();
        }
        HalvingBy {
            repeats: further(target, banks + questions, fillings + draws + drift, repeats),
            questions_same_banks: further(target, banks + fillings + drift, questions + draws, n),
            questions_new_banks: further(target, drift, all, n),
            note: None,
        }
    }

    /// All questions of the dataset were asked: what is left are draws.
    fn of_all_questions(&self) -> HalvingBy {
        match self.ingest + self.draw + self.drift > 0.0 {
            true => HalvingBy { repeats: Some(3 * self.repeats as u64), ..HalvingBy::default() },
            false => saying("repeats do not differ: there is no noise to halve"),
        }
    }

    /// A sample of so many questions.
    fn of_a_sample(&self, population: f64) -> HalvingBy {
        let (n, repeats) = (self.questions, self.repeats);
        let left_out = 1.0 / n - 1.0 / population.max(n);
        let (stays, falls) = (self.bank + self.question, (self.ingest + self.draw) / repeats);
        let drift = self.drift_beside(n - 1.0);
        let target = ((stays + falls) * left_out + drift) / 4.0;
        if target <= 0.0 {
            return nothing_varies();
        }
        let asked = (drift < target).then(|| 1.0 / (1.0 / population.max(n) + (target - drift) / (stays + falls)));
        HalvingBy {
            repeats: further(target, stays * left_out, falls * left_out + drift, repeats),
            questions_same_banks: asked.map(|asked| (asked.ceil() - n).max(1.0) as u64),
            ..HalvingBy::default()
        }
    }
}

/// How many more there must be than are there, for what falls with their number to come to the target; none where what stays is
/// more than that, however many there are.
fn further(target: f64, stays: f64, falls: f64, there: f64) -> Option<u64> {
    let needed = || there * (falls / (target - stays));
    (stays < target && falls > 0.0).then(|| (needed().ceil() - there).max(1.0) as u64)
}

fn saying(note: &str) -> HalvingBy {
    HalvingBy { note: Some(note.to_owned()), ..HalvingBy::default() }
}

fn nothing_varies() -> HalvingBy {
    saying("nothing varies: the interval has no width to halve")
}
