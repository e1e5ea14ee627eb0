//! From stored results to the summary, the report's files and what the person sees at the end.
//!
//! Everything streams page by page or bank by bank, so a million questions need no more memory than what is kept of each.
//!
//! | module | question |
//! |---|---|
//! | `shards` | how are all questions read, on all cores? |
//! | `summary` | what is the result of a run? |
//! | [`accounts_spent`] | what did the accounts of a metered run say meanwhile? |
//! | `unpriced` | of which models that its memory system called is no price known? |
//! | `ahead` | how is something read before it is asked for, and never much of it? |
//! | `started_again` | did processes of its memory system end before it? |
//! | `models` | where were its models, and what did they answer by? |
//! | `questions` | what is told of a single question? |
//! | `beside` | what does a page tell of it beside that? |
//! | `judgements` | what did its judges say, and which of several votes speaks for them? |
//! | [`repeats`] | what do the repeats of one run say together? |
//! | [`looks`] | is enough known before the last question? |
//! | [`steps`] | by which steps did a question come to what is kept of it? |
//! | `files` | what is written, and where? |
//! | `comparisons` | where do pages of two runs lie, and when do they go? |
//! | [`mlflow`] | how is it brought to an MLflow server? |
//! | [`wandb`] | how is it logged to Weights & Biases? |
//! | [`licence`] | may the texts of its dataset be handed on? |
//! | `own_answers` | what is known of answers of a run that somebody has graded? |
//! | [`corrected`] | what is its score without the errors of its judge? |
//! | `answer_key` | what would it be without the known mistakes of the dataset? |

pub(crate) mod accounts_spent;
mod ahead;
pub(crate) mod answer_key;
mod beside;
mod comparisons;
pub(crate) mod corrected;
mod files;
pub(crate) mod judgements;
pub(crate) mod licence;
pub(crate) mod looks;
pub(crate) mod mlflow;
pub(crate) mod models;
pub(crate) mod own_answers;
pub(crate) mod published;
mod questions;
pub(crate) mod repeats;
mod shards;
mod started_again;
pub(crate) mod steps;
mod summary;
mod unpriced;
pub(crate) mod wandb;

#[cfg(feature = "archive")]
pub(crate) use self::files::disk;
pub(crate) use self::{
    beside::{beside, told_questions},
    comparisons::{comparison_page, remove_comparisons},
    files::{
        OTHER_FOLDER, TERMINAL, check_file, check_format, check_run_folder, check_writable, could_be_written,
        file_name, folder_of, on_screen, page_file, page_in, print_page, render, render_summary, replace, run_folder,
        show_page, write_atomically, write_files, write_named, write_text,
    },
    questions::{each_question, facts_of_bank, questions_named, questions_of_bank},
    shards::read_facts,
    summary::{SELF_CHECK_EVENT, group_of, summary_of},
};
