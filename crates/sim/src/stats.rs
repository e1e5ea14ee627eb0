//! What the simulator has seen: the other side's view of a run, against which a runner's own figures are checked.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    config::{Price, Used},
    draw::RequestKey,
    fault::FaultKind,
    outage::count_part,
};

/// Longest history of seconds that is kept.
const MAX_SECONDS: usize = 86_400;

/// Figures since the start or the last `POST /reset`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Requests to `chat` and `embeddings` that arrived.
    pub requests: u64,
    /// By endpoint and HTTP status; `abandoned`: the client left before the answer.
    pub by_endpoint: BTreeMap<String, BTreeMap<String, u64>>,
    /// Complete, well-formed replies (also those that are empty, cut off or no verdict).
    pub answers: u64,
    /// Requests refused by a limit (injected 429s are faults).
    pub rate_limited: u64,
    /// Requests refused because too many were in flight.
    pub over_capacity: u64,
    /// Requests refused by the quota.
    pub out_of_quota: u64,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Different requests among those that passed the limits.
    pub distinct_requests: u64,
    /// Requests that passed the limits and had been there before.
    pub repeated_requests: u64,
    /// How many different requests were tried how often.
    pub tries: BTreeMap<u32, u64>,
    /// Answers to requests that had been answered before: money spent twice, unless the client wanted it.
    pub repeated_answers: u64,
    /// Prompt tokens paid.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub cached_tokens: u64,
    /// Prompt tokens that were written into a cache.
    pub cache_write_tokens: u64,
    /// Completion tokens paid.
    pub completion_tokens: u64,
    /// What they cost by `--price`, in pico-dollars.
    pub cost_pico_usd: i64,
    /// By model, as requests name it.
    pub by_model: BTreeMap<String, ModelStats>,
    /// Milliseconds since 1970.
    pub first_request_ms: Option<u64>,
    /// Milliseconds since 1970.
    pub last_request_ms: Option<u64>,
    /// Requests being answered now.
    pub in_flight: u64,
    /// Most of them at once.
    pub max_in_flight: u64,
    /// Requests that arrived in each second since the first one.
    pub requests_per_second: Vec<u64>,
    /// Answers given in each second since the first request.
    pub answers_per_second: Vec<u64>,
    /// Refusals by limits in each second since the first request.
    pub rate_limited_per_second: Vec<u64>,
}

/// Figures of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelStats {
    /// Requests that could be read.
    pub requests: u64,
    /// Different ones among those that passed outages and limits.
    pub distinct_requests: u64,
    /// Requests being answered now.
    pub in_flight: u64,
    /// Most of them at once.
    pub max_in_flight: u64,
    /// Replies that were paid.
    pub paid_replies: u64,
    /// Prompt tokens paid.
    pub prompt_tokens: u64,
    /// Completion tokens paid.
    pub completion_tokens: u64,
    /// What they cost, in pico-dollars.
    pub cost_pico_usd: i64,
}

impl Stats {
    /// Requests of an endpoint (`chat`, `embeddings`) that ended with a status.
    #[must_use]
    pub fn with_status(&self, endpoint: &str, status: u16) -> u64 {
        self.by_endpoint.get(endpoint).and_then(|by_status| by_status.get(&status.to_string())).copied().unwrap_or(0)
    }
}

/// What is known about a request.
#[derive(Debug, Default)]
struct Seen {
    tries: u32,
    answers: u32,
}

/// What a reply cost.
pub(crate) struct Paid<'a> {
    pub(crate) model: &'a str,
    pub(crate) used: Used,
    pub(crate) price: Price,
}

/// Keeps the books. Times are given by the caller, as time since the simulator's start.
#[derive(Debug, Default)]
pub(crate) struct Book {
    stats: Stats,
    /// Indexed by endpoint, then by status; the map of [`Stats`] is made when asked for.
    statuses: HashMap<(&'static str, Option<u16>), u64>,
    faults: HashMap<FaultKind, u64>,
    seen: HashMap<RequestKey, Seen>,
    admitted: u64,
    first: Option<Duration>,
    /// Raised by `reset`, so that what began before it does not end after it.
    epoch: u64,
}

impl Book {
    /// A request arrives; the answer is the epoch that [`Self::close`] wants back.
    pub(crate) fn open(&mut self, now: Duration, unix_ms: u64) -> u64 {
        let stats = &mut self.stats;
        stats.requests += 1;
        stats.in_flight += 1;
        stats.max_in_flight = stats.max_in_flight.max(stats.in_flight);
        stats.first_request_ms.get_or_insert(unix_ms);
        stats.last_request_ms = Some(unix_ms);
        let first = *self.first.get_or_insert(now);
        count_second(&mut stats.requests_per_second, now, first);
        self.epoch
    }

    /// A request was read.
    pub(crate) fn about(&mut self, epoch: u64, model: &str) {
        if epoch == self.epoch {
            let model = self.model(model);
            model.requests += 1;
            model.in_flight += 1;
            model.max_in_flight = model.max_in_flight.max(model.in_flight);
        }
    }

    fn model(&mut self, name: &str) -> &mut ModelStats {
        let models = &mut self.stats.by_model;
        if !models.contains_key(name) {
            models.insert(name.to_owned(), ModelStats::default());
        }
        models.get_mut(name).expect("just inserted")
    }

    /// A request ends; without a status the client has left, without a model it could not be read.
    pub(crate) fn close(&mut self, epoch: u64, endpoint: &'static str, status: Option<u16>, model: Option<&str>) {
        if epoch == self.epoch {
            self.stats.in_flight -= 1;
            if let Some(model) = model {
                self.model(model).in_flight -= 1;
            }
            *self.statuses.entry((endpoint, status)).or_default() += 1;
        }
    }

    /// Admits a request, when the quota (in requests) still allows it.
    pub(crate) fn within_quota(&mut self, quota: Option<u64>) -> bool {
        let within = quota.is_none_or(|quota| self.admitted < quota);
        if within {
            self.admitted += 1;
        } else {
            self.stats.out_of_quota += 1;
        }
        within
    }

    /// Whether more requests are in flight than may be; the one that asks is among them, and refused then.
    pub(crate) fn over_capacity(&mut self, capacity: u64) -> bool {
        let over = self.stats.in_flight > capacity;
        self.stats.over_capacity += u64::from(over);
        over
    }

    /// A request has passed the limits; the answer is the number of its tries before this one.
    pub(crate) fn begin_try(&mut self, key: RequestKey, model: &str) -> u32 {
        let seen = self.seen.entry(key).or_default();
        let nth = seen.tries;
        seen.tries = seen.tries.saturating_add(1);
        if nth == 0 {
            self.model(model).distinct_requests += 1;
        }
        nth
    }

    pub(crate) fn rate_limited(&mut self, now: Duration) {
        self.stats.rate_limited += 1;
        count_second(&mut self.stats.rate_limited_per_second, now, self.first.unwrap_or(now));
    }

    pub(crate) fn fault(&mut self, kind: FaultKind) {
        *self.faults.entry(kind).or_default() += 1;
    }

    /// A reply was made and is paid; `whole` when the client gets it in good form.
    pub(crate) fn paid(&mut self, key: RequestKey, paid: &Paid<'_>, whole: bool, now: Duration) {
        let Used { prompt, cached, cache_write, completion } = paid.used;
        let cost = paid.price.cost(paid.used);
        let stats = &mut self.stats;
        stats.prompt_tokens += prompt;
        stats.cached_tokens += cached;
        stats.cache_write_tokens += cache_write;
        stats.completion_tokens += completion;
        stats.cost_pico_usd = stats.cost_pico_usd.saturating_add(cost);
        let model = self.model(paid.model);
        model.paid_replies += 1;
        model.prompt_tokens += prompt;
        model.completion_tokens += completion;
        model.cost_pico_usd = model.cost_pico_usd.saturating_add(cost);
        if whole {
            let stats = &mut self.stats;
            stats.answers += 1;
            count_second(&mut stats.answers_per_second, now, self.first.unwrap_or(now));
            let seen = self.seen.entry(key).or_default();
            seen.answers = seen.answers.saturating_add(1);
            if seen.answers > 1 {
                stats.repeated_answers += 1;
            }
        }
    }

    /// Forgets everything, also the tries (the next request of each kind is its first again).
    pub(crate) fn reset(&mut self) {
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
    }

    /// The figures so far.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        for ((endpoint, status), count) in &self.statuses {
            let status = status.map_or_else(|| "abandoned".to_owned(), |status| status.to_string());
            stats.by_endpoint.entry((*endpoint).to_owned()).or_default().insert(status, *count);
        }
        stats.faults = self.faults.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect();
        for seen in self.seen.values() {
            stats.distinct_requests += 1;
            stats.repeated_requests += u64::from(seen.tries.saturating_sub(1));
            *stats.tries.entry(seen.tries).or_default() += 1;
        }
        stats
    }
}

fn count_second(seconds: &mut Vec<u64>, now: Duration, first: Duration) {
    count_part(seconds, now, first, Duration::from_secs(1), MAX_SECONDS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_add_up() {
        let mut book = Book::default();
        let at = Duration::from_millis;
        let price = Price { input: 150_000, output: 600_000, ..Price::default() };
        for (n, key) in [1_u128, 2, 1, 1].into_iter().enumerate() {
            let epoch = book.open(at(n as u64 * 700), 1_000 + n as u64);
            book.about(epoch, "m");
            let nth = book.begin_try(RequestKey(key), "m");
            assert_eq!(nth, [0, 0, 1, 2][n]);
            let paid = Paid { model: "m", used: Used { prompt: 10, completion: 2, ..Used::default() }, price };
            book.paid(RequestKey(key), &paid, n != 1, at(n as u64 * 700));
            book.close(epoch, "chat", if n == 1 { None } else { Some(200) }, Some("m"));
        }
        let stats = book.stats();
        assert_eq!((stats.requests, stats.answers, stats.distinct_requests, stats.repeated_requests), (4, 3, 2, 2));
        assert_eq!((stats.repeated_answers, stats.in_flight, stats.max_in_flight), (2, 0, 1));
        assert_eq!(stats.tries, BTreeMap::from([(1, 1), (3, 1)]));
        assert_eq!(stats.cost_pico_usd, 4 * (10 * 150_000 + 2 * 600_000));
        let of_model = stats.by_model["m"];
        assert_eq!((of_model.paid_replies, of_model.requests, of_model.distinct_requests), (4, 4, 2));
        assert_eq!((of_model.in_flight, of_model.max_in_flight), (0, 1));
        assert_eq!(stats.requests_per_second, [2, 1, 1]);
        assert_eq!((stats.with_status("chat", 200), stats.by_endpoint["chat"]["abandoned"]), (3, 1));

        let open = book.open(at(9), 9);
        book.reset();
        book.close(open, "chat", Some(200), None);
        assert_eq!(book.stats(), Stats::default(), "what began before a reset does not count after it");
    }
}
