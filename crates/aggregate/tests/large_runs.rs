//! Large runs: memory per question stays bounded. Alone in its process, because it reads the process's peak memory.

#![cfg(target_os = "linux")]

use std::{collections::BTreeMap, time::Instant};

use bench_aggregate::{AggregateInput, Aggregator, RunIdentity};
use bench_proto::{
    facts::{Outcome, PhaseTimes, PhaseUsage, QuestionFacts},
    ids::{RunId, TaskKey},
    scenario::{RecallPlan, Scenario},
    spec::{DatasetSpec, JudgingSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, SampleSpec, ScorerSpec, SystemSpec},
    step::{RankHits, Retrieval},
};

/// 300 MB for a million questions.
const BYTES_PER_QUESTION: u64 = 300;
const CATEGORIES: [&str; 5] = ["adversarial", "multi-hop", "open-domain", "single-hop", "temporal"];

/// Questions to aggregate: enough to show the slope, few enough for a debug build; `BENCH_LARGE_RUN=1000000` for the figure.
fn size() -> u64 {
    std::env::var("BENCH_LARGE_RUN").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel says it");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number of kB") * 1024
}

fn input(n: u64) -> AggregateInput {
    let model = ModelSpec {
        provider: "openai".into(),
        name: "m".into(),
        account: "a".into(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 1,
    };
    let counts: BTreeMap<String, u64> = CATEGORIES.iter().map(|name| ((*name).to_owned(), n / 5)).collect();
    let spec = RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec {
            name: "locomo-sim".into(),
            version: "1".into(),
            sha256: String::new(),
            loader: 1,
            population: counts.clone(),
            banks: n / 200,
            sessions: n / 8,
            ..DatasetSpec::default()
        },
        sample: SampleSpec {
            preset: "full".into(),
            sampler: "hash".into(),
            sampler_version: 1,
            n,
            banks: n / 200,
            by_category: counts,
            census: true,
            ..SampleSpec::default()
        },
        system: SystemSpec { name: "bm25".into(), version: "1".into(), top_k: 10, settings: BTreeMap::new() },
        scenario: Scenario::default(),
        recalls: RecallPlan::default(),
        answerer: model.clone(),
        judges: vec![model],
        votes: 1,
        judging: JudgingSpec::default(),
        scorers: vec![ScorerSpec { name: "locomo-f1".into(), version: 1, ..ScorerSpec::default() }],
        counting: None,
        headline: None,
        limits: Limits::default(),
        canaries: None,
        stop: None,
        lists: false,
        taken_over: Default::default(),
    };
    let run = RunIdentity {
        id: RunId("large".into()),
        name: None,
        status: "finished".into(),
        code_versions: vec![],
        started_at: None,
        finished_at: None,
        wall_seconds: None,
        resumed_times: 0,
    };
    AggregateInput::new(spec, run)
}

fn question(i: u64) -> QuestionFacts {
    let bank = i / 200;
    let hits = RankHits { gold: 2, ranked: 10, ranks: vec![1 + (i % 7) as u32, 9] };
    QuestionFacts {
        task: TaskKey::question(bank as u32, (i % 200) as u32),
        question_id: format!("conversation-{bank}:{}", i % 200),
        bank_id: format!("conversation-{bank}"),
        category: CATEGORIES[(i % 5) as usize].to_owned(),
        facets: BTreeMap::new(),
        outcome: Outcome::Scored,
        scores: vec![("locomo-f1".to_owned(), (i % 1_001) as f64 / 1_000.0), ("judge".to_owned(), (i % 2) as f64)],
        retrieval: Some(Retrieval { turn: hits.clone(), session: hits, ..Retrieval::default() }),
        hits: Some(10),
        top1_score: None,
        empty_context: false,
        context_bytes: Some(4_000),
        judge_in_doubt: false,
        finish: None,
        answer_hash: i,
        times: PhaseTimes {
            recall_us: Some(i % 999),
            answer_us: Some(i % 99_991),
            judge_us: Some(7),
            question_us: i % 99_999,
            ..PhaseTimes::default()
        },
        usage: PhaseUsage::default(),
        attempts: 2,
        failure: None,
        kept: None,
    }
}

#[test]
fn a_question_costs_at_most_300_bytes_at_the_peak() {
    let n = size();
    let before = peak_bytes();
    let mut aggregator = Aggregator::new(input(n));
    let mut adding = std::time::Duration::ZERO;
    for i in 0..n {
        // any order will do: this one visits every question once, far from sorted
        let facts = question(i * 7_919 % n);
        let start = Instant::now();
        aggregator.add(&facts);
        adding += start.elapsed();
    }
    let start = Instant::now();
    let summary = aggregator.finish(std::iter::empty::<&str>()).summary;
    let finishing = start.elapsed();
    let per_question = (peak_bytes() - before) / n;
    eprintln!(
        "{n} questions: added in {adding:.2?}, finished in {finishing:.2?}, {per_question} bytes each at the peak"
    );
    assert_eq!(summary.outcomes.scored, n);
    assert!(per_question <= BYTES_PER_QUESTION, "{per_question} bytes per question");
}
