//! A refusal before anything of a run has worked is a question about the run's requests, not about one of its questions: a
//! parameter that the server does not know, a header that it does not want. One small request of the same form is the test.
//! Nothing of this matters any more after the first reply. Replies are another such question, until one of them can be read.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bench_proto::{
    failure::{Failure, FailureClass},
    ids::TaskKey,
};
use tokio::sync::OnceCell;

use super::{Admitted, Call, CallStop, Counts, Next, micros, seen, way_of};
use crate::{AttemptError, ChatMessage, ChatRequest, stop::StopCause};

/// Questions that were refused with the same words, with no reply to any, after which the form is to blame although the
/// probe passed.
const ALIKE: usize = 5;
/// Replies, to five tasks or more, none of which could be read, after which no call is made again for another one.
const UNREAD: u32 = 30;
/// What a probe says, whoever says it.
const PROBE_TEXT: &str = "Reply with the word ok.";
/// Probes in a row, when a model learns from a refusal what to leave out.
const MOST_PROBES: u32 = 4;

/// What the calls of one caller have shown so far.
#[derive(Debug, Default)]
pub(super) struct FirstCall {
    replied: AtomicBool,
    /// Set by the first probe that was answered in one way or the other: the words of its refusal.
    probed: OnceCell<Option<Failure>>,
    alike: Mutex<Alike>,
    /// A reply passed its parser.
    read: AtomicBool,
    unread: Mutex<Unread>,
}

/// Replies that did not pass their parser, and whose they were.
#[derive(Debug, Default)]
struct Unread {
    replies: u32,
    tasks: HashSet<TaskKey>,
}

/// Refusals in the same words.
#[derive(Debug, Default)]
struct Alike {
    words: String,
    tasks: HashSet<TaskKey>,
}

impl Alike {
    /// Notes a refusal; true when so many different tasks were refused in these words that the form is to blame.
    fn add(&mut self, message: &str, task: TaskKey) -> bool {
        // numbers of requests and sizes differ, the reason does not
        let words: String = message.chars().filter(|c| !c.is_ascii_digit()).collect();
        if words != self.words {
            *self = Self { words, tasks: HashSet::new() };
        }
        self.tasks.insert(task);
        self.tasks.len() >= ALIKE
    }
}

impl FirstCall {
    /// There was a reply: the form works.
    pub(super) fn replied(&self) {
        if !self.replied.load(Ordering::Relaxed) {
            self.replied.store(true, Ordering::Relaxed);
        }
    }

    /// A reply could be read: others will be too.
    pub(super) fn could_read(&self) {
        if !self.read.load(Ordering::Relaxed) {
            self.read.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a reply that could not be read. Where that is all that ever came, the failure of a call that is not worth another
    /// attempt.
    pub(super) fn could_not_read(&self, model: &str, why: &Failure, task: TaskKey) -> Option<Failure> {
        if self.read.load(Ordering::Relaxed) {
            return None;
        }
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.replies = unread.replies.saturating_add(1);
        if unread.tasks.len() < ALIKE {
            unread.tasks.insert(task);
        }
        (unread.replies >= UNREAD && unread.tasks.len() >= ALIKE).then(|| {
            let words = &why.message;
            Failure::permanent(
                why.code.clone(),
                format!(
                    "{words}; none of the first {UNREAD} replies of {model} could be read, so each call is made once"
                ),
            )
        })
    }

    /// Whether a failure may be about the form of all requests.
    pub(super) fn doubts(&self, failure: &Failure) -> bool {
        let of_form = failure.code == "bad_request" || failure.code.starts_with("http_4");
        of_form && failure.class == FailureClass::Permanent && !self.replied.load(Ordering::Relaxed)
    }

    /// Whether the form is to blame although a probe passed.
    fn is_alike(&self, failure: &Failure, task: TaskKey) -> bool {
        let mut alike = self.alike.lock().unwrap_or_else(PoisonError::into_inner);
        alike.add(&failure.message, task) && !self.replied.load(Ordering::Relaxed)
    }
}

/// The smallest request of the same form: the same roles, parameters, limit and schema.
fn smallest(request: &ChatRequest) -> ChatRequest {
    let mut messages: Vec<ChatMessage> = Vec::new();
    for ChatMessage { role, .. } in &request.messages {
        if messages.last().is_none_or(|last| last.role != *role) {
            messages.push(ChatMessage { role: *role, text: PROBE_TEXT.to_owned() });
        }
    }
    ChatRequest { messages, ..request.clone() }
}

fn blamed(failure: &Failure, why: &str) -> Failure {
    let words = &failure.message;
    Failure::terminal(
        failure.code.clone(),
        format!(
            "{words}; {why}: change what it complains about (the server, or a new run with other settings), then resume"
        ),
    )
}

impl Call<'_> {
    /// A question was refused before anything has worked: asks whether that is the question's own failure. One call asks,
    /// the others wait for the answer.
    pub(super) async fn doubt<T>(&mut self, failure: Failure) -> Next<T> {
        let (caller, task) = (self.caller, self.context.task);
        let first = &caller.first;
        let refused = match first.probed.get_or_try_init(|| self.probe()).await {
            Ok(refused) => refused.clone(),
            Err(Unclear::Stopped(stop)) => return Next::Stop(stop),
            // nobody knows yet: the question is asked again
            Err(Unclear::Failed(failure, counts)) => return Next::Retry { failure, counts },
        };
        let blamed = match refused {
            Some(refused) => blamed(&refused, "the smallest request is refused too"),
            None if first.is_alike(&failure, task) => {
                blamed(&failure, &format!("{ALIKE} questions were refused alike and none was answered"))
            }
            None => return Next::Stop(CallStop::Failed(failure)),
        };
        caller.parts.stop.set(StopCause::Terminal(blamed.clone()));
        Next::Stop(CallStop::Terminal(blamed))
    }

    /// Sends the smallest request of the same form, paid and paced like any other: the refusal, if it is refused.
    async fn probe(&mut self) -> Result<Option<Failure>, Unclear> {
        let caller = self.caller;
        let request = smallest(self.request);
        let mut probe = Call {
            caller,
            context: self.context,
            key: caller.key(&request, self.context.question_id, self.context.draw),
            request: &request,
            begun: self.begun,
            prompt_tokens: None,
            slot_tokens: 0,
            failed_attempts: self.failed_attempts,
            pending: Vec::new(),
            maybe_billed: false,
            failed_at: None,
            delays: None,
            records: std::mem::take(&mut self.records),
            usage: std::mem::take(&mut self.usage),
            timing: std::mem::take(&mut self.timing),
        };
        let asked = probe.ask().await;
        (self.records, self.usage, self.timing) = (probe.records, probe.usage, probe.timing);
        // asked again, the call would bring along another probe
        self.maybe_billed = probe.maybe_billed;
        asked
    }

    async fn ask(&mut self) -> Result<Option<Failure>, Unclear> {
        let mut refused = None;
        for _ in 0..MOST_PROBES {
            let Admitted { reservation, permit, sent } = self.admit().await.map_err(Unclear::Stopped)?;
            let offset_us = micros(self.begun.elapsed());
            let attempt = self.caller.parts.model.attempt(self.request, self.context.trace).await;
            self.note(offset_us, &attempt);
            permit.finish(seen(&attempt));
            let error = attempt.result.as_ref().err().cloned();
            let failed = sent.and_then(|sent| sent.end(way_of(&attempt), error.as_ref().map(|error| &error.failure)));
            // its words are nobody's answer
            let _ = self.settle::<()>(attempt, reservation, &|_| Err("a probe".to_owned()), failed);
            self.count_allowance();
            match error {
                None => return Ok(None),
                Some(AttemptError { failure, status, adapted, .. }) => match failure.class {
                    _ if adapted => refused = Some(failure),
                    FailureClass::Permanent => return Ok(Some(failure)),
                    FailureClass::Transient => {
                        let counts = match failed {
                            _ if status == 429 => Counts::No,
                            Some(sent) => Counts::ByRoute(sent),
                            None => Counts::Yes,
                        };
                        return Err(Unclear::Failed(failure, counts));
                    }
                    FailureClass::Terminal => return Err(Unclear::Stopped(CallStop::Terminal(failure))),
                },
            }
        }
        Ok(refused)
    }
}

/// Why a probe showed nothing.
enum Unclear {
    /// It could not be sent, or the run has stopped.
    Stopped(CallStop),
    /// It failed in a way that says nothing about the form.
    Failed(Failure, Counts),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageRole;

    #[test]
    fn refusals_count_as_alike_by_their_words_and_by_different_tasks() {
        let mut alike = Alike::default();
        let seen = |alike: &mut Alike, words: &str, numbers: &[u32]| {
            numbers.iter().map(|n| alike.add(words, TaskKey::question(0, *n))).collect::<Vec<_>>()
        };
        assert_eq!(seen(&mut alike, "request 17 is bad", &[0, 1, 1, 1, 2, 3]), [false; 6]);
        assert!(alike.add("request 4711 is bad", TaskKey::question(0, 4)));
        assert!(!alike.add("something else", TaskKey::question(0, 5)), "other words begin anew");
    }

    #[test]
    fn the_smallest_request_keeps_all_but_the_texts() {
        let message = |role, text: &str| ChatMessage { role, text: text.to_owned() };
        let request = ChatRequest {
            messages: vec![
                message(MessageRole::System, "rules"),
                message(MessageRole::User, "a long context"),
                message(MessageRole::User, "a question"),
            ],
            params: [("temperature".to_owned(), 0.into())].into(),
            schema: None,
            max_output_tokens: 50,
        };
        let small = smallest(&request);
        let roles: Vec<MessageRole> = small.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [MessageRole::System, MessageRole::User]);
        assert!(small.messages.iter().all(|message| message.text == PROBE_TEXT));
        assert_eq!(ChatRequest { messages: request.messages.clone(), ..small }, request);
    }
}
