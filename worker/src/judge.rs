//! Model judges: a binary verdict by a structured reply, strictly parsed.

use bench_grading::prompts::{self, judge::JudgeInput, verdict};
use bench_models::{ChatReply, ReplySchema};
use bench_proto::{
    call::{CallRecord, Phase, Usage},
    dataset::{GoldRecord, Question},
    failure::Failure,
    profile::Profile,
    spec::ModelSpec,
    step::Timing,
};
use bench_store::ClaimedTask;
use serde_json::Value;

use crate::{
    calls::{AskedFor, RunCaller, RunCallers, chat_request},
    ending::TaskEnd,
};

/// Output limit of judgements when the parameters have none.
const MAX_JUDGEMENT_TOKENS: u32 = 256;
/// Temperature of votes after the first (P38): equal draws of a deterministic model would be one vote.
const VOTE_TEMPERATURE: f64 = 0.7;

/// A vote with what it cost.
pub(crate) struct Judged {
    pub(crate) score: f64,
    pub(crate) verdict: String,
    pub(crate) raw: String,
    pub(crate) usage: Usage,
    pub(crate) timing: Timing,
    pub(crate) calls: Vec<CallRecord>,
}

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

    /// Casts one vote on an answer, by the rubric that the dataset's profile has for the question.
    pub(crate) async fn judge(
        &self,
        task: &ClaimedTask,
        profile: &Profile,
        question: &Question,
        gold: &GoldRecord,
        answer: &str,
    ) -> Result<Judged, TaskEnd> {
        let vote = task.task.vote();
        let input = JudgeInput::of(profile, question, Some(&gold.gold), answer)
            .map_err(|e| Failure::permanent("no_rubric", e.to_string()))?;
        let messages = prompts::judge::judge_messages(&input);
        let schema = ReplySchema { name: verdict::SCHEMA_NAME.to_owned(), schema: verdict::schema() };
        let mut request = chat_request(&self.spec, messages, Some(schema), MAX_JUDGEMENT_TOKENS);
        if vote > 0 {
            vary(&mut request.params, question, vote);
        }
        let accept = |reply: &ChatReply| verdict::parse(&reply.text).map_err(|e| e.to_string());
        let asked = AskedFor { task, question_id: &question.question_id, draw: vote, trace: None };
        let called = self.caller.call(asked, &request, &accept).await?;
        Ok(Judged {
            score: called.value.score(),
            verdict: called.value.word().to_owned(),
            raw: called.reply.text,
            usage: called.usage,
            timing: called.timing,
            calls: called.records,
        })
    }
}

/// Makes a further vote an independent draw, where the model takes a temperature at all.
fn vary(params: &mut std::collections::BTreeMap<String, Value>, question: &Question, vote: u32) {
    if params.contains_key("temperature") {
        params.insert("temperature".to_owned(), VOTE_TEMPERATURE.into());
    }
    if let Some(seed) = params.get("seed") {
        let hash = bench_proto::ids::Sha256Hash::of(format!("{seed}\n{}\n{vote}", question.question_id).as_bytes());
        let seed = hash.0[..4].iter().fold(0_u32, |seed, byte| (seed << 8) | u32::from(*byte));
        params.insert("seed".to_owned(), seed.into());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn varied(params: &Value, question_id: &str, vote: u32) -> BTreeMap<String, Value> {
        let question = Question {
            question_id: question_id.to_owned(),
            index: 0,
            category: String::new(),
            text: String::new(),
            ask_after: 1,
            choices: Vec::new(),
            time_text: None,
        };
        let mut params: BTreeMap<String, Value> = serde_json::from_value(params.clone()).expect("parameters");
        vary(&mut params, &question, vote);
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
}
