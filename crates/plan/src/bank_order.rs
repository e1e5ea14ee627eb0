//! In which order banks are worked on.

use crate::sample::Sample;

/// Positions in [`Sample::banks`], longest bank first (turns, then entries, then file order), so that the last bank to
/// finish is a short one. A bank's place in this list is its number in the run.
#[must_use]
pub fn bank_order(sample: &Sample) -> Vec<u32> {
    let banks = &sample.banks;
    // positions fit: `Sampling::push` refuses datasets with more banks than task keys can number (2^22)
    let mut order: Vec<u32> = (0..banks.len() as u32).collect();
    order.sort_by_key(|&at| {
        let bank = &banks[at as usize];
        (std::cmp::Reverse((bank.turns, bank.entries)), bank.file_index)
    });
    order
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{BankOutline, QuestionOutline};

    use super::*;
    use crate::{SampleRequest, sample};

    #[test]
    fn longest_banks_come_first_and_ties_keep_the_files_order() {
        let bank = |id: &str, entries, turns| BankOutline {
            bank_id: id.to_owned(),
            entries,
            turns,
            questions: vec![QuestionOutline {
                question_id: format!("{id}:0"),
                category: "a".into(),
                ask_after: entries,
                ..QuestionOutline::default()
            }],
            ..BankOutline::default()
        };
        let outlines = [bank("w", 3, 50), bank("x", 2, 90), bank("y", 3, 50), bank("z", 4, 50)];
        let sample = sample(&outlines, SampleRequest::default()).expect("a valid request");
        assert_eq!(bank_order(&sample), [1, 3, 0, 2]);
    }
}
