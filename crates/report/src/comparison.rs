//! Two runs side by side, for a terminal and for pull requests; several runs as a table of all pairs, and of their costs.

mod fronts;

use bench_proto::{
    comparison::{ComparedRun, Comparison, Flip, PairedDifference, Word},
    ids::short_id,
    summary::{JudgementLine, LatencyProbe, MemoryCost, Percentiles},
    text,
};

use crate::{
    blocks::{Block, heading, table},
    figures::{
        NONE, count, counted, in_order, interval, ms, one_line, p_value, percent, percent_or_none, points,
        points_interval, usd,
    },
    markdown,
    terminal::{self, View},
    words,
};

pub use self::fronts::{Front, fronts};

/// Flips shown to people; the JSON has more.
const FLIPS_SHOWN: usize = 10;
/// Longest piece of a text that is shown.
const TEXT_WIDTH: usize = 70;

/// A comparison for a terminal.
#[must_use]
pub fn terminal(comparison: &Comparison, view: View) -> String {
    terminal::render_blocks(&document(comparison), view)
}

/// A comparison as Markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    markdown::render_blocks(&document(comparison))
}

/// All pairs of several runs for a terminal.
#[must_use]
pub fn pairs_terminal(pairs: &[Comparison], front: Front, view: View) -> String {
    terminal::render_blocks(&pairs_document(pairs, front), view)
}

/// All pairs of several runs as Markdown.
#[must_use]
pub fn pairs_markdown(pairs: &[Comparison], front: Front) -> String {
    markdown::render_blocks(&pairs_document(pairs, front))
}

/// A run by its id, or by its name and the end of its id, which is accepted in its place.
pub(crate) fn name_of(run: &ComparedRun) -> String {
    let short = short_id(&run.id);
    run.name.as_deref().map_or_else(|| run.id.clone(), |name| format!("{} ({short})", one_line(name, 40)))
}

/// A run in a few words that are no other run's: what of its id tells it from others, behind its name where it has one.
pub(crate) fn told_name(run: &ComparedRun) -> String {
    if run.name.is_some() { name_of(run) } else { run.called().to_owned() }
}

fn verdict_line(comparison: &Comparison) -> String {
    format!("{}: {}", comparison.word(), claim(comparison))
}

/// What a run's comparison with its baseline comes to, in a line for a screen.
#[must_use]
pub fn in_a_line(comparison: &Comparison) -> String {
    let against = told_name(&comparison.a);
    let against = text::one_line(&against);
    match comparison.comparable {
        true => format!("against {against}: {}", verdict_line(comparison)),
        false => format!("against {against}: NOT COMPARABLE: {}", text::one_line(&comparison.reasons.join("; "))),
    }
}

/// The difference with its interval, and on how much it rests.
pub(crate) fn claim(comparison: &Comparison) -> String {
    let paired = &comparison.paired;
    format!(
        "{} points, 95 % interval {}, {} in {}",
        points(paired.difference),
        points_interval(paired.ci95.as_ref()),
        counted(paired.n, "shared question"),
        counted(paired.clusters, "bank"),
    )
}

pub(crate) fn document(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = figures(comparison);
    blocks.extend(flips(comparison));
    blocks.extend(differences(comparison));
    blocks
}

/// The same for who shows the flips in another way.
pub(crate) fn without_flips(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = figures(comparison);
    blocks.extend(differences(comparison));
    blocks
}

fn figures(comparison: &Comparison) -> Vec<Block> {
    let (a, b) = (&comparison.a, &comparison.b);
    let mut blocks =
        vec![Block::Title(format!("{} against {}", name_of(b), name_of(a))), Block::Headline(verdict_line(comparison))];
    if !comparison.comparable {
        blocks.push(Block::Labels(vec!["NOT COMPARABLE".to_owned()]));
        blocks.push(Block::List(comparison.reasons.clone()));
    }
    let mut notes: Vec<String> = std::iter::once(words::BANK.to_owned()).chain(comparison.notes.clone()).collect();
    notes.extend(comparison.equal.then(|| words::EQUAL_RUNS.to_owned()));
    let rest = &comparison.unpaired;
    if rest.only_a + rest.only_b + rest.neither > 0 {
        notes.push(format!(
            "left out: {} scored by the first run only, {} by the second only, {} by neither",
            count(rest.only_a),
            count(rest.only_b),
            count(rest.neither)
        ));
    }
    blocks.push(Block::List(notes));
    blocks.extend(checks(comparison));
    blocks.extend(categories(comparison));
    blocks.extend(facets(comparison));
    blocks.extend(side_by_side(comparison));
    blocks
}

fn checks(comparison: &Comparison) -> Vec<Block> {
    let (paired, mcnemar) = (&comparison.paired, &comparison.mcnemar);
    let row = |name: &str, value: String, how: String| vec![name.to_owned(), value, how];
    let note = |interval: Option<&bench_proto::summary::Interval>, note: &Option<String>| {
        let method = interval.map(|interval| interval.method.clone());
        method.into_iter().chain(note.clone()).collect::<Vec<_>>().join("; ")
    };
    let decides = format!(
        "{}; decides, tolerance {:.1} points",
        note(paired.ci95.as_ref(), &paired.ci95_note),
        paired.tolerance * 100.0
    );
    let rows = vec![
        row("First", percent_or_none(paired.a), format!("{} on the shared questions", paired.estimator.name())),
        row("Second", percent_or_none(paired.b), format!("{} on the shared questions", paired.estimator.name())),
        row(
            "Difference",
            points(paired.difference),
            format!("points, second minus first{}", words::direction(comparison.better)),
        ),
        row("95 %", points_interval(paired.ci95.as_ref()), decides),
        row(
            "p",
            p_value(paired.p_value),
            "two-sided, the largest of both t tests' and of what so many equal pairs leave open".to_owned(),
        ),
        row(
            "Check: bootstrap",
            points_interval(comparison.bootstrap_ci95.as_ref()),
            note(comparison.bootstrap_ci95.as_ref(), &comparison.bootstrap_note),
        ),
        row(
            "Check: McNemar",
            p_value(Some(mcnemar.p_value)),
            format!(
                "exact, ignores banks: {} lost, {} won, pass {}",
                count(mcnemar.only_a),
                count(mcnemar.only_b),
                words::passing_from(comparison.scale())
            ),
        ),
        row("Naive 95 %", points_interval(paired.naive_ci95.as_ref()), "questions taken as independent".to_owned()),
        row(
            "Detectable",
            paired.mde.map_or_else(|| NONE.to_owned(), |mde| format!("{:.2}", mde * 100.0)),
            "points that these questions find with 80 % power".to_owned(),
        ),
    ];
    vec![heading(format!("Difference: {}", comparison.metric)), table(&["", ">Value", "How"], rows)]
}

fn paired_row(name: String, paired: &PairedDifference, p: Option<f64>) -> Vec<String> {
    vec![
        name,
        percent_or_none(paired.a),
        percent_or_none(paired.b),
        points(paired.difference),
        points_interval(paired.ci95.as_ref()),
        p_value(p),
        count(paired.n),
        count(paired.clusters),
        paired.verdict.name().to_owned(),
    ]
}

fn categories(comparison: &Comparison) -> Vec<Block> {
    let of_category = comparison
        .by_category
        .iter()
        .map(|category| paired_row(category.category.clone(), &category.paired, category.paired.p_holm));
    let of_retrieval = comparison.retrieval.iter().map(|level| {
        paired_row(format!("{} {}@{}", level.level, level.metric, level.k), &level.paired, level.paired.p_value)
    });
    let columns = ["", ">First", ">Second", ">Points", ">95 %", ">p (Holm)", ">n", ">Banks", "Verdict"];
    let mut blocks = Vec::new();
    let rows: Vec<_> = of_category.collect();
    if !rows.is_empty() {
        blocks.extend([heading("Categories"), table(&columns, rows)]);
    }
    let rows: Vec<_> = of_retrieval.collect();
    if !rows.is_empty() {
        let columns = ["", ">First", ">Second", ">Points", ">95 %", ">p", ">n", ">Banks", "Verdict"];
        blocks.extend([heading("Retrieval"), table(&columns, rows)]);
    }
    blocks
}

/// The facets that both runs have.
fn facets(comparison: &Comparison) -> Vec<Block> {
    let rows: Vec<_> = comparison
        .by_facet
        .iter()
        .flat_map(|(facet, values)| in_order(values).into_iter().map(move |(value, paired)| (facet, value, paired)))
        .map(|(facet, value, paired)| {
            paired_row(one_line(&format!("{facet}={value}"), TEXT_WIDTH), paired, paired.p_holm)
        })
        .collect();
    let columns = ["", ">First", ">Second", ">Points", ">95 %", ">p (Holm)", ">n", ">Banks", "Verdict"];
    if rows.is_empty() { Vec::new() } else { vec![heading("Facets"), table(&columns, rows)] }
}

fn side_by_side(comparison: &Comparison) -> Vec<Block> {
    let (a, b) = (&comparison.a, &comparison.b);
    let mut rows = vec![
        vec!["Verdict of the run".to_owned(), a.verdict.name().to_owned(), b.verdict.name().to_owned()],
        vec![
            format!("{}, all its questions", comparison.metric),
            format!("{} ({})", percent_or_none(a.value), interval(a.ci95.as_ref())),
            format!("{} ({})", percent_or_none(b.value), interval(b.ci95.as_ref())),
        ],
        vec!["Coverage".to_owned(), percent_or_none(a.coverage), percent_or_none(b.coverage)],
    ];
    if !(a.judged_by().is_empty() && b.judged_by().is_empty()) {
        let judges = |run: &ComparedRun| match run.judged_by() {
            [] => NONE.to_owned(),
            judges => judges.join(", "),
        };
        rows.push(vec!["Judged by".to_owned(), judges(a), judges(b)]);
    }
    let p = |p: &Option<Percentiles>| {
        p.as_ref().map_or_else(|| NONE.to_owned(), |p| format!("{} / {} / {}", ms(p.p50), ms(p.p95), ms(p.p99)))
    };
    rows.extend(probes(comparison));
    let (la, lb) = (&a.latency_ms, &b.latency_ms);
    let phases = [
        ("retain", &la.retain, &lb.retain),
        ("recall", &la.recall, &lb.recall),
        ("answer", &la.answer, &lb.answer),
        ("judge", &la.judge, &lb.judge),
        ("question", &la.question, &lb.question),
        ("rate-limit wait", &la.rate_wait, &lb.rate_wait),
    ];
    for (phase, x, y) in phases {
        if x.is_some() || y.is_some() {
            rows.push(vec![format!("{phase} under load, not compared, p50 / p95 / p99 ms"), p(x), p(y)]);
        }
    }
    rows.extend(costs(a, b));
    let first = format!("First: {} {}", a.system, a.answerer);
    let second = format!("Second: {} {}", b.system, b.answerer);
    vec![heading("Side by side"), table(&["", &first, &second], rows), Block::Text(words::RETAIN_AND_RECALL.to_owned())]
}

/// Dollars by list price, and what was paid: replies that came from the call store were free, and tokens count those of paid ones alone.
/// A figure of one run is the same beside every other one: what is not known of it is said.
fn costs(a: &ComparedRun, b: &ComparedRun) -> Vec<Vec<String>> {
    let told = |run: &ComparedRun, figure: String| match run.usd_at_least() {
        None => NONE.to_owned(),
        Some(_) if run.usage.is_incomplete() => format!("{figure} and the system's own, unknown"),
        Some(_) => figure,
    };
    let list = |run: &ComparedRun| usd(run.usd_at_least().unwrap_or_default());
    let paid = |run: &ComparedRun| usd(run.usage.total.used.usd);
    let cost = |run: &ComparedRun| {
        let per_correct = run.usd_per_correct.map(|usd_each| format!(", {} per correct", usd(usd_each)));
        told(run, format!("{}{}", list(run), per_correct.unwrap_or_default()))
    };
    let mut rows = vec![vec!["Cost by list price".to_owned(), cost(a), cost(b)]];
    if [a, b].into_iter().any(|run| run.usd_at_least().is_some() && paid(run) != list(run)) {
        let name = "Paid, whatever became of it".to_owned();
        rows.push(vec![name, told(a, paid(a)), told(b, paid(b))]);
    }
    rows.extend(memory_costs(a, b));
    let tokens = |run: &ComparedRun| {
        let used = &run.usage.total.used;
        told(run, format!("{} / {}", count(used.prompt_tokens), count(used.completion_tokens)))
    };
    rows.push(vec!["Tokens paid for, in / out".to_owned(), tokens(a), tokens(b)]);
    rows
}

/// What the memory systems themselves spend, where one of the runs was metered or calls models.
fn memory_costs(a: &ComparedRun, b: &ComparedRun) -> Vec<Vec<String>> {
    let spends = |run: &ComparedRun| run.metered.is_some() || run.memory().is_some_and(|memory| memory.usd > 0.0);
    if !spends(a) && !spends(b) {
        return Vec::new();
    }
    let row = |name: &str, of: fn(&MemoryCost) -> Option<f64>| {
        let dollars = |run: &ComparedRun| run.memory().and_then(of).map_or_else(|| NONE.to_owned(), usd);
        vec![format!("The memory itself, {name}"), dollars(a), dollars(b)]
    };
    vec![
        row("in all", |cost| Some(cost.usd)),
        row("filling 1,000 turns", |cost| cost.usd_per_1000_turns),
        row("asking 1,000 questions", |cost| cost.usd_per_question.map(|each| 1000.0 * each)),
    ]
}

/// The latency probes of both runs, and what they say of each other (P43).
fn probes(comparison: &Comparison) -> Vec<Vec<String>> {
    let probe = |run: &ComparedRun| match &run.latency_probe {
        Some(LatencyProbe { p50_ms: Some(p50), p95_ms: Some(p95), p99_ms: Some(p99), .. }) => {
            format!("{} / {} / {}", ms(*p50), ms(*p95), ms(*p99))
        }
        _ => NONE.to_owned(),
    };
    let (a, b) = (probe(&comparison.a), probe(&comparison.b));
    let Some(latency) = &comparison.latency else { return Vec::new() };
    let said = match (latency.compared, latency.p50_ratio) {
        (true, Some(ratio)) => format!("median × {ratio:.2}"),
        (true, None) => NONE.to_owned(),
        (false, _) => format!("not compared: {}", latency.reason.as_deref().unwrap_or("nobody knows why")),
    };
    vec![
        vec!["latency probe p50 / p95 / p99 ms".to_owned(), a, b],
        vec!["latency, second against first".to_owned(), String::new(), said],
    ]
}

/// How many questions the second run lost and won against the first; none where nothing flipped.
pub(crate) fn lost_and_won(comparison: &Comparison) -> Option<(u64, u64)> {
    let counted_as = |name: &str| comparison.flip_counts.get(name).copied().unwrap_or(0);
    let (lost, won) = (counted_as("lost"), counted_as("won"));
    (lost + won > 0).then_some((lost, won))
}

fn flips(comparison: &Comparison) -> Vec<Block> {
    let Some((lost, won)) = lost_and_won(comparison) else { return Vec::new() };
    let row = |flip: &Flip| {
        let text = |text: &Option<String>| text.as_deref().map_or_else(|| NONE.to_owned(), |t| one_line(t, TEXT_WIDTH));
        let side = |side: &bench_proto::comparison::FlipSide| {
            let verdicts: Vec<&str> = JudgementLine::speaking(&side.judgements).map(|j| j.verdict.as_str()).collect();
            let judged = if verdicts.is_empty() { percent(side.score) } else { verdicts.join(", ") };
            format!("{} [{judged}]", text(&side.answer))
        };
        vec![
            flip.direction.clone(),
            flip.question_id.clone(),
            text(&flip.question),
            text(&flip.gold),
            side(&flip.a),
            side(&flip.b),
        ]
    };
    let of = |direction: &'static str| comparison.flips.iter().filter(move |flip| flip.direction == direction);
    let of_lost = FLIPS_SHOWN - (FLIPS_SHOWN / 2).min(of("won").count());
    let of_lost = of_lost.min(of("lost").count());
    let shown: Vec<_> = of("lost").take(of_lost).chain(of("won").take(FLIPS_SHOWN - of_lost)).map(row).collect();
    let mut blocks = vec![
        heading("Flips"),
        Block::Text(format!("{} lost, {} won; {} shown, --json lists more.", count(lost), count(won), shown.len())),
    ];
    if !shown.is_empty() {
        blocks.push(table(&["", "Question", "Text", "Gold", "First", "Second"], shown));
    }
    blocks
}

fn differences(comparison: &Comparison) -> Vec<Block> {
    if comparison.differences.is_empty() {
        return vec![Block::Text("The fingerprints are equal.".to_owned())];
    }
    let row = |d: &bench_proto::comparison::MarkedDifference| {
        let mark = if d.under_test { "under test" } else { "" };
        vec![d.key.clone(), one_line(&d.left, 40), one_line(&d.right, 40), mark.to_owned()]
    };
    let rows = comparison.differences.iter().map(row).collect();
    vec![heading("What differs"), table(&["Setting", "First", "Second", ""], rows)]
}

fn pairs_document(pairs: &[Comparison], front: Front) -> Vec<Block> {
    let row = |c: &Comparison| {
        vec![
            c.a.id.clone(),
            c.b.id.clone(),
            percent_or_none(c.paired.a),
            percent_or_none(c.paired.b),
            points(c.paired.difference),
            points_interval(c.paired.ci95.as_ref()),
            p_value(c.paired.p_holm),
            count(c.paired.n),
            if c.comparable { c.word().to_owned() } else { format!("{} (not comparable)", c.word()) },
        ]
    };
    let columns = ["First", "Second", ">First", ">Second", ">Points", ">95 %", ">p (Holm)", ">n", "Verdict"];
    let mut blocks = vec![
        Block::Title(format!("All pairs: {}", pairs.first().map_or("", |c| c.metric.as_str()))),
        table(&columns, pairs.iter().map(row).collect()),
    ];
    let mut reasons: Vec<String> = pairs
        .iter()
        .flat_map(|c| c.reasons.iter().map(|reason| format!("{} and {}: {reason}", c.a.id, c.b.id)))
        .collect();
    reasons.dedup();
    if !reasons.is_empty() {
        blocks.push(Block::List(reasons));
    }
    let worse = pairs.iter().filter(|c| c.verdict == Word::Worse).count() as u64;
    blocks.push(Block::Text(format!("{} of {} are worse.", count(worse), counted(pairs.len() as u64, "pair"))));
    blocks.extend(fronts::runs(pairs, front));
    blocks
}

#[cfg(test)]
pub(crate) mod tests {
    use bench_proto::{
        call::Phase,
        summary::{Booked, UsageFigures, UsageSummary, UsageTotal, Verdict},
    };
    use serde_json::json;

    use super::*;

    /// A comparison with one flip.
    pub(crate) fn comparison(question_id: &str) -> Comparison {
        let summary: serde_json::Value =
            serde_json::from_str(include_str!("../testdata/fair.json")).expect("a summary");
        let run = |id: &str| {
            json!({"id": id, "name": null, "system": "bm25", "answerer": "extractive", "judge": null, "preset": "fair",
                   "fingerprint": "f", "verdict": "VALID", "reasons": [], "value": 0.5, "ci95": null, "n": 2, "coverage": 1.0,
                   "result_digest": "d", "retrieval": summary["retrieval"], "latency_ms": summary["latency_ms"],
                   "usage": summary["usage"], "usd_per_correct": null})
        };
        let paired = json!({"n": 2, "clusters": 1, "a": 0.5, "b": 0.0, "difference": -0.5, "estimator": "mean", "ci95": null,
                            "ci95_note": null, "naive_ci95": null, "p_value": null, "p_holm": null, "mde": null,
                            "tolerance": 0.02, "verdict": "INCONCLUSIVE"});
        let side = json!({"score": 0.0, "answer": null, "judgements": []});
        let flip = json!({"question_id": question_id, "bank_id": "b", "category": "temporal", "direction": "lost",
                          "question": null, "gold": null, "a": side, "b": side});
        let mcnemar = json!({"pass_threshold": 0.5, "both": 0, "only_a": 1, "only_b": 0, "neither": 1, "p_value": 1.0});
        let all = json!({
            "schema_version": 1, "a": run("before"), "b": run("after"), "comparable": true, "reasons": [], "notes": [],
            "under_test": null, "differences": [], "independent": true, "metric": "locomo-f1", "verdict": "INCONCLUSIVE",
            "paired": paired, "bootstrap_ci95": null, "bootstrap_note": null, "mcnemar": mcnemar, "by_category": [],
            "unpaired": {"only_a": 0, "only_b": 0, "neither": 0}, "retrieval": [], "flip_counts": {"lost": 3},
            "flips": [flip],
        });
        serde_json::from_value(all).expect("a comparison")
    }

    pub(super) fn run(usd_list: f64, used: UsageFigures) -> ComparedRun {
        let text = |text: &str| text.to_owned();
        ComparedRun {
            id: text("a"),
            name: None,
            system: text("bm25"),
            answerer: text("openai:m"),
            judge: None,
            judges: Vec::new(),
            preset: text("fair"),
            fingerprint: text("f"),
            verdict: Verdict::Valid,
            reasons: vec![],
            value: Some(0.5),
            ci95: None,
            n: 10,
            coverage: Some(1.0),
            result_digest: text("d"),
            retrieval: Default::default(),
            latency_ms: Default::default(),
            latency_probe: None,
            usage: UsageSummary {
                total: UsageTotal { used, usd_list, ..UsageTotal::default() },
                ..UsageSummary::default()
            },
            usd_per_correct: None,
            metered: None,
        }
    }

    fn figures(prompt_tokens: u64, usd: f64) -> UsageFigures {
        UsageFigures { prompt_tokens, usd, ..UsageFigures::default() }
    }

    #[test]
    fn a_line_says_what_a_comparison_comes_to() {
        let mut pair = comparison("q1");
        let told = "against before: INCONCLUSIVE: -50.00 points, 95 % interval –, 2 shared questions in 1 bank";
        assert_eq!(in_a_line(&pair), told);
        (pair.comparable, pair.reasons) = (false, vec!["other questions".to_owned()]);
        pair.a.name = Some("nightly\u{1b}[2J".to_owned());
        assert_eq!(in_a_line(&pair), "against nightly [2J (before): NOT COMPARABLE: other questions");
    }

    #[test]
    fn runs_that_are_called_the_same_are_told_apart_by_the_plot_and_in_a_line() {
        let pair = |a: u32, b: u32| {
            let mut pair = comparison("q1");
            for (run, number) in [(&mut pair.a, a), (&mut pair.b, b)] {
                run.id = format!("01a228da-aaaa-7bbb-8ccc-00000000000{number}");
                run.name = Some(if number == 4 { "mine" } else { "nightly" }.to_owned());
            }
            pair
        };
        let plot = crate::svg::forest(&[pair(1, 2), pair(1, 4), pair(2, 4)]);
        for row in [
            "nightly 000000000002 − nightly 000000000001",
            "mine − nightly 000000000001",
            "mine − nightly 000000000002",
        ] {
            assert!(plot.contains(&format!(">{row}</text>")), "{row}: {plot}");
        }
        let line = in_a_line(&pair(1, 2));
        assert!(line.starts_with("against nightly (000000000001): "), "{line}");
    }

    #[test]
    fn every_judge_of_a_panel_is_named_and_the_one_of_an_earlier_build() {
        let mut pair = comparison("q1");
        assert!(!crate::comparison::terminal(&pair, View::default()).contains("Judged by"));
        pair.a.judges = ["openai:one", "anthropic:two"].map(str::to_owned).to_vec();
        pair.b.judge = Some("openai:three".to_owned());
        let rows = markdown(&pair);
        assert!(rows.contains("| Judged by | openai:one, anthropic:two | openai:three |"), "{rows}");
    }

    #[test]
    fn dollars_of_the_list_and_tokens_that_were_paid_say_which_they_are() {
        let cached = run(2.0, figures(0, 0.0));
        let rows = costs(&run(2.0, figures(1_000, 2.0)), &cached);
        assert_eq!(
            rows,
            [
                ["Cost by list price", "$2.00", "$2.00"],
                ["Paid, whatever became of it", "$2.00", "$0"],
                ["Tokens paid for, in / out", "1,000 / 0", "0 / 0"],
            ]
        );
        assert_eq!(costs(&run(2.0, figures(9, 2.0)), &run(2.0, figures(9, 2.0))).len(), 2, "nothing differs");
    }

    #[test]
    fn what_a_run_cost_does_not_depend_on_the_one_beside_it() {
        let mut metered = run(2.0, figures(1_500, 3.0));
        metered.usage.booked = Some(Booked { metered: Some(figures(500, 1.0)), ..Booked::default() });
        metered.metered = Some(MemoryCost { usd: 1.0, usd_per_1000_turns: None, usd_per_question: None });
        metered.usd_per_correct = Some(3.0);
        let mut untold = run(2.0, figures(1_000, 2.0));
        untold.usage.unknown = vec![Phase::Retain];
        let mut free = run(2.0, figures(1_000, 2.0));
        free.usage.memory = Some(MemoryCost { usd: 0.0, usd_per_1000_turns: None, usd_per_question: None });
        let imported = run(0.0, UsageFigures::default());
        for other in [&metered, &untold, &free, &imported] {
            let rows = costs(&metered, other);
            assert!(rows.iter().all(|row| !row[0].starts_with("Paid")), "{rows:?}");
            let (cost, tokens) = (&rows[0], rows.last().expect("tokens"));
            assert_eq!([&cost[1], &tokens[1]], ["$3.00, $3.00 per correct", "1,500 / 0"]);
        }
        let of_other = |other: &ComparedRun| {
            let rows = costs(&metered, other);
            [rows[0][2].clone(), rows.last().expect("tokens")[2].clone()]
        };
        let unknown = " and the system's own, unknown";
        assert_eq!(of_other(&untold), [format!("$2.00{unknown}"), format!("1,000 / 0{unknown}")]);
        assert_eq!(of_other(&free), ["$2.00", "1,000 / 0"]);
        assert_eq!(of_other(&imported), [NONE, NONE], "nobody said what it cost");
    }

    #[test]
    fn what_a_metered_memory_spends_stands_beside_the_nothing_of_a_built_in_one() {
        let cost = |usd| MemoryCost { usd, usd_per_1000_turns: Some(usd), usd_per_question: Some(0.0) };
        let mut metered = run(0.0, figures(500, 0.5));
        metered.metered = Some(cost(0.5));
        let mut built_in = run(0.0, figures(0, 0.0));
        built_in.usage.memory = Some(cost(0.0));
        let rows = costs(&metered, &built_in);
        assert_eq!(rows.first().map(|row| row[1..].to_vec()), Some(vec!["$0.5000".to_owned(), "$0".to_owned()]));
        let filling = rows.iter().find(|row| row[0].ends_with("filling 1,000 turns")).expect("a row");
        assert_eq!(filling[1..], ["$0.5000", "$0"]);
        assert!(rows.iter().all(|row| !row[0].starts_with("Paid")), "{rows:?}");
        assert_eq!(costs(&built_in, &built_in).len(), 2, "nothing is spent");
    }
}
