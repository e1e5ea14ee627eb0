//! Runs: what they are created with and what they are, their groups, counters and events.

use std::borrow::Cow;

use bench_proto::{
    ids::{RunId, RunNo},
    json_bound,
    money::PicoUsd,
    spec::RunSpec,
    stop::{Looks, Opened},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::BankRow;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Work goes on (or its owner died: the lock tells).
    Running,
    /// Held, resumable; the reason says why.
    Paused,
    /// Ended by a user.
    Cancelled,
    /// All questions ended.
    Finished,
}

/// Reason of a cancelled run whose calls in flight are dropped (`cancel --now`).
pub const CANCELLED_NOW: &str = "cancelled by a user, at once";

/// Reason of a paused control that nobody has started yet (P41).
pub const MEASURED_FIRST: &str = "the measured run goes first";

/// Kind of the run event that names a run whose stored replies were used.
pub const SHARED_CALLS_EVENT: &str = "calls_of";

/// Kind of the run events that say what answered its calls: a `ServedNote` as JSON.
pub const SERVED_EVENT: &str = "served";

/// Kind of the run event that says which worker session does not take the run, and why: `<session> <name>: <reason>` (P42).
pub const SYSTEM_REFUSED_EVENT: &str = "system_refused";

/// Kind of the run events that say that a process of its memory system was started again: a `StartedAgainNote` as JSON.
pub const STARTED_AGAIN_EVENT: &str = "system_started_again";

/// Kind of the run events that count the calls of its memory system that the meter has refused: a `MeterRefusedNote` as JSON.
pub const METER_REFUSED_EVENT: &str = "meter_refused";

/// Kind of the run event that says which of its banks were removed from its memory system.
pub const BANKS_GONE_EVENT: &str = "banks_gone";

/// Kind of the events that tell that the store went back in time, and what was brought back (P44).
pub const WENT_BACK_EVENT: &str = "store_went_back";

impl RunState {
    /// The state's word, also in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }

    /// The state behind a word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Paused, Self::Cancelled, Self::Finished].into_iter().find(|s| s.name() == name)
    }
}

/// A run that is to be created (in state `running`).
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Public id.
    pub run_id: RunId,
    /// Name for people.
    pub name: Option<String>,
    /// Tags for people.
    pub tags: Vec<String>,
    /// Who created it (`latest` is per user).
    pub user: String,
    /// Effective settings.
    pub spec: RunSpec,
    /// Id shared by runs that may use each other's calls (P9): the run's own id unless it was forked.
    pub lineage: String,
    /// The run it is a control of; controls are left out of `latest` and `list`.
    pub control_of: Option<RunNo>,
    /// Where its tasks are dispatched (P21): `local` or a cluster's name.
    pub domain: String,
    /// True for runs made of results from elsewhere.
    pub imported: bool,
    /// Build that created it.
    pub code_version: String,
    /// The group that it belongs to (P41); a run that a command starts alone needs none.
    pub group: Option<NewGroup>,
    /// Created paused, for the reason [`MEASURED_FIRST`].
    pub waits: bool,
    /// Kinds and messages of events that are there from the beginning, for what must never be seen without them.
    pub events: Vec<(&'static str, String)>,
}

/// The group of a run that is to be created; the first run of a group creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// Public id: that of the run that the others belong to.
    pub id: String,
    /// Its cap; where the group is there already, its own stays.
    pub cap: Option<PicoUsd>,
}

/// The group that a run is one of, by its row and by the id that people use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunGroup {
    /// Row number.
    pub group_no: i64,
    /// Public id.
    pub id: String,
}

/// What became of a run that was to be created.
#[derive(Debug, Clone, PartialEq)]
pub enum Creation {
    /// It is new.
    Made(RunNo),
    /// Somebody was quicker: the run that has this id.
    Found(Box<RunRow>),
}

/// A run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Row number.
    pub run_no: RunNo,
    /// Public id.
    pub run_id: RunId,
    /// Name for people.
    pub name: Option<String>,
    /// Tags for people.
    pub tags: Vec<String>,
    /// Who created it.
    pub user: String,
    /// Effective settings; `limits` are the current ones, the cap of a run in a group is the group's.
    pub spec: RunSpec,
    /// The group that it belongs to.
    pub group: Option<RunGroup>,
    /// See [`NewRun::lineage`].
    pub lineage: String,
    /// See [`NewRun::control_of`].
    pub control_of: Option<RunNo>,
    /// See [`NewRun::domain`].
    pub domain: String,
    /// See [`NewRun::imported`].
    pub imported: bool,
    /// See [`NewRun::code_version`].
    pub code_version: String,
    /// Current state.
    pub state: RunState,
    /// Raised by every change of state or limits (P23).
    pub state_version: i64,
    /// Why it is in this state, for people.
    pub reason: Option<String>,
    /// Creation, milliseconds since 1970.
    pub created_ms: i64,
    /// End (finished or cancelled).
    pub finished_ms: Option<i64>,
    /// Milliseconds spent in state `running`, closed intervals only.
    pub active_ms: i64,
    /// Start of the open interval in state `running`.
    pub active_since_ms: Option<i64>,
    /// Times it was resumed.
    pub resumed_times: i64,
    /// All banks have been written to the plan.
    pub planned: bool,
    /// Raised by `retry` and `resume`: results of different versions are different files.
    pub result_version: i64,
    /// Counters for progress.
    pub counters: RunCounters,
    /// What its looks have found, where it may stop early.
    pub looks: Looks,
}

impl RunRow {
    /// The run's settings as far as it asks: those of its spec, and of a run that has stopped early the sample that it has asked.
    #[must_use]
    pub fn asked_spec(&self) -> Cow<'_, RunSpec> {
        match self.looks.stopped().filter(|_| self.spec.stop.is_some()) {
            Some(look) => Cow::Owned(self.spec.stopped_at(look)),
            None => Cow::Borrowed(&self.spec),
        }
    }

    /// Questions that it asks in all: its sample, or what it has asked where it has stopped early.
    #[must_use]
    pub fn sample_size(&self) -> u64 {
        let stopped = self.looks.stopped().filter(|_| self.spec.stop.is_some());
        stopped.map_or(self.spec.sample.n, |look| look.asked)
    }

    /// A bank of the run as far as the run asks it: one that was told to go on to its end asks what it had left out too, also
    /// before a sweep has opened it.
    #[must_use]
    pub fn asked_bank<'b>(&self, bank: &'b BankRow) -> Cow<'b, BankRow> {
        let opened = if self.looks.to_the_end { bank.with_opened(Opened::All) } else { None };
        opened.map_or(Cow::Borrowed(bank), Cow::Owned)
    }

    /// Questions that have to have ended before anything follows: the next look, or the end.
    #[must_use]
    pub fn questions_due(&self) -> u64 {
        self.spec.stop.as_ref().map_or(self.spec.sample.n, |rule| rule.due(&self.looks))
    }

    /// Whether its plan is written and all questions have ended that are asked now, by the counters.
    #[must_use]
    pub fn has_ended_what_is_due(&self) -> bool {
        self.planned && self.counters.ended() >= i64::try_from(self.questions_due()).unwrap_or(i64::MAX)
    }

    /// Whether a look comes next.
    #[must_use]
    pub fn look_is_due(&self) -> bool {
        self.spec.stop.as_ref().is_some_and(|rule| !rule.is_over(&self.looks)) && self.has_ended_what_is_due()
    }

    /// Which repeat of its group it is, counted from 1; none for any other run. Repeats are told by their ids, `<group>-r<number>`:
    /// a control's id ends in the name of its memory system, and a run alone has no group.
    #[must_use]
    pub fn repeat(&self) -> Option<u32> {
        let number = self.run_id.0.strip_prefix(self.group.as_ref()?.id.as_str())?.strip_prefix("-r")?;
        // `-r01` is somebody's own id
        number.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == number)
    }

    /// Which cell of a matrix it is, and which run of that cell, both counted from 1; none for any other run. Like
    /// [`RunRow::repeat`] by its id, `<group>-c<cell>-r<number>`.
    #[must_use]
    pub fn cell(&self) -> Option<(u32, u32)> {
        let group = self.group.as_ref()?.id.as_str();
        let (cell, number) = self.run_id.0.strip_prefix(group)?.strip_prefix("-c")?.split_once("-r")?;
        let counted = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == text);
        Some((counted(cell)?, counted(number)?))
    }

    /// Its number among the runs that are the same run made several times; 1 for a run alone.
    #[must_use]
    pub fn draw(&self) -> u32 {
        self.repeat().or(self.cell().map(|(_, number)| number)).unwrap_or(1)
    }

    /// A control that nobody has started yet: the measured run goes first (P41).
    #[must_use]
    pub fn waits(&self) -> bool {
        self.state == RunState::Paused && self.reason.as_deref() == Some(MEASURED_FIRST)
    }
}

/// Counters of a run, kept by the transactions that change them; a cache for progress, never for results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCounters {
    /// Banks written to the plan.
    pub banks_planned: i64,
    /// Banks proven ready (all segments).
    pub banks_ready: i64,
    /// Stream entries in the plan.
    pub entries_planned: i64,
    /// Stream entries retained.
    pub entries_retained: i64,
    /// Questions that ended as scored.
    pub scored: i64,
    /// Questions that ended as abstained.
    pub abstained: i64,
    /// Questions that ended as infra_error.
    pub infra_error: i64,
    /// Questions answered (answer step stored), for progress between answer and judge.
    pub answered: i64,
    /// Sum of the headline scores of scored and abstained questions.
    pub headline_sum: f64,
    /// Questions that ended without a headline score: there was nothing to measure.
    #[serde(default)]
    pub unmeasured: i64,
    /// Spent, uncertain attempts included at their worst case.
    pub spent: PicoUsd,
    /// The uncertain part of `spent`: attempts of which nobody knows what they cost, at their worst case.
    pub uncertain: PicoUsd,
    /// Worst cases of attempts under way; not part of `spent`.
    #[serde(default)]
    pub reserved: PicoUsd,
    /// What attempts cost beyond their own worst case; part of `spent`.
    #[serde(default)]
    pub overdraft: PicoUsd,
}

impl RunCounters {
    /// Questions that ended.
    #[must_use]
    pub const fn ended(&self) -> i64 {
        self.scored + self.abstained + self.infra_error
    }

    /// Dollars that were surely paid: without attempts of which nobody knows what they cost.
    #[must_use]
    pub fn usd_paid(&self) -> f64 {
        self.spent.usd() - self.uncertain.usd()
    }

    /// Mean headline score of the questions that have one; none before the first.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let measured = self.scored + self.abstained - self.unmeasured;
        (measured > 0).then(|| self.headline_sum / measured as f64)
    }
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only ids that start or end with this.
    pub id_part: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only names that start with this.
    pub name_start: Option<String>,
    /// Only of this user.
    pub user: Option<String>,
    /// Also runs that are controls of others.
    pub controls: bool,
    /// Only controls of this run.
    pub control_of: Option<RunNo>,
    /// Only runs that are running or paused.
    pub open: bool,
    /// Only finished runs that lack an event.
    pub lacks: Option<Lacking>,
    /// Only runs that have an event of this kind.
    pub has_event: Option<String>,
    /// Only runs whose ids end as those of the cells of a matrix: [`RunRow::cell`] says whether they are some.
    pub cells: bool,
    /// At most so many.
    pub limit: Option<u32>,
}

/// An event that runs lack with which something is still to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Kind of the event.
    pub kind: String,
    /// Message that the event would have; one of another message does not count.
    pub message: String,
    /// A kind of event that stands for it, whatever its message.
    pub or_kind: String,
}

/// A run-level event, for `status`, `watch` and replay (P36).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// What (`created`, `paused`, `resumed`, `finished`, `bank_failed`, …).
    pub kind: String,
    /// What a person reads.
    pub message: String,
}

impl RunEvent {
    /// Notes of one kind among a run's events, which have them as JSON; what is no such note says nothing.
    pub fn notes<'e, T: DeserializeOwned>(events: &'e [Self], kind: &'e str) -> impl Iterator<Item = T> {
        let of_kind = events.iter().filter(move |event| event.kind == kind);
        of_kind.filter_map(|event| json_bound::from_str(&event.message, json_bound::SMALL).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_kind_are_read_in_their_order_and_what_is_none_is_passed_over() {
        let events = [("a", "2"), ("b", "3"), ("a", "no note"), ("a", "1")].map(|(kind, message)| RunEvent {
            at_ms: 0,
            kind: kind.to_owned(),
            message: message.to_owned(),
        });
        assert_eq!(RunEvent::notes::<u32>(&events, "a").collect::<Vec<_>>(), [2, 1]);
        assert_eq!(RunEvent::notes::<u32>(&events, "c").count(), 0);
    }
}
