//! The page's static part: summary cards, plots, tables.

use std::fmt::Write as _;

use bench_proto::summary::{Estimator, Percentiles, Summary, Verdict};

use super::{MOST_QUESTIONS, Page, data::Data};
use crate::{
    document::{Block, Detail, Table, document},
    figures::{count, duration, interval, ms, percent_down, percent_or_none, points, points_interval, usd},
    registry::RenderError,
    svg::{self, escape},
    words,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
///
/// # Errors
/// Never for data that JSON can hold.
pub fn render(page: &Page<'_>) -> Result<String, RenderError> {
    let summary = page.summary;
    let data = Data::of(page).to_script()?;
    let title = title(summary);
    let mut html = String::with_capacity(data.len() + 64 * 1024);
    // writing to a String cannot fail
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{0}</h1>{1}<nav><a href=\"#plots\">plots</a><a href=\"#browser\">questions</a><a href=\"#details\">all figures</a>\
         <button id=\"theme\" type=\"button\" aria-label=\"switch light and dark\">◐</button></nav></header>\n<main>\n",
        escape(&title),
        badge(summary),
    );
    html.push_str(&facts(summary));
    html.push_str(&reasons(summary));
    let _ = writeln!(html, "<section class=\"summary\">{}{}</section>", hero(summary), cards(summary));
    html.push_str(&plots(page));
    html.push_str(&browser(page));
    html.push_str("<section id=\"details\"><h2>All figures</h2>\n");
    for block in document(summary, Detail::Full) {
        html.push_str(&self::block(&block));
    }
    let _ = write!(
        html,
        "</section>\n</main>\n<footer>run {} · fingerprint {} · digest {} · bench-coord {}</footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&summary.run.id),
        escape(&summary.run.fingerprint),
        escape(&summary.result_digest),
        escape(&summary.run.code_version),
    );
    Ok(html)
}

fn title(summary: &Summary) -> String {
    let name = summary.run.name.as_deref().unwrap_or(&summary.run.id);
    format!("{name}: {} {} · {}", summary.dataset.name, summary.dataset.sample.preset, summary.spec.system)
}

/// Verdict and labels.
fn badge(summary: &Summary) -> String {
    let class = if summary.run.verdict == Verdict::Valid { "valid" } else { "invalid" };
    let labels = summary.labels.iter().map(|label| format!("<span class=\"label\">{}</span>", escape(label)));
    format!(
        "<p class=\"verdict {class}\"><strong>{}</strong>{}</p>",
        summary.run.verdict.name(),
        labels.collect::<String>()
    )
}

/// What was run, in a line.
fn facts(summary: &Summary) -> String {
    let (spec, sample) = (&summary.spec, &summary.dataset.sample);
    let mut facts = vec![
        format!(
            "{} of {} questions, {} banks",
            count(sample.n),
            count(summary.dataset.questions),
            count(summary.dataset.banks)
        ),
        format!("{} {}, top {}", spec.system, spec.system_version, spec.top_k),
        format!("answered by {}", spec.answerer),
    ];
    facts.extend(spec.judge.as_ref().map(|judge| match spec.votes {
        Some(votes) if votes > 1 => format!("judged by {judge}, {votes} votes"),
        _ => format!("judged by {judge}"),
    }));
    let day = |at: &String| at.get(..16).map(|at| format!("{} UTC", at.replace('T', " ")));
    facts.extend(summary.run.finished_at.as_ref().and_then(day));
    facts.extend(summary.run.wall_seconds.map(duration));
    let items = facts.iter().enumerate().map(|(at, fact)| {
        // the first one names banks
        let fact = if at == 0 { explained(fact, words::BANK) } else { escape(fact) };
        format!("<li>{fact}</li>")
    });
    format!("<ul class=\"facts\">{}</ul>\n", items.collect::<String>())
}

fn reasons(summary: &Summary) -> String {
    if summary.run.reasons.is_empty() {
        return String::new();
    }
    let items = summary.run.reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason)));
    format!("<ul class=\"reasons\">{}</ul>\n", items.collect::<String>())
}

/// Words whose meaning is shown to who points at them.
fn explained(term: &str, meaning: &str) -> String {
    format!("<span title=\"{}\">{}</span>", escape(meaning), escape(term))
}

/// The headline, larger than everything else, with its interval as a picture.
fn hero(summary: &Summary) -> String {
    let headline = &summary.headline;
    let how = match headline.estimator {
        Estimator::Mean => format!("mean of {} questions", count(headline.n)),
        Estimator::Weighted => format!("{} questions, weighted to the whole dataset", count(headline.n)),
    };
    let (claim, note) = match (&headline.ci95, &headline.ci95_note) {
        (Some(ci95), _) => {
            let whose = explained("for conversations like these", words::LIKE_THESE);
            (format!("95 % interval {}", interval(Some(ci95))), whose)
        }
        (None, note) => ("no interval".to_owned(), escape(note.as_deref().unwrap_or_default())),
    };
    let strict = explained(&format!("strict {}", percent_or_none(headline.strict)), words::STRICT);
    let totals: String = summary
        .all_totals()
        .into_iter()
        .filter_map(|(part, score)| Some(format!(" · {} {}", part.name(), percent_or_none(Some(score.value?)))))
        .collect();
    format!(
        "<div class=\"card hero\"><h2>{}</h2><p class=\"value\">{}</p>{}<p><strong>{}</strong> {}</p><small>{}<br>{}{}</small></div>",
        escape(&headline.metric),
        percent_or_none(headline.value),
        svg::range(headline.value, headline.ci95.as_ref(), headline.naive_ci95.as_ref()),
        escape(&claim),
        note,
        escape(&how),
        strict,
        escape(&totals),
    )
}

fn cards(summary: &Summary) -> String {
    let outcomes = &summary.outcomes;
    let p50 = |p: &Option<Percentiles>| p.as_ref().map_or_else(|| "–".to_owned(), |p| format!("{} ms", ms(p.p50)));
    let p95 = |p: &Option<Percentiles>| p.as_ref().map(|p| format!("median; p95 {} ms", ms(p.p95))).unwrap_or_default();
    // of sessions where nothing is known of turns
    let levels = [("turn", &summary.retrieval.turn), ("session", &summary.retrieval.session)];
    let mut deepest = levels.into_iter().filter_map(|(level, by_k)| Some((level, by_k.iter().next_back()?)));
    let deepest = deepest.find(|(_, (_, at))| at.n > 0);
    let mut cards = vec![(
        "coverage".to_owned(),
        percent_down(outcomes.coverage),
        match outcomes.infra_error + outcomes.not_run {
            0 => format!("all {} questions", count(outcomes.sample)),
            _ => format!("{} failed, {} not run", count(outcomes.infra_error), count(outcomes.not_run)),
        },
    )];
    cards.push(("abstained".to_owned(), count(outcomes.abstained), "scored by the dataset's rule".to_owned()));
    cards.extend(deepest.map(|(level, (k, at))| {
        (
            format!("{level} recall@{k}"),
            percent_or_none(at.recall),
            format!("any of it {}", percent_or_none(at.recall_any)),
        )
    }));
    if let Some(context) = &summary.context {
        cards.push((
            "context".to_owned(),
            format!("{} tokens", count(context.mean_tokens.round() as u64)),
            "mean, estimated".to_owned(),
        ));
    }
    cards.push((
        "time of a question, under load".to_owned(),
        p50(&summary.latency_ms.question),
        p95(&summary.latency_ms.question),
    ));
    cards.push(("of it recall".to_owned(), p50(&summary.latency_ms.recall), p95(&summary.latency_ms.recall)));
    cards.extend(summary.latency_probe.as_ref().and_then(|probe| {
        let more = format!("median of {}, one at a time", count(probe.n));
        Some(("recall latency".to_owned(), format!("{} ms", ms(probe.p50_ms?)), more))
    }));
    let each = summary.usd_per_correct.map(|each| format!("{} per correct answer", usd(each))).unwrap_or_default();
    cards.push(("cost".to_owned(), usd(summary.usage.total.used.usd), each));
    cards.extend(summary.judge_agreement.iter().map(|agreement| {
        let kappa = agreement.kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.3}"));
        (format!("{}'s kappa", agreement.statistic), kappa, format!("{}, n {}", agreement.between, count(agreement.n)))
    }));
    let card = |(name, value, more): (String, String, String)| {
        let name = match name.as_str() {
            name if name.contains("recall@") => explained(name, words::RECALL_AT_K),
            name if name.contains("recall") => explained(name, words::RETAIN_AND_RECALL),
            name => escape(name),
        };
        format!("<div class=\"card\"><dt>{name}</dt><dd>{}</dd><small>{}</small></div>", escape(&value), escape(&more))
    };
    format!("<dl class=\"cards\">{}</dl>", cards.into_iter().map(card).collect::<String>())
}

fn plots(page: &Page<'_>) -> String {
    let mut html = String::from("<section class=\"plots\" id=\"plots\">\n");
    let figure = |title: &str, svg: &str| format!("<figure><figcaption>{}</figcaption>{svg}</figure>\n", escape(title));
    if let Some(comparison) = page.comparison {
        let paired = &comparison.paired;
        let title = format!(
            "against {}: {}, {} points, 95 % interval {} (band: tolerance)",
            comparison.a.id,
            comparison.verdict.name(),
            points(paired.difference),
            points_interval(paired.ci95.as_ref())
        );
        html.push_str(&figure(&title, &svg::forest_plain(std::slice::from_ref(comparison))));
    }
    for plot in svg::plots(page.summary) {
        html.push_str(&figure(&plot.title, &plot.svg));
    }
    html.push_str("</section>\n");
    html
}

fn browser(page: &Page<'_>) -> String {
    let (shown, all) = (page.questions.len().min(MOST_QUESTIONS), page.summary.outcomes.sample);
    let note = if (shown as u64) < all {
        format!("<p class=\"note\">{} of {} questions; questions.jsonl has all.</p>", count(shown as u64), count(all))
    } else {
        String::new()
    };
    format!(
        "<section id=\"browser\"><h2>Questions</h2>{note}\n\
         <form id=\"filters\" role=\"search\">\n\
         <input id=\"search\" type=\"search\" placeholder=\"search questions, answers, hits ( / )\" aria-label=\"search\">\n\
         <select id=\"category\" aria-label=\"category\"><option value=\"\">all categories</option></select>\n\
         <select id=\"outcome\" aria-label=\"outcome\"><option value=\"\">all outcomes</option></select>\n\
         <select id=\"result\" aria-label=\"result\"><option value=\"\">passed and failed</option><option value=\"passed\">passed</option><option value=\"failed\">failed</option></select>\n\
         <select id=\"cause\" aria-label=\"cause\"><option value=\"\">all causes</option></select>\n\
         <select id=\"order\" aria-label=\"order\"><option value=\"\">file order</option><option value=\"score\">lowest score</option><option value=\"slow\">slowest</option><option value=\"usd\">most expensive</option></select>\n\
         <button id=\"reset\" type=\"reset\">clear</button>\n\
         <p><output id=\"shown\" aria-live=\"polite\"></output><span id=\"mean\"></span>\
         <span class=\"keys\"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> walk <kbd>Enter</kbd> open <kbd>Esc</kbd> leave</span></p></form>\n\
         <div class=\"head\" aria-hidden=\"true\"><span>score</span><span>id</span><span>question</span><span class=\"ms\">time</span></div>\n\
         <ol id=\"list\"></ol><p id=\"printed\"></p><button id=\"more\" type=\"button\" hidden>show more</button>\n\
         <noscript>The question browser needs scripts; questions.jsonl has the same.</noscript></section>\n"
    )
}

fn block(block: &Block) -> String {
    let list = |lines: &[String]| {
        let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        format!("<ul>{items}</ul>\n")
    };
    match block {
        // the head of the page says these
        Block::Title(_) | Block::Labels(_) | Block::Verdict(..) => String::new(),
        Block::Heading(text) => format!("<h3>{}</h3>\n", escape(text)),
        Block::Headline(text) => format!("<p><strong>{}</strong></p>\n", escape(text)),
        Block::Text(text) => format!("<p>{}</p>\n", escape(text)),
        Block::List(lines) => list(lines),
        Block::Table(table) => self::table(table),
    }
}

fn table(table: &Table) -> String {
    let class = |right: bool| if right { " class=\"right\"" } else { "" };
    let head = table.columns.iter().map(|(title, right)| format!("<th{}>{}</th>", class(*right), escape(title)));
    let row = |row: &Vec<String>| {
        let cells = row.iter().zip(&table.columns);
        let cells: String =
            cells.map(|(cell, (_, right))| format!("<td{}>{}</td>", class(*right), escape(cell))).collect();
        format!("<tr>{cells}</tr>")
    };
    format!(
        "<div class=\"scroll\"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>\n",
        head.collect::<String>(),
        table.rows.iter().map(row).collect::<String>()
    )
}
