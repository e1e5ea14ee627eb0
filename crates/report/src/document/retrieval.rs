//! What recall found of the evidence, and how the answers fared with it.

use std::collections::BTreeMap;

use bench_proto::{
    metric::Better,
    summary::{RetrievalAtK, Summary},
};

use super::recalls_are_unknown;
use crate::{
    blocks::{Block, heading, table},
    figures::{count, counted, fraction, percent},
    words,
};

pub(super) fn retrieval(summary: &Summary) -> Vec<Block> {
    let levels = [("turn", &summary.retrieval.turn), ("session", &summary.retrieval.session)];
    let rows: Vec<Vec<String>> = levels
        .into_iter()
        .flat_map(|(level, by_k)| by_k.iter().map(move |(k, at)| (level, k, at)))
        .filter(|(_, _, at)| at.n > 0)
        .map(|(level, k, at)| {
            let precisions = [at.precision, at.precision_of_returned];
            let figures =
                [at.recall_any, at.recall_all, at.recall].into_iter().chain(precisions).chain([at.mrr, at.ndcg]);
            let mut row = vec![level.to_owned(), k.to_string()];
            row.extend(figures.map(fraction));
            row.push(count(at.n));
            row
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns =
        ["Level", ">k", ">Recall any", ">Recall all", ">Recall", ">Precision", ">of returned", ">MRR", ">NDCG", ">n"];
    let mut blocks = vec![heading("Retrieval"), table(&columns, rows), Block::Text(words::RECALL_AT_K.to_owned())];
    let measured = |by_k: &BTreeMap<u32, RetrievalAtK>| by_k.values().any(|at| at.n > 0);
    if !measured(&summary.retrieval.turn) {
        blocks.push(Block::Text(
            "Nothing is known of turns: the hits carry none, or the dataset names none. Evidence is looked for by session.".to_owned(),
        ));
    }
    let lost = &summary.failure_attribution;
    let causes = [
        lost.evidence_missing,
        lost.evidence_partial,
        lost.evidence_found,
        lost.recall_failed,
        lost.no_ground_truth,
        lost.not_retained,
        lost.judge_in_doubt,
    ];
    // a report that is read from a folder says anything
    let failed = causes.into_iter().fold(0, u64::saturating_add);
    let is_plain = summary.scores.first().is_none_or(|score| score.better == Better::Higher && !score.pass_beyond);
    let of_recalls = lost.recall_failed > 0 || !summary.spec.scenario.answers();
    if failed > 0 {
        blocks.push(Block::Text(format!(
            "Of {} {}, {} had no evidence among the hits, {} a part of it, {} all of it ({}); {} {}.",
            counted(failed, "question"),
            if is_plain { "below the pass threshold" } else { "that did not pass" },
            count(lost.evidence_missing),
            count(lost.evidence_partial),
            count(lost.evidence_found.saturating_add(lost.recall_failed)),
            if of_recalls { "not as the figure wants it" } else { "the answer failed" },
            count(lost.no_ground_truth),
            words::without_evidence(summary),
        )));
        if lost.not_retained > 0 || lost.judge_in_doubt > 0 {
            blocks.push(Block::Text(format!(
                "Beside these, {} lost evidence that was never retained, and {} left judges in doubt.",
                counted(lost.not_retained, "question"),
                count(lost.judge_in_doubt),
            )));
        }
    }
    blocks
}

/// What recall had found against how the answer fared: what is lost in memory, and what after.
pub(super) fn recall_and_answer(summary: &Summary) -> Vec<Block> {
    if recalls_are_unknown(summary) {
        return Vec::new();
    }
    let table_of = &summary.recall_answer;
    let unnamed =
        if summary.spec.is_imported() { "no evidence named, or recall not said" } else { "no evidence named" };
    let rows = [
        ("all evidence found", table_of.evidence_found),
        ("part of it", table_of.evidence_partial),
        ("none of it", table_of.evidence_missing),
        (unnamed, table_of.no_ground_truth),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|(_, counts)| counts.passed > 0 || counts.failed > 0)
        .map(|(name, counts)| {
            let all = counts.passed.saturating_add(counts.failed);
            let share = percent(counts.passed as f64 / all as f64);
            vec![name.to_owned(), count(counts.passed), count(counts.failed), share]
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![heading("Recall and answer"), table(&["Recall", ">Passed", ">Failed", ">Passed"], rows)]
}
