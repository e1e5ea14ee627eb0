//! The parts of a summary that are made of settled questions and sums.
//!
//! One function for each part, in the order in which a summary has them: agreement and context, outcomes, metrics, headline and totals,
//! the run itself, warnings (`warnings` of questions, `of_sums` of sums), latencies and the digest. None rests on another one's result
//! but those that are handed in; `aggregator` calls all of them.

use std::collections::BTreeMap;

use bench_proto::{
    call::Phase,
    digest::ResultDigest,
    facts::{Outcome, PhaseUsage},
    label_fixes::is_corrected,
    profile::{Part, Profile},
    spec::ScorerSpec,
    summary::{
        Agreement, CanarySummary, ContextSummary, FilteredRecalls, Headline, LatencyCurves, LatencySummary,
        MeteredSummary, MetricScore, Outcomes, PartScore, RecallAnswer, RunSummary, TotalScore, UsageSummary,
    },
};

use crate::{
    agreement::{self, Votes},
    bootstrap::wild_cluster_interval,
    cells::Cell,
    input::{AggregateInput, Canaries},
    latency::{CURVE, Spread},
    questions::{Questions, Times},
    score::{Category, FEW_CLUSTERS, Sampling, estimate},
    sums::Sums,
    verdict::{self, FEWEST_OF_RARER, Variety},
};

/// Of the votes of each judge, and of every pair of judges.
pub(crate) fn agreements(input: &AggregateInput, votes: &Votes, questions: &Questions) -> Vec<Agreement> {
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

pub(crate) fn context(bytes: &[f32], sums: &Sums) -> Option<ContextSummary> {
    let n = bytes.len() as u64;
    let spread = Spread::from_values(bytes.iter().copied())?.percentiles();
    let mean_bytes = sums.context_bytes as f64 / n as f64;
    // the tokens are those of paid calls: the call store answers without any
    let answer = &sums.usage.answer;
    Some(ContextSummary {
        n,
        mean_bytes,
        // percentiles divide by a thousand: they are made for microseconds
        p50_bytes: spread.p50 * 1e3,
        p95_bytes: spread.p95 * 1e3,
        mean_tokens: mean_bytes / 4.0,
        mean_prompt_tokens: (answer.calls > 0).then(|| answer.prompt_tokens as f64 / answer.calls as f64),
    })
}

/// Dollars for each answer that is right, those of the memory system included where they were metered, as if no reply had been stored.
pub(crate) fn usd_per_correct(
    usage: &UsageSummary,
    metered: Option<&MeteredSummary>,
    table: &RecallAnswer,
) -> Option<f64> {
    let usd = usage.usd_list_with(metered);
    let passed = [table.evidence_found, table.evidence_partial, table.evidence_missing, table.no_ground_truth]
        .iter()
        .map(|count| count.passed)
        .sum::<u64>();
    (passed > 0).then(|| usd / passed as f64)
}

pub(crate) fn outcomes(questions: &Questions) -> Outcomes {
    let mut counts = Outcomes { sample: questions.len() as u64, ..Outcomes::default() };
    for row in questions.unordered() {
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

/// The headline's metric, then judges, scorers, and whatever else has scores of all questions.
pub(crate) fn metric_names(input: &AggregateInput, headline: &str, questions: &Questions) -> Vec<String> {
    let mut others: Vec<&str> = questions.metrics().collect();
    others.sort_unstable();
    let judges = input.spec.judge_metrics();
    let mut names: Vec<String> = Vec::new();
    let of_scorers = input.spec.scorers.iter().flat_map(ScorerSpec::metric_names);
    let planned = judges.iter().map(String::as_str).chain(of_scorers);
    for name in std::iter::once(headline).chain(planned).chain(others) {
        if !name.is_empty() && !is_corrected(name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The categories of a part.
pub(crate) fn part_of(categories: &[Category], part: &Part) -> Vec<Category> {
    categories.iter().filter(|category| part.counts(&category.name)).cloned().collect()
}

/// The headline over its part of the categories.
pub(crate) fn headline(
    metric: &str,
    cells: &[Cell],
    (part, counted): (&Part, &[Category]),
    sampling: Sampling,
    seed: u64,
) -> Headline {
    let total = estimate(cells, counted, sampling);
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
        without: part.without.clone(),
        value: total.value,
        estimator: sampling.estimator,
        n: total.n,
        without_figure: total.without_figure,
        population: total.population,
        clusters: total.clusters as u64,
        ci95: total.ci95,
        ci95_note: total.ci95_note,
        t_ci95: total.t_ci95,
        naive_ci95: total.naive_ci95,
        benchmark_ci95: total.benchmark_ci95,
        benchmark_note: total.benchmark_note,
        bootstrap_ci95,
        bootstrap_note,
        strict: total.strict,
    }
}

/// The totals that the profile wants beside the headline, where they are about other categories of the sample than it is.
pub(crate) fn totals(
    metric: &str,
    cells: &[Cell],
    categories: &[Category],
    sampling: Sampling,
    profile: &Profile,
) -> Vec<TotalScore> {
    let counted = part_of(categories, &profile.headline);
    let parts = profile.totals.iter().map(|part| (part, part_of(categories, part)));
    let other = parts.filter(|(_, covered)| !covered.is_empty() && *covered != counted);
    other
        .map(|(part, covered)| {
            let total = estimate(cells, &covered, sampling);
            let score = PartScore {
                metric: metric.to_owned(),
                value: total.value,
                estimator: sampling.estimator,
                n: total.n,
                population: total.population,
                clusters: total.clusters as u64,
                ci95: total.ci95,
                naive_ci95: total.naive_ci95,
                benchmark_ci95: total.benchmark_ci95,
                strict: total.strict,
            };
            TotalScore { part: part.clone(), score }
        })
        .collect()
}

pub(crate) fn run_summary(
    input: &AggregateInput,
    (outcomes, headline): (&Outcomes, &Headline),
    questions: &Questions,
    sums: &Sums,
    agreements: &[Agreement],
    canaries: Option<&CanarySummary>,
) -> RunSummary {
    let top_k = input.spec.system.top_k;
    let bounded = match (input.canaries, input.effective_k) {
        (Canaries::Impossible(why), _) => Err(why),
        _ if input.spec.sample.own_k.is_some() => Err("questions ask for hits on their own"),
        _ if !input.spec.recalls.is_once() => Err("a question's hits are those of several recalls"),
        (Canaries::Possible, None) => Err("a recall of the system is not bounded by k"),
        (Canaries::Possible, Some(_)) => Ok(()),
    };
    let clipped = canaries.filter(|_| input.effective_k.is_some()).and_then(|seen| verdict::clipped(seen, top_k));
    let by = Some(input.spec.control_metric()).filter(|by| *by != headline.metric);
    let (verdict, reasons, checks) = verdict::verdict_over(vec![
        ("coverage", verdict::coverage(outcomes, headline)),
        ("empty_context", verdict::empty_context(&questions.banks, input.empty_context_expected)),
        ("effective_k", verdict::effective_k(input.effective_k, input.spec.hits_asked_for().1)),
        (
            "k_served",
            clipped.unwrap_or_else(|| {
                let stored =
                    (sums.fewest_stored(input.stores_turns), if input.stores_turns { "turns" } else { "entries" });
                verdict::k_served(sums.recall_lengths(), top_k, stored, bounded)
            }),
        ),
        (
            "one_answer",
            verdict::one_answer(answer_variety(questions, &input.spec.dataset.profile), input.empty_context_expected),
        ),
        (
            "banks_ready",
            match &input.spec.taken_over.bank {
                Some(_) => verdict::there_before(),
                None => verdict::banks_ready(&questions.banks, &sums.proofs, &sums.returned),
            },
        ),
        ("banks_apart", verdict::banks_apart(canaries, &input.canaries)),
        ("nothing_lost", verdict::nothing_lost(canaries, &input.canaries)),
        ("self_check", verdict::self_check(&input.self_check)),
        ("judges", verdict::judges(agreements)),
        ("instrument", verdict::instrument(input.instrument.as_ref(), &input.controls, by.as_deref())),
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

/// Mean of figures that came in any order; null for none.
pub(crate) fn mean_in_order(figures: &mut [f64]) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

/// How often the most common answer that is no abstention occurs, how many answers there are, and whether they differ at all.
fn answer_variety(questions: &Questions, profile: &Profile) -> Variety {
    let kinds = questions.kinds.list().iter();
    let unanswerable: Vec<bool> = kinds.map(|kind| profile.has_no_answer(&kind.category, &kind.facets)).collect();
    let mut variety = Variety { all_same: true, ..Variety::default() };
    let mut first = None;
    // sorted, not counted by hash: a map of a million answers would be the largest thing in memory
    let mut scored: Vec<u64> = Vec::new();
    for row in questions.unordered().filter(|row| row.outcome.has_score() && row.answer_hash != 0) {
        variety.answers += 1;
        variety.all_same &= *first.get_or_insert(row.answer_hash) == row.answer_hash;
        variety.should_differ |= unanswerable.get(row.kind as usize) != Some(&true);
        if row.outcome == Outcome::Scored {
            scored.push(row.answer_hash);
        }
    }
    scored.sort_unstable();
    variety.most_common = scored.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0) as u64;
    variety
}

/// The phases in which the memory system works where nobody sees what it does with models.
pub(crate) fn phases_of_system(input: &AggregateInput) -> &'static [Phase] {
    // what recalls or answers cost that a fork has taken over stands in the run that they are from
    let taken_over = &input.spec.taken_over;
    let recalls = input.is_remote && taken_over.recalls_of.is_none();
    let answers = input.is_remote && input.spec.answerer.provider == "system" && taken_over.answers_of.is_none();
    match (recalls, answers) {
        (true, true) => &[Phase::Retain, Phase::Recall, Phase::Answer],
        (true, false) => &[Phase::Retain, Phase::Recall],
        (false, true) => &[Phase::Answer],
        (false, false) => &[],
    }
}

/// Share of the answers that may have been cut or filtered without a word.
const SHARE_UNENDED: f64 = 0.05;

pub(crate) fn warnings(
    input: &AggregateInput,
    outcomes: &Outcomes,
    headline: &Headline,
    scores: Option<&MetricScore>,
    agreements: &[Agreement],
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
    let in_doubt = |agreement: &&Agreement| {
        agreement.rarer.is_some_and(|rarer| rarer < FEWEST_OF_RARER) && verdict::is_chance(agreement)
    };
    lines.extend(agreements.iter().filter(in_doubt).map(|agreement| {
        format!(
            "judges may agree no better than chance, too few verdicts to tell: {}",
            verdict::agreement_line(agreement)
        )
    }));
    let planned = input.spec.sample.n;
    if planned != outcomes.sample {
        lines.push(format!("the sample has {planned} questions, {} are accounted for", outcomes.sample));
    }
    // nothing of it is unknown: it stands in another report
    if input.is_remote
        && let Some(source) = &input.spec.taken_over.recalls_of
    {
        lines.push(format!(
            "the recalls are those of run {source}: what the memory system itself has spent on models stands there, and is no part of the \
             dollars here"
        ));
    }
    lines
}

/// What the sums of all questions give to be warned of.
pub(crate) fn of_sums(scores: &[MetricScore], sums: &Sums, outcomes: &Outcomes) -> Vec<String> {
    let answered = outcomes.scored + outcomes.abstained;
    let lines = [unfiltered(sums), few_sessions(scores, sums), uncounted(sums), unended(sums, answered)];
    lines.into_iter().flatten().collect()
}

/// Of recalls that brought what the question's filter does not admit.
fn unfiltered(sums: &Sums) -> Option<String> {
    let FilteredRecalls { recalls, ignored } = sums.retrieval.filtered().filter(|filtered| filtered.ignored > 0)?;
    Some(format!(
        "the filter of the question was ignored in {ignored} of {recalls} recalls: they brought what it does not admit"
    ))
}

/// Of figures at k sessions that tell of fewer: the hits were cut before there were k sessions among them.
fn few_sessions(scores: &[MetricScore], sums: &Sums) -> Option<String> {
    let cut_off = |metric: &str| metric.strip_prefix("session-")?.split_once('@')?.1.parse::<u32>().ok();
    let figures = scores.iter().filter(|score| score.n > 0);
    let figures = figures.filter_map(|score| Some((score, sums.short_of_sessions(cut_off(&score.metric)?))));
    let (score, short) = figures.max_by_key(|(_, short)| *short).filter(|(_, short)| *short > 0)?;
    Some(format!(
        "{} tells of fewer sessions than it says for {short} of {} questions: all their hits are turns of those (session@k turns); a \
         larger --top-k brings more",
        score.metric, score.n
    ))
}

/// Of calls whose provider told no number of tokens that can be true.
fn uncounted(sums: &Sums) -> Option<String> {
    let PhaseUsage { recall, answer, judge } = &sums.usage;
    let used = [&sums.retain_usage, &sums.consolidate_usage, recall, answer, judge];
    let calls: u64 = used.iter().map(|usage| usage.uncounted).sum();
    (calls > 0).then(|| {
        format!(
            "the provider told no number of tokens that can be true for {calls} calls: their tokens were counted here, by bytes where the \
             model's vocabulary is not known, and they and their dollars are at most what is shown"
        )
    })
}

/// Of answers that their model did not bring to an end, when they are more than a few.
fn unended(sums: &Sums, scored: u64) -> Option<String> {
    let n: u64 = sums.replies.values().sum();
    let ends: Vec<String> = sums.replies.iter().map(|(end, n)| format!("{end} {n}")).collect();
    (n as f64 > SHARE_UNENDED * scored as f64).then(|| {
        format!(
            "{n} of {scored} answers did not end by themselves ({}): their scores are of what came",
            ends.join(", ")
        )
    })
}

/// Percentiles of all phases, and the curves of those that are plotted.
pub(crate) fn latencies(questions: &Questions, retained: &[f32]) -> (LatencySummary, Option<LatencyCurves>) {
    let of = |pick: fn(&Times) -> f32| Spread::from_values(questions.unordered().map(|row| pick(&row.times)));
    let (recall, answer) = (of(|t| t.recall), of(|t| t.answer));
    let (judge, question) = (of(|t| t.judge), of(|t| t.question));
    let percentiles = |spread: &Option<Spread>| spread.as_ref().map(Spread::percentiles);
    let summary = LatencySummary {
        retain: percentiles(&Spread::from_values(retained.iter().copied())),
        build: None,
        build_wait: None,
        recall: percentiles(&recall),
        answer: percentiles(&answer),
        judge: percentiles(&judge),
        question: percentiles(&question),
        queue_wait: percentiles(&of(|t| t.queue_wait)),
        rate_wait: percentiles(&of(|t| t.rate_wait)),
        provider: percentiles(&of(|t| t.provider)),
        own: percentiles(&of(|t| t.own)),
    };
    let phases: BTreeMap<String, Vec<f64>> =
        [("recall", recall), ("answer", answer), ("judge", judge), ("question", question)]
            .into_iter()
            .filter_map(|(phase, spread)| Some((phase.to_owned(), spread?.curve())))
            .collect();
    (summary, (!phases.is_empty()).then(|| LatencyCurves { percents: CURVE.to_vec(), phases }))
}

pub(crate) fn digest(questions: &Questions) -> String {
    let mut digest = ResultDigest::default();
    for row in questions.rows() {
        digest.push(&row.id, row.outcome, questions.scores_of(row));
    }
    digest.finish()
}
