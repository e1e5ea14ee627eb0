//! `status [RUN]`: what is going on, and in one line why nothing moves.

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo},
    summary::{GroupSummary, MeteredRefused},
    text::one_line,
};
use bench_store::{
    BankState, BudgetScope, BudgetState, OpenByRole, RunFilter, RunRow, RunState, Runs, Store, WENT_BACK_EVENT,
};
use serde_json::json;

use crate::{
    app::{App, Deployment},
    cli::StatusArgs,
    cluster::overview::Overview,
    exit::{CliError, CliResult, Exit},
    out::{self, amounts::dollars},
    results,
    runs::client::{has_planner, who_is_missing},
    standing::{
        Standing, find_run,
        group::RunsOfGroup,
        latency::{self, Probing},
        outages::{self, Away},
        progress::{ProgressMeter, Snapshot, line},
        refused_calls,
        score::{Score, score_of},
        waiting::{Waiting, at_its_end, before_its_begin},
    },
};

/// Prints how a run stands, or all open runs, and the workers and queues of a cluster; changes nothing.
pub(super) async fn run(app: &App, args: &StatusArgs) -> CliResult {
    let store = app.open_store().await?;
    // a group is a list also when one of its runs is left
    let group = match &args.run {
        Some(selector) => RunsOfGroup::find(store.as_ref(), selector).await?,
        None => None,
    };
    let is_one = args.run.is_some() && group.is_none();
    let runs = match (group, &args.run) {
        (Some(group), _) => group.runs,
        (None, Some(selector)) => vec![find_run(store.as_ref(), selector).await?],
        (None, None) => {
            let filter = RunFilter { open: true, limit: Some(MOST_RUNS + 1), controls: true, ..RunFilter::default() };
            let mut runs = store.list_runs(&filter).await?;
            if runs.len() > MOST_RUNS as usize {
                runs.truncate(MOST_RUNS as usize);
                out::note(&format!(
                    "the newest {MOST_RUNS} open runs are shown, and there are more; `status RUN` shows each"
                ));
            }
            runs
        }
    };
    if runs.is_empty() && !args.json {
        out::note("no open runs; `bench-coord list` shows the finished ones");
    }
    let cluster = match app.deployment() {
        Ok(Deployment::Cluster) => {
            let pools = runs.iter().map(|run| run.spec.limits.pool.clone()).collect();
            Some(Overview::read(store.as_ref(), &app.settings().queue_url, &pools).await?)
        }
        Ok(Deployment::Local) | Err(_) => None,
    };
    let mut rows = Vec::new();
    for run in &runs {
        let status = RunStatus::read(app, store.as_ref(), run, cluster.as_ref()).await?;
        if args.json { rows.push(status.json()) } else { out::result(&status.text()) }
    }
    if let Some(cluster) = cluster.as_ref().filter(|_| !args.json) {
        out::result(&cluster.text());
    }
    if args.json {
        match rows.as_slice() {
            [one] if is_one => out::json(one),
            rows => out::json(&rows),
        }
    }
    Ok(Exit::Done)
}

/// Open runs that are shown.
const MOST_RUNS: u32 = 100;

/// Events of a store that went back that are shown to people.
const MOST_EVENTS: usize = 8;

async fn went_back(store: &dyn Runs, run: RunNo) -> Result<Vec<String>, CliError> {
    let events = store.events(run).await?.into_iter().filter(|event| event.kind == WENT_BACK_EVENT);
    Ok(events.map(|event| event.message).collect())
}

/// `40 calls of 60 used, 3 reserved`; with the other runs of its command where there are some.
fn used(usage: &BudgetState, of_group: bool) -> Option<String> {
    let BudgetScope::Usage(unit) = usage.scope else { return None };
    let reserved = match usage.reserved.0 {
        0 => String::new(),
        reserved => format!(", {reserved} reserved"),
    };
    let together = if of_group { ", all runs of its command together" } else { "" };
    Some(format!("{} of {} used{reserved}{together}", unit.counted(usage.spent.0), usage.cap.0))
}

fn usage_json(usage: &BudgetState) -> Option<serde_json::Value> {
    let BudgetScope::Usage(unit) = usage.scope else { return None };
    Some(json!({"unit": unit, "cap": usage.cap.0, "used": usage.spent.0, "reserved": usage.reserved.0}))
}

struct RunStatus<'a> {
    run: &'a RunRow,
    cluster: Option<&'a Overview>,
    standing: Standing,
    /// Why nobody works on it.
    missing: Option<String>,
    open: OpenByRole,
    waits_for: Option<String>,
    /// Which other runs it waits for, before it begins or at its end.
    waits_for_runs: Option<String>,
    failed_banks: Vec<(String, String)>,
    outages: Vec<Away>,
    /// Which calls of its memory system the meter has refused.
    refused_calls: Vec<MeteredRefused>,
    /// How far its latency probe is.
    probing: Option<Probing>,
    /// What was lost and brought back when the store went back in time.
    went_back: Vec<String>,
    group: GroupSummary,
    /// What is used of a cap on tokens or calls.
    usage: Option<BudgetState>,
    /// The figure of its report, or what has ended so far comes to.
    score: Score,
}

impl<'a> RunStatus<'a> {
    async fn read(
        app: &App,
        store: &dyn Store,
        run: &'a RunRow,
        cluster: Option<&'a Overview>,
    ) -> Result<RunStatus<'a>, CliError> {
        let banks = store.banks(run.run_no, None).await?;
        let failed = banks.into_iter().filter(|b| b.state == BankState::Failed);
        let served = run.domain == CLUSTER_DOMAIN && run.state == RunState::Running;
        let open = store.open_tasks(run.run_no).await?;
        let mut missing = if served { who_is_missing(store, &run.spec.limits.pool, &open).await? } else { None };
        if served && missing.is_none() && !run.planned && !has_planner(store, run.run_no).await? {
            missing = Some(format!("nobody writes the rest of its plan; `bench-coord resume {}` does", run.run_id));
        }
        Ok(RunStatus {
            run,
            cluster,
            missing,
            standing: Standing::of_run(run, app.store_file().as_deref()),
            waits_for_runs: match before_its_begin(store, run).await? {
                None => at_its_end(store, run, &open).await?,
                others => others,
            },
            open,
            outages: outages::away(store, run).await?,
            refused_calls: refused_calls::of_run(store, run).await?,
            probing: latency::probing(store, run).await?,
            waits_for: store.waits_for(run.run_no).await?,
            went_back: went_back(store, run.run_no).await?,
            failed_banks: failed.map(|b| (b.bank_id, b.reason.unwrap_or_default())).collect(),
            group: results::group_of(store, run).await?,
            usage: store.usage(run).await?,
            score: score_of(store, run).await?,
        })
    }

    /// Why nothing moves, in one line.
    fn why(&self) -> Option<String> {
        if let Some(advice) = self.standing.advice(&self.run.run_id) {
            return Some(advice);
        }
        if !matches!(self.standing, Standing::Running { .. }) {
            return None;
        }
        if let Some(missing) = &self.missing {
            return Some(missing.clone());
        }
        if let Some(trouble) = self.cluster.and_then(Overview::trouble) {
            return Some(trouble);
        }
        if !self.outages.is_empty() {
            return Some(self.outages.iter().map(Away::line).collect::<Vec<_>>().join("; "));
        }
        if let Some(waiting) = Waiting::from_open(&self.open, self.waits_for.clone()) {
            return Some(waiting.line());
        }
        if let Some(others) = &self.waits_for_runs {
            return Some(others.clone());
        }
        let asks = self.run.spec.taken_over.banks_of.first();
        (!self.run.planned).then(|| match asks {
            Some(of) => format!("the plan is written as run {of} fills the banks that are asked"),
            None => "the plan is still being written".to_owned(),
        })
    }

    fn snapshot(&self) -> Snapshot {
        let looked = ProgressMeter::default().look(self.run);
        let score_is_of_report = self.score.verdict.is_some();
        let looked = Snapshot { latency_probe: self.probing, score: self.score.value, score_is_of_report, ..looked };
        match self.standing {
            Standing::Running { .. } => looked,
            _ => looked.of_nobody(),
        }
    }

    fn text(&self) -> String {
        let run = self.run;
        let snapshot = self.snapshot();
        let pid = match &self.standing {
            Standing::Running { pid: Some(pid) } => format!(" (pid {pid})"),
            _ => String::new(),
        };
        let mut lines = vec![
            format!(
                "{}  {}{pid}{}",
                run.run_id,
                self.standing.word(),
                run.name.as_ref().map(|n| format!("  {n}")).unwrap_or_default()
            ),
            format!(
                "  {} {} · {} · {}{}",
                run.spec.dataset.name,
                run.spec.sample.preset,
                run.spec.system.name,
                run.spec.who_answers(),
                run.spec.judges.first().map(|j| format!(" · judge {}", j.display())).unwrap_or_default()
            ),
            format!("  {}", line(&snapshot)),
        ];
        for role in Role::ALL {
            if let Some(open) = self.open.get(&role).filter(|open| open.all() > 0) {
                lines.push(format!(
                    "  {role}: {} working, {} queued, {} ready, {} delayed",
                    open.leased, open.queued, open.unpublished, open.delayed
                ));
            }
        }
        lines.extend(results::looks::last(run).map(|look| format!("  {look}")));
        if self.group.runs > 1 {
            let cap = self.group.cap_usd.map(|cap| format!(" of {}", dollars(cap))).unwrap_or_default();
            lines.push(format!(
                "  group {}: ${:.4}{cap} booked of {} runs, uncertain attempts included",
                self.group.id, self.group.booked_usd, self.group.runs
            ));
        }
        lines.extend(self.usage.as_ref().and_then(|usage| Some(format!("  {}", used(usage, self.group.runs > 1)?))));
        for (bank, reason) in &self.failed_banks {
            lines.push(format!("  bank {bank} failed: {reason}"));
        }
        lines.extend(self.refused_calls.iter().map(|of| format!("  {}", of.words())));
        // the first says when it happened, the last ones what became of it
        lines.extend(self.went_back.iter().rev().take(MOST_EVENTS).rev().map(|event| format!("  {event}")));
        if let Some(why) = self.why() {
            lines.push(format!("  {why}"));
        }
        // what others have put into a line is no line of its own
        lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
    }

    fn json(&self) -> serde_json::Value {
        let snapshot = self.snapshot();
        let roles: serde_json::Map<String, serde_json::Value> = self
            .open
            .iter()
            .map(|(role, o)| {
                let row = json!({"leased": o.leased, "queued": o.queued, "ready": o.unpublished, "delayed": o.delayed});
                (role.name().to_owned(), row)
            })
            .collect();
        json!({
            "id": self.run.run_id,
            "name": self.run.name,
            "status": self.standing.word(),
            "reason": self.run.reason,
            "why": self.why(),
            "planned": self.run.planned,
            "resumed_times": self.run.resumed_times,
            "progress": snapshot,
            "group": self.group,
            "usage": self.usage.as_ref().and_then(usage_json),
            "tasks": roles,
            "stop": self.run.spec.stop.as_ref().map(|rule| json!({
                "rule": rule.goal.to_string(), "planned": rule.looks, "looks": self.run.looks.made,
                "to_the_end": self.run.looks.to_the_end,
            })),
            "cluster": self.cluster.map(Overview::json),
            "outages": self.outages,
            "refused_calls": self.refused_calls,
            "next_probe": self.outages.iter().map(|away| away.next_probe_seconds).reduce(f64::min),
            "went_back": self.went_back,
            "failed_banks": self.failed_banks.iter().map(|(bank, reason)| json!({"bank": bank, "reason": reason})).collect::<Vec<_>>(),
        })
    }
}
