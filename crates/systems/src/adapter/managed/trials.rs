//! Whether instances work at all. A system may start, say that it is healthy, and fail whatever it is asked: each bank that
//! begins anew would have another instance of it, without end. The first failure of an instance that has not yet done well
//! what it was asked for is noted; the second one like it says that others would fail too, and the run stops with what the
//! system has written into its log.
//!
//! While a failure is noted, instances start one after the other: none is started for nothing.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bench_proto::failure::Failure;

/// What an instance comes to in its first seconds may be its start: the same one counts again after these.
const WARM: Duration = Duration::from_secs(5);

/// What is known of an instance by those who use it.
#[derive(Debug, Default)]
pub(super) struct Conduct {
    /// It has answered something, well or not.
    heard: AtomicBool,
    /// Operations that it has done well.
    done: Mutex<HashSet<String>>,
}

impl Conduct {
    /// It has done this well.
    fn did(&self, operation: &str) {
        self.heard.store(true, Ordering::Relaxed);
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.contains(operation) {
            done.insert(operation.to_owned());
        }
    }

    fn has_done(&self, operation: &str) -> bool {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).contains(operation)
    }
}

/// What a failure of a fresh instance is compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trouble<'a> {
    /// Who failed: the process, not the place.
    pub(super) instance: &'a str,
    /// The dataset's id of the bank.
    pub(super) bank: &'a str,
    /// What it was asked for.
    pub(super) operation: &'a str,
    /// Code of the failure.
    pub(super) code: &'a str,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It does such things well, or has just been noted: an ordinary failure.
    Ordinary,
    /// The first of a fresh instance.
    First,
    /// The second of its kind: nothing else is started.
    Hopeless,
}

#[derive(Debug)]
struct Noted {
    instance: String,
    bank: String,
    operation: String,
    code: String,
    at: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// Instances that are being started.
    starting: usize,
    /// Instances that were started and may not have been heard of.
    started: Vec<Weak<Conduct>>,
    /// Operations that some instance has done well.
    done: HashSet<String>,
    noted: Option<Noted>,
    hopeless: Option<Failure>,
}

/// The instances of one system in one run, as this process has met them.
#[derive(Debug, Default)]
pub(super) struct Trials(Mutex<State>);

/// An instance is being started.
#[derive(Debug)]
pub(super) struct Starting<'a>(&'a Trials);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.state().starting -= 1;
    }
}

impl Trials {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another instance may be started; `Ok(None)` while one is awaited.
    pub(super) fn begin(&self, patient: bool) -> Result<Option<Starting<'_>>, Failure> {
        let mut state = self.state();
        if let Some(failure) = &state.hopeless {
            return Err(failure.clone());
        }
        let unheard = |conduct: &Weak<Conduct>| conduct.upgrade().is_some_and(|c| !c.heard.load(Ordering::Relaxed));
        state.started.retain(unheard);
        if patient && state.noted.is_some() && state.starting + state.started.len() > 0 {
            return Ok(None);
        }
        state.starting += 1;
        Ok(Some(Starting(self)))
    }

    /// An instance has been started.
    pub(super) fn started(&self, conduct: &Arc<Conduct>) {
        self.state().started.push(Arc::downgrade(conduct));
    }

    /// An instance has done something well.
    pub(super) fn did(&self, conduct: &Conduct, operation: &str) {
        if conduct.has_done(operation) {
            return;
        }
        conduct.did(operation);
        let mut state = self.state();
        state.done.insert(operation.to_owned());
        if state.noted.as_ref().is_some_and(|noted| noted.operation == operation) {
            state.noted = None;
        }
    }

    /// An instance has failed.
    pub(super) fn failed(&self, conduct: &Conduct, trouble: Trouble<'_>, now: Instant) -> Meaning {
        conduct.heard.store(true, Ordering::Relaxed);
        if conduct.has_done(trouble.operation) {
            return Meaning::Ordinary;
        }
        let mut state = self.state();
        let known = state.done.contains(trouble.operation);
        let alike = |noted: &&Noted| noted.operation == trouble.operation && noted.code == trouble.code;
        if let Some(noted) = state.noted.as_ref().filter(alike) {
            let again = noted.instance != trouble.instance || now.saturating_duration_since(noted.at) >= WARM;
            // where others do it well, one bank may be what its instances fail at
            return if again && !(known && noted.bank == trouble.bank) { Meaning::Hopeless } else { Meaning::Ordinary };
        }
        state.noted = Some(Noted {
            instance: trouble.instance.to_owned(),
            bank: trouble.bank.to_owned(),
            operation: trouble.operation.to_owned(),
            code: trouble.code.to_owned(),
            at: now,
        });
        Meaning::First
    }

    /// Notes why nothing is started any more.
    pub(super) fn give_up(&self, failure: &Failure) {
        self.state().hopeless = Some(failure.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble<'a>(instance: &'a str, bank: &'a str, code: &'a str) -> Trouble<'a> {
        Trouble { instance, bank, operation: "retain", code }
    }

    #[test]
    fn p39_the_second_equal_failure_of_fresh_instances_is_hopeless() {
        let (trials, now) = (Trials::default(), Instant::now());
        let (one, two) = (Conduct::default(), Conduct::default());
        trials.did(&one, "open");
        assert_eq!(trials.failed(&one, trouble("1", "a", "500"), now), Meaning::First, "opening is another thing");
        assert_eq!(trials.failed(&one, trouble("1", "a", "500"), now), Meaning::Ordinary, "the same one, warming up");
        assert_eq!(trials.failed(&two, trouble("2", "a", "500"), now), Meaning::Hopeless, "the next one for its bank");
        let failure = Failure::terminal("system_broken", "why");
        trials.give_up(&failure);
        assert_eq!(trials.begin(true).expect_err("nothing is started").message, "why");
    }

    #[test]
    fn p39_an_instance_that_goes_on_failing_is_hopeless_once_it_is_warm() {
        let (trials, now, one) = (Trials::default(), Instant::now(), Conduct::default());
        assert_eq!(trials.failed(&one, trouble("1", "a", "500"), now), Meaning::First);
        assert_eq!(trials.failed(&one, trouble("1", "b", "500"), now + WARM / 2), Meaning::Ordinary);
        assert_eq!(trials.failed(&one, trouble("1", "b", "500"), now + WARM), Meaning::Hopeless);
    }

    #[test]
    fn p39_other_failures_and_instances_that_work_begin_the_count_anew() {
        let (trials, now) = (Trials::default(), Instant::now());
        let [one, two, three] = [(); 3].map(|()| Conduct::default());
        assert_eq!(trials.failed(&one, trouble("1", "a", "500"), now), Meaning::First);
        assert_eq!(trials.failed(&two, trouble("2", "b", "connection"), now), Meaning::First, "another failure");
        trials.did(&two, "retain");
        assert_eq!(trials.failed(&three, trouble("3", "c", "connection"), now), Meaning::First, "the second one works");
        assert_eq!(trials.failed(&two, trouble("2", "b", "connection"), now), Meaning::Ordinary, "it has worked");
    }

    #[test]
    fn p39_a_bank_at_which_only_its_own_instances_fail_does_not_stop_the_others() {
        let (trials, now) = (Trials::default(), Instant::now());
        let [fine, first, second, other] = [(); 4].map(|()| Conduct::default());
        trials.did(&fine, "retain");
        assert_eq!(trials.failed(&first, trouble("1", "poison", "500"), now), Meaning::First);
        assert_eq!(trials.failed(&second, trouble("2", "poison", "500"), now), Meaning::Ordinary);
        assert_eq!(trials.failed(&other, trouble("3", "b", "500"), now), Meaning::Hopeless, "a second bank does");
    }

    #[test]
    fn p39_after_a_failure_instances_start_one_by_one() {
        let (trials, now) = (Trials::default(), Instant::now());
        let may = |patient| trials.begin(patient).expect("not hopeless").is_some();
        let (one, two) = (Arc::new(Conduct::default()), Arc::new(Conduct::default()));
        let first = trials.begin(true).expect("not hopeless").expect("may start");
        assert!(may(true), "several may while nothing is noted");
        trials.started(&one);
        drop(first);
        let second = trials.begin(true).expect("not hopeless").expect("may start");
        assert_eq!(trials.failed(&one, trouble("1", "a", "500"), now), Meaning::First);
        assert!(!may(true), "the second is awaited");
        trials.started(&two);
        drop(second);
        assert!(!may(true), "until it is heard of");
        assert!(may(false), "but not for ever");
        trials.did(&two, "retain");
        assert!(may(true));
    }
}
