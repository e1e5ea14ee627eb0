//! SQL guards and changes of task rows, and guards of sessions, generated from the transition tables (P27).
//!
//! `tasks AS t` is the task row that changes.

use bench_proto::{
    session::{self, SessionEvent, SessionState},
    task::{TaskEvent, TaskState, Transition, states_from},
    transition,
};

/// The condition under which `event` is legal on row `t`; `epoch` is the SQL of the epoch that the event carries.
pub(crate) fn allowed(event: TaskEvent, epoch: &str) -> String {
    condition(event, epoch, |code| code.to_string())
}

/// The same for rows that are looked up one by one for a batch `b` with a column `task`.
pub(crate) fn allowed_in_batch(event: TaskEvent, epoch: &str) -> String {
    condition(event, epoch, |code| format!("@each({code}, b.task)"))
}

/// The condition under which `event` is legal on the row of `sessions` that changes.
pub(crate) fn session_allowed(event: SessionEvent) -> String {
    let row = |state| match state {
        SessionState::Alive => "sessions.ended_us IS NULL",
        SessionState::Ended => "sessions.ended_us IS NOT NULL",
        // there is no row
        SessionState::Unknown => "1 = 0",
    };
    format!("({})", transition::states_from(session::TRANSITIONS, event).map(row).collect::<Vec<_>>().join(" OR "))
}

fn condition(event: TaskEvent, epoch: &str, number: fn(i32) -> String) -> String {
    let one = |t: &Transition| {
        let fence = if t.needs_epoch { format!(" AND t.lease_epoch = {epoch}") } else { String::new() };
        format!("t.state = {}{fence}", number(t.from.code()))
    };
    // a single state stays outside of parentheses, so that partial indexes on it are used
    let all: Vec<String> = states_from(event).map(one).collect();
    match all.as_slice() {
        [single] => single.clone(),
        several => format!("({})", several.join(" OR ")),
    }
}

/// The assignments of `event`: new state, epoch, attempts and losses.
pub(crate) fn change(event: TaskEvent) -> String {
    let mut parts = vec![format!("state = {}", by_state(event, |t| i64::from(t.to.code())))];
    let mut count = |column: &str, of: fn(&Transition) -> i64| {
        if states_from(event).any(|t| of(t) != 0) {
            parts.push(format!("{column} = {column} + {}", by_state(event, of)));
        }
    };
    count("lease_epoch", |t| t.counts.0);
    count("attempts", |t| i64::from(t.counts.1));
    count("losses", |t| i64::from(t.counts.2));
    parts.join(", ")
}

/// A number that depends on the state before; plain when it is the same for all.
fn by_state(event: TaskEvent, of: impl Fn(&Transition) -> i64) -> String {
    let values: Vec<(TaskState, i64)> = states_from(event).map(|t| (t.from, of(t))).collect();
    let first = values.first().map_or(0, |(_, value)| *value);
    if values.iter().all(|(_, value)| *value == first) {
        return first.to_string();
    }
    let cases: String = values.iter().map(|(from, value)| format!(" WHEN {} THEN {value}", from.code())).collect();
    format!("CASE t.state{cases} END")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p27_guards_are_the_lines_of_the_table() {
        let all: Vec<String> =
            TaskEvent::ALL.iter().map(|e| format!("{e:?}: {} -> {}", allowed(*e, "b.epoch"), change(*e))).collect();
        assert_eq!(
            all,
            [
                "Claim: t.state = 0 -> state = 1, lease_epoch = lease_epoch + 1",
                "Finish: (t.state = 0 OR t.state = 1) -> state = 2",
                "Retry: t.state = 1 AND t.lease_epoch = b.epoch -> state = 0, attempts = attempts + 1",
                "Park: t.state = 1 AND t.lease_epoch = b.epoch -> state = 0",
                "LoseLease: t.state = 1 AND t.lease_epoch = b.epoch -> state = 0, losses = losses + 1",
                "GiveUp: t.state = 1 AND t.lease_epoch = b.epoch -> state = 3",
                "BankFailed: (t.state = 0 OR t.state = 1) -> state = 3",
                "Reopen: t.state = 3 -> state = 0",
            ]
        );
    }
}
