//! STEP 7: a [`Summary`](bench_proto::summary::Summary) as json, md, csv, junit and a terminal table; question lines as
//! JSON lines. Rendering only: files are written by the caller.
//!
//! In come a summary, the lines of its questions, or what was made of several runs (a comparison, a gate, a group); out come
//! texts, pages and pictures. Start reading at [`registry`], the formats of a run, then at `document`, which is what people
//! read of it.
//!
//! | file | holds |
//! |---|---|
//! | [`registry`] | the list of formats: a new one is a file and a line there |
//! | [`json`], [`markdown`], [`csv`], [`junit`] | one format each |
//! | [`html`] | one page with plots and a browser of the questions |
//! | [`svg`] | plots |
//! | [`every_eval_ever`] | a record of the shared schema of evaluation results |
//! | [`mlflow`], [`wandb`] | a result as MLflow and as Weights & Biases keep it |
//! | [`export`], `columns` | questions for other tools: CSV, Parquet |
//! | `archive` | durable results on object stores |
//! | [`terminal`] | what `submit` and `report` print: the page for a screen (`terminal/brief.rs`), or all of it |
//! | [`questions`] | `questions.jsonl`, streamed |
//! | [`hypotheses`] | answers as LongMemEval's programs read them |
//! | [`comparison`], [`gate`] | two runs side by side; a gate for terminal, pull request and CI |
//! | [`matrix`] | a grid of runs |
//! | [`repeats`] | the repeats of one run |
//! | [`published`] | a run among published results of its dataset |
//! | [`site`] | static pages of many runs: a leaderboard for each dataset, a page for each pair of systems |
//! | `document` | what people read of a run, as `blocks` that markdown, terminal and html lay out |
//! | `settings` | which settings of a memory system a result tells |
//! | `figures` | how a number is written |
//! | `escape` | text in XML and HTML |
//! | `words` | what a word means, said where it stands |

#[cfg(feature = "archive")]
pub mod archive;
#[cfg(feature = "parquet")]
pub mod columns;
pub mod comparison;
pub mod csv;
mod error;
pub mod every_eval_ever;
pub mod export;
pub mod gate;
pub mod html;
pub mod hypotheses;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod mlflow;
pub mod published;
pub mod questions;
pub mod registry;
pub mod repeats;
pub mod site;
pub mod svg;
pub mod terminal;
pub mod wandb;

mod blocks;
mod document;
mod escape;
mod figures;
#[cfg(test)]
mod golden;
mod settings;
mod words;

pub use document::grades_were_brought;
pub use error::RenderError;
pub use questions::QuestionsWriter;
pub use registry::{FORMATS, Format, Render, format_named};
