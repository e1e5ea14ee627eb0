//! What the seeds of a generated dataset come to together.

use std::collections::BTreeMap;

use bench_proto::matrix::{MatrixReport, SEED_AXIS, SeedGroup, SeedPair};

use super::{VALUE_WIDTH, note};
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, counted, interval, one_line, p_value, percent, percent_or_none, points, points_interval},
    words::direction,
};

/// The tables of groups and pairs; nothing where the seed is no axis.
pub(super) fn seeds(report: &MatrixReport) -> Vec<Block> {
    if report.seeds.is_empty() {
        return Vec::new();
    }
    let rows = (1_u32..).zip(&report.seeds).map(|(place, group)| group_row(report, place, group));
    let mut blocks = vec![
        heading("Over seeds"),
        table(&[">Group", "Of", ">Mean", ">95 %", ">sd", "Seeds", "Metric"], rows.collect()),
        Block::List(words(report)),
    ];
    if !report.seed_pairs.is_empty() {
        blocks.extend([
            heading("Pairs of groups, seed by seed, second minus first, in points"),
            table(
                &["Groups", "Says", ">Difference", ">95 %", ">sd", ">p (Holm)", "Differ in"],
                report.seed_pairs.iter().map(pair_row).collect(),
            ),
        ]);
    }
    blocks
}

fn group_row(report: &MatrixReport, place: u32, group: &SeedGroup) -> Vec<String> {
    let cell = group.of_seeds.first().and_then(|first| report.cells.iter().find(|cell| cell.number == first.cell));
    let better = cell.map(|cell| cell.better).unwrap_or_default();
    let scores: Vec<String> = group
        .of_seeds
        .iter()
        .map(|score| format!("{} {}", one_line(&score.seed, VALUE_WIDTH), percent(score.value)))
        .collect();
    vec![
        place.to_string(),
        name_of(report, &group.values),
        percent_or_none(group.mean),
        interval(group.ci95.as_ref()),
        deviation(group.sd),
        scores.join(", "),
        format!("{}{}", group.metric, direction(better)),
    ]
}

/// What tells a group from the others; all of its values where it is the only one.
fn name_of(report: &MatrixReport, values: &BTreeMap<String, String>) -> String {
    let varied = |axis: &&String| report.axes.get(*axis).is_some_and(|values| values.len() > 1);
    let told: Vec<String> = values
        .iter()
        .filter(|(axis, _)| axis.as_str() != SEED_AXIS && (report.seeds.len() == 1 || varied(axis)))
        .map(|(_, value)| one_line(value, VALUE_WIDTH))
        .collect();
    if told.is_empty() { NONE.to_owned() } else { told.join(", ") }
}

fn pair_row(pair: &SeedPair) -> Vec<String> {
    vec![
        format!("{} against {}", pair.b, pair.a),
        pair.verdict.name().to_owned(),
        points(pair.difference),
        points_interval(pair.ci95.as_ref()),
        deviation(pair.sd),
        p_value(pair.p_holm),
        format!(
            "{}; over {}{}",
            pair.differ_in.join(", "),
            counted(pair.seeds.len() as u64, "seed"),
            note(pair.note.as_ref())
        ),
    ]
}

fn deviation(sd: Option<f64>) -> String {
    sd.map_or_else(|| NONE.to_owned(), |sd| format!("{:.2}", sd * 100.0))
}

/// What the intervals are about, and why some are not there: one line for all groups of which the same is said.
fn words(report: &MatrixReport) -> Vec<String> {
    let mut lines = vec![
        "each seed makes data of its own and counts as one figure; the interval (Student's t over the seeds) says where the mean over \
         further seeds of this generator would lie"
            .to_owned(),
    ];
    let mut said: Vec<(&String, Vec<String>)> = Vec::new();
    for (place, group) in (1_u32..).zip(&report.seeds) {
        let Some(note) = &group.note else { continue };
        match said.iter_mut().find(|(other, _)| *other == note) {
            Some((_, groups)) => groups.push(place.to_string()),
            None => said.push((note, vec![place.to_string()])),
        }
    }
    let of = |groups: &[String]| if groups.len() == 1 { "group" } else { "groups" };
    lines.extend(
        said.into_iter().map(|(note, groups)| format!("no interval of {} {}: {note}", of(&groups), groups.join(", "))),
    );
    lines
}

#[cfg(test)]
mod tests {
    use bench_proto::{comparison::Word, matrix::SeedScore, summary::Interval};

    use super::*;

    fn report() -> MatrixReport {
        let text = include_str!("../../../../proto/golden/matrix.v1.json");
        let mut report: MatrixReport = serde_json::from_str(text).expect("the golden report is read");
        let interval = |low, high| Some(Interval { low, high, method: "t over seeds, 2 df".to_owned() });
        let group = |system: &str, first: u32, scores: [f64; 3]| SeedGroup {
            values: [("system".to_owned(), system.to_owned())].into(),
            metric: "rubric".to_owned(),
            of_seeds: (first..)
                .zip(["7", "8", "9"].into_iter().zip(scores))
                .map(|(cell, (seed, value))| SeedScore { seed: seed.to_owned(), cell, value })
                .collect(),
            mean: Some(scores.iter().sum::<f64>() / 3.0),
            sd: Some(0.02),
            ci95: interval(0.55, 0.65),
            note: None,
        };
        report.seeds = vec![group("bm25", 1, [0.58, 0.6, 0.62]), group("random", 4, [0.1, 0.1, 0.1])];
        report.seeds[1].ci95 = None;
        report.seeds[1].note = Some("all seeds have the same score".to_owned());
        report.seed_pairs = vec![SeedPair {
            a: 1,
            b: 2,
            differ_in: vec!["system".to_owned()],
            seeds: ["7", "8", "9"].map(str::to_owned).into(),
            difference: Some(-0.5),
            sd: Some(0.02),
            ci95: interval(-0.55, -0.45),
            note: None,
            p_value: Some(0.0005),
            p_holm: Some(0.0005),
            verdict: Word::Worse,
        }];
        report
    }

    #[test]
    fn groups_have_their_seeds_and_pairs_their_word() {
        let text = super::super::markdown(&report());
        assert!(text.contains("| 1 | bm25 | 60.00 % |") && text.contains("7 58.00 %, 8 60.00 %, 9 62.00 %"), "{text}");
        assert!(text.contains("| 2 against 1 | WORSE | -50.0"), "{text}");
        assert!(text.contains("no interval of group 2: all seeds have the same score"), "{text}");
        assert!(text.contains("system; over 3 seeds"), "{text}");
    }

    #[test]
    fn a_matrix_without_seeds_says_nothing_of_them() {
        let report = MatrixReport { seeds: Vec::new(), seed_pairs: Vec::new(), ..report() };
        assert!(seeds(&report).is_empty() && !super::super::markdown(&report).contains("Over seeds"));
    }
}
