//! `questions.jsonl`: one line per question, streamed.

use std::io::{self, Write};

use bench_proto::{summary::QuestionLine, text::json};

/// Writes question lines to any writer, one JSON object per line. Buffering is the caller's choice.
#[derive(Debug)]
pub struct QuestionsWriter<W: Write> {
    out: W,
    line: Vec<u8>,
    lines: u64,
}

impl<W: Write> QuestionsWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new(), lines: 0 }
    }

    /// Writes one question. A line reaches `out` whole or not at all, as far as `out` takes whole writes.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&mut self, question: &QuestionLine) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, question)?;
        self.line.push(b'\n');
        match std::str::from_utf8(&self.line) {
            // characters that would drive a terminal are escaped
            Ok(line) => self.out.write_all(json(line).as_bytes())?,
            Err(_) => self.out.write_all(&self.line)?,
        }
        self.lines += 1;
        Ok(())
    }

    /// Flushes and gives the writer and the number of lines back.
    ///
    /// # Errors
    /// When `out` cannot be flushed.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.out.flush()?;
        Ok((self.out, self.lines))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use bench_proto::{
        facts::Outcome,
        summary::{PhaseUsageLine, TimingLine},
    };

    use super::*;

    /// A question with an empty answer.
    pub(crate) fn question() -> QuestionLine {
        QuestionLine {
            prompts: Vec::new(),
            question_id: "conv-26:0".into(),
            bank_id: "conv-26".into(),
            category: "temporal".into(),
            facets: BTreeMap::new(),
            question: "two\nlines \u{2028} and \"quotes\"".into(),
            gold: None,
            answer: Some(String::new()),
            answered_by: None,
            outcome: Outcome::Abstained,
            scores: [("locomo-f1".to_owned(), 0.0)].into(),
            retrieved: vec![],
            searches: vec![],
            evidence: vec![],
            evidence_sessions: vec![],
            original_sessions: BTreeMap::new(),
            found: BTreeMap::new(),
            citations: vec![],
            failures: vec!["evidence_missing".into()],
            cause: None,
            judgements: vec![],
            error: None,
            usage: PhaseUsageLine::default(),
            timing_ms: TimingLine::default(),
            trace_id: "0".repeat(32),
            trace_url: None,
            attempts: 1,
        }
    }

    #[test]
    fn every_question_is_one_line_that_reads_back() {
        let question = question();
        let mut writer = QuestionsWriter::new(Vec::new());
        writer.write(&question).expect("writes to memory");
        writer.write(&question).expect("writes to memory");
        let (bytes, lines) = writer.finish().expect("flushes");
        assert_eq!(lines, 2);
        let text = String::from_utf8(bytes).expect("is UTF-8");
        assert_eq!(text.matches('\n').count(), 2);
        for line in text.lines() {
            assert_eq!(serde_json::from_str::<QuestionLine>(line).expect("reads back"), question);
        }
    }
}
