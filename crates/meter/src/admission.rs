//! What the meter is told by whoever counts, and what it tells in return. The meter knows neither runs nor money: it asks whether a
//! request may go, and says what became of it.

use async_trait::async_trait;

use crate::{
    address::Address,
    ask::Asked,
    faults::Faults,
    outcome::{Outcome, Refusal, StoredReply},
    upstream::Upstream,
};

/// Decides about requests.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Whether a key belongs to a run that may call models: asked before anything of the body is read or held. `admit` is asked all the
    /// same.
    ///
    /// # Errors
    /// Why not: told to the client in its provider's words.
    async fn authenticate(&self, address: &Address, token: &str) -> Result<(), Refusal>;

    /// A request of a run, whose key it has, is refused for what does not pass by itself, here or by [`admit`](Self::admit); the `code` of
    /// its answer, and why. Told once for each, when nothing is held for it any more and before its client hears so.
    async fn refused(&self, _address: &Address, _code: &'static str, _why: &str) {}

    /// Whether a request may be sent, and where to. It may wait here for its turn; the future is dropped when the client leaves.
    ///
    /// # Errors
    /// Why it may not: told to the client in its provider's words, and nothing is sent.
    async fn admit(&self, asked: &Asked) -> Result<Box<dyn Admitted>, Refusal>;
}

/// A request that may be sent. Exactly one of these follows: it is dropped without [`sent`](Self::sent), and nothing was spent; it is
/// settled; or it is dropped after [`sent`](Self::sent) and never settled, and what it cost is not known.
#[async_trait]
pub trait Admitted: Send {
    /// A reply that is stored already. It is given to the client, and [`settle`](Self::settle) tells
    /// [`Ended::Stored`](crate::Ended::Stored) with the use that its body tells: what was saved.
    fn stored(&mut self) -> Option<StoredReply> {
        None
    }

    /// What is done on purpose to requests of this run, in place of what the settings of the meter do to all.
    fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Where the request goes.
    fn upstream(&self) -> Upstream;

    /// The next thing that happens is that bytes leave.
    fn sent(&mut self);

    /// What became of it. Awaited in a task of its own, beside the end of the reply: the client does not wait for it, and a meter that
    /// stops does.
    async fn settle(self: Box<Self>, outcome: Outcome);
}
