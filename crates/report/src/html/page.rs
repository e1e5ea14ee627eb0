//! The page: what its templates (`*.html` beside this file) are filled with.

use askama::Template;
use bench_proto::{
    metric::Better,
    summary::{Estimator, Percentiles, Summary, Verdict},
};

use super::{MOST_QUESTIONS, Page, data::Data};
use crate::{
    blocks::Block,
    comparison::told_name,
    document::{document, having_it, judged_by},
    error::RenderError,
    figures::{count, counted, duration, interval, ms, percent_down, percent_or_none, points, points_interval, usd},
    svg, words,
};

/// What the page does: its parts share their names with each other, and with nobody else.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(function () {\n",
    include_str!("script/elements.js"),
    include_str!("script/questions.js"),
    include_str!("script/list.js"),
    include_str!("script/address.js"),
    include_str!("script/detail.js"),
    include_str!("script/theme.js"),
    include_str!("script/start.js"),
    "})();\n",
);

/// What it looks like.
pub(crate) const STYLE: &str = include_str!("page.css");

/// A list of questions on a page, with what makes it work.
pub(super) struct Browser {
    /// What is listed.
    pub(super) listed: &'static str,
    /// Questions shown, and all of them, where some are left out.
    pub(super) part: Option<(String, String)>,
    /// Where the others are.
    pub(super) others: &'static str,
    pub(super) data: String,
    pub(super) style: &'static str,
    pub(super) script: &'static str,
}

impl Browser {
    /// A list of so many questions of all that there are; `others` says where those are that are left out.
    pub(super) fn new(
        listed: &'static str,
        (shown, all): (u64, u64),
        others: &'static str,
        data: &Data<'_>,
    ) -> Result<Self, RenderError> {
        let part = (shown < all).then(|| (count(shown), count(all)));
        Ok(Self { listed, part, others, data: data.to_script()?, style: STYLE, script: SCRIPT })
    }

    /// The whole page that the list stands on; ends with a newline.
    pub(super) fn page(&self, view: &impl Template) -> Result<String, RenderError> {
        let mut html = String::with_capacity(self.data.len() + 64 * 1024);
        view.render_into(&mut html)?;
        html.push('\n');
        Ok(html)
    }
}

/// What `page.html` holds. Everything is escaped where it stands, but what is markup already: style, script, data, pictures.
#[derive(Template)]
#[template(path = "page.html")]
struct View<'a> {
    summary: &'a Summary,
    title: String,
    /// Its name and its class.
    verdict: (&'static str, &'static str),
    facts: Vec<Word>,
    hero: Hero,
    cards: Vec<Card>,
    /// Titles and pictures.
    plots: Vec<(String, String)>,
    browser: Browser,
    blocks: Vec<Block>,
}

/// A text whose meaning is shown to who points at it.
struct Word {
    text: String,
    meaning: Option<&'static str>,
}

impl Word {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), meaning: None }
    }

    fn explained(text: impl Into<String>, meaning: &'static str) -> Self {
        Self { text: text.into(), meaning: Some(meaning) }
    }
}

/// The headline, larger than everything else, with its interval as a picture.
struct Hero {
    value: String,
    picture: String,
    claim: String,
    about: Word,
    how: String,
    strict: Word,
    totals: String,
}

/// A figure with its name, and what it is made of.
struct Card {
    name: Word,
    value: String,
    more: String,
}

/// The whole page.
///
/// # Errors
/// Never for data that JSON can hold.
pub fn render(page: &Page<'_>) -> Result<String, RenderError> {
    let summary = page.summary;
    let class = if summary.run.verdict == Verdict::Valid { "valid" } else { "invalid" };
    let sizes = (page.questions.len().min(MOST_QUESTIONS) as u64, summary.outcomes.sample);
    let view = View {
        summary,
        title: title(summary),
        verdict: (summary.run.verdict.name(), class),
        facts: facts(summary),
        hero: hero(summary),
        cards: cards(summary),
        plots: plots(page),
        browser: Browser::new("Questions", sizes, "questions.jsonl has all", &Data::from_page(page))?,
        blocks: document(summary),
    };
    view.browser.page(&view)
}

fn title(summary: &Summary) -> String {
    let name = summary.run.name.as_deref().unwrap_or(&summary.run.id);
    format!("{name}: {} {} · {}", summary.dataset.name, summary.dataset.sample.preset, summary.spec.system)
}

/// What was run, in a line.
fn facts(summary: &Summary) -> Vec<Word> {
    let (spec, sample) = (&summary.spec, &summary.dataset.sample);
    let mut facts = vec![
        format!(
            "{} of {}, {}",
            count(sample.n),
            counted(summary.dataset.questions, "question"),
            counted(summary.dataset.banks, "bank")
        ),
        match spec.known_top_k() {
            Some(top_k) => format!("{} {}, top {top_k}", spec.system, spec.system_version),
            None => format!("{} {}", spec.system, spec.system_version),
        },
        match spec.known_answerer().filter(|_| spec.scenario.answers()) {
            Some(answerer) => format!("answered by {answerer}"),
            None => spec.who_answered(),
        },
    ];
    facts.extend(judged_by(summary).map(|judged| match spec.votes {
        Some(votes) if votes > 1 => format!("{judged}, {votes} votes each"),
        _ => judged,
    }));
    let day = |at: &String| at.get(..16).map(|at| format!("{} UTC", at.replace('T', " ")));
    facts.extend(summary.run.finished_at.as_ref().and_then(day));
    facts.extend(summary.run.wall_seconds.map(duration));
    // the first one names banks
    let word = |(at, fact)| if at == 0 { Word::explained(fact, words::BANK) } else { Word::plain(fact) };
    facts.into_iter().enumerate().map(word).collect()
}

fn hero(summary: &Summary) -> Hero {
    let headline = &summary.headline;
    let how = match headline.estimator {
        Estimator::Mean => format!("mean of {} questions", count(headline.n)),
        Estimator::Weighted => format!("{} questions, weighted to the whole dataset", count(headline.n)),
    };
    let how = [Some(how), having_it(headline)].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let (claim, about) = match (&headline.ci95, &headline.ci95_note) {
        (Some(ci95), _) => {
            let whose = Word::explained("for conversations like these", words::LIKE_THESE);
            (format!("95 % interval {}", interval(Some(ci95))), whose)
        }
        (None, note) => ("no interval".to_owned(), Word::plain(note.as_deref().unwrap_or_default())),
    };
    let better = summary.scores.first().map_or(Better::Higher, |score| score.better);
    let totals = summary.all_totals().into_iter();
    let totals =
        totals.filter_map(|(part, score)| Some(format!(" · {} {}", part.name(), percent_or_none(Some(score.value?)))));
    Hero {
        value: percent_or_none(headline.value),
        picture: svg::range(headline.value, headline.ci95.as_ref(), headline.naive_ci95.as_ref()),
        claim,
        about,
        how: format!("{how}{}", words::direction(better)),
        strict: Word::explained(format!("strict {}", percent_or_none(headline.strict)), words::strict(better)),
        totals: totals.collect(),
    }
}

fn cards(summary: &Summary) -> Vec<Card> {
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
        match (outcomes.infra_error, outcomes.not_run) {
            (0, 0) => format!("all {} questions", count(outcomes.sample)),
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
    let unknown = summary.usage.is_incomplete().then(|| "what the memory system uses is unknown".to_owned());
    let more: Vec<String> = [each].into_iter().filter(|each| !each.is_empty()).chain(unknown).collect();
    cards.push(("cost".to_owned(), usd(summary.usage.total.used.usd), more.join(", ")));
    cards.extend(summary.judge_agreement.iter().map(|agreement| {
        let kappa = agreement.kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.3}"));
        (format!("{}'s kappa", agreement.statistic), kappa, format!("{}, n {}", agreement.between, count(agreement.n)))
    }));
    let named = |name: String| match name.as_str() {
        name if name.contains("recall@") => Word::explained(name, words::RECALL_AT_K),
        name if name.contains("recall") => Word::explained(name, words::RETAIN_AND_RECALL),
        _ => Word::plain(name),
    };
    cards.into_iter().map(|(name, value, more)| Card { name: named(name), value, more }).collect()
}

/// Titles and pictures: the comparison, where there is one, before those of the run.
fn plots(page: &Page<'_>) -> Vec<(String, String)> {
    let against = page.comparison.map(|comparison| {
        let paired = &comparison.paired;
        let title = format!(
            "against {}: {}, {} points, 95 % interval {} (band: tolerance)",
            told_name(&comparison.a),
            comparison.word(),
            points(paired.difference),
            points_interval(paired.ci95.as_ref())
        );
        (title, svg::forest_plain(std::slice::from_ref(comparison)))
    });
    let own = svg::plots(page.summary).into_iter().map(|plot| (plot.title, plot.svg));
    against.into_iter().chain(own).collect()
}
