//! What a run's memory system is doing in this process, so that a call that it makes meanwhile can be said to be for it. Where several
//! banks or stages are in question at once nothing is guessed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bench_proto::metered::Stage;
use bench_store::BankRow;
use bench_systems::adapter::given::generation_of;

/// A bank by its name without the generation, and the generation.
type BankKey = (String, u32);

/// Operations in flight, by bank and stage.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many there are; what has ended is not in it.
    running: HashMap<(BankKey, Stage), u32>,
    /// Numbers of the banks that were worked on.
    numbers: HashMap<BankKey, u32>,
}

/// An operation in flight, until it is dropped.
pub(crate) struct Running {
    of: Arc<InFlight>,
    key: (BankKey, Stage),
}

/// That an operation in flight fills its bank first, until it is dropped.
pub(crate) struct Filling(Arc<Running>);

/// A bank's name in a memory system, taken apart; a name of other form is a bank of its own.
fn key_of(name: &str) -> BankKey {
    generation_of(name).map_or_else(|| (name.to_owned(), 0), |(bank, generation)| (bank.to_owned(), generation))
}

impl State {
    fn begin(&mut self, key: &(BankKey, Stage)) {
        *self.running.entry(key.clone()).or_default() += 1;
    }

    fn end(&mut self, key: &(BankKey, Stage)) {
        if let Some(count) = self.running.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(key);
            }
        }
    }

    /// The number of a bank: of this generation, or of one before it, since a bank that is filled again goes on under the next.
    fn number_of(&self, key: &BankKey) -> Option<u32> {
        let earlier = || {
            let of_bank = self.numbers.iter().filter(|((name, generation), _)| *name == key.0 && *generation < key.1);
            of_bank.max_by_key(|((_, generation), _)| *generation).map(|(_, number)| *number)
        };
        self.numbers.get(key).copied().or_else(earlier)
    }
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which bank of the run has a name.
    pub(crate) fn name(&self, name: &str, bank_no: u32) {
        self.lock().numbers.insert(key_of(name), bank_no);
    }

    /// The same of banks as they are: one that was filled before the run has another name from the next generation on.
    pub(crate) fn name_all(&self, banks: &[BankRow]) {
        for bank in banks {
            for generation in [bank.generation, bank.generation + 1] {
                self.name(&bank.name_of(generation), bank.bank_no);
            }
        }
    }

    /// The number of a bank by its name in the memory system.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.lock().number_of(&key_of(name))
    }

    /// Whether the run has a bank of this name (a name without its generation), of any generation.
    pub(super) fn has(&self, bank: &str) -> bool {
        self.lock().numbers.keys().any(|(name, _)| name == bank)
    }

    /// Notes that an operation begins.
    pub(crate) fn enter(self: &Arc<Self>, bank: &str, stage: Stage) -> Running {
        let key = (key_of(bank), stage);
        self.lock().begin(&key);
        Running { of: Arc::clone(self), key }
    }

    /// Which bank and stage a call is for that arrives now: the bank that its address names, else the only one that is worked on.
    pub(crate) fn attribute(&self, named: Option<(&str, u32)>) -> (Option<u32>, Stage) {
        let state = self.lock();
        let named = named.map(|(bank, generation)| (bank.to_owned(), generation));
        let mut found = state.running.keys().filter(|(bank, _)| named.as_ref().is_none_or(|named| named == bank));
        let Some((bank, stage)) = found.next() else {
            let number = named.and_then(|named| state.number_of(&named));
            return (number, Stage::Unattributed);
        };
        let (mut bank, mut stage) = (Some(bank), *stage);
        for (other, other_stage) in found {
            bank = bank.filter(|bank| *bank == other);
            if *other_stage != stage {
                stage = Stage::Unattributed;
            }
        }
        (bank.and_then(|bank| state.number_of(bank)), stage)
    }
}

impl Running {
    /// Notes that it fills its bank, which its process was not given, and does not do yet what it is for.
    pub(crate) fn filling(self: &Arc<Self>) -> Filling {
        let mut state = self.of.lock();
        state.end(&self.key);
        state.begin(&self.retaining());
        Filling(Arc::clone(self))
    }

    fn retaining(&self) -> (BankKey, Stage) {
        (self.key.0.clone(), Stage::Retain)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.of.lock().end(&self.key);
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        let Self(running) = self;
        let mut state = running.of.lock();
        state.end(&running.retaining());
        state.begin(&running.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p34_a_call_is_attributed_only_where_one_bank_and_one_stage_are_in_question() {
        let in_flight = Arc::new(InFlight::default());
        in_flight.name("bench-7-g1", 0);
        in_flight.name("bench-8-g2", 1);
        assert_eq!(in_flight.attribute(None), (None, Stage::Unattributed), "nothing is in flight");
        let (one, other) = ("bench-7-g1", "bench-8-g2");
        let first = in_flight.enter(one, Stage::Retain);
        let again = in_flight.enter(one, Stage::Retain);
        assert_eq!(in_flight.attribute(None), (Some(0), Stage::Retain));
        let second = in_flight.enter(other, Stage::Retain);
        assert_eq!(in_flight.attribute(None), (None, Stage::Retain), "two banks, one stage");
        assert_eq!(in_flight.attribute(Some(("bench-8", 2))), (Some(1), Stage::Retain), "its address says which");
        assert_eq!(in_flight.attribute(Some(("bench-8", 1))), (None, Stage::Unattributed), "an earlier generation");
        let asking = in_flight.enter(other, Stage::Recall);
        assert_eq!(in_flight.attribute(Some(("bench-8", 2))), (Some(1), Stage::Unattributed));
        drop((first, second, asking));
        assert_eq!(in_flight.attribute(None), (Some(0), Stage::Retain));
        drop(again);
        assert_eq!((in_flight.number("bench-8-g2"), in_flight.number("bench-9-g1")), (Some(1), None));
        assert_eq!(in_flight.attribute(Some(("bench-7", 1))), (Some(0), Stage::Unattributed), "work in the background");
        let later = in_flight.attribute(Some(("bench-7", 3)));
        assert_eq!(later, (Some(0), Stage::Unattributed), "the same bank, filled again since");
        assert!(in_flight.has("bench-8") && !in_flight.has("bench-8-g2") && !in_flight.has("nobank"));
    }

    #[test]
    fn p34_a_recall_that_fills_its_bank_first_is_a_retain_until_it_is_filled() {
        let in_flight = Arc::new(InFlight::default());
        in_flight.name("bench-7-g1", 0);
        let stage = || in_flight.attribute(None).1;
        let enter = |stage| Arc::new(in_flight.enter("bench-7-g1", stage));
        let (recall, check) = (enter(Stage::Recall), enter(Stage::Check));
        assert_eq!(stage(), Stage::Unattributed);
        let filling = recall.filling();
        assert_eq!(stage(), Stage::Unattributed, "one fills it and the other asks");
        let waiting = check.filling();
        assert_eq!(in_flight.attribute(None), (Some(0), Stage::Retain), "one fills it and the other waits for that");
        drop((waiting, check));
        assert_eq!(stage(), Stage::Retain);
        drop(filling);
        assert_eq!(in_flight.attribute(Some(("bench-7", 1))), (Some(0), Stage::Recall));
        let retain = enter(Stage::Retain);
        drop(recall);
        drop(retain.filling());
        assert_eq!(stage(), Stage::Retain);
        drop(retain);
        assert_eq!(stage(), Stage::Unattributed, "nothing is in flight");
    }
}
