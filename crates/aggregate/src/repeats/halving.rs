//! What it takes to make an interval half as wide: a quarter of the variance, by the components' point estimates.
//!
//! Var(mean) = σ²_bank · Σw² + σ²_question / n + σ²_ingest · Σw² / N + σ²_draw / (n N), w the banks' shares of the questions. More
//! repeats lower the last two, more questions about the same banks the second and the last, questions with banks of their own
//! all of them.

use bench_proto::repeats::{Halving, HalvingBy};

use super::{components::Components, spread::ROUNDING, table::Complete};

/// What half of each interval would take.
pub(super) fn halving(complete: &Complete<'_>, components: Option<&Components>, census: bool) -> Halving {
    let Some(c) = components else {
        let note = || Some("needs two repeats that ended, of questions in two banks".to_owned());
        let nothing = || HalvingBy { note: note(), ..HalvingBy::default() };
        return Halving { conversations: nothing(), benchmark: nothing() };
    };
    let (n, repeats) = (complete.len() as f64, complete.repeats() as f64);
    let [bank, ingest, question, draw] =
        [c.bank, c.ingest, c.question, c.draw].map(|variance| if variance > ROUNDING { variance } else { 0.0 });
    let banks = bank * c.sum_of_squared_shares;
    let fillings = ingest * c.sum_of_squared_shares;
    let target = (banks + question / n + fillings / repeats + draw / (n * repeats)) / 4.0;
    let further = |needed: f64, there: f64| (needed.ceil() - there).max(1.0) as u64;
    // where what stays is more than a quarter, no number suffices
    let by = |stays: f64, falls: f64, there: f64| {
        (stays < target && falls > 0.0).then(|| further(falls / (target - stays), there))
    };
    let nothing_varies = (target <= 0.0).then(|| "nothing varies: the interval has no width to halve".to_owned());
    let noise = fillings + draw / n > 0.0;
    Halving {
        conversations: HalvingBy {
            repeats: by(banks + question / n, fillings + draw / n, repeats),
            questions_same_banks: by(banks + fillings / repeats, question + draw / repeats, n),
            questions_new_banks: nothing_varies.is_none().then(|| 3 * complete.len() as u64),
            note: nothing_varies,
        },
        benchmark: HalvingBy {
            repeats: (noise && census).then(|| 3 * complete.repeats() as u64),
            note: match (census, noise) {
                (true, true) => None,
                (true, false) => Some("repeats do not differ: there is no noise to halve".to_owned()),
                (false, _) => {
                    Some("a sample: what it leaves out is most of it, and a full run has none of that".to_owned())
                }
            },
            ..HalvingBy::default()
        },
    }
}
