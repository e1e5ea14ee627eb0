//! The history of scores in an archive. Runs of a system stand on one line when they were asked and graded alike; what
//! is the system's own, as its version, its settings and its number of hits, may have changed along it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::manifest::IndexEntry;
use crate::svg::{HistoryPoint, history};

/// Runs of one dataset over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trajectory {
    /// Lines, in the order of their first run.
    pub lines: Vec<Line>,
}

/// Runs of one memory system under the same conditions: only what is the system's own differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name of the dataset.
    pub dataset: String,
    /// Memory system.
    pub system: String,
    /// The metric that the scores are of.
    pub metric: String,
    /// By whose counting they are, where that is not ours.
    pub counted_as: Option<String>,
    /// Hash of everything that can change a score but the memory system with its version, settings and number of hits.
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
            if entry.figure().0.is_none()
                || !fits(&wanted.dataset, &entry.dataset)
                || !fits(&wanted.system, &entry.system)
                || !fits(&wanted.preset, &entry.preset)
            {
                continue;
            }
            let same = |line: &&mut Line| {
                (&line.conditions, &line.system, &line.metric, &line.counted_as)
                    == (&entry.conditions, &entry.system, &entry.metric, &entry.counted_as)
            };
            match lines.iter_mut().find(same) {
                Some(line) => line.points.push(entry),
                None => lines.push(Line {
                    dataset: entry.dataset.clone(),
                    system: entry.system.clone(),
                    metric: entry.metric.clone(),
                    counted_as: entry.counted_as.clone(),
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
                value: entry.figure().0.unwrap_or(0.0),
                interval: entry.figure().1,
                group,
                valid: entry.verdict == "VALID",
            })
            .collect();
        let names: BTreeSet<&str> = self.lines.iter().filter_map(|line| line.counted_as.as_deref()).collect();
        let counted = match names.is_empty() {
            true => String::new(),
            false => format!("; without an interval: counted as {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let title =
            "scores with clustered 95 % intervals; runs of a system that were asked and graded alike are joined";
        history(&format!("{title}{counted}"), &points)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_goes_on_through_what_is_the_systems_own() {
        let entry = |id: &str, version: &str, fingerprint: &str, conditions: &str| -> IndexEntry {
            let entry = json!({
                "run_id": id, "name": null, "folder": format!("runs/2026-11-20/d/v1/{id}"), "finished_at": null,
                "dataset": "d", "preset": "full", "system": "s", "system_version": version, "answerer": "a",
                "judge": null, "metric": "exact", "value": 0.5, "low": null, "high": null, "n": 9, "verdict": "VALID",
                "fingerprint": fingerprint, "conditions": conditions, "result_digest": "r", "code_version": "1",
            });
            serde_json::from_value(entry).expect("is an entry")
        };
        // another version, another number of hits, another judge
        let entries = vec![
            entry("a", "1", "f", "c"),
            entry("b", "2", "g", "c"),
            entry("c", "2", "h", "c"),
            entry("e", "2", "i", "d"),
        ];
        let trajectory = Trajectory::through(entries, &Wanted::default());
        let points: Vec<usize> = trajectory.lines.iter().map(|line| line.points.len()).collect();
        assert_eq!(points, [3, 1]);
        assert!(trajectory.svg().contains("runs of a system that were asked and graded alike are joined"));
        assert!(!trajectory.svg().contains("counted as"));
        // what an index of an earlier release has not said is on a line of its own, as its figure is another one
        let counted = |id: &str| IndexEntry {
            counted_as: Some("mem0-2025".to_owned()),
            counted_value: Some(0.75),
            ..entry(id, "2", "g", "c")
        };
        let trajectory = Trajectory::through(vec![entry("a", "1", "f", "c"), counted("b")], &Wanted::default());
        let told: Vec<Option<&str>> = trajectory.lines.iter().map(|line| line.counted_as.as_deref()).collect();
        assert_eq!(told, [None, Some("mem0-2025")]);
        let picture = trajectory.svg();
        assert!(
            picture.contains("without an interval: counted as mem0-2025") && picture.contains("75.00"),
            "{picture}"
        );
    }
}
