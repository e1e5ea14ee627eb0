//! `report.html`: one file that needs no network, with the result, the plots and a browser of the questions; and its relatives, the
//! page of a comparison and the page of all runs.
//!
//! | file | holds |
//! |---|---|
//! | `page` | the page of a run; what it does is in `script/`, what it looks like in `page.css` |
//! | `data` | its questions as JSON; texts that several of them share (hits, most of all) travel once |
//! | `beside` | what is told of a question beside its line in `questions.jsonl` |
//! | `flips` | the page of a comparison, with both answers of each flip side by side |
//! | `index` | the page of the runs of a store |
//! | `plain` | a page without questions: load, repeats, a matrix |

mod beside;
mod data;
mod flips;
mod index;
mod page;
mod plain;

use std::collections::HashMap;

use bench_proto::{
    comparison::Comparison,
    summary::{QuestionLine, Summary},
};

pub use beside::{Beside, EvidenceBy, Piece, SentPrompt, evidence_by, missed, pieces};
pub use flips::{FlipLines, FlipsPage, flips};
pub use index::{IndexedLine, IndexedRun, index};
pub(crate) use page::STYLE;
pub use page::render;
pub(crate) use plain::of_document;
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
    /// What is told of questions beside their lines, by their ids.
    pub beside: Option<&'a HashMap<String, Beside>>,
    /// A comparison with a baseline.
    pub comparison: Option<&'a Comparison>,
    /// Where traces can be seen; `{trace_id}` stands for the trace.
    pub trace_url: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// A page with nothing beside a summary and its questions.
    #[must_use]
    pub const fn new(summary: &'a Summary, questions: &'a [QuestionLine]) -> Self {
        Self { summary, questions, beside: None, comparison: None, trace_url: None }
    }
}
