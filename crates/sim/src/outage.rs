//! Outages: for a time, all requests of a kind, a model or a key meet the same end. Unlike faults they depend on time, as
//! real ones do. What an outage struck and what came after it is counted for each.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    draw::{RequestKey, RequestKind},
    error::{ApiError, ConfigError},
};

/// Length of a part of an outage's history.
const PART: Duration = Duration::from_millis(100);
/// Parts that are kept: ten minutes.
const MAX_PARTS: usize = 6_000;

/// How requests end in an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// An error reply with [`Outage::status`].
    Status,
    /// The request is read and not answered for ten minutes.
    Hang,
    /// The connection is closed before the first byte of the reply.
    Cut,
    /// The reply is made, and paid, and the connection closed in the middle of its body.
    CutBody,
    /// 200 with a page of HTML.
    Html,
    /// Nobody listens: connections are refused, open ones closed. The port stays reserved. It strikes everything.
    Refuse,
}

/// What requests an outage can be confined to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// Chats, with those of judges.
    Chat,
    /// Chats that ask for a verdict.
    Judge,
    /// Requests for embeddings.
    Embeddings,
}

/// An outage as it is asked for, as JSON or as `name=value,name=value` with the fields' names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// How requests end.
    pub kind: OutageKind,
    /// HTTP status of [`OutageKind::Status`].
    #[serde(default = "unavailable")]
    pub status: u16,
    /// The provider's words, for [`OutageKind::Status`].
    #[serde(default)]
    pub message: Option<String>,
    /// Sent as `retry-after`, in seconds, for [`OutageKind::Status`].
    #[serde(default)]
    pub retry_after_s: Option<u64>,
    /// Only requests for this model.
    #[serde(default)]
    pub model: Option<String>,
    /// Only such requests.
    #[serde(default)]
    pub calls: Option<Calls>,
    /// Only requests with this key.
    #[serde(default)]
    pub key: Option<String>,
    /// Only requests with this in a message or an input: a poison request.
    #[serde(default)]
    pub contains: Option<String>,
    /// Begins so many milliseconds after it was set.
    #[serde(default)]
    pub after_ms: u64,
    /// Begins when so many requests that it covers have arrived.
    #[serde(default)]
    pub after_requests: u64,
    /// Lasts so many milliseconds; without end when absent.
    #[serde(default)]
    pub for_ms: Option<u64>,
    /// Strikes no more requests than so many.
    #[serde(default)]
    pub times: Option<u64>,
}

const fn unavailable() -> u16 {
    503
}

impl Outage {
    /// An outage of everything, from now on, without an end.
    #[must_use]
    pub const fn of_everything(kind: OutageKind) -> Self {
        Self {
            kind,
            status: unavailable(),
            message: None,
            retry_after_s: None,
            model: None,
            calls: None,
            key: None,
            contains: None,
            after_ms: 0,
            after_requests: 0,
            for_ms: None,
            times: None,
        }
    }

    /// Requests that contain `text` always die.
    #[must_use]
    pub fn poison(text: impl Into<String>) -> Self {
        Self { contains: Some(text.into()), ..Self::of_everything(OutageKind::Cut) }
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// An unknown field, a wrong type, or a combination that means nothing.
    pub fn from_json(value: Value) -> Result<Self, ConfigError> {
        let outage: Self =
            serde_json::from_value(value).map_err(|e| ConfigError(format!("cannot read the outage: {e}")))?;
        outage.check()?;
        Ok(outage)
    }

    /// What types cannot say.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(format!("cannot read the outage: {what}")));
        if !(400..=599).contains(&self.status) {
            return wrong("its status must be between 400 and 599");
        }
        let confined = self.model.is_some() || self.calls.is_some() || self.key.is_some() || self.contains.is_some();
        if self.kind == OutageKind::Refuse && (confined || self.times.is_some()) {
            return wrong("refused connections have no model, calls, key, text or times");
        }
        Ok(())
    }

    /// The error reply of [`OutageKind::Status`].
    pub(crate) fn error(&self) -> ApiError {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let (kind, code, message) = match self.status {
            401 => ("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided."),
            404 => ("invalid_request_error", Some("model_not_found"), "The model does not exist."),
            429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached."),
            400..=499 => ("invalid_request_error", None, "The request cannot be processed."),
            _ => ("server_error", None, "The engine is currently overloaded, please try again later."),
        };
        let mut error = ApiError::new(status, kind, code, message);
        if let Some(words) = &self.message {
            error.message.clone_from(words);
        }
        error.retry_after_ms = self.retry_after_s.map(|seconds| seconds.saturating_mul(1000));
        error
    }

    fn covers(&self, about: &About<'_>) -> bool {
        let is = |wanted: &Option<String>, it: &str| wanted.as_deref().is_none_or(|wanted| wanted == it);
        let of_kind = match self.calls {
            None => true,
            Some(Calls::Chat) => about.kind != RequestKind::Embedding,
            Some(Calls::Judge) => about.kind == RequestKind::Judge,
            Some(Calls::Embeddings) => about.kind == RequestKind::Embedding,
        };
        of_kind
            && is(&self.model, about.model)
            && is(&self.key, about.account)
            && self.contains.as_deref().is_none_or(about.has)
    }
}

impl std::str::FromStr for Outage {
    type Err = ConfigError;

    /// `kind=status,status=503,model=m,for_ms=30000`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let fields: Option<Map<String, Value>> = text
            .split(',')
            .map(|field| {
                let (name, value) = field.split_once('=')?;
                let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
                Some((name.trim().to_owned(), value))
            })
            .collect();
        let fields = fields.ok_or_else(|| {
            ConfigError(format!("cannot read outage '{text}': use kind=status,status=503,model=NAME,for_ms=30000"))
        })?;
        Self::from_json(fields.into())
    }
}

/// Where an outage is in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageState {
    /// It has not begun.
    #[default]
    Waiting,
    /// The outage strikes.
    On,
    /// It has ended.
    Over,
}

/// An outage and what was seen of the requests that it covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageFigures {
    /// Number of the outage.
    pub id: u64,
    /// The outage as it was asked for.
    pub outage: Outage,
    /// Where it is in its life.
    pub state: OutageState,
    /// Milliseconds from the simulator's start.
    pub began_ms: Option<u64>,
    /// Milliseconds from the simulator's start.
    pub ended_ms: Option<u64>,
    /// Requests that it struck; none can arrive where connections are refused.
    pub requests: u64,
    /// Different ones among them.
    pub distinct_requests: u64,
    /// Struck requests by model.
    pub by_model: BTreeMap<String, u64>,
    /// Struck requests in each 100 ms since it began, for ten minutes at most.
    pub per_100ms: Vec<u64>,
    /// What came after its end.
    pub after: AfterOutage,
}

/// Requests that an outage covers and that came after its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterOutage {
    /// Number of requests.
    pub requests: u64,
    /// Different ones among them.
    pub distinct_requests: u64,
    /// Requests that were answered with 429 or 5xx.
    pub turned_away: u64,
    /// Most of them in flight at once.
    pub max_in_flight: u64,
    /// Most of them in one of the 100 ms.
    pub max_per_100ms: u64,
    /// Requests that came in each 100 ms after the end, for ten minutes at most.
    pub per_100ms: Vec<u64>,
}

/// A request, as far as outages differ.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) key: RequestKey,
    pub(crate) kind: RequestKind,
    pub(crate) model: &'a str,
    pub(crate) account: &'a str,
    /// Whether a text stands in it.
    pub(crate) has: &'a (dyn Fn(&str) -> bool + Sync),
}

/// Whether connections are accepted, and until when that cannot change by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) closed: bool,
    pub(crate) until: Option<Duration>,
}

/// An outage with its books.
#[derive(Debug)]
struct Kept {
    figures: OutageFigures,
    set: Duration,
    began: Option<Duration>,
    ended: Option<Duration>,
    /// Covered requests since it was set.
    covered: u64,
    /// When there were as many of them as it waits for.
    reached: Option<Duration>,
    struck: HashSet<RequestKey>,
    later: HashSet<RequestKey>,
    in_flight: u64,
}

/// All outages. Times are given by the caller, as time since the simulator's start.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    kept: Vec<Kept>,
    given: u64,
}

impl Kept {
    fn outage(&self) -> &Outage {
        &self.figures.outage
    }

    /// When it begins, as far as that is known.
    fn due(&self) -> Option<Duration> {
        self.reached.map(|reached| reached.max(self.set + Duration::from_millis(self.outage().after_ms)))
    }

    fn end(&self) -> Option<Duration> {
        let lasts = Duration::from_millis(self.outage().for_ms?);
        self.began.map(|began| began + lasts)
    }

    /// Its state at `now`; beginnings and ends are noted when they are seen.
    fn look(&mut self, now: Duration) -> OutageState {
        // it began when it was due, seen or not
        self.began = self.began.or(self.due().filter(|due| *due <= now));
        if self.ended.is_none() {
            let spent = self.outage().times.is_some_and(|times| self.figures.requests >= times);
            self.ended = self.end().filter(|end| *end <= now).or(spent.then_some(now));
        }
        match (self.began, self.ended) {
            (_, Some(_)) => OutageState::Over,
            (Some(_), None) => OutageState::On,
            (None, None) => OutageState::Waiting,
        }
    }
}

impl Outages {
    /// Sets an outage; the answer is its number.
    pub(crate) fn set(&mut self, outage: Outage, now: Duration) -> u64 {
        self.given += 1;
        let after_requests = outage.after_requests;
        let figures = OutageFigures {
            id: self.given,
            outage,
            state: OutageState::Waiting,
            began_ms: None,
            ended_ms: None,
            requests: 0,
            distinct_requests: 0,
            by_model: BTreeMap::new(),
            per_100ms: Vec::new(),
            after: AfterOutage::default(),
        };
        self.kept.push(Kept {
            figures,
            set: now,
            began: None,
            ended: None,
            covered: 0,
            reached: (after_requests == 0).then_some(now),
            struck: HashSet::new(),
            later: HashSet::new(),
            in_flight: 0,
        });
        self.given
    }

    /// Ends an outage, or all of them; whether there was one.
    pub(crate) fn end(&mut self, id: Option<u64>, now: Duration) -> bool {
        let mut found = false;
        for kept in self.kept.iter_mut().filter(|kept| id.is_none_or(|id| id == kept.figures.id)) {
            found = true;
            kept.look(now);
            kept.ended.get_or_insert(now);
        }
        found
    }

    /// Forgets outages that are over and the figures of the others.
    pub(crate) fn reset(&mut self, now: Duration) {
        self.kept.retain_mut(|kept| kept.look(now) != OutageState::Over);
        for kept in &mut self.kept {
            kept.figures.requests = 0;
            kept.figures.by_model.clear();
            kept.figures.per_100ms.clear();
            kept.struck.clear();
        }
    }

    /// A request arrives: the outage that strikes it, if any. `passing` receives the numbers of those that cover it and do
    /// not: each wants [`Self::leave`] when the request has ended.
    pub(crate) fn arrive(&mut self, about: &About<'_>, now: Duration, passing: &mut Vec<u64>) -> Option<Outage> {
        let mut strikes = None;
        for kept in &mut self.kept {
            if !kept.outage().covers(about) {
                continue;
            }
            let state = kept.look(now);
            kept.covered += 1;
            if kept.covered == kept.outage().after_requests {
                kept.reached = Some(now);
            }
            if state == OutageState::On && strikes.is_none() {
                strikes = Some(kept.outage().clone());
                let figures = &mut kept.figures;
                figures.requests += 1;
                *figures.by_model.entry(about.model.to_owned()).or_default() += 1;
                kept.struck.insert(about.key);
                count_part(&mut figures.per_100ms, now, kept.began.unwrap_or(now), PART, MAX_PARTS);
                continue;
            }
            passing.push(kept.figures.id);
            kept.in_flight += 1;
            if state == OutageState::Over {
                let after = &mut kept.figures.after;
                after.requests += 1;
                after.max_in_flight = after.max_in_flight.max(kept.in_flight);
                kept.later.insert(about.key);
                count_part(&mut after.per_100ms, now, kept.ended.unwrap_or(now), PART, MAX_PARTS);
            }
        }
        strikes
    }

    /// A request that was passing has ended, without a status when its client has left.
    pub(crate) fn leave(&mut self, passing: &[u64], status: Option<u16>) {
        for kept in self.kept.iter_mut().filter(|kept| passing.contains(&kept.figures.id)) {
            kept.in_flight = kept.in_flight.saturating_sub(1);
            if kept.ended.is_some() && status.is_some_and(|status| status == 429 || status >= 500) {
                kept.figures.after.turned_away += 1;
            }
        }
    }

    /// Whether connections are refused at `now`.
    pub(crate) fn door(&mut self, now: Duration) -> Door {
        let mut door = Door { closed: false, until: None };
        for kept in self.kept.iter_mut().filter(|kept| kept.outage().kind == OutageKind::Refuse) {
            let change = match kept.look(now) {
                OutageState::Waiting => kept.due(),
                OutageState::On => {
                    door.closed = true;
                    kept.end()
                }
                OutageState::Over => None,
            };
            door.until = [door.until, change].into_iter().flatten().min();
        }
        door
    }

    /// All outages with what was seen of them.
    pub(crate) fn figures(&mut self, now: Duration) -> Vec<OutageFigures> {
        let ms = |at: Duration| at.as_millis() as u64;
        let figures = self.kept.iter_mut().map(|kept| {
            let state = kept.look(now);
            let after = AfterOutage {
                distinct_requests: kept.later.len() as u64,
                max_per_100ms: kept.figures.after.per_100ms.iter().copied().max().unwrap_or(0),
                ..kept.figures.after.clone()
            };
            OutageFigures {
                state,
                began_ms: kept.began.map(ms),
                ended_ms: kept.ended.map(ms),
                distinct_requests: kept.struck.len() as u64,
                after,
                ..kept.figures.clone()
            }
        });
        figures.collect()
    }
}

/// Counts an event in a history of equal parts.
pub(crate) fn count_part(parts: &mut Vec<u64>, now: Duration, first: Duration, part: Duration, most: usize) {
    let index = (now.saturating_sub(first).as_micros() / part.as_micros()) as usize;
    if index >= most {
        return;
    }
    if parts.len() <= index {
        parts.resize(index + 1, 0);
    }
    parts[index] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn about(key: u128, kind: RequestKind, model: &str) -> About<'_> {
        About { key: RequestKey(key), kind, model, account: "key", has: &|_| false }
    }

    fn strikes(outages: &mut Outages, about: &About<'_>, now: Duration) -> bool {
        outages.arrive(about, now, &mut Vec::new()).is_some()
    }

    #[test]
    fn windows_begin_and_end_by_the_clock_by_requests_and_by_times() {
        let mut outages = Outages::default();
        let chat = about(1, RequestKind::Chat, "m");
        outages.set("kind=status,after_ms=100,for_ms=50".parse().expect("an outage"), at(10));
        let struck = [0, 109, 110, 159, 160].map(|ms| strikes(&mut outages, &chat, at(ms)));
        assert_eq!(struck, [false, false, true, true, false]);

        let mut outages = Outages::default();
        outages.set("kind=hang,after_requests=2,times=2".parse().expect("an outage"), at(0));
        let struck = [1, 2, 3, 4, 5].map(|ms| strikes(&mut outages, &chat, at(ms)));
        assert_eq!(struck, [false, false, true, true, false]);

        let mut outages = Outages::default();
        let id = outages.set(Outage::of_everything(OutageKind::Html), at(0));
        assert!(strikes(&mut outages, &chat, at(1)));
        assert!(outages.end(Some(id), at(2)) && !outages.end(Some(id + 1), at(2)));
        assert!(!strikes(&mut outages, &chat, at(3)));
    }

    #[test]
    fn only_covered_requests_are_struck() {
        let judge = About { has: &|text| "the poisoned one?".contains(text), ..about(1, RequestKind::Judge, "m") };
        let vector = about(2, RequestKind::Embedding, "e");
        for (outage, of_judge, of_vector) in [
            (Outage::of_everything(OutageKind::Cut), true, true),
            (Outage::poison("poison"), true, false),
            ("kind=cut,model=e".parse().expect("an outage"), false, true),
            ("kind=cut,calls=chat".parse().expect("an outage"), true, false),
            ("kind=cut,calls=judge".parse().expect("an outage"), true, false),
            ("kind=cut,calls=embeddings".parse().expect("an outage"), false, true),
            ("kind=cut,key=other".parse().expect("an outage"), false, false),
        ] {
            let mut outages = Outages::default();
            outages.set(outage.clone(), at(0));
            let struck = (strikes(&mut outages, &judge, at(0)), strikes(&mut outages, &vector, at(0)));
            assert_eq!(struck, (of_judge, of_vector), "{outage:?}");
        }
    }

    #[test]
    fn what_was_struck_and_what_came_after_is_counted_apart() {
        let mut outages = Outages::default();
        let mut passing = Vec::new();
        let before = about(9, RequestKind::Chat, "m");
        outages.set("kind=status,after_ms=100,for_ms=200".parse().expect("an outage"), at(0));
        assert_eq!(outages.arrive(&before, at(50), &mut passing), None);
        for (key, ms) in [(1, 110), (2, 150), (1, 250)] {
            assert!(strikes(&mut outages, &about(key, RequestKind::Chat, "m"), at(ms)));
        }
        for (key, ms) in [(1, 310), (2, 320), (1, 450)] {
            let mut later = Vec::new();
            assert_eq!(outages.arrive(&about(key, RequestKind::Chat, "m"), at(ms), &mut later), None);
            if key == 2 {
                outages.leave(&later, Some(503));
            }
        }
        outages.leave(&passing, Some(200));
        let seen = outages.figures(at(500)).remove(0);
        assert_eq!((seen.state, seen.began_ms, seen.ended_ms), (OutageState::Over, Some(100), Some(300)));
        assert_eq!((seen.requests, seen.distinct_requests, seen.by_model["m"]), (3, 2, 3));
        assert_eq!(seen.per_100ms, [2, 1]);
        let after = AfterOutage {
            requests: 3,
            distinct_requests: 2,
            turned_away: 1,
            max_in_flight: 3,
            max_per_100ms: 2,
            per_100ms: vec![2, 1],
        };
        assert_eq!(seen.after, after);
    }

    #[test]
    fn the_door_is_closed_for_as_long_as_was_asked() {
        let mut outages = Outages::default();
        outages.set("kind=refuse,after_ms=100,for_ms=50".parse().expect("an outage"), at(0));
        let seen = [0, 100, 149, 150].map(|ms| outages.door(at(ms)));
        let (open, closed) = (|until| Door { closed: false, until }, |until| Door { closed: true, until });
        assert_eq!(seen, [open(Some(at(100))), closed(Some(at(150))), closed(Some(at(150))), open(None)]);

        let mut outages = Outages::default();
        outages.set("kind=refuse,after_requests=1".parse().expect("an outage"), at(0));
        let chat = about(1, RequestKind::Chat, "m");
        assert_eq!(outages.door(at(1)), open(None));
        assert!(!strikes(&mut outages, &chat, at(2)));
        assert_eq!(outages.door(at(3)), closed(None));
        outages.end(None, at(5));
        assert_eq!(outages.door(at(6)), open(None));
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for (text, reason) in [
            ("status", "use kind=status"),
            ("kind=loud", "unknown variant"),
            ("kind=cut,modle=m", "unknown field"),
            ("kind=status,status=200", "between 400 and 599"),
            ("kind=refuse,model=m", "refused connections have no model"),
        ] {
            let error = text.parse::<Outage>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
