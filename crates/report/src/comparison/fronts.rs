//! The runs of a comparison with their scores beside what they cost, and the fronts of those that can be held against each other.

use bench_proto::{
    comparison::{ComparedRun, Comparison},
    summary::Verdict,
};

use super::name_of;
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, interval, percent_or_none, usd},
    svg::{FrontAxis, FrontPoint, Plot, front_plot},
};

/// Says of each (quality, cost) whether it is on the Pareto front: more quality and less cost are better.
pub type Front = fn(&[(f64, f64)]) -> Vec<bool>;

/// A cost that scores are held against.
struct Cost {
    /// How the table marks its front.
    mark: &'static str,
    file_name: &'static str,
    title: &'static str,
    of: fn(&ComparedRun) -> Option<f64>,
}

const COSTS: [Cost; 3] = [
    Cost { mark: "$", file_name: "front-dollars.svg", title: "score against dollars a run", of: ComparedRun::usd_list },
    Cost {
        mark: "$fill",
        file_name: "front-filling.svg",
        title: "score against what the memory spends on filling 1,000 turns",
        of: |run| run.memory()?.usd_per_1000_turns,
    },
    Cost {
        mark: "$ask",
        file_name: "front-asking.svg",
        title: "score against what the memory spends on 1,000 questions",
        of: |run| Some(1000.0 * run.memory()?.usd_per_question?),
    },
];

/// Score against each cost that is known of two runs at least, where something is spent.
#[must_use]
pub fn fronts(pairs: &[Comparison], front: Front) -> Vec<Plot> {
    let runs = runs_of(pairs);
    let better = pairs.first().map(|pair| pair.better).unwrap_or_default();
    let draw = |cost: &Cost| {
        let on = on_front(pairs, &runs, cost, front);
        let points: Vec<FrontPoint> = (1..)
            .zip(&runs)
            .zip(on)
            .filter_map(|((number, run), on): ((u32, &&ComparedRun), Option<bool>)| {
                Some(FrontPoint {
                    mark: number.to_string(),
                    label: name_of(run),
                    value: run.value?,
                    interval: run.ci95.as_ref().map(|interval| (interval.low, interval.high)),
                    on_front: on?,
                    cost: (cost.of)(run)?,
                })
            })
            .collect();
        let axis = FrontAxis { file_name: cost.file_name, title: cost.title, better, written: usd };
        front_plot(axis, &points)
    };
    COSTS.iter().filter_map(draw).collect()
}

/// A table of the runs, each with its score and its costs.
pub(super) fn runs(pairs: &[Comparison], front: Front) -> Vec<Block> {
    let runs = runs_of(pairs);
    let spends = runs.iter().filter_map(|run| run.memory()).any(|memory| memory.usd > 0.0);
    let mut columns = vec!["Run", ">Score", ">95 %", "Verdict", ">$/run"];
    if spends {
        columns.extend([">Memory $/1,000 turns", ">$/1,000 questions"]);
    }
    columns.push("Front");
    let shown: &[Cost] = if spends { &COSTS } else { &COSTS[..1] };
    let marks: Vec<Vec<Option<bool>>> = shown.iter().map(|cost| on_front(pairs, &runs, cost, front)).collect();
    let row = |(place, run): (usize, &&ComparedRun)| {
        let of_costs = shown.iter().map(|cost| (cost.of)(run).map_or_else(|| NONE.to_owned(), usd));
        let is_on = |of_cost: &Vec<Option<bool>>| of_cost.get(place).copied().flatten() == Some(true);
        let on: Vec<&str> =
            shown.iter().zip(&marks).filter(|(_, of_cost)| is_on(of_cost)).map(|(cost, _)| cost.mark).collect();
        let mut row =
            vec![name_of(run), percent_or_none(run.value), interval(run.ci95.as_ref()), run.verdict.name().to_owned()];
        row.extend(of_costs);
        row.push(if on.is_empty() { NONE.to_owned() } else { on.join(" ") });
        row
    };
    let rows = runs.iter().enumerate().map(row).collect();
    let mut lines = vec![
        "front: no other of these runs has a score that is at least as good for no more of a cost, and is better or costs less, among \
         VALID runs that can be compared; $ dollars a run by list price, $fill and $ask what the memory itself spends on filling and \
         asking; by the figures as they are, without their intervals"
            .to_owned(),
    ];
    if runs.iter().any(|run| run.usage.is_incomplete()) {
        lines.push("what the memory system of a run without dollars spends is unknown; --meter counts it".to_owned());
    }
    if runs.iter().any(|run| run.usd_at_least().is_none()) {
        lines
            .push("what a result cost that came without its dollars, such as an imported one, is not known".to_owned());
    }
    vec![heading("Scores and costs"), table(&columns, rows), Block::List(lines)]
}

/// The runs of all pairs, in the order in which they were named.
fn runs_of(pairs: &[Comparison]) -> Vec<&ComparedRun> {
    let mut runs: Vec<&ComparedRun> = Vec::new();
    for run in pairs.iter().flat_map(|pair| [&pair.a, &pair.b]) {
        if runs.iter().all(|known| known.id != run.id) {
            runs.push(run);
        }
    }
    runs
}

/// Whether each run is on the front of a cost; none of a run that cannot be held against the others, and of all of them where nothing
/// is spent.
fn on_front(pairs: &[Comparison], runs: &[&ComparedRun], cost: &Cost, front: Front) -> Vec<Option<bool>> {
    let metric = pairs.first().map(|pair| pair.metric.as_str());
    let better = pairs.first().map(|pair| pair.better).unwrap_or_default();
    // an INVALID run makes its pairs incomparable and is left out by itself
    let is_held = |pair: &Comparison| {
        let invalid = [&pair.a, &pair.b].into_iter().any(|run| run.verdict != Verdict::Valid);
        metric == Some(pair.metric.as_str()) && (pair.comparable || invalid)
    };
    let point = |run: &&ComparedRun| {
        (run.verdict == Verdict::Valid).then_some(())?;
        Some((better.gain(run.value?), (cost.of)(run)?))
    };
    if !pairs.iter().all(is_held) {
        return vec![None; runs.len()];
    }
    let points: Vec<Option<(f64, f64)>> = runs.iter().map(point).collect();
    let known: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
    let spends = known.len() > 1 && known.iter().any(|(_, cost)| *cost > 0.0);
    let mut on = front(&known).into_iter();
    points.iter().map(|point| point.and_then(|_| on.next()).filter(|_| spends)).collect()
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        call::Phase,
        summary::{Booked, MemoryCost},
    };
    use serde_json::json;

    use super::*;
    use crate::markdown;

    /// As `bench_aggregate::pareto::front` has it.
    fn front(points: &[(f64, f64)]) -> Vec<bool> {
        let beats = |one: &(f64, f64), other: &(f64, f64)| one.0 >= other.0 && one.1 <= other.1 && one != other;
        points.iter().map(|point| !points.iter().any(|other| beats(other, point))).collect()
    }

    /// A run of so good a score, whose answers and whose memory cost so many dollars.
    fn run(id: &str, value: f64, answers: f64, memory: Option<f64>) -> ComparedRun {
        let mut run = super::super::tests::run(answers, Default::default());
        (run.id, run.value) = (id.to_owned(), Some(value));
        run.metered =
            memory.map(|usd| MemoryCost { usd, usd_per_1000_turns: Some(usd), usd_per_question: Some(usd / 1000.0) });
        run
    }

    fn pair(a: &ComparedRun, b: &ComparedRun) -> Comparison {
        let paired = json!({"n": 2, "clusters": 1, "a": 0.5, "b": 0.0, "difference": -0.5, "estimator": "mean", "ci95": null,
                            "ci95_note": null, "naive_ci95": null, "p_value": null, "p_holm": null, "mde": null,
                            "tolerance": 0.02, "verdict": "INCONCLUSIVE"});
        let mcnemar = json!({"pass_threshold": 0.5, "both": 0, "only_a": 1, "only_b": 0, "neither": 1, "p_value": 1.0});
        let all = json!({
            "schema_version": 1, "a": a, "b": b, "comparable": true, "reasons": [], "notes": [], "under_test": null,
            "differences": [], "independent": true, "metric": "judge", "verdict": "INCONCLUSIVE", "paired": paired,
            "bootstrap_ci95": null, "bootstrap_note": null, "mcnemar": mcnemar, "by_category": [],
            "unpaired": {"only_a": 0, "only_b": 0, "neither": 0}, "retrieval": [], "flip_counts": {}, "flips": [],
        });
        serde_json::from_value(all).expect("a comparison")
    }

    #[test]
    fn three_runs_have_their_dollars_and_a_front_that_is_drawn() {
        let (cheap, dear, worse) =
            (run("cheap", 0.6, 1.0, Some(0.5)), run("dear", 0.8, 4.0, Some(2.0)), run("worse", 0.5, 2.0, Some(0.25)));
        let mut pairs = vec![pair(&cheap, &dear), pair(&cheap, &worse), pair(&dear, &worse)];
        let text = markdown::render_blocks(&runs(&pairs, front));
        let line =
            |text: &str, id: &str| text.lines().find(|line| line.contains(id)).map(str::to_owned).unwrap_or_default();
        assert!(
            line(&text, "| cheap").contains("$1.50") && line(&text, "| cheap").contains("| $ $fill $ask |"),
            "{text}"
        );
        assert!(
            line(&text, "| worse").contains("$2.25") && line(&text, "| worse").contains("| $fill $ask |"),
            "{text}"
        );
        let names = |pairs: &[Comparison]| fronts(pairs, front).iter().map(|plot| plot.file_name).collect::<Vec<_>>();
        assert_eq!(names(&pairs), ["front-dollars.svg", "front-filling.svg", "front-asking.svg"]);
        assert_eq!(names(&pairs[..1]).len(), 3, "two runs are drawn too");
        // an invalid one is no point
        (pairs[1].b.verdict, pairs[2].b.verdict, pairs[1].comparable) = (Verdict::Invalid, Verdict::Invalid, false);
        assert!(fronts(&pairs, front).iter().all(|plot| plot.svg.matches("<circle ").count() == 2));
        // and what cannot be compared is not drawn together
        pairs[0].comparable = false;
        assert!(names(&pairs).is_empty());
    }

    #[test]
    fn runs_whose_dollars_nobody_knows_or_that_spend_nothing_are_on_no_front() {
        let mut unknown = run("unknown", 0.9, 1.0, None);
        unknown.usage.unknown = vec![Phase::Retain];
        let known = run("known", 0.6, 1.0, None);
        let pairs = [pair(&unknown, &known)];
        let text = markdown::render_blocks(&runs(&pairs, front));
        assert!(text.contains("spends is unknown; --meter counts it") && !text.contains("$fill |"), "{text}");
        assert!(fronts(&pairs, front).is_empty());
        let free = |id: &str, value: f64| {
            let mut free = run(id, value, 0.0, None);
            free.usage.booked = Some(Booked::default());
            free
        };
        let both = [pair(&free("a", 0.9), &free("b", 0.6))];
        assert_eq!(on_front(&both, &runs_of(&both), &COSTS[0], front), [None, None]);
        let imported = run("imported", 0.5, 0.0, None);
        let all = [pair(&imported, &known), pair(&imported, &free("a", 0.4)), pair(&known, &free("a", 0.4))];
        assert_eq!(on_front(&all, &runs_of(&all), &COSTS[0], front), [None, Some(true), Some(true)]);
        let text = markdown::render_blocks(&runs(&all, front));
        assert!(text.contains("came without its dollars") && !text.contains("--meter counts it"), "{text}");
    }
}
