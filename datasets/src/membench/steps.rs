//! The steps of a trajectory: messages, or exchanges of a message and its reply, alone or in sessions.

use bench_proto::dataset::{Session, StreamEntry, Turn};
use serde_json::Value;

use crate::neutral;

/// The number that data give to the first step. Published files count from 0, in sessions as in the whole; the official
/// environment counts from 1 when it hands steps out, and so does whoever stores what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The first step is 0.
    Zero,
    /// The first step is 1.
    One,
}

impl Base {
    /// A number as one that counts from 0.
    fn index(self, number: &Value) -> Option<usize> {
        let number = match number {
            Value::String(text) => text.trim().parse().ok()?,
            number => usize::try_from(number.as_u64()?).ok()?,
        };
        match self {
            Self::Zero => Some(number),
            Self::One => number.checked_sub(1),
        }
    }
}

/// The turns of each step.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// For each session its steps: the ids of their turns.
    sessions: Vec<(String, Vec<Vec<String>>)>,
    /// How many times could not be read, and the first of them.
    pub(super) unread_times: Option<(usize, String)>,
}

impl Steps {
    /// Session and turns of a step, by its number in the whole or by `[number in its session, number of the session]`.
    pub(super) fn find(&self, target: &Value, base: Base) -> Option<(&String, &[String])> {
        if let Some([step, session]) = target.as_array().map(Vec::as_slice) {
            let (id, steps) = self.sessions.get(base.index(session)?)?;
            return Some((id, steps.get(base.index(step)?)?));
        }
        let mut all =
            self.sessions.iter().flat_map(|(id, steps)| steps.iter().map(move |turns| (id, turns.as_slice())));
        all.nth(base.index(target)?)
    }
}

/// Which field is at fault, below the list of messages, and what is wrong with it.
type Fault = (String, &'static str);

/// Reads a list of messages: of steps, which are one session, or of sessions.
pub(super) fn read(messages: &[Value]) -> Result<(Vec<StreamEntry>, Steps), Fault> {
    let mut steps = Steps::default();
    let mut entries = Vec::new();
    let sessions = if messages.first().is_some_and(Value::is_array) {
        let sessions = messages.iter().zip(0_usize..).map(|(session, at)| match session {
            Value::Array(steps) => Ok((steps.as_slice(), format!("[{at}]"))),
            _ => Err((
                format!("[{at}]"),
                "a list of steps is expected, as the other sessions are: put this one into a list of its own",
            )),
        });
        sessions.collect::<Result<_, Fault>>()?
    } else {
        vec![(messages, String::new())]
    };
    for ((list, field), number) in sessions.into_iter().zip(1..) {
        let mut session = Session { id: format!("S{number}"), ..Session::default() };
        let mut of_session = Vec::new();
        for (step, at) in list.iter().zip(0_usize..) {
            let turns = turns(step).map_err(|problem| (format!("{field}[{at}]"), problem))?;
            let ids = turns.into_iter().map(|turn| add(turn, &mut session, &mut steps.unread_times));
            of_session.push(ids.collect());
        }
        steps.sessions.push((session.id.clone(), of_session));
        if !session.turns.is_empty() {
            entries.push(StreamEntry::Session(session));
        }
    }
    Ok((entries, steps))
}

/// Adds a turn to a session and gives its id.
fn add(turn: Turn, session: &mut Session, unread_times: &mut Option<(usize, String)>) -> String {
    let id = format!("{}:{}", session.id, session.turns.len() + 1);
    let time = turn.time_text.as_deref().and_then(neutral::time);
    if let (Some(text), None) = (&turn.time_text, &time) {
        unread_times.get_or_insert_with(|| (0, text.clone())).0 += 1;
    }
    session.turns.push(Turn { id: id.clone(), time, ..turn });
    id
}

/// The turns of a step, without ids.
fn turns(step: &Value) -> Result<Vec<Turn>, &'static str> {
    if let Some(text) = step.as_str() {
        return Ok(vec![turn("user", text, step)]);
    }
    let text = |names: &[&str]| names.iter().find_map(|name| step.get(name)?.as_str());
    if let Some(message) = text(&["message"]) {
        return Ok(vec![turn("user", message, step)]);
    }
    match (text(&["user", "user_message"]), text(&["agent", "assistant", "assistant_message"])) {
        (Some(user), Some(agent)) => Ok(vec![turn("user", user, step), turn("assistant", agent, step)]),
        (Some(user), None) => Ok(vec![turn("user", user, step)]),
        _ => Err("a text, an object with a message, or one of user and agent is expected"),
    }
}

/// A turn with place and time of its step.
fn turn(speaker: &str, text: &str, step: &Value) -> Turn {
    let field = |name: &str| step.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let text = field("place").map_or_else(|| text.to_owned(), |place| format!("{text} (place: {place})"));
    Turn { speaker: speaker.to_owned(), text, time_text: field("time").map(str::to_owned), ..Turn::default() }
}
