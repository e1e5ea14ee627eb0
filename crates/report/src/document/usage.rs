//! Usage and cost: what every figure is of.

use bench_proto::summary::{Summary, UsageFigures, UsageSummary};

use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, duration, usd},
};

/// In place of a figure that nobody knows.
const UNKNOWN: &str = "unknown";

/// Calls, tokens and dollars by phase, and what else was paid.
pub(super) fn usage(summary: &Summary) -> Vec<Block> {
    let (u, s, nothing) = (&summary.usage, &summary.phase_seconds, UsageFigures::default());
    let seconds = |seconds: Option<f64>| seconds.map_or_else(|| NONE.to_owned(), duration);
    let all: Option<f64> =
        [s.retain, s.build, s.consolidate, s.recall, s.answer, s.judge].into_iter().flatten().reduce(|a, b| a + b);
    // indexes, embeddings and starts; some systems only take notes while they are given sessions, and fill their banks then
    let built = s.build.map(|seconds| ("build", &nothing, Some(seconds)));
    let consolidated = u.consolidate.as_ref().map(|used| ("consolidate", used, s.consolidate));
    let phases = [("recall", &u.recall, s.recall), ("answer", &u.answer, s.answer), ("judge", &u.judge, s.judge)];
    let booked = u.booked.as_ref();
    let beside_phases = booked
        .map(|b| [("not ended", &b.unfinished), ("no result", &b.unused), ("probes", &b.overhead)])
        .into_iter()
        .flatten()
        .filter(|(_, used)| **used != UsageFigures::default())
        .chain(booked.and_then(|b| b.metered.as_ref()).map(|used| ("system's own", used)))
        .map(|(part, used)| (part, used, None));
    let is_unknown = |name: &str| u.unknown.iter().any(|phase| phase.name() == name);
    let tokens_alone = u.tokens_alone();
    let rows: Vec<Vec<String>> = std::iter::once(("retain", &u.retain, s.retain))
        .chain(built)
        .chain(consolidated)
        .chain(phases)
        .chain(beside_phases)
        .chain([("total", &u.total.used, all)])
        .map(|(phase, used, time)| {
            let mut counts = [
                used.calls,
                used.cached_calls,
                used.retries,
                used.rate_limited,
                used.prompt_tokens,
                used.completion_tokens,
            ]
            .map(count);
            let mut cost = usd(used.usd);
            if is_unknown(phase) {
                counts.fill(UNKNOWN.to_owned());
                UNKNOWN.clone_into(&mut cost);
            } else if tokens_alone.contains(&phase) {
                let (requests, _tokens) = counts.split_at_mut(4);
                requests.fill(UNKNOWN.to_owned());
                UNKNOWN.clone_into(&mut cost);
            } else if phase == "total" && u.is_incomplete() {
                cost = format!("at least {cost}");
            }
            std::iter::once(phase.to_owned()).chain(counts).chain([cost, seconds(time)]).collect()
        })
        .collect();
    let columns =
        ["Phase", ">Calls", ">Cached", ">Retries", ">429s", ">Prompt tokens", ">Completion tokens", ">Cost", ">Work"];
    let mut blocks = vec![heading("Usage and cost"), table(&columns, rows)];
    let money = money(summary);
    if !money.is_empty() {
        blocks.push(Block::Text(money.join(" ")));
    }
    blocks
}

/// What nobody knows of what the memory system uses.
fn untold(u: &UsageSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if !u.unknown.is_empty() {
        let phases: Vec<&str> = u.unknown.iter().map(|phase| phase.name()).collect();
        lines.push(format!(
            "What the memory system does with models in {} is unknown: it is another process and has told nothing of it.",
            phases.join(" and ")
        ));
    }
    let tokens_alone = u.tokens_alone();
    if !tokens_alone.is_empty() {
        lines.push(format!(
            "The memory system has told its tokens in {}, and neither its calls nor what they cost: --meter counts both.",
            tokens_alone.join(" and ")
        ));
    }
    lines
}

/// What the figures of money are of, and what the caps have left.
fn money(summary: &Summary) -> Vec<String> {
    let u = &summary.usage;
    let t = &u.total;
    let booked = t.usd_booked.max(t.used.usd);
    let mut money = untold(u);
    if t.used.retries > 0 {
        money.push(
            "Calls are those whose reply was used; retries are all other requests, those of a call that came to nothing included."
                .to_owned(),
        );
    }
    let group = summary.group.as_ref().filter(|group| group.runs > 1);
    match (t.usd_cap, group) {
        (_, Some(group)) => {
            let cap = group.cap_usd.map(|cap| format!(" of a cap of {}", usd(cap))).unwrap_or_default();
            money.push(format!(
                "Spent {}; the {} runs of group {} together {}{cap}.",
                usd(booked),
                group.runs,
                group.id,
                usd(group.booked_usd)
            ));
            if !group.not_ended.is_empty() {
                money.push(format!("Not ended: {}.", group.not_ended.join(", ")));
            }
        }
        (Some(cap), None) => money.push(format!("Spent {} of a cap of {}.", usd(booked), usd(cap))),
        (None, None) => {}
    }
    // version 1 does not name what is in no phase, and counts some of the uncertain in its total
    let unused = booked - t.used.usd;
    if u.booked.is_none() && unused > 1e-9 {
        money.push(format!("{} of it went into attempts that no result uses.", usd(unused)));
    }
    if t.usd_uncertain > 0.0 {
        let apart = if u.booked.is_some() { ", and not in the total" } else { "" };
        money.push(format!(
            "{} of it is uncertain{apart}: attempts that ended without a word, at their worst case.",
            usd(t.usd_uncertain)
        ));
    }
    if t.usd_overdraft > 0.0 {
        money.push(format!("Attempts cost {} more than their own worst case.", usd(t.usd_overdraft)));
    }
    let of_phases =
        [&u.retain, &u.recall, &u.answer, &u.judge].into_iter().chain(&u.consolidate).map(|of| of.usd).sum::<f64>();
    // what was paid and is in no phase would have been paid, too
    let saved = (t.usd_list - of_phases).max(0.0) + summary.metered.as_ref().map_or(0.0, |own| own.total.usd_saved);
    if saved > 1e-9 {
        money.push(format!("Without the call store it would have been {}.", usd(t.used.usd + saved)));
    }
    if !summary.run.calls_of.is_empty() {
        money.push(format!("It uses replies of {}: not independent of them.", summary.run.calls_of.join(", ")));
    }
    if let Some(each) = summary.usd_per_correct.filter(|each| *each > 0.0) {
        money.push(format!("{} per passed question.", usd(each)));
    }
    if let Some(context) = &summary.context {
        money.push(format!(
            "Contexts had {} tokens in the mean (a quarter of {} bytes).",
            count(context.mean_tokens.round() as u64),
            count(context.mean_bytes.round() as u64)
        ));
    }
    money
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::{MeteredFigures, MeteredSummary};

    use super::*;
    use crate::golden;

    #[test]
    fn tokens_that_a_system_tells_are_neither_its_calls_nor_its_dollars() {
        let mut summary = golden::report();
        summary.usage.booked = None;
        summary.usage.retain =
            UsageFigures { prompt_tokens: 40_380, completion_tokens: 4_190, ..UsageFigures::default() };
        let shown = crate::markdown::render_blocks(&usage(&summary));
        let row = |name: &str| shown.lines().find(|line| line.starts_with(&format!("| {name} "))).unwrap_or_default();
        let retain: Vec<&str> = row("retain").split('|').map(str::trim).collect();
        assert_eq!(retain[2..9], ["unknown", "unknown", "unknown", "unknown", "40,380", "4,190", "unknown"], "{shown}");
        assert!(
            row("total").contains("at least $") && shown.contains("neither its calls nor what they cost"),
            "{shown}"
        );
        summary.usage.retain.calls = 3;
        let shown = crate::markdown::render_blocks(&usage(&summary));
        assert!(!shown.contains("neither its calls"), "{shown}");
    }

    #[test]
    fn without_the_call_store_no_less_is_paid_than_with_it() {
        let mut summary = golden::report();
        let told =
            |summary: &Summary| money(summary).into_iter().find(|line| line.starts_with("Without the call store"));
        let phases = UsageFigures { usd: 0.25, ..UsageFigures::default() };
        let u = &mut summary.usage;
        [u.retain, u.recall, u.answer, u.judge] = std::array::from_fn(|_| phases.clone());
        (u.consolidate, summary.metered) = (None, None);
        // two dollars went into what no result uses, half a dollar was saved
        (summary.usage.total.used.usd, summary.usage.total.usd_list) = (3.0, 1.5);
        assert_eq!(told(&summary).as_deref(), Some("Without the call store it would have been $3.50."));
        summary.usage.total.usd_list = 1.0;
        assert_eq!(told(&summary), None, "nothing was stored");
        let total = MeteredFigures { usd_saved: 0.25, ..MeteredFigures::default() };
        summary.metered = Some(MeteredSummary { total, ..MeteredSummary::default() });
        assert_eq!(told(&summary).as_deref(), Some("Without the call store it would have been $3.25."));
    }
}
