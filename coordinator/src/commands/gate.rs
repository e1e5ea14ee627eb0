//! `gate RUN --baseline B`: pass or fail for CI, by a policy.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use bench_aggregate::{
    compare::{
        CompareOptions, Member, NOT_INDEPENDENT, Rates, RunFacts, Side, common_metric, compare,
        fingerprints::{self, Comparability, is_of_version},
    },
    gate::{
        GateFlags, Policy, gate_of_repeats,
        policy::{DEFAULT_POLICY_YAML, Floors},
    },
    repeats::{RepeatTable, Repeated, mean_of},
    simulate::{DecisionCase, Ends, Sampled, ends},
};
use bench_proto::{
    comparison::{Comparison, MarkedDifference},
    gate::{BaselineRun, GatePlan, GateReport, GateVerdict, PlannedGate},
    ids::{RunId, RunNo},
    spec::{RunSpec, TakenOver},
    summary::{Interval, Summary, Verdict},
    weight,
};
use bench_report::gate as view;
use bench_settings::{Way, bounded};
use bench_store::{RunFilter, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::GateArgs,
    comparison::{check_metric, inputs::LoadedRun, options, pair},
    exit::{CliError, CliResult, Exit},
    out, results,
    standing::{LAST, RESTORING, find_run, group::RunsOfGroup, look_for_run},
};

/// What a policy may become with all that it stands for, in bytes.
const MOST_WEIGHT: usize = 16 << 20;

/// Prints whether a run passes its policy, and writes JUnit and an alert where they are wanted. Exit 0 pass, 1 fail, 5 invalid,
/// 6 inconclusive.
pub(super) async fn run(app: &App, args: &GateArgs) -> CliResult {
    if args.print_policy {
        out::result(DEFAULT_POLICY_YAML);
        return Ok(Exit::Done);
    }
    let policy = policy(args)?;
    if let Some(path) = &args.junit {
        results::check_file(path)?;
    }
    if let Some(url) = &args.alert_url {
        Way::check_url("--alert-url", url, "http", &app.settings().allow_plaintext).map_err(CliError::usage)?;
    }
    // clap asks for it wherever no policy is printed
    let selector = args.run.as_deref().unwrap_or("latest");
    let store = app.open_store().await?;
    let (new, repeats) = match RunsOfGroup::find(store.as_ref(), selector).await? {
        Some(group) => of_group(app, store.as_ref(), &group, &policy).await?,
        None => {
            let row = find_run(store.as_ref(), selector).await?;
            check_finished(&row, &row.run_id)?;
            let run = LoadedRun::of_row(app, store.as_ref(), row).await?;
            let alone = vec![run.summary.clone()];
            (run, alone)
        }
    };
    if args.plan {
        return plan(app, store.as_ref(), args, (selector, &new), &policy).await;
    }
    let baseline = match &args.baseline {
        None if args.policy.is_some() && !policy.stands_alone() => {
            return Err(CliError::usage(
                "the policy has neither floors nor ceilings, its rules need a --baseline: a run, a folder, or last:K",
            ));
        }
        None => None,
        Some(named) => Some(against_named(app, store.as_ref(), args, named, (selector, &new)).await?),
    };
    let (baseline, runs) = baseline.map(|held| ((held.name, held.comparison), held.runs)).unzip();
    if let Some((_, comparison)) = &baseline {
        say_what_is_shared(comparison);
    }
    let flags = GateFlags { advisory: args.advisory, allow_inconclusive: args.allow_inconclusive };
    let mut report = gate_of_repeats(&new.summary, &repeats, baseline, &policy, flags);
    report.baseline_runs = runs.unwrap_or_default();
    show(args, &report)?;
    alert(args, &report).await;
    Ok(match (report.exit_code, report.verdict) {
        (0, _) => Exit::Done,
        (_, GateVerdict::Fail) => Exit::Regression,
        (_, GateVerdict::Inconclusive) => Exit::Inconclusive,
        _ => Exit::Invalid,
    })
}

/// Says that the baseline is the run itself, or what both have in common: in so far they are equal whatever has changed.
fn say_what_is_shared(comparison: &Comparison) {
    if comparison.a.id == comparison.b.id {
        let id = &comparison.a.id;
        return out::note(&format!("the baseline is {id} itself: that it passes says nothing of a change"));
    }
    comparison.notes.iter().filter(|note| note.ends_with(NOT_INDEPENDENT)).for_each(|note| out::note(note));
}

fn check_finished(row: &RunRow, resume: &RunId) -> Result<(), CliError> {
    match row.state {
        RunState::Finished => Ok(()),
        _ => Err(CliError::resumable(format!(
            "run {} is not finished; `bench-coord resume {resume}` goes on with it",
            row.run_id
        ))),
    }
}

/// The mean of a group's repeats. Its headline is theirs; of what else a floor or a ceiling is about each of them has its own.
async fn of_group(
    app: &App,
    store: &dyn Store,
    group: &RunsOfGroup,
    policy: &Policy,
) -> Result<(LoadedRun, Vec<Summary>), CliError> {
    group.runs.iter().try_for_each(|run| check_finished(run, &group.id))?;
    let mean = LoadedRun::named(app, store, &group.id.0, None).await?;
    let Floors { category, figures, .. } = &policy.floors;
    let mut repeats = Vec::new();
    if !category.is_empty() || !figures.is_empty() || !policy.ceilings.is_empty() {
        for run in &group.runs {
            repeats.push(results::summary_of(app, store, run).await?);
        }
    }
    Ok((mean, repeats))
}

fn policy(args: &GateArgs) -> Result<Policy, CliError> {
    let mut policy = match &args.policy {
        None => Policy::default(),
        Some(path) => {
            let broken = |problem: String| CliError::usage(format!("{}: {problem}", path.display()));
            let text = bounded::text(path, bounded::BY_HAND).map_err(|e| broken(e.to_string()).because(e))?;
            let short = weight::check_nesting(text.as_bytes())
                .and_then(|()| weight::check(serde_norway::Deserializer::from_str(&text), MOST_WEIGHT));
            short.and_then(|()| serde_norway::from_str(&text)).map_err(|e| broken(e.to_string()).because(e))?
        }
    };
    policy.floors.overall = args.floor.or(policy.floors.overall);
    let at = args.policy.as_ref().map_or_else(|| "--floor".to_owned(), |path| path.display().to_string());
    policy.check().map_err(|problem| CliError::usage(format!("{at}: {problem}")))?;
    Ok(policy)
}

/// What a run is held against.
struct Held {
    name: String,
    comparison: Comparison,
    /// The runs that `last:K` has found.
    runs: Vec<BaselineRun>,
}

/// As [`against`]; where nobody has a run of that name (a nightly run that was missed, one that was deleted) the newest comparable one
/// takes its place, and the comparison says so.
async fn against_named(
    app: &App,
    store: &dyn Store,
    args: &GateArgs,
    named: &str,
    (selector, new): (&str, &LoadedRun),
) -> Result<Held, CliError> {
    let is_run = last_of(named)?.is_none() && !named.contains('/') && !Path::new(named).exists();
    let is_missing =
        is_run && RunsOfGroup::find(store, named).await?.is_none() && look_for_run(store, named).await?.is_none();
    if !is_missing {
        return against(app, store, args, named, (selector, new)).await;
    }
    let found = against(app, store, args, "last:1", (selector, new)).await;
    let mut held = found.map_err(|error| match error.exit {
        Exit::Invalid => CliError::usage(format!("there is no baseline '{named}', and {}", error.message)),
        _ => error,
    })?;
    held.name.clone_from(&held.comparison.a.id);
    let note =
        format!("there is no baseline '{named}': the newest comparable run before, {}, took its place", held.name);
    out::note(&note);
    held.comparison.notes.push(note);
    Ok(held)
}

/// The baseline and the comparison with it.
async fn against(
    app: &App,
    store: &dyn Store,
    args: &GateArgs,
    named: &str,
    (selector, new): (&str, &LoadedRun),
) -> Result<Held, CliError> {
    let mut options = options(app, &args.pairing)?;
    check_metric(&args.pairing, new)?;
    let metric = common_metric(&new.spec, &options);
    let Some(k) = last_of(named)? else {
        let old = LoadedRun::named(app, store, named, Some(&new.spec)).await?;
        let is_itself = old.summary.run.id == new.summary.run.id;
        // who types one name twice knows; who names a baseline by the name of all runs does not
        if named != selector && is_itself {
            return Err(CliError::usage(format!(
                "--baseline {named} is the run itself ({}): name the one before it, such as {named}@2 where runs have one name, or last:1",
                new.summary.run.id
            )));
        }
        check_metric(&args.pairing, &old)?;
        // the run under test says by what, unless its baseline has no such figure
        if has_metric(&old, &metric) {
            options.metric = Some(metric);
        }
        let name = old.summary.run.id.clone();
        return Ok(Held { name, comparison: pair(store, &old, new, &options, true).await?, runs: Vec::new() });
    };
    options.metric = Some(metric.clone());
    let (mut olds, runs): (Vec<LoadedRun>, Vec<BaselineRun>) =
        last(app, store, (selector, new), k, &options).await?.into_iter().unzip();
    let top_k = olds.iter().map(|old| old.spec.system.top_k).fold(new.spec.system.top_k, u32::min);
    let mut facts = Vec::with_capacity(olds.len());
    for old in &olds {
        facts.push(old.facts(store, &metric, top_k).await?);
    }
    let shown = shown_of(&olds, &facts, &metric, options.seed);
    let mean = RunFacts::mean(facts);
    let of_new = new.facts(store, &metric, top_k).await?;
    let count = olds.len();
    let members: Vec<Member> = olds.iter().flat_map(|old| old.members.iter().cloned()).collect();
    // the newest of them lends its settings, latency and cost
    let newest = olds.swap_remove(0);
    let of_olds = Side { members: &members, ..newest.side(&mean) };
    let mut comparison = compare(&of_olds, &new.side(&of_new), &options);
    if count > 1 {
        (comparison.a.value, comparison.a.ci95) = shown;
    }
    comparison.notes.push(format!(
        "the baseline is the mean of the last {count} {} {}{}, question by question; latency and cost are those of the newest",
        if count == 1 { "run" } else { "runs" },
        of_which_settings(&runs),
        if count < k { format!(" ({k} were asked for, and there are no more)") } else { String::new() },
    ));
    new.fill(store, &mut comparison.flips, |flip| &mut flip.b).await?;
    let name = match count < k {
        true => format!("mean of the last {count} ({k} asked for)"),
        false => format!("mean of the last {count}"),
    };
    Ok(Held { name, comparison, runs })
}

/// What the settings of a baseline's runs are beside those of the run under test. They have the same ones among themselves.
fn of_which_settings(runs: &[BaselineRun]) -> String {
    let is_set = |differs: &&MarkedDifference| differs.under_test && !is_of_version(&differs.key);
    let all: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.differences.iter().filter(is_set)).map(|differs| differs.key.as_str()).collect();
    match all.is_empty() {
        true => "of the same settings".to_owned(),
        false => format!("of other settings ({})", all.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// What some runs score together by a metric, with its interval: as repeats do.
fn shown_of(runs: &[LoadedRun], facts: &[RunFacts], metric: &str, seed: u64) -> (Option<f64>, Option<Interval>) {
    let Some(first) = runs.first() else { return (None, None) };
    let mut table = RepeatTable::default();
    facts.iter().for_each(|facts| table.add(facts, &first.spec.dataset.profile.headline, None));
    let score = |run: &LoadedRun| {
        let of_metric = run.summary.scores.iter().find(|score| score.metric == metric)?;
        of_metric.total(run.summary.headline.estimator)
    };
    let headlines: Vec<f64> = runs.iter().filter_map(score).collect();
    let of = Repeated {
        spec: &first.spec,
        metric,
        headlines: &headlines,
        filled_anew: true,
        fills_alike: false,
        answers_draw: true,
        judges_draw: true,
        seed,
    };
    let mean = mean_of(&table, &of);
    (mean.value, mean.ci95)
}

fn has_metric(run: &LoadedRun, metric: &str) -> bool {
    run.summary.scores.iter().any(|score| score.metric == metric && score.micro.is_some())
}

/// K of `last:K`; `None` of any other baseline.
fn last_of(named: &str) -> Result<Option<usize>, CliError> {
    let Some(k) = named.strip_prefix(LAST) else { return Ok(None) };
    let k = k.parse().ok().filter(|k| (1..=1_000).contains(k));
    k.map(Some).ok_or_else(|| CliError::usage(format!("--baseline {named}: give last:K with K from 1 to 1000")))
}

/// Simulated pairs of runs of a plan.
const PLANNED: u32 = 2_000;
/// Variance of a question's verdict from run to run where one run alone is known: one verdict in twenty is turned.
const TURNED: f64 = 0.0475;
/// Standard deviation, on the logit scale, of what filling a bank anew does to its questions.
const BANK_NOISE: f64 = 0.3;

/// Says how gates with this policy end, for runs of the questions of `new`.
async fn plan(
    app: &App,
    store: &dyn Store,
    args: &GateArgs,
    (selector, new): (&str, &LoadedRun),
    policy: &Policy,
) -> CliResult {
    let options = options(app, &args.pairing)?;
    check_metric(&args.pairing, new)?;
    let (metric, top_k) = (common_metric(&new.spec, &options), new.spec.system.top_k);
    let last_runs = args.baseline.as_deref().map_or(Ok(None), last_of)?;
    // each run is a draw of its own, also where the mean of several is what is held
    let mut facts: Vec<RunFacts> = new.facts_of_each(store, &metric, top_k).await?.into_iter().flatten().collect();
    let olds: Vec<LoadedRun> = match (last_runs, &args.baseline) {
        (Some(k), _) => {
            let found = last(app, store, (selector, new), k, &options).await?;
            found.into_iter().map(|(old, _)| old).collect()
        }
        (None, Some(named)) => vec![LoadedRun::named(app, store, named, Some(&new.spec)).await?],
        (None, None) => Vec::new(),
    };
    // there may be fewer of the last ones than were asked for
    let of_baseline = olds.iter().map(LoadedRun::repeats).sum::<usize>().max(1);
    for old in olds {
        check_metric(&args.pairing, &old)?;
        facts.extend(old.facts_of_each(store, &metric, top_k).await?.into_iter().flatten());
    }
    let Rates { banks, categories, noise } = RunFacts::rates(&facts, TURNED);
    if banks.is_empty() {
        return Err(CliError::usage(format!(
            "no question of {selector} has a score by '{metric}': nothing to plan with"
        )));
    }
    let tolerance = policy.overall.map_or(0.0, |rule| rule.tolerance);
    let number = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
    // a sample's score is weighted to the dataset, in the gate too
    let of_category = |name: &String| new.spec.dataset.population.get(name).copied();
    let weighted = new.spec.sample.stratified && categories.iter().all(|name| of_category(name).is_some());
    let population = (0..).zip(categories.iter().filter(|_| weighted).filter_map(of_category));
    let case = DecisionCase {
        count: banks.len(),
        banks,
        sampled: Sampled::Full,
        population: population.collect(),
        bank_noise: BANK_NOISE,
        drop: 0.0,
        baseline_runs: number(of_baseline),
        runs: number(new.repeats()),
        tolerance,
    };
    let (falls, beyond_score) = case.falls();
    let planned = GatePlan {
        draws: PLANNED,
        questions: case.banks.iter().map(|bank| bank.len() as u64).sum(),
        banks: case.banks.len() as u64,
        baseline_runs: case.baseline_runs,
        runs: case.runs,
        verdict_variance: noise,
        measured_over: facts.len() as u64,
        bank_noise: BANK_NOISE,
        cases: planned_ends(&case, &falls, policy, app.settings().stats_seed),
        beyond_score,
        not_simulated: policy.beside_scores().into_iter().map(str::to_owned).collect(),
    };
    if args.json {
        out::json(&planned);
    } else {
        out::painted(&view::plan(&planned, out::view()));
    }
    Ok(Exit::Done)
}

/// How gates end at each of some falls of the score.
fn planned_ends(case: &DecisionCase, falls: &[f64], policy: &Policy, seed: u64) -> Vec<PlannedGate> {
    let at = |drop: &f64| {
        let Ends { pass, fail, inconclusive } =
            ends(&DecisionCase { drop: *drop, ..case.clone() }, policy, PLANNED, seed);
        PlannedGate { drop: *drop, pass, fail, inconclusive }
    };
    falls.iter().map(at).collect()
}

/// The finished, valid runs before one that may be compared with it.
struct Before<'a> {
    app: &'a App,
    store: &'a dyn Store,
    this: RunRow,
    new: &'a LoadedRun,
    metric: String,
    options: &'a CompareOptions,
}

impl Before<'_> {
    /// A run compared with settings that this one has or could have.
    fn with(&self, row: &RunRow, other: &RunSpec) -> Comparability {
        let settings = |spec, imported| fingerprints::RunSettings { spec, imported };
        let (of_row, of_other) = (settings(&row.spec, row.imported), settings(other, self.this.imported));
        fingerprints::comparability(&of_row, &of_other, &self.metric, &self.options.under_test)
    }

    /// Whether a run has done the same, be it before or after: the whole of the same sample, and neither a second try at what was wrong
    /// nor a run of the same command.
    fn is_like_in_questions(&self, row: &RunRow) -> bool {
        let this = &self.this;
        let same_sample = row.spec.sample.signature == this.spec.sample.signature && row.looks.stopped().is_none();
        let same_draw = row.spec.taken_over.answered_again == this.spec.taken_over.answered_again;
        let same_command = row.group.is_some() && row.group == this.group;
        let has_ended = row.run_no != this.run_no && row.state == RunState::Finished && row.control_of.is_none();
        has_ended && same_sample && same_draw && !same_command && row.spec.system.name == self.new.spec.system.name
    }

    /// Whether runs of one baseline may differ in a setting: the version of the memory system is what a gate is about, and what is
    /// declared is under test. Datasets and samples are held against each other elsewhere, and by which rule a run would have ended
    /// early changes nothing of one that did not.
    fn may_differ(&self, differs: &MarkedDifference, imported: bool) -> bool {
        let declared = &self.options.under_test;
        let is_declared = declared.iter().any(|group| group == "all" || *group == differs.group);
        // who answered what was made elsewhere is not known, and what was recalled elsewhere is as long as it is
        let is_unknown = imported && (differs.group == "answerer" || differs.key == "system.top_k");
        !differs.under_test || is_of_version(&differs.key) || is_declared || is_unknown
    }

    /// All that may be compared with this one, the newest first, each with its differences from it. Whether they are valid is not
    /// known yet: their results are read where one is chosen.
    async fn all(&self) -> Result<Vec<(RunRow, Comparability)>, CliError> {
        let rows = self.store.list_runs(&RunFilter::default()).await?;
        let alike = rows.into_iter().filter(|row| self.is_like_in_questions(row)).map(|row| {
            let with_this = self.with(&row, &self.new.spec);
            (row, with_this)
        });
        self.before(alike.filter(|(_, with_this)| with_this.reasons.is_empty()).collect()).await
    }

    /// Those of some runs, the newest first, that were created before this one. A run that came from an archive has the number of its
    /// restore: where there is one among them, the times go by which their reports say that they began.
    async fn before(&self, runs: Vec<(RunRow, Comparability)>) -> Result<Vec<(RunRow, Comparability)>, CliError> {
        if runs.is_empty() {
            return Ok(runs);
        }
        let this = &self.this;
        let of_archives = RunFilter { has_event: Some(RESTORING.to_owned()), controls: true, ..RunFilter::default() };
        let restored = self.store.list_runs(&of_archives).await?;
        let restored: BTreeSet<RunNo> = restored.into_iter().map(|row| row.run_no).collect();
        if !runs.iter().map(|(row, _)| row).chain([this]).any(|row| restored.contains(&row.run_no)) {
            return Ok(runs.into_iter().filter(|(row, _)| row.run_no < this.run_no).collect());
        }
        let mut timed = Vec::with_capacity(runs.len());
        for run in runs {
            timed.push(((self.began(&run.0, &restored).await?, run.0.run_no), run));
        }
        let end = (self.began(this, &restored).await?, this.run_no);
        Ok(before_in_time(timed, end))
    }

    /// When a run began, in milliseconds since 1970.
    async fn began(&self, row: &RunRow, restored: &BTreeSet<RunNo>) -> Result<i64, CliError> {
        if !restored.contains(&row.run_no) {
            return Ok(row.created_ms);
        }
        let summary = results::summary_of(self.app, self.store, row).await;
        began_by_report(row, summary.map(|summary| summary.run.started_at))
    }

    /// Whether a run has the settings of the one that it was compared with, but for what may differ; `system_too`: and for those of its
    /// memory system.
    fn is_like(&self, row: &RunRow, with: &Comparability, system_too: bool) -> bool {
        let imported = row.imported || self.this.imported;
        let fits = |differs: &MarkedDifference| {
            (system_too && differs.group == "system") || self.may_differ(differs, imported)
        };
        with.reasons.is_empty() && with.differences.iter().all(fits)
    }

    /// The first `k` valid ones of some runs, each with what is to be known of it. Of runs that share paid answers the newest: a run
    /// that was graded again is no further draw.
    async fn newest(
        &self,
        k: usize,
        of: Vec<&(RunRow, Comparability)>,
    ) -> Result<Vec<(LoadedRun, BaselineRun)>, CliError> {
        let (mut found, mut lineages) = (Vec::new(), BTreeSet::new());
        for (row, with_this) in of {
            if found.len() == k {
                break;
            }
            // of a run that came from an archive its lineage says less than what it has of others
            let TakenOver { answers_of, recalls_of, .. } = &row.spec.taken_over;
            let own = [&row.lineage, &row.run_id.0].into_iter().chain(answers_of).chain(recalls_of);
            let own: Vec<&String> = own.collect();
            if own.iter().any(|key| lineages.contains(key)) {
                continue;
            }
            let old = LoadedRun::of_row(self.app, self.store, row.clone()).await?;
            if old.summary.run.verdict == Verdict::Valid && has_metric(&old, &self.metric) {
                lineages.extend(own);
                let (id, name) = (old.summary.run.id.clone(), old.summary.run.name.clone());
                let (notes, differences) = (with_this.notes.clone(), with_this.differences.clone());
                found.push((old, BaselineRun { id, name, notes, differences }));
            }
        }
        Ok(found)
    }
}

/// The runs that began before a time and a number, the newest first.
fn before_in_time<T>(mut runs: Vec<((i64, RunNo), T)>, end: (i64, RunNo)) -> Vec<T> {
    runs.retain(|(began, _)| *began < end);
    runs.sort_by_key(|(began, _)| Reverse(*began));
    runs.into_iter().map(|(_, run)| run).collect()
}

/// When a restored run began by what was read of its report. One whose report cannot be read counts as the oldest, which is said: it
/// stands in nobody's way, and where it is needed after all the gate says why it cannot be had.
fn began_by_report(row: &RunRow, read: Result<Option<String>, CliError>) -> Result<i64, CliError> {
    match read {
        Ok(said) => {
            let said = said.and_then(|at| at.parse::<jiff::Timestamp>().ok());
            Ok(said.map_or(row.created_ms, jiff::Timestamp::as_millisecond))
        }
        Err(away) if away.is_transient() => Err(away),
        Err(why) => {
            let id = &row.run_id;
            out::note(&format!(
                "run {id} came from an archive and its report cannot be read, it counts as the oldest: {why}"
            ));
            Ok(i64::MIN)
        }
    }
}

/// The last `k` finished, valid runs of the same settings before this one, the newest first, each with what is to be known of it. Where
/// there is none, those of the newest run that differs in its memory system alone: a changed setting of it is what a gate is about too.
async fn last(
    app: &App,
    store: &dyn Store,
    (selector, new): (&str, &LoadedRun),
    k: usize,
    options: &CompareOptions,
) -> Result<Vec<(LoadedRun, BaselineRun)>, CliError> {
    let this = match new.row() {
        Some(row) => row.clone(),
        None => find_run(store, selector).await?,
    };
    let metric = common_metric(&new.spec, options);
    let before = Before { app, store, this, new, metric, options };
    let all = before.all().await?;
    let like_this = |system_too| -> Vec<&(RunRow, Comparability)> {
        all.iter().filter(|(row, with)| before.is_like(row, with, system_too)).collect()
    };
    let same = before.newest(k, like_this(false)).await?;
    if !same.is_empty() {
        return Ok(same);
    }
    if let Some((newest, _)) = before.newest(1, like_this(true)).await?.pop() {
        let is_like_it =
            |(row, _): &&(RunRow, Comparability)| before.is_like(row, &before.with(row, &newest.spec), false);
        return before.newest(k, all.iter().filter(is_like_it).collect()).await;
    }
    let metric = before.metric;
    Err(CliError::new(
        Exit::Invalid,
        format!(
            "no finished, VALID run before {selector} has its dataset, sample, memory system, answerer and graders, and scores by '{metric}'; name a baseline with --baseline RUN, or say what may differ with --under-test"
        ),
    ))
}

fn show(args: &GateArgs, report: &GateReport) -> Result<(), CliError> {
    if let Some(path) = &args.junit {
        let xml = view::junit(report).map_err(CliError::infrastructure_of)?;
        results::write_named(path, &xml)?;
    }
    if args.json {
        out::json(report);
    } else {
        out::painted(&view::terminal(report, out::view()));
    }
    // https://docs.github.com/actions: a summary is a file, annotations are lines of the log
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") {
        let appended = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(view::markdown(report).as_bytes()));
        if let Err(error) = appended {
            out::note(&format!("the step summary cannot be written: {error}"));
        }
    }
    if out::on_github() {
        view::annotations(report).iter().for_each(|line| out::command(line));
    }
    Ok(())
}

/// Tells whoever wants to hear; a deaf ear never changes the gate.
async fn alert(args: &GateArgs, report: &GateReport) {
    let Some(severity) = report.severity.as_deref() else { return };
    let message = serde_json::json!({
        "severity": severity, "run": report.run, "baseline": report.baseline, "verdict": report.verdict,
        "exit_code": report.exit_code, "reasons": report.reasons, "checks": report.checks,
    })
    .to_string();
    if let Some(command) = &args.alert_command
        && let Err(error) = run_command(command, severity, &message)
    {
        out::note(&format!("the alert command failed: {error}"));
    }
    if let Some(url) = &args.alert_url
        && let Err(error) = post(url, message).await
    {
        out::note(&format!("the alert was not delivered: {error}"));
    }
}

fn run_command(command: &str, severity: &str, message: &str) -> std::io::Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("BENCH_ALERT_SEVERITY", severity)
        .stdin(Stdio::piped())
        // standard output is the gate's own
        .stdout(std::io::stderr())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // a command that reads nothing is fine
        let _ = stdin.write_all(message.as_bytes());
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

async fn post(url: &str, message: String) -> Result<(), String> {
    // a redirection may lead off the encrypted way, and takes the message along
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.timeout(std::time::Duration::from_secs(10)).build().map_err(|e| e.to_string())?;
    let sent = client.post(url).header("content-type", "application/json").body(message).send().await;
    // the URL may hold a secret: it is not repeated
    let sent = sent.and_then(reqwest::Response::error_for_status).map_err(|e| e.without_url().to_string())?;
    let status = sent.status();
    match status.is_redirection() {
        true => Err(format!("the server leads elsewhere ({status}), give the URL of that place")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{
        StoreError,
        conformance::{created, new_run, store_in},
    };

    use super::*;

    #[tokio::test]
    async fn a_run_that_was_restored_later_is_before_what_was_made_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let mut runs = Vec::new();
        // the last one came from an archive, of a run that began first
        for (id, began) in [("second", 20), ("third", 30), ("fourth", 40), ("first", 10)] {
            runs.push((began, created(store.as_ref(), &new_run(id)).await));
        }
        let before = |number: usize| -> Vec<String> {
            let end = (runs[number].0, runs[number].1.run_no);
            let timed = runs.iter().map(|(began, row)| ((*began, row.run_no), row.run_id.0.clone()));
            before_in_time(timed.collect(), end)
        };
        assert_eq!(before(1), ["second", "first"]);
        assert!(before(3).is_empty(), "nothing was before the first");
    }

    #[tokio::test]
    async fn a_restored_run_whose_report_cannot_be_read_is_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let row = created(store.as_ref(), &new_run("restored")).await;
        let began = |read| began_by_report(&row, read);
        assert_eq!(began(Ok(Some("1970-01-01T00:00:01Z".to_owned()))).expect("is read"), 1000);
        assert_eq!(began(Ok(None)).expect("is read"), row.created_ms);
        let damaged = StoreError::Corrupt("the facts of a question".to_owned().into());
        assert_eq!(began(Err(damaged.into())).expect("fails no gate"), i64::MIN);
        let away = StoreError::Unavailable("no server".to_owned().into());
        assert!(began(Err(away.into())).is_err(), "another try may pass");
    }

    #[test]
    fn where_canaries_go_belongs_to_the_version_and_is_no_other_setting() {
        let run = |keys: &[&str]| {
            let differs = |key: &&str| MarkedDifference {
                key: (*key).to_owned(),
                left: "1".to_owned(),
                right: "2".to_owned(),
                group: "system".to_owned(),
                under_test: true,
            };
            let differences = keys.iter().map(differs).collect();
            BaselineRun { id: "before".to_owned(), name: None, notes: Vec::new(), differences }
        };
        assert_eq!(of_which_settings(&[run(&["system.version", "system.canaries"])]), "of the same settings");
        let told = of_which_settings(&[run(&["system.canaries", "system.top_k"])]);
        assert_eq!(told, "of other settings (system.top_k)");
    }
}
