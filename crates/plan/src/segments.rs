//! Segments: the parts of a bank's stream between two question points (P6).

use std::collections::BTreeMap;

/// A part of a bank's stream, and what is asked once it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Number of stream entries retained when the segment is complete (cumulative).
    pub until: u32,
    /// Indexes of the sample's questions that may be asked then, ascending.
    pub questions: Vec<u32>,
}

/// Cuts a bank of `entries` stream entries at its question points.
///
/// `questions` are (index in the bank, `ask_after`) in any order. A point behind the bank's end (cut by
/// `--max-sessions`) is its end. Entries after the last question point are in no segment: nobody asks about them, so
/// retaining them would only cost. A segment that ends at 0 retains nothing and asks an empty memory.
#[must_use]
pub fn segments(questions: impl IntoIterator<Item = (u32, u32)>, entries: u32) -> Vec<Segment> {
    let mut by_point: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (index, ask_after) in questions {
        by_point.entry(ask_after.min(entries)).or_default().push(index);
    }
    by_point
        .into_iter()
        .map(|(until, mut questions)| {
            questions.sort_unstable();
            Segment { until, questions }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bank_asked_at_the_end_is_one_segment() {
        assert_eq!(segments([(7, 19), (2, 19)], 19), [Segment { until: 19, questions: vec![2, 7] }]);
    }

    #[test]
    fn questions_on_the_way_cut_the_stream_and_nothing_follows_the_last_one() {
        let expected = [Segment { until: 2, questions: vec![1] }, Segment { until: 5, questions: vec![0, 3] }];
        assert_eq!(segments([(3, 5), (1, 2), (0, 5)], 9), expected);
    }

    #[test]
    fn a_point_behind_the_end_is_the_end() {
        assert_eq!(segments([(0, 30), (1, 4)], 4), [Segment { until: 4, questions: vec![0, 1] }]);
    }

    proptest! {
        #[test]
        fn p6_segments_hold_every_question_once_and_only_grow(points in prop::collection::vec(0_u32..12, 1..40), entries in 0_u32..12) {
            let cut = segments(points.iter().enumerate().map(|(index, &point)| (index as u32, point)), entries);
            prop_assert!(cut.windows(2).all(|pair| pair[0].until < pair[1].until));
            let mut seen: Vec<u32> = cut.iter().flat_map(|segment| segment.questions.iter().copied()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..points.len() as u32).collect::<Vec<_>>());
            for segment in &cut {
                prop_assert!(segment.until <= entries && !segment.questions.is_empty());
                prop_assert!(segment.questions.iter().all(|&q| points[q as usize].min(entries) == segment.until));
            }
        }
    }
}
