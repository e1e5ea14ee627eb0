//! Collects the facts of a run and turns them into its summary.
//!
//! In come facts of questions, retain and judge steps and the probe, in any order (`add…`), and what other aggregators have collected
//! (`merge`); out comes the [`Summary`] (`finish`). Nothing is computed before the end: `scored` makes the scores, the sections beside
//! this file (`sections`, `score`, `probe`, `metered`) the rest. Start reading at `finish`.

use std::collections::BTreeMap;

use bench_proto::{
    call::Usage,
    facts::{Outcome, QuestionFacts},
    ids::{TaskKey, TaskKind},
    metered::FAULT_SETTING,
    metric::Scale,
    money::PicoUsd,
    step::{StepFacts, StoredStep, Timing},
    summary::{
        AnswerKeyScore, DatasetSummary, Estimator, Headline, MemoryCost, MeteredSummary, MetricScore, PanelSummary,
        PartScore, PhaseSeconds, PublishedFigure, REPORT_SCHEMA_VERSION, SpecSummary, StopSummary, Summary, TotalScore,
        UsageSummary, keyed_totals, labels,
    },
};

use serde_json::Value;

use crate::{
    agreement::Votes,
    answer_key,
    attribution::{self, Attribution, attribute},
    audit,
    causes::Known,
    cells::cells_of,
    counting, extremes,
    facets::facets,
    figures::figures,
    input::AggregateInput,
    metered,
    panel::Panel,
    probe::Conditions,
    questions::Questions,
    score::{Sampling, facet_scores, metric_score},
    sections,
    strata::Strata,
    sums::Sums,
};

/// What aggregation ends in.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Every figure of the run: what reports are made of.
    pub summary: Summary,
    /// Tasks of its worst questions, in their order, for those who can fill in their texts.
    pub worst: Vec<TaskKey>,
}

/// Scores of a run and their totals.
struct Scored {
    headline: Headline,
    without_adversarial: Option<PartScore>,
    totals: Vec<TotalScore>,
    figures: Vec<PublishedFigure>,
    scores: Vec<MetricScore>,
    panel: Option<PanelSummary>,
    /// What is to know of the facets.
    notes: Vec<String>,
}

/// Collects question facts (in any order, each question once) and retain steps, merges, and ends in a [`Summary`].
#[derive(Debug, Clone)]
pub struct Aggregator {
    input: AggregateInput,
    headline_metric: String,
    /// How the headline's scores are read.
    scale: Scale,
    /// What it grades is the recall.
    of_recalls: bool,
    /// The fewest hits that a recall asks for.
    fewest_hits: u32,
    questions: Questions,
    /// Microseconds of each retained entry.
    retained: Vec<f32>,
    /// Bytes of each context.
    contexts: Vec<f32>,
    /// Scores of best hits, on the system's own scale.
    best_hits: Vec<f64>,
    votes: Votes,
    /// What each judge has cost, as if nothing had been cached.
    judge_usd: BTreeMap<u32, PicoUsd>,
    sums: Sums,
    conditions: Conditions,
    /// Wrong answers, and what recall had found for them.
    wrong: Vec<(TaskKey, Attribution)>,
    /// What banks hold.
    known: Known,
}

impl Aggregator {
    /// An empty one.
    #[must_use]
    pub fn new(input: AggregateInput) -> Self {
        let headline_metric = input.headline_metric();
        Self {
            scale: input.spec.metric(&headline_metric),
            of_recalls: input.spec.grades_recalls(&headline_metric),
            fewest_hits: input.spec.hits_asked_for().0,
            known: Known::new(input.holds_all),
            input,
            headline_metric,
            questions: Questions::default(),
            retained: Vec::new(),
            contexts: Vec::new(),
            best_hits: Vec::new(),
            votes: Votes::default(),
            judge_usd: BTreeMap::new(),
            sums: Sums::default(),
            conditions: Conditions::default(),
            wrong: Vec::new(),
        }
    }

    /// Adds a question that ended.
    pub fn add(&mut self, facts: &QuestionFacts) {
        self.questions.add(facts);
        self.conditions.question(facts);
        let sums = &mut self.sums;
        sums.usage.recall += facts.usage.recall;
        sums.usage.answer += facts.usage.answer;
        sums.usage.judge += facts.usage.judge;
        sums.recall.add(facts.times.recall_us);
        sums.answer.add(facts.times.answer_us);
        sums.judge.add(facts.times.judge_us);
        let was_asked = facts.times.recall_us.or(facts.times.answer_us).is_some() || facts.outcome.has_score();
        sums.asked += u64::from(was_asked);
        if let Some(retrieval) = &facts.retrieval {
            sums.retrieval.add(retrieval, self.input.spec.system.top_k);
        }
        sums.recalled(facts.task.bank(), facts.hits);
        sums.sessions_of(facts, self.fewest_hits);
        self.best_hits.extend(facts.top1_score);
        if let Some(attribution) = attribute(facts, &self.headline_metric, self.scale, self.of_recalls) {
            attribution.count(&mut sums.attribution);
        }
        let wrong = attribution::wrong(facts, &self.headline_metric, self.scale);
        self.wrong.extend(wrong.map(|evidence| (facts.task, evidence)));
        if !self.of_recalls {
            attribution::cross(facts, &self.headline_metric, self.scale, &mut sums.recall_answer);
        }
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
            if let Some(failure) = &facts.failure {
                sums.error_examples.add(&failure.code, &failure.message);
            }
        }
    }

    /// Adds a step of a retain or ready task; steps of other tasks are ignored (their questions carry them).
    pub fn add_retain_step(&mut self, step: &StoredStep) {
        let kind = step.task.kind();
        if !matches!(kind, TaskKind::Retain | TaskKind::Ready) {
            return;
        }
        let sums = &mut self.sums;
        let time = |timing: &Timing| Some(timing.operation_us());
        match &step.facts {
            // a segment without entries
            StepFacts::Retained { turns: 0, usage, timing, .. } if timing.provider_us == 0 => {
                sums.retain_usage += *usage;
            }
            StepFacts::Retained { generation, turns, usage, timing, .. } => {
                sums.retain(step.task.bank(), *generation, *turns);
                sums.retain_usage += *usage;
                // a made-up fact beside the dataset is short, and there are many of them: it says nothing of a session
                if *turns > 0 {
                    sums.retain.add(time(timing));
                    self.retained.push(timing.operation_us() as f32);
                    self.conditions.retained(timing);
                }
            }
            StepFacts::Consolidated { usage, timing, .. } => {
                sums.consolidate_usage += *usage;
                sums.consolidate.add(time(timing));
            }
            StepFacts::Ready { polls, proven, returned, stats, canary, holdings, timing } => {
                if let Some(holdings) = holdings {
                    self.known.add(step.task.bank(), (**holdings).clone());
                }
                if let Some(canary) = canary {
                    sums.sing(step.task.bank(), canary);
                }
                if *polls > 0 {
                    sums.ready.add(time(timing));
                    sums.prove(step.task.bank(), *proven);
                    if *returned {
                        sums.returned.insert(step.task.bank());
                    }
                    sums.say(step.task.bank(), step.task.index(), stats);
                }
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

    /// Adds a vote of a judge; steps of other tasks are ignored. Needed for what looks at single votes (agreement, audits, other
    /// people's counting): scores come with the questions.
    pub fn add_judge_step(&mut self, step: &StoredStep) {
        if step.task.kind() != TaskKind::Judge {
            return;
        }
        if let StepFacts::Judged { score: Some(score), .. } = &step.facts {
            self.votes.add(step.task, *score);
        }
        if let StepFacts::Judged { usage, .. } | StepFacts::JudgedPart { usage, .. } | StepFacts::Failed { usage, .. } =
            &step.facts
        {
            let usd = self.judge_usd.entry(step.task.judge_no()).or_insert(PicoUsd(0));
            *usd = usd.saturating_add(usage.cost).saturating_add(usage.saved);
        }
    }

    /// Adds what is stored of the run's latency probe; questions do not carry it.
    pub fn add_probe(&mut self, steps: &[StoredStep]) {
        self.conditions.probe(steps);
    }

    /// Puts in order what it holds. Not needed, but of large parts that come together each can do it on a thread of its own.
    pub fn settle(&mut self) {
        self.questions.sort();
    }

    /// Number of questions that were added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.questions.len() == 0
    }

    /// Tasks of the questions that were added, in no order.
    pub fn tasks(&self) -> impl Iterator<Item = TaskKey> {
        self.questions.unordered().map(|row| row.task)
    }

    /// Adds everything that `other` holds. Both must have been made from the same input.
    pub fn merge(&mut self, other: Self) {
        self.questions.merge(other.questions);
        self.retained.extend(other.retained);
        self.contexts.extend(other.contexts);
        self.best_hits.extend(other.best_hits);
        self.votes.merge(other.votes);
        for (judge, usd) in other.judge_usd {
            let sum = self.judge_usd.entry(judge).or_insert(PicoUsd(0));
            *sum = sum.saturating_add(usd);
        }
        self.sums.merge(other.sums);
        self.conditions.merge(other.conditions);
        self.wrong.extend(other.wrong);
        self.known.merge(other.known);
    }

    /// Headline, totals and scores of all metrics; the questions are settled.
    fn scored(&self) -> Scored {
        let (input, questions) = (&self.input, &self.questions);
        let sample = &input.spec.sample;
        let (kinds, of_kinds) = (questions.kinds.list(), questions.of_kinds());
        let planned = sample.by_category.iter().filter(|(_, n)| **n > 0).map(|(name, n)| (name.clone(), *n));
        let mut strata = Strata::new(&sample.strata, &input.spec.dataset.population, planned, kinds);
        strata.saw(&of_kinds);
        let categories = &strata.list;
        let questions_of_kinds: Vec<u64> = of_kinds.iter().map(|seen| seen.all).collect();
        let (facets, notes) = facets(kinds, &questions_of_kinds);
        let profile = &input.spec.dataset.profile;
        let counted = sections::part_of(categories, &profile.headline);
        let sampling = |metric: &str| Sampling {
            estimator: if sample.stratified && !sample.census { Estimator::Weighted } else { Estimator::Mean },
            better: input.spec.metric(metric).better,
            by_chance: sample.sampler == "hash",
            census: sample.census,
        };
        let metrics = sections::metric_names(input, &self.headline_metric, questions);
        let cells_by = |metric: &str| {
            let scored = questions.by_metric(metric);
            let scores = scored.filter_map(|(row, score)| Some((strata.of_kind(row.kind)?, row.bank, score)));
            cells_of(scores, input.spec.metric(metric))
        };
        let by_facet = |metric: &str| {
            let scores = facets.iter().map(|facet| {
                let scored = questions.by_metric(metric);
                let of_values = scored.filter_map(|(row, score)| Some((facet.value_of(row.kind)?, row.bank, score)));
                let cells = cells_of(of_values, input.spec.metric(metric));
                (facet.name.clone(), facet_scores(&cells, &facet.values))
            });
            scores.collect()
        };
        let headline_cells = cells_by(&self.headline_metric);
        let scores: Vec<MetricScore> = metrics
            .iter()
            .enumerate()
            .map(|(i, metric)| {
                let other_cells = if i == 0 { Vec::new() } else { cells_by(metric) };
                let cells = if i == 0 { &headline_cells } else { &other_cells };
                let scale = input.spec.metric(metric);
                let score = metric_score(metric, cells, (categories, &counted), sampling(metric), scale);
                MetricScore { by_facet: by_facet(metric), ..score }
            })
            .collect();
        let part = (&profile.headline, counted.as_slice());
        let of_headline = sampling(&self.headline_metric);
        let headline = sections::headline(&self.headline_metric, &headline_cells, part, of_headline, input.stats_seed);
        let totals = sections::totals(&self.headline_metric, &headline_cells, categories, of_headline, profile);
        let (without_adversarial, totals) = keyed_totals(totals);
        let figures = figures(&profile.figures, scores.first(), &headline_cells, &counted);
        let judges = input.spec.judge_plan();
        let panel = Panel {
            judges: &judges.metrics,
            sampled: judges.samples.iter().map(|sample| sample.judge).collect(),
            usd: &self.judge_usd,
            questions,
            strata: &strata,
            counted: &counted,
            sampling: sampling(judges.metrics.first().map_or("", String::as_str)),
        };
        Scored { panel: panel.summary(), headline, without_adversarial, totals, figures, scores, notes }
    }

    /// The score by both keys, where mistakes of the answer key are known.
    fn answer_key(&self) -> Option<AnswerKeyScore> {
        let (spec, questions) = (&self.input.spec, &self.questions);
        let by_key = spec.dataset.label_fixes.as_ref().zip(spec.metric_by_answer_key());
        by_key.map(|(fixes, metric)| answer_key::of_run(fixes, &metric, questions))
    }

    /// What the memory system has called itself, where that was metered.
    fn metered(&self, bank_name: &dyn Fn(u32) -> String) -> Option<MeteredSummary> {
        let faults = self.input.spec.system.settings.get(FAULT_SETTING).and_then(Value::as_str);
        let around = metered::Around {
            turns: self.sums.turns(),
            questions: self.sums.asked,
            bank_name,
            faults: faults.map(str::to_owned),
            accounts: self.input.accounts_spent.clone(),
            refused: self.input.metered_refused.clone(),
            lost: self.input.metered_lost,
        };
        self.input.metered.as_deref().map(|calls| metered::summary(calls, around))
    }

    /// What its stop rule came to. It saves the calls and dollars that as many questions as were added have taken; canaries are asked
    /// once a run.
    fn stopped(&self, metered: Option<&MeteredSummary>) -> Option<StopSummary> {
        let (calls, usd) = self.sums.of_questions();
        let (more_calls, more_usd) = metered.map_or((0, 0.0), metered::of_questions);
        let looks = self.input.looks.as_ref()?;
        StopSummary::new(&self.input.spec, looks, (calls + more_calls, usd.usd() + more_usd))
    }

    /// What the run has used, and of what its memory system has used itself: what the meter has seen is known.
    fn usage(&self, metered: Option<&MeteredSummary>) -> UsageSummary {
        let (input, sums) = (&self.input, &self.sums);
        let consolidated = sums.consolidate.seconds().map(|_| &sums.consolidate_usage);
        let usd_cap = input.spec.limits.max_cost.map(|cap| cap.usd());
        let is_untold = metered.is_none_or(|metered| !metered.total.is_seen());
        let untold = if is_untold { sections::phases_of_system(input) } else { &[] };
        let usage = UsageSummary::new(&sums.retain_usage, consolidated, &sums.usage, usd_cap, input.ledger.as_ref())
            .told_by_system(untold);
        // of imported grades nobody knows what their system has spent
        let is_known = metered.is_none() && !usage.is_incomplete() && input.ledger.is_some();
        // a run whose recalls were another's, of a system that tells nothing, has spent nothing on it and knows nothing of it
        let is_told = !input.is_remote || input.spec.taken_over.recalls_of.is_none();
        let memory = is_known.then(|| self.memory_cost()).flatten().filter(|cost| is_told || cost.usd > 0.0);
        UsageSummary { memory, ..usage }
    }

    /// What a memory system has spent by the runner's own calls, or by what it has told; none where a recall has the calls of the model
    /// in it that rephrases questions.
    fn memory_cost(&self) -> Option<MemoryCost> {
        let (spec, sums) = (&self.input.spec, &self.sums);
        let list = |used: &Usage| used.cost.saturating_add(used.saved).usd();
        let filling = list(&sums.retain_usage) + list(&sums.consolidate_usage);
        // a system that answers by itself is asked for answers too
        let answers = if spec.answerer.provider == "system" { list(&sums.usage.answer) } else { 0.0 };
        let asking = list(&sums.usage.recall) + answers;
        let (turns, questions) = (sums.turns(), sums.asked);
        (spec.recalls.rephrased == 0).then(|| MemoryCost {
            usd: filling + asking,
            usd_per_1000_turns: (turns > 0).then(|| 1000.0 * filling / turns as f64),
            usd_per_question: (questions > 0).then(|| asking / questions as f64),
        })
    }

    /// The summary; `not_run` are the ids of the sample's questions that were not added.
    #[must_use]
    pub fn finish<S: AsRef<str>>(mut self, not_run: impl IntoIterator<Item = S>) -> Finished {
        for id in not_run {
            self.questions.add_not_run(id.as_ref());
        }
        self.questions.settle();
        let (input, questions, sums) = (&self.input, &self.questions, &self.sums);

        let outcomes = sections::outcomes(questions);
        let Scored { headline, without_adversarial, totals, figures, scores, panel, notes } = self.scored();
        let answer_key = self.answer_key();
        let agreements = sections::agreements(input, &self.votes, questions);
        let mut warnings = sections::warnings(input, &outcomes, &headline, scores.first(), &agreements);
        warnings.extend(notes);
        warnings.extend(sections::of_sums(&scores, sums, &outcomes));
        warnings.extend(answer_key.iter().flat_map(answer_key::warnings));
        let bank_name = |number| {
            let bank = questions.banks.iter().find(|bank| bank.number == number);
            bank.map_or_else(|| format!("bank {number}"), |bank| bank.name.clone())
        };
        let canaries = sums.canaries(input.spec.system.top_k, bank_name);
        warnings.extend(canaries.iter().flat_map(crate::verdict::canary_warnings));
        let metered = self.metered(&bank_name);
        warnings.extend(metered.iter().flat_map(|of| metered::warnings(of, &input.unpriced)));
        let usage = self.usage(metered.as_ref());

        let (mut latency_ms, latency_curves) = sections::latencies(questions, &self.retained);
        [latency_ms.build, latency_ms.build_wait] = self.conditions.builds();
        let (worst, worst_tasks) = extremes::worst(questions, &self.headline_metric, self.scale);
        let summary = Summary {
            schema_version: REPORT_SCHEMA_VERSION,
            run: sections::run_summary(input, (&outcomes, &headline), questions, sums, &agreements, canaries.as_ref()),
            dataset: DatasetSummary::from(&input.spec),
            spec: SpecSummary::from(&input.spec),
            labels: labels(&input.spec),
            headline,
            without_adversarial,
            totals,
            figures,
            models: None,
            answer_key,
            corrected: None,
            counting: counting::counting(input, questions, &self.votes),
            judge_audit: audit::audit(input, questions, &self.votes),
            stop: self.stopped(metered.as_ref()),
            scores,
            retrieval: sums.retrieval.finish(input.spec.system.top_k),
            failure_attribution: sums.attribution.clone(),
            causes: self.known.causes(&self.wrong, self.of_recalls),
            stored: self.known.stored(),
            recall_answer: sums.recall_answer,
            judge_agreement: agreements,
            panel,
            context: sections::context(&self.contexts, sums),
            usd_per_correct: sections::usd_per_correct(&usage, metered.as_ref(), &sums.recall_answer),
            errors: sums.errors.clone(),
            error_examples: sums.error_examples.commonest(),
            replies: sums.replies.clone(),
            controls: input.controls.clone(),
            canaries,
            concurrency: Some(self.conditions.concurrency(&input.spec)),
            latency_ms,
            latency_probe: self.conditions.latency_probe(&input.spec, metered.as_ref()),
            phases: self.conditions.phases(),
            latency_curves,
            total: usage.total.clone(),
            usage,
            metered,
            group: input.group.clone(),
            slowest: extremes::slowest(questions, &input.run.id, &input.spec.limits.trace),
            worst,
            phase_seconds: phase_seconds(sums, &self.conditions),
            outages: Vec::new(),
            system_stats: sums.system_stats(),
            top1_score: sections::mean_in_order(&mut self.best_hits),
            warnings,
            result_digest: sections::digest(questions),
            outcomes,
        };
        Finished { summary, worst: worst_tasks }
    }
}

/// How long each phase took, from its first beginning to its last end.
fn phase_seconds(sums: &Sums, conditions: &Conditions) -> PhaseSeconds {
    PhaseSeconds {
        retain: sums.retain.seconds(),
        build: conditions.build_seconds(),
        consolidate: sums.consolidate.seconds(),
        ready: sums.ready.seconds(),
        recall: sums.recall.seconds(),
        answer: sums.answer.seconds(),
        judge: sums.judge.seconds(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
