//! One question with all that is known of it, and lists of questions, as text.

use std::fmt::Write as _;

use bench_proto::summary::{JudgementLine, QuestionLine, UsageFigures};
use bench_report::terminal::within;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::out::{
    amounts::{counted, dollars},
    tables,
};

/// Columns before the lines of a section.
const INDENT: usize = 2;
/// Characters of a question in a list.
const LISTED_CHARACTERS: usize = 60;

/// Evidence that is not among the hits of a recall.
#[derive(Debug, Serialize)]
pub(crate) struct Missed {
    /// Id of the turn or memory, or of the session where evidence is told by sessions.
    pub(crate) id: String,
    /// What it says; null when the bank does not hold it, as where the sample leaves its session out.
    pub(crate) text: Option<String>,
}

/// A line of a list of questions.
pub(crate) struct ListedQuestion {
    pub(crate) question_id: String,
    pub(crate) category: String,
    /// By the run's headline metric.
    pub(crate) score: Option<f64>,
    pub(crate) outcome: &'static str,
    /// Where it lost, when it failed.
    pub(crate) lost: String,
    /// What it was told, when it ended in an error.
    pub(crate) error: Option<String>,
    pub(crate) question: String,
}

/// A table of questions; `metric` heads their scores. Errors have a column where there are some.
#[must_use]
pub(crate) fn list(metric: &str, questions: &[ListedQuestion]) -> String {
    let mut table = tables::table(["question", "category", metric, "outcome", "lost by", "error", "asked"])
        .sparing(&["category", "outcome"]);
    for question in questions {
        let score = question.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
        let lost = if question.lost.is_empty() { "-" } else { &question.lost };
        let (id, category) = (question.question_id.clone(), question.category.clone());
        let error = question.error.as_deref().map_or_else(|| "-".to_owned(), |error| cut(error, LISTED_CHARACTERS));
        let asked = cut(&question.question, LISTED_CHARACTERS);
        table.add_row([id, category, score, question.outcome.to_owned(), lost.to_owned(), error, asked]);
    }
    tables::render(&table.without_empty("error"))
}

/// A prompt as a model was sent it.
#[derive(Debug, Serialize)]
pub(crate) struct Sent {
    /// Its names in `spec.prompts` of the report; several where several models were sent the same.
    pub(crate) names: Vec<String>,
    /// The instructions.
    pub(crate) system: String,
    /// The question as it was laid out.
    pub(crate) user: String,
}

/// Everything of a question, from what was asked to what it cost and what models were sent; `missed` is the evidence that is not
/// among its hits, `width` that of the terminal, where there is one.
#[must_use]
pub(crate) fn whole(line: &QuestionLine, missed: &[Missed], sent: &[Sent], width: Option<usize>) -> String {
    let mut text = format!("question {} of bank {}, {}\n", line.question_id, line.bank_id, line.category);
    let mut section = |title: &str, body: &str| {
        let _ = write!(text, "\n{title}\n");
        for row in body.lines() {
            let _ = writeln!(text, "{}", format!("{:INDENT$}{row}", "").trim_end());
        }
    };
    section("asked", &line.question);
    section("expected", line.gold.as_deref().unwrap_or("(nothing: the dataset has no answer)"));
    section("answered", line.answer.as_deref().unwrap_or("(no answer)"));
    section("result", &result(line));
    if !line.searches.is_empty() {
        let searches = line.searches.iter().map(|search| format!("{} ({})", search.query, counted(search.hits, "hit")));
        section("searched for", &lines(searches));
    }
    section("hits, best first; * holds evidence", &hits(line, width.map(|width| width.saturating_sub(INDENT))));
    if !missed.is_empty() {
        let text = |missed: &Missed| {
            missed.text.clone().unwrap_or_else(|| "(not in what was stored: its session was left out)".to_owned())
        };
        section("evidence that was missed", &lines(missed.iter().map(|line| format!("{}  {}", line.id, text(line)))));
    }
    if !line.judgements.is_empty() {
        section("votes", &lines(line.judgements.iter().map(vote)));
    }
    section("calls", &calls(line));
    for prompt in sent {
        section(&format!("sent as {}", prompt.names.join(", ")), &format!("{}\n\n{}", prompt.system, prompt.user));
    }
    let is_told = |name: &&String| sent.iter().any(|prompt| prompt.names.iter().any(|sent| is_call_of(sent, name)));
    let untold: Vec<&str> = line.prompts.iter().filter(|name| !is_told(name)).map(String::as_str).collect();
    if !untold.is_empty() {
        section("further prompts, by their names in spec.prompts of report.json", &untold.join("\n"));
    }
    text
}

/// Whether a prompt that was sent is that of a name: one of several calls has its number behind it.
fn is_call_of(sent: &str, name: &str) -> bool {
    sent.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

fn result(line: &QuestionLine) -> String {
    let mut rows = vec![line.outcome.name().to_owned()];
    rows.extend(line.scores.iter().map(|(metric, score)| format!("{metric} {score:.2}")));
    if !line.failures.is_empty() {
        rows.push(format!("lost by {}", line.failures.join(", ")));
    }
    rows.extend(line.error.clone());
    rows.join("\n")
}

/// The hits one below the other: their texts begin in one column, and go on there.
fn hits(line: &QuestionLine, width: Option<usize>) -> String {
    if line.retrieved.is_empty() {
        return "(none)".to_owned();
    }
    let is_evidence = |id: &String, session: &String| match line.evidence.is_empty() {
        true => line.evidence_sessions.contains(session),
        false => line.evidence.contains(id),
    };
    let scores: Vec<String> =
        line.retrieved.iter().map(|hit| hit.score.map(score_of_hit).unwrap_or_default()).collect();
    let of_ids = line.retrieved.iter().map(|hit| hit.id.width()).max().unwrap_or(0);
    let of_scores = scores.iter().map(|score| score.width()).max().unwrap_or(0);
    lines(line.retrieved.iter().zip(&scores).zip(1..).map(|((hit, score), rank)| {
        let mark = if is_evidence(&hit.id, &hit.session_id) { '*' } else { ' ' };
        let id = format!("{}{}", hit.id, " ".repeat(of_ids.saturating_sub(hit.id.width())));
        let score = if of_scores > 0 { format!(" {score:>of_scores$}") } else { String::new() };
        let begin = format!("{rank:>2}{mark} {id}{score}  ");
        // beside long ids a text would have no room
        let column = Some(begin.width()).filter(|column| width.is_none_or(|width| *column <= width / 2));
        let column = column.unwrap_or(HITS_BEGIN);
        let text = match width {
            Some(width) => below(&hit.text, (begin.width(), column), width),
            None => hit.text.clone(),
        };
        format!("{begin}{}", text.replace('\n', &format!("\n{:column$}", "")))
    }))
}

/// Columns of a hit's place and mark.
const HITS_BEGIN: usize = 4;

/// A text in lines that end between words: its first one begins in one column, the others go on below another, or the same.
fn below(text: &str, (begin, column): (usize, usize), width: usize) -> String {
    let room = width.saturating_sub(column);
    // what stands before it takes more of the first line than of the others
    let before = "\u{a0}".repeat(begin.saturating_sub(column));
    // a wide gap within a line would be taken for the end of a column
    let one_blank = |line: &str| line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let text = text.lines().map(one_blank).collect::<Vec<_>>().join("\n");
    let lines = within(&format!("{before}{text}"), room);
    lines.strip_prefix(&before).map_or_else(|| lines.clone(), str::to_owned)
}

/// A system's own score of a hit, which may be any number: none fills a line.
fn score_of_hit(score: f64) -> String {
    if score.abs() < 1e9 { format!("{score:.3}") } else { format!("{score:.3e}") }
}

/// A vote with its judge's words below it.
fn vote(judgement: &JudgementLine) -> String {
    let grade = judgement.grade.map(|grade| format!(", grade {grade:.2}")).unwrap_or_default();
    let chosen = if judgement.chosen { ", speaks for its judge" } else { "" };
    let said = judgement.said();
    let head = format!("{} vote {}: {}{grade}{chosen}", judgement.judge, judgement.vote, judgement.verdict);
    if said.trim() == judgement.verdict { head } else { format!("{head}\n  {}", said.trim().replace('\n', "\n  ")) }
}

/// Calls, tokens, dollars and time of each phase that there was.
fn calls(line: &QuestionLine) -> String {
    let (usage, times) = (&line.usage, &line.timing_ms);
    let phases = [
        ("recall", &usage.recall, times.recall),
        ("answer", &usage.answer, times.answer),
        ("judge", &usage.judge, times.judge),
    ];
    let mut rows: Vec<String> = phases
        .into_iter()
        .filter_map(|(phase, usage, ms)| Some(format!("{phase}: {:.1} ms{}", ms?, paid(usage))))
        .collect();
    rows.push(format!("{} in all; {:.1} ms", counted(u64::from(line.attempts), "attempt"), times.question));
    rows.join("\n")
}

/// `, 1 call, 1200 + 15 tokens, $0.0003`; nothing without calls.
fn paid(usage: &UsageFigures) -> String {
    if usage.calls + usage.cached_calls == 0 {
        return String::new();
    }
    let cached =
        if usage.cached_calls > 0 { format!(", {} from the cache", usage.cached_calls) } else { String::new() };
    let (calls, tokens) = (counted(usage.calls, "call"), (usage.prompt_tokens, usage.completion_tokens));
    format!(", {calls}{cached}, {} + {} tokens, {}", tokens.0, tokens.1, dollars(usage.usd))
}

fn lines(rows: impl Iterator<Item = String>) -> String {
    rows.collect::<Vec<_>>().join("\n")
}

/// The first characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::facts::Outcome;
    use serde_json::json;

    use super::*;

    fn line() -> QuestionLine {
        let usage = |calls: u64, tokens: u64, usd: f64| {
            json!({"calls": calls, "cached_calls": 0, "retries": 0, "rate_limited": 0, "prompt_tokens": tokens,
                   "completion_tokens": 12 * calls, "usd": usd})
        };
        let hit =
            |id: &str, score: f64, text: &str| json!({"id": id, "session_id": "D1", "score": score, "text": text});
        serde_json::from_value(json!({
            "question_id": "conv-1:4", "bank_id": "conv-1", "category": "multi-hop",
            "question": "What do Ann and Ben both grow?", "gold": "quinces", "answer": "They grow plums.",
            "outcome": Outcome::Scored, "scores": {"judge": 0.0, "locomo-f1": 0.25},
            "retrieved": [hit("D1:2", 7.25, "Ann: My quince is in bloom."), hit("D1:9", 1.5, "Ben: Two lines\nof rain.")],
            "evidence": ["D1:2", "D3:1"], "evidence_sessions": ["D1", "D3"], "citations": [],
            "prompts": ["answerer.short", "judge.judge-list"], "failures": ["evidence_partial"],
            "judgements": [
                {"judge": "openai:gpt-4o", "vote": 1, "verdict": "WRONG", "raw": "Plums are no quinces.\nWRONG"},
                {"judge": "openai:small", "vote": 1, "verdict": "CORRECT", "raw": "CORRECT"},
            ],
            "error": null, "attempts": 3, "trace_id": "0".repeat(32),
            "usage": {"recall": usage(0, 0, 0.0), "answer": usage(1, 830, 0.0002), "judge": usage(2, 410, 0.0011)},
            "timing_ms": {"recall": 1.25, "answer": 310.0, "judge": 205.5, "question": 520.0, "queue_wait": 1.0,
                          "rate_wait": 0.0},
        }))
        .expect("a line of questions.jsonl")
    }

    #[test]
    fn a_question_is_told_from_what_was_asked_to_what_it_cost() {
        let missed = Missed { id: "D3:1".to_owned(), text: Some("Ben: I planted a quince too.".to_owned()) };
        let sent = Sent {
            names: vec!["answerer.short".to_owned()],
            system: "Answer briefly.".to_owned(),
            user: "[1] Ann: My quince is in bloom.\n\nQuestion: What do Ann and Ben both grow?".to_owned(),
        };
        insta::assert_snapshot!(whole(&line(), &[missed], &[sent], None));
    }

    #[test]
    fn texts_of_hits_go_on_in_one_column() {
        let mut line = line();
        let words = "Ann: Two words.  And many more of them, as many as three lines of a narrow terminal can hold.";
        for (hit, id) in line.retrieved.iter_mut().zip(["D1:2", "D10:19"]) {
            (hit.id, hit.text) = (id.to_owned(), words.to_owned());
        }
        for (width, column) in [(80, 18), (50, 18), (34, 4)] {
            let told = hits(&line, Some(width));
            let further = told.lines().filter(|line| !line.contains("D1"));
            let begins: Vec<usize> = further.map(|line| line.len() - line.trim_start().len()).collect();
            assert!(begins.len() > 1 && begins.iter().all(|begin| *begin == column), "{width}: {begins:?}\n{told}");
            assert!(told.lines().all(|line| line.width() <= width), "{width}:\n{told}");
            assert_eq!(told.split_whitespace().filter(|word| *word == "narrow").count(), 2, "{told}");
        }
    }

    #[test]
    fn no_score_of_a_hit_fills_a_line() {
        let shown = [0.0, -7.25, 1e9, f64::MAX, f64::MIN, f64::INFINITY].map(score_of_hit);
        assert_eq!(shown, ["0.000", "-7.250", "1.000e9", "1.798e308", "-1.798e308", "inf"]);
    }

    #[test]
    fn a_question_without_a_result_says_why() {
        let mut line = line();
        (line.outcome, line.answer, line.gold) = (Outcome::InfraError, None, None);
        (line.retrieved, line.judgements, line.prompts, line.failures) = Default::default();
        line.scores.clear();
        line.error = Some("provider_down: 503 from api.example".to_owned());
        insta::assert_snapshot!(whole(&line, &[], &[], None));
    }

    #[test]
    fn a_list_cuts_long_questions() {
        let listed = |question: &str, score| ListedQuestion {
            question_id: "conv-1:4".to_owned(),
            category: "multi-hop".to_owned(),
            score,
            outcome: "scored",
            lost: String::new(),
            error: score.is_none().then(|| "system_refused: recall: mine says: KeyError".to_owned()),
            question: question.to_owned(),
        };
        let questions = [listed("Who?", Some(0.25)), listed(&"é".repeat(70), None)];
        insta::assert_snapshot!(list("locomo-f1", &questions));
        let without = list("locomo-f1", &[listed("Who?", Some(0.25))]);
        let head: Vec<&str> = without.lines().next().expect("a head").split_whitespace().collect();
        assert_eq!(head, ["question", "category", "locomo-f1", "outcome", "lost", "by", "asked"]);
        assert!(without.contains("Who?"), "{without}");
    }
}
