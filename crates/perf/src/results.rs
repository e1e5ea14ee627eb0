//! What is done with stored results: aggregating a million questions, comparing two large runs, writing the page of one.
//!
//! The runs are written into a store of their own, so that nothing but the reading is measured.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::Context as _;
use bench_proto::{
    facts::{Outcome, PhaseTimes, PhaseUsage, QuestionFacts},
    ids::{RunId, TaskKey},
    spec::{DatasetSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, SampleSpec, ScorerSpec, SystemSpec},
    step::{RankHits, Retrieval},
};
use bench_store::{NewRun, RunState, Store};
use serde_json::{Value, json};

use crate::{
    measure::{Sample, median, run},
    scenarios::Lab,
};

const CATEGORIES: [&str; 5] = ["adversarial", "multi-hop", "open-domain", "single-hop", "temporal"];
/// Questions of a bank, as in LoCoMo.
const PER_BANK: u32 = 200;
const METRIC: &str = "locomo-f1";
/// Questions written at once.
const PART: u32 = 20_000;

/// All three.
pub(crate) async fn results(lab: &Lab, rounds: usize, questions: u32, compared: u32) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("bench.db").display());
    let store = bench_store::open(&url).await?;
    write_run(store.as_ref(), "large", questions, 0).await?;
    write_run(store.as_ref(), "one", compared, 0).await?;
    write_run(store.as_ref(), "two", compared, 1).await?;
    store.close().await;
    let command = |args: &[&str]| {
        let mut command = Command::new(lab.binaries.join("bench-coord"));
        command.current_dir(folder.path()).args(["--store", &url]).args(args);
        command
    };
    let mut measured = Vec::new();
    // a stored summary would be printed: each round aggregates a run that has none yet
    let aggregated = (0..rounds)
        .map(|_| {
            forget_summaries(folder.path())?;
            run(&mut command(&["report", "large", "--format", "json"]))
        })
        .collect::<anyhow::Result<Vec<Sample>>>()?;
    measured.push(figure("aggregate", questions, &aggregated, 5.0, Some(300.0)));
    // both summaries are there, as after any run
    for id in ["one", "two"] {
        run(&mut command(&["report", id, "--format", "json"]))?;
    }
    // a comparison that finds a regression exits with 1: that is a result
    let compare = || {
        let mut shell = Command::new("sh");
        let program = lab.binaries.join("bench-coord");
        let line = format!("'{}' --store '{url}' compare one two --flips 0 --json; test $? -le 1", program.display());
        shell.args(["-c", &line]).current_dir(folder.path());
        run(&mut shell)
    };
    let compared_samples = (0..rounds).map(|_| compare()).collect::<anyhow::Result<Vec<Sample>>>()?;
    measured.push(figure("compare", compared, &compared_samples, 2.0, None));
    measured.push(page(lab, rounds)?);
    Ok(measured)
}

/// The page of a whole run of LoCoMo's size, questions read from the store.
fn page(lab: &Lab, rounds: usize) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let command = |args: &[&str]| {
        let mut command = Command::new(lab.binaries.join("bench-coord"));
        command.current_dir(folder.path()).args(args);
        command.envs(lab.datasets_dir.iter().map(|dir| ("BENCH_DATASETS_DIR", dir)));
        command
    };
    let submit = ["submit", "--dataset", lab.dataset(), "--preset", "full", "--display", "none", "--run-id", "page"];
    run(&mut command(&submit))?;
    let report = ["report", "page", "--format", "html", "--output-dir", "out"];
    let samples = (0..rounds).map(|_| run(&mut command(&report))).collect::<anyhow::Result<Vec<Sample>>>()?;
    let bytes = std::fs::metadata(folder.path().join("out/report.html"))?.len();
    let mut figure = figure("html", 1_986, &samples, 1.0, None);
    figure["megabytes"] = json!(bytes as f64 / 1e6);
    figure["target_megabytes"] = json!(6.0);
    Ok(figure)
}

fn figure(name: &str, questions: u32, samples: &[Sample], seconds: f64, mib: Option<f64>) -> Value {
    json!({
        "scenario": format!("results-{name}"),
        "questions": questions,
        "wall_seconds": median(samples.iter().map(|s| s.wall_seconds)),
        "peak_mib": median(samples.iter().map(|s| s.peak_mib)),
        "target_seconds": seconds,
        "target_mib": mib,
        "samples": samples,
    })
}

/// Takes stored summaries away, so that they are made again.
fn forget_summaries(folder: &Path) -> anyhow::Result<()> {
    let file = folder.join("bench.db");
    let done = Command::new("python3")
        .args([
            "-c",
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM summaries'); c.commit()",
        ])
        .arg(&file)
        .status()
        .context("python3 is needed to take summaries away")?;
    anyhow::ensure!(done.success(), "the summaries of {} could not be taken away", file.display());
    Ok(())
}

/// A finished run of `n` questions; another `variant` has other scores.
async fn write_run(store: &dyn Store, id: &str, n: u32, variant: u32) -> anyhow::Result<()> {
    let new = NewRun {
        run_id: RunId(id.to_owned()),
        name: None,
        tags: Vec::new(),
        user: "perf".to_owned(),
        spec: spec(n, variant),
        lineage: id.to_owned(),
        control_of: None,
        domain: "local".to_owned(),
        imported: false,
        code_version: bench_proto::CODE_VERSION.to_owned(),
        group: None,
        waits: false,
    };
    let run = store.create_run(&new).await?;
    for first in (0..n).step_by(PART as usize) {
        let part: Vec<_> = (first..n.min(first + PART)).map(|i| (question(i, variant), Vec::new())).collect();
        store.import_results(run, METRIC, &part).await?;
    }
    store.finish_plan(run).await?;
    store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await?;
    Ok(())
}

fn question(i: u32, variant: u32) -> QuestionFacts {
    let bank = i / PER_BANK;
    let hits = RankHits { gold: 2, ranked: 10, ranks: vec![1 + i % 7, 9] };
    let turned = i.wrapping_mul(7_919).wrapping_add(variant * (i % 13)) % 1_001;
    QuestionFacts {
        task: TaskKey::question(bank, i % PER_BANK),
        question_id: format!("conversation-{bank}:{}", i % PER_BANK),
        bank_id: format!("conversation-{bank}"),
        category: CATEGORIES[(i % 5) as usize].to_owned(),
        outcome: Outcome::Scored,
        scores: vec![(METRIC.to_owned(), f64::from(turned) / 1_000.0)],
        retrieval: Some(Retrieval { turn: hits.clone(), session: hits, unretained: 0 }),
        empty_context: false,
        context_bytes: Some(u64::from(1_000 + i % 3_000)),
        judge_in_doubt: false,
        answer_hash: u64::from(i),
        times: PhaseTimes {
            started_us: 1_700_000_000_000_000 + i64::from(i),
            recall_us: Some(u64::from(i % 999)),
            answer_us: Some(u64::from(i % 99_991)),
            question_us: u64::from(i % 99_999),
            ..PhaseTimes::default()
        },
        usage: PhaseUsage::default(),
        attempts: 2,
        failure: None,
        finish: None,
        kept: None,
    }
}

fn spec(n: u32, variant: u32) -> RunSpec {
    let population: BTreeMap<String, u64> =
        CATEGORIES.iter().map(|name| ((*name).to_owned(), u64::from(n / 5))).collect();
    RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec {
            name: "locomo-sim".to_owned(),
            version: "1".to_owned(),
            sha256: "0".repeat(64),
            modified: false,
            loader: 1,
            settings: BTreeMap::new(),
            abstention_phrases: Vec::new(),
            population: population.clone(),
            banks: u64::from(n.div_ceil(PER_BANK)),
            sessions: u64::from(n / 8),
            path: None,
        },
        sample: SampleSpec {
            preset: "full".to_owned(),
            sampler: "hash".to_owned(),
            sampler_version: 1,
            seed: None,
            n: u64::from(n),
            banks: u64::from(n.div_ceil(PER_BANK)),
            by_category: population,
            signature: format!("perf-{n}"),
            census: true,
            stratified: false,
            max_sessions: None,
            notes: Vec::new(),
            request: Value::Null,
        },
        system: SystemSpec {
            name: "bm25".to_owned(),
            version: variant.to_string(),
            top_k: 10,
            settings: BTreeMap::new(),
        },
        answerer: ModelSpec {
            provider: "extractive".to_owned(),
            name: String::new(),
            account: String::new(),
            params: BTreeMap::new(),
            prompts: BTreeMap::new(),
            version: 1,
        },
        judges: Vec::new(),
        votes: 1,
        scorers: vec![ScorerSpec { name: METRIC.to_owned(), version: 1 }],
        headline: None,
        limits: Limits::default(),
    }
}
