//! The page of a comparison: its verdict, its figures, and each flip with both answers and both contexts side by side.

use std::collections::HashMap;

use askama::Template;
use bench_proto::{
    comparison::{Comparison, Word},
    summary::{ANSWERER_NOT_SAID, QuestionLine},
};

use super::{
    beside::Beside,
    data::{Data, Held},
    page::Browser,
};
use crate::{
    blocks::Block,
    comparison::{claim, name_of, without_flips},
    error::RenderError,
    figures::count,
};

/// A flip as the second run tells it, with the first run beside it.
#[derive(Debug, Clone)]
pub struct FlipLines {
    /// The question in the second run.
    pub line: QuestionLine,
    /// What is told beside its line: the question in the first run, most of all.
    pub beside: Beside,
}

/// What the page of a comparison is made from.
#[derive(Debug, Clone, Copy)]
pub struct FlipsPage<'a> {
    /// What the two runs were held against each other for.
    pub comparison: &'a Comparison,
    /// Its flips, in their order; those without a line in the second run are left out.
    pub flips: &'a [FlipLines],
    /// Whether the second run is one that `show` finds: not one of a folder.
    pub is_stored: bool,
}

#[derive(Template)]
#[template(path = "flips.html")]
struct View<'a> {
    comparison: &'a Comparison,
    title: String,
    /// Its name and its class.
    verdict: (&'static str, &'static str),
    facts: Vec<String>,
    reasons: &'a [String],
    claim: String,
    forest: String,
    browser: Browser,
    blocks: Vec<Block>,
}

/// The page: one file that needs no network.
///
/// # Errors
/// Never for data that JSON can hold.
pub fn flips(page: FlipsPage<'_>) -> Result<String, RenderError> {
    let comparison = page.comparison;
    let directions: HashMap<&str, &str> =
        comparison.flips.iter().map(|flip| (flip.question_id.as_str(), flip.direction.as_str())).collect();
    let (mut data, b) = (Data::of_comparison(comparison), &comparison.b);
    if page.is_stored {
        data.name_run(&b.id);
    }
    for FlipLines { line, beside } in page.flips {
        let flip = directions.get(line.question_id.as_str()).copied();
        data.add(line, Held { beside: Some(beside), flip });
    }
    let all: u64 = comparison.flip_counts.values().sum();
    let class = match comparison.verdict {
        _ if !comparison.comparable => "invalid",
        Word::Better => "valid",
        Word::Worse => "invalid",
        Word::NoChange | Word::Inconclusive => "neutral",
    };
    let view = View {
        comparison,
        title: format!("{} against {}", name_of(b), name_of(&comparison.a)),
        verdict: (if comparison.comparable { comparison.word() } else { "NOT COMPARABLE" }, class),
        facts: facts(comparison),
        reasons: &comparison.reasons,
        claim: claim(comparison),
        forest: crate::svg::forest_plain(std::slice::from_ref(comparison)),
        browser: Browser::new("Flips", (page.flips.len() as u64, all), "--flips N lists more", &data)?,
        blocks: without_flips(comparison),
    };
    view.browser.page(&view)
}

/// What was compared, in a line.
fn facts(comparison: &Comparison) -> Vec<String> {
    let counted = |direction: &str| count(comparison.flip_counts.get(direction).copied().unwrap_or(0));
    let of = |which: &str, run: &bench_proto::comparison::ComparedRun| {
        let judge = match run.judged_by() {
            [] => String::new(),
            judges => format!(", judged by {}", judges.join(" and ")),
        };
        let answered = match run.answerer.as_str() {
            ANSWERER_NOT_SAID => ANSWERER_NOT_SAID.to_owned(),
            answerer => format!("answered by {answerer}"),
        };
        format!("{which}: {} {}, {answered}{judge}", name_of(run), run.system)
    };
    vec![
        claim(comparison),
        of("first", &comparison.a),
        of("second", &comparison.b),
        format!("{} lost, {} won", counted("lost"), counted("won")),
    ]
}

#[cfg(test)]
mod tests {
    use bench_proto::text;
    use serde_json::json;

    use super::*;
    use crate::comparison::tests::comparison;

    #[test]
    fn a_page_says_what_was_compared_and_how_many_flips_it_shows() {
        let comparison = comparison("q1");
        let line = QuestionLine { question_id: "q1".to_owned(), ..crate::questions::tests::question() };
        let flips = [FlipLines { line, beside: Beside::default() }];
        let html = super::flips(FlipsPage { comparison: &comparison, flips: &flips, is_stored: false });
        let html = html.expect("renders");
        for words in [
            "<h1>after against before</h1>",
            "INCONCLUSIVE",
            "-50.00 points, 95 % interval –",
            "first: before bm25, answered by extractive",
            "3 lost, 0 won",
            "1 of 3 are on this page; --flips N lists more.",
            "McNemar",
            "\"flip\":\"lost\"",
        ] {
            assert!(html.contains(words), "'{words}' is missing:\n{html}");
        }
        assert!(!html.contains("\"run\":"), "a run of a folder is in no store");
    }

    #[test]
    fn two_runs_of_one_name_are_told_apart_at_each_flip() {
        let mut comparison = comparison("q1");
        comparison.a.name = Some("nightly".to_owned());
        comparison.b.name.clone_from(&comparison.a.name);
        let html = super::flips(FlipsPage { comparison: &comparison, flips: &[], is_stored: true }).expect("renders");
        assert!(html.contains("nightly (before)\"") && html.contains("nightly (after)\""), "{html}");
    }

    #[test]
    fn a_page_names_all_judges_of_a_panel() {
        let mut comparison = comparison("q1");
        comparison.b.judges = ["openai:one", "anthropic:two"].map(str::to_owned).to_vec();
        let html = super::flips(FlipsPage { comparison: &comparison, flips: &[], is_stored: true }).expect("renders");
        assert!(html.contains("answered by extractive, judged by openai:one and anthropic:two"), "{html}");
    }

    #[test]
    fn equal_runs_are_told_as_equal_by_the_page_the_plot_the_texts_and_the_table_of_pairs() {
        let mut equal = comparison("q1");
        (equal.equal, equal.paired.difference) = (true, Some(0.0));
        (equal.flips, equal.flip_counts) = (Vec::new(), Default::default());
        let html = super::flips(FlipsPage { comparison: &equal, flips: &[], is_stored: false }).expect("renders");
        assert!(html.contains("EQUAL: +0.00 points") && html.contains(">EQUAL</text>"), "{html}");
        assert!(!html.contains("INCONCLUSIVE"), "{html}");
        let view = crate::terminal::View::default();
        for text in [crate::comparison::terminal(&equal, view), crate::comparison::markdown(&equal)] {
            assert!(text.contains("EQUAL: +0.00 points") && !text.contains("INCONCLUSIVE"), "{text}");
            assert!(text.contains("the runs are equal"), "{text}");
        }
        let json = serde_json::to_value(&equal).expect("is written");
        assert_eq!((&json["equal"], &json["verdict"]), (&json!(true), &json!("INCONCLUSIVE")), "readers find the word");
        let mut other = equal.clone();
        other.equal = false;
        assert_eq!(serde_json::to_value(&other).expect("is written").get("equal"), None);
        let pairs = [equal, other];
        let plot = crate::svg::forest(&pairs);
        assert!(plot.contains(">EQUAL</text>") && plot.contains(">INCONCLUSIVE</text>"), "{plot}");
        let text = crate::comparison::pairs_markdown(&pairs, |all| vec![false; all.len()]);
        assert!(text.contains("| EQUAL |") && text.contains("| INCONCLUSIVE |"), "{text}");
    }

    #[test]
    fn nothing_that_others_say_is_markup() {
        let nasty = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{2066}";
        let mut comparison = comparison(nasty);
        comparison.a.name = Some(nasty.to_owned());
        comparison.b.system = nasty.to_owned();
        comparison.notes = vec![nasty.to_owned()];
        comparison.reasons = vec![nasty.to_owned()];
        let line = QuestionLine {
            question_id: nasty.to_owned(),
            question: nasty.to_owned(),
            answer: Some(nasty.to_owned()),
            ..crate::questions::tests::question()
        };
        let beside = Beside {
            evidence: vec![("D1:1".to_owned(), nasty.to_owned())],
            other: Some(QuestionLine { answer: Some(format!("other {nasty}")), ..line.clone() }),
            ..Beside::default()
        };
        let flips = [FlipLines { line, beside }];
        let html = super::flips(FlipsPage { comparison: &comparison, flips: &flips, is_stored: true });
        let html = html.expect("renders");
        assert!(!html.contains("alert(1)</script>") && !html.contains("<img"), "{html}");
        assert!(!html.contains(|c| text::acts(c) && c != '\n'), "nothing turns the direction of writing");
        assert!(html.contains("other \\u003c/script>"), "both answers travel");
    }
}
