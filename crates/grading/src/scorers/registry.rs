//! The scorers, by name.

use bench_proto::{
    metric::{Better, MetricSpec},
    nearest::{did_you_mean, nearest},
};
use serde::Serialize;

use super::{
    Origin, Reads, Scorer,
    assertions::Assertions,
    choice::{Choice, ChoiceHebb, ChoiceLetter, ChoiceStrict},
    contains,
    exact::Exact,
    keywords::Keywords,
    line_rules::{self, RULES},
    locomo_f1, retrieval,
    rubric::Rubric,
    rubric_amplihack,
    substring::Substring,
    word_overlap::WordOverlap,
};

/// All scorers of answers: one line each. Those of recalls are figures with a cut-off ([`retrieval`]).
pub static SCORERS: &[&dyn Scorer] = &[
    &locomo_f1::OFFICIAL,
    &locomo_f1::ASTROCYTE,
    &Exact,
    &WordOverlap,
    &Choice,
    &ChoiceStrict,
    &ChoiceHebb,
    &ChoiceLetter,
    &contains::ANYWHERE,
    &contains::WORDS,
    &Substring,
    &Keywords,
    &Rubric,
    &rubric_amplihack::AGENT_EVAL,
    &rubric_amplihack::AMPLIHACK,
    &Assertions,
];

/// No scorer of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scorer '{name}'{hint}; `bench-coord score --list` shows all")]
pub struct UnknownScorer {
    /// What was asked for.
    pub name: String,
    /// What may have been meant, in brackets; or empty.
    pub hint: String,
}

/// Names that `score --scorer` knows: the scorers and the rules of lines.
fn names() -> impl Iterator<Item = &'static str> {
    SCORERS.iter().map(|scorer| scorer.name()).chain(RULES.iter().map(|rule| rule.name))
}

/// A scorer of runs by name.
///
/// # Errors
/// [`UnknownScorer`], with the nearest name, or with what the name stands for instead.
pub fn find(name: &str) -> Result<&'static dyn Scorer, UnknownScorer> {
    if let Some(scorer) = SCORERS.iter().copied().find(|scorer| scorer.name() == name) {
        return Ok(scorer);
    }
    let unknown = |hint: String| {
        let hint = if hint.is_empty() { hint } else { format!(" ({hint})") };
        UnknownScorer { name: name.to_owned(), hint }
    };
    if line_rules::find(name).is_some() {
        return Err(unknown(
            "a rule for the lines of `score`; in runs figures such as 'recall@10' are scored".to_owned(),
        ));
    }
    retrieval::find(name)
        .unwrap_or_else(|| Err(did_you_mean(&nearest(name, names())).unwrap_or_default()))
        .map_err(unknown)
}

/// What `score --list` says of a scorer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name; `k` stands for a cut-off.
    pub name: String,
    /// What it measures.
    pub description: &'static str,
    /// Fields of the lines that `score` takes for it; `a|b`: one of both.
    pub takes: &'static str,
    /// Whether it scores runs, or nothing but lines.
    pub runs: bool,
    /// The direction in which its scores are better.
    pub better: Better,
    /// Metrics of the other direction.
    pub reversed: Vec<String>,
    /// Whose rule it is: program, file, function; `ours`.
    pub source: &'static str,
    /// Groups of published outputs that it is held to.
    pub vectors: &'static [&'static str],
}

impl Listed {
    fn new(name: &str, description: &'static str, takes: &'static str, Origin { source, vectors }: Origin) -> Self {
        let (name, reversed) = (name.to_owned(), Vec::new());
        Self { name, description, takes, runs: true, better: Better::Higher, reversed, source, vectors }
    }

    fn from_scorer(scorer: &'static dyn Scorer) -> Self {
        let takes = match scorer.reads() {
            Reads::Answer => "prediction, gold, category",
            Reads::Ranks => "ranked, gold",
            Reads::Hits => "ranked, gold (the assertions)",
        };
        let metrics = scorer.metrics();
        let better = metrics.first().map_or(Better::Higher, |metric| metric.scale.better);
        let is_reversed = |metric: &MetricSpec| metric.scale.better != better;
        let reversed = metrics.into_iter().filter(is_reversed).map(|metric| metric.name).collect();
        Self { better, reversed, ..Self::new(scorer.name(), scorer.description(), takes, scorer.origin()) }
    }

    /// Direction, source and vectors in one line.
    fn about(&self) -> String {
        let word = |better| if better == Better::Higher { "higher" } else { "lower" };
        let mut about = format!("{} is better", word(self.better));
        if !self.reversed.is_empty() {
            let other = if self.better == Better::Higher { Better::Lower } else { Better::Higher };
            about += &format!(" ({} of {})", word(other), self.reversed.join(", "));
        }
        about += &format!("; source: {}", self.source);
        if !self.vectors.is_empty() {
            about += &format!("; vectors: {}", self.vectors.join(", "));
        }
        about
    }
}

/// All that `score` can do: scorers of answers, figures of recalls with `k` for their cut-off, rules of lines.
#[must_use]
pub fn listed() -> Vec<Listed> {
    let figures = retrieval::patterns()
        .map(|(name, description, origin)| Listed::new(&name, description, "ranked, gold", origin));
    let rules = RULES.iter().map(|rule| {
        let listed = Listed::new(rule.name, rule.description, rule.takes, rule.origin);
        // the figures of a run have names with a cut-off
        Listed { runs: false, ..listed }
    });
    SCORERS.iter().map(|scorer| Listed::from_scorer(*scorer)).chain(figures).chain(rules).collect()
}

/// The lines of `score --list`: every name with what it measures, its direction, its source and its vectors.
#[must_use]
pub fn list() -> Vec<String> {
    let all = listed();
    let width = all.iter().map(|listed| listed.name.len()).max().unwrap_or(0);
    let line = |listed: &Listed| format!("{:width$}  {} [{}]", listed.name, listed.description, listed.about());
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bench_proto::dataset::{Gold, GoldRecord};
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::scorers::{ScoreCase, case, category};

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
        insta::assert_snapshot!(list().join("\n"));
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
                    let score = case::score(*scorer, prediction, gold.as_ref(), category);
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
        choice v2 59084b05c2316acb
        choice-strict v1 59084b05c2316acb
        choice-hebb v2 59084b05c2316acb
        choice-letter v1 da5019d1ba92c39f
        contains v1 c4b8a26791fa9710
        contains-word v1 c4b8a26791fa9710
        substring v1 a4181e722d588d50
        keywords v1 b120e5540bfea436
        rubric v3 6740c695d3f18f61
        rubric-agent-eval v2 52f25b15dc3014ff
        rubric-amplihack v3 52f25b15dc3014ff
        assertions v1 52f25b15dc3014ff
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
            let any = Gold::AnyOf(vec!["hikes".to_owned(), "June 2022; (c)".to_owned(), String::new()]);
            let golds: Vec<Option<GoldRecord>> = golds()
                .into_iter()
                .chain([Some(any)])
                .map(|gold| Some(GoldRecord { gold: gold?, ..GoldRecord::default() }))
                .collect();
            for scorer in SCORERS {
                for category in CATEGORIES {
                    let rules = category::rules(category);
                    let cases = golds.iter().map(|gold| ScoreCase { gold: gold.as_ref(), rules, ..ScoreCase::default() });
                    let cases: Vec<ScoreCase<'_>> = cases.collect();
                    let many = scorer.score_many(&prediction, &cases);
                    prop_assert_eq!(many.len(), cases.len());
                    for (score, case) in many.into_iter().zip(cases) {
                        let one = ScoreCase { answer: Some(&prediction), ..case };
                        prop_assert_eq!(score, scorer.score(&one));
                        prop_assert!(score.is_none_or(|score| (0.0..=1.0).contains(&score)), "{}: {:?}", scorer.name(), score);
                        let named = scorer.named_scores(&one).into_iter().map(|(_, score)| score).next();
                        prop_assert_eq!(named, score);
                        prop_assert_eq!(scorer.score(&case), None, "there is no answer");
                    }
                }
            }
            // of several texts the best counts
            for scorer in SCORERS {
                let texts = ["hikes", "June 2022", "(c)"].map(str::to_owned);
                let best = texts.iter().filter_map(|text| case::score(*scorer, &prediction, Some(&Gold::Text(text.clone())), ""));
                let best = best.reduce(f64::max);
                prop_assert_eq!(case::score(*scorer, &prediction, Some(&Gold::AnyOf(texts.to_vec())), ""), best, "{}", scorer.name());
            }
        }
    }
}
