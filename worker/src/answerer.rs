//! Who answers: nobody, the demo extractor, or a chat model.

use bench_grading::prompts::{
    self, Messages,
    answer::{AnswerInput, Instructions},
    search::{self, Move, PastSearch},
};
use bench_models::{ChatReply, ReplySchema, extractive};
use bench_proto::{
    call::{CallRecord, Phase, Usage},
    dataset::{BankContent, GoldRecord, Question, StreamEntry},
    failure::Failure,
    spec::{ModelSpec, RunSpec},
    step::{RetrievedHit, Timing},
};
use bench_store::ClaimedTask;

use crate::{
    calls::{AskedFor, Called, RunCaller, RunCallers, chat_request},
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
    /// Cannot be asked from here, and need not be: the answers are those of another run.
    Absent(Failure),
}

/// A chat model that answers, with its parameters as sent.
pub(crate) struct ChatAnswerer {
    caller: RunCaller,
    spec: ModelSpec,
    instructions: Instructions,
    /// Answers of another draw are not those that the lineage has paid for.
    draw: u32,
}

/// A question as whoever answers it is shown it. Of the gold record nothing but the style is looked at.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// What is asked.
    pub question: &'a Question,
    /// Its gold record.
    pub gold: Option<&'a GoldRecord>,
    /// What was found.
    pub hits: &'a [RetrievedHit],
    /// The bank that it was found in, for the times of its sessions.
    pub bank: &'a BankContent,
}

impl Answerer {
    /// The answerer that a run names, told what its profile's styles and its scenario say.
    pub(crate) fn build(callers: &RunCallers<'_>, run: &RunSpec, instructions: Instructions) -> Result<Self, Failure> {
        let spec = &run.answerer;
        Ok(match spec.provider.as_str() {
            "none" => Self::None,
            "system" => Self::System,
            "extractive" => Self::Extractive,
            _ => Self::Chat(Box::new(ChatAnswerer {
                caller: callers.caller(spec, Phase::Answer)?,
                spec: spec.clone(),
                instructions,
                draw: run.taken_over.answered_again,
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
    pub(crate) async fn answer(&self, task: &ClaimedTask, shown: Shown<'_>) -> Result<Answered, TaskEnd> {
        let Shown { question, hits, .. } = shown;
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
            Self::Absent(failure) => Err(failure.clone().into()),
            Self::Extractive => {
                let extracted = extractive::extract(&question.text, hits, &question.choices);
                Ok(local(extracted.answer, extracted.citations))
            }
            Self::Chat(chat) => {
                let ChatAnswerer { caller, spec, instructions, draw } = chat.as_ref();
                let request = chat_request(spec, answer_prompt(instructions, shown), None, MAX_ANSWER_TOKENS);
                let asked = AskedFor { task, question_id: &question.question_id, draw: *draw, trace: None };
                let called = caller.call(asked, &request, &usable_answer).await?;
                Ok(Answered::from_call(called))
            }
        }
    }

    /// Lets a model that searches by itself make its next move; `left` is how often it may still search.
    pub(crate) async fn make_move(
        &self,
        asked: AskedFor<'_>,
        shown: Shown<'_>,
        past: &[PastSearch<'_>],
        left: u32,
    ) -> Result<Called<Move>, TaskEnd> {
        let Self::Chat(chat) = self else {
            return Err(Failure::permanent("no_model", "only a chat model searches by itself").into());
        };
        let ChatAnswerer { caller, spec, instructions, .. } = chat.as_ref();
        let messages = with_input(instructions, shown, |input| search::move_messages(input, past, left));
        let schema = ReplySchema { name: search::MOVE_SCHEMA.to_owned(), schema: search::move_schema(left) };
        let request = chat_request(spec, messages, Some(schema), MAX_ANSWER_TOKENS);
        let accept = |reply: &ChatReply| search::read_move(&reply.text, left).map_err(|error| error.to_string());
        caller.call(asked, &request, &accept).await
    }
}

impl Answered {
    /// What a call has brought that was made beside others of its question: of the wait in the queue another step tells.
    pub(crate) fn from_call(called: Called<String>) -> Self {
        let mut timing = called.timing;
        (timing.queue_wait_us, timing.dispatch_us) = (0, 0);
        let silent = called.value.is_empty() && called.reply.finish == "stop";
        Self {
            raw: (called.reply.text != called.value).then_some(called.reply.text),
            answer: called.value,
            citations: Vec::new(),
            finish: if silent { "empty".to_owned() } else { called.reply.finish },
            usage: called.usage,
            timing,
            calls: called.records,
        }
    }
}

/// Says questions in other words, at the expense of their recalls.
pub(crate) struct Rephraser {
    caller: RunCaller,
    spec: ModelSpec,
    n: u32,
}

impl Rephraser {
    /// The one of a run that rephrases.
    pub(crate) fn build(callers: &RunCallers<'_>, run: &RunSpec) -> Result<Option<Self>, Failure> {
        let n = run.recalls.rephrased;
        let build =
            || Ok(Self { caller: callers.caller(&run.answerer, Phase::Recall)?, spec: run.answerer.clone(), n });
        (n > 0).then(build).transpose()
    }

    /// Asks for all wordings of a question in one call.
    pub(crate) async fn rephrase(
        &self,
        asked: AskedFor<'_>,
        question: &Question,
    ) -> Result<Called<Vec<String>>, TaskEnd> {
        let messages = search::rephrasing_messages(&question.text, question.time_text.as_deref(), self.n);
        let schema =
            ReplySchema { name: search::REPHRASING_SCHEMA.to_owned(), schema: search::rephrasing_schema(self.n) };
        let request = chat_request(&self.spec, messages, Some(schema), MAX_ANSWER_TOKENS);
        let accept =
            |reply: &ChatReply| search::read_rephrasings(&reply.text, self.n).map_err(|error| error.to_string());
        self.caller.call(asked, &request, &accept).await
    }
}

/// The messages of an answer: hits grouped under their sessions.
#[must_use]
pub fn answer_prompt(instructions: &Instructions, shown: Shown<'_>) -> Messages {
    with_input(instructions, shown, prompts::answer::answer_messages)
}

/// The messages of the first move of a model that searches by itself, and of one that has found all of `shown` in one search.
#[must_use]
pub fn move_prompts(instructions: &Instructions, shown: Shown<'_>, left: u32) -> [Messages; 2] {
    let found = PastSearch { query: &shown.question.text, found: shown.hits.len(), new: shown.hits.len() };
    let made = |hits, past: &[PastSearch<'_>]| {
        with_input(instructions, Shown { hits, ..shown }, |input| search::move_messages(input, past, left))
    };
    [made(&[], &[]), made(shown.hits, &[found])]
}

fn with_input<T>(instructions: &Instructions, shown: Shown<'_>, make: impl FnOnce(&AnswerInput<'_>) -> T) -> T {
    let Shown { question, gold, hits, bank } = shown;
    let time_of = |session_id: &str| session_time(bank, session_id);
    // built-in systems put the session's date before each hit, the prompt puts it above all of them
    let undated = |hit: &RetrievedHit| {
        let stamped = time_of(&hit.session_id)
            .and_then(|time| hit.text.strip_prefix('[')?.strip_prefix(time)?.strip_prefix("] "));
        stamped.map_or_else(|| hit.clone(), |text| RetrievedHit { text: text.to_owned(), ..hit.clone() })
    };
    let hits: Vec<RetrievedHit> = hits.iter().map(undated).collect();
    let context = prompts::answer::group_by_session(&hits, time_of);
    make(&AnswerInput {
        told: instructions.for_question(question, gold),
        question: &question.text,
        asked_at: question.time_text.as_deref(),
        context: &context,
        choices: &question.choices,
    })
}

fn session_time<'a>(bank: &'a BankContent, session_id: &str) -> Option<&'a str> {
    bank.entries.iter().find_map(|entry| match entry {
        StreamEntry::Session(session) if session.id == session_id => session.shown_time().text,
        // a memory is a session by itself
        StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } if memory.id == session_id => {
            memory.time.as_deref()
        }
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
    use bench_proto::{
        dataset::{Memory, Session, Turn},
        profile::Profile,
        scenario::Scenario,
    };

    use super::*;

    #[test]
    fn a_prompt_shows_the_times_of_turns_and_memories_and_no_id_of_the_question() {
        let turn = |id: &str, time: Option<&str>| Turn {
            id: id.to_owned(),
            time_text: time.map(str::to_owned),
            ..Turn::default()
        };
        let part = |part, turns| {
            let time_text = Some("8 May".to_owned());
            StreamEntry::Session(Session { id: "S1".to_owned(), part, time_text, turns, ..Session::default() })
        };
        let memory = Memory { id: "m1".to_owned(), time: Some("2031-05-09".to_owned()), ..Memory::default() };
        let entries = vec![
            part(0, vec![turn("S1:1", None)]),
            part(1, vec![turn("S1:2", Some("noon on 8 May"))]),
            StreamEntry::Memory(memory),
        ];
        let bank = BankContent { entries, ..BankContent::default() };
        let hit = |session: &str, text: &str| RetrievedHit {
            session_id: session.to_owned(),
            text: text.to_owned(),
            ..RetrievedHit::default()
        };
        let hits =
            [hit("S1", "[8 May] Ann: hello"), hit("m1", "[2031-05-09] green tea"), hit("S1", "[noon on 8 May] Bo: hi")];
        let question =
            Question { question_id: "7_abs".to_owned(), text: "Who greets?".to_owned(), ..Question::default() };
        let instructions =
            Instructions::from_profile(&Profile::implied(), Scenario::Answer).expect("the style is known");
        let messages =
            answer_prompt(&instructions, Shown { question: &question, gold: None, hits: &hits, bank: &bank });
        let prompt = format!("{messages:?}");
        for line in
            ["Session S1 (8 May)", "Ann: hello", "[noon on 8 May] Bo: hi", "Session m1 (2031-05-09)", "green tea"]
        {
            assert!(prompt.contains(line), "{line}: {prompt}");
        }
        assert_eq!(prompt.matches("Session S1").count(), 1, "parts of a session are one: {prompt}");
        assert!(!prompt.contains("[8 May]") && !prompt.contains("_abs"), "{prompt}");
    }

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
