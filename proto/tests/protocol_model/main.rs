//! The protocol of tasks, leases and steps, checked in every order of events for small runs (P27).
//!
//! The model is the store's statements, the broker, the workers, dispatchers and supervisors as single steps, with a budget of
//! faults. Each task changes by [`bench_proto::task::transition`] alone. `scenarios` searches all states of small runs,
//! `mutants` shows that the search notices when a rule is left out, `random` plays long schedules of larger runs.

mod actions;
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
