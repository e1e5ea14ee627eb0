//! What is archived of a run: what people read, and what it is rebuilt from. Neither holds a key: none is in the store.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use bench_proto::{
    facts::QuestionFacts,
    ids::TaskKey,
    spec::RunSpec,
    step::{StepNo, StepText},
    stop::Looks,
    summary::Summary,
};
use bench_report::{
    Format,
    archive::{IndexEntry, push::PlainFile},
    html::Page,
};
use bench_store::{Later, RunRow, RunState, Runs, Segment, Store};
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    exit::CliError,
    results::{self, judgements},
};

/// Version of the files that a run is rebuilt from.
pub(crate) const BUNDLE_VERSION: u32 = 1;
/// Names of the files that a run is rebuilt from.
pub(crate) const RUN: &str = "run.json";
pub(crate) const BANKS: &str = "banks.jsonl";
pub(crate) const RESULTS: &str = "results.jsonl";
/// Names of the files that people read.
pub(crate) const REPORT: &str = "report.json";
/// Questions read at once.
const PAGE: usize = 256;

/// A run without its questions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunBundle {
    pub(crate) bundle_version: u32,
    pub(crate) run_id: String,
    pub(crate) name: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) user: String,
    pub(crate) spec: RunSpec,
    /// What its looks have found, where it could stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) looks: Option<Looks>,
    pub(crate) imported: bool,
    pub(crate) code_version: String,
    pub(crate) created_ms: i64,
    pub(crate) finished_ms: Option<i64>,
    /// (milliseconds since 1970, kind, message).
    pub(crate) events: Vec<(i64, String, String)>,
}

/// A bank with its three items as they are stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BankBundle {
    pub(crate) bank_no: u32,
    pub(crate) bank_id: String,
    pub(crate) segments: Vec<Segment>,
    /// Questions that the run left out when it stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) later: Option<Later>,
    pub(crate) content: String,
    pub(crate) questions: String,
    pub(crate) gold: String,
}

/// A question that ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResultBundle {
    pub(crate) facts: QuestionFacts,
    /// Steps of the question and of its judges: (task, step, text).
    pub(crate) texts: Vec<(TaskKey, StepNo, StepText)>,
}

/// A finished run as it will be archived: its entry in the index, and the report that its files are made of.
pub(crate) struct Bundled {
    pub(crate) entry: IndexEntry,
    summary: Summary,
}

/// Reads what is said of a finished run, before any file is made. With `without_texts`, which says why, that is its report without
/// what quotes a text.
///
/// # Errors
/// Exit 2 for a run that is not finished; what the store meets.
pub(crate) async fn of_run(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    without_texts: Option<String>,
) -> Result<Bundled, CliError> {
    if run.state != RunState::Finished {
        return Err(CliError::usage(format!(
            "run {0} is not finished: only results are archived; `bench-coord resume {0}` goes on with it",
            run.run_id
        )));
    }
    let summary = results::summary_of(app, store, run).await?;
    let summary = if without_texts.is_none() { summary } else { summary.without_texts() };
    let entry = IndexEntry { without_texts, ..IndexEntry::of_run(&run.spec, &summary) };
    Ok(Bundled { entry, summary })
}

/// Writes all files of a run into a folder, piece by piece. Of one that is archived without its texts these are its report, its
/// figures by question and its spec: no text of a question, no banks and no page.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn files(
    store: &dyn Store,
    run: &RunRow,
    bundled: &Bundled,
    folder: &Path,
) -> Result<Vec<PlainFile>, CliError> {
    let is_whole = bundled.entry.without_texts.is_none();
    let mut files = Files { folder, files: Vec::new() };
    reports(store, run, &bundled.summary, (is_whole, &mut files)).await?;
    let mut lines = bench_report::QuestionsWriter::new(files.open("questions.jsonl")?);
    results::each_question(store, run, |line| {
        let line = if is_whole { line } else { line.without_texts() };
        lines.write(&line).map(|()| true).map_err(broken)
    })
    .await?;
    lines.finish().and_then(|(mut file, _)| file.flush()).map_err(broken)?;
    let mut bundle = run_bundle(store, run).await?;
    if is_whole {
        banks(store, run, files.open(BANKS)?).await?;
    } else {
        // what a loader and a system had to say may quote what they read
        bundle.spec.dataset.notes.clear();
        bundle.events.clear();
    }
    files.open(RUN)?.write_all(&json(&bundle)?).map_err(broken)?;
    question_results(store, run, is_whole, files.open(RESULTS)?).await?;
    Ok(files.files)
}

/// Writes what people read; those forms that are about single questions only with their texts.
async fn reports(
    store: &dyn Store,
    run: &RunRow,
    summary: &Summary,
    (is_whole, files): (bool, &mut Files<'_>),
) -> Result<(), CliError> {
    let (questions, beside) = match is_whole {
        true => results::told_questions(store, run).await?,
        false => (Vec::new(), HashMap::new()),
    };
    let page = Page { beside: Some(&beside), ..Page::new(summary, &questions) };
    let with_questions = |name: &str| bench_report::format_named(name).is_some_and(Format::needs_questions);
    for format in ["json", "md", "html", "csv", "junit"].into_iter().filter(|name| is_whole || !with_questions(name)) {
        let text = results::render(&page, format)?;
        files.open(results::file_name(format))?.write_all(text.as_bytes()).map_err(broken)?;
    }
    Ok(())
}

/// Files that are being written into a folder.
struct Files<'a> {
    folder: &'a Path,
    files: Vec<PlainFile>,
}

impl Files<'_> {
    fn open(&mut self, name: &str) -> Result<BufWriter<File>, CliError> {
        let path = self.folder.join(name);
        let file = File::create(&path).map_err(broken)?;
        self.files.push(PlainFile { name: name.to_owned(), path });
        Ok(BufWriter::new(file))
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::infrastructure(format!("the run cannot be archived: {error}")).because(error)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, CliError> {
    serde_json::to_vec(value).map_err(broken)
}

async fn run_bundle(store: &dyn Runs, run: &RunRow) -> Result<RunBundle, CliError> {
    let events = store.events(run.run_no).await?;
    let mut spec = run.spec.clone();
    // a place on this machine says nothing elsewhere
    spec.dataset.path = None;
    Ok(RunBundle {
        bundle_version: BUNDLE_VERSION,
        run_id: run.run_id.0.clone(),
        name: run.name.clone(),
        tags: run.tags.clone(),
        user: run.user.clone(),
        looks: spec.stop.is_some().then(|| run.looks.clone()),
        spec,
        imported: run.imported,
        code_version: run.code_version.clone(),
        created_ms: run.created_ms,
        finished_ms: run.finished_ms,
        // what was said about archives is no part of the run: a second push holds the same bytes
        events: events
            .into_iter()
            .filter(|event| !event.kind.starts_with("archive"))
            .map(|event| (event.at_ms, event.kind, event.message))
            .collect(),
    })
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), CliError> {
    serde_json::to_writer(&mut *out, value).map_err(broken)?;
    out.write_all(b"\n").map_err(broken)
}

async fn banks(store: &dyn Store, run: &RunRow, mut out: impl Write + Send) -> Result<(), CliError> {
    for row in store.banks(run.run_no, None).await? {
        let mut items = Vec::with_capacity(3);
        for hash in [row.content, row.questions, row.gold] {
            items.push(String::from_utf8(store.item(hash).await?).map_err(broken)?);
        }
        let [content, questions, gold] = <[String; 3]>::try_from(items)
            .map_err(|_| CliError::infrastructure("the run cannot be archived: an item is missing"))?;
        let bundle = BankBundle {
            bank_no: row.bank_no,
            bank_id: row.bank_id,
            segments: row.segments,
            later: row.later,
            content,
            questions,
            gold,
        };
        write_line(&mut out, &bundle)?;
    }
    out.flush().map_err(broken)
}

async fn question_results(
    store: &dyn Store,
    run: &RunRow,
    is_whole: bool,
    mut out: impl Write + Send,
) -> Result<(), CliError> {
    let mut after = None;
    loop {
        let page = store.facts(run.run_no, after, PAGE as u32).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.task);
        if !is_whole {
            let bare = |facts: QuestionFacts| ResultBundle { facts: facts.without_texts(), texts: Vec::new() };
            page.into_iter().try_for_each(|facts| write_line(&mut out, &bare(facts)))?;
            continue;
        }
        let keys: Vec<TaskKey> = page.iter().map(|facts| facts.task).collect();
        let mut texts = store.question_texts(run.run_no, &keys).await?;
        // steps are not archived, and which of several votes speaks for them goes by their grades
        let grades = judgements::grades(store, run, &keys).await?;
        for (task, _, text) in &mut texts {
            if let StepText::Judged { grade, .. } = text {
                *grade = grades.get(&*task).copied().or(*grade);
            }
        }
        texts.sort_by_key(|(task, step, _)| (task.question_of(), *task, *step));
        let mut texts = texts.into_iter().peekable();
        for facts in page {
            let mut own = Vec::new();
            while let Some(text) = texts.next_if(|(task, ..)| task.question_of() <= facts.task) {
                own.push(text);
            }
            write_line(&mut out, &ResultBundle { facts, texts: own })?;
        }
    }
    out.flush().map_err(broken)
}
