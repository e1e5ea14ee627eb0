//! What a person reads first: at most [`MOST_LINES`] lines of at most [`WIDTH`] columns. Everything else is in the full report.

use bench_proto::{
    scenario::Scenario,
    summary::{JudgeError, Summary},
    text::one_line as clean,
};
use unicode_width::UnicodeWidthStr as _;

use super::{Painter, Style, cut};
use crate::{
    document::{better, having_it, judge_spread, judged_by, saved, stopped},
    figures::{count, counted, duration, interval, percent_down, percent_or_none, usd},
    words,
};

/// Lines of the page at most.
const MOST_LINES: usize = 24;
/// Columns of a line at most.
const WIDTH: usize = 80;

/// Columns of a bar.
const BAR: usize = 24;
/// Columns of the score's own bar.
const WIDE_BAR: usize = 60;
/// Columns of a category's name.
const NAME: usize = 26;
/// Reasons of an INVALID result that are shown.
const REASONS: usize = 3;

/// The page; ends with a newline. `painter` colours the verdict and the labels.
pub(super) fn render(summary: &Summary, painter: Painter) -> String {
    let (head, tail) = (head(summary), tail(summary));
    let mut lines: Vec<String> = head.into_iter().map(|(style, line)| paint(painter, style, &line)).collect();
    let room = MOST_LINES.saturating_sub(lines.len() + tail.len() + 1);
    let categories = categories(summary, room);
    if !categories.is_empty() {
        lines.push(String::new());
    }
    lines.extend(categories.into_iter().chain(tail).map(|line| cut(&line, WIDTH)));
    lines.join("\n") + "\n"
}

fn paint(painter: Painter, style: Option<Style>, line: &str) -> String {
    let line = cut(line, WIDTH);
    style.map_or_else(|| line.clone(), |style| painter.paint(style, &line))
}

/// What was run, whether it may be used, and its one figure.
fn head(summary: &Summary) -> Vec<(Option<Style>, String)> {
    let (sample, headline) = (&summary.dataset.sample, &summary.headline);
    let name = summary.run.name.as_deref().map(|name| format!("{} · ", clean(name))).unwrap_or_default();
    let of = format!("{} {}", summary.dataset.name, sample.preset);
    let mut lines =
        vec![(Some(Style::Bold), format!("{name}{of} · {} · {}", summary.spec.system, summary.spec.who_answered()))];
    if !summary.labels.is_empty() {
        let labels: Vec<String> = summary.labels.iter().map(|label| format!("[{label}]")).collect();
        lines.push((Some(Style::Yellow), labels.join(" ")));
    }
    if summary.run.status != "finished" {
        let state =
            format!("this run has not ended, it is {}: what follows is what there is so far", summary.run.status);
        lines.push((Some(Style::Yellow), state));
    }
    lines.push((Some(Style::for_verdict(summary.run.verdict)), summary.run.verdict.name().to_owned()));
    lines.extend(few(&summary.run.reasons, REASONS).into_iter().map(|reason| (None, format!("  {reason}"))));
    let figure = format!(
        "{} {}{}, 95 % interval {}",
        headline.metric,
        percent_or_none(headline.value),
        words::direction(better(summary)),
        interval(headline.ci95.as_ref()),
    );
    lines.push((Some(Style::Bold), figure));
    if let Some(value) = headline.value {
        let range = headline.ci95.as_ref().map(|ci| (ci.low, ci.high));
        lines.push((None, format!("0 {} 100 %", scale(value, range, WIDE_BAR))));
    }
    if let Some(counted) = &summary.counting {
        let figure = percent_or_none(counted.value);
        lines.push((
            Some(Style::Bold),
            format!("Counted as {}: {figure} of {}", counted.counting.name, count(counted.n)),
        ));
    }
    lines.extend(audited(summary).map(|line| (None, line)));
    let asked = format!("{} of {}", count(sample.n), counted(summary.dataset.questions, "question"));
    let coverage = percent_down(summary.outcomes.coverage);
    let strict = percent_or_none(headline.strict);
    lines.push((None, format!("coverage {coverage}, strict {strict}, {asked} in {}", counted(sample.banks, "bank"))));
    lines.extend(having_it(headline).map(|words| (None, words)));
    if let Some(stop) = &summary.stop {
        lines.extend(std::iter::once(stopped(stop)).chain(saved(stop)).map(|line| (None, line)));
    }
    lines.push((None, judges(summary)));
    lines.extend(judge_spread(summary).map(|line| (None, line)));
    lines.push((None, effort(summary)));
    lines.extend(memory_costs(summary).map(|line| (None, line)));
    lines
}

/// What the memory system spends itself, where it was metered.
fn memory_costs(summary: &Summary) -> Option<String> {
    let metered = summary.metered.as_ref().filter(|metered| metered.total.is_seen())?;
    let each = |usd_each: Option<f64>| usd_each.map_or_else(|| "-".to_owned(), usd);
    let (filling, asking) = (metered.usd_per_1000_turns, metered.usd_per_question.map(|each| 1000.0 * each));
    let (filling, asking) = (each(filling), each(asking));
    Some(format!(
        "memory itself {}: {filling} per 1,000 turns, {asking} per 1,000 questions",
        usd(metered.total.usd_list())
    ))
}

/// Of a judge audit: how often the judge erred in each direction.
fn audited(summary: &Summary) -> Option<String> {
    let rates = &summary.judge_audit.as_ref()?.rates;
    let of = |error: JudgeError| {
        let all = rates.iter().find(|rate| rate.error == error && rate.kind.is_none() && rate.part.is_none());
        percent_or_none(all.and_then(|rate| rate.rate.value))
    };
    Some(format!("false accepts {}, false rejects {}", of(JudgeError::FalseAccept), of(JudgeError::FalseReject)))
}

/// Who judged, and where.
fn judges(summary: &Summary) -> String {
    judged_by(summary).unwrap_or_else(|| without_judge(summary).to_owned())
}

/// What grades where no model does.
fn without_judge(summary: &Summary) -> &'static str {
    let (spec, metric) = (&summary.spec, &summary.headline.metric);
    // parts of `assertions` have names of their own
    let is_scored = spec.scorers.iter().any(|scorer| scorer == metric || scorer == "assertions");
    match (spec.scenario, is_scored) {
        (Scenario::RetrieveOnly, _) => "no answers: recalls are scored",
        (_, true) => "no judge: answers are scored by the dataset's own rules",
        (_, false) => "no judge of ours: the grades are those that were brought",
    }
}

/// Dollars, time, latency and context.
fn effort(summary: &Summary) -> String {
    let total = &summary.total;
    let unknown = if summary.usage.unknown.is_empty() { "" } else { " and the system's own, unknown" };
    let mut parts = vec![format!("{}, {}{unknown}", usd(total.used.usd), counted(total.used.calls, "call"))];
    parts.extend(summary.run.wall_seconds.map(duration));
    let probe = summary.latency_probe.as_ref().and_then(|probe| probe.p50_ms);
    parts.extend(probe.map(|ms| format!("recall {ms:.1} ms (probe, p50)")));
    let context = summary.context.as_ref().map(|context| context.mean_tokens.round() as u64);
    parts.extend(context.map(|tokens| format!("{} tokens a question", count(tokens))));
    parts.join(" · ")
}

/// A line for each category, `room` of them at most.
fn categories(summary: &Summary, room: usize) -> Vec<String> {
    let all = summary.scores.first().map(|score| &score.by_category[..]).unwrap_or_default();
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    if shown == 0 {
        return Vec::new();
    }
    let width = all[..shown].iter().map(|of| of.category.width().min(NAME)).max().unwrap_or_default();
    let line = |of: &bench_proto::summary::CategoryScore| {
        let name = cut(&clean(&of.category), NAME);
        let fill = " ".repeat(width.saturating_sub(name.width()));
        let bar = of.value.map_or_else(|| " ".repeat(BAR), |value| filled(value, BAR));
        let value = percent_or_none(of.value);
        format!("{name}{fill} {value:>9} {bar} {:>13} n {}", interval(of.ci95.as_ref()), count(of.n))
    };
    let mut lines: Vec<String> = all[..shown].iter().map(line).collect();
    if shown < all.len() {
        lines.push(format!("and {} more categories", all.len() - shown));
    }
    lines
}

/// Controls, the first cause of failure, what to know, and what to do next.
fn tail(summary: &Summary) -> Vec<String> {
    let mut lines = vec![String::new(), controls(summary)];
    lines.extend(cause(summary));
    let mut notes: Vec<String> = summary.warnings.iter().map(|warning| format!("Warning: {warning}.")).collect();
    notes.extend(summary.spec.notes.iter().map(|note| format!("Note: {note}.")));
    notes.extend(summary.dataset.sample.notes.iter().map(|note| format!("Sample note: {note}.")));
    notes.extend(summary.dataset.notes.iter().map(|note| format!("Dataset note: {note}.")));
    lines.extend(few(&notes, 2));
    let run = &summary.run.id;
    lines.extend([
        String::new(),
        format!("all of it  bench-coord report {run} --full"),
        format!("a page     bench-coord report {run} --format html"),
        format!("compared   bench-coord compare OTHER {run}"),
    ]);
    lines
}

fn controls(summary: &Summary) -> String {
    if summary.controls.is_empty() {
        return "Controls: not run; --controls shows whether the score depends on memory.".to_owned();
    }
    let each = summary.controls.iter().map(|control| format!("{} {}", control.name, percent_or_none(control.value)));
    format!("Controls: {}", each.collect::<Vec<_>>().join(", "))
}

/// Where most of the questions that did not pass were lost.
fn cause(summary: &Summary) -> Option<String> {
    let lost = &summary.failure_attribution;
    let causes = [
        (lost.evidence_missing, "had no evidence among the hits"),
        (lost.evidence_partial, "had a part of the evidence"),
        (lost.evidence_found, "had all evidence: the answer failed"),
        (lost.recall_failed, "had all evidence, not as the figure wants it"),
        (lost.not_retained, "lost evidence that was never retained"),
        (lost.judge_in_doubt, "left the judges in doubt"),
        (lost.no_ground_truth, "name no evidence"),
    ];
    let failed: u64 = causes.iter().map(|(n, _)| n).sum();
    // of equals the first
    let (most, words) = causes.into_iter().rev().max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0)?;
    Some(format!("Of {} that did not pass, {} {words}.", counted(failed, "question"), count(most)))
}

/// The first lines, and how many there are beside them.
fn few(lines: &[String], most: usize) -> Vec<String> {
    let shown = if lines.len() > most { most - 1 } else { lines.len() };
    let mut few: Vec<String> = lines[..shown].iter().map(|line| clean(line).into_owned()).collect();
    if shown < lines.len() {
        few.push(format!("and {} more in the full report", lines.len() - shown));
    }
    few
}

/// A share as a filled bar.
fn filled(value: f64, columns: usize) -> String {
    let full = place(value, columns);
    format!("{}{}", "█".repeat(full), "░".repeat(columns - full))
}

/// A share and its interval on a line from 0 to 1.
fn scale(value: f64, range: Option<(f64, f64)>, columns: usize) -> String {
    let at = |share: f64| place(share, columns - 1);
    let (low, high) = range.map_or((at(value), at(value)), |(low, high)| (at(low), at(high)));
    let mark = |column: usize| match column {
        column if column == at(value) => '●',
        column if (low..=high).contains(&column) => '━',
        _ => '─',
    };
    (0..columns).map(mark).collect()
}

/// The column of a share; what lies outside is at the end.
fn place(share: f64, columns: usize) -> usize {
    (share.clamp(0.0, 1.0) * columns as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_keep_their_width() {
        for (value, bar) in [(0.0, "░░░░"), (0.5, "██░░"), (1.0, "████"), (7.0, "████"), (-1.0, "░░░░")]
        {
            assert_eq!(filled(value, 4), bar);
        }
        assert_eq!(scale(0.5, Some((0.25, 0.75)), 5), "─━●━─");
        assert_eq!(scale(1.0, None, 5), "────●");
    }
}
