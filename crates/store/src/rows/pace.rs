//! Send slots of allowances: what is asked for, and what is given (P19, P24).

/// What kind of calls an allowance is for: providers count them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// Chat completions.
    #[default]
    Chat,
    /// Requests for embeddings.
    Embeddings,
}

impl CallKind {
    /// Its number in the store.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Chat => 0,
            Self::Embeddings => 1,
        }
    }
}

/// What a provider counts together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// Base URL and API version, without secrets.
    pub endpoint: String,
    /// Name of the account.
    pub account: String,
    /// Models that share their limits.
    pub limit_group: String,
    /// Kind of calls.
    pub kind: CallKind,
}

/// Known limits of an allowance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PaceLimits {
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens per minute.
    pub tpm: Option<u64>,
}

impl PaceLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rpm.is_none() && self.tpm.is_none()
    }
}

/// What a process asks of an allowance.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotAsk {
    /// Account and model whose limit is shared.
    pub allowance: Allowance,
    /// Name of the process, unlike that of any other.
    pub asker: String,
    /// The limits as this process knows them.
    pub limits: PaceLimits,
    /// Tokens (prompt and largest completion) of calls that wait, in the order in which they shall leave.
    pub calls: Vec<u64>,
    /// All calls that wait, these included: the weight of this process.
    pub demand: u32,
    /// Slots that were taken and not used: requests and their tokens.
    pub give_back: (u32, u64),
    /// Nothing may leave for so long, in microseconds: the provider said so (Retry-After).
    pub hold_us: u64,
    /// How its calls ended since it asked last.
    pub seen: Observed,
}

/// How calls of a process ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observed {
    /// Calls that the provider took.
    pub accepted: u32,
    /// Calls answered with 429 that had left under the learned rate of `version`; earlier ones say nothing about it.
    pub refused: u32,
    /// The newest learned rate that this process knows of; 0 before the first.
    pub version: u32,
    /// The learned rate held calls back.
    pub wants_more: bool,
    /// Calls per second that the headers of a refusal told.
    pub hinted: Option<f64>,
}

/// A rate that 429s have taught.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LearnedRate {
    /// Calls per second of this process.
    pub per_second: f64,
    /// Number of the shrink that it rests on.
    pub version: u32,
}

/// What an allowance gives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlotAnswer {
    /// Microseconds from the store's now until the slots of the first calls; as many as could be given.
    pub starts_us: Vec<u64>,
    /// Microseconds until it is worth asking for the others; 0 when none is left.
    pub wait_us: u64,
    /// Microseconds for which the account asked to be left alone.
    pub blocked_us: u64,
    /// Processes that asked within the last two seconds.
    pub askers: u32,
    /// This process's part of the rate that 429s have taught all of them.
    pub learned: Option<LearnedRate>,
}
