//! The judge's reply: a JSON object with reasoning and verdict, read strictly.
//!
//! The verdict must be exactly one of two words behind a JSON parser. Text is never searched: "incorrect" contains
//! "correct". What cannot be read is an error, to be retried and then counted as a failure of the judge, not of the answer.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::prompts::without_fence;

/// Version of the parser.
pub const VERSION: u32 = 1;

/// Name of the schema in requests.
pub const SCHEMA_NAME: &str = "verdict";

/// A judge's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer is right.
    pub correct: bool,
    /// Why, in the judge's words.
    pub reasoning: String,
}

impl Verdict {
    /// The verdict's word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        if self.correct { "correct" } else { "incorrect" }
    }

    /// The grade: 1 or 0.
    #[must_use]
    pub fn score(&self) -> f64 {
        f64::from(u8::from(self.correct))
    }
}

/// The reply is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerdictError {
    /// Not one JSON object of the wanted form.
    #[error("the judge's reply is not the wanted JSON: {0}")]
    Form(String),
    /// Another word than the two.
    #[error("the judge's verdict is '{0}', not 'correct' or 'incorrect'")]
    Word(String),
}

/// The JSON schema of a reply.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reasoning": { "type": "string" },
            "verdict": { "type": "string", "enum": ["correct", "incorrect"] }
        },
        "required": ["reasoning", "verdict"],
        "additionalProperties": false
    })
}

/// Reads a reply: the JSON object alone, or in one code fence.
///
/// # Errors
/// [`VerdictError`] for everything else: text around the object, other words, missing, repeated or further fields.
pub fn parse(reply: &str) -> Result<Verdict, VerdictError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Reply {
        reasoning: String,
        verdict: String,
    }
    let Reply { reasoning, verdict } =
        serde_json::from_str(without_fence(reply.trim())).map_err(|error| VerdictError::Form(error.to_string()))?;
    match verdict.as_str() {
        "correct" => Ok(Verdict { correct: true, reasoning }),
        "incorrect" => Ok(Verdict { correct: false, reasoning }),
        _ => Err(VerdictError::Word(verdict)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_two_words() {
        for (reply, correct) in [
            (r#"{"reasoning": "same date", "verdict": "correct"}"#, true),
            (r#" {"verdict":"incorrect","reasoning":""} "#, false),
            ("```json\n{\"reasoning\": \"It is INCORRECT to say correct\", \"verdict\": \"incorrect\"}\n```", false),
            ("```\n{\"reasoning\": \"x\", \"verdict\": \"correct\"}\n```\n", true),
            (r#"{"reasoning": "verdict: incorrect", "verdict": "correct"}"#, true),
        ] {
            let verdict = parse(reply).expect("a strict reply is read");
            assert_eq!(
                (verdict.correct, verdict.word() == "correct", verdict.score()),
                (correct, correct, f64::from(u8::from(correct)))
            );
        }
    }

    #[test]
    fn everything_else_is_an_error() {
        for reply in [
            "",
            "correct",
            "CORRECT",
            "INCORRECT",
            "The answer is correct.",
            r#""correct""#,
            r#"{"verdict": "correct"}"#,
            r#"{"reasoning": "x"}"#,
            r#"{"reasoning": "x", "verdict": "CORRECT"}"#,
            r#"{"reasoning": "x", "verdict": "INCORRECT"}"#,
            r#"{"reasoning": "x", "verdict": "correct."}"#,
            r#"{"reasoning": "x", "verdict": " correct"}"#,
            r#"{"reasoning": "x", "verdict": "partially correct"}"#,
            r#"{"reasoning": "x", "verdict": true}"#,
            r#"{"reasoning": null, "verdict": "correct"}"#,
            r#"{"reasoning": "x", "verdict": "correct", "verdict": "incorrect"}"#,
            r#"{"reasoning": "x", "verdict": "correct", "score": 1}"#,
            r#"[{"reasoning": "x", "verdict": "correct"}]"#,
            r#"{"reasoning": "x", "verdict": "correct"} and {"reasoning": "x", "verdict": "incorrect"}"#,
            r#"Here: {"reasoning": "x", "verdict": "correct"}"#,
            "```json\n{\"reasoning\": \"x\", \"verdict\": \"correct\"}\n``` That is all.",
            r#"{"reasoning": "x", "verdict": "correct""#,
            "```",
        ] {
            assert!(parse(reply).is_err(), "{reply}");
        }
        let message = |reply| parse(reply).err().map(|error| error.to_string()).unwrap_or_default();
        insta::assert_snapshot!(
            message(r#"{"reasoning": "x", "verdict": "INCORRECT"}"#),
            @"the judge's verdict is 'INCORRECT', not 'correct' or 'incorrect'"
        );
        insta::assert_snapshot!(
            message("correct"),
            @"the judge's reply is not the wanted JSON: expected value at line 1 column 1"
        );
    }

    proptest! {
        #[test]
        fn no_text_is_mistaken_for_a_verdict(text in "\\PC{0,60}|.{0,10}(in)?correct.{0,10}|[`{}\":, a-z]{0,40}") {
            if let Ok(verdict) = parse(&text) {
                let value: Value = serde_json::from_str(without_fence(text.trim())).expect("it was read as JSON");
                prop_assert_eq!(value["verdict"].as_str(), Some(verdict.word()));
            }
        }

        #[test]
        fn reasoning_never_decides(reasoning in "\\PC{0,60}", correct: bool) {
            let word = if correct { "correct" } else { "incorrect" };
            let reply = json!({ "reasoning": reasoning.clone(), "verdict": word }).to_string();
            prop_assert_eq!(parse(&reply), Ok(Verdict { correct, reasoning }));
        }
    }
}
