//! "From every state that can be reached, a run that is left alone completes."
//!
//! The checker's own `eventually` looks at paths without loops only, and this protocol polls. So the graph of all states is
//! built once, and walked backwards from the complete ones along the steps that are no faults: whoever is not met is stuck.
//! (On a finite graph this also says that a run whose steps are taken in random order completes with certainty.)

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, Hasher},
};

use crate::{actions::Action, properties::is_complete, setup::Protocol, state::State};

/// A quick hash of states; the search of the checker, with a hash of its own, must count as many.
#[derive(Default)]
struct StateHasher(u64);

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed.rotate_left(26) ^ (mixed >> 17);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// The whole graph of a model.
pub(crate) struct Graph {
    /// The state that each state was first reached from, and by what.
    parents: Vec<Option<(u32, Action)>>,
    /// By state: those that lead to it without a fault.
    before: Vec<Vec<u32>>,
    complete: Vec<u32>,
}

impl Graph {
    /// Walks all states.
    pub(crate) fn walk(protocol: &Protocol) -> Self {
        let mut graph = Self { parents: Vec::new(), before: Vec::new(), complete: Vec::new() };
        let mut numbers: HashMap<u64, u32, BuildHasherDefault<StateHasher>> = HashMap::default();
        let mut waiting = VecDeque::new();
        let mut actions = Vec::new();
        let mut number_of = |state: State, parent, graph: &mut Self, waiting: &mut VecDeque<(u32, State)>| {
            let hash = BuildHasherDefault::<StateHasher>::default().hash_one(&state);
            *numbers.entry(hash).or_insert_with(|| {
                let number = graph.parents.len() as u32;
                graph.parents.push(parent);
                graph.before.push(Vec::new());
                if is_complete(protocol, &state) {
                    graph.complete.push(number);
                }
                waiting.push_back((number, state));
                number
            })
        };
        number_of(protocol.start(), None, &mut graph, &mut waiting);
        while let Some((number, state)) = waiting.pop_front() {
            protocol.enabled(&state, &mut actions);
            for action in actions.drain(..) {
                let next = number_of(protocol.after(&state, action), Some((number, action)), &mut graph, &mut waiting);
                if action.is_recovery(&state) && next != number {
                    graph.before[next as usize].push(number);
                }
            }
        }
        graph
    }

    /// Number of states.
    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The shortest way to a state from which nothing leads to completion.
    pub(crate) fn way_into_a_dead_end(&self) -> Option<Vec<Action>> {
        let mut completes = vec![false; self.len()];
        let mut waiting = self.complete.clone();
        while let Some(number) = waiting.pop() {
            if !std::mem::replace(&mut completes[number as usize], true) {
                waiting.extend(&self.before[number as usize]);
            }
        }
        let mut at = completes.iter().position(|completes| !completes)?;
        let mut way = Vec::new();
        while let Some((parent, action)) = self.parents[at] {
            way.push(action);
            at = parent as usize;
        }
        way.reverse();
        Some(way)
    }
}
