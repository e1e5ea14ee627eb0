//! All states of a fleet, each looked at once, and from each of them a way to the end.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::{
    steps::{Step, after, enabled},
    world::{Fleet, STEP, World},
};

/// What searches have to meet, or they prove nothing.
pub(super) const OPENED: &str = "a route is closed";
pub(super) const CONFIRMED: &str = "a probe fails";
pub(super) const FALSE_ALARM: &str = "the first probe of an outage comes through";
pub(super) const WITHDRAWN: &str = "a process withdraws";
pub(super) const CAME_BACK: &str = "a process that withdrew comes back";
pub(super) const CHARGED: &str = "a failure counts";
pub(super) const GIVEN_UP: &str = "a call is given up";
pub(super) const PUT_OFF: &str = "a task is put off";
pub(super) const MIXED: &str = "the provider fails some calls";
pub(super) const PROBER_DIED: &str = "a prober is killed";
pub(super) const PAUSED: &str = "a run is paused by a refusal";
pub(super) const TWO_CLOSE: &str = "one closes a route that is closed";

/// More states than any of the fleets has.
const MOST: usize = 400_000;

/// A state as numbers: ages in place of moments, and of old moments their order only.
pub(super) struct Shape {
    now: Instant,
    remembers: i64,
    numbers: Vec<i64>,
    old: Vec<(i64, usize)>,
}

impl Shape {
    pub(super) fn at(now: Instant, remembers: u32) -> Self {
        let remembers = (STEP * remembers).as_millis() as i64;
        Self { now, remembers, numbers: Vec::with_capacity(128), old: Vec::new() }
    }

    pub(super) fn put(&mut self, number: i64) {
        self.numbers.push(number);
    }

    fn age_of(&self, moment: Instant) -> i64 {
        let millis = |duration: Duration| duration.as_millis() as i64;
        match self.now.checked_duration_since(moment) {
            Some(age) => millis(age),
            None => -millis(moment - self.now),
        }
    }

    /// A moment of which only the age matters, up to a bound.
    pub(super) fn age(&mut self, moment: Option<Instant>) {
        let age = moment.map_or(i64::MAX, |moment| self.age_of(moment).clamp(-1_000_000, self.remembers));
        self.numbers.push(age);
    }

    /// A moment that is compared with others.
    pub(super) fn order(&mut self, moment: Option<Instant>) {
        let age = moment.map_or(i64::MAX, |moment| self.age_of(moment));
        if moment.is_some() && age >= self.remembers {
            self.old.push((age, self.numbers.len()));
        }
        self.numbers.push(age);
    }

    pub(super) fn hash(mut self) -> u64 {
        self.old.sort_unstable();
        let (mut rank, mut last) = (self.remembers, None);
        for (age, at) in self.old {
            rank += i64::from(last.is_some_and(|last| last != age));
            last = Some(age);
            self.numbers[at] = rank;
        }
        self.numbers.iter().fold(0, |hash: u64, number| {
            let mixed = (hash ^ *number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(27)
        })
    }
}

/// What a search has found.
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// A broken promise and the way to it.
    pub(super) broken: Option<(&'static str, Vec<Step>)>,
    /// The way to a state from which nothing leads to the end.
    pub(super) dead_end: Option<Vec<Step>>,
    pub(super) met: Vec<&'static str>,
}

/// Looks at all states, up to the first broken promise.
pub(super) fn search(fleet: &Fleet) -> Found {
    let mut parents: Vec<Option<(u32, Step)>> = Vec::new();
    let mut before: Vec<Vec<u32>> = Vec::new();
    let mut complete: Vec<u32> = Vec::new();
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut waiting = VecDeque::new();
    let mut found = Found { states: 0, steps: 0, broken: None, dead_end: None, met: Vec::new() };
    let start = World::start(fleet);
    numbers.insert(start.shape(fleet), 0);
    parents.push(None);
    before.push(Vec::new());
    waiting.push_back((0_u32, start));
    let mut choices = Vec::new();
    while let Some((number, world)) = waiting.pop_front() {
        if world.is_complete() {
            complete.push(number);
            continue;
        }
        enabled(fleet, &world, &mut choices);
        for step in choices.drain(..) {
            let next = after(fleet, &world, step);
            found.steps += 1;
            for situation in &next.met {
                if !found.met.contains(situation) {
                    found.met.push(situation);
                }
            }
            if let Some(promise) = next.broken {
                let mut way = way_to(&parents, number);
                way.push(step);
                found.broken = Some((promise, way));
                found.states = parents.len();
                return found;
            }
            let at = *numbers.entry(next.shape(fleet)).or_insert_with(|| {
                let at = parents.len() as u32;
                parents.push(Some((number, step)));
                before.push(Vec::new());
                waiting.push_back((at, next));
                at
            });
            if !step.is_fault() && at != number {
                before[at as usize].push(number);
            }
        }
        assert!(parents.len() < MOST, "too many states: {fleet:?}\n{:?}", way_to(&parents, number));
    }
    found.states = parents.len();
    let mut ends = vec![false; parents.len()];
    while let Some(number) = complete.pop() {
        if !std::mem::replace(&mut ends[number as usize], true) {
            complete.extend(&before[number as usize]);
        }
    }
    found.dead_end = ends.iter().position(|ends| !ends).map(|at| way_to(&parents, at as u32));
    found
}

fn way_to(parents: &[Option<(u32, Step)>], mut at: u32) -> Vec<Step> {
    let mut way = Vec::new();
    while let Some((parent, step)) = parents[at as usize] {
        way.push(step);
        at = parent;
    }
    way.reverse();
    way
}

/// A way for people, one step a line.
pub(super) fn told(way: &[Step]) -> String {
    way.iter().map(|step| format!("\n  {step:?}")).collect()
}
