//! Model judges: the calls of a rubric's program, each with a reply of a form that is strictly read.

use bench_grading::judging::{JudgeCall, Reply};
use bench_models::{ChatReply, ChatRequest, ReplySchema};
use bench_proto::{call::Phase, failure::Failure, spec::ModelSpec};
use serde_json::Value;

use crate::{
    calls::{AskedFor, Called, RunCaller, RunCallers, chat_request},
    ending::TaskEnd,
};

/// Temperature of votes after the first (P38): equal draws of a deterministic model would be one vote.
const VOTE_TEMPERATURE: f64 = 0.7;

/// A judge of a run.
pub(crate) struct Judge {
    caller: RunCaller,
    spec: ModelSpec,
    name: String,
}

impl Judge {
    /// The judge that a run names.
    pub(crate) fn build(callers: &RunCallers<'_>, spec: &ModelSpec) -> Result<Self, Failure> {
        Ok(Self { caller: callers.caller(spec, Phase::Judge)?, name: spec.display(), spec: spec.clone() })
    }

    /// `provider:name`, for the stored judgement.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes a call of a vote; its draw is the vote's number.
    pub(crate) async fn ask(&self, asked: AskedFor<'_>, call: &JudgeCall) -> Result<Called<Reply>, TaskEnd> {
        let request = judge_request(&self.spec, call, asked.question_id, asked.draw);
        let accept = |reply: &ChatReply| judged(call, reply);
        self.caller.call(asked, &request, &accept).await
    }
}

/// What a judge's reply says. Readers of other harnesses take any text for a verdict, also none at all: what a provider withholds
/// is no grade, and nobody's answer is wrong by it.
fn judged(call: &JudgeCall, reply: &ChatReply) -> Result<Reply, String> {
    match reply.finish.as_str() {
        "content_filter" => Err("the provider withheld the judge's reply".to_owned()),
        "refusal" => Err("the judge refused to grade".to_owned()),
        _ if reply.text.trim().is_empty() => Err("the judge's reply is empty".to_owned()),
        _ => call.form.read(&reply.text).map_err(|e| e.to_string()),
    }
}

/// What a judge is sent for a call of a vote on a question.
#[must_use]
pub fn judge_request(spec: &ModelSpec, call: &JudgeCall, question_id: &str, vote: u32) -> ChatRequest {
    let form = call.form;
    let schema = form.schema().map(|schema| ReplySchema { name: form.name().to_owned(), schema });
    let mut request = chat_request(spec, call.messages.clone(), schema, form.max_tokens());
    if vote > 0 {
        vary(&mut request.params, question_id, vote);
    }
    request
}

/// Makes a further vote an independent draw, where the model takes a temperature at all.
fn vary(params: &mut std::collections::BTreeMap<String, Value>, question_id: &str, vote: u32) {
    if params.contains_key("temperature") {
        params.insert("temperature".to_owned(), VOTE_TEMPERATURE.into());
    }
    if let Some(seed) = params.get("seed") {
        let hash = bench_proto::ids::Sha256Hash::of_bytes(format!("{seed}\n{question_id}\n{vote}").as_bytes());
        let seed = hash.0[..4].iter().fold(0_u32, |seed, byte| (seed << 8) | u32::from(*byte));
        params.insert("seed".to_owned(), seed.into());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_grading::{
        judging::lenient::{self, LENIENT, Lenient},
        prompts::Messages,
    };
    use serde_json::json;

    use super::*;

    fn varied(params: &Value, question_id: &str, vote: u32) -> BTreeMap<String, Value> {
        let mut params: BTreeMap<String, Value> = serde_json::from_value(params.clone()).expect("parameters");
        vary(&mut params, question_id, vote);
        params
    }

    #[test]
    fn p38_further_votes_are_draws_of_their_own() {
        let params = json!({"temperature": 0, "seed": 7, "top_p": 1});
        let second = varied(&params, "q1", 1);
        assert_eq!((&second["temperature"], &second["top_p"]), (&json!(0.7), &json!(1)));
        assert_eq!(second, varied(&params, "q1", 1), "the same vote is the same request");
        let seeds = [&params["seed"], &second["seed"]].map(Value::clone);
        for other in [varied(&params, "q1", 2), varied(&params, "q2", 1)] {
            assert!(!seeds.contains(&other["seed"]), "{seeds:?}: {other:?}");
        }
        let bare = json!({"top_p": 1});
        assert_eq!(json!(varied(&bare, "q1", 1)), bare, "a model that takes neither is sent neither");
    }

    #[test]
    fn a_judge_that_withholds_its_verdict_has_given_none_by_any_reader() {
        let said = |form: &'static Lenient, text: &str, finish: &str| {
            let messages = Messages { system: String::new(), user: "x".to_owned() };
            let reply = ChatReply { text: text.to_owned(), finish: finish.to_owned(), ..ChatReply::default() };
            judged(&JudgeCall { no: 0, messages, form }, &reply)
        };
        for form in &LENIENT {
            for (text, finish) in [
                ("", "length"),
                (" \n", "stop"),
                ("I cannot say yes to this.", "refusal"),
                ("{\"label\": \"CORRECT\"}", "content_filter"),
            ] {
                assert!(said(form, text, finish).is_err(), "{form:?} {text:?} {finish}");
            }
        }
        let anywhere = lenient::find("yes-anywhere").expect("is there");
        assert!(said(anywhere, "Yes", "length").is_ok(), "a reply that was cut has begun with its verdict");
    }
}
