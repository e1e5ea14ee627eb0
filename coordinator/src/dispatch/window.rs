//! How much may be in flight, and how it is shared out (P15, P25): pure arithmetic.

use std::collections::BTreeMap;

use bench_proto::{
    ids::{Role, RunNo},
    spec::RunSpec,
};
use bench_store::{OpenByRole, OpenTasks};

/// Smallest window, so that the first worker finds work.
const SMALLEST_WINDOW: i64 = 64;
/// Most tasks of a (run, role) published in one batch.
const PUBLISH_BATCH: i64 = 512;
/// Most segments of a run handed out at one look: what they open is seen before there are more. A system that takes its time gets
/// its window full all the same, in a few looks.
const SEGMENTS_PER_LOOK: i64 = 16;
/// Questions that may be open before no more banks of a run are retained: a bound on the rows that are looked through.
const QUESTIONS_AHEAD: i64 = 2048;

/// What the dispatcher knows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Number of the run in its store.
    pub run: RunNo,
    /// What of it may be in flight.
    pub most: AtOnce,
    /// The run's open tasks.
    pub open: OpenByRole,
    /// What of a role may be in flight because of an outage (P39).
    pub bounds: BTreeMap<Role, u32>,
    /// One of its judges is away (P39).
    pub judge_is_away: bool,
}

/// What of a run may be in flight over all workers (P25). The claim holds it exactly; the dispatcher hands out no more, so that
/// claims are seldom refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AtOnce {
    /// Questions, until their votes are in.
    pub questions: Option<u32>,
    /// Segments of banks.
    pub segments: Option<u32>,
    /// Most votes of a question, of all judges together.
    pub votes: u32,
    /// Questions of which votes may be on their way: what was asked for, because what a memory system takes at a time is no bound of
    /// judges. None of a run that judges the answers of another: it asks no questions.
    pub judged: Option<u32>,
}

impl AtOnce {
    /// What the specification of a run allows.
    pub(crate) fn of_spec(spec: &RunSpec) -> Self {
        Self {
            questions: spec.limits.questions_at_once(),
            segments: spec.limits.segments_at_once(),
            votes: spec.judge_plan().most_votes(),
            judged: spec.limits.concurrency.filter(|_| spec.taken_over.answers_of.is_none()),
        }
    }
}

/// Live slots by role.
pub(crate) type Slots = BTreeMap<Role, u32>;

/// Tasks of one role that may be published and not ended.
#[must_use]
pub(crate) fn window(slots: u32) -> i64 {
    SMALLEST_WINDOW.max(3 * i64::from(slots))
}

/// How many of the next tasks of a run and role need be counted: more would change nothing.
#[must_use]
pub(crate) fn worth_counting<'a>(slots: impl Iterator<Item = &'a Slots>, most: impl Iterator<Item = AtOnce>) -> u32 {
    let ahead = slots.flat_map(BTreeMap::values).map(|slots| 2 * window(*slots)).max().unwrap_or(0);
    // one more than a limit's worth of questions has: those are told from a backlog
    let votes_of = |most: AtOnce| Some(i64::from(most.judged.max(most.questions)?) * i64::from(most.votes.max(1)) + 1);
    let votes = most.filter_map(votes_of).max();
    u32::try_from(ahead.max(QUESTIONS_AHEAD).max(votes.unwrap_or(0))).unwrap_or(u32::MAX)
}

/// How many tasks of each run and role are published now: runs share each role's room evenly, and what one does not need
/// goes to the others. `turn` moves the odd ones around.
#[must_use]
pub(crate) fn shares(demands: &[Demand], slots: &Slots, turn: usize) -> Vec<(RunNo, Role, u32)> {
    let mut shares = Vec::new();
    for role in Role::ALL {
        let window = window(slots.get(&role).copied().unwrap_or(0));
        let in_flight: i64 = demands.iter().map(|demand| in_flight(&demand.open, role)).sum();
        let wants: Vec<i64> = demands.iter().map(|demand| wants(demand, role, slots)).collect();
        let granted = share_out(window - in_flight, &wants, turn);
        let granted = demands.iter().zip(granted).filter(|(_, granted)| *granted > 0);
        shares.extend(granted.map(|(demand, granted)| (demand.run, role, u32::try_from(granted).unwrap_or(u32::MAX))));
    }
    shares
}

/// Whether two thirds of the window are in flight, with what is granted now, in each role that is granted something: so
/// much is more than the workers hold, and the next tasks can wait for others.
#[must_use]
pub(crate) fn fills(demands: &[Demand], slots: &Slots, granted: &[(RunNo, Role, u32)]) -> bool {
    Role::ALL.into_iter().all(|role| {
        let more: i64 = granted.iter().filter(|(_, of, _)| *of == role).map(|(.., count)| i64::from(*count)).sum();
        let before: i64 = demands.iter().map(|demand| in_flight(&demand.open, role)).sum();
        more == 0 || 3 * (before + more) >= 2 * window(slots.get(&role).copied().unwrap_or(0))
    })
}

fn tasks_of(open: &OpenByRole, role: Role) -> OpenTasks {
    open.get(&role).copied().unwrap_or_default()
}

fn in_flight(open: &OpenByRole, role: Role) -> i64 {
    let tasks = tasks_of(open, role);
    tasks.queued + tasks.leased
}

fn all_open(open: &OpenByRole, role: Role) -> i64 {
    tasks_of(open, role).all()
}

/// How many more tasks of a role the run's own limit allows; nothing where it has none (P25).
///
/// A question is in flight until its votes are in. Those that wait for a judge that is away take no place, or its outage would
/// stop the answers (P39). When it is back they do again, and no question is handed out before all but a limit's worth of them is
/// judged.
///
/// Of more votes than a limit's worth of questions has, nobody knows here how many questions they are of: each may be the last one of
/// another. While that backlog stands each has a place of its own, and no more of them are on their way than the limit has places, so
/// at most twice the limit is worked on: the questions that were begun before, and those that are judged.
fn room(demand: &Demand, role: Role) -> Option<i64> {
    let (open, votes) = (&demand.open, i64::from(demand.most.votes.max(1)));
    let is_backlog = |most: u32| all_open(open, Role::Judge) > i64::from(most) * votes;
    match role {
        Role::Retain => demand.most.segments.map(|most| i64::from(most) - in_flight(open, Role::Retain)),
        Role::Question => demand.most.questions.map(|most| {
            let judged = if demand.judge_is_away { in_flight(open, Role::Judge) } else { all_open(open, Role::Judge) };
            let places = if is_backlog(most) { judged } else { (judged + votes - 1) / votes };
            i64::from(most) - in_flight(open, Role::Question) - places
        }),
        Role::Judge => demand.most.judged.map(|most| {
            let at_once = if is_backlog(most) { i64::from(most) } else { i64::from(most) * votes };
            at_once - in_flight(open, Role::Judge)
        }),
    }
}

/// Whether a run has more to give than its own limit allows: the end of a task makes room for the next one.
#[must_use]
pub(crate) fn is_at_limit(demand: &Demand) -> bool {
    let keeps =
        |role: Role| room(demand, role).is_some_and(|room| tasks_of(&demand.open, role).unpublished > room.max(0));
    Role::ALL.into_iter().any(keeps)
}

/// Tasks that are published or worked on, of all roles.
#[must_use]
pub(crate) fn in_flight_of_all(demands: &[Demand]) -> i64 {
    demands.iter().flat_map(|demand| Role::ALL.map(|role| in_flight(&demand.open, role))).sum()
}

/// Tasks of a role that a run has to give and may give.
fn wants(demand: &Demand, role: Role, slots: &Slots) -> i64 {
    let open = &demand.open;
    let ready = tasks_of(open, role).unpublished.min(PUBLISH_BATCH);
    let room = room(demand, role).unwrap_or(ready);
    let allowed = match role {
        Role::Retain => {
            let ahead = QUESTIONS_AHEAD.max(2 * window(slots.get(&Role::Question).copied().unwrap_or(0)));
            if all_open(open, Role::Question) >= ahead { 0 } else { room.min(SEGMENTS_PER_LOOK) }
        }
        Role::Question | Role::Judge => room,
    };
    let bound = demand.bounds.get(&role).map_or(ready, |bound| i64::from(*bound) - in_flight(open, role));
    ready.min(allowed).min(bound).max(0)
}

/// Shares `room` out to those who want: evenly, nobody more than wanted, nothing left while somebody wants.
fn share_out(room: i64, wants: &[i64], turn: usize) -> Vec<i64> {
    let mut granted = vec![0; wants.len()];
    let mut room = room.max(0);
    loop {
        let hungry: Vec<usize> = (0..wants.len()).filter(|i| granted[*i] < wants[*i]).collect();
        if hungry.is_empty() || room == 0 {
            return granted;
        }
        let each = room / hungry.len() as i64;
        if each == 0 {
            // fewer places than runs: who got nothing this time is first the next time
            for place in 0..room as usize {
                granted[hungry[(turn + place) % hungry.len()]] += 1;
            }
            return granted;
        }
        for i in hungry {
            let more = each.min(wants[i] - granted[i]);
            granted[i] += more;
            room -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(run: i64, tasks: &[(Role, OpenTasks)]) -> Demand {
        let open = tasks.iter().copied().collect();
        Demand { run: RunNo(run), most: AtOnce::default(), open, bounds: BTreeMap::new(), judge_is_away: false }
    }

    fn unpublished(count: i64) -> OpenTasks {
        OpenTasks { unpublished: count, ..OpenTasks::default() }
    }

    #[test]
    fn p15_the_window_is_three_times_the_slots_and_at_least_64() {
        let open = OpenTasks { unpublished: 1000, queued: 50, leased: 100, ..OpenTasks::default() };
        let slots = Slots::from([(Role::Question, 100)]);
        let demands = [demand(1, &[(Role::Question, open), (Role::Judge, unpublished(500))])];
        // a role without live slots still gets the smallest window
        assert_eq!(shares(&demands, &slots, 0), [(RunNo(1), Role::Question, 150), (RunNo(1), Role::Judge, 64)]);
        let full = OpenTasks { queued: 250, ..open };
        assert_eq!(shares(&[demand(1, &[(Role::Question, full)])], &slots, 0), []);
    }

    #[test]
    fn a_window_is_filled_when_two_thirds_of_it_are_in_flight() {
        let slots = Slots::from([(Role::Question, 100)]);
        let open = OpenTasks { unpublished: 1000, queued: 50, leased: 100, ..OpenTasks::default() };
        let demands = [demand(1, &[(Role::Question, open)])];
        let fills = |count, role| fills(&demands, &slots, &[(RunNo(1), role, count)]);
        assert!(fills(50, Role::Question));
        assert!(!fills(49, Role::Question));
        assert!(!fills(1, Role::Judge));
    }

    #[test]
    fn p25_concurrency_counts_questions_until_their_votes_are_in() {
        let tasks = [
            (Role::Question, OpenTasks { unpublished: 100, leased: 3, ..OpenTasks::default() }),
            (Role::Judge, OpenTasks { unpublished: 2, leased: 1, ..OpenTasks::default() }),
        ];
        let with = |questions, votes| {
            let most = AtOnce { questions: Some(questions), votes, ..AtOnce::default() };
            let demands = [Demand { most, ..demand(1, &tasks) }];
            let questions = shares(&demands, &Slots::new(), 0).into_iter().find(|(_, role, _)| *role == Role::Question);
            questions.map_or(0, |(.., count)| count)
        };
        assert_eq!((with(8, 1), with(4, 1)), (2, 0));
        let at_limit = |questions| {
            is_at_limit(&Demand { most: AtOnce { questions, votes: 1, ..AtOnce::default() }, ..demand(1, &tasks) })
        };
        assert_eq!([None, Some(200), Some(106), Some(105), Some(1)].map(at_limit), [false, false, false, true, true]);
        assert_eq!((with(8, 3), with(5, 3), with(4, 3)), (4, 1, 0), "three votes are one question");
    }

    #[test]
    fn p39_votes_that_wait_for_a_judge_that_is_away_take_no_place() {
        let granted = |judge_is_away, votes: OpenTasks| {
            let tasks = [(Role::Question, OpenTasks { leased: 1, ..unpublished(100) }), (Role::Judge, votes)];
            let most = AtOnce { questions: Some(4), votes: 1, judged: Some(4), ..AtOnce::default() };
            let bounds = if judge_is_away { BTreeMap::from([(Role::Judge, 0)]) } else { BTreeMap::new() };
            let demand = Demand { most, bounds, judge_is_away, ..demand(1, &tasks) };
            let shares = shares(std::slice::from_ref(&demand), &Slots::new(), 0);
            let of = |role| shares.iter().find(|(_, of, _)| *of == role).map_or(0, |(.., count)| *count);
            [Role::Question, Role::Judge].map(of)
        };
        let waiting = OpenTasks { unpublished: 30, delayed: 10, ..OpenTasks::default() };
        assert_eq!(granted(true, waiting), [3, 0], "answers go on");
        assert_eq!(granted(true, OpenTasks { leased: 2, ..waiting }), [1, 0], "what is on its way takes places");
        assert_eq!(granted(false, waiting), [0, 4], "it is back: votes first, as many as the limit has questions");
        assert_eq!(granted(false, OpenTasks { leased: 4, ..waiting }), [0, 0]);
        assert_eq!(granted(false, OpenTasks { leased: 1, ..OpenTasks::default() }), [2, 0], "and all is as before");
    }

    #[test]
    fn p39_of_a_backlog_each_vote_may_be_of_another_question() {
        let granted = |judge_is_away, votes: OpenTasks| {
            let tasks = [(Role::Question, unpublished(100)), (Role::Judge, votes)];
            let most = AtOnce { questions: Some(4), votes: 3, judged: Some(4), ..AtOnce::default() };
            let shares = shares(&[Demand { most, judge_is_away, ..demand(1, &tasks) }], &Slots::new(), 0);
            [Role::Question, Role::Judge]
                .map(|role| shares.iter().find(|of| of.1 == role).map_or(0, |(.., count)| *count))
        };
        // one of three judges was away
        assert_eq!(granted(false, unpublished(40)), [0, 4]);
        assert_eq!(granted(false, OpenTasks { leased: 3, ..unpublished(40) }), [0, 1]);
        assert_eq!(
            granted(false, OpenTasks { leased: 4, ..unpublished(8) }),
            [0, 8],
            "no more than four questions have"
        );
        // it is away, and the others judge: each of their votes is of another question
        assert_eq!(granted(true, OpenTasks { leased: 3, ..unpublished(40) })[0], 1);
        assert_eq!(granted(true, OpenTasks { leased: 3, ..OpenTasks::default() })[0], 3);
    }

    #[test]
    fn p25_what_a_memory_system_takes_at_a_time_is_no_bound_of_judges() {
        let of_spec = |concurrency, system_parallel, answers_of: Option<&str>| {
            let mut spec = bench_store::conformance::spec();
            (spec.limits.concurrency, spec.limits.system_parallel) = (concurrency, system_parallel);
            spec.taken_over.answers_of = answers_of.map(str::to_owned);
            spec.judges = vec![spec.answerer.clone()];
            let demand = Demand { most: AtOnce::of_spec(&spec), ..demand(1, &[(Role::Judge, unpublished(30))]) };
            shares(&[demand], &Slots::new(), 0)[0].2
        };
        // votes that are repeated, long after the system was asked
        assert_eq!(of_spec(None, Some(1), None), 30);
        assert_eq!(of_spec(Some(2), Some(1), None), 2);
        assert_eq!(of_spec(Some(2), None, Some("other")), 30, "it asks nothing");
    }

    #[test]
    fn p39_enough_votes_are_counted_to_know_a_backlog() {
        let most = AtOnce { questions: Some(1), judged: Some(2_000), votes: 3, segments: Some(1) };
        assert_eq!(worth_counting(std::iter::empty(), std::iter::once(most)), 6_001);
    }

    #[test]
    fn p25_a_system_that_takes_two_at_a_time_gets_two_segments() {
        let banks = |queued| [(Role::Retain, OpenTasks { unpublished: 9, queued, leased: 1, ..OpenTasks::default() })];
        let most = AtOnce { segments: Some(2), ..AtOnce::default() };
        let granted = |queued| shares(&[Demand { most, ..demand(1, &banks(queued)) }], &Slots::new(), 0);
        assert_eq!((granted(0), granted(1)), (vec![(RunNo(1), Role::Retain, 1)], vec![]));
    }

    #[test]
    fn a_small_run_is_not_stuck_behind_a_large_one() {
        let demands =
            [demand(1, &[(Role::Question, unpublished(100_000))]), demand(2, &[(Role::Question, unpublished(10))])];
        assert_eq!(
            shares(&demands, &Slots::new(), 0),
            [(RunNo(1), Role::Question, 54), (RunNo(2), Role::Question, 10)]
        );
    }

    #[test]
    fn p28_banks_wait_while_enough_questions_are_open() {
        let open = |questions| [demand(1, &[(Role::Retain, unpublished(5)), (Role::Question, unpublished(questions))])];
        let retains =
            |questions| shares(&open(questions), &Slots::new(), 0).iter().any(|(_, role, _)| *role == Role::Retain);
        assert!(retains(2047));
        assert!(!retains(2048));
    }

    #[test]
    fn p28_banks_are_handed_out_a_few_at_a_time() {
        let demands = [demand(1, &[(Role::Retain, unpublished(700))])];
        let slots = Slots::from([(Role::Retain, 256)]);
        assert_eq!(shares(&demands, &slots, 0), [(RunNo(1), Role::Retain, 16)]);
        assert!(!fills(&demands, &slots, &shares(&demands, &slots, 0)), "and soon looked at again");
    }

    proptest! {
        #[test]
        fn nothing_is_left_while_somebody_wants(room in -5_i64..500, wants in prop::collection::vec(0_i64..200, 0..12), turn in 0_usize..100) {
            let granted = share_out(room, &wants, turn);
            prop_assert_eq!(granted.iter().sum::<i64>(), room.max(0).min(wants.iter().sum()));
            prop_assert!(granted.iter().zip(&wants).all(|(granted, wants)| granted <= wants));
            // nobody who wanted more got less than another by more than one
            for (i, want) in wants.iter().enumerate().filter(|(i, want)| granted[*i] < **want) {
                prop_assert!(granted.iter().all(|other| *other <= granted[i] + 1), "{} of {} got {}", i, want, granted[i]);
            }
        }
    }
}
