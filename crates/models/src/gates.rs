//! The gates and paces of a process, one for each allowance, whatever run asks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bench_store::{Allowance, PaceLimits, Paces};

use crate::{
    gate::{AccountBlock, DEFAULT_MAX_IN_FLIGHT, Gate},
    limiter::Limiter,
    pace::{Pace, shared::SharedPace},
};

/// All gates of a process.
pub struct Gates {
    max_in_flight: usize,
    state: Mutex<GateMap>,
}

#[derive(Default)]
struct GateMap {
    gates: HashMap<Allowance, Arc<Gate>>,
    blocks: HashMap<(String, String), Arc<AccountBlock>>,
    paces: HashMap<(Allowance, PaceLimits), Arc<SharedPace>>,
}

impl Default for Gates {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_IN_FLIGHT)
    }
}

impl Gates {
    /// Gates that grow up to `max_in_flight` calls each.
    #[must_use]
    pub fn new(max_in_flight: usize) -> Self {
        Self { max_in_flight, state: Mutex::default() }
    }

    /// The pace of an allowance, shared with all processes of the store. A process works on one store.
    #[must_use]
    pub fn pace(&self, store: &Arc<dyn Paces>, allowance: &Allowance, limits: PaceLimits) -> Arc<dyn Pace> {
        let gate = self.gate(allowance);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let join = || Arc::new(SharedPace::join(Arc::clone(store), allowance.clone(), limits, gate));
        Arc::clone(state.paces.entry((allowance.clone(), limits)).or_insert_with(join)) as Arc<dyn Pace>
    }

    /// The gate of an allowance. Limit groups of one account share its Retry-After.
    #[must_use]
    pub fn gate(&self, allowance: &Allowance) -> Arc<Gate> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let GateMap { gates, blocks, .. } = &mut *state;
        let gate = gates.entry(allowance.clone()).or_insert_with(|| {
            let block = blocks.entry((allowance.endpoint.clone(), allowance.account.clone())).or_default();
            Arc::new(Gate { limiter: Limiter::new(self.max_in_flight), block: Arc::clone(block) })
        });
        Arc::clone(gate)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bench_store::CallKind;

    use super::*;
    use crate::gate::Entry;

    fn allowance(account: &str, limit_group: &str, kind: CallKind) -> Allowance {
        let (endpoint, account, limit_group) = ("http://a/v1".to_owned(), account.to_owned(), limit_group.to_owned());
        Allowance { endpoint, account, limit_group, kind }
    }

    #[tokio::test]
    async fn retry_after_holds_the_whole_account_and_nobody_else() {
        let gates = Gates::default();
        let gate = gates.gate(&allowance("openai", "gpt-4o", CallKind::Chat));
        let sibling = gates.gate(&allowance("openai", "gpt-4o-mini", CallKind::Chat));
        let other = gates.gate(&allowance("judge-eu", "gpt-4o", CallKind::Chat));
        assert!(Arc::ptr_eq(&gate, &gates.gate(&allowance("openai", "gpt-4o", CallKind::Chat))));
        assert!(!Arc::ptr_eq(&gate, &gates.gate(&allowance("openai", "gpt-4o", CallKind::Embeddings))));
        gate.block.hold(Duration::from_secs(60));
        gate.block.hold(Duration::from_millis(10));
        assert!(
            matches!(sibling.enter(Duration::from_secs(5)).await, Entry::Later { wait } if wait > Duration::from_secs(59))
        );
        assert!(matches!(other.enter(Duration::ZERO).await, Entry::Go(_)));
    }
}
