//! STEP 7: a [`Summary`](bench_proto::summary::Summary) as json, md, csv, junit and a terminal table; question lines as
//! JSON lines. Rendering only: files are written by the caller.
//!
//! | file | holds |
//! |---|---|
//! | [`registry`] | the list of formats: a new one is a file and a line there |
//! | [`json`], [`markdown`], [`csv`], [`junit`] | one format each |
//! | [`terminal`] | the table that `submit` and `report` print |
//! | [`questions`] | `questions.jsonl`, streamed |
//! | `document` | what people read, as blocks that markdown and terminal (and later html) lay out |
//! | `figures` | how a number is written |

pub mod csv;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod questions;
pub mod registry;
pub mod terminal;

mod document;
mod figures;

pub use questions::QuestionsWriter;
pub use registry::{FORMATS, Format, RenderError, format_named};
