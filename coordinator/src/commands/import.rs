//! `import`: results made elsewhere become a finished run, so that other people's numbers get our intervals.

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead, BufReader},
    path::Path,
};

use bench_proto::{
    dataset::{GoldRecord, Question},
    facts::{Outcome, PhaseTimes, PhaseUsage, QuestionFacts, answer_hash},
    ids::{RunId, TaskKey},
    spec::{DatasetSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, ScorerSpec, SystemSpec},
    step::{RankHits, Retrieval, RetrievedHit, StepNo, StepText},
};
use bench_store::{NewRun, RunState};
use bench_worker::scorers::{self, ScoreCase, Scorer, abstention::is_abstention};
use serde::Deserialize;

use crate::{
    app::App,
    cli::ImportArgs,
    exit::{CliError, CliResult},
    local::LOCAL_DOMAIN,
    planner, planning, results,
    runs::current_user,
};

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 16 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    question_id: String,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    retrieved: Option<Vec<String>>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    metric: Option<String>,
}

/// Lines by question id, with their numbers.
type Lines = BTreeMap<String, (usize, Line)>;

/// Runs the verb.
pub(super) async fn run(app: &App, args: &ImportArgs) -> CliResult {
    let (lines, metric) = read_lines(&args.answers)?;
    let run_id = match &args.run_id {
        Some(id) => RunId::parse(id).map_err(|e| CliError::usage(e.to_string()))?,
        None => RunId::fresh(),
    };
    let name = args
        .sample
        .dataset
        .clone()
        .ok_or_else(|| CliError::usage("give --dataset NAME: the dataset that the answers are for"))?;
    let dataset = planning::open_dataset(app, &name, &args.sample, app.dataset_settings(&name)).await?;
    let mut request = planning::sample_request(app, &args.sample)?;
    if args.subset {
        request.preset = None;
        request.question_ids = lines.keys().cloned().collect();
        request.question_ids.sort();
    } else if args.sample.preset.is_none() && request.preset.is_some() {
        // what was made elsewhere is a whole run unless it is said to be a part
        request.preset = Some(bench_plan::Preset::Full);
    }
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
            ..planning::dataset_spec(dataset.as_ref(), &sample)
        },
        sample: sample.spec.clone(),
        system: SystemSpec {
            name: args.system.clone().unwrap_or_else(|| "imported".to_owned()),
            version: "imported".to_owned(),
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
    let headline = spec.headline_metric();
    let new_run = NewRun {
        run_id: run_id.clone(),
        name: args.name.clone(),
        tags: args.tag.clone(),
        user: current_user(),
        spec,
        lineage: run_id.0.clone(),
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: true,
        code_version: bench_proto::CODE_VERSION.to_owned(),
    };
    results::check_writable(&args.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0)))?;

    // everything is scored before anything is written: a bad line starts nothing
    let banks = planning::banks_in_order(&sample);
    let phrases = &new_run.spec.dataset.abstention_phrases;
    let mut left: HashMap<&str, &(usize, Line)> = lines.iter().map(|(id, line)| (id.as_str(), line)).collect();
    let mut prepared = planner::prepare(dataset.as_ref(), &banks, 0, None, usize::MAX)?;
    let mut imported = Vec::with_capacity(lines.len());
    for (bank_no, bank) in (0..).zip(&prepared.parts) {
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            if let Some((_, line)) = left.remove(question.question_id.as_str()) {
                let task = TaskKey::question(bank_no, question.index);
                imported.push(grade(task, &bank.bank_id, question, gold, line, metric.as_deref(), &scorers, phrases));
            }
        }
    }
    if let Some((number, line)) = left.into_values().min_by_key(|(number, _)| *number) {
        return Err(CliError::usage(format!(
            "{}: line {number}: question id '{}' is not in the sample of {name}; ids look like '{}'",
            args.answers.display(),
            line.question_id,
            prepared.parts.first().and_then(|p| p.questions.first()).map_or("", |q| q.question_id.as_str())
        )));
    }
    let run_no = store.create_run(&new_run).await?;
    store.put_items(&std::mem::take(&mut prepared.items)).await?;
    store.add_banks(run_no, &prepared.banks).await?;
    store.import_results(run_no, &headline, &imported).await?;
    store.finish_plan(run_no).await?;
    store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
    results::finish(app, store.as_ref(), run_no, args.json, args.output_dir.as_deref()).await
}

/// Reads all lines by question id, and the metric when the lines bring scores of their own.
fn read_lines(path: &Path) -> Result<(Lines, Option<String>), CliError> {
    let file = std::fs::File::open(path).map_err(|e| CliError::usage(format!("{}: {e}", path.display())))?;
    let mut lines = Lines::new();
    let mut metric: Option<String> = None;
    for (number, text) in (1..).zip(BufReader::new(file).lines()) {
        let broken = |problem: String| CliError::usage(format!("{}: line {number}: {problem}", path.display()));
        let text = text.map_err(|e| broken(e.to_string()))?;
        if text.trim().is_empty() {
            continue;
        }
        if text.len() > MAX_LINE {
            return Err(broken(format!("longer than {MAX_LINE} bytes")));
        }
        let line: Line = serde_json::from_str(&text).map_err(|e| broken(e.to_string()))?;
        if let Some(score) = line.score {
            if !(0.0..=1.0).contains(&score) {
                return Err(broken(format!("score {score} is not in [0, 1]")));
            }
            let name = line.metric.clone().unwrap_or_else(|| "imported".to_owned());
            match &metric {
                Some(other) if *other != name => {
                    return Err(broken(format!("metric '{name}', but earlier lines have '{other}'")));
                }
                _ => metric = Some(name),
            }
        } else if line.answer.is_none() {
            return Err(broken("neither answer nor score: there is nothing to grade".to_owned()));
        }
        if let Some((first, _)) = lines.get(&line.question_id) {
            return Err(broken(format!("question '{}' stands in line {first} already", line.question_id)));
        }
        lines.insert(line.question_id.clone(), (number, line));
    }
    if let (Some(metric), Some((number, _))) = (&metric, lines.values().find(|(_, line)| line.score.is_none())) {
        let problem = format!("no score, but other lines have one ('{metric}'): give it to all lines or to none");
        return Err(CliError::usage(format!("{}: line {number}: {problem}", path.display())));
    }
    if lines.is_empty() {
        return Err(CliError::usage(format!("{}: no lines", path.display())));
    }
    Ok((lines, metric))
}

type Graded = (QuestionFacts, Vec<(StepNo, StepText)>);

#[expect(clippy::too_many_arguments, reason = "one call site; the parts of one line and what it is graded against")]
fn grade(
    task: TaskKey,
    bank_id: &str,
    question: &Question,
    gold: &GoldRecord,
    line: &Line,
    metric: Option<&str>,
    scorers: &[&'static dyn Scorer],
    phrases: &[String],
) -> Graded {
    let mut scores = Vec::new();
    if let (Some(score), Some(metric)) = (line.score, metric) {
        scores.push((metric.to_owned(), score));
    }
    let mut texts = Vec::new();
    if let Some(answer) = &line.answer {
        let case = ScoreCase { prediction: answer, gold: Some(&gold.gold), category: &question.category };
        scores.extend(scorers.iter().filter_map(|s| Some((s.name().to_owned(), s.score(&case)?))));
        texts.push((StepNo::ANSWER, StepText::Answered { answer: answer.clone(), raw: None, citations: Vec::new() }));
    }
    let retrieval = line.retrieved.as_ref().map(|ids| {
        let session_of = |id: &str| id.split_once(':').map_or_else(|| id.to_owned(), |(session, _)| session.to_owned());
        let sessions: Vec<String> = ids.iter().map(|id| session_of(id)).collect();
        let hits = ids.iter().zip(&sessions);
        let hit = |(id, session): (&String, &String)| RetrievedHit {
            id: id.clone(),
            session_id: session.clone(),
            score: None,
            text: String::new(),
        };
        texts.push((StepNo::RECALL, StepText::Recalled { hits: hits.map(hit).collect() }));
        Retrieval {
            turn: RankHits::of(ids.iter().map(String::as_str), gold.evidence_turns.iter().map(String::as_str)),
            session: RankHits::of(
                sessions.iter().map(String::as_str),
                gold.evidence_sessions.iter().map(String::as_str),
            ),
        }
    });
    let abstained = line.answer.as_ref().is_some_and(|answer| is_abstention(answer, phrases));
    let answer_hash = line.answer.as_deref().map_or(0, answer_hash);
    let facts = QuestionFacts {
        task,
        question_id: question.question_id.clone(),
        bank_id: bank_id.to_owned(),
        category: question.category.clone(),
        // a line without a score that counts cannot have come this far
        outcome: if abstained { Outcome::Abstained } else { Outcome::Scored },
        scores,
        retrieval,
        empty_context: false,
        answer_hash,
        times: PhaseTimes::default(),
        usage: PhaseUsage::default(),
        attempts: 0,
        failure: None,
        kept: None,
    };
    (facts, texts)
}
