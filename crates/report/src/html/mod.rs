//! `report.html`: one file that needs no network, with the result, the plots and a browser of the questions.
//!
//! The page is made here; what it does is in `page.js`, what it looks like in `page.css`. Questions travel as JSON in the page,
//! texts that several questions share (hits, most of all) once.

mod data;
mod page;
mod plain;

use bench_proto::{
    comparison::Comparison,
    summary::{QuestionLine, Summary},
};

pub use page::render;
pub use plain::{Plain, plain};

/// Questions that a page holds; a page of more would be too heavy for a browser, and says so.
pub const MOST_QUESTIONS: usize = 10_000;

/// Everything that a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// What the run found.
    pub summary: &'a Summary,
    /// Its questions; those beyond [`MOST_QUESTIONS`] are left out.
    pub questions: &'a [QuestionLine],
    /// A comparison with a baseline.
    pub comparison: Option<&'a Comparison>,
    /// Where traces can be seen; `{trace_id}` stands for the trace.
    pub trace_url: Option<&'a str>,
}
