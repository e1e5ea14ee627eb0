//! From stored results to the summary, the report's files and what the person sees at the end.
//!
//! Everything streams bank by bank, so a million questions need no more memory than one bank.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use bench_aggregate::{
    AggregateInput, Aggregator, RunIdentity, SelfCheck,
    gate::{Floors, GateFlags, Policy, gate},
};
use bench_proto::{
    facts::{Outcome, QuestionFacts},
    gate::GateVerdict,
    ids::{RunNo, TaskKey, TaskKind, trace_id},
    step::{StepNo, StepText},
    summary::{ControlScore, JudgementLine, QuestionLine, RetrievedLine, Summary, Verdict},
};
use bench_report::html::{MOST_QUESTIONS, Page};
use bench_store::{RunFilter, RunRow, RunState, SHARED_CALLS_EVENT, Store};
use bench_telemetry::{process, process_span};
use bench_worker::{
    banks::BankData,
    systems::{BuildContext, registry as systems},
};

use crate::{
    app::App,
    exit::{CliError, CliResult, Exit},
    out,
    runs::Standing,
};

/// Facts read per page.
const PAGE: u32 = 4096;
/// Questions whose texts are in memory at once.
const TEXT_PAGE: usize = 256;

/// Aggregates a run from the store.
///
/// # Errors
/// What the store meets.
pub(crate) async fn summarize(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    let span = process::started(process_span!("aggregate", run = run.run_id.0.as_str()));
    tracing::Instrument::instrument(aggregate(app, store, run), span).await
}

async fn aggregate(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    let mut input = AggregateInput::new(run.spec.clone(), identity(app, run));
    input.self_check = self_check(store, run).await?;
    input.controls = controls(app, store, run).await?;
    input.calls_of = calls_of(store, run).await?;
    input.stats_seed = app.settings().stats_seed;
    if let Ok(capabilities) =
        systems::capabilities(&run.spec.system.name, &run.spec.system.settings, &BuildContext::default())
    {
        input.empty_context_expected = capabilities.empty_by_design;
        input.effective_k =
            Some(capabilities.max_k.map_or(run.spec.system.top_k, |most| most.min(run.spec.system.top_k)));
    }
    let mut aggregator = Aggregator::new(input);
    let mut ended: HashSet<TaskKey> = HashSet::new();
    let mut after = None;
    loop {
        let page = store.facts(run.run_no, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.task);
        for facts in &page {
            aggregator.add(facts);
            ended.insert(facts.task);
        }
    }
    for kind in [TaskKind::Retain, TaskKind::Ready] {
        let mut after = None;
        loop {
            let page = store.steps(run.run_no, kind, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.task, last.step));
            for step in &page {
                aggregator.add_retain_step(step);
            }
        }
    }
    if run.spec.judges.len() as u32 * run.spec.votes > 1 {
        let mut after = None;
        loop {
            let page = store.steps(run.run_no, TaskKind::Judge, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.task, last.step));
            page.iter().for_each(|step| aggregator.add_judge_step(step));
        }
    }
    let not_run = not_run_ids(store, run, &ended).await?;
    let mut summary = aggregator.finish(not_run);
    fill_worst(store, run, &mut summary).await?;
    for total in [&mut summary.usage.total, &mut summary.total] {
        total.usd_booked = run.counters.spent.usd();
        total.usd_uncertain = run.counters.uncertain.usd();
        total.usd_overdraft = run.counters.overdraft.usd();
    }
    Ok(summary)
}

fn identity(app: &App, run: &RunRow) -> RunIdentity {
    let open_ms = run.active_since_ms.map_or(0, |since| (jiff::Timestamp::now().as_millisecond() - since).max(0));
    RunIdentity {
        id: run.run_id.clone(),
        name: run.name.clone(),
        status: Standing::of(run, app.store_file().as_deref()).word().to_owned(),
        code_versions: vec![run.code_version.clone()],
        started_at: Some(crate::times::rfc3339(run.created_ms)),
        finished_at: run.finished_ms.map(crate::times::rfc3339),
        wall_seconds: Some((run.active_ms + open_ms) as f64 / 1000.0),
        resumed_times: u64::try_from(run.resumed_times).unwrap_or(0),
    }
}

/// Kind of the run event that keeps the result of the grader self-check: `passed`, or `failed: why`.
pub(crate) const SELF_CHECK_EVENT: &str = "self_check";

async fn self_check(store: &dyn Store, run: &RunRow) -> Result<SelfCheck, CliError> {
    let events = store.events(run.run_no).await?;
    Ok(events.iter().rev().find(|e| e.kind == SELF_CHECK_EVENT).map_or(SelfCheck::NotRun, |event| {
        match event.message.strip_prefix("failed: ") {
            Some(why) => SelfCheck::Failed(why.to_owned()),
            None => SelfCheck::Passed,
        }
    }))
}

/// Ids of the runs whose stored replies a run has used.
async fn calls_of(store: &dyn Store, run: &RunRow) -> Result<Vec<String>, CliError> {
    let events = store.events(run.run_no).await?;
    let ids: BTreeSet<String> =
        events.into_iter().filter(|e| e.kind == SHARED_CALLS_EVENT).map(|event| event.message).collect();
    Ok(ids.into_iter().collect())
}

/// Scores of the control runs that belong to a run.
async fn controls(app: &App, store: &dyn Store, run: &RunRow) -> Result<Vec<ControlScore>, CliError> {
    if run.control_of.is_some() {
        return Ok(Vec::new());
    }
    let filter = RunFilter { control_of: Some(run.run_no), controls: true, ..RunFilter::default() };
    let mut controls = Vec::new();
    for control in store.list_runs(&filter).await? {
        if control.state == RunState::Finished {
            let summary = Box::pin(summarize(app, store, &control)).await?;
            controls.push(ControlScore {
                name: control.spec.system.name.clone(),
                metric: summary.headline.metric,
                value: summary.headline.value,
                n: summary.headline.n,
            });
        }
    }
    controls.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(controls)
}

/// Ids of the sample's questions that never ended. Banks that were not planned yet count through the sample's size.
async fn not_run_ids(store: &dyn Store, run: &RunRow, ended: &HashSet<TaskKey>) -> Result<Vec<String>, CliError> {
    let mut missing = Vec::new();
    if ended.len() as u64 >= run.spec.sample.n {
        return Ok(missing);
    }
    for row in store.banks(run.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = BankData::read(store, row).await?;
        let open = bank.questions().iter().filter(|q| !ended.contains(&TaskKey::question(bank_no, q.index)));
        missing.extend(open.map(|q| q.question_id.clone()));
    }
    Ok(missing)
}

async fn fill_worst(store: &dyn Store, run: &RunRow, summary: &mut Summary) -> Result<(), CliError> {
    let wanted: HashSet<String> = summary.worst.iter().map(|w| w.question_id.clone()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut found: HashMap<TaskKey, String> = HashMap::new();
    let mut after = None;
    while found.len() < wanted.len() {
        let page = store.facts(run.run_no, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.task);
        found.extend(page.into_iter().filter(|f| wanted.contains(&f.question_id)).map(|f| (f.task, f.question_id)));
    }
    let mut keys: Vec<TaskKey> = found.keys().copied().collect();
    keys.sort_unstable();
    let mut texts: HashMap<String, (Option<String>, Option<String>)> = HashMap::new();
    for key in &keys {
        let mut rows = store.banks(run.run_no, Some(&[key.bank()])).await?;
        let Some(row) = rows.pop() else { continue };
        let bank = BankData::read(store, row).await?;
        let gold = bank.gold(&found[key]).map(|g| g.gold.text());
        texts.insert(found[key].clone(), (gold, None));
    }
    for (task, _, text) in store.question_texts(run.run_no, &keys).await? {
        if let (StepText::Answered { answer, .. }, Some(id)) = (text, found.get(&task))
            && let Some(entry) = texts.get_mut(id)
        {
            entry.1 = Some(answer);
        }
    }
    bench_aggregate::fill_worst(summary, |id| texts.get(id).cloned().unwrap_or_default());
    Ok(())
}

/// The stored summary of a finished run, or a fresh one of a run at any point.
///
/// # Errors
/// What the store meets.
pub(crate) async fn summary_of(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    if run.state != RunState::Finished {
        return summarize(app, store, run).await;
    }
    if let Some(stored) = store.summary(run.run_no).await? {
        match serde_json::from_str(&stored) {
            Ok(summary) => return Ok(summary),
            Err(error) => tracing::warn!("the stored summary cannot be read by this build, it is made anew: {error}"),
        }
    }
    let summary = summarize(app, store, run).await?;
    let json = serde_json::to_string(&summary)
        .map_err(|e| CliError::infrastructure(format!("the summary cannot be stored: {e}")))?;
    store.put_summary(run.run_no, run.result_version, &json).await?;
    Ok(summary)
}

/// Folder of a run's files: `$BENCH_HOME/runs/<run>`, unless the person named one.
#[must_use]
pub(crate) fn run_folder(app: &App, run: &RunRow, output_dir: Option<&Path>) -> PathBuf {
    output_dir.map_or_else(|| app.home().join("runs").join(&run.run_id.0), Path::to_owned)
}

/// Makes sure that files can be written there, before any work.
///
/// # Errors
/// Exit 2 naming the folder.
pub(crate) fn check_writable(folder: &Path) -> Result<(), CliError> {
    let cannot = |e: std::io::Error| {
        CliError::usage(format!("{} cannot be written: {e}; choose another place with --output-dir", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
    Ok(())
}

/// Writes `report.json`, `report.md`, `questions.jsonl`, `report.html` and the plots; each file appears whole or not at all.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn write_files(
    store: &dyn Store,
    run: &RunRow,
    summary: &Summary,
    folder: &Path,
) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|e| disk(folder, &e))?;
    let questions = write_questions(store, run, &folder.join("questions.jsonl")).await?;
    let page = Page { summary, questions: &questions, comparison: None, trace_url: None };
    for format in ["json", "md", "html"] {
        let rendered = render(&page, format)?;
        write_atomically(&folder.join(file_name(format)), |file| file.write_all(rendered.as_bytes()))?;
    }
    for plot in bench_report::svg::plots(summary) {
        write_atomically(&folder.join(plot.file_name), |file| file.write_all(plot.standalone().as_bytes()))?;
    }
    Ok(())
}

/// Name of the terminal table among the formats; it has no file of its own but `report.txt`.
pub(crate) const TERMINAL: &str = "terminal";

/// Name of a format's file.
#[must_use]
pub(crate) fn file_name(format: &str) -> &'static str {
    bench_report::format_named(format).map_or("report.txt", |format| format.file_name)
}

/// Checks a format's name.
///
/// # Errors
/// Exit 2 with all names.
pub(crate) fn check_format(name: &str) -> Result<(), CliError> {
    if name == TERMINAL || bench_report::format_named(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = std::iter::once(TERMINAL).chain(bench_report::FORMATS.iter().map(|f| f.name)).collect();
    Err(CliError::usage(format!("unknown format '{name}' (known: {})", known.join(", "))))
}

/// A report in a format.
///
/// # Errors
/// Exit 2 for unknown formats.
pub(crate) fn render(page: &Page<'_>, format: &str) -> Result<String, CliError> {
    match bench_report::format_named(format) {
        Some(format) => format.render(page).map_err(|e| CliError::infrastructure(e.to_string())),
        None => {
            check_format(format)?;
            let options = bench_report::terminal::TerminalOptions { colour: colour(), full: false };
            Ok(bench_report::terminal::render(page.summary, options))
        }
    }
}

/// A summary in a format that shows no single questions.
///
/// # Errors
/// As [`render`].
pub(crate) fn render_summary(summary: &Summary, format: &str) -> Result<String, CliError> {
    render(&Page { summary, questions: &[], comparison: None, trace_url: None }, format)
}

/// Whether standard output takes colours.
#[must_use]
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Writes a file beside its place and moves it there.
///
/// # Errors
/// Exit 4 naming the file.
pub(crate) fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut std::io::BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> Result<(), CliError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bench-");
    // temporary files are private by default; a report is an ordinary file
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let file = builder.tempfile_in(folder).map_err(|e| disk(path, &e))?;
    let mut writer = std::io::BufWriter::new(file.as_file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(|e| disk(path, &e))?;
    drop(writer);
    file.persist(path).map_err(|e| disk(path, &e.error))?;
    Ok(())
}

fn disk(path: &Path, error: &std::io::Error) -> CliError {
    CliError::infrastructure(format!(
        "{} cannot be written: {error}; the results are in the store, `bench-coord report` writes them again",
        path.display()
    ))
}

/// Writes all questions and returns the first of them, as many as a page holds.
async fn write_questions(store: &dyn Store, run: &RunRow, path: &Path) -> Result<Vec<QuestionLine>, CliError> {
    // lines are made bank by bank and collected in a spooled file, so the store is never waited for while the writer is open
    let mut spool = bench_report::QuestionsWriter::new(tempfile::spooled_tempfile(8 << 20));
    let mut first = Vec::new();
    each_question(store, run, |line| {
        spool.write(&line).map_err(|e| disk(path, &e))?;
        if first.len() < MOST_QUESTIONS {
            first.push(line);
        }
        Ok(true)
    })
    .await?;
    let (mut spool, _) = spool.finish().map_err(|e| disk(path, &e))?;
    std::io::Seek::rewind(&mut spool).map_err(|e| disk(path, &e))?;
    write_atomically(path, |file| std::io::copy(&mut spool, file).map(|_| ()))?;
    Ok(first)
}

/// The first questions of a run, as many as a page holds.
///
/// # Errors
/// What the store meets.
pub(crate) async fn first_questions(store: &dyn Store, run: &RunRow) -> Result<Vec<QuestionLine>, CliError> {
    let mut first = Vec::new();
    each_question(store, run, |line| {
        first.push(line);
        Ok(first.len() < MOST_QUESTIONS)
    })
    .await?;
    Ok(first)
}

/// Makes every question's line, bank by bank, until `take` has enough.
///
/// # Errors
/// What the store or `take` meets.
pub(crate) async fn each_question(
    store: &dyn Store,
    run: &RunRow,
    mut take: impl FnMut(QuestionLine) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    for row in store.banks(run.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = BankData::read(store, row).await?;
        let mut facts = facts_of_bank(store, run.run_no, &bank).await?;
        for questions in bank.questions().chunks(TEXT_PAGE) {
            let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
            let mut texts: BTreeMap<TaskKey, Vec<(StepNo, StepText)>> = BTreeMap::new();
            for (task, step, text) in store.question_texts(run.run_no, &keys).await? {
                texts.entry(task.question_of()).or_default().push((step, text));
            }
            for (question, key) in questions.iter().zip(&keys) {
                let line =
                    question_line(run, &bank, question, facts.remove(key), texts.remove(key).unwrap_or_default());
                if !take(line)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Facts of a bank's questions.
///
/// # Errors
/// What the store meets.
pub(crate) async fn facts_of_bank(
    store: &dyn Store,
    run: RunNo,
    bank: &BankData,
) -> Result<HashMap<TaskKey, QuestionFacts>, CliError> {
    let (low, high) = TaskKey::range(TaskKind::Question, bank.row.bank_no);
    let most = u32::try_from(bank.questions().len()).unwrap_or(u32::MAX);
    let page = store.facts(run, Some(TaskKey(low.0 - 1)), most).await?;
    Ok(page.into_iter().filter(|facts| facts.task <= high).map(|facts| (facts.task, facts)).collect())
}

fn question_line(
    run: &RunRow,
    bank: &BankData,
    question: &bench_proto::dataset::Question,
    facts: Option<QuestionFacts>,
    texts: Vec<(StepNo, StepText)>,
) -> QuestionLine {
    let gold = bank.gold(&question.question_id);
    let mut line = QuestionLine {
        question_id: question.question_id.clone(),
        bank_id: bank.content.bank_id.clone(),
        category: question.category.clone(),
        question: question.text.clone(),
        gold: gold.map(|g| g.gold.text()),
        answer: None,
        outcome: Outcome::NotRun,
        scores: BTreeMap::new(),
        retrieved: Vec::new(),
        evidence: gold.map(|g| g.evidence_turns.clone()).unwrap_or_default(),
        evidence_sessions: gold.map(|g| g.evidence_sessions.clone()).unwrap_or_default(),
        citations: Vec::new(),
        failures: Vec::new(),
        judgements: Vec::new(),
        error: None,
        usage: Default::default(),
        timing_ms: Default::default(),
        trace_id: trace_id(&run.run_id, &question.question_id),
        trace_url: None,
        attempts: 0,
    };
    for (_, text) in texts {
        match text {
            StepText::Recalled { hits } => {
                let hit = |h: bench_proto::step::RetrievedHit| RetrievedLine {
                    id: h.id,
                    session_id: h.session_id,
                    score: h.score,
                    text: h.text,
                };
                line.retrieved = hits.into_iter().map(hit).collect();
            }
            StepText::Answered { answer, citations, .. } => {
                line.answer = Some(answer);
                line.citations = citations;
            }
            StepText::Judged { judge, vote, verdict, raw } => {
                line.judgements.push(JudgementLine { judge, vote, verdict, raw })
            }
        }
    }
    if let Some(facts) = facts {
        let headline = run.spec.headline_metric();
        line.failures = bench_aggregate::attribution::attribute(&facts, &headline, 0.5)
            .map(|a| a.name().to_owned())
            .into_iter()
            .collect();
        line.outcome = facts.outcome;
        line.trace_url = facts.kept.and_then(|_| run.spec.limits.trace.link(&line.trace_id));
        line.usage = (&facts.usage).into();
        line.timing_ms = (&facts.times).into();
        line.attempts = facts.attempts;
        line.error = facts.failure.map(|f| f.to_string());
        line.scores = facts.scores.into_iter().collect();
    }
    line
}

/// Prints the result of a run that came to its end and says where the files are; the exit code follows the verdict.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn finish(
    app: &App,
    store: &dyn Store,
    run_no: RunNo,
    json: bool,
    output_dir: Option<&Path>,
) -> CliResult {
    finish_above(app, store, run_no, json, output_dir, None).await
}

/// The same; a valid run whose score is below the floor is a regression.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn finish_above(
    app: &App,
    store: &dyn Store,
    run_no: RunNo,
    json: bool,
    output_dir: Option<&Path>,
    floor: Option<f64>,
) -> CliResult {
    let run = store.run(run_no).await?;
    let summary = summary_of(app, store, &run).await?;
    tracing::debug!("summarised");
    let folder = run_folder(app, &run, output_dir);
    write_files(store, &run, &summary, &folder).await?;
    tracing::debug!("files written");
    out::result(&render_summary(&summary, if json { "json" } else { TERMINAL })?);
    out::note(&format!("report, questions and answers: {}", folder.display()));
    #[cfg(feature = "archive")]
    if run.domain == crate::local::LOCAL_DOMAIN {
        crate::archive::auto::after_run(app, store, &run).await;
    }
    let floors = Floors { overall: floor, ..Floors::default() };
    let policy = Policy { floors, ..Policy::default() };
    let gated = gate(&summary, None, &policy, GateFlags::default());
    gated.checks.iter().for_each(|check| out::note(&format!("{}: {}", check.rule, check.detail)));
    Ok(match (exit_of(&summary), gated.verdict) {
        (Exit::Done, GateVerdict::Fail) => Exit::Regression,
        (exit, _) => exit,
    })
}

/// Prints the result of a finished run again.
///
/// # Errors
/// What the store meets.
pub(crate) async fn print_finished(app: &App, store: &dyn Store, run_no: RunNo) -> CliResult {
    let run = store.run(run_no).await?;
    let summary = summary_of(app, store, &run).await?;
    out::result(&render_summary(&summary, TERMINAL)?);
    Ok(exit_of(&summary))
}

/// The exit code of a finished run.
#[must_use]
pub(crate) fn exit_of(summary: &Summary) -> Exit {
    if summary.run.verdict == Verdict::Invalid { Exit::Invalid } else { Exit::Done }
}
