//! The repeats of one run, for a terminal, as Markdown and as a page.

use bench_proto::{
    ids::{random_end, short_id},
    repeats::{HalvingBy, NOISY_SD, RepeatedRun, RepeatsMetered, RepeatsReport, SharedFigure, VarianceComponent},
    summary::{Interval, Verdict},
};

use crate::{
    blocks::{Block, Table, aligned, heading, table},
    document::{METERED, cut_calls},
    error::RenderError,
    figures::{
        NONE, booked_by_group, count, counted, interval, interval_with_width, one_line, percent, percent_or_none, usd,
    },
    html, markdown,
    svg::{HistoryPoint, Plot, history_plain},
    terminal::{
        self, Style, TerminalOptions,
        brief::{self, Head},
    },
    words,
};

/// Longest name that is shown on a screen.
const NAME_WIDTH: usize = 40;
/// Notes that are shown on a screen.
const NOTES_SHOWN: usize = 2;
/// What repeats are that say nothing about noise.
const ONE_DRAW: &str = "ONE DRAW: ALL REPEATS ARE EQUAL";
/// Noisy questions that people are shown; the JSON has more.
const NOISIEST_SHOWN: usize = 5;
/// Scores of a question that are shown one by one.
const SCORES_SHOWN: usize = 10;

/// The repeats for a terminal: what fits a screen, or all of it.
#[must_use]
pub fn terminal(report: &RepeatsReport, options: TerminalOptions<'_>) -> String {
    if options.full {
        return terminal::render_blocks(&document(report), options.view);
    }
    let columns = aligned(&[">", ">Score", "Verdict", ">Cost", ">Questions", "Status", "Run"]);
    let row = |run: &RepeatedRun| {
        vec![
            run.number.to_string(),
            percent_or_none(run.value),
            run.verdict.map_or(NONE, Verdict::name).to_owned(),
            usd(run.usd),
            count(run.n),
            run.status.clone(),
            short_id(&run.id).to_owned(),
        ]
    };
    let runs = Table { columns, rows: report.runs.iter().map(row).collect() };
    let id = &report.group.id;
    let commands = brief::commands(id, [brief::OTHER, id], options);
    brief::group_page(options.view, head(report, brief::columns(options.view)), (&runs, "repeat"), commands)
}

/// What comes first: what was repeated, whether it may be used, the mean, and how far it moves; its bar is made for `width` columns.
fn head(report: &RepeatsReport, width: usize) -> Head {
    let (group, mean) = (&report.group, &report.mean);
    let name = group.name.as_deref().map(|name| format!("{} · ", one_line(name, NAME_WIDTH))).unwrap_or_default();
    let what = [&group.system, &group.answerer].map(|words| one_line(words, NAME_WIDTH)).join(" · ");
    let mut lines = vec![
        (Some(Style::Bold), format!("{name}{} {} · {what}", group.dataset, group.preset)),
        (
            None,
            format!(
                "{} of {}, {} in {}",
                counted(u64::from(group.ended), "repeat"),
                group.repeats,
                counted(group.questions, "question"),
                counted(group.banks, "bank")
            ),
        ),
    ];
    lines.extend(brief::verdicts(report.runs.iter().map(|run| run.verdict), "repeat"));
    if report.deterministic {
        lines.push((Some(Style::Yellow), format!("[{ONE_DRAW}]")));
    }
    let figure = format!(
        "{} {}, mean of {}, 95 % interval {}",
        report.metric,
        percent_or_none(mean.value),
        counted(u64::from(group.ended), "repeat"),
        interval(mean.ci95.as_ref())
    );
    lines.push((Some(Style::Bold), figure));
    lines.extend(mean.value.map(|value| (None, brief::score_bar(value, mean.ci95.as_ref(), width))));
    lines.extend(mean.ci95_note.clone().map(|note| (None, note)));
    let alone = mean.one_run_within.map(|within| format!(", one run alone ± {}", points(Some(within))));
    lines.push((None, format!("between repeats {} points{}", points(mean.sd), alone.unwrap_or_default())));
    let benchmark = mean.benchmark_ci95.as_ref().map(|ci| interval_with_width(Some(ci)));
    lines.extend(benchmark.map(|ci| (None, format!("this benchmark under new draws {ci}"))));
    lines.push((None, brief::booked(group.booked_usd, group.cap_usd)));
    lines.extend(report.metered.as_ref().map(|of| (None, memory_itself(of))));
    let notes: Vec<String> = report.notes.iter().map(|note| with_short_ids(note, report)).collect();
    lines.extend(brief::few(&notes, NOTES_SHOWN).into_iter().map(|note| (None, note)));
    lines
}

/// What the memory system spent itself, in one line.
fn memory_itself(of: &RepeatsMetered) -> String {
    format!(
        "memory itself {} in {}: filling {}, asking {}",
        usd(of.total.usd_list()),
        counted(of.runs, "repeat"),
        usd(of.usd_filling),
        usd(of.usd_asking)
    )
}

/// A note whose runs are named by the ends of their ids: whole ones take half of a line, and what is said of them is cut.
fn with_short_ids(note: &str, report: &RepeatsReport) -> String {
    let shorter = |note: String, run: &RepeatedRun| match random_end(&run.id) {
        Some(end) => note.replace(run.id.as_str(), end),
        None => note,
    };
    report.runs.iter().fold(note.to_owned(), shorter)
}

/// The repeats as Markdown.
#[must_use]
pub fn markdown(report: &RepeatsReport) -> String {
    markdown::render_blocks(&document(report))
}

/// The repeats as a page that needs no network.
///
/// # Errors
/// Never for text and pictures.
pub fn html(report: &RepeatsReport) -> Result<String, RenderError> {
    html::of_document(document(report), &plots(report))
}

/// The score of each repeat that has ended.
#[must_use]
pub fn plots(report: &RepeatsReport) -> Vec<Plot> {
    let point = |run: &RepeatedRun| {
        let valid = run.verdict != Some(Verdict::Invalid);
        Some(HistoryPoint { label: format!("r{}", run.number), value: run.value?, interval: None, group: 0, valid })
    };
    let points: Vec<HistoryPoint> = report.runs.iter().filter_map(point).collect();
    if points.len() < 2 {
        return Vec::new();
    }
    let title = "score of each repeat".to_owned();
    let svg = history_plain(&title, &points);
    vec![Plot { file_name: "repeats.svg", title, svg }]
}

fn document(report: &RepeatsReport) -> Vec<Block> {
    let group = &report.group;
    let name =
        group.name.as_deref().map_or_else(|| group.id.clone(), |name| format!("{} ({})", one_line(name, 40), group.id));
    let mut blocks = vec![Block::Title(format!(
        "{name}: {} on {} {}, {} of {}, {} in {}",
        one_line(&group.system, 40),
        group.dataset,
        group.preset,
        counted(u64::from(group.ended), "repeat"),
        group.repeats,
        counted(group.questions, "question"),
        counted(group.banks, "bank"),
    ))];
    blocks.push(Block::Headline(format!("{} {}", report.metric, percent_or_none(report.mean.value))));
    if report.deterministic {
        blocks.push(Block::Labels(vec![ONE_DRAW.to_owned()]));
    }
    blocks.push(Block::List(std::iter::once(words::BANK.to_owned()).chain(report.notes.clone()).collect()));
    blocks.extend(mean(report));
    blocks.extend(runs(report));
    blocks.extend(report.metered.iter().flat_map(metered));
    blocks.extend(shares(report));
    blocks.extend(stability(report));
    blocks
}

fn mean(report: &RepeatsReport) -> Vec<Block> {
    let mean = &report.mean;
    let row = |name: &str, value: String, how: String| vec![name.to_owned(), value, how];
    let how = |interval: Option<&Interval>, note: Option<&String>| {
        let method = interval.map(|interval| interval.method.clone());
        method.into_iter().chain(note.cloned()).collect::<Vec<_>>().join("; ")
    };
    let mut rows = vec![
        row("Mean", percent_or_none(mean.value), format!("of the runs' headlines ({})", report.estimator.name())),
        row(
            "Conversations like these",
            interval_with_width(mean.ci95.as_ref()),
            how(mean.ci95.as_ref(), mean.ci95_note.as_ref()),
        ),
        row(
            "This benchmark, new draws",
            interval_with_width(mean.benchmark_ci95.as_ref()),
            how(mean.benchmark_ci95.as_ref(), mean.benchmark_note.as_ref()),
        ),
        row("Between repeats", points(mean.sd), "points, sample standard deviation".to_owned()),
    ];
    rows.extend(mean.one_run_within.map(|within| {
        row("One run alone", format!("± {}", points(Some(within))), "points around the mean of many (95 %)".to_owned())
    }));
    vec![heading("Mean"), table(&["", ">", "How"], rows), Block::Text([words::LIKE_THESE, words::NEW_DRAWS].join(" "))]
}

fn points(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| NONE.to_owned(), |fraction| format!("{:.2}", fraction * 100.0))
}

fn runs(report: &RepeatsReport) -> Vec<Block> {
    let rows = report.runs.iter().map(|run| {
        vec![
            run.id.clone(),
            run.status.clone(),
            percent_or_none(run.value),
            count(run.n),
            run.verdict.map_or(NONE, |verdict| verdict.name()).to_owned(),
            usd(run.usd),
            run.result_digest.as_deref().map_or(NONE, |digest| digest.get(..12).unwrap_or(digest)).to_owned(),
        ]
    });
    let group = &report.group;
    vec![
        heading("Repeats"),
        table(&["Run", "Status", ">Score", ">Questions", "Verdict", ">Cost", "Digest"], rows.collect()),
        Block::Text(booked_by_group(group.booked_usd, group.cap_usd)),
    ]
}

/// What the memory system spent on models itself, in all repeats together.
fn metered(of: &RepeatsMetered) -> Vec<Block> {
    let total = &of.total;
    let counts = [total.calls, total.failed, total.prompt_tokens, total.completion_tokens].map(count);
    let dollars = [of.usd_filling, of.usd_asking, total.usd].map(usd);
    let row: Vec<String> = counts.into_iter().chain(dollars).collect();
    let columns = [">Calls", ">Failed", ">Prompt tokens", ">Completion tokens", ">Filling", ">Asking", ">Cost"];
    let mut words = vec![format!(
        "Seen by the meter in {}. Filling and asking are as if no reply had been stored; in neither are checks, and calls of which nobody \
         can say what they were for.",
        counted(of.runs, "repeat")
    )];
    if total.stored_calls > 0 {
        words.push(format!(
            "{} more were answered by stored replies, which saved {}.",
            counted(total.stored_calls, "call"),
            usd(total.usd_saved)
        ));
    }
    words.extend(cut_calls(total));
    vec![heading(METERED), table(&columns, vec![row]), Block::Text(words.join(" "))]
}

/// `answer draw (with judge draw)`.
fn named(component: &VarianceComponent) -> String {
    let with: Vec<&str> = component.joined_with.iter().map(|source| source.name()).collect();
    match with.is_empty() {
        true => component.source.name().to_owned(),
        false => format!("{} (with {})", component.source.name(), with.join(" and ")),
    }
}

fn shares(report: &RepeatsReport) -> Vec<Block> {
    let variance = &report.variance;
    let rows = variance.components.iter().map(|component| {
        vec![
            named(component),
            percent(component.share),
            interval(component.share_ci95.as_ref()),
            format!("{:.5}", component.variance),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut blocks = vec![heading("What a single score varies by")];
    if !rows.is_empty() {
        blocks.push(table(&["Source", ">Share", ">95 %", ">Variance"], rows));
    }
    let (conversations, benchmark) = (&report.halving.conversations, &report.halving.benchmark);
    let mut lines = variance.notes.clone();
    lines.push(format!("to halve the interval of conversations like these: {}", ways(conversations, true)));
    lines.push(format!("to halve that of this benchmark under new draws: {}", ways(benchmark, false)));
    blocks.push(Block::List(lines));
    blocks
}

/// What leads to half the interval, and what does not however far it goes.
fn ways(by: &HalvingBy, questions: bool) -> String {
    if let Some(note) = &by.note {
        return note.clone();
    }
    let more = |n: Option<u64>, what: &str, stays: &str| match n {
        Some(n) => format!("{} more {what}{}", count(n), if n == 1 { "" } else { "s" }),
        None => format!("no number of {what}s {stays}"),
    };
    let mut ways = vec![more(by.repeats, "repeat", "of these questions")];
    let of_the_dataset = by.questions_same_banks.filter(|_| !questions);
    if of_the_dataset.is_some() {
        ways.insert(0, format!("{} of the dataset", more(of_the_dataset, "question", "")));
    }
    if questions {
        ways.insert(0, format!("{} with banks of their own", more(by.questions_new_banks, "question", "")));
        ways.push(format!("{} about the same banks", more(by.questions_same_banks, "question", "").trim_end()));
    }
    ways.join(", or ")
}

fn stability(report: &RepeatsReport) -> Vec<Block> {
    let stable = &report.stability;
    let row = |name: String, figure: &SharedFigure| {
        vec![name, percent_or_none(figure.value), interval(figure.ci95.as_ref()), count(figure.count)]
    };
    let mut rows = vec![
        row("passed in every repeat".to_owned(), &stable.always_passed),
        row("passed in none".to_owned(), &stable.never_passed),
        row("passed in some".to_owned(), &stable.mixed),
        row(format!("noisy: sd above {NOISY_SD:.2}"), &stable.noisy),
    ];
    for passes in &stable.passes {
        rows.push(row(format!("pass@{}: one of {0} passes", passes.k), &passes.pass_at_k));
        rows.push(row(format!("pass^{}: all of {0} pass", passes.k), &passes.pass_all_k));
    }
    let mut blocks = vec![
        heading("Stability of questions"),
        Block::Text(format!(
            "{} with a score in every repeat; {} left out",
            counted(stable.questions, "question"),
            count(stable.left_out)
        )),
        table(&["", ">Share", ">95 %", ">Questions"], rows),
    ];
    if !stable.noisiest.is_empty() {
        let row = |question: &bench_proto::repeats::RepeatedQuestion| {
            let scores = question.scores.iter().take(SCORES_SHOWN).map(|score| format!("{score:.2}"));
            let more = if question.scores.len() > SCORES_SHOWN { " …" } else { "" };
            vec![
                one_line(&question.question_id, 40),
                one_line(&question.category, 24),
                format!("{:.2}", question.sd),
                format!("{}{more}", scores.collect::<Vec<_>>().join(" ")),
            ]
        };
        blocks.push(heading("Noisiest questions"));
        blocks.push(table(
            &["Question", "Category", ">sd", "Scores"],
            stable.noisiest.iter().take(NOISIEST_SHOWN).map(row).collect(),
        ));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        metered::Stage,
        summary::{MeteredFigures, MeteredStage, MeteredSummary},
    };

    use super::*;

    fn golden() -> RepeatsReport {
        serde_json::from_str(include_str!("../../../proto/golden/repeats.v1.json")).expect("the golden report is read")
    }

    /// A line of the text that begins so.
    fn line<'a>(text: &'a str, begins: &str) -> &'a str {
        let found = text.lines().find(|line| line.trim_start_matches(['|', ' ']).starts_with(begins));
        found.unwrap_or_else(|| panic!("no line begins with '{begins}':\n{text}"))
    }

    #[test]
    fn every_figure_stands_beside_its_interval() {
        let text = markdown(&golden());
        for (begins, holds) in [
            ("Conversations like these", "0.8 to 4.4 % (± 1.8)"),
            ("This benchmark, new draws", "1.3 to 3.4 % (± 1.0)"),
            ("answer draw (with judge draw)", "80.3 to 100.0"),
            ("passed in some", "2.5 to 12.9"),
            ("pass@2", "1.7 to 8.7"),
            ("pass^3", "0.0 to 5.0"),
        ] {
            assert!(line(&text, begins).contains(holds), "{begins}: {}", line(&text, begins));
        }
        assert!(
            line(&text, "- to halve the interval").contains("600 more questions with banks of their own"),
            "{text}"
        );
    }

    #[test]
    fn p34_what_the_memory_spent_itself_is_told_of_all_repeats() {
        let figures =
            |calls, usd| MeteredFigures { calls, prompt_tokens: 10 * calls, usd, ..MeteredFigures::default() };
        let by_stage = [(Stage::Retain, 30, 0.03), (Stage::Recall, 8, 0.008), (Stage::Check, 2, 0.002)]
            .map(|(stage, calls, usd)| MeteredStage { stage, figures: figures(calls, usd) });
        let one = MeteredSummary { total: figures(40, 0.04), by_stage: by_stage.to_vec(), ..MeteredSummary::default() };
        let mut report = golden();
        assert!(!markdown(&report).contains("memory system called itself"));
        report.metered = RepeatsMetered::sum_of([&one, &one]);
        let short = terminal(&report, TerminalOptions::default());
        assert!(short.contains("memory itself $0.0800 in 2 repeats: filling $0.0600, asking $0.0160"), "{short}");
        let full = TerminalOptions { full: true, ..TerminalOptions::default() };
        for view in [terminal(&report, full), markdown(&report), html(&report).expect("renders")] {
            for words in ["What the memory system called itself", "$0.0600", "$0.0160", "$0.0800", "800"] {
                assert!(view.contains(words), "'{words}' is missing:\n{view}");
            }
        }
    }

    #[test]
    fn words_are_explained_where_they_stand() {
        let report = golden();
        let page = html(&report).expect("renders");
        let full = TerminalOptions { full: true, ..TerminalOptions::default() };
        for view in [terminal(&report, full), markdown(&report), page] {
            // html writes an apostrophe in its own way
            let view = view.replace("&#39;", "'");
            for words in [words::BANK, words::LIKE_THESE, words::NEW_DRAWS] {
                assert!(view.contains(words), "'{words}' is missing:\n{view}");
            }
        }
    }

    #[test]
    fn what_comes_first_fits_a_screen() {
        let mut report = golden();
        let drawn = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab";
        report.group.id = drawn.to_owned();
        report.group.name = Some("記憶 a name as long as nobody would type it, and then some more".to_owned());
        report.deterministic = true;
        for n in 1..=100 {
            let mut run = report.runs[0].clone();
            (run.number, run.id) = (n, format!("{drawn}-r{n}"));
            report.runs.push(run);
            report
                .notes
                .push("a note that is longer than a line of the terminal could be, by far, and more".to_owned());
            let page = terminal(&report, TerminalOptions::default());
            assert!(page.lines().count() <= 24, "{page}");
            assert!(page.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{page}");
            for words in ["VALID", "mean of", "bench-coord report 0123456789ab --full", "0123456789ab-r1"] {
                assert!(page.contains(words), "'{words}' is missing:\n{page}");
            }
        }
        let page = terminal(&report, TerminalOptions::default());
        let shown = page.lines().filter(|line| line.contains("0123456789ab-r") || line.contains("  s-r")).count();
        assert!(page.contains(&format!("and {} more repeats", report.runs.len() - shown)), "{page}");
    }

    #[test]
    fn why_a_repeat_is_invalid_is_not_cut_by_its_id() {
        let mut report = golden();
        report.runs[0].id = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab-r1".to_owned();
        report.notes = vec![format!("{} is INVALID: the judges agree no better than chance", report.runs[0].id)];
        let page = terminal(&report, TerminalOptions::default());
        assert!(page.contains("\n0123456789ab-r1 is INVALID: the judges agree no better than chance\n"), "{page}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut report = golden();
        report.deterministic = true;
        report.mean.benchmark_ci95 = None;
        report.mean.benchmark_note = Some("all repeats have the same score".to_owned());
        report.variance.components.clear();
        report.variance.notes = vec!["shares need two repeats that ended".to_owned()];
        report.halving.benchmark.questions_same_banks = Some(150);
        assert!(markdown(&report).contains("new draws: 150 more questions of the dataset, or 9 more repeats"));
        report.halving.benchmark.note = Some("nothing to halve".to_owned());
        let text = markdown(&report);
        assert!(text.contains("s: bm25 on locomo-sim fair, 3 repeats of 3, 200 questions in 10 banks"), "{text}");
        assert!(text.contains("ONE DRAW") && text.contains("all repeats have the same score"), "{text}");
        assert!(text.contains("shares need two repeats") && text.contains("nothing to halve"), "{text}");
    }
}
