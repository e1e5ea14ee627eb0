//! How other harnesses read their judges' replies, each under a name, so that a figure can say how it was read. What they make of
//! sloppy replies is theirs: a form here fails only where its original raises an error.
//!
//! Runs that count as others do name one of these; our own rubrics never do.

use serde_json::{Map, Value};

use super::{
    Reply, ReplyError, ReplyForm,
    forms::{in_two_digits, yes},
    reply::json_of,
};

/// A form of replies that another harness reads.
pub struct Lenient {
    name: &'static str,
    about: &'static str,
    max_tokens: u32,
    read: fn(&str) -> Result<Reply, ReplyError>,
}

/// Every such form, by the name that runs say.
pub static LENIENT: [Lenient; 12] = [
    Lenient {
        name: "yes-anywhere",
        about: "LongMemEval's authors: right where the reply contains 'yes' in any case ('yesterday' too)",
        max_tokens: 10,
        read: |reply| Ok(yes(reply.to_lowercase().contains("yes"))),
    },
    Lenient {
        name: "yes-first",
        about: "Astrocyte: right where the reply begins with 'yes', after '.:!-' and white space at its ends",
        max_tokens: 4,
        read: |reply| {
            let reply = reply.to_lowercase();
            let text = reply.trim_matches(|c: char| c.is_whitespace() || ".:!-".contains(c));
            Ok(yes(text.starts_with("yes")))
        },
    },
    Lenient {
        name: "jeffs-yes-no",
        about: "jeffs-brain's Go harness: right where the reply contains 'yes', else wrong where it contains 'no' ('unknown' too)",
        max_tokens: 10,
        read: |reply| {
            let reply = reply.to_lowercase();
            match (reply.contains("yes"), reply.contains("no")) {
                (true, _) => Ok(yes(true)),
                (false, true) => Ok(yes(false)),
                (false, false) => Err(ReplyError("the judge's reply says neither 'yes' nor 'no'".to_owned())),
            }
        },
    },
    Lenient {
        name: "jeffs-first-number",
        about: "jeffs-brain: the JSON's score, else the first number in the reply, cut to 0 to 1; else 0",
        max_tokens: 256,
        read: first_number,
    },
    Lenient {
        name: "amplihack-score",
        about: "amplihack: the score of the JSON that the reply is, that a code fence holds, or that lies between its first and last brace",
        max_tokens: 500,
        read: |reply| {
            let object = extracted(reply).ok_or_else(|| ReplyError("the judge's reply holds no JSON".to_owned()))?;
            let score = object.get("score").and_then(Value::as_f64);
            let score = score.ok_or_else(|| ReplyError("the judge's JSON has no score that is a number".to_owned()))?;
            let value = score.clamp(0.0, 1.0).abs();
            Ok(Reply::Score { value, parts: Vec::new(), word: in_two_digits(value) })
        },
    },
    Lenient {
        name: "mem0-label",
        about: "mem0: right where the JSON's label is exactly CORRECT; a reply without JSON or label fails",
        max_tokens: 256,
        read: |reply| Ok(yes(field(&object(reply)?, "label")? == "CORRECT")),
    },
    Lenient {
        name: "memmachine-label",
        about: "MemMachine: as mem0, but the label is trimmed and may be of any case",
        max_tokens: 256,
        read: |reply| Ok(yes(text_of(&object(reply)?, "label")?.trim().to_uppercase() == "CORRECT")),
    },
    Lenient {
        name: "evermemos-label",
        about: "EverMemOS: right where the first JSON object in the reply has the label CORRECT in any case; else wrong",
        max_tokens: 512,
        read: |reply| {
            let found = first_object(reply);
            let label = found.as_ref().and_then(|object| object.get("label")?.as_str());
            Ok(yes(label.is_some_and(|label| label.trim().to_uppercase() == "CORRECT")))
        },
    },
    Lenient {
        name: "zep-is-correct",
        about: "Zep: right where the JSON's is_correct is 'correct' in any case",
        max_tokens: 256,
        read: |reply| Ok(yes(text_of(&object(reply)?, "is_correct")?.trim().to_lowercase() == "correct")),
    },
    Lenient {
        name: "hindsight-boolean",
        about: "Hindsight and AMB: the JSON's correct, which is true or false",
        max_tokens: 512,
        read: |reply| match field(&object(reply)?, "correct")? {
            Value::Bool(correct) => Ok(yes(*correct)),
            other => Err(ReplyError(format!("the judge's correct is {other}, not true or false"))),
        },
    },
    Lenient {
        name: "memorybench-score",
        about: "memorybench: the score 1 of the JSON in the reply; without JSON whether \"correct\" occurs in quotes and \"incorrect\" does not",
        max_tokens: 512,
        read: |reply| Ok(yes(memorybench(reply))),
    },
    Lenient {
        name: "convomem-right-wrong",
        about: "ConvoMem: right where 'right' occurs and 'wrong' does not; a reply with neither fails",
        max_tokens: 256,
        read: |reply| {
            let reply = reply.to_lowercase();
            match (reply.contains("right"), reply.contains("wrong")) {
                (_, true) => Ok(yes(false)),
                (true, false) => Ok(yes(true)),
                (false, false) => Err(ReplyError("the judge's reply says neither 'right' nor 'wrong'".to_owned())),
            }
        },
    },
];

/// The lenient form of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Lenient> {
    LENIENT.iter().find(|form| form.name == name)
}

impl Lenient {
    /// Whose it is and what it takes for right, in a line.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.about
    }
}

impl std::fmt::Debug for Lenient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lenient").field(&self.name).finish()
    }
}

impl ReplyForm for Lenient {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        None
    }

    fn max_tokens(&self) -> u32 {
        self.max_tokens
    }

    fn tokens(&self) -> (u64, u64) {
        // where there is room for no more than a word or two
        if self.max_tokens <= 10 { (1, 2) } else { (10, 18) }
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        (self.read)(reply)
    }
}

/// The reply as a JSON object, alone or in a code fence.
fn object(reply: &str) -> Result<Map<String, Value>, ReplyError> {
    serde_json::from_str(json_of(reply))
        .map_err(|error| ReplyError(format!("the judge's reply is no JSON object: {error}")))
}

fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, ReplyError> {
    object.get(name).ok_or_else(|| ReplyError(format!("the judge's JSON has no {name}")))
}

fn text_of<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, ReplyError> {
    field(object, name)?.as_str().ok_or_else(|| ReplyError(format!("the judge's {name} is no text")))
}

/// The first JSON object that begins somewhere in a text. Braces that begin none are passed over, a bounded number of them.
fn first_object(text: &str) -> Option<Map<String, Value>> {
    const MOST_BRACES: usize = 100;
    let begins = text.match_indices('{').take(MOST_BRACES);
    begins.into_iter().find_map(|(at, _)| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok())
}

/// The JSON that a text is, that its first code fence holds, or that lies between its first brace and its last.
fn extracted(text: &str) -> Option<Value> {
    let text = text.trim();
    let fenced = || {
        let inside = text.split_once("```")?.1.split_once("```")?.0;
        Some(inside.strip_prefix("json").unwrap_or(inside))
    };
    let json = |text: &str| serde_json::from_str(text.trim()).ok();
    json(text).or_else(|| json(fenced()?)).or_else(|| json(between_braces(text)?))
}

/// From the first opening brace to the last closing one.
fn between_braces(text: &str) -> Option<&str> {
    let (begin, end) = text.find('{').zip(text.rfind('}'))?;
    text.get(begin..=end)
}

/// A score as Python's `float` takes it from JSON; a missing one is 0.
fn first_number(reply: &str) -> Result<Reply, ReplyError> {
    let of_json = match serde_json::from_str::<Value>(reply) {
        Ok(Value::Object(object)) => match object.get("score") {
            None => Some(0.0),
            Some(Value::Bool(value)) => Some(f64::from(u8::from(*value))),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok().filter(|number: &f64| !number.is_nan()),
            Some(_) => None,
        },
        Ok(_) => return Err(ReplyError("the judge's JSON is no object".to_owned())),
        Err(_) => None,
    };
    let value = of_json.or_else(|| number_in(reply)).unwrap_or(0.0).clamp(0.0, 1.0).abs();
    Ok(Reply::Score { value, parts: Vec::new(), word: in_two_digits(value) })
}

/// The first number in a text: digits, with a sign before them and a fraction behind them where there is one.
fn number_in(text: &str) -> Option<f64> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let digits = |from: usize| from + text[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - from);
    let whole = digits(begin);
    let end = match text[whole..].strip_prefix('.') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => digits(whole + 1),
        _ => whole,
    };
    let number: f64 = text[begin..end].parse().ok()?;
    Some(if text[..begin].ends_with('-') { -number } else { number })
}

fn memorybench(reply: &str) -> bool {
    match between_braces(reply).and_then(|object| serde_json::from_str::<Map<String, Value>>(object).ok()) {
        Some(object) => object.get("score").and_then(Value::as_f64) == Some(1.0),
        None => {
            let reply = reply.to_lowercase();
            reply.contains("\"correct\"") && !reply.contains("\"incorrect\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::reference;

    /// The grade, none where the reading fails.
    fn grade(form: &str, reply: &str) -> Option<f64> {
        match find(form).expect("is known").read(reply) {
            Ok(Reply::Score { value, .. }) => Some(value),
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        }
    }

    /// The vectors of a section, as many as were published.
    fn vectors(section: &str, published: usize) -> Vec<Value> {
        let Some(all) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return Vec::new() };
        let vectors = reference::list(&all["sections"][section]["vectors"]);
        assert_eq!(vectors.len(), published, "{section}");
        vectors.to_vec()
    }

    #[test]
    fn vectors_yes_no_parse() {
        for vector in vectors("yes_no_parse", 8) {
            let raw = reference::str(&vector["raw"]);
            let anywhere = vector["official_contains_yes"].as_bool().expect("a truth value");
            assert_eq!(grade("yes-anywhere", raw), Some(f64::from(u8::from(anywhere))), "{raw}");
            assert_eq!(grade("yes-first", raw), vector["astrocyte"].as_f64(), "{raw}");
        }
    }

    #[test]
    fn vectors_jeffs_go_parse_yes_no() {
        let Some(all) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let vectors = reference::list(&all["sections"]["jeffs_go"]["vectors"]["parse_yes_no"]);
        assert_eq!(vectors.len(), 9);
        for vector in vectors {
            // of questions without an answer the same word is called otherwise
            let expected =
                vector["verdict"].as_str().map(|verdict| f64::from(u8::from(!verdict.contains("incorrect"))));
            assert_eq!(vector["error"].is_string(), expected.is_none(), "{vector}");
            assert_eq!(grade("jeffs-yes-no", reference::str(&vector["raw"])), expected, "{vector}");
        }
    }

    #[test]
    fn vectors_jeffs_judge_parse_score() {
        for vector in vectors("jeffs_judge_parse_score", 6) {
            let content = reference::str(&vector["content"]);
            assert_eq!(grade("jeffs-first-number", content), vector["score"].as_f64(), "{content}");
        }
    }

    #[test]
    fn vectors_amplihack_extract_json() {
        let Some(all) = reference::json("vectors/hebb-amplihack-precisionmembench.json") else { return };
        let cases = reference::list(&all["amplihack_extract_json"]["cases"]);
        assert_eq!(cases.len(), 3);
        for case in cases {
            let text = reference::str(&case["text"]);
            let expected = Some(&case["result"]).filter(|result| result.is_object());
            assert_eq!(extracted(text).as_ref(), expected, "{text}");
            assert_eq!(grade("amplihack-score", text), expected.and_then(|result| result["score"].as_f64()), "{text}");
        }
    }

    #[test]
    fn each_reads_as_its_original_does() {
        for (form, reply, expected) in [
            ("yes-anywhere", "Yesterday", Some(1.0)),
            ("yes-anywhere", "no", Some(0.0)),
            ("yes-first", "- Yes!", Some(1.0)),
            ("yes-first", "\"yes\"", Some(0.0)),
            ("jeffs-first-number", r#"{"score": true}"#, Some(1.0)),
            ("jeffs-first-number", r#"{"score": null, "of": 7}"#, Some(1.0)),
            ("jeffs-first-number", "[1]", None),
            ("jeffs-first-number", "about -0.5 or 1", Some(0.0)),
            ("jeffs-first-number", "0.25.", Some(0.25)),
            ("amplihack-score", "So:\n```json\n{\"score\": 0.5}\n``` {", Some(0.5)),
            ("amplihack-score", "```\n{\"score\": 7}\n```", Some(1.0)),
            ("amplihack-score", "{\"grade\": 1}", None),
            ("amplihack-score", "} {", None),
            ("mem0-label", r#"{"label": "CORRECT"}"#, Some(1.0)),
            ("mem0-label", r#"{"label": "Correct"}"#, Some(0.0)),
            ("mem0-label", r#"{"label": true}"#, Some(0.0)),
            ("mem0-label", "CORRECT", None),
            ("mem0-label", r#"{"verdict": "CORRECT"}"#, None),
            ("memmachine-label", r#"{"label": " correct "}"#, Some(1.0)),
            ("memmachine-label", r#"{"label": "WRONG"}"#, Some(0.0)),
            ("memmachine-label", r#"{"label": 1}"#, None),
            ("evermemos-label", "{so} I say {\"label\": \"Correct\"}, since", Some(1.0)),
            ("evermemos-label", "CORRECT", Some(0.0)),
            ("evermemos-label", "{\"reason\": 1} {\"label\": \"CORRECT\"}", Some(0.0)),
            ("zep-is-correct", r#"{"is_correct": "Correct", "reasoning": "x"}"#, Some(1.0)),
            ("zep-is-correct", r#"{"is_correct": "incorrect"}"#, Some(0.0)),
            ("zep-is-correct", r#"{"is_correct": true}"#, None),
            ("hindsight-boolean", r#"{"correct": true, "reasoning": "x"}"#, Some(1.0)),
            ("hindsight-boolean", r#"{"correct": "true"}"#, None),
            ("memorybench-score", "So: {\"score\": 1.0, \"label\": \"incorrect\"} done", Some(1.0)),
            ("memorybench-score", r#"{"score": true}"#, Some(0.0)),
            ("memorybench-score", "the label is \"Correct\"", Some(1.0)),
            ("memorybench-score", "{\"score\": 1, \"label\": \"correct\"", Some(1.0)),
            ("memorybench-score", "correct", Some(0.0)),
            ("memorybench-score", "} \"incorrect\" {", Some(0.0)),
            ("convomem-right-wrong", "RIGHT.", Some(1.0)),
            ("convomem-right-wrong", "It is right, not wrong.", Some(0.0)),
            ("convomem-right-wrong", "maybe", None),
        ] {
            assert_eq!(grade(form, reply), expected, "{form}: {reply}");
        }
    }

    #[test]
    fn names_are_unique_and_all_are_told_about() {
        for form in &LENIENT {
            assert!(LENIENT.iter().filter(|other| other.name == form.name).count() == 1 && !form.about().is_empty());
            assert_eq!(form.schema(), None, "{}: a schema would forbid what it forgives", form.name);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_grade_outside_the_range(text in "\\PC{0,60}|[{}\":a-z 0-9.-]{0,60}") {
            for form in &LENIENT {
                if let Ok(Reply::Score { value, .. }) = form.read(&text) {
                    prop_assert!((0.0..=1.0).contains(&value), "{} {}", form.name, text);
                }
            }
        }
    }
}
