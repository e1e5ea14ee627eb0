//! Published results of memory systems on the datasets: figures as their authors printed them, with who answered, who judged, and how
//! many questions there were, as far as they say so.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};

/// A figure of a memory system as its authors printed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedResult {
    /// Name of the dataset, with its variant.
    pub dataset: String,
    /// The part of the dataset that it is about, in the authors' words; absent: all of it but what `without` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Categories that it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The memory system, as the authors call it.
    pub system: String,
    /// The score, 0 to 1.
    pub score: f64,
    /// Category → score, 0 to 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_category: BTreeMap<String, f64>,
    /// The model that answered; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerer: Option<String>,
    /// The judge; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Questions behind the score; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<u64>,
    /// Hits asked for; absent where nobody says, and where nothing is recalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Whether nothing is recalled: the whole conversation is the context, or answers were planted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_recall: bool,
    /// Runs that the score is the mean of, answers included; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Judgements of an answer; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<u32>,
    /// What the judge goes by: `generous` (the topic is enough), `official` (the prompts of the dataset's authors) or in other
    /// words; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// What else has to be known to read the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where it was published.
    pub source: String,
}

static ALL: LazyLock<Vec<PublishedResult>> =
    LazyLock::new(|| serde_json::from_str(include_str!("published.json")).unwrap_or_default());

/// What was published on a dataset (`locomo`, `longmemeval@s`), the best first: results on all of it before those on a part.
#[must_use]
pub fn published(dataset: &str) -> Vec<&'static PublishedResult> {
    let family = dataset.split_once('@').map_or(dataset, |(family, _)| family);
    let is_of = |row: &&PublishedResult| row.dataset == dataset || (row.part.is_some() && row.dataset == family);
    let mut found: Vec<&PublishedResult> = ALL.iter().filter(is_of).collect();
    found.sort_by(|a, b| a.part.cmp(&b.part).then(b.score.total_cmp(&a.score)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    /// Rows that have a note.
    const NOTES: usize = 110;

    #[test]
    fn every_row_is_of_a_known_dataset_and_a_share() {
        let all: Vec<PublishedResult> =
            serde_json::from_str(include_str!("published.json")).expect("the file is one of rows");
        assert_eq!((all.len(), ALL.len()), (147, 147));
        for row in &all {
            let is_known = known().iter().any(|known| {
                let name = &known.manifest.name;
                *name == row.dataset || (row.part.is_some() && name.split('@').next() == Some(&row.dataset))
            });
            assert!(is_known, "{row:?}");
            assert!(row.by_category.values().chain([&row.score]).all(|score| (0.0..=1.0).contains(score)), "{row:?}");
            assert!(!row.system.is_empty() && !row.source.is_empty() && row.questions != Some(0), "{row:?}");
            assert!(![row.k, row.runs, row.votes].contains(&Some(0)), "{row:?}");
            // a judge is a part of what is known of votes and rubric
            assert!(row.judge.is_some() || (row.votes, &row.rubric) == (None, &None), "{row:?}");
            assert!(row.k.is_none() || !row.without_recall, "{row:?}");
        }
        assert_eq!(
            all.iter().filter(|row| row.note.is_some()).count(),
            NOTES,
            "what others say of their figures is kept"
        );
    }

    #[test]
    fn results_on_the_same_questions_come_first_and_the_best_of_them_before_others() {
        let locomo = published("locomo");
        assert!(locomo.len() > 30 && locomo[0].part.is_none());
        assert!(locomo.windows(2).all(|two| two[0].part != two[1].part || two[0].score >= two[1].score));
        assert!(published("longmemeval@s").iter().all(|row| row.dataset == "longmemeval@s"));
        assert!(published("membench@steps-from-0").iter().all(|row| row.part.is_some()));
        assert!(published("locomo-sim").is_empty());
    }
}
