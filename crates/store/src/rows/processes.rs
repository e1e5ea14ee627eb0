//! Processes as the store knows them: worker sessions, leaders, and what a store that went back in time is told.

use bench_proto::outage::SessionEvidence;
use serde::{Deserialize, Serialize};

/// A worker session (P4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionId(pub i64);

/// What a renewal of a session has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The session goes on.
    Alive(Told),
    /// A supervisor has ended it.
    Ended,
    /// The store has never heard of it: it went back to a time before the session (P44).
    Unknown,
}

/// What the store knows of a session (P44).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Renewals so far.
    pub counter: i64,
    /// Number of the last batch of which none before it is missing.
    pub mark: i64,
    /// The store's incarnation.
    pub incarnation: i64,
}

/// Which batch of a session is committed (P44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMark {
    /// The session that commits.
    pub session: SessionId,
    /// Number of the batch: 1 for the first, then one more for each.
    pub number: i64,
}

/// A session as its process knows it (P44).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// Id of the session.
    pub session: SessionId,
    /// Name of its worker.
    pub worker: String,
    /// The runs that it works on: those that were submitted for this domain.
    pub domain: String,
    /// What the worker says about itself.
    pub info_json: String,
    /// Renewals that were acknowledged.
    pub counter: i64,
    /// Batches that were acknowledged and are stored.
    pub mark: i64,
}

/// What a leader is told when it renews its lead (P44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadTold {
    /// Renewals so far.
    pub counter: i64,
    /// The store's incarnation.
    pub incarnation: i64,
}

/// Which of its lives a store is in (P44).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// 0 until it went back in time for the first time, then a random number.
    pub number: i64,
    /// Milliseconds since it changed, by the store's clock, for people.
    pub age_ms: i64,
    /// Why it changed; empty when it never did.
    pub note: String,
}

/// An open worker session, for supervision and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Whose counter this is.
    pub session: SessionId,
    /// Name of the worker.
    pub worker: String,
    /// What the worker said about itself when it opened the session.
    pub info_json: String,
    /// Raised by every renewal: the only sign of life that counts (P4).
    pub counter: i64,
    /// Milliseconds since the last renewal by the store's clock, for people.
    pub silent_ms: i64,
    /// Tasks it holds.
    pub leased: i64,
    /// What it told of its routes, with ages as of now (P39, P40).
    pub evidence: SessionEvidence,
}

/// A process that was silent for longer is not counted as alive.
const LONGEST_SILENCE_MS: i64 = 15_000;

impl SessionRow {
    /// Whether it was heard of lately. Its tasks are its own until a supervisor has ended it (P4): nothing is taken away by this.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        self.silent_ms < LONGEST_SILENCE_MS
    }
}

/// Who leads a scope (P14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderRow {
    /// Name of the process; empty when it has resigned.
    pub holder: String,
    /// Raised by every takeover.
    pub epoch: i64,
    /// Raised by the leader: it stands still when the leader is gone.
    pub counter: i64,
    /// What troubles the leader, for people; empty when nothing does.
    pub trouble: String,
    /// Milliseconds since the last renewal by the store's clock, for people.
    pub silent_ms: i64,
}

impl LeaderRow {
    /// Whether somebody leads and was heard of lately.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !self.holder.is_empty() && self.silent_ms < LONGEST_SILENCE_MS
    }
}

/// Connections to a store on a server (P31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionRoom {
    /// Most that the server takes, of all programs together.
    pub most: i64,
    /// Open now.
    pub open: i64,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// Name of the machine, as its kernel knows it.
    pub host: String,
    /// Nothing is sent without encryption, whatever the server would rather have.
    pub encrypted: bool,
    /// The server has to prove who it is.
    pub verified: bool,
}
