//! `import`: results made elsewhere become a finished run, so that other people's numbers get our intervals.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
};

use bench_datasets::Dataset;
use bench_grading::scorers::{self, ScoreCase, Scorer, abstention::is_abstention};
use bench_proto::{
    dataset::{BankContent, GoldRecord, Question, QuestionOutline, StreamEntry},
    facts::{Outcome, PhaseTimes, PhaseUsage, QuestionFacts, answer_hash},
    failure::Failure,
    ids::{RunId, TaskKey},
    spec::{DatasetSpec, IMPORTED_SYSTEM, Limits, ModelSpec, RunSpec, SPEC_VERSION, ScorerSpec, SystemSpec},
    step::{HitLevel, PlacedBy, Retrieval, RetrievedHit, StepNo, StepText},
};
use bench_store::{NewRun, Right, RunState};

use crate::{
    app::App,
    cli::ImportArgs,
    exit::{CliError, CliResult},
    import::{
        ImportError,
        fields::{self, Line},
        grades::{Grade, Reading},
        read,
        resolve::{KnownBank, KnownQuestion, Resolver},
    },
    local::LOCAL_DOMAIN,
    out, planner, planning, results,
    runs::current_user,
};

/// Items of a prepared bank; the first is its content.
const ITEMS_OF_BANK: usize = 3;
/// Metric of grades that name none.
const UNNAMED_METRIC: &str = "imported";

/// Lines by the dataset's id of their question.
type Lines = BTreeMap<String, Line>;

/// Runs the verb.
pub(super) async fn run(app: &App, args: &ImportArgs) -> CliResult {
    let in_file = |e: ImportError| CliError::usage(format!("{}: {e}", args.answers.display()));
    let run_id = args.naming.id()?.unwrap_or_else(RunId::fresh);
    let name = args
        .sample
        .dataset
        .clone()
        .ok_or_else(|| CliError::usage("give --dataset NAME: the dataset that the answers are for"))?;
    let dataset = planning::open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    let mut banks = known_banks(dataset.as_ref())?;
    let (mut lines, metric) = read_lines(args, &banks).map_err(in_file)?;
    name_categories(dataset.manifest().categories, &mut lines);
    add_texts(dataset.as_ref(), &mut banks, &lines)?;
    let mut lines = by_question(&banks, lines).map_err(in_file)?;
    drop_gold(dataset.as_ref(), &mut lines)?;
    let mut request = planning::sample_request(app, &args.sample)?;
    if args.subset {
        request.preset = None;
        request.question_ids = lines.keys().cloned().collect();
    } else if args.sample.preset.is_none() && request.preset.is_some() {
        // what was made elsewhere is a whole run unless it is said to be a part
        request.preset = Some(bench_plan::Preset::Full);
    }
    request.sizes = planning::preset_sizes(&name)?;
    let sample = planning::take_sample(&dataset, request).await?;
    let manifest = dataset.manifest();
    let scorers: Vec<&'static dyn Scorer> = manifest
        .scorers
        .iter()
        .map(|s| scorers::registry::find(s))
        .collect::<Result<_, _>>()
        .map_err(|e| CliError::usage(e.to_string()))?;
    let scorer_specs = scorers.iter().map(|s| ScorerSpec { name: s.name().to_owned(), version: s.version() }).collect();
    let nobody = ModelSpec {
        provider: "none".to_owned(),
        name: String::new(),
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 0,
    };
    let spec = RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec {
            path: args.sample.dataset_path.clone(),
            ..planning::dataset_spec(dataset.as_ref(), &sample)?
        },
        sample: sample.spec.clone(),
        system: SystemSpec {
            name: system_of(args),
            version: IMPORTED_SYSTEM.to_owned(),
            top_k: app.settings().run.top_k,
            settings: BTreeMap::new(),
        },
        answerer: nobody,
        judges: Vec::new(),
        votes: 1,
        scorers: scorer_specs,
        headline: metric.clone(),
        limits: Limits::default(),
    };
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    let headline = spec.headline_metric();
    let new_run = NewRun {
        run_id: run_id.clone(),
        name: args.naming.name.clone(),
        tags: args.naming.tag.clone(),
        user: current_user(),
        spec,
        lineage: run_id.0.clone(),
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: true,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: None,
        waits: false,
    };
    results::check_writable(&args.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0)))?;

    // everything is scored before anything is written: a bad line starts nothing
    let banks = planning::banks_in_order(&sample);
    let phrases = &new_run.spec.dataset.abstention_phrases;
    let mut left: HashMap<&str, &Line> = lines.iter().map(|(id, line)| (id.as_str(), line)).collect();
    let mut prepared = planner::prepare(dataset.as_ref(), &banks, 0, None, usize::MAX)?;
    let mut imported = Vec::with_capacity(lines.len());
    for ((bank_no, bank), content) in (0..).zip(&prepared.parts).zip(prepared.items.iter().step_by(ITEMS_OF_BANK)) {
        let known = KnownIds::read(&content.bytes)?;
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            if let Some(line) = left.remove(question.question_id.as_str()) {
                let task = TaskKey::question(bank_no, question.index);
                let parts = (&known, bank.bank_id.as_str(), question, gold);
                imported.push(grade(task, parts, line, metric.as_deref(), &scorers, phrases));
            }
        }
    }
    if let Some((id, line)) = left.into_iter().min_by_key(|(id, _)| *id) {
        let problem =
            format!("question '{id}' is not in the sample of {name}; leave the sample's flags out, or the line");
        return Err(in_file(ImportError::at(&line.place, problem)));
    }
    let run_no = store.create_run(&new_run).await?;
    store.put_items(&std::mem::take(&mut prepared.items)).await?;
    store.add_banks(run_no, &prepared.banks).await?;
    store.import_results(run_no, &headline, &imported).await?;
    store.finish_plan(run_no).await?;
    store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
    results::finish(app, store.as_ref(), run_no, args.json, args.output_dir.as_deref()).await
}

/// Names of files and folders that say nothing about whose results are in them.
const GENERIC: [&str; 14] = [
    "answers",
    "data",
    "eval",
    "evaluation",
    "graded",
    "grades",
    "judged",
    "locomo",
    "output",
    "outputs",
    "predictions",
    "questions",
    "results",
    "scores",
];

/// The memory system that the answers are of: as it was named, else after the file, so that results of several systems do not
/// pass for those of one.
fn system_of(args: &ImportArgs) -> String {
    if let Some(named) = &args.system {
        return named.clone();
    }
    let derived = system_from(&args.answers.canonicalize().unwrap_or_else(|_| args.answers.clone()));
    out::note(&format!(
        "no --system NAME is given: the results count as those of '{derived}', after the file; runs with one name are one system"
    ));
    derived
}

/// A system's name from a path: the file's name without its endings, behind the folder's where the file's says nothing.
fn system_from(path: &Path) -> String {
    let clean = |name: &str| {
        let fine = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = name.chars().map(fine).collect();
        name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    };
    let mut names = path.iter().rev().filter_map(|name| name.to_str());
    let file = names.next().unwrap_or_default();
    let stem = clean(file.split_once('.').map_or(file, |(stem, _)| if stem.is_empty() { file } else { stem }));
    let says =
        |stem: &str| stem.split('-').any(|word| !GENERIC.contains(&word) && !word.chars().all(|c| c.is_ascii_digit()));
    if says(&stem) {
        return stem;
    }
    let folder = names.next().map(clean).filter(|name| !name.is_empty());
    let parts: Vec<String> = folder.into_iter().chain((!stem.is_empty()).then_some(stem)).collect();
    if parts.is_empty() { IMPORTED_SYSTEM.to_owned() } else { parts.join("-") }
}

/// Reads all lines, and the metric when they bring grades of their own.
fn read_lines(args: &ImportArgs, banks: &[KnownBank]) -> Result<(Vec<Line>, Option<String>), ImportError> {
    if args.scale.is_nan() || args.scale <= 0.0 {
        return Err(ImportError::file(format!("--scale {} is not above 0", args.scale)));
    }
    let reading = Reading {
        score_field: args.score_field.clone(),
        scale: args.scale,
        reduce: args.reduce,
        metric: args.metric.clone(),
    };
    let resolver = Resolver::new(banks);
    let records = read::records(&args.answers, &|name| resolver.is_question(name), u64::from(args.max_mib) << 20)?;
    let lines: Vec<Line> = records.iter().map(|record| fields::line(record, &reading)).collect::<Result<_, _>>()?;
    if lines.iter().all(|line| line.grade == Grade::None) {
        return Ok((lines, None));
    }
    say_fields(&lines);
    let mut metric = args.metric.clone();
    for line in &lines {
        let name = line.metric.as_deref().unwrap_or(UNNAMED_METRIC);
        match (&metric, line.grade) {
            (_, Grade::None) => {
                let problem = "no score, but other lines have one: give it to all lines or to none";
                return Err(ImportError::at(&line.place, problem));
            }
            (Some(known), Grade::Score(_)) if args.metric.is_none() && known != name => {
                return Err(ImportError::at(&line.place, format!("metric '{name}', but earlier lines have '{known}'")));
            }
            (None, Grade::Score(_)) => metric = Some(name.to_owned()),
            _ => {}
        }
    }
    Ok((lines, Some(metric.unwrap_or_else(|| UNNAMED_METRIC.to_owned()))))
}

/// Published files number categories from 1, in the order in which the dataset lists them.
fn name_categories(categories: &[(&str, u64)], lines: &mut [Line]) {
    let named = |number: usize| categories.get(number.checked_sub(1)?).map(|(name, _)| (*name).to_owned());
    for category in lines.iter_mut().filter_map(|line| line.category.as_mut()) {
        if let Some(name) = category.parse().ok().and_then(named) {
            *category = name;
        }
    }
}

/// Says which fields were taken for the grade: a file may have several.
fn say_fields(lines: &[Line]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    lines.iter().filter_map(|line| line.graded_by.as_deref()).for_each(|field| *counts.entry(field).or_default() += 1);
    if !counts.is_empty() {
        let fields: Vec<String> = counts.iter().map(|(field, n)| format!("{field} ({n})")).collect();
        out::note(&format!("grades were read from {}; --score-field names another field", fields.join(", ")));
    }
}

/// The dataset's questions, without their texts.
fn known_banks(dataset: &dyn Dataset) -> Result<Vec<KnownBank>, CliError> {
    let bank = |bank| {
        let outline = dataset.outline(bank)?;
        let known = |q: QuestionOutline| KnownQuestion { id: q.question_id, text: String::new(), category: q.category };
        Ok(KnownBank { bank_id: outline.bank_id, questions: outline.questions.into_iter().map(known).collect() })
    };
    (0..dataset.bank_count()).map(bank).collect()
}

/// Adds the texts when a line cannot be found by its id alone.
fn add_texts(dataset: &dyn Dataset, banks: &mut [KnownBank], lines: &[Line]) -> Result<(), CliError> {
    let ids: HashSet<&str> = banks.iter().flat_map(|bank| bank.questions.iter().map(|q| q.id.as_str())).collect();
    if lines.iter().all(|line| line.id.as_deref().is_some_and(|id| ids.contains(id))) {
        return Ok(());
    }
    for (place, bank) in banks.iter_mut().enumerate() {
        for (known, question) in bank.questions.iter_mut().zip(dataset.bank(place)?.questions) {
            known.text = question.text;
        }
    }
    Ok(())
}

/// A file that keeps the gold in the field `answer` and no answer at all: what is the gold on nearly every line was not answered
/// by anybody, and must not be scored as if it had been.
fn drop_gold(dataset: &dyn Dataset, lines: &mut Lines) -> Result<(), CliError> {
    if lines.is_empty() || !lines.values().all(|line| line.may_be_gold && line.grade != Grade::None) {
        return Ok(());
    }
    let mut same = 0;
    for bank in 0..dataset.bank_count() {
        for gold in dataset.bank(bank)?.gold {
            let answer = lines.get(&gold.question_id).and_then(|line| line.answer.as_deref());
            same += usize::from(answer.is_some_and(|answer| answer.trim() == gold.gold.text().trim()));
        }
    }
    if same * 10 >= lines.len() * 9 {
        out::note("the field 'answer' holds the expected answers: the grades are imported without answers");
        lines.values_mut().for_each(|line| line.answer = None);
    }
    Ok(())
}

/// Lines by question, each question once.
fn by_question(banks: &[KnownBank], lines: Vec<Line>) -> Result<Lines, ImportError> {
    let mut resolver = Resolver::new(banks);
    let mut found = Lines::new();
    for line in lines {
        let id = resolver.resolve(&line)?;
        if let Some(earlier) = found.get(&id) {
            return Err(ImportError::at(&line.place, format!("question '{id}' stands in {} already", earlier.place)));
        }
        found.insert(id, line);
    }
    Ok(found)
}

type Graded = (QuestionFacts, Vec<(StepNo, StepText)>);

/// Ids of what a bank was given.
struct KnownIds {
    sessions: HashSet<String>,
    /// Turn or memory → its session.
    session_of: HashMap<String, String>,
}

impl KnownIds {
    /// Those of a bank's content as it is stored.
    fn read(content: &[u8]) -> Result<Self, CliError> {
        let content: BankContent = serde_json::from_slice(content)
            .map_err(|e| CliError::infrastructure(format!("a bank that was just prepared cannot be read: {e}")))?;
        let mut known = Self { sessions: HashSet::new(), session_of: HashMap::new() };
        for entry in content.entries {
            match entry {
                StreamEntry::Session(session) => {
                    let turns = session.turns.into_iter().map(|turn| (turn.id, session.id.clone()));
                    known.session_of.extend(turns);
                    known.sessions.insert(session.id);
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    known.session_of.insert(memory.id.clone(), memory.id);
                }
                StreamEntry::Update { memory: None, .. } => {}
            }
        }
        Ok(known)
    }

    fn hit(&self, id: &str) -> RetrievedHit {
        let by_name = || id.split_once(':').map_or(id, |(session, _)| session).to_owned();
        let level = match (self.session_of.contains_key(id), self.sessions.contains(id)) {
            (true, _) => HitLevel::Turn,
            (false, true) => HitLevel::Session,
            (false, false) => HitLevel::Unknown,
        };
        RetrievedHit {
            id: id.to_owned(),
            session_id: self.session_of.get(id).cloned().unwrap_or_else(by_name),
            placed_by: (level != HitLevel::Unknown).then_some(PlacedBy::Id),
            level: Some(level),
            ..RetrievedHit::default()
        }
    }
}

fn grade(
    task: TaskKey,
    (known, bank_id, question, gold): (&KnownIds, &str, &Question, &GoldRecord),
    line: &Line,
    metric: Option<&str>,
    scorers: &[&'static dyn Scorer],
    phrases: &[String],
) -> Graded {
    let mut scores = Vec::new();
    if let (Grade::Score(score), Some(metric)) = (line.grade, metric) {
        scores.push((metric.to_owned(), score));
    }
    let mut texts = Vec::new();
    if let Some(answer) = &line.answer {
        let case = ScoreCase { prediction: answer, gold: Some(&gold.gold), category: &question.category };
        scores.extend(scorers.iter().filter_map(|s| Some((s.name().to_owned(), s.score(&case)?))));
        texts.push((StepNo::ANSWER, StepText::Answered { answer: answer.clone(), raw: None, citations: Vec::new() }));
    }
    let retrieval = line.retrieved.as_ref().map(|ids| {
        let hits: Vec<RetrievedHit> = ids.iter().map(|id| known.hit(id)).collect();
        let placed = hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
        let retrieval = Retrieval::of(placed, &gold.evidence_turns, &gold.evidence_sessions);
        texts.push((StepNo::RECALL, StepText::Recalled { hits }));
        retrieval
    });
    let failed = line.grade == Grade::Failed;
    if failed {
        scores.clear();
    }
    let abstained = line.answer.as_ref().is_some_and(|answer| is_abstention(answer, phrases));
    let answer_hash = line.answer.as_deref().map_or(0, answer_hash);
    let facts = QuestionFacts {
        task,
        question_id: question.question_id.clone(),
        bank_id: bank_id.to_owned(),
        category: question.category.clone(),
        outcome: match (failed, abstained) {
            (true, _) => Outcome::InfraError,
            (false, true) => Outcome::Abstained,
            (false, false) => Outcome::Scored,
        },
        scores,
        retrieval,
        hits: line.retrieved.as_ref().and_then(|ids| u32::try_from(ids.len()).ok()),
        top1_score: None,
        empty_context: false,
        context_bytes: None,
        judge_in_doubt: false,
        finish: None,
        answer_hash,
        times: PhaseTimes::default(),
        usage: PhaseUsage::default(),
        attempts: 0,
        failure: failed.then(|| Failure::permanent("imported", "the file has no grade for this question")),
        kept: None,
    };
    (facts, texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_named_after_its_file_and_folder() {
        for (path, name) in [
            ("/x/mem0_locomo.jsonl", "mem0-locomo"),
            ("/x/Zep Cloud.json.gz", "zep-cloud"),
            ("/x/mem0/results.json", "mem0-results"),
            ("/x/zep/results_2.json", "zep-results-2"),
            ("/x/hindsight/2026-10-01.csv", "hindsight-2026-10-01"),
            ("/x/mem0", "mem0"),
            ("/x/y/.json", "json"),
            ("/", "imported"),
        ] {
            assert_eq!(system_from(Path::new(path)), name, "{path}");
        }
    }

    #[test]
    fn p45_an_imported_hit_is_a_turn_a_session_or_unknown() {
        let content = br#"{"bank_id":"b","speakers":[],"entries":[{"kind":"session","id":"D1","turns":[{"id":"D1:1","speaker":"A","text":"x"}]}]}"#;
        let known = KnownIds::read(content).expect("reads");
        let seen = |id: &str| (known.hit(id).level, known.hit(id).session_id);
        assert_eq!(seen("D1:1"), (Some(HitLevel::Turn), "D1".to_owned()));
        assert_eq!(seen("D1"), (Some(HitLevel::Session), "D1".to_owned()));
        assert_eq!(seen("D9:1"), (Some(HitLevel::Unknown), "D9".to_owned()));
    }
}
