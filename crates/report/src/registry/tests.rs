use super::*;
use crate::{
    terminal::{self, TerminalOptions},
    words,
};

/// A full run with a judge, a fair sample with the built-in answerer, and a run that paused with a failed bank.
fn summaries() -> [(&'static str, Summary); 3] {
    let read = |text: &str| serde_json::from_str(text).expect("the stored summaries are summaries");
    [
        ("full", read(include_str!("../../../../proto/golden/report.v3.json"))),
        ("fair", read(include_str!("../../testdata/fair.json"))),
        ("partial", read(include_str!("../../testdata/partial.json"))),
    ]
}

#[test]
fn every_format_renders_every_summary_as_before() {
    for (name, summary) in summaries() {
        for format in FORMATS {
            let page = Page { summary: &summary, questions: &[], comparison: None, trace_url: None };
            let text = format.render(&page).expect("renders");
            assert!(text.ends_with('\n'), "{} of {name} ends with a newline", format.name);
            // html has tests of its own; its look is no text
            if format.name != "json" && format.name != "html" {
                insta::assert_snapshot!(format!("{name}.{}", format.name), text);
            }
        }
    }
}

#[test]
fn the_terminal_report_is_as_before() {
    for (name, summary) in summaries() {
        insta::assert_snapshot!(format!("{name}.terminal"), terminal::render(&summary, TerminalOptions::default()));
    }
}

#[test]
fn colour_only_adds_colour() {
    for (name, summary) in summaries() {
        let plain = terminal::render(&summary, TerminalOptions { colour: false, full: true });
        assert!(!plain.contains('\u{1b}'), "{name} without colour");
        let mut coloured = terminal::render(&summary, TerminalOptions { colour: true, full: true });
        assert!(coloured.contains('\u{1b}'), "{name} with colour");
        for code in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[1;31m", "\u{1b}[1;32m", "\u{1b}[1;33m"] {
            coloured = coloured.replace(code, "");
        }
        assert_eq!(coloured, plain);
    }
}

#[test]
fn json_reads_back_as_the_same_summary() {
    for (name, summary) in summaries() {
        let text = crate::json::render(&summary).expect("renders");
        assert_eq!(serde_json::from_str::<Summary>(&text).expect("reads back"), summary, "{name}");
    }
}

#[test]
fn what_must_not_be_overlooked_is_in_both_views() {
    for (name, summary) in summaries() {
        let views = [
            crate::markdown::render(&summary).expect("renders"),
            terminal::render(&summary, TerminalOptions::default()),
        ];
        for view in views {
            let mut needed = vec![
                summary.run.verdict.name(),
                "without adversarial (1,540)",
                "all categories (1,986)",
                "Naive",
                "Coverage",
                "Strict",
            ];
            needed.extend(summary.labels.iter().map(String::as_str));
            needed.extend(summary.run.reasons.iter().map(String::as_str));
            needed.extend(summary.dataset.sample.notes.iter().map(String::as_str));
            needed.extend([summary.run.fingerprint.as_str(), summary.result_digest.as_str()]);
            for words in needed {
                assert!(view.contains(words), "{name}: '{words}' is missing");
            }
        }
    }
}

#[test]
fn words_are_explained_where_they_stand() {
    for (name, summary) in summaries() {
        let page = Page { summary: &summary, questions: &[], comparison: None, trace_url: None };
        let html = crate::html::render(&page).expect("renders");
        let views = [
            crate::markdown::render(&summary).expect("renders"),
            terminal::render(&summary, TerminalOptions::default()),
            html.clone(),
        ];
        let explained = [
            words::BANK,
            words::LIKE_THESE,
            words::THIS_BENCHMARK,
            words::STRICT,
            words::RETAIN_AND_RECALL,
            words::RECALL_AT_K,
        ];
        for view in views {
            // html writes an apostrophe in its own way
            let view = view.replace("&#39;", "'");
            for words in explained {
                assert!(view.contains(words), "{name}: '{words}' is missing");
            }
        }
        assert!(html.contains("\">for conversations like these</span>"), "{name}: what the headline is about");
        assert!(html.contains("\">of it recall</span>"), "{name}: the phases of a question");
    }
}

#[test]
fn names_are_unique_and_found() {
    for format in FORMATS {
        assert_eq!(format_named(format.name).map(|found| found.file_name), Some(format.file_name));
    }
    assert!(format_named("pdf").is_none());
}
