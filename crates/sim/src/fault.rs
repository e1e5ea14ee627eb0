//! Which request fails how, and which try of it: decided by hash alone (P17).

use serde::{Deserialize, Serialize};

use crate::{
    config::FaultConfig,
    draw::{Purpose, RequestKey, RequestKind, unit},
};

/// Kinds of faults.
///
/// Faults that every client repeats are drawn per try and bounded in a row. What a client may take as the model's own reply
/// (a filter, a refusal; for ordinary chat also an empty or a cut-off answer) is drawn per request and comes again at each try:
/// otherwise a resumed run could end differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// 500 with OpenAI's error body.
    Http500,
    /// 503, overloaded.
    Http503,
    /// 429 with `Retry-After`, although no limit was reached.
    Http429,
    /// No answer for ten minutes.
    Hang,
    /// The connection is closed in the middle of the body.
    Cut,
    /// 200 with a body that is not JSON.
    Garbage,
    /// A reply in good form whose content is no verdict; judge requests only.
    MalformedJudge,
    /// Empty content: per try for judges, per request for ordinary chat.
    Empty,
    /// The reply is cut off with `finish_reason` `length`: per try for judges, per request for ordinary chat.
    Length,
    /// `finish_reason` `content_filter`, per request.
    Filter,
    /// The model refuses in words of its own, per request.
    Refusal,
    /// Ten times the latency; not a failure, and never counted in a row.
    Slow,
}

impl FaultKind {
    /// The kind's name in the statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http500 => "http_500",
            Self::Http503 => "http_503",
            Self::Http429 => "http_429",
            Self::Hang => "hang",
            Self::Cut => "cut",
            Self::Garbage => "garbage",
            Self::MalformedJudge => "malformed_judge",
            Self::Empty => "empty",
            Self::Length => "length",
            Self::Filter => "filter",
            Self::Refusal => "refusal",
            Self::Slow => "slow",
        }
    }
}

/// The fault of a try, if any; `nth` counts the tries of this request from 0.
pub(crate) fn decide(
    config: &FaultConfig,
    seed: u64,
    key: RequestKey,
    nth: u32,
    kind: RequestKind,
) -> Option<FaultKind> {
    let failing = per_try(config, seed, key, nth, kind);
    let bounded = !config.permanent && nth >= config.max_in_a_row && {
        let before = nth - config.max_in_a_row..nth;
        before.into_iter().all(|earlier| per_try(config, seed, key, earlier, kind).is_some())
    };
    failing.filter(|_| !bounded).or_else(|| per_request(config, seed, key, kind))
}

/// Whether a try takes ten times as long.
pub(crate) fn is_slow(config: &FaultConfig, seed: u64, key: RequestKey, nth: u32) -> bool {
    config.slow > 0.0 && unit(seed, key, Purpose::Slow, u64::from(nth)) < config.slow
}

fn per_try(config: &FaultConfig, seed: u64, key: RequestKey, nth: u32, kind: RequestKind) -> Option<FaultKind> {
    let judge = |probability| if kind == RequestKind::Judge { probability } else { 0.0 };
    let table = [
        (FaultKind::Http500, config.http_500),
        (FaultKind::Http503, config.http_503),
        (FaultKind::Http429, config.http_429),
        (FaultKind::Hang, config.hang),
        (FaultKind::Cut, config.cut),
        (FaultKind::Garbage, config.garbage),
        (FaultKind::MalformedJudge, judge(config.malformed_judge)),
        (FaultKind::Empty, judge(config.empty)),
        (FaultKind::Length, judge(config.length)),
    ];
    pick(&table, || unit(seed, key, Purpose::Fault, u64::from(nth)))
}

fn per_request(config: &FaultConfig, seed: u64, key: RequestKey, kind: RequestKind) -> Option<FaultKind> {
    let chat = |probability| if kind == RequestKind::Chat { probability } else { 0.0 };
    let words = |probability| if kind == RequestKind::Embedding { 0.0 } else { probability };
    let table = [
        (FaultKind::Filter, words(config.filter)),
        (FaultKind::Empty, chat(config.empty)),
        (FaultKind::Length, chat(config.length)),
        (FaultKind::Refusal, words(config.refusal)),
    ];
    pick(&table, || unit(seed, key, Purpose::ReplyFault, 0))
}

fn pick(table: &[(FaultKind, f64)], draw: impl FnOnce() -> f64) -> Option<FaultKind> {
    if table.iter().all(|(_, probability)| *probability == 0.0) {
        return None;
    }
    let mut rest = draw();
    for (kind, probability) in table {
        if rest < *probability {
            return Some(*kind);
        }
        rest -= probability;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn p17_never_more_faults_in_a_row_than_allowed(
            seed in any::<u64>(), key in any::<u128>(), max in 0_u32..5, cut in 0.0..=1.0_f64, malformed in 0.0..=1.0_f64,
        ) {
            let config = FaultConfig {
                cut: cut / 2.0, malformed_judge: malformed / 2.0, max_in_a_row: max, ..FaultConfig::default()
            };
            let mut row = 0;
            for nth in 0..40 {
                let fault = decide(&config, seed, RequestKey(key), nth, RequestKind::Judge);
                prop_assert_eq!(fault, decide(&config, seed, RequestKey(key), nth, RequestKind::Judge));
                row = if fault.is_some() { row + 1 } else { 0 };
                prop_assert!(row <= max, "{} faults in a row at try {}", row, nth);
            }
        }
    }

    #[test]
    fn certain_faults_pass_after_the_bound_unless_they_are_permanent() {
        let mut config = FaultConfig { http_500: 1.0, ..FaultConfig::default() };
        let failed = |config: &FaultConfig| {
            (0..6).map(|nth| decide(config, 1, RequestKey(1), nth, RequestKind::Chat).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(failed(&config), [true, true, true, false, false, false]);
        config.permanent = true;
        assert_eq!(failed(&config), [true; 6]);
    }

    #[test]
    fn replies_that_a_client_may_accept_do_not_depend_on_the_try() {
        let config = FaultConfig { empty: 0.3, length: 0.3, filter: 0.3, ..FaultConfig::default() };
        for key in 0..200 {
            let first = decide(&config, 3, RequestKey(key), 0, RequestKind::Chat);
            assert!((1..5).all(|nth| decide(&config, 3, RequestKey(key), nth, RequestKind::Chat) == first));
            assert_eq!(decide(&config, 3, RequestKey(key), 0, RequestKind::Embedding), None);
        }
    }

    #[test]
    fn rates_are_as_asked() {
        let config = FaultConfig { http_500: 0.1, cut: 0.2, ..FaultConfig::default() };
        let count = |wanted| {
            (0..10_000).filter(|key| decide(&config, 5, RequestKey(*key), 0, RequestKind::Chat) == Some(wanted)).count()
        };
        assert!((900..1100).contains(&count(FaultKind::Http500)));
        assert!((1850..2150).contains(&count(FaultKind::Cut)));
    }
}
