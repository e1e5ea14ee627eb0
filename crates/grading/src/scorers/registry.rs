//! The scorers, by name.

use bench_proto::nearest::{did_you_mean, nearest};

use super::{
    Scorer, choice::Choice, exact::Exact, locomo_f1, rubric::Rubric, score_line::RETRIEVAL, word_overlap::WordOverlap,
};

/// All answer scorers: one line each.
pub static SCORERS: &[&dyn Scorer] =
    &[&locomo_f1::OFFICIAL, &locomo_f1::ASTROCYTE, &Exact, &WordOverlap, &Choice, &Rubric];

/// No scorer of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scorer '{name}'{hint}; `bench-coord score --list` shows all")]
pub struct UnknownScorer {
    /// What was asked for.
    pub name: String,
    /// The nearest name, as a question; or empty.
    pub hint: String,
}

impl UnknownScorer {
    pub(super) fn new(name: &str) -> Self {
        let hint = did_you_mean(&nearest(name, names())).map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self { name: name.to_owned(), hint }
    }
}

/// Names that `score --scorer` knows: the answer scorers and `retrieval`.
fn names() -> impl Iterator<Item = &'static str> {
    SCORERS.iter().map(|scorer| scorer.name()).chain([RETRIEVAL])
}

/// An answer scorer by name.
///
/// # Errors
/// [`UnknownScorer`], with the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Scorer, UnknownScorer> {
    SCORERS.iter().copied().find(|scorer| scorer.name() == name).ok_or_else(|| UnknownScorer::new(name))
}

/// The lines of `score --list`: every name with what it does.
#[must_use]
pub fn list() -> Vec<String> {
    let width = names().map(str::len).max().unwrap_or(0);
    let retrieval = (RETRIEVAL, "recall, precision, MRR and NDCG at k of ranked ids (takes ranked, gold, k)");
    let lines = SCORERS.iter().map(|scorer| (scorer.name(), scorer.description())).chain([retrieval]);
    lines.map(|(name, description)| format!("{name:width$}  {description}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bench_proto::dataset::Gold;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::scorers::ScoreCase;

    #[test]
    fn names_are_unique_and_found() {
        let unique: HashSet<&str> = names().collect();
        assert_eq!(unique.len(), names().count());
        for scorer in SCORERS {
            assert_eq!(find(scorer.name()).map(|found| found.name()), Ok(scorer.name()));
        }
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        let message = |name: &str| find(name).err().map(|error| error.to_string()).unwrap_or_default();
        insta::assert_snapshot!(message("locomo_f1"), @"unknown scorer 'locomo_f1' (did you mean 'locomo-f1'?); `bench-coord score --list` shows all");
        insta::assert_snapshot!(message("accuracy-of-dates"), @"unknown scorer 'accuracy-of-dates'; `bench-coord score --list` shows all");
    }

    #[test]
    fn list_reads_well() {
        insta::assert_snapshot!(list().join("\n"), @r"
        locomo-f1            official LoCoMo token F1: NLTK Porter stems, multi-hop by parts, adversarial by two phrases
        locomo-f1-astrocyte  token F1 of the Astrocyte harness: Porter2 stems, empty parts ignored, adversarial by 26 phrases
        exact                1 when prediction and gold have the same set of normalised words, else 0
        word-overlap         legacy: share of the gold's words found in the prediction; 1 when the gold is missing or has only stop words
        choice               1 when the reply names exactly the right option, (a) to (d), by PersonaMem's rule; else 0
        rubric               share of the rubric's keywords found in the prediction (substrings, any case); prose rubrics need a model judge
        retrieval            recall, precision, MRR and NDCG at k of ranked ids (takes ranked, gold, k)
        ");
    }

    const CATEGORIES: [&str; 6] = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial", "other"];

    fn golds() -> Vec<Option<Gold>> {
        let text = |text: &str| Some(Gold::Text(text.to_owned()));
        vec![
            text("Running, organized hikes,, and the café"),
            text("Likely no; she has preferred communities"),
            text("the week before 9 June, 2023"),
            text("(b)"),
            Some(Gold::Number(2022.into())),
            Some(Gold::Choice("(c)".to_owned())),
            Some(Gold::Rubric(vec!["hikes".to_owned(), "general".to_owned()])),
            Some(Gold::Retrieval { must: vec!["x".to_owned()], must_not: vec![] }),
            Some(Gold::Abstain),
            None,
        ]
    }

    /// When this fails, a score has changed: raise the scorer's version, then write down the new hash.
    #[test]
    fn scores_cannot_change_without_a_new_version() {
        const PREDICTIONS: [&str; 9] = [
            "",
            "She runs and organizes a hike, in general communities",
            "the community, organs,, has been generated",
            "Likely no",
            "June 9, 2023, 2022",
            "I think (b)",
            "c",
            "I do not know",
            "No information available",
        ];
        let lines: Vec<String> = SCORERS
            .iter()
            .map(|scorer| {
                let mut hash = Sha256::new();
                for (prediction, gold, category) in all_cases(&PREDICTIONS) {
                    let score = scorer.score(&ScoreCase { prediction, gold: gold.as_ref(), category });
                    hash.update(format!("{score:?}\n"));
                }
                format!("{} v{} {}", scorer.name(), scorer.version(), &hex::encode(hash.finalize())[..16])
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        locomo-f1 v1 671d7b72ff145ee7
        locomo-f1-astrocyte v1 3ac445bd289e75ec
        exact v1 ae9b89fa6c6e25bf
        word-overlap v1 d3a11914a62556b0
        choice v1 59084b05c2316acb
        rubric v1 b120e5540bfea436
        ");
    }

    fn all_cases<'a>(predictions: &'a [&'a str]) -> impl Iterator<Item = (&'a str, Option<Gold>, &'static str)> {
        predictions.iter().flat_map(|prediction| {
            golds().into_iter().flat_map(move |gold| CATEGORIES.map(|category| (*prediction, gold.clone(), category)))
        })
    }

    proptest! {
        #[test]
        fn every_scorer_is_bounded_and_scores_many_as_one(prediction in "\\PC{0,30}|[a-d() ,;<>/_]{0,20}|(not mentioned|June 2022|,|hikes| ){0,8}") {
            let golds = golds();
            for scorer in SCORERS {
                for category in CATEGORIES {
                    let cases: Vec<(Option<&Gold>, &str)> = golds.iter().map(|gold| (gold.as_ref(), category)).collect();
                    let many = scorer.score_many(&prediction, &cases);
                    prop_assert_eq!(many.len(), cases.len());
                    for (score, (gold, category)) in many.into_iter().zip(cases) {
                        prop_assert_eq!(score, scorer.score(&ScoreCase { prediction: &prediction, gold, category }));
                        prop_assert!(score.is_none_or(|score| (0.0..=1.0).contains(&score)), "{}: {:?}", scorer.name(), score);
                    }
                }
            }
        }
    }
}
