//! What the accounts of a metered run said while it was executed, kept as events of the run: a watch that begins, and what it has
//! found when the run rests. A watch whose process was killed is gone on with by the next.

use bench_proto::summary::AccountsSpent;
use bench_store::RunEvent;
use serde::{Deserialize, Serialize};

/// Kind of the event that keeps how a watch began, as JSON of a [`Watched`].
pub(crate) const WATCHED_EVENT: &str = "accounts_watched";
/// Kind of the event that keeps what was found, as JSON of an [`AccountsSpent`].
pub(crate) const SPENT_EVENT: &str = "accounts_spent";
/// Kind of the event that says why nobody watched.
pub(crate) const UNWATCHED_EVENT: &str = "accounts_not_watched";

/// What accounts said when a watch began, and what was booked then, in dollars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// Names of the accounts.
    pub(crate) accounts: Vec<String>,
    pub(crate) usd: f64,
    pub(crate) usd_booked: f64,
}

/// What events say of the watches of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Watches {
    /// All that has ended, added up.
    spent: Option<AccountsSpent>,
    /// One that has not ended.
    pub(crate) open: Option<Watched>,
    /// Why a part was not watched.
    unwatched: Option<String>,
}

impl Watches {
    /// By the events of a run.
    pub(crate) fn read<'e>(events: impl IntoIterator<Item = &'e RunEvent>) -> Self {
        let mut all = Self::default();
        for event in events {
            match event.kind.as_str() {
                WATCHED_EVENT => all.open = serde_json::from_str(&event.message).ok(),
                SPENT_EVENT => {
                    all.open = None;
                    if let Ok(next) = serde_json::from_str::<AccountsSpent>(&event.message) {
                        all.add(next);
                    }
                }
                UNWATCHED_EVENT => drop(all.unwatched.get_or_insert_with(|| event.message.clone()).len()),
                _ => {}
            }
        }
        all
    }

    fn add(&mut self, next: AccountsSpent) {
        let Some(sum) = &mut self.spent else {
            self.spent = Some(next);
            return;
        };
        sum.usd += next.usd;
        sum.usd_booked += next.usd_booked;
        for name in next.accounts {
            if !sum.accounts.contains(&name) {
                sum.accounts.push(name);
            }
        }
    }

    /// Whether the run was to be watched at any time.
    pub(crate) const fn are_any(&self) -> bool {
        self.spent.is_some() || self.open.is_some() || self.unwatched.is_some()
    }

    /// What a report says of them; none where nobody was to watch.
    fn told(self) -> Option<AccountsSpent> {
        if !self.are_any() {
            return None;
        }
        let Self { spent, open, unwatched } = self;
        let cut = || open.map(|_| "the process was gone before the accounts could be asked again".to_owned());
        Some(AccountsSpent { not_watched: unwatched.or_else(cut), ..spent.unwrap_or_default() })
    }
}

/// What was found of a run by its events, over all times that it was executed; none where nobody was to watch.
pub(super) fn found(events: &[RunEvent]) -> Option<AccountsSpent> {
    Watches::read(events).told()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watches(events: &[(&str, &str)]) -> Watches {
        let event = |(kind, message): &(&str, &str)| RunEvent {
            kind: (*kind).to_owned(),
            message: (*message).to_owned(),
            at_ms: 0,
        };
        Watches::read(&events.iter().map(event).collect::<Vec<_>>())
    }

    #[test]
    fn watches_add_up_and_what_nobody_watched_is_said() {
        let begun = (WATCHED_EVENT, r#"{"accounts":["a"],"usd":5.0,"usd_booked":0.5}"#);
        let ended = (SPENT_EVENT, r#"{"accounts":["a"],"usd":1.5,"usd_booked":1.0}"#);
        let more = (SPENT_EVENT, r#"{"accounts":["b"],"usd":0.5,"usd_booked":0.5}"#);
        assert_eq!(watches(&[("other", "x")]).told(), None);
        let two = watches(&[begun, ended, begun, more]).told().expect("watched");
        assert_eq!((two.usd, two.usd_booked, two.accounts.len(), &two.not_watched), (2.0, 1.5, 2, &None));
        let killed = watches(&[begun, ended, begun]);
        assert_eq!(killed.open.as_ref().map(|watched| watched.usd), Some(5.0), "the next goes on from there");
        assert!(killed.told().expect("watched").not_watched.is_some_and(|why| why.contains("was gone")));
        let silent = watches(&[(UNWATCHED_EVENT, "it answers 500")]).told().expect("was to be watched");
        assert_eq!((silent.usd, silent.not_watched.as_deref()), (0.0, Some("it answers 500")));
    }
}
