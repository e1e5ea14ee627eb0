//! The report of a group of repeats: its runs' summaries, and what their questions say together.
//!
//! One run's questions are in memory at a time, beside a table of their scores.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use bench_aggregate::{
    compare::RunFacts,
    repeats::{RepeatFigures, RepeatTable, Repeated, VotesOn, report},
};
use bench_proto::{
    call::CacheScope,
    facts::{QuestionFacts, part_of_judge},
    ids::{RunId, TaskKey, TaskKind},
    money::PicoUsd,
    repeats::{REPEATS_SCHEMA_VERSION, RepeatedRun, RepeatsGroup, RepeatsMean, RepeatsMetered, RepeatsReport},
    spec::{ModelSpec, RunSpec},
    step::StepFacts,
    summary::{Summary, Verdict},
};
use bench_settings::bounded;
use bench_store::{Plan, RunGroup, RunRow, RunState, Store};
use bench_systems::{BuildContext, registry as systems, vector};

use super::{file_name, read_facts, run_folder, summary_of};
use crate::{
    app::App,
    exit::CliError,
    standing::{Standing, group::RunsOfGroup},
};

/// Steps read per page.
const PAGE: u32 = 4096;

/// What of a run can draw anew when it is repeated.
pub(crate) struct Draws {
    /// Filling a bank is computed from its texts, so that a second filling makes the same memory; or there is only one filling.
    pub(crate) fills_alike: bool,
    /// Repeats ask banks that were filled once.
    pub(crate) asks_filled: bool,
    /// Banks that a repeat behind the first has filled itself all the same, and all of their banks.
    filled_apart: (usize, usize),
    /// A model or a service answers or recalls.
    pub(crate) answers: bool,
    /// A model grades by the headline's metric.
    pub(crate) judges: bool,
}

impl Draws {
    /// By the settings of a run. A system in a service may do as it likes, unless all repeats ask banks that were filled once.
    pub(crate) fn from_spec(spec: &RunSpec, asks_filled: bool) -> Self {
        let system = &spec.system;
        // files that it names may be elsewhere by now
        let settings = vector::without_given(&system.settings);
        let computed = systems::capabilities(&system.name, &settings, &BuildContext::default())
            .is_ok_and(|capabilities| capabilities.from_items && !capabilities.derived);
        // embeddings are no draw and shared by all runs (P9), unless the run was told to ask for them anew
        let anew = matches!(spec.limits.cache, CacheScope::Off | CacheScope::Refresh);
        let embeds_anew = anew && vector::remote_model(&system.name, &system.settings).is_some();
        Self {
            asks_filled,
            filled_apart: (0, 0),
            fills_alike: asks_filled || (computed && !embeds_anew),
            answers: !computed || embeds_anew || spec.answerer.is_remote() || spec.answerer.provider == "system",
            judges: is_headline_of_model_judge(spec),
        }
    }

    /// Nothing does: every repeat is the same draw.
    pub(crate) const fn none(&self) -> bool {
        self.fills_alike && !self.answers && !self.judges
    }
}

/// Whether a judge that is a model gives the headline, or a part of what it says does.
fn is_headline_of_model_judge(spec: &RunSpec) -> bool {
    let headline = spec.headline_metric();
    let gives = |judge: &String| headline == *judge || headline.starts_with(&part_of_judge(judge, ""));
    let metrics = spec.judge_plan().metrics;
    metrics.iter().zip(&spec.judges).any(|(metric, judge)| gives(metric) && judge.is_remote())
}

/// What runs that are the same run say together.
pub(crate) struct Together {
    /// Each of them.
    pub(crate) runs: Vec<RepeatedRun>,
    /// What their questions say.
    pub(crate) figures: RepeatFigures,
    /// Scores of their questions.
    pub(crate) table: RepeatTable,
    /// What those that have ended, more than one, have in common.
    alike: Alike,
    /// The results of those that have ended.
    pub(crate) summaries: Vec<Summary>,
    /// What of them was drawn anew.
    draws: Draws,
}

/// How much repeats are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alike {
    /// Their results differ.
    Not,
    /// Their grades are the same to the last digit, and their answers are others.
    Grades,
    /// Their answers are the same too.
    Answers,
}

impl Together {
    /// Of each run that may not be used, why.
    pub(crate) fn invalid(&self) -> Vec<String> {
        let invalid = self.summaries.iter().map(|summary| &summary.run).filter(|run| run.verdict == Verdict::Invalid);
        invalid.map(|run| [run.id.as_str(), Verdict::IS_INVALID, &run.reasons.join("; ")].concat()).collect()
    }
}

/// The figures of runs that are the same run; they rest on those that have ended.
///
/// # Errors
/// What the store meets.
pub(crate) async fn figures_of(app: &App, store: &dyn Store, rows: &[RunRow]) -> Result<Together, CliError> {
    let first = rows.first().ok_or_else(|| CliError::usage("there is no run"))?;
    let (spec, metric) = (&first.spec, first.spec.headline_metric());
    let mut table = RepeatTable::default();
    let (mut runs, mut summaries, mut answers) = (Vec::new(), Vec::<Summary>::new(), Vec::new());
    for row in rows {
        let mut run = told(app, row);
        if row.state == RunState::Finished {
            let summary = summary_of(app, store, row).await?;
            let (of_run, has_votes) = questions(store, row, &metric).await?;
            let votes = has_votes.then_some(&of_run.votes);
            table.add(&of_run.facts, &spec.dataset.profile.headline, votes);
            answers.push(of_run.answers);
            run.value = summary.headline.value;
            run.n = summary.headline.n;
            run.coverage = summary.outcomes.coverage;
            run.verdict = Some(summary.run.verdict);
            run.result_digest = Some(summary.result_digest.clone());
            summaries.push(summary);
        }
        runs.push(run);
    }
    let (own, of) = filled_apart(store, rows).await?;
    // where some are shared and some are not, what filling changes cannot be told from what banks are like
    let draws = Draws { filled_apart: (own, of), ..Draws::from_spec(spec, own < of) };
    let headlines: Vec<f64> = summaries.iter().filter_map(|summary| summary.headline.value).collect();
    let of = Repeated {
        spec,
        metric: &metric,
        headlines: &headlines,
        filled_anew: !draws.fills_alike,
        fills_alike: draws.fills_alike,
        answers_draw: draws.answers,
        judges_draw: draws.judges,
        seed: app.settings().stats_seed,
    };
    let figures = report(&table, &of);
    let same_grades = |pair: &[Summary]| pair[0].result_digest == pair[1].result_digest;
    let same_answers = |pair: &[u64]| pair[0] == pair[1];
    let alike = match summaries.len() > 1 && summaries.windows(2).all(same_grades) {
        false => Alike::Not,
        true if answers.windows(2).all(same_answers) => Alike::Answers,
        true => Alike::Grades,
    };
    Ok(Together { runs, figures, table, alike, summaries, draws })
}

/// Of all banks of the runs behind the first: how many they have filled themselves, and how many there are.
async fn filled_apart(store: &dyn Plan, rows: &[RunRow]) -> Result<(usize, usize), CliError> {
    let (mut own, mut of) = (0, 0);
    for row in rows.iter().skip(1) {
        let banks = store.banks(row.run_no, None).await?;
        own += banks.iter().filter(|bank| bank.filled_before().is_none()).count();
        of += banks.len();
    }
    Ok((own, of))
}

/// The report of a group at any point, and the scores of its questions: figures rest on the repeats that have ended.
///
/// # Errors
/// What the store meets.
pub(crate) async fn repeats_report(
    app: &App,
    store: &dyn Store,
    repeats: &RunsOfGroup,
) -> Result<(RepeatsReport, RepeatTable), CliError> {
    let first = repeats.runs.first().ok_or_else(|| CliError::usage(format!("group {} has no run", repeats.id)))?;
    let together = figures_of(app, store, &repeats.runs).await?;
    let invalid = together.invalid();
    let metered = RepeatsMetered::sum_of(together.summaries.iter().filter_map(|summary| summary.metered.as_ref()));
    let Together { runs, figures, table, alike, draws, .. } = together;
    let report = RepeatsReport {
        schema_version: REPEATS_SCHEMA_VERSION,
        group: group(store, repeats, first, table.runs(), !draws.fills_alike).await?,
        notes: invalid.into_iter().chain(notes(&first.spec, &draws, alike, repeats)).collect(),
        runs,
        metered,
        metric: first.spec.headline_metric(),
        estimator: figures.estimator,
        mean: figures.mean,
        stability: figures.stability,
        variance: figures.variance,
        halving: figures.halving,
        deterministic: alike == Alike::Answers,
    };
    Ok((report, table))
}

/// The mean over all repeats of a group with its intervals: that of the group's report in its folder where it is of the same
/// results, which costs nothing, else computed. Each run comes with the digest of its result.
///
/// # Errors
/// What the store meets.
pub(crate) async fn mean_of(
    app: &App,
    store: &dyn Store,
    group: &RunGroup,
    mut runs: Vec<(&RunRow, Option<&str>)>,
) -> Result<RepeatsMean, CliError> {
    runs.sort_by_key(|(run, _)| run.repeat());
    let file = run_folder(app, &RunId(group.id.clone()), None).join(file_name("json"));
    let written = bounded::text(&file, bounded::RESULTS).ok();
    let written = written.and_then(|text| serde_json::from_str::<RepeatsReport>(&text).ok());
    if let Some(report) = written.filter(|report| is_of(report, &runs)) {
        return Ok(report.mean);
    }
    let rows: Vec<RunRow> = runs.iter().map(|(run, _)| (*run).clone()).collect();
    Ok(figures_of(app, store, &rows).await?.figures.mean)
}

/// Whether a report rests on just these results.
fn is_of(report: &RepeatsReport, runs: &[(&RunRow, Option<&str>)]) -> bool {
    let is_same = |(told, (run, digest)): (&RepeatedRun, &(&RunRow, Option<&str>))| {
        told.id == run.run_id.0 && told.result_digest.as_deref() == *digest
    };
    report.schema_version == REPEATS_SCHEMA_VERSION
        && report.runs.len() == runs.len()
        && report.runs.iter().zip(runs).all(is_same)
}

/// What the row alone tells of a repeat.
fn told(app: &App, row: &RunRow) -> RepeatedRun {
    RepeatedRun {
        id: row.run_id.to_string(),
        number: row.draw(),
        status: Standing::of_run(row, app.store_file().as_deref()).word().to_owned(),
        value: None,
        n: 0,
        coverage: None,
        verdict: None,
        result_digest: None,
        usd: row.counters.usd_paid(),
    }
}

async fn group(
    store: &dyn Store,
    repeats: &RunsOfGroup,
    first: &RunRow,
    ended: usize,
    filled_anew: bool,
) -> Result<RepeatsGroup, CliError> {
    let money = store.group(first.run_no).await?;
    let spec = &first.spec;
    Ok(RepeatsGroup {
        id: repeats.id.to_string(),
        name: repeats.name(),
        repeats: repeats.runs.len() as u32,
        ended: ended as u32,
        dataset: spec.dataset.name.clone(),
        preset: spec.sample.preset.clone(),
        questions: spec.sample.n,
        banks: spec.sample.banks,
        system: spec.system.name.clone(),
        answerer: spec.who_answers(),
        judges: spec.judges.iter().map(ModelSpec::display).collect(),
        votes: spec.votes,
        filled_anew,
        cap_usd: money.as_ref().and_then(|group| group.cap).map(PicoUsd::usd),
        booked_usd: money.map_or(0.0, |group| group.spent.usd()),
    })
}

/// What a reader should know beside the figures.
/// Where the figure by somebody else's counting stands, of runs that have one: those of a group are by ours.
pub(crate) fn counted_elsewhere<'s>(specs: impl IntoIterator<Item = &'s RunSpec>) -> Option<String> {
    let counted = specs.into_iter().filter_map(|spec| spec.counting.as_ref());
    let names: BTreeSet<&str> = counted.map(|counting| counting.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        format!("figures here are by our own counting; `list` and the report of each run have that of {names}")
    })
}

fn notes(spec: &RunSpec, draws: &Draws, alike: Alike, repeats: &RunsOfGroup) -> Vec<String> {
    let mut notes = vec![filling(spec, draws)];
    match alike {
        _ if draws.none() => notes.push(nothing_draws(spec)),
        Alike::Answers => notes.push(
            "the repeats are equal to the last answer and grade: whoever was asked gave the same reply to the same request, so that \
             they are one draw; a model that samples (a temperature above 0) or a seed in its parameters makes others"
                .to_owned(),
        ),
        Alike::Grades => notes.push(
            "the repeats are equal to the last grade, and their answers are not: each is a draw of its own, and none of so many has \
             changed a grade"
                .to_owned(),
        ),
        Alike::Not => {}
    }
    notes.extend(counted_elsewhere([spec]));
    let open = repeats.runs.iter().filter(|run| run.state != RunState::Finished).count();
    if open > 0 {
        notes.push(format!("{open} of {} repeats have not ended, and are in no figure", repeats.runs.len()));
    }
    notes
}

/// How the banks of the repeats came to be.
pub(crate) fn filling(spec: &RunSpec, draws: &Draws) -> String {
    let name = &spec.system.name;
    match draws.fills_alike {
        _ if draws.asks_filled => {
            // the first repeat fills them, unless they were filled before it
            let anew = if spec.taken_over.asks_filled_banks() { "" } else { " (--repeat-ingest fills anew for each)" };
            match draws.filled_apart {
                (0, _) => format!(
                    "banks: all repeats ask the same filled banks of {name}; what another filling would change is no part of the \
                     noise{anew}"
                ),
                (own, of) => format!(
                    "banks: repeats ask the same filled banks of {name}, but {own} of {of} that a repeat has filled itself, because \
                     they were not filled when it began; what filling changes cannot be told apart"
                ),
            }
        }
        true => match vector::remote_model(name, &spec.system.settings) {
            Some(model) => format!(
                "banks: {name} computes its memory from the stored texts and from embeddings of {}, which all repeats share; they are \
                 paid by whoever asks for them first, and repeats side by side pay some of them again",
                model.name
            ),
            None => format!(
                "banks: {name} computes its memory from the stored texts, which all repeats share; filling costs no call and makes \
                 the same memory each time"
            ),
        },
        false => format!(
            "banks: each repeat fills its own, for those of {name} belong to one run; what filling changes is a part of the noise"
        ),
    }
}

/// Why repeats say nothing.
pub(crate) fn nothing_draws(spec: &RunSpec) -> String {
    let what = if spec.judges.iter().any(ModelSpec::is_remote) { "the headline of this run" } else { "this run" };
    format!(
        "nothing of {what} is drawn: {} is computed, {} answers and {} grades the same each time; repeats are of use with a model \
         that answers or judges",
        spec.system.name,
        spec.who_answers(),
        spec.headline_metric()
    )
}

/// Votes on the answers of a run, by question id.
type Votes = HashMap<String, VotesOn>;

/// The questions of a run.
struct Questions {
    facts: RunFacts,
    /// Of a judge with several votes.
    votes: Votes,
    /// A number that is the same where all answers are.
    answers: u64,
}

impl Questions {
    fn new(metric: &str, top_k: u32) -> Self {
        Self { facts: RunFacts::new(metric, top_k), votes: Votes::new(), answers: 0 }
    }

    fn add(&mut self, question: &QuestionFacts, votes: Option<&VotesOn>) {
        self.votes.extend(votes.map(|on| (question.question_id.clone(), *on)));
        self.facts.add(question);
        let mut hasher = DefaultHasher::new();
        (&question.question_id, question.answer_hash).hash(&mut hasher);
        // a sum: runs are read in parts, and in any order
        self.answers = self.answers.wrapping_add(hasher.finish());
    }

    fn merge(&mut self, part: Self) {
        self.facts.merge(part.facts);
        self.votes.extend(part.votes);
        self.answers = self.answers.wrapping_add(part.answers);
    }
}

/// The questions of a run by a metric, and whether its judge has several votes on each.
async fn questions(store: &dyn Store, run: &RunRow, metric: &str) -> Result<(Questions, bool), CliError> {
    let judge = run.spec.judge_plan().metrics.iter().position(|name| name == metric);
    let by_task = match judge {
        Some(judge) if run.spec.votes > 1 => Some(votes_by_task(store, run, judge as u32).await?),
        _ => None,
    };
    let new = || Questions::new(metric, run.spec.system.top_k);
    let add = |all: &mut Questions, question: QuestionFacts| {
        all.add(&question, by_task.as_ref().and_then(|by_task| by_task.get(&question.task)));
    };
    let parts = read_facts(store, run, new, add, |part| part.facts.settle()).await?;
    let mut all = new();
    parts.into_iter().for_each(|part| all.merge(part));
    Ok((all, by_task.is_some()))
}

/// The votes of one of a run's judges, by the task of the question.
async fn votes_by_task(store: &dyn Store, run: &RunRow, judge: u32) -> Result<HashMap<TaskKey, VotesOn>, CliError> {
    let mut votes: HashMap<TaskKey, Vec<f64>> = HashMap::new();
    let mut after = None;
    loop {
        let page = store.steps(run.run_no, TaskKind::Judge, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some((last.task, last.step));
        for step in &page {
            if let StepFacts::Judged { score: Some(score), .. } = &step.facts
                && step.task.judge_no() == judge
            {
                votes.entry(step.task.question_of()).or_default().push(*score);
            }
        }
    }
    let of = |votes: Vec<f64>| {
        let n = votes.len() as f64;
        let mean = votes.iter().sum::<f64>() / n;
        let squares: f64 = votes.iter().map(|vote| (vote - mean).powi(2)).sum();
        VotesOn { mean, variance: squares / (n - 1.0).max(1.0), n: votes.len() as u32 }
    };
    Ok(votes.into_iter().map(|(task, votes)| (task, of(votes))).collect())
}

#[cfg(test)]
mod tests {
    use bench_proto::facts::{Outcome, QuestionIdentity};

    use super::*;

    fn spec() -> RunSpec {
        serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec")
    }

    #[test]
    fn equal_grades_are_one_draw_where_the_answers_are_equal_too() {
        let question = |id: &str, answer_hash: u64| {
            let identity = QuestionIdentity {
                task: TaskKey::question(0, 0),
                question_id: id.to_owned(),
                bank_id: "b".to_owned(),
                category: "any".to_owned(),
                facets: Default::default(),
            };
            QuestionFacts { answer_hash, ..QuestionFacts::without_steps(identity, Outcome::Scored) }
        };
        let answers = |parts: &[&[(&str, u64)]]| {
            let mut all = Questions::new("judge", 10);
            for part in parts {
                let mut of_part = Questions::new("judge", 10);
                part.iter().for_each(|&(id, answer)| of_part.add(&question(id, answer), None));
                all.merge(of_part);
            }
            all.answers
        };
        let whole = answers(&[&[("a", 1), ("b", 2)]]);
        assert_eq!(answers(&[&[("b", 2)], &[("a", 1)]]), whole, "in whatever parts and order");
        for others in [[("a", 1), ("b", 3)], [("a", 2), ("b", 1)], [("a", 1), ("c", 2)]] {
            assert_ne!(answers(&[&others]), whole, "{others:?}");
        }
        let mut spec = spec();
        spec.judges.iter_mut().for_each(|judge| "openai".clone_into(&mut judge.provider));
        let said = |alike: Alike| {
            let repeats = RunsOfGroup { id: RunId("g".to_owned()), runs: Vec::new() };
            let draws = Draws { answers: true, ..Draws::from_spec(&spec, true) };
            notes(&spec, &draws, alike, &repeats).join("\n")
        };
        assert!(said(Alike::Answers).contains("they are one draw"), "{}", said(Alike::Answers));
        let of_grades = said(Alike::Grades);
        assert!(of_grades.contains("equal to the last grade") && !of_grades.contains("one draw"), "{of_grades}");
    }

    #[test]
    fn embeddings_that_are_paid_are_no_filling_without_a_call() {
        let told = |name: &str, model: Option<&str>| {
            let mut spec = spec();
            name.clone_into(&mut spec.system.name);
            let model = model.map(|model| ("vector.model".to_owned(), serde_json::Value::from(model)));
            spec.system.settings = model.into_iter().collect();
            spec.limits.cache = CacheScope::default();
            filling(&spec, &Draws::from_spec(&spec, false))
        };
        let paid = told("vector", Some("text-embedding-3-small"));
        assert!(paid.contains("text-embedding-3-small") && paid.contains("paid by whoever asks"), "{paid}");
        for free in [told("bm25", None), told("vector", Some("hash"))] {
            assert!(free.contains("filling costs no call"), "{free}");
        }
    }

    #[test]
    fn a_judge_draws_where_it_gives_the_headline() {
        let spec = spec();
        let judges = |headline: Option<&str>, provider: &str| {
            let mut spec = RunSpec { headline: headline.map(str::to_owned), ..spec.clone() };
            spec.judges.iter_mut().for_each(|judge| provider.clone_into(&mut judge.provider));
            Draws::from_spec(&spec, true).judges
        };
        assert!(judges(None, "openai") && judges(Some("judge.tone"), "openai"));
        for headline in ["locomo-f1", "recall@10", "judge-2"] {
            assert!(!judges(Some(headline), "openai"), "{headline}");
        }
        assert!(!judges(None, "extractive"));
    }
}
