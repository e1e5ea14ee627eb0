//! The grader's self-check, before the first paid question: does the scorer give what it must give?
//!
//! The gold as the scorer uses it must score 1, the empty answer 0, and the whole conversation as the answer less than
//! one half on average. No calls are made. Golds whose raw text scores below 1 are worth a note, not a failure.

use bench_proto::{
    dataset::{BankContent, Gold, StreamEntry},
    profile::GraderCheck,
};
use serde::{Deserialize, Serialize};

use super::{ScoreCase, Scorer};

/// The whole conversation as an answer must stay below this mean score.
pub const CONVERSATION_LIMIT: f64 = 0.5;

/// Scores that differ from what they must be by more than this have failed.
const TOLERANCE: f64 = 1e-9;

/// A question of the sample.
#[derive(Debug, Clone, Copy)]
pub struct CheckCase<'a> {
    /// Its id.
    pub question_id: &'a str,
    /// Its category name.
    pub category: &'a str,
    /// What is expected.
    pub gold: Option<&'a Gold>,
}

/// What a scorer was found to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfCheckReport {
    /// The scorer's name.
    pub scorer: String,
    /// Nothing failed.
    pub ok: bool,
    /// Questions that the scorer applies to.
    pub checked: u64,
    /// Questions that it does not apply to.
    pub skipped: u64,
    /// Mean score of the gold as the scorer uses it: must be 1; `None` when nothing was checked.
    pub gold_mean: Option<f64>,
    /// Mean score of the empty answer: must be 0.
    pub empty_mean: Option<f64>,
    /// Mean score of the whole conversation as the answer: must be below [`CONVERSATION_LIMIT`].
    pub conversation_mean: Option<f64>,
    /// Questions whose gold scores below 1.
    pub gold_failures: Vec<String>,
    /// Questions whose empty answer scores above 0.
    pub empty_failures: Vec<String>,
    /// Questions whose gold scores below 1 as raw text, though not as the scorer uses it.
    pub raw_gold_below_1: Vec<String>,
}

impl SelfCheckReport {
    /// What failed, one line each; empty when the check passed.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.checked == 0 {
            reasons.push(format!("self-check: {} applies to no question of the sample", self.scorer));
        }
        for (what, ids) in
            [("gold scores below 1", &self.gold_failures), ("empty answer scores above 0", &self.empty_failures)]
        {
            if !ids.is_empty() {
                reasons.push(format!("self-check: {}: the {what} on {}", self.scorer, count_and_first(ids)));
            }
        }
        if let Some(mean) = self.conversation_mean.filter(|mean| *mean >= CONVERSATION_LIMIT) {
            reasons.push(format!("self-check: {}: the whole conversation as the answer scores {mean:.3}", self.scorer));
        }
        reasons
    }

    /// What is worth knowing, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.raw_gold_below_1.is_empty() {
            let ids = count_and_first(&self.raw_gold_below_1);
            notes.push(format!("{}: the gold's raw text scores below 1 on {ids}", self.scorer));
        }
        if self.skipped > 0 && self.checked > 0 {
            notes.push(format!(
                "{}: not applicable to {} of {}",
                self.scorer,
                self.skipped,
                self.skipped + self.checked
            ));
        }
        notes
    }
}

/// `3 questions (a, b, c)`, with at most three ids.
fn count_and_first(ids: &[String]) -> String {
    let first = ids.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if ids.len() > 3 { ", …" } else { "" };
    let noun = if ids.len() == 1 { "question" } else { "questions" };
    format!("{} {noun} ({first}{more})", ids.len())
}

/// Checks a scorer over a sample: for each bank the text of its conversation and its questions.
pub fn self_check<'a, T: AsRef<str>, C: AsRef<[CheckCase<'a>]>>(
    scorer: &dyn Scorer,
    banks: impl IntoIterator<Item = (T, C)>,
) -> SelfCheckReport {
    let mut report = SelfCheckReport {
        scorer: scorer.name().to_owned(),
        ok: false,
        checked: 0,
        skipped: 0,
        gold_mean: None,
        empty_mean: None,
        conversation_mean: None,
        gold_failures: Vec::new(),
        empty_failures: Vec::new(),
        raw_gold_below_1: Vec::new(),
    };
    let mut sums = [0.0; 3];
    for (conversation, cases) in banks {
        let cases = cases.as_ref();
        let golds: Vec<(Option<&Gold>, &str)> = cases.iter().map(|case| (case.gold, case.category)).collect();
        let empty = scorer.score_many("", &golds);
        let whole = scorer.score_many(conversation.as_ref(), &golds);
        for ((case, empty), whole) in cases.iter().zip(empty).zip(whole) {
            let (Some(empty), Some(whole)) = (empty, whole) else {
                report.skipped += 1;
                continue;
            };
            let id = || case.question_id.to_owned();
            let raw = gold_text(case);
            let used = scorer.used_gold(&raw, case.category);
            let score = |prediction: &str| {
                let case = ScoreCase { prediction, gold: case.gold, category: case.category };
                scorer.score(&case).unwrap_or(0.0)
            };
            let gold = score(used);
            if gold < 1.0 - TOLERANCE {
                report.gold_failures.push(id());
            } else if used != raw && score(&raw) < 1.0 - TOLERANCE {
                report.raw_gold_below_1.push(id());
            }
            if empty > TOLERANCE {
                report.empty_failures.push(id());
            }
            report.checked += 1;
            for (sum, score) in sums.iter_mut().zip([gold, empty, whole]) {
                *sum += score;
            }
        }
    }
    if report.checked > 0 {
        [report.gold_mean, report.empty_mean, report.conversation_mean] =
            sums.map(|sum| Some(sum / report.checked as f64));
    }
    report.ok = report.reasons().is_empty();
    report
}

/// Holds a scorer to the answers of a dataset's profile whose scores are known: what differs, one line each.
#[must_use]
pub fn check_answers(scorer: &dyn Scorer, checks: &[GraderCheck]) -> Vec<String> {
    let of_scorer = checks.iter().filter(|check| check.scorer == scorer.name());
    of_scorer
        .filter_map(|check| {
            let case = ScoreCase { prediction: &check.answer, gold: Some(&check.gold), category: &check.category };
            let score = scorer.score(&case);
            if score.is_some_and(|score| (score - check.score).abs() <= TOLERANCE) {
                return None;
            }
            let scored = score.map_or_else(|| "has no score".to_owned(), |score| format!("scores {score:.3}"));
            let (scorer, answer, must) = (&check.scorer, &check.answer, check.score);
            Some(format!("self-check: {scorer}: the answer '{answer}' {scored} in {}, not {must:.3}", check.category))
        })
        .collect()
}

/// The gold's text as an answer would say it: where there is none, the abstention is expected.
fn gold_text(case: &CheckCase<'_>) -> String {
    case.gold.unwrap_or(&Gold::Abstain).text()
}

/// A bank's whole conversation as one text.
#[must_use]
pub fn conversation_text(content: &BankContent) -> String {
    let mut lines = Vec::new();
    for entry in &content.entries {
        match entry {
            StreamEntry::Session(session) => {
                lines.extend(session.time_text.clone());
                lines.extend(session.turns.iter().map(bench_proto::dataset::Turn::line));
            }
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                lines.push(memory.text.clone())
            }
            StreamEntry::Update { memory: None, .. } => {}
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bench_proto::dataset::{Memory, Session, Turn};
    use serde_json::Value;

    use super::*;
    use crate::scorers::{category::Category, locomo_f1, reference, registry::SCORERS};

    fn text(gold: &str) -> Gold {
        Gold::Text(gold.to_owned())
    }

    fn check(scorer: &dyn Scorer, conversation: &str, cases: &[(&str, Option<Gold>)]) -> SelfCheckReport {
        let ids: Vec<String> = (0..cases.len()).map(|i| format!("q{i}")).collect();
        let cases: Vec<CheckCase<'_>> = cases
            .iter()
            .zip(&ids)
            .map(|((category, gold), question_id)| CheckCase { question_id, category, gold: gold.as_ref() })
            .collect();
        self_check(scorer, [(conversation, cases)])
    }

    #[test]
    fn a_sound_scorer_passes_with_notes() {
        let report = check(
            &locomo_f1::OFFICIAL,
            "We walked. It was a long day and nobody knew where the road went. The car was blue.",
            &[
                ("single-hop", Some(text("blue car"))),
                ("open-domain", Some(text("Likely no; she walks"))),
                ("multi-hop", Some(text("a road, a walk"))),
                ("temporal", Some(Gold::Number(2022.into()))),
                ("adversarial", None),
                ("adversarial", Some(Gold::Abstain)),
                ("single-hop", Some(Gold::Rubric(vec![]))),
            ],
        );
        assert!(report.ok, "{report:?}");
        assert_eq!((report.checked, report.skipped), (6, 1));
        assert_eq!((report.gold_mean, report.empty_mean), (Some(1.0), Some(0.0)));
        insta::assert_snapshot!(report.notes().join("\n"), @r"
        locomo-f1: the gold's raw text scores below 1 on 1 question (q1)
        locomo-f1: not applicable to 1 of 7
        ");
    }

    #[test]
    fn failures_are_named() {
        let word_overlap = SCORERS.iter().find(|scorer| scorer.name() == "word-overlap").expect("it is registered");
        let report = check(
            *word_overlap,
            "the car is blue and red and green",
            &[("single-hop", Some(text("blue car"))), ("adversarial", None), ("temporal", Some(text("7")))],
        );
        assert!(!report.ok);
        insta::assert_snapshot!(report.reasons().join("\n"), @r"
        self-check: word-overlap: the empty answer scores above 0 on 2 questions (q1, q2)
        self-check: word-overlap: the whole conversation as the answer scores 1.000
        ");

        let report = check(
            &locomo_f1::OFFICIAL,
            "blue",
            &[("multi-hop", Some(text("blue, red,"))), ("single-hop", Some(text("the"))), ("temporal", None)],
        );
        assert_eq!(report.gold_failures, ["q0", "q1"]);
        insta::assert_snapshot!(
            report.reasons().join("\n"),
            @"self-check: locomo-f1: the gold scores below 1 on 2 questions (q0, q1)"
        );

        let report = check(&locomo_f1::OFFICIAL, "blue", &[("temporal", None)]);
        assert_eq!((report.ok, report.gold_mean), (false, None));
        insta::assert_snapshot!(report.reasons().join("\n"), @"self-check: locomo-f1 applies to no question of the sample");
    }

    #[test]
    fn conversation_is_dates_and_lines() {
        let turn = Turn { id: "D1:1".into(), speaker: "Ann".into(), text: "Hi".into(), caption: None };
        let memory = Memory { id: "m".into(), text: "Bob paints".into(), time: None, fields: Default::default() };
        let content = BankContent {
            bank_id: "b".into(),
            speakers: vec![],
            entries: vec![
                StreamEntry::Session(Session {
                    id: "D1".into(),
                    time_text: Some("8 May".into()),
                    time: None,
                    turns: vec![turn],
                }),
                StreamEntry::Memory(memory),
                StreamEntry::Update { replaces: "m".into(), memory: None },
            ],
        };
        assert_eq!(conversation_text(&content), "8 May\nAnn: Hi\nBob paints");
    }

    #[test]
    fn answers_of_known_score_are_held() {
        let check = |answer: &str, gold: Gold, score| GraderCheck {
            scorer: "locomo-f1".to_owned(),
            category: "fact".to_owned(),
            gold,
            answer: answer.to_owned(),
            score,
        };
        let checks = [
            check("a blue car", text("blue car"), 1.0),
            check("blue", text("blue car"), 1.0),
            check("blue", Gold::Rubric(vec![]), 0.0),
            GraderCheck { scorer: "exact".to_owned(), ..check("blue", text("red"), 1.0) },
        ];
        insta::assert_snapshot!(check_answers(&locomo_f1::OFFICIAL, &checks).join("\n"), @r"
        self-check: locomo-f1: the answer 'blue' scores 0.667 in fact, not 1.000
        self-check: locomo-f1: the answer 'blue' has no score in fact, not 0.000
        ");
    }

    type Question = (String, &'static str, Option<Gold>);

    /// Conversations and questions of the published file.
    fn locomo(data: &Value) -> Vec<(String, Vec<Question>)> {
        let bank = |sample: &Value| {
            let id = reference::str(&sample["sample_id"]);
            let mut conversation = String::new();
            for (key, value) in sample["conversation"].as_object().expect("a conversation") {
                if let (true, Some(turns)) = (key.starts_with("session_"), value.as_array()) {
                    for turn in turns {
                        conversation +=
                            &format!("{}: {}\n", reference::str(&turn["speaker"]), reference::str(&turn["text"]));
                    }
                }
            }
            let question = |(index, qa): (usize, &Value)| {
                let number = qa["category"].as_u64().expect("a number");
                let gold = match &qa["answer"] {
                    _ if number == 5 => Some(Gold::Abstain),
                    Value::Number(number) => Some(Gold::Number(number.clone())),
                    Value::String(string) => Some(Gold::Text(string.clone())),
                    _ => None,
                };
                (format!("{id}:{index}"), Category::from_number(number).expect("of five").name(), gold)
            };
            (conversation, reference::list(&sample["qa"]).iter().enumerate().map(question).collect())
        };
        reference::list(data).iter().map(bank).collect()
    }

    #[test]
    fn locomo_passes() {
        let Some(data) = reference::json("data/locomo/locomo10.json") else {
            return;
        };
        let banks = locomo(&data);
        for scorer in [&locomo_f1::OFFICIAL, &locomo_f1::ASTROCYTE] {
            let started = Instant::now();
            let report = self_check(
                scorer,
                banks.iter().map(|(conversation, questions)| {
                    let cases: Vec<CheckCase<'_>> = questions
                        .iter()
                        .map(|(question_id, category, gold)| CheckCase { question_id, category, gold: gold.as_ref() })
                        .collect();
                    (conversation, cases)
                }),
            );
            eprintln!("{} over {} questions: {:?}", scorer.name(), report.checked, started.elapsed());
            assert!(report.ok, "{:?}", report.reasons());
            assert_eq!((report.checked, report.skipped), (1986, 0));
            assert_eq!(report.raw_gold_below_1.len(), 11);
            assert!(report.conversation_mean.is_some_and(|mean| mean < 0.3), "{report:?}");
        }
    }
}
