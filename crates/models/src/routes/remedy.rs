//! What a process makes of a route after a look at the others: pure, over what it knows and what they tell (P39, P40).

use std::time::{Duration, Instant};

use bench_proto::{
    failure::Failure,
    outage::{RouteEvidence, Suspicion, suspect},
};
use bench_store::OutageRow;

use super::state::{RouteState, Standing};

/// A refused process waits so long for another's success before the runs that need the route are paused.
const REFUSED_BY_ALL: Duration = Duration::from_secs(60);
/// After so long without one it asks the others to probe.
const OTHERS_ARE_ASKED: Duration = Duration::from_secs(30);
/// For so long a probe that is due is left to others by who failed last, in microseconds; they may have nothing to probe with.
const OTHERS_FIRST_US: i64 = 3_000_000;

/// What is done about a route's failures.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Remedy {
    /// Nothing is known to be wrong.
    Nothing,
    /// The route has to be closed to everybody.
    Close,
    /// A probe has to find out whether the fault is the process's own.
    AskMyself,
    /// The provider refuses everybody: what it said.
    StopRuns(Failure),
}

/// What to do about the failures of a process, by what they mean. `others`: what every other worker of the domain tells.
pub(super) fn remedy(state: &RouteState, others: &[RouteEvidence], now: Instant) -> Remedy {
    let own = state.evidence(String::new(), now);
    match &state.standing {
        Standing::Away { .. } => return Remedy::Nothing,
        Standing::Withdrawn(leave) => {
            // a worker with a good key may have come since, and the run been resumed for it
            let since = now.saturating_duration_since(leave.asked_at);
            // who asks again just now, for a run that was resumed, waits for the answer
            if let Some(failure) = leave.refused.as_ref().filter(|_| !leave.asked) {
                if refused_for_good(&own, others, since) {
                    return Remedy::StopRuns(failure.clone());
                }
                // those who have not used the route lately know nothing of it: they probe what is closed
                let is_due = since >= OTHERS_ARE_ASKED && !state.is_open;
                if is_due && !others.iter().any(|other| succeeded_within(other, since)) {
                    return Remedy::Close;
                }
            }
        }
        Standing::Clear => {}
    }
    match suspect(&own, others) {
        Suspicion::None => Remedy::Nothing,
        Suspicion::Outage if state.is_open => Remedy::Nothing,
        Suspicion::Outage => Remedy::Close,
        Suspicion::Mine => Remedy::AskMyself,
    }
}

/// Whether a process that has withdrawn has to probe for itself.
pub(super) fn probes_for_itself(state: &RouteState, now: Instant) -> bool {
    matches!(&state.standing, Standing::Withdrawn(leave) if leave.next_probe <= now) && !state.asking
}

/// Whether a process may ask for the next probe of an outage. One that has withdrawn leaves it to those who have not, and one
/// whose probe was the last that failed lets them ask first: the fault may be its own.
pub(super) fn probes_for_all(state: &RouteState, row: &OutageRow, others: &[RouteEvidence]) -> bool {
    let is_due = row.outage.is_open() && row.outage.next_probe_us <= row.now_us;
    let is_left_to_others =
        matches!(state.standing, Standing::Withdrawn(_)) && others.iter().any(|other| other.withdrawn.is_none());
    let failed_last = state.failed_last == Some((row.outage.opening, row.outage.failed_probes));
    let others_first = failed_last && row.now_us - row.outage.next_probe_us < OTHERS_FIRST_US;
    let others_live = others.iter().any(|other| other.withdrawn.is_none());
    let waits = is_left_to_others || others_first && others_live;
    is_due && !waits && !state.asking
}

/// Whether a refusal is everybody's: nobody else is there, or nobody gets through.
fn refused_for_good(own: &RouteEvidence, others: &[RouteEvidence], since: Duration) -> bool {
    let ever = std::iter::once(own).chain(others).any(|evidence| evidence.success_ms.is_some());
    let all_refused = others.iter().all(|other| other.withdrawn.as_ref().is_some_and(|w| w.refused));
    if all_refused && !ever {
        return true;
    }
    !others.is_empty() && since >= REFUSED_BY_ALL && !others.iter().any(|other| succeeded_within(other, since))
}

fn succeeded_within(other: &RouteEvidence, time: Duration) -> bool {
    other.success_sent_ms.is_some_and(|sent| u128::from(sent) < time.as_millis())
}

#[cfg(test)]
mod tests {
    use bench_proto::outage::{Outage, Withdrawn};

    use super::*;

    #[test]
    fn p40_a_refused_key_stops_runs_only_when_nobody_gets_through() {
        let told = |success_ms: Option<u64>, refused: bool| RouteEvidence {
            success_ms,
            success_sent_ms: success_ms,
            withdrawn: refused.then(|| Withdrawn { refused, ..Withdrawn::default() }),
            ..RouteEvidence::default()
        };
        let after = Duration::from_secs;
        let (new, used) = (told(None, true), told(Some(90_000), true));
        assert!(refused_for_good(&new, &[], after(0)), "alone, and it never worked");
        assert!(!refused_for_good(&used, &[], after(90)), "alone, and it did: an outage");
        assert!(refused_for_good(&new, std::slice::from_ref(&new), after(1)), "nobody's key has ever worked");
        assert!(!refused_for_good(&new, &[told(None, false)], after(59)), "another has yet to find out");
        assert!(refused_for_good(&new, &[told(None, false)], after(60)));
        assert!(!refused_for_good(&new, &[told(Some(100), false)], after(600)), "others get through");
        assert!(!refused_for_good(&used, std::slice::from_ref(&used), after(59)), "keys are being changed");
        assert!(refused_for_good(&used, std::slice::from_ref(&used), after(60)));
    }

    #[test]
    fn p40_who_failed_last_leaves_the_next_probe_to_the_others_for_a_moment() {
        let second = 1_000_000;
        let row = |failed_probes, now_us| OutageRow {
            outage: Outage { opening: 4, failed_probes, next_probe_us: 10 * second, ..Outage::default() },
            now_us,
            ..OutageRow::default()
        };
        let mut state = RouteState::new(None);
        let other = [RouteEvidence::default()];
        let gone = [RouteEvidence { withdrawn: Some(Withdrawn::default()), ..RouteEvidence::default() }];
        assert!(probes_for_all(&state, &row(1, 10 * second), &other), "it has not probed yet");
        state.failed_last = Some((4, 1));
        assert!(!probes_for_all(&state, &row(1, 10 * second), &other));
        assert!(probes_for_all(&state, &row(2, 10 * second), &other), "another has failed since");
        assert!(probes_for_all(&state, &row(1, 13 * second), &other), "nobody else could");
        assert!(probes_for_all(&state, &row(1, 10 * second), &gone), "nobody else is left");
        assert!(probes_for_all(&state, &row(1, 10 * second), &[]), "nobody else is there");
    }

    #[test]
    fn p40_a_refused_process_asks_the_others_before_runs_are_paused() {
        let (mut state, now) = (RouteState::new(None), Instant::now());
        let call = state.send(now);
        state.succeeded(call, now);
        state.withdraw("401".to_owned(), Some(Failure::terminal("http_401", "401")), now);
        let idle = [RouteEvidence { success_ms: Some(600_000), ..RouteEvidence::default() }];
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(remedy(&state, &idle, after(29)), Remedy::Nothing);
        assert_eq!(
            remedy(&state, &idle, after(30)),
            Remedy::Close,
            "an outage is probed by those who have not withdrawn"
        );
        let served = [RouteEvidence { success_sent_ms: Some(1_000), ..RouteEvidence::default() }];
        assert_eq!(remedy(&state, &served, after(30)), Remedy::Nothing);
        assert!(matches!(remedy(&state, &idle, after(60)), Remedy::StopRuns(_)), "they were asked");
        state.ask_again(after(100));
        assert!(!state.is_not_back("401", Some(Failure::terminal("http_401", "401")), after(101)));
        assert_eq!(remedy(&state, &idle, after(102)), Remedy::Nothing, "resumed: somebody may have come");
        assert!(matches!(remedy(&state, &idle, after(160)), Remedy::StopRuns(_)));
    }
}
