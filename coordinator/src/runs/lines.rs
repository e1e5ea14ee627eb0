//! Lines of a list: a run, or all runs of a group of repeats or of a matrix as one.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use bench_proto::{ids::RunId, repeats::RepeatsMean, summary::Verdict};
use bench_report::html::{IndexedLine, IndexedRun};
use bench_store::{RunGroup, RunRow, RunState, Store};

use super::listed::{Listed, link, page_of};
use crate::{
    app::App,
    exit::CliError,
    results::repeats::mean_of,
    standing::group::{group_of_equals, name_of_group},
};

/// A run, or some of one group, as lists show them: one below the other.
pub(crate) struct Line<'a> {
    /// Its runs, at least one, the newest first.
    pub(crate) runs: Vec<&'a Listed>,
    /// The group that they are all of; none for a run that stands for itself.
    pub(crate) group: Option<&'a RunGroup>,
    /// Runs of the group, of which some may not be looked for.
    of: usize,
}

/// How many runs each group has, by its number.
#[derive(Default)]
pub(crate) struct GroupSizes(HashMap<i64, usize>);

impl GroupSizes {
    /// Counted over all runs that a store has.
    pub(crate) fn of_runs(runs: &[RunRow]) -> Self {
        let mut sizes = HashMap::new();
        for group in runs.iter().filter_map(group_of_equals) {
            *sizes.entry(group.group_no).or_default() += 1;
        }
        Self(sizes)
    }
}

impl<'a> Line<'a> {
    /// A line for each run.
    pub(crate) fn of_runs(listed: &'a [Listed]) -> Vec<Self> {
        listed.iter().map(|run| Self { runs: vec![run], group: None, of: 1 }).collect()
    }

    /// A line for each run and for each group, which stands where its newest run does.
    pub(crate) fn of_groups(listed: &'a [Listed], sizes: &GroupSizes) -> Vec<Self> {
        let (mut lines, mut place_of): (Vec<Self>, HashMap<i64, usize>) = (Vec::new(), HashMap::new());
        for each in listed {
            let group = group_of_equals(&each.run);
            let place = group.and_then(|group| place_of.get(&group.group_no)).copied();
            match place.and_then(|place| lines.get_mut(place)) {
                Some(line) => line.runs.push(each),
                None => {
                    if let Some(group) = group {
                        place_of.insert(group.group_no, lines.len());
                    }
                    lines.push(Self { runs: vec![each], group, of: 1 });
                }
            }
        }
        for line in &mut lines {
            let all = line.group.and_then(|group| sizes.0.get(&group.group_no)).copied();
            line.of = all.unwrap_or(0).max(line.runs.len());
        }
        lines
    }

    /// The id of the run or of the group.
    pub(crate) fn id(&self) -> &'a str {
        match self.group {
            Some(group) => &group.id,
            None => self.runs.first().map_or("", |first| first.run.run_id.0.as_str()),
        }
    }

    /// The name of the run or of the group.
    pub(crate) fn name(&self) -> Option<&'a str> {
        let run = &self.runs.first()?.run;
        match self.group {
            Some(_) => name_of_group(run),
            None => run.name.as_deref(),
        }
    }

    /// Whether its runs are cells, whose scores say different things.
    pub(crate) fn is_matrix(&self) -> bool {
        self.group.is_some() && self.runs.iter().any(|each| each.run.cell().is_some())
    }

    /// How many runs stand behind it: `3 repeats`, `2 of 6 runs`; none for a run that stands for itself.
    pub(crate) fn count(&self) -> Option<String> {
        self.group?;
        let n = self.runs.len();
        let part = if n < self.of { format!("{n} of ") } else { String::new() };
        let what = match (self.is_matrix(), self.of) {
            (true, 1) => "run",
            (true, _) => "runs",
            (false, 1) => "repeat",
            (false, _) => "repeats",
        };
        Some(format!("{part}{} {what}", self.of))
    }

    /// How it stands, in a word; of a group what is open goes first.
    pub(crate) fn status(&self) -> String {
        let open = self.runs.iter().map(|each| each.status).find(|status| *status != FINISHED);
        match (open, self.group) {
            (None, _) => FINISHED.to_owned(),
            (Some(open), None) => open.to_owned(),
            (Some(open), Some(_)) => {
                let ended = self.runs.iter().filter(|each| each.status == FINISHED).count();
                format!("{open}, {ended} finished")
            }
        }
    }

    /// Whether it may be used: one run that may not is what must be seen.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let verdicts = self.runs.iter().filter_map(|each| each.score.verdict);
        verdicts.max_by_key(|verdict| *verdict != Verdict::Valid)
    }

    /// The mean of the scores of repeats, and of how many: of those that have ended, or of what all have so far where none has.
    pub(crate) fn mean(&self) -> Option<(f64, usize)> {
        if self.is_matrix() {
            return None;
        }
        let of = |ended: bool| -> Vec<f64> {
            let runs = self.runs.iter().filter(|each| !ended || each.run.state == RunState::Finished);
            runs.filter_map(|each| each.score.value).collect()
        };
        let scores = Some(of(true)).filter(|scores| !scores.is_empty()).unwrap_or_else(|| of(false));
        let n = scores.len();
        (n > 0).then(|| (scores.iter().sum::<f64>() / n as f64, n))
    }

    /// The mean of repeats with its interval, as the report of the group has it. None for anything else, while runs of it are not
    /// among these, and where scores are counted by rules of others, which have no interval of ours.
    ///
    /// # Errors
    /// What the store meets.
    async fn mean_with_interval(&self, app: &App, store: &dyn Store) -> Result<Option<RepeatsMean>, CliError> {
        let Some(group) = self.group.filter(|_| !self.is_matrix() && self.runs.len() == self.of) else {
            return Ok(None);
        };
        if self.runs.iter().any(|each| each.score.counted_as.is_some()) {
            return Ok(None);
        }
        let runs = self.runs.iter().map(|each| (&each.run, each.score.result_digest.as_deref())).collect();
        mean_of(app, store, group, runs).await.map(Some)
    }

    /// As the page of all runs shows it, which lies in `folder`.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn indexed(&self, app: &App, store: &dyn Store, folder: &Path) -> Result<IndexedLine, CliError> {
        let runs: Vec<IndexedRun> = self.runs.iter().map(|each| each.indexed(app, folder)).collect();
        let (Some(newest), Some(_)) = (runs.first(), self.group) else {
            return Ok(runs.into_iter().next().map(IndexedLine::of_run).unwrap_or_default());
        };
        let (score, ci95) = match self.mean_with_interval(app, store).await? {
            Some(mean) if mean.value.is_some() => (mean.value, mean.ci95),
            _ => (self.mean().map(|(mean, _)| mean), None),
        };
        let metric = self.all_or_count("metrics", |each| each.score.counted());
        let told = IndexedRun {
            id: self.id().to_owned(),
            name: self.name().map(str::to_owned),
            dataset: self.all_or_count("datasets", |each| each.run.spec.dataset.name.clone()),
            preset: self.all_or_count("presets", |each| each.run.spec.sample.preset.clone()),
            system: self.all_or_count("systems", |each| each.run.spec.system.name.clone()),
            answerer: self.all_or_count("answerers", |each| each.run.spec.who_answers()),
            status: self.status(),
            verdict: self.verdict(),
            score,
            metric: self.mean().map_or_else(String::new, |(_, n)| format!("{metric}, mean of {n}")),
            ci95,
            judges: Some(self.all_or_count("judges", |each| each.judges().join(", ")))
                .filter(|judges| !judges.is_empty())
                .into_iter()
                .collect(),
            usd: self.usd(),
            usd_incomplete: self.usd_incomplete(),
            created: newest.created.clone(),
            source: self.all_or_count("sources", |each| each.source.clone().unwrap_or_default()),
            tags: self.of_all(|each| each.run.tags.clone()),
            labels: self.of_all(Listed::labels),
            page: page_of(app, &RunId(self.id().to_owned())).map(|page| link(folder, &page)),
        };
        Ok(IndexedLine { told, count: self.count(), runs })
    }

    /// What its runs have cost, in dollars.
    pub(crate) fn usd(&self) -> f64 {
        self.runs.iter().map(|each| each.usd()).sum()
    }

    /// Whether a memory system of its runs may have spent more, of which nobody knows.
    pub(crate) fn usd_incomplete(&self) -> bool {
        self.runs.iter().any(|each| each.usd_incomplete())
    }

    /// What any of its runs has, each once.
    pub(crate) fn of_all(&self, of: impl Fn(&Listed) -> Vec<String>) -> Vec<String> {
        let all: BTreeSet<String> = self.runs.iter().flat_map(|each| of(each)).collect();
        all.into_iter().collect()
    }

    /// What its runs have in common, or how many different ones there are: `3 systems`.
    pub(crate) fn all_or_count(&self, what: &str, of: impl Fn(&Listed) -> String) -> String {
        let different: BTreeSet<String> = self.runs.iter().map(|each| of(each)).collect();
        match different.len() {
            0 | 1 => different.into_iter().next().unwrap_or_default(),
            n => format!("{n} {what}"),
        }
    }
}

/// The word for a run that has ended.
const FINISHED: &str = "finished";
