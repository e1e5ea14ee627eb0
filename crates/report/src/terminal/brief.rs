//! What a person reads first, of a run or of a group: at most [`MOST_LINES`] lines of at most [`WIDTH`] columns, fewer where the reader
//! has fewer, but for commands, which are typed as they stand. Everything else is in the full report.

use bench_proto::{
    ids::short_id,
    scenario::Scenario,
    summary::{CategoryScore, Interval, JudgeError, Summary, UsageFigures, Verdict},
    text::one_line as clean,
};
use unicode_width::UnicodeWidthStr as _;

use super::{Painter, Style, TerminalOptions, View, cut, wrapping::folded};
use crate::{
    blocks::Table,
    document::{
        better, grades_were_brought, having_it, judge_spread, judged_by, probe_p50, recalls_are_unknown, saved, stopped,
    },
    figures::{count, counted, duration, interval, percent_down, percent_or_none, usd, usd_or_range},
    words,
};

/// Lines of the page at most.
const MOST_LINES: usize = 24;
/// Columns of a line at most, and the fewest that lines are made for.
const WIDTH: usize = 80;
const NARROWEST: usize = 40;
/// Further lines that one line may take.
const MORE: usize = 2;

/// Columns of a bar at most, and the fewest in which one says something.
const BAR: usize = 24;
const LEAST_BAR: usize = 4;
/// Columns of the score's own bar at most, and of what stands around it.
const WIDE_BAR: usize = 60;
const AROUND_BAR: usize = "0  100 %".len();
/// Columns of a category's name.
const NAME: usize = 26;
/// Reasons of an INVALID result that are shown.
const REASONS: usize = 3;
/// Stands in a command for a run that the reader names.
pub(crate) const OTHER: &str = "OTHER";

/// Columns of a line for a reader.
pub(crate) fn columns(view: View) -> usize {
    view.width.map_or(WIDTH, |width| width.clamp(NARROWEST, WIDTH))
}

/// The page; ends with a newline. The verdict and the labels are coloured.
pub(super) fn render(summary: &Summary, options: TerminalOptions<'_>) -> String {
    let (painter, width) = (Painter(options.view), columns(options.view));
    let (mut head, tail) = (head(summary, width), tail(summary));
    let commands = commands_of_run(summary, options);
    let below = tail.len() + commands.len();
    // figures go before the words that explain them
    if head.len() + below < MOST_LINES {
        head.push((None, words::on_one_line(better(summary), probe_p50(summary).is_some())));
    }
    // nothing is more wanted than why a result may not be used
    let mut left = MOST_LINES.saturating_sub(head.len() + below);
    let head = fitted(head, width, &mut left, is_reason);
    let mut categories = categories(summary, left.saturating_sub(1), width);
    if !categories.is_empty() {
        categories.insert(0, String::new());
    }
    left = left.saturating_sub(categories.len());
    let tail = fitted(unstyled(tail), width, &mut left, |_| true);
    let head = fitted(head, width, &mut left, |_| true);
    let all = head.into_iter().chain(unstyled(categories)).chain(tail);
    let mut lines: Vec<String> = all.map(|(style, line)| paint(painter, style, &line)).collect();
    lines.extend(commands);
    lines.join("\n") + "\n"
}

/// Lines that come first, each in its style.
pub(crate) type Head = Vec<(Option<Style>, String)>;

fn unstyled(lines: Vec<String>) -> Head {
    lines.into_iter().map(|line| (None, line)).collect()
}

/// Whether a line tells of the one before it: of a verdict, why.
fn is_reason(line: &str) -> bool {
    line.starts_with("  ")
}

/// Lines within a width. Those that are wider and wanted whole go on below, as long as there are lines left; the others are cut.
fn fitted(lines: Head, width: usize, left: &mut usize, is_wanted: impl Fn(&str) -> bool) -> Head {
    let mut fitted = Vec::with_capacity(lines.len());
    for (style, line) in lines {
        if !is_wanted(&line) {
            fitted.push((style, line));
            continue;
        }
        let folded = folded(&line, width, MORE.min(*left));
        *left = left.saturating_sub(folded.len() - 1);
        fitted.extend(folded.into_iter().map(|line| (style, line)));
    }
    fitted
}

/// The page of a group: what comes first, its parts as far as they fit, one a line, and what to do next, by these commands. `what` is a
/// part's name.
pub(crate) fn group_page(view: View, head: Head, (parts, what): (&Table, &str), commands: Vec<String>) -> String {
    let width = columns(view);
    // the titles of the parts and a blank line above them
    let rows = if parts.rows.is_empty() { 0 } else { parts.rows.len() + 2 };
    let mut left = MOST_LINES.saturating_sub(head.len() + rows + commands.len());
    let head = head.into_iter().map(|(style, line)| (style, clean(&line).into_owned())).collect();
    let head = fitted(head, width, &mut left, |_| true);
    let mut lines: Vec<String> = head.into_iter().map(|(style, line)| paint(Painter(view), style, &line)).collect();
    if !parts.rows.is_empty() {
        lines.push(String::new());
        let room = MOST_LINES.saturating_sub(lines.len() + commands.len());
        let mut table = in_columns(parts, width);
        if table.len() > room {
            table.truncate(room.saturating_sub(1));
            let left = parts.rows.len() - table.len().saturating_sub(1);
            table.push(format!("and {} in the full report", counted(left as u64, &format!("more {what}"))));
        }
        lines.extend(table);
    }
    lines.extend(commands);
    lines.join("\n") + "\n"
}

/// Whether the parts of a group may be used: one that may not is what must be seen. Nothing before one of them has ended.
pub(crate) fn verdicts(parts: impl Iterator<Item = Option<Verdict>>, what: &str) -> Option<(Option<Style>, String)> {
    let ended: Vec<Verdict> = parts.flatten().collect();
    let invalid = ended.iter().filter(|verdict| **verdict != Verdict::Valid).count();
    let word = if invalid > 0 { Verdict::Invalid } else { Verdict::Valid };
    let of = format!(": {invalid} of {}", counted(ended.len() as u64, what));
    let of = if invalid > 0 { of } else { String::new() };
    (!ended.is_empty()).then(|| (Some(Style::for_verdict(word)), format!("{}{of}", word.name())))
}

/// What a group has booked, in few words.
pub(crate) fn booked(usd_booked: f64, cap: Option<f64>) -> String {
    let cap = cap.map(|cap| format!(" of {}", usd(cap))).unwrap_or_default();
    format!("booked by the group {}{cap}", usd(usd_booked))
}

/// The titles of a table and its rows, in columns that are cut at the end of a line.
fn in_columns(table: &Table, columns: usize) -> Vec<String> {
    let titles: Vec<String> = table.columns.iter().map(|(title, _)| title.clone()).collect();
    let cleaned = |row: &Vec<String>| row.iter().map(|cell| clean(cell).into_owned()).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = std::iter::once(&titles).chain(&table.rows).map(cleaned).collect();
    let width = |at: usize| lines.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0);
    let padded = |(at, cell): (usize, &String)| {
        let fill = " ".repeat(width(at).saturating_sub(cell.width()));
        match table.columns.get(at) {
            Some((_, true)) => format!("{fill}{cell}"),
            _ => format!("{cell}{fill}"),
        }
    };
    let line =
        |row: &Vec<String>| cut(row.iter().enumerate().map(padded).collect::<Vec<_>>().join("  ").trim_end(), columns);
    lines.iter().map(line).collect()
}

fn paint(painter: Painter, style: Option<Style>, line: &str) -> String {
    let line = cut(line, columns(painter.0));
    style.map_or_else(|| line.clone(), |style| painter.paint(style, &line))
}

/// What was run, whether it may be used, and its one figure.
fn head(summary: &Summary, width: usize) -> Head {
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
    lines.extend(by_judge(summary, width));
    let figure = format!(
        "{} {}{}, 95 % interval {}",
        headline.metric,
        percent_or_none(headline.value),
        words::direction(better(summary)),
        interval(headline.ci95.as_ref()),
    );
    lines.push((Some(Style::Bold), figure));
    if let Some(value) = headline.value {
        lines.push((None, score_bar(value, headline.ci95.as_ref(), width)));
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
    lines.push((None, effort(summary)));
    lines.extend(memory_costs(summary, width).into_iter().map(|line| (None, line)));
    lines
}

/// How far the score moves with the judge, and below it what each judge gives, in as few lines as hold them.
fn by_judge(summary: &Summary, width: usize) -> Head {
    let Some(spread) = judge_spread(summary) else { return Vec::new() };
    let mut lines = vec![(Some(Style::Bold), spread.said)];
    let mut line = String::new();
    for value in spread.values {
        if !line.is_empty() && line.width() + value.width() + 2 > width {
            lines.push((None, std::mem::take(&mut line)));
        }
        line.push_str("  ");
        line.push_str(&value);
    }
    lines.push((None, line));
    lines.extend(spread.over.map(|over| (None, format!("  {over}"))));
    lines
}

/// What the memory system spends itself, where it was metered.
fn memory_costs(summary: &Summary, width: usize) -> Vec<String> {
    let Some(metered) = summary.metered.as_ref().filter(|metered| metered.total.is_seen()) else { return Vec::new() };
    let (total, refused) = (&metered.total, metered.refused_calls());
    // what came to nothing and was not refused has been let through
    let is_all = total.failed <= refused && [total.calls, total.stored_calls, total.uncertain] == [0; 3];
    if refused > 0 && is_all {
        return vec!["memory itself $0: the meter has let no call through".to_owned()];
    }
    let filling = usd_or_range(metered.usd_per_1000_turns, metered.usd_per_1000_turns_range);
    let thousand = |each: f64| 1000.0 * each;
    let of_range = metered.usd_per_question_range.map(|range| range.map(thousand));
    let asking = usd_or_range(metered.usd_per_question.map(thousand), of_range);
    let filled = format!("memory itself {}: {filling} per 1,000 turns", usd(metered.total.usd_list()));
    let asked = format!("{asking} per 1,000 questions");
    let line = format!("{filled}, {asked}");
    // two ranges are longer than a line
    if line.width() <= width { vec![line] } else { vec![filled, format!("  {asked}")] }
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
    match (summary.spec.scenario, grades_were_brought(summary)) {
        (Scenario::RetrieveOnly, _) => "no answers: recalls are scored",
        (_, false) => "no judge: answers are scored by the dataset's own rules",
        (_, true) => "no judge of ours: the grades are those that were brought",
    }
}

/// Dollars, time, latency and context.
fn effort(summary: &Summary) -> String {
    let total = &summary.total;
    let unknown = if summary.usage.is_incomplete() { " and the system's own, unknown" } else { "" };
    let mut parts = vec![format!("{}, {}{unknown}", usd(total.used.usd), counted(total.used.calls, "call"))];
    parts.extend(summary.run.wall_seconds.map(duration));
    parts.extend(filling(summary));
    parts.extend(probe_p50(summary).map(|told| format!("recall {told}")));
    let context = summary.context.as_ref().map(|context| context.mean_tokens.round() as u64);
    parts.extend(context.map(|tokens| format!("{} tokens a question", count(tokens))));
    parts.join(" · ")
}

/// What filling the banks has taken, where that is a minute of work or more, which goes on side by side, or calls of our own.
fn filling(summary: &Summary) -> Option<String> {
    const WORTH_TELLING: f64 = 60.0;
    let usage = &summary.usage;
    let work = summary.phase_seconds.filling()?;
    let used: Vec<&UsageFigures> = std::iter::once(&usage.retain).chain(&usage.consolidate).collect();
    let (calls, dollars) =
        (used.iter().map(|used| used.calls).sum::<u64>(), used.iter().map(|used| used.usd).sum::<f64>());
    let paid = if calls > 0 { format!(", {}, {}", counted(calls, "call"), usd(dollars)) } else { String::new() };
    (work >= WORTH_TELLING || calls > 0).then(|| format!("filling {} of work{paid}", duration(work)))
}

/// A line for each category, `room` of them at most. In fewer columns its bar is shorter, and goes before a figure does. There are none
/// where nothing was scored.
fn categories(summary: &Summary, room: usize, columns: usize) -> Vec<String> {
    let all = summary.scores.first().map(|score| &score.by_category[..]).unwrap_or_default();
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    let is_scored = summary.headline.value.is_some() && all.iter().any(|of| of.n > 0);
    if shown == 0 || !is_scored {
        return Vec::new();
    }
    let shown_all = &all[..shown];
    let width = shown_all.iter().map(|of| of.category.width().min(NAME)).max().unwrap_or_default();
    let of_count = |of: &CategoryScore| format!(" n {}", count(of.n));
    let behind = shown_all.iter().map(|of| of_count(of).width()).max().unwrap_or_default();
    // the name, the score and the interval with the blanks before them
    let least = width + 10 + 14;
    let bar_columns = columns.saturating_sub(least + behind + 1).min(BAR);
    let has_room = least + behind <= columns;
    let line = |of: &CategoryScore| {
        let name = cut(&clean(&of.category), NAME);
        let fill = " ".repeat(width.saturating_sub(name.width()));
        let bar = match bar_columns {
            ..LEAST_BAR => String::new(),
            wide => format!(" {}", of.value.map_or_else(|| " ".repeat(wide), |value| filled(value, wide))),
        };
        let (value, behind) = (percent_or_none(of.value), if has_room { of_count(of) } else { String::new() });
        format!("{name}{fill} {value:>9}{bar} {:>13}{behind}", interval(of.ci95.as_ref()))
    };
    let mut lines: Vec<String> = shown_all.iter().map(line).collect();
    if shown < all.len() {
        lines.push(format!("and {} more categories", all.len() - shown));
    }
    lines
}

/// Controls, the first cause of failure, and what to know.
fn tail(summary: &Summary) -> Vec<String> {
    let mut lines = vec![String::new(), controls(summary)];
    lines.extend(cause(summary));
    lines.extend(errors(summary));
    let mut notes: Vec<String> = summary.warnings.iter().map(|warning| format!("Warning: {warning}.")).collect();
    notes.extend(summary.spec.notes.iter().map(|note| format!("Note: {note}.")));
    notes.extend(summary.dataset.sample.notes.iter().map(|note| format!("Sample note: {note}.")));
    notes.extend(summary.dataset.notes.iter().map(|note| format!("Dataset note: {note}.")));
    lines.extend(few(&notes, 2));
    lines
}

/// What to do next with a run or a group, and which two can be compared: of an id that was drawn every verb takes the end. A page that
/// lies somewhere is named; else a command makes one.
pub(crate) fn commands(id: &str, compared: [&str; 2], options: TerminalOptions<'_>) -> Vec<String> {
    let [run, first, second] = [id, compared[0], compared[1]].map(short_id);
    let page = match options.page {
        Some(page) => clean(&page.display().to_string()).into_owned(),
        None => format!("bench-coord report {run} --output-dir DIR"),
    };
    let width = columns(options.view);
    vec![
        String::new(),
        next("all of it", &format!("bench-coord report {run} --full"), width),
        next("a page", &page, width),
        next("compared", &format!("bench-coord compare {first} {second}"), width),
    ]
}

/// The same of a run, with what lists the questions that ended in an error.
fn commands_of_run(summary: &Summary, options: TerminalOptions<'_>) -> Vec<String> {
    let id = &summary.run.id;
    let mut commands = commands(id, [OTHER, id], options);
    if !summary.errors.is_empty() {
        let listed = format!("bench-coord show {} --failed", short_id(id));
        commands.insert(1, next("failed", &listed, columns(options.view)));
    }
    commands
}

/// A command and what it is for, which goes where there is no room for both.
fn next(what: &str, command: &str, width: usize) -> String {
    let line = format!("{what:<9}  {command}");
    if line.width() <= width { line } else { command.to_owned() }
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
    let (lost, is_unknown) = (&summary.failure_attribution, recalls_are_unknown(summary));
    let causes = [
        (lost.evidence_missing, "had no evidence among the hits"),
        (lost.evidence_partial, "had a part of the evidence"),
        (lost.evidence_found, "had all evidence: the answer failed"),
        (lost.recall_failed, "had all evidence, not as the figure wants it"),
        (lost.not_retained, "lost evidence that was never retained"),
        (lost.judge_in_doubt, "left the judges in doubt"),
        (if is_unknown { 0 } else { lost.no_ground_truth }, words::without_evidence(summary)),
    ];
    let unknown = if is_unknown { lost.no_ground_truth } else { 0 };
    let failed = causes.iter().map(|(n, _)| *n).fold(unknown, u64::saturating_add);
    // of equals the first
    let (most, words) = causes.into_iter().rev().max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0)?;
    Some(format!("Of {} that did not pass, {} {words}.", counted(failed, "question"), count(most)))
}

/// The code in which most of the questions ended that ended in an error, and what was told most often with it.
fn errors(summary: &Summary) -> Option<String> {
    // of equals the first
    let (code, n) = summary.errors.iter().rev().max_by_key(|(_, n)| **n)?;
    let all = summary.errors.values().copied().fold(0, u64::saturating_add);
    let of_all = format!("{} of {}", count(all), counted(summary.outcomes.sample, "question"));
    let said = summary.error_examples.get(code).map(|said| format!(": {}", clean(said))).unwrap_or_default();
    let code = clean(code);
    Some(match summary.errors.len() {
        1 => format!("{of_all} ended in an error, {code}{said}"),
        _ => format!("{of_all} ended in errors, {} of them in {code}{said}", count(*n)),
    })
}

/// The first lines, and how many there are beside them.
pub(crate) fn few(lines: &[String], most: usize) -> Vec<String> {
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

/// A score and its interval on a line.
pub(crate) fn score_bar(value: f64, interval: Option<&Interval>, width: usize) -> String {
    let columns = width.saturating_sub(AROUND_BAR).min(WIDE_BAR);
    format!("0 {} 100 %", scale(value, interval.map(|ci| (ci.low, ci.high)), columns))
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
    use bench_proto::summary::{JudgeSpread, MeteredFigures, MeteredRefused, MeteredSummary, PanelSummary};

    use super::*;
    use crate::golden;

    #[test]
    fn several_judges_are_led_by_how_far_they_lie_apart() {
        let mut summary = golden::report();
        assert!(by_judge(&summary, WIDTH).is_empty(), "one judge moves nothing");
        let names = ["anthropic:a-judge-with-a-long-name", "openai:another-judge-with-a-long-name", "openai:c"];
        summary.spec.judges = names.map(str::to_owned).to_vec();
        summary.headline.metric = "judge".to_owned();
        let score = summary.scores[0].clone();
        summary.scores = (0..3)
            .map(|at| {
                let mut score = score.clone();
                score.metric = bench_proto::facts::judge_metric(at);
                score
            })
            .collect();
        let page = render(&summary, TerminalOptions::default());
        let at = |words: &str| page.lines().position(|line| line.contains(words)).expect("is said");
        assert!(at("the judge moves this by 0.00 points") < at("judge 62.39 %"), "{page}");
        assert!(names.iter().all(|name| page.contains(name)), "no value is cut: {page}");
        assert!(page.lines().all(|line| line.width() <= WIDTH), "{page}");
        let [low_judge, high_judge] = [0, 1].map(bench_proto::facts::judge_metric);
        let spread = JudgeSpread { value: 0.051, low_judge, high_judge, n: 1, ci95: None, ci95_note: None };
        summary.panel = Some(PanelSummary { spread: Some(spread), ..PanelSummary::default() });
        let lines: Vec<String> = by_judge(&summary, WIDTH).into_iter().map(|(_, line)| line).collect();
        assert!(lines[lines.len() - 2].contains(names[2]), "{lines:?}");
        assert_eq!(
            lines[lines.len() - 1],
            "  the points are of the 1 question that all judges graded",
            "on a line of its own"
        );
    }

    #[test]
    fn commands_can_be_typed_as_they_stand() {
        let mut summary = golden::report();
        let drawn = "01a228da-aaaa-7bbb-8ccc-0123456789ab";
        let given = "g".repeat(100);
        for (id, typed) in [
            (format!("{drawn}-c12-r1"), "0123456789ab-c12-r1"),
            (format!("{drawn}-oracle"), "0123456789ab-oracle"),
            (given.clone(), given.as_str()),
        ] {
            summary.run.id = id;
            let page = render(&summary, TerminalOptions::default());
            let commands = [
                format!("bench-coord report {typed} --full"),
                format!("bench-coord report {typed} --output-dir DIR"),
                format!("bench-coord compare OTHER {typed}"),
            ];
            let ends: Vec<&str> = page.lines().rev().take(3).collect();
            for (line, command) in ends.into_iter().rev().zip(&commands) {
                assert!(line.ends_with(command), "{page}");
            }
        }
    }

    #[test]
    fn a_page_that_is_there_is_named_by_its_path() {
        let path = std::path::Path::new(".bench/runs/mine/report.html");
        let page = render(&golden::report(), TerminalOptions { page: Some(path), ..TerminalOptions::default() });
        assert!(page.contains("\na page     .bench/runs/mine/report.html\n"), "{page}");
        assert!(!page.contains("--output-dir"), "{page}");
    }

    #[test]
    fn no_line_but_a_command_is_wider_than_a_narrow_terminal() {
        let mut summary = golden::report();
        summary.run.verdict = Verdict::Invalid;
        summary.run.reasons = vec!["coverage 40.0 % is under 99 %: 12 of 20 questions have no score".to_owned()];
        for width in 40..=100 {
            let view = View { colour: false, width: Some(width) };
            let page = render(&summary, TerminalOptions { view, ..TerminalOptions::default() });
            let is_wide = |line: &&str| line.width() > width.min(WIDTH) && !line.starts_with("bench-coord ");
            let wide: Vec<&str> = page.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "{width}: {wide:#?}");
            assert!(page.lines().count() <= MOST_LINES, "{page}");
            for words in ["62.39 %", "●", "single-hop", "73.37 %", "67.0 to 79.8", "--full"] {
                assert!(page.contains(words), "{width}: '{words}' is missing:\n{page}");
            }
        }
        let narrow = View { colour: false, width: Some(60) };
        let page = render(&summary, TerminalOptions { view: narrow, ..TerminalOptions::default() });
        assert!(page.contains('█'), "a shorter bar: {page}");
    }

    #[test]
    fn reasons_go_on_below_where_lines_are_left() {
        let mut summary = golden::report();
        summary.run.verdict = Verdict::Invalid;
        let words = (0..25).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
        summary.run.reasons = vec![words.clone()];
        let page = render(&summary, TerminalOptions::default());
        let said = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&words), "all of it is there: {page}");
        summary.run.reasons = vec![words.repeat(3); 3];
        let page = render(&summary, TerminalOptions::default());
        assert!(page.lines().count() <= MOST_LINES, "{page}");
    }

    #[test]
    fn where_nothing_was_scored_why_takes_the_place_of_categories() {
        let mut summary = golden::report();
        summary.run.verdict = Verdict::Invalid;
        let words = (0..20).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
        summary.errors = [("system_refused".to_owned(), summary.outcomes.sample)].into();
        summary.error_examples = [("system_refused".to_owned(), words.clone())].into();
        let category = summary.scores[0].by_category[0].clone();
        summary.scores[0].by_category = vec![category; 12];
        assert!(!categories(&summary, 12, WIDTH).is_empty());
        let mut without = summary.clone();
        (without.headline.value, without.headline.ci95) = (None, None);
        let mut of_none = summary;
        of_none.scores[0].by_category.iter_mut().for_each(|of| (of.n, of.value, of.ci95) = (0, None, None));
        for summary in [without, of_none] {
            let page = render(&summary, TerminalOptions::default());
            let name = &summary.scores[0].by_category[0].category;
            let said = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(&words) && !page.contains(name.as_str()), "{page}");
            assert!(page.lines().count() <= MOST_LINES, "{page}");
        }
    }

    #[test]
    fn errors_are_told_by_the_one_that_most_questions_met() {
        let mut summary = golden::report();
        summary.errors =
            [("http_500", 2), ("system_refused", 10), ("timeout", 10)].map(|(code, n)| (code.to_owned(), n)).into();
        assert_eq!(
            errors(&summary).as_deref(),
            Some("22 of 1,986 questions ended in errors, 10 of them in system_refused")
        );
        summary.errors.retain(|code, _| code == "system_refused");
        let said = ("system_refused".to_owned(), "recall: mine says: KeyError: 'a\u{1b}[2J'".to_owned());
        summary.error_examples.extend([said]);
        let told = "10 of 1,986 questions ended in an error, system_refused: recall: mine says: KeyError: 'a [2J'";
        assert_eq!(errors(&summary).as_deref(), Some(told));
        let page = render(&summary, TerminalOptions::default());
        assert!(page.contains("failed     bench-coord show 00000000f011 --failed"), "{page}");
        let said = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(told), "{page}");
    }

    #[test]
    fn p34_what_a_memory_costs_is_a_range_where_nobody_can_say_more() {
        let mut summary = golden::report();
        let known = MeteredSummary {
            total: MeteredFigures { calls: 419, usd: 0.0634, ..MeteredFigures::default() },
            usd_per_1000_turns: Some(0.061),
            usd_per_question: Some(0.000_29),
            ..MeteredSummary::default()
        };
        summary.metered = Some(known.clone());
        let told = ["memory itself $0.0634: $0.0610 per 1,000 turns, $0.2900 per 1,000 questions"];
        assert_eq!(memory_costs(&summary, WIDTH), told);
        summary.metered = Some(MeteredSummary {
            usd_per_1000_turns: None,
            usd_per_question: None,
            usd_per_1000_turns_range: Some([0.001, 0.061]),
            usd_per_question_range: Some([0.0, 0.000_29]),
            ..known
        });
        let told = ["memory itself $0.0634: $0.0010 to $0.0610 per 1,000 turns", "  $0 to $0.2900 per 1,000 questions"];
        assert_eq!(memory_costs(&summary, WIDTH), told);
    }

    #[test]
    fn p34_a_meter_that_let_calls_through_that_failed_is_not_said_to_have_let_none() {
        let mut summary = golden::report();
        for (failed, is_none) in [(50, true), (51, false)] {
            let [code, why] = ["model_not_found", "m has no price"].map(str::to_owned);
            summary.metered = Some(MeteredSummary {
                total: MeteredFigures { failed, ..MeteredFigures::default() },
                refused: vec![MeteredRefused { code, why, calls: 50, at_least: false }],
                ..MeteredSummary::default()
            });
            let told = memory_costs(&summary, WIDTH);
            let none = "memory itself $0: the meter has let no call through";
            assert_eq!(told == [none], is_none, "{failed} failed: {told:?}");
        }
    }

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
