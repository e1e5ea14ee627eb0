//! Did both runs keep to the filters of their questions? What may not answer a question makes it another one.

use bench_proto::dataset::FilterParts;

use super::Side;

/// Why two runs cannot be held against each other: one was asked without a part of the filters that the other had, or its
/// system ignored them.
pub(super) fn unlike(a: &Side<'_>, b: &Side<'_>) -> Option<String> {
    let [of_a, of_b] = [a, b].map(|side| side.spec.sample.unfiltered);
    if of_a != of_b {
        return Some(format!(
            "the questions' filters were not kept to alike: the first run asked {}, the second {}",
            asked(of_a),
            asked(of_b)
        ));
    }
    let [of_a, of_b] = [a, b].map(|side| side.summary.retrieval.filtered);
    let (of_a, of_b) = of_a.zip(of_b).filter(|(of_a, of_b)| of_a.is_ignored() != of_b.is_ignored())?;
    Some(format!(
        "the questions' filters were not kept to alike: they were ignored in {} of {} recalls of the first run, and in {} of {} of \
         the second",
        of_a.ignored, of_a.recalls, of_b.ignored, of_b.recalls
    ))
}

/// How a run asked that lacked these parts.
fn asked(lacking: FilterParts) -> String {
    match lacking.is_empty() {
        true => "with all of their parts".to_owned(),
        false => format!("without {}", lacking.names().join(", ")),
    }
}
