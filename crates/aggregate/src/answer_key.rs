//! What known mistakes of an answer key mean for a score: by the published key, by the corrected one, and without the questions
//! whose key is wrong; and how high a perfect system gets by the published key. Plain means.

use std::collections::BTreeMap;

use bench_proto::{
    label_fixes::{LABEL_ERROR, LabelFixesSpec, corrected_metric},
    summary::{AnswerKeyScore, KeyedCategory, KeyedScore},
};

use crate::{
    exact::ExactSum,
    kinds::Kind,
    questions::{QuestionRow, Questions},
};

/// Scores that lie closer to a ceiling than this are at it.
const ROUNDING: f64 = 1e-12;

/// A question of a category that was looked through.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Keyed {
    /// Whether its published answer is wrong.
    pub wrong: bool,
    /// The score by the published key, where it has one.
    pub published: Option<f64>,
    /// The score by the corrected key, where the answer is wrong and a better one is known.
    pub corrected: Option<f64>,
}

/// Scores by both keys, as far as they have been added.
#[derive(Debug, Clone)]
pub struct AnswerKey {
    metric: String,
    /// Whether a score by the corrected key can be had at all.
    corrects: bool,
    by_category: BTreeMap<String, Tally>,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    n: u64,
    wrong: u64,
    /// Wrong answers in the place of which none is known.
    without_correction: u64,
    published: Mean,
    corrected: Mean,
    without_wrong: Mean,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: ExactSum,
    n: u64,
}

impl Mean {
    fn add(&mut self, score: Option<f64>) {
        if let Some(score) = score {
            self.sum.add(score);
            self.n += 1;
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.sum.merge(other.sum);
        Self { n: self.n + other.n, ..self }
    }

    fn value(self) -> Option<f64> {
        self.sum.mean(self.n)
    }
}

impl AnswerKey {
    /// Of a metric, over the categories that were looked through. `corrects` is false for grades that were given by the published
    /// key alone.
    #[must_use]
    pub fn new(metric: &str, categories: &[String], corrects: bool) -> Self {
        let by_category = categories.iter().map(|name| (name.clone(), Tally::default())).collect();
        Self { metric: metric.to_owned(), corrects, by_category }
    }

    /// Adds a question; those of categories that were not looked through do not count, and neither do those without a score: all
    /// figures are of the same questions, so that a score and its ceiling can be held against each other.
    pub fn add(&mut self, category: &str, question: Keyed) {
        let Some(tally) = self.by_category.get_mut(category) else { return };
        let Keyed { wrong, published, corrected } = question;
        if published.is_none() {
            return;
        }
        tally.n += 1;
        tally.wrong += u64::from(wrong);
        tally.without_correction += u64::from(wrong && corrected.is_none());
        tally.published.add(published);
        tally.corrected.add(if wrong { corrected } else { published });
        tally.without_wrong.add(published.filter(|_| !wrong));
    }

    /// The figures. `source` names where the mistakes are from.
    #[must_use]
    pub fn finish(self, source: String) -> AnswerKeyScore {
        let Self { metric, corrects, by_category } = self;
        let all = by_category.values().fold(Tally::default(), |all, tally| Tally {
            n: all.n + tally.n,
            wrong: all.wrong + tally.wrong,
            without_correction: all.without_correction + tally.without_correction,
            published: all.published.and(tally.published),
            corrected: all.corrected.and(tally.corrected),
            without_wrong: all.without_wrong.and(tally.without_wrong),
        });
        let scored = by_category.iter().filter(|(_, tally)| tally.n > 0);
        let category =
            |(name, tally): (&String, &Tally)| KeyedCategory { category: name.clone(), score: tally.score(corrects) };
        AnswerKeyScore {
            source,
            metric,
            categories: by_category.keys().cloned().collect(),
            all: all.score(corrects),
            by_category: scored.map(category).collect(),
        }
    }
}

impl Tally {
    fn score(&self, corrects: bool) -> KeyedScore {
        let ceiling = (self.n > 0).then(|| 1.0 - self.wrong as f64 / self.n as f64);
        let published = self.published.value();
        // without a wrong answer both keys are one, and without a right one there is no other
        let has_other = corrects && self.without_correction < self.wrong;
        KeyedScore {
            n: self.n,
            wrong: self.wrong,
            ceiling,
            published,
            corrected: self.corrected.value().filter(|_| has_other || self.wrong == 0),
            without_correction: if corrects { self.without_correction } else { 0 },
            without_wrong: self.without_wrong.value(),
            above_ceiling: published.zip(ceiling).is_some_and(|(score, ceiling)| score > ceiling + ROUNDING),
        }
    }
}

/// A run's metric by both keys.
pub(crate) fn of_run(fixes: &LabelFixesSpec, metric: &str, questions: &Questions) -> AnswerKeyScore {
    let corrected = corrected_metric(metric);
    let by_corrected: BTreeMap<&str, f64> =
        questions.by_metric(&corrected).map(|(row, score)| (&*row.id, score)).collect();
    let published: BTreeMap<&str, f64> = questions.by_metric(metric).map(|(row, score)| (&*row.id, score)).collect();
    let kinds = questions.kinds.list();
    let kind = |row: &QuestionRow| -> Option<&Kind> { kinds.get(row.kind as usize) };
    let mut key = AnswerKey::new(metric, &fixes.categories, !by_corrected.is_empty());
    for row in questions.rows() {
        let Some(kind) = kind(row) else { continue };
        let question = Keyed {
            wrong: kind.facets.contains_key(LABEL_ERROR),
            published: published.get(&*row.id).copied(),
            corrected: by_corrected.get(&*row.id).copied(),
        };
        key.add(&kind.category, question);
    }
    let modified = if fixes.modified { ", not the published file" } else { "" };
    key.finish(format!("{}{modified}", fixes.name))
}

/// What a reader should know of scores above what a perfect system reaches.
pub(crate) fn warnings(key: &AnswerKeyScore) -> Vec<String> {
    let all = (!key.by_category.is_empty()).then_some(("all categories that were looked through", &key.all));
    let each = key.by_category.iter().map(|of| (of.category.as_str(), &of.score));
    let above = all.into_iter().chain(each).filter(|(_, score)| score.above_ceiling);
    above
        .map(|(name, score)| {
            let percent = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{:.2} %", share * 100.0));
            format!(
                "{name}: {} by {} is above {}, what a perfect system reaches by the published key ({}): wrong answers were taken for right",
                percent(score.published),
                key.metric,
                percent(score.ceiling),
                key.source
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(corrects: bool) -> AnswerKeyScore {
        let mut key = AnswerKey::new("judge", &["a".to_owned(), "b".to_owned(), "c".to_owned()], corrects);
        let scored = |published: f64| Keyed { published: Some(published), ..Keyed::default() };
        let wrong = |published: f64, corrected| Keyed { wrong: true, corrected, ..scored(published) };
        for (category, question) in [
            ("a", scored(1.0)),
            ("a", scored(1.0)),
            ("a", wrong(1.0, Some(0.0))),
            ("a", Keyed { wrong: true, ..Keyed::default() }),
            ("b", scored(0.0)),
            ("not looked at", wrong(1.0, Some(1.0))),
        ] {
            key.add(category, question);
        }
        key.finish("somebody's audit".to_owned())
    }

    #[test]
    fn both_keys_the_ceiling_and_what_is_above_it() {
        let score = key(true);
        let [a, b] = &score.by_category[..] else { panic!("two categories were asked: {score:?}") };
        let third = 2.0 / 3.0;
        let figures = |s: &KeyedScore| (s.n, s.wrong, s.ceiling, s.published, s.corrected, s.without_wrong);
        assert_eq!(figures(&a.score), (3, 1, Some(1.0 - 1.0 / 3.0), Some(1.0), Some(third), Some(1.0)));
        assert_eq!(figures(&b.score), (1, 0, Some(1.0), Some(0.0), Some(0.0), Some(0.0)));
        // all that was asked has a ceiling of 0.6, but one of the wrong answers has no score
        assert_eq!(figures(&score.all), (4, 1, Some(0.75), Some(0.75), Some(0.5), Some(third)));
        assert_eq!([&a.score, &b.score, &score.all].map(|score| score.above_ceiling), [true, false, false]);
        assert_eq!(warnings(&score).len(), 1, "{:?}", warnings(&score));
        let once = key(false);
        assert_eq!([once.all.corrected, once.by_category[0].score.corrected], [None, None]);
        assert_eq!(once.by_category[1].score.corrected, Some(0.0), "nothing is wrong there");
    }

    #[test]
    fn wrong_answers_without_a_right_one_are_told_beside_the_corrected_figure() {
        let score = |corrections: &[Option<f64>]| {
            let mut key = AnswerKey::new("locomo-f1", &["a".to_owned()], true);
            let right = Keyed { published: Some(1.0), ..Keyed::default() };
            key.add("a", right);
            for corrected in corrections {
                key.add("a", Keyed { wrong: true, published: Some(0.0), corrected: *corrected });
            }
            let KeyedScore { n, wrong, corrected, without_correction, .. } = key.finish(String::new()).all;
            (n, wrong, corrected, without_correction)
        };
        assert_eq!(score(&[Some(1.0), None]), (3, 2, Some(1.0), 1));
        assert_eq!(score(&[None, None]), (3, 2, None, 2), "the key is corrected nowhere");
        assert_eq!(score(&[Some(0.0)]), (2, 1, Some(0.5), 0));
        let once = key(false).all;
        assert_eq!((once.corrected, once.without_correction), (None, 0), "grades of one key say nothing of it");
    }

    #[test]
    fn nothing_asked_has_no_figures() {
        let score = AnswerKey::new("judge", &["a".to_owned()], true).finish(String::new());
        assert_eq!((score.all, score.by_category.len()), (KeyedScore::default(), 0));
    }
}
