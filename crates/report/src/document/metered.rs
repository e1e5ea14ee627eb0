//! What the memory system spent on models itself.

use bench_proto::{
    metered::Stage,
    summary::{MeteredFigures, MeteredSummary},
};

use crate::{
    blocks::{Block, heading, table},
    figures::{count, counted, duration, one_line, usd, usd_or_range},
};

/// What stands above it.
pub(crate) const HEADING: &str = "What the memory system called itself";
/// Banks that are shown, the dearest first.
const MOST_BANKS: usize = 10;
/// Longest name of a bank or a model.
const NAME: usize = 40;

/// The tables by stage, model and bank, and what a memory costs; nothing where it was not metered.
pub(super) fn metered(metered: Option<&MeteredSummary>) -> Vec<Block> {
    let Some(metered) = metered else { return Vec::new() };
    let mut blocks = vec![heading(HEADING), Block::Text(costs(metered))];
    if metered.by_stage.is_empty() {
        return blocks;
    }
    let stages = metered.by_stage.iter().map(|of| row(of.stage.name(), "", &of.figures));
    let models = metered.by_model.iter().map(|of| row(&one_line(&of.model, NAME), of.service.name(), &of.figures));
    let total = std::iter::once(row("total", "", &metered.total));
    blocks.push(figures("While it did", stages.chain(total).collect()));
    blocks.push(figures("Model", models.collect()));
    let mut banks: Vec<_> = metered.by_bank.iter().collect();
    banks.sort_by(|a, b| b.figures.usd.total_cmp(&a.figures.usd).then(b.figures.calls.cmp(&a.figures.calls)));
    let rows = banks.iter().take(MOST_BANKS).map(|of| {
        let mut row = row(&one_line(of.bank.as_deref().unwrap_or("not known"), NAME), "", &of.figures);
        row.push(usd_or_range(of.usd_filling, of.usd_filling_range));
        row
    });
    let columns: Vec<_> = FIGURES.into_iter().chain([">Filling"]).collect();
    blocks.push(table(&[&["Bank"], &columns[..]].concat(), rows.collect()));
    if banks.len() > MOST_BANKS {
        blocks.push(Block::Text(format!("And {} more banks; all are in report.json.", banks.len() - MOST_BANKS)));
    }
    blocks
}

/// What a memory costs to fill and to ask, in one paragraph.
fn costs(metered: &MeteredSummary) -> String {
    let MeteredFigures { usd: paid, usd_saved, .. } = metered.total;
    let thousand = |each: f64| 1000.0 * each;
    let mut words = vec![format!(
        "Seen by the meter between the memory system and its models: {} paid. Filling costs {} for 1,000 turns ({} turns), asking {} for \
         1,000 questions ({}).",
        usd(paid),
        usd_or_range(metered.usd_per_1000_turns, metered.usd_per_1000_turns_range),
        count(metered.turns),
        usd_or_range(
            metered.usd_per_question.map(thousand),
            metered.usd_per_question_range.map(|each| each.map(thousand))
        ),
        counted(metered.questions, "question"),
    )];
    let neither =
        metered.by_stage.iter().find(|of| of.stage == Stage::Unattributed).map_or(0.0, |of| of.figures.usd_list());
    if neither > 0.0 {
        let is_range = metered.usd_per_1000_turns_range.is_some() || metered.usd_per_question_range.is_some();
        let belong = if is_range { "may belong to either, which is why there is a range" } else { "are in neither" };
        words.push(format!(
            "{} of it {belong}: nobody can say what these calls were for, because the system did several things at once, went on by \
             itself in between, or named a bank that the run does not have.",
            usd(neither)
        ));
    }
    if usd_saved > 0.0 {
        words.push(format!(
            "{} were saved by stored replies; calls that stream are never answered by them.",
            usd(usd_saved)
        ));
    }
    words.extend(cut_calls(&metered.total));
    let refused = metered.refused_calls();
    if refused > 0 {
        words.push(format!("The meter itself has refused {}: the warnings say why.", counted(refused, "call")));
    }
    if let Some(of) = metered.accounts.as_ref().filter(|of| !of.accounts.is_empty()) {
        words.push(format!(
            "By the accounts ({}), {} were spent while the run was watched, and {} were booked in that time.",
            of.accounts.join(", "),
            usd(of.usd),
            usd(of.usd_booked)
        ));
    }
    words.join(" ")
}

/// What is known of calls that were cut; nothing where none was.
pub(crate) fn cut_calls(of: &MeteredFigures) -> Option<String> {
    (of.uncertain > 0).then(|| {
        format!(
            "{} were cut: what they cost, at most {}, is not known and in none of these figures.",
            counted(of.uncertain, "call"),
            usd(of.usd_uncertain)
        )
    })
}

fn row(name: &str, service: &str, of: &MeteredFigures) -> Vec<String> {
    let counts = [of.calls, of.stored_calls, of.failed, of.prompt_tokens, of.completion_tokens].map(count);
    let name = if service.is_empty() { name.to_owned() } else { format!("{name} ({service})") };
    std::iter::once(name).chain(counts).chain([usd(of.usd), duration(of.seconds)]).collect()
}

/// Columns of a [`row`] after its first.
const FIGURES: [&str; 7] = [">Calls", ">Stored", ">Failed", ">Prompt tokens", ">Completion tokens", ">Cost", ">Time"];

fn figures(first: &str, rows: Vec<Vec<String>>) -> Block {
    table(&[&[first], &FIGURES[..]].concat(), rows)
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::MeteredStage;

    use super::*;

    #[test]
    fn p34_what_nobody_can_say_more_closely_is_a_range() {
        let figures = MeteredFigures { calls: 400, usd: 0.06, ..MeteredFigures::default() };
        let mut metered = MeteredSummary {
            total: MeteredFigures { usd_saved: 0.01, ..figures.clone() },
            by_stage: vec![MeteredStage { stage: Stage::Unattributed, figures }],
            usd_per_1000_turns_range: Some([0.001, 0.061]),
            usd_per_question_range: Some([0.0, 0.002]),
            ..MeteredSummary::default()
        };
        let told = costs(&metered);
        for said in [
            "Filling costs $0.0010 to $0.0610 for 1,000 turns",
            "asking $0 to $2.00 for 1,000 questions",
            "$0.0600 of it may belong to either",
            "$0.0100 were saved by stored replies; calls that stream are never",
        ] {
            assert!(told.contains(said), "{said}: {told}");
        }
        (metered.usd_per_1000_turns_range, metered.usd_per_question_range) = (None, None);
        assert!(costs(&metered).contains("are in neither"));
    }
}
