//! A question's trace as a waterfall in the terminal. Pure: spans in, lines out. [`draw`] makes the picture of one question,
//! [`overview()`] a line for each of several.

mod overview;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use bench_proto::trace::{Span, SpanClass, SpanValue, own_us};
use bench_report::terminal::{View, within};
use bench_worker::traces::QuestionTrace;
use console::{Color, Style};

pub(crate) use self::overview::{Slow, overview};

/// Characters of the time line where nobody knows how wide a line may be, and the fewest and most of a terminal's.
const BAR: usize = 48;
const BARS: (usize, usize) = (16, 96);
/// What a narrow terminal leaves of a time line.
const LEAST: usize = 8;
/// Longest name with its indentation.
const NAME: usize = 30;
/// Longest remark behind a line, and what a terminal leaves for it before the time line grows.
const REMARK: usize = 60;
const REMARK_FIRST: usize = 30;
/// Begin and duration with their blanks.
const TIMES: usize = 25;

/// Characters of the names of which the longest has so many, and of the time line beside them.
fn columns(longest: usize, view: View) -> (usize, usize) {
    let Some(width) = view.width else { return (longest, BAR) };
    let names = longest.min(width.saturating_sub(TIMES + LEAST));
    let room = width.saturating_sub(names + TIMES);
    (names, room.saturating_sub(REMARK_FIRST).clamp(BARS.0, BARS.1).min(room).max(LEAST))
}

fn paint(view: View, text: &str, class: SpanClass, failed: bool) -> String {
    if !view.colour {
        return text.to_owned();
    }
    let colour = match class {
        _ if failed => Color::Red,
        SpanClass::Question | SpanClass::Run => return text.to_owned(),
        SpanClass::Dispatch | SpanClass::Queue | SpanClass::Wait => Color::Yellow,
        SpanClass::Step => Color::Blue,
        SpanClass::Call => Color::Green,
        SpanClass::Attempt => Color::Red,
        SpanClass::Checkpoint => Color::Magenta,
    };
    Style::new().fg(colour).force_styling(true).apply_to(text).to_string()
}

/// All lines: a heading, the time line, one line a span, and a legend.
#[must_use]
pub(crate) fn draw(trace: &QuestionTrace, run: &str, link: Option<&str>, view: View) -> String {
    let mut lines = wrapped(&heading(trace, run), view.width);
    let place = link.map(|link| format!("  {link}")).unwrap_or_default();
    lines.push(fitted(format!("trace {}{place}", trace.trace_id), view.width));
    let Some(root) = trace.spans.first() else {
        lines.push("nothing of it has happened yet".to_owned());
        return lines.join("\n");
    };
    lines.extend(totals(trace).map(|parts| wrapped(&parts, view.width)).unwrap_or_default());
    let (spans, votes) = (in_reading_order(trace), votes(trace));
    let names: Vec<String> = spans.iter().map(|span| name(trace, span, &votes)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let (width, columns) = columns(longest, view);
    let scale = Scale { start_us: root.start_us, whole_us: (root.end_us - root.start_us).max(1), columns };
    lines.push(String::new());
    lines.push(format!("{:width$}  {}", "", scale.ruler()));
    for (span, name) in spans.iter().zip(&names) {
        lines.push(line(trace, span, &format!("{:width$}", clipped(name, width)), &scale, view));
    }
    lines.push(String::new());
    lines.extend(legend(view));
    lines.extend(linked(trace).map(|linked| fitted(linked, view.width)));
    lines.join("\n")
}

/// What the marks mean, in as many lines as the terminal needs.
fn legend(view: View) -> Vec<String> {
    let parts = [
        ("▓ step", SpanClass::Step),
        ("█ call", SpanClass::Call),
        ("░ wait", SpanClass::Wait),
        ("▒ checkpoint", SpanClass::Checkpoint),
        ("▄ a try that was given back", SpanClass::Attempt),
    ];
    let (mut lines, mut taken): (Vec<String>, usize) = (Vec::new(), 0);
    for (text, class) in parts {
        let (wide, painted) = (text.chars().count(), paint(view, text, class, false));
        match lines.last_mut() {
            Some(line) if view.width.is_none_or(|width| taken + 2 + wide <= width) => {
                line.push_str("  ");
                line.push_str(&painted);
                taken += 2 + wide;
            }
            _ => {
                lines.push(painted);
                taken = wide;
            }
        }
    }
    lines
}

/// A line of words within the width of a terminal.
fn fitted(line: String, width: Option<usize>) -> String {
    match width {
        Some(width) => within(&line, width),
        None => line,
    }
}

/// Joins parts by commas, in as many lines as the terminal needs.
fn wrapped(parts: &[String], width: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width.is_none_or(|width| line.chars().count() + part.chars().count() + 3 <= width) => {
                line.push_str(", ");
                line.push_str(part);
            }
            Some(line) => {
                line.push(',');
                lines.push(format!("  {part}"));
            }
            None => lines.push(part.clone()),
        }
    }
    // a part may be wider by itself
    lines.into_iter().map(|line| fitted(line, width)).collect()
}

fn heading(trace: &QuestionTrace, run: &str) -> Vec<String> {
    let subject = &trace.subject;
    let mut words = vec![format!("question {} ({}) of run {run}", subject.question_id, subject.category)];
    match &trace.facts {
        None => words.push("not ended".to_owned()),
        Some(facts) => {
            words.push(facts.outcome.name().to_owned());
            words.extend(facts.scores.iter().map(|(metric, score)| format!("{metric} {score:.3}")));
            // what makes a question slow: queues and waits are left out
            words.push(format!("own time {}", duration(i64::try_from(own_us(facts)).unwrap_or(i64::MAX))));
            words.extend(repeats(trace));
            if let Some(failure) = &facts.failure {
                words.push(clipped(&failure.to_string(), REMARK));
            }
            if let Some(kept) = facts.kept {
                words.push(format!("trace kept: {}", kept.name()));
            }
        }
    }
    words
}

/// What had to be done again.
fn repeats(trace: &QuestionTrace) -> Option<String> {
    let failed = |span: &&Span| span.error.is_some();
    let of = |class| trace.spans.iter().filter(move |span| span.class == class);
    let refused = of(SpanClass::Call).filter(|span| number(span, "http.response.status_code") == Some(429)).count();
    let calls = of(SpanClass::Call).filter(failed).count().saturating_sub(refused);
    let tries = of(SpanClass::Attempt).filter(failed).count();
    let counted = [(calls, "failed calls", "failed call"), (refused, "calls refused (429)", "call refused (429)")];
    let counted = counted.into_iter().chain([(tries, "tries given back", "try given back")]);
    let words: Vec<String> = counted
        .filter(|(count, ..)| *count > 0)
        .map(|(count, many, one)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn number(span: &Span, attribute: &str) -> Option<i64> {
    span.attributes.iter().find_map(|(name, value)| match value {
        SpanValue::Int(number) if *name == attribute => Some(*number),
        _ => None,
    })
}

/// Numbers of a judge and of a vote, from 0.
type Vote = (i64, i64);

/// Judge and vote that a span belongs to; none for the question's own steps.
fn vote_of(span: &Span) -> Option<Vote> {
    Some((number(span, "bench.judge")?, number(span, "bench.vote")?))
}

fn votes(trace: &QuestionTrace) -> BTreeSet<Vote> {
    trace.spans.iter().filter_map(vote_of).collect()
}

/// Spans as people read them: what belongs to one vote stands together, although votes are cast at the same time.
fn in_reading_order(trace: &QuestionTrace) -> Vec<&Span> {
    let Some((root, spans)) = trace.spans.split_first() else { return Vec::new() };
    // children stand behind their parents: a span directly below the root begins a block
    let mut blocks: Vec<(Option<Vote>, Vec<&Span>)> = Vec::new();
    for span in spans {
        match blocks.last_mut() {
            Some((_, block)) if span.parent != Some(root.id) => block.push(span),
            _ => blocks.push((vote_of(span), vec![span])),
        }
    }
    blocks.sort_by_key(|(vote, _)| *vote);
    std::iter::once(root).chain(blocks.into_iter().flat_map(|(_, block)| block)).collect()
}

/// Where the time went, in one line. What went on at the same time is counted more than once.
fn totals(trace: &QuestionTrace) -> Option<Vec<String>> {
    // an index that is built, or a server that is started, is waited for too, and not on anybody's account
    let builds = |span: &Span| ["build", "build_wait"].contains(&span.name.as_str());
    let of = |classes: &[SpanClass], of_building: bool| {
        let of_class = |span: &&Span| classes.contains(&span.class) && builds(span) == of_building;
        trace.spans.iter().filter(of_class).map(|span| span.end_us - span.start_us).sum::<i64>()
    };
    let parts = [
        ("in calls", of(&[SpanClass::Call], false)),
        ("building, or waiting for it", of(&[SpanClass::Wait], true)),
        ("waiting for allowances, money and repeats", of(&[SpanClass::Wait], false)),
        ("in queues", of(&[SpanClass::Dispatch, SpanClass::Queue], false)),
        ("being stored", of(&[SpanClass::Checkpoint], false)),
    ];
    let words: Vec<String> =
        parts.iter().filter(|(_, us)| *us > 0).map(|(what, us)| format!("{} {what}", duration(*us))).collect();
    (!words.is_empty()).then_some(words)
}

struct Scale {
    start_us: i64,
    whole_us: i64,
    columns: usize,
}

impl Scale {
    /// Column of a moment.
    fn column(&self, us: i64) -> usize {
        let share = (us - self.start_us) as f64 / self.whole_us as f64;
        ((share * self.columns as f64).round().max(0.0) as usize).min(self.columns)
    }

    fn ruler(&self) -> String {
        let (middle, end) = (duration(self.whole_us / 2), duration(self.whole_us));
        // a narrow ruler has its ends alone
        let narrow = self.columns < 2 * (middle.chars().count() + end.chars().count()) + 4;
        let middle = if narrow { "" } else { middle.as_str() };
        let mut ruler = format!("{:<width$}{middle}", "0", width = self.columns / 2 - middle.chars().count() / 2);
        let room = self.columns.saturating_sub(ruler.chars().count() + end.chars().count());
        ruler.push_str(&" ".repeat(room));
        ruler + &end
    }

    /// Blanks, marks, blanks.
    fn bar(&self, span: &Span) -> [String; 3] {
        let from = self.column(span.start_us).min(self.columns - 1);
        let to = self.column(span.end_us).clamp(from + 1, self.columns);
        let mark = match span.class {
            SpanClass::Question | SpanClass::Run => "─",
            SpanClass::Dispatch | SpanClass::Queue | SpanClass::Wait => "░",
            SpanClass::Step => "▓",
            SpanClass::Call => "█",
            SpanClass::Attempt => "▄",
            SpanClass::Checkpoint => "▒",
        };
        [" ".repeat(from), mark.repeat(to - from), " ".repeat(self.columns - to)]
    }
}

fn name(trace: &QuestionTrace, span: &Span, votes: &BTreeSet<Vote>) -> String {
    let which = match vote_of(span).filter(|_| span.class == SpanClass::Step && votes.len() > 1) {
        Some((judge, vote)) if votes.iter().any(|(other, _)| *other != judge) => format!(" {}.{}", judge + 1, vote + 1),
        Some((_, vote)) => format!(" {}", vote + 1),
        None => String::new(),
    };
    clipped(&format!("{}{}{which}", "  ".repeat(depth(trace, span)), span.name), NAME)
}

fn line(trace: &QuestionTrace, span: &Span, name: &str, scale: &Scale, view: View) -> String {
    let (offset, took) = (duration(span.start_us - scale.start_us), duration(span.end_us - span.start_us));
    let [before, marks, after] = scale.bar(span);
    let marks = paint(view, &marks, span.class, span.error.is_some());
    let times = format!("{:>9} {:>9}", format!("+{offset}"), took);
    let mut remarks = remarks(trace, span);
    if let Some(width) = view.width {
        // a line that is too long for the terminal would break the picture
        let room = width.saturating_sub(name.chars().count() + scale.columns + TIMES);
        remarks = if room > 0 { clipped(&remarks, room) } else { String::new() };
    }
    format!("{name}  {before}{marks}{after}  {times}  {remarks}").trim_end().to_owned()
}

fn depth(trace: &QuestionTrace, span: &Span) -> usize {
    let parent_of = |span: &Span| trace.spans.iter().find(|other| Some(other.id) == span.parent);
    std::iter::successors(parent_of(span), |span| parent_of(span)).count()
}

/// What is worth knowing beside the times: who did it, how it ended.
fn remarks(trace: &QuestionTrace, span: &Span) -> String {
    let attribute = |name: &str| span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let mut words = Vec::new();
    if let Some(SpanValue::Int(status)) = attribute("http.response.status_code") {
        words.push(format!("HTTP {status}"));
    } else if let Some(error) = &span.error {
        words.push(error.clone());
    }
    if let (SpanClass::Call, Some(SpanValue::Text(server)), Some(SpanValue::Int(port))) =
        (span.class, attribute("server.address"), attribute("server.port"))
    {
        // the port of HTTPS is no news
        words.push(if *port == 443 { server.clone() } else { format!("{server}:{port}") });
    }
    if let (SpanClass::Wait | SpanClass::Attempt, Some(SpanValue::Text(reason))) =
        (span.class, attribute("bench.reason"))
        && span.error.is_none()
    {
        words.push(reason.clone());
    }
    if span.class == SpanClass::Step {
        let [prompt, completion] = ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"].map(|name| {
            // calls have them, and a step what no call has told of
            let of_step = trace.spans.iter().filter(|other| other.id == span.id || other.parent == Some(span.id));
            let values = of_step.flat_map(|span| &span.attributes).filter(|(known, _)| *known == name);
            values.fold(0_i64, |sum, (_, value)| match value {
                SpanValue::Int(number) => sum.saturating_add(*number),
                _ => sum,
            })
        });
        if prompt > 0 || completion > 0 {
            words.push(format!("{prompt} + {completion} tokens"));
        }
        if let Some(SpanValue::Number(usd)) = attribute("bench.cost_usd")
            && *usd > 0.0
        {
            words.push(format!("${usd:.6}"));
        }
        words.extend(trace.workers.get(&span.session).cloned());
    }
    words.iter().map(|word| clipped(word, REMARK)).collect::<Vec<_>>().join(", ")
}

/// What happened before, in the run's own trace.
fn linked(trace: &QuestionTrace) -> Option<String> {
    let retains: Vec<&Span> = trace.linked.iter().map(|(_, span)| span).filter(|span| span.name == "retain").collect();
    let (first, last) = (retains.first()?, retains.last()?);
    let root = trace.spans.first()?;
    Some(format!(
        "its bank {} was retained in {}, {} before",
        trace.subject.bank_id,
        duration(last.end_us - first.start_us),
        duration((root.start_us - last.end_us).max(0))
    ))
}

/// A duration for people, with three digits that matter.
fn duration(us: i64) -> String {
    let us = us as f64;
    match us.abs() {
        below if below < 1e3 => format!("{us:.0} µs"),
        below if below < 1e4 => format!("{:.1} ms", us / 1e3),
        below if below < 1e6 => format!("{:.0} ms", us / 1e3),
        below if below < 6e7 => format!("{:.2} s", us / 1e6),
        _ => format!("{:.1} min", us / 6e7),
    }
}

fn clipped(text: &str, most: usize) -> String {
    let plain = bench_proto::text::one_line(text);
    if plain.chars().count() <= most {
        return plain.into_owned();
    }
    plain.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
