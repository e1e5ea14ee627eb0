//! Dollars by phase, or tokens where nothing was paid.

use bench_proto::summary::{Summary, UsageFigures};

use super::{Plot, figure, rect, text};
use crate::figures::{count, usd};

const LEFT: f64 = 90.0;
const WIDTH: f64 = 360.0;
const ROW: f64 = 28.0;

pub(super) fn plot(summary: &Summary) -> Option<Plot> {
    let usage = &summary.usage;
    let consolidated = usage.consolidate.as_ref().map(|figures| ("consolidate", figures));
    let of_questions = [("recall", &usage.recall), ("answer", &usage.answer), ("judge", &usage.judge)];
    let phases: Vec<(&str, &UsageFigures)> =
        std::iter::once(("retain", &usage.retain)).chain(consolidated).chain(of_questions).collect();
    let tokens = |figures: &UsageFigures| figures.prompt_tokens + figures.completion_tokens;
    let paid = phases.iter().any(|(_, figures)| figures.usd > 0.0);
    let size = |figures: &UsageFigures| if paid { figures.usd } else { tokens(figures) as f64 };
    let most = phases.iter().map(|(_, figures)| size(figures)).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (mut shapes, tokens_alone) = (String::new(), usage.tokens_alone());
    for (i, (name, figures)) in phases.iter().enumerate() {
        let y = 8.0 + ROW * i as f64;
        shapes += &text(LEFT - 8.0, y + 16.0, "end", "", name);
        shapes += &rect(LEFT, y + 3.0, WIDTH * size(figures) / most, 18.0, &format!("f{}", i % 4));
        if usage.unknown.iter().any(|phase| phase.name() == *name) {
            shapes += &text(LEFT + 8.0, y + 16.0, "start", "", "unknown");
            continue;
        }
        let money = match paid {
            true if tokens_alone.contains(name) => "unknown · ".to_owned(),
            true => format!("{} · ", usd(figures.usd)),
            false => String::new(),
        };
        let label =
            format!("{money}{} tokens in, {} out", count(figures.prompt_tokens), count(figures.completion_tokens));
        shapes += &text(LEFT + 8.0 + WIDTH * size(figures) / most, y + 16.0, "start", "", &label);
    }
    let title = if paid { "dollars by phase" } else { "tokens by phase" }.to_owned();
    let svg = figure(LEFT + WIDTH + 260.0, 8.0 + ROW * phases.len() as f64 + 8.0, &title, &shapes);
    Some(Plot { file_name: "cost.svg", title, svg })
}
