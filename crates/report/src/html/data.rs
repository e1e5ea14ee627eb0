//! The questions as the page's script reads them: arrays instead of objects where there are many, shared texts once.

mod texts;

use std::{borrow::Cow, collections::HashMap, io};

use bench_proto::{
    comparison::{Comparison, Flip},
    facts::Outcome,
    metric::{Better, Scale},
    scenario::AnsweredBy,
    step::PlacedBy,
    summary::{CauseKind, JudgementLine, LineLevel, MetricScore, QuestionLine, RetrievedLine, Summary},
    text,
};
use serde::{Serialize, ser::Error as _};

use self::texts::{Texts, cut};
use super::{
    MOST_QUESTIONS, Page,
    beside::{Beside, EvidenceBy, Piece, evidence_by, missed},
};
use crate::comparison::told_name;

/// What the script reads.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    /// The run, as `show` finds it; none that is in no store.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    /// What the run is called where it stands beside another; "this run" without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The run that it is held against, by its name or its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<String>,
    /// Questions are shown open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
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
    texts: Texts<'a>,
    /// Of prompts whose own words are not known: (name, instructions, layout of a sample).
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

/// (judge, vote, verdict, grade, 1 when it does not speak for its judge, replies of the model).
#[derive(Serialize)]
struct Vote<'a>(&'a str, u32, &'a str, Option<f64>, u8, Vec<Cow<'a, str>>);

/// A piece of a prompt: words, or (place of the hit, beginning and end of the part of its text).
#[derive(Serialize)]
#[serde(untagged)]
enum PieceData<'a> {
    Text(&'a str),
    Hit(usize, usize, usize),
}

/// (names, text number of the instructions, the question as it was laid out).
#[derive(Serialize)]
struct Sent<'a>(String, usize, Vec<PieceData<'a>>);

/// What a run made of a question.
#[derive(Serialize)]
struct Side<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ans: Option<Cow<'a, str>>,
    out: &'static str,
    /// (metric, score).
    s: Vec<(&'a str, f64)>,
    hits: Vec<Hit<'a>>,
    j: Vec<Vote<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    err: Option<&'a str>,
}

#[derive(Serialize)]
struct QuestionData<'a> {
    id: &'a str,
    bank: &'a str,
    cat: usize,
    q: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<Cow<'a, str>>,
    #[serde(flatten)]
    own: Side<'a>,
    /// Whose the answer is, where the scenario leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    /// Of several recalls: (what was searched for, number of hits).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    se: Vec<(Cow<'a, str>, u64)>,
    /// (facet, value).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    f: Vec<(&'a str, &'a str)>,
    /// Evidence that is not among the hits: (id, text number where its words are known).
    miss: Vec<(&'a str, Option<usize>)>,
    /// (evidence session, its id in the dataset's files).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    os: Vec<(&'a str, &'a str)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fail: Vec<&'a str>,
    /// Why the answer is wrong, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<CauseKind>,
    /// Prompts as they were sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sent: Vec<Sent<'a>>,
    /// Numbers of its prompts whose own words are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p: Vec<usize>,
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
    /// What the baseline made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<Side<'a>>,
    /// Something of it is left out: the page would be too large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// Prompts whose texts are known.
fn known_prompts(summary: &Summary) -> Vec<(&str, &str, &str)> {
    let known = summary.spec.prompt_texts.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    known.map(|(name, text)| (name.as_str(), text.system.as_str(), text.user.as_str())).collect()
}

fn rounded(ms: Option<f64>) -> Option<f64> {
    ms.map(|ms| (ms * 100.0).round() / 100.0)
}

/// What a question is held against.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held<'a> {
    /// What is told of it beside its line.
    pub(super) beside: Option<&'a Beside>,
    /// `won` or `lost` against the baseline.
    pub(super) flip: Option<&'a str>,
}

impl<'a> Data<'a> {
    pub(super) fn from_page(page: &Page<'a>) -> Self {
        let summary: &'a Summary = page.summary;
        let scale = summary.scores.first().map_or(Scale::PLAIN, MetricScore::scale);
        let flips: &'a [Flip] = page.comparison.map_or(&[], |comparison| &comparison.flips);
        let flips: HashMap<&str, &str> =
            flips.iter().map(|flip| (flip.question_id.as_str(), flip.direction.as_str())).collect();
        let mut data = Self {
            run: Some(&summary.run.id),
            baseline: page.comparison.map(|comparison| comparison.a.called().to_owned()),
            trace_url: page.trace_url,
            prompts: known_prompts(summary),
            ..Self::without_questions(&summary.headline.metric, scale)
        };
        for line in page.questions.iter().take(MOST_QUESTIONS) {
            let beside = page.beside.and_then(|beside| beside.get(&line.question_id));
            data.add(line, Held { beside, flip: flips.get(line.question_id.as_str()).copied() });
        }
        data
    }

    /// Of a comparison, whose flips are the questions: they are shown open.
    pub(super) fn of_comparison(comparison: &'a Comparison) -> Self {
        let runs @ [a, b] = [&comparison.a, &comparison.b];
        let [baseline, name] = match a.called() == b.called() {
            true => runs.map(told_name),
            false => runs.map(|run| run.called().to_owned()),
        };
        Self {
            name: Some(name),
            baseline: Some(baseline),
            open: true,
            ..Self::without_questions(&comparison.metric, comparison.scale())
        }
    }

    fn without_questions(metric: &'a str, scale: Scale) -> Self {
        Self {
            run: None,
            name: None,
            baseline: None,
            open: false,
            metric,
            pass: scale.threshold,
            beyond: scale.beyond,
            lower: scale.better == Better::Lower,
            trace_url: None,
            categories: Vec::new(),
            texts: Texts::default(),
            prompts: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// Says as which run `show` finds the questions.
    pub(super) const fn name_run(&mut self, run: &'a str) {
        self.run = Some(run);
    }

    /// Adds a question.
    pub(super) fn add(&mut self, line: &'a QuestionLine, held: Held<'a>) {
        let mut question = self.question(line, held.flip);
        if let Some(beside) = held.beside {
            self.add_beside(&mut question, beside);
        }
        self.questions.push(question);
    }

    /// What the line of a question tells of it.
    fn question(&mut self, line: &'a QuestionLine, flip: Option<&'a str>) -> QuestionData<'a> {
        let cat = self.categories.iter().position(|name| *name == line.category).unwrap_or_else(|| {
            self.categories.push(&line.category);
            self.categories.len() - 1
        });
        let t = &line.timing_ms;
        let timed = line.outcome != Outcome::NotRun;
        QuestionData {
            id: &line.question_id,
            bank: &line.bank_id,
            cat,
            q: cut(&line.question),
            gold: line.gold.as_deref().map(cut),
            own: Side::from_line(line, |text| self.texts.number(text)),
            by: line.answered_by.map(AnsweredBy::name),
            se: line.searches.iter().map(|search| (cut(&search.query), search.hits)).collect(),
            f: line.facets.iter().map(|(facet, value)| (facet.as_str(), value.as_str())).collect(),
            miss: missed(line).into_iter().map(|id| (id, None)).collect(),
            os: line.original_sessions.iter().map(|(id, original)| (id.as_str(), original.as_str())).collect(),
            why: line.cause.and_then(|cause| cause.kind),
            fail: line.failures.iter().map(String::as_str).collect(),
            sent: Vec::new(),
            p: line.prompts.iter().filter_map(|used| self.prompts.iter().position(|(name, ..)| name == used)).collect(),
            t: [t.recall, t.answer, t.judge, timed.then_some(t.queue_wait), timed.then_some(t.rate_wait)].map(rounded),
            usd: line.usage.recall.usd + line.usage.answer.usd + line.usage.judge.usd,
            tr: &line.trace_id,
            tu: line.trace_url.as_deref(),
            flip,
            other: None,
            cut: false,
        }
    }

    /// What is told beside the line, as far as the page has room.
    fn add_beside(&mut self, question: &mut QuestionData<'a>, beside: &'a Beside) {
        for (id, number) in &mut question.miss {
            let words = beside.evidence.iter().find(|(known, _)| known == id);
            *number = words.and_then(|(_, words)| self.texts.fitting(words));
            question.cut |= words.is_some() && number.is_none();
        }
        if let Some(other) = &beside.other {
            let texts: usize = other.retrieved.iter().map(|hit| self.texts.cost(&hit.text) + hit.id.len() + 40).sum();
            let said: usize = other.judgements.iter().map(|vote| vote.said().len() + 60).sum();
            if self.texts.take(texts + said + other.answer.as_ref().map_or(0, String::len)) {
                question.other = Some(Side::from_line(other, |text| self.texts.number(text)));
            } else {
                question.cut = true;
            }
        }
        for prompt in &beside.prompts {
            let words: usize = prompt.user.iter().map(Piece::cost).sum();
            if !self.texts.take(words + self.texts.cost(&prompt.system)) {
                question.cut = true;
                continue;
            }
            let pieces = prompt.user.iter().map(|piece| match piece {
                Piece::Text(text) => PieceData::Text(text),
                Piece::Hit { rank, from, to } => PieceData::Hit(*rank, *from, *to),
            });
            let pieces = pieces.collect();
            question.sent.push(Sent(prompt.names.join(", "), self.texts.number(&prompt.system), pieces));
            question.p.retain(|number| {
                let name = self.prompts[*number].0;
                // a prompt of several calls has a name for each of them
                !prompt.names.iter().any(|sent| sent == name || sent.starts_with(&format!("{name}, ")))
            });
        }
    }

    /// JSON that no HTML parser mistakes for markup, and in which nothing turns the direction of writing or drives an editor.
    pub(super) fn to_script(&self) -> Result<String, serde_json::Error> {
        let mut script = Vec::new();
        self.serialize(&mut serde_json::Serializer::with_formatter(&mut script, InScript))?;
        // JSON of texts is text
        String::from_utf8(script).map_err(|e| serde_json::Error::custom(e.utf8_error()))
    }
}

/// Writes strings so that they may stand in a script of a page: a large page is written once, and not copied to be mended.
struct InScript;

impl serde_json::ser::Formatter for InScript {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let plain = text::json(fragment);
        let mut parts = plain.split('<');
        writer.write_all(parts.next().unwrap_or_default().as_bytes())?;
        parts.try_for_each(|part| {
            writer.write_all(b"\\u003c")?;
            writer.write_all(part.as_bytes())
        })
    }
}

impl<'a> Side<'a> {
    fn from_line(line: &'a QuestionLine, mut number: impl FnMut(&'a str) -> usize) -> Self {
        let marks = |hit: &RetrievedLine| match evidence_by(line) {
            EvidenceBy::Turns => line.evidence.contains(&hit.id),
            EvidenceBy::Sessions => line.evidence_sessions.contains(&hit.session_id),
        };
        let speaking: Vec<&JudgementLine> = JudgementLine::speaking(&line.judgements).collect();
        let vote = |vote: &'a JudgementLine| {
            let silent = u8::from(!speaking.iter().any(|speaks| std::ptr::eq(*speaks, vote)));
            let replies = if vote.calls.is_empty() { std::slice::from_ref(&vote.raw) } else { &vote.calls[..] };
            let replies = replies.iter().map(|reply| cut(reply)).collect();
            Vote(&vote.judge, vote.vote, &vote.verdict, vote.grade, silent, replies)
        };
        Self {
            ans: line.answer.as_deref().map(cut),
            out: line.outcome.name(),
            s: line.scores.iter().map(|(metric, score)| (metric.as_str(), *score)).collect(),
            hits: line.retrieved.iter().map(|hit| Hit::from_line(hit, marks(hit), number(&hit.text))).collect(),
            j: line.judgements.iter().map(vote).collect(),
            err: line.error.as_deref(),
        }
    }
}

impl<'a> Hit<'a> {
    fn from_line(hit: &'a RetrievedLine, is_evidence: bool, text: usize) -> Self {
        let (marked, by_text) = (u8::from(is_evidence), u8::from(hit.placed_by == Some(PlacedBy::Text)));
        // a turn is what most hits are
        let level = hit.level.filter(|level| *level != LineLevel::Turn);
        let detail = |(name, value): (&'a String, &serde_json::Value)| {
            (name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let details: Vec<_> = hit.details.iter().map(detail).collect();
        let details = Some(details).filter(|details| !details.is_empty());
        let (id, session) = (hit.id.as_str(), hit.session_id.as_str());
        match (level, details) {
            (None, None) => Self::Plain(id, session, hit.score, text, marked, by_text),
            (level, details) => Self::Told(id, session, hit.score, text, marked, by_text, level, details),
        }
    }
}

impl Piece {
    /// Bytes that it takes on the page, about.
    fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 3,
            Self::Hit { .. } => 12,
        }
    }
}

#[cfg(test)]
mod tests;
