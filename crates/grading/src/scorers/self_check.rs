//! The grader's self-check, before the first paid question: does the scorer give what it must give?
//!
//! Of a scorer of answers: the gold as it uses it must score 1, the empty answer 0, and the whole conversation as the answer
//! less than one half on average, unless it says that long answers win. Of a figure of recalls: what found nothing scores 0.
//! No calls are made. Golds whose raw text scores below 1, and cut-offs that are too small for all of the evidence, are worth a
//! note, not a failure.

use bench_proto::{
    dataset::{BankContent, Gold, GoldRecord, StreamEntry},
    profile::{GraderCheck, Profile},
    step::{RankHits, Retrieval},
};
use serde::{Deserialize, Serialize};

use super::{Reads, ScoreCase, Scorer};

/// The whole conversation as an answer must stay below this mean score.
pub const CONVERSATION_LIMIT: f64 = 0.5;

/// Scores that differ from what they must be by more than this have failed.
const TOLERANCE: f64 = 1e-9;

/// What a scorer was found to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfCheckReport {
    /// The scorer's name.
    pub scorer: String,
    /// Whether every case had its known score.
    pub ok: bool,
    /// Questions that the scorer applies to.
    pub checked: u64,
    /// Questions that it does not apply to.
    pub skipped: u64,
    /// It says that long answers win.
    #[serde(default)]
    pub long_answers_win: bool,
    /// Mean score of the gold as the scorer uses it: must be 1; `None` when nothing was checked. Of a figure of recalls: of the
    /// best possible list.
    pub gold_mean: Option<f64>,
    /// Mean score of the empty answer, or of a recall that found nothing: must be 0.
    pub empty_mean: Option<f64>,
    /// Mean score of the whole conversation as the answer: must be below [`CONVERSATION_LIMIT`]. `None` too where no
    /// conversation is longer than an answer may be.
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
        let too_high = |mean: &f64| *mean >= CONVERSATION_LIMIT && !self.long_answers_win;
        if let Some(mean) = self.conversation_mean.filter(too_high) {
            reasons.push(format!("self-check: {}: the whole conversation as the answer scores {mean:.3}", self.scorer));
        }
        reasons
    }

    /// What readers of the score must know where long answers win.
    #[must_use]
    pub fn long_answers_note(&self) -> Option<String> {
        let mean = self.conversation_mean.filter(|mean| *mean >= CONVERSATION_LIMIT && self.long_answers_win)?;
        Some(format!("{}: long answers win by it, the whole conversation as the answer scores {mean:.3}", self.scorer))
    }

    /// What is worth knowing, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.long_answers_note().into_iter().collect();
        if !self.raw_gold_below_1.is_empty() {
            let ids = count_and_first(&self.raw_gold_below_1);
            // figures of recalls have a cut-off in their names, scorers of answers have none
            let what = match self.scorer.contains('@') {
                false => "the gold's raw text scores below 1",
                true => "there is more evidence than the first k can hold",
            };
            notes.push(format!("{}: {what} on {ids}", self.scorer));
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
pub fn self_check<'a, T: AsRef<str>, C: AsRef<[ScoreCase<'a>]>>(
    scorer: &dyn Scorer,
    banks: impl IntoIterator<Item = (T, C)>,
) -> SelfCheckReport {
    let mut report = SelfCheckReport {
        scorer: scorer.name().to_owned(),
        ok: false,
        checked: 0,
        skipped: 0,
        long_answers_win: scorer.long_answers_win(),
        gold_mean: None,
        empty_mean: None,
        conversation_mean: None,
        gold_failures: Vec::new(),
        empty_failures: Vec::new(),
        raw_gold_below_1: Vec::new(),
    };
    let mut sums = Sums::default();
    for (conversation, cases) in banks {
        let cases = cases.as_ref();
        match scorer.reads() {
            Reads::Answer => check_texts(scorer, conversation.as_ref(), cases, &mut report, &mut sums),
            Reads::Ranks => cases.iter().for_each(|case| check_ranks(scorer, case, &mut report, &mut sums)),
            // what hits must hold is told by the answers of known score alone
            Reads::Hits => {
                let nothing = Retrieval::default();
                let applies =
                    |case: &&ScoreCase<'_>| scorer.score(&ScoreCase { retrieval: Some(&nothing), ..**case }).is_some();
                let checked = cases.iter().filter(applies).count();
                report.checked += checked as u64;
                report.skipped += (cases.len() - checked) as u64;
            }
        }
    }
    if report.checked > 0 && scorer.reads() != Reads::Hits {
        let Sums { gold, empty, whole, recited } = sums;
        (report.gold_mean, report.empty_mean) =
            (Some(gold / report.checked as f64), Some(empty / report.checked as f64));
        report.conversation_mean = (recited > 0).then(|| whole / recited as f64);
    }
    report.ok = report.reasons().is_empty();
    report
}

/// Sums of scores over the questions.
#[derive(Default)]
struct Sums {
    gold: f64,
    empty: f64,
    /// Of whole conversations, over `recited` questions.
    whole: f64,
    recited: u64,
}

fn check_texts(
    scorer: &dyn Scorer,
    conversation: &str,
    cases: &[ScoreCase<'_>],
    report: &mut SelfCheckReport,
    sums: &mut Sums,
) {
    let empty = scorer.score_many("", cases);
    let whole = scorer.score_many(conversation, cases);
    let words = conversation.split_whitespace().count();
    for ((case, empty), whole) in cases.iter().zip(empty).zip(whole) {
        let (Some(empty), Some(whole)) = (empty, whole) else {
            report.skipped += 1;
            continue;
        };
        let id = || case.question.question_id.clone();
        // where there is none, the abstention is expected
        let raw = answer_of(case.gold().filter(|gold| !gold.is_unanswerable()).unwrap_or(&Gold::Abstain));
        let used = scorer.used_gold(&raw, case.rules);
        let score = |answer: &str| scorer.score(&ScoreCase { answer: Some(answer), ..*case }).unwrap_or(0.0);
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
        (sums.gold, sums.empty) = (sums.gold + gold, sums.empty + empty);
        // a conversation of no more words than an answer may have is nothing that is recited
        if words > 2 * scorer.room(case) {
            (sums.whole, sums.recited) = (sums.whole + whole, sums.recited + 1);
        }
    }
}

/// An answer that says what the gold expects: of several texts the first.
fn answer_of(gold: &Gold) -> String {
    match gold {
        Gold::AnyOf(texts) => texts.first().cloned().unwrap_or_default(),
        _ => gold.text(),
    }
}

fn check_ranks(scorer: &dyn Scorer, case: &ScoreCase<'_>, report: &mut SelfCheckReport, sums: &mut Sums) {
    let Some(GoldRecord { evidence_turns, evidence_sessions, .. }) = case.gold else {
        report.skipped += 1;
        return;
    };
    let score = |ranks: fn(u32) -> Vec<u32>| {
        let hits = |evidence: &[String]| {
            let gold = u32::try_from(evidence.len()).unwrap_or(u32::MAX);
            RankHits { gold, ranked: gold, ranks: ranks(gold) }
        };
        let retrieval =
            Retrieval { turn: hits(evidence_turns), session: hits(evidence_sessions), ..Retrieval::default() };
        scorer.score(&ScoreCase { retrieval: Some(&retrieval), ..*case })
    };
    let (Some(best), Some(nothing)) = (score(|gold| (1..=gold).collect()), score(|_| Vec::new())) else {
        report.skipped += 1;
        return;
    };
    if best < 1.0 - TOLERANCE {
        report.raw_gold_below_1.push(case.question.question_id.clone());
    }
    if nothing > TOLERANCE {
        report.empty_failures.push(case.question.question_id.clone());
    }
    report.checked += 1;
    sums.gold += best;
    sums.empty += nothing;
}

/// Holds a scorer to the answers of a dataset's profile whose scores are known: what differs, one line each.
#[must_use]
pub fn check_answers(scorer: &dyn Scorer, profile: &Profile) -> Vec<String> {
    let of_scorer = profile.checks.iter().filter(|check| check.scorer == scorer.name());
    of_scorer
        .filter_map(|check: &GraderCheck| {
            let gold = GoldRecord { gold: check.gold.clone(), ..GoldRecord::default() };
            let (answer, rules) = (Some(check.answer.as_str()), profile.rules(&check.category));
            let score = scorer.score(&ScoreCase { answer, gold: Some(&gold), rules, ..ScoreCase::default() });
            if score.is_some_and(|score| (score - check.score).abs() <= TOLERANCE) {
                return None;
            }
            let scored = score.map_or_else(|| "has no score".to_owned(), |score| format!("scores {score:.3}"));
            let (scorer, answer, must) = (&check.scorer, &check.answer, check.score);
            Some(format!("self-check: {scorer}: the answer '{answer}' {scored} in {}, not {must:.3}", check.category))
        })
        .collect()
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

    use bench_proto::dataset::{Memory, Question, Session, Turn};
    use serde_json::Value;

    use super::*;
    use crate::scorers::{category, locomo_f1, reference, registry};

    fn text(gold: &str) -> Gold {
        Gold::Text(gold.to_owned())
    }

    fn record(gold: Gold) -> GoldRecord {
        GoldRecord { gold, ..GoldRecord::default() }
    }

    fn check(scorer: &dyn Scorer, conversation: &str, cases: &[(&str, Option<Gold>)]) -> SelfCheckReport {
        let profile = Profile::implied();
        let asked: Vec<(Question, Option<GoldRecord>)> = cases
            .iter()
            .enumerate()
            .map(|(i, (category, gold))| {
                let (question_id, category) = (format!("q{i}"), (*category).to_owned());
                (Question { question_id, category, ..Question::default() }, gold.clone().map(record))
            })
            .collect();
        let cases = asked.iter().map(|(question, gold)| ScoreCase {
            question,
            gold: gold.as_ref(),
            rules: profile.rules(&question.category),
            ..ScoreCase::default()
        });
        let cases: Vec<ScoreCase<'_>> = cases.collect();
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
        let report = check(
            registry::find("word-overlap").expect("it is registered"),
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
    fn a_scorer_of_hits_applies_only_to_questions_whose_gold_it_reads() {
        let scorer = registry::find("assertions").expect("it is registered");
        let report = check(scorer, "x", &[("temporal", Some(text("tea"))), ("temporal", None)]);
        assert_eq!((report.ok, report.checked, report.skipped), (false, 0, 2));
        let asserted = Gold::Assertions(Box::default());
        let report = check(scorer, "x", &[("temporal", Some(text("tea"))), ("temporal", Some(asserted))]);
        assert_eq!((report.ok, report.checked, report.skipped), (true, 1, 1));
    }

    #[test]
    fn conversation_is_dates_and_lines() {
        let turn = Turn { id: "D1:1".into(), speaker: "Ann".into(), text: "Hi".into(), ..Turn::default() };
        let memory = Memory { id: "m".into(), text: "Bob paints".into(), ..Memory::default() };
        let content = BankContent {
            bank_id: "b".into(),
            speakers: vec![],
            entries: vec![
                StreamEntry::Session(Session {
                    id: "D1".into(),
                    time_text: Some("8 May".into()),
                    turns: vec![turn],
                    ..Session::default()
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
        let checks = vec![
            check("a blue car", text("blue car"), 1.0),
            check("blue", text("blue car"), 1.0),
            check("blue", Gold::Rubric(vec![]), 0.0),
            GraderCheck { scorer: "exact".to_owned(), ..check("blue", text("red"), 1.0) },
        ];
        insta::assert_snapshot!(check_answers(&locomo_f1::OFFICIAL, &Profile { checks, ..Profile::implied() }).join("\n"), @r"
        self-check: locomo-f1: the answer 'blue' scores 0.667 in fact, not 1.000
        self-check: locomo-f1: the answer 'blue' has no score in fact, not 0.000
        ");
    }

    #[test]
    fn a_scorer_may_say_that_long_answers_win() {
        let substring = registry::find("substring").expect("it is registered");
        let gold = Gold::AnyOf(vec!["blue car".to_owned(), "red van".to_owned()]);
        let report = check(substring, "Ann: the red van, no, the blue car", &[("fact", Some(gold)), ("fact", None)]);
        assert!(report.ok, "{report:?}");
        assert_eq!((report.gold_mean, report.conversation_mean, report.skipped), (Some(1.0), Some(1.0), 1));
        insta::assert_snapshot!(report.notes().join("\n"), @r"
        substring: long answers win by it, the whole conversation as the answer scores 1.000
        substring: not applicable to 1 of 2
        ");
    }

    #[test]
    fn what_an_answer_may_say_is_not_reciting() {
        let rubric = registry::find("rubric").expect("it is registered");
        let gold = || [("fact", Some(Gold::Rubric(vec!["blue".to_owned()])))];
        let short = check(rubric, "the car is blue", &gold());
        assert_eq!((short.ok, short.conversation_mean), (true, None));
        let long = check(rubric, &format!("the car is blue{}", " or so".repeat(300)), &gold());
        assert_eq!((long.ok, long.conversation_mean), (true, Some(210.0 / 604.0)));
    }

    #[test]
    fn a_figure_of_recalls_is_zero_for_what_found_nothing() {
        let profile = Profile::implied();
        let question = Question { question_id: "q".to_owned(), ..Question::default() };
        let evidence = |turns: usize| GoldRecord {
            evidence_turns: (0..turns).map(|turn| format!("S1:{turn}")).collect(),
            evidence_sessions: vec!["S1".to_owned()],
            ..record(Gold::Abstain)
        };
        let golds = [evidence(1), evidence(3), record(Gold::Abstain)];
        let cases: Vec<ScoreCase<'_>> =
            golds.iter().map(|gold| ScoreCase::unanswered(&profile, &question, gold)).collect();
        let of = |name: &str| self_check(registry::find(name).expect("is there"), [("", cases.as_slice())]);
        let recall = of("recall@2");
        assert!(recall.ok, "{recall:?}");
        assert_eq!((recall.checked, recall.skipped, recall.empty_mean), (2, 1, Some(0.0)));
        assert_eq!(recall.conversation_mean, None);
        assert!(recall.gold_mean.is_some_and(|mean| (mean - 5.0 / 6.0).abs() < 1e-12), "{recall:?}");
        insta::assert_snapshot!(recall.notes().join("\n"), @r"
        recall@2: there is more evidence than the first k can hold on 1 question (q)
        recall@2: not applicable to 1 of 3
        ");
        assert_eq!(of("session-ndcg@2").gold_mean, Some(1.0));
        let unlabelled = self_check(registry::find("recall@2").expect("is there"), [("", &cases[2..])]);
        insta::assert_snapshot!(
            unlabelled.reasons().join("\n"),
            @"self-check: recall@2 applies to no question of the sample"
        );
    }

    /// Conversations and questions of the published file.
    fn locomo(data: &Value) -> Vec<(String, Vec<(Question, GoldRecord)>)> {
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
                    Value::Number(number) => Gold::Number(number.clone()),
                    Value::String(string) => Gold::Text(string.clone()),
                    _ => Gold::Abstain,
                };
                let category = category::of_number(number).expect("of five").to_owned();
                let gold = record(if number == 5 { Gold::Abstain } else { gold });
                (Question { question_id: format!("{id}:{index}"), category, ..Question::default() }, gold)
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
        let (banks, profile) = (locomo(&data), Profile::implied());
        for scorer in [&locomo_f1::OFFICIAL, &locomo_f1::ASTROCYTE] {
            let started = Instant::now();
            let report = self_check(
                scorer,
                banks.iter().map(|(conversation, questions)| {
                    let cases =
                        questions.iter().map(|(question, gold)| ScoreCase::unanswered(&profile, question, gold));
                    (conversation, cases.collect::<Vec<_>>())
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
