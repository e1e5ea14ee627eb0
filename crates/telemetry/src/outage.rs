//! Outages of what a whole process rests on: its store and its broker. Many parts of a process notice the same outage, each again and
//! again; the log says it once when it begins, and once when everybody who waited goes on.

use std::{
    fmt::Display,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The store of this process.
pub static STORE: Outage = Outage::new("the store", "store_away");
/// The broker of this process.
pub static BROKER: Outage = Outage::new("the broker", "broker_away");

/// What begins so soon after the end of an outage belongs to it: connections of one pool are found dead one after another.
const AFTERSHOCK: Duration = Duration::from_secs(5);

/// Something that may be away, and who waits for it.
#[derive(Debug)]
pub struct Outage {
    what: &'static str,
    code: &'static str,
    watch: Mutex<Watch>,
}

/// One who waits until an outage is over: held while trying again, dropped when that has worked or is given up.
#[derive(Debug)]
#[must_use = "nobody waits any more when it is dropped"]
pub struct Waiting(&'static Outage);

impl Outage {
    const fn new(what: &'static str, code: &'static str) -> Self {
        Self { what, code, watch: Mutex::new(Watch::new()) }
    }

    /// A try has failed because it is away. `waiting` is kept by the one who tries again and is emptied when that has worked.
    pub fn met(&'static self, waiting: &mut Option<Waiting>, why: &dyn Display) {
        let tell = {
            let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.as_ref().is_none_or(|waiting| !std::ptr::eq(waiting.0, self)) {
                watch.joined(Instant::now());
                *waiting = Some(Waiting(self));
            }
            watch.tells(Instant::now())
        };
        if tell {
            tracing::warn!(code = self.code, "{why}: what needs {} waits until it is back", self.what);
        } else {
            tracing::debug!(code = self.code, "still waiting: {why}");
        }
    }
}

/// What keeps a loop from going on: an outage is told as a whole, anything else once, until it works again or is something else.
#[derive(Debug, Default)]
pub struct Upset {
    waiting: Option<Waiting>,
    said: Option<String>,
}

impl Upset {
    /// Notes that this round failed because something is away.
    pub fn away(&mut self, outage: &'static Outage, why: &dyn Display) {
        self.said = None;
        outage.met(&mut self.waiting, why);
    }

    /// Notes that this round failed for a reason of its own; returns whether that is to be said.
    #[must_use]
    pub fn is_news(&mut self, why: &str) -> bool {
        self.waiting = None;
        let news = self.said.as_deref() != Some(why);
        if news {
            self.said = Some(why.to_owned());
        }
        news
    }

    /// Notes that this round worked.
    pub fn over(&mut self) {
        *self = Self::default();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let over = self.0.watch.lock().unwrap_or_else(PoisonError::into_inner).left(Instant::now());
        if let Some(took) = over {
            let elapsed_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            tracing::info!(code = self.0.code, elapsed_ms, "{} is back after {:.1} s", self.0.what, took.as_secs_f64());
        }
    }
}

/// What is known of an outage. The caller brings the time.
#[derive(Debug)]
struct Watch {
    waiting: usize,
    since: Option<Instant>,
    ended: Option<Instant>,
    told: bool,
}

impl Watch {
    const fn new() -> Self {
        Self { waiting: 0, since: None, ended: None, told: false }
    }

    /// Somebody begins to wait.
    fn joined(&mut self, now: Instant) {
        self.waiting += 1;
        self.since.get_or_insert(now);
    }

    /// Whether this is the moment to say that it is away.
    fn tells(&mut self, now: Instant) -> bool {
        let Some(since) = self.since.filter(|_| !self.told) else { return false };
        let fresh = self.ended.is_none_or(|ended| since.saturating_duration_since(ended) >= AFTERSHOCK);
        self.told = fresh || now.saturating_duration_since(since) >= AFTERSHOCK;
        self.told
    }

    /// Somebody waits no longer. How long it was away, when that is worth saying.
    fn left(&mut self, now: Instant) -> Option<Duration> {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting > 0 {
            return None;
        }
        let since = self.since.take()?;
        self.ended = Some(now);
        std::mem::take(&mut self.told).then(|| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Story {
        watch: Watch,
        begin: Instant,
    }

    impl Story {
        fn begin() -> Self {
            Self { watch: Watch::new(), begin: Instant::now() }
        }

        fn at(&self, ms: u64) -> Instant {
            self.begin + Duration::from_millis(ms)
        }

        /// A first failure of somebody; whether it is told.
        fn fails(&mut self, ms: u64) -> bool {
            let now = self.at(ms);
            self.watch.joined(now);
            self.watch.tells(now)
        }

        fn still_fails(&mut self, ms: u64) -> bool {
            let now = self.at(ms);
            self.watch.tells(now)
        }

        fn works(&mut self, ms: u64) -> Option<u64> {
            let now = self.at(ms);
            self.watch.left(now).map(|took| took.as_millis() as u64)
        }
    }

    #[test]
    fn an_outage_is_told_once_however_many_wait() {
        let mut story = Story::begin();
        assert!(story.fails(0));
        assert!(!story.fails(10) && !story.fails(900), "they are known to wait");
        assert!(!story.still_fails(2_000) && !story.still_fails(60_000));
        assert_eq!((story.works(61_000), story.works(61_050)), (None, None));
        assert_eq!(story.works(61_500), Some(61_500), "the last one goes on");
        assert!(story.fails(70_000), "another outage");
        assert_eq!(story.works(70_100), Some(100));
    }

    #[test]
    fn a_loop_says_each_trouble_once() {
        let mut upset = Upset::default();
        assert!(upset.is_news("no queue") && !upset.is_news("no queue"));
        assert!(upset.is_news("no right") && upset.is_news("no queue"));
        static NOWHERE: Outage = Outage::new("nothing", "nothing_away");
        upset.away(&NOWHERE, &"gone");
        assert_eq!(NOWHERE.watch.lock().expect("a lock").waiting, 1);
        upset.away(&NOWHERE, &"gone");
        assert_eq!(NOWHERE.watch.lock().expect("a lock").waiting, 1, "one loop waits once");
        assert!(upset.is_news("no queue"), "it came back, and something else is wrong");
        assert_eq!(NOWHERE.watch.lock().expect("a lock").waiting, 0);
        upset.over();
        assert!(upset.is_news("no queue"));
    }

    #[test]
    fn aftershocks_are_not_told_unless_they_last() {
        let mut story = Story::begin();
        assert!(story.fails(0));
        assert_eq!(story.works(50), Some(50));
        assert!(!story.fails(1_200), "another connection of the pool");
        assert_eq!(story.works(1_250), None);
        assert!(!story.fails(2_000) && !story.still_fails(4_000));
        assert!(story.still_fails(7_100), "it is away after all");
        assert!(!story.still_fails(9_000));
        assert_eq!(story.works(12_000), Some(10_000));
    }
}
