//! Runs to be compared: from the store, or from a folder with a report and its questions.
//!
//! In comes what a person names; out comes a [`LoadedRun`] with its settings and summary, which reads its questions when it is asked
//! ([`LoadedRun::facts`], [`LoadedRun::lines`]). Start reading at [`LoadedRun::named`]: a run of the store, the repeats of a group as
//! one run, or [`folder`], whose report says less than a store. Texts come last, and for flips alone ([`LoadedRun::fill`]).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use bench_aggregate::compare::{Member, RunFacts, Side};
use bench_proto::{
    comparison::{Flip, FlipSide},
    counting::CountingSpec,
    facts::{QuestionFacts, QuestionIdentity},
    ids::TaskKey,
    json_bound,
    metric::{MetricSpec, Scale},
    spec::{DatasetSpec, JudgingSpec, Limits, RunSpec, SPEC_VERSION, SampleSpec, ScorerSpec, SystemSpec, TakenOver},
    step::{HitLevel, Retrieval, StepText},
    summary::{QuestionLine, Summary, Verdict},
};
use bench_settings::bounded;
use bench_store::{RunRow, RunState, Store};
use bench_worker::banks::BankData;
use serde::{Deserialize, de::Error as _};

use crate::{
    app::App,
    exit::CliError,
    results::{self, judgements::Judgements, repeats::figures_of},
    standing::{find_run, group::RunsOfGroup},
};

/// A run with all that comparing needs.
pub(crate) struct LoadedRun {
    /// Effective settings; of a folder as far as its report says them.
    pub(crate) spec: RunSpec,
    /// The run's summary.
    pub(crate) summary: Summary,
    /// The runs that it is the mean of, or the one that it is.
    pub(crate) members: Vec<Member>,
    source: Source,
}

enum Source {
    Store(Box<RunRow>),
    /// Repeats of one run that have ended, or those of each of several cells: the first stands for what is not a figure.
    Repeats(Vec<Vec<RunRow>>),
    /// A `questions.jsonl`: read through whenever it is asked, line by line.
    Folder(PathBuf),
}

impl LoadedRun {
    /// A run of the store.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn of_row(app: &App, store: &dyn Store, row: RunRow) -> Result<Self, CliError> {
        let summary = results::summary_of(app, store, &row).await?;
        let spec = row.asked_spec().into_owned();
        let members = vec![Member::new(&spec, &summary, row.lineage.clone(), row.imported)];
        Ok(Self { spec, summary, members, source: Source::Store(Box::new(row)) })
    }

    /// What a person names: a run, or a folder or `questions.jsonl` when there is one. `like` lends a folder the settings that
    /// no report holds.
    ///
    /// # Errors
    /// Exit 2 with what to do.
    pub(crate) async fn named(
        app: &App,
        store: &dyn Store,
        selector: &str,
        like: Option<&RunSpec>,
    ) -> Result<Self, CliError> {
        let path = Path::new(selector);
        if path.is_dir() || (path.is_file() && selector.ends_with(".jsonl")) {
            return folder(path, like);
        }
        if let Some(group) = RunsOfGroup::find(store, selector).await? {
            return Self::of_repeats(app, store, group).await;
        }
        let row = find_run(store, selector).await?;
        Self::of_row(app, store, row).await
    }

    /// The repeats of a group that have ended, as one run.
    async fn of_repeats(app: &App, store: &dyn Store, group: RunsOfGroup) -> Result<Self, CliError> {
        let (id, name) = (group.id.to_string(), group.name());
        if group.is_matrix() {
            return Err(CliError::usage(format!(
                "{id} is a matrix: compare two of its runs, such as {id}-c1-r1 and {id}-c2-r1; `bench-coord report {id}` has all pairs"
            )));
        }
        let ended: Vec<RunRow> = group.runs.into_iter().filter(|run| run.state == RunState::Finished).collect();
        if ended.is_empty() {
            return Err(CliError::usage(format!(
                "no repeat of group {id} has ended; `bench-coord resume {id}` goes on with them"
            )));
        }
        let mean = figures_of(app, store, &ended).await?.figures.mean;
        let mut one = Self::of_cells(app, store, vec![ended], (id, name)).await?;
        // the figure that is shown, and held against a floor, is that of all of them
        let headline = &mut one.summary.headline;
        (headline.value, headline.ci95, headline.ci95_note) = (mean.value, mean.ci95, mean.ci95_note);
        (headline.benchmark_ci95, headline.benchmark_note) = (mean.benchmark_ci95, mean.benchmark_note);
        Ok(one)
    }

    /// The finished runs of some cells as one: its figures are the means over the cells, each of which is the mean of its runs,
    /// question by question, and all else is that of the first run.
    ///
    /// # Errors
    /// What the store meets; exit 2 for no runs.
    pub(crate) async fn of_cells(
        app: &App,
        store: &dyn Store,
        cells: Vec<Vec<RunRow>>,
        (id, name): (String, Option<String>),
    ) -> Result<Self, CliError> {
        let first = cells.iter().flatten().next().cloned();
        let first = first.ok_or_else(|| CliError::usage(format!("{id} has no run that ended")))?;
        let mut one = Self::of_row(app, store, first).await?;
        for other in cells.iter().flatten().skip(1) {
            let loaded = Self::of_row(app, store, other.clone()).await?;
            one.members.extend(loaded.members);
            let run = &loaded.summary.run;
            if run.verdict == Verdict::Invalid {
                one.summary.run.verdict = Verdict::Invalid;
                one.summary.run.reasons.extend(run.reasons.iter().map(|reason| format!("{}: {reason}", other.run_id)));
            }
        }
        (one.summary.run.id, one.summary.run.name) = (id, name);
        Ok(Self { source: Source::Repeats(cells), ..one })
    }

    /// How many repeats it is the mean of.
    pub(crate) fn repeats(&self) -> usize {
        match &self.source {
            Source::Repeats(cells) => cells.iter().map(Vec::len).sum(),
            Source::Store(_) | Source::Folder(_) => 1,
        }
    }

    /// The run's questions by a metric; of several runs their mean.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn facts(&self, store: &dyn Store, metric: &str, top_k: u32) -> Result<RunFacts, CliError> {
        self.facts_of_each(store, metric, top_k).await.map(RunFacts::mean_of_cells)
    }

    /// The same of each run that it is the mean of, by their cells.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn facts_of_each(
        &self,
        store: &dyn Store,
        metric: &str,
        top_k: u32,
    ) -> Result<Vec<Vec<RunFacts>>, CliError> {
        let new = || RunFacts::new(metric, top_k).asking_for(self.spec.system.top_k);
        match &self.source {
            Source::Folder(questions) => {
                let (mut facts, mut seen) = (new(), HashSet::new());
                each_line(questions, |line| {
                    let line: QuestionLine = parsed(line)?;
                    check_line(&line)?;
                    if !seen.insert(line.question_id.clone()) {
                        return Err(serde_json::Error::custom(format!(
                            "question {} stands in a line before already",
                            line.question_id
                        )));
                    }
                    facts.add(&facts_of(&line));
                    Ok(())
                })?;
                Ok(vec![vec![facts]])
            }
            Source::Store(row) => Ok(vec![vec![stored_facts(store, row, new).await?]]),
            Source::Repeats(cells) => {
                let mut all = Vec::with_capacity(cells.len());
                for rows in cells {
                    let mut of_cell = Vec::with_capacity(rows.len());
                    for row in rows {
                        of_cell.push(stored_facts(store, row, new).await?);
                    }
                    all.push(of_cell);
                }
                Ok(all)
            }
        }
    }

    /// As a side of a comparison.
    pub(crate) fn side<'a>(&'a self, facts: &'a RunFacts) -> Side<'a> {
        Side { spec: &self.spec, summary: &self.summary, facts, members: &self.members }
    }

    /// The run in the store, of several the first; none of a folder.
    pub(crate) fn row(&self) -> Option<&RunRow> {
        match &self.source {
            Source::Store(row) => Some(row),
            Source::Repeats(cells) => cells.iter().flatten().next(),
            Source::Folder(_) => None,
        }
    }

    /// The lines of these flips, by the ids of their questions.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn lines(
        &self,
        store: &dyn Store,
        flips: &[Flip],
    ) -> Result<HashMap<String, QuestionLine>, CliError> {
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for flip in flips {
            wanted.entry(flip.bank_id.clone()).or_default().insert(flip.question_id.clone());
        }
        if let Some(row) = self.row() {
            return results::questions_named(store, row, &wanted).await;
        }
        let Source::Folder(questions) = &self.source else { return Ok(HashMap::new()) };
        let ids: BTreeSet<&str> = wanted.values().flatten().map(String::as_str).collect();
        let mut lines = HashMap::with_capacity(flips.len());
        each_line(questions, |text| {
            let Named { question_id } = parsed(text)?;
            if ids.contains(&*question_id) {
                lines.insert(question_id.into_owned(), parsed(text)?);
            }
            Ok(())
        })?;
        Ok(lines)
    }

    /// Fills one side of flips with what the run stored of them, and their question and gold.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn fill(
        &self,
        store: &dyn Store,
        flips: &mut [Flip],
        side: fn(&mut Flip) -> &mut FlipSide,
    ) -> Result<(), CliError> {
        if let Some(row) = self.row() {
            return fill_from_store(store, row, flips, side).await;
        }
        let Source::Folder(questions) = &self.source else { return Ok(()) };
        let places: HashMap<String, usize> =
            flips.iter().enumerate().map(|(place, flip)| (flip.question_id.clone(), place)).collect();
        if places.is_empty() {
            return Ok(());
        }
        each_line(questions, |text| {
            let Named { question_id } = parsed(text)?;
            let Some(flip) = places.get(question_id.as_ref()).map(|place| &mut flips[*place]) else { return Ok(()) };
            let line: QuestionLine = parsed(text)?;
            flip.question.get_or_insert(line.question);
            flip.gold = flip.gold.take().or(line.gold);
            let of = side(flip);
            of.answer = line.answer;
            of.judgements = line.judgements;
            Ok(())
        })
    }
}

/// The questions of a stored run.
async fn stored_facts(
    store: &dyn Store,
    row: &RunRow,
    new: impl Fn() -> RunFacts + Sync + Copy,
) -> Result<RunFacts, CliError> {
    let add = |part: &mut RunFacts, of_question| part.add(&of_question);
    let mut parts = results::read_facts(store, row, new, add, RunFacts::settle).await?.into_iter();
    let mut facts = parts.next().unwrap_or_else(new);
    parts.for_each(|part| facts.merge(part));
    Ok(facts)
}

async fn fill_from_store(
    store: &dyn Store,
    run: &RunRow,
    flips: &mut [Flip],
    side: fn(&mut Flip) -> &mut FlipSide,
) -> Result<(), CliError> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, flip) in flips.iter().enumerate() {
        places.entry(flip.bank_id.clone()).or_default().push(place);
    }
    for row in store.banks(run.run_no, None).await? {
        let Some(of_bank) = places.remove(&row.bank_id) else { continue };
        let bank = BankData::read(store, row.clone()).await?;
        let mut wanted: Vec<(TaskKey, usize)> = Vec::with_capacity(of_bank.len());
        for place in of_bank {
            let flip = &mut flips[place];
            let Some(question) = bank.questions().iter().find(|q| q.question_id == flip.question_id) else { continue };
            flip.question.get_or_insert_with(|| question.text.clone());
            flip.gold = flip.gold.take().or_else(|| bank.gold(&question.question_id).map(|g| g.gold.text()));
            wanted.push((TaskKey::question(row.bank_no, question.index), place));
        }
        wanted.sort_unstable();
        let keys: Vec<TaskKey> = wanted.iter().map(|(key, _)| *key).collect();
        let mut judgements = Judgements::read(store, run, &keys).await?;
        for (task, _, text) in store.question_texts(run.run_no, &keys).await? {
            match (wanted.binary_search_by_key(&task, |(key, _)| *key), text) {
                (Ok(at), StepText::Answered { answer, .. }) => side(&mut flips[wanted[at].1]).answer = Some(answer),
                (_, text @ (StepText::Judged { .. } | StepText::JudgedPart { .. })) => judgements.see(task, text),
                _ => {}
            }
        }
        for (key, place) in wanted {
            side(&mut flips[place]).judgements = judgements.of_question(key);
        }
    }
    Ok(())
}

/// A folder with `report.json` and `questions.jsonl`, or the latter alone.
fn folder(path: &Path, like: Option<&RunSpec>) -> Result<LoadedRun, CliError> {
    let (questions, report) = if path.is_dir() {
        (path.join("questions.jsonl"), path.join("report.json"))
    } else {
        (path.to_owned(), path.with_file_name("report.json"))
    };
    let read = |path: &Path| {
        bounded::text(path, bounded::RESULTS)
            .map_err(|e| CliError::usage(format!("{}: {e}", path.display())).because(e))
    };
    let summary: Summary = json_bound::from_str(&read(&report)?, json_bound::REPORT).map_err(|e| {
        CliError::usage(format!("{} is no report that this build can read: {e}", report.display())).because(e)
    })?;
    // whether it can be read is said before anything else is done
    drop(open(&questions)?);
    let spec = match like {
        Some(like) => spec_like(like, &summary),
        None => spec_like(&spec_of(&summary), &summary),
    };
    let members = vec![Member::new(&spec, &summary, format!("folder:{}", summary.run.id), false)];
    Ok(LoadedRun { spec, summary, members, source: Source::Folder(questions) })
}

fn open(path: &Path) -> Result<BufReader<File>, CliError> {
    File::open(path).map(BufReader::new).map_err(|e| CliError::usage(format!("{}: {e}", path.display())).because(e))
}

/// Reads the questions of a file one after the other: a large run is not held as a whole.
///
/// # Errors
/// Exit 2 naming the line.
fn each_line(path: &Path, mut take: impl FnMut(&str) -> serde_json::Result<()>) -> Result<(), CliError> {
    let (mut file, mut text) = (open(path)?, String::new());
    for number in 1_u64.. {
        let wrong = |e: &dyn std::fmt::Display| CliError::usage(format!("{}: line {number}: {e}", path.display()));
        text.clear();
        if bounded::line(&mut file, bounded::RESULTS, &mut text).map_err(|e| wrong(&e).because(e))? == 0 {
            break;
        }
        take(text.trim_end_matches(['\n', '\r'])).map_err(|e| wrong(&e).because(e))?;
    }
    Ok(())
}

/// Refuses a line whose scores are none: a mean of such would be no score either.
fn check_line(line: &QuestionLine) -> serde_json::Result<()> {
    match line.scores.iter().find(|(_, score)| !(0.0..=1.0).contains(*score)) {
        Some((metric, score)) => Err(serde_json::Error::custom(format!(
            "the score of question {} by '{metric}' is {score}, and not between 0 and 1",
            line.question_id
        ))),
        None => Ok(()),
    }
}

/// The name of a question's line: all that is looked at of most of them.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    question_id: Cow<'a, str>,
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a str) -> serde_json::Result<T> {
    json_bound::from_str(line, json_bound::REPORT)
}

/// The settings of a run of which there is a report alone; versions and hashes that it does not hold are those of nobody.
fn spec_of(summary: &Summary) -> RunSpec {
    let said = &summary.spec;
    let scorer = |name: &String| {
        let of_scorer = summary.scores.iter().filter(|score| score.metric == *name);
        let metrics = of_scorer.map(|score| {
            let scale = Scale { better: score.better, threshold: score.pass_threshold, beyond: score.pass_beyond };
            MetricSpec { name: score.metric.clone(), scale }
        });
        let version = version_of(summary, name).unwrap_or(UNKNOWN);
        ScorerSpec { name: name.clone(), version, metrics: metrics.collect(), ..ScorerSpec::default() }
    };
    let by_category = summary.scores.first().map_or(&[][..], |score| &score.by_category[..]);
    let population = by_category.iter().filter_map(|score| Some((score.category.clone(), score.population?)));
    let nobody = crate::planning::scenario::nobody;
    RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec { population: population.collect(), ..DatasetSpec::default() },
        sample: SampleSpec::default(),
        system: SystemSpec {
            name: String::new(),
            version: String::new(),
            top_k: said.top_k,
            settings: BTreeMap::new(),
        },
        scenario: said.scenario,
        recalls: said.recalls,
        answerer: nobody(),
        judges: said.judges.iter().map(|_| nobody()).collect(),
        votes: said.votes.unwrap_or(1),
        judging: JudgingSpec::default(),
        scorers: said.scorers.iter().map(scorer).collect(),
        canaries: None,
        stop: None,
        lists: false,
        counting: counting_of(summary),
        headline: None,
        limits: Limits::default(),
        taken_over: TakenOver::default(),
    }
}

/// The settings that a report holds; what it does not hold is taken as equal.
fn spec_like(like: &RunSpec, summary: &Summary) -> RunSpec {
    // whom it took anything over from stands in no report
    let mut spec = RunSpec { taken_over: TakenOver::default(), ..like.clone() };
    if spec.fingerprint().hex() == summary.run.fingerprint {
        return spec;
    }
    let (dataset, said) = (&summary.dataset, &summary.spec);
    spec.dataset.name.clone_from(&dataset.name);
    spec.dataset.version.clone_from(&dataset.version);
    spec.dataset.sha256.clone_from(&dataset.sha256);
    spec.dataset.profile.methodology = dataset.methodology;
    spec.dataset.profile.headline = summary.headline_part();
    spec.sample.preset.clone_from(&dataset.sample.preset);
    spec.sample.signature.clone_from(&dataset.sample.signature);
    spec.sample.stratified = dataset.sample.stratified;
    spec.sample.census = dataset.sample.census;
    spec.system.name.clone_from(&said.system);
    spec.system.version.clone_from(&said.system_version);
    spec.system.settings.clone_from(&said.system_settings);
    spec.system.top_k = said.top_k;
    (spec.scenario, spec.recalls) = (said.scenario, said.recalls);
    let named = |model: &mut bench_proto::spec::ModelSpec, display: &str| {
        if model.display() != display {
            let (provider, name) = display.split_once(':').unwrap_or((display, ""));
            provider.clone_into(&mut model.provider);
            name.clone_into(&mut model.name);
        }
    };
    named(&mut spec.answerer, &said.answerer);
    spec.answerer.params.clone_from(&said.answerer_params);
    spec.judges.truncate(said.judges.len());
    for (judge, display) in spec.judges.iter_mut().zip(&said.judges) {
        named(judge, display);
    }
    for (judge, params) in spec.judges.iter_mut().zip(&said.judge_params) {
        judge.params.clone_from(params);
    }
    spec.dataset.profile.only_rubric.clone_from(&said.rubric);
    spec.scorers.retain(|scorer| said.scorers.contains(&scorer.name));
    for scorer in &mut spec.scorers {
        match version_of(summary, &scorer.name) {
            Some(version) if scorer.version != UNKNOWN || changed(&scorer.name) => scorer.version = version,
            _ => {}
        }
    }
    spec.votes = said.votes.unwrap_or(spec.votes);
    spec.counting = counting_of(summary);
    spec.headline = Some(summary.headline.metric.clone());
    spec
}

/// Somebody else's counting that a report is held to.
fn counting_of(summary: &Summary) -> Option<CountingSpec> {
    summary.counting.as_ref().map(|counted| counted.counting.clone())
}

/// Reports say versions of scorers from this one of theirs on.
const SAYS_VERSIONS: u32 = 4;
/// The version of a scorer of which nothing says it.
const UNKNOWN: u32 = 0;
/// Figures of recalls that are divided by k in version 2, and were by the number of hits before.
const DIVIDE_BY_K: [&str; 2] = ["precision@", "session-precision@"];

/// Whether a scorer means something else since reports say versions.
fn changed(scorer: &str) -> bool {
    DIVIDE_BY_K.iter().any(|figure| scorer.starts_with(figure))
}

/// The version in which a scorer made the scores of a report, as far as the report lets it be known.
fn version_of(summary: &Summary, scorer: &str) -> Option<u32> {
    let known = summary.schema_version >= SAYS_VERSIONS || changed(scorer);
    known.then(|| summary.spec.scorer_versions.get(scorer).copied().unwrap_or(1))
}

/// What a line says of its question. A recall without any hit is known by the evidence that it was looked through for.
fn facts_of(line: &QuestionLine) -> QuestionFacts {
    let hits =
        line.retrieved.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level.map(HitLevel::from)));
    let identity = QuestionIdentity {
        task: TaskKey::question(0, 0),
        question_id: line.question_id.clone(),
        bank_id: line.bank_id.clone(),
        category: line.category.clone(),
        facets: line.facets.clone(),
    };
    QuestionFacts {
        scores: line.scores.iter().map(|(metric, score)| (metric.clone(), *score)).collect(),
        retrieval: (!line.retrieved.is_empty() || !line.found.is_empty())
            .then(|| Retrieval::from_hits(hits, &line.evidence, &line.evidence_sessions)),
        hits: u32::try_from(line.retrieved.len()).ok(),
        top1_score: line.retrieved.first().and_then(|hit| hit.score),
        attempts: line.attempts,
        ..QuestionFacts::without_steps(identity, line.outcome)
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        counting::CountingSummary,
        retrieval::RetrievalMetrics,
        summary::{FoundLine, PhaseUsageLine, TimingLine},
    };
    use serde_json::{Value, json};

    use super::*;

    /// The line of a question with this evidence, of which these hits were recalled.
    fn line(evidence: &[&str], hits: Option<&[&str]>) -> QuestionLine {
        let evidence: Vec<String> = evidence.iter().map(|id| (*id).to_owned()).collect();
        let found = hits.map(|hits| {
            let placed = hits.iter().map(|id| (*id, "D1", Some(HitLevel::Turn)));
            FoundLine::of_levels(&Retrieval::from_hits(placed, &evidence, &[]))
        });
        let hit = |id: &&str| json!({"id": id, "session_id": "D1", "score": null, "text": "", "level": "turn"});
        let retrieved: Vec<Value> = hits.unwrap_or_default().iter().map(hit).collect();
        serde_json::from_value(json!({
            "question_id": "b:1", "bank_id": "b", "category": "temporal", "question": "When?", "gold": "in May",
            "answer": "in May", "outcome": "scored", "scores": {"judge": 1.0}, "retrieved": retrieved, "evidence": evidence,
            "found": found.unwrap_or_default(), "citations": [], "failures": [], "judgements": [], "error": null,
            "usage": PhaseUsageLine::default(), "timing_ms": TimingLine::default(), "trace_id": "0".repeat(32), "attempts": 1,
        }))
        .expect("a line of questions.jsonl")
    }

    #[test]
    fn a_folder_says_its_own_votes_and_its_own_counting() {
        let mut like: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        let mut summary: Summary =
            serde_json::from_str(include_str!("../../../proto/golden/report.v4.json")).expect("a report");
        let named = |name: &str| CountingSpec { name: name.to_owned(), ..CountingSpec::default() };
        (like.votes, like.counting) = (3, Some(named("theirs")));
        (summary.spec.votes, summary.counting) = (Some(1), None);
        let of = |spec: RunSpec| (spec.votes, spec.counting.map(|counting| counting.name));
        assert_eq!(of(spec_like(&like, &summary)), (1, None));
        summary.counting = Some(CountingSummary {
            counting: named("others"),
            value: Some(0.5),
            sd: None,
            runs: 1,
            n: 2,
            failed: 0,
            left_out: 0,
            by_category: Vec::new(),
        });
        for spec in [spec_like(&like, &summary), spec_of(&summary)] {
            assert_eq!(of(spec), (1, Some("others".to_owned())));
        }
        summary.spec.votes = None;
        assert_eq!(of(spec_like(&like, &summary)).0, 3, "what a report does not say is taken as equal");
    }

    #[test]
    fn a_recall_that_found_nothing_is_one_and_none_is_none() {
        let recall = |evidence: &[&str], hits: Option<&[&str]>| {
            let retrieval = facts_of(&line(evidence, hits)).retrieval?;
            RetrievalMetrics::at(&retrieval.turn, 10).map(|metrics| metrics.recall)
        };
        assert_eq!(recall(&["D1:1"], Some(&["D1:2", "D1:1"])), Some(1.0));
        assert_eq!(recall(&["D1:1"], Some(&["D1:2"])), Some(0.0));
        assert_eq!(recall(&["D1:1"], Some(&[])), Some(0.0), "as in the store");
        assert_eq!(recall(&["D1:1"], None), None, "nothing was recalled");
        assert_eq!(recall(&[], Some(&[])), None, "nothing was to be found");
    }
}
