//! The questions as the page's script reads them: arrays instead of objects where there are many, shared texts once.

use std::collections::HashMap;

use bench_proto::{
    facts::Outcome,
    metric::{Better, Scale},
    scenario::AnsweredBy,
    step::PlacedBy,
    summary::{CauseKind, JudgementLine, LineLevel, MetricScore, QuestionLine, RetrievedLine, Summary},
    text,
};
use serde::Serialize;

use super::{MOST_QUESTIONS, Page};

/// Longest text that travels, in characters; longer ones are cut and marked.
const MOST_CHARACTERS: usize = 6_000;

/// What the script reads.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    metric: &'a str,
    pass: f64,
    /// The threshold itself does not pass.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    beyond: bool,
    /// Lower scores are better.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lower: bool,
    trace_url: Option<&'a str>,
    categories: Vec<&'a str>,
    texts: Vec<&'a str>,
    /// (name, instructions, layout of the question).
    prompts: Vec<(&'a str, &'a str, &'a str)>,
    questions: Vec<QuestionData<'a>>,
}

/// (id, session, score, text number, 1 when it is evidence, 1 when it was placed by its text), and where there is more to say of it
/// what it is known to be, unless that is a turn, and what else the system said.
#[derive(Serialize)]
#[serde(untagged)]
enum Hit<'a> {
    Plain(&'a str, &'a str, Option<f64>, usize, u8, u8),
    Told(&'a str, &'a str, Option<f64>, usize, u8, u8, Option<LineLevel>, Option<Vec<(&'a str, String)>>),
}

#[derive(Serialize)]
struct QuestionData<'a> {
    id: &'a str,
    bank: &'a str,
    cat: usize,
    q: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<std::borrow::Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ans: Option<std::borrow::Cow<'a, str>>,
    /// Whose the answer is, where the scenario leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    out: &'static str,
    /// Of several recalls: (what was searched for, number of hits).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    se: Vec<(std::borrow::Cow<'a, str>, u64)>,
    /// (facet, value).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    f: Vec<(&'a str, &'a str)>,
    /// (metric, score).
    s: Vec<(&'a str, f64)>,
    hits: Vec<Hit<'a>>,
    /// Evidence that is not among the hits.
    miss: Vec<&'a str>,
    /// (evidence session, its id in the dataset's files).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    os: Vec<(&'a str, &'a str)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fail: Vec<&'a str>,
    /// Why the answer is wrong, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<CauseKind>,
    /// Numbers of its prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p: Vec<usize>,
    /// Of those that speak for their judges: (judge, vote, verdict, what the model said).
    j: Vec<(&'a str, u32, &'a str, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    err: Option<&'a str>,
    /// Milliseconds of recall, answer, judge, queue wait, rate wait.
    t: [Option<f64>; 5],
    usd: f64,
    tr: &'a str,
    /// Where a kept trace is to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    tu: Option<&'a str>,
    /// `won` or `lost` against the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    flip: Option<&'a str>,
}

fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}… ({} characters left out)", &text[..at], text[at..].chars().count()).into(),
        None => text.into(),
    }
}

/// Prompts whose texts are known.
fn known_prompts(summary: &Summary) -> Vec<(&str, &str, &str)> {
    let known = summary.spec.prompt_texts.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    known.map(|(name, text)| (name.as_str(), text.system.as_str(), text.user.as_str())).collect()
}

fn rounded(ms: Option<f64>) -> Option<f64> {
    ms.map(|ms| (ms * 100.0).round() / 100.0)
}

impl<'a> Data<'a> {
    pub(super) fn from_page(page: &Page<'a>) -> Self {
        let summary: &'a Summary = page.summary;
        let scale = summary.scores.first().map_or(Scale::PLAIN, MetricScore::scale);
        let flips: HashMap<&str, &str> = page
            .comparison
            .map(|comparison| &comparison.flips[..])
            .unwrap_or_default()
            .iter()
            .map(|flip| (flip.question_id.as_str(), flip.direction.as_str()))
            .collect();
        let mut data = Self {
            metric: &summary.headline.metric,
            pass: scale.threshold,
            beyond: scale.beyond,
            lower: scale.better == Better::Lower,
            trace_url: page.trace_url,
            categories: Vec::new(),
            texts: Vec::new(),
            prompts: known_prompts(summary),
            questions: Vec::new(),
        };
        let mut numbers: HashMap<&'a str, usize> = HashMap::new();
        for line in page.questions.iter().take(MOST_QUESTIONS) {
            let question = data.question(line, &mut numbers, &flips);
            data.questions.push(question);
        }
        data
    }

    fn question(
        &mut self,
        line: &'a QuestionLine,
        numbers: &mut HashMap<&'a str, usize>,
        flips: &HashMap<&str, &'a str>,
    ) -> QuestionData<'a> {
        let cat = self.categories.iter().position(|name| *name == line.category).unwrap_or_else(|| {
            self.categories.push(&line.category);
            self.categories.len() - 1
        });
        // evidence is looked for by turns, or by sessions where the dataset or the hits say nothing of turns
        let is_turn = |hit: &RetrievedLine| matches!(hit.level, None | Some(LineLevel::Turn));
        let by_turns = !line.evidence.is_empty() && (line.retrieved.is_empty() || line.retrieved.iter().any(is_turn));
        let is_evidence = |id: &str, session: &str| {
            if by_turns {
                line.evidence.iter().any(|e| e == id)
            } else {
                line.evidence_sessions.iter().any(|e| e == session)
            }
        };
        let mut number = |text: &'a str| {
            *numbers.entry(text).or_insert_with(|| {
                self.texts.push(text);
                self.texts.len() - 1
            })
        };
        let hits = line
            .retrieved
            .iter()
            .map(|hit| {
                let marked = u8::from(is_evidence(&hit.id, &hit.session_id));
                let by_text = u8::from(hit.placed_by == Some(PlacedBy::Text));
                // a turn is what most hits are
                let level = hit.level.filter(|level| *level != LineLevel::Turn);
                let detail = |(name, value): (&'a String, &serde_json::Value)| {
                    (name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                };
                let details: Vec<_> = hit.details.iter().map(detail).collect();
                let details = Some(details).filter(|details| !details.is_empty());
                let (id, session, text) = (hit.id.as_str(), hit.session_id.as_str(), number(&hit.text));
                match (level, details) {
                    (None, None) => Hit::Plain(id, session, hit.score, text, marked, by_text),
                    (level, details) => Hit::Told(id, session, hit.score, text, marked, by_text, level, details),
                }
            })
            .collect();
        let named = if by_turns || line.evidence.is_empty() { &line.evidence } else { &line.evidence_sessions };
        let of = |hit: &RetrievedLine| if by_turns { hit.id.clone() } else { hit.session_id.clone() };
        let missing = |id: &&String| line.retrieved.iter().all(|hit| of(hit) != **id);
        let t = &line.timing_ms;
        let timed = line.outcome != Outcome::NotRun;
        QuestionData {
            id: &line.question_id,
            bank: &line.bank_id,
            cat,
            q: cut(&line.question),
            gold: line.gold.as_deref().map(cut),
            ans: line.answer.as_deref().map(cut),
            by: line.answered_by.map(AnsweredBy::name),
            out: line.outcome.name(),
            se: line.searches.iter().map(|search| (cut(&search.query), search.hits)).collect(),
            f: line.facets.iter().map(|(facet, value)| (facet.as_str(), value.as_str())).collect(),
            s: line.scores.iter().map(|(metric, score)| (metric.as_str(), *score)).collect(),
            hits,
            miss: named.iter().filter(missing).map(String::as_str).collect(),
            os: line.original_sessions.iter().map(|(id, original)| (id.as_str(), original.as_str())).collect(),
            why: line.cause.and_then(|cause| cause.kind),
            fail: line.failures.iter().map(String::as_str).collect(),
            p: line.prompts.iter().filter_map(|used| self.prompts.iter().position(|(name, ..)| name == used)).collect(),
            j: JudgementLine::speaking(&line.judgements)
                .map(|j| (j.judge.as_str(), j.vote, j.verdict.as_str(), cut(&j.said()).into_owned()))
                .collect(),
            err: line.error.as_deref(),
            t: [t.recall, t.answer, t.judge, timed.then_some(t.queue_wait), timed.then_some(t.rate_wait)].map(rounded),
            usd: line.usage.recall.usd + line.usage.answer.usd + line.usage.judge.usd,
            tr: &line.trace_id,
            tu: line.trace_url.as_deref(),
            flip: flips.get(line.question_id.as_str()).copied(),
        }
    }

    /// JSON that no HTML parser mistakes for markup, and in which nothing turns the direction of writing or drives an editor.
    pub(super) fn to_script(&self) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        Ok(text::json(&json).replace('<', "\\u003c"))
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::{Cause, SearchLine};

    use super::*;

    #[test]
    fn a_question_says_whose_its_answer_is_and_what_was_searched_for() {
        let summary = serde_json::from_str(include_str!("../../testdata/fair.json")).expect("a summary");
        let plain = crate::questions::tests::question();
        let search = |query: &str, hits| SearchLine { query: query.to_owned(), hits };
        let searches = vec![search("what came first?", 3), search("x".repeat(MOST_CHARACTERS + 1).as_str(), 0)];
        let several = QuestionLine {
            answered_by: Some(AnsweredBy::Fallback),
            searches,
            original_sessions: [("S2".to_owned(), "answer_7".to_owned())].into(),
            ..plain.clone()
        };
        let page = Page { summary: &summary, questions: &[plain, several], comparison: None, trace_url: None };
        let script = Data::from_page(&page).to_script().expect("is JSON");
        let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
        let [plain, several] = [0, 1].map(|at| &read["questions"][at]);
        assert!(["by", "se", "os"].iter().all(|key| plain.get(key).is_none()), "{plain}");
        assert_eq!(several["os"], serde_json::json!([["S2", "answer_7"]]));
        assert_eq!(
            (&several["by"], &several["se"][0]),
            (&"fallback".into(), &serde_json::json!(["what came first?", 3]))
        );
        assert!(several["se"][1][0].as_str().is_some_and(|query| query.ends_with("left out)")), "{several}");
    }

    #[test]
    fn a_hit_says_what_it_is_and_what_its_system_said_of_it_where_there_is_more_than_a_turn() {
        let summary = serde_json::from_str(include_str!("../../testdata/fair.json")).expect("a summary");
        let hit = |level, details: &[(&str, serde_json::Value)]| RetrievedLine {
            id: "D1:3".to_owned(),
            session_id: "D1".to_owned(),
            score: None,
            text: "Ann: tea".to_owned(),
            placed_by: Some(PlacedBy::Id),
            level: Some(level),
            details: details.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        };
        let said = [("rank", 2.into()), ("strategy", "</script>".into())];
        let question = QuestionLine {
            retrieved: vec![hit(LineLevel::Turn, &[]), hit(LineLevel::Session, &[]), hit(LineLevel::Turn, &said)],
            cause: Some(Cause { kind: Some(CauseKind::NotRetrieved), stored: Some(true), retrieved: Some(false) }),
            ..crate::questions::tests::question()
        };
        let page = Page { summary: &summary, questions: &[question], comparison: None, trace_url: None };
        let script = Data::from_page(&page).to_script().expect("is JSON");
        assert!(!script.contains("</script>"), "{script}");
        let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
        let hits = &read["questions"][0]["hits"];
        assert_eq!(read["questions"][0]["why"], "not_retrieved");
        assert_eq!(hits[0].as_array().map(Vec::len), Some(6));
        assert_eq!((&hits[1][6], &hits[1][7]), (&"session".into(), &serde_json::Value::Null));
        assert_eq!(hits[2][7], serde_json::json!([["rank", "2"], ["strategy", "</script>"]]));
    }

    #[test]
    fn what_others_say_leaves_the_json_neither_as_markup_nor_as_direction() {
        let summary = serde_json::from_str(include_str!("../../testdata/fair.json")).expect("a summary");
        let nasty = "</script><script>alert(1)</script><!-- \u{202e}\u{2066}\u{2028}\u{7f}\u{9b}\u{0}\u{feff}\u{e0041} \u{1f469}\u{200d}\u{1f4bb}";
        let question = QuestionLine {
            question: nasty.to_owned(),
            answer: Some(nasty.to_owned()),
            ..crate::questions::tests::question()
        };
        let page = Page { summary: &summary, questions: &[question], comparison: None, trace_url: None };
        let script = Data::from_page(&page).to_script().expect("is JSON");
        assert!(!script.contains('<') && !script.contains(text::acts), "{script}");
        for escaped in ["\\u003c/script>", "\\u202e", "\\u2066", "\\u2028", "\\u007f", "\\u009b", "\\u0000"] {
            assert!(script.contains(escaped), "{escaped}");
        }
        let read: serde_json::Value = serde_json::from_str(&script).expect("reads back");
        assert_eq!((&read["questions"][0]["q"], &read["questions"][0]["ans"]), (&nasty.into(), &nasty.into()));
        let page = crate::html::render(&page).expect("renders");
        assert!(
            !page.contains("alert(1)</script>") && !page.contains(|c| text::acts(c) && c != '\n'),
            "the page is no better"
        );
    }
}
