//! The protocol of tasks, leases and steps, checked in every order of events for small runs (P27).
//!
//! The model takes each statement of the store, each message of the broker and each step of a worker, dispatcher or supervisor
//! as one action, with a budget of faults. Tasks change by [`bench_proto::task::transition`] alone; a differential test in the
//! store crate holds the SQL of both stores to the same function.
//!
//! - `state`, `setup`: what there is; `faults`: what may go wrong
//! - `actions`, `apply`, `store`, `worker`: what can happen, and what it does
//! - `properties`, `liveness`: what must hold
//! - `scenarios`: all states of small runs; `mutants`: the same with a rule left out; `random`: long schedules of larger runs
//!
//! Left out: money, pace and the calls' own retries (tests of their own hold them), roles and pools, the batches of the writer
//! (rows are keyed one by one), and clocks: whatever needs a wait may happen at any later moment.

mod actions;
mod apply;
mod faults;
mod liveness;
mod mutants;
mod properties;
mod random;
mod scenarios;
mod setup;
mod state;
mod store;
mod worker;

use stateright::{Model, Property};

impl Model for setup::Protocol {
    type State = state::State;
    type Action = actions::Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![self.start()]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &Self::State, action: Self::Action) -> Option<Self::State> {
        Some(self.after(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = properties::ALWAYS.iter().map(|(name, check)| Property::always(name, *check));
        always.chain(self.must_meet.iter().map(|(name, check)| Property::sometimes(name, *check))).collect()
    }
}
