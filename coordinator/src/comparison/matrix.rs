//! The report of a matrix: its cells, all pairs of them, and what changing one axis does.
//!
//! A cell with repeats is the mean over them, question by question. A main effect is the paired difference of two means of such
//! means: over the cells of a dataset and metric that have one value of the axis and those that have the other and differ in nothing
//! else. Each cell counts alike, however many of its runs have ended.

use std::collections::BTreeMap;

use bench_aggregate::{
    compare::{CompareOptions, RunFacts, compare, correct_over_pairs, in_view_of_all},
    pareto::front,
};
use bench_proto::{
    comparison::Comparison,
    matrix::{CellProbe, MATRIX_SCHEMA_VERSION, MainEffect, MatrixCell, MatrixPair, MatrixReport, SEED_AXIS},
    money::PicoUsd,
    spec::RunSpec,
    summary::{LatencyProbe, MemoryCost, ProbeConditions, Summary, Verdict},
};
use bench_store::{RunRow, RunState, Store};
use serde_json::Value;

use super::{figures_of_both, inputs::LoadedRun, pair, seeds::seeds};
use crate::{
    app::App,
    exit::CliError,
    results::repeats::{counted_elsewhere, figures_of},
    standing::group::{CellRows, RunsOfGroup},
};

/// The report of a matrix at any point: figures rest on the runs that have ended.
///
/// # Errors
/// What the store meets.
pub(crate) async fn matrix_report(app: &App, store: &dyn Store, group: &RunsOfGroup) -> Result<MatrixReport, CliError> {
    let cells = CellRows::of_group(store, group).await?;
    let options = CompareOptions {
        seed: app.settings().stats_seed,
        // what differs is what the axes say
        under_test: vec!["all".to_owned()],
        ..CompareOptions::default()
    };
    let mut told = Vec::with_capacity(cells.len());
    for cell in &cells {
        told.push(tell(app, store, cell, &cells).await?);
    }
    let invalid: Vec<String> = told.iter_mut().flat_map(|told| std::mem::take(&mut told.invalid)).collect();
    set_fronts(&cells, &mut told);
    let money = match group.runs.first() {
        Some(run) => store.group(run.run_no).await?,
        None => None,
    };
    let of_cells: Vec<&MatrixCell> = told.iter().map(|told| &told.cell).collect();
    let (seeds, seed_pairs) = seeds(&cells, &of_cells);
    Ok(MatrixReport {
        schema_version: MATRIX_SCHEMA_VERSION,
        id: group.id.to_string(),
        name: group.name(),
        cap_usd: money.as_ref().and_then(|group| group.cap).map(PicoUsd::usd),
        booked_usd: money.map_or(0.0, |group| group.spent.usd()),
        axes: axes(&cells),
        pairs: pairs(app, store, &cells, &options).await?,
        effects: effects(app, store, &cells, &options).await?,
        seeds,
        seed_pairs,
        notes: invalid.into_iter().chain(unpriced(&told)).chain(notes(&cells)).collect(),
        cells: told.into_iter().map(|told| told.cell).collect(),
    })
}

fn axes(cells: &[CellRows]) -> BTreeMap<String, Vec<String>> {
    let mut axes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (axis, value) in cells.iter().flat_map(|cell| &cell.values) {
        let values = axes.entry(axis.clone()).or_default();
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    axes
}

/// A cell's figures, and what the latencies of its runs belong to.
struct Told {
    cell: MatrixCell,
    conditions: Vec<ProbeConditions>,
    /// Of each of its runs that may not be used, why.
    invalid: Vec<String>,
    /// Nobody knows all that its memory system has spent.
    is_unpriced: bool,
}

/// A cell's figures, but for what needs the other cells' too.
async fn tell(app: &App, store: &dyn Store, cell: &CellRows, all: &[CellRows]) -> Result<Told, CliError> {
    let ended = cell.ended();
    let spec = cell.runs.first().map(|run| &run.spec);
    let metric = spec.map(RunSpec::headline_metric).unwrap_or_default();
    let mut told = MatrixCell {
        number: cell.number,
        values: cell.values.clone(),
        runs: cell.runs.iter().map(|run| run.run_id.to_string()).collect(),
        ended: ended.len() as u32,
        better: spec.map(|spec| spec.metric(&metric).better).unwrap_or_default(),
        metric,
        value: None,
        ci95: None,
        ci95_note: Some("no run of it has ended".to_owned()),
        sd: None,
        questions: spec.map_or(0, |spec| spec.sample.n),
        verdict: None,
        usd: cell.runs.iter().map(|run| run.counters.usd_paid()).sum(),
        usd_per_run: None,
        usd_list_per_run: None,
        on_front_of_usd: None,
        probe: None,
        probe_note: Some("no run of it has ended".to_owned()),
        on_front_of_probe: None,
        memory: None,
        on_front_of_filling: None,
        on_front_of_asking: None,
        alike_with: None,
        differs_in: unlike_all(cell, all),
    };
    if !ended.is_empty() {
        let of = figures_of(app, store, &ended).await?;
        let invalid = of.invalid();
        let mean = of.figures.mean;
        (told.value, told.ci95, told.ci95_note, told.sd) = (mean.value, mean.ci95, mean.ci95_note, mean.sd);
        told.verdict = Some(if invalid.is_empty() { Verdict::Valid } else { Verdict::Invalid });
        let usd: f64 = ended.iter().map(|run| run.counters.usd_paid()).sum();
        // the least that it may be is no price that others are held against
        let is_unpriced = of.summaries.iter().any(|summary| summary.usage.is_incomplete());
        told.usd_per_run = (!is_unpriced).then_some(usd / ended.len() as f64);
        told.usd_list_per_run = list_price(&of.summaries).filter(|_| !is_unpriced);
        told.memory = memory_of(&of.summaries);
        let probes: Vec<LatencyProbe> = of.summaries.into_iter().filter_map(|summary| summary.latency_probe).collect();
        told.probe = mean_of(&probes);
        told.probe_note = probes.iter().find_map(|probe| probe.failure.clone());
        if told.probe.is_none() && told.probe_note.is_none() {
            told.probe_note = Some("its runs have no latency probe".to_owned());
        }
        let conditions = probes.into_iter().map(|probe| probe.conditions).collect();
        return Ok(Told { cell: told, conditions, invalid, is_unpriced });
    }
    Ok(Told { cell: told, conditions: Vec::new(), invalid: Vec::new(), is_unpriced: false })
}

/// Dollars a run as if nothing had come from the call store, with what the memory system spent itself: a cell that was given the
/// answers of another is not cheaper than that.
fn list_price(summaries: &[Summary]) -> Option<f64> {
    let price = |summary: &Summary| summary.usage.usd_list_with(summary.metered.as_ref());
    (!summaries.is_empty()).then(|| summaries.iter().map(price).sum::<f64>() / summaries.len() as f64)
}

/// What the memory system spent, as the mean over a cell's runs; none where nobody knows it of one of them.
fn memory_of(summaries: &[Summary]) -> Option<MemoryCost> {
    let costs: Vec<MemoryCost> = summaries.iter().map(Summary::memory_cost).collect::<Option<_>>()?;
    let mean = |of: fn(&MemoryCost) -> Option<f64>| {
        let all: Option<Vec<f64>> = costs.iter().map(of).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    Some(MemoryCost {
        usd: mean(|cost| Some(cost.usd))?,
        usd_per_1000_turns: mean(|cost| cost.usd_per_1000_turns),
        usd_per_question: mean(|cost| cost.usd_per_question),
    })
}

/// The probes of a cell's runs as one; none where no recall succeeded.
fn mean_of(probes: &[LatencyProbe]) -> Option<CellProbe> {
    let mean = |of: fn(&LatencyProbe) -> Option<f64>| {
        let all: Vec<f64> = probes.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let n = probes.iter().map(|probe| probe.n).fold(0, u64::saturating_add);
    Some(CellProbe { n, p50_ms: mean(|probe| probe.p50_ms)?, p95_ms: mean(|probe| probe.p95_ms)? })
}

/// Marks the VALID cells that no other such one whose score is the same figure beats in quality and one of the costs.
fn set_fronts(cells: &[CellRows], told: &mut [Told]) {
    let mut open: Vec<usize> = (0..told.len()).collect();
    while let Some(first) = open.first().and_then(|at| cells.get(*at)) {
        let is_like = |at: &usize| cells.get(*at).is_some_and(|cell| cell.is_measured_like(first));
        let (here, others) = open.into_iter().partition::<Vec<usize>, _>(is_like);
        note_other_conditions(&here, told);
        set_front(&here, told, MatrixCell::usd_held, |cell, on| cell.on_front_of_usd = Some(on));
        let latency =
            |cell: &MatrixCell| cell.probe.as_ref().filter(|_| cell.probe_note.is_none()).map(|probe| probe.p50_ms);
        set_front(&here, told, latency, |cell, on| cell.on_front_of_probe = Some(on));
        set_memory_fronts(&here, told);
        for at in &here {
            if let Some(told) = told.get_mut(*at) {
                told.cell.alike_with = Some(first.number);
            }
        }
        open = others;
    }
}

/// The fronts of what memory systems spend. Where none of them spends anything there is nothing to weigh.
fn set_memory_fronts(here: &[usize], told: &mut [Told]) {
    if !here.iter().filter_map(|at| told.get(*at)?.cell.memory.as_ref()).any(|memory| memory.usd > 0.0) {
        return;
    }
    let filling = |cell: &MatrixCell| cell.memory.as_ref()?.usd_per_1000_turns;
    set_front(here, told, filling, |cell, on| cell.on_front_of_filling = Some(on));
    let asking = |cell: &MatrixCell| cell.memory.as_ref()?.usd_per_question;
    set_front(here, told, asking, |cell, on| cell.on_front_of_asking = Some(on));
}

/// Marks those of some cells that have a score and a cost, and may be used: one that may not is no reason to leave another.
fn set_front(
    here: &[usize],
    told: &mut [Told],
    cost: impl Fn(&MatrixCell) -> Option<f64>,
    mark: impl Fn(&mut MatrixCell, bool),
) {
    let point = |at: usize| {
        let cell = told.get(at).map(|told| &told.cell).filter(|cell| cell.is_valid())?;
        Some((cell.better.gain(cell.value?), cost(cell)?))
    };
    let (places, points): (Vec<usize>, Vec<(f64, f64)>) = here.iter().filter_map(|at| Some((*at, point(*at)?))).unzip();
    for (at, on) in places.into_iter().zip(front(&points)) {
        if let Some(told) = told.get_mut(at) {
            mark(&mut told.cell, on);
        }
    }
}

/// Says of which cells the latency was measured under other conditions than that of the first VALID cell that has one (P43). How many
/// hits are asked for is a setting of a cell, and no condition here.
fn note_other_conditions(here: &[usize], told: &mut [Told]) {
    let mut valid = here.iter().filter_map(|at| told.get(*at)).filter(|told| told.cell.is_valid());
    let first = valid.find_map(|told| Some((told.cell.number, told.conditions.first()?)));
    let Some((number, first)) = first.map(|(number, first)| (number, first.clone())) else { return };
    for at in here {
        let Some(Told { cell, conditions, .. }) = told.get_mut(*at) else { continue };
        let alike = |other: &ProbeConditions| ProbeConditions { top_k: first.top_k, ..other.clone() };
        if let Some(differs) = conditions.iter().find_map(|other| first.differs(&alike(other)))
            && cell.probe_note.is_none()
        {
            cell.probe_note = Some(format!("not held against others: in cell {number} and here {differs}"));
        }
    }
}

/// The axes in which a cell differs from its nearest neighbour, where these are more than one.
fn unlike_all(cell: &CellRows, all: &[CellRows]) -> Vec<String> {
    let others = all.iter().filter(|other| other.number != cell.number).map(|other| cell.differs_in(other));
    others.min_by_key(Vec::len).filter(|differs| differs.len() > 1).unwrap_or_default()
}

/// Some cells as one run, question by question: their mean, each being the mean of its runs that have ended.
async fn loaded(app: &App, store: &dyn Store, cells: &[&CellRows]) -> Result<Option<LoadedRun>, CliError> {
    let rows: Vec<Vec<RunRow>> = cells.iter().map(|cell| cell.ended()).collect();
    let numbers: Vec<String> = cells.iter().map(|cell| cell.number.to_string()).collect();
    match rows.iter().all(Vec::is_empty) {
        true => Ok(None),
        false => LoadedRun::of_cells(app, store, rows, (format!("cell {}", numbers.join("+")), None)).await.map(Some),
    }
}

/// All pairs of cells of one dataset, with Holm's correction.
async fn pairs(
    app: &App,
    store: &dyn Store,
    cells: &[CellRows],
    options: &CompareOptions,
) -> Result<Vec<MatrixPair>, CliError> {
    let mut runs = Vec::with_capacity(cells.len());
    for cell in cells {
        runs.push(loaded(app, store, &[cell]).await?);
    }
    // the questions of a cell are read once for all of its pairs
    let mut known: BTreeMap<(usize, String, u32), RunFacts> = BTreeMap::new();
    let (mut found, mut which) = (Vec::new(), Vec::new());
    for (i, a) in cells.iter().enumerate() {
        for (j, b) in cells.iter().enumerate().skip(i + 1) {
            if let (Some(first), Some(second)) = (&runs[i], &runs[j])
                && a.dataset() == b.dataset()
            {
                let (metric, top_k) = figures_of_both(first, second, options);
                let (of_a, of_b) = ((i, metric.clone(), top_k), (j, metric.clone(), top_k));
                for (run, of) in [(first, &of_a), (second, &of_b)] {
                    if !known.contains_key(of) {
                        known.insert(of.clone(), run.facts(store, &metric, top_k).await?);
                    }
                }
                found.push(compare(&first.side(&known[&of_a]), &second.side(&known[&of_b]), options));
                which.push((a, b));
            }
        }
    }
    correct_over_pairs(&mut found);
    let told = |((a, b), found): (&(&CellRows, &CellRows), Comparison)| MatrixPair {
        a: a.number,
        b: b.number,
        differ_in: a.differs_in(b),
        difference: found.paired.difference,
        ci95: found.paired.ci95,
        note: found.paired.ci95_note,
        p_value: found.paired.p_value,
        p_holm: found.paired.p_holm,
        verdict: in_view_of_all(found.verdict, found.paired.p_holm),
        comparable: found.comparable,
        reasons: found.reasons,
    };
    Ok(which.iter().zip(found).map(told).collect())
}

/// Axis → value.
type Values = BTreeMap<String, String>;

/// What the cells of one effect are measured on: other data has other weights, and perhaps other questions of the same ids.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    dataset: String,
    /// None of data that a seed of the matrix makes: the ids of such data hold their seed.
    sha256: Option<String>,
    /// Settings of the data, but for such a seed.
    settings: BTreeMap<String, Value>,
    metric: String,
}

impl Measured {
    /// That of a cell with these values and settings.
    fn from_cell(values: &Values, spec: &RunSpec) -> Self {
        let mut settings = spec.dataset.settings.clone();
        let of_seed = values.contains_key(SEED_AXIS) && settings.remove("seed").is_some();
        Self {
            dataset: spec.dataset.name.clone(),
            sha256: (!of_seed).then(|| spec.dataset.sha256.clone()),
            settings,
            metric: spec.headline_metric(),
        }
    }

    /// What tells it from others: its dataset, or its metric where some of them are of that dataset too.
    fn told_from(&self, others: &[&Self]) -> Values {
        let same_data = others.iter().any(|other| other.dataset == self.dataset);
        let same_metric = others.iter().any(|other| other.metric == self.metric);
        let by_data = !others.is_empty() && (!same_data || same_metric);
        let by_metric = same_data && others.iter().any(|other| other.metric != self.metric);
        let dataset = by_data.then(|| ("dataset".to_owned(), self.dataset.clone()));
        dataset.into_iter().chain(by_metric.then(|| ("metric".to_owned(), self.metric.clone()))).collect()
    }
}

/// What is measured alike, in the order of its first members; each part with those of its common values that tell it from others, and
/// where they do not with what does.
fn apart<T>(all: Vec<(Measured, Values, T)>) -> Vec<(Values, Vec<T>)> {
    let mut parts: Vec<(Measured, Values, Vec<T>)> = Vec::new();
    for (on, values, member) in all {
        match parts.iter_mut().find(|(part, ..)| *part == on) {
            Some((_, common, members)) => {
                common.retain(|axis, value| values.get(axis) == Some(&*value));
                members.push(member);
            }
            None => parts.push((on, values, vec![member])),
        }
    }
    let mut everywhere = parts.first().map(|(_, common, _)| common.clone()).unwrap_or_default();
    everywhere.retain(|axis, value| parts.iter().all(|(_, common, _)| common.get(axis) == Some(&*value)));
    parts.iter_mut().for_each(|(_, common, _)| common.retain(|axis, _| !everywhere.contains_key(axis)));
    let within = |(at, (on, common, _)): (usize, &(Measured, Values, Vec<T>))| -> Values {
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, part)| part);
        let alike = others.filter(|(_, other, _)| common.is_empty() || other == common);
        let alike: Vec<&Measured> = alike.map(|(on, ..)| on).collect();
        common.clone().into_iter().chain(on.told_from(&alike)).collect()
    };
    let within: Vec<Values> = parts.iter().enumerate().map(within).collect();
    within.into_iter().zip(parts).map(|(within, (.., members))| (within, members)).collect()
}

/// A cell with one value of an axis, and the cell with another that differs in nothing else.
type PairOfCells<'c> = (&'c CellRows, &'c CellRows);

/// Those of one dataset and metric together.
fn matched<'c>(cells: &'c [CellRows], axis: &str, [from, to]: [&str; 2]) -> Vec<(Values, Vec<PairOfCells<'c>>)> {
    let has = |cell: &CellRows, value: &str| {
        cell.values.get(axis).is_some_and(|own| own == value) && !cell.ended().is_empty()
    };
    let pair = |a: &'c CellRows| {
        let b = cells.iter().filter(|b| has(b, to)).find(|b| a.differs_in(b) == [axis])?;
        let spec = &a.runs.first()?.spec;
        let mut shared = a.values.clone();
        shared.remove(axis);
        (a.dataset() == b.dataset()).then(|| (Measured::from_cell(&a.values, spec), shared, (a, b)))
    };
    apart(cells.iter().filter(|cell| has(cell, from)).filter_map(pair).collect())
}

/// What each axis does, from its first value to each of its others.
async fn effects(
    app: &App,
    store: &dyn Store,
    cells: &[CellRows],
    options: &CompareOptions,
) -> Result<Vec<MainEffect>, CliError> {
    let mut effects = Vec::new();
    for (axis, values) in axes(cells) {
        let Some((from, others)) = values.split_first() else { continue };
        for to in others {
            for (within, matched) in matched(cells, &axis, [from, to]) {
                let untold = MainEffect {
                    axis: axis.clone(),
                    from: from.clone(),
                    to: to.clone(),
                    within,
                    pairs: matched.len() as u32,
                    difference: None,
                    ci95: None,
                    note: None,
                    p_value: None,
                };
                effects.extend(effect(app, store, untold, &matched, options).await?);
            }
        }
    }
    Ok(effects)
}

/// An effect with its figures; none without runs that have ended.
async fn effect(
    app: &App,
    store: &dyn Store,
    untold: MainEffect,
    matched: &[PairOfCells<'_>],
    options: &CompareOptions,
) -> Result<Option<MainEffect>, CliError> {
    let (first, second): (Vec<&CellRows>, Vec<&CellRows>) = matched.iter().copied().unzip();
    let (Some(a), Some(b)) = (loaded(app, store, &first).await?, loaded(app, store, &second).await?) else {
        return Ok(None);
    };
    let Comparison { paired, reasons, .. } = pair(store, &a, &b, options, false).await?;
    let invalid = [&a, &b].into_iter().any(|side| side.summary.run.verdict == Verdict::Invalid);
    let why = match (invalid, reasons.first()) {
        (true, _) => Some("some of these cells are INVALID".to_owned()),
        (false, why) => why.map(|why| format!("these cells cannot be compared: {why}")),
    };
    Ok(Some(MainEffect {
        difference: paired.difference,
        ci95: paired.ci95,
        note: why.or(paired.ci95_note),
        p_value: paired.p_value,
        ..untold
    }))
}

/// The cells that are on no front by dollars, since nobody knows theirs.
fn unpriced(told: &[Told]) -> Option<String> {
    let cells: Vec<String> =
        told.iter().filter(|told| told.is_unpriced).map(|told| told.cell.number.to_string()).collect();
    let named = if cells.len() == 1 { "cell" } else { "cells" };
    (!cells.is_empty()).then(|| {
        format!(
            "what the memory system of {named} {} spends is unknown: no dollars a run, and no front by them; --meter counts it",
            cells.join(", ")
        )
    })
}

fn notes(cells: &[CellRows]) -> Vec<String> {
    let runs = || cells.iter().flat_map(|cell| &cell.runs);
    let open = runs().filter(|run| run.state != RunState::Finished).count();
    let mut notes = Vec::new();
    if open > 0 {
        notes.push(format!("{open} of {} runs have not ended, and are in no figure", runs().count()));
    }
    notes.extend(counted_elsewhere(runs().map(|run| &run.spec)));
    notes.push(
        "a main effect is the mean over the pairs of cells of one dataset and metric that differ in that axis alone; where axes \
         work together, single pairs say more"
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use bench_proto::metric::Better;

    use super::*;

    /// A cell of so good a score at such a list price, of which so much was paid.
    fn cell(number: u32, verdict: Verdict, (value, list, paid): (f64, f64, f64)) -> Told {
        let golden = include_str!("../../../proto/golden/matrix.v1.json");
        let report: MatrixReport = serde_json::from_str(golden).expect("the golden report is read");
        let cell = report.cells.into_iter().next().expect("a cell");
        let cell = MatrixCell {
            number,
            value: Some(value),
            verdict: Some(verdict),
            usd_per_run: Some(paid),
            usd_list_per_run: Some(list),
            on_front_of_usd: None,
            ..cell
        };
        Told { cell, conditions: Vec::new(), invalid: Vec::new(), is_unpriced: false }
    }

    #[test]
    fn the_front_of_dollars_is_that_of_valid_cells_by_list_price() {
        let marks = |cells: &[(Verdict, (f64, f64, f64))]| {
            let mut told: Vec<Told> =
                (1..).zip(cells).map(|(number, (verdict, figures))| cell(number, *verdict, *figures)).collect();
            let here: Vec<usize> = (0..told.len()).collect();
            set_front(&here, &mut told, MatrixCell::usd_held, |cell, on| cell.on_front_of_usd = Some(on));
            told.into_iter().map(|told| told.cell.on_front_of_usd).collect::<Vec<_>>()
        };
        let (valid, invalid) = (Verdict::Valid, Verdict::Invalid);
        // the second was answered from the calls of another run
        let cached = [(valid, (0.8, 1.0, 1.0)), (valid, (0.8, 2.0, 0.0))];
        assert_eq!(marks(&cached), [Some(true), Some(false)]);
        let spoiled = [(valid, (0.5, 1.0, 1.0)), (invalid, (0.9, 0.1, 0.1)), (valid, (0.6, 2.0, 2.0))];
        assert_eq!(marks(&spoiled), [Some(true), None, Some(true)]);
        assert_eq!(marks(&[(invalid, (0.9, 0.1, 0.1))]), [None]);
    }

    #[test]
    fn a_cell_whose_dollars_nobody_knows_is_on_no_front_by_them_and_is_named() {
        let mut told =
            [cell(1, Verdict::Valid, (0.8, 1.0, 1.0)), cell(2, Verdict::Valid, (0.9, 0.0, 0.0))].map(|told| {
                let is_unpriced = told.cell.number == 2;
                Told { is_unpriced, ..told }
            });
        (told[1].cell.usd_per_run, told[1].cell.usd_list_per_run) = (None, None);
        set_front(&[0, 1], &mut told, MatrixCell::usd_held, |cell, on| cell.on_front_of_usd = Some(on));
        assert_eq!([&told[0], &told[1]].map(|told| told.cell.on_front_of_usd), [Some(true), None]);
        let said = unpriced(&told).expect("is said");
        assert!(said.starts_with("what the memory system of cell 2 spends is unknown"), "{said}");
    }

    #[test]
    fn a_memory_that_spends_nothing_is_on_the_fronts_of_those_that_do() {
        let marks = |usd: [f64; 2]| {
            let mut told: Vec<Told> = (1..)
                .zip(usd)
                .map(|(number, usd)| {
                    let mut told = cell(number, Verdict::Valid, (0.8, 1.0, 1.0));
                    let each = Some(usd);
                    told.cell.memory = Some(MemoryCost { usd, usd_per_1000_turns: each, usd_per_question: each });
                    (told.cell.on_front_of_filling, told.cell.on_front_of_asking) = (None, None);
                    told
                })
                .collect();
            set_memory_fronts(&[0, 1], &mut told);
            told.into_iter()
                .map(|told| (told.cell.on_front_of_filling, told.cell.on_front_of_asking))
                .collect::<Vec<_>>()
        };
        assert_eq!(marks([0.0, 2.0]), [(Some(true), Some(true)), (Some(false), Some(false))]);
        assert_eq!(marks([0.0, 0.0]), [(None, None), (None, None)]);
    }

    #[test]
    fn where_lower_is_better_the_front_is_of_low_scores() {
        let marks = |better: Better| {
            let figures = [(0.1, 2.0), (0.4, 1.0), (0.5, 3.0)];
            let valid = |(number, (score, usd)): (u32, (f64, f64))| cell(number, Verdict::Valid, (score, usd, usd));
            let mut told: Vec<Told> = (1..).zip(figures).map(valid).collect();
            told.iter_mut().for_each(|told| told.cell.better = better);
            set_front(&[0, 1, 2], &mut told, MatrixCell::usd_held, |cell, on| cell.on_front_of_usd = Some(on));
            told.into_iter().map(|told| told.cell.on_front_of_usd == Some(true)).collect::<Vec<_>>()
        };
        assert_eq!(marks(Better::Lower), [true, true, false]);
        assert_eq!(marks(Better::Higher), [false, true, true]);
    }

    type Named<'a> = &'a [(&'a str, &'a str)];
    type Change<'a> = &'a dyn Fn(&mut RunSpec);

    fn within(values: Named<'_>) -> Values {
        values.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect()
    }

    /// Parts of cells with these values, settings changed so: the values of each that others do not have, and how many cells it has.
    fn parts(cells: &[(Named<'_>, Change<'_>)]) -> Vec<(Values, usize)> {
        let golden = include_str!("../../../proto/golden/run_spec.v1.json");
        let cell = |(values, change): &(Named<'_>, Change<'_>)| {
            let mut spec: RunSpec = serde_json::from_str(golden).expect("a spec");
            change(&mut spec);
            let values = within(values);
            (Measured::from_cell(&values, &spec), values, ())
        };
        apart(cells.iter().map(cell).collect()).into_iter().map(|(within, cells)| (within, cells.len())).collect()
    }

    #[test]
    fn an_effect_is_of_one_dataset_and_one_metric_and_of_all_seeds() {
        let file = |hash: &'static str| move |spec: &mut RunSpec| hash.clone_into(&mut spec.dataset.sha256);
        let (one, other) = (file("1"), file("2"));
        let whole = parts(&[(&[("top-k", "5")], &one), (&[("top-k", "10")], &one)]);
        assert_eq!(whole, [(within(&[]), 2)], "cells of one file need no name");
        let of_files = parts(&[
            (&[("dataset", "a"), ("top-k", "5")], &one),
            (&[("dataset", "a"), ("top-k", "10")], &one),
            (&[("dataset", "b"), ("top-k", "5")], &other),
        ]);
        // what the cells of the second have in common tells them apart
        let second = within(&[("dataset", "b"), ("top-k", "5")]);
        assert_eq!(of_files, [(within(&[("dataset", "a")]), 2), (second, 1)]);
        let by_another_metric = |spec: &mut RunSpec| spec.headline = Some("recall@10".to_owned());
        let of_metrics = parts(&[(&[("judge", "x")], &one), (&[("judge", "none")], &by_another_metric)]);
        assert_eq!(of_metrics.len(), 2);
        let none_in_common = |of_one: Change<'_>, of_other: Change<'_>| {
            let (five, ten): (Named<'_>, Named<'_>) = (&[("top-k", "5")], &[("top-k", "10")]);
            let told = parts(&[(five, of_one), (ten, of_one), (five, of_other), (ten, of_other)]);
            told.into_iter().map(|(within, _)| within).collect::<Vec<_>>()
        };
        let by_metric = none_in_common(&one, &by_another_metric);
        assert_eq!(by_metric[0].keys().collect::<Vec<_>>(), ["metric"], "they are of one dataset");
        assert_eq!(by_metric[1], within(&[("metric", "recall@10")]));
        let named = |name: &'static str| move |spec: &mut RunSpec| name.clone_into(&mut spec.dataset.name);
        let by_dataset = none_in_common(&named("a"), &named("b"));
        assert_eq!(by_dataset, [within(&[("dataset", "a")]), within(&[("dataset", "b")])]);
        let seed = |seed: u64| {
            move |spec: &mut RunSpec| {
                spec.dataset.sha256 = seed.to_string();
                spec.dataset.settings.insert("seed".to_owned(), seed.into());
            }
        };
        let (four, five) = (seed(4), seed(5));
        let of_seeds = parts(&[(&[(SEED_AXIS, "4")], &four), (&[(SEED_AXIS, "5")], &five)]);
        assert_eq!(of_seeds, [(within(&[]), 2)]);
    }
}
