//! LongMemEval's JSON: an array of questions, each with a haystack of its own.

use serde::Deserialize;

use crate::locomo::schema::Answer;

/// A question with its haystack; long texts may be left out.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    pub(super) question_id: String,
    pub(super) question_type: String,
    pub(super) question: String,
    pub(super) answer: Option<Answer>,
    pub(super) question_date: String,
    pub(super) haystack_dates: Vec<String>,
    pub(super) haystack_session_ids: Vec<String>,
    pub(super) haystack_sessions: Vec<Vec<RawTurn>>,
    #[serde(default)]
    pub(super) answer_session_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawTurn {
    pub(super) role: String,
    pub(super) content: String,
    /// Whether it holds evidence; in whole haystacks only turns of evidence sessions say so.
    pub(super) has_answer: Option<bool>,
}

impl Record {
    /// Whether its haystack does not hold the answer. The authors' scripts look for the same part of the id.
    pub(super) fn is_abstention(&self) -> bool {
        self.question_id.contains("_abs")
    }
}
