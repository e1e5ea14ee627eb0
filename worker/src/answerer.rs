//! Who answers: nobody, the demo extractor, or a chat model.

use bench_grading::prompts::{self, Messages, answer::AnswerInput};
use bench_models::{ChatReply, extractive};
use bench_proto::{
    call::{CallRecord, Phase, Usage},
    dataset::{BankContent, Question, StreamEntry},
    failure::Failure,
    spec::ModelSpec,
    step::{RetrievedHit, Timing},
};
use bench_store::ClaimedTask;

use crate::{
    calls::{AskedFor, RunCaller, RunCallers, chat_request},
    clock::StepClock,
    ending::TaskEnd,
};

/// Output limit of answers when the parameters have none.
const MAX_ANSWER_TOKENS: u32 = 256;

/// An answer with what it cost.
pub(crate) struct Answered {
    pub(crate) answer: String,
    pub(crate) raw: Option<String>,
    pub(crate) citations: Vec<String>,
    pub(crate) finish: String,
    pub(crate) usage: Usage,
    pub(crate) timing: Timing,
    pub(crate) calls: Vec<CallRecord>,
}

/// The answerer of a run.
pub(crate) enum Answerer {
    /// Empty answers: retrieval only.
    None,
    /// The memory system itself.
    System,
    /// The deterministic demo answerer.
    Extractive,
    /// A chat model.
    Chat(Box<ChatAnswerer>),
}

/// A chat model that answers, with its parameters as sent.
pub(crate) struct ChatAnswerer {
    caller: RunCaller,
    spec: ModelSpec,
    style: String,
}

impl Answerer {
    /// The answerer that a run names, told to answer in a style's rules.
    pub(crate) fn build(callers: &RunCallers<'_>, spec: &ModelSpec, style: &str) -> Result<Self, Failure> {
        Ok(match spec.provider.as_str() {
            "none" => Self::None,
            "system" => Self::System,
            "extractive" => Self::Extractive,
            _ => Self::Chat(Box::new(ChatAnswerer {
                caller: callers.caller(spec, Phase::Answer)?,
                spec: spec.clone(),
                style: style.to_owned(),
            })),
        })
    }

    /// Whether answering sends requests to somebody.
    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self, Self::Chat(_))
    }

    /// Whether the memory system answers by itself.
    pub(crate) const fn is_system(&self) -> bool {
        matches!(self, Self::System)
    }

    /// Answers a question from its hits.
    pub(crate) async fn answer(
        &self,
        task: &ClaimedTask,
        question: &Question,
        hits: &[RetrievedHit],
        bank: &BankContent,
    ) -> Result<Answered, TaskEnd> {
        let clock = StepClock::start();
        let local = |answer: String, citations: Vec<String>| {
            let mut timing = clock.timing(task, clock.elapsed_us());
            (timing.queue_wait_us, timing.dispatch_us) = (0, 0);
            Answered {
                answer,
                raw: None,
                citations,
                finish: "stop".to_owned(),
                usage: Usage::default(),
                timing,
                calls: Vec::new(),
            }
        };
        match self {
            // a system's own answer comes from the system, not from hits
            Self::None | Self::System => Ok(local(String::new(), Vec::new())),
            Self::Extractive => {
                let extracted = extractive::extract(&question.text, hits, &question.choices);
                Ok(local(extracted.answer, extracted.citations))
            }
            Self::Chat(chat) => {
                let ChatAnswerer { caller, spec, style } = chat.as_ref();
                let request = chat_request(spec, answer_prompt(style, question, hits, bank), None, MAX_ANSWER_TOKENS);
                let asked = AskedFor { task, question_id: &question.question_id, draw: 0, trace: None };
                let called = caller.call(asked, &request, &usable_answer).await?;
                let mut timing = called.timing;
                (timing.queue_wait_us, timing.dispatch_us) = (0, 0);
                let silent = called.value.is_empty() && called.reply.finish == "stop";
                let raw = (called.reply.text != called.value).then_some(called.reply.text);
                Ok(Answered {
                    answer: called.value,
                    raw,
                    citations: Vec::new(),
                    finish: if silent { "empty".to_owned() } else { called.reply.finish },
                    usage: called.usage,
                    timing,
                    calls: called.records,
                })
            }
        }
    }
}

/// The messages of an answer in a style's rules: hits grouped under the dates of their sessions.
#[must_use]
pub fn answer_prompt(style: &str, question: &Question, hits: &[RetrievedHit], bank: &BankContent) -> Messages {
    let time_of = |session_id: &str| session_time(bank, session_id);
    // built-in systems put the session's date before each hit, the prompt puts it above all of them
    let undated = |hit: &RetrievedHit| {
        let stamped = time_of(&hit.session_id)
            .and_then(|time| hit.text.strip_prefix('[')?.strip_prefix(time)?.strip_prefix("] "));
        stamped.map_or_else(|| hit.clone(), |text| RetrievedHit { text: text.to_owned(), ..hit.clone() })
    };
    let hits: Vec<RetrievedHit> = hits.iter().map(undated).collect();
    let context = prompts::answer::group_by_session(&hits, time_of);
    prompts::answer::answer_messages(&AnswerInput {
        style,
        question: &question.text,
        asked_at: question.time_text.as_deref(),
        context: &context,
        choices: &question.choices,
    })
}

fn session_time<'a>(bank: &'a BankContent, session_id: &str) -> Option<&'a str> {
    bank.entries.iter().find_map(|entry| match entry {
        StreamEntry::Session(session) if session.id == session_id => session.time_text.as_deref(),
        _ => None,
    })
}

/// An answer is whatever the model says, trimmed. An empty reply that the model ended freely is an answer too (an
/// abstention); one that was cut off by the output limit before its first word, or by the provider, is none.
fn usable_answer(reply: &ChatReply) -> Result<String, String> {
    let text = reply.text.trim();
    if text.is_empty() && reply.finish != "stop" {
        return Err(format!("empty reply, finish reason '{}'", reply.finish));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_replies_are_answers_only_when_the_model_ended_freely() {
        let reply = |text: &str, finish: &str| ChatReply {
            text: text.to_owned(),
            finish: finish.to_owned(),
            ..ChatReply::default()
        };
        assert_eq!(usable_answer(&reply(" Paris \n", "stop")), Ok("Paris".to_owned()));
        assert_eq!(usable_answer(&reply("Paris, the", "length")), Ok("Paris, the".to_owned()));
        assert_eq!(usable_answer(&reply("", "stop")), Ok(String::new()));
        for finish in ["length", "content_filter", "refusal"] {
            assert!(usable_answer(&reply(" ", finish)).is_err());
        }
    }
}
