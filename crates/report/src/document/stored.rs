//! What banks hold by their system's own listing, and why answers are wrong.

use bench_proto::summary::{CauseShare, CauseSummary, StoredSummary};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, heading, table},
    figures::{count, counted, one_line, percent, percent_or_none},
};

/// What is stored, what nobody said, and what was to change and did not.
pub(super) fn stored(stored: Option<&StoredSummary>) -> Vec<Block> {
    let Some(stored) = stored else { return Vec::new() };
    let evidence = &stored.evidence;
    let of = |n: u64, of: u64| format!("{} of {}", count(n), count(of));
    let row = |name: &str, figure: String, note: String| vec![name.to_owned(), figure, note];
    let unknown = match evidence.unknown {
        0 => String::new(),
        n => format!("{} more: not known", count(n)),
    };
    let share = percent_or_none(evidence.share);
    let mut rows = vec![row(
        "Evidence that is stored",
        of(evidence.stored, evidence.stored.saturating_add(evidence.missing)),
        [share, unknown].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "),
    )];
    if let Some(unsaid) = &stored.unsaid {
        let examples: Vec<String> = stored
            .unsaid_examples
            .iter()
            .take(2)
            .map(|text| format!("\u{201c}{}\u{201d}", one_line(text, TEXT_WIDTH)))
            .collect();
        rows.push(row("Items with words that nobody said", of(unsaid.n, unsaid.of), examples.join(", ")));
    }
    if let Some(updates) = &stored.updates {
        let how = format!(
            "old text still there {}, new text missing {}",
            count(updates.old_kept),
            count(updates.new_missing)
        );
        rows.push(row("Wrong updates", of(updates.wrong, updates.of), how));
    }
    if let Some(kept) = &stored.not_withdrawn {
        rows.push(row("Deletions that did not happen", of(kept.n, kept.of), String::new()));
    }
    let mut lines = vec![format!(
        "The system listed {} of {} behind their last question, canaries left out; texts are compared word for word.",
        counted(stored.items, "item"),
        counted(stored.banks.saturating_add(stored.failed).saturating_add(stored.cut), "bank"),
    )];
    if stored.rewritten > 0 {
        lines.push(format!(
            "In {} it stores in words of its own: what is not found there may be there in other words, and is not known.",
            counted(stored.rewritten, "bank")
        ));
    }
    if stored.cut > 0 {
        lines.push(format!("{} hold more than is listed.", counted(stored.cut, "bank")));
    }
    if let Some(failure) = &stored.failure {
        lines.push(format!(
            "The listing of {} failed before its end: {}.",
            counted(stored.failed, "bank"),
            one_line(failure, TEXT_WIDTH * 2)
        ));
    }
    vec![heading("What is stored"), table(&["", ">Count", "Note"], rows), Block::Text(lines.join(" "))]
}

/// The wrong answers by their cause, where anything is known beside what came back.
pub(super) fn causes(causes: Option<&CauseSummary>) -> Vec<Block> {
    let Some(causes) = causes.filter(|causes| causes.unknown.n < causes.wrong) else { return Vec::new() };
    let rows: Vec<Vec<String>> = [
        ("not stored", &causes.not_stored),
        ("stored, not retrieved", &causes.not_retrieved),
        ("retrieved, answered wrongly", &causes.answered_wrongly),
        ("not known", &causes.unknown),
    ]
    .into_iter()
    .filter(|(name, CauseShare { n, .. })| *n > 0 || *name != "not known")
    .map(|(name, CauseShare { n, share })| vec![name.to_owned(), count(*n), percent(*share)])
    .collect();
    vec![heading("Why answers are wrong"), table(&["Cause", ">Questions", ">Share"], rows)]
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::{StoredCount, StoredEvidence, StoredUpdates};

    use super::*;

    #[test]
    fn what_is_not_known_is_said_and_is_no_figure() {
        let whole = StoredSummary {
            banks: 2,
            items: 120,
            evidence: StoredEvidence { stored: 30, missing: 10, unknown: 0, share: Some(0.75) },
            unsaid: Some(StoredCount { n: 1, of: 120 }),
            unsaid_examples: vec!["Ann is allergic to peanuts".to_owned()],
            updates: Some(StoredUpdates { of: 5, wrong: 2, old_kept: 2, new_missing: 0 }),
            not_withdrawn: Some(StoredCount { n: 1, of: 3 }),
            ..StoredSummary::default()
        };
        let own_words = StoredSummary {
            banks: 1,
            failed: 1,
            failure: Some("system_http_500: list: status 500".to_owned()),
            rewritten: 1,
            items: 40,
            evidence: StoredEvidence { stored: 0, missing: 0, unknown: 12, share: None },
            ..StoredSummary::default()
        };
        let share = |n: u64| CauseShare { n, share: n as f64 / 8.0 };
        let known = CauseSummary {
            wrong: 8,
            not_stored: share(4),
            not_retrieved: share(1),
            answered_wrongly: share(3),
            unknown: share(0),
        };
        let unknown = CauseSummary { wrong: 8, unknown: share(8), ..CauseSummary::default() };
        assert!(causes(Some(&unknown)).is_empty() && causes(None).is_empty() && stored(None).is_empty());
        let blocks = [stored(Some(&whole)), causes(Some(&known)), stored(Some(&own_words))].concat();
        insta::assert_debug_snapshot!(blocks);
    }
}
