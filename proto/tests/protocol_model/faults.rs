//! What may go wrong, and how often in one run of the model.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// kill -9 of a worker.
    Crash,
    /// SIGSTOP of a worker, or a cut line; it may go on later.
    Freeze,
    /// A call fails and may be repeated; what it has done is unknown.
    CallFails,
    /// A call fails for good.
    CallRefused,
    /// The task panics.
    Panic,
    /// The task has to wait long (P11).
    Park,
    /// A claim or a commit is carried out and its answer lost.
    LostAnswer,
    /// The broker delivers twice.
    Duplicate,
    /// The broker loses all messages that it holds.
    LostQueue,
    /// A worker's line to the broker is cut: acks are lost, deliveries come again.
    CutLine,
    /// A second leader takes over while the first one goes on.
    TakeOver,
    /// A leader crashes between publishing and its note.
    LeaderCrash,
    /// The store cannot be reached for a while.
    Outage,
    /// A counter is wrong.
    Corruption,
    /// A user asks to repeat what failed.
    Reopen,
}

const KINDS: usize = Fault::Reopen as usize + 1;

impl Fault {
    /// All kinds.
    pub(crate) const ALL: [Self; KINDS] = [
        Self::Crash,
        Self::Freeze,
        Self::CallFails,
        Self::CallRefused,
        Self::Panic,
        Self::Park,
        Self::LostAnswer,
        Self::Duplicate,
        Self::LostQueue,
        Self::CutLine,
        Self::TakeOver,
        Self::LeaderCrash,
        Self::Outage,
        Self::Corruption,
        Self::Reopen,
    ];
}

/// How many faults of each kind may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Budget([u8; KINDS]);

impl Budget {
    /// A budget of these faults.
    pub(crate) fn with(faults: &[(Fault, u8)]) -> Self {
        let mut budget = Self::default();
        for (fault, count) in faults {
            budget.0[*fault as usize] = *count;
        }
        budget
    }

    /// Whether such a fault may happen.
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.0[fault as usize] > 0
    }

    /// Spends one fault.
    pub(crate) fn spend(&mut self, fault: Fault) {
        self.0[fault as usize] -= 1;
    }
}
