//! What people read of a summary, as blocks without layout.
//!
//! In comes a summary; out come [`Block`]s, which `markdown`, `terminal` and `html` lay out. Start reading at [`document`]: it has the
//! sections in their order. The score and its categories are here, the rest has a file for each section; one of which the summary
//! has nothing is empty.
//!
//! | section | question |
//! |---|---|
//! | `counting` | what is the score by somebody else's counting? |
//! | `audit`, `corrected`, `judges`, `panel` | how often did judges err, and what does the score owe to them? |
//! | `answer_key` | what do known mistakes of the answer key mean? |
//! | `stopping` | what did the looks of a run find that could stop early? |
//! | `facets` | how do questions fare that count as something beside their category? |
//! | `retrieval`, `stored` | what was found of the evidence, what do banks hold, and why are answers wrong? |
//! | `latency` | how long did it take, by the probe and under the run's own load? |
//! | `usage`, `metered` | what did it cost, and what did the memory system spend itself? |
//! | `questions` | which questions are worth a look? |
//! | `run` | which run was it, by which rules is it VALID? |

mod answer_key;
mod audit;
mod corrected;
mod counting;
mod facets;
mod how_often;
mod judges;
mod latency;
mod metered;
mod panel;
mod questions;
mod retrieval;
mod run;
mod stopping;
mod stored;
mod usage;

use std::collections::BTreeSet;

use bench_proto::{
    metric::Better,
    profile::Part,
    summary::{CategoryScore, Estimator, Headline, MetricScore, PartScore, PublishedFigure, Summary},
    text,
};

pub(crate) use judges::spread as judge_spread;
pub(crate) use latency::probe_p50;
pub(crate) use metered::{HEADING as METERED, cut_calls};
pub(crate) use stopping::{ended as stopped, saved};

use crate::{
    blocks::{Block, heading, table},
    figures::{
        NONE, as_published, count, count_or_none, counted, fraction, interval, interval_with_width, one_line, percent,
        percent_down, percent_or_none,
    },
    words,
};

/// Longest piece of an answer that is shown.
const TEXT_WIDTH: usize = 80;

/// The whole report.
pub(crate) fn document(summary: &Summary) -> Vec<Block> {
    let mut blocks = top(summary);
    blocks.extend(counting::counting(summary.counting.as_ref()));
    blocks.extend(audit::audit(summary.judge_audit.as_ref()));
    blocks.extend(result(summary));
    blocks.extend(stopping::stopping(summary.stop.as_ref()));
    blocks.extend(corrected::corrected(summary.corrected.as_ref()));
    blocks.extend(categories(summary.scores.first()));
    blocks.extend(facets::facets(summary.scores.first()));
    blocks.extend(metrics(summary));
    blocks.extend(retrieval::retrieval(summary));
    blocks.extend(retrieval::recall_and_answer(summary));
    blocks.extend(stored::stored(summary.stored.as_ref()));
    blocks.extend(stored::causes(summary.causes.as_ref()));
    blocks.extend(agreement(summary));
    blocks.extend(panel::panel(summary));
    blocks.extend(controls(summary));
    blocks.extend(latency::probe(summary));
    blocks.extend(latency::under_load(summary));
    blocks.extend(usage::usage(summary));
    blocks.extend(metered::metered(summary.metered.as_ref()));
    blocks.extend(questions::slowest(summary));
    blocks.extend(questions::worst(summary));
    blocks.extend(questions::errors(summary));
    blocks.extend(run::checks(summary));
    blocks.extend(run::models(summary));
    blocks.extend(run::run(summary));
    blocks
}

/// Title, labels, the one line, verdict, sample and warnings.
fn top(summary: &Summary) -> Vec<Block> {
    let (dataset, sample) = (&summary.dataset, &summary.dataset.sample);
    let name = summary.run.name.as_deref().map(|name| format!("{} · ", one_line(name, TEXT_WIDTH))).unwrap_or_default();
    let mut blocks = vec![Block::Title(format!(
        "{name}{} {} · {} · {}",
        dataset.name,
        sample.preset,
        summary.spec.system,
        summary.spec.who_answered()
    ))];
    if !summary.labels.is_empty() {
        blocks.push(Block::Labels(summary.labels.clone()));
    }
    if let Some(spread) = judge_spread(summary) {
        let over = spread.over.map(|over| format!("; {over}")).unwrap_or_default();
        blocks.push(Block::Headline(format!("{}: {}{over}", spread.said, spread.values.join(", "))));
    }
    blocks.push(Block::Headline(headline_line(summary)));
    blocks.push(Block::Verdict(summary.run.verdict, summary.run.reasons.clone()));
    let banks = if sample.banks == dataset.banks {
        counted(dataset.banks, "bank")
    } else {
        format!("{} of {}", count(sample.banks), counted(dataset.banks, "bank"))
    };
    let mut lines = vec![format!(
        "Sample: {} ({}), {} of {} in {banks}.",
        sample.preset,
        sample.sampler,
        count(sample.n),
        counted(dataset.questions, "question")
    )];
    lines.push(words::BANK.to_owned());
    lines.extend(summary.spec.notes.iter().map(|note| format!("Note: {note}.")));
    lines.extend(triple(summary));
    lines.extend(sample.notes.iter().map(|note| format!("Sample note: {note}.")));
    lines.extend(sample.equal_quotas.then(|| words::EQUAL_QUOTAS.to_owned()));
    lines.extend(dataset.notes.iter().map(|note| format!("Dataset note: {}.", text::one_line(note))));
    if summary.controls.is_empty() {
        lines.push("Controls: not run; --controls shows whether the score depends on memory.".to_owned());
    }
    lines.extend(summary.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    blocks.push(Block::List(lines));
    blocks
}

/// The three figures by which memory systems are chosen, where there is one beside the quality.
fn triple(summary: &Summary) -> Option<String> {
    let latency = probe_p50(summary);
    let context = summary.context.as_ref().map(|context| context.mean_tokens);
    if latency.is_none() && context.is_none() {
        return None;
    }
    Some(format!(
        "Quality / latency / context: {} · {} · {}.",
        percent_or_none(summary.headline.value),
        latency.unwrap_or_else(|| "no latency probe".to_owned()),
        context.map_or_else(
            || "no context".to_owned(),
            |tokens| format!("{} tokens a question", count(tokens.round() as u64))
        ),
    ))
}

/// `judge 62.24 %, 95 % interval 57.1 to 67.4 (naive 60.1 to 64.3), coverage 100.0 %, strict 62.2 %`.
fn headline_line(summary: &Summary) -> String {
    let headline = &summary.headline;
    format!(
        "{} {}{}, 95 % interval {} (naive {}), coverage {}, strict {}{}",
        headline.metric,
        percent_or_none(headline.value),
        words::direction(better(summary)),
        interval(headline.ci95.as_ref()),
        interval(headline.naive_ci95.as_ref()),
        percent_down(summary.outcomes.coverage),
        percent_or_none(headline.strict),
        having_it(headline).map(|words| format!(", {words}")).unwrap_or_default(),
    )
}

/// Of how many questions the headline tells, where its metric does not apply to all of them.
pub(crate) fn having_it(headline: &Headline) -> Option<String> {
    let all = headline.n.saturating_add(headline.without_figure);
    (headline.without_figure > 0)
        .then(|| format!("{} of {} have this figure", count(headline.n), counted(all, "question")))
}

/// Who judged, and where as far as that is known; nothing where no model did.
pub(crate) fn judged_by(summary: &Summary) -> Option<String> {
    let models = summary.models.as_deref().unwrap_or_default();
    let at = |judge: &String| {
        let mut asked = models.iter().filter(|model| model.role.starts_with("judge") && model.model == *judge);
        let servers = asked.find_map(|model| model.servers.as_ref().filter(|servers| !servers.is_empty()));
        servers.map_or_else(|| judge.clone(), |servers| format!("{judge} at {}", servers.join(", ")))
    };
    let judges: Vec<String> = summary.spec.judges.iter().map(at).collect();
    (!judges.is_empty()).then(|| format!("judged by {}", judges.join(" and ")))
}

/// Whether the grades that head the report came with the answers, so that nobody here knows who gave them.
#[must_use]
pub fn grades_were_brought(summary: &Summary) -> bool {
    let (spec, metric) = (&summary.spec, &summary.headline.metric);
    // parts of `assertions` have names of their own
    let is_scored = spec.scorers.iter().any(|scorer| scorer == metric || scorer == "assertions");
    spec.judges.is_empty() && spec.scenario.answers() && !is_scored
}

/// Whether nothing is known of what was recalled: answers were made elsewhere, and do not say it.
pub(crate) fn recalls_are_unknown(summary: &Summary) -> bool {
    let retrieval = &summary.retrieval;
    let is_measured = retrieval.turn.values().chain(retrieval.session.values()).any(|at| at.n > 0);
    summary.spec.is_imported() && !is_measured
}

/// In which direction the headline is better.
pub(crate) fn better(summary: &Summary) -> Better {
    summary.scores.first().map_or(Better::Higher, |score| score.better)
}

fn estimator_words(headline: &Headline) -> String {
    let from = format!("{} in {}", counted(headline.n, "question"), counted(headline.clusters, "bank"));
    match (headline.estimator, headline.population) {
        (Estimator::Weighted, _) if headline.without_figure > 0 => {
            format!("weighted to all questions of the dataset that it applies to, from {from}")
        }
        (Estimator::Weighted, Some(population)) => {
            format!("weighted to all {}, from {from}", counted(population, "question"))
        }
        (Estimator::Weighted, None) => format!("weighted, from {from}"),
        (Estimator::Mean, _) => format!("mean of {from}"),
    }
}

/// The number, its intervals, coverage and strict score, and the totals over other parts of the categories.
fn result(summary: &Summary) -> Vec<Block> {
    let (headline, outcomes) = (&summary.headline, &summary.outcomes);
    let how = |interval: &Option<bench_proto::summary::Interval>, note: &Option<String>| {
        let method = interval.as_ref().map(|i| i.method.clone());
        let parts: Vec<String> = method.into_iter().chain(note.clone()).collect();
        if parts.is_empty() { NONE.to_owned() } else { parts.join("; ") }
    };
    let row = |name: &str, value: String, how: String| vec![name.to_owned(), value, how];
    let ended = format!(
        "{} scored + {} abstained of {}; {}, {} not run",
        count(outcomes.scored),
        count(outcomes.abstained),
        count(outcomes.sample),
        counted(outcomes.infra_error, "infra error"),
        count(outcomes.not_run),
    );
    let rows = vec![
        row("Score", percent_or_none(headline.value), estimator_words(headline)),
        row(
            "Conversations like these, 95 %",
            interval_with_width(headline.ci95.as_ref()),
            how(&headline.ci95, &headline.ci95_note),
        ),
        row(
            "This benchmark, 95 %",
            interval_with_width(headline.benchmark_ci95.as_ref()),
            how(&headline.benchmark_ci95, &headline.benchmark_note),
        ),
        row(
            "Naive, 95 %",
            interval_with_width(headline.naive_ci95.as_ref()),
            how(&headline.naive_ci95, &Some("questions taken as independent".to_owned())),
        ),
        row(
            "Check on the first interval",
            interval_with_width(headline.bootstrap_ci95.as_ref()),
            how(&headline.bootstrap_ci95, &headline.bootstrap_note),
        ),
        row("Coverage", percent_down(outcomes.coverage), ended),
        row(
            "Strict score",
            percent_or_none(headline.strict),
            format!("infra errors and questions not run count as {}", u8::from(better(summary) == Better::Lower)),
        ),
    ];
    let mut blocks = vec![
        heading(format!("Result: {}", headline.metric)),
        table(&["", "Value", "How"], rows),
        Block::Text([words::LIKE_THESE, words::THIS_BENCHMARK, words::strict(better(summary))].join(" ")),
        Block::Text(how_often::how_often(summary)),
    ];
    if !headline.without.is_empty() {
        let left_out = headline.without.join(", ");
        blocks.push(Block::Text(format!(
            "The score leaves {left_out} questions out; their figures stand among the categories."
        )));
    }
    let others = summary.all_totals();
    if !others.is_empty() {
        blocks.push(Block::Text(totals_words(summary, &others)));
        blocks.push(totals(summary, &others));
    }
    blocks.extend(published(&summary.figures));
    blocks.extend(summary.answer_key.iter().flat_map(answer_key::answer_key));
    blocks
}

/// The figures that published results of the dataset have, written as there.
fn published(figures: &[PublishedFigure]) -> Vec<Block> {
    if figures.is_empty() {
        return Vec::new();
    }
    let rows = figures
        .iter()
        .map(|figure| vec![one_line(&figure.name, TEXT_WIDTH), as_published(figure), count(figure.n)])
        .collect();
    vec![
        Block::Text("As the published results of this dataset count them, over what was asked:".to_owned()),
        table(&["Figure", ">Value", ">n"], rows),
    ]
}

/// Why there is more than one total: what they differ in.
fn totals_words(summary: &Summary, others: &[(Part, &PartScore)]) -> String {
    let left_out = others.iter().flat_map(|(part, _)| &part.without).chain(&summary.headline.without);
    let differing: Vec<&str> = left_out.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
    let printed = if others.len() == 1 { "both" } else { "all of them" };
    format!(
        "Published totals differ in whether they count {} questions, so {printed} are printed.",
        differing.join(", ")
    )
}

fn totals(summary: &Summary, others: &[(Part, &PartScore)]) -> Block {
    let name = |population: Option<u64>, part: &Part| {
        population.map_or_else(|| part.name(), |n| format!("{} ({})", part.name(), count(n)))
    };
    let all = &summary.headline;
    let mut rows = vec![vec![
        name(all.population, &summary.headline_part()),
        percent_or_none(all.value),
        interval(all.ci95.as_ref()),
        interval(all.benchmark_ci95.as_ref()),
        interval(all.naive_ci95.as_ref()),
        percent_or_none(all.strict),
        count(all.n),
    ]];
    rows.extend(others.iter().map(|(part, score)| {
        vec![
            name(score.population, part),
            percent_or_none(score.value),
            interval(score.ci95.as_ref()),
            interval(score.benchmark_ci95.as_ref()),
            interval(score.naive_ci95.as_ref()),
            percent_or_none(score.strict),
            count(score.n),
        ]
    }));
    table(&["Questions", ">Score", ">Like these 95 %", ">This benchmark 95 %", ">Naive 95 %", ">Strict", ">n"], rows)
}

fn categories(score: Option<&MetricScore>) -> Vec<Block> {
    let Some(score) = score.filter(|score| !score.by_category.is_empty()) else {
        return Vec::new();
    };
    let rows = score.by_category.iter().map(|category| {
        vec![
            category.category.clone(),
            percent_or_none(category.value),
            interval(category.ci95.as_ref()),
            interval(category.naive_ci95.as_ref()),
            count(category.n),
            count_or_none(category.population),
            count(category.clusters),
            category.ci95_note.clone().unwrap_or_default(),
        ]
    });
    vec![
        heading(format!("Categories: {}", score.metric)),
        table(&["Category", ">Score", ">95 %", ">Naive 95 %", ">n", ">of", ">Banks", "Note"], rows.collect()),
    ]
    .into_iter()
    .chain(weak(score).map(Block::Text))
    .collect()
}

/// Score of a category below which it is pointed out.
const WEAK: f64 = 0.7;

/// The categories that are weak, and those of them of which the interval says so too.
fn weak(score: &MetricScore) -> Option<String> {
    let is_below = |value: Option<f64>| value.is_some_and(|value| value < WEAK);
    let low: Vec<&CategoryScore> = score.by_category.iter().filter(|of| is_below(of.value)).collect();
    if low.is_empty() || score.better == Better::Lower {
        return None;
    }
    let sure = |of: &&CategoryScore| is_below(of.ci95.as_ref().map(|interval| interval.high));
    let named =
        |of: &&CategoryScore| format!("{}{}", of.category, if sure(of) { "" } else { " (its interval reaches above)" });
    Some(format!("below {}: {}", percent(WEAK), low.iter().map(named).collect::<Vec<_>>().join(", ")))
}

fn metrics(summary: &Summary) -> Vec<Block> {
    let rows = summary.scores.iter().map(|score| {
        vec![
            format!("{}{}", score.metric, words::direction(score.better)),
            percent_or_none(score.micro),
            percent_or_none(score.macro_),
            percent_or_none(score.weighted),
            interval(score.ci95.as_ref()),
            interval(score.naive_ci95.as_ref()),
            format!("{} ({})", percent_or_none(score.pass_rate), words::passing(score.scale())),
            count(score.n),
        ]
    });
    let columns = ["Metric", ">Micro", ">Macro", ">Weighted", ">95 %", ">Naive 95 %", ">Passed", ">n"];
    vec![heading("Metrics"), table(&columns, rows.collect())]
}

/// How far votes and judges agree on the same answers.
fn agreement(summary: &Summary) -> Vec<Block> {
    if summary.judge_agreement.is_empty() {
        return Vec::new();
    }
    let rows = summary.judge_agreement.iter().map(|agreement| {
        vec![
            agreement.between.clone(),
            percent_or_none(agreement.agreement),
            format!("{} ({})", fraction(agreement.kappa), agreement.statistic),
            agreement.kappa_ci95.as_ref().map_or_else(
                || NONE.to_owned(),
                |ci| format!("{} to {}", fraction(Some(ci.low)), fraction(Some(ci.high))),
            ),
            count(agreement.n),
        ]
    });
    vec![heading("Agreement"), table(&["Between", ">Agree", ">Kappa", ">95 %", ">n"], rows.collect())]
}

fn controls(summary: &Summary) -> Vec<Block> {
    if summary.controls.is_empty() {
        return Vec::new();
    }
    let control =
        |name: &str, metric: &str, value, n| vec![name.to_owned(), metric.to_owned(), percent_or_none(value), count(n)];
    let headline = &summary.headline;
    let this = control(&format!("{} (this run)", summary.spec.system), &headline.metric, headline.value, headline.n);
    let rows = std::iter::once(this).chain(summary.controls.iter().map(|c| control(&c.name, &c.metric, c.value, c.n)));
    vec![heading("Controls"), table(&["System", "Metric", ">Score", ">n"], rows.collect())]
}

#[cfg(test)]
mod tests {
    use bench_proto::{spec::RunSpec, summary::DatasetSummary};

    use super::*;
    use crate::golden;

    #[test]
    fn a_fair_sample_says_what_its_quotas_do_to_the_score() {
        let text = include_str!("../../../proto/golden/run_spec.v1.json");
        let mut spec: RunSpec = serde_json::from_str(text).expect("a golden spec");
        spec.sample.preset = "fair".to_owned();
        spec.sample.sampler = "hash".to_owned();
        (spec.sample.stratified, spec.sample.census) = (true, false);
        spec.dataset.profile.presets.fair = None;
        let mut summary = golden::report();
        let mut says = |spec: &RunSpec| {
            summary.dataset = DatasetSummary::from(spec);
            crate::markdown::render_blocks(&document(&summary)).contains("0.27 points too low to 0.32 points too high")
        };
        assert!(says(&spec));
        // shares of the whole dataset have no such quotas
        spec.dataset.profile.presets.fair = Some(200);
        assert!(!says(&spec));
        spec.dataset.profile.presets.fair = None;
        spec.sample.preset = "fair-2".to_owned();
        assert!(!says(&spec));
    }
}
