//! A run's summary: its questions aggregated, and what the store knows beside them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bench_aggregate::{
    AggregateInput, Aggregator, Canaries, Finished, RunIdentity, SelfCheck,
    compare::RunFacts,
    instrument::{self, Instrument},
};
use bench_proto::{
    call::{Ledger, Phase},
    facts::QuestionFacts,
    ids::{TaskKey, TaskKind},
    json_bound,
    money::PicoUsd,
    profile::Profile,
    spec::RunSpec,
    step::StepText,
    summary::{ControlScore, GroupSummary, Summary, labels},
};
use bench_store::{RunEvent, RunFilter, RunRow, RunState, Runs, SHARED_CALLS_EVENT, Store, StoreError};
use bench_systems::{BuildContext, canary, registry as systems};
use bench_telemetry::{process, process_span};
use bench_worker::banks::{BankData, BankQuestions};

use tracing::Instrument as _;

use super::{accounts_spent, shards, started_again, unpriced};
use crate::{
    app::App,
    exit::CliError,
    planning::self_check::{FAILED, PASSED_WITH},
    standing::{Standing, group::id_of_control, refused_calls},
};

/// Steps read per page.
const PAGE: u32 = 4096;

/// Aggregates a run from the store.
///
/// # Errors
/// What the store meets.
async fn summarize(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    let span = process::started(process_span!("aggregate", run = run.run_id.0.as_str()));
    aggregate(app, store, run).instrument(span).await
}

async fn aggregate(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    let mut input = AggregateInput::new(run.asked_spec().into_owned(), identity(app, run));
    input.looks = run.spec.stop.is_some().then(|| run.looks.clone());
    let events = store.events(run.run_no).await?;
    input.self_check = self_check(run, &events);
    let controls = control_runs(store, run).await?;
    input.controls = controls_of(app, store, &controls).await?;
    input.instrument = instrument(store, run, &controls).await?;
    if !run.imported {
        let ledger = store.ledger(run).await?;
        input.ledger = Some(ledger);
        if run.spec.limits.meter.is_some() {
            let calls = store.metered_calls(run.run_no).await?;
            input.metered_refused = refused_calls::of_events(&events);
            input.metered_lost = metered_lost(&ledger, &run.spec);
            input.unpriced = unpriced::unpriced_models(&calls, &run.spec);
            input.metered = Some(calls);
            input.accounts_spent = accounts_spent::found(&events);
        }
    }
    input.group = Some(group_of(store, run).await?);
    input.calls_of = calls_of(&events);
    input.stats_seed = app.settings().stats_seed;
    if let Ok(capabilities) =
        systems::capabilities(&run.spec.system.name, &run.spec.system.settings, &BuildContext::default())
    {
        input.empty_context_expected = capabilities.empty_by_design;
        input.is_remote = capabilities.remote;
        input.stores_turns = capabilities.stores_turns;
        input.holds_all = capabilities.from_items && !capabilities.derived && !run.imported;
        input.canaries = canary::possible(&capabilities).map_or_else(Canaries::Impossible, |()| Canaries::Possible);
        let asked = run.spec.hits_asked_for().1;
        // one that is asked by tokens has no k
        input.effective_k =
            (!capabilities.token_budget).then(|| capabilities.max_k.map_or(asked, |most| most.min(asked)));
    }
    let new = || Aggregator::new(input.clone());
    let mut parts =
        shards::read_facts(store, run, new, |part, facts| part.add(&facts), Aggregator::settle).await?.into_iter();
    let mut aggregator = parts.next().unwrap_or_else(new);
    parts.for_each(|part| aggregator.merge(part));
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
    if !run.spec.limits.latency_probe.is_off() {
        aggregator.add_probe(&store.question_steps(run.run_no, &[TaskKey::PROBE]).await?);
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
    let not_run = not_run_ids(store, run, &aggregator).await?;
    let Finished { mut summary, worst } = aggregator.finish(not_run);
    fill_worst(store, run, &mut summary, &worst).await?;
    summary.outages = crate::standing::outages::met(store, run).await?;
    summary.warnings.extend(started_again::warning(&run.spec.system.name, &events));
    super::models::fill(&mut summary, &run.spec, &events);
    Ok(summary)
}

/// The memory system's own calls among those that were under way in a killed process: reservations say their phase alone. Those of
/// filling are its own, since what is metered is no part of this program, and so are the others where no model of the runner's has a
/// part in the phase.
fn metered_lost(ledger: &Ledger, spec: &RunSpec) -> (u64, PicoUsd) {
    let is_its_own = |phase: Phase| match phase {
        Phase::Retain => true,
        Phase::Recall => spec.recalls.rephrased == 0,
        Phase::Answer => spec.answerer.provider == "system",
        Phase::Judge => false,
    };
    let own = Phase::ALL.into_iter().zip(ledger.lost).filter(|(phase, _)| is_its_own(*phase));
    own.fold((0, PicoUsd::ZERO), |(calls, usd), (_, (more, cost))| (calls + more, usd.saturating_add(cost)))
}

fn identity(app: &App, run: &RunRow) -> RunIdentity {
    let open_ms = run.active_since_ms.map_or(0, |since| (jiff::Timestamp::now().as_millisecond() - since).max(0));
    RunIdentity {
        id: run.run_id.clone(),
        name: run.name.clone(),
        status: Standing::of_run(run, app.store_file().as_deref()).word().to_owned(),
        code_versions: vec![run.code_version.clone()],
        started_at: Some(crate::out::times::rfc3339(run.created_ms)),
        finished_at: run.finished_ms.map(crate::out::times::rfc3339),
        wall_seconds: Some((run.active_ms + open_ms) as f64 / 1000.0),
        resumed_times: u64::try_from(run.resumed_times).unwrap_or(0),
    }
}

/// Kind of the run event that keeps the result of the grader self-check: `passed`, `passed: notes`, or `failed: why`.
pub(crate) const SELF_CHECK_EVENT: &str = "self_check";

/// What the check of the graders found when the run was created. All who may write the store may add events to a run: the first one
/// counts, which is as old as the run, none that came after its end, and none of a control, whose graders nobody checks.
fn self_check(run: &RunRow, events: &[RunEvent]) -> SelfCheck {
    if run.control_of.is_some() {
        return SelfCheck::NotRun;
    }
    let mut before_its_end = events.iter().take_while(|e| e.kind != RunState::Finished.name());
    before_its_end.find(|e| e.kind == SELF_CHECK_EVENT).map_or(SelfCheck::NotRun, |event| {
        match (event.message.strip_prefix(FAILED), event.message.strip_prefix(PASSED_WITH)) {
            (Some(why), _) => SelfCheck::Failed(why.to_owned()),
            (None, Some(notes)) => SelfCheck::Noted(notes.to_owned()),
            (None, None) => SelfCheck::Passed,
        }
    })
}

/// Ids of the runs whose stored replies a run has used.
fn calls_of(events: &[RunEvent]) -> Vec<String> {
    let ids: BTreeSet<&String> =
        events.iter().filter(|e| e.kind == SHARED_CALLS_EVENT).map(|event| &event.message).collect();
    ids.into_iter().cloned().collect()
}

/// The runs that were started with a run; one that was started alone is a group by itself.
///
/// # Errors
/// What the store meets.
pub(crate) async fn group_of(store: &dyn Store, run: &RunRow) -> Result<GroupSummary, CliError> {
    let Some(group) = store.group(run.run_no).await? else {
        return Ok(GroupSummary {
            id: run.run_id.0.clone(),
            cap_usd: run.spec.limits.max_cost.map(PicoUsd::usd),
            booked_usd: run.counters.spent.usd(),
            runs: 1,
            not_ended: Vec::new(),
        });
    };
    let filter = RunFilter { control_of: Some(run.control_of.unwrap_or(run.run_no)), ..RunFilter::default() };
    let mut not_ended: Vec<String> = store
        .list_runs(&filter)
        .await?
        .into_iter()
        .filter(|other| other.run_no != run.run_no)
        .filter(|other| matches!(other.state, RunState::Running | RunState::Paused))
        .map(|other| other.run_id.0)
        .collect();
    not_ended.sort_unstable();
    Ok(GroupSummary {
        id: group.id,
        cap_usd: group.cap.map(PicoUsd::usd),
        booked_usd: group.spent.usd(),
        runs: group.runs,
        not_ended,
    })
}

/// The controls of a run that have ended and were made with it.
async fn control_runs(store: &dyn Runs, run: &RunRow) -> Result<Vec<RunRow>, CliError> {
    if run.control_of.is_some() {
        return Ok(Vec::new());
    }
    let filter = RunFilter { control_of: Some(run.run_no), controls: true, ..RunFilter::default() };
    let all = store.list_runs(&filter).await?;
    let counts = |control: &RunRow| control.state == RunState::Finished && is_made_with(run, control);
    Ok(all.into_iter().filter(counts).collect())
}

/// Whether a control is one that was made with its run: it is in the run's group, under an id that no other run can have. Whoever may
/// create runs may say of any that it is a control of somebody else's.
fn is_made_with(run: &RunRow, control: &RunRow) -> bool {
    let id = id_of_control(&run.run_id, &control.spec.system.name);
    run.group.is_some() && control.group == run.group && control.run_id == id
}

/// Their scores.
async fn controls_of(app: &App, store: &dyn Store, runs: &[RunRow]) -> Result<Vec<ControlScore>, CliError> {
    let mut controls = Vec::new();
    for control in runs {
        let summary = Box::pin(summarize(app, store, control)).await?;
        controls.push(ControlScore {
            name: control.spec.system.name.clone(),
            metric: summary.headline.metric,
            value: summary.headline.value,
            n: summary.headline.n,
        });
    }
    controls.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(controls)
}

/// `oracle` against `none`, question by question; one of them may be the measured run itself.
async fn instrument(store: &dyn Store, run: &RunRow, controls: &[RunRow]) -> Result<Option<Instrument>, CliError> {
    let named = |name: &str| controls.iter().chain([run]).find(|row| row.spec.system.name == name);
    let (Some(none), Some(oracle)) = (named("none"), named("oracle")) else { return Ok(None) };
    let metric = run.spec.control_metric();
    let read = async |row: &RunRow, counts: fn(&Profile, &QuestionFacts) -> bool| -> Result<RunFacts, CliError> {
        let new = || RunFacts::new(&metric, 1);
        let add = |part: &mut RunFacts, facts: QuestionFacts| {
            if counts(&row.spec.dataset.profile, &facts) {
                part.add(&facts);
            }
        };
        let mut parts = shards::read_facts(store, row, new, add, RunFacts::settle).await?.into_iter();
        let mut all = parts.next().unwrap_or_else(new);
        parts.for_each(|part| all.merge(part));
        Ok(all)
    };
    let none = read(none, instrument::counts_of_none).await?;
    let oracle = read(oracle, instrument::counts_of_oracle).await?;
    Ok(Some(Instrument::between(&none, &oracle, run.spec.metric(&metric))))
}

/// Ids of the sample's questions that never ended. Banks that were not planned yet count through the sample's size.
async fn not_run_ids(store: &dyn Store, run: &RunRow, aggregator: &Aggregator) -> Result<Vec<String>, CliError> {
    let mut missing = Vec::new();
    if aggregator.len() as u64 >= run.sample_size() {
        return Ok(missing);
    }
    let ended: HashSet<TaskKey> = aggregator.tasks().collect();
    for row in store.banks(run.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = BankQuestions::read(store, &run.asked_bank(&row)).await?;
        let open = bank.asked().filter(|q| !ended.contains(&TaskKey::question(bank_no, q.index)));
        missing.extend(open.map(|q| q.question_id.clone()));
    }
    Ok(missing)
}

/// Fills in gold and answer of the worst questions, whose tasks are given.
async fn fill_worst(store: &dyn Store, run: &RunRow, summary: &mut Summary, worst: &[TaskKey]) -> Result<(), CliError> {
    let found: BTreeMap<TaskKey, String> =
        worst.iter().copied().zip(summary.worst.iter().map(|question| question.question_id.clone())).collect();
    let keys: Vec<TaskKey> = found.keys().copied().collect();
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

/// The stored summary of a finished run under the name that it has now, or a fresh one of a run at any point.
///
/// # Errors
/// What the store meets.
pub(crate) async fn summary_of(app: &App, store: &dyn Store, run: &RunRow) -> Result<Summary, CliError> {
    if run.state != RunState::Finished {
        return summarize(app, store, run).await;
    }
    if let Some(stored) = store.summary(run.run_no).await? {
        match json_bound::from_str::<Summary>(&stored, json_bound::REPORT) {
            Ok(mut summary) => {
                // it may have got another one since, of which neither fingerprint nor digest know
                summary.run.name.clone_from(&run.name);
                // earlier builds did not know all of them, and neither know these of them
                add_labels(&mut summary, labels(&run.spec));
                return Ok(summary);
            }
            Err(error) => tracing::warn!("the stored summary cannot be read by this build, it is made anew: {error}"),
        }
    }
    let summary = summarize(app, store, run).await?;
    let json = serde_json::to_string(&summary)
        .map_err(|e| CliError::infrastructure(format!("the summary cannot be stored: {e}")).because(e))?;
    match store.put_summary(run.run_no, run.result_version, &json).await {
        // who only looks on leaves it to the coordinator
        Ok(_) | Err(StoreError::Denied(_)) => Ok(summary),
        Err(error) => Err(error.into()),
    }
}

/// Adds the labels that a summary has not, before those that only a report says.
fn add_labels(summary: &mut Summary, labels: Vec<String>) {
    let stored = std::mem::replace(&mut summary.labels, labels);
    let more: Vec<String> = stored.into_iter().filter(|label| !summary.labels.contains(label)).collect();
    summary.labels.extend(more);
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        ids::{RunId, RunNo},
        summary::LABEL_OFFICIAL_JUDGE,
    };
    use bench_store::{Creation, NewGroup, NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn a_word_about_graders_that_comes_after_the_creation_decides_no_verdict() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let failed = SelfCheck::Failed("the gold scores 0".to_owned());
        for (id, noted, forged, expected) in [
            ("good", "passed", "failed: forged", SelfCheck::Passed),
            ("bad", "failed: the gold scores 0", "passed", failed),
        ] {
            let events = vec![(SELF_CHECK_EVENT, noted.to_owned())];
            let run = conformance::created(store, &NewRun { events, ..conformance::new_run(id) }).await;
            store.add_event(run.run_no, SELF_CHECK_EVENT, forged).await.expect("a submitter may add events");
            let events = store.events(run.run_no).await.expect("are read");
            assert_eq!(self_check(&run, &events), expected, "{id}");
        }
    }

    #[test]
    fn a_summary_of_an_earlier_build_has_the_labels_that_it_did_not_know() {
        let golden = include_str!("../../../proto/golden/report.v4.json");
        let mut summary: Summary = serde_json::from_str(golden).expect("the golden report is read");
        let texts = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<Vec<String>>();
        summary.labels = texts(&["modified dataset", LABEL_OFFICIAL_JUDGE]);
        for _ in 0..2 {
            add_labels(&mut summary, texts(&["simulated judge", "modified dataset"]));
            assert_eq!(summary.labels, ["simulated judge", "modified dataset", LABEL_OFFICIAL_JUDGE]);
        }
    }

    #[tokio::test]
    async fn a_run_that_somebody_makes_a_control_of_another_counts_for_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let of_system = |id: &str, system: &str, group: Option<&str>| {
            let mut new = conformance::new_run(id);
            system.clone_into(&mut new.spec.system.name);
            NewRun { group: group.map(|id| NewGroup { id: id.to_owned(), cap: None }), ..new }
        };
        let finish = async |run: RunNo| {
            let before = [RunState::Running, RunState::Paused];
            assert!(store.set_run_state(run, &before, RunState::Finished, None).await.expect("ends"));
        };
        let control = NewRun { waits: true, ..of_system("mine-none", "none", Some("mine")) };
        let made = store.create_or_find(&of_system("mine", "bm25", Some("mine")), &[control]).await;
        let Ok(Creation::Made(mine)) = made else { panic!("{made:?}") };
        let alone = store.create_run(&of_system("alone", "bm25", None)).await.expect("is created");
        let forge = async |id: &str, system: &str, of: RunNo, group: Option<&str>| {
            let new = NewRun { control_of: Some(of), ..of_system(id, system, group) };
            finish(store.create_run(&new).await.expect("a submitter may")).await;
        };
        for (id, group) in [("evil", Some("mine")), ("mine-evil", Some("mine")), ("mine-oracle", None)] {
            forge(id, "oracle", mine, group).await;
        }
        forge("other", "none", mine, Some("mine")).await;
        forge("alone-none", "none", alone, None).await;
        forge("alone-oracle", "oracle", alone, Some("alone")).await;
        let counted = async |run: RunNo| {
            let run = store.run(run).await.expect("is read");
            let controls = control_runs(store, &run).await.expect("are listed");
            controls.into_iter().map(|control| control.run_id.0).collect::<Vec<_>>()
        };
        assert!(counted(mine).await.is_empty() && counted(alone).await.is_empty(), "its own has not ended");
        let own = store.run_by_id(&RunId("mine-none".to_owned())).await.expect("is read").expect("is there");
        finish(own.run_no).await;
        assert_eq!(counted(mine).await, ["mine-none"]);
    }

    #[test]
    fn p34_what_was_under_way_in_a_killed_process_is_the_memory_systems_where_nobody_else_calls_in_its_phase() {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        let lost = [(12, PicoUsd(140)), (3, PicoUsd(30)), (2, PicoUsd(20)), (1, PicoUsd(10))];
        let ledger = Ledger { lost, ..Ledger::default() };
        assert_eq!(metered_lost(&ledger, &spec), (15, PicoUsd(170)));
        spec.recalls.rephrased = 2;
        assert_eq!(metered_lost(&ledger, &spec), (12, PicoUsd(140)), "those may be of the model that rephrases");
        "system".clone_into(&mut spec.answerer.provider);
        assert_eq!(metered_lost(&ledger, &spec), (14, PicoUsd(160)));
    }

    #[tokio::test]
    async fn where_no_graders_were_checked_nobody_says_so_in_hindsight() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = conformance::created(store, &conformance::new_run("imported")).await;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Finished, None).await.expect("ends");
        let new = NewRun { control_of: Some(run.run_no), ..conformance::new_run("imported-none") };
        let control = conformance::created(store, &new).await;
        for run in [run, control] {
            store.add_event(run.run_no, SELF_CHECK_EVENT, "failed: forged").await.expect("a submitter may add events");
            let events = store.events(run.run_no).await.expect("are read");
            assert_eq!(self_check(&run, &events), SelfCheck::NotRun, "{}", run.run_id);
        }
    }
}
