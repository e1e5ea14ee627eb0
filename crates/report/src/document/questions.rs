//! Single questions that are worth a look: slow ones, bad ones, those that failed.

use std::collections::BTreeMap;

use bench_proto::{metric::Better, summary::Summary};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, ms, one_line, percent},
};

/// Characters of what a question was told.
const ERROR_WIDTH: usize = 200;

pub(super) fn slowest(summary: &Summary) -> Vec<Block> {
    if summary.slowest.is_empty() {
        return Vec::new();
    }
    let rows = summary.slowest.iter().map(|slow| {
        let part = |phase: &str| slow.phase_ms.get(phase).map_or_else(|| NONE.to_owned(), |value| ms(*value));
        let parts = ["recall", "answer", "judge", "rate_wait", "queue_wait"].map(part);
        [slow.question_id.clone(), ms(slow.ms)].into_iter().chain(parts).chain([slow.trace_id.clone()]).collect()
    });
    let columns = ["Question", ">ms", ">Recall", ">Answer", ">Judge", ">Rate wait", ">Queue wait", "Trace"];
    let mut blocks = vec![heading("Slowest questions"), table(&columns, rows.collect())];
    let links = summary.slowest.iter();
    let links: Vec<String> =
        links.filter_map(|slow| Some(format!("{}: {}", slow.question_id, slow.trace_url.as_ref()?))).collect();
    if !links.is_empty() {
        blocks.push(Block::Text("Their traces:".to_owned()));
        blocks.push(Block::List(links));
    }
    blocks
}

pub(super) fn worst(summary: &Summary) -> Vec<Block> {
    if summary.worst.is_empty() {
        return Vec::new();
    }
    let text =
        |text: &Option<String>| text.as_deref().map_or_else(|| NONE.to_owned(), |text| one_line(text, TEXT_WIDTH));
    let rows =
        summary.worst.iter().map(|w| vec![w.question_id.clone(), percent(w.score), text(&w.gold), text(&w.answer)]);
    let title = match super::better(summary) {
        Better::Higher => "Lowest scores",
        Better::Lower => "Highest scores (lower is better)",
    };
    vec![heading(title), table(&["Question", ">Score", "Gold", "Answer"], rows.collect())]
}

pub(super) fn errors(summary: &Summary) -> Vec<Block> {
    let counts = |title: &str, column: &str, of: &BTreeMap<String, u64>| {
        let rows = of.iter().map(|(code, n)| vec![one_line(code, TEXT_WIDTH), count(*n)]).collect();
        if of.is_empty() { Vec::new() } else { vec![heading(title), table(&[column, ">Questions"], rows)] }
    };
    let mut blocks = counts("Infrastructure errors", "Error", &summary.errors);
    if !summary.error_examples.is_empty() {
        let said = |code: &String| summary.error_examples.get(code).map_or(NONE, String::as_str);
        let row =
            |(code, n): (&String, &u64)| vec![one_line(code, TEXT_WIDTH), count(*n), one_line(said(code), ERROR_WIDTH)];
        let rows = summary.errors.iter().map(row).collect();
        blocks = vec![heading("Infrastructure errors"), table(&["Error", ">Questions", "One of them"], rows)];
    }
    blocks.extend(counts("Answers that did not end by themselves", "End", &summary.replies));
    blocks
}
