//! In which rounds the questions of a run are asked that may stop early.
//!
//! The order is fixed by the ids of the questions alone, and every prefix of it is a small copy of the sample: the questions of a
//! category in a bank are ranked by a hash and spread evenly over the order, and so are those of a category over the banks. A round
//! is what lies between two looks. A bank that is asked in the middle of its stream is one unit: its next entries wait for the
//! recalls of its earlier questions, so all of it is asked in one round.

use std::collections::{BTreeMap, HashMap};

use bench_proto::dataset::BankOutline;
use sha2::{Digest as _, Sha256};

use crate::{error::SampleError, sample::Sample};

/// Looks at even distances.
const EVEN_LOOKS: u64 = 10;
/// Fewest questions between two looks.
const FEWEST: u64 = 20;
/// Fewest questions before a look that stands ahead of the even ones.
const FEWEST_AHEAD: u64 = 100;

/// The rounds of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounds {
    /// By a bank's position in the file: the round of each of its chosen questions, as they stand in the sample.
    by_bank: HashMap<u32, Vec<u8>>,
    /// Questions asked at the end of each round, cumulative.
    looks: Vec<u64>,
}

impl Rounds {
    /// The rounds of the chosen questions of a bank, counted from 0.
    #[must_use]
    pub fn of_bank(&self, file_index: u32) -> &[u8] {
        self.by_bank.get(&file_index).map_or(&[], Vec::as_slice)
    }

    /// Questions asked at the end of each round, cumulative, ascending; the last number is the sample.
    #[must_use]
    pub fn looks(&self) -> &[u64] {
        &self.looks
    }
}

/// What is asked in one round whatever happens.
struct Unit {
    /// Where it stands in the order, from 0 to 1.
    place: f64,
    hash: u64,
    /// Position in [`Sample::banks`].
    bank: usize,
    /// Positions of its questions in the bank's list.
    questions: Vec<u32>,
}

/// Spreads the questions of a sample over rounds; `outline` reads a bank of the dataset by its position in the file.
///
/// # Errors
/// What reading meets, and [`SampleError`] for a sample too small for two rounds.
pub fn rounds<E: From<SampleError>>(
    sample: &Sample,
    mut outline: impl FnMut(u32) -> Result<BankOutline, E>,
) -> Result<Rounds, E> {
    let (mut of_categories, mut streamed) = (BTreeMap::<String, Vec<Unit>>::new(), Vec::new());
    for (at, bank) in sample.banks.iter().enumerate() {
        let outline = outline(bank.file_index)?;
        let chosen = || (0..).zip(&bank.questions).filter_map(|(i, q)| Some((i, outline.questions.get(*q as usize)?)));
        if chosen().any(|(_, question)| question.ask_after < bank.entries) {
            let hash = hash(&bank.bank_id);
            streamed.push(Unit { place: 0.0, hash, bank: at, questions: chosen().map(|(i, _)| i).collect() });
            continue;
        }
        let mut cells = BTreeMap::<&str, Vec<Unit>>::new();
        for (i, question) in chosen() {
            let unit = Unit { place: 0.0, hash: hash(&question.question_id), bank: at, questions: vec![i] };
            cells.entry(&question.category).or_default().push(unit);
        }
        for (category, mut units) in cells {
            let first = hash(&format!("{}:{category}", bank.bank_id)) as f64 / 2_f64.powi(64);
            spread(&mut units, first);
            of_categories.entry(category.to_owned()).or_default().extend(units);
        }
    }
    of_categories.values_mut().chain([&mut streamed]).for_each(|units| spread(units, 0.5));
    let mut units: Vec<Unit> = of_categories.into_values().flatten().chain(streamed).collect();
    units.sort_by(in_order);
    cut(sample, &units).ok_or_else(|| SampleError::NoRounds { n: sample.spec.n, fewest: 2 * FEWEST }.into())
}

/// Ranks units by place and hash and spreads them evenly, the first at `first` of the distance between two.
fn spread(units: &mut [Unit], first: f64) {
    units.sort_by(in_order);
    let n = units.len() as f64;
    units.iter_mut().enumerate().for_each(|(rank, unit)| unit.place = (rank as f64 + first) / n);
}

fn in_order(x: &Unit, y: &Unit) -> std::cmp::Ordering {
    x.place.total_cmp(&y.place).then(x.hash.cmp(&y.hash)).then((x.bank, &x.questions).cmp(&(y.bank, &y.questions)))
}

fn hash(id: &str) -> u64 {
    let digest = Sha256::new_with_prefix("bench-rounds-v1:").chain_update(id).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// After how many questions there is a look, of `n`: at even distances, and before the first of these at halves of it, as long as
/// there are [`FEWEST_AHEAD`] questions.
fn wanted(n: u64) -> Vec<u64> {
    let even = EVEN_LOOKS.min(n / FEWEST).max(1);
    let mut looks: Vec<u64> = (1..=even).map(|look| n * look / even).collect();
    let mut ahead = n / even / 2;
    while ahead >= FEWEST_AHEAD {
        looks.insert(0, ahead);
        ahead /= 2;
    }
    looks
}

/// Cuts the order at its looks; `None` where everything would be asked in one round.
fn cut(sample: &Sample, units: &[Unit]) -> Option<Rounds> {
    let mut rounds = Rounds::default();
    for bank in &sample.banks {
        rounds.by_bank.insert(bank.file_index, vec![0; bank.questions.len()]);
    }
    let wanted = wanted(sample.spec.n);
    let mut asked = 0;
    for unit in units {
        let round = u8::try_from(rounds.looks.len()).ok()?;
        let of_bank = rounds.by_bank.get_mut(&sample.banks[unit.bank].file_index)?;
        unit.questions.iter().for_each(|at| of_bank[*at as usize] = round);
        asked += unit.questions.len() as u64;
        let next = wanted.iter().find(|look| rounds.looks.last().is_none_or(|last| *look > last));
        if next.is_some_and(|next| asked >= *next) {
            rounds.looks.push(asked);
        }
    }
    (rounds.looks.len() > 1).then_some(rounds)
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::QuestionOutline;

    use super::*;
    use crate::{SampleRequest, sample};

    /// Banks with so many questions each, of four categories; asked in the middle of the stream where `streamed`.
    fn banks(sizes: &[u32], streamed: bool) -> Vec<BankOutline> {
        let question = |bank: usize, i: u32| QuestionOutline {
            question_id: format!("b{bank}:{i}"),
            category: format!("c{}", (i * i + bank as u32) % 4),
            ask_after: if streamed { 1 + i % 10 } else { 10 },
            ..QuestionOutline::default()
        };
        let bank = |(bank, n): (usize, &u32)| BankOutline {
            bank_id: format!("b{bank}"),
            entries: 10,
            turns: 100,
            questions: (0..*n).map(|i| question(bank, i)).collect(),
            ..BankOutline::default()
        };
        sizes.iter().enumerate().map(bank).collect()
    }

    fn whole(banks: &[BankOutline]) -> Sample {
        sample(banks, SampleRequest { preset: Some(crate::Preset::Full), ..SampleRequest::default() })
            .expect("a valid request")
    }

    fn rounds_of(banks: &[BankOutline]) -> Result<Rounds, SampleError> {
        rounds(&whole(banks), |bank| Ok(banks[bank as usize].clone()))
    }

    #[test]
    fn every_prefix_is_a_small_copy_of_the_sample() {
        let outlines = banks(&[152, 81, 152, 199, 178, 123, 150, 191, 156, 158], false);
        let rounds = rounds_of(&outlines).expect("is large enough");
        let chosen = whole(&outlines);
        assert_eq!(rounds.looks(), [154, 308, 462, 616, 770, 924, 1078, 1232, 1386, 1540]);
        for (prefix, looked) in rounds.looks().iter().enumerate() {
            let mut cells = BTreeMap::<(usize, &str), (f64, f64)>::new();
            let mut categories = BTreeMap::<&str, (f64, f64)>::new();
            for (bank, outline) in outlines.iter().enumerate() {
                for (index, round) in chosen.banks[bank].questions.iter().zip(rounds.of_bank(bank as u32)) {
                    let question = &outline.questions[*index as usize];
                    let asked = f64::from(u8::from(usize::from(*round) <= prefix));
                    let count = |of: &mut (f64, f64)| *of = (of.0 + asked, of.1 + 1.0);
                    count(cells.entry((bank, &question.category)).or_default());
                    count(categories.entry(&question.category).or_default());
                }
            }
            let share = *looked as f64 / 1540.0;
            for ((bank, category), (asked, of)) in cells {
                assert!(
                    (asked - of * share).abs() < 2.0,
                    "{asked} of {of} questions of {category} in bank {bank}, {share}"
                );
            }
            for (category, (asked, of)) in categories {
                assert!((asked - of * share).abs() <= 1.0, "{asked} of {of} questions of {category}, {share}");
            }
        }
    }

    #[test]
    fn a_bank_that_is_asked_in_the_middle_of_its_stream_is_asked_in_one_round() {
        let outlines = banks(&[30; 12], true);
        let rounds = rounds_of(&outlines).expect("has several banks");
        let of_banks: Vec<Vec<u8>> = (0..12).map(|bank| rounds.of_bank(bank).to_vec()).collect();
        assert!(of_banks.iter().all(|of_bank| of_bank.windows(2).all(|two| two[0] == two[1])), "{of_banks:?}");
        assert!(rounds.looks().len() > 4 && rounds.looks().iter().all(|look| look % 30 == 0), "{:?}", rounds.looks());
        let one = rounds_of(&banks(&[300], true)).expect_err("one bank cannot be parted");
        assert!(one.to_string().contains("cannot stop early"), "{one}");
    }

    #[test]
    fn the_order_depends_on_the_ids_alone() {
        let outlines = banks(&[60, 40], false);
        let turned: Vec<BankOutline> = outlines.iter().rev().cloned().collect();
        let (one, other) = (rounds_of(&outlines).expect("works"), rounds_of(&turned).expect("works"));
        assert_eq!((one.of_bank(0), one.of_bank(1)), (other.of_bank(1), other.of_bank(0)));
    }

    #[test]
    fn large_samples_have_looks_ahead_of_the_even_ones() {
        assert_eq!(wanted(10_000), [125, 250, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
        assert_eq!(wanted(100), [20, 40, 60, 80, 100]);
        assert_eq!(wanted(39), [39]);
    }
}
