//! What an answer is worth: scorers, and the prompts of answerers and judges with the reading of their verdicts.
//!
//! In: an answer, what the dataset holds for its question, and what was found for it. Out: numbers by name, or the text of a
//! request and the verdict in its reply. No I/O: who asks a model is the worker. Start at `scorers::registry`,
//! `judging::rubric` and `judging`, the programs of calls that rubrics are; `scorers::self_check` proves before a run that its scorer works.

pub mod counting;
pub mod holdings;
pub mod judging;
pub mod planting;
pub mod prompts;
pub mod scorers;
