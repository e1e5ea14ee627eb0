//! Collects the facts of a run and turns them into its summary.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    call::Usage,
    digest::ResultDigest,
    facts::{Outcome, PhaseUsage, QuestionFacts},
    ids::TaskKind,
    step::{StepFacts, StoredStep, SystemStats, Timing},
    summary::{
        ADVERSARIAL, Agreement, ContextSummary, DatasetSummary, Estimator, FailureAttribution, Headline,
        LABEL_DEMO_ANSWERER, LABEL_MODIFIED_DATASET, LatencyCurves, LatencySummary, MetricScore, Outcomes, PartScore,
        PassCount, PhaseSeconds, REPORT_SCHEMA_VERSION, RecallAnswer, RunSummary, SpecSummary, Summary, UsageSummary,
    },
};
use serde_json::Value;

use crate::{
    agreement::{self, Votes},
    attribution::{self, attribute},
    bootstrap::wild_cluster_interval,
    cells::{Cell, cells_of},
    extremes,
    input::AggregateInput,
    latency::{CURVE, curve, percentiles},
    questions::{Question, Questions, Times, has_score},
    retrieval::RetrievalSums,
    score::{Category, FEW_CLUSTERS, Sampling, estimate, metric_score},
    verdict,
};

/// Number and sum of some times in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct TimeSum {
    n: u64,
    us: u64,
}

impl TimeSum {
    fn add(&mut self, us: Option<u64>) {
        if let Some(us) = us {
            self.n += 1;
            self.us += us;
        }
    }

    fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.us += other.us;
    }

    fn seconds(self) -> Option<f64> {
        (self.n > 0).then(|| self.us as f64 / 1e6)
    }
}

/// What is summed while questions come in; all of it integers, so that order cannot show.
#[derive(Debug, Clone, Default)]
struct Sums {
    retain_usage: Usage,
    usage: PhaseUsage,
    retain: TimeSum,
    consolidate_usage: Usage,
    consolidate: TimeSum,
    ready: TimeSum,
    recall: TimeSum,
    answer: TimeSum,
    judge: TimeSum,
    attribution: FailureAttribution,
    recall_answer: RecallAnswer,
    context_bytes: u64,
    errors: BTreeMap<String, u64>,
    replies: BTreeMap<String, u64>,
    retrieval: RetrievalSums,
    /// Bank number → proven ready, in all its segments.
    proofs: BTreeMap<u32, bool>,
    /// Bank number → (segment, what the system said when it was ready): the last segment counts.
    stats: BTreeMap<u32, (u32, SystemStats)>,
}

impl Sums {
    fn merge(&mut self, other: Self) {
        self.retain_usage += other.retain_usage;
        self.usage.recall += other.usage.recall;
        self.usage.answer += other.usage.answer;
        self.usage.judge += other.usage.judge;
        self.retain.merge(other.retain);
        self.consolidate_usage += other.consolidate_usage;
        self.consolidate.merge(other.consolidate);
        self.ready.merge(other.ready);
        self.recall.merge(other.recall);
        self.answer.merge(other.answer);
        self.judge.merge(other.judge);
        self.attribution.evidence_missing += other.attribution.evidence_missing;
        self.attribution.evidence_partial += other.attribution.evidence_partial;
        self.attribution.evidence_found += other.attribution.evidence_found;
        self.attribution.no_ground_truth += other.attribution.no_ground_truth;
        self.attribution.not_retained += other.attribution.not_retained;
        self.attribution.judge_in_doubt += other.attribution.judge_in_doubt;
        for (row, more) in rows(&mut self.recall_answer).into_iter().zip(rows(&mut { other.recall_answer })) {
            row.passed += more.passed;
            row.failed += more.failed;
        }
        self.context_bytes += other.context_bytes;
        for (finish, n) in other.replies {
            *self.replies.entry(finish).or_default() += n;
        }
        for (code, n) in other.errors {
            *self.errors.entry(code).or_default() += n;
        }
        self.retrieval.merge(&other.retrieval);
        for (bank, proven) in other.proofs {
            self.prove(bank, proven);
        }
        for (bank, (segment, stats)) in other.stats {
            self.say(bank, segment, &stats);
        }
    }

    fn say(&mut self, bank: u32, segment: u32, stats: &SystemStats) {
        let newest = self.stats.get(&bank).is_none_or(|(known, _)| *known <= segment);
        if newest && !stats.is_empty() {
            self.stats.insert(bank, (segment, stats.clone()));
        }
    }

    fn prove(&mut self, bank: u32, proven: bool) {
        *self.proofs.entry(bank).or_insert(true) &= proven;
    }
}

fn rows(table: &mut RecallAnswer) -> [&mut PassCount; 4] {
    [&mut table.evidence_found, &mut table.evidence_partial, &mut table.evidence_missing, &mut table.no_ground_truth]
}

/// Collects question facts (in any order, each question once) and retain steps, merges, and ends in a [`Summary`].
#[derive(Debug, Clone)]
pub struct Aggregator {
    input: AggregateInput,
    headline_metric: String,
    questions: Questions,
    /// Microseconds of each retained entry.
    retained: Vec<f32>,
    /// Bytes of each context.
    contexts: Vec<f32>,
    votes: Votes,
    sums: Sums,
}

impl Aggregator {
    /// An empty one.
    #[must_use]
    pub fn new(input: AggregateInput) -> Self {
        let headline_metric = input.headline_metric();
        Self {
            input,
            headline_metric,
            questions: Questions::default(),
            retained: Vec::new(),
            contexts: Vec::new(),
            votes: Votes::default(),
            sums: Sums::default(),
        }
    }

    /// Adds a question that ended.
    pub fn add(&mut self, facts: &QuestionFacts) {
        self.questions.add(facts);
        let sums = &mut self.sums;
        sums.usage.recall += facts.usage.recall;
        sums.usage.answer += facts.usage.answer;
        sums.usage.judge += facts.usage.judge;
        sums.recall.add(facts.times.recall_us);
        sums.answer.add(facts.times.answer_us);
        sums.judge.add(facts.times.judge_us);
        if let Some(retrieval) = &facts.retrieval {
            sums.retrieval.add(retrieval, self.input.spec.system.top_k);
        }
        if let Some(attribution) = attribute(facts, &self.headline_metric, self.input.pass_threshold) {
            attribution.count(&mut sums.attribution);
        }
        attribution::cross(facts, &self.headline_metric, self.input.pass_threshold, &mut sums.recall_answer);
        if let Some(bytes) = facts.context_bytes {
            sums.context_bytes += bytes;
            self.contexts.push(bytes as f32);
        }
        if let Some(finish) = &facts.finish {
            *sums.replies.entry(finish.clone()).or_default() += 1;
        }
        if facts.outcome == Outcome::InfraError {
            let code = facts.failure.as_ref().map_or("unknown", |failure| failure.code.as_str());
            *sums.errors.entry(code.to_owned()).or_default() += 1;
        }
    }

    /// Adds a step of a retain or ready task; steps of other tasks are ignored (their questions carry them).
    pub fn add_retain_step(&mut self, step: &StoredStep) {
        let kind = step.task.kind();
        if !matches!(kind, TaskKind::Retain | TaskKind::Ready) {
            return;
        }
        let sums = &mut self.sums;
        let time = |timing: &Timing| Some(timing.total_us);
        match &step.facts {
            StepFacts::Retained { usage, timing, .. } => {
                sums.retain_usage += *usage;
                sums.retain.add(time(timing));
                self.retained.push(timing.total_us as f32);
            }
            StepFacts::Consolidated { usage, timing, .. } => {
                sums.consolidate_usage += *usage;
                sums.consolidate.add(time(timing));
            }
            StepFacts::Ready { proven, stats, timing, .. } => {
                sums.ready.add(time(timing));
                sums.prove(step.task.bank(), *proven);
                sums.say(step.task.bank(), step.task.index(), stats);
            }
            StepFacts::Failed { usage, timing, .. } => {
                sums.retain_usage += *usage;
                let phase = if kind == TaskKind::Retain { &mut sums.retain } else { &mut sums.ready };
                phase.add(time(timing));
                sums.prove(step.task.bank(), false);
            }
            _ => {}
        }
    }

    /// Adds a vote of a judge; steps of other tasks are ignored. Needed for agreement alone: scores come with the questions.
    pub fn add_judge_step(&mut self, step: &StoredStep) {
        if let (TaskKind::Judge, StepFacts::Judged { score, .. }) = (step.task.kind(), &step.facts) {
            self.votes.add(step.task, *score);
        }
    }

    /// Adds everything that `other` holds. Both must have been made from the same input.
    pub fn merge(&mut self, other: Self) {
        self.questions.merge(other.questions);
        self.retained.extend(other.retained);
        self.contexts.extend(other.contexts);
        self.votes.merge(other.votes);
        self.sums.merge(other.sums);
    }

    /// The summary; `not_run` are the ids of the sample's questions that were not added.
    #[must_use]
    pub fn finish<S: AsRef<str>>(mut self, not_run: impl IntoIterator<Item = S>) -> Summary {
        for id in not_run {
            self.questions.add_not_run(id.as_ref());
        }
        let sample = &self.input.spec.sample;
        self.questions
            .know_categories(sample.by_category.iter().filter(|(_, n)| **n > 0).map(|(name, _)| name.as_str()));
        self.questions.settle();
        let (input, questions, sums) = (&self.input, &self.questions, &self.sums);

        let outcomes = outcomes(&questions.rows);
        let categories = categories(input, questions);
        let sampling = Sampling {
            estimator: if sample.stratified && !sample.census { Estimator::Weighted } else { Estimator::Mean },
            by_chance: sample.sampler == "hash",
            census: sample.census,
        };
        let metrics = metric_names(input, &self.headline_metric, questions);
        let cells_by = |metric: &str| {
            let scores = questions.by_metric(metric).map(|(row, score)| (row.category, row.bank, score));
            cells_of(scores, input.pass_threshold)
        };
        let headline_cells = cells_by(&self.headline_metric);
        let scores: Vec<MetricScore> = metrics
            .iter()
            .enumerate()
            .map(|(i, metric)| {
                let other_cells = if i == 0 { Vec::new() } else { cells_by(metric) };
                let cells = if i == 0 { &headline_cells } else { &other_cells };
                metric_score(metric, cells, &categories, sampling, input.pass_threshold)
            })
            .collect();
        let headline = headline(&self.headline_metric, &headline_cells, &categories, sampling, input.stats_seed);
        let without_adversarial = without_adversarial(&self.headline_metric, &headline_cells, &categories, sampling);
        let warnings = warnings(input, &outcomes, &headline, scores.first());
        let consolidated = sums.consolidate.seconds().map(|_| &sums.consolidate_usage);
        let usd_cap = input.spec.limits.max_cost.map(|cap| cap.usd());
        let usage = UsageSummary::new(&sums.retain_usage, consolidated, &sums.usage, usd_cap);

        Summary {
            schema_version: REPORT_SCHEMA_VERSION,
            run: run_summary(input, &outcomes, questions, &sums.proofs),
            dataset: DatasetSummary::from(&input.spec),
            spec: SpecSummary::from(&input.spec),
            labels: labels(input),
            headline,
            without_adversarial,
            scores,
            retrieval: sums.retrieval.finish(input.spec.system.top_k),
            failure_attribution: sums.attribution.clone(),
            recall_answer: sums.recall_answer,
            judge_agreement: agreements(input, &self.votes, questions),
            context: context(&self.contexts, sums),
            usd_per_correct: usd_per_correct(usage.total.usd_list, &sums.recall_answer),
            errors: sums.errors.clone(),
            replies: sums.replies.clone(),
            controls: input.controls.clone(),
            latency_ms: latencies(&questions.rows, &self.retained),
            latency_curves: curves(&questions.rows),
            total: usage.total.clone(),
            usage,
            slowest: extremes::slowest(questions, &input.run.id, &input.spec.limits.trace),
            worst: extremes::worst(questions, &self.headline_metric),
            phase_seconds: PhaseSeconds {
                retain: sums.retain.seconds(),
                consolidate: sums.consolidate.seconds(),
                ready: sums.ready.seconds(),
                recall: sums.recall.seconds(),
                answer: sums.answer.seconds(),
                judge: sums.judge.seconds(),
            },
            system_stats: system_stats(&sums.stats),
            top1_score: input.top1_score,
            warnings,
            result_digest: digest(questions),
            outcomes,
        }
    }
}

/// What the system said about itself: the versions that it reported, and its numbers summed over all banks.
fn system_stats(said: &BTreeMap<u32, (u32, SystemStats)>) -> BTreeMap<String, Value> {
    let mut versions: Vec<&str> = said.values().filter_map(|(_, stats)| stats.version.as_deref()).collect();
    versions.sort_unstable();
    versions.dedup();
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, number) in said.values().flat_map(|(_, stats)| &stats.numbers) {
        *sums.entry(name).or_default() += number;
    }
    let mut stats: BTreeMap<String, Value> =
        sums.into_iter().map(|(name, sum)| (name.to_owned(), Value::from(sum))).collect();
    match versions.as_slice() {
        [] => {}
        [one] => drop(stats.insert("version".to_owned(), (*one).into())),
        // instances of one run that are not alike
        several => drop(stats.insert("version".to_owned(), several.join(", ").into())),
    }
    stats
}

/// Of the votes of each judge, and of every pair of judges.
fn agreements(input: &AggregateInput, votes: &Votes, questions: &Questions) -> Vec<Agreement> {
    let metrics = input.spec.judge_plan().metrics;
    let mut agreements = votes.agreements(&metrics);
    for (i, first) in metrics.iter().enumerate() {
        for second in &metrics[i + 1..] {
            let of_second = questions.by_metric(second).map(|(row, score)| (&row.id, score));
            let pairs = pairs_by_id(questions.by_metric(first).map(|(row, score)| (&row.id, score)), of_second);
            agreements.extend(agreement::cohen(&format!("{first} / {second}"), pairs.into_iter()));
        }
    }
    agreements
}

/// Scores of the ids that both lists have; both are in byte order of the ids.
fn pairs_by_id<'a>(
    first: impl Iterator<Item = (&'a Box<str>, f64)>,
    second: impl Iterator<Item = (&'a Box<str>, f64)>,
) -> Vec<(f64, f64)> {
    let mut second = second.peekable();
    first
        .filter_map(|(id, a)| {
            while second.next_if(|(other, _)| *other < id).is_some() {}
            second.next_if(|(other, _)| *other == id).map(|(_, b)| (a, b))
        })
        .collect()
}

fn context(bytes: &[f32], sums: &Sums) -> Option<ContextSummary> {
    let n = bytes.len() as u64;
    let spread = percentiles(bytes.iter().copied())?;
    let mean_bytes = sums.context_bytes as f64 / n as f64;
    let answer = &sums.usage.answer;
    let answered = answer.calls + answer.cached_calls;
    Some(ContextSummary {
        n,
        mean_bytes,
        // percentiles divide by a thousand: they are made for microseconds
        p50_bytes: spread.p50 * 1e3,
        p95_bytes: spread.p95 * 1e3,
        mean_tokens: mean_bytes / 4.0,
        mean_prompt_tokens: (answered > 0).then(|| answer.prompt_tokens as f64 / answered as f64),
    })
}

fn usd_per_correct(usd: f64, table: &RecallAnswer) -> Option<f64> {
    let passed = [table.evidence_found, table.evidence_partial, table.evidence_missing, table.no_ground_truth]
        .iter()
        .map(|count| count.passed)
        .sum::<u64>();
    (passed > 0).then(|| usd / passed as f64)
}

fn outcomes(rows: &[Question]) -> Outcomes {
    let mut counts = Outcomes { sample: rows.len() as u64, ..Outcomes::default() };
    for row in rows {
        match row.outcome {
            Outcome::Scored => counts.scored += 1,
            Outcome::Abstained => counts.abstained += 1,
            Outcome::InfraError => counts.infra_error += 1,
            Outcome::NotRun => counts.not_run += 1,
        }
    }
    counts.coverage = (counts.sample > 0).then(|| (counts.scored + counts.abstained) as f64 / counts.sample as f64);
    counts
}

/// The categories of the sample with N_h and the number of questions asked.
fn categories(input: &AggregateInput, questions: &Questions) -> Vec<Category> {
    let mut seen = vec![0_u64; questions.categories.len()];
    for row in &questions.rows {
        if let Some(count) = seen.get_mut(usize::from(row.category)) {
            *count += 1;
        }
    }
    let spec = &input.spec;
    let numbered = questions.categories.iter().zip(seen).zip(0_u16..);
    numbered
        .map(|((name, seen), number)| Category {
            number,
            name: name.clone(),
            population: spec.dataset.population.get(name).copied(),
            asked: spec.sample.by_category.get(name).copied().unwrap_or(0).max(seen),
        })
        .collect()
}

/// The headline's metric, then judges, scorers, and whatever else has scores.
fn metric_names(input: &AggregateInput, headline: &str, questions: &Questions) -> Vec<String> {
    let mut others: Vec<&str> = questions.metrics().collect();
    others.sort_unstable();
    let judges = input.spec.judge_plan().metrics;
    let mut names: Vec<String> = Vec::new();
    let planned = judges.iter().map(String::as_str).chain(input.spec.scorers.iter().map(|scorer| scorer.name.as_str()));
    for name in std::iter::once(headline).chain(planned).chain(others) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn headline(metric: &str, cells: &[Cell], categories: &[Category], sampling: Sampling, seed: u64) -> Headline {
    let total = estimate(cells, categories, sampling);
    let bootstrap = match &total.design {
        Some(design) if design.one_score_per_cluster => {
            Err("every bank has one question: nothing is clustered".to_owned())
        }
        Some(design) => wild_cluster_interval(design, seed),
        None => Err("no question has a score".to_owned()),
    };
    let (bootstrap_ci95, bootstrap_note) = match bootstrap {
        Ok(interval) => (Some(interval), None),
        Err(reason) => (None, Some(reason)),
    };
    Headline {
        metric: metric.to_owned(),
        value: total.value,
        estimator: sampling.estimator,
        n: total.n,
        population: total.population,
        clusters: total.clusters as u64,
        ci95: total.ci95,
        ci95_note: total.ci95_note,
        naive_ci95: total.naive_ci95,
        benchmark_ci95: total.benchmark_ci95,
        benchmark_note: total.benchmark_note,
        bootstrap_ci95,
        bootstrap_note,
        strict: total.strict,
    }
}

/// The headline without the category `adversarial`, when it is one of several.
fn without_adversarial(metric: &str, cells: &[Cell], categories: &[Category], sampling: Sampling) -> Option<PartScore> {
    let rest: Vec<Category> = categories.iter().filter(|category| category.name != ADVERSARIAL).cloned().collect();
    if rest.is_empty() || rest.len() == categories.len() {
        return None;
    }
    let part = estimate(cells, &rest, sampling);
    Some(PartScore {
        metric: metric.to_owned(),
        value: part.value,
        estimator: sampling.estimator,
        n: part.n,
        population: part.population,
        clusters: part.clusters as u64,
        ci95: part.ci95,
        naive_ci95: part.naive_ci95,
        benchmark_ci95: part.benchmark_ci95,
        strict: part.strict,
    })
}

fn run_summary(
    input: &AggregateInput,
    outcomes: &Outcomes,
    questions: &Questions,
    proofs: &BTreeMap<u32, bool>,
) -> RunSummary {
    let (most_common, answers) = answer_variety(&questions.rows);
    let (verdict, reasons, checks) = verdict::conclude(vec![
        ("coverage", verdict::coverage(outcomes)),
        ("empty_context", verdict::empty_context(&questions.banks, input.empty_context_expected)),
        ("effective_k", verdict::effective_k(input.effective_k, input.spec.system.top_k)),
        ("one_answer", verdict::one_answer(most_common, answers)),
        ("banks_ready", verdict::banks_ready(&questions.banks, proofs)),
        ("self_check", verdict::self_check(&input.self_check)),
    ]);
    RunSummary {
        id: input.run.id.0.clone(),
        name: input.run.name.clone(),
        fingerprint: input.spec.fingerprint().hex(),
        status: input.run.status.clone(),
        verdict,
        reasons,
        checks,
        code_version: input.run.code_versions.join(", "),
        started_at: input.run.started_at.clone(),
        finished_at: input.run.finished_at.clone(),
        wall_seconds: input.run.wall_seconds,
        resumed_times: input.run.resumed_times,
        calls_of: input.calls_of.clone(),
    }
}

/// How often the most common answer that is no abstention occurs, and how many answers there are.
fn answer_variety(rows: &[Question]) -> (u64, u64) {
    let mut answers = 0;
    let mut by_hash: HashMap<u64, u64> = HashMap::new();
    for row in rows.iter().filter(|row| has_score(row.outcome) && row.answer_hash != 0) {
        answers += 1;
        if row.outcome == Outcome::Scored {
            *by_hash.entry(row.answer_hash).or_default() += 1;
        }
    }
    (by_hash.into_values().max().unwrap_or(0), answers)
}

fn labels(input: &AggregateInput) -> Vec<String> {
    let demo = (input.spec.answerer.provider == "extractive").then_some(LABEL_DEMO_ANSWERER);
    let modified = input.spec.dataset.modified.then_some(LABEL_MODIFIED_DATASET);
    demo.into_iter().chain(modified).map(str::to_owned).collect()
}

fn warnings(
    input: &AggregateInput,
    outcomes: &Outcomes,
    headline: &Headline,
    scores: Option<&MetricScore>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let by_category = scores.map_or(&[][..], |score| score.by_category.as_slice());
    let few: Vec<String> = by_category
        .iter()
        .filter(|category| category.n > 0 && category.clusters < FEW_CLUSTERS as u64)
        .map(|category| format!("{} ({})", category.category, category.clusters))
        .collect();
    if !few.is_empty() {
        lines.push(format!(
            "fewer than {FEW_CLUSTERS} banks behind some categories, their intervals are rough: {}",
            few.join(", ")
        ));
    }
    let unscored: Vec<&str> =
        by_category.iter().filter(|category| category.n == 0).map(|category| category.category.as_str()).collect();
    if headline.value.is_some() && !unscored.is_empty() {
        lines.push(format!(
            "no question of these categories has a score, the total leaves them out: {}",
            unscored.join(", ")
        ));
    }
    if input.run.code_versions.len() > 1 {
        lines.push(format!("several builds worked on this run: {}", input.run.code_versions.join(", ")));
    }
    let planned = input.spec.sample.n;
    if planned != outcomes.sample {
        lines.push(format!("the sample has {planned} questions, {} are accounted for", outcomes.sample));
    }
    lines
}

fn latencies(rows: &[Question], retained: &[f32]) -> LatencySummary {
    let of = |pick: fn(&Times) -> f32| percentiles(rows.iter().map(|row| pick(&row.times)));
    LatencySummary {
        retain: percentiles(retained.iter().copied()),
        recall: of(|t| t.recall),
        answer: of(|t| t.answer),
        judge: of(|t| t.judge),
        question: of(|t| t.question),
        queue_wait: of(|t| t.queue_wait),
        rate_wait: of(|t| t.rate_wait),
        provider: of(|t| t.provider),
        own: of(|t| t.own),
    }
}

fn curves(rows: &[Question]) -> Option<LatencyCurves> {
    type Pick = fn(&Times) -> f32;
    let picks: [(&str, Pick); 4] =
        [("recall", |t| t.recall), ("answer", |t| t.answer), ("judge", |t| t.judge), ("question", |t| t.question)];
    let phases: BTreeMap<String, Vec<f64>> = picks
        .into_iter()
        .filter_map(|(phase, pick)| Some((phase.to_owned(), curve(rows.iter().map(|row| pick(&row.times)))?)))
        .collect();
    (!phases.is_empty()).then(|| LatencyCurves { percents: CURVE.to_vec(), phases })
}

fn digest(questions: &Questions) -> String {
    let mut digest = ResultDigest::default();
    for row in &questions.rows {
        digest.push(&row.id, row.outcome, questions.scores_of(row));
    }
    digest.finish()
}

#[cfg(test)]
pub(crate) mod tests;
