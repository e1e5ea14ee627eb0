use std::collections::BTreeMap;

use bench_proto::{
    metric::Better,
    scenario::Scenario,
    summary::{
        FacetScore, FailureAttribution, Interval, Outcomes, PassCount, RecallAnswer, StoredEvidence, StoredSummary,
    },
};

use super::*;
use crate::{
    golden,
    terminal::{self, TerminalOptions, View},
    words,
};

/// A full run with a judge, a fair sample with the built-in answerer, and a run that paused with a failed bank.
fn summaries() -> [(&'static str, Summary); 3] {
    let read = |text: &str| serde_json::from_str(text).expect("the stored summaries are summaries");
    [
        ("full", golden::report()),
        ("fair", read(include_str!("../../testdata/fair.json"))),
        ("partial", read(include_str!("../../testdata/partial.json"))),
    ]
}

#[test]
fn every_format_renders_every_summary_as_before() {
    for (name, summary) in summaries() {
        for format in FORMATS {
            let page = Page::new(&summary, &[]);
            let text = format.render(&page).expect("renders");
            assert!(text.ends_with('\n'), "{} of {name} ends with a newline", format.name);
            // html has tests of its own; its look is no text
            if format.name != "json" && format.name != "html" {
                insta::assert_snapshot!(format!("{name}.{}", format.name), text);
            }
        }
    }
}

const FULL: TerminalOptions<'static> =
    TerminalOptions { view: View { colour: false, width: None }, full: true, page: None };

#[test]
fn the_terminal_report_is_as_before() {
    for (name, summary) in summaries() {
        insta::assert_snapshot!(format!("{name}.terminal"), terminal::render(&summary, TerminalOptions::default()));
        insta::assert_snapshot!(format!("{name}.full"), terminal::render(&summary, FULL));
    }
}

#[test]
fn what_comes_first_fits_a_screen() {
    for (name, mut summary) in summaries() {
        let long = "記憶 a name as long as nobody would type it, and then some more of it to be sure".to_owned();
        for more in 0..40 {
            let page = terminal::render(&summary, TerminalOptions::default());
            assert!(page.lines().count() <= 24, "{name} with {more} more of everything:\n{page}");
            let widest = page.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or_default();
            assert!(widest <= 80, "{name}: {widest} columns:\n{page}");
            for words in [summary.run.verdict.name(), "--full", "95 % interval", "coverage", "Controls"] {
                assert!(page.contains(words), "{name}: '{words}' is missing:\n{page}");
            }
            summary.run.name = Some(long.clone());
            summary.labels.push(long.clone());
            summary.run.reasons.push(format!("{more}: {long}"));
            summary.warnings.push(long.clone());
            summary.dataset.notes.push(long.clone());
            let category = summary.scores[0].by_category[0].clone();
            summary.scores[0].by_category.push(category);
        }
    }
}

#[test]
fn colour_only_adds_colour() {
    for (name, summary) in summaries() {
        let plain = terminal::render(&summary, FULL);
        assert!(!plain.contains('\u{1b}'), "{name} without colour");
        let mut coloured =
            terminal::render(&summary, TerminalOptions { view: View { colour: true, width: None }, ..FULL });
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
        let views = [crate::markdown::render(&summary).expect("renders"), terminal::render(&summary, FULL)];
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
fn what_was_chosen_of_a_systems_settings_is_in_every_full_view() {
    let (_, mut summary) = summaries().into_iter().next().expect("there are some");
    let views = |summary: &Summary| {
        let page = Page::new(summary, &[]);
        let html = crate::html::render(&page).expect("renders");
        [crate::markdown::render(summary).expect("renders"), terminal::render(summary, FULL), html]
    };
    assert!(views(&summary)[..2].iter().all(|view| !view.contains("Settings of the system")), "there were none");
    let mine = serde_json::json!({ "name": "bm25", "settings": { "k1": { "about": "a" }, "deep": { "about": "b" } } });
    summary.spec.system_settings.insert("adapter".to_owned(), mine);
    for view in views(&summary) {
        assert!(view.contains("all as they are by default"), "{view}");
    }
    for (name, value) in [("bm25.k1", serde_json::json!(0.7)), ("system.mode", "consolidated".into())] {
        summary.spec.system_settings.insert(name.to_owned(), value);
    }
    for view in views(&summary) {
        let words = "bm25.k1 = 0.7, system.mode = consolidated, all others as they are by default";
        assert!(view.contains(words), "'{words}' is missing:\n{view}");
    }
}

#[test]
fn absurd_counts_of_a_report_break_no_view() {
    let most = u64::MAX;
    let all = PassCount { passed: most, failed: most };
    for (_, mut summary) in summaries() {
        summary.outcomes =
            Outcomes { scored: most, abstained: most, infra_error: most, not_run: most, sample: most, coverage: None };
        (summary.headline.n, summary.headline.without_figure) = (most, most);
        let lost = &mut summary.failure_attribution;
        (lost.evidence_missing, lost.evidence_partial, lost.evidence_found) = (most, most, most);
        (lost.recall_failed, lost.not_retained, lost.judge_in_doubt, lost.no_ground_truth) = (most, most, most, most);
        summary.recall_answer =
            RecallAnswer { evidence_found: all, evidence_partial: all, evidence_missing: all, no_ground_truth: all };
        let evidence = StoredEvidence { stored: most, missing: most, ..StoredEvidence::default() };
        let stored = StoredSummary { banks: most, failed: most, cut: most, evidence, ..StoredSummary::default() };
        summary.stored = Some(stored);
        if let Some(probe) = &mut summary.latency_probe {
            (probe.n, probe.failed) = (most, most);
        }
        for format in FORMATS {
            assert!(!format.render(&Page::new(&summary, &[])).expect("renders").is_empty(), "{}", format.name);
        }
        assert!(terminal::render(&summary, FULL).contains("18,446,744,073,709,551,615"), "is told as it was said");
    }
}

#[test]
fn of_answers_from_elsewhere_no_view_says_what_nobody_knows() {
    for (_, mut summary) in summaries() {
        summary.spec.system_version = "imported".to_owned();
        (summary.spec.answerer, summary.spec.judge, summary.spec.scenario) =
            ("none".to_owned(), None, Scenario::default());
        summary.spec.judges.clear();
        summary.spec.scorers.clear();
        summary.headline.metric = "theirs".to_owned();
        summary.retrieval.turn.clear();
        summary.retrieval.session.clear();
        summary.failure_attribution = FailureAttribution { no_ground_truth: 383, ..FailureAttribution::default() };
        let unknown = PassCount { passed: 1_157, failed: 383 };
        summary.recall_answer = RecallAnswer { no_ground_truth: unknown, ..RecallAnswer::default() };
        for format in FORMATS {
            let view = format.render(&Page::new(&summary, &[])).expect("renders");
            assert!(!view.contains("name no evidence") && !view.contains("no evidence named"), "{}", format.name);
        }
        let full = terminal::render(&summary, FULL);
        assert!(full.contains("top-k not said") && full.contains("the grades were brought"), "{full}");
        assert!(full.contains("answerer not said") && !full.contains("name no evidence"), "{full}");
        let brief = terminal::render(&summary, TerminalOptions::default());
        assert!(!brief.contains("that did not pass") && brief.contains("those that were brought"), "{brief}");
    }
}

#[test]
fn notes_of_the_dataset_are_in_every_view() {
    for (name, mut summary) in summaries() {
        summary.dataset.notes = (1..=5).map(|n| format!("q{n}: date '2026-13-45' cannot be read")).collect();
        let page = Page::new(&summary, &[]);
        let in_full =
            [crate::markdown::render(&summary).expect("renders"), crate::html::render(&page).expect("renders")];
        for view in in_full {
            assert_eq!(view.matches("2026-13-45").count(), 5, "{name}");
        }
        let brief = terminal::render(&summary, TerminalOptions::default());
        assert!(brief.contains("more in the full report"), "{name}: {brief}");
    }
}

#[test]
fn what_a_question_was_told_is_in_every_view_that_counts_errors() {
    let [.., (_, mut summary)] = summaries();
    let code = summary.errors.keys().next().expect("some failed").clone();
    let said = "recall: mine says: KeyError: the index was never opened";
    summary.error_examples = BTreeMap::from([(code, said.to_owned())]);
    let page = Page::new(&summary, &[]);
    for format in FORMATS.iter().filter(|format| ["json", "md", "html", "junit"].contains(&format.name)) {
        let view = format.render(&page).expect("renders");
        assert!(view.contains(said), "{}: {view}", format.name);
    }
    assert!(terminal::render(&summary, FULL).contains(said));
    assert!(terminal::render(&summary, TerminalOptions::default()).contains("KeyError"));
}

#[test]
fn words_are_explained_where_they_stand() {
    for (name, mut summary) in summaries() {
        let page = Page::new(&summary, &[]);
        let html = crate::html::render(&page).expect("renders");
        let views =
            [crate::markdown::render(&summary).expect("renders"), terminal::render(&summary, FULL), html.clone()];
        let explained = [
            words::BANK,
            words::LIKE_THESE,
            words::THIS_BENCHMARK,
            words::strict(Better::Higher),
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
        for better in [Better::Higher, Better::Lower] {
            summary.scores[0].better = better;
            let brief = terminal::render(&summary, TerminalOptions::default());
            let words = words::on_one_line(better, brief.contains(" · recall "));
            assert!(brief.contains(&words), "{name}: '{words}' is missing:\n{brief}");
        }
        assert!(html.contains("\">for conversations like these</span>"), "{name}: what the headline is about");
        assert!(html.contains("\">of it recall</span>"), "{name}: the phases of a question");
    }
}

/// The fair sample of a dataset with two facets.
fn faceted() -> Summary {
    let [_, (_, mut summary), _] = summaries();
    let score = |n, value: f64, clusters: u64| FacetScore {
        n,
        value: Some(value),
        clusters,
        ci95: (clusters > 2).then(|| Interval {
            low: value - 0.1,
            high: value + 0.1,
            method: "cluster-robust t".into(),
        }),
        ci95_note: (clusters < 3).then(|| format!("needs at least 3 banks, has {clusters}")),
        naive_ci95: Some(Interval { low: value - 0.05, high: value + 0.05, method: "Wilson".into() }),
    };
    let named = |values: [(&str, FacetScore); 3]| -> BTreeMap<String, FacetScore> {
        values.into_iter().map(|(name, score)| (name.to_owned(), score)).collect()
    };
    summary.scores[0].by_facet = BTreeMap::from([
        (
            "context".to_owned(),
            named([("128000", score(80, 0.4, 10)), ("32000", score(100, 0.625, 10)), ("1000000", score(20, 0.25, 2))]),
        ),
        (
            "person".to_owned(),
            named([
                ("Ann | Bo", score(100, 0.5, 9)),
                ("\u{202e}=cmd", score(90, 0.5, 9)),
                ("(other)", score(10, 0.1, 4)),
            ]),
        ),
    ]);
    summary
}

#[test]
fn facets_are_a_section_of_every_view_and_rows_of_the_table() {
    let summary = faceted();
    let markdown = crate::markdown::render(&summary).expect("renders");
    let section = |text: &str| {
        let from = text.find("Facets").expect("a section");
        let end = text[from..].find("Plain means over the questions").expect("is explained");
        text[from..from + end].to_owned()
    };
    insta::assert_snapshot!(section(&markdown), @r"
    Facets: locomo-f1

    | Facet | Value | Score | 95 % | Naive 95 % | n | Banks | Note |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |
    | context | 32000 | 62.50 % | 52.5 to 72.5 | 57.5 to 67.5 | 100 | 10 |  |
    | context | 128000 | 40.00 % | 30.0 to 50.0 | 35.0 to 45.0 | 80 | 10 |  |
    | context | 1000000 | 25.00 % | – | 20.0 to 30.0 | 20 | 2 | needs at least 3 banks, has 2 |
    | person | Ann \| Bo | 50.00 % | 40.0 to 60.0 | 45.0 to 55.0 | 100 | 9 |  |
    | person | =cmd | 50.00 % | 40.0 to 60.0 | 45.0 to 55.0 | 90 | 9 |  |
    | person | (other) | 10.00 % | 0.0 to 20.0 | 5.0 to 15.0 | 10 | 4 |  |
    ");
    let terminal = terminal::render(&summary, FULL);
    let section = section(&terminal);
    let places: Vec<Option<usize>> =
        ["32000", "128000", "1000000", "Ann | Bo", "=cmd", "(other)"].iter().map(|value| section.find(value)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{section}");
    let html = crate::html::render(&Page::new(&summary, &[]));
    assert!(html.expect("renders").contains("Facets: "));
    let csv = crate::csv::render(&summary).expect("renders");
    let scopes: Vec<&str> =
        csv.lines().filter_map(|line| line.split(',').nth(7)).filter(|s| s.starts_with("facet:")).collect();
    assert_eq!(scopes.len(), 6, "{scopes:?}");
    assert!(scopes.contains(&"facet:context=32000") && scopes.contains(&"facet:person= =cmd"), "{scopes:?}");
}

#[test]
fn where_lower_is_better_every_view_says_so() {
    let mut summary = faceted();
    summary.scores[0].better = Better::Lower;
    summary.scores[0].pass_threshold = 0.25;
    let terminal = terminal::render(&summary, FULL);
    for words in
        ["(lower is better)", "(≤ 0.25)", "count as 1", "Highest scores (lower is better)", "that did not pass"]
    {
        assert!(terminal.contains(words), "'{words}' is missing:\n{terminal}");
    }
    for words in ["count as 0", "Lowest scores", "below the pass threshold"] {
        assert!(!terminal.contains(words), "'{words}' is not true:\n{terminal}");
    }
    let html = crate::html::render(&Page::new(&summary, &[]));
    let html = html.expect("renders");
    assert!(html.contains("\"pass\":0.25,\"lower\":true") && html.contains("(lower is better)"));
}

#[test]
fn names_are_unique_and_found() {
    for format in FORMATS {
        assert_eq!(format_named(format.name).map(|found| found.file_name), Some(format.file_name));
    }
    assert!(format_named("pdf").is_none());
}

#[test]
fn what_grades_is_said_where_no_model_judges() {
    let brief = |change: fn(&mut Summary)| {
        let [_, (_, mut summary), _] = summaries();
        summary.spec.judges.clear();
        change(&mut summary);
        terminal::render(&summary, TerminalOptions::default())
    };
    for (page, words) in [
        (brief(|_| ()), "no judge: answers are scored by the dataset's own rules"),
        (brief(|summary| summary.spec.scenario = Scenario::RetrieveOnly), "no answers: recalls are scored"),
        (
            brief(|summary| summary.headline.metric = "imported".to_owned()),
            "no judge of ours: the grades are those that were brought",
        ),
    ] {
        assert!(page.contains(words), "{page}");
    }
}
