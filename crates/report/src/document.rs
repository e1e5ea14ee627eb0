//! What people read of a summary, as blocks without layout.

mod latency;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    profile::Part,
    summary::{
        AnswerKeyScore, Estimator, Headline, MetricScore, PartScore, RetrievalAtK, ServedModel, Summary, Verdict,
    },
};

use crate::{
    figures::{
        NONE, count, count_or_none, counted, duration, fraction, interval, interval_with_width, ms, one_line, percent,
        percent_down, percent_or_none,
    },
    words,
};

/// Longest piece of an answer that is shown.
const TEXT_WIDTH: usize = 80;

/// How much to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What fits a terminal after a run.
    Brief,
    /// Everything.
    Full,
}

/// A piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// The report's title.
    Title(String),
    /// A heading.
    Heading(String),
    /// Marks that must not be overlooked.
    Labels(Vec<String>),
    /// The one line to remember.
    Headline(String),
    /// The verdict and its reasons.
    Verdict(Verdict, Vec<String>),
    /// A paragraph.
    Text(String),
    /// Lines that belong together.
    List(Vec<String>),
    /// A table.
    Table(Table),
}

/// A table; columns whose title starts with `>` are aligned right (the sign is not part of the title).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn table(columns: &[&str], rows: Vec<Vec<String>>) -> Block {
    let column = |title: &&str| match title.strip_prefix('>') {
        Some(title) => (title.to_owned(), true),
        None => ((*title).to_owned(), false),
    };
    Block::Table(Table { columns: columns.iter().map(column).collect(), rows })
}

pub(crate) fn heading(text: impl Into<String>) -> Block {
    Block::Heading(text.into())
}

/// The whole report.
pub(crate) fn document(summary: &Summary, detail: Detail) -> Vec<Block> {
    let mut blocks = top(summary);
    blocks.extend(result(summary));
    blocks.extend(categories(summary.scores.first()));
    blocks.extend(metrics(summary));
    blocks.extend(retrieval(summary));
    blocks.extend(recall_and_answer(summary));
    blocks.extend(agreement(summary));
    blocks.extend(controls(summary));
    blocks.extend(latency::probe(summary));
    blocks.extend(latency::under_load(summary));
    blocks.extend(usage::usage(summary));
    blocks.extend(slowest(summary, if detail == Detail::Full { usize::MAX } else { 3 }));
    if detail == Detail::Full {
        blocks.extend(worst(summary));
    }
    blocks.extend(errors(summary));
    blocks.extend(checks(summary, detail));
    blocks.extend(models(summary, detail));
    blocks.extend(run(summary, detail));
    blocks
}

/// Title, labels, the one line, verdict, sample and warnings.
fn top(summary: &Summary) -> Vec<Block> {
    let (dataset, sample) = (&summary.dataset, &summary.dataset.sample);
    let name = summary.run.name.as_deref().map(|name| format!("{} · ", one_line(name, TEXT_WIDTH))).unwrap_or_default();
    let mut blocks = vec![Block::Title(format!(
        "{name}{} {} · {} · {}",
        dataset.name, sample.preset, summary.spec.system, summary.spec.answerer
    ))];
    if !summary.labels.is_empty() {
        blocks.push(Block::Labels(summary.labels.clone()));
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
    lines.extend(sample.notes.iter().map(|note| format!("Sample note: {note}.")));
    if summary.controls.is_empty() {
        lines.push("Controls: not run; --controls shows whether the score depends on memory.".to_owned());
    }
    lines.extend(summary.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    blocks.push(Block::List(lines));
    blocks
}

/// `judge 62.24 %, 95 % interval 57.1 to 67.4 (naive 60.1 to 64.3), coverage 100.0 %, strict 62.2 %`.
fn headline_line(summary: &Summary) -> String {
    let headline = &summary.headline;
    format!(
        "{} {}, 95 % interval {} (naive {}), coverage {}, strict {}",
        headline.metric,
        percent_or_none(headline.value),
        interval(headline.ci95.as_ref()),
        interval(headline.naive_ci95.as_ref()),
        percent_down(summary.outcomes.coverage),
        percent_or_none(headline.strict),
    )
}

fn estimator_words(headline: &Headline) -> String {
    let from = format!("{} in {}", counted(headline.n, "question"), counted(headline.clusters, "bank"));
    match (headline.estimator, headline.population) {
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
            "infra errors and questions not run count as 0".to_owned(),
        ),
    ];
    let mut blocks = vec![
        heading(format!("Result: {}", headline.metric)),
        table(&["", "Value", "How"], rows),
        Block::Text([words::LIKE_THESE, words::THIS_BENCHMARK, words::STRICT].join(" ")),
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
    blocks.extend(summary.answer_key.as_ref().map(answer_key));
    blocks
}

/// What the known mistakes of the answer key mean.
fn answer_key(key: &AnswerKeyScore) -> Block {
    let corrected = match key.corrected {
        Some(value) => format!("{} by the corrected one", percent(value)),
        None => "the corrected one needs the judge again".to_owned(),
    };
    Block::Text(format!(
        "Answer key ({}): {} of {} ({}) have a wrong expected answer, so a perfect system reaches {} by the published key. {} {} by the published key, {corrected}, {} \
         without those questions (plain means).",
        one_line(&key.source, TEXT_WIDTH),
        count(key.wrong),
        counted(key.n, "question"),
        key.categories.join(", "),
        percent_or_none(key.ceiling),
        key.metric,
        percent_or_none(key.published),
        percent_or_none(key.without_wrong),
    ))
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
}

fn metrics(summary: &Summary) -> Vec<Block> {
    let rows = summary.scores.iter().map(|score| {
        vec![
            score.metric.clone(),
            percent_or_none(score.micro),
            percent_or_none(score.macro_),
            percent_or_none(score.weighted),
            interval(score.ci95.as_ref()),
            interval(score.naive_ci95.as_ref()),
            format!("{} (≥ {})", percent_or_none(score.pass_rate), score.pass_threshold),
            count(score.n),
        ]
    });
    let columns = ["Metric", ">Micro", ">Macro", ">Weighted", ">95 %", ">Naive 95 %", ">Passed", ">n"];
    vec![heading("Metrics"), table(&columns, rows.collect())]
}

fn retrieval(summary: &Summary) -> Vec<Block> {
    let levels = [("turn", &summary.retrieval.turn), ("session", &summary.retrieval.session)];
    let rows: Vec<Vec<String>> = levels
        .into_iter()
        .flat_map(|(level, by_k)| by_k.iter().map(move |(k, at)| (level, k, at)))
        .filter(|(_, _, at)| at.n > 0)
        .map(|(level, k, at)| {
            let figures = [at.recall_any, at.recall_all, at.recall, at.precision, at.mrr, at.ndcg].map(fraction);
            let mut row = vec![level.to_owned(), k.to_string()];
            row.extend(figures);
            row.push(count(at.n));
            row
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = ["Level", ">k", ">Recall any", ">Recall all", ">Recall", ">Precision", ">MRR", ">NDCG", ">n"];
    let mut blocks = vec![heading("Retrieval"), table(&columns, rows), Block::Text(words::RECALL_AT_K.to_owned())];
    let measured = |by_k: &BTreeMap<u32, RetrievalAtK>| by_k.values().any(|at| at.n > 0);
    if !measured(&summary.retrieval.turn) {
        blocks.push(Block::Text(
            "Nothing is known of turns: the hits carry none, or the dataset names none. Evidence is looked for by session.".to_owned(),
        ));
    }
    let lost = &summary.failure_attribution;
    let failed = lost.evidence_missing
        + lost.evidence_partial
        + lost.evidence_found
        + lost.no_ground_truth
        + lost.not_retained
        + lost.judge_in_doubt;
    if failed > 0 {
        blocks.push(Block::Text(format!(
            "Of {} below the pass threshold, {} had no evidence among the hits, {} a part of it, {} all of it (the answer failed); {} name no evidence.",
            counted(failed, "question"),
            count(lost.evidence_missing),
            count(lost.evidence_partial),
            count(lost.evidence_found),
            count(lost.no_ground_truth),
        )));
        if lost.not_retained + lost.judge_in_doubt > 0 {
            blocks.push(Block::Text(format!(
                "Beside these, {} lost evidence that was never retained, and {} left judges in doubt.",
                counted(lost.not_retained, "question"),
                count(lost.judge_in_doubt),
            )));
        }
    }
    blocks
}

/// What recall had found against how the answer fared: what is lost in memory, and what after.
fn recall_and_answer(summary: &Summary) -> Vec<Block> {
    let table_of = &summary.recall_answer;
    let rows = [
        ("all evidence found", table_of.evidence_found),
        ("part of it", table_of.evidence_partial),
        ("none of it", table_of.evidence_missing),
        ("no evidence named", table_of.no_ground_truth),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|(_, counts)| counts.passed + counts.failed > 0)
        .map(|(name, counts)| {
            let all = counts.passed + counts.failed;
            let share = percent(counts.passed as f64 / all as f64);
            vec![name.to_owned(), count(counts.passed), count(counts.failed), share]
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![heading("Recall and answer"), table(&["Recall", ">Passed", ">Failed", ">Passed"], rows)]
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

fn slowest(summary: &Summary, most: usize) -> Vec<Block> {
    if summary.slowest.is_empty() {
        return Vec::new();
    }
    let rows = summary.slowest.iter().take(most).map(|slow| {
        let part = |phase: &str| slow.phase_ms.get(phase).map_or_else(|| NONE.to_owned(), |value| ms(*value));
        let parts = ["recall", "answer", "judge", "rate_wait", "queue_wait"].map(part);
        [slow.question_id.clone(), ms(slow.ms)].into_iter().chain(parts).chain([slow.trace_id.clone()]).collect()
    });
    let columns = ["Question", ">ms", ">Recall", ">Answer", ">Judge", ">Rate wait", ">Queue wait", "Trace"];
    let mut blocks = vec![heading("Slowest questions"), table(&columns, rows.collect())];
    let links = summary.slowest.iter().take(most);
    let links: Vec<String> =
        links.filter_map(|slow| Some(format!("{}: {}", slow.question_id, slow.trace_url.as_ref()?))).collect();
    if !links.is_empty() {
        blocks.push(Block::Text("Their traces:".to_owned()));
        blocks.push(Block::List(links));
    }
    blocks
}

fn worst(summary: &Summary) -> Vec<Block> {
    if summary.worst.is_empty() {
        return Vec::new();
    }
    let text =
        |text: &Option<String>| text.as_deref().map_or_else(|| NONE.to_owned(), |text| one_line(text, TEXT_WIDTH));
    let rows =
        summary.worst.iter().map(|w| vec![w.question_id.clone(), percent(w.score), text(&w.gold), text(&w.answer)]);
    vec![heading("Lowest scores"), table(&["Question", ">Score", "Gold", "Answer"], rows.collect())]
}

fn errors(summary: &Summary) -> Vec<Block> {
    let counts = |title: &str, column: &str, of: &BTreeMap<String, u64>| {
        let rows = of.iter().map(|(code, n)| vec![one_line(code, TEXT_WIDTH), count(*n)]).collect();
        if of.is_empty() { Vec::new() } else { vec![heading(title), table(&[column, ">Questions"], rows)] }
    };
    let mut blocks = counts("Infrastructure errors", "Error", &summary.errors);
    blocks.extend(counts("Answers that did not end by themselves", "End", &summary.replies));
    blocks
}

fn checks(summary: &Summary, detail: Detail) -> Vec<Block> {
    if summary.run.checks.is_empty() || detail == Detail::Brief {
        return Vec::new();
    }
    let rows =
        summary.run.checks.iter().map(|c| vec![c.rule.clone(), c.state.name().to_owned(), one_line(&c.detail, 200)]);
    vec![heading("Verdict"), table(&["Rule", "Result", "Seen"], rows.collect())]
}

fn models(summary: &Summary, detail: Detail) -> Vec<Block> {
    let models = summary.models.as_deref().unwrap_or_default();
    if models.is_empty() || detail == Detail::Brief {
        return Vec::new();
    }
    let rows = models.iter().map(|model| {
        let list = |words: Option<Vec<String>>| match words {
            None => "not known".to_owned(),
            Some(words) if words.is_empty() => NONE.to_owned(),
            Some(words) => words.join(", "),
        };
        let served = |served: &ServedModel| {
            let name = served.model.as_deref().unwrap_or("without a name");
            let fingerprint = served.system_fingerprint.as_ref().map(|of| format!(" ({of})"));
            one_line(&format!("{name}{}", fingerprint.unwrap_or_default()), TEXT_WIDTH)
        };
        let params = model.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        vec![
            model.role.clone(),
            model.model.clone(),
            list(model.servers.clone()),
            list(model.served.as_ref().map(|all| all.iter().map(served).collect())),
            list(Some(params)),
        ]
    });
    let columns = ["Role", "Model", "Server", "As replies name it", "Parameters"];
    vec![heading("Models"), table(&columns, rows.collect())]
}

fn run(summary: &Summary, detail: Detail) -> Vec<Block> {
    let (run, dataset, spec) = (&summary.run, &summary.dataset, &summary.spec);
    let mut rows = vec![
        ("Run", run.id.clone()),
        (
            "Status",
            format!(
                "{}{}",
                run.status,
                if run.resumed_times > 0 {
                    format!(", resumed {}", counted(run.resumed_times, "time"))
                } else {
                    String::new()
                }
            ),
        ),
        ("Wall time", run.wall_seconds.map_or_else(|| NONE.to_owned(), duration)),
        ("Fingerprint", run.fingerprint.clone()),
        ("Result digest", summary.result_digest.clone()),
    ];
    if detail == Detail::Full {
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
        let modified = if dataset.modified { ", modified: not the published file" } else { "" };
        rows.extend([
            ("Started", dash(&run.started_at)),
            ("Finished", dash(&run.finished_at)),
            ("Version", run.code_version.clone()),
            ("Dataset", format!("{} {}, sha256 {}{modified}", dataset.name, dataset.version, dataset.sha256)),
            ("Sample signature", dataset.sample.signature.clone()),
            ("System", format!("{} {}, top-k {}", spec.system, spec.system_version, spec.top_k)),
            ("Answerer", spec.answerer.clone()),
            ("Judges", if spec.judges.is_empty() { NONE.to_owned() } else { spec.judges.join(", ") }),
            ("Scorers", spec.scorers.join(", ")),
        ]);
        rows.extend(
            summary
                .top1_score
                .map(|score| ("Mean score of the best hit", format!("{score:.3} (the system's own scale)"))),
        );
    }
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    vec![heading("Run"), table(&["", "Value"], rows)]
}
