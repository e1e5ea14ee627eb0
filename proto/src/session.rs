//! Worker sessions: the table of what can happen to one (P4), and what a worker says about itself when it opens one: for the
//! dispatcher's window (P15), the message version that it may write (P12), and for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ids::Role, policy::SystemPolicy, task::NEWEST_TASK_MESSAGE, transition::Line};

/// Where a session stands, for whoever renews it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its tasks are its own.
    Alive,
    /// Its tasks go to others, for good.
    Ended,
    /// The store has never heard of it: it went back to a time before the session (P44).
    Unknown,
}

/// What can happen to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// A worker starts, or begins again.
    Opened,
    /// It gives a sign of life.
    Renewed,
    /// Its process ends in order.
    Stopped,
    /// Its counter stood still for too long.
    Silent,
    /// The store went back to a time before it.
    Forgotten,
    /// Its worker writes again what it was told (P44).
    PutBack,
}

/// The table. An event that is not listed for a state is refused and changes nothing.
pub const TRANSITIONS: &[Line<SessionState, SessionEvent>] = &{
    use SessionEvent::{Forgotten, Opened, PutBack, Renewed, Silent, Stopped};
    use SessionState::{Alive, Ended, Unknown};
    const fn l(from: Option<SessionState>, event: SessionEvent, to: SessionState) -> Line<SessionState, SessionEvent> {
        Line { from, event, to }
    }
    [
        l(None, Opened, Alive),
        l(Some(Alive), Renewed, Alive),
        l(Some(Alive), Stopped, Ended),
        l(Some(Alive), Silent, Ended),
        l(Some(Alive), Forgotten, Unknown),
        l(Some(Unknown), PutBack, Alive),
        l(Some(Alive), PutBack, Alive), // only its last signs of life were forgotten
    ]
};

/// Version of [`SessionInfo`].
pub const SESSION_INFO_VERSION: u32 = 1;

/// A worker, as it describes itself. Readers ignore unknown fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// [`SESSION_INFO_VERSION`] of the writer.
    #[serde(default)]
    pub v: u32,
    /// Pool it serves.
    #[serde(default)]
    pub pool: String,
    /// Slots of each role that it serves.
    #[serde(default)]
    pub slots: BTreeMap<Role, u32>,
    /// Highest version of task messages that it reads.
    #[serde(default)]
    pub reads_messages: u32,
    /// Build.
    #[serde(default)]
    pub code_version: String,
    /// Process id on its machine.
    #[serde(default)]
    pub pid: u32,
    /// Name of its machine.
    #[serde(default)]
    pub host: String,
    /// It knows the latency probe (P43): builds before it take the task for a question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probes: bool,
    /// Which memory systems it takes (P42); builds before it take all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<SystemPolicy>,
}

impl SessionInfo {
    /// Describes this process, of a build, serving `slots` of `pool`.
    #[must_use]
    pub fn of_this_process(code_version: &str, pool: &str, slots: BTreeMap<Role, u32>, host: &str) -> Self {
        Self {
            v: SESSION_INFO_VERSION,
            pool: pool.to_owned(),
            slots,
            reads_messages: NEWEST_TASK_MESSAGE,
            code_version: code_version.to_owned(),
            pid: std::process::id(),
            host: host.to_owned(),
            probes: true,
            policy: None,
        }
    }

    /// As stored.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// From the store; a worker of a build that says nothing about itself serves nothing that is known.
    #[must_use]
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether it takes tasks at all: a process that meters alone has a session and no slots.
    #[must_use]
    pub fn takes_tasks(&self) -> bool {
        self.slots.values().any(|slots| *slots > 0)
    }

    /// Slots of a role in a pool.
    #[must_use]
    pub fn slots_of(&self, pool: &str, role: Role) -> u32 {
        if self.pool == pool { self.slots.get(&role).copied().unwrap_or(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_matches_its_golden_file_and_ignores_what_is_new() {
        let info = SessionInfo {
            v: 1,
            pool: "default".into(),
            slots: BTreeMap::from([(Role::Question, 16), (Role::Judge, 8)]),
            reads_messages: 1,
            code_version: "0.1.0".into(),
            pid: 7,
            host: "node-3".into(),
            probes: false,
            policy: None,
        };
        let golden = include_str!("../golden/session_info.v1.json");
        assert_eq!(serde_json::to_string_pretty(&info).expect("serialises"), golden.trim_end());
        assert_eq!(SessionInfo::from_json(&golden.replacen('{', "{\"later\": 1,", 1)), info);
        assert_eq!(SessionInfo::from_json("{}"), SessionInfo::default());
        assert_eq!((info.slots_of("default", Role::Question), info.slots_of("gpu", Role::Question)), (16, 0));
    }
}
