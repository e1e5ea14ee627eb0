//! Outages of what a run depends on (P39) and processes that lack a way to it (P40): what processes tell each other, and
//! the decisions about it. Pure: the store keeps the rows, workers bring clocks and calls.
//!
//! A **route** is the way to a model, or to an operation of a memory server. Calls that fail on the way (refused, cut, 5xx, no
//! reply) say nothing about the question that was asked, so they are not counted as its attempts at once. They are *pending*
//! until somebody's success, sent later, shows that the route works (then they were the call's own: attempts), or until a probe
//! fails too (then they were the route's: forgiven).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Role, RunNo};

/// Failures without a success that make a route suspect.
pub const SUSPICIOUS_FAILURES: u32 = 5;
/// Time without any success after which a suspect route is closed to everybody, in milliseconds.
pub const SILENCE_MS: u64 = 5_000;
/// First and longest time between two probes of a closed route, in microseconds.
const PROBE_US: (i64, i64) = (1_000_000, 60_000_000);
/// Calls in flight over all processes when a route opens again; doubled by every second that goes well.
pub const FIRST_ALLOWANCE: u32 = 8;

/// What kind of calls a route to a model carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteKind {
    /// Chat completions.
    Chat,
    /// Requests for embeddings.
    Embeddings,
}

impl RouteKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
        }
    }
}

/// What a memory system is asked to do. Each may be away while the others are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Making a bank and storing in it.
    Retain,
    /// What follows before it is searched: waiting, consolidating, counting.
    Ready,
    /// Searching.
    Recall,
    /// Answering by itself.
    Answer,
}

impl Operation {
    /// All operations of a memory system that can be away.
    pub const ALL: [Self; 4] = [Self::Retain, Self::Ready, Self::Recall, Self::Answer];

    /// Its word in keys of routes and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retain => "retain",
            Self::Ready => "ready",
            Self::Recall => "recall",
            Self::Answer => "answer",
        }
    }
}

/// A route. Within a queue domain an account stands for one endpoint (P32), and so does the place of a memory server as the run
/// names it: a process that finds another one there has a fault of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteKey {
    /// What goes to one model of one account.
    Model {
        /// Chat or embeddings.
        kind: RouteKind,
        /// Name of the account.
        account: String,
        /// Model name as sent.
        model: String,
    },
    /// One operation of a memory system.
    Memory {
        /// What the memory system is asked to do.
        operation: Operation,
        /// Where it is, in the words of the run: a URL, or the variable that holds it.
        place: String,
        /// Name of the system.
        system: String,
    },
}

impl RouteKey {
    /// As stored; the last part may have any characters.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Model { kind, account, model } => format!("{} {account} {model}", kind.name()),
            Self::Memory { operation, place, system } => {
                format!("memory {} {} {system}", operation.name(), place.replace(' ', "%20"))
            }
        }
    }

    /// Code of the lines about its outages.
    #[must_use]
    pub const fn away_code(&self) -> &'static str {
        match self {
            Self::Model { .. } => "provider_away",
            Self::Memory { .. } => "system_away",
        }
    }

    /// From the store; `None` for a form of a later build.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ')?;
        let (of, rest) = rest.split_once(' ')?;
        if word == "memory" {
            let operation = Operation::ALL.into_iter().find(|operation| operation.name() == of)?;
            let (place, system) = rest.split_once(' ')?;
            return Some(Self::Memory { operation, place: place.to_owned(), system: system.to_owned() });
        }
        let kind = [RouteKind::Chat, RouteKind::Embeddings].into_iter().find(|kind| kind.name() == word)?;
        Some(Self::Model { kind, account: of.to_owned(), model: rest.to_owned() })
    }
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { kind, account, model } => {
                let what = if *kind == RouteKind::Embeddings { "embeddings of " } else { "" };
                write!(f, "{what}{model} (account {account})")
            }
            // a process that the runner started has no place
            Self::Memory { operation, place, system } if place.is_empty() => {
                write!(f, "{system} ({})", operation.name())
            }
            Self::Memory { operation, place, system } => write!(f, "{system} ({} at {place})", operation.name()),
        }
    }
}

/// What one process knows of a route. Ages are milliseconds before the evidence was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteEvidence {
    /// [`RouteKey::to_text`].
    pub route: String,
    /// Age of the last success: when it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_ms: Option<u64>,
    /// Age of the last success: when it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_sent_ms: Option<u64>,
    /// Failures on the way since then.
    pub failures: u32,
    /// Age of the first of them: when it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_ms: Option<u64>,
    /// The process has found that the fault is its own, and leaves the route to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn>,
}

/// Why a process does not use a route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Withdrawn {
    /// In plain words.
    pub reason: String,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// The provider refused this process's key, URL or model name.
    pub refused: bool,
}

/// What a meter has told the calls of a run's memory system, for the workers that judge what the system fails meanwhile (P11, P39).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterTold {
    /// The run, by its number in the store.
    pub run: RunNo,
    /// The bank that they were for; any where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<u32>,
    /// Milliseconds until they may come again; below nought when that time is over.
    pub left_ms: i64,
    /// What they have to wait for.
    pub reason: String,
    /// A provider does not answer, and it is not their turn that they wait for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_away: bool,
}

/// Version of [`SessionEvidence`].
pub const EVIDENCE_VERSION: u32 = 1;

/// What a worker tells with its renewals. Readers ignore unknown fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionEvidence {
    /// [`EVIDENCE_VERSION`] of the writer.
    pub v: u32,
    /// Routes that it has used.
    pub routes: Vec<RouteEvidence>,
    /// Roles in which it serves nobody for now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_roles: Vec<Role>,
    /// What its meter has told calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metered: Vec<MeterTold>,
}

impl SessionEvidence {
    /// As stored; nothing at all where there is nothing to tell.
    #[must_use]
    pub fn to_json(&self) -> String {
        if self.routes.is_empty() && self.idle_roles.is_empty() && self.metered.is_empty() {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the store, `age_ms` after it was told: all ages are brought up to date.
    #[must_use]
    pub fn from_json(text: &str, age_ms: u64) -> Self {
        let mut evidence: Self = serde_json::from_str(text).unwrap_or_default();
        for route in &mut evidence.routes {
            let ages = [&mut route.success_ms, &mut route.success_sent_ms, &mut route.failing_ms];
            for age in ages.into_iter().flatten() {
                *age = age.saturating_add(age_ms);
            }
            if let Some(withdrawn) = &mut route.withdrawn {
                withdrawn.for_ms = withdrawn.for_ms.saturating_add(age_ms);
            }
        }
        for told in &mut evidence.metered {
            told.left_ms = told.left_ms.saturating_sub_unsigned(age_ms);
        }
        evidence
    }

    /// What is told of a route.
    #[must_use]
    pub fn of_route(&self, route: &str) -> Option<&RouteEvidence> {
        self.routes.iter().find(|evidence| evidence.route == route)
    }
}

/// What a process makes of its failures on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// Nothing is decided yet: calls go on trying.
    None,
    /// Nobody gets through: the route is closed to everybody, and probed.
    Outage,
    /// Others get through: this process has to find out by a probe whether the fault is its own.
    Mine,
}

/// What a process makes of its failures, given what the others tell of the same route.
#[must_use]
pub fn suspect(own: &RouteEvidence, others: &[RouteEvidence]) -> Suspicion {
    let Some(failing_ms) = own.failing_ms.filter(|_| own.failures > 0) else { return Suspicion::None };
    let others_succeed = others.iter().any(|other| other.success_sent_ms.is_some_and(|sent| sent < failing_ms));
    if others_succeed {
        let doubtful = own.failures >= SUSPICIOUS_FAILURES && own.withdrawn.is_none();
        return if doubtful { Suspicion::Mine } else { Suspicion::None };
    }
    // one that withdrew has said what it knows: as long as others may get through, it closes nothing for them
    if own.withdrawn.is_some() && others.iter().any(|other| other.withdrawn.is_none()) {
        return Suspicion::None;
    }
    let all = || std::iter::once(own).chain(others);
    let failures = all().map(|evidence| evidence.failures).fold(0, u32::saturating_add);
    let longest = all().filter_map(|evidence| evidence.failing_ms).max().unwrap_or(0);
    let silence = all().filter_map(|evidence| evidence.success_ms).min().unwrap_or(u64::MAX);
    if failures >= SUSPICIOUS_FAILURES && longest.min(silence) >= SILENCE_MS {
        Suspicion::Outage
    } else {
        Suspicion::None
    }
}

/// The newest outage of a route, as the store keeps it. Times are microseconds of the store's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Outage {
    /// Counts the outages of the route.
    pub opening: i64,
    /// When the route was closed to everybody.
    pub from_us: i64,
    /// When a probe came through; `None` while it lasts.
    pub to_us: Option<i64>,
    /// Probes that failed. None of them: it is not known yet whether the route or some calls are at fault.
    pub failed_probes: i64,
    /// Earliest time of the next probe; 0 while one is under way, unless another was asked for meanwhile.
    pub next_probe_us: i64,
    /// Session that probes, and until when nobody else does.
    pub prober: Option<(i64, i64)>,
}

/// What can happen to the outage of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutageEvent {
    /// A process finds that nobody gets through; it knew of this many outages of the route before.
    Suspect {
        /// Openings that it knew of.
        known: i64,
    },
    /// A session wants to make the next probe, and will know its end after `within_us` at the latest.
    TakeProbe {
        /// The session that wants to probe.
        session: i64,
        /// Longest time of a call, in microseconds.
        within_us: i64,
    },
    /// The route is still away for who has probed.
    ProbeFailed {
        /// Who probed.
        session: i64,
        /// For which outage.
        opening: i64,
        /// Thousandths that the next wait is longer, −200 to 200, so that fleets do not probe in step.
        spread: i64,
    },
    /// Its probe could not be made: nothing is learned, another may try.
    ProbeNotMade {
        /// The session that was to probe.
        session: i64,
        /// For which outage.
        opening: i64,
    },
    /// A probe that was sent after the opening came through.
    ProbeSucceeded {
        /// For which outage.
        opening: i64,
    },
    /// Somebody asks for a probe at once (`resume`).
    ProbeNow,
}

impl Outage {
    /// Whether the route is closed to everybody but the prober.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.opening > 0 && self.to_us.is_none()
    }

    /// A probe has failed: the route was at fault, and what failed on it is forgiven.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.failed_probes > 0
    }

    /// Takes an event. True when it changed something; a probe is granted exactly when its event did.
    pub fn take(&mut self, now_us: i64, event: OutageEvent) -> bool {
        match event {
            OutageEvent::Suspect { known } => {
                // who has not heard of the last outage yet learns of it first
                if self.is_open() || self.opening > known {
                    return false;
                }
                let opening = self.opening + 1;
                *self = Self { opening, from_us: now_us, next_probe_us: now_us + PROBE_US.0, ..Self::default() };
            }
            OutageEvent::TakeProbe { session, within_us } => {
                let due = self.is_open() && self.next_probe_us <= now_us;
                if !due || self.prober.is_some_and(|(_, until_us)| now_us < until_us) {
                    return false;
                }
                (self.prober, self.next_probe_us) = (Some((session, now_us.saturating_add(within_us))), 0);
            }
            OutageEvent::ProbeFailed { session, opening, spread } => {
                if !self.is_probed_by(session, opening) {
                    return false;
                }
                self.prober = None;
                self.failed_probes += 1;
                let wait = (PROBE_US.0 << self.failed_probes.clamp(0, 6)).min(PROBE_US.1);
                let wait = wait * (1000 + spread.clamp(-200, 200)) / 1000;
                // who asked meanwhile wants to know what a probe finds that is sent now
                let was_asked = self.next_probe_us > 0;
                self.next_probe_us = if was_asked { now_us } else { now_us + wait };
            }
            OutageEvent::ProbeNotMade { session, opening } => {
                if !self.is_probed_by(session, opening) {
                    return false;
                }
                self.prober = None;
                self.next_probe_us = now_us + PROBE_US.0;
            }
            OutageEvent::ProbeSucceeded { opening } => {
                if !self.is_open() || self.opening != opening {
                    return false;
                }
                (self.to_us, self.prober) = (Some(now_us), None);
            }
            OutageEvent::ProbeNow => {
                if !self.is_open() {
                    return false;
                }
                // one that is under way goes on alone; the next follows at once
                self.next_probe_us = now_us;
            }
        }
        true
    }

    fn is_probed_by(&self, session: i64, opening: i64) -> bool {
        self.is_open() && self.opening == opening && self.prober.is_some_and(|(prober, _)| prober == session)
    }
}

/// Calls in flight over all processes that a route is trusted with, `open_ms` after an outage; `None`: as many as there are.
#[must_use]
pub fn allowance_after(open_ms: u64) -> Option<u32> {
    let doublings = u32::try_from(open_ms / 1000).unwrap_or(u32::MAX);
    (doublings < 8).then(|| FIRST_ALLOWANCE << doublings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(success_ms: Option<u64>, failures: u32, failing_ms: Option<u64>) -> RouteEvidence {
        RouteEvidence { success_ms, success_sent_ms: success_ms, failures, failing_ms, ..RouteEvidence::default() }
    }

    #[test]
    fn p39_a_route_is_closed_when_nobody_gets_through_for_five_seconds() {
        let failing = told(Some(9_000), 5, Some(5_000));
        assert_eq!(suspect(&failing, &[]), Suspicion::Outage, "one process where there is one");
        assert_eq!(suspect(&told(None, 5, Some(5_000)), &[]), Suspicion::Outage, "nobody ever got through");
        assert_eq!(suspect(&told(Some(9_000), 4, Some(8_000)), &[]), Suspicion::None, "too few");
        assert_eq!(suspect(&told(Some(9_000), 50, Some(4_999)), &[]), Suspicion::None, "too soon");
        assert_eq!(suspect(&told(Some(4_000), 50, Some(9_000)), &[]), Suspicion::None, "a reply came meanwhile");
        let few = told(Some(9_000), 2, Some(6_000));
        assert_eq!(suspect(&few, &[few.clone(), few.clone()]), Suspicion::Outage, "counted over all processes");
        assert_eq!(suspect(&told(Some(1), 0, None), &[failing]), Suspicion::None, "who does not fail suspects nothing");
    }

    #[test]
    fn p40_a_process_that_fails_alone_asks_itself() {
        let failing = told(Some(9_000), 5, Some(2_000));
        assert_eq!(suspect(&failing, &[told(Some(500), 0, None)]), Suspicion::Mine);
        assert_eq!(suspect(&failing, &[told(Some(3_000), 0, None)]), Suspicion::None, "sent before it began to fail");
        assert_eq!(suspect(&told(None, 4, Some(9_000)), &[told(Some(500), 0, None)]), Suspicion::None);
        let withdrawn = RouteEvidence { withdrawn: Some(Withdrawn::default()), ..told(None, 9, Some(60_000)) };
        assert_eq!(suspect(&withdrawn, &[told(None, 0, None)]), Suspicion::None, "others may get through");
        assert_eq!(suspect(&withdrawn, std::slice::from_ref(&withdrawn)), Suspicion::Outage, "nobody is left");
    }

    #[test]
    fn p39_an_outage_is_probed_by_one_session_until_a_probe_comes_through() {
        let (mut outage, second) = (Outage::default(), 1_000_000);
        let take = |session| OutageEvent::TakeProbe { session, within_us: 30_000_000 };
        let failed = |session, opening| OutageEvent::ProbeFailed { session, opening, spread: 0 };
        assert!(!outage.take(0, take(1)), "nothing to probe");
        assert!(outage.take(0, OutageEvent::Suspect { known: 0 }));
        assert!(!outage.take(0, OutageEvent::Suspect { known: 0 }), "others found the same");
        assert!(!outage.take(second - 1, take(1)), "not due");
        assert!(outage.take(second, take(1)));
        assert!(!outage.take(second, take(2)), "one at a time");
        assert!(!outage.take(2 * second, failed(2, 1)), "not its probe");
        assert!(!outage.is_confirmed());
        assert!(outage.take(2 * second, failed(1, 1)));
        assert!(outage.is_confirmed());
        assert_eq!(outage.next_probe_us, 4 * second);
        assert!(outage.take(4 * second, take(1)));
        assert!(outage.take(34 * second, take(2)), "a prober that died is replaced");
        assert!(!outage.take(35 * second, OutageEvent::ProbeSucceeded { opening: 0 }), "sent before it was closed");
        assert!(outage.take(35 * second, OutageEvent::ProbeSucceeded { opening: 1 }));
        assert!(!outage.is_open());
        assert!(!outage.take(36 * second, OutageEvent::Suspect { known: 0 }), "it does not know of the last one yet");
        assert!(outage.take(36 * second, OutageEvent::Suspect { known: 1 }));
        assert_eq!((outage.opening, outage.is_confirmed()), (2, false));
    }

    #[test]
    fn p39_probes_are_a_minute_apart_at_most() {
        let mut outage = Outage::default();
        outage.take(0, OutageEvent::Suspect { known: 0 });
        for _ in 0..100 {
            let now = outage.next_probe_us;
            assert!(outage.take(now, OutageEvent::TakeProbe { session: 1, within_us: 1 }));
            assert!(outage.take(now, OutageEvent::ProbeFailed { session: 1, opening: 1, spread: 200 }));
            assert!((1_000_000..=72_000_000).contains(&(outage.next_probe_us - now)));
        }
        let now = outage.next_probe_us - 50_000_000;
        assert!(outage.take(now, OutageEvent::ProbeNow));
        assert!(outage.take(now, OutageEvent::TakeProbe { session: 1, within_us: 1 }), "at once");
    }

    #[test]
    fn p39_a_probe_that_is_asked_for_waits_for_the_one_under_way_and_follows_it_at_once() {
        let (mut outage, second) = (Outage::default(), 1_000_000);
        let take = |session| OutageEvent::TakeProbe { session, within_us: 30_000_000 };
        let failed = |session| OutageEvent::ProbeFailed { session, opening: 1, spread: 0 };
        outage.take(0, OutageEvent::Suspect { known: 0 });
        assert!(outage.take(second, take(1)));
        assert!(outage.take(2 * second, OutageEvent::ProbeNow));
        assert!(!outage.take(2 * second, take(2)), "the first is under way");
        assert!(outage.take(3 * second, failed(1)));
        assert!(outage.take(3 * second, take(2)), "at once");
        assert!(outage.take(4 * second, failed(2)));
        assert!(!outage.take(4 * second, take(1)), "and then as always");
    }

    #[test]
    fn p39_after_an_outage_calls_come_back_slowly() {
        let seen: Vec<_> = [0, 999, 1_000, 3_500, 7_999, 8_000].map(allowance_after).to_vec();
        assert_eq!(seen, [Some(8), Some(8), Some(16), Some(64), Some(1024), None]);
    }

    #[test]
    fn the_stored_form_matches_its_golden_file_and_ages() {
        let evidence = SessionEvidence {
            v: EVIDENCE_VERSION,
            routes: vec![RouteEvidence {
                route: "chat openai gpt-4o-mini".to_owned(),
                withdrawn: Some(Withdrawn { reason: "connection refused".to_owned(), for_ms: 70, refused: false }),
                ..told(Some(12_000), 7, Some(900))
            }],
            idle_roles: vec![Role::Question],
            metered: vec![MeterTold {
                run: RunNo(7),
                bank: Some(3),
                left_ms: 5_000,
                reason: "the run's pace is used up".to_owned(),
                is_away: false,
            }],
        };
        let golden = include_str!("../golden/session_evidence.v1.json");
        assert_eq!(serde_json::to_string_pretty(&evidence).expect("serialises"), golden.trim_end());
        let later = SessionEvidence::from_json(&golden.replacen('{', "{\"later\": 1,", 1), 100);
        let route = later.of_route("chat openai gpt-4o-mini").expect("is told");
        assert_eq!((route.success_ms, route.failing_ms, route.failures), (Some(12_100), Some(1_000), 7));
        assert_eq!(route.withdrawn.as_ref().map(|withdrawn| withdrawn.for_ms), Some(170));
        assert_eq!(later.metered.first().map(|told| (told.run, told.left_ms)), Some((RunNo(7), 4_900)));
        assert_eq!(SessionEvidence::from_json("", 5), SessionEvidence::default());
        assert_eq!(SessionEvidence::default().to_json(), "");
    }

    proptest! {
        #[test]
        fn route_keys_come_apart_again(word in "[a-z0-9:/${}-]{1,12}", last in "\\PC{0,30}", chat: bool, of in 0_usize..4) {
            let kind = if chat { RouteKind::Chat } else { RouteKind::Embeddings };
            let model = RouteKey::Model { kind, account: word.clone(), model: last.clone() };
            let memory = RouteKey::Memory { operation: Operation::ALL[of], place: word, system: last };
            for key in [model, memory] {
                prop_assert_eq!(RouteKey::from_text(&key.to_text()), Some(key));
            }
        }
    }
}
