//! The history of scores in an archive. Runs stand on one line only when they were asked and graded alike.

use serde::Serialize;

use super::manifest::IndexEntry;
use crate::svg::{HistoryPoint, history};

/// Runs of one dataset over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trajectory {
    /// Lines, in the order of their first run.
    pub lines: Vec<Line>,
}

/// Runs that may be compared: same conditions, same memory system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name of the dataset.
    pub dataset: String,
    /// Memory system.
    pub system: String,
    /// The metric that the scores are of.
    pub metric: String,
    /// Hash of everything else that can change a score.
    pub conditions: String,
    /// Its runs, oldest first.
    pub points: Vec<IndexEntry>,
}

/// Which runs are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only this dataset.
    pub dataset: Option<String>,
    /// Only this memory system.
    pub system: Option<String>,
    /// Only this preset.
    pub preset: Option<String>,
}

impl Trajectory {
    /// The history through the wanted entries, oldest first; runs without a score are left out.
    #[must_use]
    pub fn through(entries: Vec<IndexEntry>, wanted: &Wanted) -> Self {
        let fits = |want: &Option<String>, is: &str| want.as_deref().is_none_or(|want| want == is);
        let mut lines: Vec<Line> = Vec::new();
        for entry in entries {
            if entry.value.is_none()
                || !fits(&wanted.dataset, &entry.dataset)
                || !fits(&wanted.system, &entry.system)
                || !fits(&wanted.preset, &entry.preset)
            {
                continue;
            }
            let same = |line: &&mut Line| {
                line.conditions == entry.conditions && line.system == entry.system && line.metric == entry.metric
            };
            match lines.iter_mut().find(same) {
                Some(line) => line.points.push(entry),
                None => lines.push(Line {
                    dataset: entry.dataset.clone(),
                    system: entry.system.clone(),
                    metric: entry.metric.clone(),
                    conditions: entry.conditions.clone(),
                    points: vec![entry],
                }),
            }
        }
        Self { lines }
    }

    /// The trajectory as a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut points: Vec<(&IndexEntry, usize)> = self
            .lines
            .iter()
            .enumerate()
            .flat_map(|(group, line)| line.points.iter().map(move |point| (point, group)))
            .collect();
        points.sort_by(|(a, _), (b, _)| (&a.finished_at, &a.run_id).cmp(&(&b.finished_at, &b.run_id)));
        let points: Vec<HistoryPoint> = points
            .into_iter()
            .map(|(entry, group)| HistoryPoint {
                label: entry.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or("").to_owned(),
                value: entry.value.unwrap_or(0.0),
                interval: entry.low.zip(entry.high),
                group,
                valid: entry.verdict == "VALID",
            })
            .collect();
        history("scores with clustered 95 % intervals; only comparable runs are joined", &points)
    }
}
