//! A matrix of runs, for a terminal and as Markdown.

use bench_proto::matrix::{MatrixCell, MatrixReport};

use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, counted, interval, ms, one_line, p_value, percent_or_none, points, points_interval, usd},
    markdown,
    terminal::{self, View},
};

/// Longest value of an axis that is shown.
const VALUE_WIDTH: usize = 40;

/// The matrix for a terminal.
#[must_use]
pub fn terminal(report: &MatrixReport, view: View) -> String {
    terminal::render_blocks(&document(report), view)
}

/// The matrix as Markdown.
#[must_use]
pub fn markdown(report: &MatrixReport) -> String {
    markdown::render_blocks(&document(report))
}

fn document(report: &MatrixReport) -> Vec<Block> {
    let name = report
        .name
        .as_deref()
        .map_or_else(|| report.id.clone(), |name| format!("{} ({})", one_line(name, VALUE_WIDTH), report.id));
    let ended = report.cells.iter().filter(|cell| cell.ended as usize == cell.runs.len()).count() as u64;
    let cap = report.cap_usd.map(|cap| format!(" of {}", usd(cap))).unwrap_or_default();
    let mut blocks = vec![
        Block::Title(format!("{name}: {} of {}", count(ended), counted(report.cells.len() as u64, "cell"))),
        Block::Headline(format!("spent by the group: {}{cap}", usd(report.booked_usd))),
        Block::List(report.notes.clone()),
    ];
    blocks.extend(cells(report));
    blocks.extend(effects(report));
    blocks.extend(pairs(report));
    blocks
}

fn cells(report: &MatrixReport) -> Vec<Block> {
    // an axis with one value says nothing of a cell
    let varied: Vec<&String> =
        report.axes.iter().filter(|(_, values)| values.len() > 1).map(|(axis, _)| axis).collect();
    let mut columns = vec![">Cell".to_owned()];
    columns.extend(varied.iter().map(|axis| (*axis).clone()));
    let figures = [">Score", ">95 %", ">sd", ">Runs", "Verdict", ">$/run", ">Probe p50", "Front", "Metric"];
    columns.extend(figures.map(str::to_owned));
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
            cell.usd_per_run.map_or_else(|| NONE.to_owned(), usd),
            probe(cell),
            fronts(cell),
            cell.metric.clone(),
        ]);
        row
    };
    let titles: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut blocks = vec![heading("Cells"), table(&titles, report.cells.iter().map(row).collect())];
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
    let on = [(cell.on_front_of_usd, "$"), (cell.on_front_of_probe, "ms")];
    let on: Vec<&str> = on.into_iter().filter(|(on, _)| *on == Some(true)).map(|(_, name)| name).collect();
    if on.is_empty() { NONE.to_owned() } else { on.join(" ") }
}

/// What *front* means, and which latencies are left out of it.
fn words_of_fronts(report: &MatrixReport) -> Vec<Block> {
    if !report.cells.iter().any(|cell| cell.on_front_of_usd.is_some()) {
        return Vec::new();
    }
    let mut lines = vec![
        "front: no other cell with the same questions, metric and judges has at least this score for no more dollars a run ($) or milliseconds a recall (ms), and \
         more of it or for less; by the figures as they are, without their intervals"
            .to_owned(),
    ];
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
                "{}: {} to {}",
                effect.axis,
                one_line(&effect.from, VALUE_WIDTH),
                one_line(&effect.to, VALUE_WIDTH)
            ),
            points(effect.difference),
            points_interval(effect.ci95.as_ref()),
            p_value(effect.p_value),
            format!("over {}{}", counted(u64::from(effect.pairs), "pair"), note(effect.note.as_ref())),
        ]
    });
    vec![heading("Main effects, in points"), table(&["Change", ">Difference", ">95 %", ">p", "How"], rows.collect())]
}

fn note(note: Option<&String>) -> String {
    note.map(|note| format!("; {note}")).unwrap_or_default()
}

fn pairs(report: &MatrixReport) -> Vec<Block> {
    if report.pairs.is_empty() {
        return Vec::new();
    }
    let rows = report.pairs.iter().map(|pair| {
        let why = if pair.comparable { note(pair.note.as_ref()) } else { format!("; {}", pair.reasons.join("; ")) };
        vec![
            format!("{} against {}", pair.b, pair.a),
            if pair.comparable { pair.verdict.name() } else { "NOT COMPARABLE" }.to_owned(),
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
    fn a_matrix_that_has_just_begun_has_no_figures() {
        let mut report = golden();
        (report.pairs, report.effects) = (Vec::new(), Vec::new());
        for cell in &mut report.cells {
            (cell.ended, cell.value, cell.ci95, cell.usd_per_run, cell.probe) = (0, None, None, None, None);
            (cell.on_front_of_usd, cell.on_front_of_probe) = (None, None);
        }
        let text = terminal(&report, View { colour: false, width: None });
        assert!(text.contains("0 of 4 cells") && !text.contains("front:") && !text.contains("Main effects"), "{text}");
    }
}
