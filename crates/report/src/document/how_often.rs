//! How often the first interval of a score holds, where it is made of few banks or the score is at an edge: simulated, not claimed.

use bench_proto::summary::Summary;

use crate::words;

/// From so many banks on, and up to this score, the interval holds what it says.
const ENOUGH_BANKS: u64 = 8;
const AT_THE_EDGE: f64 = 0.95;
/// Banks of the simulated samples.
const BANKS_OF_SAMPLES: u64 = 10;

/// The sample of simulated runs, their banks, the true score, and how often its interval held it.
type Simulated = (&'static str, u64, f64, [f64; 2]);

/// Simulated runs: the sample, its banks, the true score, and in how many of 5,000 draws `ci95` held it, in percent: least and most
/// over the correlations within banks. By `bench-perf coverage --draws 5000 --seed 1`; docs/STATISTICS.md has all of it.
static SIMULATED: [Simulated; 30] = [
    ("full", 3, 0.5, [95.7, 95.8]),
    ("full", 3, 0.9, [93.3, 94.3]),
    ("full", 3, 0.98, [98.2, 99.1]),
    ("full", 5, 0.5, [96.1, 97.9]),
    ("full", 5, 0.9, [96.1, 98.1]),
    ("full", 5, 0.98, [94.8, 96.6]),
    ("full", 10, 0.5, [96.3, 97.2]),
    ("full", 10, 0.8, [96.6, 97.4]),
    ("full", 10, 0.9, [97.0, 97.5]),
    ("full", 10, 0.92, [96.7, 97.4]),
    ("full", 10, 0.95, [97.1, 97.6]),
    ("full", 10, 0.98, [97.2, 97.5]),
    ("full", 20, 0.5, [95.9, 96.3]),
    ("full", 20, 0.9, [96.1, 96.8]),
    ("full", 20, 0.98, [96.5, 97.2]),
    ("full", 500, 0.5, [94.7, 95.0]),
    ("full", 500, 0.9, [95.2, 95.6]),
    ("full", 500, 0.98, [95.1, 95.7]),
    ("fair", 10, 0.5, [95.6, 96.8]),
    ("fair", 10, 0.9, [95.7, 97.2]),
    ("fair", 10, 0.98, [99.9, 99.9]),
    ("fair", 10, 0.995, [100.0, 100.0]),
    ("quick", 10, 0.5, [96.1, 96.3]),
    ("quick", 10, 0.9, [99.0, 99.1]),
    ("quick", 10, 0.98, [100.0, 100.0]),
    ("quick", 10, 0.995, [100.0, 100.0]),
    ("fair-2", 10, 0.5, [95.4, 97.1]),
    ("fair-2", 10, 0.9, [95.8, 97.5]),
    ("fair-2", 10, 0.98, [99.4, 99.9]),
    ("fair-2", 10, 0.995, [99.9, 100.0]),
];

/// Where it is shown that intervals hold what they say, and for a run with few banks or a score at an edge what is reached.
pub(super) fn how_often(summary: &Summary) -> String {
    let reached = reached(summary).map(|reached| format!("{reached} ")).unwrap_or_default();
    format!("{reached}{}", words::HOW_OFTEN)
}

fn reached(summary: &Summary) -> Option<String> {
    let (headline, sample) = (&summary.headline, &summary.dataset.sample);
    let score = headline.value.filter(|_| headline.ci95.is_some())?;
    // as far from the nearer edge
    let score = score.max(1.0 - score);
    if (headline.clusters >= ENOUGH_BANKS && score <= AT_THE_EDGE) || headline.n <= headline.clusters {
        return None;
    }
    let (of, banks, simulated, [least, most]) = nearest(&sample.preset, headline.clusters, score)?;
    let held = if least == most { format!("{least:.1}") } else { format!("{least:.1} to {most:.1}") };
    let questions = if *of == "full" { "all questions asked".to_owned() } else { format!("the sample {of}") };
    Some(format!(
        "The first interval held in {held} % of simulated runs with {banks} banks, {questions}, at a score of {:.1} %, the nearest \
         that was simulated.",
        simulated * 100.0
    ))
}

/// The row with the most banks that are no more than these, and of those the one with the nearest score, the more extreme of two.
fn nearest(preset: &str, banks: u64, score: f64) -> Option<&'static Simulated> {
    let sampled = banks >= BANKS_OF_SAMPLES && SIMULATED.iter().any(|(of, ..)| *of == preset);
    let of = if sampled { preset } else { "full" };
    let rows = || SIMULATED.iter().filter(|(sample, at, ..)| *sample == of && *at <= banks);
    let most = rows().map(|(_, at, ..)| *at).max()?;
    let off = |row: &Simulated| (row.2 - score).abs();
    rows().filter(|(_, at, ..)| *at == most).min_by(|a, b| off(a).total_cmp(&off(b)).then(b.2.total_cmp(&a.2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    /// Least and most of the first numbers of some cells.
    fn held(cells: &[&str]) -> [f64; 2] {
        let number = |cell: &&str| cell.split(' ').next().and_then(|number| number.parse::<f64>().ok());
        let numbers: Vec<f64> = cells.iter().filter_map(number).collect();
        [numbers.iter().copied().fold(100.0, f64::min), numbers.iter().copied().fold(0.0, f64::max)]
    }

    #[test]
    fn what_was_simulated_is_the_table_of_the_docs() {
        let docs = include_str!("../../../../docs/STATISTICS.md");
        let part = docs.split("## How often the intervals hold").nth(1).and_then(|rest| rest.split("\n## ").next());
        let mut table = Vec::new();
        for line in part.expect("the docs have the part").lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            match cells[..] {
                ["full", banks, "beta", score, ..] => table.push((
                    "full",
                    banks.parse::<u64>().expect("a number of banks"),
                    score.parse::<f64>().expect("a score"),
                    held(&cells[4..]),
                )),
                [of @ ("fair" | "quick" | "fair-2"), score, ..] => {
                    // mirrored scores, and those of two kinds of categories, are left out
                    let score = score.parse::<f64>().ok().filter(|score| *score >= 0.5);
                    table.extend(score.map(|score| (of, BANKS_OF_SAMPLES, score, held(&cells[2..]))));
                }
                _ => {}
            }
        }
        let order = |a: &Simulated, b: &Simulated| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2));
        let mut ours = SIMULATED.to_vec();
        ours.sort_by(order);
        table.sort_by(order);
        assert_eq!(ours, table);
    }

    #[test]
    fn few_banks_and_scores_at_an_edge_are_told_what_is_reached() {
        let mut summary = golden::report();
        assert_eq!(how_often(&summary), words::HOW_OFTEN, "ten banks at 62 %");
        let mut told = |preset: &str, banks: u64, score: f64| {
            summary.dataset.sample.preset = preset.to_owned();
            (summary.headline.clusters, summary.headline.value) = (banks, Some(score));
            how_often(&summary)
        };
        for (preset, banks, score, words) in [
            ("full", 3, 0.88, "held in 93.3 to 94.3 % of simulated runs with 3 banks"),
            ("custom", 7, 0.1, "held in 96.1 to 98.1 % of simulated runs with 5 banks"),
            ("fair", 10, 0.97, "held in 99.9 % of simulated runs with 10 banks, the sample fair, at a score of 98.0 %"),
            ("full", 272, 0.96, "with 20 banks, all questions asked, at a score of 98.0 %"),
        ] {
            assert!(told(preset, banks, score).contains(words), "{}", told(preset, banks, score));
        }
        summary.headline.ci95 = None;
        assert_eq!(how_often(&summary), words::HOW_OFTEN);
    }
}
