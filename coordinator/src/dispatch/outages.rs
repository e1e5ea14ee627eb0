//! What outages of the ways to models and memory servers mean for runs (P39): what needs a route that is away is not handed
//! out, after an outage it comes back slowly, and a run that can do nothing else for long enough is paused.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bench_models::routes::{Needs, stopped_roles};
use bench_proto::{
    ids::{Role, RunNo},
    outage::{RouteKey, allowance_after},
};
use bench_store::{OpenByRole, OutageRow};

/// What a dispatcher knows of outages.
#[derive(Debug, Default)]
pub(super) struct OutageWatch {
    rows: BTreeMap<RouteKey, OutageRow>,
    read: Option<Instant>,
    stuck: BTreeMap<RunNo, Stuck>,
}

/// How long a run has to move before it counts: a task that is put off comes back, is handed out and put off again.
const MOVED: Duration = Duration::from_secs(5);

/// What there is of a run at a look.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtHand<'a> {
    /// Its open tasks.
    pub(super) open: &'a OpenByRole,
    /// Roles in which something of it was handed out at this look.
    pub(super) granted: Option<&'a BTreeSet<Role>>,
}

impl AtHand<'_> {
    /// Whether something of a role is on its way. What could be handed out and is not (a limit, banks that wait for questions) does
    /// not move, and neither does what is put off: its own route may be there, and what it asks for away.
    fn moves(&self, role: Role) -> bool {
        let on_its_way = self.open.get(&role).is_some_and(|tasks| tasks.queued + tasks.leased > 0);
        on_its_way || self.granted.is_some_and(|granted| granted.contains(&role))
    }
}

/// A run that waits for what is away.
#[derive(Debug, Clone, Copy)]
struct Stuck {
    since: Instant,
    /// Since when it has moved at each look, if it did at the last one.
    moving: Option<Instant>,
}

impl OutageWatch {
    /// Takes what the store says.
    pub(super) fn read(&mut self, rows: Vec<OutageRow>, now: Instant) {
        let keyed = |row: OutageRow| Some((RouteKey::from_text(&row.route)?, row));
        self.rows = rows.into_iter().filter_map(keyed).collect();
        self.read = Some(now);
    }

    /// Whether it is time to read again.
    pub(super) fn is_due(&self, every: Duration) -> bool {
        self.read.is_none_or(|read| read.elapsed() >= every)
    }

    fn is_away(&self, route: &RouteKey) -> bool {
        self.rows.get(route).is_some_and(|row| row.outage.is_open())
    }

    /// Whether one of some routes is away.
    pub(super) fn is_any_away(&self, routes: &[RouteKey]) -> bool {
        routes.iter().any(|route| self.is_away(route))
    }

    /// Calls that a route is trusted with over all processes; `None`: as many as there are.
    fn allowance(&self, route: &RouteKey, now: Instant) -> Option<u32> {
        let row = self.rows.get(route)?;
        if row.outage.is_open() {
            return Some(0);
        }
        let since_read = self.read.map_or(Duration::ZERO, |read| now.saturating_duration_since(read));
        let ended_us = u64::try_from(row.now_us - row.outage.to_us?).unwrap_or(0);
        let since_ms = ended_us / 1000 + u64::try_from(since_read.as_millis()).unwrap_or(u64::MAX);
        // a false alarm has kept nobody away for long enough to come back as a wave
        allowance_after(since_ms).filter(|_| row.outage.is_confirmed())
    }

    /// Tasks in flight that a run may have in a role because of outages; roles without a bound are left out.
    pub(super) fn bounds(&self, needs: &Needs, now: Instant) -> BTreeMap<Role, u32> {
        if self.rows.is_empty() {
            return BTreeMap::new();
        }
        let of_list = |any_of: &Vec<RouteKey>| {
            any_of.iter().map(|route| self.allowance(route, now).unwrap_or(u32::MAX)).max().unwrap_or(u32::MAX)
        };
        let bound = |lists: &Vec<Vec<RouteKey>>| lists.iter().map(of_list).min().filter(|bound| *bound < u32::MAX);
        needs.iter().filter_map(|(role, lists)| Some((*role, bound(lists)?))).collect()
    }

    /// Why a run has to be paused, when nothing of it has moved for `longest` and something that it needs is away; with the code of
    /// such lines.
    pub(super) fn gives_up(
        &mut self,
        run: RunNo,
        needs: &Needs,
        at_hand: AtHand<'_>,
        longest: Duration,
        now: Instant,
    ) -> Option<(&'static str, String)> {
        let away = needs.values().flatten().flatten().find(|route| self.is_away(route));
        let Some(route) = away.filter(|_| at_hand.open.values().any(|tasks| tasks.all() > 0)) else {
            self.stuck.remove(&run);
            return None;
        };
        let stopped: BTreeSet<Role> = stopped_roles(needs, |route| self.is_away(route));
        let moves = Role::ALL.into_iter().any(|role| !stopped.contains(&role) && at_hand.moves(role));
        let stuck = self.stuck.entry(run).or_insert(Stuck { since: now, moving: None });
        if moves {
            if now.saturating_duration_since(*stuck.moving.get_or_insert(now)) >= MOVED {
                stuck.since = now;
            }
            return None;
        }
        stuck.moving = None;
        if now.saturating_duration_since(stuck.since) < longest {
            return None;
        }
        self.stuck.remove(&run);
        let row = self.rows.get(route)?;
        let away = crate::out::amounts::duration((row.now_us - row.outage.from_us) as f64 / 1e6);
        let why = format!("{route} has been away for {away} ({}); `resume` tries again at once", row.reason);
        Some((route.away_code(), why))
    }

    /// Forgets runs that no longer run.
    pub(super) fn keep(&mut self, runs: impl Fn(&RunNo) -> bool) {
        self.stuck.retain(|run, _| runs(run));
    }
}

#[cfg(test)]
mod tests {
    use bench_models::routes::Needs;
    use bench_proto::outage::{Outage, RouteKind};

    use bench_store::OpenTasks;

    use super::*;

    fn key(model: &str) -> RouteKey {
        RouteKey::Model { kind: RouteKind::Chat, account: "openai".to_owned(), model: model.to_owned() }
    }

    fn row(model: &str, to_us: Option<i64>) -> OutageRow {
        let outage = Outage { opening: 1, failed_probes: 1, to_us, ..Outage::default() };
        OutageRow { route: key(model).to_text(), outage, now_us: 120_000_000, reason: "503".to_owned(), held: 0 }
    }

    fn needs() -> Needs {
        let judges = vec![key("judge"), key("second")];
        BTreeMap::from([(Role::Question, vec![vec![key("answerer")]]), (Role::Judge, vec![judges])])
    }

    fn watch(rows: Vec<OutageRow>, now: Instant) -> OutageWatch {
        let mut watch = OutageWatch::default();
        watch.read(rows, now);
        watch
    }

    #[test]
    fn p39_only_what_needs_a_route_that_is_away_is_held_back() {
        let now = Instant::now();
        let bounds = |rows| watch(rows, now).bounds(&needs(), now);
        assert_eq!(bounds(vec![]), BTreeMap::new());
        assert_eq!(bounds(vec![row("answerer", None)]), BTreeMap::from([(Role::Question, 0)]), "judging goes on");
        assert_eq!(bounds(vec![row("judge", None)]), BTreeMap::new(), "the other judge goes on");
        let both = bounds(vec![row("judge", None), row("second", None)]);
        assert_eq!(both, BTreeMap::from([(Role::Judge, 0)]), "answers go on");
    }

    #[test]
    fn p39_an_outage_holds_back_the_runs_that_need_it_and_no_others() {
        let now = Instant::now();
        let watch = watch(vec![row("answerer", None), row("judge", None)], now);
        let elsewhere =
            Needs::from([(Role::Question, vec![vec![key("another")]]), (Role::Judge, vec![vec![key("second")]])]);
        assert_eq!(watch.bounds(&elsewhere, now), BTreeMap::new());
        assert_eq!(watch.bounds(&needs(), now), BTreeMap::from([(Role::Question, 0)]));
    }

    #[test]
    fn p39_after_an_outage_the_fleet_gets_few_tasks_at_first() {
        let now = Instant::now();
        let watch = watch(vec![row("answerer", Some(119_500_000))], now);
        let after = |seconds| watch.bounds(&needs(), now + Duration::from_secs(seconds)).get(&Role::Question).copied();
        assert_eq!([0, 1, 3, 9].map(after), [Some(8), Some(16), Some(64), None]);
    }

    #[test]
    fn p39_a_run_that_can_do_nothing_else_is_paused_after_its_time() {
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let tasks = OpenTasks { unpublished: 3, ..OpenTasks::default() };
        let questions = OpenByRole::from([(Role::Question, tasks)]);
        let both = OpenByRole::from([(Role::Question, tasks), (Role::Judge, tasks)]);
        let mut watch = watch(vec![row("answerer", None)], now);
        let (run, judging) = (RunNo(1), BTreeSet::from([Role::Judge]));
        let questions = AtHand { open: &questions, granted: None };
        let judged = AtHand { open: &both, granted: Some(&judging) };
        assert_eq!(watch.gives_up(run, &needs(), questions, minute, now), None);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(watch.gives_up(run, &needs(), judged, minute, at(54)), None);
        assert_eq!(watch.gives_up(run, &needs(), judged, minute, at(59)), None, "judging moves: it begins anew");
        assert_eq!(watch.gives_up(run, &needs(), questions, minute, at(61)), None);
        let (code, why) = watch.gives_up(run, &needs(), questions, minute, at(121)).expect("its time is over");
        assert_eq!(code, "provider_away");
        assert_eq!(why, "answerer (account openai) has been away for 2 min 0 s (503); `resume` tries again at once");
    }

    #[test]
    fn p39_a_task_of_another_role_that_is_put_off_again_and_again_keeps_no_run_going() {
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let put_off = OpenByRole::from([(Role::Retain, OpenTasks { delayed: 1, ..OpenTasks::default() })]);
        let tried = OpenByRole::from([(Role::Retain, OpenTasks { leased: 1, ..OpenTasks::default() })]);
        let mut watch = watch(vec![row("answerer", None)], now);
        let run = RunNo(1);
        for second in 0..60 {
            let open = if second % 10 == 9 { &tried } else { &put_off };
            let at_hand = AtHand { open, granted: None };
            let gives_up = watch.gives_up(run, &needs(), at_hand, minute, now + Duration::from_secs(second));
            assert_eq!(gives_up, None, "{second}");
        }
        let put_off = AtHand { open: &put_off, granted: None };
        let (code, _) =
            watch.gives_up(run, &needs(), put_off, minute, now + Duration::from_secs(61)).expect("its time is over");
        assert_eq!(code, "provider_away");
    }

    #[test]
    fn p39_tasks_that_could_be_handed_out_and_are_not_keep_no_run_going() {
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        // banks wait while enough questions are open, and those wait for what is away
        let held = OpenTasks { unpublished: 3000, ..OpenTasks::default() };
        let open = OpenByRole::from([(Role::Retain, held), (Role::Question, held)]);
        let at_hand = AtHand { open: &open, granted: None };
        let mut watch = watch(vec![row("answerer", None)], now);
        for second in 0..60 {
            let at = now + Duration::from_secs(second);
            assert_eq!(watch.gives_up(RunNo(1), &needs(), at_hand, minute, at), None, "{second}");
        }
        assert!(watch.gives_up(RunNo(1), &needs(), at_hand, minute, now + minute).is_some());
    }
}
