//! Task states, the transition table (P27), queue messages and queue names.
//!
//! The table is data: the stores generate their SQL guards from [`states_from`], the model checker runs
//! [`transition`], and a differential test holds both to each other.

use serde::{Deserialize, Serialize};

use crate::ids::{Role, RunId, TaskKey};

/// Persisted state of a task. `planned` is "no row yet", `queued` is only a note on a ready row (P2, P28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// May be claimed once `not_before` has passed.
    Ready,
    /// Claimed by a worker session.
    Leased,
    /// Finished with a result.
    Done,
    /// Given up, with a stored reason.
    Failed,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Leased, Self::Done, Self::Failed];

    /// The number that stands for the state in the store.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Ready => 0,
            Self::Leased => 1,
            Self::Done => 2,
            Self::Failed => 3,
        }
    }

    /// The state behind a stored number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Ready),
            1 => Some(Self::Leased),
            2 => Some(Self::Done),
            3 => Some(Self::Failed),
            _ => None,
        }
    }
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEvent {
    /// A worker claims it (P1).
    Claim,
    /// Its last step is stored, by whichever epoch (P3, P7).
    Finish,
    /// The holder reports a transient failure: another attempt later (P3).
    Retry,
    /// The holder waits long, or hands it back while draining: no attempt counted (P11, P26).
    Park,
    /// The holder's session is dead: a loss, no attempt (P4).
    LoseLease,
    /// Permanent failure, or attempts or losses used up: stored with its reason.
    GiveUp,
    /// Its bank has failed: it fails with the bank's reason, whoever holds it (P22).
    BankFailed,
    /// A user asks to repeat what failed (`retry`).
    Reopen,
}

impl TaskEvent {
    /// All events.
    pub const ALL: [Self; 8] = [
        Self::Claim,
        Self::Finish,
        Self::Retry,
        Self::Park,
        Self::LoseLease,
        Self::GiveUp,
        Self::BankFailed,
        Self::Reopen,
    ];
}

/// One line of the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// State before.
    pub from: TaskState,
    /// What happens.
    pub event: TaskEvent,
    /// Whether the event must carry the current lease epoch.
    pub needs_epoch: bool,
    /// State after.
    pub to: TaskState,
    /// Added to `lease_epoch`, `attempts`, `losses`.
    pub counts: (i64, i32, i32),
}

/// The table. An event that is not listed for a state is refused and changes nothing.
pub const TRANSITIONS: &[Transition] = &{
    use TaskEvent::{BankFailed, Claim, Finish, GiveUp, LoseLease, Park, Reopen, Retry};
    use TaskState::{Done, Failed, Leased, Ready};
    const fn t(
        from: TaskState,
        event: TaskEvent,
        needs_epoch: bool,
        to: TaskState,
        counts: (i64, i32, i32),
    ) -> Transition {
        Transition { from, event, needs_epoch, to, counts }
    }
    [
        t(Ready, Claim, false, Leased, (1, 0, 0)),
        t(Ready, Finish, false, Done, (0, 0, 0)), // late result of a lost lease: counts while none is stored
        t(Leased, Finish, false, Done, (0, 0, 0)),
        t(Leased, Retry, true, Ready, (0, 1, 0)),
        t(Leased, Park, true, Ready, (0, 0, 0)),
        t(Leased, LoseLease, true, Ready, (0, 0, 1)),
        t(Leased, GiveUp, true, Failed, (0, 0, 0)),
        t(Ready, BankFailed, false, Failed, (0, 0, 0)),
        t(Leased, BankFailed, false, Failed, (0, 0, 0)),
        t(Failed, Reopen, false, Ready, (0, 0, 0)),
    ]
};

/// The transition for `event` in `from`, or `None` when it is refused.
///
/// `epoch_is_current` says whether the event carries the task's current lease epoch.
#[must_use]
pub fn transition(from: TaskState, event: TaskEvent, epoch_is_current: bool) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|t| t.from == from && t.event == event && (epoch_is_current || !t.needs_epoch))
}

/// The states in which `event` is legal: what a store's SQL guard allows.
pub fn states_from(event: TaskEvent) -> impl Iterator<Item = &'static Transition> {
    TRANSITIONS.iter().filter(move |t| t.event == event)
}

/// Version of the body of queue messages.
pub const TASK_MESSAGE_VERSION: u32 = 1;
/// Version of the messages of runs that ask banks which were filled before (P33): a build that does not know of them would fill
/// them, and puts the message back instead (P12).
pub const FILLED_TASK_MESSAGE: u32 = 2;
/// The newest version that this build reads, and that of the messages of runs that may stop early (P46) and of those a judge of
/// which grades a sample: a build that does not know of them would close banks before later rounds are opened, or let that judge
/// grade all.
pub const NEWEST_TASK_MESSAGE: u32 = 3;
/// Version of the queue topology: part of every queue name, raised when queue arguments change (P12).
pub const TOPOLOGY_VERSION: u32 = 1;

/// Body of a queue message: a hint, never data that exists nowhere else (P1). Readers ignore unknown fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskMessage {
    /// [`TASK_MESSAGE_VERSION`] of the writer.
    pub v: u32,
    /// Public id of the run.
    pub run: RunId,
    /// Row number of the run in the store.
    pub run_no: i64,
    /// The task, see [`TaskKey`].
    pub task: i64,
}

impl TaskMessage {
    /// The message for a task.
    #[must_use]
    pub fn new(run: RunId, run_no: crate::ids::RunNo, task: TaskKey) -> Self {
        Self { v: TASK_MESSAGE_VERSION, run, run_no: run_no.0, task: task.0 }
    }

    /// A name for the message that stays the same when it is published again.
    #[must_use]
    pub fn message_id(&self) -> String {
        format!("{}:{}", self.run, self.task)
    }

    /// Reads a body that came from a broker: bounded, checked.
    ///
    /// # Errors
    /// One readable line, for the dead letters.
    pub fn from_bytes(body: &[u8]) -> Result<Self, String> {
        if body.len() > 4096 {
            return Err(format!("message body has {} bytes, at most 4096 are read", body.len()));
        }
        let message: Self = serde_json::from_slice(body).map_err(|e| format!("message body is not a task: {e}"))?;
        RunId::parse(&message.run.0).map_err(|e| e.to_string())?;
        TaskKey::from_wire(message.task).ok_or_else(|| format!("{} is no task key", message.task))?;
        Ok(message)
    }
}

/// Most bytes of a pool's name. It is part of the names of queues, of which AMQP takes 255 bytes; there is room for a topology
/// with a longer number.
pub const MOST_POOL_BYTES: usize = 200;

/// Refuses what cannot be the name of a pool.
///
/// # Errors
/// What the name has to be like.
pub fn check_pool(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > MOST_POOL_BYTES || name.chars().any(char::is_control) {
        return Err(format!("a pool has a name of 1 to {MOST_POOL_BYTES} bytes, of printable characters"));
    }
    Ok(())
}

/// A queue: one per pool and role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName {
    /// Label of runs and workers that belong together.
    pub pool: String,
    /// The role it serves.
    pub role: Role,
}

impl QueueName {
    /// The queue of `role` in `pool`.
    pub fn new(pool: impl Into<String>, role: Role) -> Self {
        Self { pool: pool.into(), role }
    }

    /// The broker's name of the queue: `bench.t<topology>.<pool>.<role>`.
    #[must_use]
    pub fn wire_name(&self) -> String {
        format!("bench.t{TOPOLOGY_VERSION}.{}.{}", self.pool, self.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunNo;

    #[test]
    fn p3_fencing_events_of_an_old_epoch_are_refused_but_results_are_not() {
        assert!(transition(TaskState::Leased, TaskEvent::Retry, false).is_none());
        assert!(transition(TaskState::Leased, TaskEvent::GiveUp, false).is_none());
        assert!(transition(TaskState::Leased, TaskEvent::Finish, false).is_some());
        assert!(transition(TaskState::Ready, TaskEvent::Finish, false).is_some());
    }

    #[test]
    fn final_states_accept_nothing_but_a_users_retry() {
        for event in TaskEvent::ALL {
            assert!(transition(TaskState::Done, event, true).is_none(), "{event:?}");
            assert_eq!(transition(TaskState::Failed, event, true).is_some(), event == TaskEvent::Reopen, "{event:?}");
        }
    }

    #[test]
    fn p1_only_ready_tasks_are_claimed() {
        for state in TaskState::ALL {
            assert_eq!(transition(state, TaskEvent::Claim, true).is_some(), state == TaskState::Ready);
        }
    }

    #[test]
    fn message_bodies_match_the_golden_file_and_ignore_unknown_fields() {
        let message = TaskMessage::new(RunId("0197-run".into()), RunNo(12), TaskKey::judge(3, 7, 0, 2));
        let golden = include_str!("../golden/task_message.v1.json");
        assert_eq!(serde_json::to_string_pretty(&message).expect("serialises"), golden.trim_end());
        let newer = golden.replacen('{', "{\"added_later\": [1],", 1);
        assert_eq!(TaskMessage::from_bytes(newer.as_bytes()), Ok(message));
    }

    #[test]
    fn p12_a_pool_has_a_name_that_a_broker_takes_for_each_of_its_queues() {
        let longest = "p".repeat(MOST_POOL_BYTES);
        for pool in ["default", "gpu.large", "größer", longest.as_str()] {
            assert_eq!(check_pool(pool), Ok(()), "{pool}");
            assert!(Role::ALL.into_iter().all(|role| QueueName::new(pool, role).wire_name().len() <= 255), "{pool}");
        }
        let (long, umlauts) = ("p".repeat(MOST_POOL_BYTES + 1), "ö".repeat(MOST_POOL_BYTES / 2 + 1));
        for wrong in ["", " ", "a\nb", "a\0", long.as_str(), umlauts.as_str()] {
            assert!(check_pool(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn bodies_from_a_broker_are_checked() {
        for bad in
            ["", "{}", "[]", r#"{"v":1,"run":"../x","run_no":1,"task":0}"#, r#"{"v":1,"run":"x","run_no":1,"task":-5}"#]
        {
            assert!(TaskMessage::from_bytes(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(TaskMessage::from_bytes(&vec![b' '; 5000]).is_err());
    }
}
