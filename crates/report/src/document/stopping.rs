//! The looks of a run that could stop early.

use bench_proto::summary::StopSummary;

use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, counted, usd},
};

/// The rule, what followed from it, and the looks; nothing where there was no rule.
pub(super) fn stopping(stop: Option<&StopSummary>) -> Vec<Block> {
    let Some(stop) = stop else { return Vec::new() };
    let mut lines = vec![format!("Rule: {}.", stop.rule), format!("{}.", ended(stop))];
    lines.extend(saved(stop).map(|saved| format!("It {saved}, by what each of the others took.")));
    lines.extend(stop.disagreement.iter().map(|disagreement| format!("Note: {disagreement}.")));
    lines.push(
        "The interval of a look is about this benchmark under new answers and verdicts; that of a difference holds at all looks together."
            .to_owned(),
    );
    let points = |bound: Option<f64>| bound.map_or_else(|| NONE.to_owned(), |bound| format!("{:.1}", 100.0 * bound));
    let rows = stop.looks.iter().map(|look| {
        let clustered = look
            .clustered
            .map_or_else(|| NONE.to_owned(), |[low, high]| format!("{:.1} to {:.1}", 100.0 * low, 100.0 * high));
        let interval = match (look.low, look.high) {
            (Some(_), Some(_)) => format!("{} to {}", points(look.low), points(look.high)),
            _ => NONE.to_owned(),
        };
        vec![count(look.asked), points(look.estimate), interval, clustered, look.outcome.words().to_owned()]
    });
    let columns = [">Asked", ">Points", ">95 % interval", ">Conversations like these", "What followed"];
    vec![heading("Stopping early"), Block::List(lines), table(&columns, rows.collect())]
}

/// How the run ended by its rule, in one sentence without its full stop.
pub(crate) fn ended(stop: &StopSummary) -> String {
    let (made, of) = (stop.looks.len(), stop.planned.len());
    let asked = stop.looks.last().map_or(0, |look| look.asked);
    let all = stop.planned.last().copied().unwrap_or(0);
    if stop.to_the_end {
        return format!("Asked to its end although it could have stopped: {}", counted(all, "question"));
    }
    if !stop.stopped {
        return format!("Not stopped: {made} of {of} looks, {} of {}", count(asked), counted(all, "question"));
    }
    let outcome = stop.looks.last().map_or("", |look| look.outcome.words());
    format!("Stopped at look {made} of {of}: {outcome}")
}

/// What stopping has saved.
pub(crate) fn saved(stop: &StopSummary) -> Option<String> {
    let saved = stop.saved?;
    let (questions, calls) = (counted(saved.questions, "question"), counted(saved.calls, "call"));
    Some(format!("saved {questions}, about {calls} and {}", usd(saved.usd)))
}
