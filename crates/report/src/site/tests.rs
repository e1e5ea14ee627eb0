use bench_proto::{
    comparison::Word,
    metric::Better,
    started_again::ENDED_WITH,
    summary::{Interval, StoredSummary, Verdict},
};

use super::{Board, BoardPair, BoardRow, Mark, Site, SiteDataset, Unranked, dataset, index, names, run};
use crate::{golden, published::PublishedRow};

const NASTY: &str = "</td><script>alert(1)</script>\u{202e}\"'";

fn interval(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high, method: "t".to_owned() })
}

fn row(system: &str, rank: Option<usize>, score: f64) -> BoardRow {
    BoardRow {
        rank,
        run: format!("run-{system}"),
        page: names::of_run(&format!("run-{system}")),
        archived_as: format!("runs/2026-11-20/locomo/v1/run-{system}"),
        system: system.to_owned(),
        variant: None,
        system_version: "1".to_owned(),
        score: Some(score),
        ci95: interval(score - 0.05, score + 0.05),
        counted_value: None,
        questions: 1_986,
        usd: 0.25,
        usd_incomplete: false,
        probe_p50_ms: Some(3.2),
        probe_note: None,
        finished_at: Some("2026-11-20T10:00:00Z".to_owned()),
        verdict: Verdict::Valid,
        result_digest: "0123456789abcdef0123".to_owned(),
        unranked: None,
        not_told_apart: Vec::new(),
        same_settings: None,
    }
}

fn unverified(why: &str) -> Option<Unranked> {
    Some(Unranked { mark: Mark::Unverified, why: why.to_owned() })
}

fn pair(a: &str, b: &str, verdict: Word, ranked: bool) -> BoardPair {
    let (a, b) = (format!("run-{a}"), format!("run-{b}"));
    BoardPair {
        page: names::of_pair(&a, &b),
        a,
        b,
        difference: Some(0.1),
        ci95: interval(0.04, 0.16),
        p_holm: ranked.then_some(0.012),
        verdict,
        ranked,
        reasons: Vec::new(),
    }
}

/// Two that are not told apart, one that is from both, and one that nobody has checked.
fn locomo() -> SiteDataset {
    let mut rows = vec![row("bm25", Some(1), 0.62), row("hybrid", Some(1), 0.61), row("random", Some(3), 0.32)];
    rows[0].not_told_apart = vec!["run-hybrid".to_owned()];
    rows[1].not_told_apart = vec!["run-bm25".to_owned()];
    rows[1].variant = Some("k1=0.9".to_owned());
    // of another rank, and not told apart from the one before it
    rows[1].not_told_apart.push("run-random".to_owned());
    rows[2].not_told_apart = vec!["run-hybrid".to_owned()];
    rows[2].probe_note = Some("machine a and b".to_owned());
    rows.push(BoardRow { unranked: unverified("answers were made elsewhere"), ..row("theirs", None, 0.9) });
    let table = Board {
        preset: "full".to_owned(),
        questions: 1_986,
        answerer: Some("extractive".to_owned()),
        judges: Vec::new(),
        grades_brought: false,
        counted_as: None,
        top_k: Some(10),
        metric: "locomo-f1".to_owned(),
        better: Better::Higher,
        differs_in: Vec::new(),
        rows,
        pairs: vec![
            pair("hybrid", "bm25", Word::Inconclusive, true),
            pair("random", "bm25", Word::Better, true),
            pair("random", "hybrid", Word::Inconclusive, true),
            pair("theirs", "bm25", Word::Worse, false),
        ],
    };
    SiteDataset {
        name: "locomo".to_owned(),
        page: names::of_dataset("locomo"),
        archived_runs: 7,
        tables: vec![table],
        published: vec![PublishedRow {
            is_this_run: false,
            system: "a paper's".to_owned(),
            part: None,
            score: 0.8,
            metric: None,
            counted_as: None,
            ci95: None,
            questions: Some(1_540),
            answerer: None,
            judge: Some("gpt-4o-mini".to_owned()),
            k: None,
            runs: Some(10),
            votes: None,
            rubric: Some("generous".to_owned()),
            note: Some("10 runs, standard deviation 0.33 points".to_owned()),
            source: "a paper".to_owned(),
            differs_in: vec!["judge".to_owned(), "k not said".to_owned()],
        }],
    }
}

/// The page from its heading to its foot, without the style that all pages share.
fn body(html: &str) -> &str {
    html.split_once("<body>").expect("has a body").1
}

#[test]
fn a_leaderboard_has_ties_marks_and_links() {
    insta::assert_snapshot!("site_dataset", body(&dataset(&locomo()).expect("renders")));
}

#[test]
fn a_leaderboard_of_answers_from_elsewhere_does_not_say_who_answered_and_graded() {
    let mut of = locomo();
    let table = &mut of.tables[0];
    (table.answerer, table.top_k, table.grades_brought) = (None, None, true);
    let page = dataset(&of).expect("renders");
    let said =
        "who answered is not said, graded elsewhere: the grades were brought, how many hits were asked for is not said";
    assert!(page.contains(said), "{page}");
}

#[test]
fn a_leaderboard_of_others_counting_has_their_figures_beside_ours() {
    let mut of = locomo();
    let table = &mut of.tables[0];
    table.counted_as = Some("mem0-2025".to_owned());
    table.rows[0].counted_value = Some(0.875);
    let html = dataset(&of).expect("renders");
    let said =
        "counted as mem0-2025: that figure stands in a column of its own; scores, ranks and pairs are by our own rules";
    assert!(html.contains(said), "{html}");
    let told = r#"<td class="right">62.00 %</td><td class="right">57.0 to 67.0</td><td class="right">87.50 %</td>"#;
    assert!(html.contains(">As mem0-2025</th>") && html.contains(told), "{html}");
}

#[test]
fn the_index_names_who_leads_and_what_is_newest() {
    let mut locomo = locomo();
    locomo.tables[0].rows[3].finished_at = Some("2026-11-21T00:00:00Z".to_owned());
    let site = Site::new(vec![locomo], vec!["run x is left out: it is damaged".to_owned()]);
    insta::assert_snapshot!("site_index", body(&index(&site).expect("renders")));
}

#[test]
fn nothing_of_others_is_markup_and_no_page_needs_anything_else() {
    let mut nasty = locomo();
    nasty.name = NASTY.to_owned();
    let table = &mut nasty.tables[0];
    (table.preset, table.answerer, table.metric) = (NASTY.to_owned(), Some(NASTY.to_owned()), NASTY.to_owned());
    table.judges = vec![NASTY.to_owned()];
    for row in &mut table.rows {
        (row.system, row.system_version, row.variant) = (NASTY.to_owned(), NASTY.to_owned(), Some(NASTY.to_owned()));
        (row.probe_note, row.result_digest) = (Some(NASTY.to_owned()), NASTY.to_owned());
    }
    table.rows[3].unranked = unverified(NASTY);
    nasty.published[0].source = NASTY.to_owned();
    let mut summary = golden::report();
    summary.run.name = Some(NASTY.to_owned());
    summary.spec.system = NASTY.to_owned();
    let of_run = run(&summary, &nasty, &nasty.tables[0].rows[3]).expect("renders");
    let site = Site::new(vec![nasty.clone()], vec![NASTY.to_owned()]);
    for html in [dataset(&nasty).expect("renders"), index(&site).expect("renders"), of_run] {
        for wrong in ["<script", "\u{202e}", "src=", "http-equiv=\"refresh", "@import"] {
            assert!(!html.contains(wrong), "{wrong} in {html}");
        }
        assert!(html.contains("default-src 'none'") && html.contains("alert(1)"), "{html}");
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(!link.contains(':') && !link.starts_with('/'), "{link} leads elsewhere");
        }
    }
}

#[test]
fn the_page_of_a_run_says_no_question_and_no_answer() {
    let summary = golden::report();
    let texts: Vec<&String> = summary.worst.iter().flat_map(|worst| [&worst.gold, &worst.answer]).flatten().collect();
    assert!(texts.iter().any(|text| text.len() > 3), "the golden report has texts that could be shown");
    let of = locomo();
    let html = run(&summary, &of, &of.tables[0].rows[3]).expect("renders");
    for text in texts.iter().filter(|text| text.len() > 3) {
        assert!(!html.contains(text.as_str()), "{text} stands on the page");
    }
    assert!(html.contains("unverified: answers were made elsewhere"), "{html}");
    assert!(html.contains(&summary.result_digest) && html.contains("<svg"), "figures and plots do");
}

#[test]
fn the_page_of_a_run_says_nothing_that_may_quote_a_text() {
    const SECRET: &str = "The ferry to Kinsale leaves at nine";
    let mut summary = golden::report();
    summary.dataset.notes = vec![SECRET.to_owned()];
    summary.stored = Some(StoredSummary {
        unsaid_examples: vec![SECRET.to_owned()],
        failure: Some(SECRET.to_owned()),
        ..StoredSummary::default()
    });
    summary.warnings = vec![format!("a process was started again{ENDED_WITH}KeyError: {SECRET}")];
    if let Some(probe) = &mut summary.latency_probe {
        probe.failure = Some(format!("timeout: {SECRET}"));
    }
    let of = locomo();
    let html = run(&summary, &of, &of.tables[0].rows[0]).expect("renders");
    assert!(!html.contains("Kinsale") && html.contains("a process was started again"), "{html}");
}
