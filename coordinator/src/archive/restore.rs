//! An archived run becomes a run of this store: reported, compared and judged again like any other.

use bench_proto::{
    facts::QuestionFacts,
    ids::RunId,
    step::{StepNo, StepText},
    summary::Summary,
};
use bench_report::archive::push::PlainFile;
use bench_store::{Item, NewBank, NewRun, RunState, Store, StoreError};
use serde::de::DeserializeOwned;

use super::bundle::{BANKS, BUNDLE_VERSION, BankBundle, REPORT, RESULTS, RUN, ResultBundle, RunBundle};
use crate::{
    exit::{CliError, Exit},
    local::LOCAL_DOMAIN,
};

/// Banks written at once.
const BANKS_AT_ONCE: usize = 8;

/// What restoring found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// The run is in the store now.
    New,
    /// It was before, with the same result.
    WasThere,
}

/// Rebuilds a run from its archived files.
///
/// # Errors
/// Exit 2 when another run of this id is in the store; exit 5 when the files do not fit together.
pub(crate) async fn restore(store: &dyn Store, files: &[PlainFile]) -> Result<Restored, CliError> {
    let run: RunBundle = parse(RUN, file(files, RUN)?)?;
    if run.bundle_version > BUNDLE_VERSION {
        return Err(damaged(format!(
            "the run was archived with version {}, this build reads {BUNDLE_VERSION}: use a newer one",
            run.bundle_version
        )));
    }
    let report = file(files, REPORT)?;
    let summary: Summary = parse(REPORT, report)?;
    let id = RunId::parse(&run.run_id).map_err(|e| damaged(e.to_string()))?;
    let new = NewRun {
        run_id: id.clone(),
        name: run.name,
        tags: run.tags,
        user: run.user,
        spec: run.spec,
        // calls are not archived: nothing is shared with runs that go on elsewhere
        lineage: run.run_id.clone(),
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: run.imported,
        code_version: run.code_version,
    };
    if new.spec.fingerprint().hex() != summary.run.fingerprint {
        return Err(damaged(format!("{RUN} and {REPORT} have different fingerprints")));
    }
    let run_no = match store.create_run(&new).await {
        Ok(run_no) => run_no,
        Err(StoreError::Exists(_)) => return existing(store, &id, &summary).await,
        Err(error) => return Err(error.into()),
    };
    for part in lines::<BankBundle>(BANKS, file(files, BANKS)?)?.chunks(BANKS_AT_ONCE) {
        let (mut items, mut banks) = (Vec::new(), Vec::new());
        for bank in part {
            let [content, questions, gold] =
                [&bank.content, &bank.questions, &bank.gold].map(|text| Item::of(text.as_bytes().to_vec()));
            banks.push(NewBank {
                bank_no: bank.bank_no,
                bank_id: bank.bank_id.clone(),
                content: content.hash,
                questions: questions.hash,
                gold: gold.hash,
                segments: bank.segments.clone(),
            });
            items.extend([content, questions, gold]);
        }
        store.put_items(&items).await?;
        store.adopt(run_no, &banks, &[]).await?;
    }
    let headline = new.spec.headline_metric();
    for part in lines::<ResultBundle>(RESULTS, file(files, RESULTS)?)?.chunks(1_000) {
        let mut results: Vec<(QuestionFacts, Vec<(StepNo, StepText)>)> = Vec::with_capacity(part.len());
        let mut judged = Vec::new();
        for result in part {
            let (own, of_judges): (Vec<_>, Vec<_>) =
                result.texts.iter().cloned().partition(|(task, ..)| *task == result.facts.task);
            results.push((result.facts.clone(), own.into_iter().map(|(_, step, text)| (step, text)).collect()));
            judged.extend(of_judges);
        }
        store.import_results(run_no, &headline, &results).await?;
        store.put_texts(run_no, &judged).await?;
    }
    store.finish_plan(run_no).await?;
    for (_, kind, message) in &run.events {
        store.add_event(run_no, kind, message).await?;
    }
    store.add_event(run_no, "restored", "from an archive").await?;
    store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
    let row = store.run(run_no).await?;
    let text = std::str::from_utf8(report).map_err(|e| damaged(format!("{REPORT}: {e}")))?;
    store.put_summary(run_no, row.result_version, text).await?;
    Ok(Restored::New)
}

async fn existing(store: &dyn Store, id: &RunId, summary: &Summary) -> Result<Restored, CliError> {
    let row = store.run_by_id(id).await?;
    let stored = match &row {
        Some(row) => store.summary(row.run_no).await?,
        None => None,
    };
    let same = stored
        .and_then(|text| serde_json::from_str::<Summary>(&text).ok())
        .is_some_and(|stored| stored.result_digest == summary.result_digest);
    if same {
        return Ok(Restored::WasThere);
    }
    Err(CliError::usage(format!("another run {id} is in this store; restore it into an empty one with --store")))
}

fn damaged(message: String) -> CliError {
    CliError { exit: Exit::Invalid, message }
}

fn file<'a>(files: &'a [PlainFile], name: &str) -> Result<&'a [u8], CliError> {
    let found = files.iter().find(|file| file.name == name);
    found.map(|file| file.bytes.as_slice()).ok_or_else(|| damaged(format!("the archived run has no {name}")))
}

fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, CliError> {
    serde_json::from_slice(bytes).map_err(|e| damaged(format!("{name} cannot be read: {e}")))
}

fn lines<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<Vec<T>, CliError> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| parse(name, line)).collect()
}
