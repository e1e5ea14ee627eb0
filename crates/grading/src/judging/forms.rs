//! Strict forms: JSON that a server can be held to, with the reasoning before the grade, and `yes` or `no` alone.

use bench_proto::text::not_finite;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{MOST_CALLS, Reply, ReplyError, ReplyForm, reply::json_of};

/// Reads a reply that is one JSON object, alone or in a code fence.
fn object<T: DeserializeOwned>(reply: &str) -> Result<T, ReplyError> {
    let json = json_of(reply);
    let wanted = |error| match not_finite(json) {
        Some(number) => ReplyError(format!("the judge's reply holds {number}, which is not a finite number")),
        None => ReplyError(format!("the judge's reply is not the wanted JSON: {error}")),
    };
    serde_json::from_str(json).map_err(wanted)
}

/// The schema of an object with reasoning and a field, whose name comes after it in the alphabet: models write fields in the order of
/// the schema, which is sorted, and are to think before they grade.
fn schema(field: &str, value: Value) -> Value {
    let properties = Map::from_iter([("reasoning".to_owned(), json!({ "type": "string" })), (field.to_owned(), value)]);
    json!({ "type": "object", "properties": properties, "required": ["reasoning", field], "additionalProperties": false })
}

/// A grade from 0 to 1 as it stands in a field.
fn in_range(field: &str, value: f64) -> Result<f64, ReplyError> {
    let is_grade = (0.0..=1.0).contains(&value);
    is_grade.then_some(value).ok_or_else(|| ReplyError(format!("the judge's {field} is {value}, not from 0 to 1")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scored {
    #[serde(rename = "reasoning")]
    _reasoning: String,
    score: f64,
}

/// Whether one criterion is met: 0, 0.5 or 1, with a reason.
#[derive(Debug)]
pub struct Criterion;

impl ReplyForm for Criterion {
    fn name(&self) -> &'static str {
        "criterion"
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        Some(schema("score", json!({ "type": "number", "enum": [0, 0.5, 1] })))
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        let Scored { score, .. } = object(reply)?;
        let word = match score {
            0.0 => "not met",
            0.5 => "partly met",
            1.0 => "met",
            _ => return Err(ReplyError(format!("the judge's score is {score}, not 0, 0.5 or 1"))),
        };
        // 0 and not -0, which some JSON spells
        Ok(Reply::Score { value: score.abs(), parts: Vec::new(), word: word.to_owned() })
    }
}

/// How right an answer is: from 0 to 1, with a reason.
#[derive(Debug)]
pub struct Graded;

impl ReplyForm for Graded {
    fn name(&self) -> &'static str {
        "graded"
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        Some(schema("score", grade_schema()))
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        let Scored { score, .. } = object(reply)?;
        let value = in_range("score", score)?.abs();
        Ok(Reply::Score { value, parts: Vec::new(), word: in_two_digits(value) })
    }
}

fn grade_schema() -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
}

/// A grade as a word for people.
pub(super) fn in_two_digits(grade: f64) -> String {
    format!("{grade:.2}")
}

/// Several grades in one reply, each from 0 to 1 under its name, with a reason.
#[derive(Debug)]
pub struct Grades {
    /// The form's name.
    pub name: &'static str,
    /// Names of the grades, in the order in which they are asked for.
    pub of: &'static [&'static str],
}

impl ReplyForm for Grades {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        let properties: Map<String, Value> = self.of.iter().map(|name| ((*name).to_owned(), grade_schema())).collect();
        let scores =
            json!({ "type": "object", "properties": properties, "required": self.of, "additionalProperties": false });
        Some(schema("scores", scores))
    }

    fn max_tokens(&self) -> u32 {
        512
    }

    /// The reasoning, and each grade with its name.
    fn tokens(&self) -> (u64, u64) {
        let grades = self.of.len() as u64;
        (10 + 6 * grades, 18 + 8 * grades)
    }

    /// The value is the mean of the grades; what else it may be is for the program to say.
    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Several {
            #[serde(rename = "reasoning")]
            _reasoning: String,
            scores: NoRepeats,
        }
        let Several { scores: NoRepeats(mut scores), .. } = object(reply)?;
        let mut grade = |name: &&'static str| {
            let given = scores.remove(*name).and_then(|grade| grade.as_f64());
            let given = given.ok_or_else(|| ReplyError(format!("the judge's scores have no number for {name}")))?;
            Ok((*name, in_range(name, given)?.abs()))
        };
        let parts: Vec<(&'static str, f64)> = self.of.iter().map(&mut grade).collect::<Result<_, ReplyError>>()?;
        if let Some(name) = scores.keys().next() {
            return Err(ReplyError(format!("the judge's scores have '{name}', which was not asked for")));
        }
        let value = parts.iter().map(|(_, grade)| grade).sum::<f64>() / parts.len().max(1) as f64;
        Ok(Reply::Score { value, parts, word: in_two_digits(value) })
    }
}

/// A JSON object in which no field stands twice.
struct NoRepeats(Map<String, Value>);

impl<'de> Deserialize<'de> for NoRepeats {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> serde::de::Visitor<'de> for Fields {
            type Value = NoRepeats;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<NoRepeats, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.insert(name.clone(), value).is_some() {
                        return Err(serde::de::Error::custom(format!("field '{name}' stands twice")));
                    }
                }
                Ok(NoRepeats(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Which of several things it is, by its number from 1, or 0 for none of them; with a reason.
#[derive(Debug, Clone, Copy)]
pub struct Match {
    of: u32,
}

/// One form for each number of things.
static MATCHES: [Match; MOST_CALLS as usize + 1] = {
    let mut forms = [Match { of: 0 }; MOST_CALLS as usize + 1];
    let mut of = 0;
    while of <= MOST_CALLS {
        forms[of as usize].of = of;
        of += 1;
    }
    forms
};

impl Match {
    /// The form for a choice among so many things; none for more than [`MOST_CALLS`].
    #[must_use]
    pub fn among(things: usize) -> Option<&'static Self> {
        MATCHES.get(things)
    }
}

impl ReplyForm for Match {
    fn name(&self) -> &'static str {
        "match"
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        let numbers: Vec<u32> = (0..=self.of).collect();
        Some(schema("which", json!({ "type": "integer", "enum": numbers })))
    }

    fn example(&self) -> Reply {
        Reply::Match((self.of > 0).then_some(0))
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Matched {
            #[serde(rename = "reasoning")]
            _reasoning: String,
            which: u32,
        }
        let Matched { which, .. } = object(reply)?;
        if which > self.of {
            return Err(ReplyError(format!("the judge's choice is {which}, there are {}", self.of)));
        }
        Ok(Reply::Match(which.checked_sub(1).map(|place| place as usize)))
    }
}

/// `yes` or `no` and nothing else, in any case and with or without a full stop.
#[derive(Debug)]
pub struct YesNo;

impl ReplyForm for YesNo {
    fn name(&self) -> &'static str {
        "yes-no"
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> Option<Value> {
        None
    }

    fn max_tokens(&self) -> u32 {
        10
    }

    fn tokens(&self) -> (u64, u64) {
        (1, 2)
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        let text = reply.trim();
        match text.strip_suffix('.').unwrap_or(text).to_lowercase().as_str() {
            "yes" => Ok(yes(true)),
            "no" => Ok(yes(false)),
            _ => Err(ReplyError("the judge's reply is neither 'yes' nor 'no'".to_owned())),
        }
    }
}

/// What a reply of two values says.
pub(super) fn yes(is_right: bool) -> Reply {
    let word = if is_right { "correct" } else { "incorrect" };
    Reply::Score { value: f64::from(u8::from(is_right)), parts: Vec::new(), word: word.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static PAIR: Grades = Grades { name: "pair", of: &["first", "second"] };

    fn strict() -> [&'static dyn ReplyForm; 5] {
        [&Criterion, &Graded, &PAIR, Match::among(3).expect("few"), &YesNo]
    }

    fn value(form: &dyn ReplyForm, reply: &str) -> Option<f64> {
        match form.read(reply) {
            Ok(Reply::Score { value, .. }) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn replies_are_expected_to_be_as_long_as_their_form() {
        let expected = |form: &dyn ReplyForm| form.tokens().1;
        assert!(expected(&YesNo) < expected(&Criterion) && expected(&Criterion) < expected(&PAIR));
        let lenient = crate::judging::lenient::LENIENT.iter().map(|form| form as &dyn ReplyForm);
        for form in strict().into_iter().chain(lenient) {
            let (low, expected) = form.tokens();
            assert!(low <= expected && expected <= form.max_tokens().into(), "{}", form.name());
        }
    }

    #[test]
    fn a_criterion_has_three_grades() {
        let of = |score: &str| value(&Criterion, &format!(r#"{{"reasoning": "x", "score": {score}}}"#));
        assert_eq!(["0", "0.5", "1", "1.0", "-0.0"].map(of), [Some(0.0), Some(0.5), Some(1.0), Some(1.0), Some(0.0)]);
        assert_eq!(["0.25", "2", "-1", "\"1\"", "true", "null", "1e999"].map(of), [None; 7]);
    }

    #[test]
    fn a_grade_is_from_0_to_1() {
        let of = |score: &str| value(&Graded, &format!("```json\n{{\"score\": {score}, \"reasoning\": \"x\"}}\n```"));
        assert_eq!(["0", "0.83", "1"].map(of), [Some(0.0), Some(0.83), Some(1.0)]);
        assert_eq!(["1.01", "-0.1", "\"0.7\"", "[1]"].map(of), [None; 4]);
        assert!(Graded.read(r#"{"score": 1, "reasoning": "x", "reason": "y"}"#).is_err());
        assert!(Graded.read(r#"{"score": 1}"#).is_err() && Graded.read("I rate this 8/10").is_err());
    }

    #[test]
    fn a_grade_that_is_no_number_is_said_so_however_it_is_written() {
        for number in ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"] {
            let said = format!("the judge's reply holds {number}, which is not a finite number");
            let one = format!(r#"{{"reasoning": "x", "score": {number}}}"#);
            let several = format!(r#"{{"reasoning": "x", "scores": {{"first": 1, "second": {number}}}}}"#);
            let forms: [(&dyn ReplyForm, &str); 3] = [(&Graded, &one), (&Criterion, &one), (&PAIR, &several)];
            for (form, reply) in forms {
                assert_eq!(form.read(reply), Err(ReplyError(said.clone())), "{}", form.name());
            }
        }
        let beyond = Graded.read(r#"{"reasoning": "x", "score": 1e300}"#).expect_err("is no grade").to_string();
        assert!(beyond.ends_with("not from 0 to 1"), "{beyond}");
    }

    #[test]
    fn several_grades_come_together() {
        let read = PAIR.read(r#"{"reasoning": "x", "scores": {"second": 0.5, "first": 1}}"#);
        let parts = vec![("first", 1.0), ("second", 0.5)];
        assert_eq!(read, Ok(Reply::Score { value: 0.75, parts, word: "0.75".to_owned() }));
        for scores in [
            r#"{"first": 1}"#,
            r#"{"first": 1, "second": 2}"#,
            r#"{"first": 1, "second": null}"#,
            r#"{"first": 1, "second": 1, "third": 1}"#,
            r#"{"first": 1, "second": 1, "second": 0}"#,
            "[1, 1]",
            "1",
        ] {
            assert!(PAIR.read(&format!(r#"{{"reasoning": "x", "scores": {scores}}}"#)).is_err(), "{scores}");
        }
        assert!(PAIR.read(r#"{"scores": {"first": 1, "second": 1}}"#).is_err(), "no reasoning");
    }

    #[test]
    fn a_match_is_one_of_those_that_were_named() {
        let form = Match::among(3).expect("few");
        let of = |number: &str| form.read(&format!(r#"{{"reasoning": "x", "which": {number}}}"#)).ok();
        assert_eq!([of("0"), of("3")], [Some(Reply::Match(None)), Some(Reply::Match(Some(2)))]);
        assert_eq!(["4", "-1", "1.5", "\"1\"", "null"].map(of), [const { None }; 5]);
        assert!(Match::among(MOST_CALLS as usize).is_some() && Match::among(MOST_CALLS as usize + 1).is_none());
        let schema = form.schema().expect("has one");
        assert_eq!(schema["properties"]["which"], json!({ "type": "integer", "enum": [0, 1, 2, 3] }));
    }

    #[test]
    fn yes_and_no_stand_alone() {
        assert_eq!(["yes", " NO. ", "Yes."].map(|reply| value(&YesNo, reply)), [Some(1.0), Some(0.0), Some(1.0)]);
        for reply in ["", "yes, it is", "**Yes**", "nope", "yesterday", "yes no"] {
            assert!(YesNo.read(reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn models_think_before_they_grade() {
        let schemas: Vec<Value> = strict().iter().filter_map(|form| form.schema()).collect();
        assert_eq!(schemas.len(), 4, "all but one");
        for schema in schemas {
            let properties = schema["properties"].as_object().expect("an object");
            assert_eq!(properties.keys().next().map(String::as_str), Some("reasoning"), "{schema}");
            assert_eq!(schema["required"].as_array().map(Vec::len), Some(properties.len()), "{schema}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_grade_outside_the_range(text in "\\PC{0,40}|\\{\"reasoning\": \"\", \"(score|which)\": [-0-9.e]{1,6}\\}") {
            for form in strict() {
                if let Ok(Reply::Score { value, parts, .. }) = form.read(&text) {
                    prop_assert!((0.0..=1.0).contains(&value) && parts.iter().all(|(_, part)| (0.0..=1.0).contains(part)));
                }
            }
        }
    }
}
