//! What `import` asks for: one line a question.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "lines",
    about: "one object a question, as docs/CLI.md asks for",
    marks: "question_id",
    fields: &[
        (Ours::QuestionId, "question_id"),
        (Ours::Answer, "answer"),
        (Ours::Score, "score"),
        (Ours::Retrieved, "retrieved"),
        (Ours::Metric, "metric"),
    ],
    scale: 1.0,
};
