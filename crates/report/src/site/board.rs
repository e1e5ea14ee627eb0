//! The page of a dataset: a leaderboard for each way in which its runs were asked and graded.

use bench_proto::{metric::Better, summary::Verdict};

use super::{
    Board, BoardPair, BoardRow, Mark, SiteDataset, Unranked,
    layout::{Cell, Laid, Part, linked, page},
    names::{INDEX, from_folder},
};
use crate::{
    blocks::{Block, heading},
    error::RenderError,
    figures::{
        NONE, count, counted, interval, ms, one_line, p_value, percent, percent_or_none, points, points_interval, usd,
    },
    published::{NOTE_WIDTH, PublishedRow, differs},
    svg::{Dot, dots},
    words,
};

/// Longest name, version or source that is shown.
const NAME_WIDTH: usize = 44;
/// Longest reason that is shown.
const REASON_WIDTH: usize = 120;
/// Results that a row names as not told apart from it.
const MOST_NAMED: usize = 4;
/// Characters of a digest that are shown.
const DIGEST: usize = 8;

/// The page.
///
/// # Errors
/// Never for text and pictures.
pub fn dataset(of: &SiteDataset) -> Result<String, RenderError> {
    let ranked = of.tables.iter().flat_map(|table| &table.rows).filter(|row| row.rank.is_some()).count() as u64;
    let mut parts = vec![Part::Of(Block::List(vec![
        format!(
            "{} from {}: of those with the same settings the newest VALID one",
            counted(ranked, "ranked result"),
            counted(of.archived_runs, "archived run")
        ),
        "a rank is shared where the paired comparison, corrected over all pairs of this page (Holm), does not tell results apart; \
         results of different ranks may still be not told apart, and say so"
            .to_owned(),
        words::LIKE_THESE.to_owned(),
    ]))];
    for (number, table) in of.tables.iter().enumerate() {
        parts.extend(board(number, table));
    }
    if !of.published.is_empty() {
        parts.extend(published(&of.published));
    }
    let trail = vec![(from_folder(INDEX), "all datasets".to_owned())];
    page(Laid { title: format!("{}: results", one_line(&of.name, NAME_WIDTH)), trail, parts })
}

fn board(number: usize, table: &Board) -> Vec<Part> {
    let judged = match table.judges.as_slice() {
        [] if table.grades_brought => "graded elsewhere: the grades were brought".to_owned(),
        [] => "graded by scorers".to_owned(),
        judges => format!("judged by {}", one_line(&judges.join(" and "), NAME_WIDTH)),
    };
    let answered = match &table.answerer {
        Some(answerer) => format!("answered by {}", one_line(answerer, NAME_WIDTH)),
        None => "who answered is not said".to_owned(),
    };
    let asked_for = match table.top_k {
        Some(top_k) => format!("{} asked for", counted(u64::from(top_k), "hit")),
        None => "how many hits were asked for is not said".to_owned(),
    };
    let mut facts = vec![format!(
        "preset {}, {}, {answered}, {judged}, {asked_for}{}",
        one_line(&table.preset, NAME_WIDTH),
        counted(table.questions, "question"),
        words::direction(table.better),
    )];
    facts.extend(table.counted_as.as_ref().map(|name| {
        format!(
            "counted as {}: that figure stands in a column of its own; scores, ranks and pairs are by our own rules",
            one_line(name, NAME_WIDTH)
        )
    }));
    if !table.differs_in.is_empty() {
        let differs: Vec<String> = table.differs_in.iter().map(|word| one_line(word, NAME_WIDTH)).collect();
        facts.push(format!("not held against the first table: other {}", differs.join(", ")));
    }
    facts.extend(probe_notes(table));
    let title = format!("Table {}: {}", number + 1, one_line(&table.metric, NAME_WIDTH));
    let mut parts = vec![Part::Of(heading(title)), Part::Of(Block::List(facts))];
    parts.extend(picture(table));
    parts.push(results(table));
    if !table.pairs.is_empty() {
        parts.push(Part::Of(heading("All pairs, second minus first, in points")));
        parts.push(pairs(table));
    }
    parts
}

/// The results of a table. What is counted as others do has their figure beside the score.
fn results(table: &Board) -> Part {
    let of_others = table.counted_as.as_ref().map(|name| format!(">As {}", one_line(name, NAME_WIDTH)));
    let mut columns = COLUMNS.to_vec();
    let mut rows: Vec<Vec<Cell>> = table.rows.iter().map(|row| cells(table, row)).collect();
    if let Some(title) = &of_others {
        columns.insert(BEHIND_SCORE, title);
        for (cells, row) in rows.iter_mut().zip(&table.rows) {
            cells.insert(BEHIND_SCORE, Cell::text(percent_or_none(row.counted_value)));
        }
    }
    linked(&columns, rows)
}

/// The place of the column behind the score and its interval.
const BEHIND_SCORE: usize = 5;
/// Columns of a table of results.
const COLUMNS: [&str; 11] = [
    "Rank",
    "System",
    "Version",
    ">Score",
    ">95 %",
    ">Questions",
    ">Dollars",
    ">Probe p50, ms",
    ">Date",
    "Digest",
    "Also not told apart from",
];

fn cells(table: &Board, row: &BoardRow) -> Vec<Cell> {
    let rank = match row.rank {
        None => Cell::text(NONE).marked(mark(row)),
        Some(rank) => {
            let is_shared = table.rows.iter().filter(|other| other.rank == Some(rank)).count() > 1;
            Cell::text(format!("{rank}{}", if is_shared { " =" } else { "" }))
        }
    };
    let probe = match (row.probe_p50_ms, &row.probe_note) {
        (None, _) => NONE.to_owned(),
        (Some(p50), None) => ms(p50),
        (Some(p50), Some(_)) => format!("({})", ms(p50)),
    };
    let at = row.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or(NONE);
    vec![
        rank,
        Cell::link(one_line(&row.name(), NAME_WIDTH), from_folder(&row.page)).folding(same_settings(row)),
        Cell::text(one_line(&row.system_version, NAME_WIDTH)),
        Cell::text(percent_or_none(row.score)),
        Cell::text(interval(row.ci95.as_ref())),
        Cell::text(count(row.questions)),
        Cell::text(format!("{}{}", usd(row.usd), if row.usd_incomplete { " + unknown" } else { "" })),
        Cell::text(probe),
        Cell::text(at),
        Cell::text(row.result_digest.chars().take(DIGEST).collect::<String>()),
        Cell::text(row.unranked.as_ref().map_or_else(|| near(table, row), |of| one_line(&of.why, REASON_WIDTH))),
    ]
}

/// The runs that a row stands for, behind how many they are: their mean first, then each of the others.
fn same_settings(row: &BoardRow) -> Option<(String, Vec<String>)> {
    let same = row.same_settings.as_ref()?;
    let mut lines = Vec::with_capacity(same.others.len() + 2);
    if let Some(mean) = same.mean.filter(|_| same.valid > 1) {
        let around = match &same.ci95 {
            Some(ci95) => format!("{} % ({})", interval(Some(ci95)), ci95.method),
            None => "all have the same score".to_owned(),
        };
        lines.push(format!(
            "mean of {} of this version: {}, {around}",
            counted(same.valid, "VALID run"),
            percent(mean)
        ));
    }
    lines.extend(same.others.iter().map(|other| {
        let at = other.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or(NONE);
        format!(
            "{}: {}, {}, {at}, version {}",
            one_line(&other.run, NAME_WIDTH),
            percent_or_none(other.score),
            one_line(&other.verdict, NAME_WIDTH),
            one_line(&other.system_version, NAME_WIDTH)
        )
    }));
    if same.more > 0 {
        lines.push(format!("and {} more", same.more));
    }
    let all = same.others.len() as u64 + same.more + 1;
    Some((format!("one of {}", counted(all, "run")), lines))
}

/// The names of those of other ranks that a result is not told apart from: those of its own rank stand around it.
fn near(table: &Board, row: &BoardRow) -> String {
    let is_near = |other: &&BoardRow| other.rank != row.rank && row.not_told_apart.contains(&other.run);
    let names: Vec<String> =
        table.rows.iter().filter(is_near).map(|other| one_line(&other.name(), NAME_WIDTH)).collect();
    let named = names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What is to be known of latencies in brackets, said once for all results that share it.
fn probe_notes(table: &Board) -> Vec<String> {
    let mut said: Vec<(&String, Vec<String>)> = Vec::new();
    for row in &table.rows {
        let Some(note) = row.probe_note.as_ref().filter(|_| row.probe_p50_ms.is_some()) else { continue };
        let name = one_line(&row.name(), NAME_WIDTH);
        match said.iter_mut().find(|(other, _)| *other == note) {
            Some((_, names)) => names.push(name),
            None => said.push((note, vec![name])),
        }
    }
    said.into_iter()
        .map(|(note, names)| format!("probe of {}: {}", names.join(", "), one_line(note, REASON_WIDTH)))
        .collect()
}

fn picture(table: &Board) -> Option<Part> {
    let dot = |row: &BoardRow| {
        Some(Dot {
            label: row.name(),
            value: row.score?,
            interval: row.ci95.as_ref().map(|interval| (interval.low, interval.high)),
            full: row.rank.is_some(),
        })
    };
    let all: Vec<Dot> = table.rows.iter().filter_map(dot).collect();
    let better = if table.better == Better::Lower { ", lower is better" } else { "" };
    let title = format!("{} with 95 % intervals{better}; empty dots have no rank", one_line(&table.metric, NAME_WIDTH));
    (all.len() > 1).then(|| Part::Picture(title.clone(), dots(&title, &all)))
}

fn pairs(table: &Board) -> Part {
    let name = |run: &str| {
        let of = table.rows.iter().find(|row| row.run == run);
        of.map_or_else(|| run.to_owned(), |row| one_line(&row.name(), NAME_WIDTH))
    };
    let row = |pair: &BoardPair| {
        let says = if pair.reasons.is_empty() { pair.verdict.name() } else { "NOT COMPARABLE" };
        vec![
            Cell::link(format!("{} against {}", name(&pair.b), name(&pair.a)), from_folder(&pair.page)),
            Cell::text(says).marked((!pair.ranked).then_some("without rank")),
            Cell::text(points(pair.difference)),
            Cell::text(points_interval(pair.ci95.as_ref())),
            Cell::text(p_value(pair.p_holm)),
        ]
    };
    let columns = ["Pair", "Says", ">Difference", ">95 %", ">p (Holm)"];
    linked(&columns, table.pairs.iter().map(row).collect())
}

/// What others have published: nobody has run it here.
fn published(rows: &[PublishedRow]) -> Vec<Part> {
    let text = |text: Option<&String>| Cell::text(text.map_or(NONE.to_owned(), |text| one_line(text, NAME_WIDTH)));
    let row = |line: &PublishedRow| {
        let part = line.part.as_ref().map(|part| format!(" ({})", one_line(part, NAME_WIDTH))).unwrap_or_default();
        vec![
            Cell::text(format!("{}{part}", one_line(&line.system, NAME_WIDTH))).marked(Some(Mark::Unverified.name())),
            Cell::text(percent(line.score)),
            Cell::text(line.questions.map_or(NONE.to_owned(), count)),
            text(line.answerer.as_ref()),
            text(line.judge.as_ref()),
            Cell::text(differs(line)),
            Cell::text(line.note.as_ref().map_or(NONE.to_owned(), |note| one_line(note, NOTE_WIDTH))),
            Cell::text(one_line(&line.source, NAME_WIDTH)),
        ]
    };
    let columns =
        ["System", ">Score", ">Questions", "Answerer", "Judge", "Differs from the first result in", "Note", "Source"];
    vec![
        Part::Of(heading("Published by others")),
        Part::Of(Block::Text(
            "Figures as their authors printed them, without a rank: nobody has run them here, and another judge alone moves a score by ten \
             points and more."
                .to_owned(),
        )),
        linked(&columns, rows.iter().map(row).collect()),
    ]
}

/// What stands beside a result without a rank.
pub(super) fn mark(row: &BoardRow) -> Option<&'static str> {
    row.unranked.as_ref().map(|of| of.mark.name())
}

/// What a page says above figures that have no rank.
pub(super) fn warning(row: &BoardRow) -> Option<String> {
    let Unranked { mark, why } = row.unranked.as_ref()?;
    let verdict = if row.verdict == Verdict::Invalid { "INVALID, " } else { "" };
    Some(format!("{verdict}{}: {} ({})", mark.name(), one_line(why, REASON_WIDTH), one_line(&row.name(), NAME_WIDTH)))
}
