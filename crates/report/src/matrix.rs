//! A matrix of runs, for a terminal, as Markdown and as a page with its fronts.

mod seeds;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bench_proto::{
    ids::short_id,
    matrix::{MainEffect, MatrixCell, MatrixPair, MatrixReport},
    summary::Verdict,
};

use crate::{
    blocks::{Block, Table, aligned, heading, table},
    error::RenderError,
    figures::{
        NONE, booked_by_group, count, counted, interval, ms, one_line, p_value, percent_or_none, points,
        points_interval, usd,
    },
    html, markdown,
    svg::{FrontAxis, FrontPoint, Plot, front_plot},
    terminal::{
        self, Style, TerminalOptions,
        brief::{self, Head},
    },
    words,
};

/// Longest value of an axis that is shown.
const VALUE_WIDTH: usize = 40;
/// Notes that are shown on a screen.
const NOTES_SHOWN: usize = 2;

/// The matrix for a terminal: what fits a screen, or all of it.
#[must_use]
pub fn terminal(report: &MatrixReport, options: TerminalOptions<'_>) -> String {
    if options.full {
        return terminal::render_blocks(&document(report), options.view);
    }
    let varied = varied(report);
    let axes = varied.iter().map(|axis| axis.as_str()).collect::<Vec<_>>().join(", ");
    let row = |cell: &MatrixCell| {
        vec![
            cell.number.to_string(),
            percent_or_none(cell.value),
            interval(cell.ci95.as_ref()),
            cell.verdict.map_or(NONE, Verdict::name).to_owned(),
            cell.usd_held().map_or_else(|| NONE.to_owned(), usd),
            name_of(cell, &varied),
        ]
    };
    let columns = aligned(&[">Cell", ">Score", ">95 %", "Verdict", ">$/run", axes.as_str()]);
    let cells = Table { columns, rows: report.cells.iter().map(row).collect() };
    let commands = brief::commands(&report.id, compared(report), options);
    brief::group_page(options.view, head(report), (&cells, "cell"), commands)
}

/// Two of its runs that can be compared, or one of them beside another run: `compare` refuses a matrix, which has no score of its own.
fn compared(report: &MatrixReport) -> [&str; 2] {
    let of_number = |number: u32| report.cells.iter().find(|cell| cell.number == number).and_then(first_run);
    let of_pair = |pair: &MatrixPair| Some([of_number(pair.a)?, of_number(pair.b)?]);
    let found = report.pairs.iter().filter(|pair| pair.comparable).find_map(of_pair);
    found.unwrap_or_else(|| [brief::OTHER, report.cells.iter().find_map(first_run).unwrap_or(&report.id)])
}

fn first_run(cell: &MatrixCell) -> Option<&str> {
    cell.runs.first().map(String::as_str)
}

/// What comes first: which matrix, whether it may be used, what its scores are of, and how many pairs are told apart.
fn head(report: &MatrixReport) -> Head {
    let id = short_id(&report.id);
    let name = report.name.as_deref().map_or_else(|| id.to_owned(), |name| one_line(name, VALUE_WIDTH));
    let mut lines = vec![(Some(Style::Bold), format!("{name}: {}", cells_ended(report)))];
    lines.extend(brief::verdicts(report.cells.iter().map(|cell| cell.verdict), "cell"));
    let (of_verdicts, notes): (Vec<String>, Vec<String>) =
        report.notes.iter().cloned().partition(|note| is_verdict(report, note));
    lines.extend(brief::few(&of_verdicts, NOTES_SHOWN).into_iter().map(|why| (None, format!("  {why}"))));
    let metrics: BTreeSet<String> =
        report.cells.iter().map(|cell| format!("{}{}", cell.metric, words::direction(cell.better))).collect();
    lines.push((None, format!("score: {}", metrics.into_iter().collect::<Vec<_>>().join(", "))));
    lines.extend(told_apart(report).map(|line| (None, line)));
    lines.push((None, brief::booked(report.booked_usd, report.cap_usd)));
    lines.extend(brief::few(&notes, NOTES_SHOWN).into_iter().map(|note| (None, note)));
    lines
}

/// What the pairs of cells say, counted.
fn told_apart(report: &MatrixReport) -> Option<String> {
    let mut said: BTreeMap<&str, u64> = BTreeMap::new();
    for pair in &report.pairs {
        *said.entry(says(pair)).or_default() += 1;
    }
    let each: Vec<String> = said.into_iter().map(|(word, n)| format!("{n} {word}")).collect();
    let pairs = counted(report.pairs.len() as u64, "pair");
    (!each.is_empty()).then(|| format!("of {pairs}, second against first: {}", each.join(", ")))
}

/// How many cells have ended.
fn cells_ended(report: &MatrixReport) -> String {
    let ended = report.cells.iter().filter(|cell| cell.ended as usize == cell.runs.len()).count() as u64;
    format!("{} of {}", count(ended), counted(report.cells.len() as u64, "cell"))
}

/// The matrix as Markdown.
#[must_use]
pub fn markdown(report: &MatrixReport) -> String {
    markdown::render_blocks(&document(report))
}

/// The matrix as a page that needs no network.
///
/// # Errors
/// Never for text and pictures.
pub fn html(report: &MatrixReport) -> Result<String, RenderError> {
    html::of_document(document(report), &plots(report))
}

/// A cost that quality is held against.
struct Cost {
    /// How the table marks its front.
    mark: &'static str,
    file_name: &'static str,
    title: &'static str,
    written: fn(f64) -> String,
    of: fn(&MatrixCell) -> Option<f64>,
    on_front: fn(&MatrixCell) -> Option<bool>,
}

const COSTS: [Cost; 4] = [
    Cost {
        mark: "$",
        file_name: "front-dollars.svg",
        title: "score against dollars a run",
        written: usd,
        of: MatrixCell::usd_held,
        on_front: |cell| cell.on_front_of_usd,
    },
    Cost {
        mark: "ms",
        file_name: "front-latency.svg",
        title: "score against milliseconds a recall",
        written: ms,
        of: |cell| cell.probe.as_ref().map(|probe| probe.p50_ms),
        on_front: |cell| cell.on_front_of_probe,
    },
    Cost {
        mark: "$fill",
        file_name: "front-filling.svg",
        title: "score against what the memory spends on filling 1,000 turns",
        written: usd,
        of: |cell| cell.memory.as_ref()?.usd_per_1000_turns,
        on_front: |cell| cell.on_front_of_filling,
    },
    Cost {
        mark: "$ask",
        file_name: "front-asking.svg",
        title: "score against what the memory spends on 1,000 questions",
        written: usd,
        of: |cell| Some(cell.memory.as_ref()?.usd_per_question? * 1000.0),
        on_front: |cell| cell.on_front_of_asking,
    },
];

/// Score against each cost. Cells of other questions, metrics or judges are in none of the pictures: the largest set of those that
/// can be held against each other is drawn.
#[must_use]
pub fn plots(report: &MatrixReport) -> Vec<Plot> {
    let sets: BTreeSet<u32> = report.cells.iter().filter_map(|cell| cell.alike_with).collect();
    let of_set = |set: u32| report.cells.iter().filter(move |cell| cell.alike_with == Some(set));
    // the first of those that are equally large
    let Some(set) = sets.into_iter().max_by_key(|set| (of_set(*set).count(), Reverse(*set))) else {
        return Vec::new();
    };
    let varied = varied(report);
    // they have one metric
    let better = of_set(set).next().map(|cell| cell.better).unwrap_or_default();
    let draw = |cost: &Cost| {
        let points: Vec<FrontPoint> = of_set(set)
            .filter_map(|cell| {
                Some(FrontPoint {
                    mark: cell.number.to_string(),
                    label: name_of(cell, &varied),
                    value: cell.value?,
                    interval: cell.ci95.as_ref().map(|interval| (interval.low, interval.high)),
                    on_front: (cost.on_front)(cell)?,
                    cost: (cost.of)(cell)?,
                })
            })
            .collect();
        let axis = FrontAxis { file_name: cost.file_name, title: cost.title, better, written: cost.written };
        front_plot(axis, &points)
    };
    COSTS.iter().filter_map(draw).collect()
}

/// The axes that have more than one value: one with a single value says nothing of a cell.
fn varied(report: &MatrixReport) -> Vec<&String> {
    report.axes.iter().filter(|(_, values)| values.len() > 1).map(|(axis, _)| axis).collect()
}

/// What tells a cell from the others.
fn name_of(cell: &MatrixCell, varied: &[&String]) -> String {
    let values: Vec<&str> = varied.iter().filter_map(|axis| cell.values.get(*axis)).map(String::as_str).collect();
    values.join(", ")
}

fn document(report: &MatrixReport) -> Vec<Block> {
    let name = report
        .name
        .as_deref()
        .map_or_else(|| report.id.clone(), |name| format!("{} ({})", one_line(name, VALUE_WIDTH), report.id));
    let mut blocks = vec![
        Block::Title(format!("{name}: {}", cells_ended(report))),
        Block::Headline(booked_by_group(report.booked_usd, report.cap_usd)),
        Block::List(report.notes.iter().filter(|note| !is_verdict(report, note)).cloned().collect()),
    ];
    blocks.extend(cells(report));
    blocks.extend(effects(report));
    blocks.extend(seeds::seeds(report));
    blocks.extend(pairs(report));
    blocks
}

fn cells(report: &MatrixReport) -> Vec<Block> {
    let varied = varied(report);
    let mut columns = vec![">Cell".to_owned()];
    columns.extend(varied.iter().map(|axis| (*axis).clone()));
    columns.extend([">Score", ">95 %", ">sd", ">Runs", "Verdict", ">$/run", ">Probe p50"].map(str::to_owned));
    let spends = report.cells.iter().filter_map(|cell| cell.memory.as_ref()).any(|memory| memory.usd > 0.0);
    if spends {
        columns.extend([">Memory $/1,000 turns", ">$/1,000 questions"].map(str::to_owned));
    }
    columns.extend(["Front", "Metric"].map(str::to_owned));
    let row = |cell: &MatrixCell| {
        let value = |axis: &&String| cell.values.get(*axis).map_or(NONE.to_owned(), |v| one_line(v, VALUE_WIDTH));
        let mark = if cell.differs_in.is_empty() { "" } else { " *" };
        let mut row = vec![format!("{}{mark}", cell.number)];
        row.extend(varied.iter().map(value));
        row.extend([
            percent_or_none(cell.value),
            interval(cell.ci95.as_ref()),
            cell.sd.map_or_else(|| NONE.to_owned(), |sd| format!("{:.2}", sd * 100.0)),
            format!("{}/{}", cell.ended, cell.runs.len()),
            cell.verdict.map_or(NONE, |verdict| verdict.name()).to_owned(),
            cell.usd_held().map_or_else(|| NONE.to_owned(), usd),
            probe(cell),
        ]);
        if spends {
            let dollars = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), usd);
            let memory = cell.memory.as_ref();
            row.push(dollars(memory.and_then(|memory| memory.usd_per_1000_turns)));
            row.push(dollars(memory.and_then(|memory| Some(1000.0 * memory.usd_per_question?))));
        }
        row.extend([fronts(cell), format!("{}{}", cell.metric, words::direction(cell.better))]);
        row
    };
    let titles: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut blocks = vec![heading("Cells"), table(&titles, report.cells.iter().map(row).collect())];
    let verdicts: Vec<String> = report.notes.iter().filter(|note| is_verdict(report, note)).cloned().collect();
    blocks.extend((!verdicts.is_empty()).then_some(Block::List(verdicts)));
    blocks.extend(words_of_fronts(report));
    let marked = report.cells.iter().filter(|cell| !cell.differs_in.is_empty());
    let marks: Vec<String> = marked
        .map(|cell| {
            format!(
                "* cell {} differs from every other in more than one setting ({})",
                cell.number,
                cell.differs_in.join(", ")
            )
        })
        .collect();
    blocks.extend((!marks.is_empty()).then_some(Block::List(marks)));
    blocks
}

/// Latency of a cell in milliseconds; in brackets where it is not held against that of others.
fn probe(cell: &MatrixCell) -> String {
    match (&cell.probe, &cell.probe_note) {
        (None, _) => NONE.to_owned(),
        (Some(probe), None) => ms(probe.p50_ms),
        (Some(probe), Some(_)) => format!("({})", ms(probe.p50_ms)),
    }
}

/// The fronts that a cell is on: `$`, `ms`.
fn fronts(cell: &MatrixCell) -> String {
    let on: Vec<&str> = COSTS.iter().filter(|cost| (cost.on_front)(cell) == Some(true)).map(|cost| cost.mark).collect();
    if on.is_empty() { NONE.to_owned() } else { on.join(" ") }
}

/// What *front* means, and which latencies are left out of it.
fn words_of_fronts(report: &MatrixReport) -> Vec<Block> {
    if !report.cells.iter().any(|cell| cell.ended > 0) {
        return Vec::new();
    }
    let mut lines = vec![
        "front: no other cell with the same questions, metric and judges has a score that is at least as good for no more of a cost, and \
         is better or costs less, among VALID cells alone; $ dollars a run by list price, ms milliseconds a recall, $fill and $ask what \
         the memory itself spends on filling and asking; by the figures as they are, without their intervals"
            .to_owned(),
    ];
    lines.extend(paid_otherwise(report));
    // one line for all cells of which the same is said
    let mut said: Vec<(&String, Vec<String>)> = Vec::new();
    for cell in report.cells.iter().filter(|cell| cell.ended > 0) {
        let Some(note) = &cell.probe_note else { continue };
        match said.iter_mut().find(|(other, _)| *other == note) {
            Some((_, cells)) => cells.push(cell.number.to_string()),
            None => said.push((note, vec![cell.number.to_string()])),
        }
    }
    lines.extend(
        said.into_iter().map(|(note, cells)| format!("probe of {} {}: {note}", of_cells(&cells), cells.join(", "))),
    );
    vec![Block::List(lines)]
}

/// The cells of which something else was paid than the list price that the table has.
fn paid_otherwise(report: &MatrixReport) -> Option<String> {
    let paid = |cell: &MatrixCell| {
        let (list, paid) = (usd(cell.usd_list_per_run?), usd(cell.usd_per_run?));
        (list != paid).then(|| format!("{paid} in cell {}", cell.number))
    };
    let paid: Vec<String> = report.cells.iter().filter_map(paid).collect();
    (!paid.is_empty()).then(|| {
        format!(
            "$/run is the list price, as if nothing had come from the call store; what was paid for a run differs: {}",
            paid.join(", ")
        )
    })
}

/// Whether a note says why a run of a cell is INVALID: these stand where the verdicts are.
fn is_verdict(report: &MatrixReport, note: &str) -> bool {
    let mut runs = report.cells.iter().filter(|cell| cell.is_invalid()).flat_map(|cell| &cell.runs);
    runs.any(|run| note.strip_prefix(run.as_str()).is_some_and(|said| said.starts_with(Verdict::IS_INVALID)))
}

/// Why two cells cannot be compared. What makes a cell INVALID is said once, below the cells, and not again in each of its pairs.
fn why_not(report: &MatrixReport, pair: &MatrixPair) -> String {
    let is_of_verdict = |reason: &&String| {
        ["the first run (", "the second run ("].iter().any(|side| reason.starts_with(side))
            && reason.contains(&[")", Verdict::IS_INVALID].concat())
    };
    let of_pair = report.cells.iter().filter(|cell| [pair.a, pair.b].contains(&cell.number));
    let invalid: Vec<String> = of_pair.filter(|cell| cell.is_invalid()).map(|cell| cell.number.to_string()).collect();
    let short = (!invalid.is_empty()).then(|| format!("INVALID: {} {}", of_cells(&invalid), invalid.join(", ")));
    let others = pair.reasons.iter().filter(|reason| short.is_none() || !is_of_verdict(reason));
    short.clone().into_iter().chain(others.cloned()).collect::<Vec<_>>().join("; ")
}

fn of_cells(cells: &[String]) -> &'static str {
    if cells.len() == 1 { "cell" } else { "cells" }
}

fn effects(report: &MatrixReport) -> Vec<Block> {
    if report.effects.is_empty() {
        return Vec::new();
    }
    let rows = report.effects.iter().map(|effect| {
        vec![
            format!(
                "{}: {} to {}{}",
                effect.axis,
                one_line(&effect.from, VALUE_WIDTH),
                one_line(&effect.to, VALUE_WIDTH),
                within(effect)
            ),
            points(effect.difference),
            points_interval(effect.ci95.as_ref()),
            p_value(effect.p_value),
            format!("over {}{}", counted(u64::from(effect.pairs), "pair"), note(effect.note.as_ref())),
        ]
    });
    vec![heading("Main effects, in points"), table(&["Change", ">Difference", ">95 %", ">p", "How"], rows.collect())]
}

/// The cells that an effect is of, where others have one of their own.
fn within(effect: &MainEffect) -> String {
    let value = |(axis, value): (&String, &String)| format!(", {axis} {}", one_line(value, VALUE_WIDTH));
    effect.within.iter().map(value).collect()
}

fn note(note: Option<&String>) -> String {
    note.map(|note| format!("; {note}")).unwrap_or_default()
}

/// What a pair says.
fn says(pair: &MatrixPair) -> &'static str {
    if pair.comparable { pair.verdict.name() } else { "NOT COMPARABLE" }
}

fn pairs(report: &MatrixReport) -> Vec<Block> {
    if report.pairs.is_empty() {
        return Vec::new();
    }
    let rows = report.pairs.iter().map(|pair| {
        let why = if pair.comparable { note(pair.note.as_ref()) } else { format!("; {}", why_not(report, pair)) };
        vec![
            format!("{} against {}", pair.b, pair.a),
            says(pair).to_owned(),
            points(pair.difference),
            points_interval(pair.ci95.as_ref()),
            p_value(pair.p_holm),
            format!("{}{why}", pair.differ_in.join(", ")),
        ]
    });
    vec![
        heading("All pairs, second minus first, in points"),
        table(&["Cells", "Says", ">Difference", ">95 %", ">p (Holm)", "Differ in"], rows.collect()),
    ]
}

#[cfg(test)]
mod tests {
    use bench_proto::{metric::Better, summary::MemoryCost};

    use super::*;

    fn golden() -> MatrixReport {
        serde_json::from_str(include_str!("../../../proto/golden/matrix.v1.json")).expect("the golden report is read")
    }

    #[test]
    fn every_cell_has_its_values_and_figures() {
        let report = golden();
        let text = markdown(&report);
        for cell in &report.cells {
            let row = text.lines().find(|line| line.starts_with(&format!("| {} |", cell.number)));
            let row = row.unwrap_or_else(|| panic!("no row of cell {}:\n{text}", cell.number));
            for value in cell.values.values() {
                assert!(row.contains(value.as_str()), "{value} is missing in {row}");
            }
            assert!(row.contains(&percent_or_none(cell.value)) && row.contains(&interval(cell.ci95.as_ref())), "{row}");
            assert!(row.contains(&fronts(cell)), "{row}");
        }
        assert!(text.contains("Main effects") && text.contains("p (Holm)"), "{text}");
    }

    #[test]
    fn an_effect_says_of_which_dataset_it_is_where_there_are_several() {
        let mut report = golden();
        let first = report.effects.first_mut().expect("has effects");
        first.within = std::collections::BTreeMap::from([("dataset".to_owned(), "smoke".to_owned())]);
        let named = format!("{}: {} to {}, dataset smoke", first.axis, first.from, first.to);
        assert!(markdown(&report).contains(&named), "{named}");
    }

    #[test]
    fn what_cannot_be_held_against_others_is_in_brackets_and_said_once() {
        let mut report = golden();
        for cell in report.cells.iter_mut().take(2) {
            cell.probe_note = Some("not held against others".to_owned());
            cell.on_front_of_probe = None;
        }
        report.cells[3].differs_in = vec!["judge".to_owned(), "system".to_owned()];
        let text = markdown(&report);
        assert!(text.contains("probe of cells 1, 2: not held against others"), "{text}");
        assert!(text.contains("* cell 4 differs from every other in more than one setting (judge, system)"), "{text}");
        let probe = report.cells[0].probe.as_ref().expect("was measured");
        assert!(text.contains(&format!("({})", ms(probe.p50_ms))), "{text}");
    }

    #[test]
    fn quality_is_drawn_against_each_cost_that_is_known() {
        let mut report = golden();
        for cell in &mut report.cells {
            cell.alike_with = Some(1);
        }
        let names = |report: &MatrixReport| plots(report).iter().map(|plot| plot.file_name).collect::<Vec<_>>();
        assert_eq!(names(&report), ["front-dollars.svg", "front-latency.svg"]);
        for (i, cell) in (0_u8..).zip(&mut report.cells) {
            let usd = f64::from(i) + 0.5;
            cell.memory = Some(MemoryCost { usd, usd_per_1000_turns: Some(usd), usd_per_question: Some(usd / 1000.0) });
            (cell.on_front_of_filling, cell.on_front_of_asking) = (Some(i == 0), Some(i == 0));
        }
        assert_eq!(names(&report)[2..], ["front-filling.svg", "front-asking.svg"]);
        let text = markdown(&report);
        assert!(text.contains("$3.50") && text.contains("$fill $ask"), "{text}");
        let page = html(&report).expect("is rendered");
        assert_eq!(page.matches("<figure ").count(), 4, "{page}");
        // others' figures are not drawn among them
        report.cells[3].alike_with = Some(4);
        assert!(plots(&report).iter().all(|plot| plot.svg.matches("<circle ").count() == 3));
    }

    #[test]
    fn why_a_cell_is_invalid_stands_once_below_the_cells() {
        let mut report = golden();
        let why = "coverage is 0.5, and less than 0.9 of the questions is no result";
        report.cells[0].verdict = Some(Verdict::Invalid);
        let run = report.cells[0].runs[0].clone();
        report.notes.insert(0, [run.as_str(), Verdict::IS_INVALID, why].concat());
        let number = report.cells[0].number;
        for pair in report.pairs.iter_mut().filter(|pair| pair.a == number) {
            pair.comparable = false;
            pair.reasons = vec![
                format!("the first run (cell {number}){}{why}", Verdict::IS_INVALID),
                "the datasets differ".to_owned(),
            ];
        }
        let text = markdown(&report);
        assert_eq!(text.matches(why).count(), 1, "{text}");
        assert_eq!(text.matches("; INVALID: cell 1; the datasets differ").count(), 3, "{text}");
        let places = ["## Cells", why, "All pairs"].map(|words| text.find(words));
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}: {text}");
    }

    #[test]
    fn where_lower_is_better_the_table_and_the_pictures_say_so() {
        let mut report = golden();
        assert!(!markdown(&report).contains("(lower is better)"));
        for cell in &mut report.cells {
            (cell.better, cell.alike_with) = (Better::Lower, Some(1));
        }
        let text = markdown(&report);
        assert_eq!(text.matches("judge (lower is better)").count(), report.cells.len(), "{text}");
        let plots = plots(&report);
        assert!(!plots.is_empty() && plots.iter().all(|plot| plot.title.ends_with("(lower is better)")), "{plots:?}");
    }

    #[test]
    fn dollars_are_those_of_the_list_and_what_was_paid_is_told_beside_them() {
        let mut report = golden();
        for cell in &mut report.cells {
            cell.usd_list_per_run = cell.usd_per_run;
        }
        assert!(!markdown(&report).contains("list price, as if"), "nothing differs");
        (report.cells[1].usd_list_per_run, report.cells[1].usd_per_run) = (Some(7.5), Some(0.0));
        let text = markdown(&report);
        let row = text.lines().find(|line| line.starts_with("| 2 |")).expect("a row of cell 2");
        assert!(row.contains(&usd(7.5)), "{row}");
        assert!(text.contains(&format!("differs: {} in cell 2", usd(0.0))), "{text}");
        report.cells.iter_mut().for_each(|cell| cell.alike_with = Some(1));
        assert!(plots(&report).iter().any(|plot| plot.svg.contains(&usd(7.5))), "the picture has the list price");
    }

    #[test]
    fn what_comes_first_fits_a_screen() {
        let mut report = golden();
        report.id = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab".to_owned();
        let long = "a value that is longer than anybody would ever have it, and longer still".to_owned();
        report.axes.insert("answerer".to_owned(), vec![long.clone(), "none".to_owned()]);
        for number in 5..=100 {
            let mut cell = report.cells[0].clone();
            cell.number = number;
            cell.values.insert("answerer".to_owned(), long.clone());
            report.cells.push(cell);
            report.notes.push(long.clone());
            let page = terminal(&report, TerminalOptions::default());
            assert!(page.lines().count() <= 24, "{page}");
            assert!(page.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{page}");
            let commands = ["bench-coord report 0123456789ab --full", "bench-coord compare p-c1-r1 p-c2-r1"];
            for words in ["VALID", "second against first"].into_iter().chain(commands) {
                assert!(page.contains(words), "'{words}' is missing:\n{page}");
            }
        }
        let page = terminal(&report, TerminalOptions::default());
        assert!(page.contains(" more cells in the full report"), "{page}");
        report.pairs.clear();
        let page = terminal(&report, TerminalOptions::default());
        assert!(page.contains("bench-coord compare OTHER p-c1-r1"), "a matrix is compared with nothing: {page}");
    }

    #[test]
    fn a_matrix_that_has_just_begun_has_no_figures() {
        let mut report = golden();
        (report.pairs, report.effects) = (Vec::new(), Vec::new());
        for cell in &mut report.cells {
            (cell.ended, cell.value, cell.ci95, cell.usd_per_run, cell.probe) = (0, None, None, None, None);
            (cell.on_front_of_usd, cell.on_front_of_probe) = (None, None);
        }
        let brief = terminal(&report, TerminalOptions::default());
        assert!(brief.contains("0 of 4 cells") && !brief.contains("of 0 pairs"), "{brief}");
        let text = terminal(&report, TerminalOptions { full: true, ..TerminalOptions::default() });
        assert!(text.contains("0 of 4 cells") && !text.contains("front:") && !text.contains("Main effects"), "{text}");
    }
}
