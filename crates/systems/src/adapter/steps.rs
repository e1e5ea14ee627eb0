//! Operations of several requests: values of a response carried on to the next request, and requests that are repeated until the
//! system has done what it was asked for.
//!
//! In comes a compiled call with what follows it; out comes the last response, with the tokens of all of them. Start reading at
//! [`Call::carry_out`]. One request is in `call`. What is waited for here holds the slot of its task; a call that only looks
//! ([`Call::looking_if_it_may`]) waits for nothing, and whoever asks comes again (P11).

use std::time::{Duration, Instant};

use bench_proto::failure::{Failure, FailureClass};
use serde_json::{Map, Value};

use super::{
    call::{Call, Connection, Read},
    path::Path,
    said::excerpt,
    spec::{CallSpec, UntilSpec},
    template::Vars,
    time,
};

/// Requests of one operation.
const MOST_STEPS: usize = 8;
/// Longest value that is carried on, in bytes of JSON.
const LONGEST_CAPTURE: usize = 64 * 1024;
/// How long a request is repeated when nothing is said, and at most.
const WITHIN: Duration = Duration::from_secs(600);
const LONGEST_WITHIN: Duration = Duration::from_secs(4 * 3600);

/// What comes with a request and after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    captures: Vec<(String, Path)>,
    until: Option<Until>,
    then: Vec<Call>,
    /// What is repeated is sent once: whoever asks comes again.
    looks: bool,
}

/// What a call that only looks has found not to be done yet.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// What was asked, and the state that it has told.
    pub(super) said: String,
    /// When to come again.
    pub(super) every: Duration,
}

/// One look at a state that is waited for.
enum Looked {
    Done(Read),
    NotYet(Read, String),
}

#[derive(Debug, Clone)]
struct Until {
    path: Path,
    done: Vec<Value>,
    failed: Vec<Value>,
    every: Duration,
    within: Duration,
}

impl Until {
    fn new(spec: &UntilSpec) -> Result<Self, String> {
        if spec.done.is_empty() {
            return Err("until.done: give the states that mean done".to_owned());
        }
        let duration = |field: &str, text: &Option<String>, default| {
            text.as_deref().map_or(Ok(default), time::parse).map_err(|e| format!("until.{field}: {e}"))
        };
        Ok(Self {
            path: Path::new(&spec.path),
            done: spec.done.clone(),
            failed: spec.failed.clone(),
            every: duration("every", &spec.every, Duration::from_secs(1))?.max(Duration::from_millis(1)),
            within: duration("within", &spec.within, WITHIN)?.min(LONGEST_WITHIN),
        })
    }
}

/// Refuses what a request is to be given of those before it and none of them captures: it would be sent without it.
fn check_captured(call: &Call, captured: &[&str]) -> Result<(), String> {
    let lacks = |name: &&str| !captured.contains(name);
    match call.names().iter().filter_map(|name| name.strip_prefix("step.")).find(lacks) {
        None => Ok(()),
        Some(name) if captured.is_empty() => {
            Err(format!("{{step.{name}}}: no request before it has a `capture: {{{name}: …}}`"))
        }
        Some(name) => {
            Err(format!("{{step.{name}}} is captured by no request before it, captured are: {}", captured.join(", ")))
        }
    }
}

impl Steps {
    /// What follows a request; `known` are its variables.
    ///
    /// # Errors
    /// What is wrong, with the name of the field.
    pub(super) fn compile(what: &str, spec: &CallSpec, known: &[&str], timeout: Duration) -> Result<Self, String> {
        let at = |error: String| format!("{what}.{error}");
        if spec.then.len() >= MOST_STEPS {
            return Err(at(format!("then: an operation has at most {MOST_STEPS} requests")));
        }
        let known = [known, &["steps"][..]].concat();
        let mut then = Vec::with_capacity(spec.then.len());
        let mut captured: Vec<&str> = spec.capture.keys().map(String::as_str).collect();
        for (n, step) in spec.then.iter().enumerate() {
            if !step.then.is_empty() {
                return Err(at(format!("then.{n}.then: steps stand in one list")));
            }
            let call = Call::compile(&format!("{what}.then.{n}"), step, &known, timeout)?;
            check_captured(&call, &captured).map_err(|error| at(format!("then.{n}: {error}")))?;
            captured.extend(step.capture.keys().map(String::as_str));
            then.push(call);
        }
        Ok(Self {
            captures: spec.capture.iter().map(|(name, path)| (name.clone(), Path::new(path))).collect(),
            until: spec.until.as_ref().map(Until::new).transpose().map_err(&at)?,
            then,
            looks: false,
        })
    }

    /// The requests that follow.
    pub(super) fn then(&self) -> &[Call] {
        &self.then
    }

    /// How long one request with these steps may take, where one try takes at most `timeout`.
    pub(super) fn longest(&self, timeout: Duration) -> Duration {
        let waits = self.until.as_ref().filter(|_| !self.looks);
        let own = waits.map_or(timeout, |until| until.within.saturating_add(timeout));
        self.then.iter().map(Call::timeout).fold(own, Duration::saturating_add)
    }
}

impl Call {
    /// The same call for whoever comes again: what it repeats is sent once, and a state that does not mean done yet is where it stops
    /// (`Read::waiting`).
    fn looking(mut self) -> Self {
        self.steps.looks = true;
        self.steps.then = std::mem::take(&mut self.steps.then).into_iter().map(Self::looking).collect();
        self
    }

    /// [`Call::looking`] where nothing but reads comes before what is repeated; else this call as it is. A look begins at the
    /// first request, which would start another job each time.
    pub(super) fn looking_if_it_may(self) -> Self {
        let chain: Vec<&Self> = std::iter::once(&self).chain(&self.steps.then).collect();
        let repeated = chain.iter().rposition(|call| call.steps.until.is_some()).unwrap_or(0);
        let may = chain.iter().take(repeated).all(|call| call.only_reads());
        if may { self.looking() } else { self }
    }

    /// How long all that it repeats may take until it is done.
    pub(super) fn patience(&self) -> Duration {
        let own = self.steps.until.as_ref().map_or(Duration::ZERO, |until| until.within);
        self.steps.then.iter().map(Self::patience).fold(own, Duration::saturating_add)
    }

    /// Sends the request and what follows it, one after the other; what the operation reads is the last response.
    ///
    /// # Errors
    /// As [`Call::send`]; a value to be carried on that is absent, a state that means failed, or none within its time.
    pub(super) async fn carry_out(&self, connection: &Connection<'_>, vars: &Vars) -> Result<Read, Failure> {
        let mut read = self.send_until(connection, vars, false).await?;
        if self.steps.then.is_empty() || read.waiting.is_some() {
            return Ok(read);
        }
        let (mut carried, mut vars) = (Map::new(), vars.clone());
        let mut from = self;
        for step in &self.steps.then {
            from.carry(&read, &mut carried)?;
            vars.set("steps", Value::Object(carried.clone()));
            let before = read.usage;
            read = step.send_until(connection, &vars, true).await?;
            read.usage += before;
            if read.waiting.is_some() {
                break;
            }
            from = step;
        }
        Ok(read)
    }

    fn carry(&self, read: &Read, carried: &mut Map<String, Value>) -> Result<(), Failure> {
        for (name, path) in &self.steps.captures {
            let value = path.first(&read.value);
            let value = value.ok_or_else(|| {
                let absent = path.absent("", &read.value);
                self.shape(format!("{absent}; what follows needs it as '{name}'"))
            })?;
            if value.to_string().len() > LONGEST_CAPTURE {
                return Err(self.shape(format!("field '{}' is longer than {LONGEST_CAPTURE} bytes", path.shown())));
            }
            carried.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    /// Sends the request, again and again where it says until when. `follows`: something was sent before it in this operation.
    async fn send_until(&self, connection: &Connection<'_>, vars: &Vars, follows: bool) -> Result<Read, Failure> {
        let Some(until) = &self.steps.until else { return self.send(connection, vars).await };
        let begun = Instant::now();
        loop {
            let (wait, not_yet) = match self.look(until, connection, vars).await {
                Ok(Looked::Done(read)) => return Ok(read),
                Ok(Looked::NotYet(read, said)) if self.steps.looks => {
                    return Ok(Read { waiting: Some(Waiting { said, every: until.every }), ..read });
                }
                Ok(Looked::NotYet(_, said)) => {
                    let message = format!("{said} after {}", time::show(until.within));
                    (until.every, Failure::permanent("system_stalled", message))
                }
                // what was sent before is not lost because nobody could be asked for a moment what became of it
                Err(failure) if follows && !self.steps.looks && self.may_pass(&failure) => {
                    let asked_for = failure.retry_after_ms.map_or(Duration::ZERO, Duration::from_millis);
                    (until.every.max(asked_for), failure)
                }
                Err(failure) => return Err(failure),
            };
            if begun.elapsed() + wait > until.within {
                return Err(not_yet);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Whether a poll that has failed may be sent again: it changes nothing, and may come through the next time.
    fn may_pass(&self, failure: &Failure) -> bool {
        failure.class == FailureClass::Transient && self.only_reads()
    }

    /// Sends the request once, and looks at the state that it tells.
    async fn look(&self, until: &Until, connection: &Connection<'_>, vars: &Vars) -> Result<Looked, Failure> {
        let read = self.send(connection, vars).await?;
        let state = until.path.first(&read.value);
        let state = state.ok_or_else(|| self.shape(until.path.absent("", &read.value)))?;
        let said = excerpt(&state.to_string());
        if until.failed.contains(state) {
            return Err(Failure::permanent("system_item_failed", format!("{}: the system says {said}", self.what)));
        }
        if until.done.contains(state) {
            return Ok(Looked::Done(read));
        }
        Ok(Looked::NotYet(read, format!("{}: the state is still {said}", self.what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_on_was_captured_by_a_request_before() {
        let compiled = |call: &str| {
            let spec: CallSpec = serde_norway::from_str(call).expect("is YAML");
            Call::compile("retain", &spec, &["bank"], Duration::from_secs(1)).map(drop)
        };
        let two = "{request: POST /add, capture: {event: id}, then: [{request: 'GET /e/{step.event}', capture: {at: t}}, \
                   {request: GET /done, query: {of: '{step.event}', at: '{step.at?}'}}]}";
        assert_eq!(compiled(two), Ok(()));
        let mistake = |from: &str, to: &str| compiled(&two.replace(from, to)).expect_err(to);
        insta::assert_snapshot!(mistake("GET /e/{step.event}", "GET /e/{step.evnt}"), @"retain.then.0: {step.evnt} is captured by no request before it, captured are: event");
        // not before its own response has come
        insta::assert_snapshot!(mistake("GET /e/{step.event}", "GET /e/{step.at}"), @"retain.then.0: {step.at} is captured by no request before it, captured are: event");
        insta::assert_snapshot!(mistake(" capture: {event: id},", ""), @"retain.then.0: {step.event}: no request before it has a `capture: {event: …}`");
        let first = mistake("POST /add", "'POST /add/{step.event}'");
        assert!(first.contains("unknown variable {step.event}"), "{first}");
    }
}
