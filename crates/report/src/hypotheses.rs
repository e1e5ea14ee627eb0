//! Answers as the programs of LongMemEval's authors read them: lines of `{"question_id", "hypothesis"}`.

use std::io::{self, Write};

use bench_proto::{summary::QuestionLine, text};
use serde_json::json;

/// Writes the answers of questions to any writer, one JSON object per line. Buffering is the caller's choice.
#[derive(Debug)]
pub struct HypothesesWriter<W: Write> {
    out: W,
    left_out: u64,
}

impl<W: Write> HypothesesWriter<W> {
    /// A writer to `out`.
    pub const fn new(out: W) -> Self {
        Self { out, left_out: 0 }
    }

    /// Writes the answer to a question; one without an answer is left out, as a line would make an empty answer of it.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&mut self, question: &QuestionLine) -> io::Result<()> {
        let Some(answer) = &question.answer else {
            self.left_out += 1;
            return Ok(());
        };
        let line = json!({ "question_id": question.question_id, "hypothesis": answer }).to_string();
        // characters that would drive a terminal are escaped
        writeln!(self.out, "{}", text::json(&line))
    }

    /// Flushes and gives the number of questions without an answer.
    ///
    /// # Errors
    /// When `out` cannot be flushed.
    pub fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tests::question;

    #[test]
    fn a_line_for_each_answer_and_none_for_what_was_not_answered() {
        let mut out = Vec::new();
        let mut lines = HypothesesWriter::new(&mut out);
        for answer in [Some("a \"quoted\"\nanswer \u{1b}".to_owned()), None, Some(String::new())] {
            lines.write(&QuestionLine { answer, ..question() }).expect("writes");
        }
        assert_eq!(lines.finish().expect("flushes"), 1);
        let text = String::from_utf8(out).expect("is UTF-8");
        insta::assert_snapshot!(text, @r#"
        {"hypothesis":"a \"quoted\"\nanswer \u001b","question_id":"conv-26:0"}
        {"hypothesis":"","question_id":"conv-26:0"}
        "#);
    }
}
